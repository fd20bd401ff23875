# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Table mode: tests of several agents or suites as one table."""

import glob
import os

from scalable_agent import errors
from scalable_agent.scores import files
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib

# Name of a file with the levels and flags of a suite.
SUITE_FILE = 'suite.json'


def compare(config: config_lib.Config) -> int:
  """Prints and writes the tests of several agents as one table.

  The paper's experts are one agent for each game, so numbers over all games
  need such a table. `logdir=A,B,C` names files of tests, directories with
  tests, of which the latest test counts, or directories of suites. Returns the
  program's exit code.

  Raises:
    ConfigError: a test is missing or cannot be read, or suites have different
      levels.
    SaveError: the table cannot be written.
  """
  table = score_table.make_table(
      [run for path in config.logdirs for run in _read_all(path)])
  levels: dict[str, set[str]] = {}
  for run in table.runs:
    levels.setdefault(run.group, set()).update(row.level for row in run.rows)
  levels.pop('', None)
  if any(found != next(iter(levels.values())) for found in levels.values()):
    raise errors.ConfigError(
        f'{" and ".join(levels)} hold runs of different levels, which cannot '
        'be compared. Name suites of the same levels.')
  print(files.to_markdown(table))
  logdir = os.path.dirname(table.runs[0].source)
  try:
    path = files.reserve_path(logdir, f'{len(table.runs)}_agents')
    files.write(table, path)
  except OSError as e:
    raise errors.SaveError(
        f'{logdir} could not be written: {e.strerror}.') from e
  print(f'Wrote {path}.json, .csv and .md.')
  return 0


def _read_all(path: str) -> list[score_table.Run]:
  """Returns the test in a file or directory, or all tests of a suite."""
  if not os.path.exists(os.path.join(path, SUITE_FILE)):
    return [files.read(path)]
  directories = {os.path.dirname(found) for found in glob.glob(os.path.join(
      glob.escape(path), '*', 'seed*', 'scores-*.json'))
                 if os.path.getsize(found)}  # A failed write: an empty file.
  finished = [run for run in map(files.read, sorted(directories))
              if _is_finished(run)]
  if not finished:
    raise errors.ConfigError(
        f'--logdir={path} holds no finished run of the suite. Run the suite '
        'first: --mode=suite.')
  return [run._replace(group=path) for run in finished]


def _is_finished(run: score_table.Run) -> bool:
  """Whether the test is one of a whole training; if not, prints that."""
  if run.trained_with is None:
    return True
  num_frames = run.trained_with.total_environment_frames
  if run.num_env_frames < num_frames:
    print(f'{os.path.dirname(run.source)} is left out: '
          f'{run.num_env_frames:,} of {num_frames:,} frames were trained.')
  return run.num_env_frames >= num_frames
