# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags of runs that train well: `--recipe=NAME` reads `NAME.flags`.

A comment at the top of each file names the source of the values and the
returns reached.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import os

from scalable_agent import errors

_DIRECTORY = os.path.dirname(__file__)


def recipe_names() -> list[str]:
  """Returns the names of all recipes."""
  return sorted(name.removesuffix('.flags') for name in os.listdir(
      _DIRECTORY) if name.endswith('.flags'))


def algorithm_of(name: str) -> str:
  """Returns the algorithm of a recipe."""
  return settings_of(name).get('algorithm', 'impala')


def comment_of(name: str) -> str:
  """Returns the comment of a recipe, in one line: results and sources.

  Raises ConfigError for an unknown recipe.
  """
  _check(name)
  with open(_path(name), encoding='utf-8') as lines:
    return ' '.join(line.lstrip('# ').strip() for line in lines
                    if line.startswith('#'))


def settings_of(name: str) -> dict[str, str]:
  """Returns the settings in a recipe, as texts by name.

  Raises ConfigError for an unknown recipe.
  """
  _check(name)
  with open(_path(name), encoding='utf-8') as lines:
    flags = [line.strip()[2:].partition('=') for line in lines
             if line.startswith('--')]
  return {flag: value for flag, _, value in flags}


def collection_of(name: str, settings: Mapping[str, object]) -> dict[str, int]:
  """Returns the unrolls that appo collects, if `num_actors` is chosen later.

  What is learned from together is then as many unrolls as the recipe has
  environments.
  """
  if (not name or settings.get('algorithm') != 'appo'
      or settings.get('num_actors') not in (0, 'auto')
      or settings.get('unrolls_per_collect')
      or 'num_actors' not in (own := settings_of(name))):
    return {}
  return {'unrolls_per_collect': int(own['num_actors'])}


@contextlib.contextmanager
def errors_named(name: str, algorithm: str) -> Iterator[None]:
  """Names the recipe in errors of settings if its algorithm was replaced.

  Args:
    name: the recipe that was asked for, or ''.
    algorithm: the algorithm of the run.
  """
  try:
    yield
  except errors.ConfigError as e:
    others = [n for n in recipe_names() if algorithm_of(n) == algorithm]
    if not others or not name or (own := algorithm_of(name)) == algorithm:
      raise
    raise errors.ConfigError(
        f'--recipe={name} is for --algorithm={own}. Recipes for '
        f'--algorithm={algorithm}: {", ".join(others)}.') from e


def _path(name: str) -> str:
  return os.path.join(_DIRECTORY, f'{name}.flags')


def with_recipe(args: Sequence[str]) -> tuple[str, list[str]]:
  """Returns the recipe, or '', and the arguments with a file of flags.

  A `--flagfile` in front replaces `--recipe`. Raises ConfigError for an unknown
  recipe, or for more than one.
  """
  left, found, rest = list(args), [], []
  while left:
    arg = left.pop(0)
    flag, equals, value = arg.partition('=')
    if arg == '--':
      rest += [arg, *left]
      break
    if flag not in ('--recipe', '-recipe'):
      rest.append(arg)
    else:
      found.append(value if equals else ''.join(left[:1]))
      left = left[0 if equals else 1:]
  if not found:
    return '', rest
  if len(found) > 1:
    raise errors.ConfigError(
        f'Only one --recipe can be given, not {" and ".join(found)}.')
  [name] = found
  _check(name)
  return name, [f'--flagfile={_path(name)}', *rest]


def _check(name: str) -> None:
  names = recipe_names()
  if name not in names:
    raise errors.ConfigError(
        f'There is no recipe {name!r}: {errors.nearest(name, names)}')
