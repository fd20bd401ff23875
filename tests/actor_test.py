# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of acting: what stands at which index, and hand-over between unrolls.

A counting environment in real processes and a counting agent prove it by
equality.
"""

from absl.testing import parameterized
import counting_agent
import numpy as np
from scalable_agent import actor as actor_lib
from scalable_agent import environments
from scalable_agent import metrics
from scalable_agent import queues
import tensorflow as tf
import tree


def _make_actor(env, unroll_length, published=None, sink=None, agent=None,
                bootstrap_truncated=False):
  published = published or (lambda: actor_lib.Weights(0, [tf.constant(1.0)]))
  return actor_lib.Actor(
      env,
      actor_lib.Policy(agent or counting_agent.CountingAgent(), published),
      queues.BoundedQueue(1) if sink is None else sink, unroll_length,
      metrics.StageTimer(), bootstrap_truncated=bootstrap_truncated)


def _copy(unroll):
  return tree.map_structure(np.copy, unroll.output)


class ActorTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self.env = environments.make_vec(
        ['counting', 'counting'], [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1))
    self.addCleanup(self.env.close)

  def _unrolls(self, unroll_length, count):
    actor = _make_actor(self.env, unroll_length)
    for _ in range(count):
      unroll = actor.make_unroll()
      yield _copy(unroll)
      unroll.release()

  def test_first_unroll(self):
    [unroll] = self._unrolls(unroll_length=2, count=1)
    env, agent = unroll.env_outputs, unroll.agent_outputs
    # Episodes of 2, 3, 5 steps; rewards count from 1.
    self.assertAllEqual(env.reward, [[0, 0], [1, 1], [2, 2]])
    self.assertAllEqual(env.done, [[True] * 2, [False] * 2, [True] * 2])
    self.assertAllEqual(env.info.episode_return, [[0, 0], [1, 1], [3, 3]])
    self.assertAllEqual(env.info.episode_step, [[0, 0], [1, 1], [2, 2]])
    self.assertAllEqual(agent.action[0], [0, 0])
    self.assertAllEqual(agent.policy_logits[0], np.zeros([2, 3]))
    self.assertAllEqual(agent.baseline[0], [0, 0])
    self.assertAllEqual(unroll.agent_state[0], [0, 0])

  def test_every_entry_of_many_unrolls(self):
    previous = None
    state = np.zeros([2])
    for unroll in self._unrolls(unroll_length=4, count=8):
      env, agent = unroll.env_outputs, unroll.agent_outputs
      if previous is not None:
        tree.map_structure(
            lambda new, old: self.assertAllEqual(new[0], old[-1]),
            (env, agent), (previous.env_outputs, previous.agent_outputs))
      # The state is the one before the observation of entry 0 is processed.
      self.assertAllEqual(unroll.agent_state[0], state)
      for t in range(1, 5):
        seen = env.observation[t - 1, :, 0]
        state = np.where(env.done[t - 1], 0, state) + 1
        self.assertAllEqual(env.observation[t, :, 0], seen + 1)
        self.assertAllEqual(env.reward[t], seen + 1)
        self.assertAllEqual(agent.action[t], seen.astype(np.int32) % 3)
        # The environment reports the action that led to the observation.
        self.assertAllEqual(env.observation[t, :, 1], agent.action[t])
        self.assertAllEqual(
            agent.policy_logits[t],
            np.stack([seen, state, agent.action[t - 1]], axis=-1))
        self.assertAllEqual(agent.baseline[t], seen)
      previous = unroll

  @parameterized.parameters(False, True)
  def test_values_of_truncated_episodes(self, bootstrap_truncated):
    class Revealing(counting_agent.CountingAgent):
      """Its baseline tells observation, state, last action and reward."""

      def step(self, last_action, env_output, state):
        output, state = super().step(last_action, env_output, state)
        return output._replace(
            action=(output.action + 1) % 2,
            policy_logits=output.policy_logits[:, :2],
            baseline=output.baseline + 10 * state[0] + env_output.reward / 8
            + 100 * tf.cast(last_action, tf.float32)), state

    # Episodes of three steps; the observation is the step in the episode. The
    # second one of the first environment reaches its end and its limit at once.
    with environments.make_vec(
        ['fake_environments:fake/TimeLimited-v0',
         'fake_environments:fake/Plain-v0'], [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      actor = _make_actor(env, 4, agent=Revealing(),
                          bootstrap_truncated=bootstrap_truncated)
      found, dones = [], []
      for unroll in (actor.make_unroll() for _ in range(3)):
        output = unroll.output
        if found:
          self.assertAllEqual(output.truncation_values[0], found[-1])
        found.extend(output.truncation_values[1:].copy())
        dones.extend(output.env_outputs.done[1:, 0].copy())
        unroll.release()
    # Observation 3 after action 1, with reward 1, is the fourth that is seen.
    value = (3 + 10 * 4 + 1 / 8 + 100 * 1) * bootstrap_truncated
    self.assertAllEqual(
        found, [[value if t in (3, 9) else 0, 0] for t in range(1, 13)])
    self.assertAllEqual(dones, [t % 3 == 0 for t in range(1, 13)])

  def test_weights_are_taken_over_at_the_start_of_an_unroll(self):
    published = [actor_lib.Weights(3, [tf.constant(1.0)])]
    actor = _make_actor(self.env, 2, lambda: published[-1])
    first = actor.make_unroll()
    published.append(actor_lib.Weights(5, [tf.constant(-2.0)]))
    second = actor.make_unroll()
    self.assertAllEqual(first.policy_version, [3, 3])
    self.assertAllEqual(first.output.agent_outputs.baseline[1:],
                        [[0, 0], [1, 1]])
    self.assertAllEqual(second.policy_version, [5, 5])
    self.assertAllEqual(second.output.agent_outputs.baseline[1:],
                        [[-4, -4], [-6, -6]])

  def test_an_unroll_that_is_not_released_is_not_written(self):
    actor = _make_actor(self.env, 2)
    held = actor.make_unroll()
    copy = _copy(held)
    for _ in range(6):
      actor.make_unroll().release()
    tree.map_structure(self.assertAllEqual, held.output, copy)

  def test_run_ends_when_the_sink_closes(self):
    sink = queues.BoundedQueue(1)
    sink.close()
    _make_actor(self.env, 2, sink=sink).run()

  def test_run_ends_when_the_actor_closes(self):
    actor = _make_actor(self.env, 2)
    actor.close()
    actor.run()

  def test_greedy_takes_the_most_likely_action(self):
    agent = counting_agent.CountingAgent()
    weights = actor_lib.Weights(0, [tf.constant(1.0)])
    policy = actor_lib.Policy(agent, lambda: weights, greedy=True)
    policy.refresh()
    output = self.env.initial()
    chosen, _ = policy.step(np.array([0, 2], np.int32), output,
                            policy.initial_state(2))
    # Logits are (0, 1, last action).
    self.assertAllEqual(chosen.action, [1, 2])
    chosen, _ = policy.step(np.array([2, 0], np.int64), output,
                            policy.initial_state(2))
    self.assertAllEqual(chosen.action, [2, 1])


if __name__ == '__main__':
  tf.test.main()
