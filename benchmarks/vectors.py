# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures environments alone, level beside level, with random actions.

  python benchmarks/vectors.py \
      --levels=HalfCheetah-v5,envpool:HalfCheetah-v5 [--num_envs=16] \
      [--groups=1] [--environments_per_process=1] [--rounds=5] [--seconds=5]

The levels take turns. Rates are steps/s of all environments; CPU time is that
of this process and its children, per step. Each group has a thread. The table
has the medians, and the ratio to the first level.
"""

import argparse
from concurrent import futures
import statistics
import time

import numpy as np
import psutil
from scalable_agent import environments


def _cpu_s():
  """Returns the CPU time of this process and its children."""
  process = psutil.Process()
  return sum(sum(p.cpu_times()[:2])
             for p in [process, *process.children(recursive=True)])


def _actions(env):
  """Returns random actions `[E, ...]` of a group."""
  rng = np.random.default_rng(0)
  spec = env.spec.action
  shape, dtype = spec.array
  if spec.size:
    return rng.uniform(-1, 1, (env.num_envs, *shape)).astype(dtype)
  return rng.integers(
      min(spec.num_values), size=(env.num_envs, *shape), dtype=dtype)


def _step_until(env, actions, end_s):
  count = 0
  while time.perf_counter() < end_s:
    env.step(actions)
    count += env.num_envs
  return count


def measure(groups, seconds):
  """Returns steps/s, and microseconds of CPU time per step."""
  actions = [_actions(env) for env in groups]
  with futures.ThreadPoolExecutor(len(groups)) as executor:
    cpu_s, start_s = _cpu_s(), time.perf_counter()
    steps = sum(executor.map(
        _step_until, groups, actions, [start_s + seconds] * len(groups)))
    wall_s = time.perf_counter() - start_s
    return steps / wall_s, 1e6 * (_cpu_s() - cpu_s) / steps


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('--levels', required=True)
  parser.add_argument('--num_envs', type=int, default=16)
  parser.add_argument('--groups', type=int, default=1)
  parser.add_argument('--environments_per_process', type=int, default=1)
  parser.add_argument('--rounds', type=int, default=5)
  parser.add_argument('--seconds', type=float, default=5)
  args = parser.parse_args()
  settings = environments.EnvironmentSettings(
      num_action_repeats=1,
      environments_per_process=args.environments_per_process)
  levels = args.levels.split(',')
  groups = {}
  for level in levels:
    groups[level] = environments.make_groups(
        [level] * args.num_envs, range(args.num_envs), settings, args.groups)
    for env in groups[level]:
      env.initial()
  found = {level: [] for level in levels}
  for number in range(args.rounds):
    for level in levels:
      found[level].append(measure(groups[level], args.seconds))
      rate, cpu_us = found[level][-1]
      print(f'{number} {level}: {rate:,.0f} steps/s, {cpu_us:.1f} us of CPU '
            'time per step', flush=True)
  medians = {level: [statistics.median(column) for column in zip(*rows)]
             for level, rows in found.items()}
  print('\n| level | steps/s | ratio | CPU us per step |\n|---|--:|--:|--:|')
  for level, (rate, cpu_us) in medians.items():
    print(f'| `{level}` | {rate:,.0f} | {rate / medians[levels[0]][0]:.2f} | '
          f'{cpu_us:.1f} |')
  for group in sum(groups.values(), []):
    group.close()


if __name__ == '__main__':
  main()
