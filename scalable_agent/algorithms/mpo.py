# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""MPO: policy improvement within bounds of the KL divergence.

Sources: Abdolmaleki et al. 2018 (arXiv 1806.06920, arXiv 1812.02256), acme. The
formulae are in `losses.mpo`. The policy learns at o, where actions were chosen.
acme's policy learns at o', which saves evaluations of the target critics, but
is never the first observation of an episode.
"""

from collections.abc import Collection

import numpy as np
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import batches
from scalable_agent.losses import mpo
from scalable_agent.losses import q_learning
from scalable_agent.networks import distributions
from scalable_agent.networks import heads
from scalable_agent.settings import declare
from scalable_agent.settings import sections
import tensorflow as tf


class Mpo(base.Algorithm):
  """Groups `critic`, `policy`, `duals`, and `memory` with an LSTM."""

  def __init__(self, make_agent: base.MakeAgent, make_critic: base.MakeCritic,
               settings: sections.OffPolicySettings):
    self.agent = make_agent()
    self._critics = base.Critics(
        make_critic, self.agent, declare.used(settings.num_critics))
    self._target = base.Target(make_agent(), self.agent)
    self._settings = settings
    spec = self.agent.action_spec
    self._is_discrete = not spec.size
    shape = (spec.size,)
    initial = {'mean_multipliers': np.full(
        shape if spec.size else (), settings.initial_mean_multiplier)}
    if spec.size:
      initial['scale_multipliers'] = np.full(
          shape, settings.initial_scale_multiplier)
    if not settings.exact_temperature:
      initial['temperature'] = np.array(settings.initial_temperature)
      if spec.size:
        initial['bounds_temperature'] = np.array(settings.initial_temperature)
    # The softplus of a dual is the initial value.
    self._duals = {
        name: tf.Variable(_inverse_softplus(value), dtype=tf.float32, name=name)
        for name, value in initial.items()}
    self.groups: dict[str, list[tf.Variable]] = {
        **base.memory_group(self.agent),
        'critic': self._critics.variables,
        'policy': self.agent.head_variables,
        'duals': list(self._duals.values())}
    self.targets: list[tf.Variable] = [
        *self._target.variables, *self._critics.targets]

  def loss(self, data: structs.Transition | structs.Sequence,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the losses of a batch."""
    del groups
    seen = batches.experience(
        self.agent, self._target.model, data, importance_weights)
    params = self.agent.params(seen.policy.now)
    learned, _ = self._critics.inputs(seen.critic.now, seen.policy.now)
    if self._is_discrete:
      value_t, policy_loss, duals_loss = self._discrete(seen, params)
      q = q_learning.chosen_values(
          self._critics.values(learned), seen.action)
    else:
      value_t, policy_loss, duals_loss = self._continuous(seen, params, seed)
      q = self._critics.values(learned, seen.action)
    y = q_learning.td_targets(seen.reward, seen.discount, value_t)
    losses = {'critic': q_learning.critic_loss(q, y, seen.critic_weights),
              'policy': policy_loss, 'duals': duals_loss}
    means = {f'{group}_loss': loss for group, loss in losses.items()}
    means['mean_q'] = seen.known_mean(q)
    means.update({name: tf.reduce_mean(mpo.positive(dual))
                  for name, dual in self._duals.items()})
    means['entropy'] = tf.reduce_mean(
        heads.policy_of(self.agent.head, params).entropy())
    return base.Loss(base.with_memory(losses, self.agent), {}, means,
                     seen.errors(q_learning.mean_errors(q, y)))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the targets, projects the duals, ends the warm-up."""
    del groups
    base.follow_if_due(self._settings, progress, self._target, self._critics)
    for dual in self._duals.values():
      dual.assign(mpo.projected_dual(dual))
    self.agent.set_epsilon(0.0)

  def _discrete(self, seen: batches.Experience, logits: tf.Tensor
                ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the value of o', the policy's loss, the duals' loss."""
    logits_t, next_logits_t = map(self._target.model.params, seen.target)
    q_t, next_q_t = (q_learning.smallest(self._critics.target_values(x))
                     for x in seen.target)
    value_t = q_learning.expected_values(next_q_t, next_logits_t)
    q_t, log_priors, log_probs = map(tf.transpose, (
        q_t, tf.nn.log_softmax(logits_t), tf.nn.log_softmax(logits)))
    action_weights, duals_loss = self._e_step(
        q_t, 'temperature', self._settings.epsilon_temperature, log_priors)
    penalty, multiplier_loss = mpo.kl_losses(
        mpo.categorical_kls(logits, logits_t),
        mpo.positive(self._duals['mean_multipliers']),
        self._settings.epsilon_mean)
    policy_loss = mpo.policy_loss(
        _weighted(action_weights, seen.weights), log_probs)
    return value_t, policy_loss + penalty, duals_loss + multiplier_loss

  def _continuous(self, seen: batches.Experience, params: tf.Tensor,
                  seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the results of `_discrete`, for samples of the target policy."""
    settings = self._settings
    seeds = tf.random.experimental.stateless_split(seed, 2)
    num_samples = settings.num_samples
    target, actions, q_t = self._samples(
        seen.target.now, num_samples, seeds[0])
    # A mean needs fewer samples than a policy.
    _, _, next_q_t = self._samples(
        seen.target.next, -(-num_samples // 4), seeds[1])
    value_t = tf.reduce_mean(next_q_t, axis=0)
    action_weights, duals_loss = self._e_step(
        q_t, 'temperature', settings.epsilon_temperature)
    bounds_weights, bounds_loss = self._e_step(
        mpo.out_of_bounds_costs(actions), 'bounds_temperature',
        settings.epsilon_bounds)
    action_weights = _weighted(
        action_weights + bounds_weights, seen.weights)
    duals_loss += bounds_loss
    online = distributions.normal(params)
    policy_loss = tf.add_n([
        mpo.policy_loss(action_weights, half.log_prob(actions))
        for half in mpo.decoupled_policies(online, target)])
    for name, kls, epsilon in zip(
        ('mean_multipliers', 'scale_multipliers'),
        mpo.gaussian_kls(online, target),
        (settings.epsilon_mean, settings.epsilon_scale), strict=True):
      penalty, multiplier_loss = mpo.kl_losses(
          kls, mpo.positive(self._duals[name]), epsilon)
      policy_loss += penalty
      duals_loss += multiplier_loss
    return value_t, policy_loss, duals_loss

  def _e_step(self, q_t: tf.Tensor, name: str, epsilon: float,
              log_priors: tf.Tensor | None = None
              ) -> tuple[tf.Tensor, tf.Tensor | float]:
    """Returns the action weights and the loss of the temperature `name`."""
    if self._settings.exact_temperature:
      temperature = mpo.exact_temperature(q_t, epsilon, log_priors)
      return mpo.action_weights(q_t, temperature, log_priors), 0.0
    temperature = mpo.positive(self._duals[name])
    return (mpo.action_weights(q_t, temperature, log_priors),
            mpo.temperature_loss(q_t, temperature, epsilon, log_priors))

  def _samples(
      self, observation: structs.Nest, num_samples: int, seed: tf.Tensor
  ) -> tuple[distributions.Normal, tf.Tensor, tf.Tensor]:
    """Returns the target policy, `M` actions for each observation, and values.

    Actions are `[M, B, N]`, their smallest target values `[M, B]`.
    """
    target = distributions.normal(self._target.model.params(observation))
    actions = tf.stop_gradient(target.sample(seed, num_samples))
    q_t = q_learning.smallest(self._critics.target_values(
        observation,
        tf.reshape(tf.clip_by_value(actions, -1.0, 1.0),
                   [-1, actions.shape[-1]])))
    return target, actions, tf.reshape(q_t, tf.shape(actions)[:2])


def make_head(spec: structs.ActionSpec,
              settings: sections.OffPolicySettings) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for unfit actions."""
  if not spec.size:
    base.discrete_actions(spec, 'mpo')
  return heads.policy(
      spec, squashed=False, initial_scale=settings.initial_scale)


def _weighted(action_weights: tf.Tensor,
              importance_weights: tf.Tensor | None) -> tf.Tensor:
  if importance_weights is None:
    return action_weights
  return action_weights * importance_weights


def _inverse_softplus(values: np.ndarray) -> np.ndarray:
  return values + np.log(-np.expm1(-values))
