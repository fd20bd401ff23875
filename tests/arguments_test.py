# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of arguments of environments, and of their numbers in the run."""

import dataclasses
import multiprocessing
import os
from unittest import mock

from absl.testing import parameterized
import fake_environments  # noqa: F401  (Registers levels.)
import numpy as np
import pytest
import scalable_agent
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.processes import workers
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_SIZED = 'fake_environments:fake/Sized-v0'


def _settings(kwargs, **settings):
  return environments.EnvironmentSettings(
      num_action_repeats=1, environment_kwargs=kwargs, **settings)


class SettingTest(parameterized.TestCase):

  @parameterized.parameters(
      ({'size': 5}, '{"size": 5}'), ('{"size":5}', '{"size": 5}'),
      (' {"b": 1,  "a": [2, {"c": null}]}', '{"a": [2, {"c": null}], "b": 1}'),
      ({'size': np.int64(5)}, '{"size": 5}'), ({}, ''), ('{}', ''), ('', ''))
  def test_equal_objects_are_equal_settings(self, kwargs, expected):
    for made in (config_lib.Config(environment_kwargs=kwargs),
                 environments.EnvironmentSettings(environment_kwargs=kwargs)):
      self.assertEqual(made.environment_kwargs, expected)
      self.assertEqual(
          dataclasses.replace(made).environment_kwargs, expected)

  @parameterized.parameters(
      '[1]', '5', 'size=5', '{"size": }', '"a"', 'null', '{"a": 1} x')
  def test_no_object(self, kwargs):
    with self.assertRaisesRegex(
        errors.ConfigError, '--environment_kwargs=.* must be a JSON object'):
      config_lib.Config(environment_kwargs=kwargs)

  def test_no_json(self):
    with self.assertRaisesRegex(errors.ConfigError, 'must be a JSON object'):
      config_lib.Config(environment_kwargs={'a': object()})

  def test_flag(self):
    config = experiment.parse(['--environment_kwargs={"size": 5}'])
    self.assertEqual(config.kwargs, {'size': 5})

  def test_other_arguments_are_another_task(self):
    one, same, other = (
        config_lib.Config(environment_kwargs=kwargs)
        for kwargs in ({'a': 1, 'b': 2}, '{"b":2,"a":1}', {'a': 1, 'b': 3}))
    same.check_same_task(one)
    with self.assertRaisesRegex(
        errors.ConfigError, r'was trained with --environment_kwargs=\{"a": 1, '
        r'"b": 2\}, not with .*"b": 3\}: this is another task'):
      other.check_same_task(one)


class EnvironmentTest(parameterized.TestCase):

  def make(self, level, kwargs=(), **settings):
    env = environments.make_vec([level] * 2, [1, 2],
                                _settings(dict(kwargs), **settings))
    self.addCleanup(env.close)
    return env

  @parameterized.parameters(
      'fake/Sized-v0', _SIZED, 'fake_environments:fake/Wide-v0')
  def test_reach_the_constructor(self, level):
    env = self.make(level, {'size': 5, 'label': {'number': [1, 9]}})
    self.assertEqual(env.initial().observation.tolist(), [
        [9, 0, 0, 0, 0], [9, 1, 1, 1, 1]])

  def test_arguments_of_gymnasium(self):
    env = self.make('fake/Sized-v0', {'max_episode_steps': 2})
    env.initial()
    action = np.zeros([2], np.int32)
    self.assertFalse(env.step(action).done.any())
    self.assertTrue(env.step(action).truncated.all())

  @parameterized.parameters(
      ('MiniGrid-Empty-5x5-v0', {'agent_view_size': 5}, (40, 40, 3)),
      ('HalfCheetah-v5', {'exclude_current_positions_from_observation': False},
       (18,)),
      ('bit_flipping', {'num_bits': 4}, (4,)))
  @pytest.mark.slow
  def test_families(self, level, kwargs, shape):
    spec = self.make(level, kwargs).spec.observation
    shapes = ([part.shape for part in spec.values()]
              if isinstance(spec, dict) else [spec.shape])
    self.assertIn(shape, shapes)

  @parameterized.parameters(
      ('fake/Sized-v0', 'siz'), (_SIZED, 'siz'), ('fake/Wide-v0', 'siz'),
      ('catch', 'size'), ('bit_flipping_3', 'num_bits'),
      ('fake/Sized-v0', 'render_mode'), ('ALE/Pong-v5', 'mode'),
      ('lab/seekavoid_arena_01', 'size'))
  def test_unknown_arguments(self, level, name):
    self._assert_refused(level, name)

  def _assert_refused(self, level, name):
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        f'^--environment_kwargs: .* does not take the argument {name}'
    ) as caught:
      self.make(level, {name: 7})
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(
      ('MiniGrid-Empty-5x5-v0', 'siz'), ('HalfCheetah-v5', 'siz'),
      ('VizdoomBasic-v1', 'frame_skip'), ('FetchReach-v4', 'siz'))
  @pytest.mark.slow
  def test_unknown_arguments_of_families(self, level, name):
    self._assert_refused(level, name)

  @pytest.mark.slow
  def test_vizdoom(self):
    env = self.make('VizdoomBasic-v1', {'max_buttons_pressed': 0})
    self.assertEqual(env.spec.action.num_values, (2, 2, 2))

  def test_mistakes_of_the_constructor(self):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'raised TypeError: .*bad'):
      self.make('fake/RaisesTypeError-v0', {'size': 3})


class NumberTest(parameterized.TestCase, tf.test.TestCase):

  def _numbers(self, env):
    self.addCleanup(env.close)
    return env.initial().observation[:, 0].tolist()

  @parameterized.parameters(1, 2, 5)
  def test_groups(self, num_per_process):
    groups = environments.make_groups(
        [_SIZED] * 5, list(range(5)), _settings(
            '', environments_per_process=num_per_process), 2, first_index=70)
    self.assertEqual([self._numbers(env) for env in groups],
                     [[70, 71, 72], [73, 74]])
    self.assertNotIn(environments.NUMBER, os.environ)

  def test_groups_are_built_together_and_a_level_is_asked_once(self):
    directory = self.create_tempdir().full_path
    groups = environments.make_groups(
        ['fake_environments:fake/Meets-v0'] * 4, list(range(4)),
        _settings({'directory': directory, 'number': 4}), 3)
    for group in groups:
      self.addCleanup(group.close)
    kinds = [name.split('-')[0] for name in sorted(os.listdir(directory))]
    self.assertEqual(kinds, ['asked'] + ['built'] * 4)

  def test_a_restart_asks_no_level_again(self):
    directory = self.create_tempdir().full_path
    [group] = environments.make_groups(
        ['fake_environments:fake/Meets-v0'], [1],
        _settings({'directory': directory, 'number': 1}), 1,
        restarts=environments.Restarts(1))
    self.addCleanup(group.close)
    first = group.initial().observation
    [process] = multiprocessing.active_children()
    process.kill()
    with self.assertRaises(errors.EnvironmentLostError):
      group.step(np.zeros(1, np.int32))
    np.testing.assert_array_equal(group.initial().observation, first)
    kinds = [name.split('-')[0] for name in sorted(os.listdir(directory))]
    self.assertEqual(kinds, ['asked', 'built', 'built'])

  def test_environments_that_are_being_built_are_not_waited_for(self):
    settings = _settings({'directory': self.create_tempdir().full_path,
                          'number': 5})  # One more than there are.
    with mock.patch.object(
        workers.Workers, 'wait_until_built', side_effect=KeyboardInterrupt
    ), mock.patch.object(
        workers.Workers, '_busy', autospec=True,
        side_effect=workers.Workers._busy) as busy, self.assertRaises(
            KeyboardInterrupt):
      environments.make_groups(
          ['fake_environments:fake/Meets-v0'] * 4, list(range(4)), settings, 4)
    self.assertEqual(busy.call_count, 2 * 4)  # Else until a timeout.
    self.assertEmpty(multiprocessing.active_children())

  def test_evaluations(self):
    config = config_lib.Config(
        level_name=_SIZED, num_actors=3, eval_every_frames=9,
        eval_num_episodes=2)
    self.assertEqual(
        self._numbers(setup.evaluation_environments(config)), [3, 4])

  def test_rewards_in_hindsight(self):
    rewards, _ = environments.goal_functions(
        'fake/NumberedGoals-v0', _settings(''))
    space = fake_environments.NumberedGoals.observation_space['desired_goal']
    goals = np.zeros([2, *space.shape], space.dtype)
    self.assertEqual(rewards(goals, goals).tolist(), [-1, -1])


class RunTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_from_training_to_tests(self):
    logdir = self.create_tempdir().full_path
    config = config_lib.Config(
        level_name=_SIZED, environment_kwargs={'size': 5}, logdir=logdir,
        num_actors=2, batch_size=2, unroll_length=5, use_lstm=False,
        total_environment_frames=40, eval_every_frames=20, eval_num_episodes=2)
    scalable_agent.train(config)
    agent = scalable_agent.load(logdir)
    self.assertEqual(agent.config.kwargs, {'size': 5})
    self.assertEqual(agent.spec.observation.shape, (5,))
    self.assertEqual(agent.play(num_episodes=2), [5, 5])
    found = experiment.parse(['--mode=test', f'--logdir={logdir}'])
    self.assertEqual(found.kwargs, {'size': 5})
    with self.assertRaisesRegex(errors.ConfigError, 'this is another task'):
      scalable_agent.train(dataclasses.replace(config, environment_kwargs=''))


MUTATIONS = (
    dict(file='environments/arguments',
         catches='test_mistakes_of_the_constructor', rows=(
             ('arguments of others', ' or match[1] not in kwargs', ''),
         )),
    dict(file='environments/arguments', catches='test_reach_the_constructor',
         rows=(('not passed', 'return make(**kwargs)', 'return make()'),)),
    dict(file='environments/arguments', catches='test_unknown_arguments',
         rows=(('taken by all', 'if kwargs:', 'if False:'),)),
    dict(file='environments/__init__', catches='test_groups', rows=(
        ('numbers from 0', 'for i, part in enumerate(parts, first_index)]',
         'for i, part in enumerate(parts)]'),
        ('number of the first', '_numbered, cast(Factory, part), i)',
         '_numbered, cast(Factory, part), first_index)'),
    )),
    dict(file='environments/gymnasium_env',
         catches='test_groups_are_built_together_and_a_level_is_asked_once',
         rows=(
             ('one group after the other', 'self._deferred = waits',
              'self._deferred = None'),
             ('not waited for', 'for wait in waits:', 'for wait in []:'),
             ('each group asks', 'if name not in start.spaces:', 'if name:'),
         )),
    dict(file='processes/workers',
         catches='test_environments_that_are_being_built_are_not_waited_for',
         rows=(
             ('waits', '_FINISH_TIMEOUT_S if self._is_built else 0',
              '_FINISH_TIMEOUT_S'),
         )),
    dict(file='runs/setup', catches='test_evaluations', rows=(
        ('numbers of the training', 'first_index=config.num_actors,',
         'first_index=0,'),
    )),
    dict(file='settings/values',
         catches='test_equal_objects_are_equal_settings', rows=(
             ('order of arguments', 'sort_keys=True', 'sort_keys=False'),
         )),
    dict(file='settings/values', catches='test_no_object', rows=(
        ('lists as objects', 'isinstance(json.loads(text), dict)',
         'json.loads(text)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
