# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DDPG: a deterministic policy and a critic.

Source: Lillicrap et al. 2016 (arXiv 1509.02971).

    y = r + discount * Q_target(o', pi_target(o'))
    loss of the critic = mean(w * (Q(o, a) - y)^2 / 2)
    loss of the policy = -mean(w * Q(o, pi(o)))
"""

from collections.abc import Collection

from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import batches
from scalable_agent.losses import q_learning
from scalable_agent.networks import heads
from scalable_agent.settings import sections
import tensorflow as tf


class Ddpg(base.Algorithm):
  """Groups `critic`, `policy`, and `memory` with an LSTM."""

  def __init__(self, make_agent: base.MakeAgent, make_critic: base.MakeCritic,
               settings: sections.OffPolicySettings):
    self.agent = make_agent()
    self._critics = base.Critics(make_critic, self.agent, 1)
    self.groups: dict[str, list[tf.Variable]] = {
        **base.memory_group(self.agent),
        'critic': self._critics.variables,
        'policy': self.agent.head_variables}
    self._target = base.Target(make_agent(), self.agent)
    self.targets: list[tf.Variable] = [
        *self._target.variables, *self._critics.targets]
    self._settings = settings

  def loss(self, data: structs.Transition | structs.Sequence,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the losses of a batch, without randomness."""
    del groups, seed
    seen = batches.experience(
        self.agent, self._target.model, data, importance_weights)
    action_t = tf.tanh(self._target.model.params(seen.target.next))
    [value_t] = tf.unstack(
        self._critics.target_values(seen.target.next, action_t))
    y = q_learning.td_targets(seen.reward, seen.discount, value_t)
    learned, given = self._critics.inputs(seen.critic.now, seen.policy.now)
    q = self._critics.values(learned, seen.action)
    action = tf.tanh(self.agent.params(seen.policy.now))
    losses = {
        'critic': q_learning.critic_loss(q, y, seen.critic_weights),
        'policy': q_learning.deterministic_policy_loss(
            self._critics.first(given[0], action), seen.weights)}
    means = {f'{group}_loss': loss for group, loss in losses.items()}
    means['mean_q'] = seen.known_mean(q)
    return base.Loss(base.with_memory(losses, self.agent), {}, means,
                     seen.errors(q_learning.mean_errors(q, y)))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the targets; ends the warm-up."""
    del groups, progress
    self._target.follow(self._settings.target_update_rate)
    self._critics.follow(self._settings.target_update_rate)
    self.agent.set_epsilon(0.0)


def make_head(spec: structs.ActionSpec,
              settings: sections.OffPolicySettings) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for unfit actions."""
  return heads.deterministic(base.continuous_actions(spec, 'ddpg'),
                             settings.exploration_noise)
