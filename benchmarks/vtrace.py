# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures V-trace, and compares it with rlax's and with the formula.

  python benchmarks/vtrace.py [--output=vtrace.json]

The loop is `tf.scan`, the default; the scan is `associative_scan=True`. rlax's
function gets the same float32 arguments, is vmapped over the batch and jitted.
A time is that of a call from Python, on the CPU, with tensors that are in
memory, until both results are ready (`.numpy()`, which copies nothing here;
`block_until_ready` for rlax). "XLA, inside" is the time of one of many
evaluations in a row in one compiled function, also for rlax. That is the cost
of V-trace as a part of a compiled learner step, without the cost of a call.

Both may use all cores, and take turns; a ratio is the median of the ratios of
all turns. rlax and jax run in a virtual environment of their own.
"""

import argparse
import functools
import itertools
import json
import os
import statistics
import sys
import timeit

import numpy as np

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)
from scalable_agent import vtrace
import tensorflow as tf
import venvs

_MODES = ('eager', 'graph', 'XLA', 'XLA, inside')
_REPEATS = 32  # Evaluations in a row for the last; as in rlax_worker.py.


def random_arguments(rng, length, batch_size):
  """Returns arguments of `from_importance_weights`, with ends of episodes."""
  shape = [length, batch_size]
  discounts = rng.uniform(0.5, 1.0, shape) * (rng.uniform(size=shape) > 0.1)
  return [np.float32(x) for x in (
      rng.normal(0.0, 1.0, shape), discounts, rng.normal(0.0, 2.0, shape),
      rng.normal(0.0, 3.0, shape), rng.normal(0.0, 3.0, [batch_size]))]


def formula(log_rhos, discounts, rewards, values, bootstrap_value, *,
            clip_rho_threshold, clip_pg_rho_threshold, clip_c_threshold,
            lambda_, mix_advantages):
  """The sums of the paper (section 4.1 and 4.2) in float64, O(T^2)."""
  rhos = np.exp(log_rhos)
  clip = lambda bound: rhos if bound is None else np.minimum(rhos, bound)
  values_t_plus_1 = np.concatenate([values[1:], bootstrap_value[None]])
  deltas = clip(clip_rho_threshold) * (
      rewards + discounts * values_t_plus_1 - values)
  factors = discounts * lambda_ * clip(clip_c_threshold)
  vs = np.empty_like(values)
  for s in range(len(values)):
    products = np.cumprod(
        np.concatenate([np.ones_like(factors[:1]), factors[s:-1]]), axis=0)
    vs[s] = values[s] + np.sum(products * deltas[s:], axis=0)
  targets = np.concatenate([vs[1:], bootstrap_value[None]])
  if mix_advantages:
    targets = lambda_ * targets + (1 - lambda_) * values_t_plus_1
  return vs, clip(clip_pg_rho_threshold) * (
      rewards + discounts * targets - values)


def equality(ask_rlax, num_cases):
  """Returns `{what: [absolute, relative]}`, largest differences."""
  rng, largest = np.random.RandomState(0), {}

  def compare(who, found, expected):
    for output, x, y in zip(vtrace.VTraceReturns._fields, found, expected):
      absolute = np.max(np.abs(np.asarray(x, np.float64) - y))
      relative = absolute / np.max(np.abs(y))
      what = f'{output}: {who}'  # Unlike `max`, np.maximum keeps a NaN.
      largest[what] = np.maximum(
          largest.get(what, 0.0), [absolute, relative]).tolist()

  for _ in range(num_cases):
    # Few shapes, as functions are compiled for each of them.
    arguments = random_arguments(
        rng, rng.choice([1, 2, 7, 20, 100]), rng.choice([1, 3, 32]))
    exact = [x.astype(np.float64) for x in arguments]
    options = {f'clip_{weight}_threshold':
                   None if rng.uniform() < 0.25 else rng.uniform(0.1, 4.0)
               for weight in ('rho', 'pg_rho', 'c')}
    options['lambda_'] = rng.choice([1.0, rng.uniform()])
    options['mix_advantages'] = bool(rng.randint(2))
    # rlax has no other options.
    rlax_options = dict(options, clip_c_threshold=1.0, mix_advantages=True)
    rlax_found = ask_rlax('call', arguments, {
        k: np.float32(np.inf if options[k] is None else options[k])
        for k in ('lambda_', 'clip_rho_threshold', 'clip_pg_rho_threshold')})
    compare('rlax, formula', rlax_found, formula(*exact, **rlax_options))
    expected = formula(*exact, **options)
    for name, associative in (('loop', False), ('scan', True)):
      ours = functools.partial(
          vtrace.from_importance_weights, associative_scan=associative)
      compare(f'{name}, rlax', ours(*arguments, **rlax_options), rlax_found)
      for dtype in (tf.float32, tf.float64):
        compare(f'{name} in {dtype.name}, formula',
                ours(*exact, **options, dtype=dtype), expected)
  return largest


def _timed(function, arguments, calls):
  """Returns the median of the seconds that a call takes."""
  call = lambda: [x.numpy() for x in function(*arguments)]
  return statistics.median(timeit.repeat(call, number=1, repeat=calls))


def _function(mode, associative):
  # Only the tensors are arguments, as for rlax, because options take time.
  def once(*arguments):
    return vtrace.from_importance_weights(
        *arguments, associative_scan=associative)

  def repeated(log_rhos, discounts, rewards, values, bootstrap_value):
    def body(i, log_rhos, values):
      vs, pg_advantages = once(
          log_rhos, discounts, rewards, values, bootstrap_value)
      # Each evaluation depends on the one before, so that none is left out.
      return i + 1, log_rhos + 1e-9 * pg_advantages, vs

    return tf.while_loop(
        lambda i, *_: i < _REPEATS, body, (0, log_rhos, values))[1:]

  return {'eager': once, 'graph': tf.function(once),
          'XLA': tf.function(once, jit_compile=True),
          'XLA, inside': tf.function(repeated, jit_compile=True)}[mode]


def measure(ask_rlax, length, batch_size, rounds, turn_s):
  """Returns rows of median microseconds, one for each mode."""
  arguments = random_arguments(np.random.RandomState(0), length, batch_size)
  ask_rlax('load', arguments)
  arguments = [tf.constant(x) for x in arguments]
  rows = []
  for mode in _MODES:
    inside = mode == 'XLA, inside'
    loop, scan = (functools.partial(_timed, _function(mode, x), arguments)
                  for x in (False, True))
    rlax = functools.partial(ask_rlax, 'time', 'inside' if inside else 'call')
    turns = []
    for ask in (loop, rlax, scan):
      ask(1)  # The first call traces and compiles.
      calls = int(np.clip(turn_s / ask(3), 3, 1000))
      turns.append(functools.partial(ask, calls))
    # The order of every other round is reversed.
    seconds = np.array([
        [turn() for turn in turns] if i % 2 else
        [turn() for turn in turns[::-1]][::-1] for i in range(rounds)])
    us = np.median(seconds, axis=0) * 1e6 / (_REPEATS if inside else 1)
    ratios = np.median(seconds / seconds[:, 1:2], axis=0)
    rows.append({
        'T': length, 'B': batch_size, 'mode': mode,
        'loop_us': us[0], 'rlax_us': us[1], 'scan_us': us[2],
        'loop_over_rlax': ratios[0], 'scan_over_rlax': ratios[2]})
  return rows


def where_the_scan_pays(rows, mode, batch_size):
  """Returns the T from which on the scan is faster than the loop, or None."""
  first = None
  for row in reversed(rows):
    if (row['mode'], row['B']) == (mode, batch_size):
      if row['scan_us'] >= row['loop_us']:
        return first
      first = row['T']
  return first


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--lengths', type=int, nargs='+', default=[20, 100, 1000])
  parser.add_argument('--batch_sizes', type=int, nargs='+', default=[32, 256])
  parser.add_argument('--rounds', type=int, default=11)
  parser.add_argument('--turn_s', type=float, default=0.1)
  parser.add_argument('--cases', type=int, default=1000)
  parser.add_argument('--venv', default=os.path.expanduser(
      '~/.cache/scalable_agent/benchmarks/rlax'),
      help='the virtual environment, made if missing')
  parser.add_argument('--output', help='JSON file to write the results to')
  args = parser.parse_args()
  tf.config.set_visible_devices([], 'GPU')

  rows = []
  with venvs.worker(args.venv, ['rlax'], 'rlax_worker.py') as ask_rlax:
    about = {'cpu_cores': len(os.sched_getaffinity(0)),
             'tensorflow': tf.__version__, **ask_rlax('versions')}
    print(', '.join(f'{k} {v}' for k, v in about.items()), end='\n\n')
    print('| T | B | mode | loop, us | scan, us | rlax, us | loop / rlax |'
          ' scan / rlax |\n|---:|---:|---|---:|---:|---:|---:|---:|')
    for shape in itertools.product(sorted(args.lengths), args.batch_sizes):
      for row in measure(ask_rlax, *shape, args.rounds, args.turn_s):
        rows.append(row)
        print('| {T} | {B} | {mode} | {loop_us:,.1f} | {scan_us:,.1f} | '
              '{rlax_us:,.1f} | {loop_over_rlax:.2f} | {scan_over_rlax:.2f} |'
              .format(**row), flush=True)
    differences = equality(ask_rlax, args.cases)

  print(f'\nLargest difference in {args.cases} random cases; relative: to the '
        'largest output of the case.\n\n| compared | absolute | relative |\n'
        '|---|---:|---:|')
  for what, (absolute, relative) in sorted(differences.items()):
    print(f'| {what} | {absolute:.1e} | {relative:.1e} |')
  pays = {mode: {b: where_the_scan_pays(rows, mode, b)
                 for b in args.batch_sizes} for mode in _MODES}
  print('\nThe associative scan is the faster one')
  for mode, from_length in pays.items():
    print(f'- {mode}: ' + ', '.join(
        f'B={b} ' + (f'from T={t}' if t else 'at none of these T')
        for b, t in from_length.items()))
  if args.output:
    with open(args.output, 'w', encoding='utf-8') as f:
      json.dump({'about': about, 'times': rows, 'scan_pays_from': pays,
                 'differences': differences}, f, indent=1)


if __name__ == '__main__':
  main()
