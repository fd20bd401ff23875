# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of training on a device without TensorFlow, see benchmarks/.

The tests of the worker need JAX, and are skipped without.
"""

import csv
import importlib.util
import itertools
import json
import os
import pathlib
import queue
import sys
import threading
import types
from unittest import mock

from absl.testing import absltest
import numpy as np
from scalable_agent.experience import episodes
from scalable_agent.experience import structs

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(_ROOT, 'benchmarks'))
_SETTINGS = dict(level_name='ALE/Pong-v5', agent='shallow', seed=3)
_HEADER = list(episodes.FIELDS)


def _installed(package):
  return importlib.util.find_spec(package) is not None


@absltest.skipUnless(
    _installed('tensorflow') and _installed('ale_py'), 'needs TensorFlow, ALE')
class ImportTest(absltest.TestCase):

  def _worker_output(self, learner, settings=_SETTINGS, **counters):
    import device_training
    out = pathlib.Path(self.create_tempdir().full_path)
    rng = np.random.RandomState(0)
    state = {
        name: rng.uniform(1, 2, v.shape).astype(v.dtype.as_numpy_dtype)
        for name, v in device_training.variables_of(learner).items()}
    np.savez(out / 'state.npz', **state, **counters)
    (out / 'run.json').write_text(json.dumps(
        dict(device='a GPU', num_actors=256, num_actor_groups=2,
             settings=settings)))
    with open(out / 'episodes.csv', 'w', newline='', encoding='utf-8') as f:
      csv.writer(f).writerows([_HEADER, *(
          [frames, .5, 'ALE/Pong-v5', -21, 800, 3200]
          for frames in (5120, 7680, 10240))])
    return out, state

  def test_a_state_becomes_a_log_directory(self):
    import device_training
    from scalable_agent import algorithms
    from scalable_agent.runs import checkpointing
    from scalable_agent.runs import setup
    from scalable_agent.settings import config as config_lib
    logdir = pathlib.Path(self.create_tempdir().full_path) / 'run'
    config = device_training.make_config(logdir, _SETTINGS)
    spec = device_training.spec_of(config)
    make = lambda: setup.make_learner(config, spec)
    out, state = self._worker_output(
        make(), num_env_frames=7680, num_updates=3, train_time_s=4.5)
    device_training.import_state(out, logdir)

    learner = make()
    checkpointer = checkpointing.Checkpointer(
        str(logdir), learner, algorithms.describe(config, spec),
        level='ALE/Pong-v5')
    self.assertEndsWith(checkpointer.restore(), 'ckpt-3')
    self.assertEqual((learner.num_env_frames, learner.num_updates,
                      checkpointer.train_time_s), (7680, 3, 4.5))
    for name, variable in device_training.variables_of(learner).items():
      np.testing.assert_array_equal(variable.numpy(), state[name], name)
    trained = config_lib.trained_with(str(logdir))
    self.assertEqual((trained.num_actors, trained.seed), (256, 3))
    rows = list(csv.reader((logdir / 'episodes.csv').open()))
    self.assertEqual(rows[0], _HEADER)
    # An episode beyond the state was lost with the update.
    self.assertEqual([row[0] for row in rows[1:]], ['5120', '7680'])
    with self.assertRaisesRegex(SystemExit, 'is not empty'):
      device_training.import_state(out, logdir)

  def test_another_agent_is_refused(self):
    import device_training
    from scalable_agent.runs import setup
    logdir = pathlib.Path(self.create_tempdir().full_path) / 'run'
    config = device_training.make_config(logdir, _SETTINGS)
    learner = setup.make_learner(config, device_training.spec_of(config))
    out, _ = self._worker_output(
        learner, dict(_SETTINGS, agent='deep'), num_env_frames=7680,
        num_updates=3, train_time_s=4.5)
    with self.assertRaisesRegex(SystemExit, 'variables of another agent'):
      device_training.import_state(out, logdir)
    self.assertFalse(logdir.exists())

  def test_groups_that_are_no_batches_are_refused(self):
    import device_training
    with self.assertRaisesRegex(SystemExit, 'a multiple of the batch size, 32'):
      device_training.export(pathlib.Path('/nowhere'), (
          device_training.make_config('/nowhere', _SETTINGS)), 40)


class _Counting:
  """Observations count steps, `reward` is the action. Arrays are reused."""

  def __init__(self, num_envs):
    self.num_envs = num_envs
    self.level_names = ['counting'] * num_envs
    self.spec = structs.EnvironmentSpec(
        structs.ArraySpec((1,), np.dtype(np.float32)),
        structs.ActionSpec((5,)), 1)
    self._count = 0
    self._arrays = (np.zeros([num_envs], np.float32), np.ones([num_envs], bool),
                    np.zeros([num_envs, 1], np.float32))

  def _output(self):
    reward, done, observation = self._arrays
    observation[:] = self._count + 10 * np.arange(self.num_envs)[:, None]
    end = np.arange(self.num_envs) == self._count - 3
    return structs.StepOutput(
        reward, structs.StepOutputInfo(reward + 7, reward.astype(int), end),
        done, observation)

  def initial(self):
    return self._output()

  def step(self, actions):
    self._count += 1
    self._arrays[0][:] = actions
    self._arrays[1][:] = self._count % 4 == 0
    return self._output()

  def close(self):
    pass


@absltest.skipUnless(_installed('jax'), 'needs JAX')
class GroupTest(absltest.TestCase):

  def test_unrolls(self):
    import device_training_worker
    import jax
    num_envs, length, size = 4, 3, 2

    class Policy:
      variables = ['w']

      def __call__(self, arguments, variables):
        (observation,) = arguments
        chosen = (observation[:, 0].astype(int) + 1) % 5
        return (1e6 * jax.nn.one_hot(chosen, 5),
                observation[:, 0] * variables['w']), {}

    versions = itertools.count(1)
    inbox, stop = queue.Queue(maxsize=1), threading.Event()
    group = device_training_worker.Group(
        _Counting(num_envs), 0,
        types.SimpleNamespace(unroll_length=length, batch_size=size), Policy(),
        lambda: device_training_worker.Weights(v := next(versions), [v]),
        inbox, stop)
    group.start()
    got = [inbox.get(timeout=60) for _ in range(6)]
    stop.set()
    group.join()
    self.assertIsNone(group.error)
    self.assertEqual([batch.version for batch in got], [1, 1, 2, 2, 3, 3])
    # The game of environment `i` ends in step `i + 3`, and counts once.
    self.assertEqual([len(batch.episodes) for batch in got], [1, 0, 3, 0, 0, 0])
    self.assertEqual(got[0].episodes, [('counting', 10., 3)])
    for number, batch in enumerate(got):
      unroll, columns = number // 2, np.arange(size) + size * (number % 2)
      time = (unroll * length + np.arange(length + 1))[:, None] + 0 * columns
      reward, done, observation, action, policy, baseline, truncation = map(
          np.asarray, batch.arrays)
      np.testing.assert_array_equal(observation[..., 0], time + 10 * columns)
      # The action of entry `t` is of the observation before.
      chosen = np.where(time, (time - 1 + 10 * columns + 1) % 5, 0)
      np.testing.assert_array_equal(action, chosen)
      np.testing.assert_array_equal(reward, chosen)
      np.testing.assert_array_equal(done, (time % 4 == 0))
      np.testing.assert_array_equal(
          policy.argmax(-1), chosen)
      # The first entry is of the weights of the unroll before.
      version = np.where(np.arange(length + 1)[:, None], unroll + 1, unroll)
      np.testing.assert_array_equal(
          baseline, np.where(time, version * (time - 1 + 10 * columns), 0))
      np.testing.assert_array_equal(truncation, 0 * time)

  def test_a_state_is_saved_and_resumed(self):
    import device_training_worker as worker
    folder, out = (pathlib.Path(self.create_tempdir().full_path)
                   for _ in range(2))
    np.savez(folder / 'state.npz', w=np.float32(1), **dict.fromkeys(
        worker.COUNTERS, 0))
    rates = []

    class Program:
      variables, result_names = ['w'], ['total_loss']

      def __init__(self, *unused_args):
        pass

      def __call__(self, arguments, variables):
        rates.append(float(variables[worker.RATE]))
        return [variables['w']], {'w': variables['w'] + arguments[0]}

    config = types.SimpleNamespace(
        total_environment_frames=100, learning_rate=.5, batch_size=2,
        unroll_length=5)
    step = lambda training, number: training.step(worker.Batch(
        [number], 0, [('ALE/Pong-v5', -21., 800)]), frames_per_step=4)
    with mock.patch.object(worker, 'Program', Program):
      training = worker.Training(config, folder, None, out)
      self.assertEqual(step(training, 2), {'total_loss': 1})
      training.save()
      step(training, 3)  # Lost: 40 frames are saved.
      rows = (out / 'episodes.csv').read_text().splitlines()
      self.assertEqual(rows[0], ','.join(_HEADER))
      self.assertRegex(rows[1], r'^40,[0-9.]+,ALE/Pong-v5,-21,800,3200$')
      (out / 'episodes.csv').write_text('\n'.join(
          [*rows, '80,1.0,ALE/Pong-v5,-20,800,3200', '']))
      training = worker.Training(config, folder, out, out)
      self.assertEqual(
          (training.num_env_frames, training.first_update), (40, 1))
      self.assertEqual(step(training, 4), {'total_loss': 3})
      training.save()
      np.testing.assert_allclose(rates, [.5, .3, .3], rtol=1e-6)
      self.assertLen((out / 'episodes.csv').read_text().splitlines(), 3)
      step(training, np.nan)
      with self.assertRaisesRegex(SystemExit, 'Diverged'):
        training.save()
      with np.load(out / 'state.npz') as state:
        self.assertEqual((state['w'], state['num_env_frames']), (7, 80))


if __name__ == '__main__':
  absltest.main()
