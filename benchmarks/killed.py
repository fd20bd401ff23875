# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs experiment.py, and kills it again and again on the way.

  python benchmarks/killed.py --kills=10 [--seed=1] -- --recipe=memory FLAGS

Kills it with SIGKILL at random numbers of frames, drawn before; then the same
command goes on. Ends with its exit code, or with 1 if it ends before all kills,
or goes on from an older checkpoint than the time before.
`benchmarks/learning.py --kills=10` compares such runs with others.
"""

import argparse
import functools
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
from scalable_agent import signals

_ROOT = pathlib.Path(__file__).resolve().parent.parent


def run_until(command: list[str], killed_at: float) -> tuple[int, int]:
  """Runs a program; kills it at a share of its frames.

  Args:
    command: what to run.
    killed_at: the share.

  Returns:
    Its exit code, and the frames that it went on from.
  """
  restored = 0
  with subprocess.Popen(
      command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      preexec_fn=functools.partial(
          signals.send_when_parent_dies, signal.SIGTERM)) as process:
    for line in process.stdout:
      print(line, end='', flush=True)
      if match := re.search(r'Going on from .*, ([\d,]+) frames', line):
        restored = int(match[1].replace(',', ''))
      if match := re.match(r'([\d,]+) of ([\d,]+) frames', line):
        frames, total = (int(x.replace(',', '')) for x in match.groups())
        if frames >= killed_at * total:
          process.kill()
          print(f'Killed at {frames} frames.', flush=True)
          break
  return process.returncode, restored


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--kills', type=int, default=10)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('flags', nargs='+', metavar='FLAGS',
                      help='flags of experiment.py, after --')
  args = parser.parse_args()
  command = [sys.executable, str(_ROOT / 'experiment.py'), *args.flags,
             '--progress_secs=0.5', '--save_checkpoint_secs=5']
  before = 0
  shares = np.sort(np.random.default_rng(args.seed).random(args.kills))
  for share in [*shares, float('inf')]:
    code, restored = run_until(command, share)
    if restored < before:
      print(f'It went on from {restored} frames, and from {before} before.')
      return 1
    if code != -signal.SIGKILL and share < 1:
      print(f'It has ended before all kills, with {code}.')
      return 1
    before = restored
  return code


if __name__ == '__main__':
  sys.exit(main())
