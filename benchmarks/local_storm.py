# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes faults at random moments, one after the other, on one machine.

  python benchmarks/local_storm.py --out=DIRECTORY [--faults=50] [--seed=1]

Trains catch with processes of environments, and saves a checkpoint every two
seconds. Each fault comes at a random moment; `_FAULTS` lists the faults. After
a fault that ends the program, the same command resumes the run. Prints a line
of JSON for each fault. Ends with 1 if the program hung, ended wrongly, lost
frames before the last checkpoint, printed a traceback, or left a process, a
socket or a file behind.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time

import psutil
from scalable_agent.modes import running

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_HANG_S = 120.
_FLAGS = (
    '--level_name=catch', '--agent=mlp', '--num_actors=4', '--unroll_length=10',
    '--batch_size=4', '--xla=none', '--progress_secs=0.2',
    '--save_checkpoint_secs=2', '--save_summaries_secs=1',
    '--step_timeout_s=5', '--max_environment_restarts=100000',
    '--total_environment_frames=1000000000')
# The signals that ask the program to end, and how often each one comes.
_ENDS = {'interrupt': [signal.SIGINT], 'terminate': [signal.SIGTERM],
         'hang up': [signal.SIGHUP],
         'interrupt twice': [signal.SIGINT] * 2,
         'terminate twice': [signal.SIGTERM] * 2}
_FAULTS = (*_ENDS, 'terminate all', 'kill', 'kill while stopped',
           'kill and damage', 'kill environment', 'kill server',
           'stop environment', 'stop server', 'pause all', 'full disk')


class Run:
  """The program, its output, and its processes."""

  def __init__(self, logdir: str):
    self._logdir = logdir
    self.text = ''
    self.num_frames = 0
    self.restored: int | None = None

  def start(self) -> None:
    self.restored = None
    self.process = subprocess.Popen(
        [sys.executable, 'experiment.py', *_FLAGS, f'--logdir={self._logdir}'],
        cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)
    self._thread = threading.Thread(target=self._read, daemon=True)
    self._thread.start()

  def _read(self):
    for line in self.process.stdout:
      self.text += line
      if (frames := running.restored(line)) is not None:
        self.restored = frames
      if progress := running.progress(line):
        self.num_frames, _ = progress

  def wait_for_frames(self) -> float:
    """Waits for two lines with new frames; returns the seconds."""
    begin_s = time.monotonic()
    for _ in range(2):
      before = self.num_frames
      while self.num_frames == before:
        time.sleep(0.05)
        if time.monotonic() - begin_s > _HANG_S or (
            self.process.poll() is not None):
          raise RuntimeError(f'No new frame, exit code {self.process.poll()}:\n'
                             + self.text[-3000:])
    return time.monotonic() - begin_s

  def wait(self) -> float:
    """Waits until the program has ended; returns the seconds."""
    begin_s = time.monotonic()
    self.process.wait(_HANG_S)
    self._thread.join(_HANG_S)  # Living children hold the pipe.
    if self._thread.is_alive():
      raise RuntimeError('Children live on.')
    return time.monotonic() - begin_s

  def end(self) -> None:
    """Kills the program and all of its processes that still run."""
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self.process.pid, signal.SIGKILL)
    self.process.wait()

  def children(self) -> tuple[psutil.Process, list[psutil.Process]]:
    """Returns the server of processes, and the environment processes."""
    server, = [p for p in psutil.Process(self.process.pid).children()
               if 'forkserver' in ' '.join(p.cmdline())]
    return server, server.children()


def hit(run: Run, fault: str, rng: random.Random, logdir: str) -> bool:
  """Makes a fault; returns whether the program is to end."""
  group = run.process.pid
  if fault in _ENDS:
    for number in _ENDS[fault]:
      run.process.send_signal(number)
      time.sleep(rng.uniform(0, 1))  # Within half a second, both are one.
  elif fault == 'terminate all':
    os.killpg(group, signal.SIGTERM)
  elif fault == 'kill':
    run.process.kill()
  elif fault == 'kill while stopped':
    os.killpg(group, signal.SIGSTOP)
    run.process.kill()
  elif fault == 'kill and damage':
    run.process.kill()
    run.wait()
    files = [p for p in pathlib.Path(logdir).glob('ckpt-*.data-*')]
    newest = max(files, key=lambda p: int(p.name.split('-')[1].split('.')[0]))
    os.truncate(newest, newest.stat().st_size // 2)
  elif fault == 'pause all':
    os.killpg(group, signal.SIGSTOP)
    time.sleep(8)  # Longer than a step may take.
    os.killpg(group, signal.SIGCONT)
    return False
  elif fault == 'full disk':
    _, hard = resource.prlimit(group, resource.RLIMIT_FSIZE)
    resource.prlimit(group, resource.RLIMIT_FSIZE, (1000, hard))
    time.sleep(5)
    resource.prlimit(group, resource.RLIMIT_FSIZE, (hard, hard))
    return False
  else:
    what, who = fault.split()
    server, environments = run.children()
    one = server if who == 'server' else rng.choice(environments)
    one.send_signal(signal.SIGKILL if what == 'kill' else signal.SIGSTOP)
    return False
  return True


def _storm(run, num_faults, rng, logdir):
  """Makes faults; returns problems, seconds of ends, and of gaps by fault."""
  problems, ends_s, gaps_s = [], [], collections.defaultdict(list)
  run.start()
  run.wait_for_frames()
  order = [_FAULTS[i % len(_FAULTS)] for i in range(num_faults)]
  rng.shuffle(order)
  for index, fault in enumerate(order):
    time.sleep(rng.uniform(0, 4))
    row = {'index': index, 'fault': fault, 'frames': run.num_frames}
    before, saved = run.num_frames, _newest(logdir)
    if hit(run, fault, rng, logdir):
      row['end_s'] = round(run.wait(), 1)
      row['code'] = run.process.returncode
      ends_s.append(row['end_s'])
      if row['end_s'] > 10:
        problems.append(f'{fault}: ended after {row["end_s"]} s')
      if fault in ('interrupt', 'terminate', 'hang up', 'terminate all') and (
          run.process.returncode):
        problems.append(f'{fault}: exit code {run.process.returncode}')
      run.start()
      gap_s = run.wait_for_frames()
      row['restored'] = run.restored
      # Nothing that was saved before the fault is lost.
      least = 0 if fault == 'kill and damage' else saved
      if (run.restored or 0) < least:
        problems.append(f'{fault}: {run.restored} of {saved} saved frames')
      if fault in ('interrupt', 'terminate', 'hang up', 'terminate all') and (
          (run.restored or 0) < before):
        problems.append(f'{fault}: {run.restored} of {before} frames')
    else:
      gap_s = run.wait_for_frames()
    gaps_s[fault].append(gap_s)
    row['gap_s'] = round(gap_s, 1)
    print(json.dumps(row), flush=True)
  run.process.send_signal(signal.SIGTERM)
  run.wait()
  return problems, ends_s, gaps_s


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--out', required=True)
  parser.add_argument('--faults', type=int, default=50)
  parser.add_argument('--seed', type=int, default=1)
  args = parser.parse_args()
  # With nohup SIGHUP is ignored, and programs inherit that.
  signal.signal(signal.SIGHUP, signal.SIG_DFL)
  # `sys.exit` runs the `finally` that ends the program.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  rng = random.Random(args.seed)
  out = pathlib.Path(args.out).absolute()  # The program runs elsewhere.
  out.mkdir(parents=True, exist_ok=True)
  logdir = str(out / 'run')
  shm = set(os.listdir('/dev/shm'))
  sockets = set(pathlib.Path('/tmp').glob('pymp-*'))
  run = Run(logdir)
  try:
    problems, ends_s, gaps_s = _storm(run, args.faults, rng, logdir)
  finally:
    run.end()
    (out / 'output.txt').write_text(run.text)
  if 'Traceback' in run.text:
    problems.append('There was a traceback.')
  expected = re.compile(r'(damaged-)?ckpt-\d+\..*|settings[-.].*|events\..*|'
                        r'agent\.json|spec\.json|checkpoint|episodes\.csv')
  left = [n for n in os.listdir(logdir) if not expected.fullmatch(n)]
  problems += [f'{name} is left.' for name in left]
  problems += [f'Shared memory is left: {name}'
               for name in set(os.listdir('/dev/shm')) - shm]
  # The next program removes the files of killed programs.
  problems += [f'{path} is left.' for path in
               set(pathlib.Path('/tmp').glob('pymp-*')) - sockets]
  for fault, values in sorted(gaps_s.items()):
    print(f'{fault}: {len(values)} times, new frames after '
          f'{statistics.median(values):.0f} s (median), {max(values):.0f} s '
          '(most)')
  print(f'{args.faults} faults, ends after {statistics.median(ends_s):.1f} s '
        f'(median), {max(ends_s):.1f} s (most). '
        + ('\n'.join(problems) or 'No problem.'))
  return int(bool(problems))


def _newest(logdir):
  """Returns the frames of the newest checkpoint: 40 in each update."""
  numbers = [int(p.name.split('-')[1].split('.')[0])
             for p in pathlib.Path(logdir).glob('ckpt-*.index')]
  return 40 * max(numbers, default=0)


if __name__ == '__main__':
  sys.exit(main())
