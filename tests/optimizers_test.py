# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of RMSProp against TensorFlow 1's, and of the learning rate."""

import fractions
import os

from absl.testing import parameterized
import numpy as np
from scalable_agent.learning import optimizers
import tensorflow as tf


def _slices(values, indices, dense_shape=None):
  return tf.IndexedSlices(
      tf.constant(values), tf.constant(indices),
      None if dense_shape is None else tf.constant(dense_shape))


def _slots(optimizer):
  """The values of all slots, without iterations and learning rate."""
  return [v.numpy() for v in optimizer.variables[2:]]


def _tf1_rmsprop(gradients, value, learning_rates, decay, momentum, epsilon):
  """Runs TensorFlow 1's own optimizer; returns the value after each update."""
  learning_rate = tf.Variable(0.0)
  variable = tf.Variable(value)
  optimizer = tf.compat.v1.train.RMSPropOptimizer(
      learning_rate, decay, momentum, epsilon)
  values = []
  for gradient, rate in zip(gradients, learning_rates):
    learning_rate.assign(rate)
    optimizer.apply_gradients([(gradient, variable)])
    values.append(variable.numpy())
  return values


class RMSPropTest(tf.test.TestCase, parameterized.TestCase):

  def _run(self, gradients, value, learning_rates, jit_compile=False, **kwargs):
    """Runs ours, setting the learning rate in the compiled update."""
    variable = tf.Variable(value)
    optimizer = optimizers.RMSProp(1.0, **kwargs)
    optimizer.build([variable])

    @tf.function(autograph=False, jit_compile=jit_compile,
                 reduce_retracing=True)
    def update(gradient, learning_rate):
      optimizer.learning_rate.assign(0.5 * learning_rate)
      optimizer.apply([gradient], [variable])

    values = []
    for gradient, rate in zip(gradients, learning_rates):
      update(gradient, tf.constant(2.0 * rate))
      values.append(variable.numpy())
    return values, optimizer

  @parameterized.product(
      [dict(momentum=0.0,
            expected=[.999770384861, 1.000229599377, .999323555588]),
       dict(momentum=0.9,
            expected=[.999770384861, 1.000022945752, .999344206764])],
      jit_compile=(False, True))
  def test_numbers_of_the_reference(self, momentum, expected, jit_compile):
    found, optimizer = self._run(
        [tf.constant(g) for g in (.5, -1., 2.)], 1.0, [.00048] * 3,
        jit_compile, decay=.99, momentum=momentum, epsilon=.1)
    self.assertAllClose(expected, found, rtol=0, atol=2e-7)
    self.assertAllClose(1.02264925, _slots(optimizer)[0])

  def test_second_moment_starts_at_one(self):
    _, optimizer = self._run([tf.constant(.5)], 1.0, [.00048])
    self.assertAllClose(.9925, _slots(optimizer)[0])

  def test_defaults_are_the_reference_flags(self):
    optimizer = optimizers.RMSProp(.5)
    self.assertEqual(
        (optimizer.decay, optimizer.momentum, optimizer.epsilon), (.99, 0., .1))

  @parameterized.product(momentum=(0.0, 0.9), jit_compile=(False, True))
  def test_dense_is_tensorflow_1(self, momentum, jit_compile):
    rng = np.random.RandomState(0)
    gradients = [tf.constant(rng.normal(size=[4, 3]), tf.float32)
                 for _ in range(20)]
    value = rng.normal(size=[4, 3]).astype(np.float32)
    settings = dict(decay=.9, momentum=momentum, epsilon=.01)
    rates = np.linspace(.1, .01, 20, dtype=np.float32)
    found, _ = self._run(gradients, value, rates, jit_compile, **settings)
    self.assertAllClose(_tf1_rmsprop(gradients, value, rates, **settings),
                        found, rtol=1e-5, atol=1e-5)

  @parameterized.product(momentum=(0.0, 0.9), jit_compile=(False, True))
  def test_sparse_is_tensorflow_1(self, momentum, jit_compile):
    rng = np.random.RandomState(1)
    # The same number of slices each time, rows by chance: some come twice,
    # some not at all.
    gradients = [
        _slices(rng.normal(size=[3, 2]).astype(np.float32),
                rng.randint(6, size=[3])) for _ in range(20)]
    value = rng.normal(size=[6, 2]).astype(np.float32)
    settings = dict(decay=.9, momentum=momentum, epsilon=.01)
    rates = np.linspace(.1, .01, 20, dtype=np.float32)
    found, _ = self._run(gradients, value, rates, jit_compile, **settings)
    self.assertAllClose(_tf1_rmsprop(gradients, value, rates, **settings),
                        found, rtol=1e-5, atol=1e-5)

  def test_sparse_numbers_of_the_reference(self):
    found, optimizer = self._run(
        [_slices([.5, .25], [0, 0])], [1.0, 1.0], [.00048])
    self.assertAllClose([[.9996561, 1.0]], found, rtol=0, atol=1e-7)
    self.assertAllClose([[.995625, 1.0]], _slots(optimizer))

  def test_row_named_with_zero_gradient_decays(self):
    _, optimizer = self._run([_slices([[0.0]], [1])], [[1.0], [1.0]], [.1])
    self.assertAllClose([[[1.0], [.99]]], _slots(optimizer))

  def test_embedding(self):
    embedding = tf.keras.layers.Embedding(4, 2)
    embedding.build(None)
    before = embedding.weights[0].numpy()
    optimizer = optimizers.RMSProp(.1)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(embedding(tf.constant([[0, 2, 0]])))
    gradients = tape.gradient(loss, embedding.trainable_variables)
    self.assertIsInstance(gradients[0], tf.IndexedSlices)
    optimizer.apply(gradients, embedding.trainable_variables)
    self.assertAllClose([[1.03] * 2, [1.0] * 2, [1.0] * 2, [1.0] * 2],
                        _slots(optimizer)[0])
    after = embedding.weights[0].numpy()
    self.assertAllEqual(before[[1, 3]], after[[1, 3]])
    self.assertTrue(np.all(before[[0, 2]] > after[[0, 2]]))

  def test_variables_do_not_share_slots(self):
    variables = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)]
    optimizer = optimizers.RMSProp(.1)
    optimizer.apply([tf.constant([1.0, 2.0]), tf.constant(0.0)], variables)
    self.assertAllClose([1.0, 1.03], _slots(optimizer)[0])
    self.assertAllClose(.99, _slots(optimizer)[1])
    optimizer.apply([tf.constant(4.0)], variables[1:])
    self.assertAllClose([1.0, 1.03], _slots(optimizer)[0])
    self.assertAllClose(.99 * .99 + .16, _slots(optimizer)[1])

  @parameterized.parameters('adam', 'rmsprop', 'torch_rmsprop')
  def test_checkpoint_holds_all_state(self, name):
    def make():
      variable = tf.Variable([1.0, 2.0])
      optimizer = optimizers.make_optimizer(
          name, learning_rate=.1, decay=.9, momentum=.5, epsilon=.1,
          beta_1=.9, beta_2=.99)
      optimizer.build([variable])
      return variable, optimizer, tf.train.Checkpoint(
          variable=variable, optimizer=optimizer)

    variable, optimizer, checkpoint = make()
    optimizer.learning_rate.assign(.2)
    optimizer.apply([tf.constant([3.0, 4.0])], [variable])
    path = checkpoint.save(os.path.join(self.get_temp_dir(), name))
    restored_variable, restored_optimizer, checkpoint = make()
    checkpoint.restore(path).assert_consumed()
    self.assertLen(_slots(restored_optimizer), 2)
    for a, b in zip(optimizer.variables, restored_optimizer.variables):
      self.assertAllEqual(a, b)
    for v, o in ((variable, optimizer),
                 (restored_variable, restored_optimizer)):
      o.apply([tf.constant([-1.0, 1.0])], [v])
    self.assertAllEqual(variable, restored_variable)


class AdamTest(tf.test.TestCase, parameterized.TestCase):

  def _make(self):
    return optimizers.Adam(1e-3, beta_1=.9, beta_2=.999, epsilon=1e-8)

  def test_equal_slices_take_one_step(self):
    # Keras alone: 4e-3, as it sums the slices but squares them one by one.
    variable = tf.Variable(tf.zeros([3, 2]))
    self._make().apply(
        [_slices(np.ones([16, 2], np.float32), [1] * 16, [3, 2])], [variable])
    self.assertAllClose([[0, 0], [-1e-3, -1e-3], [0, 0]], variable, atol=1e-8)

  @parameterized.parameters(False, True)
  def test_slices_as_their_dense_sum(self, jit_compile):
    rng = np.random.default_rng(1)
    start = rng.normal(size=[5, 3]).astype(np.float32)
    sparse, dense = tf.Variable(start), tf.Variable(start)
    sparse_optimizer, dense_optimizer = self._make(), self._make()
    sparse_optimizer.build([sparse])
    dense_optimizer.build([dense])

    @tf.function(autograph=False, jit_compile=jit_compile)
    def update(values, indices, total):
      slices = tf.IndexedSlices(values, indices, tf.constant([5, 3]))
      sparse_optimizer.apply([slices], [sparse])
      dense_optimizer.apply([total], [dense])

    for _ in range(4):
      values = rng.normal(size=[7, 3]).astype(np.float32)
      indices = rng.integers(5, size=7).astype(np.int32)
      total = np.zeros([5, 3], np.float32)
      np.add.at(total, indices, values)
      update(values, indices, total)
    self.assertAllClose(dense, sparse, atol=1e-6)
    for one, other in zip(_slots(dense_optimizer), _slots(sparse_optimizer)):
      self.assertAllClose(one, other, atol=1e-6)

  def test_numbers_of_tensorflow_1(self):
    gradients = [
        _slices([[1.0, 2.0], [3.0, -1.0], [.5, .5]], [0, 2, 0], [3, 2]),
        _slices([[-1.0, 1.0], [2.0, 4.0]], [2, 2], [3, 2])]
    ours, theirs = tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([3, 2]))
    optimizer = self._make()
    reference = tf.compat.v1.train.AdamOptimizer(1e-3)
    for gradient in gradients:
      optimizer.apply([gradient], [ours])
      reference.apply_gradients([(gradient, theirs)])
    self.assertAllClose(theirs, ours, atol=1e-7)

  @parameterized.product(
      jit_compile=(False, True), dtype=(tf.float32, tf.float64))
  def test_numbers_of_torch(self, jit_compile, dtype):
    # Gradients as small as epsilon show where it is added; then usual ones.
    for gradients, expected in (
        ([1e-6, -1e-6, 2e-6],
         [.999504950495, .999531005732, .999283633409]),
        ([.5, -1., 2.], [.99950000001, .999683051771, .999473223964])):
      variable = tf.Variable(1., dtype=dtype)
      optimizer = optimizers.Adam(
          5e-4, beta_1=.9, beta_2=.999, epsilon=1e-8)
      optimizer.build([variable])
      update = tf.function(lambda g, o=optimizer, v=variable: o.apply([g], [v]),
                           autograph=False, jit_compile=jit_compile)
      for gradient, value in zip(gradients, expected):
        update(tf.constant(gradient, dtype))
        self.assertAllClose(value, variable, rtol=0, atol=1.2e-7)

  def test_formula(self):
    rng = np.random.RandomState(2)
    value, m, v = rng.normal(size=[2, 4, 3]), 0., 0.
    variables = [tf.Variable(part) for part in value]
    optimizer = optimizers.Adam(.1, beta_1=.8, beta_2=.95, epsilon=.3)
    optimizer.build(variables)
    optimizer.update_steps([], .1)
    for t in range(1, 8):
      gradient = rng.normal(size=[2, 4, 3])
      m = .8 * m + .2 * gradient
      v = .95 * v + .05 * gradient ** 2
      value = value - .1 / (1 - .8 ** t) * m / (
          np.sqrt(v / (1 - .95 ** t)) + .3)
      optimizer.update_steps(
          list(zip(map(tf.constant, gradient), variables)), .1)
      optimizer.iterations.assign_add(1)
      self.assertAllClose(value, tf.stack(variables), rtol=1e-6)

  def test_restores_checkpoints_of_keras(self):
    gradient = tf.constant([3., 4.])
    theirs, ours = tf.Variable([1., 2.]), tf.Variable([1., 2.])
    keras = tf.keras.optimizers.Adam(1e-3, name='adam')
    optimizer = optimizers.Adam(1e-3, name='adam')
    keras.apply([gradient], [theirs])
    optimizer.build([ours])
    self.assertEqual([v.path for v in keras.variables],
                     [v.path for v in optimizer.variables])
    path = tf.train.Checkpoint(optimizer=keras).save(
        os.path.join(self.get_temp_dir(), 'keras'))
    tf.train.Checkpoint(optimizer=optimizer).restore(path).assert_consumed()
    for one, other in zip(keras.variables, optimizer.variables):
      self.assertAllEqual(one, other)


class TorchRMSPropTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      jit_compile=(False, True), dtype=(tf.float32, tf.float64))
  def test_numbers_of_torch(self, jit_compile, dtype):
    variable = tf.Variable(1., dtype=dtype)
    optimizer = optimizers.TorchRMSProp(5e-4, epsilon=1e-8)
    optimizer.build([variable])
    update = tf.function(lambda g: optimizer.apply([g], [variable]),
                         autograph=False, jit_compile=jit_compile)
    for gradient, value in zip(
        [.5, -1., 2.], [.995000001, .999476615410, .995106020043]):
      update(tf.constant(gradient, dtype))
      self.assertAllClose(value, variable, rtol=0, atol=1.2e-7)

  @parameterized.parameters(0., .7)
  def test_formula(self, momentum):
    rng = np.random.RandomState(3)
    value, mean_square, step = rng.normal(size=[4, 3]), 0., 0.
    variable = tf.Variable(value)
    optimizer = optimizers.TorchRMSProp(.5, .8, momentum, .3)
    for rate in (.5, .1, .2, .4):
      gradient = rng.normal(size=[4, 3])
      mean_square = .8 * mean_square + .2 * gradient ** 2
      step = momentum * step + gradient / (np.sqrt(mean_square) + .3)
      value = value - rate * step
      optimizer.learning_rate.assign(rate)
      optimizer.apply([tf.constant(gradient)], [variable])
      self.assertAllClose(value, variable, rtol=1e-6)
    self.assertLen(_slots(optimizer), 2 if momentum else 1)

  def test_slices_as_their_dense_sum(self):
    sparse, dense = tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([3, 2]))
    one, other = (optimizers.TorchRMSProp(.1, momentum=.5, epsilon=1e-8)
                  for _ in range(2))
    for values, indices in (([[1., 2.], [3., -1.], [.5, .5]], [0, 2, 0]),
                            ([[-1., 1.], [2., 4.]], [2, 2])):
      total = np.zeros([3, 2], np.float32)
      np.add.at(total, indices, np.float32(values))
      one.apply([_slices(values, indices, [3, 2])], [sparse])
      other.apply([tf.constant(total)], [dense])
    self.assertAllClose(dense, sparse)
    self.assertAllClose(_slots(other), _slots(one))


class MakeOptimizerTest(tf.test.TestCase):

  def _make(self, name):
    return optimizers.make_optimizer(
        name, learning_rate=.5, decay=.8, momentum=.7, epsilon=.25,
        beta_1=.6, beta_2=.9)

  def test_rmsprop(self):
    optimizer = self._make('rmsprop')
    self.assertIsInstance(optimizer, optimizers.RMSProp)
    self.assertEqual(
        (.5, .8, .7, .25),
        (float(optimizer.learning_rate), optimizer.decay, optimizer.momentum,
         optimizer.epsilon))

  def test_torch_rmsprop(self):
    optimizer = self._make('torch_rmsprop')
    self.assertIsInstance(optimizer, optimizers.TorchRMSProp)
    self.assertEqual(
        (.5, .8, .7, .25),
        (float(optimizer.learning_rate), optimizer.decay, optimizer.momentum,
         optimizer.epsilon))

  def test_adam(self):
    optimizer = self._make('adam')
    self.assertIsInstance(optimizer, tf.keras.optimizers.Adam)
    self.assertEqual(
        (.5, .6, .9, .25),
        (float(optimizer.learning_rate), optimizer.beta_1, optimizer.beta_2,
         optimizer.epsilon))

  def test_unknown(self):
    with self.assertRaisesRegex(ValueError, "'sgd': must be rmsprop, torch_"):
      self._make('sgd')


class LinearDecayTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (0, .00048), (12800, .000479993856), (500000000, .00024),
      (999987200, 6.144e-9), (1000000000, 0.0), (1000012800, 0.0))
  def test_numbers_of_the_reference(self, frames, expected):
    found = optimizers.linear_decay(.00048, frames, 1000000000)
    self.assertAllClose(expected, found, rtol=1e-12, atol=0)

  def test_keeps_its_digits(self):
    for total in range(999999900, 1000000000):
      for frames in (0, total // 3, total - 1):
        exact = (fractions.Fraction(.00048)
                 * fractions.Fraction(total - frames, total))
        self.assertAllClose(
            float(exact), optimizers.linear_decay(.00048, frames, total),
            rtol=1e-15, atol=0)

  def test_more_frames_than_int32_holds(self):
    self.assertAllClose(
        .25, optimizers.linear_decay(1.0, 7500000000, 10000000000))


class GlobalNormTest(tf.test.TestCase):

  def test_sums_slices_of_a_row(self):
    gradients = [tf.constant([2.0, 1.0]), None,
                 _slices([[.5], [.5], [2.0]], [1, 1, 0], [3, 1])]
    self.assertAllClose(np.sqrt(4 + 1 + 1 + 4),
                        optimizers.global_norm(gradients))

  def test_clips_to_the_norm(self):
    gradients = [tf.constant([6.0]), _slices([[4.0], [4.0]], [0, 0], [2, 1])]
    clipped, _ = tf.clip_by_global_norm(
        gradients, 5.0, use_norm=optimizers.global_norm(gradients))
    self.assertAllClose([3.0], clipped[0])
    self.assertAllClose([[4.0], [0.0]], tf.convert_to_tensor(clipped[1]))


class ClippingTest(tf.test.TestCase, parameterized.TestCase):

  def test_known_norm(self):
    gradients = [tf.constant([3.]), None, tf.constant([4.])]
    clipped = optimizers.clip_by_norm(gradients, .5)
    self.assertAllClose([.29999994], clipped[0], rtol=0, atol=2e-8)
    self.assertAllClose([.39999992], clipped[2], rtol=0, atol=4e-8)
    self.assertIsNone(clipped[1])

  def test_small_norm_is_kept(self):
    gradients = [tf.constant([3.]), tf.constant([4.])]
    clipped = optimizers.clip_by_norm(gradients, 5.1)
    self.assertAllEqual([[3], [4]], clipped)

  def test_norm_of_slices(self):
    gradients = [tf.constant([6.]), _slices([[4.], [4.]], [0, 0], [2, 1])]
    clipped = optimizers.clip_by_norm(gradients, 5.)
    self.assertAllClose([3.], clipped[0])
    self.assertAllClose([[4.], [0.]], tf.convert_to_tensor(clipped[1]))

  def test_value(self):
    clipped = optimizers.clip_by_value(
        [tf.constant([[-3., .2], [.5, 4.]]), None,
         _slices([[.4], [.4], [-.1]], [0, 0, 1], [2, 1])], .5)
    self.assertAllClose([[-.5, .2], [.5, .5]], clipped[0])
    self.assertIsNone(clipped[1])
    self.assertAllClose([[.5], [-.1]], tf.convert_to_tensor(clipped[2]))
    # Rows without a slice stay without one: RMSProp leaves them alone.
    self.assertAllEqual([0, 0, 1], clipped[2].indices)

  @parameterized.parameters(False, True)
  def test_value_of_compiled_slices(self, jit_compile):
    values, indices = np.random.default_rng(1).normal(size=[9, 3]), [
        4, 1, 1, 6, 4, 4, 0, 6, 2]

    @tf.function(jit_compile=jit_compile)
    def clip(values):
      [clipped] = optimizers.clip_by_value([tf.IndexedSlices(
          values, tf.constant(indices), tf.constant([8, 3]))], 1.)
      return clipped.values

    found, dense = clip(tf.constant(values, tf.float32)), np.zeros([8, 3])
    expected = np.zeros([8, 3])
    for index, value, part in zip(indices, values, found.numpy()):
      expected[index] += value
      dense[index] += part
    self.assertAllClose(np.clip(expected, -1, 1), dense, atol=1e-6)


# See `mutations.py`.
MUTATIONS = (
    dict(file='learning/optimizers', catches='AdamTest.test_formula', rows=(
        ("Adam: Keras' epsilon", 'self.epsilon * tf.sqrt(1.0 - beta_2_power)',
         'tf.constant(self.epsilon, dtype)'),
        ('Adam: factor without the root',
         'self.epsilon * tf.sqrt(1.0 - beta_2_power)',
         'self.epsilon * (1.0 - beta_2_power)'),
        ('Adam: factor of the first moment', 'tf.sqrt(1.0 - beta_2_power)',
         'tf.sqrt(1.0 - tf.pow(beta_1, step))'),
        ('Adam: moments swapped', 'm=self._momentums[index]',
         'm=self._velocities[index]'),
        ('Adam: slots of the first variable', 'v=self._velocities[index]',
         'v=self._velocities[0]'),
        ('Adam: no gradients', 'if not pairs:', 'if pairs is None:'),
        ('Adam: the first variable alone',
         'for gradient, variable in pairs:',
         'for gradient, variable in pairs[:1]:'),
    )),
    dict(file='learning/optimizers',
         catches='test_equal_slices_take_one_step', rows=(
        ('Adam: factor of the update before',
         'step = tf.cast(self.iterations + 1, dtype)',
         'step = tf.cast(self.iterations, dtype)'),
    )),
    dict(file='learning/optimizers',
         catches='TorchRMSPropTest.test_formula', rows=(
        ('torch RMSprop: epsilon inside the root',
         '(tf.sqrt(mean_square) + self.epsilon)',
         'tf.sqrt(mean_square + self.epsilon)'),
        ('torch RMSprop: starts at one', "_initial_mean_square = 'zeros'",
         "_initial_mean_square = 'ones'"),
        ('torch RMSprop: rate in the momentum',
         'tf.cast(learning_rate, variable.dtype) * step)',
         'tf.cast(0.5, variable.dtype) * step)'),
    )),
    dict(file='learning/optimizers', catches='test_known_norm', rows=(
        ('clip_by_norm without 1e-6',
         'tf.minimum(1.0, max_norm / (global_norm(gradients) + 1e-6))',
         'tf.minimum(1.0, max_norm / global_norm(gradients))'),
        ('clip norm per tensor', 'x * tf.cast(scale, x.dtype), g)',
         'x * tf.minimum(1.0, max_norm / (tf.norm(x) + 1e-6)), g)'),
    )),
    dict(file='learning/optimizers', catches='test_small_norm_is_kept', rows=(
        ('clip_by_norm raises small gradients',
         'tf.minimum(1.0, max_norm / (global_norm(gradients) + 1e-6))',
         'max_norm / (global_norm(gradients) + 1e-6)'),
    )),
    dict(file='learning/optimizers',
         catches='test_value_of_compiled_slices', rows=(
        ('clip_by_value per slice',
         'clipped = tf.clip_by_value(sum_slices(gradient, shape), -limit, '
         'limit)',
         'clipped = sum_slices(gradient, shape)'),
        ('clip_by_value counts slices of a row again',
         'tf.math.divide_no_nan(clipped, counts)', 'clipped'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
