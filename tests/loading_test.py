# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of trained agents in other programs."""

import contextlib
import dataclasses
import functools
import gc
import io
import os
import random
import re
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import fake_environments
import gymnasium
import numpy as np
import pytest
import scalable_agent
from scalable_agent import errors
from scalable_agent.environments import from_gymnasium
from scalable_agent.experience import structs
from scalable_agent.modes import loading
from scalable_agent.modes import test
import tensorflow as tf
import tree

_Mode = gymnasium.vector.AutoresetMode


class _Growing(gymnasium.Env):
  """Episode `k` has `k + 2` steps, with the rewards 1, 2, ...; it counts.

  Observations are `[episode, step]`, and the sum of the action before.
  """
  observation_space = gymnasium.spaces.Dict({
      'time': gymnasium.spaces.Box(0, 99, (2,), np.float64),
      'step': gymnasium.spaces.Discrete(50),
      'instruction': gymnasium.spaces.Text(20)})
  action_space = gymnasium.spaces.Box(
      np.array([0., 10.]), np.array([1., 20.]), dtype=np.float64)

  def __init__(self):
    self.episode = -1
    self.actions = []

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.episode += 1
    self.steps = 0
    return self._observation(), {}

  def step(self, action):
    self.actions.append(action)
    self.steps += 1
    is_over = self.steps == self.episode + 2
    return (self._observation(), float(self.steps), is_over and
            self.episode % 2 == 0, is_over, {})

  def _observation(self):
    return {'time': np.array([self.episode, self.steps], float),
            'step': self.steps, 'instruction': f'step {self.steps}'}


class _Closable(_Growing):
  metadata = {'render_modes': [], 'autoreset_mode': 'of the caller'}
  is_closed = False

  def close(self):
    self.is_closed = True


class _SameArrays(_Growing):
  """Each step changes the array of the last reward, and `reset` clears it."""

  def reset(self, *, seed=None, options=None):
    self.reward = getattr(self, 'reward', np.zeros([1]))
    self.reward[:] = 0
    return super().reset(seed=seed, options=options)

  def step(self, action):
    observation, self.reward[0], *others = super().step(action)
    return (observation, self.reward, *others)


class _SameArraysVector(gymnasium.vector.SyncVectorEnv):
  """Returns the same arrays in each step, as some vectors do."""

  def reset(self, *, seed=None, options=None):
    self.arrays = getattr(self, 'arrays', [
        np.zeros(self.num_envs, dtype) for dtype in (np.float32, bool, bool)])
    self.arrays[0][:] = 0
    return super().reset(seed=seed, options=options)

  def step(self, actions):
    observation, *results, info = super().step(actions)
    for array, values in zip(self.arrays, results):
      array[:] = values
    return observation, *self.arrays, info


class _Counting(gymnasium.Env):
  """Observations are `[episode, step]`; a time limit of 3 steps."""
  observation_space = gymnasium.spaces.Dict({
      'time': gymnasium.spaces.Box(0, 99, (2,), np.float32)})
  action_space = gymnasium.spaces.Discrete(2)
  episode = -1

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.episode, self.steps = self.episode + 1, 0
    return self._observation(), {}

  def step(self, action):
    self.steps += 1
    return self._observation(), 1., False, self.steps == 3, {}

  def _observation(self):
    return {'time': np.array([self.episode, self.steps], np.float32)}


class _Simulator(gymnasium.vector.SyncVectorEnv):
  """Has the last observations in one array, as simulators do, or not."""
  has_last = True

  def step(self, actions):
    *results, info = super().step(actions)
    final = info.pop('final_obs', None)
    if self.has_last and final is not None:
      info['final_obs'] = {'time': np.stack([part['time'] for part in final])}
    return *results, info


class NumbersTest(parameterized.TestCase):

  def test_numbers_that_the_dtype_holds(self):
    spec = structs.ArraySpec((3,), np.dtype(np.uint8))
    for numbers in [0, 255, 7], [0., 255., 7.]:
      array = loading._as_spec([numbers], spec, 1)
      self.assertEqual((array.dtype, array.tolist()), (np.uint8, [[0, 255, 7]]))

  @parameterized.parameters(
      ([0.5, 1, 1], r'number 0\.5, but a must be uint8, as in the training'),
      ([np.nan, 1, 1], 'the number nan'), ([np.inf, 1, 1], 'the number inf'),
      ([300, 1, 1], 'the number 300'), ([-1, 1, 1], 'the number -1'))
  def test_numbers_that_the_dtype_does_not_hold(self, numbers, message):
    with self.assertRaisesRegex(errors.EnvironmentSpecError, message):
      loading._as_spec(
          {'a': [numbers]},
          {'a': structs.ArraySpec((3,), np.dtype(np.uint8))}, 1)


class GivenTest(parameterized.TestCase):

  def test_forms_that_trainings_accept(self):
    flow = from_gymnasium.wrap(fake_environments.OddForms())
    self.assertEqual(flow.initial().observation.tolist(), [[0, 100, 200]])
    outputs = [flow.step(np.zeros([1], np.int32)) for _ in range(3)]
    self.assertEqual([o.reward.tolist() for o in outputs], [[1.]] * 3)
    self.assertEqual([bool(o.done[0]) for o in outputs], [False, False, True])
    self.assertEqual([o.observation[0, 0] for o in outputs], [1, 2, 0])

  def test_the_environment_of_the_caller_stays_as_it_is(self):
    env = _Closable()
    before = dict(env.metadata)
    flow = from_gymnasium.wrap(env)
    flow.initial()
    flow.close()
    del flow
    gc.collect()  # A vector closes its environments when it is deleted.
    self.assertEqual(_Closable.metadata, before)
    self.assertFalse(env.is_closed)

  @parameterized.parameters(*_Mode)
  def test_vectors_and_single_ones_have_the_same_episodes(self, mode):
    single = _Growing()
    vector = gymnasium.vector.SyncVectorEnv(
        [_Growing] * 3, autoreset_mode=mode)
    flows = [from_gymnasium.wrap(single), from_gymnasium.wrap(vector)]
    is_late = mode == _Mode.NEXT_STEP  # An episode ends one step later.
    streams = []
    for flow in flows:
      self.assertEqual(flow.spec.observation['step'].shape, (50,))
      outputs = [flow.initial()]
      for _ in range(60):
        actions = np.full([flow.num_envs, 2], .5, np.float32)
        outputs.append(flow.step(actions))
      for index in range(flow.num_envs):
        streams.append([
            (o.observation['time'][index].tolist(),
             int(o.observation['step'][index].argmax()),
             o.observation['instruction'][index], float(o.reward[index]),
             bool(o.done[index]), bool(o.truncated[index]),
             o.last_observation['time'][index].tolist()
             if o.info.episode_end[index] else None,
             float(o.info.episode_return[index])
             if o.info.episode_end[index] else None) for o in outputs])
    one, *others = streams
    of_episodes = lambda stream: [
        (entry[0], *entry[5:]) for entry in stream if entry[-1] is not None]
    for other in others:
      if is_late:
        found = of_episodes(other)
        self.assertGreater(len(found), 5)
        self.assertEqual(found, of_episodes(one)[:len(found)])
        self.assertEqual({e[3] for e in other if e[4]}, {0})  # The rewards.
      else:
        self.assertEqual(other, one)
    # Returns of episodes of 2, 3, ... steps; every other one is cut off.
    ends = [entry for entry in one if entry[-1] is not None]
    self.assertEqual([e[-1] for e in ends[:4]], [3, 6, 10, 15])
    self.assertEqual([e[5] for e in ends[:4]], [False, True, False, True])
    self.assertEqual([e[6] for e in ends[:4]], [[0, 2], [1, 3], [2, 4], [3, 5]])
    self.assertEqual(one[0][:3], ([0, 0], 0, b'step 0'))
    np.testing.assert_allclose(single.actions, [[.75, 17.5]] * 60)
    np.testing.assert_allclose(vector.envs[0].actions[:9], [[.75, 17.5]] * 9)

  @parameterized.parameters(
      (_Growing, _SameArrays),
      *[tuple(functools.partial(kind, [_Growing] * 2, autoreset_mode=mode)
              for kind in (gymnasium.vector.SyncVectorEnv, _SameArraysVector))
        for mode in _Mode])
  def test_arrays_that_are_used_again(self, make, make_same):
    flows = [from_gymnasium.wrap(make()), from_gymnasium.wrap(make_same())]
    for flow in flows:
      flow.initial()
    pairs = [[flow.step(np.zeros([flow.num_envs, 2], np.float32))
              for flow in flows] for _ in range(20)]
    for expected, output in pairs:
      tree.map_structure(np.testing.assert_array_equal, output, expected)

  @parameterized.parameters(*_Mode)
  def test_last_observations_of_arrays_that_are_used_again(self, mode):
    flow = from_gymnasium.wrap(
        _Simulator([_Counting] * 2, copy=False, autoreset_mode=mode))
    flow.initial()
    episode = 0
    for _ in range(12):
      output = flow.step(np.zeros([2], np.int32))
      if output.done.any():
        self.assertEqual(output.truncated.tolist(), [True] * 2)
        self.assertEqual(
            output.last_observation['time'].tolist(), [[episode, 3]] * 2)
        episode += 1
        self.assertEqual(
            output.observation['time'].tolist(), [[episode, 0]] * 2)
    self.assertGreater(episode, 2)

  def test_a_time_limit_without_the_last_observation(self):
    vector = _Simulator([_Counting] * 2, autoreset_mode=_Mode.SAME_STEP)
    vector.has_last = False
    wrapped = from_gymnasium.WrappedVector(vector, 'my_level')
    wrapped.initial()
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                r"^my_level .* has no info\['final_obs'\]"):
      for _ in range(3):
        wrapped.step(np.zeros([2], np.int32))
    flow = from_gymnasium.wrap(vector)  # To play is possible.
    flow.initial()
    done = [flow.step(np.zeros([2], np.int32)).done.all() for _ in range(3)]
    self.assertIn(True, done)

  def test_a_vector_starts_again_after_an_end(self):
    flow = from_gymnasium.wrap(gymnasium.vector.SyncVectorEnv(
        [_Growing], autoreset_mode=_Mode.NEXT_STEP))
    flow.initial()
    actions = np.zeros([1, 2], np.float32)
    flow.step(actions)
    flow.step(actions)  # The end, which would show in the next step.
    flow.initial()
    self.assertFalse(flow.step(actions).done[0])

  def test_an_environment_starts_again(self):
    flow = from_gymnasium.wrap(_Growing())
    flow.initial()
    flow.step(np.zeros([1, 2], np.float32))
    output = flow.initial()
    self.assertEqual(output.observation['time'].tolist(), [[1, 0]])

  def test_texts_in_shared_memory_are_refused(self):
    shared, sent = (gymnasium.vector.AsyncVectorEnv(
        [_Growing], shared_memory=is_shared) for is_shared in (True, False))
    for vector in shared, sent:
      self.addCleanup(vector.close)
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                '^AsyncVectorEnv: .* shared_memory=False'):
      from_gymnasium.wrap(shared)
    flow = from_gymnasium.wrap(sent)
    flow.initial()
    output = flow.step(np.zeros([1, 2], np.float32))
    self.assertEqual(output.observation['instruction'], [b'step 1'])

  def test_spaces_that_are_not_supported(self):
    env = _Growing()
    env.action_space = gymnasium.spaces.Text(3)
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                '_Growing has actions Text'):
      from_gymnasium.wrap(env)


@pytest.mark.slow
class LoadTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.logdirs = {}
    root = tempfile.TemporaryDirectory()
    cls.addClassCleanup(root.cleanup)
    cls.root = root.name

  def trained(self, name):
    """Returns the directory of a trained agent."""
    settings = {
        'CartPole-v1': dict(use_lstm=True, total_environment_frames=400),
        'Pendulum-v1': dict(algorithm='sac', min_replay_steps=20,
                            hidden_sizes='16', total_environment_frames=100),
        'memory': dict(algorithm='ddqn', use_lstm=True, lstm_units=8,
                       hidden_sizes='8', sequence_length=3, burn_in_steps=2,
                       unroll_length=3, min_replay_steps=20,
                       num_action_repeats=1, total_environment_frames=200),
    }[name]
    if name not in self.logdirs:
      self.logdirs[name] = os.path.join(self.root, name)
      scalable_agent.train(scalable_agent.Config(
          logdir=self.logdirs[name], level_name=name, agent='mlp', xla='none',
          num_actors=2, batch_size=4, **{'unroll_length': 5, **settings}))
    return self.logdirs[name]

  @parameterized.parameters('CartPole-v1', 'Pendulum-v1', 'memory')
  def test_plays_as_the_test_does(self, level):
    agent = scalable_agent.load(self.trained(level))
    expected = test.test(dataclasses.replace(
        agent.config, mode='test', test_greedy=True, test_num_episodes=3))
    self.assertEqual(agent.play(num_episodes=3, greedy=True), expected[level])

  @parameterized.parameters('README.md', 'docs/using_agents.md')
  def test_five_lines_of_the_documentation(self, page):
    path = os.path.join(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))), page)
    with open(path, encoding='utf-8') as f:
      code = re.search(r'```python\n(.*?)```', f.read(), re.S)[1]
    self.assertIn("load('/tmp/pole')", code)
    lines = [line for line in code.splitlines() if line and line[0] != '#']
    self.assertLessEqual(len(lines), 5)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      exec(code.replace('/tmp/pole', self.trained('CartPole-v1')), {})
    self.assertRegex(output.getvalue(), r'trained for 4\d\d frames> \[\d+\.')

  def test_environments_and_vectors(self):
    logdir = self.trained('CartPole-v1')
    agent = scalable_agent.load(logdir)
    self.assertRegex(repr(agent), 'impala agent for CartPole-v1, trained for 4')
    env = gymnasium.make('CartPole-v1')
    returns = agent.play(env, num_episodes=4)
    self.assertLen(returns, 4)
    self.assertTrue(all(8 <= r <= 500 for r in returns))
    env.reset()  # It is still open.
    vector = gymnasium.make_vec('CartPole-v1', 3)
    self.assertLen(agent.play(vector, num_episodes=5), 5)

  def test_games_that_end_at_the_limit_are_not_cut(self):
    agent = scalable_agent.load(self.trained('CartPole-v1'))
    agent.config = dataclasses.replace(agent.config, max_episode_steps=3)
    for mode in _Mode:
      vector = gymnasium.vector.SyncVectorEnv(
          [lambda: gymnasium.make('CartPole-v1', max_episode_steps=3)] * 2,
          autoreset_mode=mode)
      self.assertEqual(agent.play(vector, num_episodes=6), [3.] * 6)

  def test_steps_are_those_of_the_network(self):
    agent = scalable_agent.load(self.trained('CartPole-v1'))
    rng = np.random.default_rng(0)
    num_steps, num_envs = 6, 3
    observations = rng.normal(size=[num_steps, num_envs, 4]).astype(np.float32)
    rewards = rng.normal(size=[num_steps, num_envs]).astype(np.float32)
    dones = rng.random([num_steps, num_envs]) < .3
    state = agent.initial_state(num_envs)
    last_actions, actions = [], []
    for t in range(num_steps):
      last_actions.append(state.last_action)
      action, state = agent.step(
          observations[t], state, rewards[t], dones[t], greedy=True)
      actions.append(action)
    np.testing.assert_array_equal(last_actions, [0 * actions[0], *actions[:-1]])
    outputs, core = agent.agent.unroll(
        np.stack(last_actions), structs.StepOutput(
            rewards, structs.NO_INFO, dones, observations),
        agent.agent.initial_state(num_envs))
    np.testing.assert_array_equal(
        actions, tf.argmax(outputs.policy, -1).numpy())
    for one, other in zip(core, state.core):
      np.testing.assert_allclose(one, other, atol=1e-5)

  def test_a_run_of_an_older_version(self):
    logdir = self.trained('Pendulum-v1')
    spec = scalable_agent.load(logdir).spec
    path = os.path.join(logdir, 'spec.json')
    with open(path, encoding='utf-8') as f:
      saved = f.read()
    try:
      for text in '', '{"observation": 3}':
        with open(path, 'w', encoding='utf-8') as f:
          f.write(text)
        self.assertEqual(scalable_agent.load(logdir).spec, spec)
    finally:
      with open(path, 'w', encoding='utf-8') as f:
        f.write(saved)

  def test_what_does_not_fit(self):
    agent = scalable_agent.load(self.trained('CartPole-v1'))
    state = agent.initial_state(2)
    same = [agent.step(observation, state, greedy=True)[0].tolist()
            for observation in (np.ones([2, 4]), [[1, 1, 1, 1]] * 2)]
    self.assertEqual(*same)
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        r'^Observations must have the shape \[2, 4\], not \[4\]'):
      agent.step(np.ones(4), state)
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, 'the number nan, but must be float32'):
      agent.step(np.full([2, 4], np.nan), state)
    for wrong in (np.ones([2, 4]), {}), {'frame': np.ones([2, 4])}:
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError,
          r'^Observations must be an array of shape \[2, 4\], not a dict'):
        agent.step(wrong, state)
    for wrong in [[1, 1, 1, 1], [1]], [['a'] * 4] * 2:
      with self.assertRaisesRegex(
          errors.EnvironmentSpecError, '^Observations must be arrays of numb'):
        agent.step(wrong, state)
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        r'observations float32 \[4\], but Pendulum-v1 has observations '
        r'float32 \[3\]'):
      agent.play(gymnasium.make('Pendulum-v1'))
    with self.assertRaisesRegex(ValueError, 'num_episodes must be positive'):
      agent.play(num_episodes=0)
    with self.assertRaisesRegex(TypeError, "env='CartPole-v1' is no environ"):
      agent.play('CartPole-v1')
    with self.assertRaises(TypeError):
      agent.play(num_episodes=2.5)

  def test_directories_without_an_agent(self):
    empty = self.create_tempdir().full_path
    with self.assertRaisesRegex(errors.ConfigError, 'holds no checkpoint'):
      scalable_agent.load(empty)
    for suffix in 'index', 'data-00000-of-00001':
      self.create_tempfile(os.path.join(empty, f'ckpt-1.{suffix}'))
    with self.assertRaisesRegex(errors.ConfigError, 'but no settings.json. '
                                'Copy .* to settings.json, or resume'):
      scalable_agent.load(empty)


class StateOfCallerTest(absltest.TestCase):

  def test_public_functions_put_back_what_they_change(self):
    self.addCleanup(tf.keras.config.set_dtype_policy,
                    tf.keras.config.dtype_policy())
    tf.keras.config.set_dtype_policy('mixed_float16')
    logdir = self.create_tempdir().full_path
    config = scalable_agent.Config(
        logdir=logdir, level_name='catch', agent='mlp', xla='none',
        num_actors=2, unroll_length=2, batch_size=2, use_lstm=False,
        total_environment_frames=16, compute_dtype='bfloat16')
    state = lambda: (random.getstate(), str(np.random.get_state()),
                     tf.keras.config.dtype_policy().name)
    for call in (lambda: scalable_agent.train(config),
                 lambda: scalable_agent.load(logdir),
                 lambda: scalable_agent.load(logdir).play(num_episodes=1),
                 lambda: test.test(dataclasses.replace(
                     config, mode='test', test_num_episodes=2))):
      random.seed(71)
      np.random.seed(72)
      before = state()
      call()
      self.assertEqual(state(), before)
    agent = scalable_agent.load(logdir).agent
    self.assertEqual({v.dtype for v in agent.trainable_variables}, {'float32'})


class NamesTest(absltest.TestCase):

  def test_other_names(self):
    with self.assertRaisesRegex(AttributeError, 'no attribute .lode'):
      scalable_agent.lode  # noqa: B018


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/from_gymnasium',
         catches='test_last_observations_of_arrays_that_are_used_again', rows=(
        ('the last observation is not copied',
         'last = map_nests(np.copy, observation)', 'last = observation'),
        ('the observation is that of the next episode',
         "if 'final_obs' in info:", 'if False:'),
        ('a simulator has an array for each environment',
         "if not (isinstance(final, np.ndarray) and final.dtype.hasobject):",
         'if False:'),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_texts_in_shared_memory_are_refused', rows=(
        ('texts in shared memory are taken',
         "env.unwrapped, 'shared_memory', False):",
         "env.unwrapped, 'no_memory', False):"),
        ('all texts are refused', "env.unwrapped, 'shared_memory', False):",
         "env.unwrapped, 'shared_memory', False) is not None:"),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_a_time_limit_without_the_last_observation', rows=(
        ('last observations are not missed',
         'elif is_same_step and is_cut.any() and self._learns:', 'elif False:'),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_arrays_that_are_used_again3', rows=(
        ('rewards of a vector are kept', 'np.array(reward, np.float32)',
         'np.asarray(reward, np.float32)'),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_arrays_that_are_used_again0', rows=(
        ('the reward is read after the reset',
         'np.array([number], np.float32)',
         'np.array([user_code.number_of_reward(reward)], np.float32)'),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_forms_that_trainings_accept',
         rows=(
        ('no reset after an episode',
         '    if done:\n',
         '    if False:\n'),
    )),
    dict(file='modes/loading',
         catches='test_numbers_that_the_dtype_does_not_hold',
         rows=(
        ('numbers are cut or wrap',
         'else array != raw',
         'else array != array'),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_vectors_and_single_ones_have_the_same_episodes', rows=(
        ('late ends are not looked at',
         'if self._mode == _AutoresetMode.NEXT_STEP:', 'if False:'),
        ('the last observation of a single environment is the next one',
         'last if done else ()', 'arrays if done else ()'),
        ('the others are reset', "{'reset_mask': done}",
         "{'reset_mask': ~done}"),
        ('an end counts as cut off', ', truncated & ~terminated\n',
         ', truncated\n'),
        ('actions are not scaled',
         'spaces.to_space(actions, self._env.single_action_space)', 'actions'),
    )),
    dict(file='environments/encoding',
         catches='test_vectors_and_single_ones_have_the_same_episodes', rows=(
        ('all spaces are boxes', 'if self._mask_space is None and all(',
         'if True or all('),
    )),
    dict(file='environments/from_gymnasium',
         catches='test_a_vector_starts_again_after_an_end', rows=(
        ('ends of before are kept',
         'observation, _ = self._env.reset(seed=self._seed)\n'
         '    self._ended = (self._nothing, self._nothing, ())',
         'observation, _ = self._env.reset(seed=self._seed)'),
    )),
    dict(file='modes/loading',
         catches='test_steps_are_those_of_the_network', rows=(
        ('no rewards', 'fill(reward, np.float32)', 'fill(0., np.float32)'),
        ('nothing is done', 'fill(done, bool)', 'fill(False, bool)'),
        ('the action before the last one', 'State(action, core)',
         'State(state.last_action, core)'),
        ('the state does not change', 'State(action, core)',
         'State(action, state.core)'),
    )),
    dict(file='modes/loading', catches='test_what_does_not_fit', rows=(
        ('greedy is not asked for',
         'self.config.test_greedy if greedy is None else greedy',
         'self.config.test_greedy'),
        ('shapes are not checked', 'if array.shape != (num_envs, *spec.shape):',
         'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
