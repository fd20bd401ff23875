# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""An auxiliary loss: the network also predicts the reward of each action.

  python experiment.py --recipe=catch --logdir=/tmp/auxiliary \
      --agent=examples.auxiliary:make --addon=examples.auxiliary:reward_loss

The head is a layer of the network, so that training and checkpoints have its
weights.
"""

import tensorflow as tf


class Torso(tf.keras.layers.Layer):
  """Features of boards, and a prediction from these features."""

  def __init__(self, num_actions: int):
    super().__init__()
    self._flat = tf.keras.layers.Flatten()
    self._dense = tf.keras.layers.Dense(64, 'relu')
    self._head = tf.keras.layers.Dense(num_actions, dtype='float32')

  def build(self, shape):
    # All variables must exist after the first call, which has no predictions.
    del shape
    self._head.build((None, 64))

  def call(self, observations: tf.Tensor) -> tf.Tensor:
    """Computes features `[N, 64]` of boards `[N, ...]`."""
    return self._dense(
        self._flat(tf.cast(observations, self.compute_dtype)))

  def rewards(self, observations: tf.Tensor) -> tf.Tensor:
    """Predicts the reward of each action, float32 `[N, A]`."""
    return self._head(self(observations))


def make(observation_spec):
  del observation_spec
  return Torso(num_actions=3)


def reward_loss(agent, data):
  """The squared error of the predictions: for IMPALA and APPO."""
  # [T + 1, B, ...]. Entry t + 1 holds the action that was chosen at observation
  # t, the reward of this action, and whether the action ended the episode.
  outputs = data.steps.env_outputs
  observations = outputs.observation[:-1]
  actions = data.steps.agent_outputs.action[1:]
  predicted = agent.torso.rewards(
      tf.reshape(observations, [-1, *observations.shape[2:]]))
  of_action = tf.gather(predicted, tf.reshape(actions, [-1]), batch_dims=1)
  return tf.reduce_mean(
      tf.square(of_action - tf.reshape(outputs.reward[1:], [-1])))
