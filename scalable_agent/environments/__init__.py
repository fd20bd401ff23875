# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors of environments, by level name.

*   `ALE/Pong-v5`: Atari games, on C++ threads, with the paper's protocol.
*   `BabyAI-GoToObj-v0`, `MiniGrid-Empty-5x5-v0` and the others of MiniGrid:
    pixels and a mission in words, each environment in a process of its own.
*   `VizdoomBasic-v1` and the others of ViZDoom: first person, likewise.
*   `catch`, `memory`, `counting`: toys with known optima.
*   `explore_goal_locations_small` and the others of DMLab-30, `lab/NAME`:
    DeepMind Lab, each environment in a process of its own.
*   Everything else: gymnasium ids, likewise.

Importing this package does not import TensorFlow.
"""

from typing import Sequence

import gymnasium

from scalable_agent import errors
from scalable_agent.config import EnvironmentSettings
from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30
from scalable_agent.environments import atari
from scalable_agent.environments import dmlab
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments import minigrid
from scalable_agent.environments import toys
from scalable_agent.environments import vizdoom
from scalable_agent.environments.base import FlowEnvironment
from scalable_agent.environments.base import Truncation
from scalable_agent.environments.base import unknown_level


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

  num_atari = sum(map(atari.is_level, level_names))
  num_dmlab = sum(map(dmlab.is_level, level_names))
  for name in dict.fromkeys(level_names):
    if not (atari.is_level(name) or dmlab.is_level(name)):
      _check_exists(name)
  if num_atari == len(level_names):
    env = atari.AtariVector(level_names, seeds, settings, num_threads)
  elif num_dmlab == len(level_names):
    env = dmlab.DmLabVector(level_names, seeds, settings)
  elif num_atari or num_dmlab:
    family = 'Atari games' if num_atari else 'levels of DeepMind Lab'
    raise errors.EnvironmentSpecError(
        f'One agent cannot play {family} and other levels: '
        f'{", ".join(dict.fromkeys(level_names))}.')
  else:
    env = gymnasium_env.GymnasiumVector(level_names, seeds, settings)
  return FlowEnvironment(env, level_names)


def _check_exists(level_name: str):
  """Raises for an unknown level, which may be a mistyped one of any family."""
  if level_name == 'atari57':
    raise errors.EnvironmentSpecError(
        'atari57 is a suite: here its levels are named one by one, see '
        'atari57.LEVELS.')
  if ':' in level_name:  # Its module, not imported yet, may register it.
    return
  for family in (minigrid, vizdoom):
    if family.is_level(level_name):
      family.register(level_name)
  try:
    gymnasium.spec(toys.LEVELS.get(level_name, level_name))
  except gymnasium.error.Error as e:
    # Games last: they are what their old ids, registered or not, stand for.
    raise unknown_level(level_name, [
        *gymnasium.registry, *toys.LEVELS, *sorted(dmlab30.ALL_LEVELS),
        'dmlab30', 'atari57', *atari57.LEVELS]) from e
