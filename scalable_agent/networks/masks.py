# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Masks of discrete actions, the part `action_mask` of observations.

A mask is bool `[..., P]`, True for the valid values of an action: `P` is the
number of actions, or for actions of several parts the sum over the parts, in
their order. The networks do not see masks. An agent lowers the logits, or the
Q-values, of invalid actions so far that probabilities and gradients are 0.
"""

from collections.abc import Mapping

from scalable_agent.experience import nests
import tensorflow as tf

NAME = nests.MASK
# Far below all logits and Q-values, but finite: 0 * -inf would be NaN.
_INVALID = -1e20


def of(observation: object) -> tf.Tensor | None:
  """Returns the mask in an observation, or its spec; None without a mask.

  Agents of older versions saw an `action_mask` of numbers as an observation.
  """
  part = observation.get(NAME) if isinstance(observation, Mapping) else None
  return part if part is not None and part.dtype == bool else None


def masked(params: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
  """Returns logits or Q-values `[..., P]`, lowered for invalid actions."""
  if mask is None:
    return params
  return tf.where(mask, params, tf.constant(_INVALID, params.dtype))


def num_valid(mask: tf.Tensor) -> tf.Tensor:
  """Returns the numbers of valid actions, float32 `[...]`, at least 1.

  A mask without valid actions belongs to the end of an episode.
  """
  return tf.maximum(tf.reduce_sum(tf.cast(mask, tf.float32), axis=-1), 1.0)
