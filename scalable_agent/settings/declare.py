# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""How `sections` declares a setting: its default, its checks, its help text."""

from collections.abc import Callable
import dataclasses
import math
import re
from typing import Any, NamedTuple, TypeAlias

# The off-policy family: they learn from transitions of a replay.
OFF_POLICY = ('ddqn', 'ddpg', 'td3', 'sac', 'mpo')
ALGORITHMS = ('impala', *OFF_POLICY)
CONTINUOUS = ('ddpg', 'td3')

# The value of a setting. Its type is in the section.
Value: TypeAlias = Any


class Check(NamedTuple):
  """A rule for the value of a setting, and its text in error messages."""
  is_valid: Callable[[Value], bool]
  rule: str


# The networks of the package, see `factory.make_agent`.
NETWORKS = ('deep', 'shallow', 'nature', 'mlp')
# The least side of a frame, in pixels. With a smaller one, the last convolution
# would have no output.
MIN_FRAME_SIZES = {'shallow': 20, 'nature': 36}
# The name of a function of a user.
_FUNCTION = re.compile(r'[^\W\d][\w.]*:[^\W\d]\w*')

POSITIVE = Check(lambda x: x > 0, 'must be positive')
NOT_NEGATIVE = Check(lambda x: x >= 0, 'must not be negative')
# Of more things than that, not even a list should be made.
COUNT = Check(lambda x: x <= 10**6, 'must be at most 1,000,000')
FRACTION = Check(lambda x: 0 <= x <= 1, 'must be between 0 and 1')
BELOW_ONE = Check(lambda x: 0 <= x < 1, 'must be at least 0 and below 1')
# `distributions` clips deviations to a wider range, outside of which they have
# no gradient.
IS_SCALE = Check(lambda x: 1e-6 <= x <= 5, 'must be between 1e-6 and 5')
FINITE = Check(math.isfinite, 'must be finite')
IS_SEED = Check(lambda x: x < 2**31, 'must be below 2**31')
ALE_COUNT = Check(lambda x: x < 2**31 - 1, 'must be below 2**31 - 1')
SIZES = Check(
    lambda x: bool(names(x)) and all(
        name.isdigit() and int(name) > 0 for name in names(x)),
    'must be a list of positive numbers, such as 256,256')
IS_FUNCTION = Check(lambda x: not x or bool(_FUNCTION.fullmatch(x)),
                    'must be module:function')
IS_AGENT = Check(lambda x: x in ('auto', *NETWORKS) or bool(
    _FUNCTION.fullmatch(x)), 'must be one of auto, '
                 f'{", ".join(NETWORKS)}, or module:function')
DIRECTORIES = Check(lambda x: bool(names(x)), 'must name a directory')
IS_LOCAL = Check(
    lambda x: '://' not in x,
    'must be a directory of this machine, or of a file system that machines '
    'share. Mount what is elsewhere')
LEVELS = Check(lambda x: bool(names(x)), 'must name at least one level')
AT_LEAST_MINUS_ONE = Check(lambda x: x >= -1, 'must be at least -1')


# How the names of DeepMind Lab's levels begin.
_LAB = ('contributed/dmlab30/', 'dmlab30', 'explore_', 'lab/', 'language_',
        'lasertag_', 'natlab_', 'psychlab_', 'rooms_', 'seekavoid_', 'skymaze_')


class Needs(NamedTuple):
  """What a setting has no effect without.

  Attributes:
    name: another setting of its section.
    values: the values that this one must have; if empty, anything but 0.
  """
  name: str
  values: tuple[Value, ...] = ()

  def are_met(self, value: Value) -> bool:
    """Returns whether `value` of the setting `name` is enough."""
    return value in self.values if self.values else bool(value)

  def __str__(self) -> str:
    values = ' or '.join(map(str, self.values))
    return f'--{self.name}={values}' if values else f'--{self.name}'


def setting(default: Value, text: str, *checks: Check,
            choices: tuple[str, ...] = (),
            algorithms: tuple[str, ...] = ALGORITHMS,
            needs: Needs | None = None, unless: str = '',
            actions: str = '') -> Value:
  """Declares a setting in the body of a section.

  Args:
    default: its default; `By` if it depends on the algorithm.
    text: its help text, in whole sentences.
    *checks: rules for its value.
    choices: all its values, if it has only a few.
    algorithms: the algorithms that use it. With another one, it is an error to
      set it.
    needs: what it has no effect without. Then it is an error to set it.
    unless: another setting of its section. It is an error to set both.
    actions: continuous or discrete, if it is for such actions only. With
      others, it is an error to set it.

  Returns:
    The dataclass field, with the arguments as its metadata.
  """
  if choices:
    checks += (Check(lambda x: x in choices,
                     f'must be one of {", ".join(choices)}'),)
  if actions:
    text = f'{actions.capitalize()} actions: {text}'
  if algorithms != ALGORITHMS:
    text = f'{", ".join(algorithms)}: {text}'
  if isinstance(default, By):
    text += f' Default: {default}.'
  return dataclasses.field(
      default=None if isinstance(default, By) else default, metadata={
          'text': text, 'checks': checks, 'choices': choices,
          'algorithms': algorithms, 'default': default, 'needs': needs,
          'unless': unless, 'actions': actions})


class By(dict[str, Value]):
  """Defaults by algorithm. The first one of these that is there counts:

  `Atari or DeepMind Lab`, `ddqn on Atari`, `Atari` (not for impala),
  `ddqn with LSTM`, `ddqn`, `others`.
  """

  def of(self, settings: Value) -> Value:
    """Returns the default for the algorithm and the level of a section."""
    level, algorithm = getattr(settings, 'level_name', ''), settings.algorithm
    keys = [algorithm, 'others']
    if algorithm == 'ddqn' and getattr(settings, 'use_lstm', None):
      keys.insert(0, 'ddqn with LSTM')
    if is_atari(level):
      keys = [f'{algorithm} on Atari', *['Atari'][:algorithm != 'impala'],
              *keys]
    # A section of environments alone does not know its levels.
    if not level or is_atari(level) or is_lab(level):
      keys.insert(0, 'Atari or DeepMind Lab')
    return next(self[key] for key in keys if key in self)

  def __str__(self) -> str:
    return ', '.join(f'{str(value).lower()} for {name}'
                     for name, value in self.items())


def is_atari(level_name: str) -> bool:
  """Returns whether this is an Atari game, as `ALE/Pong-v5`, or `atari57`."""
  return _first(level_name).startswith('ALE/') or (
      _first(level_name) == 'atari57')


def is_lab(level_name: str) -> bool:
  """Returns whether this is a level of DeepMind Lab, or `dmlab30`."""
  return _first(level_name).startswith(_LAB)


def _first(text):
  return next(iter(names(text)), '')


def names(text: str) -> list[str]:
  """Returns the names in a list `A,B,C`."""
  return [name.strip() for name in text.split(',') if name.strip()]
