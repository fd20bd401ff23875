# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of recipes and of environments without an id, from Python."""

from concurrent import futures
import contextlib
import dataclasses
import io
import os
import signal
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import fake_environments
import gymnasium
import numpy as np
import pytest
import scalable_agent
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.environments import own_levels
from scalable_agent.environments import registry
from scalable_agent.modes import loading
from scalable_agent.processes import signals
from scalable_agent.runs import training
from scalable_agent.settings import recipes

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SMALL = dict(num_actors=2, batch_size=2, unroll_length=5, agent='mlp',
              hidden_sizes='8', use_lstm=False, xla='none')


class RecipeTest(parameterized.TestCase):

  @parameterized.parameters(*recipes.recipe_names())
  def test_settings_are_those_of_the_flags(self, name):
    self.assertEqual(scalable_agent.Config.from_recipe(name),
                     experiment.parse([f'--recipe={name}']))

  def test_settings_override_the_recipe(self):
    config = scalable_agent.Config.from_recipe(
        'cartpole', logdir='/tmp/a', batch_size=5)
    self.assertEqual((config.logdir, config.batch_size, config.use_lstm),
                     ('/tmp/a', 5, False))

  def test_errors(self):
    make = scalable_agent.Config.from_recipe
    with self.assertRaisesRegex(errors.ConfigError, "no recipe 'cartpol': did"):
      make('cartpol')
    with self.assertRaisesRegex(errors.ConfigError, '^--recipe=cartpole is'):
      make('cartpole', algorithm='sac')
    with self.assertRaisesRegex(errors.ConfigError, '^--batch_size=0 must'):
      make('cartpole', batch_size=0)


class EnvironmentTest(parameterized.TestCase):

  @pytest.mark.storm
  def test_a_function_is_a_level(self):
    for reward in 1., 2.:  # The second function replaces the first one.
      own_levels.register(
          'steps_of_test',
          lambda reward=reward: fake_environments.Steps(reward))
      with environments.make_vec(['steps_of_test'] * 2, [1, 2]) as env:
        env.initial()
        self.assertEqual(
            env.step(np.zeros([2], np.int32)).reward.tolist(), [reward] * 2)
    self.assertTrue(own_levels.is_registered('steps_of_test'))
    self.assertFalse(own_levels.is_registered('catch'))

  def test_names_of_other_levels_are_refused(self):
    for name in 'CartPole-v1', 'ALE/Pong-v5', 'catch', 'lab/x', 'a:b':
      with self.assertRaisesRegex(errors.LevelError, 'choose a new name'):
        own_levels.register(name, fake_environments.Steps)
    with self.assertRaisesRegex(errors.LevelError, 'cannot be the name'):
      own_levels.register('my level', fake_environments.Steps)

  def test_no_config(self):
    for config, level in (('Pendulum-v1', 'Pendulum-v1'), (1, 'CartPole-v1')):
      with self.assertRaisesRegex(
          errors.ConfigError, f"needs a Config, .*level_name='{level}', "):
        scalable_agent.train(config)
    for value, message in (
        ('cartpole', r"from_recipe\('cartpole', logdir"),
        (scalable_agent.Config(mode='test'), "mode='train', not 'test'"),
        (scalable_agent.Config(logdir='zoo:pong'), 'set logdir to a new dir')):
      with self.assertRaisesRegex(errors.ConfigError, message):
        scalable_agent.train(value)
    with self.assertRaisesRegex(
        errors.ConfigError, r"such as Config\(level_name='CartPole-v1'\)"):
      scalable_agent.Config('CartPole-v1')
    with self.assertRaisesRegex(
        errors.ConfigError, r'needs a directory, .*load\(config.logdir\)'):
      scalable_agent.load(scalable_agent.Config())

  def test_wrong_hooks_and_addons(self):
    for name, value in (
        ('hooks', print), ('hooks', [None]), ('hooks', 'a'),
        ('addons', print), ('addons', {'a': 1}), ('addons', [print])):
      with self.assertRaisesRegex(
          errors.ConfigError, f'^{name} must be a .* of functions, not '):
        scalable_agent.train(scalable_agent.Config(), **{name: value})

  def test_an_environment_in_place_of_a_class(self):
    with self.assertRaisesRegex(errors.LevelError, 'env=<Steps.*> cannot make '
                                'environments: give the class or a function'):
      scalable_agent.train(scalable_agent.Config(level_name='one_of_test'),
                           env=fake_environments.Steps(1.))
    self.assertFalse(own_levels.is_registered('one_of_test'))

  def test_a_vector_in_place_of_an_environment(self):
    own_levels.register('vector_of_test', lambda: gymnasium.make_vec(
        'CartPole-v1', 2))
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, "vector_of_test makes <class 'gymn.*Vector"
        "Env'>, which is no gymnasium.Env. .* no vector of environments: "
        '--num_actors sets how many there are'):
      registry.make(gymnasium.spec('vector_of_test'), {})

  @pytest.mark.slow
  def test_trains_and_returns_the_agent(self):
    config = scalable_agent.Config(
        level_name='my_steps', logdir=self.create_tempdir().full_path,
        environment_kwargs={'reward': 2}, total_environment_frames=20, **_SMALL)
    # A module without TensorFlow: four processes import the environment.
    agent = scalable_agent.train(config, env=fake_environments.Steps)
    self.assertEqual(agent.num_env_frames, 20)
    self.assertEqual(agent.play(num_episodes=1), [6])
    self.assertEqual(
        agent.play(fake_environments.Steps(5.), num_episodes=1), [15])

  @pytest.mark.slow
  def test_a_hook_ends_the_training_in_every_thread(self):
    config = scalable_agent.Config(
        level_name='CartPole-v1', logdir=self.create_tempdir().full_path,
        total_environment_frames=1_000, **_SMALL)

    def hook(update):
      if update.learner.num_env_frames % 30 == 0:
        raise scalable_agent.StopTraining('thirty more')

    first = scalable_agent.train(config, hooks=[hook])
    self.assertEqual(first.num_env_frames, 30)
    with futures.ThreadPoolExecutor() as threads:  # Resumes.
      second = threads.submit(scalable_agent.train, config, [hook]).result()
    self.assertEqual(second.num_env_frames, 60)

  @pytest.mark.slow
  def test_a_deterministic_run_ended_before_its_first_checkpoint(self):
    config = scalable_agent.Config(
        level_name='CartPole-v1', logdir=self.create_tempdir().full_path,
        total_environment_frames=1_000, deterministic=True,
        num_actor_groups=1, **_SMALL)

    def hook(update):
      raise scalable_agent.StopTraining

    with contextlib.redirect_stdout(io.StringIO()) as output:
      with self.assertRaisesRegex(errors.SaveError, 'has no checkpoint: a hook '
                                  'has ended the training before the first'):
        scalable_agent.train(config, hooks=[hook])
    self.assertIn('\nStopping.\n', output.getvalue())  # No signal has come.

  def test_a_relative_directory_is_that_of_the_start(self):
    self.addCleanup(os.chdir, os.getcwd())
    directory = self.create_tempdir().full_path
    os.chdir(directory)
    with mock.patch.object(training, 'train',
                           side_effect=lambda *unused: os.chdir('/')), \
        mock.patch.object(loading, 'load') as load:
      scalable_agent.train(scalable_agent.Config(logdir='run'))
    load.assert_called_once_with(os.path.join(directory, 'run'))

  def _train(self, **settings):
    """Trains without learning; returns the settings that were used."""
    with mock.patch.object(training, 'run') as run:
      training.train(scalable_agent.Config(**settings))
    return run.call_args.args[0]

  def test_a_resumed_run_keeps_its_reward_clipping(self):
    settings = dict(logdir=self.create_tempdir().full_path,
                    level_name='CartPole-v1')
    scalable_agent.Config(**settings, reward_clipping='abs_one').save()
    self.assertEqual(self._train(**settings).reward_clipping, 'none')
    open(os.path.join(settings['logdir'], 'ckpt-7.index'), 'w').close()
    self.assertEqual(self._train(**settings).reward_clipping, 'abs_one')
    for other in ({'reward_clipping': 'soft_asymmetric'},
                  {'algorithm': 'appo'}):
      config = scalable_agent.Config(**settings, **other)
      self.assertEqual(self._train(**settings, **other), config)

  def test_a_flag_replaces_the_reward_clipping_of_the_run(self):
    flags = ['--level_name=CartPole-v1', '--reward_clipping=none',
             f'--logdir={self.create_tempdir().full_path}']
    config = experiment.parse(flags)
    dataclasses.replace(config, reward_clipping='abs_one').save()
    open(os.path.join(config.logdir, 'ckpt-7.index'), 'w').close()
    with mock.patch.object(training, 'run') as run:
      experiment.import_mode(config)(config)
    self.assertEqual(run.call_args.args[0], config)

  @parameterized.parameters(signal.SIGINT, signal.SIGTERM)
  def test_stopped_before_the_first_checkpoint(self, number):

    def run(config, make_acting, stop, *unused):
      signals.wait_for(stop, 'the first update')
      os.kill(os.getpid(), number)
      self.assertTrue(stop.wait(10))
      return 0

    config = scalable_agent.Config(logdir=self.create_tempdir().full_path)
    with mock.patch.object(training, 'run', run):
      with self.assertRaises(signals.Stopped) as e:
        scalable_agent.train(config)
    self.assertEqual(e.exception.args, (128 + number,))


class ImportTest(absltest.TestCase):

  @pytest.mark.slow
  def test_nothing_is_printed_changed_or_imported_needlessly(self):
    env = {name: value for name, value in os.environ.items()
           if name not in ('TF_CPP_MIN_LOG_LEVEL', 'TF_FORCE_GPU_ALLOW_GROWTH')}
    run = subprocess.run(
        [sys.executable, '-c',
         'import os, random, sys\n'
         'random.seed(1)\n'
         'before = random.getstate()\n'
         'import scalable_agent\n'
         'assert "tensorflow" not in sys.modules\n'
         'scalable_agent.load, scalable_agent.train, scalable_agent.vtrace\n'
         'from scalable_agent.compat import di_engine, pytorch_seed_rl\n'
         'from scalable_agent.losses import mpo\n'
         'assert "tensorflow_probability" not in sys.modules\n'
         'import tensorflow as tf\n'
         'print(float(tf.reduce_sum(tf.ones([2]))),'
         ' os.environ["TF_FORCE_GPU_ALLOW_GROWTH"],'
         ' random.getstate() == before)'],
        capture_output=True, text=True, cwd=_ROOT, env=env)
    self.assertEqual((run.stdout, run.stderr), ('2.0 true True\n', ''))


MUTATIONS = (
    dict(file='modes/training', catches='test_wrong_hooks_and_addons', rows=(
        ('not checked', '  _check_functions(hooks, addons)\n', ''),
    )),
    dict(file='environments/own_levels',
         catches='test_names_of_other_levels_are_refused', rows=(
        ('another level is replaced',
         'elif any(family.levels.is_level(level_name)\n'
         '           for family in environments.FAMILIES):', 'elif False:'),
    )),
    dict(file='environments/registry',
         catches='test_a_vector_in_place_of_an_environment', rows=(
        ("gymnasium's error", "if 'must inherit from the gymnasium.Env class'",
         "if 'no such text'"),
    )),
    dict(file='environments/own_levels',
         catches='test_an_environment_in_place_of_a_class', rows=(
        ('an environment is called', 'if not callable(make):', 'if False:'),
    )),
    dict(file='modes/training',
         catches='test_a_relative_directory_is_that_of_the_start', rows=(
        ('the directory is looked up after the training',
         'os.path.abspath(config.logdir)', 'config.logdir'),
    )),
    dict(file='modes/training', catches='test_no_config', rows=(
        ('anything is a Config', '  _check_config(config)\n', ''),
    )),
    dict(file='runs/training',
         catches='test_stopped_before_the_first_checkpoint', rows=(
        ('every signal is SIGINT', 'raise signals.Stopped(128 + stop.number)',
         'raise signals.Stopped(130)'),
    )),
    dict(file='runs/setup',
         catches='test_a_resumed_run_keeps_its_reward_clipping', rows=(
        ('the new default', 'config_lib.with_saved_clipping(config)',
         'config'),
        ('all settings are kept',
         'if config.reward_clipping != default.reward_clipping:', 'if False:'),
    )),
    dict(file='experiment',
         catches='test_a_flag_replaces_the_reward_clipping_of_the_run', rows=(
        ('the flag is not heard', "'train_as_set'", "'train'"),
    )),
    dict(file='settings/values', catches='test_settings_are_those_of_the_flags',
         rows=(
        ('flags alone are false', "text in ('', 'true')",
         "text == 'true'"),
    )),
)


if __name__ == '__main__':
  absltest.main()
