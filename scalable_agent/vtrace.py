# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace: off-policy corrected value targets and policy gradient advantages.

Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with Importance
Weighted Actor-Learner Architectures" (arXiv 1802.01561), section 4.

`T` is the number of time steps, `B` the batch size, `A` the number of actions.
Tensors are time-major. With `mu` the behaviour policy, which chose the actions,
and `pi` the target policy, which is learned:

    rho_t   = pi(a_t | x_t) / mu(a_t | x_t)
    delta_t = min(rho_bar, rho_t) (r_t + gamma_t V(x_{t+1}) - V(x_t))
    v_t     = V(x_t) + delta_t
              + gamma_t min(1, rho_t) (v_{t+1} - V(x_{t+1}))
    adv_t   = min(pg_rho_bar, rho_t) (r_t + gamma_t v_{t+1} - V(x_t))

where `V(x_T)` and `v_T` are the bootstrap value, and `gamma_t` is 0 where step
`t` ends an episode, so that nothing after `t` has an influence on `t`.

Everything is computed in float32, whatever the types of the arguments.
"""

from typing import NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf

# Whatever TensorFlow converts to a tensor.
TensorLike = Union[tf.Tensor, tf.Variable, np.ndarray, list, float]


class VTraceReturns(NamedTuple):
  """Targets of one batch of unrolls; no gradient flows through them.

  Attributes:
    vs: float32 `[T, B, ...]`, targets of the baseline.
    pg_advantages: float32 `[T, B, ...]`, advantages of the policy gradient.
  """
  vs: tf.Tensor
  pg_advantages: tf.Tensor


class VTraceFromLogitsReturns(NamedTuple):
  """`VTraceReturns` and what they were computed from.

  Attributes:
    vs: float32 `[T, B]`, targets of the baseline; no gradient flows through.
    pg_advantages: float32 `[T, B]`, advantages of the policy gradient; no
      gradient flows through.
    log_rhos: float32 `[T, B]`, `target - behaviour` of the two below.
    behaviour_action_log_probs: float32 `[T, B]`, `log mu(a_t | x_t)`.
    target_action_log_probs: float32 `[T, B]`, `log pi(a_t | x_t)`.
  """
  vs: tf.Tensor
  pg_advantages: tf.Tensor
  log_rhos: tf.Tensor
  behaviour_action_log_probs: tf.Tensor
  target_action_log_probs: tf.Tensor


def log_probs_from_logits_and_actions(
    policy_logits: TensorLike, actions: TensorLike) -> tf.Tensor:
  """Returns the log-probabilities of actions under a softmax policy.

  Args:
    policy_logits: `[T, B, A]`, unnormalised log-probabilities.
    actions: integers in `[0, A)`, `[T, B]`.

  Returns:
    float32 `[T, B]`.

  Raises:
    ValueError: if an argument has another rank.
    tf.errors.InvalidArgumentError: when it runs on a CPU, if an action is out
      of range. On a GPU and under XLA its log-probability is NaN.
  """
  policy_logits = tf.cast(policy_logits, tf.float32)
  actions = tf.cast(actions, tf.int32)
  _check_rank('policy_logits', policy_logits, 3)
  _check_rank('actions', actions, 2)
  return -tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=actions, logits=policy_logits)


def from_logits(
    behaviour_policy_logits: TensorLike,
    target_policy_logits: TensorLike,
    actions: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    clip_rho_threshold: Optional[TensorLike] = 1.0,
    clip_pg_rho_threshold: Optional[TensorLike] = 1.0,
    name: str = 'vtrace_from_logits') -> VTraceFromLogitsReturns:
  """V-trace for softmax policies.

  Args:
    behaviour_policy_logits: `[T, B, A]`, of the policy that acted.
    target_policy_logits: `[T, B, A]`, of the policy that learns.
    actions: integers in `[0, A)`, `[T, B]`.
    discounts: `[T, B]`, 0 where the step ended an episode.
    rewards: `[T, B]`, what the actions brought.
    values: `[T, B]`, baseline under the target policy.
    bootstrap_value: `[B]`, baseline after the last step.
    clip_rho_threshold: scalar, `rho_bar`, or None for no clipping.
    clip_pg_rho_threshold: scalar, `pg_rho_bar`, or None for no clipping.
    name: name scope.

  Returns:
    `VTraceFromLogitsReturns` of `[T, B]`.

  Raises:
    ValueError: if an argument has another rank.
    tf.errors.InvalidArgumentError: as `log_probs_from_logits_and_actions`.
  """
  with tf.name_scope(name):
    behaviour_action_log_probs = log_probs_from_logits_and_actions(
        behaviour_policy_logits, actions)
    target_action_log_probs = log_probs_from_logits_and_actions(
        target_policy_logits, actions)
    log_rhos = target_action_log_probs - behaviour_action_log_probs
    returns = from_importance_weights(
        log_rhos=log_rhos,
        discounts=discounts,
        rewards=rewards,
        values=values,
        bootstrap_value=bootstrap_value,
        clip_rho_threshold=clip_rho_threshold,
        clip_pg_rho_threshold=clip_pg_rho_threshold)
    return VTraceFromLogitsReturns(
        vs=returns.vs,
        pg_advantages=returns.pg_advantages,
        log_rhos=log_rhos,
        behaviour_action_log_probs=behaviour_action_log_probs,
        target_action_log_probs=target_action_log_probs)


def from_importance_weights(
    log_rhos: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    clip_rho_threshold: Optional[TensorLike] = 1.0,
    clip_pg_rho_threshold: Optional[TensorLike] = 1.0,
    name: str = 'vtrace_from_importance_weights') -> VTraceReturns:
  """V-trace for any policy, from the logarithms of its importance weights.

  More or fewer axes after the time axis are allowed. `log_rhos`, `discounts`
  and `rewards` broadcast to the shape of `values`: with `values` of
  `[T, B, C]`, a `log_rhos` of `[T, B, 1]` holds for all `C` of them.

  Args:
    log_rhos: `[T, B, ...]`, `log pi(a_t | x_t) - log mu(a_t | x_t)`.
    discounts: `[T, B, ...]`, 0 where the step ended an episode.
    rewards: `[T, B, ...]`, what the actions brought.
    values: `[T, B, ...]`, baseline under the target policy.
    bootstrap_value: `[B, ...]`, baseline after the last step.
    clip_rho_threshold: scalar, `rho_bar`, or None for no clipping.
    clip_pg_rho_threshold: scalar, `pg_rho_bar`, or None for no clipping. Where
      a weight is not clipped and its logarithm exceeds 88, it is infinite.
    name: name scope.

  Returns:
    `VTraceReturns` of the shape of `values`.

  Raises:
    ValueError: if `discounts`, `rewards` or `values` have another rank than
      `log_rhos`, `bootstrap_value` is not of one rank less, or a threshold is
      no scalar. Ranks that are not known statically are not checked.
  """
  with tf.name_scope(name):
    log_rhos = tf.cast(log_rhos, tf.float32)
    discounts = tf.cast(discounts, tf.float32)
    rewards = tf.cast(rewards, tf.float32)
    values = tf.cast(values, tf.float32)
    bootstrap_value = tf.cast(bootstrap_value, tf.float32)
    clip_rho_threshold = _threshold('clip_rho_threshold', clip_rho_threshold)
    clip_pg_rho_threshold = _threshold(
        'clip_pg_rho_threshold', clip_pg_rho_threshold)

    rank = log_rhos.shape.rank
    if rank == 0:
      raise ValueError('log_rhos: Shape () must have rank at least 1')
    if rank is not None:
      _check_rank('discounts', discounts, rank)
      _check_rank('rewards', rewards, rank)
      _check_rank('values', values, rank)
      _check_rank('bootstrap_value', bootstrap_value, rank - 1)

    # The targets are constants for the losses. Stopping the gradients on the
    # way in, not on the way out, also spares a caller's tape the recursion.
    return VTraceReturns(*_vtrace(*[tf.stop_gradient(x) for x in (
        log_rhos, discounts, rewards, values, bootstrap_value,
        clip_rho_threshold, clip_pg_rho_threshold)]))


# Compiled, because an eager tf.scan is a slow Python loop.
@tf.function(autograph=False)
def _vtrace(log_rhos, discounts, rewards, values, bootstrap_value,
            clip_rho_threshold, clip_pg_rho_threshold):
  """Returns `vs` and `pg_advantages` of checked float32 tensors."""
  rhos = tf.exp(log_rhos)
  clipped_rhos = tf.minimum(clip_rho_threshold, rhos)
  clipped_pg_rhos = tf.minimum(clip_pg_rho_threshold, rhos)
  cs = tf.minimum(1.0, rhos)

  values_t_plus_1 = tf.concat([values[1:], bootstrap_value[tf.newaxis]], axis=0)
  deltas = clipped_rhos * (rewards + discounts * values_t_plus_1 - values)

  def previous(vs_minus_values_t_plus_1, step):
    delta, discounted_c = step
    return delta + discounted_c * vs_minus_values_t_plus_1

  # It starts at zero: the deltas hold the bootstrap value already.
  vs_minus_values = tf.scan(
      previous, (deltas, discounts * cs),
      initializer=tf.zeros_like(bootstrap_value), reverse=True)
  vs = values + vs_minus_values

  vs_t_plus_1 = tf.concat([vs[1:], bootstrap_value[tf.newaxis]], axis=0)
  pg_advantages = clipped_pg_rhos * (
      rewards + discounts * vs_t_plus_1 - values)
  return vs, pg_advantages


def _threshold(name, threshold):
  """Returns a float32 scalar: a new value does not make `_vtrace` retrace."""
  threshold = tf.cast(
      float('inf') if threshold is None else threshold, tf.float32)
  _check_rank(name, threshold, 0)
  return threshold


def _check_rank(name, tensor, rank):
  if tensor.shape.rank not in (None, rank):
    raise ValueError(f'{name}: Shape {tensor.shape} must have rank {rank}')
