# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Table mode and plot mode: one table or picture of several runs or suites."""

from collections.abc import Iterable, Sequence
import glob
import os
import pathlib

from scalable_agent import errors
from scalable_agent.scores import files
from scalable_agent.scores import plotting
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files as settings_files

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
  found = [(path, _read_all(path)) for path in config.logdirs]
  table = score_table.make_table([run for _, runs in found for run in runs])
  levels: dict[str, set[str]] = {}
  for run in table.runs:
    levels.setdefault(run.group, set()).update(row.level for row in run.rows)
  levels.pop('', None)
  common = set.intersection(*levels.values()) if levels else set()
  others = sorted(set().union(*levels.values()) - common)
  if others:
    raise errors.ConfigError(
        f'{" and ".join(levels)} have finished runs of different levels, which '
        f'cannot be compared: not all have {", ".join(others)}. Name suites '
        'of the same levels, or finish the suites first.')
  table = table._replace(remarks=(
      *(f'{path}: {remark}' for path, runs in found if _is_suite(path)
        for remark in remarks_on_missing(read_suite(path)[1], runs)),
      *table.remarks))
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


def plot(config: config_lib.Config) -> int:
  """Draws the runs or suites of `--logdir=A,B,C`; returns the exit code.

  Raises ConfigError as `plotting.write_pictures` does, or if a suite has no
  finished run.
  """
  # Two names: a comparison must not replace the picture of a run.
  name = 'learning_curves' + ('_compared' if len(config.logdirs) > 1 else '')
  path = config.plot_file or config.logdirs[0]
  if not config.plot_file or os.path.isdir(path) or path.endswith(os.sep):
    path = os.path.join(path, name)
  # Otherwise matplotlib adds an extension, and the path printed is wrong.
  if os.path.splitext(path)[1] in ('', '.'):
    path = f'{path.rstrip(".")}.png'
  groups = {logdir: group for path in config.logdirs
            for logdir, group in _drawn(path).items()}
  names = labels(list(groups))
  for written in plotting.write_pictures(
      dict(zip(names, groups)), path, config.plot_num_episodes,
      dict(zip(names, groups.values()))):
    print(f'Wrote {written}.')
  return 0


def labels(logdirs: Sequence[str]) -> list[str]:
  """Returns the ends of paths, of as many parts as tell all paths apart."""
  parts = [os.path.abspath(path).split(os.sep) for path in logdirs]
  for size in range(1, max(map(len, parts)) + 1):
    names = [os.path.join(*part[-size:]) for part in parts]
    if len(set(names)) == len(names):
      # matplotlib shows no label that begins with `_`.
      return [f' {name}' if name.startswith('_') else name for name in names]
  return list(logdirs)


def _drawn(path: str) -> dict[str, str]:
  """Returns the group by directory, of a run or of all runs of a suite."""
  if not _is_suite(path):
    return {path: ''}
  groups = {os.path.dirname(run.source): run.group for run in _read_all(path)}
  drawn = plotting.with_curves({logdir: logdir for logdir in groups})
  return {logdir: groups[logdir] for logdir in drawn} or groups


def read_suite(logdir: str) -> tuple[str, dict[str, list[str]]]:
  """Returns the name of the suite in a directory, and the flags of each level.

  Raises ConfigError if the file cannot be read.
  """
  path = os.path.join(logdir, SUITE_FILE)
  try:
    saved = settings_files.read_json(path)
    return saved['suite'], dict(saved['flags'])
  except (OSError, LookupError, TypeError, ValueError) as e:
    raise errors.ConfigError(f'{path} cannot be read: {e}. Use another '
                             '--logdir.') from e


def _is_suite(path: str) -> bool:
  return os.path.exists(os.path.join(path, SUITE_FILE))


def _read_all(path: str) -> list[score_table.Run]:
  """Returns the test in a file or directory, or all tests of a suite."""
  if not _is_suite(path):
    return [files.read(path)]
  directories = {os.path.dirname(found) for found in glob.glob(os.path.join(
      glob.escape(path), '*', 'seed*', 'scores-*.json'))
                 if os.path.getsize(found)}  # A failed write: an empty file.
  finished = [run for directory in sorted(directories)
              for run in _read_finished(directory)]
  if not finished:
    raise errors.ConfigError(
        f'--logdir={path} holds no finished run of the suite. Run the suite '
        'first: --mode=suite.')
  return [run._replace(group=path) for run in finished]


def directory_of(level: str) -> str:
  """Returns the name of the directory with the runs of a suite's level."""
  return level.replace('/', '_')


def remarks_on_missing(levels: Iterable[str],
                       finished: Iterable[score_table.Run]) -> list[str]:
  """Returns a sentence about levels of a suite without a finished run."""
  directories = {pathlib.Path(run.source).parts[-3] for run in finished}
  missing = [level for level in levels
             if directory_of(level) not in directories]
  return [f'No finished run of {", ".join(missing)}: numbers over levels are '
          'those of the other levels.'] if missing else []


def _read_finished(directory: str) -> list[score_table.Run]:
  """Returns the test of a run of a suite; prints why, if there is none."""
  run = files.read(directory)
  if run.trained_with is None:
    return [run]
  num_frames = run.trained_with.total_environment_frames
  try:
    run = files.read(directory, run.trained_with.test_num_episodes)
  except errors.ConfigError as e:
    print(f'{directory} is left out: {e}')
    return []
  if run.num_env_frames < num_frames:
    print(f'{directory} is left out: {run.num_env_frames:,} of {num_frames:,} '
          'frames were trained before the test.')
    return []
  return [run]
