# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares losses, optimizers and V-trace with rlax and optax, if installed.

  pip install rlax 'jax[cpu]' tfp-nightly

The last one because rlax needs a TensorFlow Probability as new as its JAX. It
replaces that of this project, so a virtual environment of its own is best.
"""

import os

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import numpy as np
import pytest

jax = pytest.importorskip('jax')
optax = pytest.importorskip('optax')
rlax = pytest.importorskip('rlax')

from absl.testing import parameterized
from scalable_agent import vtrace
from scalable_agent.learning import optimizers
from scalable_agent.losses import actor_critic
from scalable_agent.losses import mpo
from scalable_agent.losses import q_learning
from scalable_agent.networks import distributions
from scalable_agent.networks import pop_art
import tensorflow as tf

_T, _B, _A, _N, _M = 9, 6, 4, 3, 5


def _random(seed, *shape):
  return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def _value_and_gradients(function, *inputs):
  """Returns our loss and its gradients."""
  inputs = [tf.Variable(x) for x in inputs]
  with tf.GradientTape() as tape:
    loss = function(*inputs)
  return loss, tape.gradient(loss, inputs)


class RlaxParityTest(tf.test.TestCase, parameterized.TestCase):

  def _assert_same(self, theirs, ours, tolerance=1e-5):
    self.assertAllClose(
        jax.tree.map(np.asarray, theirs), ours, rtol=tolerance, atol=tolerance)

  @parameterized.parameters(False, True)
  def test_q_learning(self, is_double):
    q, q_t, selector = _random(0, 3, _B, _A)
    actions = np.random.RandomState(1).randint(_A, size=_B)
    rewards = _random(2, _B)
    discounts = np.float32([.9, 0, .81, .5, 0, 1])

    def loss(q, q_t):
      if is_double:
        errors = jax.vmap(rlax.double_q_learning)(
            q, actions, rewards, discounts, q_t, selector)
      else:
        errors = jax.vmap(rlax.q_learning)(q, actions, rewards, discounts, q_t)
      return .5 * (errors ** 2).mean(), errors

    (value, errors), gradient = jax.value_and_grad(loss, has_aux=True)(q, q_t)

    def targets(q_t):
      return q_learning.td_targets(
          rewards, discounts, q_learning.greedy_values(
              q_t, selector if is_double else q_t))

    found, gradients = _value_and_gradients(
        lambda q, q_t: q_learning.critic_loss(
            [q_learning.chosen_values(q, actions)], targets(q_t)), q, q_t)
    self._assert_same(value, found)
    self._assert_same(gradient, gradients[0])
    self.assertIsNone(gradients[1])
    self._assert_same(np.abs(errors), q_learning.mean_errors(
        [q_learning.chosen_values(q, actions)], targets(q_t)))

  def test_huber(self):
    q, y = 2 * _random(3, 2, _B)
    self._assert_same(optax.huber_loss(q, y, delta=.7).mean(),
                      q_learning.critic_loss([q], y, huber=.7))

  def test_deterministic_policy_gradient(self):
    actions, best = _random(4, 2, _B, _N)
    critic = lambda a, best: -((a - best) ** 2).sum(-1)
    slopes = jax.vmap(jax.grad(critic))(actions, best)
    # rlax has a loss for each part of an action.
    theirs = jax.grad(lambda a: jax.vmap(rlax.dpg_loss)(
        a, slopes).sum(-1).mean())(actions)
    _, gradients = _value_and_gradients(
        lambda a: q_learning.deterministic_policy_loss(
            -tf.reduce_sum(tf.square(a - best), -1)), actions)
    self._assert_same(theirs, gradients[0])

  def test_squashed_gaussian(self):
    distrax = pytest.importorskip('distrax')
    mean, log_std, noise = .5 * _random(5, 3, _B, _N)
    theirs = distrax.Transformed(
        distrax.MultivariateNormalDiag(mean, np.exp(log_std)),
        distrax.Block(distrax.Tanh(), ndims=1))
    policy = distributions.tanh_normal(np.concatenate([mean, log_std], -1))
    actions, log_probs = policy.sample_and_log_prob(noise=noise)
    self._assert_same(theirs.log_prob(actions.numpy()), log_probs, 1e-4)
    self._assert_same(theirs.log_prob(actions.numpy()),
                      policy.log_prob(actions), 1e-4)

  def test_mpo(self):
    q, log_probs = _random(6, 2, _M, _B)
    mean, target_mean, log_std, target_log_std = .5 * _random(7, 4, _B, _N)
    online = distributions.Normal(mean, np.exp(log_std))
    target = distributions.Normal(target_mean, np.exp(target_log_std))
    mean_kls, scale_kls = (
        x.numpy() for x in mpo.gaussian_kls(online, target))
    self._assert_same(
        rlax.multivariate_normal_kl_divergence(
            target_mean, np.exp(target_log_std), mean, np.exp(target_log_std)),
        np.sum(mean_kls, -1))
    self._assert_same(
        rlax.multivariate_normal_kl_divergence(
            target_mean, np.exp(target_log_std), target_mean, np.exp(log_std)),
        np.sum(scale_kls, -1))

    eta, alphas = np.float32(.7), np.float32([[1, 2, .3], [.5, .1, 4]])

    def loss(log_probs, eta, alphas, mean_kls, scale_kls):
      penalty = lambda i, epsilon: rlax.LagrangePenalty(
          alphas[i], np.float32(epsilon), per_dimension=True)
      per_example, outputs = rlax.mpo_loss(
          log_probs, q, rlax.LagrangePenalty(eta, np.float32(.1)),
          [(mean_kls, penalty(0, .0025)), (scale_kls, penalty(1, 1e-3))])
      return per_example.mean(), outputs

    def ours(log_probs, eta, alphas, mean_kls, scale_kls):
      mean_losses = mpo.kl_losses(mean_kls, alphas[0], .0025)
      scale_losses = mpo.kl_losses(scale_kls, alphas[1], 1e-3)
      return (
          mpo.policy_loss(mpo.action_weights(q, eta), log_probs)
          + mpo.temperature_loss(q, eta, .1)
          + tf.add_n(mean_losses) + tf.add_n(scale_losses))

    inputs = log_probs, eta, alphas, mean_kls, scale_kls
    (value, outputs), gradients = jax.value_and_grad(
        loss, argnums=range(5), has_aux=True)(*inputs)
    found, found_gradients = _value_and_gradients(ours, *inputs)
    self._assert_same(value, found)
    self._assert_same(outputs.normalized_weights, mpo.action_weights(q, eta))
    for theirs, gradient in zip(gradients, found_gradients):
      self._assert_same(theirs, tf.convert_to_tensor(gradient))

  @parameterized.parameters(1e-6, 1.)
  def test_optimizers(self, scale):
    for theirs, ours in (
        (optax.adam(5e-4), optimizers.Adam(5e-4, epsilon=1e-8)),
        (optax.rmsprop(5e-4, .99, 1e-8, eps_in_sqrt=False),
         optimizers.TorchRMSProp(5e-4, epsilon=1e-8))):
      value = _random(8, _N)
      variable = tf.Variable(value)
      state = theirs.init(value)
      for seed in range(5):
        gradient = scale * _random(seed, _N)
        ours.apply([tf.constant(gradient)], [variable])
        step, state = theirs.update(gradient, state)
        value = optax.apply_updates(value, step)
        self._assert_same(value, variable, 3e-7)

  def test_target_networks(self):
    target, online = _random(9, 2, _N)
    self._assert_same(optax.incremental_update(online, target, .005),
                      q_learning.incremental_update(target, online, .005))

  @parameterized.parameters(False, True)
  def test_vtrace_with_a_lambda_of_each_step(self, is_cut):
    log_rhos, rewards, values = _random(10, 3, _T, _B)
    rng = np.random.RandomState(11)
    lambda_ = rng.uniform(size=[_T, _B]).astype(np.float32)
    if is_cut:
      lambda_ = np.where(lambda_ < .3, 0, 1).astype(np.float32)
    discounts = np.where(
        rng.uniform(size=[_T, _B]) < .2, 0, .9).astype(np.float32)
    bootstrap = _random(12, _B)
    theirs = jax.vmap(
        rlax.vtrace_td_error_and_advantage, in_axes=1, out_axes=1)(
            values, np.concatenate([values[1:], bootstrap[None]]), rewards,
            discounts, np.exp(log_rhos), lambda_)
    ours = vtrace.from_importance_weights(
        log_rhos, discounts, rewards, values, bootstrap, lambda_=lambda_,
        mix_advantages=True)
    self._assert_same(theirs.errors, ours.vs - values)
    self._assert_same(theirs.pg_advantage, ours.pg_advantages)

  @parameterized.parameters(.1, .2, .4)
  def test_clipped_surrogate(self, limit):
    log_rhos, advantages = .4 * _random(13, _N), _random(14, _N)
    theirs = jax.value_and_grad(lambda log_rhos: (
        rlax.clipped_surrogate_pg_loss(jax.numpy.exp(log_rhos), advantages,
                                       limit)))(log_rhos)
    loss, [gradient] = _value_and_gradients(
        lambda log_rhos: actor_critic.compute_clipped_surrogate_loss(
            log_rhos, tf.constant(advantages), limit) / _N, log_rhos)
    self._assert_same(theirs, (loss, gradient), 1e-6)

  @parameterized.parameters(.0, .95, 1.)
  def test_generalised_advantages(self, lambda_):
    rewards, values = _random(15, 2, _T, _B)
    discounts = np.where(np.random.RandomState(16).uniform(
        size=[_T, _B]) < .2, 0, .9).astype(np.float32)
    bootstrap = _random(17, _B)
    theirs = jax.vmap(
        rlax.truncated_generalized_advantage_estimation,
        in_axes=(1, 1, None, 1), out_axes=1)(
            rewards, discounts, lambda_,
            np.concatenate([values, bootstrap[None]]))
    vs = vtrace.from_importance_weights(
        np.zeros([_T, _B], np.float32), discounts, rewards, values, bootstrap,
        lambda_=lambda_).vs
    self._assert_same(theirs, actor_critic.compute_advantages(
        *map(tf.constant, (rewards, discounts, values, bootstrap)), vs,
        lambda_), 1e-5)

  def test_pop_art(self):
    kernel, bias = _random(18, _N, 1), np.float32([.3])
    layer = tf.keras.layers.Dense(1)
    layer.build([None, _N])
    layer.set_weights([kernel, bias])
    ours = pop_art.PopArt(layer)
    ours.statistics.count.assign(10_000)  # The rate is constant.
    make_state, update = rlax.popart(1, 1e-2, 1e-4, 1e6)
    params, state = {'w': kernel, 'b': bias}, make_state()
    for target in 10 * _random(19, 50):
      params, state = update(
          params, state, np.float32([target]), np.array([0]))
      shift = np.float64(target) - float(ours.statistics.mean)
      ours.move(*[tf.constant(x, tf.float64) for x in (1e-2, shift, shift**2)])
      self._assert_same(
          [state.shift[0], state.scale[0], params['w'], params['b']],
          [ours.statistics.mean, ours.deviation, layer.kernel, layer.bias])

  def test_pop_art_of_levels(self):
    kernel, bias = _random(20, _N, 3), _random(21, 3)
    layer = tf.keras.layers.Dense(3)
    layer.build([None, _N])
    layer.set_weights([kernel, bias])
    ours = pop_art.PopArt(layer, ['a', 'b', 'c'])
    ours.statistics.count.assign([10_000] * 3)
    make_state, update = rlax.popart(3, 1e-2, 1e-4, 1e6)
    params, state = {'w': kernel, 'b': bias}, make_state()
    rng = np.random.RandomState(22)
    for target in 10 * _random(23, 50):
      level = rng.randint(3)
      target *= 10**level
      params, state = update(
          params, state, np.float32([target]), np.array([level]))
      count, first, second = ours.moments(
          tf.constant([[target]]), tf.constant([[level]]))
      ours.move(tf.constant(1e-2, tf.float64), first, second, count > 0)
      self._assert_same(
          [state.shift, state.scale, params['w'], params['b']],
          [ours.statistics.mean, ours.deviation, layer.kernel, layer.bias],
          1e-4)


if __name__ == '__main__':
  tf.test.main()
