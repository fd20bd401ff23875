# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Spaces of levels; actions and observations in the units of environments.

Agents act within [-1, 1], count actions from 0, and see one-hot vectors in the
place of numbers of a `Discrete`. Environments have bounds, first numbers and
integers, which `structs.EnvironmentSpec.units` keeps for users of agents.
"""

from collections.abc import Mapping
import math
from typing import Any, NamedTuple

import gymnasium
from gymnasium import spaces as gym_spaces
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.settings.declare import is_atari
from scalable_agent.settings.environment_settings import EnvironmentSettings


class LevelSpaces(NamedTuple):
  """The spaces of a level: layout, the space of actions, and agents' spec."""
  observations: spaces.Layout
  actions: gymnasium.Space
  action_spec: structs.ActionSpec
  units: dict[str, object]


def of_level(level_name: str, observation_space: gymnasium.Space,
             action_space: gymnasium.Space) -> LevelSpaces:
  """Returns the spaces of a level; raises an error if not supported."""
  action = spaces.action_spec(action_space, level_name)
  return LevelSpaces(
      spaces.layout(observation_space, action, level_name), action_space,
      action, describe(observation_space, action_space))


def check_repeats(level_name: str, level: LevelSpaces,
                  settings: EnvironmentSettings) -> None:
  """Raises EnvironmentSpecError if masked actions would be repeated."""
  if settings.num_action_repeats != 1 and (
      spaces.MASK in level.observations.arrays):
    raise errors.EnvironmentSpecError(
        f'{level_name} has an action_mask, and a repeated action may be '
        'invalid: set num_action_repeats=1.')


def common(levels: dict[str, LevelSpaces]) -> LevelSpaces:
  """Returns the spaces of all levels; raises an error if levels differ."""
  first_name, first = next(iter(levels.items()))
  for name, level in levels.items():
    for what, one, other in (
        ('observations', first.observations, level.observations),
        ('actions', first.actions, level.actions),
        ('observations', Units(first.units).counted,
         Units(level.units).counted)):
      if one != other:
        raise errors.EnvironmentSpecError(
            f'One agent cannot play {first_name} and {name}: they have '
            f'different {what}, {one} and {other}.')
  return first


def check_same(one: base.FlowEnvironment, other: base.FlowEnvironment) -> None:
  """Raises EnvironmentSpecError if one agent cannot play both environments."""
  if one.spec == other.spec:
    return
  names = one.level_names[0], other.level_names[0]
  actions = [', '.join(map(str, env.spec.action.num_values))
             or f'{env.spec.action.size} continuous ones'
             for env in (one, other)]
  units = [Units(env.spec.units) for env in (one, other)]
  for what, of_one, of_other in (
      ('observations', one.spec.observation, other.spec.observation),
      ('numbers of actions', *actions),
      ('actions', *(unit.action_space for unit in units)),
      ('observations', *(unit.counted for unit in units))):
    if of_one != of_other:
      hint = (' Atari games agree with --full_action_space.'
              if all(map(is_atari, names)) else '')
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {names[0]} and {names[1]}: they have '
          f'different {what}, {of_one} and {of_other}.{hint}')


def describe(observation_space: gymnasium.Space,
             action_space: gymnasium.Space) -> dict[str, object]:
  """Returns `EnvironmentSpec.units`: spaces in the values of JSON."""
  return {'action': _to_json(action_space), 'observation': [
      [name, _to_json(part)]  # A name may be a number.
      for name, part in spaces.parts_of(observation_space).items()
      if isinstance(part, spaces.COUNTED) and name != spaces.MASK]}


class Units:
  """The units of an environment.

  Attributes:
    action_space: the space of actions; None if not known, as of older runs.
    counted: parts of observations that agents see as one-hot or multi-hot
      vectors, a space by name. The name is `frame` if there is one part only.
  """

  def __init__(self, description: Mapping[str, Any] | None):
    """Takes the result of `describe`; None if nothing is known."""
    self.action_space: gymnasium.Space | None = None
    self.counted: dict[str, gymnasium.Space] = {}
    if description:
      self.action_space = _from_json(description['action'])
      self.counted = {name: _from_json(part)
                      for name, part in description['observation']}

  def actions(self, actions: np.ndarray) -> np.ndarray:
    """Returns actions `[E, ...]` of agents in the units of the environment."""
    return (actions if self.action_space is None
            else spaces.to_space(actions, self.action_space))

  def observation(self, observation: structs.Nest,
                  num_envs: int) -> structs.Nest:
    """Returns observations of `num_envs` environments as agents see them.

    One-hot and multi-hot vectors stay as they are.
    """
    if isinstance(observation, tuple):
      observation = {str(i): part for i, part in enumerate(observation)}
    if isinstance(observation, Mapping):
      return {name: self._part(name, part, num_envs)
              for name, part in observation.items()}
    return self._part(spaces.ONLY_ARRAY, observation, num_envs)

  def _part(self, name: str, value: structs.Nest,
            num_envs: int) -> structs.Nest:
    """Returns a part of an observation, as agents see this part."""
    space = self.counted.get(name)
    if space is None:
      return _mask(value, num_envs) if name == spaces.MASK else value
    numbers = np.asarray(value)
    counts = (num_envs, *(space.shape or ()))
    vectors = (num_envs, gym_spaces.flatdim(space))
    if numbers.shape not in (counts, vectors):
      raise errors.EnvironmentSpecError(
          f'Observations of {spaces.in_a_line(space)} must be integers of '
          f'shape {list(counts)}, or vectors of zeros and ones of shape '
          f'{list(vectors)}, not {list(numbers.shape)}.')
    if numbers.shape != counts:
      return value
    whole = numbers.astype(np.int64)
    try:
      if (numbers != whole).any():
        raise ValueError('An observation must be a whole number.')
      spaces.check_counted(whole, space)
      return np.stack([gym_spaces.flatten(space, row) for row in whole])
    except ValueError as e:
      raise errors.EnvironmentSpecError(str(e)) from e


def _mask(value: structs.Nest, num_envs: int) -> np.ndarray:
  """Returns a mask as `[E, P]`; a tuple has a mask for each part."""
  is_tuple = isinstance(value, tuple) and any(np.ndim(part) > 1
                                              for part in value)
  parts = [np.asarray(part) for part in (value if is_tuple else [value])]
  for part in parts:
    if part.shape[:1] != (num_envs,):
      raise errors.EnvironmentSpecError(
          f'An action_mask has the shape {list(part.shape)}, but the first '
          f'axis must be that of the {num_envs} environments.')
  return np.concatenate([part.reshape(num_envs, math.prod(part.shape[1:]))
                         for part in parts], axis=-1)


def _to_json(space: gymnasium.Space) -> dict[str, object]:
  """Returns a space, perhaps of a class of the user, as values of JSON."""
  if isinstance(space, gym_spaces.Box):
    return {'type': 'Box', 'low': space.low.tolist(),
            'high': space.high.tolist(), 'dtype': space.dtype.name}
  if isinstance(space, gym_spaces.Discrete):
    facts = {'type': 'Discrete', 'n': int(space.n), 'start': int(space.start)}
    # Without a dtype, as in older files, the numbers are int64.
    return facts if space.dtype == np.int64 else {
        **facts, 'dtype': space.dtype.name}
  if isinstance(space, gym_spaces.MultiDiscrete):
    return {'type': 'MultiDiscrete', 'nvec': space.nvec.tolist(),
            'start': space.start.tolist(), 'dtype': np.dtype(space.dtype).name}
  assert isinstance(space, gym_spaces.MultiBinary), space
  return {'type': 'MultiBinary', 'n': np.asarray(space.n).tolist()}


def _from_json(facts: Mapping[str, Any]) -> gymnasium.Space:
  """Inverts `_to_json`; raises LookupError, TypeError or ValueError if not."""
  kind = facts['type']
  if kind == 'Box':
    dtype = np.dtype(facts['dtype'])
    return gym_spaces.Box(np.array(facts['low'], dtype),
                          np.array(facts['high'], dtype), dtype=dtype.type)
  if kind == 'Discrete':
    # gymnasium 1.1 takes no dtype.
    dtype = {'dtype': np.dtype(facts['dtype']).type} if 'dtype' in facts else {}
    return gym_spaces.Discrete(facts['n'], start=facts['start'], **dtype)
  if kind == 'MultiDiscrete':
    return gym_spaces.MultiDiscrete(
        facts['nvec'], dtype=np.dtype(facts['dtype']).type,
        start=facts['start'])
  return gym_spaces.MultiBinary(facts['n'])
