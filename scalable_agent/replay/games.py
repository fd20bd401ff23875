# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The games of a store of steps. NumPy only."""

import collections
import operator

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests


class Games:
  """A table with a row for each game that has steps in the store.

  Attributes:
    start: int64, the time of the first slot.
    limit: int64, the time of the last step, -1 while the game runs.
    last: nest of arrays, the last observation.
    previous: int32, the row of the game before, in the same stream.
    of_slot: int32, the row of the game of each slot of the store.
  """

  def __init__(self, num_streams: int, num_slots: int,
               empty_last: structs.Nest):
    """Makes a table without games; `empty_last` is a nest of one row."""
    self.start = np.zeros([1], np.int64)
    self.limit = np.zeros([1], np.int64)
    self.last = empty_last
    self.previous = np.zeros([1], np.int32)
    self.of_slot = np.zeros([num_slots], np.int32)
    self._free = [0]
    self._rows: list[collections.deque[int]] = [
        collections.deque() for _ in range(num_streams)]

  def append(self, stream: int, time: int, slots: np.ndarray,
             begins: np.ndarray, is_end: np.ndarray,
             last_observations: structs.Nest) -> None:
    """Adds slots of one stream.

    Args:
      stream: the stream.
      time: the time of the first of the slots.
      slots: int64 `[N]`.
      begins: bool `[N]`, whether a game or the stream begins in a slot.
      is_end: bool `[N]`, whether the step into a slot ended the game before.
      last_observations: nest of `[M, ...]`, one row per end.
    """
    rows, first, num_ended = self._rows[stream], 0, 0
    if not rows:
      rows.append(self._begin(time))
    for i in map(int, np.flatnonzero(begins)):
      self.of_slot[slots[first:i]] = row = rows[-1]
      first = i
      if is_end[i]:
        self.limit[row] = time + i
        map_nests(
            lambda a, b, row=row, j=num_ended: operator.setitem(a, row, b[j]),
            self.last, last_observations)
        num_ended += 1
      else:
        self.limit[row] = time + i - 1
      rows.append(self._begin(time + i))
      self.previous[rows[-1]] = row
    self.of_slot[slots[first:]] = rows[-1]

  def forget(self, stream: int, oldest: int) -> None:
    """Frees the rows of games without a slot from the time `oldest` on."""
    rows = self._rows[stream]
    while len(rows) > 1 and self.start[rows[1]] <= oldest:
      self._free.append(rows.popleft())

  def clear(self, stream: int) -> None:
    """Frees all rows of a stream."""
    while self._rows[stream]:
      self._free.append(self._rows[stream].pop())

  def _begin(self, time: int) -> int:
    """Returns the row of a new game."""
    if not self._free:
      size = len(self.start)
      self._free = list(range(size, 2 * size))
      double = lambda a: np.concatenate([a, np.zeros_like(a)])
      self.start, self.limit = double(self.start), double(self.limit)
      self.last = map_nests(double, self.last)
      self.previous = double(self.previous)
    row = self._free.pop()
    self.start[row], self.limit[row] = time, -1
    return row
