# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Kills what a run on a cluster consists of, again and again.

  python benchmarks/storm.py --kills=50 --out=DIRECTORY [--every_s=10]
      [--learners=2]

A cluster of two nodes on this machine trains catch with two actor workers.
Every few seconds, one of these is hit, at random: an actor worker, a process of
its environments, a learner, the second node with all that runs there (it
comes back), the program itself (the same command goes on), each with SIGKILL;
or an actor worker with SIGSTOP. The next hit comes when all act again; a worker
that is stopped is replaced meanwhile, after 30 s.

Prints a line of JSON for each hit: how long no new frame was learned, which
frames were lost, how much memory is used. Then it ends the run with SIGTERM,
and lets it go on to an exact number of frames. Ends with 1 if the run hung,
ended wrongly, counted wrongly, or left a process or shared memory.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

import numpy as np
import psutil
from ray import cluster_utils

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_HANG_S = 240.
_MARK = 'SCALABLE_AGENT_STORM'  # An environment variable of its processes.
_SEEN_S = 5.  # By then, the death of a process is known.
_FRAMES_PER_UPDATE = 40
_NUM_WORKERS = 2
_FLAGS = (
    '--level_name=catch', '--num_action_repeats=1', '--num_actors=4',
    '--unroll_length=10', '--batch_size=4', '--num_actor_groups=1',
    '--xla=none', f'--num_actor_workers={_NUM_WORKERS}',
    '--num_cpus_per_actor_worker=1', '--num_cpus_per_learner=1',
    '--progress_secs=0.5',
    '--save_checkpoint_secs=5', '--hang_timeout_s=30')
# The chance of each kind of hit.
_KINDS = {'worker': .35, 'environment': .25, 'learner': .15, 'node': .08,
          'program': .1, 'stopped worker': .07}


class Run:
  """The program, and what it has printed."""

  def __init__(self, address: str, logdir: str, num_learners: int):
    self._command = [sys.executable, 'experiment.py', *_FLAGS,
                     f'--ray_address={address}', f'--logdir={logdir}',
                     f'--num_learners={num_learners}']
    self.num_frames = 0
    self.restored: collections.deque[int] = collections.deque()
    self.text = ''
    self.is_complete = False  # All workers act.

  def start(self, total: int = 10**9) -> None:
    self.process = subprocess.Popen(
        [*self._command, f'--total_environment_frames={total}'], cwd=_ROOT,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    self._thread = threading.Thread(target=self._read, daemon=True)
    self._thread.start()

  def wait(self) -> int:
    code = self.process.wait(_HANG_S)
    self._thread.join()
    return code

  def _read(self):
    for line in self.process.stdout:
      self.text += line
      if match := re.search(r'Going on from .*, ([\d,]+) frames', line):
        self.restored.append(int(match[1].replace(',', '')))
      if match := re.match(r'([\d,]+) of [\d,]+ frames', line):
        self.num_frames = int(match[1].replace(',', ''))
        self.is_complete = f'{_NUM_WORKERS} of {_NUM_WORKERS} workers' in line


class Storm:
  """A cluster with a run, and what hits them."""

  def __init__(self, logdir: str, seed: int, num_learners: int):
    self._mark = uuid.uuid4().hex
    self._num_learners = num_learners
    os.environ[_MARK] = self._mark
    self.rng = np.random.default_rng(seed)
    self.cluster = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={'num_cpus': 2, 'object_store_memory': 100_000_000})
    self._add_node()
    self.run = Run(self.cluster.address, logdir, num_learners)
    self.run.start()

  def _add_node(self):
    self._second = self.cluster.add_node(
        num_cpus=2, object_store_memory=100_000_000)

  def wait_for_frames(self) -> float:
    """Waits until all act and learn; returns how long there was no frame."""
    begin_s = last_s = time.monotonic()
    self.run.is_complete = False
    before, gap_s = self.run.num_frames, 0.
    while True:
      time.sleep(0.1)
      now_s = time.monotonic()
      if self.run.num_frames != before:
        gap_s, before = max(gap_s, now_s - last_s), self.run.num_frames
        last_s = now_s
        if (self.run.is_complete and now_s - begin_s > _SEEN_S
            and self._all_are_there()):
          return gap_s
      if now_s - begin_s > _HANG_S or self.run.process.poll() is not None:
        raise RuntimeError(f'No new frame for {now_s - last_s:.0f} s, exit '
                           f'code {self.run.process.poll()}:\n'
                           + self.run.text[-3000:])

  def _all_are_there(self) -> bool:
    # The last frames of learners that are lost may be printed after their end.
    return (len(self.processes('LearnerWorker')) == self._num_learners and
            len(self.processes('ActorWorker')) >= _NUM_WORKERS)

  def processes(self, name: str) -> list[psutil.Process]:
    """Returns the processes of the run whose command has a name in it."""
    found = []
    # One whose parent has died is no child any more, but has its environment.
    for process in psutil.process_iter():
      try:
        if (name in ' '.join(process.cmdline())
            and process.environ().get(_MARK) == self._mark):
          found.append(process)
      except psutil.Error:  # It has ended meanwhile.
        pass
    return found

  def hit(self, kind: str) -> None:
    workers = self.processes('ActorWorker')
    if kind == 'program':
      self.run.process.kill()
      self.run.process.wait()
      self.run.start()
    elif kind == 'node':
      self.cluster.remove_node(self._second, allow_graceful=False)
      self._add_node()
    elif kind == 'learner':
      self.rng.choice(self.processes('LearnerWorker')).kill()
    elif kind == 'worker':
      self.rng.choice(workers).kill()
    elif kind == 'stopped worker':
      self.rng.choice(workers).suspend()
    else:
      worker = self.rng.choice(workers)
      self.rng.choice([p for p in worker.children(recursive=True)
                       if 'forkserver' in ' '.join(p.cmdline())]).kill()

  def megabytes(self) -> dict[str, float]:
    """Returns the memory of each kind of process, its own and shared."""
    def own(processes):
      return sum(p.memory_full_info().uss for p in processes) / 1e6
    return {'program': own([psutil.Process(self.run.process.pid)]),
            'learner': own(self.processes('LearnerWorker')),
            'workers': own(self.processes('ActorWorker')),
            'raylets': own(self.processes('raylet/raylet')),
            'shm': psutil.disk_usage('/dev/shm').used / 1e6}


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--kills', type=int, default=50)
  parser.add_argument('--every_s', type=float, default=10.)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--learners', type=int, choices=(1, 2), default=1)
  parser.add_argument('--out', required=True)
  args = parser.parse_args()
  shm = set(os.listdir('/dev/shm'))
  out = pathlib.Path(args.out).absolute()  # The program runs elsewhere.
  storm = Storm(str(out / 'run'), args.seed, args.learners)
  try:
    return _hit_and_check(storm, args, out, shm)
  finally:
    storm.run.process.kill()
    storm.cluster.shutdown()


def _hit_and_check(storm, args, out, shm):
  """Kills; returns the exit code, 1 if something was not as it should be."""
  run = storm.run
  storm.wait_for_frames()
  gaps: dict[str, list[float]] = collections.defaultdict(list)
  num_lost = 0
  kinds = list(_KINDS)
  for index in range(args.kills):
    time.sleep(storm.rng.exponential(args.every_s))
    kind = str(storm.rng.choice(kinds, p=list(_KINDS.values())))
    before = run.num_frames
    run.restored.clear()
    storm.hit(kind)
    gap_s = storm.wait_for_frames()
    lost = before - run.restored[0] if run.restored else 0
    num_lost += max(lost, 0)
    gaps[kind].append(gap_s)
    print(json.dumps({
        'index': index, 'kind': kind, 'gap_s': round(gap_s, 1),
        'frames': run.num_frames, 'lost': lost,
        **{k: round(v) for k, v in storm.megabytes().items()}}), flush=True)
  problems = []
  run.process.send_signal(signal.SIGTERM)
  if run.wait():
    problems.append(f'SIGTERM: exit code {run.process.returncode}')
  total = (run.num_frames // _FRAMES_PER_UPDATE + 100) * _FRAMES_PER_UPDATE
  run.start(total)
  code = run.wait()
  [number, frames] = re.findall(
      r'Saved .*ckpt-(\d+), ([\d,]+) frames', run.text)[-1]
  if code or int(frames.replace(',', '')) != total or (
      int(number) * _FRAMES_PER_UPDATE != total):
    problems.append(f'The end: {code}, {number} updates, {frames} frames, '
                    f'not {total}')
  if 'Traceback' in run.text:
    problems.append('There was a traceback.')
  (out / 'output.txt').write_text(run.text)
  time.sleep(5)
  problems += [f'A process is left: {" ".join(p.cmdline())}' for p in
               storm.processes('ActorWorker') + storm.processes('Learner')
               + storm.processes('forkserver')]
  storm.cluster.shutdown()
  left = set(os.listdir('/dev/shm')) - shm
  problems += [f'Shared memory is left: {name}' for name in left]
  for kind, values in gaps.items():
    print(f'{kind}: {len(values)} times, no frame for '
          f'{np.median(values):.0f} s (median), {max(values):.0f} s (most)')
  print(f'{args.kills} hits, {num_lost} frames lost of {total}. '
        + (' '.join(problems) or 'No problem.'))
  return int(bool(problems))


if __name__ == '__main__':
  sys.exit(main())
