# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of DDQN, DDPG, TD3, SAC and MPO: losses, updates, targets.

Losses are compared with NumPy in float64, which computes the networks from
their weights, too. Gradients are compared with differences of these losses, in
which only the variables of the loss' own group change. So a policy's loss must
have no gradient in the critics, and no loss one in the targets.
"""

import functools

from absl.testing import parameterized
import eager
import in_numpy
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.networks import factory
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_B = 6
_GAMMA = 0.9
_SEED = (3, 4)
_OBSERVATION = structs.ArraySpec((3,), np.dtype(np.float32))
_DISCRETE = structs.ActionSpec((4,))
_BOX = structs.ActionSpec(size=2)
_PARTS = structs.ActionSpec((3, 2))

# Name: algorithm, actions, settings.
_CASES = {
    'ddqn': ('ddqn', _DISCRETE, {}),
    'dqn': ('ddqn', _DISCRETE, dict(double_q=False)),
    'dueling_huber': ('ddqn', _DISCRETE, dict(dueling=True, huber_delta=0.6)),
    'rescaled': ('ddqn', _DISCRETE, dict(value_rescaling=True)),
    'ddpg': ('ddpg', _BOX, {}),
    'td3': ('td3', _BOX, dict(target_noise=0.4, target_noise_clip=0.3)),
    'td3_three_critics': ('td3', _BOX, dict(num_critics=3)),
    'sac': ('sac', _BOX, dict(target_entropy_per_part=-0.7)),
    'sac_discrete': ('sac', _DISCRETE, dict(target_entropy_ratio=0.8)),
    # Zero is a value like others.
    'sac_zero': ('sac', _BOX, dict(target_entropy_per_part=0.0)),
    'sac_discrete_zero': ('sac', _DISCRETE, dict(target_entropy_ratio=0.0)),
    'mpo': ('mpo', _BOX, dict(
        num_samples=5, epsilon_mean=0.7, epsilon_scale=0.2)),
    'mpo_two_critics': ('mpo', _BOX, dict(num_samples=5, num_critics=2)),
    'mpo_exact': ('mpo', _BOX, dict(
        num_samples=5, exact_temperature=True, epsilon_temperature=0.05)),
    'mpo_discrete': ('mpo', _DISCRETE, dict(num_critics=2)),
    'mpo_discrete_exact': ('mpo', _DISCRETE, dict(exact_temperature=True)),
}
_DEFAULTS = ('ddqn', 'ddpg', 'td3', 'sac', 'sac_discrete', 'mpo',
             'mpo_discrete')


def _config(case, **settings):
  algorithm, _, of_case = _CASES[case]
  return config_lib.Config(**{
      'algorithm': algorithm, 'level_name': 'toy', 'agent': 'mlp',
      'hidden_sizes': '5', 'xla': 'none', 'learning_rate': 0.01,
      'total_environment_frames': 1000, **of_case, **settings})


def _spec(case):
  return structs.EnvironmentSpec(_OBSERVATION, _CASES[case][1], 1)


def _make(case, **settings):
  """Returns an algorithm whose targets differ from what they follow."""
  algorithm = algorithms.make(_config(case, **settings), _spec(case), seed=1)
  _scramble(algorithm)
  return algorithm


def _scramble(algorithm):
  rng = np.random.default_rng(0)
  for variables in (*algorithm.groups.values(), algorithm.targets):
    for variable in variables:
      value = rng.normal(size=variable.shape)
      variable.assign(value if variable.shape.rank else 0.5 * value)


def _learner(case, **settings):
  learner = setup.make_learner(_config(case, **settings), _spec(case))
  _scramble(learner.algorithm)
  return learner


def _transitions(case, num_batches=None, seed=0):
  """Transitions that varies along every axis, some of them terminal."""
  rng = np.random.default_rng(seed)
  shape = (_B,) if num_batches is None else (num_batches, _B)
  actions = _CASES[case][1]
  discount = np.array([0, _GAMMA, _GAMMA**3, _GAMMA**2, 0, _GAMMA])
  return structs.Transition(
      rng.normal(size=(*shape, 3)).astype('f'),
      rng.uniform(-1, 1, (*shape, actions.size)).astype('f') if actions.size
      else rng.integers(4, size=shape, dtype='i'),
      rng.normal(size=shape).astype('f'),
      np.broadcast_to(discount, shape).astype('f'),
      rng.normal(size=(*shape, 3)).astype('f'))


def _loss(algorithm, transitions, weights=None, groups=None):
  data, weights = tf.nest.map_structure(
      lambda x: None if x is None else tf.constant(x), (transitions, weights))
  return algorithm.loss(
      data, weights, groups or tuple(algorithm.groups), tf.constant(_SEED))


# The slow truth. A network is its list of arrays.


def _dense(net, x):
  if len(net) == 2:  # The head of an agent with memory.
    return x @ net[0] + net[1]
  hidden = np.maximum(x @ net[0] + net[1], 0)
  outputs = [hidden @ w + b for w, b in zip(net[2::2], net[3::2])]
  if len(outputs) == 1:
    return outputs[0]
  value, advantages = outputs  # Dueling.
  return value + advantages - np.mean(advantages, -1, keepdims=True)


def _networks(arrays):
  """Returns the networks in a list of arrays: each has four."""
  return [arrays[i:i + 4] for i in range(0, len(arrays), 4)]


def _values(net, o, a=None):
  if a is None:
    return _dense(net, o)
  return _dense(net, np.concatenate([o, a], -1))[..., 0]


def _softmax(x, axis=-1):
  e = np.exp(x - np.max(x, axis, keepdims=True))
  return e / np.sum(e, axis, keepdims=True)


def _normal_log_prob(x, mean, std):
  return np.sum(-0.5 * ((x - mean) / std)**2 - np.log(std)
                - 0.5 * np.log(2 * np.pi), -1)


def _gaussian(net, o):
  mean, log_std = np.split(_dense(net, o), 2, -1)
  return mean, np.exp(np.clip(log_std, -20, 2))


@functools.cache
def _two_seeds(seed):
  seeds = tf.random.experimental.stateless_split(seed, 2).numpy()
  return [tuple(seed) for seed in seeds.tolist()]


@functools.cache  # The slopes need the same noise hundreds of times.
def _noise(shape, seed):
  return tf.random.stateless_normal(shape, seed).numpy().astype(np.float64)


class _Truth:
  """The losses of an algorithm, by group, in NumPy.

  Attributes:
    errors: `[B]`, those of `base.Loss`.
    seed: the seed of `Algorithm.loss`.
  """

  def __init__(self, algorithm, case, transitions, weights):
    self.seed = _SEED
    self.name, self.actions, _ = _CASES[case]
    self.settings = _config(case)
    numpy = lambda x: x.numpy().astype(np.float64)
    self.groups = {
        group: [numpy(v) for v in variables]
        for group, variables in algorithm.groups.items()}
    # Without the epsilon of the target policy.
    self.targets = [numpy(v) for v in algorithm.targets if v.shape.rank]
    self.transitions = transitions
    # NumPy 1 computes float32 arrays times float64 scalars in float32.
    self.weights = np.asarray(
        np.ones([_B]) if weights is None else weights, np.float64)
    self.critic_weights = self.weights

  def losses(self, groups):
    """Returns the losses if the variables of `groups` had other values.

    What a loss takes as given is computed from the true values.
    """
    if self.name == 'ddqn':
      return self._ddqn(groups)
    make = {'ddpg': self._deterministic, 'td3': self._deterministic,
            'sac': self._sac, 'mpo': self._mpo}[self.name]
    value_t, others = make(groups)
    t = self.transitions
    y = t.reward + t.discount * value_t
    if self.actions.size:
      q_of = lambda net: _values(net, t.observation, t.action)
    else:
      q_of = lambda net: in_numpy.pick(_values(net, t.observation), t.action)
    q = np.array([q_of(net) for net in _networks(groups['critic'])])
    self.errors = (np.abs(np.min(q, 0) - y) if self.name == 'td3'
                   else np.mean(np.abs(q - y), 0))
    critic = np.mean(self.critic_weights * np.sum(0.5 * (q - y)**2, 0))
    return {'critic': critic, **others}

  def _ddqn(self, groups):
    t, settings = self.transitions, self.settings
    q_t = _dense(self.targets, t.next_observation)
    chooser = (_dense(self.groups['agent'], t.next_observation)
               if settings.double_q else q_t)
    value_t = in_numpy.pick(q_t, np.argmax(chooser, -1))
    if settings.value_rescaling:
      value_t = np.sign(value_t) * (((np.sqrt(
          1 + .004 * (np.abs(value_t) + 1.001)) - 1) / .002)**2 - 1)
    y = t.reward + t.discount * value_t
    if settings.value_rescaling:
      y = np.sign(y) * (np.sqrt(np.abs(y) + 1) - 1) + .001 * y
    q = in_numpy.pick(_dense(groups['agent'], t.observation), t.action)
    self.errors = np.abs(q - y)
    delta = settings.huber_delta or np.inf
    costs = [0.5 * e**2 if e <= delta else delta * (e - 0.5 * delta)
             for e in self.errors]
    return {'agent': np.mean(self.critic_weights * costs)}

  def _deterministic(self, groups):
    t, settings = self.transitions, self.settings
    action_t = np.tanh(_dense(self.targets[:4], t.next_observation))
    if self.name == 'td3':
      noise = settings.target_noise * _noise(action_t.shape, self.seed)
      clip = settings.target_noise_clip
      action_t = np.clip(action_t + np.clip(noise, -clip, clip), -1, 1)
    value_t = np.min([_values(net, t.next_observation, action_t)
                      for net in _networks(self.targets[4:])], 0)
    q = _values(self.groups['critic'][:4], t.observation,
                np.tanh(_dense(groups['policy'], t.observation)))
    return value_t, {'policy': -np.mean(self.weights * q)}

  def _sac(self, groups):
    t, settings = self.transitions, self.settings
    alpha = np.exp(self.groups['temperature'][0])
    smallest = lambda nets, *inputs: np.min(
        [_values(net, *inputs) for net in _networks(nets)], 0)
    if self.actions.size:
      seeds = _two_seeds(self.seed)

      def sample(net, o, seed):
        mean, std = _gaussian(net, o)
        u = mean + std * _noise(mean.shape, seed)
        return np.tanh(u), _normal_log_prob(u, mean, std) - np.sum(
            np.log(1 - np.tanh(u)**2), -1)

      action_t, log_prob_t = sample(
          self.groups['policy'], t.next_observation, seeds[0])
      value_t = smallest(
          self.targets, t.next_observation, action_t) - alpha * log_prob_t
      action, log_prob = sample(groups['policy'], t.observation, seeds[1])
      costs = alpha * log_prob - smallest(
          self.groups['critic'], t.observation, action)
      _, given = sample(self.groups['policy'], t.observation, seeds[1])
      target = settings.target_entropy_per_part * self.actions.size
    else:
      p_t = _softmax(_dense(self.groups['policy'], t.next_observation))
      value_t = np.sum(p_t * (smallest(self.targets, t.next_observation)
                              - alpha * np.log(p_t)), -1)
      p = _softmax(_dense(groups['policy'], t.observation))
      costs = np.sum(p * (alpha * np.log(p) - smallest(
          self.groups['critic'], t.observation)), -1)
      p = _softmax(_dense(self.groups['policy'], t.observation))
      given = np.sum(p * np.log(p), -1)
      target = settings.target_entropy_ratio * np.log(4)
    return value_t, {
        'policy': np.mean(self.weights * costs),
        'temperature': -np.mean(
            self.weights * groups['temperature'][0] * (given + target))}

  def _mpo(self, groups):
    duals = {}
    of = lambda values: [np.log1p(np.exp(v)) + 1e-8 for v in values]
    for which, values in (('given', self.groups['duals']),
                          ('learned', groups['duals'])):
      names = ['means', *['scales'][:bool(self.actions.size)],
               'eta', 'eta_bounds']
      duals[which] = dict(zip(names, of(values)))
    return (self._mpo_box if self.actions.size else self._mpo_discrete)(
        groups, duals)

  def _e_step(self, q, epsilon, prior, duals, name):
    """Returns weights of actions `[J, B]` and the loss of the temperature."""
    if self.settings.exact_temperature:
      low, high = 1e-6, 1e6
      for _ in range(60):  # From 1e-6 to 1e6, to the last digit.
        eta = np.sqrt(low * high)
        weights = prior * np.exp((q - np.max(q, 0)) / eta)
        weights /= np.sum(weights, 0)
        with np.errstate(divide='ignore', invalid='ignore'):
          kl = np.nansum(weights * np.log(weights / prior), 0)
        low, high = (eta, high) if np.mean(kl) > epsilon else (low, eta)
      return weights, 0.0
    weights = prior * np.exp(q / duals['given'][name])
    eta = duals['learned'][name]
    dual = eta * (epsilon + np.mean(np.log(np.sum(
        prior * np.exp(q / eta), 0))))
    return weights / np.sum(weights, 0), dual

  def _mpo_discrete(self, groups, duals):
    o, settings = self.transitions.observation, self.settings
    p_t, next_p_t = (_softmax(_dense(self.targets[:4], x))
                     for x in (o, self.transitions.next_observation))
    q_t, next_q_t = (
        np.min([_values(net, x) for net in _networks(self.targets[4:])], 0)
        for x in (o, self.transitions.next_observation))
    value_t = np.sum(next_p_t * next_q_t, -1)
    weights, dual = self._e_step(
        q_t.T, settings.epsilon_temperature, p_t.T, duals, 'eta')
    kl = lambda net: np.mean(np.sum(
        p_t * np.log(p_t / _softmax(_dense(net, o))), -1))
    log_p = np.log(_softmax(_dense(groups['policy'], o)))
    policy = -np.mean(self.weights * np.sum(weights * log_p.T, 0))
    policy += duals['given']['means'] * kl(groups['policy'])
    dual += duals['learned']['means'] * (
        settings.epsilon_mean - kl(self.groups['policy']))
    return value_t, {'policy': policy, 'duals': dual}

  def _mpo_box(self, groups, duals):
    o, settings = self.transitions.observation, self.settings
    seeds = _two_seeds(self.seed)

    def sample(o, number, seed):
      mean, std = _gaussian(self.targets[:4], o)
      actions = mean + std * _noise((number, *mean.shape), seed)
      return mean, std, actions, np.array([
          np.min([_values(net, o, a) for net in _networks(self.targets[4:])], 0)
          for a in np.clip(actions, -1, 1)])

    mean_t, std_t, actions, q_t = sample(o, settings.num_samples, seeds[0])
    *_, next_q_t = sample(self.transitions.next_observation, 2, seeds[1])
    prior = np.full_like(q_t, 1 / settings.num_samples)
    weights, dual = self._e_step(
        q_t, settings.epsilon_temperature, prior, duals, 'eta')
    costs = -np.sqrt(np.sum((actions - np.clip(actions, -1, 1))**2, -1))
    more_weights, more_dual = self._e_step(
        costs, settings.epsilon_bounds, prior, duals, 'eta_bounds')
    weights, dual = weights + more_weights, dual + more_dual

    def kls(net):
      mean, std = _gaussian(net, o)
      return {'means': np.mean(0.5 * ((mean - mean_t) / std_t)**2, 0),
              'scales': np.mean(np.log(std / std_t)
                                + 0.5 * (std_t / std)**2 - 0.5, 0)}

    mean, std = _gaussian(groups['policy'], o)
    log_p = (_normal_log_prob(actions, mean, std_t)
             + _normal_log_prob(actions, mean_t, std))
    policy = -np.mean(self.weights * np.sum(weights * log_p, 0))
    for name, epsilon in (('means', settings.epsilon_mean),
                          ('scales', settings.epsilon_scale)):
      policy += np.sum(duals['given'][name] * kls(groups['policy'])[name])
      dual += np.sum(duals['learned'][name] * (
          epsilon - kls(self.groups['policy'])[name]))
    return np.mean(next_q_t, 0), {'policy': policy, 'duals': dual}

  def gradients(self, group):
    """Returns the slopes of the loss of a group, one by one."""
    return in_numpy.slopes(self.groups[group], lambda changed: self.losses(
        {**self.groups, group: changed})[group])


class LossTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.named_parameters(
      *[(f'{case}_weighted', case, True) for case in _CASES],
      *[(case, case, False) for case in _DEFAULTS if 'mpo' not in case])
  def test_losses_errors_and_gradients(self, case, is_weighted):
    algorithm = _make(case)
    transitions = _transitions(case)
    weights = (np.array([.3, 2, .1, 1, .7, 1.5], 'f') if is_weighted else None)
    truth = _Truth(algorithm, case, transitions, weights)
    expected = truth.losses(truth.groups)
    with tf.GradientTape(persistent=True) as tape:
      loss = _loss(algorithm, transitions, weights)
    self.assertEqual(set(loss.by_group), set(algorithm.groups))
    self.assertEqual(set(expected), set(algorithm.groups))
    self.assertAllClose(loss.errors, truth.errors, rtol=1e-4, atol=1e-5)
    for group, value in expected.items():
      self.assertAllClose(loss.by_group[group], value, rtol=1e-4, atol=1e-4)
      name = 'critic_loss' if group == 'agent' else f'{group}_loss'
      self.assertAllEqual(loss.means[name], loss.by_group[group])
      found = tape.gradient(loss.by_group[group], algorithm.groups[group])
      for one, other in zip(found, truth.gradients(group), strict=True):
        self.assertAllClose(one, other, rtol=2e-3, atol=2e-3)

  @parameterized.named_parameters(
      *((case, case, False) for case in _CASES),
      *((f'{case}_layer_norm', case, True) for case in _DEFAULTS))
  def test_targets_get_no_gradient(self, case, layer_norm):
    algorithm = _make(case, layer_norm=layer_norm)
    for variable in algorithm.targets:  # A tape watches what can be trained.
      variable.trainable = True
    with tf.GradientTape(persistent=True) as tape:
      loss = _loss(algorithm, _transitions(case))
    for value in loss.by_group.values():
      for gradient in tape.gradient(value, algorithm.targets):
        if gradient is not None:
          self.assertAllEqual(gradient, tf.zeros_like(gradient))

  @parameterized.named_parameters(*zip(_DEFAULTS, _DEFAULTS))
  def test_what_follows_an_end_has_no_effect(self, case):
    algorithm = _make(case)
    transitions = _transitions(case)
    changed = transitions.next_observation.copy()
    is_end = transitions.discount == 0
    changed[is_end] += 10
    critic = next(iter(algorithm.groups))
    one, other = (
        _loss(algorithm, transitions._replace(next_observation=o))
        for o in (transitions.next_observation, changed))
    self.assertAllClose(one.by_group[critic], other.by_group[critic],
                        rtol=1e-6)
    self.assertAllClose(one.errors, other.errors, rtol=1e-6)
    changed[~is_end] += 10
    other = _loss(algorithm, transitions._replace(next_observation=changed))
    self.assertNotAllClose(one.by_group[critic], other.by_group[critic])

  def test_logged_values_are_not_rescaled(self):
    algorithm, transitions = _make('rescaled'), _transitions('rescaled')
    network = [v.numpy() for v in algorithm.groups['agent']]
    q = np.float64(in_numpy.pick(
        _dense(network, transitions.observation), transitions.action))
    exact = np.sign(q) * (((np.sqrt(
        1 + .004 * (np.abs(q) + 1.001)) - 1) / .002)**2 - 1)
    self.assertAllClose(
        _loss(algorithm, transitions).means['mean_q'], np.mean(exact))
    self.assertNotAllClose(np.mean(exact), np.mean(q))

  def test_td3_computes_no_policy_loss_that_is_not_due(self):
    algorithm = _make('td3')
    loss = _loss(algorithm, _transitions('td3'), groups=('critic',))
    self.assertEqual(set(loss.by_group), {'critic'})
    self.assertEqual(set(loss.means), {'critic_loss', 'mean_q'})


class UpdateTest(parameterized.TestCase, tf.test.TestCase):

  def _state(self, learner):
    return [v.numpy() for kind in learner.state.values() for v in kind]

  def _step(self, learner, case, num_batches=None, seed=0, num_frames=1):
    weights = np.random.default_rng(seed).uniform(
        size=(_B,) if num_batches is None else (num_batches, _B)).astype('f')
    return learner.step(learner.to_device(
        _transitions(case, num_batches, seed), num_frames, weights))

  # The loop ends in the middle of TD3's delay.
  @parameterized.named_parameters(
      ('td3', 'td3'), ('ddqn', 'ddqn'), ('mpo', 'mpo'), ('ddpg', 'ddpg'),
      ('sac', 'sac'), ('sac_discrete', 'sac_discrete'),
      ('mpo_discrete', 'mpo_discrete'))
  @pytest.mark.storm
  def test_updates_of_one_call_are_those_of_single_calls(self, case):
    self._check_loop(case, False)

  @parameterized.parameters('td3', 'ddqn')
  @pytest.mark.storm
  def test_updates_of_one_call_compiled_by_xla(self, case):
    self._check_loop(case, True)

  def _check_loop(self, case, xla):
    num = 3
    settings = dict(target_update_rate=0.3)
    if xla and case == 'td3':  # The random numbers of XLA are others.
      settings.update(target_noise=0.)
    if case == 'ddqn':
      settings.update(target_update_period=2, exploration_decay=0.7)
    together = _learner(case, updates_per_call=num,
                        xla='all' if xla else 'none', **settings)
    alone = _learner(case, updates_per_call=1, **settings)
    step_alone = eager.eagerly()(alone.step)
    for seed in range(2):
      data = _transitions(case, num, seed)
      weights = np.random.default_rng(seed).uniform(
          size=[num, _B]).astype('f')
      found = together.step(together.to_device(data, 5, weights))
      expected = [
          step_alone(alone.to_device(
              structs.Transition(*[x[i] for x in data]), 5 if i == 0 else 0,
              weights[i])) for i in range(num)]
      self.assertAllClose(found.errors, [e.errors for e in expected],
                          rtol=1e-4, atol=1e-5)
      self.assertEqual(
          set(found.scalars), set().union(*[e.scalars for e in expected]))
      for name, value in found.scalars.items():
        self.assertAllClose(
            value, np.mean([e.scalars[name] for e in expected
                            if name in e.scalars]),
            rtol=1e-4, atol=1e-5, msg=name)
      for one, other in zip(self._state(together), self._state(alone),
                            strict=True):
        self.assertAllClose(one, other, rtol=1e-5, atol=1e-5)
    self.assertEqual((together.num_updates, together.num_env_frames), (6, 10))
    self.assertEqual((alone.num_updates, alone.num_env_frames), (6, 10))
    self.assertEqual(together.weights().version, 6)

  # Those of the others are compared in loops of updates.
  @parameterized.parameters('td3', 'sac', 'ddpg')
  @pytest.mark.slow
  def test_compiled_updates_are_the_eager_ones(self, case):
    compiled, other = _learner(case), _learner(case)
    step_eagerly = eager.eagerly()(self._step)
    for seed in range(2):  # The policy of TD3 learns in one of them.
      found = self._step(compiled, case, seed=seed)
      expected = step_eagerly(other, case, seed=seed)
      self.assertAllClose(found[:2], expected[:2], rtol=1e-4, atol=1e-5)
    for one, two in zip(self._state(compiled), self._state(other),
                        strict=True):
      self.assertAllClose(one, two, rtol=1e-5, atol=1e-5)

  @pytest.mark.slow
  @eager.eagerly()
  def test_what_is_delayed_in_td3_does_not_move(self):
    learner = _learner('td3', policy_delay=3, target_update_rate=0.5)
    algorithm = learner.algorithm
    optimizer = lambda group: [
        v.numpy() for v in learner._optimizers[group].optimizer.variables]
    watched = lambda: [
        *optimizer('policy'),
        *[v.numpy() for v in (*algorithm.groups['policy'],
                              *algorithm.targets)]]
    critic = lambda: [v.numpy() for v in algorithm.groups['critic']]
    for update in range(7):
      before, critic_before = watched(), critic()
      steps_before = optimizer('critic')
      scalars = self._step(learner, 'td3', seed=update).scalars
      is_due = update % 3 == 0
      equal = [np.array_equal(b, a) for b, a in zip(before, watched())]
      self.assertEqual(all(equal), not is_due)
      self.assertFalse(all(np.array_equal(b, a) for b, a in zip(
          critic_before, critic())))
      self.assertFalse(all(np.array_equal(b, a) for b, a in zip(
          steps_before, optimizer('critic'))))
      self.assertTrue(np.isfinite(list(scalars.values())).all())
      self.assertContainsSubset(['critic_loss', 'mean_q'], scalars)
      for name in ('policy_loss', 'policy/gradient_norm',
                   'policy/learning_rate'):
        self.assertEqual(name in scalars, is_due, name)

  @pytest.mark.slow
  @eager.eagerly()
  def test_ddpg_is_td3_with_one_critic_and_neither_delay_nor_noise(self):
    ddpg = _learner('ddpg')
    td3 = _learner('td3', num_critics=1, policy_delay=1, target_noise=0.,
                   exploration_noise=0.1)
    for update in range(5):
      one, other = (self._step(x, x.algorithm and case, seed=update)
                    for x, case in ((ddpg, 'ddpg'), (td3, 'td3')))
      self.assertAllClose(one.errors, other.errors, rtol=1e-6)
      self.assertEqual(set(one.scalars), set(other.scalars))
    for one, other in zip(self._state(ddpg), self._state(td3), strict=True):
      self.assertAllClose(one, other, rtol=1e-6, atol=1e-7)

  @parameterized.named_parameters(
      ('ddqn', 'ddqn', 2), ('ddpg', 'ddpg', 1), ('td3', 'td3', 2),
      ('sac', 'sac', 1), ('sac_period', 'sac', 3),
      ('sac_discrete', 'sac_discrete', 1), ('mpo', 'mpo', 3),
      ('mpo_discrete', 'mpo_discrete', 2))
  @pytest.mark.slow
  @eager.eagerly()
  def test_targets_follow_after_the_update(self, case, period):
    settings = dict(policy_delay=2) if case == 'td3' else (
        {} if case == 'ddpg' else dict(target_update_period=period))
    learner = _learner(case, target_update_rate=0.3, **settings)
    algorithm = learner.algorithm
    follows = list(algorithm.agent.variables) if case not in (
        'sac', 'sac_discrete') else []
    if case != 'ddqn':
      follows += algorithm.groups['critic']
    for update in range(1, 7):
      before = [v.numpy() for v in algorithm.targets]
      epsilon = float(algorithm.agent.epsilon)
      self._step(learner, case, seed=update)
      # TD3's targets move when its policy learns: first in the first update.
      is_due = (update - 1 if case == 'td3' else update) % period == 0
      for target, old, online in zip(algorithm.targets, before, follows,
                                     strict=True):
        rate = 0.3 if is_due else 0.0
        online = (epsilon if online is algorithm.agent.epsilon
                  else online.numpy())
        self.assertAllClose(target, (1 - rate) * old + rate * online,
                            rtol=1e-6, atol=1e-6)

  @parameterized.named_parameters(*zip(_DEFAULTS, _DEFAULTS))
  @pytest.mark.slow
  @eager.eagerly()
  def test_random_actions_in_the_warm_up_only(self, case):
    settings = (dict(exploration_epsilon_begin=.8, exploration_epsilon_end=.1,
                     exploration_fraction=.5) if case == 'ddqn' else {})
    learner = setup.make_learner(_config(case, **settings), _spec(case))
    found = [float(learner.agent.epsilon)]
    for num_frames in (100, 150, 240, 20):
      self._step(learner, case, num_frames=num_frames)
      found.append(float(learner.agent.epsilon))
    # From .8 at frame 0 to .1 at frame 500.
    self.assertAllClose(found, [1, .66, .45, .114, .1] if case == 'ddqn'
                        else [1, 0, 0, 0, 0])

  @parameterized.parameters(
      (.5, .8, .15, [.4, .2, .15, .15]),
      (.999, 1., .05, [.999, .998001, .997002999]))
  @eager.eagerly()
  def test_epsilon_of_ddqn_that_decays_by_update(
      self, decay, begin, end, expected):
    learner = setup.make_learner(_config(
        'ddqn', exploration_decay=decay, exploration_epsilon_begin=begin,
        exploration_epsilon_end=end), _spec('ddqn'))
    found = []
    for _ in expected:
      self._step(learner, 'ddqn', num_frames=1000)
      found.append(float(learner.agent.epsilon))
    self.assertAllClose(found, expected)

  @eager.eagerly()
  def test_a_ladder_takes_the_place_of_epsilon(self):
    learner = setup.make_learner(
        _config('ddqn', exploration_ladder=True), _spec('ddqn'))
    self.assertEqual(learner.agent.epsilon, 1)  # In the warm-up.
    self.assertNotIn('epsilon', self._step(learner, 'ddqn').scalars)
    self.assertEqual(learner.agent.epsilon, 0)

  @parameterized.parameters(*_DEFAULTS)
  @pytest.mark.storm
  def test_published_weights_end_the_warm_up(self, case):
    settings = (dict(exploration_epsilon_begin=0., exploration_epsilon_end=0.)
                if case == 'ddqn' else dict(exploration_noise=0.)
                if case in ('ddpg', 'td3') else {})
    config = _config(case, **settings)
    learner = setup.make_learner(config, _spec(case))
    make = lambda greedy: policies.AgentPolicy(
        algorithms.make_agent(config, _spec(case), seed=7), greedy)
    policy, greedy = make(False), make(True)
    num_envs = 400
    act = lambda policy: policy.step(
        np.zeros([num_envs, *_CASES[case][1].array.shape],
                 _CASES[case][1].array.dtype),
        structs.StepOutput(
            np.zeros([num_envs], 'f'), structs.NO_INFO,
            np.zeros([num_envs], bool), np.ones([num_envs, 3], 'f')),
        ())[0].action
    for each in (policy, greedy):
      each.refresh(learner.weights())
    random, best = act(policy), act(greedy)
    self.assertAllEqual(best, act(greedy))
    self.assertAllEqual(best, np.broadcast_to(best[:1], best.shape))
    if _CASES[case][1].size:  # Uniform: its standard deviation is 1 / sqrt(3).
      self.assertAllClose(np.std(random, 0), [3**-.5] * 2, atol=.05)
      self.assertBetween(np.max(np.abs(random)), .9, 1)
    else:
      self.assertAllClose(np.bincount(random, minlength=4) / num_envs,
                          [.25] * 4, rtol=0, atol=.09)
    self._step(learner, case)
    for each in (policy, greedy):
      self.assertEqual(each.refresh(learner.weights()), 1)
    self.assertAllEqual(act(greedy), act(greedy))
    is_random = len(np.unique(act(policy), axis=0)) > 1
    self.assertEqual(is_random, case.startswith(('sac', 'mpo')))
    if not is_random:
      self.assertAllEqual(act(policy), act(greedy))

  @parameterized.named_parameters(
      ('ddqn', 'ddqn', dict(), dict(learning_rate=.01)),
      ('td3', 'td3', dict(critic_learning_rate=.02),
       {'critic/learning_rate': .02, 'policy/learning_rate': .01}),
      ('sac', 'sac', dict(), {
          'critic/learning_rate': .01, 'policy/learning_rate': .01,
          'temperature/learning_rate': .0003}),
      ('mpo', 'mpo',
       dict(critic_learning_rate=.02, temperature_learning_rate=.5), {
          'critic/learning_rate': .02, 'policy/learning_rate': .01,
          'duals/learning_rate': .5}))
  @pytest.mark.storm
  @eager.eagerly()
  def test_learning_rates(self, case, settings, expected):
    learner = _learner(case, **settings)
    for update in range(3):  # They are constant.
      scalars = self._step(learner, case, num_frames=300).scalars
      if case == 'td3' and update == 1:
        continue  # The policy is not due.
      for name, rate in expected.items():
        self.assertAllClose(scalars[name], rate, rtol=1e-6)
    # The first update of Adam is as large as its rate.
    learner = _learner(case, **settings)
    groups = learner.algorithm.groups
    before = {group: [v.numpy() for v in groups[group]] for group in groups}
    self._step(learner, case)
    for group, variables in groups.items():
      rate = expected.get(f'{group}/learning_rate', .01)
      moved = max(np.max(np.abs(v.numpy() - b))
                  for v, b in zip(variables, before[group], strict=True))
      self.assertAllClose(moved, rate, rtol=1e-2)

  @parameterized.parameters(False, True)
  @eager.eagerly()
  def test_deviations_of_mpo_may_be_the_same_for_all_observations(self, same):
    settings = dict(scale_from_state=not same)
    self.assertEqual('scale_from_state=False' in algorithms.describe(
        _config('mpo', **settings), _spec('mpo')), same)
    learner = _learner('mpo', **settings)
    observations = _transitions('mpo').observation
    params = lambda: np.split(
        learner.algorithm.agent.params(observations).numpy(), 2, axis=-1)
    means, scales = params()
    self.assertGreater(np.ptp(means, axis=0).min(), 0)
    self.assertEqual(np.ptp(scales, axis=0).max() == 0, same)
    self._step(learner, 'mpo')
    self.assertGreater(np.abs(params()[1] - scales).min(), 0)
    self.assertEqual(np.ptp(params()[1], axis=0).max() == 0, same)

  @eager.eagerly()
  def test_duals_of_mpo_are_projected(self):
    learner = _learner('mpo', temperature_learning_rate=1000.)
    self._step(learner, 'mpo')
    duals = np.concatenate([
        np.ravel(v.numpy()) for v in learner.algorithm.groups['duals']])
    self.assertAllClose(np.min(duals), -18)

  @parameterized.named_parameters(*zip(_DEFAULTS, _DEFAULTS))
  def test_all_that_a_checkpoint_must_hold(self, case):
    learner = _learner(case)
    ids = [id(v) for kind in learner.state.values() for v in kind]
    self.assertLen(set(ids), len(ids))
    algorithm = learner.algorithm
    for variable in (*algorithm.agent.variables, *algorithm.targets, *[
        v for group in algorithm.groups.values() for v in group]):
      self.assertIn(id(variable), ids)
    # Adam has two moments of each variable, and two numbers for each group.
    num_trained = sum(map(len, algorithm.groups.values()))
    self.assertLen(learner.state['optimizer'],
                   2 * num_trained + 2 * len(algorithm.groups))
    # Only the policy is published.
    self.assertEqual([v.shape for v in learner.weights().values],
                     [v.shape for v in algorithm.agent.variables])


class MakeTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.product(case=('ddpg', 'td3'), noise=(0., .2, .3))
  def test_exploration_noise(self, case, noise):
    agent = algorithms.make_agent(
        _config(case, exploration_noise=noise), _spec(case), seed=1)
    agent.set_epsilon(0.)
    actions = agent.explore(
        tf.zeros([4000, 2]), tf.constant([[1, 2], [3, 4], [5, 6]]))
    self.assertAllClose(np.std(actions, 0), [noise] * 2, atol=.02)

  @parameterized.named_parameters(*zip(_DEFAULTS, _DEFAULTS))
  def test_instances_share_nothing(self, case):
    make = lambda seed: algorithms.make(_config(case), _spec(case), seed)
    first, same, other = make(1), make(1), make(2)
    all_of = lambda algorithm: [
        v for vs in (*algorithm.groups.values(), algorithm.targets)
        for v in vs]
    ids = [id(v) for x in (first, same, other) for v in all_of(x)]
    self.assertLen(set(ids), len(ids))
    for one, two in zip(all_of(first), all_of(same), strict=True):
      self.assertAllEqual(one, two)
    self.assertNotAllClose(all_of(first)[0], all_of(other)[0])

  def test_a_target_begins_as_its_network(self):
    network, copy = (
        tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(2)])
        for _ in range(2))
    self.assertNotAllClose(network.variables[0], copy.variables[0])
    target = base.Target(copy, network)
    for one, two in zip(target.variables, network.variables, strict=True):
      self.assertAllEqual(one, two)

  @parameterized.parameters('td3', 'sac', 'sac_discrete', 'mpo_two_critics')
  def test_critics_begin_different_and_targets_equal(self, case):
    algorithm = algorithms.make(_config(case), _spec(case), 1)
    first, second = (algorithm.groups['critic'][i].numpy() for i in (0, 4))
    self.assertNotAllClose(first, second)
    targets = [v for v in algorithm.targets if v.shape.rank]
    online = ([] if 'sac' in case else algorithm.groups['policy']) + (
        algorithm.groups['critic'])
    for target, variable in zip(targets, online, strict=True):
      self.assertAllEqual(target, variable)

  @parameterized.named_parameters(
      ('mpo', 'mpo', [[.5, .5], [3, 3], 1, 1]),
      ('mpo_exact', 'mpo_exact', [[.5, .5], [3, 3]]),
      ('mpo_discrete', 'mpo_discrete', [.5, 1]))
  def test_duals_begin_at_the_given_values(self, case, expected):
    settings = {'initial_temperature': 1.} if 'exact' not in case else {}
    if 'discrete' not in case:
      settings['initial_scale_multiplier'] = 3.
    algorithm = algorithms.make(_config(
        case, initial_mean_multiplier=.5, **settings), _spec(case), 1)
    duals = algorithm.groups['duals']
    self.assertLen(duals, len(expected))
    for dual, value in zip(duals, expected):
      self.assertAllClose(np.log1p(np.exp(dual.numpy())), value, rtol=1e-5)

  @parameterized.parameters(
      ('ddqn', _BOX, 'needs discrete actions of one part, but the level has '
       'continuous actions of 2 numbers: use --algorithm=impala, appo, sac, '
       'td3, ddpg or mpo.'),
      ('ddqn', _PARTS, 'needs discrete actions of one part, but the level has '
       'discrete actions of several parts, 3 x 2: use --algorithm=impala '
       'or appo.'),
      ('ddpg', _DISCRETE, 'needs continuous actions, but the level has 4 '
       'discrete actions: use --algorithm=impala, appo, ddqn, sac or mpo.'),
      ('td3', _PARTS, 'needs continuous actions, but the level has discrete '
       'actions of several parts, 3 x 2: use --algorithm=impala '
       'or appo.'),
      ('sac', _PARTS, 'needs discrete actions of one part'),
      ('mpo', _PARTS, 'needs discrete actions of one part'))
  def test_actions_that_do_not_fit(self, algorithm, actions, text):
    spec = structs.EnvironmentSpec(_OBSERVATION, actions, 1)
    for make in (algorithms.make, algorithms.make_agent):
      with self.assertRaises(errors.ConfigError) as caught:
        make(config_lib.Config(algorithm=algorithm, agent='mlp'), spec, 1)
      self.assertStartsWith(str(caught.exception),
                            f'--algorithm={algorithm} {text}')

  @parameterized.named_parameters(*zip(_DEFAULTS, _DEFAULTS))
  def test_dictionaries_of_goals(self, case):
    """Nothing but a reward function sees what was achieved."""
    part = structs.ArraySpec((3,), np.dtype(np.float32))
    spec = structs.EnvironmentSpec(
        {'observation': part, 'achieved_goal': part, 'desired_goal': part},
        _CASES[case][1], 1)
    algorithm = algorithms.make(_config(case), spec, 1)

    def errors_of(**changes):
      t = _transitions(case)
      rng = np.random.default_rng(1)
      make = lambda: {name: rng.normal(size=(_B, 3)).astype('f') + changes.get(
          name, 0) for name in ('achieved_goal', 'desired_goal', 'observation')}
      return _loss(algorithm, t._replace(
          observation=make(), next_observation=make())).errors

    self.assertAllEqual(errors_of(), errors_of(achieved_goal=5))
    for name in ('observation', 'desired_goal'):
      self.assertNotAllClose(errors_of(), errors_of(**{name: 5}))

  @parameterized.parameters(('shallow', 24), ('nature', 36))
  @pytest.mark.slow
  def test_frames_and_actions(self, network, side):
    frame = structs.ArraySpec((side, side, 3), np.dtype(np.uint8))
    rng = np.random.default_rng(0)
    for observation in (frame, {'frame': frame, 'speed': _OBSERVATION}):
      spec = structs.EnvironmentSpec(observation, _BOX, 1)
      algorithm = algorithms.make(_config('sac', agent=network), spec, 1)
      seen = [{'frame': rng.integers(256, size=(_B, side, side, 3),
                                     dtype='u1'),
               'speed': rng.normal(size=(_B, 3)).astype('f')}
              for _ in range(2)]
      if observation is frame:
        seen = [part['frame'] for part in seen]
      data = _transitions('sac')._replace(
          observation=seen[0], next_observation=seen[1])
      loss = _loss(algorithm, data)
      self.assertAllEqual(tf.math.is_finite(list(loss.by_group.values())),
                          [True] * 3)

  def test_agents_of_critics_have_no_baseline(self):
    for case in _DEFAULTS:
      agent = algorithms.make_agent(_config(case), _spec(case), 1)
      self.assertEqual(agent.output_spec, structs.AgentOutput(
          _CASES[case][1].array, (), ()))
      self.assertEqual(agent.initial_state(2), ())

  def test_no_epsilon_without_one(self):
    agent = factory.make_agent('mlp', _OBSERVATION, _BOX, seed=1)
    with self.assertRaisesRegex(ValueError, 'no epsilon'):
      agent.set_epsilon(0.5)


# See `mutations.py`.
MUTATIONS = (
    dict(file='algorithms/ddqn',
         catches='test_logged_values_are_not_rescaled', rows=(
        ('rescaled values are logged', 'q_learning.not_rescaled(q)', 'q'),)),
    dict(file='algorithms/ddqn',
         catches='test_losses_errors_and_gradients_rescaled_weighted', rows=(
        ('values of the target not scaled back',
         'q_learning.not_rescaled(value_t)',
         'value_t'),
        ('rewards rescaled',
         'seen.reward, seen.discount, q_learning.not_rescaled(value_t)',
         'q_learning.rescaled(seen.reward), seen.discount, '
         'q_learning.not_rescaled(value_t)'),
        ('target not rescaled',
         'y = q_learning.rescaled(q_learning.td_targets(\n          '
         'seen.reward, seen.discount, q_learning.not_rescaled(value_t)))',
         'y = q_learning.td_targets(\n          seen.reward, '
         'seen.discount, q_learning.not_rescaled(value_t))'),
    )),
    dict(file='learning/learner',
         catches='test_all_that_a_checkpoint_must_hold_ddqn', rows=(
        ('targets not saved', "'targets': self.algorithm.targets,",
         "'targets': [],"),
    )),
    dict(file='learning/learner',
         catches='test_all_that_a_checkpoint_must_hold_td3', rows=(
        ('optimizer of the first group saved only',
         'for group in self.algorithm.groups for variable',
         'for group in list(self.algorithm.groups)[:1] for variable'),
    )),
    dict(file='learning/learner',
         catches='test_updates_of_one_call_are_those_of_single_calls_td3',
         rows=(
        ('errors of another update',
         'lambda array, value: array.write(index, value), outputs,',
         'lambda array, value: array.write(\n'
         '              self.updates_per_call - 1 - index, value), outputs,'),
    )),
    dict(file='algorithms/base',
         catches='test_critics_begin_different_and_targets_equal', rows=(
        ('all critics of one seed', 'self._critics = [make_critic(agent, i)',
         'self._critics = [make_critic(agent, 0)'),
        ('first critic learns only', 'v for critic in self._critics for v',
         'v for critic in self._critics[:1] for v'),
        ('targets of the first critic saved only',
         'v for target in self._targets for v',
         'v for target in self._targets[:1] for v'),
    )),
    dict(file='algorithms/base',
         catches='test_a_target_begins_as_its_network', rows=(
        ('targets begin elsewhere', 'self.follow(1.0)', 'self.follow(0.0)'),
    )),
    dict(file='algorithms/base',
         catches='test_targets_follow_after_the_update_td3', rows=(
        ('first target moves only',
         'for target in self._targets:\n'
         '      target.follow',
         'for target in self._targets[:1]:\n'
         '      target.follow'),
    )),
    dict(file='algorithms/base',
         catches='test_losses_errors_and_gradients_td3_three_critics_weighted',
         rows=(
        ('values of the critics as those of their targets',
         'q.model(self._input(q.model, observation), action)\n'
         '        for q in self._targets',
         'q(self._input(q, observation), action)\n'
         '        for q in self._critics'),
    )),
    dict(file='algorithms/ddqn',
         catches='test_losses_errors_and_gradients_ddqn_weighted', rows=(
        ('online network instead of the target', 'self._target.model.params(',
         'self.agent.params('),
        ('double Q-learning the other way round',
         'if settings.double_q else',
         'if not settings.double_q else'),
        ('weights left out',
         'q, y, seen.critic_weights, settings',
         'q, y, None, settings'),
        ('observation and next observation swapped',
         'self.agent.params(seen.critic.now), seen.action',
         'self.agent.params(seen.critic.next), seen.action'),
    )),
    dict(file='algorithms/ddqn',
         catches='test_losses_errors_and_gradients_dueling_huber_weighted',
         rows=(
        ('Huber loss left out',
         'settings.huber_delta or None',
         'None'),
    )),
    dict(file='algorithms/ddqn',
         catches='test_random_actions_in_the_warm_up_only_ddqn', rows=(
        ('begin and end of epsilon swapped',
         '(settings.exploration_epsilon_begin * (1.0 - share)\n'
         '            + settings.exploration_epsilon_end * share)',
         '(settings.exploration_epsilon_end * (1.0 - share)\n'
         '            + settings.exploration_epsilon_begin * share)'),
        ('epsilon falls beyond its end',
         '/ max(self._exploration_frames, 1.0), 1.0)',
         '/ max(self._exploration_frames, 1.0), 9.0)'),
    )),
    dict(file='algorithms/ddqn',
         catches='test_epsilon_of_ddqn_that_decays_by_update', rows=(
        ('epsilon that decays begins anew',
         'tf.where(progress.num_updates == 1,',
         'tf.where(progress.num_updates >= 1,'),
        ('epsilon that decays without an end',
         'tf.maximum(epsilon * settings.exploration_decay,\n'
         '                        settings.exploration_epsilon_end)',
         'epsilon * settings.exploration_decay'),
        ('exploration not published',
         '    self.agent.set_epsilon(self._epsilon(progress))\n', ''),
    )),
    dict(file='algorithms/ddqn',
         catches='test_targets_follow_after_the_update_ddqn', rows=(
        ('targets do not follow',
         'base.follow_if_due(self._settings, progress, self._target)',
         'pass'),
    )),
    dict(file='algorithms/ddpg',
         catches='test_losses_errors_and_gradients_ddpg_weighted', rows=(
        ('online policy instead of the target', 'self._target.model.params(',
         'self.agent.params('),
        ('action not squashed',
         'action = tf.tanh(self.agent.params(seen.policy.now))',
         'action = self.agent.params(seen.policy.now)'),
        ('weights left out of the critic',
         'q_learning.critic_loss(q, y, seen.critic_weights)',
         'q_learning.critic_loss(q, y)'),
        ('action of the replay in the policy loss',
         'self._critics.first(given[0], action)',
         'self._critics.first(given[0], seen.action)'),
    )),
    dict(file='algorithms/ddpg',
         catches='test_random_actions_in_the_warm_up_only_ddpg', rows=(
        ('warm-up without an end', 'self.agent.set_epsilon(0.0)',
         'self.agent.set_epsilon(1.0)'),
    )),
    dict(file='algorithms/ddpg',
         catches='test_targets_follow_after_the_update_ddpg', rows=(
        ('target policy does not follow',
         '    self._target.follow(self._settings.target_update_rate)\n', ''),
        ('target critic does not follow',
         '    self._critics.follow(self._settings.target_update_rate)\n', ''),
    )),
    dict(file='algorithms/td3',
         catches='test_targets_follow_after_the_update_td3', rows=(
        ('targets move without the policy',
         "    if 'policy' in groups:\n"
         '      self._target',
         '    if True:\n'
         '      self._target'),
        ('target policy does not follow',
         '      self._target.follow(self._settings.target_update_rate)\n', ''),
    )),
    dict(file='algorithms/td3',
         catches='test_what_is_delayed_in_td3_does_not_move', rows=(
        ('critics are delayed', "= ('policy',)", "= ('critic',)"),
    )),
    dict(file='algorithms/td3',
         catches='test_losses_errors_and_gradients_td3_weighted', rows=(
        ('noise of the wrong size', 'noise = settings.target_noise *',
         'noise ='),
        ('one noise for all', 'tf.shape(action_t), seed)',
         '[1, 1], seed) + 0 * action_t'),
        ('noise not clipped', 'settings.target_noise_clip)', '1e9)'),
        ('online policy instead of the target', 'self._target.model.params(',
         'self.agent.params('),
        ('mean error instead of error of the smallest',
         'q_learning.smallest(q)[tf.newaxis], y)',
         'q, y)'),
        ('smallest error instead of error of the smallest',
         'q_learning.smallest(q)[tf.newaxis], y)',
         'q_learning.smallest(tf.abs(q - y))[tf.newaxis], tf.zeros_like(y))'),
    )),
    dict(file='algorithms/td3',
         catches='test_losses_errors_and_gradients_td3_three_critics_weighted',
         rows=(
        ('mean of the critics in the policy loss',
         'self._critics.first(given[0], action), seen.weights)',
         'tf.reduce_mean(self._critics.values(\n              '
         'given, action), 0), seen.weights)'),
    )),
    dict(file='algorithms/td3',
         catches='test_td3_computes_no_policy_loss_that_is_not_due', rows=(
        ('policy loss computed where it is not due',
         "if 'policy' in groups:\n"
         '      action',
         'if True:\n'
         '      action'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac_weighted', rows=(
        ('entropy outside of the discount',
         'action_t)), log_prob_t, temperature)',
         'action_t)), log_prob_t / .9, temperature)'),
        ('online critics instead of the targets',
         'self._critics.target_values(\n            seen.target.next, '
         'action_t)',
         'self._critics.values(\n            seen.target.next, action_t)'),
        ('one seed for both samples',
         'self._sample(params, seeds[1])',
         'self._sample(params, seeds[0])'),
        ('logarithm of another sample',
         'return distributions.tanh_normal(params).sample_and_log_prob(seed)',
         'return tuple(distributions.tanh_normal(params)'
         '.sample_and_log_prob(seed + i)[i] for i in range(2))'),
        ('target entropy of a part for the whole action',
         'settings.target_entropy_per_part * spec.size',
         'settings.target_entropy_per_part'),
        ('first critic in the policy loss',
         'q_learning.smallest(self._critics.values(given, action))',
         'self._critics.first(given[0], action)'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac_zero_weighted', rows=(
        ('a target entropy of 0 counts as not given',
         'settings.target_entropy_per_part * spec.size',
         '(settings.target_entropy_per_part or -1.0) * spec.size'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac_discrete', rows=(
        ('online critics instead of the targets, discrete',
         'self._critics.target_values(seen.target.next)',
         'self._critics.values(seen.target.next)'),
        ('temperature is its own logarithm',
         'temperature = tf.exp(self._log_temperature)',
         'temperature = tf.identity(self._log_temperature)'),
        ('policy at the wrong observation, discrete',
         'logits, logits_t = seen.params(self.agent.params)',
         'logits_t, logits = seen.params(self.agent.params)'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac_discrete_zero_weighted',
         rows=(
        ('weights left out of the temperature',
         'self._target_entropies(seen.policy.now), seen.weights)',
         'self._target_entropies(seen.policy.now))'),
    )),
    dict(file='algorithms/base',
         catches='test_targets_follow_after_the_update_sac_period', rows=(
        ('period ignored', 'num_updates % period == 0', 'num_updates > 0'),
        ('targets move at period + 1', 'num_updates % period == 0',
         'num_updates % (period + 1) == 0'),
        ('period inverted', 'num_updates % period == 0',
         'num_updates % period != 0'),
    )),
    dict(file='algorithms/sac',
         catches='test_targets_follow_after_the_update_sac_discrete', rows=(
        ('targets do not follow',
         'self._settings, progress, self._critics,',
         'self._settings, progress,'),
    )),
    dict(file='algorithms/mpo',
         catches='test_losses_errors_and_gradients_mpo_weighted', rows=(
        ('the KL of the means drives the multipliers of the deviations',
         'mpo.gaussian_kls(online, target),',
         '2 * mpo.gaussian_kls(online, target)[:1],'),
        ('bounds left out of the weights',
         'action_weights + bounds_weights, seen.weights)',
         'action_weights, seen.weights)'),
        ('bounds left out of the duals', '    duals_loss += bounds_loss\n',
         ''),
        ('bounds of means and deviations swapped',
         '(settings.epsilon_mean, settings.epsilon_scale)',
         '(settings.epsilon_scale, settings.epsilon_mean)'),
        ('penalty left out', '      policy_loss += penalty\n',
         ''),
        ('greedy value instead of the mean',
         'value_t = tf.reduce_mean(next_q_t, axis=0)',
         'value_t = tf.reduce_max(next_q_t, axis=0)'),
        ("the policy learns at o'", 'self._samples(\n        seen.target.now',
         'self._samples(\n        seen.target.next'),
        ('the value of o', 'self._samples(\n        seen.target.next',
         'self._samples(\n        seen.target.now'),
        ('the same noise twice', '-(-num_samples // 4), seeds[1])',
         '-(-num_samples // 4), seeds[0])'),
        ('samples of the online policy',
         'distributions.normal(self._target.model.params(',
         'distributions.normal(self.agent.params('),
    )),
    dict(file='algorithms/mpo',
         catches='test_duals_of_mpo_are_projected', rows=(
        ('duals not projected',
         '    for dual in self._duals.values():\n'
         '      dual.assign(mpo.projected_dual(dual))\n',
         ''),
    )),
    dict(file='algorithms/mpo',
         catches='test_losses_errors_and_gradients_mpo_discrete_weighted',
         rows=(
        ('online policy instead of the target',
         'map(self._target.model.params, seen.target)',
         'map(self.agent.params, seen.target)'),
        ("the policy learns at o', discrete", 'q_t, next_q_t = (',
         'next_q_t, q_t = ('),
        ('penalty left out, discrete', 'return value_t, policy_loss + penalty,',
         'return value_t, policy_loss,'),
        ('weights of the replay left out',
         'return action_weights * importance_weights',
         'return action_weights'),
    )),
    dict(file='algorithms/mpo',
         catches='test_losses_errors_and_gradients_mpo_two_critics_weighted',
         rows=(
        ('actions outside of the bounds for the critic',
         'tf.clip_by_value(actions, -1.0, 1.0)', 'tf.identity(actions)'),
    )),
    dict(file='algorithms/mpo',
         catches='test_duals_begin_at_the_given_values_mpo', rows=(
        ('multipliers begin at softplus of their values',
         'return values + np.log(-np.expm1(-values))', 'return values'),
    )),
    dict(file='algorithms/mpo',
         catches='test_targets_follow_after_the_update_mpo', rows=(
        ('target policy does not follow',
         'self._settings, progress, self._target, ',
         'self._settings, progress, '),
    )),
)


if __name__ == '__main__':
  tf.test.main()
