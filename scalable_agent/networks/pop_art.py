# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""PopArt: a baseline of normalised returns (van Hasselt et al. 2016).

Source: arXiv 1602.07714; with several levels arXiv 1809.04474 (Hessel et al.
2018). `normalisers` has the formula of a move.

`T` is time, `B` the batch, `N` is `T * B`, `F` the number of features.
"""

from collections.abc import Sequence
import math

import numpy as np
from scalable_agent.networks import normalisers
import tensorflow as tf

_MIN_DEVIATION, _MAX_DEVIATION = 1e-4, 1e6
# Of advantages: the first reward after many zeros is no huge advantage.
_MIN_ADVANTAGE_DEVIATION = 1e-2


class PopArt(tf.keras.layers.Layer):
  """A baseline in rewards, from a layer that learns normalised returns.

  When the statistics move, the layer is corrected, so that no value changes.
  Only the first move changes values: from 0 to the mean return.

  With several levels, each level has statistics and an output of the layer. A
  value is then an array `[L]`, one number per level. In a learner, `levels` are
  int32 `[B]`, the level of each column; `()` for one level.

  Attributes:
    statistics: mean and variance of the returns; the count is of moves.
    shape: of a value: `()`, or `(L,)` for several levels.
  """

  def __init__(self, layer: tf.keras.layers.Dense, names: Sequence[str] = ()):
    """Wraps a dense layer with one output per level, zeros at first.

    `names` are the levels; `()` for one level.
    """
    super().__init__(dtype='float32', autocast=False)
    self._layer = layer
    self._numbers = {name: number for number, name in enumerate(names)}
    self.shape: tuple[int, ...] = (len(names),) if names else ()
    self.statistics = normalisers.Statistics(self.shape, self.shape)

  @property
  def deviation(self) -> tf.Tensor:
    """The standard deviation of returns, within [1e-4, 1e6]."""
    return tf.clip_by_value(
        tf.sqrt(self.statistics.variance), _MIN_DEVIATION, _MAX_DEVIATION)

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Computes values `[N, 1]`, or `[N, 1, L]`, of features `[N, F]`."""
    values = self.statistics.mean + self.deviation * self._layer(features)
    return values[:, tf.newaxis] if self.shape else values

  def levels(self, names: np.ndarray) -> np.ndarray | tuple[()]:
    """Returns the `levels` of names of levels, object `[B]`."""
    return np.array([self._numbers[name] for name in names], np.int32) if (
        self.shape) else ()

  def of_levels(self, x: tf.Tensor, levels: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of `levels` in `x`: `[..., B]` of `[..., B, L]`."""
    if not self.shape:
      return x
    return tf.reduce_sum(x * tf.one_hot(levels, *self.shape), axis=-1)

  def deviations(self, levels: tf.Tensor) -> tf.Tensor:
    """Returns the `deviation` of each level: `[B]`, or a scalar."""
    return self.of_levels(self.deviation, levels)

  def are_set(self, levels: tf.Tensor) -> tf.Tensor | float:
    """Returns 1 for levels with statistics, else 0: float32 `[B]`.

    The number 1 for one level, as a learner waits for its statistics.
    """
    return self.of_levels(tf.cast(
        self.statistics.count > 0, tf.float32), levels) if self.shape else 1.0

  def scaled(self, advantages: tf.Tensor, errors: tf.Tensor,
             levels: tf.Tensor = ()) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns advantages and errors of the baseline in normalised units.

    Both are 0 for a level that has no statistics yet.
    """
    deviation = self.deviations(levels)
    advantages /= tf.maximum(deviation, _MIN_ADVANTAGE_DEVIATION)
    errors /= deviation
    are_set = self.are_set(levels)
    return are_set * advantages, are_set * errors

  def moments(self, targets: tf.Tensor, levels: tf.Tensor = ()
              ) -> tuple[tf.Tensor | int, tf.Tensor, tf.Tensor]:
    """Returns the number of targets `[T, B]`, and the moments.

    With several levels, these are three tensors `[L]`.
    """
    mean = tf.cast(self.statistics.mean, tf.float64)
    rows = tf.cast(tf.reshape(targets, [-1]), tf.float64)
    if self.shape:
      return _moments_of_levels(
          rows, tf.reshape(tf.broadcast_to(levels, targets.shape), [-1]), mean)
    return (math.prod(targets.shape), *normalisers.moments(rows, mean))

  def move(self, rate: tf.Tensor, first: tf.Tensor, second: tf.Tensor,
           is_new: tf.Tensor | bool = True) -> tf.Tensor:
    """Moves the statistics; returns whether the moments were finite.

    Args:
      rate: float64 scalar, smallest share of the new returns. Move `k` has the
        share `1 / k` or this rate.
      first: float64, mean of `v - mean` of new returns `v`; a scalar, or `[L]`.
      second: float64, mean of its squares.
      is_new: whether there are new returns; else the statistics stay.
    """
    statistics = self.statistics
    mean, deviation = tf.identity(statistics.mean), self.deviation
    count = statistics.count + tf.cast(is_new, tf.float64)
    share = tf.where(is_new, tf.maximum(1 / count, rate), 0)
    is_finite = statistics.move(share, first, second, count)
    ratio = deviation / self.deviation
    shift = (mean - statistics.mean) / self.deviation
    is_first = tf.equal(count, 1)
    kernel, bias = self._layer.kernel, self._layer.bias
    kernel.assign(tf.where(is_first, kernel, kernel * ratio))
    bias.assign(tf.where(is_first, bias, bias * ratio + shift))
    return is_finite


def _moments_of_levels(
    x: tf.Tensor, levels: tf.Tensor, mean: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the numbers of rows of each level, and the `moments`.

  Args:
    x: float64 `[N]`.
    levels: int32 `[N]`, numbers of the `L` levels.
    mean: float64 `[L]`.

  Returns:
    Three float64 tensors `[L]`.
  """
  is_of = tf.one_hot(levels, mean.shape[0], dtype=tf.float64)
  counts = tf.reduce_sum(is_of, axis=0)
  center = tf.math.divide_no_nan(
      tf.linalg.matvec(is_of, x, transpose_a=True), counts)
  rest = is_of * (x[:, tf.newaxis] - center)
  first, second = (tf.reduce_sum(y, axis=0) for y in (rest, tf.square(rest)))
  shift = center - mean
  return (counts, counts * shift + first,
          second + shift * (2 * first + counts * shift))
