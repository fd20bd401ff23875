# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The worker processes of a learner, in a ray cluster. Without TensorFlow.

Workers start wherever the cluster has free CPUs. A worker that dies, hangs or
raises an error is replaced by a process with the same environments and new
seeds.
"""

from collections.abc import Callable
import queue
import threading
import time
import traceback
from typing import Any

import ray
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.distributed import cluster
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import workers as workers_lib
from scalable_agent.experience import structs
from scalable_agent.settings import config as config_lib

# Consecutive errors of a worker, without a result in between, that end the run.
_MAX_FAILURES = 3
# Deaths and hangs of a worker that end the run, without any worker's result.
_MAX_DEATHS = 10
# Share of --actor_timeout_s for opening environments; leaves time for a
# replacement.
_OPENING_SHARE = 0.5
_POLL_S = 0.5
_QUIET_S = 20.  # Time until the user reads that the start waits for workers.


class Stopped(Exception):
  """The run was stopped before the workers were ready."""


class Crew:
  """The workers of a learner, in the order of their environments.

  One thread calls `advance` repeatedly; any thread may call other methods.
  """

  def __init__(self, config: config_lib.Config, rank: int, num_learners: int,
               make_worker: Callable[[interface.Share], ray.actor.ActorHandle],
               say: Callable[[str], None] = print):
    """Creates a crew; `wait_until_ready` starts the workers.

    Args:
      config: the settings of the whole run; `num_actor_workers` is not 0.
      num_learners: number of learners that share the environments.
      make_worker: starts a process with a share of the environments. The
        process's method `host` returns the name of the machine, and `open`
        returns a `Description`.
      say: takes lines of text for the user.
    """
    self._config = config
    self._num_learners = num_learners
    self._make_worker = make_worker
    self._say = say
    self._calls: dict[ray.ObjectRef, workers_lib.Worker] = {}
    self._reports: queue.SimpleQueue[tuple[
        workers_lib.Worker, ray.actor.ActorHandle, ray.exceptions.RayError]] = (
            queue.SimpleQueue())
    # The description of the first worker; empty at first.
    self._first: list[descriptions.Description] = []
    self._is_closed = threading.Event()
    self._clock = cluster.RunningClock(self._is_closed)
    self._ready_s = self._clock.now_s()  # Last time when a worker was ready.
    self._last_loss = ''  # Why a worker was last replaced.
    self.num_restarts = 0
    # The share of a learner does not depend on the number of workers, which may
    # differ when a run is resumed: a saved replay has a row per environment.
    of_learner = environments.split(
        range(config.num_actors), num_learners)[rank]
    mine = environments.split(
        range(config.num_actor_workers), num_learners)[rank]
    self.workers = [
        workers_lib.Worker(
            interface.Share(numbers, i),
            environments.Restarts(config.max_environment_restarts))
        for i, numbers in zip(
            mine, environments.split(of_learner, len(mine)), strict=True)]

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """The spec of the environments."""
    return self._first[0].spec

  @property
  def num_groups(self) -> int:
    """The number of groups of environments of each worker."""
    return self._first[0].num_groups

  @property
  def environments(self) -> range:
    """The consecutive numbers of all environments."""
    return range(self.workers[0].share.environments.start,
                 self.workers[-1].share.environments.stop)

  def ready(self) -> list[workers_lib.Worker]:
    """Returns the workers that have started."""
    return [w for w in self.workers if w.description is not None]

  def counts(self) -> dict[str, int]:
    """Returns counts of the workers and their restarts, by name."""
    return {'workers': len(self.ready()), 'wanted': len(self.workers),
            'restarts': self.num_restarts}

  def wait_until_ready(self, stop: threading.Event | None) -> None:
    """Starts the workers; waits for `config.min_actor_workers` of them.

    Raises:
      Stopped: `stop` was set during the wait.
      ConfigError: the settings are wrong.
      errors.ClusterError: the workers were not ready in time.
    """
    num_wanted = min(-(-self._config.min_actor_workers // self._num_learners),
                     len(self.workers))
    begin_s = newest_s = self._clock.now_s()  # Time of the newest ready worker.
    is_quiet = True
    try:
      while (num_ready := len(self.ready())) < num_wanted:
        if stop and stop.is_set():
          raise Stopped()
        self.advance()
        now_s = self._clock.now_s()
        if len(self.ready()) > num_ready:
          newest_s = now_s
        elif now_s - newest_s > self._config.actor_timeout_s:
          raise self._too_few_error(num_wanted)
        elif is_quiet and now_s - begin_s > _QUIET_S:
          is_quiet = False
          self._say(f'Waiting for actor workers: {num_ready} of {num_wanted} '
                    f'are ready ({cluster.free_cpus()}).')
    except BaseException:
      self.close()
      raise

  def record_result(self, worker: workers_lib.Worker) -> None:
    """Records a result of a worker: resets counts of consecutive failures."""
    worker.num_failures = worker.num_deaths = 0
    worker.has_acted = True
    for any_worker in self.workers:
      any_worker.num_deaths_of_all = 0

  def record_call(self, worker: workers_lib.Worker,
                  call: ray.ObjectRef) -> None:
    """Records a call of a worker; `advance` takes the result."""
    worker.call_s = self._clock.now_s()
    self._calls[call] = worker

  def report(self, worker: workers_lib.Worker, handle: ray.actor.ActorHandle,
             error: ray.exceptions.RayError) -> None:
    """Records a failed call that was not registered with `record_call`.

    `handle` is the process that was called; a process is replaced once. `error`
    is the error that `ray.get` raised.
    """
    self._reports.put((worker, handle, error))

  def advance(self, take: Callable[[workers_lib.Worker, Any], None] = (
      lambda worker, result: None)) -> None:
    """Starts workers that are due; waits a moment for results and errors.

    `take` gets a worker and its result; the first result is a `Description`.

    Raises:
      UserError: a worker does not fit, or workers are lost too often.
      Exception: the error of an environment that has failed too often.
    """
    now_s = self._clock.now_s()
    for worker in self.workers:
      if worker.handle is None and worker.start_s <= now_s:
        worker.handle = self._make_worker(worker.share)
        # The process may wait for CPUs for any time.
        self.record_call(worker, worker.handle.host.remote())
    # All results are fetched before a worker counts as hung.
    calls = list(self._calls)
    done, waiting = self._wait(calls)
    self._check_time(now_s, waiting)
    for call in done:
      worker = self._calls.pop(call)
      try:
        result = ray.get(call)
      except ray.exceptions.RayError as e:
        self._replace_failed(worker, e)
        continue
      if not worker.is_placed:
        worker.host = str(result)
        self._open(worker)
        continue
      self._ready_s = self._clock.now_s()
      if isinstance(result, descriptions.Description):
        self._check(result)
        worker.description = result
      take(worker, result)

  def _open(self, worker: workers_lib.Worker) -> None:
    assert worker.handle is not None
    worker.is_placed = True
    self.record_call(worker, worker.handle.open.remote())

  def _wait(self, calls: list[ray.ObjectRef]
            ) -> tuple[list[ray.ObjectRef], list[ray.ObjectRef]]:
    """Waits a moment; returns the finished and the unfinished calls."""
    while not self._reports.empty():
      worker, handle, error = self._reports.get()
      if worker.handle is handle:  # Another report may have come before.
        self._replace_failed(worker, error)
    if not calls:
      time.sleep(_POLL_S)
      return [], []
    done, waiting = ray.wait(calls, num_returns=len(calls), timeout=0)
    if not done:
      done, waiting = ray.wait(calls, timeout=_POLL_S)
    return done, waiting

  def close(self) -> None:
    """Ends the workers and their environments."""
    self._is_closed.set()
    self._calls.clear()
    for worker in self.workers:
      worker.end()

  def _replace_failed(self, worker: workers_lib.Worker,
                      error: ray.exceptions.RayError) -> None:
    """Replaces a worker after a failed call, or ends the run."""
    if isinstance(error, ray.exceptions.GetTimeoutError):
      self._replace_hung(worker)
    elif not isinstance(error, ray.exceptions.RayTaskError):
      self._replace_lost(worker, errors.ClusterError(
          f'it {cluster.why_lost(error)}.'))
    elif isinstance(error.cause, errors.EnvironmentProcessLostError):
      self._replace_lost(worker, error.cause)
    else:
      self._replace_after_error(worker, error.cause, str(error))

  def _replace_after_error(
      self, worker: workers_lib.Worker, error: Exception,
      traceback_text: str) -> None:
    """Replaces a worker whose environment or policy raised, or ends the run."""
    worker.num_failures += 1
    num_recent = worker.failures.add()
    is_final = isinstance(error, errors.UserError) and not isinstance(
        error, errors.EnvironmentProcessError)
    end = ''
    if is_final or worker.num_failures >= _MAX_FAILURES:
      end = 'ends the run.'
    elif num_recent > worker.failures.max_per_hour:
      end = (f'has failed {num_recent} times within an hour '
             '(--max_environment_restarts).')
    if end:
      # Errors for the user need no traceback.
      if not (isinstance(error, errors.UserError) or errors.in_a_line(error)):
        self._say(traceback_text)
      self._say(f'{worker.name} {end}')
      raise error
    text = ''.join(traceback.format_exception_only(error)).strip()
    self._replace(worker, text, cluster.pause_s(worker.num_failures + 1))

  def _replace_hung(self, worker: workers_lib.Worker) -> None:
    limit_s = self.limit_s(worker)
    self._replace_lost(worker, errors.ClusterError(
        f'it made nothing for {limit_s:g} s (--hang_timeout_s).'
        if worker.description else
        f'it has not opened its environments within {limit_s:g} s (half of '
        '--actor_timeout_s).'))

  def limit_s(self, worker: workers_lib.Worker) -> float:
    """Returns the longest time of a call of a worker, which is finite."""
    config = self._config
    if not worker.description:
      return min(_OPENING_SHARE * config.actor_timeout_s,
                 cluster.LONGEST_WAIT_S)
    more_s = 0. if worker.has_acted else cluster.maps_s(
        config, len(worker.share.environments))
    return config.hang_timeout_s + more_s

  def _replace_lost(self, worker: workers_lib.Worker,
                    error: errors.UserError) -> None:
    """Replaces a worker that died or hangs, or ends the run.

    A worker also counts as lost if its machine or a process of its environments
    died.
    """
    worker.num_deaths += 1
    worker.num_deaths_of_all += 1
    if worker.num_deaths_of_all >= _MAX_DEATHS:
      raise type(error)(
          f'{worker.name} was lost {worker.num_deaths_of_all} times without '
          f'a result of any worker in between: {error}')
    self._replace(worker, str(error), cluster.pause_s(worker.num_deaths))

  def _check(self, description: descriptions.Description) -> None:
    """Raises ConfigError if a worker's spec or versions do not fit."""
    self._first = self._first or [description]
    if description.spec != self.spec:
      raise errors.EnvironmentSpecError(
          'One agent cannot play all levels: actor workers have different '
          f'observations or actions, {self.spec} and '
          f'{description.spec}.')
    descriptions.check_versions(description.host, description.versions)

  def _replace(self, worker: workers_lib.Worker, why: str,
               pause_s: float) -> None:
    self._say(f'{worker.name} is replaced: {why}')
    self._last_loss = f' The last lost worker: {why}'
    worker.end()
    self.num_restarts += 1
    worker.share = worker.share._replace(
        incarnation=worker.share.incarnation + 1)
    worker.description, worker.is_placed = None, False
    worker.has_acted = False
    worker.start_s = self._clock.now_s() + pause_s

  def _check_time(self, now_s: float, waiting: list[ray.ObjectRef]) -> None:
    """Replaces hanging workers; ends the run if no worker is ready for long.

    `waiting` are the unfinished calls.
    """
    for call in waiting:
      worker = self._calls[call]
      if (worker.is_placed
          and now_s - worker.call_s > self.limit_s(worker)
          # A result may be on its way from another machine.
          and not ray.wait([call], timeout=0, fetch_local=False)[0]):
        del self._calls[call]
        self._replace_hung(worker)
    if self.ready():
      self._ready_s = now_s
    elif now_s - self._ready_s > self._config.actor_timeout_s:
      raise self._too_few_error(1)

  def _too_few_error(self, num_wanted: int) -> errors.ClusterError:
    config, num_ready = self._config, len(self.ready())
    limit = f'{config.actor_timeout_s:g} s (--actor_timeout_s)'
    reason = (f'{num_ready} of {num_wanted} actor workers that a start needs '
              '(--min_actor_workers) are ready, and no further worker came '
              f'within {limit}.' if num_ready else
              f'No actor worker was ready for {limit}.')
    return errors.ClusterError(
        f'{reason} {len(self.workers)} workers are wanted, with '
        f'{config.num_cpus_per_actor_worker} CPUs each; {cluster.free_cpus()}.'
        f'{self._last_loss}')
