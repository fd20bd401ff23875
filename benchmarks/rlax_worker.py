# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs rlax's V-trace for benchmarks/vtrace.py, in an environment of its own.

Reads pickled requests `(what, ...)` from stdin, writes pickled answers to
stdout. The worker imports neither TensorFlow nor scalable_agent.
"""

import os
import pickle
import statistics
import sys
import timeit

os.environ['JAX_PLATFORMS'] = 'cpu'
import jax
import jax.numpy as jnp
import rlax

_REPEATS = 32  # As in vtrace.py.


def _vtrace(log_rhos, discounts, rewards, values, bootstrap_value, lambda_=1.0,
            clip_rho_threshold=1.0, clip_pg_rho_threshold=1.0):
  """Has arguments and results of `from_importance_weights`, `[T, B]`."""
  def of_one_unroll(*arguments):
    return rlax.vtrace_td_error_and_advantage(
        *arguments, lambda_, clip_rho_threshold, clip_pg_rho_threshold)

  values_t_plus_1 = jnp.concatenate([values[1:], bootstrap_value[None]])
  returns = jax.vmap(of_one_unroll, in_axes=1, out_axes=1)(
      values, values_t_plus_1, rewards, discounts, jnp.exp(log_rhos))
  return returns.errors + values, returns.pg_advantage


def _repeated(log_rhos, discounts, rewards, values, bootstrap_value):
  """Like `repeated` in vtrace.py."""
  def body(_, carry):
    log_rhos, values = carry
    vs, pg_advantages = _vtrace(
        log_rhos, discounts, rewards, values, bootstrap_value)
    return log_rhos + 1e-9 * pg_advantages, vs

  return jax.lax.fori_loop(0, _REPEATS, body, (log_rhos, values))


def main():
  # Other output must not get between the answers.
  answers = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)
  # Options are arguments, so that new numbers compile nothing.
  with_options = jax.jit(_vtrace)
  to_time = {'call': jax.jit(lambda *arguments: _vtrace(*arguments)),
             'inside': jax.jit(_repeated)}
  arguments = None
  while True:
    try:
      what, *request = pickle.load(sys.stdin.buffer)
    except EOFError:
      return
    if what == 'versions':
      answer = {'jax': jax.__version__, 'rlax': rlax.__version__}
    elif what == 'call':
      answer = jax.device_get(with_options(*request[0], **request[1]))
    elif what == 'load':
      arguments = jax.block_until_ready(jax.device_put(request[0]))
      for function in to_time.values():
        jax.block_until_ready(function(*arguments))
      answer = None
    elif what == 'time':
      kind, calls = request
      answer = statistics.median(timeit.repeat(
          lambda function=to_time[kind], arguments=arguments: (
              jax.block_until_ready(function(*arguments))),
          number=1, repeat=calls))
    pickle.dump(answer, answers)
    answers.flush()


if __name__ == '__main__':
  main()
