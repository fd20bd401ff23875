# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run, each declared once: default, checks and help text.

A section is a frozen dataclass of settings; `Config` is all sections in one.
`experiment.py` makes a flag of every setting. In a program or a notebook,
`Config(level_name='catch', batch_size=8)` has the defaults for all other
settings. A section can also be made alone: `EnvironmentSettings(width=64)`. A
function that takes a section also takes a `Config`.

This module must not import TensorFlow: environment processes import it.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import json
import os
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from scalable_agent import errors

# Corrections for unrolls of older policies, see `algorithms.impala`.
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')

# On a CPU, a micro-batch has at most this many observations, but at least this
# many unrolls. Larger ones need more memory and were not faster
# (docs/measurements.md, "The learner").
_OBSERVATIONS_PER_MICRO_BATCH = 84
_MIN_MICRO_BATCH_SIZE = 4
# Groups share their policy steps if there are at least this many groups, and
# each has fewer environments than this.
_MIN_GROUPS_SHARING = 4
_MIN_ENVIRONMENTS_PER_STEP = 4
# Seeds depend on this order, so new roles go to the end.
_SEED_ROLES = ('environment', 'learner', 'actor', 'test', 'replay')

# The value of a setting. Its type is in the section.
Value: TypeAlias = Any

_T = TypeVar('_T')


class Check(NamedTuple):
  """A rule for the value of a setting, and its text in error messages."""
  is_valid: Callable[[Value], bool]
  rule: str


POSITIVE = Check(lambda x: x > 0, 'must be positive')
NOT_NEGATIVE = Check(lambda x: x >= 0, 'must not be negative')
FRACTION = Check(lambda x: 0 <= x <= 1, 'must be between 0 and 1')
BELOW_ONE = Check(lambda x: 0 <= x < 1, 'must be at least 0 and below 1')
IS_SEED = Check(lambda x: x < 2**31, 'must be below 2**31')
ALE_COUNT = Check(lambda x: x < 2**31 - 1, 'must be below 2**31 - 1')
DIRECTORIES = Check(lambda x: bool(_names(x)), 'must name a directory')
LEVELS = Check(lambda x: bool(_names(x)), 'must name at least one level')
ONE_MACHINE = Check(
    lambda x: x == -1,
    'must be -1: this version trains on one machine. Set the number of '
    'environments with --num_actors')

# For each type of setting, the types of its values.
_ACCEPTED_TYPES: dict[object, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int,), float: (float, int),
    bool | None: (bool, type(None))}


def setting(default: _T, text: str, *checks: Check,
            choices: tuple[str, ...] = ()) -> _T:
  """Declares a setting in the body of a section.

  Args:
    default: its default.
    text: its help text, in whole sentences.
    *checks: rules for its value.
    choices: all its values, if it has only a few.

  Returns:
    The dataclass field, with `text`, `checks` and `choices` as its metadata.
  """
  if choices:
    checks += (Check(lambda x: x in choices,
                     f'must be one of {", ".join(choices)}'),)
  return dataclasses.field(default=default, metadata={
      'text': text, 'checks': checks, 'choices': choices})


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Section:
  """Base of all sections: checks their settings."""

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      types = _ACCEPTED_TYPES[field.type]
      value = getattr(self, field.name)
      # A bool is an int to Python, but batch_size=True is a mistake.
      is_type = isinstance(value, types) and (
          bool in types or not isinstance(value, bool))
      self._check(field.name, is_type,
                  f'must be of type {" or ".join(t.__name__ for t in types)}')
      for is_valid, rule in field.metadata['checks']:
        self._check(field.name, is_valid(getattr(self, field.name)), rule)

  def _check(self, name: str, is_valid: bool, rule: str) -> None:
    if not is_valid:
      raise errors.ConfigError(f'--{name}={getattr(self, name)} {rule}.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ModeSettings(_Section):
  """The setting that runs and environments share."""
  mode: str = setting(
      'train',
      'What to do. train: train an agent. test: play whole games with the '
      'latest checkpoint and make a table of scores beside published ones. '
      'table: make one table of the tests in --logdir=A,B,C, which names '
      'directories (their latest tests) or files of tests. plot: draw the '
      'learning curves of --logdir=A,B,C.',
      choices=('train', 'test', 'table', 'plot'))

  @property
  def is_test(self) -> bool:
    """Whether suites and environments are those of tests.

    In tests, DeepMind Lab plays the levels and the seeds that are held out from
    training.
    """
    return self.mode == 'test'


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(_ModeSettings):
  """What to run, for how long, and how often to report."""
  logdir: str = setting(
      '/tmp/agent',
      'Directory of checkpoints, curves and scores. If it has a checkpoint, '
      'training goes on from there.', DIRECTORIES)
  level_name: str = setting(
      'ALE/Pong-v5',
      'What to play: a gymnasium id (also of MiniGrid, BabyAI, ViZDoom or '
      'Gymnasium-Robotics), a level of DeepMind Lab, a toy such as catch; one '
      'of the suites dmlab30 and atari57; or a list A,B,C of these. '
      'Environment i plays level i % n of the n levels.', LEVELS)
  total_environment_frames: int = setting(
      1_000_000_000,
      'Environment frames (agent steps x action repeats) to train for. The '
      'learning rate reaches 0 there.', POSITIVE)
  seed: int = setting(
      1, 'Seed of weights, actions and environments.', NOT_NEGATIVE, IS_SEED)
  task: int = setting(-1, 'Task id. -1 for one machine.', ONE_MACHINE)
  job_name: str = setting(
      'learner', 'Job name. It has no effect when the task is -1.',
      choices=('learner', 'actor'))
  save_checkpoint_secs: float = setting(
      600., 'Seconds between checkpoints.', POSITIVE)
  save_summaries_secs: float = setting(
      30., 'Seconds between TensorBoard summaries.', POSITIVE)
  progress_secs: float = setting(
      10., 'Seconds between lines of progress.', POSITIVE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentSettings(_ModeSettings):
  """How environments are made. The defaults are the paper's for training."""
  num_action_repeats: int = setting(
      4,
      'Environment frames per agent step: each action is repeated this many '
      'times, and the rewards are summed. An Atari observation is the maximum '
      'over the last two frames.',
      POSITIVE)
  width: int = setting(
      96, 'DeepMind Lab and ViZDoom: width of the frames in pixels.', POSITIVE)
  height: int = setting(
      72, 'DeepMind Lab and ViZDoom: height of the frames in pixels.', POSITIVE)
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
      False, 'Atari: press FIRE at the start of a game.')
  max_episode_frames: int = setting(
      108_000, 'Atari: a game is cut off after this many frames.',
      POSITIVE, ALE_COUNT)
  step_timeout_s: float = setting(
      300.,
      'Seconds that an environment process may take to start, to reset or to '
      'step. If it takes longer, the run ends with an error.', POSITIVE)
  dataset_path: str = setting(
      '',
      'DeepMind Lab: directory of the images that two psychlab levels need.')
  level_cache_dir: str = setting(
      '',
      'DeepMind Lab: directory where compiled maps are kept. It grows with '
      'every new map. If empty, maps are not kept.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentSettings(_Section):
  """The network, and how it is computed."""
  agent: str = setting(
      'auto',
      "Network. deep: the reference's ResNet. shallow: the paper's small "
      'network. mlp: dense layers, for vectors and tiny images. auto: deep if '
      'observations are frames (three axes), else mlp.',
      choices=('auto', 'deep', 'shallow', 'mlp'))
  use_lstm: bool = setting(True, 'The agent has an LSTM of 256 units.')
  use_last_action_reward: bool = setting(
      True, 'The agent sees its last action and its last (clipped) reward.')
  use_instruction: bool = setting(
      True, 'The agent sees the instruction, in levels that have one.')
  compute_dtype: str = setting(
      'float32',
      'Type in which the networks multiply. bfloat16 is meant for GPUs that '
      'support it; its speed was never measured. Weights, the state of the '
      'LSTM, V-trace and losses are always float32.',
      choices=('float32', 'bfloat16'))
  xla: str = setting(
      'auto',
      'What XLA compiles. none: nothing. policy: the policy steps. all: the '
      'policy steps and the updates. auto: policy on a CPU if the network is '
      'not deep, else none. XLA never compiles policy steps that groups '
      'share (--dynamic_batching).',
      choices=('auto', 'none', 'policy', 'all'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActingSettings(_Section):
  """How experience is made."""
  num_actors: int = setting(
      4,
      'Number of environments. In the reference every actor has one '
      'environment, hence the name. Here --num_actor_groups threads step them.',
      POSITIVE)
  num_actor_groups: int = setting(
      2,
      'Number of threads that act. The environments are divided among them, so '
      'there are never more groups than environments. While one group steps '
      'its environments, another one can run the policy.', POSITIVE)
  unroll_length: int = setting(100, 'Agent steps per unroll.', POSITIVE)
  queue_capacity: int = setting(
      1,
      'Number of places for unrolls that wait for the learner. One place holds '
      'the unrolls of all environments of a group. More places mean more '
      'policy lag.', POSITIVE)
  dynamic_batching: bool | None = setting(
      None,
      'The groups run their policy steps together, in one batch. If not set, '
      'they do so if there are four or more groups with fewer than four '
      'environments each.')
  min_policy_lag: int = setting(
      0,
      'For experiments: act with weights that are this many updates old. '
      'Until there are that many updates, act with the first weights. Queues '
      'add more lag.', NOT_NEGATIVE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSettings(_Section):
  """How a batch becomes an update."""
  batch_size: int = setting(
      2, 'Unrolls per update, each of one environment.', POSITIVE)
  learning_rate: float = setting(
      0.00048, 'Learning rate at frame 0.', NOT_NEGATIVE)
  optimizer: str = setting(
      'rmsprop',
      'Optimizer. rmsprop is that of TensorFlow 1, torch_rmsprop that of '
      'PyTorch: its second moment starts at 0 instead of 1. adam is that of '
      'the paper and of PyTorch.',
      choices=('rmsprop', 'torch_rmsprop', 'adam'))
  decay: float = setting(
      .99, 'RMSProp: decay of the second moment.', FRACTION)
  momentum: float = setting(0., 'RMSProp: momentum.', NOT_NEGATIVE)
  epsilon: float = setting(
      .1,
      'Epsilon of the optimizer. rmsprop adds it inside the square root, the '
      'others outside; they need a smaller one, such as 0.00001.', POSITIVE)
  adam_beta1: float = setting(
      .9, 'Adam: decay of the first moment.', BELOW_ONE)
  adam_beta2: float = setting(
      .999, 'Adam: decay of the second moment.', BELOW_ONE)
  clip_gradient_norm: float = setting(
      0., 'Largest global norm of the gradient. 0 for no clipping.',
      NOT_NEGATIVE)
  micro_batch_size: int = setting(
      0,
      'Unrolls of a batch that are processed at once. The update is always '
      'that of the whole batch. Smaller values need less memory. 0 to let the '
      'program choose: on a CPU, the deep network (with --xla=all also the '
      'shallow one) processes as many unrolls as have 84 observations '
      'together, but at least four. In all other cases, the whole batch is '
      'processed at once.',
      NOT_NEGATIVE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImpalaSettings(_Section):
  """The algorithm: the loss of IMPALA."""
  entropy_cost: float = setting(
      0.00025, 'Weight of the entropy loss.', NOT_NEGATIVE)
  baseline_cost: float = setting(
      0.5, 'Weight of the baseline loss.', NOT_NEGATIVE)
  discounting: float = setting(0.99, 'Discount per agent step.', FRACTION)
  reward_clipping: str = setting(
      'abs_one',
      'How rewards are clipped for learning. abs_one: to [-1, 1]. '
      'soft_asymmetric: squashed to [-1.5, 5], and negative rewards count 0.3 '
      'times as much as positive ones.',
      choices=('abs_one', 'soft_asymmetric'))
  bootstrap_truncated: bool = setting(
      False,
      'If a time limit cuts an episode off, add the value of the last '
      'observation to the return. If this is off, as in the reference, a time '
      'limit is an end like any other.')
  correction: str = setting(
      'vtrace',
      'What is corrected in unrolls of older policies (table 2 of the paper). '
      'vtrace: everything. one_step: everything but the targets of the '
      'baseline. none: nothing. epsilon: nothing, but 1e-6 is added to the '
      'probabilities in the policy loss.', choices=CORRECTIONS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplaySettings(_Section):
  """Learning again from earlier unrolls."""
  replay_capacity: int = setting(
      0,
      'Number of the latest unrolls that are kept, to learn from them again. '
      'The paper keeps 10,000. 0 for no replay. They are kept in memory, not '
      'in checkpoints.', NOT_NEGATIVE)
  replay_fraction: float = setting(
      .5,
      'Share of replayed unrolls in a batch, with --replay_capacity. Frames, '
      'returns and policy lag are those of the fresh unrolls only.', FRACTION)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TestSettings(_Section):
  """Tests, and plots of learning curves."""
  test_num_episodes: int = setting(
      10, 'Episodes per level in test mode.', POSITIVE)
  test_greedy: bool = setting(
      False,
      'Test mode takes the most likely action. If this is off, it draws '
      'actions from the policy at random, as the reference does.')
  plot_file: str = setting(
      '',
      'File that plot mode draws to, a PNG. If empty, learning_curves.png in '
      'the directory of the run, or learning_curves_compared.png in the first '
      'of several.')
  plot_num_episodes: int = setting(
      100, 'A learning curve shows the mean return of this many episodes.',
      POSITIVE)


class _HasShape(Protocol):
  """An object with a shape, such as a `structs.ArraySpec`."""

  @property
  def shape(self) -> Sequence[int]:
    """Shape of an observation, without the axes of time and environment."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunSettings, EnvironmentSettings, AgentSettings, ActingSettings,
             LearnerSettings, ImpalaSettings, ReplaySettings, TestSettings):
  """All settings of the program; `Config()` has the defaults of all flags."""

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.replay_capacity:
      return
    self._check('replay_capacity', self.replay_capacity >= self.batch_size,
                f'must be 0 or at least --batch_size={self.batch_size}')
    self._check('replay_fraction', 0 < self.num_fresh_unrolls < self.batch_size,
                f'must leave both fresh and replayed unrolls in a batch of '
                f'--batch_size={self.batch_size}')

  @classmethod
  def from_values(cls, values: Mapping[str, Value]) -> 'Config':
    """Makes settings from values by name, such as those of a `settings.json`.

    It may be from another version: settings without a value get their defaults,
    and unknown names are ignored.

    Raises:
      ConfigError: if a value is not valid.
    """
    if not isinstance(values, Mapping):
      raise errors.ConfigError(
          f'Settings must be a dictionary, not {values!r}.')
    names = {field.name for field in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in values.items() if k in names})

  @property
  def logdirs(self) -> list[str]:
    """The directories of `--logdir=A,B,C`, for modes that read several."""
    return _names(self.logdir)

  @property
  def num_fresh_unrolls(self) -> int:
    """The number of unrolls in a batch that are new to the learner."""
    if not self.replay_capacity:
      return self.batch_size
    return self.batch_size - round(self.batch_size * self.replay_fraction)

  def resolved(
      self, observation_spec: _HasShape | Mapping[str, _HasShape], *,
      on_cpu: bool, num_groups: int) -> 'Config':
    """Returns these settings with a value for each one that was left open.

    `agent`, `xla`, `dynamic_batching` and `micro_batch_size` can be left open.

    Args:
      observation_spec: a `structs.ArraySpec`, or a dictionary of them with
        `frame`.
      on_cpu: whether networks are computed on the CPU.
      num_groups: number of groups of environments.
    """
    agent, xla, sharing = self.agent, self.xla, self.dynamic_batching
    if agent == 'auto':
      agent = 'deep' if _is_frame(observation_spec) else 'mlp'
    if xla == 'auto':  # This was faster on CPUs, and not measured on GPUs.
      xla = 'policy' if on_cpu and agent != 'deep' else 'none'
    if sharing is None:
      sharing = (num_groups >= _MIN_GROUPS_SHARING and
                 self.num_actors / num_groups < _MIN_ENVIRONMENTS_PER_STEP)
    size = self.micro_batch_size
    if not size:
      is_cut = agent == 'deep' or (agent == 'shallow' and xla == 'all')
      size = self._small_micro_batch() if is_cut and on_cpu else self.batch_size
    return dataclasses.replace(self, agent=agent, xla=xla,
                               dynamic_batching=sharing, micro_batch_size=size)

  def _small_micro_batch(self) -> int:
    size = _OBSERVATIONS_PER_MICRO_BATCH // (self.unroll_length + 1)
    return min(max(size, _MIN_MICRO_BATCH_SIZE), self.batch_size)

  def derive_seed(self, role: str, index: int, part: int = 0) -> int:
    """Returns a different seed for each role, index and part.

    Args:
      role: one of `_SEED_ROLES`.
      index: a number that differs between things of the same role.
      part: a number that differs between the parts of a run.

    Returns:
      An int within `[0, 2**31)`.
    """
    sequence = np.random.SeedSequence(
        [self.seed, _SEED_ROLES.index(role), index, part])
    return int(sequence.generate_state(1)[0] % 2**31)

  def save(self) -> None:
    """Writes `<logdir>/settings.json`: the settings of the latest part.

    Raises:
      OSError: if it cannot be written.
    """
    path = _settings_path(self.logdir)
    with open(f'{path}.tmp', 'w', encoding='utf-8') as f:
      json.dump(dataclasses.asdict(self), f, indent=1)
    os.replace(f'{path}.tmp', path)


# In the order of --helpfull.
SECTIONS = Config.__bases__


def choices_made(config: Config, resolved: Config) -> str:
  """Returns a line with the flags that `config.resolved` chose, or ''."""
  reasons = {'--agent=deep': ' for frames',
             '--agent=mlp': ' for observations that are not frames'}
  flags = [f'--{name}={str(getattr(resolved, name)).lower()}'
           for name in ('agent', 'xla', 'dynamic_batching', 'micro_batch_size')
           if getattr(config, name) != getattr(resolved, name)]
  return flags and 'Chosen: ' + ', '.join(
      flag + reasons.get(flag, '') for flag in flags) + '.' or ''


def trained_with(logdir: str) -> Config | None:
  """Returns the settings of the run in `logdir`, None if they are not known."""
  try:
    with open(_settings_path(logdir), encoding='utf-8') as f:
      return Config.from_values(json.load(f))
  except (OSError, ValueError):  # There are none, or they are damaged.
    return None


def _settings_path(logdir: str) -> str:
  return os.path.join(logdir, 'settings.json')


def _names(text: str) -> list[str]:
  """Returns the names in a list `A,B,C`."""
  return [name.strip() for name in text.split(',') if name.strip()]


def _is_frame(
    observation_spec: _HasShape | Mapping[str, _HasShape]) -> bool:
  frame = (observation_spec.get('frame')
           if isinstance(observation_spec, Mapping) else observation_spec)
  return frame is not None and len(frame.shape) == 3
