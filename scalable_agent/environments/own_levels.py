# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Levels of this process, made by functions of the caller."""

from collections.abc import Callable

import gymnasium
from scalable_agent import environments
from scalable_agent import errors

# The levels of `register`.
_registered: set[str] = set()


def register(level_name: str, make: Callable[..., gymnasium.Env]) -> None:
  """Makes a function's environments the level of a new name.

  Args:
    level_name: a name of no other level. An earlier function of this name is
      replaced.
    make: returns an environment; see `EnvironmentSettings.environment_kwargs`
      for the arguments.

  Raises `errors.LevelError` if another level has this name, or `make` is an
  environment.
  """
  if not callable(make):
    raise errors.LevelError(
        f'env={make} cannot make environments: give the class or a function, '
        'not an environment.')
  if level_name in _registered:
    del gymnasium.registry[level_name]
  elif any(family.levels.is_level(level_name)
           for family in environments.FAMILIES):
    raise errors.LevelError(
        f'level_name={level_name} is another environment: choose a new name '
        "for yours, such as level_name='my_level'.")
  try:
    gymnasium.register(level_name, make)
  except gymnasium.error.Error as e:
    raise errors.LevelError(
        f'level_name={level_name} cannot be the name of an environment: '
        f'{errors.reason(e)}') from e
  _registered.add(level_name)


def is_registered(level_name: str) -> bool:
  """Returns whether `register` has made the level, in this process only."""
  return level_name in _registered
