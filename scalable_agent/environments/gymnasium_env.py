# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gymnasium environments, in worker processes.

`GymnasiumVector` plays the levels of all families except Atari and EnvPool,
from factories of environments. This module is also the family of all ids of
gymnasium that belong to no other family.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import functools
import threading

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import encoding
from scalable_agent.environments import registry
from scalable_agent.environments import spaces
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.processes import descriptors
from scalable_agent.processes import memory
from scalable_agent.processes import remote
from scalable_agent.processes import user_code
from scalable_agent.processes import workers
from scalable_agent.settings.environment_settings import EnvironmentSettings
from scalable_agent.settings.run_settings import RunSettings

# The packages of levels of gymnasium, by the module of the levels.
_PACKAGES = {
    'gymnasium.envs.mujoco': registry.Package('mujoco', 'mujoco', 'mujoco'),
    'gymnasium.envs.box2d': registry.Package('Box2D', 'Box2D', 'box2d')}

# Memory that a process does not share; environments need more.
_LEAST_PROCESS_BYTES = 5e6
# For the `close` of the environment that is only asked for its spaces.
_CLOSE_TIMEOUT_S = 10.

# Lines that this program has printed.
_said: set[str] = set()
_say_lock = threading.Lock()


def is_level(level_name: str) -> bool:
  """Whether the name is `module:id`, or an id that gymnasium knows."""
  return ':' in level_name or level_name in gymnasium.registry


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(gymnasium.registry)


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  spec = registry.look_up(level_name, settings)
  if str(spec.entry_point).startswith('ale_py'):
    rom = spec.kwargs['game'].title().replace('_', '')
    raise errors.EnvironmentSpecError(
        f'Name this Atari game ALE/{rom}-v5: the id {level_name} implies '
        'another protocol, but all Atari games are played with the same one.')
  for module, package in _PACKAGES.items():
    if str(spec.entry_point).startswith(module):
      package.check(level_name)
  return registry.factory(spec, settings)


class Start:
  """The start of vectors with the same settings.

  `spaces` has the spaces of all levels that were asked, by name. One
  environment of each level is asked.
  """

  def __init__(self) -> None:
    self.spaces: dict[str, units.LevelSpaces] = {}
    self._deferred: list[Callable[[], None]] | None = None

  @contextlib.contextmanager
  def together(self) -> Iterator[None]:
    """Lets vectors that are made within build their environments together.

    The end waits until the environments of all of these vectors are built.
    Raises EnvironmentProcessError if an environment could not be built.
    """
    waits: list[Callable[[], None]] = []
    self._deferred = waits
    try:
      yield
    finally:
      self._deferred = None
    for wait in waits:
      wait()

  def wait_for(self, wait: Callable[[], None]) -> None:
    """Calls `wait`: within `together` at its end, else now."""
    if self._deferred is None:
      wait()
    else:
      self._deferred.append(wait)


class GymnasiumVector:
  """`E` gymnasium environments; implements `base.VectorEnvironment`.

  Actions are `Discrete`, `MultiDiscrete` (one axis), `MultiBinary` or a `Box`
  with bounds. Agents count from 0 and act within [-1, 1]. Actions are converted
  to the environments' own space.

  Observations are a `Box`, a `Tuple` of several `Box` (then named `0`, `1`,
  ...), or a `Dict` of several `Box`, optionally a `Text` named `instruction`,
  and for discrete actions optionally a mask named `action_mask`. Text becomes
  `bytes` (UTF-8), float64 becomes float32 and a mask bool. A `Discrete`,
  `MultiDiscrete` or `MultiBinary` may take the place of a `Box` and becomes a
  one-hot or multi-hot vector, float32.
  """

  def __init__(self, level_names: Sequence[str],
               factories: Sequence[base.Factory], seeds: Sequence[int],
               settings: EnvironmentSettings, num_threads: int = 0,
               compiling: str = '', max_resets: int = 0,
               first_index: int = 0, start: Start | None = None):
    """Starts a process per `settings.environments_per_process` environments.

    The same level has the same factory. One step of an environment is
    `num_action_repeats` frames. `num_threads` is not used, because environments
    run in processes. If episodes may begin with work that takes long,
    `compiling` is the message for the start, and steps may take as long as
    starts. A process resets its environments with seeds `max_resets` times, and
    is then replaced by a new process; 0 for no limit. `first_index` is the
    number of the first environment in the run, for errors. Vectors with the
    same settings may share a `start`.

    Raises:
      errors.EnvironmentSpecError: spaces are unsupported or differ by level.
      errors.EnvironmentProcessError: an environment could not be built; within
        `Start.together`, the end of `together` raises this error.
    """
    del num_threads
    num_processes = -(-len(level_names) // settings.environments_per_process)
    memory.check(
        f'Starting {num_processes:,} processes (--num_actors, '
        '--environments_per_process)', num_processes * _LEAST_PROCESS_BYTES)
    descriptors.check(num_processes)
    start = start or Start()
    for name, factory in zip(level_names, factories, strict=True):
      if name not in start.spaces:
        start.spaces[name] = _ask_spaces(
            name, factory, settings.step_timeout_s)
    common = units.common({name: start.spaces[name] for name in level_names})
    units.check_repeats(level_names[0], common, settings)
    self._layout = common.observations
    self._action_space = common.actions
    self.spec = structs.EnvironmentSpec(
        observation=self._layout.spec, action=common.action_spec,
        num_action_repeats=settings.num_action_repeats, units=common.units)
    self._no_truncation = np.broadcast_to(False, len(level_names))
    self._make_workers = functools.partial(
        workers.Workers, level_names,
        [functools.partial(_in_transport, factory) for factory in factories],
        self._layout.arrays,
        structs.ArraySpec(common.actions.shape, common.actions.dtype),
        [int(seed) for seed in seeds], settings.step_timeout_s,
        settings.environments_per_process, bool(compiling),
        _progress_secs(settings) if compiling else 0, first_index,
        settings.metric_names)
    self._compiling = compiling
    self._max_resets = -(-max_resets // settings.environments_per_process)
    self._num_resets = 0  # Of `_workers`.
    self._closed = False
    self._workers = self._make_workers()
    start.wait_for(self._workers.wait_until_built)

  def initial(self) -> base.Observation:
    if self._compiling:
      _say_once(self._compiling)
    if self._num_resets == self._max_resets > 0:
      self._workers.close()
      self._workers, self._num_resets = self._make_workers(), 0
      if self._closed:  # In the meantime.
        self._workers.close()
    self._num_resets += 1
    self._workers.reset()
    return self._layout.decode(self._workers.exchange.observation)

  def step(self, actions: np.ndarray) -> base.VectorStep:
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
        last_observation=self._layout.decode(exchange.last_observation),
        metrics=exchange.metrics)

  def close(self) -> None:
    self._closed = True
    self._workers.close()


def _say_once(text: str) -> None:
  with _say_lock:  # Groups start at the same time.
    is_new = text not in _said
    _said.add(text)
  if is_new:
    print(text, flush=True)


def _progress_secs(settings: EnvironmentSettings) -> float:
  """Returns --progress_secs, or the default outside of runs."""
  return (settings if isinstance(settings, RunSettings)
          else RunSettings()).progress_secs


def _in_transport(factory: base.Factory) -> gymnasium.Env:
  return _Transport(factory())


class _Transport(gymnasium.Wrapper):
  """Encodes observations by `encoding.Encoder`."""

  def __init__(self, env: gymnasium.Env):
    super().__init__(env)
    self._encode = encoding.Encoder(env.observation_space, env.action_space)

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[dict[str, np.ndarray], dict]:
    """Returns the arrays of the first observation, and the info."""
    observation, info = self.env.reset(seed=seed, options=options)
    return self._encode(observation), info

  def step(self, action: np.ndarray
           ) -> tuple[dict[str, np.ndarray], float, bool, bool, dict]:
    """Returns the arrays of the next observation, and the other results."""
    observation, reward, terminated, truncated, info = self.env.step(action)
    return (self._encode(observation, terminated), reward, terminated,
            truncated, info)


def _ask_spaces(level_name: str, factory: base.Factory,
                timeout_s: float) -> units.LevelSpaces:
  """Builds one environment and returns its spaces."""
  with remote.Remote(
      level_name, functools.partial(_Level, level_name, factory),
      timeout_s) as level:
    found = level.call('spaces')
    level.call_last('close', _CLOSE_TIMEOUT_S)
  if isinstance(found, errors.UserError):
    raise found
  return found


class _Level:
  """A level, in its own process."""

  def __init__(self, level_name: str, factory: base.Factory):
    self._name, self._env = level_name, base.build(level_name, factory)

  def spaces(self) -> units.LevelSpaces | errors.UserError:
    """Returns the spaces, or an error as a value: the level stays open."""
    try:
      return units.of_level(
          self._name, self._env.observation_space, self._env.action_space)
    except errors.UserError as e:
      return e

  def close(self) -> None:
    with user_code.errors_of_close_ignored():
      self._env.close()
