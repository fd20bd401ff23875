# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""MinAtar: five small games like those of Atari, a channel per kind of object.

Level names are `MinAtar/Breakout-v1` and the like; ids that end in `-v0` have
all six actions. https://github.com/kenjyoung/MinAtar
"""

import functools
import importlib

import gymnasium
from scalable_agent.environments import base
from scalable_agent.environments import registry
from scalable_agent.settings.environment_settings import EnvironmentSettings

# On import, the package says that pictures need seaborn.
_PACKAGE = registry.Package('minatar', 'minatar.gym', 'minatar', ('minatar/',),
                            hides_stderr=True)
is_level = _PACKAGE.is_level
known_levels = _PACKAGE.known_levels


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  _PACKAGE.check(level_name)
  if not _PACKAGE.known_levels():
    importlib.import_module('minatar.gym').register_envs()
  return functools.partial(_make, registry.factory(
      registry.look_up(level_name, settings), settings))


def _make(factory: base.Factory) -> gymnasium.Env:
  return _Repeatable(_PACKAGE.make(factory))


class _Repeatable(gymnasium.Wrapper):
  """Games with equal seeds are equal, also in an environment that has played.

  MinAtar repeats the last action at random, also that of the game before.
  """

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    if seed is not None:
      self.unwrapped.game.last_action = 0
    return self.env.reset(seed=seed, options=options)
