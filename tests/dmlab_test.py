# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of DeepMind Lab's adapter, on a fake with Lab's API and its checks."""

import dataclasses
import importlib
import json
import os
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
import numpy as np
import pytest
from scalable_agent import config as config_lib
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import structs
from scalable_agent import testing
from scalable_agent import training
from scalable_agent.environments import dmlab
from scalable_agent.scores import dmlab30
from scalable_agent.scores import levels as levels_lib

_FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     'fake_deepmind_lab')
_SETTINGS = environments.EnvironmentSettings(width=12, height=8)


class _FakeLab:
  """Mixin: `deepmind_lab` is the fake one, in workers, too."""

  def setUp(self):
    super().setUp()
    installed = sys.modules.pop('deepmind_lab', None)
    self.addCleanup(lambda: installed and sys.modules.update(
        deepmind_lab=installed))
    sys.path.insert(0, _FAKE)
    self.addCleanup(sys.path.remove, _FAKE)
    self.addCleanup(sys.modules.pop, 'deepmind_lab', None)
    self.lab = importlib.import_module('deepmind_lab')

  def make_vec(self, level_names, seeds, settings=_SETTINGS):
    env = environments.make_vec(level_names, seeds, settings)
    self.addCleanup(env.close)
    return env

  def stream(self, level_names, seeds, settings=_SETTINGS, num_steps=40):
    """Plays actions 0, 1, 2, .. in all environments."""
    with environments.make_vec(level_names, seeds, settings) as env:
      return [environment_contract.copied(env.initial())] + [
          environment_contract.copied(
              env.step(np.full([len(seeds)], i % 9)))
          for i in range(num_steps)]

  def frames(self, *args, **kwargs):
    return np.stack([o.observation['frame']
                     for o in self.stream(*args, **kwargs)])


class LanguageLevelTest(_FakeLab, environment_contract.EnvironmentContract,
                        absltest.TestCase):
  level_name = 'language_select_described_object'
  settings = _SETTINGS


class SilentLevelTest(_FakeLab, environment_contract.EnvironmentContract,
                      absltest.TestCase):
  level_name = 'seekavoid_arena_01'
  settings = dataclasses.replace(_SETTINGS, num_action_repeats=2)


class DmLabVectorTest(_FakeLab, parameterized.TestCase):

  def test_is_what_the_reference_plays(self):
    levels = ['language_execute_random_task', 'explore_goal_locations_small',
              'contributed/dmlab30/rooms_watermaze']
    outputs = self.stream(levels, [3, 4, 5])
    num_ends = 0
    for column, (level, seed) in enumerate(zip(levels, (3, 4, 5))):
      lab = self.lab.Lab(
          'contributed/dmlab30/' + level.split('/')[-1],
          ['RGB_INTERLEAVED', 'INSTR'],
          {'width': '12', 'height': '8', 'datasetPath': '', 'logLevel': 'WARN'})
      seeds = np.random.RandomState(seed)
      lab.reset(seed=int(seeds.randint(0, 2**31 - 1)))
      self.assert_is(outputs[0], column, 0, True, (0, 0), lab)
      episode_return, episode_step = np.float32(0), 0
      for i, output in enumerate(outputs[1:]):
        reward = lab.step(np.array(dmlab.DEFAULT_ACTION_SET[i % 9], np.intc),
                          num_steps=4)
        done = not lab.is_running()
        if done:
          lab.reset(seed=int(seeds.randint(0, 2**31 - 1)))
        episode_return += np.float32(reward)
        episode_step += 1
        self.assert_is(output, column, reward, done,
                       (episode_return, episode_step), lab)
        if done:
          episode_return, episode_step = np.float32(0), 0
          num_ends += 1
    self.assertGreaterEqual(num_ends, 6)

  def assert_is(self, output, column, reward, done, info, lab):
    self.assertEqual(output.reward[column], np.float32(reward))
    self.assertEqual(output.done[column], done)
    self.assertEqual(
        (output.info.episode_return[column], output.info.episode_step[column]),
        info)
    expected = lab.observations()
    np.testing.assert_array_equal(
        output.observation['frame'][column], expected['RGB_INTERLEAVED'])
    self.assertEqual(output.observation['instruction'][column],
                     expected['INSTR'].encode())

  def test_spec(self):
    env = self.make_vec(['rooms_watermaze'], [1],
                        environments.EnvironmentSettings())
    self.assertEqual(env.spec.observation, {
        'frame': structs.ArraySpec((72, 96, 3), np.dtype(np.uint8)),
        'instruction': structs.ArraySpec((), np.dtype(object))})
    self.assertEqual(env.spec.action.num_values[0], 9)
    self.assertEqual(env.spec.num_action_repeats, 4)
    self.assertEqual(env.level_names, ('rooms_watermaze',))

  def test_levels_are_not_registered_with_gymnasium(self):
    with mock.patch.object(gymnasium, 'register') as register:
      self.make_vec(['lab/tests/show_config'], [1])
    register.assert_not_called()

  def test_every_level_of_the_suite_is_one_of_lab(self):
    for is_test in (False, True):
      for level in dmlab30.levels(is_test):
        self.assertTrue(dmlab.is_level(level), level)

  @parameterized.parameters('train', 'test')
  def test_settings_reach_lab(self, mode):
    dataset = self.create_tempdir().full_path
    settings = dataclasses.replace(
        _SETTINGS, dataset_path=dataset, mode=mode)
    env = self.make_vec(['lab/tests/show_config'], [1], settings)
    instruction = env.initial().observation['instruction'][0]
    self.assertEqual(json.loads(instruction), {
        'width': '12', 'height': '8', 'datasetPath': dataset,
        'logLevel': 'WARN',
        'allowHoldOutLevels': 'true' if mode == 'test' else 'false',
        'mixerSeed': str(0x600D5EED) if mode == 'test' else '0'})

  def test_tests_have_worlds_of_their_own(self):
    tests = dataclasses.replace(_SETTINGS, mode='test')
    level = ['rooms_watermaze']
    self.assertFalse(np.array_equal(self.frames(level, [1], num_steps=0),
                                    self.frames(level, [1], tests,
                                                num_steps=0)))
    level = ['rooms_collect_good_objects_test']
    self.assertLen(self.stream(level, [1], tests, num_steps=2), 3)
    with self.assertRaisesRegex(
        errors.LevelError, 'held out.*rooms_collect_good_objects_train'):
      environments.make_vec(level, [1], _SETTINGS)

  def test_level_cache(self):
    cache = self.create_tempdir().full_path
    settings = dataclasses.replace(_SETTINGS, level_cache_dir=cache)
    levels, seeds = ['explore_goal_locations_small'] * 2, [1, 2]
    expected = self.frames(levels, seeds)
    np.testing.assert_array_equal(self.frames(levels, seeds, settings),
                                  expected)
    maps = os.listdir(cache)
    self.assertGreaterEqual(len(maps), 4)
    np.testing.assert_array_equal(self.frames(levels, seeds, settings),
                                  expected)
    self.assertCountEqual(os.listdir(cache), maps)
    for name in maps:
      with open(os.path.join(cache, name), 'w', encoding='utf-8') as f:
        f.write('another map')
    self.assertFalse(np.array_equal(self.frames(levels, seeds, settings),
                                    expected))

  def test_processes(self):
    env = self.make_vec(['lab/tests/exit'] * 2, [1, 2])
    env.initial()
    env.step(np.array([0, 1]))
    with self.assertRaisesRegex(errors.EnvironmentProcessError,
                                'died with exit code 7'):
      env.step(np.array([0, 1]))
    env = self.make_vec(['lab/tests/no_start'], [1])
    with self.assertRaisesRegex(errors.EnvironmentProcessError,
                                'Failed to init environment - "no dataset"'):
      env.initial()

  @parameterized.parameters(
      (['explore_goal_location_small'], errors.UnknownLevelError,
       'Did you mean explore_goal_locations_small'),
      (['contributed/dmlab30/rooms_watermaz'], errors.UnknownLevelError,
       'Did you mean contributed/dmlab30/rooms_watermaze'),
      (['dmlab-30'], errors.UnknownLevelError, 'Did you mean dmlab30'),
      (['atari-57'], errors.UnknownLevelError, 'Did you mean atari57'),
      (['dmlab30'], errors.EnvironmentSpecError, 'is a suite'),
      (['atari57'], errors.EnvironmentSpecError, 'is a suite'),
      (['rooms_watermaze', 'catch'], errors.EnvironmentSpecError,
       'levels of DeepMind Lab and other levels'),
  )
  def test_wrong_names(self, names, error, message):
    self.assert_refused(names, _SETTINGS, error, message)

  def test_wrong_paths(self):
    self.assert_refused(
        ['psychlab_visual_search'],
        dataclasses.replace(_SETTINGS, dataset_path='/no/such/place'),
        errors.LevelError, 'dataset_path=/no/such/place')
    file = self.create_tempfile().full_path
    self.assert_refused(
        ['rooms_watermaze'], dataclasses.replace(_SETTINGS,
                                                 level_cache_dir=file),
        errors.LevelError, f'level_cache_dir={file} cannot be made')

  @parameterized.parameters(
      'psychlab_arbitrary_visuomotor_mapping',
      'contributed/dmlab30/psychlab_continuous_recognition')
  def test_levels_that_need_a_dataset(self, level):
    names = ['psychlab_visual_search', 'psychlab_sequential_comparison', level]
    self.assert_refused(names, _SETTINGS, errors.LevelError,
                        f'{level} needs dataset_path: name the directory')
    self.assertLen(self.stream(names[:2], [1, 2], num_steps=1), 2)
    settings = dataclasses.replace(_SETTINGS, dataset_path='dummy')
    self.assertLen(self.stream(names, [1, 2, 3], settings, num_steps=1), 2)

  @parameterized.parameters(
      'rooms_watermaze', 'seekavoid_arena_01', 'lab/lt_chasm', 'dmlab30')
  def test_what_to_install(self, name):
    with mock.patch.dict(sys.modules, {'deepmind_lab': None}):
      self.assert_refused(
          [name], _SETTINGS, errors.MissingDependencyError,
          f'{name} is a level of DeepMind Lab, which needs the package '
          'deepmind_lab.*not on PyPI.*github.com/google-deepmind/lab')

  def assert_refused(self, names, settings, error, message):
    with self.assertRaisesRegex(error, message) as caught:
      environments.make_vec(names, list(range(len(names))), settings)
    self.assertIsInstance(caught.exception, ValueError)
    self.assertNotIn('\n', str(caught.exception))


class DmLabTest(_FakeLab, absltest.TestCase):
  """One environment in this process, and its calls of Lab."""

  def make(self, num_action_repeats=4, level_cache_dir=''):
    self.lab.Lab.calls.clear()
    return dmlab.DmLab('seekavoid_arena_01', {'width': '12', 'height': '8'},
                       num_action_repeats, level_cache_dir)

  def test_calls(self):
    env = self.make(num_action_repeats=3)
    self.assertEmpty(self.lab.Lab.calls)
    env.reset(seed=5)
    for action in range(9):
      env.step(action)
    env.reset()
    env.reset(seed=5)
    env.close()
    env.close()
    seeds = np.random.RandomState(5).randint(0, 2**31 - 1, size=2)
    self.assertEqual(self.lab.Lab.calls, [
        ('Lab', 'seekavoid_arena_01', ['RGB_INTERLEAVED', 'INSTR'],
         {'width': '12', 'height': '8'}, 'software'),
        ('reset', 0, seeds[0]),
        ('step', (0, 0, 0, 1, 0, 0, 0), 3),
        ('step', (0, 0, 0, -1, 0, 0, 0), 3),
        ('step', (0, 0, -1, 0, 0, 0, 0), 3),
        ('step', (0, 0, 1, 0, 0, 0, 0), 3),
        ('step', (-20, 0, 0, 0, 0, 0, 0), 3),
        ('step', (20, 0, 0, 0, 0, 0, 0), 3),
        ('step', (-20, 0, 0, 1, 0, 0, 0), 3),
        ('step', (20, 0, 0, 1, 0, 0, 0), 3),
        ('step', (0, 0, 0, 0, 1, 0, 0), 3),
        ('reset', 1, seeds[1]),
        ('reset', 0, seeds[0]),
        ('close',)])

  def test_last_observation_stands_in_at_the_end(self):
    env = self.make()
    last, _ = env.reset(seed=1)
    terminated = False
    while not terminated:
      observation, _, terminated, truncated, _ = env.step(2)
      self.assertFalse(truncated)
      last, previous = observation, last
    self.assertIs(last, previous)

  def test_closing_what_was_never_started(self):
    env = self.make()
    env.close()
    self.assertEmpty(self.lab.Lab.calls)


class LocalLevelCacheTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.directory = self.create_tempdir()
    self.pk3 = self.create_tempfile('map.pk3', content='one').full_path
    self.cache = dmlab.LocalLevelCache(
        os.path.join(self.directory.full_path, 'new', 'cache'))

  def read(self):
    with open(self.pk3, encoding='utf-8') as f:
      return f.read()

  def overwrite(self, text):
    with open(self.pk3, 'w', encoding='utf-8') as f:
      f.write(text)

  def test_fetch_what_was_written_first(self):
    self.assertFalse(self.cache.fetch('key', self.pk3))
    self.assertEqual(self.read(), 'one')
    self.cache.write('key', self.pk3)
    self.overwrite('two')
    self.cache.write('key', self.pk3)
    self.cache.write('other', self.pk3)
    self.overwrite('three')
    self.assertTrue(self.cache.fetch('key', self.pk3))
    self.assertEqual(self.read(), 'one')
    self.assertTrue(self.cache.fetch('other', self.pk3))
    self.assertEqual(self.read(), 'two')

  def test_a_map_that_is_half_written_is_never_fetched(self):
    def copy_half(source, target):
      del source
      with open(target, 'w', encoding='utf-8') as f:
        f.write('o')
      raise OSError('disk full')
    with mock.patch.object(dmlab.shutil, 'copyfile', copy_half):
      with self.assertRaisesRegex(OSError, 'disk full'):
        self.cache.write('key', self.pk3)
    self.assertFalse(self.cache.fetch('key', self.pk3))


class ProgramTest(_FakeLab, parameterized.TestCase):
  """Levels as `experiment.py` names them."""

  @parameterized.parameters('train', 'test')
  def test_suite(self, mode):
    names = levels_lib.level_names('dmlab30', is_test=mode == 'test')
    self.assertEqual(names, list(dmlab30.levels(is_test=mode == 'test')))
    self.assertEqual(names[1], 'rooms_exploit_deferred_effects_' + mode)

  def test_suites_and_levels_together(self):
    names = levels_lib.level_names('catch,atari57, dmlab30', is_test=False)
    self.assertLen(names, 1 + 57 + 30)
    self.assertEqual(names[:2], ['catch', 'ALE/Alien-v5'])

  def test_own_names_of_lab(self):
    names = levels_lib.level_names(
        'contributed/dmlab30/rooms_watermaze, lab/tests/show_config,'
        'contributed/dmlab30/rooms_watermaz', is_test=False)
    self.assertEqual(names, [
        'rooms_watermaze', 'lab/tests/show_config',
        'contributed/dmlab30/rooms_watermaz'])
    settings = config_lib.Config()
    np.testing.assert_array_equal(
        self.frames(names[:1], [3], settings, num_steps=5),
        self.frames(['contributed/dmlab30/rooms_watermaze'], [3], settings,
                    num_steps=5))

  @pytest.mark.storm
  def test_trains_and_tests(self):
    cache = self.create_tempdir().full_path
    values = dict(
        logdir=self.create_tempdir().full_path, width=12, height=8,
        level_name='language_select_described_object,'
        'contributed/dmlab30/rooms_watermaze',
        level_cache_dir=cache, unroll_length=5, batch_size=1, num_actors=2,
        num_actor_groups=1, total_environment_frames=200, test_num_episodes=2)
    self.assertEqual(training.train(config_lib.Config(**values)), 0)
    self.assertNotEmpty(os.listdir(cache))
    returns = testing.test(config_lib.Config(mode='test', **values))
    self.assertEqual(
        {level: len(r) for level, r in returns.items()},
        {'language_select_described_object': 2, 'rooms_watermaze': 2})


if __name__ == '__main__':
  absltest.main()
