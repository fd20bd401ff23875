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
               jit_compile: bool = False):
    """Makes a learner.

    Args:
      agent: the agent that learns.
      algorithm: `loss(agent, batch)` gives a scalar and metrics, see
        `algorithms.impala`.
      optimizer: its learning rate is set anew for every update.
      learning_rate: the rate at frame 0; it falls linearly to 0.
      total_environment_frames: where the learning rate reaches 0.
      num_env_frames_per_update: batch size x unroll length x action repeats.
      clip_gradient_norm: the largest global norm of the gradient, or None.
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
    self._compiled_update = tf.function(
        self._update, autograph=False, jit_compile=jit_compile)
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
    with tf.GradientTape() as tape:
      loss, metrics = self._algorithm.loss(self.agent, batch)
    variables = self.agent.trainable_variables
    gradients = tape.gradient(loss, variables)
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
    return dict(metrics, gradient_norm=norm, learning_rate=learning_rate)


def to_tensors(agent: Any, batch: structs.ActorOutput) -> structs.ActorOutput:
  """Copies a batch of arrays to the default device; splits instructions.

  The arrays can be overwritten afterwards. Level names and statistics, which
  are not learned from, are left out.
  """
  tensors = tree.map_structure(
      lambda array: tf.identity(tf.convert_to_tensor(array)),
      batch._replace(level_name=(),
                     env_outputs=batch.env_outputs._replace(info=())))
  return tensors._replace(env_outputs=agent.tokenize(tensors.env_outputs))
