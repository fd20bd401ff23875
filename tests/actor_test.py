# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of acting: which entry holds what, and how unrolls join up.

A counting environment in real processes and a counting agent prove it by
equality.
"""

from absl.testing import parameterized
import counting_agent
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import actor as actor_lib
from scalable_agent.acting import policies
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
import tensorflow as tf
import tree


def _make_actor(env, unroll_length, published=None, inbox=None, agent=None,
                bootstrap_truncated=False):
  published = published or (lambda: structs.Weights(0, [tf.constant(1.0)]))
  return actor_lib.Actor(
      env, policies.AgentPolicy(agent or counting_agent.CountingAgent()),
      published, queues.BoundedQueue(1) if inbox is None else inbox,
      unroll_length, timing.StageTimer(),
      bootstrap_truncated=bootstrap_truncated)


def _copy(unroll):
  return tree.map_structure(np.copy, unroll)


class _Lossy:
  """Environments that are lost once, after some steps or before the first."""

  def __init__(self, env, num_steps):
    self._env = env
    self._num_steps = num_steps
    self.num_losses = 0

  def __getattr__(self, name):
    return getattr(self._env, name)

  def _count(self):
    self._num_steps -= 1
    if self._num_steps == -1:
      self.num_losses += 1
      raise errors.EnvironmentLostError()

  def initial(self):
    if self._num_steps == 0:
      self._count()
    return self._env.initial()

  def step(self, actions):
    self._count()
    return self._env.step(actions)


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
      unroll, release = actor.make_unroll()
      yield _copy(unroll)
      release()

  def test_first_unroll(self):
    [unroll] = self._unrolls(unroll_length=2, count=1)
    env, agent, _ = unroll.steps
    # Episodes of 2, 3, 5 steps; rewards count from 1.
    self.assertAllEqual(env.reward, [[0, 0], [1, 1], [2, 2]])
    self.assertAllEqual(env.done, [[True] * 2, [False] * 2, [True] * 2])
    self.assertAllEqual(env.info.episode_return, [[0, 0], [1, 1], [3, 3]])
    self.assertAllEqual(env.info.episode_step, [[0, 0], [1, 1], [2, 2]])
    self.assertAllEqual(agent.action[0], [0, 0])
    self.assertAllEqual(agent.policy[0], np.zeros([2, 3]))
    self.assertAllEqual(agent.baseline[0], [0, 0])
    self.assertAllEqual(unroll.start.agent_state[0], [0, 0])
    self.assertEqual(list(unroll.start.level_name), ['counting'] * 2)
    self.assertAllEqual(env.truncated, np.zeros([3, 2], bool))
    # Both episodes end with entry 2, not cut off.
    self.assertEqual([(last.time, last.column, list(last.observation))
                      for last in unroll.last_observations],
                     [(2, 0, [2, 1]), (2, 1, [2, 1])])

  @parameterized.parameters(0, 1, 2, 3, 5)
  def test_an_unroll_whose_environments_are_lost_begins_anew(self, count):
    [first, *expected] = self._unrolls(unroll_length=2, count=4)
    lost_env = _Lossy(self.env, num_steps=count)
    actor = _make_actor(lost_env, unroll_length=2)
    found = []
    for _ in range(4 + count // 2):
      unroll, release = actor.make_unroll()
      found.append(_copy(unroll))
      release()
    self.assertEqual(lost_env.num_losses, 1)
    # Whole unrolls before the loss stay; then all is as at the beginning.
    whole = [first, *expected][:count // 2]
    for mine, theirs in zip(found, [*whole, first, *expected], strict=True):
      tree.map_structure(np.testing.assert_array_equal, mine, theirs)

  def test_unrolls_name_their_environments(self):
    groups = environments.make_groups(
        ['counting'] * 3, [1, 2, 3],
        environments.EnvironmentSettings(num_action_repeats=1), 2)
    for env, numbers in zip(groups, ([0, 1], [2])):
      self.addCleanup(env.close)
      actor = _make_actor(env, 2)
      for _ in range(3):  # More unrolls than buffers.
        unroll, release = actor.make_unroll()
        self.assertEqual(unroll.start.environment.tolist(), numbers)
        release()

  def test_environments_keep_their_place_on_the_ladder(self):
    class Policy(policies.AgentPolicy):

      def step(self, last_action, env_output, state, *ladder):
        ladders.append(ladder)
        return super().step(last_action, env_output, state)

    groups = environments.make_groups(
        ['counting'] * 3, [1, 2, 3],
        environments.EnvironmentSettings(num_action_repeats=1), 2,
        first_index=4)
    for env, numbers in zip(groups, ([4, 5], [6])):
      self.addCleanup(env.close)
      ladders = []
      actor = actor_lib.Actor(
          env, Policy(counting_agent.CountingAgent()),
          lambda: structs.Weights(0, [tf.constant(1.0)]),
          queues.BoundedQueue(1), 2, timing.StageTimer(),
          ladder=np.arange(8) / 10)
      actor.make_unroll()
      self.assertAllClose(ladders, [[np.array(numbers) / 10]] * 2)

  def test_every_entry_of_many_unrolls(self):
    previous = None
    state = np.zeros([2])
    for unroll in self._unrolls(unroll_length=4, count=8):
      env, agent, _ = unroll.steps
      if previous is not None:
        tree.map_structure(
            lambda new, old: self.assertAllEqual(new[0], old[-1]),
            unroll.steps, previous.steps)
      # The state is the one before the observation of entry 0 is processed.
      self.assertAllEqual(unroll.start.agent_state[0], state)
      for t in range(1, 5):
        seen = env.observation[t - 1, :, 0]
        state = np.where(env.done[t - 1], 0, state) + 1
        self.assertAllEqual(env.observation[t, :, 0], seen + 1)
        self.assertAllEqual(env.reward[t], seen + 1)
        self.assertAllEqual(agent.action[t], seen.astype(np.int32) % 3)
        # The environment reports the action that led to the observation.
        self.assertAllEqual(env.observation[t, :, 1], agent.action[t])
        self.assertAllEqual(
            agent.policy[t],
            np.stack([seen, state, agent.action[t - 1]], axis=-1))
        self.assertAllEqual(agent.baseline[t], seen)
      previous = unroll

  @parameterized.parameters(False, True)
  def test_values_of_truncated_episodes(self, bootstrap_truncated):
    class Revealing(counting_agent.CountingAgent):
      """Its baseline shows observation, state, last action and reward."""

      def __init__(self):
        super().__init__()
        self.output_spec = self.output_spec._replace(
            policy=structs.ArraySpec((2,), np.dtype(np.float32)))

      def step(self, last_action, env_output, state, greedy=False):
        output, state = super().step(last_action, env_output, state, greedy)
        return output._replace(
            action=(output.action + 1) % 2,
            policy=output.policy[:, :2],
            baseline=output.baseline + 10 * state[0] + env_output.reward / 8
            + 100 * tf.cast(last_action, tf.float32)), state

    # Episodes of three steps; the observation is the step in the episode. In
    # the first environment, the second episode reaches its end and its limit at
    # the same time.
    with environments.make_vec(
        ['fake_environments:fake/TimeLimited-v0',
         'fake_environments:fake/Plain-v0'], [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      actor = _make_actor(env, 4, agent=Revealing(),
                          bootstrap_truncated=bootstrap_truncated)
      found, dones, truncated, lasts = [], [], [], []
      for unroll, release in (actor.make_unroll() for _ in range(3)):
        env_outputs, _, values = unroll.steps
        if found:
          self.assertAllEqual(values[0], found[-1])
          self.assertAllEqual(env_outputs.truncated[0], truncated[-1])
        lasts += [(len(found) + last.time, last.column, last.observation)
                  for last in unroll.last_observations]
        found.extend(values[1:].copy())
        dones.extend(env_outputs.done[1:, 0].copy())
        truncated.extend(env_outputs.truncated[1:].copy())
        release()
    # Observation 3 after action 1, with reward 1, is the fourth that is seen.
    value = (3 + 10 * 4 + 1 / 8 + 100 * 1) * bootstrap_truncated
    self.assertAllEqual(
        found, [[value if t in (3, 9) else 0, 0] for t in range(1, 13)])
    self.assertAllEqual(dones, [t % 3 == 0 for t in range(1, 13)])
    self.assertAllEqual(
        truncated, [[t in (3, 9), False] for t in range(1, 13)])
    # The observation before the reset, with and without values, whether or not
    # a time limit ended the episode.
    self.assertEqual(
        [(time, column, observation.tolist())
         for time, column, observation in lasts],
        [(3, 0, [3]), (5, 1, [5]), (6, 0, [3]), (9, 0, [3]), (10, 1, [5]),
         (12, 0, [3])])

  def test_weights_are_taken_over_at_the_start_of_an_unroll(self):
    published = [structs.Weights(3, [tf.constant(1.0)])]
    actor = _make_actor(self.env, 2, lambda: published[-1])
    first, _ = actor.make_unroll()
    published.append(structs.Weights(5, [tf.constant(-2.0)]))
    second, _ = actor.make_unroll()
    self.assertAllEqual(first.start.policy_version, [3, 3])
    self.assertAllEqual(first.steps.agent_outputs.baseline[1:],
                        [[0, 0], [1, 1]])
    self.assertAllEqual(second.start.policy_version, [5, 5])
    self.assertAllEqual(second.steps.agent_outputs.baseline[1:],
                        [[-4, -4], [-6, -6]])

  def test_an_unroll_that_is_not_released_is_not_written(self):
    actor = _make_actor(self.env, 2)
    held, _ = actor.make_unroll()
    copy = _copy(held)
    for _ in range(6):
      actor.make_unroll().release()
    tree.map_structure(self.assertAllEqual, held, copy)

  def test_run_ends_when_the_inbox_closes(self):
    inbox = queues.BoundedQueue(1)
    inbox.close()
    _make_actor(self.env, 2, inbox=inbox).run()

  def test_run_ends_when_the_actor_closes(self):
    actor = _make_actor(self.env, 2)
    actor.close()
    actor.run()


# See `mutations.py`.
MUTATIONS = (
    dict(file='acting/actor',
         catches='test_environments_keep_their_place_on_the_ladder', rows=(
        ('places counted in each actor',
         'ladder[np.array(env.indices)]', 'ladder[:env.num_envs]'),
    )),
    dict(file='acting/actor', catches='test_first_unroll', rows=(
        ('last observation one entry early',
         'unrolls.last_observations(index, env_output)',
         'unrolls.last_observations(index - 1, env_output)'),
    )),
    dict(file='acting/actor',
         catches='test_values_of_truncated_episodes', rows=(
        ('values where nothing was cut off',
         'np.where(env_output.truncated, output.baseline.T, np.float32(0)).T',
         'output.baseline'),
        ('values of the next episode',
         'observation=env_output.last_observation)',
         'observation=env_output.observation)'),
        ('values stay',
         '    self._truncation_value = self._no_truncation\n'
         '    if self._bootstrap',
         '    if self._bootstrap'),
    )),
    dict(file='acting/actor',
         catches='test_an_unroll_whose_environments_are_lost_begins_anew',
         rows=(
        ('lost environments leave the state behind',
         '    self._state = self._policy.initial_state(num_envs)\n',
         '    if not hasattr(self, "_state"):\n'
         '      self._state = self._policy.initial_state(num_envs)\n'),
        ('lost environments leave the last step behind',
         'except errors.EnvironmentLostError:\n'
         '        self._begin()',
         'except errors.EnvironmentLostError:\n'
         '        self._state = self._policy.initial_state(self._env.num_en'
         'vs)\n'
         '        self._env_output = None'),
        ('lost environments go on with the old step',
         'except errors.EnvironmentLostError:\n'
         '        self._begin()',
         'except errors.EnvironmentLostError:\n'
         '        pass'),
        ('state after the unroll instead of before',
         '    tree.map_structure(np.copyto, buffer.start.agent_state,\n',
         '    tree.map_structure(np.add, buffer.start.agent_state,\n'),
    )),
    dict(file='acting/actor',
         catches='test_weights_are_taken_over_at_the_start_of_an_unroll',
         rows=(
        ('weights never taken over', 'self._policy.refresh(self._published())',
         'self._policy.refresh(structs.Weights(\n'
         '        0, self._published().values))'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
