# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The three terms of the actor-critic loss, and reward clipping.

Losses are sums over time and batch, not means: Espeholt et al. 2018 (arXiv
1802.01561), table D.1. Twice the batch is twice the loss.

`T` is the number of time steps, `B` the batch size.
"""

import tensorflow as tf


def compute_baseline_loss(advantages: tf.Tensor) -> tf.Tensor:
  """Returns half the sum of squares of `[T, B]`, targets minus baseline."""
  return 0.5 * tf.reduce_sum(tf.square(advantages))


def compute_entropy_loss(entropies: tf.Tensor) -> tf.Tensor:
  """Returns the negated sum of entropies `[T, B]` of the policy, a scalar."""
  return -tf.reduce_sum(entropies)


def compute_policy_gradient_loss(
    log_probs: tf.Tensor, advantages: tf.Tensor,
    epsilon: float = 0.0) -> tf.Tensor:
  """Returns the loss whose gradient is minus the policy gradient, a scalar.

  The loss is `sum(-log(pi(a) + epsilon) * advantage)`. Advantages, `[T, B]`,
  are taken as constants. Raises ValueError if shapes differ.
  """
  if epsilon:
    log_probs = tf.math.log(tf.exp(log_probs) + epsilon)
  advantages = tf.stop_gradient(advantages)
  log_probs.shape.assert_is_compatible_with(advantages.shape)
  return -tf.reduce_sum(log_probs * advantages)


def clip_rewards(rewards: tf.Tensor, mode: str) -> tf.Tensor:
  """Clips or squashes rewards for the loss; ValueError for an unknown mode.

  `abs_one` clips to [-1, 1]. `soft_asymmetric` squashes to [-1.5, 5], with
  slope 1 just above 0 and 0.3 just below (the optimistic asymmetric clipping of
  Espeholt et al. 2018, appendix D, as published with the paper's code).
  """
  if mode == 'none':
    return rewards
  if mode == 'abs_one':
    return tf.clip_by_value(rewards, -1.0, 1.0)
  if mode == 'soft_asymmetric':
    squashed = tf.tanh(rewards / 5.0)
    return 5.0 * tf.where(rewards < 0, 0.3 * squashed, squashed)
  raise ValueError(f'Unknown reward clipping {mode!r}: must be none, '
                   'abs_one or soft_asymmetric.')
