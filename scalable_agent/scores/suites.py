# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Suites of levels with published scores: their columns and statistics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import re
from typing import NamedTuple

import numpy as np
from scalable_agent.scores import atari57
from scalable_agent.scores import data
from scalable_agent.scores import dmlab30
from scalable_agent.scores import statistics


class Published(NamedTuple):
  """Published scores of an agent or a human.

  Attributes:
    name: short name for the head of a column.
    scores: return by level; levels are named as in the values of `Suite.keys`.
    source: the publication.
  """
  name: str
  scores: Mapping[str, float]
  source: str


class Statistic(NamedTuple):
  """A number over all levels of a suite.

  Attributes:
    name: name in the table.
    reduce: computes the number from normalised scores `[..., levels]`, in
      percent.
    baselines: the scores of 0 and 100 %.
    published: the published number by name of the agent. An agent without a
      published number gets a number recomputed from its scores.
  """
  name: str
  reduce: Callable[[np.ndarray], np.ndarray]
  baselines: data.Baselines
  published: Mapping[str, float]


class Suite(NamedTuple):
  """Levels with published scores.

  Attributes:
    keys: name of a level in `Published.scores`, by the level's name in
      `--level_name`.
    random: scores of uniformly random actions.
    human: scores of a human player.
    agents: agents with a column in the table.
    statistics: numbers over all levels.
    num_published_games: number of games behind each published mean score.
    constants: a text on the baselines that the published means need.
    other_agents: a line for each published number of an agent without a column.
  """
  name: str
  keys: Mapping[str, str]
  random: Published
  human: Published
  agents: tuple[Published, ...]
  statistics: tuple[Statistic, ...]
  num_published_games: int
  constants: str
  other_agents: tuple[str, ...]

  def normalized(self, level: str, score: float) -> float:
    """Returns a score in percent, where 0 is random and 100 is human."""
    baselines = data.Baselines(self.human.scores, self.random.scores)
    return float(baselines.normalized(self.keys[level], score))


def _mean(scores: np.ndarray) -> np.ndarray:
  return np.mean(scores, axis=-1)


def _median(scores: np.ndarray) -> np.ndarray:
  return np.median(scores, axis=-1)


def _capped_mean(scores: np.ndarray) -> np.ndarray:
  return np.mean(np.minimum(scores, 100), axis=-1)


class _Number(NamedTuple):
  """A statistic of a suite, before the published numbers are looked up.

  The first three attributes are as in `Statistic`.

  Attributes:
    key: name in `data.PublishedAgent.statistics`; '' if unpublished.
    text: name in the lines of `Suite.other_agents`.
  """
  name: str
  reduce: Callable[[np.ndarray], np.ndarray]
  baselines: data.Baselines
  key: str = ''
  text: str = ''


def _make_suite(name: str, tables: data.SuiteTables, *, keys: Mapping[str, str],
                columns: Mapping[str, str], numbers: Sequence[_Number],
                num_published_games: int, constants: str,
                has_notes: bool) -> Suite:
  """Makes a suite; `columns` are the agents' columns by key in `tables`."""
  agents = {column: tables.published[key] for key, column in columns.items()}
  numbers = [*numbers, _Number('mean', _mean, tables.baselines),
             _Number('interquartile mean', statistics.middle_mean,
                     tables.baselines)]
  return Suite(
      name, keys,
      random=Published('random', tables.baselines.random,
                       tables.baseline_sources['random']),
      human=Published('human', tables.baselines.human,
                      tables.baseline_sources['human']),
      agents=tuple(Published(column, agent.returns, agent.source)
                   for column, agent in agents.items()),
      statistics=tuple(
          Statistic(number.name, number.reduce, number.baselines,
                    {column: agent.statistics[number.key]
                     for column, agent in agents.items()
                     if number.key in agent.statistics})
          for number in numbers),
      num_published_games=num_published_games, constants=constants,
      other_agents=tuple(
          f'{agent.name}: {number.text} of {agent.statistics[number.key]:g} '
          f'({agent.source}'
          f'{f"; {agent.note}" if agent.note and has_notes else ""})'
          for key, agent in tables.published.items() if key not in columns
          for number in numbers if number.key in agent.verified))


ATARI57 = _make_suite(
    'Atari-57', atari57.TABLES,
    keys=atari57.GAME_OF_LEVEL,
    columns={'impala_shallow': 'IMPALA shallow', 'impala_deep': 'IMPALA deep',
             'impala_deep_multitask': 'IMPALA multi-task'},
    numbers=(
        _Number('median', _median, atari57.BASELINES, 'median', 'median'),
        _Number("mean, with the constants of the paper's means", _mean,
                atari57.PAPER_MEAN_BASELINES, 'mean',
                "mean, with the constants of the paper's means,")),
    num_published_games=200,
    constants=(
        "The paper's means need a human score of 9.3 in Pong, not 14.6, and a "
        'random score of 0 in Video Pinball, not 16,256.9. The paper does not '
        'say so. Its medians are the same with both.'),
    has_notes=False)
DMLAB30 = _make_suite(
    'DMLab-30', dmlab30.TABLES,
    keys={level: dmlab30.LEVEL_MAPPING.get(level, level)
          for level in dmlab30.ALL_LEVELS},
    columns={'impala_deep_experts': 'IMPALA experts',
             'impala_deep_pbt': 'IMPALA PBT'},
    numbers=(
        _Number("mean capped at 100, with the paper's constants", _capped_mean,
                dmlab30.PAPER_BASELINES, 'mean_capped', 'mean capped at 100'),
        _Number('mean capped at 100', _capped_mean, dmlab30.BASELINES)),
    num_published_games=500,
    constants=(
        "The paper's means need its table B.1, which is rounded and has small "
        'and large maps of lasertag swapped. All other numbers use the scores '
        "of the reference's code."),
    has_notes=True)
SUITES = (ATARI57, DMLAB30)


def suite_of(levels: Iterable[str]) -> Suite | None:
  """Returns the suite that has any of the levels; None without such a suite."""
  levels = set(levels)
  return next((s for s in SUITES if levels & set(s.keys)), None)


# The mean return of uniformly random actions, and the best possible return.
_TOYS = {'catch': (-.6, 1.), 'memory': (0., 1.), 'pattern': (130 / 36, 10.),
         'target': (-85 / 3, 0.)}
# The rewards of lqr can be negative, and its episodes have no limit.
_DM_CONTROL = re.compile(r'dm_control/(?!lqr-)[\w-]+')
# An episode has 1,000 steps with rewards from 0 to 1.
_DM_CONTROL_RANGE = (0., 1000.)


def range_of(level: str) -> tuple[float, float] | None:
  """Returns the returns of 0 and 100 percent; None if not known.

  Levels of Atari-57 and DMLab-30: random and human. Toys: random and best.
  Tasks of dm_control: least and best. With `--environment_kwargs`, a level may
  be another task.
  """
  suite = suite_of([level])
  if suite:
    key = suite.keys[level]
    return suite.random.scores[key], suite.human.scores[key]
  return _TOYS.get(level) or (
      _DM_CONTROL_RANGE if _DM_CONTROL.fullmatch(level) else None)


def percent(level: str, scores: np.ndarray) -> np.ndarray:
  """Returns scores of any shape in percent of a known range."""
  found = range_of(level)
  assert found is not None
  low, high = found
  return (scores - low) / (high - low) * 100
