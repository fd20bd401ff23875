# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Files of a replay of steps, which only grow by what is new. NumPy only.

`replay-<from>-<to>.npz` is a segment: the steps that were added between two
saves, by the number of steps added before and after. `replay-<number>.npz` is
the rest as of a save: which segments it needs, and the state of the draws. A
file is written under another name first, so a process may be killed between any
two operations. The files of the last two saves are kept: if it is killed before
the checkpoint that belongs to the last one is written, the one before is there.
"""

import json
import os
import re
from typing import Any
import zipfile

import numpy as np
from scalable_agent import errors
from scalable_agent import structs
from scalable_agent.replay import steps

_STATE = re.compile(r'replay-(\d+)\.npz')
_FILE = re.compile(r'replay-\d+(-\d+)?\.npz(\.tmp)?')


class Saver:
  """Saves one store to one directory, again and again."""

  def __init__(self, directory: str):
    """Names the directory; nothing is read or written."""
    self._directory = directory
    # For each save that is kept: the counts at the end of each segment.
    self._saves: dict[int, dict[str, list[int]]] = {}
    self._saved = np.zeros([0], np.int64)

  def save(self, store: steps.StepStore, state: dict[str, Any]) -> int:
    """Writes the new steps of `store`, and `state`; deletes what is too old.

    Args:
      store: the same one each time.
      state: arrays and numbers by name.

    Returns:
      The number of this save, for `load`.
    """
    os.makedirs(self._directory, exist_ok=True)
    if not len(self._saved):
      self._saved = np.zeros_like(store.count)
    number, saved = int(store.count.sum()), int(self._saved.sum())
    oldest = np.maximum(store.count - store.length, 0)
    segments = self._saves[max(self._saves)] if self._saves else {}
    segments = {name: end for name, end in segments.items()
                if np.any(np.array(end) > oldest)}
    if number > saved:
      name = f'replay-{saved}-{number}.npz'
      start = np.maximum(self._saved, oldest)
      self._write(name, _segment(store, start))
      segments[name] = store.count.tolist()
    self._write(f'replay-{number}.npz', {
        **state, 'segments': json.dumps(segments), 'form': _form(store)})
    self._saved = store.count.copy()
    self._saves[number] = segments
    self._saves = {n: self._saves[n] for n in sorted(self._saves)[-2:]}
    self._delete_others()
    return number

  def load(self, store: steps.StepStore,
           number: int | None = None) -> dict[str, Any] | None:
    """Fills a new store with what was saved; deletes all other saves.

    Args:
      store: an empty store.
      number: of the save; None takes the latest one.

    Returns:
      The state; None if there is no such save.

    Raises:
      errors.CheckpointError: the store has another form.
    """
    numbers = self._numbers()
    if number is None and numbers:
      number = max(numbers)
    if number is None or number not in numbers:
      return None
    state = self._read(f'replay-{number}.npz')
    segments = json.loads(str(state.pop('segments')))
    form = str(state.pop('form'))
    if form != _form(store):
      raise errors.CheckpointError(
          f'{self._directory} has a replay of {form}, and not of '
          f'{_form(store)}: use the settings of before, or another '
          '--logdir.')
    for name in segments:
      _append(store, self._read(name))
    self._saves = {number: segments}
    self._saved = store.count.copy()
    self._delete_others()
    return state

  def _numbers(self):
    names = os.listdir(self._directory) if os.path.isdir(
        self._directory) else []
    return [int(m[1]) for m in map(_STATE.fullmatch, names) if m]

  def _write(self, name, arrays):
    path = os.path.join(self._directory, name)
    with open(f'{path}.tmp', 'wb') as f:
      np.savez(f, **arrays)
    os.replace(f'{path}.tmp', path)

  def _read(self, name):
    path = os.path.join(self._directory, name)
    try:
      with np.load(path) as arrays:
        return dict(arrays)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as e:
      raise errors.CheckpointError(
          f'{path} is damaged: delete {self._directory}. The run then fills '
          'its replay anew.') from e

  def _delete_others(self):
    needed = {f'replay-{number}.npz' for number in self._saves}
    needed.update(*self._saves.values())
    # States first: without its segments, none can be loaded.
    for name in sorted(os.listdir(self._directory),
                       key=lambda name: name.count('-')):
      if _FILE.fullmatch(name) and name not in needed:
        os.remove(os.path.join(self._directory, name))


def _form(store):
  arrays = {'steps': np.zeros([store.num_streams, store.length]),
            **_arrays(store.read(0, 0, 0))}
  return ', '.join(f'{name} {list(a.shape)} {a.dtype}'
                   for name, a in arrays.items() if name != 'flags')


def _arrays(columns):
  """Returns the arrays of `steps.Columns` by name."""
  arrays = {}
  for field, nest in columns._asdict().items():
    if isinstance(nest, dict):
      arrays.update({f'{field}/{key}': array for key, array in nest.items()})
    else:
      arrays[field] = nest
  return arrays


def _segment(store, start):
  """Returns the steps from the times `start` of all streams on, by name."""
  parts = [_arrays(store.read(stream, int(start[stream]), int(end)))
           for stream, end in enumerate(store.count)]
  arrays = {name: np.concatenate([part[name] for part in parts])
            for name in parts[0]}
  return {**arrays, 'start': start, 'end': store.count}


def _append(store, arrays):
  """Appends a segment to all streams."""
  begin, begin_last = 0, 0
  for stream, (start, end) in enumerate(zip(arrays['start'], arrays['end'])):
    size = int(end - start)
    flags = arrays['flags'][begin:begin + size]
    num_last = int(np.count_nonzero(flags & steps.NEW_GAME))
    nests: dict[str, structs.Nest] = {}
    for name, array in arrays.items():
      field, _, key = name.partition('/')
      if field in ('start', 'end'):
        continue
      part = (array[begin_last:begin_last + num_last]
              if field == 'last_observations' else array[begin:begin + size])
      if key:
        nests.setdefault(field, {})[key] = part
      else:
        nests[field] = part
    if size:
      store.restore(stream, int(start), steps.Columns(**nests))
    begin, begin_last = begin + size, begin_last + num_last
