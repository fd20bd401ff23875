# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags of runs that train well: `--recipe=NAME` reads `NAME.flags`.

A comment at the top of each file names the source of the values and the
returns reached.
"""

from collections.abc import Sequence
import difflib
import os

from scalable_agent import errors

_DIRECTORY = os.path.dirname(__file__)


def recipe_names() -> list[str]:
  """Returns the names of all recipes."""
  return sorted(name.removesuffix('.flags') for name in os.listdir(
      _DIRECTORY) if name.endswith('.flags'))


def with_recipe(args: Sequence[str]) -> list[str]:
  """Returns the arguments, with `--recipe` replaced by a `--flagfile` in front.

  Raises ConfigError for an unknown recipe, or for more than one.
  """
  left, asked, rest = list(args), [], []
  while left:
    arg = left.pop(0)
    flag, equals, value = arg.partition('=')
    if arg == '--':
      rest += [arg, *left]
      break
    if flag not in ('--recipe', '-recipe'):
      rest.append(arg)
    else:
      asked.append(value if equals else ''.join(left[:1]))
      left = left[0 if equals else 1:]
  if not asked:
    return rest
  if len(asked) > 1:
    raise errors.ConfigError(
        f'Only one --recipe can be given, not {" and ".join(asked)}.')
  [name] = asked
  names = recipe_names()
  if name not in names:
    similar = ([n for n in names if name and name in n]
               or difflib.get_close_matches(name, names, n=3, cutoff=.4))
    hint = (f'did you mean {" or ".join(similar)}?' if similar
            else f'there are {", ".join(names)}.')
    raise errors.ConfigError(f'There is no recipe {name!r}: {hint}')
  file = os.path.join(_DIRECTORY, f'{name}.flags')
  return [f'--flagfile={file}', *rest]
