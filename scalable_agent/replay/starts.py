# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Starts of sequences in a store of steps, with recurrent states. NumPy only.
"""

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.replay import selectors
from scalable_agent.replay import steps
import tree


class Starts:
  """The starts of sequences of `E` entries: one start for each unroll.

  Position `k * num_streams + s` names the `k`-th start of stream `s`. A start
  can be drawn while all entries of its sequence are in the store of steps.

  Attributes:
    steps: the store of steps.
    length: `E`.
    first: int64 `[num_streams]`, the number of the first start to be drawn.
    end: int64 `[num_streams]`, the number after the last start to be drawn.
  """

  def __init__(self, store: steps.StepStore, state: structs.State, length: int,
               unroll_length: int):
    """Makes a store without starts.

    Args:
      store: an empty store of steps.
      state: nest of `[..., *shape]`, a recurrent state to take shapes from.
      length: `E`.
      unroll_length: the steps from a start to the next start.
    """
    self.steps = store
    self.length = length
    self.num_streams = store.num_streams
    self._unroll_length = unroll_length
    self._allocate(tree.map_structure(lambda s: s[np.newaxis], state),
                   unroll_length)
    self._count = np.zeros([self.num_streams], np.int64)
    self.first = np.zeros([self.num_streams], np.int64)
    self.end = np.zeros([self.num_streams], np.int64)

  def _allocate(self, state: structs.State, unroll_length: int) -> None:
    """Makes the arrays; `state` is a nest of `[..., ..., *shape]`."""
    self._ring = self.steps.length // unroll_length + 2
    shape = (self.num_streams, self._ring)
    self._time = np.zeros(shape, np.int64)
    self._state = tree.map_structure(
        lambda s: np.zeros((*shape, *s.shape[2:]), np.float32), state)

  @property
  def num_slots(self) -> int:
    """See `selectors.Items.num_slots`."""
    return self._time.size

  def slots(self, positions: np.ndarray) -> np.ndarray:
    """Returns the slots, numbers below `num_slots`, of starts."""
    number, stream = np.divmod(positions, self.num_streams)
    return stream * self._ring + number % self._ring

  def alive(self, positions: np.ndarray) -> np.ndarray:
    """Returns whether each sequence can be drawn, bool."""
    number, stream = np.divmod(positions, self.num_streams)
    return (self.first[stream] <= number) & (number < self.end[stream])

  def add(self, unroll: structs.Unroll) -> selectors.Changes:
    """Adds the steps of an unroll, and its start; see `StepStore.add`."""
    self.steps.add(unroll)
    num_entries = len(unroll.steps.env_outputs.reward)
    changes = []
    for column, stream in enumerate(map(int, unroll.start.environment)):
      first, end = self.first[stream], self.end[stream]
      self._append(
          stream, self.steps.count[stream] - num_entries,
          tree.map_structure(lambda s, c=column: s[c],
                             unroll.start.agent_state))
      self._find_whole(stream)
      positions = lambda start, end, s=stream: (
          np.arange(start, end) * self.num_streams + s)
      changes.append((
          positions(max(end, self.first[stream]), self.end[stream]),
          positions(first, self.first[stream])))
    return selectors.Changes(*map(np.concatenate, zip(*changes)))

  def _append(self, stream: int, time: int, state: structs.State) -> None:
    index = stream, self._count[stream] % self._ring
    self._time[index] = time
    tree.map_structure(lambda a, b: a.__setitem__(index, b), self._state, state)
    self._count[stream] += 1

  def _find_whole(self, stream: int) -> None:
    """Sets the numbers of the starts of a stream that can be drawn."""
    count = int(self._count[stream])
    oldest = max(count - self._ring, 0)
    times = self._time[stream, np.arange(oldest, count) % self._ring]
    self.first[stream] = oldest + np.searchsorted(
        times, self.steps.first[stream])
    end = oldest + np.searchsorted(
        times, self.steps.count[stream] - self.length, 'right')
    self.end[stream] = max(end, self.first[stream])

  def read(self, positions: np.ndarray
           ) -> tuple[np.ndarray, np.ndarray, structs.State]:
    """Returns the streams and times `[N]` of starts, and their states."""
    number, stream = np.divmod(positions, self.num_streams)
    index = stream, number % self._ring
    return stream, self._time[index], tree.map_structure(
        lambda a: a[index], self._state)

  @property
  def form(self) -> str:
    """The length of sequences and the sizes of all arrays, in words."""
    sizes = ', '.join(
        str(list(s.shape[2:])) for s in tree.flatten(self._state))
    return (f'sequences of {self.length} entries (--burn_in_steps, '
            f'--sequence_length) from states {sizes}')

  def segment(self, start: np.ndarray,
              end: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the starts of the steps at the times `start` to `end`.

    The first of these starts can be at the step before, where the last unroll
    ended. `restore` takes the arrays.
    """
    begin, stop = self._count.copy(), self._count.copy()
    for stream, count in enumerate(map(int, self._count)):
      numbers = np.arange(max(count - self._ring, 0), count)
      times = self._time[stream, numbers % self._ring]
      begin[stream] -= np.count_nonzero(times >= start[stream] - 1)
      stop[stream] -= np.count_nonzero(times >= end[stream])
    streams = np.repeat(np.arange(self.num_streams), stop - begin)
    number = np.concatenate(list(map(np.arange, begin, stop)))
    _, time, state = self.read(number * self.num_streams + streams)
    return {'starts/stream': streams, 'starts/number': number,
            'starts/time': time, **{
                f'starts/state{i}': part
                for i, part in enumerate(tree.flatten(state))}}

  def restore(self, arrays: dict[str, np.ndarray]) -> None:
    """Adds the starts of all segments, whose steps are in the store of steps.

    Parts with other unroll lengths have made starts at other distances.
    """
    # Segments overlap, so a start can be there twice.
    stream, time = np.unique(
        [arrays['starts/stream'], arrays['starts/time']], axis=1)
    distances = np.diff(time)[np.diff(stream) == 0]
    self._allocate(
        self._state, int(np.min(distances, initial=self._unroll_length)))
    parts = [arrays[f'starts/state{i}']
             for i in range(len(tree.flatten(self._state)))]
    for row, stream in enumerate(arrays['starts/stream']):
      self._count[stream] = arrays['starts/number'][row]
      self._append(stream, arrays['starts/time'][row], tree.unflatten_as(
          self._state, [part[row] for part in parts]))
    for stream in range(self.num_streams):
      self._find_whole(stream)

  def moved(self, values: np.ndarray) -> np.ndarray:
    """Returns values by slot for those of starts with another unroll length.
    """
    length = len(values) // self.num_streams
    found = np.zeros([self.num_slots], values.dtype)
    for stream in range(self.num_streams):
      number = np.arange(self.first[stream], self.end[stream])
      found[self.slots(number * self.num_streams + stream)] = (
          values[stream * length + number % length])
    return found
