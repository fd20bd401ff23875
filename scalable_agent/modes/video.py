# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Video mode: records whole games of the latest checkpoint."""

import ctypes.util
import dataclasses
import os
import re

from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import recording as recording_lib
from scalable_agent.modes import loading
from scalable_agent.networks import layers
from scalable_agent.processes import starts
from scalable_agent.runs import evaluation
from scalable_agent.runs import logdirs
from scalable_agent.runs import messages
from scalable_agent.runs import metrics
from scalable_agent.runs import videos
from scalable_agent.scores import levels as levels_lib
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files
from scalable_agent.settings import flag_texts
import tensorflow as tf


def run(config: config_lib.Config) -> int:
  """Calls `record`; returns the exit code of the program."""
  record(config)
  return 0


@layers.state_of_caller_kept()
def record(config: config_lib.Config) -> list[str]:
  """Records whole games on every level; keeps videos of the best and median.

  Returns the files that were written, in the directory `videos` of `logdir`.

  Raises:
    ConfigError: `logdir` holds no checkpoint, a package is missing, or the
      videos cannot be written.
    errors.UserError: a level cannot be recorded.
  """
  videos.check_packages(config.video_format)
  _choose_renderers()
  tf.keras.utils.set_random_seed(config.seed)
  layers.set_compute_dtype(config.compute_dtype)
  trained_with = loading.trained_config(config.logdir)
  print(flag_texts.settings_said(trained_with, config), flush=True)
  # Code of a user may change the directory.
  config = dataclasses.replace(config, life_loss_ends_episode=False,
                               logdir=os.path.abspath(config.logdir))
  try:
    with logdirs.unfinished(
        os.path.join(config.logdir, files.VIDEOS)) as unfinished:
      return [path for level in dict.fromkeys(levels_lib.level_names(
          config.level_name, config.is_test))
              for path in _record_level(config, level, unfinished)]
  except OSError as e:
    raise errors.ConfigError(
        f'Videos cannot be written to {config.logdir}: '
        f'{errors.reason(e)}.') from e


def _choose_renderers() -> None:
  """Lets environments draw without a screen if the machine has no screen."""
  if os.environ.get('DISPLAY'):
    return
  os.environ.setdefault('SDL_VIDEODRIVER', 'dummy')
  for library, name in ('EGL', 'egl'), ('OSMesa', 'osmesa'):
    if ctypes.util.find_library(library):
      os.environ.setdefault('MUJOCO_GL', name)


def _record_level(config: config_lib.Config, level: str,
                  unfinished: str) -> list[str]:
  """Records games of a level; returns the files of the best and the median.

  `unfinished` is a directory for the videos of all games.
  """
  recording = recording_lib.Recording(
      unfinished, config.video_format, config.video_text)
  num_envs = min(config.video_num_episodes, config.num_actors,
                 starts.num_cores())
  with loading.make_environments(
      config, level, num_envs, recording) as env:
    resolved = config.resolved(
        env.spec.observation, on_cpu=layers.on_cpu(), num_groups=1)
    agent, num_env_frames = loading.restore(resolved, env.spec)
    policy = policies.AgentPolicy(agent, greedy=config.test_greedy)
    returns = evaluation.play(
        env, policy, config.video_num_episodes, config).returns
  games = sorted((game_return, recording.path(index, number))
                 for index, env_returns in enumerate(returns)
                 for number, game_return in enumerate(env_returns))
  selected = {'best': games[-1]}
  if len(games) > 1:
    selected['median'] = games[(len(games) - 1) // 2]
  print(f'{level}: {messages.count(len(games), "game")} at '
        f'{num_env_frames:,} frames, returns '
        + ' '.join(metrics.shortest(r) for r, _ in games))
  stem = os.path.join(os.path.dirname(unfinished), re.sub(
      r'[^\w.-]', '_', f'{level}-{num_env_frames}'))
  return [_keep(path, f'{stem}-{rank}', rank, game_return)
          for rank, (game_return, path) in selected.items()]


def _keep(path: str, stem: str, rank: str, game_return: float) -> str:
  """Renames a video to a free name, and returns the name."""
  _check_readable(path)
  name = logdirs.rename_to_free_name(path, stem, os.path.splitext(path)[1])
  videos.announce(f'Wrote {name}: the {rank} game, return '
                  f'{metrics.shortest(game_return)}.')
  return name


def _check_readable(path: str) -> None:
  """Raises OSError if a video is damaged: the encoder reports no errors."""
  import imageio.v2
  try:
    with imageio.v2.get_reader(path) as reader:
      reader.get_data(0)
  except (IndexError, OSError, SyntaxError) as e:
    raise OSError(
        f'the video {os.path.basename(path)} is damaged; the disk may be full'
    ) from e
