# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""All sections of settings in one class; the sizes of appo's collections."""

import dataclasses

from scalable_agent.settings import declare
from scalable_agent.settings.acting_settings import ActingSettings
from scalable_agent.settings.agent_settings import AgentSettings
from scalable_agent.settings.algorithm_settings import ImpalaSettings
from scalable_agent.settings.algorithm_settings import OffPolicySettings
from scalable_agent.settings.cluster_settings import ClusterSettings
from scalable_agent.settings.environment_settings import EnvironmentSettings
from scalable_agent.settings.learner_settings import LearnerSettings
from scalable_agent.settings.replay_settings import ReplaySettings
from scalable_agent.settings.run_settings import RunSettings
from scalable_agent.settings.suite_settings import SuiteSettings
from scalable_agent.settings.test_settings import TestSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class Joined(
    RunSettings, EnvironmentSettings, AgentSettings,
    ActingSettings, ClusterSettings, LearnerSettings,
    ImpalaSettings, OffPolicySettings,
    ReplaySettings, TestSettings, SuiteSettings):
  """All sections in one, with checks of collections."""

  @property
  def takes_turns(self) -> bool:
    """Whether unrolls begin only when no update is due."""
    return self.deterministic or self.algorithm == 'appo' and not (
        self.overlap or self.ray_address)

  @property
  def num_unroll_buffers(self) -> int:
    """Unrolls that each environment may have in memory at a time."""
    return 1 if self.takes_turns else self.queue_capacity + 1

  def can_call(self, num_updates: int) -> bool:
    """Returns whether so many updates of appo fit into a call of the learner.

    Each collection, and each copy to the target policy, begins with a call.
    """
    if num_updates == 1:
      return True
    per_pass = self.unrolls_per_collect // self.batch_size
    return (not self.replay_capacity
            and not 0 < self.micro_batch_size < self.batch_size
            and not declare.used(self.passes) * per_pass % num_updates
            and not (per_pass % num_updates and num_updates % per_pass)
            and not self.target_policy_period % num_updates)

  def _set_collection(self) -> None:
    """Sets the defaults of the sizes of appo's collection and batch."""
    size, parts = self.unrolls_per_collect or self.num_actors, self.num_learners
    if not (isinstance(size, int) and isinstance(parts, int) and parts > 0):
      return  # An error, which the checks of types say.
    if not self.replay_capacity:
      object.__setattr__(self, 'unrolls_per_collect', size)
    batch_size: int | None = self.batch_size  # None until set here.
    if batch_size is None:
      sizes = [b for b in range(parts, size // 4 + 1, parts) if not size % b]
      object.__setattr__(self, 'batch_size', max(sizes, default=parts))

  def _check_collection(self) -> None:
    """Checks that passes over a collection come out even."""
    if self.replay_capacity:
      self._check('unrolls_per_collect', not self.unrolls_per_collect,
                  'cannot be used with --replay_capacity')
      self._check('target_policy_period', self.target_policy_period > 0,
                  'must be at least 1 with --replay_capacity')
    # Right after a copy the KL is 0, and with a ring each update would count.
    self._check('learning_rate_schedule', self.learning_rate_schedule != 'kl'
                or not (self.replay_capacity or self.target_policy_period == 1),
                'cannot be used with --replay_capacity or '
                '--target_policy_period=1: the rate would rise again and again')
    self._check('unrolls_per_collect',
                self.unrolls_per_collect % self.batch_size == 0,
                f'must be a multiple of --batch_size={self.batch_size}; by '
                'default, --unrolls_per_collect is --num_actors')
    self._check('normalise_advantages', not self.normalise_advantages or (
        self.num_learners == 1 and self.micro_batch_size in (
            0, self.batch_size)),
                'needs the whole batch at once: leave out --num_learners and '
                '--micro_batch_size, or add --nonormalise_advantages')
    self._check('updates_per_call', self.can_call(self.updates_per_call or 1),
                'must divide the updates of all --passes and '
                '--target_policy_period, and be a divisor or a multiple of the '
                'updates of one pass; neither --replay_capacity nor '
                '--micro_batch_size can be used')
    self._check('overlap', not (self.overlap and self.ray_address),
                'has no effect with --ray_address: acting and learning overlap')
    if self.takes_turns:
      self._check('unrolls_per_collect', self.mode != 'train' or (
          not self.num_actors
          or self.unrolls_per_collect % self.num_actors == 0),
                  f'must be a multiple of --num_actors={self.num_actors}, or '
                  'use --overlap')
      for name, value in (('queue_capacity', 1), ('min_policy_lag', 0)):
        self._check(name, getattr(self, name) == value, 'needs --overlap')
