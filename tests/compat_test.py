# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the interfaces of other libraries against numbers of theirs."""

import math
import re

from absl.testing import parameterized
import in_numpy
import numpy as np
import pytest
from scalable_agent import vtrace
from scalable_agent.compat import di_engine
from scalable_agent.compat import pytorch_seed_rl
from scalable_agent.learning import optimizers
from scalable_agent.networks import distributions
import tensorflow as tf

_T, _B, _N = 6, 3, 4
_BEHAVIOUR_LOGITS = np.array([[[0., 0.]], [[1., -1.]]])
_TARGET_LOGITS = np.array([[[1., 0.]], [[0., 2.]]])
_ACTIONS = np.array([[0], [1]])
_REWARDS = np.array([[1.], [-1.]])
_VALUES = np.array([[.2], [.4], [.6]])
_DATA = di_engine.vtrace_data(
    _TARGET_LOGITS, _BEHAVIOUR_LOGITS, _ACTIONS, _VALUES, _REWARDS, None)
_CONTINUOUS_DATA = di_engine.vtrace_data(
    dict(mu=np.array([[[0, 1]], [[.5, -.5]]]),
         sigma=np.array([[[1, .5]], [[.8, 1.2]]])),
    dict(mu=np.array([[[.1, .9]], [[0, 0]]]), sigma=np.ones([2, 1, 2])),
    np.array([[[.2, .8]], [[.3, -.4]]]), _VALUES, _REWARDS, None)


def _log_density(output, actions):
  mu, sigma = output['mu'], output['sigma']
  return np.sum(np.log(np.exp(-(actions - mu) ** 2 / (2 * sigma ** 2))
                       / np.sqrt(2 * np.pi * sigma ** 2)), -1)


def _nstep_return(rhos, cs, rewards, values, gamma, lambda_):
  """The sums of the paper with one discount and `lambda_`, O(T^2)."""
  deltas = rhos * (rewards + gamma * values[1:] - values[:-1])
  return np.stack([
      values[s] + sum(
          (gamma * lambda_) ** (t - s) * np.prod(cs[s:t], axis=0) * deltas[t]
          for t in range(s, len(rewards)))
      for s in range(len(rewards))])


def _losses(log_mu, log_pi, entropies, data, gamma=.99, lambda_=.95,
            rho_clip=1., c_clip=1., pg_clip=1.):
  """The losses, and the targets and advantages in them."""
  rhos = np.exp(log_pi - log_mu)
  clip = lambda ratio: np.minimum(rhos, np.inf if ratio is None else ratio)
  vs = _nstep_return(clip(rho_clip), clip(c_clip), data.reward, data.value,
                     gamma, lambda_)
  advantages = clip(pg_clip) * (
      data.reward + gamma * np.concatenate([vs[1:], data.value[-1:]])
      - data.value[:-1])
  weight = 1. if data.weight is None else data.weight
  losses = (-np.mean(log_pi * advantages * weight),
            np.mean((data.value[:-1] - vs) ** 2 * weight),
            np.mean(entropies * weight))
  return losses, vs, advantages


def _random_data(seed, continuous, weight=True):
  """Data that vary along every axis."""
  rng = np.random.RandomState(seed)
  if continuous:
    output = lambda: dict(mu=rng.normal(size=[_T, _B, _N]),
                          sigma=rng.uniform(.4, 2., [_T, _B, _N]))
    target, behaviour = output(), output()
    # The weights come close to one: then clipping matters to some of them.
    behaviour = {k: .8 * target[k] + .2 * v for k, v in behaviour.items()}
    actions = rng.normal(size=[_T, _B, _N])
  else:
    target = rng.normal(size=[_T, _B, _N])
    behaviour = rng.normal(size=[_T, _B, _N])
    actions = rng.randint(_N, size=[_T, _B])
  return di_engine.vtrace_data(
      target, behaviour, actions, rng.normal(0., 2., [_T + 1, _B]),
      rng.normal(0., 2., [_T, _B]),
      rng.uniform(0., 2., [_T, _B]) if weight else None)


def _error(continuous):
  return (di_engine.vtrace_error_continuous_action if continuous
          else di_engine.vtrace_error_discrete_action)


class DiEngineTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters((.95, [2.48079, 3.996, 4.7]),
                            (1., [2.6535, 4.23, 4.7]),
                            (0., [1.2, -.45, 4.7]))
  def test_known_nstep_returns(self, lambda_, expected):
    rhos, rewards = np.array([[.5], [1], [1]]), np.array([[1.], [0], [2]])
    values = np.array([[.5], [1], [-.5], [3]])
    found = di_engine.vtrace_nstep_return(
        rhos, rhos, rewards, values, .9, lambda_)
    self.assertAllClose(np.reshape(expected, [3, 1]), found, rtol=1e-12)
    if lambda_ == .95:
      self.assertAllClose(
          [[2.0482], [3.23], [5.2]],
          di_engine.vtrace_advantage(
              rhos, rewards, tf.concat([found[1:], values[-1:]], 0),
              values[:-1], .9), rtol=1e-12)

  @parameterized.parameters(
      # The end of an episode, then padding.
      ([1., 2., 0., 0.], [1.9, 1., 0.]),
      # Another episode follows, and its values leak, as in the original.
      ([1., 2., 0., 4.], [4.816, 4.24, 3.6]))
  def test_known_masked_returns(self, values, expected):
    ones, rewards = np.ones([3, 1]), np.array([[1.], [1.], [0.]])
    self.assertAllClose(
        np.reshape(expected, [3, 1]),
        di_engine.vtrace_nstep_return(
            ones, ones, rewards, np.reshape(values, [4, 1]), .9, 1.),
        rtol=1e-12)

  def test_known_returns_with_discounts_per_step(self):
    column = lambda *x: np.reshape(x, [-1, 1])
    vs = vtrace.from_importance_weights(
        column(0., 0., 0.), column(.9, 0., .9), column(1., 1., 1.),
        column(1., 2., 3.), [4.], dtype=tf.float64).vs
    self.assertAllClose(column(1.9, 1., 4.6), vs, rtol=1e-12)

  def test_known_steps_of_adam(self):
    optimizer = optimizers.make_optimizer(
        'adam', learning_rate=5e-4, decay=.99, momentum=0., epsilon=1e-8,
        beta_1=.9, beta_2=.999)
    x = tf.Variable(1.)
    found = []
    for gradient in (.5, -1., 2.):
      optimizer.apply_gradients([(tf.constant(gradient), x)])
      found.append(x.numpy())
    self.assertAllClose([.99950000001, .999683051771, .999473223964], found,
                        rtol=0., atol=2e-7)

  @parameterized.parameters({}, dict(gamma=.8), dict(lambda_=.3),
                            dict(gamma=1., lambda_=0.))
  def test_nstep_return(self, **arguments):
    rng = np.random.RandomState(0)
    rhos, cs = rng.uniform(0., 2., [2, _T, _B])
    rewards, values = rng.normal(size=[_T, _B]), rng.normal(size=[_T + 1, _B])
    expected = _nstep_return(rhos, cs, rewards, values,
                             **{'gamma': .99, 'lambda_': .95, **arguments})
    self.assertAllClose(
        expected,
        di_engine.vtrace_nstep_return(rhos, cs, rewards, values, **arguments),
        rtol=1e-12)

  @pytest.mark.slow
  def test_nstep_return_and_advantage_are_differentiable(self):
    x = tf.Variable([[.5]], dtype=tf.float64)
    values = tf.Variable([[2.], [3.]], dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
      found = di_engine.vtrace_nstep_return(x, x, [[1.]], values, gamma=.9)
      advantage = di_engine.vtrace_advantage(x, [[1.]], values[1:], values[:1],
                                             .9)
    # v_0 = V_0 + rho (r + gamma V_1 - V_0).
    self.assertAllClose([[1.7]], tape.gradient(found, x))
    self.assertAllClose([[.5], [.45]], tape.gradient(found, values))
    self.assertAllClose([[1.7]], tape.gradient(advantage, x))
    self.assertAllClose([[-.5], [.45]], tape.gradient(advantage, values))

  def test_advantage(self):
    rng = np.random.RandomState(1)
    rhos, rewards, returns, values = rng.normal(size=[4, _T, _B])
    self.assertAllClose(
        rhos * (rewards + .7 * returns - values),
        di_engine.vtrace_advantage(rhos, rewards, returns, values, .7),
        rtol=1e-12)

  def test_known_importance_weights(self):
    self.assertAllClose(
        np.exp([[.379885493042], [2.]]),
        di_engine.compute_importance_weights(*_DATA[:3]), rtol=1e-11)
    self.assertAllClose(
        [[1.827862370542], [1.140081524191]],
        di_engine.compute_importance_weights(
            *_CONTINUOUS_DATA[:3], action_space_type='continuous'), rtol=1e-11)

  @parameterized.parameters(False, True)
  def test_importance_weights(self, requires_grad):
    data = _random_data(2, continuous=False)
    target, behaviour = tf.Variable(data[0]), tf.Variable(data[1])
    log_pi, log_mu = (in_numpy.log_softmax(x) for x in data[:2])
    expected = np.exp(in_numpy.pick(log_pi - log_mu, data.action))
    with tf.GradientTape() as tape:
      found = di_engine.compute_importance_weights(
          target, behaviour, data.action, 'discrete', requires_grad)
    self.assertAllClose(expected, found, rtol=1e-12)
    gradients = tape.gradient(found, [target, behaviour])
    if requires_grad:
      one_hot = np.eye(_N)[data.action]
      weights = expected[..., None]
      self.assertAllClose(weights * (one_hot - np.exp(log_pi)), gradients[0])
      self.assertAllClose(weights * (np.exp(log_mu) - one_hot), gradients[1])
    else:
      self.assertEqual(gradients, [None, None])

  def test_importance_weights_of_continuous_actions(self):
    data = _random_data(3, continuous=True)
    mu = tf.Variable(data.target_output['mu'])
    sigma = tf.Variable(data.target_output['sigma'])
    expected = np.exp(_log_density(data.target_output, data.action)
                      - _log_density(data.behaviour_output, data.action))
    for requires_grad in (False, True):
      with tf.GradientTape() as tape:
        found = di_engine.compute_importance_weights(
            dict(mu=mu, sigma=sigma), data.behaviour_output, data.action,
            'continuous', requires_grad)
      gradients = tape.gradient(found, [mu, sigma])
      self.assertAllClose(expected, found, rtol=1e-10)
      if not requires_grad:
        self.assertEqual(gradients, [None, None])
    z = (data.action - mu) / sigma
    self.assertAllClose(expected[..., None] * z / sigma, gradients[0])
    self.assertAllClose(expected[..., None] * (z ** 2 - 1) / sigma,
                        gradients[1])

  def test_continuous_policy_is_that_of_distributions(self):
    data = _random_data(4, continuous=True)
    policies = [distributions.normal(
        np.concatenate([x['mu'], np.log(x['sigma'])], -1)) for x in data[:2]]
    self.assertAllClose(
        tf.exp(policies[0].log_prob(data.action)
               - policies[1].log_prob(data.action)),
        di_engine.compute_importance_weights(*data[:3], 'continuous'))
    self.assertAllClose(
        tf.reduce_mean(policies[0].entropy() * data.weight),
        di_engine.vtrace_error_continuous_action(data).entropy_loss)

  @parameterized.parameters(
      (dict(gamma=.9), None, [.005880460943, .459985045, .473768481988]),
      (dict(gamma=.9), [[1.], [1.]],
       [.005880460943, .459985045, .473768481988]),
      (dict(gamma=.9), [[1.], [0.]],
       [.060459505691, .090185045, .291101554444]),
      (dict(gamma=.9, rho_clip_ratio=1.1, c_clip_ratio=1.,
            rho_pg_clip_ratio=1.5), None,
       [-.011195265179, .55658190445, .473768481988]),
      ({}, None, [.011196485216, .420721166925, .473768481988]))
  def test_known_losses(self, arguments, weight, expected):
    weight = None if weight is None else np.array(weight)
    found = di_engine.vtrace_error_discrete_action(
        _DATA._replace(weight=weight), **arguments)
    self.assertIsInstance(found, di_engine.vtrace_loss)
    self.assertAllClose(expected, list(found), rtol=1e-9)

  def test_known_losses_of_continuous_actions(self):
    self.assertAllClose(
        [-.547431368499, .459985045, 2.470892478869],
        list(di_engine.vtrace_error_continuous_action(
            _CONTINUOUS_DATA, .9, .95)), rtol=1e-11)

  def test_known_gradients(self):
    logits, values = tf.Variable(_TARGET_LOGITS), tf.Variable(_VALUES)
    behaviour, rewards = tf.Variable(_BEHAVIOUR_LOGITS), tf.Variable(_REWARDS)
    with tf.GradientTape() as tape:
      policy, value, entropy = di_engine.vtrace_error_discrete_action(
          di_engine.vtrace_data(
              logits, behaviour, _ACTIONS, values, rewards, None), gamma=.9)
      total = policy + .5 * value - .0001 * entropy
    self.assertAllClose(.235825606594, total, rtol=1e-11)
    by_logits, by_values, *rest = tape.gradient(
        total, [logits, values, behaviour, rewards])
    self.assertAllClose([[[-.051895863728, .051895863728]],
                         [[-.051267755828, .051267755828]]], by_logits,
                        atol=1e-12)
    self.assertAllClose([[-.21235], [.43], [0.]], by_values, atol=1e-12)
    self.assertEqual(rest, [None, None])

  @parameterized.product(
      continuous=(False, True), weight=(False, True),
      arguments=({}, dict(gamma=.7, lambda_=.4),
                 dict(rho_clip=.8, c_clip=.9, pg_clip=1.3),
                 dict(rho_clip=None, c_clip=None, pg_clip=None)))
  def test_losses_and_gradients(self, continuous, weight, arguments):
    data = _random_data(5, continuous, weight)
    if continuous:
      log_mu, log_pi = (_log_density(x, data.action)
                        for x in (data.behaviour_output, data.target_output))
      sigma = data.target_output['sigma']
      entropies = np.sum(.5 * np.log(2 * np.pi * np.e * sigma ** 2), -1)
    else:
      log_mu, log_pi = (in_numpy.pick(in_numpy.log_softmax(x), data.action)
                        for x in (data.behaviour_output, data.target_output))
      probs = np.exp(in_numpy.log_softmax(data.target_output))
      entropies = -np.sum(probs * np.log(probs), -1)
    expected, vs, advantages = _losses(log_mu, log_pi, entropies, data,
                                       **arguments)

    inputs = tf.nest.map_structure(tf.Variable, dict(
        target_output=data.target_output, value=data.value, reward=data.reward,
        behaviour_output=data.behaviour_output))
    with tf.GradientTape(persistent=True) as tape:
      found = _error(continuous)(
          data._replace(**inputs),
          **{dict(rho_clip='rho_clip_ratio', c_clip='c_clip_ratio',
                  pg_clip='rho_pg_clip_ratio').get(k, k): v
             for k, v in arguments.items()})
    self.assertAllClose(expected, tuple(found), rtol=1e-10)

    weights = data.weight if weight else np.ones([_T, _B])
    scale = weights[..., None] / (_T * _B)
    gradients = {name: tape.gradient(loss, inputs)
                 for name, loss in found._asdict().items()}
    for by_input in gradients.values():
      self.assertEqual(tf.nest.flatten(by_input['behaviour_output']),
                       [None, None] if continuous else [None])
      self.assertIsNone(by_input['reward'])
    self.assertIsNone(gradients['policy_loss']['value'])
    self.assertIsNone(gradients['entropy_loss']['value'])
    for leaf in tf.nest.flatten(gradients['value_loss']['target_output']):
      self.assertIsNone(leaf)
    self.assertAllClose(
        np.concatenate([2 * (data.value[:-1] - vs) * scale[..., 0],
                        np.zeros([1, _B])]),
        gradients['value_loss']['value'])

    by_policy = gradients['policy_loss']['target_output']
    by_entropy = gradients['entropy_loss']['target_output']
    if continuous:
      z = (data.action - data.target_output['mu']) / sigma
      factor = -advantages[..., None] * scale
      self.assertAllClose(factor * z / sigma, by_policy['mu'])
      self.assertAllClose(factor * (z ** 2 - 1) / sigma, by_policy['sigma'])
      self.assertIsNone(by_entropy['mu'])
      self.assertAllClose(scale / sigma, by_entropy['sigma'])
    else:
      self.assertAllClose(
          (probs - np.eye(_N)[data.action]) * advantages[..., None] * scale,
          by_policy)
      self.assertAllClose(
          -probs * (np.log(probs) + entropies[..., None]) * scale, by_entropy)

  def test_is_the_core_when_lambda_is_one(self):
    data = _random_data(6, continuous=False, weight=False)
    returns = vtrace.from_logits(
        data.behaviour_output, data.target_output, data.action,
        np.full([_T, _B], .9), data.reward, data.value[:-1], data.value[-1],
        dtype=tf.float64)
    weights = di_engine.compute_importance_weights(*data[:3])
    clipped = tf.minimum(weights, 1.)
    vs = di_engine.vtrace_nstep_return(
        clipped, clipped, data.reward, data.value, .9, 1.)
    self.assertAllClose(returns.vs, vs, rtol=1e-14)
    self.assertAllClose(
        returns.pg_advantages,
        di_engine.vtrace_advantage(
            clipped, data.reward, tf.concat([vs[1:], data.value[-1:]], 0),
            data.value[:-1], .9), rtol=1e-14)
    losses = di_engine.vtrace_error_discrete_action(data, .9, 1.)
    self.assertAllClose(
        -tf.reduce_mean(returns.target_action_log_probs
                        * returns.pg_advantages), losses.policy_loss)

  @parameterized.product(continuous=(False, True),
                         dtype=(np.float32, np.float64))
  def test_types(self, continuous, dtype):
    data = tf.nest.map_structure(
        lambda x: tf.constant(x.astype(dtype) if x.dtype == np.float64 else x),
        _random_data(7, continuous))
    results = list(_error(continuous)(data))
    weights = di_engine.compute_importance_weights(
        *data[:3], 'continuous' if continuous else 'discrete')
    results += [
        weights,
        di_engine.vtrace_nstep_return(weights, weights, data.reward,
                                      data.value),
        di_engine.vtrace_advantage(weights, data.reward, data.value[1:],
                                   data.value[:-1], .9)]
    self.assertEqual([x.dtype for x in results], [dtype] * 6)

  @parameterized.parameters(False, True)
  @pytest.mark.slow
  def test_compiled_is_eager(self, continuous):
    data = tf.nest.map_structure(tf.constant, _random_data(8, continuous))
    self.assertAllClose(_error(continuous)(data),
                        tf.function(_error(continuous))(data))

  def test_shape_fn(self):
    data = _random_data(9, continuous=False)
    self.assertEqual(
        di_engine.shape_fn_vtrace_discrete_action([data], {}), (_T, _B, _N))
    self.assertEqual(
        di_engine.shape_fn_vtrace_discrete_action([], dict(data=data)),
        (_T, _B, _N))

  def test_unknown_action_space(self):
    with self.assertRaisesRegex(
        ValueError, "'hybrid': must be discrete or continuous"):
      di_engine.compute_importance_weights(*_DATA[:3], 'hybrid')

  @parameterized.parameters(
      (False, 'value', [_T, _B], r'value\[:-1\]: Shape \(5, 3\) .* \(6, 3\)'),
      (False, 'reward', [_T], r'reward: Shape \(6,\) .* \(6, 3\)'),
      (False, 'reward', [1, _B], r'reward: Shape \(1, 3\) .* \(6, 3\)'),
      (False, 'weight', [_T], r'weight: Shape \(6,\) .* \(6, 3\)'),
      (False, 'weight', [_B], r'weight: Shape \(3,\) .* \(6, 3\)'),
      (False, 'action', [_T, _B, 1],
       r'action: Shape \(6, 3, 1\) .* \(6, 3\) of target_output'),
      (False, 'target_output', [_T, _N],
       r'behaviour_output: Shape \(6, 3, 4\) .* \(6, 4\) of target_output'),
      (False, 'behaviour_output', [_T, _B, _N + 1],
       r'behaviour_output: Shape \(6, 3, 5\) .* \(6, 3, 4\) of target_output'),
      (True, 'action', [_T, _B],
       r'mu of target_output: Shape \(6, 3, 4\) .* \(6, 3\) of action'),
      (True, 'action', [_T, _B, 1],
       r'mu of target_output: Shape \(6, 3, 4\) .* \(6, 3, 1\) of action'),
      (True, 'value', [_T, _B], r'value\[:-1\]: Shape \(5, 3\) .* \(6, 3\)'),
      (True, 'reward', [_T, 1], r'reward: Shape \(6, 1\) .* \(6, 3\)'),
      (True, 'weight', [_T, _B, 1], r'weight: Shape \(6, 3, 1\) .* \(6, 3\)'))
  def test_wrong_shape(self, continuous, name, shape, message):
    data = _random_data(10, continuous)
    dtype = np.int32 if name == 'action' and not continuous else np.float64
    data = data._replace(**{name: np.zeros(shape, dtype)})
    with self.assertRaisesRegex(ValueError, message):
      _error(continuous)(data)
    if name not in ('value', 'reward', 'weight'):
      with self.assertRaisesRegex(ValueError, message):
        di_engine.compute_importance_weights(
            *data[:3], 'continuous' if continuous else 'discrete')

  @parameterized.product(output=('target_output', 'behaviour_output'),
                         part=('mu', 'sigma'), shape=([], [_N], [_T, _B, 1]))
  def test_gaussian_of_wrong_shape(self, output, part, shape):
    data = _random_data(11, continuous=True)
    getattr(data, output)[part] = np.ones(shape)
    message = (f'{part} of {output}: Shape {tf.TensorShape(shape)} does not '
               'fit shape (6, 3, 4) of action')
    with self.assertRaisesRegex(ValueError, re.escape(message)):
      di_engine.vtrace_error_continuous_action(data)

  @parameterized.parameters(
      ('clipped_rhos', [_T, 1]), ('clipped_cs', [_T, 1]),
      ('bootstrap_values', [_T, _B]), ('reward', [1, _B]))
  def test_nstep_return_broadcasts_nothing(self, name, shape):
    steps = np.ones([_T, _B])
    arguments = dict(clipped_rhos=steps, clipped_cs=steps, reward=steps,
                     bootstrap_values=np.ones([_T + 1, _B]))
    message = {
        'bootstrap_values':
            'bootstrap_values[:-1]: Shape (5, 3) does not fit shape (6, 3)',
        'reward':
            'bootstrap_values[:-1]: Shape (6, 3) does not fit shape (1, 3)',
    }.get(name, f'{name}: Shape (6, 1) does not fit shape (6, 3)')
    arguments[name] = np.ones(shape)
    with self.assertRaisesRegex(
        ValueError, re.escape(message + ' of reward')):
      di_engine.vtrace_nstep_return(**arguments)

  @parameterized.parameters('clipped_pg_rhos', 'reward', 'return_',
                            'bootstrap_values')
  def test_advantage_broadcasts_nothing(self, name):
    arguments = dict.fromkeys(
        ('clipped_pg_rhos', 'reward', 'return_', 'bootstrap_values'),
        np.ones([_T, _B]))
    arguments[name] = np.ones([_T, 1])
    message = (
        'bootstrap_values: Shape (6, 3) does not fit shape (6, 1) of reward'
        if name == 'reward' else
        f'{name}: Shape (6, 1) does not fit shape (6, 3) of reward')
    with self.assertRaisesRegex(ValueError, re.escape(message)):
      di_engine.vtrace_advantage(**arguments, gamma=.9)


class PytorchSeedRlTest(tf.test.TestCase, parameterized.TestCase):

  def _arguments(self, seed=None):
    """Arguments in the order of the original, known or random."""
    if seed is None:
      return dict(
          behavior_policy_logits=_BEHAVIOUR_LOGITS,
          target_policy_logits=_TARGET_LOGITS, values=_VALUES[:-1],
          bootstrap_value=_VALUES[-1], actions=_ACTIONS,
          discounts=np.full([2, 1], .9), rewards=_REWARDS)
    rng = np.random.RandomState(seed)
    data = _random_data(seed, continuous=False)
    return dict(
        behavior_policy_logits=data.behaviour_output,
        target_policy_logits=data.target_output, values=data.value[:-1],
        bootstrap_value=data.value[-1], actions=data.action,
        discounts=rng.uniform(size=[_T, _B]) * rng.randint(2, size=[_T, _B]),
        rewards=data.reward)

  def test_entropy(self):
    self.assertAllClose(
        -.947536963975, pytorch_seed_rl.entropy([[1., 0.], [0., 2.]]))
    for integers in [[1, 0], [0, 2]], np.array([[1, 0], [0, 2]]):
      self.assertAllClose(-.947536963975, pytorch_seed_rl.entropy(integers))
    self.assertAllClose(
        -6 * math.log(4), pytorch_seed_rl.entropy(np.zeros([3, 2, 4])),
        rtol=1e-12)
    logits = np.random.RandomState(0).normal(size=[2, 3, 4, 5])
    x = tf.Variable(logits)
    with tf.GradientTape() as tape:
      found = pytorch_seed_rl.entropy(x)
    probs = np.exp(in_numpy.log_softmax(logits))
    entropies = -np.sum(probs * np.log(probs), -1, keepdims=True)
    self.assertEqual(found.dtype, tf.float64)
    self.assertAllClose(-np.sum(entropies), found, rtol=1e-12)
    self.assertAllClose(probs * (np.log(probs) + entropies),
                        tape.gradient(found, x))

  def test_policy_gradient_of_known_numbers(self):
    self.assertAllClose(
        .406428525756, pytorch_seed_rl.policy_gradient(
            _TARGET_LOGITS, _ACTIONS, np.array([[1.5], [-.5]])), rtol=1e-11)

  @parameterized.parameters(np.int32, np.int64, np.float32)
  def test_policy_gradient(self, action_dtype):
    data = _random_data(1, continuous=False)
    logits = tf.Variable(data.target_output)
    advantages = tf.Variable(data.reward)
    with tf.GradientTape() as tape:
      found = pytorch_seed_rl.policy_gradient(
          logits, data.action.astype(action_dtype), advantages)
    log_probs = in_numpy.log_softmax(data.target_output)
    self.assertEqual(found.dtype, tf.float64)
    self.assertAllClose(
        -np.sum(in_numpy.pick(log_probs, data.action) * data.reward), found,
        rtol=1e-12)
    by_logits, by_advantages = tape.gradient(found, [logits, advantages])
    self.assertAllClose((np.exp(log_probs) - np.eye(_N)[data.action])
                        * data.reward[..., None], by_logits)
    self.assertIsNone(by_advantages)

  def test_types_of_advantages(self):
    logits = tf.constant(_TARGET_LOGITS, tf.float64)
    for advantages in ([[1.5], [-.5]], np.array([[1.5], [-.5]], np.float32)):
      self.assertAllClose(
          .406428525756, pytorch_seed_rl.policy_gradient(
              logits, _ACTIONS, advantages), rtol=1e-11)

  def test_policy_gradient_broadcasts_nothing(self):
    with self.assertRaisesRegex(
        ValueError, r'advantages: Shape \(3,\) .* \(6, 3\) of actions'):
      pytorch_seed_rl.policy_gradient(
          tf.zeros([_T, _B, _N]), tf.zeros([_T, _B]), tf.ones([_B]))

  def test_known_vtrace(self):
    found = pytorch_seed_rl.from_logits(*self._arguments().values())
    self.assertIsInstance(found, pytorch_seed_rl.VTraceFromLogitsReturns)
    column = lambda *x: np.reshape(x, [2, 1])
    for name, expected in dict(
        vs=column(.586, -.46), pg_advantages=column(.386, -.86),
        log_rhos=column(.379885493042, 2.),
        behavior_action_log_probs=column(-.69314718056, -2.126928011043),
        target_action_log_probs=column(-.313261687518, -.126928011043)).items():
      self.assertAllClose(expected, getattr(found, name), atol=1e-12)

  def test_fields(self):
    self.assertEqual(
        pytorch_seed_rl.VTraceFromLogitsReturns._fields,
        ('vs', 'pg_advantages', 'log_rhos', 'behavior_action_log_probs',
         'target_action_log_probs'))

  @parameterized.parameters((1., 1.), (None, None), (None, .7), (1.4, .6))
  def test_vtrace(self, clip_rho, clip_pg_rho):
    arguments = self._arguments(2)
    found = pytorch_seed_rl.from_logits(
        *arguments.values(), clip_rho, clip_pg_rho)
    log_mu, log_pi = (
        in_numpy.pick(in_numpy.log_softmax(arguments[k]), arguments['actions'])
        for k in ('behavior_policy_logits', 'target_policy_logits'))
    rhos = np.exp(log_pi - log_mu)
    clip = lambda x: np.minimum(rhos, np.inf if x is None else x)
    discounts, rewards = arguments['discounts'], arguments['rewards']
    values = np.concatenate(
        [arguments['values'], arguments['bootstrap_value'][None]])
    deltas = clip(clip_rho) * (rewards + discounts * values[1:] - values[:-1])
    vs = np.stack([
        values[s] + sum(
            np.prod((discounts * np.minimum(rhos, 1.))[s:t], axis=0) * deltas[t]
            for t in range(s, _T)) for s in range(_T)] + [values[-1]])
    advantages = clip(clip_pg_rho) * (
        rewards + discounts * vs[1:] - values[:-1])
    for x, expected in zip(
        found, (vs[:-1], advantages, log_pi - log_mu, log_mu, log_pi)):
      self.assertEqual(x.dtype, tf.float64)
      self.assertAllClose(expected, x, rtol=1e-11)

  def test_default_thresholds_are_one(self):
    arguments = self._arguments(3)
    self.assertAllEqual(
        pytorch_seed_rl.from_logits(**arguments).pg_advantages,
        pytorch_seed_rl.from_logits(**arguments, clip_rho_threshold=1.,
                                    clip_pg_rho_threshold=1.).pg_advantages)

  def test_float32(self):
    arguments = {k: v.astype(np.float32) if k != 'actions' else v
                 for k, v in self._arguments(4).items()}
    found = pytorch_seed_rl.from_logits(**arguments)
    self.assertEqual([x.dtype for x in found], [tf.float32] * 5)
    self.assertAllClose(pytorch_seed_rl.from_logits(**self._arguments(4)),
                        found, rtol=1e-4)

  def test_gradients_flow_only_through_log_probs(self):
    inputs = {k: tf.Variable(v) for k, v in self._arguments(5).items()
              if k != 'actions'}
    with tf.GradientTape(persistent=True) as tape:
      found = pytorch_seed_rl.from_logits(
          **inputs, actions=self._arguments(5)['actions'])
    behavior, target = 'behavior_policy_logits', 'target_policy_logits'
    flows = dict(vs=set(), pg_advantages=set(), log_rhos={behavior, target},
                 behavior_action_log_probs={behavior},
                 target_action_log_probs={target})
    for name, output in found._asdict().items():
      gradients = tape.gradient(output, inputs)
      self.assertEqual({k for k, g in gradients.items() if g is not None},
                       flows[name], name)

  @parameterized.parameters(
      ('bootstrap_value', [1, _B], 'must have rank 1'),
      ('bootstrap_value', [], 'must have rank 1'),
      ('behavior_policy_logits', [_T, _N], 'must have rank 3'),
      ('rewards', [_T], 'must have rank 2'))
  def test_wrong_rank(self, name, shape, message):
    arguments = dict(self._arguments(6), **{name: np.zeros(shape)})
    with self.assertRaisesRegex(ValueError, message):
      pytorch_seed_rl.from_logits(**arguments)


# See `mutations.py`.
MUTATIONS = (
    dict(file='compat/di_engine',
         catches='test_continuous_policy_is_that_of_distributions', rows=(
        ('ratios upside down', 'tf.exp(target - behaviour)',
         'tf.exp(behaviour - target)'),
        ('no weights for entropies', 'entropies * weight', 'entropies'),
        ('sums of entropies', 'tf.reduce_mean(entropies',
         'tf.reduce_sum(entropies'),
        ('entropy without its constant',
         'tf.math.log(sigma) + 0.5 * np.log(2 * np.pi * np.e)',
         'tf.math.log(sigma)'),
        ('deviations taken for variances', 'tf.square((action - mu) / sigma)',
         'tf.square(action - mu) / sigma'),
    )),
    dict(file='compat/di_engine', catches='test_importance_weights', rows=(
        ('ratios always have a gradient',
         'weights if requires_grad else tf.stop_gradient(weights)', 'weights'),
        ('ratios never have a gradient',
         'weights if requires_grad else tf.stop_gradient(weights)',
         'tf.stop_gradient(weights)'),
    )),
    dict(file='compat/di_engine', catches='test_known_nstep_returns', rows=(
        ('no lambda in targets', 'lambda_ * clipped_cs', 'clipped_cs'),
    )),
    dict(file='compat/di_engine',
         catches='test_is_the_core_when_lambda_is_one', rows=(
        ('no discount in targets', 'lambda_ * clipped_cs, gamma *',
         'lambda_ * clipped_cs, 1.0 *'),
    )),
    dict(file='compat/di_engine', catches='test_nstep_return', rows=(
        ('rho for c', 'clipped_rhos, lambda_ * clipped_cs',
         'clipped_rhos, lambda_ * clipped_rhos'),
    )),
    dict(file='compat/di_engine', catches='test_advantage', rows=(
        ('no discount in advantages', 'gamma * return_', 'return_'),
        ('advantages without weights', 'clipped_pg_rhos * (reward',
         '1. * (reward'),
    )),
    dict(file='compat/di_engine', catches='test_known_losses', rows=(
        ('no lambda in losses', 'lambda_=lambda_', 'lambda_=1.0'),
        ('the clip of rho for that of c', 'clip_c_threshold=c_clip_ratio',
         'clip_c_threshold=rho_clip_ratio'),
        ('the clip of rho for the policy',
         'clip_pg_rho_threshold=rho_pg_clip_ratio',
         'clip_pg_rho_threshold=rho_clip_ratio'),
        ('no weights for the policy', 'returns.pg_advantages * weight',
         'returns.pg_advantages'),
        ('no weights for values', 'returns.vs) * weight', 'returns.vs)'),
    )),
    dict(file='compat/di_engine', catches='test_known_gradients', rows=(
        ('values of the next step', 'value[:-1] - returns.vs',
         'value[1:] - returns.vs'),
        ('half the loss of values',
         'tf.square(value[:-1] - returns.vs) * weight',
         '0.5 * tf.square(value[:-1] - returns.vs) * weight'),
    )),
    dict(file='compat/pytorch_seed_rl',
         catches='test_gradients_flow_only_through_log_probs', rows=(
        ('policies swapped',
         'behavior_policy_logits, target_policy_logits, actions, discounts,',
         'target_policy_logits, behavior_policy_logits, actions, discounts,'),
    )),
    dict(file='compat/pytorch_seed_rl', catches='test_vtrace', rows=(
        ('one clip for both', 'clip_pg_rho_threshold=clip_pg_rho_threshold',
         'clip_pg_rho_threshold=clip_rho_threshold'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
