# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sums over several learners through ray's object store.

Slower than TensorFlow's collectives, but opens no port besides ray's ports.
"""

from typing import Any

import numpy as np
import ray
from scalable_agent.learning import collectives
import tensorflow as tf


class RayCollectives(collectives.VectorCollectives):
  """Collectives whose sums are computed by an `adder.Adder`."""

  def __init__(self, adder: Any, size: int, rank: int, timeout_s: float):
    """Creates the collectives of learner `rank` of `size`.

    `adder` is ray's handle of the `adder.Adder` that all learners share. A sum
    fails after `timeout_s`.
    """
    super().__init__(size, rank)
    self._adder, self._timeout_s = adder, timeout_s
    self._number = 0

  def _sum_vector(self, vector: tf.Tensor) -> tf.Tensor:
    total = tf.numpy_function(self._sum_array, [vector], vector.dtype)
    return tf.ensure_shape(total, vector.shape)

  def _sum_array(self, array: np.ndarray) -> np.ndarray:
    number, self._number = self._number, self._number + 1
    try:
      [result] = ray.get(
          self._adder.sum.remote(number, self.rank, [ray.put(array)]),
          timeout=self._timeout_s)
      return ray.get(result, timeout=self._timeout_s)
    except ray.exceptions.RayError as e:
      raise RuntimeError(f'Collective sum {number} has failed: {e}') from e
