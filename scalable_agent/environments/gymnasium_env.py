# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Any gymnasium environment with discrete actions, one per worker process.

Observations come back through shared memory. Workers never import TensorFlow
or the main module, ignore Ctrl-C (the parent ends them) and die with the
parent. What goes wrong in one of them is raised in the parent.
"""

import contextlib
import importlib
import multiprocessing
from multiprocessing import connection
import os
import signal
import sys
import threading
import traceback
import types
from typing import Any, Sequence

import gymnasium
import numpy as np
import tree

from scalable_agent.environments import base
from scalable_agent.environments import toys

# Forks workers, in milliseconds, off a server process that has this module and
# nothing else of the parent: no TensorFlow, no threads, no main module.
_START_METHOD = 'forkserver'
# How long to wait for workers to close their environments.
_CLOSE_TIMEOUT_S = 10.0
_start_lock = threading.Lock()


class GymnasiumVector:
  """`E` gymnasium environments; implements `base.VectorEnvironment`.

  Supported are `Discrete` actions, and observations that are a `Box`, or a
  `Dict` of a `Box` named `frame` and, if wanted, a `Text` named `instruction`.
  Text becomes `bytes` (UTF-8) and float64 becomes float32.
  """

  def __init__(self, level_names: Sequence[str], seeds: Sequence[int],
               settings: base.EnvironmentSettings):
    """Starts one process per environment.

    Args:
      level_names: `E` gymnasium ids or names of toys. `module:id` imports the
        module that registers the id first.
      seeds: `E` ints within `[0, 2**31)`.
      settings: `base.EnvironmentSettings`.

    Raises:
      base.UnknownLevelError: no such id is registered.
      base.MissingDependencyError: a package the level needs is not installed.
      base.EnvironmentSpecError: spaces are unsupported or differ by level.
      base.EnvironmentProcessError: a process died while starting.
    """
    self.num_action_repeats = settings.num_action_repeats
    self._level_names = tuple(level_names)
    self._seeds = [int(seed) for seed in seeds]
    self._timeout_s = settings.step_timeout_s

    specs = {name: _env_spec(name) for name in dict.fromkeys(level_names)}
    factories = [
        _EnvFactory(index, name, specs[name], settings.num_action_repeats)
        for index, name in enumerate(level_names)]
    observation_space, action_space = _common_spaces(
        [factories[self._level_names.index(name)] for name in specs])
    self.observation_spec = _observation_spec(observation_space)
    self.num_actions = int(action_space.n)
    self._first_action = np.int32(action_space.start)
    self._env = _start(factories, observation_space)

  def initial(self) -> Any:
    with self._failures_explained():
      self._env.reset_async(seed=self._seeds)
      observation, _ = self._env.reset_wait(self._timeout_s)
    return _decode(observation)

  def step(self, actions: np.ndarray):
    with self._failures_explained():
      self._env.step_async(actions + self._first_action)
      observation, reward, terminated, truncated, info = self._env.step_wait(
          self._timeout_s)
    done = terminated | truncated
    return (reward.astype(np.float32), done, done, _decode(observation),
            _truncation(truncated & ~terminated, observation, info))

  def close(self):
    if self._env.closed:
      return
    # An environment may hang in its own `close`.
    watchdog = threading.Timer(_CLOSE_TIMEOUT_S, self._kill_workers)
    watchdog.daemon = True
    watchdog.start()
    try:
      self._env.close()
    except (EOFError, OSError):  # A worker died meanwhile.
      self._kill()
    finally:
      watchdog.cancel()

  @contextlib.contextmanager
  def _failures_explained(self):
    """Ends all workers when one fails, and says which one and why."""
    try:
      yield
    except base.EnvironmentProcessError as e:  # Raised in a worker, in words.
      self._kill()
      raise base.EnvironmentProcessError(str(e)) from None
    except multiprocessing.TimeoutError:
      hung = [i for i, pipe in enumerate(self._env.parent_pipes)
              if not pipe.poll(0)]
      self._kill()
      raise base.EnvironmentProcessError(
          f'{self._describe(hung)} did not answer within {self._timeout_s} '
          'seconds (step_timeout_s).') from None
    except (EOFError, OSError):
      # The pipe breaks some time before the exit of the process is known.
      sentinels = [process.sentinel for process in self._env.processes]
      ready = connection.wait(sentinels, timeout=_CLOSE_TIMEOUT_S)
      dead = [i for i, sentinel in enumerate(sentinels) if sentinel in ready]
      exit_codes = sorted({self._env.processes[i].exitcode for i in dead})
      self._kill()
      raise base.EnvironmentProcessError(
          f'The process of {self._describe(dead)} died with exit code '
          f'{", ".join(map(str, exit_codes))} (-N: killed by signal N; -9 is '
          'often a lack of memory).') from None
    except BaseException:  # Such as Ctrl-C: answers may still be in the pipes.
      self._kill()
      raise

  def _describe(self, indices: Sequence[int]) -> str:
    return 'environment ' + ', '.join(
        f'{i} ({self._level_names[i]})' for i in indices)

  def _kill_workers(self):
    for process in self._env.processes:
      process.kill()

  def _kill(self):
    """Ends the workers without their help."""
    self._env.closed = True  # There is nobody left to say goodbye to.
    self._kill_workers()
    for pipe in self._env.parent_pipes:
      if pipe is not None:  # AsyncVectorEnv drops the pipe of a failed worker.
        pipe.close()
    for process in self._env.processes:
      process.join(_CLOSE_TIMEOUT_S)


class _EnvFactory:
  """Builds one environment, in a worker or, to see its spaces, in the parent.

  Gymnasium's description of the environment travels to the worker, so that
  levels need only be registered in the parent.
  """

  def __init__(self, index: int, level_name: str,
               spec: gymnasium.envs.registration.EnvSpec,
               num_action_repeats: int):
    self.level_name = level_name
    self._index = index
    self._spec = spec
    self._num_action_repeats = num_action_repeats
    self._parent_pid = os.getpid()

  def __call__(self) -> gymnasium.Env:
    if os.getpid() != self._parent_pid:
      signal.signal(signal.SIGINT, signal.SIG_IGN)
      threading.Thread(target=_exit_with_parent, daemon=True).start()
    env = gymnasium.make(self._spec)
    try:
      if self._num_action_repeats > 1:
        env = _ActionRepeat(env, self._num_action_repeats)
      return _Transport(env, self._index, self.level_name)
    except base.EnvironmentSpecError:
      env.close()
      raise


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


class _Transport(gymnasium.Wrapper):
  """Makes observations fit shared memory and exceptions fit a pipe.

  Text is written as UTF-8 with trailing zeros: `AsyncVectorEnv` reads `Text`
  from shared memory once, when it is built. Exceptions become their text: not
  all can be pickled, or built from one argument. `info` stays here, as nobody
  reads it.
  """

  def __init__(self, env: gymnasium.Env, index: int, level_name: str):
    super().__init__(env)
    self._name = f'environment {index} ({level_name})'
    _check_action_space(env.action_space, level_name)
    self.observation_space, self._text_length = _transport_space(
        env.observation_space, level_name)

  def reset(self, *, seed=None, options=None):
    try:
      observation, _ = self.env.reset(seed=seed, options=options)
      return self._encode(observation), {}
    except Exception as e:
      raise self._error(e) from None

  def step(self, action):
    try:
      observation, reward, terminated, truncated, _ = self.env.step(action)
      return self._encode(observation), reward, terminated, truncated, {}
    except Exception as e:
      raise self._error(e) from None

  def _encode(self, observation):
    if self._text_length is None:
      return observation
    text = observation['instruction'].encode()
    if len(text) > self._text_length:
      raise ValueError(f'Instruction {text!r} is longer than its space permits '
                       f'({self._text_length} bytes).')
    text = np.frombuffer(text.ljust(self._text_length, b'\0'), np.uint8)
    return {'frame': observation['frame'], 'instruction': text}

  def _error(self, e: Exception) -> base.EnvironmentProcessError:
    return base.EnvironmentProcessError(
        f'{self._name} raised {type(e).__name__}: {e}\n'
        f'In its process:\n{traceback.format_exc()}')


def _exit_with_parent():
  """Ends this process, whatever it is doing, when its parent has died."""
  multiprocessing.parent_process().join()
  os._exit(1)


def _start(factories, observation_space) -> gymnasium.vector.AsyncVectorEnv:
  """Starts the workers."""
  context = multiprocessing.get_context(_START_METHOD)
  context.set_forkserver_preload([__name__])
  env = None
  with _start_lock, _main_module_hidden(), _interrupts_inherited_as_blocked():
    try:
      env = gymnasium.vector.AsyncVectorEnv(
          factories,
          shared_memory=True,
          copy=False,
          context=_START_METHOD,
          # Given, rather than taken from the first environment, because then
          # levels may differ in the bounds of their observations.
          observation_mode=(
              gymnasium.vector.utils.batch_space(
                  observation_space, len(factories)),
              observation_space),
          autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    except (EOFError, OSError) as e:
      # Raised below, without the frames that keep the workers alive.
      reason = repr(e)
  if env is None:
    raise base.EnvironmentProcessError(
        f'The process of an environment died while starting ({reason}); its '
        'own message, if any, is in the output above.')
  return env


@contextlib.contextmanager
def _main_module_hidden():
  """Keeps workers from importing the main module, and TensorFlow with it."""
  main_module = sys.modules['__main__']
  sys.modules['__main__'] = types.ModuleType('__main__')
  try:
    yield
  finally:
    sys.modules['__main__'] = main_module


@contextlib.contextmanager
def _interrupts_inherited_as_blocked():
  """Children started within do not see Ctrl-C, not even while they import."""
  previous = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _env_spec(level_name: str) -> gymnasium.envs.registration.EnvSpec:
  """Finds the gymnasium environment of a level."""
  module, _, env_id = level_name.rpartition(':')
  try:
    if module:
      importlib.import_module(module)
    spec = gymnasium.spec(toys.LEVELS.get(env_id, env_id))
  except ImportError as e:
    raise base.MissingDependencyError(
        f'The module of level {level_name} cannot be imported: {e}.') from e
  except gymnasium.error.Error as e:
    raise base.unknown_level(
        level_name, [*gymnasium.registry, *toys.LEVELS]) from e
  if str(spec.entry_point).startswith('ale_py'):
    rom = spec.kwargs['game'].title().replace('_', '')
    raise base.EnvironmentSpecError(
        f'Atari games are named by their newest id, here ALE/{rom}-v5, and all '
        f'use the same protocol: {level_name} would not mean what it says.')
  return spec


def _common_spaces(factories):
  """Returns the observation and action space that all levels share."""
  spaces = []
  for factory in factories:
    try:
      env = factory()
    except (gymnasium.error.DependencyNotInstalled, ImportError) as e:
      raise base.MissingDependencyError(
          f'{factory.level_name} needs a package that is not installed: {e}'
      ) from e
    spaces.append((env.observation_space, env.action_space))
    env.close()
  observation_space, action_space = spaces[0]
  for factory, (other_observation, other_action) in zip(factories, spaces):
    levels = f'{factories[0].level_name} and {factory.level_name}'
    if _observation_spec(observation_space) != _observation_spec(
        other_observation):
      raise base.EnvironmentSpecError(
          f'One agent cannot play {levels}: they have different observations, '
          f'{observation_space} and {other_observation}.')
    if action_space != other_action:
      raise base.EnvironmentSpecError(
          f'One agent cannot play {levels}: they have different actions, '
          f'{action_space} and {other_action}.')
  return observation_space, action_space


def _check_action_space(space: gymnasium.Space, level_name: str):
  if not isinstance(space, gymnasium.spaces.Discrete):
    raise base.EnvironmentSpecError(
        f'{level_name} has actions {space}, but only Discrete ones are '
        'supported.')


def _transport_space(space: gymnasium.Space, level_name: str):
  """Returns the space in shared memory, and bytes for the instruction or None.

  Args:
    space: observation space of the environment.
    level_name: for the error.

  Raises:
    base.EnvironmentSpecError: the space is not supported.
  """
  Box = gymnasium.spaces.Box
  if isinstance(space, Box):
    return _float32_box(space), None
  if isinstance(space, gymnasium.spaces.Dict):
    parts = dict(space.spaces)
    frame = parts.pop('frame', None)
    instruction = parts.pop('instruction', None)
    if isinstance(frame, Box) and not parts:
      frame = _float32_box(frame)
      if instruction is None:
        return gymnasium.spaces.Dict({'frame': frame}), None
      if isinstance(instruction, gymnasium.spaces.Text):
        length = instruction.max_length * max(
            [1] + [len(c.encode()) for c in instruction.character_list])
        return gymnasium.spaces.Dict({
            'frame': frame,
            'instruction': Box(0, 255, (length,), np.uint8)}), length
  raise base.EnvironmentSpecError(
      f'{level_name} has observations {space}, but only a Box, or a Dict of a '
      'Box named frame and a Text named instruction, is supported: a gymnasium '
      'ObservationWrapper can bring them to that form.')


def _float32_box(space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
  """The same box, in float32 where it is in float64."""
  if space.dtype != np.float64:
    return space
  return gymnasium.spaces.Box(
      space.low.astype(np.float32), space.high.astype(np.float32))


def _observation_spec(space: gymnasium.Space):
  """The specs of observations after `_decode`."""
  if isinstance(space, gymnasium.spaces.Box):
    return base.ArraySpec(space.shape, space.dtype)
  spec = {key: base.ArraySpec(value.shape, value.dtype)
          for key, value in space.spaces.items()}
  if 'instruction' in spec:
    spec['instruction'] = base.ArraySpec((), np.dtype(object))
  return spec


def _truncation(mask, observation, info):
  """Returns the `Truncation`, from what the workers sent along, or None."""
  if not mask.any():
    return None
  last = tree.map_structure(np.copy, observation)
  for index in np.flatnonzero(mask):

    def put(array, value, index=index):
      array[index] = value
    tree.map_structure(put, last, info['final_obs'][index])
  return base.Truncation(mask, _decode(last))


def _decode(observation):
  """Turns instructions from zero-terminated uint8 `[E, L]` to bytes `[E]`."""
  if not isinstance(observation, dict) or 'instruction' not in observation:
    return observation
  text = observation['instruction']
  text = text.view(f'S{text.shape[1]}')[:, 0].astype(object)
  return {**observation, 'instruction': text}
