# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Declaration of a setting: default, checks and help text."""

from collections.abc import Callable, Iterable
import dataclasses
import math
import re
from typing import Any, NamedTuple, TypeAlias

# Algorithms that learn from transitions of a replay.
OFF_POLICY = ('ddqn', 'ddpg', 'td3', 'sac', 'mpo')
ALGORITHMS = ('impala', *OFF_POLICY)
CONTINUOUS = ('ddpg', 'td3')

# The value of a setting. The section has its type.
Value: TypeAlias = Any


class Check(NamedTuple):
  """A rule for the value of a setting, and its text in error messages."""
  is_valid: Callable[[Value], bool]
  rule: str


# The networks of the package, see `factory.make_agent`.
NETWORKS = ('deep', 'shallow', 'nature', 'mlp')
# Smallest side of a frame, in pixels. On a smaller frame, the last convolution
# would have no output.
MIN_FRAME_SIZES = {'shallow': 20, 'nature': 36}
# A function of a user, as module:function.
_FUNCTION = re.compile(r'[^\W\d][\w.]*:[^\W\d]\w*')

POSITIVE = Check(lambda x: x > 0, 'must be positive')
NOT_NEGATIVE = Check(lambda x: x >= 0, 'must not be negative')
# Numbers of objects that are kept in a list.
COUNT = Check(lambda x: x <= 10**6, 'must be at most 1,000,000')
FRACTION = Check(lambda x: 0 <= x <= 1, 'must be between 0 and 1')
BELOW_ONE = Check(lambda x: 0 <= x < 1, 'must be at least 0 and below 1')
# Narrower than the range to which `distributions` clips standard deviations.
# Outside that range, the gradient is zero.
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
    'share. Mount a remote directory')
LEVELS = Check(lambda x: bool(names(x)), 'must name at least one level')
AT_LEAST_MINUS_ONE = Check(lambda x: x >= -1, 'must be at least -1')


class Needs(NamedTuple):
  """A condition on another setting, without which a setting has no effect.

  Attributes:
    name: the other setting, of the same section.
    values: the values that meet the condition; if empty, all but 0 and ''.
  """
  name: str
  values: tuple[Value, ...] = ()

  def are_met(self, value: Value) -> bool:
    """Returns whether `value` of the setting `name` meets the condition."""
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
    default: the default value; `By` if the algorithm or the level decides.
    text: help text, in whole sentences.
    *checks: rules for the value.
    choices: all values, if there are only a few.
    algorithms: algorithms that use the setting. To set an unused setting is an
      error.
    needs: a condition without which the setting has no effect. To set the
      setting is an error then.
    unless: another setting of the same section. To set both is an error.
    actions: continuous or discrete, if the setting is for such actions only. To
      set the setting with other actions is an error.

  Returns:
    The dataclass field, with the arguments as metadata.
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
  """Defaults by algorithm and level, in a dictionary.

  The first key that is there counts: `Atari or DeepMind Lab`, `ddqn on Atari`,
  `Atari` (not for impala), `ddqn with LSTM`, `ddqn`, `others`.
  """

  def of(self, keys: Iterable[str]) -> Value:
    """Returns the default of the first key that is there."""
    return next(self[key] for key in keys if key in self)

  def __str__(self) -> str:
    return ', '.join(f'{str(value).lower()} for {name}'
                     for name, value in self.items())


def is_atari(level_name: str) -> bool:
  """Returns whether the (first) level is an Atari game, or `atari57`."""
  first = first_name(level_name)
  return first.startswith('ALE/') or first == 'atari57'


def names(text: str) -> list[str]:
  """Returns the names in a list `A,B,C`."""
  return [name.strip() for name in text.split(',') if name.strip()]


def first_name(text: str) -> str:
  """Returns the first name in a list `A,B,C`, or ''."""
  return next(iter(names(text)), '')
