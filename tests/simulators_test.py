# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of MuJoCo's, Gymnasium-Robotics' and Box2D's levels, beside gymnasium.
"""

import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
import gymnasium_robotics  # noqa: F401
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import robotics
from scalable_agent.experience import structs

_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)
_FLOAT32 = np.dtype(np.float32)


@pytest.mark.slow
class HalfCheetahTest(environment_contract.SerialReference,
                      environment_contract.EnvironmentContract,
                      absltest.TestCase):
  level_name = 'HalfCheetah-v5'
  settings = environments.EnvironmentSettings(
      num_action_repeats=1, environment_kwargs={'max_episode_steps': 50})

  def make_serial(self):
    return gymnasium.make(self.level_name, max_episode_steps=50)

  def test_spec(self):
    spec = self.make([1]).spec._replace(units=None)
    self.assertEqual(spec, structs.EnvironmentSpec(
        structs.ArraySpec((17,), _FLOAT32), structs.ActionSpec(size=6), 1))


@pytest.mark.slow
class FetchReachTest(environment_contract.SerialReference,
                     environment_contract.EnvironmentContract,
                     absltest.TestCase):
  level_name = 'FetchReach-v4'
  num_steps = 60  # Is cut off after 50.

  def test_spec(self):
    spec = self.make([1]).spec._replace(units=None)
    self.assertEqual(spec, structs.EnvironmentSpec(
        {'observation': structs.ArraySpec((10,), _FLOAT32),
         'achieved_goal': structs.ArraySpec((3,), _FLOAT32),
         'desired_goal': structs.ArraySpec((3,), _FLOAT32)},
        structs.ActionSpec(size=4), 1))

  def test_rewards_in_hindsight(self):
    rewards, _ = environments.goal_functions(self.level_name, _SETTINGS)
    env = self.make([1, 2])
    for output in self.run_steps(env, self.actions(env))[1:]:
      observation = (output.last_observation
                     if output.info.episode_end.any() else output.observation)
      achieved = observation['achieved_goal']
      np.testing.assert_array_equal(
          rewards(achieved, observation['desired_goal']), output.reward)
      np.testing.assert_array_equal(rewards(achieved, achieved), [0, 0])
      # A goal is reached within 5 cm.
      for distance, reward in ((0.049, 0), (0.051, -1)):
        np.testing.assert_array_equal(
            rewards(achieved, achieved + [0, distance, 0]), [reward] * 2)


@pytest.mark.slow
class LunarLanderTest(environment_contract.SerialReference,
                      environment_contract.EnvironmentContract,
                      absltest.TestCase):
  level_name = 'LunarLander-v3'
  num_steps = 150


class LevelsTest(parameterized.TestCase):

  @parameterized.parameters('', 'gymnasium_robotics:')
  @pytest.mark.slow
  def test_robotics_registers_itself(self, module):
    with mock.patch.dict(gymnasium.registry), mock.patch.dict(sys.modules):
      for name in robotics.known_levels():
        del gymnasium.registry[name]
      for name in list(sys.modules):
        if name.startswith('gymnasium_robotics'):
          del sys.modules[name]
      with environments.make_vec(
          [f'{module}FetchReach-v4'], [1], _SETTINGS) as env:
        found = env.initial().observation
    serial = gymnasium.make('FetchReach-v4')
    np.testing.assert_array_equal(
        found['desired_goal'][0],
        serial.reset(seed=1)[0]['desired_goal'].astype(np.float32))

  @parameterized.parameters(
      'PointMaze_UMaze-v3', 'AntMaze_UMaze-v5', 'HandReach-v3',
      'AdroitHandDoor-v1', 'FrankaKitchen-v1', 'FetchPush-v4')
  def test_names_of_robotics(self, level):
    self.assertTrue(robotics.is_level(level))
    self.assertIn(level, robotics.known_levels())

  @parameterized.parameters(
      ('HalfCheetah-v5', 'mujoco', 'mujoco'),
      ('LunarLander-v3', 'Box2D', 'box2d'),
      ('FetchReach-v4', 'gymnasium_robotics', 'robotics'))
  def test_missing_packages(self, level, package, extra):
    with mock.patch.dict(sys.modules, {package: None}):
      with self.assertRaisesRegex(
          errors.MissingDependencyError,
          fr'^{level} needs .*: pip install "scalable_agent\[{extra}\]" .*$'):
        environments.make_vec([level], [1], _SETTINGS)

  @parameterized.parameters(
      ('FetchReach-v9', 'FetchReach-v4'), ('fetchreach-v4', 'FetchReach'))
  def test_unknown_level(self, level, hint):
    with self.assertRaisesRegex(errors.UnknownLevelError, hint):
      environments.make_vec([level], [1], _SETTINGS)

  @pytest.mark.slow
  def test_nested_observations(self):
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                'FrankaKitchen.*FlattenObservation'):
      environments.make_vec(['FrankaKitchen-v1'], [1], _SETTINGS)


if __name__ == '__main__':
  absltest.main()
