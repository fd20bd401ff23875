# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Actor workers: actors in processes of a ray cluster.

A worker gets a call for one unroll at a time, and acts on meanwhile: one unroll
waits, and each of its groups makes another one. The next call is made when the
inbox of the learner has taken the unroll. So nothing is dropped, and nothing
grows.
"""

from collections.abc import Callable
import dataclasses
import socket
import threading
from typing import Any, NamedTuple

import numpy as np
import ray
from scalable_agent import errors
from scalable_agent.acting import local
from scalable_agent.acting import shares
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew
from scalable_agent.distributed import descriptions
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
from scalable_agent.networks import layers
from scalable_agent.settings import config as config_lib
import tensorflow as tf

# Of its store, ray keeps so much in memory.
_MOST_OF_STORE = 0.8


class Message(NamedTuple):
  """An unroll of a worker.

  Attributes:
    unroll: the `structs.Unroll`, packed.
    seconds: spent in each stage so far, over all actors of the worker.
  """
  unroll: structs.Unroll
  seconds: dict[str, float]


class ActorWorker:
  """Acts with a share of the environments, in a process of its own."""

  def __init__(self, config: config_lib.Config, part: int,
               share: shares.Share, learner_node: str):
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

  def host(self) -> str:
    """Returns the name of the machine."""
    return socket.gethostname()

  def open(self) -> descriptions.Description:
    """Makes the environments."""
    tf.config.set_visible_devices([], 'GPU')  # It is the learner's.
    layers.set_compute_dtype(self._config.compute_dtype)
    tf.config.threading.set_intra_op_parallelism_threads(
        self._config.num_cpus_per_actor_worker)
    self._actors = local.make_local(self._config, self._part, self._share)
    return descriptions.describe(self._actors.spec, self._actors.num_groups)

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
class _Sender:
  """What the learner knows about the unrolls of a worker.

  Attributes:
    version: of the weights that the worker has; -1 for none.
    seconds: those of its last message.
    past_seconds: those of the processes that it has replaced.
    unroll_bytes: the size of its last unroll.
  """
  version: int = -1
  seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  past_seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  unroll_bytes: int = 0


class RemoteActors:
  """Actor workers on a ray cluster; implements `actor.Acting`."""

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
      Exception: any error of `crew.Crew.wait_until_ready`.
    """
    make_worker: Any = ray.remote(ActorWorker).options(
        num_cpus=config.num_cpus_per_actor_worker, max_restarts=0,
        scheduling_strategy='SPREAD').remote
    self._crew = crew.Crew(
        config, rank, num_learners, lambda share: make_worker(
            config, part, share, cluster.this_node()), say)
    self._senders = {worker.share.worker: _Sender()
                     for worker in self._crew.workers}
    # The version of the weights in ray's store, and where they are.
    self._put: tuple[int, ray.ObjectRef | None] = (-1, None)
    self._num_columns = self._num_bytes = 0  # Of all unrolls that arrived.
    # Of the machine that learns, for one learner: ray writes what is more than
    # that to disk.
    [store_bytes] = [
        node['Resources'].get('object_store_memory', 0) for node in ray.nodes()
        if node['NodeID'] == cluster.this_node()]
    self._store_bytes = _MOST_OF_STORE * store_bytes / (
        num_learners if config.task >= 0 or config.ray_address == 'local'
        else 1)
    # In the inbox; read; and waiting for the inbox.
    self._num_taken = config.queue_capacity + 2
    self._stopping = threading.Event()
    self._thread: threading.Thread | None = None
    self._published: Callable[[], structs.Weights]  # Set by `start`.
    self._crew.wait_until_ready(stop)

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """See `actor.Acting`."""
    return self._crew.spec

  @property
  def num_groups(self) -> int:
    """See `actor.Acting`."""
    return self._crew.num_groups

  @property
  def environments(self) -> range:
    """See `actor.Acting`."""
    return self._crew.environments

  @property
  def num_environments(self) -> int:
    """See `actor.Acting`."""
    return len(self._crew.workers[0].share.environments)

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """See `actor.Acting`."""

    def run():
      try:
        while not self._stopping.is_set():
          self._crew.advance(
              lambda worker, result: self._take(worker, result, inbox))
      except queues.QueueClosed:
        pass
      except BaseException as e:  # pylint: disable=broad-except
        inbox.fail(e)

    self._published = published
    for worker in self._crew.ready():
      self._ask(worker)
    self._thread = threading.Thread(
        target=run, name='remote-actors', daemon=True)
    self._thread.start()

  def stop(self, timeout_s: float) -> None:
    """See `actor.Acting`."""
    self._stopping.set()
    if self._thread is not None:
      self._thread.join(timeout_s)

  def close(self) -> None:
    """Ends the workers; their environments end with them."""
    self._crew.close()

  def seconds(self) -> dict[str, float]:
    """See `actor.Acting`."""
    return timing.totals(seconds for s in self._senders.values()
                          for seconds in (s.seconds, s.past_seconds))

  def counts(self) -> dict[str, int]:
    """See `actor.Acting`."""
    return {**self._crew.counts(), 'unrolls': self._num_columns,
            'bytes': self._num_bytes}

  def _take(self, worker, result, inbox):
    """Takes what a worker has returned, and asks it for more."""
    sender = self._senders[worker.share.worker]
    if isinstance(result, descriptions.Description):
      sender.version = -1  # The worker is new.
      sender.past_seconds = timing.totals(
          [sender.past_seconds, sender.seconds])
      sender.seconds = {}
    else:
      self._crew.has_result(worker)
      sender.seconds = result.seconds
      self._count(sender, result.unroll)
      # The views of ray's store that the unroll has are dropped with it.
      inbox.put(unrolls.Delivery(packing.unpack(result.unroll), lambda: None))
    self._ask(worker)

  def _count(self, sender, packed):
    sender.unroll_bytes = packing.num_bytes(packed)
    self._num_bytes += sender.unroll_bytes
    self._num_columns += packed.num_columns
    num_all = self._num_taken * sender.unroll_bytes + sum(
        s.unroll_bytes for s in self._senders.values())
    if num_all > self._store_bytes:
      raise errors.ConfigError(
          f'Unrolls of {len(self._senders)} actor workers need '
          f"{num_all / 1e6:,.0f} MB at once, but ray's store on "
          f'{socket.gethostname()} has room for {self._store_bytes / 1e6:,.0f} '
          'MB of this learner: use --pack=zlib, a smaller --unroll_length or '
          '--queue_capacity, more --num_actor_groups, or "ray start '
          '--object-store-memory".')

  def _ask(self, worker):
    """Asks a worker for its next unroll, with newer weights if there are."""
    weights, newer = self._published(), []
    sender = self._senders[worker.share.worker]
    if weights.version != sender.version:
      if weights.version != self._put[0]:
        self._put = weights.version, ray.put(weights._replace(
            values=[np.asarray(value) for value in weights.values]))
      sender.version, newer = weights.version, [self._put[1]]
    self._crew.call(worker, worker.handle.next_unroll.remote(newer))
