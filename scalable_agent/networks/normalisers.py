# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Normalisers: running means and variances of observations and of returns.

The statistics are variables of the agent that no loss changes: each version
of the weights has its own statistics. Only the learner moves the statistics.
A move mixes the old statistics with new rows `x`. Moments are taken about the
old mean, and `share` is the share of the new rows:

    first = mean(x - mean),    second = mean((x - mean)^2)
    mean' = mean + share first
    variance' = (1 - share) variance + share second - (share first)^2

Observations are clipped to five standard deviations. Returns are normalised
in `pop_art`.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch), `F` the number of
features.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import nests
from scalable_agent.experience import structs
from scalable_agent.networks import layers
import tensorflow as tf

Observations: TypeAlias = tf.Tensor | dict[str, tf.Tensor]

_CLIP = 5.0
_EPSILON = 1e-5  # As if frames were divided by 255.
# From here on, the mean of observations is a moving average: a new part of a
# game is noticed.
_MAX_COUNT = 1e7
# Fewer new rows wait for more: the mean is float32, which rounds away the move
# of a smaller share if the mean is much larger than the deviation.
_MIN_SHARE = 1e-3
# On a CPU, XLA needs one pass over the memory, and time to compile. With fewer
# numbers, and so in most policy steps, XLA gains nothing.
_MIN_COMPILED_NUMBERS = 500_000


def moments(x: tf.Tensor, mean: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the sums of `x - mean` and of its squares over the first axis.

  Args:
    x: float32 or float64 `[N, ...]`. Sums are taken about the mean of `x`, so
      that large numbers do not cancel.
    mean: float64 `[...]`.

  Returns:
    Two float64 tensors `[...]`.
  """
  center = tf.reduce_mean(x, axis=0)
  rest = x - center
  first, second = (tf.cast(tf.reduce_sum(y, axis=0), tf.float64)
                   for y in (rest, tf.square(rest)))
  count = tf.cast(tf.shape(x)[0], tf.float64)
  shift = tf.cast(center, tf.float64) - mean
  return (count * shift + first,
          second + shift * (2 * first + count * shift))


def mixed(mean: tf.Tensor, variance: tf.Tensor, share: tf.Tensor,
          first: tf.Tensor, second: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the mean and the variance after a move, see the module."""
  shift = share * first
  return mean + shift, tf.maximum(
      (1 - share) * variance + share * second - tf.square(shift), 0)


class Statistics(tf.keras.layers.Layer):
  """A running mean and variance.

  Attributes:
    mean: float32, of the given shape.
    variance: float32.
    count: float64, rows or moves so far; a scalar, or `[L]` of `L` levels.
  """

  def __init__(self, shape: tuple[int, ...],
               counts: tuple[int, ...] = ()):
    """Makes the statistics of arrays of a shape; `counts` is that of `count`.
    """
    super().__init__(dtype='float32', autocast=False)
    make = lambda name, value, shape, dtype='float32': self.add_weight(
        shape=shape, initializer=value, dtype=dtype, trainable=False,
        autocast=False, name=name)
    self.mean = make('mean', 'zeros', shape)
    self.variance = make('variance', 'ones', shape)
    self.count = make('count', 'zeros', counts, 'float64')
    self.built = True

  def move(self, share: tf.Tensor, first: tf.Tensor, second: tf.Tensor,
           count: tf.Tensor) -> tf.Tensor:
    """Moves the statistics, unless the result is not finite in 32 bits.

    Args:
      share: float64, the share of the new rows; a scalar, or `[L]`.
      first: float64, mean of `x - mean` of the new rows.
      second: float64, mean of its squares.
      count: float64, the new count, like `share`.

    Returns:
      Whether the statistics have moved, bool scalar.
    """
    double = lambda x: tf.cast(x, tf.float64)
    mean, variance = (tf.cast(x, tf.float32) for x in mixed(
        double(self.mean), double(self.variance), share, first, second))
    is_finite = tf.reduce_all(tf.math.is_finite(mean)) & tf.reduce_all(
        tf.math.is_finite(variance))
    for variable, value in zip((self.mean, self.variance, self.count),
                               (mean, variance, count), strict=True):
      variable.assign(tf.where(is_finite, value, variable))
    return is_finite


class ObservationNormaliser(tf.keras.layers.Layer):
  """Normalises each number of an observation, before the torso.

  The planes of a stack `[C, H, W]` share their statistics, which come from the
  newest plane, the last one.

  Attributes:
    statistics: by the name of the part; '' for an observation of one array.
  """

  def __init__(self, parts: Mapping[str, structs.ArraySpec],
               is_stacked: bool = False):
    """Makes a normaliser of the given parts of an observation.

    With `is_stacked`, frames of uint8 are stacks.
    """
    super().__init__(dtype='float32', autocast=False)
    self._is_stack = {
        name: is_stacked and spec.dtype == np.uint8 and len(spec.shape) == 3
        for name, spec in parts.items()}
    self.statistics = {
        name: Statistics(spec.shape[self._is_stack[name]:])
        for name, spec in parts.items()}

  def call(self, observations: Observations) -> Observations:
    """Returns observations whose normalised parts are float32, in [-5, 5]."""
    parts = dict(nests.parts_of(observations))
    for name, statistics in self.statistics.items():
      num_numbers = parts[name].shape.num_elements()  # None: not known yet.
      is_large = (num_numbers or 0) >= _MIN_COMPILED_NUMBERS
      function = (_compiled_normalised if is_large and layers.on_cpu()
                  else _normalised)
      parts[name] = function(
          parts[name], tf.convert_to_tensor(statistics.mean),
          tf.convert_to_tensor(statistics.variance))
    return parts if isinstance(observations, dict) else parts['']

  def newest(self, observations: structs.Nest, steps: slice = slice(None),
             columns: slice = slice(None)) -> dict[str, structs.Array]:
    """Returns the normalised parts of observations, of stacks the newest plane.

    Args:
      observations: arrays or tensors `[T, B, ...]`, one or by name.
      steps: the entries to take along time.
      columns: the columns to take.
    """
    parts = nests.parts_of(observations)
    return {name: parts[name][
        (steps, columns, -1) if self._is_stack[name] else (steps, columns)]
            for name in self.statistics}

  def clipped(self, observations: Observations) -> tuple[int, int]:
    """Returns how many numbers are normalised, and how many are clipped."""
    values = self(observations)
    parts = [values[name] if isinstance(values, dict) else values
             for name in self.statistics]
    return (sum(int(tf.size(part)) for part in parts),
            sum(int(tf.reduce_sum(tf.cast(tf.abs(part) >= _CLIP, tf.int32)))
                for part in parts))

  def moments(self, newest: Mapping[str, tf.Tensor]
              ) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Returns the moments of `newest`, `[T, B, ...]` by name, see `moments`."""
    result = {}
    for name, x in newest.items():
      # 64 bits for floats: rounding does not depend on the division of rows.
      rows = layers.to_float(tf.reshape(x, [-1, *x.shape[2:]]), (
          'float32' if x.dtype == tf.uint8 else 'float64'))
      mean = self.statistics[name].mean
      result[name] = moments(rows, tf.cast(mean, tf.float64))
    return result

  def is_due(self, name: str, count: tf.Tensor, second: tf.Tensor
             ) -> tf.Tensor:
    """Returns whether `move` should be called, bool scalar; arguments as there.

    Sums that are not finite cannot wait: `move` tells of these.
    """
    old = tf.minimum(self.statistics[name].count, _MAX_COUNT)
    return (count >= _MIN_SHARE * old) | ~tf.reduce_all(
        tf.math.is_finite(second))

  def move(self, name: str, count: tf.Tensor, first: tf.Tensor,
           second: tf.Tensor) -> tf.Tensor:
    """Adds `count` rows, with sums from `moments`, to a part's statistics.

    Returns whether the statistics have moved, see `Statistics.move`.
    """
    statistics = self.statistics[name]
    total = tf.minimum(statistics.count, _MAX_COUNT) + count
    return statistics.move(count / total, first / count, second / count, total)


def _normalised(x: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
                ) -> tf.Tensor:
  x = layers.to_float(x, 'float32') - mean
  return tf.clip_by_value(x / tf.sqrt(variance + _EPSILON), -_CLIP, _CLIP)


_compiled_normalised = tf.function(
    _normalised, jit_compile=True, autograph=False)


def part_names(asked: str, observation_spec: structs.ObservationSpec,
               network: str) -> list[str]:
  """Returns the sorted names of the parts of observations to normalise.

  The name of an observation of one array is ''.

  Args:
    asked: `none`; `auto` for all parts of floats and uint8, without discrete
      parts, and without uint8 if the network is a function of a user, which
      expects bytes; or names of parts, separated by commas.
    observation_spec: the spec of the torso's input.
    network: see `factory.make_agent`.

  Raises:
    ConfigError: if a name is not the name of an array of numbers.
  """
  parts = nests.parts_of(observation_spec)
  if asked == 'none':
    return []
  if asked == 'auto':
    has_bytes = ':' not in network
    return sorted(
        name for name, part in parts.items()
        if not isinstance(part, structs.DiscreteSpec) and (
            part.dtype == np.uint8 and has_bytes or part.dtype.kind == 'f'))
  names = {name.strip() for name in asked.split(',')}
  for name in sorted(names):
    if name not in parts or parts[name].dtype == object:
      raise errors.ConfigError(
          f'--normalise_observations={asked}: {name} is no part of the '
          'observations. Use auto, or names of '
          f'{", ".join(map(str, parts)).strip() or "parts"}.')
  return sorted(names)


def choose(asked: str, observation_spec: structs.ObservationSpec,
           network: str = 'mlp', is_stacked: bool = False
           ) -> ObservationNormaliser | None:
  """Returns the normaliser of an observation; None if there is nothing to do.

  See `part_names` and `ObservationNormaliser`.
  """
  names = part_names(asked, observation_spec, network)
  parts = nests.parts_of(observation_spec)
  return ObservationNormaliser({name: parts[name] for name in names},
                               is_stacked) if names else None
