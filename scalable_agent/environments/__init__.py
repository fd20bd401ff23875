# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors of environments, by level name.

*   `ALE/Pong-v5`: Atari games, on C++ threads, with the paper's protocol.
*   `catch`, `memory`, `counting`: toys with known optima.
*   Everything else: gymnasium ids, each environment in a process of its own.

Importing this package does not import TensorFlow.
"""

from typing import Sequence

from scalable_agent.environments import atari
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments.base import ArraySpec
from scalable_agent.environments.base import EnvironmentProcessError
from scalable_agent.environments.base import EnvironmentSettings
from scalable_agent.environments.base import EnvironmentSpecError
from scalable_agent.environments.base import FlowEnvironment
from scalable_agent.environments.base import LevelError
from scalable_agent.environments.base import MissingDependencyError
from scalable_agent.environments.base import Truncation
from scalable_agent.environments.base import UnknownLevelError

_DMLAB_PREFIXES = (
    'contributed/dmlab30/', 'dmlab30', 'explore_', 'language_', 'lasertag_',
    'natlab_', 'psychlab_', 'rooms_', 'skymaze_')


def make_vec(
    level_names: Sequence[str],
    seeds: Sequence[int],
    settings: EnvironmentSettings = EnvironmentSettings(),
    num_threads: int = 0,
) -> FlowEnvironment:
  """Makes one vector of `E` environments.

  Args:
    level_names: `E` level names. They may differ if the levels have the same
      observations and actions.
    seeds: `E` ints within `[0, 2**31)`. The same levels, seeds and actions give
      the same stream.
    settings: `EnvironmentSettings`.
    num_threads: threads for Atari games, 0 for as many as there are cores.

  Returns:
    `FlowEnvironment`; the caller closes it.

  Raises:
    UnknownLevelError: no such level.
    MissingDependencyError: the level needs a package that is not installed.
    EnvironmentSpecError: the level's observations or actions are not supported,
      or those of the levels differ.
    EnvironmentProcessError: a worker process died while starting.
    ValueError: no levels, or seeds that do not fit.
  """
  if not level_names or isinstance(level_names, str):
    raise ValueError(
        f'level_names must be a sequence of names, not {level_names!r}.')
  if len(seeds) != len(level_names):
    raise ValueError(f'There must be one seed per environment, but there are '
                     f'{len(seeds)} seeds for {len(level_names)}.')
  if not all(0 <= seed < 2**31 for seed in seeds):
    raise ValueError(f'Seeds must be within [0, 2**31), not {list(seeds)}.')
  for name in level_names:
    if name.startswith(_DMLAB_PREFIXES):
      raise MissingDependencyError(
          f'{name} is a level of DeepMind Lab, which needs the package '
          'deepmind_lab and is not supported yet.')

  num_atari = sum(atari.is_level(name) for name in level_names)
  if num_atari == len(level_names):
    env = atari.AtariVector(level_names, seeds, settings, num_threads)
  elif num_atari == 0:
    env = gymnasium_env.GymnasiumVector(level_names, seeds, settings)
  else:
    raise EnvironmentSpecError(
        'One agent cannot play Atari games and other levels: '
        f'{", ".join(dict.fromkeys(level_names))}.')
  return FlowEnvironment(env, level_names)
