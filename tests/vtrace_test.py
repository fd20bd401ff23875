# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of V-trace against the paper's formula and against known numbers."""

import functools
import itertools
import os
import re
import subprocess
import sys

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
from scalable_agent import vtrace
import tensorflow as tf

_T, _B = 7, 4
_THRESHOLDS = (None, 0.6, 1.0, 1.7)


def _ground_truth(log_rhos, discounts, rewards, values, bootstrap_value,
                  clip_rho_threshold=1.0, clip_pg_rho_threshold=1.0,
                  clip_c_threshold=1.0, lambda_=1.0, mix_advantages=False):
  """The sums of the paper (equation 1, section 4.2) in float64, O(T^2)."""
  log_rhos, discounts, rewards, values, bootstrap_value = (
      np.asarray(x, np.float64)
      for x in (log_rhos, discounts, rewards, values, bootstrap_value))
  rhos = np.exp(log_rhos)
  clip = lambda threshold: np.minimum(
      rhos, np.inf if threshold is None else threshold)
  cs = lambda_ * clip(clip_c_threshold)
  length = len(values)
  values_and_bootstrap = np.concatenate([values, bootstrap_value[None]])

  def delta(t):
    return clip(clip_rho_threshold)[t] * (
        rewards[t] + discounts[t] * values_and_bootstrap[t + 1] - values[t])

  def target(s):
    if s == length:
      return bootstrap_value
    total = values[s]
    for t in range(s, length):
      product = np.prod([discounts[i] * cs[i] for i in range(s, t)], axis=0)
      total = total + product * delta(t)
    return total

  def advantage(s):
    after = target(s + 1)
    if mix_advantages:
      share = lambda_[s] if np.ndim(lambda_) else lambda_
      after = share * after + (1 - share) * values_and_bootstrap[s + 1]
    return clip(clip_pg_rho_threshold)[s] * (
        rewards[s] + discounts[s] * after - values[s])

  return vtrace.VTraceReturns(
      vs=np.stack([target(s) for s in range(length)]),
      pg_advantages=np.stack([advantage(s) for s in range(length)]))


def _random_arguments(seed, batch_shape=(_B,), weight_shape=None, length=_T):
  """Arguments that vary along every axis, with episode ends inside."""
  rng = np.random.RandomState(seed)
  shape = (length,) + tuple(batch_shape)
  weight_shape = shape if weight_shape is None else (length,) + weight_shape
  discounts = rng.uniform(0.5, 1.0, weight_shape)
  discounts[rng.uniform(size=weight_shape) < 0.2] = 0.0
  return dict(
      log_rhos=rng.normal(0.0, 0.8, weight_shape),
      discounts=discounts,
      rewards=rng.normal(0.0, 2.0, shape),
      values=rng.normal(0.0, 3.0, shape),
      bootstrap_value=rng.normal(0.0, 3.0, batch_shape))


def _column(x):
  return np.reshape(x, [-1, 1]).astype(np.float32)


class VTraceTest(tf.test.TestCase, parameterized.TestCase):

  def _assert_returns(self, returns, vs, pg_advantages):
    self.assertIsInstance(returns, vtrace.VTraceReturns)
    for found, expected in zip(returns, (vs, pg_advantages)):
      self.assertEqual(found.dtype, tf.float32)
      self.assertAllClose(expected, found, rtol=2e-5, atol=2e-5)

  @parameterized.product(
      lambda_=(0.0, 0.7, 1.0), mix_advantages=(False, True),
      associative_scan=(False, True),
      shapes=(dict(), dict(batch_shape=(2, 3), weight_shape=(2, 1))))
  def test_formula(self, lambda_, mix_advantages, associative_scan, shapes):
    arguments = _random_arguments(0, **shapes)
    # All pairs of thresholds; `test_formula_at_random` draws all three.
    for i, j in itertools.product(range(len(_THRESHOLDS)), repeat=2):
      options = dict(
          clip_rho_threshold=_THRESHOLDS[i],
          clip_pg_rho_threshold=_THRESHOLDS[j],
          clip_c_threshold=_THRESHOLDS[(i + j) % len(_THRESHOLDS)],
          lambda_=lambda_, mix_advantages=mix_advantages)
      self._assert_returns(
          vtrace.from_importance_weights(
              **arguments, **options, associative_scan=associative_scan),
          *_ground_truth(**arguments, **options))

  @hypothesis.settings(max_examples=40, deadline=None, derandomize=True)
  @hypothesis.given(
      seed=st.integers(0, 2**32 - 1), length=st.integers(1, 12),
      shapes=st.sampled_from([
          ((), None), ((1,), None), ((3,), None), ((2, 3), None),
          ((2, 3), (2, 1)), ((2, 3), (1, 3)), ((2, 3), (1, 1))]),
      thresholds=st.tuples(*[st.none() | st.floats(0.1, 5.0)] * 3),
      lambda_=st.floats(0.0, 1.0), mix_advantages=st.booleans(),
      associative_scan=st.booleans())
  @pytest.mark.slow
  def test_formula_at_random(self, seed, length, shapes, thresholds, lambda_,
                             mix_advantages, associative_scan):
    arguments = _random_arguments(seed, *shapes, length=length)
    options = dict(zip(('clip_rho_threshold', 'clip_pg_rho_threshold',
                        'clip_c_threshold'), thresholds),
                   lambda_=lambda_, mix_advantages=mix_advantages)
    found = vtrace.from_importance_weights(
        **arguments, **options, associative_scan=associative_scan,
        dtype=tf.float64)
    for output, expected in zip(found, _ground_truth(**arguments, **options)):
      self.assertEqual(output.dtype, tf.float64)
      self.assertAllClose(expected, output, rtol=1e-12, atol=1e-12)

  @parameterized.product(
      mix_advantages=(False, True), associative_scan=(False, True),
      shapes=(dict(), dict(batch_shape=(2, 3), weight_shape=(2, 1))),
      one_per=('value', 'weight'))
  def test_lambda_of_each_step(self, mix_advantages, associative_scan, shapes,
                               one_per):
    arguments = _random_arguments(16, **shapes)
    like = arguments['values' if one_per == 'value' else 'discounts']
    lambda_ = np.random.RandomState(17).uniform(size=like.shape)
    lambda_[lambda_ < 0.2] = 0.0
    options = dict(clip_c_threshold=1.7, lambda_=lambda_,
                   mix_advantages=mix_advantages)
    expected = _ground_truth(**arguments, **options)
    found = vtrace.from_importance_weights(
        **arguments, **options, associative_scan=associative_scan,
        dtype=tf.float64)
    for wanted, output in zip(expected, found):
      self.assertAllClose(wanted, output, rtol=1e-12, atol=1e-12)

  def test_lambda_zero_ends_the_trace_there(self):
    arguments = _random_arguments(18)
    arguments['discounts'][:] = 0.9
    lambda_ = np.ones([_T, _B])
    lambda_[2, 1] = 0.0
    returns = lambda: vtrace.from_importance_weights(
        **arguments, lambda_=lambda_).vs.numpy()
    before = returns()
    arguments['rewards'][3, 1] += 100.0
    changed = np.zeros([_T, _B], bool)
    changed[3, 1] = True
    self.assertAllEqual(changed, before != returns())

  @parameterized.parameters(1, 2, 3, 20, 101)
  def test_associative_scan_is_the_loop(self, length):
    arguments = _random_arguments(12, length=length)
    loop, scan = (
        vtrace.from_importance_weights(**arguments, associative_scan=scan)
        for scan in (False, True))
    self.assertAllClose(loop, scan, rtol=1e-5, atol=1e-5)

  @parameterized.parameters(
      # Products of c and discount overflow float32, without a discount of 0,
      # and before and after one. Almost all that they multiply is 0.
      dict(length=1000, ends=[]), dict(length=200, ends=[50]),
      dict(length=200, ends=[0, 199]), dict(length=300, ends=[100, 101, 250]))
  def test_associative_scan_survives_infinite_products(self, length, ends):
    shape = [length, 2]
    discounts = np.full(shape, 0.99)
    discounts[ends] = 0.0
    rewards = np.zeros(shape)
    rewards[[0, 40]] = 1e-30, 1e-20
    arguments = (np.full(shape, 2.0), discounts, rewards, np.zeros(shape),
                 np.zeros([2]))
    loop, scan = (
        vtrace.from_importance_weights(
            *arguments, clip_c_threshold=5.0, associative_scan=associative)
        for associative in (False, True))
    self.assertTrue(np.all(np.isfinite(loop.vs)))
    self.assertAllClose(loop, scan, rtol=1e-4)

  def test_lambda_zero_looks_one_step_ahead(self):
    arguments = _random_arguments(13)
    values_t_plus_1 = np.concatenate(
        [arguments['values'][1:], arguments['bootstrap_value'][None]])
    td_errors = (arguments['rewards'] + arguments['discounts'] * values_t_plus_1
                 - arguments['values'])
    found = vtrace.from_importance_weights(**arguments, lambda_=0.0)
    self.assertAllClose(
        arguments['values']
        + np.minimum(np.exp(arguments['log_rhos']), 1) * td_errors, found.vs)

  @parameterized.parameters(
      dict(batch_shape=()),
      dict(batch_shape=(1,)),
      dict(batch_shape=(_B, 3)),
      dict(batch_shape=(_B, 3), weight_shape=(_B, 1)),
      dict(batch_shape=(_B, 3), weight_shape=(1, 1)),
      dict(batch_shape=(2, 3, 2), weight_shape=(2, 1, 2)))
  def test_axes_after_time(self, **shapes):
    arguments = _random_arguments(5, **shapes)
    self._assert_returns(vtrace.from_importance_weights(**arguments),
                         *_ground_truth(**arguments))

  def test_one_step(self):
    arguments = {k: v[:1] if k != 'bootstrap_value' else v
                 for k, v in _random_arguments(6).items()}
    self._assert_returns(vtrace.from_importance_weights(**arguments),
                         *_ground_truth(**arguments))

  @parameterized.parameters(
      ([.9, .9, 0], 1.0, 1.0, [1.56, 1.8, 2.0], [1.06, .8, 2.5]),
      ([.9, .9, 0], None, None, [1.41375, 1.475, 3.25],
       [.91375, 3.85, 3.75]),
      ([.9, .9, 0], None, 1.0, [1.41375, 1.475, 3.25], [.91375, 1.925, 2.5]),
      ([.9, .9, 0], .25, .1, [.94, 1.2, .125], [.158, -.08875, .25]),
      ([.9, .9, .9], 1.0, 1.0, [2.6535, 4.23, 4.7], [2.1535, 3.23, 5.2]))
  def test_worked_example(self, discounts, clip_rho, clip_pg_rho, vs, pg):
    returns = vtrace.from_importance_weights(
        _column(np.log([.5, 2, 1.5])), _column(discounts), _column([1, 0, 2]),
        _column([.5, 1, -.5]), np.float32([3]), clip_rho, clip_pg_rho)
    self._assert_returns(returns, _column(vs), _column(pg))

  def test_on_policy_targets_are_n_step_returns(self):
    self._assert_returns(
        vtrace.from_importance_weights(
            _column([0, 0, 0]), _column([.9] * 3), _column([1, 0, 2]),
            _column([.5, 1, -.5]), np.float32([3])),
        _column([4.807, 4.23, 4.7]), _column([4.307, 3.23, 5.2]))

  @parameterized.parameters(
      (1, [.200181851944, 2.709682447052, 8.513627929667, 11.93239657452, 7.33],
       [.200181851944, 1.709682447052, 6.513627929667, 10.876614222809, 1.98]),
      (2, [.382590270491, .867841049576, 5.178781844083, 4.928884779577,
           19.697778797727, 17.379278196006, 30.198560386621, 27.509507102236,
           22.13, 24.48],
       [.382590270491, .367841049576, 4.178781844083, 3.428884779577,
        17.697778797727, 14.879278196006, 37.783745360635, 31.9352,
        10.78, 11.88]))
  def test_numbers_of_the_reference(self, batch_size, vs, pg_advantages):
    shape = [5, batch_size]
    steps = np.arange(5 * batch_size).reshape(shape)
    returns = vtrace.from_importance_weights(
        log_rhos=5 * (steps / steps.size - 0.5),
        discounts=np.tile(0.9 / (np.arange(batch_size) + 1), [5, 1]),
        rewards=steps,
        values=steps / batch_size,
        bootstrap_value=np.arange(batch_size) + 1,
        clip_rho_threshold=3.7,
        clip_pg_rho_threshold=2.2)
    self._assert_returns(returns, np.reshape(vs, shape),
                         np.reshape(pg_advantages, shape))

  def test_trailing_axis_of_the_reference(self):
    returns = vtrace.from_importance_weights(
        np.log([[[.5]], [[2.]]]), np.full([2, 1, 1], .9),
        [[[1., 0.]], [[0., 1.]]], [[[0., 1.]], [[2., -1.]]], [[1., 2.]])
    self._assert_returns(returns, [[[.905, 1.76]], [[.9, 2.8]]],
                         [[[.905, .76]], [[-1.1, 3.8]]])

  def test_zero_discount_hides_the_future(self):
    arguments = _random_arguments(7)
    arguments['discounts'][3] = 0.0
    expected = vtrace.from_importance_weights(**arguments)
    rng = np.random.RandomState(8)
    for name in ('log_rhos', 'discounts', 'rewards', 'values'):
      arguments[name][4:] += rng.uniform(1.0, 2.0, [_T - 4, _B])
    arguments['bootstrap_value'] += 100.0
    found = vtrace.from_importance_weights(**arguments)
    for before, after in zip(expected, found):
      self.assertAllEqual(before[:4], after[:4])
      self.assertTrue(np.all(before[4:] != after[4:]))

  @parameterized.product(
      associative_scan=(False, True), jit_compile=(False, True),
      broken=(np.nan, np.inf, -np.inf))
  def test_zero_discount_hides_what_is_not_finite(
      self, associative_scan, jit_compile, broken):
    arguments = _random_arguments(7)
    arguments['discounts'][3] = 0.0
    options = dict(clip_rho_threshold=None, clip_pg_rho_threshold=None,
                   clip_c_threshold=None, associative_scan=associative_scan)
    expected = vtrace.from_importance_weights(**arguments, **options)
    arguments['log_rhos'][4:] = 200.0
    arguments['rewards'][4:] = broken
    arguments['values'][4:] = broken
    arguments['bootstrap_value'][:] = broken
    found = tf.function(
        lambda: vtrace.from_importance_weights(**arguments, **options),
        jit_compile=jit_compile)()
    for before, after in zip(expected, found):
      self.assertAllClose(before[:4], after[:4], rtol=1e-5, atol=1e-5)
      self.assertFalse(np.any(np.isfinite(after[4:])))

  def test_infinite_weight_where_the_episode_ends(self):
    found = vtrace.from_importance_weights(
        [[200.]], [[0.]], [[1.]], [[0.]], [1.], clip_c_threshold=None)
    self._assert_returns(found, [[1.]], [[1.]])

  def test_lambda_zero_hides_an_infinite_trace(self):
    found = vtrace.from_importance_weights(
        [[200.], [200.]], [[.9], [.9]], [[1.], [2.]], [[0.], [1.]], [1.],
        clip_c_threshold=None, lambda_=0.0)
    self._assert_returns(found, [[1.9], [2.9]], [[1 + .9 * 2.9], [1.9]])

  def test_lambda_zero_hides_an_infinite_target_of_advantages(self):
    found = vtrace.from_importance_weights(
        [[0.], [200.]], [[.9], [.9]], [[1.], [2.]], [[0.], [1.]], [1.],
        None, lambda_=[[0.], [1.]], mix_advantages=True)
    self._assert_returns(found, [[1.9], [np.inf]], [[1.9], [1.9]])

  def test_infinite_weights(self):
    arguments = [[[x]] for x in (200., .9, 1., 0.)] + [[1.]]
    self._assert_returns(vtrace.from_importance_weights(*arguments),
                         [[1.9]], [[1.9]])
    self._assert_returns(
        vtrace.from_importance_weights(*arguments, None, None),
        [[np.inf]], [[np.inf]])
    self._assert_returns(
        vtrace.from_importance_weights(*arguments, 1.0, None),
        [[1.9]], [[np.inf]])

  @parameterized.parameters(
      ('discounts', [1], 'must have rank 2'),
      ('rewards', [1, 1, 1], 'must have rank 2'),
      ('values', [1], r'values: Shape \(1,\) must have rank 2 as log_rhos has '
       r'shape \(1, 1\)'),
      ('bootstrap_value', [1, 1], 'must have rank 1'),
      ('clip_rho_threshold', [1], 'must have rank 0'),
      ('clip_pg_rho_threshold', [1], 'must have rank 0'),
      ('clip_c_threshold', [1], 'must have rank 0'),
      ('lambda_', [1], 'must have rank 2'),
      ('log_rhos', [], 'must have rank at least 1'))
  def test_wrong_rank(self, name, shape, message):
    arguments = dict(log_rhos=[[0.]], discounts=[[0.]], rewards=[[0.]],
                     values=[[0.]], bootstrap_value=[0.])
    arguments[name] = np.zeros(shape, np.float32)
    with self.assertRaisesRegex(ValueError, message):
      vtrace.from_importance_weights(**arguments)

  @parameterized.parameters(
      ('log_rhos', [_T, _B + 1]), ('log_rhos', [1, _B]),
      ('discounts', [_T + 1, _B]), ('rewards', [_T, 2]), ('lambda_', [1, _B]),
      ('bootstrap_value', [_B + 1]), ('bootstrap_value', [1]))
  def test_wrong_shape_is_found_when_tracing(self, name, shape):
    specs = {k: tf.TensorSpec(v.shape) for k, v in _random_arguments(0).items()}
    specs[name] = tf.TensorSpec(shape)
    with self.assertRaisesRegex(
        ValueError, re.escape(
            f'{name}: Shape {tuple(shape)} does not fit shape ({_T}, {_B}) of '
            'values')):
      tf.function(vtrace.from_importance_weights).get_concrete_function(**specs)

  @parameterized.parameters(
      ('log_rhos', tf.complex64), ('discounts', tf.string),
      ('rewards', tf.string), ('values', tf.complex64),
      ('bootstrap_value', tf.string))
  def test_wrong_dtype(self, name, dtype):
    arguments = {k: tf.constant(v, tf.float32)
                 for k, v in _random_arguments(0).items()}
    shape = arguments[name].shape
    arguments[name] = tf.zeros(shape, dtype)
    with self.assertRaisesRegex(
        ValueError, re.escape(f'{name}: dtype {dtype.name} of shape {shape} '
                              'must be real numbers')):
      vtrace.from_importance_weights(**arguments)

  def test_complex_numbers_of_numpy(self):
    arguments = _random_arguments(0)
    arguments['rewards'] = arguments['rewards'] + 1j
    with self.assertRaisesRegex(ValueError, 'rewards: dtype complex128 of'):
      vtrace.from_importance_weights(**arguments)

  def test_float64_keeps_all_digits(self):
    # 0.1 and 0.9 are other numbers in float32.
    found = vtrace.from_importance_weights(
        [[0.1]], [[0.9]], [[0.1]], [[0.1]], [0.1], clip_rho_threshold=0.1,
        dtype=tf.float64)
    self.assertAllClose([[0.1 + 0.1 * (0.1 + 0.9 * 0.1 - 0.1)]], found.vs,
                        rtol=1e-15, atol=0)

  def test_wrong_rank_of_bootstrap_with_trailing_axis(self):
    x = tf.zeros([2, 1, 1])
    with self.assertRaisesRegex(ValueError, 'must have rank 2'):
      vtrace.from_importance_weights(x, x, x, x, tf.zeros([1]))

  @parameterized.parameters('rewards', 'bootstrap_value')
  def test_wrong_rank_of_unknown_shape_is_found_when_tracing(self, wrong):
    ranks = dict(log_rhos=2, discounts=2, rewards=2, values=2,
                 bootstrap_value=1)
    ranks[wrong] += 1
    specs = {k: tf.TensorSpec([None] * r) for k, r in ranks.items()}
    with self.assertRaisesRegex(ValueError,
                                f'{wrong}.*must have rank {ranks[wrong] - 1}'):
      tf.function(vtrace.from_importance_weights).get_concrete_function(**specs)

  @parameterized.product(
      jit_compile=(False, True),
      case=(('known', False), ('known', True), ('unknown', False),
            ('unknown_time', False)))
  def test_compiled_is_eager(self, jit_compile, case):
    spec, associative_scan = case
    arguments = {k: v.astype(np.float32)
                 for k, v in _random_arguments(9, (3, 2), (3, 1)).items()}
    expected = vtrace.from_importance_weights(**arguments)
    specs = {k: tf.TensorSpec(
        {'known': v.shape, 'unknown': [None] * v.ndim,
         'unknown_time': (None,) + v.shape[1:] if k != 'bootstrap_value'
                         else v.shape}[spec]) for k, v in arguments.items()}
    compiled = tf.function(
        functools.partial(vtrace.from_importance_weights,
                          associative_scan=associative_scan),
        jit_compile=jit_compile).get_concrete_function(**specs)
    found = compiled(**{k: tf.constant(v) for k, v in arguments.items()})
    self._assert_returns(found, *expected)

  def test_associative_scan_needs_shapes(self):
    x = tf.TensorSpec([3, None])
    with self.assertRaisesRegex(
        ValueError, r'values: Shape \(3, None\) must be known statically'):
      tf.function(functools.partial(
          vtrace.from_importance_weights, associative_scan=True)
      ).get_concrete_function(x, x, x, x, tf.TensorSpec([None]))

  def test_unknown_rank(self):
    arguments = _random_arguments(10)
    found = tf.function(
        lambda *args: vtrace.from_importance_weights(*args),
        input_signature=[tf.TensorSpec(None)] * 5)(
            *(x.astype(np.float32) for x in arguments.values()))
    self._assert_returns(found, *_ground_truth(**arguments))

  def test_no_gradient(self):
    arguments = {k: tf.Variable(v, dtype=tf.float32)
                 for k, v in _random_arguments(11).items()}
    options = dict(clip_rho_threshold=tf.Variable(0.9),
                   clip_pg_rho_threshold=tf.Variable(1.1),
                   clip_c_threshold=tf.Variable(0.8), lambda_=tf.Variable(0.7))
    inputs = dict(arguments, **options)
    for switches in (dict(), dict(mix_advantages=True, associative_scan=True)):
      with tf.GradientTape(persistent=True) as tape:
        returns = vtrace.from_importance_weights(**inputs, **switches)
      for output in returns:
        self.assertEqual(tape.gradient(output, inputs), dict.fromkeys(inputs))

  @parameterized.parameters(False, True)
  def test_a_tape_around_a_function_differentiates_no_scan(self, jit_compile):
    arguments = {k: tf.Variable(v, dtype=tf.float32)
                 for k, v in _random_arguments(11).items()}
    function = tf.function(
        lambda: vtrace.from_importance_weights(**arguments),
        jit_compile=jit_compile)
    with tf.GradientTape(persistent=True) as tape:
      returns = function()
    for output in returns:
      for gradient in tape.gradient(output, [*arguments.values()]):
        self.assertFalse(gradient is not None and np.any(gradient))
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(function().vs * arguments['values'])
    self.assertAllClose(
        tape.gradient(loss, arguments['values']), function().vs)

  @parameterized.parameters(False, True)
  def test_no_step(self, jit_compile):
    arguments = {name: np.zeros([0, _B], np.float32)
                 for name in ('log_rhos', 'discounts', 'rewards', 'values')}
    arguments['bootstrap_value'] = np.ones([_B], np.float32)
    for _ in range(2):
      function = tf.function(
          lambda: vtrace.from_importance_weights(**arguments),
          jit_compile=jit_compile)
      for returns in function(), vtrace.from_importance_weights(**arguments):
        self.assertAllEqual([x.shape for x in returns], [(0, _B)] * 2)
      vtrace.compute_vs.get_concrete_function(*(
          tf.TensorSpec([None, None]) for _ in range(5)), tf.TensorSpec([None]))

  @parameterized.parameters(0, 1, 7)
  def test_unknown_number_of_steps(self, length):
    arguments = _random_arguments(3, length=length)
    order = ('log_rhos', 'discounts', 'rewards', 'values', 'bootstrap_value')
    function = tf.function(
        lambda *args: vtrace.from_importance_weights(*args),
        input_signature=[tf.TensorSpec([None, None])] * 4
        + [tf.TensorSpec([None])])
    returns = function(*(
        arguments[name].astype(np.float32) for name in order))
    self._assert_returns(returns, *(
        _ground_truth(**arguments) if length else [np.zeros([0, _B])] * 2))

  @pytest.mark.storm
  def test_unknown_sizes_in_a_program_of_tensorflow_1(self):
    program = '''
import numpy as np, tensorflow as tf
tf.compat.v1.disable_v2_behavior()
from scalable_agent import vtrace
one = lambda *shape: tf.compat.v1.placeholder_with_default(
    np.ones(shape, 'f'), [None] * len(shape))
returns = vtrace.from_importance_weights(
    0 * one(2, 3), one(2, 3), one(2, 3), one(2, 3), one(3))
print(tf.compat.v1.Session().run(returns.vs)[0, 0])
'''
    output = subprocess.run(
        [sys.executable, '-c', program], stdout=subprocess.PIPE, text=True,
        check=True, env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
    self.assertEqual(float(output.stdout), 3)

  def test_unknown_sizes_with_the_shapes_of_tensorflow_1(self):
    tf1 = tf.compat.v1
    self.addCleanup(tf1.enable_v2_tensorshape)
    self.addCleanup(tf1.enable_control_flow_v2)
    tf1.disable_v2_tensorshape()
    tf1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
      one = lambda *shape: tf1.placeholder_with_default(
          np.ones(shape, 'f'), [None] * len(shape))
      returns = vtrace.from_importance_weights(
          0 * one(2, 3), one(2, 3), one(2, 3), one(2, 3), one(3))
      np.testing.assert_array_equal(
          session.run(returns.vs), [[3, 3, 3], [2, 2, 2]])

  @parameterized.parameters(1, 20, 64, 65)
  def test_eager_results_are_those_of_a_graph(self, length):
    # Eagerly, up to 64 steps have an operation each.
    rng = np.random.RandomState(length)
    arguments = [tf.constant(rng.normal(size=shape), tf.float32) for shape in (
        (length, 3, 1), (length, 3, 1), *[(length, 3, 2)] * 2, (3, 2))]
    eager = vtrace.from_importance_weights(*arguments, lambda_=0.9)
    graph = tf.function(vtrace.from_importance_weights)(
        *arguments, lambda_=0.9)
    for found, expected in zip(eager, graph):
      np.testing.assert_array_equal(found, expected)

  def test_eager_calls_share_no_trace(self):
    for length, values_shape in ((2, (3,)), (4, (3,)), (2, (5,))):
      arguments = _random_arguments(21, values_shape, length=length)
      arguments['log_rhos'] += 1.0  # So that all thresholds count.
      for dtype, options in itertools.product(
          (tf.float32, tf.float64),
          (dict(), dict(clip_rho_threshold=2.0), dict(clip_rho_threshold=None),
           dict(clip_pg_rho_threshold=2.0), dict(clip_c_threshold=2.0),
           dict(lambda_=0.5), dict(lambda_=0.5, mix_advantages=True))):
        for _ in range(2):  # The second call uses the trace of the first.
          found = vtrace.from_importance_weights(
              **arguments, **options, dtype=dtype)
          for output, expected in zip(
              found, _ground_truth(**arguments, **options)):
            self.assertEqual(output.dtype, dtype)
            self.assertAllClose(expected, output, rtol=1e-5, atol=1e-5)

  @parameterized.parameters(False, True)
  def test_calls_elsewhere(self, in_strategy):
    arguments = {k: tf.constant(v, tf.float32)
                 for k, v in _random_arguments(22).items()}
    expected = vtrace.from_importance_weights(**arguments)
    call = lambda: vtrace.from_importance_weights(**arguments)
    if in_strategy:
      found = tf.distribute.OneDeviceStrategy('CPU:0').run(call)
    else:
      tf.config.run_functions_eagerly(True)
      try:
        found = call()
      finally:
        tf.config.run_functions_eagerly(False)
    self.assertAllClose(expected, found)

  @parameterized.parameters((False, False), (True, False), (False, True))
  def test_gradients_of_compute_vs(self, associative_scan, is_unrolled):
    rng = np.random.RandomState(14)
    arguments = [tf.constant(rng.uniform(0.5, 1.5, [4, 2])) for _ in range(5)]
    arguments.append(tf.constant(rng.uniform(0.5, 1.5, [2])))
    theoretical, numerical = tf.test.compute_gradient(
        lambda *x: vtrace.compute_vs(
            *x, associative_scan, is_unrolled), arguments,
        delta=1e-4)
    for found, expected in zip(theoretical, numerical):
      self.assertTrue(np.any(expected != 0))
      self.assertAllClose(expected, found, rtol=1e-5, atol=1e-5)


class VTraceFromLogitsTest(tf.test.TestCase, parameterized.TestCase):

  def _arguments(self, **changes):
    arguments = dict(
        behaviour_policy_logits=np.float32([[[0, 0]], [[1, -1]]]),
        target_policy_logits=np.float32([[[1, 0]], [[0, 2]]]),
        actions=np.int32([[0], [1]]),
        discounts=np.float32([[.9], [.9]]),
        rewards=np.float32([[1], [-1]]),
        values=np.float32([[.2], [.4]]),
        bootstrap_value=np.float32([.6]))
    return dict(arguments, **changes)

  @parameterized.parameters(
      ([1, 2, 3], [-2.407605964444, -1.407605964444, -.407605964444]),
      ([.5, -1, 2, 0],
       [-1.84234958239, -3.34234958239, -.34234958239, -2.34234958239]))
  def test_log_probs(self, logits, expected):
    num_actions = len(logits)
    found = vtrace.log_probs_from_logits_and_actions(
        np.broadcast_to(logits, [1, num_actions, num_actions]),
        np.arange(num_actions)[None])
    self.assertEqual(found.dtype, tf.float32)
    self.assertAllClose([expected], found, rtol=1e-6)

  def test_log_probs_vary_along_every_axis(self):
    rng = np.random.RandomState(0)
    logits = rng.normal(0.0, 3.0, [_T, _B, 5])
    actions = rng.randint(5, size=[_T, _B])
    log_probs = logits - np.log(np.sum(np.exp(logits), -1, keepdims=True))
    self.assertAllClose(
        [[log_probs[t, b, actions[t, b]] for b in range(_B)]
         for t in range(_T)],
        vtrace.log_probs_from_logits_and_actions(logits, actions))

  def test_log_probs_of_extreme_logits(self):
    found = vtrace.log_probs_from_logits_and_actions(
        [[[1e4, 0.0], [1e4, 0.0]]], [[0, 1]])
    self.assertAllEqual([[0.0, -1e4]], found)

  def test_log_probs_of_wrong_rank(self):
    with self.assertRaisesRegex(ValueError, 'must have rank 3'):
      vtrace.log_probs_from_logits_and_actions(tf.zeros([1, 2]), [[0]])
    with self.assertRaisesRegex(ValueError, 'must have rank 2'):
      vtrace.log_probs_from_logits_and_actions(tf.zeros([1, 1, 2]), [0])

  def test_log_probs_compare_shapes_when_the_graph_runs(self):
    function = tf.function(
        vtrace.log_probs_from_logits_and_actions, input_signature=[
            tf.TensorSpec([None, None, 2]),
            tf.TensorSpec([None, None], tf.int32)])
    logits, actions = tf.zeros([3, 4, 2]), tf.zeros([3, 4], tf.int32)
    self.assertAllClose(np.full([3, 4], np.log(.5)), function(logits, actions))
    with self.assertRaises(tf.errors.InvalidArgumentError):
      function(logits, tf.transpose(actions))

  @parameterized.parameters(
      (-1, 'i4'), (2, 'i4'), (2, 'i8'), (2**32, 'i8'), (-2**32, 'i8'))
  def test_action_out_of_range(self, action, dtype):
    with tf.device('CPU'), self.assertRaises(tf.errors.InvalidArgumentError):
      vtrace.log_probs_from_logits_and_actions(
          tf.zeros([1, 1, 2]), np.array([[action]], dtype))

  @parameterized.parameters(None, False, True)
  def test_worked_example(self, jit_compile):
    function = vtrace.from_logits if jit_compile is None else tf.function(
        vtrace.from_logits, jit_compile=jit_compile)
    found = function(**self._arguments())
    self.assertIsInstance(found, vtrace.VTraceFromLogitsReturns)
    self.assertAllClose(_column([.586, -.46]), found.vs)
    self.assertAllClose(_column([.386, -.86]), found.pg_advantages)
    self.assertAllClose(_column([.379885493042, 2.0]), found.log_rhos)
    self.assertAllClose(_column([-.69314718056, -2.126928011043]),
                        found.behaviour_action_log_probs)
    self.assertAllClose(_column([-.313261687518, -.126928011043]),
                        found.target_action_log_probs)

  def test_fields_and_positional_arguments(self):
    self.assertEqual(vtrace.VTraceReturns._fields, ('vs', 'pg_advantages'))
    self.assertEqual(
        vtrace.VTraceFromLogitsReturns._fields,
        ('vs', 'pg_advantages', 'log_rhos', 'behaviour_action_log_probs',
         'target_action_log_probs'))
    self.assertAllClose(
        vtrace.from_logits(**self._arguments(), clip_rho_threshold=1.2,
                           clip_pg_rho_threshold=1.4),
        vtrace.from_logits(*self._arguments().values(), 1.2, 1.4, 'name'))

  def test_thresholds_reach_the_weights(self):
    arguments = self._arguments()
    for clip_rho, clip_pg_rho in itertools.product(_THRESHOLDS, _THRESHOLDS):
      found = vtrace.from_logits(**arguments, clip_rho_threshold=clip_rho,
                                 clip_pg_rho_threshold=clip_pg_rho)
      vs, pg_advantages = _ground_truth(
          found.log_rhos, arguments['discounts'], arguments['rewards'],
          arguments['values'], arguments['bootstrap_value'], clip_rho,
          clip_pg_rho)
      self.assertAllClose(vs, found.vs)
      self.assertAllClose(pg_advantages, found.pg_advantages)

  @parameterized.parameters(np.float16, np.float64, np.int64)
  def test_outputs_are_float32(self, dtype):
    arguments = {k: tf.constant(v.astype(dtype) if k != 'actions' else v)
                 for k, v in self._arguments().items()}
    for output in vtrace.from_logits(**arguments):
      self.assertEqual(output.dtype, tf.float32)

  @parameterized.parameters(
      ('behaviour_policy_logits', [2, 2], 'must have rank 3'),
      ('target_policy_logits', [2, 2], 'must have rank 3'),
      ('actions', [2, 1, 1], 'must have rank 2'),
      ('discounts', [2, 1, 1], 'must have rank 2'),
      ('bootstrap_value', [1, 1], 'must have rank 1'),
      ('clip_rho_threshold', [1], 'must have rank 0'),
      ('clip_pg_rho_threshold', [1], 'must have rank 0'))
  def test_wrong_rank(self, name, shape, message):
    zeros = tf.zeros(shape, tf.int32 if name == 'actions' else tf.float32)
    with self.assertRaisesRegex(ValueError, message):
      vtrace.from_logits(**self._arguments(**{name: zeros}))

  @parameterized.parameters(
      (dict(target_policy_logits=tf.zeros([2, 1, 3])),
       'target_policy_logits: Shape (2, 1, 3) does not fit shape (2, 1, 2) of '
       'behaviour_policy_logits'),
      (dict(dtype=tf.float16), 'dtype: float16 must be float32 or float64'),
      (dict(actions=[[0, 1], [1, 0]]),
       'actions: Shape (2, 2) does not fit shape (2, 1, 2) of policy_logits'),
      (dict(actions=[[0.0], [1.0]]),
       'actions: dtype float32 of shape (2, 1) must be integers'),
      (dict(behaviour_policy_logits=tf.fill([2, 1, 2], 'a')),
       'policy_logits: dtype string of shape (2, 1, 2) must be real numbers'),
      (dict(rewards=[[1.0]]),
       'rewards: Shape (1, 1) does not fit shape (2, 1) of values'))
  def test_wrong_shape_or_dtype(self, changes, message):
    with self.assertRaisesRegex(ValueError, re.escape(message)):
      vtrace.from_logits(**self._arguments(**changes))

  def test_options_reach_the_recursion(self):
    arguments = self._arguments()
    options = dict(clip_rho_threshold=1.2, clip_pg_rho_threshold=1.4,
                   clip_c_threshold=3.0, lambda_=0.6, mix_advantages=True)
    found = vtrace.from_logits(**arguments, **options, dtype=tf.float64)
    expected = _ground_truth(
        found.log_rhos, arguments['discounts'], arguments['rewards'],
        arguments['values'], arguments['bootstrap_value'], **options)
    for output, wanted in zip(found[:2], expected):
      self.assertEqual(output.dtype, tf.float64)
      self.assertAllClose(wanted, output, rtol=1e-12, atol=1e-12)
    del arguments['actions']
    arguments['behaviour_policy_logits'] = found.behaviour_action_log_probs
    arguments['target_policy_logits'] = found.target_action_log_probs
    self.assertAllClose(
        found, vtrace.from_action_log_probs(
            *arguments.values(), **options, associative_scan=True,
            dtype=tf.float64), rtol=1e-12, atol=1e-12)

  def test_log_probs_of_different_shapes(self):
    with self.assertRaisesRegex(
        ValueError, r'target_action_log_probs: Shape \(2, 1\) does not fit '
        r'shape \(2, 3\) of behaviour_action_log_probs'):
      vtrace.from_action_log_probs(
          tf.zeros([2, 3]), tf.zeros([2, 1]), *[tf.zeros([2, 3])] * 3,
          tf.zeros([3]))

  @parameterized.parameters(None, False, True)
  def test_gradients_flow_only_through_log_probs(self, jit_compile):
    inputs = {k: tf.Variable(v) for k, v in self._arguments().items()
              if k != 'actions'}

    def outputs_and_gradients():
      with tf.GradientTape(persistent=True) as tape:
        outputs = vtrace.from_logits(**inputs, actions=[[0], [1]])
      return {name: tape.gradient(output, inputs)
              for name, output in outputs._asdict().items()}

    function = outputs_and_gradients if jit_compile is None else tf.function(
        outputs_and_gradients, jit_compile=jit_compile)
    gradients = function()
    behaviour, target = 'behaviour_policy_logits', 'target_policy_logits'
    flows = dict(vs=set(), pg_advantages=set(), log_rhos={behaviour, target},
                 behaviour_action_log_probs={behaviour},
                 target_action_log_probs={target})
    for output, by_input in gradients.items():
      self.assertEqual({k for k, g in by_input.items() if g is not None},
                       flows[output], output)
    # d log pi(a) / d logits = one_hot(a) - pi.
    softmax = tf.nn.softmax(inputs[target]).numpy()
    one_hot = np.float32([[[1, 0]], [[0, 1]]])
    self.assertAllClose(one_hot - softmax, gradients['log_rhos'][target])


# See `mutations.py`.
MUTATIONS = (
    dict(file='vtrace',
         catches='test_a_tape_around_a_function_differentiates_no_scan', rows=(
        ('results have gradients',
         'if tf.executing_eagerly() else map(tf.stop_gradient, results)',
         ''),
    )),
    dict(file='vtrace', catches='test_no_step', rows=(
        ('no case without steps',
         '  if num_steps == 0:\n',
         '  if num_steps == -1:\n'),
    )),
    dict(file='vtrace', catches='test_unknown_number_of_steps', rows=(
        ('the added step stays',
         'vs_minus_values = vs_minus_values[:-1]',
         'vs_minus_values = vs_minus_values[1:]'),
    )),
    dict(file='vtrace',
         catches='test_unknown_sizes_with_the_shapes_of_tensorflow_1', rows=(
        ('sizes are objects',
         'zip(tensor.shape.as_list(), values.shape.as_list())',
         'zip(tensor.shape, values.shape)'),
    )),
    dict(file='vtrace', catches='test_complex_numbers_of_numpy', rows=(
        ('imaginary parts are dropped',
         " and not hasattr(value, 'dtype')", ''),
    )),
    dict(file='vtrace', catches='test_action_out_of_range3', rows=(
        ('large actions become small',
         'tf.clip_by_value(tensor, dtype.min, dtype.max)', 'tensor'),
    )),
    dict(file='vtrace', catches='test_eager_calls_share_no_trace', rows=(
        ('traces by shape only', 'key = (*static, *numbers, tensors[0].dtype,',
         'key = ('),
        ('shapes of traces forgotten',
         'tensors[0].dtype, *[x.shape for x in tensors])',
         'tensors[0].dtype)'),
    )),
    dict(file='vtrace', catches='test_eager_results_are_those_of_a_graph1',
         rows=(
        ('unrolled sums in the wrong order', 'tf.stack(sums[::-1])',
         'tf.stack(sums)'),
    )),
    dict(file='vtrace', catches='test_axes_after_time', rows=(
        ('rho not clipped', 'tf.minimum(clip_rho_threshold, rhos)', 'rhos'),
        ('rho clipped from below', 'tf.minimum(clip_rho_threshold, rhos)',
         'tf.maximum(clip_rho_threshold, rhos)'),
        ('c not clipped', 'tf.minimum(clip_c_threshold, rhos)', 'rhos'),
        ('no discount in delta',
         'product(_shift(values, bootstrap_value), discounts) - values',
         '_shift(values, bootstrap_value) - values'),
        ('one gamma instead of the discounts in delta',
         'product(_shift(values, bootstrap_value), discounts) - values',
         'product(_shift(values, bootstrap_value), '
         'tf.reduce_max(discounts)) - values'),
        ('reward of the next step in delta', 'rewards + product(',
         '_shift(rewards, rewards[-1]) + product('),
        ('bootstrap value left out', 'bootstrap_value[tf.newaxis]]',
         'tf.zeros_like(bootstrap_value)[tf.newaxis]]'),
        ('last value instead of the bootstrap value',
         'bootstrap_value[tf.newaxis]]', 'values[-1:]]'),
        ('off by one in the product of c', 'product(cs, discounts)',
         'product(_shift(cs, cs[-1]), discounts)'),
        ('discount of the next step in the product of c',
         'product(cs, discounts)',
         'product(cs, _shift(discounts, discounts[-1]))'),
        ('no discount in the product of c', 'product(cs, discounts)',
         'cs * tf.ones_like(discounts)'),
        ('one gamma instead of the discounts in the product of c',
         'product(cs, discounts)', 'product(cs, tf.reduce_max(discounts))'),
        ('V(x_{t+1}) instead of v_{t+1}', '_shift(vs, bootstrap_value)',
         '_shift(values, bootstrap_value)'),
        ('v_t instead of v_{t+1}', 'vs_t_plus_1 = _shift(vs, bootstrap_value)',
         'vs_t_plus_1 = vs'),
        ('v_t instead of V(x_t) as the baseline', '(qs - values)', '(qs - vs)'),
        ('advantage without a weight',
         'tf.minimum(clip_pg_rho_threshold, rhos) * (qs - values)',
         'qs - values'),
        ('weight not clipped', 'tf.minimum(clip_pg_rho_threshold, rhos)',
         'rhos'),
        ('no discount in q', 'tf.math.multiply_no_nan(vs_t_plus_1, discounts)',
         'vs_t_plus_1'),
    )),
    dict(file='vtrace', catches='test_formula', rows=(
        ('c clipped at the threshold of rho',
         'tf.minimum(clip_c_threshold, rhos)',
         'tf.minimum(clip_rho_threshold, rhos)'),
        ('c always clipped at 1', 'tf.minimum(clip_c_threshold, rhos)',
         'tf.minimum(rhos, 1.0)'),
        ('c clipped to the clipped rho', 'tf.minimum(clip_c_threshold, rhos)',
         'tf.minimum(clip_c_threshold, tf.minimum(clip_rho_threshold, rhos))'),
        ('threshold None taken for 1', "float('inf') if value is None",
         '1.0 if value is None'),
        ('lambda left out', 'rhos), lambda_)', 'rhos), tf.ones_like(lambda_))'),
        ('lambda squared', 'rhos), lambda_)', 'rhos), lambda_ * lambda_)'),
        ('weight clipped at the threshold of rho',
         'tf.minimum(clip_pg_rho_threshold, rhos)',
         'tf.minimum(clip_rho_threshold, rhos)'),
        ('one minus lambda in place of lambda',
         'multiply_no_nan(vs_t_plus_1, lambda_) +',
         'multiply_no_nan(vs_t_plus_1, 1 - lambda_) +'),
        ('always mixed', 'if mix_advantages:', 'if True:'),
        ('never mixed', 'if mix_advantages:', 'if False:'),
    )),
    dict(file='vtrace',
         catches='test_lambda_zero_hides_an_infinite_trace', rows=(
        ('lambda 0 does not hide an infinite c',
         'tf.math.multiply_no_nan(tf.minimum(clip_c_threshold, rhos), '
         'lambda_)',
         'tf.minimum(clip_c_threshold, rhos) * lambda_'),
    )),
    dict(file='vtrace',
         catches='test_gradients_flow_only_through_log_probs', rows=(
        ('behaviour and target policy swapped',
         'target_action_log_probs - behaviour_action_log_probs',
         'behaviour_action_log_probs - target_action_log_probs'),
        ('gradients of log_rhos stopped', 'log_rhos=log_rhos,',
         'log_rhos=tf.stop_gradient(log_rhos),'),
    )),
    dict(file='vtrace', catches='test_associative_scan_is_the_loop', rows=(
        ('bootstrap value counted twice',
         'initializer=tf.zeros_like(bootstrap_value)',
         'initializer=bootstrap_value'),
        ('forwards instead of backwards', 'reverse=True', 'reverse=False'),
        ('values not added to the sums of the loop',
         'return values + vs_minus_values', 'return vs_minus_values'),
        ('associative scan: composed in the wrong order',
         'times(x[0], y[0]), y[1] + times(x[1], y[0])',
         'times(x[0], y[0]), x[1] + times(y[1], x[0])'),
        ('associative scan: factors not multiplied', 'times(x[0], y[0]), y[1]',
         'y[0], y[1]'),
        ('associative scan: input not reversed',
         '(discounted_cs[::-1], deltas[::-1])', '(discounted_cs, deltas)'),
        ('associative scan: output not reversed', 'reversed_sums[::-1]',
         'reversed_sums'),
    )),
    dict(file='vtrace',
         catches='test_log_probs_compare_shapes_when_the_graph_runs', rows=(
        ('transposed actions are taken',
         'labels=actions, logits=policy_logits)',
         'labels=tf.reshape(actions, tf.shape(policy_logits)[:-1]), '
         'logits=policy_logits)'),
    )),
    dict(file='vtrace',
         catches='test_associative_scan_survives_infinite_products', rows=(
        ('associative scan: infinite products times zero',
         'tf.where(x == 0, x, product(x, y))', 'product(x, y)'),
        ('NaN passes a zero discount in the sums of the associative scan',
         'y[1] + times(x[1], y[0])', 'y[1] + x[1] * y[0]'),
    )),
    dict(file='vtrace',
         catches='test_lambda_zero_hides_an_infinite_target_of_advantages',
         rows=(
        ('infinite targets where lambda is 0',
         'tf.math.multiply_no_nan(vs_t_plus_1, lambda_) +',
         'vs_t_plus_1 * lambda_ +'),
    )),
    dict(file='vtrace', catches='test_no_gradient', rows=(
        ('gradients not stopped', 'tf.stop_gradient(x) for x in (',
         'x for x in ('),
        ('gradients of options not stopped', 'else tf.stop_gradient(x)\n',
         'else x\n'),
    )),
    dict(file='vtrace',
         catches='test_infinite_weight_where_the_episode_ends', rows=(
        ('NaN passes a zero discount in delta and recursion',
         'product = tf.math.multiply_no_nan', 'product = tf.multiply'),
        ('infinite c passes a zero discount', 'product(cs, discounts)',
         'product(discounts, cs)'),
    )),
    dict(file='vtrace',
         catches='test_zero_discount_hides_what_is_not_finite', rows=(
        ('NaN passes a zero discount in q',
         'tf.math.multiply_no_nan(vs_t_plus_1, discounts)',
         'vs_t_plus_1 * discounts'),
        ('NaN passes a zero discount in the loop', 'product(after, step[0])',
         'after * step[0]'),
        ('infinite c passes a zero discount in the associative scan',
         'return times(x[0], y[0])', 'return x[0] * y[0]'),
    )),
    dict(file='vtrace', catches='test_float64_keeps_all_digits', rows=(
        ('float64 computed in float32', 'return tf.cast(tensor, dtype)',
         'return tf.cast(tf.cast(tensor, tf.float32), dtype)'),
        ('Python floats rounded to float32',
         'value, dtype_hint=dtype if is_hinted else None)', 'value)'),
    )),
    dict(file='vtrace', catches='test_lambda_of_each_step', rows=(
        ('lambda of the next step in the advantages',
         'multiply_no_nan(vs_t_plus_1, lambda_) +',
         'multiply_no_nan(vs_t_plus_1, tf.roll(lambda_, -1, 0)) +'),
        ('first lambda for all steps',
         "_to_option('lambda_', lambda_, dtype)]",
         "tf.reduce_max(_to_option('lambda_', lambda_, dtype))]"),
    )),
)


if __name__ == '__main__':
  tf.test.main()
