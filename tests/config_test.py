# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the settings: defaults, checks, helps, and what is saved of them."""

import dataclasses
import importlib
import json
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.experience import structs
from scalable_agent.settings import command_line
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare as settings_lib
from scalable_agent.settings import flag_texts
from scalable_agent.settings import sections

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# DeepMind's flags and defaults; only the default of the level is ours.
_REFERENCE = dict(
    logdir='/tmp/agent', mode='train', test_num_episodes=10, task=-1,
    job_name='learner', total_environment_frames=1_000_000_000,
    num_actors=4, batch_size=2, unroll_length=100, num_action_repeats=4,
    seed=1, entropy_cost=0.00025, baseline_cost=0.5, discounting=0.99,
    reward_clipping='abs_one', dataset_path='', width=96, height=72,
    learning_rate=0.00048, decay=0.99, momentum=0.0, epsilon=0.1,
    level_name='ALE/Pong-v5')
_FIELDS = {f.name: f for f in dataclasses.fields(config_lib.Config)}


def _function():
  """What a user may take for a value of a setting."""


# Values that are refused, and the text of the error.
_POSITIVE = [(0, 'must be positive'), (-1, 'must be positive')]
_NOT_NEGATIVE = [(-1, 'must not be negative')]
_FRACTION = [(-0.1, 'must be between 0 and 1'),
             (1.1, 'must be between 0 and 1')]
_BELOW_ONE = [(-0.1, 'must be at least 0 and below 1'),
              (1., 'must be at least 0 and below 1')]
_NO_NAME = [('', 'must name'), (' , ', 'must name')]
_CHOICES = [('typo', 'must be one of '), ('', 'must be one of ')]
_ALE_COUNT = [(2**31 - 1, 'must be below 2**31 - 1')]
_REFUSED = {
    'logdir': _NO_NAME + [(f'{scheme}://bucket/run', 'must be a directory of '
                           'this machine') for scheme in ('s3', 'gs', 'ram')],
    **{name: [('gs://bucket', 'must be a directory of this machine')]
       for name in ('dataset_path', 'level_cache_dir')},
    'level_name': _NO_NAME,
    **{name: _POSITIVE for name in (
        'seeds', 'jobs',
        'test_num_episodes', 'total_environment_frames', 'passes',
        'batch_size', 'unroll_length', 'num_action_repeats', 'width', 'height',
        'max_policy_lag', 'queue_capacity', 'save_checkpoint_secs',
        'save_summaries_secs', 'progress_secs', 'epsilon', 'step_timeout_s',
        'environments_per_process', 'plot_num_episodes',
        'target_update_period', 'num_critics', 'policy_delay',
        'initial_temperature', 'num_samples',
        'epsilon_temperature', 'epsilon_mean', 'epsilon_scale',
        'epsilon_bounds', 'initial_mean_multiplier',
        'initial_scale_multiplier', 'replay_steps',
        'min_replay_steps',
        'updates_per_step', 'n_step', 'recent_min_steps', 'reward_scale',
        'hindsight_goals', 'clip_rho', 'clip_c', 'clip_pg_rho',
        'updates_per_collect', 'eval_num_episodes', 'priority_epsilon',
        'video_num_episodes', 'max_episode_steps', 'sequence_length',
        'learning_rate_kl',
        'lstm_units',
        'num_cpus_per_actor_worker', 'num_cpus_per_learner', 'num_learners',
        'min_actor_workers', 'actor_timeout_s', 'hang_timeout_s')},
    'max_episode_frames': _POSITIVE + _ALE_COUNT,
    **{name: _NOT_NEGATIVE for name in (
        'entropy_cost', 'baseline_cost', 'learning_rate', 'momentum',
        'num_actors', 'num_actor_groups',
        'clip_gradient_norm', 'micro_batch_size', 'replay_capacity',
        'min_policy_lag', 'updates_per_call', 'critic_learning_rate',
        'huber_delta', 'exploration_noise', 'target_noise',
        'target_noise_clip', 'temperature_learning_rate',
        'priority_exponent', 'unrolls_per_collect',
        'max_use', 'eval_every_frames', 'burn_in_steps', 'kl_cost',
        'target_policy_period',
        'clip_value',
        'clip_gradient_value', 'num_actor_workers',
        'max_learner_restarts', 'max_environment_restarts',
        'save_checkpoint_frames', 'video_secs', 'memory_learning_rate')},
    'max_noops': _NOT_NEGATIVE + _ALE_COUNT,
    'seed': _NOT_NEGATIVE + [(2**31, 'must be below 2**31.')],
    **{name: _BELOW_ONE for name in ('adam_beta1', 'adam_beta2')},
    **{name: _FRACTION for name in (
        'discounting', 'decay', 'repeat_action_probability',
        'replay_fraction', 'exploration_epsilon_begin',
        'exploration_epsilon_end', 'exploration_fraction', 'exploration_decay',
        'target_entropy_ratio', 'importance_exponent',
        'lambda_', 'importance_exponent_end')},
    **{name: _CHOICES for name in (
        'mode', 'job_name', 'reward_clipping', 'optimizer', 'xla',
        'compute_dtype', 'correction', 'algorithm', 'learning_rate_schedule',
        'selector', 'hindsight', 'reduction', 'save_replay', 'pack', 'suite',
        'inference', 'collectives', 'video_format', 'export_format')},
    'hidden_sizes': [(value, 'must be a list of positive numbers, such as '
                      '256,256') for value in ('', ' , ', '64,0', '64,-1',
                                               '64,a', '6.5', '²',
                                               '9' * 5000)],
    'agent': [(value, 'must be one of auto, deep, shallow, nature, mlp, or ')
              for value in ('', 'resnet', 'a:', ':b', 'a:b:c', 'a b:c')],
    'core': [(value, 'must be one of lstm, gru, or module:function')
             for value in ('', 'rnn', 'a:', 'LSTM')],
    **{name: [(value, 'must be module:function')
              for value in ('a', 'a:1b', 'a.py:b')]
       for name in ('hook', 'addon')},
    'normalise_observations': [
        (value, 'must be none, auto, or names') for value in ('', ',')],
    'clip_ratio': [(0, 'must be positive'), _BELOW_ONE[1]],
    'recent_eta': [(0, 'must be positive'), (1.1, 'must be between 0')],
    'target_update_rate': [(0, 'must be positive'),
                           (1.1, 'must be between 0')],
    'initial_scale': [(0, 'must be between 1e-6'), (7.4, 'must be between')],
    'target_entropy_per_part': [(math.inf, 'must be finite')],
    'num_gpus_per_learner': [
        (value, 'must be -1, 0 or 1: a learner') for value in (-2, 2)],
    'episode_metrics': [(',', 'must be names, such as A,B,C')],
    'environment_kwargs': [(value, 'must be a JSON object, such as {"size": 5}')
                           for value in ('[1]', 'size=5')],
    'task': [(-2, 'must be at least -1'), (1, 'must be 0 for the only')]}
# All values of their types are valid.
_FREE = {'plot_file', 'use_lstm', 'normalise_returns',
         'normalise_advantages', 'overlap',
         'scale_from_state',
         'use_last_action_reward', 'use_instruction', 'test_greedy',
         'dynamic_batching', 'full_action_space', 'life_loss_ends_episode',
         'fire_on_reset', 'bootstrap_truncated', 'squash_actions', 'double_q',
         'dueling', 'value_rescaling', 'layer_norm', 'exact_temperature',
         'separate_baseline',
         'exploration_ladder',
         'deterministic',
         'ray_address', 'allow_other_task', 'debug', 'video_text',
         'log_episodes'}

_FRAMES = structs.ArraySpec((72, 96, 3), np.dtype(np.uint8))
_VECTOR = structs.ArraySpec((4,), np.dtype(np.float32))
_WORDS = structs.ArraySpec((), np.dtype(object))


def _config_with(name, value):
  """Returns settings of an algorithm that uses the setting `name`."""
  algorithm = _FIELDS[name].metadata['algorithms'][0]
  return config_lib.Config(**{'algorithm': algorithm, name: value})


class PathsTest(parameterized.TestCase):

  @parameterized.parameters(
      ('~/x', '/home/me/x'), ('~', '/home/me'), ('~/a,b,~/c',
                                                 '/home/me/a,b,/home/me/c'),
      ('a, ~/b', 'a,/home/me/b'), ('/tmp/~x', '/tmp/~x'), ('a~', 'a~'))
  def test_the_directory_of_the_user(self, path, expanded):
    with mock.patch.dict(os.environ, HOME='/home/me'):
      for name in 'logdir', 'dataset_path', 'level_cache_dir', 'plot_file':
        self.assertEqual(
            getattr(config_lib.Config(**{name: path, 'mode': 'plot'}), name),
            expanded)


class DefaultsTest(absltest.TestCase):

  def test_reference(self):
    self.assertLen(_REFERENCE, 23)
    config = config_lib.Config()
    for name, default in _REFERENCE.items():
      self.assertEqual(getattr(config, name), default, name)
      self.assertIs(type(getattr(config, name)), type(default), name)

  def test_config_and_flags_have_the_same(self):
    self.assertEqual(experiment.parse([]), config_lib.Config())
    defaults = dataclasses.asdict(config_lib.Config())
    for name, field in _FIELDS.items():
      # Those that depend on the algorithm are open.
      is_open = isinstance(field.metadata['default'], settings_lib.By)
      self.assertEqual(flags.FLAGS[name].default,
                       None if is_open else defaults[name], name)

  def test_some_settings_in_a_notebook(self):
    config = config_lib.Config(batch_size=3, level_name='catch')
    self.assertEqual((config.batch_size, config.level_name, config.num_actors),
                     (3, 'catch', 4))

  def test_section_alone(self):
    section = sections.EnvironmentSettings(width=64)
    self.assertEqual((section.width, section.height, section.is_test),
                     (64, 72, False))
    self.assertTrue(sections.EnvironmentSettings(mode='test').is_test)
    with self.assertRaisesRegex(errors.ConfigError, '--width=0 must be posit'):
      sections.EnvironmentSettings(width=0)
    self.assertFalse(hasattr(section, 'batch_size'))

  def test_config_is_every_section(self):
    config = config_lib.Config(mode='test')
    self.assertTrue(config.is_test)
    for section in sections.SECTIONS:
      self.assertIsInstance(config, section)
      section()

  def test_pickle(self):
    config = config_lib.Config(mode='test', width=64)
    self.assertEqual(pickle.loads(pickle.dumps(config)), config)
    self.assertTrue(pickle.loads(pickle.dumps(config)).is_test)

  def test_imports_little_of_ours(self):
    code = ('import sys; from scalable_agent import config; print(sorted('
            'm for m in sys.modules if m.startswith("scalable_agent")'
            ' or m in ("tensorflow", "absl")))')
    self.assertEqual(
        subprocess.run([sys.executable, '-c', code], cwd=_ROOT, text=True,
                       check=True, stdout=subprocess.PIPE).stdout.strip(),
        "['scalable_agent', 'scalable_agent.config', 'scalable_agent.errors', "
        "'scalable_agent.settings', "
        + ''.join(f"'scalable_agent.settings.{name}', " for name in (
            'acting_settings', 'agent_settings', 'algorithm_settings',
            'cluster_settings', 'config', 'declare',
            'environment_settings', 'files', 'flag_texts', 'joined',
            'lab_levels', 'learner_settings', 'other_words', 'recipes',
            'replay_settings', 'run_settings', 'sections', 'suite_settings',
            'test_settings'))
        + "'scalable_agent.settings.values']")


class ChecksTest(parameterized.TestCase):

  def test_all_settings_are_here(self):
    self.assertEqual(set(_REFUSED) | _FREE, set(_FIELDS))
    for name in _FREE:
      self.assertEmpty(_FIELDS[name].metadata['checks'])

  @parameterized.parameters(
      'num_actors', 'num_actor_groups', 'num_actor_workers', 'unroll_length',
      'queue_capacity', 'batch_size', 'n_step', 'updates_per_call')
  def test_numbers_of_which_no_list_is_made(self, name):
    rule = f'--{name}=1000001 must be at most 1,000,000.'
    with self.assertRaisesRegex(errors.ConfigError, f'^{rule}$'):
      _config_with(name, 10**6 + 1)

  @parameterized.parameters(
      (name, value, rule)
      for name, refused in _REFUSED.items() for value, rule in refused)
  def test_refused(self, name, value, rule):
    with self.assertRaisesRegex(errors.ConfigError, '^' + re.escape(
        f'--{name}={value} {rule}')) as caught:
      _config_with(name, value)
    self.assertEqual(str(caught.exception)[-1], '.')
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(
      ('seed', 0), ('seed', 2**31 - 1), ('max_noops', 0),
      ('max_noops', 2**31 - 2), ('discounting', 0), ('discounting', 1),
      ('clip_gradient_value', 0), ('batch_size', 1), ('epsilon', 1e-9),
      ('dynamic_batching', True),
      ('save_checkpoint_secs', 1), ('logdir', ',a'), ('level_name', 'a,'),
      ('hidden_sizes', '1'), ('hidden_sizes', ' 5, 6 ,'),
      ('target_update_rate', 1e-6), ('target_update_rate', 1),
      ('updates_per_call', 0), ('huber_delta', 0), ('target_noise', 0),
      ('critic_learning_rate', 0), ('updates_per_step', 1e-3), ('n_step', 1))
  def test_edges(self, name, value):
    self.assertEqual(getattr(_config_with(name, value), name), value)

  @parameterized.parameters(
      ('batch_size', 2.5, 'int'), ('batch_size', '2', 'int'),
      ('batch_size', True, 'int'), ('discounting', True, 'float or int'),
      ('learning_rate', '0.1', 'float or int'), ('use_lstm', 'false', 'bool'),
      ('logdir', None, 'str'), ('dynamic_batching', 1, 'bool or NoneType'))
  def test_types(self, name, value, types):
    with self.assertRaisesRegex(
        errors.ConfigError, f'--{name}={value} must be of type {types}.'):
      config_lib.Config(**{name: value})

  def test_numbers_of_numpy_whole_floats_paths_lists_and_auto(self):
    config = config_lib.Config(
        level_name=['catch', 'memory'], hidden_sizes=(np.int64(64), 32),
        num_actors='auto', batch_size=np.int64(8), total_environment_frames=1e6,
        learning_rate=np.float64(.5), use_lstm=np.bool_(False),
        logdir=pathlib.Path('~/a'), plot_file=pathlib.Path('b'))
    plain = config_lib.Config(
        level_name='catch,memory', hidden_sizes='64,32', num_actors=0,
        batch_size=8, total_environment_frames=10**6, learning_rate=.5,
        use_lstm=False, logdir='~/a', plot_file='b')
    self.assertEqual(json.dumps(dataclasses.asdict(config)),
                     json.dumps(dataclasses.asdict(plain)))
    self.assertEqual(config.logdir, os.path.expanduser('~/a'))

  @parameterized.parameters(
      ('level_name', [['catch']], 'must be of type str'),
      ('agent', _function, "'my_file:name' for a function or a class of my_"),
      ('hook', int, "'my_file:name' for a function or a class of my_file.py"),
      ('level_name', _function, 'train.config, env=FUNCTION. takes a function'),
      ('mode', ['train'], 'must be of type str'),
      ('environment_kwargs', ['a'], 'must be of type str'),
      ('level_name', 'catch\n--seed=7', 'must be one line'),
      ('algorithm', {}, 'must be of type str'),
      ('num_actors', np.ones(2), 'must be of type int'),
      ('learning_rate', 10**400, 'must be finite'),
      ('logdir', '\udcff', 'must be text in UTF-8'),
      ('plot_file', 'a\udcffb', 'must be text in UTF-8'))
  def test_values_that_no_check_expects(self, name, value, rule):
    with self.assertRaisesRegex(errors.ConfigError, f'^--{name}=.* {rule}'):
      config_lib.Config(**{name: value})

  def test_not_a_number(self):
    for name, field in _FIELDS.items():
      if settings_lib.value_type(field) is float:
        with self.assertRaisesRegex(errors.ConfigError, f'{name}=nan must'):
          _config_with(name, math.nan)

  @parameterized.parameters(
      dict(save_checkpoint_secs=7), dict(queue_capacity=7))
  def test_without_effect_in_deterministic_runs(self, **settings):
    config_lib.Config(**settings)
    [name, value], *_ = settings.items()
    with self.assertRaisesRegex(
        errors.ConfigError,
        f'{name}={value}.* has no effect with --deterministic'):
      config_lib.Config(deterministic=True, num_actor_groups=1, **settings)

  def test_deterministic_runs_save_their_replay(self):
    settings = dict(deterministic=True, num_actor_groups=1, algorithm='ddqn')
    config_lib.Config(save_replay='yes', **settings)
    with self.assertRaisesRegex(
        errors.ConfigError, 'save_replay=no cannot be used with --determin'):
      config_lib.Config(save_replay='no', **settings)

  def test_saved_settings_without_effect_in_deterministic_runs(self):
    saved = dict(deterministic=True, num_actor_groups=1, queue_capacity=7,
                 save_checkpoint_secs=7., save_replay='no', algorithm='ddqn')
    self.assertEqual(
        config_lib.Config.from_saved(saved), config_lib.Config(
            deterministic=True, num_actor_groups=1, algorithm='ddqn'))

  def test_settings_with_several_defaults_that_have_no_effect(self):
    config = config_lib.Config(algorithm='ddqn')
    self.assertEqual(
        dataclasses.replace(config, use_lstm=True).clip_gradient_norm, 0)
    self.assertEqual(config_lib.Config(
        algorithm='ddqn', use_lstm=True).clip_gradient_norm, 40)

  @parameterized.parameters(
      (dict(replay_capacity=3), 'replay_capacity=3 must be 0 or at least '
       '--batch_size=4'),
      (dict(replay_capacity=4, unrolls_per_collect=5), 'unrolls_per_collect=5 '
       'must be at most --replay_capacity=4'),
      (dict(replay_capacity=4, replay_fraction=0.), 'replay_fraction=0.0 must '
       'leave both fresh and replayed unrolls in a batch of --batch_size=4'),
      (dict(replay_capacity=4, replay_fraction=1.), 'replay_fraction=1.0'))
  def test_replay_and_batches(self, settings, text):
    with self.assertRaisesRegex(errors.ConfigError, text):
      config_lib.Config(batch_size=4, **settings)
    self.assertEqual(config_lib.Config(
        batch_size=4, replay_capacity=4).num_fresh_unrolls, 2)

  @parameterized.parameters(
      (dict(deterministic=True), 'deterministic=True needs '
       '--num_actor_groups=1'))
  def test_settings_that_need_another_one(self, settings, text):
    with self.assertRaisesRegex(errors.ConfigError, f'^--{text}'):
      config_lib.Config(batch_size=4, **settings)
    config_lib.Config(batch_size=4, **{
        'replay_capacity': 4, 'unrolls_per_collect': 1, 'num_actor_groups': 1,
        **settings})

  def test_logdirs(self):
    self.assertEqual(config_lib.Config(
        logdir=' a, ,b/c,', mode='table').logdirs, ['a', 'b/c'])
    for mode in 'train', 'test':
      with self.assertRaisesRegex(errors.ConfigError, 'must be one directory'):
        config_lib.Config(logdir='a,b', mode=mode)


class AlgorithmsTest(parameterized.TestCase):
  """Tests of settings whose defaults, or whose use, depend on the algorithm."""

  @parameterized.parameters(
      ('dmlab30', 'impala', 64), ('lab/lt_chasm,catch', 'impala', 64),
      ('catch', 'impala', 2), ('ALE/Pong-v5', 'impala', 2),
      ('rooms_watermaze', 'appo', 64), ('rooms_watermaze', 'ddqn', 1))
  def test_groups(self, level_name, algorithm, num_groups):
    config = config_lib.Config(level_name=level_name, algorithm=algorithm)
    self.assertEqual(config.num_actor_groups, num_groups)
    # The groups share policy steps.
    if num_groups == 64:
      config = config_lib.Config(level_name=level_name, num_actors=256)
      spec = structs.ArraySpec((72, 96, 3), np.dtype(np.uint8))
      self.assertTrue(config.resolved(
          spec, on_cpu=True, num_groups=64).dynamic_batching)

  @parameterized.parameters(
      'dmlab30', 'catch,lab/contributed/dmlab30/lasertag_one_opponent_large')
  def test_levels_that_no_seed_repeats(self, level_name):
    values = dict(level_name=level_name, num_actor_groups=1)
    for num_actor_groups in 1, 64:  # No second error follows the first.
      with self.assertRaisesRegex(
          errors.ConfigError, 'deterministic=True cannot be used with '
          f'{level_name.split(",")[-1]}: no seed repeats'):
        config_lib.Config(deterministic=True, level_name=level_name,
                          num_actor_groups=num_actor_groups)
    config_lib.Config(**values)
    config_lib.Config(deterministic=True, mode='test', **values)
    config_lib.Config(deterministic=True, num_actor_groups=1,
                      level_name='explore_object_rewards_few')

  @parameterized.parameters(
      ('impala', dict(
          total_environment_frames=1_000_000_000, hidden_sizes='64,64',
          num_actor_groups=2, unroll_length=100, num_action_repeats=1,
          learning_rate_schedule='linear', optimizer='rmsprop', epsilon=.1,
          reward_clipping='none', updates_per_call=0)),
      ('ddqn', dict(
          total_environment_frames=1_000_000, hidden_sizes='256,256',
          num_actor_groups=1, unroll_length=2, num_action_repeats=1,
          batch_size=64, learning_rate=1e-4, learning_rate_schedule='constant',
          optimizer='adam', epsilon=1e-8, reward_clipping='none',
          target_update_rate=1., target_update_period=1000, double_q=True,
          dueling=False, min_replay_steps=1000, updates_per_step=1.,
          exploration_epsilon_end=.05, n_step=1, selector='uniform')),
      ('ddpg', dict(
          batch_size=256, learning_rate=3e-4, target_update_rate=.005,
          exploration_noise=.1)),
      ('td3', dict(
          batch_size=256, learning_rate=3e-4, target_update_rate=.005,
          num_critics=2, policy_delay=2, target_noise=.2,
          target_noise_clip=.5)),
      ('sac', dict(
          batch_size=256, learning_rate=3e-4, target_update_rate=.005,
          target_update_period=1, num_critics=2, initial_temperature=1.,
          temperature_learning_rate=3e-4, target_entropy_ratio=.7,
          target_entropy_per_part=-1.)),
      ('mpo', dict(
          batch_size=256, target_update_rate=1., target_update_period=100,
          num_critics=1, initial_temperature=10.,
          temperature_learning_rate=.01, num_samples=20)))
  def test_defaults(self, algorithm, defaults):
    # A run in the default directory would have settings of its own.
    logdir = self.create_tempdir().full_path
    config = config_lib.Config(
        algorithm=algorithm, level_name='CartPole-v1', logdir=logdir)
    for name, default in defaults.items():
      self.assertEqual(getattr(config, name), default, name)
      self.assertIs(type(getattr(config, name)), type(default), name)
    self.assertEqual(experiment.parse(
        [f'--algorithm={algorithm}', '--level_name=CartPole-v1',
         f'--logdir={logdir}']), config)
    self.assertEqual(config.is_off_policy, algorithm != 'impala')

  def test_atari(self):
    make = lambda algorithm: config_lib.Config(
        algorithm=algorithm, level_name='ALE/Pong-v5')
    ddqn, sac, impala = make('ddqn'), make('sac'), make('impala')
    for config in (ddqn, sac):
      self.assertEqual(
          (config.num_action_repeats, config.unroll_length,
           config.updates_per_step, config.reward_clipping),
          (4, 16, .25, 'abs_one'))
    self.assertEqual((ddqn.batch_size, ddqn.min_replay_steps), (32, 20_000))
    self.assertEqual((sac.batch_size, sac.min_replay_steps), (256, 1_000))
    self.assertEqual((impala.unroll_length, impala.batch_size), (100, 2))

  @parameterized.parameters(
      ('ddqn', {}, 1., 1000), ('sac', {}, .005, 1), ('mpo', {}, 1., 100),
      ('ddqn', dict(target_update_rate=.1), .1, 1),
      ('mpo', dict(target_update_rate=1.), 1., 100),
      ('sac', dict(target_update_period=10), 1., 10),
      ('sac', dict(target_update_period=1), .005, 1),
      ('ddqn', dict(target_update_rate=.1, target_update_period=5), .1, 5),
      ('ddpg', dict(target_update_rate=.1), .1, None))
  def test_targets_make_small_moves_or_seldom_ones(
      self, algorithm, settings, rate, period):
    config = config_lib.Config(algorithm=algorithm, **settings)
    section = sections.OffPolicySettings(algorithm=algorithm, **settings)
    for made in config, section:
      self.assertEqual(
          (made.target_update_rate, made.target_update_period), (rate, period))

  def test_actions_are_repeated_where_the_levels_expect_it(self):
    for family in environments.FAMILIES:
      expected = 4 if family.levels in (
          environments.atari, environments.dmlab) else 1
      for level in family.levels.known_levels():
        if expected == 4 or not level.startswith('ALE/'):
          self.assertEqual(config_lib.Config(
              level_name=level).num_action_repeats, expected, level)
    self.assertEqual([config_lib.Config(level_name=level).num_action_repeats
                      for level in ('lab/x', 'contributed/dmlab30/x', 'atari57',
                                    'dmlab30', 'CartPole-v1', 'catch', 'm:x')],
                     [4, 4, 4, 4, 1, 1, 1])
    # `module:id` is never a level of DeepMind Lab.
    for level in ('rooms_world:Corridor-v0', 'explore_it:x', 'lab/x:y'):
      self.assertEqual(
          config_lib.Config(level_name=level).num_action_repeats, 1, level)
    # The levels are not known.
    self.assertEqual(
        sections.EnvironmentSettings().num_action_repeats, 4)

  def test_the_first_default_that_is_there_counts(self):
    class Settings(sections.EnvironmentSettings):
      level_name = 'ALE/Pong-v5'

    default = settings_lib.By({'ddqn on Atari': 1, 'Atari': 2, 'ddqn': 3,
                             'impala': 4, 'others': 5})
    of = lambda section, algorithm: default.of(
        section(algorithm=algorithm).default_keys())
    self.assertEqual([of(Settings, a) for a in ('ddqn', 'sac', 'impala')],
                     [1, 2, 4])
    # A section without a level.
    self.assertEqual([of(sections.EnvironmentSettings, a)
                      for a in ('ddqn', 'sac', 'impala')], [3, 5, 4])

  def test_epsilon_of_optimizers(self):
    epsilon = lambda **settings: config_lib.Config(**settings).epsilon
    self.assertEqual([epsilon(), epsilon(optimizer='adam'),
                      epsilon(optimizer='torch_rmsprop')], [.1, 1e-8, 1e-8])
    self.assertEqual(epsilon(algorithm='appo', optimizer='rmsprop'), 1e-5)

  def test_ddqn_with_an_lstm(self):
    make = lambda **settings: config_lib.Config(algorithm='ddqn', **settings)
    plain, recurrent, atari = (
        make(level_name='catch'), make(level_name='catch', use_lstm=True),
        make(level_name='ALE/Pong-v5', use_lstm=True))
    self.assertEqual(
        [(c.use_lstm, c.use_last_action_reward, c.unroll_length)
         for c in (plain, recurrent, atari)],
        [(False, False, 2), (True, True, 20), (True, True, 20)])
    self.assertEqual(
        [(c.updates_per_step, c.batch_size, c.burn_in_steps, c.lstm_units,
          c.target_update_period, c.clip_gradient_norm)
         for c in (plain, recurrent, atari)],
        [(1, 64, 0, 256, 1000, 0), (.0625, 32, 20, 256, 100, 40),
         (.0125, 32, 20, 256, 100, 40)])
    other = config_lib.Config(
        algorithm='sac', level_name='catch', use_lstm=True)
    self.assertEqual(
        (other.updates_per_step, other.batch_size, other.burn_in_steps,
         other.lstm_units, other.unroll_length, other.clip_gradient_norm),
        (.125, 32, 20, 128, 10, 10))
    self.assertEqual(config_lib.Config(use_lstm=True).lstm_units, 256)
    self.assertEqual(recurrent.resolved(
        _VECTOR, on_cpu=True, num_groups=1).updates_per_call, 1)

  @parameterized.parameters(
      (dict(burn_in_steps=1), 'needs --use_lstm'),
      (dict(use_last_action_reward=True), 'needs --use_lstm'),
      (dict(sequence_length=19), 'needs --use_lstm'),
      (dict(use_lstm=True, replay_steps=263), 'must be at least 264, for seq'),
      (dict(use_lstm=True, n_step=21), 'must be at most --sequence_length=20'),
      (dict(use_lstm=True, hindsight='future'), 'cannot be used with --use_'))
  def test_what_an_lstm_needs(self, settings, text):
    *_, (name, value) = settings.items()
    with self.assertRaisesRegex(
        errors.ConfigError, f'^--{name}={value} {text}'):
      config_lib.Config(algorithm='ddqn', level_name='catch', **settings)

  @parameterized.parameters(
      ('priority_exponent', .7, 'selector', 'prioritised'),
      ('priority_epsilon', .1, 'selector', 'recent_prioritised'),
      ('importance_exponent', .5, 'selector', 'prioritised'),
      ('importance_exponent_end', .5, 'selector', 'prioritised'),
      ('recent_eta', .9, 'selector', 'recent'),
      ('recent_min_steps', 7, 'selector', 'recent_prioritised'),
      ('decay', .5, 'optimizer', 'torch_rmsprop'),
      ('momentum', .5, 'optimizer', 'rmsprop'),
      ('adam_beta1', .5, 'optimizer', 'adam'),
      ('adam_beta2', .5, 'optimizer', 'adam'),
      ('hindsight_goals', 3, 'hindsight', 'final'))
  def test_what_has_no_effect_cannot_be_set(self, name, value, other, needed):
    make = lambda **settings: config_lib.Config(algorithm='ddqn', **settings)
    wrong = 'rmsprop' if name.startswith('adam') else {
        'selector': 'uniform', 'optimizer': 'adam', 'hindsight': 'none'}[other]
    with self.assertRaisesRegex(
        errors.ConfigError, f'^--{name}={value} has no effect without '
        f'--{other}=.*{needed}'):
      make(**{name: value, other: wrong})
    config = make(**{name: value, other: needed})
    self.assertEqual(getattr(config, name), value)
    make(**{name: getattr(make(), name), other: wrong})

  def test_flags_of_a_mode_need_the_mode(self):
    config = config_lib.Config()
    config.check_used(['seed'])
    with self.assertRaisesRegex(
        errors.ConfigError, '^--suite=toys has no effect without --mode=suite'):
      config.check_used(['suite'])

  @parameterized.parameters(
      ('unrolls_per_collect', 2, 'replay_capacity', 64),
      ('eval_num_episodes', 20, 'eval_every_frames', 1000),
      ('max_use', 2, 'unrolls_per_collect', 4),
      ('updates_per_collect', 2, 'unrolls_per_collect', 4))
  def test_what_needs_a_number_that_is_not_zero(
      self, name, value, other, needed):
    with self.assertRaisesRegex(
        errors.ConfigError,
        f'^--{name}={value} has no effect without --{other}.$'):
      config_lib.Config(**{name: value})
    config_lib.Config(**{'replay_capacity': 64, name: value, other: needed})

  @parameterized.parameters(
      ('exploration_fraction', .5, 'exploration_decay', .9, 'ddqn'),
      ('initial_temperature', 3., 'exact_temperature', True, 'mpo'),
      ('replay_fraction', .75, 'unrolls_per_collect', 4, 'impala'),
      ('micro_batch_size', 2, 'addon', 'module:function', 'impala'))
  def test_what_has_no_effect_beside_another(
      self, name, value, other, of_other, algorithm):
    used = {'algorithm': algorithm}
    if algorithm == 'impala':
      used |= {'replay_capacity': 64, 'batch_size': 4}
    make = lambda **settings: config_lib.Config(**used, **settings)
    make(**{name: value})
    make(**{other: of_other})
    with self.assertRaisesRegex(
        errors.ConfigError, f'^--{name}={value} has no effect with --{other}.'):
      make(**{name: value, other: of_other})
    saved = config_lib.Config.from_saved(
        {**used, name: value, other: of_other})
    self.assertEqual(getattr(saved, name), getattr(make(), name))

  def test_saved_settings_that_another_version_used_are_ignored(self):
    # Older versions wrote 0 for every algorithm.
    saved = {'algorithm': 'appo', 'burn_in_steps': 0}
    self.assertEqual(config_lib.Config.from_saved(saved),
                     config_lib.Config(algorithm='appo'))
    with self.assertRaisesRegex(errors.ConfigError, 'is not used by'):
      config_lib.Config(algorithm='appo', burn_in_steps=0)

  @parameterized.parameters(
      ('sac', 'target_entropy_ratio', .5, 'discrete'),
      ('sac', 'target_entropy_per_part', -.5, 'continuous'),
      ('mpo', 'num_samples', 5, 'continuous'),
      ('mpo', 'epsilon_scale', .5, 'continuous'),
      ('mpo', 'initial_scale', .5, 'continuous'),
      ('mpo', 'epsilon_bounds', .5, 'continuous'),
      ('mpo', 'initial_scale_multiplier', 5., 'continuous'),
      ('impala', 'squash_actions', False, 'continuous'))
  def test_settings_of_one_kind_of_actions(self, algorithm, name, value, kind):
    config = config_lib.Config(algorithm=algorithm, **{name: value})
    config.check_actions(kind)
    [other] = {'continuous', 'discrete'} - {kind}
    with self.assertRaisesRegex(
        errors.ConfigError,
        f'^--{name}={value} has no effect with {other} actions.$'):
      config.check_actions(other)
    for every in settings_lib.ALGORITHMS:
      config_lib.Config(algorithm=every).check_actions(other)

  def test_instructions_of_ddqn(self):
    config_lib.Config(algorithm='ddqn', use_lstm=True, use_instruction=False)
    with self.assertRaisesRegex(
        errors.ConfigError,
        '^--use_instruction=False has no effect without --use_lstm'):
      config_lib.Config(algorithm='ddqn', use_instruction=False)

  def test_tests_need_not_have_the_workers_of_the_training(self):
    settings = dict(num_actors=4, num_actor_workers=8, ray_address='auto')
    config_lib.Config(mode='test', **settings)
    with self.assertRaisesRegex(errors.ConfigError, 'num_actor_workers=8 must'):
      config_lib.Config(**settings)
    settings = dict(num_actors=2, num_learners=4, batch_size=4,
                    ray_address='auto')
    config_lib.Config(mode='test', **settings)
    with self.assertRaisesRegex(errors.ConfigError, 'num_learners=4 must not'):
      config_lib.Config(**settings)

  @parameterized.parameters(
      (' ALE/Pong-v5', 'ALE/Pong-v5'), ('ALE/Pong-v5 , ALE/Breakout-v5',
                                        'ALE/Pong-v5'),
      ('atari57,ALE/Pong-v5', 'atari57'), (' dmlab30', 'dmlab30'))
  def test_blanks_in_the_level_name(self, level_name, same):
    for algorithm in settings_lib.ALGORITHMS:
      self.assertEqual(*(
          dataclasses.replace(config_lib.Config(
              algorithm=algorithm, level_name=name), level_name='catch')
          for name in (level_name, same)))

  def test_frames_between_checkpoints_are_of_deterministic_runs(self):
    with self.assertRaisesRegex(
        errors.ConfigError, '^--save_checkpoint_frames=5 has no effect without '
        '--deterministic.$'):
      config_lib.Config(save_checkpoint_frames=5)
    config_lib.Config(save_checkpoint_frames=5, deterministic=True,
                      num_actor_groups=1)

  def test_saved_settings_without_effect_are_left_out(self):
    values = {'optimizer': 'adam', 'decay': .95, 'adam_beta1': .8,
              'max_use': 3}
    config = config_lib.Config.from_saved(values)
    self.assertEqual((config.decay, config.adam_beta1, config.max_use),
                     (.99, .8, 0))
    with self.assertRaisesRegex(errors.ConfigError, 'has no effect'):
      config_lib.Config.from_values(values)  # Such as flags.

  def test_every_algorithm_has_a_default(self):
    for algorithm in settings_lib.ALGORITHMS:
      for level_name in ('ALE/Pong-v5', 'catch'):
        config = config_lib.Config(algorithm=algorithm, level_name=level_name)
        for name, field in _FIELDS.items():
          if algorithm in field.metadata['algorithms']:
            self.assertNotEqual(
                (name, getattr(config, name) is None), (name, True)
                if name != 'dynamic_batching' else ())

  def test_what_an_algorithm_does_not_use_cannot_be_set(self):
    others = {bool: lambda x: not x, int: lambda x: (x or 0) + 1,
              float: lambda x: (x or 0) / 2 + .26}
    num_refused = 0
    for name, field in _FIELDS.items():
      owners = field.metadata['algorithms']
      for algorithm in set(settings_lib.ALGORITHMS) - set(owners):
        kind = settings_lib.value_type(field)
        value = (others[kind](field.default) if kind in others
                 else next((c for c in field.metadata['choices']
                            if c != field.default), 'auto'))
        with self.assertRaisesRegex(errors.ConfigError, '^' + re.escape(
            f'--{name}={value} is not used by --algorithm={algorithm}, only by '
            f'{", ".join(owners)}: leave the flag out.') + '$'):
          config_lib.Config(algorithm=algorithm, **{name: value})
        num_refused += 1
        # Its default is no mistake: it is what files of settings have.
        config_lib.Config(algorithm=algorithm, **{name: field.default})
    self.assertGreater(num_refused, 100)

  @parameterized.parameters(
      ('batch_size', 'Default: 2 for impala, 32 for off-policy with LSTM, 32 '
       'for ddqn on Atari, 64 for ddqn, 256 for others.'),
      ('learning_rate_schedule', 'Default: linear for impala, linear for '
       'appo, constant for others.'),
      ('use_lstm', '^The agent has a memory'),
      ('use_lstm', 'Default: true for impala, false for others.$'),
      ('entropy_cost', '^impala, appo: Weight'),
      ('policy_delay', '^td3: The policy'),
      ('exploration_noise', '^ddpg, td3: Standard'),
      ('replay_steps', '^ddqn, ddpg, td3, sac, mpo: Number'),
      ('discounting', '^Discount per'))
  def test_helps(self, name, text):
    self.assertRegex(_FIELDS[name].metadata['text'], text)
    self.assertRegex(flags.FLAGS[name].help.split('>: ')[-1], text)

  @parameterized.parameters(
      (dict(), 8), (dict(unroll_length=1), 8),
      (dict(updates_per_step=.25), 2), (dict(updates_per_step=.01), 1),
      (dict(num_actors=1), 8), (dict(num_actors=3, unroll_length=3), 8),
      (dict(num_actors=1, agent='nature'), 2, _FRAMES),
      (dict(selector='prioritised'), 1),
      (dict(selector='recent_prioritised'), 1), (dict(selector='recent'), 8),
      (dict(updates_per_call=3, selector='prioritised'), 3),
      (dict(updates_per_call=20), 20), (dict(num_actors=16), 8),
      (dict(algorithm='ddqn', num_actors=12), 24),
      (dict(algorithm='ddqn', num_actors=32), 32),
      (dict(algorithm='ddqn', num_actors=12, agent='nature'), 8),
      (dict(algorithm='ddqn', num_actors=12), 8, _FRAMES))
  def test_updates_per_call(self, settings, expected, observation=_VECTOR):
    config = config_lib.Config(
        **{'algorithm': 'sac', 'level_name': 'Pendulum-v1', **settings})
    resolved = config.resolved(observation, on_cpu=True, num_groups=1)
    self.assertEqual(resolved.updates_per_call, expected)
    self.assertEqual(resolved.micro_batch_size, 0)

  @parameterized.parameters(
      ('ddqn', _VECTOR, True, 'all'), ('ddqn', _VECTOR, False, 'none'),
      ('ddqn', _FRAMES, True, 'none'), ('sac', _VECTOR, True, 'policy'))
  def test_xla(self, algorithm, spec, on_cpu, xla):
    config = config_lib.Config(algorithm=algorithm, level_name='catch')
    self.assertEqual(config.resolved(
        spec, on_cpu=on_cpu, num_groups=1).xla, xla)

  def test_xla_of_several_learners(self):
    cluster = dict(ray_address='auto', level_name='catch', agent='mlp',
                   num_actors=8, num_actor_workers=2, num_learners=2)
    for settings, xla in (
        (dict(algorithm='ddqn', updates_per_call=2), 'policy'),
        (dict(algorithm='ddqn', updates_per_call=1), 'all'),
        (dict(algorithm='appo', updates_per_call=2, batch_size=4), 'policy')):
      config = config_lib.Config(**cluster, **settings)
      self.assertEqual(config.resolved(
          _VECTOR, on_cpu=True, num_groups=1).xla, xla)

  def test_saved_and_read(self):
    config = config_lib.Config(
        algorithm='sac', level_name='Pendulum-v1', num_critics=3,
        hidden_sizes='32,16', logdir=self.create_tempdir().full_path).resolved(
            _VECTOR, on_cpu=True, num_groups=1)
    config.save()
    self.assertEqual(config_lib.trained_with(config.logdir), config)
    self.assertEqual(config.layer_sizes, [32, 16])
    # Those of other algorithms are there, too, and open.
    with open(os.path.join(config.logdir, 'settings.json')) as f:
      values = json.load(f)
    self.assertEqual((values['num_critics'], values['policy_delay'],
                      values['temperature_learning_rate']), (3, 2, 3e-4))


class FlagsTest(parameterized.TestCase):

  @parameterized.parameters(
      (['--batch_size=4'], '--batch_size=4 comes before .*, which has '
       '--batch_size=8: give the flag after the file'),
      (['--batch_size', '4'], '--batch_size=4 comes before'),
      (['-batch_size=4'], '-batch_size=4 comes before'),
      (['--use_lstm'], '--use_lstm comes before .*, which has --nouse_lstm'),
      (['--seed=2', '--unroll_length=3'], '--unroll_length=3 comes before .*, '
       'which has --unroll_length=7'))
  def test_a_flag_that_a_later_file_would_undo(self, before, message):
    other = self.create_tempfile(content='--unroll_length=7\n').full_path
    file = self.create_tempfile(content=(
        f'# Comment\n--batch_size=8\n--nouse_lstm\n--flagfile={other}\n'
    )).full_path
    for flagfile in [f'--flagfile={file}'], ['--flagfile', file]:
      with self.assertRaisesRegex(errors.ConfigError, message):
        experiment.parse([*before, *flagfile])
      # After the file, the flag counts. The same value twice does no harm.
      experiment.parse([*flagfile, *before])
      experiment.parse([*before, *flagfile, *before])
      experiment.parse(['--batch_size', '8.0', '--use_lstm=0', *flagfile])
    self.assertEqual(experiment.parse(
        ['--seed=3', f'--flagfile={file}', '--batch_size=4']),
                     config_lib.Config(seed=3, batch_size=4, use_lstm=False,
                                       unroll_length=7))
    # Of two files, the later one counts.
    third = self.create_tempfile(content='--unroll_length=9').full_path
    experiment.parse([f'--flagfile={other}', f'--flagfile={third}'])


  @parameterized.parameters(
      ('--nouse_lstm', 'use_lstm', False),
      ('--use_lstm=false', 'use_lstm', False),
      ('--test_greedy', 'test_greedy', True),
      ('--dynamic_batching', 'dynamic_batching', True),
      ('--nodynamic_batching', 'dynamic_batching', False),
      ('--agent=shallow', 'agent', 'shallow'),
      ('--learning_rate=1', 'learning_rate', 1.0),
      ('--total_environment_frames=7', 'total_environment_frames', 7),
      ('--dataset_path=a b', 'dataset_path', 'a b'))
  def test_values(self, arg, name, value):
    config = experiment.parse([arg])
    self.assertEqual(config, config_lib.Config(**{name: value}))
    self.assertIs(type(getattr(config, name)), type(value))

  def test_a_test_has_the_settings_of_the_training(self):
    logdir = self.create_tempdir().full_path
    trained = config_lib.Config(
        logdir=logdir, level_name='catch', algorithm='ddqn', n_step=3,
        num_actors=7)
    test = ['--mode=test', f'--logdir={logdir}']
    # Without settings, from an older version.
    self.assertEqual(experiment.parse(test),
                     config_lib.Config(mode='test', logdir=logdir))
    trained.save()
    self.assertEqual(experiment.parse(test),
                     dataclasses.replace(trained, mode='test'))
    self.assertEqual(
        experiment.parse([*test, '--num_actors=2', '--test_greedy=0']),
        dataclasses.replace(trained, mode='test', num_actors=2,
                            test_greedy=False))
    # As it was typed, where the directory is now.
    moved = os.path.join(self.create_tempdir().full_path, 'moved')
    os.rename(logdir, moved)
    with mock.patch.dict(os.environ, HOME=os.path.dirname(moved)):
      self.assertEqual(
          experiment.parse(['--mode=test', '--logdir=~/moved']),
          dataclasses.replace(trained, mode='test', logdir=moved))
    # The training itself goes on with the flags that are given.
    self.assertEqual(experiment.parse([f'--logdir={moved}']),
                     config_lib.Config(logdir=moved))
    with self.assertRaisesRegex(errors.ConfigError, 'algorithm=impala'):
      experiment.parse(
          ['--mode=test', f'--logdir={moved}', '--algorithm=impala'])

  @parameterized.parameters(
      (['--flagfile='],), (['-flagfile='],), (['--flagfile', ''],))
  def test_flag_file_without_a_name(self, args):
    with self.assertRaisesRegex(errors.ConfigError, 'must name a file'):
      experiment.parse(args)

  def test_files_of_flags_within_a_file(self):
    inner = self.create_tempfile(content='--batch_size=5\n').full_path
    outer = self.create_tempfile(content='', file_path='outer')
    path = [f'--flagfile={outer.full_path}']
    outer.write_text(f'# 4\n--seed=2\n--flagfile={inner}\n')
    self.assertEqual(experiment.parse(path),
                     config_lib.Config(batch_size=5, seed=2))
    outer.write_text(f'--batch_size=4\n--flagfile={inner}\n')
    with self.assertRaisesRegex(
        errors.ConfigError, '^--batch_size=4 comes before .*batch_size=5'):
      experiment.parse(path)
    outer.write_text('--batch_size=4\n--flagfile=\n')
    with self.assertRaisesRegex(errors.ConfigError, 'must name a file'):
      experiment.parse(path)
    outer.write_text(f'--batch_size=4\n{path[0]}\n')  # Names itself.
    self.assertEqual(experiment.parse(path), config_lib.Config(batch_size=4))

  def test_flag_file_with_a_byte_order_mark(self):
    path = self.create_tempfile(content='\ufeff--batch_size=5\n').full_path
    with self.assertRaisesRegex(errors.ConfigError, 'byte order mark'):
      experiment.parse([f'--flagfile={path}'])

  def test_flag_file(self):
    path = self.create_tempfile(
        content='# A comment.\n--batch_size=5\n--nouse_lstm\n').full_path
    self.assertEqual(
        experiment.parse(['--seed=2', f'--flagfile={path}', '--seed=3']),
        config_lib.Config(batch_size=5, use_lstm=False, seed=3))

  @parameterized.parameters(
      ('--batch_size=2.5', 'batch_size=2.5'), ('--optimizer=typo', 'adam'),
      ('--learning_rate=x', 'learning_rate'),
      ('--no_such_flag=1', 'no_such_flag'),
      ('--use_lstm=maybe', 'use_lstm'))
  def test_refused(self, arg, text):
    with self.assertRaisesRegex(flags.Error, text):
      experiment.parse([arg])

  def test_checks(self):
    with self.assertRaisesRegex(errors.ConfigError, '--batch_size=0 must be'):
      experiment.parse(['--batch_size=0'])
    with self.assertRaisesRegex(errors.ConfigError, 'Unknown arguments: a b.'):
      experiment.parse(['a', '--seed=2', 'b'])

  def test_parsing_leaves_the_flags_of_the_program(self):
    experiment.parse(['--batch_size=9'])
    self.assertIsNone(flags.FLAGS.batch_size)
    self.assertEqual(experiment.config_of(flags.FLAGS).batch_size, 2)

  def test_programs_that_parse_flags_themselves_have_no_recipe(self):
    flag_values = flags.FlagValues()
    command_line.define_flags(flag_values)
    flag_values(['my_main.py', '--recipe=catch'])
    with self.assertRaisesRegex(
        errors.ConfigError, '^--recipe is for the command experiment.py'):
      experiment.config_of(flag_values)

  def test_every_mode_is_a_function(self):
    self.assertEqual(tuple(experiment.MODES),
                     _FIELDS['mode'].metadata['choices'])
    for module, function in experiment.MODES.values():
      self.assertTrue(callable(
          getattr(importlib.import_module(module), function)))


class HelpTest(absltest.TestCase):

  def test_every_setting_has_one(self):
    for name, field in _FIELDS.items():
      self.assertRegex(field.metadata['text'], r'^\S.{8,}\.$', name)
      self.assertEqual(flags.FLAGS[name].help.split('>: ')[-1],
                       field.metadata['text'])

  def test_every_choice_of_a_mode_or_a_network_is_explained(self):
    for name in ('mode', 'xla', 'correction', 'algorithm',
                 'selector',
                 'reward_clipping'):
      for choice in _FIELDS[name].metadata['choices']:
        self.assertRegex(_FIELDS[name].metadata['text'], f'{choice}[:,] ')

  def test_of_actors_counts_environments(self):
    self.assertStartsWith(_FIELDS['num_actors'].metadata['text'],
                          'Number of environments.')

  def _help(self, flag):
    return subprocess.run(
        [sys.executable, 'experiment.py', flag], cwd=_ROOT, text=True,
        stdout=subprocess.PIPE).stdout

  def test_helpfull_shows_sections_in_their_order(self):
    text = self._help('--helpfull')
    headings = re.findall(r'^(\d\d \w+):$', text, re.M)
    self.assertEqual(headings, [
        '00 recipe', '01 run', '02 environment', '03 agent', '04 acting',
        '05 cluster', '06 learner', '07 impala', '08 offpolicy', '09 replay',
        '10 test', '11 suite'])
    shown = re.split(r'^\S.*:$', text.split('flags:', 1)[1], flags=re.M)[2:]
    seen = set()
    for section, part in zip(sections.SECTIONS, shown):
      names = {field.name for field in dataclasses.fields(section)} - seen
      self.assertEqual(
          set(re.findall(r'^  --(?:\[no\])?(\w+):', part, re.M)), names)
      seen |= names
    self.assertEqual(seen, set(_FIELDS))



class SavedTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    self.config = config_lib.Config(
        logdir=self.logdir, batch_size=7, seed=5, agent='mlp')
    self.path = os.path.join(self.logdir, 'settings.json')

  def test_saved_and_read(self):
    self.config.save()
    self.assertCountEqual(
        os.listdir(self.logdir),
        ['settings.json', 'settings-0.json'])
    self.assertEqual(config_lib.trained_with(self.logdir), self.config)
    with open(self.path) as f:
      self.assertEqual(json.load(f), dataclasses.asdict(self.config))

  def test_those_of_each_part_are_kept(self):
    parts = {0: self.config, 30: dataclasses.replace(self.config, batch_size=9)}
    for part, config in parts.items():
      config.save(part)
    self.assertEqual(config_lib.trained_with(self.logdir), parts[30])
    for part, config in parts.items():
      with open(os.path.join(self.logdir, f'settings-{part}.json')) as f:
        self.assertEqual(json.load(f), dataclasses.asdict(config))

  def test_what_is_of_the_old_task_must_be_moved_away(self):
    other = dataclasses.replace(
        self.config, level_name='ALE/Qbert-v5', allow_other_task=True)
    other.check_same_task(self.config)
    for name in 'best', 'replay-1', 'evaluations.csv', 'wandb_run_id.txt':
      os.mkdir(os.path.join(self.logdir, name))
    self.config.check_same_task(self.config)
    with self.assertRaisesRegex(
        errors.ConfigError, '--allow_other_task=True needs best, '
        'evaluations.csv, replay-1, wandb_run_id.txt of '
        f'the old task to be moved away from {self.logdir}'):
      other.check_same_task(self.config)

  def test_a_recipe_that_does_not_fit_a_test(self):
    config_lib.Config.from_recipe('td3_pendulum', logdir=self.logdir).save()
    with self.assertRaisesRegex(
        errors.ConfigError, '--algorithm=td3, .* If the flag is of --recipe='
        'cartpole, leave the recipe out: --mode=test takes the settings'):
      experiment.parse(
          ['--mode=test', f'--logdir={self.logdir}', '--recipe=cartpole'])

  def test_changes_are_said(self):
    other = dataclasses.replace(
        self.config, batch_size=9, use_lstm=False, mode='test', logdir='/x',
        test_num_episodes=3, level_name='ALE/Qbert-v5')
    self.assertEqual(
        flag_texts.changes_said(self.config, other),
        'Changed: --batch_size=9 --use_lstm=false --level_name=ALE/Qbert-v5; '
        'before: --batch_size=7 --use_lstm=true --level_name=ALE/Pong-v5.')
    self.assertEqual(flag_texts.changes_said(self.config, self.config), '')

  def test_a_test_says_its_settings(self):
    same = dataclasses.replace(
        self.config, mode='test', logdir='/x', test_num_episodes=3)
    self.assertEqual(flag_texts.settings_said(self.config, same),
                     'With the settings of the training.')
    other = dataclasses.replace(same, test_greedy=True, max_episode_steps=9)
    self.assertEqual(
        flag_texts.settings_said(self.config, other),
        'Changed: --test_greedy=true --max_episode_steps=9; before: '
        '--test_greedy=false --max_episode_steps=1000000.')
    # A training that is resumed, or exported, plays no such games.
    self.assertEqual(flag_texts.changes_said(self.config, other), '')

  @parameterized.parameters(
      ('num_action_repeats', 2), ('width', 64), ('height', 64),
      ('repeat_action_probability', 0.25), ('full_action_space', True),
      ('life_loss_ends_episode', False), ('max_noops', 1),
      ('fire_on_reset', True), ('max_episode_frames', 1000))
  def test_another_task_is_refused(self, name, value):
    other = dataclasses.replace(self.config, **{name: value})
    before, now = (
        str(v).lower() if isinstance(v, bool) else str(v)
        for v in (getattr(self.config, name), getattr(other, name)))
    with self.assertRaisesRegex(errors.ConfigError, (
        f'--logdir={self.logdir} was trained with --{name}={before}, not with '
        f'--{name}={now}: .* --allow_other_task')):
      other.check_same_task(self.config)
    dataclasses.replace(
        other, allow_other_task=True).check_same_task(self.config)
    dataclasses.replace(
        self.config, batch_size=9).check_same_task(self.config)

  def test_of_another_version(self):
    values = dataclasses.asdict(self.config)
    del values['agent'], values['min_policy_lag'], values['batch_size']
    values['gone'] = [1]
    with open(self.path, 'w') as f:
      json.dump(values, f)
    self.assertEqual(
        config_lib.trained_with(self.logdir),
        config_lib.Config(logdir=self.logdir, seed=5))

  @parameterized.parameters(
      ('', 'Expecting value'), ('{"seed": 5', 'Expecting'),
      ('[]', 'must be a dictionary'), ('5', 'dictionary'),
      ('null', 'dictionary'), ('"seed"', 'dictionary'),
      ('{"seed": "5"}', '--seed=5 must be of type int'),
      ('{"level_name": {"a": 1}}', 'must be of type str'),
      ('{"level_name": ["a"]}', 'not the list'),
      ('{"hidden_sizes": "²"}', 'positive numbers'),
      ('[' * 100_000, 'too many brackets'),
      ('{"seed": -1}', '--seed=-1'), ('\udcff', 'utf-8'))
  def test_damaged(self, text, message):
    with open(self.path, 'w', encoding='utf-8', errors='surrogateescape') as f:
      f.write(text)
    with self.assertRaisesRegex(
        errors.ConfigError, f'^{self.path}, the settings .* cannot be used '
        rf'\(.*{message}.*(?<!\.)\)\. .* or remove this file'):
      config_lib.trained_with(self.logdir)

  def test_of_no_run(self):
    self.assertIsNone(config_lib.trained_with(self.logdir))
    self.assertIsNone(config_lib.trained_with(
        self.create_tempfile().full_path))


class SeedsTest(absltest.TestCase):

  def test_those_of_earlier_versions(self):
    config = config_lib.Config(seed=3)
    self.assertEqual(
        [config.derive_seed(role, 2, 1) for role in (
            'environment', 'learner', 'actor', 'test', 'replay')],
        [816352175, 2110316598, 355842188, 143819201, 6976088])

  def test_all_differ(self):
    seeds = [
        config_lib.Config(seed=seed).derive_seed(role, index, part)
        for seed in (0, 1) for role in ('environment', 'learner', 'actor')
        for index in (0, 1, 2) for part in (0, 1)]
    self.assertLen(set(seeds), len(seeds))
    self.assertBetween(min(seeds), 0, 2**31 - 1)
    self.assertBetween(max(seeds), 0, 2**31 - 1)


class LearnersTest(parameterized.TestCase):

  def test_a_part_of_a_replay_of_steps(self):
    config = config_lib.Config(
        algorithm='sac', ray_address='auto', num_learners=3, num_actors=7,
        num_actor_workers=4, batch_size=96, replay_steps=9000,
        min_replay_steps=3000, updates_per_step=.35, selector='recent',
        recent_min_steps=600)
    part = config.of_learner(4)
    changed = {
        name: (value, getattr(part, name))
        for name, value in dataclasses.asdict(config).items()
        if value != getattr(part, name)}
    self.assertEqual(changed, {
        'num_learners': (3, 1), 'num_actors': (7, 4),
        'num_actor_workers': (4, 0), 'batch_size': (96, 32),
        'replay_steps': (9000, 3000), 'min_replay_steps': (3000, 1000),
        'updates_per_step': (.35, 1.05), 'recent_min_steps': (600, 200)})

  def test_a_part_of_a_replay_of_unrolls(self):
    config = config_lib.Config(
        ray_address='auto', num_learners=2, batch_size=8, replay_capacity=100,
        unrolls_per_collect=12)
    part = config.of_learner(2)
    self.assertEqual(
        (part.batch_size, part.replay_capacity, part.unrolls_per_collect),
        (4, 50, 6))

  def test_one_learner_has_all(self):
    config = config_lib.Config(algorithm='ddqn', updates_per_step=.1)
    self.assertEqual(config.of_learner(config.num_actors), config)

  @parameterized.parameters(
      ({'batch_size': 7}, 'must divide --batch_size=7'),
      ({'batch_size': 6, 'replay_capacity': 60},
       'must leave the same number of fresh unrolls'),
      ({'replay_capacity': 61}, 'must divide --replay_capacity=61'),
      ({'algorithm': 'mpo', 'exact_temperature': True},
       'cannot be used with --exact_temperature'),
      # One learner has five environments.
      ({'algorithm': 'sac', 'num_actors': 9, 'num_actor_workers': 3,
        'replay_steps': 68}, 'Each of --num_learners=2 learners: '
       '--replay_steps=34 must be at least 35, for --num_actors=5'))
  def test_what_cannot_be_divided(self, settings, message):
    with self.assertRaisesRegex(errors.ConfigError, message):
      config_lib.Config(**{
          'level_name': 'catch', 'ray_address': 'auto', 'num_learners': 2,
          'batch_size': 8, **settings})


class ResolvedTest(parameterized.TestCase):

  @parameterized.parameters(
      (_FRAMES, 'deep'),
      ({'frame': _FRAMES, 'instruction': _WORDS}, 'deep'),
      ({'frame': _FRAMES}, 'deep'),
      (_VECTOR, 'mlp'),
      ({'frame': _VECTOR}, 'mlp'),
      ({'position': _FRAMES}, 'deep'),
      ({'position': _VECTOR, 'depth': _FRAMES}, 'deep'),
      (_FRAMES._replace(shape=(10, 5)), 'mlp'),
      (_WORDS, 'mlp'))
  def test_agent(self, observation_spec, agent):
    resolve = lambda config: config.resolved(
        observation_spec, on_cpu=True, num_groups=2).agent
    self.assertEqual(resolve(config_lib.Config()), agent)
    for given in ('deep', 'shallow', 'nature', 'mlp'):
      self.assertEqual(resolve(config_lib.Config(agent=given)), given)

  @parameterized.parameters(
      (_FRAMES, 'nature'), ({'position': _VECTOR, 'depth': _FRAMES}, 'nature'),
      (_FRAMES._replace(shape=(4, 84, 84)), 'nature'),
      (_FRAMES._replace(shape=(36, 40, 3)), 'nature'),
      (_FRAMES._replace(shape=(60, 20, 50)), 'deep'),
      (_FRAMES._replace(shape=(35, 84, 3)), 'deep'),
      (_FRAMES._replace(shape=(4, 84, 35)), 'deep'),
      ({'frame': _FRAMES, 'map': _FRAMES._replace(shape=(8, 8, 3))}, 'deep'),
      (_VECTOR, 'mlp'))
  def test_agent_of_the_off_policy_algorithms(self, observation_spec, agent):
    for algorithm in ('ddqn', 'sac'):
      config = config_lib.Config(algorithm=algorithm)
      resolved = config.resolved(observation_spec, on_cpu=True, num_groups=2)
      self.assertEqual(resolved.agent, agent)

  @parameterized.parameters(
      ('auto', _VECTOR, True, 'policy'), ('auto', _VECTOR, False, 'none'),
      ('auto', _FRAMES, True, 'none'), ('auto', _FRAMES, False, 'none'),
      ('none', _VECTOR, True, 'none'), ('policy', _FRAMES, False, 'policy'),
      ('all', _FRAMES, True, 'all'))
  def test_xla(self, xla, observation_spec, on_cpu, expected):
    self.assertEqual(
        config_lib.Config(xla=xla).resolved(
            observation_spec, on_cpu=on_cpu, num_groups=2).xla, expected)

  @parameterized.parameters((5000, 1, 'policy'), (4999, 1, 'none'),
                            (10_000, 2, 'policy'), (9999, 2, 'none'))
  def test_a_short_training_is_not_worth_a_compilation(
      self, frames, num_action_repeats, expected):
    self.assertEqual(config_lib.Config(
        num_actors=2, total_environment_frames=frames,
        num_action_repeats=num_action_repeats).resolved(
            _VECTOR, on_cpu=True, num_groups=2).xla, expected)

  def test_a_deterministic_training_does_not_depend_on_its_length(self):
    self.assertEqual(config_lib.Config(
        deterministic=True, num_actor_groups=1, num_action_repeats=1,
        total_environment_frames=10).resolved(
            _VECTOR, on_cpu=True, num_groups=1).xla, 'policy')

  def test_xla_of_the_shallow_network(self):
    self.assertEqual(config_lib.Config(agent='shallow').resolved(
        _FRAMES, on_cpu=True, num_groups=2).xla, 'none')

  @parameterized.parameters(
      (4, 4, None, True), (15, 4, None, True), (16, 4, None, False),
      (252, 63, None, False), (256, 64, None, True), (256, 64, False, False),
      (3, 3, None, False), (2, 2, True, True), (4, 4, False, False))
  def test_dynamic_batching(self, num_actors, num_groups, given, expected):
    config = config_lib.Config(num_actors=num_actors, dynamic_batching=given)
    self.assertIs(
        config.resolved(_VECTOR, on_cpu=True, num_groups=num_groups
                       ).dynamic_batching, expected)

  @parameterized.parameters(
      (dict(agent='deep', batch_size=32, unroll_length=20), True, 4),
      (dict(agent='auto', batch_size=32, unroll_length=20), True, 4),
      (dict(agent='deep', batch_size=32, unroll_length=100), True, 4),
      (dict(agent='deep', batch_size=32, unroll_length=20, use_lstm=False),
       True, 2),
      (dict(agent='deep', batch_size=32, unroll_length=100, use_lstm=False),
       True, 2),
      (dict(agent='deep', batch_size=32, unroll_length=5, use_lstm=False),
       True, 7),
      (dict(agent='deep', batch_size=32, unroll_length=5), True, 14),
      (dict(agent='deep', batch_size=3, unroll_length=20), True, 3),
      (dict(agent='deep', batch_size=32, unroll_length=20), False, 32),
      (dict(agent='shallow', batch_size=32, unroll_length=20), True, 32),
      (dict(agent='shallow', batch_size=32, unroll_length=20, xla='all'), True,
       4),
      (dict(agent='nature', batch_size=32, unroll_length=20, xla='all'), True,
       4),
      (dict(agent='mlp', batch_size=32, unroll_length=20, xla='all'), True, 32),
      (dict(agent='deep', batch_size=32, micro_batch_size=5), True, 5),
      (dict(agent='deep', batch_size=32, addon='module:function'), True, 0))
  def test_micro_batch_size(self, settings, on_cpu, expected):
    self.assertEqual(
        config_lib.Config(**settings).resolved(
            _FRAMES, on_cpu=on_cpu, num_groups=2).micro_batch_size, expected)

  def test_nothing_is_left_open_and_nothing_else_changes(self):
    config = config_lib.Config(num_actors=8, batch_size=9)
    resolved = config.resolved(_FRAMES, on_cpu=True, num_groups=2)
    self.assertEqual(resolved, dataclasses.replace(
        config, agent='deep', xla='none', dynamic_batching=False,
        micro_batch_size=4))
    is_open = [name for name, value in dataclasses.asdict(resolved).items()
               if value == 'auto']
    self.assertCountEqual(is_open, ['save_replay', 'pack', 'export_format'])
    self.assertEqual(
        resolved.resolved(_VECTOR, on_cpu=False, num_groups=8), resolved)

  def test_central_inference_shares_the_policy(self):
    config = config_lib.Config(
        num_actors=1000, ray_address='local', inference='central')
    self.assertTrue(config.resolved(
        _FRAMES, on_cpu=False, num_groups=2).dynamic_batching)
    for name, value in (('dynamic_batching', False), ('pack', 'none')):
      with self.assertRaisesRegex(errors.ConfigError, f'--{name}={value} '
                                  'cannot be .* with --inference=central'):
        config_lib.Config(**{
            'ray_address': 'local', 'inference': 'central', name: value})


# See `mutations.py`.
MUTATIONS = (
    dict(file='experiment',
         catches='test_programs_that_parse_flags_themselves_have_no_recipe',
         rows=(
        ('a recipe is ignored', "if flag_values['recipe'].present:  # Not",
         'if False:  # Not'),
    )),
    dict(file='settings/flag_texts', catches='test_a_test_says_its_settings',
         rows=(
        ('a greedy test has the settings of the training',
         '(training, now, OF_GAMES)', '(training, now)'),
    )),
    dict(file='settings/sections',
         catches='test_flags_of_a_mode_need_the_mode', rows=(
        ('a suite without its mode is not refused', "needs.name != 'mode' or",
         "needs.name != 'model' or"),
    )),
    dict(file='settings/config', catches='test_xla_of_several_learners', rows=(
        ('loops of several learners compiled', 'self.num_learners == 1)',
         'True)'),
    )),
    dict(file='settings/config', catches='test_all_differ', rows=(
        ('part not in the seed', 'index, part]', 'index, 0]'),
        ('role not in the seed', '[self.seed, _SEED_ROLES.index(role), index',
         '[self.seed, 0, index'),
        ('index not in the seed', '_SEED_ROLES.index(role), index,',
         '_SEED_ROLES.index(role), 0,'),
    )),
    dict(file='settings/config',
         catches='test_saved_settings_without_effect_are_left_out', rows=(
        ('saved settings without effect are errors',
         'if k not in without_effect', 'if True'),
    )),
    dict(file='settings/config',
         catches='test_saved_settings_without_effect_in_deterministic_runs',
         rows=(
        ('saved settings of deterministic runs are errors',
         "without_effect.add('save_replay')", 'pass'),
    )),
    dict(file='settings/config', catches='test_updates_per_call', rows=(
        ('several updates per call with priorities',
         'if self.is_prioritised or self.use_lstm:\n', 'if self.use_lstm:\n'),
        ('many updates per call for all networks',
         "is_small and self.algorithm == 'ddqn'",
         "self.algorithm == 'ddqn'"),
        ('small networks learn after each step of one environment',
         '_MIN_STEPS_OF_SMALL_UPDATES if is_small else 0', '0'),
        ('all networks wait for the updates of eight steps',
         '_MIN_STEPS_OF_SMALL_UPDATES if is_small else 0',
         '_MIN_STEPS_OF_SMALL_UPDATES'),
        ('automatic networks do not count', 'resolved._updates_per_call() if',
         'self._updates_per_call() if'),
    )),
    dict(file='settings/declare',
         catches='test_what_has_no_effect_beside_another', rows=(
        ('settings beside what replaces them',
         'bool(getattr(self, other, False))', 'False'),
    )),
    dict(file='settings/declare',
         catches='test_settings_of_one_kind_of_actions', rows=(
        ('settings of other actions', "not in ('', kind)", 'is None'),
    )),
    dict(file='settings/declare', catches='test_reference', rows=(
        ('Atari defaults for IMPALA, too',
         "*['Atari'][:self.algorithm != 'impala'],", "'Atari',"),
    )),
    dict(file='settings/declare',
         catches='test_a_test_has_the_settings_of_the_training', rows=(
        ('settings of others are ignored', 'elif value != field.default:',
         'elif False:'),
    )),
    dict(file='settings/declare',
         catches='test_saved_settings_without_effect_are_left_out', rows=(
        ('settings without effect pass',
         'field.name, unmet, f', 'field.name, False, f'),
    )),
    dict(file='settings/algorithm_settings',
         catches='test_targets_make_small_moves_or_seldom_ones', rows=(
        ('targets hardly move',
         "object.__setattr__(self, 'target_update_period', 1)", 'pass'),
        ('targets are copied in every update',
         'period is not None and period > 1:', 'period is not None:'),
    )),
    dict(file='settings/environment_settings', catches='test_groups', rows=(
        ('Lab has few groups', "f'{self.algorithm} on DeepMind Lab')", "'')"),
    )),
    dict(file='settings/lab_levels',
         catches='test_levels_that_no_seed_repeats', rows=(
        ('suites repeat', 'if name == SUITE or name.removeprefix(',
         'if name.removeprefix('),
    )),
    dict(file='settings/lab_levels',
         catches='test_actions_are_repeated_where_the_levels_expect_it', rows=(
        ('modules of users are levels of DeepMind Lab',
         "':' not in level_name and", 'True and'),
    )),
)


if __name__ == '__main__':
  absltest.main()
