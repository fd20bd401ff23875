# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sums over several learners through ray's store.

Slower than TensorFlow's collectives, but nothing listens beside ray.
"""

from typing import Any

import ray
from scalable_agent.learning import collectives
import tensorflow as tf


class RayCollectives(collectives.VectorCollectives):
  """Collectives by an `adder.Adder`."""

  def __init__(self, adder: Any, size: int, rank: int, timeout_s: float):
    """Makes collectives.

    Args:
      adder: the handle of the `adder.Adder` of all learners.
      size: number of learners.
      rank: which of them this process is.
      timeout_s: how long a sum may take. A longer one fails.
    """
    super().__init__(size, rank)
    self._adder, self._timeout_s = adder, timeout_s
    self._number = 0

  def _sum_vector(self, vector: tf.Tensor) -> tf.Tensor:
    total = tf.numpy_function(self._sum_array, [vector], vector.dtype)
    return tf.ensure_shape(total, vector.shape)

  def _sum_array(self, array):
    number, self._number = self._number, self._number + 1
    try:
      [result] = ray.get(
          self._adder.sum.remote(number, self.rank, [ray.put(array)]),
          timeout=self._timeout_s)
      return ray.get(result, timeout=self._timeout_s)
    except ray.exceptions.RayError as e:
      raise RuntimeError(f'Collective sum {number} has failed: {e}') from e
