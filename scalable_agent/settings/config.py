# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run: what must fit together, what is left open, files.

`Config` is all sections of `sections`, where each setting is declared, in one.
`experiment.py` makes a flag of every setting. In a program or a notebook,
`Config(level_name='catch', batch_size=8)` has the defaults for all other
settings.

This module must not import TensorFlow: environment processes import it.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import fractions
import json
import os
from typing import Protocol

import numpy as np
from scalable_agent import errors
from scalable_agent.settings import sections
from scalable_agent.settings.declare import MIN_FRAME_SIZES
from scalable_agent.settings.declare import names
from scalable_agent.settings.declare import Value

# On a CPU, a micro-batch has at most this many observations, but at least this
# many unrolls. Larger ones need more memory and were not faster, with the
# shallow and the deep network (docs/measurements.md, "The learner").
_OBSERVATIONS_PER_MICRO_BATCH = 84
_MIN_MICRO_BATCH_SIZE = 4
# Groups share their policy steps if there are at least this many groups, and
# each has fewer environments than this.
_MIN_GROUPS_SHARING = 4
_MIN_ENVIRONMENTS_PER_STEP = 4
# What a replay keeps of an environment beside an unroll: its first entry and
# the frames of a stack.
_SLOTS_BESIDE_AN_UNROLL = 5
# More updates before new weights made no call faster.
_MAX_UPDATES_PER_CALL = 8
# Seeds depend on this order, so new roles go to the end.
_SEED_ROLES = (
    'environment', 'learner', 'actor', 'test', 'replay', 'evaluation')

# What makes the task another one, beside the level: returns of before and after
# cannot be compared.
_TASK = ('num_action_repeats', 'width', 'height', 'repeat_action_probability',
         'full_action_space', 'life_loss_ends_episode', 'max_noops',
         'fire_on_reset', 'max_episode_frames')
# Where `~` at the beginning means the user's directory.
_PATHS = ('logdir', 'dataset_path', 'level_cache_dir', 'plot_file')
# What has no effect in deterministic runs.
_NOT_DETERMINISTIC = ('save_checkpoint_secs', 'queue_capacity')
# What may differ between two parts of a run without a word.
_NOT_OF_A_PART = ('mode', 'logdir', 'task', 'job_name', 'allow_other_task',
                  'debug')


# Name of a file of settings that a killed run leaves behind.
TEMPORARY_NAME = r'settings.*\.json\.tmp'


class _HasShape(Protocol):
  """An object with a shape, such as a `structs.ArraySpec`."""

  @property
  def shape(self) -> Sequence[int]:
    """Shape of an observation, without the axes of time and environment."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(
    sections.RunSettings, sections.EnvironmentSettings, sections.AgentSettings,
    sections.ActingSettings, sections.ClusterSettings, sections.LearnerSettings,
    sections.ImpalaSettings, sections.OffPolicySettings,
    sections.ReplaySettings, sections.TestSettings):
  """All settings of the program; `Config()` has the defaults of all flags."""

  def __post_init__(self) -> None:
    for name in _PATHS:
      if isinstance(path := getattr(self, name), str) and '~' in path:
        object.__setattr__(self, name, ','.join(
            os.path.expanduser(part.strip()) for part in path.split(',')))
    super().__post_init__()
    self._check('logdir', len(self.logdirs) == 1 or self.mode in (
        'table', 'plot'), f'must be one directory with --mode={self.mode}')
    if self.is_off_policy:
      self._check_sequences()
      least = self.num_actors * (self.unroll_length + _SLOTS_BESIDE_AN_UNROLL)
      self._check('replay_steps', self.replay_steps >= least,
                  f'must be at least {least}, for --num_actors='
                  f'{self.num_actors} unrolls of {self.unroll_length} steps')
    self._check('deterministic',
                not self.deterministic or self.num_actor_groups == 1,
                'needs --num_actor_groups=1')
    self._check('deterministic', not (self.deterministic and self.ray_address),
                'cannot be used with --ray_address')
    for name in _NOT_DETERMINISTIC:
      self._check(name, not self.deterministic or (
          getattr(self, name) == _DEFAULTS[name]),
                  'has no effect with --deterministic')
    self._check('save_replay',
                not self.deterministic or self.save_replay != 'no',
                'cannot be used with --deterministic: each part goes on with '
                'the replay of the one before')
    if self.inference != 'local':
      self._check('dynamic_batching', self.dynamic_batching is not False,
                  f'cannot be off with --inference={self.inference}')
      self._check('pack', self.pack == 'auto',
                  f'cannot be used with --inference={self.inference}')
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
      return
    self._check('replay_fraction', 0 < self.num_fresh_unrolls < self.batch_size,
                f'must leave both fresh and replayed unrolls in a batch of '
                f'--batch_size={self.batch_size}')

  def _check_learners(self) -> None:
    """Checks that work can be divided among several learners."""
    if self.mode != 'train':
      return
    if self.num_learners == 1:
      self._check('collectives', self.collectives == 'tensorflow',
                  'has no effect without --num_learners')
      return
    for name in ('batch_size', 'replay_capacity', 'unrolls_per_collect'):
      self._check('num_learners', getattr(self, name) % self.num_learners == 0,
                  f'must divide --{name}={getattr(self, name)}')
    self._check('num_learners', not self.exact_temperature,
                'cannot be used with --exact_temperature, which is that of a '
                'whole batch')
    num_workers = self.num_actor_workers or self.num_actors
    self._check('num_learners', self.num_learners <= num_workers,
                'must not be more than there are --num_actor_workers and '
                '--num_actors')
    # The workers are divided first, then the environments among them.
    num_environments = -(-num_workers // self.num_learners) * -(
        -self.num_actors // num_workers)
    try:
      part = self.of_learner(num_environments)
    except errors.ConfigError as e:
      raise errors.ConfigError(
          f'Each of --num_learners={self.num_learners} learners: {e}') from e
    self._check('replay_fraction', self.num_fresh_unrolls == (
        self.num_learners * part.num_fresh_unrolls), 'must leave the same '
        'number of fresh unrolls in the batch of each learner')

  def _check_task(self) -> None:
    """Checks what commands on several hosts need."""
    if self.task == -1 or self.mode != 'train':
      return
    self._check('task', ':' in self.ray_address,
                'needs --ray_address=HOST:PORT, where HOST is the learner')
    if self.job_name == 'learner':
      self._check('task', self.task == 0, 'must be 0 for the only '
                  '--job_name=learner; --num_learners is for several')
      self._check('num_actor_workers', bool(self.num_actor_workers),
                  'must be set with --task: the hosts of the actors are not '
                  'known yet')

  def _check_sequences(self) -> None:
    """Checks what learning from unrolls needs, and what needs it."""
    if not self.use_lstm:
      self._check('burn_in_steps', not self.burn_in_steps, 'needs --use_lstm')
      self._check('use_last_action_reward', not self.use_last_action_reward,
                  'needs --use_lstm')
      self._check('use_instruction', self.use_instruction,
                  'has no effect without --use_lstm')
      return
    self._check('burn_in_steps', self.burn_in_steps < self.unroll_length,
                f'must be below --unroll_length={self.unroll_length}')
    for name, value in (('n_step', 1), ('hindsight', 'none')):
      self._check(name, getattr(self, name) == value,
                  'cannot be used with --use_lstm')
    self._check('save_replay', self.save_replay != 'yes',
                'cannot be used with --use_lstm')
    self._check('updates_per_call', self.updates_per_call <= 1,
                'must be 0 or 1 with --use_lstm')

  @classmethod
  def from_values(cls, values: Mapping[str, Value]) -> 'Config':
    """Makes settings from values by name.

    Settings without a value get their defaults, and unknown names are ignored.

    Raises:
      ConfigError: if a value is not valid.
    """
    names_of_settings = {field.name for field in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in values.items() if k in names_of_settings})

  @classmethod
  def from_saved(cls, values: Mapping[str, Value]) -> 'Config':
    """Makes settings from the values of a `settings.json`.

    It may be from another version: settings that have no effect here, which
    would be errors as flags, are ignored. Otherwise as `from_values`.
    """
    if not isinstance(values, Mapping):
      raise errors.ConfigError(
          f'Settings must be a dictionary, not {values!r}.')
    without_effect = {
        field.name for field in dataclasses.fields(cls)
        if field.metadata['needs'] and not field.metadata['needs'].are_met(
            values.get(field.metadata['needs'].name))
        or field.metadata['unless'] and values.get(field.metadata['unless'])}
    if values.get('deterministic'):
      without_effect |= {*_NOT_DETERMINISTIC, 'save_replay'}
    return cls.from_values(
        {k: v for k, v in values.items() if k not in without_effect})

  @property
  def logdirs(self) -> list[str]:
    """The directories of `--logdir=A,B,C`, for modes that read several."""
    return names(self.logdir)

  @property
  def layer_sizes(self) -> list[int]:
    """The numbers of `hidden_sizes`."""
    return [int(size) for size in names(self.hidden_sizes)]

  @property
  def num_fresh_unrolls(self) -> int:
    """The number of unrolls in a batch that are new to the learner."""
    if not self.replay_capacity:
      return self.batch_size
    return self.batch_size - round(self.batch_size * self.replay_fraction)

  def resolved(
      self, observation_spec: _HasShape | Mapping[str, _HasShape], *,
      on_cpu: bool, num_groups: int,
      num_environments: int | None = None) -> 'Config':
    """Returns these settings with a value for each one that was left open.

    `agent`, `xla`, `dynamic_batching`, `micro_batch_size` and
    `updates_per_call` can be left open.

    Args:
      observation_spec: a `structs.ArraySpec`, or a dictionary of them.
      on_cpu: whether networks are computed on the CPU.
      num_groups: number of groups of environments, in each process that acts.
      num_environments: number of environments there; None for all.
    """
    num_environments = num_environments or self.num_actors
    agent, xla, sharing = self.agent, self.xla, self.dynamic_batching
    if agent == 'auto':
      agent = self._network_for(observation_spec)
    if xla == 'auto':  # This was faster on CPUs, and not measured on GPUs.
      xla = 'policy' if on_cpu and agent == 'mlp' else 'none'
      if on_cpu and agent == 'mlp' and self.algorithm == 'ddqn':
        xla = 'all'
    if self.inference != 'local':
      sharing = True
    if sharing is None:
      sharing = (num_groups >= _MIN_GROUPS_SHARING and
                 num_environments / num_groups < _MIN_ENVIRONMENTS_PER_STEP)
    resolved = dataclasses.replace(
        self, agent=agent, xla=xla, dynamic_batching=sharing)
    if self.is_off_policy:
      return dataclasses.replace(
          resolved, updates_per_call=self._updates_per_call())
    size = self.micro_batch_size
    if not size:
      is_cut = agent == 'deep' or (
          agent in ('shallow', 'nature') and xla == 'all')
      size = self._small_micro_batch() if is_cut and on_cpu else self.batch_size
    return dataclasses.replace(resolved, micro_batch_size=size)

  def of_learner(self, num_environments: int) -> 'Config':
    """Returns these settings for one of `num_learners` learners.

    It has a part of the batch, of the replay and of the environments. All
    learners make the same updates, so there are more of them for each step of
    its own environments.

    Args:
      num_environments: number of its environments.
    """
    size = self.num_learners
    # Settings that have no effect must not be set.
    divided = [
        'batch_size',
        *['replay_steps', 'min_replay_steps'] * self.is_off_policy,
        *['replay_capacity'] * bool(self.replay_capacity),
        *['unrolls_per_collect'] * bool(self.unrolls_per_collect),
        *['recent_min_steps'] * self.is_recent]
    changes: dict[str, Value] = {
        name: max(getattr(self, name) // size, 1) for name in divided}
    if self.is_off_policy:
      # Exact for decimal fractions, as `replay.Rate` is.
      changes['updates_per_step'] = float(
          fractions.Fraction(str(self.updates_per_step)) * size)
    return dataclasses.replace(
        self, task=-1, num_learners=1, collectives='tensorflow',
        num_actor_workers=0,
        num_actors=num_environments, **changes)

  def _network_for(
      self, observation_spec: _HasShape | Mapping[str, _HasShape]) -> str:
    parts = (observation_spec.values() if isinstance(observation_spec, Mapping)
             else [observation_spec])
    frames = [part.shape for part in parts if len(part.shape) == 3]
    if not frames:
      return 'mlp'
    # The channels are on the smaller of the outer axes.
    size = min(min(shape[1], max(shape[0], shape[2])) for shape in frames)
    is_large = size >= MIN_FRAME_SIZES['nature']
    return 'nature' if self.is_off_policy and is_large else 'deep'

  def _updates_per_call(self) -> int:
    if self.updates_per_call:
      return self.updates_per_call
    if self.is_prioritised or self.use_lstm:
      return 1
    due = int(self.updates_per_step * self.num_actors * self.unroll_length)
    return min(max(due, 1), _MAX_UPDATES_PER_CALL)

  def _small_micro_batch(self) -> int:
    size = _OBSERVATIONS_PER_MICRO_BATCH // (self.unroll_length + 1)
    return min(max(size, _MIN_MICRO_BATCH_SIZE), self.batch_size)

  def derive_seed(self, role: str, index: int, part: int = 0,
                  incarnation: int = 0) -> int:
    """Returns a different seed for each role, index and part.

    Args:
      role: one of `_SEED_ROLES`.
      index: a number that differs between things of the same role.
      part: a number that differs between the parts of a run.
      incarnation: how often what has the seed was replaced in this part.

    Returns:
      An int within `[0, 2**31)`.
    """
    numbers = [self.seed, _SEED_ROLES.index(role), index, part]
    sequence = np.random.SeedSequence(
        numbers + [incarnation] if incarnation else numbers)
    return int(sequence.generate_state(1)[0] % 2**31)

  def save(self, part: int = 0) -> None:
    """Writes the settings of a part of a run.

    They are in `<logdir>/settings-<part>.json`, and until the next part also in
    `<logdir>/settings.json`.

    Args:
      part: the number of updates at its beginning.

    Raises:
      CheckpointError: if they cannot be written.
    """
    for path in (_settings_path(self.logdir, f'-{part}'),
                 _settings_path(self.logdir)):
      try:
        with open(f'{path}.tmp', 'w', encoding='utf-8') as f:
          json.dump(dataclasses.asdict(self), f, indent=1)
          f.flush()
          os.fsync(f.fileno())  # Otherwise a crash may leave an empty file.
        os.replace(f'{path}.tmp', path)
      except OSError as e:
        raise errors.CheckpointError(
            f'{path} cannot be written: {e.strerror}.') from e

  def check_same_task(self, before: 'Config') -> None:
    """Raises ConfigError if this is not the task of an earlier part.

    If it need not be, raises if something of the old task would be used.
    """
    changed = [name for name in _TASK
               if getattr(self, name) != getattr(before, name)]
    if changed and not self.allow_other_task:
      raise errors.ConfigError(
          f'--logdir={self.logdir} was trained with '
          f'{_as_flags(before, changed)}, not with {_as_flags(self, changed)}: '
          'that is another task. Use the same flags, another --logdir, or '
          '--allow_other_task.')
    if changed or self.level_name != before.level_name:
      old = [path for path in sorted(os.listdir(self.logdir))
             if path == 'best' or path.startswith('replay')]
      self._check('allow_other_task', not old or not self.allow_other_task,
                  f'needs {", ".join(old)} of the old task to be moved away '
                  f'from {self.logdir}')


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Config)}
# In the order of --helpfull.
SECTIONS = Config.__bases__


def choices_made(config: Config, resolved: Config) -> str:
  """Returns a line with the flags that `config.resolved` chose, or ''."""
  reasons = {'--agent=deep': ' for frames', '--agent=nature': ' for frames',
             '--agent=mlp': ' for observations that are not frames'}
  flags = [f'--{name}={str(getattr(resolved, name)).lower()}'
           for name in ('agent', 'xla', 'dynamic_batching', 'micro_batch_size',
                        'updates_per_call')
           if getattr(config, name) != getattr(resolved, name)]
  return flags and 'Chosen: ' + ', '.join(
      flag + reasons.get(flag, '') for flag in flags) + '.' or ''


def changes_said(before: Config, now: Config) -> str:
  """Returns a line with the settings that another part has changed, or ''."""
  of_tests = {field.name for field in dataclasses.fields(sections.TestSettings)}
  changed = [
      field.name for field in dataclasses.fields(Config)
      if field.name not in _NOT_OF_A_PART and field.name not in of_tests
      and getattr(before, field.name) != getattr(now, field.name)]
  return changed and (
      f'Changed: {_as_flags(now, changed)}; before: '
      f'{_as_flags(before, changed)}.') or ''


def _as_flags(config, names_of_settings):
  text = lambda value: (
      str(value).lower() if isinstance(value, bool) else str(value))
  return ' '.join(f'--{name}={text(getattr(config, name))}'
                  for name in names_of_settings)


def trained_with(logdir: str) -> Config | None:
  """Returns the settings of the run in `logdir`, None if there are none.

  Raises:
    ConfigError: if they cannot be read, or are not valid here.
  """
  path = _settings_path(logdir)
  try:
    with open(path, encoding='utf-8') as f:
      return Config.from_saved(json.load(f))
  except (FileNotFoundError, NotADirectoryError):
    return None
  except (OSError, ValueError) as e:
    raise errors.ConfigError(
        f'{path}, the settings of the training, cannot be used '
        f'({str(e).rstrip(".")}). Replace it by the newest settings-N.json '
        'beside it, or remove it: then only the flags count.') from e


def _settings_path(logdir: str, part: str = '') -> str:
  return os.path.join(logdir, f'settings{part}.json')
