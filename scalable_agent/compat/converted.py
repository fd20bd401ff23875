# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags and notes that settings of other projects become."""

from collections.abc import Callable, Mapping
import dataclasses
import math
import re
from typing import TypeAlias

from scalable_agent.compat import expressions

# The flags of a value, without dashes; or the name of the flag with the same
# value; or a sentence that begins with a capital.
Rule: TypeAlias = str | Callable[[expressions.Value], dict[str, object]]

FRAME_STACK = ('Atari games have four frames in an observation, and no other '
               'level stacks frames.')
_OLD_ATARI = re.compile(r'\A(\w+?)(NoFrameskip|Deterministic)-v([04])\Z')
_NEW_VERSIONS = {'LunarLander-v2': 'LunarLander-v3',
                 'LunarLanderContinuous-v2': 'LunarLanderContinuous-v3',
                 'CarRacing-v2': 'CarRacing-v3', 'Pendulum-v0': 'Pendulum-v1'}


@dataclasses.dataclass
class Converted:
  """The flags of a command by name, and notes by name of the setting."""
  flags: dict[str, object]
  notes: dict[str, str] = dataclasses.field(default_factory=dict)

  def apply(self, settings: Mapping[str, expressions.Value],
            rules: Mapping[str, Rule]) -> None:
    """Adds the flag or the note of each setting."""
    for name, value in settings.items():
      rule = rules.get(name)
      if value is None and rule is not None:
        continue  # None is the default of the other project.
      if isinstance(value, expressions.Unknown) and not _is_note(rule):
        self.notes[name] = (
            f'The value {value.text} is not known without running the file: '
            'set the flag by hand.')
      elif rule is None:
        self.notes[name] = 'This setting is not known: no flag was made.'
      elif isinstance(rule, str) and _is_note(rule):
        self.notes[name] = rule
      else:
        try:
          self.flags |= {rule: value} if isinstance(rule, str) else rule(value)
        except (ArithmeticError, KeyError, TypeError, ValueError):
          self.notes[name] = f'The value {value!r} has no counterpart.'


def _is_note(rule: Rule | None) -> bool:
  return isinstance(rule, str) and rule[:1].isupper()


def number(value: expressions.Value) -> float:
  """Returns a finite number; ValueError or OverflowError for other values."""
  if isinstance(value, bool) or not (
      isinstance(value, (int, float)) and math.isfinite(value)):
    raise ValueError(value)
  return value


def level(value: expressions.Value) -> dict[str, object]:
  """Returns the flags of an id of gym, or of a list of ids."""
  names = value if isinstance(value, list) else [value]
  if not names or not all(isinstance(name, str) for name in names):
    raise ValueError(value)
  old = [match for name in names if (match := _OLD_ATARI.match(str(name)))]
  # The old ids have sticky actions in version 0 only.
  sticky = {match[3] == '0' for match in old}
  if len(sticky) > 1:
    raise ValueError(value)
  return {'level_name': ','.join(
      _OLD_ATARI.sub(r'ALE/\1-v5', _NEW_VERSIONS.get(name, name))
      for name in map(str, names))} | (
          {'repeat_action_probability': 0.25} if True in sticky else {})
