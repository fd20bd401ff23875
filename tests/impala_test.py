# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of IMPALA's loss and of the paper's alternatives to V-trace.

Everything is compared with sums and gradients in NumPy, straight from the
formulas. `learner_test.py` also tests that the loss takes the right entries of
unrolls.
"""

from unittest import mock

from absl.testing import parameterized
import numpy as np
from scalable_agent import algorithms
from scalable_agent import vtrace
from scalable_agent.algorithms import impala
from scalable_agent.experience import structs
from scalable_agent.networks import heads
from scalable_agent.networks import layers
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections
import tensorflow as tf

_T, _B, _A = 6, 4, 3
_DISCOUNTING = 0.9
_BASELINE_COST = 0.7
_ENTROPY_COST = 0.02


class _TableAgent:
  """Its outputs are its variables, so their gradients have formulas."""

  action_spec = structs.ActionSpec((_A,))
  head = heads.policy(action_spec)
  returns = None

  def __init__(self, rng):
    logits = 2 * rng.normal(size=[_T + 1, _B, _A])
    # Some actions have a probability of about 1e-6, where an epsilon matters.
    logits[1, 0] += [0, 15, 0]
    logits[3, :2] += [14, 0, 0]
    self.logits = tf.Variable(logits.astype('f'))
    self.baseline = tf.Variable(rng.normal(size=[_T + 1, _B]).astype('f'))
    self.trainable_variables = [self.logits, self.baseline]

  def unroll(self, unused_actions, unused_env_outputs, core_state):
    return structs.AgentOutput(
        (), tf.convert_to_tensor(self.logits),
        tf.convert_to_tensor(self.baseline)), core_state


def _batch(rng, behaviour_logits):
  """A batch that varies along every axis, with ends of episodes inside.

  Args:
    rng: NumPy's.
    behaviour_logits: `[T, B, A]`, at the observations 0 to T - 1.
  """
  steps = (_T + 1, _B)
  done = rng.uniform(size=steps) < 0.25
  done[2, 0], done[1:, 1] = True, False  # One of each for certain.
  action = rng.randint(_A, size=steps)
  action[2, 0] = action[4, 0] = 2  # The improbable ones, see above.
  logits = np.concatenate([np.full([1, _B, _A], np.nan), behaviour_logits])
  return structs.Unroll(structs.Steps(
      env_outputs=structs.StepOutput(
          reward=tf.constant(2 * rng.normal(size=steps), tf.float32), info=(),
          done=tf.constant(done), observation=()),
      agent_outputs=structs.AgentOutput(
          tf.constant(action, tf.int32), tf.constant(logits, tf.float32),
          tf.constant(rng.normal(size=steps), tf.float32)),
      truncation_values=tf.constant(
          done * rng.normal(size=steps), tf.float32)),
                        structs.Start((), (), (), ()))


def _with_actions(batch, action):
  outputs = batch.steps.agent_outputs._replace(
      action=tf.constant(action, tf.int32))
  return batch._replace(steps=batch.steps._replace(agent_outputs=outputs))


def _random_case(seed, on_policy=False):
  rng = np.random.RandomState(seed)
  agent = _TableAgent(rng)
  behaviour_logits = agent.logits.numpy()[:-1]
  if not on_policy:
    behaviour_logits = behaviour_logits + rng.normal(size=[_T, _B, _A])
  return agent, _batch(rng, behaviour_logits)


def _loss_and_gradients(agent, batch, correction, weights=None, **settings):
  algorithm = impala.Impala(agent, sections.ImpalaSettings(
      discounting=_DISCOUNTING, baseline_cost=_BASELINE_COST,
      entropy_cost=_ENTROPY_COST, reward_clipping='abs_one',
      correction=correction, **settings))
  with tf.GradientTape() as tape:
    loss = algorithm.loss(batch, weights, ['agent'], tf.constant([0, 0]))
  gradients = tape.gradient(loss.by_group['agent'], algorithm.groups['agent'])
  return loss.sums, loss.means, [g.numpy() for g in gradients]


def _softmax(logits):
  e = np.exp(logits - np.max(logits, -1, keepdims=True))
  return e / np.sum(e, -1, keepdims=True)


def _expected(agent, batch, correction, clip_rho=1, clip_c=1, clip_pg_rho=1,
              lambda_=1):
  """Returns policy loss, baseline loss and the gradients of the whole loss."""
  to_numpy = lambda x: x.numpy().astype(np.float64)
  pi = _softmax(to_numpy(agent.logits)[:-1])
  mu = _softmax(to_numpy(batch.steps.agent_outputs.policy)[1:])
  values = to_numpy(agent.baseline)
  actions = batch.steps.agent_outputs.action.numpy()[1:]
  discounts = _DISCOUNTING * (1 - to_numpy(
      tf.cast(batch.steps.env_outputs.done, tf.float32))[1:])
  rewards = (np.clip(to_numpy(batch.steps.env_outputs.reward)[1:], -1, 1)
             + _DISCOUNTING * to_numpy(batch.steps.truncation_values)[1:])
  one_hot = np.eye(_A)[actions]
  taken = lambda p: np.sum(p * one_hot, -1)
  rhos = taken(pi) / taken(mu)  # [T, B]

  def n_step_return(s, b):
    total, discount = 0, 1
    for t in range(s, _T):
      total += discount * rewards[t, b]
      discount *= discounts[t, b]
    return total + discount * values[_T, b]

  def v_trace(s, b):
    total, factor = values[s, b], 1
    for t in range(s, _T):
      delta = rewards[t, b] + discounts[t, b] * values[t + 1, b] - values[t, b]
      total += factor * min(clip_rho, rhos[t, b]) * delta
      factor *= discounts[t, b] * lambda_ * min(clip_c, rhos[t, b])
    return total

  targets, advantages = np.zeros([2, _T, _B])
  for t in range(_T):
    for b in range(_B):
      if correction == 'vtrace':
        targets[t, b] = v_trace(t, b)
        after = v_trace(t + 1, b) if t + 1 < _T else values[_T, b]
        advantages[t, b] = min(clip_pg_rho, rhos[t, b]) * (
            rewards[t, b] + discounts[t, b] * after - values[t, b])
      else:
        targets[t, b] = n_step_return(t, b)
        weight = min(1, rhos[t, b]) if correction == 'one_step' else 1
        advantages[t, b] = weight * (targets[t, b] - values[t, b])
  epsilon = 1e-6 if correction == 'epsilon' else 0

  log_pi = np.log(pi)
  entropy = -np.sum(pi * log_pi, -1, keepdims=True)
  slope = advantages * taken(pi) / (taken(pi) + epsilon)  # d log(pi + epsilon)
  by_logits = (-slope[..., None] * (one_hot - pi)
               + _ENTROPY_COST * pi * (log_pi + entropy))
  by_values = -_BASELINE_COST * (targets - values[:-1])
  last = lambda x: np.concatenate([x, np.zeros_like(x[:1])])
  return (-np.sum(np.log(taken(pi) + epsilon) * advantages),
          0.5 * np.sum((targets - values[:-1]) ** 2),
          [last(by_logits), last(by_values)])


class ImpalaTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.product(correction=sections.CORRECTIONS, seed=(0, 1, 2))
  def test_formula_off_policy(self, correction, seed):
    agent, batch = _random_case(seed)
    policy_loss, baseline_loss, expected = _expected(agent, batch, correction)
    sums, _, found = _loss_and_gradients(agent, batch, correction)
    self.assertAllClose(sums['policy_loss'], policy_loss, rtol=1e-4)
    self.assertAllClose(sums['baseline_loss'], baseline_loss, rtol=1e-4)
    for one, other in zip(found, expected):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-5)

  @parameterized.parameters(*sections.CORRECTIONS)
  def test_on_a_gpu_the_scan_is_associative(self, correction):
    agent, batch = _random_case(0)
    _, _, on_cpu = _loss_and_gradients(agent, batch, correction)
    with mock.patch.object(layers, 'on_cpu', return_value=False), (
        mock.patch.object(vtrace, 'from_importance_weights',
                          wraps=vtrace.from_importance_weights)) as called:
      _, _, on_gpu = _loss_and_gradients(agent, batch, correction)
    self.assertTrue(called.call_args.kwargs['associative_scan'])
    for one, other in zip(on_gpu, on_cpu):
      self.assertAllClose(one, other, rtol=1e-5, atol=1e-6)

  @parameterized.parameters(
      dict(clip_rho=.6), dict(clip_c=.6), dict(clip_pg_rho=.6),
      dict(lambda_=.6),
      dict(clip_rho=.6, clip_c=.8, clip_pg_rho=1.7, lambda_=.7))
  def test_settings_of_v_trace(self, **settings):
    agent, batch = _random_case(3)
    policy_loss, baseline_loss, expected = _expected(
        agent, batch, 'vtrace', **settings)
    sums, _, found = _loss_and_gradients(agent, batch, 'vtrace', **settings)
    self.assertAllClose(sums['policy_loss'], policy_loss, rtol=1e-4)
    self.assertAllClose(sums['baseline_loss'], baseline_loss, rtol=1e-4)
    for one, other in zip(found, expected):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-5)
    # They matter here.
    self.assertNotAllClose(
        _expected(agent, batch, 'vtrace')[2][0], expected[0], rtol=1e-3)

  @parameterized.parameters(*sections.CORRECTIONS)
  def test_weights_multiply_the_loss_of_a_column(self, correction):
    agent, batch = _random_case(1)
    weights = np.array([0.5, 2.0, 0.0, 1.0], 'f')
    # Losses are sums over columns, so columns can be taken alone.
    sums, means, gradients = _loss_and_gradients(
        agent, batch, correction, tf.constant(weights))
    expected = {name: 0.0 for name in sums}
    of_columns = [np.zeros_like(g) for g in gradients]
    for column, weight in enumerate(weights):
      only = np.eye(_B, dtype='f')[column]
      alone, _, parts = _loss_and_gradients(
          agent, batch, correction, tf.constant(only))
      for name, value in alone.items():
        expected[name] += weight * value.numpy()
      for total, part in zip(of_columns, parts):
        total += weight * part
        self.assertAllEqual(np.any(part, axis=tuple(
            i for i in range(part.ndim) if i != 1)), only > 0)
    for name, value in expected.items():
      self.assertAllClose(sums[name], value, rtol=1e-4, atol=1e-4)
    for one, other in zip(of_columns, gradients):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-5)
    # What is logged as means is not weighted.
    _, unweighted, _ = _loss_and_gradients(agent, batch, correction)
    for name, value in unweighted.items():
      self.assertAllClose(means[name], value, rtol=1e-5)

  def test_a_scale(self):
    agent, batch = _random_case(0)
    scaled = impala.Impala(agent, sections.ImpalaSettings(), 0.25)
    whole = impala.Impala(agent, sections.ImpalaSettings())
    one, other = (algorithm.loss(batch, None, ['agent'], tf.constant([0, 0]))
                  for algorithm in (whole, scaled))
    self.assertAllClose(other.by_group['agent'], 0.25 * one.by_group['agent'])
    for name, value in one.sums.items():
      self.assertAllClose(other.sums[name], 0.25 * value)
    self.assertAllClose(one.means, other.means)
    self.assertAllClose(one.errors, other.errors)

  @parameterized.parameters(('sum', 1), ('mean', 1 / (4 * 6)))
  def test_reduction(self, reduction, scale):
    config = config_lib.Config(reduction=reduction, batch_size=4,
                               unroll_length=6, agent='mlp')
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((2,), np.dtype(np.float32)),
        structs.ActionSpec((3,)), 1)
    with mock.patch.object(impala, 'Impala') as made:
      algorithms.make(config, spec, seed=1)
    self.assertEqual(made.call_args.args[2], scale)

  @parameterized.parameters(True, False)
  def test_squashed_actions(self, squashed):
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((2,), np.dtype(np.float32)),
        structs.ActionSpec(size=2), 1)
    agent = algorithms.make_agent(config_lib.Config(
        agent='mlp', squash_actions=squashed), spec, seed=1)
    actions = agent.explore(tf.zeros([1000, 4]), tf.ones([3, 2], tf.int32))
    self.assertEqual(np.max(np.abs(actions)) <= 1, squashed)

  def test_corrections_differ_off_policy(self):
    agent, batch = _random_case(0)
    gradients = {c: _loss_and_gradients(agent, batch, c)[2]
                 for c in sections.CORRECTIONS}
    same = lambda one, other, i: np.allclose(
        gradients[one][i], gradients[other][i], rtol=1e-3, atol=1e-3)
    for one, other, policy_is_same, baseline_is_same in (
        ('vtrace', 'one_step', False, False), ('vtrace', 'none', False, False),
        ('one_step', 'none', False, True), ('epsilon', 'none', False, True)):
      self.assertEqual(same(one, other, 0), policy_is_same, (one, other))
      self.assertEqual(same(one, other, 1), baseline_is_same, (one, other))

  @parameterized.parameters('one_step', 'epsilon', 'none')
  def test_on_policy_they_are_all_v_trace(self, correction):
    agent, batch = _random_case(1, on_policy=True)
    # No improbable actions: elsewhere an epsilon makes no difference.
    probable = np.argmax(agent.logits.numpy(), -1)
    action = np.concatenate([probable[:1], probable[:-1]])
    batch = _with_actions(batch, action)
    expected, means, expected_gradients = _loss_and_gradients(
        agent, batch, 'vtrace')
    self.assertAllClose(means['mean_log_rho'], 0.0)
    found, _, gradients = _loss_and_gradients(agent, batch, correction)
    tolerance = 5e-5 if correction == 'epsilon' else 1e-5
    for name in expected:
      self.assertAllClose(expected[name], found[name], rtol=tolerance,
                          atol=tolerance)
    for one, other in zip(expected_gradients, gradients):
      self.assertAllClose(one, other, rtol=tolerance, atol=tolerance)

  @parameterized.parameters(*sections.CORRECTIONS)
  def test_mean_log_rho_is_measured_whatever_is_corrected(self, correction):
    agent, batch = _random_case(2)
    pi = _softmax(agent.logits.numpy()[:-1].astype(np.float64))
    mu = _softmax(batch.steps.agent_outputs.policy.numpy()[1:]
                  .astype(np.float64))
    one_hot = np.eye(_A)[batch.steps.agent_outputs.action.numpy()[1:]]
    _, means, _ = _loss_and_gradients(agent, batch, correction)
    self.assertAllClose(
        means['mean_log_rho'],
        np.mean(np.sum(one_hot * (np.log(pi) - np.log(mu)), -1)), rtol=1e-4)

  def test_epsilon_bounds_the_loss_of_impossible_actions(self):
    agent, batch = _random_case(0)
    logits = agent.logits.numpy()
    logits[:] = 0
    logits[..., 0] = 500  # The others' probabilities are 0 in float32.
    agent.logits.assign(logits)
    batch = _with_actions(batch, np.ones([_T + 1, _B]))
    _, _, [with_epsilon, _] = _loss_and_gradients(agent, batch, 'epsilon')
    _, _, [without, _] = _loss_and_gradients(agent, batch, 'none')
    self.assertAllClose(with_epsilon, np.zeros_like(logits))
    self.assertGreater(np.max(np.abs(without)), 0.1)

  def test_unknown_correction(self):
    with self.assertRaisesRegex(
        ValueError, '--correction=retrace must be one of vtrace, one_step'):
      sections.ImpalaSettings(correction='retrace')


# See `mutations.py`.
MUTATIONS = (
    dict(file='algorithms/base', catches='test_settings_of_v_trace', rows=(
        ('policies of the next observations', 'learner_outputs.policy[:-1]',
         'learner_outputs.policy[1:]'),
        ('what acted is taken from the step before',
         'lambda t: t[1:], agent_outputs)',
         'lambda t: t[:-1], agent_outputs)'),
    )),
    dict(file='algorithms/impala', catches='test_settings_of_v_trace', rows=(
        ('thresholds of targets and of the policy loss swapped',
         'settings.clip_rho, settings.clip_pg_rho,',
         'settings.clip_pg_rho, settings.clip_rho,'),
        ('lambda left out', 'lambda_=settings.lambda_,\n', '\n'),
        ('threshold of traces left out', 'clip_c_threshold=settings.clip_c, ',
         ''),
    )),
)


if __name__ == '__main__':
  tf.test.main()
