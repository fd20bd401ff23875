# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The report of a suite: Markdown, CSV, pictures, and one page of HTML."""

from collections.abc import Mapping, Sequence
import os
import pathlib

from scalable_agent import errors
from scalable_agent.scores import files as score_files
from scalable_agent.scores import markdown
from scalable_agent.scores import plotting
from scalable_agent.scores import table as table_lib
from scalable_agent.settings import files

_NAME = 'report'


def write(directory: pathlib.Path, title: str, group: str,
          runs: Mapping[str, table_lib.Run], failures: Sequence[str],
          remarks: Sequence[str], num_episodes: int) -> None:
  """Writes report.md, .csv and .html, and pictures where possible.

  All `runs`, by name, count as one group of the statistics over runs. `remarks`
  come before those of the table. A point of the learning curves is the mean of
  `num_episodes` episodes.
  """
  logdirs = {name: os.path.dirname(run.source) for name, run in runs.items()}
  minutes = {name: plotting.minutes(logdir) for name, logdir in logdirs.items()}
  table = table_lib.make_table([
      run._replace(source=name, group=group) for name, run in runs.items()])
  table = table._replace(remarks=(*remarks, *table.remarks))
  text = '\n\n'.join([
      score_files.to_markdown(table, title).rstrip(),
      *(['## Failed runs', '\n'.join(f'- {line}' for line in failures)]
        if failures else []),
      '## Time', markdown.table([
          ['run', 'minutes trained'],
          *([name, '' if end is None else f'{end:.1f}']
            for name, end in minutes.items())])]) + '\n'
  path = str(directory / _NAME)
  files.write(f'{path}.csv', score_files.to_csv(table))
  files.write(f'{path}.md', text)
  drawn = plotting.with_curves(logdirs)
  try:
    pictures = plotting.write_pictures(
        drawn, f'{path}.png', num_episodes,
        dict.fromkeys(drawn, group)) if drawn else []
  except errors.ConfigError as e:
    print(f'No pictures: {e}')
    pictures = []
  files.write(f'{path}.html', markdown.to_html(text, pictures))
  print(text)
  print(f'Wrote {path}.md, .csv and .html; pictures: {len(pictures)}.')
