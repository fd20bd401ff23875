# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tables of scores as Markdown, CSV and JSON: written, and read again."""

import csv
import dataclasses
import io
import itertools
import json
import os
import re
from typing import Callable, Dict, List

from scalable_agent import config as config_lib
from scalable_agent import score_table


def print_table(config: config_lib.Config) -> int:
  """Prints the latest tests of `--logdir=A,B,C` as one table.

  The paper's experts are an agent for each game, and so are their numbers over
  all games.

  Returns:
    The program's exit code.

  Raises:
    ConfigError: if a directory holds no table, or one that cannot be read.
  """
  runs = [read(logdir) for logdir in config.logdirs]
  table = score_table.make_table(
      runs, num_levels=sum(len(run.rows) for run in runs))
  print(to_markdown(table))
  return 0


def to_markdown(table: score_table.Table) -> str:
  """Returns the table as Markdown that can be read as it is."""
  suite = table.suite
  frames = sorted({run.num_env_frames for run in table.runs})
  what = (table.runs[0].config.level_name if len(table.runs) == 1 else
          f'{len(table.runs)} agents')
  parts = [
      f'# Test of {what} after '
      f'{" to ".join(f"{n:,}" for n in dict.fromkeys((frames[0], frames[-1])))}'
      ' frames',
      _markdown_table([_head(suite), *(_cells(r, suite) for r in table.rows)]),
      'Unclipped returns of whole games, with their standard deviation; the '
      'interval is that of the mean, a bootstrap over the games of one agent.'
      + (' In brackets and under "normalised": percent, where 0 is random '
         'and 100 is human.' if suite else '')]
  parts.extend(f'**{remark}**' for remark in table.remarks)
  if table.aggregates:
    names = [agent.name for agent in suite.agents]
    parts += [
        f'## Over all {len(suite.human.scores)} levels of {suite.name}',
        _markdown_table([
            ['normalised scores, percent', 'yours', '95 % interval', *names],
            *([a.name, f'{a.value:.1f}', _interval_text(a.interval, 1),
               *(f'{value:.1f}{"*" if recomputed else ""}'
                 for value, recomputed in a.published.values())]
              for a in table.aggregates)]),
        '\\* recomputed from the published scores of the levels. Intervals '
        f'are of a bootstrap stratified by level. {suite.constants}',
        'Published of other agents:\n\n' + '\n'.join(
            f'- {agent}' for agent in suite.other_agents)]
  if table.differences:
    parts += ['## Where this test differs from the published ones',
              '\n'.join(f'- {line}' for line in table.differences)]
  if suite:
    parts += ['## Sources', '\n'.join(
        f'- [{i}] {column.name}: {column.source}'
        for i, column in enumerate(_columns(suite), 1))]
  return '\n\n'.join(parts) + '\n'


def _columns(suite):
  return (suite.random, suite.human, *suite.agents)


def _head(suite):
  head = ['level', 'games', 'mean', 'std', '95 % interval']
  if suite:
    head += ['normalised', *(f'{column.name} [{i}]' for i, column in
                             enumerate(_columns(suite), 1))]
  return head


def _cells(row, suite):
  cells = [row.level, str(len(row.returns)), f'{row.mean:,.2f}',
           f'{row.std:,.2f}', _interval_text(row.interval, 2)]
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


def _interval_text(interval, num_decimals):
  return ' to '.join(f'{x:,.{num_decimals}f}' for x in interval)


def _markdown_table(rows: List[List[str]]) -> str:
  """Aligns the cells of a table; the first column to the left."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  lines = ['| ' + ' | '.join(
      cell.rjust(width) if i else cell.ljust(width)
      for i, (cell, width) in enumerate(zip(row, widths))) + ' |'
           for row in rows]
  rule = '|' + '|'.join('-' * (width + 1) + (':' if i else '-')
                        for i, width in enumerate(widths)) + '|'
  return '\n'.join([lines[0], rule, *lines[1:]])


def to_json(table: score_table.Table) -> str:
  """Returns all of the table of one agent, with every return, as JSON."""
  [run], suite = table.runs, table.suite
  return json.dumps({
      'level_name': run.config.level_name,
      'num_env_frames': run.num_env_frames,
      'trained_with': run.trained_with and dataclasses.asdict(run.trained_with),
      'suite': suite and suite.name,
      'levels': [_json_row(row, suite) for row in table.rows],
      'aggregates': [aggregate._asdict() | {'published': {
          name: {'value': value, 'is_recomputed': is_recomputed}
          for name, (value, is_recomputed) in aggregate.published.items()}}
                     for aggregate in table.aggregates],
      'remarks': table.remarks,
      'differences': table.differences,
      'sources': {column.name: column.source
                  for column in (_columns(suite) if suite else ())},
      'settings': dataclasses.asdict(run.config)}, indent=1)


def _json_row(row, suite):
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
  """Returns a line per level or aggregate and agent as CSV."""
  suite = table.suite
  out = io.StringIO()
  writer = csv.writer(out, lineterminator='\n')
  writer.writerow(['level', 'statistic', 'agent', 'value', 'std',
                   'interval_low', 'interval_high', 'games',
                   'human_normalized_percent', 'source'])
  for row in table.rows:
    known = suite is not None and row.level in suite.keys
    writer.writerow([
        row.level, 'mean return', 'yours', row.mean, row.std, *row.interval,
        len(row.returns),
        suite.normalized(row.level, row.mean) if known else '', ''])
    for column in _columns(suite) if known else ():
      score = column.scores[suite.keys[row.level]]
      writer.writerow([row.level, 'mean return', column.name, score, *[''] * 4,
                       suite.normalized(row.level, score), column.source])
  for a in table.aggregates:
    writer.writerow([suite.name, a.name, 'yours', a.value, '', *a.interval,
                     '', a.value, ''])
    for agent in suite.agents:
      value, is_recomputed = a.published[agent.name]
      writer.writerow([
          suite.name, a.name, agent.name, value, *[''] * 4, value,
          ('recomputed from ' if is_recomputed else '') + agent.source])
  return out.getvalue()


def reserve_path(logdir: str, num_env_frames: int) -> str:
  """Returns where a new table belongs, without extension.

  The name carries the frames trained, and a number that no other test has, not
  even one that runs at the same time.

  Raises:
    OSError: if nothing can be written there.
  """
  for number in itertools.count(1):
    path = os.path.join(logdir, f'scores-{num_env_frames}-{number}')
    try:
      with open(f'{path}.json', 'x', encoding='utf-8'):
        return path
    except FileExistsError:
      pass


def write(table: score_table.Table, path: str) -> None:
  """Writes `<path>.json`, `.csv` and `.md`, each of which a kill leaves whole.

  Raises:
    OSError: if one cannot be written.
  """
  for extension, to_text in _FORMATS.items():
    temporary = f'{path}{extension}.tmp'
    with open(temporary, 'w', encoding='utf-8', newline='') as f:
      f.write(to_text(table))
    os.replace(temporary, path + extension)


_NAME = re.compile(r'scores-(\d+)-(\d+)\.json')
_FORMATS: Dict[str, Callable[[score_table.Table], str]] = {
    '.json': to_json, '.csv': to_csv, '.md': to_markdown}


def read(logdir: str) -> score_table.Run:
  """Reads the latest table that a test has written to `logdir`.

  Raises:
    ConfigError: if there is none, or if it cannot be read.
  """
  names = os.listdir(logdir) if os.path.isdir(logdir) else []
  found = [match for match in map(_NAME.fullmatch, names) if match]
  if not found:
    raise config_lib.ConfigError(
        f'--logdir={logdir} holds no table of a test (scores-*.json). Test '
        'first: --mode=test.')
  latest = max(found, key=lambda match: tuple(map(int, match.groups())))
  path = os.path.join(logdir, latest[0])
  try:
    with open(path, encoding='utf-8') as f:
      content = json.load(f)
    trained_with = content['trained_with']
    return score_table.Run(
        config_lib.Config(**content['settings']), content['num_env_frames'],
        trained_with and config_lib.Config(**trained_with),
        tuple(score_table.make_row(level['level'], level['returns'])
              for level in content['levels']))
  except (OSError, KeyError, TypeError, ValueError) as e:
    raise config_lib.ConfigError(
        f'{path} cannot be read: {e}. It may be of another version, or of a '
        'test that has just begun; test again: --mode=test.') from e
