# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the replay of transitions, against plain lists of episodes."""

from absl.testing import absltest
from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import replay_logs
import replay_selectors_test
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.replay import steps


def _alive(store):
  """Returns the positions of all transitions that can be drawn."""
  times = np.arange(int(store.count.max(initial=0)) + 2)
  positions = (times[:, None] * store.num_streams
               + np.arange(store.num_streams)).ravel()
  return positions[store.alive(positions)]


def _transitions(store, num_steps, discount=0.5):
  return replay_lib.NStep(discount, num_steps)(
      store, _alive(store), np.random.default_rng(0))


class StepStoreTest(parameterized.TestCase):

  @hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
  @hypothesis.given(
      seed=st.integers(0, 2**32 - 1), num_envs=st.integers(1, 3),
      unroll_length=st.integers(1, 7), num_steps=st.integers(1, 5),
      length=st.integers(9, 40), total=st.integers(0, 60),
      end=st.sampled_from([0.0, 0.1, 0.3, 0.8, 1.0]))
  def test_against_a_list_of_episodes(
      self, seed, num_envs, unroll_length, num_steps, length, total, end):
    rng = np.random.default_rng(seed)
    total -= total % unroll_length
    logs = [replay_logs.random_log(rng, s, total, end)
            for s in range(num_envs)]
    store = replay_lib.StepStore(
        replay_logs.SPEC, num_envs * length, num_envs)
    # Groups of any size and order; an environment's own unrolls in order.
    done = [0] * num_envs
    while min(done) < total:
      group = [e for e in rng.permutation(num_envs)
               if done[e] == min(done) or rng.random() < 0.5]
      group = [e for e in group if done[e] == done[group[0]] < total]
      if not group:
        continue
      store.add(replay_logs.unroll(logs, group, done[group[0]], unroll_length))
      for e in group:
        done[e] += unroll_length
    expected = [
        replay_logs.transition(log, i, num_steps, 0.5)
        for log in logs if total
        for i in range(max(0, total + 1 - length), total)]
    self.assertEqual(
        replay_logs.as_tuples(_transitions(store, num_steps)),
        replay_logs.rounded(expected))

  def test_known_sums(self):
    # Rewards 1 to 7; step 3 terminates, step 6 is cut off by a time limit.
    log = [replay_logs.Step(0, -1, np.nan)]
    log += [replay_logs.Step(i, i, i, episode_step=i) for i in range(1, 8)]
    for i, truncated in ((3, False), (6, True)):
      log[i].done = log[i].episode_end = True
      log[i].truncated, log[i].last_observation = truncated, 100 + i
    store = replay_lib.StepStore(replay_logs.SPEC, 20, 1)
    store.add(replay_logs.unroll([log], [0], 0, 7))
    found = _transitions(store, 3, 0.9)
    np.testing.assert_allclose(
        found.reward, [5.23, 4.7, 3, 13.36, 10.4, 6, 7], rtol=1e-6)
    np.testing.assert_allclose(
        found.discount, [0, 0, 0, .729, .81, .9, .9], rtol=1e-6)
    np.testing.assert_array_equal(
        found.next_observation[:, 0], [103] * 3 + [106] * 3 + [7])
    np.testing.assert_array_equal(found.action, [1, 2, 3, 4, 5, 6, 7])
    self.assertEqual([a.dtype for a in found],
                     [np.float32, np.int32] + [np.float32] * 3)
    # D-6: an episode that ends after the first, or the second step.
    for last, expected in ((2, 2.8), (1, 1.0)):
      log[last].done = log[last].episode_end = True
      store = replay_lib.StepStore(replay_logs.SPEC, 20, 1)
      store.add(replay_logs.unroll([log], [0], 0, 7))
      found = _transitions(store, 3, 0.9)
      self.assertAlmostEqual(float(found.reward[0]), expected, places=6)
      self.assertEqual(found.discount[0], 0)

  def test_rewards_are_clipped_before_they_are_summed(self):
    log = [replay_logs.Step(i, i, 4.0 * (-1)**i, episode_step=i)
           for i in range(6)]
    store = replay_lib.StepStore(replay_logs.SPEC, 20, 1)
    store.add(replay_logs.unroll([log], [0], 0, 5))
    found = replay_lib.NStep(0.5, 3, 'abs_one')(
        store, _alive(store), np.random.default_rng(0))
    np.testing.assert_array_equal(found.reward, [-.75, .75, -.75, .5, -1])
    scaled = replay_lib.NStep(0.5, 3, 'abs_one', 8.)(
        store, _alive(store), np.random.default_rng(0))
    np.testing.assert_array_equal(scaled.reward, 8 * found.reward)
    np.testing.assert_array_equal(scaled.discount, found.discount)

  def test_a_stream_that_begins_anew_does_not_join_up(self):
    rng = np.random.default_rng(3)
    store = replay_lib.StepStore(replay_logs.SPEC, 30, 1)
    expected = []
    for length in (4, 1, 2):
      log = replay_logs.random_log(rng, 0, length)
      # Its entry 0 has the episode step 0, and no other one has.
      store.add(replay_logs.unroll([log], [0], 0, length))
      expected += [replay_logs.transition(log, i, 3, 0.5)
                   for i in range(length)]
    self.assertEqual(replay_logs.as_tuples(_transitions(store, 3)),
                     replay_logs.rounded(expected))
    drawn = replay_lib.Uniform().select(
        store, np.random.default_rng(0), 10, 100)[0]
    self.assertEqual(set(drawn.ravel()), set(_alive(store)))

  def test_a_stream_that_is_seen_late(self):
    log = replay_logs.random_log(np.random.default_rng(3), 0, 9, 0.3)
    store = replay_lib.StepStore(replay_logs.SPEC, 30, 1)
    for start in (3, 6):
      store.add(replay_logs.unroll([log], [0], start, 3))
    self.assertEqual(
        replay_logs.as_tuples(_transitions(store, 3)),
        replay_logs.rounded(replay_logs.transition(log, i, 3, 0.5)
                            for i in range(3, 9)))

  @parameterized.parameters(1, 2, 5)
  def test_what_must_not_be_read_is_not(self, num_steps):
    rng = np.random.default_rng(5)
    logs = [replay_logs.random_log(rng, s, 40, 0.2) for s in range(2)]
    for log in logs:
      for step in log[:40 - 12]:  # Twelve slots: they are overwritten.
        step.observation = step.reward = step.last_observation = np.nan
    store = replay_lib.StepStore(replay_logs.SPEC, 2 * 13, 2)
    for part in (store._observation, store._reward, store._games.last):
      part[...] = np.nan  # What has not been written yet.
    for start in range(0, 40, 4):
      store.add(replay_logs.unroll(logs, [1, 0], start, 4))
      # In the last unrolls, only numbers are left.
      if start >= 36:
        found = _transitions(store, num_steps)
        self.assertLen(found.reward, 2 * 12)
        for array in found:
          self.assertTrue(np.isfinite(array).all())

  def test_observations_of_dictionaries_and_actions_of_parts(self):
    spec = structs.EnvironmentSpec(
        {'a': structs.ArraySpec((3,), np.dtype(np.float64)),
         'b': structs.ArraySpec((2, 2), np.dtype(np.uint8))},
        structs.ActionSpec(size=2), 1)
    store = replay_lib.StepStore(spec, 10, 1)
    log = [replay_logs.Step(i, i, i, episode_step=i) for i in range(4)]
    log[2].done = log[2].episode_end = True
    unroll = replay_logs.unroll([log], [0], 0, 3)
    numbers = unroll.steps.env_outputs.observation[..., :1]
    observation = {'a': np.repeat(numbers, 3, -1).astype(np.float64),
                   'b': np.repeat(numbers, 4, -1).reshape(4, 1, 2, 2)}
    last = {'a': np.full([3], 77.0), 'b': np.full([2, 2], 78)}
    unroll = unroll._replace(
        steps=unroll.steps._replace(
            env_outputs=unroll.steps.env_outputs._replace(
                observation=observation),
            agent_outputs=unroll.steps.agent_outputs._replace(
                action=np.repeat(numbers / 10, 2, -1))),
        last_observations=(structs.LastObservation(2, 0, last),))
    store.add(unroll)
    found = _transitions(store, 1)
    self.assertEqual(
        [(a.dtype, a.shape) for a in found.observation.values()],
        [(np.float64, (3, 3)), (np.uint8, (3, 2, 2))])
    np.testing.assert_array_equal(
        found.next_observation['a'][:, 2], [1, 77, 3])
    np.testing.assert_array_equal(
        found.next_observation['b'][:, 1, 0], [1, 78, 3])
    np.testing.assert_array_equal(found.observation['b'][:, 0, 1], [0, 1, 2])
    np.testing.assert_allclose(found.action, [[.1, .1], [.2, .2], [.3, .3]])
    self.assertEqual(found.action.dtype, np.float32)

  def test_actions_are_stored_as_they_are_executed(self):
    log = [replay_logs.Step(i, i, i, episode_step=i) for i in range(5)]
    unroll = replay_logs.unroll([log], [0], 0, 4)
    actions = np.array([[9, 9], [-3, .5], [1.5, -.25], [1, -1], [.1, 7]], 'f')
    unroll = unroll._replace(steps=unroll.steps._replace(
        agent_outputs=unroll.steps.agent_outputs._replace(
            action=actions[:, None])))
    store = replay_lib.StepStore(
        replay_logs.SPEC._replace(action=structs.ActionSpec(size=2)), 10, 1)
    store.add(unroll)
    np.testing.assert_array_equal(
        _transitions(store, 1).action,
        np.array([[-1, .5], [1, -.25], [1, -1], [.1, 1]], 'f'))
    # The unroll is that of the actor, whose policy needs what it has chosen.
    self.assertEqual(actions[1, 0], -3)

  def test_num_bytes(self):
    self.assertEqual(
        steps.num_bytes(replay_logs.SPEC, 10), 10 * (8 + 4 + 9))
    frames = replay_logs.SPEC._replace(
        observation=structs.ArraySpec((4, 84, 84), np.dtype(np.uint8)))
    self.assertLess(steps.num_bytes(frames, 10**6, stacked=True), 7.2e9)

  def test_bad_input(self):
    log = replay_logs.random_log(np.random.default_rng(0), 0, 9, 0.0)
    store = replay_lib.StepStore(replay_logs.SPEC, 9, 1)
    with self.assertRaisesRegex(ValueError, '9 steps .* unrolls of 9'):
      store.add(replay_logs.unroll([log], [0], 0, 9))
    with self.assertRaisesRegex(ValueError, r'\[1\], but the replay has 1'):
      store.add(replay_logs.unroll([log, log], [1], 0, 2))
    log = replay_logs.random_log(np.random.default_rng(0), 0, 9, 1.0)
    unroll = replay_logs.unroll([log], [0], 0, 2)
    with self.assertRaisesRegex(ValueError, '1 games ended, but there are 0'):
      store.add(unroll._replace(last_observations=()))


class ReplayOfStepsTest(parameterized.TestCase):

  def _replay(self, seed=1, selector=None, streams=2, length=20, steps=30):
    rng = np.random.default_rng(4)
    logs = [replay_logs.random_log(rng, s, steps) for s in range(streams)]
    replay = replay_lib.Replay(
        replay_lib.StepStore(replay_logs.SPEC, streams * length, streams),
        selector or replay_lib.Uniform(), replay_lib.NStep(0.5, 2), seed)
    for start in range(0, steps, 5):
      replay.add(replay_logs.unroll(logs, range(streams), start, 5))
    return replay

  def test_draws_are_uniform(self):
    replay = self._replay()
    replay.add(replay_logs.unroll(  # Stream 1 has a gap now.
        [[], replay_logs.random_log(np.random.default_rng(0), 1, 5)], [1],
        0, 5))
    drawn = replay.draw(20, 1000)
    self.assertEqual(drawn.data.observation.shape, (20, 1000, 2))
    self.assertEqual(drawn.data.reward.shape, (20, 1000))
    np.testing.assert_array_equal(
        drawn.importance_weights, np.ones([20, 1000], np.float32))
    alive = _alive(replay.store)
    self.assertLen(alive, 19 + 18)
    found, counts = np.unique(drawn.positions, return_counts=True)
    np.testing.assert_array_equal(found, np.sort(alive))
    replay_selectors_test.check_counts(counts, np.ones(len(alive)))
    # The transitions are those of the positions.
    again = replay_lib.NStep(0.5, 2)(
        replay.store, drawn.positions[3], np.random.default_rng(0))
    for a, b in zip(again, drawn.data):
      np.testing.assert_array_equal(a, b[3])

  @parameterized.parameters(
      replay_lib.Uniform, replay_lib.Prioritised,
      lambda: replay_lib.Recent(replay_lib.Prioritised()))
  def test_nothing_is_drawn_from_an_empty_replay(self, selector):
    replay = self._replay(selector=selector(), steps=0)
    with self.assertRaisesRegex(ValueError, 'The replay is empty'):
      replay.draw(1, 2)

  def test_seed(self):
    draws = [self._replay(seed).draw(2, 50).positions for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    self.assertTrue(np.any(draws[0] != draws[2]))


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/views',
         catches='test_a_stream_that_begins_anew_does_not_join_up', rows=(
        ('gamma instead of gamma^k', 'powers[length])', 'powers[1])'),
        ('gamma^n instead of gamma^k', 'powers[length])', 'powers[-1])'),
        ('rewards not discounted', 'rewards * powers[:-1]', 'rewards'),
        ('observation after the first step',
         'store.observations(windows, windows.length))',
         'store.observations(windows, 1))'),
    )),
    dict(file='replay/views',
         catches='test_rewards_are_clipped_before_they_are_summed', rows=(
        ('rewards are scaled before they are clipped',
         'self.reward_scale * clip_rewards(rewards, self.reward_clipping)',
         'clip_rewards(self.reward_scale * rewards, self.reward_clipping)'),
        ('rewards discounted once too often', 'rewards * powers[:-1]',
         'rewards * powers[1:]'),
    )),
    dict(file='replay/steps', catches='test_against_a_list_of_episodes', rows=(
        ('windows go on after a time limit',
         'self._flags[slots] & (TERMINATED | TRUNCATED) != 0',
         'self._flags[slots] & TERMINATED != 0'),
    )),
    dict(file='replay/steps',
         catches='test_a_stream_that_begins_anew_does_not_join_up', rows=(
        ('windows stop one step late', 'is_cut.argmax(1) + 1, num_steps)',
         'np.minimum(is_cut.argmax(1) + 2, num_steps), num_steps)'),
        ('windows go on after an end',
         'self._flags[slots] & (TERMINATED | TRUNCATED) != 0',
         'self._flags[slots] & TRUNCATED != 0'),
        ('the newest step is drawn', 'count - 1  # Nothing follows',
         'count  # Nothing follows'),
        ('what is before a gap is drawn',
         '\n'
         '            & (after & NO_STEP == 0))',
         ')'),
        ('streams that begin anew join up',
         'joins = self._joins[stream] and env_outputs.info.episode_step[0, '
         'column] > 0',
         'joins = self._joins[stream]'),
        ('time limits are ends, too', 'TERMINATED * (done & ~truncated)',
         'TERMINATED * done'),
        ('windows beyond the newest step',
         'np.where(limit < 0, self.end[stream], limit)',
         'np.where(limit < 0, self.end[stream] + 1, limit)'),
        ('windows go on in the next game',
         'length = np.minimum(to_cut, limit - time)', 'length = to_cut'),
        ('stacks begin anew at a lost life',
         'columns.flags & (NEW_GAME | NO_STEP)',
         'columns.flags & (NEW_GAME | NO_STEP | TERMINATED)'),
    )),
    dict(file='replay/steps',
         catches='test_observations_of_dictionaries_and_actions_of_parts',
         rows=(
        ('first observation of the next game instead of the last',
         '(steps > 0))', '(steps > 10**9))'),
    )),
    dict(file='replay/steps',
         catches='test_actions_are_stored_as_they_are_executed', rows=(
        ('action of the step before',
         'self._action.take(windows.slots[:, 0], 0)',
         'self._action.take(windows.slots[:, 0] - 1, 0)'),
        ('actions are stored as they were chosen',
         'np.clip(actions, -1.0, 1.0)  # As', 'actions  # As'),
    )),
    dict(file='replay/steps',
         catches='test_rewards_are_clipped_before_they_are_summed', rows=(
        ('reward of the step before',
         'self._reward[windows.slots], np.float32(0)',
         'self._reward[windows.slots - 1], np.float32(0)'),
    )),
    dict(file='replay/steps',
         catches='test_what_must_not_be_read_is_not', rows=(
        ('the overwritten step is drawn', 'max(count - self.length, 0)',
         'max(count - self.length - 1, 0)'),
        ('the oldest step is not drawn', 'max(count - self.length, 0)',
         'max(count - self.length + 1, 0)'),
    )),
    dict(file='replay/steps', catches='test_a_stream_that_is_seen_late', rows=(
        ('entry 0 of each unroll is added', 'slice(1 if joins else 0, None)',
         'slice(0, None)'),
    )),
)


if __name__ == '__main__':
  absltest.main()
