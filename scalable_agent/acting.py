# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Acting: the actors of this process, in threads."""

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
  """What training needs from acting, in this process or elsewhere."""

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """Starts to act, and returns at once.

    Args:
      published: returns the latest weights; may be called from any thread.
      inbox: takes the `unrolls.Delivery`s. If an actor fails, its error is
        passed to `inbox.fail`.
    """

  def close(self, timeout_s: float) -> None:
    """Ends acting; waits at most `timeout_s`. Environments stay open."""

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each stage, over all actors."""


class Local:
  """Actors in threads of this process; implements `Acting`."""

  def __init__(self, envs: Sequence[environments.FlowEnvironment],
               actor_policies: Sequence[policies.Policy], *,
               unroll_length: int, num_buffers: int,
               bootstrap_truncated: bool):
    """Makes the object; `start` starts the threads.

    Args:
      envs: the environments of each actor.
      actor_policies: the policy of each actor. Several actors can have the same
        `policies.SharedPolicy`. `close` closes the policies.
      unroll_length: agent steps.
      num_buffers: number of unrolls that each actor uses in turn.
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
    """See `Acting`. Close the inbox first."""
    deadline_s = time.monotonic() + timeout_s
    left_s = lambda: max(deadline_s - time.monotonic(), 0)
    for one in self._actors:
      one.close()
    for policy in set(self._policies):
      policy.close(left_s())
    for thread in self._threads:
      if thread.ident is not None:  # It was started.
        thread.join(left_s())

  def seconds(self) -> dict[str, float]:
    """See `Acting`."""
    return metrics.total_seconds(self._timers)
