# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of MiniGrid and BabyAI, beside the package itself."""

import contextlib
import io
import multiprocessing
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
from minigrid import minigrid_env
from minigrid import wrappers
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import minigrid

_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)


class Wordy(minigrid_env.MiniGridEnv):
  """Looks like a level; missions are one letter longer in every episode."""
  observation_space = gymnasium.spaces.Dict({
      'image': gymnasium.spaces.Box(0, 255, (7, 7, 3), np.uint8),
      'mission': gymnasium.spaces.Text(1000)})
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self):
    self.carrying = None

  def reset(self, *, seed=None, options=None):
    print('Sampling rejected')
    if seed is not None:
      self._length = 510
    self._length += 1
    return self._observation(), {}

  def step(self, action):
    return self._observation(), 0.0, True, False, {}

  def _observation(self):
    return {'image': np.zeros((7, 7, 3), np.uint8),
            'mission': 'x' * self._length}


gymnasium.register('MiniGrid-Wordy-v0', Wordy, disable_env_checker=True)


class BabyAITest(environment_contract.EnvironmentContract, absltest.TestCase):
  level_name = 'BabyAI-GoToLocalS6N3-v0'  # Is cut off after 36 steps.


class MiniGridTest(parameterized.TestCase):

  @parameterized.parameters('BabyAI-GoToLocalS6N3-v0', 'MiniGrid-Empty-5x5-v0')
  def test_is_what_the_package_plays(self, level):
    seeds = [5, 8]
    env = environments.make_vec([level] * 2, seeds, _SETTINGS)
    self.addCleanup(env.close)
    own = [_pixels(level) for _ in seeds]
    output = env.initial()
    for i, seed in enumerate(seeds):
      self.assert_is(output.observation, i, own[i].reset(seed=seed)[0])
    rng = np.random.default_rng(0)
    num_truncated, num_rewards = 0, 0
    for _ in range(250):
      actions = rng.choice(3, p=[.2, .2, .6], size=2)
      output = env.step(actions)
      for i, action in enumerate(actions):
        last, reward, terminated, truncated, _ = own[i].step(action)
        done = terminated or truncated
        self.assertEqual(output.reward[i], np.float32(reward))
        self.assertEqual(output.done[i], done)
        is_cut = truncated and not terminated
        self.assertEqual(output.truncated[i], is_cut)
        if done:
          self.assert_is(output.last_observation, i, last)
        self.assert_is(output.observation, i,
                       own[i].reset()[0] if done else last)
        num_truncated += is_cut
        num_rewards += reward > 0
    self.assertGreater(num_rewards, 0)
    if level.startswith('BabyAI'):
      self.assertGreater(num_truncated, 0)

  def assert_is(self, batched, index, single):
    np.testing.assert_array_equal(batched['frame'][index], single['image'])
    self.assertEqual(batched['instruction'][index], single['mission'].encode())

  @parameterized.parameters(
      'BabyAI-PickupDistDebug-v0', 'BabyAI-BossLevel-v0',
      'BabyAI-UnlockToUnlock-v0', 'MiniGrid-DoorKey-6x6-v0',
      'MiniGrid-LavaCrossingS9N3-v0', 'MiniGrid-Dynamic-Obstacles-6x6-v0',
      'MiniGrid-ObstructedMaze-2Dlhb-v1', 'MiniGrid-MemoryS7-v0',
      'MiniGrid-Playground-v0', 'MiniGrid-DistShift1-v0')
  def test_pixels_are_those_of_the_package(self, level):
    env = minigrid.look_up(level, _SETTINGS)()
    own = _pixels(level)
    rng = np.random.default_rng(0)
    frames = set()
    for seed in range(4):
      with contextlib.redirect_stdout(io.StringIO()):
        observation, expected = env.reset(seed=seed)[0], own.reset(seed=seed)[0]
      for _ in range(40):
        np.testing.assert_array_equal(observation['frame'], expected['image'])
        self.assertEqual(observation['instruction'], expected['mission'])
        self.assertIn(observation, env.observation_space)
        frames.add(observation['frame'].tobytes())
        action = rng.integers(env.action_space.n)
        observation, _, terminated, truncated, _ = env.step(action)
        expected = own.step(action)[0]
        if terminated or truncated:
          break
    self.assertGreater(len(frames), 8)

  def test_longest_mission_fits(self):
    the = 'the yellow object in front of you'
    clause = f'put {the} next to {the}'
    longest = f'{clause} and {clause} after you {clause} and {clause}'
    self.assertLess(len(longest), 512)
    env = gymnasium.make('BabyAI-BossLevel-v0', disable_env_checker=True)
    with contextlib.redirect_stdout(io.StringIO()):
      lengths = [len(env.reset(seed=seed)[0]['mission']) for seed in range(60)]
    self.assertBetween(max(lengths), 100, len(longest))

  def test_own_levels(self):

    def spec(name):
      with environments.make_vec(
          [f'fake_environments:{name}'], [1], _SETTINGS) as env:
        return env.spec.observation

    self.assertEqual(spec('MiniGrid-FakeOwn-v0')['frame'].shape, (56, 56, 3))
    self.assertEqual(spec('MiniGrid-FakeTold-v0')['frame'].shape, (56, 56, 3))
    self.assertEqual(spec('MiniGrid-FakeImage-v0').shape, (7, 7, 3))
    self.assertEqual(spec('MiniGridFake-v0'), spec('fake/Plain-v0'))
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, 'image.*mission.*ObservationWrapper'):
      spec('MiniGrid-FakeWhole-v0')  # Not the view of the agent.

  def test_what_the_agent_carries_is_seen_at_once(self):
    level = 'BabyAI-PutNextS5N2Carrying-v0'
    env = environments.make_vec([level], [3], _SETTINGS)
    self.addCleanup(env.close)
    own = gymnasium.make(level).unwrapped
    own.reset(seed=3)
    self.assertIsNotNone(own.carrying)
    view = own.gen_obs()['image']
    frame = env.initial().observation['frame'][0]
    np.testing.assert_array_equal(frame, np.vstack([np.hstack([
        minigrid._tile(*map(int, view[i, j]), (i, j) == (3, 6))
        for i in range(7)]) for j in range(7)]).astype(np.uint8))

  def test_a_smaller_view_of_what_is_carried(self):
    env = environments.make_vec(
        ['fake_environments:MiniGrid-FakeSmall-v0'], [3], _SETTINGS)
    self.addCleanup(env.close)
    frame = env.initial().observation['frame']
    self.assertEqual(frame.shape, (1, 40, 40, 3))
    own = wrappers.ViewSizeWrapper(
        gymnasium.make('BabyAI-PutNextS5N2Carrying-v0'), 5)
    own.reset(seed=3)
    image = own.observation(own.unwrapped.gen_obs())['image']
    np.testing.assert_array_equal(
        frame[0, 32:, 16:24], minigrid._tile(
            *map(int, image[2, 4]), True).astype(np.uint8))

  def test_mission_is_whole_or_an_error(self):
    env = environments.make_vec(['MiniGrid-Wordy-v0'], [1], _SETTINGS)
    self.addCleanup(env.close)
    self.assertLen(env.initial().observation['instruction'][0], 511)
    self.assertLen(
        env.step(np.array([0])).observation['instruction'][0], 512)
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'longer than its space permits'):
      env.step(np.array([0]))

  def test_prints_of_the_package_are_not_shown(self):
    env = minigrid.look_up('MiniGrid-Wordy-v0', _SETTINGS)()
    with contextlib.redirect_stdout(io.StringIO()) as output:
      env.reset(seed=1)
    self.assertEqual(output.getvalue(), '')

  def test_module_in_the_level_name(self):
    env = environments.make_vec(
        ['minigrid:MiniGrid-Empty-5x5-v0'], [1], _SETTINGS)
    self.addCleanup(env.close)
    self.assertEqual(env.initial().observation['instruction'][0],
                     b'get to the green goal square')

  def test_levels_side_by_side(self):
    levels = ['MiniGrid-Empty-5x5-v0', 'BabyAI-GoToObj-v0']
    env = environments.make_vec(levels, [1, 2], _SETTINGS)
    self.addCleanup(env.close)
    for i, level in enumerate(levels):
      observation, _ = _pixels(level).reset(seed=i + 1)
      self.assert_is(env.initial().observation, i, observation)

  def test_actions_are_not_repeated(self):
    self.assert_refused(
        errors.EnvironmentSpecError, 'BabyAI-GoToObj-v0',
        'set num_action_repeats=1', environments.EnvironmentSettings())

  @parameterized.parameters(
      ('BabyAI-GoToObject-v0', 'BabyAI-GoToObj-v0'),
      ('babyai-gotoobj-v0', 'BabyAI-GoToObj'),
      ('MiniGrid-Empty-5x5-v7', 'MiniGrid-Empty-5x5-v0'))
  def test_unknown_level(self, name, hint):
    self.assert_refused(errors.UnknownLevelError, name, hint)

  def test_without_minigrid(self):
    with mock.patch.dict(sys.modules, {'minigrid': None}):
      self.assert_refused(
          errors.MissingDependencyError, 'BabyAI-GoToObj-v0',
          r'pip install "scalable_agent\[minigrid\]"')

  def assert_refused(self, error, name, message, settings=_SETTINGS):
    with self.assertRaisesRegex(error, message) as caught:
      environments.make_vec([name], [1], settings)
    self.assertNotIn('\n', str(caught.exception))
    self.assertEmpty(multiprocessing.active_children())


def _pixels(level):
  """The package's own way from a level to pixels."""
  return wrappers.RGBImgPartialObsWrapper(
      gymnasium.make(level, disable_env_checker=True))


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/minigrid',
         catches='test_what_the_agent_carries_is_seen_at_once',
         rows=(
        ('carried at first is unseen',
         'if self.unwrapped.carrying:',
         'if False:'),
    )),
    dict(file='environments/minigrid', catches='test_own_levels',
         rows=(
        ('any wrapper has the view',
         'if not _has_view(env):',
         'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
