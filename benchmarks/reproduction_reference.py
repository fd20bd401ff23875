# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Curves of runs with the settings of DeepMind's program, as data and picture.

  python benchmarks/reproduction_reference.py DIRECTORY [DIRECTORY ...]

Each directory is the log directory of a run, finished or not. Its curve
replaces the rows of the same level, network, batch size and seed in
benchmarks/results/reproduction_reference_curves.csv; rows of other runs stay.
Then docs/reproduction_reference.png is drawn from all rows, and a table for
docs/reproduction.md is printed.

A point of a curve is the mean return of the training episodes that ended
within a window of frames, of which a run has at most 50.
"""

import collections
import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / 'benchmarks')]
import reproduction
from scalable_agent.modes import running

_FILE = ROOT / 'benchmarks' / 'results' / 'reproduction_reference_curves.csv'
_PICTURE = ROOT / 'docs' / 'reproduction_reference.png'
_KEY = ('level', 'network', 'batch_size', 'seed')
_FIELDS = (*_KEY, 'num_env_frames', 'mean_return', 'num_episodes')
Row = dict[str, str]


def window_frames(num_env_frames: int) -> int:
  """Returns 1, 2 or 5 times a power of ten, at least a fiftieth of a run.

  Args:
    num_env_frames: the frames of the run.
  """
  least = max(num_env_frames / 50, 1)
  power = 10 ** math.floor(math.log10(least))
  return next(n * power for n in (1, 2, 5, 10) if n * power >= least)


def key(directory: pathlib.Path) -> Row:
  """Returns what identifies a run: level, network, batch size and seed."""
  config = reproduction.settings(directory)
  network = config.agent + (
      f' + {config.core.upper()}' if config.use_lstm else '')
  return {'level': config.level_name, 'network': network,
          'batch_size': str(config.batch_size), 'seed': str(config.seed)}


def draw(rows: list[Row], path: pathlib.Path) -> None:
  """Draws a plot per level: a line per run, a colour per batch size."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot
  runs: dict[tuple[str, ...], list[Row]] = collections.defaultdict(list)
  for row in rows:
    runs[tuple(row[name] for name in _KEY)].append(row)
  levels = list(dict.fromkeys(level for level, *_ in runs))
  figure, axes = pyplot.subplots(
      1, len(levels), squeeze=False, layout='constrained',
      figsize=(4.5 * len(levels), 3.5))
  for level, axis in zip(levels, axes.flat):
    drawn = set()
    for (of, network, batch_size, _), points in runs.items():
      if of != level:
        continue
      axis.plot([int(row['num_env_frames']) / 1000 for row in points],
                [float(row['mean_return']) for row in points],
                color='C0' if batch_size == '2' else 'C1', linewidth=1,
                label=None if batch_size in drawn else f'batch {batch_size}')
      drawn.add(batch_size)
      axis.set_title(f'{level}, {network}')
    axis.set(xlabel='thousand environment frames', ylabel='mean return')
    axis.grid(alpha=0.3)
    axis.legend(loc='best')
  figure.savefig(path, dpi=90)
  pyplot.close(figure)


def main() -> None:
  directories = reproduction.parse_directories(__doc__)
  print('| level | network | batch | seed | frames | mean return, first window '
        '| last window | hours |')
  print('|---' * 8 + '|')
  for directory in directories:
    run = key(directory)
    frames, seconds, _ = running.episodes(directory).T
    points = reproduction.curve(directory, window_frames(int(frames[-1])))
    reproduction.update(_FILE, _FIELDS, run, [
        {'num_env_frames': str(end), 'mean_return': f'{mean:.3f}',
         'num_episodes': str(number)} for end, mean, number in points])
    print(f'| {" | ".join(run.values())} | {int(frames[-1]):,} | '
          f'{points[0][1]:.2f} | {points[-1][1]:.2f} | '
          f'{seconds[-1] / 3600:.2f} |')
  with open(_FILE, newline='', encoding='utf-8') as f:
    draw(list(csv.DictReader(f)), _PICTURE)


if __name__ == '__main__':
  main()
