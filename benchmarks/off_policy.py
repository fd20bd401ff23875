# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares the speed of the off-policy algorithms with that of other programs.

  python benchmarks/off_policy.py
  python benchmarks/off_policy.py --what=sac,dqn --rounds=5
  python benchmarks/off_policy.py --what=updates

The peers: stable-baselines3, SBX (its twin in JAX) and, for sac and dqn, XuanCe
with TensorFlow. XuanCe does the same work, and once more runs as by default:
four environments (dqn: ten environments, layers of 128 and 128 units) and one
update with a batch of 256 after a step of all. Each peer runs in a
virtual environment of its own, see peers.py. The work (`--what`):

*   sac, td3, ddpg: HalfCheetah-v5, networks of 256 and 256 units, batches of
    256, one update per step of the environment. Ours has four environments.
*   dqn: CartPole-v1, 64 and 64 units, batches of 32, an update every four
    steps, without double Q-learning, which the peers do not have. Ours has
    32 environments, the peers one, and once more 32.
*   pong: ALE Pong as in peers.py, the network of Mnih et al. 2015, batches of
    32, an update every four steps. Ours is double Q-learning with eight
    environments. The peers have no double Q-learning, so the peers compute less
    per update.
*   mpo: HalfCheetah-v5 as above, against our SAC.
*   updates: HalfCheetah's SAC without environments: draws, copies and updates,
    with 1, 8 and 32 updates per call. Of ours, the table also has the share of
    the bound: the processor time of the matrix products of an update, divided
    by that of an update.
*   memory: the same for 32 sequences of 20 steps with an LSTM, and with a GRU,
    of 128 units and a burn-in of 10, and without memory for 640 transitions: of
    17 numbers, and of 391 numbers, as many as the features of the memory.

Every run starts from the beginning, and learning after 1,000 steps. Steps are
counted from the first update after `--warm_up_s` to the first one after another
`--window_s`. Ours and the peers take turns, A B C A B C; a ratio is the median
of the ratios within the rounds.

Processor time counts all processes of a program. Wall time is valid only if
other programs take no cores ("others"); processor time per update changes
little with other load, so this figure also serves on a shared machine. But
PyTorch's threads wait actively for each other: then pass `--torch_threads=1`.
"""

import argparse
import functools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers
import venvs

_CALLS = [1, 8, 32]
_MUJOCO = ('mujoco==3.3.7', 'gymnasium[mujoco]')
_GAMES = (*_MUJOCO, 'ale-py==0.12.1', 'opencv-python-headless')
_REQUIREMENTS = {
    'stable_baselines3': ('stable-baselines3==2.9.2', *_GAMES),
    'sbx': ('sbx-rl==0.28.0', 'stable-baselines3==2.9.2', *_GAMES),
    'xuance': ('xuance[tensorflow]==1.4.4', *_MUJOCO)}  # TensorFlow 2.19.
_OURS = 'scalable_agent'
_CHEETAH = ('--level_name=HalfCheetah-v5', '--hidden_sizes=256,256',
            '--batch_size=256', '--replay_steps=100000')
_FLAGS = {
    'dqn': ('--algorithm=ddqn', '--nodouble_q', '--level_name=CartPole-v1',
            '--hidden_sizes=64,64', '--batch_size=32', '--num_actors=32',
            '--environments_per_process=32',
            '--unroll_length=4', '--updates_per_step=0.25',
            '--replay_steps=100000'),
    'pong': ('--algorithm=ddqn', '--level_name=ALE/Pong-v5', '--agent=nature',
             '--num_actors=8', '--batch_size=32', '--updates_per_step=0.25',
             '--replay_steps=20000', '--min_replay_steps=1000'),
}
_COMMON = {'learning_starts': 1000, 'gradient_steps': 1}
_EVERY_STEP = {**_COMMON, 'train_freq': 1, 'batch_size': 256,
               'buffer_size': 100_000}
_EVERY_FOUR = {**_COMMON, 'train_freq': 4, 'batch_size': 32}
_HALF_CHEETAH = {'level': 'HalfCheetah-v5', 'hidden_sizes': [256, 256],
                 'arguments': _EVERY_STEP}
_PEER_SETTINGS = {
    **{name: {**_HALF_CHEETAH, 'algorithm': name.upper()}
       for name in ('sac', 'td3', 'ddpg')},
    'dqn': {'algorithm': 'DQN', 'level': 'CartPole-v1',
            'hidden_sizes': [64, 64],
            'arguments': {**_EVERY_FOUR, 'buffer_size': 100_000}},
    'pong': {'algorithm': 'DQN', 'level': 'Pong',
             'arguments': {**_EVERY_FOUR, 'buffer_size': 20_000}}}
_PEER_SETTINGS['updates'] = _PEER_SETTINGS['sac']
_XUANCE_WORK = ('sac', 'dqn')
# Its batch size, for `_batch_size`; learning starts as that of the others.
_XUANCE_DEFAULTS = {'arguments': {'learning_starts': 1000, 'batch_size': 256}}
_WORK = ('sac', 'td3', 'ddpg', 'dqn', 'pong', 'mpo', 'updates', 'memory')
_OF_CALLS = ('updates', 'memory')
_BOUND = 'products'  # Beside the numbers of calls in a worker's result.


class Program(NamedTuple):
  """A program and its settings for one kind of work."""
  title: str
  python: str
  worker: str
  settings: dict


def _ours(title, flags):
  return Program(title, sys.executable, 'ours_off_policy.py',
                 {'flags': list(flags)})


def _cheetah(algorithm):
  return (f'--algorithm={algorithm}', *_CHEETAH)


def _peers_of(what, args):
  """Returns the peers that can be installed."""
  programs = []
  for library in args.peers.split(',') if args.peers else []:
    is_xuance = library == 'xuance'
    if is_xuance and what not in _XUANCE_WORK:
      continue
    try:
      python = venvs.make(
          pathlib.Path(args.venvs) / f'off_policy_{library}',
          [args.torch, *_REQUIREMENTS[library]])
    except venvs.InstallError as e:
      print(f'{library}: {e}', file=sys.stderr, flush=True)
      continue
    make = functools.partial(
        Program, python=python,
        worker='xuance_off_policy.py' if is_xuance else 'sb3_off_policy.py')
    settings = {'library': library, 'torch_threads': args.torch_threads,
                'num_environments': 1, **_PEER_SETTINGS[what]}
    programs.append(make(library, settings=settings))
    if what == 'dqn':  # Eight updates after a step of all 32.
      programs.append(make(f'{library}, 32 environments', settings={
          **settings, 'num_environments': 32, 'arguments': {
              **settings['arguments'], 'train_freq': 1, 'gradient_steps': 8}}))
    if is_xuance:
      programs.append(make(f'{library}, its defaults', settings={
          **_XUANCE_DEFAULTS,
          **{name: settings[name] for name in ('algorithm', 'level')}}))
  return programs


def programs_of(what: str, args: argparse.Namespace) -> list[Program]:
  """Returns the name of ours, then the names of the peers."""
  if what == 'mpo':
    return [_ours('MPO', _cheetah('mpo')), _ours('SAC', _cheetah('sac'))]
  if what == 'updates':
    ours = [_ours(f'{_OURS}, --xla={xla}', (*_cheetah('sac'), f'--xla={xla}'))
            for xla in ('none', 'all')]
    return [p._replace(settings={**p.settings, 'calls': _CALLS, 'bound': True})
            for p in (*ours, *_peers_of(what, args))]
  if what == 'memory':
    plain = (*_cheetah('sac'), '--batch_size=640')
    memory = (*_cheetah('sac'), '--use_lstm', '--lstm_units=128',
              '--sequence_length=20', '--burn_in_steps=10', '--batch_size=32')
    return [
        program._replace(settings={
            **program.settings, 'calls': [1], 'num_inputs': num_inputs})
        for program, num_inputs in (
            (_ours('transitions of 17 numbers', plain), 17),
            (_ours('transitions of 391 numbers', plain), 391),
            (_ours('sequences, LSTM', memory), 17),
            (_ours('sequences, GRU', (*memory, '--core=gru')), 17))]
  return [_ours(_OURS, _FLAGS.get(what) or _cheetah(what)),
          *_peers_of(what, args)]


def compare(what: str, programs: list[Program],
            args: argparse.Namespace) -> dict[str, list[dict]]:
  """Measures programs in turn; returns the results of each by its title."""
  results: dict[str, list[dict]] = {p.title: [] for p in programs}
  failed = set()
  for _ in range(args.rounds):
    print(f'{what}: load {os.getloadavg()[0]:.1f} on '
          f'{len(os.sched_getaffinity(0))} cores', file=sys.stderr, flush=True)
    for program in programs:
      if program.title in failed:
        continue
      try:
        result = peers.measure(
            program.python, program.worker, program.settings, args)
      except peers.RunError as e:
        print(f'{what}: {program.title} {e}', file=sys.stderr, flush=True)
        failed.add(program.title)
        continue
      num_updates = result['samples_per_s'] / _batch_size(program)
      result['updates_per_s'] = num_updates
      result['cpu_ms'] = 1e3 * result['cpu_cores'] / num_updates
      results[program.title].append(result)
      print(f'{what}: {program.title} {result["steps_per_s"]:,.1f} steps/s, '
            f'{num_updates:,.1f} updates/s, {result["cpu_ms"]:.2f} ms of '
            f'processor time per update, {result["cpu_cores"]:.2f} cores '
            f'(others: {result["other_cores"]:.2f})',
            file=sys.stderr, flush=True)
  return results


def _batch_size(program):
  if 'flags' not in program.settings:
    return program.settings['arguments']['batch_size']
  [size] = [int(flag.split('=')[1]) for flag in program.settings['flags']
            if flag.startswith('--batch_size=')]
  return size


def rows(what: str, results: dict[str, list[dict]]) -> list[str]:
  """Returns the lines of the table for one kind of work."""
  (_, ours), *_ = results.items()
  lines = []
  for title, runs in results.items():
    if not runs:
      lines.append(f'| {what} | {title} | failed | | | | | | |')
      continue
    median = lambda name, runs=runs: statistics.median(r[name] for r in runs)
    rates = ', '.join(f'{r["steps_per_s"]:,.0f}' for r in runs)
    ratios = ['', '']
    if ours and runs is not ours:
      ratios = [
          _ratio(ours, runs, 'steps_per_s'), _ratio(runs, ours, 'cpu_ms')]
    lines.append(
        f'| {what} | {title} | {rates} | {median("updates_per_s"):,.1f} | '
        f'{ratios[0]} | {median("cpu_ms"):.2f} | {ratios[1]} | '
        f'{runs[0]["num_parameters"]:,} | {median("other_cores"):.2f} |')
  return lines


def _ratio(ones, others, name):
  ratios = [a[name] / b[name] for a, b in zip(ones, others)]
  return (f'{statistics.median(ratios):.2f} ({min(ratios):.2f} to '
          f'{max(ratios):.2f})')


def compare_updates(
    programs: list[Program], args: argparse.Namespace) -> dict[str, list[dict]]:
  """Measures updates alone, in turn."""
  results: dict[str, list[dict]] = {p.title: [] for p in programs}
  for _ in range(args.rounds):
    for program in programs:
      try:
        results[program.title].append(_measure_updates(program))
      except subprocess.CalledProcessError as e:
        print(f'{program.title}: {e}', file=sys.stderr, flush=True)
        continue
      print(f'{program.title}: {results[program.title][-1]}', file=sys.stderr,
            flush=True)
  return results


def _measure_updates(program):
  with tempfile.TemporaryDirectory() as directory:
    output = subprocess.run(
        [program.python, str(peers.WORKERS / program.worker),
         json.dumps(program.settings)], check=True, text=True,
        stdout=subprocess.PIPE, env=dict(
            os.environ, PEERS_RUN=directory, CUDA_VISIBLE_DEVICES='',
            TF_CPP_MIN_LOG_LEVEL='3')).stdout
  return json.loads(output.splitlines()[-1])


def print_updates(results: dict[str, list[dict]]) -> None:
  """Prints the table of `--what=updates` or `memory`."""
  calls = [k for k in next((runs[0] for runs in results.values() if runs), {})
           if k != _BOUND]
  print('| SAC, draws and updates | '
        + ' | '.join(f'K = {k}, updates per s of processor time (of wall time)'
                     for k in calls) + ' |')
  print('|---' + '|---:' * len(calls) + '|')
  for title, runs in results.items():
    if not runs:
      print(f'| {title}, failed |', flush=True)
      continue
    cells = []
    for k in calls:
      cpu, wall = (statistics.median(1e3 / run[k][name] for run in runs)
                   for name in ('cpu', 'wall'))
      cells.append(f'{cpu:.0f} ({wall:.0f})')
      if _BOUND in runs[0]:
        share = statistics.median(
            100 * run[_BOUND]['cpu'] / run[k]['cpu'] for run in runs)
        cells[-1] += f', {share:.0f} % of the bound'
    print(f'| {title} | {" | ".join(cells)} |', flush=True)
  bounds = [run[_BOUND] for runs in results.values() for run in runs
            if _BOUND in run]
  if bounds:
    cpu = statistics.median(bound['cpu'] for bound in bounds)
    size = bounds[0]['multiply_adds']
    print(f'\nThe bound is {1e3 / cpu:,.0f} updates per s: the matrix products '
          f'of an update, {size / 1e6:,.1f} million multiply-adds, take '
          f'{cpu:.2f} ms of processor time in one thread, '
          f'{size / cpu / 1e6:,.0f} billion per s.', flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--what', default=','.join(_WORK),
                      help=f'comma-separated: {", ".join(_WORK)}')
  parser.add_argument('--peers', default=','.join(_REQUIREMENTS),
                      help='comma-separated; none if empty')
  peers.add_arguments(parser)
  parser.add_argument('--torch_threads', type=int, default=2)
  args = parser.parse_args()
  # `sys.exit` runs the `finally` that ends the programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  all_results, lines = {}, []
  for what in args.what.split(','):
    programs = programs_of(what, args)
    if what in _OF_CALLS:
      all_results[what] = compare_updates(programs, args)
    else:
      all_results[what] = compare(what, programs, args)
      lines += rows(what, all_results[what])
  load = ', '.join(f'{x:.1f}' for x in os.getloadavg())
  print(f'Load {load} (1, 5, 15 minutes) on {len(os.sched_getaffinity(0))} '
        'cores. If other programs ran, only processor time counts.\n')
  if lines:
    print('| work | program | steps/s | updates/s | ours / it | processor ms '
          'per update | it / ours | parameters | others, cores |\n'
          '|---|---|---|---:|---|---:|---|---:|---:|')
    print('\n'.join(lines) + '\n')
  for what in _OF_CALLS:
    if what in all_results:
      print_updates(all_results[what])
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump(all_results, f, indent=1)


if __name__ == '__main__':
  main()
