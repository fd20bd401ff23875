# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A store of unrolls: copies of the latest columns. NumPy only.

As in Espeholt et al. 2018 (arXiv 1802.01561), section 5.2.2, some columns of
every batch are drawn uniformly at random from the latest unrolls; or by
priority, or all columns, as in DI-engine.
"""

import dataclasses

import numpy as np
from scalable_agent.experience import packing
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.replay import selectors
import tree


class UnrollStore:
  """A ring of copies of columns: a new copy replaces the oldest one.

  A copy has everything that learning needs, including the recurrent state that
  the actor began the unroll with. Copies of stacked frames are packed. Position
  `p` names the `p`-th copy. For selectors, the ring is a store of one stream.
  """
  num_streams = 1

  def __init__(self, capacity: int):
    """Makes an empty store of `capacity` columns."""
    self.num_slots = capacity
    self._packed: list[structs.Unroll] = []
    self._num_added = 0

  @property
  def first(self) -> np.ndarray:
    """int64 `[1]`, the position of the oldest copy."""
    return np.maximum(self.end - self.num_slots, 0)

  @property
  def end(self) -> np.ndarray:
    """int64 `[1]`, the number of columns ever added."""
    return np.array([self._num_added])

  def slots(self, positions: np.ndarray) -> np.ndarray:
    """Returns the places in the ring."""
    return positions % self.num_slots

  def alive(self, positions: np.ndarray) -> np.ndarray:
    """Returns which copies are still there, bool."""
    return (self.first <= positions) & (positions < self.end)

  def add(self, unroll: structs.Unroll) -> selectors.Changes:
    """Adds copies of all columns."""
    positions = self._num_added + np.arange(unroll.num_columns)
    unroll = unroll._replace(last_observations=())
    for column, slot in enumerate(map(int, self.slots(positions))):
      # A slice, since the ring is not full at first.
      self._packed[slot:slot + 1] = [packing.copied(packing.pack(
          unrolls.columns(unroll, column, column + 1)))]
    self._num_added += unroll.num_columns
    return selectors.Changes(positions, positions - self.num_slots)

  def copy_to(self, batch: structs.Unroll, start: int,
              positions: np.ndarray) -> None:
    """Overwrites the columns of `batch` from `start` on with copies."""
    for column, slot in enumerate(map(int, self.slots(positions)), start):
      unrolls.copy_columns(
          batch, column, packing.unpack(self._packed[slot]), 0, 1)


@dataclasses.dataclass(frozen=True)
class Unrolls:
  """Copies of unrolls, in a batch that is overwritten each time.

  The batch has no last observations: no loss of unrolls reads them. The first
  `start` columns of the batch stay as they are.
  """
  batch: structs.Unroll
  start: int

  def __call__(self, store: UnrollStore, positions: np.ndarray,
               rng: np.random.Generator) -> structs.Unroll:
    del rng
    store.copy_to(self.batch, self.start, positions)
    return self.batch


class Passes:
  """Draws batches from a collection: each column once in each pass.

  Attributes:
    num_draws: draws from a collection.
  """

  def __init__(self, collected: structs.Unroll, batch: structs.Unroll,
               num_passes: int, seed: int):
    """Makes draws from collections that fill `collected` one after the other.

    Args:
      collected: from `unrolls.allocate`, `N` columns.
      batch: from `unrolls.allocate`, overwritten by each draw; the number of
        its columns divides `num_passes * N`, and is a divisor or a multiple of
        `N`.
      num_passes: passes over each collection, in a new order each.
      seed: seed of the orders.
    """
    self._collected = collected
    self._batch = batch
    self._rng = np.random.default_rng(seed)
    self._num_columns = num_passes * collected.num_columns
    self.num_draws = self._num_columns // batch.num_columns
    self._num_drawn = 0
    self._order = np.zeros([0], np.int64)

  def __call__(self) -> structs.Sample:
    """Returns the next batch; columns of the first pass are new."""
    num_collected = self._collected.num_columns
    first, column = self._num_drawn, 0
    while column < self._batch.num_columns:
      index = self._num_drawn % num_collected
      if not index:
        self._order = self._rng.permutation(num_collected)
      order = self._order[index:index + self._batch.num_columns - column]
      self._copy(slice(column, column + len(order)), order)
      column += len(order)
      self._num_drawn += len(order)
    num_new = max(num_collected - first % self._num_columns, 0)
    return structs.Sample(self._batch, num_new_columns=min(
        num_new, self._batch.num_columns))

  def _copy(self, to: slice, columns: np.ndarray) -> None:
    """Copies columns of the collection, int64 `[M]`, into the batch."""
    # All columns exist. The mode 'clip' needs no buffer for a whole batch.
    tree.map_structure(
        lambda into, values: np.take(values, columns, 0, into[to], 'clip'),
        self._batch.start, self._collected.start)
    tree.map_structure(
        lambda into, values: np.take(values, columns, 1, into[:, to], 'clip'),
        self._batch.steps, self._collected.steps)
