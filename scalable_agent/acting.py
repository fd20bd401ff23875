# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Who acts: the actors of this process, in threads."""

from collections.abc import Callable, Sequence
import functools
import threading
import time
from typing import Protocol

from scalable_agent import actor
from scalable_agent import environments
from scalable_agent import metrics
from scalable_agent import policies
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls


class Acting(Protocol):
  """What training needs of those who act, wherever they are."""

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """Begins to act, and returns at once.

    Args:
      published: returns the latest weights; may be called from any thread.
      inbox: takes the `unrolls.Delivery`s; what fails fails it.
    """

  def close(self, timeout_s: float) -> None:
    """Ends acting; waits at most so long. Does not close the environments."""

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each stage, over all actors."""


class Local:
  """Actors in threads of this process; implements `Acting`."""

  def __init__(self, envs: Sequence[environments.FlowEnvironment],
               actor_policies: Sequence[policies.Policy], *,
               unroll_length: int, num_buffers: int,
               bootstrap_truncated: bool):
    """Starts nothing yet.

    Args:
      envs: the environments of each actor.
      actor_policies: the policy of each actor. One that several have must be a
        `policies.SharedPolicy`. They are closed with this object.
      unroll_length: agent steps.
      num_buffers: how many unrolls each actor uses in turn.
      bootstrap_truncated: see `actor.Actor`.
    """
    self._envs = list(envs)
    self._policies = list(actor_policies)
    self._make_actor = functools.partial(
        actor.Actor, unroll_length=unroll_length, num_buffers=num_buffers,
        bootstrap_truncated=bootstrap_truncated)
    self._timers = [metrics.StageTimer() for _ in self._envs]
    self._actors: list[actor.Actor] = []
    self._threads: list[threading.Thread] = []

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """See `Acting`."""

    def act(one):
      try:
        one.run()
      except BaseException as e:  # pylint: disable=broad-except
        inbox.fail(e)

    self._actors = [
        self._make_actor(env, policy, published, inbox, timer=timer)
        for env, policy, timer in zip(
            self._envs, self._policies, self._timers, strict=True)]
    self._threads = [
        threading.Thread(
            target=act, args=(one,), name=f'actor-{index}', daemon=True)
        for index, one in enumerate(self._actors)]
    for thread in self._threads:
      thread.start()

  def close(self, timeout_s: float) -> None:
    """See `Acting`. The inbox must be closed before."""
    deadline_s = time.monotonic() + timeout_s
    left_s = lambda: max(deadline_s - time.monotonic(), 0)
    for one in self._actors:
      one.close()
    for policy in set(self._policies):
      policy.close(left_s())
    for thread in self._threads:
      thread.join(left_s())

  def seconds(self) -> dict[str, float]:
    """See `Acting`."""
    return metrics.total_seconds(self._timers)
