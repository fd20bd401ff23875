# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of --episode_metrics, from real processes of environments to the log.

The last `info` of `Informing` follows from the length of the episode.
"""

import contextlib
import io
import math
import os
import subprocess
import sys
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import fake_environments
import metrics_test
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.distributed import environment_worker
from scalable_agent.environments import gymnasium_env
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import structs
from scalable_agent.modes import test
from scalable_agent.processes import shared_arrays
from scalable_agent.processes import user_code
from scalable_agent.processes import workers
from scalable_agent.runs import evaluation
from scalable_agent.runs import measuring
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib

from examples import vector_simulator

_LEVEL = 'fake_environments:fake/Informing-v0'
_NAMES = ('is_success', 'half', 'length', 'odd')


def _expected(length):
  info = fake_environments.Informing.last_info(length)
  return {name: float(np.asarray(info.get(name, np.nan)).item())
          for name in _NAMES}


def _settings(names='is_success, half,length,odd', **settings):
  return environments.EnvironmentSettings(
      num_action_repeats=1, episode_metrics=names, **settings)


class StepsTest(parameterized.TestCase):

  def _check(self, outputs, num_envs):
    """Checks the metrics of the ends of episodes; returns their number."""
    num_ends = 0
    for output in outputs:
      self.assertEqual(set(output.info.metrics), set(_NAMES))
      for name, array in output.info.metrics.items():
        self.assertEqual((array.shape, array.dtype), ((num_envs,), np.float32))
        if not output.info.episode_end.any():
          self.assertTrue(np.isnan(array).all(), name)
      for index in np.flatnonzero(output.info.episode_end):
        num_ends += 1
        np.testing.assert_equal(
            episodes_lib.metrics(output.info, int(index)),
            _expected(int(output.info.episode_step[index])))
    return num_ends

  @parameterized.parameters(1, 2)
  def test_of_processes(self, environments_per_process):
    with environments.make_vec(
        [_LEVEL] * 3, [1, 2, 3],
        _settings(environments_per_process=environments_per_process)) as env:
      outputs = (env.initial() if step == 0 else env.step(
          np.zeros(3, np.int32)) for step in range(14))
      self.assertEqual(self._check(outputs, 3), 3 * 7)

  def test_of_repeated_actions(self):
    settings = environments.EnvironmentSettings(
        num_action_repeats=2, episode_metrics='length')
    with environments.make_vec([_LEVEL], [1], settings) as env:
      env.initial()
      infos = (env.step(np.zeros(1, np.int32)).info for _ in range(4))
      # Of episodes of 1, 2 and 3 frames, the last one has two steps.
      self.assertEqual([episodes_lib.metrics(info, 0) for info in infos
                        if info.episode_end[0]],
                       [{'length': 1.}, {'length': 2.}, {'length': 3.}])

  def test_of_environments_elsewhere(self):
    worker = environment_worker.EnvironmentWorker(
        _config(num_actor_groups=1), 0, interface.Share(range(2)))
    worker.open()
    self.addCleanup(worker._groups[0].close)
    vector = environments.FlowEnvironment(
        _Elsewhere(worker), [_LEVEL] * 2, metric_names=_NAMES)
    outputs = (vector.initial() if step == 0 else vector.step(
        np.zeros(2, np.int32)) for step in range(8))
    self.assertEqual(self._check(outputs, 2), 2 * 4)

  def test_without_names_there_is_no_array(self):
    spec = structs.ArraySpec((), np.dtype(np.float32))
    self.assertEmpty(shared_arrays.open_exchange(
        shared_arrays.allocate(2, {}, spec)).metrics)
    with environments.make_vec([_LEVEL], [1], _settings('')) as env:
      self.assertEmpty(env.initial().info.metrics)
      output = env.step(np.zeros(1, np.int32))
      self.assertTrue(output.info.episode_end[0])
      self.assertEmpty(output.info.metrics)

  def test_a_cut_game_has_none(self):
    # In the step that cuts a game of 3 steps, a game of 2 steps ends.
    with environments.make_vec(
        ['fake/InformingFromTwo-v0', 'fake/InformingFromThree-v0'], [1, 2],
        _settings()) as env, contextlib.redirect_stdout(io.StringIO()):
      games = evaluation.play(
          env, _Zeros(), 2, config_lib.Config(max_episode_steps=2))
    self.assertEqual((games.returns, games.cut), ([[2.], [2.]], [2]))
    np.testing.assert_equal(games.metrics, [_expected(2)])

  def test_a_text_is_an_error(self):
    with environments.make_vec([_LEVEL], [1], _settings('text')) as env:
      env.initial()
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError,
          r'environment 0 .*--episode_metrics: text in the info of `step` must '
          "be one number or boolean, but is 'a'"):
        env.step(np.zeros(1, np.int32))

  @parameterized.parameters(
      'ALE/Pong-v5', 'rooms_watermaze', 'envpool:Pong-v5', 'my_simulator')
  def test_levels_without_info_are_refused(self, level):
    self.enter_context(mock.patch.object(
        environments, 'FAMILIES', environments.FAMILIES))
    vector_simulator.register()
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, '^--episode_metrics=is_success,: no info '
        rf'of {level} is read. Set --episode_metrics= \(empty\).$'):
      environments.make_vec([level], [1], environments.EnvironmentSettings(
          episode_metrics='is_success,'))

  def test_a_family_of_the_caller_in_processes(self):
    levels = types.SimpleNamespace(
        is_level=lambda name: name == 'mine',
        look_up=lambda name, settings: fake_environments.Informing)
    family = environments.Family(
        levels, 'my levels', gymnasium_env.GymnasiumVector)
    with mock.patch.object(
        environments, 'FAMILIES', (family, *environments.FAMILIES)
    ), environments.make_vec(['mine'], [1], _settings()) as env:
      outputs = (env.initial() if step == 0 else env.step(
          np.zeros(1, np.int32)) for step in range(8))
      self.assertEqual(self._check(outputs, 1), 4)


class _Elsewhere:
  """The only group of a worker, as a vector."""

  def __init__(self, worker):
    self._worker, self.spec = worker, worker._groups[0].spec

  def initial(self):
    return self._worker.initial(0)

  def step(self, actions):
    return self._worker.step(0, actions)


class _Zeros:
  """A policy."""
  output_spec = structs.AgentOutput(
      structs.ArraySpec((), np.dtype(np.int32)), None, None)

  def initial_state(self, num_envs):
    return ()

  def step(self, last_action, env_output, state):
    return structs.AgentOutput(last_action, (), ()), state


class NumbersTest(parameterized.TestCase):

  @parameterized.parameters(
      True, np.bool_(True), 1, np.int64(1), 1., np.float32(1), np.array([[1]]))
  def test_numbers(self, value):
    number = user_code.number_of_info({'a': value}, 'a')
    self.assertEqual((type(number), number), (float, 1.))

  @parameterized.parameters(
      '1', [[1, 2]], ({},), 1j, ((),), [[[1, 2], [3]]])
  def test_other_values(self, value):
    with self.assertRaisesRegex(ValueError, '--episode_metrics: a in the info'):
      user_code.number_of_info({'a': value}, 'a')

  def test_a_missing_name_is_said_once(self):
    with self.assertWarnsRegex(
        UserWarning, 'missing_here is missing, .* which has a, 2[.]'):
      self.assertTrue(math.isnan(user_code.number_of_info(
          {'a': 1, 2: 2}, 'missing_here')))
    with self.assertNoLogs(), contextlib.redirect_stderr(
        io.StringIO()) as said:
      self.assertTrue(math.isnan(user_code.number_of_info({}, 'missing_here')))
    self.assertEmpty(said.getvalue())

  def test_a_missing_name_is_said_after_a_vector_without_names(self):
    code = f"""
import numpy as np
from scalable_agent import environments
for names in ('', 'missing', 'missing'):
  with environments.make_vec(
      ['{_LEVEL}'], [1], environments.EnvironmentSettings(
          num_action_repeats=1, episode_metrics=names)) as env:
    env.initial()
    env.step(np.zeros(1, np.int32))
"""
    said = subprocess.run(
        [sys.executable, '-c', code], check=True, text=True,
        stderr=subprocess.PIPE,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}).stderr
    self.assertEqual(said.count('UserWarning: --episode_metrics: missing is '),
                     1, said)

  def test_the_check_before_a_test_reads_no_info(self):
    levels = ['fake/InformingFromTwo-v0', 'fake/InformingFromThree-v0']
    config = _config(mode='test', logdir=self.create_tempdir().full_path,
                     level_name=','.join(levels))
    with mock.patch.object(
        test.checkpointing, 'holds_agent', return_value=True
    ), mock.patch.object(
        test.loading, 'make_environments', side_effect=InterruptedError
    ), mock.patch.object(workers, '_warned', set()) as warned:
      with contextlib.redirect_stdout(io.StringIO()):
        with self.assertRaises(InterruptedError):
          test.test(config)
    self.assertEqual(warned, {(name, ()) for name in levels})

  def test_the_measurement_of_a_training_reads_no_info(self):
    for algorithm in 'impala', 'appo', 'sac':
      config = config_lib.Config(
          algorithm=algorithm, num_actors=0, episode_metrics='length',
          **{'unrolls_per_collect': 64} if algorithm == 'appo' else {})
      self.assertEqual(measuring._trial_settings(
          config, config.logdir, 4, 1).metric_names, ())

  def test_levels_without_info_are_refused_before_the_measurement(self):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, level_name='ALE/Pong-v5',
        num_actors=0, episode_metrics='length')
    with mock.patch.object(measuring, 'measure', side_effect=AssertionError):
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError, 'no info of ALE/Pong-v5 is read'):
        measuring.chosen(config, mock.Mock())

  def test_none_is_missing(self):
    with self.assertWarnsRegex(UserWarning, 'unknown is missing, or None, in'):
      self.assertTrue(math.isnan(user_code.number_of_info(
          {'unknown': None}, 'unknown')))

  def test_means_are_of_games_with_a_value(self):
    nan = float('nan')
    means = episodes_lib.mean_metrics([
        {'a': nan, 'b': 3., 'c': nan}, {'a': 2., 'b': nan, 'c': nan},
        {'a': 1., 'b': nan, 'c': nan}])
    # In the order of the names.
    self.assertEqual(list(means.items()), [('a', 1.5), ('b', 3.)])
    self.assertEqual(episodes_lib.in_words({'a': 1.5, 'b': 1 / 3}),
                     ', a 1.5, b 0.3333')
    self.assertEqual(episodes_lib.in_words({}), '')

  def test_names(self):
    self.assertEqual(_settings(' b,a,,b').metric_names, ('b', 'a'))


def _config(**settings):
  return config_lib.Config(**{
      'level_name': _LEVEL, 'num_actors': 2, 'batch_size': 2,
      'unroll_length': 5, 'use_lstm': False, 'agent': 'mlp', 'xla': 'none',
      'num_action_repeats': 1, 'total_environment_frames': 200,
      'episode_metrics': ','.join(_NAMES), 'progress_secs': .001,
      'save_summaries_secs': .001, 'environments_per_process': 1, **settings})


class RunsTest(parameterized.TestCase):

  def _train(self, logdir, **settings):
    """Trains; returns the episodes and the output."""
    episodes = []
    with contextlib.redirect_stdout(io.StringIO()) as output:
      training.train(_config(logdir=logdir, **settings), [
          lambda update: episodes.extend(update.episodes)])
    return episodes, output.getvalue()

  @pytest.mark.slow
  def test_a_training_its_resumed_part_and_a_test(self):
    logdir = self.create_tempdir().full_path
    episodes, output = self._train(
        logdir, eval_every_frames=200, eval_num_episodes=6)
    for episode in episodes:
      np.testing.assert_equal(
          dict(episode.metrics), _expected(episode.num_agent_steps))
    recent = [_expected(e.num_agent_steps) for e in episodes[-100:]]
    means = episodes_lib.mean_metrics(recent)
    lines = [line for line in output.splitlines() if ' of 200 frames' in line]
    self.assertIn(f'episodes){episodes_lib.in_words(means)}, policy lag',
                  lines[-1])
    # Each of two environments plays games of 1, 2 and 3 steps.
    self.assertRegex(output, 'Evaluation at 200 frames: .* over 6 episodes, '
                     'is_success 0.3333, half 1, length 2, odd 1')
    scalars = {name: value for (name, step), value
               in metrics_test._scalars(logdir).items() if step == 200}
    for name in _NAMES:
      self.assertAlmostEqual(scalars[f'metrics/{name}'], means[name], places=5)
    self.assertAlmostEqual(scalars['evaluation/is_success'], 1 / 3, places=5)
    self.assertAlmostEqual(scalars['TestReward'], 2)

    again, output = self._train(logdir, total_environment_frames=300)
    means = episodes_lib.mean_metrics(
        _expected(e.num_agent_steps) for e in again)
    self.assertIn(f'episodes){episodes_lib.in_words(means)}, policy lag',
                  output)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      test.test(_config(logdir=logdir, mode='test', test_num_episodes=6))
    self.assertRegex(output.getvalue(), 'over 6 episodes at 300 frames, '
                     'is_success 0.3333, half 1, length 2, odd 1\n')

  @parameterized.parameters(
      dict(deterministic=True, num_actor_groups=1), dict(replay_capacity=4),
      dict(algorithm='ddqn', min_replay_steps=20, replay_steps=100),
      dict(algorithm='appo', unrolls_per_collect=2))
  @pytest.mark.storm
  def test_of_other_roads(self, **settings):
    episodes, output = self._train(
        self.create_tempdir().full_path, total_environment_frames=60,
        **settings)
    self.assertNotEmpty(episodes)
    for episode in episodes:
      np.testing.assert_equal(
          dict(episode.metrics), _expected(episode.num_agent_steps))
    self.assertIn(', is_success 0.', output)


MUTATIONS = (
    dict(file='processes/workers', catches='test_of_processes', rows=(
        ('the info of every step',
         'user_code.number_of_info(info, name)',
         'user_code.number_of_info(env.reset()[1], name)'),
    )),
    dict(file='environments/base', catches='test_of_processes', rows=(
        ('metrics of other steps', '      metrics = result.metrics\n',
         ''),
    )),
    dict(file='distributed/environment_worker',
         catches='test_of_environments_elsewhere', rows=(
        ('metrics stay in the worker', 'output.info.episode_end.any()',
         'False'),
    )),
    dict(file='experience/episodes',
         catches='test_means_are_of_games_with_a_value', rows=(
        ('a missing metric counts', '[] if math.isnan(value) else [value]',
         '[value]'),
    )),
    dict(file='processes/user_code',
         catches='test_a_missing_name_is_said_once', rows=(
        ('a missing name is said again', '      _missing.add(name)\n', ''),
    )),
    dict(file='processes/workers', catches=(
        'test_a_missing_name_is_said_after_a_vector_without_names'), rows=(
        ('warnings of names count by level', 'tuple(metric_names)', '()'),
    )),
    dict(file='modes/test',
         catches='test_the_check_before_a_test_reads_no_info', rows=(
        ('the check hides a missing name', ", episode_metrics='')", ')'),
    )),
    dict(file='runs/measuring',
         catches='test_the_measurement_of_a_training_reads_no_info', rows=(
        ('the measurement hides a missing name', "{'episode_metrics': ''}",
         '{}'),
    )),
    dict(file='runs/measuring', catches=(
        'test_levels_without_info_are_refused_before_the_measurement'), rows=(
        ('the measurement comes before an error',
         '  environments.check_names(\n'
         '      levels.level_names(config.level_name, config.is_test), config)'
         '\n', ''),
    )),
    dict(file='processes/user_code', catches='test_none_is_missing', rows=(
        ('None is an error', '  if value is None:', '  if name not in info:'),
    )),
    dict(file='processes/user_code', catches='test_other_values0', rows=(
        ('texts are numbers', "array.dtype.kind not in 'biuf'", 'False'),
    )),
    dict(file='processes/user_code', catches='test_other_values1', rows=(
        ('several numbers', 'array.size != 1 or', ''),
    )),
    dict(file='processes/user_code', catches='test_other_values5', rows=(
        ('an error of NumPy', 'array = np.empty(0)', 'raise'),
    )),
    dict(file='environments/__init__',
         catches='test_levels_without_info_are_refused', rows=(
        ('families without info take the flag',
         'if settings.metric_names and', 'if False and'),
    )),
    dict(file='environments/__init__',
         catches='test_a_family_of_the_caller_in_processes', rows=(
        ('families of programs have no info',
         'make_vector is not gymnasium_env.GymnasiumVector:',
         'levels not in _OTHERS:'),
    )),
    dict(file='runs/summaries',
         catches='test_a_training_its_resumed_part_and_a_test', rows=(
        ('metrics are of the training', "_WHOLE = ('metrics', 'time')",
         "_WHOLE = ('time',)"),
    )),
    dict(file='runs/evaluation', catches='test_a_cut_game_has_none', rows=(
        ('a cut game counts',
         'if not is_cut[index]:\n          metrics.append(',
         'metrics.append(episodes.metrics(info, int(index)))\n'
         '        if not is_cut[index]:\n          len('),
    )),
)

if __name__ == '__main__':
  absltest.main()
