# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run, each declared once: default, checks and help text.

A section is a frozen dataclass of settings; `config.Config` is all sections in
one. A section can also be made alone: `EnvironmentSettings(width=64)`. A
function that takes a section also takes a `Config`.

This module must not import TensorFlow: environment processes import it.
"""

from collections.abc import Collection
import dataclasses
import math

from scalable_agent import errors
from scalable_agent.settings.declare import ALE_COUNT
from scalable_agent.settings.declare import ALGORITHMS
from scalable_agent.settings.declare import AT_LEAST_MINUS_ONE
from scalable_agent.settings.declare import BELOW_ONE
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import CONTINUOUS
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import DIRECTORIES
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import IS_AGENT
from scalable_agent.settings.declare import IS_FUNCTION
from scalable_agent.settings.declare import IS_LOCAL
from scalable_agent.settings.declare import IS_SCALE
from scalable_agent.settings.declare import IS_SEED
from scalable_agent.settings.declare import LEVELS
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import OFF_POLICY
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import setting
from scalable_agent.settings.declare import SIZES

# Their targets can move in every n-th update.
_WITH_PERIOD = ('ddqn', 'sac', 'mpo')
# Corrections for unrolls of older policies, see `algorithms.impala`.
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')

_PRIORITISED = Needs('selector', ('prioritised', 'recent_prioritised'))
_RECENT = Needs('selector', ('recent', 'recent_prioritised'))
_VTRACE = Needs('correction', ('vtrace',))
_RMSPROP = Needs('optimizer', ('rmsprop', 'torch_rmsprop'))
_ADAM = Needs('optimizer', ('adam',))
_HINDSIGHT = Needs('hindsight', ('future', 'final', 'episode'))
_REPLAY = Needs('replay_capacity')
_COLLECTIONS = Needs('unrolls_per_collect')
_RAY = Needs('ray_address')


# For each type of setting, the types of its values.
_ACCEPTED_TYPES: dict[object, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int,), float: (float, int),
    bool | None: (bool, type(None))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Section:
  """What all sections share; checks the settings."""
  mode: str = setting(
      'train',
      'What to do. train: train an agent. test: play whole games with the '
      'latest checkpoint and make a table of scores beside published ones. '
      'table: make one table of the tests in --logdir=A,B,C, which names '
      'directories (their latest tests) or files of tests. plot: draw the '
      'learning curves of --logdir=A,B,C. video: make films of the latest '
      'checkpoint, in the directory videos of --logdir. export: write the '
      'latest checkpoint as a program of TensorFlow, in the directory export '
      'of --logdir.',
      choices=('train', 'test', 'table', 'plot', 'video', 'export'))
  algorithm: str = setting(
      'impala',
      'How the agent learns. impala: from unrolls as they come, for all '
      'actions. ddqn: for discrete actions. ddpg, td3: for continuous '
      'actions. sac, mpo: for both. The last five learn from a replay.',
      choices=ALGORITHMS)

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      value, default = getattr(self, field.name), field.metadata['default']
      if self._is_used(field):
        if value is None and isinstance(default, By):
          object.__setattr__(self, field.name, default.of(self))
        self._check_field(field)
      elif value != field.default:
        self._refuse_unused(field)
    for field in dataclasses.fields(self):
      self._check_needs(field)

  def check_used(self, names: Collection[str]) -> None:
    """Raises ConfigError if the algorithm does not use one of the settings.

    Otherwise, those that have the values of their defaults pass.
    """
    for field in dataclasses.fields(self):
      if field.name in names and not self._is_used(field):
        self._refuse_unused(field)

  def _is_used(self, field: dataclasses.Field) -> bool:
    used_by = field.metadata['algorithms']
    return used_by == ALGORITHMS or self.algorithm in used_by

  def _refuse_unused(self, field: dataclasses.Field) -> None:
    self._check(
        field.name, False,
        f'is not used by --algorithm={self.algorithm}: leave it out. It is '
        f'a setting of {", ".join(field.metadata["algorithms"])}')

  @property
  def is_test(self) -> bool:
    """Whether suites and environments are those of tests.

    In tests, DeepMind Lab plays the levels and the seeds that are held out from
    training.
    """
    return self.mode in ('test', 'video')

  @property
  def is_filmed(self) -> bool:
    """Whether environments show pictures, beside their observations."""
    return self.mode == 'video'

  @property
  def is_off_policy(self) -> bool:
    """Whether the algorithm learns from transitions of a replay."""
    return self.algorithm in OFF_POLICY

  def check_actions(self, kind: str) -> None:
    """Raises ConfigError for what was set for the other kind of actions.

    Args:
      kind: continuous or discrete.
    """
    for field in dataclasses.fields(self):
      self._check_unset(field, field.metadata['actions'] not in ('', kind),
                        f'has no effect with {kind} actions')

  def _check_field(self, field: dataclasses.Field) -> None:
    types = _ACCEPTED_TYPES[field.type]
    value = getattr(self, field.name)
    # A bool is an int to Python, but batch_size=True is a mistake.
    is_type = isinstance(value, types) and (
        bool in types or not isinstance(value, bool))
    self._check(field.name, is_type,
                f'must be of type {" or ".join(t.__name__ for t in types)}')
    if field.type is float:
      self._check(field.name, value == value, 'must be a number')
      # To never do something is a wish that can be fulfilled.
      self._check(field.name, math.isfinite(value) or field.name.endswith(
          ('_secs', '_s')), 'must be finite')
    for is_valid, rule in field.metadata['checks']:
      self._check(field.name, is_valid(value), rule)

  def _check_needs(self, field: dataclasses.Field) -> None:
    needs: Needs | None = field.metadata['needs']
    if needs:
      self._check_unset(field, not needs.are_met(getattr(self, needs.name)),
                        f'has no effect without {needs}')
    if other := field.metadata['unless']:
      self._check_unset(
          field, bool(getattr(self, other)), f'has no effect with --{other}')

  def _check_unset(self, field: dataclasses.Field, has_no_effect: bool,
                   rule: str) -> None:
    default = field.metadata['default']
    defaults = default.values() if isinstance(default, By) else [default]
    self._check(field.name, not has_no_effect or getattr(self, field.name) in (
        *defaults, field.default), rule)

  def _check(self, name: str, is_valid: bool, rule: str) -> None:
    if not is_valid:
      raise errors.ConfigError(f'--{name}={getattr(self, name)} {rule}.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(_Section):
  """What to run, for how long, and how often to report."""
  logdir: str = setting(
      '/tmp/agent',
      'Directory of checkpoints, curves and scores. If it has a checkpoint, '
      'training goes on from there.', DIRECTORIES, IS_LOCAL)
  level_name: str = setting(
      'ALE/Pong-v5',
      'What to play: a gymnasium id (also of MiniGrid, BabyAI, ViZDoom or '
      'Gymnasium-Robotics), a level of DeepMind Lab, a toy such as catch; one '
      'of the suites dmlab30 and atari57; or a list A,B,C of these. '
      'Environment i plays level i % n of the n levels.', LEVELS)
  allow_other_task: bool = setting(
      False,
      'Go on from a checkpoint that was trained on another level, or with '
      'other action repeats, frames or rules of Atari games. Otherwise that is '
      'an error.')
  total_environment_frames: int = setting(
      By(impala=1_000_000_000, others=1_000_000),
      'Environment frames (agent steps x action repeats) to train for.',
      POSITIVE)
  seed: int = setting(
      1, 'Seed of weights, actions and environments. Two runs with the same '
      'seed begin with the same weights and environments, but differ later, as '
      'threads take turns by chance: see --deterministic.', NOT_NEGATIVE,
      IS_SEED)
  task: int = setting(
      -1, 'Task id, for commands that are started by hand on several hosts, '
      'with --ray_address=HOST:PORT of the learner: 0 for the learner, any '
      'other number for an actor. -1 for one command.', AT_LEAST_MINUS_ONE)
  job_name: str = setting(
      'learner', 'What this host does: learn, or act for the learner. It has '
      'no effect when the task is -1.', choices=('learner', 'actor'))
  save_checkpoint_secs: float = setting(
      600., 'Seconds between checkpoints. With --deterministic, see '
      '--save_checkpoint_frames.', POSITIVE)
  save_summaries_secs: float = setting(
      30., 'Seconds between TensorBoard summaries.', POSITIVE)
  progress_secs: float = setting(
      10., 'Seconds between lines of progress.', POSITIVE)
  hook: str = setting(
      '',
      'module:function: a function of yours that is called with the frames so '
      'far and a dictionary of numbers, those that TensorBoard gets, each time '
      'when it gets them. An error of it ends the run with a checkpoint.',
      IS_FUNCTION)
  debug: bool = setting(
      False, 'Print all frames of the stack of an error.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentSettings(_Section):
  """How environments are made. The defaults are the paper's for training."""
  num_action_repeats: int = setting(
      By({'Atari or DeepMind Lab': 4, 'others': 1}),
      'Environment frames per agent step: each action is repeated this many '
      'times, and the rewards are summed. An Atari observation is the maximum '
      'over the last two frames of a step; with 1, there is only one.',
      POSITIVE)
  width: int = setting(
      96, 'DeepMind Lab (multiples of 4) and ViZDoom: width of the frames in '
      'pixels.', POSITIVE)
  height: int = setting(
      72, 'DeepMind Lab (multiples of 4) and ViZDoom: height of the frames in '
      'pixels.', POSITIVE)
  repeat_action_probability: float = setting(
      0.,
      'Atari: probability that the emulator repeats the last action (sticky '
      'actions). Machado et al. use 0.25.', FRACTION)
  full_action_space: bool = setting(
      False,
      'Atari: use all 18 actions, not only those of the game. An agent that '
      'plays games with different actions needs it.')
  life_loss_ends_episode: bool = setting(
      True,
      'Atari: a lost life ends the episode for the learner, but returns are '
      'those of whole games. In test mode, a lost life never ends an episode.')
  max_noops: int = setting(
      30,
      'Atari: a game begins with 0 to this many frames without action.',
      NOT_NEGATIVE, ALE_COUNT)
  fire_on_reset: bool = setting(
      False, 'Atari: press FIRE at the start of a game that has it, in place '
      'of one of the frames without action.')
  max_episode_frames: int = setting(
      108_000, 'Atari: a game is cut off after this many frames.',
      POSITIVE, ALE_COUNT)
  environments_per_process: int = setting(
      1,
      'Environments that share a process and are stepped one after the other. '
      'Several are meant for environments whose steps take very little time: '
      'CartPole was faster with them. Atari games run in threads instead.',
      POSITIVE)
  step_timeout_s: float = setting(
      300.,
      'Seconds that an environment process may take to step; if it takes '
      'longer, it counts as hung. It may take 30 more for each environment per '
      'core at the start, and in each step of DeepMind Lab, which may compile '
      'a map.', POSITIVE)
  max_environment_restarts: int = setting(
      10,
      'How often within an hour processes of environments that die or hang are '
      'replaced, with the unroll that they were in; after that, the run ends '
      'with a checkpoint. With --ray_address, so often is each worker replaced '
      'since one of its environments raised an error; three errors without an '
      'unroll in between end the run. With --deterministic, nothing is '
      'replaced; nor is the process that computes rewards for --hindsight.',
      NOT_NEGATIVE)
  dataset_path: str = setting(
      '',
      'DeepMind Lab: directory of the images that two psychlab levels need.',
      IS_LOCAL)
  level_cache_dir: str = setting(
      '',
      'DeepMind Lab: directory where compiled maps are kept. It grows with '
      'every new map. If empty, maps are not kept.', IS_LOCAL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentSettings(_Section):
  """The network, and how it is computed."""
  agent: str = setting(
      'auto',
      "Network. deep: the reference's ResNet. shallow: the paper's small "
      "network. nature: DQN's network of 2015, three convolutions. mlp: dense "
      'layers, for vectors and tiny images. auto: mlp if observations are not '
      'frames (three axes); for frames, deep with IMPALA, and nature with the '
      'other algorithms (deep if a side has less than 36 pixels). '
      'module:function: what a function of yours makes, see '
      'docs/new_network.md.', IS_AGENT)
  hidden_sizes: str = setting(
      By(impala='64,64', others='256,256'),
      'Units of the dense layers of mlp, of critics of continuous actions, and '
      'of networks for frames that also see something else.', SIZES)
  layer_norm: bool = setting(
      False, 'The first of the layers of --hidden_sizes is normalised and has '
      "tanh, and the others have ELU instead of ReLU, as in acme's networks. "
      'With frames and continuous actions, only critics have such layers.',
      algorithms=OFF_POLICY)
  use_lstm: bool = setting(
      By(impala=True, others=False), 'The agent has an LSTM of 256 units.',
      algorithms=('impala', 'ddqn'))
  use_last_action_reward: bool = setting(
      By(impala=True, others=False),
      'The agent sees its last action and its last (clipped) reward. ddqn '
      'needs --use_lstm for it.', algorithms=('impala', 'ddqn'))
  use_instruction: bool = setting(
      True, 'The agent sees the instruction, in levels that have one. ddqn '
      'needs --use_lstm for it.', algorithms=('impala', 'ddqn'))
  compute_dtype: str = setting(
      'float32',
      'Type in which the networks multiply. bfloat16 is meant for GPUs that '
      'support it, where it was never run; on a CPU it is slower. Weights, the '
      'state of the LSTM, V-trace and losses are always float32.',
      choices=('float32', 'bfloat16'))
  xla: str = setting(
      'auto',
      'What XLA compiles. none: nothing. policy: the policy steps. all: the '
      'policy steps and the updates. auto: with an mlp on a CPU policy, or all '
      'for ddqn; none otherwise. XLA never compiles policy steps that groups '
      'share (--dynamic_batching).',
      choices=('auto', 'none', 'policy', 'all'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActingSettings(_Section):
  """How experience is made."""
  num_actors: int = setting(
      4,
      'Number of environments. In the reference every actor has one '
      'environment, hence the name. Here --num_actor_groups threads step them.',
      POSITIVE, COUNT)
  num_actor_groups: int = setting(
      By(impala=2, others=1),
      'Number of threads that act. The environments are divided among them, so '
      'there are never more groups than environments. While one group steps '
      'its environments, another one can run the policy.', POSITIVE, COUNT)
  unroll_length: int = setting(
      By({'impala': 100, 'ddqn with LSTM': 20, 'Atari': 16, 'others': 2}),
      'Agent steps per unroll.', POSITIVE, COUNT)
  queue_capacity: int = setting(
      1,
      'Number of places for unrolls that wait for the learner. One place holds '
      'the unrolls of all environments of a group. More places mean more '
      'policy lag. It cannot be set with --deterministic.', POSITIVE, COUNT)
  dynamic_batching: bool | None = setting(
      None,
      'The groups run their policy steps together, in one batch. If not set, '
      'they do so if there are four or more groups with fewer than four '
      'environments each.')
  deterministic: bool = setting(
      False,
      'A run can be repeated bit for bit on the same machine, also one that is '
      'killed and goes on. Acting and learning take turns: an unroll begins '
      'after all updates that are due. After each checkpoint, environments '
      'and replays of unrolls begin anew, and the program compiles again; see '
      '--save_checkpoint_frames. Slower. Needs --num_actor_groups=1.')
  save_checkpoint_frames: int = setting(
      0, 'Environment frames between checkpoints of a deterministic run. 0: a '
      'tenth of the total, and at most a million.', NOT_NEGATIVE,
      needs=Needs('deterministic'))
  min_policy_lag: int = setting(
      0,
      'For experiments: act with weights that are this many calls of the '
      'learner old, see --updates_per_call. Until then, act with the first '
      'weights. Queues add more lag.', NOT_NEGATIVE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSettings(_Section):
  """Actors in other processes and on other machines, through ray."""
  ray_address: str = setting(
      '',
      'The ray cluster whose machines act. local: a cluster of this machine '
      'only, for this run. auto: the cluster that this machine, or this ray '
      'job, is part of. HOST:PORT: that cluster. If empty, threads of the '
      'program act, and ray is not needed.')
  num_actor_workers: int = setting(
      0,
      'Number of processes that act. The environments are divided among them, '
      'and each has --num_actor_groups groups. 0: as many as the CPUs of the '
      'cluster have room for at the start.', NOT_NEGATIVE, COUNT, needs=_RAY)
  inference: str = setting(
      'local',
      'Where policies choose actions. local: in the processes that act. '
      'central: where it is learned, on the accelerator, in one batch for all; '
      'the processes that act only step environments, without TensorFlow. '
      'central_on_cpu: also if there is no accelerator, which is slower.',
      choices=('local', 'central', 'central_on_cpu'), needs=_RAY)
  num_learners: int = setting(
      1,
      'Number of processes that learn, each from its part of --batch_size and '
      'with its part of the environments. Their updates are those of one '
      'learner of the whole batch. Each has its part of the replay, too.',
      POSITIVE, needs=_RAY)
  collectives: str = setting(
      'tensorflow',
      'How several learners sum their gradients. tensorflow: by NCCL between '
      "GPUs, a ring between CPUs. ray: through ray's store, slower, where no "
      'other port may be open.', choices=('tensorflow', 'ray'),
      needs=_RAY)
  num_cpus_per_learner: int = setting(
      2, 'CPUs that ray keeps for the process of the learner. On a CPU, it '
      'learns with all cores of its machine.', POSITIVE, needs=_RAY)
  num_gpus_per_learner: int = setting(
      -1, 'GPUs that the process of the learner takes. -1: one, if the cluster '
      'has any.', AT_LEAST_MINUS_ONE, needs=_RAY)
  max_learner_restarts: int = setting(
      10, 'How often a learner that was lost is started again without a newer '
      'checkpoint in between.', NOT_NEGATIVE, needs=_RAY)
  num_cpus_per_actor_worker: int = setting(
      2, 'CPUs that each of these processes takes.', POSITIVE, needs=_RAY)
  min_actor_workers: int = setting(
      1, 'Training starts with this many of them; the others join later.',
      POSITIVE, needs=_RAY)
  pack: str = setting(
      'auto',
      'What is sent of the frames of unrolls. none: all. newest: where a stack '
      'of frames only goes on, its newest frame. zlib: this too, and all is '
      'compressed, for slow networks. auto: newest from other machines, none '
      "on the learner's own.", choices=('auto', 'none', 'newest', 'zlib'),
      needs=_RAY)
  actor_timeout_s: float = setting(
      600., 'Seconds without any of them after which the run ends, with a '
      'checkpoint. At the start, seconds without one more while there are '
      'fewer than --min_actor_workers. Half of it is the time to open '
      'environments.', POSITIVE, needs=_RAY)
  hang_timeout_s: float = setting(
      600.,
      'Seconds after which one of them that makes no unroll is replaced, or '
      'the learners if all of them are silent. Evaluations must be shorter if '
      'there are several learners.', POSITIVE, FINITE, needs=_RAY)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSettings(_Section):
  """How a batch becomes an update."""
  batch_size: int = setting(
      By({'impala': 2, 'ddqn on Atari': 32, 'ddqn': 64, 'others': 256}),
      'impala, and ddqn with --use_lstm: unrolls per update, each of one '
      'environment. Other algorithms: transitions per update.', POSITIVE, COUNT)
  learning_rate: float = setting(
      By(impala=0.00048, ddqn=0.0001, others=0.0003),
      'Learning rate at frame 0.', NOT_NEGATIVE)
  learning_rate_schedule: str = setting(
      By(impala='linear', others='constant'),
      'linear: the learning rate falls to 0 at --total_environment_frames. '
      'constant: it does not.', choices=('linear', 'constant'))
  optimizer: str = setting(
      By(impala='rmsprop', others='adam'),
      'Optimizer. rmsprop is that of TensorFlow 1, torch_rmsprop that of '
      'PyTorch: its second moment starts at 0 instead of 1. adam is that of '
      'the paper and of PyTorch.',
      choices=('rmsprop', 'torch_rmsprop', 'adam'))
  decay: float = setting(
      .99, 'rmsprop, torch_rmsprop: decay of the second moment.', FRACTION,
      needs=_RMSPROP)
  momentum: float = setting(
      0.,
      'rmsprop, torch_rmsprop: momentum.', NOT_NEGATIVE,
      needs=_RMSPROP)
  epsilon: float = setting(
      By(impala=.1, others=1e-8),
      'Epsilon of the optimizer. rmsprop adds it inside the square root. The '
      'others add it outside, and need a smaller one, such as 0.00001.',
      POSITIVE)
  adam_beta1: float = setting(
      .9, 'adam: decay of the first moment.', BELOW_ONE,
      needs=_ADAM)
  adam_beta2: float = setting(
      .999, 'adam: decay of the second moment.', BELOW_ONE,
      needs=_ADAM)
  clip_gradient_value: float = setting(
      0., 'Largest size of each number of the gradient of a network. 0 for no '
      'clipping.',
      NOT_NEGATIVE)
  clip_gradient_norm: float = setting(
      0.,
      'Largest norm of the gradient of a network (of all critics together). '
      'Larger gradients are scaled down. 0 for no clipping.', NOT_NEGATIVE)
  micro_batch_size: int = setting(
      0,
      'Unrolls of a batch that are processed at once. The update is always '
      'that of the whole batch. Smaller values need less memory. 0 to let the '
      'program choose: on a CPU, the deep network (with --xla=all also '
      'shallow and nature) processes as many unrolls as have 84 observations '
      'together, but at least four. In all other cases, the whole batch is '
      'processed at once.',
      NOT_NEGATIVE, algorithms=('impala',))
  updates_per_call: int = setting(
      0,
      'Updates that the learner makes one after the other before it publishes '
      'new weights. 0 to let the program choose: as many as are due when every '
      'environment has made one unroll, but at most 8; 1 with priorities or '
      '--use_lstm.',
      NOT_NEGATIVE, COUNT, algorithms=OFF_POLICY)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RewardSettings(_Section):
  """What is learned: discounted, perhaps clipped rewards."""
  discounting: float = setting(0.99, 'Discount per agent step.', FRACTION)
  reward_clipping: str = setting(
      By(impala='abs_one', Atari='abs_one', others='none'),
      'How rewards are clipped for learning. none: not at all. abs_one: to '
      '[-1, 1]. soft_asymmetric: squashed to [-1.5, 5], and negative rewards '
      'count 0.3 times as much as positive ones.',
      choices=('none', 'abs_one', 'soft_asymmetric'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImpalaSettings(RewardSettings):
  """The loss of IMPALA."""
  entropy_cost: float = setting(
      0.00025, 'Weight of the entropy loss.', NOT_NEGATIVE,
      algorithms=('impala',))
  baseline_cost: float = setting(
      0.5, 'Weight of the baseline loss.', NOT_NEGATIVE,
      algorithms=('impala',))
  squash_actions: bool = setting(
      True,
      'they are samples of a Gaussian, squashed to [-1, 1] by tanh. If this is '
      'off, they are not squashed, and environments clip them.',
      algorithms=('impala',), actions='continuous')
  bootstrap_truncated: bool = setting(
      False,
      'If a time limit cuts an episode off, add the value of the last '
      'observation to the return. If this is off, as in the reference, a time '
      'limit is an end like any other.', algorithms=('impala',))
  correction: str = setting(
      'vtrace',
      'What is corrected in unrolls of older policies (table 2 of the paper). '
      'vtrace: everything. one_step: everything but the targets of the '
      'baseline. none: nothing. epsilon: nothing, but 1e-6 is added to the '
      'probabilities in the policy loss.', choices=CORRECTIONS,
      algorithms=('impala',))
  lambda_: float = setting(
      1., 'V-trace: lambda, a factor of each step of a trace. Smaller values '
      'shorten traces.', FRACTION,
      algorithms=('impala',), needs=_VTRACE)
  clip_rho: float = setting(
      1., 'V-trace: largest importance weight of a step.', POSITIVE,
      algorithms=('impala',), needs=_VTRACE)
  clip_c: float = setting(
      1., 'V-trace: largest factor of a trace.', POSITIVE,
      algorithms=('impala',), needs=_VTRACE)
  clip_pg_rho: float = setting(
      1., 'V-trace: largest importance weight in the policy loss.', POSITIVE,
      algorithms=('impala',), needs=_VTRACE)
  reduction: str = setting(
      'sum',
      'Whether the loss is the sum or the mean over the steps of a batch. The '
      'learning rate of the paper is for the sum.', choices=('sum', 'mean'),
      algorithms=('impala',))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OffPolicySettings(RewardSettings):
  """The losses of DDQN, DDPG, TD3, SAC and MPO; targets and exploration."""
  target_update_rate: float = setting(
      By(ddqn=1., mpo=1., others=.005),
      'Target networks give the values that critics learn from. In each move, '
      'their weights come nearer to the learned ones by this share of the '
      'difference. 1 for a copy; that is also the default if there is a '
      '--target_update_period above 1.', POSITIVE, FRACTION,
      algorithms=OFF_POLICY)
  target_update_period: int = setting(
      By(ddqn=1000, mpo=100, others=1),
      'Updates from one move of the target networks to the next. If there is a '
      '--target_update_rate below 1, the default is 1.', POSITIVE,
      algorithms=_WITH_PERIOD)
  critic_learning_rate: float = setting(
      0., 'Learning rate of the critics; 0 for --learning_rate.', NOT_NEGATIVE,
      algorithms=('ddpg', 'td3', 'sac', 'mpo'))
  num_critics: int = setting(
      By(mpo=1, others=2),
      'Number of critics. The smallest of their values counts.', POSITIVE,
      algorithms=('td3', 'sac', 'mpo'))
  double_q: bool = setting(
      True,
      'Double Q-learning: the learned network chooses the best next action, '
      'and the target network gives its value. If this is off, the target '
      'network does both, as in DQN.', algorithms=('ddqn',))
  dueling: bool = setting(
      False, 'Dueling network: it puts out the value of an observation and the '
      'advantage of each action, which are added.',
      algorithms=('ddqn',))
  huber_delta: float = setting(
      0.,
      'Huber loss: errors are squared up to this size, and count linearly '
      'beyond it. 0 for squares everywhere.', NOT_NEGATIVE,
      algorithms=('ddqn',))
  exploration_epsilon_begin: float = setting(
      1.,
      'Probability of a random action at frame 0. Up to the first update it '
      'is 1.', FRACTION, algorithms=('ddqn',))
  exploration_epsilon_end: float = setting(
      .05,
      'Smallest probability of a random action, which it reaches in the end.',
      FRACTION, algorithms=('ddqn',))
  exploration_fraction: float = setting(
      .1,
      'The probability of a random action falls linearly from '
      '--exploration_epsilon_begin to --exploration_epsilon_end, over this '
      'share of --total_environment_frames.', FRACTION, algorithms=('ddqn',),
      unless='exploration_decay')
  exploration_decay: float = setting(
      0.,
      'If not 0, the probability of a random action is multiplied by this '
      'number after each update, such as 0.999, instead of falling linearly.',
      FRACTION, algorithms=('ddqn',))
  burn_in_steps: int = setting(
      0,
      'With --use_lstm: number of steps at the start of each unroll that are '
      'not learned from. They only bring the LSTM into its state.',
      NOT_NEGATIVE, algorithms=('ddqn',))
  exploration_noise: float = setting(
      .1,
      'Standard deviation of the noise that is added to actions to explore. '
      'Actions are within [-1, 1].', NOT_NEGATIVE, algorithms=CONTINUOUS)
  policy_delay: int = setting(
      2, 'The policy learns, and the targets move, in every n-th update.',
      POSITIVE, algorithms=('td3',))
  target_noise: float = setting(
      .2,
      "Standard deviation of the noise that is added to the target policy's "
      'actions.', NOT_NEGATIVE, algorithms=('td3',))
  target_noise_clip: float = setting(
      .5,
      'Largest size of the noise of --target_noise.', NOT_NEGATIVE,
      algorithms=('td3',))
  initial_temperature: float = setting(
      By(sac=1., mpo=10.), 'SAC: alpha, the weight of the entropy, at the '
      'start. MPO: eta at the start.', POSITIVE, algorithms=('sac', 'mpo'),
      unless='exact_temperature')
  temperature_learning_rate: float = setting(
      By(mpo=.01, sac=.0003),
      'Learning rate of the temperature; for mpo also of the weights of the '
      'KL.', NOT_NEGATIVE, algorithms=('sac', 'mpo'))
  target_entropy_ratio: float = setting(
      .7,
      'the entropy that the policy should have, as a share of the largest one, '
      'which is that of uniformly random actions. Larger values explore more. '
      'The paper has 0.98; with few actions, the temperature then grows '
      'without bound.', FRACTION, algorithms=('sac',), actions='discrete')
  target_entropy_per_part: float = setting(
      -1.,
      'the entropy that the policy should have, for each number of an action. '
      'Larger values explore more; it may be negative.',
      FINITE, algorithms=('sac',), actions='continuous')
  num_samples: int = setting(
      20, 'number of actions that are sampled for each observation.', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  epsilon_temperature: float = setting(
      .1,
      'How far the improved policy, which the policy then learns, may be from '
      'the target policy: bound of the mean KL.', POSITIVE, algorithms=('mpo',))
  epsilon_mean: float = setting(
      .0025,
      'How far the policy may be from the target policy: bound of the mean '
      'KL, for the mean of each number of an action; for discrete actions, of '
      'the whole KL.', POSITIVE, algorithms=('mpo',))
  epsilon_scale: float = setting(
      1e-6,
      'as --epsilon_mean, for the standard deviation of each number of an '
      'action.', POSITIVE, algorithms=('mpo',), actions='continuous')
  epsilon_bounds: float = setting(
      .001,
      'as --epsilon_temperature, for the policy that is improved by staying '
      'within [-1, 1].', POSITIVE, algorithms=('mpo',), actions='continuous')
  initial_mean_multiplier: float = setting(
      10.,
      'Weight of the KL of --epsilon_mean at the start; it is learned.',
      POSITIVE, algorithms=('mpo',))
  initial_scale_multiplier: float = setting(
      1000.,
      'weight of the KL of --epsilon_scale at the start; it is learned.',
      POSITIVE, algorithms=('mpo',), actions='continuous')
  initial_scale: float = setting(
      1., 'about the standard deviation of the actions, which are from -1 to '
      '1, when learning begins.', IS_SCALE, algorithms=('mpo',),
      actions='continuous')
  exact_temperature: bool = setting(
      False,
      'The temperature is computed exactly in each update. If this is off, it '
      'is learned.', algorithms=('mpo',))

  def __post_init__(self) -> None:
    rate, period = (getattr(self, name) for name in (
        'target_update_rate', 'target_update_period'))
    super().__post_init__()
    if self.algorithm not in _WITH_PERIOD:
      return
    # Small moves now and then would hardly move the targets.
    if period is None and rate is not None and rate < 1:
      object.__setattr__(self, 'target_update_period', 1)
    if rate is None and period is not None and period > 1:
      object.__setattr__(self, 'target_update_rate', 1.)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplaySettings(_Section):
  """Learning again from earlier steps."""
  replay_capacity: int = setting(
      0,
      'Number of the latest unrolls that are kept, to learn from them again. '
      'The paper keeps 10,000. 0 for no replay. They are kept in memory, not '
      'in checkpoints.', NOT_NEGATIVE, algorithms=('impala',))
  replay_fraction: float = setting(
      .5,
      'Share of replayed unrolls in a batch, with --replay_capacity. Frames, '
      'returns and policy lag are those of the fresh unrolls only.', FRACTION,
      algorithms=('impala',), needs=_REPLAY, unless='unrolls_per_collect')
  unrolls_per_collect: int = setting(
      0,
      'With --replay_capacity: collect this many unrolls, then make '
      '--updates_per_collect updates, whose unrolls are all drawn from the '
      'replay, as in DI-engine. 0 for fresh unrolls in every batch.',
      NOT_NEGATIVE, algorithms=('impala',), needs=_REPLAY)
  updates_per_collect: int = setting(
      4, 'Updates after each collection.', POSITIVE, algorithms=('impala',),
      needs=_COLLECTIONS)
  max_use: int = setting(
      0, 'With --unrolls_per_collect: an unroll that was drawn this many times '
      'is dropped. 0 for no limit.', NOT_NEGATIVE, algorithms=('impala',),
      needs=_COLLECTIONS)
  replay_steps: int = setting(
      1_000_000,
      'Number of the latest agent steps, of all environments together, that '
      'are kept to learn from.', POSITIVE, algorithms=OFF_POLICY)
  save_replay: str = setting(
      'auto',
      'Whether the replay is saved with checkpoints, in the directory replay '
      'of --logdir. auto: if it has at most 2 GB when it is full. If it was '
      'not saved, a run that goes on first fills it with --min_replay_steps; '
      'one that an earlier part has saved is removed then. '
      'With --use_lstm it is not saved; otherwise, with --deterministic it '
      'always is.', choices=('auto', 'yes', 'no'),
      algorithms=OFF_POLICY)
  min_replay_steps: int = setting(
      By({'ddqn on Atari': 20_000, 'others': 1_000}),
      'Agent steps, of all environments together, before the first update. '
      'Their actions are random.',
      POSITIVE, algorithms=OFF_POLICY)
  updates_per_step: float = setting(
      By({'Atari': .25, 'others': 1.}),
      'Updates for each agent step of one environment, such as 0.25 for one '
      'update in four steps. The ratio is exact: actors and learner wait for '
      'each other.', POSITIVE, algorithms=OFF_POLICY)
  n_step: int = setting(
      1, 'Number of steps whose rewards are summed before the value of an '
      'observation is added.', POSITIVE, COUNT,
      algorithms=OFF_POLICY)
  selector: str = setting(
      'uniform',
      'Which steps are drawn from the replay (for impala, with '
      '--replay_capacity, and for ddqn with --use_lstm: which unrolls). '
      'uniform: all with the same probability. prioritised: those with large '
      'errors more often, see --priority_exponent. recent: newer ones more '
      'often, see --recent_eta. recent_prioritised: both.',
      choices=('uniform', 'prioritised', 'recent', 'recent_prioritised'))
  priority_exponent: float = setting(
      .6, 'prioritised: the probability of a draw grows with the error to this '
      'power. 0 for equal probabilities.', NOT_NEGATIVE,
      needs=_PRIORITISED)
  priority_epsilon: float = setting(
      .01,
      'prioritised: is added to each error, so that small errors are drawn, '
      'too.', POSITIVE,
      needs=_PRIORITISED)
  importance_exponent: float = setting(
      .4, 'prioritised: losses are weighted by probabilities to the power of '
      'minus this number. Weights are divided by the largest that there could '
      'be, so they are at most 1; fresh unrolls have 1. 0 for no weights.',
      FRACTION,
      needs=_PRIORITISED)
  importance_exponent_end: float = setting(
      1., 'prioritised: the value that --importance_exponent reaches, '
      'linearly, at --total_environment_frames.', FRACTION,
      needs=_PRIORITISED)
  recent_eta: float = setting(
      .996, 'recent: in rounds of 50 batches, batch k is drawn from the newest '
      'eta^(20 k) of all steps. 1 for all steps in each batch.',
      POSITIVE, FRACTION,
      needs=_RECENT)
  recent_min_steps: int = setting(
      By({'impala': 250, 'ddqn with LSTM': 250, 'others': 5_000}),
      'recent: a batch is drawn from at least this many steps, or unrolls if '
      'the replay has these. From a replay that has no more, it is drawn as '
      'without recent.', POSITIVE,
      needs=_RECENT)
  hindsight: str = setting(
      'none',
      'Levels with goals: in most of the drawn steps, the goal is replaced by '
      'one that was achieved in the same episode, as if it had been the goal '
      'all along. future: achieved after the step. final: at the end of the '
      'episode. episode: at any time of the episode.',
      choices=('none', 'future', 'final', 'episode'), algorithms=OFF_POLICY)
  hindsight_goals: int = setting(
      4,
      'With --hindsight: how many drawn steps get another goal, for each one '
      'that keeps its own.', POSITIVE, algorithms=OFF_POLICY,
      needs=_HINDSIGHT)

  @property
  def is_prioritised(self) -> bool:
    """Whether draws depend on errors."""
    return self.selector in _PRIORITISED.values

  @property
  def is_recent(self) -> bool:
    """Whether draws depend on the age."""
    return self.selector in _RECENT.values


@dataclasses.dataclass(frozen=True, kw_only=True)
class TestSettings(_Section):
  """Tests, evaluations while training, and plots of learning curves."""
  test_num_episodes: int = setting(
      10, 'Episodes per level in test mode.', POSITIVE)
  test_greedy: bool = setting(
      By(impala=False, others=True),
      'Tests and evaluations take the best known action. If this is off, they '
      'act as in training; impala then draws actions from the policy at '
      'random, as the reference does.')
  eval_every_frames: int = setting(
      0,
      'Evaluate each time when this many more environment frames have arrived, '
      'and at the end: play whole games with the weights of that moment, write '
      'evaluations.csv, and keep the weights with the highest mean return in '
      'the directory best of --logdir. The learner waits meanwhile, and the '
      'time counts. 0 for never.', NOT_NEGATIVE)
  eval_num_episodes: int = setting(
      10, 'Episodes per level in each evaluation. They start the same way in '
      'each.', POSITIVE)
  video_num_episodes: int = setting(
      5, 'Games per level that video mode plays. It keeps the films of the '
      'best one and of the median one.', POSITIVE, COUNT)
  video_format: str = setting(
      'mp4', 'Format of films. mp4: small files, needs imageio-ffmpeg. gif: '
      'large files, at most 25 pictures a second.', choices=('mp4', 'gif'))
  video_text: bool = setting(
      False, 'Films show the return so far and the action in a corner.')
  video_secs: float = setting(
      0., 'Record a game of the latest checkpoint each time when training has '
      'gone on for so many seconds, in another process, at the lowest '
      'priority. 0 for never.', NOT_NEGATIVE, FINITE)
  export_format: str = setting(
      'auto',
      'What export mode writes. saved_model: a SavedModel. tflite: a file of '
      'TensorFlow Lite, too, for one environment and the best known actions. '
      'auto: this file only if the network can be converted.',
      choices=('auto', 'saved_model', 'tflite'))
  plot_file: str = setting(
      '',
      'File that plot mode draws to, a PNG. If empty, learning_curves.png in '
      'the directory of the run, or learning_curves_compared.png in the first '
      'of several.')
  plot_num_episodes: int = setting(
      100, 'A learning curve shows the mean return of this many episodes.',
      POSITIVE)
