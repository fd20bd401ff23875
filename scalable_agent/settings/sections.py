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
from scalable_agent.settings import lab_levels
from scalable_agent.settings.declare import ALE_COUNT
from scalable_agent.settings.declare import ALGORITHMS
from scalable_agent.settings.declare import AT_LEAST_MINUS_ONE
from scalable_agent.settings.declare import BELOW_ONE
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import CONTINUOUS
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import DIRECTORIES
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import first_name
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import IS_AGENT
from scalable_agent.settings.declare import is_atari
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

# Algorithms with --target_update_period.
_WITH_PERIOD = ('ddqn', 'sac', 'mpo')
# Values of --correction, see `algorithms.impala`.
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


# Types of the values of a setting, by the type of the setting.
_ACCEPTED_TYPES: dict[object, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int,), float: (float, int),
    bool | None: (bool, type(None))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Section:
  """Base class of the sections: shared settings, and the checks."""
  mode: str = setting(
      'train',
      'Job of this command. train: train an agent. test: play whole games with '
      'the latest checkpoint and write a table of scores, next to published '
      'scores. table: make one table of the tests in --logdir=A,B,C, where '
      'each name is a directory (for its latest test) or a file of a test. '
      'plot: draw the learning curves of --logdir=A,B,C. video: record videos '
      'of the latest checkpoint, in the directory videos of --logdir. export: '
      'write the latest checkpoint as a TensorFlow program, in the directory '
      'export of --logdir.',
      choices=('train', 'test', 'table', 'plot', 'video', 'export'))
  algorithm: str = setting(
      'impala',
      'Learning algorithm. impala: learns from unrolls as they arrive; for all '
      'actions. ddqn: for discrete actions. ddpg, td3: for continuous actions. '
      'sac, mpo: for all actions. All algorithms but impala learn from a '
      'replay buffer.', choices=ALGORITHMS)

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      value, default = getattr(self, field.name), field.metadata['default']
      if self._is_used(field):
        if value is None and isinstance(default, By):
          object.__setattr__(
              self, field.name, default.of(self.default_keys()))
        self._check_field(field)
      elif value != field.default:
        self._refuse_unused(field)
    for field in dataclasses.fields(self):
      self._check_needs(field)

  def default_keys(self) -> list[str]:
    """Returns the keys of `By` that hold for these settings, by priority."""
    keys = [self.algorithm, 'others']
    if self.algorithm == 'ddqn' and getattr(self, 'use_lstm', None):
      keys.insert(0, 'ddqn with LSTM')
    if is_atari(getattr(self, 'level_name', '')):
      keys = [f'{self.algorithm} on Atari',
              *['Atari'][:self.algorithm != 'impala'], *keys]
    return keys

  def check_used(self, names: Collection[str]) -> None:
    """Raises ConfigError if the algorithm does not use one of the settings.

    The constructor accepts an unused setting with its default value.
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
    """Whether suites and environments are set up for tests.

    In tests, DeepMind Lab plays levels and seeds that are held out from
    training.
    """
    return self.mode in ('test', 'video')

  @property
  def is_filmed(self) -> bool:
    """Whether environments also return pictures, for videos."""
    return self.mode == 'video'

  @property
  def is_off_policy(self) -> bool:
    """Whether the algorithm learns from a replay of transitions."""
    return self.algorithm in OFF_POLICY

  def check_actions(self, kind: str) -> None:
    """Raises ConfigError if a setting is for another kind of actions.

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
      # Infinite intervals mean "never" and are allowed.
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
  """The run: its directory and level, its length, and its reports."""
  logdir: str = setting(
      '/tmp/agent',
      'Directory of checkpoints, learning curves and scores. If the directory '
      'has a checkpoint, training resumes from there.', DIRECTORIES, IS_LOCAL)
  level_name: str = setting(
      'ALE/Pong-v5',
      'Environment to play: a gymnasium id (also of MiniGrid, BabyAI, ViZDoom '
      'or Gymnasium-Robotics), a level of DeepMind Lab or a toy such as catch; '
      'one of the suites dmlab30 and atari57; or a list A,B,C of names. '
      'Environment i plays level i % n of the n levels.', LEVELS)
  allow_other_task: bool = setting(
      False,
      'Resume from a checkpoint that was trained on another level, or with '
      'other action repeats, frame sizes or rules of Atari games. Without this '
      'flag, such a change is an error.')
  total_environment_frames: int = setting(
      By(impala=1_000_000_000, others=1_000_000),
      'Environment frames (agent steps x action repeats) of the whole '
      'training.', POSITIVE)
  seed: int = setting(
      1,
      'Seed of network weights, actions and environments. Two runs with the '
      'same seed begin with equal weights and environments but differ later, '
      'because threads take turns by chance; see --deterministic.',
      NOT_NEGATIVE, IS_SEED)
  task: int = setting(
      -1,
      'Task id, for commands that are started by hand on several hosts, with '
      '--ray_address=HOST:PORT of the learner: 0 for the learner, any other '
      'number for an actor. -1 if one command starts everything.',
      AT_LEAST_MINUS_ONE)
  job_name: str = setting(
      'learner',
      'Role of this host if --task is not -1: learn, or act for the learner.',
      choices=('learner', 'actor'))
  save_checkpoint_secs: float = setting(
      600.,
      'Seconds between checkpoints. Deterministic runs use '
      '--save_checkpoint_frames instead.', POSITIVE)
  save_summaries_secs: float = setting(
      30., 'Seconds between TensorBoard summaries.', POSITIVE)
  progress_secs: float = setting(
      10., 'Seconds between printed lines of progress.', POSITIVE)
  hook: str = setting(
      '',
      'module:function of a function of yours that is called with each '
      'TensorBoard summary. The arguments are the frames so far and a '
      'dictionary of the numbers of the summary. An error in the function ends '
      'the run, with a checkpoint.', IS_FUNCTION)
  debug: bool = setting(False, 'Print the whole traceback of an error.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentSettings(_Section):
  """The environments. The defaults are the training settings of the paper."""
  num_action_repeats: int = setting(
      By({'Atari or DeepMind Lab': 4, 'others': 1}),
      'Environment frames per agent step: each action is repeated this many '
      'times, and the rewards are summed. An Atari observation is the maximum '
      'over the last two frames of a step; with 1, there is only one frame.',
      POSITIVE)
  width: int = setting(
      96,
      'DeepMind Lab (multiples of 4) and ViZDoom: width of the frames in '
      'pixels.', POSITIVE)
  height: int = setting(
      72,
      'DeepMind Lab (multiples of 4) and ViZDoom: height of the frames in '
      'pixels.', POSITIVE)
  repeat_action_probability: float = setting(
      0.,
      'Atari: probability that the emulator repeats the last action (sticky '
      'actions). Machado et al. use 0.25.', FRACTION)
  full_action_space: bool = setting(
      False,
      'Atari: use all 18 actions instead of only the actions of the game. '
      'Needed by an agent that plays games with different actions.')
  life_loss_ends_episode: bool = setting(
      True,
      'Atari: a lost life ends the episode for the learner, while reported '
      'returns are of whole games. In test mode, a lost life never ends an '
      'episode.')
  max_noops: int = setting(
      30,
      'Atari: largest number of frames without action (no-ops) at the start of '
      'a game. The number is drawn from 0 to this maximum.', NOT_NEGATIVE,
      ALE_COUNT)
  fire_on_reset: bool = setting(
      False,
      'Atari: press FIRE at the start of a game that has this action, in place '
      'of one frame without action.')
  max_episode_frames: int = setting(
      108_000,
      'Atari: cut a game off after this many frames.', POSITIVE, ALE_COUNT)
  environments_per_process: int = setting(
      1,
      'Number of environments that share a process and are stepped one after '
      'the other. More than one is meant for environments with very short '
      'steps: CartPole was faster. Atari games run in threads instead.',
      POSITIVE)
  step_timeout_s: float = setting(
      300.,
      'Seconds per step after which an environment process counts as hung. The '
      'start, and each step of DeepMind Lab (which may compile a map), may '
      'take 30 more seconds for each environment per core.', POSITIVE)
  max_environment_restarts: int = setting(
      10,
      'Number of times per hour that dead or hung environment processes are '
      'restarted. Their current unroll is lost. One more death or hang ends '
      'the run, with a checkpoint. With --ray_address: the same limit holds '
      'for restarts of one actor worker after errors raised by its '
      'environments; three errors without an unroll in between end the run. '
      'With --deterministic, no process is restarted; the process that '
      'computes rewards for --hindsight never is.', NOT_NEGATIVE)
  dataset_path: str = setting(
      '',
      'DeepMind Lab: directory of the images that two psychlab levels need.',
      IS_LOCAL)
  level_cache_dir: str = setting(
      '',
      'DeepMind Lab: directory that keeps compiled maps. The directory grows '
      'with every new map. If empty, maps are not kept.', IS_LOCAL)

  def default_keys(self) -> list[str]:
    keys = super().default_keys()
    level = first_name(getattr(self, 'level_name', ''))  # '' in a section.
    if not level or is_atari(level) or lab_levels.is_level(level):
      keys.insert(0, 'Atari or DeepMind Lab')
    return keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentSettings(_Section):
  """The network, its inputs, and its computation."""
  agent: str = setting(
      'auto',
      'Neural network. deep: the ResNet of the reference. shallow: the small '
      "network of the paper. nature: DQN's network of 2015, three "
      'convolutions. mlp: dense layers, for vectors and tiny images. auto: mlp '
      'if observations are not frames (three axes); for frames, deep with '
      'IMPALA, and nature with all other algorithms (deep if a side has less '
      'than 36 pixels). module:function: a network that a function of yours '
      'makes, see docs/new_network.md.', IS_AGENT)
  hidden_sizes: str = setting(
      By(impala='64,64', others='256,256'),
      'Units of the dense layers of mlp, of critics of continuous actions, and '
      'of networks for frames with further observations.', SIZES)
  layer_norm: bool = setting(
      False,
      'Normalise the first layer of --hidden_sizes, followed by tanh, and use '
      'ELU instead of ReLU in the further layers, as in the networks of acme. '
      'With frames and continuous actions, only critics have such layers.',
      algorithms=OFF_POLICY)
  use_lstm: bool = setting(
      By(impala=True, others=False),
      'The agent has an LSTM of 256 units.', algorithms=('impala', 'ddqn'))
  use_last_action_reward: bool = setting(
      By(impala=True, others=False),
      'The agent sees its last action and its last (clipped) reward. With '
      'ddqn, this needs --use_lstm.', algorithms=('impala', 'ddqn'))
  use_instruction: bool = setting(
      True,
      'The agent sees the instruction, in levels that have one. With ddqn, '
      'this needs --use_lstm.', algorithms=('impala', 'ddqn'))
  compute_dtype: str = setting(
      'float32',
      'Number type in which the networks multiply. bfloat16 is meant for GPUs '
      'that support bfloat16, where this was never run; on a CPU, bfloat16 is '
      'slower. Weights, the state of the LSTM, V-trace and losses are always '
      'float32.', choices=('float32', 'bfloat16'))
  xla: str = setting(
      'auto',
      'Functions that XLA compiles. none: no function. policy: the policy '
      'steps. all: the policy steps and the updates. auto: with an mlp on a '
      'CPU policy, or all for ddqn; none otherwise. XLA never compiles policy '
      'steps that groups of environments share (--dynamic_batching).',
      choices=('auto', 'none', 'policy', 'all'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActingSettings(_Section):
  """Acting: environments, threads and unrolls."""
  num_actors: int = setting(
      4,
      'Number of environments. In the reference every actor has one '
      'environment, hence the name. Here --num_actor_groups threads step all '
      'environments.', POSITIVE, COUNT)
  num_actor_groups: int = setting(
      By(impala=2, others=1),
      'Number of threads that act. The environments are divided among the '
      'threads, so there are never more groups than environments. While one '
      'group steps its environments, another group can run the policy.',
      POSITIVE, COUNT)
  unroll_length: int = setting(
      By({'impala': 100, 'ddqn with LSTM': 20, 'Atari': 16, 'others': 2}),
      'Agent steps per unroll.', POSITIVE, COUNT)
  queue_capacity: int = setting(
      1,
      'Number of entries of the queue to the learner. One entry holds the '
      'unrolls of all environments of a group. More entries mean more policy '
      'lag. Cannot be set with --deterministic.', POSITIVE, COUNT)
  dynamic_batching: bool | None = setting(
      None,
      'Run the policy steps of all groups of environments together, in one '
      'batch. If not set: on with four or more groups of fewer than four '
      'environments each.')
  deterministic: bool = setting(
      False,
      'Make a run that can be repeated bit for bit on the same machine, even '
      'if the run is killed and resumed. Acting and learning take turns: an '
      'unroll begins after all updates that are due. After each checkpoint, '
      'environments and replays of unrolls start afresh, and the program '
      'compiles again; see --save_checkpoint_frames. Slower. Needs '
      '--num_actor_groups=1.')
  save_checkpoint_frames: int = setting(
      0,
      'Environment frames between checkpoints of a deterministic run. 0: a '
      'tenth of --total_environment_frames, and at most a million.',
      NOT_NEGATIVE, needs=Needs('deterministic'))
  min_policy_lag: int = setting(
      0,
      'For experiments: act with weights that are this many calls of the '
      'learner old (see --updates_per_call), and with the initial weights '
      'until then. Queues add more lag.', NOT_NEGATIVE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSettings(_Section):
  """Actors and learners on a ray cluster of several machines."""
  ray_address: str = setting(
      '',
      'Address of the ray cluster whose machines act. local: a cluster of this '
      'machine only, for this run. auto: the cluster that this machine, or '
      'this ray job, is part of. HOST:PORT: the cluster at this address. If '
      'empty, threads of this program act, and ray is not needed.')
  num_actor_workers: int = setting(
      0,
      'Number of actor workers: processes that act on the cluster of '
      '--ray_address. The environments are divided among the workers, and each '
      'worker has --num_actor_groups groups. 0: as many as the CPUs of the '
      'cluster have room for at the start.', NOT_NEGATIVE, COUNT, needs=_RAY)
  inference: str = setting(
      'local',
      'Place where policies choose actions. local: in the actor workers. '
      'central: in the process of the learner, on the accelerator, in one '
      'batch for all environments; actor workers then only step environments, '
      'without TensorFlow. central_on_cpu: as central, but allowed without an '
      'accelerator, which is slower.',
      choices=('local', 'central', 'central_on_cpu'), needs=_RAY)
  num_learners: int = setting(
      1,
      'Number of processes that learn. Each learner has an equal share of '
      '--batch_size, of the environments and of the replay. Together the '
      'learners make the same updates as one learner of the whole batch.',
      POSITIVE, needs=_RAY)
  collectives: str = setting(
      'tensorflow',
      'Way in which several learners sum their gradients. tensorflow: by NCCL '
      "between GPUs, a ring between CPUs. ray: through ray's store; slower, "
      'for networks where no other port may be open.',
      choices=('tensorflow', 'ray'), needs=_RAY)
  num_cpus_per_learner: int = setting(
      2,
      'CPUs that ray reserves for each learner. Without a GPU, a learner uses '
      'all cores of its machine.', POSITIVE, needs=_RAY)
  num_gpus_per_learner: int = setting(
      -1,
      'GPUs per learner. -1: one, if the cluster has any.', AT_LEAST_MINUS_ONE,
      needs=_RAY)
  max_learner_restarts: int = setting(
      10,
      'Number of times that a lost learner is restarted without a newer '
      'checkpoint in between.', NOT_NEGATIVE, needs=_RAY)
  num_cpus_per_actor_worker: int = setting(
      2,
      'CPUs per actor worker (see --num_actor_workers).', POSITIVE, needs=_RAY)
  min_actor_workers: int = setting(
      1,
      'Start training when this many actor workers are ready; the remaining '
      'workers join later.', POSITIVE, needs=_RAY)
  pack: str = setting(
      'auto',
      'Part of the frames that actor workers send in unrolls. none: all '
      'frames. newest: where a stack of frames only continues, its newest '
      'frame. zlib: as newest, and everything is compressed, for slow '
      'networks. auto: newest from other machines, none on the machine of the '
      'learner.', choices=('auto', 'none', 'newest', 'zlib'), needs=_RAY)
  actor_timeout_s: float = setting(
      600.,
      'With --ray_address: end the run, with a checkpoint, after this many '
      'seconds without any actor worker (at the start: without a new one while '
      'fewer than --min_actor_workers run). A worker has half of this time to '
      'open its environments.', POSITIVE, needs=_RAY)
  hang_timeout_s: float = setting(
      600.,
      'Replace an actor worker that has sent no unroll for this many seconds; '
      'restart the learners if no worker has responded for that long. With '
      'several learners, evaluations must be shorter.', POSITIVE, FINITE,
      needs=_RAY)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSettings(_Section):
  """The learner: batches, optimizer and gradients."""
  batch_size: int = setting(
      By({'impala': 2, 'ddqn on Atari': 32, 'ddqn': 64, 'others': 256}),
      'Size of a batch. impala, and ddqn with --use_lstm: unrolls per update, '
      'each of one environment. All other algorithms: transitions per update.',
      POSITIVE, COUNT)
  learning_rate: float = setting(
      By(impala=0.00048, ddqn=0.0001, others=0.0003),
      'Learning rate at frame 0.', NOT_NEGATIVE)
  learning_rate_schedule: str = setting(
      By(impala='linear', others='constant'),
      'Schedule of the learning rate. linear: falls to 0 at '
      '--total_environment_frames. constant: stays the same.',
      choices=('linear', 'constant'))
  optimizer: str = setting(
      By(impala='rmsprop', others='adam'),
      'Optimizer. rmsprop: RMSProp of TensorFlow 1. torch_rmsprop: RMSProp of '
      'PyTorch, whose second moment starts at 0 instead of 1. adam: Adam of '
      'the paper and of PyTorch.', choices=('rmsprop', 'torch_rmsprop', 'adam'))
  decay: float = setting(
      .99,
      'Optimizers rmsprop and torch_rmsprop: decay of the second moment.',
      FRACTION, needs=_RMSPROP)
  momentum: float = setting(
      0.,
      'Optimizers rmsprop and torch_rmsprop: momentum.', NOT_NEGATIVE,
      needs=_RMSPROP)
  epsilon: float = setting(
      By(impala=.1, others=1e-8),
      'Epsilon of the optimizer. rmsprop adds epsilon inside the square root. '
      'adam and torch_rmsprop add epsilon outside, and need a smaller value, '
      'such as 0.00001.', POSITIVE)
  adam_beta1: float = setting(
      .9, 'Optimizer adam: decay of the first moment.', BELOW_ONE, needs=_ADAM)
  adam_beta2: float = setting(
      .999,
      'Optimizer adam: decay of the second moment.', BELOW_ONE, needs=_ADAM)
  clip_gradient_value: float = setting(
      0.,
      'Largest absolute value of each number of the gradient of a network. 0 '
      'for no clipping.', NOT_NEGATIVE)
  clip_gradient_norm: float = setting(
      0.,
      'Largest norm of the gradient of a network (of all critics together). '
      'Larger gradients are scaled down. 0 for no clipping.', NOT_NEGATIVE)
  micro_batch_size: int = setting(
      0,
      'Unrolls of a batch that are processed at once. Smaller values need less '
      'memory; the update is always the update of the whole batch. 0 to let '
      'the program choose: on a CPU, the deep network (with --xla=all also '
      'shallow and nature) processes as many unrolls as have 84 observations '
      'together, but at least four. In all other cases, the whole batch is '
      'processed at once.', NOT_NEGATIVE, algorithms=('impala',))
  updates_per_call: int = setting(
      0,
      'Updates that the learner makes in a row before new weights are '
      'published. 0 to let the program choose: as many as are due when every '
      'environment has made one unroll, but at most 8; 1 with priorities or '
      '--use_lstm.', NOT_NEGATIVE, COUNT, algorithms=OFF_POLICY)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RewardSettings(_Section):
  """Rewards as the learner sees them: discounted, perhaps clipped."""
  discounting: float = setting(0.99, 'Discount per agent step.', FRACTION)
  reward_clipping: str = setting(
      By(impala='abs_one', Atari='abs_one', others='none'),
      'Clipping of rewards for learning. none: no clipping. abs_one: to [-1, '
      '1]. soft_asymmetric: squashed to [-1.5, 5], and negative rewards count '
      '0.3 times as much as positive rewards.',
      choices=('none', 'abs_one', 'soft_asymmetric'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImpalaSettings(RewardSettings):
  """The loss of IMPALA."""
  entropy_cost: float = setting(
      0.00025,
      'Weight of the entropy loss.', NOT_NEGATIVE, algorithms=('impala',))
  baseline_cost: float = setting(
      0.5, 'Weight of the baseline loss.', NOT_NEGATIVE, algorithms=('impala',))
  squash_actions: bool = setting(
      True,
      'Squash the samples of the Gaussian policy to [-1, 1] by tanh. If off, '
      'environments clip the actions.', algorithms=('impala',),
      actions='continuous')
  bootstrap_truncated: bool = setting(
      False,
      'If a time limit cuts an episode off, add the value of the last '
      'observation to the return. If off, as in the reference, a time limit is '
      'an end like any other.', algorithms=('impala',))
  correction: str = setting(
      'vtrace',
      'Correction of unrolls that older policies made (table 2 of the paper). '
      'vtrace: of everything. one_step: of everything but the targets of the '
      'baseline. none: of nothing. epsilon: of nothing, but 1e-6 is added to '
      'the probabilities in the policy loss.', choices=CORRECTIONS,
      algorithms=('impala',))
  lambda_: float = setting(
      1.,
      'V-trace: lambda, a factor of each step of a trace. Smaller values '
      'shorten traces.', FRACTION, algorithms=('impala',), needs=_VTRACE)
  clip_rho: float = setting(
      1.,
      'V-trace: largest importance weight of a step.', POSITIVE,
      algorithms=('impala',), needs=_VTRACE)
  clip_c: float = setting(
      1.,
      'V-trace: largest factor of a trace.', POSITIVE, algorithms=('impala',),
      needs=_VTRACE)
  clip_pg_rho: float = setting(
      1.,
      'V-trace: largest importance weight in the policy loss.', POSITIVE,
      algorithms=('impala',), needs=_VTRACE)
  reduction: str = setting(
      'sum',
      'Reduction of the loss over the steps of a batch: sum or mean. The '
      'learning rate of the paper is for the sum.', choices=('sum', 'mean'),
      algorithms=('impala',))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OffPolicySettings(RewardSettings):
  """Losses, target networks and exploration of DDQN, DDPG, TD3, SAC, MPO."""
  target_update_rate: float = setting(
      By(ddqn=1., mpo=1., others=.005),
      'Share of the difference to the learned networks by which target '
      'networks move, each time. Critics learn from the values of target '
      'networks. 1 for a copy; 1 is also the default with a '
      '--target_update_period above 1.', POSITIVE, FRACTION,
      algorithms=OFF_POLICY)
  target_update_period: int = setting(
      By(ddqn=1000, mpo=100, others=1),
      'Updates from one move of the target networks to the next. With a '
      '--target_update_rate below 1, the default is 1.', POSITIVE,
      algorithms=_WITH_PERIOD)
  critic_learning_rate: float = setting(
      0.,
      'Learning rate of the critics; 0 for --learning_rate.', NOT_NEGATIVE,
      algorithms=('ddpg', 'td3', 'sac', 'mpo'))
  num_critics: int = setting(
      By(mpo=1, others=2),
      'Number of critics. The smallest of their values counts.', POSITIVE,
      algorithms=('td3', 'sac', 'mpo'))
  double_q: bool = setting(
      True,
      'Double Q-learning: the learned network chooses the best next action, '
      'and the target network gives its value. If off, the target network does '
      'both, as in DQN.', algorithms=('ddqn',))
  dueling: bool = setting(
      False,
      'Dueling network: the outputs are the value of an observation and the '
      'advantage of each action, which are added.', algorithms=('ddqn',))
  huber_delta: float = setting(
      0.,
      'Huber loss: errors up to this size are squared, and larger errors count '
      'linearly. 0 for squares everywhere.', NOT_NEGATIVE, algorithms=('ddqn',))
  exploration_epsilon_begin: float = setting(
      1.,
      'Probability of a random action at frame 0. Before the first update, all '
      'actions are random.', FRACTION, algorithms=('ddqn',))
  exploration_epsilon_end: float = setting(
      .05,
      'Smallest probability of a random action, reached at the end of '
      'exploration.', FRACTION, algorithms=('ddqn',))
  exploration_fraction: float = setting(
      .1,
      'Share of --total_environment_frames over which the probability of a '
      'random action falls linearly from --exploration_epsilon_begin to '
      '--exploration_epsilon_end.', FRACTION, algorithms=('ddqn',),
      unless='exploration_decay')
  exploration_decay: float = setting(
      0.,
      'Factor of the probability of a random action in each update, such as '
      '0.999. 0 for a linear fall, see --exploration_fraction.', FRACTION,
      algorithms=('ddqn',))
  burn_in_steps: int = setting(
      0,
      'With --use_lstm: number of steps at the start of each unroll that only '
      'bring the LSTM into its state, and are not learned from.', NOT_NEGATIVE,
      algorithms=('ddqn',))
  exploration_noise: float = setting(
      .1,
      'Standard deviation of the noise that is added to actions to explore. '
      'Actions are within [-1, 1].', NOT_NEGATIVE, algorithms=CONTINUOUS)
  policy_delay: int = setting(
      2,
      'The policy learns, and the target networks move, in every n-th update, '
      'where n is this number.', POSITIVE, algorithms=('td3',))
  target_noise: float = setting(
      .2,
      'Standard deviation of the noise that is added to the actions of the '
      'target policy.', NOT_NEGATIVE, algorithms=('td3',))
  target_noise_clip: float = setting(
      .5,
      'Largest absolute value of the noise of --target_noise.', NOT_NEGATIVE,
      algorithms=('td3',))
  initial_temperature: float = setting(
      By(sac=1., mpo=10.),
      'Temperature at the start. SAC: alpha, the weight of the entropy. MPO: '
      'eta.', POSITIVE, algorithms=('sac', 'mpo'), unless='exact_temperature')
  temperature_learning_rate: float = setting(
      By(mpo=.01, sac=.0003),
      'Learning rate of the temperature; with mpo also of the weights of the '
      'KL terms.', NOT_NEGATIVE, algorithms=('sac', 'mpo'))
  target_entropy_ratio: float = setting(
      .7,
      'Entropy that the policy should have, as a share of the entropy of '
      'uniformly random actions. Larger values explore more. The paper has '
      '0.98; with few actions, the temperature then grows without bound.',
      FRACTION, algorithms=('sac',), actions='discrete')
  target_entropy_per_part: float = setting(
      -1.,
      'Entropy that the policy should have, for each number of an action. '
      'Larger values explore more; negative values are possible.', FINITE,
      algorithms=('sac',), actions='continuous')
  num_samples: int = setting(
      20,
      'Number of actions that are sampled for each observation.', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  epsilon_temperature: float = setting(
      .1,
      'Bound of the mean KL between the target policy and the improved policy, '
      'which the policy learns.', POSITIVE, algorithms=('mpo',))
  epsilon_mean: float = setting(
      .0025,
      'Bound of the mean KL between the target policy and the policy: for '
      'continuous actions, for the mean of each number of an action; for '
      'discrete actions, of the whole KL.', POSITIVE, algorithms=('mpo',))
  epsilon_scale: float = setting(
      1e-6,
      'Bound of the mean KL between the target policy and the policy, for the '
      'standard deviation of each number of an action.', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  epsilon_bounds: float = setting(
      .001,
      'KL bound of the objective that keeps actions within [-1, 1].', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  initial_mean_multiplier: float = setting(
      10.,
      'Weight of the KL of --epsilon_mean at the start; the weight is learned.',
      POSITIVE, algorithms=('mpo',))
  initial_scale_multiplier: float = setting(
      1000.,
      'Weight of the KL of --epsilon_scale at the start; the weight is '
      'learned.', POSITIVE, algorithms=('mpo',), actions='continuous')
  initial_scale: float = setting(
      1.,
      'Initial standard deviation of actions (approximate; actions are in [-1, '
      '1]).', IS_SCALE, algorithms=('mpo',), actions='continuous')
  exact_temperature: bool = setting(
      False,
      'Compute the temperature exactly in each update. If off, the temperature '
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
  """The replay buffer: size, ratio of updates to steps, and selection."""
  replay_capacity: int = setting(
      0,
      'Number of unrolls in the replay buffer. The newest unrolls are kept and '
      'learned from again. The paper keeps 10,000. 0 for no replay. Unrolls '
      'are kept in memory, not in checkpoints.', NOT_NEGATIVE,
      algorithms=('impala',))
  replay_fraction: float = setting(
      .5,
      'Share of replayed unrolls in a batch, with --replay_capacity. Frames, '
      'returns and policy lag are counted for fresh unrolls only.', FRACTION,
      algorithms=('impala',), needs=_REPLAY, unless='unrolls_per_collect')
  unrolls_per_collect: int = setting(
      0,
      'With --replay_capacity: collect this many unrolls, then make '
      '--updates_per_collect updates from replayed unrolls only, as in '
      'DI-engine. 0 for fresh unrolls in every batch.', NOT_NEGATIVE,
      algorithms=('impala',), needs=_REPLAY)
  updates_per_collect: int = setting(
      4,
      'Updates after each collection of --unrolls_per_collect unrolls.',
      POSITIVE, algorithms=('impala',), needs=_COLLECTIONS)
  max_use: int = setting(
      0,
      'With --unrolls_per_collect: drop an unroll that was drawn this many '
      'times. 0 for no limit.', NOT_NEGATIVE, algorithms=('impala',),
      needs=_COLLECTIONS)
  replay_steps: int = setting(
      1_000_000,
      'Number of agent steps in the replay buffer, of all environments '
      'together. The newest steps are kept.', POSITIVE, algorithms=OFF_POLICY)
  save_replay: str = setting(
      'auto',
      'Save the replay with checkpoints, in the directory replay of --logdir. '
      'auto: if the full replay has at most 2 GB. Without a saved replay, a '
      'resumed run first collects --min_replay_steps; an old saved replay is '
      'deleted. With --use_lstm, the replay is never saved; otherwise, with '
      '--deterministic, always.', choices=('auto', 'yes', 'no'),
      algorithms=OFF_POLICY)
  min_replay_steps: int = setting(
      By({'ddqn on Atari': 20_000, 'others': 1_000}),
      'Agent steps, of all environments together, before the first update. '
      'Their actions are random.', POSITIVE, algorithms=OFF_POLICY)
  updates_per_step: float = setting(
      By({'Atari': .25, 'others': 1.}),
      'Updates for each agent step of one environment, such as 0.25 for one '
      'update in four steps. The ratio is exact: actors and learner wait for '
      'each other.', POSITIVE, algorithms=OFF_POLICY)
  n_step: int = setting(
      1,
      'Number of steps whose rewards are summed before the value of an '
      'observation is added.', POSITIVE, COUNT, algorithms=OFF_POLICY)
  selector: str = setting(
      'uniform',
      'Selection of steps from the replay (with impala and --replay_capacity, '
      'and with ddqn and --use_lstm: of unrolls). uniform: equal '
      'probabilities. prioritised: large errors more often, see '
      '--priority_exponent. recent: newer steps more often, see --recent_eta. '
      'recent_prioritised: both.',
      choices=('uniform', 'prioritised', 'recent', 'recent_prioritised'))
  priority_exponent: float = setting(
      .6,
      'Prioritised selectors: the probability of a draw grows with the error '
      'to this power. 0 for equal probabilities.', NOT_NEGATIVE,
      needs=_PRIORITISED)
  priority_epsilon: float = setting(
      .01,
      'Prioritised selectors: number that is added to each error, so that '
      'steps with small errors are drawn.', POSITIVE, needs=_PRIORITISED)
  importance_exponent: float = setting(
      .4,
      'Prioritised selectors: importance weights of losses are probabilities '
      'of draws to the power of minus this number, divided by the largest '
      'possible weight. Fresh unrolls have weight 1. 0 for no importance '
      'weights.', FRACTION, needs=_PRIORITISED)
  importance_exponent_end: float = setting(
      1.,
      'Prioritised selectors: value that --importance_exponent reaches, '
      'linearly, at --total_environment_frames.', FRACTION, needs=_PRIORITISED)
  recent_eta: float = setting(
      .996,
      'Recent selectors: in rounds of 50 batches, batch k is drawn from the '
      'newest eta^(20 k) of all steps. 1 for all steps in each batch.',
      POSITIVE, FRACTION, needs=_RECENT)
  recent_min_steps: int = setting(
      By({'impala': 250, 'ddqn with LSTM': 250, 'others': 5_000}),
      'Recent selectors: smallest number of steps (of unrolls, in a replay of '
      'unrolls) that a batch is drawn from. With no more in the replay, age '
      'has no effect.', POSITIVE, needs=_RECENT)
  hindsight: str = setting(
      'none',
      'Levels with goals: in most of the drawn steps, replace the goal by a '
      'goal that was achieved in the same episode. future: achieved after the '
      'step. final: at the end of the episode. episode: at any time of the '
      'episode.', choices=('none', 'future', 'final', 'episode'),
      algorithms=OFF_POLICY)
  hindsight_goals: int = setting(
      4,
      'With --hindsight: number of drawn steps with a replaced goal, for each '
      'step that keeps its own goal.', POSITIVE, algorithms=OFF_POLICY,
      needs=_HINDSIGHT)

  @property
  def is_prioritised(self) -> bool:
    """Whether probabilities of draws depend on errors."""
    return self.selector in _PRIORITISED.values

  @property
  def is_recent(self) -> bool:
    """Whether probabilities of draws depend on age."""
    return self.selector in _RECENT.values


@dataclasses.dataclass(frozen=True, kw_only=True)
class TestSettings(_Section):
  """Tests, evaluations, videos, exports and plots of learning curves."""
  test_num_episodes: int = setting(
      10, 'Episodes per level in test mode.', POSITIVE)
  test_greedy: bool = setting(
      By(impala=False, others=True),
      'Take the best known action in tests and evaluations. If off, the agent '
      'acts as in training; impala then draws actions from the policy at '
      'random, as the reference does.')
  eval_every_frames: int = setting(
      0,
      'Environment frames between evaluations; the last one is at the end. An '
      'evaluation plays whole games with the current weights, writes '
      'evaluations.csv, and keeps the weights with the highest mean return in '
      'the directory best of --logdir. The learner waits meanwhile, and the '
      'time counts. 0 for never.', NOT_NEGATIVE)
  eval_num_episodes: int = setting(
      10,
      'Episodes per level in each evaluation. All evaluations start their '
      'episodes the same way.', POSITIVE)
  video_num_episodes: int = setting(
      5,
      'Games per level that video mode plays. The videos of the best game and '
      'of the median game are kept.', POSITIVE, COUNT)
  video_format: str = setting(
      'mp4',
      'Format of videos. mp4: small files, needs imageio-ffmpeg. gif: large '
      'files, at most 25 pictures a second.', choices=('mp4', 'gif'))
  video_text: bool = setting(
      False, 'Show the return so far and the action in a corner of videos.')
  video_secs: float = setting(
      0.,
      'Seconds of training between videos of a game of the latest checkpoint, '
      'which another process records at the lowest priority. 0 for never.',
      NOT_NEGATIVE, FINITE)
  export_format: str = setting(
      'auto',
      'Format of the program that export mode writes. saved_model: a '
      'SavedModel. tflite: a SavedModel and a file of TensorFlow Lite, for one '
      'environment and the best known actions. auto: as tflite if the network '
      'can be converted, otherwise as saved_model.',
      choices=('auto', 'saved_model', 'tflite'))
  plot_file: str = setting(
      '',
      'PNG file that plot mode writes. If empty, learning_curves.png in the '
      'directory of the run, or learning_curves_compared.png in the first of '
      'several directories.')
  plot_num_episodes: int = setting(
      100,
      'Number of episodes per mean: a learning curve shows mean returns of '
      'this many episodes.', POSITIVE)
