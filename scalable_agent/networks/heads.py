# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Heads: from the last numbers of an agent's network to actions.

A head turns `P` parameters `[..., P]` into a distribution of actions. `N` is
the number of parts of an action. Discrete actions are int32. Continuous actions
are float32 within [-1, 1]. Only a Gaussian without squashing exceeds these
bounds; environments, replays, loaded agents and exports clip its actions.
"""

from collections.abc import Callable
import functools
import math
from typing import cast, NamedTuple, Protocol

from scalable_agent.experience import structs
from scalable_agent.networks import distributions
import tensorflow as tf


class Actions(Protocol):
  """The actions of a head for some parameters."""

  def sample(self, seed: tf.Tensor) -> tf.Tensor:
    """Returns actions that explore, `[..., *action_shape]`.

    The same seed, integers `[2]`, gives the same actions.
    """

  def mode(self) -> tf.Tensor:
    """Returns the best known actions, in the form of `sample`."""


class Policy(Actions, Protocol):
  """Actions with probabilities, or densities."""

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the logarithms of probabilities or densities, float32 `[...]`."""

  def entropy(self) -> tf.Tensor:
    """Returns the entropies, float32 `[...]`."""

  def kl(self, other: 'Policy') -> tf.Tensor:
    """Returns KL(this, other), float32 `[...]`, for `other` of this head."""


class Head(NamedTuple):
  """A distribution of actions for the parameters of a network.

  Attributes:
    num_params: `P`.
    distribution: returns the `Actions` for parameters `[..., P]`; a `Policy` if
      the head is from `policy`.
    initial_bias: `P` biases of the agent's last layer; None for zeros.
  """
  num_params: int
  distribution: Callable[[tf.Tensor], Actions]
  initial_bias: tuple[float, ...] | None = None


def policy(action_spec: structs.ActionSpec, squashed: bool = True,
           initial_scale: float = 1.0) -> Head:
  """Returns a head whose distributions are `Policy`s.

  Discrete actions get a softmax over the values of each part, continuous
  actions a Gaussian, whose parameters are means and logarithms of standard
  deviations, at first about `initial_scale`. If `squashed`, tanh squashes the
  Gaussian's actions to [-1, 1]. If not, environments and replays clip actions.
  """
  if action_spec.size:
    size = action_spec.size
    return Head(
        2 * size, distributions.tanh_normal if squashed
        else distributions.normal,
        (0.0,) * size + (math.log(initial_scale),) * size)
  if len(action_spec.num_values) == 1:
    return Head(action_spec.num_values[0], distributions.categorical)
  return Head(sum(action_spec.num_values), functools.partial(
      distributions.multi_categorical, num_actions=action_spec.num_values))


def policy_of(head: Head, params: tf.Tensor) -> Policy:
  """Returns the policy of a head from `policy`, for some parameters."""
  return cast(Policy, head.distribution(params))


def q_values(num_actions: int) -> Head:
  """Returns a head that takes the discrete action of the highest value.

  The parameters are the values. Exploration is left to the agent's `epsilon`.
  """
  return Head(num_actions, _Greedy)


def deterministic(size: int, noise: float) -> Head:
  """Returns a head whose action, of `size` parts, is tanh of the parameters.

  `noise` is the standard deviation of the Gaussian noise that explores, in
  units of the actions. The noise of the parts is independent. Sums are clipped.
  """
  return Head(size, functools.partial(_Deterministic, noise=noise))


class _Greedy:
  """The action of the highest value, without exploration."""

  def __init__(self, values: tf.Tensor):
    self._values = values

  def sample(self, seed: tf.Tensor) -> tf.Tensor:
    del seed
    return self.mode()

  def mode(self) -> tf.Tensor:
    return tf.argmax(self._values, axis=-1, output_type=tf.int32)


class _Deterministic:
  """An action, with added noise for exploration."""

  def __init__(self, params: tf.Tensor, noise: float):
    self._action = tf.tanh(params)
    self._noise = noise

  def sample(self, seed: tf.Tensor) -> tf.Tensor:
    noise = self._noise * tf.random.stateless_normal(
        tf.shape(self._action), seed)
    return tf.clip_by_value(self._action + noise, -1.0, 1.0)

  def mode(self) -> tf.Tensor:
    return self._action


def uniform_actions(action_spec: structs.ActionSpec, batch_size: tf.Tensor,
                    seed: tf.Tensor) -> tf.Tensor:
  """Returns uniformly random actions.

  Discrete actions are int32 `[B]` or `[B, N]`, continuous actions float32
  `[B, N]`. The seed is integers `[2]`.
  """
  if action_spec.size:
    return tf.random.stateless_uniform(
        [batch_size, action_spec.size], seed, -1.0, 1.0)
  uniform = tf.random.stateless_uniform(
      [batch_size, len(action_spec.num_values)], seed)
  num_values = tf.constant(action_spec.num_values, tf.int32)
  actions = tf.cast(uniform * tf.cast(num_values, tf.float32), tf.int32)
  # Rounding can turn 0.99999997 * n into n.
  actions = tf.minimum(actions, num_values - 1)
  return actions[:, 0] if len(action_spec.num_values) == 1 else actions
