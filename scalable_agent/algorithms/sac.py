# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""SAC: a policy with rewards for entropy, and two critics.

Sources: Haarnoja et al. 2018 (arXiv 1812.05905), Christodoulou 2019 (arXiv
1910.07207, discrete actions).

    y = r + discount * (min_c Q_target,c(o', a') - alpha log pi(a' | o'))
    loss of the critics = mean(w * sum_c (Q_c(o, a) - y)^2 / 2)
    loss of the policy = mean(w * (alpha log pi(b | o) - min_c Q_c(o, b)))
    loss of alpha = -mean(w * log alpha * (log pi(b | o) + target entropy))

The actions a' and b are sampled from the policy. With discrete actions, means
over all actions take the place of samples.
"""

from collections.abc import Collection

import numpy as np
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import batches
from scalable_agent.losses import q_learning
from scalable_agent.networks import distributions
from scalable_agent.networks import heads
from scalable_agent.networks import masks
from scalable_agent.settings import declare
from scalable_agent.settings import sections
import tensorflow as tf


class Sac(base.Algorithm):
  """Groups `critic`, `policy`, `temperature`, and `memory` with an LSTM."""

  def __init__(self, make_agent: base.MakeAgent, make_critic: base.MakeCritic,
               settings: sections.OffPolicySettings):
    self.agent = make_agent()
    self._critics = base.Critics(
        make_critic, self.agent, declare.used(settings.num_critics))
    self._log_temperature = tf.Variable(
        np.log(declare.used(settings.initial_temperature)), dtype=tf.float32,
        name='log_temperature')
    self.groups: dict[str, list[tf.Variable]] = {
        **base.memory_group(self.agent),
        'critic': self._critics.variables,
        'policy': self.agent.head_variables,
        'temperature': [self._log_temperature]}
    # The policy has no target, but the memory of the critics has one. The copy
    # of the policy's head is not read; checkpoints have the copy.
    self._target = (base.Target(make_agent(), self.agent)
                    if self.agent.has_memory else None)
    self.targets: list[tf.Variable] = [
        *(self._target.variables if self._target else ()),
        *self._critics.targets]
    self._settings = settings
    spec = self.agent.action_spec
    self._is_discrete = not spec.size
    self._target_entropy = (
        q_learning.discrete_target_entropy(
            spec.num_values[0], settings.target_entropy_ratio)
        if self._is_discrete else
        settings.target_entropy_per_part * spec.size)

  def loss(self, data: structs.Transition | structs.Sequence,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the losses of a batch."""
    del groups
    seen = batches.experience(
        self.agent, self._target.model if self._target else self.agent, data,
        importance_weights)
    temperature = tf.exp(self._log_temperature)
    compute = self._discrete if self._is_discrete else self._continuous
    q, value_t, policy_loss, log_probs = compute(seen, temperature, seed)
    y = q_learning.td_targets(seen.reward, seen.discount, value_t)
    losses = {
        'critic': q_learning.critic_loss(q, y, seen.critic_weights),
        'policy': policy_loss,
        'temperature': q_learning.temperature_loss(
            self._log_temperature, log_probs,
            self._target_entropies(seen.policy.now), seen.weights)}
    means = {f'{group}_loss': loss for group, loss in losses.items()}
    means.update(mean_q=seen.known_mean(q), temperature=temperature,
                 entropy=-tf.reduce_mean(log_probs))
    return base.Loss(base.with_memory(losses, self.agent), {}, means,
                     seen.errors(q_learning.mean_errors(q, y)))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the targets; ends the warm-up."""
    del groups
    base.follow_if_due(self._settings, progress, self._critics,
                       *filter(None, [self._target]))
    self.agent.set_epsilon(0.0)

  def _target_entropies(self, observation: structs.Nest) -> float | tf.Tensor:
    """Returns the target entropy, with a mask `[B]`, for the valid actions."""
    mask = masks.of(observation)
    if mask is None:
      return self._target_entropy
    return self._settings.target_entropy_ratio * tf.math.log(
        masks.num_valid(mask))

  def _continuous(
      self, seen: batches.Experience, temperature: tf.Tensor, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns q, the value of o', the policy's loss, the policy's log-probs."""
    seeds = tf.random.experimental.stateless_split(seed, 2)
    params, params_t = seen.params(self.agent.params)
    learned, given = self._critics.inputs(seen.critic.now, seen.policy.now)
    action_t, log_prob_t = self._sample(params_t, seeds[0])
    value_t = q_learning.soft_values(
        q_learning.smallest(self._critics.target_values(
            seen.target.next, action_t)), log_prob_t, temperature)
    q = self._critics.values(learned, seen.action)
    action, log_prob = self._sample(params, seeds[1])
    policy_loss = q_learning.soft_policy_loss(
        q_learning.smallest(self._critics.values(given, action)),
        log_prob, temperature, seen.weights)
    return q, value_t, policy_loss, log_prob

  def _sample(self, params: tf.Tensor,
              seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return distributions.tanh_normal(params).sample_and_log_prob(seed)

  def _discrete(
      self, seen: batches.Experience, temperature: tf.Tensor,
      unused_seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the results of `_continuous`, as means over the actions."""
    logits, logits_t = seen.params(self.agent.params)
    value_t = q_learning.expected_soft_values(
        q_learning.smallest(self._critics.target_values(seen.target.next)),
        logits_t, temperature)
    learned, _ = self._critics.inputs(seen.critic.now, seen.policy.now)
    all_q = self._critics.values(learned)
    policy_loss = q_learning.expected_soft_policy_loss(
        q_learning.smallest(all_q), logits, temperature, seen.weights)
    return (q_learning.chosen_values(all_q, seen.action), value_t, policy_loss,
            q_learning.negative_entropy(logits))


def make_head(spec: structs.ActionSpec) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for unfit actions."""
  if not spec.size:
    base.discrete_actions(spec, 'sac')
  return heads.policy(spec)
