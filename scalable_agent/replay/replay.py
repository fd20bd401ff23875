# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The replay buffer of all algorithms: a store, a selector and a view."""

from collections.abc import Mapping
import json
import threading
from typing import Generic, Protocol, TypeVar

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
from scalable_agent.replay import saving
from scalable_agent.replay import selectors
from scalable_agent.replay import starts
from scalable_agent.replay import steps
from scalable_agent.replay import views
import tree


class Store(selectors.Items, Protocol):
  """Keeps the latest steps (`StepStore`, `Starts`) or unrolls (`UnrollStore`).
  """

  def add(self, unroll: structs.Unroll) -> selectors.Changes:
    """Adds copies of the columns of an unroll."""


_Store = TypeVar('_Store', bound=Store)


class Replay(Generic[_Store]):
  """Draws samples from a store. All methods may be called from any thread."""

  def __init__(self, store: _Store, selector: selectors.Selector,
               view: views.View[_Store], seed: int):
    """Makes a replay, the only user of `store` and `selector`."""
    self.store = store
    self.selector = selector
    self._view = view
    self._rng = np.random.default_rng(seed)
    self._lock = threading.Lock()
    self._saver: saving.Saver | None = None

  @property
  def num_items(self) -> int:
    """The number of items; a few items before gaps cannot be drawn."""
    return int(np.sum(self.store.end - self.store.first))

  def add(self, unroll: structs.Unroll) -> None:
    """Adds copies of the columns of an unroll to the store."""
    with self._lock:
      self.selector.changed(self.store, *self.store.add(unroll))

  def draw(self, num_batches: int, batch_size: int) -> structs.Sample:
    """Draws `K` batches of `B` items, with replacement.

    With `K = 1`, arrays have no axis for `K`. Raises ValueError if the replay
    is empty.
    """
    with self._lock:
      if not self.num_items:
        raise ValueError('The replay is empty: nothing can be drawn.')
      positions, importance_weights = self.selector.select(
          self.store, self._rng, num_batches, batch_size)
      data = self._view(self.store, positions.ravel(), self._rng)
    if num_batches == 1:
      return structs.Sample(data, importance_weights[0], positions[0])
    return structs.Sample(
        _split(data, num_batches), importance_weights, positions)

  def update(self, positions: np.ndarray, errors: np.ndarray) -> None:
    """Sets the errors of drawn items; overwritten items are skipped.

    Positions, of any shape, are from `draw`. Only the sizes of errors count.
    """
    with self._lock:
      self.selector.update(self.store, positions, errors)

  def save(self, directory: str, counters: Mapping[str, int | str]) -> None:
    """Saves a replay of steps: the new steps and the state of the draws.

    The directory must be the same each time; an older save is deleted.
    `counters` are numbers and strings by name, such as `Rate.state`.
    """
    with self._lock:
      self._saver = self._saver or saving.Saver(directory)
      store, of_sequences = _parts(self.store)
      self._saver.save(store, {
          **self.selector.state, 'counters': json.dumps(counters),
          'rng': json.dumps(self._rng.bit_generator.state)}, of_sequences)

  def load(self, directory: str) -> dict[str, int | str] | None:
    """Restores the last save; no sample joins old steps and new unrolls.

    Returns the counters. Changes nothing and returns None without a save.

    Raises:
      saving.DamagedError: a file is damaged. Make a new replay.
      errors.CheckpointError: the saved replay has another form.
    """
    with self._lock, saving.damage_of(
        f'The replay in {directory}', directory):
      self._saver = saving.Saver(directory)
      store, of_sequences = _parts(self.store)
      state = self._saver.load(store, of_sequences)
      if state is None:
        return None
      self._rng.bit_generator.state = json.loads(str(state.pop('rng')))
      counters = json.loads(str(state.pop('counters')))
      missing = self.selector.state.keys() - state.keys()
      if missing:
        raise errors.CheckpointError(
            f'The replay in {directory} has no {" and no ".join(missing)}: use '
            f'the earlier settings, or delete {directory}. The run then starts '
            'with an empty replay.')
      if of_sequences and 'priorities' in state:
        state['priorities'] = of_sequences.moved(state['priorities'])
      self.selector.state = {name: state[name] for name in self.selector.state}
      return counters


def _split(data: structs.Unroll | structs.Transition | structs.Sequence,
           num_batches: int) -> structs.Transition | structs.Sequence:
  """Returns transitions or sequences with an axis of batches in front."""
  if isinstance(data, structs.Unroll):
    raise ValueError('Unrolls are drawn for one batch at a time.')
  shaped = lambda a: a.reshape(num_batches, -1, *a.shape[1:])
  if isinstance(data, structs.Transition):
    return structs.Transition(*[map_nests(shaped, nest) for nest in data])
  in_time = lambda a: np.ascontiguousarray(np.moveaxis(
      a.reshape(len(a), num_batches, -1, *a.shape[2:]), 1, 0))
  return tree.map_structure(in_time, data._replace(state=()))._replace(
      state=tree.map_structure(shaped, data.state))


def _parts(store: Store) -> tuple[steps.StepStore, starts.Starts | None]:
  """Returns the parts of a store that are saved."""
  if isinstance(store, starts.Starts):
    return store.steps, store
  if not isinstance(store, steps.StepStore):
    raise TypeError('Only a replay of steps can be saved.')
  return store, None


def saved_num_updates(directory: str) -> int | None:
  """Returns the updates before the last save; None without a readable save."""
  try:
    state = saving.Saver(directory).read_state()
  except errors.CheckpointError:
    return None
  return None if state is None else json.loads(
      str(state['counters']))['num_updates']
