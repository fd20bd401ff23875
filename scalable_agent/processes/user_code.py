# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Code of users: functions that settings name, and errors of such code.

Errors leave their process as text, because some errors cannot be pickled.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import importlib
import math
import os
import sys
import traceback
from typing import NamedTuple
import warnings

import gymnasium
import numpy as np
import numpy.typing as npt
from scalable_agent import errors

# Names that this process has missed in an `info`, and has said so.
_missing: set[str] = set()
_MAX_MESSAGE_LENGTH = 4_096
_MAX_REWARD = float(np.finfo(np.float32).max)
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Each call of an environment passes through gymnasium's wrappers.
_WRAPPERS = os.path.dirname(os.path.abspath(gymnasium.__file__)) + os.sep
_NOT_THEIRS = (_OURS, _WRAPPERS, '<frozen importlib',
               os.path.dirname(importlib.__file__) + os.sep)


class ErrorText(NamedTuple):
  """An error as text: class and message, and two tracebacks.

  `frames` has the frames that users wrote, `all_frames` all frames.
  """
  text: str
  frames: str = ''
  all_frames: str = ''

  def to_bytes(self, max_bytes: int) -> bytes:
    """Returns at most `max_bytes` of the report, as UTF-8."""
    text = '\0'.join(part.replace('\0', ' ') for part in self)
    # Replaces surrogates, and cuts off a character that was cut in two.
    encoded = text.encode(errors='replace')[:max_bytes]
    return encoded.decode(errors='ignore').encode()

  @classmethod
  def from_bytes(cls, data: bytes) -> 'ErrorText':
    """Inverts `to_bytes`; ignores zeros at the end."""
    return cls(*data.rstrip(b'\0').decode().split('\0'))

  def error(self, who: str,
            kind: type[errors.UserCodeError] = errors.EnvironmentProcessError
            ) -> errors.UserCodeError:
    """Returns an exception that says that `who` raised this error."""
    return kind(f'{who} raised {self.text}', self.frames, self.all_frames)


def report(error: BaseException,
           env: gymnasium.Env | None = None, method: str = 'step') -> ErrorText:
  """Returns an error as text.

  Args:
    error: the error.
    env: the environment, if the error is about the result of a method.
    method: the name of the method.
  """
  try:
    message = str(error)[:_MAX_MESSAGE_LENGTH]
  except Exception:
    message = '(no text)'
  frames = traceback.extract_tb(error.__traceback__)
  theirs = [frame for frame in frames
            if not frame.filename.startswith(_NOT_THEIRS)]
  code = getattr(getattr(env and env.unwrapped, method, None), '__code__', None)
  if not theirs and code and not isinstance(
      error, errors.UserError) and not code.co_filename.startswith(_NOT_THEIRS):
    theirs = [traceback.FrameSummary(
        code.co_filename, code.co_firstlineno, code.co_name)]
  if not theirs:
    theirs = [frame for frame in frames[-1:]
              if frame.filename.startswith(_WRAPPERS)]
  lines = traceback.format_list(theirs)
  if isinstance(error, SyntaxError):  # The file was not run, and has no frame.
    lines += traceback.format_exception_only(error)[:-1]
  # Raised where we or gymnasium unpack the results of user functions.
  if (isinstance(error, (TypeError, ValueError)) and frames
      and ('values to unpack' in message or 'cannot unpack' in message)
      and frames[-1].filename.startswith((_OURS, _WRAPPERS))):
    message += (
        '; gymnasium wants five values from `step` (observation, reward, '
        'terminated, truncated, info) and two from `reset` (observation, info)')
  return ErrorText(f'{type(error).__name__}: {message}', ''.join(lines),
                   ''.join(traceback.format_list(frames)))


def load(name: str, flag: str) -> Callable[..., object]:
  """Imports and returns `module:function`, given by the setting `flag`.

  Raises:
    errors.ConfigError: there is no such module or function.
    errors.UserCodeError: the import of the module raises an error.
  """
  module_name, _, function_name = name.partition(':')
  with errors_explained(f'{module_name} of --{flag}'):
    try:
      module = importlib.import_module(module_name)
    except ImportError as e:
      raise errors.ConfigError(
          f'--{flag}={name}: {module_name} {errors.of_import(e, module_name)}'
      ) from e
  function = getattr(module, function_name, None)
  if not callable(function):
    raise errors.ConfigError(
        f'--{flag}={name}: {module_name} has no function {function_name}.')
  return function


@contextlib.contextmanager
def errors_of_close_ignored(is_silent: bool = True) -> Iterator[None]:
  """Ignores errors raised within by an environment's `close`."""
  try:
    yield
  except Exception as e:
    if not is_silent:
      print(f'An environment could not be closed: {report(e).text}',
            file=sys.stderr, flush=True)


def number_of_reward(reward: npt.ArrayLike, method: str = 'step') -> float:
  """Returns a reward, one number in an array of any shape, as a number.

  `method` has returned the reward. Raises ValueError for several numbers, no
  number, or a number too large for float32.
  """
  array = np.asarray(reward)
  if array.size != 1:
    raise ValueError(f'the reward must be one number, but `{method}` returned '
                     f'a reward of shape {list(array.shape)}')
  try:
    number = float(array.item())
  except (TypeError, ValueError):
    raise ValueError(f'the reward must be a number, but `{method}` returned '
                     f'the reward {reward!r}') from None
  if _MAX_REWARD < abs(number) < np.inf:
    raise ValueError(f'the reward {number} is beyond the numbers of float32')
  return number


def number_of_info(info: Mapping[str, object], name: str) -> float:
  """Returns a number or boolean of the last `info` of an episode.

  Returns NaN without the name, or for None, and warns the first time. Raises
  ValueError for another value that is not one number.
  """
  value = info.get(name)
  if value is None:
    if name not in _missing:
      _missing.add(name)
      warnings.warn(
          f'--episode_metrics: {name} is missing, or None, in the info of the '
          'last step of an episode, which has '
          f'{", ".join(map(str, info)) or "no names"}. Such episodes do not '
          f'count in the mean of {name}.', stacklevel=2)
    return math.nan
  try:
    array = np.asarray(value)
  except Exception:  # Lists of several lengths, arrays of other libraries.
    array = np.empty(0)
  if array.size != 1 or array.dtype.kind not in 'biuf':
    raise ValueError(f'--episode_metrics: {name} in the info of `step` must be '
                     f'one number or boolean, but is {value!r:.60}')
  return float(array.item())


def ends_of_step(terminated: object, truncated: object) -> tuple[bool, bool]:
  """Returns both results of `step`; raises ValueError for None."""
  for name, flag in (('terminated', terminated), ('truncated', truncated)):
    if flag is None:
      raise ValueError(f'`{name}` of `step` is None, but must be a bool')
  return bool(terminated), bool(truncated)


@contextlib.contextmanager
def errors_explained(who: str) -> Iterator[None]:
  """Turns errors raised within into `errors.UserCodeError`s of `who`.

  `sys.exit` counts as an error: the run would end without a message.
  """
  try:
    yield
  except errors.UserError:
    raise
  except (Exception, SystemExit) as e:
    found = report(e)
    # Keras explains in many lines, with codes for bold text.
    in_a_line = ' '.join(errors.in_words(found.text).split())
    raise found._replace(text=in_a_line).error(
        who, errors.UserCodeError) from e
