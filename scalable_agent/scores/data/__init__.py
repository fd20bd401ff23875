# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tables shipped with the package: scores by game or level, and their sources.

A table `<suite>.csv` has one row per game or level. `<suite>_sources.csv` has
one row for each of its columns, and one for each agent that has only a score
over the whole suite. `vtrace_ablation.csv` has one row per agent, with its
source. `off_policy_scores.csv` has one row per score, with its source and
protocol; `family` is the algorithm of this project that it is compared with.
"""

from collections.abc import Mapping
import csv
from importlib import resources
from typing import NamedTuple, TypeVar

import numpy as np

_Score = TypeVar('_Score', float, np.ndarray)


class Baselines(NamedTuple):
  """The scores of 100 % and 0 %.

  Attributes:
    human: score of a human player by game or test level.
    random: score of uniformly random actions by game or test level.
  """
  human: Mapping[str, float]
  random: Mapping[str, float]

  def normalized(self, key: str, score: _Score) -> _Score:
    """Returns the score (or array of scores) of a game or level in percent."""
    random = self.random[key]
    return (score - random) / (self.human[key] - random) * 100


def read(name: str) -> list[dict[str, str]]:
  """Returns the rows of the table `name`, such as `atari57.csv`."""
  path = resources.files(__name__).joinpath(name)
  return list(csv.DictReader(path.read_text(encoding='utf-8').splitlines()))


def column(rows: list[dict[str, str]], key: str, name: str) -> dict[str, float]:
  """Returns the numbers of column `name`, by the texts of column `key`.

  Empty cells are left out; a column that does not exist is empty.
  """
  return {row[key]: float(row[name]) for row in rows if row.get(name)}


def number(text: str) -> float | None:
  """Returns the number in a cell, None for an empty one."""
  return float(text) if text else None
