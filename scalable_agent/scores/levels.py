# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The levels that `--level_name` stands for."""

from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30


def level_names(level_name: str, is_test: bool) -> list[str]:
  """Returns the levels of `A,B,C`, with those of a suite in its place.

  Those of DMLab-30 have their plain names, by which their scores are known.

  Args:
    level_name: names of levels and suites.
    is_test: whether DMLab-30 is the suite of its test levels.
  """
  suites = {'atari57': atari57.LEVELS, 'dmlab30': dmlab30.levels(is_test)}
  names = [dmlab30.plain_name(n.strip())
           for n in level_name.split(',') if n.strip()]
  return [level for name in names for level in suites.get(name, [name])]
