# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Statistics over runs as Markdown, JSON and CSV."""

from collections.abc import Iterator

from scalable_agent.scores import groups
from scalable_agent.scores import markdown
from scalable_agent.scores import statistics

_TEXT = (
    'A score is the mean return of a run. Brackets have 95 % intervals over '
    'seeds, of a bootstrap stratified by level. The interquartile mean is the '
    'mean of the middle half of all runs.')
_COMPARISON_TEXT = (
    'Difference: of the interquartile means. More seeds: to add to both groups '
    'until the interval of the difference excludes 0, in 4 of 5 repetitions.')


def to_markdown(report: groups.RunStatistics) -> list[str]:
  """Returns the parts of a text; none without groups."""
  if not report.lines:
    return []
  parts = ['## Over training runs', _TEXT]
  raw = [line for line in report.lines if line.level]
  parts.append(markdown.table([
      ['level', 'group', 'runs', *statistics.OF_LEVEL],
      *([line.level, line.group, str(line.num_runs), *_cells(line)]
        for line in raw)]))
  percents = [line for line in report.lines if not line.level]
  if percents:
    parts += [
        'Over all levels, in percent of the score of a human, or of the best '
        'score where no human played:',
        markdown.table([
            ['group', 'levels', 'runs of each level', *statistics.OVER_LEVELS],
            *([line.group, str(sum(line.group == l.group for l in raw)),
               str(line.num_runs), *_cells(line)] for line in percents)]),
        'Performance profile, the percentage of runs with a score above:',
        markdown.table([
            ['group', *(f'{x:g} %' for x in statistics.PROFILE_PERCENTS)],
            *([line.group, *(_estimate(*e, 0) for e in line.profile)]
              for line in percents)])]
  if report.comparisons:
    parts += [markdown.table([
        ['first', 'second', 'probability that first is better', 'difference',
         'more seeds'],
        *(_comparison_cells(c) for c in report.comparisons)]), _COMPARISON_TEXT]
  return parts


def _cells(line: groups.Line) -> list[str]:
  return [_estimate(*e, 2 if line.level else 1)
          for e in line.estimates.values()]


def _estimate(value: float, low: float, high: float, num_decimals: int) -> str:
  return (f'{value:,.{num_decimals}f} '
          f'({markdown.interval((low, high), num_decimals)})')


def _comparison_cells(comparison: groups.Comparison) -> list[str]:
  contest = comparison.contest
  cells = [comparison.first, comparison.second,
           _estimate(*comparison.probability, 2)]
  if contest is None:
    return [*cells, '', '']
  more = contest.more_seeds
  return [*cells, _estimate(*contest.difference, 1 if comparison.is_percent
                            else 2),
          'too few seeds' if contest.num_runs < statistics.MIN_RUNS
          else 'over 1,000' if more is None else 'decided' if not more
          else f'{more:,}']


def to_json(report: groups.RunStatistics) -> dict[str, object]:
  """Returns a report as values for JSON."""
  return {
      'groups': [{
          'group': line.group, 'level': line.level, 'runs': line.num_runs,
          'statistics': {name: e._asdict()
                         for name, e in line.estimates.items()},
          'profile': [e._asdict() for e in line.profile]}
                 for line in report.lines],
      'comparisons': [{
          'first': c.first, 'second': c.second,
          'probability': c.probability._asdict(),
          'difference': c.contest and c.contest.difference._asdict(),
          'more_seeds': c.contest and c.contest.more_seeds}
                      for c in report.comparisons]}


def csv_rows(report: groups.RunStatistics) -> Iterator[list[object]]:
  """Yields rows for `files.to_csv`; `games` is the number of runs."""
  for line in report.lines:
    for name, (value, low, high) in line.estimates.items():
      yield [line.level or 'all levels', f'{name} over runs', line.group, value,
             '', low, high, line.num_runs, '' if line.level else value, '']
  for c in report.comparisons:
    yield ['all levels', f'probability to be better than {c.second}', c.first,
           c.probability.value, '', c.probability.low, c.probability.high,
           *[''] * 3]
