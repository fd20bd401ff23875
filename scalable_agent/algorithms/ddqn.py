# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DDQN: deep Q-learning with double Q-learning, for discrete actions.

Sources: Mnih et al. 2015 (DQN), van Hasselt et al. 2016 (arXiv 1509.06461),
Wang et al. 2016 (arXiv 1511.06581, dueling networks).

    y = r + discount * Q_target(o', argmax_a Q(o', a))
    loss = mean(w * (Q(o, a) - y)^2 / 2)

With `--value_rescaling`, networks learn `h(Q)` for a concave function `h`:
`y = h(r + discount * h^-1(Q_target))`, see `q_learning.rescaled`.

The agent takes the best action, or a random action with probability epsilon:
the same in all environments, or with `--exploration_ladder` a constant of each
environment (Horgan et al. 2018, arXiv 1803.00933, Ape-X).

An agent with an LSTM learns from sequences (Kapturowski et al. 2019, R2D2), see
`batches.experience`.
"""

from collections.abc import Collection

from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import batches
from scalable_agent.losses import q_learning
from scalable_agent.networks import heads
from scalable_agent.settings import sections
import tensorflow as tf


class Ddqn(base.Algorithm):
  """The only group is `agent`."""

  def __init__(self, make_agent: base.MakeAgent,
               settings: sections.OffPolicySettings, exploration_frames: float):
    """Makes the algorithm for an agent with the head of `make_head`.

    A linear epsilon falls over `exploration_frames` environment frames.
    """
    self.agent = make_agent()
    self.groups: dict[str, list[tf.Variable]] = {
        'agent': self.agent.trainable_variables}
    self._target = base.Target(make_agent(), self.agent)
    self.targets: list[tf.Variable] = list(self._target.variables)
    self._settings = settings
    self._exploration_frames = exploration_frames

  def loss(self, data: structs.Transition | structs.Sequence,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the loss of transitions or sequences, without randomness."""
    del groups, seed
    settings = self._settings
    seen = batches.experience(
        self.agent, self._target.model, data, importance_weights)
    target_q_t = self._target.model.params(seen.target.next)
    selector_q_t = (self.agent.params(seen.policy.next)
                    if settings.double_q else target_q_t)
    value_t = q_learning.greedy_values(target_q_t, selector_q_t)
    if settings.value_rescaling:
      y = q_learning.rescaled(q_learning.td_targets(
          seen.reward, seen.discount, q_learning.not_rescaled(value_t)))
    else:
      y = q_learning.td_targets(seen.reward, seen.discount, value_t)
    q = seen.known_values(q_learning.chosen_values(
        self.agent.params(seen.critic.now), seen.action))[tf.newaxis]
    loss = q_learning.critic_loss(
        q, y, seen.critic_weights, settings.huber_delta or None)
    value = q_learning.not_rescaled(q) if settings.value_rescaling else q
    means = {'critic_loss': loss, 'mean_q': seen.known_mean(value)}
    if not settings.exploration_ladder:
      means['epsilon'] = tf.identity(self.agent.epsilon)
    return base.Loss({'agent': loss}, {}, means,
                     seen.errors(q_learning.mean_errors(q, y)))

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the target and lowers epsilon."""
    del groups
    base.follow_if_due(self._settings, progress, self._target)
    self.agent.set_epsilon(self._epsilon(progress))

  def _epsilon(self, progress: base.Progress) -> float | tf.Tensor:
    """Returns the next epsilon; 0 if environments have their own."""
    settings = self._settings
    if settings.exploration_ladder:
      return 0.0
    if settings.exploration_decay:
      # During the warm-up, epsilon is 1.
      epsilon = tf.where(progress.num_updates == 1,
                         settings.exploration_epsilon_begin, self.agent.epsilon)
      return tf.maximum(epsilon * settings.exploration_decay,
                        settings.exploration_epsilon_end)
    share = tf.minimum(tf.cast(progress.num_env_frames, tf.float32)
                       / max(self._exploration_frames, 1.0), 1.0)
    return (settings.exploration_epsilon_begin * (1.0 - share)
            + settings.exploration_epsilon_end * share)


def make_head(spec: structs.ActionSpec) -> heads.Head:
  """Returns the agent's head; raises `ConfigError` for unfit actions."""
  return heads.q_values(base.discrete_actions(spec, 'ddqn'))
