# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Texts in observations, such as instructions, as numbers. NumPy only."""

from collections.abc import Callable

import numpy as np
from scalable_agent.experience import structs

# A shorter table is not searched for texts that nobody needs.
_LEAST_FORGET = 10_000


class Texts:
  """A table of the texts that were seen; few texts are seen often.

  Attributes:
    spec: the spec of observations, with int32 for texts.
  """

  def __init__(self, spec: structs.ObservationSpec):
    """Makes a table; texts are the parts of `spec` of dtype `object`."""
    self.spec = spec
    self._names: list[str] = []
    if isinstance(spec, dict):
      self._names = [n for n, part in spec.items() if part.dtype == object]
      self.spec = {**spec, **{n: structs.ArraySpec((), np.dtype(np.int32))
                              for n in self._names}}
    self._numbers = {b'': 0}
    self._table = [b'']
    self._next_forget = _LEAST_FORGET

  def encode(self, observation: structs.Nest) -> structs.Nest:
    """Replaces texts, bytes `[...]`, by numbers, int32 `[...]`."""
    return self._replaced(observation, self._encode)

  def decode(self, observation: structs.Nest) -> structs.Nest:
    """Replaces numbers by texts, object `[...]`."""
    return self._replaced(observation, self._decode)

  def forget(self, *observations: structs.Nest) -> None:
    """Forgets texts that are not in observations, if the table is long.

    `observations` have all numbers that `decode` will get. Their arrays are
    changed in place, because texts get new numbers.
    """
    if len(self._table) < self._next_forget:
      return
    arrays = [observation[name] for observation in observations
              for name in self._names]
    used = np.unique(np.concatenate([[0], *map(np.ravel, arrays)]))
    new_numbers = np.zeros(len(self._table), np.int32)
    new_numbers[used] = np.arange(len(used))
    for array in arrays:
      array[...] = new_numbers[array]
    self._table = [self._table[number] for number in used]
    self._numbers = {text: i for i, text in enumerate(self._table)}
    self._next_forget = max(2 * len(used), _LEAST_FORGET)

  def _encode(self, texts: np.ndarray) -> np.ndarray:
    numbers = np.array(
        [self._number(bytes(text)) for text in texts.ravel()], np.int32)
    return numbers.reshape(texts.shape)

  def _number(self, text: bytes) -> int:
    number = self._numbers.setdefault(text, len(self._table))
    if number == len(self._table):
      self._table.append(text)
    return number

  def _decode(self, numbers: np.ndarray) -> np.ndarray:
    texts = np.array([self._table[i] for i in numbers.ravel()], object)
    return texts.reshape(numbers.shape)

  def _replaced(self, observation: structs.Nest,
                replace: Callable[[np.ndarray], np.ndarray]) -> structs.Nest:
    if not self._names or not isinstance(observation, dict):
      return observation  # No texts, or no rows.
    return {**observation,
            **{n: replace(observation[n]) for n in self._names}}
