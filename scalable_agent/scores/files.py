# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Writes and reads tables of scores: Markdown, CSV and JSON."""

from collections.abc import Callable, Iterator, Sequence
import csv
import dataclasses
import io
import itertools
import json
import math
import operator
import os
import re
from typing import Any

from scalable_agent import errors
from scalable_agent.scores import group_text
from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import markdown
from scalable_agent.scores import protocol
from scalable_agent.scores import suites
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files as whole_files

# Names of files that a killed test, or a killed plot, leaves behind.
TEMPORARY_NAME = r'scores-.+\.(json|csv|md)\.tmp|.+\.\w+\.\d+\.tmp'
_NAME = re.compile(r'scores-(\d+)-(\d+)\.json')
NAMES = re.compile(r'scores-\d+-\d+\.(json|csv|md)')  # Of tests.


def to_markdown(table: score_table.Table, title: str = '') -> str:
  """Returns the table as Markdown that is readable as plain text.

  The title, by default made from the levels, is followed by the frames.
  """
  suite = table.suite
  frames = sorted({run.num_env_frames for run in table.runs})
  subject = (table.runs[0].config.level_name if len(table.runs) == 1 else
             f'{len(table.runs)} agents')
  parts = [
      f'# {title or f"Test of {subject}"} after '
      f'{" to ".join(f"{n:,}" for n in dict.fromkeys((frames[0], frames[-1])))}'
      ' frames',
      *(f'**{remark}**' for remark in table.remarks),
      _level_table(table),
      'Unclipped returns of whole games, with their standard deviation; the '
      'interval is that of the mean, a bootstrap over the games of one agent.'
      + (' In brackets and under "normalised": percent, where 0 is random '
         'and 100 is human.' if suite else '')]
  if table.comparisons:
    parts += _comparison_parts(table)
  if suite and table.aggregates:
    parts += _aggregate_parts(suite, table.aggregates)
  parts += group_text.to_markdown(table.over_runs)
  if len(table.runs) > 1:
    parts += ['## Agents', '\n'.join(
        f'{i}. {run.source}, {run.num_env_frames:,} frames'
        for i, run in enumerate(table.runs, 1))]
  if table.differences:
    parts += ['## Differences from the published tests',
              '\n'.join(f'- {line}' for line in table.differences)]
  if suite:
    parts += ['## Sources', '\n'.join(
        f'- [{i}] {column.name}: {column.source}'
        for i, column in enumerate(_columns(suite), 1))]
  return '\n\n'.join(parts) + '\n'


def _aggregate_parts(
    suite: suites.Suite,
    aggregates: Sequence[score_table.Aggregate]) -> list[str]:
  names = [agent.name for agent in suite.agents]
  return [
      f'## Over all {len(suite.human.scores)} levels of {suite.name}',
      markdown.table([
          ['normalised scores, percent', 'yours', '95 % interval', *names],
          *([a.name, f'{a.value:.1f}', markdown.interval(a.interval, 1),
             *(f'{value:.1f}{"*" if recomputed else ""}'
               for value, recomputed in a.published.values())]
            for a in aggregates)]),
      '\\* recomputed from the published scores of the levels. Intervals '
      f'are of a bootstrap stratified by level. {suite.constants}',
      'Published numbers of other agents:\n\n' + '\n'.join(
          f'- {agent}' for agent in suite.other_agents)]


def _comparison_parts(table: score_table.Table) -> list[str]:
  agents = {id(row): f'yours, agent {i}' if len(table.runs) > 1 else 'yours'
            for i, run in enumerate(table.runs, 1) for row in run.rows}
  numbers: dict[tuple[str, str], int] = {}
  lines = [['level', 'agent', 'agent steps', 'mean', 'std']]
  for level in dict.fromkeys(c.row.level for c in table.comparisons):
    of_level = [c for c in table.comparisons if c.row.level == level]
    lines += [[level, agents[id(row)], f'{num_agent_steps:,}',
               f'{row.mean:,.2f}', f'{row.std:,.2f}']
              for row, num_agent_steps, _ in of_level]
    for score in dict.fromkeys(s for c in of_level for s in c.scores):
      number = numbers.setdefault(
          (score.source, score.protocol), len(numbers) + 1)
      lines.append([
          score.environment, f'{score.algorithm} [P{number}]',
          f'{score.num_agent_steps:,}', f'{score.mean:,.2f}',
          '' if score.std is None else f'{score.std:,.2f}'])
  return ['## Published scores of the same algorithm', markdown.table(lines),
          '\n'.join(f'- [P{number}] {source}: {protocol}' for
                    (source, protocol), number in numbers.items())]


def _level_table(table: score_table.Table) -> str:
  lines = [_head(table.suite), *(_cells(r, table.suite) for r in table.rows)]
  if len(table.runs) > 1:
    agents = ['agent', *(str(i) for i, run in enumerate(table.runs, 1)
                         for _ in run.rows)]
    lines = [[line[0], agent, *line[1:]] for line, agent in zip(lines, agents)]
  return markdown.table(lines)


def _columns(suite: suites.Suite) -> tuple[suites.Published, ...]:
  return (suite.random, suite.human, *suite.agents)


def _head(suite: suites.Suite | None) -> list[str]:
  head = ['level', 'games', 'mean', 'std', '95 % interval']
  if suite:
    head += ['normalised', *(f'{column.name} [{i}]' for i, column in
                             enumerate(_columns(suite), 1))]
  return head


def _cells(row: score_table.Row, suite: suites.Suite | None) -> list[str]:
  cells = [row.level, str(len(row.returns)), f'{row.mean:,.2f}',
           f'{row.std:,.2f}', markdown.interval(row.interval, 2)]
  if not suite:
    return cells
  if row.level not in suite.keys:
    return cells + [''] * (1 + len(_columns(suite)))
  cells.append(f'{suite.normalized(row.level, row.mean):.1f}')
  key = suite.keys[row.level]
  for column in _columns(suite):
    score = column.scores[key]
    text = f'{score:,.2f}'
    if column in suite.agents:
      text += f' ({suite.normalized(row.level, score):.1f})'
    cells.append(text)
  return cells


def to_json(table: score_table.Table) -> str:
  """Returns the complete table, with every return, as JSON."""
  suite = table.suite
  return json.dumps({
      'agents': [{
          'source': run.source,
          'num_env_frames': run.num_env_frames,
          'levels': [_json_row(row, suite) for row in run.rows],
          'settings': dataclasses.asdict(run.config),
          'changed': run.changed,
          'trained_with': (
              run.trained_with and dataclasses.asdict(run.trained_with))}
                 for run in table.runs],
      'suite': suite and suite.name,
      'aggregates': [aggregate._asdict() | {'published': {
          name: {'value': value, 'is_recomputed': is_recomputed}
          for name, (value, is_recomputed) in aggregate.published.items()}}
                     for aggregate in table.aggregates],
      'same_algorithm': [{
          'level': row.level, 'num_agent_steps': num_agent_steps,
          'scores': [score._asdict() for score in scores]}
                         for row, num_agent_steps, scores in table.comparisons],
      'over_runs': group_text.to_json(table.over_runs),
      'remarks': table.remarks,
      'differences': table.differences,
      'sources': {column.name: column.source
                  for column in (_columns(suite) if suite else ())}}, indent=1)


def _json_row(row: score_table.Row,
              suite: suites.Suite | None) -> dict[str, object]:
  result = row._asdict()
  if suite and row.level in suite.keys:
    result['human_normalized_percent'] = suite.normalized(row.level, row.mean)
    result['published'] = {
        column.name: {
            'score': column.scores[suite.keys[row.level]],
            'human_normalized_percent': suite.normalized(
                row.level, column.scores[suite.keys[row.level]])}
        for column in _columns(suite)}
  return result


def to_csv(table: score_table.Table) -> str:
  """Returns CSV with a line for each agent and level or aggregate."""
  out = io.StringIO()
  writer = csv.writer(out, lineterminator='\n')
  writer.writerow(['level', 'statistic', 'agent', 'value', 'std',
                   'interval_low', 'interval_high', 'games',
                   'human_normalized_percent', 'source'])
  suite = table.suite
  for run in table.runs:
    for row in run.rows:
      writer.writerow([
          row.level, 'mean return', 'yours', row.mean, row.std, *row.interval,
          len(row.returns), suite.normalized(row.level, row.mean)
          if suite and row.level in suite.keys else '', run.source])
  for level, score in dict.fromkeys(
      (c.row.level, score) for c in table.comparisons for score in c.scores):
    writer.writerow([
        level, 'mean return', f'{score.algorithm}, {score.environment}, '
        f'{score.num_agent_steps} agent steps', score.mean,
        '' if score.std is None else score.std, *[''] * 4,
        f'{score.source}: {score.protocol}'])
  if suite:
    writer.writerows(_published_lines(suite, table))
  writer.writerows(group_text.csv_rows(table.over_runs))
  return out.getvalue()


def _published_lines(
    suite: suites.Suite, table: score_table.Table) -> Iterator[list]:
  """Yields the lines with published scores and with numbers over all levels."""
  for level in dict.fromkeys(row.level for row in table.rows):
    for column in _columns(suite) if level in suite.keys else ():
      score = column.scores[suite.keys[level]]
      yield [level, 'mean return', column.name, score, *[''] * 4,
             suite.normalized(level, score), column.source]
  for a in table.aggregates:
    yield [suite.name, a.name, 'yours', a.value, '', *a.interval, '', a.value,
           '']
    for agent in suite.agents:
      value, is_recomputed = a.published[agent.name]
      yield [suite.name, a.name, agent.name, value, *[''] * 4, value,
             ('recomputed from ' if is_recomputed else '') + agent.source]


def reserve_path(logdir: str, label: object) -> str:
  """Returns the path of a new table, without extension.

  The name has `label`, such as the frames of the training, and a number, which
  is unique even if two tables are made at once.
  """
  numbers = itertools.count(1)
  while True:
    path = os.path.join(logdir, f'scores-{label}-{next(numbers)}')
    try:
      with open(f'{path}.json', 'x', encoding='utf-8'):
        return path
    except FileExistsError:
      pass


def write(table: score_table.Table, path: str) -> None:
  """Writes `<path>.json`, `.csv` and `.md`, each completely or not at all."""
  for extension, to_text in _FORMATS.items():
    whole_files.write(path + extension, to_text(table))


_FORMATS: dict[str, Callable[[score_table.Table], str]] = {
    '.json': to_json, '.csv': to_csv, '.md': to_markdown}


def read(path: str, num_games: int = 0) -> score_table.Run:
  """Reads the test of an agent from a JSON file, or from a directory.

  In a directory, the latest test after the most frames counts. A test that was
  stopped before its last level counts only if no other test of these frames is
  there.

  Args:
    path: the file or the directory.
    num_games: if not 0, only tests in a directory count that have the settings
      of the training, and at least so many games of each level, or fewer if
      games were cut.

  Raises:
    ConfigError: there is no such table, or a table cannot be read.
  """
  if os.path.isdir(path):
    try:
      # A failed write has left an empty file.
      found = [match for match in map(_NAME.fullmatch, os.listdir(path))
               if match and os.path.getsize(os.path.join(path, match[0]))]
    except OSError as e:
      raise errors.ConfigError(
          f'--logdir={path} cannot be read: {e.strerror}.') from e
    if not found:
      raise errors.ConfigError(
          f'--logdir={path} holds no table of a test (scores-*.json). Test '
          'first: --mode=test.')
    latest_first = sorted(
        found, key=lambda match: tuple(map(int, match.groups())), reverse=True)
    stopped = None
    for match in latest_first:
      run = _read_file(os.path.join(path, match[0]))
      if num_games and not _counts(run, num_games):
        continue
      if stopped and run.num_env_frames < stopped.num_env_frames:
        break
      if len(run.rows) == len(set(levels_lib.level_names(
          run.config.level_name, run.config.is_test))):
        return run
      stopped = stopped or run
    if stopped:
      return stopped
    raise errors.ConfigError(
        f'--logdir={path} holds no test of {num_games} games with the settings '
        'of the training. Test first: --mode=test '
        f'--test_num_episodes={num_games}.')
  return _read_file(path)


def _counts(run: score_table.Run, num_games: int) -> bool:
  """Returns whether `read` may return a test of a directory."""
  # After a cut, a test plays no further game in that environment.
  is_long = run.config.test_num_episodes >= num_games
  return all(len(row.returns) >= num_games or row.num_cut and is_long
             for row in run.rows) and (
                 run.trained_with is None or protocol.plays_as_trained(
                     run.config, run.trained_with))


def _read_file(path: str) -> score_table.Run:
  try:
    agents = whole_files.read_json(path)['agents']
    if len(agents) != 1:
      raise ValueError(f'it is a table of {len(agents)} agents')
    [agent] = agents
    settings, trained_with = (
        values and config_lib.Config.from_saved(values)
        for values in (agent['settings'], agent['trained_with']))
    if not (settings and agent['levels']):
      raise ValueError('it has no settings or no levels')
    return score_table.Run(
        settings, operator.index(agent['num_env_frames']), trained_with or None,
        tuple(_read_row(level) for level in agent['levels']),
        os.path.splitext(path)[0], changed=tuple(agent.get('changed', ())))
  except (OSError, LookupError, TypeError, ValueError, OverflowError) as e:
    raise errors.ConfigError(
        f'{path} cannot be read as the test of an agent: {e}. Name another '
        'file, --logdir=DIRECTORY/scores-N-M.json, or test again.') from e


def _read_row(level: dict[str, Any]) -> score_table.Row:
  if not isinstance(level['level'], str) or not level['returns']:
    raise ValueError('a level has no name or no returns')
  if not all(map(math.isfinite, level['returns'])):
    raise ValueError(f'a return of {level["level"]} is infinite or no number')
  return score_table.make_row(
      level['level'], level['returns'],
      operator.index(level.get('num_cut', 0)))  # Missing in older tables.
