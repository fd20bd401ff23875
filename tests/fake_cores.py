# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What users may name in --core: good and bad functions."""

import tensorflow as tf

_SHARED = tf.keras.layers.GRUCell(3)


def stacked(units):
  """Two cells, with three arrays in their states."""
  return tf.keras.layers.StackedRNNCells(
      [tf.keras.layers.LSTMCell(units), tf.keras.layers.GRUCell(units + 1)])


class Minimal(tf.keras.layers.Layer):
  """The smallest cell that Keras documents: a size, `build` and `call`."""

  def __init__(self, units):
    super().__init__()
    self.state_size = units

  def build(self, shape):
    self.kernel = self.add_weight(
        shape=(shape[-1] + self.state_size, self.state_size), name='kernel')

  def call(self, inputs, states):
    output = tf.tanh(tf.concat([inputs, states[0]], 1) @ self.kernel)
    return output, [output]


class LastInputs(tf.keras.layers.Layer):
  """A cell whose state is the last two inputs, features of shape [2, 5]."""

  state_size = ((2, 5),)

  def build(self, shape):
    self.kernel = self.add_weight(shape=(shape[-1], 5), name='kernel')

  def get_initial_state(self, batch_size=None):
    return [tf.zeros([batch_size, 2, 5])]

  def call(self, inputs, states):
    now = tf.tanh(inputs @ self.kernel)[:, None]
    kept = tf.concat([states[0][:, 1:], now], 1)
    output = tf.concat([kept[:, 0] * kept[:, 1], kept[:, 1]], 1)
    return output, [kept]


def last_inputs(units):
  del units
  return LastInputs()


class WithPlainVariable(Minimal):
  """Has a variable that Keras does not know."""

  def build(self, shape):
    super().build(shape)
    self.scale = tf.Variable(tf.ones([self.state_size]))

  def call(self, inputs, states):
    output, states = super().call(inputs, states)
    return output * self.scale, states


def dense(units):
  return tf.keras.layers.Dense(units)


def whole_layer(units):
  return tf.keras.layers.GRU(units)


def with_dropout(units):
  return tf.keras.layers.GRUCell(units, recurrent_dropout=.5)


def with_regularizer(units):
  return tf.keras.layers.GRUCell(units, kernel_regularizer='l2')


def the_same(units):
  del units
  return _SHARED


def nothing(units):
  del units


def raises(units):
  raise ValueError(f'I do not like {units}.')


class Ones(Minimal):

  def get_initial_state(self, batch_size=None):
    return [tf.ones([batch_size, self.state_size])]


class Whole(Minimal):

  def get_initial_state(self, batch_size=None):
    return [tf.zeros([batch_size, self.state_size], tf.int32)]


class Named(Minimal):

  def get_initial_state(self, batch_size=None):
    return {'mean': tf.zeros([batch_size, self.state_size])}


class Complex(Minimal):

  def call(self, inputs, states):
    output, [state] = super().call(inputs, states)
    return output, [tf.complex(state, state)]


class Grows(Minimal):

  def call(self, inputs, states):
    output, [state] = super().call(inputs, states)
    return output, [tf.concat([state, state], 1)]


class ThreeAxes(Minimal):

  def call(self, inputs, states):
    output, state = super().call(inputs, states)
    return output[None], state


class Pair(Minimal):

  def call(self, inputs, states):
    output, state = super().call(inputs, states)
    return (output, output), state
