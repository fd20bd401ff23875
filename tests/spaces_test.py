# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of spaces: what environments receive, what agents see, and goals."""

import contextlib
import fractions
import io
import json
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import fake_environments
import gymnasium
import hypothesis
from hypothesis import strategies as st
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import goals
from scalable_agent.environments import spaces
from scalable_agent.experience import structs

_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)


class PendulumTest(environment_contract.SerialReference,
                   environment_contract.EnvironmentContract,
                   absltest.TestCase):
  level_name = 'Pendulum-v1'
  num_steps = 205  # Is cut off after 200.


class EchoBoxTest(environment_contract.EnvironmentContract,
                  absltest.TestCase):
  level_name = 'fake/EchoBox-v0'


class EchoDoubleTest(environment_contract.EnvironmentContract,
                     absltest.TestCase):
  level_name = 'fake/EchoDouble-v0'


class EchoScalarTest(environment_contract.EnvironmentContract,
                     absltest.TestCase):
  level_name = 'fake/EchoScalar-v0'


class EchoPartsTest(environment_contract.SerialReference,
                    environment_contract.EnvironmentContract,
                    absltest.TestCase):
  level_name = 'fake/EchoParts-v0'


class BitsTest(environment_contract.SerialReference,
               environment_contract.EnvironmentContract, absltest.TestCase):
  level_name = 'fake/Bits-v0'


class TupleOfPartsTest(environment_contract.EnvironmentContract,
                       absltest.TestCase):
  level_name = 'fake/TupleOfParts-v0'

  def test_spec(self):
    shapes = {'0': (3,), '1': (4,), **{str(i): (1,) for i in range(2, 12)}}
    self.assertEqual(self.make([1]).spec.observation, {
        name: structs.ArraySpec(shape, np.dtype(np.float32))
        for name, shape in shapes.items()})

  def test_parts_keep_their_order(self):
    env = self.make([1])
    space = fake_environments.TupleOfParts.observation_space
    space.seed(1)
    observation = env.initial().observation
    for name, expected in zip(observation, space.sample(), strict=True):
      if name != '1':
        np.testing.assert_array_equal(
            observation[name][0], expected.astype(np.float32))


class EchoOnePartTest(environment_contract.EnvironmentContract,
                      absltest.TestCase):
  level_name = 'fake/EchoOnePart-v0'


class ManyTest(environment_contract.SerialReference,
               environment_contract.EnvironmentContract,
               absltest.TestCase):
  level_name = 'fake/Many-v0'

  def test_spec(self):
    self.assertEqual(self.make([1]).spec.observation, {
        'camera': structs.ArraySpec((4, 6, 3), np.dtype(np.uint8)),
        'wrist': structs.ArraySpec((2, 2, 1), np.dtype(np.uint8)),
        'joints': structs.ArraySpec((5,), np.dtype(np.float32)),
        'map': structs.ArraySpec((2, 3), np.dtype(np.float32)),
        'height': structs.ArraySpec((), np.dtype(np.float32)),
        'instruction': structs.ArraySpec((), np.dtype(object))})


class GoalsTest(environment_contract.SerialReference,
                environment_contract.EnvironmentContract,
                absltest.TestCase):
  level_name = 'fake/Goals-v0'


class ActionsTest(parameterized.TestCase):

  def make(self, level):
    env = environments.make_vec([level] * 2, [1, 2], _SETTINGS)
    self.addCleanup(env.close)
    env.initial()
    return env

  @parameterized.parameters(
      ('EchoBox', structs.ActionSpec(size=3), (3,), np.float32),
      ('EchoDouble', structs.ActionSpec(size=3), (3,), np.float32),
      ('EchoScalar', structs.ActionSpec(size=1), (1,), np.float32),
      ('EchoParts', structs.ActionSpec((3, 2, 4)), (3,), np.int32),
      ('EchoOnePart', structs.ActionSpec((4,)), (), np.int32),
      ('Bits', structs.ActionSpec((2, 2, 2, 2)), (4,), np.int32),
      ('ActionsFromOne', structs.ActionSpec((3,)), (), np.int32))
  def test_specs(self, level, spec, shape, dtype):
    env = self.make(f'fake/{level}-v0')
    self.assertEqual(env.spec.action, spec)
    self.assertEqual(spec.array, structs.ArraySpec(shape, np.dtype(dtype)))

  @parameterized.parameters(
      ('EchoBox', [-2, 0.1, 5], [3, 0.7, 5]),
      ('EchoDouble', [-2, 0.1, 5], [3, 0.7, 5.5]),
      ('EchoScalar', [0.1], [0.7]))
  def test_boxes_receive_their_bounds(self, level, low, high):
    env = self.make(f'fake/{level}-v0')
    ones = np.ones([2, len(low)], np.float32)
    # What is out of bounds is clipped.
    for action in (1, 1.001, 99, np.inf):
      found = env.step(np.array([[[-action]], [[action]]])[:, 0] * ones)
      np.testing.assert_array_equal(
          found.observation, np.array([low, high], np.float32))
    # The middle of each part on its own.
    for i in range(len(low)):
      env.initial()
      action = -ones
      action[0, i], action[1, i] = 0, 0.5
      found = env.step(action).observation[:, i]
      np.testing.assert_allclose(
          found, [(low[i] + high[i]) / 2, low[i] / 4 + high[i] * 3 / 4],
          rtol=1e-6)

  def test_bits_have_dtype_and_shape_of_the_space(self):
    space = gymnasium.spaces.MultiBinary((2, 2))
    found = spaces.to_space(np.array([[0, 1, 1, 0]], np.int32), space)
    self.assertEqual(found.tolist(), [[[0, 1], [1, 0]]])
    self.assertEqual(found.dtype, np.int8)

  def test_parts_count_from_their_start(self):
    env = self.make('fake/EchoParts-v0')
    actions = np.array([[2, 0, 1], [0, 1, 3]])
    np.testing.assert_array_equal(
        env.step(actions).observation, [[2, 5, 0], [0, 6, 2]])
    env = self.make('fake/EchoOnePart-v0')
    np.testing.assert_array_equal(
        env.step(np.array([0, 3])).observation, [[2], [5]])

  def test_names_that_cannot_be_sorted(self):
    part = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, '^a level has .* cannot be sorted: give'):
      spaces.layout(gymnasium.spaces.Dict({0: part, 'a': part}),
                    structs.ActionSpec((2,)), 'a level')

  def test_text_of_another_name(self):
    text = gymnasium.spaces.Text(9)
    picture = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action = structs.ActionSpec((3,))
    for name in 'mission', spaces.ONLY_ARRAY:
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError, f'with a Text named {name}. .* rename '
          'the Text part to instruction with gymnasium.wrappers.Transform'):
        spaces.layout(gymnasium.spaces.Dict(
            {name: text, 'a': picture}), action, 'level')
    for names in ('instruction', 'note'), ('b', 'c'):
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError,
          'join all Text parts into one named instruction with gymnasium'):
        spaces.layout(gymnasium.spaces.Dict(
            {'a': picture, **dict.fromkeys(names, text)}), action, 'level')
    with self.assertRaisesRegex(errors.EnvironmentSpecError, 'but only a Box'):
      spaces.layout(text, action, 'level')  # No Dict.

  @parameterized.parameters(1, 3)
  def test_pictures_are_not_to_be_flattened(self, num_axes):
    inner = gymnasium.spaces.Box(0, 255, (8, 8, 3)[:num_axes], np.uint8)
    space = gymnasium.spaces.Dict(a=gymnasium.spaces.Dict(b=inner))
    with self.assertRaises(errors.EnvironmentSpecError) as e:
      spaces.layout(space, structs.ActionSpec((3,)), 'level')
    self.assertEqual('FlattenObservation' in str(e.exception), num_axes == 1)

  @hypothesis.settings(deadline=None, derandomize=True)
  @hypothesis.given(st.data(), st.sampled_from([np.float32, np.float64]))
  def test_every_action_is_in_the_box(self, data, dtype):
    floats = st.floats(-2.**99, 2.**99, width=np.dtype(dtype).itemsize * 8)
    low, high = (np.array(bounds, dtype) for bounds in zip(*data.draw(st.lists(
        st.tuples(floats, floats).map(sorted), min_size=1, max_size=4))))
    space = gymnasium.spaces.Box(low, high, dtype=dtype)
    self.assertEqual(spaces.action_spec(space, 'level').size, len(low))
    action = np.array([data.draw(st.lists(
        st.floats(-1, 1, width=32), min_size=len(low), max_size=len(low)))],
                      np.float32)
    [found] = spaces.to_space(action, space)
    self.assertEqual(found.dtype, dtype)
    self.assertTrue(space.contains(found))
    for i, exact in enumerate(_scaled(action[0], low, high)):
      ulp = np.spacing(max(abs(low[i]), abs(high[i])))
      self.assertLessEqual(abs(fractions.Fraction(float(found[i])) - exact),
                           2 * fractions.Fraction(float(ulp)))
    for end, bound in ((-1, low), (1, high)):
      np.testing.assert_array_equal(
          spaces.to_space(np.full_like(action, end), space), [bound])

  def test_rounding_stays_in_a_narrow_box(self):
    rng = np.random.default_rng(0)
    low = rng.uniform(-3, 3, 200)
    high = np.where(np.arange(200) % 2, low, np.nextafter(low, 9))
    space = gymnasium.spaces.Box(low, high, dtype=np.float64)
    found = spaces.to_space(
        rng.uniform(-1, 1, [50, 200]).astype(np.float32), space)
    self.assertTrue(((low <= found) & (found <= high)).all())


def _scaled(action, low, high):
  """The scaled action by its definition, exactly."""
  for one in zip(action, low, high):
    a, l, h = (fractions.Fraction(float(number)) for number in one)
    yield l + (a + 1) / 2 * (h - l)


class ObservationsTest(parameterized.TestCase):

  def make(self, level):
    env = environments.make_vec([level], [3], _SETTINGS)
    self.addCleanup(env.close)
    return env

  def test_a_discrete_observation_is_a_vector(self):
    env = self.make('fake/Counted-v0')
    self.assertEqual(env.spec.observation,
                     structs.ArraySpec((7,), np.dtype(np.float32)))
    self.assertIsInstance(env.spec.observation, structs.DiscreteSpec)
    saved = structs.EnvironmentSpec.from_json(
        json.loads(json.dumps(env.spec.to_json())))
    self.assertEqual(saved, env.spec)
    self.assertIsInstance(saved.observation, structs.DiscreteSpec)
    serial = gymnasium.make('fake/Counted-v0')
    state, _ = serial.reset(seed=3)
    observation = env.initial().observation
    states = set()
    for _ in range(60):
      np.testing.assert_array_equal(observation, [np.eye(7)[state + 2]])
      self.assertEqual(observation.dtype, np.float32)
      states.add(state)
      state, _, terminated, truncated, _ = serial.step(0)
      output = env.step(np.array([0]))
      self.assertEqual(output.done[0], terminated or truncated)
      if output.done[0]:
        np.testing.assert_array_equal(
            output.last_observation, [np.eye(7)[state + 2]])
        state, _ = serial.reset()
      observation = output.observation
    self.assertLen(states, 7)

  def test_parts_of_discrete_observations(self):
    env = self.make('fake/CountedParts-v0')
    serial = gymnasium.make('fake/CountedParts-v0')
    state, _ = serial.reset(seed=3)
    for name, size in (('parts', 5), ('bits', 4), ('one', 3)):
      self.assertEqual(env.spec.observation[name],
                       structs.ArraySpec((size,), np.dtype(np.float32)))
      self.assertIsInstance(env.spec.observation[name], structs.DiscreteSpec)
    found = env.initial().observation
    first, second = state['parts']
    np.testing.assert_array_equal(
        found['parts'], [[*np.eye(3)[first], *np.eye(2)[second]]])
    np.testing.assert_array_equal(found['bits'], [state['bits']])
    np.testing.assert_array_equal(found['one'], [np.eye(3)[state['one']]])

  @parameterized.parameters(('FrozenLake', 16), ('Taxi', 500))
  def test_levels_of_gymnasium(self, name, num_states):
    # The newest version of the level in the installed gymnasium.
    level = max(level for level in gymnasium.registry
                if level.startswith(f'{name}-v'))
    env = self.make(level)
    state, _ = gymnasium.make(level).reset(seed=3)
    np.testing.assert_array_equal(
        env.initial().observation, [np.eye(num_states)[state]])


class RewardFunctionTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(1)
    self.achieved, self.desired = rng.normal(size=[2, 5, 2])
    self.achieved[3] = self.desired[3]
    self.expected = np.array([
        -abs(a[0] - 2 * d[0]) - abs(a[1] - 2 * d[1])
        for a, d in zip(self.achieved, self.desired)])

  @parameterized.parameters('VectorGoals', 'Goals')
  def test_rewards(self, name):
    rewards, _ = environments.goal_functions(f'fake/{name}-v0', _SETTINGS)
    for count in (5, 2, 1, 0):
      # Of float32 goals, as a replay keeps them, and in a slice.
      found = rewards(self.achieved[:count].astype(np.float32),
                      self.desired[:count].astype(np.float32))
      self.assertEqual((found.dtype, found.shape), (np.float32, (count,)))
      np.testing.assert_allclose(found, self.expected[:count], rtol=1e-5)

  def test_rewards_in_arrays(self):
    rewards, _ = environments.goal_functions(
        'fake/GoalsInArrays-v0', _SETTINGS)
    found = rewards(self.achieved, self.desired)
    np.testing.assert_allclose(found, self.expected, rtol=1e-5)

  def test_a_plausible_shape_is_not_enough(self):
    rewards, _ = environments.goal_functions('fake/GoalsByColumn-v0', _SETTINGS)
    np.testing.assert_allclose(
        rewards(self.achieved[:2], self.desired[:2]), self.expected[:2],
        rtol=1e-5)

    # Seven pairs of goals of seven numbers; one is reached.
    rewards, _ = environments.goal_functions(
        'fake/SparseGoalsByColumn-v0', _SETTINGS)
    desired = np.ones([7, 7])
    desired[2] = 0
    np.testing.assert_array_equal(
        rewards(np.zeros([7, 7]), desired), [-1, -1, 0, -1, -1, -1, -1])

  def test_one_call_is_enough_for_vectors(self):
    rewards = goals.Goals(
        'fake/VectorGoals-v0', fake_environments.VectorGoals).rewards
    num_calls = fake_environments.VectorGoals.num_calls
    rewards(self.achieved, self.desired)
    self.assertEqual(fake_environments.VectorGoals.num_calls, num_calls + 1)

  @parameterized.parameters(
      'fake/GoalsWithoutRewards-v0', 'fake/Many-v0', 'catch', 'ALE/Pong-v5')
  def test_levels_without_goals(self, level):
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                f'{level} has no goals'):
      environments.goal_functions(level, _SETTINGS)

  def test_wrappers_that_change_rewards(self):
    wrappers = gymnasium.wrappers
    def make(wrap):
      return lambda: wrap(wrappers.TimeLimit(fake_environments.Goals(), 3))
    for wrap, text in (
        (lambda env: wrappers.TransformReward(env, lambda r: 10 * r - 2),
         r'makes the reward \S+ of \S+, which compute_reward does not know'),
        (wrappers.NormalizeReward, 'makes the reward'),
        (fake_environments.Twice, 'makes the reward .* of .* and .*, which')):
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError, f'^A wrapper of fake/Mine-v0 {text}'):
        goals.Goals('fake/Mine-v0', make(wrap))
    for wrap in (gymnasium.Wrapper, lambda env: wrappers.TransformReward(
        env, lambda r: r)):
      rewards = goals.Goals('fake/Mine-v0', make(wrap)).rewards
      np.testing.assert_allclose(
          rewards(self.achieved, self.desired), self.expected, rtol=1e-5)

  @parameterized.parameters(
      lambda o, r, *_: r == 0,
      lambda o, *_: (o['achieved_goal'] == o['desired_goal']).all(),
      lambda o, r, terminated, *_: terminated,
      lambda *result: result[-1]['is_success'])
  def test_wrappers_that_change_only_the_reward_of_the_goal(self, is_goal):
    make = lambda: fake_environments.Bonus(
        fake_environments.SparseGoals(), is_goal)
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                'makes the reward 10 of -0, which'):
      goals.Goals('fake/Mine-v0', make)
    goals.Goals('fake/Mine-v0', lambda: fake_environments.Bonus(
        fake_environments.SparseGoals(), lambda *_: False))

  def test_rewards_of_steps_that_are_not_those_of_their_goals(self):
    def said(env):
      with contextlib.redirect_stdout(io.StringIO()) as output:
        goals.Goals('fake/Mine-v0', lambda: env)
      return output.getvalue()
    env = fake_environments.SparseGoals()
    self.assertEqual(said(env), '')
    self.assertEqual(
        said(gymnasium.wrappers.TransformObservation(
            env, lambda o: {**o, 'achieved_goal': o['desired_goal']},
            env.observation_space)),
        'Step 1 of fake/Mine-v0 had the reward -1, but compute_reward returns '
        '-0 for its goals: --hindsight mixes both rewards. Return '
        'compute_reward in step.\n')
    env.compute_reward = lambda *_: -2.
    self.assertIn('returns -2 for its goals', said(env))

  @parameterized.parameters(
      (lambda a, d, _: -np.log(np.abs(a - d).sum()), 'inf'),
      (lambda a, d, _: np.divide(*np.abs([a - d] * 2).sum(-1)), 'nan'))
  def test_reached_goals_without_a_finite_reward(self, compute_reward, reward):
    env = fake_environments.Goals()
    env.compute_reward = compute_reward
    with np.errstate(all='ignore'), self.assertRaisesRegex(
        errors.EnvironmentValueError,
        rf'^compute_reward of fake/Mine-v0 returned the reward {reward} '):
      goals.Goals('fake/Mine-v0', lambda: env)

  def test_goals_in_arrays_that_are_used_again(self):
    space = fake_environments.Goals.observation_space
    arrays = space.sample()

    def again(observation):
      for name, part in observation.items():
        arrays[name][...] = part
      return arrays

    tried = []
    for function in dict, again:
      env = gymnasium.wrappers.TransformObservation(
          fake_environments.Goals(), function, space)
      with mock.patch.object(goals.Goals, 'rewards') as rewards:
        goals.Goals('fake/Mine-v0', lambda env=env: env)
      tried.append([call.args for call in rewards.call_args_list])
    np.testing.assert_array_equal(*tried)
    self.assertLen(np.unique(tried[0][0][0], axis=0), 20)

  def test_samples_of_spaces_need_no_reward(self):
    compute = goals.Goals('fake/Mine-v0', fake_environments.UnitGoals)
    one = np.array([[.6, .8]])
    np.testing.assert_allclose(compute.rewards(one, one), [-.0028], atol=1e-4)

  def test_a_reward_beyond_float32_is_not_finite(self):
    env = fake_environments.Goals()
    env.compute_reward = lambda a, d, _: np.where(a[..., 0] > 1, -1e39, 0)
    rewards = goals.Goals('fake/Mine-v0', lambda: env).rewards
    with np.errstate(all='ignore'), self.assertRaisesRegex(
        errors.EnvironmentValueError,
        r'^compute_reward of fake/Mine-v0 returned the reward -inf \(as '
        r'float32\) for the achieved goal \[2.0, 0.5\] and the desired goal '
        r'\[0.0, 1.0\]: rewards must be finite'):
      rewards(np.array([[0, 0], [2, .5]]), np.array([[0, 0], [0., 1.]]))

  def test_repeated_actions(self):
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                'num_action_repeats=1'):
      environments.goal_functions(
          'fake/Goals-v0', environments.EnvironmentSettings())

  def test_unknown_level(self):
    with self.assertRaises(errors.UnknownLevelError):
      environments.goal_functions('no/Such-v0', _SETTINGS)


MUTATIONS = (
    dict(file='environments/spaces', catches='test_names_that_cannot_be_sorted',
         rows=(('names of any kinds', '    sorted(parts)\n', '    pass\n'),)),
    dict(file='environments/goals', catches='test_rewards_in_arrays',
         rows=(
        ('rewards in arrays stay so',
         'np.array(results, dtype).ravel()',
         'np.array(results, dtype)'),
    )),
    dict(file='environments/goals', catches='RewardFunctionTest.test_wrappers_'
         'that_change_only_the_reward_of_the_goal0', rows=(
        ('the reward is not that of the goal',
         "reward = env.get_wrapper_attr('compute_reward')(goal, goal, {})",
         'reward += 0'),
    )),
    dict(file='environments/goals', catches='RewardFunctionTest.test_wrappers_'
         'that_change_only_the_reward_of_the_goal1', rows=(
        ('the goal is not observed',
         "'achieved_goal': goal}",
         '}'),
    )),
    dict(file='environments/goals', catches='RewardFunctionTest.test_wrappers_'
         'that_change_only_the_reward_of_the_goal2', rows=(
        ('the goal does not end an episode',
         "env.get_wrapper_attr('compute_terminated')(goal, goal, {})",
         'terminated'),
    )),
    dict(file='environments/goals', catches='RewardFunctionTest.test_wrappers_'
         'that_change_only_the_reward_of_the_goal3', rows=(
        ('the goal is no success',
         "'is_success': 1.0}",
         '}'),
    )),
    dict(file='environments/goals', catches='RewardFunctionTest.'
         'test_rewards_of_steps_that_are_not_those_of_their_goals', rows=(
        ('other rewards than compute_reward are not said',
         'if not np.isclose(reward, computed):', 'if False:'),
    )),
    dict(file='environments/goals', catches='test_wrappers_that_change_rewards',
         rows=(
        ('no wrapper is refused',
         'not np.isclose(\n        reward, rewards[0], equal_nan=True)',
         'False'),
    )),
    dict(file='environments/goals',
         catches='test_reached_goals_without_a_finite_reward1', rows=(
        ('reached goals are not tried', '      self.rewards(part, part)\n',
         '      pass\n'),
        ('a wrapper is blamed for NaN', ', equal_nan=True):', '):'),
    )),
    dict(file='environments/goals',
         catches='test_goals_in_arrays_that_are_used_again', rows=(
        ('goals are not copied', 'np.array(observation[name])',
         'observation[name]'),
    )),
    dict(file='environments/goals',
         catches='test_a_reward_beyond_float32_is_not_finite', rows=(
        ('infinite rewards in hindsight', '~np.isfinite(rewards)',
         'np.isnan(rewards)'),
    )),
    dict(file='environments/encoding', catches='test_parts_keep_their_order',
         rows=(
             ('tuples in the order of names',
              'dict(zip(self._names, observation',
              'dict(zip(sorted(self._parts), observation'),
         )),
    dict(file='environments/spaces', catches='test_text_of_another_name', rows=(
        ('a text in place of a Dict is one to rename',
         'and isinstance(space, spaces.Dict)]:', ']:'),
    )),
    dict(file='environments/spaces',
         catches='test_pictures_are_not_to_be_flattened', rows=(
        ('only pictures at the top', 'any(map(_has_picture, parts_of(space)'
         '.values()))', 'False'),
    )),
    dict(file='environments/spaces',
         catches='test_bits_have_dtype_and_shape_of_the_space', rows=(
             ('bits as int32', 'return actions.astype(space.dtype)',
              'return actions'),
         )),
)


if __name__ == '__main__':
  absltest.main()
