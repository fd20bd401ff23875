# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""From observations of environments to the arrays of `spaces.Layout`."""

from collections.abc import Mapping, Sized
import math
from typing import Any

import gymnasium
from gymnasium.vector import utils as vector_utils
import numpy as np
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.processes import shared_arrays


class Encoder:
  """Turns observations into dictionaries of arrays; text is UTF-8 in uint8."""

  def __init__(self, space: gymnasium.Space, action_space: gymnasium.Space):
    """Makes an encoder for spaces that `spaces.layout` takes."""
    self._space = space
    self._is_dict = isinstance(space, gymnasium.spaces.Dict)
    self._is_tuple = isinstance(space, gymnasium.spaces.Tuple)
    self._names = [*spaces.parts_of(space)]
    self._parts = dict(spaces.parts_of(space))
    self._called = {name: shared_arrays.called(name, self._names)
                    for name in self._names}
    if spaces.TEXT in self._parts:
      self._text_size = spaces.max_bytes(self._parts[spaces.TEXT])
    self._mask_space = self._parts.pop(spaces.MASK, None)
    self._small = {name for name, part in self._parts.items()
                   if spaces.is_small(part)}
    self._action = spaces.action_spec(action_space, '')

  def __call__(self, observation: structs.Nest,
               is_over: bool = False) -> dict[str, np.ndarray]:
    """Returns the arrays of `Layout`, in the dtypes of the space.

    Args:
      observation: an observation of the space.
      is_over: whether the episode is over, so that no action needs to be valid.
    """
    parts = self._parts_of(observation)
    arrays = {name: self._encode(parts[name], part, name)
              for name, part in self._parts.items()}
    if self._mask_space is not None:
      arrays[spaces.MASK] = _encode_mask(parts[spaces.MASK], self._mask_space)
      if not is_over and not spaces.has_choice(
          arrays[spaces.MASK], self._action):
        raise ValueError('no action is valid: the action_mask is '
                         f'{arrays[spaces.MASK].astype(int).tolist()}')
    return arrays

  def batch(self, observations: structs.Nest,
            is_over: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the arrays of observations `[E, ...]` of a vector.

    `is_over`, bool `[E]`, says which observations end an episode.
    """
    if self._mask_space is None and all(
        isinstance(part, gymnasium.spaces.Box)
        for part in self._parts.values()):
      return self(observations)  # Boxes are encoded number by number.
    space = vector_utils.batch_space(self._space, len(is_over))
    rows = [self(row, over) for row, over in zip(
        vector_utils.iterate(space, observations), is_over, strict=True)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

  def _parts_of(self, observation: Any) -> Mapping[str, Any]:
    """Returns the parts by name; ValueError if the form is another one."""
    if isinstance(observation, Mapping) != self._is_dict or (
        self._is_tuple and not isinstance(observation, Sized)):
      fault = f'is of type {type(observation).__name__}'
    elif self._is_tuple:
      if len(observation) == len(self._names):
        return dict(zip(self._names, observation))
      fault = f'has {len(observation)} parts'
    elif not self._is_dict:
      return {spaces.ONLY_ARRAY: observation}
    elif missing := [name for name in self._names if name not in observation]:
      fault = f'lacks the part {missing[0]}'
    else:
      return observation
    raise ValueError(f'An observation {fault}, but its space is '
                     f'{spaces.in_a_line(self._space)}.')

  def _encode(self, value: Any, space: gymnasium.Space,
              name: str) -> np.ndarray:
    """Returns the array of the part `name`."""
    who = self._called[name]
    if isinstance(space, gymnasium.spaces.Text):
      return self._encode_text(value, who)
    value = shared_arrays.numbers(value, who)
    if isinstance(space, spaces.COUNTED):
      if value.size != math.prod(space.shape or ()):
        raise ValueError(f'{who} has {value.size} numbers, but its space is '
                         f'{spaces.in_a_line(space)}.')
      spaces.check_counted(value, space, who)
      return gymnasium.spaces.flatten(space, value.astype(np.int64))
    # Also here, -1 is no uint8.
    return (shared_arrays.fit(value, space.dtype, who) if name in self._small
            else value)

  def _encode_text(self, value: Any, who: str) -> np.ndarray:
    if not isinstance(value, str):
      raise ValueError(
          f'{who} is of type {type(value).__name__}, but must be a str.')
    text, size = value.encode(), self._text_size
    if len(text) > size:
      raise ValueError(f'Instruction {text!r} is longer than its space permits '
                       f'({size} bytes).')
    return np.frombuffer(text.ljust(size, b'\0'), np.uint8)


def _encode_mask(value: Any, space: gymnasium.Space) -> np.ndarray:
  """Returns a mask as bool `[P]`; raises ValueError for other numbers."""
  masks = value if isinstance(space, gymnasium.spaces.Tuple) else [value]
  mask = np.concatenate([
      np.ravel(shared_arrays.numbers(part, 'an action_mask'))
      for part in masks])
  if mask.shape != spaces.mask_spec(space).shape:
    raise ValueError(f'an action_mask has {len(mask)} numbers, but its space '
                     f'is {spaces.in_a_line(space)}')
  outside = (mask != 0) & (mask != 1)
  if outside.any():
    raise ValueError(f'an action_mask has the number {mask[outside][0]}: 1 is '
                     'for valid actions, 0 for invalid ones')
  return mask.astype(bool)
