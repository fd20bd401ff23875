# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with V-trace and with the other corrections of the paper's table 2.

  python benchmarks/ablation.py --out=DIRECTORY [--corrections=vtrace,none]
      [--replay=0,10000] [--seeds=5] [--jobs=2] [-- FLAGS]

Runs experiment.py once for each correction, capacity of the replay (0: none)
and seed. FLAGS such as --min_policy_lag=30 change the settings below, the
settings of `catch`. FLAGS with --level_name, --recipe or --flagfile replace the
settings below. Every run has a directory of its own below --out. A finished run
is not run again; a run that was cut off starts again. Writes
ablation.json, ablation.md and ablation.png.

*   The final return is the mean over the last tenth of the learning curve, as
    the agent learns: actions are sampled, with weights as old as the policy
    lag.
*   The area is the area under the learning curve, divided by the frames: the
    mean return over the whole run.
*   Policy lag is in updates. With half of a batch replayed there are twice as
    many updates for the same frames, so the same lag is half as many frames.
*   Intervals are 95 % intervals of the mean over seeds, from Student's t
    distribution. Intervals of differences are Welch's.
*   The paper's numbers are final returns on five tasks of DeepMind Lab. Compare
    their order, not their size.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import re
import shutil
import signal
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
from scalable_agent.modes import running
from scalable_agent.processes import programs
from scalable_agent.scores import vtrace_ablation
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections

_FLAGS = (
    '--level_name=catch', '--agent=mlp', '--nouse_lstm',
    '--nouse_last_action_reward', '--num_action_repeats=1', '--num_actors=32',
    '--batch_size=8', '--unroll_length=10', '--total_environment_frames=64000',
    '--optimizer=adam', '--learning_rate=0.003', '--epsilon=0.00001',
    '--entropy_cost=0.01', '--min_policy_lag=50')
_NOT_VTRACE = ('--lambda_=1', '--clip_rho=1', '--clip_c=1', '--clip_pg_rho=1')
_NUM_BINS = 50


class Cell(NamedTuple):
  """One run of experiment.py.

  Attributes:
    correction: see `--correction`.
    replay_capacity: see `--replay_capacity`.
    seed: see `--seed`.
  """
  correction: str
  replay_capacity: int
  seed: int

  def directory(self, out: pathlib.Path) -> pathlib.Path:
    return out / f'{self.correction}-replay{self.replay_capacity}' / (
        f'seed{self.seed}')

  def flags(self, common: list[str]) -> list[str]:
    # Recipes may have other values of V-trace, which only V-trace has.
    others = [] if self.correction == 'vtrace' else _NOT_VTRACE
    return [*common, f'--correction={self.correction}',
            f'--replay_capacity={self.replay_capacity}', f'--seed={self.seed}',
            *others]


class Interval(NamedTuple):
  """A mean and the ends of its 95 % interval, None for a single value."""
  mean: float
  low: float | None = None
  high: float | None = None

  def __str__(self):
    if self.low is None:
      return f'{self.mean:.3f}'
    return f'{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})'


def common_flags(flags: list[str]) -> list[str]:
  """Returns the flags of all runs, from the user's flags."""
  has_level = any(re.match(r'--?(level_name|flagfile|recipe)(=|$)', flag)
                  for flag in flags)
  return list(flags) if has_level else [*_FLAGS, *flags]


def is_finished(cell: Cell, out: pathlib.Path, common: list[str]) -> bool:
  """Returns whether a run with the same flags has finished."""
  path = cell.directory(out) / 'finished.json'
  if not path.exists():
    return False
  if json.loads(path.read_text()) != cell.flags(common):
    raise SystemExit(f'{path.parent} was run with other flags: use another '
                     '--out.')
  return True


def run_all(cells: list[Cell], out: pathlib.Path, common: list[str], jobs: int,
            timeout_s: float, num_kills: int = 0) -> list[str]:
  """Makes the runs, `jobs` at a time; returns a line for each failure.

  Args:
    cells: the runs.
    out: the directory of the runs' directories.
    common: flags of all runs.
    jobs: the number of runs at a time.
    timeout_s: the most seconds of a run.
    num_kills: the number of times that `killed.py` kills each run.
  """
  deadlines, failures = {}, []

  def start(cell):
    deadlines[cell] = time.monotonic() + timeout_s
    return _start(cell, out, common, num_kills)

  with contextlib.closing(running.ends(
      collections.deque(cells), jobs, start, 0.2,
      is_over=lambda cell: time.monotonic() >= deadlines[cell])) as ends:
    for cell, code, num_left in ends:
      directory = cell.directory(out)
      result = 'finished'
      if code == 0 and running.is_at_end(programs.output(directory)):
        (directory / 'finished.json').write_text(
            json.dumps(cell.flags(common)))
      else:
        result = ('stopped before its end' if code == 0 else
                  f'exit code {code}, see log.txt' if code else
                  f'took more than {timeout_s:g} s')
        failures.append(f'{directory}: {result}')
      print(f'{directory}: {result}, {num_left} to go', flush=True)
  return failures


def _start(cell, out, common, num_kills):
  directory = cell.directory(out)
  shutil.rmtree(directory, ignore_errors=True)  # A run that was cut off.
  flags = cell.flags(common)
  if num_kills:
    return programs.start(
        [sys.executable, str(_ROOT / 'benchmarks/killed.py'),
         f'--kills={num_kills}', f'--seed={cell.seed}', '--', *flags,
         f'--logdir={directory}'], directory)
  return running.start([*flags, '--progress_secs=1',
                        '--save_checkpoint_secs=100000'], directory)


def curve(directory: pathlib.Path, num_frames: int) -> np.ndarray:
  """Returns the mean return in each of `_NUM_BINS` equal shares of the frames.

  A share in which no episode ended has the mean return of the share before.
  """
  frames, _, returns = running.episodes(directory).T
  bins = np.minimum((frames - 1) * _NUM_BINS // num_frames, _NUM_BINS - 1)
  means = np.full(_NUM_BINS, np.nan)
  for i in range(_NUM_BINS):
    in_bin = returns[bins == i]
    if in_bin.size:
      means[i] = np.mean(in_bin)
    elif i:
      means[i] = means[i - 1]
  return means


def policy_lag(directory: pathlib.Path) -> float:
  """Returns the mean policy lag of the second half of a run's progress."""
  lags = [float(lag) for lag in re.findall(
      r'policy lag ([\d.]+)', (directory / 'log.txt').read_text())]
  return float(np.mean(lags[len(lags) // 2:]))


def _t_quantile(degrees):
  # Seconds to import, so only once all runs are there.
  import tensorflow_probability as tfp
  return float(tfp.distributions.StudentT(
      np.float64(degrees), np.float64(0), np.float64(1)).quantile(0.975))


def interval(values: list[float]) -> Interval:
  """Returns the mean of `values` with Student's interval."""
  mean = statistics.fmean(values)
  if len(values) < 2:
    return Interval(mean)
  half = (_t_quantile(len(values) - 1) * statistics.stdev(values)
          / len(values) ** 0.5)
  return Interval(mean, mean - half, mean + half)


def difference(ones: list[float], others: list[float]) -> Interval:
  """Returns the difference of two means with Welch's interval."""
  mean = statistics.fmean(ones) - statistics.fmean(others)
  if min(len(ones), len(others)) < 2:
    return Interval(mean)
  errors = [statistics.variance(v) / len(v) for v in (ones, others)]
  if not any(errors):
    return Interval(mean, mean, mean)
  degrees = sum(errors) ** 2 / sum(
      e ** 2 / (len(v) - 1) for e, v in zip(errors, (ones, others)))
  half = _t_quantile(degrees) * sum(errors) ** 0.5
  return Interval(mean, mean - half, mean + half)


def summarise(curves: dict[tuple[int, str], dict[int, np.ndarray]],
              lags: dict[tuple[int, str], list[float]]) -> list[dict]:
  """Returns a row of the table for each replay and correction."""
  last = _NUM_BINS // 10
  rows = []
  for (capacity, correction), by_seed in curves.items():
    values = lambda of, key: [float(of(c)) for c in curves[key].values()]
    final = lambda c: np.mean(c[-last:])
    area = np.nanmean  # Nothing is known before the first episode ends.
    key, v_trace = (capacity, correction), (capacity, 'vtrace')
    row = {
        'replay_capacity': capacity, 'correction': correction,
        'seeds': list(by_seed), 'policy_lag': statistics.fmean(lags[key]),
        'final_returns': values(final, key), 'areas': values(area, key),
        'curves': [
            [None if np.isnan(x) else x for x in c] for c in by_seed.values()],
        'paper_final_returns': vtrace_ablation.RETURNS[
            capacity > 0, correction]}
    for name in ('final_return', 'area'):
      row[name] = interval(row[f'{name}s'])
    if correction != 'vtrace' and v_trace in curves:
      row['vtrace_minus_final_return'] = difference(
          values(final, v_trace), row['final_returns'])
      row['vtrace_minus_area'] = difference(
          values(area, v_trace), row['areas'])
    rows.append(row)
  return rows


def table(rows: list[dict]) -> str:
  """Returns the rows in Markdown, each with the paper's numbers at its end."""
  levels = vtrace_ablation.LEVELS
  lines = ['| replay | correction | seeds | final return | V-trace minus it | '
           'area | V-trace minus it | policy lag | '
           + ' | '.join(f'paper: {level}' for level in levels) + ' |',
           '|---:|---|---:|---|---|---|---|---:|' + '---:|' * len(levels)]
  for row in rows:
    lines.append(
        f'| {row["replay_capacity"] or "no"} | {row["correction"]} | '
        f'{len(row["seeds"])} | {row["final_return"]} | '
        f'{row.get("vtrace_minus_final_return", "")} | {row["area"]} | '
        f'{row.get("vtrace_minus_area", "")} | {row["policy_lag"]:.1f} | '
        + ' | '.join(f'{row["paper_final_returns"][level]:.1f}'
                     for level in levels) + ' |')
  return '\n'.join([*lines, '', f'The paper: {vtrace_ablation.SOURCE}.']) + '\n'


def plot(rows: list[dict], num_frames: int, path: pathlib.Path,
         title: str) -> None:
  """Draws a learning curve per correction, a picture per replay."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot as plt
  capacities = list(dict.fromkeys(row['replay_capacity'] for row in rows))
  figure, axes = plt.subplots(
      1, len(capacities), figsize=(1 + 5 * len(capacities), 4), sharey=True,
      squeeze=False)
  frames = (np.arange(_NUM_BINS) + 0.5) * num_frames / _NUM_BINS / 1000
  for capacity, axis in zip(capacities, axes[0]):
    axis.set_title(f'replay of {capacity:,} unrolls' if capacity
                   else 'no replay')
    for row in rows:
      if row['replay_capacity'] == capacity:
        curves = np.array(row['curves'], float)
        line, = axis.plot(frames, np.mean(curves, 0), label=row['correction'])
        if len(curves) > 1:
          half = (_t_quantile(len(curves) - 1) * np.std(curves, 0, ddof=1)
                  / len(curves) ** 0.5)
          axis.fill_between(
              frames, np.mean(curves, 0) - half, np.mean(curves, 0) + half,
              alpha=0.2, color=line.get_color(), linewidth=0)
    axis.set_xlabel('environment frames [thousand]')
    axis.grid(alpha=0.3)
  axes[0, 0].set_ylabel('return, mean over seeds and its 95 % interval')
  axes[0, 0].legend(loc='best')
  figure.suptitle(title)
  figure.tight_layout()
  figure.savefig(path, dpi=110)


def report(cells: list[Cell], out: pathlib.Path, common: list[str]) -> None:
  """Writes the three files about the runs that are there."""
  curves, lags, settings = {}, {}, None
  for cell in cells:
    if is_finished(cell, out, common):
      key = cell.replay_capacity, cell.correction
      directory = cell.directory(out)
      settings = config_lib.trained_with(str(directory))
      num_frames = settings.total_environment_frames
      curves.setdefault(key, {})[cell.seed] = curve(directory, num_frames)
      lags.setdefault(key, []).append(policy_lag(directory))
  if not curves:
    raise SystemExit('No run has finished: there is nothing to report.')
  rows = summarise(curves, lags)
  command = ' '.join(common)
  (out / 'ablation.md').write_text(f'`{command}`\n\n{table(rows)}')
  (out / 'ablation.json').write_text(json.dumps(
      {'flags': common, 'num_env_frames': num_frames, 'rows': [
          {name: value._asdict() if isinstance(value, Interval) else value
           for name, value in row.items()} for row in rows]}, indent=1))
  plot(rows, num_frames, out / 'ablation.png',
       f'{settings.level_name}, policy lag '
       f'{min(r["policy_lag"] for r in rows):.0f} to '
       f'{max(r["policy_lag"] for r in rows):.0f} updates')
  print(table(rows), end='')
  print(f'Wrote {out}/ablation.md, .json and .png.')


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  names = lambda text: text.split(',')
  numbers = lambda text: [int(number) for number in text.split(',')]
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--corrections', type=names,
                      default=sections.CORRECTIONS)
  parser.add_argument('--replay', type=numbers, default=[0],
                      help='capacities of the replay, 0 for none')
  parser.add_argument('--seeds', type=int, default=5, help='seeds 1, 2, ...')
  parser.add_argument('--jobs', type=int, default=1, help='runs at a time')
  parser.add_argument('--timeout_s', type=float, default=3600,
                      help='seconds that a run may take')
  parser.add_argument('flags', nargs='*', metavar='FLAGS',
                      help='flags of experiment.py, after --')
  args = parser.parse_args()
  unknown = set(args.corrections) - set(sections.CORRECTIONS)
  if unknown:
    parser.error(f'Unknown corrections: {", ".join(sorted(unknown))}.')
  # Ends by way of `finally`, which stops all running programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
  out, common = args.out.absolute(), common_flags(args.flags)
  # By seed first, so that a table of fewer seeds is there early.
  cells = [Cell(correction, capacity, seed)
           for seed in range(1, args.seeds + 1) for capacity in args.replay
           for correction in args.corrections]
  failures = run_all([c for c in cells if not is_finished(c, out, common)], out,
                     common, args.jobs, args.timeout_s)
  report(cells, out, common)
  for failure in failures:
    print(f'Failed: {failure}', file=sys.stderr)
  sys.exit(1 if failures else 0)


if __name__ == '__main__':
  main()
