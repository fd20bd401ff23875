# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Code of users: functions that settings name, and the errors of such code.

Errors leave their process as text, because not all can be pickled.
"""

from collections.abc import Callable, Iterator
import contextlib
import importlib
import os
import traceback
from typing import Any, NamedTuple

import gymnasium
from scalable_agent import errors

_MAX_MESSAGE_LENGTH = 4_096
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Each call of an environment passes through them.
_WRAPPERS = os.path.dirname(os.path.abspath(gymnasium.__file__)) + os.sep


class Report(NamedTuple):
  """An error as text.

  Attributes:
    text: its class and message.
    frames: where it comes from, without the frames that users did not write.
    all_frames: where it comes from.
  """
  text: str
  frames: str = ''
  all_frames: str = ''

  def to_bytes(self, max_bytes: int) -> bytes:
    """Returns the report as UTF-8; cuts off what is too long."""
    text = '\0'.join(part.replace('\0', ' ') for part in self)
    # Replaces what is not text; does not cut a character in two.
    encoded = text.encode(errors='replace')[:max_bytes]
    return encoded.decode(errors='ignore').encode()

  @classmethod
  def from_bytes(cls, data: bytes) -> 'Report':
    """Returns what `to_bytes` has made; zeros at the end do not count."""
    return cls(*data.rstrip(b'\0').decode().split('\0'))

  def error(self, who: str,
            kind: type[errors.UserCodeError] = errors.EnvironmentProcessError
            ) -> errors.UserCodeError:
    """Returns the error as one of `who`, by default of its process."""
    return kind(f'{who} raised {self.text}', self.frames, self.all_frames)


def report(error: Exception) -> Report:
  """Returns an error as text."""
  try:
    message = str(error)[:_MAX_MESSAGE_LENGTH]
  except Exception:  # pylint: disable=broad-except
    message = '(no text)'
  frames = traceback.extract_tb(error.__traceback__)
  theirs = [frame for i, frame in enumerate(frames)
            if not frame.filename.startswith(_OURS)
            and (i == len(frames) - 1
                 or not frame.filename.startswith(_WRAPPERS))]
  return Report(f'{type(error).__name__}: {message}',
                ''.join(traceback.format_list(theirs)),
                ''.join(traceback.format_list(frames)))


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
    raise report(e).error(who, errors.UserCodeError) from e
