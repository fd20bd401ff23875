# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of APPO: agents and their default networks."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import algorithms
from scalable_agent.experience import structs
from scalable_agent.learning import gradients
from scalable_agent.networks import agents
from scalable_agent.networks import distributions
from scalable_agent.networks import factory
from scalable_agent.networks import layers
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_SPEC = structs.EnvironmentSpec(
    structs.ArraySpec((3,), np.dtype(np.float32)), structs.ActionSpec(size=2),
    1)


def _outputs_and_variables(agent, x):
  """Returns outputs, and the variables of policy and of baseline."""
  shape = x.shape[:2]
  with tf.GradientTape(persistent=True) as tape:
    outputs, _ = agent.unroll(
        tf.zeros([*shape, *agent.action_spec.array.shape]), structs.StepOutput(
            tf.zeros(shape), structs.NO_INFO, tf.zeros(shape, tf.bool),
            tf.constant(x)), agent.initial_state(shape[1]))
    sums = [tf.reduce_sum(tf.sin(y))
            for y in (outputs.policy, outputs.baseline)]
  variables = agent.trainable_variables
  return outputs, *([
      v for v, g in zip(variables, tape.gradient(y, variables), strict=True)
      if g is not None] for y in sums)


def _forward(weights, x):
  """Returns dense layers of tanh, the last one linear, in NumPy."""
  *hidden, last = zip(weights[::2], weights[1::2], strict=True)
  for kernel, bias in hidden:
    x = np.tanh(x @ kernel.numpy() + bias.numpy())
  return x @ last[0].numpy() + last[1].numpy()


class AgentTest(parameterized.TestCase, tf.test.TestCase):

  def _agent(self, **settings):
    config = config_lib.Config(
        algorithm='appo', level_name='Pendulum-v1', **settings).resolved(
            _SPEC.observation, on_cpu=True, num_groups=1)
    return algorithms.make_agent(config, _SPEC, 1), config

  def _params(self, agent: agents.Agent):
    observations = np.random.default_rng(1).normal(size=[5, 3]).astype('f')
    return agent.params(observations).numpy()

  def test_deviations_do_not_depend_on_the_state(self):
    agent, config = self._agent(initial_scale=.5)
    params = self._params(agent)
    self.assertAllClose(params[:, 2:], np.full([5, 2], np.log(.5)))
    self.assertLess(np.abs(params[:, :2]).max(), .05)  # Small at first.
    self.assertGreater(np.std(params[:, 0]), 0)
    other, other_config = self._agent(scale_from_state=True)
    self.assertGreater(np.std(self._params(other)[:, 2]), 0)
    self.assertNotEqual(algorithms.describe(config, _SPEC),
                        algorithms.describe(other_config, _SPEC))

  @parameterized.parameters(False, True)
  def test_a_separate_baseline_shares_no_layer(self, normalise_returns):
    agent, config = self._agent(
        separate_baseline=True, hidden_sizes='7,5', normalise_returns=(
            normalise_returns), normalise_observations='none')
    self.assertNotEqual(
        algorithms.describe(config, _SPEC),
        algorithms.describe(self._agent(
            hidden_sizes='7,5', normalise_returns=normalise_returns,
            normalise_observations='none')[1], _SPEC))
    rng = np.random.default_rng(1)
    for variable in agent.trainable_variables:
      variable.assign(rng.normal(size=variable.shape))
    x = rng.normal(size=[2, 4, 3]).astype('f')
    outputs, policy, baseline = _outputs_and_variables(agent, x)
    *hidden, log_scale, kernel, bias = policy
    self.assertEqual(log_scale.shape, [2])
    self.assertEqual([v.shape for v in [*hidden, kernel, bias]],
                     [(3, 7), (7,), (7, 5), (5,), (5, 2), (2,)])
    self.assertEqual([v.shape for v in baseline],
                     [(5, 1), (1,), (3, 7), (7,), (7, 5), (5,)])
    self.assertAllClose(
        outputs.policy[..., :2], _forward([*hidden, kernel, bias], x), 1e-5)
    self.assertAllClose(
        outputs.baseline,
        _forward([*baseline[2:], *baseline[:2]], x)[..., 0], 1e-5)
    self.assertLen({id(v) for v in [*policy, *baseline]},
                   len(agent.trainable_variables))

  def test_a_separate_baseline_shares_convolutions(self):
    spec = structs.ArraySpec((72, 96, 3), np.dtype(np.uint8))
    agent = factory.make_agent(
        'shallow', spec, structs.ActionSpec((3,)), use_lstm=False,
        use_last_action_reward=False, separate_baseline=True, seed=1)
    x = np.random.default_rng(1).integers(0, 256, [2, 1, 72, 96, 3], np.uint8)
    _, policy, baseline = _outputs_and_variables(agent, x)
    shared = {id(v) for v in policy} & {id(v) for v in baseline}
    torso = [v for v in agent.trainable_variables if id(v) in shared]
    self.assertEqual([v.shape for v in torso[::2]],
                     [(8, 8, 3, 16), (4, 4, 16, 32), (2240, 256)])
    self.assertLen(policy, 12)
    self.assertLen(baseline, 12)

  def test_deviations_come_back_from_their_bounds(self):
    layer = layers.StateIndependentScale(
        tf.keras.layers.Dense(2), [0., 0.], distributions.LOG_SCALE_BOUNDS)
    [log_scale] = [v for v in layer.variables if v.path.endswith('log_scale')]
    log_scale.assign([1.99, -19.99])
    optimizer = tf.keras.optimizers.SGD(1.)
    optimizer.build([log_scale])
    for sign, expected in (-1, [2, -20]), (1, [1, -19]):
      with tf.GradientTape() as tape:
        logs = tf.math.log(distributions.normal(
            layer(tf.zeros([1, 3]))).scale)[0]
        loss = sign * (logs[0] - logs[1])
      gradients.apply(
          optimizer, [log_scale], [tape.gradient(loss, log_scale.value)],
          tf.constant(1.), None, None)
      self.assertAllClose(log_scale.value, expected)

  def test_agents_of_impala_are_exchangeable(self):
    _, config = self._agent()
    same = config_lib.Config(
        level_name='Pendulum-v1', agent='mlp', use_lstm=False,
        use_last_action_reward=False, squash_actions=False, optimizer='adam',
        normalise_observations='auto', normalise_returns=True,
        scale_from_state=False)
    self.assertEqual(algorithms.describe(config, _SPEC),
                     algorithms.describe(same, _SPEC))

  def test_default_networks_do_not_change(self):
    make = lambda **settings: factory.make_agent(
        'mlp', _SPEC.observation, _SPEC.action, seed=1, **settings)
    for one, two in zip(make().variables, make(
        policy_scale=1., scale_from_state=True).variables, strict=True):
      self.assertAllEqual(one, two)


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='networks/layers',
        catches='test_deviations_come_back_from_their_bounds',
        rows=(
            ('deviations stay beyond their bounds',
             'tf.clip_by_value(x, *bounds)', 'tf.identity(x)'),
        )),
    dict(
        file='networks/factory',
        catches='test_a_separate_baseline_shares_no_layer',
        rows=(
            ('a torso of the whole mlp before separate layers',
             '0 if separate_baseline else None',
             'None'),
            ('no layers of the baseline',
             'mlp(hidden_sizes) if separate_baseline else None',
             'None'),
        )),
    dict(
        file='networks/agents',
        catches='test_a_separate_baseline_shares_no_layer',
        rows=(
            ('layers of the baseline unused',
             'self._baseline_torso(features)',
             'features'),
        )),
)


if __name__ == '__main__':
  absltest.main()
