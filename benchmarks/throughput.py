# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures a run of experiment.py: agent steps/s, where time goes, memory.

  python benchmarks/throughput.py [--window_s=60] [--runs=3] -- FLAGS

FLAGS are experiment.py's. Every run is a fresh start in a directory of its own;
the first windows of `--warm_up_s` are left out, as compilation falls into them.
Memory is the proportional set size of the process tree, the largest of one
sample every ten seconds. Agent steps are frames divided by
`--num_action_repeats`: give it here, too, if it is not 4.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import psutil

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _tree_pss_bytes(process: psutil.Process) -> int:
  total = 0
  for member in [process, *process.children(recursive=True)]:
    try:
      total += member.memory_full_info().pss
    except psutil.Error:
      pass  # It ended meanwhile.
  return total


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
    for line in child.stdout:
      output.append(line)
      match = re.match(r'([\d,]+) of .*policy lag ([\d.]+)', line)
      if not match:
        continue
      now = time.monotonic()
      first = first or now
      if len(output) % 10 == 1:
        peak = max(peak, _tree_pss_bytes(tree))
      if now - first >= warm_up_s:
        frames.append((now, int(match[1].replace(',', '')), sum(
            p.cpu_times().user + p.cpu_times().system
            for p in [tree, *tree.children(recursive=True)])))
        lags.append(float(match[2]))
      if frames and now - frames[0][0] >= window_s:
        break
    child.send_signal(signal.SIGINT)
    output.extend(child.stdout)
    child.wait()
  if len(frames) < 2:
    raise RuntimeError('Nothing was measured:\n' + ''.join(output))
  seconds = frames[-1][0] - frames[0][0]
  frames_per_s = (frames[-1][1] - frames[0][1]) / seconds
  return {
      'agent_steps_per_s': frames_per_s / num_action_repeats,
      'frames_per_s': frames_per_s,
      'cpu_cores': (frames[-1][2] - frames[0][2]) / seconds,
      'peak_pss_mb': peak / 2**20,
      'policy_lag': statistics.mean(lags),
      'time': next(l for l in output if l.startswith('Time: '))[6:].strip(),
  }


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--window_s', type=float, default=60)
  parser.add_argument('--warm_up_s', type=float, default=15)
  parser.add_argument('--runs', type=int, default=3)
  parser.add_argument('--num_action_repeats', type=int, default=4)
  parser.add_argument('--json', help='file to write the results to')
  parser.add_argument('flags', nargs='*')
  args = parser.parse_args()
  results = []
  for _ in range(args.runs):
    results.append(measure(args.flags, args.window_s, args.warm_up_s,
                           args.num_action_repeats))
    r = results[-1]
    print(f'{r["agent_steps_per_s"]:,.0f} agent steps/s, '
          f'{r["frames_per_s"]:,.0f} frames/s, {r["cpu_cores"]:.2f} cores, '
          f'{r["peak_pss_mb"]:,.0f} MB, policy lag {r["policy_lag"]:.1f}; '
          f'{r["time"]}', flush=True)
  median = statistics.median(r['agent_steps_per_s'] for r in results)
  print(f'median of {len(results)}: {median:,.0f} agent steps/s')
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'flags': args.flags, 'results': results}, f, indent=1)


if __name__ == '__main__':
  main()
