# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The three terms of the actor-critic loss, and reward clipping.

Losses are sums over time and batch, not means: Espeholt et al. 2018 (arXiv
1802.01561), table D.1. Twice the batch is twice the loss.

`T` is the number of time steps, `B` the batch size, `A` the number of actions.
"""

import tensorflow as tf


def compute_baseline_loss(advantages: tf.Tensor) -> tf.Tensor:
  """Returns half the sum of squares.

  Args:
    advantages: float32 `[T, B]`, targets minus baseline.

  Returns:
    float32 scalar.
  """
  return 0.5 * tf.reduce_sum(tf.square(advantages))


def compute_entropy_loss(logits: tf.Tensor) -> tf.Tensor:
  """Returns the negated sum of the entropies of softmax policies.

  Args:
    logits: float32 `[T, B, A]`, unnormalised log-probabilities.

  Returns:
    float32 scalar, at most 0: minimising it raises the entropy.
  """
  probs = tf.nn.softmax(logits)
  log_probs = tf.nn.log_softmax(logits)
  return tf.reduce_sum(probs * log_probs)


def compute_policy_gradient_loss(
    logits: tf.Tensor, actions: tf.Tensor, advantages: tf.Tensor,
    epsilon: float = 0.0) -> tf.Tensor:
  """Returns the loss whose gradient is minus the policy gradient.

  Args:
    logits: float32 `[T, B, A]`, unnormalised log-probabilities.
    actions: int32 `[T, B]`, in `[0, A)`.
    advantages: float32 `[T, B]`; no gradient flows through them.
    epsilon: added to the probabilities.

  Returns:
    float32 scalar, `sum(-log(pi(a) + epsilon) * advantage)`.

  Raises:
    ValueError: if the shapes do not fit; nothing is broadcast.
  """
  negative_log_probs = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=actions, logits=logits)
  if epsilon:
    negative_log_probs = -tf.math.log(tf.exp(-negative_log_probs) + epsilon)
  advantages = tf.stop_gradient(advantages)
  negative_log_probs.shape.assert_is_compatible_with(advantages.shape)
  return tf.reduce_sum(negative_log_probs * advantages)


def clip_rewards(rewards: tf.Tensor, mode: str) -> tf.Tensor:
  """Clips or squashes rewards for the loss.

  Args:
    rewards: float32, any shape.
    mode: `abs_one`: clipped to [-1, 1]. `soft_asymmetric`: squashed to
      [-1.5, 5], with slope 1 just above 0 and 0.3 just below (the optimistic
      asymmetric clipping of Espeholt et al. 2018, appendix D, as published with
      the paper's code).

  Returns:
    float32, the shape of `rewards`.

  Raises:
    ValueError: if `mode` is neither.
  """
  if mode == 'abs_one':
    return tf.clip_by_value(rewards, -1.0, 1.0)
  if mode == 'soft_asymmetric':
    squashed = tf.tanh(rewards / 5.0)
    return 5.0 * tf.where(rewards < 0, 0.3 * squashed, squashed)
  raise ValueError(f'Unknown reward clipping {mode!r}: must be abs_one or '
                   'soft_asymmetric.')
