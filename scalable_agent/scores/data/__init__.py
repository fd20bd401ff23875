# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tables shipped with the package: scores by game or level, and their sources.

A table `<suite>.csv` has one row per game or level. `<suite>_sources.csv` has
one row for each column of `<suite>.csv`, and one row for each agent that has
only a score over the whole suite. `vtrace_ablation.csv` has one row per agent,
with its source. `off_policy_scores.csv` has one row per score, with its source
and protocol; `family` is the comparable algorithm of this project.
`learning_curves.csv` has one row per point of a published learning curve;
`learning_curves_sources.csv` has the protocol and source of each curve's file.
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


class PublishedAgent(NamedTuple):
  """Published numbers of an agent on a suite.

  Attributes:
    returns: return by game or test level; empty if unpublished.
    percents: normalised score by test level, in percent; empty if unpublished.
    statistics: published numbers over the suite, in percent, by their names in
      `<suite>_sources.csv`: 'median', 'mean' or 'mean_capped'.
    verified: names of the statistics that were read or recomputed. No readable
      source was found for other statistics, see `note`.
    source: the publication.
    note: further remarks, or ''.
  """
  name: str
  returns: Mapping[str, float]
  percents: Mapping[str, float]
  statistics: Mapping[str, float]
  verified: frozenset[str]
  source: str
  note: str


class SuiteTables(NamedTuple):
  """The tables of a suite.

  Attributes:
    baselines: the scores of 0 and 100 %, by game or test level.
    paper_baselines: the baselines that reproduce the paper's means.
    baseline_sources: the publications of the four columns of both baselines.
    published: published agents, by their column.
  """
  baselines: Baselines
  paper_baselines: Baselines
  baseline_sources: dict[str, str]
  published: dict[str, PublishedAgent]


def read(name: str) -> list[dict[str, str]]:
  """Returns the rows of the table `name`, such as `atari57.csv`."""
  path = resources.files(__name__).joinpath(name)
  return list(csv.DictReader(path.read_text(encoding='utf-8').splitlines()))


def read_suite(name: str, key: str, paper: str) -> SuiteTables:
  """Reads `<name>.csv` and `<name>_sources.csv`.

  `key` is the column with the games or levels, `paper` the suffix of the
  columns with the paper's baselines.
  """
  rows = read(f'{name}.csv')
  sources = {row['column']: row for row in read(f'{name}_sources.csv')}
  baselines, paper_baselines = (
      Baselines(column(rows, key, f'human{suffix}'),
                column(rows, key, f'random{suffix}'))
      for suffix in ('', f'_{paper}'))
  baseline_sources = {name: row['source'] for name, row in sources.items()
                      if name.startswith(('human', 'random'))}
  return SuiteTables(baselines, paper_baselines, baseline_sources, {
      name: _published(row, column(rows, key, name))
      for name, row in sources.items() if name not in baseline_sources})


def _published(row: dict[str, str],
               by_level: dict[str, float]) -> PublishedAgent:
  is_percent = row.get('unit') == 'percent'
  statistics = {
      name.removesuffix('_percent'): float(text) for name, text in row.items()
      if name.endswith('_percent') and text}
  return PublishedAgent(
      row['name'], {} if is_percent else by_level,
      by_level if is_percent else {}, statistics,
      frozenset(name for name in statistics
                if row[f'{name}_status'] == 'verified'),
      row['source'], row['note'])


def column(rows: list[dict[str, str]], key: str, name: str) -> dict[str, float]:
  """Returns the numbers of column `name`, by the texts of column `key`.

  Empty cells are left out; a missing column is empty.
  """
  return {row[key]: float(row[name]) for row in rows if row.get(name)}
