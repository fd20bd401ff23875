# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Conversion of gymnasium's spaces to the specs and arrays of this project.

Workers send observations as named arrays, see `Layout` and `encoding`. Workers
receive actions in the environments' own space, see `to_space`.
"""

from collections.abc import Mapping, Sequence
import contextlib
import math
from typing import NamedTuple

import gymnasium
from gymnasium import spaces
import numpy as np
import numpy.typing as npt
from scalable_agent import errors
from scalable_agent.experience import nests
from scalable_agent.experience import structs

# The name of the array if observations are not dictionaries.
ONLY_ARRAY = 'frame'
TEXT = 'instruction'
MASK = nests.MASK
# Spaces whose values `spaces.flatten` turns into one-hot or multi-hot vectors.
COUNTED = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
# Agents divide uint8 by 255, as for pictures. Numbers up to this one are counts
# or marks, and become float32.
MAX_COUNT = 16


def action_spec(
    space: gymnasium.Space, level_name: str) -> structs.ActionSpec:
  """Returns the spec of agents' actions in an environment's space of actions.

  Raises EnvironmentSpecError if agents cannot choose such actions.
  """
  if isinstance(space, spaces.Discrete):
    return structs.ActionSpec(num_values=(int(space.n),))
  if isinstance(space, spaces.Box | spaces.MultiDiscrete) and 0 in space.shape:
    raise errors.EnvironmentSpecError(
        f'{level_name} has actions {in_a_line(space)}, without numbers: there '
        'is nothing to choose.')
  if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
    return structs.ActionSpec(num_values=tuple(map(int, space.nvec)))
  if isinstance(space, spaces.MultiBinary):
    return structs.ActionSpec(num_values=(2,) * math.prod(space.shape))
  if not (isinstance(space, spaces.Box)
          and np.issubdtype(space.dtype, np.floating)):
    raise errors.EnvironmentSpecError(
        f'{level_name} has actions {in_a_line(space)}, but only '
        'Discrete, MultiDiscrete with one axis, MultiBinary, and Box of floats '
        'are supported: an ActionWrapper of gymnasium can bring them to that '
        'form.')
  # Bounds of the largest numbers are no bounds.
  limit = min(1e30, np.finfo(space.dtype).max)
  if (np.abs([space.low, space.high]) >= limit).any():
    raise errors.EnvironmentSpecError(
        f'{level_name} has actions {in_a_line(space)} without bounds, but '
        'agents act within [-1, 1], which is scaled to the bounds: a gymnasium '
        'TransformAction can give it an action_space with bounds.')
  return structs.ActionSpec(size=math.prod(space.shape))


def to_space(actions: np.ndarray, space: gymnasium.Space) -> np.ndarray:
  """Converts the actions of agents to the environments' own space.

  Valid actions `[E, *shape]` of `ActionSpec.array` become `[E, *space.shape]`
  of the dtype of `space`. -1 and 1 become exactly the bounds of the space.
  """
  actions = actions.reshape(len(actions), *space.shape)
  if isinstance(space, spaces.MultiBinary):
    return actions.astype(space.dtype)
  if not isinstance(space, spaces.Box):
    return (actions + space.start).astype(space.dtype)
  share = (actions.astype(np.float64) + 1) / 2
  scaled = (1 - share) * space.low + share * space.high
  # Rounding could lead out of narrow bounds.
  return np.clip(scaled, space.low, space.high).astype(space.dtype)


class Layout(NamedTuple):
  """The arrays by which workers send the observations of a level, by name."""
  arrays: dict[str, structs.ArraySpec]
  is_dict: bool

  @property
  def spec(self) -> structs.ObservationSpec:
    """The spec of observations for agents; an instruction is one `bytes`."""
    if not self.is_dict:
      return self.arrays[ONLY_ARRAY]
    text = structs.ArraySpec((), np.dtype(object))
    return {name: text if name == TEXT else spec
            for name, spec in self.arrays.items()}

  def decode(self, arrays: dict[str, np.ndarray]) -> structs.Nest:
    """Returns observations, of arrays `[E, ...]`, which are not copied."""
    if not self.is_dict:
      return arrays[ONLY_ARRAY]
    if TEXT not in arrays:
      return dict(arrays)
    text = arrays[TEXT]
    text = text.view(f'S{text.shape[1]}')[:, 0].astype(object)
    return {**arrays, TEXT: text}

  def __str__(self) -> str:
    arrays = ', '.join(f'{name} {array.dtype} {list(array.shape)}'
                       for name, array in self.arrays.items())
    return f'{"a Dict" if self.is_dict else "a Box"} of {arrays}'


def layout(space: gymnasium.Space, action: structs.ActionSpec,
           level_name: str) -> Layout:
  """Returns the layout of observations of an environment's space.

  Raises EnvironmentSpecError if such observations are not supported, or a mask
  does not fit the actions.
  """
  parts = parts_of(space)
  try:
    sorted(parts)
  except TypeError:
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations {in_a_line(space)}, whose names cannot '
        'be sorted: give all parts texts as names.') from None
  if MASK in parts:
    _check_mask_space(parts[MASK], action, level_name)
  arrays = {name: array for name, part in parts.items()
            if (array := mask_spec(part) if name == MASK else
                _array_spec(part, name == TEXT))}
  if empty := [name for name, array in arrays.items() if 0 in array.shape]:
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations {in_a_line(space)}, in which '
        f'{", ".join(empty)} has no numbers: leave this part out.')
  if texts := [name for name, part in parts.items()
               if isinstance(part, spaces.Text) and name != TEXT
               and isinstance(space, spaces.Dict)]:
    how = ('join all Text parts into one named' if TEXT in parts or texts[1:]
           else 'rename the Text part to')
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations {in_a_line(space)}, with a Text named '
        f'{" and one named ".join(texts)}. Only one Text is supported, named '
        f'{TEXT}: {how} {TEXT} with gymnasium.wrappers.TransformObservation.')
  if arrays.keys() != parts.keys() or arrays.keys() <= {TEXT, MASK}:
    can_flatten = False
    with contextlib.suppress(AttributeError, NotImplementedError):
      can_flatten = space.is_np_flattenable  # Not of all classes of spaces.
    wrapper = ('gymnasium.wrappers.FlattenObservation or another '
               'ObservationWrapper' if can_flatten and not _has_picture(space)
               else 'an ObservationWrapper of gymnasium that returns a Box')
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations {in_a_line(space)}, but only a Box, '
        'a Discrete, a MultiDiscrete or a MultiBinary, a Tuple of these, or a '
        'Dict of these, a Text named instruction and a mask named action_mask, '
        f'is supported: {wrapper} can bring them to that form.')
  return Layout(arrays, isinstance(space, (spaces.Dict, spaces.Tuple)))


def has_choice(mask: np.ndarray, action: structs.ActionSpec) -> np.ndarray:
  """Returns whether each part of an action has valid values, bool `[...]`.

  Args:
    mask: bool `[..., P]`, True for valid values, see `networks.masks`.
    action: the spec of the actions.
  """
  starts = np.cumsum((0, *action.num_values[:-1]))
  return np.all(np.logical_or.reduceat(mask, starts, axis=-1), axis=-1)


def random_action(rng: np.random.Generator, space: gymnasium.Space,
                  arrays: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns a random valid action of an environment's own space.

  `arrays` are the arrays of `Layout`, perhaps with a mask.
  """
  action = action_spec(space, '')
  if action.size:
    parts = rng.uniform(-1, 1, action.size).astype(np.float32)
  else:
    mask = arrays.get(MASK, np.ones(sum(action.num_values), bool))
    parts = np.array([rng.choice(np.flatnonzero(valid)) for valid in np.split(
        mask, np.cumsum(action.num_values)[:-1])], np.int32)
  return to_space(parts[np.newaxis], space)[0]


def _mask_parts(space: gymnasium.Space) -> Sequence[gymnasium.Space]:
  return space.spaces if isinstance(space, spaces.Tuple) else [space]


def mask_spec(space: gymnasium.Space) -> structs.ArraySpec:
  """Returns the spec of a mask as an array, bool `[P]`."""
  size = sum(math.prod(part.shape or ()) for part in _mask_parts(space))
  return structs.ArraySpec((size,), np.dtype(bool))


def _check_mask_space(space: gymnasium.Space, action: structs.ActionSpec,
                      level_name: str) -> None:
  """Raises an error for an `action_mask` that is not one of these actions."""
  if action.size:
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations with an action_mask, but continuous '
        'actions, which cannot be masked: give this part another name.')
  if mask_spec(space).shape != (sum(action.num_values),) or not all(
      isinstance(part, spaces.MultiBinary) or isinstance(part, spaces.Box)
      and (part.low >= 0).all() and (part.high <= 1).all()
      for part in _mask_parts(space)):
    raise errors.EnvironmentSpecError(
        f'{level_name} has an action_mask {in_a_line(space)}, but must have a '
        f'MultiBinary or a Box of 0 and 1, of {sum(action.num_values)} '
        'numbers: one for each action, or for each value of each part of an '
        'action. If this part is no mask, give the part another name.')


def check_counted(value: npt.ArrayLike, space: gymnasium.Space,
                  who: str = 'An observation') -> None:
  """Raises ValueError for numbers that are not in a space, or not whole.

  Gymnasium would count negative numbers from the end. `who` is for errors.
  """
  low, num_values = getattr(space, 'start', 0), (
      2 if isinstance(space, spaces.MultiBinary)
      else getattr(space, 'nvec', None))
  if num_values is None:
    num_values = space.n
  value = np.asarray(value)
  outside = (value < low) | (value >= np.add(low, num_values, dtype=np.int64))
  if value.dtype.kind not in 'biu':
    outside |= value % 1 != 0  # Also NaN.
  if outside.any():
    raise ValueError(f'{who} has the number {value[outside].flat[0]}, which is '
                     f'not in its space, {in_a_line(space)}.')


def is_small(space: gymnasium.Space) -> bool:
  """Whether the numbers of a space of bytes are counts or marks."""
  return (isinstance(space, spaces.Box) and space.dtype == np.uint8
          and bool((space.high <= MAX_COUNT).all()))


def in_a_line(space: gymnasium.Space) -> str:
  """Returns a space as text without line breaks."""
  return ' '.join(str(space).split())


def has_mask(space: gymnasium.Space) -> bool:
  """Returns whether observations have a mask of actions."""
  return MASK in parts_of(space)


def parts_of(space: gymnasium.Space) -> Mapping[str, gymnasium.Space]:
  """Returns the parts of a space of observations by name."""
  if isinstance(space, spaces.Tuple):
    return {str(i): part for i, part in enumerate(space.spaces)}
  return (space.spaces if isinstance(space, spaces.Dict)
          else {ONLY_ARRAY: space})


def _has_picture(space: gymnasium.Space) -> bool:
  """Returns whether a space has a picture, perhaps deep inside."""
  if isinstance(space, spaces.Dict | spaces.Tuple):
    return any(map(_has_picture, parts_of(space).values()))
  return isinstance(space, spaces.Box) and len(space.shape) == 3


def _array_spec(
    space: gymnasium.Space, is_text: bool) -> structs.ArraySpec | None:
  """Returns the spec of a part of an observation; None if unsupported."""
  if isinstance(space, spaces.Text) and is_text:
    return structs.ArraySpec((max_bytes(space),), np.dtype(np.uint8))
  if isinstance(space, spaces.Box) and not is_text:
    if is_small(space):
      return structs.DiscreteSpec(space.shape, np.dtype(np.float32))
    return structs.ArraySpec(space.shape, np.dtype(
        np.float32) if space.dtype == np.float64 else space.dtype)
  if isinstance(space, COUNTED) and not is_text:
    return structs.DiscreteSpec((spaces.flatdim(space),), np.dtype(np.float32))
  return None


def max_bytes(space: spaces.Text) -> int:
  """Returns the bytes of the longest text, as UTF-8."""
  return space.max_length * max(
      [1] + [len(c.encode()) for c in space.character_list])
