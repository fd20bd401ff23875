# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Keras layers of agents: initial weights, dueling values, LSTM with resets.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch). Layers and
distributions of initial weights in this folder come from IMPALA (arXiv
1802.01561), as published in TensorFlow 1 and Sonnet. They differ from Keras'
own: a checkpoint of a `tf.keras.layers.LSTM` does not fit.

Layers take a `seed` for the initial weights: None for Keras' global seed, or a
`tf.keras.random.SeedGenerator`. With an integer, two kernels of the same shape
would get the same values.

Sublayers are kept in tuples: `tf.train.Checkpoint` of a Keras 3 layer silently
leaves out sublayers in a list. (The program saves the list of all variables.)
"""

from collections.abc import Iterator, Sequence
import contextlib
import logging
import math
import pathlib
import random
import threading
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

Seed: TypeAlias = tf.keras.random.SeedGenerator | None
LSTMState: TypeAlias = tuple[tf.Tensor, tf.Tensor]

_lock = threading.Lock()
# An entry for each open `state_of_caller_kept`, of any thread.
_states_of_caller: list[tuple] = []


def set_compute_dtype(name: str) -> None:
  """Sets the type of products in new layers, `float32` or `bfloat16`.

  Variables are float32 in any case.
  """
  tf.keras.config.set_dtype_policy(
      {'float32': 'float32', 'bfloat16': 'mixed_bfloat16'}[name])


@contextlib.contextmanager
def state_of_caller_kept() -> Iterator[None]:
  """Puts back the generators and Keras' dtype policy at the end.

  All threads share `random` and `numpy.random`: the end of the last of several
  concurrent uses puts back the state from before the first use.
  """
  policy = tf.keras.config.dtype_policy()  # Of this thread alone.
  with _lock:
    _states_of_caller.append((random.getstate(), np.random.get_state()))
  try:
    yield
  finally:
    tf.keras.config.set_dtype_policy(policy)
    with _lock:
      numbers, arrays = _states_of_caller.pop()
      if not _states_of_caller:  # The state from before the first use.
        random.setstate(numbers)
        np.random.set_state(arrays)


@contextlib.contextmanager
def root_logger_kept() -> Iterator[None]:
  """Keeps TensorFlow's savers from configuring the root logger of the caller.

  The savers log through absl, which configures a logger without a handler.
  """
  handler = logging.NullHandler()
  logging.root.addHandler(handler)
  try:
    yield
  finally:
    logging.root.removeHandler(handler)


def on_cpu() -> bool:
  """Returns whether TensorFlow computes on a CPU, since no GPU is visible."""
  return not tf.config.get_visible_devices('GPU')


def has_bfloat16() -> bool:
  """Returns whether the device has instructions for products of bfloat16.

  GPUs since Ampere and CPUs with AVX512_BF16 have them.
  """
  if not on_cpu():
    return all(
        tf.config.experimental.get_device_details(gpu).get(
            'compute_capability', (0, 0)) >= (8, 0)
        for gpu in tf.config.get_visible_devices('GPU'))
  return 'avx512_bf16' in pathlib.Path('/proc/cpuinfo').read_text().split()


class FanInTruncatedNormal(tf.keras.initializers.Initializer):
  """Sonnet's default: normal of stddev `1 / sqrt(fan_in)`, cut at two stddevs.

  The cut lowers the variance. Keras' `VarianceScaling` compensates with a
  larger stddev; Sonnet does not.
  """

  def __init__(self, seed: Seed = None, scale: float = 1.):
    """Makes an initializer; `scale` is a factor of the weights."""
    self._seed = seed or tf.keras.random.SeedGenerator()
    self._scale = scale

  def __call__(self, shape: Sequence[int],
               dtype: str | None = None) -> tf.Tensor:
    """Returns initial weights of `shape`; the last axis is the outputs."""
    fan_in = math.prod(shape[:-1])
    return tf.keras.random.truncated_normal(
        shape, stddev=self._scale / math.sqrt(fan_in), dtype=dtype,
        seed=self._seed)


class ZeroMeanNormal(tf.keras.initializers.Initializer):
  """Normal kernels whose weights sum to zero: no response to a flat surface.

  The stddev is four times the stddev of `HeNormal`, because frames without
  flat parts have small values.
  """

  def __init__(self, seed: Seed = None):
    self._seed = seed or tf.keras.random.SeedGenerator()

  def __call__(self, shape: Sequence[int],
               dtype: str | None = None) -> tf.Tensor:
    """Returns initial weights of `shape`; the last axis is the outputs."""
    axes = tuple(range(len(shape) - 1))
    stddev = 4 * math.sqrt(2 / math.prod(shape[:-1]))
    kernel = tf.keras.random.normal(
        shape, stddev=stddev, dtype=dtype, seed=self._seed)
    return kernel - tf.reduce_mean(kernel, axes, keepdims=True)


class Product(NamedTuple):
  """A dense layer's product with a part of the inputs, float `[N, units]`."""
  of_observations: tf.Tensor


class Composite(tf.keras.layers.Layer):
  """A layer of sublayers, which the first call builds.

  Without a method `build`, Keras would trace the first call of each layer
  before the call. Nested layers would be traced again in each other's traces.
  """

  def build(self, unused_input_shape: Sequence[int]) -> None:
    """Makes nothing: the sublayers make the variables."""


class Dueling(Composite):
  """Values of actions as `V + A - mean(A)` (Wang et al., arXiv 1511.06581)."""

  def __init__(self, value: tf.keras.layers.Layer,
               advantages: tf.keras.layers.Layer):
    super().__init__(dtype='float32')
    self._value = value
    self._advantages = advantages

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Computes values `[N, A]` of features `[N, F]`."""
    advantages = self._advantages(features)
    return (self._value(features) + advantages
            - tf.reduce_mean(advantages, axis=-1, keepdims=True))


class StateIndependentScale(tf.keras.layers.Layer):
  """Means from features, and logarithms of deviations that are variables."""

  def __init__(self, means: tf.keras.layers.Layer,
               log_scale: Sequence[float], bounds: tuple[float, float]):
    """Makes a layer with the initial values `log_scale`.

    `bounds` are those of the distribution: beyond these, no gradient leads
    back.
    """
    super().__init__(dtype='float32')
    self._means = means
    self._log_scale = self.add_weight(
        shape=(len(log_scale),), name='log_scale',
        initializer=lambda _, dtype: tf.constant(log_scale, dtype),
        constraint=lambda x: tf.clip_by_value(x, *bounds))
    self.built = True

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Computes parameters `[N, 2 K]` of features `[N, F]`."""
    means = self._means(features)
    return tf.concat(
        [means, tf.zeros_like(means) + self._log_scale], axis=-1)


class LSTM(tf.keras.layers.Layer):
  """An LSTM unrolled over time whose state is zeroed where episodes begin.

  The cell is TensorFlow 1's `LSTMBlockCell`: one kernel for `[input, h]`, gates
  in the order input, candidate, forget, output, and 1 added to the forget gate
  at run time, so that the bias starts at 0. The state, `(c, h)`, is float32
  under any dtype policy.
  """

  def __init__(self, units: int, seed: Seed = None):
    """Makes an LSTM; `units` is the size of `c` and of `h`."""
    # Automatic casts would also cast the state, which stays float32.
    super().__init__(autocast=False)
    self._units = units
    self._initializer = tf.keras.initializers.GlorotUniform(seed=seed)
    self.state_names = 'c', 'h'

  def build(self, inputs_shape: Sequence[int],
            *unused_shapes: Sequence[int]) -> None:
    """Makes kernel and bias for inputs of the shape `[T, B, I]`."""
    self.kernel = self.add_weight(
        shape=[inputs_shape[-1] + self._units, 4 * self._units],
        initializer=self._initializer, name='kernel')
    self.bias = self.add_weight(
        shape=[4 * self._units], initializer='zeros', name='bias',
        autocast=False)

  def initial_state(self, batch_size: int) -> LSTMState:
    """Returns zeros: `(c, h)`, both float32 `[batch_size, units]`."""
    zeros = tf.zeros([batch_size, self._units])
    return zeros, zeros

  def call(self, inputs: tf.Tensor, state: LSTMState,
           reset: tf.Tensor | None = None) -> tuple[tf.Tensor, LSTMState]:
    """Unrolls the LSTM.

    Args:
      inputs: float `[T, B, I]`. `T` may be unknown, but not for XLA.
      state: `(c, h)`, float32 `[B, units]`, before the first step.
      reset: bool `[T, B]`, whether the state is zeroed before the step.

    Returns:
      Outputs float32 `[T, B, units]` and the state after the last step.
    """
    input_kernel, recurrent_kernel = tf.split(
        tf.cast(self.kernel, self.compute_dtype),
        [inputs.shape[-1], self._units])
    # Products with the inputs do not depend on the state, so one product for
    # all steps is faster than a product in each step of the loop.
    gate_inputs = tf.cast(
        tf.tensordot(tf.cast(inputs, self.compute_dtype), input_kernel, 1),
        tf.float32) + self.bias
    if reset is None:
      reset = tf.zeros(tf.shape(inputs)[:2], tf.bool)

    def step(state: LSTMState,
             gate_inputs_and_reset: tuple[tf.Tensor, tf.Tensor]) -> LSTMState:
      gate_inputs, reset = gate_inputs_and_reset
      c, h = (tf.where(reset[:, tf.newaxis], 0., s) for s in state)
      recurrent = tf.matmul(tf.cast(h, self.compute_dtype), recurrent_kernel)
      return _lstm_gates(gate_inputs + tf.cast(recurrent, tf.float32), c)

    if inputs.shape[0] == 1:  # A single step, as in acting, needs no loop.
      c, h = step(state, (gate_inputs[0], reset[0]))
      return h[tf.newaxis], (c, h)
    all_c, all_h = tf.scan(step, (gate_inputs, reset), initializer=state)
    return all_h, (all_c[-1], all_h[-1])


def _lstm_gates(gates: tf.Tensor, c: tf.Tensor) -> LSTMState:
  """Returns the next `(c, h)` for gates `[B, 4 * units]` before activation."""
  i, candidate, f, o = tf.split(gates, 4, axis=-1)
  c = tf.sigmoid(f + 1.) * c + tf.sigmoid(i) * tf.tanh(candidate)
  return c, tf.sigmoid(o) * tf.tanh(c)


def dense(units: int, activation: str | None,
           seed: Seed) -> tf.keras.layers.Dense:
  return tf.keras.layers.Dense(
      units, activation, kernel_initializer=FanInTruncatedNormal(seed))


def to_float(x: tf.Tensor, dtype: str) -> tf.Tensor:
  scale = 255 if x.dtype == tf.uint8 else 1
  x = tf.cast(x, dtype)
  return x / scale if scale != 1 else x


def flatten(x: tf.Tensor) -> tf.Tensor:
  return tf.reshape(x, [tf.shape(x)[0], math.prod(x.shape[1:])])


def data_format(frame_shape: tuple[int, ...]) -> str:
  """Returns the layout of frames.

  The channels are the outer axis beside two equal axes (a square frame may have
  any number of channels), or else the smaller outer axis.
  """
  first, middle, last = frame_shape
  is_square = (first == middle) != (middle == last)
  is_first = middle == last if is_square else first < last
  return 'channels_first' if is_first else 'channels_last'
