# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Feeds: the road from the unrolls of actors to batches on the device."""

from collections.abc import Callable, Iterator
import threading
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import learner as learner_lib
from scalable_agent.processes import threads
from scalable_agent.replay import rate as rate_lib


class Source(NamedTuple):
  """A source of samples.

  Attributes:
    samples: the samples.
    set_errors: sets the errors of positions, of the same shape, in a
      prioritised replay; None without a replay.
    rate: counts updates and steps if their ratio is fixed; else None.
    save: saves the replay; None if checkpoints do not include the replay.
    is_new: whether a replay that is saved begins empty.
  """
  samples: Iterator[structs.Sample]
  set_errors: Callable[[np.ndarray, np.ndarray], None] | None = None
  rate: rate_lib.Rate | None = None
  save: Callable[[], None] | None = None
  is_new: bool = False


class Feed:
  """Makes batches, in a thread of its own unless acting takes turns.

  While the learner learns from a batch, a second batch waits and a third batch
  is made.

  Attributes:
    inbox: the queue that actors put unrolls into.
    waiting: called at least every half second while no batch is ready.
  """

  def __init__(self, inbox: queues.BoundedQueue[unrolls.Delivery],
               source: Source, learner: learner_lib.Learner,
               num_action_repeats: int, num_learners: int = 1,
               turns: 'TurnTaker | None' = None,
               ended: Callable[[], None] = lambda: None):
    """Makes a feed; nothing runs before `start`.

    Args:
      inbox: the queue that actors put unrolls into.
      source: makes samples from the unrolls in the inbox.
      learner: learns from the batches.
      num_action_repeats: environment frames per agent step.
      num_learners: the number of all learners of the run.
      turns: the inbox of the source if acting and learning take turns.
      ended: called after the end of the thread.
    """
    self.inbox = inbox
    self.waiting: Callable[[], None] = lambda: None
    self._source = source
    self._learner = learner
    self._num_action_repeats = num_action_repeats
    self._num_learners = num_learners
    self._turns = turns
    self._ended = ended
    self._timer = timing.StageTimer()
    self._ready = queues.BoundedQueue[structs.Batch](1)
    self._thread = threads.LibraryThread(self._run, 'batches')

  def start(self) -> None:
    """Starts the thread; a feed with `turns` has none."""
    if self._turns is None:
      self._thread.start()

  def seconds(self) -> dict[str, float]:
    """Returns the seconds that the thread spent in each stage."""
    return dict(self._timer.seconds)

  def batches(self, stop: threading.Event) -> Iterator[structs.Batch]:
    """Yields the batches, as they are ready, until `stop` is set."""
    # Signals are handled between waits, so every wait has a limit.
    if self._turns is not None:
      self._turns.stop, self._turns.waiting = stop, self.waiting
    while not stop.is_set():
      try:
        batch = (self._ready.get(timeout_s=0.5) if self._turns is None
                 else self._make_batch())
      except queues.QueueTimeout:
        self.waiting()
        continue
      except Exception:
        if stop.is_set():
          return  # The signal has ended the environments, too.
        raise
      yield batch

  def learned(self, batch: structs.Batch, learned: learner_lib.Learned) -> None:
    """Sets the errors of a batch in a prioritised replay."""
    if (batch.positions is not None and learned.errors is not None
        and self._source.set_errors is not None):
      self._source.set_errors(batch.positions, learned.errors.numpy())

  def save(self) -> None:
    """Saves the replay, if checkpoints include it; SaveError on failure."""
    if self._source.save is None:
      return
    try:
      self._source.save()
    except OSError as e:
      raise errors.SaveError(
          f'The replay could not be written: {e.strerror}.') from e

  @property
  def updates_per_step(self) -> float | None:
    """The achieved ratio since the warm-up; None if no ratio is fixed."""
    rate = self._source.rate
    return None if rate is None else rate.achieved / self._num_learners

  def close(self) -> None:
    """Ends all waits for batches and for room in the inbox."""
    self.inbox.close()
    self._ready.close()

  def join(self, timeout_s: float) -> None:
    """Waits for the end of the thread, at most `timeout_s` seconds."""
    if self._thread.ident is not None:  # The thread was started.
      self._thread.join(timeout_s)
    self._ended()

  def _run(self) -> None:
    with self._ready.ending_thread():
      while True:
        batch = self._make_batch()
        with self._timer.stage('wait'):
          self._ready.put(batch)

  def _make_batch(self) -> structs.Batch:
    with self._timer.stage('collect'):  # Waits for unrolls and copies them.
      sample = next(self._source.samples)
    with self._timer.stage('to_device'):
      batch = self._learner.to_device(
          sample.data, sample.num_new_steps * self._num_action_repeats,
          sample.importance_weights)
    return batch._replace(positions=sample.positions, notes=sample.notes,
                          num_new_columns=sample.num_new_columns,
                          largest_weight=sample.largest_weight,
                          new_rows=sample.new_rows)


def next_batch(batches: Iterator[structs.Batch], stop: threading.Event,
               collectives: collectives_lib.Collectives
               ) -> structs.Batch | None:
  """Returns the next batch with the frames of all learners; None at the end.

  If one learner has no batch, or an error, no learner gets a batch.
  """
  batch = None
  try:
    if not stop.is_set():
      batch = next(batches, None)
  finally:
    num_new_frames, num_without, num_rows = tell_learners(batch, collectives)
  if batch is None or num_without:
    return None
  return normalised(
      batch._replace(num_new_frames=num_new_frames,
                     new_rows=batch.new_rows if num_rows else {}), collectives)


def tell_learners(batch: structs.Batch | None,
                  collectives: collectives_lib.Collectives) -> list[int]:
  """Tells all learners of the next batch, or with None of the end.

  Returns sums over all learners: new frames, learners without a batch, new rows
  of statistics.
  """
  num_rows = sum(int(count) for count, *_ in (
      batch.new_rows.values() if batch else ()))
  return collectives.total(
      [batch.num_new_frames if batch else 0, batch is None, num_rows])


def normalised(batch: structs.Batch,
               collectives: collectives_lib.Collectives) -> structs.Batch:
  """Divides importance weights by the largest weight of all learners.

  Fresh columns, which are in front, keep their importance weight.
  """
  weights = batch.importance_weights
  if weights is None or batch.largest_weight is None:
    return batch
  is_fresh = np.arange(weights.shape[-1]) < batch.num_new_columns
  factors = np.where(
      is_fresh, 1, 1 / collectives.largest(batch.largest_weight))
  return batch._replace(importance_weights=weights * factors.astype(np.float32))


class TurnTaker:
  """An inbox that releases unrolls only when the next unroll is wanted.

  By then, all updates that are due have been made. Actors with one buffer each
  wait until then. The unrolls of several groups are released together, when
  each group has sent one. Once `stop` is set, `get` raises `QueueClosed`. `get`
  calls `waiting` at least every half second.
  """

  def __init__(self, inbox: queues.BoundedQueue[unrolls.Delivery],
               num_groups: int = 1):
    self.stop = threading.Event()
    self.waiting: Callable[[], None] = lambda: None
    self._inbox = inbox
    self._num_groups = num_groups
    self._releases: list[Callable[[], None]] = []

  def get(self) -> unrolls.Delivery:
    if len(self._releases) == self._num_groups:
      for release in self._releases:
        release()
      self._releases = []
    while not self.stop.is_set():
      self.waiting()
      try:
        unroll, release = self._inbox.get(timeout_s=0.5)
      except queues.QueueTimeout:
        continue
      self._releases.append(release)
      return unrolls.Delivery(unroll, lambda: None)
    raise queues.QueueClosed()


class Columns:
  """An inbox that fills the columns of one unroll, first in, first out."""

  def __init__(self, inbox: unrolls.Inbox, unroll: structs.Unroll):
    self._filled = unrolls.batches(inbox, unroll)

  def get(self) -> unrolls.Delivery:
    return unrolls.Delivery(next(self._filled), lambda: None)
