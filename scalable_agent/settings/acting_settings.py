# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of acting: environments, threads and unrolls."""

import dataclasses

from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting

# Groups of environments with quick resets: of DeepMind Lab, of other levels,
# and of off-policy algorithms.
LAB_GROUPS, USUAL_GROUPS, OFF_POLICY_GROUPS = 64, 2, 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActingSettings(Section):
  """Acting: environments, threads and unrolls."""
  num_actors: int = setting(
      4,
      'Number of environments. --num_actor_groups threads step all '
      "environments. The name is from DeepMind's code, where every actor has "
      'one environment. auto (or 0): measure this machine, the level and the '
      'network for up to a minute, and choose this number and '
      '--num_actor_groups, --environments_per_process, --micro_batch_size and '
      '--xla where these flags are not set. A resumed run keeps the choice.',
      NOT_NEGATIVE, COUNT, automatic=True)
  max_policy_lag: float = setting(
      By({'impala': 20., 'appo': 20., 'others': 128.}),
      'For --num_actors=auto: choose so few environments that an unroll is '
      'expected to be at most this many updates older than the weights.',
      POSITIVE)
  num_actor_groups: int = setting(
      By({'impala on DeepMind Lab': LAB_GROUPS,
          'appo on DeepMind Lab': LAB_GROUPS, 'module:id': 0,
          '--num_actors=auto': 0, 'impala': USUAL_GROUPS, 'appo': USUAL_GROUPS,
          'others': OFF_POLICY_GROUPS}),
      'Number of threads that act. The environments are divided among the '
      'threads, so there are never more groups than environments. While one '
      'group steps its environments, another group can run the policy. All '
      'environments of a group wait while an environment of the group compiles '
      'a map (DeepMind Lab). auto (or 0): as many as fit the measured times '
      'with --num_actors=auto; else the default of other levels, but a group '
      'for each environment (at most 64) if resets are slow in a short trial '
      'of the level. No trial with --ray_address, --deterministic, Atari or '
      'EnvPool; a resumed run keeps its groups.',
      NOT_NEGATIVE, COUNT, automatic=True)
  unroll_length: int = setting(
      By({'impala': 100, 'appo on Atari': 64, 'appo': 64, 'ddqn with LSTM': 20,
          'off-policy with LSTM': 10, 'Atari': 16, 'others': 2}),
      'Agent steps per unroll. Sequences of an off-policy algorithm with '
      '--use_lstm begin where unrolls begin.', POSITIVE, COUNT)
  queue_capacity: int = setting(
      1,
      'Number of entries of the queue to the learner. One entry holds the '
      'unrolls of all environments of a group. More entries mean more policy '
      'lag. Cannot be set with --deterministic.', POSITIVE, COUNT,
      unless='deterministic')
  dynamic_batching: bool | None = setting(
      None,
      'Run the policy steps of all groups of environments together, in one '
      'batch. If not set: on with four or more groups of fewer than four '
      'environments each, and with 64 or more groups.', automatic=True)
  overlap: bool = setting(
      False,
      'Act while the learner learns: more steps a second, but from older '
      'policies. If off, acting and learning take turns. With --ray_address, '
      'acting and learning always overlap.', algorithms=('appo',),
      unless='deterministic')
  deterministic: bool = setting(
      False,
      'Make a run that can be repeated bit for bit on the same machine, even '
      'if the run is killed and resumed. Acting and learning take turns: an '
      'unroll begins after all updates that are due. After each checkpoint, '
      'environments restart, replays of unrolls are empty, and the program '
      'compiles again; see --save_checkpoint_frames. Slower. Needs '
      '--num_actor_groups=1. Not for lasertag levels of DeepMind Lab: no seed '
      'repeats these levels.')
  save_checkpoint_frames: int = setting(
      0,
      'Environment frames between checkpoints of a deterministic run. 0: a '
      'tenth of --total_environment_frames, and at most a million.',
      NOT_NEGATIVE, needs=Needs('deterministic'))
  min_policy_lag: int = setting(
      0,
      'For experiments: act with weights that are this many calls of the '
      'learner old (see --updates_per_call); the initial weights act until '
      'then. Queues add more lag.', NOT_NEGATIVE)
