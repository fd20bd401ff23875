# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA's loss: V-trace actor-critic (Espeholt et al. 2018, section 4.2)."""

import dataclasses
from typing import Any, Dict, Tuple

from scalable_agent import losses
from scalable_agent import structs
from scalable_agent import vtrace
import tensorflow as tf
import tree


@dataclasses.dataclass(frozen=True)
class Impala:
  """The loss of IMPALA.

  Attributes:
    discounting: discount per agent step.
    baseline_cost: weight of the baseline loss (on top of its factor 0.5).
    entropy_cost: weight of the entropy loss.
    reward_clipping: `abs_one` or `soft_asymmetric`.
  """
  discounting: float
  baseline_cost: float
  entropy_cost: float
  reward_clipping: str

  def loss(self, agent: Any, batch: structs.ActorOutput
           ) -> Tuple[tf.Tensor, Dict[str, tf.Tensor], Dict[str, tf.Tensor]]:
    """Computes the loss of a batch, summed over time and batch.

    Args:
      agent: the agent that learns.
      batch: `ActorOutput` of `[T + 1, B, ...]`, `agent_state` of `[B, ...]`.

    Returns:
      The scalar loss, and scalars that describe it, by name: first sums, among
      them `total_loss`, then means over time and batch.
    """
    learner_outputs, _ = agent.unroll(
        batch.agent_outputs.action, batch.env_outputs, batch.agent_state)
    bootstrap_value = learner_outputs.baseline[-1]

    # Entry t + 1 holds the action that was chosen at observation t, its reward
    # and whether it ended the episode; entry t of the learner's outputs is
    # about observation t.
    behaviour = tree.map_structure(lambda t: t[1:], batch.agent_outputs)
    rewards = losses.clip_rewards(
        batch.env_outputs.reward[1:], self.reward_clipping)
    done = batch.env_outputs.done[1:]
    policy_logits = learner_outputs.policy_logits[:-1]
    baseline = learner_outputs.baseline[:-1]
    discounts = tf.cast(~done, tf.float32) * self.discounting
    # What a time limit cut off stands behind the last reward: the discount
    # there is 0, so nothing of the next episode comes in.
    rewards += self.discounting * batch.truncation_values[1:]

    returns = vtrace.from_logits(
        behaviour_policy_logits=behaviour.policy_logits,
        target_policy_logits=policy_logits,
        actions=behaviour.action,
        discounts=discounts,
        rewards=rewards,
        values=baseline,
        bootstrap_value=bootstrap_value)

    policy_loss = losses.compute_policy_gradient_loss(
        policy_logits, behaviour.action, returns.pg_advantages)
    baseline_loss = losses.compute_baseline_loss(returns.vs - baseline)
    entropy_loss = losses.compute_entropy_loss(policy_logits)
    total_loss = (policy_loss + self.baseline_cost * baseline_loss
                  + self.entropy_cost * entropy_loss)
    sums = {
        'total_loss': total_loss,
        'policy_loss': policy_loss,
        'baseline_loss': baseline_loss,
        'entropy_loss': entropy_loss,
    }
    means = {
        'entropy': -entropy_loss / tf.cast(tf.size(rewards), tf.float32),
        'mean_baseline': tf.reduce_mean(baseline),
        'mean_log_rho': tf.reduce_mean(returns.log_rhos),
    }
    return total_loss, sums, means
