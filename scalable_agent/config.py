# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run, checked: what `experiment.py`'s flags become.

Every field has the name of its flag; the flag's help text documents it.
"""

import dataclasses
import json
import os
from typing import List, Optional

from scalable_agent import errors
from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30


# What is corrected in unrolls of older policies, see `algorithms.impala`.
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of training and testing; see `experiment.py` for their meaning."""
  # The reference's flags.
  logdir: str
  mode: str
  test_num_episodes: int
  task: int
  job_name: str
  total_environment_frames: int
  num_actors: int
  batch_size: int
  unroll_length: int
  num_action_repeats: int
  seed: int
  entropy_cost: float
  baseline_cost: float
  discounting: float
  reward_clipping: str
  dataset_path: str
  level_name: str
  width: int
  height: int
  learning_rate: float
  decay: float
  momentum: float
  epsilon: float
  # Beyond the reference.
  agent: str
  use_lstm: bool
  use_last_action_reward: bool
  use_instruction: bool
  optimizer: str
  adam_beta1: float
  adam_beta2: float
  clip_gradient_norm: float
  num_actor_groups: int
  queue_capacity: int
  save_checkpoint_secs: float
  save_summaries_secs: float
  progress_secs: float
  test_greedy: bool
  dynamic_batching: Optional[bool]
  xla: str
  compute_dtype: str
  micro_batch_size: int
  repeat_action_probability: float
  full_action_space: bool
  life_loss_ends_episode: bool
  max_noops: int
  fire_on_reset: bool
  max_episode_frames: int
  step_timeout_s: float
  level_cache_dir: str
  bootstrap_truncated: bool
  plot_file: str
  plot_num_episodes: int
  correction: str
  replay_capacity: int
  replay_fraction: float
  min_policy_lag: int

  def __post_init__(self):
    for name in ('test_num_episodes', 'total_environment_frames', 'num_actors',
                 'batch_size', 'unroll_length', 'num_action_repeats', 'width',
                 'height', 'num_actor_groups', 'queue_capacity',
                 'save_checkpoint_secs', 'save_summaries_secs',
                 'progress_secs', 'epsilon', 'max_episode_frames',
                 'step_timeout_s', 'plot_num_episodes'):
      self._check(name, getattr(self, name) > 0, 'must be positive')
    for name in ('seed', 'entropy_cost', 'baseline_cost', 'learning_rate',
                 'momentum', 'clip_gradient_norm', 'micro_batch_size',
                 'max_noops', 'replay_capacity', 'min_policy_lag'):
      self._check(name, getattr(self, name) >= 0, 'must not be negative')
    for name in ('adam_beta1', 'adam_beta2'):
      self._check(name, 0 <= getattr(self, name) < 1,
                  'must be at least 0 and below 1')
    for name in ('max_noops', 'max_episode_frames'):
      self._check(name, getattr(self, name) < 2**31 - 1,
                  'must be below 2**31 - 1')
    for name in ('discounting', 'decay', 'repeat_action_probability',
                 'replay_fraction'):
      self._check(name, 0 <= getattr(self, name) <= 1,
                  'must be between 0 and 1')
    if self.replay_capacity:
      self._check('replay_capacity', self.replay_capacity >= self.batch_size,
                  f'must be 0 or at least --batch_size={self.batch_size}')
      self._check('replay_fraction',
                  0 < self.num_fresh_unrolls < self.batch_size,
                  f'must leave both fresh and replayed unrolls in a batch of '
                  f'--batch_size={self.batch_size}')
    self._check('seed', self.seed < 2**31, 'must be below 2**31')
    self._check('level_name', bool(self.level_names),
                'must name at least one level')
    self._check('logdir', bool(self.logdir), 'must name a directory')
    self._check('task', self.task == -1,
                'must be -1: this version trains on one machine, whose actors '
                'are set by --num_actors and --num_actor_groups')

  def _check(self, name, is_valid, rule):
    if not is_valid:
      raise errors.ConfigError(f'--{name}={getattr(self, name)} {rule}.')

  @property
  def level_names(self) -> List[str]:
    """The levels of `--level_name=A,B,C`, where a suite stands for its own.

    Those of DMLab-30 have their plain names, by which their scores are known.
    """
    suites = {'atari57': atari57.LEVELS,
              'dmlab30': dmlab30.levels(self.is_test)}
    names = [dmlab30.plain_name(n.strip())
             for n in self.level_name.split(',') if n.strip()]
    return [level for name in names for level in suites.get(name, [name])]

  @property
  def logdirs(self) -> List[str]:
    """The directories of `--logdir=A,B,C`, where a mode reads several.

    Raises:
      ConfigError: if there is none.
    """
    logdirs = [n.strip() for n in self.logdir.split(',') if n.strip()]
    self._check('logdir', bool(logdirs), 'must name a directory')
    return logdirs

  @property
  def is_test(self) -> bool:
    """Whether suites and environments are those of tests."""
    return self.mode == 'test'

  @property
  def num_fresh_unrolls(self) -> int:
    """The unrolls of a batch that are trained on for the first time."""
    if not self.replay_capacity:
      return self.batch_size
    return self.batch_size - round(self.batch_size * self.replay_fraction)

  def level_of(self, environment: int) -> str:
    """The level of environment `environment`: `i % n`, as in the reference."""
    return self.level_names[environment % len(self.level_names)]

  def save(self) -> None:
    """Writes `<logdir>/settings.json`: what the latest part was trained with.

    Raises:
      OSError: if it cannot be written.
    """
    path = _settings_path(self.logdir)
    with open(f'{path}.tmp', 'w', encoding='utf-8') as f:
      json.dump(dataclasses.asdict(self), f, indent=1)
    os.replace(f'{path}.tmp', path)


def trained_with(logdir: str) -> Optional[Config]:
  """Returns the settings of the run in `logdir`, None if they are not known."""
  try:
    with open(_settings_path(logdir), encoding='utf-8') as f:
      return Config(**json.load(f))
  except (OSError, TypeError, ValueError):  # Or they are of another version.
    return None


def _settings_path(logdir):
  return os.path.join(logdir, 'settings.json')
