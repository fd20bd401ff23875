# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of APPO: trainings, in which acting waits for learning."""

import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import metrics_test
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf
import tree

_TRAINING = dict(
    algorithm='appo', level_name='catch', agent='mlp', num_actors=6,
    num_actor_groups=2, unroll_length=5, batch_size=3, passes=3,
    learning_rate=.01, total_environment_frames=150, seed=2, xla='none',
    updates_per_call=1)


class TrainingTest(parameterized.TestCase):

  def _train(self, **settings):
    """Trains; returns scalars and frames of each update, and the learner."""
    updates, learners = [], []

    def hook(update):
      learners.append(update.learner)
      updates.append({name: float(value) for name, value
                      in update.scalars.items()} | {
                          'frames': update.learner.num_env_frames,
                          'longest': max(update.lags, default=0)})

    logdir = self.create_tempdir().full_path
    training.train(config_lib.Config(
        **_TRAINING | dict(logdir=logdir) | settings), hooks=[hook])
    return updates, learners[-1]

  def test_acting_waits_and_passes_count_once_and_rates_fall(self):
    updates, learner = self._train()
    self.assertLen(updates, 5 * 3 * 2)
    self.assertEqual([u['frames'] for u in updates],
                     [30 * (i // 6 + (i % 6 == 5)) for i in range(30)])
    # Actors have the weights and the statistics of the collection's begin.
    for index in range(0, 30, 6):
      self.assertLess(abs(updates[index]['mean_log_rho']), 1e-6)
      self.assertEqual(updates[index]['clipped'], 0)
      self.assertLess(abs(updates[index]['kl']), 1e-6)
    for index in range(11, 30, 6):  # The stored parameters count.
      self.assertGreater(updates[index]['kl'], 1e-6)
    self.assertEqual(max(u['longest'] for u in updates), 5)
    [part] = learner.agent.observation_normaliser.statistics.values()
    self.assertEqual(float(part.count), 150)
    self.assertEqual(float(learner.agent.returns.statistics.count), 5)
    np.testing.assert_allclose(  # In each of three passes.
        [u['learning_rate'] for u in updates],
        np.repeat(.01 * (1 - np.arange(5) / 5), 6), rtol=1e-5)

  def test_a_call_makes_the_same_updates(self):
    self._check_calls(4, passes=2, target_policy_period=4,
                      total_environment_frames=60)

  @parameterized.parameters(
      (6, dict(target_policy_period=6)),
      (6, dict(target_policy_period=6, xla='all')),
      (3, dict(passes=1, batch_size=2, learning_rate_schedule='kl',
               learning_rate_kl=1e-5)))
  @pytest.mark.storm
  def test_a_call_makes_the_same_updates_too(self, number, settings):
    self._check_calls(number, total_environment_frames=150, **settings)

  def _check_calls(self, number, **settings):
    settings |= dict(deterministic=True, num_actor_groups=1)
    if 'xla' in settings:  # The policies must compute the same bits.
      alone, learner = self._train(**settings | dict(xla='policy'))
    else:
      with eager.eagerly():
        alone, learner = self._train(**settings)
    calls, of_calls = self._train(updates_per_call=number, **settings)
    self.assertLen(calls, len(alone) // number)
    self.assertEqual(of_calls.num_updates, learner.num_updates)
    for one, two in zip(tree.flatten(learner.state),
                        tree.flatten(of_calls.state), strict=True):
      np.testing.assert_allclose(one.numpy(), two.numpy(), 1e-4, 1e-5)
    for index, call in enumerate(calls):
      of_call = alone[number * index:number * (index + 1)]
      self.assertEqual(call['frames'], of_call[-1]['frames'])
      for name in 'total_loss', 'kl', 'clipped', 'gradient_norm':
        np.testing.assert_allclose(
            call[name], np.mean([u[name] for u in of_call]), 1e-4, 1e-5)

  @pytest.mark.storm
  def test_runs_can_be_repeated(self):
    settings = dict(deterministic=True, num_actor_groups=1, xla='all',
                    save_checkpoint_frames=60, updates_per_call=6)
    (_, one), (_, two) = [self._train(**settings) for _ in range(2)]
    for a, b in zip(tree.flatten(one.state), tree.flatten(two.state),
                    strict=True):
      np.testing.assert_array_equal(a.numpy(), b.numpy())

  def test_each_part_of_a_deterministic_run_has_its_dtype(self):
    dtypes = {}

    def hook(update):
      dtypes.setdefault(update.learner, tf.keras.config.dtype_policy().name)

    eager.train(config_lib.Config(
        **_TRAINING | dict(
            logdir=self.create_tempdir().full_path, deterministic=True,
            save_checkpoint_frames=30, total_environment_frames=60,
            num_actor_groups=1, compute_dtype='bfloat16')),
                hooks=[hook])
    self.assertEqual(list(dtypes.values()), ['mixed_bfloat16'] * 2)

  @pytest.mark.storm
  def test_a_run_that_ends_between_passes_is_resumed(self):
    self._check_resumed(20, learning_rate_schedule='kl', learning_rate_kl=1e-5,
                        target_policy_period=4)

  @pytest.mark.storm
  def test_a_run_that_ends_before_the_last_pass_is_resumed(self):
    self._check_resumed(23)

  def _check_resumed(self, number, **settings):
    settings |= dict(deterministic=True, num_actor_groups=1,
                     save_checkpoint_frames=60)
    _, whole = self._train(**settings)
    logdir = self.create_tempdir().full_path

    def end(update):
      if update.learner.num_updates == number:  # Six make a collection.
        raise errors.EnvironmentValueError('The end.')

    with self.assertRaisesRegex(errors.EnvironmentValueError, 'The end'):
      training.train(config_lib.Config(
          logdir=logdir, **_TRAINING | settings), hooks=[end])
    updates, resumed = self._train(logdir=logdir, **settings)
    self.assertLen(updates, 30 - 12)
    for one, two in zip(tree.flatten(whole.state), tree.flatten(resumed.state),
                        strict=True):
      np.testing.assert_array_equal(one.numpy(), two.numpy())

  def test_rates_by_kl(self):
    updates, _ = self._train(learning_rate_schedule='kl', learning_rate_kl=1e-9)
    # The first collection moves nothing; then the rate falls each time.
    np.testing.assert_allclose(
        [u['learning_rate'] for u in updates],
        np.repeat(.01 / np.float64(1.5)**[0, 0, 1, 2, 3], 6), rtol=1e-5)

  def test_a_ring_of_unrolls(self):
    updates, learner = self._train(
        replay_capacity=6, target_policy_period=4, batch_size=4,
        replay_fraction=.5, passes=4)
    self.assertEqual([u['frames'] for u in updates], list(range(10, 160, 10)))
    is_zero = [u['policy_kl'] == 0 for u in updates]
    self.assertEqual(
        is_zero, [index in (0, 1, 4, 8, 12) for index in range(15)])
    [part] = learner.agent.observation_normaliser.statistics.values()
    self.assertEqual(float(part.count), 150)  # Replayed unrolls do not count.

  @pytest.mark.slow
  def test_unrolls_of_a_group_that_hangs_are_learned(self):
    # The first step of one group ends after 42 updates, with the first weights.
    step, go_on, late = environments.FlowEnvironment.step, threading.Event(), 42
    self.addCleanup(go_on.set)

    def step_late(env, action):
      if 0 in env.indices:
        go_on.wait()
      return step(env, action)

    updates, logdir = [], self.create_tempdir().full_path

    def hook(update):
      updates.append((max(update.lags, default=0), update.scalars))
      if len(updates) == late:
        go_on.set()

    with mock.patch.object(environments.FlowEnvironment, 'step', step_late):
      training.train(config_lib.Config(**_TRAINING | dict(
          logdir=logdir, overlap=True, queue_capacity=2,
          total_environment_frames=450, save_summaries_secs=1e-6)),
                     hooks=[hook])
    lags, scalars = zip(*updates)
    index = int(np.argmax(lags))
    self.assertGreaterEqual(lags[index], late)
    self.assertGreaterEqual(index, late)
    self.assertTrue(np.all(np.isfinite([s['total_loss'] for s in scalars])))
    # Six updates learn an unroll; one of these tells the lag.
    self.assertGreater(max(
        s['clipped'] for s in scalars[index - 5:index + 6]), 0)
    self.assertIn(lags[index], [
        value for (name, _), value in metrics_test._scalars(logdir).items()
        if name == 'lag/longest_policy_lag'])


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='runs/log',
        catches='test_unrolls_of_a_group_that_hangs_are_learned',
        rows=(
            ('the longest lag is the mean lag',
             'float(np.max(update.lags))',
             'float(np.mean(update.lags))'),
        )),
    dict(
        file='learning/sources',
        catches='test_a_call_makes_the_same_updates',
        rows=(
            ('batches of one update',
             'allocate(learner.updates_per_call * config.batch_size)',
             'allocate(config.batch_size)'),
        )),
    dict(
        file='learning/learner',
        catches='test_acting_waits_and_passes_count_once_and_rates_fall',
        rows=(
            ('rates fall with updates',
             'schedule(self.num_env_frames)',
             'schedule(30 * self.num_updates)'),
        )),
    dict(
        file='learning/learner',
        catches='test_rates_by_kl',
        rows=(
            ('the first collection moves the rate',
             'in self._kl_schedules if groups else ():',
             'in self._kl_schedules:'),
            ('the rate moves after each update',
             "'policy_kl'], bool(batch.num_new_frames))",
             "'policy_kl'], True)"),
        )),
    dict(
        file='runs/training',
        catches='test_each_part_of_a_deterministic_run_has_its_dtype',
        rows=(
            ('later parts compute in float32',
             'layers.set_compute_dtype(config.compute_dtype)\n  tf', 'tf'),
        )),
)


if __name__ == '__main__':
  absltest.main()
