# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains from Python: `scalable_agent.train(config)`."""

from collections.abc import Callable, Mapping, Sequence
import os

import gymnasium
from scalable_agent import errors
from scalable_agent.algorithms import base
from scalable_agent.environments import own_levels
from scalable_agent.modes import loading
from scalable_agent.runs import log
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib


def train(config: config_lib.Config, hooks: Sequence[log.Hook] = (),
          addons: Mapping[str, base.Addon] | None = None,
          env: Callable[..., gymnasium.Env] | None = None
          ) -> loading.LoadedAgent:
  """Trains as `runs.training.train` does, and returns the trained agent.

  Args:
    hooks: called after each update.
    addons: further terms of the policy's loss, by name.
    env: a function, or a class, that makes an environment of gymnasium; the
      arguments are `config.environment_kwargs`. The environment gets the name
      `config.level_name`, which must be new, such as `my_level`.

  Raises:
    ConfigError: `config` is no `Config`.
    LevelError: `level_name` is the name of another environment.
    Exception: errors of `runs.training.train` and `load`.
  """
  _check_config(config)
  if env is not None:
    own_levels.register(config.level_name, env)
  # Code of a user may change the directory.
  logdir = os.path.abspath(config.logdir)
  training.train(config, hooks, addons)
  return loading.load(logdir)


def _check_config(config: object) -> None:
  if not isinstance(config, config_lib.Config):
    level = config if isinstance(config, str) else 'CartPole-v1'
    raise errors.ConfigError(
        f'train needs a Config, not {config!r:.60}. Write '
        f'scalable_agent.train(scalable_agent.Config(level_name={level!r}, '
        "logdir='/tmp/my_run')).")
