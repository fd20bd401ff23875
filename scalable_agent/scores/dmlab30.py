# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DMLab-30: its levels, human and random scores, and the normalised score.

Human and random scores come from the code of Espeholt et al. 2018 (arXiv
1802.01561). Table B.1 of the paper, `PAPER_BASELINES`, rounds these scores to
one decimal, and swaps small and large in the four lasertag levels. The
published means are 44.5 (experts) and 49.4 (PBT). The published scores of the
levels give 44.4 and 49.3 with the table's scores, which is right up to
rounding, and 45.7 and 50.1 with the code's scores.

All scores are in percent: 0 is random, 100 is human.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scalable_agent.scores import data
from scalable_agent.settings import lab_levels

TABLES = data.read_suite('dmlab30', 'level', 'table_b1')

BASELINES = TABLES.baselines
PAPER_BASELINES = TABLES.paper_baselines
HUMAN_SCORES, RANDOM_SCORES = BASELINES  # By test level.
PUBLISHED = TABLES.published

# From training level to test level; two names differ.
LEVEL_MAPPING = lab_levels.DMLAB30_LEVELS
# Every level of training or test.
ALL_LEVELS = lab_levels.ALL_DMLAB30_LEVELS


def plain_name(level_name: str) -> str:
  """Returns the name of a level, of DMLab-30 without its `DMLAB30_PREFIX`."""
  name = level_name.removeprefix(lab_levels.DMLAB30_PREFIX)
  return name if name in ALL_LEVELS else level_name


def levels(is_test: bool) -> tuple[str, ...]:
  """Returns the 30 training levels, or if `is_test`, the 30 test levels."""
  return tuple(LEVEL_MAPPING.values() if is_test else LEVEL_MAPPING)


def compute_human_normalized_score(
    level_returns: Mapping[str, Sequence[float]],
    per_level_cap: float | None) -> float:
  """Returns the mean over levels of scores in percent, capped first.

  The score of a level is `(mean return - random) / (human - random)`. A level
  that is missing or has no returns is a ValueError.

  Args:
    level_returns: returns of episodes by training or test level, for all 30
      levels. Other levels are ignored.
    per_level_cap: largest score of a level, in percent, or None.
  """
  returns = {LEVEL_MAPPING.get(name, name): values
             for name, values in level_returns.items() if name in ALL_LEVELS}
  if missing := [name for name in HUMAN_SCORES if name not in returns]:
    raise ValueError(f'Missing levels: {missing}')
  scores = {}
  for name, values in returns.items():
    if not len(values):
      raise ValueError(f'Missing returns for level: {name!r}: ')
    scores[name] = float(BASELINES.normalized(name, float(np.mean(values))))
  cap = np.inf if per_level_cap is None else per_level_cap
  return float(np.mean([min(scores[name], cap) for name in HUMAN_SCORES]))


class TrainingScores:
  """The scores of a run during training, as the reference logs scores.

  A score is due when every level has a return since the last score. The score
  covers all returns since then.
  """

  def __init__(self) -> None:
    self._returns: dict[str, list[float]] = {}

  def add(self, level_name: str,
          episode_return: float) -> dict[str, float] | None:
    """Adds an episode's unclipped return, in the order in which episodes end.

    Levels outside the suite are ignored. Returns None unless scores are due:
    the scores in percent, by name of their TensorBoard summary.
    """
    if level_name in ALL_LEVELS:
      self._returns.setdefault(LEVEL_MAPPING.get(level_name, level_name),
                               []).append(episode_return)
    if len(self._returns) < len(LEVEL_MAPPING):
      return None
    returns, self._returns = self._returns, {}
    return {
        'dmlab30/training_no_cap': compute_human_normalized_score(
            returns, per_level_cap=None),
        'dmlab30/training_cap_100': compute_human_normalized_score(
            returns, per_level_cap=100)}
