# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of exported agents: the same numbers without this package."""

import json
import os
import subprocess
import sys
import tempfile
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import gymnasium
import in_process
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.modes import export
from scalable_agent.modes import loading
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

# Runs where there is TensorFlow only: anything else cannot be imported.
_FOREIGN = """
import sys

class Refused:
  def find_spec(self, name, path=None, target=None):
    if name.partition('.')[0] in (
        'scalable_agent', 'tensorflow_probability', 'tree', 'gymnasium',
        'tf_keras', 'ale_py'):
      raise ImportError(f'{name} is not here')

sys.meta_path.insert(0, Refused())
import numpy as np
import tensorflow as tf
directory, inputs, outputs = sys.argv[1:]
signatures = tf.saved_model.load(directory).signatures
inputs = {name: tf.constant(value.tolist() if value.dtype == object else value)
          for name, value in np.load(inputs, allow_pickle=True).items()}
num_envs = len(next(iter(inputs.values())))
state = signatures['initial_state'](batch_size=tf.constant(num_envs))
greedy = signatures['step_greedy'](**inputs)
sampled = signatures['step'](**inputs)
np.savez(outputs, **{f'{which}_{name}': value.numpy() for which, part in dict(
    state=state, greedy=greedy, sampled=sampled).items()
                     for name, value in part.items()})
"""
_NUM_ENVS = 3
_SETTINGS = {
    'recurrent': dict(level_name='CartPole-v1', use_lstm=True),
    'words': dict(level_name='BabyAI-GoToObj-v0', use_lstm=True),
    'normalised': dict(level_name='CartPole-v1', normalise_returns=True,
                       normalise_observations='auto'),
    'passes': dict(level_name='Pendulum-v1', algorithm='appo', num_actors=4),
    'continuous': dict(level_name='Pendulum-v1', algorithm='sac',
                       min_replay_steps=8, hidden_sizes='16,8',
                       layer_norm=True),
    'values': dict(level_name='catch', algorithm='ddqn', min_replay_steps=8,
                   hidden_sizes='16'),
    'containers': dict(level_name='catch', agent='fake_torsos:in_containers'),
    'memory': dict(level_name='Pendulum-v1', algorithm='sac', use_lstm=True,
                   lstm_units=6, hidden_sizes='16,8', sequence_length=2,
                   unroll_length=2, burn_in_steps=1, min_replay_steps=8),
    'cell': dict(level_name='CartPole-v1', use_lstm=True, lstm_units=5,
                 core='fake_cores:stacked'),
    'window': dict(level_name='CartPole-v1', use_lstm=True,
                   core='fake_cores:last_inputs'),
}


class WordsTest(absltest.TestCase):

  def test_hashes_are_those_of_the_agents(self):
    texts = ['go to the red ball', '', '  two  spaces ', 'a', 'ä\tb c', 'Go to',
             'one two three four five six seven eight nine']
    expected = instructions.hash_words(texts)
    found = tf.function(instructions.hash_words_in_graph)(tf.constant(texts))
    width = max(expected.shape[1], found.shape[1])
    pad = lambda ids: np.pad(ids, [[0, 0], [0, width - ids.shape[1]]],
                             constant_values=-1)
    np.testing.assert_array_equal(pad(found.numpy()), pad(expected))
    self.assertEqual(
        instructions.hash_words_in_graph(tf.constant([''])).numpy().tolist(),
        [[-1]])


_CONTINUOUS = structs.ActionSpec(size=2)
_DISCRETE = structs.ActionSpec((3,))
_HEADS = {
    'squashed': (_CONTINUOUS, dict()),
    'not_squashed': (_CONTINUOUS, dict(squash_actions=False)),
    'softmax': (_DISCRETE, dict()),
    'several_parts': (structs.ActionSpec((3, 2)), dict()),
    'values': (_DISCRETE, dict(algorithm='ddqn')),
    'sac': (_CONTINUOUS, dict(algorithm='sac')),
    'sac_discrete': (_DISCRETE, dict(algorithm='sac')),
    'mpo': (_CONTINUOUS, dict(algorithm='mpo')),
    'mpo_discrete': (_DISCRETE, dict(algorithm='mpo')),
    'td3': (_CONTINUOUS, dict(algorithm='td3')),
    'ddpg': (_CONTINUOUS, dict(algorithm='ddpg')),
}


def _untrained(observation, action, **settings):
  """Returns a loaded agent, and the module of its export."""
  spec = structs.EnvironmentSpec(observation, action, 1)
  if 'algorithm' not in settings:
    settings |= dict(use_lstm=False, use_last_action_reward=False)
  config = config_lib.Config(**{'agent': 'mlp', **settings}).resolved(
      observation, on_cpu=True, num_groups=1)
  agent = algorithms.make_agent(config, spec, 1)
  return (loading.LoadedAgent(config, spec, agent, 0),
          export.ExportedAgent(agent, spec, False))


def _run_tflite(module, directory, inputs):
  export._add_tflite(module, directory, True)
  return tf.lite.Interpreter(os.path.join(
      directory, 'agent.tflite')).get_signature_runner('step_greedy')(**inputs)


class ModuleTest(absltest.TestCase):

  @pytest.mark.slow
  def test_torsos_with_layers_in_any_container(self):
    _, module = _untrained(
        structs.ArraySpec((50,), np.dtype(np.float32)), _DISCRETE,
        agent='fake_torsos:in_containers')
    directory = self.create_tempdir().full_path
    tf.saved_model.save(module, directory, signatures=module.signatures())
    inputs = {'observation': tf.constant(
        np.random.default_rng(0).normal(size=[4, 50]).astype(np.float32))}
    expected = module.step_greedy(**inputs)['policy']
    loaded = tf.saved_model.load(directory)
    step = loaded.signatures['step_greedy']
    np.testing.assert_allclose(step(**inputs)['policy'], expected, rtol=1e-5)
    self.assertLen(step.variables, len(module.agent.variables))

  def test_words_that_the_agent_does_not_see_are_no_input(self):
    spec = {'a': structs.ArraySpec((4,), np.dtype(np.float32)),
            'instruction': structs.ArraySpec((), np.dtype(object))}
    for use_instruction in False, True:
      _, module = _untrained(
          spec, _DISCRETE, use_instruction=use_instruction)
      self.assertEqual('observation_instruction' in module.inputs,
                       use_instruction)
      inputs = {name: np.full([1, *part.shape[1:]], b'go' if (
          part.dtype == tf.string) else 1., part.dtype.as_numpy_dtype)
                for name, part in module.inputs.items()}
      module.step(**inputs)
      if not use_instruction:
        directory = self.create_tempdir().full_path
        np.testing.assert_allclose(
            _run_tflite(module, directory, inputs)['policy'],
            module.step_greedy(**inputs)['policy'], rtol=1e-5)


  def test_goals_that_are_no_input(self):
    names = ('achieved_goal', 'desired_goal', 'observation')
    vector = structs.ArraySpec((3,), np.dtype(np.float32))
    loaded, module = _untrained(dict.fromkeys(names, vector), _CONTINUOUS)
    description = units.describe(
        gymnasium.spaces.Dict({
            name: gymnasium.spaces.MultiBinary(3) for name in names}),
        gymnasium.spaces.Box(-1, 1, (2,)))
    counted = export.ExportedAgent(
        loaded.agent, loaded.spec._replace(units=description), False)
    for one, dtype in (module, tf.float32), (counted, tf.int32):
      self.assertEqual([*one.inputs], [
          'observation_desired_goal', 'observation_observation'])
      one.step(**{name: tf.ones([2, 3], dtype) for name in one.inputs})


class BoundsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (name, *entry) for name, entry in _HEADS.items())
  def test_every_head_stays_within_the_action_space(self, action, settings):
    self._check(action, settings, 1e6)

  @parameterized.named_parameters(
      (f'{name}_{weight:g}', *entry, weight)
      for name, entry in _HEADS.items() for weight in (3.0, -1e6)
      # Equal logits are one distribution, large or small.
      if entry[0].size or weight != 3.0)
  @pytest.mark.storm
  def test_every_head_of_other_numbers_stays_within_the_action_space(
      self, action, settings, weight):
    self._check(action, settings, weight)

  def _check(self, action, settings, weight):
    observation = np.zeros([1, 2], np.float32)
    agent, module = _untrained(
        structs.ArraySpec((2,), observation.dtype), action, **settings)
    # Means of 3 and wide deviations, or one favourite.
    for variable in agent.agent.trainable_variables:
      if variable.path.rpartition('/')[0].endswith(('logits', 'advantages')):
        variable.assign(tf.fill(variable.shape, weight))
    directory = self.create_tempdir().full_path
    tf.saved_model.save(module, directory, signatures=module.signatures())
    signatures = tf.saved_model.load(directory).signatures
    found = {'tflite': _run_tflite(
        module, directory, {'observation': observation})['action']}
    for name in ('step', 'step_greedy'):
      found[name] = signatures[name](
          observation=tf.constant(np.repeat(observation, 50, 0)))['action']
    for greedy in (False, True):
      state = agent.initial_state(50)
      found[greedy], state = agent.step(
          np.repeat(observation, 50, 0), state, greedy=greedy)
      np.testing.assert_array_equal(state.last_action, found[greedy])
    for which, actions in found.items():
      actions = np.array(actions)
      self.assertEqual(actions.dtype, action.array.dtype, which)
      self.assertEqual(actions.shape[1:], action.array.shape, which)
      if action.size:
        self.assertLessEqual(np.abs(actions).max(), 1.0, which)
      else:
        self.assertTrue(np.all(
            (actions >= 0) & (actions < np.array(action.num_values))), which)
    np.testing.assert_allclose(found['step_greedy'], found[True], rtol=1e-6)
    np.testing.assert_allclose(found['tflite'], found[True][:1], rtol=1e-5)


class DtypeTest(absltest.TestCase):

  @layers.state_of_caller_kept()
  def test_bfloat16_is_refused_before_the_conversion(self):
    layers.set_compute_dtype('bfloat16')
    _, module = _untrained(
        structs.ArraySpec((2,), np.dtype(np.float32)), _DISCRETE)
    directory = self.create_tempdir().full_path
    with mock.patch.object(tf.saved_model, 'save') as save:
      self.assertEqual(
          export._add_tflite(module, directory, False),
          '. TensorFlow Lite does not take this network: it computes in '
          'bfloat16, which TensorFlow Lite cannot do.')
    save.assert_not_called()


class NamesTest(parameterized.TestCase):

  @parameterized.parameters(
      (('arm/joint', 'a.b', 'a b', 'a_b', 'A.b', 'größe', 'a-b_2'),),
      ((2, 10, 1),),
      (('speed', 'place'), 'auto'))
  def test_each_part_has_its_own_input(self, names, normalised='none'):
    rng = np.random.default_rng(1)
    # Parts differ in size, so that an exchange cannot pass.
    spec = {name: structs.ArraySpec((2 + i,), np.dtype(np.float32))
            for i, name in enumerate(names)}
    observation = {name: rng.normal(size=[1, *part.shape]).astype(np.float32)
                   for name, part in spec.items()}
    agent, module = _untrained(
        spec, _CONTINUOUS, normalise_observations=normalised,
        normalise_returns=normalised != 'none')
    for variable in agent.agent.variables:  # Statistics, too.
      variable.assign(rng.uniform(.5, 2, variable.shape))
    self.assertLen(set(module.names_of_parts.values()), len(names))
    for name in names:
      if str(name).isidentifier() and str(name).isascii():
        self.assertEqual(module.names_of_parts[name], f'observation_{name}')
    inputs = {module.names_of_parts[name]: part
              for name, part in observation.items()}
    directory = self.create_tempdir().full_path
    tf.saved_model.save(module, directory, signatures=module.signatures())
    step = tf.saved_model.load(directory).signatures['step_greedy']
    found = [step(**{name: tf.constant(part)
                     for name, part in inputs.items()})['action'],
             _run_tflite(module, directory, inputs)['action']]
    expected, _ = agent.step(observation, agent.initial_state(1), greedy=True)
    for action in found:
      np.testing.assert_allclose(action, expected, rtol=1e-4, atol=1e-6)
    self.assertEqual(structs.EnvironmentSpec.from_json(
        json.loads(json.dumps(agent.spec.to_json()))), agent.spec)


@pytest.mark.slow
class ExportTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    root = tempfile.TemporaryDirectory()
    cls.addClassCleanup(root.cleanup)
    cls.root = root.name

  def _logdir(self, name):
    """Returns the directory of an agent, which is trained at the first call."""
    logdir = os.path.join(self.root, name)
    if not os.path.exists(logdir):
      training.train(config_lib.Config(**{
          'logdir': logdir, 'agent': 'mlp', 'xla': 'none', 'num_actors': 2,
          'unroll_length': 2, 'batch_size': 2, 'total_environment_frames': 16,
          **_SETTINGS[name]}))
    return logdir

  def _main(self, name, *args):
    return in_process.main(
        '--mode=export', f'--logdir={self._logdir(name)}', *args)

  def _export(self, name, *args):
    code, output = self._main(name, *args)
    self.assertEqual(code, 0, output)
    return output.split('Wrote ')[1].split(': ')[0], output

  def test_the_same_without_this_package(self):
    self._check_foreign('words')

  @parameterized.parameters(
      'recurrent', 'continuous', 'values', 'normalised', 'passes', 'memory',
      'containers')
  @pytest.mark.storm
  def test_the_same_without_this_package_for_others(self, name):
    self._check_foreign(name)

  def _check_foreign(self, name):
    path, _ = self._export(name, '--export_format=saved_model')
    agent = loading.load(self._logdir(name))
    observation, inputs, state = _inputs(agent, name)
    with tempfile.TemporaryDirectory() as directory:
      files = [os.path.join(directory, f) for f in ('in.npz', 'out.npz')]
      np.savez(files[0], **inputs)
      subprocess.run([sys.executable, '-c', _FOREIGN, path, *files],
                     cwd=directory, check=True)
      found = dict(np.load(files[1]))
    expected, core = agent.agent.unroll(
        state.last_action[None], structs.StepOutput(
            inputs.get('reward', np.zeros(_NUM_ENVS, np.float32))[None],
            structs.NO_INFO,
            inputs.get('done', np.zeros(_NUM_ENVS, bool))[None],
            tf.nest.map_structure(lambda part: part[None], observation)),
        state.core)
    np.testing.assert_allclose(
        found['greedy_policy'], expected.policy[0], rtol=1e-5, atol=1e-6)
    action = agent.agent.head.distribution(expected.policy[0]).mode().numpy()
    scale = 1
    if _SETTINGS[name]['level_name'] == 'Pendulum-v1':
      action, scale = np.clip(action, -1, 1), 2  # The torque is in [-2, 2].
    np.testing.assert_allclose(
        found['greedy_normalised_action'], action, rtol=1e-5)
    np.testing.assert_allclose(
        found['greedy_action'], scale * action, rtol=1e-5)
    self.assertEqual('greedy_baseline' in found, name in (
        'recurrent', 'words', 'normalised', 'passes', 'cell', 'window',
        'containers'))
    if 'greedy_baseline' in found:
      np.testing.assert_allclose(
          found['greedy_baseline'], expected.baseline[0], rtol=1e-5, atol=1e-6)
    for part, value in zip(agent.agent.state_names, core, strict=True):
      np.testing.assert_allclose(
          found[f'greedy_{part}'], value, rtol=1e-5, atol=1e-6)
      self.assertFalse(found[f'state_{part}'].any())
      self.assertEqual(found[f'state_{part}'].shape, value.shape)
    spec = agent.spec.action.array
    self.assertEqual(found['sampled_action'].shape, (_NUM_ENVS, *spec.shape))
    self.assertEqual(found['sampled_action'].dtype, spec.dtype)
    with open(os.path.join(path, 'agent.json'), encoding='utf-8') as f:
      self.assertEqual(structs.EnvironmentSpec.from_json(
          json.load(f)['spec']), agent.spec)

  def test_tensorflow_lite(self):
    self._check_lite('recurrent')

  @parameterized.parameters(
      'normalised', 'continuous', 'values', 'passes', 'memory')
  @pytest.mark.storm
  def test_tensorflow_lite_of_others(self, name):
    self._check_lite(name)

  def _check_lite(self, name):
    path, output = self._export(name)
    self.assertIn('agent.tflite', output)
    agent = loading.load(self._logdir(name))
    _, inputs, _ = _inputs(agent, name)
    inputs = {key: value[:1] for key, value in inputs.items()}
    runner = tf.lite.Interpreter(os.path.join(
        path, 'agent.tflite')).get_signature_runner('step_greedy')
    found = runner(**inputs)
    expected = tf.saved_model.load(path).signatures['step_greedy'](
        **{key: tf.constant(value) for key, value in inputs.items()})
    self.assertEqual(found.keys(), expected.keys())
    for key, value in expected.items():
      np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5)
    self.assertTrue(np.any(found['policy']))

  @pytest.mark.storm
  def test_actions_are_drawn_from_the_policy(self):
    path, _ = self._export('recurrent', '--export_format=saved_model')
    agent = loading.load(self._logdir('recurrent'))
    _, inputs, _ = _inputs(agent, 'recurrent')
    step = tf.saved_model.load(path).signatures['step']
    num = 4000
    many = {key: tf.repeat(tf.constant(value[:1]), num, axis=0)
            for key, value in inputs.items()}
    one, other = step(**many), step(**many)
    share = tf.nn.softmax(one['policy'])[0, 1].numpy()
    counted = one['action'].numpy().mean()
    self.assertLess(abs(counted - share),
                    5 * np.sqrt(share * (1 - share) / num))
    self.assertTrue(np.any(one['action'] != other['action']))

  def test_nothing_is_replaced(self):
    paths = {self._export('values', '--export_format=saved_model')[0]
             for _ in range(3)}
    self.assertLen(paths, 3)

  def test_what_tensorflow_lite_does_not_take(self):
    _, output = self._export('words')
    self.assertIn('TensorFlow Lite does not take this network: it hashes words',
                  output)
    directory = os.path.join(self._logdir('words'), 'export')
    before = sorted(os.listdir(directory))
    code, output = self._main('words', '--export_format=tflite')
    self.assertEqual(code, 2)
    self.assertEqual(
        output.splitlines()[-1], 'scalable_agent: TensorFlow Lite does not take'
        ' this network: it hashes words, which TensorFlow Lite cannot do. Use '
        '--export_format=saved_model.')
    self.assertEqual(sorted(os.listdir(directory)), before)

  def test_full_disk(self):
    directory = os.path.join(self._logdir('values'), 'export')
    self._export('values', '--export_format=saved_model')
    before = sorted(os.listdir(directory))
    with mock.patch.object(tf.saved_model, 'save', side_effect=(
        tf.errors.ResourceExhaustedError(None, None, 'No space left'))):
      code, output = self._main('values')
    self.assertEqual(code, 2)
    self.assertRegex(output.splitlines()[-1],
                     'export cannot be written: No space left.$')
    self.assertEqual(sorted(os.listdir(directory)), before)

  def test_full_disk_while_tensorflow_lite_is_made(self):
    directory = os.path.join(self._logdir('values'), 'export')
    self._export('values', '--export_format=saved_model')
    before = sorted(os.listdir(directory))
    save, calls = tf.saved_model.save, []

    def save_once(*args, **kwargs):
      calls.append(args)
      if len(calls) > 1:
        raise OSError(28, 'No space left on device')
      save(*args, **kwargs)

    with mock.patch.object(tf.saved_model, 'save', save_once):
      code, output = self._main('values')
    self.assertEqual(code, 2)
    self.assertRegex(output.splitlines()[-1],
                     'export cannot be written: No space left on device.$')
    self.assertEqual(sorted(os.listdir(directory)), before)


def _inputs(agent, name):
  """Returns an observation, the inputs of a step, and the state before it."""
  rng = np.random.default_rng(5)

  def part(spec):
    if spec.dtype == object:
      return np.array([b'go to the red ball', b'', b'  open a door '], object)
    values = rng.normal(size=[_NUM_ENVS, *spec.shape]) * 100
    return np.abs(values).astype(spec.dtype)

  spec = agent.spec.observation
  observation = ({key: part(s) for key, s in spec.items()}
                 if isinstance(spec, dict) else part(spec))
  inputs = ({f'observation_{key}': value for key, value in observation.items()}
            if isinstance(spec, dict) else {'observation': observation})
  state = agent.initial_state(_NUM_ENVS)
  if agent.agent.has_memory:
    core = tuple(rng.normal(size=part.shape).astype(np.float32)
                 for part in state.core)
    size = agent.spec.action.size
    state = loading.State(
        rng.uniform(-1, 1, (_NUM_ENVS, size)).astype(np.float32) if size
        else rng.integers(0, 2, _NUM_ENVS).astype(np.int32), core)
    inputs |= dict(last_action=state.last_action,
                   reward=rng.normal(size=_NUM_ENVS).astype(np.float32),
                   done=np.array([False, True, False]),
                   **dict(zip(agent.agent.state_names, core, strict=True)))
  return observation, inputs, state


# See `mutations.py`.
MUTATIONS = (
    dict(file='modes/export',
         catches='test_torsos_with_layers_in_any_container', rows=(
        ('TensorFlow looks for variables', 'self._agent = lambda: agent',
         'self._net, self._agent = agent, lambda: agent'),
        ('tables are not saved', '*user_layers.resources(agent)]', ']'),
    )),
    dict(file='networks/user_layers',
         catches='test_torsos_with_layers_in_any_container', rows=(
        ('layers are in the outermost scope', 'with tf.name_scope(part):',
         'if True:'),
    )),
    dict(file='networks/agents',
         catches='test_torsos_with_layers_in_any_container', rows=(
        ('torsos are in the outermost scope', "with tf.name_scope('torso'):",
         'if True:'),
    )),
    dict(file='modes/export',
         catches='test_words_that_the_agent_does_not_see_are_no_input', rows=(
        ('words are always an input',
         "unseen.add('instruction')", 'pass'),
    )),
    dict(file='modes/export', catches='test_goals_that_are_no_input', rows=(
        ('all goals are inputs', 'instructions.not_seen(spec.observation)',
         'set()'),
    )),
    dict(file='modes/export',
         catches='test_the_same_without_this_package', rows=(
        ('c and h swapped', 'for name in self.agent.state_names))',
         'for name in self.agent.state_names[::-1]))'),
        ('no rewards',
         "add_time(inputs.get('reward', tf.zeros([batch_size]))),",
         'add_time(tf.zeros([batch_size])),'),
        ('nothing is done',
         "add_time(inputs.get('done', tf.zeros([batch_size], tf.bool))),",
         'add_time(tf.zeros([batch_size], tf.bool)),'),
    )),
    dict(file='modes/export',
         catches='test_actions_are_drawn_from_the_policy', rows=(
        ('the same draws',
         'tf.random.uniform([3, 2], maxval=tf.int32.max, dtype=tf.int32)',
         'tf.zeros([3, 2], tf.int32)'),
    )),
    dict(file='modes/export',
         catches='test_bfloat16_is_refused_before_the_conversion', rows=(
        ('bfloat16 is converted',
         "if module.agent.compute_dtype == 'bfloat16':", 'if False:'),
    )),
    dict(file='modes/export', catches='test_tensorflow_lite', rows=(
        ('lite without weights',
         'with tf.keras.StatelessScope(state_mapping=weights):', 'if True:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
