# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Declaration of settings: `setting` in the body of a `Section`."""

from collections.abc import Callable, Iterable
import dataclasses
import math
import re
import sys
import typing
from typing import Generic, NamedTuple, overload, TypeAlias, TypedDict, TypeVar

from scalable_agent import errors
from scalable_agent.settings import values
from scalable_agent.settings.values import first_name
from scalable_agent.settings.values import names

if typing.TYPE_CHECKING:
  from typing_extensions import Unpack

# The value of a setting.
Value: TypeAlias = str | bool | int | float | None
T = TypeVar('T', bool, int, float, str)
U = TypeVar('U', bound=Value)
_T_contra = TypeVar('_T_contra', contravariant=True)

# Algorithms that learn from transitions of a replay.
OFF_POLICY = ('ddqn', 'ddpg', 'td3', 'sac', 'mpo')
# Algorithms that learn from whole unrolls, with V-trace.
VTRACE = ('impala', 'appo')
ALGORITHMS = (*VTRACE, *OFF_POLICY)
CONTINUOUS = ('ddpg', 'td3')
WITH_CRITICS = (*CONTINUOUS, 'sac', 'mpo')
# The networks of the package, see `factory.make_agent`.
NETWORKS = ('deep', 'shallow', 'nature', 'mlp')
# Smallest side of a frame, in pixels, with which all convolutions have outputs.
MIN_FRAME_SIZES = {'shallow': 20, 'nature': 36}
_SIZE = re.compile('0*[1-9][0-9]{0,8}')  # Longer texts may not fit `int`.
# A function of a user, as module:function.
_FUNCTION = re.compile(r'[^\W\d][\w.]*(?<!\.py):[^\W\d]\w*')


@dataclasses.dataclass(frozen=True)
class Check(Generic[_T_contra]):
  """A rule for the value of a setting, and its text in error messages."""
  is_valid: Callable[[_T_contra], bool]
  rule: str


POSITIVE = Check[float](lambda x: x > 0, 'must be positive')
NOT_NEGATIVE = Check[float](lambda x: x >= 0, 'must not be negative')
# Numbers of objects that are kept in a list.
COUNT = Check[int](lambda x: x <= 10**6, 'must be at most 1,000,000')
FRACTION = Check[float](lambda x: 0 <= x <= 1, 'must be between 0 and 1')
BELOW_ONE = Check[float](lambda x: 0 <= x < 1, 'must be at least 0 and below 1')
# Outside the range to which `distributions` clips, the gradient is zero.
IS_SCALE = Check[float](lambda x: 1e-6 <= x <= 5, 'must be between 1e-6 and 5')
FINITE = Check[float](math.isfinite, 'must be finite')
IS_SEED = Check[int](lambda x: x < 2**31, 'must be below 2**31')
ALE_COUNT = Check[int](lambda x: x < 2**31 - 1, 'must be below 2**31 - 1')
AT_LEAST_MINUS_ONE = Check[int](lambda x: x >= -1, 'must be at least -1')
SIZES = Check[str](
    lambda x: bool(names(x)) and all(map(_SIZE.fullmatch, names(x))),
    'must be a list of positive numbers, such as 256,256')
FUNCTION_RULE = 'module:function, such as my_file:my_function for my_file.py'
IS_FUNCTION = Check[str](lambda x: not x or bool(_FUNCTION.fullmatch(x)),
                         f'must be {FUNCTION_RULE}')
DIRECTORIES = Check[str](lambda x: bool(names(x)), 'must name a directory')
IS_LOCAL = Check[str](lambda x: '://' not in x,
                      'must be a directory of this machine, local or mounted')
LEVELS = Check[str](lambda x: bool(names(x)), 'must name at least one level')


class Needs(NamedTuple):
  """A condition on another setting, without which a setting has no effect.

  Attributes:
    name: the other setting, of the same section.
    values: the values that meet the condition; if empty, all but 0 and ''.
    algorithms: the algorithms that need the condition; if empty, all.
  """
  name: str
  values: tuple[str, ...] = ()
  algorithms: tuple[str, ...] = ()

  def are_met(self, value: object, algorithm: object) -> bool:
    """Returns whether `value` of the setting `name` meets the condition."""
    is_free = self.algorithms and algorithm not in self.algorithms
    return bool(is_free or (value in self.values if self.values else value))

  def __str__(self) -> str:
    values = ' or '.join(self.values)
    return f'--{self.name}={values}' if values else f'--{self.name}'


class By(dict[str, U]):
  """Defaults by algorithm and level, in a dictionary.

  The first key counts: `impala on DeepMind Lab`, `Atari or DeepMind Lab`,
  `off-policy on Atari with LSTM`, `ddqn with LSTM`, `off-policy with LSTM`,
  `module:id`, `--num_actors=auto`, `ddqn on Atari`, `Atari` (not for impala),
  `impala with rmsprop`, `ddqn`, `others`.
  """

  def of(self, keys: Iterable[str]) -> U:
    """Returns the default of the first key in the dictionary."""
    return next(self[key] for key in keys if key in self)

  def __str__(self) -> str:
    return ', '.join(f'{str(value).lower()} for {name}'
                     for name, value in self.items())


class Facts(TypedDict, total=False):
  """Facts about a setting, for checks and for other modules.

  Attributes:
    choices: all values, if there are only a few.
    needs: a condition without which to set the setting is an error.
    unless: another setting. To set both is an error.
    actions: the only kind of actions with which the setting may be set.
    task: levels whose returns the setting changes. atari_training: Atari games,
      except in tests. frames: levels whose frames have a size of choice.
    path: whether `~` means the home directory of the user.
    divided: whether each of several learners has a share of the number.
    automatic: whether the program may choose the value, see `Config.resolved`.
    unreported: whether a resumed run may change the setting silently.
    varies: whether the setting may differ between runs of one experiment.
  """
  choices: tuple[str, ...]
  needs: Needs | None
  unless: str
  actions: typing.Literal['', 'continuous', 'discrete']
  task: typing.Literal['', 'all', 'atari', 'atari_training', 'frames']
  path: bool
  divided: typing.Literal['', 'exactly', 'roughly']
  automatic: bool
  unreported: bool
  varies: bool


_NO_FACTS = Facts(
    choices=(), needs=None, unless='', actions='', task='', path=False,
    divided='', automatic=False, unreported=False, varies=False)


@overload
def setting(default: T, text: str, *checks: Check[T],
            algorithms: tuple[str, ...] = ...,
            **facts: 'Unpack[Facts]') -> T: ...
@overload
def setting(default: By[T], text: str, *checks: Check[T],
            **facts: 'Unpack[Facts]') -> T: ...
@overload
def setting(default: By[T], text: str, *checks: Check[T],
            algorithms: tuple[str, ...],
            **facts: 'Unpack[Facts]') -> T | None: ...
@overload
def setting(default: None, text: str, **facts: 'Unpack[Facts]') -> None: ...


def setting(default: object, text: str, *checks: Check[T],
            algorithms: tuple[str, ...] = ALGORITHMS,
            **facts: 'Unpack[Facts]') -> object:
  """Declares a setting in the body of a section.

  Args:
    default: the default value; `By` if the algorithm or the level decides.
    text: help text, in whole sentences.
    *checks: rules for the value.
    algorithms: algorithms that use the setting. To set an unused setting is an
      error. An unused setting whose default is `By` is None.
    **facts: further facts, see `Facts`.

  Returns:
    The dataclass field, with the arguments as metadata.
  """
  all_facts = _NO_FACTS | facts
  if choices := all_facts['choices']:
    checks += (Check[object](lambda x: x in choices,
                             f'must be one of {", ".join(choices)}'),)
  if actions := all_facts['actions']:
    text = f'{actions.capitalize()} actions: {text}'
  if algorithms != ALGORITHMS:
    text = f'{", ".join(algorithms)}: {text}'
  if isinstance(default, By):
    text += f' Default: {default}.'
  return dataclasses.field(
      default=None if isinstance(default, By) else default, metadata={
          'text': text, 'checks': checks, 'algorithms': algorithms,
          'default': default, **all_facts})


def value_type(field: dataclasses.Field[Value]) -> type:
  """Returns the type of a setting: str, bool, int or float, without None."""
  return (typing.get_args(field.type) or (field.type,))[0]


def used(value: U | None) -> U:
  """Returns the value of a setting that the algorithm uses, so is not None."""
  assert value is not None
  return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
  """Base class of the sections: shared settings, and the checks."""
  mode: str = setting(
      'train',
      'Job of this command. train: train an agent. check: play random steps in '
      '--level_name (one level, not of DeepMind Lab), and name faults and a '
      'recipe. test: play whole games with the latest checkpoint and write a '
      'table of scores, next to published scores. table: make one table of the '
      'tests in --logdir=A,B,C, where each name is a directory (for its latest '
      'test), a file of a test or a suite. plot: draw learning curves of '
      '--logdir=A,B,C. video: record videos of the latest checkpoint, in the '
      'directory videos of --logdir. '
      'export: write a TensorFlow program, in the directory export of --logdir.'
      ' suite: train and test the levels of --suite. selftest: compare numbers '
      'and speeds of this device with a CPU. zoo: list trained agents.',
      choices=('train', 'check', 'test', 'table', 'plot', 'video', 'export',
               'suite', 'selftest', 'zoo'), unreported=True, varies=True)
  algorithm: str = setting(
      'impala',
      'Learning algorithm. impala: learns from unrolls as they arrive. appo: '
      'from unrolls in several passes with a clip, as PPO. ddqn: for discrete '
      'actions. ddpg, td3: for continuous actions. sac, mpo: for both. All '
      'but impala and appo learn from a replay buffer.', choices=ALGORITHMS)

  def __post_init__(self) -> None:
    self._convert()
    for field in dataclasses.fields(self):
      if getattr(self, field.name) is not None:  # Before defaults are set.
        self._check_type(field)
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

  def _convert(self) -> None:
    """Converts values, before settings that depend on the values are set."""
    for field in dataclasses.fields(self):
      checks = field.metadata['checks']
      object.__setattr__(self, field.name, values.plain(
          getattr(self, field.name), value_type(field),
          field.metadata['automatic'], LEVELS in checks or SIZES in checks))

  def default_keys(self) -> list[str]:
    """Returns the keys of `By` that hold for these settings, by priority."""
    with_lstm, optimizer = (
        getattr(self, name, None) for name in ('use_lstm', 'optimizer'))
    keys = [f'{self.algorithm} with {optimizer}', self.algorithm, 'others']
    if with_lstm and not self.is_off_policy:
      keys.insert(0, f'{self.algorithm} with LSTM')
    if on_atari := is_atari(getattr(self, 'level_name', '')):
      keys = [f'{self.algorithm} on Atari',
              *['Atari'][:self.algorithm != 'impala'], *keys]
    if with_lstm and self.is_off_policy:
      keys = [*['off-policy on Atari with LSTM'][:on_atari],
              f'{self.algorithm} with LSTM', 'off-policy with LSTM', *keys]
    return keys

  def _is_used(self, field: dataclasses.Field[Value]) -> bool:
    used_by = field.metadata['algorithms']
    return used_by == ALGORITHMS or self.algorithm in used_by

  def _refuse_unused(self, field: dataclasses.Field[Value]) -> None:
    self._check(
        field.name, False,
        f'is not used by --algorithm={self.algorithm}, only by '
        f'{", ".join(field.metadata["algorithms"])}: leave the flag out')

  @property
  def is_test(self) -> bool:
    """Whether environments are those of tests, such as held-out levels."""
    return self.mode in ('test', 'video')

  @property
  def needs_pictures(self) -> bool:
    """Whether environments also return pictures, for videos."""
    return self.mode == 'video'

  @property
  def is_off_policy(self) -> bool:
    """Whether the algorithm learns from replayed transitions or sequences."""
    return self.algorithm in OFF_POLICY

  def check_actions(self, kind: str) -> None:
    """Raises ConfigError if a setting needs actions of another kind.

    `kind` is continuous or discrete.
    """
    for field in dataclasses.fields(self):
      other = field.metadata['actions'] not in ('', kind)
      self._check_unset(field.name, other, f'has no effect with {kind} actions')

  def _check_type(self, field: dataclasses.Field[Value]) -> None:
    rule = values.broken_rule(getattr(self, field.name), value_type(field),
                              field.metadata['default'] is None)
    self._check(field.name, not rule, rule)

  def _check_field(self, field: dataclasses.Field[Value]) -> None:
    self._check_type(field)
    value = getattr(self, field.name)
    if value_type(field) is float:
      self._check(field.name, value == value, 'must be a number')
      # Infinite intervals mean "never" and are allowed.
      self._check(field.name, field.name.endswith(('_secs', '_s')) or (
          abs(value) <= sys.float_info.max), 'must be finite')
    for check in field.metadata['checks']:
      self._check(field.name, check.is_valid(value), check.rule)
    self._check(field.name, '\n' not in str(value), 'must be one line')

  def _check_needs(self, field: dataclasses.Field[Value]) -> None:
    if needs := field.metadata['needs']:
      unmet = not needs.are_met(getattr(self, needs.name), self.algorithm)
      self._check_unset(field.name, unmet, f'has no effect without {needs}')
    if other := field.metadata['unless']:
      self._check_unset(field.name, bool(getattr(self, other, False)),
                        f'has no effect with --{other}')

  def _check_unset(self, name: str, has_no_effect: bool, rule: str) -> None:
    field = self.__dataclass_fields__[name]
    default = field.metadata['default']
    defaults = [default] if not isinstance(default, By) else [
        value for key, value in default.items()
        if key.split()[0] in (self.algorithm, 'Atari', 'off-policy', 'others')
        and (getattr(self, 'use_lstm', None) or 'with LSTM' not in key)]
    self._check(name, not has_no_effect or getattr(self, name) in (
        *defaults, field.default), rule)

  def _check(self, name: str, is_valid: bool, rule: str) -> None:
    if not is_valid:
      value = ' '.join(str(getattr(self, name)).splitlines())
      raise errors.ConfigError(f'--{name}={value} {rule}.')


def is_atari(level_name: str) -> bool:
  """Returns whether the (first) level is an Atari game, or `atari57`."""
  first = first_name(level_name)
  return first.startswith('ALE/') or first == 'atari57'
