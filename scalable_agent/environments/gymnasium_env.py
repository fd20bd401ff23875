# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Any gymnasium environment with discrete actions, one per worker process."""

import functools
import importlib
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import gymnasium
import numpy as np

from scalable_agent import config as config_lib
from scalable_agent import errors
from scalable_agent import structs
from scalable_agent.environments import base
from scalable_agent.environments import minigrid
from scalable_agent.environments import toys
from scalable_agent.environments import vizdoom
from scalable_agent.environments import workers


class GymnasiumVector:
  """`E` gymnasium environments; implements `base.VectorEnvironment`.

  Supported are `Discrete` actions, and observations that are a `Box`, or a
  `Dict` of a `Box` named `frame` and, if wanted, a `Text` named `instruction`.
  Text becomes `bytes` (UTF-8) and float64 becomes float32.
  """

  def __init__(self, level_names: Sequence[str], seeds: Sequence[int],
               settings: config_lib.EnvironmentSettings):
    """Starts one process per environment.

    Args:
      level_names: `E` gymnasium ids or names of toys. `module:id` imports the
        module that registers the id first.
      seeds: `E` ints within `[0, 2**31)`.
      settings: `config_lib.EnvironmentSettings`.

    Raises:
      errors.UnknownLevelError: no such id is registered.
      errors.MissingDependencyError: a package the level needs is not installed.
      errors.EnvironmentSpecError: spaces are unsupported or differ by level.
      errors.EnvironmentProcessError: an environment could not be built.
    """
    self.num_action_repeats = settings.num_action_repeats
    factories = {
        name: _EnvFactory(name, *_env_spec(name, settings))
        for name in dict.fromkeys(level_names)}
    spec = _common_spec(list(factories.values()))
    self._is_dict = spec.is_dict
    self.observation_spec = (
        _decoded_spec(spec.arrays) if spec.is_dict else spec.arrays['frame'])
    self.num_actions = int(spec.action_space.n)
    self._first_action = spec.action_space.start
    self._workers = workers.Workers(
        level_names, [factories[name] for name in level_names], spec.arrays,
        [int(seed) for seed in seeds], settings.step_timeout_s)

  def initial(self) -> Any:
    self._workers.reset()
    return self._decode(self._workers.exchange.observation)

  def step(self, actions: np.ndarray):
    exchange = self._workers.exchange
    np.add(actions, self._first_action, out=exchange.action)
    self._workers.step()
    done = exchange.terminated | exchange.truncated
    return (exchange.reward.copy(), done, done,
            self._decode(exchange.observation), self._truncation())

  def close(self):
    self._workers.close()

  def _truncation(self) -> Optional[base.Truncation]:
    exchange = self._workers.exchange
    mask = exchange.truncated & ~exchange.terminated
    if not mask.any():
      return None
    return base.Truncation(mask, self._decode(exchange.last_observation))

  def _decode(self, arrays):
    """Returns observations, their instructions as bytes `[E]`."""
    if not self._is_dict:
      return arrays['frame']
    if 'instruction' not in arrays:
      return dict(arrays)
    text = arrays['instruction']
    text = text.view(f'S{text.shape[1]}')[:, 0].astype(object)
    return {**arrays, 'instruction': text}


class _EnvFactory:
  """Builds one environment, in a worker or, to see its spaces, in the parent.

  Gymnasium's description of the environment travels to the worker, so that
  levels need only be registered in the parent.
  """

  def __init__(self, level_name: str,
               spec: gymnasium.envs.registration.EnvSpec,
               num_action_repeats: int):
    self.level_name = level_name
    self._spec = spec
    self._num_action_repeats = num_action_repeats

  def __call__(self) -> gymnasium.Env:
    env = gymnasium.make(self._spec)
    if self._num_action_repeats > 1:
      env = _ActionRepeat(env, self._num_action_repeats)
    return _Transport(env)


class _ActionRepeat(gymnasium.Wrapper):
  """Repeats each action and sums the rewards, up to the end of the episode."""

  def __init__(self, env: gymnasium.Env, num_action_repeats: int):
    super().__init__(env)
    self._num_action_repeats = num_action_repeats

  def step(self, action):
    total_reward = 0.0
    for _ in range(self._num_action_repeats):
      observation, reward, terminated, truncated, info = self.env.step(action)
      total_reward += float(reward)
      if terminated or truncated:
        break
    return observation, total_reward, terminated, truncated, info


class _Transport(gymnasium.ObservationWrapper):
  """Makes observations dictionaries of arrays, their text UTF-8 in uint8."""

  @functools.cached_property
  def _text_size(self) -> int:
    return _max_bytes(self.observation_space['instruction'])

  def observation(self, observation):
    if not isinstance(observation, dict):
      return {'frame': observation}
    if 'instruction' not in observation:
      return observation
    text = observation['instruction'].encode()
    if len(text) > self._text_size:
      raise ValueError(f'Instruction {text!r} is longer than its space permits '
                       f'({self._text_size} bytes).')
    return {**observation, 'instruction': np.frombuffer(
        text.ljust(self._text_size, b'\0'), np.uint8)}


def _env_spec(
    level_name: str, settings: config_lib.EnvironmentSettings
) -> Tuple[gymnasium.envs.registration.EnvSpec, int]:
  """Returns the environment of a level, and how often to repeat actions."""
  module, _, env_id = level_name.rpartition(':')
  try:
    if module:
      importlib.import_module(module)
    spec = gymnasium.spec(toys.LEVELS.get(env_id, env_id))
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'The module of level {level_name} cannot be imported: {e}.') from e
  except gymnasium.error.Error as e:
    raise base.unknown_level(
        level_name, [*gymnasium.registry, *toys.LEVELS]) from e
  if str(spec.entry_point).startswith('ale_py'):
    rom = spec.kwargs['game'].title().replace('_', '')
    raise errors.EnvironmentSpecError(
        f'Atari games are named by their newest id, here ALE/{rom}-v5, and all '
        f'use the same protocol: {level_name} would not mean what it says.')
  if minigrid.is_level(env_id):
    return minigrid.adapted(spec, settings), 1
  if vizdoom.is_level(env_id):  # Its engine repeats actions.
    return vizdoom.adapted(spec, settings), 1
  return spec, settings.num_action_repeats


class _Spec(NamedTuple):
  """What levels that go together have in common."""
  arrays: Dict[str, structs.ArraySpec]
  is_dict: bool
  action_space: gymnasium.spaces.Discrete


def _common_spec(factories) -> _Spec:
  """Returns the specs of the levels, which must be the same."""
  specs = []
  for factory in factories:
    spec = _level_spec(factory)
    specs.append(spec)
    levels = f'{factories[0].level_name} and {factory.level_name}'
    if (spec.arrays, spec.is_dict) != (specs[0].arrays, specs[0].is_dict):
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {levels}: they have different observations, '
          f'{_in_words(specs[0])} and {_in_words(spec)}.')
    if spec.action_space != specs[0].action_space:
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {levels}: they have different actions, '
          f'{specs[0].action_space} and {spec.action_space}.')
  return specs[0]


def _level_spec(factory) -> _Spec:
  try:
    env = factory()
  except (gymnasium.error.DependencyNotInstalled, ImportError) as e:
    raise errors.MissingDependencyError(
        f'{factory.level_name} needs a package that is not installed: {e}'
    ) from e
  try:
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
      raise errors.EnvironmentSpecError(
          f'{factory.level_name} has actions {env.action_space}, but only '
          'Discrete ones are supported.')
    return _Spec(_arrays_spec(env.observation_space, factory.level_name),
                 isinstance(env.observation_space, gymnasium.spaces.Dict),
                 env.action_space)
  finally:
    env.close()


def _in_words(spec):
  arrays = ', '.join(f'{name} {array.dtype} {list(array.shape)}'
                     for name, array in spec.arrays.items())
  return f'{"a Dict" if spec.is_dict else "a Box"} of {arrays}'


def _arrays_spec(space: gymnasium.Space, level_name: str):
  """The specs of the arrays of `_Transport`; raises for other spaces."""
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


def _decoded_spec(arrays_spec):
  """The specs of dictionaries after decoding: instructions are `bytes`."""
  text = structs.ArraySpec((), np.dtype(object))
  return {name: text if name == 'instruction' else spec
          for name, spec in arrays_spec.items()}
