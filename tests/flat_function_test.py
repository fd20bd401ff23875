# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of compiled functions of nests."""

from typing import NamedTuple

from absl.testing import parameterized
import eager
import numpy as np
from scalable_agent.networks import flat_function
import tensorflow as tf


class _Pair(NamedTuple):
  one: object
  other: object


class FlatFunctionTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.num_calls = 0

  def _sum(self, factor, pair, scale=1.0):
    self.num_calls += 1
    return {'sum': factor * (pair.one + pair.other['x']) * scale}

  @parameterized.parameters(False, True)
  def test_nests_and_static_values(self, jit_compile):
    function = flat_function.FlatFunction(self._sum, jit_compile)
    pair = lambda n: _Pair(np.ones([n], np.float32), {
        'x': tf.fill([n], 2.0), 'nothing': ()})
    for _ in range(2):
      for n in (1, 3):
        self.assertAllEqual(function(pair(n), static=(2,))['sum'], [6.0] * n)
      self.assertAllEqual(function(pair(1), static=(3,))['sum'], [9.0])
      self.assertAllEqual(
          function(pair(1), np.float32(10.0), static=(2,))['sum'], [60.0])
    self.assertLen(function._traced, 4)
    self.assertEqual(self.num_calls, 4)

  def test_shapes_and_dtypes(self):
    function = flat_function.FlatFunction(lambda x: x + x)
    for x in (1, np.float32(1), np.float32([1]), np.int64([1])):
      x = np.asarray(x)
      found = function(x)
      self.assertEqual((found.dtype, found.shape), (x.dtype, x.shape))
      self.assertAllEqual(found, 2 * x)
    self.assertLen(function._traced, 4)

  def test_fewer_traces(self):
    function = flat_function.FlatFunction(self._sum, reduce_retracing=True)
    for n in range(1, 9):
      pair = _Pair(np.ones([n], np.float32), {'x': np.ones([n], np.float32)})
      self.assertAllEqual(function(pair, static=(1,))['sum'], [2.0] * n)
    self.assertLessEqual(self.num_calls, 3)

  def test_variables(self):
    variable = tf.Variable(1.0)
    function = flat_function.FlatFunction(lambda x: variable.assign_add(x))
    for expected in (3.0, 5.0):
      function(np.float32(2))
      self.assertAllEqual(variable, expected)

  def test_eagerly(self):
    function = flat_function.FlatFunction(self._sum)
    pair = _Pair(tf.ones([]), {'x': tf.ones([])})
    with eager.eagerly():
      for _ in range(3):
        self.assertAllEqual(function(pair, static=(1,))['sum'], 2.0)
    self.assertEqual(self.num_calls, 3)
    self.assertEmpty(function._traced)


# See `mutations.py`.
MUTATIONS = (
    dict(file='networks/flat_function',
         catches='test_nests_and_static_values', rows=(
        ('traced for the first static values only',
         'key = (static, *[(x.shape, x.dtype) for x in flat])',
         'key = ((), *[(x.shape, x.dtype) for x in flat])'),
        ('one structure for all', 'key = (static, len(tree.flatten(nests)))',
         'key = static'),
    )),
    dict(file='networks/flat_function', catches='test_shapes_and_dtypes', rows=(
        ('dtypes not in the key', '(x.shape, x.dtype) for x', 'x.shape for x'),
    )),
    dict(file='networks/flat_function', catches='test_eagerly', rows=(
        ('never eager', 'if tf.config.functions_run_eagerly():', 'if False:'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
