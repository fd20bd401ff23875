# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Files of a replay of steps; each save writes only new steps. NumPy only.

`replay-<number>.npz` is a segment: some of the steps that were added between
two saves (`replay-<from>-<to>.npz` in older saves). `state.npz` has the state
of the draws at the last save, and the names of its segments. A file is written
under a temporary name first, and deleted only when no state needs the file. So
the process may be killed between any two operations: a load then finds the last
save, or the save before.
"""

from collections.abc import Iterator
import contextlib
import errno
import glob
import json
import os
import re
from typing import Any

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.replay import selectors
from scalable_agent.replay import steps
from scalable_agent.replay.starts import Starts
from scalable_agent.settings import files

# Limits the memory of a save: 140 MB with frames of 84x84.
_SEGMENT_STEPS = 10_000
_STATE = 'state.npz'
# Name of a file that a killed run leaves behind.
TEMPORARY_NAME = r'(state|replay-.+)\.npz\.tmp'
_FILE = re.compile(r'(replay-(\d+)(-\d+)?|state)\.npz(\.tmp)?')


class DamagedError(errors.CheckpointError):
  """A saved replay is damaged: `damaged`, a file or the directory."""

  def __init__(self, damaged: str, directory: str):
    super().__init__(f'{damaged} is damaged: delete {directory}. The run then '
                     'starts with an empty replay.')
    self.damaged = damaged


@contextlib.contextmanager
def damage_of(path: str, directory: str) -> Iterator[None]:
  """Turns errors of reading `path` in `directory` into `DamagedError`."""
  try:
    yield
  except (errors.CheckpointError, MemoryError):
    raise
  except Exception as e:  # Damaged bytes raise errors of many kinds.
    raise DamagedError(path, directory) from e


class Saver:
  """Saves a store to a directory, repeatedly."""

  def __init__(self, directory: str):
    """Sets the directory; nothing is read or written."""
    self._directory = directory
    # The counts at the start and at the end of each segment.
    self._segments: dict[str, tuple[np.ndarray, np.ndarray]] = {}

  def save(self, store: steps.StepStore, state: selectors.State,
           starts: Starts | None = None) -> None:
    """Writes `state` and the new steps of a store, each time the same store.

    Deletes old segments.
    """
    os.makedirs(self._directory, exist_ok=True)
    _, saved = (list(self._segments.values())[-1] if self._segments
                else (None, np.zeros_like(store.count)))
    oldest = np.maximum(store.count - store.length, 0)
    # A stream without new steps has no steps in later segments.
    segments = {name: (start, end)
                for name, (start, end) in self._segments.items()
                if np.any((end > oldest) & (end > start))}
    if sum(np.sum(end - start) for start, end in segments.values()) > (
        2 * store.num_slots):
      # Slow streams need segments that are full of old steps of fast streams.
      segments, saved = {}, oldest
    try:
      segments |= self._write_new(store, np.maximum(saved, oldest), starts)
      ends = {name: end.tolist() for name, (_, end) in segments.items()}
      self._write(_STATE, {
          **state, 'segments': json.dumps(ends), 'form': _form(store, starts)})
    except OSError:
      # On a full disk, new segments would take the room of checkpoints.
      with contextlib.suppress(OSError):
        self._delete_old()
      raise
    self._segments = segments
    self._delete_old()

  def _write_new(self, store: steps.StepStore, start: np.ndarray,
                 starts: Starts | None) -> dict[
                     str, tuple[np.ndarray, np.ndarray]]:
    """Writes the steps from the times `start` on; returns the segments."""
    segments: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    size = max(_SEGMENT_STEPS // store.num_streams, 1)
    # Also after a damaged save, whose state still names its segments.
    number = 1 + max((int(match[2]) for match in map(
        _FILE.fullmatch, os.listdir(self._directory)) if match and match[2]),
                     default=-1)
    while np.any(store.count > start):
      end = np.minimum(store.count, start + size)
      name = f'replay-{number + len(segments)}.npz'
      self._write(name, {
          **_segment(store, start, end),
          **(starts.segment(start, end) if starts else {})})
      segments[name] = start, end
      start = end
    return segments

  def load(self, store: steps.StepStore, starts: Starts | None = None
           ) -> dict[str, np.ndarray] | None:
    """Fills an empty store from the last save; returns the state, if any.

    Raises:
      DamagedError: a file is damaged. The store may have a part of the steps.
      errors.CheckpointError: the store has another form.
    """
    state = self.read_state()
    if state is None:
      return None
    segments = json.loads(str(state.pop('segments')))
    form = str(state.pop('form'))
    if form != _form(store, starts):
      raise errors.CheckpointError(
          f'{self._directory} has a replay of {form}, and not of '
          f'{_form(store, starts)}. Use the --num_actors, --num_learners, '
          '--replay_steps and other settings of its training, or delete '
          f'{self._directory}: the run then starts with an empty replay.')
    self._segments = {}
    of_starts: dict[str, list[np.ndarray]] = {}
    for name in segments:
      arrays = self._read(name)
      _append(store, arrays)
      for key in arrays:
        if key.startswith('starts/'):
          of_starts.setdefault(key, []).append(arrays[key])
      self._segments[name] = arrays['start'], arrays['end']
      del arrays  # The next segment needs the memory.
    if starts and of_starts:
      starts.restore({
          key: np.concatenate(parts) for key, parts in of_starts.items()})
    with contextlib.suppress(OSError):  # The next save tries again.
      self._delete_old()
    return state

  def read_state(self) -> dict[str, np.ndarray] | None:
    """Returns the state of the last save, if any; DamagedError if damaged."""
    if not os.path.exists(os.path.join(self._directory, _STATE)):
      return None
    return self._read(_STATE)

  def _write(self, name: str, arrays: dict[str, Any]) -> None:
    with files.whole(os.path.join(self._directory, name)) as f:
      np.savez(f, **arrays)

  def _read(self, name: str) -> dict[str, np.ndarray]:
    path = os.path.join(self._directory, name)
    with damage_of(path, self._directory):
      try:
        with np.load(path) as arrays:
          return dict(arrays)
      except OSError as e:
        # Damaged bytes may have places outside the file.
        if e.errno in (None, errno.ENOENT, errno.EINVAL):
          raise
        # The file may be readable the next time.
        raise errors.CheckpointError(
            f'{path} cannot be read: {e.strerror}.') from e

  def _delete_old(self) -> None:
    for name in os.listdir(self._directory):
      if _FILE.fullmatch(name) and name not in (_STATE, *self._segments):
        os.remove(os.path.join(self._directory, name))


def remove(directory: str, reason: str) -> None:
  """Deletes the replay of an earlier part, if there is one; says so.

  Raises CheckpointError, with the reason, if the replay cannot be deleted.
  """
  try:
    if delete(directory):
      print(f'{directory} of an earlier part was removed: {reason}')
  except OSError as e:
    raise errors.CheckpointError(
        f'{directory} of an earlier part cannot be removed ({e.strerror}), '
        f'and {reason}') from e


def remove_others(logdir: str, num_learners: int) -> None:
  """Removes the saved replays of learners that this part does not have."""
  for path in glob.glob(os.path.join(glob.escape(logdir), 'replay-[0-9]*')):
    number = os.path.basename(path).removeprefix('replay-')
    if number.isdecimal() and int(number) >= num_learners:
      remove(path, 'this part has fewer learners.')


def delete(directory: str) -> bool:
  """Deletes a saved replay; returns whether there was one.

  Other files stay, and with other files the directory.

  Raises:
    OSError: the replay cannot be deleted, or the directory is a link.
  """
  if not os.path.isdir(directory):
    return False
  names = [name for name in os.listdir(directory) if _FILE.fullmatch(name)]
  if names and os.path.islink(directory):
    raise OSError(errno.ELOOP, 'the directory is a link')
  # Without its state, the rest of a replay is not loaded.
  for name in sorted(names, reverse=True):
    os.remove(os.path.join(directory, name))
  with contextlib.suppress(OSError):  # Not empty.
    os.rmdir(directory)
  return bool(names)


def _form(store: steps.StepStore, starts: Starts | None) -> str:
  """Returns shapes and types of the arrays of a store, in words."""
  arrays = {'steps': np.zeros([store.num_streams, store.length]),
            **_arrays(store.read(0, 0, 0))}
  form = ', '.join(f'{name} {list(a.shape)} {a.dtype}'
                   for name, a in arrays.items() if name != 'flags')
  return f'{form}, {starts.form}' if starts else form


def _arrays(columns: steps.Columns) -> dict[str, np.ndarray]:
  """Returns the arrays of `steps.Columns` by name; texts are plain bytes."""
  arrays: dict[str, np.ndarray] = {}
  for field, nest in columns._asdict().items():
    if isinstance(nest, dict):
      arrays.update({f'{field}/{key}': array for key, array in nest.items()})
    else:
      arrays[field] = nest
  return {name: array.astype('S') if array.dtype == object else array
          for name, array in arrays.items()}


def _names(store: steps.StepStore) -> dict[str, object]:
  """Returns the names of the parts of observations, which may be numbers."""
  observation = store.read(0, 0, 0).observation
  return ({str(name): name for name in observation}
          if isinstance(observation, dict) else {})


def _segment(store: steps.StepStore, start: np.ndarray,
             end: np.ndarray) -> dict[str, np.ndarray]:
  """Returns the steps of all streams at the times `start` to `end`, by name."""
  parts = [_arrays(store.read(stream, int(first), int(last)))
           for stream, (first, last) in enumerate(zip(start, end))]
  arrays = {name: np.concatenate([part[name] for part in parts])
            for name in parts[0]}
  return {**arrays, 'start': start, 'end': end}


def _append(store: steps.StepStore, arrays: dict[str, np.ndarray]) -> None:
  """Appends a segment to all streams."""
  begin, begin_last = 0, 0
  names = _names(store)
  for stream, (start, end) in enumerate(zip(arrays['start'], arrays['end'])):
    size = int(end - start)
    flags = arrays['flags'][begin:begin + size]
    num_last = int(np.count_nonzero(flags & steps.NEW_GAME))
    nests: dict[str, structs.Nest] = {}
    for name, array in arrays.items():
      field, is_part, key = name.partition('/')
      if field in ('start', 'end', 'starts'):
        continue
      part = (array[begin_last:begin_last + num_last]
              if field == 'last_observations' else array[begin:begin + size])
      if is_part:
        nests.setdefault(field, {})[names[key]] = part
      else:
        nests[field] = part
    if size:
      store.restore(stream, int(start), steps.Columns(**nests))
    begin, begin_last = begin + size, begin_last + num_last
