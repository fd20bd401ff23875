# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Batches of transitions or sequences, in the form for off-policy losses."""

from collections.abc import Callable
from typing import NamedTuple

from scalable_agent.experience import structs
from scalable_agent.losses import q_learning
from scalable_agent.networks import agents
import tensorflow as tf


class Seen(NamedTuple):
  """Inputs of networks for `N` steps: observations, or features of a memory.

  Attributes:
    now: nest of `[N, ...]`, before the actions.
    next: nest of `[N, ...]`, `k <= n` steps later.
  """
  now: structs.Nest
  next: structs.Nest


class Experience(NamedTuple):
  """`N = B` transitions, or the `N = L * B` learned steps of sequences.

  Attributes:
    policy: input of the policy; no gradient flows to the memory.
    critic: input of the critics.
    target: input of target networks.
    action, reward, discount: `[N, ...]`, as in `structs.Transition`.
    weights: float32 `[N]`, importance weights; None for ones.
    known: float32 `[L, B]`, see `structs.Sequence`; None for transitions.
    entries: nest of `[(L + 1) * B, ...]`, without gradient, of which `policy`
      has some; None for transitions.
    following: int32 `[N]`, the rows of `policy.next` in `entries`.
  """
  policy: Seen
  critic: Seen
  target: Seen
  action: tf.Tensor
  reward: tf.Tensor
  discount: tf.Tensor
  weights: tf.Tensor | None
  known: tf.Tensor | None = None
  entries: structs.Nest | None = None
  following: tf.Tensor | None = None

  @property
  def critic_weights(self) -> tf.Tensor | None:
    """The weights of the critics' loss: 0 for unknown steps."""
    if self.known is None:
      return self.weights
    known = tf.reshape(self.known, [-1])
    return known if self.weights is None else known * self.weights

  def known_values(self, values: tf.Tensor) -> tf.Tensor:
    """Returns values of actions, `[..., N]`: 0 for unknown steps.

    The action of an unknown step may be invalid there, with a value of -1e20.
    """
    if self.known is None:
      return values
    return tf.math.multiply_no_nan(values, tf.reshape(self.known, [-1]))

  def known_mean(self, values: tf.Tensor) -> tf.Tensor:
    """Returns the mean of values `[..., N]` of known steps; 0 without one."""
    if self.known is None:
      return tf.reduce_mean(values)
    return tf.math.divide_no_nan(tf.reduce_mean(self.known_values(values)),
                                 tf.reduce_mean(self.known))

  def params(self, policy: Callable[[structs.Nest], tf.Tensor]) -> Seen:
    """Returns parameters `[N, P]` of a policy, before and after the actions.

    The policy sees each entry of a sequence once.
    """
    if self.entries is None:
      return Seen(policy(self.policy.now), policy(self.policy.next))
    return _seen(policy(self.entries), self.following)

  def errors(self, errors: tf.Tensor) -> tf.Tensor:
    """Returns the errors of the batch, `[B]`, for errors of steps `[N]`."""
    if self.known is None:
      return errors
    return q_learning.sequence_errors(
        tf.reshape(errors, tf.shape(self.known)), self.known)


def experience(agent: agents.Agent, target: agents.Agent,
               data: structs.Transition | structs.Sequence,
               importance_weights: tf.Tensor | None) -> Experience:
  """Returns a batch in the form for losses.

  Both agents evaluate sequences from the stored state on. No gradient flows to
  the entries before the learned ones, the burn-in.
  """
  if isinstance(data, structs.Transition):
    seen = Seen(data.observation, data.next_observation)
    return Experience(seen, seen, seen, data.action, data.reward,
                      data.discount, importance_weights)
  flat = lambda x: tf.reshape(x, [-1, *x.shape[2:]])
  num_steps, size = data.known.shape
  burn_in = data.actions.shape[0] - num_steps - 1
  following = flat(data.next * size + tf.range(size))

  def see(agent: agents.Agent) -> structs.Nest:
    remember = lambda part, state: agent.remember(
        data.actions[part], tf.nest.map_structure(
            lambda x: x[part], data.env_outputs), state)
    state = data.state
    if burn_in:
      _, state = remember(slice(burn_in), state)
      state = _constant(state)
    entries, _ = remember(slice(burn_in, None), state)
    return entries

  entries = see(agent)
  critic = _seen(entries, following)
  return Experience(
      Seen(*map(_constant, critic)), critic, _seen(see(target), following),
      flat(data.actions[burn_in + 1:]), flat(data.reward), flat(data.discount),
      None if importance_weights is None
      else tf.tile(importance_weights, [num_steps]), data.known,
      _constant(entries), following)


def _seen(entries: structs.Nest, following: tf.Tensor) -> Seen:
  """Returns the first `N` entries, and the entries `following`, `[N]`."""
  return Seen(
      tf.nest.map_structure(lambda x: x[:following.shape[0]], entries),
      tf.nest.map_structure(lambda x: tf.gather(x, following), entries))


def _constant(nest: structs.Nest) -> structs.Nest:
  """Returns a nest through which no gradient flows."""
  return tf.nest.map_structure(tf.stop_gradient, nest)
