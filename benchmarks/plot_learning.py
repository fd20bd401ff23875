# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Draws the learning curves of one or several runs as a PNG.

  python benchmarks/plot_learning.py OUT.png LOGDIR[=LABEL] ...

The curve is the mean return of the last 100 episodes, over frames and over time.
"""

import argparse
import csv
import os

import matplotlib
matplotlib.use('Agg')
from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
import numpy as np


def read_episodes(logdir):
  """Returns frames, seconds trained and returns of the episodes of a run."""
  with open(os.path.join(logdir, 'episodes.csv'), newline='',
            encoding='utf-8') as f:
    rows = list(csv.DictReader(f))
  kept = []
  for row in reversed(rows):  # What a killed part did after its checkpoint goes.
    if not kept or float(row['num_env_frames']) <= float(
        kept[-1]['num_env_frames']):
      kept.append(row)
  rows = kept[::-1]
  return tuple(np.array([float(row[name]) for row in rows]) for name in (
      'num_env_frames', 'train_time_s', 'episode_return'))


def running_mean(values, window):
  """Returns the mean of the last `window` values, of fewer at the beginning."""
  sums = np.cumsum(np.concatenate([[0.0], values]))
  ends = np.arange(1, len(values) + 1)
  starts = np.maximum(ends - window, 0)
  return (sums[ends] - sums[starts]) / (ends - starts)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('out')
  parser.add_argument('runs', nargs='+')
  parser.add_argument('--window', type=int, default=100)
  parser.add_argument('--title', default='')
  args = parser.parse_args()
  figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
  for run in args.runs:
    logdir, _, label = run.partition('=')
    frames, seconds, returns = read_episodes(logdir)
    mean = running_mean(returns, args.window)
    line, = axes[0].plot(frames / 1e6, mean, label=label or logdir)
    axes[0].plot(frames / 1e6, returns, '.', markersize=1.5, alpha=0.25,
                 color=line.get_color())
    axes[1].plot(seconds / 60, mean, color=line.get_color())
  axes[0].set_xlabel('environment frames [million]')
  axes[1].set_xlabel('time trained [minutes]')
  axes[0].set_ylabel(f'return, mean of the last {args.window} episodes')
  axes[0].legend(loc='lower right')
  for axis in axes:
    axis.grid(alpha=0.3)
  figure.suptitle(args.title)
  figure.tight_layout()
  figure.savefig(args.out, dpi=110)
  print(f'Wrote {args.out}.')


if __name__ == '__main__':
  main()
