# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Searches for good settings: random search with successive halving.

  python -m scalable_agent.modes.sweep --out=DIRECTORY --num_trials=12 \\
      --rungs=1000000,3000000,8000000 --keep=3 [--jobs=1] \\
      --search=learning_rate=0.0003,0.0006,0.001 \\
      --search=entropy_cost=0.001,0.003,0.01 [-- FLAGS]

A trial is a run of experiment.py with FLAGS and one value, drawn at random, of
each setting of --search. All trials run to the first number of environment
frames of --rungs. The best of every --keep trials continues to the second
number, and so on. A score is the mean return of the last 100 training episodes.

Every trial keeps its settings and its curve in a --logdir below --out. A sweep
that was cut off is resumed by the same command, also with more trials. A trial
ends if its run fails, or if no episode has ended for 15 minutes; the next call
tries the trial again. The schedules of a run, such as the learning rate, end at
--total_environment_frames: the last of the rungs, unless FLAGS name another
number.

Ends with 1 if a trial has failed. Writes sweep.csv, sweep.md and sweep.png.
Frames per second are those of the whole run while other programs may have run,
too: see the load. Compare trials by frames, and speeds only on an idle machine.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.modes import running
from scalable_agent.processes import console
from scalable_agent.processes import programs
from scalable_agent.processes import starts
from scalable_agent.runs import logdirs
from scalable_agent.scores import markdown
from scalable_agent.settings import files

_POLL_S = 5.0
# A trial in which no episode ends for so long hangs.
_HANG_S = 900.
_MAX_CURVES_IN_LEGEND = 8
_MAX_LISTED = 10**6  # Choices, in memory.


class Trial(NamedTuple):
  """One choice of settings.

  Attributes:
    number: names its directory.
    settings: values by name.
  """
  number: int
  settings: tuple[tuple[str, str], ...]

  def directory(self, out: pathlib.Path) -> pathlib.Path:
    return out / f'trial{self.number:03d}'

  def flags(self, common: list[str]) -> list[str]:
    return [*common, *(f'--{name}={value}' for name, value in self.settings)]

  def __str__(self) -> str:
    return ' '.join(f'{name}={value}' for name, value in self.settings)


def draw(space: dict[str, list[str]], num_trials: int,
         seed: int) -> list[Trial]:
  """Returns different choices from a space; at most the whole space.

  The first n choices do not depend on `num_trials`. `space` has the values of
  each setting.
  """
  sizes = [len(values) for values in space.values()]
  rng = np.random.default_rng(seed)
  drawn: dict[tuple[int, ...], None] = {}  # In order.
  if math.prod(sizes) <= _MAX_LISTED:
    order = rng.permutation(math.prod(sizes))[:num_trials]
    drawn = dict.fromkeys(zip(*np.unravel_index(order, sizes)))
  while len(drawn) < min(num_trials, math.prod(sizes)):
    drawn[tuple(rng.integers(sizes).tolist())] = None
  return [Trial(number, tuple(
      (name, space[name][choice]) for name, choice in zip(space, point)))
          for number, point in enumerate(drawn)]


def survivors(scores: dict[Trial, float], keep: int) -> list[Trial]:
  """Returns the best one in `keep` (at least one) of trials, best first."""
  ranked = sorted(scores, key=lambda trial: -scores[trial])
  return ranked[:math.ceil(len(ranked) / keep)]


class Sweep:
  """Runs trials below a directory, `jobs` at a time."""

  def __init__(self, out: pathlib.Path, common: list[str], jobs: int):
    self._out = out
    self._common = common
    self._jobs = jobs
    self.failed: dict[Trial, str] = {}  # Why.

  def episodes(self, trial: Trial) -> np.ndarray:
    return running.episodes(trial.directory(self._out))

  def run(self, trials: list[Trial], rung: int) -> dict[Trial, float]:
    """Runs trials to a number of frames; returns scores, without failures."""
    waiting = collections.deque(t for t in trials if not self.is_at(t, rung))
    with contextlib.closing(running.ends(
        waiting, self._jobs, self._start, _POLL_S,
        is_over=lambda t: self.is_at(t, rung) or self._has_hung(t))) as ends:
      for trial, code, num_left in ends:
        output = programs.output(trial.directory(self._out))
        if code == 0 and running.is_at_end(output):
          self._end(trial).touch()
        elif code == 0:
          self.failed[trial] = 'it was stopped'
        elif code is not None:
          self.failed[trial] = programs.last_words(trial.directory(self._out))
        elif not self.is_at(trial, rung):
          is_there = trial.directory(self._out).exists()
          self.failed[trial] = (f'no episode has ended for {_HANG_S:.0f} s'
                                if is_there else 'its directory was deleted')
        self._say(trial, rung, num_left)
    return {trial: running.score(self.episodes(trial), rung) for trial in trials
            if trial not in self.failed}

  def check_flags(self, trials: list[Trial]) -> None:
    """Raises ConfigError if the directory of a trial has other flags."""
    for trial in trials:
      path = trial.directory(self._out) / 'flags.json'
      flags = json.dumps(trial.flags(self._common))
      of_run = {f.name for f in path.parent.glob('*')} - {
          'flags.json', 'log.txt'}  # None if a flag was wrong.
      if of_run and path.exists() and path.read_text() != flags:
        raise errors.ConfigError(
            f'{path.parent} was run with other flags: use another --out.')

  def _start(self, trial: Trial) -> subprocess.Popen | None:
    directory, flags = trial.directory(self._out), trial.flags(self._common)
    try:
      directory.mkdir(parents=True, exist_ok=True)
      files.write(str(directory / 'flags.json'), json.dumps(flags))
      running.wait_until_unlocked(directory)
      return running.start(flags, directory)
    except (errors.CheckpointError, OSError) as e:
      self.failed[trial] = str(e)
      print(f'{directory.name}: failed: {e}', flush=True)
      return None

  def is_at(self, trial: Trial, rung: int) -> bool:
    """Whether a trial was run to a number of frames, or to its own end."""
    return self._end(trial).exists() or (
        running.num_env_frames(trial.directory(self._out)) >= rung)

  def _has_hung(self, trial: Trial) -> bool:
    # The flags are written at the start of a trial.
    paths = [trial.directory(self._out) / name
             for name in ('flags.json', 'episodes.csv')]
    last_s = max((path.stat().st_mtime for path in paths if path.exists()),
                 default=-math.inf)  # The directory was deleted.
    return time.time() - last_s > _HANG_S

  def _end(self, trial: Trial) -> pathlib.Path:
    return trial.directory(self._out) / 'finished'

  def _say(self, trial: Trial, rung: int, num_left: int) -> None:
    result = (f'failed: {self.failed[trial]}' if trial in self.failed
              else f'{running.score(self.episodes(trial), rung):.2f}')
    print(f'{trial.directory(self._out).name} at {rung:,} frames: {result} '
          f'({trial}), {num_left} to go', flush=True)


def halve(sweep: Sweep, trials: list[Trial], rungs: list[int],
          keep: int) -> None:
  """Runs all trials to the first rung, and the best of each to the next."""
  for rung in rungs:
    trials = survivors(sweep.run(trials, rung), keep)


def rows(trials: list[Trial], sweep: Sweep,
         rungs: list[int]) -> list[dict[str, object]]:
  """Returns the results of each trial that has begun, the best first."""
  result = []
  for trial in trials:
    episodes = sweep.episodes(trial)
    if not len(episodes):
      continue
    frames, seconds, _ = episodes[-1]
    result.append({
        'trial': trial.number, **dict(trial.settings),
        **{f'score at {rung}': (
            round(running.score(episodes, rung), 2)
            if sweep.is_at(trial, rung) else '')
           for rung in rungs},
        'last score': round(running.score(episodes), 2), 'frames': int(frames),
        'minutes': round(seconds / 60, 1),
        'frames/s': round(frames / max(seconds, 1e-9))})

  def rank(row: dict) -> tuple[int, float]:
    scores = [s for rung in rungs if (s := row[f'score at {rung}']) != '']
    # At the same frames. The frames after this number are chance.
    return -len(scores), -(scores[-1] if scores else row['last score'])

  return sorted(result, key=rank)


def plot(trials: list[Trial], sweep: Sweep, path: pathlib.Path) -> None:
  """Draws the means of 100 returns over frames; names the best trials."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot as plt
  figure, axis = plt.subplots(figsize=(9, 5), layout='tight')
  curves = [(trial, e) for trial in trials
            if len(e := sweep.episodes(trial)) >= running.NUM_EPISODES]
  curves.sort(key=lambda curve: -running.score(curve[1]))
  for rank, (trial, episodes) in enumerate(curves):
    is_named = rank < _MAX_CURVES_IN_LEGEND
    axis.plot(episodes[:, 0] / 1e6, running.means(episodes[:, 2]),
              label=f'{trial.number}: {trial}' if is_named else None,
              color=None if is_named else 'lightgrey', zorder=-rank)
  axis.set_xlabel('million environment frames')
  axis.set_ylabel(f'mean return of {running.NUM_EPISODES} episodes of training')
  axis.grid(alpha=0.3)
  if curves:
    axis.legend(fontsize='xx-small', loc='upper left')
  figure.savefig(path, dpi=110)
  plt.close(figure)


def report(trials: list[Trial], sweep: Sweep, rungs: list[int],
           out: pathlib.Path) -> None:
  """Writes the files about the trials so far, and prints the table."""
  table = rows(trials, sweep, rungs)
  if not table:
    print('No trial has finished an episode.')
    return
  text = markdown.table([
      list(table[0]), *(list(map(str, row.values())) for row in table)])
  load = ', '.join(f'{x:.1f}' for x in os.getloadavg())
  text += (f'\n\nLoad at the end: {load} (1, 5, 15 minutes) on '
           f'{starts.num_cores()} cores.\n')
  print(text, end='')
  try:
    files.write_csv(str(out / 'sweep.csv'), table[0], table)
    files.write(str(out / 'sweep.md'), text)
    plot(trials, sweep, out / 'sweep.png')
  except OSError as e:
    print(f'The report cannot be written to {out}: {errors.reason(e)}.')
  except ImportError:
    print('For a picture: pip install "scalable_agent[plot]".')


def parse_space(values: list[str]) -> dict[str, list[str]]:
  """Returns the values by setting of `NAME=A,B,..` or `NAME=A;B;..`.

  Raises ValueError for another form, or a name or a value that is there twice.
  """
  space: dict[str, list[str]] = {}
  for value in values:
    name, equals, choices = value.partition('=')
    found = choices.split(';' if ';' in choices else ',')
    if not (name and equals and all(found)):
      raise ValueError(f'--search={value} is not of the form NAME=A,B,C.')
    if name in space:
      raise ValueError(f'--search={name}=... is there twice.')
    space[name] = found
    if len(set(found)) < len(found):
      raise ValueError(f'--search={value} has a value twice; or use "A,B;C".')
  return space


def parse_rungs(text: str) -> list[int]:
  """Returns numbers of frames, the smallest first; raises ValueError."""
  rungs = text.split(',')
  if not all(rung.isdecimal() and int(rung) for rung in rungs):
    raise ValueError(f'--rungs={text} must be positive whole numbers, such as '
                     '1000000,3000000.')
  return sorted(map(int, rungs))


def main() -> int:
  parser = argparse.ArgumentParser(
      prog='python -m scalable_agent.modes.sweep',
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path,
                      metavar='DIRECTORY', help='Directory of all trials.')
  parser.add_argument('--search', action='append', required=True,
                      metavar='NAME=A,B,C',
                      help='A setting and its values. May be repeated. Values '
                      'that contain commas: "NAME=A,B;C,D", with quotes.')
  parser.add_argument('--num_trials', type=int, default=12, metavar='NUMBER',
                      help='Number of trials. Default: %(default)s.')
  parser.add_argument('--rungs', required=True, metavar='FRAMES,FRAMES',
                      help='Numbers of environment frames.')
  parser.add_argument('--keep', type=int, default=3, metavar='NUMBER',
                      help='The best of every so many trials continues to the '
                      'next number of --rungs. Default: %(default)s.')
  parser.add_argument('--jobs', type=int, default=1, metavar='NUMBER',
                      help='Trials that run at a time. Default: %(default)s.')
  parser.add_argument('--seed', type=int, default=1, metavar='NUMBER',
                      help='Seed of the draw. Default: %(default)s.')
  parser.add_argument('flags', nargs='*', metavar='FLAGS',
                      help='Flags of experiment.py for all trials, after --.')
  args = parser.parse_args()
  try:
    space = parse_space(args.search)
    rungs = parse_rungs(args.rungs)
    args.out.mkdir(parents=True, exist_ok=True)
  except ValueError as e:
    parser.error(str(e))
  except OSError as e:
    parser.error(f'--out={args.out} cannot be written: {e.strerror}.')
  if args.keep < 2 or args.jobs < 1 or args.num_trials < 1 or args.seed < 0:
    parser.error('The least are --keep=2, --jobs=1, --num_trials=1, --seed=0.')
  for number in signal.SIGTERM, signal.SIGINT:  # `finally` stops all programs.
    signal.signal(number, lambda *_: sys.exit(1))
  console.survive_lost_output()
  trials = draw(space, args.num_trials, args.seed)
  names = {flag.lstrip('-').partition('=')[0] for flag in args.flags}
  if 'logdir' in names:
    parser.error('--logdir: each trial has a directory of its own, in --out.')
  if 'total_environment_frames' not in names:  # Also after a --flagfile.
    args.flags.append(f'--total_environment_frames={rungs[-1]}')
  try:
    sweep = Sweep(args.out.absolute(), running.in_full(args.flags), args.jobs)
    with logdirs.locked(str(args.out)):
      # Before the report, which would replace that of the other flags.
      sweep.check_flags(trials)
      try:
        halve(sweep, trials, rungs, args.keep)
      finally:
        report(trials, sweep, rungs, args.out)
  except errors.ConfigError as e:
    parser.error(str(e).replace('--logdir', '--out'))
  if sweep.failed:
    print(f'{len(sweep.failed)} of {len(trials)} trials failed.')
  return int(bool(sweep.failed))


if __name__ == '__main__':
  sys.exit(main())
