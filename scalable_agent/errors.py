# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Errors: those that a user can correct, and a failed environment process.

`experiment.py` prints the message of a `UserError`, without a traceback, and
ends with its exit code. All other exceptions end it with a traceback.
"""

import errno
import re

# What the system says of full disks and quotas.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def reason(error: Exception) -> str:
  """Returns why the system or TensorFlow could not do something, in a line."""
  return in_words(getattr(error, 'strerror', None)
                  or str(error).partition('\n')[0])


def in_words(text: str) -> str:
  """Returns a line of an error without TensorFlow's marks."""
  # TensorFlow says first and last which of its functions it was in.
  return re.sub(r'\{\{.*?\}\} ?| \[Op:\w+\].*', '', text)


def in_a_line(error: BaseException) -> str:
  """Returns what no traceback is needed for: a full disk or memory, or ''."""
  if isinstance(error, OSError) and error.errno in NO_ROOM:
    what = error.filename or 'what was to be written'
    return f'no room for {what}: {error.strerror}.'
  lines = str(error).splitlines()
  # TensorFlow's error, without an import of it. It is also that of full disks.
  if type(error).__name__ == 'ResourceExhaustedError':
    lines = [line for line in lines if 'OOM' in line or 'alloc' in line]
  elif not isinstance(error, MemoryError):
    return ''
  elif not lines:
    return 'there is not enough memory.'
  return f'there is not enough memory: {in_words(lines[0])}' if lines else ''


class UserError(Exception):
  """An error that a user can correct; the message says what to do.

  Attributes:
    exit_code: exit code of the program.
  """
  exit_code = 2


class ConfigError(UserError, ValueError):
  """A setting is wrong; the message names the flag and says what to do."""


class LevelError(ConfigError):
  """A level cannot be played; the message says what to do."""


class UnknownLevelError(LevelError):
  """No environment has this level name."""


class MissingDependencyError(LevelError):
  """The level needs a package that is not installed."""


class EnvironmentSpecError(LevelError):
  """The level's observations or actions cannot be trained on."""


class CheckpointError(ConfigError):
  """A log directory cannot be used; the message says why and what to do."""


class EnvironmentValueError(UserError):
  """An environment returned what is not finite."""
  exit_code = 1


class SaveError(UserError):
  """A checkpoint or a table of scores could not be written."""
  exit_code = 1


class DivergedError(UserError):
  """Training diverged: the loss or a weight is not finite."""
  exit_code = 1


class LearnerLostError(UserError):
  """The learner's process was lost too often, or did not end."""
  exit_code = 1


class ClusterError(UserError):
  """The cluster does not give what is needed; the same command may work later.

  The exit code says so to those who start it again: it is EX_TEMPFAIL.
  """
  exit_code = 75


class UserCodeError(UserError, RuntimeError):
  """Code of a user raised an error.

  Attributes:
    frames: text, where in the code of users the error was raised, if it was.
    all_frames: the same, with the frames of this program.
  """
  exit_code = 1

  def __init__(self, message: str, frames: str = '', all_frames: str = ''):
    super().__init__(message, frames, all_frames)  # As pickle needs them.
    self.frames, self.all_frames = frames, all_frames

  def __str__(self) -> str:
    return self.args[0]


class EnvironmentProcessError(UserCodeError):
  """The process of an environment raised an error, died or does not answer."""


class EnvironmentProcessLostError(EnvironmentProcessError):
  """The process of an environment died or does not answer."""


class EnvironmentLostError(RuntimeError):
  """Environments are lost; `initial` begins anew with others in their place."""
