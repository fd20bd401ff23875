# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Losses of MPO: Maximum a Posteriori Policy Optimisation.

Abdolmaleki et al. 2018 (arXiv 1806.06920), with the decoupled KL of Abdolmaleki
et al. 2018 (arXiv 1812.02256) for each part of an action, as in acme.

The target policy `pi_t` gives actions `a_j`, and the critic gives values `Q_j`.
The E-step finds the best distribution `q` whose mean KL from `pi_t` is epsilon:

    q_j ~ p_j exp(Q_j / eta)
    g(eta) = eta epsilon + eta mean_B log sum_j p_j exp(Q_j / eta)

The temperature `eta` minimises `g`. The prior `p_j` is `1 / M` for `M` samples
of `pi_t`, and `pi_t(a_j)` for all `A` discrete actions. The M-step moves the
online policy to `q`, but keeps the online policy near the target policy:

    -mean_B sum_j q_j log pi(a_j) + sum_n alpha_n KL_n(pi_t || pi)

with `alpha_n` such that the mean of `KL_n` is at most a bound.

`B` is the batch size, `J` stands for `M` or `A` and is the first axis, `N` is
the number of parts of a continuous action. Losses are means over the batch.
"""

from typing import NamedTuple

from scalable_agent.losses import q_learning
from scalable_agent.networks import distributions
import tensorflow as tf

# At lower numbers, softplus is so flat that a dual variable would not recover.
_MIN_DUAL = -18.0
# Keeps temperatures and multipliers positive in float32, as in acme.
_TINY = 1e-8

_MIN_TEMPERATURE, _MAX_TEMPERATURE = 1e-6, 1e6


def action_weights(q_values: tf.Tensor, temperature: tf.Tensor,
                   log_priors: tf.Tensor | None = None) -> tf.Tensor:
  """Returns `q_j`, the result of the E-step, `[J, B]`, as a constant.

  Args:
    q_values: `[J, B]`, values of the target critic for actions of `pi_t`.
    temperature: scalar, eta.
    log_priors: `[J, B]`, `log pi_t(a_j)` of all discrete actions; None for
      samples.
  """
  return tf.exp(tf.stop_gradient(
      _log_weights(q_values, temperature, log_priors)))


def temperature_loss(
    q_values: tf.Tensor, temperature: tf.Tensor, epsilon: float,
    log_priors: tf.Tensor | None = None) -> tf.Tensor:
  """Returns the dual `g(eta)`, with a gradient for the temperature only.

  `epsilon` bounds the mean KL of `q` from the target policy. All other
  arguments are those of `action_weights`.
  """
  q_values = tf.stop_gradient(q_values)
  log_means = tf.reduce_logsumexp(
      q_values / temperature + _log_priors(q_values, log_priors), axis=0)
  return temperature * (epsilon + tf.reduce_mean(log_means))


def exact_temperature(
    q_values: tf.Tensor, epsilon: float,
    log_priors: tf.Tensor | None = None, num_steps: int = 40) -> tf.Tensor:
  """Returns the temperature that minimises `temperature_loss`, a constant.

  The slope of `g` is epsilon minus the mean KL of `q` from the prior. The KL
  falls as the temperature rises, so bisection, of `num_steps` steps, finds the
  root, on the logarithm from 1e-6 to 1e6, or higher where the values differ
  much. Without a root, because the values hardly differ, the result is 1e-6.
  """
  q_values = tf.stop_gradient(q_values)

  def halve(step: tf.Tensor, low: tf.Tensor, high: tf.Tensor
            ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    middle = 0.5 * (low + high)
    log_weights = _log_weights(q_values, tf.exp(middle), log_priors)
    kls = tf.reduce_sum(
        tf.exp(log_weights)
        * (log_weights - _log_priors(q_values, log_priors)), axis=0)
    is_too_cold = tf.reduce_mean(kls) > epsilon
    return (step + 1, tf.where(is_too_cold, middle, low),
            tf.where(is_too_cold, high, middle))

  limits = tf.math.log(tf.constant(
      [_MIN_TEMPERATURE, _MAX_TEMPERATURE], q_values.dtype))
  # The variance of values is at most spread^2 / 4, so the KL is at most
  # (spread / temperature)^2 / 8.
  spread = tf.reduce_max(
      tf.reduce_max(q_values, 0) - tf.reduce_min(q_values, 0))
  highest = tf.maximum(
      limits[1], tf.math.log(spread) - 0.5 * tf.math.log(
          8 * tf.cast(epsilon, q_values.dtype)))
  _, low, high = tf.while_loop(
      lambda step, low, high: step < num_steps, halve,
      (0, limits[0], highest))
  return tf.stop_gradient(tf.exp(0.5 * (low + high)))


def policy_loss(action_weights: tf.Tensor, log_probs: tf.Tensor) -> tf.Tensor:
  """Returns the cross entropy of the online policy, `-mean_B sum_j q_j log pi`.

  Action weights and log-probs are `[J, B]`; no gradient flows to the weights.
  """
  q_learning.check_shape('log_probs', log_probs, action_weights)
  return -tf.reduce_mean(tf.reduce_sum(
      tf.stop_gradient(action_weights) * log_probs, axis=0))


class DecoupledPolicies(NamedTuple):
  """Two policies, each with one half of the online parameters.

  `mean` has the online means and the target's standard deviations, `scale` the
  target's means and the online standard deviations.
  """
  mean: distributions.Normal
  scale: distributions.Normal


def decoupled_policies(
    online: distributions.Normal,
    target: distributions.Normal) -> DecoupledPolicies:
  """Returns two policies `[B, N]` for the sum of two policy losses."""
  return DecoupledPolicies(
      mean=distributions.Normal(online.loc, tf.stop_gradient(target.scale)),
      scale=distributions.Normal(tf.stop_gradient(target.loc), online.scale))


def gaussian_kls(online: distributions.Normal, target: distributions.Normal
                 ) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns both `KL(pi_t || pi)` of `decoupled_policies`, `[B, N]`.

  For the means, the KL is `0.5 ((mu - mu_t) / sigma_t)^2`, for the standard
  deviations `log(sigma / sigma_t) + 0.5 (sigma_t / sigma)^2 - 0.5`. The sum
  over `N` is the KL of diagonal Gaussians. The target is taken as constant.
  """
  q_learning.check_shape('online', online.loc, target.loc)
  q_learning.check_shape('online scale', online.scale, target.loc)
  q_learning.check_shape('target scale', target.scale, target.loc)
  target_scale = tf.stop_gradient(target.scale)
  mean_kls = 0.5 * tf.square(
      (online.loc - tf.stop_gradient(target.loc)) / target_scale)
  ratios = target_scale / online.scale
  scale_kls = 0.5 * tf.square(ratios) - 0.5 - tf.math.log(ratios)
  return mean_kls, scale_kls


def categorical_kls(online_logits: tf.Tensor,
                    target_logits: tf.Tensor) -> tf.Tensor:
  """Returns `KL(pi_t || pi)` of softmax policies, `[B]`, from logits `[B, A]`.

  The target's logits are taken as constants.
  """
  q_learning.check_shape('online_logits', online_logits, target_logits)
  target_logits = tf.stop_gradient(target_logits)
  return tf.reduce_sum(
      tf.nn.softmax(target_logits)
      * (tf.nn.log_softmax(target_logits) - tf.nn.log_softmax(online_logits)),
      axis=-1)


def kl_losses(kls: tf.Tensor, multipliers: tf.Tensor, epsilon: float
              ) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the penalty of the policy and the loss of the multipliers.

  The penalty is `sum(alpha mean_B KL)`, with a gradient for the KL only, the
  loss `sum(alpha (epsilon - mean_B KL))`, with a gradient for alpha only.

  Args:
    kls: `[B, ...]`, such as `[B, N]` of `gaussian_kls`.
    multipliers: `[...]`, not negative, alpha for each mean over the batch.
    epsilon: bound of each mean.
  """
  means = tf.reduce_mean(kls, axis=0)
  q_learning.check_shape('multipliers', multipliers, means)
  penalty = tf.reduce_sum(tf.stop_gradient(multipliers) * means)
  loss = tf.reduce_sum(multipliers * (epsilon - tf.stop_gradient(means)))
  return penalty, loss


def out_of_bounds_costs(actions: tf.Tensor) -> tf.Tensor:
  """Returns minus the distance of actions from the box [-1, 1]^N, a constant.

  The costs `[M, B]`, of samples `[M, B, N]` that are not clipped, are the
  values of a second objective, with a second temperature and epsilon. The
  action weights and temperature losses of both objectives are added (MO-MPO:
  Abdolmaleki et al. 2020, arXiv 2005.07513). So Gaussian policies learn to stay
  in the box.
  """
  outside = actions - tf.clip_by_value(actions, -1.0, 1.0)
  return tf.stop_gradient(-tf.norm(outside, axis=-1))


def positive(dual: tf.Tensor) -> tf.Tensor:
  """Returns the temperature or multiplier of a dual variable, by softplus.

  After each update, `projected_dual` must be assigned to the variable.
  """
  return tf.nn.softplus(dual) + _TINY


def projected_dual(dual: tf.Tensor) -> tf.Tensor:
  """Returns the dual variable, raised to at least -18 (see `positive`)."""
  return tf.maximum(dual, _MIN_DUAL)


def _log_weights(q_values: tf.Tensor, temperature: tf.Tensor,
                 log_priors: tf.Tensor | None) -> tf.Tensor:
  return tf.nn.log_softmax(
      q_values / temperature + _log_priors(q_values, log_priors), axis=0)


def _log_priors(
    q_values: tf.Tensor, log_priors: tf.Tensor | None) -> tf.Tensor:
  if log_priors is None:
    return -tf.math.log(tf.cast(tf.shape(q_values)[0], q_values.dtype))
  q_learning.check_shape('log_priors', log_priors, q_values)
  return tf.stop_gradient(log_priors)
