# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Central inference: remote environments, a policy in the learner's process.

As in SEED (Espeholt et al. 2019, arXiv 1910.06591), only actions and
observations travel, and workers need no TensorFlow. As in IMPALA, the learner
trains on whole unrolls: each group of environments has an actor in the
learner's process, and all actors share one policy on the accelerator.
"""

from collections.abc import Callable
import threading
import time
from typing import Any, TypeVar

import numpy as np
import ray
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import local
from scalable_agent.acting import shares
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew as crew_lib
from scalable_agent.distributed import environment_worker
from scalable_agent.distributed import workers
from scalable_agent.environments import base
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.networks import layers
from scalable_agent.settings import config as config_lib

_POLL_S = 0.1
T = TypeVar('T')


class RemoteVector:
  """A worker's group of environments, as an `environments.VectorEnvironment`.

  `num_losses` is the number of steps in which the environments were lost.
  """

  def __init__(self, crew: crew_lib.Crew, worker: workers.Worker, group: int,
               config: config_lib.Config, stopping: threading.Event):
    """Creates the group; the worker may start later.

    Args:
      worker: the worker that owns the environments.
      group: number of the group within the worker.
      stopping: ends the wait for the worker when set.
    """
    self._crew, self._worker, self._group = crew, worker, group
    self._unroll_length = config.unroll_length
    self._stopping = stopping
    self._num_steps = 0  # Since the worker started.
    self._handle: Any = None  # ray's handle of the worker.
    self.spec = crew.spec
    self.num_losses = 0

  def initial(self) -> base.Observation:
    """Waits for the worker, and starts all environments.

    Raises:
      QueueClosed: acting ends.
      errors.EnvironmentLostError: the worker was lost.
    """
    self._handle = self._wait_for_worker()
    self._num_steps = 0
    return self._result(self._handle.initial.remote(self._group))

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """Steps all environments.

    Raises:
      errors.EnvironmentLostError: the worker was lost.
    """
    try:
      result = self._result(self._handle.step.remote(self._group, actions))
    except errors.EnvironmentLostError:
      self.num_losses += 1
      raise
    self._num_steps += 1
    # Counts as the result that an actor worker returns with each unroll.
    if (self._num_steps % self._unroll_length == 0
        and self._worker.handle is self._handle):
      self._crew.record_result(self._worker)
    return result

  def close(self) -> None:
    """Does nothing: the crew ends the worker."""

  def _wait_for_worker(self) -> ray.actor.ActorHandle:
    while not self._stopping.wait(_POLL_S):
      handle = self._worker.handle
      # The handle may still be that of the lost process.
      if (handle is not None and handle is not self._handle
          and self._worker.description is not None):
        return handle
    raise queues.QueueClosed()

  def _result(self, call: ray.ObjectRef[T]) -> T:
    try:
      return ray.get(call, timeout=self._crew.limit_s(self._worker))
    except ray.exceptions.RayError as e:
      self._crew.report(self._worker, self._handle, e)
      raise errors.EnvironmentLostError() from None


class CentralActors:
  """Actors in this process for remote environments; an `interface.Acting`."""

  def __init__(self, config: config_lib.Config, part: int, rank: int = 0,
               num_learners: int = 1, stop: threading.Event | None = None,
               say: Callable[[str], None] = print):
    """Starts the workers. For the arguments, see `RemoteActors`.

    Raises ConfigError if there is no accelerator, and `config.inference` is not
    'central_on_cpu'.
    """
    if layers.on_cpu() and config.inference != 'central_on_cpu':
      raise errors.ConfigError(
          '--inference=central needs an accelerator; there is none here. On '
          "a CPU, all actors' policy steps would take the cores of the "
          'learner, and observations would travel one step at a time. Use '
          '--inference=local, or --inference=central_on_cpu as an experiment.')
    make_worker = cluster.maker(
        environment_worker.EnvironmentWorker,
        num_cpus=config.num_cpus_per_actor_worker,
        max_concurrency=min(config.num_actor_groups, config.num_actors),
        scheduling_strategy='SPREAD')
    self._crew = crew_lib.Crew(
        config, rank, num_learners,
        lambda share: make_worker(config, part, share), say)
    self._crew.wait_until_ready(stop)
    self._stopping = threading.Event()
    self._thread: threading.Thread | None = None
    self._vectors, envs = [], []
    for worker in self._crew.workers:
      for group, numbers in enumerate(environments.split(
          worker.share.environments, config.num_actor_groups)):
        vector = RemoteVector(
            self._crew, worker, group, config, self._stopping)
        self._vectors.append(vector)
        envs.append(environments.FlowEnvironment(
            vector, shares.level_names(config, numbers), numbers.start,
            config.metric_names))
    self._local = local.make_around(
        envs, config, part, self._crew.workers[0].share._replace(
            environments=self._crew.environments))
    self.spec = self._local.spec
    self.num_groups = self._local.num_groups
    self.environments = self._local.environments
    self.num_environments = self._local.num_environments
    self.seconds = self._local.seconds
    self.num_steps = self._local.num_steps

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    def run() -> None:
      with inbox.ending_thread():
        while not self._stopping.is_set():
          self._crew.advance()

    self._thread = threading.Thread(target=run, name='crew', daemon=True)
    self._thread.start()
    self._local.start(published, inbox)

  def stop(self, timeout_s: float) -> None:
    end_s = time.monotonic() + timeout_s
    self._stopping.set()
    self._local.stop(timeout_s)
    if self._thread is not None:
      self._thread.join(max(0., end_s - time.monotonic()))

  def close(self) -> None:
    """Ends the workers and their environments."""
    self._crew.close()

  def counts(self) -> dict[str, int]:
    return {**self._crew.counts(),
            'lost_groups': sum(vector.num_losses for vector in self._vectors)}
