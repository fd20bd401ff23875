# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Replay: copies of the latest unrolls, to learn from them again. NumPy only.

As in Espeholt et al. 2018 (arXiv 1802.01561), section 5.2.2, some columns of
every batch are drawn uniformly at random from the latest unrolls.
"""

from collections.abc import Iterator

import numpy as np
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls
import tree


class Replay:
  """A ring of copies of columns: a new copy replaces the oldest one.

  A copy has everything that learning needs. Its recurrent state is the one that
  the actor began the unroll with.
  """

  def __init__(self, storage: structs.Unroll, seed: int):
    """Makes an empty replay.

    Args:
      storage: from `unrolls.allocate`, with as many columns as are kept.
      seed: seed of the draws.
    """
    self._storage = storage
    self._last_observations: list[tuple[structs.LastObservation, ...]] = (
        [()] * storage.num_columns)
    self._rng = np.random.default_rng(seed)
    self._num_added = 0

  def add(self, batch: structs.Unroll) -> None:
    """Adds copies of all columns of `batch`."""
    for column in range(batch.num_columns):
      slot = self._num_added % self._storage.num_columns
      unrolls.copy_columns(self._storage, slot, batch, column, 1)
      self._last_observations[slot] = unrolls.move_columns(
          batch.last_observations, column, column + 1, -column)
      self._num_added += 1

  def draw(self, batch: structs.Unroll,
           start: int) -> list[structs.LastObservation]:
    """Fills the columns of `batch` from `start` on with copies it draws.

    The draws are uniform, with replacement.

    Returns:
      The last observations of these columns.
    """
    size = min(self._num_added, self._storage.num_columns)
    lasts: list[structs.LastObservation] = []
    for column in range(start, batch.num_columns):
      slot = int(self._rng.integers(size))
      unrolls.copy_columns(batch, column, self._storage, slot, 1)
      lasts += unrolls.move_columns(
          self._last_observations[slot], 0, 1, column)
    return lasts


def num_bytes(unroll: structs.Unroll) -> int:
  """Returns the size of the arrays, without the contents of strings."""
  return sum(array.nbytes for array in tree.flatten(
      (unroll.steps, unroll.start)))


def batches(inbox: queues.BoundedQueue[unrolls.Delivery],
            batch: structs.Unroll, replay: Replay, num_fresh: int
            ) -> Iterator[structs.Unroll]:
  """Fills `batch` with fresh columns first, and replayed ones after them.

  Fresh columns are added to the replay before it draws, so it is never empty.
  Because of that, the first batches have some columns twice.

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
    lasts = replay.draw(batch, num_fresh)
    yield batch._replace(
        last_observations=(*fresh.last_observations, *lasts))
