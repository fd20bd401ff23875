# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of DeepMind Lab's adapter, on a fake with Lab's API and its checks."""

import builtins
import contextlib
import dataclasses
import glob
import importlib
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import fake_environments  # noqa: F401
import gymnasium
import numpy as np
import packing_test
import psutil
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import dmlab
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments import lab_maps
from scalable_agent.environments import toys
from scalable_agent.experience import structs
from scalable_agent.modes import test
from scalable_agent.processes import processes
from scalable_agent.processes import starts
from scalable_agent.runs import training
from scalable_agent.scores import dmlab30
from scalable_agent.scores import levels as levels_lib
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import lab_levels

_TESTS = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_TESTS)
_FAKE = os.path.join(_TESTS, 'fake_deepmind_lab')
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
    self.addCleanup(lambda: [*map(os.close, self.lab.Lab.descriptors)])

  def make_dataset(self):
    directory = self.create_tempdir()
    directory.create_file('0001.png')
    return directory.full_path

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


# Steps are long, so that there are some ends of episodes.
_LONG_STEPS = dataclasses.replace(_SETTINGS, num_action_repeats=64)


class LanguageLevelTest(_FakeLab, environment_contract.EnvironmentContract,
                        absltest.TestCase):
  level_name = 'language_select_described_object'
  settings = _LONG_STEPS


class SilentLevelTest(_FakeLab, environment_contract.EnvironmentContract,
                      absltest.TestCase):
  level_name = 'seekavoid_arena_01'
  settings = dataclasses.replace(_SETTINGS, num_action_repeats=4)
  num_steps = 310


class UndecoratedLevelTest(_FakeLab, environment_contract.EnvironmentContract,
                           absltest.TestCase):
  """A level that declares no instructions."""
  level_name = 'lab/tests/event_test'
  settings = _SETTINGS


class DmLabVectorTest(_FakeLab, parameterized.TestCase):

  def test_is_what_the_reference_plays(self):
    levels = ['language_execute_random_task', 'explore_goal_locations_small',
              'contributed/dmlab30/rooms_watermaze']
    outputs = self.stream(levels, [3, 4, 5], _LONG_STEPS, num_steps=100)
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
                          num_steps=64)
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
    self.assertGreaterEqual(num_ends, 9)
    self.assertTrue(np.any([output.reward for output in outputs]))

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
    dataset = self.make_dataset()
    settings = dataclasses.replace(
        _SETTINGS, dataset_path=dataset, mode=mode)
    env = self.make_vec(['lab/tests/show_config'], [1], settings)
    instruction = env.initial().observation['instruction'][0]
    self.assertEqual(json.loads(instruction), {
        'width': '12', 'height': '8', 'datasetPath': dataset,
        'logLevel': 'WARN',
        'allowHoldOutLevels': 'true' if mode == 'test' else 'false',
        'mixerSeed': str(0x600D5EED) if mode == 'test' else '0'})

  @parameterized.parameters(
      # The second level lacks two observations.
      'language_select_described_object', 'lab/tests/event_test')
  def test_processes_are_replaced_before_they_are_full(self, level):
    settings = dataclasses.replace(_SETTINGS, environments_per_process=2)
    env = self.make_vec([level] * 2, [1, 2], settings)
    expected = self.frames([level] * 2, [1, 2], num_steps=1)
    pids = set()
    # Each process would start 260 Labs, but a process with 240 Labs dies.
    for _ in range(130):
      frames = [env.initial().observation['frame'].copy(),
                env.step(np.zeros([2], np.int32)).observation['frame']]
      np.testing.assert_array_equal(frames, expected)
      [process] = multiprocessing.active_children()
      pids.add(process.pid)
    self.assertLen(pids, 3)

  def test_no_process_is_left_by_a_close_while_processes_are_replaced(self):
    env = gymnasium_env.GymnasiumVector(
        ['catch'], [toys.look_up('catch', _SETTINGS)], [1],
        dataclasses.replace(_SETTINGS, num_action_repeats=1), max_resets=1)
    env.initial()
    make = env._make_workers

    def close_and_make():
      env.close()
      return make()

    env._make_workers = close_and_make
    with self.assertRaisesRegex(errors.EnvironmentProcessError, 'are closed'):
      env.initial()
    self.assertEmpty(multiprocessing.active_children())

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
    for name in maps:
      self.assertRegex(
          name, r'^maze_[0-9]_noaas_[0-9a-f]{32}$')
    self.assertLen(maps, 2)
    np.testing.assert_array_equal(self.frames(levels, seeds, settings),
                                  expected)
    self.assertCountEqual(os.listdir(cache), maps)
    for name in maps:
      with open(os.path.join(cache, name), 'w', encoding='utf-8') as f:
        f.write('another map')
    self.assertFalse(np.array_equal(self.frames(levels, seeds, settings),
                                    expected))

  @parameterized.parameters(
      'seekavoid_arena_01', 'rooms_watermaze', 'natlab_fixed_large_map')
  def test_prebuilt_maps_are_not_kept(self, level):
    cache = self.create_tempdir().full_path
    settings = dataclasses.replace(_SETTINGS, level_cache_dir=cache)
    self.frames([level], [1], settings, num_steps=1)
    self.assertEqual(os.listdir(cache), [])

  @parameterized.parameters(
      ('lab/tests/exit', 'died with exit code 7'),
      ('lab/tests/no_map', 'died with exit code 1 '),
      ('lab/tests/lua_error', 'died with exit code -6'),
      ('lab/tests/custom_actions_test', 'tests/custom_actions_test has actions '
       'of its own, of 9 numbers: only levels with the 7 numbers'),
      ('lab/no_such', 'raised RuntimeError: Failed to init environment - '
       '"Level not found: Failed to open file \'.*/no_such.lua\'"'))
  def test_levels_that_fail(self, level, message):
    with self.assertRaisesRegex(errors.EnvironmentProcessError, message):
      self.stream([level] * 2, [1, 2], num_steps=3)
    self.assertEmpty(multiprocessing.active_children())

  def test_a_directory_without_images(self):
    level, directory = 'psychlab_continuous_recognition', self.create_tempdir()
    settings = dataclasses.replace(
        _SETTINGS, dataset_path=directory.full_path)
    with mock.patch.object(processes, 'start') as start:
      self.assert_refused([level], settings, errors.LevelError, (
          f'^dataset_path={directory.full_path} has no file 0001.png: name the '
          'directory'))
    start.assert_not_called()
    # Lab itself starts, and ends its process at the first image.
    with mock.patch.object(dmlab, '_check_paths'), self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'died with exit code -6'):
      self.stream([level], [1], settings)
    settings = dataclasses.replace(settings, dataset_path=self.make_dataset())
    self.assertLen(self.stream([level], [1], settings), 41)

  @parameterized.parameters(True, False)
  def test_bots_do_not_repeat(self, is_lasertag):
    level = ('lasertag_one_opponent_small' if is_lasertag
             else 'explore_object_rewards_few')
    repeated = [self.frames([level], [1], num_steps=4) for _ in range(2)]
    self.assertEqual(np.array_equal(*repeated), not is_lasertag)
    for prefix in '', 'contributed/dmlab30/', 'lab/contributed/dmlab30/':
      self.assertEqual(lab_levels.not_repeated(['catch', prefix + level]),
                       [prefix + level] * is_lasertag)

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

  @parameterized.parameters(
      (90, 72, '--width=90 must be a multiple of 4 .* such as 88.$'),
      (96, 3, '--height=3 must be a multiple of 4 .* such as 4.$'))
  def test_wrong_sizes(self, width, height, message):
    settings = environments.EnvironmentSettings(width=width, height=height)
    with mock.patch.object(processes, 'start') as start:
      self.assert_refused(['rooms_watermaze'], settings, errors.LevelError,
                          message)
      with self.assertRaisesRegex(errors.LevelError, message):
        environments.check_names(['lab/lt_chasm'], settings)
    start.assert_not_called()
    # The screen of others is scaled.
    environments.check_names(['catch'], settings)

  def test_wrong_paths(self):
    self.assert_refused(
        ['psychlab_visual_search'],
        dataclasses.replace(_SETTINGS, dataset_path='/no/such/place'),
        errors.LevelError, 'dataset_path=/no/such/place')
    file = self.create_tempfile().full_path
    self.assert_refused(
        ['rooms_watermaze'], dataclasses.replace(_SETTINGS,
                                                 level_cache_dir=file),
        errors.LevelError, f'level_cache_dir={file} cannot be used')

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
          f'{name} is a level of DeepMind Lab, which needs '
          'Python 3.11.*deepmind_lab.*PyPI.*github.com/google-deepmind/lab')

  @parameterized.parameters(
      ('imp', 'imports imp, which Python has up to 3.11 only: use Python 3.11'),
      ('pkg_resources', 'imports pkg_resources: pip install "setuptools<81"'),
      ('dm_env', 'imports dm_env: pip install dm-env.'))
  def test_what_its_package_needs(self, module, message):
    directory = self.create_tempdir()
    directory.create_file('deepmind_lab.py', content=f'import {module}\n')
    sys.modules.pop('deepmind_lab')
    with mock.patch.object(sys, 'path', [directory.full_path, *sys.path]), (
        mock.patch.dict(sys.modules, {module: None})):
      self.assert_refused(
          ['rooms_watermaze'], _SETTINGS, errors.MissingDependencyError,
          'rooms_watermaze is a level of DeepMind Lab, whose package '
          f'{message}')

  def assert_refused(self, names, settings, error, message):
    with self.assertRaisesRegex(error, message) as caught:
      environments.make_vec(names, list(range(len(names))), settings)
    self.assertIsInstance(caught.exception, ValueError)
    self.assertNotIn('\n', str(caught.exception))


class DmLabTest(_FakeLab, parameterized.TestCase):
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
    start = ('Lab', 'seekavoid_arena_01', ['RGB_INTERLEAVED', 'INSTR'],
             {'width': '12', 'height': '8'}, 'software')
    start[2].append('FRAMES_REMAINING_AT_60')
    self.assertEqual(self.lab.Lab.calls, [
        start,
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
        ('close',),
        start,
        ('reset', 0, seeds[0]),
        ('close',)])

  def test_a_seed_replays_also_between_steps(self):
    env = self.make()
    streams = []
    for _ in range(2):
      observation, _ = env.reset(seed=5)
      streams.append([observation['frame']] + [
          env.step(action)[0]['frame'] for action in range(9)])
    np.testing.assert_array_equal(*streams)
    # One Lab would not do it.
    lab = self.lab.Lab('seekavoid_arena_01', ['RGB_INTERLEAVED'],
                       {'width': '12', 'height': '8'})
    frames = []
    for _ in range(2):
      lab.reset(episode=0, seed=5)
      frames.append(lab.observations()['RGB_INTERLEAVED'])
    self.assertFalse(np.array_equal(*frames))

  def test_instructions_are_asked_for_where_they_are_declared(self):
    self.lab.Lab.calls.clear()
    env = dmlab.DmLab(
        'tests/event_test', {'width': '12', 'height': '8'}, 4)
    observation, _ = env.reset(seed=1)
    self.assertEqual(observation['instruction'], '')
    self.assertEqual(env.step(0)[0]['instruction'], '')
    env.close()
    [started] = [call for call in self.lab.Lab.calls if call[0] == 'Lab']
    self.assertEqual(started[2], ['RGB_INTERLEAVED'])
    env = dmlab.DmLab(
        'tests/show_config', {'width': '12', 'height': '8'}, 4)
    self.assertIn('width', env.reset(seed=1)[0]['instruction'])
    self.assertEqual(self.lab.Lab.calls[-2][2], ['RGB_INTERLEAVED', 'INSTR'])
    env.close()

  @parameterized.parameters(
      ('no_such', RuntimeError), ('tests/custom_actions_test',
                                  errors.LevelError))
  def test_a_start_that_fails_keeps_no_turn_and_no_lab(self, level, error):
    env = dmlab.DmLab(level, {'width': '12', 'height': '8'}, 4)
    with (mock.patch.object(dmlab.TurnsToCompile, 'free') as free,
          mock.patch.object(self.lab.Lab, 'close') as close,
          self.assertRaises(error)):
      env.reset(seed=1)
    free.assert_called_once()
    self.assertEqual(close.called, error is errors.LevelError)

  def test_only_unknown_observations_are_left_out(self):
    env = self.make()
    with mock.patch.object(self.lab, 'Lab', side_effect=ValueError('other')):
      with self.assertRaisesRegex(ValueError, '^other$'):
        env.reset(seed=1)

  @parameterized.product(repeats=[1, 4, 7, 30, 60], level=[
      'seekavoid_arena_01', 'tests/goal', 'tests/goal_only',
      'tests/event_test'])
  def test_time_limits(self, repeats, level):
    env = dmlab.DmLab(level, {'width': '12', 'height': '8'}, repeats)
    env.reset(seed=1)
    ends = (False, False)
    num_steps = 0
    while ends == (False, False):
      *_, terminated, truncated, _ = env.step(2)
      ends = terminated, truncated
      num_steps += 1
    env.close()
    num_frames = {'seekavoid_arena_01': 1200, 'tests/event_test': 60}.get(
        level, 30)
    self.assertEqual(num_steps, -(-num_frames // repeats))
    # A step of 60 frames cannot tell the goal from the time limit.
    is_limit = level == 'seekavoid_arena_01' or (
        level == 'tests/goal' and repeats == 60)
    self.assertEqual(ends, (not is_limit, is_limit))

  def test_each_lab_has_a_folder_while_it_runs(self):
    folders = []
    real = self.lab.Lab

    def start(*args, temp_folder, **kwargs):
      folders.append((temp_folder, os.path.isdir(temp_folder)))
      return real(*args, temp_folder=temp_folder, **kwargs)

    with mock.patch.object(self.lab, 'Lab', start):
      env, other = (
          dmlab.DmLab('contributed/dmlab30/rooms_watermaze',
                      {'width': '12', 'height': '8'}, 4)
          for _ in range(2))
      for seed in (1, 2, None):
        env.reset(seed=seed)
      other.reset()
      self.assertLen(set(folders), 3)
      self.assertTrue(all(was_there for _, was_there in folders))
      self.assertEqual([os.path.exists(path) for path, _ in folders],
                       [False, True, True])
      env.close()
      other.close()
    self.assertFalse(any(os.path.exists(path) for path, _ in folders))

  def test_last_observation_stands_in_at_the_end(self):
    env = self.make()
    last, _ = env.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
      observation, _, terminated, truncated, _ = env.step(2)
      last, previous = observation, last
    self.assertIs(last, previous)

  def test_closing_what_was_never_started(self):
    env = self.make()
    env.close()
    self.assertEmpty(self.lab.Lab.calls)


class FakeTest(_FakeLab, parameterized.TestCase):
  """The fake does what DeepMind Lab has been seen to do."""

  def make(self, level='seekavoid_arena_01', observations=(), **kwargs):
    return self.lab.Lab(level, list(observations), **kwargs)

  @parameterized.parameters(
      ({'width': '90'}, "'width' must be a positive multiple of 4. Actual 90"),
      ({'height': '0'}, "'height' must be a positive multiple of 4. Actual 0"),
      ({'width': 'wide'}, 'Invalid int setting wide'),
      ({'mixerSeed': '-1'}, 'Invalid mixerSeed value'))
  def test_settings_are_checked_at_once(self, config, message):
    with self.assertRaisesRegex(RuntimeError, message):
      self.make(config=config)

  def test_observations(self):
    for level in 'seekavoid_arena_01', 'tests/empty_room_test':
      spec = self.make(level).observation_spec()
      self.assertLen(spec, 43)
      self.assertIn('INSTR', [one['name'] for one in spec])
    undecorated = self.make('tests/event_test').observation_spec()
    self.assertNotIn('INSTR', [spec['name'] for spec in undecorated])
    with self.assertRaisesRegex(ValueError, "Unknown observation 'INSTR'"):
      self.make('tests/event_test', ['INSTR'])
    names = ['INSTR', 'DEBUG.PLAYERS.ID', 'RGB_INTERLEAVED', 'VEL.ROT']
    for level, num_players in (
        ('rooms_watermaze', 1), ('lasertag_three_opponents_small', 4)):
      lab = self.make('contributed/dmlab30/' + level, names)
      lab.reset()
      values = lab.observations()
      self.assertEqual(list(values), names)  # In the order of asking.
      self.assertLen(values['DEBUG.PLAYERS.ID'], num_players)

  def test_frames_remaining_count_down(self):
    lab = self.make(observations=['FRAMES_REMAINING_AT_60'])
    lab.reset()
    for number in 1200, 1196, 1192:
      self.assertEqual(
          lab.observations()['FRAMES_REMAINING_AT_60'].tolist(), [number])
      lab.step(np.zeros([7], np.intc), num_steps=4)

  def test_methods(self):
    lab = self.make()
    self.assertFalse(hasattr(lab, 'fps'))
    self.assertEqual(lab.read_property('engine.fps'), '60')
    self.assertIn('engine', lab.properties())
    with self.assertRaisesRegex(TypeError, 'not writable'):
      lab.write_property('engine.fps', '30')
    with self.assertRaisesRegex(ValueError, "'seed' must be int or None"):
      lab.reset(seed=np.int64(1))
    lab.reset(episode=np.int64(1), seed=1)
    lab.step(np.zeros([7], np.intc), num_steps=np.int64(2))
    self.assertEqual(lab.num_steps(), 2)

  def test_strides_are_ignored(self):
    lab = self.make()
    lab.reset(seed=1)
    lab.step(np.arange(14, dtype=np.intc)[::2])
    self.assertEqual(lab.calls[-1], ('step', tuple(range(7)), 1))

  @parameterized.parameters(
      ('seekavoid_arena_01', 1_200), ('tests/empty_room_test', 216_000))
  def test_lengths_and_rewards(self, level, num_frames):
    lab = self.make(level)
    lab.reset(seed=1)
    rewards, action = [], np.array(dmlab.DEFAULT_ACTION_SET[0], np.intc)
    while lab.is_running():
      rewards.append(lab.step(action, num_steps=4))
    self.assertEqual(lab.num_steps(), num_frames)
    self.assertEqual([r for r in rewards if r % 1], [])
    self.assertBetween(np.count_nonzero(rewards), 1, num_frames / 40)

  def test_without_actions_seekavoid_has_no_rewards(self):
    lab = self.make()
    lab.reset(seed=1)
    while lab.is_running():
      self.assertEqual(lab.step(np.zeros([7], np.intc), num_steps=4), 0)

  def test_cache_is_asked_in_reset(self):
    cache = mock.Mock(fetch=mock.Mock(return_value=False), write=mock.Mock())
    lab = self.make('contributed/dmlab30/explore_object_rewards_few',
                    level_cache=cache)
    cache.fetch.assert_not_called()
    for number in (0, 2, 3):
      lab.reset(seed=1 + 5 * number)  # These episodes have one map.
    keys = [call.args[0] for call in cache.fetch.call_args_list]
    self.assertLen(keys, 3)
    self.assertLen(set(keys), 1)
    self.assertRegex(keys[0], '^maze_1_noaas_[0-9a-f]{32}$')

  @parameterized.parameters('rooms_watermaze', 'natlab_fixed_large_map')
  def test_levels_with_prebuilt_maps(self, level):
    cache = mock.Mock(fetch=mock.Mock(return_value=False))
    self.make('contributed/dmlab30/' + level, level_cache=cache).reset()
    cache.fetch.assert_not_called()

  def test_numbers_are_checked(self):
    self.make(config={'width': '0x60'}, renderer='')
    for config in {'width': '96 '}, {'fps': 'many'}, {'no_such': '1'}:
      with self.assertRaises((RuntimeError, TypeError)):
        self.make(config=config)
    with self.assertRaisesRegex(RuntimeError, 'Invalid setting: "no_such"'):
      self.make(config={'no_such': '1'})
    lab = self.make()
    lab.reset(seed=2**63 - 1)
    action = np.zeros([7], np.intc)
    for call in (lambda: lab.reset(seed=2**63), lambda: lab.reset(2**31),
                 lambda: lab.step(action, 2**31)):
      with self.assertRaises(OverflowError):
        call()
    lab.step(action.astype('>i4'))

  def test_instances_are_closed_objects(self):
    lab = self.make()
    with self.assertRaisesRegex(TypeError, 'cannot pickle'):
      pickle.dumps(lab)
    with self.assertRaisesRegex(TypeError, 'not an acceptable base type'):
      type('Mine', (self.lab.Lab,), {})
    with self.assertRaises(AttributeError):
      lab.attribute = 1

  def test_a_closed_lab_keeps_descriptors(self):
    before = psutil.Process().num_fds()
    self.make().close()
    self.assertEqual(psutil.Process().num_fds(), before + 7)

  @parameterized.parameters(False, True)
  def test_temporary_folder(self, is_given):
    directory = self.create_tempdir().full_path
    with mock.patch.object(tempfile, 'tempdir', directory):
      kwargs = {'temp_folder': f'{directory}/mine'} if is_given else {}
      lab = self.make('contributed/dmlab30/explore_object_rewards_few',
                      **kwargs)
      lab.reset()
    [folder] = os.listdir(directory)
    self.assertEqual(folder.startswith('dmlab_temp_folder_'), not is_given)
    lab.close()
    self.assertEqual(os.listdir(directory), [folder] if is_given else [])

  @parameterized.parameters(
      ('lab.reset()', -signal.SIGSEGV),
      ("lab.properties('')", -signal.SIGSEGV),
      ("lab.read_property('engine.fps')", -signal.SIGSEGV),
      ("lab.write_property('engine.fps', '1')", -signal.SIGSEGV),
      # A cache that claims to have copied a map.
      ('import unittest.mock\n'
       "deepmind_lab.Lab('contributed/dmlab30/explore_object_rewards_few', [], "
       'level_cache=unittest.mock.Mock()).reset()', 1))
  def test_calls_that_end_the_process(self, call, exit_code):
    program = ('import deepmind_lab\n'
               "lab = deepmind_lab.Lab('seekavoid_arena_01', [])\n"
               'lab.reset()\n'
               f'lab.close()\n{call}')
    found = subprocess.run(
        [sys.executable, '-c', program], stderr=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([_FAKE, _ROOT])})
    self.assertEqual(found.returncode, exit_code)
    self.assertNotIn('Traceback', found.stderr)


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

  def test_old_halves_of_maps_are_removed(self):
    half = f'key.{"0f" * 16}'
    for name in half, 'key', 'key.0f':
      path = os.path.join(self.directory.full_path, name)
      pathlib.Path(path).touch()
      cache = dmlab.LocalLevelCache(self.directory.full_path)
      cache.remove_halves()
      self.assertTrue(os.path.exists(path))
      os.utime(path, (1, 1))
      cache.remove_halves()
      self.assertEqual(os.path.exists(path), name != half)

  def test_a_map_that_is_half_written_is_never_fetched(self):
    def copy_half(source, target):
      del source
      with open(target, 'w', encoding='utf-8') as f:
        f.write('o')
      raise OSError('disk full')
    with mock.patch.object(lab_maps.shutil, 'copyfile', copy_half):
      self.cache.write('key', self.pk3)  # The level plays on.
      self.assertFalse(self.cache.fetch('other', self.pk3))
    self.assertFalse(self.cache.fetch('key', self.pk3))
    self.assertEmpty(os.listdir(self.cache._cache_dir))
    self.overwrite('one')
    self.cache.write('key', self.pk3)
    self.assertTrue(self.cache.fetch('key', self.pk3))


class StartTest(_FakeLab, parameterized.TestCase):
  """Maps are compiled when an environment starts."""

  def test_says_once_that_maps_are_compiled(self):
    gymnasium_env._said.clear()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      self.make_vec(['catch'], [1]).initial()
      self.assertEqual(output.getvalue(), '')
      for _ in range(2):
        self.make_vec(['rooms_watermaze'], [1]).initial()
    self.assertEqual(output.getvalue().count('first compile maps'), 1)

  def test_groups_that_start_together_say_so_once(self):
    gymnasium_env._said.clear()
    lines, both_run = [], threading.Barrier(2)

    def say():
      both_run.wait()
      gymnasium_env._say_once('once')

    def slow_print(text, flush):
      del flush
      lines.append(text)
      time.sleep(0.3)  # As a terminal that lets another thread run.

    with mock.patch.object(builtins, 'print', slow_print):
      groups = [threading.Thread(target=say) for _ in range(2)]
      for thread in groups:
        thread.start()
      for thread in groups:
        thread.join()
    self.assertEqual(lines, ['once'])

  def test_lines_say_how_many_are_ready(self):
    settings = config_lib.Config(
        level_name='rooms_watermaze', width=12, height=8, progress_secs=0.3,
        step_timeout_s=4)
    self.enter_context(mock.patch.object(starts, 'TIMEOUT_S', 0.))
    env = self.make_vec(['rooms_watermaze', 'lab/tests/compiles'], [1, 2],
                        settings)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), self.assertRaises(
        errors.EnvironmentProcessLostError):
      env.initial()
    self.assertIn('1 of 2 environments are ready.\n', output.getvalue())
    self.assertGreater(output.getvalue().count('are ready.'), 1)

  def test_turns(self):
    directory = self.create_tempdir().full_path
    with mock.patch.object(processes, 'directory', lambda: directory + '/p'):
      first, second, third = (
          lab_maps.TurnsToCompile(None, 2) for _ in range(3))
    self.assertFalse(first.fetch('a', ''))
    self.assertFalse(second.fetch('b', ''))
    waits = threading.Thread(target=third.fetch, args=('c', ''), daemon=True)
    waits.start()
    waits.join(0.5)
    self.assertTrue(waits.is_alive())
    first.free()
    waits.join()
    first.free()  # Twice does no harm.
    second.free()
    third.free()

  def test_a_map_of_another_process_is_not_compiled_again(self):
    cache = dmlab.LocalLevelCache(self.create_tempdir().full_path)
    pk3 = self.create_tempfile('map.pk3', content='one').full_path
    directory = self.create_tempdir().full_path
    with mock.patch.object(processes, 'directory', lambda: directory + '/p'):
      one, other = (lab_maps.TurnsToCompile(cache, 1) for _ in range(2))
    self.assertFalse(one.fetch('key', pk3))
    results = []
    waits = threading.Thread(
        target=lambda: results.append(other.fetch('key', pk3)), daemon=True)
    waits.start()
    one.write('key', pk3)
    waits.join()
    self.assertEqual(results, [True])
    # The turn has ended, too.
    self.assertFalse(one.fetch('another', pk3))
    one.free()

  @pytest.mark.storm
  def test_time_grows_with_environments_per_core(self):
    settings = dataclasses.replace(_SETTINGS, step_timeout_s=5)
    self.enter_context(mock.patch.object(starts, 'TIMEOUT_S', 1.))
    self.enter_context(mock.patch.object(starts, 'num_cores', lambda: 2))
    env = self.make_vec(['lab/tests/compiles'] * 2, [1, 2], settings)
    self.make_vec(['rooms_watermaze'] * 3, [1, 2, 3], settings)
    self.make_vec(['rooms_watermaze'], [1], settings).close()
    with self.assertRaisesRegex(
        errors.EnvironmentProcessLostError,
        r'environment 0 \(lab/tests/compiles\), 1 .* did not answer within '
        r'7.5 seconds \(--step_timeout_s; at the start, 1 s x '):
      env.initial()

  @parameterized.parameters(('', 2), ('Compiles.', 4))
  def test_steps_may_compile(self, compiling, timeout_s):
    settings = environments.EnvironmentSettings(
        num_action_repeats=1, step_timeout_s=2, environments_per_process=2)
    self.enter_context(mock.patch.object(starts, 'num_cores', lambda: 64))
    level = 'fake/Hangs-v0'
    env = gymnasium_env.GymnasiumVector(
        [level] * 2, [gymnasium_env.look_up(level, settings)] * 2, [0, 1],
        settings, compiling=compiling)
    self.addCleanup(env.close)
    env.initial()
    self.enter_context(mock.patch.object(starts, 'TIMEOUT_S', 1.))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessLostError,
        rf'did not answer within {timeout_s} seconds'):
      for _ in range(2):
        env.step(np.zeros([2], np.int32))


class LeftoversTest(parameterized.TestCase):
  """Nothing is left of programs that end while maps are compiled."""

  def start(self, num_cores=2, num_maps=2):
    """Starts a program; returns it, and its workers, when they compile."""
    # Its name is short enough for sockets.
    self.directory = self.enter_context(
        tempfile.TemporaryDirectory(dir='/tmp'))
    program = textwrap.dedent("""
        import multiprocessing
        import signal
        from scalable_agent import environments
        from scalable_agent.processes import starts
        starts.num_cores = lambda: {num_cores}
        signal.signal(signal.SIGTERM, lambda *_: exit(7))
        with environments.make_vec(['lab/tests/compiles'] * 2, [1, 2]) as env:
          print(*[p.pid for p in multiprocessing.active_children()], flush=True)
          env.initial()
        """).replace('{num_cores}', str(num_cores))
    program = subprocess.Popen(
        [sys.executable, '-c', program], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, 'TMPDIR': self.directory,
             'PYTHONPATH': os.pathsep.join([_FAKE, _ROOT])})
    self.addCleanup(program.stdout.close)
    self.addCleanup(self.end_all)
    workers_of_program = [
        psutil.Process(int(pid)) for pid in program.stdout.readline().split()]
    self.wait_until(lambda: self.num_maps() >= min(num_maps, num_cores), 300)
    return program, workers_of_program

  def test_on_one_core_one_process_compiles(self):
    program, _ = self.start(num_cores=1)
    time.sleep(1)
    self.assertEqual(self.num_maps(), 1)
    program.kill()
    program.wait(60)
    self.wait_until(lambda: not self.left())

  @pytest.mark.storm
  def test_kills_at_any_time(self):
    rng = np.random.default_rng(1)
    for _ in range(20):
      program, (worker, _) = self.start(num_maps=0)
      time.sleep(rng.uniform(0, 3))
      victim = rng.choice(
          ['program', 'terminated', 'group', 'worker', 'server'])
      if victim == 'program':
        program.kill()
      elif victim == 'terminated':
        program.terminate()
      elif victim == 'group':
        os.killpg(program.pid, signal.SIGKILL)
      else:
        (worker if victim == 'worker' else worker.parent()).kill()
      program.wait(60)
      self.wait_until(lambda: not self.left())

  def num_maps(self):
    """Returns how many maps are being compiled."""
    return len(glob.glob(os.path.join(
        self.directory, '**', 'baselab', 'maps'), recursive=True))

  def left(self):
    """Returns what runs, and what files there are."""
    found = (os.listdir(self.directory)
             if os.path.exists(self.directory) else [])
    for process in psutil.process_iter():
      with contextlib.suppress(psutil.Error):
        if process.environ().get('TMPDIR') == self.directory:
          found.append(process)
    return found

  def wait_until(self, is_so, timeout_s=60):
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
      self.assertLess(time.monotonic(), deadline_s, self.left())
      time.sleep(0.05)

  def end_all(self):
    for process in self.left():
      if isinstance(process, psutil.Process):
        with contextlib.suppress(psutil.Error):
          process.kill()

  def test_program_is_killed(self):
    program, _ = self.start()
    program.kill()
    program.wait(60)
    self.wait_until(lambda: not self.left())

  def test_program_is_terminated(self):
    program, _ = self.start()
    program.terminate()
    self.assertEqual(program.wait(60), 7)
    self.wait_until(lambda: not self.left())

  def test_worker_is_killed(self):
    program, (worker, other) = self.start()
    worker.kill()
    # The program says so and ends.
    self.assertEqual(program.wait(60), 1)
    self.assertFalse(other.is_running())
    self.wait_until(lambda: not self.left())

  @pytest.mark.slow
  def test_group_is_killed(self):
    program, _ = self.start()
    os.killpg(program.pid, signal.SIGKILL)
    program.wait(60)
    self.wait_until(lambda: not self.left())

  @pytest.mark.slow
  def test_program_is_killed_while_all_is_stopped(self):
    program, workers_of_program = self.start()
    server = workers_of_program[0].parent()
    for process in (*workers_of_program, server):
      process.suspend()
    os.killpg(program.pid, signal.SIGSTOP)
    program.kill()
    program.wait(60)
    self.wait_until(lambda: not self.left())

  @pytest.mark.slow
  def test_server_is_killed(self):
    program, (worker, _) = self.start()
    worker.parent().kill()
    self.assertEqual(program.wait(60), 1)
    self.wait_until(lambda: not self.left())


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

  def test_unrolls_are_packed(self):
    settings = config_lib.Config(
        level_name='language_select_described_object', width=12, height=8,
        num_actors=2, num_actor_groups=1, unroll_length=200, agent='mlp',
        xla='none')
    ends, instructions = 0, set()
    for unroll, _ in packing_test.packed_unrolls(self, settings, count=4):
      env_outputs = unroll.steps.env_outputs
      ends += np.sum(env_outputs.done[1:])
      instructions |= set(env_outputs.observation['instruction'].flat)
    self.assertGreater(ends, 0)
    self.assertGreater(len(instructions), 1)

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
    returns = test.test(config_lib.Config(mode='test', **values))
    self.assertEqual(
        {level: len(r) for level, r in returns.items()},
        {'language_select_described_object': 2, 'rooms_watermaze': 2})


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/lab_maps',
         catches='test_old_halves_of_maps_are_removed', rows=(
        ('young halves, too', '> _OLD_S', '> 0 * _OLD_S - 9'),
        ('halves stay',
         '> _OLD_S):\n          os.remove(path)',
         '> _OLD_S):\n          pass'),
    )),
    dict(file='environments/dmlab',
         catches='LanguageLevelTest.test_same_seeds_same_stream', rows=(
        ('one Lab for all seeds',
         '      self.close()\n'
         '      self._random_state = ',
         '      self._random_state = '),
        ('the stream of seeds goes on',
         'self._random_state = np.random.RandomState(seed)', 'pass'),
        ('Lab is called after its end', 'self._lab = None  # After',
         'pass  # After'),
    )),
    dict(file='environments/dmlab',
         catches='test_instructions_are_asked_for_where_they_are_declared',
         rows=(
        ('instructions are always asked for',
         'if not unknown:', 'if True:'),
    )),
    dict(file='environments/dmlab', catches='test_time_limits', rows=(
        ('time limits are ends', 'ended and 0 < self._frames_left <=',
         'ended and 0 >'),
        ('0 frames left are a time limit', 'ended and 0 < self',
         'ended and self'),
        ('all ends are time limits', 'ended and 0 < self._frames_left <= '
         'self._num_action_repeats', 'ended'),
    )),
    dict(file='environments/dmlab',
         catches='test_a_start_that_fails_keeps_no_turn_and_no_lab1', rows=(
        ('a refused Lab stays open', '      lab.close()\n      raise',
         '      raise'),
        ('only a reset ends a turn',
         'try:\n      self._lab = self._lab or self._start()\n',
         'self._lab = self._lab or self._start()\n    try:\n'),
    )),
    dict(file='environments/dmlab', catches='test_levels_that_fail', rows=(
        ('actions of levels are not looked at', 'if num_numbers != self',
         'if 0 > self'),
    )),
    dict(file='environments/dmlab', catches='test_a_directory_without_images',
         rows=(
        ('images are not looked for', "_FIRST_IMAGE = '0001.png'",
         "_FIRST_IMAGE = ''"),
    )),
    dict(file='environments/gymnasium_env',
         catches='test_processes_are_replaced_before_they_are_full', rows=(
        ('processes are never replaced', 'if self._num_resets == self',
         'if 0 > self'),
    )),
    dict(file='environments/gymnasium_env', catches='test_no_process_is_left_'
         'by_a_close_while_processes_are_replaced', rows=(
        ('new processes are not closed', 'if self._closed:  # In',
         'if False:  # In'),
    )),
    dict(file='environments/dmlab', catches='test_unrolls_are_packed', rows=(
        ('instructions are never asked for',
         'names = [_FRAME, _INSTRUCTION, ', 'names = [_FRAME, '),
    )),
    dict(file='environments/dmlab',
         catches='test_is_what_the_reference_plays', rows=(
        ('actions are not contiguous', "np.intc, order='C')",
         "np.intc, order='F')"),
    )),
    dict(file='environments/dmlab',
         catches='test_each_lab_has_a_folder_while_it_runs', rows=(
        ('one folder for all', 'temp_folder=self._temp_folder.name)',
         'temp_folder=tempfile.gettempdir())'),
        ('the folder stays', '      self._temp_folder.cleanup()\n',
         ''),
    )),
    dict(file='environments/dmlab', catches='test_wrong_sizes', rows=(
        ('sizes are not checked', 'if size % _SIZE_STEP:', 'if False:'),
    )),
    dict(file='environments/dmlab',
         catches='test_what_its_package_needs', rows=(
        ('all that is missing is Lab',
         "_MISSING.get(e.name or '', f'which {_HOW_TO_INSTALL}')",
         "f'which {_HOW_TO_INSTALL}'"),
    )),
    dict(file='processes/processes', catches='test_program_is_killed', rows=(
        ('the server leaves what runs', 'os.kill(pid, signal.SIGKILL)', 'pass'),
        ('the server leaves files', 'if not left and _remove_run(path):',
         'if not left:'),
    )),
    dict(file='processes/preload', catches='test_group_is_killed', rows=(
        ('killed with the group of the parent', 'os.setpgid(0, 0)\n',
         ''),
    )),
    dict(file='processes/preload', catches='test_program_is_killed', rows=(
        ('nothing is ended', '    processes.end_server(_GROUP)',
         '    os._exit(1)'),
    )),
    dict(file='processes/starts',
         catches='test_time_grows_with_environments_per_core', rows=(
        ('time does not grow', 'sum(_num_open.values()) /', '0 /'),
        ('closed environments count',
         '    del _num_open[key]\n', '    pass\n'),
    )),
    dict(file='processes/starts', catches='test_steps_may_compile', rows=(
        ('environments of a process start together',
         'max(per_core, num_per_process)', 'per_core'),
    )),
    dict(file='processes/starts',
         catches='test_lines_say_how_many_are_ready', rows=(
        ('ready lines never come', 'is_due = 0 < period_s',
         'is_due = 0 > period_s'),
    )),
    dict(file='environments/lab_maps', catches='test_turns', rows=(
        ('nobody waits for a turn',
         '          file.close()\n          continue\n', '          pass\n'),
    )),
    dict(file='processes/workers', catches='test_steps_may_compile', rows=(
        ('steps have less time', 'is_start=self._steps_compile',
         'is_start=False'),
        ('all steps have more time', 'is_start=self._steps_compile',
         'is_start=True'),
    )),
)


if __name__ == '__main__':
  absltest.main()
