# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures the minutes of training until an agent plays an Atari game well.

  python benchmarks/time_to_score.py --out=DIRECTORY --game=pong --mark=18 \\
      [--programs=ours,zoo_ppo] [--seeds=3] [--limit_min=60] [--to_limit]
  python benchmarks/time_to_score.py --out=DIRECTORY --game=breakout --mark=100

`ours` is the recipe appo_GAME, and `ours_impala` the recipe GAME_two_cores. The
peers have the settings that their own projects publish for Atari games:
sample-factory's atari_params.py and the "better parameters" of its documents,
and rl-baselines3-zoo's A2C and PPO. Our settings were chosen for two cores and
these games, the peers' settings were not. Peers of the zoo have two threads
also on a larger machine, sample-factory has the processes of its settings. All
programs play our games, see benchmarks/peers/pong.py. A lost life ends an
episode for all programs. FIRE is pressed for no program, unlike in the peers'
own games.

The score is the mean return of the last 100 games of training, as the agent
plays while learning. A mark is reached when that mean first reaches the mark,
and held when the mean has stayed there for another 100 games. Then a run ends,
except with --to_limit. A run without the mark ends after --limit_min, and a
program of ours at the frames of its recipe. The clock of all programs starts
with the program: imports and compilation count.

The programs take turns, seed by seed. Each run is a line of results.csv, and
its games are in a file of their own. A run in results.csv is not made again,
even with another limit; a run that was cut off or failed starts again.
"Others" is the number of cores that other programs took; if this number is not
near 0, the minutes are not valid. Draws GAME-MARK.png: all runs over minutes
and over frames.
"""

import argparse
import contextlib
import csv
import functools
import json
import os
import pathlib
import shutil
import signal
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np
import psutil

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
import peers
from scalable_agent.modes import running
import venvs

_CORES = len(os.sched_getaffinity(0))
_POLL_S = 1.0
_FRAMES_PER_STEP = 4
_FIELDS = ('program', 'game', 'seed', 'mark', 'minutes_to_mark',
           'frames_to_mark', 'minutes_held', 'frames_held', 'last_mean',
           'minutes', 'frames', 'games', 'others', 'settings', 'error')
# A run in which no game ends for so long hangs.
_HANG_S = 900.
_SAMPLE_FACTORY = ('sample-factory==2.1.1', 'ale-py==0.12.1')
_SB3 = ('stable-baselines3==2.9.2', 'ale-py==0.12.1', 'opencv-python-headless')


class Peer(NamedTuple):
  """A program that trains with its own settings.

  Attributes:
    title: for tables.
    worker: file in benchmarks/peers.
    venv: name of its virtual environment.
    requirements: for pip, beside PyTorch.
    settings: for the worker.
  """
  title: str
  worker: str
  venv: str
  requirements: tuple
  settings: dict


_PEERS = {
    'sample_factory': Peer(
        'sample-factory, its Atari settings', 'appo_atari.py',
        'sample_factory', _SAMPLE_FACTORY, {'flags': []}),
    'sample_factory_fast': Peer(
        'sample-factory, the "better parameters" of its documents',
        'appo_atari.py', 'sample_factory', _SAMPLE_FACTORY, {'flags': [
            '--num_workers=16', '--num_envs_per_worker=8',
            '--worker_num_splits=2', '--rollout=32', '--batch_size=1024',
            '--normalize_input=True', '--normalize_returns=True',
            '--serial_mode=False', '--async_rl=True',
            '--summaries_use_frameskip=False',
            '--train_for_env_steps=100000000']}),
    'zoo_ppo': Peer("rl-baselines3-zoo's PPO", 'zoo.py', 'sb3', _SB3,
                    {'algorithm': 'ppo'}),
    'zoo_a2c': Peer("rl-baselines3-zoo's A2C", 'zoo.py', 'sb3', _SB3,
                    {'algorithm': 'a2c'}),
}
# Our recipes; {} is the game.
_OURS = {'ours': 'appo_{}', 'ours_impala': '{}_two_cores'}
_PROGRAMS = (*_OURS, *_PEERS)


class Games(NamedTuple):
  """All games of a run, in the order of their ends.

  Attributes:
    minutes: float64 `[N]`, since the start of the program.
    frames: float64 `[N]`, environment frames until then.
    returns: float64 `[N]`.
  """
  minutes: np.ndarray
  frames: np.ndarray
  returns: np.ndarray

  def means(self) -> np.ndarray:
    """Returns the mean of the last 100 games at each game, NaN before."""
    return running.means(self.returns)


def reached(means: np.ndarray, mark: float) -> int | None:
  """Returns the first game at which the mean is at the mark."""
  at = np.flatnonzero(means >= mark)
  return int(at[0]) if at.size else None


def held(means: np.ndarray, mark: float) -> int | None:
  """Returns the first game at which the mean was there for 100 more games."""
  length = 0
  for index, mean in enumerate(means):
    length = length + 1 if mean >= mark else 0
    if length > running.NUM_EPISODES:
      return index
  return None


class _Program:
  """A program in training."""

  def __init__(self, name, python, directory, args, seed):
    self._directory = directory
    self._is_ours = name in _OURS
    self._start_s = time.monotonic()
    if self._is_ours:
      command = [
          sys.executable, str(_ROOT / 'experiment.py'), *_flags(name, args),
          f'--logdir={directory / "logdir"}', f'--seed={seed}']
    else:
      peer = _PEERS[name]
      command = [python, str(peers.WORKERS / peer.worker), json.dumps(
          {**peer.settings, 'game': args.game, 'seed': seed})]
    self.run = peers.Run(command, directory)
    self._delay_s = float('inf')

  def is_at_end(self) -> bool:
    """Returns whether a program that has finished was not stopped."""
    return not self._is_ours or running.is_at_end(
        (self._directory / 'log').read_text(errors='replace'))

  def games(self) -> Games:
    """Returns the games so far."""
    if not self._is_ours:
      lines = [line.split() for path in self._directory.glob('games-*')
               for line in path.read_text().split('\n')[:-1]]
      table = np.array(sorted([float(x) for x in line] for line in lines))
      times, steps, returns = table.reshape(-1, 3).T
      return Games((times - self._start_s) / 60, steps * _FRAMES_PER_STEP,
                   returns)
    frames, train_s, returns = running.episodes(self._directory / 'logdir').T
    if len(train_s):
      # The clock of a run starts with the training. Games are written now and
      # then, so this is the least of the delays.
      self._delay_s = min(self._delay_s, (
          time.monotonic() - self._start_s - train_s[-1]))
    return Games((train_s + self._delay_s) / 60, frames, returns)


def _watch(program, args):
  """Waits for the end of a run; returns games, cores of others, error."""
  error = ''
  start_s, busy_s = time.monotonic(), peers.busy_seconds()
  num_games, last_s = 0, start_s
  own_s: dict[psutil.Process, float] = {}  # Also of ended processes.
  while (time.monotonic() - start_s) / 60 < args.limit_min:
    time.sleep(_POLL_S)
    for process in program.run.processes():
      with contextlib.suppress(psutil.Error):
        own_s[process] = peers.cpu_seconds(process)
    games = program.games()
    if not args.to_limit and held(games.means(), args.mark) is not None:
      break
    try:
      program.run.check()
    except peers.RunError as e:
      error = str(e)
      if program.run.has_finished():  # At the number of frames of its flags.
        error = '' if program.is_at_end() else 'it was stopped'
      break
    if len(games.returns) > num_games:
      num_games, last_s = len(games.returns), time.monotonic()
    elif time.monotonic() - last_s > _HANG_S:
      error = f'no game has ended for {_HANG_S:.0f} s'
      break
  others = (peers.busy_seconds() - busy_s - sum(own_s.values())) / (
      time.monotonic() - start_s)
  return program.games(), others, error


def measure(name: str, python: str, seed: int, args) -> dict:
  """Makes a run; returns its line of results.csv."""
  directory = _directory(args.out, name, args.game, seed, args.mark)
  shutil.rmtree(directory, ignore_errors=True)  # A run that was cut off.
  directory.mkdir(parents=True)
  program = _Program(name, python, directory, args, seed)
  try:
    games, others, error = _watch(program, args)
  finally:
    program.run.kill()
  np.savetxt(directory / 'games.csv', np.transpose(games), '%.6g', ',',
             header='minutes,frames,return', comments='')
  means = games.means()
  at = {'mark': reached(means, args.mark), 'held': held(means, args.mark)}
  value = lambda array, index: (
      '' if index is None or np.isnan(array[index])
      else round(float(array[index]), 2))
  return dict(zip(_FIELDS, (
      name, args.game, seed, args.mark,
      value(games.minutes, at['mark']), value(games.frames, at['mark']),
      value(games.minutes, at['held']), value(games.frames, at['held']),
      *(value(array, -1 if len(array) else None)
        for array in (means, games.minutes, games.frames)),
      len(games.returns), round(others, 2), _settings(name, args), error)))


def _directory(out, name, game, seed, mark):
  return out / f'{game}-{float(mark):g}-{name}-seed{seed}'


def _flags(name, args):
  """Returns the flags of a program of ours; none of a peer."""
  if name not in _OURS:
    return []
  return [f'--recipe={_OURS[name].format(args.game)}', *args.flags]


def _settings(name, args):
  """Returns the settings of a run, without its key, as text."""
  return json.dumps({'limit_min': args.limit_min, 'to_limit': args.to_limit,
                     'flags': _flags(name, args)})


def _key(row):
  return (row['program'], row['game'], int(row['seed']), float(row['mark']))


def read_results(out: pathlib.Path) -> list[dict]:
  """Returns the last line of results.csv about each run."""
  path = out / 'results.csv'
  if not path.exists():
    return []
  with open(path, newline='', encoding='utf-8') as f:
    reader = csv.DictReader(f)
    if reader.fieldnames != [*_FIELDS]:
      raise SystemExit(f'{path} is of another version: use another --out.')
    return list({_key(row): row for row in reader}.values())


def _add(out, row):
  path = out / 'results.csv'
  is_new = not path.exists()
  with open(path, 'a', newline='', encoding='utf-8') as f:
    writer = csv.DictWriter(f, _FIELDS)
    if is_new:
      writer.writeheader()
    writer.writerow(row)


def _numbers(rows, name, scale=1.0):
  return [float(row[name]) * scale if row[name] else None for row in rows]


def _title(program, game):
  """Returns the name of a program in tables and pictures."""
  return (f'ours, {_OURS[program].format(game)}' if program in _OURS
          else _PEERS[program].title)


def table(rows: list[dict]) -> str:
  """Returns a line of Markdown for each program and game.

  Failed runs are left out: below the table, each failed run has a line with its
  error.
  """
  failed = [row for row in rows if row['error']]
  rows = [row for row in rows if not row['error']]
  lines = ['| program | game | mark | minutes to it, each seed | median | held '
           'after, minutes | million frames to it | last mean of 100 | after, '
           'minutes | cores of others |',
           '|---|---|---:|---|---:|---|---|---|---|---:|']
  groups = {}
  for row in rows:
    groups.setdefault(
        (row['program'], row['game'], float(row['mark'])), []).append(row)
  text = lambda values: ', '.join(
      '-' if value is None else f'{value:.1f}' for value in values)
  for (program, game, mark), group in groups.items():
    numbers = functools.partial(_numbers, group)
    minutes = numbers('minutes_to_mark')
    # A run without the mark took longer than its limit.
    longest = max((m for m in minutes if m is not None), default=0.)
    is_known = all(m is not None or given >= longest for m, given in zip(
        minutes, numbers('minutes')))
    median = statistics.median(
        float('inf') if m is None else m for m in minutes)
    median_text = ('?' if not is_known else
                   '-' if median == float('inf') else f'{median:.1f}')
    title = _title(program, game)
    lines.append(
        f'| {title} | {game} | {mark:g} | {text(minutes)} | '
        f'{median_text} | '
        f'{text(numbers("minutes_held"))} | '
        f'{text(numbers("frames_to_mark", 1e-6))} | '
        f'{text(numbers("last_mean"))} | {text(numbers("minutes"))} | '
        f'{max(numbers("others")):.2f} |')
  lines += [f'\n{row["program"]}, seed {row["seed"]}, failed: {row["error"]}'
            for row in failed]
  return '\n'.join(lines) + '\n'


def plot(rows: list[dict], out: pathlib.Path, game: str, mark: float) -> None:
  """Draws the means of 100 games of a game's runs over minutes and frames."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot as plt
  figure, axes = plt.subplots(
      1, 2, figsize=(11, 4.5), sharey=True, layout='constrained')
  seen = set()
  for row in rows:
    name = row['program']
    path = _directory(out, name, game, row['seed'], mark) / 'games.csv'
    if not path.exists():  # A run that failed, and was cut off in the next try.
      continue
    with open(path, encoding='utf-8') as f:
      lines = [[float(x) for x in line] for line in list(csv.reader(f))[1:]]
    games = Games(*np.array(lines).reshape(-1, 3).T)
    label = None if name in seen else _title(name, game)
    seen.add(name)
    for axis, x in zip(axes, (games.minutes, games.frames / 1e6), strict=True):
      axis.plot(x, games.means(), color=f'C{_PROGRAMS.index(name)}',
                label=label, alpha=0.8)
  for axis in axes:
    axis.axhline(mark, color='grey', linestyle=':')
    axis.grid(alpha=0.3)
  axes[0].set_xlabel(f'minutes since the start of the program, {_CORES} cores')
  axes[1].set_xlabel('million environment frames')
  axes[0].set_ylabel(f'{game}: mean return of {running.NUM_EPISODES} games')
  figure.legend(*axes[0].get_legend_handles_labels(),
                loc='outside upper center', ncols=2)
  figure.savefig(out / f'{game}-{mark:g}.png', dpi=110)
  plt.close(figure)


def _pythons(names, args):
  """Returns the Python of each peer; says which cannot be installed."""
  pythons = {}
  for name in names:
    if name not in _OURS:
      try:
        pythons[name] = venvs.make(
            pathlib.Path(args.venvs) / _PEERS[name].venv,
            [args.torch, *_PEERS[name].requirements])
      except venvs.InstallError as e:
        print(f'{name} is left out: {e}', file=sys.stderr, flush=True)
  return pythons


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--game', required=True, choices=('pong', 'breakout'))
  parser.add_argument('--mark', required=True, type=float)
  parser.add_argument('--programs', default=','.join(_PROGRAMS),
                      help=f'comma-separated: {", ".join(_PROGRAMS)}')
  parser.add_argument('--seeds', type=int, default=3, help='number of seeds')
  parser.add_argument('--first_seed', type=int, default=1)
  parser.add_argument('--limit_min', type=float, default=60.,
                      help='minutes after which a run ends')
  parser.add_argument('--to_limit', action='store_true',
                      help='run to --limit_min even after the mark was held')
  venvs.add_arguments(parser)
  parser.add_argument('flags', nargs='*', metavar='FLAGS',
                      help='further flags of experiment.py, after --')
  args = parser.parse_args()
  args.out = args.out.absolute()
  names = args.programs.split(',')
  for name in set(names) - {*_PROGRAMS}:
    parser.error(f'Unknown program {name}: use some of '
                 f'{", ".join(_PROGRAMS)}.')
  # `sys.exit` runs the `finally` that ends the programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  args.out.mkdir(parents=True, exist_ok=True)
  rows = [row for row in read_results(args.out) if row['game'] == args.game
          and float(row['mark']) == args.mark and not row['error']]
  for row in rows:
    flags = json.loads(row['settings'])['flags']
    if flags != _flags(row['program'], args):
      parser.error(f'{args.out} has runs of {row["program"]} with the flags '
                   f'{flags}: use another --out.')
  pythons = _pythons(names, args)
  names = [name for name in names if name in _OURS or name in pythons]
  done = {_key(row) for row in rows}
  for seed in range(args.first_seed, args.first_seed + args.seeds):
    for name in names:
      if (name, args.game, seed, args.mark) not in done:
        row = measure(name, pythons.get(name, ''), seed, args)
        _add(args.out, row)
        print(', '.join(f'{k}={v}' for k, v in row.items() if v != ''),
              flush=True)
  rows = [row for row in read_results(args.out)
          if row['game'] == args.game and float(row['mark']) == args.mark]
  print(table(rows), end='')
  plot(rows, args.out, args.game, args.mark)


if __name__ == '__main__':
  main()
