# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains for an hour, and checks that memory and files do not grow.

  python benchmarks/soak.py --out=DIRECTORY [--minutes=60] -- FLAGS

Every ten seconds the benchmark notes, of the program and of all its processes:
resident and shared memory, open files, threads and processes.
Writes `soak.csv` and `soak.png`; prints each quantity's median of minutes 5 to
10 and of the last 5, and the growth an hour of a line through all after minute
5 (Theil and Sen's, which jumps do not bend). Ends with 1 if the memory grows by
more than 2 % an hour, or the number of files, threads or processes grows, or
the program fails.
"""

import argparse
import contextlib
import csv
import os
import pathlib
import signal
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
import psutil

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
from scalable_agent.modes import running
from scalable_agent.processes import programs

_PERIOD_S = 10
_WARM_UP_MINUTES = 5
_MAX_GROWTH = .02  # A part of the memory, an hour.
_FIELDS = ('minutes', 'main_mb', 'all_mb', 'main_shared_mb', 'main_files',
           'all_files', 'main_threads', 'processes')


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--out', type=pathlib.Path, required=True)
  parser.add_argument('--minutes', type=float, default=60)
  parser.add_argument('flags', nargs='+')
  args = parser.parse_args()
  if args.minutes < 3 * _WARM_UP_MINUTES:
    parser.error(f'--minutes must be at least {3 * _WARM_UP_MINUTES}.')
  # `sys.exit` runs the `finally` that ends the program.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  args.out.mkdir(parents=True, exist_ok=True)
  code, rows = _soak(args)
  with open(args.out / 'soak.csv', 'w', newline='') as f:
    csv.writer(f).writerows([_FIELDS, *rows])
  if not rows or rows[-1][0] < 2 * _WARM_UP_MINUTES:
    print(f'Exit code {code}, which is too soon to tell what grows: see '
          f'{args.out / "run" / "log.txt"}.')
    return 1
  data = dict(zip(_FIELDS, np.array(rows, float).T))
  _draw(data, args.out / 'soak.png')
  grown = _print_growth(data)
  print(f'Exit code {code}. ' + (
      f'These grow: {", ".join(grown)}.' if grown else 'Nothing grows.'))
  return 1 if code or grown else 0


def _soak(args):
  """Returns the program's exit code, and rows of `_FIELDS`."""
  start_s = time.monotonic()
  rows = []
  child = running.start(args.flags, args.out / 'run')
  process = psutil.Process(child.pid)
  try:
    while child.poll() is None and (
        time.monotonic() < start_s + 60 * args.minutes):
      with contextlib.suppress(psutil.Error):  # The process has just ended.
        rows.append(((time.monotonic() - start_s) / 60, *_look(process)))
      time.sleep(_PERIOD_S)
  finally:
    programs.stop(child)
  return child.returncode, rows


def _look(process):
  """Returns the resources of a program and its children now."""
  memory, files = [process.memory_info().rss / 1e6], [process.num_fds()]
  children = process.children(recursive=True)
  for one in children:
    with contextlib.suppress(psutil.Error):  # The process has just ended.
      memory.append(one.memory_info().rss / 1e6)
      files.append(one.num_fds())
  return (memory[0], sum(memory), process.memory_info().shared / 1e6,
          files[0], sum(files), process.num_threads(), 1 + len(children))


def _print_growth(data):
  """Prints the growth of each quantity; returns the growing quantities."""
  minutes = data['minutes']
  after = minutes >= _WARM_UP_MINUTES
  first = after & (minutes < 2 * _WARM_UP_MINUTES)
  last = minutes >= minutes[-1] - 5
  grown = []
  print(f'{"":16}{"first":>10}{"last":>10}{"an hour":>10}')
  for name in _FIELDS[1:]:
    before, now = np.median(data[name][first]), np.median(data[name][last])
    growth = _slope(minutes[after], data[name][after]) * 60
    print(f'{name:16}{before:10,.1f}{now:10,.1f}{growth:+10,.2f}')
    if name.endswith('mb'):
      if growth > _MAX_GROWTH * before:
        grown.append(name)
    elif now > before:
      grown.append(name)
  return grown


def _slope(x, y):
  """Returns the median slope of the lines through all pairs of points."""
  i, j = np.triu_indices(len(x), 1)
  return np.median((y[j] - y[i]) / (x[j] - x[i]))


def _draw(data, path):
  figure, axes = plt.subplots(len(_FIELDS) - 1, sharex=True, figsize=(8, 12))
  for axis, name in zip(axes, _FIELDS[1:]):
    axis.plot(data['minutes'], data[name])
    axis.set_title(name.replace('_', ' ').replace('mb', 'memory, MB'),
                   loc='left', fontsize=9)
    axis.axvline(_WARM_UP_MINUTES, color='grey', linewidth=.5)
    axis.set_ylim(0, 1.1 * max(1, data[name].max()))
  axes[-1].set_xlabel('minutes')
  figure.tight_layout()
  figure.savefig(path, dpi=100)


if __name__ == '__main__':
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  sys.exit(main())
