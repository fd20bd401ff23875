# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the losses of DDQN, DDPG, TD3 and SAC.

Known numbers are those of two transitions, computed independently. The second
one ends its episode.
"""

import math

from absl.testing import parameterized
import numpy as np
from scalable_agent.learning import optimizers
from scalable_agent.losses import q_learning
from scalable_agent.networks import distributions
import tensorflow as tf

_B, _A, _C, _N = 5, 4, 3, 2
_REWARDS, _DISCOUNTS = np.float32([1, -1]), np.float32([.9, 0])
_WEIGHTS = np.float32([1, .5])
# Two critics, their targets, and the log-probabilities of SAC.
_Q = np.float32([[1, 2], [1.5, 1]])
_Q_T = np.float32([[3, 4], [2.5, 5]])
_LOG_PROBS = np.float32([-.5, -1.2])
# The same for discrete actions.
_ACTIONS = np.int32([1, 0])
_DISCRETE_Q = np.float32([[[1, 2], [.5, -.5]], [[1.5, 1], [0, 0]]])
_DISCRETE_Q_T = np.float32([[[3, 1], [0, 4]], [[2, 2], [1, 3]]])
_LOGITS = np.float32([[0, 1], [2, 0]])


def _random(seed, *shape):
  return np.random.RandomState(seed).normal(size=shape)


def _weights(seed):
  return np.random.RandomState(seed).uniform(.2, 1, _B)


def _softmax(logits):
  return np.exp(logits) / np.sum(np.exp(logits), -1, keepdims=True)


def _numerical_gradient(function, x, h=1e-6):
  gradient = np.zeros_like(x)
  for index in np.ndindex(*x.shape):
    step = np.zeros_like(x)
    step[index] = h
    gradient[index] = (function(x + step) - function(x - step)) / (2 * h)
  return gradient


def _gradients(function, **inputs):
  """Returns the gradient with respect to each input, None where none flows."""
  inputs = {k: tf.Variable(v) for k, v in inputs.items()}
  with tf.GradientTape() as tape:
    result = function(**inputs)
  return tape.gradient(result, inputs)


class _TestCase(tf.test.TestCase, parameterized.TestCase):

  def _assert_close(self, expected, found, dtype=tf.float64):
    self.assertEqual(found.dtype, dtype)
    tolerance = 1e-12 if dtype == tf.float64 else 1e-5
    self.assertAllClose(expected, found, rtol=tolerance, atol=tolerance)

  def _assert_gradients(self, function, expected, **inputs):
    """Checks gradients in float64; those not expected must be None."""
    found = _gradients(function, **inputs)
    self.assertEqual({k for k, g in found.items() if g is not None},
                     set(expected))
    for name, gradient in expected.items():
      self.assertAllClose(gradient, found[name], rtol=1e-7, atol=1e-7)


class ValuesTest(_TestCase):

  def test_chosen_values(self):
    q, actions = _random(0, _C, _B, _A), np.random.RandomState(1).randint(
        _A, size=_B)
    expected = [[q[c, b, actions[b]] for b in range(_B)] for c in range(_C)]
    self._assert_close(expected, q_learning.chosen_values(q, actions))
    self._assert_close(expected[0], q_learning.chosen_values(q[0], actions))
    one_hot = np.broadcast_to(np.eye(_A)[actions], q.shape)
    self._assert_gradients(
        lambda q: q_learning.chosen_values(q, actions), dict(q=one_hot), q=q)

  def test_other_actions_do_not_count(self):
    q = np.float32([[np.nan, 2, np.inf]])
    self.assertAllEqual([2], q_learning.chosen_values(q, [1]))

  def test_actions_that_do_not_exist_have_no_value(self):
    q = np.float32([[1, 2, 3]] * 4)
    self.assertAllEqual([np.nan, 1, 3, np.nan],
                        q_learning.chosen_values(q, [-1, 0, 2, 3]))

  def test_greedy_values(self):
    q, selector = _random(2, _B, _A), _random(3, _B, _A)
    self._assert_close([max(row) for row in q], q_learning.greedy_values(q, q))
    expected = [q[b, list(selector[b]).index(max(selector[b]))]
                for b in range(_B)]
    self._assert_close(expected, q_learning.greedy_values(q, selector))
    self.assertNotAllClose([max(row) for row in q], expected)

  def test_smallest(self):
    q = _random(4, _C, _B, _A)
    self._assert_close(
        [[min(q[:, b, a]) for a in range(_A)] for b in range(_B)],
        q_learning.smallest(q))
    self.assertAllEqual(np.min(q, 0), q_learning.smallest(list(q)))

  def test_expected_values(self):
    q, logits = _random(5, _B, _A), _random(6, _B, _A)
    p = _softmax(logits)
    self._assert_close(
        [sum(p[b, a] * q[b, a] for a in range(_A)) for b in range(_B)],
        q_learning.expected_values(q, logits))

  def test_soft_values(self):
    q, log_probs = _random(7, _B), _random(8, _B)
    self._assert_close([q[b] - .3 * log_probs[b] for b in range(_B)],
                       q_learning.soft_values(q, log_probs, .3))

  def test_expected_soft_values(self):
    q, logits = _random(9, _B, _A), _random(10, _B, _A)
    p = _softmax(logits)
    self._assert_close(
        [sum(p[b, a] * (q[b, a] - .3 * math.log(p[b, a])) for a in range(_A))
         for b in range(_B)], q_learning.expected_soft_values(q, logits, .3))

  def test_impossible_actions_do_not_count(self):
    logits = np.float32([[0, -1e4]])
    self.assertAllEqual([0], q_learning.negative_entropy(logits))
    self.assertAllEqual([2], q_learning.expected_soft_values(
        np.float32([[2, 3]]), logits, 1.))

  def test_negative_entropy(self):
    logits = _random(11, _B, _A)
    p = _softmax(logits)
    self._assert_close(
        [sum(p[b, a] * math.log(p[b, a]) for a in range(_A))
         for b in range(_B)], q_learning.negative_entropy(logits))
    self._assert_close([-.582203, -.365334],
                       q_learning.negative_entropy(_LOGITS), tf.float32)


class ShapesTest(_TestCase):

  def test_nothing_is_broadcast(self):
    q = tf.zeros([4, 3])
    for call in (
        lambda: q_learning.chosen_values(q, tf.zeros([1], tf.int32)),
        lambda: q_learning.chosen_values(q[None], tf.zeros([1], tf.int32)),
        lambda: q_learning.greedy_values(q, q[:1]),
        lambda: q_learning.expected_values(q, q[:1]),
        lambda: q_learning.incremental_update(q, q[:1], 0.5)):
      with self.assertRaisesRegex(ValueError, 'must be'):
        call()


class TargetsTest(_TestCase):

  @parameterized.parameters(np.float32, np.float64)
  def test_formula(self, dtype):
    rewards, values = _random(0, 2, _B).astype(dtype)
    discounts = np.array([.9, .81, 0, .5, 1], dtype)
    self._assert_close(
        [rewards[b] + discounts[b] * values[b] for b in range(_B)],
        q_learning.td_targets(rewards, discounts, values), dtype)

  def test_no_gradient(self):
    self._assert_gradients(
        q_learning.td_targets, {}, rewards=_REWARDS, discounts=_DISCOUNTS,
        values_t=_Q_T[0])

  def test_nothing_passes_a_discount_of_zero(self):
    self.assertAllEqual(
        [-1, 2], q_learning.td_targets(
            np.float32([-1, 2]), np.zeros(2, np.float32),
            np.float32([np.nan, np.inf])))

  @parameterized.parameters('rewards', 'discounts', 'values_t')
  def test_nothing_is_broadcast(self, name):
    arguments = dict(rewards=_REWARDS, discounts=_DISCOUNTS, values_t=_Q_T[0])
    arguments[name] = arguments[name][:, None]
    with self.assertRaisesRegex(ValueError, r'Shape .* must be \(2,'):
      q_learning.td_targets(**arguments)

  def test_known_targets(self):
    targets = lambda values: q_learning.td_targets(_REWARDS, _DISCOUNTS, values)
    q_t = np.float32([[3, 1], [0, 4]])
    online = np.float32([[.2, .7], [2, 1]])
    smallest = q_learning.smallest(_Q_T)
    for expected, values in (
        ([3.7, -1], q_learning.greedy_values(q_t, q_t)),
        ([1.9, -1], q_learning.greedy_values(q_t, online)),
        ([3.7, -1], _Q_T[0]),
        ([3.25, -1], smallest),
        ([3.34, -1], q_learning.soft_values(smallest, _LOG_PROBS, .2)),
        ([2.8, -1], q_learning.expected_values(
            q_t, np.float32([[0, 0], [1, 0]])))):
      self.assertAllClose(expected, targets(values))
    # An episode that was truncated goes on.
    self.assertAllClose([3.34, 2.816], q_learning.td_targets(
        _REWARDS, np.float32([.9, .9]),
        q_learning.soft_values(smallest, _LOG_PROBS, .2)))
    # The mean of the critics instead of the minimum.
    self.assertAllClose(2.6968438, targets(q_learning.expected_soft_values(
        np.mean(_DISCRETE_Q_T, 0), _LOGITS, .2))[0])

  def test_known_smoothing(self):
    self.assertAllClose(
        [[1, -.5]], q_learning.smoothed_actions(
            np.float32([[.9, -.4]]), np.float32([[.7, -.1]]), .5))

  def test_smoothing(self):
    actions, noise = np.tanh(_random(1, _B, _N)), .5 * _random(2, _B, _N)
    expected = np.zeros([_B, _N])
    for index in np.ndindex(_B, _N):
      clipped = max(-.3, min(.3, noise[index]))
      expected[index] = max(-1, min(1, actions[index] + clipped))
    self.assertTrue(np.any(np.abs(noise) > .3))
    self.assertTrue(np.any(np.abs(expected) == 1))
    self._assert_close(
        expected, q_learning.smoothed_actions(actions, noise, .3))

  @parameterized.parameters([[]], [[_N]], [[_B, 1]])
  def test_noise_is_of_each_element(self, shape):
    with self.assertRaisesRegex(ValueError, r'noise: Shape .* must be \(5,'):
      q_learning.smoothed_actions(tf.zeros([_B, _N]), tf.zeros(shape), .5)


class RescalingTest(_TestCase):

  def test_known_numbers(self):
    self.assertAllClose(
        q_learning.rescaled(tf.constant([.01, 1, 10, 100, 1000, -10])),
        [.0049976, .4152136, 2.3266248, 9.1498756, 31.638584, -2.3266248],
        rtol=1e-4)
    self.assertAllClose(
        q_learning.not_rescaled(tf.constant([-2, .5, 3, 30])),
        [-7.9523491, 1.2462628, 14.8811721, 904.7255445], rtol=1e-6)

  def test_known_targets(self):
    values = q_learning.not_rescaled(tf.constant([2., -1., .5]))
    self.assertAllClose(
        q_learning.rescaled(q_learning.td_targets(
            tf.constant([5.23, 1., -3.]), tf.constant([0., .729, .81]),
            values)),
        [1.5012268, -.4770825, -.7313046], rtol=1e-6)

  def test_small_and_large_values_come_back_in_float32(self):
    values = tf.constant([1e-3, -.01, 1, -100, 1e6])
    self.assertAllClose(
        q_learning.not_rescaled(q_learning.rescaled(values)), values,
        rtol=1e-4, atol=3e-7)


class CriticLossTest(_TestCase):

  @parameterized.product(
      weights=(None, _weights(0)), huber=(None, .7), num_critics=(1, _C),
      dtype=(np.float32, np.float64))
  def test_formula(self, weights, huber, num_critics, dtype):
    q, y = _random(1, num_critics, _B), _random(2, _B)

    def loss(q):
      total = 0
      for c, b in np.ndindex(*q.shape):
        size = abs(q[c, b] - y[b])
        cost = .5 * size ** 2
        if huber and size > huber:
          cost = huber * (size - .5 * huber)
        total += cost * (1 if weights is None else weights[b]) / _B
      return total

    sizes = np.abs(q - y)
    self.assertTrue(np.any(sizes < .7) and np.any(sizes > .7))
    cast = lambda x: None if x is None else x.astype(dtype)
    self._assert_close(
        loss(q), q_learning.critic_loss(cast(q), cast(y), cast(weights), huber),
        dtype)
    if dtype == np.float64:
      inputs = dict(q_values=q, targets=y)
      if weights is not None:
        inputs['importance_weights'] = weights
      self._assert_gradients(
          lambda **x: q_learning.critic_loss(**x, huber=huber),
          dict(q_values=_numerical_gradient(loss, q)), **inputs)

  def test_no_error_has_no_gradient(self):
    for huber in (None, 1.):
      gradients = _gradients(
          lambda q, h=huber: q_learning.critic_loss(q, _REWARDS, huber=h),
          q=_REWARDS[None])
      self.assertAllEqual([[0, 0]], gradients['q'])

  def test_known_losses(self):
    chosen = q_learning.chosen_values(_DISCRETE_Q[:1], _ACTIONS)
    y = np.float32([3.7, -1])
    # Twice, as the mean of squares without a half is 2.57.
    self.assertAllClose(2.57, 2 * q_learning.critic_loss(chosen, y))
    self.assertAllClose([1.7, 1.5], q_learning.mean_errors(chosen, y))
    y = np.float32([1 + .729 * 3, -1])
    self.assertAllClose(1.8294845, 2 * q_learning.critic_loss(chosen, y))
    self.assertAllClose([1.187, 1.5], q_learning.mean_errors(chosen, y))
    y = np.float32([1.9, -1])
    self.assertAllClose(1.13, 2 * q_learning.critic_loss(chosen, y))
    self.assertAllClose([.1, 1.5], q_learning.mean_errors(chosen, y))
    self.assertAllClose(.5025, q_learning.critic_loss(chosen, y, huber=1.))
    self.assertAllClose(.6545191, 2 * q_learning.critic_loss(
        chosen, y, np.float32([1, .57735])))
    y = np.float32([2.8, -1])
    self.assertAllClose(.7225, q_learning.critic_loss(chosen, y))
    self.assertAllClose([.8, 1.5], q_learning.mean_errors(chosen, y))

  def test_known_losses_of_ddpg(self):
    y = np.float32([3.7, -1])
    self.assertAllClose(4.0725, q_learning.critic_loss(_Q[:1], y))
    self.assertAllClose([2.7, 3], q_learning.mean_errors(_Q[:1], y))
    y = np.float32([1 + .81 * 3, -1])
    self.assertAllClose(2.601225, q_learning.critic_loss(_Q[:1], y, _WEIGHTS))

  def test_known_losses_of_two_critics(self):
    y = np.float32([3.25, -1])
    self.assertAllClose(7.03125, 2 * q_learning.critic_loss(_Q[:1], y))
    self.assertAllClose(3.53125, 2 * q_learning.critic_loss(_Q[1:], y))
    self.assertAllClose(5.28125, q_learning.critic_loss(_Q, y))
    self.assertAllClose([2.25, 2], q_learning.mean_errors(
        q_learning.smallest(_Q)[tf.newaxis], y))
    y = np.float32([3.34, -1])
    self.assertAllClose(7.2378, 2 * q_learning.critic_loss(_Q[:1], y))
    self.assertAllClose(3.6928, 2 * q_learning.critic_loss(_Q[1:], y))
    self.assertAllClose(5.4653, q_learning.critic_loss(_Q, y))
    self.assertAllClose([2.09, 2.5], q_learning.mean_errors(_Q, y))

  def test_known_losses_of_discrete_sac(self):
    y = q_learning.td_targets(
        _REWARDS, _DISCOUNTS, q_learning.expected_soft_values(
            q_learning.smallest(_DISCRETE_Q_T), _LOGITS, .2))
    chosen = q_learning.chosen_values(_DISCRETE_Q, _ACTIONS)
    self.assertAllClose(1.155466, 2 * q_learning.critic_loss(chosen[:1], y))
    self.assertAllClose(1.277310, 2 * q_learning.critic_loss(chosen[1:], y))
    self.assertAllClose(1.216388, q_learning.critic_loss(chosen, y))
    self.assertAllClose([.746844, 1.25], q_learning.mean_errors(chosen, y))

  def test_errors(self):
    q, y = _random(3, _C, _B), _random(4, _B)
    self._assert_close(
        [abs(min(q[:, b]) - y[b]) for b in range(_B)],
        q_learning.mean_errors(q_learning.smallest(q)[tf.newaxis], y))
    self._assert_close(
        [sum(abs(q[c, b] - y[b]) for c in range(_C)) / _C for b in range(_B)],
        q_learning.mean_errors(q, y))

  @parameterized.parameters(
      ('targets', [_B, 1]), ('targets', [_C, _B]),
      ('importance_weights', [_B, 1]), ('importance_weights', []))
  def test_nothing_is_broadcast(self, name, shape):
    arguments = dict(q_values=tf.zeros([_C, _B]), targets=tf.zeros([_B]))
    arguments[name] = tf.zeros(shape)
    with self.assertRaisesRegex(ValueError, f'{name}: Shape .* must be'):
      q_learning.critic_loss(**arguments)
    if name == 'targets':
      with self.assertRaisesRegex(ValueError, 'targets: Shape .* must be'):
        q_learning.mean_errors(**arguments)


class PolicyLossTest(_TestCase):

  @parameterized.parameters((None,), (_weights(1),))
  def test_deterministic(self, weights):
    q = _random(5, _B)
    w = np.ones(_B) if weights is None else weights
    self._assert_close(-sum(w[b] * q[b] for b in range(_B)) / _B,
                       q_learning.deterministic_policy_loss(q, weights))
    self._assert_gradients(
        lambda q: q_learning.deterministic_policy_loss(q, weights),
        dict(q=-w / _B), q=q)

  def test_known_deterministic(self):
    self.assertAllClose(-1.5, q_learning.deterministic_policy_loss(_Q[0]))
    self.assertAllClose(
        -1, q_learning.deterministic_policy_loss(_Q[0], _WEIGHTS))

  @parameterized.parameters((None,), (_weights(2),))
  def test_soft(self, weights):
    q, log_probs = _random(6, 2, _B)
    w = np.ones(_B) if weights is None else weights
    self._assert_close(
        sum(w[b] * (.3 * log_probs[b] - q[b]) for b in range(_B)) / _B,
        q_learning.soft_policy_loss(q, log_probs, .3, weights))
    self._assert_gradients(
        lambda **x: q_learning.soft_policy_loss(
            **x, importance_weights=weights),
        dict(q_values=-w / _B, log_probs=.3 * w / _B), q_values=q,
        log_probs=log_probs, temperature=np.float64(.3))

  @parameterized.parameters((None,), (_weights(3),))
  def test_expected_soft(self, weights):
    q, logits = _random(7, 2, _B, _A)
    w = np.ones(_B) if weights is None else weights

    def loss(logits):
      p = _softmax(logits)
      return sum(w[b] * p[b, a] * (.3 * math.log(p[b, a]) - q[b, a])
                 for b, a in np.ndindex(_B, _A)) / _B

    self._assert_close(
        loss(logits),
        q_learning.expected_soft_policy_loss(q, logits, .3, weights))
    self._assert_gradients(
        lambda **x: q_learning.expected_soft_policy_loss(
            **x, importance_weights=weights),
        dict(logits=_numerical_gradient(loss, logits)), q_values=q,
        logits=logits, temperature=np.float64(.3))

  def test_known_soft(self):
    self.assertAllClose(-1.17, q_learning.soft_policy_loss(
        q_learning.smallest(_Q), _LOG_PROBS, .2))
    smallest = q_learning.smallest(_DISCRETE_Q)
    loss = lambda logits: q_learning.expected_soft_policy_loss(
        smallest, logits, .2)
    self.assertAllClose(-.564953, loss(_LOGITS))
    self.assertAllClose(
        [[-.01966119, .01966119], [-.00524968, .00524968]],
        _gradients(loss, logits=_LOGITS)['logits'])

  def test_gradient_of_a_sample(self):
    # The whole chain with a quadratic critic, in units of its own.
    params, noise = .5 * _random(8, _B, 2 * _N), _random(9, _B, _N)
    best = np.tanh(_random(10, _B, _N))

    def loss(params):
      mean, log_std = params[:, :_N], params[:, _N:]
      u = mean + np.exp(log_std) * noise
      log_density = (-.5 * noise ** 2 - log_std - .5 * np.log(2 * np.pi)
                     - np.log(1 - np.tanh(u) ** 2))
      q = -np.sum((np.tanh(u) - best) ** 2, -1)
      return np.mean(.3 * np.sum(log_density, -1) - q)

    def ours(params):
      actions, log_probs = distributions.tanh_normal(
          params).sample_and_log_prob(noise=noise)
      q = -tf.reduce_sum(tf.square(actions - best), -1)
      return q_learning.soft_policy_loss(q, log_probs, .3)

    self._assert_close(loss(params), ours(params))
    self._assert_gradients(
        ours, dict(params=_numerical_gradient(loss, params)), params=params)


class TemperatureTest(_TestCase):

  @parameterized.parameters((None,), (_weights(4),))
  def test_formula(self, weights):
    log_probs = _random(11, _B)
    w = np.ones(_B) if weights is None else weights
    slope = -sum(w[b] * (log_probs[b] - 1.5) for b in range(_B)) / _B
    self._assert_close(.7 * slope, q_learning.temperature_loss(
        tf.constant(.7, tf.float64), log_probs, -1.5, weights))
    self._assert_gradients(
        lambda **x: q_learning.temperature_loss(
            **x, target_entropy=-1.5, importance_weights=weights),
        dict(log_temperature=slope), log_temperature=np.float64(.7),
        log_probs=log_probs)

  def test_known_numbers(self):
    x = tf.Variable(math.log(.2))
    optimizer = optimizers.Adam(3e-4, epsilon=1e-8)
    with tf.GradientTape() as tape:
      loss = q_learning.temperature_loss(x, _LOG_PROBS, -2.0)
    gradient = tape.gradient(loss, x)
    self.assertAllClose(-4.586898, loss)
    self.assertAllClose(2.85, gradient)
    optimizer.apply([gradient], [x])
    self.assertAllClose(-1.6097379, x, rtol=0, atol=2e-7)

  def test_known_numbers_of_discrete_actions(self):
    target = q_learning.discrete_target_entropy(2)
    self.assertAllClose(.679284, target)
    self.assertAllClose(.7 * math.log(6),
                        q_learning.discrete_target_entropy(6, .7))
    self.assertAllClose(.330765, q_learning.temperature_loss(
        math.log(.2), q_learning.negative_entropy(_LOGITS), target))


class TargetNetworkTest(_TestCase):

  @parameterized.parameters(np.float32, np.float64)
  def test_known_numbers(self, dtype):
    value, found = tf.zeros([2], dtype), []
    for _ in range(10):
      value = q_learning.incremental_update(
          value, tf.constant([1, 2], dtype), .005)
      found.append(value[0])
    self.assertEqual(value.dtype, dtype)
    self.assertAllClose([.005, .009975, .0488899],
                        [found[0], found[1], found[9]], rtol=1e-6)
    self.assertAllClose(2 * .0488899, value[1])

  def test_copies_are_exact(self):
    target, online = _random(12, 2, 100).astype(np.float32)
    self.assertAllEqual(
        online, q_learning.incremental_update(target, online, 1.))
    self.assertAllEqual(
        target, q_learning.incremental_update(target, online, 0.))


# See `mutations.py`.
MUTATIONS = (
    dict(file='losses/q_learning',
         catches='test_known_numbers', rows=(
        ('rescaling without its linear term',
         '+ _RESCALING_EPSILON * values)',
         ')'),
        ('rescaling without a sign',
         'tf.sign(values) * (tf.sqrt(tf.abs(values) + 1) - 1)',
         '(tf.sqrt(tf.abs(values) + 1) - 1)'),
        ('inverse with the epsilon of another sign',
         'tf.abs(values) + 1 + _RESCALING_EPSILON',
         'tf.abs(values) + 1 - _RESCALING_EPSILON'),
        ('inverse without its square',
         '* (root - 1) * (root + 1)',
         '* (root - 1)'),
    )),
    dict(file='losses/q_learning', catches='CriticLossTest.test_formula', rows=(
        ('weights for targets',
         'sizes = tf.abs(q_values - tf.stop_gradient(targets))',
         'sizes = tf.abs(q_values - tf.stop_gradient(\n'
         '      targets if importance_weights is None else targets * '
         'importance_weights))'),
        ('gradient of the loss through targets',
         'tf.abs(q_values - tf.stop_gradient(targets))',
         'tf.abs(q_values - targets)'),
        ('Huber slope left out',
         'sizes if huber is None else tf.minimum(sizes, huber)', 'sizes'),
        ('Huber slope always 1', 'tf.minimum(sizes, huber)',
         'tf.minimum(sizes, tf.ones_like(sizes))'),
        ('Huber not continuous', 'slopes * (sizes - 0.5 * slopes)',
         'slopes * (sizes - 0.5 * sizes)'),
        ('squares without a half', 'slopes * (sizes - 0.5 * slopes)',
         'slopes * (2 * sizes - slopes)'),
        ('mean over critics',
         'tf.reduce_sum(losses, axis=0), importance_weights',
         'tf.reduce_mean(losses, axis=0), importance_weights'),
        ('weights left out', 'tf.stop_gradient(importance_weights) * losses',
         'losses'),
        ('weights squared', 'tf.stop_gradient(importance_weights) * losses',
         'tf.stop_gradient(importance_weights) ** 2 * losses'),
        ('divided by the sum of weights',
         'tf.reduce_mean(tf.stop_gradient(importance_weights) * losses)',
         'tf.reduce_sum(tf.stop_gradient(importance_weights) * losses) / '
         'tf.reduce_sum(importance_weights)'),
        ('weights learn', 'tf.stop_gradient(importance_weights) * losses',
         'importance_weights * losses'),
        ('sum over the batch', '    return tf.reduce_mean(losses)',
         '    return tf.reduce_sum(losses)'),
    )),
    dict(file='losses/q_learning', catches='test_greedy_values', rows=(
        ('double Q: online net evaluates',
         'chosen_values(q_values_t, tf.argmax(',
         'chosen_values(selector_q_values_t, tf.argmax('),
        ('double Q: target net selects', 'tf.argmax(selector_q_values_t,',
         'tf.argmax(q_values_t,'),
        ('worst action instead of the best', 'tf.argmax(selector',
         'tf.argmin(selector'),
    )),
    dict(file='losses/q_learning',
         catches='test_actions_that_do_not_exist_have_no_value', rows=(
        ('values of actions that do not exist',
         'tf.where(exists, values, tf.constant(np.nan, values.dtype))',
         'values'),
    )),
    dict(file='losses/q_learning',
         catches='test_other_actions_do_not_count', rows=(
        ('values of other actions pass',
         'tf.where(is_chosen, q_values, tf.zeros_like(q_values))',
         'tf.cast(is_chosen, q_values.dtype) * q_values'),
    )),
    dict(file='losses/q_learning', catches='test_smallest', rows=(
        ('maximum of the critics', 'tf.reduce_min(q_values',
         'tf.reduce_max(q_values'),
        ('mean of the critics', 'tf.reduce_min(q_values',
         'tf.reduce_mean(q_values'),
        ('first critic only', 'tf.reduce_min(q_values, axis=0)',
         'tf.convert_to_tensor(q_values)[0]'),
        ('minimum over the batch', 'tf.reduce_min(q_values, axis=0)',
         'tf.reduce_min(q_values, axis=-1)'),
    )),
    dict(file='losses/q_learning', catches='test_expected_values', rows=(
        ('uniform policy in the expectation',
         'tf.nn.softmax(logits) * q_values',
         'tf.nn.softmax(0 * logits) * q_values'),
    )),
    dict(file='losses/q_learning', catches='test_soft_values', rows=(
        ('sign of alpha in the soft value',
         'q_values - temperature * log_probs',
         'q_values + temperature * log_probs'),
    )),
    dict(file='losses/q_learning',
         catches='test_known_losses_of_discrete_sac', rows=(
        ('sign of alpha in the discrete soft value',
         'q_values - temperature * tf.nn', 'q_values + temperature * tf.nn'),
    )),
    dict(file='losses/q_learning', catches='test_expected_soft_values', rows=(
        ('probability instead of its logarithm',
         'temperature * tf.nn.log_softmax(logits)',
         'temperature * tf.nn.softmax(logits)'),
    )),
    dict(file='losses/q_learning',
         catches='test_nothing_passes_a_discount_of_zero', rows=(
        ('discount also of the reward',
         'rewards + tf.math.multiply_no_nan(values_t, discounts)',
         'tf.math.multiply_no_nan(rewards + values_t, discounts)'),
        ('discount of the reward only',
         'rewards + tf.math.multiply_no_nan(values_t, discounts)',
         'rewards * discounts + values_t'),
        ('NaN passes a discount of zero',
         'tf.math.multiply_no_nan(values_t, discounts)',
         'values_t * discounts'),
    )),
    dict(file='losses/q_learning', catches='test_no_gradient', rows=(
        ('gradient through the targets',
         '  return tf.stop_gradient(\n'
         '      rewards +',
         '  return tf.identity(\n'
         '      rewards +'),
    )),
    dict(file='losses/q_learning',
         catches='ShapesTest.test_nothing_is_broadcast', rows=(
        ('shapes are broadcast', 'if not shape.is_compatible_with(wanted):',
         'if False:'),
    )),
    dict(file='losses/q_learning', catches='test_smoothing', rows=(
        ('smoothing noise not clipped',
         'tf.clip_by_value(noise, -noise_clip, noise_clip)', 'noise'),
        ('smoothing noise clipped above only',
         'tf.clip_by_value(noise, -noise_clip, noise_clip)',
         'tf.minimum(noise, tf.cast(noise_clip, noise.dtype))'),
    )),
    dict(file='losses/q_learning', catches='test_known_smoothing', rows=(
        ('smoothed action not clipped',
         'tf.clip_by_value(actions + noise, -1.0, 1.0)', 'actions + noise'),
    )),
    dict(file='losses/q_learning',
         catches='test_noise_is_of_each_element', rows=(
        ('one noise for all', "  check_shape('noise', noise, actions)\n",
         ''),
    )),
    dict(file='losses/q_learning', catches='test_errors', rows=(
        ('smallest error instead of mean error',
         'tf.reduce_mean(tf.abs(q_values - targets), axis=0)',
         'smallest(tf.abs(q_values - targets))'),
        ('error of the mean instead of mean error',
         'tf.reduce_mean(tf.abs(q_values - targets), axis=0)',
         'tf.abs(tf.reduce_mean(q_values, axis=0) - targets)'),
        ('signed errors', 'tf.abs(q_values - targets)', '(q_values - targets)'),
    )),
    dict(file='losses/q_learning', catches='test_deterministic', rows=(
        ('sign of the deterministic policy loss',
         'return -_mean(q_values, importance_weights)',
         'return _mean(q_values, importance_weights)'),
    )),
    dict(file='losses/q_learning', catches='test_expected_soft', rows=(
        ('alpha learns from the policy loss',
         'return tf.stop_gradient(tf.convert_to_tensor(number, '
         'dtype_hint=like.dtype))',
         'return tf.convert_to_tensor(number, dtype_hint=like.dtype)'),
        ('SAC-d: critics learn from the policy loss',
         'expected_soft_values(tf.stop_gradient(q_values), logits',
         'expected_soft_values(q_values, logits'),
        ('SAC-d: p without gradient', 'tf.nn.softmax(logits) * q_values, axis',
         'tf.stop_gradient(tf.nn.softmax(logits)) * q_values, axis'),
    )),
    dict(file='losses/q_learning', catches='test_gradient_of_a_sample', rows=(
        ('no gradient through Q to sampled actions',
         'soft_values(q_values, log_probs, _constant',
         'soft_values(tf.stop_gradient(q_values), log_probs, _constant'),
        ('no gradient through log-probs',
         'soft_values(q_values, log_probs, _constant',
         'soft_values(q_values, tf.stop_gradient(log_probs), _constant'),
    )),
    dict(file='losses/q_learning',
         catches='test_impossible_actions_do_not_count', rows=(
        ('log p without p',
         'return expected_values(tf.nn.log_softmax(logits), logits)',
         'return tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)'),
    )),
    dict(file='losses/q_learning',
         catches='TemperatureTest.test_formula', rows=(
        ('sign of the temperature loss',
         'return -_mean(log_temperature * excess',
         'return _mean(log_temperature * excess'),
        ('sign of the target entropy', 'log_probs + target_entropy)',
         'log_probs - target_entropy)'),
        ('policy learns from the temperature loss',
         'excess = tf.stop_gradient(log_probs + target_entropy)',
         'excess = log_probs + target_entropy'),
        ('alpha instead of log alpha', '_mean(log_temperature * excess',
         '_mean(tf.exp(log_temperature) * excess'),
    )),
    dict(file='losses/q_learning',
         catches='test_known_numbers_of_discrete_actions', rows=(
        ('.98 n instead of .98 log n', 'ratio * math.log(num_actions)',
         'ratio * num_actions'),
        ('ratio ignored', 'ratio * math.log(num_actions)',
         '0.98 * math.log(num_actions)'),
    )),
    dict(file='losses/q_learning', catches='test_copies_are_exact', rows=(
        ('tau and 1 - tau swapped', '(1 - rate) * target + rate * online',
         'rate * target + (1 - rate) * online'),
        ('target never updated', '(1 - rate) * target + rate * online',
         'target + 0 * rate * online'),
        ('copy not exact', '(1 - rate) * target + rate * online',
         'target + rate * (online - target)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
