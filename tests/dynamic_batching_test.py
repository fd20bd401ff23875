# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of dynamic batching: the rows of a batch, and of each caller."""

from concurrent import futures
import gc
import threading
import time
from unittest import mock

from absl.testing import parameterized
import in_process
import numpy as np
import pytest
from scalable_agent.acting import dynamic_batching
from scalable_agent.compat.scalable_agent import dynamic_batching as compat
import tensorflow as tf
import tree


def _add_and_count(a, b):
  batch_size = tf.shape(a)[0]
  return a + b, tf.tile([batch_size], [batch_size])


class _TestCase(parameterized.TestCase, tf.test.TestCase):

  in_thread = staticmethod(in_process.in_thread)

  def batched(self, *args, **kwargs):
    """Returns `batch_fn_with_options`, closed at the end of the test."""
    decorator = compat.batch_fn_with_options(*args, **kwargs)

    def decorate(f):
      function = decorator(f)
      self.addCleanup(function.close)
      return function

    return decorate

  def batcher(self, *args, **kwargs):
    batcher = dynamic_batching.Batcher(*args, **kwargs)
    self.addCleanup(batcher.close)
    return batcher

  def compute(self, batcher, inputs):
    """Computes in a thread; returns its future once the inputs wait."""
    num_rows = len(batcher)
    future = self.in_thread(batcher.compute, [inputs])
    while len(batcher) == num_rows and not future.done():
      time.sleep(0.001)
    return future

  def assert_cancelled(self, future, message, cause=None, cause_regex=''):
    error = future.exception()
    self.assertIsInstance(error, tf.errors.CancelledError)
    self.assertEqual(error.message, message)
    if cause is None:
      self.assertIsNone(error.__cause__)
    else:
      self.assertIsInstance(error.__cause__, cause)
      self.assertRegex(str(error.__cause__), cause_regex)


class BatcherTest(_TestCase):

  def test_two_waiting_inputs_are_one_batch(self):
    batcher = self.batcher()
    results = [self.compute(batcher, np.array([[i, 2 * i]])) for i in (1, 2)]
    (inputs,), computation_id = batcher.get_inputs([tf.int64])
    self.assertAllEqual(inputs, [[1, 2], [2, 4]])
    self.assertEqual(np.shape(computation_id), ())
    self.assertEqual(np.asarray(computation_id).dtype, np.int64)
    batcher.set_outputs([inputs[:, 0] + 42], computation_id)
    self.assertAllEqual(results[0].result(), [[43]])
    self.assertAllEqual(results[1].result(), [[44]])

  def test_maximum_batch_size_and_order(self):
    batcher = self.batcher(maximum_batch_size=2)
    results = [self.compute(batcher, np.array([i])) for i in range(5)]
    batches = []
    for _ in range(3):
      (inputs,), computation_id = batcher.get_inputs()
      batches.append(inputs.tolist())
      batcher.set_outputs([10 * inputs], computation_id)
    self.assertEqual(batches, [[0, 1], [2, 3], [4]])
    self.assertAllEqual([r.result()[0] for r in results],
                        [[0], [10], [20], [30], [40]])

  @parameterized.parameters(False, True)
  def test_out_of_order(self, is_reversed):
    batcher = self.batcher(1, 1, None)
    results, batches = [], []
    for i in (1, 2, 3):
      results.append(self.in_thread(batcher.compute, [[i]], [tf.int32]))
      batches.append(batcher.get_inputs([tf.int32]))
    for (inputs,), computation_id in (
        reversed(batches) if is_reversed else batches):
      batcher.set_outputs([inputs + 42], computation_id)
    self.assertAllEqual([r.result() for r in results], [[[43]], [[44]], [[45]]])

  def test_rows_count_and_are_spread_over_batches(self):
    batcher = self.batcher(minimum_batch_size=3, maximum_batch_size=3,
                           timeout_ms=None)
    rows = np.arange(20).reshape([10, 2])
    results = [self.compute(batcher, rows[start:end])
               for start, end in ((0, 1), (1, 8), (8, 10))]
    results.append(self.compute(batcher, np.array([[-1, -2], [-3, -4]])))
    batches = [batcher.get_inputs() for _ in range(4)]
    self.assertAllEqual([inputs[:, 0] for (inputs,), _ in batches],
                        [[0, 2, 4], [6, 8, 10], [12, 14, 16], [18, -1, -3]])
    for i in (2, 0, 3, 1):
      [inputs], computation_id = batches[i]
      batcher.set_outputs([inputs[:, 1], -inputs], computation_id)
    for result, expected in zip(
        results, (rows[:1], rows[1:8], rows[8:], [[-1, -2], [-3, -4]])):
      second, negative = result.result()
      self.assertAllEqual(second, np.array(expected)[:, 1])
      self.assertAllEqual(negative, -np.array(expected))

  def test_several_consumers_answer_everyone(self):
    batcher = self.batcher(minimum_batch_size=4, maximum_batch_size=5,
                           timeout_ms=1)

    def consume():
      while True:
        (inputs,), computation_id = batcher.get_inputs()
        batcher.set_outputs([inputs * 3], computation_id)

    def call(thread):
      rng = np.random.default_rng(thread)
      for _ in range(50):
        inputs = rng.integers(1000, size=rng.integers(1, 12))
        self.assertAllEqual(batcher.compute([inputs]), [inputs * 3])

    consumers = [self.in_thread(consume) for _ in range(3)]
    for caller in [self.in_thread(call, i) for i in range(6)]:
      caller.result()
    batcher.close()
    for consumer in consumers:
      self.assert_cancelled(consumer, 'Batcher is closed')

  def test_timeout_is_counted_from_when_the_batch_was_asked_for(self):
    # Two whole timeouts and almost a third had passed when the input came.
    clock = mock.Mock()
    clock.monotonic.side_effect = [7, 7 + 2999.99, 7 + 3000]
    batcher = self.batcher(minimum_batch_size=2, timeout_ms=1000 * 1000)
    with mock.patch.object(dynamic_batching, 'time', clock):
      self.compute(batcher, [1])
      self.assertAllEqual(batcher.get_inputs()[0], [[1]])

  def test_timeout_0_is_none(self):
    batcher = self.batcher(minimum_batch_size=2, timeout_ms=0)
    batch = self.in_thread(batcher.get_inputs)
    self.in_thread(batcher.compute, [[1]])
    time.sleep(0.05)
    self.in_thread(batcher.compute, [[2]])
    self.assertLen(batch.result()[0][0], 2)

  def test_close_ends_all_waits(self):
    batcher = self.batcher(minimum_batch_size=2, timeout_ms=None)
    in_progress = [self.compute(batcher, [i]) for i in (1, 2)]
    _, computation_id = batcher.get_inputs()
    waiting = self.compute(batcher, [3])
    consumer = self.in_thread(batcher.get_inputs)
    batcher.close()
    for caller in (*in_progress, waiting):
      self.assert_cancelled(caller, 'Compute was cancelled')
    for late in (consumer, self.in_thread(batcher.get_inputs),
                 self.in_thread(batcher.compute, [[1]]),
                 self.in_thread(batcher.set_outputs, [[1, 2]], computation_id)):
      self.assert_cancelled(late, 'Batcher is closed')
    self.assertEmpty(batcher)
    self.assertEqual(batcher.name, 'batcher')

  @parameterized.parameters(
      ([[1, 2]], [[3]],
       r'Shapes of inputs much be equal\. Shapes observed: \[1,2\], \[1,1\]$'),
      ([1], [1.0], r'Dtypes of inputs must be equal\. Dtypes observed: '
       r'\[int32\], \[float32\]$'),
      ([1], np.zeros([0], np.int32),
       'Batcher requires batch size 1 or more but was 0$'),
      ([1], 2, r'Input shape must have a batch dimension\. Shape observed: \[\]'
       '$'))
  def test_inputs_that_do_not_fit(self, one, other, regex):
    batcher = self.batcher()
    callers = [self.compute(batcher, inputs) for inputs in (one, other)]
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, regex):
      batcher.get_inputs()
    for caller in callers:
      self.assert_cancelled(caller, 'Compute was cancelled',
                            tf.errors.InvalidArgumentError, regex)
    for late in (self.in_thread(batcher.compute, [[1]]),
                 self.in_thread(batcher.get_inputs)):
      self.assert_cancelled(late, 'Batcher is closed',
                            tf.errors.InvalidArgumentError, regex)

  @parameterized.parameters(
      ([[1, 2], [3]], 'Batcher requires batch size 2 but was 1$'),
      ([[1], [2, 3]], 'Batcher requires batch size 1 but was 2$'))
  def test_rows_of_one_caller_must_agree(self, inputs, regex):
    batcher = self.batcher()
    caller = self.in_thread(batcher.compute, inputs)
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, regex):
      batcher.get_inputs()
    self.assert_cancelled(caller, 'Compute was cancelled',
                          tf.errors.InvalidArgumentError, regex)

  @parameterized.parameters(
      (1, r'Output shape must have a batch dimension\. Shape observed: \[\]$'),
      ([1, 2, 3, 4], 'Output shape must have the same batch dimension as the '
       r'input batch size\. Expected: 2 Observed: 4$'),
      ([1.0, 2.0], r'Dtypes of outputs must be equal\. Dtypes observed: '
       r'\[int32\], \[float32\]$'))
  def test_outputs_that_do_not_fit(self, output, regex):
    batcher = self.batcher(minimum_batch_size=2)
    callers = [self.in_thread(batcher.compute, [[i]], [tf.int32])
               for i in (1, 2)]
    _, computation_id = batcher.get_inputs()
    waiting = self.compute(batcher, [3])
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, regex):
      batcher.set_outputs([output], computation_id)
    for caller in (*callers, waiting):
      self.assert_cancelled(caller, 'Compute was cancelled',
                            tf.errors.InvalidArgumentError, regex)

  def test_input_dtypes_are_checked(self):
    batcher = self.batcher()
    self.compute(batcher, [1])
    with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError, r'observed: \[float32\], \[int32\]$'):
      batcher.get_inputs([tf.float32])

  def test_invalid_computation_id(self):
    batcher = self.batcher(1, 1, None)
    caller = self.compute(batcher, [1])
    inputs, _ = batcher.get_inputs()
    regex = 'Invalid computation id. Id: 42$'
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, regex):
      batcher.set_outputs(inputs, 42)
    self.assert_cancelled(caller, 'Compute was cancelled',
                          tf.errors.InvalidArgumentError, regex)

  def test_a_computation_is_answered_once(self):
    batcher = self.batcher()
    caller = self.compute(batcher, [1])
    inputs, computation_id = batcher.get_inputs()
    batcher.set_outputs(inputs, computation_id)
    self.assertAllEqual(caller.result(), [[1]])
    with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError, 'Invalid computation id. Id: 0$'):
      batcher.set_outputs(inputs, computation_id)

  def test_a_dropped_batch_ends_its_callers(self):
    batcher = self.batcher(1, 2, None)
    lost = self.compute(batcher, np.array([1, 2, 3]))
    batch = batcher.get_inputs()
    self.assertFalse(lost.done())
    kept = self.compute(batcher, np.array([4]))
    rest = batcher.get_inputs()
    del batch
    gc.collect()
    self.assert_cancelled(
        lost, 'The worker dropped the batch without outputs')
    (inputs,), computation_id = rest
    batcher.set_outputs([10 * inputs], computation_id)
    self.assertAllEqual(kept.result()[0], [40])

  def test_a_worker_that_fails_ends_its_callers(self):
    batcher = self.batcher()

    def work():
      inputs, unused_id = batcher.get_inputs()
      raise KeyError(len(inputs))

    caller = self.compute(batcher, np.array([1]))
    with self.assertRaises(KeyError):
      work()
    self.assert_cancelled(
        caller, 'The worker dropped the batch without outputs')

  def test_options_that_make_no_sense(self):
    for sizes in ((0, 1), (1, 0)):
      with self.assertRaisesRegex(ValueError, 'at least 1'):
        dynamic_batching.Batcher(*sizes)
    with self.assertRaisesRegex(ValueError, 'not be negative but was -1'):
      dynamic_batching.Batcher(timeout_ms=-1)


class BatchFnTest(_TestCase):

  def test_one(self):
    function = compat.batch_fn(_add_and_count)
    self.addCleanup(function.close)
    result, batch_size = function(tf.constant([[1, 3]]), tf.constant([2]))
    self.assertIsInstance(result, tf.Tensor)
    self.assertAllEqual(result, [[3, 5]])
    self.assertAllEqual(batch_size, [1])
    self.assertEqual(function.__name__, '_add_and_count')

  def test_minimum_batch_size_is_waited_for(self):
    # Were there no second input, this would take a day.
    function = self.batched(2, timeout_ms=24 * 3600 * 1000)(_add_and_count)
    calls = [self.in_thread(function, tf.constant([i]), tf.constant([10 * i]))
             for i in (1, 2)]
    for call, expected in zip(calls, ([11], [22])):
      result, batch_size = call.result()
      self.assertAllEqual(result, expected)
      self.assertAllEqual(batch_size, [2])

  def test_timeout(self):
    function = self.batched(2, timeout_ms=1000)(_add_and_count)
    start = time.monotonic()
    result, batch_size = function(tf.constant([1]), tf.constant([2]))
    self.assertGreaterEqual(time.monotonic() - start, 0.9)
    self.assertAllEqual(result, [3])
    self.assertAllEqual(batch_size, [1])

  def test_maximum_batch_size(self):
    function = self.batched(maximum_batch_size=2)(_add_and_count)
    result, batch_size = function(tf.range(5), 10 * tf.range(5))
    self.assertAllEqual(result, [0, 11, 22, 33, 44])
    self.assertAllEqual(batch_size, [2, 2, 2, 2, 1])
    calls = [self.in_thread(function, tf.constant([i]), tf.constant([i]))
             for i in range(5)]
    for i, call in enumerate(calls):
      result, batch_size = call.result()
      self.assertAllEqual(result, [2 * i])
      self.assertLessEqual(batch_size[0], 2)

  def test_many_small(self):
    function = self.batched()(lambda a, b: a + b)
    with futures.ThreadPoolExecutor(10) as executor:
      calls = [executor.submit(function, tf.fill([1, 5], i), tf.fill([1, 5], i))
               for i in range(200)]
      for i, call in enumerate(calls):
        self.assertAllEqual(call.result(), [[2 * i] * 5])

  @parameterized.parameters((1, 1024, 100), (1, 3, 100), (20, 30, 5),
                            (5, 5, 1), (8, 2, 1))
  def test_equals_the_function_whatever_the_batch(self, *options):
    weights = tf.constant(np.random.default_rng(1).normal(size=[3, 4]))

    def function(a, b):
      return {'product': tf.tanh(tf.linalg.matmul(a['x'], weights)),
              'nest': (b[0][:, ::-1] + 1,
                       [tf.strings.join([a['name'], '!']),
                        tf.reduce_any(b[1] > 100, axis=[1, 2])])}

    batched = self.batched(*options)(function)

    def call(thread):
      rng = np.random.default_rng(thread)
      for _ in range(20):
        n = rng.integers(1, 9)
        args = (
            {'x': rng.normal(size=[n, 3]),
             'name': rng.choice([b'a', b'bc', b''], size=n).astype(object)},
            (rng.integers(-9, 9, size=[n, 2], dtype=np.int32),
             rng.integers(256, size=[n, 2, 2], dtype=np.uint8)))
        expected = tree.map_structure(tf.convert_to_tensor, function(*args))
        result = batched(*args)
        tree.assert_same_structure(expected, result)
        for e, r in zip(tree.flatten(expected), tree.flatten(result)):
          self.assertEqual(e.dtype, r.dtype)
          if e.dtype.is_floating:
            self.assertAllClose(e, r, rtol=1e-12, atol=1e-12)
          else:
            self.assertAllEqual(e, r)

    for caller in [self.in_thread(call, i) for i in range(8)]:
      caller.result()

  @parameterized.parameters(((1, 2, 100), None), ((2, 2, 100), None),
                            ((2, 2, None), 2))
  def test_static_batch_size(self, options, expected):
    shapes = []

    @self.batched(*options)
    def function(a):
      shapes.append(a.shape.as_list())
      return a

    calls = [self.in_thread(function, tf.constant([[i] * 3])) for i in (1, 2)]
    self.assertAllEqual([call.result() for call in calls],
                        [[[1] * 3], [[2] * 3]])
    self.assertEqual(shapes, [[expected, 3]])

  def test_fixed_batch_size_is_kept_whatever_the_rows(self):
    function = self.batched(2, 2, None)(_add_and_count)
    calls = [self.in_thread(function, tf.range(n), tf.range(n))
             for n in (1, 2, 3)]
    for n, call in zip((1, 2, 3), calls):
      result, batch_size = call.result()
      self.assertAllEqual(result, 2 * np.arange(n))
      self.assertAllEqual(batch_size, [2] * n)

  def test_traced_once_for_all_batch_sizes(self):
    shapes = []

    @self.batched()
    def function(a):
      shapes.append(a.shape.as_list())
      return 2 * a

    for n in (1, 2, 3):
      self.assertAllEqual(function(tf.ones([n, 4])), 2 * np.ones([n, 4]))
    self.assertEqual(shapes, [[None, 4]])
    self.assertAllEqual(function(tf.ones([2, 5])), 2 * np.ones([2, 5]))
    self.assertEqual(shapes, [[None, 4], [None, 5]])

  @pytest.mark.slow
  def test_function_compiled_by_xla(self):
    function = self.batched()(
        tf.function(lambda a: tf.cumsum(a, axis=1), jit_compile=True))
    for n in (1, 3):
      self.assertAllEqual(function(tf.ones([n, 3])), [[1, 2, 3]] * n)

  @parameterized.parameters(
      (lambda a: tf.constant(1), tf.errors.InvalidArgumentError,
       r'Output shape must have a batch dimension\. Shape observed: \[\]$'),
      (lambda a: tf.constant([1, 2, 3, 4]), tf.errors.InvalidArgumentError,
       'Output shape must have the same batch dimension as the input batch '
       r'size\. Expected: 1 Observed: 4$'),
      # While it is traced, and while it runs.
      (lambda a: a + 1 / 0, ZeroDivisionError, 'division'),
      (lambda a: tf.debugging.check_numerics(a / 0, 'Broken'),
       tf.errors.InvalidArgumentError, 'Broken'))
  def test_errors_close_for_good(self, function, error, regex):
    batched = self.batched()(function)
    self.assert_cancelled(self.in_thread(batched, tf.constant([1.0])),
                          'Compute was cancelled', error, regex)
    self.assert_cancelled(self.in_thread(batched, tf.constant([1.0])),
                          'Batcher is closed', error, regex)

  def test_an_error_reaches_the_whole_batch_and_who_waits(self):
    entered, leave = threading.Event(), threading.Event()

    def fail(unused_a):
      entered.set()
      leave.wait()
      raise ValueError('Broken')

    function = self.batched(2, 2, None)(
        lambda a: tf.numpy_function(fail, [a], tf.int32))
    calls = [self.in_thread(function, tf.constant([i])) for i in (1, 2)]
    entered.wait()
    calls.append(self.in_thread(function, tf.constant([3])))
    while not calls[-1].running():
      time.sleep(0.001)
    time.sleep(0.05)  # For the third to wait. If late, it fails all the same.
    leave.set()
    for call in calls[:2]:
      self.assert_cancelled(call, 'Compute was cancelled',
                            tf.errors.OpError, 'Broken')
    self.assertIsInstance(calls[2].exception(), tf.errors.CancelledError)
    self.assertRegex(str(calls[2].exception().__cause__), 'Broken')

  def test_close_ends_waits_and_the_thread(self):
    def closed(a):
      return a

    function = self.batched(2, timeout_ms=None)(closed)
    call = self.in_thread(function, tf.constant([1]))
    while not (threads := _threads('batcher-closed')):
      time.sleep(0.001)
    function.close()
    [thread] = threads
    thread.join()
    self.assertIn(call.exception().message,
                  ('Compute was cancelled', 'Batcher is closed'))
    self.assert_cancelled(self.in_thread(function, tf.constant([1])),
                          'Batcher is closed')

  def test_thread_ends_with_the_last_reference(self):
    def forgotten(a):
      return a

    function = compat.batch_fn(forgotten)
    function(tf.constant([1]))
    [thread] = _threads('batcher-forgotten')
    del function
    gc.collect()
    thread.join()

  def test_no_gradient(self):
    function = self.batched()(lambda x: 2 * x)
    x = tf.constant([3.0])
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = function(x)
    self.assertAllEqual(y, [6])
    self.assertIsNone(tape.gradient(y, x))

  def test_refuses_graphs(self):
    function = self.batched()(lambda x: x)
    with self.assertRaisesRegex(RuntimeError, 'outside of tf.function'):
      tf.function(function, autograph=False)(tf.constant([1]))

  def test_calls_must_have_one_structure(self):
    function = self.batched()(lambda x: x['a'])
    self.assertAllEqual(function({'a': tf.constant([1])}), [1])
    with self.assertRaises(ValueError):
      function({'a': tf.constant([1]), 'b': tf.constant([2])})
    self.assertAllEqual(function({'a': tf.constant([3])}), [3])


def _threads(name):
  return [thread for thread in threading.enumerate()
          if thread.name == name and thread.is_alive()]


if __name__ == '__main__':
  tf.test.main()
