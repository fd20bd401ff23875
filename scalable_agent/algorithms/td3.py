# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""TD3: a deterministic policy with two critics and a delay.

Source: Fujimoto et al. 2018 (arXiv 1802.09477).

    y = r + discount * min_c Q_target,c(o', clip(pi_target(o') + noise))
    loss of the critics = mean(w * sum_c (Q_c(o, a) - y)^2 / 2)
    loss of the policy = -mean(w * Q_1(o, pi(o)))

The policy learns, and the targets move, in every second update (the delay).
With one critic, and without delay and noise, TD3 is DDPG.
"""

from collections.abc import Collection

from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import batches
from scalable_agent.losses import q_learning
from scalable_agent.networks import heads
from scalable_agent.settings import declare
from scalable_agent.settings import sections
import tensorflow as tf


class Td3(base.Algorithm):
  """Groups `critic`, `policy`, and `memory` with an LSTM."""

  def __init__(self, make_agent: base.MakeAgent, make_critic: base.MakeCritic,
               settings: sections.OffPolicySettings):
    self.agent = make_agent()
    self._critics = base.Critics(
        make_critic, self.agent, declare.used(settings.num_critics))
    self.groups: dict[str, list[tf.Variable]] = {
        **base.memory_group(self.agent),
        'critic': self._critics.variables,
        'policy': self.agent.head_variables}
    self.delayed = ('policy',)
    self.delay = settings.policy_delay
    self._target = base.Target(make_agent(), self.agent)
    self.targets: list[tf.Variable] = [
        *self._target.variables, *self._critics.targets]
    self._settings = settings

  def loss(self, data: structs.Transition | structs.Sequence,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the losses of a batch."""
    settings = self._settings
    seen = batches.experience(
        self.agent, self._target.model, data, importance_weights)
    action_t = tf.tanh(self._target.model.params(seen.target.next))
    noise = settings.target_noise * tf.random.stateless_normal(
        tf.shape(action_t), seed)
    action_t = q_learning.smoothed_actions(
        action_t, noise, settings.target_noise_clip)
    y = q_learning.td_targets(seen.reward, seen.discount, q_learning.smallest(
        self._critics.target_values(seen.target.next, action_t)))
    learned, given = self._critics.inputs(seen.critic.now, seen.policy.now)
    q = self._critics.values(learned, seen.action)
    losses = {'critic': q_learning.critic_loss(q, y, seen.critic_weights)}
    if 'policy' in groups:
      action = tf.tanh(self.agent.params(seen.policy.now))
      losses['policy'] = q_learning.deterministic_policy_loss(
          self._critics.first(given[0], action), seen.weights)
    means = {f'{group}_loss': loss for group, loss in losses.items()}
    means['mean_q'] = seen.known_mean(q)
    errors = q_learning.mean_errors(q_learning.smallest(q)[tf.newaxis], y)
    return base.Loss(base.with_memory(losses, self.agent), {}, means,
                     seen.errors(errors))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the targets if the policy learned; ends the warm-up."""
    del progress
    if 'policy' in groups:
      self._target.follow(self._settings.target_update_rate)
      self._critics.follow(self._settings.target_update_rate)
    self.agent.set_epsilon(0.0)


def make_head(spec: structs.ActionSpec,
              settings: sections.OffPolicySettings) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for unfit actions."""
  return heads.deterministic(base.continuous_actions(spec, 'td3'),
                             settings.exploration_noise)
