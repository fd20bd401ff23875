# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of hindsight, against lists of episodes."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import replay_logs
from scalable_agent import replay as replay_lib

_GOAL = replay_logs.GOAL


def _after(log, i):
  """Returns what was observed after step `i`, before a new game began."""
  return log[i].last_observation if log[i].episode_end else log[i].observation


def _game(log, start):
  """Returns the numbers of the first and the last step of a game."""
  first = start
  while first > 0 and not log[first].episode_end:
    first -= 1
  last = start + 1
  while last + 1 < len(log) and not log[last].episode_end:
    last += 1
  return first, last


def _reward(achieved, desired):
  """A number that tells both; with no success."""
  return achieved[:, 0] - 3 * desired[:, 0]


def _success(achieved, desired):
  """Exactly the goal; for the goal of all steps, every third one."""
  return ((achieved == desired)
          | ((desired == _GOAL) & (achieved // 2 % 3 == 0)))[:, 0]


class HindsightTest(parameterized.TestCase):

  def _store(self, steps=40, length=24, end=0.25):
    rng = np.random.default_rng(6)
    logs = [replay_logs.random_log(rng, s, steps, end) for s in (0, 1)]
    store = replay_lib.StepStore(replay_logs.GOAL_SPEC, 2 * length, 2)
    for start in range(0, steps, 5):
      store.add(replay_logs.with_goals(
          replay_logs.unroll(logs, [0, 1], start, 5)))
    return logs, store

  @parameterized.product(strategy=('future', 'final', 'episode'),
                         num_steps=(1, 3), success=(False, True))
  def test_against_a_list_of_episodes(self, strategy, num_steps, success):
    logs, store = self._store()
    view = replay_lib.Hindsight(
        replay_lib.NStep(0.9, num_steps), _reward, strategy, 4,
        _success if success else None)
    positions, _ = replay_lib.Uniform().select(
        store, np.random.default_rng(0), 1, 8000)
    found = view(store, positions[0], np.random.default_rng(1))
    seen, num_own, ends = {}, 0, set()
    for i, position in enumerate(positions[0]):
      start, stream = divmod(int(position), 2)
      log = logs[stream]
      goal = found.observation['desired_goal'][i, 0]
      self.assertEqual(found.next_observation['desired_goal'][i, 0], goal)
      observation, action, reward, discount, after = replay_logs.transition(
          log, start, num_steps, 0.9)
      if goal == _GOAL:
        num_own += 1
      else:
        first, last = _game(log, start)
        number = lambda n, log=log: 2 * _after(log, n)
        if strategy == 'final':
          expected = {number(last)}
        elif strategy == 'future':
          expected = {number(n) for n in range(start + 1, last + 1)}
        else:  # Slots from 17 on are there.
          expected = {number(n) for n in range(start + 1, last + 1)} | {
              2 * log[n].observation for n in range(max(first, 17), start + 1)}
        self.assertIn(goal, expected)
        seen.setdefault(int(position), (set(), expected))[0].add(goal)
        reward, discount = 0.0, 1.0
        for n in range(start + 1, min(start + num_steps, last) + 1):
          after = _after(log, n)
          reward += discount * (2 * after - 3 * goal)
          discount *= 0.9
          if success and 2 * after == goal:
            discount = 0.0
            break
          if log[n].done:
            # Success ended it, but that of the goal of all steps.
            is_own = bool(success and not log[n].truncated
                          and after // 1 % 3 == 0)
            ends.add((is_own, log[n].truncated))
            discount *= log[n].truncated or is_own
            break
      self.assertEqual(found.observation['observation'][i, 0], observation)
      self.assertEqual(found.observation['achieved_goal'][i, 0],
                       2 * observation)
      self.assertEqual(found.action[i], action)
      np.testing.assert_allclose(
          found.reward[i], reward, rtol=1e-5, atol=1e-5)
      self.assertAlmostEqual(found.discount[i], discount, places=6)
      self.assertEqual(found.next_observation['observation'][i, 0], after)
    # One of five keeps its goal: 1,600, with a standard deviation of 36.
    self.assertBetween(num_own, 1450, 1750)
    complete = sum(goals == expected for goals, expected in seen.values())
    self.assertContainsSubset(
        {(False, False), (False, True), (success, False)}, ends)
    self.assertLen(seen, 46)
    self.assertGreater(complete, 40)

  def test_no_hindsight(self):
    _, store = self._store()
    view = replay_lib.Hindsight(
        replay_lib.NStep(0.9), _reward, 'future', 0)
    positions = replay_lib.Uniform().select(
        store, np.random.default_rng(0), 1, 50)[0][0]
    found = view(store, positions, np.random.default_rng(0))
    expected = replay_lib.NStep(0.9)(
        store, positions, np.random.default_rng(0))
    np.testing.assert_array_equal(found.reward, expected.reward)
    np.testing.assert_array_equal(
        found.observation['desired_goal'], np.full([50, 1], _GOAL))

  def test_rewards_of_hindsight_are_clipped(self):
    _, store = self._store()
    positions = replay_lib.Uniform().select(
        store, np.random.default_rng(0), 1, 200)[0][0]
    clipped, whole = (
        replay_lib.Hindsight(replay_lib.NStep(
            0.9, reward_clipping=mode), _reward, 'future', 4)(
                store, positions, np.random.default_rng(0)).reward
        for mode in ('abs_one', 'none'))
    self.assertGreater(np.abs(whole).max(), 1)
    np.testing.assert_array_equal(clipped, np.clip(whole, -1, 1))

  def test_with_priorities(self):
    rng = np.random.default_rng(6)
    log = replay_logs.random_log(rng, 0, 9, 0.3)
    replay = replay_lib.Replay(
        replay_lib.StepStore(replay_logs.GOAL_SPEC, 20, 1),
        replay_lib.Prioritised(1.0),
        replay_lib.Hindsight(replay_lib.NStep(0.9), _reward, 'future', 4), 0)
    replay.add(replay_logs.with_goals(
        replay_logs.unroll([log], [0], 0, 9)))
    replay.update(np.arange(9), np.array([0] * 8 + [1000]))
    drawn = replay.draw(2, 100)
    self.assertGreater(np.mean(drawn.positions == 8), .95)
    self.assertEqual(
        drawn.data.observation['achieved_goal'].shape, (2, 100, 1))
    self.assertLess(drawn.importance_weights.min(), .1)


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/views', catches='test_against_a_list_of_episodes', rows=(
        ('rewards beyond the window', '< length[:, None]',
         '<= length[:, None]'),
    )),
    dict(file='replay/steps', catches='test_against_a_list_of_episodes', rows=(
        ('goals of what is overwritten',
         'np.maximum(\n'
         '        self._games.start[windows.game], self.first[stream])',
         'self._games.start[windows.game]'),
    )),
    dict(file='replay/hindsight',
         catches='test_against_a_list_of_episodes', rows=(
        ('goals of now', "if self.strategy == 'episode' else 1",
         "if self.strategy == 'episode' else 0"),
        ('goals of the next game', 'rng.integers(first, windows.num_left + 1)',
         'rng.integers(first, windows.num_left + 2)'),
        ('goals of the game before', '-store.num_before(windows) if',
         '-store.num_before(windows) - 1 if'),
        ('goals of the end of the window', 'return windows.num_left',
         'return windows.length'),
        ('goals of the episode are later ones only',
         "first = -store.num_before(windows) if self.strategy == 'episode' "
         'else 1',
         'first = 1'),
        ('rewards are not computed anew',
         'found.reward[chosen], found.discount[chosen] =',
         '_, found.discount[chosen] ='),
        ('discounts are not computed anew',
         'found.reward[chosen], found.discount[chosen] =',
         'found.reward[chosen], _ ='),
        ('rewards for the goal of before',
         'self.compute_reward(achieved, goals)',
         'self.compute_reward(\n'
         "          achieved, store.observations(windows, 0, 'desired_goal'))"),
        ('rewards for what was achieved before the step',
         'windows, np.minimum(step, windows.length),',
         'windows, np.minimum(step - 1, windows.length),'),
        ('next observations keep their goal',
         'in (found.observation, found.next_observation):',
         'in (found.observation,):'),
        ('observations keep their goal',
         'in (found.observation, found.next_observation):',
         'in (found.next_observation,):'),
        ('next observations are not those of the success',
         'array[chosen] = next_observation[name]', 'pass'),
        ('success does not end an episode',
         'length[ends], terminated[ends] = step, True', 'pass'),
        ('success after the end', 'ends = inside & self', 'ends = self'),
        ('the success of the own goal is an end',
         '      terminated &= ~self.compute_success(*(\n'
         '          store.observations(windows, windows.length, name)\n'
         "          for name in ('achieved_goal', 'desired_goal')))\n",
         '      pass\n'),
        ('no end is one for another goal',
         '      terminated &= ~self.compute_success(*(\n'
         '          store.observations(windows, windows.length, name)\n'
         "          for name in ('achieved_goal', 'desired_goal')))\n",
         '      terminated[:] = False\n'),
        ('all goals are pretended',
         'self.num_relabelled / (self.num_relabelled + 1)', '1.0'),
        ('own goals instead of pretended ones',
         'self.num_relabelled / (self.num_relabelled + 1)',
         '1 / (self.num_relabelled + 1)'),
    )),
)


if __name__ == '__main__':
  absltest.main()
