# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Suites of levels with published scores: their columns and statistics."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scalable_agent.scores import atari57
from scalable_agent.scores import data
from scalable_agent.scores import dmlab30


class Published(NamedTuple):
  """Published scores of an agent or a human.

  Attributes:
    name: short, for the head of a column.
    scores: return by level; levels have the names of `Suite.keys`' values.
    source: the publication.
  """
  name: str
  scores: Mapping[str, float]
  source: str


class Statistic(NamedTuple):
  """A number over all levels of a suite.

  Attributes:
    name: for the table.
    reduce: makes the number from normalised scores `[..., levels]`, in percent.
    baselines: the scores of 0 and 100 %.
    published: the published number by name of the agent. The numbers of other
      agents are recomputed from their scores.
  """
  name: str
  reduce: Callable[[np.ndarray], np.ndarray]
  baselines: data.Baselines
  published: Mapping[str, float | None]


class Suite(NamedTuple):
  """Levels with published scores.

  Attributes:
    name: as people write it.
    keys: the name of a level in `Published.scores`, by its name in
      `--level_name`.
    random: uniformly random actions.
    human: a human player.
    agents: agents that have a column in the table.
    statistics: numbers over all levels.
    num_published_games: number of games in a published score, a mean.
    constants: text: the random and human scores that the published means need.
    other_agents: texts: one line for each agent that has no column.
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


def interquartile_mean(values: np.ndarray) -> np.ndarray:
  """Returns the mean without the lowest and highest quarter of the last axis.

  A quarter is rounded down to whole values, as in rliable.
  """
  values = np.sort(values, axis=-1)
  cut = values.shape[-1] // 4
  return values[..., cut:values.shape[-1] - cut].mean(axis=-1)


def _mean(scores):
  return np.mean(scores, axis=-1)


def _median(scores):
  return np.median(scores, axis=-1)


def _capped_mean(scores):
  return np.mean(np.minimum(scores, 100), axis=-1)


def _atari57() -> Suite:
  names = {'impala_shallow': 'IMPALA shallow', 'impala_deep': 'IMPALA deep',
           'impala_deep_multitask': 'IMPALA multi-task'}
  agents = {name: atari57.PUBLISHED[key] for key, name in names.items()}
  return Suite(
      name='Atari-57',
      keys={level: atari57.game_of(level) for level in atari57.LEVELS},
      random=Published('random', atari57.RANDOM_SCORES,
                       atari57.BASELINE_SOURCES['random']),
      human=Published('human', atari57.HUMAN_SCORES,
                      atari57.BASELINE_SOURCES['human']),
      agents=tuple(Published(name, agent.scores, agent.source)
                   for name, agent in agents.items()),
      statistics=(
          Statistic('median', _median, atari57.BASELINES,
                    {name: agent.median for name, agent in agents.items()
                     if agent.median is not None}),
          Statistic("mean, with the constants of the paper's means", _mean,
                    atari57.PAPER_MEAN_BASELINES,
                    {name: agent.mean for name, agent in agents.items()
                     if agent.mean is not None}),
          Statistic('mean', _mean, atari57.BASELINES, {}),
          Statistic('interquartile mean', interquartile_mean,
                    atari57.BASELINES, {})),
      num_published_games=200,
      constants=(
          "The paper's means need a human score of 9.3 in Pong, not 14.6, and "
          'a random score of 0 in Video Pinball, not 16,256.9. The paper does '
          'not say so. Its medians are the same with both.'),
      other_agents=tuple(
          f'{agent.name}: {statistic} of {value:g} ({agent.source})'
          for key, agent in atari57.PUBLISHED.items() if key not in names
          for statistic, value, is_verified in (
              ('median', agent.median, agent.median_verified),
              ("mean, with the constants of the paper's means,", agent.mean,
               agent.mean_verified))
          if is_verified))


def _dmlab30() -> Suite:
  names = {'impala_deep_experts': 'IMPALA experts',
           'impala_deep_pbt': 'IMPALA PBT'}
  agents = {name: dmlab30.PUBLISHED[key] for key, name in names.items()}
  return Suite(
      name='DMLab-30',
      keys={level: dmlab30.LEVEL_MAPPING.get(level, level)
            for level in dmlab30.ALL_LEVELS},
      random=Published('random', dmlab30.RANDOM_SCORES,
                       dmlab30.BASELINE_SOURCES['random']),
      human=Published('human', dmlab30.HUMAN_SCORES,
                      dmlab30.BASELINE_SOURCES['human']),
      agents=tuple(Published(name, agent.returns, agent.source)
                   for name, agent in agents.items()),
      statistics=(
          Statistic("mean capped at 100, with the paper's constants",
                    _capped_mean, dmlab30.PAPER_BASELINES,
                    {name: agent.mean_capped for name, agent in agents.items()
                     if agent.mean_capped is not None}),
          Statistic('mean capped at 100', _capped_mean, dmlab30.BASELINES, {}),
          Statistic('mean', _mean, dmlab30.BASELINES, {}),
          Statistic('interquartile mean', interquartile_mean,
                    dmlab30.BASELINES, {})),
      num_published_games=500,
      constants=(
          "The paper's means need its table B.1, which is rounded and has "
          'small and large maps of lasertag swapped. All other numbers use the '
          "scores of the reference's code."),
      other_agents=tuple(
          f'{agent.name}: mean capped at 100 of {agent.mean_capped:g} '
          f'({agent.source}{"; " + agent.note if agent.note else ""})'
          for key, agent in dmlab30.PUBLISHED.items()
          if key not in names and agent.verified))


ATARI57 = _atari57()
DMLAB30 = _dmlab30()
SUITES = (ATARI57, DMLAB30)


def suite_of(levels: Iterable[str]) -> Suite | None:
  """Returns the suite that has one of the levels, None if there is none."""
  levels = set(levels)
  return next((s for s in SUITES if levels & set(s.keys)), None)
