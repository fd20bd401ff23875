# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Keeps an exact ratio of updates to agent steps. NumPy only."""

from collections.abc import Callable, Iterator
import fractions
import math
import threading

from scalable_agent.experience import structs
from scalable_agent.experience import unrolls


class PerCollection:
  """Owes the same number of updates after each collection, as DI-engine."""

  def __init__(self, num_updates: int = 1,
               can_draw: Callable[[], bool] = lambda: True):
    """Starts without updates that are due.

    `can_draw` says whether the replay has enough items for a batch. If not, no
    update is due until there are more items, after a later collection.
    """
    self.lock = threading.Lock()
    self._num_updates = num_updates
    self._can_draw = can_draw
    self._num_owed = 0

  @property
  def num_owed(self) -> int:
    """The updates that are due; 0 if no batch can be drawn."""
    return self._num_owed if self._can_draw() else 0

  def add_steps(self, num_steps: int) -> None:
    """Owes the updates of one more collection."""
    del num_steps
    self._num_owed = self._num_updates

  def add_updates(self, num_updates: int) -> None:
    """Counts updates that were handed out."""
    self._num_owed -= num_updates


class Rate:
  """Owes updates at an exact ratio to the steps after the warm-up.

  Attributes:
    num_steps: agent steps of all environments that have arrived.
    num_updates: updates that were handed out.
    is_new_share: whether `state` was set to the counts of a run with another
      number of learners.
    lock: held while steps are added to a replay and counted, and while the
      replay is saved with these counts.
  """

  def __init__(self, updates_per_step: float, min_steps: int,
               num_learners: int = 1):
    """Starts with a warm-up of `min_steps`, for which no updates are due.

    `num_learners` learners share the steps, each with a rate of its own.
    """
    # The exact decimal fraction, such as 1/10.
    self._ratio = fractions.Fraction(str(updates_per_step))
    self._min_steps = min_steps
    self.num_steps = 0
    self.num_updates = 0
    self.lock = threading.Lock()
    self._first_step = min_steps
    self._first_update = 0
    self._num_learners = num_learners
    self._is_new_ratio = self.is_new_share = False

  @property
  def num_owed(self) -> int:
    """The updates that are due; negative during the warm-up."""
    return int((self.num_steps - self._first_step) * self._ratio // 1) - (
        self.num_updates - self._first_update)

  @property
  def achieved(self) -> float:
    """Updates per step since the warm-up."""
    return ((self.num_updates - self._first_update)
            / max(self.num_steps - self._first_step, 1))

  def steps_until(self, num_updates: int) -> int:
    """Returns after how many steps, beyond a warm-up, updates are due."""
    return math.ceil(num_updates / self._ratio)

  def add_steps(self, num_steps: int) -> None:
    """Counts agent steps that have arrived."""
    self.num_steps += num_steps

  def add_updates(self, num_updates: int) -> None:
    """Counts updates that were handed out."""
    self.num_updates += num_updates

  def warm_up(self) -> None:
    """Begins a warm-up; updates that are due are forgotten."""
    self._first_step = self.num_steps + self._min_steps
    self._first_update = self.num_updates

  def resume(self, num_steps: int, num_updates: int,
             is_new_share: bool = False) -> None:
    """Counts on from these numbers. Call once, after `state` was set.

    At a new ratio, or with `is_new_share` in any learner, no updates are due
    for steps of the past.
    """
    num_left = max(self._first_step - self.num_steps, 0)  # Of a warm-up.
    self.num_steps = num_steps
    self.num_updates = num_updates
    if self._is_new_ratio or is_new_share:
      self._first_step = num_steps + num_left
      self._first_update = num_updates

  @property
  def state(self) -> dict[str, int | str]:
    """Numbers by name, for a checkpoint. Can be set."""
    return {
        'num_steps': self.num_steps, 'num_updates': self.num_updates,
        'first_step': self._first_step, 'first_update': self._first_update,
        'ratio': str(self._ratio), 'num_learners': self._num_learners}

  @state.setter
  def state(self, state: dict[str, int | str]) -> None:
    self.num_steps = int(state['num_steps'])
    self.num_updates = int(state['num_updates'])
    self._first_step = int(state['first_step'])
    self._first_update = int(state['first_update'])
    self._is_new_ratio = str(state['ratio']) != str(self._ratio)
    # Earlier versions saved no number. A new number of learners also
    # changes the ratio.
    self.is_new_share = (
        int(state['num_learners']) != self._num_learners
        if 'num_learners' in state else self._is_new_ratio)


def samples(inbox: unrolls.Inbox, add: Callable[[structs.Unroll], None],
            draw: Callable[[], structs.Sample], due: PerCollection | Rate,
            note: Callable[[structs.Unroll], structs.Note],
            num_updates: int = 1,
            num_new_steps: int = 0) -> Iterator[structs.Sample]:
  """Takes unrolls until updates are due, then draws a sample for each call.

  While updates are due no unroll is taken, so that a bounded inbox holds the
  actors back. The last sample before more unrolls are taken has the steps and
  the notes of the latest unrolls: a run that ends when there are enough steps
  has made all updates that were due for these steps, or up to `num_updates - 1`
  fewer.

  Args:
    inbox: the source of unrolls. `QueueClosed` or an error is raised here.
    add: adds copies of an unroll to the replay.
    draw: draws a sample for `num_updates` updates.
    due: the counts, which only this object changes.
    note: returns the note of an unroll; must not keep the arrays of the unroll.
    num_updates: updates per sample.
    num_new_steps: steps of a resumed replay that no sample has counted.
  """
  notes: list[structs.Note] = []
  while True:
    while due.num_owed < num_updates:
      delivery = inbox.get()
      unroll = delivery.unroll
      num_steps = unroll.steps.env_outputs.done[1:].size
      with due.lock:
        add(unroll)
        due.add_steps(num_steps)
      notes.append(note(unroll))
      delivery.release()
      num_new_steps += num_steps
    while due.num_owed >= num_updates:
      due.add_updates(num_updates)
      sample = draw()
      if due.num_owed >= num_updates:
        yield sample
      else:
        yield sample._replace(num_new_steps=num_new_steps, notes=notes)
        num_new_steps, notes = 0, []
