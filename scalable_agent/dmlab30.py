# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DMLab-30: its levels, human and random scores, and the normalised score.

The scores are those of Espeholt et al. 2018, table B.1, as published with the
paper's code, and shipped in `data/dmlab30.csv`.
"""

import csv
from importlib import resources
from typing import Dict, Mapping, Optional, Sequence

import numpy as np


def _read_scores():
  path = resources.files('scalable_agent').joinpath('data', 'dmlab30.csv')
  with path.open(newline='', encoding='utf-8') as f:
    return list(csv.DictReader(f))


_SCORES = _read_scores()

# By test level.
HUMAN_SCORES: Dict[str, float] = {
    row['level']: float(row['human']) for row in _SCORES}
RANDOM_SCORES: Dict[str, float] = {
    row['level']: float(row['random']) for row in _SCORES}

# From training level to test level: the same one, but for two.
LEVEL_MAPPING: Dict[str, str] = {
    name[:-len('_test')] + '_train' if name.endswith('_test') else name: name
    for name in HUMAN_SCORES}

# Every level of training or test.
ALL_LEVELS = frozenset(LEVEL_MAPPING) | frozenset(LEVEL_MAPPING.values())


def compute_human_normalized_score(
    level_returns: Mapping[str, Sequence[float]],
    per_level_cap: Optional[float]) -> float:
  """Returns the mean over levels of `(mean return - random) / (human - random)`.

  Args:
    level_returns: returns of episodes by training or test level, for all 30
      levels. Other levels are ignored.
    per_level_cap: largest score of a level, in percent, or None.

  Returns:
    The score in percent: 0 is random, 100 is human.

  Raises:
    ValueError: if a level is missing or has no returns.
  """
  returns = {LEVEL_MAPPING.get(name, name): values
             for name, values in level_returns.items() if name in ALL_LEVELS}
  missing = [name for name in HUMAN_SCORES if name not in returns]
  if missing:
    raise ValueError(f'Missing levels: {missing}')
  scores = []
  for name, human in HUMAN_SCORES.items():
    if not len(returns[name]):
      raise ValueError(f'Missing returns for level: {name!r}: ')
    random = RANDOM_SCORES[name]
    score = (np.mean(returns[name]) - random) / (human - random) * 100
    scores.append(score if per_level_cap is None else min(score, per_level_cap))
  return float(np.mean(scores))
