# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures the replay of transitions: adding, drawing, priorities, memory.

  python benchmarks/replay.py [--steps=1000000] [--turns=9]

The store is full. A time is processor time of this process, in milliseconds per
batch, the median of the turns, so other processes hardly matter. Prioritised
draws include that the errors of the batch are noted. Prints Markdown.
"""

import argparse
import os
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.replay import steps

_VECTORS = structs.EnvironmentSpec(
    structs.ArraySpec((17,), np.dtype(np.float32)), structs.ActionSpec(size=6),
    1)
_FRAMES = structs.EnvironmentSpec(
    structs.ArraySpec((4, 84, 84), np.dtype(np.uint8)),
    structs.ActionSpec(num_values=(18,)), 1)
_EPISODE_LENGTH = 1000


def _unroll(spec, num_envs, length, start):
  """Returns an unroll of random steps, from step `start` of its streams on."""
  rng = np.random.default_rng(start)
  shape = (length + 1, num_envs)
  observation = rng.integers(
      2, size=(*shape, *spec.observation.shape), dtype=np.uint8).astype(
          spec.observation.dtype)
  number = start + np.arange(length + 1)
  ends = np.zeros(shape, bool)
  ends[number % _EPISODE_LENGTH == 0] = True
  reward = rng.random(shape, np.float32)
  action = (rng.random((*shape, spec.action.size), np.float32)
            if spec.action.size else rng.integers(18, size=shape))
  lasts = tuple(
      structs.LastObservation(t, e, observation[t, e])
      for t in range(1, length + 1) for e in range(num_envs) if ends[t, e])
  step = np.repeat(number[:, None], num_envs, 1)
  return structs.Unroll(
      structs.Steps(
          structs.StepOutput(
              reward, structs.StepOutputInfo(reward, step, ends), ends,
              observation, ends),
          structs.AgentOutput(action, reward, reward), reward),
      structs.Start([''] * num_envs, np.arange(num_envs), (),
                    np.zeros([num_envs])), lasts)


def _seconds(function, turns, calls):
  """Returns the processor time of a call."""
  times = []
  for _ in range(turns):
    begin = time.process_time()
    for _ in range(calls):
      function()
    times.append((time.process_time() - begin) / calls)
  return statistics.median(times)


def _filled(spec, steps, num_envs, selector, view, stacked=False):
  replay = replay_lib.Replay(
      replay_lib.StepStore(spec, steps, num_envs, stacked), selector, view, 0)
  length = min(_EPISODE_LENGTH, steps // num_envs // 4)
  for start in range(0, steps // num_envs + length, length):
    replay.add(_unroll(spec, num_envs, length, start))
  return replay


def _row(*cells):
  print(f'| {" | ".join(cells)} |', flush=True)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--steps', type=int, default=10**6)
  parser.add_argument('--turns', type=int, default=9)
  args = parser.parse_args()
  _row('draws of 256, 17 + 6 floats', 'environments', 'K = 1', 'K = 8')
  _row('---', '---:', '---:', '---:')
  for name, make, num_steps in (
      ('uniform', replay_lib.Uniform, 1),
      ('uniform, 3 steps', replay_lib.Uniform, 3),
      ('prioritised, and errors', replay_lib.Prioritised, 1),
      ('recent, uniform', lambda: replay_lib.Recent(replay_lib.Uniform()), 1),
      ('recent, prioritised, and errors',
       lambda: replay_lib.Recent(replay_lib.Prioritised()), 1)):
    for num_envs in (1, 8):
      replay = _filled(_VECTORS, args.steps, num_envs, make(),
                       replay_lib.NStep(.99, num_steps))

      def draw(num_batches, replay=replay, name=name):
        drawn = replay.draw(num_batches, 256)
        if 'errors' in name:
          replay.update(drawn.positions, drawn.data.reward)

      _row(name, str(num_envs), *[
          f'{1e3 * _seconds(lambda k=k: draw(k), args.turns, 100) / k:.3f} ms'
          for k in (1, 8)])
  print()
  _row('adding, per step', 'environments', 'unrolls of 1', 'unrolls of 8')
  _row('---', '---:', '---:', '---:')
  for name, make in (('uniform', replay_lib.Uniform),
                     ('prioritised', replay_lib.Prioritised)):
    for num_envs in (1, 8):
      cells = []
      for length in (1, 8):
        replay = _filled(_VECTORS, args.steps, num_envs, make(),
                         replay_lib.NStep(.99))
        unroll = _unroll(_VECTORS, num_envs, length, _EPISODE_LENGTH + 1)
        add = lambda replay=replay, unroll=unroll: replay.add(unroll)
        seconds = _seconds(add, args.turns, 100)
        cells.append(f'{1e6 * seconds / num_envs / length:.1f} us')
      _row(name, str(num_envs), *cells)
  print()
  replay = _filled(_FRAMES, 20000, 8, replay_lib.Uniform(),
                   replay_lib.NStep(.99), stacked=True)
  for size in (32, 256):
    seconds = _seconds(lambda size=size: replay.draw(1, size), args.turns, 5)
    print(f'Stacks of four 84 x 84 frames, {size} transitions: '
          f'{1e3 * seconds:.2f} ms.')
  size = steps.num_bytes(_FRAMES, 10**6, stacked=True)
  print(f'A million of such steps: {size / 1e9:.3f} GB.')


if __name__ == '__main__':
  main()
