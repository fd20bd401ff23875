# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares the speed of training with that of other programs, on Pong.

  python benchmarks/peers.py --network=shallow
  python benchmarks/peers.py --network=deep --window_s=180
  python benchmarks/peers.py --network=shallow --try_settings --window_s=20

The peers: sample-factory's APPO with V-trace, RLlib's IMPALA, DI-engine's
IMPALA, stable-baselines3's PPO and A2C. Each peer runs in a virtual environment
of its own, which is made if missing. If a peer cannot be installed, its line
has the reason. The build of PyTorch without CUDA is enough, and smaller by
gigabytes: pass its requirement, for example `--torch=torch==2.13.0+cpu`.

All programs do the same work: ALE Pong, grey 84 x 84 frames, four stacked, four
per step, no sticky actions; the paper's shallow or deep network without LSTM
(the number of parameters is checked); unrolls of 20 steps, 32 unrolls per
update, and each sample is trained on once. Ours is the recipe pong_two_cores
with that batch, without its replay.

Every run starts from the beginning. Steps are counted in the environments, not
by the program, from the first update after `--warm_up_s` to the first update
after another `--window_s`. "Trained" is the number of samples in these updates
divided by the number of steps: clearly less than 100 % means that samples are
thrown away. Memory is the proportional set size of all processes, read every
ten seconds; the largest value counts. Ours and the peers take turns, A B C A B
C. A ratio, ours / peer, is the median of the ratios within the rounds; within
10 % the result is called a tie. If a peer fails, or makes no update for
`--hang_s`, its line has the error. The lines on stderr also have the number of
cores that other programs took. If this number is not near 0, the rate is not
valid.

The settings of all peers are for two cores: on a larger machine, peers use no
more cores, and our program does.

`--try_settings` runs all settings in this file once, also ours. Without this
flag, the first setting of each list is measured.
"""

import argparse
import datetime
import functools
import json
import math
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import psutil

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
from scalable_agent.processes import signals
import venvs

WORKERS = pathlib.Path(__file__).resolve().parent / 'peers'
_WORK = {'batch_size': 32, 'unroll_length': 20}
# Torso and two linear heads, for six actions and the value.
_NUM_PARAMETERS = {'shallow': 677_943, 'deep': 1_091_031}
_TIE = 0.1
_MEMORY_PERIOD_S = 10


class Peer(NamedTuple):
  """A program that trains on Pong.

  Attributes:
    title: for tables; {} is the version.
    worker: file in benchmarks/peers.
    venv: name of its virtual environment.
    package: its version is named; None for this project.
    requirements: for pip, beside PyTorch.
    settings: per network, all that were tried, the best one first.
    without_dependencies: packages that pip installs with `--no-deps`.
  """
  title: str
  worker: str
  venv: str
  package: str | None
  requirements: tuple
  settings: dict
  without_dependencies: tuple = ()


def _ours_settings():
  flags = (['--num_actors=96'], ['--num_actors=64'], ['--num_actors=32'],
           ['--num_actors=64', '--num_actor_groups=4'],
           ['--num_actors=32', '--xla=all'])
  return {network: [{'flags': f} for f in flags]
          for network in ('shallow', 'deep')}


def _variants(base, *changes):
  """Returns the base, and the base with each of the changes."""
  return [base, *({**base, **change} for change in changes)]


def _sb3_settings(algorithm):
  base = {'algorithm': algorithm, 'games': 'ale_vector', 'env_threads': 2,
          'torch_threads': 2, 'channels_last': False}
  changes = ({'torch_threads': 1}, {'games': 'subproc'}, {'games': 'dummy'})
  return {
      'shallow': _variants(base, {'channels_last': True}, *changes),
      'deep': _variants({**base, 'channels_last': True},
                        {'channels_last': False}, *changes)}


def _appo_settings():
  workers = {'num_workers': 2, 'num_envs_per_worker': 16,
             'worker_num_splits': 2, 'serial': False, 'learner_threads': 1,
             'channels_last': False}
  serial = {'num_workers': 1, 'num_envs_per_worker': 32, 'worker_num_splits': 1,
            'serial': True, 'learner_threads': 2}
  return {
      'shallow': _variants(workers, {'learner_threads': 2}, {'num_workers': 1},
                           {'num_envs_per_worker': 32}, serial),
      'deep': _variants({**workers, **serial, 'channels_last': True},
                        {'channels_last': False}, {'learner_threads': 1},
                        {**workers, 'channels_last': True}, workers)}


def _rllib_settings():
  driver = {'games': 'ale_vector', 'env_threads': 2, 'num_env_runners': 0,
            'num_envs_per_env_runner': 32, 'learner_threads': 2,
            'channels_last': False}
  two = {'env_threads': 1, 'num_env_runners': 2, 'num_envs_per_env_runner': 16}
  changes = (two, {**two, 'learner_threads': 1},
             {**two, 'learner_threads': 1, 'games': 'sync'},
             {'num_env_runners': 1, 'env_threads': 1})
  return {'shallow': _variants(driver, *changes),
          'deep': _variants({**driver, 'channels_last': True}, *changes)}


def _di_engine_settings():
  base = {'env_manager': 'subprocess', 'shared_memory': True,
          'torch_threads': 2, 'channels_last': False}
  changes = ({'torch_threads': 1}, {'shared_memory': False},
             {'env_manager': 'base', 'shared_memory': False})
  return {
      'shallow': _variants(base, *changes, {'channels_last': True}),
      'deep': _variants({**base, 'channels_last': True},
                        {'channels_last': False}, *changes)}


# DI-engine requires setuptools <= 66.1.1 and recent builds of PyTorch a later
# version, so pip finds no versions that fit. DI-engine also runs without
# setuptools: pip installs DI-engine with `--no-deps`, and the imports of
# DI-engine are listed here.
_DI_ENGINE = (
    'ale-py==0.12.1', 'opencv-python-headless', 'gym==0.25.1', 'gymnasium',
    'numpy<2', 'DI-treetensor', 'DI-toolkit', 'trueskill', 'tensorboardX',
    'wandb<=0.19.0', 'matplotlib', 'easydict', 'pyyaml', 'enum-tools',
    'cloudpickle', 'hickle', 'tabulate', 'click', 'flask<=2.0.3',
    'werkzeug<=2.0.3', 'requests', 'responses', 'URLObject', 'pynng',
    'sniffio', 'redis', 'mpire', 'einops', 'yapf==0.29.0')

_OURS = Peer('scalable_agent', 'ours.py', '', None, (), _ours_settings())
_SB3 = ('stable-baselines3==2.9.2', 'ale-py==0.12.1', 'opencv-python-headless')
_PEERS = {
    'sample_factory': Peer(
        'sample-factory {} APPO with V-trace', 'appo.py', 'sample_factory',
        'sample-factory', ('sample-factory==2.1.1', 'ale-py==0.12.1'),
        _appo_settings()),
    'rllib': Peer(
        'RLlib {} IMPALA', 'rllib.py', 'ray', 'ray',
        ('ray[rllib]==2.60.0', 'ale-py==0.12.1', 'opencv-python-headless'),
        _rllib_settings()),
    'di_engine': Peer(
        'DI-engine {} IMPALA', 'di_engine.py', 'di_engine', 'DI-engine',
        _DI_ENGINE, _di_engine_settings(), ('DI-engine==0.5.3',)),
    'sb3_ppo': Peer(
        'stable-baselines3 {} PPO', 'sb3.py', 'sb3', 'stable-baselines3',
        _SB3, _sb3_settings('ppo')),
    'sb3_a2c': Peer(
        'stable-baselines3 {} A2C', 'sb3.py', 'sb3', 'stable-baselines3',
        _SB3, _sb3_settings('a2c')),
}


class RunError(Exception):
  """A program failed, or made no updates."""


class Run:
  """A training program: all its processes, and the files of its run."""

  def __init__(self, command, directory):
    self._directory = pathlib.Path(directory)
    self._log = self._directory / 'log'
    with open(self._log, 'wb') as log:
      self._child = subprocess.Popen(
          command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log,
          stderr=subprocess.STDOUT, env=dict(
              os.environ, PEERS_RUN=str(directory), PYTHONPATH=str(WORKERS),
              CUDA_VISIBLE_DEVICES='', RAY_USAGE_STATS_ENABLED='0',
              PYTHONUNBUFFERED='1', TF_CPP_MIN_LOG_LEVEL='2'),
          preexec_fn=functools.partial(
              signals.send_when_parent_dies, signal.SIGTERM))
    self._processes = {psutil.Process(self._child.pid)}

  def processes(self):
    """Returns all processes so far; some may have ended."""
    # psutil's `children` loses the processes of a parent that has ended.
    pids = {p.pid for p in self._processes if p.is_running()}
    for process in psutil.process_iter():  # Parents come before children.
      try:
        if process.ppid() in pids:
          pids.add(process.pid)
          self._processes.add(process)
      except psutil.Error:
        pass  # The process has ended.
    return self._processes

  def updates(self):
    """Returns all updates so far: `[time, steps until then, its samples]`."""
    path = self._directory / 'updates'
    if not path.exists():
      return []
    lines = path.read_text().split('\n')[:-1]  # The last may be incomplete.
    return [[float(x) for x in line.split()] for line in lines]

  def last_update(self):
    """Returns the time of the last update, -inf if there was none."""
    updates = self.updates()
    return updates[-1][0] if updates else -math.inf

  def num_parameters(self):
    return int((self._directory / 'parameters').read_text())

  def has_finished(self):
    """Returns whether the program has ended without an error."""
    return self._child.poll() == 0

  def check(self):
    """Raises RunError if the program has ended."""
    if self._child.poll() is not None:
      raise RunError(
          f'ended with {self._child.returncode}: {self.last_words()}')

  def no_update(self, seconds):
    """Returns the error for a program that makes no updates."""
    return RunError(
        f'no update in {seconds:g} s; its log ends with: {self.last_words()}')

  def last_words(self):
    """Returns the last line of the log with an error, else the last line."""
    lines = [line.strip() for line in self._log.read_text(
        errors='replace').splitlines() if line.strip()] or ['(no output)']
    errors = [line for line in lines if 'Error' in line]
    return (errors or lines)[-1][:200]

  def kill(self):
    for process in self.processes():
      try:
        process.kill()
      except psutil.Error:
        pass
    self._child.wait()
    psutil.wait_procs(self._processes, timeout=30)


def sum_over(processes, value):
  total = 0
  for process in processes:
    try:
      total += value(process)
    except psutil.Error:
      pass  # The process has ended.
  return total


def cpu_seconds(process):
  times = process.cpu_times()
  return times.user + times.system


def busy_seconds():
  """Returns the CPU time of all programs, and stolen time, so far."""
  t = psutil.cpu_times()  # Other times include the times of guests.
  return t.user + t.nice + t.system + t.irq + t.softirq + t.steal


def _pss_bytes(process):
  return process.memory_full_info().pss


def measure(python, worker, settings, args, num_parameters=None):
  """Starts a program, measures its speed and ends the program.

  Args:
    python: the Python that runs the program.
    worker: file in benchmarks/peers.
    settings: settings of the worker.
    args: flags of this benchmark.
    num_parameters: the number of parameters that the program must train; None
      for no check.

  Returns:
    A dictionary of measurements.

  Raises:
    RunError: the program failed or hung, or trains another network.
  """
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
    run = Run([python, str(WORKERS / worker), json.dumps(settings)], directory)
    try:
      return _watch(run, num_parameters, args)
    finally:
      run.kill()


def _wait_for_update(run, since, limit_s):
  """Waits until there is an update at the time `since` or later."""
  start = time.monotonic()
  while True:
    run.check()
    run.processes()
    if run.last_update() >= since:
      return
    if time.monotonic() > start + limit_s:
      raise run.no_update(limit_s)
    time.sleep(0.5)


def _wait(run, seconds, hang_s):
  """Waits while a run makes updates; returns its largest memory in bytes."""
  end, next_memory, peak = time.monotonic() + seconds, 0, 0
  while time.monotonic() < end:
    run.check()
    if time.monotonic() - run.last_update() > hang_s:
      raise run.no_update(hang_s)
    if time.monotonic() >= next_memory:
      peak = max(peak, sum_over(run.processes(), _pss_bytes))
      next_memory = time.monotonic() + _MEMORY_PERIOD_S
    time.sleep(0.5)
  return peak


def _watch(run, num_parameters, args):
  """Returns the measurements of a run in progress."""
  _wait_for_update(run, 0, args.start_timeout_s)
  if num_parameters not in (None, run.num_parameters()):
    raise RunError(f'trains {run.num_parameters():,} parameters instead of '
                   f'{num_parameters:,}')
  _wait(run, args.warm_up_s, args.hang_s)
  start = time.monotonic()
  cpu_s, busy_s = sum_over(run.processes(), cpu_seconds), busy_seconds()
  peak = _wait(run, args.window_s, args.hang_s)
  end, busy_s = time.monotonic(), busy_seconds() - busy_s
  cpu_s = sum_over(run.processes(), cpu_seconds) - cpu_s
  # A hang would go unnoticed if no update after the window were needed.
  _wait_for_update(run, end, args.hang_s)
  updates = [u for u in run.updates() if u[0] >= start]
  last = next(i for i, u in enumerate(updates) if u[0] >= end)
  if not last:
    raise RunError(f'no update in the window of {args.window_s:g} s')
  seconds = updates[last][0] - updates[0][0]
  num_steps = updates[last][1] - updates[0][1]
  num_samples = sum(samples for _, _, samples in updates[1:last + 1])
  return {
      'steps_per_s': num_steps / seconds,
      'trained': num_samples / num_steps,
      'samples_per_update': num_samples / last,
      'samples_per_s': num_samples / seconds,
      'num_parameters': run.num_parameters(),
      'num_updates': last,
      'cpu_cores': cpu_s / (end - start),
      'other_cores': (busy_s - cpu_s) / (end - start),
      'peak_pss_mb': peak / 2**20,
  }


def _version(python, package):
  code = f'from importlib import metadata as m; print(m.version("{package}"))'
  return subprocess.run([python, '-c', code], check=True, text=True,
                        stdout=subprocess.PIPE, timeout=60).stdout.strip()


def install(peer, args):
  """Returns the Python of a program, and its title with the version."""
  if peer is _OURS:
    return sys.executable, peer.title
  python = venvs.make(
      pathlib.Path(args.venvs) / peer.venv, [args.torch, *peer.requirements],
      peer.without_dependencies)
  return python, peer.title.format(_version(python, peer.package))


def measure_and_say(python, title, peer, settings, args):
  """Calls `measure` and prints a line on stderr."""
  try:
    result = measure(
        python, peer.worker,
        {**_WORK, 'network': args.network, **settings}, args,
        _NUM_PARAMETERS[args.network])
  except RunError as e:
    raise RunError(f'{title} {e}') from e
  print(f'{datetime.datetime.now():%H:%M:%S} {title}: '
        f'{result["steps_per_s"]:,.1f} steps/s, '
        f'{result["cpu_cores"]:.2f} cores (others: '
        f'{result["other_cores"]:.2f}), {result["peak_pss_mb"]:,.0f} MB, '
        f'{result["num_updates"]} updates of '
        f'{result["samples_per_update"]:.0f} samples, '
        f'{result["trained"]:.0%} trained', file=sys.stderr, flush=True)
  return result


def compare(peers, args):
  """Measures ours and the peers in turn.

  Returns:
    For every peer `{title, settings, pairs: [[ours, peer], ...], error}`. There
    is one pair per round, with the same measurement of ours for all peers.
    Pairs that were measured before an error are kept.
  """
  pythons, results = [], []
  for peer in peers:
    python, title, error = None, peer.title.format('-'), None
    try:
      python, title = install(peer, args)
    except venvs.InstallError as e:
      error = str(e)
      print(error, file=sys.stderr, flush=True)
    pythons.append(python)
    results.append({'title': title, 'settings': peer.settings[args.network][0],
                    'pairs': [], 'error': error})
  for _ in range(args.rounds):
    try:
      ours = measure_and_say(sys.executable, 'ours', _OURS,
                             _OURS.settings[args.network][0], args)
    except RunError as e:
      for result in results:
        result['error'] = result['error'] or str(e)
      break
    for peer, python, result in zip(peers, pythons, results):
      if result['error']:
        continue
      try:
        result['pairs'].append([ours, measure_and_say(
            python, result['title'], peer, result['settings'], args)])
      except RunError as e:
        result['error'] = str(e)
        print(e, file=sys.stderr, flush=True)
  return results


def row(result):
  """Returns the line of a peer in the table."""
  pairs, error = result['pairs'], result['error']
  if not pairs:
    return f'| {result["title"]} | {error} | | | | | | |'
  ours, peer = ([pair[i] for pair in pairs] for i in range(2))
  rates = lambda runs: ', '.join(f'{r["steps_per_s"]:,.0f}' for r in runs)
  gigabytes = lambda runs: max(r['peak_pss_mb'] for r in runs) / 1024
  ratios = [a['steps_per_s'] / b['steps_per_s'] for a, b in pairs]
  ratio = statistics.median(ratios)
  verdict = ('tie' if abs(ratio - 1) < _TIE else
             'faster' if ratio > 1 else 'slower')
  if error:
    verdict += f'; then: {error}'
  return (f'| {result["title"]} | {rates(ours)} | {rates(peer)} | {ratio:.2f} |'
          f' {min(ratios):.2f}-{max(ratios):.2f} | {verdict} | '
          f'{gigabytes(ours):.2f} / {gigabytes(peer):.2f} | '
          f'{min(r["trained"] for r in peer):.0%} |')


def try_settings(peer, args):
  """Measures every setting of a program once; returns their results."""
  try:
    python, title = install(peer, args)
  except venvs.InstallError as e:
    print(f'| {peer.title.format("-")} | | {e} |')
    return [{'title': peer.title.format('-'), 'error': str(e)}]
  results = []
  for settings in peer.settings[args.network]:
    result = {'title': title, 'settings': settings}
    try:
      result.update(measure_and_say(python, title, peer, settings, args))
      found = f'{result["steps_per_s"]:,.0f}'
    except RunError as e:
      result['error'] = found = str(e)
    print(f'| {title} | `{json.dumps(settings)}` | {found} |', flush=True)
    results.append(result)
  return results


def add_arguments(parser):
  """Adds the flags that `measure` and a comparison in turns need."""
  parser.add_argument('--rounds', type=int, default=3)
  parser.add_argument('--window_s', type=float, default=60)
  parser.add_argument('--warm_up_s', type=float, default=15)
  parser.add_argument('--start_timeout_s', type=float, default=300,
                      help='to the first update')
  parser.add_argument('--hang_s', type=float, default=120,
                      help='between updates')
  parser.add_argument('--json', help='file to write the results to')
  venvs.add_arguments(parser)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--network', choices=_NUM_PARAMETERS, required=True)
  parser.add_argument('--peers', help=(
      f'comma-separated, all if not given: {", ".join(_PEERS)}; with '
      '--try_settings also ours'))
  parser.add_argument('--try_settings', action='store_true')
  parser.add_argument('--ours_flags', default='',
                      help="further flags of experiment.py, for ours")
  add_arguments(parser)
  args = parser.parse_args()
  known = ['ours', *_PEERS] if args.try_settings else [*_PEERS]
  names = args.peers.split(',') if args.peers else known
  for name in set(names) - {*known}:
    parser.error(f'Unknown peer {name}: use some of {", ".join(known)}.')
  for settings in _OURS.settings[args.network]:
    settings['flags'] = settings['flags'] + shlex.split(args.ours_flags)

  # `sys.exit` runs the `finally` that ends the programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

  if args.try_settings:
    print('| program | settings | agent steps/s |\n|---|---|---:|')
    results = [try_settings({'ours': _OURS, **_PEERS}[name], args)
               for name in names]
  else:
    results = compare([_PEERS[name] for name in names], args)
    print('| peer | ours, steps/s | peer, steps/s | ours / peer | range | ours '
          'is | memory, GB | trained |\n|---|---|---|---:|---:|---|---:|---:|')
    for result in results:
      print(row(result))
    print()
    for result in results:
      print(f'{result["title"]}: {json.dumps(result["settings"])}')
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'network': args.network, 'window_s': args.window_s,
                 'cpu_cores': len(os.sched_getaffinity(0)),
                 'results': results}, f, indent=1)


if __name__ == '__main__':
  main()
