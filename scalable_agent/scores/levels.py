# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The levels that `--level_name` names, and the levels that are played."""

from collections.abc import Sequence

from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30
from scalable_agent.settings import declare
from scalable_agent.settings import lab_levels
from scalable_agent.settings import values

_VIZDOOM_PREFIX = 'vizdoom'
_NUM_NAMED = 3


def level_names(level_name: str, is_test: bool) -> list[str]:
  """Returns the levels of `--level_name=A,B,C`.

  The suites `atari57` and `dmlab30` are replaced by their levels, of which
  `is_test` selects the test levels. Levels of DMLab-30 get the plain names of
  the score tables. Blanks around names are ignored.
  """
  suites = {'atari57': atari57.LEVELS, 'dmlab30': dmlab30.levels(is_test)}
  return [level for name in map(dmlab30.plain_name, values.names(level_name))
          for level in suites.get(name, [name])]


def test_level(level: str) -> str:
  """Returns the level on which agents of a training level are tested."""
  return dmlab30.LEVEL_MAPPING.get(level, level)


def are_stacked(level_name: str, is_test: bool) -> bool:
  """Returns whether all observations are stacks of frames, as of Atari."""
  return all(map(declare.is_atari, level_names(level_name, is_test)))


def played(level_names: Sequence[str], num_actors: int) -> list[str]:
  """Returns the distinct levels that the environments play, in order.

  Environment `i` plays level `i % n` of the `n` levels, as in the reference.
  """
  return list(dict.fromkeys(level_names[:num_actors]))


def unplayed_message(level_names: Sequence[str], num_actors: int) -> str:
  """Returns a line about levels that no environment plays; '' without any."""
  found = played(level_names, num_actors)
  num_levels = len(set(level_names))
  if len(found) == num_levels:
    return ''
  names = ', '.join(found[:_NUM_NAMED])
  num_more = len(found) - _NUM_NAMED
  if num_more > 0:
    names += f' and {num_more} more'
  num_unplayed = num_levels - len(found)
  return (f'{num_levels} levels, but only {num_actors} '
          f'environment{"" if num_actors == 1 else "s"} (--num_actors): played '
          f'{_are(len(found))} {names}; {num_unplayed} {_are(num_unplayed)} '
          'not.')


def _are(number: int) -> str:
  return 'is' if number == 1 else 'are'


def has_frame_size(level: str) -> bool:
  """Returns whether `--width` and `--height` change this level."""
  return (lab_levels.is_level(level)
          # Without the module of `module:id`.
          or level.split(':')[-1].lower().startswith(_VIZDOOM_PREFIX))
