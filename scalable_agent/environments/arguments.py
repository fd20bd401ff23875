# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Arguments of environments, from the setting `environment_kwargs`."""

from collections.abc import Callable, Mapping
import re
from typing import TypeVar

from scalable_agent import errors

T = TypeVar('T')


def call(level_name: str, make: Callable[..., T],
         kwargs: Mapping[str, object]) -> T:
  """Returns `make(**kwargs)`.

  Raises:
    errors.EnvironmentSpecError: the level has no such argument.
  """
  try:
    return make(**kwargs)
  except TypeError as e:
    match = re.search(r"(?:keyword|for) argument '(\w+)'", str(e))
    if not match or match[1] not in kwargs:
      raise
    raise errors.EnvironmentSpecError(
        f'--environment_kwargs: {level_name} does not take the argument '
        f'{match[1]}.') from e


def check_none(level_name: str, kwargs: Mapping[str, object]) -> None:
  """Raises EnvironmentSpecError if there are arguments."""
  if kwargs:
    raise errors.EnvironmentSpecError(
        f'--environment_kwargs: {level_name} does not take the argument '
        f'{next(iter(kwargs))}: the program or another flag sets this '
        'argument.')
