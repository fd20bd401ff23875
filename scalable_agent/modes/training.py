# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains from Python: `scalable_agent.train(config)`."""

from collections.abc import Callable, Mapping, Sequence
import os

import gymnasium
from scalable_agent import errors
from scalable_agent import zoo
from scalable_agent.algorithms import addons as addons_lib
from scalable_agent.environments import own_levels
from scalable_agent.modes import loading
from scalable_agent.runs import log
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import recipes


def train(config: config_lib.Config, hooks: Sequence[log.Hook] = (),
          addons: Mapping[str, addons_lib.Addon] | None = None,
          env: Callable[..., gymnasium.Env] | None = None
          ) -> loading.LoadedAgent:
  """Trains to `config.total_environment_frames`; returns the trained agent.

  If `config.logdir` has a checkpoint, the training resumes from there.

  Args:
    config: the settings of the run.
    hooks: functions that are called after each call of the learner, with a
      `log.Update`. A function that raises `StopTraining` ends the training with
      a checkpoint, as Ctrl-C does, in any thread.
    addons: further terms of the policy's loss, by name.
    env: a function, or a class, that makes an environment of gymnasium; the
      arguments are `config.environment_kwargs`. The environment gets the name
      `config.level_name`, which must be new, such as `my_level`.

  Raises:
    ConfigError: `config` is no `Config` for a training, `hooks` is no list of
      functions, `addons` no dictionary of functions, or `video_secs` is set for
      a level that only this process knows.
    LevelError: `level_name` is the name of another environment.
    Exception: errors of `runs.training.train` and `load`.
  """
  _check_config(config)
  _check_functions(hooks, addons)
  if env is not None:
    own_levels.register(config.level_name, env)
  if config.video_secs and own_levels.is_registered(config.level_name):
    raise errors.ConfigError(
        f'video_secs cannot be used with the level {config.level_name}: videos '
        'are recorded in another process, which does not know this '
        'environment. Register the environment with gymnasium in a module, and '
        'use the level module:id.')
  # Code of a user may change the directory.
  logdir = os.path.abspath(config.logdir)
  training.train(config, hooks, addons)
  return loading.load(logdir)


def _check_config(config: object) -> None:
  if not isinstance(config, config_lib.Config):
    name = config if isinstance(config, str) else 'CartPole-v1'
    made = (f'Config.from_recipe({name!r}' if name in recipes.recipe_names()
            else f'Config(level_name={name!r}')
    raise errors.ConfigError(
        f'train needs a Config, not {config!r:.60}. Write scalable_agent.train('
        f"scalable_agent.{made}, logdir='/tmp/my_run')).")
  if config.mode != 'train':
    raise errors.ConfigError(
        f"train needs a Config with mode='train', not {config.mode!r}.")
  if config.logdir.startswith(zoo.PREFIX):
    raise errors.ConfigError(
        f'logdir={config.logdir} is an agent of the zoo, which cannot be '
        'trained: set logdir to a new directory.')


def _check_functions(hooks: object, addons: object) -> None:
  if not isinstance(hooks, Sequence) or not all(map(callable, hooks)):
    raise errors.ConfigError(
        f'hooks must be a list of functions, not {hooks!r:.60}. Write '
        'hooks=[my_function].')
  if addons is not None and not (
      isinstance(addons, Mapping) and all(map(callable, addons.values()))):
    raise errors.ConfigError(
        f'addons must be a dictionary of functions, not {addons!r:.60}. Write '
        "addons={'my_term': my_function}.")
