# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Keras layers of the agents: torsos, instruction encoder, LSTM with resets.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch), `W` a number of
words. The layers and the distributions of initial weights come from IMPALA
(arXiv 1802.01561), as published in TensorFlow 1 and Sonnet. They differ from
Keras' own: a checkpoint of a `tf.keras.layers.LSTM` does not fit.

Layers take a `seed` for the initial weights: None for Keras' global seed, or a
`tf.keras.random.SeedGenerator`. With an integer, two kernels of the same shape
would get the same values.

Sublayers are kept in tuples: `tf.train.Checkpoint` silently leaves out
sublayers that a Keras 3 layer keeps in a list.
"""

from collections.abc import Mapping, Sequence
import functools
import math
from typing import TypeAlias

import numpy as np
import tensorflow as tf

_NUM_HASH_BUCKETS = 1000
_EMBEDDING_SIZE = 20
_INSTRUCTION_UNITS = 64
# Padding is embedded as the empty word, as in the reference. Outputs do not
# depend on padding, but sparse optimizers decay the statistics of all rows that
# are looked up.
_EMPTY_WORD = 263
# Instructions are padded to a multiple of this number of words, so that
# compiled functions see few different shapes.
_WORDS_STEP = 8

_Seed: TypeAlias = tf.keras.random.SeedGenerator | None
LSTMState = tuple[tf.Tensor, tf.Tensor]
Observations: TypeAlias = tf.Tensor | dict[str, tf.Tensor]


def set_compute_dtype(name: str) -> None:
  """Sets the type of products in layers that are made from now on.

  Args:
    name: `float32` or `bfloat16`. Variables are float32 in any case.
  """
  tf.keras.config.set_dtype_policy(
      {'float32': 'float32', 'bfloat16': 'mixed_bfloat16'}[name])


def on_cpu() -> bool:
  """Returns whether TensorFlow computes on a CPU, since no GPU is visible."""
  return not tf.config.get_visible_devices('GPU')


class FanInTruncatedNormal(tf.keras.initializers.Initializer):
  """Sonnet's default: normal of stddev `1 / sqrt(fan_in)`, cut at two stddevs.

  The cut lowers the variance. Keras' `VarianceScaling` compensates with a
  larger stddev; Sonnet does not.
  """

  def __init__(self, seed: _Seed = None):
    self._seed = seed or tf.keras.random.SeedGenerator()

  def __call__(self, shape: Sequence[int],
               dtype: str | None = None) -> tf.Tensor:
    """Returns initial weights of `shape`; the last axis is the outputs."""
    fan_in = math.prod(shape[:-1])
    return tf.keras.random.truncated_normal(
        shape, stddev=1 / math.sqrt(fan_in), dtype=dtype, seed=self._seed)


class ZeroMeanNormal(tf.keras.initializers.Initializer):
  """Normal kernels whose weights sum to zero: no response to a flat surface.

  The stddev is four times the stddev of `HeNormal`, because frames without
  flat parts have small values.
  """

  def __init__(self, seed: _Seed = None):
    self._seed = seed or tf.keras.random.SeedGenerator()

  def __call__(self, shape: Sequence[int],
               dtype: str | None = None) -> tf.Tensor:
    """Returns initial weights of `shape`; the last axis is the outputs."""
    axes = tuple(range(len(shape) - 1))
    stddev = 4 * math.sqrt(2 / math.prod(shape[:-1]))
    kernel = tf.keras.random.normal(
        shape, stddev=stddev, dtype=dtype, seed=self._seed)
    return kernel - tf.reduce_mean(kernel, axes, keepdims=True)


class DeepTorso(tf.keras.layers.Layer):
  """The paper's ResNet: 15 convolutions in three sections, then dense 256."""

  def __init__(self, data_format: str = 'channels_last', seed: _Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    self._data_format = data_format
    self._sections = tuple(ResNetSection(channels, seed)
                           for channels in (16, 32, 32))
    self._dense = _dense(256, 'relu', seed)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 256]` of frames `[N, H, W, C]` (or `N, C, H, W`).

    Frames of uint8 are divided by 255, float frames are not.
    """
    x = _to_channels_last(frames, self._data_format)
    x = _to_float(x, self.compute_dtype)
    for section in self._sections:
      x = section(x)
    return self._dense(_flatten(tf.nn.relu(x)))


class ResNetSection(tf.keras.layers.Layer):
  """Convolution, pooling to half the size, two residual blocks."""

  def __init__(self, channels: int, seed: _Seed):
    super().__init__()
    conv = lambda: _conv(channels, 3, 1, 'same', None, seed)
    self._conv = conv()
    self._blocks = tuple((conv(), conv()) for _ in range(2))

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """Computes `[N, ceil(H / 2), ceil(W / 2), channels]`.

    Args:
      x: `[N, H, W, C]`, of the compute dtype.
    """
    x = self._conv(x)
    x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding='SAME')
    for first, second in self._blocks:
      x += second(tf.nn.relu(first(tf.nn.relu(x))))
    return x


class ShallowTorso(tf.keras.layers.Layer):
  """The paper's small network: two convolutions, then dense 256 (as in A3C)."""

  def __init__(self, data_format: str = 'channels_last', seed: _Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    # The paper does not give the initial weights. Frames of games are mostly
    # background, and kernels whose mean is not zero respond to the background
    # only; see "Dead units" in BUILD_NOTES.md.
    initializer = tf.keras.initializers.HeNormal(seed)
    self._first = _PatchConv(16, 4, data_format, ZeroMeanNormal(seed))
    self._second = tf.keras.layers.Conv2D(
        32, 4, 2, activation='relu', kernel_initializer=initializer)
    self._dense = tf.keras.layers.Dense(
        256, 'relu', kernel_initializer=initializer)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 256]` of frames `[N, H, W, C]` (or `N, C, H, W`).

    Frames of uint8 are divided by 255, float frames are not.
    """
    x = tf.nn.relu(self._first(frames))
    return self._dense(_flatten(self._second(x)))


class NatureTorso(tf.keras.layers.Layer):
  """DQN's network (Mnih et al. 2015): three convolutions, then dense 512."""

  def __init__(self, data_format: str = 'channels_last', seed: _Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    initializer = tf.keras.initializers.HeNormal(seed)
    conv = functools.partial(tf.keras.layers.Conv2D, activation='relu',
                             kernel_initializer=initializer)
    self._first = _PatchConv(32, 4, data_format, ZeroMeanNormal(seed))
    self._second = conv(64, 4, 2)
    self._third = conv(64, 3, 1)
    self._dense = tf.keras.layers.Dense(
        512, 'relu', kernel_initializer=initializer)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 512]` of frames `[N, H, W, C]` (or `N, C, H, W`).

    Frames of uint8 are divided by 255, float frames are not.
    """
    x = tf.nn.relu(self._first(frames))
    return self._dense(_flatten(self._third(self._second(x))))


class _PatchConv(tf.keras.layers.Layer):
  """A VALID convolution whose kernel is twice its stride, of uint8 or float.

  The layer computes the same numbers as `Conv2D(channels, 2 * stride, stride)`,
  and is 1.2 times as fast on a CPU. Patches of `stride x stride` pixels become
  channels (space to depth); then a 2 x 2 convolution of stride 1 is enough.
  Channels-first frames must be transposed anyway, and the same transposition
  makes the patches.
  """

  def __init__(self, channels: int, stride: int, data_format: str,
               initializer: tf.keras.initializers.Initializer):
    # Graphs do not accept the default name, `__patch_conv`.
    super().__init__(name='patch_conv')
    self._channels = channels
    self._stride = stride
    self._data_format = data_format
    self._initializer = initializer

  def build(self, shape: Sequence[int]) -> None:
    num_inputs = shape[1 if self._data_format == 'channels_first' else -1]
    size = 2 * self._stride
    self._kernel = self.add_weight(
        shape=(size, size, num_inputs, self._channels), name='kernel',
        initializer=self._initializer)
    self._bias = self.add_weight(
        shape=(self._channels,), name='bias', initializer='zeros')

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    s = self._stride
    if self._data_format == 'channels_first':
      _, c, h, w = frames.shape
      x = frames[:, :, :h - h % s, :w - w % s]
      x = tf.reshape(x, [-1, c, h // s, s, w // s, s])
      if x.dtype == tf.uint8 and s == 4:
        # Moves four pixels of a row at once, since a transposition of bytes
        # is slower; as floats, because oneDNN transposes no integers. A test
        # shows that all bits stay.
        x = tf.transpose(tf.bitcast(x, tf.float32), [0, 2, 4, 3, 1])
        x = tf.bitcast(x, tf.uint8)
      else:
        x = tf.transpose(x, [0, 2, 4, 3, 1, 5])
      axes = [0, 2, 1, 4, 3, 5]  # Of the kernel: channels before columns.
    else:
      _, h, w, c = frames.shape
      x = frames[:, :h - h % s, :w - w % s]
      x = tf.reshape(x, [-1, h // s, s, w // s, s, c])
      x = tf.transpose(x, [0, 1, 3, 2, 4, 5])
      axes = [0, 2, 1, 3, 4, 5]
    x = tf.reshape(x, [-1, h // s, w // s, s * s * c])
    kernel = tf.reshape(self._kernel, [2, s, 2, s, c, self._channels])
    kernel = tf.reshape(tf.transpose(kernel, axes),
                        [2, 2, s * s * c, self._channels])
    if self.compute_dtype == 'float32' and x.dtype == tf.uint8:
      # Scales the kernel, since frames have many more numbers.
      x, kernel = tf.cast(x, tf.float32), kernel / 255
    x = tf.nn.conv2d(_to_float(x, self.compute_dtype), kernel, 1, 'VALID')
    return x + self._bias


class MLPTorso(tf.keras.layers.Layer):
  """Dense layers, for vectors and tiny images."""

  def __init__(self, hidden_sizes: Sequence[int] = (64, 64),
               activation: str = 'tanh', seed: _Seed = None,
               layer_norm: bool = False):
    """Makes a torso.

    Args:
      hidden_sizes: units per layer.
      activation: activation of each layer.
      seed: see the module.
      layer_norm: whether to normalise the first layer (Ba et al. 2016, arXiv
        1607.06450) and apply tanh to the result, with ELU after the later
        layers instead of `activation`: acme's `LayerNormMLP`, except that the
        epsilon of the normalisation is Keras', 0.001.
    """
    super().__init__()
    if not layer_norm:
      self._dense_layers = tuple(
          _dense(size, activation, seed) for size in hidden_sizes)
      return
    first, *later = hidden_sizes
    self._dense_layers = (
        _dense(first, None, seed),
        tf.keras.layers.LayerNormalization(),
        tf.keras.layers.Activation('tanh'),
        *(_dense(size, 'elu', seed) for size in later))

  def call(self, observations: Observations,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features `[N, hidden_sizes[-1]]`.

    Args:
      observations: `[N, ...]`, or a dictionary of such arrays. Arrays of uint8
        are divided by 255, other types are not.
      actions: float32 `[N, ...]`, an additional input, or None.
    """
    parts = (list(observations.values()) if isinstance(observations, dict)
             else [observations])
    x = [_to_float(_flatten(part), self.compute_dtype) for part in parts]
    if actions is not None:
      x.append(tf.cast(actions, self.compute_dtype))
    x = tf.concat(x, axis=-1) if len(x) > 1 else x[0]
    for layer in self._dense_layers:
      x = layer(x)
    return x


class PartsTorso(tf.keras.layers.Layer):
  """A torso for each frame, then dense layers for the whole observation."""

  def __init__(self, frame_torsos: Mapping[str, tf.keras.layers.Layer],
               mlp: MLPTorso):
    """Makes a torso.

    Args:
      frame_torsos: a torso for each frame, by the frame's name in the
        dictionary of observations; '' for observations of a single frame.
      mlp: sees the features of frames, all other arrays, and the actions.
    """
    super().__init__()
    self._names = tuple(frame_torsos)
    self._frame_torsos = tuple(frame_torsos.values())
    self._mlp = mlp

  def call(self, observations: Observations,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features, see `MLPTorso.call`."""
    parts = (dict(observations) if isinstance(observations, dict)
             else {'': observations})
    for name, torso in zip(self._names, self._frame_torsos, strict=True):
      parts[name] = torso(parts[name])
    return self._mlp(parts, actions)


class JoinedTorso(tf.keras.layers.Layer):
  """A torso for the whole observation, then dense layers with the action."""

  def __init__(self, torso: tf.keras.layers.Layer, mlp: MLPTorso):
    """Makes a torso.

    Args:
      torso: maps observations `[N, ...]` to features `[N, F]`.
      mlp: sees the features and the actions.
    """
    super().__init__()
    self._torso = torso
    self._mlp = mlp

  def call(self, observations: Observations,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features, see `MLPTorso.call`."""
    return self._mlp(self._torso(observations), actions)


class Dueling(tf.keras.layers.Layer):
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


class LSTM(tf.keras.layers.Layer):
  """An LSTM unrolled over time whose state is zeroed where episodes begin.

  The cell is TensorFlow 1's `LSTMBlockCell`: one kernel for `[input, h]`, gates
  in the order input, candidate, forget, output, and 1 added to the forget gate
  at run time, so that the bias starts at 0. The state, `(c, h)`, is float32
  under any dtype policy.
  """

  def __init__(self, units: int, seed: _Seed = None):
    """Makes an LSTM; `units` is the size of `c` and of `h`."""
    # Automatic casts would also cast the state, which stays float32.
    super().__init__(autocast=False)
    self._units = units
    self._initializer = tf.keras.initializers.GlorotUniform(seed=seed)

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
      reset: bool `[T, B]`, whether the state is zeroed before the step; None
        for never.

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


class InstructionEncoder(tf.keras.layers.Layer):
  """Embeds the words of instructions; an LSTM encodes the embeddings."""

  def __init__(self, seed: _Seed = None):
    super().__init__()
    self._initializer = tf.keras.initializers.RandomNormal(
        stddev=1., seed=seed)
    self._lstm = LSTM(_INSTRUCTION_UNITS, seed)

  def build(self, unused_word_ids_shape: Sequence[int]) -> None:
    """Makes the embeddings of all hash buckets."""
    self.embeddings = self.add_weight(
        shape=[_NUM_HASH_BUCKETS, _EMBEDDING_SIZE],
        initializer=self._initializer, name='embeddings')

  def call(self, word_ids: tf.Tensor) -> tf.Tensor:
    """Encodes instructions.

    Args:
      word_ids: int32 `[N, W]`, see `hash_words`.

    Returns:
      float32 `[N, 64]`: output of the LSTM at the last word; zeros for
      instructions without words.
    """
    num_words = tf.reduce_sum(tf.cast(word_ids >= 0, tf.int32), axis=-1)
    rows = tf.where(word_ids >= 0, word_ids, _EMPTY_WORD)
    embedded = tf.gather(self.embeddings, tf.transpose(rows))  # [W, N, 20]
    outputs, _ = self._lstm(
        embedded, self._lstm.initial_state(tf.shape(word_ids)[0]))
    # Without words the index is -1, and the one-hot row is zero.
    is_last = tf.one_hot(num_words - 1, tf.shape(word_ids)[1])
    return tf.einsum('nw,wnu->nu', is_last, outputs)


def hash_words(instructions: np.typing.ArrayLike) -> np.ndarray:
  """Replaces the words of instructions by hash buckets.

  Words are separated by spaces; case matters. Call this function outside of
  compiled functions, since symbolic tensors have no words.

  Args:
    instructions: bytes or str `[...]`, or a string tensor.

  Returns:
    int32 `[..., W]`, buckets within `[0, 1000)`, padded at the end with -1. `W`
    is 1 if no instruction has words, else a multiple of 8, so that compiled
    functions see few shapes.
  """
  instructions = np.asarray(instructions, object)
  rows = [_hash_instruction(x) for x in instructions.ravel()]
  num_words = max(map(len, rows), default=0)
  ids = np.full([len(rows), max(1, -(-num_words // _WORDS_STEP) * _WORDS_STEP)],
                -1, np.int32)
  for i, row in enumerate(rows):
    ids[i, :len(row)] = row
  return ids.reshape(*instructions.shape, ids.shape[1])


def hash_words_in_graph(instructions: tf.Tensor) -> tf.Tensor:
  """Replaces words by hash buckets, within a compiled function.

  Args:
    instructions: string `[B]`.

  Returns:
    int32 `[B, W]`, where `W` is at least 1 and need not be a multiple of 8.
  """
  words = tf.strings.split(instructions, ' ')
  words = tf.ragged.boolean_mask(words, words != '')
  ids = tf.ragged.map_flat_values(
      tf.strings.to_hash_bucket_fast, words, _NUM_HASH_BUCKETS)
  ids = tf.cast(ids.to_tensor(-1), tf.int32)
  return tf.pad(ids, [[0, 0], [0, 1]], constant_values=-1)


# Actors see the same instructions again and again, and a hash takes as long as
# a policy step.
@functools.lru_cache(maxsize=2**16)
def _hash_instruction(instruction: bytes | str) -> tuple[int, ...]:
  words = [word for word in tf.compat.as_bytes(instruction).split(b' ') if word]
  if not words:
    return ()
  return tuple(tf.strings.to_hash_bucket_fast(
      words, _NUM_HASH_BUCKETS).numpy().tolist())


def _conv(channels: int, size: int, strides: int, padding: str,
          activation: str | None, seed: _Seed) -> tf.keras.layers.Conv2D:
  return tf.keras.layers.Conv2D(
      channels, size, strides, padding, activation=activation,
      kernel_initializer=FanInTruncatedNormal(seed))


def _dense(units: int, activation: str | None,
           seed: _Seed) -> tf.keras.layers.Dense:
  return tf.keras.layers.Dense(
      units, activation, kernel_initializer=FanInTruncatedNormal(seed))


def _to_channels_last(frames: tf.Tensor, data_format: str) -> tf.Tensor:
  if data_format == 'channels_first':
    return tf.transpose(frames, [0, 2, 3, 1])
  return frames


def _to_float(x: tf.Tensor, dtype: str) -> tf.Tensor:
  scale = 255 if x.dtype == tf.uint8 else 1
  x = tf.cast(x, dtype)
  return x / scale if scale != 1 else x


def _flatten(x: tf.Tensor) -> tf.Tensor:
  return tf.reshape(x, [tf.shape(x)[0], math.prod(x.shape[1:])])
