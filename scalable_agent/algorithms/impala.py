# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA's loss: V-trace actor-critic (Espeholt et al. 2018, section 4.2).

There are also the three variants that the paper compares V-trace with (section
5.2.2, table 2). The policy `mu` acted, the policy `pi` is learned, and `rho_t`
is `pi(a_t | x_t) / mu(a_t | x_t)`. The return of A3C is `R_t`. It ends with the
episode, or with the unroll and its bootstrap value:

    R_t = r_t + gamma_t R_{t+1},    R_T = V(x_T)

The variants differ in the target of the baseline, in the advantage, and in the
logarithm of the policy loss `-sum(log * advantage)`:

    vtrace:    v_t,  min(1, rho_t) (r_t + gamma_t v_{t+1} - V(x_t)),  log pi
    one_step:  R_t,  min(1, rho_t) (R_t - V(x_t)),                    log pi
    epsilon:   R_t,  R_t - V(x_t),                          log(pi + 1e-6)
    none:      R_t,  R_t - V(x_t),                                    log pi

If `pi = mu`, all variants are equal, up to the epsilon. According to the paper,
one_step has no off-policy correction of the baseline, and an importance weight
on each advantage. We clip this weight as V-trace does, which is our reading. In
all variants, the entropy loss is that of `pi`.
"""

from collections.abc import Collection

from scalable_agent import vtrace
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import actor_critic
from scalable_agent.networks import agents
from scalable_agent.networks import heads
from scalable_agent.settings import sections
import tensorflow as tf
import tree

_EPSILON = 1e-6


class Impala:
  """The loss of IMPALA; implements `base.Algorithm` with the group `agent`."""

  def __init__(self, agent: agents.Agent, settings: sections.ImpalaSettings,
               scale: float = 1.0):
    """Makes the algorithm.

    Args:
      agent: the agent that learns.
      settings: costs, discount, clipping of rewards, correction.
      scale: factor of the loss. With one over the number of steps of a batch,
        the losses are means.
    """
    self.agent = agent
    self.groups: dict[str, list[tf.Variable]] = {
        'agent': agent.trainable_variables}
    self.delayed: tuple[str, ...] = ()
    self.delay = 1
    self.targets: list[tf.Variable] = []
    self._settings = settings
    self._scale = scale

  def loss(self, data: structs.Unroll, weights: tf.Tensor | None,
           groups: Collection[str], seed: tf.Tensor) -> base.Loss:
    """Computes the loss of unrolls, summed over time and batch."""
    del groups, seed  # There is one group, and nothing is random.
    settings = self._settings
    env_outputs, agent_outputs, truncation_values = data.steps
    learner_outputs, _ = self.agent.unroll(
        agent_outputs.action, env_outputs, data.start.agent_state)
    bootstrap_value = learner_outputs.baseline[-1]

    # Entry t + 1 holds the action that was chosen at observation t, its reward
    # and whether it ended the episode. Entry t of the learner's outputs belongs
    # to observation t.
    behaviour = tree.map_structure(lambda t: t[1:], agent_outputs)
    rewards = actor_critic.clip_rewards(
        env_outputs.reward[1:], settings.reward_clipping)
    done = env_outputs.done[1:]
    policy = heads.policy_of(self.agent.head, learner_outputs.policy[:-1])
    baseline = learner_outputs.baseline[:-1]
    discounts = tf.cast(~done, tf.float32) * settings.discounting
    # Where a time limit cut an episode off, its value is added to the last
    # reward. The discount there is 0, so the next episode has no effect.
    rewards += settings.discounting * truncation_values[1:]

    log_probs = policy.log_prob(behaviour.action)
    log_rhos = log_probs - heads.policy_of(
        self.agent.head, behaviour.policy).log_prob(behaviour.action)
    returns = self._returns(
        log_rhos, discounts, rewards, baseline, bootstrap_value)

    entropies = policy.entropy()
    sums = self._losses(log_probs, entropies, returns.pg_advantages,
                        returns.vs - baseline, weights)
    means = {
        'entropy': tf.reduce_mean(entropies),
        'mean_baseline': tf.reduce_mean(baseline),
        'mean_log_rho': tf.reduce_mean(log_rhos),
    }
    errors = tf.reduce_mean(tf.abs(returns.vs - baseline), axis=0)
    return base.Loss({'agent': sums['total_loss']}, sums, means, errors)

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Does nothing: there are no targets."""

  def _losses(self, log_probs, entropies, advantages, errors, weights):
    """Returns the total loss and its parts, by name."""
    settings = self._settings
    if weights is not None:
      # All three are sums, and the baseline loss is one of squares.
      advantages, entropies = weights * advantages, weights * entropies
      errors *= tf.sqrt(weights)
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

  def _returns(self, log_rhos, discounts, rewards, values, bootstrap_value):
    """Returns the `VTraceReturns` of the variant `correction`."""
    settings = self._settings
    if settings.correction == 'vtrace':
      return vtrace.from_importance_weights(
          log_rhos, discounts, rewards, values, bootstrap_value,
          settings.clip_rho, settings.clip_pg_rho,
          clip_c_threshold=settings.clip_c, lambda_=settings.lambda_)
    # Where all weights are 1, V-trace's targets are the returns of A3C.
    returns = vtrace.from_importance_weights(
        tf.zeros_like(log_rhos), discounts, rewards, values, bootstrap_value)
    if self._settings.correction == 'one_step':
      weights = tf.minimum(tf.exp(log_rhos), 1.0)
      return returns._replace(pg_advantages=weights * returns.pg_advantages)
    return returns
