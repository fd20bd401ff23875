# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that stacks of frames are rebuilt as ALE made them."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.settings import sections

_OUTPUT = structs.AgentOutput(
    structs.ArraySpec((), np.dtype(np.int32)),
    structs.ArraySpec((1,), np.dtype(np.float32)),
    structs.ArraySpec((), np.dtype(np.float32)))


def _play(env, num_steps, rng):
  """Returns copies of the `StepOutput`s of random steps, and the actions."""
  def copy(step):
    arrays = [np.array(a) for a in step._replace(info=())]
    return structs.StepOutput(*arrays)._replace(
        info=structs.StepOutputInfo(*map(np.array, step.info[:3])))
  [num_actions] = env.spec.action.num_values
  steps, actions = [copy(env.initial())], [np.zeros(env.num_envs, np.int32)]
  for _ in range(num_steps):
    actions.append(rng.integers(num_actions, size=env.num_envs, dtype=np.int32))
    steps.append(copy(env.step(actions[-1])))
  return steps, actions


def _unroll(env, steps, actions, start, length):
  unroll = unrolls.allocate(
      length, env.level_names, env.spec.observation, _OUTPUT, ())
  lasts = []
  for i in range(length + 1):
    step = steps[start + i]
    unrolls.write(
        unroll, i, step, structs.AgentOutput(
            actions[start + i], np.zeros([env.num_envs, 1]), 0), 0)
    if i:
      lasts += unrolls.last_observations(i, step)
  return unroll._replace(last_observations=tuple(lasts))


@pytest.mark.slow
class FramesTest(parameterized.TestCase):

  def test_stacks_are_those_of_ale(self, num_steps=3):
    pytest.importorskip('ale_py')
    settings = sections.EnvironmentSettings(
        life_loss_ends_episode=True, max_episode_frames=800)
    total, length = 2000, 500 // 2
    [env] = environments.make_groups(
        ['ALE/Breakout-v5'] * 2, [1, 2], settings, 1)
    with env:
      steps, actions = _play(env, total, np.random.default_rng(0))
      store = replay_lib.StepStore(env.spec, 2 * length, 2, stacked=True)
      seen = np.zeros([3], int)
      for start in range(0, total, 20):
        store.add(_unroll(env, steps, actions, start, 20))
        if start % 200 == 180:
          seen += self._check(store, steps, actions, start + 20, num_steps)
    # Lost lives, ends of games, and limits of time in the windows.
    self.assertGreater(min(seen), 5)

  def _check(self, store, steps, actions, newest, num_steps):
    times = np.arange(newest + 1)
    positions = (2 * times[:, None] + np.arange(2)).ravel()
    positions = positions[store.alive(positions)]
    full = newest >= store.length
    self.assertLen(positions, 2 * (store.length - 4 if full else newest))
    found = replay_lib.NStep(0.5, num_steps)(
        store, positions, np.random.default_rng(0))
    seen = np.zeros([3], int)
    for i, position in enumerate(positions):
      time, env = divmod(position, 2)
      end = time + 1
      while (not steps[end].done[env] and end < newest
             and end < time + num_steps):
        end += 1
      after = steps[end]
      game_over = after.info.episode_end[env]
      seen += (after.done[env] and not game_over,
               game_over and not after.truncated[env],
               after.truncated[env])
      np.testing.assert_array_equal(
          found.observation[i], steps[time].observation[env])
      np.testing.assert_array_equal(
          found.next_observation[i],
          (after.last_observation if game_over else after.observation)[env])
      self.assertEqual(found.action[i], actions[time + 1][env])
      self.assertEqual(
          found.discount[i],
          0 if after.done[env] and not after.truncated[env]
          else 0.5 ** (end - time))
    return seen


class MadeUpFramesTest(parameterized.TestCase):
  """Tests with stacks of three frames of one number."""

  def _add(self, store, stacks, lasts, lost_lives=()):
    """Adds stacks `[N, 3]`; `lasts` has last stacks by the time of the end."""
    count = len(stacks)
    nothing = np.zeros([count, 1], np.float32)
    flag = lambda times: np.isin(np.arange(count), list(times))[:, None]
    store.add(structs.Unroll(
        structs.Steps(
            structs.StepOutput(
                nothing, structs.StepOutputInfo(
                    nothing, np.arange(count)[:, None], flag(lasts)),
                flag({0, *lasts, *lost_lives}),
                np.array(stacks, np.uint8)[:, None, :, None], flag(lasts)),
            structs.AgentOutput(nothing, nothing, nothing), nothing),
        structs.Start([''], np.array([0]), (), np.zeros([1])),
        tuple(structs.LastObservation(time, 0, np.array(last)[:, None])
              for time, last in lasts.items())))

  def _store(self, length):
    return replay_lib.StepStore(
        structs.EnvironmentSpec(
            structs.ArraySpec((3, 1), np.dtype(np.uint8)),
            structs.ActionSpec(num_values=(2,)), 1), length, 1, stacked=True)

  def test_what_a_stack_goes_on_over(self):
    # Frames 1 to 9; step 3 loses a life, step 6 begins a game.
    store = self._store(13)
    stacks = [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6],
              [0, 0, 7], [0, 7, 8], [7, 8, 9]]
    last = [5, 6, 99]
    self._add(store, stacks, {6: last}, [3])
    found = replay_lib.NStep(1.0, 2)(
        store, np.arange(8), np.random.default_rng(0))
    np.testing.assert_array_equal(found.observation[..., 0], stacks[:-1])
    np.testing.assert_array_equal(
        found.next_observation[..., 0],
        [stacks[2], stacks[3], stacks[3], stacks[5], last, last, stacks[8],
         stacks[8]])
    np.testing.assert_array_equal(found.discount, [1, 0, 0, 1, 1, 1, 1, 1])

  def test_a_ring_that_starts_over(self):
    rng = np.random.default_rng(1)
    stacks, lasts, stack = [], {}, [0, 0, 0]
    for time in range(200):
      if time and rng.random() < 0.2:
        lasts[time] = [*stack[1:], 255]
        stack = [0, 0, time + 1]
      else:
        stack = [*stack[1:], time + 1]
      stacks.append(stack)
    for count in range(60, 190, 7):
      store = self._store(60)
      self._add(store, stacks[:30],
                {t: last for t, last in lasts.items() if t < 30})
      for start in range(29, count - 1, 10):
        end = min(start + 11, count)
        part = {t - start: last for t, last in lasts.items() if
                start < t < end}
        # Not the first entry of the stream: see the episode's step.
        self._add(_Shifted(store), stacks[start:end], part)
      newest = int(store.count[0])
      times = np.arange(newest)[store.alive(np.arange(newest))]
      self.assertEqual(
          list(times), list(range(newest - 58 if newest > 60 else 0,
                                  newest - 1)))
      found = replay_lib.NStep(1.0)(store, times, np.random.default_rng(0))
      np.testing.assert_array_equal(
          found.observation[..., 0], [stacks[t] for t in times])
      np.testing.assert_array_equal(
          found.next_observation[..., 0],
          [lasts.get(t + 1, stacks[t + 1]) for t in times])


class _Shifted:
  """Adds unrolls that go on with a stream."""

  def __init__(self, store):
    self._store = store

  def add(self, unroll):
    unroll.steps.env_outputs.info.episode_step[...] += 1
    self._store.add(unroll)


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/steps', catches='test_a_ring_that_starts_over', rows=(
        ('the ring starts over too early',
         'time: np.ndarray) -> np.ndarray:\n'
         '    return stream * self.length + time % self.length',
         'time: np.ndarray) -> np.ndarray:\n'
         '    return stream * self.length + time % (self.length - 1)'),
        ('the first stacks have frames of other times',
         '(self._num_frames - 1) * (oldest > 0)', '0 * (oldest > 0)'),
        ('stacks go on over the start of a game',
         'found[times < self._games.start[windows.game][:, None]] = 0',
         'pass'),
    )),
    dict(file='replay/steps', catches='test_what_a_stack_goes_on_over', rows=(
        ('last stacks end with a frame of the next game',
         'found[ended, -1] = last[rows]', 'pass'),
        ('stacks with the newest frame first',
         'np.arange(self._num_frames - 1, -1, -1)',
         'np.arange(self._num_frames)'),
        ('the oldest frame of each stack is stored',
         '(lambda a: a[:, -1]) if self._stacked',
         '(lambda a: a[:, 0]) if self._stacked'),
    )),
)


if __name__ == '__main__':
  absltest.main()
