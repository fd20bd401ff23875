# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of a run: directory, level, length and reports."""

import dataclasses

from scalable_agent.settings import lab_levels
from scalable_agent.settings.declare import AT_LEAST_MINUS_ONE
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import DIRECTORIES
from scalable_agent.settings.declare import IS_FUNCTION
from scalable_agent.settings.declare import IS_LOCAL
from scalable_agent.settings.declare import IS_SEED
from scalable_agent.settings.declare import LEVELS
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(Section):
  """The run: its directory and level, its length, and its reports."""
  logdir: str = setting(
      '/tmp/agent',
      'Directory of checkpoints, learning curves and scores. If the directory '
      'has a checkpoint, training resumes from there.', DIRECTORIES, IS_LOCAL,
      path=True, unreported=True, varies=True)
  level_name: str = setting(
      'ALE/Pong-v5',
      'Environment to play: an id of gymnasium, such as CartPole-v1, '
      'ALE/Pong-v5, MinAtar/Breakout-v1, BabyAI-GoToObj-v0 or '
      'dm_control/walker-walk-v0; module:id, such as my_levels:Corridor-v0, '
      'for an environment of your own; envpool:ID; a level of DeepMind Lab; a '
      'toy, such as catch, memory, pattern or target; atari57 or dmlab30 for '
      'all levels of that name, with one agent for all (--suite has one agent '
      'for each level); or a list A,B,C of names. With '
      'DeepMind Lab installed, the default of impala on the command line is '
      f'{lab_levels.DEFAULT}. '
      'Environment i plays level i % n of the n levels.', LEVELS)
  allow_other_task: bool = setting(
      False,
      'Resume from a checkpoint that was trained on another level, or with '
      'other arguments of the environment, action repeats, frame sizes or '
      'rules of Atari games. Without this flag, such a change is an error.',
      unreported=True, varies=True)
  total_environment_frames: int = setting(
      By({'impala': 1_000_000_000, 'appo on Atari': 10_000_000,
          'others': 1_000_000}),
      'Environment frames (agent steps x action repeats) of the whole '
      'training.', POSITIVE)
  seed: int = setting(
      1,
      'Seed of network weights, actions and environments. Two runs with the '
      'same seed begin with equal weights and environments, but differ later '
      'because the order of threads is random; see --deterministic.',
      NOT_NEGATIVE, IS_SEED, varies=True)
  task: int = setting(
      -1,
      'Number of this command, if the learner and the actors are commands of '
      'their own: 0 for the learner, any number for an actor. On several '
      'hosts, with --ray_address=HOST:PORT of the learner, an actor is a host. '
      'Without --ray_address, all commands are on this host, and an actor is '
      "one environment, as in DeepMind's program. -1 if one command starts all "
      'processes.',
      AT_LEAST_MINUS_ONE, unreported=True)
  job_name: str = setting(
      'learner',
      'Role of this command if --task is not -1: learn, or act for the '
      'learner.',
      choices=('learner', 'actor'), unreported=True)
  save_checkpoint_secs: float = setting(
      60.,
      'Seconds between checkpoints. A run that is killed without warning loses '
      'the training since its last checkpoint. Deterministic runs use '
      '--save_checkpoint_frames instead.', POSITIVE, unless='deterministic',
      varies=True)
  save_summaries_secs: float = setting(
      30., 'Seconds between TensorBoard summaries.', POSITIVE,
      varies=True)
  progress_secs: float = setting(
      10., 'Seconds between printed lines of progress.', POSITIVE,
      varies=True)
  log_episodes: bool = setting(
      False,
      "Print the lines of DeepMind's program: for each finished episode of a "
      'training "Level: NAME Episode return: NUMBER", and for each level of a '
      'test "Mean episode return: NUMBER".', unreported=True, varies=True)
  hook: str = setting(
      '',
      'module:function: your function, which is called with each TensorBoard '
      'summary. The arguments are the frames so far and a dictionary of the '
      'numbers of the summary. An error in the function ends the run, with a '
      'checkpoint. A class is called with the Config, and its method close at '
      'the end of the run. scalable_agent.hooks:wandb and '
      'scalable_agent.hooks:mlflow send a run to Weights & Biases and MLflow.',
      IS_FUNCTION)
  debug: bool = setting(
      False, 'Print the whole traceback of an error.', unreported=True,
      varies=True)
