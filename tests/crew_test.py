# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of what a crew does with its workers, with a clock of their own.

In place of ray, there is an object that answers calls as a test says.
"""

from collections.abc import Callable
import threading
from typing import Any
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.settings import config as config_lib

ray = pytest.importorskip('ray')
from scalable_agent.distributed import central_actors
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import workers

_SPEC = structs.EnvironmentSpec(
    structs.ArraySpec((1,), np.dtype(np.float32)), structs.ActionSpec((2,)), 1)
_DESCRIPTION = descriptions.Description(_SPEC, 1, 'host', 7, {})
_DEATH = ray.exceptions.RayActorError()


def _task_error(cause):
  return ray.exceptions.RayTaskError('open', 'a traceback', cause)


class _Call:
  """A call of a method, which is not answered at first."""

  def __init__(self, handle, name):
    self.handle, self.name = handle, name


class _Handle:
  """A process; `handle.method.remote()` is a call."""

  def __init__(self, share):
    self.share = share

  def __getattr__(self, name):
    return mock.Mock(remote=lambda *args: _Call(self, name))


class _Ray:
  """What a crew needs of ray, and of time.

  Attributes:
    answer: takes a call; returns its result, an error, or None if it is not
      done.
    is_elsewhere: takes a call; whether its result is on another machine.
    now_s: the time.
    handles: of all processes that were started, in this order.
  """
  exceptions = ray.exceptions

  def __init__(self):
    self.answer: Callable[[_Call], Any] = lambda call: None
    self.is_elsewhere: Callable[[_Call], bool] = lambda call: False
    self.now_s = 0.
    self.handles: list[_Handle] = []

  def make(self, share):
    self.handles.append(_Handle(share))
    return self.handles[-1]

  def wait(self, calls, num_returns=1, timeout=0., fetch_local=True):
    del num_returns
    is_done = lambda call: self.answer(call) is not None or (
        not fetch_local and self.is_elsewhere(call))
    done = [call for call in calls if is_done(call)]
    self.now_s += .05 if done else timeout
    return done, [call for call in calls if call not in done]

  def get(self, call):
    result = self.answer(call)
    if isinstance(result, Exception):
      raise result
    return result

  def kill(self, handle):
    pass

  def cluster_resources(self):
    return {'CPU': 4.}

  available_resources = cluster_resources

  def monotonic(self):
    if self.now_s > 1e5:
      raise AssertionError('It waits for ever.')
    return self.now_s

  def sleep(self, seconds):
    self.now_s += seconds


def _opened(call):
  """Answers as workers that start and make nothing."""
  return {'host': 'a_host', 'open': _DESCRIPTION}.get(call.name)


class CrewTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.ray = _Ray()
    self.lines: list[str] = []
    clock = mock.Mock(now_s=self.ray.monotonic)
    self.clock = mock.patch.object(cluster, 'RunningClock', lambda _: clock)
    for patch in (mock.patch.object(crew, 'ray', self.ray), self.clock,
                  mock.patch.object(crew, 'time', self.ray),
                  mock.patch.object(descriptions, 'check_versions'),
                  mock.patch.object(workers, 'ray', self.ray),
                  mock.patch.object(cluster, 'ray', self.ray)):
      patch.start()
      self.addCleanup(patch.stop)

  def _crew(self, **settings):
    config = config_lib.Config(**{
        'level_name': 'catch', 'num_actors': 4, 'ray_address': 'auto',
        'num_actor_workers': 2, 'min_actor_workers': 2, 'actor_timeout_s': 50.,
        'hang_timeout_s': 20., **settings})
    return crew.Crew(config, 0, 1, self.ray.make, self.lines.append)

  def _advance(self, the_crew, seconds):
    """Lets time pass; workers that are ready get a call at once."""

    def take(worker, result):
      if not isinstance(result, descriptions.Description):
        the_crew.record_result(worker)
      the_crew.record_call(worker, worker.handle.act.remote())

    end_s = self.ray.now_s + seconds
    while self.ray.now_s < end_s:
      the_crew.advance(take)

  def test_starts_all_workers(self):
    self.ray.answer = _opened
    the_crew = self._crew()
    the_crew.wait_until_ready(threading.Event())
    self.assertEqual([w.share.environments for w in the_crew.workers],
                     [range(2), range(2, 4)])
    self.assertEqual(the_crew.counts(),
                     {'workers': 2, 'wanted': 2, 'restarts': 0})
    self.assertEmpty(self.lines)

  @parameterized.product(num_workers=(3, 4, 5, 8), rank=(0, 1, 2))
  def test_shares_of_learners_do_not_depend_on_the_workers(
      self, num_workers, rank):
    config = config_lib.Config(
        level_name='catch', num_actors=8, ray_address='auto', num_learners=3,
        batch_size=3, num_actor_workers=num_workers)
    the_crew = crew.Crew(config, rank, 3, self.ray.make)
    self.assertEqual(
        the_crew.environments, (range(3), range(3, 6), range(6, 8))[rank])
    shares = [worker.share for worker in the_crew.workers]
    self.assertEqual(
        [number for share in shares for number in share.environments],
        [*the_crew.environments])
    self.assertTrue(all(share.environments for share in shares))
    first = sum(-(-(num_workers - other) // 3) for other in range(rank))
    self.assertEqual([share.worker for share in shares],
                     [first + i for i in range(-(-(num_workers - rank) // 3))])

  def test_ends_if_too_few_have_room(self):
    self.ray.answer = lambda call: (
        _opened(call) if call.handle.share.worker == 0 else None)
    with self.assertRaisesRegex(
        errors.ClusterError, '1 of 2 actor workers that a start needs .* are '
        r'ready, and no further worker came within 50 s '
        r'\(--actor_timeout_s\)\. 3 workers are wanted, .* has 4 CPUs, of '
        'which 4 are free.$'):
      self._crew(num_actor_workers=3).wait_until_ready(None)
    self.assertEqual(self.lines, [
        'Waiting for actor workers: 1 of 2 are ready (the cluster has 4 CPUs, '
        'of which 4 are free).'])
    self.assertLess(self.ray.now_s, 60)

  def test_ends_if_none_has_room(self):
    with self.assertRaisesRegex(
        errors.ClusterError, 'No actor worker was ready for 50 s'):
      self._crew().wait_until_ready(None)

  def test_goes_on_with_fewer_and_waits_for_room(self):
    self.ray.answer = lambda call: (
        _opened(call) if call.handle.share.worker == 0 else None)
    the_crew = self._crew(min_actor_workers=1, hang_timeout_s=1e6)
    the_crew.wait_until_ready(None)
    self._advance(the_crew, 500)
    self.assertLen(self.ray.handles, 2)  # It may wait as long as it likes.
    self.ray.answer = _opened
    self._advance(the_crew, 1)
    self.assertEqual(the_crew.counts()['workers'], 2)

  @parameterized.parameters(('catch', 20), ('rooms_watermaze', 80))
  def test_the_first_unroll_has_time_to_compile(self, level_name, limit_s):
    # 60 s for each of two environments, on two CPUs.
    the_crew = self._crew(level_name=level_name)
    [worker, _] = the_crew.workers
    worker.description = _DESCRIPTION
    self.assertEqual(the_crew.limit_s(worker), limit_s)
    the_crew.record_result(worker)
    self.assertEqual(the_crew.limit_s(worker), 20)
    the_crew._replace(worker, 'lost', 0.)
    worker.description = _DESCRIPTION
    self.assertEqual(the_crew.limit_s(worker), limit_s)

  def test_waits_are_finite(self):  # ray cannot wait for ever.
    the_crew = self._crew(actor_timeout_s=float('inf'))
    self.assertEqual(the_crew.limit_s(the_crew.workers[0]), 1e6)

  @parameterized.parameters(('catch', 20), ('rooms_watermaze', 80))
  def test_central_inference_has_the_same_patience(self, level_name, limit_s):
    the_crew = self._crew(level_name=level_name)
    the_crew._first = [_DESCRIPTION]
    worker = the_crew.workers[0]
    worker.description, worker.handle = _DESCRIPTION, self.ray.make(None)
    vector = central_actors.RemoteVector(
        the_crew, worker, 0, the_crew._config, threading.Event())
    with mock.patch.object(central_actors.ray, 'get') as get:
      vector.initial()
      self.assertEqual(get.call_args.kwargs, {'timeout': limit_s})
      the_crew.record_result(worker)
      vector.step(None)
    self.assertEqual(get.call_args.kwargs, {'timeout': 20})

  def test_replaces_a_worker_that_hangs_while_it_opens(self):
    # There is time for another one before the start is given up.
    self.ray.answer = lambda call: (
        'a_host' if call.name == 'host' else
        _DESCRIPTION if call.handle is not self.ray.handles[1]
        and call.name == 'open' else None)
    the_crew = self._crew(hang_timeout_s=1.)
    the_crew.wait_until_ready(None)
    self.assertBetween(self.ray.now_s, 25, 28)
    self.assertEqual(the_crew.counts(),
                     {'workers': 2, 'wanted': 2, 'restarts': 1})
    self.assertEqual(self.lines[1:], [
        'Actor worker 1 on a_host is replaced: it has not opened its '
        'environments within 25 s (half of --actor_timeout_s).'])
    self.assertEqual(self.ray.handles[2].share.incarnation, 1)

  @parameterized.parameters(True, False)
  def test_a_result_on_its_way_is_no_hang(self, is_elsewhere):
    self.ray.answer = _opened
    self.ray.is_elsewhere = lambda call: (
        is_elsewhere and call.name == 'act')
    the_crew = self._crew()
    self._advance(the_crew, 19)
    self.assertLen(self.ray.handles, 2)
    self._advance(the_crew, 5)
    self.assertLen(self.ray.handles, 2 if is_elsewhere else 4)

  def test_time_in_which_the_program_is_stopped_is_no_hang(self):
    self.clock.stop()
    self.enter_context(mock.patch.object(cluster, 'time', self.ray))
    self.ray.answer = _opened
    the_crew = self._crew()
    self.addCleanup(the_crew.close)
    self._advance(the_crew, 10)
    self.ray.now_s += 3600  # As after Ctrl-Z.
    self._advance(the_crew, 5)
    self.assertLen(self.ray.handles, 2)
    self._advance(the_crew, 10)
    self.assertLen(self.ray.handles, 4)

  def test_deaths_of_one_worker_do_not_end_the_run(self):
    # The other one dies at times, too.
    self.ray.answer = lambda call: (
        _opened(call) if call.name != 'act' else
        _DEATH if call.handle.share.worker == 1 or self.ray.now_s % 400 > 398
        else 1 if self.ray.now_s % 5 < 1 else None)
    the_crew = self._crew()
    self._advance(the_crew, 2000)
    self.assertGreater(the_crew.num_restarts, 2 * crew._MAX_DEATHS)
    # 60 s are between the last ones.
    self.assertLess(the_crew.num_restarts, 2000 / 60 + 30)
    self.assertEqual(
        self.lines[0], 'Actor worker 1 (process 7 of host) is replaced: it has '
        'died.')

  def test_deaths_of_all_workers_end_the_run(self):
    self.ray.answer = lambda call: (
        _DEATH if call.name == 'act' else _opened(call))
    with self.assertRaisesRegex(
        errors.ClusterError, 'was lost 10 times without a result of any '
        'worker in between: it has died.'):
      self._advance(self._crew(actor_timeout_s=600.), 2000)

  def test_hangs_of_all_workers_end_the_run(self):
    self.ray.answer = _opened
    with self.assertRaisesRegex(
        errors.ClusterError, r'^Actor worker \d \(process 7 of host\) was lost '
        '10 times without a result of any worker in between: it made nothing '
        'for 20 s'):
      self._advance(self._crew(actor_timeout_s=600.), 2000)

  def test_says_which_machine_lacks_a_package(self):
    missing = _task_error(errors.MissingDependencyError('pip install it.'))
    self.ray.answer = lambda call: (
        missing if call.name == 'open' and call.handle.share.worker == 1
        else _opened(call))
    with self.assertRaisesRegex(errors.MissingDependencyError, 'pip install'):
      self._crew().wait_until_ready(None)
    self.assertEqual(self.lines, ['Actor worker 1 on a_host ends the run.'])

  def test_a_lost_process_of_an_environment_is_a_death(self):
    lost = _task_error(errors.EnvironmentProcessLostError('It is lost.'))
    self.ray.answer = lambda call: (
        lost if call.handle.share.worker == 1 and call.name == 'act'
        else _opened(call))
    the_crew = self._crew(max_environment_restarts=1, hang_timeout_s=1e6)
    self._advance(the_crew, 100)
    self.assertGreater(the_crew.num_restarts, 4)
    self.assertEndsWith(self.lines[0], 'is replaced: It is lost.')
    # As on one machine, a broken environment is nothing to try again later.
    with self.assertRaisesRegex(
        errors.EnvironmentProcessLostError, 'lost 10 times .*: It is lost.'):
      self._advance(the_crew, 1000)

  def test_says_the_last_loss_if_there_is_no_other_worker(self):
    # Its environments cannot be opened, and ray's pauses are long.
    self.ray.answer = lambda call: (
        _DEATH if call.name == 'open' else _opened(call))
    with self.assertRaisesRegex(
        errors.ClusterError,
        '^No actor worker was ready for 50 s .* free. The last lost '
        'worker: it has died.'):
      self._crew().wait_until_ready(None)

  @parameterized.parameters(
      (errors.EnvironmentProcessError('It is wrong.'), 3, 10),
      (errors.EnvironmentProcessError('It is wrong.'), 2, 1),
      (ValueError('It is wrong.'), 3, 10),
      (ValueError('It is wrong.'), 2, 1),
      (errors.UnknownLevelError('It is wrong.'), 1, 10))
  def test_errors_end_the_run(self, error, num_starts, max_restarts):
    self.ray.answer = lambda call: (
        _task_error(error) if call.name == 'open' else _opened(call))
    the_crew = self._crew(
        num_actor_workers=1, min_actor_workers=1,
        max_environment_restarts=max_restarts)
    with self.assertRaisesRegex(type(error), 'It is wrong'):
      the_crew.wait_until_ready(None)
    self.assertLen(self.ray.handles, num_starts)
    # Where it was raised: others say it themselves.
    self.assertEqual(any('a traceback' in line for line in self.lines),
                     not isinstance(error, errors.UserError))

  @parameterized.parameters(
      dict(action=structs.ActionSpec((3,))), dict(units={'action': 'other'}))
  def test_workers_with_other_levels_end_the_run(self, **changes):
    other = _DESCRIPTION._replace(spec=_SPEC._replace(**changes))
    self.ray.answer = lambda call: (
        other if call.name == 'open' and call.handle is self.ray.handles[1]
        else _opened(call))
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                'actor workers have different'):
      self._crew().wait_until_ready(None)


class ConnectionTest(parameterized.TestCase):

  @parameterized.parameters(
      ConnectionError('No.'), ray.exceptions.RpcError('No.'),
      ray.exceptions.AuthenticationError('No.'))
  def test_what_ray_raises_is_a_wrong_setting(self, error):
    with mock.patch.object(ray, 'init', side_effect=error), \
        self.assertRaisesRegex(errors.ConfigError, '--ray_address=auto: .*No.'):
      with cluster.connected(config_lib.Config(ray_address='auto')):
        pass


class WhyLostTest(parameterized.TestCase):

  @parameterized.parameters(
      ('It died.\nWorker exit detail: Worker unexpectedly exits with a '
       'connection error code 2.', 'has died'),
      ('It died.\n', 'has died'),
      ('It died. Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: 1 '
       'worker(s) were killed due to the node running low on memory. \nMemory',
       'has died: 1 worker(s) were killed due to the node running low on '
       'memory'),
      ('The actor died unexpectedly before finishing this task.\nThe actor '
       'died because its node has died. Node Id: 1',
       'has died with its machine'),
      ('The actor died because of an error raised in its creation task, \n  '
       'File x\nImportError: no module.', 'has died: ImportError: no module'))
  def test_of_actors(self, text, expected):
    self.assertEqual(cluster.why_lost(
        ray.exceptions.RayActorError(error_msg=text)), expected)

  def test_of_others(self):
    self.assertEqual(cluster.why_lost(ray.exceptions.NodeDiedError('x')),
                     'has died with its machine')
    self.assertEqual(cluster.why_lost(ray.exceptions.ObjectLostError(
        '1' * 56, None, 'call')), 'has died with its machine')
    self.assertEqual(cluster.why_lost(ray.exceptions.RpcError('No.\n\n')),
                     'was lost: No')
    self.assertEqual(cluster.why_lost(ray.exceptions.RuntimeEnvSetupError(
        'No space.\nmore')),
                     'was lost: Failed to set up runtime environment. No space')


# See `mutations.py`.
MUTATIONS = (
    dict(file='distributed/crew',
         catches='test_workers_with_other_levels_end_the_run', rows=(
        ('bounds of actions may differ', 'if description.spec != self.spec:',
         'if description.spec._replace(units=self.spec.units) != self.spec:'),
    )),
    dict(file='distributed/crew', catches=(
        'test_time_in_which_the_program_is_stopped_is_no_hang'), rows=(
        ('time in which the program is stopped counts',
         'cluster.RunningClock(self._is_closed)',
         "type('Clock', (), {'now_s': lambda _: time.monotonic()})()"),
    )),
    dict(file='distributed/crew',
         catches='test_shares_of_learners_do_not_depend_on_the_workers3',
         rows=(
        ('environments divided by workers first',
         'range(config.num_actors), num_learners)[rank]',
         'range(config.num_actors), config.num_actor_workers)[rank]'),
    )),
    dict(file='distributed/crew', catches='test_waits_are_finite', rows=(
        ('a worker may open without an end',
         '                 cluster.LONGEST_WAIT_S)\n', "float('inf'))\n"),
    )),
    dict(file='distributed/crew',
         catches='test_ends_if_too_few_have_room', rows=(
        ('the user is never told what is waited for',
         'elif is_quiet and now_s - begin_s > _QUIET_S:', 'elif False:'),
        ('a start with too few workers waits for ever',
         'elif now_s - newest_s > self._config.actor_timeout_s:',
         'elif False:'),
    )),
    dict(file='distributed/crew',
         catches='test_goes_on_with_fewer_and_waits_for_room', rows=(
        ('a worker that waits for room counts as hung', '(worker.is_placed\n',
         '(True\n'),
    )),
    dict(file='distributed/crew',
         catches='test_the_first_unroll_has_time_to_compile', rows=(
        ('first unrolls have no time for maps', 'else cluster.maps_s(',
         'else 0 * cluster.maps_s('),
        ('all unrolls have time for maps', 'if worker.has_acted else',
         'if False else'),
    )),
    dict(file='distributed/central_actors',
         catches='test_central_inference_has_the_same_patience', rows=(
        ('a group has no time for maps',
         'timeout=self._crew.limit_s(self._worker)',
         'timeout=self._crew._config.hang_timeout_s'),
    )),
    dict(file='distributed/crew',
         catches='test_replaces_a_worker_that_hangs_while_it_opens', rows=(
        ('a worker has no time to open',
         'min(_OPENING_SHARE * config.actor_timeout_s,',
         'min(config.hang_timeout_s,'),
        ('a worker may open as long as all have to come',
         '_OPENING_SHARE = 0.5', '_OPENING_SHARE = 1.0'),
        ('a worker that was replaced counts as placed',
         'worker.description, worker.is_placed = None, False',
         'worker.description = None'),
        ('the same seeds after a restart',
         'incarnation=worker.share.incarnation + 1',
         'incarnation=worker.share.incarnation'),
    )),
    dict(file='distributed/crew',
         catches='test_a_result_on_its_way_is_no_hang', rows=(
        ('a result on its way counts as hung',
         'and not ray.wait([call], timeout=0, fetch_local=False)[0]', ''),
    )),
    dict(file='distributed/crew',
         catches='test_a_lost_process_of_an_environment_is_a_death', rows=(
        ('a lost environment is an error',
         'isinstance(error.cause, errors.EnvironmentProcessLostError)',
         'False'),
        ('a lost environment ends the run as a lost worker',
         'raise type(error)(', 'raise errors.ClusterError('),
        ('no pause after deaths', 'cluster.pause_s(worker.num_deaths)', '0.'),
    )),
    dict(file='distributed/crew',
         catches='test_deaths_of_one_worker_do_not_end_the_run', rows=(
        ('a worker that dies ends the run while others act',
         '      any_worker.num_deaths_of_all = 0',
         '      worker.num_deaths_of_all = 0'),
    )),
    dict(file='distributed/crew',
         catches='test_deaths_of_all_workers_end_the_run', rows=(
        ('deaths of all are not counted', 'worker.num_deaths_of_all += 1',
         'worker.num_deaths_of_all += 0'),
    )),
    dict(file='distributed/crew',
         catches='test_says_the_last_loss_if_there_is_no_other_worker', rows=(
        ('the last loss is not said', "self._last_loss = f' The", "_ = f' The"),
    )),
    dict(file='distributed/crew', catches='test_errors_end_the_run', rows=(
        ('errors of users are tried again', 'is_final or worker.num_failures',
         'worker.num_failures'),
        ('errors within an hour are not counted',
         'if num_recent > worker.failures.max_per_hour:', 'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
