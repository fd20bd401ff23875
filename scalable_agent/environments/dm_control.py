# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tasks of the DeepMind Control Suite, with the adapter of the package shimmy.

Level names are `dm_control/walker-walk-v0` and the like, as in shimmy.
https://github.com/google-deepmind/dm_control
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import importlib
import os
import re

import gymnasium
import numpy as np
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments import registry
from scalable_agent.settings.environment_settings import EnvironmentSettings

_SUITE = registry.Package('dm_control', 'dm_control.suite', 'dm-control',
                          ('dm_control/',), hides_stderr=True)
_ADAPTER = registry.Package('shimmy', 'shimmy.dm_control_compatibility',
                            'dm-control', hides_stderr=True)
_LEVEL = re.compile(r'dm_control/(\w+)-(\w+)-v0')
is_level = _SUITE.is_level


def known_levels() -> list[str]:
  """Returns the names of levels, for errors; none without the package."""
  try:
    _SUITE.load()
  except ImportError:
    return []
  return [f'dm_control/{domain}-{task}-v0' for domain, task in
          importlib.import_module(_SUITE.module).ALL_TASKS]


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  with _renderer(settings.needs_pictures):
    _SUITE.check(level_name)
    _ADAPTER.check(level_name)
    names = _LEVEL.fullmatch(level_name)
    if not names or level_name not in known_levels():
      raise base.unknown_level(level_name, known_levels())
  make = functools.partial(
      _load, names[1], names[2], settings.needs_pictures)
  return functools.partial(
      _make, level_name, make, settings.kwargs, settings.num_action_repeats)


@contextlib.contextmanager
def _renderer(needs_pictures: bool) -> Iterator[None]:
  """Chooses the renderer for an import of the package, unless the user has.

  Otherwise the package looks for a window, and warns. Later processes, such as
  those that record videos, may need another renderer.
  """
  if 'MUJOCO_GL' in os.environ:
    yield
    return
  os.environ['MUJOCO_GL'] = 'egl' if needs_pictures else 'disable'
  try:
    yield
  finally:
    del os.environ['MUJOCO_GL']


def _load(domain: str, task: str, needs_pictures: bool,
          **task_kwargs: object) -> gymnasium.Env:
  with _renderer(needs_pictures):
    suite = importlib.import_module(_SUITE.module)
    adapter = importlib.import_module(_ADAPTER.module)
  # lqr draws its model as it is built.
  task_kwargs.setdefault('random', np.random.randint(2**31))
  env = adapter.DmControlCompatibilityV0(
      suite.load(domain, task, task_kwargs),
      render_mode='rgb_array' if needs_pictures else None)
  # The adapter gives milliseconds per step.
  env.metadata = {**env.metadata, 'render_fps': 1 / env.dt}
  return env


def _make(level_name: str, make: Callable[..., gymnasium.Env],
          kwargs: Mapping[str, object],
          num_action_repeats: int) -> gymnasium.Env:
  return base.ActionRepeat(
      arguments.call(level_name, make, kwargs), num_action_repeats)
