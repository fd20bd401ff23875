# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags of absl from the settings, and the order of flags and files."""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import itertools
import os

from absl import flags
from scalable_agent import errors
from scalable_agent.settings import declare
from scalable_agent.settings import sections
from scalable_agent.settings import values
from scalable_agent.settings.recipes import recipe_names


class _WholeNumbers(flags.IntegerParser):
  """Parser of whole numbers that also accepts 2e3 and 1_000.

  If 0 means an automatic choice, `auto` is 0.
  """

  def __init__(self, is_automatic: bool):
    super().__init__()
    self._is_automatic = is_automatic

  def convert(self, argument: str | int) -> int:
    try:
      return super().convert(
          values.plain(argument, int, self._is_automatic))
    except ValueError:
      with contextlib.suppress(ValueError):
        if (number := float(argument)).is_integer():
          return int(number)
      raise ValueError(
          'must be a whole number, such as 1000 or 1e6') from None


class _Numbers(flags.FloatParser):
  """Parser of numbers with a plain error message."""

  def convert(self, argument: str | float) -> float:
    try:
      return super().convert(argument)
    except ValueError:
      raise ValueError('must be a number, such as 0.001') from None


class _Booleans(flags.BooleanParser):
  """Parser of booleans with a plain error message."""

  def parse(self, argument: str | int | bool) -> bool:
    try:
      return super().parse(argument)
    except ValueError:
      raise ValueError('must be true or false') from None


def _define_boolean(*, flag_values: flags.FlagValues, name: str,
                    default: bool | None, help: str, module_name: str) -> None:
  flag = flags.BooleanFlag(name, default, help)
  flag.parser = _Booleans()
  flags.DEFINE_flag(flag, flag_values, module_name)


def _define_integer(*, flag_values: flags.FlagValues, name: str,
                    **kwargs: object) -> None:
  is_automatic = name in sections.names_with('automatic')
  flags.DEFINE(_WholeNumbers(is_automatic), flag_values=flag_values, name=name,
               serializer=flags.ArgumentSerializer(), **kwargs)


def _define_float(*, flag_values: flags.FlagValues, name: str,
                  **kwargs: object) -> None:
  flags.DEFINE(_Numbers(), flag_values=flag_values, name=name,
               serializer=flags.ArgumentSerializer(), **kwargs)


_DEFINE: dict[type, Callable[..., object]] = {
    str: flags.DEFINE_string, int: _define_integer,
    float: _define_float, bool: _define_boolean}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines a flag for every setting, grouped by section for --helpfull."""
  flags.DEFINE_string(
      'recipe', '', 'Name of a recipe: a file of flags that is read first. '
      'Other flags override the recipe; --algorithm only with an algorithm '
      'that uses all flags of the recipe. Recipes: '
      f'{", ".join(recipe_names())}.',
      flag_values=flag_values, module_name='00 recipe')
  for number, section in enumerate(sections.SECTIONS, 1):
    name = section.__name__.removesuffix('Settings').lower()
    for field in dataclasses.fields(section):
      if field.name in flag_values:  # Every section has the mode.
        continue
      kwargs = dict(name=field.name, default=field.default,
                    help=field.metadata['text'], flag_values=flag_values,
                    module_name=f'{number:02} {name}')  # Sorted by absl.
      if field.metadata['choices']:
        flags.DEFINE_enum(enum_values=field.metadata['choices'], **kwargs)
      else:
        _DEFINE[declare.value_type(field)](**kwargs)


def check_order(args: Sequence[str], files: tuple[str, ...] = ()) -> None:
  """Raises ConfigError for a flag that a later `--flagfile` would override.

  The last value of a flag wins. A flag before `--flagfile` would be overridden
  silently, so that is an error, also within a file. Raises flags.Error if there
  is no such file, or a value has the wrong type.

  Args:
    args: arguments, or the lines of a file.
    files: the names of that file and of the files that name this file.
  """
  args = [arg for arg in itertools.takewhile(lambda arg: arg != '--', args)
          if not arg.startswith(('#', '//'))]
  typed: list[str] = []
  while args:
    arg = args.pop(0)
    if arg.partition('=')[0] not in ('--flagfile', '-flagfile'):
      typed.append(arg)
      continue
    file = [arg] if '=' in arg else [arg, *args[:1]]
    args = args[len(file) - 1:]
    if file[-1] in ('', '--flagfile=', '-flagfile='):
      raise errors.ConfigError('--flagfile= must name a file.')
    before, within, after = map(_given, (typed, file, args))
    for name in sorted(before.keys() & within.keys() - after.keys()):
      if before[name] != within[name]:
        raise errors.ConfigError(
            f'{before[name]} comes before {" ".join(file)}, which has '
            f'{within[name]}: give the flag after the file.')
    name = file[-1].split('=', 1)[-1]
    if name not in files:  # Otherwise absl warns, and skips the file.
      with open(os.path.expanduser(name), encoding='utf-8') as lines:
        check_order([line.strip() for line in lines], (*files, name))


def _given(args: Sequence[str]) -> dict[str, str]:
  """Returns the flags in `args` as texts, by name; ignores unknown flags."""
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['experiment.py', *args], known_only=True)
  return {name: flag_values[name].serialize() for name in flag_values
          if flag_values[name].present}
