# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What can go wrong by a user's doing: errors that end in one clear line.

`experiment.py` prints the message of a `UserError`, without a traceback, and
ends with its exit code. All other exceptions are faults of programs.
"""


class UserError(Exception):
  """Something that a user can mend; the message says what was wrong and how.

  Attributes:
    exit_code: of the program.
  """
  exit_code = 2


class ConfigError(UserError, ValueError):
  """A setting is wrong; the message names the flag and says what to do."""


class LevelError(ConfigError):
  """A level that cannot be run, with what to do about it."""


class UnknownLevelError(LevelError):
  """No environment has this level name."""


class MissingDependencyError(LevelError):
  """The level needs a package that is not installed."""


class EnvironmentSpecError(LevelError):
  """The level's observations or actions cannot be trained on."""


class CheckpointError(ConfigError):
  """A log directory cannot be used; the message says why and what to do."""


class DivergedError(UserError):
  """Training went astray: the loss or a weight is not finite."""
  exit_code = 1


class EnvironmentProcessError(RuntimeError):
  """The process of an environment raised, died or stopped answering."""
