# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Heads: what the last numbers of an agent's network mean for its actions.

A head turns `P` parameters `[..., P]` into a distribution of actions. `N` is
the number of parts of an action. Discrete actions are int32. Continuous ones
are float32 within [-1, 1], except for those of a Gaussian that is not squashed,
which environments and replays clip.
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

    Args:
      seed: integers `[2]`. The same seed gives the same actions.
    """

  def mode(self) -> tf.Tensor:
    """Returns the best known actions, as `sample` but without exploration."""


class Policy(Actions, Protocol):
  """Actions with probabilities, or densities."""

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the logarithms of probabilities or densities, float32 `[...]`.

    Args:
      actions: `[..., *action_shape]`.
    """

  def entropy(self) -> tf.Tensor:
    """Returns the entropies, float32 `[...]`."""


class Head(NamedTuple):
  """How parameters become actions.

  Attributes:
    num_params: `P`.
    distribution: returns the `Actions` for parameters `[..., P]`, which are a
      `Policy` if the head is from `policy`.
    initial_bias: what the agent's last layer adds to each parameter before
      it has learned. None for zeros.
  """
  num_params: int
  distribution: Callable[[tf.Tensor], Actions]
  initial_bias: tuple[float, ...] | None = None


def policy(action_spec: structs.ActionSpec, squashed: bool = True,
           initial_scale: float = 1.0) -> Head:
  """Returns a head whose actions are those of a `Policy`.

  Args:
    action_spec: discrete actions get a softmax over the values of each part.
      Continuous ones get a Gaussian, whose parameters are means and logarithms
      of standard deviations.
    squashed: whether tanh squashes the Gaussian's actions to [-1, 1]. If not,
      environments and replays clip them.
    initial_scale: about the standard deviation of a Gaussian before the agent
      has learned.
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
  """Returns the policy of a head that `policy` made, for some parameters."""
  return cast(Policy, head.distribution(params))


def q_values(num_actions: int) -> Head:
  """Returns a head whose parameters are the values of discrete actions.

  It takes the action of the highest value. What explores is the agent's
  `epsilon`.

  Args:
    num_actions: the number of discrete actions, which is `P`.
  """
  return Head(num_actions, _Greedy)


def deterministic(size: int, noise: float) -> Head:
  """Returns a head whose action is tanh of the parameters.

  Args:
    size: `N`, which is `P`.
    noise: standard deviation of the Gaussian noise that explores, in units of
      the actions. Each number has noise of its own, and is clipped afterwards.
  """
  return Head(size, functools.partial(_Deterministic, noise=noise))


class _Greedy:
  """The action of the highest value; it does not explore."""

  def __init__(self, values: tf.Tensor):
    self._values = values

  def sample(self, seed: tf.Tensor) -> tf.Tensor:
    del seed
    return self.mode()

  def mode(self) -> tf.Tensor:
    return tf.argmax(self._values, axis=-1, output_type=tf.int32)


class _Deterministic:
  """An action, to which noise is added to explore."""

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
  """Returns uniformly random actions, int32 `[B]` or `[B, N]`.

  Continuous ones are float32 `[B, N]`.

  Args:
    action_spec: the actions.
    batch_size: `B`.
    seed: integers `[2]`.
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
