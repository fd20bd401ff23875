# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What users may name in --agent and --hook: good and bad functions."""

import numpy as np
from scalable_agent import errors
import tensorflow as tf

NOTHING = None
HOOKED = []


def flat(observation_spec):
  del observation_spec
  return tf.keras.Sequential([
      tf.keras.layers.Flatten(), tf.keras.layers.Dense(8, 'tanh')])


def as_is(observation_spec):
  del observation_spec
  return tf.keras.layers.Identity()


def of_parts(observation_spec):
  """A torso for dictionaries: the sums of all parts."""
  assert isinstance(observation_spec, dict)

  class Sums(tf.keras.layers.Layer):

    def call(self, parts):
      return tf.stack([tf.reduce_sum(tf.cast(part, tf.float32), range(
          1, part.shape.rank)) for _, part in sorted(parts.items())], axis=1)

  return Sums()


def with_state(observation_spec):
  """A torso with a seed, a running mean, and a weight that has no effect."""
  del observation_spec

  class Counted(tf.keras.layers.Layer):

    def build(self, shape):
      self.unused = self.add_weight(shape=(3,), name='unused')
      self.seed = tf.keras.random.SeedGenerator(1)  # Integers.
      self.count = self.add_weight(shape=(), name='count', trainable=False)

    def call(self, features):
      self.count.assign_add(1.)
      return features

  return tf.keras.Sequential([
      tf.keras.layers.Flatten(), tf.keras.layers.Dense(8, 'tanh'), Counted()])


class Holder(tf.keras.layers.Layer):
  """Calls layers that are in a list within a dictionary."""

  def __init__(self, *layers):
    super().__init__()
    self.held = {'all': [tf.keras.layers.Flatten(), *layers]}

  def call(self, x):
    for layer in self.held['all']:
      x = layer(x)
    return x


def in_list(observation_spec):
  del observation_spec
  return Holder(Holder(tf.keras.layers.Dense(8, 'tanh')))


class _InContainers(tf.keras.layers.Layer):
  """Layers in lists of lists, in a dictionary by numbers, and a table."""

  def __init__(self):
    super().__init__()
    dense = lambda: tf.keras.layers.Dense(8, 'tanh')
    self._blocks = [[tf.keras.layers.Flatten(), dense()], [dense()]]
    self._by_number = {3: dense()}
    self._table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([0, 1], [5, 7]), 9)

  def call(self, x):
    x += tf.cast(self._table.lookup(tf.cast(x, tf.int32)), x.dtype)
    for layer in (*self._blocks[0], *self._blocks[1], self._by_number[3]):
      x = layer(x)
    return x


def in_containers(observation_spec):
  del observation_spec
  return _InContainers()


class _Plain(tf.keras.layers.Layer):
  """Has a variable that Keras does not know."""

  def __init__(self, trainable):
    super().__init__()
    self._dense = tf.keras.layers.Dense(8)
    self._scale = tf.Variable(tf.ones([50]), trainable)

  def call(self, x):
    return self._dense(tf.reshape(x, [-1, 50]) * self._scale)


def with_plain_variable(observation_spec):
  del observation_spec
  return _Plain(True)


def with_plain_numbers(observation_spec):
  del observation_spec
  return _Plain(False)


class _Conditional(tf.keras.layers.Layer):

  def call(self, x):
    if tf.reduce_max(x) > 1:
      x = x / 255
    return tf.reshape(x, [-1, 50])


def with_condition(observation_spec):
  del observation_spec
  return _Conditional()


class _OfFixedRows(tf.keras.layers.Layer):

  def call(self, x):
    return tf.reshape(x, [x.shape[0], 50])


def of_fixed_rows(observation_spec):
  del observation_spec
  return _OfFixedRows()


def with_dropout(observation_spec):
  del observation_spec

  class Own(tf.keras.layers.Dropout):
    pass

  return Holder(Holder(tf.keras.layers.Dense(8, 'tanh'), Own(.5)))


def _with(*layers, **kwargs):
  return tf.keras.Sequential([
      *layers, tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(8, 'tanh', **kwargs)])


def with_crops(observation_spec):
  rows, columns = observation_spec.shape
  return _with(tf.keras.layers.Reshape((rows, columns, 1)),
               tf.keras.layers.RandomCrop(rows - 1, columns - 1))


def with_recurrent_dropout(observation_spec):
  del observation_spec
  return _with(tf.keras.layers.GRU(8, recurrent_dropout=.5))


def with_spectral_norm(observation_spec):
  del observation_spec
  return _with(tf.keras.layers.SpectralNormalization(tf.keras.layers.Dense(8)))


def with_regularizer(observation_spec):
  del observation_spec
  return _with(kernel_regularizer='l2')


def with_activity_regularizer(observation_spec):
  del observation_spec
  return _with(activity_regularizer='l2')


def with_attention(observation_spec):
  """A model whose layer of attention has a dropout layer with a rate of 0."""
  x = inputs = tf.keras.Input(observation_spec.shape)
  x = tf.keras.layers.Reshape((-1, x.shape[-1]))(x)
  x = tf.keras.layers.MultiHeadAttention(2, 4)(x, x)
  return tf.keras.Model(inputs, tf.keras.layers.Flatten()(x))


def with_batch_norm(observation_spec):
  x = inputs = tf.keras.Input(observation_spec.shape)
  x = tf.keras.layers.BatchNormalization()(tf.keras.layers.Flatten()(x))
  return tf.keras.Model(inputs, tf.keras.layers.Dense(8, 'tanh')(x))


def frozen(observation_spec):
  """A model of given weights that do not learn."""
  model = with_batch_norm(observation_spec)
  model.set_weights([np.full(w.shape, .1) for w in model.get_weights()])
  model.trainable = False
  return model


def three_axes(observation_spec):
  del observation_spec
  return tf.keras.layers.Dense(8)


def doubles(observation_spec):
  del observation_spec
  return tf.keras.Sequential([
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(8, dtype='float64', name='dense')])


def whole_numbers(observation_spec):
  del observation_spec
  return tf.keras.layers.Lambda(lambda x: tf.zeros([2, 3], tf.int32))


def not_a_layer(observation_spec):
  return observation_spec


def raises(observation_spec):
  raise ValueError(f'I do not like {observation_spec.shape}.')


def stop(num_env_frames, values):
  raise errors.StopTraining()


def hook(num_env_frames, values):
  HOOKED.append((num_env_frames, dict(values)))


def raising_hook(num_env_frames, values):
  del values
  raise KeyError(f'at {num_env_frames}')


class HookWithoutEnd:

  def __init__(self, config):
    del config

  def __call__(self, num_env_frames, values):
    HOOKED.append((num_env_frames, dict(values)))


class HookOfRun:

  def __init__(self, config):
    HOOKED.append(config)

  def __call__(self, num_env_frames, values):
    if num_env_frames < 0:
      raise KeyError(num_env_frames)
    HOOKED.append((num_env_frames, dict(values)))

  def close(self):
    HOOKED.append('end')
