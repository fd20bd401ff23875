# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DDQN: deep Q-learning with double Q-learning, for discrete actions.

Sources: Mnih et al. 2015 (DQN), van Hasselt et al. 2016 (arXiv 1509.06461),
Wang et al. 2016 (arXiv 1511.06581, dueling networks).

    y = r + discount * Q_target(o', argmax_a Q(o', a))
    loss = mean(w * (Q(o, a) - y)^2 / 2)

The agent takes the best action, or a random action with probability epsilon.

An agent with an LSTM learns from unrolls. The LSTM begins with the state of the
actor. The first steps of an unroll may only update the LSTM's state (burn-in,
Kapturowski et al. 2019, R2D2).
"""

from collections.abc import Collection

from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.losses import actor_critic
from scalable_agent.losses import q_learning
from scalable_agent.networks import agents
from scalable_agent.networks import heads
from scalable_agent.settings import sections
import tensorflow as tf


class Ddqn:
  """Implements `base.Algorithm` with the group `agent`."""

  def __init__(self, make_agent: base.MakeAgent,
               settings: sections.OffPolicySettings, exploration_frames: float):
    """Makes the algorithm for an agent with the head of `make_head`.

    A linear epsilon falls over `exploration_frames` environment frames.
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

  def loss(self, data: structs.Transition | structs.Unroll,
           importance_weights: tf.Tensor | None, groups: Collection[str],
           seed: tf.Tensor) -> base.Loss:
    """Computes the loss of transitions or unrolls, without randomness."""
    del groups, seed
    if isinstance(data, structs.Unroll):
      return self._unroll_loss(data, importance_weights)
    target_q_t = self._target.model.params(data.next_observation)
    selector_q_t = (self.agent.params(data.next_observation)
                    if self._settings.double_q else target_q_t)
    y = q_learning.td_targets(
        data.reward, data.discount,
        q_learning.greedy_values(target_q_t, selector_q_t))
    q = q_learning.chosen_values(
        self.agent.params(data.observation), data.action)[tf.newaxis]
    return self._loss(
        q, y, importance_weights, q_learning.mean_errors(q, y))

  def _loss(self, q: tf.Tensor, y: tf.Tensor,
            importance_weights: tf.Tensor | None,
            errors: tf.Tensor) -> base.Loss:
    loss = q_learning.critic_loss(
        q, y, importance_weights, self._settings.huber_delta or None)
    means = {'critic_loss': loss, 'mean_q': tf.reduce_mean(q),
             'epsilon': tf.identity(self.agent.epsilon)}
    return base.Loss({'agent': loss}, {}, means, errors)

  def _unroll_loss(self, data: structs.Unroll,
                   importance_weights: tf.Tensor | None) -> base.Loss:
    """Computes the loss of the steps of unrolls `[T + 1, B, ...]`."""
    settings = self._settings
    steps, all_q = self._after_burn_in(data, self.agent)
    _, target_q = self._after_burn_in(data, self._target.model)
    env_outputs, agent_outputs, _ = steps
    selector_q = all_q if settings.double_q else target_q
    # Entry t + 1 holds the action that was chosen at observation t, and the
    # result of this action. Time and batch become one axis.
    flat = lambda x: tf.reshape(x, [-1, *x.shape[2:]])
    done, truncated = env_outputs.done[1:], env_outputs.truncated[1:]
    y = q_learning.td_targets(
        flat(actor_critic.clip_rewards(
            env_outputs.reward[1:], settings.reward_clipping)),
        flat(tf.cast(~done, tf.float32) * settings.discounting),
        q_learning.greedy_values(flat(target_q[1:]), flat(selector_q[1:])))
    q = q_learning.chosen_values(
        flat(all_q[:-1]), flat(agent_outputs.action[1:]))[tf.newaxis]
    # Unrolls do not have the observation after a time limit.
    known = tf.cast(~truncated, tf.float32)
    errors = known * tf.reshape(q_learning.mean_errors(q, y), tf.shape(known))
    if importance_weights is not None:
      known *= importance_weights
    return self._loss(q, y, flat(known), (
        0.9 * tf.reduce_max(errors, axis=0)
        + 0.1 * tf.reduce_mean(errors, axis=0)))

  def _after_burn_in(self, data: structs.Unroll, agent: agents.Agent
                     ) -> tuple[structs.Steps, tf.Tensor]:
    """Returns the steps after the burn-in, and the values of all actions."""
    num_steps, state = self._settings.burn_in_steps, data.start.agent_state
    evaluate = lambda steps, state: agent.unroll(
        steps.agent_outputs.action, steps.env_outputs, state)
    if num_steps:
      first = tf.nest.map_structure(lambda x: x[:num_steps], data.steps)
      _, state = evaluate(first, state)
      state = tf.nest.map_structure(tf.stop_gradient, state)
    steps = tf.nest.map_structure(lambda x: x[num_steps:], data.steps)
    outputs, _ = evaluate(steps, state)
    return steps, outputs.policy

  def after_update(self, groups: Collection[str],
                   progress: base.Progress) -> None:
    """Moves the target and lowers epsilon."""
    del groups
    self._target.follow(base.target_rate(self._settings, progress))
    self.agent.set_epsilon(self._epsilon(progress))

  def _epsilon(self, progress: base.Progress) -> tf.Tensor:
    """Returns the next epsilon."""
    settings = self._settings
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
