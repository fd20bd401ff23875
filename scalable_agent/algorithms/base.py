# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What the learner needs from an algorithm: losses by group of variables.

A group is a list of variables that one optimizer changes. IMPALA has one group.
An actor-critic with two optimizers has two.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from scalable_agent import agents
from scalable_agent import structs
import tensorflow as tf


class Loss(NamedTuple):
  """The losses of a batch, and scalars for the log.

  Attributes:
    by_group: one scalar loss for each group, by name of the group: a sum over
      the batch. It changes the variables of this group only.
    sums: scalars for the log, by name: sums over the batch.
    means: scalars for the log, by name: means over the batch.
  """
  by_group: Mapping[str, tf.Tensor]
  sums: Mapping[str, tf.Tensor]
  means: Mapping[str, tf.Tensor]


class Algorithm(Protocol):
  """A learning rule and its variables.

  Attributes:
    agent: the agent that acts; its variables are published.
    groups: the variables that the losses change, by name of the group.
    targets: variables that are saved but never published, such as those of
      target networks.
  """
  agent: agents.Agent
  groups: dict[str, list[tf.Variable]]
  targets: list[tf.Variable]

  def loss(self, data: structs.Unroll, seed: tf.Tensor) -> Loss:
    """Computes the losses of a batch; called within a `tf.function`.

    Args:
      data: `Unroll` of tensors `[T + 1, B, ...]`.
      seed: int32 `[2]`, different in each update.
    """

  def after_update(self) -> None:
    """Updates the targets, if any; called within a `tf.function`."""
