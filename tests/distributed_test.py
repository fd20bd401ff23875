# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of training on a ray cluster of two nodes on this machine."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import in_process
import numpy as np
import psutil
import pytest
from scalable_agent import errors
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives
from scalable_agent.runs import reports
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf
import tree

ray = pytest.importorskip('ray')
from ray import cluster_utils
from scalable_agent.distributed import adder
from scalable_agent.distributed import central_actors
from scalable_agent.distributed import cluster as cluster_lib
from scalable_agent.distributed import crew
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import learning
from scalable_agent.distributed import ray_collectives
from scalable_agent.distributed import remote_actors

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_CLUSTER: list[cluster_utils.Cluster] = []
_STATE = contextlib.ExitStack()  # What is put back with the last test.


def _start_cluster():
  """Starts the cluster, unless it runs."""
  if _CLUSTER:
    return
  # Workers get the environment variables of their node.
  _STATE.enter_context(mock.patch.dict(os.environ))
  # ray's nodes set handlers, which processes of later tests would inherit.
  _STATE.callback(
      signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
  os.environ['PYTHONPATH'] = os.pathsep.join(
      [os.path.dirname(os.path.abspath(__file__)),
       *filter(None, [os.environ.get('PYTHONPATH')])])
  cluster = cluster_utils.Cluster(
      initialize_head=True,
      head_node_args={'num_cpus': 2, 'object_store_memory': 100_000_000})
  cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
  ray.init(address=cluster.address, log_to_driver=False)
  _CLUSTER.append(cluster)


def tearDownModule():
  ray.shutdown()
  for cluster in _CLUSTER:
    cluster.shutdown()
  _STATE.close()


def _config(**kwargs):
  return config_lib.Config(**{
      'level_name': 'counting', 'num_action_repeats': 1, 'num_actors': 5,
      'num_actor_groups': 1, 'unroll_length': 4, 'batch_size': 3,
      'agent': 'mlp', 'hidden_sizes': '8', 'use_lstm': False, 'xla': 'none',
      'ray_address': 'auto', 'num_actor_workers': 2, 'min_actor_workers': 2,
      'num_cpus_per_actor_worker': 1, **kwargs})


class _Copies:
  """The unrolls of an inbox, copied as a learner would."""

  def __init__(self):
    self.inbox = queues.BoundedQueue[unrolls.Delivery](1)
    self.unrolls: list[structs.Unroll] = []

  def take(self, count=1):
    """Returns the next unrolls."""
    for _ in range(count):
      unroll, release = self.inbox.get(timeout_s=120)
      self.unrolls.append(tree.map_structure(np.copy, unroll))
      release()
    return self.unrolls[-count:]

  def of(self, environment):
    """Returns the unrolls that have a column of an environment."""
    return [u for u in self.unrolls if environment in u.start.environment]

  def streams(self):
    """Returns, for each environment, its columns one after the other."""
    streams = {}
    for unroll in self.unrolls:
      for column, environment in enumerate(unroll.start.environment):
        streams.setdefault(int(environment), []).append(
            unrolls.columns(unroll, column, column + 1))
    return streams


class _Acting:
  """Actors that act with the weights of a learner.

  Attributes:
    actors: the `RemoteActors` or `CentralActors`.
    learner: has the first weights.
    published: a list whose last item is the weights that actors get.
    copies: what they deliver.
  """

  def __init__(self, config, make=remote_actors.RemoteActors):
    self.copies = _Copies()
    self.actors = make(config, part=0)
    spec = self.actors.spec
    self.learner = setup.make_learner(
        config.resolved(spec.observation, on_cpu=True, num_groups=1), spec)
    self.published = [self.learner.weights()]

  def __enter__(self):
    self.actors.start(lambda: self.published[-1], self.copies.inbox)
    return self

  def __exit__(self, *args):
    self.copies.inbox.close()
    self.actors.stop(30)
    self.actors.close()


def _check_streams(copies):
  """Checks that no step is missing or there twice.

  Returns:
    The environments that began, and began anew, once for each time.
  """
  starts = []
  for environment, parts in copies.streams().items():
    count = 0
    for before, after in zip([None, *parts], parts):
      observed = after.steps.env_outputs.observation[:, 0, 0]
      if before is None or observed[0] == 0:
        starts.append(environment)
        count = 0
      else:  # The first entry is the last one of the unroll before.
        tree.map_structure(
            lambda a, b: np.testing.assert_array_equal(a[-1], b[0]),
            before.steps, after.steps)
      np.testing.assert_array_equal(observed, count + np.arange(5))
      count += 4
  return starts


def _check_same_policy(agent, unroll, differs=False):
  """Checks that an agent computes the policies that a worker acted with."""
  output, _ = agent.unroll(unroll.steps.agent_outputs.action,
                           unroll.steps.env_outputs, unroll.start.agent_state)
  error = np.max(np.abs(
      output.policy[:-1] - unroll.steps.agent_outputs.policy[1:]))
  assert (error > 1e-2) if differs else (error < 1e-5), error


class RemoteActorsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    _start_cluster()

  @pytest.mark.storm
  def test_unrolls_go_on_where_the_last_one_ended_over_a_killed_worker(self):
    with _Acting(_config()) as acting:
      actors, copies = acting.actors, acting.copies
      self.assertEqual(actors.num_groups, 1)
      while len(copies.of(0)) < 3 or len(copies.of(4)) < 3:
        copies.take()
      [victim, other] = [w.description for w in actors._crew.workers]
      self.assertNotEqual(victim.pid, other.pid)
      os.kill(victim.pid, signal.SIGKILL)
      # Unrolls from before it was killed may still be under way.
      enough = len(copies.of(0)) + 6
      while len(copies.of(0)) < enough:
        copies.take()
      counts = actors.counts()
      self.assertEqual(
          (counts['workers'], counts['wanted'], counts['restarts']), (2, 2, 1))
      # One more may have arrived that was not taken.
      self.assertIn(counts['unrolls'] - sum(
          u.num_columns for u in copies.unrolls), range(7))
    starts = _check_streams(copies)
    # Three of five environments were in the worker that was killed.
    self.assertEqual(sorted(starts), [0, 0, 1, 1, 2, 2, 3, 4])

  @pytest.mark.storm
  def test_a_storm_of_kills_loses_no_step_and_repeats_none(self):
    rng = np.random.default_rng()
    num_kills = 12
    # None of these is an error of an environment.
    with _Acting(_config(max_environment_restarts=0)) as acting:
      actors, copies = acting.actors, acting.copies
      copies.take(4)
      for _ in range(num_kills):
        pids = [w.description.pid for w in actors._crew.ready()]
        worker = psutil.Process(int(rng.choice(pids)))
        environments = [p for p in worker.children(recursive=True)
                        if 'forkserver' in ' '.join(p.cmdline())]
        victim = rng.choice([worker, *environments[-1:]])
        num_restarts = actors.counts()['restarts']
        victim.kill()
        deadline_s = time.monotonic() + 120
        while (actors.counts()['restarts'] == num_restarts
               or actors.counts()['workers'] < 2):
          self.assertLess(time.monotonic(), deadline_s)
          copies.take()
        copies.take(int(rng.integers(20)))
      counts = actors.counts()
      processes = [psutil.Process(w.description.pid)
                   for w in actors._crew.ready()]
      processes += [child for process in processes
                    for child in process.children(recursive=True)]
    self.assertEqual(counts['restarts'], num_kills)
    starts = _check_streams(copies)
    # Each kill began two or three environments anew.
    self.assertBetween(len(starts), 5, 5 + 3 * num_kills)
    _, alive = psutil.wait_procs(processes, timeout=20)
    self.assertEmpty(alive)

  @parameterized.parameters('auto', 'none', 'newest', 'zlib')
  @pytest.mark.storm
  def test_frames_arrive_as_they_were_acted_on(self, pack):
    pytest.importorskip('ale_py')
    config = _config(
        level_name='ALE/Pong-v5', num_action_repeats=4, num_actors=4,
        unroll_length=20, agent='shallow', pack=pack)
    with _Acting(config) as acting:
      while acting.actors.counts()['unrolls'] < 40:
        for unroll in acting.copies.take():
          _check_same_policy(acting.learner.agent, unroll)
      counts = acting.actors.counts()
      found = counts['bytes'] / (counts['unrolls'] * 21 * 4 * 84 * 84)
      shares = {'none': 1, 'newest': .35, 'zlib': .05}
      expected = [shares.get(pack)]
      if pack == 'auto':  # Each node has a worker; one node is the learner's.
        of_first = len(acting.copies.of(0)) / len(acting.copies.unrolls)
        expected = [here * shares['none'] + (1 - here) * shares['newest']
                    for here in (of_first, 1 - of_first)]
      self.assertLess(min(abs(found - share) for share in expected), .1)

  @parameterized.parameters(
      (remote_actors.RemoteActors, 'local'),
      (central_actors.CentralActors, 'central_on_cpu'))
  @pytest.mark.storm
  def test_metrics_arrive_with_their_episodes(self, make, inference):
    with _Acting(_config(
        level_name='fake_environments:fake/Informing-v0', inference=inference,
        episode_metrics='length'), make) as acting:
      ended = [episode for unroll in acting.copies.take(10)
               for episode in episodes_lib.finished_episodes(unroll)]
    self.assertNotEmpty(ended)
    for episode in ended:
      self.assertEqual(episode.metrics, {'length': episode.num_agent_steps})

  @parameterized.parameters(
      (remote_actors.RemoteActors, 'local'),
      (central_actors.CentralActors, 'central_on_cpu'))
  @pytest.mark.storm
  def test_observations_are_normalised_as_published(self, make, inference):
    acting = _Acting(_config(
        normalise_observations='auto', inference=inference), make)
    learner = acting.learner
    [part] = learner.agent.observation_normaliser.statistics.values()
    part.mean.assign(tf.fill(part.mean.shape, 2.))
    part.variance.assign(tf.fill(part.mean.shape, 9.))
    part.count.assign(1)
    acting.published.append(learner.weights())
    with acting:
      seen = acting.copies.take(4)
      for unroll in seen:
        _check_same_policy(learner.agent, unroll)
      part.mean.assign(tf.fill(part.mean.shape, 12.))
      _check_same_policy(learner.agent, seen[-1], differs=True)

  @pytest.mark.storm
  def test_unrolls_that_do_not_fit_into_the_store_are_said(self):
    with _Acting(_config()) as acting:
      acting.actors._store_bytes = 10
      with self.assertRaisesRegex(
          errors.ConfigError, '2 actor workers need 0 MB .* use --pack=zlib'):
        acting.copies.take(3)

  @pytest.mark.storm
  def test_workers_get_newer_weights(self):
    config = _config(num_actor_workers=1, min_actor_workers=1, num_actors=2)
    with _Acting(config) as acting:
      learner, copies = acting.learner, acting.copies
      [first] = copies.take()
      np.testing.assert_array_equal(first.start.policy_version, 0)
      for variable in learner.agent.variables:
        variable.assign(variable + 1.0)
      learner.num_updates = 7
      acting.published.append(learner.weights())
      versions = [int(copies.take()[0].start.policy_version[0])
                  for _ in range(8)]
      self.assertEqual(versions, sorted(versions))
      self.assertEqual(versions[-2:], [7, 7])
    _check_same_policy(learner.agent, copies.unrolls[0], differs=True)
    _check_same_policy(learner.agent, copies.unrolls[-1])

  @pytest.mark.storm
  def test_an_error_of_an_environment_is_raised_with_its_text(self):
    config = _config(level_name='fake_environments:fake/RaisesInReset-v0',
                     num_actors=1, num_actor_workers=1, min_actor_workers=1)
    with mock.patch.object(crew, '_MAX_FAILURES', 2), \
        _Acting(config) as acting:
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, 'no way to begin'):
        acting.copies.take()
      self.assertEqual(acting.actors.counts()['restarts'], 1)

  @pytest.mark.storm
  def test_an_environment_that_fails_again_and_again_ends_the_run(self):
    config = _config(level_name='fake_environments:fake/RaisesLater-v0',
                     num_actors=1, num_actor_workers=1, min_actor_workers=1,
                     max_environment_restarts=1, unroll_length=1)
    with _Acting(config) as acting:
      with self.assertRaisesRegex(errors.EnvironmentProcessError, 'Error'):
        while True:
          acting.copies.take()
      self.assertEqual(acting.actors.counts()['restarts'], 1)
    self.assertGreater(len(acting.copies.unrolls), 1)

  @pytest.mark.storm
  def test_a_wrong_level_is_said_at_once(self):
    with self.assertRaisesRegex(errors.UnknownLevelError, 'catch'):
      remote_actors.RemoteActors(_config(level_name='catsh'), part=0)

  @pytest.mark.storm
  def test_other_versions_on_another_machine_are_said(self):
    ours = descriptions.installed_versions()
    self.assertContainsSubset(
        {'Python', 'keras', 'numpy', 'tensorflow', 'scalable_agent (digest)'},
        ours)
    with mock.patch.object(
        descriptions, 'installed_versions',
        return_value={**ours, 'numpy': '0.1'}), \
        self.assertRaisesRegex(
            errors.ConfigError, f'has numpy {ours["numpy"]}, but .* has 0.1: '):
      remote_actors.RemoteActors(_config(), part=0)

  @pytest.mark.storm
  def test_workers_that_do_not_fit_are_said(self):
    with self.assertRaisesRegex(
        errors.ClusterError, r'No actor worker was ready for 2 s .* 64 CPUs '
        r'each; the cluster has 4 CPUs, of which 4 are free'):
      remote_actors.RemoteActors(
          _config(num_cpus_per_actor_worker=64, actor_timeout_s=2.), part=0)


class CentralActorsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    _start_cluster()

  def _acting(self, **kwargs):
    return _Acting(
        _config(**{'inference': 'central_on_cpu', 'num_actor_groups': 2,
                   **kwargs}), central_actors.CentralActors)

  @pytest.mark.storm
  def test_unrolls_of_environments_elsewhere_over_a_killed_worker(self):
    with self._acting() as acting:
      actors, copies = acting.actors, acting.copies
      # Three and two environments, in two groups each.
      self.assertEqual((actors.num_groups, actors.num_environments), (4, 5))
      while any(len(copies.of(e)) < 3 for e in range(5)):
        _check_same_policy(acting.learner.agent, copies.take()[0])
      victim, other = [w.description for w in actors._crew.workers]
      for pid in victim.pid, other.pid:
        libraries = {os.path.basename(m.path)
                     for m in psutil.Process(pid).memory_maps()}
        self.assertNotEmpty(libraries)
        self.assertEmpty([l for l in libraries if 'tensorflow' in l])
      os.kill(victim.pid, signal.SIGKILL)
      enough = len(copies.of(0)) + 5
      while len(copies.of(0)) < enough:
        _check_same_policy(acting.learner.agent, copies.take()[0])
      self.assertEqual(actors.counts(), {
          'workers': 2, 'wanted': 2, 'restarts': 1, 'lost_groups': 2})
    # Each group of the lost worker begins anew; nothing else does.
    self.assertEqual(sorted(_check_streams(copies)), [0, 0, 1, 1, 2, 2, 3, 4])

  @pytest.mark.storm
  def test_masks_hold_for_environments_elsewhere(self):
    # Each environment raises an error for an invalid action.
    with self._acting(
        level_name='fake_environments:fake/Masked-v0') as acting:
      taken = acting.copies.take(40)
      self.assertEqual(acting.actors.counts()['restarts'], 0)
    for unroll in taken:
      masks = unroll.steps.env_outputs.observation['action_mask'][:-1]
      actions = unroll.steps.agent_outputs.action[1:]
      self.assertFalse(masks.all())
      self.assertTrue(
          np.take_along_axis(masks, actions[..., np.newaxis], -1).all())

  @pytest.mark.storm
  def test_steps_between_errors_are_no_unroll(self):
    # It raises in step 200, so no unroll is ever finished.
    with mock.patch.object(crew, '_MAX_FAILURES', 2), self._acting(
        level_name='fake_environments:fake/RaisesLater-v0', num_actors=1,
        num_actor_workers=1, min_actor_workers=1, unroll_length=300) as acting:
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, 'this and that'):
        acting.copies.take()
      self.assertEqual(acting.actors.counts()['restarts'], 1)

  @pytest.mark.storm
  def test_an_error_of_an_environment_is_raised_with_its_text(self):
    with mock.patch.object(crew, '_MAX_FAILURES', 2), self._acting(
        level_name='fake_environments:fake/RaisesInReset-v0', num_actors=1,
        num_actor_workers=1, min_actor_workers=1) as acting:
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, 'no way to begin'):
        acting.copies.take()
      self.assertEqual(acting.actors.counts()['restarts'], 1)

  @pytest.mark.storm
  def test_a_worker_that_hangs_is_replaced(self):
    with self._acting(hang_timeout_s=3.) as acting:
      actors, copies = acting.actors, acting.copies
      copies.take(4)
      os.kill(actors._crew.workers[0].description.pid, signal.SIGSTOP)
      while actors.counts()['restarts'] < 1:
        copies.take()
      enough = len(copies.of(0)) + 5
      while len(copies.of(0)) < enough:
        copies.take()
    _check_streams(copies)

  @pytest.mark.storm
  def test_without_an_accelerator_it_is_refused(self):
    with self.assertRaisesRegex(
        errors.ConfigError, 'there is none here.*--inference=central_on_cpu'):
      central_actors.CentralActors(_config(inference='central'), part=0)


class _Learner:
  """A learner of `collectives_test` in a process of the cluster."""

  def learn(self, adder, size, rank, case):
    import collectives_test
    from scalable_agent.distributed import ray_collectives
    collectives = ray_collectives.RayCollectives(adder, size, rank, 60.)
    assert collectives.total([1, rank]) == [size, sum(range(size))]
    return collectives_test._learn(case, collectives)


class RayCollectivesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    _start_cluster()

  @parameterized.parameters('words, Adam, clipped', 'words, RMSProp', 'mean')
  @pytest.mark.storm
  def test_two_equal_one_learner_of_the_whole_batch(self, case):
    import collectives_test
    one = collectives_test._learn(case, collectives.Alone())
    sums = ray.remote(adder.Adder).options(num_cpus=0).remote(2)
    learners = [ray.remote(_Learner).remote() for _ in range(2)]
    results = ray.get([learner.learn.remote(sums, 2, rank, case)
                       for rank, learner in enumerate(learners)])
    self.assertLess(collectives_test._error(one, results[0]), 1e-4)
    self.assertLen({result['digest'] for result in results}, 1)

  @pytest.mark.storm
  def test_a_learner_that_does_not_come_is_an_error(self):
    sums = ray.remote(adder.Adder).options(num_cpus=0).remote(2)
    alone = ray_collectives.RayCollectives(sums, 2, 0, 2.)
    with self.assertRaisesRegex(
        collectives.SUM_ERRORS, 'Collective sum 0 has failed'):
      alone.total([1])


def _processes(name):
  """Returns children of the cluster whose command has a name in it."""
  found = []
  for process in psutil.Process().children(recursive=True):
    with contextlib.suppress(psutil.Error):  # It has ended meanwhile.
      if name in ' '.join(process.cmdline()):
        found.append(process)
  return found


class LearningTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(), 100 + 30), (dict(min_actor_workers=5), 100 + 3 * 30),
      (dict(actor_timeout_s=float('inf')), 100 + 1e6),
      # 60 s for each of the 4 environments of a worker, on 2 CPUs.
      (dict(level_name='lasertag_one_opponent_small'), 100 + 30 + 60 * 4 / 2),
      # The learners have workers with 2 and 2, and with 4 environments.
      (dict(level_name='lasertag_one_opponent_small', num_actors=8,
            num_actor_workers=3), 100 + 30 + 60 * 4 / 2))
  def test_sums_wait_for_the_actors_of_other_learners(self, settings, limit_s):
    config = config_lib.Config(**dict(
        dict(level_name='catch', ray_address='auto', num_learners=2,
             num_actors=24, num_actor_workers=6, actor_timeout_s=30.,
             hang_timeout_s=100., min_actor_workers=1, collectives='ray'),
        **settings))
    with mock.patch.object(learning.ray_collectives, 'RayCollectives') as make:
      learning._make_collectives(config, 1, ['a:1', 'b:2'], None)
    make.assert_called_once_with(None, 2, 1, limit_s)

  def test_a_stop_before_there_are_actors_is_added(self):
    others = mock.Mock()
    with mock.patch.object(
        learning, '_make_collectives', return_value=others), \
        mock.patch.object(training, 'run', side_effect=crew.Stopped):
      self.assertEqual(learning.run(
          config_lib.Config(), 1, ['a:1', 'b:2'], None, threading.Event(),
          print, reports.Reports()), 0)
    others.total.assert_called_once_with([1])

  @parameterized.parameters((0, []), (1, ['Learner 1: A file is damaged.']))
  def test_lines_of_other_learners_name_the_learner(self, rank, expected):
    said = []
    with mock.patch.object(learning, '_make_collectives'), \
        mock.patch.object(training, 'run') as run:
      learning.run(config_lib.Config(), rank, ['a:1', 'b:2'], None,
                   threading.Event(), said.append, reports.Reports())
    run.call_args.kwargs['say']('A file is damaged.')
    self.assertEqual(said, expected)

  def test_learners_that_do_not_connect_are_a_failed_sum(self):
    with mock.patch.object(
        collectives, 'TensorFlowCollectives',
        side_effect=tf.errors.UnknownError(None, None, 'The port is taken')), \
        self.assertRaisesRegex(cluster_lib.SumError, 'The port is taken'):
      learning.run(
          config_lib.Config(ray_address='auto', num_actor_workers=2), 1,
          ['a:1', 'b:2'], None, threading.Event(), print, reports.Reports())

  @parameterized.parameters(
      ('Collective ops is aborted', cluster_lib.SumError),
      ('a collective operation', cluster_lib.SumError),
      ('Out of range', tf.errors.InternalError))
  def test_the_text_tells_whether_a_sum_has_failed(self, text, expected):
    with mock.patch.object(learning, '_make_collectives'), \
        mock.patch.object(
            training, 'run',
            side_effect=tf.errors.InternalError(None, None, text)), \
        self.assertRaisesRegex(expected, text):
      learning.run(config_lib.Config(), 1, ['a:1', 'b:2'], None,
                   threading.Event(), print, reports.Reports())


@contextlib.contextmanager
def _long_directory():
  """Gives programs a directory whose name is too long for ray."""
  with tempfile.TemporaryDirectory(dir='/tmp') as directory:
    path = os.path.join(directory, 'x' * 40)
    os.mkdir(path)
    with mock.patch.dict(os.environ, TMPDIR=path):
      yield


class _ProgramTest(parameterized.TestCase):
  """Starts `experiment.py`."""

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    self.lines = []

  def _flags(self, *args):
    return (f'--logdir={self.logdir}', '--level_name=catch',
            '--num_action_repeats=1', '--num_actors=4', '--unroll_length=10',
            '--batch_size=4', '--num_actor_groups=1', '--xla=none',
            '--num_actor_workers=2', '--num_cpus_per_actor_worker=1',
            '--num_cpus_per_learner=1', '--progress_secs=0.5',
            '--save_checkpoint_secs=1', *args)

  def _start(self, *args, stderr=subprocess.STDOUT):
    process = subprocess.Popen(
        [sys.executable, 'experiment.py', *self._flags(*args)], cwd=_ROOT,
        text=True, stdout=subprocess.PIPE, stderr=stderr)
    self.addCleanup(process.kill)
    return process

  def _run(self, *args):
    """Returns the exit code and the output of the program."""
    process = self._start(*args)
    output, _ = process.communicate()
    return process.returncode, output

  def _wait_for(self, process, text):
    """Reads lines of the program up to one that has the text."""
    for line in process.stdout:
      self.lines.append(line)
      if text in line:
        return line
    self.fail(f'The program has ended without {text!r}:\n'
              + ''.join(self.lines))


class ProgramTest(_ProgramTest):
  """`experiment.py` on the cluster."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    _start_cluster()

  @pytest.mark.storm
  def test_goes_on_after_its_learner_was_killed(self):
    process = self._start(f'--ray_address={_CLUSTER[0].address}',
                          '--total_environment_frames=1000000')
    self._wait_for(process, '2 of 2 workers')
    while not os.path.exists(os.path.join(self.logdir, 'checkpoint')):
      self._wait_for(process, 'frames/s')
    [learner] = _processes('LearnerWorker')
    children = learner.children(recursive=True)
    learner.kill()
    self._wait_for(process, 'The learner has died. Restarting from')
    restored = self._wait_for(process, 'Resuming from')
    number, frames = re.search(
        r'ckpt-(\d+), ([\d,]+) frames', restored).groups()
    # An update learns from 4 unrolls of 10 steps.
    self.assertEqual(int(frames.replace(',', '')), 40 * int(number))
    self._wait_for(process, '2 of 2 workers (0 restarts)')
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    self.assertEqual(process.returncode, 0, rest)
    self.assertRegex(rest, r'Saved .*ckpt-\d+, ')
    self.assertEmpty([p for p in children if p.is_running()])
    self.assertNotIn('Traceback', ''.join(self.lines) + rest)

  @pytest.mark.slow
  def test_ends_at_its_frames_and_counts_them(self):
    code, output = self._run(f'--ray_address={_CLUSTER[0].address}',
                             '--total_environment_frames=800')
    self.assertEqual(code, 0, output)
    self.assertIn('4 environments, 1 group in each of 2 actor workers', output)
    self.assertRegex(output, 'Saved .*ckpt-20, 800 frames.')
    # 20 updates of 4 unrolls each.
    arrived, waiting = map(int, re.search(
        r'(\d+) unrolls have arrived, of which (\d+) were waiting',
        output).groups())
    self.assertEqual(arrived - waiting, 20 * 4)
    episodes = pathlib.Path(
        self.logdir, 'episodes.csv').read_text().splitlines()
    # 800 steps, episodes of 9 steps, four of which have not ended.
    self.assertBetween(len(episodes) - 1, 800 // 9 - 4, 800 // 9)

  @pytest.mark.storm
  def test_learners_with_different_levels_are_refused(self):
    code, output = self._run(
        f'--ray_address={_CLUSTER[0].address}', '--num_actors=2',
        '--level_name=catch,fake_environments:fake/Dies-v0',
        '--num_learners=2')
    self.assertEqual(code, 2, output)
    self.assertRegex(output.splitlines()[-1], '^scalable_agent: The learners '
                     'start from different checkpoints or agents, .* all '
                     'levels must have the same observations and actions')

  def _kill_one_of_two_learners(self, file, *args):
    """Kills one once there is the file; returns the program, which goes on."""
    process = self._start(
        f'--ray_address={_CLUSTER[0].address}', '--num_learners=2', *args)
    self._wait_for(process, '2 of 2 workers')
    while not os.path.exists(os.path.join(self.logdir, file)):
      self._wait_for(process, 'frames/s')
    _, second = _processes('LearnerWorker')
    second.kill()
    self._wait_for(process, 'Restarting from the last checkpoint')
    self._wait_for(process, 'Resuming from')
    return process

  @pytest.mark.storm
  def test_two_learners_go_on_after_one_was_killed(self):
    process = self._kill_one_of_two_learners(
        'checkpoint', '--total_environment_frames=1000000')
    self._wait_for(process, '2 of 2 workers')
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate()
    self.assertEqual(process.returncode, 0, rest)
    self.assertNotIn('Traceback', ''.join(self.lines) + rest)

  @parameterized.parameters(
      (), ('--use_lstm', '--lstm_units=8', '--sequence_length=4',
           '--unroll_length=4', '--burn_in_steps=3', '--exploration_ladder'))
  @pytest.mark.storm
  def test_two_learners_with_replays_go_on_after_one_was_killed(self, *args):
    process = self._kill_one_of_two_learners(
        'replay-1', '--algorithm=ddqn', '--min_replay_steps=100',
        '--unroll_length=2', '--updates_per_step=0.25',
        '--total_environment_frames=3000', *args)
    self._wait_for(process, 'The saved replay has')
    rest, _ = process.communicate()
    self.assertEqual(process.returncode, 0, rest)
    self.assertNotIn('Traceback', ''.join(self.lines) + rest)
    [num_updates, ratio] = re.search(
        r'([\d,]+) updates, ([\d.]+) per agent step', rest).groups()
    self.assertAlmostEqual(float(ratio), 0.25, delta=0.005)
    # Each kill may lose up to a second of replays and checkpoints.
    self.assertAlmostEqual(
        int(num_updates.replace(',', '')), 2900 // 4, delta=100)

  @pytest.mark.storm
  def test_a_machine_joins_and_leaves(self):
    # The learner needs one machine, two workers the other one.
    process = self._start(
        f'--ray_address={_CLUSTER[0].address}', '--num_cpus_per_learner=2',
        '--num_actor_workers=4', '--min_actor_workers=1',
        '--total_environment_frames=1000000')
    self._wait_for(process, ' 2 of 4 workers')
    node = _CLUSTER[0].add_node(num_cpus=2, object_store_memory=100_000_000)
    self.addCleanup(lambda: node in _CLUSTER[0].worker_nodes and
                    _CLUSTER[0].remove_node(node, allow_graceful=False))
    begin_s = time.monotonic()
    self._wait_for(process, ' 4 of 4 workers')
    print(f'Its workers act after {time.monotonic() - begin_s:.1f} s.')
    _CLUSTER[0].remove_node(node, allow_graceful=False)
    self._wait_for(process, 'is replaced: it has died')
    self._wait_for(process, ' 2 of 4 workers')
    last = self._wait_for(process, ' 2 of 4 workers')
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    self.assertEqual(process.returncode, 0, rest)
    # The batches are the same with any number of workers.
    number, frames = re.search(r'ckpt-(\d+), ([\d,]+) frames', rest).groups()
    self.assertEqual(int(frames.replace(',', '')), 40 * int(number), last)
    self.assertNotIn('Traceback', ''.join(self.lines) + rest)

  @parameterized.parameters('local', 'cluster')
  @pytest.mark.storm
  def test_programs_of_environments_end_with_their_worker(self, where):
    address = 'local' if where == 'local' else _CLUSTER[0].address
    process = self._start(
        f'--ray_address={address}', '--total_environment_frames=1000000',
        '--level_name=fake_environments:fake/StartsProgram-v0')
    self._wait_for(process, '2 of 2 workers')
    killed, ended = [worker.children(recursive=True)
                     for worker in _processes('ActorWorker')]
    programs = [p for p in killed + ended if p.name() == 'sleep']
    self.assertLen(programs, 4)
    directories = {p.environ()['SCALABLE_AGENT_DIRECTORY'] for p in programs}
    self.assertLen(list(filter(os.path.exists, directories)), 2)
    killed[0].parent().kill()
    _, alive = psutil.wait_procs(killed, timeout=20)
    self.assertEmpty(alive)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    _, alive = psutil.wait_procs(ended, timeout=20)
    for left in alive:
      left.kill()
    self.assertEmpty(alive)
    self.assertEmpty(list(filter(os.path.exists, directories)))

  @pytest.mark.storm
  def test_an_environment_fails_on_another_machine(self):
    process = self._start(
        f'--ray_address={_CLUSTER[0].address}', '--num_actor_workers=1',
        # The learner has a CPU of one machine, so this is the other one.
        '--num_cpus_per_actor_worker=2', '--max_environment_restarts=2',
        '--level_name=fake_environments:fake/RaisesLater-v0', '--num_actors=1',
        '--batch_size=1', stderr=subprocess.PIPE)
    output, error = process.communicate()
    self.assertEqual(process.returncode, 1, error)
    # Each time it raises in step 200, in the twentieth unroll.
    self.assertEqual(output.count('is replaced: '), 2)
    self.assertIn('has failed 3 times within an hour '
                  '(--max_environment_restarts).\nSaved', output)
    number, frames = re.search(
        r'Saved .*ckpt-(\d+), (\d+) frames\.\n$', output).groups()
    self.assertEqual(int(frames), 10 * int(number))
    # Some of the last unrolls may have waited in vain.
    self.assertBetween(int(number), 3 * 19 - 6, 3 * 19)
    self.assertRegex(error, r'fake_environments.py", line \d+, in step\n')
    self.assertEqual(
        error.splitlines()[-1], 'scalable_agent: environment 0 '
        '(fake_environments:fake/RaisesLater-v0) raised AwkwardError: this and '
        'that')

  @parameterized.parameters(signal.SIGINT, signal.SIGTERM)
  @pytest.mark.storm
  def test_the_second_signal_ends_at_once(self, number):
    process = self._start(f'--ray_address={_CLUSTER[0].address}',
                          '--total_environment_frames=1000000')
    self._wait_for(process, '2 of 2 workers')
    [learner] = _processes('LearnerWorker')
    # What the checkpoint, and so the end of the first signal, waits for.
    learner.suspend()
    self.addCleanup(lambda: learner.is_running() and learner.kill())
    workers = _processes('ActorWorker')
    self.assertLen(workers, 2)
    workers += [p for worker in workers
                for p in worker.children(recursive=True)]
    process.send_signal(number)
    self._wait_for(process, 'Still waiting for the end of the training.')
    process.send_signal(number)
    process.communicate()
    # It died of the signal: 130 or 143, as a shell says it.
    self.assertEqual(process.returncode, -number)
    # To what is stopped, ray gives time.
    _, alive = psutil.wait_procs([learner, *workers], timeout=20)
    self.assertEmpty(alive)

  @pytest.mark.storm
  def test_a_stop_before_there_is_room(self):
    process = self._start(f'--ray_address={_CLUSTER[0].address}',
                          '--num_cpus_per_actor_worker=64')
    time.sleep(15)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    self.assertIn('Stopped before the training began.', output)

  @pytest.mark.storm
  def test_a_stop_when_one_of_two_learners_has_no_room(self):
    process = self._start(
        f'--ray_address={_CLUSTER[0].address}', '--num_learners=2',
        '--num_actor_workers=2', '--num_cpus_per_actor_worker=2')
    time.sleep(40)  # Until the workers of one of them are ready.
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    self.assertIn('Stopped before the training began.', output)

  @pytest.mark.storm
  def test_no_room_for_the_learner(self):
    code, output = self._run(f'--ray_address={_CLUSTER[0].address}',
                             '--num_cpus_per_learner=64', '--actor_timeout_s=2')
    self.assertEqual(code, 75, output)
    self.assertRegex(output, '^scalable_agent: There was no room for 1 '
                     'learners within 2 s .*, with 64 CPUs and 0 GPUs each '
                     '.*. The cluster has 4 CPUs')

  @pytest.mark.storm
  def test_a_cluster_of_its_own(self):
    with _long_directory():
      code, output = self._run('--ray_address=local',
                               '--total_environment_frames=800')
    self.assertEqual(code, 0, output)
    self.assertIn("too long for the names of ray's sockets: files of ray are "
                  'in /tmp.\n', output)
    self.assertRegex(output, 'Saved .*ckpt-20, 800 frames.')

  @pytest.mark.storm
  def _check_two_learners(self, *args):
    code, output = self._run(f'--ray_address={_CLUSTER[0].address}',
                             '--num_learners=2', *args,
                             '--total_environment_frames=800')
    self.assertEqual(code, 0, output)
    self.assertIn('1 group in each of 1 actor workers for each of 2 learners',
                  output)
    self.assertRegex(output, 'Saved .*ckpt-20, 800 frames.')

  @pytest.mark.storm
  def test_two_learners_share_batches_and_end_together(self):
    self._check_two_learners()

  @pytest.mark.storm
  def test_two_learners_that_sum_through_ray(self):
    self._check_two_learners('--collectives=ray')


class LostClusterTest(_ProgramTest):
  """`experiment.py` on a cluster of its own, which loses its head."""

  @parameterized.parameters('dies', 'hangs', 'dies with its machine',
                            'loses its machine')
  @pytest.mark.storm
  def test_ends_with_a_checkpoint(self, what):
    cluster = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={'num_cpus': 2, 'object_store_memory': 100_000_000})
    self.addCleanup(cluster.shutdown)
    cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    process = self._start(f'--ray_address={cluster.address}')
    self._wait_for(process, '2 of 2 workers')
    while not os.path.exists(os.path.join(self.logdir, 'checkpoint')):
      self._wait_for(process, 'frames/s')
    [head], [raylet] = (cluster.head_node.all_processes[name]
                        for name in ('gcs_server', 'raylet'))
    if what == 'hangs':
      head.process.send_signal(signal.SIGSTOP)
      self.addCleanup(head.process.send_signal, signal.SIGCONT)
    elif what != 'loses its machine':
      head.process.kill()
    if 'machine' in what:
      raylet.process.kill()
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 75, output)
    self.assertRegex(
        output.splitlines()[-1],
        "^scalable_agent: ray's processes on .* have died. The same command"
        if what == 'loses its machine' else
        "^scalable_agent: The head of ray's cluster, .* has not answered for "
        r'3\d s .*\. The same command resumes from the last checkpoint\.$')
    if 'machine' not in what:
      self.assertRegex(output, r'Saved .*ckpt-\d+, ')
    self.assertNotIn('Traceback', output)


class HostsTest(_ProgramTest):
  """One command on each host, as in the reference."""

  def setUp(self):
    super().setUp()
    with socket.socket() as one:
      one.bind(('localhost', 0))
      self.address = f'--ray_address=localhost:{one.getsockname()[1]}'

  def _start_all(self, *args):
    """Starts an actor, which waits, then the learner, then an actor."""
    actor = lambda task: self._start(
        self.address, '--job_name=actor', f'--task={task}')
    first = actor(1)
    learner = self._start(self.address, '--job_name=learner', '--task=0', *args)
    self._wait_for(first, 'Actor 1 has joined')
    second = actor(2)
    self._wait_for(second, 'Actor 2 has joined')
    return learner, [first, second]

  @pytest.mark.storm
  def test_all_end_with_the_run(self):
    with _long_directory():
      learner, actors = self._start_all('--total_environment_frames=800')
      output, _ = learner.communicate()
    self.assertEqual(learner.returncode, 0, output)
    self.assertRegex(output, 'Saved .*ckpt-20, 800 frames.')
    for task, actor in enumerate(actors, 1):
      output, _ = actor.communicate()
      self.assertEqual(actor.returncode, 0, output)
      self.assertEqual(output, f'Actor {task} ends, as the run has ended.\n')

  @pytest.mark.storm
  def test_a_learner_that_is_killed_takes_all_along(self):
    learner, actors = self._start_all('--total_environment_frames=800000')
    self._wait_for(learner, 'frames/s')
    processes = [p for one in (learner, *actors)
                 for p in psutil.Process(one.pid).children(recursive=True)]
    learner.kill()
    for actor in actors:
      output, _ = actor.communicate()
      self.assertEqual(actor.returncode, 75, output)
      self.assertRegex(output, '^scalable_agent: The learner at localhost.* '
                       'was lost')
    _, alive = psutil.wait_procs(processes, timeout=20)
    self.assertEmpty(alive)

  @pytest.mark.storm
  def test_an_actor_that_is_stopped_leaves_nothing(self):
    learner, [first, second] = self._start_all(
        '--total_environment_frames=800000')
    self._wait_for(learner, '2 of 2 workers')
    processes = psutil.Process(first.pid).children(recursive=True)
    first.send_signal(signal.SIGINT)
    output, _ = first.communicate()
    self.assertEqual(first.returncode, 0, output)
    self.assertIn('Actor 1 ends, as it was stopped.', output)
    _, alive = psutil.wait_procs(processes, timeout=20)
    self.assertEmpty(alive)
    self._wait_for(learner, 'is replaced: it has died')
    self._wait_for(learner, 'frames/s')  # The others go on.
    learner.send_signal(signal.SIGTERM)
    output, _ = learner.communicate()
    self.assertEqual(learner.returncode, 0, output)
    second.communicate()
    self.assertEqual(second.returncode, 0)

  @pytest.mark.storm
  def test_a_command_that_is_killed_takes_its_host_along(self):
    learner, [first, second] = self._start_all(
        '--num_learners=2', '--total_environment_frames=800000')
    self._wait_for(learner, '2 of 2 workers')
    processes = psutil.Process(first.pid).children(recursive=True)
    # All learners are on the host of the learner's command.
    [head] = [p for p in psutil.Process(learner.pid).children()
              if 'start' in p.cmdline()]
    self.assertLen([p for p in head.children(recursive=True)
                    if 'LearnerWorker' in ' '.join(p.cmdline())], 2)
    first.kill()
    _, alive = psutil.wait_procs(processes, timeout=10)
    self.assertEmpty(alive)
    learner.send_signal(signal.SIGTERM)
    output, _ = learner.communicate()
    self.assertEqual(learner.returncode, 0, output)
    second.communicate()
    self.assertEqual(second.returncode, 0)

  @pytest.mark.storm
  def test_no_learner(self):
    code, output = self._run(self.address, '--job_name=actor', '--task=3',
                             '--actor_timeout_s=2')
    self.assertEqual(code, 75)
    self.assertRegex(output, 'There was no learner at localhost:.* for 2 s')

  @pytest.mark.storm
  def test_a_port_that_is_taken(self):
    with socket.socket() as one:
      one.bind(('localhost', 0))
      one.listen()
      code, output = self._run(
          f'--ray_address=localhost:{one.getsockname()[1]}', '--task=0')
    self.assertEqual(code, 2)
    self.assertIn('a learner or another program uses the port already', output)


class SettingsTest(_ProgramTest):

  @parameterized.parameters(
      (['--ray_address=auto', '--num_learners=3'],
       '--num_learners=3 must divide --batch_size=4'),
      (['--ray_address=auto', '--num_learners=4', '--num_actors=8'],
       '--num_learners=4 must not exceed --num_actor_workers'),
      (['--ray_address=auto', '--num_learners=2', '--replay_capacity=11'],
       '--num_learners=2 must divide --replay_capacity=11'),
      (['--ray_address=auto', '--num_learners=2', '--algorithm=ddqn',
        '--num_actors=5', '--replay_steps=80'],
       'Each of --num_learners=2 learners: --replay_steps=40 must be at least'),
      (['--ray_address=auto', '--collectives=ray'],
       '--collectives=ray has no effect without --num_learners'),
      (['--ray_address=auto', '--deterministic', '--save_checkpoint_secs=60'],
       '--deterministic=True cannot be used with --ray_address'),
      (['--ray_address=auto', '--inference=central', '--pack=zlib'],
       '--pack=zlib cannot be used with --inference=central'),
      (['--ray_address=localhost:1'], '.*localhost:1: no program listens'),
      (['--ray_address=nowhere'], '--ray_address=nowhere: .* Use local'),
      (['--ray_address=auto', '--num_actor_workers=5'],
       '--num_actor_workers=5 must be at most --num_actors=4'),
      (['--task=0', '--ray_address=local'], '--task=0 needs --ray_address='),
      (['--task=1', '--ray_address=auto'], '--task=1 needs --ray_address='),
      (['--task=1', '--ray_address=h:1'], '--task=1 must be 0 for the only'),
      (['--task=-2'], '--task=-2 must be at least -1'),
      (['--num_actor_workers=1'],
       '--num_actor_workers=1 has no effect without --ray_address'))
  def test_wrong_settings(self, flags, message):
    code, output = in_process.main(*self._flags(*flags))
    self.assertEqual(code, 2, output)
    [line] = output.splitlines()
    self.assertRegex(line, '^scalable_agent: ' + message)


if __name__ == '__main__':
  absltest.main()
