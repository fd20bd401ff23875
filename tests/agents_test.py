# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of `agents`."""

from typing import Any, NamedTuple
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.networks import factory
from scalable_agent.networks import frame_torsos
from scalable_agent.networks import instructions
from scalable_agent.networks import torsos
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
import tensorflow as tf

_NUM_ACTIONS = 4
_ACTIONS = structs.ActionSpec((_NUM_ACTIONS,))


class _Spec(NamedTuple):
  shape: Any
  dtype: Any


_SMALL_FRAME = _Spec((20, 24, 3), np.dtype(np.uint8))
_STACK = _Spec((4, 20, 24), np.dtype(np.uint8))
_LARGE_STACK = _Spec((4, 40, 36), np.dtype(np.uint8))
_VECTOR = _Spec((3,), np.dtype(np.float32))
_BOARD = _Spec((10, 5), np.dtype(np.float32))
_INSTRUCTION = _Spec((), np.dtype(object))
_WITH_INSTRUCTION = {'frame': _SMALL_FRAME, 'instruction': _INSTRUCTION}

_ALL_AGENTS = (
    ('deep', _SMALL_FRAME, True),
    ('deep', _WITH_INSTRUCTION, True),
    ('shallow', _STACK, True),
    ('shallow', _SMALL_FRAME, False),
    ('nature', _LARGE_STACK, False),
    ('nature', _LARGE_STACK, True),
    ('mlp', _VECTOR, True),
    ('mlp', _BOARD, False),
)


def _env_outputs(spec, leading_shape, seed=0):
  """Returns a random `StepOutput` of NumPy arrays."""
  rng = np.random.default_rng(seed)

  def array(spec):
    shape = (*leading_shape, *spec.shape)
    if spec.dtype == object:
      return rng.choice(np.array([b'', b'go', b'pick up the ball'], object),
                        shape)
    if spec.dtype == np.uint8:
      return rng.integers(0, 256, shape, np.uint8)
    return rng.normal(size=shape).astype(spec.dtype)

  return structs.StepOutput(
      reward=rng.normal(size=leading_shape).astype(np.float32),
      info=(),
      done=rng.random(leading_shape) < .3,
      observation=({k: array(s) for k, s in spec.items()}
                   if isinstance(spec, dict) else array(spec)))


def _last_actions(leading_shape, seed=0):
  return np.random.default_rng(seed).integers(
      0, _NUM_ACTIONS, leading_shape, np.int32)


def _at(env_outputs, index):
  return tf.nest.map_structure(lambda x: x[index], env_outputs)


def _random_state(agent, batch_size):
  return tf.nest.map_structure(
      lambda s: tf.random.stateless_normal(s.shape, [1, 2]),
      agent.initial_state(batch_size))


def _randomize(agent, seed=0):
  """Changes all variables, so that no bias is zero."""
  rng = np.random.default_rng(seed)
  for variable in agent.variables:
    variable.assign_add(.1 * rng.normal(size=variable.shape))


class AgentTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_agent_has_the_reference_size(self):
    agent = factory.make_agent(
        'deep', {'frame': _Spec((72, 96, 3), np.uint8),
                 'instruction': _INSTRUCTION}, structs.ActionSpec((9,)))
    self.assertEqual(agent.count_params(), 1628010)
    self.assertLen(agent.trainable_variables, len(agent.variables))
    # The core sees 256 visual features, reward, action and instruction.
    self.assertIn((330 + 256, 4 * 256),
                  [tuple(v.shape) for v in agent.variables])
    c, h = agent.initial_state(5)
    for state in (c, h):
      self.assertEqual(state.dtype, tf.float32)
      self.assertAllEqual(state, np.zeros([5, 256]))

  @parameterized.parameters(*_ALL_AGENTS)
  def test_unroll_is_single_steps(self, network, spec, use_lstm):
    num_steps, batch_size = 6, 3
    agent = factory.make_agent(network, spec, _ACTIONS, use_lstm=use_lstm)
    _randomize(agent)
    env_outputs = _env_outputs(spec, [num_steps, batch_size])
    last_actions = _last_actions([num_steps, batch_size])
    state = _random_state(agent, batch_size)
    step = tf.function(agent.step, autograph=False)

    outputs, last_state = agent.unroll(last_actions, env_outputs, state)
    self.assertEqual(outputs.policy.shape,
                     [num_steps, batch_size, _NUM_ACTIONS])
    self.assertEqual(outputs.baseline.shape, [num_steps, batch_size])
    self.assertEqual(outputs.action, ())
    for t in range(num_steps):
      output, state = step(
          last_actions[t], agent.tokenize(_at(env_outputs, t)), state)
      self.assertAllClose(output.policy, outputs.policy[t],
                          1e-4, 1e-4)
      self.assertAllClose(output.baseline, outputs.baseline[t], 1e-4, 1e-4)
      self.assertEqual(output.action.dtype, tf.int32)
      self.assertEqual(output.action.shape, [batch_size])
    self.assertAllClose(state, last_state, 1e-4, 1e-4)
    if not use_lstm:
      self.assertEqual(last_state, ())

  def test_nothing_before_done_matters_after_it(self):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS)
    env_outputs = _env_outputs(_VECTOR, [5, 2])
    env_outputs.done[:] = [[0, 0], [0, 1], [0, 0], [0, 0], [0, 0]]
    other = tf.nest.map_structure(np.copy, env_outputs)
    other.observation[0] += 1
    state = agent.initial_state(2)
    actions = _last_actions([5, 2])
    first, _ = agent.unroll(actions, env_outputs, state)
    second, _ = agent.unroll(
        actions, other, tf.nest.map_structure(lambda s: s + 1, state))
    difference = np.abs(first.policy - second.policy).max(axis=2)
    self.assertAllGreater(difference[:, 0], 1e-5)
    self.assertAllGreater(difference[:1, 1], 1e-5)
    self.assertAllEqual(difference[1:, 1], np.zeros(4))

  @pytest.mark.slow
  def test_instruction_is_an_option(self):
    agent = factory.make_agent('deep', _WITH_INSTRUCTION, _ACTIONS,
                              use_instruction=False, seed=3)
    other = factory.make_agent('deep', _SMALL_FRAME, _ACTIONS, seed=3)
    self.assertEqual([v.shape for v in agent.variables],
                     [v.shape for v in other.variables])
    env_outputs = _env_outputs(_WITH_INSTRUCTION, [2, 3])
    last_actions = np.zeros([2, 3], np.int32)
    expected, _ = other.unroll(
        last_actions, env_outputs._replace(
            observation=env_outputs.observation['frame']),
        other.initial_state(3))
    found, _ = tf.function(agent.unroll, autograph=False, jit_compile=True)(
        last_actions, agent.tokenize(env_outputs)._replace(info=()),
        agent.initial_state(3))
    self.assertAllClose(expected.policy, found.policy)

  @pytest.mark.slow
  def test_order_of_features(self):
    agent = factory.make_agent('deep', _WITH_INSTRUCTION, _ACTIONS,
                              use_lstm=False)
    env_outputs = _env_outputs(_WITH_INSTRUCTION, [4, 1])
    env_outputs.reward[:, 0] = [-3, -.5, .25, 20]
    env_outputs.observation['instruction'][:, 0] = [b'go', b'', b'up', b'go']
    kernel, bias = agent.get_layer('policy_logits').get_weights()
    self.assertEqual(kernel.shape, (256 + 1 + _NUM_ACTIONS + 64, _NUM_ACTIONS))

    # Read the features through the head, four at a time.
    def features(start):
      probe = np.zeros_like(kernel)
      probe[start:start + _NUM_ACTIONS] = np.eye(_NUM_ACTIONS)
      agent.get_layer('policy_logits').set_weights([probe, bias])
      outputs, _ = agent.unroll(
          np.array([[2], [0], [3], [-1]]), env_outputs, ())
      return outputs.policy[:, 0].numpy()

    self.assertAllEqual(features(256)[:, 0], [-1, -.5, .25, 1])
    self.assertAllEqual(features(257), [[0, 0, 1, 0], [1, 0, 0, 0],
                                        [0, 0, 0, 1], [0, 0, 0, 0]])
    encoder, = (l for l in agent.layers
                if isinstance(l, instructions.InstructionEncoder))
    codes = encoder(instructions.hash_words(['go', '', 'up', 'go']))
    self.assertAllClose(features(261), codes[:, :_NUM_ACTIONS])
    self.assertAllClose(features(321), codes[:, 60:])
    torso, = (l for l in agent.layers if isinstance(l, frame_torsos.DeepTorso))
    visual = torso(env_outputs.observation['frame'][:, 0])
    self.assertAllClose(features(0), visual[:, :_NUM_ACTIONS], 1e-5, 1e-6)
    self.assertAllClose(features(252), visual[:, 252:], 1e-5, 1e-6)

  @parameterized.parameters(True, False)
  def test_last_action_and_reward_are_seen_on_request(self, is_seen):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS,
                              use_last_action_reward=is_seen, use_lstm=False)
    env_outputs = _env_outputs(_VECTOR, [1, 1])
    logits = lambda action, reward: agent.unroll(
        np.array([[action]]),
        env_outputs._replace(reward=np.array([[reward]], np.float32)),
        ())[0].policy.numpy()
    self.assertEqual((logits(0, 0) != logits(1, 0)).any(), is_seen)
    self.assertEqual((logits(0, 0) != logits(0, .5)).any(), is_seen)
    self.assertAllEqual(logits(0, 1), logits(0, 5))

  def test_two_layouts_of_one_frame_give_one_result(self):
    last = _Spec((20, 24, 4), np.uint8)
    first_agent = factory.make_agent('shallow', _STACK, _ACTIONS)
    last_agent = factory.make_agent('shallow', last, _ACTIONS)
    last_agent.set_weights(first_agent.get_weights())
    env_outputs = _env_outputs(_STACK, [2, 3])
    transposed = env_outputs._replace(
        observation=np.moveaxis(env_outputs.observation, 2, -1))
    actions, state = _last_actions([2, 3]), first_agent.initial_state(3)
    self.assertAllClose(first_agent.unroll(actions, env_outputs, state),
                        last_agent.unroll(actions, transposed, state))

  @parameterized.product(
      network=('deep', 'shallow', 'nature'), has_baseline=(True, False))
  def test_heads_of_zeros(self, network, has_baseline):
    agent = factory.make_agent(network, _LARGE_STACK, _ACTIONS, use_lstm=False,
                              has_baseline=has_baseline)
    env_outputs = _env_outputs(_LARGE_STACK, [1, 2])
    outputs, _ = agent.unroll(_last_actions([1, 2]), env_outputs, ())
    self.assertEqual(np.any(outputs.policy),
                     network == 'deep' or not has_baseline)

  # XLA takes 20 s for `deep`.
  @parameterized.parameters(
      ('mlp', _WITH_INSTRUCTION, True), ('shallow', _STACK, False),
      ('nature', _LARGE_STACK, False))
  @pytest.mark.slow
  def test_xla_agrees(self, network, spec, use_lstm):
    agent = factory.make_agent(network, spec, _ACTIONS, use_lstm=use_lstm)
    env_outputs = agent.tokenize(_env_outputs(spec, [3, 2]))
    actions, state = _last_actions([3, 2]), _random_state(agent, 2)

    def gradients():
      with tf.GradientTape() as tape:
        outputs, last_state = agent.unroll(actions, env_outputs, state)
        loss = (tf.reduce_sum(outputs.policy**2)
                + tf.reduce_sum(outputs.baseline))
      gradients = tape.gradient(loss, agent.trainable_variables)
      return (outputs, last_state,
              [tf.convert_to_tensor(gradient) for gradient in gradients])

    compiled, plain = (
        tf.function(gradients, autograph=False, jit_compile=jit_compile)
        for jit_compile in (True, False))
    self.assertAllClose(compiled(), plain(), 1e-3, 1e-4)

  @pytest.mark.slow
  def test_unroll_of_unknown_size(self):
    agent = factory.make_agent('deep', _WITH_INSTRUCTION, _ACTIONS)
    env_outputs = agent.tokenize(_env_outputs(_WITH_INSTRUCTION, [4, 2]))
    signature = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype),
        env_outputs)
    unroll = tf.function(agent.unroll).get_concrete_function(
        tf.TensorSpec([None, None], tf.int32), signature,
        (tf.TensorSpec([None, 256]),) * 2)
    actions, state = _last_actions([4, 2]), agent.initial_state(2)
    expected = agent.unroll(actions, env_outputs, state)
    constants = tf.nest.map_structure(tf.constant, (actions, env_outputs))
    self.assertAllClose(unroll(*constants, state), expected, 1e-4, 1e-5)

  @pytest.mark.slow
  def test_tokens_or_strings(self):
    agent = factory.make_agent('deep', _WITH_INSTRUCTION, _ACTIONS)
    env_outputs = _env_outputs(_WITH_INSTRUCTION, [2, 3])
    tokenized = agent.tokenize(env_outputs)
    self.assertEqual(tokenized.observation['instruction'].dtype, np.int32)
    self.assertEqual(tokenized.observation['instruction'].shape, (2, 3, 8))
    self.assertIs(agent.tokenize(tokenized), tokenized)
    actions, state = _last_actions([2, 3]), agent.initial_state(3)
    self.assertAllClose(agent.unroll(actions, env_outputs, state),
                        agent.unroll(actions, tokenized, state), 0, 0)
    with self.assertRaisesRegex(ValueError, 'call agent.tokenize'):
      tf.function(agent.unroll)(actions, tf.nest.map_structure(
          tf.constant, env_outputs), state)
    plain = factory.make_agent('mlp', _VECTOR, _ACTIONS)
    env_outputs = _env_outputs(_VECTOR, [2, 3])
    self.assertIs(plain.tokenize(env_outputs), env_outputs)

  @parameterized.parameters(*_ALL_AGENTS)
  @pytest.mark.slow
  def test_checkpoints_hold_every_weight(self, network, spec, use_lstm):
    make = lambda: factory.make_agent(network, spec, _ACTIONS,
                                     use_lstm=use_lstm)
    saved, restored = make(), make()
    _randomize(saved)
    path = tf.train.Checkpoint(agent=saved).save(
        f'{self.get_temp_dir()}/agent')
    tf.train.Checkpoint(agent=restored).restore(path).assert_consumed()
    self.assertAllClose(saved.get_weights(), restored.get_weights(), 0, 0)

  @pytest.mark.slow
  def test_float32_heads_under_mixed_precision(self):
    tf.keras.config.set_dtype_policy('mixed_bfloat16')
    self.addCleanup(tf.keras.config.set_dtype_policy, 'float32')
    agent = factory.make_agent('deep', _WITH_INSTRUCTION, _ACTIONS)
    outputs, state = agent.unroll(
        _last_actions([2, 3]), _env_outputs(_WITH_INSTRUCTION, [2, 3]),
        agent.initial_state(3))
    self.assertEqual({outputs.policy.dtype, outputs.baseline.dtype,
                      state[0].dtype, state[1].dtype}, {tf.float32})
    self.assertEqual({v.dtype for v in agent.variables}, {'float32'})


class ActionTest(tf.test.TestCase, parameterized.TestCase):

  def _choose(self, agent, num_steps, batch_size=64, jit_compile=False):
    env_output = _env_outputs(_VECTOR, [batch_size])
    step = tf.function(agent.step, autograph=False, jit_compile=jit_compile)
    return np.stack([
        step(np.zeros([batch_size], np.int32), env_output,
             agent.initial_state(batch_size))[0].action
        for _ in range(num_steps)])

  @parameterized.parameters(False, True)
  def test_actions_follow_the_policy(self, jit_compile):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS, use_lstm=False,
                              seed=1)
    probabilities = np.array([.6, .05, .3, .05])
    agent.get_layer('policy_logits').set_weights(
        [np.zeros([64 + 5, _NUM_ACTIONS]), np.log(probabilities) + 7])
    actions = self._choose(agent, 4, 5000, jit_compile)
    for step in actions:
      frequencies = np.bincount(step, minlength=_NUM_ACTIONS) / 5000
      self.assertAllClose(frequencies, probabilities, 0, .03)
    # Steps are independent of each other.
    self.assertAllClose(np.mean(actions[0] == actions[1]),
                        np.sum(probabilities**2), 0, .03)

  def test_actions_of_probability_zero_are_never_chosen(self):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS, use_lstm=False)
    agent.get_layer('policy_logits').set_weights(
        [np.zeros([64 + 5, _NUM_ACTIONS]),
         np.array([-np.inf, 0, -np.inf, -1e9])])
    self.assertAllEqual(self._choose(agent, 1, 1000)[0], np.ones(1000))

  @parameterized.parameters(False, True)
  @pytest.mark.slow
  def test_seed_decides_weights_and_actions(self, jit_compile):
    make = lambda seed: factory.make_agent('mlp', _VECTOR, _ACTIONS,
                                          seed=seed)
    first, same, other = make(1), make(1), make(2)
    self.assertAllEqual(first.get_weights()[0], same.get_weights()[0])
    self.assertNotAllClose(first.get_weights()[0], other.get_weights()[0])
    choose = lambda agent: self._choose(agent, 3, jit_compile=jit_compile)
    actions = choose(first)
    self.assertAllEqual(actions, choose(same))
    other.set_weights(first.get_weights())
    self.assertTrue((actions != choose(other)).any())

  def test_global_seed_is_the_default(self):
    chosen = []
    for _ in range(2):
      tf.keras.utils.set_random_seed(3)
      agent = factory.make_agent('mlp', _VECTOR, _ACTIONS)
      chosen.append(self._choose(agent, 2))
    self.assertAllEqual(*chosen)
    other = factory.make_agent('mlp', _VECTOR, _ACTIONS)
    self.assertNotAllClose(agent.get_weights()[0], other.get_weights()[0])

  def test_restored_agents_do_not_repeat_choices(self):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS, seed=1)
    path = tf.train.Checkpoint(agent=agent).save(
        f'{self.get_temp_dir()}/agent')
    actions = self._choose(agent, 3)
    restored = factory.make_agent('mlp', _VECTOR, _ACTIONS, seed=2)
    tf.train.Checkpoint(agent=restored).restore(path).assert_consumed()
    self.assertTrue((actions != self._choose(restored, 3)).any())

  def test_unroll_draws_no_random_numbers(self):
    agent = factory.make_agent('mlp', _VECTOR, _ACTIONS)
    graph = tf.function(agent.unroll).get_concrete_function(
        _last_actions([2, 3]), _env_outputs(_VECTOR, [2, 3]),
        agent.initial_state(3)).graph
    self.assertEmpty([op.type for op in graph.get_operations()
                      if 'Rng' in op.type or 'Random' in op.type])


class MakeAgentTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('deep', _VECTOR, 'use --agent=mlp'),
      ('shallow', _BOARD, 'use --agent=mlp'),
      ('shallow', _Spec((19, 84, 3), np.uint8), 'at least 20 pixels'),
      ('shallow', _Spec((4, 84, 19), np.uint8), 'at least 20 pixels'),
      ('nature', _Spec((35, 84, 3), np.uint8), 'nature.* at least 36 pixels'),
      ('nature', _Spec((4, 84, 35), np.uint8), 'nature.* at least 36 pixels'),
      ('big', _VECTOR, 'deep, shallow, nature, mlp'),
      ('deep', _INSTRUCTION, 'only `instruction` can be text'),
      ('mlp', {'frame': _VECTOR, 'words': _INSTRUCTION}, 'can be text'),
      ('deep', {'position': _VECTOR}, 'use --agent=mlp'),
      ('deep', {'position': _VECTOR, 'speed': _VECTOR}, 'use --agent=mlp'),
      ('shallow', {'frame': _Spec((19, 84, 3), np.uint8), 'position': _VECTOR},
       'at least 20 pixels'))
  def test_what_does_not_fit(self, network, spec, message):
    with self.assertRaisesRegex(ValueError, message):
      factory.make_agent(network, spec, _ACTIONS)

  @parameterized.parameters(
      ('shallow', _Spec((20, 20, 1), np.uint8)),
      ('shallow', _Spec((4, 84, 84), np.uint8)),
      ('nature', _Spec((36, 36, 1), np.uint8)),
      ('nature', _Spec((4, 36, 84), np.uint8)),
      ('deep', _Spec((5, 7, 3), np.float32)),
      ('mlp', _Spec((), np.int64)),
      ('mlp', _Spec((128,), np.uint8)),
      ('mlp', tf.TensorSpec([3], tf.bool)),
      ('deep', {'pixels': _SMALL_FRAME}),
      ('deep', {'frame': _SMALL_FRAME, 'depth': _SMALL_FRAME}),
      ('deep', {'frame': _SMALL_FRAME, 'position': _VECTOR}),
      ('mlp', {'frame': _SMALL_FRAME, 'position': _VECTOR}))
  def test_what_fits(self, network, spec):
    agent = factory.make_agent(network, spec, _ACTIONS)
    # Nothing is created after construction.
    variables = [v.path for v in agent.variables]
    zeros = lambda part: tf.zeros(
        [2, *part.shape], tf.as_dtype(part.dtype))
    env_output = structs.StepOutput(
        tf.zeros([2]), (), tf.zeros([2], tf.bool),
        {name: zeros(part) for name, part in spec.items()}
        if isinstance(spec, dict) else zeros(spec))
    agent.step(tf.zeros([2], tf.int32), env_output, agent.initial_state(2))
    self.assertEqual(variables, [v.path for v in agent.variables])

  def test_layer_norm_and_initial_scale_reach_the_networks(self):
    config = config_lib.Config(
        algorithm='mpo', level_name='toy', agent='mlp', hidden_sizes='8,8',
        layer_norm=True, initial_scale=.3)
    spec = structs.EnvironmentSpec(_VECTOR, structs.ActionSpec(size=2), 1)
    algorithm = algorithms.make(config, spec, 1)
    for group in ('policy', 'critic'):
      # Two layers, the normalisation's scale and offset, the head.
      self.assertLen(algorithm.groups[group], 8)
    bias = algorithm.groups['policy'][-1]
    self.assertAllClose(bias, [0, 0, np.log(.3), np.log(.3)])
    self.assertIn('layer_norm, ', algorithms.describe(config, spec))

  @parameterized.parameters(
      (frame_torsos.ResNetSection, 'impala', 'deep', _SMALL_FRAME, 3),
      (torsos.MLPTorso, 'impala', 'mlp', _VECTOR, 1),
      # A policy, two critics and their targets.
      (torsos.MLPTorso, 'sac', 'mlp', _VECTOR, 5),
      # Below and above the memory, of the agent and its target. A Sequential
      # calls its layers twice.
      (torsos.MLPTorso, 'sac', 'mlp', _VECTOR, 2 * 3 + 4, True))
  def test_layers_are_called_once_to_make_their_variables(
      self, layer, algorithm, network, spec, expected, use_lstm=None):
    config = config_lib.Config(
        algorithm=algorithm, level_name='toy', agent=network, use_lstm=use_lstm)
    with mock.patch.object(
        layer, 'call', autospec=True, side_effect=layer.call) as call:
      algorithms.make(config, structs.EnvironmentSpec(spec, _ACTIONS, 1), 1)
    self.assertEqual(call.call_count, expected)

  def test_layer_norm_without_dense_layers_is_an_error(self):
    frames = structs.ArraySpec((84, 84, 4), np.dtype(np.uint8))
    discrete, continuous = structs.ActionSpec((3,)), structs.ActionSpec(size=2)
    make = lambda algorithm, agent, observation, action, **settings: (
        algorithms.make(
            config_lib.Config(algorithm=algorithm, level_name='toy',
                              agent=agent, hidden_sizes='8,8', layer_norm=True,
                              **settings),
            structs.EnvironmentSpec(observation, action, 1), 1))
    with self.assertRaisesRegex(errors.ConfigError, '^--layer_norm has no'):
      make('ddqn', 'nature', frames, discrete)
    with self.assertRaisesRegex(errors.ConfigError, '^--layer_norm has no'):
      make('sac', 'fake_torsos:flat', frames, discrete)
    # The heads of a memory have dense layers, whatever the network below.
    for algorithm in ('sac', 'mpo'):
      policy = make(algorithm, 'nature', frames, discrete, use_lstm=True,
                    lstm_units=4).groups['policy']
      self.assertLen(policy, 8)
    make('sac', 'nature', frames, continuous)
    make('ddqn', 'nature', {'frame': frames, 'vector': _VECTOR}, discrete)

  @parameterized.parameters(('impala', ()), ('sac', ('mine',)))
  def test_an_algorithm_without_a_branch_is_an_error(self, like, off_policy):
    config = config_lib.Config(algorithm=like, level_name='toy', agent='mlp')
    object.__setattr__(config, 'algorithm', 'mine')
    with mock.patch.object(declare, 'OFF_POLICY', off_policy), mock.patch.dict(
        algorithms._HEADS, mine=algorithms._HEADS[like]), (
            self.assertRaisesRegex(
                errors.ConfigError, '^--algorithm=mine has no branch in ')):
      algorithms.make(config, structs.EnvironmentSpec(
          _VECTOR, structs.ActionSpec(size=2), 1), 1)

  @parameterized.parameters(
      (structs.ActionSpec((3,)), None),
      (structs.ActionSpec(size=2), tf.constant([[.5, -1.]])))
  def test_the_same_parts_are_seen_everywhere(self, action_spec, actions):
    spec = {'observation': _VECTOR, 'achieved_goal': _VECTOR,
            'desired_goal': _VECTOR}
    agent = factory.make_agent('mlp', spec, action_spec, use_lstm=False,
                              use_last_action_reward=False, seed=1)
    critic = factory.make_critic('mlp', spec, action_spec, hidden_sizes=[8],
                                activation='relu', seed=1)
    seen = _env_outputs(spec, [1, 1])
    outputs, _ = agent.unroll(
        tf.zeros([1, 1, *action_spec.array.shape]), seen,
        agent.initial_state(1))
    observation = _at(seen, 0).observation
    self.assertAllClose(agent.params(observation), outputs.policy[0])
    other = {name: observation[name] + (name == 'achieved_goal')
             for name in reversed(observation)}
    self.assertAllEqual(agent.params(observation), agent.params(other))
    self.assertAllEqual(
        critic(observation, actions), critic(other, actions))

  @parameterized.parameters(
      ('mlp', {'a': _VECTOR, 'b': _VECTOR}),
      ('nature', structs.ArraySpec((36, 36, 2), np.dtype(np.uint8))))
  def test_several_actions_for_each_observation(self, network, spec):
    critic = factory.make_critic(
        network, spec, structs.ActionSpec(size=2), hidden_sizes=[8],
        activation='relu', seed=1)
    rng = np.random.default_rng(1)
    draw = lambda part: tf.constant(
        rng.integers(0, 99, [3, *part.shape]), part.dtype)
    seen = ({name: draw(part) for name, part in spec.items()}
            if isinstance(spec, dict) else draw(spec))
    actions = np.float32(rng.uniform(-1, 1, [5, 3, 2]))
    self.assertAllClose(
        critic(seen, tf.constant(actions.reshape(15, 2))),
        np.concatenate([critic(seen, tf.constant(a)) for a in actions]))


# See `mutations.py`.
MUTATIONS = (
    dict(file='networks/torsos',
         catches='test_several_actions_for_each_observation', rows=(
        ('neighbours have the same observation',
         'tf.tile(part, [num_rows // part.shape[0], 1])',
         'tf.repeat(part, num_rows // part.shape[0], 0)'),
    )),
    dict(file='algorithms/__init__',
         catches='test_layer_norm_and_initial_scale_reach_the_networks', rows=(
        ('agents without layer normalisation',
         'layer_norm=config.layer_norm,\n'
         '      is_dueling',
         'is_dueling'),
        ('critics without layer normalisation',
         'layer_norm=config.layer_norm, seed', 'seed'),
        ('layer normalisation is not part of what an agent is',
         '"layer_norm, " if', '"" if'),
    )),
    dict(file='algorithms/__init__',
         catches='test_an_algorithm_without_a_branch_is_an_error', rows=(
        ('every other algorithm of unrolls is appo',
         "if config.algorithm == 'appo':", 'if True:'),
        ('every other algorithm has critics',
         'if config.algorithm in _ACTOR_CRITICS:', 'if True:'),
    )),
    dict(file='algorithms/__init__',
         catches='test_layer_norm_without_dense_layers_is_an_error', rows=(
        ('layer normalisation without effect is no error',
         'if config.layer_norm and not', 'if False and not'),
    )),
    dict(file='algorithms/base',
         catches='test_layer_norm_without_dense_layers_is_an_error', rows=(
        ('heads of a memory have no dense layers',
         '          or critics_share_memory(settings, algorithm)\n', ''),
    )),
)


if __name__ == '__main__':
  tf.test.main()
