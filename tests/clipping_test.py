# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that nothing is clipped without a word."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import experiment
from scalable_agent.experience import structs
from scalable_agent.networks import normalisers
from scalable_agent.runs import clipping
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_DISCRETE = structs.ActionSpec((2,))


def _config(**settings):
  return config_lib.Config(
      **{'level_name': 'Pendulum-v1', 'algorithm': 'appo'} | settings)


def _note(rewards, actions=None):
  if actions is None:
    actions = np.zeros([len(rewards)], np.int64)
  return structs.Note([], np.asarray(actions), np.asarray(rewards, np.float32),
                      np.zeros([1], np.int64))


class DefaultTest(parameterized.TestCase):

  @parameterized.parameters(
      ('impala', 'CartPole-v1', 'none'), ('impala', 'catch', 'none'),
      ('impala', 'my:Level-v0', 'none'),
      ('impala', 'ALE/Pong-v5', 'abs_one'), ('impala', 'atari57', 'abs_one'),
      ('impala', 'dmlab30', 'abs_one'),
      ('impala', 'explore_goal_locations_small', 'abs_one'),
      ('appo', 'ALE/Pong-v5', 'abs_one'), ('sac', 'ALE/Pong-v5', 'abs_one'),
      ('appo', 'rooms_watermaze', 'none'), ('appo', 'CartPole-v1', 'none'))
  def test_by_algorithm_and_level(self, algorithm, level, expected):
    self.assertEqual(config_lib.Config(
        algorithm=algorithm, level_name=level).reward_clipping, expected)

  def test_a_resumed_run_keeps_its_own(self):
    logdir = self.create_tempdir().full_path
    flags = [f'--logdir={logdir}', '--level_name=CartPole-v1']
    parse = lambda *more: experiment.parse([*flags, *more]).reward_clipping
    self.assertEqual(parse(), 'none')
    config_lib.Config(logdir=logdir, level_name='CartPole-v1',
                      reward_clipping='abs_one').save()
    self.assertEqual(parse(), 'none')  # Nothing was learned.
    open(os.path.join(logdir, 'ckpt-7.index'), 'w').close()
    self.assertEqual(parse(), 'abs_one')
    self.assertEqual(parse('--mode=test'), 'abs_one')
    self.assertEqual(parse('--reward_clipping=none'), 'none')
    self.assertEqual(parse('--algorithm=appo'), 'none')
    with open(os.path.join(logdir, 'settings.json'), 'w') as f:
      f.write('{')
    self.assertEqual(parse(), 'none')  # The run itself says the error.


class WatchTest(parameterized.TestCase):

  @parameterized.parameters(
      ('impala', '--normalise_returns'), ('sac', '--reward_scale'))
  def test_rewards_are_counted_over_the_first_thousand(self, algorithm, flag):
    watch = clipping.Watch(
        _config(reward_clipping='abs_one', algorithm=algorithm))
    rewards = np.zeros(1000)
    rewards[:101] = np.linspace(1.5, 400, 101)
    self.assertEmpty(watch([_note(rewards[:500]), _note(rewards[500:999])]))
    [line] = watch([_note(rewards[999:])])
    self.assertStartsWith(
        line, '10 % of the first 1,000 rewards are outside [-1, 1] (from 0 '
        'to 400), and are clipped to [-1, 1]: sizes are lost.')
    self.assertEndsWith(line, f'--reward_clipping=none, perhaps with {flag}.')
    self.assertEmpty(watch([_note(np.full(2000, 9.))]))  # Said once.

  def test_later_rewards_are_not_judged(self):
    watch = clipping.Watch(_config(reward_clipping='abs_one'))
    numbers = np.zeros([1000, 2], np.float32)
    self.assertEmpty(watch([_note(np.zeros(1000), numbers)]))
    self.assertEmpty(watch([_note(np.full(2000, 9.), numbers)]))

  def _actions(self, share, n=2000):
    """A note of one number per action; `share` of the numbers are 1."""
    return _note(np.zeros(n), np.where(
        np.arange(n) < share * n, 1., 0.).astype(np.float32))

  def test_actions_are_judged_again_and_again(self):
    watch = clipping.Watch(_config(squash_actions=True))
    for _ in range(7):
      self.assertEmpty(watch([self._actions(.05)]))
    self.assertEmpty(watch([self._actions(.05, 600)]))
    [line] = watch([self._actions(.3, 600)])
    self.assertEqual(
        line, '18 % of the numbers of the last 1,200 of 15,200 actions are at '
        'a bound of the action space.')
    self.assertEmpty(watch([self._actions(1., 5000)]))  # Said once.

  def test_early_actions_are_not_judged(self):
    watch = clipping.Watch(_config(squash_actions=True))
    for _ in range(4):
      self.assertEmpty(watch([self._actions(1.)]))
    self.assertLen(watch([self._actions(1.)]), 1)

  @parameterized.parameters(
      (1., {}), (.6, {'initial_scale': .6}),
      (1., {'algorithm': 'impala', 'squash_actions': False}),
      (.3, {'algorithm': 'mpo', 'initial_scale': .3}))
  def test_the_noise_of_a_new_policy_is_no_line(self, scale, values):
    settings = _config(**values)
    noise = np.random.default_rng(0).normal(
        0, scale, [20_000, 2]).astype(np.float32)
    self.assertEmpty(clipping.Watch(settings)([_note(np.zeros(20_000), noise)]))
    noise[:5000] = 1
    self.assertLen(
        clipping.Watch(settings)([_note(np.zeros(20_000), noise)]), 1)

  @parameterized.parameters(
      ('abs_one', 1.), ('abs_one', -1.), ('none', 900.),
      ('soft_asymmetric', 5.))
  def test_rewards_within_the_limits(self, mode, reward):
    watch = clipping.Watch(_config(reward_clipping=mode))
    self.assertEmpty(watch([_note(np.full(1000, reward))]))

  def test_squashed_rewards(self):
    watch = clipping.Watch(_config(reward_clipping='soft_asymmetric'))
    [line] = watch([_note(np.full(1000, -6.))])
    self.assertIn('100 % of the first 1,000 rewards are outside [-5, 5]', line)

  def test_a_tenth_is_no_line(self):
    watch = clipping.Watch(_config(reward_clipping='abs_one'))
    self.assertEmpty(watch([_note(
        2. * (np.arange(1000) % 10 == 0))]))

  def test_actions_at_their_bounds(self):
    n = 10_000
    rewards, actions = np.zeros(n), np.zeros([n, 2], np.float32)
    actions[:5000, 1], actions[:3600, 0] = -1.5, 1.5  # 43 of 100 numbers.
    [line] = clipping.Watch(_config())([_note(rewards, actions)])
    self.assertStartsWith(
        line, '43 % of the numbers of the last 10,000 of 10,000 actions are at '
        'a bound of the action space: actions beyond a bound are clipped;')
    self.assertEmpty(clipping.Watch(_config())([
        _note(rewards, np.where(np.arange(n)[:, None] < 4100, actions, 0))]))
    squashed = _config(squash_actions=True)
    actions[:] = 0
    actions[:2001, 1] = -1
    [line] = clipping.Watch(squashed)([_note(rewards, actions)])
    self.assertEndsWith(line, 'of the action space.')
    actions[0, 1] = 0
    self.assertEmpty(clipping.Watch(squashed)([_note(rewards, actions)]))
    self.assertEmpty(clipping.Watch(_config())([
        _note(rewards, np.full(n, 3))]))  # Discrete.

  def test_observations(self):
    watch = clipping.Watch(_config(normalise_observations='auto'))
    self.assertEmpty(watch([], (0, 0)))
    self.assertEmpty(watch([], (1000, 1)))  # The first batch.
    [line] = watch([], (1000, 31))
    self.assertStartsWith(line, '3 % of the numbers of observations are beyond')
    self.assertEmpty(watch([], (1000, 31)))
    self.assertEmpty(clipping.Watch(_config())([], (1000, 10)))

  def test_normalised_numbers_are_counted(self):
    normaliser = normalisers.ObservationNormaliser({
        'a': structs.ArraySpec((2,), np.dtype(np.float32))})
    normaliser.statistics['a'].variance.assign([4., 1.])
    seen = {'a': tf.constant([[[10.1, 5.1], [9.9, -6.], [0., 0.]]]),
            'b': tf.constant([[[900.]] * 3])}
    self.assertEqual(normaliser.clipped(seen), (6, 3))

  def test_the_start_says_it(self):
    said = lambda settings, actions=_DISCRETE: clipping.said(settings, actions)
    self.assertEqual(
        said(_config(algorithm='sac')),
        'Rewards are not changed (--reward_clipping=none).')
    self.assertEqual(
        said(_config(algorithm='sac', reward_scale=.1)),
        'Rewards are multiplied by 0.1 (--reward_scale).')
    self.assertEqual(
        said(_config(algorithm='sac', reward_clipping='abs_one',
                     reward_scale=20)),
        'Rewards are clipped to [-1, 1] (--reward_clipping=abs_one), then '
        'multiplied by 20 (--reward_scale).')
    self.assertEqual(
        said(_config(normalise_returns=True, normalise_observations='none')),
        'Rewards are not changed (--reward_clipping=none). Returns are '
        'normalised by their mean and standard deviation '
        '(--normalise_returns).')
    self.assertEqual(
        said(_config(reward_clipping='abs_one', normalise_observations='auto',
                     normalise_returns=False)),
        'Rewards are clipped to [-1, 1] (--reward_clipping=abs_one). '
        'Observations of floats or uint8 are normalised, and clipped to 5 '
        'standard deviations (--normalise_observations=auto).')
    for settings, expected in (
        (dict(normalise_observations='auto', agent='a:b'),
         ' Observations of floats are normalised, '),
        (dict(normalise_observations='a'), ' Observations are normalised, ')):
      self.assertIn(expected, said(_config(**settings)))
    clipped = ' Actions beyond a bound of the action space are clipped.'
    for algorithm, squash, expected in (
        ('appo', False, True), ('appo', True, False), ('sac', None, False),
        ('mpo', None, True)):
      config = _config(algorithm=algorithm, **(
          {} if squash is None else {'squash_actions': squash}))
      self.assertEqual(
          said(config, structs.ActionSpec((), 2)).endswith(clipped), expected)
      self.assertNotIn('Actions', said(config))


MUTATIONS = (
    dict(file='runs/clipping',
         catches='test_rewards_are_counted_over_the_first_thousand', rows=(
        ('rewards are never said', 'np.abs(rewards) > limit',
         'np.abs(rewards) > np.inf'),
        ('a few rewards are enough', 'sum(map(len, rewards)) < _NUM_STEPS',
         'False'),
    )),
    dict(file='runs/clipping', catches='test_later_rewards_are_not_judged',
         rows=(
        ('said again', 'if not self._num_steps:', 'if True:'),
    )),
    dict(file='runs/clipping',
         catches='test_actions_are_judged_again_and_again', rows=(
        ('only the first actions', '      self._actions_said = True\n'
         '      return []\n    share', '      return []\n'
         '    self._actions_said = True\n    share'),
        ('actions said again', '    self._actions_said = True\n'
         '    return [f', '    return [f'),
    )),
    dict(file='runs/clipping', catches='test_early_actions_are_not_judged',
         rows=(
        ('actions are judged at once',
         'self._num_steps < _NUM_FIRST_STEPS', 'False'),
    )),
    dict(file='runs/clipping',
         catches='test_the_noise_of_a_new_policy_is_no_line', rows=(
        ('noise is said', '_SHARE + self._share_at_start', '_SHARE'),
        ('variances', '_AT_BOUND / settings.initial_scale / math',
         '_AT_BOUND / math'),
    )),
    dict(file='networks/normalisers',
         catches='test_normalised_numbers_are_counted', rows=(
        ('all normalised numbers count as clipped',
         'tf.abs(part) >= _CLIP', 'tf.abs(part) >= 0'),
    )),
    dict(file='settings/config', catches='test_a_resumed_run_keeps_its_own',
         rows=(
        ('a resumed run takes the new default',
         'config, reward_clipping=before.reward_clipping', 'config'),
    )),
)


if __name__ == '__main__':
  absltest.main()
