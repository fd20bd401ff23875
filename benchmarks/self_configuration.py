# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares --num_actors=auto with a grid of settings, as agent steps/s.

  python benchmarks/self_configuration.py [--cells=cartpole] [--cores=2,1] \
      [--window_s=20] [--rounds=1] [--quick] [--json=F]

A cell is a recipe on a number of cores (by taskset). Each run starts from the
beginning, in a directory of its own. A rate is measured over `--window_s`
seconds, `--warm_up_s` seconds after the first update, and is the median of the
rounds, in which the settings take turns. The grid leaves out settings whose
expected policy lag is above the limit of --num_actors=auto. --quick takes two
settings of each grid. The last column is the rate of auto, divided by the best
rate of the grid.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from scalable_agent import experiment
from scalable_agent.modes import running
from scalable_agent.runs import choice

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parent
# A run is killed this many seconds after the end that is expected.
_MARGIN_S = 300
_GROUPS = {'num_actor_groups': (1, 2, 4)}
# The flags of each cell, and the grid.
_CELLS = {
    'pong_shallow': (
        ['--recipe=atari_paper', '--agent=shallow'],
        {'num_actors': (32, 64, 96, 128), **_GROUPS}),
    'pong_deep': (
        ['--recipe=atari_paper'], {'num_actors': (32, 64, 96), **_GROUPS}),
    'cartpole': (
        ['--recipe=cartpole', '--total_environment_frames=100000000'],
        {'num_actors': (16, 32, 64), **_GROUPS,
         'environments_per_process': (1, 8)}),
    'half_cheetah': (
        ['--recipe=sac_half_cheetah', '--min_replay_steps=1000',
         '--total_environment_frames=10000000'],
        {'num_actors': (1, 4, 16, 32), 'num_actor_groups': (1, 2)}),
    'sleep_5ms': (
        ['--recipe=cartpole', '--environments_per_process=1',
         '--level_name=slow_environment:SlowEnvironment5ms-v0',
         '--total_environment_frames=100000000'],
        {'num_actors': (16, 32, 64, 96), **_GROUPS})}


def grid(flags, options):
  """Returns the flags of all settings whose policy lag is not too large."""
  found = []
  for values in itertools.product(*options.values()):
    named = [f'--{name}={value}' for name, value in zip(options, values)]
    if int(values[0]) < int(values[1]):
      continue
    limit = choice.usual_lag(experiment.parse(flags))
    if choice.policy_lag(experiment.parse([*flags, *named])) <= limit:
      found.append(named)
  return found


def measure(flags, cores, args):
  """Returns agent steps/s of a run, and the line about the choice, or ''."""
  repeats = experiment.parse(flags).num_action_repeats
  with tempfile.TemporaryDirectory() as logdir:
    child = subprocess.Popen(
        ['taskset', '-c', ','.join(map(str, range(cores))), sys.executable,
         str(_ROOT / 'experiment.py'), *flags, f'--logdir={logdir}',
         '--progress_secs=1', '--save_checkpoint_secs=100000'],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict(os.environ, PYTHONUNBUFFERED='1', TF_CPP_MIN_LOG_LEVEL='2',
                 PYTHONPATH=f'{_ROOT}:{_HERE}'))
    limit = threading.Timer(
        args.warm_up_s + args.window_s + _MARGIN_S, child.kill)
    limit.start()
    seen, chosen, output = [], '', []
    try:
      for line in child.stdout:
        output.append(line)
        if line.startswith('Chosen: --num_actors'):
          chosen = line.strip()
        found = running.progress(line)
        if found:
          seen.append((time.monotonic(), found[0]))
          if seen[-1][0] - seen[0][0] >= args.warm_up_s + args.window_s:
            break
    finally:
      limit.cancel()
      child.terminate()
      child.stdout.close()
      child.wait()
  seen = [s for s in seen if s[0] - seen[0][0] >= args.warm_up_s]
  if len(seen) < 2:
    raise RuntimeError('Nothing was measured:\n' + ''.join(output[-20:]))
  (begin_s, begin), (end_s, end) = seen[0], seen[-1]
  return (end - begin) / (end_s - begin_s) / repeats, chosen


def compare(cell, cores, args):
  """Measures a cell; returns a dictionary of the results."""
  flags, options = _CELLS[cell]
  settings = grid(flags, options)
  if args.quick:
    settings = [settings[0], settings[-1]]
  rates = {tuple(named): [] for named in settings}
  rates['--num_actors=auto',] = []
  chosen = ''
  for _ in range(args.rounds):
    for named, of_named in rates.items():
      rate, line = measure([*flags, *named], cores, args)
      of_named.append(rate)
      chosen = line or chosen
      print(f'{cell}, {cores} cores, {" ".join(named)}: {rate:,.0f} agent '
            f'steps/s. {line}', file=sys.stderr, flush=True)
  medians = {' '.join(named): statistics.median(of_named)
             for named, of_named in rates.items()}
  auto = medians.pop('--num_actors=auto')
  best = max(medians, key=medians.get)
  match = re.match(r'Chosen: ([^;]*)', chosen)
  return {'cell': cell, 'cores': cores, 'chosen': match[1] if match else '',
          'auto': auto, 'best': best, 'best_rate': medians[best],
          'grid': medians}


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--cells', default=','.join(_CELLS))
  parser.add_argument('--cores', default='2,1')
  parser.add_argument('--window_s', type=float, default=20)
  parser.add_argument('--warm_up_s', type=float, default=5)
  parser.add_argument('--rounds', type=int, default=1)
  parser.add_argument('--quick', action='store_true')
  parser.add_argument('--json', help='file to write the results to')
  args = parser.parse_args()
  results = []
  for cores, cell in itertools.product(
      map(int, args.cores.split(',')), args.cells.split(',')):
    results.append(compare(cell, cores, args))
    if args.json:
      pathlib.Path(args.json).write_text(json.dumps(results, indent=1))
  print('| cell | cores | chosen | auto, agent steps/s | best of the grid | '
        'agent steps/s | ratio |\n|---|---:|---|---:|---|---:|---:|')
  for r in results:
    print(f'| {r["cell"]} | {r["cores"]} | {r["chosen"]} | {r["auto"]:,.0f} | '
          f'{r["best"]} | {r["best_rate"]:,.0f} | '
          f'{r["auto"] / r["best_rate"]:.2f} |', flush=True)


if __name__ == '__main__':
  main()
