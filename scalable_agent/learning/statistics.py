# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Moves the statistics of an agent's normalisers, see `networks.normalisers`.

Sums over new unrolls are collected while the statistics stay the same, and
move the statistics after the last update of a collection. So all updates of a
collection, and the actors of a version, see the same statistics. The sums of
several learners are added, which gives the statistics of all rows.
"""

from collections.abc import Mapping
import math

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.networks import agents
from scalable_agent.networks import flat_function
from scalable_agent.networks import instructions
from scalable_agent.networks import normalisers
import tensorflow as tf
import tree

# Numbers of observations that are summed at once, which need memory as floats.
_MAX_NUMBERS = 4_000_000


class Mover:
  """Collects sums, and moves the statistics of an agent.

  Attributes:
    variables: the sums, float64, which are saved and not published.
    counted: how many numbers of observations were normalised by the first
      statistics, and how many of these were clipped; (0, 0) before.
  """

  def __init__(self, agent: agents.Agent, return_rate: float,
               collectives: collectives_lib.Collectives):
    """Makes sums of zeros.

    Args:
      agent: the agent of the learner.
      return_rate: see `normalisers.PopArt.move`.
      collectives: the other learners.
    """
    self._observations = agent.observation_normaliser
    self._returns = agent.returns
    self._collectives = collectives
    self._return_rate = return_rate
    zeros = lambda shape: tf.Variable(
        np.zeros(shape), dtype=tf.float64, trainable=False)
    # Sums of ones, of the first and of the second moments.
    self._sums = {
        name: (zeros(()), zeros(part.mean.shape), zeros(part.mean.shape))
        for name, part in (self._observations.statistics.items()
                           if self._observations else ())}
    self._return_sums = (
        [zeros(()) for _ in range(3)] if self._returns else [])
    self.variables: list[tf.Variable] = [
        *tree.flatten(list(self._sums.values())), *self._return_sums]
    moving = list(self._observations.statistics.values()
                  ) if self._observations else []
    if self._returns:
      moving.append(self._returns.statistics)
    self._unset = [part.count for part in moving]
    self._compiled_add = flat_function.FlatFunction(self._add)
    self._compiled_move = flat_function.FlatFunction(self._move)
    self.counted = 0, 0

  @property
  def is_set(self) -> bool:
    """Whether all statistics have moved, so that the agent can learn."""
    # Once set, the counts stay set, and the device need not be asked.
    self._unset = [count for count in self._unset if not float(count)]
    return not self._unset

  def add(self, batch: structs.Batch,
          scalars: Mapping[str, tf.Tensor]) -> None:
    """Adds the new columns of a batch, and their targets, to the sums.

    The last batch of a collection, which counts the frames, moves the
    statistics by the sums of all learners, and clears the sums.

    Args:
      batch: the batch. Entry 0 of a column was the last entry of another one.
      scalars: the scalars of the batch's loss.
    """
    if not self.variables:
      return
    if batch.num_new_columns:
      self._add_batch(batch, scalars)
    if batch.num_new_frames:
      self._compiled_move()

  def _add_batch(self, batch: structs.Batch,
                 scalars: Mapping[str, tf.Tensor]) -> None:
    if self._observations:
      assert isinstance(batch.data, structs.Unroll)
      seen, _ = instructions.split(batch.data.steps.env_outputs.observation)
      num_numbers = sum(math.prod(x.shape) // x.shape[1]
                        for x in tree.flatten(seen))
      size = max(_MAX_NUMBERS // num_numbers, 1)
      for start in range(0, batch.num_new_columns, size):
        end = min(start + size, batch.num_new_columns)
        part = tree.map_structure(
            lambda x, start=start, end=end: x[1:, start:end], seen)
        if self.is_set and not self.counted[0]:
          self.counted = self._observations.clipped(part)
        self._compiled_add(part)
    if self._returns:
      for total, value in zip(self._return_sums, (
          1.0, *(scalars[name] for name in normalisers.RETURN_MOMENTS)),
                              strict=True):
        total.assign_add(tf.cast(value, tf.float64))

  def _add(self, seen: structs.Nest) -> None:
    assert self._observations
    num_steps, num_columns, *_ = tree.flatten(seen)[0].shape
    for name, values in self._observations.moments(seen).items():
      for total, value in zip(
          self._sums[name], (num_steps * num_columns, *values), strict=True):
        total.assign_add(tf.cast(value, tf.float64))

  def _move(self) -> None:
    sums = {name: [tf.identity(v) for v in of_part]
            for name, of_part in self._sums.items()}
    if self._collectives.size > 1 and sums:
      sums = tf.nest.pack_sequence_as(
          sums, self._collectives.sum(tf.nest.flatten(sums)))
    for name, (count, first, second) in sums.items():
      assert self._observations
      self._observations.move(name, count, first, second)
    if self._returns:
      # The means of losses are means over all learners.
      count, first, second = map(tf.identity, self._return_sums)
      self._returns.move(tf.constant(self._return_rate, tf.float64),
                         first / count, second / count)
    for variable in self.variables:
      variable.assign(tf.zeros_like(variable))
