# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""EnvPool's environments, stepped by the C++ threads of EnvPool.

Level names are `envpool:HalfCheetah-v5` and the like, with EnvPool's ids.
https://github.com/sail-sg/envpool

EnvPool resets an environment in the step after the end of an episode, and
ignores the action of this step. `EnvPoolVector` resets the environment at once:
no step is lost, and the last observation of the episode is kept.
"""

from collections.abc import Sequence
import functools
import importlib
import sys

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments import encoding
from scalable_agent.environments import registry
from scalable_agent.environments import spaces
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
from scalable_agent.processes import shared_arrays
from scalable_agent.processes import starts
from scalable_agent.settings.environment_settings import EnvironmentSettings

_PREFIX = 'envpool:'
_PACKAGE = registry.Package('EnvPool', 'envpool', 'envpool')
_MIN_PYTHON = (3, 11)
# Arguments of EnvPool that the program sets. A pool with other players never
# ends a step.
_RESERVED = ('num_envs', 'batch_size', 'num_threads', 'seed', 'env_seed',
             'render_mode', 'max_num_players', 'gym_reset_return_info')
# Arguments of which EnvPool takes numbers that have no meaning.
_POSITIVE = ('max_episode_steps', 'frame_skip')


def is_level(level_name: str) -> bool:
  """Whether the name begins with `envpool:`."""
  return level_name.startswith(_PREFIX)


def known_levels() -> list[str]:
  """Returns nothing: errors suggest EnvPool's ids only after `envpool:`."""
  return []


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of single environments, see `environments.Levels`."""
  if sys.version_info < _MIN_PYTHON:
    raise errors.MissingDependencyError(
        f'{level_name} needs EnvPool, and EnvPool needs Python 3.11 or newer.')
  _PACKAGE.check(level_name)
  known = importlib.import_module(_PACKAGE.module).list_all_envs()
  if level_name.removeprefix(_PREFIX) not in known:
    raise base.unknown_level(level_name, known)
  units.of_level(level_name, *_spaces(level_name, settings))  # Raises errors.
  return functools.partial(_make_single, level_name, settings)


class EnvPoolVector:
  """`E` environments of EnvPool; implements `base.VectorEnvironment`.

  Each level has its own pool. All pools are stepped at the same time.
  """

  def __init__(self, level_names: Sequence[str],
               factories: Sequence[base.Factory], seeds: Sequence[int],
               settings: EnvironmentSettings, num_threads: int = 0,
               first_index: int = 0, start: object = None):
    """Prepares the environments, which `initial` builds.

    `factories`, `first_index` and `start` are not used. `num_threads` C++
    threads step the environments of a level; 0 for one per core.

    Raises:
      errors.EnvironmentSpecError: spaces are unsupported or differ by level.
    """
    del factories, first_index, start
    self._settings = settings
    self._seeds = list(seeds)
    self._num_threads = num_threads or starts.num_cores()
    self._levels = {
        name: np.flatnonzero([n == name for n in level_names])
        for name in dict.fromkeys(level_names)}
    found = {name: _spaces(name, settings) for name in self._levels}
    common = units.common({name: units.of_level(name, *both)
                           for name, both in found.items()})
    units.check_repeats(level_names[0], common, settings)
    self._layout, self._action_space = common.observations, common.actions
    self._encode = encoding.Encoder(*found[level_names[0]])
    self.spec = structs.EnvironmentSpec(
        common.observations.spec, common.action_spec,
        settings.num_action_repeats, common.units)
    # For each level, the indices of the environments, and their pool.
    self._pools: list[tuple[np.ndarray, gymnasium.vector.VectorEnv]] = []
    num_envs = len(level_names)
    self._no_truncation = np.broadcast_to(False, num_envs)
    self._reward = np.zeros([num_envs])
    self._terminated = np.zeros([num_envs], bool)
    self._truncated = np.zeros([num_envs], bool)
    self._observation = {
        name: np.zeros([num_envs, *array.shape], array.dtype)
        for name, array in common.observations.arrays.items()}

  def initial(self) -> base.Observation:
    # A pool takes seeds only when the pool is made.
    self._pools = [
        (indices, _make_pool(
            name, self._settings, [self._seeds[i] for i in indices],
            self._num_threads))
        for name, indices in self._levels.items()]
    self._reset(np.ones([len(self._seeds)], bool))
    return self._layout.decode(self._observation)

  def step(self, actions: np.ndarray) -> base.VectorStep:
    actions = spaces.to_space(actions, self._action_space)
    self._reward[:], self._terminated[:], self._truncated[:] = 0, False, False
    for _ in range(self._settings.num_action_repeats):
      self._step_running(actions)
    done = self._terminated | self._truncated
    result = base.VectorStep(
        self._reward.astype(np.float32), done, done,
        self._layout.decode(self._observation), self._no_truncation)
    if not done.any():
      return result
    last = {name: array.copy() for name, array in self._observation.items()}
    self._reset(done)
    return result._replace(
        truncated=self._truncated & ~self._terminated,
        observation=self._layout.decode(self._observation),
        last_observation=self._layout.decode(last))

  def close(self) -> None:
    self._pools = []  # The threads of a pool end with the pool.

  def _step_running(self, actions: np.ndarray) -> None:
    """Steps the environments whose episodes have not ended in this step."""
    running = self._selected(~(self._terminated | self._truncated))
    for numbers, indices, pool in running:
      pool.send(actions[indices[numbers]], numbers)
    for _, indices, pool in running:
      observation, reward, terminated, truncated, info = pool.recv()
      rows = indices[info['env_id']]
      self._reward[rows] += reward
      self._terminated[rows] = terminated
      self._truncated[rows] = truncated
      self._write(rows, observation, terminated)

  def _reset(self, which: np.ndarray) -> None:
    """Begins new episodes in the environments where `which`, bool `[E]`."""
    for numbers, indices, pool in self._selected(which):
      observation, info = pool.reset(numbers)
      self._write(indices[info['env_id']], observation,
                  np.zeros(len(numbers), bool))

  def _selected(self, which: np.ndarray) -> list[
      tuple[np.ndarray, np.ndarray, gymnasium.vector.VectorEnv]]:
    """Returns pools with environments where `which`, and their numbers."""
    selected = [(np.flatnonzero(which[indices]).astype(np.int32), indices, pool)
                for indices, pool in self._pools]
    return [part for part in selected if part[0].size]

  def _write(self, rows: np.ndarray, observation: base.Observation,
             is_over: np.ndarray) -> None:
    """Writes observations `[N, ...]` of the environments `rows`."""
    for name, array in self._encode.batch(observation, is_over).items():
      target = self._observation[name]
      target[rows] = shared_arrays.fit(array, target.dtype)


class SingleEnvironment(gymnasium.Env):
  """One environment of EnvPool, for the check mode and for videos."""

  metadata = {'render_modes': ['rgb_array'], 'render_fps': 30}

  def __init__(self, level_name: str, settings: EnvironmentSettings):
    self._make = functools.partial(
        _make_pool, level_name, settings, num_threads=1)
    self.observation_space, self.action_space = _spaces(level_name, settings)
    self.render_mode = 'rgb_array' if settings.needs_pictures else None
    self._pool: gymnasium.vector.VectorEnv | None = None

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """Begins an episode; a seed makes a new pool."""
    super().reset(seed=seed)
    if seed is not None or self._pool is None:
      if seed is None:
        seed = int(self.np_random.integers(2**31))
      self._pool = self._make(seeds=[seed])
    observation, _ = self._pool.reset()
    return _first(observation), {}

  def step(self, action: np.ndarray | int) -> base.Step:
    assert self._pool is not None
    observation, reward, terminated, truncated, _ = self._pool.step(
        np.asarray(action)[np.newaxis])
    return (_first(observation), float(reward[0]), bool(terminated[0]),
            bool(truncated[0]), {})

  def render(self) -> np.ndarray:
    assert self._pool is not None
    return self._pool.render()[0]

  def close(self) -> None:
    self._pool = None


def _first(observation: base.Observation) -> base.Observation:
  return map_nests(lambda part: part[0], observation)


def _make_single(
    level_name: str, settings: EnvironmentSettings) -> gymnasium.Env:
  return base.ActionRepeat(
      SingleEnvironment(level_name, settings), settings.num_action_repeats)


def _make_pool(level_name: str, settings: EnvironmentSettings,
               seeds: Sequence[int],
               num_threads: int) -> gymnasium.vector.VectorEnv:
  pictures = {'render_mode': 'rgb_array'} if settings.needs_pictures else {}
  return importlib.import_module(_PACKAGE.module).make_gymnasium(
      level_name.removeprefix(_PREFIX), num_envs=len(seeds),
      seed=[int(seed) for seed in seeds],
      num_threads=min(num_threads, len(seeds)), **pictures, **settings.kwargs)


def _spaces(level_name: str, settings: EnvironmentSettings
            ) -> tuple[gymnasium.Space, gymnasium.Space]:
  """Returns the spaces of observations and actions; builds no environment.

  Raises:
    errors.MissingDependencyError: the level needs a library of the system.
    errors.EnvironmentSpecError: the arguments do not fit.
  """
  kwargs = settings.kwargs
  arguments.check_none(level_name, {
      name: kwargs[name] for name in _RESERVED if name in kwargs})
  try:
    observation_space, action_space = arguments.call(
        level_name, functools.partial(
            _pool_spaces, level_name.removeprefix(_PREFIX)), kwargs)
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs a package that is not installed: {e}') from e
  except (AssertionError, RuntimeError, TypeError, ValueError) as e:
    if isinstance(e, errors.UserError) or not kwargs:
      raise
    raise errors.EnvironmentSpecError(
        f'--environment_kwargs: {level_name} does not take '
        f'{settings.environment_kwargs}: '
        f'{str(e).partition(". ")[0]}') from e
  for name in _POSITIVE:
    number = kwargs.get(name, 1)
    if isinstance(number, int) and number < 1:
      raise errors.EnvironmentSpecError(
          f'--environment_kwargs: {name} of {level_name} must be at least 1, '
          f'not {number}.')
  return _without_bounds(observation_space), action_space


def _pool_spaces(task: str, **kwargs: object
                 ) -> tuple[gymnasium.Space, gymnasium.Space]:
  """Returns the spaces of observations and actions; raises any error."""
  spec = importlib.import_module(_PACKAGE.module).make_spec(task, **kwargs)
  if spec.config.max_num_players != 1:
    raise errors.EnvironmentSpecError(
        f'{_PREFIX}{task} has {spec.config.max_num_players} players, but only '
        'levels with one player are supported.')
  return spec.gymnasium_observation_space, spec.gymnasium_action_space


def _without_bounds(space: gymnasium.Space) -> gymnasium.Space:
  """Returns a space with boxes of floats without bounds.

  Bounds of EnvPool are often wrong, such as the smallest positive number.
  """
  if isinstance(space, gymnasium.spaces.Dict):
    return gymnasium.spaces.Dict({
        name: _without_bounds(part) for name, part in space.items()})
  if isinstance(space, gymnasium.spaces.Box) and space.dtype.kind == 'f':
    return gymnasium.spaces.Box(
        -np.inf, np.inf, space.shape, space.dtype.type)
  return space
