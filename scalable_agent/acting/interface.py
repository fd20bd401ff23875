# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The interface between training and the actors of a learner."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls


class Share(NamedTuple):
  """The environments that one process steps.

  Attributes:
    environments: consecutive numbers of the environments in the run.
    worker: the number of the process.
    incarnation: the number of earlier processes with this `worker`.
  """
  environments: range
  worker: int = 0
  incarnation: int = 0


class Acting(Protocol):
  """All actors of a learner, in this process or in other processes."""

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """The spec of one environment."""

  @property
  def num_groups(self) -> int:
    """Number of groups of environments in each process that acts."""

  @property
  def environments(self) -> range:
    """The numbers of all environments, as counted in the whole run."""

  @property
  def num_environments(self) -> int:
    """Number of environments in each process that acts."""

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    """Starts to act, and returns at once.

    Any thread may call `published`, which returns the latest weights. `inbox`
    takes the unrolls. If an actor fails, `inbox.fail` gets the error.
    """

  def stop(self, timeout_s: float) -> None:
    """Ends acting; waits at most `timeout_s`. Close the inbox first."""

  def close(self) -> None:
    """Closes the environments."""

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each stage, summed over all actors."""

  def num_steps(self) -> int:
    """Returns the agent steps so far; of workers, those that have arrived.

    Steps of unrolls that are lost later also count.
    """

  def counts(self) -> dict[str, int]:
    """Returns counts of processes that act (workers, restarts), by name."""
