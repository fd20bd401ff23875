# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Critics: values of actions, for the off-policy algorithms."""

from collections.abc import Sequence

from scalable_agent.experience import structs
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import torsos
import tensorflow as tf


class Critic(tf.keras.Model):
  """Values of actions: `Q(o, a)`, or `Q(o, .)` for discrete actions."""

  def __init__(self, torso: tf.keras.layers.Layer,
               values: tf.keras.layers.Layer):
    """Makes a critic of layers; most callers want `make_critic`.

    Args:
      torso: maps observations, or pairs of observation and action, `[N, ...]`
        to features `[N, F]`.
      values: maps features to values.
    """
    super().__init__()
    self._torso = torso
    self._values = values

  def call(self, observations: structs.Nest,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes values.

    Args:
      observations: nest of `[N, ...]`.
      actions: float32 `[N, ...]`, continuous; None for discrete actions.

    Returns:
      float32 `[N]`; for discrete actions `[N, A]`.
    """
    seen, _ = instructions.split(observations)
    if actions is None:
      return self._values(tf.cast(self._torso(seen), tf.float32))
    features = self._torso(seen, actions)
    return self._values(tf.cast(features, tf.float32))[:, 0]


def make_critic(network: str, observation_spec: structs.ObservationSpec,
                action_spec: structs.ActionSpec, *,
                hidden_sizes: Sequence[int], activation: str, seed: int,
                layer_norm: bool = False) -> Critic:
  """Makes a critic with all its variables, see `agents.make_agent`.

  For discrete actions of one part, the critic returns the values of all
  actions; for continuous actions, the value of a given action.
  """
  observation_spec, _ = instructions.split(observation_spec)
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  num_values = 1 if action_spec.size else action_spec.num_values[0]
  critic = Critic(
      torsos.make(
          network, observation_spec, initializer_seed,
          torsos.MLPTorso(
              hidden_sizes, activation, initializer_seed, layer_norm),
          with_actions=bool(action_spec.size)),
      tf.keras.layers.Dense(
          num_values, dtype='float32', kernel_initializer=(
              layers.FanInTruncatedNormal(initializer_seed))))
  actions = tf.zeros([1, action_spec.size]) if action_spec.size else None
  critic(torsos.zeros([1], observation_spec), actions)
  return critic
