# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that a time limit is no end of an episode, from actors to values.

Ten rewards of 1 follow a reset. If a time limit ends the episodes, each value
is 1 / (1 - gamma) = 10. If the task ends, that of the first observation is
(1 - gamma^10) / (1 - gamma) = 6.5132.
"""

from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent.experience import structs
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf


class TimeLimitTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters(
      ('ddqn', 1, 'uniform', True), ('ddqn', 3, 'prioritised', False),
      ('ddqn', 3, 'prioritised', True), ('td3', 3, 'uniform', True),
      ('td3', 1, 'prioritised', False), ('td3', 1, 'prioritised', True))
  @pytest.mark.storm
  def test_values(self, algorithm, n_step, selector, is_limit):
    level = 'time_limit' if is_limit else 'terminating'
    learners = []
    training.train(
        config_lib.Config(
            algorithm=algorithm,
            level_name=level + ('' if algorithm == 'ddqn' else '_box'),
            logdir=self.create_tempdir().full_path, hidden_sizes='256',
            learning_rate=0.005, learning_rate_schedule='linear',
            discounting=0.9, batch_size=64, target_update_rate=0.1,
            n_step=n_step, selector=selector, min_replay_steps=200,
            total_environment_frames=2000, xla='none', updates_per_call=8,
            num_actors=8,
            # The smaller one of two critics is too small.
            **(dict(target_update_period=1) if algorithm == 'ddqn'
               else dict(num_critics=1))),
        hooks=[lambda update: learners.append(update.learner)])
    groups = learners[-1].algorithm.groups
    k1, b1, k2, b2 = [v.numpy() for v in groups.get(
        'critic', groups.get('agent'))[:4]]
    inputs = [1, 0] + ([] if algorithm == 'ddqn' else [0.3])
    values = np.maximum(inputs @ k1 + b1, 0) @ k2 + b2
    self.assertAllClose(values, np.full_like(
        values, 10.0 if is_limit else 6.5132), rtol=0, atol=0.1)

  @parameterized.parameters(
      ('ddqn', 1, 'uniform', True), ('ddqn', 3, 'prioritised', True),
      ('ddqn', 3, 'prioritised', False), ('td3', 3, 'uniform', True),
      ('td3', 1, 'prioritised', True), ('td3', 3, 'uniform', False),
      ('ddpg', 1, 'prioritised', True), ('ddpg', 3, 'uniform', False),
      ('sac', 1, 'uniform', True), ('sac', 3, 'prioritised', True),
      ('mpo', 1, 'uniform', True), ('mpo', 3, 'prioritised', True),
      # Episodes as short as each window of `n` steps. With a time limit, no
      # step would begin with the last state, so its value would be free.
      ('ddqn', 3, 'uniform', False, 3), ('sac', 3, 'prioritised', False, 3),
      ('mpo', 3, 'prioritised', False, 3))
  @pytest.mark.storm
  def test_values_with_memory(
      self, algorithm, n_step, selector, is_limit, num_steps=10):
    level = 'time_limit' if is_limit else 'terminating'
    settings = {
        'ddqn': dict(target_update_period=1), 'mpo': {}, 'ddpg': {},
        # With the delay, targets follow too slowly for so few updates.
        'td3': dict(num_critics=1, policy_delay=1), 'sac': dict(
            num_critics=1, initial_temperature=1e-6,
            temperature_learning_rate=0.)}[algorithm]
    if num_steps != 10:
      settings['environment_kwargs'] = f'{{"num_steps": {num_steps}}}'
    learners = []
    training.train(
        config_lib.Config(
            algorithm=algorithm,
            level_name=level + ('' if algorithm == 'ddqn' else '_box'),
            logdir=self.create_tempdir().full_path, hidden_sizes='32',
            use_lstm=True, lstm_units=8, use_last_action_reward=False,
            unroll_length=5, sequence_length=10, burn_in_steps=5,
            learning_rate=0.03, learning_rate_schedule='linear',
            discounting=0.9, batch_size=16, target_update_rate=0.1,
            n_step=n_step, selector=selector, min_replay_steps=200,
            total_environment_frames=4000, xla='none', updates_per_step=.25,
            num_actors=8, num_action_repeats=1, **settings),
        hooks=[lambda update: learners.append(update.learner)])
    algorithm_made = learners[-1].algorithm
    agent = algorithm_made.agent
    first = structs.StepOutput(
        tf.zeros([1, 1]), structs.NO_INFO, tf.ones([1, 1], tf.bool),
        tf.constant([[[1., 0.]]]))
    if algorithm == 'ddqn':
      outputs, _ = agent.unroll(
          tf.zeros([1, 1], tf.int32), first, agent.initial_state(1))
      values = outputs.policy
    else:
      seen, _ = agent.remember(
          tf.zeros([1, 1, 1]), first, agent.initial_state(1))
      values = algorithm_made._critics.first(seen, tf.constant([[.3]]))
    expected = 10.0 if is_limit else {10: 6.5132, 3: 2.71}[num_steps]
    if algorithm == 'ddqn':
      # Of two actions with equal values, DDQN takes the better one by noise.
      # The other one is seldom learned.
      self.assertAllClose(
          values, tf.fill(values.shape, expected), rtol=0, atol=.3)
      values = tf.reduce_max(values, -1)
    self.assertAllClose(
        values, tf.fill(values.shape, expected), rtol=0, atol=.1)

  @parameterized.parameters(True, False)
  @pytest.mark.storm
  def test_values_of_normalised_returns(self, is_limit):
    learners = []
    training.train(
        config_lib.Config(
            algorithm='appo', level_name='time_limit' if is_limit
            else 'terminating', logdir=self.create_tempdir().full_path,
            learning_rate=.01, discounting=.9, num_actors=8, unroll_length=16,
            batch_size=4, total_environment_frames=5000, xla='none'),
        hooks=[lambda update: learners.append(update.learner)])
    agent = learners[-1].agent
    outputs, _ = agent.unroll(
        tf.zeros([1, 1], tf.int32), structs.StepOutput(
            tf.zeros([1, 1]), structs.NO_INFO, tf.zeros([1, 1], tf.bool),
            tf.constant([[[1., 0.]]])), ())
    self.assertAllClose(
        outputs.baseline, [[10.0 if is_limit else 6.5132]], rtol=0, atol=.3)


if __name__ == '__main__':
  tf.test.main()
