# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Breaks the core of V-trace in many ways; its tests must notice each.

  python tests/mutations.py [--jobs=2] [--first] [--only=REGULAR_EXPRESSION]

Each mutation is made in a copy of the package. Then tests/vtrace_test.py runs
there. Prints a table of the mutations in Markdown. The exit code is 1 if the
tests pass with a mutation, or fail without any.
"""

import argparse
import collections
from concurrent import futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MUTATED = os.path.join('scalable_agent', 'vtrace.py')
_TESTS = os.path.join('tests', 'vtrace_test.py')

# Hypothesis need not find the smallest example that fails.
_PROFILE = """
import hypothesis
hypothesis.settings.register_profile(
    'mutations', phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
hypothesis.settings.load_profile('mutations')
"""

# What is broken, text that occurs once, text that replaces it.
_MUTATIONS = (
    # The weights.
    ('rho not clipped',
     'tf.minimum(clip_rho_threshold, rhos)', 'rhos'),
    ('rho clipped from below',
     'tf.minimum(clip_rho_threshold, rhos)',
     'tf.maximum(clip_rho_threshold, rhos)'),
    ('c clipped at the threshold of rho',
     'tf.minimum(clip_c_threshold, rhos)',
     'tf.minimum(clip_rho_threshold, rhos)'),
    ('c not clipped',
     'tf.minimum(clip_c_threshold, rhos)', 'rhos'),
    ('c always clipped at 1',
     'tf.minimum(clip_c_threshold, rhos)', 'tf.minimum(rhos, 1.0)'),
    ('c clipped to the clipped rho',
     'tf.minimum(clip_c_threshold, rhos)',
     'tf.minimum(clip_c_threshold, tf.minimum(clip_rho_threshold, rhos))'),
    ('threshold None taken for 1',
     "float('inf') if value is None", '1.0 if value is None'),
    ('lambda left out',
     'rhos), lambda_)', 'rhos), tf.ones_like(lambda_))'),
    ('lambda squared',
     'rhos), lambda_)', 'rhos), lambda_ * lambda_)'),
    ('lambda 0 does not hide an infinite c',
     'tf.math.multiply_no_nan(tf.minimum(clip_c_threshold, rhos), lambda_)',
     'tf.minimum(clip_c_threshold, rhos) * lambda_'),
    ('behaviour and target policy swapped',
     'target_action_log_probs - behaviour_action_log_probs',
     'behaviour_action_log_probs - target_action_log_probs'),
    # The temporal differences.
    ('no discount in delta',
     'product(_shift(values, bootstrap_value), discounts) - values',
     '_shift(values, bootstrap_value) - values'),
    ('one gamma instead of the discounts in delta',
     'product(_shift(values, bootstrap_value), discounts) - values',
     'product(_shift(values, bootstrap_value), tf.reduce_max(discounts)) '
     '- values'),
    ('reward of the next step in delta',
     'rewards + product(', '_shift(rewards, rewards[-1]) + product('),
    ('bootstrap value left out',
     'bootstrap_value[tf.newaxis]]',
     'tf.zeros_like(bootstrap_value)[tf.newaxis]]'),
    ('last value instead of the bootstrap value',
     'bootstrap_value[tf.newaxis]]', 'values[-1:]]'),
    # The recursion.
    ('off by one in the product of c',
     'product(cs, discounts)', 'product(_shift(cs, cs[-1]), discounts)'),
    ('discount of the next step in the product of c',
     'product(cs, discounts)', 'product(cs, _shift(discounts, discounts[-1]))'),
    ('no discount in the product of c',
     'product(cs, discounts)', 'cs * tf.ones_like(discounts)'),
    ('one gamma instead of the discounts in the product of c',
     'product(cs, discounts)', 'product(cs, tf.reduce_max(discounts))'),
    ('bootstrap value counted twice',
     'initializer=tf.zeros_like(bootstrap_value)',
     'initializer=bootstrap_value'),
    ('forwards instead of backwards',
     'reverse=True', 'reverse=False'),
    ('values not added to the sums of the loop',
     'return values + vs_minus_values', 'return vs_minus_values'),
    ('associative scan: composed in the wrong order',
     'times(x[0], y[0]), y[1] + times(x[1], y[0])',
     'times(x[0], y[0]), x[1] + times(y[1], x[0])'),
    ('associative scan: factors not multiplied',
     'times(x[0], y[0]), y[1]', 'y[0], y[1]'),
    ('associative scan: infinite products times zero',
     'tf.where(x == 0, x, product(x, y))', 'product(x, y)'),
    ('associative scan: input not reversed',
     '(discounted_cs[::-1], deltas[::-1])', '(discounted_cs, deltas)'),
    ('associative scan: output not reversed',
     'reversed_sums[::-1]', 'reversed_sums'),
    # The advantages.
    ('V(x_{t+1}) instead of v_{t+1}',
     '_shift(vs, bootstrap_value)', '_shift(values, bootstrap_value)'),
    ('v_t instead of v_{t+1}',
     'vs_t_plus_1 = _shift(vs, bootstrap_value)', 'vs_t_plus_1 = vs'),
    ('v_t instead of V(x_t) as the baseline',
     '(qs - values)', '(qs - vs)'),
    ('advantage without a weight',
     'tf.minimum(clip_pg_rho_threshold, rhos) * (qs - values)', 'qs - values'),
    ('weight clipped at the threshold of rho',
     'tf.minimum(clip_pg_rho_threshold, rhos)',
     'tf.minimum(clip_rho_threshold, rhos)'),
    ('weight not clipped',
     'tf.minimum(clip_pg_rho_threshold, rhos)', 'rhos'),
    ('no discount in q',
     'tf.math.multiply_no_nan(vs_t_plus_1, discounts)', 'vs_t_plus_1'),
    ('lambda mixed the wrong way round',
     """(lambda_ * vs_t_plus_1
                   + (1 - lambda_) *""",
     """((1 - lambda_) * vs_t_plus_1
                   + lambda_ *"""),
    ('always mixed',
     'if mix_advantages:', 'if True:'),
    ('never mixed',
     'if mix_advantages:', 'if False:'),
    # What gradients and NaN must not pass.
    ('gradients not stopped',
     'tf.stop_gradient(x) for x in (', 'x for x in ('),
    ('gradients of log_rhos stopped',
     'log_rhos=log_rhos,', 'log_rhos=tf.stop_gradient(log_rhos),'),
    ('NaN passes a zero discount in delta and recursion',
     'product = tf.math.multiply_no_nan', 'product = tf.multiply'),
    ('NaN passes a zero discount in q',
     'tf.math.multiply_no_nan(vs_t_plus_1, discounts)',
     'vs_t_plus_1 * discounts'),
    ('infinite c passes a zero discount',
     'product(cs, discounts)', 'product(discounts, cs)'),
    ('NaN passes a zero discount in the loop',
     'product(after, step[0])', 'after * step[0]'),
    ('NaN passes a zero discount in the sums of the associative scan',
     'y[1] + times(x[1], y[0])', 'y[1] + x[1] * y[0]'),
    ('infinite c passes a zero discount in the associative scan',
     'return times(x[0], y[0])', 'return x[0] * y[0]'),
    # The types.
    ('float64 computed in float32',
     'return tf.cast(tensor, dtype)',
     'return tf.cast(tf.cast(tensor, tf.float32), dtype)'),
    ('Python floats rounded to float32',
     'value, dtype_hint=dtype if dtype.is_floating else None)', 'value)'),
)


def mutate(source: str, old: str, new: str) -> str:
  if source.count(old) != 1:
    raise ValueError(f'{old!r} occurs {source.count(old)} times in {_MUTATED}, '
                     'not once: mend the table of tests/mutations.py')
  return source.replace(old, new)


def failing_tests(source: str, *options: str) -> list[str]:
  """Returns the names of the tests that fail with another `vtrace.py`."""
  with tempfile.TemporaryDirectory() as root:
    ignore = shutil.ignore_patterns('__pycache__')
    for name in ('scalable_agent', 'tests'):
      shutil.copytree(os.path.join(_ROOT, name), os.path.join(root, name),
                      ignore=ignore)
    shutil.copy(os.path.join(_ROOT, 'pyproject.toml'), root)
    with open(os.path.join(root, _MUTATED), 'w', encoding='utf-8') as f:
      f.write(source)
    with open(os.path.join(root, 'mutations_profile.py'), 'w',
              encoding='utf-8') as f:
      f.write(_PROFILE)
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'mutations_profile', '-rf',
         '--tb=no', *options, _TESTS],
        cwd=root, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=dict(
            os.environ, PYTHONPATH=root, TF_CPP_MIN_LOG_LEVEL='2'))
  names = re.findall(r'^FAILED \S+::(\w+)', run.stdout, re.MULTILINE)
  # 1 says that tests failed; a mutation must not stop them from being run.
  if run.returncode not in (0, 1) or bool(names) != bool(run.returncode):
    raise RuntimeError(f'pytest returned {run.returncode}:\n{run.stdout}')
  return names


def _caught_by(names: list[str]) -> str:
  if not names:
    return '**nothing**'
  # A parameterised test has a number at the end of its name.
  tests = collections.Counter(name.rstrip('0123456789_') for name in names)
  count = f'{len(names)}: ' if len(names) > 1 else ''
  return count + ', '.join(list(tests)[:2]) + (
      ', ...' if len(tests) > 2 else '')


def main() -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--jobs', type=int, default=1, help='runs at a time')
  parser.add_argument('--first', action='store_true',
                      help='stop at the first test that fails: faster')
  parser.add_argument('--only', default='', help='mutations of this name')
  args = parser.parse_args()
  with open(os.path.join(_ROOT, _MUTATED), encoding='utf-8') as f:
    source = f.read()
  # All of them, before the first test runs.
  broken = {name: mutate(source, old, new) for name, old, new in _MUTATIONS}
  broken = {k: v for k, v in broken.items() if re.search(args.only, k)}
  failing = failing_tests(source)
  if failing:
    print(f'Unbroken, the tests fail already: {", ".join(failing)}')
    return 1
  survivors = 0
  print('| mutation | caught by |\n|---|---|',
        flush=True)
  with futures.ThreadPoolExecutor(args.jobs) as pool:
    test = lambda source: failing_tests(source, *['-x'][:args.first])
    for name, names in zip(broken, pool.map(test, broken.values())):
      print(f'| {name} | {_caught_by(names)} |', flush=True)
      survivors += not names
  print(f'\n{len(broken)} mutations, {survivors} not caught')
  return 1 if survivors else 0


if __name__ == '__main__':
  sys.exit(main())
