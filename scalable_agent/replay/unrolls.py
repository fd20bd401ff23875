# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Replay of unrolls: copies of the latest ones. NumPy only.

As in Espeholt et al. 2018 (arXiv 1802.01561), section 5.2.2, some columns of
every batch are drawn uniformly at random from the latest unrolls; or by
priority, or all of them, as in DI-engine.
"""

from collections.abc import Callable, Iterator
import threading
from typing import NamedTuple, TypeVar

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.replay import rate
from scalable_agent.replay import selectors
import tree

_N = TypeVar('_N')


class DrawnColumns(NamedTuple):
  """Columns of a batch.

  Attributes:
    unroll: the batch.
    weights: float32, of the losses of the columns; 1 for fresh ones.
    positions: int64, of the columns in the replay, for `Replay.update`.
  """
  unroll: structs.Unroll
  weights: np.ndarray
  positions: np.ndarray


class Replay:
  """A ring of copies of columns: a new copy replaces the oldest one.

  A copy has everything that learning needs. Its recurrent state is the one that
  the actor began the unroll with. Position `p` is that of the `p`-th copy. All
  methods may be called from any thread.

  Attributes:
    num_streams: 1; for selectors, the replay is a store of one stream.
    num_slots: how many copies are kept.
  """
  num_streams = 1

  def __init__(self, storage: structs.Unroll, seed: int,
               selector: selectors.Selector | None = None, max_use: int = 0):
    """Makes an empty replay.

    Args:
      storage: from `unrolls.allocate`, with as many columns as are kept.
      seed: seed of the draws.
      selector: chooses the copies; None draws uniformly.
      max_use: a copy that was drawn so often is not drawn again. 0 sets no
        limit.
    """
    self.num_slots = storage.num_columns
    self._storage = storage
    self._selector = selector or selectors.Uniform()
    self._max_use = max_use
    self._num_uses = np.zeros([self.num_slots], np.int64)
    self._rng = np.random.default_rng(seed)
    self._num_added = 0
    self._lock = threading.Lock()

  @property
  def first(self) -> np.ndarray:
    """int64 `[1]`, the position of the oldest copy."""
    return np.maximum(self.end - self.num_slots, 0)

  @property
  def end(self) -> np.ndarray:
    """int64 `[1]`, the number of columns ever added."""
    return np.array([self._num_added])

  def slots(self, positions: np.ndarray) -> np.ndarray:
    """Returns the columns of the storage."""
    return positions % self.num_slots

  def alive(self, positions: np.ndarray) -> np.ndarray:
    """Returns which copies can be drawn, bool."""
    alive = (self.first <= positions) & (positions < self.end)
    if self._max_use:
      alive &= self._num_uses[self.slots(positions)] < self._max_use
    return alive

  @property
  def num_uses_left(self) -> float:
    """How many columns can be drawn."""
    if not self._max_use:
      return np.inf if self._num_added else 0
    size = min(self._num_added, self.num_slots)
    return int(np.sum(self._max_use - self._num_uses[:size]))

  def add(self, batch: structs.Unroll) -> None:
    """Adds copies of all columns of `batch`."""
    with self._lock:
      for column in range(batch.num_columns):
        position = np.array([self._num_added])
        slot = int(self.slots(position)[0])
        unrolls.copy_columns(self._storage, slot, batch, column, 1)
        self._num_uses[slot] = 0
        self._num_added += 1
        self._selector.changed(self, position, position - self.num_slots)

  def draw(self, batch: structs.Unroll, start: int) -> DrawnColumns:
    """Fills the columns of `batch` from `start` on with copies it draws.

    The draws are with replacement. Last observations are left out: no loss of
    unrolls reads them.

    Raises:
      ValueError: too few copies can be drawn, see `num_uses_left`.
    """
    count = batch.num_columns - start
    with self._lock:
      if self.num_uses_left < count:
        raise ValueError(f'{count} draws, but {self.num_uses_left} are left.')
      positions, weights = self._select(count)
      for column, slot in enumerate(map(int, self.slots(positions)), start):
        unrolls.copy_columns(batch, column, self._storage, slot, 1)
    return DrawnColumns(batch, weights, positions)

  def update(self, positions: np.ndarray, errors: np.ndarray) -> None:
    """Notes the errors of columns; those that are gone are skipped."""
    with self._lock:
      self._selector.update(self, positions, errors)

  def _select(self, count):
    if not self._max_use:
      positions, weights = self._selector.select(self, self._rng, 1, count)
      return positions[0], weights[0]
    # One by one: a copy can be used up by the first of two draws.
    drawn = []
    for _ in range(count):
      positions, weights = self._selector.select(self, self._rng, 1, 1)
      slot = self.slots(positions[0])
      self._num_uses[slot] += 1
      if self._num_uses[slot] == self._max_use:
        self._selector.changed(self, positions[0][:0], positions[0])
      drawn.append((positions[0], weights[0]))
    return tuple(map(np.concatenate, zip(*drawn)))


def num_bytes(unroll: structs.Unroll) -> int:
  """Returns the size of the arrays, without the contents of strings."""
  return sum(array.nbytes for array in tree.flatten(
      (unroll.steps, unroll.start)))


def mixed_batches(inbox: unrolls.Inbox,
                  batch: structs.Unroll, replay: Replay, num_fresh: int
                  ) -> Iterator[DrawnColumns]:
  """Fills `batch` with fresh columns first, and replayed ones after them.

  Fresh columns are added to the replay before it draws, so it is never empty.
  Because of that, a batch can have a column twice.

  Args:
    inbox: the source of fresh unrolls, see `unrolls.batches`. Each column is
      fresh in one batch, and in no other.
    batch: from `unrolls.allocate`.
    replay: gets a copy of every fresh unroll.
    num_fresh: how many columns of `batch` are fresh.

  Yields:
    `batch`, filled anew; its arrays are overwritten for the next one.
  """
  for fresh in unrolls.batches(inbox, unrolls.columns(batch, 0, num_fresh)):
    replay.add(fresh)
    end = replay.end[0]
    drawn = replay.draw(batch, num_fresh)
    weights = np.concatenate([np.ones([num_fresh], np.float32), drawn.weights])
    yield DrawnColumns(
        batch, weights,
        np.concatenate([np.arange(end - num_fresh, end), drawn.positions]))


def collected_batches(
    inbox: unrolls.Inbox, collected: structs.Unroll,
    batch: structs.Unroll, replay: Replay, updates_per_collect: int,
    note: Callable[[structs.Unroll], _N]
) -> Iterator[rate.Ready[DrawnColumns, _N]]:
  """Draws all columns, for some updates after each collection, as DI-engine.

  Args:
    inbox: the source of fresh unrolls, see `unrolls.batches`.
    collected: from `unrolls.allocate`, with as many columns as are collected.
    batch: from `unrolls.allocate`.
    replay: gets a copy of every fresh unroll.
    updates_per_collect: the number of batches after each collection. They are
      fewer if too few draws are left.
    note: returns what the log needs of a collection; it must not keep its
      arrays.

  Yields:
    `batch`, filled anew; its arrays are overwritten for the next one. The last
    one after a collection has its steps and its note: a run that ends when it
    has enough steps makes all updates of its last collection.
  """
  num_new_steps, notes = 0, []
  for fresh in unrolls.batches(inbox, collected):
    replay.add(fresh)
    num_new_steps += fresh.steps.env_outputs.done[1:].size
    notes.append(note(fresh))
    for num_more in reversed(range(updates_per_collect)):
      if replay.num_uses_left < batch.num_columns:
        break
      drawn = replay.draw(batch, 0)
      if num_more and replay.num_uses_left >= batch.num_columns:
        yield rate.Ready(drawn, 0, [])
      else:
        yield rate.Ready(drawn, num_new_steps, notes)
        num_new_steps, notes = 0, []
