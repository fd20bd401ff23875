# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs experiment.py, and kills the program again and again.

  python benchmarks/killed.py --kills=10 [--seed=1] -- --recipe=memory FLAGS

Kills the program with SIGKILL at random numbers of frames, drawn at the start;
then the same command resumes the run. Ends with the exit code of the program,
or with 1 if the program ends before all kills, or resumes from fewer frames
than were learned ten seconds before the kill.
`benchmarks/learning.py --kills=10` compares such runs with others.
"""

import argparse
import functools
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
from scalable_agent.modes import running
from scalable_agent.processes import signals

_SAVE_S = 5
_MOST_LOST_S = 2 * _SAVE_S  # A checkpoint may be half written.
_ROOT = pathlib.Path(__file__).resolve().parent.parent


def run_until(command: list[str], killed_at: float) -> tuple[int, int, int]:
  """Runs a program, and kills the program at a share of its frames.

  Args:
    command: the command line of the program.
    killed_at: the share.

  Returns:
    The exit code, the frames at the start, and the frames that must have been
    saved.
  """
  with subprocess.Popen(
      command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      preexec_fn=functools.partial(
          signals.send_when_parent_dies, signal.SIGTERM)) as process:
    try:
      restored, saved = _follow(process, killed_at)
    except BaseException:
      process.terminate()
      raise
  return process.returncode, restored, saved


def _follow(process, killed_at):
  """Prints the output of a program, up to its end or the kill."""
  restored, past = 0, []
  for line in process.stdout:
    print(line, end='', flush=True)
    if (frames := running.restored(line)) is not None:
      restored = frames
    if progress := running.progress(line):
      frames, total = progress
      past.append((time.monotonic(), frames))
      if frames >= killed_at * total:
        process.kill()
        print(f'Killed at {frames} frames.', flush=True)
        break
  return restored, max((frames for at_s, frames in past
                        if time.monotonic() - at_s > _MOST_LOST_S), default=0)


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--kills', type=int, default=10)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('flags', nargs='+', metavar='FLAGS',
                      help='flags of experiment.py, after --')
  args = parser.parse_args()
  command = [sys.executable, str(_ROOT / 'experiment.py'), *args.flags,
             '--progress_secs=0.5', f'--save_checkpoint_secs={_SAVE_S}']
  # Ends the program, too.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  saved = 0
  shares = np.sort(np.random.default_rng(args.seed).random(args.kills))
  for share in [*shares, float('inf')]:
    least = saved
    code, restored, saved = run_until(command, share)
    if restored < least:
      print(f'It went on from {restored} frames, and had {least} before.')
      return 1
    if code != -signal.SIGKILL and share < 1:
      print(f'It has ended before all kills, with {code}.')
      return 1
    saved = max(saved, restored)
  return code


if __name__ == '__main__':
  sys.exit(main())
