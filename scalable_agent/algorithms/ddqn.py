# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DDQN: deep Q-learning with double Q-learning, for discrete actions.

Sources: Mnih et al. 2015 (DQN), van Hasselt et al. 2016 (arXiv 1509.06461),
Wang et al. 2016 (arXiv 1511.06581, dueling networks).

    y = r + discount * Q_target(o', argmax_a Q(o', a))
    loss = mean(w * (Q(o, a) - y)^2 / 2)

The agent takes the best action, but with probability epsilon a random one.
"""

from collections.abc import Callable, Collection

from scalable_agent import agents
from scalable_agent import config
from scalable_agent import heads
from scalable_agent import q_losses
from scalable_agent import structs
from scalable_agent.algorithms import base
import tensorflow as tf


class Ddqn:
  """Implements `base.Algorithm` with the group `agent`."""

  def __init__(self, make_agent: Callable[[], agents.Agent],
               settings: config.OffPolicySettings, exploration_frames: float):
    """Makes the algorithm.

    Args:
      make_agent: makes an agent with the head of this module.
      settings: double Q-learning, Huber loss, exploration, targets.
      exploration_frames: environment frames in which epsilon falls.
    """
    self.agent = make_agent()
    self.groups: dict[str, list[tf.Variable]] = {
        'agent': self.agent.trainable_variables}
    self.delayed: tuple[str, ...] = ()
    self.delay = 1
    self._target = base.Target(make_agent(), self.agent)
    self.targets: list[tf.Variable] = list(self._target.variables)
    self._settings = settings
    self._exploration_frames = exploration_frames

  def loss(self, data: structs.Transition, weights: tf.Tensor | None,
           groups: Collection[str], seed: tf.Tensor) -> base.Loss:
    """Computes the loss of transitions; nothing here is random."""
    del groups, seed
    target_q_t = self._target.model.params(data.next_observation)
    selector_q_t = (self.agent.params(data.next_observation)
                    if self._settings.double_q else target_q_t)
    y = q_losses.td_targets(data.reward, data.discount, q_losses.greedy_values(
        target_q_t, selector_q_t))
    q = q_losses.chosen_values(
        self.agent.params(data.observation), data.action)[tf.newaxis]
    loss = q_losses.critic_loss(
        q, y, weights, self._settings.huber_delta or None)
    means = {'critic_loss': loss, 'mean_q': tf.reduce_mean(q)}
    return base.Loss({'agent': loss}, {}, means, q_losses.mean_errors(q, y))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the target and lowers epsilon."""
    del groups
    settings = self._settings
    self._target.follow(q_losses.periodic_rate(
        settings.target_update_rate, settings.target_update_period,
        progress.num_updates))
    self.agent.set_epsilon(self._epsilon(progress))

  def _epsilon(self, progress):
    """Returns the next epsilon."""
    settings = self._settings
    if settings.exploration_decay:
      # During the warm-up it was 1.
      epsilon = tf.where(progress.num_updates == 1,
                         settings.exploration_epsilon_begin, self.agent.epsilon)
      return tf.maximum(epsilon * settings.exploration_decay,
                        settings.exploration_epsilon_end)
    share = tf.minimum(tf.cast(progress.num_env_frames, tf.float32)
                       / max(self._exploration_frames, 1.0), 1.0)
    return (settings.exploration_epsilon_begin * (1.0 - share)
            + settings.exploration_epsilon_end * share)


def make_head(spec: structs.ActionSpec) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for other actions."""
  return heads.q_values(base.discrete_actions(spec, 'ddqn'))
