# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The worker processes of a learner, in a ray cluster.

They are started wherever there are CPUs. Those that die, hang or raise an error
are replaced, by a process with the same environments and other seeds. Without
TensorFlow.
"""

from collections.abc import Callable
import dataclasses
import queue
import threading
import time
import traceback

import numpy as np
import ray
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import shares
from scalable_agent.distributed import cluster
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import versions
from scalable_agent.experience import structs
from scalable_agent.settings import config as config_lib

# An environment's error ends the run if it comes so often in a row, without a
# result in between.
_MAX_FAILURES = 3
# So do deaths and hangs of a worker without a result of any worker.
_MAX_DEATHS = 10
_OPENING_SHARE = 0.5  # Of --actor_timeout_s, so that another one has time, too.
_POLL_S = 0.5
_QUIET_S = 20.  # Until the user is told what is waited for at the start.


class Stopped(Exception):
  """The run was stopped before there were workers."""


@dataclasses.dataclass
class Worker:
  """What the learner knows about a worker.

  Attributes:
    share: its environments.
    failures: counts its errors.
    handle: of the ray actor; None if it is to be started.
    start_s: when it is to be started.
    is_placed: whether the cluster has found CPUs for it, and it has begun.
    host: the machine that it is on, or was on last.
    description: what it has said; None until it is ready.
    call_s: when it was called last.
    num_failures: errors in a row, without a result between them.
    num_deaths: how often it, or a process of its environments, has died or
      hung in a row.
    num_deaths_of_all: the same, since any worker had a result.
  """
  share: shares.Share
  failures: environments.Restarts
  handle: ray.actor.ActorHandle | None = None
  start_s: float = 0.
  is_placed: bool = False
  host: str = ''
  description: descriptions.Description | None = None
  call_s: float = 0.
  num_failures: int = 0
  num_deaths: int = 0
  num_deaths_of_all: int = 0


class Crew:
  """The workers of a learner.

  One thread calls `advance` again and again; other methods may be called by any
  thread.

  Attributes:
    workers: the `Worker`s, in the order of their environments.
    num_restarts: how often a worker was replaced.
  """

  def __init__(self, config: config_lib.Config, rank: int, num_learners: int,
               make_worker: Callable[[shares.Share], ray.actor.ActorHandle],
               say: Callable[[str], None] = print):
    """Makes a crew; `wait_until_ready` starts it.

    Args:
      config: the settings; those of all learners together, with a number of
        workers.
      rank: which of the learners these workers are for.
      num_learners: the environments are divided among so many.
      make_worker: starts a process with a share of the environments. Its method
        `host` returns the name of its machine, and `open` a `Description`.
      say: takes lines of text for the user.
    """
    self._config = config
    self._num_learners = num_learners
    self._make_worker = make_worker
    self._say = say
    self._calls: dict[ray.ObjectRef, Worker] = {}
    self._reports: queue.SimpleQueue[tuple[Worker, ray.actor.ActorHandle,
                                           ray.exceptions.RayError]] = (
                                               queue.SimpleQueue())
    # What the first worker has said.
    self._first: list[descriptions.Description] = []
    self._ready_s = time.monotonic()  # When a worker was ready last.
    self._last_loss = ''  # Why a worker was replaced.
    self.num_restarts = 0
    numbers = environments.split(
        range(config.num_actors), config.num_actor_workers)
    # A learner's workers are in a row.
    mine = np.array_split(np.arange(len(numbers)), num_learners)[rank]
    self.workers = [
        Worker(shares.Share(numbers[i], int(i)),
               environments.Restarts(config.max_environment_restarts))
        for i in mine]

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
    """The numbers of all environments, in a row."""
    return range(self.workers[0].share.environments.start,
                 self.workers[-1].share.environments.stop)

  def ready(self) -> list[Worker]:
    """Returns the workers that have started."""
    return [w for w in self.workers if w.description is not None]

  def counts(self) -> dict[str, int]:
    """Returns what is counted about workers, by name."""
    return {'workers': len(self.ready()), 'wanted': len(self.workers),
            'restarts': self.num_restarts}

  def wait_until_ready(self, stop: threading.Event | None) -> None:
    """Starts the workers; waits for `config.min_actor_workers` of them.

    Args:
      stop: ends the wait once it is set.

    Raises:
      Stopped: if `stop` was set meanwhile.
      ConfigError: if the settings are wrong.
      errors.ClusterError: if the workers are not ready in time.
      Exception: any error of an environment.
    """
    num_wanted = min(-(-self._config.min_actor_workers // self._num_learners),
                     len(self.workers))
    begin_s = newest_s = time.monotonic()  # When there was one more.
    is_quiet = True
    try:
      while (num_ready := len(self.ready())) < num_wanted:
        if stop and stop.is_set():
          raise Stopped()
        self.advance()
        now_s = time.monotonic()
        if len(self.ready()) > num_ready:
          newest_s = now_s
        elif now_s - newest_s > self._config.actor_timeout_s:
          raise self._too_few(num_wanted)
        elif is_quiet and now_s - begin_s > _QUIET_S:
          is_quiet = False
          self._say(f'Waiting for actor workers: {num_ready} of {num_wanted} '
                    f'are ready ({_free_cpus()}).')
    except BaseException:
      self.close()
      raise

  def has_result(self, worker: Worker) -> None:
    """Notes that a worker works: what comes now is not in a row with before."""
    worker.num_failures = worker.num_deaths = 0
    for one in self.workers:
      one.num_deaths_of_all = 0

  def call(self, worker: Worker, call: ray.ObjectRef) -> None:
    """Notes a call of a worker; `advance` takes its result."""
    worker.call_s = time.monotonic()
    self._calls[call] = worker

  def report(self, worker: Worker, handle: ray.actor.ActorHandle,
             error: ray.exceptions.RayError) -> None:
    """Notes that a call has failed which `advance` does not know.

    Args:
      worker: whose call it was.
      handle: the process that was called. It is replaced, once.
      error: what `ray.get` raised.
    """
    self._reports.put((worker, handle, error))

  def advance(self, take: Callable[[Worker, object], None] = (
      lambda worker, result: None)) -> None:
    """Starts workers that are due; waits a moment for results and errors.

    Args:
      take: gets a worker and what it has returned; at first, a `Description`.

    Raises:
      UserError: if a worker does not fit, or workers are lost too often.
      Exception: the error of an environment, if it has come too often.
    """
    now_s = time.monotonic()
    for worker in self.workers:
      if worker.handle is None and worker.start_s <= now_s:
        worker.handle = self._make_worker(worker.share)
        # It waits for CPUs, which may take any time.
        self.call(worker, worker.handle.host.remote())
    # All that are done are taken before one counts as hung.
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
      self._ready_s = time.monotonic()
      if isinstance(result, descriptions.Description):
        self._check(result)
        worker.description = result
      take(worker, result)

  def _open(self, worker):
    worker.is_placed = True
    self.call(worker, worker.handle.open.remote())

  def _wait(self, calls):
    """Waits a moment; returns the calls that are done, and the others."""
    while not self._reports.empty():
      worker, handle, error = self._reports.get()
      if worker.handle is handle:  # Others may have said so before.
        self._replace_failed(worker, error)
    if not calls:
      time.sleep(_POLL_S)
      return [], []
    done, waiting = ray.wait(calls, num_returns=len(calls), timeout=0)
    if not done:
      done, waiting = ray.wait(calls, timeout=_POLL_S)
    return done, waiting

  def close(self) -> None:
    """Ends the workers; their environments end with them."""
    self._calls.clear()
    for worker in self.workers:
      self._kill(worker)

  def _replace_failed(self, worker, error):
    """Replaces a worker one of whose calls has failed, or ends the run."""
    if isinstance(error, ray.exceptions.GetTimeoutError):
      self._hung(worker)
    elif not isinstance(error, ray.exceptions.RayTaskError):
      self._lost(worker, errors.ClusterError(
          f'it {cluster.why_lost(error)}.'))
    elif isinstance(error.cause, errors.EnvironmentProcessLostError):
      self._lost(worker, error.cause)
    else:
      self._failed(worker, error.cause, str(error))

  def _failed(self, worker, error, where):
    """An environment or a policy of a worker raised an error.

    Args:
      worker: the worker.
      error: what was raised.
      where: text, its traceback.
    """
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
      # Others say themselves where they come from, or need not say it.
      if not (isinstance(error, errors.UserError) or errors.in_a_line(error)):
        self._say(where)
      self._say(f'{_name(worker)} {end}')
      raise error
    text = ''.join(traceback.format_exception_only(error)).strip()
    self._replace(worker, text, cluster.pause_s(worker.num_failures + 1))

  def _hung(self, worker):
    limit_s = self._limit_s(worker)
    self._lost(worker, errors.ClusterError(
        f'it made nothing for {limit_s:g} s (--hang_timeout_s).'
        if worker.description else
        f'it has not opened its environments within {limit_s:g} s (half of '
        '--actor_timeout_s).'))

  def _limit_s(self, worker):
    """Returns how long a call of a worker may take."""
    return (self._config.hang_timeout_s if worker.description
            else _OPENING_SHARE * self._config.actor_timeout_s)

  def _lost(self, worker, error):
    """A worker, its machine or a process of its environments died or hangs."""
    worker.num_deaths += 1
    worker.num_deaths_of_all += 1
    if worker.num_deaths_of_all >= _MAX_DEATHS:
      raise type(error)(
          f'{_name(worker)} was lost {worker.num_deaths_of_all} times without '
          f'a result of any worker in between: {error}')
    self._replace(worker, str(error), cluster.pause_s(worker.num_deaths))

  def _check(self, description):
    """Raises ConfigError if a worker does not fit the first one, or us."""
    self._first = self._first or [description]
    if description.spec != self.spec:
      raise errors.EnvironmentSpecError(
          'One agent cannot play all levels: actor workers have different '
          f'observations or actions, {self.spec} and '
          f'{description.spec}.')
    versions.check(description.host, description.versions)

  def _replace(self, worker, why, pause_s):
    self._say(f'{_name(worker)} is replaced: {why}')
    self._last_loss = f' The last one that was lost: {why}'
    self._kill(worker)
    self.num_restarts += 1
    worker.share = worker.share._replace(
        incarnation=worker.share.incarnation + 1)
    worker.description, worker.is_placed = None, False
    worker.start_s = time.monotonic() + pause_s

  def _kill(self, worker):
    handle, worker.handle = worker.handle, None
    if handle is not None:
      ray.kill(handle)

  def _check_time(self, now_s, waiting):
    """Replaces workers that hang; ends the run if there are none for long.

    Args:
      now_s: the time.
      waiting: the calls that are not done.
    """
    for call in waiting:
      worker = self._calls[call]
      if (worker.is_placed
          and now_s - worker.call_s > self._limit_s(worker)
          # A result may be there, on its way from another machine.
          and not ray.wait([call], timeout=0, fetch_local=False)[0]):
        del self._calls[call]
        self._hung(worker)
    if self.ready():
      self._ready_s = now_s
    elif now_s - self._ready_s > self._config.actor_timeout_s:
      raise self._too_few(1)

  def _too_few(self, num_wanted):
    config, num_ready = self._config, len(self.ready())
    limit = f'{config.actor_timeout_s:g} s (--actor_timeout_s)'
    what = (f'{num_ready} of {num_wanted} actor workers that a start needs '
            '(--min_actor_workers) are ready, and no other one came within '
            f'{limit}.' if num_ready else
            f'No actor worker was ready for {limit}.')
    return errors.ClusterError(
        f'{what} {len(self.workers)} are wanted in all, with '
        f'{config.num_cpus_per_actor_worker} CPUs each; {_free_cpus()}.'
        f'{self._last_loss}')


def _name(worker):
  """Returns the name of a worker, and where it is, for the user."""
  place = f' on {worker.host}' if worker.is_placed else ''
  if worker.description:
    place = (f' (process {worker.description.pid} of '
             f'{worker.description.host})')
  return f'Actor worker {worker.share.worker}{place}'


def _free_cpus():
  return (f'the cluster has {ray.cluster_resources().get("CPU", 0):g} CPUs, of '
          f'which {ray.available_resources().get("CPU", 0):g} are free')
