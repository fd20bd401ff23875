# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of sequences of steps, against plain lists of episodes."""

import os
import shutil
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import replay_logs
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.replay import saving
from scalable_agent.replay import texts

_STATE = (np.zeros([1, 2], np.float32),)


def _unroll(log, stream, start, length):
  """Returns steps of a log; the state is the number of the observation."""
  unroll = replay_logs.unroll({stream: log}, [stream], start, length)
  state = log[start].observation + np.array([[0, .25]], np.float32)
  return unroll._replace(start=unroll.start._replace(agent_state=(state,)))


def _starts(length, num_streams, num_entries, unroll_length):
  store = replay_lib.StepStore(
      replay_logs.SPEC, num_streams * length, num_streams)
  return replay_lib.Starts(store, _STATE, num_entries, unroll_length)


def _entries(steps, start, num_entries):
  """Returns pairs: the index of a step, and whether its last observation."""
  entries = []
  for i in range(start, len(steps)):
    step = steps[i]
    if i > start and step.truncated and step.episode_end:
      entries.append((i, True))
    entries.append((i, False))
  return entries[:num_entries]


def _expected(steps, begins, start, burn_in, num_learned, n, discount=.5):
  """Returns the sequence from the step `start`, straight from its meaning.

  `begins` are the indices of steps that nothing led to.
  """
  entries = _entries(steps, start, burn_in + num_learned + 1)
  seen = [(step.last_observation if is_last else step.observation, step.action,
           step.reward, step.done and not is_last)
          for i, is_last in entries for step in [steps[i]]]
  targets = []
  for d in range(burn_in, burn_in + num_learned):
    i, is_last = entries[d]
    if is_last or i + 1 in begins:
      targets.append((0., 0., d + 1 - burn_in, 0.))
      continue
    reward, factor, k = 0., 1., 0
    while (k < n and d + k < len(entries) - 1 and i + k + 1 not in begins):
      step = steps[i + k + 1]
      reward += factor * step.reward
      factor *= discount
      k += 1
      if step.done:
        factor *= step.truncated
        break
    targets.append((reward, factor, d + k - burn_in, 1.))
  return seen, targets


def _found(sequence, column):
  """Returns a column in the form of `_expected`, and its state."""
  seen = sequence.env_outputs
  entries = [(float(o[0]), int(a), float(r), bool(d)) for o, a, r, d in zip(
      seen.observation[:, column], sequence.actions[:, column],
      seen.reward[:, column], seen.done[:, column], strict=True)]
  targets = [tuple(map(float, row)) for row in zip(
      *[x[:, column] for x in sequence[3:]], strict=True)]
  return entries, targets, sequence.state[0][column].tolist()


def _alive(starts):
  numbers = np.arange(int(starts.end.max(initial=0)) + 9)
  positions = (numbers[:, None] * starts.num_streams
               + np.arange(starts.num_streams)).ravel()
  return positions[starts.alive(positions)]


class SequencesTest(parameterized.TestCase):

  @hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
  @hypothesis.given(
      seed=st.integers(0, 2**32 - 1), num_streams=st.integers(1, 3),
      unroll_length=st.integers(1, 7), burn_in=st.integers(0, 4),
      num_learned=st.integers(1, 6), n=st.integers(1, 5),
      length=st.integers(9, 40),
      end=st.sampled_from([0.0, 0.1, 0.3, 0.8, 1.0]))
  def test_against_a_list_of_episodes(
      self, seed, num_streams, unroll_length, burn_in, num_learned, n, length,
      end):
    rng = np.random.default_rng(seed)
    num_entries = burn_in + num_learned + 1
    starts = _starts(length, num_streams, num_entries, unroll_length)
    alive, expected = set(), {}
    for stream in range(num_streams):
      steps, begins, starting = [], set(), []
      for _ in range(rng.integers(1, 4)):  # Restarts.
        size = int(rng.integers(1, 25 // unroll_length + 2)) * unroll_length
        log = replay_logs.random_log(rng, stream, size, end)
        for step in log:  # No number occurs twice.
          step.observation += len(steps)
          step.last_observation += len(steps)
        begins.add(len(steps))
        for start in range(0, size, unroll_length):
          changes = starts.add(_unroll(log, stream, start, unroll_length))
          alive = alive - set(changes.removed) | set(changes.added)
          starting.append(len(steps) + start)
        steps += log
      oldest = max(len(steps) - length, 0)
      for k, start in enumerate(starting):
        if oldest <= start <= len(steps) - num_entries:
          expected[k * num_streams + stream] = (
              *_expected(steps, begins, start, burn_in, num_learned, n),
              [steps[start].observation, steps[start].observation + .25])
    self.assertEqual(set(_alive(starts)), set(expected))
    self.assertEqual(alive, set(expected))
    if not expected:
      return
    slots = starts.slots(np.array(sorted(expected)))
    self.assertLen(set(slots), len(expected))
    self.assertLess(slots.max(), starts.num_slots)
    view = replay_lib.Sequences(replay_lib.NStep(.5, n), burn_in)
    found = view(starts, np.array(list(expected)), rng)
    for column, (position, of_column) in enumerate(expected.items()):
      np.testing.assert_equal(_found(found, column), of_column,
                              err_msg=f'{position}')

  # The numbers of the design: two games end, at a terminal state and at a time
  # limit.
  @parameterized.parameters(
      (3, 9, [5.23, 4.7, 3, 13.36, 10.4, 6, 0, 7],
       [0, 0, 0, .729, .81, .9, 0, .9],
       [None, None, None, 6, 6, 6, None, 8]),
      (1, 9, [1, 2, 3, 4, 5, 6, 0, 7], [.9, .9, 0, .9, .9, .9, 0, .9],
       [1, 2, None, 4, 5, 6, None, 8]),
      (3, 6, [5.23, 4.7, 3, 8.5, 5], [0, 0, 0, .81, .9],
       [None, None, None, 5, 5]))
  def test_known_sums(self, n, num_entries, rewards, discounts, following):
    log = [replay_logs.Step(float(t), t, float(t), episode_step=t)
           for t in range(8)]
    log[0].done = log[3].done = log[3].episode_end = True
    log[6].done = log[6].episode_end = log[6].truncated = True
    log[6].last_observation = 60.
    starts = _starts(20, 1, num_entries, 7)
    starts.add(_unroll(log, 0, 0, 7))
    found = replay_lib.Sequences(replay_lib.NStep(.9, n), 0)(
        starts, np.array([0]), np.random.default_rng(0))
    entries, targets, _ = _found(found, 0)
    self.assertEqual(
        entries, [(0, 0, 0, True), (1, 1, 1, False), (2, 2, 2, False),
                  (3, 3, 3, True), (4, 4, 4, False), (5, 5, 5, False),
                  (60, 6, 6, False), (6, 6, 6, True), (7, 7, 7, False)
                  ][:num_entries])
    np.testing.assert_allclose(np.array(targets)[:, :2].T, [rewards, discounts],
                               rtol=1e-6)
    for found_next, wanted in zip(found.next[:, 0], following, strict=True):
      self.assertIn(wanted, (found_next, None))
    self.assertEqual(
        found.known[:, 0].tolist(), [t != 6 for t in range(num_entries - 1)])

  def test_stacks_of_frames_with_last_observations(self):
    log = replay_logs.random_log(np.random.default_rng(3), 0, 60, .3)

    def stack(i, is_last=False):
      """Returns the frames up to step `i`; zeros before the game."""
      frames = [log[i].last_observation if is_last else log[i].observation]
      starts = not is_last and (log[i].episode_end or i == 0)
      while len(frames) < 3 and not starts:
        i -= 1
        frames.insert(0, log[i].observation)
        starts = log[i].episode_end or i == 0
      return np.array([0] * (3 - len(frames)) + frames, np.float32)[:, None]

    store = replay_lib.StepStore(replay_logs.SPEC._replace(
        observation=structs.ArraySpec((3, 1), np.dtype(np.float32))),
                                 40, 1, stacked=True)
    starts = replay_lib.Starts(store, _STATE, 9, 4)
    for start in range(0, 60, 4):
      unroll = _unroll(log, 0, start, 4)
      env_outputs = unroll.steps.env_outputs._replace(observation=np.array(
          [[stack(i)] for i in range(start, start + 5)]))
      starts.add(unroll._replace(
          steps=unroll.steps._replace(env_outputs=env_outputs),
          last_observations=tuple(
              last._replace(observation=stack(start + last.time, True))
              for last in unroll.last_observations)))
    positions = _alive(starts)
    found = replay_lib.Sequences(replay_lib.NStep(.5), 2)(
        starts, positions, np.random.default_rng(0))
    num_last = 0
    for column, position in enumerate(positions):
      entries = _entries(log, 4 * int(position), 9)
      num_last += sum(is_last for _, is_last in entries)
      np.testing.assert_array_equal(
          found.env_outputs.observation[:, column],
          [stack(*entry) for entry in entries])
    self.assertGreater(num_last, 5)

  def test_what_must_not_be_read_is_not(self):
    starts = _starts(12, 2, 6, 2)
    log = replay_logs.random_log(np.random.default_rng(1), 0, 30, .2)
    log[0].reward = 0.
    starts.add(_unroll(log, 0, 0, 2))
    for start in range(2, 30, 2):
      starts.add(_unroll(log, 0, start, 2))
    positions = _alive(starts)
    self.assertLen(positions, 3)
    _, times, _ = starts.read(positions)
    read = {int(t) % 12 for time in times for t in range(time, time + 6)}
    unread = np.array([slot for slot in range(24) if slot not in read])
    starts.steps._reward[unread] = np.nan
    starts.steps._observation[unread] = np.nan
    found = replay_lib.Sequences(replay_lib.NStep(.9, 4), 1)(
        starts, positions, np.random.default_rng(0))
    for array in (found.reward, found.env_outputs.reward,
                  found.env_outputs.observation):
      self.assertTrue(np.isfinite(array).all())

  def test_a_draw_leaves_the_stored_states_alone(self):
    starts = _starts(20, 1, 4, 2)
    log = replay_logs.random_log(np.random.default_rng(1), 0, 10, .2)
    for start in range(0, 10, 2):
      starts.add(_unroll(log, 0, start, 2))
    view = replay_lib.Sequences(replay_lib.NStep(.9), 1)
    draw = lambda: view(starts, np.array([1, 2]), np.random.default_rng(0))
    before = draw()
    draw().state[0][:] = -1
    np.testing.assert_array_equal(draw().state[0], before.state[0])

  def test_several_batches_have_an_axis_in_front(self):
    starts = _starts(40, 1, 5, 3)
    log = replay_logs.random_log(np.random.default_rng(1), 0, 30, .2)
    for start in range(0, 30, 3):
      starts.add(_unroll(log, 0, start, 3))
    view = replay_lib.Sequences(replay_lib.NStep(.9, 2), 1)
    replay = replay_lib.Replay(starts, replay_lib.Uniform(), view, 1)
    sample = replay.draw(3, 2)
    self.assertEqual(sample.positions.shape, (3, 2))
    for k, positions in enumerate(sample.positions):
      expected = view(starts, positions, np.random.default_rng(0))
      for b in range(2):
        part = structs.Sequence(
            sample.data.env_outputs._replace(
                reward=sample.data.env_outputs.reward[k],
                done=sample.data.env_outputs.done[k],
                observation=sample.data.env_outputs.observation[k]),
            sample.data.actions[k], (sample.data.state[0][k],),
            *[x[k] for x in sample.data[3:]])
        np.testing.assert_equal(_found(part, b), _found(expected, b))


def _words(unroll):
  """Returns the unroll with instructions, which begin with the observation."""
  text = lambda observation: {
      'seen': observation, 'instruction': np.array(
          [b'go to %d' % x for x in observation[..., 0].ravel() // 4],
          object).reshape(observation.shape[:-1])}
  env_outputs = unroll.steps.env_outputs
  return unroll._replace(
      steps=unroll.steps._replace(env_outputs=env_outputs._replace(
          observation=text(env_outputs.observation))),
      last_observations=tuple(
          last._replace(observation=text(last.observation))
          for last in unroll.last_observations))


_WORDS_SPEC = replay_logs.SPEC._replace(observation={
    'seen': replay_logs.SPEC.observation,
    'instruction': structs.ArraySpec((), np.dtype(object))})


class TextsTest(absltest.TestCase):

  @mock.patch.object(texts, '_LEAST_FORGET', 5)
  def test_old_texts_are_forgotten_and_all_others_stay(self):
    store = replay_lib.StepStore(_WORDS_SPEC, 2 * 30, 2)
    replay = replay_lib.Replay(
        store, replay_lib.Uniform(), replay_lib.NStep(.5, 3), 1)
    logs = [replay_logs.random_log(np.random.default_rng(s), s, 900, .2)
            for s in range(2)]
    for start in range(0, 900, 3):
      for stream in range(2):
        replay.add(_words(replay_logs.unroll(logs, [stream], start, 3)))
      if start > 9:
        data = replay.draw(1, 20).data
        for seen in data.observation, data.next_observation:
          self.assertEqual(
              seen['instruction'].ravel().tolist(),
              [b'go to %d' % x for x in seen['seen'][..., 0].ravel() // 4])
    self.assertLess(len(store._texts._table), 100)  # Of about 450.


class SavingTest(parameterized.TestCase):

  def _make(self, selector=replay_lib.Uniform, num_entries=6, seed=1,
            unroll_length=3):
    store = replay_lib.StepStore(_WORDS_SPEC, 2 * 30, 2)
    return replay_lib.Replay(
        replay_lib.Starts(store, _STATE, num_entries, unroll_length),
        selector(), replay_lib.Sequences(replay_lib.NStep(.5, 3), 2), seed)

  def _assert_equal(self, one, other):
    for _ in range(2):
      drawn = [replay.draw(2, 20) for replay in (one, other)]
      np.testing.assert_equal(*[sample._asdict() for sample in drawn])
      for replay in (one, other):
        replay.update(drawn[0].positions, drawn[0].data.reward[:, 0])

  @parameterized.product(
      selector=[replay_lib.Uniform, replay_lib.Prioritised], every=[3, 9, 36])
  @mock.patch.object(saving, '_SEGMENT_STEPS', 7)
  def test_a_restored_replay_draws_the_same(self, selector, every):
    directory = self.create_tempdir().full_path
    logs = [replay_logs.random_log(np.random.default_rng(s), s, 72, .2)
            for s in range(2)]
    replay = self._make(selector)
    for start in range(0, 72, 3):
      for stream in range(2 if start % 2 else 1):  # One stream is behind.
        offset = start // 2 - start // 2 % 3 if stream else start
        if not stream or offset % 3 == 0 and offset == 3 * (start // 6):
          replay.add(_words(_unroll(logs[stream], stream, offset, 3)))
      if (start + 3) % every == 0:
        replay.save(directory, {'num_steps': start})
        copy = self._make(selector, seed=2)
        own = os.path.join(self.create_tempdir().full_path, 'copy')
        shutil.copytree(directory, own)
        self.assertEqual(copy.load(own), {'num_steps': start})
        np.testing.assert_array_equal(_alive(copy.store), _alive(replay.store))
        if replay.num_items:
          self._assert_equal(copy, replay)
    data = replay.draw(1, 20).data
    seen = data.env_outputs.observation
    self.assertEqual(
        seen['instruction'].ravel().tolist(),
        [b'go to %d' % x for x in seen['seen'][..., 0].ravel() // 4])
    # The next part begins anew.
    for part in (replay, copy):
      part.add(_words(_unroll(replay_logs.random_log(
          np.random.default_rng(7), 0, 12, .2), 0, 0, 12)))
    copy.save(own, {})
    again = self._make(selector, seed=3)
    again.load(own)
    self._assert_equal(again, copy)

  @parameterized.product(
      selector=[replay_lib.Uniform, replay_lib.Prioritised],
      unroll_length=[1, 12])
  def test_another_unroll_length_keeps_all_starts(
      self, selector, unroll_length):
    directory = self.create_tempdir().full_path
    replay = self._make(selector)
    logs = [replay_logs.random_log(np.random.default_rng(s), s, 72, .2)
            for s in range(2)]
    add = lambda replay, start, length: [
        replay.add(_words(_unroll(log, stream, start, length)))
        for stream, log in enumerate(logs)]
    for start in range(0, 48, 3):
      add(replay, start, 3)
      if start == 21:
        replay.save(directory, {})
    for _ in range(3):
      sample = replay.draw(1, 8)
      replay.update(sample.positions, np.arange(8))
    replay.save(directory, {})
    copy = self._make(selector, unroll_length=unroll_length)
    copy.load(directory)
    positions = _alive(replay.store)
    self.assertLen(positions, 2 * 8)
    np.testing.assert_array_equal(_alive(copy.store), positions)
    rng = np.random.default_rng(0)
    one, other = (r._view(r.store, positions, rng) for r in (replay, copy))
    np.testing.assert_equal(one._asdict(), other._asdict())
    if selector is replay_lib.Prioritised:
      of_starts = lambda r: r.selector.state['priorities'][
          r.store.slots(positions)]
      self.assertGreater(len(set(of_starts(replay))), 3)
      np.testing.assert_array_equal(of_starts(copy), of_starts(replay))
    # New starts join the old ones, at their own distance.
    for start in range(48, 72, unroll_length):
      add(copy, start, unroll_length)
    stream, times, _ = copy.store.read(_alive(copy.store))
    first = int(copy.store.steps.first[0])
    last = int(copy.store.steps.count[0]) - 6
    self.assertEqual(
        set(times[stream == 0].tolist()),
        {t for t in (*range(0, 48, 3), *range(49, 73, unroll_length))
         if first <= t <= last})  # A gap is one slot more.
    copy.draw(2, 20)

  def test_starts_of_two_unroll_lengths_in_files_written_anew(self):
    directory = self.create_tempdir().full_path
    logs = [replay_logs.random_log(np.random.default_rng(s), s, 120, .2)
            for s in range(2)]
    add = lambda replay, stream, start, length: replay.add(
        _words(_unroll(logs[stream], stream, start, length)))
    replay = self._make(unroll_length=2)
    for k in range(15):  # Stream 1 is slow, so all segments are needed.
      for start in range(6 * k, 6 * k + 6, 2):
        add(replay, 0, start, 2)
      add(replay, 1, 2 * k, 2)
      replay.save(directory, {})
    num_items = replay.num_items
    replay = self._make(unroll_length=10)
    replay.load(directory)
    self.assertEqual(replay.num_items, num_items)
    num_files = len(os.listdir(directory))
    for start in 90, 100:
      add(replay, 0, start, 10)
      replay.save(directory, {})
    self.assertLess(len(os.listdir(directory)), num_files)  # Written anew.
    copy = self._make(unroll_length=10)
    copy.load(directory)
    np.testing.assert_array_equal(_alive(copy.store), _alive(replay.store))
    self.assertEqual(copy.num_items, replay.num_items)
    self._assert_equal(copy, replay)

  def test_another_length_is_refused(self):
    directory = self.create_tempdir().full_path
    self._make().save(directory, {})
    with self.assertRaisesRegex(
        errors.CheckpointError, 'has a replay of .*sequences of 6 entries .*'
        r'from states \[2\], and not of .*sequences of 7 entries'):
      self._make(num_entries=7).load(directory)


MUTATIONS = (
    dict(file='replay/texts',
         catches='test_old_texts_are_forgotten_and_all_others_stay', rows=(
        ('numbers stay',
         'array[...] = new_numbers[array]',
         'pass'),
        ('nothing is forgotten',
         'if len(self._table) < self._next_forget:',
         'if True:'),
    )),
    dict(file='replay/steps',
         catches='test_old_texts_are_forgotten_and_all_others_stay', rows=(
        ('last observations are left out',
         'forget(self._observation, self._games.last)',
         'forget(self._observation)'),
    )),
    dict(file='replay/starts',
         catches='test_against_a_list_of_episodes', rows=(
        ('a start one step late',
         'stream, self.steps.count[stream] - num_entries,',
         'stream, self.steps.count[stream] - num_entries + 1,'),
        ('whole one step early',
         'times, self.steps.count[stream] - self.length, ',
         'times, self.steps.count[stream] - self.length + 1, '),
        ('whole one step late',
         "self.length, 'right')",
         "self.length, 'left')"),
        ('drawn although overwritten',
         'times, self.steps.first[stream])',
         'times, self.steps.first[stream] - 1)'),
        ('removed are too few',
         'positions(first, self.first[stream])))',
         'positions(end, self.first[stream])))'),
        ('added again',
         'positions(max(end, self.first[stream]), self.end[stream]),',
         'positions(first, self.end[stream]),'),
        ('state of another start',
         'index = stream, number % self._ring\n',
         'index = stream, (number + 1) % self._ring\n'),
        ('slots without streams',
         'return stream * self._ring + number % self._ring',
         'return number % self._ring'),
    )),
    dict(file='replay/sequences',
         catches='test_against_a_list_of_episodes', rows=(
        ('last observation of the game after',
         'place(time - is_last).ravel(), ',
         'place(time).ravel(), '),
        ('observation of the reset as the last',
         'is_last.ravel().astype(np.int64)))',
         '0))'),
        ('no reset at a terminal state',
         '(flags & (steps.TERMINATED | steps.TRUNCATED',
         '(flags & (steps.TRUNCATED'),
        ('no reset at a time limit',
         '(flags & (steps.TERMINATED | steps.TRUNCATED',
         '(flags & (steps.TERMINATED'),
        ('no reset at a gap',
         '| steps.NO_STEP) != 0\n',
         ') != 0\n'),
        ('reset of a last observation',
         ') & ~is_last\n    env',
         ')\n    env'),
        ('targets one entry late',
         'learned = slice(self.burn_in * size, (num_entries - 1) * size)',
         'learned = slice((self.burn_in + 1) * size, num_entries * size)'),
        ('last observations are learned',
         'known = ~is_last[self.burn_in:-1] & (',
         'known = ('),
        ('gaps one step early',
         'flags[self.burn_in + 1:] & steps.NO_STEP == 0)',
         'flags[self.burn_in:-1] & steps.NO_STEP == 0)'),
        ('windows beyond the last entry',
         'num_entries - 1 - entry), 0)',
         'num_entries - entry), 0)'),
        ('cut windows are terminated',
         'windows.terminated & (length.ravel() == windows.length))',
         'windows.terminated)'),
        ('next counts the burn-in',
         '(entry - self.burn_in + np.maximum(length, 1))',
         '(entry + np.maximum(length, 1))'),
        ('nothing follows an unknown step',
         'np.maximum(length, 1))',
         'length)'),
        ('unknown steps have targets',
         'np.where(known, a.reshape(-1, size), np.float32(0))',
         'a.reshape(-1, size)'),
        ('each end has a last observation',
         'flags & both == both',
         'flags & both != 0'),
        ('a last observation within a game',
         'both = steps.TRUNCATED | steps.NEW_GAME',
         'both = steps.TRUNCATED'),
        ('a last observation before the start',
         'has_last[0] = False',
         'pass'),
        ('last observations after the reset',
         '+ np.cumsum(has_last, 0)',
         '+ np.cumsum(has_last, 0) - has_last'),
        ('a last observation that ends the sequence left out',
         'has_last & (entry <= len(flags))',
         'has_last & (entry < len(flags))'),
        ('flags of slots taken for entries',
         'flags = np.take_along_axis(flags, offset, 0)\n',
         '\n'),
    )),
    dict(file='replay/steps',
         catches='test_stacks_of_frames_with_last_observations', rows=(
        ('frames of the game before',
         'found[times < self._games.start[windows.game][:, None]] = 0',
         'pass'),
        ('last observation under the frames',
         'found[ended, -1] = last[rows]',
         'found[ended, 0] = last[rows]'),
    )),
    dict(file='replay/sequences',
         catches='test_known_sums', rows=(
        ('no last observations',
         'flags & both == both',
         'flags & both > both'),
        ('resets one entry early',
         'flags = np.take_along_axis(flags, offset, 0)\n',
         'flags = np.take_along_axis(flags, np.minimum(offset + 1, '
         'len(flags) - 1), 0)\n'),
    )),
    dict(file='replay/replay',
         catches='test_several_batches_have_an_axis_in_front', rows=(
        ('batches interleaved',
         'a.reshape(len(a), num_batches, -1, *a.shape[2:]), 1, 0))',
         'a.reshape(len(a), -1, num_batches, *a.shape[2:]), 2, 0))'),
        ('states interleaved',
         'state=tree.map_structure(shaped, data.state))',
         'state=tree.map_structure(lambda a: np.moveaxis(a.reshape(-1, '
         'num_batches, *a.shape[1:]), 1, 0), data.state))'),
    )),
    dict(file='replay/starts',
         catches='test_a_restored_replay_draws_the_same', rows=(
        ('the first start of a segment left out',
         'times >= start[stream] - 1',
         'times >= start[stream]'),
        ('starts counted anew',
         "self._count[stream] = arrays['starts/number'][row]",
         'pass'),
        ('starts of a resume cannot be drawn',
         'for stream in range(self.num_streams):\n      self._find_whole',
         'for stream in range(1):\n      self._find_whole'),
    )),
    dict(file='replay/starts',
         catches='test_another_unroll_length_keeps_all_starts', rows=(
        ('a ring for the new unroll length only',
         'int(np.min(distances, initial=self._unroll_length))',
         'self._unroll_length'),
        ('priorities stay in their slots',
         'values[stream * length + number % length])',
         'values[self.slots(number * self.num_streams + stream) '
         '% len(values)])'),
    )),
    dict(file='replay/starts',
         catches='test_starts_of_two_unroll_lengths_in_files_written_anew',
         rows=(
        ('distances between starts of two streams',
         'np.diff(time)[np.diff(stream) == 0]',
         'np.diff(time)'),
    )),
    dict(file='replay/starts',
         catches='test_another_length_is_refused', rows=(
        ('form without the length',
         'sequences of {self.length} entries',
         'sequences'),
    )),
    dict(file='replay/saving',
         catches='test_a_restored_replay_draws_the_same', rows=(
        ('starts not saved',
         '**(starts.segment(start, end) if starts else {})',
         '**{}'),
        ('starts not restored',
         'if starts and of_starts:',
         'if False:'),
    )),
    dict(file='replay/texts',
         catches='test_a_restored_replay_draws_the_same', rows=(
        ('all texts are one',
         'texts.ravel()], np.int32)',
         'texts.ravel()], np.int32) * 0'),
        ('only one text is kept',
         'if number == len(self._table):',
         'if number == len(self._table) < 2:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
