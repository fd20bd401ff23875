# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Slow ground truths in NumPy that several tests compare with."""

import functools

import numpy as np


def log_softmax(logits):
  """Returns the logarithms of the probabilities, `[..., A]`."""
  return logits - np.log(np.sum(np.exp(logits), -1, keepdims=True))


def pick(values, actions):
  """Returns the values `[...]` of actions `[...]` from all, `[..., A]`."""
  return np.take_along_axis(values, actions[..., None], -1)[..., 0]


def slopes(arrays, loss, step=1e-6):
  """Returns the gradients of `loss(arrays)` by central differences."""
  gradients = []
  for i, array in enumerate(arrays):
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
      found = []
      for sign in (1, -1):
        changed = [np.copy(x) for x in arrays]
        changed[i][index] += sign * step
        found.append(loss(changed))
      gradient[index] = (found[0] - found[1]) / (2 * step)
    gradients.append(gradient)
  return gradients


@functools.cache
def area_weights(size, new_size):
  """Returns the share of each of `size` pixels in each new one.

  The shape is `[new_size, size]`; by the definition of area averaging.
  """
  edges = np.linspace(0, size, new_size + 1)
  pixels = np.arange(size)
  overlaps = (np.minimum(edges[1:, None], pixels + 1)
              - np.maximum(edges[:-1, None], pixels))
  weights = np.clip(overlaps, 0, None)
  return weights / weights.sum(axis=1, keepdims=True)
