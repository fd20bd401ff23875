# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace: off-policy corrected value targets and policy gradient advantages.

Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with Importance
Weighted Actor-Learner Architectures" (arXiv 1802.01561), section 4.

`T` is the number of time steps, `B` the batch size, `A` the number of actions.
Tensors are time-major. The behaviour policy `mu` chose the actions; the target
policy `pi` is learned:

    rho_t   = pi(a_t | x_t) / mu(a_t | x_t)
    c_t     = lambda_t min(c_bar, rho_t)
    delta_t = min(rho_bar, rho_t) (r_t + gamma_t V(x_{t+1}) - V(x_t))
    v_t     = V(x_t) + delta_t + gamma_t c_t (v_{t+1} - V(x_{t+1}))
    q_t     = r_t + gamma_t v_{t+1}
    adv_t   = min(pg_rho_bar, rho_t) (q_t - V(x_t))

where `V(x_T)` and `v_T` are the bootstrap value, and `gamma_t` is 0 where step
`t` ends an episode. Then no number after `t`, not even an infinity or a NaN,
changes `t`. By default all three thresholds and `lambda` are 1, as in the
reference. `rho_bar` determines which policy's value function `v` estimates;
`c_bar` and `lambda` only trade the bias of the baseline for variance.

The functions differ in their inputs: `from_logits` takes the logits of softmax
policies, `from_action_log_probs` the log-probabilities of any policy,
`from_importance_weights` the importance weights, `compute_vs` clipped weights.
The functions of DI-engine and pytorch_seed_rl are in `scalable_agent.compat`.

Arguments of any type are converted to float32, or to float64 on request.
"""

from collections.abc import Hashable
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

# Longer unrolls take too long to compile with each step as an operation.
_MAX_UNROLLED_STEPS = 64
# Types that TensorFlow converts to a tensor.
TensorLike: TypeAlias = tf.Tensor | tf.Variable | np.ndarray | list | float

# Traces of eager calls, by static values, dtype and shapes.
_traces: dict[tuple[Hashable, ...],
              tf.types.experimental.ConcreteFunction] = {}


class VTraceReturns(NamedTuple):
  """Targets of one batch of unrolls, as constants: without gradients.

  Attributes:
    vs: `[T, B, ...]`, targets of the baseline.
    pg_advantages: `[T, B, ...]`, advantages of the policy gradient.
  """
  vs: tf.Tensor
  pg_advantages: tf.Tensor


class VTraceFromLogitsReturns(NamedTuple):
  """`VTraceReturns` with the log-probabilities that the targets come from.

  `log_rhos`, `[T, B]`, are target minus behaviour log-probabilities.
  """
  vs: tf.Tensor
  pg_advantages: tf.Tensor
  log_rhos: tf.Tensor
  behaviour_action_log_probs: tf.Tensor
  target_action_log_probs: tf.Tensor


def log_probs_from_logits_and_actions(
    policy_logits: TensorLike, actions: TensorLike, *,
    dtype: tf.DType = tf.float32) -> tf.Tensor:
  """Returns the log-probabilities `[T, B]` of actions under a softmax policy.

  Args:
    policy_logits: `[T, B, A]`, unnormalised log-probabilities.
    actions: integers in `[0, A)`, `[T, B]`.
    dtype: of the result, float32 or float64.

  Raises:
    ValueError: if an argument has another rank, or `actions` are not integers
      or do not have the shape of `policy_logits` without its last axis.
    tf.errors.InvalidArgumentError: on a CPU, if an action is out of range. On a
      GPU and under XLA the log-probability of such an action is NaN.
  """
  policy_logits = _to_tensor('policy_logits', policy_logits, dtype)
  actions = _to_tensor('actions', actions, tf.int32)
  _check_rank('policy_logits', policy_logits, 3)
  _check_rank('actions', actions, 2)
  if not policy_logits.shape[:-1].is_compatible_with(actions.shape):
    raise ValueError(f'actions: Shape {actions.shape} does not fit shape '
                     f'{policy_logits.shape} of policy_logits')
  if not (policy_logits.shape.is_fully_defined()
          and actions.shape.is_fully_defined()):
    # The function of tf.nn compares the shapes when the graph runs.
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=actions, logits=policy_logits)
  # The function of tf.nn takes ten times as long for more checks.
  losses, _ = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
      features=tf.reshape(policy_logits, [-1, policy_logits.shape[-1]]),
      labels=tf.reshape(actions, [-1]))
  return -tf.reshape(losses, actions.shape)


def from_logits(
    behaviour_policy_logits: TensorLike,
    target_policy_logits: TensorLike,
    actions: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    clip_rho_threshold: TensorLike | None = 1.0,
    clip_pg_rho_threshold: TensorLike | None = 1.0,
    name: str = 'vtrace_from_logits',
    *,
    clip_c_threshold: TensorLike | None = 1.0,
    lambda_: TensorLike = 1.0,
    mix_advantages: bool = False,
    associative_scan: bool = False,
    dtype: tf.DType = tf.float32) -> VTraceFromLogitsReturns:
  """Computes V-trace for softmax policies.

  The options, from `clip_rho_threshold` on, and the errors are those of
  `from_importance_weights` and `log_probs_from_logits_and_actions`.

  Args:
    behaviour_policy_logits: `[T, B, A]`, logits of the policy that acted.
    target_policy_logits: `[T, B, A]`, logits of the policy that learns.
    actions: integers in `[0, A)`, `[T, B]`.
    discounts: `[T, B]`, 0 where the step ended an episode.
    rewards: `[T, B]`, rewards of the actions.
    values: `[T, B]`, baseline under the target policy.
    bootstrap_value: `[B]`, baseline after the last step.
  """
  with tf.name_scope(name):
    behaviour_policy_logits = _to_tensor(
        'behaviour_policy_logits', behaviour_policy_logits, dtype)
    target_policy_logits = _to_tensor(
        'target_policy_logits', target_policy_logits, dtype)
    _check_rank('behaviour_policy_logits', behaviour_policy_logits, 3)
    _check_rank('target_policy_logits', target_policy_logits, 3)
    _check_same_shape('target_policy_logits', target_policy_logits,
                      'behaviour_policy_logits', behaviour_policy_logits)
    return from_action_log_probs(
        log_probs_from_logits_and_actions(
            behaviour_policy_logits, actions, dtype=dtype),
        log_probs_from_logits_and_actions(
            target_policy_logits, actions, dtype=dtype),
        discounts, rewards, values, bootstrap_value,
        clip_rho_threshold, clip_pg_rho_threshold,
        clip_c_threshold=clip_c_threshold, lambda_=lambda_,
        mix_advantages=mix_advantages, associative_scan=associative_scan,
        dtype=dtype)


def from_action_log_probs(
    behaviour_action_log_probs: TensorLike,
    target_action_log_probs: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    clip_rho_threshold: TensorLike | None = 1.0,
    clip_pg_rho_threshold: TensorLike | None = 1.0,
    name: str = 'vtrace_from_action_log_probs',
    *,
    clip_c_threshold: TensorLike | None = 1.0,
    lambda_: TensorLike = 1.0,
    mix_advantages: bool = False,
    associative_scan: bool = False,
    dtype: tf.DType = tf.float32) -> VTraceFromLogitsReturns:
  """Computes V-trace for any policy, from log-probabilities of its actions.

  `scalable_agent.networks.distributions` has policies with continuous and with
  several discrete actions. All other arguments are those of `from_logits`.
  Gradients flow through the log-probabilities of the result.

  Args:
    behaviour_action_log_probs: `[T, B]`, `log mu(a_t | x_t)`, logarithms of
      probabilities or of densities, summed over the parts of an action.
    target_action_log_probs: `[T, B]`, `log pi(a_t | x_t)`.
  """
  with tf.name_scope(name):
    behaviour_action_log_probs = _to_tensor(
        'behaviour_action_log_probs', behaviour_action_log_probs, dtype)
    target_action_log_probs = _to_tensor(
        'target_action_log_probs', target_action_log_probs, dtype)
    _check_same_shape('target_action_log_probs', target_action_log_probs,
                      'behaviour_action_log_probs', behaviour_action_log_probs)
    log_rhos = target_action_log_probs - behaviour_action_log_probs
    returns = from_importance_weights(
        log_rhos, discounts, rewards, values, bootstrap_value,
        clip_rho_threshold, clip_pg_rho_threshold,
        clip_c_threshold=clip_c_threshold, lambda_=lambda_,
        mix_advantages=mix_advantages, associative_scan=associative_scan,
        dtype=dtype)
    return VTraceFromLogitsReturns(
        vs=returns.vs,
        pg_advantages=returns.pg_advantages,
        log_rhos=log_rhos,
        behaviour_action_log_probs=behaviour_action_log_probs,
        target_action_log_probs=target_action_log_probs)


def from_importance_weights(
    log_rhos: TensorLike,
    discounts: TensorLike,
    rewards: TensorLike,
    values: TensorLike,
    bootstrap_value: TensorLike,
    clip_rho_threshold: TensorLike | None = 1.0,
    clip_pg_rho_threshold: TensorLike | None = 1.0,
    name: str = 'vtrace_from_importance_weights',
    *,
    clip_c_threshold: TensorLike | None = 1.0,
    lambda_: TensorLike = 1.0,
    mix_advantages: bool = False,
    associative_scan: bool = False,
    dtype: tf.DType = tf.float32) -> VTraceReturns:
  """Computes V-trace for any policy, from logarithms of importance weights.

  There may be more or fewer axes after the time axis. `log_rhos`, `discounts`
  and `rewards` broadcast to the shape of `values`: with `values` of
  `[T, B, C]`, a `log_rhos` of `[T, B, 1]` holds for all `C` values.

  Args:
    log_rhos: `[T, B, ...]`, `log pi(a_t | x_t) - log mu(a_t | x_t)`.
    discounts: `[T, B, ...]`, 0 where the step ended an episode.
    rewards: `[T, B, ...]`, rewards of the actions.
    values: `[T, B, ...]`, baseline under the target policy.
    bootstrap_value: `[B, ...]`, baseline after the last step.
    clip_rho_threshold: scalar, `rho_bar`, or None for no clipping.
    clip_pg_rho_threshold: scalar, `pg_rho_bar`, or None for no clipping.
      Without clipping, a weight whose logarithm exceeds 88 is infinite, and
      results are NaN where its error is 0.
    name: name scope.
    clip_c_threshold: scalar, `c_bar`, or None for no clipping. The paper's
      theory needs `rho_bar >= c_bar`. A larger `c_bar` is allowed, but then
      `vs` need not converge to the value function of a policy.
    lambda_: scalar or `[T, B, ...]`, in `[0, 1]`, a factor of the trace. The
      paper has 1; 0 looks one step ahead (remark 2 of the paper). Where lambda
      is 0 at `t`, but `discounts` are not, `v_t` depends on `V(x_{t+1})` and on
      nothing later. So a trace can end where an episode was truncated. Even
      there `q_t` depends on `v_{t+1}`, as in DI-engine; see `mix_advantages`.
    mix_advantages: whether lambda mixes the target of the advantages too, as in
      rlax: `q_t = r_t + gamma_t (lambda_t v_{t+1} + (1 - lambda_t) V(x_{t+1}))`
      instead of `r_t + gamma_t v_{t+1}`. No difference if `lambda_` is 1.
    associative_scan: whether the recursion runs as a scan of logarithmic depth
      instead of a loop over time. The results agree within rounding, unless
      products of many `gamma_t c_t` above 1 overflow. On a CPU the scan is
      faster for long unrolls, but not under XLA; under XLA on a GPU, the scan
      was faster at all lengths measured (docs/measurements.md). The scan needs
      static shapes and the package tensorflow-probability.
    dtype: type of the computation and of the results, float32 or float64.

  Raises:
    ValueError: if ranks or shapes do not fit, or an argument is not made of
      real numbers. Shapes that are not known statically are not checked, unless
      `associative_scan` needs them.
  """
  with tf.name_scope(name):
    log_rhos = _to_tensor('log_rhos', log_rhos, dtype)
    discounts = _to_tensor('discounts', discounts, dtype)
    rewards = _to_tensor('rewards', rewards, dtype)
    values = _to_tensor('values', values, dtype)
    bootstrap_value = _to_tensor('bootstrap_value', bootstrap_value, dtype)
    options = [
        _to_threshold('clip_rho_threshold', clip_rho_threshold, dtype),
        _to_threshold('clip_pg_rho_threshold', clip_pg_rho_threshold, dtype),
        _to_threshold('clip_c_threshold', clip_c_threshold, dtype),
        _to_option('lambda_', lambda_, dtype)]

    # The targets are constants for the losses. Gradients stop at the inputs, so
    # that a caller's tape does not record the recursion. A tape around the
    # caller's `tf.function` would differentiate the whole graph back to there,
    # so in graphs gradients stop at the results, too.
    arguments = [tf.stop_gradient(x) for x in (
        log_rhos, discounts, rewards, values, bootstrap_value)]
    options = [x if isinstance(x, float) else tf.stop_gradient(x)
               for x in options]
    results = _call_vtrace(
        (mix_advantages, associative_scan, _is_unrolled(values)),
        arguments, options)
    return VTraceReturns(*(
        results if tf.executing_eagerly() else map(tf.stop_gradient, results)))


def _is_unrolled(values: tf.Tensor) -> bool:
  # The graphs of callers, such as the learner's, keep the loop.
  return bool(tf.executing_eagerly() and values.shape.rank and (
      0 < values.shape[0] <= _MAX_UNROLLED_STEPS))


def _call_vtrace(
    static: tuple[bool, ...], arguments: list[tf.Tensor],
    options: list[tf.Tensor | float]) -> tuple[tf.Tensor, tf.Tensor]:
  """Checks shapes and calls `_vtrace`.

  Eager calls are without the search of `tf.function` for a trace, and without
  checks of known shapes. Both take longer than the recursion. Numbers are parts
  of the trace.
  """
  if (not tf.executing_eagerly() or tf.config.functions_run_eagerly()
      or tf.distribute.has_strategy()):
    _check_shapes(static[1], options[-1], *arguments)
    return _vtrace(*static, *arguments, *options)
  num_arguments = len(arguments)  # `trace` must not keep the tensors.
  numbers = [x if isinstance(x, float) else None for x in options]
  tensors = [*arguments, *[x for x in options if not isinstance(x, float)]]
  key = (*static, *numbers, tensors[0].dtype, *[x.shape for x in tensors])
  if key not in _traces:
    _check_shapes(static[1], options[-1], *arguments)

    def trace(*tensors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      left = iter(tensors[num_arguments:])
      return _vtrace.python_function(*static, *tensors[:num_arguments], *[
          next(left) if x is None else x for x in numbers])

    _traces[key] = tf.function(
        trace, autograph=False).get_concrete_function(*tensors)
  return _traces[key](*tensors)


def _check_shapes(
    associative_scan: bool, lambda_: tf.Tensor | float, log_rhos: tf.Tensor,
    discounts: tf.Tensor, rewards: tf.Tensor, values: tf.Tensor,
    bootstrap_value: tf.Tensor) -> None:
  rank = log_rhos.shape.rank
  if rank == 0:
    raise ValueError('log_rhos: Shape () must have rank at least 1')
  if rank is not None:
    reason = f' as log_rhos has shape {log_rhos.shape}'
    _check_rank('discounts', discounts, rank, reason)
    _check_rank('rewards', rewards, rank, reason)
    _check_rank('values', values, rank, reason)
    _check_rank('bootstrap_value', bootstrap_value, rank - 1, reason)
    if not isinstance(lambda_, float) and lambda_.shape.rank != 0:
      _check_rank('lambda_', lambda_, rank, reason)
      _check_fits_values('lambda_', lambda_, values)
  _check_fits_values('log_rhos', log_rhos, values)
  _check_fits_values('discounts', discounts, values)
  _check_fits_values('rewards', rewards, values)
  if not values.shape[1:].is_compatible_with(bootstrap_value.shape):
    raise ValueError(f'bootstrap_value: Shape {bootstrap_value.shape} does '
                     f'not fit shape {values.shape} of values')

  if associative_scan and not values.shape.is_fully_defined():
    raise ValueError(f'values: Shape {values.shape} must be known statically '
                     'for associative_scan')


# Compiled, because an eager tf.scan is a slow Python loop.
@tf.function(autograph=False)
def _vtrace(
    mix_advantages: bool, associative_scan: bool, is_unrolled: bool,
    log_rhos: tf.Tensor, discounts: tf.Tensor, rewards: tf.Tensor,
    values: tf.Tensor, bootstrap_value: tf.Tensor,
    *options: tf.Tensor | float) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns `vs` and `pg_advantages` of checked tensors."""
  clip_rho_threshold, clip_pg_rho_threshold, clip_c_threshold, lambda_ = (
      tf.convert_to_tensor(x, log_rhos.dtype) for x in options)
  rhos = tf.exp(log_rhos)
  vs = compute_vs(
      tf.minimum(clip_rho_threshold, rhos),
      tf.math.multiply_no_nan(tf.minimum(clip_c_threshold, rhos), lambda_),
      discounts, rewards, values, bootstrap_value, associative_scan,
      is_unrolled)

  vs_t_plus_1 = _shift(vs, bootstrap_value)
  if mix_advantages:
    vs_t_plus_1 = tf.math.multiply_no_nan(vs_t_plus_1, lambda_) + (
        tf.math.multiply_no_nan(_shift(values, bootstrap_value), 1 - lambda_))
  qs = rewards + tf.math.multiply_no_nan(vs_t_plus_1, discounts)
  return vs, tf.minimum(clip_pg_rho_threshold, rhos) * (qs - values)


@tf.function(autograph=False)
def compute_vs(clipped_rhos: tf.Tensor, cs: tf.Tensor, discounts: tf.Tensor,
               rewards: tf.Tensor, values: tf.Tensor,
               bootstrap_value: tf.Tensor,
               associative_scan: bool = False,
               is_unrolled: bool = False) -> tf.Tensor:
  """Computes V-trace targets `v_t` from clipped importance weights.

  All other functions of this module use this recursion. Gradients flow through
  the recursion, and arguments, `[T, B, ...]`, are not checked. `clipped_rhos`
  are `min(rho_bar, rho_t)`, and `cs` are `c_t`, with lambda. `is_unrolled` is
  whether each step has its own operations, which is faster outside of a
  `tf.function`; the results are equal. See `from_importance_weights` on all
  other arguments.
  """
  num_steps = values.shape.as_list()[0] if values.shape.rank else None
  if num_steps == 0:
    return tf.identity(values)
  # Makes a zero discount stop infinities, see the module's docstring.
  product = tf.math.multiply_no_nan
  deltas = clipped_rhos * (
      rewards + product(_shift(values, bootstrap_value), discounts) - values)
  discounted_cs = product(cs, discounts)

  if associative_scan:
    # A product of many factors above 1 may be infinite, and a factor of 0 may
    # stand on either side.
    def times(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
      return tf.where(x == 0, x, product(x, y))

    # Composes the later step x and the earlier step y:
    # `y[1] + y[0] (x[1] + x[0] ...)`.
    def compose(x: tuple[tf.Tensor, tf.Tensor], y: tuple[tf.Tensor, tf.Tensor]
                ) -> tuple[tf.Tensor, tf.Tensor]:
      return times(x[0], y[0]), y[1] + times(x[1], y[0])

    import tensorflow_probability as tfp  # The import takes seconds.
    _, reversed_sums = tfp.math.scan_associative(
        compose, (discounted_cs[::-1], deltas[::-1]))
    return values + reversed_sums[::-1]

  # The sum starts at zero, since the deltas contain the bootstrap value.
  if is_unrolled:
    after, sums = tf.zeros_like(bootstrap_value), []
    for c, delta in zip(reversed(tf.unstack(discounted_cs)),
                        reversed(tf.unstack(deltas))):
      after = delta + product(after, c)
      sums.append(after)
    return values + tf.stack(sums[::-1])

  if num_steps is None:  # `tf.scan` needs a step: a step of zeros is added.
    discounted_cs, deltas = (
        tf.concat([x, tf.zeros(tf.concat([[1], tf.shape(x)[1:]], 0), x.dtype)],
                  axis=0) for x in (discounted_cs, deltas))
  vs_minus_values = tf.scan(
      lambda after, step: step[1] + product(after, step[0]),
      (discounted_cs, deltas), initializer=tf.zeros_like(bootstrap_value),
      reverse=True)
  if num_steps is None:
    vs_minus_values = vs_minus_values[:-1]
  return values + vs_minus_values


def _shift(values: tf.Tensor, bootstrap_value: tf.Tensor) -> tf.Tensor:
  """Returns `[T, B, ...]`, the value of step `t + 1` at index `t`."""
  return tf.concat([values[1:], bootstrap_value[tf.newaxis]], axis=0)


def _to_tensor(name: str, value: TensorLike, dtype: tf.DType) -> tf.Tensor:
  """Returns a tensor of `dtype`; refuses floats if `dtype` is int32."""
  dtype = tf.as_dtype(dtype)
  if dtype not in (tf.float32, tf.float64, tf.int32):
    raise ValueError(f'dtype: {dtype.name} must be float32 or float64')
  # The hint keeps the digits of Python floats for float64. With a hint, NumPy
  # would drop imaginary parts.
  is_hinted = dtype.is_floating and not hasattr(value, 'dtype')
  tensor = value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(
      value, dtype_hint=dtype if is_hinted else None)
  if tensor.dtype == dtype:
    return tensor
  allowed = tensor.dtype.is_integer or (
      dtype.is_floating and (tensor.dtype.is_floating or tensor.dtype.is_bool))
  if not allowed:
    kind = 'real numbers' if dtype.is_floating else 'integers'
    raise ValueError(f'{name}: dtype {tensor.dtype.name} of shape '
                     f'{tensor.shape} must be {kind}')
  if dtype == tf.int32 and tensor.dtype == tf.int64:  # Too large stays so.
    tensor = tf.clip_by_value(tensor, dtype.min, dtype.max)
  return tf.cast(tensor, dtype)


def _to_option(
    name: str, value: TensorLike, dtype: tf.DType) -> tf.Tensor | float:
  # Other numbers become tensors, since each number would be another trace.
  is_default = isinstance(value, float) and value == 1.0
  if is_default and tf.executing_eagerly():
    return 1.0
  return _to_tensor(name, value, dtype)


def _to_threshold(name: str, value: TensorLike | None,
                  dtype: tf.DType) -> tf.Tensor | float:
  threshold = _to_option(
      name, float('inf') if value is None else value, dtype)
  if not isinstance(threshold, float):
    _check_rank(name, threshold, 0)
  return threshold


def _check_rank(
    name: str, tensor: tf.Tensor, rank: int, reason: str = '') -> None:
  if tensor.shape.rank not in (None, rank):
    raise ValueError(
        f'{name}: Shape {tensor.shape} must have rank {rank}{reason}')


def _check_same_shape(name: str, tensor: tf.Tensor, other_name: str,
                      other: tf.Tensor) -> None:
  if not tensor.shape.is_compatible_with(other.shape):
    raise ValueError(f'{name}: Shape {tensor.shape} does not fit shape '
                     f'{other.shape} of {other_name}')


def _check_fits_values(
    name: str, tensor: tf.Tensor, values: tf.Tensor) -> None:
  """Checks that `[T, B, ...]` broadcasts to `values` except along time."""
  if tensor.shape.rank is None or values.shape.rank is None:
    return
  axes = zip(tensor.shape.as_list(), values.shape.as_list())
  fits = [size in (None, wanted) or wanted is None or (size == 1 and axis > 0)
          for axis, (size, wanted) in enumerate(axes)]
  if not all(fits):
    raise ValueError(f'{name}: Shape {tensor.shape} does not fit shape '
                     f'{values.shape} of values')
