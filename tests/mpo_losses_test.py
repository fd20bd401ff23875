# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the losses of MPO against formulae and known numbers."""

import functools
import math

from absl.testing import parameterized
import in_numpy
import numpy as np
from scalable_agent.losses import mpo
from scalable_agent.networks import distributions
import tensorflow as tf

_J, _B, _N = 6, 4, 3
# Two states with two discrete actions each; actions are the first axis.
_Q = np.float64([[3, 0], [1, 4]])
_TARGET_LOGITS = np.float64([[0, 0], [1, 0]])
_ONLINE_LOGITS = np.float64([[0, 1], [2, 0]])
# Three samples for each of two states, with two parts per action.
_SAMPLE_Q = np.float64([[1, 0], [2, 1], [0, 3]])
_SAMPLES = np.float64([[[.5, -.5], [1, 0]], [[-1, .2], [.3, -2]],
                       [[0, 1], [2, -1]]])


def _known_policies():
  target = distributions.Normal(tf.constant([[0, 0], [1, -1]], tf.float64),
                                tf.constant([[1, .5], [.5, 2]], tf.float64))
  online = distributions.Normal(
      tf.constant([[.1, -.2], [1.2, -.5]], tf.float64),
      tf.constant([[.8, .6], [.5, 1.5]], tf.float64))
  return online, target


def _log_priors(logits=_TARGET_LOGITS):
  return in_numpy.log_softmax(logits).T


def _random(seed, *shape):
  return np.random.RandomState(seed).normal(size=shape)


def _prior(seed, is_discrete):
  """Returns `[J, B]` probabilities, and what the functions take for them."""
  if not is_discrete:
    return np.full([_J, _B], 1 / _J), None
  log_priors = _log_priors(_random(seed, _B, _J))
  return np.exp(log_priors), log_priors


def _dual(q, temperature, epsilon, prior):
  total = 0
  for b in range(q.shape[1]):
    total += math.log(sum(prior[j, b] * math.exp(q[j, b] / temperature)
                          for j in range(len(q))))
  return temperature * (epsilon + total / q.shape[1])


def _gradients(function, **inputs):
  """Returns the gradients of all results, None where none flows."""
  inputs = {k: tf.Variable(v) for k, v in inputs.items()}
  with tf.GradientTape(persistent=True) as tape:
    results = function(**inputs)
  return [tape.gradient(x, inputs) for x in results]


class _TestCase(tf.test.TestCase, parameterized.TestCase):

  def _assert_close(self, expected, found, dtype=tf.float64):
    self.assertEqual(found.dtype, dtype)
    tolerance = 1e-12 if dtype == tf.float64 else 2e-6
    self.assertAllClose(expected, found, rtol=tolerance, atol=tolerance)

  def _assert_flows(self, function, *names, **inputs):
    """Checks which inputs get a gradient of each result."""
    self.assertEqual(
        [{k for k, g in gradients.items() if g is not None}
         for gradients in _gradients(function, **inputs)],
        [set(x.split()) for x in names])


@functools.cache
def _compiled_exact_temperature(jit_compile):
  """Returns the function, traced once for all cases with the same types."""
  return tf.function(mpo.exact_temperature, jit_compile=jit_compile)


class EStepTest(_TestCase):

  @parameterized.product(
      is_discrete=(False, True), dtype=(np.float32, np.float64))
  def test_weights(self, is_discrete, dtype):
    q = _random(0, _J, _B)
    prior, log_priors = _prior(1, is_discrete)
    expected = np.zeros([_J, _B])
    for j, b in np.ndindex(_J, _B):
      expected[j, b] = prior[j, b] * math.exp(q[j, b] / .4) / sum(
          prior[i, b] * math.exp(q[i, b] / .4) for i in range(_J))
    found = mpo.action_weights(
        q.astype(dtype), tf.constant(.4, dtype),
        log_priors if log_priors is None else log_priors.astype(dtype))
    self._assert_close(expected, found, dtype)

  @parameterized.product(
      is_discrete=(False, True), dtype=(np.float32, np.float64))
  def test_temperature_loss(self, is_discrete, dtype):
    q = _random(2, _J, _B)
    prior, log_priors = _prior(3, is_discrete)
    if log_priors is not None:
      log_priors = log_priors.astype(dtype)
    eta = tf.Variable(.4, dtype=dtype)
    with tf.GradientTape() as tape:
      found = mpo.temperature_loss(q.astype(dtype), eta, .1, log_priors)
    self._assert_close(_dual(q, .4, .1, prior), found, dtype)
    h = 1e-5
    self.assertAllClose(
        (_dual(q, .4 + h, .1, prior) - _dual(q, .4 - h, .1, prior)) / (2 * h),
        tape.gradient(found, eta), rtol=1e-4)

  def test_huge_values(self):
    q = np.float32([[3e4, 0], [0, -3e4]])
    self.assertAllEqual([[1, 1], [0, 0]], mpo.action_weights(q, .1))
    self.assertAllClose(1.5e4 + .1 * (.1 - math.log(2)),
                        mpo.temperature_loss(q, .1, .1))
    # It has no finite optimum above 0 while epsilon exceeds log(2).
    self.assertAllClose(1e-6, mpo.exact_temperature(q, .8), rtol=1e-4)
    self.assertAllInRange(mpo.exact_temperature(q, .1), 1e4, 1e5)

  def test_gradients(self):
    inputs = dict(q_values=_random(4, _J, _B), temperature=np.float64(.4),
                  log_priors=_prior(5, True)[1])
    self._assert_flows(lambda **x: [mpo.action_weights(**x)], '', **inputs)
    self._assert_flows(
        lambda **x: [mpo.temperature_loss(**x, epsilon=.1)],
        'temperature', **inputs)
    del inputs['temperature']
    self._assert_flows(
        lambda **x: [mpo.exact_temperature(**x, epsilon=.1)], '',
        **inputs)

  def test_known_numbers_of_discrete_actions(self):
    log_priors = _log_priors()
    self.assertAllClose(2.684553247269, mpo.temperature_loss(
        _Q, 1., .1, log_priors), rtol=1e-11)
    self.assertAllClose(3.053163131573, mpo.temperature_loss(
        _Q, .5, .1, log_priors), rtol=1e-11)
    eta = tf.Variable(1., dtype=tf.float64)
    with tf.GradientTape() as tape:
      loss = mpo.temperature_loss(_Q, eta, .1, log_priors)
    self.assertAllClose(-.6013921, tape.gradient(loss, eta))
    eta = mpo.exact_temperature(_Q, .1, log_priors)
    self.assertAllClose(3.4785159, eta, rtol=1e-8)
    self.assertAllClose(
        2.2147242, mpo.temperature_loss(_Q, eta, .1, log_priors),
        rtol=1e-7)
    # The original leaves the prior out; these are its weights, at this eta.
    self.assertAllClose([[.639906, .240504], [.360094, .759496]],
                        mpo.action_weights(_Q, eta), atol=1e-6)
    found = mpo.action_weights(_Q, eta, log_priors)
    self.assertAllClose(
        [[.639906, .462591], [.360094, .537409]], found, atol=1e-6)
    # The bound of the E-step is met.
    self.assertAllClose(.1, np.mean(np.sum(
        found * (np.log(found) - log_priors), 0)), rtol=1e-9)
    self.assertAllClose(1.0774570, mpo.policy_loss(
        found, _log_priors(_ONLINE_LOGITS)), rtol=1e-7)

  def test_known_numbers_of_samples(self):
    self.assertAllClose(2.979391788920, mpo.temperature_loss(
        _Q, 1., .1), rtol=1e-11)
    eta = mpo.exact_temperature(_Q, .1)
    self.assertAllClose(3.2863817, eta, rtol=1e-8)
    self.assertAllClose(
        2.690736, mpo.temperature_loss(_Q, eta, .1), rtol=1e-6)
    self.assertAllClose(
        [.1847614, .7709603, .0442783],
        mpo.action_weights(_SAMPLE_Q, .7)[:, 0], rtol=1e-6)
    self.assertAllClose(1.9160845, mpo.temperature_loss(
        _SAMPLE_Q, .7, .1), rtol=1e-7)

  @parameterized.product(
      scale=(1e-3, 1., 100.), epsilon=(.01, .1, .5), is_discrete=(False, True))
  def test_exact_temperature_is_the_minimum(self, scale, epsilon, is_discrete):
    q = scale * _random(6, _J, _B)
    prior, log_priors = _prior(7, is_discrete)
    eta = _compiled_exact_temperature(is_discrete)(
        q, tf.constant(epsilon, q.dtype), log_priors).numpy()
    value = _dual(q, eta, epsilon, prior)
    for factor in (.99, 1.01):
      self.assertLess(value, _dual(q, eta * factor, epsilon, prior))
    if log_priors is not None:
      log_priors = log_priors.astype(np.float32)
    self.assertAllClose(eta, _compiled_exact_temperature(False)(
        q.astype(np.float32), tf.constant(epsilon), log_priors), rtol=1e-3)

  def test_equal_values_have_no_temperature(self):
    self.assertAllClose(1e-6, mpo.exact_temperature(
        tf.ones([_J, _B]), .1), rtol=1e-4)

  @parameterized.parameters(np.float32, np.float64)
  def test_exact_temperature_of_huge_values(self, dtype):
    q = _random(6, _J, _B)
    eta = mpo.exact_temperature(q.astype(np.float64), .1)
    self.assertAllClose(
        1e9 * eta, mpo.exact_temperature((1e9 * q).astype(dtype), .1),
        rtol=1e-8 if dtype == np.float64 else 1e-3)

  @parameterized.parameters([[_J]], [[_B]], [[_B, _J]])
  def test_priors_of_wrong_shape(self, shape):
    with self.assertRaisesRegex(ValueError, r'log_priors: Shape .* must be'):
      mpo.action_weights(tf.zeros([_J, _B]), 1., tf.zeros(shape))


class MStepTest(_TestCase):

  def test_policy_loss(self):
    weights, log_probs = _random(8, 2, _J, _B)
    self._assert_close(
        -sum(weights[j, b] * log_probs[j, b]
             for j, b in np.ndindex(_J, _B)) / _B,
        mpo.policy_loss(weights, log_probs))
    self._assert_flows(lambda **x: [mpo.policy_loss(**x)], 'log_probs',
                       action_weights=weights, log_probs=log_probs)
    with self.assertRaisesRegex(ValueError, 'log_probs: Shape .* must be'):
      mpo.policy_loss(weights, log_probs[0])

  def test_known_policy_losses(self):
    weights = mpo.action_weights(_SAMPLE_Q, .7)
    policies = mpo.decoupled_policies(*_known_policies())
    self.assertAllClose(2.5994952, mpo.policy_loss(
        weights, policies.mean.log_prob(_SAMPLES)), rtol=1e-7)
    self.assertAllClose(2.6976840, mpo.policy_loss(
        weights, policies.scale.log_prob(_SAMPLES)), rtol=1e-7)

  def _gaussian_inputs(self, seed):
    names = 'loc', 'scale', 'target_loc', 'target_scale'
    return {name: np.exp(.5 * x) if 'scale' in name else x
            for name, x in zip(names, _random(seed, 4, _B, _N))}

  def test_decoupled(self):
    inputs = self._gaussian_inputs(9)
    actions = _random(10, _J, _B, _N)

    def log_probs(loc, scale, target_loc, target_scale):
      policies = mpo.decoupled_policies(
          distributions.Normal(loc, scale),
          distributions.Normal(target_loc, target_scale))
      return [policy.log_prob(actions) for policy in policies]

    for found, loc, scale in zip(
        log_probs(**inputs), ('loc', 'target_loc'), ('target_scale', 'scale')):
      z = (actions - inputs[loc]) / inputs[scale]
      self._assert_close(
          np.sum(-.5 * z ** 2 - np.log(inputs[scale])
                 - .5 * np.log(2 * np.pi), -1), found)
    self._assert_flows(log_probs, 'loc', 'scale', **inputs)

  def test_gaussian_kls(self):
    inputs = self._gaussian_inputs(11)

    def kls(loc, scale, target_loc, target_scale):
      return mpo.gaussian_kls(
          distributions.Normal(loc, scale),
          distributions.Normal(target_loc, target_scale))

    x = np.linspace(-30, 30, 100001)
    expected = np.zeros([2, _B, _N])
    for index in np.ndindex(_B, _N):
      loc, scale, target_loc, target_scale = (
          v[index] for v in inputs.values())
      # The integral of p (log p - log q), p being the target's density.
      log_density = lambda m, s: (-.5 * ((x - m) / s) ** 2 - np.log(s)
                                  - .5 * np.log(2 * np.pi))
      log_p = log_density(target_loc, target_scale)
      for part, other in enumerate((log_density(loc, target_scale),
                                    log_density(target_loc, scale))):
        expected[part][index] = np.sum(
            np.exp(log_p) * (log_p - other)) * (x[1] - x[0])
    for part, found in zip(expected, kls(**inputs)):
      self.assertAllClose(part, found, rtol=1e-9)
    self._assert_flows(kls, 'loc', 'scale', **inputs)

  def test_known_gaussian_kls(self):
    mean_kls, scale_kls = mpo.gaussian_kls(*_known_policies())
    self.assertAllClose([.0425, .055625], np.mean(mean_kls, 0), rtol=1e-12)
    self.assertAllClose([.0290532, .0653753], np.mean(scale_kls, 0), atol=1e-7)
    # Variances of 0.5 and 0.25, means that differ by 1 and 2.
    target = distributions.Normal(tf.zeros([1, 2]), tf.fill([1, 2], .5))
    online = distributions.Normal(
        tf.constant([[1., 2.]]), tf.fill([1, 2], math.sqrt(.5)))
    self.assertAllClose([10, .193147], [
        np.sum(x) for x in mpo.gaussian_kls(online, target)])
    self.assertAllEqual(np.zeros([2, 1, 2]),
                        mpo.gaussian_kls(target, target))

  def test_categorical_kls(self):
    online, target = _random(12, 2, _B, _J)
    log_p, log_q = in_numpy.log_softmax(target), in_numpy.log_softmax(online)
    self._assert_close(
        [sum(math.exp(log_p[b, j]) * (log_p[b, j] - log_q[b, j])
             for j in range(_J)) for b in range(_B)],
        mpo.categorical_kls(online, target))
    self._assert_flows(
        lambda **x: [mpo.categorical_kls(**x)], 'online_logits',
        online_logits=online, target_logits=target)
    # The other direction has .0890374.
    self.assertAllClose(.1013611, np.mean(mpo.categorical_kls(
        _ONLINE_LOGITS, _TARGET_LOGITS)), rtol=1e-6)
    self.assertAllClose(.0890374, np.mean(mpo.categorical_kls(
        _TARGET_LOGITS, _ONLINE_LOGITS)), rtol=1e-6)

  @parameterized.parameters([[]], [[_N]])
  def test_kl_losses(self, shape):
    kls, alphas = _random(13, _B, *shape) ** 2, _random(14, *shape) ** 2
    means = np.zeros(shape)
    for b in range(_B):
      means += kls[b] / _B
    penalty, loss = mpo.kl_losses(kls, tf.constant(alphas), .01)
    self._assert_close(np.sum(alphas * means), penalty)
    self._assert_close(np.sum(alphas * (.01 - means)), loss)
    self._assert_flows(
        lambda **x: mpo.kl_losses(**x, epsilon=.01), 'kls',
        'multipliers', kls=kls, multipliers=alphas)
    gradients = _gradients(
        lambda **x: mpo.kl_losses(**x, epsilon=.01), kls=kls,
        multipliers=alphas)
    self.assertAllClose(
        np.broadcast_to(alphas / _B, kls.shape), gradients[0]['kls'])
    self.assertAllClose(.01 - means, gradients[1]['multipliers'])

  def test_known_kl_losses(self):
    mean_kls, scale_kls = mpo.gaussian_kls(*_known_policies())
    mean_penalty, mean_loss = mpo.kl_losses(
        mean_kls, np.float64([1, 2]), .0025)
    scale_penalty, scale_loss = mpo.kl_losses(
        scale_kls, np.float64([.5, .1]), 1e-6)
    self.assertAllClose(.1748141, mean_penalty + scale_penalty, rtol=1e-6)
    self.assertAllClose(-.14625, mean_loss, rtol=1e-9)
    self.assertAllClose(-.0210635, scale_loss, rtol=3e-6)

  def test_multipliers_of_wrong_shape(self):
    with self.assertRaisesRegex(ValueError, 'multipliers: Shape .* must be'):
      mpo.kl_losses(tf.zeros([_B, _N]), tf.zeros([]), .1)


  def test_policies_of_different_shapes(self):
    normal = distributions.Normal
    one, other = tf.ones([_B, _N]), tf.ones([1, _N])
    for call in (
        lambda: mpo.gaussian_kls(normal(other, one), normal(one, one)),
        lambda: mpo.gaussian_kls(normal(one, other), normal(one, one)),
        lambda: mpo.gaussian_kls(normal(one, one), normal(one, other)),
        lambda: mpo.categorical_kls(other, one)):
      with self.assertRaisesRegex(ValueError, 'Shape .* must be'):
        call()


class DualsTest(_TestCase):

  def test_out_of_bounds_costs(self):
    # The row of 0 and -1 is of the second state.
    self.assertAllEqual([[0, 0], [0, -1], [0, -1]],
                        mpo.out_of_bounds_costs(_SAMPLES))
    actions = 2 * _random(15, _J, _B, _N)
    expected = np.zeros([_J, _B])
    for j, b in np.ndindex(_J, _B):
      expected[j, b] = -math.sqrt(sum(
          max(0, abs(x) - 1) ** 2 for x in actions[j, b]))
    self._assert_close(expected, mpo.out_of_bounds_costs(actions))
    self._assert_flows(
        lambda **x: [mpo.out_of_bounds_costs(**x)], '', actions=actions)

  def test_duals(self):
    x = tf.Variable([-100., -18., -1., 0., 30.], dtype=tf.float64)
    projected = mpo.projected_dual(x)
    self.assertAllEqual([-18, -18, -1, 0, 30], projected)
    with tf.GradientTape() as tape:
      value = mpo.positive(x)
    self.assertAllClose([1e-8, 1e-8 + math.exp(-18), math.log1p(math.exp(-1)),
                         math.log(2), 30], value, rtol=1e-5, atol=0)
    self.assertAllClose(1 / (1 + np.exp(-x.numpy())), tape.gradient(value, x))

  def test_descent_ends_at_the_exact_temperature(self):
    dual = tf.Variable(0., dtype=tf.float64)
    for _ in range(300):
      with tf.GradientTape() as tape:
        loss = mpo.temperature_loss(
            _Q, mpo.positive(dual), .1, _log_priors())
      dual.assign(mpo.projected_dual(
          dual - 3. * tape.gradient(loss, dual)))
    self.assertAllClose(3.4785159, mpo.positive(dual), rtol=1e-3)


# See `mutations.py`.
MUTATIONS = (
    dict(file='losses/mpo',
         catches='test_exact_temperature_is_the_minimum', rows=(
        ('softmax over the batch',
         'log_priors), axis=0)\n'
         '\n'
         '\n'
         'def _log_priors',
         'log_priors), axis=1)\n'
         '\n'
         '\n'
         'def _log_priors'),
        ('bisection to the wrong side', '> epsilon', '< epsilon'),
        ('bisection without the prior',
         '* (log_weights - _log_priors(q_values, log_priors))',
         '* log_weights'),
        ('bisection not on the logarithm', 'tf.exp(0.5 * (low + high))',
         '0.5 * (tf.exp(low) + high)'),
    )),
    dict(file='losses/mpo', catches='test_temperature_loss', rows=(
        ('pi_t left out', 'return tf.stop_gradient(log_priors)',
         'return -tf.math.log(tf.cast(tf.shape(q_values)[0], q_values.dtype))'),
        ('1 / M left out',
         'return -tf.math.log(tf.cast(tf.shape(q_values)[0], q_values.dtype))',
         'return tf.zeros([], q_values.dtype)'),
        ('eps sign of the dual', 'temperature * (epsilon + tf',
         'temperature * (-epsilon + tf'),
        ('dual without eta in front', 'return temperature * (epsilon',
         'return (epsilon'),
        ('dual: logarithm of the mean over the batch',
         'epsilon + tf.reduce_mean(log_means)',
         'epsilon + tf.reduce_logsumexp(log_means)'),
    )),
    dict(file='losses/mpo', catches='test_weights', rows=(
        ('eta multiplies',
         '  return tf.nn.log_softmax(\n'
         '      q_values / temperature',
         '  return tf.nn.log_softmax(\n'
         '      q_values * temperature'),
    )),
    dict(file='losses/mpo', catches='test_gradients', rows=(
        ('gradient of eta through the weights', 'tf.exp(tf.stop_gradient(',
         'tf.exp(tf.identity('),
        ('dual: critic learns',
         '  q_values = tf.stop_gradient(q_values)\n'
         '  log_means',
         '  log_means'),
    )),
    dict(file='losses/mpo',
         catches='test_known_numbers_of_discrete_actions', rows=(
        ('too few bisections', 'step < num_steps', 'step < 20'),
    )),
    dict(file='losses/mpo', catches='test_known_policy_losses', rows=(
        ('mean over samples',
         'tf.reduce_mean(tf.reduce_sum(\n'
         '      tf.stop_gradient(action_weights)',
         'tf.reduce_mean(tf.reduce_mean(\n'
         '      tf.stop_gradient(action_weights)'),
        ('online std in the mean policy',
         'Normal(online.loc, tf.stop_gradient(target.scale))',
         'Normal(online.loc, online.scale)'),
        ('online mean in the std policy',
         'Normal(tf.stop_gradient(target.loc), online.scale)',
         'Normal(online.loc, online.scale)'),
    )),
    dict(file='losses/mpo', catches='test_policy_loss', rows=(
        ('sign of the policy loss', 'return -tf.reduce_mean(tf.reduce_sum(',
         'return tf.reduce_mean(tf.reduce_sum('),
        ('weights learn from the policy loss',
         'tf.stop_gradient(action_weights) * log_probs',
         'action_weights * log_probs'),
    )),
    dict(file='losses/mpo', catches='test_decoupled', rows=(
        ('target learns from the policy loss',
         'tf.stop_gradient(target.loc), online.scale)',
         'target.loc, online.scale)'),
    )),
    dict(file='losses/mpo', catches='test_gaussian_kls', rows=(
        ('online std in the mean term',
         'tf.stop_gradient(target.loc)) / target_scale)',
         'tf.stop_gradient(target.loc)) / online.scale)'),
        ('KL of the std the other way round',
         'ratios = target_scale / online.scale',
         'ratios = online.scale / target_scale'),
        ('KL of variances taken for stds', '0.5 * tf.square(ratios) - 0.5 - tf',
         '0.5 * ratios - 0.5 - tf'),
        ('determinant inverted', '- 0.5 - tf.math.log(ratios)',
         '- 0.5 + tf.math.log(ratios)'),
    )),
    dict(file='losses/mpo', catches='test_categorical_kls', rows=(
        ('categorical KL the other way round',
         '(tf.nn.log_softmax(target_logits) - '
         'tf.nn.log_softmax(online_logits))',
         '(tf.nn.log_softmax(online_logits) - '
         'tf.nn.log_softmax(target_logits))'),
        ('categorical KL under the online policy',
         'tf.nn.softmax(target_logits)\n', 'tf.nn.softmax(online_logits)\n'),
        ('KL: target learns',
         '  target_logits = tf.stop_gradient(target_logits)\n', ''),
    )),
    dict(file='losses/mpo', catches='test_kl_losses', rows=(
        ('KL bounded by the sum over the batch',
         'means = tf.reduce_mean(kls, axis=0)',
         'means = tf.reduce_sum(kls, axis=0)'),
        ('one mean over all dimensions', 'means = tf.reduce_mean(kls, axis=0)',
         'means = tf.reduce_mean(kls) + 0 * tf.reduce_mean(kls, axis=0)'),
        ('alpha learns from the penalty',
         'tf.stop_gradient(multipliers) * means', 'multipliers * means'),
        ('policy learns from the dual loss',
         'epsilon - tf.stop_gradient(means)', 'epsilon - means'),
        ('eps sign of the multipliers', 'multipliers * (epsilon - tf',
         'multipliers * (-epsilon - tf'),
        ('sign of the multipliers',
         'multipliers * (epsilon - tf.stop_gradient(means))',
         'multipliers * (tf.stop_gradient(means) - epsilon)'),
    )),
    dict(file='losses/mpo', catches='test_out_of_bounds_costs', rows=(
        ('sign of the cost', 'tf.stop_gradient(-tf.norm(',
         'tf.stop_gradient(tf.norm('),
        ('cost of actions inside',
         'outside = actions - tf.clip_by_value(actions, -1.0, 1.0)',
         'outside = actions'),
    )),
    dict(file='losses/mpo', catches='test_duals', rows=(
        ('dual without projection', 'tf.maximum(dual, _MIN_DUAL)',
         'tf.identity(dual)'),
        ('exp instead of softplus', 'tf.nn.softplus(dual)', 'tf.exp(dual)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
