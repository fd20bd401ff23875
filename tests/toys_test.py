# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the toys: the rules, and the optima that the toys claim.

The tests of `catch`, `memory` and `counting` are in environments_test.py.
"""

import itertools

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import hidden
from scalable_agent.environments import toys

_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)


class TMazeTest(environment_contract.SerialReference,
                environment_contract.EnvironmentContract,
                parameterized.TestCase):
  level_name = 'tmaze'
  make_serial = hidden.TMaze

  def _play(self, length, choose, places=()):
    """Returns whether the goal was on the left, and the rewards.

    `places` are the places in the corridor after each step but the last; by
    default, every step goes on.
    """
    games = []
    env = environments.make_vec([f'tmaze_{length}'], [3], _SETTINGS)
    self.addCleanup(env.close)
    output = env.initial()
    for _ in range(8):
      seen, rewards = [output.observation[0].copy()], []
      while True:
        output = env.step(np.array([choose(len(rewards), seen)], np.int32))
        rewards.append(float(output.reward[0]))
        if output.done[0]:
          break
        seen.append(output.observation[0].copy())
      self.assertFalse(output.truncated[0])
      self.assertIn(tuple(seen[0]), ((1, 0, 0), (0, 1, 0)))
      np.testing.assert_array_equal(
          seen[1:], [(0, 0, place == length)
                     for place in places or range(1, len(seen))])
      games.append((seen[0][0] == 1, rewards))
    self.assertLen({is_left for is_left, _ in games}, 2)
    return games

  @parameterized.parameters(1, 4, 20)
  def test_returns(self, length):
    best = self._play(length, lambda t, seen: 0 if t < length else (
        2 if seen[0][0] else 3))
    self.assertEqual([r for _, r in best], [[0.] * length + [1.]] * 8)
    left = self._play(length, lambda t, seen: 0 if t < length else 2)
    for is_left, rewards in left:
      self.assertEqual(rewards, [0.] * length + [float(is_left)])

  def test_lost_steps_cost(self):
    # Back at the wall, left in the corridor, and one step back.
    plan = [1, 0, 2, 0, 1]
    for _, rewards in self._play(
        4, lambda t, seen: plan[t], places=[0, 1, 1, 2]):
      self.assertEqual(rewards, [-.25, 0, -.25, 0, -.25])
    # Waiting at the end of the corridor reaches no goal.
    for _, rewards in self._play(4, lambda t, seen: 0):
      self.assertEqual(rewards, [0, 0, 0, 0, -.25])


class PositionsTest(parameterized.TestCase):

  @parameterized.parameters(
      ('pendulum_position', 'Pendulum-v1', [0, 1]),
      ('cartpole_position', 'CartPole-v1', [0, 2]))
  def test_all_but_velocities_is_shown(self, level_name, whole_name, indices):
    envs = [environments.make_vec([name], [5], _SETTINGS)
            for name in (level_name, whole_name)]
    for env in envs:
      self.addCleanup(env.close)
    positions, whole = envs
    self.assertEqual(positions.spec.action, whole.spec.action)
    self.assertEqual(positions.spec.observation.shape, (2,))
    outputs = [env.initial() for env in envs]
    num_ends = 0
    for t in range(250):
      np.testing.assert_allclose(
          outputs[0].observation, outputs[1].observation[:, indices], rtol=1e-6)
      for name in ('reward', 'done', 'truncated'):
        np.testing.assert_array_equal(*[getattr(o, name) for o in outputs])
      num_ends += outputs[0].done[0]
      action = (np.array([[np.sin(t)]], np.float32)
                if whole.spec.action.size else np.array([t // 2 % 2], np.int32))
      outputs = [env.step(action) for env in envs]
    self.assertGreater(num_ends, 1)


class BitFlippingTest(environment_contract.SerialReference,
                      environment_contract.EnvironmentContract,
                      parameterized.TestCase):
  level_name = 'bit_flipping'
  make_serial = toys.BitFlipping

  def make_level(self, level_name, num_envs):
    env = environments.make_vec(
        [level_name] * num_envs, list(range(num_envs)), _SETTINGS)
    self.addCleanup(env.close)
    return env

  @parameterized.parameters(
      ('bit_flipping', 15), ('bit_flipping_1', 1), ('bit_flipping_2', 2),
      ('bit_flipping_40', 40))
  def test_best_policy(self, level_name, num_bits):
    env = self.make_level(level_name, 3)
    self.assertEqual(env.spec.action.num_values, (num_bits,))
    observation = env.initial().observation
    for name in ('observation', 'achieved_goal', 'desired_goal'):
      self.assertEqual(env.spec.observation[name].shape, (num_bits,))
    distance = np.zeros([3])
    first = None
    for _ in range(50):
      wrong = observation['achieved_goal'] != observation['desired_goal']
      distance = np.where(distance == 0, wrong.sum(axis=1), distance)
      first = distance if first is None else first
      self.assertGreater(distance.min(), 0)  # Start and goal differ.
      output = env.step(wrong.argmax(axis=1))
      is_last = wrong.sum(axis=1) == 1
      np.testing.assert_array_equal(output.done, is_last)
      self.assertFalse(output.truncated.any())
      np.testing.assert_array_equal(output.reward, np.where(is_last, 0, -1))
      for i in np.flatnonzero(is_last):
        self.assertEqual(output.info.episode_return[i], 1 - distance[i])
        np.testing.assert_array_equal(
            output.last_observation['achieved_goal'][i],
            output.last_observation['desired_goal'][i])
        distance[i] = 0
      observation = environment_contract.copied(output).observation
    if num_bits > 2:
      self.assertGreater(len(set(first)), 1)

  def test_an_action_flips_its_bit(self):
    env = self.make_level('bit_flipping', 2)
    before = environment_contract.copied(env.initial()).observation
    after = env.step(np.array([3, 14])).observation
    for i, bit in enumerate((3, 14)):
      for name in ('observation', 'achieved_goal'):
        np.testing.assert_array_equal(
            np.flatnonzero(before[name][i] != after[name][i]), [bit])
        self.assertContainsSubset(set(after[name][i]), {0, 1})
    np.testing.assert_array_equal(
        before['desired_goal'], after['desired_goal'])

  def test_is_cut_off_without_success(self):
    env = self.make_level('bit_flipping', 2)
    env.initial()
    for t in range(1, 31):
      output = env.step(np.array([0, 0]))
      self.assertEqual(output.truncated.tolist(), [t % 15 == 0] * 2)
      self.assertEqual(output.done.tolist(), [t % 15 == 0] * 2)
      self.assertEqual(output.reward.tolist(), [-1, -1])

  def test_success_in_the_last_step_is_no_truncation(self):
    env = self.make_level('bit_flipping_2', 8)
    observation = env.initial().observation
    wrong = observation['achieved_goal'] != observation['desired_goal']
    far = wrong.all(axis=1)
    self.assertTrue(far.any())
    env.step(np.zeros([8], np.int32))
    output = env.step(np.ones([8], np.int32))
    self.assertEqual(output.reward[far].tolist(), [0] * far.sum())
    self.assertTrue(output.done[far].all())
    self.assertFalse(output.truncated[far].any())

  def test_rewards_in_hindsight(self):
    rewards, _ = environments.goal_functions('bit_flipping_3', _SETTINGS)
    all_bits = np.array(list(itertools.product([0, 1], repeat=3)), np.float32)
    pairs = list(itertools.product(all_bits, all_bits))
    found = rewards(*map(np.array, zip(*pairs)))
    self.assertEqual(found.dtype, np.float32)
    self.assertEqual(
        found.tolist(), [0 if tuple(a) == tuple(d) else -1 for a, d in pairs])

  @parameterized.parameters('bit_flipping_0', 'bit_flipping_', 'bit_flipping_x')
  def test_other_names(self, name):
    with self.assertRaisesRegex(errors.UnknownLevelError, 'bit_flipping'):
      environments.make_vec([name], [1], _SETTINGS)


class TimeLimitTest(environment_contract.SerialReference,
                    environment_contract.EnvironmentContract,
                    absltest.TestCase):
  level_name = 'time_limit'

  def make_serial(self):
    return toys.LEVELS['time_limit']()


class TerminatingBoxTest(environment_contract.SerialReference,
                         environment_contract.EnvironmentContract,
                         absltest.TestCase):
  level_name = 'terminating_box'

  def make_serial(self):
    return toys.LEVELS['terminating_box']()


class ConstantRewardTest(parameterized.TestCase):

  @parameterized.parameters(
      ('time_limit', 10), ('time_limit_box', 10), ('terminating', 10),
      ('terminating_box', 10), ('terminating', 3), ('time_limit', 3))
  def test_trace(self, name, length):
    terminates = name.startswith('terminating')
    env = toys.LEVELS[name](**{} if length == 10 else dict(num_steps=length))
    self.assertEqual(
        env.action_space, gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        if name.endswith('box') else gymnasium.spaces.Discrete(2))
    for _ in range(2):
      observation, _ = env.reset(seed=1)
      value = 0
      for t in range(length):
        np.testing.assert_allclose(observation, [1, terminates * t / length])
        self.assertIn(observation, env.observation_space)
        observation, *rest = env.step(env.action_space.sample())
        is_last = t == length - 1
        self.assertEqual(
            rest, [1, terminates and is_last, not terminates and is_last, {}])
        value += 0.9 ** t * rest[0]
      np.testing.assert_allclose(observation, [1, terminates])
      self.assertAlmostEqual(
          value, {3: 2.71, 10: 6.5132}[length], places=4)


class PatternTest(environment_contract.SerialReference,
                  environment_contract.EnvironmentContract,
                  absltest.TestCase):
  level_name = 'pattern'
  make_serial = toys.Pattern

  def test_policies(self):
    rng = np.random.default_rng(0)
    found = {'best': [], 'one part wrong': [], 'random': []}
    for policy, returns in found.items():
      for pattern, step in _steps(toys.Pattern(), 400):
        parts = np.split(pattern, [2, 5])
        self.assertEqual([part.sum() for part in parts], [1, 1, 1])
        action = np.array([part.argmax() for part in parts])
        if policy == 'one part wrong':
          part = rng.integers(3)
          action[part] = (action[part] + 1) % (2, 3, 4)[part]
        elif policy == 'random':
          action = rng.integers([2, 3, 4])
        returns.append(step(action))
    self.assertEqual(set(found['best']), {1})
    np.testing.assert_allclose(found['one part wrong'], 2 / 3)
    self.assertAlmostEqual(np.mean(found['random']), 13 / 36, delta=0.02)


class TargetTest(environment_contract.SerialReference,
                 environment_contract.EnvironmentContract,
                 absltest.TestCase):
  level_name = 'target'
  make_serial = toys.Target

  def test_policies(self):
    rng = np.random.default_rng(0)
    found = {'best': [], 'middle': [], 'random': []}
    for policy, rewards in found.items():
      for target, step in _steps(toys.Target(), 400):
        action = {'best': target, 'middle': np.array([0, 0.5]),
                  'random': rng.uniform([-2, 0], [2, 1])}[policy]
        rewards.append(step(action.astype(np.float32)))
        self.assertAlmostEqual(
            rewards[-1], -(action[0] - target[0]) ** 2
            - (action[1] - target[1]) ** 2, places=5)
    self.assertEqual(set(found['best']), {0})
    self.assertAlmostEqual(np.mean(found['middle']), -17 / 12, delta=0.05)
    self.assertAlmostEqual(np.mean(found['random']), -34 / 12, delta=0.1)


def _steps(env, num_episodes):
  """Yields observations, with a function that acts and returns the reward."""
  rewards = []

  def step(action):
    nonlocal observation, terminated
    assert env.action_space.contains(action)
    observation, reward, terminated, truncated, _ = env.step(action)
    assert not truncated
    rewards.append(reward)
    return reward

  for episode in range(num_episodes):
    observation, _ = env.reset(seed=None if episode else 1)
    terminated = False
    while not terminated:
      assert env.observation_space.contains(observation)
      yield observation, step
    assert len(rewards) == 10 * (episode + 1)


if __name__ == '__main__':
  absltest.main()
