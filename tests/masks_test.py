# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of action masks: losses, actions, environments, trained agents.

The slow truth of a loss goes row by row, with tables from which the invalid
actions were removed altogether. Gradients are compared with differences of
these losses.
"""

import csv
import dataclasses
import functools

from absl.testing import parameterized
import eager
import fake_environments
import gymnasium
import hypothesis
from hypothesis import strategies as st
import in_numpy
import numpy as np
import pytest
import scalable_agent
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import from_gymnasium
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.modes import export
from scalable_agent.modes import loading
from scalable_agent.networks import masks
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_B = 6
_SEED = (3, 4)
_FLOAT, _BOOL = np.dtype(np.float32), np.dtype(bool)
_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)
_ALGORITHMS = ('impala', 'ddqn', 'sac', 'mpo')
# Name: algorithm, numbers of values, settings.
_CASES = {
    'ddqn': ('ddqn', (4,), {}),
    'dqn': ('ddqn', (4,), dict(double_q=False)),
    'sac': ('sac', (4,), dict(target_entropy_ratio=0.8)),
    'mpo': ('mpo', (4,), dict(num_critics=2)),
    'mpo_exact': ('mpo', (4,), dict(exact_temperature=True)),
    'impala': ('impala', (4,), dict(entropy_cost=0.3)),
    'impala_parts': ('impala', (3, 2), dict(entropy_cost=0.3)),
}


def _config(algorithm, **settings):
  sees = (dict(use_lstm=False, use_last_action_reward=False)
          if algorithm == 'impala' else {})
  return config_lib.Config(**{
      'algorithm': algorithm, 'level_name': 'toy', 'agent': 'mlp',
      'hidden_sizes': '5', 'xla': 'none', 'total_environment_frames': 1000,
      **sees, **settings})


def _spec(num_values):
  return structs.EnvironmentSpec(
      {'action_mask': structs.ArraySpec((sum(num_values),), _BOOL),
       'seen': structs.ArraySpec((3,), _FLOAT)},
      structs.ActionSpec(num_values), 1)


def _make(case, **settings):
  """Returns an algorithm with random weights, also in the targets."""
  algorithm, num_values, of_case = _CASES[case]
  made = algorithms.make(_config(algorithm, **of_case, **settings),
                         _spec(num_values), seed=1)
  rng = np.random.default_rng(0)
  for variables in (*made.groups.values(), made.targets):
    for variable in variables:
      value = rng.normal(size=variable.shape)
      variable.assign(value if variable.shape.rank else 0.5 * value)
  return made


def _masks(rng, shape, num_values):
  """Random masks, bool `[*shape, P]`: never for 1, always for the last."""
  parts = [rng.uniform(size=(*shape, n)) < 0.5 for n in num_values]
  for part in parts:
    part[..., 1] = False
    part[..., -1] = True
  return np.concatenate(parts, -1)


def _valid_actions(rng, mask, num_values):
  """Random valid actions `[...]`, or `[..., N]` for several parts."""
  parts = np.split(mask, np.cumsum(num_values)[:-1], -1)
  chosen = [np.argmax(rng.uniform(size=part.shape) * part, -1)
            for part in parts]
  action = np.stack(chosen, -1) if len(parts) > 1 else chosen[0]
  return action.astype(np.int32)


def _observation(rng, shape, num_values):
  return {'action_mask': _masks(rng, shape, num_values),
          'seen': rng.normal(size=(*shape, 3)).astype('f')}


def _transitions(num_values=(4,), is_over=True):
  rng = np.random.default_rng(0)
  first, then = (_observation(rng, (_B,), num_values) for _ in range(2))
  if is_over:
    then['action_mask'][0] = False  # The end of a game.
  return structs.Transition(
      first, _valid_actions(rng, first['action_mask'], num_values),
      rng.normal(size=_B).astype('f'), np.array([0, .9, .7, .8, 0, .9], 'f'),
      then)


def _loss(algorithm, data):
  return algorithm.loss(tf.nest.map_structure(tf.constant, data), None,
                        tuple(algorithm.groups), tf.constant(_SEED))


def _dense(net, x, activation=lambda x: np.maximum(x, 0)):
  return activation(x @ net[0] + net[1]) @ net[2] + net[3]


def _softmax(x):
  e = np.exp(x - np.max(x))
  return e / np.sum(e)


def _numpy(variables):
  return [v.numpy().astype(np.float64) for v in variables]


class _Truth:
  """The losses of off-policy algorithms, row by row, by group."""

  def __init__(self, algorithm, case, transitions):
    self.name, _, settings = _CASES[case]
    self.settings = _config(self.name, **settings)
    self.groups = {group: _numpy(variables)
                   for group, variables in algorithm.groups.items()}
    self.targets = _numpy([v for v in algorithm.targets if v.shape.rank])
    self.t = transitions

  def losses(self, groups):
    rows = getattr(self, f'_{self.name}')
    return rows(groups)

  def _tables(self, net, observation, are_values=False):
    """A list of tables, which only have the valid actions.

    The policy is uniform if no action is valid: the game is over.
    """
    outputs = _dense(net, observation['seen'])
    return [row[mask] if mask.any() else are_values * row
            for row, mask in zip(outputs, observation['action_mask'])]

  def _smallest(self, nets, observation):
    tables = zip(*[self._tables(nets[i:i + 4], observation, True)
                   for i in range(0, len(nets), 4)])
    return [np.min(row, 0) for row in tables]

  def _chosen(self, net):
    """The values of the actions of the replay."""
    tables = self._tables(net, self.t.observation)
    # The number of an action among those that are valid.
    places = [np.sum(mask[:a]) for mask, a in zip(
        self.t.observation['action_mask'], self.t.action)]
    return np.array([row[place] for row, place in zip(tables, places)])

  def _critic(self, groups, values_t):
    y = self.t.reward + self.t.discount * np.array(values_t)
    nets = groups['critic']
    return np.mean(sum(0.5 * (self._chosen(nets[i:i + 4]) - y)**2
                       for i in range(0, len(nets), 4)))

  def _ddqn(self, groups):
    then = self.t.next_observation
    q_t = self._tables(self.targets, then)
    chooser = (self._tables(self.groups['agent'], then)
               if self.settings.double_q else q_t)
    value_t = [q[np.argmax(c)] for q, c in zip(q_t, chooser)]
    y = self.t.reward + self.t.discount * value_t
    return {'agent': np.mean(0.5 * (self._chosen(groups['agent']) - y)**2)}

  def _sac(self, groups):
    alpha = np.exp(self.groups['temperature'][0])
    rows = lambda net, o: map(_softmax, self._tables(net, o))
    values_t = [np.sum(p * (q - alpha * np.log(p))) for p, q in zip(
        rows(self.groups['policy'], self.t.next_observation),
        self._smallest(self.targets, self.t.next_observation))]
    costs = [np.sum(p * (alpha * np.log(p) - q)) for p, q in zip(
        rows(groups['policy'], self.t.observation),
        self._smallest(self.groups['critic'], self.t.observation))]
    excess = [np.sum(p * np.log(p)) + self.settings.target_entropy_ratio
              * np.log(len(p))
              for p in rows(self.groups['policy'], self.t.observation)]
    return {'critic': self._critic(groups, values_t), 'policy': np.mean(costs),
            'temperature': -groups['temperature'][0] * np.mean(excess)}

  @functools.cached_property
  def _now(self):
    """Probabilities and values by the target networks: constants."""
    return ([_softmax(row) for row in self._tables(
        self.targets[:4], self.t.observation)],
            self._smallest(self.targets[4:], self.t.observation))

  @functools.cached_property
  def _eta(self):
    """The exact temperature, by bisection."""
    (p_t, q_t), low, high = self._now, 1e-6, 1e6
    for _ in range(200):
      eta, kls = np.sqrt(low * high), []
      for q, p in zip(q_t, p_t):
        w = _softmax(np.log(p) + q / eta)
        kls.append(np.sum(w[w > 0] * np.log(w[w > 0] / p[w > 0])))
      low, high = (eta, high) if (
          np.mean(kls) > self.settings.epsilon_temperature) else (low, eta)
    return eta

  def _mpo(self, groups):
    settings, now = self.settings, self.t.observation
    softplus = lambda x: np.log1p(np.exp(x)) + 1e-8
    given, learned = ([softplus(d) for d in of['duals']]
                      for of in (self.groups, groups))
    p_t, q_t = self._now
    next_p_t = [_softmax(row) for row in self._tables(
        self.targets[:4], self.t.next_observation)]
    next_q_t = self._smallest(self.targets[4:], self.t.next_observation)
    dual = 0
    if settings.exact_temperature:
      eta = self._eta
    else:
      eta = given[1]
      dual = learned[1] * (settings.epsilon_temperature + np.mean([
          np.log(np.sum(p * np.exp(q / learned[1])))
          for p, q in zip(p_t, q_t)]))
    weights = [_softmax(np.log(p) + q / eta) for p, q in zip(p_t, q_t)]
    log_p = lambda net: [np.log(_softmax(row))
                         for row in self._tables(net, now)]
    kl = lambda net: np.mean([np.sum(p * (np.log(p) - other))
                              for p, other in zip(p_t, log_p(net))])
    policy = -np.mean([np.sum(w * row) for w, row in zip(
        weights, log_p(groups['policy']))])
    return {'critic': self._critic(groups, [
        np.sum(p * q) for p, q in zip(next_p_t, next_q_t)]),
            'policy': policy + given[0] * kl(groups['policy']),
            'duals': dual + learned[0] * (
                settings.epsilon_mean - kl(self.groups['policy']))}

  def gradients(self, group):
    """The slopes of the loss of a group, one by one."""
    return in_numpy.slopes(self.groups[group], lambda changed: self.losses(
        {**self.groups, group: changed})[group])


class OffPolicyLossTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters('ddqn', 'dqn', 'sac', 'mpo', 'mpo_exact')
  def test_invalid_actions_are_not_in_the_tables(self, case):
    algorithm, transitions = _make(case), _transitions()
    truth = _Truth(algorithm, case, transitions)
    expected = truth.losses(truth.groups)
    with tf.GradientTape(persistent=True) as tape:
      loss = _loss(algorithm, transitions)
    self.assertEqual(set(expected), set(algorithm.groups))
    for group, value in expected.items():
      self.assertAllClose(loss.by_group[group], value, rtol=1e-4, atol=1e-4)
      found = tape.gradient(loss.by_group[group], algorithm.groups[group])
      for one, other in zip(found, truth.gradients(group), strict=True):
        self.assertAllClose(one, other, rtol=2e-3, atol=2e-3)

  @parameterized.parameters('ddqn', 'dqn', 'sac', 'mpo', 'mpo_exact')
  def test_no_gradient_reaches_invalid_actions(self, case):
    algorithm = _make(case)
    with tf.GradientTape(persistent=True) as tape:
      loss = _loss(algorithm, _transitions())
    for group in ('agent', 'policy', 'critic'):
      if group in algorithm.groups:  # Action 1 is never valid.
        kernel, bias = tape.gradient(
            loss.by_group[group], algorithm.groups[group])[-2:]
        self.assertAllEqual(kernel[:, 1], np.zeros([5]))
        self.assertAllEqual(bias[1], 0)
        self.assertNotAllEqual(kernel[:, 3], np.zeros([5]))

  @parameterized.parameters('ddqn', 'sac', 'mpo')
  def test_numbers_of_invalid_actions_have_no_effect(self, case):
    results = []
    for number in (-3., 1e6):
      algorithm = _make(case)
      for variable in (*algorithm.agent.trainable_variables,
                       *algorithm.targets,
                       *algorithm.groups.get('critic', [])):
        if variable.shape == (4,):  # The biases of the last layers.
          variable.assign(np.where([0, 1, 0, 0], number, variable))
      results.append(_loss(algorithm, _transitions(is_over=False)).by_group)
    for group, loss in results[0].items():
      self.assertAllEqual(loss, results[1][group])

  @parameterized.parameters(True, False)
  @eager.eagerly()
  def test_ddqn_with_an_lstm(self, all_known):
    algorithm = _make('ddqn', use_lstm=True, hidden_sizes='3')
    rng = np.random.default_rng(1)
    shape = (5, 2)
    observation = _observation(rng, shape, (4,))
    before = np.concatenate([
        np.ones([1, 2, 4], bool), observation['action_mask'][:-1]])
    done = rng.uniform(size=shape) < 0.3
    discounting = _config('ddqn').discounting
    sequence = structs.Sequence(
        structs.StepOutput(rng.normal(size=shape).astype('f'), structs.NO_INFO,
                           done, observation),
        _valid_actions(rng, before, (4,)), tf.nest.map_structure(
            lambda x: x.numpy(), algorithm.agent.initial_state(2)),
        rng.normal(size=(4, 2)).astype('f'),
        np.where(done[1:], 0, discounting).astype('f'),
        np.repeat(np.arange(1, 5, dtype='i')[:, None], 2, 1),
        np.ones([4, 2], 'f'))
    if not all_known:  # The action before an end was chosen for another entry.
      sequence.known[2, 1] = 0
      observation['action_mask'][2, 1] = [True, False, False, False]
      sequence.actions[3, 1] = 2
    loss = _loss(algorithm, sequence)
    q, q_t = (agent.unroll(
        sequence.actions,
        tf.nest.map_structure(tf.constant, sequence.env_outputs._replace(
            observation={'seen': observation['seen']})),
        agent.initial_state(2))[0].policy.numpy()
              for agent in (algorithm.agent, algorithm._target.model))
    costs = []
    for t, b in np.ndindex(4, 2):
      valid = np.flatnonzero(observation['action_mask'][t + 1, b])
      best = valid[np.argmax(q[t + 1, b, valid])]
      y = sequence.reward[t, b] + (
          0 if done[t + 1, b] else discounting * q_t[t + 1, b, best])
      action = sequence.actions[t + 1, b]
      costs.append(
          sequence.known[t, b] * 0.5 * (q[t, b, action] - y)**2)
    self.assertAllClose(loss.by_group['agent'], np.mean(costs), rtol=1e-4)
    self.assertLess(abs(loss.means['mean_q']), 10)
    self.assertTrue(np.isfinite(loss.errors).all())


class ImpalaLossTest(parameterized.TestCase, tf.test.TestCase):

  def _unroll(self, num_values):
    rng = np.random.default_rng(2)
    shape = (6, 3)
    observation = _observation(rng, shape, num_values)
    mask = observation['action_mask']
    # The action of an entry was chosen at the observation before.
    before = np.concatenate([np.ones_like(mask[:1]), mask[:-1]])
    logits = rng.normal(size=mask.shape).astype('f')
    return structs.Unroll(
        structs.Steps(
            structs.StepOutput(rng.normal(size=shape).astype('f'),
                               structs.NO_INFO, rng.uniform(size=shape) < 0.3,
                               observation, np.zeros(shape, bool)),
            structs.AgentOutput(
                _valid_actions(rng, before, num_values),
                masks.masked(logits, before).numpy(),
                np.zeros(shape, np.float32)), np.zeros(shape, np.float32)),
        structs.Start((), (), (), ()))

  def _truth(self, num_values, unroll, net, given):
    """The loss for a network; `given` computes what is constant."""
    settings = _config('impala', **_CASES['impala'][2])
    outputs, chosen, _ = unroll.steps
    ends = np.cumsum((0, *num_values))

    def evaluate(net):
      hidden = np.tanh(outputs.observation['seen'] @ net[0] + net[1])
      return hidden @ net[2] + net[3], (hidden @ net[4] + net[5])[..., 0]

    def of_step(logits, t, b):
      """Log-prob of the action after observation t, and the entropy."""
      log_prob, entropy = 0, 0
      for i in range(len(num_values)):
        part = slice(ends[i], ends[i + 1])
        mask = outputs.observation['action_mask'][t, b, part]
        p = _softmax(logits[t, b, part][mask])
        action = np.atleast_1d(chosen.action[t + 1, b])[i]
        log_prob += np.log(p[np.sum(mask[:action])])
        entropy -= np.sum(p * np.log(p))
      return log_prob, entropy

    (logits, values), (old_logits, old_values) = evaluate(net), evaluate(given)
    behaviour = chosen.policy[1:].astype(np.float64)
    total = 0
    for b in range(3):
      v, after = old_values[-1, b], old_values[-1, b]
      for t in reversed(range(5)):
        gamma = settings.discounting * (1 - outputs.done[t + 1, b])
        reward = outputs.reward[t + 1, b]
        rho = min(1, np.exp(of_step(old_logits, t, b)[0]
                            - of_step(behaviour, t, b)[0]))
        delta = rho * (reward + gamma * after - old_values[t, b])
        advantage = rho * (reward + gamma * v - old_values[t, b])
        v, after = (old_values[t, b] + delta + gamma * rho * (v - after),
                    old_values[t, b])
        log_prob, entropy = of_step(logits, t, b)
        total += (-log_prob * advantage - settings.entropy_cost * entropy
                  + 0.5 * settings.baseline_cost * (v - values[t, b])**2)
    return total

  @parameterized.parameters('impala', 'impala_parts')
  def test_invalid_actions_are_not_in_the_tables(self, case):
    num_values = _CASES[case][1]
    algorithm = _make(case, reward_clipping='none')
    unroll = self._unroll(num_values)
    net = _numpy(algorithm.groups['agent'])
    truth = functools.partial(self._truth, num_values, unroll)
    with tf.GradientTape() as tape:
      loss = _loss(algorithm, unroll)
    self.assertAllClose(
        loss.by_group['agent'], truth(net, net), rtol=1e-4, atol=1e-4)
    found = tape.gradient(loss.by_group['agent'], algorithm.groups['agent'])
    for one, other in zip(found, in_numpy.slopes(
        net, lambda changed: truth(changed, net)), strict=True):
      self.assertAllClose(one, other, rtol=2e-3, atol=2e-3)
    self.assertAllEqual(found[2][:, 1], np.zeros([5]))
    self.assertAllEqual(found[3][1], 0)


class ActingTest(parameterized.TestCase, tf.test.TestCase):

  def _agent(self, algorithm, num_values=(4,), **settings):
    return algorithms.make_agent(
        _config(algorithm, **settings), _spec(num_values), 1)

  def _steps(self, agent, observation, greedy=False):
    num = len(observation['seen'])
    output, _ = agent.step(
        tf.zeros([num, *agent.action_spec.array.shape], tf.int32),
        structs.StepOutput(tf.zeros([num]), structs.NO_INFO,
                           tf.zeros([num], tf.bool), observation),
        agent.initial_state(num), greedy)
    return output.action.numpy()

  def _assert_valid(self, actions, mask, num_values=(4,)):
    starts = np.cumsum((0, *num_values[:-1]))
    places = actions.reshape(len(mask), -1) + starts
    self.assertTrue(np.take_along_axis(mask, places, -1).all())

  @parameterized.product(algorithm=_ALGORITHMS, epsilon=(0., 0.5, 1.))
  def test_invalid_actions_are_never_chosen(self, algorithm, epsilon):
    agent = self._agent(algorithm)
    if algorithm != 'impala':
      agent.set_epsilon(epsilon)

    @hypothesis.settings(max_examples=15, deadline=None, derandomize=True)
    @hypothesis.given(seed=st.integers(0, 2**31), size=st.floats(0, 1e6))
    def check(seed, size):
      rng = np.random.default_rng(seed)
      for variable in agent.trainable_variables:
        variable.assign(size * rng.normal(size=variable.shape))
      observation = _observation(rng, (200,), (4,))
      observation['action_mask'][:50] = np.eye(4, dtype=bool)[
          rng.integers(4, size=50)]
      mask = observation['action_mask']
      for greedy in (False, True):
        self._assert_valid(self._steps(agent, observation, greedy), mask)

    check()

  def test_parts_of_actions(self):
    agent = self._agent('impala', (3, 2, 4))
    rng = np.random.default_rng(0)
    observation = _observation(rng, (500,), (3, 2, 4))
    for greedy in (False, True):
      self._assert_valid(self._steps(agent, observation, greedy),
                         observation['action_mask'], (3, 2, 4))

  @parameterized.parameters('ddqn', 'sac', 'mpo')
  def test_random_actions_are_uniform_over_the_valid_ones(self, algorithm):
    agent = self._agent(algorithm)
    for variable in agent.trainable_variables:  # Far from uniform.
      variable.assign(tf.random.stateless_normal(variable.shape, _SEED) * 9)
    agent.set_epsilon(1.0)
    num = 9000
    observation = {
        'action_mask': np.tile([True, False, True, True], [num, 1]),
        'seen': np.zeros([num, 3], np.float32)}
    counts = np.bincount(self._steps(agent, observation), minlength=4)
    self.assertAllClose(counts, [3000, 0, 3000, 3000], atol=5 * 45)

  @parameterized.parameters(*_ALGORITHMS)
  def test_actions_are_those_of_the_table_without_invalid_ones(self, algorithm):
    agent = self._agent(algorithm)
    if algorithm != 'impala':
      agent.set_epsilon(0.0)
    rng = np.random.default_rng(0)
    observation = _observation(rng, (100,), (4,))
    all_valid = {**observation, 'action_mask': np.ones([100, 4], bool)}
    params = agent.params(all_valid).numpy()
    self.assertAllEqual(params, agent.params(
        {'seen': observation['seen']}))  # The mask is no feature.
    expected = [
        valid[np.argmax(row[valid])] for row, valid in zip(
            params, map(np.flatnonzero, observation['action_mask']))]
    self.assertAllEqual(
        self._steps(agent, observation, greedy=True), expected)

  def test_sampled_frequencies(self):
    agent = self._agent('impala')
    bias = agent.trainable_variables[3]
    bias.assign([1., 7., 0., -1.])
    num = 10_000
    observation = {
        'action_mask': np.tile([True, False, True, True], [num, 1]),
        'seen': np.zeros([num, 3], np.float32)}
    for variable in agent.trainable_variables[:3]:
      variable.assign(tf.zeros_like(variable))
    counts = np.bincount(self._steps(agent, observation), minlength=4)
    expected = num * _softmax(np.array([1., 0., -1.]))
    self.assertAllClose(counts[[0, 2, 3]], expected, atol=5 * 50)
    self.assertEqual(counts[1], 0)

  def test_nothing_changes_without_a_mask(self):
    spec = structs.EnvironmentSpec(
        {'seen': structs.ArraySpec((3,), _FLOAT)}, structs.ActionSpec((4,)), 1)
    agent = algorithms.make_agent(_config('ddqn'), spec, 1)
    graph = tf.function(agent.params).get_concrete_function(
        {'seen': tf.TensorSpec([None, 3])}).graph
    self.assertNotIn('Select', {op.type for op in graph.get_operations()})
    masked = algorithms.make_agent(_config('ddqn'), _spec((4,)), 1)
    for one, other in zip(agent.variables, masked.variables, strict=True):
      self.assertAllEqual(one, other)
    self.assertNotEqual(
        algorithms.describe(_config('ddqn'), spec),
        algorithms.describe(_config('ddqn'), _spec((4,))))

  def test_masks_of_old_agents_are_features(self):
    spec = _spec((4,))
    spec.observation['action_mask'] = structs.ArraySpec((4,), _FLOAT)
    agent = algorithms.make_agent(_config('ddqn'), spec, 1)
    self.assertEqual(agent.trainable_variables[0].shape, (7, 5))
    self.assertNotIn('with a mask', algorithms.describe(_config('ddqn'), spec))


class TrainedAgentTest(parameterized.TestCase, tf.test.TestCase):
  """Agents with scrambled weights, as users get them."""

  def _make(self, algorithm, num_values=(4,)):
    config, spec = _config(algorithm), _spec(num_values)
    agent = algorithms.make_agent(config, spec, 1)
    rng = np.random.default_rng(0)
    for variable in agent.trainable_variables:
      variable.assign(3 * rng.normal(size=variable.shape))
    if algorithm != 'impala':
      agent.set_epsilon(0.5)
    return config, spec, agent

  def _valid(self, actions, observation):
    mask = np.asarray(observation['action_mask'])
    return mask[np.arange(len(mask)), np.asarray(actions)].all()

  @parameterized.parameters('impala', 'sac')
  @pytest.mark.slow
  def test_policies_and_exports(self, algorithm):
    self._check(algorithm)

  @parameterized.parameters('ddqn', 'mpo')
  @pytest.mark.storm
  def test_policies_and_exports_of_others(self, algorithm):
    self._check(algorithm)

  def _check(self, algorithm):
    config, spec, agent = self._make(algorithm)
    observation = _observation(np.random.default_rng(1), (300,), (4,))
    loaded = loading.LoadedAgent(config, spec, agent, 0)
    module = export.ExportedAgent(agent, spec, False)
    inputs = {f'observation_{name}': tf.constant(part)
              for name, part in observation.items()}
    expected = None
    for greedy in (True, False):
      last, output = np.zeros([300], np.int32), structs.StepOutput(
          np.zeros([300], np.float32), structs.NO_INFO, np.zeros([300], bool),
          observation)
      shared = policies.SharedPolicy(policies.AgentPolicy(
          agent, greedy, state_on_host=True))
      self.addCleanup(shared.close, 9.0)
      actions = {
          'loaded': loaded.step(observation, loaded.initial_state(300),
                                greedy=greedy)[0],
          'integers': loaded.step(
              {**observation, 'action_mask': observation['action_mask'].astype(
                  np.int8)}, loaded.initial_state(300), greedy=greedy)[0],
          'compiled': policies.AgentPolicy(
              agent, greedy, jit_compile=True).step(
                  last, output, agent.initial_state(300))[0].action,
          'shared': shared.step(last, output, agent.initial_state(300)
                                )[0].action,
          'exported': (module.step_greedy if greedy else module.step)(
              **inputs)['action']}
      for name, found in actions.items():
        self.assertTrue(self._valid(found, observation), name)
        if greedy:
          self.assertAllEqual(found, actions['loaded'])
      expected = expected if expected is not None else actions['loaded']
    directory = self.create_tempdir().full_path
    export._add_tflite(module, directory, True)
    runner = tf.lite.Interpreter(
        f'{directory}/agent.tflite').get_signature_runner('step_greedy')
    for row in range(9):
      found = runner(**{name: part[row:row + 1].numpy()
                        for name, part in inputs.items()})['action']
      self.assertEqual(found, expected[row])

  @parameterized.parameters((4,), (3, 2))
  def test_no_valid_action(self, *num_values):
    mask = np.ones([9, sum(num_values)], bool)
    mask[5, -num_values[-1]:] = False
    self.assertAllEqual(
        spaces.has_choice(mask, structs.ActionSpec(num_values)),
        np.arange(9) != 5)

  @parameterized.parameters((4,), (3, 2))
  def test_masks_of_the_caller(self, *num_values):
    loaded = loading.LoadedAgent(*self._make('impala', num_values), 0)
    mask = np.zeros([9, sum(num_values)])
    mask[:, 1] = mask[:, -1] = 1
    mask[5] = 0  # As at the end of an episode.
    observation = {'action_mask': mask, 'seen': np.zeros([9, 3])}
    action, _ = loaded.step(observation, loaded.initial_state(9))
    self.assertTrue((action >= 0).all() and (action < num_values).all())
    for wrong in 0.5, -np.inf, np.nan:
      mask[3, 0] = wrong
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError, '0 for invalid actions'):
        loaded.step(observation, loaded.initial_state(9))

  def test_the_form_of_a_tuple(self):
    spec = structs.EnvironmentSpec(
        {'0': structs.ArraySpec((3,), _FLOAT),
         '1': structs.ArraySpec((2,), _FLOAT)}, structs.ActionSpec((4,)), 1)
    config = _config('impala')
    loaded = loading.LoadedAgent(
        config, spec, algorithms.make_agent(config, spec, 1), 0)
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    state = loaded.initial_state(5)
    self.assertAllEqual(
        loaded.step(parts, state, greedy=True)[0],
        loaded.step({'1': parts[1], '0': parts[0]}, state, greedy=True)[0])
    with self.assertRaisesRegex(errors.EnvironmentSpecError, 'of 0, 1'):
      loaded.step(parts[:1], state)


class EnvironmentTest(parameterized.TestCase):

  def make(self, level, num=2):
    env = environments.make_vec(
        [f'fake/{level}-v0'] * num, list(range(num)), _SETTINGS)
    self.addCleanup(env.close)
    return env

  def test_actions_are_not_repeated(self):
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, 'a repeated action may be invalid'):
      environments.make_vec(['fake/Masked-v0'], [1], dataclasses.replace(
          _SETTINGS, num_action_repeats=2))

  def test_masks_are_bool(self):
    env = self.make('Masked')
    self.assertEqual(env.spec.observation['action_mask'],
                     structs.ArraySpec((5,), _BOOL))
    serial = gymnasium.make('fake/Masked-v0')
    expected, _ = serial.reset(seed=1)
    output = env.initial()
    found = output.observation['action_mask']
    self.assertEqual(found.dtype, bool)
    self.assertEqual(found[1].tolist(),
                     expected['action_mask'].astype(bool).tolist())
    rng = np.random.default_rng(0)
    for _ in range(4):
      output = env.step(_valid_actions(
          rng, output.observation['action_mask'], (5,)))
    # No action needs to be valid at the end of a game.
    self.assertTrue(output.done.all())
    self.assertFalse(output.last_observation['action_mask'].any())
    self.assertTrue(output.observation['action_mask'].any(-1).all())

  @parameterized.parameters(
      ('MaskedParts', (3, 2)), ('MaskedBits', (2, 2, 2, 2)))
  def test_masks_of_parts(self, level, num_values):
    env = self.make(level)
    self.assertEqual(env.spec.observation['action_mask'],
                     structs.ArraySpec((sum(num_values),), _BOOL))
    rng, output = np.random.default_rng(0), env.initial()
    for _ in range(20):  # Invalid actions would raise.
      output = env.step(_valid_actions(
          rng, output.observation['action_mask'], num_values))

  @parameterized.parameters(
      ('NothingValid', r'environment 0 \(fake/NothingValid-v0\) raised '
       r'ValueError: no action is valid: the action_mask is \[0, 0, 0, 0, 0\]'),
      ('OneInvalidPart', r'environment 0 .*no action is valid: the '
       r'action_mask is \[.*0, 0\]'),
      ('MaskOfTwos', 'environment 0 .*an action_mask has the number 2'),
      ('ShortMask', 'environment 0 .*an action_mask has 4 numbers, but'))
  def test_wrong_masks(self, level, message):
    env = self.make(level, 1)
    num_values = env.spec.action.num_values
    rng = np.random.default_rng(0)
    with self.assertRaisesRegex(errors.EnvironmentProcessError, message):
      output = env.initial()
      for _ in range(2):
        output = env.step(_valid_actions(
            rng, output.observation['action_mask'], num_values))

  @parameterized.parameters(
      ('MaskOfOtherSize', r'MultiBinary\(4\), but must have .* of 5 numbers'),
      ('MaskOfOtherKind', 'Box.* but must have a MultiBinary or a Box of 0'),
      ('OnlyMask', 'has observations Dict'),
      ('MaskOfBox', 'continuous actions, which cannot be masked'))
  def test_spaces_that_are_no_masks(self, level, message):
    with self.assertRaisesRegex(errors.EnvironmentSpecError, message):
      self.make(level)

  @parameterized.parameters('NEXT_STEP', 'SAME_STEP')
  def test_a_vector_of_the_caller(self, mode):
    vector = gymnasium.vector.SyncVectorEnv(
        [fake_environments.Masked] * 2,
        autoreset_mode=getattr(gymnasium.vector.AutoresetMode, mode))
    env = from_gymnasium.wrap(vector)
    output, rng = env.initial(), np.random.default_rng(0)
    for _ in range(11):
      output = env.step(_valid_actions(
          rng, output.observation['action_mask'], (5,)))
    for env in (
        fake_environments.NothingValid(),
        gymnasium.vector.SyncVectorEnv([fake_environments.NothingValid] * 2)):
      wrong = from_gymnasium.wrap(env)
      output = wrong.initial()
      with self.assertRaisesRegex(ValueError, 'no action is valid'):
        for _ in range(2):
          output = wrong.step(_valid_actions(
              rng, output.observation['action_mask'], (5,)))


class LevelTest(parameterized.TestCase, tf.test.TestCase):
  """From training to exports. An invalid action would raise an error."""

  @parameterized.parameters(
      ('impala', dict(
          entropy_cost=0.01, unroll_length=8, learning_rate=0.01,
          optimizer='adam', use_lstm=False, use_last_action_reward=False)),
      ('ddqn', dict(target_update_period=20)),
      ('sac', dict(target_entropy_ratio=0.1)),
      ('mpo', dict(epsilon_mean=0.1)))
  @pytest.mark.storm
  def test_learns(self, algorithm, settings):
    logdir = self._train(algorithm, **settings)
    with open(f'{logdir}/episodes.csv', encoding='utf-8') as f:
      first = [float(row['episode_return']) for row in csv.DictReader(f)][:40]
    # A random valid action is right in about two of five steps.
    self.assertBetween(np.mean(first), 1.0, 2.9)
    loaded = scalable_agent.load(logdir)
    self.assertEqual(loaded.play(num_episodes=20), [4.0] * 20)
    self.assertEqual(loaded.play(fake_environments.Masked(), 5), [4.0] * 5)
    self.assertGreater(np.mean(loaded.play(num_episodes=20, greedy=False)), 3.)

  def _train(self, algorithm, **settings):
    """Trains; returns the log directory."""
    logdir = self.create_tempdir().full_path
    if algorithm != 'impala':
      settings = {'min_replay_steps': 200, 'hidden_sizes': '32',
                  'updates_per_call': 8, 'learning_rate': 0.01,
                  'total_environment_frames': 3000, **settings}
    scalable_agent.train(config_lib.Config(**{
        'algorithm': algorithm, 'level_name': 'fake/Masked-v0',
        'logdir': logdir, 'num_actors': 8, 'batch_size': 8, 'xla': 'none',
        'discounting': 0.5, 'total_environment_frames': 12_000, **settings}))
    return logdir


MUTATIONS = (
    dict(file='losses/batches', catches='test_ddqn_with_an_lstm1', rows=(
        ('values of unknown steps count',
         'return tf.math.multiply_no_nan(values, tf.reshape(self.known, [-1]))',
         'return values'),
    )),
    dict(file='networks/masks',
         catches='test_actions_are_those_of_the_table_without_invalid_ones',
         rows=(
             ('of no part', 'observation.get(NAME) if isinstance(',
              'None if isinstance('),
             ('turned round',
              'tf.where(mask, params, tf.constant(_INVALID, params.dtype))',
              'tf.where(mask, tf.constant(_INVALID, params.dtype), params)'),
         )),
    dict(file='networks/masks',
         catches='test_masks_of_old_agents_are_features', rows=(
             ('of numbers', 'part is not None and part.dtype == bool',
              'part is not None'),
         )),
    dict(file='networks/masks',
         catches='OffPolicyLossTest.test_invalid_actions_are_not_in_the_tables',
         rows=(
             ('infinite', '_INVALID = -1e20', "_INVALID = -float('inf')"),
             ('too small', '_INVALID = -1e20', '_INVALID = -9.0'),
             ('added',
              'tf.where(mask, params, tf.constant(_INVALID, params.dtype))',
              'params + _INVALID * (1 - tf.cast(mask, params.dtype))'),
             ('number of all actions',
              'tf.reduce_sum(tf.cast(mask, tf.float32), axis=-1), 1.0)',
              'tf.reduce_sum(tf.ones_like(mask, tf.float32), axis=-1), 1.0)'),
         )),
    dict(file='networks/agents', catches='test_ddqn_with_an_lstm', rows=(
        ('unrolls not masked', """masks.masked(split(self._params(features)),
                            masks.of(env_outputs.observation)),""",
         'split(self._params(features)),'),
    )),
    dict(file='networks/agents',
         catches='OffPolicyLossTest.test_invalid_actions_are_not_in_the_tables',
         rows=(
             ('parameters not masked', 'masks.of(observations))', 'None)'),
         )),
    dict(file='networks/agents',
         catches='test_invalid_actions_are_never_chosen', rows=(
             ('random actions of all', 'random_seed) if mask is None else',
              'random_seed) if True else'),
             ('random actions never masked',
              'masks.of(env_output.observation), ladder)', 'None, ladder)'),
         )),
    dict(file='networks/agents',
         catches='test_random_actions_are_uniform_over_the_valid_ones', rows=(
             ('random actions of the policy', 'tf.zeros_like(params), mask',
              'params, mask'),
         )),
    dict(file='networks/instructions',
         catches='test_actions_are_those_of_the_table_without_invalid_ones',
         rows=(('mask as a feature', 'hidden.add(masks.NAME)', 'pass'),)),
    dict(file='algorithms/sac',
         catches='OffPolicyLossTest.test_invalid_actions_are_not_in_the_tables',
         rows=(
             ('entropy of all actions',
              'if mask is None:\n      return self._target',
              'if True:\n      return self._target'),
             ('mask of the next observation',
              'self._target_entropies(seen.policy.now)',
              'self._target_entropies(seen.policy.next)'),
         )),
    dict(file='environments/spaces', catches='test_no_valid_action', rows=(
        ('one choice in any part', 'axis=-1), axis=-1)',
         'axis=-1)[..., :1], -1)'),
        ('starts of parts', '(0, *action.num_values[:-1])',
         '(0, *action.num_values[1:])'),
    )),
    dict(file='environments/gymnasium_env', catches='test_masks_are_bool',
         rows=(
        ('a choice at the end', 'self._encode(observation, terminated), reward',
         'self._encode(observation), reward'),
    )),
    dict(file='environments/encoding', catches='test_wrong_masks', rows=(
        ('no check of the choice', 'if not is_over and not spaces.has_choice(',
         'if False and not spaces.has_choice('),
        ('counts as masks', '(mask != 0) & (mask != 1)', '(mask < 0)'),
        ('masks of any size', 'if mask.shape != spaces.mask_spec(space).shape:',
         'if False:'),
    )),
    dict(file='environments/spaces',
         catches='test_spaces_that_are_no_masks', rows=(
             ('masks of other actions',
              'mask_spec(space).shape != (sum(action.num_values),)', 'False'),
             ('masks of any box', '(part.low >= 0).all() and', 'True or'),
             ('masks of continuous actions', 'if action.size:\n    raise',
              'if False:\n    raise'),
         )),
    dict(file='environments/from_gymnasium',
         catches='test_a_vector_of_the_caller', rows=(
             ('a choice at the end', 'else terminated)',
              'else self._nothing)'),
         )),
    dict(file='environments/encoding', catches='test_a_vector_of_the_caller',
         rows=(
             ('no check of the choice in a row', 'self(row, over)',
              'self(row, True)'),
         )),
    dict(file='modes/loading', catches='test_masks_of_the_caller', rows=(
        ('any numbers', 'spec.dtype == bool and', 'False and'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
