# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The learner: one compiled update from a batch to new weights."""

from typing import Any, Dict, Optional

from scalable_agent import actor
from scalable_agent import optimizers
from scalable_agent import structs
import tensorflow as tf
import tree


class Learner:
  """Updates an agent's weights, counts frames, publishes weights.

  Attributes:
    agent: the agent that learns.
    optimizer: a Keras optimizer.
    num_env_frames: int64 variable, environment frames learned from.
    num_updates: int64 variable, updates made.
  """

  def __init__(self, agent: Any, algorithm: Any,
               optimizer: tf.keras.optimizers.Optimizer, *,
               learning_rate: float, total_environment_frames: int,
               num_env_frames_per_update: int,
               clip_gradient_norm: Optional[float] = None,
               micro_batch_size: Optional[int] = None,
               jit_compile: bool = False):
    """Makes a learner.

    Args:
      agent: the agent that learns.
      algorithm: `loss(agent, batch)` gives the loss, a sum over the batch, and
        metrics, see `algorithms.impala`.
      optimizer: its learning rate is set anew for every update.
      learning_rate: the rate at frame 0; it falls linearly to 0.
      total_environment_frames: where the learning rate reaches 0.
      num_env_frames_per_update: batch size x unroll length x action repeats.
      clip_gradient_norm: the largest global norm of the gradient, or None.
      micro_batch_size: how many unrolls of a batch are processed at once, one
        such part after the other; None for all. The update is that of the whole
        batch. What is computed on the way stays in the caches of a CPU if the
        parts are small.
      jit_compile: whether XLA compiles the update.
    """
    self.agent = agent
    self.optimizer = optimizer
    self.num_env_frames = tf.Variable(0, dtype=tf.int64, trainable=False)
    self.num_updates = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._algorithm = algorithm
    self._learning_rate = learning_rate
    self._total_environment_frames = total_environment_frames
    self._num_env_frames_per_update = num_env_frames_per_update
    self._clip_gradient_norm = clip_gradient_norm
    self._micro_batch_size = micro_batch_size
    self._compiled_update = tf.function(self._update, autograph=False)
    self._compiled_gradients = self._gradients
    self._compiled_apply = self._apply
    # Functions of their own are what XLA compiles, and what all micro-batches
    # share; otherwise they only cost time.
    if jit_compile or micro_batch_size:
      self._compiled_gradients, self._compiled_apply = (
          tf.function(function, autograph=False, jit_compile=jit_compile)
          for function in (self._gradients, self._apply))
    optimizer.build(agent.trainable_variables)

  def step(self, batch: structs.ActorOutput) -> Dict[str, tf.Tensor]:
    """Makes one update.

    Args:
      batch: `ActorOutput` of tensors `[T + 1, B, ...]`, see `to_tensors`.

    Returns:
      Scalars by name, among them `learning_rate`, `total_loss` and
      `gradient_norm` (before clipping).
    """
    return self._compiled_update(batch)

  def published(self) -> actor.Weights:
    """Returns a copy of the weights that later updates do not change."""
    return actor.Weights(
        version=int(self.num_updates),
        values=[tf.convert_to_tensor(v) for v in self.agent.variables])

  def _update(self, batch):
    batch_size = batch.agent_outputs.action.shape[1]
    step = self._micro_batch_size or batch_size
    gradients, sums, means = None, {}, {}
    for start in range(0, batch_size, step):
      part = _columns(batch, start, min(start + step, batch_size))
      with tf.control_dependencies([sums['total_loss']] if sums else []):
        # One after the other: side by side they would share the caches.
        part = tree.map_structure(tf.identity, part)
      part_gradients, part_sums, part_means = self._compiled_gradients(part)
      share = part.agent_outputs.action.shape[1] / batch_size
      gradients = part_gradients if gradients is None else [
          _add(g, p) for g, p in zip(gradients, part_gradients, strict=True)]
      sums = {k: sums.get(k, 0.0) + v for k, v in part_sums.items()}
      means = {k: means.get(k, 0.0) + share * v for k, v in part_means.items()}
    return {**sums, **means, **self._compiled_apply(gradients)}

  def _gradients(self, batch):
    with tf.GradientTape() as tape:
      loss, sums, means = self._algorithm.loss(self.agent, batch)
    return tape.gradient(loss, self.agent.trainable_variables), sums, means

  def _apply(self, gradients):
    variables = self.agent.trainable_variables
    # Slices forget the static shape of the whole between two functions.
    gradients = [
        tf.IndexedSlices(g.values, g.indices, tf.constant(v.shape.as_list()))
        if isinstance(g, tf.IndexedSlices) else g
        for g, v in zip(gradients, variables, strict=True)]
    norm = optimizers.global_norm(gradients)
    if self._clip_gradient_norm is not None:
      gradients, _ = tf.clip_by_global_norm(
          gradients, self._clip_gradient_norm, use_norm=norm)
    learning_rate = optimizers.linear_decay(
        self._learning_rate, self.num_env_frames,
        self._total_environment_frames)
    self.optimizer.learning_rate.assign(learning_rate)
    self.optimizer.apply(gradients, variables)
    self.num_env_frames.assign_add(self._num_env_frames_per_update)
    self.num_updates.assign_add(1)
    return {'gradient_norm': norm, 'learning_rate': learning_rate}


def _columns(batch, start, end):
  """Returns the unrolls `start` to `end` of a batch of tensors."""
  columns = lambda x: x[start:end]
  columns_of_steps = lambda x: x[:, start:end]
  return tree.map_structure(columns_of_steps, batch)._replace(
      agent_state=tree.map_structure(columns, batch.agent_state))


def _add(gradient, other):
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(
        tf.concat([gradient.values, other.values], 0),
        tf.concat([gradient.indices, other.indices], 0), gradient.dense_shape)
  return gradient + other


def to_tensors(agent: Any, batch: structs.ActorOutput) -> structs.ActorOutput:
  """Copies a batch of arrays to the default device; splits instructions.

  The arrays can be overwritten afterwards. Level names and statistics, which
  are not learned from, are left out.
  """
  env_outputs = agent.tokenize(batch.env_outputs._replace(info=()))
  return tree.map_structure(
      lambda array: tf.identity(tf.convert_to_tensor(array)),
      batch._replace(level_name=(), env_outputs=env_outputs))
