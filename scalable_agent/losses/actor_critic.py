# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Losses of IMPALA and APPO, their weights and advantages; reward clipping.

Losses are sums over time and batch, not means: Espeholt et al. 2018 (arXiv
1802.01561), table D.1. Twice the batch is twice the loss.

`T` is the number of time steps, `B` the batch size.
"""

import math

import tensorflow as tf

_FOR_LOGITS = ('The function of this name for logits is in '
               'scalable_agent.compat.scalable_agent.experiment.')

def compute_baseline_loss(advantages: tf.Tensor) -> tf.Tensor:
  """Returns half the sum of squares of `[T, B]`, targets minus baseline."""
  return 0.5 * tf.reduce_sum(tf.square(advantages))


def compute_entropy_loss(entropies: tf.Tensor) -> tf.Tensor:
  """Returns the negated sum of entropies `[T, B]` of the policy, a scalar.

  Raises ValueError for logits `[T, B, A]`, as DeepMind's function takes.
  """
  if len(entropies.shape) > 2:
    raise ValueError(f'entropies: Shape {entropies.shape} must be [T, B]. '
                     + _FOR_LOGITS)
  return -tf.reduce_sum(entropies)


def compute_policy_gradient_loss(
    log_probs: tf.Tensor, advantages: tf.Tensor,
    epsilon: float = 0.0) -> tf.Tensor:
  """Returns the loss whose gradient is minus the policy gradient, a scalar.

  The loss is `sum(-log(pi(a) + epsilon) * advantage)`. Advantages, `[T, B]`,
  are taken as constants. Raises ValueError if shapes differ, or for logits,
  actions and advantages, as DeepMind's function takes.
  """
  if not isinstance(epsilon, (int, float)):
    raise ValueError(f'epsilon must be a number. {_FOR_LOGITS}')
  if epsilon:
    # The logarithm of the sum, also where a density exceeds all floats.
    log_probs = math.log(epsilon) + tf.math.softplus(
        log_probs - math.log(epsilon))
  advantages = tf.stop_gradient(advantages)
  log_probs.shape.assert_is_compatible_with(advantages.shape)
  return -tf.reduce_sum(log_probs * advantages)


def compute_advantages(
    rewards: tf.Tensor, discounts: tf.Tensor, values: tf.Tensor,
    bootstrap_value: tf.Tensor, vs: tf.Tensor, lambda_: float) -> tf.Tensor:
  """Returns advantages without importance weights, float32 `[T, B]`.

  The value after a step is a mixture of V-trace's target, with the share
  `lambda_`, and of the baseline. On-policy, that is the generalised advantage.

  Args:
    rewards: float32 `[T, B]`.
    discounts: float32 `[T, B]`, 0 where the step ended an episode.
    values: float32 `[T, B]`, the baseline.
    bootstrap_value: float32 `[B]`, the baseline after the last step.
    vs: float32 `[T, B]`, the targets of V-trace.
    lambda_: the lambda of the targets.
  """
  after = lambda x: tf.concat([x[1:], bootstrap_value[tf.newaxis]], axis=0)
  mixed = (1 - lambda_) * after(values) + lambda_ * after(vs)
  return tf.stop_gradient(
      rewards + tf.math.multiply_no_nan(mixed, discounts) - values)


def compute_clipped_surrogate_loss(
    log_rhos: tf.Tensor, advantages: tf.Tensor, limit: float) -> tf.Tensor:
  """Returns the loss of PPO, `-sum(min(rho A, clip(rho, 1 - c, 1 + c) A))`.

  Args:
    log_rhos: float32 `[T, B]`, with gradients.
    advantages: float32 `[T, B]`, taken as constants.
    limit: `c`.
  """
  constants = tf.stop_gradient(advantages)
  log_rhos.shape.assert_is_compatible_with(constants.shape)
  rhos = tf.exp(log_rhos)
  clipped = tf.clip_by_value(rhos, 1 - limit, 1 + limit)
  return -tf.reduce_sum(tf.minimum(rhos * constants, clipped * constants))


def about_target(log_rhos: tf.Tensor, log_ratios: tf.Tensor,
                 limit: float) -> tf.Tensor:
  """Returns log weights about a target policy, `min(mu / pi', c) pi / mu`.

  Args:
    log_rhos: float32 `[T, B]`, `log(pi / mu)`, with gradients.
    log_ratios: float32 `[T, B]`, `log(pi / pi')`.
    limit: `c`, the largest weight `mu / pi'`.
  """
  # From the ratio: without a cut, rounding of `mu` has no effect.
  weights = tf.stop_gradient(log_ratios - log_rhos)
  return tf.where(weights > math.log(limit), log_rhos + math.log(limit),
                  log_ratios)


def clipped_share(
    log_rhos: tf.Tensor, advantages: tf.Tensor, limit: float) -> tf.Tensor:
  """Returns the share of steps that the clip leaves without a gradient."""
  rhos = tf.exp(log_rhos)
  is_clipped = tf.where(advantages > 0, rhos > 1 + limit, rhos < 1 - limit)
  return tf.reduce_mean(tf.cast(is_clipped & (advantages != 0), tf.float32))


def clip_errors(errors: tf.Tensor, vs: tf.Tensor, values: tf.Tensor,
                old: tf.Tensor, limit: float | tf.Tensor) -> tf.Tensor:
  """Returns errors of the baseline without reward for large changes.

  Args:
    errors: float32 `[T, B]`, `vs - values`.
    vs: float32 `[T, B]`, targets.
    values: float32 `[T, B]`, the baseline.
    old: float32 `[T, B]`, the baseline of the actor.
    limit: a value that is further than `limit` from the old value counts as a
      value at this distance, if that makes the error larger.
  """
  clipped = vs - (old + tf.clip_by_value(values - old, -limit, limit))
  return tf.where(tf.abs(clipped) > tf.abs(errors), clipped, errors)


def normalise(advantages: tf.Tensor, are_used: tf.Tensor | float = 1.0
              ) -> tf.Tensor:
  """Returns advantages with mean 0 and standard deviation 1, or all 0.

  Args:
    advantages: float32 `[T, B]`.
    are_used: float32 `[B]`, or a number: 1 for the columns that are normalised,
      0 for columns that become 0.
  """
  used = are_used * tf.ones_like(advantages)
  count = tf.reduce_sum(used)
  mean = lambda x: tf.math.divide_no_nan(tf.reduce_sum(used * x), count)
  centred = advantages - mean(advantages)
  # Else the rounding of the mean of equal numbers would be their deviation.
  centred -= mean(centred)
  return used * centred / (tf.sqrt(mean(tf.square(centred))) + 1e-8)


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
