# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Types the commands in the README of DeepMind's program.

DeepMind Lab is the fake one. The flags `_SMALL` make runs small.
"""

import contextlib
import io
import os
import re
import socket
import subprocess
import sys
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
import pytest
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.distributed import hosts
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import lab_levels

_TESTS = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_TESTS)
_FAKE = os.path.join(_TESTS, 'fake_deepmind_lab')
_SMALL = ('--width=12', '--height=8', '--unroll_length=10')
_LEARNER = (
    '--level_name=dmlab30', '--batch_size=32',
    '--entropy_cost=0.0033391318945337044',
    '--learning_rate=0.00031866995608948655',
    '--total_environment_frames=10000000000',
    '--reward_clipping=soft_asymmetric')


class AsTypedTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    directory = self.create_tempdir()
    directory.create_file('0001.png')
    self.dataset = f'--dataset_path={directory.full_path}'

  def _start(self, *args):
    path = [_FAKE, *filter(None, [os.environ.get('PYTHONPATH')])]
    process = subprocess.Popen(
        [sys.executable, 'experiment.py', f'--logdir={self.logdir}', *args],
        cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {'PYTHONPATH': os.pathsep.join(path)})
    self.addCleanup(process.kill)
    return process

  def _check(self, process):
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    return output

  def _check_test(self, num_episodes, *args):
    output = self._check(self._start(
        '--mode=test', '--level_name=dmlab30', self.dataset,
        f'--test_num_episodes={num_episodes}', '--log_episodes', *args))
    tested = re.findall(r'^Testing level: (\S+)\nMean episode return: (\S+)$',
                        output, re.M)
    self.assertEqual([level for level, _ in tested],
                     [*lab_levels.DMLAB30_LEVELS.values()])
    self.assertRegex(output, r'(?m)^No cap\.: (\S+) Cap 100: (\S+)$')

  @pytest.mark.storm
  def test_one_machine(self):
    output = self._check(self._start(
        '--num_actors=2', '--batch_size=2', '--log_episodes', *_SMALL,
        '--total_environment_frames=4000'))
    self.assertStartsWith(
        output, 'scalable_agent: impala on explore_goal_locations_small (the '
        'default level with DeepMind Lab), in ')
    returns = re.findall(r'^Level: explore_goal_locations_small '
                         r'Episode return: (\d+\.\d{6})$', output, re.M)
    with open(os.path.join(self.logdir, 'episodes.csv')) as f:
      self.assertEqual([float(line.split(',')[3]) for line in [*f][1:]],
                       [float(number) for number in returns])
    self.assertNotEmpty(returns)
    self.assertIn('checkpoint', os.listdir(self.logdir))

  def _check_cluster(self, num_actors, *args):
    """Trains with a learner and two actors, each a command."""
    if not _is_free(8000):
      self.skipTest('Another program uses port 8000.')
    actors = [self._start(
        '--job_name=actor', f'--task={i}', f'--num_actors={num_actors}',
        '--level_name=dmlab30', self.dataset) for i in range(2)]
    learner = self._start('--job_name=learner', '--task=0',
                          f'--num_actors={num_actors}', *_LEARNER, *args)
    output = self._check(learner)
    self.assertIn(f'each of {num_actors} actor workers', output)
    for i, actor in enumerate(actors):
      self.assertIn(f'Actor {i} ends, as the run has ended.',
                    self._check(actor))
    self.assertIn('checkpoint', os.listdir(self.logdir))

  @pytest.mark.storm
  def test_two_of_150_actors(self):
    self._check_cluster(150, *_SMALL, '--total_environment_frames=5000')

  @pytest.mark.storm
  def test_learner_and_actors(self):
    # Actor 0 plays a level that needs the actors' --dataset_path.
    self._check_cluster(
        2, *_SMALL, '--batch_size=2', '--total_environment_frames=2000',
        '--level_name=psychlab_continuous_recognition,dmlab30')
    self._check_test(1)

  @pytest.mark.storm
  def test_one_machine_in_full(self):
    self._check(self._start('--num_actors=48', '--batch_size=32',
                            '--total_environment_frames=25600'))
    self._check_test(2)


class WithoutLabTest(absltest.TestCase):

  def test_the_default_is_pong_and_the_first_line_says_so(self):
    if lab_levels.is_installed():
      self.skipTest('DeepMind Lab is installed.')
    with flagsaver.flagsaver(), contextlib.redirect_stdout(
        io.StringIO()) as output:
      experiment._parse_flags([
          'experiment.py', '--num_actors=48', '--batch_size=32',
          f'--logdir={self.create_tempdir().full_path}'])
      experiment._check(experiment.config_of(flags.FLAGS))
    self.assertStartsWith(
        output.getvalue(), 'scalable_agent: impala on ALE/Pong-v5 (the default '
        'level without DeepMind Lab), in ')

  def test_an_error_of_the_default_names_the_default(self):
    if lab_levels.is_installed():
      self.skipTest('DeepMind Lab is installed.')
    for level, text in (([], r'ale-py. ALE/Pong-v5 is the default level without'
                             r' DeepMind Lab\.$'),
                        (['--level_name=ALE/Pong-v5'], r'ale-py\.$')):
      with flagsaver.flagsaver(), mock.patch.object(
          experiment.environments, 'check_names',
          side_effect=errors.MissingDependencyError('It needs ale-py.')
      ), self.assertRaisesRegex(errors.MissingDependencyError, text):
        experiment._parse_flags([
            'experiment.py', *level,
            f'--logdir={self.create_tempdir().full_path}'])
        experiment._check(experiment.config_of(flags.FLAGS))


class SettingsTest(absltest.TestCase):

  def test_a_learner_alone_has_the_address_and_workers_of_the_reference(self):
    config = config_lib.Config(task=0, num_actors=150)
    self.assertEqual((config.ray_address, config.num_actor_workers),
                     ('localhost:8000', 150))
    given = config_lib.Config(task=0, num_actors=150, num_actor_workers=7,
                              ray_address='h:1')
    self.assertEqual((given.ray_address, given.num_actor_workers), ('h:1', 7))

  def test_an_actor_alone_has_the_address(self):
    config = config_lib.Config(task=149, job_name='actor', num_actors=150)
    self.assertEqual((config.ray_address, config.num_actor_workers),
                     ('localhost:8000', 0))

  def test_a_test_needs_no_cluster(self):
    self.assertEqual(config_lib.Config(task=0, mode='test').ray_address, '')

  def test_workers_have_the_paths_of_their_actor(self):
    learner = config_lib.Config(dataset_path='/l', level_cache_dir='/c')
    self.assertEqual(hosts.with_paths_of_host(learner), learner)
    self.enter_context(mock.patch.dict(
        os.environ, {'SCALABLE_AGENT_PATHS': '{"dataset_path": "/a"}'}))
    config = hosts.with_paths_of_host(learner)
    self.assertEqual((config.dataset_path, config.level_cache_dir),
                     ('/a', '/c'))


def _is_free(port):
  with socket.socket() as one:
    return one.connect_ex(('localhost', port)) != 0


MUTATIONS = (
    dict(file='settings/sections', catches='SettingsTest.'
         'test_a_learner_alone_has_the_address_and_workers_of_the_reference',
         rows=(
        ('a given address is lost', "if self.ray_address == '':", 'if True:'),
        ('given workers are lost',
         "self.job_name == 'learner' and self.num_actor_workers == 0",
         "self.job_name == 'learner'"))),
    dict(file='settings/sections',
         catches='test_an_actor_alone_has_the_address', rows=(
        ('an actor command decides the number of workers',
         "if self.job_name == 'learner' and self.num_actor_workers",
         'if self.num_actor_workers'),)),
    dict(file='settings/sections', catches='test_a_test_needs_no_cluster',
         rows=(
        ('tests have an address', "if self.mode != 'train' or not isinstance",
         'if not isinstance'),)),
    dict(file='distributed/hosts',
         catches='test_workers_have_the_paths_of_their_actor', rows=(
        ('the paths of an actor are lost', ' if paths else config',
         ' if False else config'),)),
)

if __name__ == '__main__':
  absltest.main()
