# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Targets and losses of DDQN, DDPG, TD3 and SAC.

A transition is (o, a, r, discount, o'). Its reward `r` is the sum of up to `n`
discounted rewards. Its discount is `gamma^k` after `k` steps, or 0 if they
ended the episode. So no function here has a `done`.

`B` is the batch size, `A` the number of discrete actions, `N` the number of
parts of a continuous action, `C` the number of critics. A suffix `_t` says that
a value belongs to o'. Tensors are float32 or float64.

Losses are means over the batch, unlike those of IMPALA:
`mean(weight * loss)`, which is not divided by the sum of the weights. The
importance weights of a prioritised replay are `[B]`; None stands for ones.

Sources: Mnih et al. 2015 (DQN), van Hasselt et al. 2016 (arXiv 1509.06461,
double Q-learning), Lillicrap et al. 2016 (arXiv 1509.02971, DDPG), Fujimoto et
al. 2018 (arXiv 1802.09477, TD3), Haarnoja et al. 2018 (arXiv 1812.05905, SAC),
Christodoulou 2019 (arXiv 1910.07207, SAC with discrete actions).
"""

import math

import tensorflow as tf

# The values of o', and the targets.


def chosen_values(q_values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
  """Returns the values of actions.

  Args:
    q_values: `[B, A]` or `[C, B, A]`.
    actions: integers `[B]`, in `[0, A)`.

  Returns:
    `[B]` or `[C, B]`.
  """
  is_chosen = tf.one_hot(
      actions, q_values.shape[-1], on_value=True, off_value=False, dtype=bool)
  # Not a product: infinities of other actions must not pass.
  return tf.reduce_sum(
      tf.where(is_chosen, q_values, tf.zeros_like(q_values)), axis=-1)


def greedy_values(q_values_t: tf.Tensor,
                  selector_q_values_t: tf.Tensor) -> tf.Tensor:
  """Returns the values of the best actions, `Q(o', argmax Q_selector(o', .))`.

  Args:
    q_values_t: `[B, A]`, of the target network.
    selector_q_values_t: `[B, A]`, of the online network for double Q-learning.
      With those of the target network again, it is the maximum of DQN.

  Returns:
    `[B]`.
  """
  return chosen_values(q_values_t, tf.argmax(selector_q_values_t, axis=-1))


def smallest(q_values: tf.Tensor) -> tf.Tensor:
  """Returns the minimum over critics, `[...]` of `[C, ...]` (TD3 and SAC)."""
  return tf.reduce_min(q_values, axis=0)


def expected_values(q_values: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
  """Returns the mean over the actions of a softmax policy (MPO, exactly).

  Args:
    q_values: `[B, A]`.
    logits: `[B, A]`, of the policy.

  Returns:
    `[B]`, `sum_a pi(a) Q(a)`.
  """
  return tf.reduce_sum(tf.nn.softmax(logits) * q_values, axis=-1)


def soft_values(q_values: tf.Tensor, log_probs: tf.Tensor,
                temperature: tf.Tensor) -> tf.Tensor:
  """Returns SAC's value of sampled actions, `Q - alpha log pi`.

  Args:
    q_values: `[B]`, the smallest of the critics.
    log_probs: `[B]`, of the same actions.
    temperature: scalar, alpha.

  Returns:
    `[B]`.
  """
  _check_shape('log_probs', log_probs, q_values)
  return q_values - temperature * log_probs


def expected_soft_values(q_values: tf.Tensor, logits: tf.Tensor,
                         temperature: tf.Tensor) -> tf.Tensor:
  """Returns SAC's value for discrete actions, without sampling.

  Args:
    q_values: `[B, A]`, the smallest of the critics.
    logits: `[B, A]`, of the policy.
    temperature: scalar, alpha.

  Returns:
    `[B]`, `sum_a pi(a) (Q(a) - alpha log pi(a))`.
  """
  _check_shape('logits', logits, q_values)
  return expected_values(
      q_values - temperature * tf.nn.log_softmax(logits), logits)


def td_targets(rewards: tf.Tensor, discounts: tf.Tensor,
               values_t: tf.Tensor) -> tf.Tensor:
  """Returns `r + discount * V(o')`; no gradient flows through it.

  Args:
    rewards: `[B]`.
    discounts: `[B]`. Where it is 0, even a NaN of `values_t` has no effect.
    values_t: `[B]`, from one of the functions above. The entropy term of SAC
      is in it, so it is discounted, too.

  Returns:
    `[B]`.
  """
  _check_shape('discounts', discounts, rewards)
  _check_shape('values_t', values_t, rewards)
  return tf.stop_gradient(
      rewards + tf.math.multiply_no_nan(values_t, discounts))


def smoothed_actions(actions: tf.Tensor, noise: tf.Tensor,
                     noise_clip: float) -> tf.Tensor:
  """Adds TD3's clipped noise to the actions of the target policy.

  Args:
    actions: `[B, N]`, in [-1, 1].
    noise: `[B, N]`, one random number for each part of each action.
    noise_clip: largest absolute value of the noise.

  Returns:
    `[B, N]`, clipped to [-1, 1].
  """
  _check_shape('noise', noise, actions)
  noise = tf.clip_by_value(noise, -noise_clip, noise_clip)
  return tf.clip_by_value(actions + noise, -1.0, 1.0)


# The losses.


def critic_loss(q_values: tf.Tensor, targets: tf.Tensor,
                weights: tf.Tensor | None = None,
                huber: float | None = None) -> tf.Tensor:
  """Returns half the mean squared error, summed over critics.

  With two critics it is TD3's mean of two mean squares.

  Args:
    q_values: `[C, B]`, of the actions that were taken.
    targets: `[B]`; no gradient flows through them.
    weights: `[B]`, importance weights.
    huber: `d`, from where on the loss is linear: an error `e` beyond it costs
      `d (|e| - d / 2)` instead of `e^2 / 2`. None for squares everywhere.

  Returns:
    Scalar.
  """
  q_values = tf.convert_to_tensor(q_values)
  _check_shape('targets', targets, q_values[0])
  sizes = tf.abs(q_values - tf.stop_gradient(targets))
  slopes = sizes if huber is None else tf.minimum(sizes, huber)
  losses = slopes * (sizes - 0.5 * slopes)
  return _mean(tf.reduce_sum(losses, axis=0), weights)


def smallest_errors(q_values: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
  """Returns `|min_c Q_c - y|`, the priorities of TD3.

  Args:
    q_values: `[C, B]`. With one critic it is `|Q - y|`, as for DDQN and DDPG.
    targets: `[B]`.

  Returns:
    `[B]`.
  """
  _check_shape('targets', targets, q_values[0])
  return tf.abs(smallest(q_values) - targets)


def mean_errors(q_values: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
  """Returns the mean of `|Q_c - y|` over critics, the priorities of SAC.

  Args:
    q_values: `[C, B]`. With one critic it is `|Q - y|`, as for DDQN and DDPG.
    targets: `[B]`.

  Returns:
    `[B]`.
  """
  _check_shape('targets', targets, q_values[0])
  return tf.reduce_mean(tf.abs(q_values - targets), axis=0)


def deterministic_policy_loss(
    q_values: tf.Tensor, weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of DDPG's and TD3's policies, `-mean(w Q(o, pi(o)))`.

  Args:
    q_values: `[B]`, of the first critic, for the actions of the policy. The
      gradient flows through it to the actions; the critic must not learn.
    weights: `[B]`, importance weights.

  Returns:
    Scalar.
  """
  return -_mean(q_values, weights)


def soft_policy_loss(
    q_values: tf.Tensor, log_probs: tf.Tensor, temperature: tf.Tensor,
    weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of SAC's policy, `mean(w (alpha log pi - Q))`.

  Args:
    q_values: `[B]`, the smallest of the critics, for actions that the policy
      sampled with reparameterisation. The gradient flows through them and
      through the log-probabilities; the critics must not learn.
    log_probs: `[B]`, of the same actions.
    temperature: scalar, alpha; no gradient flows through it.
    weights: `[B]`, importance weights.

  Returns:
    Scalar.
  """
  return -_mean(
      soft_values(q_values, log_probs, _constant(temperature, q_values)),
      weights)


def expected_soft_policy_loss(
    q_values: tf.Tensor, logits: tf.Tensor, temperature: tf.Tensor,
    weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of SAC's policy for discrete actions, without sampling.

  Args:
    q_values: `[B, A]`, the smallest of the critics; no gradient flows through.
    logits: `[B, A]`, of the policy. The gradient flows through the
      probabilities and through their logarithms.
    temperature: scalar, alpha; no gradient flows through it.
    weights: `[B]`, importance weights.

  Returns:
    Scalar, `mean(w sum_a pi(a) (alpha log pi(a) - Q(a)))`.
  """
  return -_mean(
      expected_soft_values(tf.stop_gradient(q_values), logits,
                           _constant(temperature, q_values)), weights)


def negative_entropy(logits: tf.Tensor) -> tf.Tensor:
  """Returns `sum_a pi(a) log pi(a)`, the mean of the log-probabilities.

  Args:
    logits: `[B, A]`.

  Returns:
    `[B]`.
  """
  return expected_values(tf.nn.log_softmax(logits), logits)


def temperature_loss(
    log_temperature: tf.Tensor, log_probs: tf.Tensor, target_entropy: float,
    weights: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the loss of SAC's temperature.

  Its gradient lowers the temperature if the entropy is above its target.

  Args:
    log_temperature: scalar, `log alpha`; only this gets a gradient.
    log_probs: `[B]`, of sampled actions, or `negative_entropy`.
    target_entropy: the entropy to reach. For continuous actions of `N` parts,
      the paper has `-N`; for discrete ones, see `discrete_target_entropy`.
    weights: `[B]`, importance weights.

  Returns:
    Scalar, `-mean(w log_alpha (log pi + target_entropy))`.
  """
  excess = tf.stop_gradient(log_probs + target_entropy)
  return -_mean(log_temperature * excess, weights)


def discrete_target_entropy(num_actions: int, ratio: float = 0.98) -> float:
  """Returns a share of the entropy of the uniform policy.

  Args:
    num_actions: `A`.
    ratio: the share. That of the paper is 0.98; for few actions this is so near
      to uniform that the temperature grows without bound.
  """
  return ratio * math.log(num_actions)


# The target networks.


def updated(target: tf.Tensor, online: tf.Tensor,
            rate: float | tf.Tensor) -> tf.Tensor:
  """Returns the new value of a variable of a target network.

  Args:
    target: its value, any shape.
    online: the value of the same variable of the online network.
    rate: how far it moves: `1 - polyak`; 1 for a copy, 0 for no change. Both
      are exact.

  Returns:
    The shape of `target`.
  """
  # The hint keeps the digits of Python floats for float64.
  rate = tf.cast(
      tf.convert_to_tensor(rate, dtype_hint=target.dtype), target.dtype)
  return (1 - rate) * target + rate * online


def periodic_rate(
    rate: float, period: int, num_updates: tf.Tensor) -> tf.Tensor:
  """Returns `rate` in every `period`-th update, else 0.

  Args:
    rate: see `updated`.
    period: updates from one change of the target network to the next.
    num_updates: integer, number of updates with the one that just ended.

  Returns:
    float32 scalar.
  """
  return tf.where(num_updates % period == 0, rate, 0.0)


def _constant(number, like):
  """Returns a tensor that no gradient flows through."""
  # The hint keeps the digits of Python floats for float64.
  return tf.stop_gradient(tf.convert_to_tensor(number, dtype_hint=like.dtype))


def _mean(losses, weights):
  losses = tf.convert_to_tensor(losses)
  if weights is None:
    return tf.reduce_mean(losses)
  _check_shape('weights', weights, losses)
  return tf.reduce_mean(tf.stop_gradient(weights) * losses)


def _check_shape(name, tensor, other):
  """Checks that nothing is broadcast: `[B, 1]` and `[B]` would be `[B, B]`."""
  shape = tf.convert_to_tensor(tensor).shape
  wanted = tf.convert_to_tensor(other).shape
  if not shape.is_compatible_with(wanted):
    raise ValueError(f'{name}: Shape {shape} must be {wanted}')
