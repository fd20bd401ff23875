# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that users of agents act and observe in the units of environments."""

import contextlib
import inspect
import io
import json
import os
import re
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import gymnasium
from gymnasium import spaces
import numpy as np
import pytest
import scalable_agent
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import encoding
from scalable_agent.environments import spaces as our_spaces
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.modes import export
from scalable_agent.modes import loading
from scalable_agent.processes import shared_arrays
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_ACTIONS = {
    'prices': spaces.Box(0, 500, (2,), np.float32),
    'uneven': spaces.Box(np.array([[-3., 2.], [0., 7.]]),
                         np.array([[4., 9.], [.1, 1000.]]), dtype=np.float64),
    'from_one': spaces.Discrete(3, start=1),
    'several': spaces.MultiDiscrete([3, 2], start=[5, -1]),
    'switches': spaces.MultiBinary([2, 2]),
}
_COUNTED = {
    'place': spaces.Discrete(4, start=2),
    'cards': spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 1], [2, 5]]),
    'lamps': spaces.MultiBinary(3),
}


def _agent(observation_space, action_space):
  """Returns an untrained agent of two spaces, and its exported module."""
  action = our_spaces.action_spec(action_space, '')
  layout = our_spaces.layout(observation_space, action, '')
  saved = json.loads(json.dumps(structs.EnvironmentSpec(
      layout.spec, action, 1, units.describe(
          observation_space, action_space)).to_json()))
  spec = structs.EnvironmentSpec.from_json(saved)
  config = config_lib.Config(
      agent='mlp', use_lstm=False, use_last_action_reward=False).resolved(
          spec.observation, on_cpu=True, num_groups=1)
  agent = algorithms.make_agent(config, spec, 1)
  rng = np.random.default_rng(3)
  for variable in agent.trainable_variables:
    variable.assign(rng.normal(size=variable.shape))
  return (loading.LoadedAgent(config, spec, agent, 0),
          export.ExportedAgent(agent, spec, False))


def _slow_action(action, space):
  """Returns the action of one environment, in its units, by a loop."""
  flat = np.ravel(action)
  if isinstance(space, spaces.Box):
    low, high = space.low.ravel(), space.high.ravel()
    flat = [low[i] + (high[i] - low[i]) * (float(flat[i]) + 1) / 2
            for i in range(len(flat))]
  elif not isinstance(space, spaces.MultiBinary):
    start = np.ravel(space.start)
    flat = [int(flat[i]) + int(start[i]) for i in range(len(flat))]
  return np.reshape(flat, space.shape or ())


class ActionsTest(parameterized.TestCase):

  @parameterized.parameters(*_ACTIONS)
  def test_step_and_export_act_in_the_space(self, name):
    space = _ACTIONS[name]
    agent, module = _agent(spaces.Box(-1, 1, (2,), np.float32), space)
    observation = np.random.default_rng(1).normal(size=[20, 2]).astype('f')
    state = agent.initial_state(20)
    actions, after = agent.step(observation, state, greedy=True)
    plain, same = agent.step(observation, state, greedy=True, normalised=True)
    np.testing.assert_array_equal(after.last_action, plain)
    np.testing.assert_array_equal(same.last_action, plain)
    self.assertEqual(plain.shape, (20, *agent.spec.action.array.shape))
    self.assertGreater(len(np.unique(plain)), 1)
    for row, expected in zip(actions, plain, strict=True):
      self.assertTrue(space.contains(row), row)
      np.testing.assert_allclose(row, _slow_action(expected, space), rtol=1e-5)
    outputs = module.step_greedy(observation=tf.constant(observation))
    # A rounding of tanh is 250 times as large in the units of prices.
    np.testing.assert_allclose(outputs['action'], actions, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(
        outputs['normalised_action'], plain, rtol=1e-4, atol=1e-5)
    sampled = module.step(observation=tf.constant(observation))
    for row, expected in zip(sampled['action'].numpy(), sampled[
        'normalised_action'].numpy(), strict=True):
      self.assertTrue(space.contains(row.astype(space.dtype)), row)
      np.testing.assert_allclose(
          row, _slow_action(expected, space), rtol=1e-4, atol=1e-5)

  def test_the_bounds_are_reached_exactly(self):
    low, high = np.float32([0, -.3, 1e-7]), np.float32([.1, .7, 3e8])
    space = spaces.Box(low, high)
    for action, bound in ((-1, low), (1, high)):
      found = export._in_space(tf.fill([1, 3], float(action)), space)
      np.testing.assert_array_equal(found[0], bound)


class ObservationsTest(parameterized.TestCase):

  def _check(self, space, observations, vectors):
    """Checks two forms of observations, in `step` and in the export."""
    agent, module = _agent(space, spaces.Discrete(5))
    state = agent.initial_state(3)
    found, other = (agent.step(observation, state, greedy=True)[0].tolist()
                    for observation in (observations, vectors))
    self.assertEqual(found, other)
    named = (observations if isinstance(observations, dict)
             else {'': observations})
    inputs = {f'observation_{name}'.rstrip('_'): part
              for name, part in named.items()}
    self.assertEqual(
        {name: part.shape[1:] for name, part in module.inputs.items()},
        {name: part.shape[1:] for name, part in inputs.items()})
    outputs = module.step_greedy(**{
        name: tf.constant(part) for name, part in inputs.items()})
    self.assertEqual(outputs['action'].numpy().tolist(), found)
    with tempfile.TemporaryDirectory() as directory:
      export._add_tflite(module, directory, True)
      lite = tf.lite.Interpreter(os.path.join(
          directory, 'agent.tflite')).get_signature_runner('step_greedy')(
              **{name: part[:1] for name, part in inputs.items()})
    self.assertEqual(lite['action'].tolist(), found[:1])
    np.testing.assert_allclose(lite['policy'], outputs['policy'][:1], rtol=1e-4)

  @parameterized.parameters(*_COUNTED)
  def test_integers_are_the_same_as_vectors(self, name):
    space = _COUNTED[name]
    space.seed(1)
    rows = [space.sample() for _ in range(3)]
    self._check(space, np.array(rows, np.int32), np.array(
        [spaces.flatten(space, row) for row in rows], np.float32))

  def test_parts_of_a_dictionary(self):
    space = spaces.Dict({**_COUNTED, 'price': spaces.Box(
        0, 9, (2,), np.float32)})
    space.seed(2)
    rows = [space.sample() for _ in range(3)]
    parts = {name: np.array([row[name] for row in rows], np.int32)
             for name in _COUNTED}
    price = np.array([row['price'] for row in rows])
    self._check(space, {**parts, 'price': price}, {'price': price, **{
        name: [spaces.flatten(space[name], row[name]) for row in rows]
        for name in _COUNTED}})

  def test_a_tuple(self):
    agent, _ = _agent(spaces.Tuple([_COUNTED['place'], _COUNTED['lamps']]),
                      spaces.Discrete(5))
    state = agent.initial_state(1)
    one = agent.step(([3], [[0, 1, 1]]), state, greedy=True)[0]
    other = agent.step({'0': [[0, 1, 0, 0]], '1': [[0, 1, 1]]}, state,
                       greedy=True)[0]
    self.assertEqual(one.tolist(), other.tolist())

  @parameterized.parameters(
      (6, r'An observation has the number 6, which is not in its space, '
       r'Discrete\(4, start=2\)'),
      (2.5, 'must be a whole number'), (np.zeros(3), (
          r'Discrete\(4, start=2\) must be integers of shape \[1\], or vectors '
          r'of zeros and ones of shape \[1, 4\], not \[1, 3\]')))
  def test_what_is_no_number_of_the_space(self, number, text):
    agent, _ = _agent(_COUNTED['place'], spaces.Discrete(5))
    with self.assertRaisesRegex(errors.EnvironmentSpecError, text):
      agent.step(np.array([number]), agent.initial_state(1))

  @parameterized.parameters(
      spaces.Discrete(28, start=100, dtype=np.int8),
      spaces.MultiDiscrete([28], start=[100], dtype=np.int8),
      spaces.MultiDiscrete([156], start=[100], dtype=np.uint8))
  def test_the_largest_number_of_a_dtype(self, space):
    top = np.iinfo(space.dtype).max
    our_spaces.check_counted(np.array([100, top], space.dtype), space)
    with self.assertRaisesRegex(ValueError, 'the number 99, which is not in'):
      our_spaces.check_counted(np.array([99], space.dtype), space)

  @parameterized.parameters(
      (spaces.Discrete(5), np.array([1, 3]), 'has 2 numbers, .* Discrete'),
      (spaces.MultiDiscrete([3, 3]), 1, 'has 1 numbers, .* MultiDiscrete'),
      (spaces.MultiDiscrete([3, 3]), [1, .5], r'the number 0\.5, .* Multi'),
      (spaces.MultiBinary(2), [0, .5], r'the number 0\.5, .* MultiBinary'),
      (spaces.MultiBinary(2), np.array([.5, 1], object), r'the number 0\.5'),
      (spaces.MultiBinary(2), [0, np.nan], 'the number nan, .* MultiBinary'),
      (spaces.Box(0, 1, (2,), np.uint8), [.2, 1], r'number 0\.2, .* uint8'),
      (spaces.Box(0, 1, (2,), np.uint8), [0, np.nan], 'number nan, .* uint8'),
      (spaces.Box(0, 1, (2,), np.uint8), [np.inf, 1], 'number inf, .* uint8'),
      (spaces.Box(0, 1, (2,), np.uint8), np.array([.5, 1], object), 'number 0'),
      (spaces.Box(0, 1, (2,)), [1, 2j], 'complex128 .*, but must be numbers'),
      (spaces.Box(0, 1, (2,)), ['1', '2'], '<U1 .*, but must be numbers'),
      (spaces.Box(0, 1, (1,)), [None], 'object .*, but must be numbers'),
      (spaces.Discrete(2), '1', '<U1 .*, but must be numbers'))
  def test_an_encoder_refuses_numbers_that_do_not_fit(
      self, space, observation, text):
    encode = encoding.Encoder(space, spaces.Discrete(2))
    with self.assertRaisesRegex(ValueError, text):
      encode(observation)

  def test_an_encoder_takes_whole_numbers_of_any_form(self):
    for space, observation, expected in (
        (spaces.Discrete(3), np.array([2]), [0, 0, 1]),
        (spaces.Discrete(3, start=1), 2., [0, 1, 0]),
        (spaces.MultiDiscrete([2, 2]), [1, 0], [0, 1, 1, 0]),
        (spaces.MultiDiscrete([2, 2]), np.array([0., 1.]), [1, 0, 0, 1]),
        (spaces.MultiBinary(2), [True, False], [1, 0]),
        (spaces.Box(0, 9, (2,), np.uint8), np.array([3., 9.]), [3, 9]),
        (spaces.Box(0, 99, (2,)), np.array([3, .5], object), [3, .5])):
      found = encoding.Encoder(space, spaces.Discrete(2))(observation)
      self.assertEqual(found['frame'].tolist(), expected)
      self.assertNotEqual(found['frame'].dtype, object)

  @parameterized.parameters(
      (spaces.Box(0, 1, (1,)), {'frame': [1]}, r'is of type dict, .* is Box\('),
      (spaces.Dict(a=spaces.Discrete(2)), np.zeros(1), 'type ndarray, .* Dict'),
      (spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)), {'b': 1},
       r'An observation lacks the part a, but its space is Dict\('),
      (spaces.Dict(a=spaces.Discrete(2), action_mask=spaces.MultiBinary(2)),
       {'a': 1}, 'lacks the part action_mask'),
      (spaces.Tuple([spaces.Discrete(2)] * 2), (1,), 'has 1 parts, .* Tuple'),
      (spaces.Tuple([spaces.Discrete(2)]), 1, 'is of type int, .* Tuple'),
      (spaces.Tuple([spaces.Discrete(2)]), {'0': 1}, 'type dict, .* Tuple'),
      (spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)),
       {'a': 1, 'b': 2}, 'The part b of an observation has the number 2, '),
      (spaces.Dict(a=spaces.Discrete(2), instruction=spaces.Text(3)),
       {'a': 1, 'instruction': b'go'}, 'instruction .* is of type bytes, but'))
  def test_an_encoder_refuses_other_forms(self, space, observation, text):
    encode = encoding.Encoder(space, spaces.Discrete(2))
    with self.assertRaisesRegex(ValueError, text):
      encode(observation)

  def test_what_is_written_has_the_name_of_its_part(self):
    arrays = {'a': np.zeros([1, 2], np.uint8), 'b': np.zeros([1], np.uint8)}
    for part, value, text in (
        ('a', [1, 2, 3], r'int64 \[3\], but its space is uint8 \[2\]'),
        ('b', 256, 'the number 256, but')):
      with self.assertRaisesRegex(
          ValueError, f'The part {part} of an observation .* {text}'):
        shared_arrays.write(arrays, 0, {'a': [1, 2], 'b': 1, part: value})

  @parameterized.parameters(
      ('place', [1]), ('place', [6]), ('cards', [[[0, 1], [6, 5]]]),
      ('cards', [[[-1, 1], [2, 5]]]), ('lamps', [[0, 2, 1]]))
  def test_an_export_refuses_other_numbers(self, name, numbers):
    _, module = _agent(_COUNTED[name], spaces.Discrete(5))
    with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError, 'An observation is not in its space, '
        + re.escape(' '.join(str(_COUNTED[name]).split()))):
      module.step_greedy(observation=tf.constant(numbers, tf.int32))


class MasksTest(parameterized.TestCase):

  @parameterized.parameters(
      (spaces.MultiDiscrete([3, 2]), spaces.Tuple(
          [spaces.MultiBinary(3), spaces.MultiBinary(2)])),
      (spaces.MultiDiscrete([2, 2]), spaces.Tuple([spaces.MultiBinary(2)] * 2)),
      (spaces.MultiBinary([2, 2]), spaces.MultiBinary([4, 2])),
      (spaces.Discrete(4), spaces.MultiBinary(4)))
  def test_masks_are_taken_as_the_environment_returns(self, actions, masks):
    agent, _ = _agent(spaces.Dict({
        'seen': spaces.Box(-1, 1, (3,)), 'action_mask': masks}), actions)
    num_parts = actions.shape[0] if actions.shape else 1
    flat = np.zeros([7, agent.spec.observation['action_mask'].shape[0]], bool)
    flat[np.arange(7), np.arange(7) % 2] = True
    flat[:, -1] = True
    if num_parts == 4:
      flat[:] = [True, True, False, True, True, False, True, True]
    as_returned = lambda flat: (
        tuple(np.split(flat, [masks[0].n], axis=-1))
        if isinstance(masks, spaces.Tuple)
        else flat.reshape(len(flat), *masks.shape))
    for mask in flat, flat[:0]:
      seen = np.ones([len(mask), 3])
      state = agent.initial_state(len(mask))
      rows = tuple(map(tuple, mask)) if len(mask) else mask
      expected, found, of_rows = (
          agent.step({'seen': seen, 'action_mask': given}, state,
                     greedy=True)[0]
          for given in (mask, as_returned(mask), rows))
      np.testing.assert_array_equal(found, expected)
      np.testing.assert_array_equal(of_rows, expected)

  def test_masks_without_the_axis_of_environments(self):
    agent, _ = _agent(spaces.Dict({
        'seen': spaces.Box(-1, 1, (3,)), 'action_mask': spaces.MultiBinary(4)}),
                      spaces.Discrete(4))
    for shape in (4,), (4, 1), (2, 2):
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError,
          rf'action_mask has the shape \[{str(shape)[1:-1].strip(",")}\], but '
          'the first axis must be that of the 1 environments'):
        agent.step({'seen': np.ones([1, 3]), 'action_mask': np.ones(shape)},
                   agent.initial_state(1))


class SpecTest(absltest.TestCase):

  def test_environments_tell_their_units(self):
    name = 'examples.shop:shop/Inventory-v0'
    with environments.make_vec([name], [1]) as env:
      found = units.Units(env.spec.units)
    self.assertEqual(found.action_space, spaces.MultiDiscrete([11, 11, 11]))
    self.assertEqual(found.counted, {'weekday': spaces.Discrete(7)})

  def test_spaces_are_the_same_after_a_file(self):
    others = []
    if 'dtype' in inspect.signature(spaces.Discrete).parameters:
      others.append(spaces.Discrete(5, start=250, dtype=np.uint8))
    for space in (*_ACTIONS.values(), *_COUNTED.values(), *others):
      saved = json.loads(json.dumps(units.describe(space, space)))
      found = units.Units(saved).action_space
      self.assertEqual(found, space)
      self.assertEqual(found.dtype, space.dtype)

  def test_a_space_of_a_class_of_the_user(self):

    class Prices(spaces.Box):
      pass

    found = units.Units(units.describe(_COUNTED['place'], Prices(0, 5, (2,))))
    self.assertEqual(found.action_space, spaces.Box(0, 5, (2,)))


@pytest.mark.slow
class TrainedTest(absltest.TestCase):

  def test_a_log_directory_with_and_without_units(self):
    logdir = self.create_tempdir().full_path
    training.train(config_lib.Config(
        logdir=logdir, level_name='examples.shop:shop/Pricing-v0', xla='none',
        num_actors=2, unroll_length=2, batch_size=2,
        total_environment_frames=16))
    env = gymnasium.make('examples.shop:shop/Pricing-v0')
    agent = scalable_agent.load(logdir)
    observation, _ = env.reset(seed=1)
    step = lambda agent, **kwargs: agent.step(
        observation[None], agent.initial_state(1), greedy=True, **kwargs)[0]
    action = step(agent)
    self.assertTrue(env.action_space.contains(action[0]))
    self.assertLess(np.abs(action - 250).max(), 249)
    self.assertLen(agent.play(env, num_episodes=1), 1)
    path = os.path.join(logdir, 'spec.json')
    with open(path, encoding='utf-8') as f:
      spec = json.load(f)
    self.assertEqual(spec.pop('units')['action']['high'], [500, 500])
    with open(path, 'w', encoding='utf-8') as f:
      json.dump(spec, f)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      old = scalable_agent.load(logdir)
    self.assertIn('returns actions within [-1, 1]', output.getvalue())
    np.testing.assert_array_equal(step(old), step(agent, normalised=True))
    self.assertLessEqual(np.abs(step(old)).max(), 1)


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/encoding', catches='ObservationsTest.'
         'test_an_encoder_refuses_numbers_that_do_not_fit', rows=(
        ('two actions in one',
         'if value.size != math.prod(', 'if 0 != int('),
    )),
    dict(file='environments/encoding',
         catches='test_an_encoder_refuses_other_forms', rows=(
        ('a missing part is not said', 'missing := [', 'missing := [] and ['),
        ('any number of parts', 'len(observation) == len(self._names)', 'True'),
    )),
    dict(file='environments/spaces', catches='ObservationsTest.'
         'test_an_encoder_refuses_numbers_that_do_not_fit', rows=(
        ('parts of counts', 'outside |= value % 1 != 0', 'pass'),
    )),
    dict(file='environments/encoding',
         catches='test_an_encoder_takes_whole_numbers_of_any_form', rows=(
        ('floats are no numbers of a Discrete', 'value.astype(np.int64)',
         'value'),
    )),
    dict(file='processes/shared_arrays', catches='ObservationsTest.'
         'test_an_encoder_refuses_numbers_that_do_not_fit', rows=(
        ('texts are cut', "if array.dtype.kind not in 'biuf':", 'if False:'),
        ('fractions are cut', 'outside |= value != np.trunc(value)', 'pass'),
        ('no number becomes 0', 'value != np.trunc(value)',
         'np.abs(value - np.trunc(value)) > 0'),
    )),
    dict(file='environments/spaces',
         catches='test_the_largest_number_of_a_dtype', rows=(
        ('sums may overflow', 'np.add(low, num_values, dtype=np.int64)',
         'low + num_values'),
    )),
    dict(file='environments/units',
         catches='test_spaces_are_the_same_after_a_file', rows=(
        ('first numbers get lost', "'start': space.start.tolist(),",
         "'start': [0] * len(space.nvec),"),
        ('the dtype gets lost', "dtype = np.dtype(facts['dtype'])",
         'dtype = np.dtype(np.float32)'),
        ('the dtype of a Discrete gets lost', "if 'dtype' in facts else {}",
         'if False else {}'),
    )),
    dict(file='environments/units',
         catches='test_masks_are_taken_as_the_environment_returns', rows=(
        ('masks of parts are refused', 'if is_tuple else', 'if False else'),
        ('rows of tuples are parts', 'isinstance(value, tuple) and any(',
         'isinstance(value, tuple) or any('),
        ('masks keep their axes', 'math.prod(part.shape[1:])',
         '*part.shape[1:]'),
    )),
    dict(file='environments/units',
         catches='test_masks_without_the_axis_of_environments', rows=(
        ('any first axis', 'part.shape[:1] != (num_envs,)',
         'part.size % num_envs'),
    )),
    dict(file='modes/export', catches='test_an_export_refuses_other_numbers',
         rows=(
        ('numbers below the first', 'assert_non_negative(numbers, text)',
         'assert_less(-1, 0)'),
        ('numbers above the last', 'assert_less(numbers, sizes',
         'assert_less(numbers - 9, sizes'),
    )),
    dict(file='modes/loading',
         catches='test_step_and_export_act_in_the_space', rows=(
        ('always normalised', 'action if normalised else',
         'action if True else'),
    )),
    dict(file='modes/export',
         catches='test_step_and_export_act_in_the_space', rows=(
        ('counted from 0', 'actions + np.asarray(space.start, np.int32)',
         'actions'),
        ('half of the range', 'share = (actions + 1) / 2',
         'share = (actions + 1) / 4'),
    )),
    dict(file='modes/export', catches='test_the_bounds_are_reached_exactly',
         rows=(('one bound', '(1 - share) * low + share * high',
                '(1 - share) * high + share * high'),)),
    dict(file='modes/export',
         catches='test_step_and_export_act_in_the_space', rows=(
        ('a bound is rounded outwards', 'np.nextafter(high, low)', 'high'),
    )),
    dict(file='modes/export', catches='test_integers_are_the_same_as_vectors',
         rows=(('observations from 0', 'numbers - start, [-1', 'numbers, [-1'),
              )),
)


if __name__ == '__main__':
  absltest.main()
