# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA's loss: V-trace actor-critic (Espeholt et al. 2018, section 4.2).

The paper compares V-trace with three variants (section 5.2.2, table 2), which
are here, too. The policy `mu` acted, the policy `pi` is learned, and `rho_t` is
`pi(a_t | x_t) / mu(a_t | x_t)`. `R_t` is the return of A3C, up to the end of
the episode, or of the unroll with the bootstrap value:

    R_t = r_t + gamma_t R_{t+1},    R_T = V(x_T)

The variants differ in the target of the baseline, in the advantage, and in the
logarithm of the policy loss `-sum(log * advantage)`:

    vtrace:    v_t,  min(1, rho_t) (r_t + gamma_t v_{t+1} - V(x_t)),  log pi
    one_step:  R_t,  min(1, rho_t) (R_t - V(x_t)),                    log pi
    epsilon:   R_t,  R_t - V(x_t),                          log(pi + 1e-6)
    none:      R_t,  R_t - V(x_t),                                    log pi

If `pi = mu`, lambda is 1 and all bounds are at least 1, all variants are equal,
up to the epsilon. According to the paper, one_step has no off-policy correction
of the baseline, and an importance weight on each advantage. We clip this weight
as V-trace does, which is our reading.
All variants have the entropy loss of `pi`.
"""

from collections.abc import Collection

from scalable_agent import vtrace
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import actor_critic
from scalable_agent.networks import agents
from scalable_agent.networks import layers
from scalable_agent.settings import sections
import tensorflow as tf

_EPSILON = 1e-6


class Impala(base.Algorithm):
  """The loss of IMPALA; the only group is `agent`."""

  def __init__(self, agent: agents.Agent, settings: sections.ImpalaSettings,
               scale: float = 1.0):
    """Makes the algorithm.

    `scale` is a factor of the loss; one over the number of steps of a batch
    makes losses means.
    """
    self.agent = agent
    self.groups: dict[str, list[tf.Variable]] = {
        'agent': agent.trainable_variables}
    self.targets: list[tf.Variable] = []
    self._settings = settings
    self._scale = scale

  def loss(self, data: structs.Unroll,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the loss of unrolls, summed over time and batch."""
    del groups, seed  # There is one group and no randomness.
    settings = self._settings
    seen = base.evaluate(self.agent, data, settings.discounting,
                         settings.reward_clipping)
    baseline, log_rhos = seen.baseline, seen.log_rhos
    returns = self._returns(log_rhos, seen.discounts, seen.rewards, baseline,
                            seen.bootstrap_value)

    entropies = seen.policy.entropy()
    means = {
        'entropy': tf.reduce_mean(entropies),
        'mean_baseline': tf.reduce_mean(baseline),
        'mean_log_rho': tf.reduce_mean(log_rhos),
    }
    terms = returns.pg_advantages, returns.vs - baseline
    if self.agent.returns:
      levels = data.start.level_name
      terms = self.agent.returns.scaled(*terms, levels)
      entropies = self.agent.returns.are_set(levels) * entropies
      means['return_deviation'] = tf.reduce_mean(
          self.agent.returns.deviations(levels))
    sums = self._losses(
        seen.log_probs, entropies, *terms, importance_weights)
    # In the units of each level: no level has all the priorities.
    has_levels = self.agent.returns and self.agent.returns.shape
    errors = tf.reduce_mean(tf.abs(
        terms[1] if has_levels else returns.vs - baseline), axis=0)
    return base.Loss({'agent': sums['total_loss']}, sums, means, errors,
                     returns.vs if self.agent.returns else None)

  def _losses(self, log_probs: tf.Tensor, entropies: tf.Tensor,
              advantages: tf.Tensor, errors: tf.Tensor,
              importance_weights: tf.Tensor | None) -> dict[str, tf.Tensor]:
    """Returns the total loss and the three terms, by name."""
    settings = self._settings
    if importance_weights is not None:
      # All terms are sums; the baseline loss is a sum of squares.
      advantages = importance_weights * advantages
      entropies = importance_weights * entropies
      errors *= tf.sqrt(importance_weights)
    policy_loss = actor_critic.compute_policy_gradient_loss(
        log_probs, advantages,
        epsilon=_EPSILON if settings.correction == 'epsilon' else 0.0)
    baseline_loss = actor_critic.compute_baseline_loss(errors)
    entropy_loss = actor_critic.compute_entropy_loss(entropies)
    sums = {
        'total_loss': (policy_loss + settings.baseline_cost * baseline_loss
                       + settings.entropy_cost * entropy_loss),
        'policy_loss': policy_loss,
        'baseline_loss': baseline_loss,
        'entropy_loss': entropy_loss,
    }
    return {name: self._scale * value for name, value in sums.items()}

  def _returns(self, log_rhos: tf.Tensor, discounts: tf.Tensor,
               rewards: tf.Tensor, values: tf.Tensor,
               bootstrap_value: tf.Tensor) -> vtrace.VTraceReturns:
    """Returns the targets of the variant `correction`."""
    settings = self._settings
    if settings.correction == 'vtrace':
      return vtrace.from_importance_weights(
          log_rhos, discounts, rewards, values, bootstrap_value,
          settings.clip_rho, settings.clip_pg_rho,
          clip_c_threshold=settings.clip_c, lambda_=settings.lambda_,
          associative_scan=not layers.on_cpu())  # Eight times as fast there.
    # With weights of 1, V-trace's targets are the returns of A3C.
    returns = vtrace.from_importance_weights(
        tf.zeros_like(log_rhos), discounts, rewards, values, bootstrap_value,
        associative_scan=not layers.on_cpu())
    if settings.correction == 'one_step':
      rhos = tf.minimum(tf.exp(log_rhos), 1.0)
      return returns._replace(pg_advantages=rhos * returns.pg_advantages)
    return returns
