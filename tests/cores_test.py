# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of `networks.cores`, and of --core in runs."""

from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.learning import memory_check
from scalable_agent.modes import loading
from scalable_agent.networks import cores
from scalable_agent.networks import factory
from scalable_agent.networks import layers
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_VECTOR = structs.ArraySpec((4,), np.dtype(np.float32))
_ACTIONS = structs.ActionSpec((3,))
_ALL = ('gru', 'fake_cores:stacked', 'fake_cores:Minimal',
        'fake_cores:last_inputs')


def _normal(rng, *shape):
  return rng.normal(size=shape).astype(np.float32)


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _gru(x, h, kernel, recurrent_kernel, bias):
  """The GRU of PyTorch and cuDNN, gates in Keras' order: update, reset, new."""
  (x_z, x_r, x_n), (h_z, h_r, h_n) = (
      np.split(product, 3, axis=1) for product in (
          x @ kernel + bias[0], h @ recurrent_kernel + bias[1]))
  z, r = _sigmoid(x_z + h_z), _sigmoid(x_r + h_r)
  return (1 - z) * np.tanh(x_n + r * h_n) + z * h


def _core(name, units=6, num_inputs=4, seed=0):
  """Returns a core whose variables are all other than zero."""
  core = cores.make(name, units, tf.keras.random.SeedGenerator(seed))
  rng = np.random.default_rng(seed)
  core(tf.zeros([1, 1, num_inputs]), core.initial_state(1),
       tf.zeros([1, 1], tf.bool))
  for variable in core.trainable_variables:
    variable.assign_add(.3 * rng.normal(size=variable.shape))
  return core


def _data(core, num_steps, batch_size=5, num_inputs=4):
  rng = np.random.default_rng(3)
  state = tuple(_normal(rng, *part.shape)
                for part in core.initial_state(batch_size))
  return (_normal(rng, num_steps, batch_size, num_inputs), state,
          rng.random([num_steps, batch_size]) < .3)


class CoreTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(1, 2, 9)
  def test_the_gru_is_the_definition(self, num_steps):
    core = _core('gru')
    inputs, state, reset = _data(core, num_steps)
    weights = [v.numpy() for v in core.trainable_variables]
    [h] = state
    expected = []
    for x, is_reset in zip(inputs, reset):
      h = _gru(x, np.where(is_reset[:, None], 0, h), *weights)
      expected.append(h)
    outputs, [last] = core(inputs, state, reset)
    self.assertAllClose(outputs, expected, 1e-5, 1e-5)
    self.assertAllClose(last, h, 1e-5, 1e-5)

  def test_a_stack_is_the_cells_in_turn(self):
    core = _core('fake_cores:stacked')
    inputs, (h, c, upper), reset = _data(core, 7)
    lstm, gru = core._cell.cells
    for t in range(7):
      h, c, upper = (np.where(reset[t][:, None], 0, part)
                     for part in (h, c, upper))
      x, (h, c) = lstm(inputs[t], [h, c])
      x, [upper] = gru(x, [upper])
    outputs, state = core(*_data(core, 7))
    self.assertAllClose(outputs[-1], x, 1e-5, 1e-5)
    self.assertAllClose(state, (h, c, upper), 1e-5, 1e-5)
    self.assertEqual(core.state_names, ('state_1', 'state_2', 'state_3'))

  def test_states_of_several_axes(self):
    core = _core('fake_cores:last_inputs')
    inputs, [state], reset = _data(core, 6)
    [kernel] = (v.numpy() for v in core.trainable_variables)
    for t in range(6):
      state = np.where(reset[t][:, None, None], 0, state)
      state = np.stack([state[:, 1], np.tanh(inputs[t] @ kernel)], 1)
    outputs, [last] = core(*_data(core, 6))
    self.assertAllClose(last, state, 1e-5, 1e-5)
    self.assertAllClose(
        outputs[-1], np.concatenate([state[:, 0] * state[:, 1], state[:, 1]],
                                    1), 1e-5, 1e-5)

  @parameterized.parameters(*_ALL)
  def test_an_unroll_is_single_steps(self, name):
    core = _core(name)
    inputs, state, reset = _data(core, 6)
    outputs, last = core(inputs, state, reset)
    compiled, compiled_last = tf.function(core, jit_compile=True)(
        inputs, state, reset)
    unknown_length = tf.function(core, input_signature=[
        tf.TensorSpec([None, None, 4]),
        tuple(tf.TensorSpec([None, *part.shape[1:]]) for part in state),
        tf.TensorSpec([None, None], tf.bool)])
    self.assertAllClose(unknown_length(inputs, state, reset)[0], outputs)
    for t in range(6):
      output, state = core(inputs[t:t + 1], state, reset[t:t + 1])
      self.assertAllClose(output[0], outputs[t], 1e-5, 1e-5)
    self.assertAllClose(state, last, 1e-5, 1e-5)
    self.assertAllClose(compiled, outputs, 1e-5, 1e-5)
    self.assertAllClose(compiled_last, last, 1e-5, 1e-5)

  @parameterized.parameters(*_ALL)
  def test_gradients_are_those_of_single_steps(self, name):
    core = _core(name)
    inputs, state, reset = _data(core, 5)

    def unroll():
      return core(inputs, state, reset)[0]

    def steps():
      now, outputs = state, []
      for t in range(5):
        output, now = core(inputs[t:t + 1], now, reset[t:t + 1])
        outputs.append(output[0])
      return tf.stack(outputs)

    found = []
    for way in unroll, steps:
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(3 * way()))
      found.append(tape.gradient(loss, core.trainable_variables))
    for one, other in zip(*found, strict=True):
      self.assertAllClose(one, other, 1e-4, 1e-4)
      self.assertGreater(np.abs(one).max(), 0)

  def test_states_and_outputs_are_float32_in_any_type(self):
    with layers.state_of_caller_kept():
      layers.set_compute_dtype('bfloat16')
      core, gru = _core('fake_cores:Minimal'), _core('gru')
    for num_steps in 1, 3:
      outputs, [state] = core(*_data(core, num_steps))
      self.assertEqual([outputs.dtype, state.dtype], [tf.float32] * 2)
    cell_output = lambda core: core._cell(
        tf.zeros([5, 4]), [tf.zeros([5, 6])])[0]
    self.assertEqual(cell_output(core).dtype, tf.bfloat16)
    self.assertEqual(cell_output(gru).dtype, tf.float32)

  def test_seeds_make_weights(self):
    one, same, other = (
        [v.numpy() for v in _core('gru', seed=seed).trainable_variables]
        for seed in (1, 1, 2))
    self.assertAllEqual(one[0], same[0])
    self.assertAllEqual(one[1], same[1])
    self.assertGreater(np.abs(one[0] - other[0]).min(), 0)


class AgentTest(tf.test.TestCase, parameterized.TestCase):

  def _agent(self, core, **kwargs):
    return factory.make_agent('mlp', _VECTOR, _ACTIONS, core=core,
                              lstm_units=6, **kwargs)

  @parameterized.parameters(*_ALL)
  def test_nothing_before_done_matters_after_it(self, core):
    agent = self._agent(core)
    rng = np.random.default_rng(0)
    done = np.array([[0, 0], [0, 1], [0, 0]], bool)
    output = lambda observation, state: agent.unroll(
        np.zeros([3, 2], np.int32), structs.StepOutput(
            np.zeros([3, 2], np.float32), structs.NO_INFO, done, observation),
        state)[0].policy.numpy()
    observations = _normal(rng, 3, 2, 4)
    state = agent.initial_state(2)
    one = output(observations, state)
    other = output(np.concatenate([observations[:1] + 1, observations[1:]]),
                   tf.nest.map_structure(lambda s: s + 1, state))
    difference = np.abs(one - other).max(2)
    self.assertAllGreater(difference[:2, 0], 1e-6)
    self.assertAllEqual(difference[1:, 1], np.zeros(2))

  @parameterized.parameters(
      ('nothing', '^fake_cores:nothing of --core must return a Keras layer or '
                  'model, not NoneType.$'),
      ('dense', '^fake_cores:dense of --core must return a Keras cell, such as '
                r'tf.keras.layers.GRUCell\(units\), but returned a Dense.$'),
      ('whole_layer', 'but returned a GRU.$'),
      ('Ones', '^The initial state of the cell of fake_cores:Ones must be '
               'zeros: an array of floats, or a list or tuple of such'),
      ('Whole', '^The initial state of the cell of fake_cores:Whole must be'),
      ('Named', '^The initial state of the cell of fake_cores:Named must be'),
      ('Grows', '^The cell of fake_cores:Grows has a state of the shapes '
                r'\[\[2, 6\]\] before a step, and \[\[2, 12\]\] after the '
                'step: floats of the same shapes are needed.$'),
      ('Complex', r'\[\[2, 6\]\] before a step, and \[\] after the step'),
      ('ThreeAxes', '^The cell of fake_cores:ThreeAxes must put out features, '
                    r'float \[2, F\], for 2 environments, not float32 '
                    r'\[1, 2, 6\].$'),
      ('Pair', 'for 2 environments, not tuple.$'),
      ('with_dropout', '^The cell of fake_cores:with_dropout has .*, a GRUCell,'
                       ' which cannot learn here'),
      ('with_regularizer', '^The cell of fake_cores:with_regularizer has '
                           'losses'),
      ('WithPlainVariable', '^The cell of fake_cores:WithPlainVariable uses a '
                            r'tf.Variable of the shape \[6\] that Keras'),
      ('missing', '^--core=fake_cores:missing: fake_cores has no function '
                  'missing.$'))
  def test_cells_that_cannot_be_used(self, name, message):
    with self.assertRaisesRegex(errors.ConfigError, message):
      self._agent(f'fake_cores:{name}')

  def test_each_agent_has_its_own_cell(self):
    self._agent('fake_cores:the_same')
    with self.assertRaisesRegex(
        errors.ConfigError, '^fake_cores:the_same of --core must return a new '
        'layer at each call'):
      self._agent('fake_cores:the_same')

  def test_errors_of_users_functions(self):
    with self.assertRaisesRegex(
        errors.UserCodeError, '^fake_cores:raises of --core raised ValueError: '
        'I do not like 6.$') as caught:
      self._agent('fake_cores:raises')
    self.assertIn('in raises', caught.exception.frames)


class SettingsTest(parameterized.TestCase):

  def test_texts(self):
    with self.assertRaisesRegex(
        errors.ConfigError, '^--core=rnn must be one of lstm, gru, or '
        'module:function'):
      config_lib.Config(level_name='CartPole-v1', use_lstm=True, core='rnn')
    with self.assertRaisesRegex(errors.ConfigError, '--core.*--use_lstm'):
      config_lib.Config(level_name='CartPole-v1', core='gru', use_lstm=False)

  def test_the_memory_of_states_is_counted(self):
    spec = structs.EnvironmentSpec(_VECTOR, _ACTIONS, 1)
    config = config_lib.Config(
        level_name='memory', algorithm='ddqn', use_lstm=True, unroll_length=4,
        replay_steps=400, logdir='unused')
    num_bytes = lambda **kwargs: memory_check.num_step_bytes(
        config, spec, factory.make_agent('mlp', _VECTOR, _ACTIONS, **kwargs))
    without = num_bytes(use_lstm=False)
    self.assertEqual(num_bytes(lstm_units=6) - without, 100 * 4 * 12)
    self.assertEqual(num_bytes(core='fake_cores:last_inputs') - without,
                     100 * 4 * 10)


@pytest.mark.slow
class RunTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      dict(algorithm='impala', core='gru', compute_dtype='bfloat16'),
      dict(algorithm='impala', core='fake_cores:last_inputs',
           dynamic_batching=True, num_actor_groups=2, xla='none'),
      dict(algorithm='appo', core='fake_cores:stacked', xla='all'),
      dict(algorithm='ddqn', core='gru', xla='all'),
      dict(algorithm='mpo', core='fake_cores:last_inputs', xla='none'),
      dict(algorithm='sac', core='fake_cores:stacked', xla='none'))
  def test_a_run_learns_and_goes_on(self, algorithm, **settings):
    settings |= dict(level_name='memory', algorithm=algorithm, use_lstm=True,
                     lstm_units=5, num_actors=2, unroll_length=4,
                     logdir=self.create_tempdir().full_path)
    settings |= dict(batch_size=2) if algorithm in ('impala', 'appo') else dict(
        hidden_sizes='8', sequence_length=4, batch_size=4, burn_in_steps=2,
        min_replay_steps=16)
    weights = []
    for num_frames in 80, 160:
      training.train(
          config_lib.Config(total_environment_frames=num_frames, **settings),
          [lambda update: weights.append(
              [v.numpy() for v in update.learner.agent._core.variables])])
    loaded = loading.load(settings['logdir'])
    self.assertGreaterEqual(loaded.num_env_frames, 160)
    for first, last, of_loaded in zip(
        weights[0], weights[-1], loaded.agent._core.variables, strict=True):
      self.assertAllEqual(last, of_loaded)
      if first.dtype == np.float32:
        self.assertGreater(np.abs(first - last).max(), 0)
    action, state = loaded.step(
        np.zeros([3, *loaded.spec.observation.shape], np.float32),
        loaded.initial_state(3))
    self.assertEqual(action.shape, (3,))
    self.assertNotAllClose(state.core[0], np.zeros_like(state.core[0]))
    with self.assertRaisesRegex(errors.CheckpointError, 'of another agent'):
      training.train(config_lib.Config(
          total_environment_frames=240, **{**settings, 'core': 'lstm'}))


MUTATIONS = (
    dict(file='networks/cores', catches='test_the_gru_is_the_definition',
         rows=(
        ('no resets', '0., part) for part in state]',
         'part, part) for part in state]'),
        ('the state before the last step',
         'return outputs, tuple(part[-1] for part in states)',
         'return outputs, tuple(part[-2] for part in states)'),
    )),
    dict(file='networks/cores',
         catches='test_states_and_outputs_are_float32_in_any_type', rows=(
        ('outputs of the cell', 'return to_float(output), tuple',
         'return output, tuple'),
        ('a GRU in bfloat16', "dtype='float32'), name)",
         'dtype=None), name)'),
    )),
    dict(file='networks/cores', catches='test_seeds_make_weights', rows=(
        ('kernels of the global seed', 'GlorotUniform(seed)',
         'GlorotUniform()'),
    )),
    dict(file='learning/memory_check',
         catches='test_the_memory_of_states_is_counted', rows=(
        ('one array of the state', 'for part in agent.initial_state(1))',
         'for part in agent.initial_state(1)[:1])'),
    )),
)
