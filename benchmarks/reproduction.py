# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Curves and tests of runs of the paper's recipe, as data and as a picture.

  python benchmarks/reproduction.py DIRECTORY [DIRECTORY ...]

Each directory is the log directory of a run of one Atari game, finished or not.
Its curve and its tests replace the rows of the same game, network and seed in
benchmarks/results/reproduction_curves.csv and reproduction_tests.csv; rows of
other runs stay. Then docs/reproduction.png is drawn from all rows, and the
table of docs/reproduction.md is printed.

*   A point of a curve is the mean return of the training episodes that ended
    within one million environment frames.
*   A test is a file that `--mode=test` has written into the log directory.
"""

import argparse
import collections
import csv
import glob
import json
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / 'benchmarks')]
from scalable_agent.modes import running
from scalable_agent.scores import atari57
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files

_RESULTS = ROOT / 'benchmarks' / 'results'
_PICTURE = ROOT / 'docs' / 'reproduction.png'
_WINDOW_FRAMES = 1_000_000
_KEY = ('game', 'network', 'seed', 'device')
_CURVE_FIELDS = (*_KEY, 'num_env_frames', 'mean_return', 'num_episodes')
_TEST_FIELDS = (*_KEY, 'num_env_frames', 'policy', 'mean_return', 'low', 'high',
                'num_episodes', 'normalized', 'train_time_s')
Row = dict[str, str]


def curve(directory: pathlib.Path, window_frames: int = _WINDOW_FRAMES
          ) -> list[tuple[int, float, int]]:
  """Returns frames, mean return and number of episodes of each window.

  The last window is left out if episodes and tests end within that window, and
  the first of a directory that does not begin at frame 0: games that begin
  together end there, the short ones more often.

  Args:
    directory: the log directory.
    window_frames: the environment frames of a window.
  """
  episodes = running.episodes(directory)
  windows = np.ceil(episodes[:, 0] / window_frames).astype(np.int64)
  end = max([episodes[-1, 0], *(
      int(row['num_env_frames']) for row in tests(directory))])
  points = []
  for window in np.unique(windows)[int(windows[0] > 1):]:
    frames = int(window) * window_frames
    if frames <= end:
      returns = episodes[windows == window, 2]
      points.append((frames, float(returns.mean()), len(returns)))
  return points


def tests(directory: pathlib.Path) -> list[Row]:
  """Returns the rows of the tests in a log directory, without the run's key."""
  frames, seconds, _ = running.episodes(directory).T
  rows = []
  for path in sorted(glob.glob(str(directory / 'scores-*.json'))):
    with open(path, encoding='utf-8') as f:
      table = json.load(f)
    for agent in table['agents']:
      is_greedy = agent['settings']['test_greedy']
      for level in agent['levels']:
        low, high = level['interval']
        rows.append({
            'num_env_frames': str(agent['num_env_frames']),
            'policy': 'greedy' if is_greedy else 'sampled',
            'mean_return': f'{level["mean"]:.2f}', 'low': f'{low:.2f}',
            'high': f'{high:.2f}', 'num_episodes': str(len(level['returns'])),
            'normalized': f'{level["human_normalized_percent"]:.1f}',
            'train_time_s': '{:.0f}'.format(
                seconds[frames <= agent['num_env_frames']].max())})
  return rows


def settings(directory: pathlib.Path) -> config_lib.Config:
  """Returns the settings of a run; SystemExit if the run has no episode yet."""
  config = config_lib.trained_with(str(directory))
  if config is None:
    raise SystemExit(f'{directory} has no settings of a training.')
  if not running.episodes(directory).size:
    raise SystemExit(f'{directory} has no finished episode yet.')
  return config


def key(directory: pathlib.Path) -> Row:
  """Returns what identifies a run: game, network, seed and device.

  The device is that of benchmarks/device_training.py or from_zoo.py, also if a
  CPU resumed the run; else `CPU`.
  """
  config = settings(directory)
  path = directory / 'run.json'
  device = json.loads(path.read_text())['device'] if path.exists() else 'CPU'
  return {'game': atari57.GAME_OF_LEVEL[config.level_name],
          'network': config.agent, 'seed': str(config.seed), 'device': device}


def update(path: pathlib.Path, fields: tuple[str, ...], run: Row,
           rows: list[Row]) -> list[Row]:
  """Replaces the rows of a run in a file; returns all rows of the file."""
  others = []
  if path.exists():
    with open(path, newline='', encoding='utf-8') as f:
      others = [row for row in csv.DictReader(f)
                if any(row[name] != run[name] for name in run)]
  rows = others + [{**run, **row} for row in rows]
  path.parent.mkdir(exist_ok=True)
  files.write_csv(str(path), fields, rows)
  return rows


def published(game: str, network: str) -> float:
  """Returns the paper's score of a game, after 200 million frames."""
  return atari57.PUBLISHED[f'impala_{network}'].returns[game]


def draw(curves: list[Row], path: pathlib.Path) -> None:
  """Draws all curves, a plot per game, with the published score as a line."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot
  by_game: dict[str, dict[tuple[str, ...], list[Row]]] = (
      collections.defaultdict(lambda: collections.defaultdict(list)))
  for row in curves:
    by_game[row['game']][tuple(row[name] for name in _KEY[1:])].append(row)
  num_columns = min(len(by_game), 3)
  num_rows = -(-len(by_game) // num_columns)
  figure, axes = pyplot.subplots(
      num_rows, num_columns, squeeze=False, layout='constrained',
      figsize=(5 * num_columns, 3.5 * num_rows))
  for axis in axes.flat[len(by_game):]:
    axis.remove()
  for axis, (game, lines) in zip(axes.flat, by_game.items()):
    for (network, seed, device), rows in lines.items():
      axis.plot([int(row['num_env_frames']) / 1e6 for row in rows],
                [float(row['mean_return']) for row in rows],
                label=f'{network}, seed {seed}, {device}')
    for network in sorted({network for network, *_ in lines}):
      axis.axhline(published(game, network), color='grey', linestyle='--',
                   label=f'paper, {network}, 200 M frames')
    axis.set(title=game.replace('_', ' ').title(),
             xlabel='million environment frames',
             ylabel='mean return')
    axis.legend(fontsize='small', loc='lower right')
  figure.savefig(path, dpi=90)


def parse_directories(description: str | None) -> list[pathlib.Path]:
  """Returns the log directories of the command line."""
  parser = argparse.ArgumentParser(
      description=description, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('directories', nargs='+', type=pathlib.Path,
                      metavar='DIRECTORY')
  return parser.parse_args().directories


def main() -> None:
  for directory in parse_directories(__doc__):
    run = key(directory)
    points = curve(directory)
    curves = update(
        _RESULTS / 'reproduction_curves.csv', _CURVE_FIELDS, run,
        [{'num_env_frames': str(frames), 'mean_return': f'{mean:.2f}',
          'num_episodes': str(number)} for frames, mean, number in points])
    rows = update(_RESULTS / 'reproduction_tests.csv', _TEST_FIELDS, run,
                  tests(directory))
  draw(curves, _PICTURE)
  print('| game | network, seed | frames | policy | mean return (95 %) | '
        'published | human-normalised | published | hours |')
  print('|---' * 9 + '|')
  for row in rows:
    score = published(row['game'], row['network'])
    normalized = atari57.BASELINES.normalized(row['game'], score)
    print(f'| {row["game"]} | {row["network"]}, {row["seed"]} | '
          f'{int(row["num_env_frames"]):,} | {row["policy"]} | '
          f'{row["mean_return"]} ({row["low"]} to {row["high"]}) | {score} | '
          f'{row["normalized"]} % | {normalized:.1f} % | '
          f'{float(row["train_time_s"]) / 3600:.1f} |')


if __name__ == '__main__':
  main()
