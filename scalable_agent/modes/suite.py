# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Suite mode: trains and tests levels x seeds, and writes a report.

Every run of a suite has a directory LEVEL/seedN below `--logdir`, and is a
program of its own, which ends if the suite ends. The same command resumes a
suite that was stopped or killed: finished runs are not run again.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess

from absl import flags
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.modes import running
from scalable_agent.modes import suite_plans
from scalable_agent.modes import suite_report
from scalable_agent.processes import programs
from scalable_agent.processes import signals
from scalable_agent.runs import logdirs
from scalable_agent.scores import comparing
from scalable_agent.scores import files as score_files
from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import table
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files
from scalable_agent.settings import values
from scalable_agent.settings.suite_settings import OF_SUITES

_POLL_S = 0.2
_TEST_FLAGS = ('--test_num_episodes=30',)

Parse = Callable[[Sequence[str]], config_lib.Config]


@dataclasses.dataclass(frozen=True)
class Cell:
  """One training run of a suite.

  Attributes:
    directory: the run's `--logdir`.
    flags: the flags of the run.
    num_env_frames: the frames of the whole training.
    num_games: the games of a test.
  """
  level: str
  seed: int
  directory: pathlib.Path
  flags: tuple[str, ...]
  num_env_frames: int
  num_games: int

  def __str__(self) -> str:
    return f'{self.level}, seed {self.seed}'

  def tested(self) -> table.Run | None:
    """Returns the test of the finished training; None without such a test."""
    try:
      run = score_files.read(str(self.directory), self.num_games)
    except errors.ConfigError:
      return None
    return run if run.num_env_frames >= self.num_env_frames else None


def run(config: config_lib.Config, flag_values: flags.FlagValues,
        parse: Parse) -> int:
  """Runs what is left of a suite; returns the program's exit code.

  Args:
    config: the settings of the suite.
    flag_values: the flags of the command line, which all runs get.
    parse: makes settings of flags.

  Raises:
    ConfigError: a flag is wrong, or `--logdir` holds another suite.
  """
  if flag_values['recipe'].value:
    raise errors.ConfigError(
        f'--recipe={flag_values["recipe"].value} cannot be used with '
        '--mode=suite: each level of a suite has a recipe. Name single flags '
        'to change all runs. For a level without a suite, start a run for each '
        '--seed, and join their tests with --mode=table --logdir=A,B,C.')
  given = {name: flag_values[name].serialize()
           for name in config_lib.Config.__dataclass_fields__
           if flag_values[name].present and name not in OF_SUITES}
  cells = list(_cells(config, given, parse))
  with logdirs.locked(config.logdir), signals.stop_on_signals(
      signals.Stop('the checkpoints of the runs')) as stop:
    flags_by_level = _check_same(config, cells)
    # An error comes now, and not after all runs.
    list(_known_cells(config, flags_by_level, parse))
    failures = _run_all(cells, config.jobs, stop)
    for failure in failures:
      print(f'Failed: {failure}', flush=True)
    if stop.is_set():
      print('Stopped. The same command resumes the suite.', flush=True)
      return 0
    known = list(_known_cells(config, flags_by_level, parse))
    finished = {str(cell): found for cell in known
                if (found := cell.tested())}
    if not finished:
      print('No run of the suite has finished.', flush=True)
      return 1
    num_levels = len(flags_by_level)
    num_seeds = max([config.seeds, *(cell.seed for cell in known)])
    title = (f'Suite {config.suite}: '
             f'{num_levels} level{"s" * (num_levels != 1)}, '
             f'{num_seeds} seed{"s" * (num_seeds != 1)},')
    suite_report.write(
        pathlib.Path(config.logdir), title, config.suite, finished, failures,
        comparing.remarks_on_missing(flags_by_level, finished.values()),
        config.plot_num_episodes)
  return 1 if failures else 0


def _cells(config: config_lib.Config, given: Mapping[str, str],
           parse: Parse) -> Iterator[Cell]:
  """Yields the runs, all seeds of a level at a time; checks their flags.

  A `--level_name` names the levels of the suite that are run.
  """
  if 'seed' in given:
    raise errors.ConfigError(
        f'{given["seed"]} cannot be used with --mode=suite: runs have seeds '
        '1 to --seeds.')
  plan = suite_plans.flags_by_level(config.suite)
  levels = values.names(given.get('level_name', '').partition('=')[2])
  common = [text for name, text in given.items() if name != 'level_name']
  for level in levels:
    if level not in plan:
      raise errors.ConfigError(
          f'{level} is no level of --suite={config.suite}, which has '
          f'{", ".join(plan)}. For other levels, start a run for each --seed, '
          'and join their tests with --mode=table --logdir=A,B,C.')
  for level in dict.fromkeys(levels or plan):
    of_level = (*plan[level], *_TEST_FLAGS, *common, f'--level_name={level}')
    for seed in range(1, config.seeds + 1):
      directory = _directory(config, level) / f'seed{seed}'
      of_run = (*of_level, f'--seed={seed}', f'--logdir={directory}')
      try:
        settings = parse(of_run)
      except errors.ConfigError as e:
        raise errors.ConfigError(
            _refusal(config, level, common, e, parse)) from e
      if seed == 1:
        environments.check_names(
            levels_lib.level_names(level, settings.is_test), settings)
      yield Cell(level, seed, directory, of_run,
                 settings.total_environment_frames, settings.test_num_episodes)


def _refusal(config: config_lib.Config, level: str, common: Sequence[str],
             error: errors.ConfigError, parse: Parse) -> str:
  """Returns the text of an error of a level with the flags of a suite."""
  fitting = []
  for other, of_plan in suite_plans.flags_by_level(config.suite).items():
    with contextlib.suppress(errors.ConfigError):
      parse((*of_plan, *common, f'--level_name={other}'))
      fitting.append(other)
  or_levels = fitting and (
      f', or only levels that take these: --level_name={",".join(fitting)}')
  # Suites do not take other recipes.
  reason = str(error).partition(' Recipes for ')[0].removesuffix('.')
  return (f'{level} of --suite={config.suite} does not take '
          f'{" ".join(common)}: {reason}. Use other flags{or_levels or ""}.')


def _directory(config: config_lib.Config, level: str) -> pathlib.Path:
  return pathlib.Path(config.logdir).absolute() / comparing.directory_of(level)


def _known_cells(config: config_lib.Config,
                 flags_by_level: Mapping[str, Sequence[str]],
                 parse: Parse) -> Iterator[Cell]:
  """Yields the runs in the directory, also runs of earlier commands.

  Raises ConfigError if this version does not know a flag of an earlier command.
  """
  for level, of_level in flags_by_level.items():
    try:
      settings = parse(of_level)
    except (flags.Error, errors.ConfigError) as e:
      raise errors.ConfigError(
          f'The flags of {level} in {comparing.SUITE_FILE} of '
          f'--logdir={config.logdir} are not those of this version: '
          f'{str(e).removesuffix(".")}. Use another --logdir.') from e
    seeds = [int(path.name[4:])
             for path in _directory(config, level).glob('seed*')
             if path.name[4:].isdecimal()]
    for seed in sorted(seeds):
      yield Cell(level, seed, _directory(config, level) / f'seed{seed}',
                 tuple(of_level), settings.total_environment_frames,
                 settings.test_num_episodes)


def _check_same(config: config_lib.Config,
                cells: Sequence[Cell]) -> dict[str, list[str]]:
  """Checks that earlier runs in the directory had the same levels and flags.

  Returns the flags of each level of the suite, of earlier commands and of now.
  """
  path = os.path.join(config.logdir, comparing.SUITE_FILE)
  suite = config.suite
  flags_before: dict[str, list[str]] = {}
  if os.path.exists(path):
    suite, flags_before = comparing.read_suite(config.logdir)
    # Earlier versions counted more flags as flags of runs.
    flags_before = {
        level: [flag for flag in flags
                if flag[2:].partition('=')[0] not in OF_SUITES]
        for level, flags in flags_before.items()}
  elif config_lib.trained_with(config.logdir):
    raise errors.ConfigError(
        f'--logdir={config.logdir} holds a run, and a suite needs a directory '
        'of its own: use another --logdir.')
  if suite != config.suite:
    raise errors.ConfigError(
        f'--logdir={config.logdir} holds runs of other levels, of --suite='
        f'{suite}: use another --logdir.')
  now = {cell.level: list(cell.flags[:-2]) for cell in cells}
  common = _common(now[cells[0].level])
  # Flags that no run has taken may have been wrong.
  if any((now.get(level, flags) != flags or _common(flags) != common)
         and any(_directory(config, level).glob('seed*/settings.json'))
         for level, flags in flags_before.items()):
    raise errors.ConfigError(
        f'--logdir={config.logdir} holds runs with other flags, see {path}: '
        'give the same flags, or use another --logdir.')
  flags_by_level = flags_before | now
  files.write(path, json.dumps(
      {'suite': suite, 'flags': flags_by_level}, indent=1))
  return flags_by_level


def _common(of_level: Sequence[str]) -> list[str]:
  """Returns the flags that all levels have, of the flags of a level."""
  # `_cells` has the order: those of the plan, of tests, of the user, the level.
  return list(itertools.dropwhile(
      lambda flag: flag not in _TEST_FLAGS, of_level))[:-1]


def _run_all(cells: Sequence[Cell], jobs: int,
             stop: signals.Stop) -> list[str]:
  """Runs all cells without a test; returns a line for each failure."""
  left = collections.deque(
      (cell, 'train') for cell in cells if not cell.tested())
  print(f'Finished runs: {len(cells) - len(left)} of {len(cells)}.', flush=True)
  failures = []

  def start(run: tuple[Cell, str]) -> subprocess.Popen | None:
    cell, mode = run
    try:
      running.wait_until_unlocked(cell.directory, stop.wait)
      return None if stop.is_set() else _start(cell, mode)
    except (errors.CheckpointError, OSError) as e:
      failures.append(f'{cell}, {mode}: {e}')
      return None

  with contextlib.closing(running.ends(
      left, jobs, start, _POLL_S, wait=stop.wait)) as ends:
    for (cell, mode), code, num_left in ends:
      if stop.is_set():
        break
      if code or mode == 'test':
        failures += _ended(cell, mode, code, num_left)
      elif running.is_at_end(programs.output(cell.directory)):
        left.appendleft((cell, 'test'))
      else:
        failures.append(f'{cell}, {mode}: it was stopped.')
  return failures


def _start(cell: Cell, mode: str) -> subprocess.Popen:
  print(f'{cell}: {mode}.', flush=True)
  # Test mode takes all other settings from the training.
  of_mode = cell.flags[:-1] if mode == 'train' else ()
  return running.start([f'--mode={mode}', *of_mode], cell.directory)


def _ended(cell: Cell, mode: str, code: int | None, num_left: int) -> list[str]:
  """Prints the end of a run; returns its failure, if any."""
  if code:
    words = programs.last_words(cell.directory)
    return [f'{cell}, {mode}: {words} (exit code {code}; {cell.directory}/'
            'log.txt)']
  found = cell.tested()
  if found is None:
    return [f'{cell}: there is no whole test of the whole training.']
  print(f'{cell}: mean return {found.rows[0].mean:,.2f} at '
        f'{found.num_env_frames:,} frames; runs to go: {num_left}.', flush=True)
  return []
