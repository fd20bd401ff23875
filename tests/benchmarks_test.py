# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs the programs of benchmarks/ for moments: do they fit the package?

Other programs are not compared with: they need environments of their own. Not
here are soak.py, which takes a quarter of an hour, vtrace.py, which compares
always, and what other tests run.
"""

import collections
import contextlib
import csv
import io
import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import gymnasium
import psutil
import pytest
from scalable_agent.modes import selftest_parts

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(_ROOT, 'benchmarks'),
                os.path.join(_ROOT, 'benchmarks', 'peers')]
import off_policy
import own_problems
import products
import slow_environment

_MARK = 'SCALABLE_AGENT_BENCHMARKS_TEST'  # An environment variable.
_CATCH = ('--level_name=catch --agent=mlp --nouse_lstm --num_actors=2 '
          '--batch_size=2 --unroll_length=5 --xla=none')
# {out} is a new directory.
_COMMANDS = {
    'actors': 'actors.py --num_envs=4 --threads 1 --networks shallow --modes '
              'graph --batch_sizes 2 --groups 2 --rounds=2 --seconds=0.1 '
              '--peers --json={out}/rates.json',
    'learner': 'learner.py --variants=graph,xla:1 --batch_size=2 '
               '--unroll_length=3 --rounds=2 --seconds=0.1',
    'replay': 'replay.py --steps=20000 --turns=1',
    'throughput': 'throughput.py --actors=2,4 --window_s=2 --warm_up_s=0 '
                  '--runs=1 --num_action_repeats=1 --json={out}/rates.json -- '
                  f'{_CATCH}',
    'scaling': 'scaling.py --parts=slow --step_ms=1 --num_actors=2 '
               '--num_actor_groups=1 --rounds=1 --window_s=2 --warm_up_s=0 '
               '--json={out}/rates.json -- --batch_size=2 --xla=none',
    'off_policy': 'off_policy.py --what=updates,dqn --peers= --rounds=1 '
                  '--window_s=2 --warm_up_s=0 --json={out}/rates.json',
    'learning': 'learning.py --out={out}/runs --runs=ddqn_catch --seeds=2 '
                '--jobs=2 -- --total_environment_frames=3000',
    'killed': 'learning.py --out={out}/runs --runs=catch --seeds=1 --kills=2 '
              '-- --total_environment_frames=20000',
    'ablation': 'ablation.py --out={out}/runs --corrections=vtrace,none '
                f'--seeds=2 --jobs=2 -- {_CATCH} '
                '--total_environment_frames=4000',
    'sweep': '../scalable_agent/modes/sweep.py --out={out}/runs '
             '--num_trials=2 --rungs=2000,4000 '
             f'--search=learning_rate=0.001,0.01 -- {_CATCH}',
    'determinism': 'determinism.py --out={out}/runs '
                   '--runs=catch,ddqn_prioritised --repeats=2 --kills=1',
    'device': 'device.py --folder={out} --only=vtrace',
    'device_training': 'device_training.py export --folder={out}',
    'zoo_picture': 'zoo_picture.py --out={out}/zoo.gif --names=catch,pong '
                   '--seconds=1',
    'local_storm': 'local_storm.py --out={out}/runs --faults=3',
}


class BenchmarksTest(parameterized.TestCase):

  @parameterized.named_parameters(*_COMMANDS.items())
  @pytest.mark.storm
  def test_runs(self, command):
    out = self.create_tempdir().full_path
    program, *arguments = command.format(out=out).split()
    done = subprocess.run(
        [sys.executable, os.path.join(_ROOT, 'benchmarks', program),
         *arguments], cwd=out, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False,
        env={**os.environ, _MARK: out, 'TF_CPP_MIN_LOG_LEVEL': '2',
             'PYTHONPATH': _ROOT})
    self.assertEqual(done.returncode, 0, done.stdout)
    self.assertNotRegex(done.stdout, r'Traceback|failed \|')
    if program.endswith('sweep.py'):
      with open(os.path.join(out, 'runs', 'sweep.csv'), encoding='utf-8') as f:
        scores = [row['score at 2000'] for row in csv.DictReader(f)]
      self.assertLen(scores, 2)
      self.assertTrue(all(scores), scores)
    self.assertEmpty([p for p in psutil.process_iter() if _is_of(p, out)])


def _is_of(process, out):
  try:
    return process.environ().get(_MARK) == out
  except psutil.Error:  # It has ended, or is of somebody else.
    return False


class SlowEnvironmentTest(absltest.TestCase):

  def test_each_episode_begins_with_a_map(self):
    env = gymnasium.make('slow_environment:SlowMaps-v0')
    with mock.patch.object(slow_environment.time, 'sleep') as sleep:
      for _ in range(2):
        env.reset(seed=1)
        sleep.assert_called_with(3)
      env.step(0)
    self.assertBetween(sleep.call_args.args[0], 0, .002)


class OwnProblemsTest(absltest.TestCase):

  def test_ours_is_compared_with_the_best_one(self):
    result = lambda problem, program, *returns: own_problems.Result(
        problem, program, 1, 1000, 2., list(returns), 'appo_vectors')
    text = own_problems.table([
        result('taxi', 'ours', 10., 12.), result('taxi', 'PPO', 1., 3.),
        result('maze', 'ours', 10., 12.), result('maze', 'PPO', 13., 9.),
        result('hopper', 'ours', 10., 12.), result('hopper', 'PPO', 1., 2.),
        result('hopper', 'SAC', 40., 42.)])
    lines = text.splitlines()
    self.assertEqual(
        lines[2], '| taxi | 1,000 | `appo_vectors` | 11 +- 1 (2 s) | 2.00 +- '
        '1.00 (2 s) | - | better |')
    self.assertEndsWith(lines[3], '| equal |')
    self.assertEndsWith(lines[4], '| 41 +- 1 (2 s) | worse |')
    self.assertEqual(lines[-1], 'Ours: 1 better, 1 equal, 1 worse.')

  def test_errors_are_over_seeds(self):
    results = [own_problems.Result('taxi', program, seed, 1000, 2., returns)
               for program, seed, returns in (
                   ('ours', 1, [10., 12.]), ('ours', 2, [20., 32.]),
                   ('PPO', 1, [3., 5.]))]
    self.assertIn('| 18 +- 8 (2 s) | 4.00 +- 1.00 (2 s) | equal |',
                  own_problems.table(results))


class ProductsTest(absltest.TestCase):

  def test_products_are_those_of_an_update(self):
    [part] = [part for part in selftest_parts.parts()
              if part.name == 'update of sac, mlp']
    # TensorFlow does not compute products that no output needs: gradients of
    # the policy's loss for the weights of the critics.
    graph = part.graph()
    found, needed = collections.Counter(), {x.op.name for x in graph.outputs}
    for op in reversed(graph.get_operations()):  # Inputs come before outputs.
      if op.name not in needed:
        continue
      needed |= {x.op.name for x in op.inputs}
      if op.type == 'MatMul':
        transposed = [name for name in 'ab'
                      if op.get_attr(f'transpose_{name}')]
        rows, inner = op.inputs[0].shape[::-1 if 'a' in transposed else 1]
        found[products.Product(
            rows, inner, op.outputs[0].shape[1], ''.join(transposed))] += 1
    expected = products.of_sac(
        [(17, 256), (256, 256), (256, 12)],
        [(23, 256), (256, 256), (256, 1)], 2, 64)
    self.assertEqual(found, expected)
    # By hand: forward 2 and 3 times, gradients of the weights, of the inputs.
    policy, critic = 17 * 256 + 256 * 268, 23 * 256 + 256 * 257
    self.assertEqual(products.num_multiply_adds(expected), 64 * (
        3 * policy + 256 * 268 + 2 * (4 * critic + 23 * 256 + 2 * 256 * 257)))

  def test_share_of_the_bound(self):
    run = lambda cpu, bound: {
        '1': {'cpu': 8.0, 'wall': 9.0}, '8': {'cpu': cpu, 'wall': 5.0},
        'products': {'cpu': bound, 'multiply_adds': 300e6}}
    with contextlib.redirect_stdout(io.StringIO()) as output:
      off_policy.print_updates({
          'ours': [run(4.0, 3.0), run(5.0, 2.0), run(4.0, 2.0)],
          'other': [{'1': {'cpu': 8.0, 'wall': 8.0},
                     '8': {'cpu': 8.0, 'wall': 8.0}}]})
    self.assertIn('| 250 (200), 50 % of the bound |', output.getvalue())
    self.assertIn('| other | 125 (125) | 125 (125) |', output.getvalue())
    self.assertIn('is 500 updates per s: ', output.getvalue())
    self.assertIn(' 300.0 million multiply-adds, take 2.00 ms ',
                  output.getvalue())
    self.assertIn(' 150 billion per s.', output.getvalue())


if __name__ == '__main__':
  absltest.main()
