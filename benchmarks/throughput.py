# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures whole runs of experiment.py: speed, time per stage, memory.

  python benchmarks/throughput.py --networks=shallow,deep --actors=32,96 \
      --groups=2,4 [--window_s=60] [--runs=3] [--json=F] -- FLAGS

FLAGS are flags of experiment.py. Every combination of networks, levels, actors
and groups is added. Every run starts from the beginning, in a directory of its
own, and the combinations take turns. The first `--warm_up_s` after the
first line of progress are left out, because functions are compiled then. Memory
is the proportional set size of the process tree, read every ten seconds; the
largest value counts. Agent steps are frames divided by `--num_action_repeats`:
pass this flag here, too, for a number other than 4.

Times are shares of each thread's time. Actors step environments, make policy
steps, write unrolls and wait. The thread `batches` collects unrolls (this
includes the wait for unrolls), copies a batch to the device and waits. The
learner learns and waits.
"""

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import psutil

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A run is killed after warm-up, window and this margin.
_MARGIN_S = 300


def _sum_over_tree(process, value):
  """Returns the sum of `value(p)` over a process and its descendants."""
  total = 0
  for member in [process, *process.children(recursive=True)]:
    try:
      total += value(member)
    except psutil.Error:
      pass  # The process has ended.
  return total


def tree_pss_bytes(process: psutil.Process) -> int:
  return _sum_over_tree(process, lambda p: p.memory_full_info().pss)


def tree_cpu_s(process: psutil.Process) -> float:
  return _sum_over_tree(process, lambda p: sum(p.cpu_times()[:2]))


def measure(flags, window_s, warm_up_s, num_action_repeats):
  """Runs experiment.py once; returns a dictionary of measurements."""
  with tempfile.TemporaryDirectory() as logdir:
    child = subprocess.Popen(
        [sys.executable, 'experiment.py', *flags, f'--logdir={logdir}',
         '--progress_secs=1', '--save_checkpoint_secs=100000'],
        cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL='2', PYTHONUNBUFFERED='1'))
    tree = psutil.Process(child.pid)
    frames, lags, peak, output, first = [], [], 0, [], None
    limit = threading.Timer(warm_up_s + window_s + _MARGIN_S, child.kill)
    limit.start()
    try:
      for line in child.stdout:
        output.append(line)
        match = re.match(r'([\d,]+) of .*policy lag ([\d.]+)', line)
        if not match:
          continue
        now = time.monotonic()
        first = first or now
        if len(output) % 10 == 1:
          peak = max(peak, tree_pss_bytes(tree))
        if now - first >= warm_up_s:
          frames.append(
              (now, int(match[1].replace(',', '')), tree_cpu_s(tree)))
          lags.append(float(match[2]))
        if frames and now - frames[0][0] >= window_s:
          break
      child.send_signal(signal.SIGINT)
      output.extend(child.stdout)
      child.wait()
    finally:
      limit.cancel()
      child.kill()
      child.wait()
  times = [line for line in output if line.startswith('Time: ')]
  if len(frames) < 2 or not times:
    raise RuntimeError('Nothing was measured:\n' + ''.join(output))
  seconds = frames[-1][0] - frames[0][0]
  frames_per_s = (frames[-1][1] - frames[0][1]) / seconds
  return {
      'agent_steps_per_s': frames_per_s / num_action_repeats,
      'frames_per_s': frames_per_s,
      'cpu_cores': (frames[-1][2] - frames[0][2]) / seconds,
      'peak_pss_mb': peak / 2**20,
      'policy_lag': statistics.mean(lags),
      'time': times[0][6:].strip(),
  }


def combinations(args):
  """Returns the flags of every combination asked for."""
  options = [(flag, values.split(',')) for flag, values in (
      ('agent', args.networks), ('level_name', args.levels),
      ('num_actors', args.actors), ('num_actor_groups', args.groups)) if values]
  return [[f'--{flag}={value}' for (flag, _), value in zip(options, values)]
          for values in itertools.product(*(values for _, values in options))]


def row(flags, runs):
  """Returns the line of the table for the runs of one combination."""
  rates = [r['agent_steps_per_s'] for r in runs]
  median = lambda name: statistics.median(r[name] for r in runs)
  each = ', '.join(f'{x:,.0f}' for x in rates)
  return (f'| {" ".join(flags) or "-"} | {each} | '
          f'{statistics.median(rates):,.0f} | {median("frames_per_s"):,.0f} | '
          f'{median("cpu_cores"):.2f} | {median("peak_pss_mb"):,.0f} | '
          f'{median("policy_lag"):.1f} | {runs[-1]["time"]} |')


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  for name in ('networks', 'levels', 'actors', 'groups'):
    parser.add_argument(f'--{name}', help='a list A,B,C to combine')
  parser.add_argument('--window_s', type=float, default=60)
  parser.add_argument('--warm_up_s', type=float, default=15)
  parser.add_argument('--runs', type=int, default=3)
  parser.add_argument('--num_action_repeats', type=int, default=4)
  parser.add_argument('--json', help='file to write the results to')
  parser.add_argument('flags', nargs='*')
  args = parser.parse_args()
  results = [(flags, []) for flags in combinations(args)]
  for _ in range(args.runs):
    for flags, runs in results:
      try:
        runs.append(measure([*args.flags, *flags], args.window_s,
                            args.warm_up_s, args.num_action_repeats))
      except RuntimeError as e:
        print(f'{" ".join(flags)}: {e}', file=sys.stderr, flush=True)
        continue
      print(f'{" ".join(flags)}: {runs[-1]["agent_steps_per_s"]:,.0f} agent '
            'steps/s', file=sys.stderr, flush=True)
  print('| settings | agent steps/s | median | frames/s | cores | MB | lag | '
        'time |\n|---|---|---:|---:|---:|---:|---:|---|')
  for flags, runs in results:
    print(row(flags, runs) if runs else f'| {" ".join(flags)} | failed |')
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'flags': args.flags, 'results': results}, f, indent=1)


if __name__ == '__main__':
  main()
