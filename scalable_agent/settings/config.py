# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run: automatic values, seeds and files.

`Config` joins all sections; `sections` declares every setting. `experiment.py`
makes a flag of every setting. In a program or a notebook,
`Config(level_name='catch', batch_size=8)` has defaults for all other settings.

This module must not import TensorFlow: environment processes import it.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
from typing import Any, Protocol

import numpy as np
from scalable_agent import errors
from scalable_agent.settings import declare
from scalable_agent.settings import files
from scalable_agent.settings import flag_texts
from scalable_agent.settings import recipes
from scalable_agent.settings import sections
from scalable_agent.settings import values
from scalable_agent.settings.agent_settings import MIN_CALLS_FOR_XLA
from scalable_agent.settings.declare import MIN_FRAME_SIZES
from scalable_agent.settings.declare import used
from scalable_agent.settings.values import names

__all__ = ['Config', 'resumed', 'trained_with', 'with_saved_clipping']

# On a CPU: largest number of observations, and smallest number of unrolls, in a
# micro-batch; second, of the deep network without an LSTM. Larger micro-batches
# are not faster (docs/measurements.md, "The learner").
_SMALL_MICRO_BATCHES = (84, 4), (42, 2)
# Groups share their policy steps if there are at least this many groups, and
# each has fewer environments than this, or if there are many groups.
_MIN_GROUPS_SHARING = 4
_MIN_ENVIRONMENTS_PER_STEP = 4
_MANY_GROUPS = 64
# More updates per call were not faster.
_MAX_UPDATES_PER_CALL, _MAX_SMALL_UPDATES_PER_CALL = 8, 32
# With few environments, calls would cost more than their updates.
_MIN_STEPS_OF_SMALL_UPDATES = 8
# Seeds depend on this order, so new roles go to the end.
_SEED_ROLES = (
    'environment', 'learner', 'actor', 'test', 'replay', 'evaluation')

# Name of a file of settings that a killed run leaves behind.
TEMPORARY_NAME = r'settings.*\.(json|flags)\.tmp'


class _HasShape(Protocol):
  """An object with a shape, such as a `structs.ArraySpec`."""

  @property
  def shape(self) -> Sequence[int]:
    """Shape of an observation, without the axes of time and environment."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(sections.AllSections):
  """All settings of the program; `Config()` has the default of each flag.

  `scalable-agent --help=NAME` explains a setting. Wrong names and values raise
  ConfigError.
  """

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.num_actor_groups and (self.deterministic or self.ray_address):
      object.__setattr__(self, 'num_actor_groups', self.usual_groups)
    self._check_unset(
        'max_policy_lag', bool(self.num_actors), 'needs --num_actors=auto')
    if self.num_actors:
      return
    for is_wrong, reason in (
        (self.mode != 'train', f'cannot be used with --mode={self.mode}'),
        (self.deterministic, 'cannot be used with --deterministic: measured '
         'times differ from run to run'),
        (self.ray_address, 'measures this machine only, and cannot be used '
         'with --ray_address or --task'),
        (self.plays_lab, 'cannot be used with DeepMind Lab, whose maps take '
         'longer to compile than is measured'),
        (self.algorithm == 'appo' and self.replay_capacity,
         'cannot be used with --algorithm=appo and --replay_capacity: set '
         '--num_actors'),
        (self.algorithm == 'appo' and not self.unrolls_per_collect,
         'needs --unrolls_per_collect, which decides what is learned: without '
         'auto, the number is --num_actors')):
      if is_wrong:
        raise errors.ConfigError(f'--num_actors=auto {reason}.')

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> 'Config':
    """Returns settings from values by name; ConfigError for invalid values.

    Settings without a value get defaults, and unknown names are ignored.
    """
    names_of_settings = {field.name for field in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in values.items() if k in names_of_settings})

  @classmethod
  def from_recipe(cls, recipe: str, **settings: Any) -> 'Config':
    """Returns the settings of a recipe; `settings` override the recipe.

    Raises ConfigError for an unknown recipe and for invalid settings.
    """
    types = {field.name: declare.value_type(field)
             for field in dataclasses.fields(cls)}
    of_recipe = {name: values.from_text(text, types[name])
                 for name, text in recipes.settings_of(recipe).items()}
    asked = {**of_recipe, **settings}
    asked |= recipes.collection_of(recipe, asked)
    with recipes.errors_named(recipe, asked.get('algorithm', 'impala')):
      return cls(**asked)

  @classmethod
  def from_saved(cls, values: Mapping[str, object]) -> 'Config':
    """Returns settings from the values of a `settings.json`, as `from_values`.

    The file may be of another version. So settings without effect, which are
    errors as flags, are ignored.
    """
    if not isinstance(values, Mapping):
      raise errors.ConfigError(
          f'Settings must be a dictionary, not {values!r}.')
    for name, value in values.items():
      # Allowed in Python only.
      if isinstance(value, list) and name in cls.__dataclass_fields__:
        raise errors.ConfigError(
            f'{name} must be a text or a number, not the list {value}.')
    algorithm = values.get('algorithm', 'impala')
    without_effect = {
        field.name for field in dataclasses.fields(cls)
        if algorithm not in field.metadata['algorithms']
        or field.metadata['needs'] and not field.metadata['needs'].are_met(
            values.get(field.metadata['needs'].name), algorithm)
        or field.metadata['unless'] and values.get(field.metadata['unless'])}
    if values.get('deterministic'):
      without_effect.add('save_replay')
    return cls.from_values(
        {k: v for k, v in values.items() if k not in without_effect})

  @property
  def layer_sizes(self) -> list[int]:
    """The numbers of `hidden_sizes`."""
    return [int(size) for size in names(self.hidden_sizes)]

  def resolved(
      self, observation_spec: _HasShape | Mapping[str, _HasShape], *,
      on_cpu: bool, num_groups: int,
      num_environments: int | None = None) -> 'Config':
    """Returns a copy in which automatic settings have values.

    Automatic by default are `agent`, `xla`, `dynamic_batching`,
    `micro_batch_size` and `updates_per_call`, and for levels `module:id`
    `num_actor_groups`.

    Args:
      observation_spec: a `structs.ArraySpec`, or a dictionary of specs.
      on_cpu: whether networks are computed on the CPU.
      num_groups: number of groups of environments, in each process that acts.
      num_environments: number of environments there; None for all.
    """
    agent, xla = self.agent, self.xla
    if agent == 'auto':
      agent = self._network_for(observation_spec)
    resolved = dataclasses.replace(
        self, agent=agent, num_actor_groups=self.num_actor_groups or num_groups,
        dynamic_batching=self.shares_steps(
            num_groups, num_environments or self.num_actors))
    num_updates = resolved._updates_per_call() if (
        self.is_off_policy or self.algorithm == 'appo') else 0
    if xla == 'auto':  # This was faster on CPUs, and not measured on GPUs.
      # XLA may not know an addon, nor compile a loop with sums over learners.
      is_known = not self.addon and (num_updates < 2 or self.num_learners == 1)
      is_faster = self.algorithm == 'ddqn' or (
          self.algorithm == 'appo' and num_updates > 1)
      num_calls = self.total_environment_frames // (
          used(self.num_action_repeats) * max(self.num_actors, 1))
      xla = ('none' if agent != 'mlp' or not on_cpu else
             'all' if is_known and is_faster else
             # The results of a deterministic run must not depend on its length.
             'policy' if self.deterministic or num_calls >= MIN_CALLS_FOR_XLA
             else 'none')
    resolved = dataclasses.replace(
        resolved, updates_per_call=num_updates, xla=xla)
    if self.is_off_policy or self.addon:
      return resolved
    size = self.micro_batch_size
    if not size:
      is_large = agent == 'deep' or (
          agent in ('shallow', 'nature') and xla == 'all')
      is_cut = (is_large and on_cpu and not self.normalise_advantages
                and num_updates <= 1)
      size = resolved._small_micro_batch() if is_cut else self.batch_size
    return dataclasses.replace(resolved, micro_batch_size=size)

  def shares_steps(self, num_groups: int, num_environments: int) -> bool:
    """Returns whether groups of environments share their policy steps."""
    if self.inference != 'local':
      return True
    if self.dynamic_batching is not None:
      return self.dynamic_batching
    return num_groups >= _MANY_GROUPS or (
        num_groups >= _MIN_GROUPS_SHARING
        and num_environments / num_groups < _MIN_ENVIRONMENTS_PER_STEP)

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
    return 'nature' if self.algorithm != 'impala' and is_large else 'deep'

  def _updates_per_call(self) -> int:
    if self.updates_per_call:
      return self.updates_per_call
    if self.algorithm == 'appo':
      # Actors that do not wait want the newest weights.
      is_small = self.agent == 'mlp' and not self.use_lstm and self.takes_turns
      return max(filter(self.can_call, range(
          1, 1 + (_MAX_SMALL_UPDATES_PER_CALL if is_small else 1))))
    if self.is_prioritised or self.use_lstm:
      return 1
    is_small = self.agent == 'mlp'
    num_steps = max(self.num_actors * self.unroll_length,
                    _MIN_STEPS_OF_SMALL_UPDATES if is_small else 0)
    due = max(int(used(self.updates_per_step) * num_steps), 1)
    # An update of a small Q-network takes a tenth of the time of a call.
    return min(due, _MAX_SMALL_UPDATES_PER_CALL if (
        is_small and self.algorithm == 'ddqn') else _MAX_UPDATES_PER_CALL)

  def _small_micro_batch(self) -> int:
    most, least = _SMALL_MICRO_BATCHES[
        self.agent == 'deep' and not self.use_lstm]
    return min(max(most // (self.unroll_length + 1), least), self.batch_size)

  def derive_seed(self, role: str, index: int, part: int = 0,
                  incarnation: int = 0) -> int:
    """Returns a seed within `[0, 2**31)`, another for all other arguments.

    Args:
      role: one of `_SEED_ROLES`.
      index: number of the owner of the seed, among all owners of this role.
      part: a number that differs between the parts of a run.
      incarnation: number of restarts of the owner of this seed in this part.
    """
    numbers = [self.seed, _SEED_ROLES.index(role), index, part]
    sequence = np.random.SeedSequence(
        numbers + [incarnation] if incarnation else numbers)
    return int(sequence.generate_state(1)[0] % 2**31)

  def save(self, part: int = 0, asked: 'Config | None' = None) -> None:
    """Writes the settings of a part of a run; CheckpointError if impossible.

    The files are `<logdir>/settings-<part>.json` and, until the next part,
    `<logdir>/settings.json`.

    Args:
      part: the number of updates before the part.
      asked: the settings before `resolved`, which are written to
        `<logdir>/settings.flags` for `--flagfile`; None for no such file.
    """
    text = json.dumps(dataclasses.asdict(self), indent=1)
    contents = {_settings_path(self.logdir, f'-{part}'): text}
    if asked is not None:
      path = os.path.join(self.logdir, flag_texts.FILE)
      contents[path] = flag_texts.of_file(asked)
    contents[_settings_path(self.logdir)] = text
    for path, content in contents.items():
      try:
        files.write(path, content)
      except OSError as e:
        raise errors.CheckpointError(
            f'{path} cannot be written: {e.strerror}.') from e

  def check_same_task(self, before: 'Config') -> None:
    """Raises ConfigError if the task differs from that of an earlier part.

    With `allow_other_task`, raises only if files of the old task would be used.
    """
    changed = [
        field.name for field in dataclasses.fields(self)
        if field.metadata['task']
        and getattr(self, field.name) != getattr(before, field.name)]
    levels = ['level_name'][:self.level_name != before.level_name]
    if changed and not self.allow_other_task:
      before_and_now = [flag_texts.as_flags(config, levels + changed)
                        for config in (before, self)]
      raise errors.ConfigError(
          f'--logdir={self.logdir} was trained with '
          f'{", not with ".join(before_and_now)}: this is another task. To '
          f'resume, use {flag_texts.of_training(self.logdir)}. For the other '
          'task, use another --logdir, or --allow_other_task.')
    if changed or levels:
      old = [path for path in sorted(os.listdir(self.logdir))
             if path in ('best', 'evaluations.csv')
             or path.startswith('replay') or path.endswith('_run_id.txt')]
      self._check('allow_other_task', not old or not self.allow_other_task,
                  f'needs {", ".join(old)} of the old task to be moved away '
                  f'from {self.logdir}')


def trained_with(logdir: str) -> Config | None:
  """Returns the settings of the run in `logdir`, None if there are none.

  Raises ConfigError if the settings cannot be read, or are not valid.
  """
  path = _settings_path(logdir)
  try:
    return Config.from_saved(files.read_json(path))
  except (FileNotFoundError, NotADirectoryError):
    return None
  except (OSError, ValueError) as e:
    raise errors.ConfigError(
        f'{path}, the settings of the training, cannot be used '
        f'({str(e).rstrip(".")}). Replace this file by the newest '
        'settings-N.json of the same directory, or remove this file to use '
        'only the flags.') from e


def resumed(logdir: str) -> Config | None:
  """Returns `trained_with(logdir)`; None without a checkpoint to resume."""
  return trained_with(logdir) if files.has_checkpoint(logdir) else None


def with_saved_clipping(config: Config) -> Config:
  """Returns settings with the reward clipping of the run in `logdir`.

  The default of `reward_clipping` was another one for IMPALA, and a resumed run
  must not change its rewards. Settings that cannot be read are ignored here.
  """
  try:
    before = resumed(config.logdir)
  except errors.ConfigError:
    return config  # The run raises this error if it resumes.
  if before is None or before.algorithm != config.algorithm:
    return config
  return dataclasses.replace(config, reward_clipping=before.reward_clipping)


def _settings_path(logdir: str, part: str = '') -> str:
  return os.path.join(logdir, f'settings{part}.json')
