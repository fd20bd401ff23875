# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Reads tests that `scores.files` has written."""

import glob
import operator
import os
import re
from typing import Any

from scalable_agent import errors
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files as whole_files

# Name of a file with the levels and flags of a suite.
SUITE_FILE = 'suite.json'
_NAME = re.compile(r'scores-(\d+)-(\d+)\.json')


def read_all(path: str) -> list[score_table.Run]:
  """Returns the test in a file or directory, or all tests of a suite."""
  if not os.path.exists(os.path.join(path, SUITE_FILE)):
    return [read(path)]
  directories = {os.path.dirname(found) for found in glob.glob(os.path.join(
      glob.escape(path), '*', 'seed*', 'scores-*.json'))}
  finished = [run for run in map(read, sorted(directories))
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


def read(path: str) -> score_table.Run:
  """Reads the test of an agent from a JSON file, or from a directory.

  In a directory, the latest test after the most frames counts. Raises
  ConfigError if there is no table, or the table cannot be read.
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
    latest = max(found, key=lambda match: tuple(map(int, match.groups())))
    path = os.path.join(path, latest[0])
  try:
    [agent] = whole_files.read_json(path)['agents']
    settings, trained_with = (
        values and config_lib.Config.from_saved(values)
        for values in (agent['settings'], agent['trained_with']))
    if not (settings and agent['levels']):
      raise ValueError('it has no settings or no levels')
    return score_table.Run(
        settings, operator.index(agent['num_env_frames']), trained_with or None,
        tuple(_read_row(level) for level in agent['levels']),
        os.path.splitext(path)[0])
  except (OSError, LookupError, TypeError, ValueError) as e:
    raise errors.ConfigError(
        f'{path} cannot be read as the test of an agent: {e}. Name another '
        'file, --logdir=DIRECTORY/scores-N-M.json, or test again.') from e


def _read_row(level: dict[str, Any]) -> score_table.Row:
  if not isinstance(level['level'], str) or not level['returns']:
    raise ValueError('a level has no name or no returns')
  return score_table.make_row(
      level['level'], level['returns'],
      operator.index(level.get('num_cut', 0)))  # Missing in older tables.
