# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Adam and two forms of RMSProp, the learning rate schedule, clipping."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices

# Smallest and largest learning rate of `KlSchedule`, as in sample-factory.
_KL_RATES = 1e-6, 1e-2


def make_optimizer(name: str, *, learning_rate: float, decay: float,
                   momentum: float, epsilon: float, beta_1: float,
                   beta_2: float) -> tf.keras.optimizers.Optimizer:
  """Makes an optimizer by name.

  Args:
    name: `rmsprop` (`RMSProp`), `torch_rmsprop` (`TorchRMSProp`) or `adam`.
    learning_rate: the learning rate; `learning_rate.assign` changes it later.
    decay: decay of the second moment of RMSProp.
    momentum: momentum of RMSProp.
    epsilon: inside the root for `rmsprop`, otherwise outside.
    beta_1: decay of Adam's first moment.
    beta_2: decay of Adam's second moment.
  """
  if name == 'rmsprop':
    return RMSProp(learning_rate, decay, momentum, epsilon)
  if name == 'torch_rmsprop':
    return TorchRMSProp(learning_rate, decay, momentum, epsilon)
  if name == 'adam':
    return Adam(learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)
  raise ValueError(f'Unknown optimizer {name!r}: must be rmsprop, '
                   'torch_rmsprop or adam.')


class Adam(tf.keras.optimizers.Adam):
  """Adam with the epsilon of the paper and with summed slices.

  In update `t`, with the gradient `g`:

      m <- beta_1 m + (1 - beta_1) g
      v <- beta_2 v + (1 - beta_2) g^2
      variable <- variable - learning_rate / (1 - beta_1^t) m
                             / (sqrt(v / (1 - beta_2^t)) + epsilon)

  This is algorithm 1 of Kingma and Ba 2015 (arXiv 1412.6980), as in PyTorch and
  optax. Keras has `sqrt(v)` there, without the correction of `v`. Then epsilon
  counts up to 32 times as much in the first updates.

  Keras squares the slices of a `tf.IndexedSlices` one by one. With `n` slices
  of the same row, the row's second moment is up to `n` times too small. Here,
  as in TensorFlow 1, the moments are those of the sum, and the moments of all
  rows decay.
  """

  def update_step(self, gradient: Gradient, variable: tf.Variable,
                  learning_rate: tf.Tensor) -> None:
    self.update_steps([(gradient, variable)], learning_rate)

  def update_steps(self, pairs: Sequence[tuple[Gradient, tf.Variable]],
                   learning_rate: tf.Tensor) -> None:
    """Updates the variables, of one dtype, of pairs `(gradient, variable)`."""
    if not pairs:
      return
    # Powers for each variable would be a quarter of SAC's operations.
    dtype = pairs[0][1].dtype
    beta_1, beta_2 = (
        tf.constant(beta, dtype) for beta in (self.beta_1, self.beta_2))
    step = tf.cast(self.iterations + 1, dtype)
    beta_2_power = tf.pow(beta_2, step)
    # Keras' formula needs ten operations and 1.6 times the time of this one
    # operation, which computes the formula above if epsilon has this factor.
    numbers = dict(
        beta1_power=tf.pow(beta_1, step), beta2_power=beta_2_power,
        lr=tf.cast(learning_rate, dtype), beta1=beta_1, beta2=beta_2,
        epsilon=self.epsilon * tf.sqrt(1.0 - beta_2_power))
    for gradient, variable in pairs:
      if isinstance(gradient, tf.IndexedSlices):
        gradient = sum_slices(gradient, variable.shape)
      index = self._get_variable_index(variable)
      tf.raw_ops.ResourceApplyAdam(
          var=variable.handle, m=self._momentums[index].value.handle,
          v=self._velocities[index].value.handle,
          grad=tf.cast(gradient, dtype), **numbers)


class RMSProp(tf.keras.optimizers.Optimizer):
  """The RMSProp of TensorFlow 1, which IMPALA's hyperparameters are for.

      mean_square <- decay * mean_square + (1 - decay) * gradient^2
      step        <- momentum * step
                     + learning_rate * gradient / sqrt(mean_square + epsilon)
      variable    <- variable - step

  The mean square starts at one, which damps the first `1 / (1 - decay)`
  updates. Keras' RMSprop starts at zero: its first steps are up to
  `1 / sqrt(1 - decay)` times as large.

  Of a gradient of `tf.IndexedSlices`, as of an embedding, the slices of a row
  are summed, and rows without slices stay as before, with their mean square and
  step, as in TensorFlow 1. The computation is dense, because XLA needs dense
  tensors and vocabularies are small. Under data parallelism, a row is updated
  if any replica has a slice of the row.
  """

  _scope = 'rmsprop'
  _initial_mean_square = 'ones'

  def __init__(self, learning_rate: float, decay: float = 0.99,
               momentum: float = 0.0, epsilon: float = 0.1):
    """Makes the optimizer.

    Args:
      learning_rate: the learning rate; `learning_rate.assign` changes it.
      decay: decay of the mean square.
      momentum: decay of the step; at 0 there are no variables for the step.
      epsilon: added to the mean square, inside the root.
    """
    super().__init__(learning_rate=learning_rate, name=self._scope)
    self.decay = decay
    self.momentum = momentum
    self.epsilon = epsilon

  def build(self, variables: Sequence[tf.keras.Variable]) -> None:
    if self.built:
      return
    super().build(variables)
    self._mean_squares = [
        self.add_variable_from_reference(
            v, 'mean_square', initializer=self._initial_mean_square)
        for v in variables]
    self._steps = [self.add_variable_from_reference(v, 'step')
                   for v in variables] if self.momentum else []

  def update_step(self, gradient: Gradient, variable: tf.keras.Variable,
                  learning_rate: tf.Tensor) -> None:
    index = self._get_variable_index(variable)
    is_updated = True
    if isinstance(gradient, tf.IndexedSlices):
      is_updated = _has_slices(gradient, variable.shape)
      gradient = sum_slices(gradient, variable.shape)
    gradient = tf.cast(gradient, variable.dtype)

    slot = self._mean_squares[index]
    mean_square = slot + (1.0 - self.decay) * (tf.square(gradient) - slot)
    self.assign(slot, tf.where(is_updated, mean_square, slot))

    step = tf.cast(learning_rate, variable.dtype) * gradient * tf.math.rsqrt(
        mean_square + self.epsilon)
    if self.momentum:
      slot = self._steps[index]
      step += self.momentum * slot
      self.assign(slot, tf.where(is_updated, step, slot))
      step = tf.where(is_updated, step, 0.0)
    self.assign_sub(variable, step)


class TorchRMSProp(RMSProp):
  """The RMSprop of PyTorch, which DI-engine's IMPALA uses.

      mean_square <- decay * mean_square + (1 - decay) * gradient^2
      step        <- momentum * step + gradient / (sqrt(mean_square) + epsilon)
      variable    <- variable - learning_rate * step

  `epsilon` is added to the root, not inside; PyTorch's default is 1e-8. The
  mean square starts at zero. Slices of `tf.IndexedSlices` are summed; the mean
  squares of all rows decay.
  """

  _scope = 'torch_rmsprop'
  _initial_mean_square = 'zeros'

  def update_step(self, gradient: Gradient, variable: tf.keras.Variable,
                  learning_rate: tf.Tensor) -> None:
    index = self._get_variable_index(variable)
    if isinstance(gradient, tf.IndexedSlices):
      gradient = sum_slices(gradient, variable.shape)
    gradient = tf.cast(gradient, variable.dtype)
    slot = self._mean_squares[index]
    mean_square = slot + (1.0 - self.decay) * (tf.square(gradient) - slot)
    self.assign(slot, mean_square)
    step = gradient / (tf.sqrt(mean_square) + self.epsilon)
    if self.momentum:
      slot = self._steps[index]
      step += self.momentum * slot
      self.assign(slot, step)
    self.assign_sub(variable, tf.cast(learning_rate, variable.dtype) * step)


class Scheduled(NamedTuple):
  """An optimizer and its learning rate.

  Attributes:
    schedule: returns the learning rate after a number of environment frames.
  """
  optimizer: tf.keras.optimizers.Optimizer
  schedule: 'Callable[[int], float] | KlSchedule'


class KlSchedule:
  """A learning rate that keeps the KL between policies near a target.

  The rule of sample-factory (arXiv 2006.11751), with the mean KL of the updates
  of a collection: the rate is divided by 1.5 if the mean is above twice the
  target, and multiplied by 1.5 if the mean is below half of the target.

  Attributes:
    variables: rate, sum and number of the KLs; for checkpoints.
  """

  def __init__(self, learning_rate: float, target_kl: float):
    """Makes a schedule that starts with `learning_rate`."""
    self._target_kl = target_kl
    self.variables = [
        tf.Variable(np.array(value, np.float32), trainable=False)
        for value in (learning_rate, 0, 0)]
    self._compiled_add = tf.function(self._add, autograph=False)

  def forget(self) -> None:
    """Forgets the KLs of a collection that a stop has cut off."""
    for variable in self.variables[1:]:
      variable.assign(0.)

  def __call__(self, num_env_frames: int) -> tf.Tensor:
    """Returns the rate, float32; the device is not waited for."""
    del num_env_frames
    return self.variables[0].read_value()

  def add(self, kl: tf.Tensor, is_last: bool) -> None:
    """Adds the KL of an update; moves the rate after the last update."""
    self._compiled_add(kl, np.array(is_last))

  def _add(self, kl: tf.Tensor, is_last: tf.Tensor) -> None:
    rate, total, count = self.variables
    mean = (total + kl) / (count + 1)
    factor = tf.where(mean > 2 * self._target_kl, 1 / 1.5, tf.where(
        mean < self._target_kl / 2, 1.5, 1.))
    rate.assign(tf.where(is_last, tf.clip_by_value(
        rate * factor, *_KL_RATES), rate))
    total.assign(tf.where(is_last, 0., total + kl))
    count.assign(tf.where(is_last, 0., count + 1))


def linear_decay(initial_learning_rate: float, num_env_frames: int,
                 total_num_env_frames: int) -> float:
  """Returns a learning rate that falls linearly to zero.

  Args:
    initial_learning_rate: the learning rate at frame 0.
    num_env_frames: environment frames before the update.
    total_num_env_frames: frames at which the learning rate reaches zero.
  """
  # The difference in integers: near the end of 1e9 frames, 1 - frames / total
  # has few correct digits.
  remaining = max(total_num_env_frames - num_env_frames, 0)
  return initial_learning_rate * remaining / total_num_env_frames


def global_norm(gradients: Sequence[Gradient | None]) -> tf.Tensor:
  """Returns the Euclidean norm of all gradients together, a float32 scalar.

  `tf.linalg.global_norm` counts each slice of `tf.IndexedSlices` as a row of
  its own. Here slices of the same row are summed. Slices need a `dense_shape`.
  None is skipped.
  """
  return tf.linalg.global_norm([
      sum_slices(g, g.shape) if isinstance(g, tf.IndexedSlices) else g
      for g in gradients])


def clip_by_norm(gradients: Sequence[Gradient | None],
                 max_norm: float) -> list[Gradient | None]:
  """Scales gradients by `min(1, max_norm / (norm + 1e-6))`, as PyTorch does.

  `tf.clip_by_global_norm` does without the 1e-6.
  """
  scale = tf.minimum(1.0, max_norm / (global_norm(gradients) + 1e-6))
  return [_map_values(lambda x: x * tf.cast(scale, x.dtype), g)
          for g in gradients]


def clip_by_value(gradients: Sequence[Gradient | None],
                  limit: float) -> list[Gradient | None]:
  """Clips each element to [-limit, limit].

  Of slices of the same row, the sum is clipped, and each slice gets an equal
  part of the clipped sum.
  """
  return [_clip(g, limit) for g in gradients]


def _clip(gradient: Gradient | None, limit: float) -> Gradient | None:
  if not isinstance(gradient, tf.IndexedSlices):
    return (None if gradient is None
            else tf.clip_by_value(gradient, -limit, limit))
  shape = gradient.shape
  clipped = tf.clip_by_value(sum_slices(gradient, shape), -limit, limit)
  counts = tf.cast(tf.reshape(
      slices_per_row(gradient, shape), [-1] + [1] * (len(shape) - 1)),
                   clipped.dtype)
  # The number of slices must not change where XLA compiles.
  return tf.IndexedSlices(
      tf.gather(tf.math.divide_no_nan(clipped, counts), gradient.indices),
      gradient.indices, gradient.dense_shape)


def _map_values(function: Callable[[tf.Tensor], tf.Tensor],
                gradient: Gradient | None) -> Gradient | None:
  """Returns the gradient with a linear function of its values."""
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(
        function(gradient.values), gradient.indices, gradient.dense_shape)
  return None if gradient is None else function(gradient)


def sum_slices(
    gradient: tf.IndexedSlices, shape: Sequence[int]) -> tf.Tensor:
  """Returns dense `shape`: the sum of the slices of each row."""
  return tf.math.unsorted_segment_sum(
      gradient.values, gradient.indices, shape[0])


def slices_per_row(
    gradient: tf.IndexedSlices, shape: Sequence[int]) -> tf.Tensor:
  """Returns the number of slices of each row, float32 `[shape[0]]`."""
  return tf.math.unsorted_segment_sum(
      tf.ones_like(gradient.indices, tf.float32), gradient.indices, shape[0])


def to_slices(dense: tf.Tensor, num_slices: tf.Tensor) -> tf.IndexedSlices:
  """Returns the rows of `dense` that have slices, as one slice each."""
  rows = tf.where(num_slices > 0)[:, 0]
  return tf.IndexedSlices(tf.gather(dense, rows), rows, tf.shape(dense))


def _has_slices(gradient: tf.IndexedSlices, shape: Sequence[int]) -> tf.Tensor:
  """Returns whether each row has a slice, bool `[rows, 1, ...]`."""
  return tf.reshape(slices_per_row(gradient, shape) > 0,
                    [-1] + [1] * (len(shape) - 1))
