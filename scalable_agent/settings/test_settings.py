# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of tests, evaluations, videos, exports and plots."""

import dataclasses

from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting

# The settings that change the games of tests and of evaluations.
OF_GAMES = ('test_greedy', 'max_episode_steps')


@dataclasses.dataclass(frozen=True, kw_only=True)
class TestSettings(Section):
  """Tests, evaluations, videos, exports and plots of learning curves."""
  test_num_episodes: int = setting(
      10,
      'Episodes per level in test mode. Suites test with 30, unless the flag '
      'is given.', POSITIVE)
  test_greedy: bool = setting(
      By(impala=False, appo=False, others=True),
      'Take the best known action in tests and evaluations. If off, the agent '
      'acts as in training: impala and appo draw actions from the policy, as '
      "DeepMind's code does.")
  max_episode_steps: int = setting(
      1_000_000,
      'Agent steps after which a game of a test, an evaluation, a video or '
      '`play` of a loaded agent is cut. The return so far counts, a line says '
      'that, and the environment plays no further game. Training is not cut. '
      "Choose more steps than the level's own time limit.", POSITIVE)
  eval_every_frames: int = setting(
      0,
      'Environment frames between evaluations; the last evaluation is at the '
      'end. An evaluation plays whole games with the current weights, writes '
      'evaluations.csv, and keeps the weights with the highest mean return in '
      'the directory best of --logdir. The learner waits, and this time counts '
      'as training time. 0 for never.', NOT_NEGATIVE)
  eval_num_episodes: int = setting(
      10,
      'Episodes per level in each evaluation. The episodes of all evaluations '
      'start in the same way.', POSITIVE, needs=Needs('eval_every_frames'))
  video_num_episodes: int = setting(
      5,
      'Games per level that video mode plays. The videos of the best game and '
      'of the median game are kept.', POSITIVE, COUNT, varies=True)
  video_format: str = setting(
      'mp4',
      'Format of videos. mp4: small files, needs imageio-ffmpeg. gif: large '
      'files, at most 25 pictures a second.', choices=('mp4', 'gif'),
      varies=True)
  video_text: bool = setting(
      False, 'Show the return so far and the action in a corner of videos.',
      varies=True)
  video_secs: float = setting(
      0.,
      'Seconds of training between videos. Another process, at the lowest '
      'priority, plays and records a game of the latest checkpoint. A '
      'checkpoint is recorded once: see --save_checkpoint_secs. 0 for never.',
      NOT_NEGATIVE, FINITE, varies=True)
  export_format: str = setting(
      'auto',
      'Format of the program that export mode writes. saved_model: a '
      'SavedModel. tflite: a SavedModel and a file of TensorFlow Lite, for one '
      'environment and the best known actions. auto: tflite if the network can '
      'be converted, otherwise saved_model.',
      choices=('auto', 'saved_model', 'tflite'), varies=True)
  plot_file: str = setting(
      '',
      'File of the picture that plot mode writes. The ending chooses the '
      'format: .png (also without an ending), .pdf or .svg. If empty, '
      'learning_curves.png in the directory of the run, or '
      'learning_curves_compared.png in the first of several directories.',
      path=True, varies=True)
  plot_num_episodes: int = setting(
      100,
      'Number of episodes per mean: a learning curve shows mean returns of '
      'this many episodes.', POSITIVE, varies=True)
