# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Acting: the actors of this process, in threads."""

from collections.abc import Callable, Sequence
import functools
import threading
import time
from typing import NamedTuple, Protocol

from scalable_agent import actor
from scalable_agent import environments
from scalable_agent import metrics
from scalable_agent import policies
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls


class Share(NamedTuple):
  """The environments that one process steps.

  Attributes:
    environments: their numbers in the run, in a row.
    worker: the number of the process.
    incarnation: how many processes there were in its place before it.
  """
  environments: range
  worker: int = 0
  incarnation: int = 0


class Acting(Protocol):
  """What training needs from acting, in this process or elsewhere.

  Attributes:
    spec: of the environments.
    num_groups: number of groups of environments; of each process that acts.
  """

  @property
  def spec(self) -> structs.EnvironmentSpec: ...

  @property
  def num_groups(self) -> int: ...

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """Starts to act, and returns at once.

    Args:
      published: returns the latest weights; may be called from any thread.
      inbox: takes the `unrolls.Delivery`s. If an actor fails, its error is
        passed to `inbox.fail`.
    """

  def stop(self, timeout_s: float) -> None:
    """Ends acting; waits at most `timeout_s`. Close the inbox first."""

  def close(self) -> None:
    """Closes the environments."""

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each stage, over all actors."""

  def counts(self) -> dict[str, int]:
    """Returns what is counted about processes that act, by name."""


class Local:
  """Actors in threads of this process; implements `Acting`."""

  def __init__(self, envs: Sequence[environments.FlowEnvironment],
               make_policies: Callable[[], Sequence[policies.Policy]], *,
               unroll_length: int, num_buffers: int,
               bootstrap_truncated: bool):
    """Makes the object; `start` starts the threads.

    Args:
      envs: the environments of each actor.
      make_policies: makes the policy of each actor; called by `start`. Several
        actors can have the same `policies.SharedPolicy`. `stop` closes them.
      unroll_length: agent steps.
      num_buffers: number of unrolls that each actor uses in turn.
      bootstrap_truncated: see `actor.Actor`.
    """
    self._envs = list(envs)
    self._make_policies = make_policies
    self._policies: list[policies.Policy] = []
    self._make_actor = functools.partial(
        actor.Actor, unroll_length=unroll_length, num_buffers=num_buffers,
        bootstrap_truncated=bootstrap_truncated)
    self._timers = [metrics.StageTimer() for _ in self._envs]
    self._actors: list[actor.Actor] = []
    self._threads: list[threading.Thread] = []

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """See `Acting`."""
    return self._envs[0].spec

  @property
  def num_groups(self) -> int:
    """See `Acting`."""
    return len(self._envs)

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """See `Acting`."""

    def act(one):
      try:
        one.run()
      except BaseException as e:  # pylint: disable=broad-except
        inbox.fail(e)

    self._policies = list(self._make_policies())
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

  def stop(self, timeout_s: float) -> None:
    """See `Acting`."""
    deadline_s = time.monotonic() + timeout_s
    left_s = lambda: max(deadline_s - time.monotonic(), 0)
    for one in self._actors:
      one.close()
    for policy in set(self._policies):
      policy.close(left_s())
    for thread in self._threads:
      if thread.ident is not None:  # It was started.
        thread.join(left_s())

  def close(self) -> None:
    """See `Acting`."""
    for env in self._envs:
      env.close()

  def seconds(self) -> dict[str, float]:
    """See `Acting`."""
    return metrics.total_seconds(self._timers)

  def counts(self) -> dict[str, int]:
    """See `Acting`. It has no processes of its own."""
    return {}
