# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the driver's parts that need no cluster."""

import contextlib
import errno
import io
import itertools
import os
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent.processes import console
from scalable_agent.runs import reports
from scalable_agent.settings import config as config_lib

ray = pytest.importorskip('ray')
from scalable_agent.distributed import cluster
from scalable_agent.distributed import driver
from scalable_agent.distributed import hosts
from scalable_agent.distributed import learner_worker
from scalable_agent.distributed import learners


class NumActorWorkersTest(parameterized.TestCase):

  @parameterized.parameters(
      ([16.], 1, 7), ([3., 3., 3.], 1, 2), ([3., 3., 3.], 2, 2), ([], 1, 1),
      ([2., 2.], 2, 2), ([64.], 1, 20), ([30.] * 4 + [2.], 1, 20))
  def test_each_worker_fits_on_a_machine(self, cpus, num_learners, expected):
    nodes = [dict(Alive=True, Resources={'CPU': n}) for n in cpus] + [
        dict(Alive=False, Resources={'CPU': 64.}),
        dict(Alive=True, Resources={})]
    config = config_lib.Config(
        ray_address='auto', num_actors=20, num_learners=num_learners,
        batch_size=2)
    with mock.patch.object(cluster.ray, 'nodes', return_value=nodes):
      self.assertEqual(cluster.num_actor_workers(config), expected)


class LearnerWorkerTest(absltest.TestCase):

  def test_a_training_that_hangs_is_silent(self):
    worker = learner_worker.LearnerWorker(config_lib.Config(), 0, '', '')
    time.sleep(0.2)
    text, silent_s = worker.output()
    self.assertEmpty(text)
    self.assertGreaterEqual(silent_s, 0.2)
    self.assertFalse(worker._stop.is_set())  # The training asks.
    self.assertLess(worker.output()[1], silent_s)

  def test_output_is_taken_once(self):
    worker = learner_worker.LearnerWorker(config_lib.Config(), 0, '', '')
    print('one', file=worker._output)
    print('two', file=worker._output)
    self.assertEqual(worker.output()[0], 'one\ntwo\n')
    self.assertEmpty(worker.output()[0])

  def test_the_directory_must_be_shared(self):
    worker = learner_worker.LearnerWorker(
        config_lib.Config(logdir='/a'), 0, '/no/such', '')
    with self.assertRaisesRegex(
        errors.ConfigError, 'does not see a file .* to --logdir=/a: use a '
        'directory that all machines share.$'):
      worker.run([], None, worker.versions())

  def test_all_learners_have_the_same_versions(self):
    first, second = (learner_worker.LearnerWorker(
        config_lib.Config(), rank, self.create_tempfile().full_path, '')
                     for rank in range(2))
    host, found = first.versions()
    learning = mock.Mock()
    learning.run.return_value = 0
    with mock.patch.object(
        learner_worker.importlib, 'import_module', return_value=learning):
      self.assertEqual(second.run([], None, (host, found)), 0)
      for name, text in (
          ('far', f'.* has {np.__version__}: install the same everywhere'),
          (host, f'{np.__version__} at the start of the run: files were '
           'changed during the run .resume with the same command., or the '
           'commands use different installations')):
        with self.assertRaisesRegex(
            errors.ConfigError, f'{name} has numpy 0.1, but {text}'):
          second.run([], None, (name, {**found, 'numpy': '0.1'}))

  def test_reports_go_to_the_first_learner(self):
    first, second = (learner_worker.LearnerWorker(
        config_lib.Config(), rank, '', '') for rank in range(2))
    for counts in {'workers': 1}, {'workers': 2}:
      second._reports.add(reports.Report(['a', 'b'], {1: counts}))
    first._reports.add(reports.Report(['c'], {}))
    first.add_report(second.take_report())
    self.assertEqual(first.take_report(), reports.Report(
        ['c', 'a', 'b', 'a', 'b'], {1: {'workers': 2}}))
    # Counts stay, episodes are told once.
    self.assertEqual(second.take_report(),
                     reports.Report([], {1: {'workers': 2}}))


def _task_error(cause):
  return ray.exceptions.RayTaskError('run', 'a traceback', cause)


class LearnersTest(parameterized.TestCase):
  """Two learners, whose processes answer as a test says."""

  def setUp(self):
    super().setUp()
    handles = [mock.Mock(), mock.Mock()]
    self.answers = {}  # To calls; those without one are not done.
    for rank, handle in enumerate(handles):
      for method in ('address', 'versions', 'run', 'output', 'stop',
                     'take_report', 'add_report'):
        getattr(handle, method).remote.return_value = f'{method} {rank}'
      self.answers[f'address {rank}'] = f'host:{rank}'
      self.answers[f'output {rank}'] = f'text of {rank}\n', 0.
      self.answers[f'add_report {rank}'] = None
    self.handles = handles

    def wait(calls, num_returns=1, timeout=None):
      del num_returns, timeout
      return ([call for call in calls if call in self.answers],
              [call for call in calls if call not in self.answers])

    def get(calls, timeout=None):
      del timeout
      if isinstance(calls, list):
        return [get(call) for call in calls]
      answer = self.answers.get(calls, ray.exceptions.GetTimeoutError())
      if isinstance(answer, ray.exceptions.RayTaskError):
        raise answer.as_instanceof_cause()  # As ray does.
      if isinstance(answer, Exception):
        raise answer
      return answer

    for name, replacement in (
        ('wait', wait), ('get', get), ('kill', mock.Mock())):
      patch = mock.patch.object(ray, name, replacement)
      patch.start()
      self.addCleanup(patch.stop)
    self.connection = mock.Mock(spec=cluster.Connection)
    self.connection.problem.return_value = ''
    self.connection.lost_for_s.return_value = 0.
    self.connection.now_s = time.monotonic
    config = config_lib.Config(
        num_actors=4, batch_size=4, ray_address='auto', num_learners=2,
        actor_timeout_s=2.)
    self.learners = learners.Learners(config, handles, self.connection)

  @parameterized.parameters(
      # One process has died, so that the other one raises some error.
      (_task_error(ValueError('No.')), ray.exceptions.RayActorError(),
       learners.LearnerLost, 'has died'),
      (ray.exceptions.RayActorError(), _task_error(ValueError('No.')),
       learners.LearnerLost, 'has died'),
      (_task_error(cluster.SumError('No.')), _task_error(
          errors.DivergedError('It is nan.')), errors.DivergedError, 'nan'),
      (_task_error(cluster.SumError('No.\nMore')), 0, learners.LearnerLost,
       r'has lost another learner \(No.\)$'),
      (0, _task_error(errors.ConfigError('Wrong.')), errors.ConfigError,
       'Wrong.'))
  def test_raises_the_first_cause(self, first, second, kind, text):
    self.answers |= {'run 0': first, 'run 1': second}
    with self.assertRaisesRegex(kind, text):
      self.learners.run_to_end(threading.Event())
    for handle in self.handles:
      self.assertEqual(handle.run.remote.call_args.args[2], 'versions 0')
    # What the second one reports goes to the first one.
    self.handles[0].add_report.remote.assert_called_with('take_report 1')
    self.handles[1].add_report.remote.assert_not_called()

  @parameterized.parameters(
      (_task_error(ValueError('No.')), 60.),
      (_task_error(cluster.SumError('No.')), 20.),
      (ray.exceptions.RayActorError(), 20.))
  def test_the_others_may_save_after_an_error(self, first, expected_s):
    self.answers['run 0'] = first
    with mock.patch.object(ray, 'wait', wraps=ray.wait) as wait, \
        contextlib.redirect_stderr(io.StringIO()), \
        self.assertRaises((ValueError, learners.LearnerLost)):
      self.learners.run_to_end(threading.Event())
    self.assertEqual(
        [call.kwargs['timeout'] for call in wait.call_args_list
         if call.args[0] == ['run 0', 'run 1']][-1], expected_s)

  @parameterized.parameters(
      (ValueError('No.'), True), (OSError(errno.ENOSPC, 'full', 'x'), False))
  def test_other_errors_have_the_traceback_of_the_learner(self, cause, is_said):
    self.answers |= {'run 0': _task_error(cause), 'run 1': 0}
    with contextlib.redirect_stderr(io.StringIO()) as output, \
        self.assertRaises(type(cause)) as caught:
      self.learners.run_to_end(threading.Event())
    self.assertIs(caught.exception, cause)
    self.assertEqual('a traceback' in output.getvalue(), is_said)

  def test_one_that_waits_for_another_does_not_hang(self):
    self.answers['output 0'] = '', 1e6  # It waits for a sum.
    self.connection.now_s = mock.Mock(side_effect=itertools.count(0., 70.))
    outputs = []

    def output():
      outputs.append(1)
      if len(outputs) == 20:
        self.answers |= {'run 0': 0, 'run 1': 0}
      return 'output 1'

    self.handles[1].output.remote.side_effect = output
    self.assertEqual(self.learners.run_to_end(threading.Event()), 0)
    self.assertGreaterEqual(len(outputs), 20)

  def test_all_hang(self):
    for rank in range(2):
      self.answers[f'output {rank}'] = '', 1e6
    self.connection.now_s = mock.Mock(side_effect=itertools.count(0., 9.))
    with self.assertRaisesRegex(
        learners.LearnerLost, r'no sign of life for 600 s \(--hang_timeout_s'):
      self.learners.run_to_end(threading.Event())

  def test_a_learner_that_does_not_end(self):
    self.connection.now_s = mock.Mock(side_effect=range(0, 2000, 9))
    stop = threading.Event()
    stop.set()
    with self.assertRaisesRegex(
        learners.LearnerLost, r'did not end within 600 s \(--hang_timeout_s'):
      self.learners.run_to_end(stop)

  def test_learners_save_if_nothing_can_be_printed(self):
    stopped = []

    def stop():
      stopped.append(1)
      self.answers |= {'run 0': 0, 'run 1': 0}  # They end as they are told.

    for handle in self.handles:
      handle.stop.remote.side_effect = stop
    full = mock.Mock()
    full.write.side_effect = OSError(errno.ENOSPC, 'No space left')
    with contextlib.redirect_stdout(full), \
        self.assertRaisesRegex(OSError, 'No space left'):
      self.learners.run_to_end(threading.Event())
    self.assertLen(stopped, 2)

  def _lose_the_cluster(self, for_s=0.1):
    self.connection.problem.return_value = 'The head is lost.'
    self.connection.lost_for_s.return_value = for_s
    # A driver that does not see it is ended.
    self.handles[0].output.remote.side_effect = ['output 0'] * 99

  def _end_when_stopped(self):
    def end():
      self.answers |= {'run 0': 0, 'run 1': 0}
    self.handles[1].stop.remote.side_effect = end

  def test_time_in_which_the_driver_is_stopped_is_no_silence(self):
    self._end_when_stopped()
    # No new sign of the learners comes.
    del self.answers['output 0'], self.answers['output 1']
    stop, is_closed, time_s = threading.Event(), threading.Event(), mock.Mock()
    is_closed.set()
    time_s.monotonic.return_value = 0.

    def wake_up():
      time_s.monotonic.return_value += 3600.
      stop.set()

    with mock.patch.object(cluster, 'time', time_s):
      self.connection.now_s = cluster.RunningClock(is_closed).now_s
      self.handles[0].output.remote.side_effect = wake_up
      self.assertEqual(self.learners.run_to_end(stop), 0)

  def test_a_sign_of_life_does_not_go_back(self):
    # The learner was stopped, too, and has not gone on yet.
    self.connection.now_s = mock.Mock(return_value=1000.)
    self.learners._sign_s = [0., 0.]
    for silent_s in .5, 700.:
      self.learners._outputs[0] = 'output 0'
      self.answers['output 0'] = '', silent_s
      self.learners._print(0)
    self.assertEqual(self.learners._sign_s[0], 999.5)

  @parameterized.parameters(False, True)
  def test_learners_save_if_the_cluster_is_lost(self, comes_back):
    self._lose_the_cluster()
    self._end_when_stopped()
    if comes_back:
      self.handles[0].stop.remote.side_effect = lambda: (
          self.connection.configure_mock(**{
              'problem.return_value': '', 'lost_for_s.return_value': 0.}))
    with self.assertRaisesRegex(
        errors.ClusterError, '^The head is lost. The same command resumes'):
      self.learners.run_to_end(threading.Event())
    self.handles[0].stop.remote.assert_called_once()

  def test_a_stop_while_the_cluster_is_lost_is_an_end_as_any_other(self):
    self._lose_the_cluster()
    self._end_when_stopped()
    stop = threading.Event()
    stop.set()
    self.assertEqual(self.learners.run_to_end(stop), 0)

  def test_learners_that_do_not_save_in_time(self):
    self._lose_the_cluster(learners._SAVE_TIMEOUT_S + 1)
    with self.assertRaisesRegex(errors.ClusterError, 'The head is lost.'):
      self.learners.run_to_end(threading.Event())

  def test_the_cluster_is_lost_before_there_are_learners(self):
    self._lose_the_cluster()
    del self.answers['address 1']
    with self.assertRaisesRegex(errors.ClusterError, 'The head is lost.'):
      self.learners.run_to_end(threading.Event())


class ConnectionTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    context = self.enter_context(
        mock.patch.object(ray, 'get_runtime_context')).return_value
    context.gcs_address = 'head:1'
    context.get_node_id.return_value = 'this'
    self.enter_context(mock.patch.dict(
        'os.environ', {'RAY_gcs_rpc_server_reconnect_timeout_s': '20'}))
    self.enter_context(mock.patch.object(cluster, '_WATCH_PERIOD_S', .01))
    self.time = self.enter_context(mock.patch.object(cluster, 'time'))
    self.time.monotonic.return_value = 0.
    self.may_answer = threading.Semaphore(0)  # The head, once.
    self.is_alive = True
    self.num_answers = 0

    def nodes():
      self.may_answer.acquire()
      self.num_answers += 1
      return [{'NodeID': 'other', 'Alive': not self.is_alive},
              {'NodeID': 'this', 'Alive': self.is_alive}]

    self.enter_context(mock.patch.object(ray, 'nodes', nodes))
    self.connection = cluster.Connection()
    self.addCleanup(self.connection.close)
    self.addCleanup(self.may_answer.release, 100)
    self.enter_context(mock.patch.object(cluster, '_CONNECT_TIMEOUT_S', .1))

  def _wait_until(self, now_s):
    """Lets time pass, in which the process runs."""
    while self.time.monotonic.return_value < now_s:
      self.time.monotonic.return_value = min(
          self.time.monotonic.return_value + 1., now_s)
      self.connection.lost_for_s()

  def _answer(self, now_s):
    """Lets the head answer; waits until this is noticed."""
    self._wait_until(now_s)
    num_answers = self.num_answers
    self.may_answer.release()
    while self.num_answers == num_answers:
      time.sleep(.001)
    while self.connection._seen_s != now_s:
      time.sleep(.001)

  def test_the_head_is_lost_after_half_of_what_ray_waits(self):
    self._wait_until(9.)
    self.assertEqual(self.connection.problem(), '')
    self._answer(9.)
    self._wait_until(18.)
    self.assertEqual(self.connection.lost_for_s(), 0.)
    self._wait_until(22.)
    self.assertEqual(self.connection.lost_for_s(), 3.)
    self.assertRegex(self.connection.problem(),
                     '^The head .*head:1, has not answered for 13 s ')
    self._answer(23.)  # It is back.
    self.assertEqual(self.connection.problem(), '')

  def test_time_in_which_this_process_is_stopped_does_not_count(self):
    self._answer(5.)
    self.time.monotonic.return_value = 105.  # Ctrl-Z, and `fg`.
    self.assertEqual(self.connection.problem(), '')
    self._wait_until(114.)
    self.assertEqual(self.connection.problem(), '')
    self._wait_until(117.)
    self.assertEqual(self.connection.lost_for_s(), 2.)
    self.time.monotonic.return_value = 999.
    self.assertEqual(self.connection.lost_for_s(), 2.)
    self.assertRegex(self.connection.problem(), ' for 12 s ')

  def test_wait_for_head(self):
    stop = threading.Event()
    self._answer(1.)
    self._wait_until(2.)
    with mock.patch.object(cluster, '_POLL_S', .01):
      waiting = threading.Thread(
          target=self.connection.wait_for_head, args=(stop,), daemon=True)
      waiting.start()
      waiting.join(.1)
      self.assertTrue(waiting.is_alive())
      self._answer(3.)
      waiting.join()
      self._wait_until(5.)
      stop.set()
      self.connection.wait_for_head(stop)
      self._wait_until(20.)  # It is lost.
      waiting = threading.Thread(
          target=self.connection.wait_for_head, args=(threading.Event(),),
          daemon=True)
      waiting.start()
      waiting.join(60)
      self.assertFalse(waiting.is_alive())

  def test_the_processes_of_this_machine_are_lost(self):
    self._answer(6.)
    self.assertEqual(self.connection.problem(), '')
    self.is_alive = False
    self._answer(8.)
    self._answer(8.5)  # So all is done with the answer before.
    self._wait_until(9.)
    self.assertEqual(self.connection.lost_for_s(), 1.)
    self.assertRegex(self.connection.problem(), "^ray's processes on .* have")
    self._answer(20.)
    self.assertEqual(self.connection.lost_for_s(), 12.)


class LeaveTest(absltest.TestCase):

  def test_a_head_that_hangs_is_not_waited_for(self):
    may_end = threading.Event()
    with mock.patch.object(ray, 'shutdown', may_end.wait), \
        mock.patch.object(cluster, '_LEAVE_TIMEOUT_S', .01):
      cluster.call_in_time(ray.shutdown)
    # The end of Python would wait for it, too, or crash.
    with mock.patch.object(console.os, '_exit') as end, \
        self.assertRaises(SystemExit):
      console.end_program(75)
    end.assert_called_once_with(75)
    may_end.set()


class TurnTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(
        hosts.tempfile, 'gettempdir', return_value=self.create_tempdir()))
    self.enter_context(mock.patch.object(hosts, '_POLL_S', .01))

  def test_one_after_another(self):
    active, most, stop = [], [], threading.Event()

    def start(number):
      with hosts._turn(stop):
        active.append(number)
        most.append(len(active))
        time.sleep(.05)
        active.remove(number)

    threads = [threading.Thread(target=start, args=[i]) for i in range(5)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(most, [1] * 5)

  def test_a_stop_ends_the_wait(self):
    stop = threading.Event()
    with hosts._turn(threading.Event()):
      threading.Timer(.1, stop.set).start()
      with hosts._turn(stop):
        self.assertTrue(stop.is_set())

  def test_a_file_of_another_user(self):
    path = os.path.join(hosts.tempfile.gettempdir(),
                        f'scalable_agent_ray_start_{os.getuid()}.lock')
    precious = self.create_tempfile(content='precious')
    os.symlink(precious.full_path, path)
    with hosts._turn(threading.Event()):
      pass
    self.assertEqual(precious.read_text(), 'precious')

  def test_ray_that_does_not_start(self):
    self.enter_context(mock.patch.dict(os.environ))
    self.enter_context(mock.patch.object(hosts, '_POLL_S', .01))
    which = self.enter_context(mock.patch.object(hosts.shutil, 'which'))
    which.return_value = '/bin/echo'
    with self.assertRaisesRegex(
        errors.ClusterError, 'could not be started on this host: .*--x'):
      with hosts._ray_node(threading.Event(), '--x'):
        pass
    which.return_value = None
    with self.assertRaisesRegex(
        errors.MissingDependencyError, r'no program ray: pip .*\[ray\]'):
      with hosts._ray_node(threading.Event()):
        pass


class RestartsTest(parameterized.TestCase):

  def test_others_may_wait_for_the_same_command(self):
    config = config_lib.Config(logdir=self.create_tempdir().full_path,
                               ray_address='local')
    nothing = lambda *args: contextlib.nullcontext()
    for error, num_goodbyes in ((errors.ClusterError('No room.'), 0),
                                (ValueError('A bug.'), 1)):
      with mock.patch.object(driver.cluster, 'connected', nothing), \
          mock.patch.object(driver.hosts, 'head', nothing), \
          mock.patch.object(driver.cluster, 'num_actor_workers',
                            side_effect=error), \
          mock.patch.object(driver.hosts, 'say_goodbye',
                            side_effect=ConnectionError()) as goodbye, \
          self.assertRaisesRegex(type(error), str(error)):
        driver.train(config)
      self.assertEqual(goodbye.call_count, num_goodbyes)

  @parameterized.parameters(2, 3)
  def test_a_start_that_takes_too_long_is_tried_again(self, num_failures):
    failures = [Exception('The current node timed out.')] * num_failures
    start = mock.Mock(side_effect=[*failures, None])
    with mock.patch.object(ray, 'shutdown') as shutdown:
      if num_failures == 2:
        cluster._start(start)
      else:
        with self.assertRaisesRegex(errors.ClusterError, 'timed out'):
          cluster._start(start)
    self.assertEqual(shutdown.call_count, num_failures)

  def test_more_workers_to_begin_than_there_are(self):
    config = config_lib.Config(
        num_actors=4, ray_address='auto', num_actor_workers=2,
        min_actor_workers=3)
    with self.assertRaisesRegex(
        errors.ConfigError, '^--min_actor_workers=3 must be at most the number '
        'of actor workers, 2'):
      driver._train(config, threading.Event())

  def test_other_errors_of_a_start_are_raised(self):
    with self.assertRaisesRegex(RuntimeError, 'twice'):
      cluster._start(mock.Mock(side_effect=RuntimeError('twice')))

  def test_the_first_error_is_said_in_the_end(self):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, ray_address='local',
        max_learner_restarts=2)
    causes = iter(['has died: No module x', 'has died', 'has died'])
    self.connection = mock.Mock(spec=cluster.Connection)
    self.connection.lost_for_s.return_value = 0.
    self.connection.now_s = time.monotonic

    def run_to_end(unused_self, unused_stop):
      raise learners.LearnerLost(next(causes))

    nothing = lambda *args: contextlib.nullcontext()
    with contextlib.ExitStack() as stack:
      for where, name, replacement in (
          (driver.cluster, 'connected', nothing),
          (driver.hosts, 'head', nothing),
          (driver.cluster, 'num_actor_workers', lambda config: 1),
          (driver.cluster, 'num_gpus_per_learner', lambda config: 0),
          (driver.learner_worker, 'start', lambda *args: []),
          (learners.Learners, '__init__', lambda *args: None),
          (driver.cluster, 'Connection', lambda: self.connection),
          (learners.Learners, 'run_to_end', run_to_end),
          (driver.cluster, '_LONGEST_PAUSE_S', 0.)):
        stack.enter_context(mock.patch.object(where, name, replacement))
      goodbye = stack.enter_context(
          mock.patch.object(driver.hosts, 'say_goodbye'))
      output = stack.enter_context(
          contextlib.redirect_stdout(io.StringIO()))
      with self.assertRaisesRegex(
          errors.LearnerLostError, '^The learner has died: No module x. '
          'There was no newer checkpoint after --max_learner_restarts=2 '
          'restarts. The same'):
        driver.train(config)
    self.assertEqual(output.getvalue().count('Restarting'), 2)
    goodbye.assert_called_once()


# See `mutations.py`.
MUTATIONS = (
    dict(file='distributed/hosts', catches='TurnTest.test_one_after_another',
         rows=(
        ('actors of one host start ray at once', 'except BlockingIOError:',
         'except OSError:\n          break\n        except BlockingIOError:'),
    )),
    dict(file='distributed/learners',
         catches='test_a_sign_of_life_does_not_go_back', rows=(
        ('a sign of life goes back',
         'self._sign_s[rank], self._connection.now_s()',
         '-1e9, self._connection.now_s()'),
    )),
    dict(file='distributed/cluster',
         catches='test_the_head_is_lost_after_half_of_what_ray_waits', rows=(
        ('the head is lost at once', 'self._seen_s + self._limit_s if',
         'self._seen_s if'),
        ('ray has its own patience',
         'os.environ.get(_HEAD_TIMEOUT_VARIABLE, _HEAD_TIMEOUT_S)',
         '_HEAD_TIMEOUT_S'),
    )),
    dict(file='distributed/cluster',
         catches='test_time_in_which_this_process_is_stopped_does_not_count',
         rows=(
        ('time in which the driver is stopped counts',
         'if now_s - self._last_s > _LATE_TICK_S:', 'if False:'),
    )),
    dict(file='distributed/cluster',
         catches='test_time_in_which_the_driver_is_stopped_is_no_silence',
         rows=(
        ('time in which the driver is stopped is silence',
         'return now_s - self._stopped_s', 'return now_s'),
    )),
    dict(file='distributed/cluster',
         catches='test_the_processes_of_this_machine_are_lost', rows=(
        ('the time of the loss moves on',
         '      if self._died_s is None and not', '      if not'),
        ('any machine is this one', " and node['NodeID'] == self._node", ''),
    )),
    dict(file='distributed/cluster', catches='test_wait_for_head', rows=(
        ('nobody waits for the head', 'while self._seen_s < begin_s and',
         'while False and'),
        ('a head that is lost is waited for',
         ' and not self.problem():\n'
         '      if stop',
         ':\n'
         '      if stop'),
    )),
    dict(file='distributed/cluster',
         catches='test_a_head_that_hangs_is_not_waited_for', rows=(
        ('a head that hangs is waited for at the end',
         "threads.LibraryThread(function, 'leave')",
         'threading.Thread(target=function, daemon=True)'),
    )),
    dict(file='distributed/cluster',
         catches='test_a_start_that_takes_too_long_is_tried_again', rows=(
        ('a start is tried once', 'range(_NUM_STARTS)', 'range(1)'),
    )),
    dict(file='distributed/driver',
         catches='test_more_workers_to_begin_than_there_are', rows=(
        ('more workers to begin than there are',
         'if config.min_actor_workers > num_workers:', 'if False:'),
    )),
    dict(file='distributed/learners',
         catches='test_other_errors_have_the_traceback_of_the_learner', rows=(
        ('tracebacks of learners are lost',
         '      print(failure, file=sys.stderr, flush=True)',
         '      pass'),
    )),
    dict(file='distributed/learners',
         catches='test_raises_the_first_cause', rows=(
        ("the first learner's error, not the first cause",
         'key=lambda e: _order(_cause(e))', 'key=lambda e: 0'),
    )),
    dict(file='distributed/learners',
         catches='test_one_that_waits_for_another_does_not_hang', rows=(
        ('one that waits for another one hangs', 'now_s - max(self._sign_s)',
         'now_s - min(self._sign_s)'),
    )),
    dict(file='distributed/learners',
         catches='test_learners_save_if_the_cluster_is_lost', rows=(
        ('a lost cluster is an end as any other',
         '      if problem:\n'
         '        raise',
         '      if False:\n'
         '        raise'),
        ('nobody looks after the cluster',
         "'' if stop.is_set() else self._connection.problem()", "''"),
    )),
    dict(file='distributed/learners',
         catches='test_learners_that_do_not_save_in_time', rows=(
        ('learners may save for ever when the cluster is lost',
         '    check_cluster(self._connection, _SAVE_TIMEOUT_S)\n', ''),
    )),
    dict(file='distributed/learners',
         catches='test_the_cluster_is_lost_before_there_are_learners', rows=(
        ('learners are waited for when the cluster is lost',
         '      check_cluster(self._connection)\n'
         '      if self',
         '      if self'),
    )),
    dict(file='distributed/learners',
         catches='test_time_in_which_the_driver_is_stopped_is_no_silence',
         rows=(
        ('silence while the driver is stopped counts',
         'now_s = self._connection.now_s()',
         'now_s = __import__("time").monotonic()'),
    )),
    dict(file='distributed/learner_worker',
         catches='test_the_directory_must_be_shared', rows=(
        ('directories that are not shared',
         '    if not os.path.exists(self._token):', '    if False:'),
    )),
    dict(file='distributed/learner_worker',
         catches='test_all_learners_have_the_same_versions', rows=(
        ('versions are not compared',
         '    descriptions.check_versions(*first)\n', ''),
    )),
    dict(file='distributed/cluster',
         catches='NumActorWorkersTest.test_each_worker_fits_on_a_machine1',
         rows=(
        ('workers over several machines',
         'sum(n // config.num_cpus_per_actor_worker for n in cpus)',
         'sum(cpus) // config.num_cpus_per_actor_worker'),
    )),
    dict(file='distributed/learners',
         catches='test_the_others_may_save_after_an_error0', rows=(
        ('no time to save after an error',
         'if failure and _order(_cause(failure)) == 1', 'if False'),
    )),
    dict(file='distributed/learners',
         catches='test_a_learner_that_does_not_end', rows=(
        ('learners that do not end', 'stopping_s > save_s:',
         'stopping_s > 1e9:'),
    )),
    dict(file='distributed/hosts', catches='test_a_file_of_another_user',
         rows=(
        ('links are followed', ', opener=files.no_link', ''),
    )),
    dict(file='runs/reports',
         catches='test_reports_go_to_the_first_learner', rows=(
        ('episodes are told again', 'self.episodes.popleft()',
         'self.episodes[0]'),
        ('counts are told once', 'dict(self.counts))', '{})'),
        ('episodes are told in another order', 'self.episodes.extend(',
         'self.episodes.extendleft('),
        ('counts of before', 'self.counts |= report.counts',
         'self.counts = report.counts | self.counts'),
    )),
)


if __name__ == '__main__':
  absltest.main()
