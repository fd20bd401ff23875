# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the distributions against formulae and numerical integration."""

import math

from absl.testing import parameterized
import in_numpy
import numpy as np
import pytest
from scalable_agent import vtrace
from scalable_agent.networks import distributions
import tensorflow as tf

_T, _B = 5, 3
_SIZES = (2, 5, 3)
_NUM_SAMPLES = 20000


def _random_params(seed, num_parts=4):
  """Means and log standard deviations that vary along every axis."""
  rng = np.random.RandomState(seed)
  return np.concatenate([rng.normal(size=[_T, _B, num_parts]),
                         rng.uniform(-1., .5, [_T, _B, num_parts])], -1)


def _log_normal_density(x, loc, scale):
  return -.5 * ((x - loc) / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi))


def _squashed_log_density(action, loc, scale):
  return (_log_normal_density(np.arctanh(action), loc, scale)
          - np.log(1 - action ** 2))


def _log_tail_mean(loc, scale):
  """Logarithm of the mean density of `tanh(u)` from .999 to 1."""
  x = (np.arctanh(.999) - loc) / scale / np.sqrt(2.)
  if x < 20:
    return math.log(.5 * math.erfc(x)) - math.log(.001)
  # Abramowitz and Stegun 7.1.23.
  return (-x * x - math.log(x * math.sqrt(math.pi)) + math.log1p(-.5 / x ** 2)
          - math.log(2.) - math.log(.001))


def _entropy_by_integration(loc, scale):
  """Minus the mean of the log-density of `tanh(u)`, in float64."""
  z = np.linspace(-12., 12., 200001)
  u = loc + scale * z
  log_density = _log_normal_density(u, loc, scale) + 2 * np.logaddexp(
      u, -u) - 2 * np.log(2.)
  weights = np.exp(-.5 * z ** 2)
  return -np.sum(weights * log_density) / np.sum(weights)


class CategoricalTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(np.int32, np.int64)
  def test_formula(self, action_dtype):
    rng = np.random.RandomState(0)
    logits = tf.Variable(rng.normal(0., 2., [_T, _B, 4]))
    actions = rng.randint(4, size=[_T, _B])
    with tf.GradientTape(persistent=True) as tape:
      policy = distributions.categorical(logits)
      log_probs = policy.log_prob(actions.astype(action_dtype))
      entropies = policy.entropy()
    expected = in_numpy.log_softmax(logits.numpy())
    p = np.exp(expected)
    self.assertAllClose(in_numpy.pick(expected, actions), log_probs, rtol=1e-12)
    self.assertAllClose(-np.sum(p * expected, -1), entropies, rtol=1e-12)
    self.assertAllClose(np.eye(4)[actions] - p,
                        tape.gradient(log_probs, logits))
    self.assertAllClose(-p * (expected + entropies[..., None]),
                        tape.gradient(entropies, logits))
    self.assertAllEqual(np.argmax(logits, -1), policy.mode())
    self.assertEqual(policy.mode().dtype, tf.int32)

  def test_samples(self):
    probs = np.array([[.1, .2, .7], [.5, .4, .1]])
    policy = distributions.categorical(
        np.tile(np.log(probs), [_NUM_SAMPLES, 1, 1]))
    samples = policy.sample(seed=(1, 2))
    self.assertEqual(samples.dtype, tf.int32)
    self.assertAllClose(probs, np.mean(np.eye(3)[samples], 0), atol=.02)
    self.assertAllEqual(samples, policy.sample(seed=(1, 2)))
    self.assertNotAllEqual(samples, policy.sample())

  @parameterized.parameters(-1, 3)
  def test_action_out_of_range(self, action):
    with tf.device('CPU'), self.assertRaises(tf.errors.InvalidArgumentError):
      distributions.categorical(tf.zeros([1, 3])).log_prob([action])


class MultiCategoricalTest(tf.test.TestCase, parameterized.TestCase):

  def _random(self, seed):
    rng = np.random.RandomState(seed)
    logits = rng.normal(0., 2., [_T, _B, sum(_SIZES)])
    actions = np.stack([rng.randint(n, size=[_T, _B]) for n in _SIZES], -1)
    return logits, actions

  def test_formula(self):
    logits, actions = self._random(0)
    x = tf.Variable(logits)
    with tf.GradientTape(persistent=True) as tape:
      policy = distributions.multi_categorical(x, _SIZES)
      log_probs, entropies = policy.log_prob(actions), policy.entropy()
    parts = np.split(logits, np.cumsum(_SIZES)[:-1], axis=-1)
    log_p = [in_numpy.log_softmax(x) for x in parts]
    self.assertAllClose(
        sum(in_numpy.pick(x, actions[..., i]) for i, x in enumerate(log_p)),
        log_probs, rtol=1e-12)
    entropy = [-np.sum(np.exp(x) * x, -1, keepdims=True) for x in log_p]
    self.assertAllClose(sum(entropy)[..., 0], entropies, rtol=1e-12)
    self.assertAllClose(
        np.concatenate([np.eye(n)[actions[..., i]] - np.exp(log_p[i])
                        for i, n in enumerate(_SIZES)], -1),
        tape.gradient(log_probs, x))
    self.assertAllClose(
        np.concatenate([-np.exp(x) * (x + h) for x, h in zip(log_p, entropy)],
                       -1),
        tape.gradient(entropies, x))
    self.assertAllEqual(np.stack([np.argmax(x, -1) for x in parts], -1),
                        policy.mode())
    self.assertEqual(policy.mode().dtype, tf.int32)

  def test_one_part_is_categorical(self):
    logits, actions = self._random(1)
    found = distributions.multi_categorical(logits, [sum(_SIZES)])
    expected = distributions.categorical(logits)
    self.assertAllEqual(expected.log_prob(actions[..., 0]),
                        found.log_prob(actions[..., :1]))
    self.assertAllEqual(expected.entropy(), found.entropy())

  def test_samples(self):
    probs = [[.3, .7], [.1, .1, .1, .2, .5], [.6, .3, .1]]
    logits = np.tile(np.log(np.concatenate(probs)), [_NUM_SAMPLES, 1])
    policy = distributions.multi_categorical(logits, _SIZES)
    samples = policy.sample(seed=(3, 4)).numpy()
    self.assertEqual(samples.dtype, np.int32)
    counts = np.zeros(_SIZES)
    np.add.at(counts, tuple(samples.T), 1)
    # All combinations, because the parts are independent of each other.
    self.assertAllClose(np.einsum('i,j,k', *probs), counts / _NUM_SAMPLES,
                        atol=.015)
    self.assertAllEqual(samples, policy.sample(seed=(3, 4)))
    self.assertNotAllEqual(samples, policy.sample())

  def test_extreme_logits(self):
    logits = tf.Variable([[1e4, -1e4, -1e4, 1e4, 0.]])
    with tf.GradientTape(persistent=True) as tape:
      policy = distributions.multi_categorical(logits, (2, 3))
      entropies = policy.entropy()
      log_probs = policy.log_prob([[1, 2]])
    self.assertAllEqual([0.], entropies)
    self.assertAllEqual([-3e4], log_probs)
    self.assertAllEqual(np.zeros([1, 5]), tape.gradient(entropies, logits))
    self.assertAllEqual([[-1, 1, 0, -1, 1]], tape.gradient(log_probs, logits))

  def test_action_out_of_range(self):
    policy = distributions.multi_categorical(tf.zeros([1, 5]), (2, 3))
    self.assertAllEqual([-np.inf], policy.log_prob([[2, 0]]))
    with tf.device('CPU'), self.assertRaises(tf.errors.InvalidArgumentError):
      policy.log_prob([[0, 3]])

  @parameterized.parameters([[2, 5]], [[2, 5, 4]], [[]])
  def test_wrong_shape(self, num_actions):
    with self.assertRaisesRegex(ValueError, 'the last axis must be their sum'):
      distributions.multi_categorical(tf.zeros([_T, _B, 10]), num_actions)

  @parameterized.parameters([[2, 0, 3]], [[6, -1]])
  def test_sizes_must_be_positive(self, num_actions):
    with self.assertRaisesRegex(ValueError, 'num_actions: .* be positive'):
      distributions.multi_categorical(tf.zeros([_T, 5]), num_actions)


class NormalTest(tf.test.TestCase, parameterized.TestCase):

  def test_formula(self):
    params = _random_params(0)
    actions = np.random.RandomState(1).normal(size=[_T, _B, 4])
    x = tf.Variable(params)
    with tf.GradientTape(persistent=True) as tape:
      policy = distributions.normal(x)
      log_probs, entropies = policy.log_prob(actions), policy.entropy()
    loc, log_scale = np.split(params, 2, -1)
    scale = np.exp(log_scale)
    self.assertAllClose(
        np.sum(_log_normal_density(actions, loc, scale), -1), log_probs,
        rtol=1e-12)
    self.assertAllClose(np.sum(.5 * np.log(2 * np.pi * np.e) + log_scale, -1),
                        entropies, rtol=1e-12)
    z = (actions - loc) / scale
    self.assertAllClose(np.concatenate([z / scale, z ** 2 - 1], -1),
                        tape.gradient(log_probs, x))
    self.assertAllClose(
        np.concatenate([np.zeros_like(loc), np.ones_like(loc)], -1),
        tape.gradient(entropies, x))
    self.assertAllEqual(loc, policy.mode())

  @parameterized.parameters(distributions.normal, distributions.tanh_normal)
  def test_log_scale_is_clipped(self, constructor):
    params = tf.Variable([[0., 0., 0., 0., -25., -20., 2., 3.]])
    with tf.GradientTape() as tape:
      entropy = constructor(params).entropy()
    clipped = tf.constant([[0., 0., 0., 0., -20., -20., 2., 2.]])
    self.assertAllClose(constructor(clipped).entropy(), entropy)
    gradient = tape.gradient(entropy, params)
    self.assertAllEqual([True, False, False, True], gradient[0, 4:] == 0)

  def test_samples(self):
    params = np.tile([[.5, -2., math.log(.1), math.log(3.)]], [_NUM_SAMPLES, 1])
    x = tf.Variable(params)
    with tf.GradientTape() as tape:
      policy = distributions.normal(x)
      samples = policy.sample(seed=(5, 6))
    self.assertAllClose([.5, -2.], np.mean(samples, 0), atol=.06)
    self.assertAllClose([.1, 3.], np.std(samples, 0), rtol=.03)
    self.assertAllLess(np.abs(np.corrcoef(samples, rowvar=False)[0, 1]), .03)
    self.assertAllEqual(samples, policy.sample(seed=(5, 6)))
    self.assertNotAllEqual(samples, policy.sample())
    self.assertAllClose(
        np.concatenate([np.ones_like(samples), samples - params[:, :2]], -1),
        tape.gradient(samples, x))

  def test_many_samples(self):
    params = _random_params(11).astype(np.float32)
    policy = distributions.normal(params)
    samples = policy.sample((5, 6), 3)
    self.assertEqual(samples.shape, [3, _T, _B, 4])
    self.assertAllEqual(samples, policy.sample((5, 6), num_samples=3))
    noise = (samples - policy.loc) / policy.scale
    self.assertLen(np.unique(np.round(noise, 5)), np.size(noise))
    log_probs = policy.log_prob(samples)
    self.assertEqual(log_probs.shape, [3, _T, _B])
    for found, sample in zip(log_probs, samples):
      self.assertAllClose(policy.log_prob(sample), found)
    self.assertEqual(policy.sample(num_samples=1).shape, [1, _T, _B, 4])

  @parameterized.parameters(distributions.normal, distributions.tanh_normal)
  def test_odd_number_of_parameters(self, constructor):
    with self.assertRaisesRegex(ValueError, 'even last axis'):
      constructor(tf.zeros([_T, _B, 3]))

  @parameterized.product(
      policy=('normal', 'tanh_normal', 'multi_categorical'),
      params=(1., np.zeros([_T, 2], np.int32)))
  def test_wrong_parameters(self, policy, params):
    sizes = [[2]] if policy == 'multi_categorical' else []
    name = 'logits' if sizes else 'params'
    with self.assertRaisesRegex(ValueError, f'{name}: .* must be floats'):
      getattr(distributions, policy)(params, *sizes)


class TanhNormalTest(tf.test.TestCase, parameterized.TestCase):

  def test_known_numbers(self):
    policy = distributions.tanh_normal([.3, -.2, -.5, .1])
    self.assertAllClose([.291312612452, -.197375320225], policy.mode())
    self.assertAllClose(-1.309459382877, policy.log_prob(policy.mode()))
    self.assertAllClose(-.590587354329, policy.log_prob(np.float32(
        [.664036770268, -.761594155956])))
    # In units of [-2, 3] instead of [-1, 1].
    self.assertAllClose(
        -3.1420408, policy.log_prob(policy.mode()) - 2 * math.log(2.5))
    params = np.float64([.3, -.2, -.5, .1])
    actions, log_prob = distributions.tanh_normal(params).sample_and_log_prob(
        noise=(np.float64([.8, -1.]) - params[:2]) / np.exp(params[2:]))
    self.assertAllClose([.664036770268, -.761594155956], actions, rtol=1e-11)
    self.assertAllClose(-.590587354329, log_prob, rtol=1e-11)

  def test_formula(self):
    params = _random_params(2)
    actions = np.random.RandomState(3).uniform(-.998, .998, [_T, _B, 4])
    x = tf.Variable(params)
    with tf.GradientTape() as tape:
      log_probs = distributions.tanh_normal(x).log_prob(actions)
    loc, scale = params[..., :4], np.exp(params[..., 4:])
    self.assertEqual(log_probs.dtype, tf.float64)
    self.assertAllClose(
        np.sum(_squashed_log_density(actions, loc, scale), -1), log_probs,
        rtol=1e-10)
    z = (np.arctanh(actions) - loc) / scale
    self.assertAllClose(np.concatenate([z / scale, z ** 2 - 1], -1),
                        tape.gradient(log_probs, x))

  @parameterized.parameters([[_T, _B, 1]], [[_B, 2]], [[]])
  def test_actions_of_wrong_shape(self, shape):
    policy = distributions.tanh_normal(tf.zeros([_T, _B, 4]))
    with self.assertRaisesRegex(
        ValueError, r'actions: Shape \(.*\) does not fit shape \(5, 3, 2\)'):
      policy.log_prob(tf.zeros(shape))

  @parameterized.parameters((np.float32, np.float64), (np.float64, np.float32))
  def test_actions_are_cast(self, dtype, action_dtype):
    policy = distributions.tanh_normal(np.array([.3, -.2, -.5, .1], dtype))
    found = policy.log_prob(tf.constant([.5, -.25], action_dtype))
    self.assertEqual(found.dtype, dtype)
    self.assertAllEqual(policy.log_prob(np.array([.5, -.25], dtype)), found)

  @parameterized.product(
      action=(-1., -.9995, .9995, 1.), loc=(-3., 0., 5.), scale=(.05, 1., 5.))
  def test_tails(self, action, loc, scale):
    x = tf.Variable([loc, math.log(scale)], dtype=tf.float64)
    with tf.GradientTape() as tape:
      found = distributions.tanh_normal(x).log_prob([action])
    expected = lambda loc, log_scale: _log_tail_mean(
        math.copysign(1., action) * loc, math.exp(log_scale))
    self.assertAllClose(expected(loc, math.log(scale)), found, rtol=1e-6,
                        atol=1e-6)
    h = 1e-5
    self.assertAllClose(
        [(expected(loc + h, math.log(scale))
          - expected(loc - h, math.log(scale))) / (2 * h),
         (expected(loc, math.log(scale) + h)
          - expected(loc, math.log(scale) - h)) / (2 * h)],
        tape.gradient(found, x), rtol=1e-4, atol=1e-6)

  @parameterized.product(loc=(-2., 0., .7), scale=(.1, 1., 4.))
  def test_densities_integrate_to_one(self, loc, scale):
    edges = np.linspace(-.999, .999, 400001)
    actions = np.concatenate([.5 * (edges[1:] + edges[:-1]), [-1., 1.]])
    widths = np.concatenate([np.diff(edges), [.001, .001]])
    policy = distributions.tanh_normal(
        np.tile([loc, math.log(scale)], [len(actions), 1]))
    densities = np.exp(policy.log_prob(actions[:, None]))
    self.assertAllClose(1., np.sum(densities * widths), rtol=1e-6)

  @parameterized.product(
      action=(-1., 1.), outwards=(-1e4, -30., 0., 2.),
      log_scale=(-20., -3., 0., 2.))
  def test_bounds_in_float32(self, action, outwards, log_scale):
    loc = action * outwards
    x = tf.Variable([loc, log_scale])
    for exact_bound in (action, np.nextafter(np.float32(action),
                                             np.float32(0.))):
      with tf.GradientTape() as tape:
        found = distributions.tanh_normal(x).log_prob([exact_bound])
      gradient = tape.gradient(found, x)
      self.assertEqual(found.dtype, tf.float32)
      self.assertAllClose(_log_tail_mean(outwards, math.exp(log_scale)), found,
                          rtol=1e-5, atol=1e-5)
      self.assertAllInRange(tf.abs(gradient), 1e-3, 3e38)
      # The bound gets more probable with a mean beyond it and with more noise.
      self.assertAllEqual([action, 1.], tf.sign(gradient))

  @parameterized.parameters(30., 1e4)
  def test_certain_bound(self, outwards):
    x = tf.Variable([[outwards, 0.], [-outwards, 0.]])
    with tf.GradientTape() as tape:
      found = distributions.tanh_normal(x).log_prob([[1.], [-1.]])
    self.assertAllClose([math.log(1000.)] * 2, found)
    self.assertAllClose(np.zeros([2, 2]), tape.gradient(found, x))

  @pytest.mark.slow
  def test_extreme_parameters_inside(self):
    for loc, log_scale in ((1e4, -20.), (-1e4, -20.), (1e4, 2.), (0., -20.)):
      x = tf.Variable([loc, log_scale])
      for action in (-.99, 0., .99):
        with tf.GradientTape() as tape:
          found = distributions.tanh_normal(x).log_prob([action])
        self.assertAllInRange(tf.abs(found), 0., 3e38)
        self.assertAllInRange(tf.abs(tape.gradient(found, x)), 0., 3e38)

  def test_parts_are_inside_and_at_both_bounds(self):
    loc, scale = np.array([.3, -.4, .5]), np.array([.7, 1.2, .9])
    actions = np.array([.2, -1., 1.])
    policy = distributions.tanh_normal(np.concatenate([loc, np.log(scale)]))
    self.assertAllClose(
        _squashed_log_density(.2, .3, .7) + _log_tail_mean(.4, 1.2)
        + _log_tail_mean(.5, .9), policy.log_prob(actions))
    self.assertAllEqual(policy.log_prob(actions),
                        policy.log_prob([.2, -1.5, 7.]))

  def test_samples(self):
    params = tf.constant([[[.5, -1., math.log(.3), math.log(2.)]]])
    policy = distributions.tanh_normal(tf.tile(params, [_NUM_SAMPLES, 1, 1]))
    samples = policy.sample(seed=(7, 8))
    self.assertAllInRange(samples, -1., 1.)
    self.assertAllClose(np.tanh([[.5, -1.]]), np.median(samples, 0), atol=.02)
    # One standard deviation to either side.
    self.assertAllClose(np.tanh([[.2, -3.]]), np.quantile(samples, .1587, 0),
                        atol=.02)
    self.assertAllClose(np.tanh([[.8, 1.]]), np.quantile(samples, .8413, 0),
                        atol=.02)
    self.assertAllEqual(samples, policy.sample(seed=(7, 8)))
    self.assertNotAllEqual(samples, policy.sample())

  def test_sample_and_log_prob(self):
    params = _random_params(4)
    policy = distributions.tanh_normal(params)
    samples, log_probs = policy.sample_and_log_prob(seed=(9, 10))
    self.assertAllEqual(policy.sample(seed=(9, 10)), samples)
    self.assertAllLess(tf.abs(samples), .999)
    self.assertAllClose(policy.log_prob(samples), log_probs)
    self.assertNotAllEqual(samples, policy.sample_and_log_prob()[0])

  def test_sample_and_log_prob_at_the_bounds(self):
    params = tf.constant([-40., 40., -1., -1.])
    for seed in ((1, 0), (2, 0), (3, 0)):
      samples, log_probs = distributions.tanh_normal(
          params).sample_and_log_prob(seed=seed)
      self.assertAllEqual([-1., 1.], samples)
      u = distributions.normal(params).sample(seed=seed).numpy()
      # There log(1 - tanh(u)^2) is log 4 - 2 |u|.
      log_density = _log_normal_density(u, np.array([-40., 40.]), np.exp(-1.))
      self.assertAllClose(
          np.sum(log_density - np.log(4.) + 2 * np.abs(u)), log_probs,
          rtol=1e-5)

  def test_gradients_of_samples(self):
    params = _random_params(5)
    x = tf.Variable(params)
    with tf.GradientTape(persistent=True) as tape:
      samples, log_probs = distributions.tanh_normal(x).sample_and_log_prob(
          seed=(11, 12))
    u = np.arctanh(samples)
    scaled_z = u - params[..., :4]
    slope = 1 - samples.numpy() ** 2
    self.assertAllClose(np.concatenate([slope, slope * scaled_z], -1),
                        tape.gradient(samples, x))
    # log p = -z^2 / 2 - log scale - log(1 - tanh(u)^2) + constant.
    self.assertAllClose(
        np.concatenate([2 * np.tanh(u), 2 * np.tanh(u) * scaled_z - 1], -1),
        tape.gradient(log_probs, x))

  # The widest is just below the clipping, so that it has a gradient.
  @parameterized.product(
      loc=(-3., 0., 3.), scale=(1e-3, .1, .5, 1., 2., 4., 7.38))
  def test_entropy(self, loc, scale):
    log_scale = math.log(scale)
    x = tf.Variable([loc, log_scale], dtype=tf.float64)
    with tf.GradientTape() as tape:
      found = distributions.tanh_normal(x).entropy()
    self.assertAllClose(
        _entropy_by_integration(loc, scale), found, rtol=0.,
        atol=3e-8 if scale <= 2 else 8e-7 if scale <= 4 else 3e-4)
    h = 1e-4
    difference = lambda dx, dy: (
        _entropy_by_integration(loc + dx, math.exp(log_scale + dy))
        - _entropy_by_integration(loc - dx, math.exp(log_scale - dy))) / (2 * h)
    self.assertAllClose(
        [difference(h, 0.), difference(0., h)], tape.gradient(found, x),
        rtol=0., atol=1e-7 if scale <= 2 else 2e-5 if scale <= 4 else 4e-3)

  def test_entropies_are_summed(self):
    params = _random_params(6).astype(np.float32)
    found = distributions.tanh_normal(params).entropy()
    self.assertEqual(found.dtype, tf.float32)
    expected = np.vectorize(_entropy_by_integration)(
        params[..., :4], np.exp(params[..., 4:]))
    self.assertAllClose(np.sum(expected, -1), found, rtol=1e-5, atol=1e-5)

  def test_mode(self):
    params = _random_params(7)
    self.assertAllClose(np.tanh(params[..., :4]),
                        distributions.tanh_normal(params).mode())


class KLTest(tf.test.TestCase, parameterized.TestCase):

  def test_categorical(self):
    # Logits need not be logarithms of probabilities.
    one, two = (distributions.categorical(np.log(p) + shift) for p, shift in (
        ([.7, .2, .1], 0), ([.1, .2, .7], 3)))
    self.assertAllClose(one.kl(two), 1.1675461)
    self.assertAllClose(one.kl(one), 0.)

  def test_parts_are_summed(self):
    p, q = np.random.RandomState(1).normal(size=[2, 4, 5])
    several = lambda x: distributions.multi_categorical(x, [2, 3])
    expected = sum(
        distributions.categorical(p[:, part]).kl(
            distributions.categorical(q[:, part]))
        for part in (slice(0, 2), slice(2, 5)))
    self.assertAllClose(several(p).kl(several(q)), expected)

  def test_normal(self):
    p, q = np.random.RandomState(2).uniform(-1.5, 1.5, [2, 3, 4])
    found = distributions.normal(p).kl(distributions.normal(q))
    x = np.linspace(-30, 30, 200_001)[:, np.newaxis, np.newaxis]
    density = lambda params: -.5 * (
        (x - params[:, :2]) / np.exp(params[:, 2:]))**2 - params[:, 2:] - (
            .5 * np.log(2 * np.pi))
    expected = np.sum(np.exp(density(p)) * (density(p) - density(q)),
                      0).sum(-1) * (x[1, 0, 0] - x[0, 0, 0])
    self.assertAllClose(found, expected, rtol=1e-4)
    self.assertAllClose(
        distributions.tanh_normal(p).kl(distributions.tanh_normal(q)), found)


class VTraceTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(False, True)
  @pytest.mark.slow
  def test_log_probs_give_importance_weights(self, jit_compile):
    behaviour, target = (
        _random_params(seed).astype(np.float32) for seed in (8, 9))
    rng = np.random.RandomState(10)
    discounts, rewards, values = rng.uniform(
        size=[3, _T, _B]).astype(np.float32)

    def returns(constructor, actions):
      return vtrace.from_action_log_probs(
          constructor(behaviour).log_prob(actions),
          constructor(target).log_prob(actions), discounts, rewards, values,
          values[0])

    compiled = tf.function(
        returns, autograph=False, jit_compile=jit_compile)
    for constructor in (
        distributions.categorical, distributions.normal,
        distributions.tanh_normal,
        lambda x: distributions.multi_categorical(x, (5, 3))):
      actions = constructor(behaviour).sample(seed=(13, 14))
      found = compiled(constructor, actions)
      self.assertAllClose(
          constructor(target).log_prob(actions)
          - constructor(behaviour).log_prob(actions), found.log_rhos,
          rtol=1e-4, atol=1e-4)
      self.assertEqual(found.vs.shape, [_T, _B])


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='networks/distributions',
        catches='KLTest.test_categorical',
        rows=(
            ('KL of logits',
             'tf.nn.log_softmax(self._logits) - '
             'tf.nn.log_softmax(other._logits)',
             'self._logits - other._logits'),
        )),
    dict(
        file='networks/distributions',
        catches='KLTest.test_normal',
        rows=(
            ('no shift in the KL',
             '+ tf.square(shift) - 1',
             '- 1'),
            ('ratio in the KL upside down',
             'ratio = self.scale / other.scale',
             'ratio = other.scale / self.scale'),
            ('shift by the other deviation',
             'shift = (self.loc - other.loc) / other.scale',
             'shift = (self.loc - other.loc) / self.scale'),
        )),
    dict(file='networks/distributions',
         catches='test_gradients_of_samples', rows=(
        ('correction left out in samples',
         'self._normal.log_prob(u) - log_slope', 'self._normal.log_prob(u)'),
    )),
    dict(file='networks/distributions',
         catches='test_sample_and_log_prob_at_the_bounds', rows=(
        ('sign of the correction', 'self._normal.log_prob(u) - log_slope',
         'self._normal.log_prob(u) + log_slope'),
    )),
    dict(file='networks/distributions',
         catches='test_densities_integrate_to_one', rows=(
        ('correction without its 2', 'tf.nn.softplus(-2.0 * u))',
         'tf.nn.softplus(-u))'),
    )),
    dict(file='networks/distributions', catches='test_known_numbers', rows=(
        ('noise ignored', '    if noise is None:\n',
         '    if True:\n'),
    )),
    dict(file='networks/distributions', catches='test_many_samples', rows=(
        ('one noise for all samples',
         'tf.concat([[num_samples], shape], axis=0)',
         'tf.concat([[num_samples], tf.ones_like(shape)], axis=0)'),
    )),
    dict(file='networks/distributions',
         catches='test_log_scale_is_clipped', rows=(
        ('log_std not clipped',
         'tf.clip_by_value(log_scale, *LOG_SCALE_BOUNDS)',
         'log_scale'),
    )),
    dict(file='networks/distributions',
         catches='CategoricalTest.test_samples', rows=(
        ('Gumbel noise with the wrong sign', 'noise = -tf.math.log(-tf',
         'noise = tf.math.log(-tf'),
    )),
    dict(file='networks/distributions', catches='test_tails', rows=(
        ('erfc by its leading term', 'range(1, 21)', 'range(1, 1)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
