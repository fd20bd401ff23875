# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Targets and losses of DDQN, DDPG, TD3 and SAC.

A transition is (o, a, r, discount, o'). The reward `r` is the sum of up to `n`
discounted rewards. The discount is `gamma^k` after `k` steps, or 0 if the
episode ended. So no function has an argument `done`.

`B` is the batch size, `A` the number of discrete actions, `N` the number of
parts of a continuous action, `C` the number of critics. The suffix `_t` marks
values of o'. Tensors are float32 or float64. Losses are scalars, and targets
`y` are constants: no gradient flows through targets.

Losses are means over the batch, `mean(w * loss)`, while IMPALA's losses are
sums. `importance_weights` are the factors `w` of a prioritised replay, `[B]`;
None stands for ones. The mean is not divided by the sum of `w`.

Sources: Mnih et al. 2015 (DQN), van Hasselt et al. 2016 (arXiv 1509.06461,
double Q-learning), Lillicrap et al. 2016 (arXiv 1509.02971, DDPG), Fujimoto et
al. 2018 (arXiv 1802.09477, TD3), Haarnoja et al. 2018 (arXiv 1812.05905, SAC),
Christodoulou 2019 (arXiv 1910.07207, SAC with discrete actions).
"""

import math

import numpy as np
import tensorflow as tf

_RESCALING_EPSILON = 1e-3

# The values of o', and the targets.


def chosen_values(q_values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
  """Returns the values of actions `[B]`: `[..., B]` of `[..., B, A]`.

  The value of an action outside `[0, A)` is NaN.
  """
  actions = tf.convert_to_tensor(actions)
  check_shape('actions', actions, q_values[..., 0] if len(q_values.shape) == 2
              else q_values[0, ..., 0])
  is_chosen = tf.one_hot(
      actions, q_values.shape[-1], on_value=True, off_value=False, dtype=bool)
  # A product would let infinities of other actions pass.
  values = tf.reduce_sum(
      tf.where(is_chosen, q_values, tf.zeros_like(q_values)), axis=-1)
  exists = (actions >= 0) & (actions < q_values.shape[-1])
  return tf.where(exists, values, tf.constant(np.nan, values.dtype))


def greedy_values(q_values_t: tf.Tensor,
                  selector_q_values_t: tf.Tensor) -> tf.Tensor:
  """Returns values `[B]` of the best actions, `Q(o', argmax Q_sel(o', .))`.

  `Q`, `[B, A]`, is the target network. `Q_sel` is the online network for double
  Q-learning, or again the target network for the maximum of DQN.
  """
  check_shape('selector_q_values_t', selector_q_values_t, q_values_t)
  return chosen_values(q_values_t, tf.argmax(selector_q_values_t, axis=-1))


def smallest(q_values: tf.Tensor) -> tf.Tensor:
  """Returns the minimum over critics, `[...]` of `[C, ...]` (TD3 and SAC)."""
  return tf.reduce_min(q_values, axis=0)


def expected_values(q_values: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
  """Returns means `[B]` of values `[B, A]` under a softmax policy."""
  check_shape('logits', logits, q_values)
  return tf.reduce_sum(tf.nn.softmax(logits) * q_values, axis=-1)


def soft_values(q_values: tf.Tensor, log_probs: tf.Tensor,
                temperature: tf.Tensor) -> tf.Tensor:
  """Returns SAC's value `[B]` of sampled actions, `Q - alpha log pi`.

  `q_values` are minima over the critics.
  """
  check_shape('log_probs', log_probs, q_values)
  return q_values - temperature * log_probs


def expected_soft_values(q_values: tf.Tensor, logits: tf.Tensor,
                         temperature: tf.Tensor) -> tf.Tensor:
  """Returns SAC's values `[B]`, `sum_a pi(a) (Q(a) - alpha log pi(a))`.

  `q_values`, `[B, A]`, are minima over the critics.
  """
  check_shape('logits', logits, q_values)
  return expected_values(
      q_values - temperature * tf.nn.log_softmax(logits), logits)


def td_targets(rewards: tf.Tensor, discounts: tf.Tensor,
               values_t: tf.Tensor) -> tf.Tensor:
  """Returns the targets `y = r + discount * V(o')`, `[B]`.

  Where the discount is 0, even a NaN of `values_t` has no effect. SAC's entropy
  term is a part of the value, and is discounted, too.
  """
  check_shape('discounts', discounts, rewards)
  check_shape('values_t', values_t, rewards)
  return tf.stop_gradient(
      rewards + tf.math.multiply_no_nan(values_t, discounts))


def rescaled(values: tf.Tensor) -> tf.Tensor:
  """Returns `h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x` (R2D2), eps = 0.001.

  Source: Pohlen et al. 2018 (arXiv 1805.11593).
  """
  return (tf.sign(values) * (tf.sqrt(tf.abs(values) + 1) - 1)
          + _RESCALING_EPSILON * values)


def not_rescaled(values: tf.Tensor) -> tf.Tensor:
  """Returns `x` of `h(x)`, see `rescaled`.

  The usual formula subtracts nearly equal numbers, and is wrong by 5 % for
  0.001 in float32. This formula is the same without the subtraction.
  """
  shifted = tf.abs(values) + 1 + _RESCALING_EPSILON
  root = 2 * shifted / (1 + tf.sqrt(1 + 4 * _RESCALING_EPSILON * shifted))
  return tf.sign(values) * (root - 1) * (root + 1)


def smoothed_actions(actions: tf.Tensor, noise: tf.Tensor,
                     noise_clip: float) -> tf.Tensor:
  """Adds TD3's clipped noise to actions `[B, N]`, and clips to [-1, 1]."""
  check_shape('noise', noise, actions)
  noise = tf.clip_by_value(noise, -noise_clip, noise_clip)
  return tf.clip_by_value(actions + noise, -1.0, 1.0)


# The losses.


def critic_loss(q_values: tf.Tensor, targets: tf.Tensor,
                importance_weights: tf.Tensor | None = None,
                huber: float | None = None) -> tf.Tensor:
  """Returns half the mean squared error, summed over critics.

  With two critics, this is TD3's mean of two mean squares.

  Args:
    q_values: `[C, B]`, values of the actions of the replay.
    targets: `[B]`.
    importance_weights: see the module.
    huber: `d`. An error `e` above `d` costs `d (|e| - d / 2)`. None: no limit.
  """
  q_values = tf.convert_to_tensor(q_values)
  check_shape('targets', targets, q_values[0])
  sizes = tf.abs(q_values - tf.stop_gradient(targets))
  slopes = sizes if huber is None else tf.minimum(sizes, huber)
  losses = slopes * (sizes - 0.5 * slopes)
  return _mean(tf.reduce_sum(losses, axis=0), importance_weights)


def mean_errors(q_values: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
  """Returns the mean of `|Q_c - y|` over critics, `[B]`: priorities."""
  check_shape('targets', targets, q_values[0])
  return tf.reduce_mean(tf.abs(q_values - targets), axis=0)


def sequence_errors(errors: tf.Tensor, known: tf.Tensor) -> tf.Tensor:
  """Returns `0.9 max + 0.1 mean` of each sequence's errors, `[B]`: priorities.

  Only errors `[L, B]` whose `known` `[L, B]` is 1, not 0, count (R2D2).
  """
  check_shape('known', known, errors)
  errors = tf.math.multiply_no_nan(errors, known)
  num_known = tf.maximum(tf.reduce_sum(known, axis=0), 1)
  return (0.9 * tf.reduce_max(errors, axis=0)
          + 0.1 * tf.reduce_sum(errors, axis=0) / num_known)


def deterministic_policy_loss(
    q_values: tf.Tensor,
    importance_weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of DDPG's and TD3's policies, `-mean(w Q(o, pi(o)))`.

  `q_values`, `[B]`, are values of the first critic for actions of the policy.
  The gradient flows through the values to the actions; the critic must not
  learn from this loss.
  """
  return -_mean(q_values, importance_weights)


def soft_policy_loss(
    q_values: tf.Tensor, log_probs: tf.Tensor, temperature: tf.Tensor,
    importance_weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of SAC's policy, `mean(w (alpha log pi - Q))`.

  `q_values`, `[B]`, are minima over the critics, for actions that the policy
  sampled with reparameterisation. The gradient flows through values and
  log-probabilities, not to alpha; the critics must not learn from this loss.
  """
  return -_mean(
      soft_values(q_values, log_probs, _constant(temperature, q_values)),
      importance_weights)


def expected_soft_policy_loss(
    q_values: tf.Tensor, logits: tf.Tensor, temperature: tf.Tensor,
    importance_weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of SAC's policy for discrete actions, without sampling.

  The loss is `mean(w sum_a pi(a) (alpha log pi(a) - Q(a)))`, of minima `Q` over
  the critics, `[B, A]`. The gradient flows through the logits only.
  """
  return -_mean(
      expected_soft_values(tf.stop_gradient(q_values), logits,
                           _constant(temperature, q_values)),
      importance_weights)


def negative_entropy(logits: tf.Tensor) -> tf.Tensor:
  """Returns `sum_a pi(a) log pi(a)`, `[B]`, for logits `[B, A]`."""
  return expected_values(tf.nn.log_softmax(logits), logits)


def temperature_loss(
    log_temperature: tf.Tensor, log_probs: tf.Tensor,
    target_entropy: float | tf.Tensor,
    importance_weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns SAC's `-mean(w log_alpha (log pi + target_entropy))`.

  The gradient, for `log_alpha` only, lowers the temperature if the entropy is
  above the target, which may be `[B]`. For continuous actions of `N` parts, the
  paper has the target `-N`; for discrete actions, see
  `discrete_target_entropy`. `log_probs`, `[B]`, are those of sampled actions,
  or `negative_entropy`.
  """
  excess = tf.stop_gradient(log_probs + target_entropy)
  return -_mean(log_temperature * excess, importance_weights)


def discrete_target_entropy(num_actions: int, ratio: float = 0.98) -> float:
  """Returns a share of the entropy of the uniform policy.

  The paper has 0.98; with few actions, 0.98 is so close to uniform that the
  temperature grows without bound.
  """
  return ratio * math.log(num_actions)


# The target networks.


def incremental_update(target: tf.Tensor, online: tf.Tensor,
                       rate: float | tf.Tensor) -> tf.Tensor:
  """Returns the new value of a variable of a target network.

  `rate` is `1 - polyak`: 1 makes an exact copy, 0 changes nothing.
  """
  check_shape('online', online, target)
  # The hint keeps the digits of Python floats for float64.
  rate = tf.cast(
      tf.convert_to_tensor(rate, dtype_hint=target.dtype), target.dtype)
  return (1 - rate) * target + rate * online


def check_shape(name: str, tensor: tf.Tensor, other: tf.Tensor) -> None:
  """Raises `ValueError` for different shapes, which might be broadcast."""
  shape = tf.convert_to_tensor(tensor).shape
  wanted = tf.convert_to_tensor(other).shape
  if not shape.is_compatible_with(wanted):
    raise ValueError(f'{name}: Shape {shape} must be {wanted}')


def _constant(number: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
  # The hint keeps the digits of Python floats for float64.
  return tf.stop_gradient(tf.convert_to_tensor(number, dtype_hint=like.dtype))


def _mean(
    losses: tf.Tensor, importance_weights: tf.Tensor | None) -> tf.Tensor:
  losses = tf.convert_to_tensor(losses)
  if importance_weights is None:
    return tf.reduce_mean(losses)
  check_shape('importance_weights', importance_weights, losses)
  return tf.reduce_mean(tf.stop_gradient(importance_weights) * losses)
