# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Recurrent cores of agents: `layers.LSTM`, and any Keras cell.

`T` is time, `B` the batch, `I` and `F` the numbers of inputs and outputs.
"""

import functools
from typing import TypeAlias

from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.networks import layers
from scalable_agent.networks import user_layers
from scalable_agent.processes import user_code
import tensorflow as tf


class CellCore(tf.keras.layers.Layer):
  """A Keras cell unrolled over time; the state is zeroed where episodes begin.

  The state is a tuple of the cell's arrays, float32 `[B, ...]` under any dtype
  policy.
  """

  def __init__(self, cell: tf.keras.layers.Layer, maker: str):
    """Makes a core of a cell, such as a `tf.keras.layers.GRUCell`.

    `maker` is the value of --core. This call, and the call that makes the
    variables, raise ConfigError for a cell that does not fit.
    """
    # Automatic casts would also cast the state, which stays float32.
    super().__init__(autocast=False)
    self._cell = cell
    self._maker = maker
    state = tf.keras.layers.RNN(cell).get_initial_state(1)
    parts = tf.nest.flatten(state)
    if not all(tf.is_tensor(part) and part.dtype.is_floating
               and not tf.reduce_any(part != 0) for part in parts):
      raise errors.ConfigError(
          f'The initial state of the cell of {maker} must be zeros: an array '
          'of floats, or a list or tuple of such arrays.')
    self._shapes = tuple(tuple(part.shape[1:]) for part in parts)
    # Keras would wrap the lists of an attribute.
    self._pack = functools.partial(
        tf.nest.pack_sequence_as, tf.nest.map_structure(lambda _: 0, state))

  @property
  def state_names(self) -> tuple[str, ...]:
    """A name for each array of the state."""
    return tuple(f'state_{i + 1}' for i in range(len(self._shapes)))

  def build(self, inputs_shape: tf.TensorShape, *unused_shapes: object) -> None:
    """Makes the variables for inputs of the shape `[T, B, I]`."""
    who = f'The cell of {self._maker}'
    with user_code.errors_explained(f'{self._maker} of --core'):
      output, state = user_layers.call(
          self._cell, 'cell', self._maker, 'core',
          tf.zeros([2, inputs_shape[-1]]), self._pack(self.initial_state(2)))
      user_layers.check_features(output, who, 'environments')
      shapes = [list(part.shape) for part in tf.nest.flatten(state)
                if part.dtype.is_floating]
      expected = [[2, *shape] for shape in self._shapes]
      if shapes != expected:
        raise errors.ConfigError(
            f'{who} has a state of the shapes {expected} before a step, and '
            f'{shapes} after the step: floats of the same shapes are needed.')
    self._num_outputs = output.shape[-1]

  def initial_state(self, batch_size: int) -> structs.State:
    """Returns zeros, a tuple of float32 `[batch_size, ...]`."""
    return tuple(tf.zeros([batch_size, *shape]) for shape in self._shapes)

  def call(self, inputs: tf.Tensor, state: structs.State,
           reset: tf.Tensor) -> tuple[tf.Tensor, structs.State]:
    """Unrolls the cell.

    Args:
      inputs: float `[T, B, I]`. `T` may be unknown, but not for XLA.
      state: see `initial_state`, before the first step.
      reset: bool `[T, B]`, whether the state is zeroed before the step.

    Returns:
      Outputs float32 `[T, B, F]` and the state after the last step.
    """
    if inputs.shape[0] == 1:  # A single step, as in acting, needs no loop.
      output, state = self._step(inputs[0], reset[0], state)
      return output[tf.newaxis], state
    nothing = tf.zeros([tf.keras.ops.shape(inputs)[1], self._num_outputs])
    outputs, states = tf.scan(
        lambda last, now: self._step(now[0], now[1], last[1]), (inputs, reset),
        initializer=(nothing, tuple(state)))
    return outputs, tuple(part[-1] for part in states)

  def _step(self, inputs: tf.Tensor, reset: tf.Tensor, state: structs.State
            ) -> tuple[tf.Tensor, structs.State]:
    """Returns the output `[B, F]` and the state after a step."""
    state = [tf.where(tf.reshape(reset, [-1] + [1] * (part.shape.rank - 1)),
                      0., part) for part in state]
    output, state = self._cell(inputs, self._pack(state))
    to_float = lambda x: tf.cast(x, tf.float32)
    return to_float(output), tuple(map(to_float, tf.nest.flatten(state)))


Core: TypeAlias = layers.LSTM | CellCore


def make(name: str, units: int, seed: layers.Seed) -> Core:
  """Returns the core called `name`, see `factory.make_agent`.

  Raises ConfigError or UserCodeError if the function of the user raises an
  error, or if its result is no Keras cell.
  """
  if name == 'lstm':
    return layers.LSTM(units, seed)
  if name == 'gru':
    # Small changes of a state would be lost in bfloat16.
    return CellCore(tf.keras.layers.GRUCell(
        units, kernel_initializer=tf.keras.initializers.GlorotUniform(seed),
        recurrent_initializer=tf.keras.initializers.Orthogonal(seed=seed),
        dtype='float32'), name)
  make_cell = user_code.load(name, 'core')
  with user_code.errors_explained(f'{name} of --core'):
    cell = user_layers.check_type(make_cell(units), name, 'core')
    if (not hasattr(cell, 'state_size')
        or isinstance(cell, tf.keras.layers.RNN)):  # Also has a size.
      raise errors.ConfigError(
          f'{name} of --core must return a Keras cell, such as '
          'tf.keras.layers.GRUCell(units), but returned a '
          f'{type(cell).__name__}.')
    return CellCore(cell, name)
