# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the file of flags that a training writes."""

import dataclasses
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import flag_texts
from scalable_agent.settings import lab_levels
from scalable_agent.settings import recipes


class FileTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    self.argument = f'--flagfile={self.logdir}/{flag_texts.FILE}'

  @parameterized.parameters(*recipes.recipe_names())
  def test_the_flags_are_those_of_the_training(self, recipe):
    config = config_lib.Config.from_recipe(recipe, logdir=self.logdir, seed=7)
    chosen = config.resolved(
        _Shape(), on_cpu=True, num_groups=2) if config.num_actors else config
    for settings in config, chosen:
      settings.save(0, settings)
      self.assertEqual(experiment.parse([self.argument]), settings)

  @parameterized.parameters(
      {'deterministic': True, 'num_actor_groups': 1},
      {'num_learners': 2, 'num_actors': 8, 'ray_address': 'local'},
      {'algorithm': 'ddqn', 'use_lstm': True}, {'num_actors': 'auto'},
      {'environment_kwargs': {'a b': "c'", 'd': [1, None]}},
      {'algorithm': 'impala', 'replay_capacity': 64}, {'use_lstm': False},
      {'hook': 'my_hook:send', 'plot_file': '/a b.png', 'save_summaries_secs':
       float('inf')}, {'dynamic_batching': False, 'learning_rate': 1e-7})
  def test_other_settings(self, **settings):
    config = config_lib.Config(
        level_name='CartPole-v1', logdir=self.logdir, **settings)
    config.save(0, config)
    self.assertEqual(experiment.parse([self.argument]), config)

  @parameterized.parameters(
      ('appo', 'batch_size', 4), ('appo', 'num_actors', 64),
      ('impala', 'addon', 'a:b'),
      ('sac', 'total_environment_frames', 5_000_000))
  def test_later_flags_count(self, algorithm, name, value):
    config = config_lib.Config(
        algorithm=algorithm, level_name='CartPole-v1', logdir=self.logdir,
        num_actors=32)
    # What was chosen must not stand in the way of a later flag.
    config.resolved(_Shape([4]), on_cpu=True, num_groups=2).save(0, config)
    self.assertEqual(
        experiment.parse([self.argument, f'--{name}={value}']),
        config_lib.Config(**{
            'algorithm': algorithm, 'level_name': 'CartPole-v1',
            'logdir': self.logdir, 'num_actors': 32, name: value}))
    with open(f'{self.logdir}/{flag_texts.FILE}', encoding='utf-8') as f:
      self.assertLess(len(f.readlines()), 6)  # Without defaults.

  def test_the_level_is_that_of_the_training_where_lab_is_installed(self):
    config = config_lib.Config(level_name='ALE/Pong-v5', logdir=self.logdir)
    config.save(0, config)
    with mock.patch.object(lab_levels, 'is_installed', return_value=True):
      self.assertEqual(experiment.parse([self.argument]), config)

  def test_a_permission_holds_for_one_command(self):
    config = config_lib.Config(allow_other_task=True, logdir=self.logdir)
    config.save(0, config)
    self.assertFalse(experiment.parse([self.argument]).allow_other_task)

  def test_changes_within_a_training(self):
    config = config_lib.Config(
        logdir=self.logdir, level_name='catch', hidden_sizes='8')
    self.assertEmpty(flag_texts.changes_within(self.logdir, 100))
    config.save(0)
    # These make no other agent.
    dataclasses.replace(
        config, progress_secs=1, test_num_episodes=3, seed=1).save(90)
    self.assertEmpty(flag_texts.changes_within(self.logdir, 100))
    for part, rate in ((20, .5), (100, .1)):  # Numbers, not texts, in order.
      dataclasses.replace(config, learning_rate=rate, xla='none').save(part)
    with open(f'{self.logdir}/settings-300.json', 'w') as f:
      f.write('[')
    self.assertEqual(flag_texts.changes_within(self.logdir, 101), (
        'learning_rate 0.00048, then 0.5, then 0.1', 'xla auto, then none'))
    # The weights of an earlier checkpoint, such as that of `best`.
    self.assertEqual(flag_texts.changes_within(self.logdir, 100), (
        'learning_rate 0.00048, then 0.5', 'xla auto, then none'))

  def test_the_directory_does_not_depend_on_where_a_command_starts(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.logdir)
    text = flag_texts.of_file(config_lib.Config(
        level_name='catch', logdir='run', dataset_path='dummy'))
    self.assertIn(f'--logdir={self.logdir}/run\n', text)
    self.assertIn('--dataset_path=dummy\n', text)  # A word of DeepMind Lab.

  def test_an_error_of_another_task_names_the_file(self):
    before = config_lib.Config(
        level_name='catch', num_action_repeats=1, logdir=self.logdir)
    other = config_lib.Config(logdir=self.logdir)
    of_training = 'To resume, use the flags of its training'
    with self.assertRaisesRegex(
        errors.ConfigError, rf'--logdir={self.logdir} was trained with '
        '--level_name=catch --num_action_repeats=1, not with '
        '--level_name=ALE/Pong-v5 --num_action_repeats=4: this is another '
        rf'task. {of_training}. For '):
      other.check_same_task(before)
    before.save(0, before)
    with self.assertRaisesRegex(
        errors.ConfigError,
        rf'{of_training} \({self.argument} --logdir={self.logdir}\). For '):
      other.check_same_task(before)


class _Shape:
  """Stands for a spec of observations, without arguments of frames."""

  def __init__(self, shape=(84, 84, 4)):
    self.shape = shape


MUTATIONS = (
    dict(file='settings/flag_texts', catches='test_changes_within_a_training',
         rows=(
        ('parts in the order of texts', 'int(match[1]): match[0]',
         'match[1]: match[0]'),
        ('seeds and tests', "if not (field.metadata['varies'] or field.name in "
         '_OF_TESTS)', 'if field.name'),
    )),
)


if __name__ == '__main__':
  absltest.main()
