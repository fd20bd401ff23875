# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of selftest mode: a device that computes wrong numbers is named."""

import contextlib
import io
import json
import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import vtrace
from scalable_agent.modes import selftest
from scalable_agent.modes import selftest_parts
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
from scalable_agent.settings import files
import tensorflow as tf

_RATES = {'float32': 1e11, 'bfloat16': 2e11}


def _parts(*names):
  """The parts whose names begin with one of `names`."""
  found = [part for part in selftest_parts.parts()
           if part.name.startswith(names)]
  assert found
  return found


def _broken(owner, name):
  """A device on which the results of one function are 5 % too large."""
  right = getattr(owner, name)

  def wrong(*args, **kwargs):
    return tf.nest.map_structure(
        lambda x: x * 1.05, right(*args, **kwargs))

  return mock.patch.object(owner, name, wrong)


class PartsTest(absltest.TestCase):

  def test_every_algorithm_and_every_network_has_an_update(self):
    names = [part.name.removeprefix('update of ').split(', ', 1)
             for part in selftest_parts.parts()
             if part.name.startswith('update of ')]
    self.assertEqual({algorithm for algorithm, _ in names},
                     set(declare.ALGORITHMS))
    self.assertEqual({network for _, network in names}, {
        'mlp', 'mlp with LSTM', 'nature', 'shallow', 'deep', 'deep with LSTM'})
    for algorithm in 'appo', 'ddqn':
      self.assertIn([algorithm, 'nature'], names)


class ReferenceTest(parameterized.TestCase, tf.test.TestCase):

  def test_vtrace_is_that_of_the_formula(self):
    inputs = selftest_parts._vtrace_inputs()
    self.assertLess(inputs[0].min(), 0)  # Some weights are clipped, some not.
    self.assertGreater(inputs[0].max(), 0)
    expected = vtrace.from_importance_weights(*inputs, dtype=tf.float64)
    exact = selftest_parts.exact_vtrace()
    self.assertAllClose(expected._asdict(), exact, 1e-12, 1e-12)

  @parameterized.parameters(
      ([1., 2.], [1., 2.], 0.), ([3., 4.], [0., 0.], 5e6),
      ([1., np.nan], [1., 2.], np.inf), ([1., np.inf], [1., 2.], np.inf),
      ([1.], [1., 2.], np.inf), ([3., 5.], [3., 4.], 0.2))
  def test_difference(self, result, expected, difference):
    self.assertAlmostEqual(
        selftest.relative_difference(np.array(result), np.array(expected)),
        difference)


class SelftestTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(selftest, '_MIN_SECONDS', 0.))

  def test_right_device(self):
    rows = list(selftest.test(contextlib.nullcontext(), _RATES, _parts(
        'V-trace', 'policy step, mlp')))
    self.assertLen(rows, 8)
    self.assertEqual({(row.precision, row.xla) for row in rows}, {
        (precision, xla) for precision in ('float32', 'bfloat16')
        for xla in (False, True)})
    for row in rows:
      self.assertTrue(row.is_right, row)
      self.assertGreater(row.ms, 0)
      # bfloat16 is really used, and float32 is not.
      self.assertEqual(row.difference > 1e-3, row.precision == 'bfloat16', row)
      if row.part.startswith('V-trace'):
        self.assertIsNone(row.share)
      else:  # Operations of the products and biases of 32 observations.
        num_operations = 32 * (2 * 64 * (17 + 64 + 6 + 1) + 64 + 64 + 6 + 1)
        self.assertAlmostEqual(
            row.share * _RATES[row.precision] * row.ms / 1e3 / num_operations,
            1, delta=.01)
        self.assertIn(f' {100 * row.share:.1f} %', selftest._line(row))

  @parameterized.named_parameters(
      ('vtrace', vtrace, 'from_importance_weights', 'V-trace, loop'),
      ('product', tf, 'matmul', 'policy step, mlp'),
      ('tanh', tf.math, 'tanh', 'policy step, mlp'),
      ('convolution', tf.nn, 'convolution', 'policy step, shallow'),
      ('mean', tf, 'reduce_mean', 'update of ddpg'),
      ('gate', tf, 'sigmoid', 'update of ddqn, mlp with LSTM'))
  def test_a_wrong_function_is_found(self, owner, name, part):
    self._check_wrong(owner, name, part)

  @parameterized.named_parameters(
      ('scan', vtrace, 'from_importance_weights', 'V-trace, associative scan'),
      ('sum', tf, 'reduce_sum', 'update of impala, mlp'))
  @pytest.mark.storm
  def test_another_wrong_function_is_found(self, owner, name, part):
    self._check_wrong(owner, name, part)

  def _check_wrong(self, owner, name, part):
    # A difference of 5 % is within the bound of bfloat16.
    rows = list(selftest.test(_broken(owner, name), _RATES, [
        part._replace(has_bfloat16=False, graph=None)
        for part in _parts(part)]))
    wrong = [row for row in rows if not row.is_right]
    self.assertContainsSubset(
        {('float32', False), ('float32', True)},
        {(row.precision, row.xla) for row in wrong}, rows)

  def test_an_error_of_the_device_is_a_row(self):
    on_device = []

    def call():
      if on_device:
        raise tf.errors.InternalError(None, None, 'No such kernel.\nMore.')
      return {'x': np.ones(1)}

    class Device:

      def __enter__(self):
        on_device.append(True)

      def __exit__(self, *args):
        on_device.pop()

    part = selftest_parts.Part('odd', lambda xla: call, has_bfloat16=False)
    rows = list(selftest.test(Device(), _RATES, [part]))
    self.assertLen(rows, 2)
    for row in rows:
      self.assertFalse(row.is_right)
      self.assertEqual(row.error, 'No such kernel.')
      self.assertEndsWith(selftest._line(row), 'FAILED: No such kernel.')

  def test_an_error_of_counting_is_a_line(self):
    def graph():
      raise ValueError('no profiler')

    part = selftest_parts.Part(
        'odd', lambda xla: lambda: {'x': np.ones(1)}, has_bfloat16=False,
        graph=graph)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      rows = list(selftest.test(contextlib.nullcontext(), _RATES, [part]))
    self.assertEqual([(row.is_right, row.share) for row in rows],
                     [(True, None)] * 2)
    self.assertEqual(
        output.getvalue(),
        "The operations of odd could not be counted: ValueError('no profiler')"
        '\n')

  def test_report(self):
    logdir = self.create_tempdir().full_path
    config = config_lib.Config(mode='selftest', logdir=logdir)
    parts = _parts('V-trace, loop')
    with mock.patch.object(selftest_parts, 'parts', return_value=parts):
      self.assertEqual(selftest.run(config), 0)
      with mock.patch.object(
          selftest_parts, 'exact_vtrace', return_value={'vs': np.ones(3)}):
        self.assertEqual(selftest.run(config), 1)
    with open(os.path.join(logdir, 'selftest.json'), encoding='utf-8') as f:
      report = json.load(f)
    self.assertLen(report['rows'], 2)
    self.assertEqual(report['rows'][0]['part'], 'V-trace, loop')
    self.assertGreater(report['product_rates']['float32'], 1e6)
    self.assertNotEmpty(report['about']['processor'])

  def test_a_directory_without_writing_fails_before_the_tests(self):
    path = self.create_tempfile().full_path
    config = config_lib.Config(mode='selftest', logdir=path)
    with mock.patch.object(
        selftest, 'product_rates', side_effect=AssertionError('Too late.')):
      with self.assertRaisesRegex(errors.SaveError, 'could not be written'):
        selftest.run(config)

  def test_infinite_differences_are_null_in_a_whole_file(self):
    logdir = self.create_tempdir().full_path
    config = config_lib.Config(mode='selftest', logdir=logdir)
    row = selftest.Row('odd', 'float32', False, np.inf, 1., 'x', 1., None)
    with mock.patch.object(selftest, 'product_rates', return_value={}), \
        mock.patch.object(selftest, 'test', return_value=[row]), \
        mock.patch.object(files, 'write', wraps=files.write) as write:
      self.assertEqual(selftest.run(config), 1)
    write.assert_called_once()
    with open(os.path.join(logdir, 'selftest.json'), encoding='utf-8') as f:
      self.assertIsNone(json.load(f)['rows'][0]['difference'])

  def test_shares_of_a_busy_machine(self):
    config = config_lib.Config(
        mode='selftest', logdir=self.create_tempdir().full_path)
    for share, count in (None, 0), (.9, 0), (1.1, 1):
      row = selftest.Row('x', 'float32', False, 0., 1., 'x', 1., None, '',
                         share)
      with mock.patch.object(selftest, 'product_rates', return_value={}), \
          mock.patch.object(selftest, 'test', return_value=[row]), \
          contextlib.redirect_stdout(io.StringIO()) as output:
        self.assertEqual(selftest.run(config), 0)
      self.assertEqual(
          output.getvalue().count('other programs slowed the products'), count)

  @pytest.mark.storm
  def test_all_parts(self):
    # In a process of its own: another test may have made all operations
    # deterministic, and some have no deterministic form with XLA.
    code = ('import contextlib, selftest_test\n'
            'from scalable_agent.modes import selftest\n'
            'rows = list(selftest.test(contextlib.nullcontext(), '
            'selftest_test._RATES))\n'
            'print("\\n", len(rows), '
            'sorted({r.part for r in rows if not r.share}), '
            '[r for r in rows if not r.is_right])')
    run = subprocess.run(
        [sys.executable, '-c', code], text=True, capture_output=True,
        env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)})
    self.assertEqual(run.returncode, 0, run.stderr)
    number, _, rest = run.stdout.splitlines()[-1].strip().partition(' ')
    self.assertGreater(int(number), 50)
    self.assertEqual(rest, "['V-trace, associative scan', 'V-trace, loop'] []")


MUTATIONS = (
    dict(file='modes/selftest_parts',
         catches='test_every_algorithm_and_every_network_has_an_update', rows=(
        ('no nature', "('ddqn', 'nature'), ", ''),
    )),
    dict(file='modes/selftest', catches='test_difference', rows=(
        ('numbers that are not finite are right',
         'or not np.isfinite(result).all()', ''),
    )),
    dict(file='modes/selftest', catches='test_right_device', rows=(
        ('milliseconds as seconds', 'num_operations * 1e3 / row.ms',
         'num_operations / row.ms'),
        ('no part in bfloat16',
         "'bfloat16' if name == 'bfloat16' else 'float32'", "'float32'"),
    )),
    dict(file='modes/selftest', catches='test_report', rows=(
        ('wrong numbers end with 0', 'return int(bool(wrong))', 'return 0'),
    )),
    dict(file='modes/selftest_parts',
         catches='test_vtrace_is_that_of_the_formula', rows=(
        ('exact: nothing is clipped', 'np.minimum(np.exp(log_rhos), 1)',
         'np.exp(log_rhos)'),
    )),
)


if __name__ == '__main__':
  absltest.main()
