# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Actor workers: actors in processes of a ray cluster.

The learner calls a worker for one unroll at a time, and makes the next call
when its inbox has taken the unroll. Meanwhile the worker keeps acting until its
own inbox has `--queue_capacity` unrolls and no group has a free buffer. So no
unroll is dropped, and no queue grows.
"""

from collections.abc import Callable
import dataclasses
import socket
import threading
from typing import NamedTuple

import numpy as np
import ray
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.acting import local
from scalable_agent.acting import shares
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import hosts
from scalable_agent.distributed import workers
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
from scalable_agent.networks import layers
from scalable_agent.settings import config as config_lib
import tensorflow as tf

# Share of ray's object store that unrolls may fill before ray spills to disk.
_MAX_STORE_SHARE = 0.8


class Message(NamedTuple):
  """A message with an unroll of a worker.

  `unroll` is packed. `seconds` are the total seconds per stage so far, over all
  actors of the worker.
  """
  unroll: structs.Unroll
  seconds: dict[str, float]


class ActorWorker:
  """Acts with a share of the environments, in its own process."""

  def __init__(self, config: config_lib.Config, part: int,
               share: interface.Share, learner_node: str):
    """Creates a worker; `open` does all work that can fail.

    `part` is the number of this part of the run, and `learner_node` ray's name
    of the learner's machine.
    """
    self._config = hosts.with_paths_of_host(config)
    self._part, self._share = part, share
    self._packing = config.pack
    if config.pack == 'auto':
      is_here = cluster.this_node() == learner_node
      self._packing = 'none' if is_here else 'newest'
    self._inbox = queues.BoundedQueue[unrolls.Delivery](config.queue_capacity)
    # The latest weights; empty at first.
    self._weights: list[structs.Weights] = []
    self._release: Callable[[], None] = lambda: None

  def host(self) -> str:
    """Returns the name of the worker's machine."""
    return socket.gethostname()

  def open(self) -> descriptions.Description:
    """Opens the environments."""
    tf.config.set_visible_devices([], 'GPU')  # GPUs belong to the learner.
    layers.set_compute_dtype(self._config.compute_dtype)
    tf.config.threading.set_intra_op_parallelism_threads(
        self._config.num_cpus_per_actor_worker)
    self._actors = local.make_around(
        shares.make_environments(self._config, self._part, self._share),
        self._config, self._part, self._share)
    return descriptions.describe(self._actors.spec, self._actors.num_groups)

  def next_unroll(self, newer: list[ray.ObjectRef]) -> Message:
    """Waits for the next unroll and returns the unroll.

    `newer` has a reference to newer `structs.Weights`, or is empty if the
    worker has the latest weights. The list keeps ray from sending the weights
    itself.
    """
    if newer:
      is_first, self._weights = not self._weights, ray.get(newer)
      if is_first:
        self._actors.start(lambda: self._weights[0], self._inbox)
    # ray has stored the result of the last call.
    self._release()
    unroll, self._release = self._inbox.get()
    if self._packing != 'none':
      unroll = packing.pack(unroll, self._packing == 'zlib')
    return Message(unroll, self._actors.seconds())


@dataclasses.dataclass
class _Sender:
  """The learner's record of the unrolls of a worker.

  Attributes:
    version: version of the worker's weights; -1 for none.
    seconds: seconds per stage of the worker's process, from its last message.
    past_seconds: seconds per stage of earlier processes of the worker.
    unroll_bytes: size of the worker's last unroll.
  """
  version: int = -1
  seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  past_seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  unroll_bytes: int = 0


class RemoteActors:
  """Actor workers on a ray cluster; implements `interface.Acting`."""

  def __init__(self, config: config_lib.Config, part: int, rank: int = 0,
               num_learners: int = 1, stop: threading.Event | None = None,
               say: Callable[[str], None] = print):
    """Starts the workers; waits for `config.min_actor_workers` of them.

    Args:
      config: the settings of the whole run; `num_actor_workers` is not 0.
      part: number of this part of the run.
      num_learners: number of learners that share the environments.
      stop: ends the wait for workers when set.
      say: takes lines of text for the user.
    """
    make_worker = cluster.maker(
        ActorWorker, num_cpus=config.num_cpus_per_actor_worker,
        scheduling_strategy='SPREAD')
    self._crew = crew.Crew(
        config, rank, num_learners, lambda share: make_worker(
            config, part, share, cluster.this_node()), say)
    self._senders = {worker.share.worker: _Sender()
                     for worker in self._crew.workers}
    # The version of the weights in ray's store, and their reference.
    self._stored: tuple[int, ray.ObjectRef | None] = (-1, None)
    self._unroll_length = config.unroll_length
    self._num_columns = self._num_bytes = 0  # Totals of all unrolls so far.
    # This learner's room in the object store of its machine. ray writes any
    # excess to disk.
    [store_bytes] = [
        node['Resources'].get('object_store_memory', 0) for node in ray.nodes()
        if node['NodeID'] == cluster.this_node()]
    self._store_bytes = _MAX_STORE_SHARE * store_bytes / (
        num_learners if config.learners_share_a_machine else 1)
    # Unrolls in the inbox, plus one in the learner and one before the inbox.
    self._num_around_inbox = config.queue_capacity + 2
    self._stopping = threading.Event()
    self._thread: threading.Thread | None = None
    self._published: Callable[[], structs.Weights]  # Set by `start`.
    self._crew.wait_until_ready(stop)

  @property
  def spec(self) -> structs.EnvironmentSpec:
    return self._crew.spec

  @property
  def num_groups(self) -> int:
    return self._crew.num_groups

  @property
  def environments(self) -> range:
    return self._crew.environments

  @property
  def num_environments(self) -> int:
    return len(self._crew.workers[0].share.environments)

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    def run() -> None:
      with inbox.ending_thread():
        while not self._stopping.is_set():
          self._crew.advance(
              lambda worker, result: self._take(worker, result, inbox))

    self._published = published
    for worker in self._crew.ready():
      self._request_unroll(worker)
    self._thread = threading.Thread(
        target=run, name='remote-actors', daemon=True)
    self._thread.start()

  def stop(self, timeout_s: float) -> None:
    self._stopping.set()
    if self._thread is not None:
      self._thread.join(timeout_s)

  def close(self) -> None:
    """Ends the workers and their environments."""
    self._crew.close()

  def seconds(self) -> dict[str, float]:
    return timing.totals(seconds for s in self._senders.values()
                         for seconds in (s.seconds, s.past_seconds))

  def num_steps(self) -> int:
    return self._num_columns * self._unroll_length

  def counts(self) -> dict[str, int]:
    return {**self._crew.counts(), 'unrolls': self._num_columns,
            'bytes': self._num_bytes}

  def _take(self, worker: workers.Worker,
            result: descriptions.Description | Message,
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """Takes a worker's result, and asks the worker for the next unroll."""
    sender = self._senders[worker.share.worker]
    if isinstance(result, descriptions.Description):
      sender.version = -1  # The worker is new.
      sender.past_seconds = timing.totals(
          [sender.past_seconds, sender.seconds])
      sender.seconds = {}
    else:
      self._crew.record_result(worker)
      sender.seconds = result.seconds
      self._count(sender, result.unroll)
      # The unroll's views of ray's store are freed with the unroll.
      inbox.put(unrolls.Delivery(packing.unpack(result.unroll), lambda: None))
    self._request_unroll(worker)

  def _count(self, sender: _Sender, packed: structs.Unroll) -> None:
    sender.unroll_bytes = packing.num_bytes(packed)
    self._num_bytes += sender.unroll_bytes
    self._num_columns += packed.num_columns
    num_all = self._num_around_inbox * sender.unroll_bytes + sum(
        s.unroll_bytes for s in self._senders.values())
    if num_all > self._store_bytes:
      raise errors.ConfigError(
          f'Unrolls of {len(self._senders)} actor workers need '
          f"{num_all / 1e6:,.0f} MB at once, but ray's store on "
          f'{socket.gethostname()} has room for {self._store_bytes / 1e6:,.0f} '
          'MB of this learner: use --pack=zlib, a smaller --unroll_length or '
          '--queue_capacity, more --num_actor_groups, or "ray start '
          '--object-store-memory".')

  def _request_unroll(self, worker: workers.Worker) -> None:
    """Asks a worker for its next unroll; sends newer weights, if any."""
    assert worker.handle is not None
    weights = self._published()
    newer: list[ray.ObjectRef | None] = []
    sender = self._senders[worker.share.worker]
    if weights.version != sender.version:
      if weights.version != self._stored[0]:
        self._stored = weights.version, ray.put(weights._replace(
            values=[np.asarray(value) for value in weights.values]))
      sender.version, newer = weights.version, [self._stored[1]]
    self._crew.record_call(worker, worker.handle.next_unroll.remote(newer))
