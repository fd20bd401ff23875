# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Actor workers: actors in processes of a ray cluster.

A worker gets a call for one unroll at a time, and acts on meanwhile: one unroll
waits, and each of its groups makes another one. The next call is made when the
inbox of the learner has taken the unroll. So nothing is dropped, and nothing
grows.
"""

from collections.abc import Callable
import dataclasses
import os
import socket
import threading
import time
import traceback
from typing import NamedTuple

import numpy as np
import ray
from scalable_agent import acting
from scalable_agent import config as config_lib
from scalable_agent import errors
from scalable_agent import metrics
from scalable_agent import networks
from scalable_agent import packing
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls
from scalable_agent.distributed import cluster
from scalable_agent.distributed import versions
import tensorflow as tf

# An environment's error ends the run if it comes so often in a row, without an
# unroll in between; likewise the death of a worker.
_MAX_FAILURES = 3
_MAX_DEATHS = 10
_LONGEST_PAUSE_S = 60.
_POLL_S = 0.5


class Description(NamedTuple):
  """What a worker says when it is ready.

  Attributes:
    spec: of its environments.
    num_groups: its number of groups of environments.
    host: the name of its machine.
    pid: the number of its process.
    versions: of what must be the same everywhere, by name.
  """
  spec: structs.EnvironmentSpec
  num_groups: int
  host: str
  pid: int
  versions: dict[str, str]


class Message(NamedTuple):
  """An unroll of a worker.

  Attributes:
    unroll: the `structs.Unroll`, packed.
    seconds: spent in each stage so far, over all actors of the worker.
  """
  unroll: structs.Unroll
  seconds: dict[str, float]


class Stopped(Exception):
  """The run was stopped before there were workers."""


class ActorWorker:
  """Acts with a share of the environments, in a process of its own."""

  def __init__(self, config: config_lib.Config, part: int,
               share: acting.Share, learner_node: str):
    """Makes a worker; `open` does all that can fail.

    Args:
      config: the settings.
      part: a number that differs between the parts of a run.
      share: the environments.
      learner_node: ray's name of the machine that learns.
    """
    self._config, self._part, self._share = config, part, share
    self._how_to_pack = config.pack
    if config.pack == 'auto':
      is_here = cluster.this_node() == learner_node
      self._how_to_pack = 'none' if is_here else 'newest'
    self._inbox = queues.BoundedQueue[unrolls.Delivery](config.queue_capacity)
    self._weights: list[structs.Weights] = []  # The latest; empty at first.
    self._release: Callable[[], None] = lambda: None

  def open(self) -> Description:
    """Makes the environments."""
    tf.config.set_visible_devices([], 'GPU')  # It is the learner's.
    networks.set_compute_dtype(self._config.compute_dtype)
    tf.config.threading.set_intra_op_parallelism_threads(
        self._config.num_cpus_per_actor_worker)
    self._actors = acting.make_local(self._config, self._part, self._share)
    return Description(self._actors.spec, self._actors.num_groups,
                       socket.gethostname(), os.getpid(),
                       versions.installed())

  def next_unroll(self, newer: list[ray.ObjectRef]) -> Message:
    """Waits for an unroll and returns it.

    Args:
      newer: the `structs.Weights`, in a list so that ray does not send them on
        its own; an empty list if the worker has the latest ones.

    Raises:
      Exception: any error of an environment or of a policy.
    """
    if newer:
      is_first, self._weights = not self._weights, ray.get(newer)
      if is_first:
        self._actors.start(lambda: self._weights[0], self._inbox)
    # ray has stored what the call before has returned.
    self._release()
    unroll, self._release = self._inbox.get()
    if self._how_to_pack != 'none':
      unroll = packing.pack(unroll, self._how_to_pack == 'zlib')
    return Message(unroll, self._actors.seconds())


@dataclasses.dataclass
class _Worker:
  """What the learner knows about a worker.

  Attributes:
    share: its environments.
    handle: of the ray actor; None if it is to be started.
    start_s: when it is to be started.
    version: of the weights that it has; -1 for none.
    num_failures: errors in a row, without an unroll between them.
    num_deaths: how often it has died, likewise.
    seconds: those of its last message.
    description: what it has said; None until it is ready.
    call_s: when it was called last.
    unroll_bytes: the size of its last unroll.
  """
  share: acting.Share
  handle: ray.actor.ActorHandle | None = None
  start_s: float = 0.
  version: int = -1
  num_failures: int = 0
  num_deaths: int = 0
  seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  description: Description | None = None
  call_s: float = 0.
  unroll_bytes: int = 0


class RemoteActors:
  """Actor workers on a ray cluster; implements `acting.Acting`."""

  def __init__(self, config: config_lib.Config, part: int, rank: int = 0,
               num_learners: int = 1, stop: threading.Event | None = None,
               say: Callable[[str], None] = print):
    """Starts the workers; waits for `config.min_actor_workers` of them.

    Args:
      config: the settings; those of all learners together, with a number of
        workers.
      part: a number that differs between the parts of a run.
      rank: which of the learners these workers act for.
      num_learners: the environments are divided among so many.
      stop: ends the wait for workers once it is set.
      say: takes lines of text for the user.

    Raises:
      Stopped: if `stop` was set meanwhile.
      ConfigError: if the settings are wrong.
      errors.ClusterError: if the workers are not ready in time.
      Exception: any error of an environment.
    """
    self._config, self._part = config, part
    self._calls: dict[ray.ObjectRef, _Worker] = {}
    # The version of the weights in ray's store, and where they are.
    self._put: tuple[int, ray.ObjectRef | None] = (-1, None)
    self._num_restarts = 0
    self._num_columns = self._num_bytes = 0  # Of all unrolls that arrived.
    # Of the machine that learns: an unroll of each worker may be there.
    [self._store_bytes] = [
        node['Resources'].get('object_store_memory', 0) for node in ray.nodes()
        if node['NodeID'] == cluster.this_node()]
    self._first: list[Description] = []  # What the first worker has said.
    self._ready_s = time.monotonic()  # When a worker was ready last.
    self._stopping = threading.Event()
    self._thread: threading.Thread | None = None
    self._published: Callable[[], structs.Weights] | None = None
    self._say = say
    num_workers = config.num_actor_workers
    shares = [acting.Share(range(int(s[0]), int(s[-1]) + 1), index)
              for index, s in enumerate(np.array_split(
                  np.arange(config.num_actors), num_workers))]
    # A learner's workers are in a row.
    mine = np.array_split(np.arange(num_workers), num_learners)[rank]
    self._workers = [_Worker(shares[index]) for index in mine]
    try:
      while len(self._ready()) < min(
          -(-config.min_actor_workers // num_learners), len(self._workers)):
        if stop and stop.is_set():
          raise Stopped()
        self._advance()
    except BaseException:
      self.close()
      raise

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """See `acting.Acting`."""
    return self._first[0].spec

  @property
  def num_groups(self) -> int:
    """See `acting.Acting`."""
    return self._first[0].num_groups

  @property
  def environments(self) -> range:
    """See `acting.Acting`."""
    return range(self._workers[0].share.environments.start,
                 self._workers[-1].share.environments.stop)

  @property
  def num_environments(self) -> int:
    """See `acting.Acting`."""
    return len(self._workers[0].share.environments)

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """See `acting.Acting`."""

    def run():
      try:
        while not self._stopping.is_set():
          self._advance(inbox)
      except queues.QueueClosed:
        pass
      except BaseException as e:  # pylint: disable=broad-except
        inbox.fail(e)

    self._published = published
    for worker in self._ready():
      self._ask(worker)
    self._thread = threading.Thread(
        target=run, name='remote-actors', daemon=True)
    self._thread.start()

  def stop(self, timeout_s: float) -> None:
    """See `acting.Acting`."""
    self._stopping.set()
    if self._thread is not None:
      self._thread.join(timeout_s)

  def close(self) -> None:
    """Ends the workers; their environments end with them."""
    self._calls.clear()
    for worker in self._workers:
      self._kill(worker)

  def seconds(self) -> dict[str, float]:
    """See `acting.Acting`."""
    return metrics.sum_seconds(worker.seconds for worker in self._workers)

  def counts(self) -> dict[str, int]:
    """See `acting.Acting`."""
    return {'workers': len(self._ready()), 'wanted': len(self._workers),
            'restarts': self._num_restarts, 'unrolls': self._num_columns,
            'megabytes': self._num_bytes // 10**6}

  def _ready(self):
    return [w for w in self._workers if w.description is not None]

  def _advance(self, inbox=None):
    """Starts workers that are due, and takes what the next one returns."""
    now_s = time.monotonic()
    for worker in self._workers:
      if worker.handle is None and worker.start_s <= now_s:
        self._start(worker)
    if not self._calls:
      self._check_time(now_s, [])
      time.sleep(_POLL_S)
      return
    # All that are done are taken before one counts as hung.
    calls = list(self._calls)
    done, waiting = ray.wait(calls, num_returns=len(calls), timeout=0)
    if not done:
      done, waiting = ray.wait(calls, timeout=_POLL_S)
    self._check_time(now_s, waiting)
    for call in done:
      self._take(call, inbox)

  def _start(self, worker):
    worker.handle = ray.remote(ActorWorker).options(
        num_cpus=self._config.num_cpus_per_actor_worker, max_restarts=0,
        scheduling_strategy='SPREAD').remote(
            self._config, self._part, worker.share, cluster.this_node())
    worker.call_s = time.monotonic()
    self._calls[worker.handle.open.remote()] = worker

  def _take(self, call, inbox):
    """Takes the result of a call, and makes the next one."""
    worker = self._calls.pop(call)
    try:
      result = ray.get(call)
    except ray.exceptions.RayTaskError as e:
      self._failed(worker, e.cause)
      return
    except ray.exceptions.RayError as e:
      self._lost(worker, e)
      return
    self._ready_s = time.monotonic()
    if isinstance(result, Description):
      self._check(result)
      worker.description = result
    else:
      worker.num_failures = worker.num_deaths = 0
      worker.seconds = result.seconds
      self._count(worker, result.unroll)
      # The views of ray's store that the unroll has are dropped with it.
      inbox.put(unrolls.Delivery(packing.unpack(result.unroll), lambda: None))
    self._ask(worker)

  def _count(self, worker, packed):
    worker.unroll_bytes = packing.num_bytes(packed)
    self._num_bytes += worker.unroll_bytes
    self._num_columns += packed.num_columns
    num_all = sum(w.unroll_bytes for w in self._workers)
    if num_all > self._store_bytes:
      raise errors.ConfigError(
          f'{len(self._workers)} actor workers send {num_all / 1e6:,.0f} MB at '
          f"once, but ray's store on {socket.gethostname()} has "
          f'{self._store_bytes / 1e6:,.0f} MB: use --pack=zlib, a smaller '
          '--unroll_length, more --num_actor_groups, or "ray start '
          '--object-store-memory".')

  def _ask(self, worker):
    """Asks a worker for its next unroll, with newer weights if there are."""
    if self._published is None:
      return  # `start` asks.
    weights = self._published()
    newer = []
    if weights.version != worker.version:
      if weights.version != self._put[0]:
        self._put = weights.version, ray.put(weights._replace(
            values=[np.asarray(value) for value in weights.values]))
      worker.version, newer = weights.version, [self._put[1]]
    worker.call_s = time.monotonic()
    self._calls[worker.handle.next_unroll.remote(newer)] = worker

  def _failed(self, worker, error):
    """An environment or a policy of a worker raised an error."""
    worker.num_failures += 1
    if isinstance(error, errors.UserError) or (
        worker.num_failures >= _MAX_FAILURES):
      raise error
    text = ''.join(traceback.format_exception_only(error)).strip()
    self._say_of(worker, text)
    self._replace(worker, 2.**(worker.num_failures - 1))

  def _lost(self, worker, error):
    """The process of a worker, or its machine, has died."""
    worker.num_deaths += 1
    # ray's texts on what has died are for ray's developers.
    text = ('it has died.' if isinstance(error, ray.exceptions.RayActorError)
            else str(error).strip().splitlines()[0])
    if worker.num_deaths >= _MAX_DEATHS:
      raise errors.ClusterError(
          f'Actor worker {worker.share.worker} was lost {worker.num_deaths} '
          f'times without an unroll in between: {error}')
    self._say_of(worker, text)
    self._replace(worker, 2.**(worker.num_deaths - 2))

  def _check(self, description):
    """Raises ConfigError if a worker does not fit the first one, or us."""
    self._first = self._first or [description]
    if description.spec != self.spec:
      raise errors.EnvironmentSpecError(
          'One agent cannot play all levels: actor workers have different '
          f'observations or actions, {self.spec} and '
          f'{description.spec}.')
    versions.check(description.host, description.versions)

  def _say_of(self, worker, what):
    place = ('' if worker.description is None else
             f' (process {worker.description.pid} of '
             f'{worker.description.host})')
    self._say(f'Actor worker {worker.share.worker}{place} is replaced: {what}')

  def _replace(self, worker, pause_s):
    self._kill(worker)
    self._num_restarts += 1
    worker.share = worker.share._replace(
        incarnation=worker.share.incarnation + 1)
    worker.version, worker.description = -1, None
    worker.start_s = time.monotonic() + min(pause_s, _LONGEST_PAUSE_S)

  def _kill(self, worker):
    if worker.handle is not None:
      ray.kill(worker.handle)
      worker.handle = None

  def _check_time(self, now_s, waiting):
    """Replaces workers that hang; ends the run if there are none for long.

    Args:
      now_s: the time.
      waiting: the calls that are not done.
    """
    for call in waiting:
      worker = self._calls[call]
      if (worker.description is not None
          and now_s - worker.call_s > self._config.hang_timeout_s):
        del self._calls[call]
        self._say_of(worker, 'it made no unroll for '
                     f'{now_s - worker.call_s:.0f} s (--hang_timeout_s).')
        self._replace(worker, 0.)
    if self._ready():
      self._ready_s = now_s
    elif now_s - self._ready_s > self._config.actor_timeout_s:
      raise errors.ClusterError(
          f'No actor worker was ready for {self._config.actor_timeout_s:g} s '
          f'(--actor_timeout_s). {len(self._workers)} are wanted, with '
          f'{self._config.num_cpus_per_actor_worker} CPUs each; the cluster '
          f'has {ray.cluster_resources().get("CPU", 0):g}, of which '
          f'{ray.available_resources().get("CPU", 0):g} are free.')
