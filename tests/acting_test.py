# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of actors in threads: what they deliver, how they fail and end."""

import os
import threading
from unittest import mock

from absl.testing import absltest
import counting_agent
import numpy as np
from scalable_agent import environments
from scalable_agent.acting import interface
from scalable_agent.acting import local as local_lib
from scalable_agent.acting import policies
from scalable_agent.acting import shares
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.processes import starts
from scalable_agent.settings import config as config_lib
import tensorflow as tf


class _Broken(counting_agent.CountingAgent):

  def step(self, last_action, env_output, state, greedy=False):
    raise ValueError('Broken agent')


class LocalTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.envs = environments.make_groups(
        ['counting'] * 3, [1, 2, 3],
        environments.EnvironmentSettings(num_action_repeats=1), num_groups=2)
    for env in self.envs:
      self.addCleanup(env.close)
    self.inbox = queues.BoundedQueue(1)

  def _start(self, *actor_policies):
    local = local_lib.Local(self.envs, lambda: actor_policies, range(3),
                         unroll_length=2, num_buffers=2,
                         bootstrap_truncated=False)
    self.addCleanup(local.stop, 10)
    self.addCleanup(self.inbox.close)
    local.start(lambda: structs.Weights(3, [tf.constant(1.0)]), self.inbox)
    return local

  def _assert_ended(self):
    alive = [t.name for t in threading.enumerate()
             if t.name.startswith(('actor-', 'batcher-'))]
    self.assertEmpty(alive)

  def test_every_group_delivers_and_all_ends(self):
    policy = lambda: policies.AgentPolicy(counting_agent.CountingAgent())
    local = self._start(policy(), policy())
    counts = {}
    while len(counts) < 2 or min(counts.values()) < 4:
      unroll, release = self.inbox.get()
      np.testing.assert_array_equal(unroll.start.policy_version, 3)
      num_columns, n = unroll.num_columns, counts.get(unroll.num_columns, 0)
      # Each unroll goes on where the last one of the same group ended.
      np.testing.assert_array_equal(
          unroll.steps.env_outputs.observation[:, :, 0],
          np.tile(2 * n + np.arange(3)[:, None], num_columns))
      counts[num_columns] = n + 1
      release()
    self.assertEqual(set(counts), {1, 2})  # Three environments, two groups.
    self.inbox.close()
    local.stop(10)
    self._assert_ended()
    self.assertGreater(local.seconds()['environment'], 0)

  def test_an_error_reaches_the_inbox_and_all_ends(self):
    local = self._start(policies.AgentPolicy(counting_agent.CountingAgent()),
                        policies.AgentPolicy(_Broken()))
    with self.assertRaisesRegex(ValueError, 'Broken agent'):
      while True:
        _, release = self.inbox.get()
        release()
    local.stop(10)
    self._assert_ended()

  def test_a_shared_policy_ends_with_its_actors(self):
    shared = policies.SharedPolicy(
        policies.AgentPolicy(counting_agent.CountingAgent()))
    local = self._start(shared, shared)
    self.inbox.get().release()
    self.inbox.close()
    local.stop(10)
    self._assert_ended()


class SharesTest(absltest.TestCase):

  def test_workers_take_no_more_threads_than_they_have_cpus(self):
    self.addCleanup(starts.limit_cores, 0)
    self.enter_context(mock.patch.object(
        os, 'sched_getaffinity', lambda _: set(range(16))))
    for address, num_threads, num_cores in ('', 0, 16), ('auto', 3, 3):
      config = config_lib.Config(
          num_actors=4, num_actor_groups=2, ray_address=address,
          **{'num_cpus_per_actor_worker': 3} if address else {})
      with mock.patch.object(environments, '_make_vec') as make_vec:
        shares.make_environments(config, 0, interface.Share(range(4), 0))
      self.assertEqual([call.args[4] for call in make_vec.call_args_list],
                       [num_threads] * 2)
      self.assertEqual(starts.num_cores(), num_cores)


if __name__ == '__main__':
  absltest.main()
