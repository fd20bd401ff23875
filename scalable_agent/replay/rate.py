# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""At what rate is learned: an exact ratio of updates to steps. NumPy only."""

from collections.abc import Callable, Iterator
import fractions
import threading
from typing import Any, Generic, NamedTuple, TypeVar

from scalable_agent.experience import structs
from scalable_agent.experience import unrolls

_T = TypeVar('_T')
_N = TypeVar('_N')


class Ready(NamedTuple, Generic[_T, _N]):
  """What a learner can learn from.

  Attributes:
    drawn: what was drawn, for `num_updates` updates.
    num_new_steps: agent steps that have arrived and were in none before it; 0
      if another one follows without new steps.
    notes: what was noted about each unroll of these steps.
  """
  drawn: _T
  num_new_steps: int
  notes: list[_N]


class Rate:
  """Counts steps and updates.

  Attributes:
    num_steps: agent steps of all environments that have arrived.
    num_updates: updates that were handed out.
    lock: is held while steps are added to a replay and counted here. Hold it to
      save both.
  """

  def __init__(self, updates_per_step: float, min_steps: int):
    """Starts with the warm-up.

    Args:
      updates_per_step: updates per agent step of one environment.
      min_steps: steps of the warm-up, which owe no updates.
    """
    # The decimal fraction that was written, such as 1/10.
    self._ratio = fractions.Fraction(str(updates_per_step))
    self._min_steps = min_steps
    self.num_steps = 0
    self.num_updates = 0
    self.lock = threading.Lock()
    self._first_step = min_steps
    self._first_update = 0
    self._is_new_ratio = False

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

  def warm_up(self) -> None:
    """Begins a warm-up; what was owed is forgotten."""
    self._first_step = self.num_steps + self._min_steps
    self._first_update = self.num_updates

  def go_on(self, num_steps: int, num_updates: int) -> None:
    """Counts on from these numbers. Call it once, after `state` was set."""
    self.num_steps = num_steps
    self.num_updates = num_updates
    if self._is_new_ratio and num_steps > self._first_step:
      # Steps of the past owe nothing at the new ratio.
      self._first_step = num_steps
      self._first_update = num_updates

  @property
  def state(self) -> dict[str, Any]:
    """Numbers by name, for a checkpoint. It can be set."""
    return {
        'num_steps': self.num_steps, 'num_updates': self.num_updates,
        'first_step': self._first_step, 'first_update': self._first_update,
        'ratio': str(self._ratio)}

  @state.setter
  def state(self, state: dict[str, Any]) -> None:
    self.num_steps = int(state['num_steps'])
    self.num_updates = int(state['num_updates'])
    self._first_step = int(state['first_step'])
    self._first_update = int(state['first_update'])
    self._is_new_ratio = str(state['ratio']) != str(self._ratio)


def batches(inbox: unrolls.Inbox,
            add: Callable[[structs.Unroll], None], draw: Callable[[], _T],
            rate: Rate, num_updates: int,
            note: Callable[[structs.Unroll], _N]) -> Iterator[Ready[_T, _N]]:
  """Takes unrolls until updates are due, then draws until they are made.

  While updates are due no unroll is taken, so that a bounded inbox holds the
  actors back.

  Args:
    inbox: the source of unrolls. Its `QueueClosed` or error is raised here.
    add: adds copies of an unroll to the replay.
    draw: draws for `num_updates` updates.
    rate: counts; nobody else changes it.
    num_updates: updates per draw.
    note: returns what the log needs from an unroll; it must not keep its
      arrays.

  Yields:
    `Ready`, for `num_updates` updates. The last one before more unrolls are
    taken has the steps and notes of the latest: a run that ends when it has
    enough steps makes the updates that they owe.
  """
  while True:
    num_new_steps, notes = 0, []
    while rate.num_owed < num_updates:
      delivery = inbox.get()
      unroll = delivery.unroll
      num_steps = unroll.steps.env_outputs.done[1:].size
      with rate.lock:
        add(unroll)
        rate.num_steps += num_steps
      notes.append(note(unroll))
      delivery.release()
      num_new_steps += num_steps
    while rate.num_owed >= 2 * num_updates:
      rate.num_updates += num_updates
      yield Ready(draw(), 0, [])
    rate.num_updates += num_updates
    yield Ready(draw(), num_new_steps, notes)
