# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A learner's records of its worker processes."""

import dataclasses

import ray
from scalable_agent.acting import interface
from scalable_agent.distributed import descriptions
from scalable_agent.environments import restarts


@dataclasses.dataclass
class Worker:
  """A learner's record of a worker.

  Attributes:
    share: the worker's share of the environments.
    failures: counts errors of the last hour.
    handle: handle of the ray actor; None before the (re)start.
    start_s: time of the next start.
    is_placed: whether the cluster has found CPUs, and the process runs.
    host: the worker's current or last machine.
    description: None until the worker is ready.
    has_acted: whether the worker has returned a result since its start.
    call_s: time of the last call.
    num_failures: consecutive errors without a result in between.
    num_deaths: consecutive deaths and hangs, of the worker or of a process of
      its environments.
    num_deaths_of_all: deaths and hangs since any worker last returned a result.
  """
  share: interface.Share
  failures: restarts.Restarts
  handle: ray.actor.ActorHandle | None = None
  start_s: float = 0.
  is_placed: bool = False
  host: str = ''
  description: descriptions.Description | None = None
  has_acted: bool = False
  call_s: float = 0.
  num_failures: int = 0
  num_deaths: int = 0
  num_deaths_of_all: int = 0

  @property
  def name(self) -> str:
    """The worker's name and place, for the user."""
    place = f' on {self.host}' if self.is_placed else ''
    if self.description:
      place = (f' (process {self.description.pid} of '
               f'{self.description.host})')
    return f'Actor worker {self.share.worker}{place}'

  def end(self) -> None:
    """Kills the process, if any."""
    handle, self.handle = self.handle, None
    if handle is not None:
      ray.kill(handle)
