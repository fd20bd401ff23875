# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""All sections of settings, and the checks across sections.

A section is a frozen dataclass of settings, each declared once, with default,
checks and help text. `config.Config` joins all sections. A section can also be
made alone: `EnvironmentSettings(width=64)`. A function that takes a section
also takes a `Config`.

No module of this folder may import TensorFlow: environment processes import
the settings.
"""

from collections.abc import Collection
import dataclasses
import difflib
import fractions
import math
import os
from typing import Any, TypeVar

from scalable_agent import errors
from scalable_agent.settings import acting_settings
from scalable_agent.settings import declare
from scalable_agent.settings import joined
from scalable_agent.settings import lab_levels
from scalable_agent.settings import other_words
from scalable_agent.settings.acting_settings import ActingSettings
from scalable_agent.settings.agent_settings import AgentSettings
from scalable_agent.settings.algorithm_settings import CORRECTIONS
from scalable_agent.settings.algorithm_settings import ImpalaSettings
from scalable_agent.settings.algorithm_settings import OffPolicySettings
from scalable_agent.settings.algorithm_settings import RewardSettings
from scalable_agent.settings.cluster_settings import ClusterSettings
from scalable_agent.settings.cluster_settings import THIS_HOST
from scalable_agent.settings.environment_settings import EnvironmentSettings
from scalable_agent.settings.learner_settings import LearnerSettings
from scalable_agent.settings.replay_settings import ReplaySettings
from scalable_agent.settings.run_settings import RunSettings
from scalable_agent.settings.suite_settings import SuiteSettings
from scalable_agent.settings.test_settings import TestSettings
from scalable_agent.settings.values import names

__all__ = [
    'ActingSettings', 'AgentSettings', 'AllSections', 'ClusterSettings',
    'CORRECTIONS', 'EnvironmentSettings', 'ImpalaSettings',
    'LearnerSettings', 'names_with', 'OffPolicySettings', 'ReplaySettings',
    'RewardSettings', 'RunSettings', 'SECTIONS', 'SuiteSettings',
    'TestSettings']

# Steps that a replay keeps of each environment in addition to an unroll: the
# first entry and the frames of a stack.
_SLOTS_BESIDE_AN_UNROLL = 5

S = TypeVar('S', bound='AllSections')


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllSections(joined.Joined):
  """All sections in one, with checks across sections."""

  def __new__(cls, *unnamed: object, **settings: object) -> 'AllSections':
    if unnamed:
      raise errors.ConfigError(
          'Settings need names, such as Config(level_name='
          f'{unnamed[0]!r:.60}).')
    for name, value in settings.items():
      if text := other_words.of_setting(name, value):
        raise errors.ConfigError(text)
      if name not in cls.__dataclass_fields__:
        near = difflib.get_close_matches(name, cls.__dataclass_fields__, n=1)
        raise errors.ConfigError(f'There is no setting {name}' + (
            f': did you mean {near[0]}?' if near else '. --helpfull has all.'))
    return super().__new__(cls)

  def __post_init__(self) -> None:
    self._convert()
    for name in names_with('path'):
      path = getattr(self, name)
      if isinstance(path, str) and '~' in path:
        object.__setattr__(self, name, ','.join(
            os.path.expanduser(part.strip()) for part in path.split(',')))
    self._set_cluster()
    if self.algorithm == 'appo':
      self._set_collection()
    super().__post_init__()
    self._check('logdir', not self.logdir.startswith('~'),
                'names a user that this machine does not have')
    self._check('logdir', len(self.logdirs) == 1 or self.mode in (
        'table', 'plot'), f'must be one directory with --mode={self.mode}')
    if self.is_off_policy:
      self._check_sequences()
      least = self.num_actors * (self.unroll_length + _SLOTS_BESIDE_AN_UNROLL)
      self._check('replay_steps', self.replay_steps >= least,
                  f'must be at least {least}, for --num_actors='
                  f'{self.num_actors} unrolls of {self.unroll_length} steps')
    self._check_deterministic()
    if self.inference != 'local':
      self._check('dynamic_batching', self.dynamic_batching is not False,
                  f'cannot be off with --inference={self.inference}')
      self._check('pack', self.pack == 'auto',
                  f'cannot be used with --inference={self.inference}')
    if self.algorithm == 'appo':
      self._check_collection()
    self._check('entropy_cost', self.algorithm == 'appo' or not (
        self.entropy_cost == -1), 'must not be negative')
    self._check('learning_rate_schedule', self.algorithm == 'appo' or (
        self.learning_rate_schedule != 'kl'), 'needs --algorithm=appo')
    self._check_learners()
    self._check_task()
    self._check('num_actor_workers', self.mode != 'train' or (
        self.num_actor_workers <= self.num_actors),
                f'must be at most --num_actors={self.num_actors}')
    if not self.replay_capacity:
      self._check('selector', self.is_off_policy or self.selector == 'uniform',
                  'needs --replay_capacity')
      return
    self._check('replay_capacity', self.replay_capacity >= self.batch_size,
                f'must be 0 or at least --batch_size={self.batch_size}')
    self._check('max_use', not (self.max_use and self.is_recent),
                'cannot be used with --selector=recent')
    if self.unrolls_per_collect:
      self._check('unrolls_per_collect',
                  self.unrolls_per_collect <= self.replay_capacity,
                  f'must be at most --replay_capacity={self.replay_capacity}')
      for name in ('normalise_observations', 'normalise_returns'):
        self._check(name, getattr(self, name) in ('none', False),
                    'cannot be used with --unrolls_per_collect')
      return
    self._check('replay_fraction', 0 < self.num_fresh_unrolls < self.batch_size,
                f'must leave both fresh and replayed unrolls in a batch of '
                f'--batch_size={self.batch_size}')

  def _check_deterministic(self) -> None:
    """Checks that nothing hinders a run from being repeated."""
    not_repeated = lab_levels.not_repeated(
        names(self.level_name) if self.deterministic else ())
    self._check('deterministic', not not_repeated or self.mode != 'train',
                f'cannot be used with {", ".join(not_repeated)}: no seed '
                'repeats a lasertag level of DeepMind Lab, since the bots plan '
                'routes by the clock')
    self._check('deterministic',
                not self.deterministic or 1 == (
                    self.num_actor_groups or self.usual_groups),
                'needs --num_actor_groups=1')
    self._check('deterministic', not (self.deterministic and self.ray_address),
                'cannot be used with --ray_address')
    self._check('save_replay',
                not self.deterministic or self.save_replay != 'no',
                'cannot be used with --deterministic: a resumed run needs the '
                'replay')

  def _set_cluster(self) -> None:
    """Sets the defaults of `--task` without flags of the cluster."""
    if self.mode != 'train' or not isinstance(self.task, int) or self.task < 0:
      return
    if self.ray_address == '':
      object.__setattr__(self, 'ray_address', THIS_HOST)
    if self.job_name == 'learner' and self.num_actor_workers == 0:
      object.__setattr__(self, 'num_actor_workers', self.num_actors)

  @property
  def usual_groups(self) -> int:
    """The number of groups of a level with quick resets."""
    if self.is_off_policy:
      return acting_settings.OFF_POLICY_GROUPS
    return (acting_settings.LAB_GROUPS if self.plays_lab
            else acting_settings.USUAL_GROUPS)

  def _check_learners(self) -> None:
    """Checks that work can be divided among several learners."""
    if self.mode != 'train' or not self.num_actors:  # Refused for learners.
      return
    if self.num_learners == 1:
      self._check('collectives', self.collectives == 'tensorflow',
                  'has no effect without --num_learners')
      return
    for name in names_with('divided', 'exactly'):
      self._check('num_learners', getattr(self, name) % self.num_learners == 0,
                  f'must divide --{name}={getattr(self, name)}')
    self._check('num_learners', not self.exact_temperature,
                'cannot be used with --exact_temperature, which needs the '
                'whole batch')
    num_workers = self.num_actor_workers or self.num_actors
    self._check('num_learners', self.num_learners <= num_workers,
                'must not exceed --num_actor_workers and --num_actors')
    try:
      part = self.of_learner(-(-self.num_actors // self.num_learners))
    except errors.ConfigError as e:
      raise errors.ConfigError(
          f'Each of --num_learners={self.num_learners} learners: {e}') from e
    self._check('replay_fraction', self.num_fresh_unrolls == (
        self.num_learners * part.num_fresh_unrolls), 'must leave the same '
        'number of fresh unrolls in the batch of each learner')

  def _check_task(self) -> None:
    """Checks the settings of commands on several hosts."""
    if self.mode != 'train':
      return
    if self.task == -1:
      self._check('job_name', self.job_name == 'learner',
                  'needs --task, another number for each actor')
      return
    self._check('task', ':' in self.ray_address,
                'needs --ray_address=HOST:PORT, where HOST is the learner')
    if self.job_name == 'learner':
      self._check('task', self.task == 0, 'must be 0 for the only '
                  '--job_name=learner; --num_learners is for several')

  def _check_sequences(self) -> None:
    """Checks the settings of off-policy learning with and without an LSTM."""
    if not self.use_lstm:
      for name in ('burn_in_steps', 'use_last_action_reward',
                   'memory_learning_rate'):
        self._check(name, not getattr(self, name), 'needs --use_lstm')
      self._check_unset('sequence_length', True, 'needs --use_lstm')
      self._check('use_instruction', self.use_instruction,
                  'has no effect without --use_lstm')
      return
    self._check('n_step', self.n_step <= self.sequence_length,
                f'must be at most --sequence_length={self.sequence_length}')
    self._check('hindsight', self.hindsight == 'none',
                'cannot be used with --use_lstm: the LSTM has seen the goal of '
                'the episode')
    least = self.num_actors * (
        self.num_entries + self.unroll_length + _SLOTS_BESIDE_AN_UNROLL)
    self._check('replay_steps', self.replay_steps >= least,
                f'must be at least {least}, for sequences of '
                f'{self.num_entries} entries in each of --num_actors='
                f'{self.num_actors} environments')

  @property
  def num_entries(self) -> int:
    """The number of entries of a sequence, for agents with memory."""
    return declare.used(self.burn_in_steps) + self.sequence_length + 1

  @property
  def plays_lab(self) -> bool:
    """Whether a level is one of DeepMind Lab: groups mostly wait for maps."""
    return any(map(lab_levels.is_level, names(self.level_name)))

  def check_used(self, names: Collection[str]) -> None:
    """Raises ConfigError if algorithm or mode do not use one of the settings.

    The constructor accepts an unused setting with its default value.
    """
    for field in dataclasses.fields(self):
      if field.name in names and not self._is_used(field):
        self._refuse_unused(field)
      needs: declare.Needs | None = field.metadata['needs']
      self._check(field.name, field.name not in names or not needs
                  or needs.name != 'mode' or self.mode in needs.values,
                  f'has no effect without {needs}')

  def _has_effect(self, field: dataclasses.Field[declare.Value]) -> bool:
    needs: declare.Needs | None = field.metadata['needs']
    return self._is_used(field) and (
        not needs or needs.are_met(
            getattr(self, needs.name), self.algorithm))

  @property
  def logdirs(self) -> list[str]:
    """The directories of `--logdir=A,B,C`, for modes that read several."""
    return names(self.logdir)

  @property
  def num_fresh_unrolls(self) -> int:
    """The number of unrolls in a batch that are new to the learner."""
    if not self.replay_capacity:
      return self.batch_size
    return self.batch_size - round(self.batch_size * self.replay_fraction)

  @property
  def num_warm_up_steps(self) -> int:
    """Agent steps of the warm-up: with an LSTM, a sequence per environment."""
    return max(declare.used(self.min_replay_steps),
               self.num_actors * self.num_entries if self.use_lstm else 0)

  @property
  def num_first_frames(self) -> int:
    """Environment frames that all learners collect before the first update."""
    num_unrolls = self.num_fresh_unrolls
    if self.unrolls_per_collect:  # Collections, until there is a batch.
      num_unrolls = self.unrolls_per_collect * math.ceil(
          self.batch_size / self.unrolls_per_collect)
    num_steps = (self.num_warm_up_steps if self.is_off_policy
                 else num_unrolls * self.unroll_length)
    return num_steps * self.num_action_repeats

  @property
  def learners_share_a_machine(self) -> bool:
    """Whether all learners run on the machine of the driver."""
    return self.task >= 0 or self.ray_address == 'local'

  def of_learner(self: S, num_environments: int) -> S:
    """Returns the settings of one of `num_learners` learners.

    The learner has a share of the batch, of the replay and of the environments.
    All learners make the same updates, so a learner makes more updates for each
    step of its own `num_environments` environments.
    """
    size = self.num_learners
    changes: dict[str, Any] = {
        field.name: max(getattr(self, field.name) // size, 1)
        for field in dataclasses.fields(self)
        if field.metadata['divided'] and self._has_effect(field)
        and getattr(self, field.name)}
    if self.is_off_policy:
      # Exact for decimal fractions, like `replay.Rate`.
      changes['updates_per_step'] = float(
          fractions.Fraction(str(self.updates_per_step)) * size)
    return dataclasses.replace(
        self, task=-1, num_learners=1, collectives='tensorflow',
        num_actor_workers=0,
        num_actors=num_environments, **changes)


# In the order of --helpfull.
SECTIONS = joined.Joined.__bases__


def names_with(fact: str, value: object = True) -> list[str]:
  """Returns the settings whose `fact` of `declare.Facts` has the value."""
  return list(dict.fromkeys(
      field.name for section in SECTIONS
      for field in dataclasses.fields(section)
      if field.metadata[fact] == value))
