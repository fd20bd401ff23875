# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Kills parts of a run on a cluster, again and again.

  python benchmarks/storm.py --kills=50 --out=DIRECTORY [--every_s=10]
      [--learners=2] [--kinds=worker,node]

A cluster of two nodes on this machine trains catch with two actor workers.
Every few seconds, a random part is hit: an actor worker, a process of its
environments, a learner, the second node with all its processes (the node comes
back), the program itself (the same command resumes the run), each with SIGKILL;
or an actor worker, a learner, or the second node with SIGSTOP. The next hit
comes when all workers act again. Stopped workers and learners are given up
after 30 s, the node by ray, with the settings of docs/machines.md. `--kinds`
are hit in turn instead.

Prints a line of JSON for each hit: the time until the program reported the
loss, the time without new frames, the lost frames, the memory. Then the
benchmark ends the run with SIGTERM, and resumes the run to an exact number of
frames. Ends with 1 if the run hung, ended wrongly, counted wrongly, lost frames
before a checkpoint, wrote objects of ray to disk, or left a process or shared
memory.
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
from scalable_agent.distributed import hosts
from scalable_agent.modes import running
from scalable_agent.scores import episodes_csv

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_HANG_S = 240.
_MARK = 'SCALABLE_AGENT_STORM'  # An environment variable of its processes.
_SEEN_S = 5.  # By then, the death of a process is known.
# The most seconds without a new frame: the time of a start with other load, and
# for a stopped part the time until the part is given up.
_MOST_GAP_S = 60.
_STOPPED_S = 30.
# Between checkpoints, and as much again to write one while all starts.
_SAVE_S = 5.
_MOST_LOST_S = 2 * _SAVE_S
_FRAMES_PER_UPDATE = 40
_FRAMES_PER_EPISODE = 9
_NUM_ACTORS = 4
_NUM_WORKERS = 2
_FLAGS = (
    '--level_name=catch', '--num_action_repeats=1', '--unroll_length=10',
    '--batch_size=4', f'--num_actors={_NUM_ACTORS}', '--num_actor_groups=1',
    '--xla=none', f'--num_actor_workers={_NUM_WORKERS}',
    '--num_cpus_per_actor_worker=1', '--num_cpus_per_learner=1',
    '--progress_secs=0.5', f'--save_checkpoint_secs={_SAVE_S:g}',
    f'--hang_timeout_s={_STOPPED_S:g}')
# The chance of each kind of hit.
_KINDS = {'worker': .35, 'environment': .25, 'learner': .15, 'node': .08,
          'program': .08, 'stopped worker': .05, 'stopped learner': .02,
          'stopped node': .02}


class Run:
  """The program and its output."""

  def __init__(self, address: str, logdir: str, num_learners: int):
    self._command = [sys.executable, 'experiment.py', *_FLAGS,
                     f'--ray_address={address}', f'--logdir={logdir}',
                     f'--num_learners={num_learners}']
    self.num_frames = 0
    self.past: list[tuple[float, int]] = []  # Times, and frames by then.
    self.losses_s: list[float] = []  # Times of reported losses.
    self.restored: collections.deque[int] = collections.deque()
    self.text = ''
    self.is_complete = False  # All workers act.

  def start(self, total: int = 10**9) -> None:
    self.process = subprocess.Popen(
        [*self._command, f'--total_environment_frames={total}'], cwd=_ROOT,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    self._thread = threading.Thread(target=self._read, daemon=True)
    self._thread.start()

  def least_frames(self, begin_s: float, end_s: float) -> int:
    """Returns the least number of frames within a time."""
    return min((frames for at_s, frames in self.past
                if begin_s <= at_s <= end_s), default=0)

  def longest_gap_s(self, begin_s: float) -> float:
    """Returns the longest time without a new frame since a time."""
    last_s, newest, gap_s = begin_s, None, 0.
    for at_s, frames in self.past:
      if frames != newest and at_s > begin_s:
        gap_s, last_s = max(gap_s, at_s - last_s), at_s
      newest = frames
    return gap_s

  def wait(self) -> int:
    code = self.process.wait(_HANG_S)
    self._thread.join()
    return code

  def _read(self):
    for line in self.process.stdout:
      self.text += line
      if 'is replaced: ' in line or 'Restarting from' in line:
        self.losses_s.append(time.monotonic())
      if (frames := running.restored(line)) is not None:
        self.restored.append(frames)
        self.past.append((time.monotonic(), frames))
      if progress := running.progress(line):
        self.num_frames, _ = progress
        self.past.append((time.monotonic(), self.num_frames))
        self.is_complete = f'{_NUM_WORKERS} of {_NUM_WORKERS} workers' in line


class Storm:
  """A cluster with a run, and the hits."""

  def __init__(self, logdir: str, seed: int, num_learners: int):
    self._mark = uuid.uuid4().hex
    self._num_learners = num_learners
    os.environ.update({_MARK: self._mark, **hosts.HEALTH_CHECK})
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

  def wait_for_frames(self) -> None:
    """Waits until all act and learn."""
    begin_s = last_s = time.monotonic()
    self.run.is_complete = False
    before = self.run.num_frames
    while True:
      time.sleep(0.1)
      now_s = time.monotonic()
      if self.run.num_frames != before:
        last_s, before = now_s, self.run.num_frames
        if (self.run.is_complete and now_s - begin_s > _SEEN_S
            and self._all_are_there()):
          return
      if now_s - begin_s > _HANG_S or self.run.process.poll() is not None:
        raise RuntimeError(f'No new frame for {now_s - last_s:.0f} s, exit '
                           f'code {self.run.process.poll()}:\n'
                           + self.run.text[-3000:])

  def _all_are_there(self) -> bool:
    # The last frames of learners that are lost may be printed after their end.
    return (len(self.processes('LearnerWorker')) == self._num_learners and
            len(self.processes('ActorWorker')) >= _NUM_WORKERS)

  def processes(self, name: str) -> list[psutil.Process]:
    """Returns the processes of the run with a name in the command."""
    found = []
    # An orphan is no child any more, but has the environment of its parent.
    for process in psutil.process_iter():
      try:
        if (name in ' '.join(process.cmdline())
            and process.environ().get(_MARK) == self._mark):
          found.append(process)
      except psutil.Error:  # The process has ended meanwhile.
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
    elif kind == 'stopped learner':
      self.rng.choice(self.processes('LearnerWorker')).suspend()
    elif kind == 'stopped node':
      self._stop_node()
    else:
      worker = self.rng.choice(workers)
      self.rng.choice([p for p in worker.children(recursive=True)
                       if 'forkserver' in ' '.join(p.cmdline())]).kill()

  def _stop_node(self):
    """Stops the second node until ray gives the node up; adds a new node."""
    processes = []
    for info in self._second.all_processes['raylet']:
      raylet = psutil.Process(info.process.pid)
      processes += [raylet, *raylet.children(recursive=True)]
    for process in processes:
      process.suspend()
    num_losses, begin_s = len(self.run.losses_s), time.monotonic()
    while len(self.run.losses_s) == num_losses:
      if time.monotonic() - begin_s > _HANG_S:
        raise RuntimeError('A stopped node was not given up.')
      time.sleep(0.1)
    self.cluster.remove_node(self._second, allow_graceful=False)
    for process in processes:
      if process.is_running():
        process.kill()
    self._add_node()

  def num_spilled(self) -> int:
    """Returns the number of objects that ray has written to disk."""
    session = pathlib.Path(self.cluster.head_node.get_session_dir_path())
    return sum(path.is_file() for path in session.glob('*spilled*/**/*'))

  def megabytes(self) -> dict[str, float]:
    """Returns the memory of each kind of process, its own and shared."""
    def own(processes):
      return sum(p.memory_full_info().uss for p in processes) / 1e6
    return {'program': own([psutil.Process(self.run.process.pid)]),
            'learner': own(self.processes('LearnerWorker')),
            'workers': own(self.processes('ActorWorker')),
            'raylets': own(self.processes('raylet/raylet')),
            'shm': psutil.disk_usage('/dev/shm').used / 1e6}


def episodes_problem(logdir: str, text: str, total: int) -> str:
  """Returns the error in the number of episodes in `episodes.csv`, or ''.

  Each learned frame is part of an episode. A game that is cut off is missing.
  After a return to a checkpoint, episodes of the next update may be there
  twice, at most two of each environment. This shows that no row is lost or
  written twice, not which unrolls were learned.

  Args:
    logdir: the log directory of the run.
    text: the output of the run.
    total: the number of learned frames.
  """
  num_starts = text.count('Resuming from') + 1
  num_cut = _NUM_ACTORS * num_starts + (
      _NUM_ACTORS // _NUM_WORKERS * text.count(' is replaced: '))
  least = (total - (_FRAMES_PER_EPISODE - 1) * num_cut) / _FRAMES_PER_EPISODE
  most = total / _FRAMES_PER_EPISODE + 2 * _NUM_ACTORS * num_starts
  number = len(episodes_csv.read(logdir))
  return '' if least <= number <= most else (
      f'There are {number} episodes, not {least:.0f} to {most:.0f}.')


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--kills', type=int, default=50)
  parser.add_argument('--every_s', type=float, default=10.)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--learners', type=int, choices=(1, 2), default=1)
  parser.add_argument('--kinds', help='comma-separated, to be hit in turn')
  parser.add_argument('--out', required=True)
  args = parser.parse_args()
  if args.kinds and (wrong := set(args.kinds.split(',')) - {*_KINDS}):
    parser.error(f'Unknown kinds {wrong}: use some of {", ".join(_KINDS)}.')
  shm = set(os.listdir('/dev/shm'))
  out = pathlib.Path(args.out).absolute()  # The program runs elsewhere.
  storm = Storm(str(out / 'run'), args.seed, args.learners)
  try:
    return _hit_and_check(storm, args, out, shm)
  finally:
    storm.run.process.kill()
    storm.cluster.shutdown()


def _hit_and_check(storm, args, out, shm):
  """Kills parts; returns the exit code, 1 after any problem."""
  run = storm.run
  storm.wait_for_frames()
  gaps: dict[str, list[float]] = collections.defaultdict(list)
  seen: dict[str, list[float]] = collections.defaultdict(list)
  num_lost = most_lost = 0
  problems = []
  kinds = args.kinds.split(',') if args.kinds else list(_KINDS)
  for index in range(args.kills):
    time.sleep(storm.rng.exponential(args.every_s))
    kind = (kinds[index % len(kinds)] if args.kinds else
            str(storm.rng.choice(kinds, p=list(_KINDS.values()))))
    before, begin_s = run.num_frames, time.monotonic()
    num_losses = len(run.losses_s)
    run.restored.clear()
    storm.hit(kind)
    storm.wait_for_frames()
    gap_s = run.longest_gap_s(begin_s)
    lost = max(before - run.restored[0], 0) if run.restored else 0
    num_lost, most_lost = num_lost + lost, max(lost, most_lost)
    gaps[kind].append(gap_s)
    if len(run.losses_s) > num_losses:
      seen[kind].append(run.losses_s[num_losses] - begin_s)
    if gap_s > _MOST_GAP_S + _STOPPED_S * kind.startswith('stopped'):
      problems.append(f'{kind}: no new frame for {gap_s:.0f} s.')
    if run.restored and run.restored[0] < run.least_frames(
        begin_s - _MOST_LOST_S, begin_s):
      problems.append(f'{kind}: {lost} frames were lost.')
    print(json.dumps({
        'index': index, 'kind': kind, 'gap_s': round(gap_s, 1),
        'seen_s': [round(s - begin_s, 1) for s in run.losses_s[num_losses:]],
        'frames': run.num_frames, 'lost': lost,
        **{k: round(v) for k, v in storm.megabytes().items()}}), flush=True)
  if num_spilled := storm.num_spilled():
    problems.append(f'ray has written {num_spilled} objects to disk.')
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
  # A kill of a further learner may lose episodes not yet sent to learner 0.
  if args.learners == 1 and (
      problem := episodes_problem(str(out / 'run'), run.text, total)):
    problems.append(problem)
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
          f'{np.median(values):.0f} s (median), {max(values):.0f} s (most)'
          + (f'; said after {np.median(seen[kind]):.1f} s (median), '
             f'{max(seen[kind]):.1f} s (most)' if seen[kind] else ''))
  print(f'{args.kills} hits, {num_lost} frames of {total} made again, at most '
        f'{most_lost} at once. '
        + (' '.join(problems) or 'No problem.'))
  return int(bool(problems))


if __name__ == '__main__':
  sys.exit(main())
