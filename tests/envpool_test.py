# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of EnvPool's levels, with a fake pool and, if installed, with EnvPool.
"""

import importlib.util
import sys
import unittest
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import shares
from scalable_agent.environments import envpool_env
from scalable_agent.environments import trial
from scalable_agent.modes import check

_NEEDS_ENVPOOL = unittest.skipIf(
    importlib.util.find_spec('envpool') is None,
    'EnvPool is not installed: pip install ".[envpool]"')


def _settings(num_action_repeats=1, **kwargs):
  return environments.EnvironmentSettings(
      num_action_repeats=num_action_repeats, environment_kwargs=kwargs)


class _FakeGame:
  """Episodes of 1 to 4 steps; every second episode is cut off.

  Observations are the seed, the episode, the step, and the last action.
  """

  def __init__(self, seed):
    self.seed, self.episode, self.ended = seed, -1, True

  def reset(self):
    self.episode += 1
    self.steps, self.action, self.ended = 0, -1, False
    return 0., False, False

  def step(self, action):
    self.steps, self.action = self.steps + 1, action
    self.ended = self.steps > (self.seed + 5 * self.episode) % 4
    is_cut = self.ended and self.episode % 2 == 1
    return self.steps + action / 8, self.ended and not is_cut, is_cut

  def observation(self):
    return [self.seed, self.episode, self.steps, self.action]


class _FakePool:
  """Has the API of EnvPool; a step after the end of an episode is a reset."""

  def __init__(self, seeds):
    self.games = [_FakeGame(seed) for seed in seeds]
    self.num_ignored = 0
    self._results = []

  def send(self, actions, env_id):
    assert len(actions) == len(env_id) and not self._results
    assert env_id.dtype == np.int32
    # A pool does not promise an order.
    for number, action in list(zip(env_id, actions))[::-1]:
      game = self.games[number]
      self.num_ignored += game.ended
      result = game.reset() if game.ended else game.step(int(action))
      self._results.append((game.observation(), *result, number))

  def recv(self):
    observation, *others, numbers = map(np.array, zip(*self._results))
    self._results = []
    return observation.astype(float), *others, {'env_id': numbers}

  def reset(self, env_id):
    for number in env_id[::-1]:
      result = self.games[number].reset()
      self._results.append(
          (self.games[number].observation(), *result, number))
    observation, *_, info = self.recv()
    return observation, info


class _FakeEnvPool:
  """The functions of the package that the program calls."""

  def __init__(self):
    self.pools = []

  def list_all_envs(self):
    return ['Fake-v1', 'Other-v1', 'Players-v1', 'Wide-v1']

  def make_spec(self, task, size=4, max_episode_steps=9, frame_skip=1):
    del max_episode_steps, frame_skip  # EnvPool takes any number.
    box = gymnasium.spaces.Box(1e-30, 1e30, (size + (task == 'Wide-v1'),))
    config = mock.Mock(max_num_players=1 + (task == 'Players-v1'))
    return mock.Mock(config=config, gymnasium_observation_space=box,
                     gymnasium_action_space=gymnasium.spaces.Discrete(3))

  def make_gymnasium(self, task, num_envs, seed, num_threads):
    assert num_envs == len(seed) and num_threads >= 1
    del task
    self.pools.append(_FakePool(seed))
    return self.pools[-1]


def _episodes_of(seed, actions, num_repeats):
  """Yields each step of one game, stepped by hand."""
  game = _FakeGame(seed)
  game.reset()
  for action in actions:
    total = 0.
    for _ in range(num_repeats):
      reward, terminated, truncated = game.step(int(action))
      total += reward
      if game.ended:
        break
    last = game.observation()
    if game.ended:
      game.reset()
      game.ended = False
      yield total, True, truncated, game.observation(), last
    else:
      yield total, False, truncated, game.observation(), None


class FakePoolTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.envpool = _FakeEnvPool()
    self.enter_context(mock.patch.dict(sys.modules, envpool=self.envpool))
    # The fake needs no newer Python.
    self.enter_context(mock.patch.object(envpool_env, '_MIN_PYTHON', (3, 10)))

  @parameterized.product(
      num_repeats=(1, 3),
      levels=(['Fake-v1'] * 5, ['Fake-v1', 'Other-v1'] * 2 + ['Fake-v1']))
  def test_resets_take_no_step_and_last_observations_are_true(
      self, num_repeats, levels):
    seeds = [3, 0, 2, 5, 9]
    env = environments.make_vec([f'envpool:{name}' for name in levels], seeds,
                                _settings(num_repeats))
    self.addCleanup(env.close)
    actions = np.random.default_rng(0).integers(3, size=(60, 5), dtype=np.int32)
    np.testing.assert_array_equal(
        env.initial().observation, [[seed, 0, 0, -1] for seed in seeds])
    expected = zip(*(_episodes_of(seed, actions[:, i], num_repeats)
                     for i, seed in enumerate(seeds)))
    returns, lengths, num_ends = [0.] * 5, [0] * 5, 0
    for row, games in zip(actions, expected, strict=True):
      output = env.step(row)
      for i, (reward, done, truncated, observation, last) in enumerate(games):
        returns[i], lengths[i] = returns[i] + reward, lengths[i] + 1
        self.assertEqual(
            (output.reward[i], output.done[i], output.truncated[i],
             output.info.episode_end[i], output.info.episode_return[i],
             output.info.episode_step[i], output.observation[i].tolist()),
            (reward, done, truncated, done, returns[i], lengths[i],
             observation))
        if done:
          self.assertEqual(output.last_observation[i].tolist(), last)
          returns[i], lengths[i], num_ends = 0., 0, num_ends + 1
    self.assertGreater(num_ends, 100)
    self.assertEqual(env.num_steps, 300)
    self.assertEqual([pool.num_ignored for pool in self.envpool.pools],
                     [0] * len(set(levels)))

  def test_initial_starts_again_from_the_seeds(self):
    env = environments.make_vec(['envpool:Fake-v1'] * 2, [1, 2], _settings())
    self.addCleanup(env.close)
    first = env.initial().observation.copy()
    for _ in range(5):
      env.step(np.ones([2], np.int32))
    np.testing.assert_array_equal(env.initial().observation, first)

  def test_specs(self):
    env = environments.make_vec(['envpool:Fake-v1'], [1], _settings(size=6))
    self.assertEqual(env.spec.observation.shape, (6,))
    self.assertEqual(env.spec.action.num_values, (3,))
    self.assertEqual(env.spec.units['action'],
                     {'type': 'Discrete', 'n': 3, 'start': 0})
    self.assertEqual(env.spec.num_action_repeats, 1)

  @parameterized.parameters(
      ('Fake-v2', {}, errors.UnknownLevelError,
       "^Unknown level 'envpool:Fake-v2'. Did you mean envpool:Fake-v1"),
      ('Players-v1', {}, errors.EnvironmentSpecError,
       '^envpool:Players-v1 has 2 players, but only levels with one player'),
      ('Fake-v1', {'weight': 2}, errors.EnvironmentSpecError,
       '^--environment_kwargs: envpool:Fake-v1 does not take the argument '
       'weight.$'),
      ('Fake-v1', {'num_envs': 2}, errors.EnvironmentSpecError,
       'does not take the argument num_envs: the program or another flag'),
      ('Fake-v1', {'size': '4'}, errors.EnvironmentSpecError,
       '^--environment_kwargs: envpool:Fake-v1 does not take '
       '{"size": "4"}: .*str'),
      ('Fake-v1', {'size': -1}, errors.EnvironmentSpecError,
       'does not take {"size": -1}: '),
      ('Fake-v1', {'max_num_players': 4}, errors.EnvironmentSpecError,
       'does not take the argument max_num_players: the program'),
      ('Fake-v1', {'gym_reset_return_info': False}, errors.EnvironmentSpecError,
       'does not take the argument gym_reset_return_info: the program'),
      ('Fake-v1', {'max_episode_steps': 0}, errors.EnvironmentSpecError,
       '^--environment_kwargs: max_episode_steps of envpool:Fake-v1 must be at '
       'least 1, not 0.$'),
      ('Fake-v1', {'frame_skip': -1}, errors.EnvironmentSpecError,
       'frame_skip of envpool:Fake-v1 must be at least 1, not -1.$'))
  def test_bad_names_and_arguments(self, task, kwargs, error, message):
    with self.assertRaisesRegex(error, message) as caught:
      environments.check_names([f'envpool:{task}'], _settings(**kwargs))
    self.assertNotIn('\n', str(caught.exception))

  def test_levels_that_do_not_fit(self):
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        'envpool:Fake-v1 and envpool:Wide-v1: they have different obs'):
      environments.make_vec(
          ['envpool:Fake-v1', 'envpool:Wide-v1'], [1, 2], _settings())
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError, 'levels of EnvPool and other levels'):
      environments.check_names(['envpool:Fake-v1', 'catch'], _settings())

  def test_a_library_of_the_system_is_missing(self):
    self.envpool.make_spec = mock.Mock(side_effect=ImportError('no Qt'))
    with self.assertRaisesRegex(
        errors.MissingDependencyError,
        '^envpool:Fake-v1 needs a package that is not installed: no Qt$'):
      environments.check_names(['envpool:Fake-v1'], _settings())


class MissingTest(absltest.TestCase):

  def test_not_installed(self):
    with mock.patch.dict(sys.modules, envpool=None), mock.patch.object(
        envpool_env, '_MIN_PYTHON', (3, 10)):
      with self.assertRaisesRegex(
          errors.MissingDependencyError,
          r'^envpool:Fake-v1 needs EnvPool: pip install '
          r'"scalable_agent\[envpool\]" \(.*\).$'):
        environments.check_names(['envpool:Fake-v1'], _settings())

  def test_old_python(self):
    with mock.patch.object(envpool_env, '_MIN_PYTHON', (99, 0)):
      with self.assertRaisesRegex(
          errors.MissingDependencyError, 'EnvPool needs Python 3.11 or newer'):
        environments.check_names(['envpool:Fake-v1'], _settings())

  def test_threads_need_no_processes(self):
    self.assertEqual(
        [shares.has_processes(name) for name in (
            'ALE/Pong-v5', 'envpool:Fake-v1', 'catch', 'my_module:Game-v0')],
        [False, False, True, True])

  def test_flags_of_processes_are_not_advised(self):
    facts = mock.Mock(
        spec=trial.Facts, parts={'frame': mock.Mock(low=0, high=1)},
        rewards=np.ones(9), lengths=[3], step_s=9e-6, mean_step_s=1e-6,
        reset_s=1e-6, reset_s_per_step=1e-6, num_resets=3, checker='',
        differs=True, action_space='Discrete(2)',
        unused_masks=())
    facts.resets_hold_up.return_value = False
    facts.spec = mock.Mock(
        observation=mock.Mock(shape=(2,), dtype=np.dtype(np.float32)))
    facts.spec.action = mock.Mock(size=0, num_values=(2,))
    self.assertEqual(
        check.advise(facts).flags, {'environments_per_process': '8'})
    for is_slow in False, True:
      facts.resets_hold_up.return_value = is_slow
      self.assertEqual(check.advise(facts, has_processes=False).flags, {})

  def test_groups_need_no_trial(self):
    config = mock.Mock(usual_groups=3)
    with mock.patch.object(shares, 'play_trial', side_effect=AssertionError):
      self.assertEqual(shares._num_groups(config, ['envpool:Fake-v1'] * 9), 3)


class _Contract(environment_contract.SerialReference,
                environment_contract.EnvironmentContract):

  def make_serial(self):
    return envpool_env.SingleEnvironment(self.level_name, self.settings)


@_NEEDS_ENVPOOL
class CartPoleTest(_Contract, parameterized.TestCase):
  level_name = 'envpool:CartPole-v1'
  settings = _settings(max_episode_steps=20)

  def test_steps_are_those_of_gymnasium(self):
    env = envpool_env.SingleEnvironment(self.level_name, self.settings)
    other = gymnasium.make('CartPole-v1').unwrapped
    other.reset(seed=0)
    other.state, _ = env.reset(seed=3)
    for step in range(1, 21):
      observation, reward, terminated, truncated, _ = env.step(step % 2)
      expected = other.step(step % 2)
      np.testing.assert_allclose(observation, expected[0], rtol=1e-4, atol=1e-4)
      self.assertEqual((reward, terminated, truncated),
                       (1, expected[2], step == 20))


@_NEEDS_ENVPOOL
@pytest.mark.slow
class HalfCheetahTest(_Contract, absltest.TestCase):
  level_name = 'envpool:HalfCheetah-v5'
  settings = _settings(max_episode_steps=40)
  num_steps = 90

  def test_steps_are_those_of_gymnasium(self):
    env = envpool_env.SingleEnvironment(self.level_name, self.settings)
    other = gymnasium.make('HalfCheetah-v5').unwrapped
    other.reset(seed=0)
    observation, _ = env.reset(seed=3)  # All of the state but x, which is free.
    other.set_state(np.array([0., *observation[:8]]), observation[8:])
    for step in range(10):  # Later, other versions of MuJoCo may differ.
      action = np.array([(step * i) % 5 / 2 - 1 for i in range(6)], np.float32)
      observation, reward, *_ = env.step(action.astype(float))
      expected = other.step(action)
      np.testing.assert_allclose(observation, expected[0], rtol=0, atol=1e-5)
      np.testing.assert_allclose(reward, expected[1], rtol=0, atol=1e-5)


@_NEEDS_ENVPOOL
@pytest.mark.slow
class CheetahRunTest(_Contract, absltest.TestCase):
  """A level of the DeepMind Control Suite: observations are a `Dict`."""
  level_name = 'envpool:CheetahRun-v1'
  settings = _settings(max_episode_steps=15)
  num_steps = 35


@_NEEDS_ENVPOOL
class FrozenLakeTest(_Contract, absltest.TestCase):
  """Observations are a `Discrete`."""
  level_name = 'envpool:FrozenLake-v1'

  def assert_is(self, batched, single):
    np.testing.assert_array_equal(batched[0], np.eye(16)[single])


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/envpool_env',
         catches='test_resets_take_no_step_and_last_observations_are_true',
         rows=(
        ('ended episodes are stepped on',
         '~(self._terminated | self._truncated)', 'self._reward < np.inf'),
        ('nothing is reset', 'self._reset(done)', 'pass'),
        ('all are reset', 'self._reset(done)', 'self._reset(done | True)'),
        ('last observations are first ones',
         'name: array.copy() for', 'name: array for'),
        ('results are taken in order', "rows = indices[info['env_id']]",
         'rows = indices[numbers]'),
        ('resets are taken in order', "self._write(indices[info['env_id']],",
         'self._write(indices[numbers],'),
        ('the last reward counts', 'self._reward[rows] += reward',
         'self._reward[rows] = reward'),
        ('actions of others', 'actions[indices[numbers]]',
         'actions[:len(numbers)]'),
        ('time limits are not noted', 'self._truncated[rows] = truncated',
         'self._terminated[rows] |= truncated'),
        ('all have the first seed', 'self._seeds[i] for i in indices',
         'self._seeds[0] for i in indices'),
        ('actions are not repeated',
         'for _ in range(self._settings.num_action_repeats):',
         'for _ in range(1):'),
    )),
    dict(file='environments/envpool_env',
         catches='test_initial_starts_again_from_the_seeds', rows=(
        ('pools are kept', 'self._pools = [\n', 'self._pools = self._pools or ['
         '\n'),
    )),
    dict(file='environments/envpool_env',
         catches='test_bad_names_and_arguments', rows=(
        ('any name is known', 'not in known:', 'in ():'),
        ('numbers below 1 are taken', 'isinstance(number, int) and number < 1',
         'number is None'),
        ('other players are taken', 'if spec.config.max_num_players != 1:',
         'if False:'),
        ('arguments of the program are taken', 'if name in kwargs})',
         'if name in ()})'),
        ('only some errors are explained',
         '(AssertionError, RuntimeError, TypeError, ValueError)',
         'AssertionError'),
    )),
    dict(file='environments/__init__', catches='test_bad_names_and_arguments',
         rows=(
        ('envpool is a module of the user',
         ' or envpool_env.is_level(level_name)', ''),
    )),
    dict(file='environments/envpool_env', catches='test_old_python', rows=(
        ('any Python will do', 'sys.version_info < _MIN_PYTHON', 'False'),
    )),
    dict(file='acting/shares', catches='test_groups_need_no_trial', rows=(
        ('pools have a trial', ' or envpool_env.is_level(level_name))', ')'),
    )),
    dict(file='modes/check',
         catches='test_flags_of_processes_are_not_advised', rows=(
        ('threads are put in groups', 'if has_processes and facts',
         'if facts'),
        ('processes are taken for granted', 'elif has_processes and (',
         'elif ('),
    )),
)


if __name__ == '__main__':
  absltest.main()
