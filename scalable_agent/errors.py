# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Errors that a user can correct, and errors of environment processes.

`experiment.py` prints the message of a `UserError`, without a traceback, and
ends with its exit code. Other exceptions end the program with a traceback.
"""

from collections.abc import Sequence
import difflib
import errno
import re

# Error codes for a full disk or quota.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Of the system, where libraries or threads find too little memory.
_NO_MEMORY = re.compile(
    "failed to map segment|[Cc]annot allocate memory|can't start new thread")


def reason(error: Exception) -> str:
  """Returns why the system or TensorFlow raised an error, in a line."""
  return in_words(getattr(error, 'strerror', None)
                  or str(error).partition('\n')[0])


def in_words(text: str) -> str:
  """Returns a line of an error without names of TensorFlow functions."""
  # TensorFlow puts the names of its own functions first and last. Keras has
  # codes for bold text.
  return re.sub(r'\{\{.*?\}\} ?| \[Op:\w+\].*|\x1b\[\d*m', '', text)


def in_a_line(error: BaseException) -> str:
  """Returns a line for out-of-disk and out-of-memory errors, else ''."""
  if isinstance(error, OSError) and error.errno in NO_ROOM:
    file = error.filename or 'a file'
    return f'no room for {file}: {error.strerror}.'
  lines = str(error).splitlines()
  # Compared by name, without an import of TensorFlow. Also raised if a disk is
  # full.
  if type(error).__name__ == 'ResourceExhaustedError':
    lines = [line for line in lines if 'OOM' in line or 'alloc' in line]
  elif not isinstance(error, MemoryError) and not _NO_MEMORY.search(str(error)):
    return ''
  elif not lines:
    return 'there is not enough memory.'
  return f'there is not enough memory: {in_words(lines[0])}' if lines else ''


def of_import(error: ImportError, module: str) -> str:
  """Returns the end of an error for a module that cannot be imported."""
  is_missing = error.name and f'{module}.'.startswith(f'{error.name}.')
  return f'cannot be imported: {error}.' + (
      ' Install the module, or start the program in the directory of the '
      'module.' if is_missing else '')


def nearest(name: str, names: Sequence[str]) -> str:
  """Returns the end of an error for an unknown name: a question or a list.

  `names` are in lower case.
  """
  name = name.lower()
  similar = ([n for n in names if name and name in n]
             or difflib.get_close_matches(name, names, n=3, cutoff=.4))
  return (f'did you mean {" or ".join(similar)}?' if similar
          else f'there are {", ".join(names)}.')


class StopTraining(Exception):
  """Raised by a hook: ends the training with a checkpoint, as Ctrl-C does.

  The text of the exception, if any, is printed as the reason. All learners end
  after the same update. The same command resumes the training. A deterministic
  run keeps the checkpoint before, and must have one.
  """


class UserError(Exception):
  """An error that a user can correct; the message says what to do."""
  exit_code = 2


class ConfigError(UserError, ValueError):
  """A setting is wrong; the message names the flag and says what to do."""


class LevelError(ConfigError):
  """A level cannot be played; the message says what to do."""


class UnknownLevelError(LevelError):
  """No environment has this level name."""


class MissingDependencyError(LevelError):
  """A package that a level or a setting needs is not installed."""


class EnvironmentSpecError(LevelError):
  """The level's observations or actions cannot be trained on."""


class CheckpointError(ConfigError):
  """A log directory cannot be used; the message says why and what to do."""


class LockedError(CheckpointError):
  """Another run uses a log directory."""


class EnvironmentValueError(UserError):
  """An environment returned a value that is not finite."""
  exit_code = 1


class SaveError(UserError):
  """A checkpoint or a file of results could not be written."""
  exit_code = 1


class DivergedError(UserError):
  """Training diverged: the loss or a weight is not finite."""
  exit_code = 1


class LearnerLostError(UserError):
  """The learner's process was lost too often, or did not end."""
  exit_code = 1


class ClusterError(UserError):
  """The cluster lacks resources; the same command may work later.

  The exit code EX_TEMPFAIL tells supervisors to start the command again.
  """
  exit_code = 75


class UserCodeError(UserError, RuntimeError):
  """Code of a user raised an error.

  `frames` is the traceback within code of users, `all_frames` also has frames
  of this program. Either may be empty.
  """
  exit_code = 1

  def __init__(self, message: str, frames: str = '', all_frames: str = ''):
    super().__init__(message, frames, all_frames)  # For pickle.
    self.frames, self.all_frames = frames, all_frames

  def __str__(self) -> str:
    return self.args[0]


class EnvironmentProcessError(UserCodeError):
  """The process of an environment raised an error, died or does not answer."""


class EnvironmentProcessLostError(EnvironmentProcessError):
  """The process of an environment died or does not answer."""


class EnvironmentLostError(RuntimeError):
  """Environments are lost; `initial` starts replacements."""
