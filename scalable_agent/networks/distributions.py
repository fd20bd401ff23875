# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Policies as distributions, from the outputs of a network.

Each function takes parameters `[..., P]`, where `...` are any batch axes, e.g.
`[T, B]`, and returns an object with

    log_prob(actions)   `[...]`, logarithm of the probability or the density
    entropy()           `[...]`
    kl(other)           `[...]`, the KL of this policy to another one
    mode()              the actions of the policy without exploration
    sample(seed=None)   random actions, independent for each batch element

The parts of an action are independent. Log-probs and entropies are sums over
the parts, as `vtrace.from_action_log_probs` expects. Results have the type of
the parameters, float32 or float64. Continuous samples have gradients. A seed is
a pair of integers; without a seed, each call returns different actions. XLA can
compile all functions.

`N` is the number of parts of an action, `A` the number of discrete actions,
`M` the number of samples.

TensorFlow Probability has the same distributions, but takes seconds to import,
too long for processes that only act.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

# A pair of integers, or None.
Seed: TypeAlias = Sequence[int] | tf.Tensor | None

# As in Spinning Up and PyTorchRL: from e^-20 to e^2, about 2e-9 to 7.4.
LOG_SCALE_BOUNDS = -20.0, 2.0

# Squashed actions from here to the bound count as one interval.
_TAIL = 0.999

# The trapezoidal rule for expectations under the standard normal distribution.
# Errors are 2e-8 for narrow policies and 3e-4 for the widest. Gauss-Hermite,
# with 64 nodes, is exact for narrow policies, but errs by 0.02 for the widest.
_NODES = np.linspace(-6.0, 6.0, 64)
_WEIGHTS = np.exp(-0.5 * _NODES ** 2) / np.sum(np.exp(-0.5 * _NODES ** 2))


def categorical(logits: tf.Tensor) -> 'Categorical':
  """Returns a softmax policy over discrete actions, int32 in `[0, A)`.

  `logits` are `[..., A]`. On a CPU, `log_prob` raises
  `tf.errors.InvalidArgumentError` for an action out of range.
  """
  return Categorical(_to_params('logits', logits))


def multi_categorical(
    logits: tf.Tensor, num_actions: Sequence[int]) -> 'MultiCategorical':
  """Returns a softmax policy for each part of a `MultiDiscrete` action.

  Args:
    logits: `[..., sum(num_actions)]`, in the order of the parts.
    num_actions: `N` positive numbers, the number of actions of each part.

  Returns:
    A distribution of int32 `[..., N]`, where part `n` is in
    `[0, num_actions[n])`. The log-probability of a larger action is -inf, if
    the longest part has such an action; else an error as for `categorical`.
  """
  logits = _to_params('logits', logits)
  num_actions = list(num_actions)
  if any(n < 1 for n in num_actions):
    raise ValueError(f'num_actions: {num_actions} must be positive')
  if not num_actions or logits.shape[-1] != sum(num_actions):
    raise ValueError(f'logits: Shape {logits.shape} does not fit num_actions '
                     f'{num_actions}: the last axis must be their sum')
  return MultiCategorical(tf.split(logits, num_actions, axis=-1))


def normal(params: tf.Tensor) -> 'Normal':
  """Returns a Gaussian policy `[..., N]` with a diagonal covariance.

  Args:
    params: `[..., 2 N]`, first `N` means, then `N` logarithms of standard
      deviations. The logarithms are clipped to [-20, 2], without a gradient
      outside of this interval.
  """
  return Normal(*_split(params))


def tanh_normal(params: tf.Tensor) -> 'TanhNormal':
  """Returns a Gaussian policy, see `normal`, squashed to [-1, 1] by tanh."""
  return TanhNormal(*_split(params))


class Categorical:
  """A random number in `[0, A)`."""

  def __init__(self, logits: tf.Tensor):
    """Makes the distribution from logits `[..., A]`."""
    self._logits = logits

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the log-probabilities `[...]` of integers `[...]`."""
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=actions, logits=self._logits)

  def entropy(self) -> tf.Tensor:
    """Returns the entropy, `[...]`."""
    return -tf.reduce_sum(
        tf.nn.softmax(self._logits) * tf.nn.log_softmax(self._logits), axis=-1)

  def kl(self, other: 'Categorical') -> tf.Tensor:
    """Returns KL(this, other), `[...]`."""
    return tf.reduce_sum(tf.nn.softmax(self._logits) * (
        tf.nn.log_softmax(self._logits) - tf.nn.log_softmax(other._logits)),
                         axis=-1)

  def mode(self) -> tf.Tensor:
    """Returns the most probable actions, int32 `[...]`."""
    return tf.argmax(self._logits, axis=-1, output_type=tf.int32)

  def sample(self, seed: Seed = None) -> tf.Tensor:
    """Returns random actions, int32 `[...]`."""
    # The Gumbel-max trick, since XLA does not compile
    # `tf.random.stateless_categorical`. `tiny` keeps the logarithm finite.
    shape, dtype = tf.shape(self._logits), self._logits.dtype
    tiny = np.finfo(dtype.as_numpy_dtype).tiny
    if seed is None:
      uniform = tf.random.uniform(shape, tiny, 1.0, dtype)
    else:
      uniform = tf.random.stateless_uniform(shape, seed, tiny, 1.0, dtype)
    noise = -tf.math.log(-tf.math.log(uniform))
    return tf.argmax(self._logits + noise, axis=-1, output_type=tf.int32)


class MultiCategorical:
  """Independent random numbers with different ranges."""

  def __init__(self, logits: Sequence[tf.Tensor]):
    """Makes the distribution from `N` logits `[..., A_n]`."""
    self._parts = [Categorical(part) for part in logits]
    # Pads with actions of probability 0, so that all parts are equally long.
    longest = max(part.shape[-1] for part in logits)
    batch_axes = [[0, 0]] * (logits[0].shape.rank - 1)
    self._stacked = Categorical(tf.stack([
        tf.pad(part, batch_axes + [[0, longest - part.shape[-1]]],
               constant_values=-np.inf) for part in logits], axis=-2))

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the log-probabilities `[...]` of integers `[..., N]`."""
    return tf.reduce_sum(self._stacked.log_prob(actions), axis=-1)

  def entropy(self) -> tf.Tensor:
    """Returns the entropy, `[...]`."""
    # The stacked parts would give NaN, as 0 times -inf.
    return tf.add_n([part.entropy() for part in self._parts])

  def kl(self, other: 'MultiCategorical') -> tf.Tensor:
    """Returns KL(this, other), `[...]`."""
    return tf.add_n([mine.kl(part) for mine, part in zip(
        self._parts, other._parts, strict=True)])

  def mode(self) -> tf.Tensor:
    """Returns the most probable actions, int32 `[..., N]`."""
    return self._stacked.mode()

  def sample(self, seed: Seed = None) -> tf.Tensor:
    """Returns random actions, int32 `[..., N]`."""
    return self._stacked.sample(seed)


class Normal:
  """Independent, normally distributed random numbers.

  `loc` are means, `scale` standard deviations, both `[..., N]`.
  """

  def __init__(self, loc: tf.Tensor, scale: tf.Tensor):
    self.loc = loc
    self.scale = scale

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the log-densities `[...]` of actions `[..., N]`.

    Actions are cast to the type of the means and may have more axes in front:
    actions `[M, ..., N]` have log-densities `[M, ...]`.
    """
    actions = _to_actions(actions, self.loc.dtype)
    return tf.reduce_sum(_log_density(actions, self.loc, self.scale), axis=-1)

  def entropy(self) -> tf.Tensor:
    """Returns the differential entropy, `[...]`."""
    return tf.reduce_sum(
        0.5 * np.log(2 * np.pi * np.e) + tf.math.log(self.scale), axis=-1)

  def kl(self, other: 'Normal') -> tf.Tensor:
    """Returns KL(this, other), `[...]`."""
    ratio = self.scale / other.scale
    shift = (self.loc - other.loc) / other.scale
    return 0.5 * tf.reduce_sum(
        tf.square(ratio) + tf.square(shift) - 1 - 2 * tf.math.log(ratio),
        axis=-1)

  def mode(self) -> tf.Tensor:
    """Returns the means, `[..., N]`."""
    return self.loc

  def sample(self, seed: Seed = None,
             num_samples: int | None = None) -> tf.Tensor:
    """Returns random actions `[..., N]`, with gradients.

    With `num_samples`, `M`, actions are `[M, ..., N]`.
    """
    shape = tf.shape(self.loc)
    if num_samples is not None:
      shape = tf.concat([[num_samples], shape], axis=0)
    if seed is None:
      noise = tf.random.normal(shape, dtype=self.loc.dtype)
    else:
      noise = tf.random.stateless_normal(shape, seed, dtype=self.loc.dtype)
    return self.loc + self.scale * noise


class TanhNormal:
  """Independent random numbers `tanh(u)` with normally distributed `u`."""

  def __init__(self, loc: tf.Tensor, scale: tf.Tensor):
    """Makes the distribution from means and deviations of `u`, `[..., N]`."""
    self._normal = Normal(loc, scale)

  def log_prob(self, actions: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm `[...]` of the density, made finite at the bounds.

    Between 0.999 and 1, the mean of the density over this interval replaces the
    density: the probability of the interval divided by the width; likewise at
    -1. In this interval the inverse of tanh would amplify the rounding of the
    action, up to infinity at the bound. The replacement is a density, too, and
    the ratio of two such densities is the ratio of the probabilities of the
    interval, so an importance weight. Source: SEED RL (Espeholt et al. 2019,
    arXiv 1910.06591), `parametric_distribution.py`.

    The gradient with respect to the parameters is finite everywhere, and zero
    only where the interval has probability 1 within rounding. Actions,
    `[..., N]`, below -1 or above 1 count as -1 or 1.
    """
    loc, scale = self._normal.loc, self._normal.scale
    actions = _to_actions(actions, loc.dtype)
    if not actions.shape.is_compatible_with(loc.shape):
      raise ValueError(f'actions: Shape {actions.shape} does not fit shape '
                       f'{loc.shape} of the means')
    u = tf.atanh(tf.clip_by_value(actions, -_TAIL, _TAIL))
    density = _log_density(u, loc, scale) - _log_slope(u)
    distance = (np.arctanh(_TAIL) - tf.sign(actions) * loc) / scale
    tail = _log_erfc(distance / np.sqrt(2)) - np.log(2 * (1 - _TAIL))
    return tf.reduce_sum(
        tf.where(tf.abs(actions) < _TAIL, density, tail), axis=-1)

  def entropy(self) -> tf.Tensor:
    """Returns the differential entropy `[...]`, with gradients.

    There is no closed form. The errors of the trapezoidal rule were measured
    against an integration with millions of nodes, for means of -3, 0 and 3:
    besides rounding, at most 3e-8 per part for standard deviations from 1e-3 to
    2, 8e-7 for 4 and 3e-4 for e^2.
    """
    loc, scale = self._normal.loc, self._normal.scale
    u = (loc[..., tf.newaxis]
         + scale[..., tf.newaxis] * tf.constant(_NODES, loc.dtype))
    log_slope = tf.linalg.matvec(_log_slope(u), tf.constant(_WEIGHTS, u.dtype))
    return self._normal.entropy() + tf.reduce_sum(log_slope, axis=-1)

  def kl(self, other: 'TanhNormal') -> tf.Tensor:
    """Returns KL(this, other), `[...]`: that before squashing."""
    return self._normal.kl(other._normal)

  def mode(self) -> tf.Tensor:
    """Returns medians `[..., N]`; the density can be higher elsewhere."""
    return tf.tanh(self._normal.mode())

  def sample(self, seed: Seed = None) -> tf.Tensor:
    """Returns random actions `[..., N]`."""
    return tf.tanh(self._normal.sample(seed))

  def sample_and_log_prob(
      self, seed: Seed = None, noise: tf.Tensor | None = None
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns random actions `[..., N]` and log-densities `[...]`.

    Both have gradients. Densities are computed before squashing, so rounding of
    actions to the bound does not change a density. Do not divide by densities
    of `log_prob`, which are mean densities near the bounds. `noise`,
    `[..., N]`, is standard normal, and replaces noise from the seed.
    """
    if noise is None:
      u = self._normal.sample(seed)
    else:
      u = self._normal.loc + self._normal.scale * noise
    log_slope = tf.reduce_sum(_log_slope(u), axis=-1)
    return tf.tanh(u), self._normal.log_prob(u) - log_slope


def _to_params(name: str, params: tf.Tensor) -> tf.Tensor:
  params = tf.convert_to_tensor(params)
  if params.shape.rank == 0 or not params.dtype.is_floating:
    raise ValueError(f'{name}: {params.dtype.name} of shape {params.shape} '
                     'must be floats of rank at least 1')
  return params


def _to_actions(actions: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  # The hint keeps the digits of Python floats for float64.
  return tf.cast(tf.convert_to_tensor(actions, dtype_hint=dtype), dtype)


def _split(params: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Splits parameters into means and standard deviations."""
  params = _to_params('params', params)
  if params.shape[-1] is None or params.shape[-1] % 2:
    raise ValueError(f'params: Shape {params.shape} must have an even last '
                     'axis: means and logarithms of standard deviations')
  loc, log_scale = tf.split(params, 2, axis=-1)
  return loc, tf.exp(tf.clip_by_value(log_scale, *LOG_SCALE_BOUNDS))


def _log_density(x: tf.Tensor, loc: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
  """Returns the logarithms of the densities of normal distributions."""
  return (-0.5 * tf.square((x - loc) / scale) - tf.math.log(scale)
          - 0.5 * np.log(2 * np.pi))


def _log_erfc(x: tf.Tensor) -> tf.Tensor:
  """Returns `log(1 - erf(x))` with a finite gradient, also if erf(x) is 1."""
  # Laplace's continued fraction has all digits of float64 from 5 on.
  is_large = x > 5.0
  large = tf.maximum(x, 5.0)
  fraction = large
  for k in reversed(range(1, 21)):
    fraction = large + 0.5 * k / fraction
  return tf.where(
      is_large,
      -tf.square(large) - tf.math.log(fraction) - 0.5 * np.log(np.pi),
      tf.math.log(tf.math.erfc(tf.minimum(x, 5.0))))


def _log_slope(u: tf.Tensor) -> tf.Tensor:
  """Returns `log(1 - tanh(u)^2)`, stable for all `u`."""
  return 2.0 * (np.log(2.0) - u - tf.nn.softplus(-2.0 * u))
