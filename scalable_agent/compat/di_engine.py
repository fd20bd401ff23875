# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The V-trace functions of DI-engine (`ding.rl_utils.vtrace`, `isw`).

Names, arguments, defaults, reductions and gradients are DI-engine's. The
differences to `scalable_agent.vtrace` and `scalable_agent.losses` are:

- Losses are means over time and batch, not sums. The value loss has no factor
  0.5. The entropy loss is the entropy: subtract it from the total loss.
- `lambda_` is 0.95 by default. It shortens the traces only; the advantages use
  unmixed targets.
- The discount is one number, so nothing cuts the trace where an episode ends.
  DI-engine's policy (not these functions) zeroes the next value there, and the
  weight and the reward of the next step. This is right only if padding follows.
  For unrolls with the end of an episode inside, use
  `vtrace.from_action_log_probs` and a discount per step.
- Means count masked steps, too: a padded batch has smaller gradients.

Differences from the original:

- The original's documentation gives 0.95 and 1 as the defaults of `gamma` and
  `lambda_`. The original's code and this module have 0.99 and 0.95.
- A clip ratio of None means no clipping.
- Nothing is broadcast: shapes that do not fit are a `ValueError`.
- Results are float64 if the values (for `compute_importance_weights` the target
  logits or means) are float64, and float32 otherwise.

`T` is the number of time steps, `B` the batch size, `N` the number of discrete
actions or of the parts of a continuous action. The *output* of a policy is a
tensor of logits `[T, B, N]` for discrete actions, and for continuous actions a
dict of the means `mu` and the standard deviations `sigma`, both `[T, B, N]`.
"""

from typing import cast, NamedTuple, TypeAlias

import numpy as np
from scalable_agent import vtrace
import tensorflow as tf

TensorLike: TypeAlias = vtrace.TensorLike
Gaussian: TypeAlias = dict[str, TensorLike]
Output: TypeAlias = TensorLike | Gaussian


# DI-engine's names of the two tuples are part of its interface.
class vtrace_data(NamedTuple):
  """The inputs of the losses.

  Attributes:
    target_output: output of the policy that learns.
    behaviour_output: output of the policy that acted.
    action: integers `[T, B]`, or floats `[T, B, N]` if continuous.
    value: `[T + 1, B]`, values under the target policy, with the bootstrap
      value.
    reward: `[T, B]`.
    weight: `[T, B]`, factors of the losses, or None for ones.
  """
  target_output: Output
  behaviour_output: Output
  action: TensorLike
  value: TensorLike
  reward: TensorLike
  weight: TensorLike | None


class vtrace_loss(NamedTuple):
  """Scalars; the total loss contains `entropy_loss` with a minus sign."""
  policy_loss: tf.Tensor
  value_loss: tf.Tensor
  entropy_loss: tf.Tensor


def compute_importance_weights(
    target_output: Output,
    behaviour_output: Output,
    action: TensorLike,
    action_space_type: str = 'discrete',
    requires_grad: bool = False) -> tf.Tensor:
  """Returns the ratios of the probabilities of actions, `[T, B]`, not clipped.

  Args:
    target_output: see `vtrace_data`.
    behaviour_output: see `vtrace_data`.
    action: see `vtrace_data`.
    action_space_type: `discrete` or `continuous`.
    requires_grad: whether gradients flow to the outputs of the policies.

  Raises:
    tf.errors.InvalidArgumentError: as
      `vtrace.log_probs_from_logits_and_actions`.
  """
  if action_space_type == 'discrete':
    dtype = _float_type(target_output)
    log_probs = _discrete_log_probs
  elif action_space_type == 'continuous':
    dtype = _float_type(cast(Gaussian, target_output)['mu'])
    log_probs = _continuous_log_probs
  else:
    raise ValueError(f'Unknown action_space_type {action_space_type!r}: must '
                     'be discrete or continuous')
  target, behaviour = log_probs(target_output, behaviour_output, action, dtype)
  weights = tf.exp(target - behaviour)
  return weights if requires_grad else tf.stop_gradient(weights)


def vtrace_nstep_return(
    clipped_rhos: TensorLike,
    clipped_cs: TensorLike,
    reward: TensorLike,
    bootstrap_values: TensorLike,
    gamma: float = 0.99,
    lambda_: float = 0.95) -> tf.Tensor:
  """Returns the targets of the values, `[T, B]`, with gradients.

  Args:
    clipped_rhos: `[T, B]`, `min(rho_bar, rho_t)`.
    clipped_cs: `[T, B]`, `min(c_bar, rho_t)`, without `lambda_`.
    reward: `[T, B]`.
    bootstrap_values: `[T + 1, B]`, values and, last, the bootstrap value.
    gamma: discount.
    lambda_: factor of the trace.
  """
  dtype = _float_type(bootstrap_values)
  clipped_rhos, clipped_cs, reward, values = (
      tf.cast(x, dtype)
      for x in (clipped_rhos, clipped_cs, reward, bootstrap_values))
  _check_shape('bootstrap_values[:-1]', values[:-1], reward.shape, 'reward')
  _check_shape('clipped_rhos', clipped_rhos, reward.shape, 'reward')
  _check_shape('clipped_cs', clipped_cs, reward.shape, 'reward')
  return vtrace.compute_vs(
      clipped_rhos, lambda_ * clipped_cs, gamma * tf.ones_like(reward), reward,
      values[:-1], values[-1])


def vtrace_advantage(
    clipped_pg_rhos: TensorLike,
    reward: TensorLike,
    return_: TensorLike,
    bootstrap_values: TensorLike,
    gamma: float) -> tf.Tensor:
  """Returns the advantages of the policy gradient, `[T, B]`, with gradients.

  Args:
    clipped_pg_rhos: `[T, B]`, `min(pg_rho_bar, rho_t)`.
    reward: `[T, B]`.
    return_: `[T, B]`, targets of the *next* steps.
    bootstrap_values: `[T, B]`, the values of the steps, in spite of the name.
    gamma: discount.
  """
  dtype = _float_type(bootstrap_values)
  clipped_pg_rhos, reward, return_, values = (
      tf.cast(x, dtype)
      for x in (clipped_pg_rhos, reward, return_, bootstrap_values))
  _check_shape('bootstrap_values', values, reward.shape, 'reward')
  _check_shape('clipped_pg_rhos', clipped_pg_rhos, reward.shape, 'reward')
  _check_shape('return_', return_, reward.shape, 'reward')
  return clipped_pg_rhos * (reward + gamma * return_ - values)


def shape_fn_vtrace_discrete_action(
    args: tuple, kwargs: dict) -> tf.TensorShape:
  """Returns the shape of the target output, `[T, B, N]`.

  `args` and `kwargs` are those of `vtrace_error_discrete_action`.
  """
  data = args[0] if args else kwargs['data']
  return data.target_output.shape


def vtrace_error_discrete_action(
    data: vtrace_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float | None = 1.0,
    c_clip_ratio: float | None = 1.0,
    rho_pg_clip_ratio: float | None = 1.0) -> vtrace_loss:
  """Returns the losses of IMPALA for discrete actions.

  Gradients flow to `data.target_output` through the probabilities of the
  actions and the entropies, and to `data.value` through the values that are
  compared with the targets, so the gradient of the bootstrap value is 0. No
  gradient flows through targets and advantages.

  Args:
    data: see `vtrace_data`.
    gamma: discount.
    lambda_: factor of the trace.
    rho_clip_ratio: `rho_bar`; determines the policy whose values are learned.
    c_clip_ratio: `c_bar`, which limits the traces.
    rho_pg_clip_ratio: `pg_rho_bar`, for the policy gradient.

  Raises:
    tf.errors.InvalidArgumentError: as
      `vtrace.log_probs_from_logits_and_actions`.
  """
  dtype = _float_type(data.value)
  log_probs = _discrete_log_probs(*data[:3], dtype)
  logits = tf.cast(data.target_output, dtype)
  entropies = -tf.reduce_sum(
      tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=-1)
  return _losses(
      log_probs, entropies, data, dtype, gamma, lambda_, rho_clip_ratio,
      c_clip_ratio, rho_pg_clip_ratio)


def vtrace_error_continuous_action(
    data: vtrace_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float | None = 1.0,
    c_clip_ratio: float | None = 1.0,
    rho_pg_clip_ratio: float | None = 1.0) -> vtrace_loss:
  """Is `vtrace_error_discrete_action` for continuous actions."""
  dtype = _float_type(data.value)
  log_probs = _continuous_log_probs(*data[:3], dtype)
  sigma = tf.cast(cast(Gaussian, data.target_output)['sigma'], dtype)
  entropies = tf.reduce_sum(
      tf.math.log(sigma) + 0.5 * np.log(2 * np.pi * np.e), axis=-1)
  return _losses(
      log_probs, entropies, data, dtype, gamma, lambda_, rho_clip_ratio,
      c_clip_ratio, rho_pg_clip_ratio)


def _losses(log_probs: list[tf.Tensor], entropies: tf.Tensor, data: vtrace_data,
            dtype: tf.DType, gamma: float, lambda_: float,
            rho_clip_ratio: float | None, c_clip_ratio: float | None,
            rho_pg_clip_ratio: float | None) -> vtrace_loss:
  """Returns `vtrace_loss` from the log-probs under both policies."""
  target, behaviour = log_probs
  value, reward = tf.cast(data.value, dtype), tf.cast(data.reward, dtype)
  weight = tf.ones_like(target) if data.weight is None else tf.cast(
      data.weight, dtype)
  steps = target.shape, 'the log-probabilities of action'
  _check_shape('value[:-1]', value[:-1], *steps)
  _check_shape('reward', reward, *steps)
  _check_shape('weight', weight, *steps)
  returns = vtrace.from_action_log_probs(
      behaviour,
      target,
      discounts=gamma * tf.ones_like(reward),
      rewards=reward,
      values=value[:-1],
      bootstrap_value=value[-1],
      clip_rho_threshold=rho_clip_ratio,
      clip_pg_rho_threshold=rho_pg_clip_ratio,
      clip_c_threshold=c_clip_ratio,
      lambda_=lambda_,
      dtype=dtype)
  return vtrace_loss(
      policy_loss=-tf.reduce_mean(
          returns.target_action_log_probs * returns.pg_advantages * weight),
      value_loss=tf.reduce_mean(
          tf.square(value[:-1] - returns.vs) * weight),
      entropy_loss=tf.reduce_mean(entropies * weight))


def _discrete_log_probs(
    target_output: Output, behaviour_output: Output, action: TensorLike,
    dtype: tf.DType) -> list[tf.Tensor]:
  """Returns the log-probs of actions under both policies, `[T, B]` each."""
  target, behaviour, action = (
      tf.convert_to_tensor(x)
      for x in (target_output, behaviour_output, action))
  _check_shape('behaviour_output', behaviour, target.shape, 'target_output')
  _check_shape('action', action, target.shape[:-1],
               'target_output without its last axis')
  return [
      vtrace.log_probs_from_logits_and_actions(x, action, dtype=dtype)
      for x in (target, behaviour)]


def _continuous_log_probs(
    target_output: Output, behaviour_output: Output, action: TensorLike,
    dtype: tf.DType) -> list[tf.Tensor]:
  """Returns the log-densities of actions under both policies, `[T, B]`."""
  action = tf.cast(action, dtype)
  log_probs = []
  for name, output in (('target_output', cast(Gaussian, target_output)),
                       ('behaviour_output', cast(Gaussian, behaviour_output))):
    mu, sigma = tf.cast(output['mu'], dtype), tf.cast(output['sigma'], dtype)
    _check_shape(f'mu of {name}', mu, action.shape, 'action')
    _check_shape(f'sigma of {name}', sigma, action.shape, 'action')
    log_probs.append(-tf.reduce_sum(
        0.5 * tf.square((action - mu) / sigma) + tf.math.log(sigma)
        + 0.5 * np.log(2 * np.pi), axis=-1))
  return log_probs


def _check_shape(
    name: str, tensor: tf.Tensor, shape: tf.TensorShape, of: str) -> None:
  if not tensor.shape.is_compatible_with(shape):
    raise ValueError(
        f'{name}: Shape {tensor.shape} does not fit shape {shape} of {of}')


def _float_type(x: TensorLike) -> tf.DType:
  is_float64 = tf.convert_to_tensor(x).dtype == tf.float64
  return tf.float64 if is_float64 else tf.float32
