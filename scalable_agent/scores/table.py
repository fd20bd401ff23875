# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The scores of tests and published scores, as rows and statistics.

Intervals are percentile intervals of a bootstrap over the played games. An
interval is the uncertainty of the score of this agent, not the spread between
training runs.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scalable_agent.scores import data
from scalable_agent.scores import groups as groups_lib
from scalable_agent.scores import protocol
from scalable_agent.scores import published_scores
from scalable_agent.scores import statistics
from scalable_agent.scores import suites
from scalable_agent.settings import sections
from scalable_agent.settings.test_settings import OF_GAMES

# With fewer games, the interval misses the true mean too often. The interval
# contains the mean of normal, exponential and log-normal returns in 90, 88 and
# 78 of 100 cases with 10 games, and in 94, 93 and 89 cases with 30 games.
MIN_GAMES = 30
_NUM_RESAMPLES = 10_000
_RESAMPLES_AT_ONCE = 100


class Row(NamedTuple):
  """The games of one level.

  Attributes:
    returns: unclipped returns of whole games.
    interval: 95 % bootstrap interval of the mean.
    num_cut: number of games that `--max_episode_steps` has cut.
  """
  level: str
  returns: tuple[float, ...]
  mean: float
  std: float
  interval: tuple[float, float]
  num_cut: int = 0


class Aggregate(NamedTuple):
  """A statistic over all levels of a suite.

  Attributes:
    name: name of the statistic.
    value: the value of the tested agents.
    interval: 95 % stratified bootstrap interval of the value.
    published: published `(value, whether recomputed)`, by name of the agent.
  """
  name: str
  value: float
  interval: tuple[float, float]
  published: Mapping[str, tuple[float, bool]]


class Run(NamedTuple):
  """The test of an agent.

  Attributes:
    config: the settings of the test.
    num_env_frames: the frames of the agent's training.
    trained_with: the settings of the agent's training; None if lost.
    rows: a row for each level that the test has played.
    source: path of the table's file without extension; '' if not from a file.
    group: name of the runs to count together; '' for runs of equal settings.
    changed: as `flag_texts.changes_within`.
  """
  config: sections.AllSections
  num_env_frames: int
  trained_with: sections.AllSections | None
  rows: tuple[Row, ...]
  source: str = ''
  group: str = ''
  changed: tuple[str, ...] = ()


class Comparison(NamedTuple):
  """A level and published scores of the same algorithm.

  Attributes:
    row: the games of the level.
    num_agent_steps: agent steps of the agent's training on the level.
    scores: at least one published score.
  """
  row: Row
  num_agent_steps: int
  scores: tuple[published_scores.Score, ...]


class Table(NamedTuple):
  """The complete table of the tests of one or several agents.

  `over_runs` has the statistics over runs that differ by seed only.
  """
  runs: tuple[Run, ...]
  suite: suites.Suite | None
  aggregates: tuple[Aggregate, ...]
  remarks: tuple[str, ...]
  differences: tuple[str, ...]
  comparisons: tuple[Comparison, ...]
  over_runs: groups_lib.RunStatistics

  @property
  def rows(self) -> tuple[Row, ...]:
    """The rows of all agents."""
    return tuple(row for run in self.runs for row in run.rows)


def bootstrap_means(returns: Sequence[float],
                    rng: np.random.Generator) -> np.ndarray:
  """Returns the means of 10,000 samples of `[N]` with replacement, float64."""
  values = np.asarray(returns, np.float64)
  return np.concatenate([
      rng.choice(values, (_RESAMPLES_AT_ONCE, len(values))).mean(axis=1)
      for _ in range(_NUM_RESAMPLES // _RESAMPLES_AT_ONCE)])


def make_row(level: str, returns: Sequence[float], num_cut: int = 0) -> Row:
  """Makes the row of a level from the returns of its games."""
  means = bootstrap_means(returns, np.random.default_rng(0))
  return Row(level, tuple(map(float, returns)), float(np.mean(returns)),
             float(np.std(returns)), statistics.interval(means), num_cut)


def make_table(runs: Sequence[Run]) -> Table:
  """Makes the table of tests, with published scores of the same levels.

  Each test is of one agent. Several agents count as one agent, like the experts
  of the paper. Runs that differ by seed only also get statistics over runs.
  """
  rows = [row for run in runs for row in run.rows]
  suite = suites.suite_of(row.level for row in rows)
  keys = [suite.keys.get(row.level) for row in rows] if suite else []
  is_complete = suite is not None and (
      sorted(filter(None, keys)) == sorted(suite.human.scores))
  comparisons = [list(_comparisons(run)) for run in runs]
  over_runs = groups_lib.report(*groups_lib.of_runs([
      _seed_run(run) for run in runs if run.trained_with]))
  is_complete_or_grouped = is_complete or any(
      not line.level for line in over_runs.lines)
  return Table(
      tuple(runs), suite,
      _aggregates(suite, rows) if suite and is_complete else (),
      remarks=(*_lines_of_all(map(_run_remarks, runs)),
               *_remarks(suite, rows, is_complete_or_grouped),
               *_lines_of_all(_different_tests(runs)),
               *over_runs.remarks, *_unknown_runs(runs, over_runs)),
      differences=_lines_of_all(map(
          _differences, itertools.repeat(suite), runs, comparisons,
          _numbers_of_seeds(runs))),
      comparisons=tuple(itertools.chain(*comparisons)), over_runs=over_runs)


def _seed_run(run: Run) -> groups_lib.SeedRun:
  return groups_lib.SeedRun(
      run.trained_with or run.config, run.num_env_frames,
      {row.level: row.mean for row in run.rows}, run.group)


def _unknown_runs(runs: Sequence[Run],
                  over_runs: groups_lib.RunStatistics) -> Iterator[str]:
  unknown = [run.source for run in runs if not run.trained_with]
  if unknown and over_runs.lines:
    yield (f'Not in the statistics over runs: {", ".join(unknown)}, as the '
           'settings of the training are not known.')


def _run_remarks(run: Run) -> Iterator[str]:
  for row in run.rows:
    if row.num_cut:
      yield (f'Cut games: {row.num_cut} of {len(row.returns)} of {row.level}, '
             f'after {run.config.max_episode_steps:,} steps '
             '(--max_episode_steps). The returns until then count.')
  if run.changed:
    yield f'Settings that changed in the training: {"; ".join(run.changed)}.'
  yield from protocol.training_remarks(
      run.config, run.trained_with, [row.level for row in run.rows])


def _different_tests(runs: Sequence[Run]) -> Iterator[list[str]]:
  """Yields lines about the settings in which the tests of runs differ."""
  names = [name for name in OF_GAMES
           if len({getattr(run.config, name) for run in runs}) > 1]
  for run in runs:
    yield [f'Tested with --{name}={str(getattr(run.config, name)).lower()}.'
           for name in names]


def _comparisons(run: Run) -> Iterator[Comparison]:
  """Yields a `Comparison` for each level that has published scores."""
  trained_with = run.trained_with or run.config
  # Levels that were trained together share the frames.
  num_levels = len(protocol.trained_levels(trained_with))
  num_steps = (
      run.num_env_frames // trained_with.num_action_repeats // num_levels)
  for row in run.rows:
    scores = published_scores.comparable_scores(
        trained_with.algorithm, row.level, num_steps)
    if scores:
      yield Comparison(row, num_steps, tuple(scores))


def _numbers_of_seeds(runs: Sequence[Run]) -> list[int]:
  """Returns, for each run, the number of seeds of its group on its level."""
  found = list(map(_seed_run, runs))
  keys = [(one.group or groups_lib.experiment(one), next(iter(one.scores)))
          for one in found]
  numbers = collections.Counter(key for key, _ in {
      (key, one.config.seed) for key, one in zip(keys, found)})
  return [numbers[key] for key in keys]


def _differences(suite: suites.Suite | None, run: Run,
                 comparisons: Sequence[Comparison],
                 num_runs: int) -> Iterator[str]:
  num_games = len(run.rows[0].returns)  # The same for each level.
  yield from protocol.differences(
      suite, run.config, run.trained_with, run.num_env_frames,
      [row.level for row in run.rows], num_games)
  yield from protocol.published_differences(
      run.config, run.trained_with or run.config,
      {c.row.level: c.scores for c in comparisons}, num_games, num_runs)


def _lines_of_all(lines_of_runs: Iterable[Iterable[str]]) -> tuple[str, ...]:
  """Returns each line once; adds the agents' numbers if not all have a line."""
  numbers = collections.defaultdict(list)
  num_runs = 0
  for num_runs, lines in enumerate(lines_of_runs, 1):
    for line in lines:
      numbers[line].append(num_runs)
  return tuple(
      line if len(n) == num_runs else
      f'{line[:-1]} (agent{"s" if len(n) > 1 else ""} '
      f'{", ".join(map(str, n[:5]))}{", ..." if len(n) > 5 else ""}).'
      for line, n in numbers.items())


def _normalize(values: ArrayLike, keys: Sequence[str],
               baselines: data.Baselines) -> np.ndarray:
  """Returns scores `[..., keys]` in percent."""
  scores = np.asarray(values)
  return np.stack([baselines.normalized(key, scores[..., i])
                   for i, key in enumerate(keys)], axis=-1)


def _aggregates(suite: suites.Suite,
                rows: Sequence[Row]) -> tuple[Aggregate, ...]:
  rows = [row for row in rows if row.level in suite.keys]
  keys = [suite.keys[row.level] for row in rows]
  rng = np.random.default_rng(0)  # Shared: levels must be independent.
  resampled = np.stack([bootstrap_means(row.returns, rng) for row in rows], -1)
  aggregates = []
  for statistic in suite.statistics:
    def reduce(scores: ArrayLike,
               statistic: suites.Statistic = statistic) -> np.ndarray:
      return statistic.reduce(_normalize(scores, keys, statistic.baselines))
    published = {}
    for agent in suite.agents:
      value = statistic.published.get(agent.name)
      if value is not None:
        published[agent.name] = value, False
      else:
        published[agent.name] = float(reduce(
            [agent.scores[key] for key in keys])), True
    aggregates.append(Aggregate(
        statistic.name, float(reduce([row.mean for row in rows])),
        statistics.interval(reduce(resampled)), published))
  return tuple(aggregates)


def _remarks(suite: suites.Suite | None, rows: Sequence[Row],
             is_complete: bool) -> Iterator[str]:
  fewest = min(rows, key=lambda row: len(row.returns))
  if len(fewest.returns) < MIN_GAMES:
    advice = (f'; the paper plays {suite.num_published_games}' if suite else '')
    yield (f'Too few episodes: {len(fewest.returns)} of {fewest.level}. With '
           'fewer than '
           f'{MIN_GAMES} the interval is too narrow to be relied on: raise '
           f'--test_num_episodes{advice}.')
  if suite and not is_complete and len(rows) > 1:
    num_levels = len({suite.keys.get(row.level) for row in rows} - {None})
    yield (f'No numbers over {suite.name}, which need each of its '
           f'{len(suite.human.scores)} levels once; the {len(rows)} levels '
           f'here have {num_levels}.')
  outside = [row.level for row in rows if suite and row.level not in suite.keys]
  if suite and outside:
    yield f'Not in {suite.name}: {", ".join(outside)}.'
