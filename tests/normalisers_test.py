# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of normalisers, and of the learner that moves their statistics.

Statistics are compared with NumPy's mean and variance of all rows together.
"""

import dataclasses
import pickle
import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent.acting import dynamic_batching
from scalable_agent.acting import policies
from scalable_agent.environments import toys
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import statistics
from scalable_agent.modes import export
from scalable_agent.modes import loading
from scalable_agent.networks import factory
from scalable_agent.networks import frame_torsos
from scalable_agent.networks import layers
from scalable_agent.networks import normalisers
from scalable_agent.networks import pop_art
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf
import tree

_FLOAT, _BYTE = np.dtype(np.float32), np.dtype(np.uint8)
_VECTOR = structs.ArraySpec((3,), _FLOAT)
_ACTIONS = structs.ActionSpec((4,))
_ROWS = np.array([[1, 10], [2, 20], [4, 0], [8, -10], [16, 5]], np.float32)


def _normaliser(shape=(2,), dtype=_FLOAT, mean=None, variance=None, count=0,
                is_stacked=False):
  made = normalisers.ObservationNormaliser(
      {'': structs.ArraySpec(shape, np.dtype(dtype))}, is_stacked)
  [part] = made.statistics.values()
  if mean is not None:
    part.mean.assign(mean)
    part.variance.assign(variance)
  part.count.assign(count)
  return made


def _double(*values):
  return [tf.constant(value, tf.float64) for value in values]


def _move(normaliser, *batches):
  """Moves the statistics by the sums of all batches of rows together."""
  moments = [normaliser.moments({'': np.float32(rows)[np.newaxis]})['']
             for rows in batches]
  [count] = _double(sum(map(len, batches)))
  normaliser.move('', count, *map(tf.add_n, zip(*moments, strict=True)))


class ObservationsTest(parameterized.TestCase, tf.test.TestCase):

  def _check(self, normaliser, mean, variance, count, rtol=1e-6):
    [part] = normaliser.statistics.values()
    self.assertAllClose(part.mean, mean, rtol=rtol, atol=1e-7)
    self.assertAllClose(part.variance, variance, rtol=rtol, atol=1e-7)
    self.assertEqual(float(part.count), count)

  def test_merged_batches(self):
    normaliser = _normaliser()
    _move(normaliser, _ROWS[:2])
    self._check(normaliser, [1.5, 15], [.25, 25], 2)
    _move(normaliser, _ROWS[2:])
    self._check(normaliser, [6.2, 5], [29.76, 100], 5)
    self.assertAllClose(normaliser(np.float32([[20, -30]])),
                        [[2.5296623, -3.4999998]])

  def test_sums_of_learners(self):
    normaliser = _normaliser(mean=[1, 2], variance=[4, 9], count=10)
    batches = np.array([[3, 1], [5, -1]]), np.array([[0, 2], [2, 8], [7, 2]])
    sums = [normaliser.moments({'': np.float32(rows)[np.newaxis]})['']
            for rows in batches]
    self.assertAllClose(sums[0][0] + sums[1][0], [12, 2])
    self.assertAllClose(sums[0][1] + sums[1][1], [58, 46])
    _move(normaliser, *batches)
    self._check(normaliser, [1.8, 2.1333333], [5.8933333, 9.0488889], 15)

  def test_the_count_is_capped(self):
    normaliser = _normaliser(mean=[1, 2], variance=[4, 9], count=10)
    with mock.patch.object(normalisers, '_MAX_COUNT', 8.):
      _move(normaliser, [[3, 1], [5, -1]], [[0, 2], [2, 8], [7, 2]])
    self._check(
        normaliser, [1.9230769, 2.1538462], [6.0710059, 9.0532544], 13)

  def test_counts_beyond_32_bits(self):
    normaliser = _normaliser(count=2**24)
    with mock.patch.object(normalisers, '_MAX_COUNT', 2.**40):
      _move(normaliser, _ROWS[:1])
    self.assertEqual(float(normaliser.statistics[''].count), 2**24 + 1)

  @parameterized.parameters(range(5))
  def test_any_split_gives_the_statistics_of_all_rows(self, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(1e3, rng.uniform(.1, 10), [200, 2])
    cuts = np.sort(rng.choice(np.arange(1, 200), 7, replace=False))
    normaliser = _normaliser()
    for batch in np.split(rows, cuts):
      half = rng.integers(1, len(batch)) if len(batch) > 1 else len(batch)
      parts = [batch[:half], batch[half:]]
      _move(normaliser, *[part for part in parts if len(part)])
    self._check(normaliser, rows.mean(0), rows.var(0), 200, rtol=2e-3)
    self.assertAllClose(normaliser.statistics[''].mean, rows.mean(0), rtol=1e-6)

  @parameterized.parameters(range(5))
  def test_the_formula_is_exact(self, seed):
    rng = np.random.default_rng(seed)
    old, new = rng.normal(5, 3, [70, 2]), rng.normal(-2, 1, [30, 2])
    share, first, second = _double(
        .3, (new - old.mean(0)).mean(0), ((new - old.mean(0))**2).mean(0))
    mean, variance = normalisers.mixed(
        *_double(old.mean(0), old.var(0)), share, first, second)
    rows = np.concatenate([old, new])
    self.assertAllClose(mean, rows.mean(0), rtol=1e-12)
    self.assertAllClose(variance, rows.var(0), rtol=1e-12)

  def test_large_numbers_do_not_cancel(self):
    normaliser = _normaliser((1,))
    _move(normaliser, [[10_000], [10_001], [10_002]])
    self._check(normaliser, [10_001], [2 / 3], 3)

  def test_a_flash_of_a_pixel_is_clipped(self):
    normaliser = _normaliser((2,), mean=[0, 0], variance=[0, .001 - 1e-6])
    flash = normaliser(np.float32([[1, 1]]))
    self.assertAllEqual(flash, [[5, 5]])
    with mock.patch.object(normalisers, '_CLIP', 1e9):
      self.assertAllClose(normaliser(np.float32([[1, 1]])),
                          [[316.2278, 31.4820]], rtol=1e-4)

  def test_planes_of_a_stack_share_the_statistics_of_the_newest(self):
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 256, [5, 2, 4, 6, 6], dtype=np.uint8)
    normaliser = _normaliser((4, 6, 6), np.uint8, is_stacked=True)
    moments = normaliser.moments(normaliser.newest(frames))['']
    normaliser.move('', _double(10.)[0], *moments)
    newest = frames[:, :, -1].reshape(10, 6, 6) / 255
    self._check(normaliser, newest.mean(0), newest.var(0), 10, rtol=1e-5)
    expected = (frames[0] / 255 - newest.mean(0)) / np.sqrt(
        newest.var(0) + 1e-5)
    found = normaliser(frames[0])
    self.assertEqual(found.dtype, tf.float32)
    self.assertAllClose(found, np.clip(expected, -5, 5), rtol=1e-4, atol=1e-5)

  @parameterized.parameters(((6, 6, 3), 'uint8', False),
                            ((3, 6, 6), 'uint8', False),
                            ((4, 6, 6), 'float32', True))
  def test_other_frames_have_statistics_of_each_number(
      self, shape, dtype, is_stacked):
    normaliser = _normaliser(shape, dtype, is_stacked=is_stacked)
    self.assertEqual(normaliser.statistics[''].mean.shape, shape)

  @parameterized.parameters((200, True), (2, False), (None, False))
  def test_large_batches_of_a_known_size_are_compiled(self, size, is_compiled):
    shape = (4, 30, 30)
    rng = np.random.default_rng(1)
    mean, variance = rng.random(shape), rng.random(shape) / 10
    normaliser = _normaliser(shape, np.uint8, mean, variance)
    function = tf.function(normaliser.__call__).get_concrete_function(
        tf.TensorSpec([size, *shape], tf.uint8))
    self.assertEqual(
        'XlaMustCompile' in str(function.graph.as_graph_def()), is_compiled)
    frames = rng.integers(0, 256, [size or 3, *shape], dtype=np.uint8)
    self.assertAllClose(
        function(tf.constant(frames)), np.clip(
            (frames / 255 - mean) / np.sqrt(variance + 1e-5), -5, 5),
        rtol=1e-4, atol=1e-5)

  def test_nothing_is_compiled_on_a_gpu(self):
    normaliser = _normaliser((4, 30, 30), np.uint8)
    with mock.patch.object(layers, 'on_cpu', return_value=False):
      function = tf.function(normaliser.__call__).get_concrete_function(
          tf.TensorSpec([200, 4, 30, 30], tf.uint8))
    self.assertNotIn('XlaMustCompile', str(function.graph.as_graph_def()))

  @parameterized.parameters(('ALE/Pong-v5', (84, 84)),
                            ('CartPole-v1', (4, 84, 84)))
  def test_only_frames_of_atari_are_stacks(self, level, shape):
    frames = structs.ArraySpec((4, 84, 84), _BYTE)
    config = config_lib.Config(
        level_name=level, agent='shallow', use_lstm=False,
        normalise_observations='auto')
    agent = algorithms.make_agent(
        config, structs.EnvironmentSpec(frames, _ACTIONS, 1), 1)
    [part] = agent.observation_normaliser.statistics.values()
    self.assertEqual(part.mean.shape, shape)


  def test_small_variances_survive_bfloat16(self):
    self.addCleanup(layers.set_compute_dtype, 'float32')
    layers.set_compute_dtype('bfloat16')
    normaliser = _normaliser((1,), mean=[10], variance=[1e-7])
    found = normaliser(tf.constant([[10.001]]))
    self.assertEqual(found.dtype, tf.float32)
    self.assertAllClose(found, [[.001 / np.sqrt(1e-7 + 1e-5)]], rtol=1e-2)

  @parameterized.parameters(
      (structs.ActionSpec(size=2), [tf.zeros([3, 2])]),
      (structs.ActionSpec((4,)), []))
  def test_critics_in_bfloat16_see_small_differences(self, action_spec, inputs):
    self.addCleanup(layers.set_compute_dtype, 'float32')
    layers.set_compute_dtype('bfloat16')
    normaliser = _normaliser((2,), mean=[1000, 0], variance=[1, 1])
    make = lambda observation_normaliser: factory.make_critic(
        'mlp', structs.ArraySpec((2,), _FLOAT), action_spec, hidden_sizes=[8],
        activation='relu', seed=1,
        observation_normaliser=observation_normaliser)
    seen = tf.constant([[999., 1], [1000.5, 0], [1001, -1]])
    found = make(normaliser)(seen, *inputs)
    self.assertAllClose(found, make(None)(normaliser(seen), *inputs))
    self.assertLen(np.unique(tf.reshape(found, [3, -1])[:, 0]), 3)


def _frames_of_catch(num_frames, rng):
  """Returns frames with a dim ball on a picture, and the rows of the ball."""
  env, is_over, frames, rows = toys.LEVELS['catch'](), True, [], []
  picture = rng.uniform(50, 180, (80, 80))
  for _ in range(num_frames):
    if is_over:
      board, is_over = env.reset(seed=int(rng.integers(1000)))[0], False
    else:
      board, _, is_over, _, _ = env.step(rng.integers(3))
    frames.append(picture + 30 * np.kron(board, np.ones((8, 16))))
    # The paddle is always in the last row.
    rows.append(np.argmax(board[:-1].any(1)) if board[:-1].any() else 9)
  return (np.uint8(frames)[..., np.newaxis],
          np.float32(rows)[:, np.newaxis] / 3 - 1.5)


class FeaturesTest(parameterized.TestCase):

  def _explained(self, seed, normalised, num_updates=40):
    """Returns the explained share of the variance of the ball's row."""
    rng = np.random.default_rng(seed)
    frames, rows = _frames_of_catch(1000, rng)
    see = lambda frames: frames
    if normalised:
      see = _normaliser(frames.shape[1:], _BYTE)
      _move(see, frames / 255)
    torso = frame_torsos.make(
        'shallow', frames.shape[1:], tf.keras.random.SeedGenerator(seed))
    layer = tf.keras.layers.Dense(1, kernel_initializer='zeros')
    value = lambda frames: layer(torso(see(tf.constant(frames))))
    value(frames[:1])
    variables = torso.trainable_variables + layer.trainable_variables
    optimizer = tf.keras.optimizers.Adam(4e-4, epsilon=1e-5)
    for _ in range(num_updates):
      at = rng.choice(800, 32)
      with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(value(frames[at]) - rows[at]))
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    rest = value(frames[800:]) - rows[800:]
    return 1 - np.mean(np.square(rest)) / np.var(rows[800:])

  @parameterized.parameters(0, 1, 2)
  @pytest.mark.slow
  def test_pixels_that_are_normalised_show_a_dim_ball_sooner(self, seed):
    self.assertGreater(self._explained(seed, True), .7)
    self.assertLess(self._explained(seed, False), .2)


class ChoiceTest(parameterized.TestCase):
  _SPEC = {'speed': _VECTOR, 'camera': structs.ArraySpec((8, 8, 3), _BYTE),
           'kind': structs.ArraySpec((2,), np.dtype(np.int32)),
           'code': structs.DiscreteSpec((5,), _FLOAT)}

  @parameterized.parameters(
      ('auto', ['camera', 'speed']), ('speed', ['speed']),
      ('kind, camera', ['camera', 'kind']), ('code', ['code']),
      ('auto', ['speed'], 'my:net'), ('camera', ['camera'], 'my:net'))
  def test_parts(self, asked, names, network='mlp'):
    self.assertEqual(list(normalisers.choose(
        asked, self._SPEC, network).statistics), names)

  def test_nothing_to_normalise(self):
    self.assertIsNone(normalisers.choose('none', _VECTOR))
    for part in ('kind', 'code'):
      self.assertIsNone(normalisers.choose('auto', self._SPEC[part]))

  def test_unknown_parts_are_refused(self):
    with self.assertRaisesRegex(errors.ConfigError, 'place is no part'):
      normalisers.choose('speed,place', self._SPEC)
    with self.assertRaisesRegex(errors.ConfigError, 'Use auto'):
      normalisers.choose('speed', _VECTOR)
    for asked in ('', 'speed,', ' '):
      with self.assertRaisesRegex(errors.ConfigError, 'must be none, auto'):
        config_lib.Config(normalise_observations=asked)


def _popart(kernel, bias, moves, mean=0., variance=1.):
  layer = tf.keras.layers.Dense(1)
  popart = pop_art.PopArt(layer)
  layer.build([None, len(kernel)])
  layer.kernel.assign(np.float32(kernel)[:, np.newaxis])
  layer.bias.assign([bias])
  popart.statistics.mean.assign(mean)
  popart.statistics.variance.assign(variance)
  popart.statistics.count.assign(moves)
  return popart, layer


class PopArtTest(parameterized.TestCase, tf.test.TestCase):

  def _move(self, popart, targets, rate):
    shift = np.array(targets, np.float64) - float(popart.statistics.mean)
    popart.move(*_double(rate, shift.mean(), (shift**2).mean()))

  def test_values_stay_when_statistics_move(self):
    popart, layer = _popart([.5, -.25], .1, 9)
    features = np.float32([[1, 2]])
    self.assertAllClose(popart(features), [[.1]])
    for target, mean, deviation, kernel, bias in (
        (10, 1, 3.1464265, [.1589104, -.0794552], -.2860388),
        (-4, .5, 3.3406586, [.1496711, -.0748355], -.1197369)):
      self._move(popart, [target], .1)
      self.assertAllClose(popart.statistics.mean, mean)
      self.assertAllClose(popart.deviation, deviation)
      self.assertAllClose(layer.kernel[:, 0], kernel)
      self.assertAllClose(layer.bias, [bias])
      self.assertAllClose(popart(features), [[.1]])

  def test_first_moves_are_means_of_moves(self):
    popart, layer = _popart([0, 0], 0, 0)
    self._move(popart, [1, 3], .3)
    self.assertAllClose([popart.statistics.mean, popart.deviation], [2, 1])
    self.assertAllClose(popart(np.float32([[1, 2]])), [[2]])  # The mean.
    layer.bias.assign([.5])
    self._move(popart, [5, -1, 2], .3)
    self.assertAllClose([popart.statistics.mean, popart.deviation],
                        [2, 1.8708287])
    self.assertAllClose(popart(np.float32([[1, 2]])), [[2.5]])
    self._move(popart, [2], .3)
    self._move(popart, [12], .3)  # The rate, not a fourth.
    self.assertAllClose(popart.statistics.mean, 5)

  @parameterized.parameters(range(5))
  def test_no_value_changes(self, seed):
    rng = np.random.default_rng(seed)
    popart, _ = _popart(rng.normal(size=8), .3, 5, 2., 10**rng.uniform(-4, 4))
    features = np.float32(rng.normal(size=[20, 8]))
    before = popart(features).numpy()
    self._move(popart, rng.normal(1, 10**rng.uniform(-2, 2), 30), 1e-3)
    scale = np.abs(before).max()
    self.assertAllClose(popart(features) / scale, before / scale, atol=3e-6)

  def test_deviations_have_a_floor(self):
    popart, _ = _popart([0], 0, 0)
    for _ in range(100):
      self._move(popart, [0, 0], 1e-3)
    self.assertAllClose(popart.deviation, 1e-4)
    advantages, values = popart.scaled(tf.constant(1.), tf.constant(1.))
    self.assertAllClose([advantages, values], [100, 10_000])

  def test_scaled_by_the_deviation(self):
    popart, _ = _popart([0], 0, 0, variance=4)
    self.assertAllClose(popart.scaled(tf.constant(1.), tf.constant(3.)),
                        [.5, 1.5])


def _config(**settings):
  settings = dict(
      level_name='CartPole-v1', agent='mlp', use_lstm=False,
      use_last_action_reward=False, batch_size=3,
      unroll_length=4, num_actors=3, optimizer='adam', epsilon=1e-5,
      reward_clipping='none', normalise_observations='auto',
      normalise_returns=True) | settings
  if settings.get('algorithm') == 'appo':
    settings = dict(updates_per_call=1) | settings
  return config_lib.Config(**settings).resolved(
      _VECTOR, on_cpu=True, num_groups=1)


_SPEC = structs.EnvironmentSpec(_VECTOR, _ACTIONS, 1)


def _learner(collectives=None, **settings):
  return setup.make_learner(_config(**settings), _SPEC, collectives=collectives)


def _unroll(seed, num_steps=4, batch_size=3, scale=1., slope=1., offset=0.):
  rng = np.random.default_rng(seed)
  steps = (num_steps + 1, batch_size)
  done = rng.uniform(size=steps) < .2
  floats = lambda *shape: rng.normal(size=[*steps, *shape]).astype('f')
  return structs.Unroll(
      structs.Steps(
          structs.StepOutput(scale * floats(), (), done,
                             np.float32(slope * floats(3) + offset)),
          structs.AgentOutput(rng.integers(4, size=steps).astype('i'),
                              floats(4), floats()),
          np.zeros(steps, 'f')),
      structs.Start((), (), (), ()))


def _step(learner, unroll, num_new=None, frames=1):
  num_new = unroll.num_columns if num_new is None else num_new
  return learner.step(learner.to_device(unroll, frames)._replace(
      num_new_columns=num_new))


def _observations(unroll, num_new=None):
  """The rows that the statistics must have: entry 0 came before."""
  return unroll.steps.env_outputs.observation[1:, :num_new].reshape(-1, 3)


class _Pair(collectives_lib.VectorCollectives):
  """Two learners in two threads."""

  def __init__(self, rank, shared):
    super().__init__(2, rank)
    self._shared, self._barrier = shared

  def _sum_vector(self, vector):
    def exchange(mine):
      self._shared[self.rank] = mine.numpy()
      self._barrier.wait(60)
      total = self._shared[0] + self._shared[1]
      self._barrier.wait(60)
      return total

    return tf.py_function(exchange, [vector], vector.dtype)


def _pair(function, **settings):
  """Calls `function(learner, rank)` for two connected learners."""
  shared = {}, threading.Barrier(2)
  learners = [_learner(_Pair(rank, shared), **settings) for rank in range(2)]
  threads = [threading.Thread(target=function, args=(learner, rank))
             for rank, learner in enumerate(learners)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(120)
  return learners


_LEVELS = dict(level_name='target,catch')  # Sorted: catch is number 0.


def _of_levels(seed, names, scale=1., num_columns=None):
  """An unroll with the level, and the size of rewards, of each column."""
  unroll = _unroll(seed, batch_size=num_columns or len(names))
  outputs = unroll.steps.env_outputs
  scales = np.where(np.array(names) == 'target', np.float32(scale), 1)
  shape = unroll.steps.truncation_values.shape
  values = np.random.default_rng(seed + 1000).normal(
      size=[*shape, 2]).astype('f')
  return structs.Unroll(unroll.steps._replace(
      env_outputs=outputs._replace(reward=outputs.reward * scales),
      agent_outputs=unroll.steps.agent_outputs._replace(baseline=values),
      truncation_values=0 * values), structs.Start(
          np.array(names, object), (), (), ()))


class LevelsTest(parameterized.TestCase, tf.test.TestCase):
  """Each of several levels has statistics of returns."""

  def test_values_of_each_level_stay_when_statistics_move(self):
    layer = tf.keras.layers.Dense(2)
    popart = pop_art.PopArt(layer, ['a', 'b'])
    layer.build([None, 2])
    layer.kernel.assign([[.5, 7], [-.25, 8]])
    layer.bias.assign([.1, 9])
    popart.statistics.count.assign([9, 0])
    features = np.float32([[1, 2]])
    self.assertAllClose(popart(features), [[[.1, 32]]])
    for target, mean, deviation, kernel, bias in (
        (10, 1, 3.1464265, [.1589104, -.0794552], -.2860388),
        (-4, .5, 3.3406586, [.1496711, -.0748355], -.1197369)):
      shift = target - float(popart.statistics.mean[0])
      popart.move(*_double(.1, [shift, 0], [shift**2, 0]), [True, False])
      self.assertAllClose(popart.statistics.mean, [mean, 0])
      self.assertAllClose(popart.deviation, [deviation, 1])
      self.assertAllClose(layer.kernel, np.transpose([kernel, [7, 8]]))
      self.assertAllClose(layer.bias, [bias, 9])
      self.assertAllClose(popart(features), [[[.1, 32]]])
    self.assertAllEqual(popart.statistics.count, [11, 0])
    popart.move(*_double(.1, [0, 5], [0, 25 + 4]), [False, True])
    self.assertAllClose(popart.statistics.mean, [.5, 5])  # The first move.
    self.assertAllClose(popart(features), [[[.1, 5 + 2 * 32]]])

  @eager.eagerly()
  def test_statistics_are_those_of_each_level(self):
    names = ['target', 'catch', 'target']
    for scale in (1e3, 1e6):
      learner = _learner(**_LEVELS, discounting=0., correction='none')
      unroll = _of_levels(0, names, scale)
      _step(learner, unroll)
      rewards = unroll.steps.env_outputs.reward[1:].astype('d')
      found = learner.agent.returns
      for number, columns in enumerate(([1], [0, 2])):
        self.assertAllClose(found.statistics.mean[number],
                            rewards[:, columns].mean(), rtol=1e-5)
        self.assertAllClose(
            found.deviation[number], rewards[:, columns].std(), rtol=1e-5)
      self.assertAllEqual(found.statistics.count, [1, 1])

  @parameterized.parameters('impala', 'appo')
  @eager.eagerly()
  def test_the_size_of_the_rewards_of_a_level_does_not_matter(self, algorithm):
    names = ['target', 'catch', 'target', 'catch']
    weights, priorities = [], []
    for scale in (1, 1000):
      learner = _learner(
          **_LEVELS, algorithm=algorithm, batch_size=4, num_actors=4)
      for seed in range(6):
        learned = _step(learner, _of_levels(seed, names, scale))
      weights.append([v.numpy() for v in learner.agent.trainable_variables])
      priorities.append(learned.errors)
    for one, two in zip(*weights, strict=True):
      self.assertAllClose(one, two, atol=2e-4)
    if algorithm == 'impala':
      self.assertAllClose(*priorities, rtol=1e-2)
    deviation = learner.agent.returns.deviation
    self.assertGreater(deviation[1], 100 * deviation[0])

  @parameterized.parameters('impala', 'appo')
  @eager.eagerly()
  def test_each_column_has_the_value_of_its_level(self, algorithm):
    # With one level in all columns, the agent is one of this level.
    alone, pair = (_learner(
        algorithm=algorithm, level_name=names, clip_value=.1
        if algorithm == 'appo' else 0.) for names in ('target', 'catch,target'))
    for seed in range(4):
      unroll = _of_levels(seed, 3 * ['target'])
      steps = unroll.steps
      losses = []
      for learner, view in ((alone, lambda x: x[..., 1]), (pair, lambda x: x)):
        losses.append(_step(learner, unroll._replace(steps=steps._replace(
            agent_outputs=steps.agent_outputs._replace(
                baseline=view(steps.agent_outputs.baseline)),
            truncation_values=view(np.full_like(
                steps.truncation_values, [9, .5]))))).scalars)
      # Of the first batch, the pair leaves out the loss.
      for name, value in losses[0].items() if seed else ():
        self.assertAllClose(value, losses[1][name], rtol=1e-4, msg=name)
    for one, two in zip(alone.agent.variables, pair.agent.variables,
                        strict=True):
      self.assertAllClose(one, two if one.shape == two.shape else tf.reshape(
          two[..., 1], one.shape), atol=1e-5)

  @parameterized.parameters(
      dict(algorithm='impala'),
      dict(algorithm='appo', kl_cost=.3, normalise_advantages=True),
      dict(algorithm='appo', kl_cost=.3, normalise_advantages=False))
  @eager.eagerly()
  def test_columns_of_a_new_level_add_nothing_to_the_loss(self, **settings):
    learner = _learner(**_LEVELS, entropy_cost=.1, **settings)
    _step(learner, _of_levels(0, 3 * ['catch']))
    unroll = _of_levels(1, ['catch', 'target', 'catch'])
    known = [0, 2]
    of_known = structs.Unroll(
        tree.map_structure(lambda x: x[:, known], unroll.steps),
        tree.map_structure(lambda x: x[known], unroll.start))

    def learned(data):
      with tf.GradientTape() as tape:
        loss = learner.algorithm.loss(
            learner.to_device(data, 1).data, None, ['agent'],
            tf.constant([0, 0]))
      return loss.sums, tape.gradient(
          loss.by_group['agent'], learner.agent.trainable_variables)

    (sums, gradients), (expected, expected_gradients) = map(
        learned, (unroll, of_known))
    for name, value in expected.items():
      self.assertNotEqual(float(value), 0, name)
      self.assertAllClose(sums[name], value, rtol=1e-5, msg=name)
    for one, two in zip(gradients, expected_gradients, strict=True):
      self.assertAllClose(one, two, atol=1e-6)

  @eager.eagerly()
  def test_a_new_level_only_sets_its_statistics(self):
    learner = _learner(**_LEVELS, entropy_cost=.1, learning_rate=.1)
    _step(learner, _of_levels(0, 3 * ['catch']))
    weights = [v.numpy() for v in learner.agent.trainable_variables]
    learned = _step(learner, _of_levels(1, 3 * ['target'], 1e6))
    self.assertEqual(float(learned.scalars['total_loss']), 0)
    for variable, value in zip(
        learner.agent.trainable_variables, weights, strict=True):
      self.assertAllEqual(variable, value)
    self.assertGreater(learner.agent.returns.deviation[1], 1e4)
    learned = _step(learner, _of_levels(2, 3 * ['target'], 1e6))
    self.assertGreater(abs(float(learned.scalars['total_loss'])), 1e-3)
    # A level does not wait for the other one.
    learner = _learner(**_LEVELS, entropy_cost=0.)
    _step(learner, _of_levels(0, 3 * ['catch']))
    learned = _step(learner, _of_levels(1, 3 * ['catch']))
    self.assertGreater(float(learned.scalars['gradient_norm']), 0)

  @eager.eagerly()
  def test_micro_batches_equal_the_whole(self):
    names = ['target', 'catch', 'target']
    whole, parts = (_learner(**_LEVELS, micro_batch_size=size)
                    for size in (3, 2))
    for seed in range(4):
      for learner in (whole, parts):
        _step(learner, _of_levels(seed, names, 100))
    for one, two in zip(whole.agent.variables, parts.agent.variables,
                        strict=True):
      self.assertAllClose(one, two, atol=1e-4)

  def test_two_learners_have_the_statistics_of_one(self):
    names = ['target', 'target', 'catch', 'target']  # Learner 0 has no catch.
    unrolls = [_of_levels(seed, names, 50) for seed in range(3)]
    settings = dict(**_LEVELS, batch_size=4, num_actors=4)
    alone = _learner(**settings)
    with eager.eagerly():
      for unroll in unrolls:
        _step(alone, unroll)

    def learn(learner, rank):
      half = slice(2 * rank, 2 * rank + 2)
      for unroll in unrolls:
        _step(learner, structs.Unroll(
            tree.map_structure(lambda x: x[:, half], unroll.steps),
            tree.map_structure(lambda x: x[half], unroll.start)))

    for learner in _pair(learn, **settings):
      for one, two in zip(alone.agent.variables, learner.agent.variables,
                          strict=True):
        self.assertAllClose(one, two, rtol=1e-5, atol=2e-5)

  @eager.eagerly()
  def test_acting_saving_and_other_levels_in_a_test(self):
    learner = _learner(**_LEVELS)
    for seed in range(3):
      _step(learner, _of_levels(seed, ['target', 'catch', 'catch'], 10),
            frames=seed != 2)
    config = _config(**_LEVELS)
    policy = policies.AgentPolicy(algorithms.make_agent(config, _SPEC, 7))
    policy.refresh(learner.weights())
    observations = np.random.default_rng(0).normal(size=[2, 3]).astype('f')
    output, _ = policy.step(np.zeros(2, 'i'), structs.StepOutput(
        np.zeros(2, 'f'), (), np.zeros(2, bool), observations), ())
    self.assertEqual(policy.output_spec.baseline.shape, (2,))
    self.assertEqual(output.baseline.shape, (2, 2))
    self.assertGreater(np.abs(output.baseline).max(), 0)
    directory = self.create_tempdir().full_path
    described = algorithms.describe(config, _SPEC)
    checkpointing.Checkpointer(directory, learner, described).save()
    config = dataclasses.replace(config, logdir=directory)
    config.save()
    restored = _learner(**_LEVELS)
    checkpointing.Checkpointer(directory, restored, described).restore()
    for one, two in zip(tree.flatten(learner.state),
                        tree.flatten(restored.state), strict=True):
      self.assertAllEqual(one, two)
    agent, _ = loading.restore(dataclasses.replace(
        config, mode='test', level_name='catch'), _SPEC)
    for one, two in zip(agent.variables, learner.agent.variables, strict=True):
      self.assertAllEqual(one, two)
    self.assertNotEqual(described, algorithms.describe(
        _config(level_name='catch,memory'), _SPEC))
    self.assertEqual(described, algorithms.describe(
        _config(level_name='catch, target'), _SPEC))

  def test_training(self):
    config = config_lib.Config(
        level_name='CartPole-v0,CartPole-v1', algorithm='appo', num_actors=2,
        xla='none', unroll_length=8, total_environment_frames=64,
        bootstrap_truncated=True,
        logdir=self.create_tempdir().full_path)
    learners = []
    training.train(config, hooks=[lambda u: learners.append(u.learner)])
    self.assertAllEqual(learners[-1].agent.returns.statistics.count, [4, 4])


class LearnerTest(parameterized.TestCase, tf.test.TestCase):

  def _statistics(self, learner):
    return learner.agent.observation_normaliser.statistics['']

  @eager.eagerly()
  def test_new_columns_count_once_and_entry_0_never(self):
    for num_steps in (1, 4):
      learner = _learner(unroll_length=num_steps)
      unrolls = [_unroll(seed, num_steps) for seed in range(4)]
      for unroll, num_new, frames in zip(
          unrolls, (3, 2, 0, 1), (1, 0, 0, 1), strict=True):
        _step(learner, unroll, num_new, frames)
      rows = np.concatenate(
          [_observations(u, n) for u, n in zip(unrolls, (3, 2, 0, 1),
                                               strict=True)])
      part = self._statistics(learner)
      self.assertEqual(float(part.count), 6 * num_steps)
      self.assertAllClose(part.mean, rows.mean(0), rtol=1e-5, atol=1e-6)
      self.assertAllClose(part.variance, rows.var(0), rtol=1e-5)
      self.assertEqual(float(learner.agent.returns.statistics.count), 2)

  @eager.eagerly()
  def test_statistics_move_after_the_last_update_of_a_collection(self):
    learner = _learner()
    _step(learner, _unroll(0))
    for frames in (0, 0, 1):
      before = self._statistics(learner).mean.numpy()
      version = learner.weights()
      learned = _step(learner, _unroll(1), frames=frames)
      later = learner.weights(learned)
      moved = np.any(self._statistics(learner).mean.numpy() != before)
      self.assertEqual(moved, frames == 1)
      self.assertEqual(moved, any(
          np.array_equal(value, before) for value in version.values)
                       and not any(np.array_equal(value, before)
                                   for value in later.values))

  @eager.eagerly()
  def test_the_first_collection_only_sets_the_statistics(self):
    learner = _learner()
    weights = [v.numpy() for v in learner.agent.trainable_variables]
    slots = [v.numpy() for v in learner.state['optimizer']]
    for frames in (0, 1):
      learned = _step(
          learner, _unroll(0, scale=100, offset=1e4), frames=frames)
      self.assertEqual(float(learned.scalars['gradient_norm']), 0)
      self.assertAllClose(learned.scalars['learning_rate'], .00048)
      for variable, value in zip(
          learner.agent.trainable_variables, weights, strict=True):
        self.assertAllEqual(variable, value)
      for variable, value in zip(learner.state['optimizer'], slots,
                                 strict=True):
        self.assertAllEqual(variable, value)
    learned = _step(learner, _unroll(1))
    self.assertLess(0, float(learned.scalars['gradient_norm']))
    self.assertTrue(any(
        np.any(variable.numpy() != value) for variable, value in zip(
            learner.agent.trainable_variables, weights, strict=True)))

  @eager.eagerly()
  def test_large_batches_are_summed_in_parts(self):
    learner = _learner()
    with mock.patch.object(statistics, '_MAX_NUMBERS', 20):
      _step(learner, _unroll(0))
    self.assertAllClose(self._statistics(learner).mean,
                        _observations(_unroll(0)).mean(0), rtol=1e-5)
    self.assertEqual(float(self._statistics(learner).count), 12)

  def _trained(self, unrolls, **settings):
    learner = _learner(**settings)
    for unroll in unrolls:
      _step(learner, unroll)
    return [v.numpy() for v in learner.agent.trainable_variables], learner

  @eager.eagerly()
  def test_the_size_of_rewards_does_not_matter(self):
    weights, learner = self._trained([_unroll(i) for i in range(6)])
    other, scaled = self._trained([_unroll(i, scale=1000) for i in range(6)])
    for one, two in zip(weights, other, strict=True):
      self.assertAllClose(one, two, atol=1e-4)
    self.assertAllClose(1000 * learner.agent.returns.deviation,
                        scaled.agent.returns.deviation, rtol=1e-3)

  @eager.eagerly()
  def test_units_of_observations_do_not_matter(self):
    # Twice the same unroll: the statistics are those of the unroll.
    weights, _ = self._trained([_unroll(0)] * 2, normalise_returns=False)
    other, _ = self._trained([_unroll(0, slope=100, offset=1000)] * 2,
                             normalise_returns=False)
    for one, two in zip(weights, other, strict=True):
      self.assertAllClose(one, two, atol=1e-4)

  @parameterized.parameters('impala', 'appo')
  @eager.eagerly()
  def test_micro_batches_equal_the_whole(self, algorithm):
    # Not a multiple.
    whole, learner = self._trained(
        [_unroll(i) for i in range(4)], algorithm=algorithm)
    parts, other = self._trained([_unroll(i) for i in range(4)],
                                 algorithm=algorithm, micro_batch_size=2)
    for one, two in zip(whole, parts, strict=True):
      self.assertAllClose(one, two, atol=1e-5)
    for one, two in zip(learner.agent.variables, other.agent.variables,
                        strict=True):
      self.assertAllClose(one, two, atol=1e-5)

  def test_two_learners_have_the_statistics_of_one(self):
    self._check_two_learners('appo')

  @pytest.mark.storm
  def test_two_learners_of_impala_have_the_statistics_of_one(self):
    self._check_two_learners('impala')

  def _check_two_learners(self, algorithm):
    unrolls = [_unroll(seed, batch_size=4, scale=5) for seed in range(3)]
    alone = _learner(batch_size=4, num_actors=4, algorithm=algorithm)
    sums = []

    def learn(learner, rank=0, half=slice(None)):
      del rank
      for unroll in unrolls:
        steps = tree.map_structure(lambda x: x[:, half], unroll.steps)
        _step(learner, unroll._replace(steps=steps), frames=0)
        sums.append([v.numpy() for v in learner._mover.variables])
        _step(learner, unroll._replace(steps=steps), 0)

    learn(alone)
    [first, *_], sums = sums, []
    learners = _pair(
        lambda learner, rank: learn(
            learner, half=slice(2 * rank, 2 * rank + 2)),
        algorithm=algorithm, batch_size=4, num_actors=4)
    for one, *two in zip(first, *[
        s for s in sums if s[0] == first[0] / 2][:2], strict=True):
      self.assertAllClose(one, sum(two), rtol=1e-12, atol=0)
    for one, two in zip(*[l.agent.variables for l in learners], strict=True):
      self.assertAllEqual(one, two)
    for one, two in zip(alone.agent.variables, learners[0].agent.variables,
                        strict=True):
      self.assertAllClose(one, two, rtol=1e-5, atol=2e-5)

  def test_learners_have_one_rate_by_kl(self):
    unrolls = [_unroll(seed, batch_size=4) for seed in range(3)]
    settings = dict(
        algorithm='appo', batch_size=4, num_actors=4,
        learning_rate_schedule='kl', learning_rate=.001)

    def learn(learner, rank=0, size=4):
      half = slice(size * rank, size * (rank + 1))
      for index, unroll in enumerate(unrolls):  # The first sets statistics.
        steps = tree.map_structure(lambda x: x[:, half], unroll.steps)
        _step(learner, unroll._replace(steps=steps), frames=int(index == 0))

    alone = _learner(**settings)
    with eager.eagerly():
      learn(alone)
    rates = [[v.numpy() for v in learner.state['statistics'][-3:]]
             for learner in (alone, *_pair(
                 lambda learner, rank: learn(learner, rank, 2), **settings))]
    rate, total, count = rates[0]
    self.assertAllClose([rate, count], [.001, 2])
    self.assertGreater(total, .1)
    self.assertAllEqual(rates[1], rates[2])
    self.assertAllClose(rates[0], rates[1], rtol=1e-4)
    alone.copy_from_first()  # The next part begins with a new collection.
    self.assertAllEqual(alone.state['statistics'][-3:], [rate, 0, 0])

  def test_sums_of_a_cut_collection_count_once_for_all_learners(self):
    first, rest = (_unroll(seed, batch_size=2) for seed in range(2))
    stopped = _learner(batch_size=4, num_actors=4)
    eager.eagerly()(_step)(stopped, first, frames=0)

    def resume(learner, unused_rank):
      for variable, value in zip(
          tree.flatten(learner.state), tree.flatten(stopped.state),
          strict=True):  # All learners read the checkpoint of learner 0.
        variable.assign(value)
      learner.copy_from_first()
      _step(learner, rest)

    for learner in _pair(resume, batch_size=4, num_actors=4):
      self.assertEqual(float(self._statistics(learner).count), 8 + 2 * 8)
      rows = [_observations(u) for u in (first, rest, rest)]
      self.assertAllClose(self._statistics(learner).mean,
                          np.concatenate(rows).mean(0), rtol=1e-5)

  @eager.eagerly()
  def test_observations_that_are_too_large_move_nothing(self):
    learner = _learner()
    _step(learner, _unroll(0))
    before = [v.numpy() for v in learner.agent.non_trainable_variables[:3]]
    self.assertEqual(before[2], 12)
    _step(learner, _unroll(1, slope=1e30))
    for variable, value in zip(
        learner.agent.non_trainable_variables, before, strict=False):
      self.assertAllEqual(variable, value)
    weights = [v.numpy() for v in learner.agent.trainable_variables]
    with self.assertRaisesRegex(
        errors.EnvironmentValueError, 'Observations are too large'):
      _step(learner, _unroll(2))
    # No update is half made: a checkpoint may be written.
    for variable, value in zip(
        learner.agent.trainable_variables, weights, strict=True):
      self.assertAllEqual(variable, value)

  @parameterized.parameters(True, False)
  @eager.eagerly()
  def test_returns_that_are_too_large_end_the_run(self, has_levels):
    learner = _learner(normalise_observations='none',
                       **_LEVELS if has_levels else {})
    batch = lambda seed, scale: (
        _of_levels(seed, ['target', 'catch', 'target'], scale) if has_levels
        else _unroll(seed, scale=scale))
    _step(learner, batch(0, 1e18))  # The variance is below 3e38.
    returns = learner.agent.returns
    before = [v.numpy() for v in learner.agent.variables]
    self.assertGreater(np.max(returns.statistics.variance), 1e35)
    self.assertAllEqual(returns.statistics.count, np.ones(returns.shape))
    # No gradient changes the weights: only the mover could.
    with mock.patch.object(learner, '_groups', return_value=()):
      _step(learner, batch(1, 1e20))
    for variable, value in zip(learner.agent.variables, before, strict=True):
      self.assertAllEqual(variable, value)
    with self.assertRaisesRegex(errors.EnvironmentValueError,
                                '^Returns are too large .* scale the rewards'):
      _step(learner, batch(2, 1.))
    # The first returns, too: else the learner would wait for ever.
    learner = _learner(normalise_observations='none')
    _step(learner, _unroll(0, scale=1e20))
    with self.assertRaisesRegex(errors.EnvironmentValueError, '^Returns are'):
      _step(learner, _unroll(1))

  def test_first_rewards_after_many_zeros(self):
    learner = _learner(algorithm='appo', learning_rate_schedule='constant')
    for seed in range(100):
      _step(learner, _unroll(seed, scale=0))
    self.assertAllClose(learner.agent.returns.deviation, 1e-4)
    unroll = _unroll(100, scale=0)
    unroll.steps.env_outputs.reward[2, 1] = 1
    log_probs = lambda: tf.nn.log_softmax(learner.agent.unroll(
        unroll.steps.agent_outputs.action, unroll.steps.env_outputs, ()
        )[0].policy).numpy()
    before = log_probs()
    losses = []
    for frames in (0, 0, 0, 1):  # Four passes.
      learned = _step(learner, unroll, 0 if frames else 3, frames)
      losses.append(abs(float(learned.scalars['policy_loss'])))
    self.assertBetween(max(losses), 1, 100)  # The floor of advantages.
    ratio = np.exp(log_probs() - before)
    self.assertAllInRange(ratio, .8, 1.2)
    values = learner.agent._baseline._layer.kernel.numpy()
    self.assertTrue(np.isfinite(values).all())

  @eager.eagerly()
  def test_acting_and_loading(self):
    learner = _learner()
    for seed in range(3):
      _step(learner, _unroll(seed), frames=seed != 2)  # Sums wait.
    policy = policies.AgentPolicy(algorithms.make_agent(_config(), _SPEC, 7))
    policy.refresh(learner.weights())
    acting = policy._agent
    published = [v.numpy() for v in acting.variables]
    rng = np.random.default_rng(1)
    for _ in range(50):
      output = structs.StepOutput(
          np.zeros(2, 'f'), (), np.zeros(2, bool),
          rng.normal(100, 1, [2, 3]).astype('f'))
      policy.step(np.zeros(2, 'i'), output, ())
    for variable, value in zip(acting.variables, published, strict=True):
      self.assertAllEqual(variable, value)
    directory = self.create_tempdir().full_path
    description = algorithms.describe(_config(), _SPEC)
    checkpointing.Checkpointer(directory, learner, description).save()
    restored = _learner()
    checkpointing.Checkpointer(directory, restored, description).restore()
    for one, two in zip(tree.flatten(learner.state),
                        tree.flatten(restored.state), strict=True):
      self.assertAllEqual(one, two)
    self.assertTrue(restored._mover.is_set)
    for each in (learner, restored):
      _step(each, _unroll(9))
    for one, two in zip(learner.agent.variables, restored.agent.variables,
                        strict=True):
      self.assertAllEqual(one, two)

  def test_all_ways_to_act_have_the_same_logits(self):
    learner = _learner(algorithm='appo')
    for seed in range(5):
      _step(learner, _unroll(seed, slope=9., offset=50., scale=30.))
    weights = learner.weights()
    directory = self.create_tempdir().full_path
    config = dataclasses.replace(_config(algorithm='appo'), logdir=directory)
    config.save()
    checkpointing.Checkpointer(
        directory, learner, algorithms.describe(config, _SPEC)).save()
    checkpointing.save_spec(directory, _SPEC)
    part = self._statistics(learner)
    x = np.random.default_rng(9).normal(50, 20, [2, 3]).astype('f')
    normal = np.clip((x - part.mean) / np.sqrt(part.variance + 1e-5), -5, 5)
    plain = factory.make_agent(
        'mlp', _VECTOR, _ACTIONS, use_lstm=False, use_last_action_reward=False)
    trained = learner.agent.trainable_variables
    for variable, value in zip(plain.trainable_variables, trained, strict=True):
      variable.assign(value)
    seen = lambda x: structs.StepOutput(
        np.zeros(2, 'f'), structs.NO_INFO, np.zeros(2, bool), x)
    plain_output, _ = plain.step(np.zeros(2, 'i'), seen(normal), ())
    returns = learner.agent.returns
    values = (returns.statistics.mean
              + returns.deviation * plain_output.baseline)
    # Agents of actors, of the server of central inference, and of workers, to
    # which the weights are sent.
    make = lambda seed: policies.AgentPolicy(
        algorithms.make_agent(config, _SPEC, seed))
    shared = policies.SharedPolicy(
        make(8), dynamic_batching.Batcher(2, 2, timeout_ms=None))
    self.addCleanup(shared.close, 10)
    sent = pickle.loads(pickle.dumps(weights._replace(
        values=[np.asarray(value) for value in weights.values])))
    acting = [(make(7), weights), (shared, weights), (make(9), sent)]
    for policy, version in acting:
      policy.refresh(version)
    loaded = loading.load(directory)
    # Tests and videos.
    acting.append((policies.AgentPolicy(loaded.agent), weights))
    exported = export.ExportedAgent(loaded.agent, _SPEC, False)
    for seed in range(2):
      found = [policy.step(np.zeros(2, 'i'), seen(x), ())[0]
               for policy, _ in acting]
      outputs = exported.step_greedy(observation=tf.constant(x))
      found.append(structs.AgentOutput(
          (), outputs['policy'], outputs['baseline']))
      for output in found:
        self.assertAllClose(
            output.policy, plain_output.policy, rtol=1e-5, atol=1e-6)
        self.assertAllClose(output.baseline, values, rtol=1e-5)
      _step(learner, _unroll(seed, offset=7.))  # The training goes on.

  @parameterized.parameters(1e4, 1e6)
  @eager.eagerly()
  def test_large_returns_that_hardly_differ(self, size):
    learner = _learner(discounting=0., correction='none')
    unroll = _unroll(0)
    rewards = np.float32(size + unroll.steps.env_outputs.reward)
    _step(learner, unroll._replace(steps=unroll.steps._replace(
        env_outputs=unroll.steps.env_outputs._replace(reward=rewards))))
    found = learner.agent.returns
    self.assertAllClose(found.statistics.mean, np.mean(rewards[1:], dtype='d'))
    self.assertAllClose(
        found.deviation, np.std(rewards[1:], dtype='d'), rtol=1e-3)

  @eager.eagerly()
  def test_replayed_columns_do_not_move_the_statistics_of_returns(self):
    learner = _learner(discounting=0., correction='none')
    unroll = _unroll(0, scale=7)
    _step(learner, unroll, num_new=2)
    rewards = unroll.steps.env_outputs.reward[1:, :2]
    found = learner.agent.returns
    self.assertAllClose(found.statistics.mean, rewards.mean(), rtol=1e-5)
    self.assertAllClose(found.deviation, rewards.std(), rtol=1e-5)

  @eager.eagerly()
  def test_returns_of_rewards(self):
    learner = _learner(discounting=0., correction='none')  # v is the reward.
    found = learner.agent.returns
    rewards = []
    for seed in range(2):
      unroll = _unroll(seed, scale=7)
      _step(learner, unroll)
      rewards.append(unroll.steps.env_outputs.reward[1:])
      self.assertAllClose(
          found.statistics.mean, np.mean(rewards), rtol=1e-3)
      self.assertAllClose(found.deviation, np.std(rewards), rtol=1e-4)


_OFF_POLICY = ('ddpg', 'td3', 'sac', 'mpo')
_MEAN, _VARIANCE = np.float32([3, -2, 100]), np.float32([4, .25, 900])


def _off_policy(algorithm, collectives=None, **settings):
  config = config_lib.Config(
      algorithm=algorithm, level_name='Pendulum-v1', hidden_sizes='8,8',
      xla='none', updates_per_call=1, **settings).resolved(
          _VECTOR, on_cpu=True, num_groups=1)
  return setup.make_learner(
      config, _SPEC._replace(action=structs.ActionSpec(size=2)),
      collectives=collectives)


def _transitions(rng, learner, observations, rows=None):
  data = structs.Transition(
      observations[0], rng.uniform(-1, 1, [8, 2]).astype('f'),
      rng.normal(size=8).astype('f'), np.full([8], .9, 'f'), observations[1])
  return learner.to_device(data, 1)._replace(new_rows=rows or {})


class OffPolicyTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters(*_OFF_POLICY)
  @eager.eagerly()
  def test_agent_critics_and_targets_see_normalised_observations(
      self, algorithm):
    learner = _off_policy(algorithm, normalise_observations='auto')
    plain = _off_policy(algorithm)
    [part] = learner.agent.observation_normaliser.statistics.values()
    part.mean.assign(_MEAN)
    part.variance.assign(_VARIANCE)
    part.count.assign(5)
    for seed in range(4):
      rng = np.random.default_rng(seed)
      x = np.float32(rng.normal(_MEAN, 3 * np.sqrt(_VARIANCE), [2, 8, 3]))
      normal = np.clip((x - _MEAN) / np.sqrt(_VARIANCE + 1e-5), -5, 5)
      found = learner.step(_transitions(
          np.random.default_rng(seed), learner, x)).scalars
      expected = plain.step(_transitions(
          np.random.default_rng(seed), plain, normal)).scalars
      self.assertEqual(found.keys(), expected.keys())
      for name, value in expected.items():
        self.assertAllClose(found[name], value, rtol=1e-3, atol=1e-5, msg=name)
    self.assertAllEqual(part.mean, _MEAN)  # Draws move nothing.
    self.assertAllEqual(part.variance, _VARIANCE)
    self.assertEqual(float(part.count), 5)
    for kind in ('targets', 'unpublished'):  # Without the statistics.
      self.assertEqual([v.shape for v in learner.state[kind]],
                       [v.shape for v in plain.state[kind]])

  @parameterized.parameters('sac', 'td3')
  @eager.eagerly()
  def test_agents_with_memory_see_normalised_observations(self, algorithm):
    settings = dict(use_lstm=True, lstm_units=8, sequence_length=3,
                    unroll_length=3, burn_in_steps=1)
    learner = _off_policy(algorithm, normalise_observations='auto', **settings)
    plain = _off_policy(algorithm, **settings)
    [part] = learner.agent.observation_normaliser.statistics.values()
    part.mean.assign(_MEAN)
    part.variance.assign(_VARIANCE)
    part.count.assign(5)
    rng = np.random.default_rng(0)
    x = np.float32(rng.normal(_MEAN, 3 * np.sqrt(_VARIANCE), [5, 8, 3]))
    floats = lambda *shape: rng.normal(size=shape).astype('f')
    sequence = structs.Sequence(
        structs.StepOutput(floats(5, 8), structs.NO_INFO,
                           np.zeros([5, 8], bool), x),
        np.tanh(floats(5, 8, 2)), (floats(8, 8), floats(8, 8)), floats(3, 8),
        np.full([3, 8], .9, 'f'),
        np.tile(np.arange(1, 4, dtype=np.int32)[:, np.newaxis], 8),
        np.ones([3, 8], 'f'))
    normal = np.clip((x - _MEAN) / np.sqrt(_VARIANCE + 1e-5), -5, 5)
    for _ in range(3):
      found, expected = (each.step(each.to_device(sequence._replace(
          env_outputs=sequence.env_outputs._replace(observation=seen)), 1)
                                   ).scalars
                         for each, seen in ((learner, x), (plain, normal)))
      self.assertEqual(found.keys(), expected.keys())
      for name, value in expected.items():
        self.assertAllClose(found[name], value, rtol=1e-3, atol=1e-5, msg=name)
    self.assertAllEqual(part.mean, _MEAN)

  @eager.eagerly()
  def test_rows_that_arrive_move_the_statistics_before_the_update(self):
    learner = _off_policy('td3', normalise_observations='auto')
    weights = [v.numpy() for v in learner.algorithm.groups['critic']]
    rng = np.random.default_rng(1)
    rows = statistics.NewRows(learner.agent.observation_normaliser)
    seen = []
    for size in (2, 5, 1):
      x = np.float32(rng.normal(_MEAN, np.sqrt(_VARIANCE), [4, size, 3]))
      rows.add(x)
      seen.append(x[1:].reshape(-1, 3))
      if size != 2:
        learner.step(_transitions(rng, learner, x[:2, [0] * 8], rows.take()))
        [part] = learner.agent.observation_normaliser.statistics.values()
        arrived = np.concatenate(seen).astype('d')
        self.assertAllClose(part.mean, arrived.mean(0), rtol=1e-5)
        self.assertAllClose(part.variance, arrived.var(0), rtol=1e-4)
        self.assertEqual(float(part.count), len(arrived))
    self.assertNotAllClose(learner.algorithm.groups['critic'][0], weights[0])
    with self.assertRaisesRegex(errors.EnvironmentValueError, 'too large'):
      for _ in range(2):
        rows.add(np.full([3, 1, 3], 1e30, 'f'))
        learner.step(_transitions(rng, learner, x[:2, [0] * 8], rows.take()))

  @eager.eagerly()
  def test_few_rows_among_many_wait_until_float32_can_move(self):
    learner = _off_policy('td3', normalise_observations='auto')
    [part] = learner.agent.observation_normaliser.statistics.values()
    part.mean.assign([1000.] * 3)
    part.count.assign(1e7)
    rows = statistics.NewRows(learner.agent.observation_normaliser)
    rng = np.random.default_rng(1)
    x = np.full([51, 10, 3], 1000.5, 'f')
    for number in range(1, 41):
      rows.add(x)
      learner.step(_transitions(rng, learner, x[:2, [0] * 8], rows.take()))
      # 500 rows move the mean by 2.5e-5, less than half of the distance of
      # float32 numbers at 1000; 10,000 rows by 5e-4.
      self.assertAllClose(part.mean, [1000 + 5e-4 * (number // 20)] * 3,
                          rtol=0, atol=1e-4)
    self.assertEqual(float(part.count), 1e7 + 1e4)
    rows.add(np.full([2, 1, 3], np.nan, 'f'))  # An error does not wait.
    with self.assertRaisesRegex(errors.EnvironmentValueError, 'too large'):
      for _ in range(2):
        learner.step(_transitions(rng, learner, x[:2, [0] * 8], rows.take()))
    self.assertAllEqual([np.all(np.isfinite(v)) for v in learner.state[
        'statistics']], [True] * 3)

  @eager.eagerly()
  def test_clipped_numbers_of_batches_1_2_4_and_8_are_counted(self):
    rng = np.random.default_rng(1)
    for learner, step in (
        (_learner(normalise_observations='auto', normalise_returns=False),
         lambda learner, size: _step(learner, _unroll(
             1, slope=0., offset=size, batch_size=2))),
        (_off_policy('td3', normalise_observations='auto'),
         lambda learner, size: learner.step(_transitions(
             rng, learner, np.full([2, 8, 3], size, 'f') * [[[1.]], [[0.]]])))):
      [part] = learner.agent.observation_normaliser.statistics.values()
      part.count.assign(1e9)  # Hardly moves.
      found = []
      for size in (1, 9, 1, 1, 9, 9, 9, 9, 1):
        step(learner, size)
        found.append(learner.observations_clipped)
      none, each = (0, found[0][0]), (found[0][0],) * 2
      self.assertEqual([c for _, c in found], [
          none[0], *[each[1]] * 2, *[none[0]] * 4, *[each[1]] * 2])
      self.assertEqual(each[0], 24)

  @eager.eagerly()
  @mock.patch.object(statistics, '_MAX_NUMBERS', 9)
  def test_the_first_numbers_of_a_large_batch_are_counted(self):
    rng = np.random.default_rng(1)
    learner = _off_policy('td3', normalise_observations='auto')
    [part] = learner.agent.observation_normaliser.statistics.values()
    part.count.assign(1e9)
    x = np.full([2, 8, 3], 9, 'f')
    x[:, 2:] = 0  # Two of three rows of three numbers are clipped.
    learner.step(_transitions(rng, learner, x))
    self.assertEqual(learner.observations_clipped, (9, 6))

  def test_rows_of_frames(self):
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 256, [6, 2, 4, 3, 3], dtype=np.uint8)
    rows = statistics.NewRows(
        _normaliser((4, 3, 3), np.uint8, is_stacked=True))
    rows.add(frames)
    count, total, squares = rows.take()['']
    newest = frames[1:, :, -1].reshape(-1, 3, 3) / 255
    self.assertEqual(count, 10)
    self.assertAllClose(total, newest.sum(0))
    self.assertAllClose(squares, (newest**2).sum(0))
    self.assertAllEqual(rows.take()[''][1], np.zeros([3, 3]))
    self.assertEmpty(statistics.NewRows(None).take())

  @parameterized.parameters('observation', 'desired_goal')
  def test_achieved_goals_count_as_desired_goals_with_hindsight(self, name):
    rng = np.random.default_rng(1)
    goals = structs.ArraySpec((2,), _FLOAT)
    seen = {'observation': rng.normal(3, 2, [5, 4, 2]).astype('f'),
            'achieved_goal': rng.uniform(size=[5, 4, 2]).astype('f'),
            'desired_goal': np.full([5, 4, 2], .5, 'f')}
    made = normalisers.ObservationNormaliser(
        {part: goals for part in {'observation', name}})
    for has_hindsight in (False, True):
      rows = statistics.NewRows(made, has_hindsight)
      rows.add(seen)
      for part, (count, total, squares) in rows.take().items():
        expected = seen[part][1:].reshape(-1, 2).astype('d')
        if has_hindsight and part == 'desired_goal':
          expected = np.concatenate(
              [expected, seen['achieved_goal'][1:].reshape(-1, 2)])
        self.assertEqual(count, len(expected))
        self.assertAllClose(total, expected.sum(0))
        self.assertAllClose(squares, (expected**2).sum(0))

  def test_rows_of_all_learners(self):
    shared = {}, threading.Barrier(2)
    x = np.float32(np.random.default_rng(2).normal(3, 2, [2, 5, 8, 3]))
    learners = [_off_policy('sac', _Pair(rank, shared), batch_size=16,
                            normalise_observations='auto') for rank in range(2)]

    def learn(rank):
      rows = statistics.NewRows(learners[rank].agent.observation_normaliser)
      for is_new in (True, rank == 0):  # Learner 1 has nothing new.
        if is_new:
          rows.add(x[rank])
        learners[rank].step(_transitions(
            np.random.default_rng(rank), learners[rank], x[rank][:2],
            rows.take()))

    threads = [threading.Thread(target=learn, args=(r,)) for r in range(2)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(120)
    arrived = np.concatenate([x[r][1:].reshape(-1, 3) for r in (0, 1, 0)])
    for learner in learners:
      [part] = learner.agent.observation_normaliser.statistics.values()
      self.assertEqual(float(part.count), len(arrived))
      self.assertAllClose(part.mean, arrived.mean(0), rtol=1e-5)
      self.assertAllClose(part.variance, arrived.var(0), rtol=1e-4)

  def _trained(self, **settings):
    """Returns the statistics of a short training, and the counted frames."""
    learners = []
    eager.train(config_lib.Config(
        hidden_sizes='8', normalise_observations='auto', num_actors=2,
        num_actor_groups=1, deterministic=True, unroll_length=8, batch_size=4,
        min_replay_steps=32, updates_per_step=.25, total_environment_frames=96,
        xla='none', logdir=self.create_tempdir().full_path, **settings),
                hooks=[lambda update: learners.append(update.learner)])
    return (learners[-1].agent.observation_normaliser.statistics,
            learners[-1].num_env_frames)

  def test_training_counts_each_step_once(self):
    parts, num_frames = self._trained(
        algorithm='td3', level_name='Pendulum-v1', save_checkpoint_frames=48)
    self.assertEqual(float(parts[''].count), 96)
    self.assertEqual(num_frames, 96)

  @pytest.mark.slow
  def test_training_with_hindsight_counts_achieved_goals(self):
    parts, _ = self._trained(algorithm='sac', level_name='bit_flipping_6',
                             hindsight='future')
    self.assertEqual({name: float(part.count) for name, part in parts.items()},
                     {'observation': 96, 'desired_goal': 2 * 96})


class AgentsTest(parameterized.TestCase, tf.test.TestCase):

  def test_agents_without_normalisers_have_no_new_variables(self):
    plain = factory.make_agent('mlp', _VECTOR, _ACTIONS, seed=1)
    self.assertFalse(plain.non_trainable_variables)
    self.assertIsNone(plain.returns)
    self.assertIsNone(plain.observation_normaliser)

  def test_descriptions_name_normalisers(self):
    describe = lambda **settings: algorithms.describe(
        _config(**settings), _SPEC)
    self.assertLen({
        describe(), describe(normalise_observations='none'),
        describe(normalise_returns=False),
        describe(normalise_observations='none', normalise_returns=False)}, 4)
    describe = lambda asked: algorithms.describe(config_lib.Config(
        algorithm='sac', normalise_observations=asked), _SPEC)
    self.assertNotEqual(describe('auto'), describe('none'))

  def test_descriptions_do_not_depend_on_spelling(self):
    spec = _SPEC._replace(observation=ChoiceTest._SPEC)
    describe = lambda asked: algorithms.describe(
        _config(normalise_observations=asked), spec)
    self.assertEqual(describe('camera,speed'), describe('auto'))
    self.assertEqual(describe(' speed , kind'), describe('kind,speed,kind'))
    self.assertNotEqual(describe('kind'), describe('speed'))
    codes = _SPEC._replace(observation=ChoiceTest._SPEC['code'])
    self.assertEqual(
        *[algorithms.describe(_config(normalise_observations=asked), codes)
          for asked in ('auto', 'none')])

  def test_statistics_are_not_learned(self):
    agent = factory.make_agent(
        'mlp', _VECTOR, _ACTIONS, normalise_returns=True, seed=1,
        observation_normaliser=normalisers.choose('auto', _VECTOR))
    self.assertLen(agent.non_trainable_variables, 6)
    plain = factory.make_agent('mlp', _VECTOR, _ACTIONS, seed=1)
    self.assertEqual([v.shape for v in agent.trainable_variables],
                     [v.shape for v in plain.trainable_variables])

  @parameterized.parameters(
      ('catch', ()), ('catch,target,catch', (2,)), ('atari57', (57,)),
      ('dmlab30', (30,)))
  def test_levels_with_statistics(self, levels, shape):
    for mode in ('train', 'test'):
      agent = algorithms.make_agent(
          _config(level_name=levels, mode=mode), _SPEC, 1)
      self.assertEqual(agent.returns.shape, shape)


# See `mutations.py`.
MUTATIONS = (
    dict(file='networks/normalisers',
         catches='test_pixels_that_are_normalised_show_a_dim_ball_sooner0',
         rows=(
        ('one mean for all pixels',
         "x = layers.to_float(x, 'float32') - mean",
         "x = layers.to_float(x, 'float32') - tf.reduce_mean(mean)"),
    )),
    dict(file='networks/critics',
         catches='test_critics_in_bfloat16_see_small_differences', rows=(
        ('observations are rounded before their mean is subtracted',
         'super().__init__(autocast=False)', 'super().__init__()'),
    )),
    dict(file='learning/learner',
         catches='test_statistics_move_after_the_last_update_of_a_collection',
         rows=(
        ('weights without the statistics that have moved',
         '[] if self._mover.variables else self._copy_weights()',
         'self._copy_weights()'),
    )),
    dict(file='learning/statistics',
         catches='test_clipped_numbers_of_batches_1_2_4_and_8_are_counted',
         rows=(
        ('each batch is counted', 'self._num_batches.bit_count() == 1', 'True'),
        ('the next observations of a replay',
         'self._count(batch.data.observation\n',
         'self._count(batch.data.next_observation\n'),
    )),
    dict(
        file='networks/normalisers',
        catches='test_any_split_gives_the_statistics_of_all_rows',
        rows=(
            ('the variance about the old mean',
             'tf.square(shift), 0)',
             '0.0 * tf.square(shift), 0)'),
            ('the old rows lose their variance',
             '(1 - share) * variance + share',
             '0.0 * variance + share'),
            ('the new mean in place of the mixed mean',
             'return mean + shift, tf',
             'return mean + first, tf'),
            ('sums about zero',
             'shift = tf.cast(center, tf.float64) - mean',
             'shift = tf.cast(center, tf.float64)'),
            ('no rest in the first sum',
             'count * shift + first,',
             'count * shift,'),
            ('squares lose the shift',
             'second + shift * (2 * first + count * shift))',
             'second)'),
            ('a count of 32 bits',
             "counts, 'float64')",
             "counts, 'float32')"),
            ('the share of the old rows',
             'count / total, first',
             '1 - count / total, first'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_a_flash_of_a_pixel_is_clipped',
        rows=(
            ('not clipped',
             '-_CLIP, _CLIP)',
             '-1e9, 1e9)'),
            ('epsilon outside the root',
             'tf.sqrt(variance + _EPSILON)',
             '(tf.sqrt(variance) + _EPSILON)'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_nothing_is_compiled_on_a_gpu',
        rows=(
            ('compiled on a GPU', 'is_large and layers.on_cpu()', 'is_large'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_large_batches_of_a_known_size_are_compiled',
        rows=(
            ('small batches are compiled',
             'num_numbers or 0) >= _MIN_COMPILED_NUMBERS',
             'num_numbers or 0) >= 1'),
            ('nothing is compiled',
             'num_numbers or 0) >= _MIN_COMPILED_NUMBERS',
             'num_numbers or 0) >= 1e9'),
            ('batches of any size are compiled',
             'num_numbers or 0) >= _MIN_COMPILED_NUMBERS',
             'num_numbers or 1e9) >= _MIN_COMPILED_NUMBERS'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_new_columns_count_once_and_entry_0_never',
        rows=(
            ('statistics are learned',
             'dtype=dtype, trainable=False,',
             'dtype=dtype, trainable=True,'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_planes_of_a_stack_share_the_statistics_of_the_newest',
        rows=(
            ('frames not divided by 255 in sums',
             'rows = layers.to_float(tf.reshape(x, [-1, *x.shape[2:]]), (',
             'rows = tf.cast(tf.reshape(x, [-1, *x.shape[2:]]), ('),
            ('the oldest plane', '(steps, columns, -1) if',
             '(steps, columns, 0) if'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_the_count_is_capped',
        rows=(
            ('the count is not capped',
             'tf.minimum(statistics.count, _MAX_COUNT)',
             'tf.convert_to_tensor(statistics.count)'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_deviations_have_a_floor',
        rows=(
            ('all sizes of advantages',
             'tf.maximum(deviation, _MIN_ADVANTAGE_DEVIATION)',
             'deviation'),
            ('the deviation squared for errors',
             'errors /= deviation\n',
             'errors /= deviation**2\n'),
            ('advantages are not scaled',
             'advantages /= tf',
             'advantages /= 1.0 or tf'),
            ('no floor',
             '_MIN_DEVIATION, _MAX_DEVIATION)',
             '1e-9, _MAX_DEVIATION)'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_first_moves_are_means_of_moves',
        rows=(
            ('no rate',
             'tf.maximum(1 / count, rate), 0)',
             '1 / count, 0)'),
            ('the ratio upside down',
             'ratio = deviation / self.deviation',
             'ratio = self.deviation / deviation'),
            ('the first move is corrected',
             'is_first = tf.equal(count, 1)',
             'is_first = tf.equal(count, 0)'),
            ('the baseline without the mean',
             'values = self.statistics.mean + self',
             'values = self'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_no_value_changes',
        rows=(
            ('the layer is not corrected',
             'kernel * ratio)',
             'kernel)'),
            ('the layer is corrected twice',
             'kernel * ratio)',
             'kernel * ratio * ratio)'),
            ('the mean is not corrected',
             'bias * ratio + shift)',
             'bias * ratio)'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_returns_of_rewards',
        rows=(
            ('moments of returns about zero',
             'mean = tf.cast(self.statistics.mean, tf.float64)',
             'mean = tf.zeros([], tf.float64)'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_two_learners_have_the_statistics_of_one',
        rows=(
            ('sums of floats in 32 bits',
             "else 'float64'))",
             "else 'float32'))"),
        )),
    dict(
        file='networks/normalisers',
        catches='test_other_frames_have_statistics_of_each_number',
        rows=(
            ('frames of colours are stacks',
             'name: is_stacked and spec.dtype == np.uint8',
             'name: spec.dtype == np.uint8'),
            ('stacks of floats',
             'is_stacked and spec.dtype == np.uint8 and',
             'is_stacked and'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_observations_that_are_too_large_move_nothing',
        rows=(
            ('all moments move the statistics',
             'tf.where(is_finite, value, variable)',
             'value'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_parts',
        rows=(
            ('codes are normalised',
             'if not isinstance(part, structs.DiscreteSpec) and (',
             'if True and ('),
            ('networks of users get no bytes',
             'np.uint8 and has_bytes or',
             'np.uint8 or'),
        )),
    dict(
        file='settings/agent_settings',
        catches='test_unknown_parts_are_refused',
        rows=(
            ('an empty name',
             'all(name.strip() for',
             'any(True for'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_nothing_to_normalise',
        rows=(
            ('a discrete observation is normalised',
             'if not isinstance(part, structs.DiscreteSpec) and (',
             'if True and ('),
        )),
    dict(
        file='networks/normalisers',
        catches='test_unknown_parts_are_refused',
        rows=(
            ('unknown parts',
             'name not in parts or',
             'False and'),
        )),
    dict(
        file='learning/statistics',
        catches='test_few_rows_among_many_wait_until_float32_can_move',
        rows=(
            ('rows that wait are lost',
             'is_due, tf.zeros_like(variable), variable',
             'True, tf.zeros_like(variable), variable'),
        )),
    dict(
        file='networks/normalisers',
        catches='test_few_rows_among_many_wait_until_float32_can_move',
        rows=(
            ('no rows wait', '_MIN_SHARE * old', '0 * old'),
            ('sums that are not finite wait',
             '| ~tf.reduce_all(\n        tf.math.is_finite(second))', ''),
        )),
    dict(
        file='learning/statistics',
        catches='test_large_batches_are_summed_in_parts',
        rows=(
            ('entry 0 counts twice',
             'slice(1, None), columns)',
             'slice(None), columns)'),
        )),
    dict(
        file='learning/statistics',
        catches='test_new_columns_count_once_and_entry_0_never',
        rows=(
            ('old columns count',
             'min(start + size, num_columns)',
             'start + size'),
            ('moved by each batch',
             'if batch.num_new_frames:',
             'if True:'),
            ('sums are not cleared',
             'is_due, tf.zeros_like(variable), variable',
             'is_due, variable, variable'),
            ('one column of steps',
             'num_rows = num_steps * num_columns',
             'num_rows = num_steps'),
        )),
    dict(
        file='learning/statistics',
        catches='test_two_learners_have_the_statistics_of_one',
        rows=(
            ('each learner has its own statistics',
             'if self._collectives.size > 1:',
             'if False:'),
        )),
    dict(
        file='learning/statistics',
        catches='test_returns_of_rewards',
        rows=(
            ('the first sum of returns for both',
             'mean(second), count > 0)',
             'mean(first), count > 0)'),
        )),
    dict(
        file='learning/statistics',
        catches='test_rows_that_arrive_move_the_statistics_before_the_update',
        rows=(
            ('entry 0 of the first unroll counts',
             'seen, slice(1, None)) if',
             'seen) if'),
            ('squares about the new mean',
             'squares - 2 * mean * total + count * mean**2',
             'squares'),
            ('sums about zero for the old mean',
             'total - count * mean,',
             'total,'),
            ('sums go on after a sample',
             'sums, self._sums = self._sums, self._zeros()',
             'sums = self._sums'),
        )),
    dict(
        file='learning/statistics',
        catches='test_rows_of_frames',
        rows=(
            ('bytes are not divided',
             'rows /= 255',
             'rows /= 1'),
        )),
    dict(
        file='networks/critics',
        catches='test_agent_critics_and_targets_see_normalised_observations',
        rows=(
            ('critics see raw observations',
             'self._normalise(instructions.split(observations)[0])',
             'instructions.split(observations)[0]'),
            ('critics have the statistics, too',
             'self._normalise = (observation_normaliser.__call__',
             'self._normalise = (observation_normaliser'),
        )),
    dict(
        file='algorithms/__init__',
        catches='test_agent_critics_and_targets_see_normalised_observations',
        rows=(
            ('each agent has its own statistics',
             'functools.partial(make_agent, config, spec, seed, normaliser)',
             'functools.partial(make_agent, config, spec, seed)'),
        )),
    dict(
        file='algorithms/base',
        catches='test_agent_critics_and_targets_see_normalised_observations',
        rows=(
            ('targets have the statistics, too',
             'if target is not v]',
             ']'),
        )),
    dict(
        file='learning/sources',
        catches='test_training_counts_each_step_once',
        rows=(
            ('no rows from unrolls',
             'rows.add(unroll.steps.env_outputs.observation)',
             'pass'),
        )),
    dict(
        file='learning/sources',
        catches='test_training_with_hindsight_counts_achieved_goals',
        rows=(
            ('statistics without hindsight',
             "config.hindsight != 'none')",
             'False)'),
        )),
    dict(
        file='learning/statistics',
        catches='test_achieved_goals_count_as_desired_goals_with_hindsight',
        rows=(
            ('achieved goals do not count',
             "[newest['desired_goal'], observation['achieved_goal'][1:]])",
             "[newest['desired_goal']])"),
            ('entry 0 of achieved goals counts',
             "observation['achieved_goal'][1:]",
             "observation['achieved_goal']"),
            ('achieved goals count without hindsight',
             'if self._has_hindsight and',
             'if'),
            ('goals that the agent does not see',
             " and 'desired_goal' in newest",
             ''),
        )),
    dict(
        file='learning/statistics',
        catches='test_observations_that_are_too_large_move_nothing',
        rows=(
            ('training goes on',
             'if not bool(is_finite):',
             'if False:'),
        )),
    dict(
        file='learning/statistics',
        catches='test_returns_that_are_too_large_end_the_run',
        rows=(
            ('large returns are dropped',
             'are_finite[name] = self._returns.move(',
             'self._returns.move('),
            ('large returns are called observations',
             'if name == _RETURNS else (',
             'if False else ('),
        )),
    dict(
        file='networks/pop_art',
        catches='test_returns_that_are_too_large_end_the_run',
        rows=(
            ('returns always count as finite',
             'return is_finite',
             'return tf.constant(True)'),
        )),
    dict(
        file='learning/statistics',
        catches='test_replayed_columns_do_not_move_the_statistics_of_returns',
        rows=(
            ('replayed targets count',
             'targets[:, columns], tree',
             'targets, tree'),
        )),
    dict(
        file='learning/learner',
        catches='test_sums_of_a_cut_collection_count_once_for_all_learners',
        rows=(
            ('the sums of learner 0 count for each learner',
             'self._mover.variables if self._collectives.rank else ():',
             '():'),
        )),
    dict(
        file='learning/learner',
        catches='test_learners_have_one_rate_by_kl',
        rows=(
            ('the next part has the sum of a cut collection',
             '      schedule.forget()', '      pass'),
        )),
    dict(
        file='learning/gradients',
        catches='test_learners_have_one_rate_by_kl',
        rows=(
            ('means are added',
             'means = {name: mean / collectives.size for',
             'means = {name: mean for'),
        )),
    dict(
        file='learning/gradients',
        catches='test_micro_batches_equal_the_whole',
        rows=(
            ('targets of one micro-batch',
             'join(targets, 1)',
             'join(targets[:1], 1)'),
        )),
    dict(
        file='algorithms/__init__',
        catches='test_descriptions_do_not_depend_on_spelling',
        rows=(
            ('all names of auto in words',
             "'auto' if names == automatic else",
             "config.normalise_observations if names == automatic else"),
        )),
    dict(
        file='algorithms/__init__',
        catches='test_levels_with_statistics',
        rows=(
            ('several levels share the statistics of returns',
             'return names if len(names) > 1 else []',
             'return []'),
            ('levels of tests have the statistics',
             'level_names(config.level_name, is_test=False)))',
             'level_names(config.level_name, config.is_test)[:2]))'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_statistics_are_those_of_each_level',
        rows=(
            ('one center for all levels',
             'tf.linalg.matvec(is_of, x, transpose_a=True), counts)',
             'tf.linalg.matvec(is_of, x, transpose_a=True), 1 + counts)'),
            ('moments of levels about zero',
             'shift = center - mean\n',
             'shift = center - 1\n'),
            ('a number of rows for all levels',
             'return (counts, counts * shift',
             'return (tf.ones_like(counts), counts * shift'),
        )),
    dict(
        file='algorithms/impala',
        catches='test_the_size_of_the_rewards_of_a_level_does_not_matter',
        rows=(
            ('priorities in rewards',
             'terms[1] if has_levels else',
             'terms[1] if False else'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_values_of_each_level_stay_when_statistics_move',
        rows=(
            ('levels without new returns move',
             'share = tf.where(is_new, tf.maximum(1 / count, rate), 0)',
             'share = tf.maximum(1 / count, rate)'),
            ('levels without new returns count',
             'statistics.count + tf.cast(is_new, tf.float64)',
             'statistics.count + 1'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_a_new_level_only_sets_its_statistics',
        rows=(
            ('new levels are learned from',
             'are_set * advantages, are_set * errors',
             'advantages, errors'),
            ('all levels must be set',
             'self.statistics.count > 0, tf.float32), levels)',
             'self.statistics.count > 9, tf.float32), levels)'),
        )),
    dict(
        file='algorithms/impala',
        catches='test_columns_of_a_new_level_add_nothing_to_the_loss',
        rows=(
            ('entropies of new levels',
             'self.agent.returns.are_set(levels) * entropies',
             'entropies'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_columns_of_a_new_level_add_nothing_to_the_loss',
        rows=(
            ('entropies of new levels',
             'are_set * entropies',
             'entropies'),
            ('KL of new levels',
             'are_set * kl',
             'kl'),
            ('advantages are normalised with those of new levels',
             'normalise(advantages, are_set)',
             'normalise(advantages)'),
        )),
    dict(
        file='learning/statistics',
        catches='test_a_new_level_only_sets_its_statistics',
        rows=(
            ('learning waits for all levels',
             'tf.reduce_max(count)',
             'tf.reduce_min(count)'),
        )),
    dict(
        file='algorithms/base',
        catches='test_each_column_has_the_value_of_its_level',
        rows=(
            ('truncated values of all levels',
             'of_level(truncation_values[1:])',
             'tf.reduce_sum(truncation_values[1:], tf.range(2, tf.rank('
             'truncation_values)))'),
            ('old values of all levels',
             'of_level(agent_outputs.baseline)',
             'agent_outputs.baseline[..., 0] if agent.returns.shape else '
             'agent_outputs.baseline'),
        )),
    dict(
        file='modes/loading',
        catches='test_acting_saving_and_other_levels_in_a_test',
        rows=(
            ('the levels of the test have statistics',
             'if trained_with and config.normalise_returns:',
             'if False:'),
        )),
    dict(
        file='algorithms/__init__',
        catches='test_acting_saving_and_other_levels_in_a_test',
        rows=(
            ('levels are not in the description',
             "f' of {\",\".join(names)}, '",
             "' of levels, '"),
            ('the order of levels is in the description',
             'names = sorted(set(values.names(config.level_name)))',
             'names = values.names(config.level_name)'),
        )),
    dict(
        file='learning/learner',
        catches='test_the_first_collection_only_sets_the_statistics',
        rows=(
            ('the first collection is learned from',
             'self._groups(is_due) if self._mover.is_set else ()',
             'self._groups(is_due)'),
            ('no rate in the first collection',
             'for group in gradients or self.algorithm.groups:',
             'for group in gradients:'),
        )),
    dict(
        file='networks/pop_art',
        catches='test_first_rewards_after_many_zeros',
        rows=(
            ('advantages of 10,000 deviations',
             '_MIN_ADVANTAGE_DEVIATION = 1e-2',
             '_MIN_ADVANTAGE_DEVIATION = 1e-4'),
        )),
    dict(
        file='networks/agents',
        catches='test_agents_with_memory_see_normalised_observations',
        rows=(
            ('no normaliser below a memory',
             'if self.observation_normaliser:',
             'if self.observation_normaliser and not self._core:'),
        )),
    dict(
        file='modes/loading',
        catches='test_all_ways_to_act_have_the_same_logits',
        rows=(
            ('agents of tests are not the trained ones',
             'config.logdir, agent, algorithms.describe(config, spec))',
             'config.logdir, algorithms.make_agent(config, spec, 1), '
             'algorithms.describe(config, spec))'),
        )),
    dict(
        file='learning/learner',
        catches='test_acting_and_loading',
        rows=(
            ('sums are not saved',
             "'statistics': [*self._mover.variables, *(",
             "'statistics': [*("),
        )),
)


if __name__ == '__main__':
  absltest.main()
