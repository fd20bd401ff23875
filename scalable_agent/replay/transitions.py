# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Replay of transitions: a store of steps, a selector and a view."""

import json
import threading
from typing import Any, NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.replay import saving
from scalable_agent.replay import selectors
from scalable_agent.replay import steps
from scalable_agent.replay import views


class Drawn(NamedTuple):
  """`K` batches of `B` transitions.

  Attributes:
    transitions: `structs.Transition` of `[K, B, ...]`.
    weights: float32 `[K, B]`, of their losses; 1 without priorities.
    positions: int64 `[K, B]`, for `update`.
  """
  transitions: structs.Transition
  weights: np.ndarray
  positions: np.ndarray


class TransitionReplay:
  """Draws transitions. All methods may be called from any thread."""

  def __init__(self, store: steps.StepStore, selector: selectors.Selector,
               view: views.View, seed: int):
    """Puts a replay together.

    Args:
      store: keeps the steps; used by nobody else.
      selector: chooses what is drawn; used by nobody else.
      view: makes transitions.
      seed: seed of the draws.
    """
    self.store = store
    self.selector = selector
    self._view = view
    self._rng = np.random.default_rng(seed)
    self._lock = threading.Lock()
    self._saver: saving.Saver | None = None

  @property
  def num_items(self) -> int:
    """How many transitions can be drawn, up to the few before gaps."""
    return int(np.sum(self.store.end - self.store.first))

  def add(self, unroll: structs.Unroll) -> None:
    """Adds copies of the steps of an unroll; see `StepStore.add`."""
    with self._lock:
      self.selector.changed(self.store, *self.store.add(unroll))

  def draw(self, num_batches: int, batch_size: int) -> Drawn:
    """Draws `num_batches` of `batch_size`, with replacement."""
    with self._lock:
      positions, weights = self.selector.select(
          self.store, self._rng, num_batches, batch_size)
      flat = self._view(self.store, positions.ravel(), self._rng)
    shaped = lambda a: a.reshape(num_batches, batch_size, *a.shape[1:])
    return Drawn(
        structs.Transition(*[steps.map_nests(shaped, nest) for nest in flat]),
        weights, positions)

  def update(self, positions: np.ndarray, errors: np.ndarray) -> None:
    """Notes the errors of drawn transitions; the overwritten ones are skipped.

    Args:
      positions: of `draw`, any shape.
      errors: of the same shape. Only their sizes count.
    """
    with self._lock:
      self.selector.update(self.store, positions, errors)

  def save(self, directory: str, counters: dict[str, Any]) -> None:
    """Saves what is new, and the state of the draws.

    Args:
      directory: the same one each time. What was saved before is gone then.
      counters: numbers and strings by name, such as `Rate.state`.
    """
    with self._lock:
      self._saver = self._saver or saving.Saver(directory)
      self._saver.save(self.store, {
          **self.selector.state, 'counters': json.dumps(counters),
          'rng': json.dumps(self._rng.bit_generator.state)})

  def load(self, directory: str) -> dict[str, Any] | None:
    """Goes on from the last save; the next unrolls do not join up with it.

    Args:
      directory: where it was saved.

    Returns:
      The counters; None if nothing was saved. Then nothing has changed.

    Raises:
      errors.CheckpointError: the replay that was saved has another form.
    """
    with self._lock:
      self._saver = saving.Saver(directory)
      state = self._saver.load(self.store)
      if state is None:
        return None
      self._rng.bit_generator.state = json.loads(str(state.pop('rng')))
      counters = json.loads(str(state.pop('counters')))
      missing = self.selector.state.keys() - state.keys()
      if missing:
        raise errors.CheckpointError(
            f'The replay in {directory} has no {" and no ".join(missing)}: use '
            f'the settings of before, or delete {directory}. The run then '
            'fills its replay anew.')
      self.selector.state = {name: state[name] for name in self.selector.state}
      return counters
