# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Torsos for frames: the networks `deep`, `shallow` and `nature`.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch); `H`, `W` and `C`
are height, width and channels. Frames are `[N, H, W, C]` or `[N, C, H, W]`;
uint8 is divided by 255, float is not. See `layers` on seeds and sublayers.
"""

from collections.abc import Sequence
import functools

from scalable_agent import errors
from scalable_agent.networks import layers
from scalable_agent.settings import declare
import tensorflow as tf


class DeepTorso(layers.Composite):
  """The paper's ResNet: 15 convolutions in three sections, then dense 256."""

  def __init__(self, data_format: str = 'channels_last',
               seed: layers.Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    self._data_format = data_format
    self._sections = tuple(ResNetSection(channels, seed)
                           for channels in (16, 32, 32))
    self._dense = layers.dense(256, 'relu', seed)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 256]` of frames, see the module."""
    x = _to_channels_last(frames, self._data_format)
    x = layers.to_float(x, self.compute_dtype)
    for section in self._sections:
      x = section(x)
    return self._dense(layers.flatten(tf.nn.relu(x)))


class ResNetSection(layers.Composite):
  """Convolution, pooling to half the size, two residual blocks."""

  def __init__(self, channels: int, seed: layers.Seed):
    super().__init__()
    conv = lambda: tf.keras.layers.Conv2D(
        channels, 3, padding='same',
        data_format='channels_last',  # Not that of the user's keras.json.
        kernel_initializer=layers.FanInTruncatedNormal(seed))
    self._conv = conv()
    self._blocks = tuple((conv(), conv()) for _ in range(2))

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """Computes `[N, ceil(H / 2), ceil(W / 2), channels]` of `[N, H, W, C]`."""
    x = self._conv(x)
    x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding='SAME')
    for first, second in self._blocks:
      x += second(tf.nn.relu(first(tf.nn.relu(x))))
    return x


class ShallowTorso(layers.Composite):
  """The paper's small network: two convolutions, then dense 256 (as in A3C)."""

  def __init__(self, data_format: str = 'channels_last',
               seed: layers.Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    # The paper does not give the initial weights. Frames of games are mostly
    # background, and kernels whose mean is not zero respond to the background
    # only; see "Dead units" in docs/decisions.md.
    initializer = tf.keras.initializers.HeNormal(seed)
    self._first = _PatchConv(16, 4, data_format, layers.ZeroMeanNormal(seed))
    self._second = tf.keras.layers.Conv2D(
        32, 4, 2, activation='relu', kernel_initializer=initializer,
        data_format='channels_last')
    self._dense = tf.keras.layers.Dense(
        256, 'relu', kernel_initializer=initializer)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 256]` of frames, see the module."""
    x = tf.nn.relu(self._first(frames))
    return self._dense(layers.flatten(self._second(x)))


class NatureTorso(layers.Composite):
  """DQN's network (Mnih et al. 2015): three convolutions, then dense 512."""

  def __init__(self, data_format: str = 'channels_last',
               seed: layers.Seed = None):
    """Makes a torso for frames `channels_last` or `channels_first`."""
    super().__init__()
    initializer = tf.keras.initializers.HeNormal(seed)
    conv = functools.partial(
        tf.keras.layers.Conv2D, activation='relu', data_format='channels_last',
        kernel_initializer=initializer)
    self._first = _PatchConv(32, 4, data_format, layers.ZeroMeanNormal(seed))
    self._second = conv(64, 4, 2)
    self._third = conv(64, 3, 1)
    self._dense = tf.keras.layers.Dense(
        512, 'relu', kernel_initializer=initializer)

  def call(self, frames: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 512]` of frames, see the module."""
    x = tf.nn.relu(self._first(frames))
    return self._dense(layers.flatten(self._third(self._second(x))))


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
    x = tf.nn.conv2d(layers.to_float(x, self.compute_dtype), kernel, 1, 'VALID')
    return x + self._bias


def make(
    network: str, shape: tuple[int, ...], seed: tf.keras.random.SeedGenerator
) -> tf.keras.layers.Layer:
  data_format = layers.data_format(shape)
  if network == 'deep':
    return DeepTorso(data_format, seed)
  torso = {'shallow': ShallowTorso,
           'nature': NatureTorso}[network]
  size = min(shape[1:] if data_format == 'channels_first' else shape[:2])
  min_size = declare.MIN_FRAME_SIZES[network]
  if size < min_size:
    raise errors.ConfigError(
        f'--agent={network} needs frames of at least {min_size} pixels a side, '
        f'but observations have shape {shape}: use --agent=deep or '
        '--agent=mlp.')
  return torso(data_format, seed)


def _to_channels_last(frames: tf.Tensor, data_format: str) -> tf.Tensor:
  if data_format == 'channels_first':
    return tf.transpose(frames, [0, 2, 3, 1])
  return frames
