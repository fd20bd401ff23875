# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gymnasium environments, one per worker process.

The vector here plays the levels of all families except Atari. A family gives it
factories of environments. This module is also a family itself: that of all
other ids that are registered with gymnasium.
"""

from collections.abc import Iterable, Sequence
import functools
import importlib
from typing import NamedTuple

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.processes import memory
from scalable_agent.processes import remote
from scalable_agent.processes import workers
from scalable_agent.settings import sections

# Levels of gymnasium that need an extra: their module, the package, the extra.
_EXTRAS = (('gymnasium.envs.mujoco', 'mujoco', 'mujoco'),
           ('gymnasium.envs.box2d', 'Box2D', 'box2d'))

# Of its own, beside what it shares with others; environments have more.
_LEAST_PROCESS_BYTES = 5e6


def is_level(level_name: str) -> bool:
  """Whether gymnasium knows the id, or it is `module:id`."""
  return ':' in level_name or level_name in gymnasium.registry


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(gymnasium.registry)


def look_up(
    level_name: str, settings: sections.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level.

  Args:
    level_name: a gymnasium id. `module:id` imports the module that registers
      the id first.
    settings: `sections.EnvironmentSettings`.

  Raises:
    errors.UnknownLevelError: no such id is registered.
    errors.MissingDependencyError: the module cannot be imported, or a package
      is not installed.
    errors.EnvironmentSpecError: the level is an Atari game by another name.
  """
  spec = base.registered_spec(level_name, settings.is_filmed)
  if str(spec.entry_point).startswith('ale_py'):
    rom = spec.kwargs['game'].title().replace('_', '')
    raise errors.EnvironmentSpecError(
        f'Atari games are named by their newest id, here ALE/{rom}-v5, and all '
        f'use the same protocol: {level_name} would not mean what it says.')
  for module, package, extra in _EXTRAS:
    if str(spec.entry_point).startswith(module):
      try:
        importlib.import_module(package)
      except ImportError as e:
        raise errors.MissingDependencyError(
            f'{level_name} needs {package}: '
            f'pip install -e ".[{extra}]" ({e}).') from e
  return base.registered(spec, settings.num_action_repeats)


class GymnasiumVector:
  """`E` gymnasium environments; implements `base.VectorEnvironment`.

  Actions are `Discrete`, `MultiDiscrete` (one axis) or a `Box` with bounds.
  Agents count from 0 and act within [-1, 1]; the environments receive what
  their space says.

  Observations are a `Box`, or a `Dict` of some and, if wanted, a `Text` named
  `instruction`. Text becomes `bytes` (UTF-8) and float64 becomes float32. In
  the place of a `Box`, there may be a `Discrete`, `MultiDiscrete` or
  `MultiBinary`. It becomes a vector with ones at its values, float32.
  """

  def __init__(self, level_names: Sequence[str],
               factories: Sequence[base.Factory], seeds: Sequence[int],
               settings: sections.EnvironmentSettings, num_threads: int = 0,
               compiling: str = ''):
    """Starts a process for every `settings.environments_per_process`.

    Args:
      level_names: `E` names, for errors.
      factories: `E` factories, the same object for the same level. One step
        of their environments is `num_action_repeats` frames.
      seeds: `E` ints within `[0, 2**31)`.
      settings: `sections.EnvironmentSettings`.
      num_threads: not used, because environments have processes.
      compiling: what to say when the environments start, if their episodes
        begin with something that takes long. Then steps may take as long as
        starts.

    Raises:
      errors.MissingDependencyError: a package the level needs is not installed.
      errors.EnvironmentSpecError: spaces are unsupported or differ by level.
      errors.EnvironmentProcessError: an environment could not be built.
    """
    del num_threads
    num_processes = -(-len(level_names) // settings.environments_per_process)
    memory.check(
        f'Starting {num_processes:,} processes (--num_actors, '
        '--environments_per_process)', num_processes * _LEAST_PROCESS_BYTES)
    levels = dict(zip(level_names, factories, strict=True))
    common = _common_spaces({
        name: _level_spaces(name, factory, settings.step_timeout_s)
        for name, factory in levels.items()})
    self._layout = common.observations
    self._action_space = common.actions
    self.spec = structs.EnvironmentSpec(
        observation=self._layout.spec, action=common.action_spec,
        num_action_repeats=settings.num_action_repeats)
    self._no_truncation = base.no_truncation(len(level_names))
    self._workers = workers.Workers(
        level_names,
        [functools.partial(_in_transport, factory) for factory in factories],
        self._layout.arrays,
        structs.ArraySpec(common.actions.shape, common.actions.dtype),
        [int(seed) for seed in seeds], settings.step_timeout_s,
        settings.environments_per_process, bool(compiling))
    self._compiling = compiling

  def initial(self) -> base.Observation:
    """See `base.VectorEnvironment.initial`."""
    if self._compiling:
      _say_once(self._compiling)
    self._workers.reset()
    return self._layout.decode(self._workers.exchange.observation)

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """See `base.VectorEnvironment.step`."""
    exchange = self._workers.exchange
    exchange.action[:] = spaces.to_space(actions, self._action_space)
    self._workers.step()
    done = exchange.terminated | exchange.truncated
    result = base.VectorStep(
        exchange.reward.copy(), done, done,
        self._layout.decode(exchange.observation), self._no_truncation)
    if not done.any():
      return result
    return result._replace(
        truncated=exchange.truncated & ~exchange.terminated,
        last_observation=self._layout.decode(exchange.last_observation))

  def close(self) -> None:
    """Ends the processes; may be called again."""
    self._workers.close()


@functools.cache
def _say_once(text: str) -> None:
  print(text, flush=True)


def _in_transport(factory: base.Factory) -> gymnasium.Env:
  return spaces.Transport(factory())


class _Spaces(NamedTuple):
  """What levels of one vector have in common.

  Attributes:
    observations: how observations travel.
    actions: the space of actions.
    action_spec: the same for agents.
  """
  observations: spaces.Layout
  actions: gymnasium.Space
  action_spec: structs.ActionSpec


def _common_spaces(levels: dict[str, _Spaces]) -> _Spaces:
  """Returns the spaces of the levels; raises if they are not the same."""
  first_name, first = next(iter(levels.items()))
  for name, level in levels.items():
    both = f'{first_name} and {name}'
    if level.observations != first.observations:
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {both}: they have different observations, '
          f'{first.observations} and {level.observations}.')
    if level.actions != first.actions:
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {both}: they have different actions, '
          f'{first.actions} and {level.actions}.')
  return first


def _level_spaces(level_name: str, factory: base.Factory,
                  timeout_s: float) -> _Spaces:
  """Returns the spaces of a level; builds one environment for that."""
  with remote.Remote(
      level_name, functools.partial(_Level, level_name, factory),
      timeout_s) as level:
    return level.call('spaces')


class _Level:
  """A level, in a process of its own."""

  def __init__(self, level_name: str, factory: base.Factory):
    self._name, self._env = level_name, base.build(level_name, factory)

  def spaces(self) -> _Spaces:
    try:
      return _Spaces(spaces.layout(self._env.observation_space, self._name),
                     self._env.action_space,
                     spaces.action_spec(self._env.action_space, self._name))
    finally:
      self._env.close()
