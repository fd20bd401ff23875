# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of `networks`."""

import logging
import random
from unittest import mock

from absl import logging as absl_logging
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.networks import frame_torsos
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import torsos
import tensorflow as tf


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _reference_lstm(inputs, reset, c, h, kernel, bias):
  """The definition, in float64 NumPy; returns outputs `[T, B, units]`, c, h."""
  outputs = []
  for x, is_reset in zip(inputs, reset):
    c = np.where(is_reset[:, None], 0, c)
    h = np.where(is_reset[:, None], 0, h)
    gates = np.concatenate([x, h], axis=1) @ kernel + bias
    i, candidate, f, o = np.split(gates, 4, axis=1)
    c = _sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(candidate)
    h = _sigmoid(o) * np.tanh(c)
    outputs.append(h)
  return np.stack(outputs), c, h


def _naive_lstm(inputs, reset, c, h, kernel, bias):
  """The definition in eager TensorFlow: ground truth for gradients."""
  outputs = []
  for t in range(inputs.shape[0]):
    keep = 1 - tf.cast(reset[t], tf.float32)[:, tf.newaxis]
    c, h = c * keep, h * keep
    gates = tf.concat([inputs[t], h], axis=1) @ kernel + bias
    i, candidate, f, o = tf.split(gates, 4, axis=1)
    c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(candidate)
    h = tf.sigmoid(o) * tf.tanh(c)
    outputs.append(h)
  return tf.stack(outputs), c, h


def _lstm_data(num_steps, batch_size=3, num_inputs=4, units=5):
  rng = np.random.default_rng(num_steps)
  normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
  reset = rng.random([num_steps, batch_size]) < .3
  layer = layers.LSTM(units)
  layer.build([None, None, num_inputs])
  layer.kernel.assign(normal(num_inputs + units, 4 * units))
  layer.bias.assign(normal(4 * units))
  return (layer, normal(num_steps, batch_size, num_inputs), reset,
          normal(batch_size, units), normal(batch_size, units))


class LSTMTest(tf.test.TestCase, parameterized.TestCase):

  def test_one_step_has_known_values(self):
    layer = layers.LSTM(2)
    layer.build([None, None, 2])
    i, j = np.indices([4, 8])
    layer.kernel.assign((8 * i + j - 16) / 20)
    layer.bias.assign(np.arange(8) / 10)
    outputs, (c, h) = layer(
        tf.constant([[[1., -1.]]]),
        (tf.constant([[.3, .4]]), tf.constant([[.1, -.2]])))
    self.assertAllClose(c, [[.105438235805, .214055895495]], 1e-6, 1e-7)
    self.assertAllClose(h, [[.054886633842, .115146572905]], 1e-6, 1e-7)
    self.assertAllEqual(outputs, h[tf.newaxis])

  def test_unrolls_of_one_unit_have_known_values(self):
    layer = layers.LSTM(1)
    layer.build([None, None, 1])
    layer.kernel.assign([[.5, -1, .25, 1], [.1, .2, -.3, .4]])
    layer.bias.assign(np.zeros(4))
    zeros = layer.initial_state(1)

    def outputs(inputs, state=zeros, reset=None):
      inputs = tf.reshape(tf.constant(inputs), [-1, 1, 1])
      found, state = layer(inputs, state, reset)
      return tf.squeeze(found, [1, 2]), state

    inputs = [1., -1., .5, 2., -.5]
    first = [-.3227441, -.0147758, -.1847182]
    self.assertAllClose(
        outputs(inputs)[0], [*first, -.6481767, -.1625281], 1e-6, 1e-6)
    at_3 = tf.constant([False, False, False, True, False])[:, tf.newaxis]
    self.assertAllClose(
        outputs(inputs, zeros, at_3)[0], [*first, -.5349793, -.1138491],
        1e-6, 1e-6)
    state = tf.constant([[.3]]), tf.constant([[-.2]])
    self.assertAllClose(
        outputs(inputs, state)[0],
        [-.1712803, .0280974, -.1079827, -.6042658, -.1428226], 1e-6, 1e-6)
    _, state = outputs(inputs[:3])
    self.assertAllClose(outputs([.7], state)[0], [-.3511077], 1e-6, 1e-6)
    self.assertAllClose(outputs([.7])[0], [-.2274440], 1e-6, 1e-6)

  @parameterized.parameters(1, 2, 9)
  def test_unroll_is_the_definition(self, num_steps):
    layer, inputs, reset, c, h = _lstm_data(num_steps)
    outputs, state = layer(inputs, (c, h), reset)
    expected = _reference_lstm(inputs, reset, c, h, layer.kernel.numpy(),
                               layer.bias.numpy())
    self.assertAllClose((outputs, *state), expected, 1e-5, 1e-5)

  @parameterized.parameters(1, 7)
  @pytest.mark.slow
  def test_gradients_are_those_of_a_plain_loop(self, num_steps):
    layer, inputs, reset, c, h = _lstm_data(num_steps)
    sources = [tf.constant(x) for x in (inputs, c, h)]
    weights = [layer.kernel, layer.bias]
    rng = np.random.default_rng(0)
    weigh = [rng.normal(size=shape).astype(np.float32) for shape in
             ((num_steps, *c.shape), c.shape, h.shape)]

    @tf.function(autograph=False)
    def gradients(is_naive):
      with tf.GradientTape() as tape:
        tape.watch(sources)
        if is_naive:
          results = _naive_lstm(sources[0], reset, *sources[1:],
                                *[tf.convert_to_tensor(w) for w in weights])
        else:
          outputs, state = layer(sources[0], tuple(sources[1:]), reset)
          results = (outputs, *state)
        loss = tf.add_n([tf.reduce_sum(w * r) for w, r in zip(weigh, results)])
      return tape.gradient(loss, sources + weights)

    self.assertAllClose(gradients(False), gradients(True), 1e-4, 1e-5)

  def test_unknown_length(self):
    layer, inputs, reset, c, h = _lstm_data(6)
    unroll = tf.function(
        lambda x, reset: layer(x, (c, h), reset),
        input_signature=[tf.TensorSpec([None, 3, 4]),
                         tf.TensorSpec([None, 3], tf.bool)])
    for num_steps in (1, 6):
      self.assertAllClose(
          unroll(inputs[:num_steps], reset[:num_steps]),
          layer(inputs[:num_steps], (c, h), reset[:num_steps]), 1e-6, 1e-6)

  def test_graph_does_not_grow_with_time(self):
    layer, *_, c, h = _lstm_data(2)
    num_nodes = lambda num_steps: len(tf.function(
        lambda x: layer(x, (c, h)), autograph=False).get_concrete_function(
            tf.TensorSpec([num_steps, 3, 4])).graph.as_graph_def().node)
    self.assertEqual(num_nodes(5), num_nodes(100))

  def test_reset_also_forgets_what_is_not_finite(self):
    layer, inputs, reset, c, h = _lstm_data(3)
    reset[0] = True
    outputs, state = layer(inputs, (np.nan * c, np.inf * h), reset)
    self.assertAllClose(layer(inputs, (c, h), reset), (outputs, state))

  def test_state_is_float32_under_mixed_precision(self):
    tf.keras.config.set_dtype_policy('mixed_bfloat16')
    self.addCleanup(tf.keras.config.set_dtype_policy, 'float32')
    layer = layers.LSTM(5)
    layer.build([None, None, 4])
    state = (tf.fill([2, 5], 1.001), tf.zeros([2, 5]))
    outputs, (c, h) = layer(tf.zeros([3, 2, 4], tf.bfloat16), state)
    self.assertEqual({outputs.dtype, c.dtype, h.dtype}, {tf.float32})
    # bfloat16 cannot tell 1.001 from 1.
    tf.keras.config.set_dtype_policy('float32')
    full = layers.LSTM(5)
    full.build([None, None, 4])
    full.set_weights(layer.get_weights())
    _, (expected_c, _) = full(tf.zeros([1, 2, 4]), state)
    _, (c, _) = layer(tf.zeros([1, 2, 4]), state)
    self.assertAllClose(c, expected_c, 1e-5)

  def test_initial_weights(self):
    layer = layers.LSTM(256, tf.keras.random.SeedGenerator(1))
    layer.build([None, None, 330])
    limit = np.sqrt(6 / (586 + 1024))  # Of the joint kernel.
    self.assertAllInRange(layer.kernel, -limit, limit)
    self.assertAllClose(np.std(layer.kernel), limit / np.sqrt(3), 1e-2)
    self.assertAllEqual(layer.bias, np.zeros(1024))


class TorsoTest(tf.test.TestCase, parameterized.TestCase):

  def test_pooling_pads_even_sizes_at_the_end(self):
    line = tf.range(6, dtype=tf.float32)[tf.newaxis, tf.newaxis, :, tf.newaxis]
    pooled = tf.nn.max_pool2d(line, ksize=3, strides=2, padding='SAME')
    self.assertAllEqual(pooled[0, 0, :, 0], [2, 4, 5])

  def test_section_pools_like_that(self):
    section = frame_torsos.ResNetSection(1, None)
    line = tf.range(6, dtype=tf.float32)[tf.newaxis, tf.newaxis, :, tf.newaxis]
    section(line)
    section.set_weights([np.zeros_like(w) for w in section.get_weights()])
    identity = np.zeros([3, 3, 1, 1], np.float32)
    identity[1, 1] = 1
    section.weights[0].assign(identity)  # Of the first convolution.
    self.assertAllEqual(section(line)[0, 0, :, 0], [2, 4, 5])

  def test_deep_is_the_definition(self):
    torso = frame_torsos.DeepTorso()
    frames = _frames(2, 13, 18, 3)
    torso(frames)
    rng = np.random.default_rng(0)
    torso.set_weights([w + .1 * rng.normal(size=w.shape)
                       for w in torso.get_weights()])
    weights = iter(torso.get_weights())
    conv = lambda x: tf.nn.conv2d(x, next(weights), 1, 'SAME') + next(weights)
    x = frames / np.float32(255)
    for _ in range(3):
      x = tf.nn.max_pool2d(conv(x), 3, 2, 'SAME')
      for _ in range(2):
        x += conv(tf.nn.relu(conv(tf.nn.relu(x))))
    x = tf.nn.relu(tf.reshape(x, [2, -1]))
    x = tf.nn.relu(x @ next(weights) + next(weights))
    self.assertAllClose(torso(frames), x, 1e-4, 1e-3)

  @parameterized.parameters(
      (frame_torsos.DeepTorso, (72, 96, 3), 97600 + 884992),
      (frame_torsos.ShallowTorso, (84, 84, 4),
       8 * 8 * 4 * 16 + 16 + 4 * 4 * 16 * 32 + 32 + 9 * 9 * 32 * 256 + 256),
      (frame_torsos.NatureTorso, (84, 84, 4),
       8224 + 32832 + 36928 + 1606144, 512))
  def test_sizes(self, torso_class, shape, num_parameters, num_features=256):
    torso = torso_class()
    self.assertEqual(torso(tf.zeros([2, *shape], tf.uint8)).shape,
                     [2, num_features])
    self.assertEqual(torso.count_params(), num_parameters)

  def test_flattened_width(self):
    torso = frame_torsos.DeepTorso()
    torso(tf.zeros([1, 72, 96, 3], tf.uint8))
    self.assertIn((3456, 256), [tuple(w.shape) for w in torso.weights])

  @parameterized.parameters(
      ((84, 84, 4), 'channels_last'), ((4, 84, 84), 'channels_first'),
      ((7, 7, 20), 'channels_last'), ((20, 7, 7), 'channels_first'),
      ((7, 9, 3), 'channels_last'), ((3, 7, 9), 'channels_first'),
      ((5, 5, 5), 'channels_last'))
  def test_channels_are_beside_a_square(self, shape, expected):
    self.assertEqual(layers.data_format(shape), expected)

  @parameterized.parameters(
      (('observation', 'desired_goal'), False), (('desired_goal',), True),
      (('observation',), True))
  def test_achieved_goals_are_seen_unless_observed(self, others, is_seen):
    seen, _ = instructions.split(
        dict.fromkeys([*others, 'achieved_goal', 'instruction'], 0))
    seen = set(seen) if isinstance(seen, dict) else set(others)
    self.assertEqual(seen, {*others, *['achieved_goal'] * is_seen})

  @parameterized.product(size=((84, 84), (20, 23), (25, 30)),
                         as_given_by_atari=(False, True))
  def test_shallow_is_the_definition(self, size, as_given_by_atari):
    frames = _frames(2, *size, 4)
    pixels = tf.constant(np.transpose(frames, [0, 3, 1, 2]))
    frames = tf.constant(frames / np.float32(255))
    torso = frame_torsos.ShallowTorso(
        'channels_first' if as_given_by_atari else 'channels_last')
    seen = pixels if as_given_by_atari else frames
    torso(seen)
    weights = [tf.constant(w) for w in torso.get_weights()]
    upstream = np.random.RandomState(1).normal(size=(2, 256))

    def definition(frames):
      k1, b1, k2, b2, k3, b3 = weights
      x = tf.nn.relu(tf.nn.conv2d(frames, k1, 4, 'VALID') + b1)
      x = tf.nn.relu(tf.nn.conv2d(x, k2, 2, 'VALID') + b2)
      return tf.nn.relu(tf.reshape(x, [2, -1]) @ k3 + b3)

    with tf.GradientTape(persistent=True) as tape:
      tape.watch([frames, weights])
      features, expected = torso(seen), definition(frames)
      loss, expected_loss = (
          tf.reduce_sum(x * upstream) for x in (features, expected))
    self.assertAllClose(features, expected, 1e-4, 1e-5)
    for gradient, expected_gradient in zip(
        tape.gradient(loss, torso.trainable_weights),
        tape.gradient(expected_loss, weights), strict=True):
      self.assertAllClose(gradient, expected_gradient, 1e-4, 1e-4)
    if not as_given_by_atari:
      self.assertAllClose(tape.gradient(loss, frames),
                          tape.gradient(expected_loss, frames), 1e-4, 1e-4)

  @parameterized.parameters(None, False, True)
  def test_pixels_that_are_odd_floats(self, jit_compile):
    # The shallow torso moves four pixels as one float: a small number, an
    # infinity, or a NaN of some kind.
    rng = np.random.default_rng(0)
    odd = rng.choice(np.uint32([0, 0x7f800000, 0x80000000, 0xff800000]),
                     size=[8, 4, 84, 21]) + rng.integers(
                         2**16, size=[8, 4, 84, 21], dtype=np.uint32)
    frames = odd.view(np.uint8)
    last, first = map(frame_torsos.ShallowTorso, (
        'channels_last', 'channels_first'))
    expected = last(np.transpose(frames, [0, 2, 3, 1]))
    first(frames)
    first.set_weights(last.get_weights())
    call = first if jit_compile is None else tf.function(
        lambda x: first(x), autograph=False, jit_compile=jit_compile)
    self.assertAllClose(call(tf.constant(frames)), expected, 1e-5, 1e-5)

  @parameterized.product(size=((84, 84), (36, 39)),
                         as_given_by_atari=(False, True))
  def test_nature_is_the_definition(self, size, as_given_by_atari):
    frames = _frames(2, *size, 4)
    torso = frame_torsos.NatureTorso(
        'channels_first' if as_given_by_atari else 'channels_last')
    seen = np.transpose(frames, [0, 3, 1, 2]) if as_given_by_atari else frames
    torso(seen)
    # Biases are zero in a new network.
    torso.set_weights([w + 0.01 for w in torso.get_weights()])
    weights = iter(torso.get_weights())
    x = frames / np.float32(255)
    for stride in (4, 2, 1):
      x = tf.nn.conv2d(x, next(weights), stride, 'VALID')
      x = tf.nn.relu(x + next(weights))
    x = tf.nn.relu(tf.reshape(x, [2, -1]) @ next(weights) + next(weights))
    self.assertAllClose(torso(seen), x, 1e-4, 1e-5)

  @parameterized.parameters(
      frame_torsos.DeepTorso, frame_torsos.ShallowTorso,
      frame_torsos.NatureTorso)
  @pytest.mark.slow
  def test_channels_first_is_transposed(self, torso_class):
    frames = _frames(3, 40, 44, 4)
    last = torso_class('channels_last')
    first = torso_class('channels_first')
    expected = last(frames)
    transposed = np.transpose(frames, [0, 3, 1, 2])
    first(transposed)
    first.set_weights(last.get_weights())
    # The shallow torso adds up its products in another order.
    self.assertAllClose(first(transposed), expected, 1e-5, 1e-5)
    self.assertAllClose(first(transposed / np.float32(255)), expected,
                        1e-5, 1e-5)

  @parameterized.parameters(frame_torsos.DeepTorso, frame_torsos.ShallowTorso,
                            frame_torsos.NatureTorso, torsos.MLPTorso)
  def test_uint8_is_scaled_and_float_is_not(self, torso_class):
    torso = torso_class()
    frames = _frames(3, 40, 44, 2)
    self.assertAllClose(torso(frames), torso(frames / np.float32(255)),
                        1e-5, 1e-5)

  def test_mlp_is_the_definition(self):
    torso = torsos.MLPTorso([6, 7])
    x = np.random.default_rng(0).normal(size=[3, 5, 2]).astype(np.float32)
    features = torso(x)
    k1, b1, k2, b2 = torso.get_weights()
    x = np.tanh(np.tanh(x.reshape([3, 10]) @ k1 + b1) @ k2 + b2)
    self.assertAllClose(features, x, 1e-5, 1e-6)

  def test_layer_norm_is_the_definition(self):
    torso = torsos.MLPTorso([6, 7, 5], 'relu', layer_norm=True)
    x = np.random.default_rng(0).normal(size=[3, 4]).astype(np.float32)
    torso(x)
    # Scale and offset of the normalisation are not 1 and 0 either.
    rng = np.random.default_rng(1)
    torso.set_weights([rng.normal(size=w.shape) for w in torso.get_weights()])
    k1, b1, scale, offset, k2, b2, k3, b3 = torso.get_weights()
    y = x @ k1 + b1
    y = (y - y.mean(1, keepdims=True)) / np.sqrt(
        y.var(1, keepdims=True) + 1e-3)
    y = np.tanh(y * scale + offset)
    elu = lambda z: np.where(z > 0, z, np.exp(z) - 1)
    y = elu(elu(y @ k2 + b2) @ k3 + b3)
    self.assertAllClose(torso(x), y, 1e-4, 1e-5)

  def test_initial_weights(self):
    torso = frame_torsos.DeepTorso(seed=tf.keras.random.SeedGenerator(3))
    torso(tf.zeros([1, 72, 96, 3], tf.uint8))
    # A normal cut at 2 sigma keeps .8796 of its stddev.
    kernels = [w.numpy() for w in torso.weights if len(w.shape) > 1]
    self.assertLen(kernels, 16)
    for kernel in kernels:
      stddev = 1 / np.sqrt(np.prod(kernel.shape[:-1]))
      self.assertAllInRange(kernel, -2 * stddev, 2 * stddev)
      self.assertAllClose(np.std(kernel), .8796 * stddev,
                          rtol=5 / np.sqrt(2 * kernel.size))
    for bias in (w for w in torso.weights if len(w.shape) == 1):
      self.assertAllEqual(bias, np.zeros(bias.shape))

  def test_seed_gives_layers_of_one_shape_different_weights(self):
    make = lambda: torsos.MLPTorso(
        [4, 4, 4], seed=tf.keras.random.SeedGenerator(1))
    first, second = make(), make()
    first(tf.zeros([1, 4])), second(tf.zeros([1, 4]))
    self.assertAllEqual(first.get_weights()[0], second.get_weights()[0])
    self.assertAllEqual(first.get_weights()[2], second.get_weights()[2])
    self.assertNotAllClose(first.get_weights()[0], first.get_weights()[2])


def _frames(*shape):
  return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


class InstructionEncoderTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('go', 681), ('Go', 835), ('to', 641), ('the', 354), ('red', 910),
      ('ball', 199), ('blue', 345), ('balloon', 352), ('suitcase', 594),
      ('pick', 763), ('up', 849))
  def test_buckets(self, word, bucket):
    self.assertAllEqual(instructions.hash_words([word]), [[bucket] + [-1] * 7])

  def test_empty_word_is_the_reference_padding(self):
    self.assertEqual(tf.strings.to_hash_bucket_fast('', 1000), 263)
    encoder = instructions.InstructionEncoder()
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(encoder(instructions.hash_words(['go up', 'pick'])))
    gradient = tape.gradient(loss, encoder.embeddings)
    self.assertIsInstance(gradient, tf.IndexedSlices)
    self.assertSetEqual(set(gradient.indices.numpy()), {681, 849, 763, 263})
    dense = tf.convert_to_tensor(gradient).numpy()
    self.assertAllEqual(dense[263], np.zeros(20))
    self.assertTrue(dense[849].all())

  def test_words_are_between_spaces(self):
    ids = instructions.hash_words(['go  to the red ball', '', ' x ', 'a\tb '])
    self.assertEqual(ids.dtype, np.int32)
    self.assertAllEqual((ids >= 0).sum(axis=1), [5, 0, 1, 1])
    self.assertAllEqual(ids[0], [681, 641, 354, 910, 199, -1, -1, -1])

  def test_new_texts_of_known_words_need_no_hash(self):
    instructions.hash_words(['go to the red ball'])
    with mock.patch.object(tf.strings, 'to_hash_bucket_fast') as hash_word:
      ids = instructions.hash_words([f'the ball {"go " * i}' for i in range(9)])
    hash_word.assert_not_called()
    self.assertAllEqual(ids[2, :5], [354, 199, 681, 681, -1])

  @parameterized.parameters((0, 1), (1, 8), (8, 8), (9, 16), (16, 16))
  def test_few_widths(self, num_words, width):
    self.assertEqual(instructions.hash_words(['', 'a ' * num_words]).shape,
                     (2, width))

  def test_any_rank(self):
    words = np.array([[b'go', b'up', b''], [b'the ball', b'', b'up']], object)
    ids = instructions.hash_words(words)
    self.assertEqual(ids.shape, (2, 3, 8))
    self.assertAllEqual(ids[1, 0, :2], [354, 199])
    self.assertAllEqual(ids[1, 2, :2], [849, -1])
    self.assertAllEqual(instructions.hash_words(tf.constant('up'))[0], 849)
    self.assertEqual(instructions.hash_words([]).shape, (0, 1))

  def test_encoding_is_the_output_at_the_last_word(self):
    encoder = instructions.InstructionEncoder(tf.keras.random.SeedGenerator(0))
    sentences = ['go to the red ball', '', 'up', 'pick up the blue ball ' * 2]
    codes = encoder(instructions.hash_words(sentences))
    embeddings, kernel, bias = encoder.get_weights()
    self.assertEqual(embeddings.shape, (1000, 20))
    for sentence, code in zip(sentences, codes):
      h = np.zeros([1, 64])
      ids = [int(tf.strings.to_hash_bucket_fast(w, 1000))
             for w in sentence.split()]
      if ids:
        _, _, h = _reference_lstm(
            embeddings[ids][:, None], np.zeros([len(ids), 1], bool),
            np.zeros([1, 64]), h, kernel, bias)
      self.assertAllClose(code, h[0], 1e-5, 1e-5)

  def test_no_words_give_zeros(self):
    encoder = instructions.InstructionEncoder()
    # Biases that are not zero, or steps over padding would not show.
    encoder(instructions.hash_words(['']))
    encoder.set_weights([np.random.normal(size=w.shape)
                         for w in encoder.get_weights()])
    codes = encoder(instructions.hash_words(['', 'go', ' ']))
    self.assertAllEqual(codes[0], np.zeros(64))
    self.assertAllEqual(codes[2], np.zeros(64))
    self.assertTrue(codes[1].numpy().all())
    self.assertAllEqual(encoder(instructions.hash_words(['', ''])),
                        np.zeros([2, 64]))

  def test_initial_weights(self):
    encoder = instructions.InstructionEncoder(tf.keras.random.SeedGenerator(2))
    encoder(instructions.hash_words(['']))
    self.assertAllClose(np.std(encoder.embeddings), 1, .02)
    self.assertEqual(encoder.count_params(), 20000 + 21760)


class TorsoOfUserTest(parameterized.TestCase):

  def _make(self, function):
    spec = structs.ArraySpec((3,), np.dtype(np.float32))
    with mock.patch.object(
        torsos.user_code, 'load', lambda *_: function):
      return torsos.make('a:b', spec, None, torsos.MLPTorso())

  def test_one_layer_again_and_again_is_refused(self):
    layer = tf.keras.layers.Dense(8)
    first = self._make(lambda _: layer)
    with self.assertRaisesRegex(errors.ConfigError, 'a new layer at each call'):
      self._make(lambda _: layer)
    # New layers around it share the weights, too.
    with self.assertRaisesRegex(errors.ConfigError, 'a new layer at each call'):
      self._make(lambda _: tf.keras.Sequential([layer]))
    self.assertLen(first.variables, 2)
    self._make(lambda _: tf.keras.layers.Dense(8))

  def test_no_features(self):
    with self.assertRaisesRegex(errors.ConfigError, r'float32 \[2, 0\]'):
      self._make(lambda _: tf.keras.layers.Lambda(lambda x: x[:, :0]))


class SurroundingsTest(parameterized.TestCase):

  def test_the_data_format_of_keras_changes_nothing(self):
    self.addCleanup(tf.keras.config.set_image_data_format,
                    tf.keras.config.image_data_format())
    shapes = []
    for data_format in ('channels_last', 'channels_first'):
      tf.keras.config.set_image_data_format(data_format)
      torsos = (frame_torsos.DeepTorso(), frame_torsos.NatureTorso(),
                frame_torsos.ShallowTorso())
      for torso in torsos:
        torso(np.zeros([1, 84, 84, 3], np.uint8))
      shapes.append([[w.shape for w in torso.weights] for torso in torsos])
    self.assertEqual(*shapes)
    self.assertIn((4, 4, 16, 32), shapes[1][2])


  def test_the_last_of_several_threads_puts_the_state_back(self):
    random.seed(5)
    np.random.seed(6)
    state = lambda: (random.getstate(), str(np.random.get_state()))
    before = state()
    first, last = layers.state_of_caller_kept(), layers.state_of_caller_kept()
    first.__enter__()
    tf.keras.utils.set_random_seed(1)
    last.__enter__()
    random.random()
    used = state()
    first.__exit__(None, None, None)
    self.assertEqual(state(), used)  # The other use goes on.
    last.__exit__(None, None, None)
    self.assertEqual(state(), before)

  def test_the_caller_can_still_configure_the_root_logger(self):
    root, own = logging.root, logging.StreamHandler()
    with mock.patch.object(root, 'handlers', []):
      with layers.root_logger_kept():
        absl_logging.info('As of the saver of TensorFlow.')
        root.addHandler(own)  # By a thread of the caller.
      self.assertEqual(root.handlers, [own])


# See `mutations.py`.
MUTATIONS = (
    dict(file='networks/layers',
         catches='test_the_last_of_several_threads_puts_the_state_back', rows=(
        ('the state before the last use', '_states_of_caller.pop()',
         '_states_of_caller.pop(0)'),
        ('the first end puts the state back', 'if not _states_of_caller:',
         'if True:'),
    )),
    dict(file='networks/layers',
         catches='test_the_caller_can_still_configure_the_root_logger', rows=(
        ('TensorFlow configures the logger',
         'logging.root.addHandler(handler)', 'pass'),
        ('the logger keeps a handler', 'logging.root.removeHandler(handler)',
         'pass'),
    )),
    dict(file='networks/torsos',
         catches='test_layer_norm_is_the_definition', rows=(
        ('tanh before the normalisation',
         'tf.keras.layers.LayerNormalization(),\n'
         "        tf.keras.layers.Activation('tanh'),",
         "tf.keras.layers.Activation('tanh'),\n"
         '        tf.keras.layers.LayerNormalization(),'),
        ('relu for elu', "dense(size, 'elu', seed)",
         "dense(size, 'relu', seed)"),
    )),
)


if __name__ == '__main__':
  tf.test.main()
