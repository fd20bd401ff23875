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
from scalable_agent.losses import q_learning
from scalable_agent.networks import heads
from scalable_agent.settings import declare
from scalable_agent.settings import sections
import tensorflow as tf


class Td3:
  """Implements `base.Algorithm` with the groups `critic` and `policy`."""

  def __init__(self, make_agent: base.MakeAgent, make_critic: base.MakeCritic,
               settings: sections.OffPolicySettings):
    self.agent = make_agent()
    self._critics = base.Critics(
        make_critic, declare.used(settings.num_critics))
    self.groups: dict[str, list[tf.Variable]] = {
        'critic': self._critics.variables,
        'policy': self.agent.trainable_variables}
    self.delayed: tuple[str, ...] = ('policy',)
    self.delay = settings.policy_delay
    self._target = base.Target(make_agent(), self.agent)
    self.targets: list[tf.Variable] = [
        *self._target.variables, *self._critics.targets]
    self._settings = settings

  def loss(self, data: structs.Transition,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the losses of transitions."""
    settings = self._settings
    action_t = tf.tanh(self._target.model.params(data.next_observation))
    noise = settings.target_noise * tf.random.stateless_normal(
        tf.shape(action_t), seed)
    action_t = q_learning.smoothed_actions(
        action_t, noise, settings.target_noise_clip)
    y = q_learning.td_targets(data.reward, data.discount, q_learning.smallest(
        self._critics.target_values(data.next_observation, action_t)))
    q = self._critics.values(data.observation, data.action)
    losses = {'critic': q_learning.critic_loss(q, y, importance_weights)}
    if 'policy' in groups:
      action = tf.tanh(self.agent.params(data.observation))
      losses['policy'] = q_learning.deterministic_policy_loss(
          self._critics.first(data.observation, action), importance_weights)
    means = {f'{group}_loss': loss for group, loss in losses.items()}
    means['mean_q'] = tf.reduce_mean(q)
    return base.Loss(losses, {}, means, q_learning.mean_errors(
        q_learning.smallest(q)[tf.newaxis], y))

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
