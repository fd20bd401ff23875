# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures throughput as a run grows, and with slow environments.

  python benchmarks/scaling.py [--parts=slow,actors,groups,unroll,batch]
      [--rounds=3] [--window_s=20] [--json=scaling.json] [-- FLAGS]

*   slow: environments that sleep 1, 5 or 20 ms a step, one process each, and a
    small network. A run of experiment.py and the environments alone take turns.
    Alone, the same vectors of environments get fixed actions from one thread
    per group: there is no policy and no learner. The ratio of the two rates is
    1 if only the environments limit the throughput.
*   actors, groups, unroll, batch: Pong, shallow network. One of --num_actors,
    --num_actor_groups, --unroll_length and --batch_size grows; the other flags
    are 32, 2, 20 and 8.

Every turn starts from the beginning; the time to compile is left out. The rate
of a row is the median of its turns, and its ratio is the median of the ratios
within the rounds. "Cores" is the number of cores that all processes of a turn
kept busy. FLAGS are flags of experiment.py for every run.
"""

import argparse
from concurrent import futures
import contextlib
import json
import multiprocessing
import os
import re
import statistics
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import psutil
import slow_environment
import throughput

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(_DIRECTORY))
_CORES = len(os.sched_getaffinity(0))
_BASE = {'num_actors': 32, 'num_actor_groups': 2, 'unroll_length': 20,
         'batch_size': 8}
_PONG_FLAGS = ('--recipe=pong_two_cores', '--replay_capacity=0',
               '--selector=uniform')
_NOT_ALONE = ('--?(recipe|flagfile|level_name|num_actors|num_actor_groups|'
              'num_action_repeats|environments_per_process)(=|$)')
_GROWTH = {  # Part: the flag that grows and its values.
    'actors': ('num_actors', (8, 16, 32, 64)),
    'groups': ('num_actor_groups', (1, 2, 4, 8)),
    'unroll': ('unroll_length', (10, 20, 40, 80)),
    'batch': ('batch_size', (4, 8, 16, 32)),
}


class _Row(NamedTuple):
  """A configuration and the measurements of its turns.

  Attributes:
    part: the part of the benchmark.
    configuration: flags that differ from row to row.
    flags: all flags of the run.
    turns: dictionaries of `throughput.measure`.
    alone_turns: results of `measure_alone`; empty except for slow environments.
  """
  part: str
  configuration: dict[str, Any]
  flags: list[str]
  turns: list[dict[str, Any]]
  alone_turns: list[dict[str, float]]

  def summary(self) -> dict[str, Any]:
    median = lambda turns, key: statistics.median(t[key] for t in turns)
    summary = {
        'agent_steps_per_s': median(self.turns, 'agent_steps_per_s'),
        'cpu_cores': median(self.turns, 'cpu_cores'),
        'policy_lag': median(self.turns, 'policy_lag')}
    if self.alone_turns:
      summary['alone_steps_per_s'] = median(self.alone_turns, 'steps_per_s')
      summary['alone_cpu_cores'] = median(self.alone_turns, 'cpu_cores')
      summary['ratio'] = statistics.median(
          turn['agent_steps_per_s'] / alone['steps_per_s']
          for turn, alone in zip(self.turns, self.alone_turns, strict=True))
    return summary


def measure_alone(level_name, num_actors, num_groups, warm_up_s, window_s):
  """Steps environments with fixed actions; returns steps/s and busy cores."""
  from scalable_agent import environments
  settings = environments.EnvironmentSettings(num_action_repeats=1)
  stop = threading.Event()
  with contextlib.ExitStack() as stack:
    groups = np.array_split(np.arange(num_actors), num_groups)
    envs = [stack.enter_context(environments.make_vec(
        [level_name] * len(group), group.tolist(), settings))
            for group in groups]
    counts = [0] * num_groups

    def step(index, env):
      env.initial()
      actions = np.zeros([env.num_envs], np.int32)
      while not stop.is_set():
        env.step(actions)
        counts[index] += env.num_envs

    with futures.ThreadPoolExecutor(num_groups) as executor:
      threads = [executor.submit(step, *item) for item in enumerate(envs)]
      time.sleep(warm_up_s)
      tree = psutil.Process()
      start_s, first = time.monotonic(), sum(counts)
      first_cpu_s = throughput.tree_cpu_s(tree)
      time.sleep(window_s)
      seconds, steps, cpu_s = (
          time.monotonic() - start_s, sum(counts) - first,
          throughput.tree_cpu_s(tree) - first_cpu_s)
      stop.set()
      for thread in threads:
        thread.result()
  return {'steps_per_s': steps / seconds, 'cpu_cores': cpu_s / seconds}


def _alone(*args):
  """Runs `measure_alone` in a process of its own, without TensorFlow."""
  with futures.ProcessPoolExecutor(
      1, mp_context=multiprocessing.get_context('spawn')) as executor:
    return executor.submit(measure_alone, *args).result()


def _flags(configuration):
  return [f'--{name}={value}' for name, value in configuration.items()]


def _slow_rows(args):
  rows = []
  for step_ms in args.step_ms:
    for num_actors in args.num_actors:
      for num_groups in args.num_actor_groups:
        configuration = {'num_actors': num_actors,
                         'num_actor_groups': num_groups}
        rows.append(_Row('slow', {'step_ms': step_ms, **configuration}, [
            f'--level_name={slow_environment.level_name(step_ms)}',
            '--num_action_repeats=1', '--agent=mlp', '--use_lstm=false',
            '--use_last_action_reward=false', '--unroll_length=20',
            '--batch_size=32', *_flags(configuration), *args.flags], [], []))
  return rows


def _growth_rows(part, args):
  name, values = _GROWTH[part]
  return [_Row(part, {name: value}, [
      *_PONG_FLAGS, *_flags({**_BASE, name: value}), *args.flags], [], [])
          for value in values]


def _measure(row, args):
  """Adds one turn to `row`; for slow environments also without policy."""
  turn = throughput.measure(
      row.flags, args.window_s, args.warm_up_s, 1 if row.part == 'slow' else 4)
  if row.part == 'slow':
    row.alone_turns.append(_alone(
        slow_environment.level_name(row.configuration['step_ms']),
        row.configuration['num_actors'], row.configuration['num_actor_groups'],
        2.0, args.window_s))
  row.turns.append(turn)


def _line(row):
  s = row.summary()
  what = ', '.join(f'{k} {v}' for k, v in row.configuration.items())
  rates = [turn['agent_steps_per_s'] for turn in row.turns]
  alone = (f'{s["alone_steps_per_s"]:,.0f} ({s["alone_cpu_cores"]:.2f} cores) '
           f'| {100 * s["ratio"]:.0f} %' if row.alone_turns else '| ')
  return (f'| {row.part} | {what} | {s["agent_steps_per_s"]:,.0f} '
          f'({min(rates):,.0f} to {max(rates):,.0f}) | {s["cpu_cores"]:.2f} | '
          f'{s["policy_lag"]:.1f} | {alone} | {row.turns[-1]["time"]} |')


def _numbers(text):
  return [int(number) for number in text.split(',')]


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--parts', default=','.join(['slow', *_GROWTH]))
  parser.add_argument('--rounds', type=int, default=3)
  parser.add_argument('--window_s', type=float, default=20)
  parser.add_argument('--warm_up_s', type=float, default=8)
  parser.add_argument('--step_ms', type=_numbers,
                      default=slow_environment.STEP_MS,
                      help='slow environments: milliseconds a step')
  parser.add_argument('--num_actors', type=_numbers, default=[16, 64],
                      help='slow environments: how many')
  parser.add_argument('--num_actor_groups', type=_numbers, default=[2],
                      help='slow environments: in how many groups')
  parser.add_argument('--json', help='file to write the results to')
  parser.add_argument('flags', nargs='*')
  args = parser.parse_args()
  parts = args.parts.split(',')
  unknown = set(parts) - {'slow', *_GROWTH}
  if unknown:
    parser.error(f'Unknown parts: {", ".join(sorted(unknown))}.')
  if set(args.step_ms) - set(slow_environment.STEP_MS):
    parser.error(f'--step_ms must be among {slow_environment.STEP_MS}.')
  if 'slow' in parts and any(re.match(_NOT_ALONE, f) for f in args.flags):
    parser.error('The environments alone, with which slow ones are compared, '
                 'would not have these FLAGS.')
  # So that experiment.py finds the slow environments.
  os.environ['PYTHONPATH'] = os.pathsep.join(
      [_DIRECTORY, *filter(None, [os.environ.get('PYTHONPATH')])])

  rows = [row for part in parts for row in (
      _slow_rows(args) if part == 'slow' else _growth_rows(part, args))]
  for _ in range(args.rounds):
    for row in rows:
      try:
        _measure(row, args)
      except RuntimeError as e:
        print(f'{row.part}, {row.configuration}: {e}', file=sys.stderr,
              flush=True)
        continue
      print(_line(row), file=sys.stderr, flush=True)
  print(f'{_CORES} cores, {args.rounds} rounds of {args.window_s:g} s\n\n'
        '| part | configuration | agent steps/s | cores | policy lag | '
        'environments alone | ratio | time, last round |\n'
        '|---|---|---:|---:|---:|---:|---:|---|')
  for row in rows:
    print(_line(row) if row.turns
          else f'| {row.part} | {row.configuration} | failed |')
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'cpu_cores': _CORES, 'rounds': args.rounds,
                 'window_s': args.window_s,
                 'rows': [{**row._asdict(), **row.summary()}
                          for row in rows if row.turns]},
                f, indent=1)


if __name__ == '__main__':
  main()
