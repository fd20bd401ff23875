# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gymnasium environments with discrete actions, one per worker process.

The vector here plays the levels of all families except Atari. A family gives it
factories of environments. This module is also a family itself: that of all
other ids that are registered with gymnasium.
"""

from collections.abc import Iterable, Sequence
import functools
from typing import NamedTuple

import gymnasium
import numpy as np
from scalable_agent import config
from scalable_agent import errors
from scalable_agent import structs
from scalable_agent.environments import base
from scalable_agent.environments import workers


def is_level(level_name: str) -> bool:
  """Whether gymnasium knows the id, or it is `module:id`."""
  return ':' in level_name or level_name in gymnasium.registry


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(gymnasium.registry)


def look_up(
    level_name: str, settings: config.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level.

  Args:
    level_name: a gymnasium id. `module:id` imports the module that registers
      the id first.
    settings: `config.EnvironmentSettings`.

  Raises:
    errors.UnknownLevelError: no such id is registered.
    errors.MissingDependencyError: the module cannot be imported.
    errors.EnvironmentSpecError: the level is an Atari game by another name.
  """
  spec = base.registered_spec(level_name)
  if str(spec.entry_point).startswith('ale_py'):
    rom = spec.kwargs['game'].title().replace('_', '')
    raise errors.EnvironmentSpecError(
        f'Atari games are named by their newest id, here ALE/{rom}-v5, and all '
        f'use the same protocol: {level_name} would not mean what it says.')
  return functools.partial(_make, spec, settings.num_action_repeats)


def _make(spec: gymnasium.envs.registration.EnvSpec,
          num_action_repeats: int) -> gymnasium.Env:
  # The worker gets the description, so only the parent must have registered
  # the level.
  return base.ActionRepeat(gymnasium.make(spec), num_action_repeats)


class GymnasiumVector:
  """`E` gymnasium environments; implements `base.VectorEnvironment`.

  Supported are `Discrete` actions, and observations that are a `Box`, or a
  `Dict` of a `Box` named `frame` and, if wanted, a `Text` named `instruction`.
  Text becomes `bytes` (UTF-8) and float64 becomes float32.
  """

  def __init__(self, level_names: Sequence[str],
               factories: Sequence[base.Factory], seeds: Sequence[int],
               settings: config.EnvironmentSettings, num_threads: int = 0):
    """Starts one process per environment.

    Args:
      level_names: `E` names, for errors.
      factories: `E` factories, the same object for the same level. One step
        of their environments is `num_action_repeats` frames.
      seeds: `E` ints within `[0, 2**31)`.
      settings: `config.EnvironmentSettings`.
      num_threads: not used, because every environment has a process.

    Raises:
      errors.MissingDependencyError: a package the level needs is not installed.
      errors.EnvironmentSpecError: spaces are unsupported or differ by level.
      errors.EnvironmentProcessError: an environment could not be built.
    """
    del num_threads
    levels = dict(zip(level_names, factories, strict=True))
    common = _common_spaces({name: _level_spaces(name, factory)
                             for name, factory in levels.items()})
    self._is_dict = common.is_dict
    self._first_action = common.actions.start
    self.spec = structs.EnvironmentSpec(
        observation=(_decoded_spec(common.arrays) if common.is_dict
                     else common.arrays['frame']),
        action=structs.ActionSpec(num_values=(int(common.actions.n),)),
        num_action_repeats=settings.num_action_repeats)
    self._no_truncation = base.no_truncation(len(level_names))
    self._workers = workers.Workers(
        level_names,
        [functools.partial(_in_transport, factory) for factory in factories],
        common.arrays, [int(seed) for seed in seeds], settings.step_timeout_s)

  def initial(self) -> base.Observation:
    self._workers.reset()
    return self._decode(self._workers.exchange.observation)

  def step(self, actions: np.ndarray) -> base.VectorStep:
    exchange = self._workers.exchange
    np.add(actions, self._first_action, out=exchange.action)
    self._workers.step()
    done = exchange.terminated | exchange.truncated
    result = base.VectorStep(
        exchange.reward.copy(), done, done, self._decode(exchange.observation),
        self._no_truncation)
    if not done.any():
      return result
    return result._replace(
        truncated=exchange.truncated & ~exchange.terminated,
        last_observation=self._decode(exchange.last_observation))

  def close(self) -> None:
    self._workers.close()

  def _decode(self, arrays: dict[str, np.ndarray]) -> base.Observation:
    """Returns observations with instructions as bytes `[E]`."""
    if not self._is_dict:
      return arrays['frame']
    if 'instruction' not in arrays:
      return dict(arrays)
    text = arrays['instruction']
    text = text.view(f'S{text.shape[1]}')[:, 0].astype(object)
    return {**arrays, 'instruction': text}


def _in_transport(factory: base.Factory) -> gymnasium.Env:
  return _Transport(factory())


class _Transport(gymnasium.ObservationWrapper):
  """Turns observations into dictionaries of arrays; text is UTF-8 in uint8."""

  def __init__(self, env: gymnasium.Env):
    super().__init__(env)
    space = env.observation_space
    if isinstance(space, gymnasium.spaces.Dict):
      text = space.spaces.get('instruction')
      if isinstance(text, gymnasium.spaces.Text):
        self._text_size = _max_bytes(text)

  def observation(
      self, observation: base.RawObservation
  ) -> dict[str, np.ndarray]:
    if not isinstance(observation, dict):
      return {'frame': observation}
    frame = observation['frame']
    if 'instruction' not in observation:
      return {'frame': frame}
    text = observation['instruction'].encode()
    if len(text) > self._text_size:
      raise ValueError(f'Instruction {text!r} is longer than its space permits '
                       f'({self._text_size} bytes).')
    return {'frame': frame, 'instruction': np.frombuffer(
        text.ljust(self._text_size, b'\0'), np.uint8)}


class _Spaces(NamedTuple):
  """What levels of one vector have in common.

  Attributes:
    arrays: specs of the arrays of `_Transport`, by name.
    is_dict: whether observations are a `Dict`.
    actions: the space of actions.
  """
  arrays: dict[str, structs.ArraySpec]
  is_dict: bool
  actions: gymnasium.spaces.Discrete


def _common_spaces(levels: dict[str, _Spaces]) -> _Spaces:
  """Returns the spaces of the levels; raises if they are not the same."""
  first_name, first = next(iter(levels.items()))
  for name, spaces in levels.items():
    both = f'{first_name} and {name}'
    if (spaces.arrays, spaces.is_dict) != (first.arrays, first.is_dict):
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {both}: they have different observations, '
          f'{_in_words(first)} and {_in_words(spaces)}.')
    if spaces.actions != first.actions:
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {both}: they have different actions, '
          f'{first.actions} and {spaces.actions}.')
  return first


def _level_spaces(level_name: str, factory: base.Factory) -> _Spaces:
  """Returns the spaces of a level; builds one environment for that."""
  try:
    env = factory()
  except (gymnasium.error.DependencyNotInstalled, ImportError) as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs a package that is not installed: {e}') from e
  try:
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
      raise errors.EnvironmentSpecError(
          f'{level_name} has actions {env.action_space}, but only Discrete '
          'ones are supported.')
    return _Spaces(_arrays_spec(env.observation_space, level_name),
                   isinstance(env.observation_space, gymnasium.spaces.Dict),
                   env.action_space)
  finally:
    env.close()


def _in_words(spaces: _Spaces) -> str:
  arrays = ', '.join(f'{name} {array.dtype} {list(array.shape)}'
                     for name, array in spaces.arrays.items())
  return f'{"a Dict" if spaces.is_dict else "a Box"} of {arrays}'


def _arrays_spec(
    space: gymnasium.Space, level_name: str) -> dict[str, structs.ArraySpec]:
  """Returns the specs of `_Transport`'s arrays; raises for other spaces."""
  parts = {'frame': space}
  if isinstance(space, gymnasium.spaces.Dict):
    parts = dict(space.spaces)
  frame = parts.pop('frame', None)
  instruction = parts.pop('instruction', None)
  if (parts or not isinstance(frame, gymnasium.spaces.Box)
      or not isinstance(instruction, gymnasium.spaces.Text | None)):
    raise errors.EnvironmentSpecError(
        f'{level_name} has observations {space}, but only a Box, or a Dict of '
        'a Box named frame and a Text named instruction, is supported: a '
        'gymnasium ObservationWrapper can bring them to that form.')
  is_float64 = frame.dtype == np.float64
  specs = {'frame': structs.ArraySpec(
      frame.shape, np.dtype(np.float32) if is_float64 else frame.dtype)}
  if instruction is not None:
    specs['instruction'] = structs.ArraySpec(
        (_max_bytes(instruction),), np.dtype(np.uint8))
  return specs


def _max_bytes(space: gymnasium.spaces.Text) -> int:
  return space.max_length * max(
      [1] + [len(c.encode()) for c in space.character_list])


def _decoded_spec(
    arrays: dict[str, structs.ArraySpec]) -> dict[str, structs.ArraySpec]:
  """Returns the specs after decoding: instructions are `bytes`."""
  text = structs.ArraySpec((), np.dtype(object))
  return {name: text if name == 'instruction' else spec
          for name, spec in arrays.items()}
