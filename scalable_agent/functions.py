# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions of users, which settings name as `module:function`."""

from collections.abc import Callable, Iterator
import contextlib
import importlib
from typing import Any

from scalable_agent import errors
from scalable_agent.environments import reports


def load(name: str, flag: str) -> Callable[..., Any]:
  """Returns a function.

  Args:
    name: `module:function`.
    flag: the setting that has named it, for errors.

  Raises:
    errors.ConfigError: there is no such module or function.
    errors.UserCodeError: the module raises an error.
  """
  module_name, _, function_name = name.partition(':')
  with errors_explained(f'{module_name} of --{flag}'):
    try:
      module = importlib.import_module(module_name)
    except ImportError as e:
      raise errors.ConfigError(
          f'--{flag}={name}: {module_name} cannot be imported: {e}.') from e
  function = getattr(module, function_name, None)
  if not callable(function):
    raise errors.ConfigError(
        f'--{flag}={name}: {module_name} has no function {function_name}.')
  return function


@contextlib.contextmanager
def errors_explained(who: str) -> Iterator[None]:
  """Raises errors as `errors.UserCodeError` of `who` while within."""
  try:
    yield
  except errors.UserError:
    raise
  except Exception as e:
    raise reports.report(e).error(who, errors.UserCodeError) from e
