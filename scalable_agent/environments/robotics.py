# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gymnasium-Robotics: arms, hands and mazes with goals, simulated by MuJoCo.

Level names are the ids of the package `gymnasium_robotics`, such as
`FetchReach-v4` and `PointMaze_UMaze-v3`. https://robotics.farama.org
"""

import functools

from scalable_agent.environments import base
from scalable_agent.environments import registry
from scalable_agent.settings.environment_settings import EnvironmentSettings

# On import, the package prints that old levels have changed.
_PACKAGE = registry.Package(
    'gymnasium-robotics', 'gymnasium_robotics', 'robotics',
    ('fetchpickandplace', 'fetchpush', 'fetchreach', 'fetchslide',
     'handmanipulate', 'handreach', 'adroithand', 'antmaze', 'pointmaze',
     'frankakitchen'), hides_stderr=True)
is_level = _PACKAGE.is_level
known_levels = _PACKAGE.known_levels


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  spec = _PACKAGE.look_up(level_name, settings)
  return functools.partial(_PACKAGE.make, registry.factory(spec, settings))
