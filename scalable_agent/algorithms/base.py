# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What an algorithm is to the learner: losses by group of variables.

A group is a list of variables that one optimizer moves. IMPALA has one, an
actor-critic with two optimizers has two.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from scalable_agent import agents
from scalable_agent import structs
import tensorflow as tf


class Loss(NamedTuple):
  """The losses of a batch, and what describes them.

  Attributes:
    by_group: scalar by name of the group. The loss of a group moves the
      variables of that group only.
    sums: scalars for the log that are sums over the batch, by name.
    means: scalars for the log that are means over the batch, by name.
    priorities: float32 `[B]`, new priorities of replayed columns; or `()`.
  """
  by_group: Mapping[str, tf.Tensor]
  sums: Mapping[str, tf.Tensor]
  means: Mapping[str, tf.Tensor]
  priorities: structs.Array = ()


class Algorithm(Protocol):
  """A learning rule and the variables that it is for.

  Attributes:
    agent: what acts; its variables are published.
    groups: the variables that are learned, by name of the group.
    targets: variables that are saved but never published, such as those of
      target networks.
  """
  agent: agents.Agent
  groups: dict[str, list[tf.Variable]]
  targets: list[tf.Variable]

  def loss(self, data: structs.Unroll, seed: tf.Tensor) -> Loss:
    """Computes the losses of a batch, in a graph.

    Args:
      data: `Unroll` of tensors `[T + 1, B, ...]`.
      seed: int32 `[2]`, another one for each update.
    """

  def after_update(self) -> None:
    """Changes what follows the weights, such as targets; in a graph."""
