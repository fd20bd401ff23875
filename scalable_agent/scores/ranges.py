# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The returns of a level that count as 0 and as 100 percent."""

import re

import numpy as np
from scalable_agent.scores import suites

# The mean return of uniformly random actions, and the best possible return.
_TOYS = {'catch': (-.6, 1.), 'memory': (0., 1.), 'pattern': (130 / 36, 10.),
         'target': (-85 / 3, 0.)}
_DM_CONTROL = re.compile(r'dm_control/[\w-]+')
# An episode has 1,000 steps with rewards from 0 to 1.
_DM_CONTROL_RANGE = (0., 1000.)


def find(level: str) -> tuple[float, float] | None:
  """Returns the returns of 0 and 100 percent; None if not known.

  Levels of Atari-57 and DMLab-30: random and human. Toys: random and best.
  Tasks of dm_control: least and best.
  """
  suite = suites.suite_of([level])
  if suite:
    key = suite.keys[level]
    return suite.random.scores[key], suite.human.scores[key]
  return _TOYS.get(level) or (
      _DM_CONTROL_RANGE if _DM_CONTROL.fullmatch(level) else None)


def percent(level: str, scores: np.ndarray) -> np.ndarray:
  """Returns scores of any shape in percent of a known range."""
  found = find(level)
  assert found is not None
  low, high = found
  return (scores - low) / (high - low) * 100
