# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Critics: values of actions, for observations or features of a memory."""

import collections.abc

from scalable_agent.experience import structs
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import normalisers
import tensorflow as tf


class Critic(tf.keras.Model):
  """Values of actions: `Q(o, a)`, or `Q(o, .)` for discrete actions."""

  def __init__(self, torso: tf.keras.layers.Layer,
               values: tf.keras.layers.Layer,
               observation_normaliser: (
                   normalisers.ObservationNormaliser | None) = None):
    """Makes a critic of layers; most callers want `factory.make_critic`.

    Args:
      torso: maps observations, or pairs of observation and action, to features.
      values: maps features `[N, F]` to values.
      observation_normaliser: that of the agent, no layer of the critic.
    """
    # Observations in bfloat16 would be rounded before their mean is subtracted.
    super().__init__(autocast=False)
    # Keras does not track a method.
    self._normalise = (observation_normaliser.__call__
                       if observation_normaliser else lambda seen: seen)
    self._torso = torso
    self._values = values

  def build(self, unused_input_shape: collections.abc.Sequence[int]) -> None:
    """See `layers.Composite`."""

  def product(self, features: tf.Tensor) -> layers.Product:
    """Returns the input of `call` for features `[N, F]` of a memory."""
    return self._torso.product(features)

  def call(self, observations: structs.Nest,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes values, float32 `[N]`; for discrete actions `[N, A]`.

    Args:
      observations: nest of `[N, ...]`, or with actions the result of `product`.
        With several actions per observation, see `torsos.MLPTorso.call`.
      actions: float32 `[N, ...]`, continuous; None for discrete actions.
    """
    seen = (observations if isinstance(observations, layers.Product) else
            self._normalise(instructions.split(observations)[0]))
    if actions is None:
      return self._values(tf.cast(self._torso(seen), tf.float32))
    return self._values(tf.cast(self._torso(seen, actions), tf.float32))[:, 0]
