# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Policies as distributions, made of the outputs of a network.

Each function takes parameters `[..., P]`, where `...` are any batch axes, e.g.
`[T, B]`, and returns an object with

    log_prob(actions)   `[...]`, logarithm of the probability or the density
    entropy()           `[...]`
    mode()              the actions of the policy without exploration
    sample(seed=None)   random actions, an independent one per batch element

The parts of one action are independent of each other. Their log-probs and
entropies are summed, so `vtrace.from_action_log_probs` can take the log-probs
of all these policies. Results have the type of the parameters, float32 or
float64. A seed is a pair of integers; without one, each call gives other
actions. `log_prob` broadcasts actions as TensorFlow Probability does;
`tanh_normal`'s does not.

`N` is the number of parts of an action, `A` the number of discrete actions.

This module takes seconds to import, because it needs TensorFlow Probability.
Softmax policies do not need it: see `vtrace.from_logits` and `losses`.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow_probability import distributions as tfd

# A pair of integers, or any other seed of TensorFlow Probability.
Seed = Sequence[int] | None

# As in Spinning Up and PyTorchRL: from e^-20 to e^2, about 2e-9 to 7.4.
_MIN_LOG_SCALE, _MAX_LOG_SCALE = -20.0, 2.0

# From here to the bound, all squashed actions are taken as one interval.
_TAIL = 0.999

# The trapezoidal rule for expectations under the standard normal distribution.
# Its errors are 2e-8 for narrow policies and 3e-4 for the widest. Gauss-Hermite
# with 64 nodes is exact for narrow ones, but its error is 0.02 for the widest.
_NODES = np.linspace(-6.0, 6.0, 64)
_WEIGHTS = np.exp(-0.5 * _NODES ** 2) / np.sum(np.exp(-0.5 * _NODES ** 2))


def categorical(logits: tf.Tensor) -> tfd.Distribution:
  """Returns a softmax policy over discrete actions.

  Args:
    logits: `[..., A]`, unnormalised log-probabilities.

  Returns:
    A distribution of int32 `[...]` in `[0, A)`. On a CPU its `log_prob` raises
    `tf.errors.InvalidArgumentError` if an action is out of range.
  """
  return tfd.Categorical(logits=logits, dtype=tf.int32)


def multi_categorical(logits: tf.Tensor,
                      num_actions: Sequence[int]) -> tfd.Distribution:
  """Returns a softmax policy for each part of a `MultiDiscrete` action.

  Args:
    logits: `[..., sum(num_actions)]`, unnormalised log-probabilities: first
      those of the first part, then those of the second, and so on.
    num_actions: `N` numbers, how many actions each part has.

  Returns:
    A distribution of int32 `[..., N]`, where part `n` is in
    `[0, num_actions[n])`. The log-probability of a larger action is -inf, if
    the longest part has such an action; else it is an error as above.

  Raises:
    ValueError: if `logits` are not floats or do not fit `num_actions`, or if
      one of `num_actions` is not positive.
  """
  logits = _to_params('logits', logits)
  num_actions = list(num_actions)
  if any(n < 1 for n in num_actions):
    raise ValueError(f'num_actions: {num_actions} must be positive')
  if not num_actions or logits.shape[-1] != sum(num_actions):
    raise ValueError(f'logits: Shape {logits.shape} does not fit num_actions '
                     f'{num_actions}: the last axis must be their sum')
  # Actions of probability 0 are added, so that all parts are equally long.
  batch_axes = [[0, 0]] * (logits.shape.rank - 1)
  parts = [
      tf.pad(part, batch_axes + [[0, max(num_actions) - part.shape[-1]]],
             constant_values=-np.inf)
      for part in tf.split(logits, num_actions, axis=-1)]
  return tfd.Independent(
      tfd.Categorical(logits=tf.stack(parts, axis=-2), dtype=tf.int32),
      reinterpreted_batch_ndims=1)


def normal(params: tf.Tensor) -> tfd.Distribution:
  """Returns a Gaussian policy with a diagonal covariance.

  Args:
    params: `[..., 2 N]`, first `N` means, then `N` logarithms of standard
      deviations. The logarithms are clipped to [-20, 2]; outside of that they
      get no gradient.

  Returns:
    A distribution of `[..., N]`. Gradients flow through its samples.

  Raises:
    ValueError: if `params` are not floats or the last axis is not even.
  """
  return tfd.Independent(
      tfd.Normal(*_split(params)), reinterpreted_batch_ndims=1)


def tanh_normal(params: tf.Tensor) -> 'TanhNormal':
  """Returns a Gaussian policy squashed to actions between -1 and 1.

  Args:
    params: `[..., 2 N]`, as those of `normal`, before the squashing.

  Returns:
    A distribution of `[..., N]`. Gradients flow through its samples.

  Raises:
    ValueError: if `params` are not floats or the last axis is not even.
  """
  return TanhNormal(*_split(params))


class TanhNormal:
  """Independent random numbers `tanh(u)` with normally distributed `u`."""

  def __init__(self, loc: tf.Tensor, scale: tf.Tensor):
    """Creates the distribution.

    Args:
      loc: `[..., N]`, means of `u`.
      scale: `[..., N]`, standard deviations of `u`.
    """
    self._normal = tfd.Normal(loc, scale)

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm of the density, made finite at the bounds.

    Between 0.999 and 1 the density is replaced by its mean over that interval:
    the probability of the interval divided by its width; likewise at -1. There
    the inverse of tanh would amplify the rounding of the action, up to infinity
    at the bound itself. The replacement is a density, too, and the ratio of two
    such densities is the ratio of the probabilities of the interval. So it is
    an importance weight, if both are from this function. Source: SEED RL
    (Espeholt et al. 2019, arXiv 1910.06591), `parametric_distribution.py`.

    The gradient with respect to the parameters is finite everywhere. It is zero
    only where the interval has probability 1 within rounding.

    Args:
      actions: `[..., N]`, cast to the type of the parameters. Actions below -1
        or above 1 count as -1 or 1.

    Returns:
      `[...]`.

    Raises:
      ValueError: if `actions` do not have the shape of the means.
    """
    loc, scale = self._normal.loc, self._normal.scale
    # The hint keeps the digits of Python floats for float64.
    actions = tf.cast(
        tf.convert_to_tensor(actions, dtype_hint=loc.dtype), loc.dtype)
    if not actions.shape.is_compatible_with(loc.shape):
      raise ValueError(f'actions: Shape {actions.shape} does not fit shape '
                       f'{loc.shape} of the means')
    u = tf.atanh(tf.clip_by_value(actions, -_TAIL, _TAIL))
    density = self._normal.log_prob(u) - _log_slope(u)
    # The gradient of tfd.Normal's `log_cdf` is NaN from 5e9 standard deviations
    # on, which are reached if scales are small.
    distance = (np.arctanh(_TAIL) - tf.sign(actions) * loc) / scale
    tail = tfp.math.logerfc(distance / np.sqrt(2)) - np.log(2 * (1 - _TAIL))
    return tf.reduce_sum(
        tf.where(tf.abs(actions) < _TAIL, density, tail), axis=-1)

  def entropy(self) -> tf.Tensor:
    """Returns the differential entropy, which has no closed form.

    The trapezoidal rule with 64 nodes computes it. The errors were measured
    against an integration with millions of nodes, for means of -3, 0 and 3. Per
    part, and besides rounding, they are at most 3e-8 for standard deviations
    from 1e-3 to 2, 8e-7 for 4 and 3e-4 for e^2. Gradients flow through it.

    Returns:
      `[...]`.
    """
    loc, scale = self._normal.loc, self._normal.scale
    u = (loc[..., tf.newaxis]
         + scale[..., tf.newaxis] * tf.constant(_NODES, loc.dtype))
    log_slope = tf.linalg.matvec(_log_slope(u), tf.constant(_WEIGHTS, u.dtype))
    return tf.reduce_sum(self._normal.entropy() + log_slope, axis=-1)

  def mode(self) -> tf.Tensor:
    """Returns `tanh` of the means, `[..., N]`.

    It is the median. The density can be higher elsewhere, even at the bounds.
    """
    return tf.tanh(self._normal.mode())

  def sample(self, seed: Seed = None) -> tf.Tensor:
    """Returns random actions `[..., N]`."""
    return tf.tanh(self._normal.sample(seed=seed))

  def sample_and_log_prob(
      self, seed: Seed = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns random actions and their log-densities.

    The densities are computed before squashing, so they are exact even where
    rounding moves the action to the bound. Do not divide them by those of
    `log_prob`, which are mean densities near the bounds.

    Args:
      seed: see the module's docstring.

    Returns:
      Actions `[..., N]` and log-densities `[...]`. Gradients flow through both.
    """
    u = self._normal.sample(seed=seed)
    log_probs = self._normal.log_prob(u) - _log_slope(u)
    return tf.tanh(u), tf.reduce_sum(log_probs, axis=-1)


def _to_params(name, params):
  params = tf.convert_to_tensor(params)
  if params.shape.rank == 0 or not params.dtype.is_floating:
    raise ValueError(f'{name}: {params.dtype.name} of shape {params.shape} '
                     'must be floats of rank at least 1')
  return params


def _split(params):
  """Splits parameters into means and standard deviations."""
  params = _to_params('params', params)
  if params.shape[-1] is None or params.shape[-1] % 2:
    raise ValueError(f'params: Shape {params.shape} must have an even last '
                     'axis: means and logarithms of standard deviations')
  loc, log_scale = tf.split(params, 2, axis=-1)
  return loc, tf.exp(
      tf.clip_by_value(log_scale, _MIN_LOG_SCALE, _MAX_LOG_SCALE))


def _log_slope(u):
  """Returns `log(1 - tanh(u)^2)`, stable for all `u`."""
  return 2.0 * (np.log(2.0) - u - tf.nn.softplus(-2.0 * u))
