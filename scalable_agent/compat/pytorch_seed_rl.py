# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace and the losses of pytorch_seed_rl (`functional.vtrace`, `.loss`).

Names, order of arguments and fields are pytorch_seed_rl's: values and bootstrap
value come before the actions, and the spelling is `behavior`. Results equal the
results of `scalable_agent.vtrace` and `scalable_agent.losses.actor_critic`.

Differences from the original:

- The documentation of the original says that `discounts` are discounted
  rewards. In fact, `discounts` are the discounts of the steps, 0 where the step
  ended an episode.
- Ranks and shapes are checked. The original broadcasts, even a bootstrap value
  of another shape.
- Actions of `from_logits` are integers. The original rounds floats down.
- Results are float64 if the target logits are float64, and float32 otherwise.

Row `t` of all arguments belongs to one observation: `target_policy_logits[t]`,
`values[t]`, `behavior_policy_logits[t]` and `actions[t]` are computed from the
observation; `rewards[t]` and `discounts[t]` are the results of the action. A
test: with equal weights of both policies `log_rhos` are 0. The original's
learner breaks this rule. The actors store an observation with the next action
and its logits; the learner takes both for the action and the logits that led to
the observation. The original's unrolls also do not overlap by a step, unlike
those of SEED RL and IMPALA: the transition between two unrolls is never
learned.

`T` is the number of time steps, `B` the batch size, `A` the number of actions.
"""

from typing import NamedTuple, TypeAlias

from scalable_agent import vtrace
from scalable_agent.losses import actor_critic
from scalable_agent.networks import distributions
import tensorflow as tf

TensorLike: TypeAlias = vtrace.TensorLike


class VTraceFromLogitsReturns(NamedTuple):
  """The fields of `vtrace.VTraceFromLogitsReturns`, all `[T, B]`."""
  vs: tf.Tensor
  pg_advantages: tf.Tensor
  log_rhos: tf.Tensor
  behavior_action_log_probs: tf.Tensor
  target_action_log_probs: tf.Tensor


def entropy(logits: TensorLike) -> tf.Tensor:
  """Returns *minus* the sum of the entropies: a loss with a positive factor.

  `logits` are `[..., A]`, unnormalised log-probabilities.
  """
  return -tf.reduce_sum(distributions.categorical(_floats(logits)).entropy())


def policy_gradient(logits: TensorLike, actions: TensorLike,
                    advantages: TensorLike) -> tf.Tensor:
  """Returns the scalar `sum(-log pi(a) * advantage)`.

  Args:
    logits: `[T, B, A]`, unnormalised log-probabilities.
    actions: `[T, B]`, in `[0, A)`.
    advantages: `[T, B]`; no gradient flows through.
  """
  logits = _floats(logits)
  actions = tf.cast(actions, tf.int64)
  advantages = tf.cast(_floats(advantages), logits.dtype)
  if not advantages.shape.is_compatible_with(actions.shape):
    raise ValueError(f'advantages: Shape {advantages.shape} does not fit shape '
                     f'{actions.shape} of actions')
  return actor_critic.compute_policy_gradient_loss(
      distributions.categorical(logits).log_prob(actions), advantages)


def from_logits(
    behavior_policy_logits: TensorLike,
    target_policy_logits: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    actions: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    clip_rho_threshold: TensorLike | None = 1.0,
    clip_pg_rho_threshold: TensorLike | None = 1.0
) -> VTraceFromLogitsReturns:
  """Computes V-trace for softmax policies.

  No gradient flows through the first two fields of the result.

  Args:
    behavior_policy_logits: `[T, B, A]`, logits of the policy that acted.
    target_policy_logits: `[T, B, A]`, logits of the policy that learns.
    values: `[T, B]`, baseline under the target policy.
    bootstrap_value: `[B]`, baseline after the last step.
    actions: integers in `[0, A)`, `[T, B]`.
    discounts: `[T, B]`, 0 where the step ended an episode.
    rewards: `[T, B]`, rewards of the actions.
    clip_rho_threshold: scalar, or None for no clipping.
    clip_pg_rho_threshold: scalar, or None for no clipping.

  Raises:
    ValueError, tf.errors.InvalidArgumentError: as `vtrace.from_logits`.
  """
  target_policy_logits = tf.convert_to_tensor(target_policy_logits)
  is_float64 = target_policy_logits.dtype == tf.float64
  return VTraceFromLogitsReturns(*vtrace.from_logits(
      behavior_policy_logits, target_policy_logits, actions, discounts,
      rewards, values, bootstrap_value,
      clip_rho_threshold=clip_rho_threshold,
      clip_pg_rho_threshold=clip_pg_rho_threshold,
      dtype=tf.float64 if is_float64 else tf.float32))


def _floats(values: TensorLike) -> tf.Tensor:
  """Returns a tensor of floats: float32 if the values are no floats."""
  is_hinted = not hasattr(values, 'dtype')
  tensor = tf.convert_to_tensor(
      values, dtype_hint=tf.float32 if is_hinted else None)
  return tensor if tensor.dtype.is_floating else tf.cast(tensor, tf.float32)
