# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gymnasium-Robotics: arms, hands and mazes with goals, simulated by MuJoCo.

Level names are the ids of the package `gymnasium_robotics`, such as
`FetchReach-v4` and `PointMaze_UMaze-v3`. https://robotics.farama.org
"""

from collections.abc import Iterable
import contextlib
import functools
import io

import gymnasium
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.settings import sections

_PREFIXES = (
    'fetchpickandplace', 'fetchpush', 'fetchreach', 'fetchslide',
    'handmanipulate', 'handreach', 'adroithand', 'antmaze', 'pointmaze',
    'frankakitchen')


def is_level(level_name: str) -> bool:
  """Whether the name means a level of Gymnasium-Robotics."""
  return base.without_module(level_name).lower().startswith(_PREFIXES)


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(filter(is_level, gymnasium.registry))


def look_up(
    level_name: str, settings: sections.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level.

  Args:
    level_name: an id of the package; `module:id` imports the module first.
    settings: `sections.EnvironmentSettings`.

  Raises:
    errors.MissingDependencyError: gymnasium-robotics is not installed.
    errors.UnknownLevelError: no such level.
  """
  try:
    _import_package()
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs gymnasium-robotics: '
        f'pip install -e ".[robotics]" ({e}).') from e
  spec = base.registered_spec(level_name, settings.is_filmed)
  return functools.partial(
      _make, base.registered(spec, settings.num_action_repeats))


def _import_package() -> None:
  """Imports gymnasium-robotics, which registers its levels."""
  # In each process, it prints that old levels have changed.
  with contextlib.redirect_stderr(io.StringIO()):
    import gymnasium_robotics  # noqa: F401


def _make(factory: base.Factory) -> gymnasium.Env:
  _import_package()
  return factory()
