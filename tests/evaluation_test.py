# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of test mode's games."""

import counting_agent
import numpy as np
from scalable_agent import environments
from scalable_agent import evaluation
from scalable_agent import policies
import tensorflow as tf


class _RecordingPolicy(policies.AgentPolicy):
  """Keeps the states that it is given."""

  def step(self, last_action, env_output, state):
    self.states.append(np.asarray(state[0]))
    return super().step(last_action, env_output, state)


class EvaluationTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self.policy = _RecordingPolicy(counting_agent.CountingAgent())
    self.policy.states = []

  def _returns(self, num_envs, num_episodes):
    with environments.make_vec(
        ['counting'] * num_envs, list(range(num_envs)),
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      return evaluation.episode_returns(env, self.policy, num_episodes)

  def test_one_environment(self):
    # Episodes of 2, 3, 5, 2 steps; rewards count from 1.
    self.assertEqual(
        self._returns(1, 4), [1 + 2, 3 + 4 + 5, sum(range(6, 11)), 11 + 12])

  def test_every_environment_plays_its_share(self):
    self.assertEqual(self._returns(2, 5), [3, 12, 40, 3, 12])

  def test_state_is_carried(self):
    self._returns(1, 2)
    # The agent counts the steps of the episode; it resets on done itself.
    self.assertAllEqual(np.concatenate(self.policy.states), [0, 1, 2, 1, 2])


if __name__ == '__main__':
  tf.test.main()
