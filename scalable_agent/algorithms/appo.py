# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""APPO: the clipped surrogate of PPO, with the targets of V-trace.

Sources: PPO (Schulman et al. 2017, arXiv 1707.06347); sample-factory
(Petrenko et al. 2020, arXiv 2006.11751), with these differences: the clip is
`[1 - c, 1 + c]`, and the weight `rho` is in the surrogate only, not in the
advantages. The policy `mu` acted, and the policy `pi` is learned. Targets `v`
are V-trace's, computed anew in each pass:

    rho_t = pi(a_t | x_t) / mu(a_t | x_t)
    A_t = r_t + gamma_t ((1 - lambda) V_{t+1} + lambda v_{t+1}) - V_t
    loss = -mean(min(rho A / s, clip(rho, 1 - c, 1 + c) A / s))
           + baseline_cost / 2 mean(((v - V) / s)^2)
           - entropy_cost mean(H(pi)) + kl_cost mean(KL(mu, pi))

where `s` is the standard deviation of returns with `--normalise_returns`, else
1. If `pi = mu`, and the bounds of V-trace's weights are at least 1, `A` is the
generalised advantage estimate (arXiv 1506.02438).

With a target policy `pi'`, an older copy of `pi`, the clip is about `pi'`, as
in IMPACT (Luo et al. 2020, arXiv 1912.00167). In the surrogate, `rho` becomes
`min(mu / pi', 2) pi / mu`, and the KL is `KL(pi', pi)`.
"""

from collections.abc import Collection

from scalable_agent import vtrace
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import actor_critic
from scalable_agent.networks import agents
from scalable_agent.networks import layers
from scalable_agent.settings import declare
from scalable_agent.settings import sections
import tensorflow as tf

_MAX_LOG_RHO = 20.0
_MAX_TARGET_WEIGHT = 2.0


class Appo(base.Algorithm):
  """The loss of APPO; the only group is `agent`."""

  def __init__(self, agent: agents.Agent, settings: sections.ImpalaSettings,
               scale: float = 1.0,
               target_policy: base.TargetPolicy | None = None,
               logs_policy_kl: bool = False):
    """Makes the algorithm; `scale` as in `impala.Impala`.

    The learner moves `target_policy`. With `logs_policy_kl`, a scalar is the
    mean KL.
    """
    self.agent = agent
    self.groups: dict[str, list[tf.Variable]] = {
        'agent': agent.trainable_variables}
    self.target_policy = target_policy
    self.targets: list[tf.Variable] = (
        target_policy.variables if target_policy else [])
    self._logs_policy_kl = logs_policy_kl
    self._settings = settings
    self._lambda = declare.used(settings.lambda_)
    self._limit = declare.used(settings.clip_ratio)
    self._scale = scale
    self._entropy_cost = entropy_cost(settings, agent.action_spec)

  def loss(self, data: structs.Unroll,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the loss of unrolls, summed over time and batch."""
    del importance_weights, groups, seed  # A ring has no priorities.
    settings = self._settings
    seen = base.evaluate(self.agent, data, settings.discounting,
                         settings.reward_clipping)
    log_rhos = tf.clip_by_value(seen.log_rhos, -_MAX_LOG_RHO, _MAX_LOG_RHO)
    vs = vtrace.from_importance_weights(
        log_rhos, seen.discounts, seen.rewards, seen.baseline,
        seen.bootstrap_value, settings.clip_rho,
        clip_c_threshold=settings.clip_c, lambda_=self._lambda,
        associative_scan=not layers.on_cpu()).vs
    advantages = actor_critic.compute_advantages(
        seen.rewards, seen.discounts, seen.baseline, seen.bootstrap_value, vs,
        self._lambda)
    errors = vs - seen.baseline
    means = {
        'mean_baseline': tf.reduce_mean(seen.baseline),
        'mean_log_rho': tf.reduce_mean(log_rhos),
        'kl': tf.reduce_mean(tf.math.expm1(log_rhos) - log_rhos),
    }
    old, levels = seen.behaviour.baseline, data.start.level_name
    are_set = self.agent.returns.are_set(levels) if self.agent.returns else 1.0
    if settings.clip_value:
      limit = settings.clip_value * (
          self.agent.returns.deviations(levels) if self.agent.returns else 1.0)
      errors = actor_critic.clip_errors(errors, vs, seen.baseline, old, limit)
    if self.agent.returns:
      advantages, errors = self.agent.returns.scaled(
          advantages, errors, levels)
      means['return_deviation'] = tf.reduce_mean(
          self.agent.returns.deviations(levels))
    if settings.normalise_advantages:
      advantages = actor_critic.normalise(advantages, are_set)
    if self.target_policy:
      old_policy = self.target_policy.of(data)
      log_rhos = actor_critic.about_target(
          log_rhos, seen.log_probs - old_policy.log_prob(seen.behaviour.action),
          _MAX_TARGET_WEIGHT)
      seen = seen._replace(behaviour_policy=old_policy)
    means['clipped'] = actor_critic.clipped_share(
        log_rhos, advantages, self._limit)
    return self._sum(
        seen, log_rhos, advantages, errors, are_set, means)._replace(
            targets=vs if self.agent.returns else None)

  def _sum(self, seen: base.Evaluated, log_rhos: tf.Tensor,
           advantages: tf.Tensor, errors: tf.Tensor,
           are_set: tf.Tensor | float,
           means: dict[str, tf.Tensor]) -> base.Loss:
    """Returns the sum of the terms of the loss, see `PopArt.are_set`."""
    settings = self._settings
    entropies = seen.policy.entropy()
    terms = {
        'policy_loss': actor_critic.compute_clipped_surrogate_loss(
            log_rhos, advantages, self._limit),
        'baseline_loss': actor_critic.compute_baseline_loss(errors),
        'entropy_loss': actor_critic.compute_entropy_loss(
            are_set * entropies),
    }
    total = (terms['policy_loss']
             + settings.baseline_cost * terms['baseline_loss']
             + self._entropy_cost * terms['entropy_loss'])
    if settings.kl_cost or self._logs_policy_kl:
      kl = seen.behaviour_policy.kl(seen.policy)
    if self._logs_policy_kl:
      means['policy_kl'] = tf.reduce_mean(kl)
    if settings.kl_cost:
      terms['kl_loss'] = tf.reduce_sum(are_set * kl)
      total += settings.kl_cost * terms['kl_loss']
    sums = {name: self._scale * value
            for name, value in {'total_loss': total, **terms}.items()}
    return base.Loss({'agent': sums['total_loss']}, sums,
                     means | {'entropy': tf.reduce_mean(entropies)})


def entropy_cost(settings: sections.ImpalaSettings,
                 actions: structs.ActionSpec) -> float:
  """Returns the weight of the entropy loss, which -1 leaves to the actions."""
  cost = declare.used(settings.entropy_cost)
  return cost if cost != -1 else 0. if actions.size else .01
