# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the files of a replay of transitions."""

import errno
import os
import shutil
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import replay_logs
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.replay import saving

_LENGTH = 20
_STEPS = 120


def _make(selector=None, spec=replay_logs.SPEC, length=_LENGTH, stacked=False,
          seed=1):
  return replay_lib.Replay(
      replay_lib.StepStore(spec, 2 * length, 2, stacked),
      selector or replay_lib.Recent(
          replay_lib.Prioritised(), .99, 5, round_length=7),
      replay_lib.NStep(0.5, 3), seed)


def _add(replay, logs, start, length=5):
  """Adds steps; stream 1 gets only half of them."""
  environments = [0, 1] if start % 10 == 0 else [0]
  for environment in environments:
    offset = start if environment == 0 else start // 2
    replay.add(replay_logs.unroll(logs, [environment], offset, length))


def _logs():
  rng = np.random.default_rng(6)
  return [replay_logs.random_log(rng, s, _STEPS, 0.3) for s in (0, 1)]


def _draw(replay):
  drawn = replay.draw(3, 50)
  return [*drawn.data, drawn.importance_weights, drawn.positions]


def _assert_equal(a, b):
  """Two replays draw the same, also after errors are noted."""
  np.testing.assert_array_equal(a.store.count, b.store.count)
  for _ in range(2):
    x, y = _draw(a), _draw(b)
    for u, v in zip(x, y, strict=True):
      np.testing.assert_array_equal(u, v)
    for replay in (a, b):
      replay.update(x[-1], x[2])


def _loaded(directory):
  replay = _make()
  np.testing.assert_equal(replay.load(directory), {'num_steps': 10})
  return replay


class _Killed(BaseException):
  pass


class _Kill:
  """Ends the process at one of its operations on files."""

  def __init__(self, at):
    self._left = at

  def _now(self):
    self._left -= 1
    return self._left == 0

  def __enter__(self):
    savez, replace, remove = np.savez, os.replace, os.remove

    def do_savez(f, **arrays):
      if self._now():
        f.write(b'half of a file')
        raise _Killed()
      savez(f, **arrays)

    def do(operation):
      def wrapped(*args):
        if self._now():
          raise _Killed()
        operation(*args)
      return wrapped

    self._patches = [
        mock.patch.object(np, 'savez', do_savez),
        mock.patch.object(os, 'replace', do(replace)),
        mock.patch.object(os, 'remove', do(remove))]
    for patch in self._patches:
      patch.start()
    return self

  def __exit__(self, *exc_info):
    for patch in self._patches:
      patch.stop()


class SavingTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # Hundreds of saves would wait for the disk.
    self.enter_context(mock.patch.object(os, 'fsync'))

  def test_any_damaged_byte_is_said_or_harmless(self):
    directory = self.create_tempdir().full_path
    replay = _make()
    for start in (0, 5, 10):
      _add(replay, _logs(), start)
      replay.save(directory, {'num_steps': start})
    undamaged = _draw(_loaded(directory))
    rng = np.random.default_rng(3)
    num_damaged = 0
    for _ in range(300):
      path = os.path.join(directory, rng.choice(sorted(os.listdir(directory))))
      with open(path, 'rb') as f:
        good = f.read()
      bad = bytearray(good)
      bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
      with open(path, 'wb') as f:
        f.write(bad)
      try:
        with mock.patch.object(os, 'remove'):
          drawn = _draw(_loaded(directory))
      except replay_lib.DamagedError:
        num_damaged += 1
      else:
        for a, b in zip(drawn, undamaged, strict=True):
          np.testing.assert_array_equal(a, b)
      with open(path, 'wb') as f:
        f.write(good)
    self.assertGreater(num_damaged, 150)

  def test_a_leftover_that_cannot_be_deleted_damages_nothing(self):
    directory = self.create_tempdir().full_path
    replay = _make()
    _add(replay, _logs(), 0)
    replay.save(directory, {'num_steps': 5})
    with open(os.path.join(directory, 'replay-7.npz.tmp'), 'w') as f:
      f.write('half')
    with mock.patch.object(os, 'remove', side_effect=PermissionError(13, 'no')):
      self.assertEqual(_make().load(directory)['num_steps'], 5)

  @parameterized.parameters(
      (OSError(errno.EIO, 'Input/output error'), errors.CheckpointError),
      (MemoryError(), MemoryError))
  def test_what_may_be_readable_the_next_time_is_not_damaged(
      self, error, expected):
    directory = self.create_tempdir().full_path
    replay = _make()
    _add(replay, _logs(), 0)
    replay.save(directory, {'num_steps': 5})
    with mock.patch.object(np, 'load', side_effect=error), self.assertRaises(
        expected) as e:
      _make().load(directory)
    self.assertNotIsInstance(e.exception, replay_lib.DamagedError)

  @parameterized.parameters(1, 2)
  def test_a_full_disk_keeps_its_room(self, which):
    directory = self.create_tempdir().full_path
    replay = _make()
    _add(replay, _logs(), 0)
    replay.save(directory, {'num_steps': 5})
    before = sorted(os.listdir(directory))
    _add(replay, _logs(), 5)
    savez, files = np.savez, []

    def half(f, **arrays):
      files.append(f)
      if len(files) < which:
        return savez(f, **arrays)
      f.write(b'half of a file')
      raise OSError(errno.ENOSPC, 'No space left on device')

    with mock.patch.object(np, 'savez', half), self.assertRaises(OSError):
      replay.save(directory, {'num_steps': 10})
    # A whole segment would take the room of checkpoints.
    self.assertEqual(sorted(os.listdir(directory)), before)
    copy = _make()
    self.assertEqual(copy.load(directory), {'num_steps': 5})
    replay.save(directory, {'num_steps': 10})
    copy = _make()
    self.assertEqual(copy.load(directory), {'num_steps': 10})
    _assert_equal(copy, replay)

  @parameterized.product(every=(5, 15, 60), segment_steps=(1, 7, 20_000))
  def test_a_restored_replay_draws_the_same(self, every, segment_steps):
    self.enter_context(mock.patch.object(
        saving, '_SEGMENT_STEPS', segment_steps))
    directory = self.create_tempdir().full_path
    logs = _logs()
    replay = _make()
    for start in range(0, _STEPS, 5):
      _add(replay, logs, start)
      drawn = replay.draw(2, 20)
      replay.update(drawn.positions, drawn.data.reward)
      if (start + 5) % every == 0:
        replay.save(directory, {'num_steps': start})
        copy = _make(seed=2)
        # Loading deletes what is too old, so it gets files of its own.
        own = os.path.join(self.create_tempdir().full_path, 'copy')
        shutil.copytree(directory, own)
        self.assertEqual(copy.load(own), {'num_steps': start})
        _assert_equal(copy, replay)
    files = [n for n in os.listdir(directory) if n != 'state.npz']
    sizes = [len(np.load(os.path.join(directory, name))['reward'])
             for name in files]
    self.assertLessEqual(max(sizes), max(segment_steps, 2))
    # A segment is kept as long as one of its steps is needed.
    self.assertLessEqual(sum(sizes), 2 * (_LENGTH + 2 * max(every, 5)))
    if segment_steps == 20_000:
      # The ring has four or eight unrolls per stream.
      self.assertLess(len(files), 11)

  def test_a_stream_that_stands_still(self):
    directory = self.create_tempdir().full_path
    logs = _logs()
    replay = _make()
    for start in range(0, _STEPS, 5):
      for environment in [0, 1] if start < 10 else [0]:
        replay.add(replay_logs.unroll(logs, [environment], start, 5))
      replay.save(directory, {'num_steps': start})
    # Its two segments, and those of the other stream's ring of four unrolls.
    segments = [n for n in os.listdir(directory) if n != 'state.npz']
    self.assertLessEqual(len(segments), 2 + 5)
    copy = _make(seed=2)
    copy.load(directory)
    _assert_equal(copy, replay)
    # It goes on, in this part and in the next one.
    for replay_of_part in (replay, copy):
      replay_of_part.add(replay_logs.unroll(logs, [1], 10, 5))
    copy.save(directory, {})
    again = _make(seed=3)
    again.load(directory)
    _assert_equal(again, copy)

  def test_files_of_a_slow_stream_stay_small(self):
    directory = self.create_tempdir().full_path
    rng = np.random.default_rng(6)
    logs = [replay_logs.random_log(rng, s, 1200, 0.3) for s in (0, 1)]
    replay, most = _make(), 0
    for start in range(60):  # A ring for each step of the other stream.
      for offset in (0, 10):
        replay.add(replay_logs.unroll(logs, [0], 20 * start + offset, 10))
      replay.add(replay_logs.unroll(logs, [1], start, 1))
      replay.save(directory, {'num_steps': start})
      segments = [n for n in os.listdir(directory) if n != 'state.npz']
      most = max(most, sum(len(np.load(
          os.path.join(directory, name))['reward']) for name in segments))
      copy = _make(seed=2)
      copy.load(shutil.copytree(
          directory, os.path.join(self.create_tempdir().full_path, 'copy')))
      _assert_equal(copy, replay)
    # Two rings, and the steps of a save.
    self.assertLessEqual(most, 2 * 2 * _LENGTH + _LENGTH + 1)

  def test_streams_begin_anew_after_a_resume(self):
    directory = self.create_tempdir().full_path
    logs = _logs()
    replay = _make()
    for start in range(0, 20, 5):
      _add(replay, logs, start)
    replay.save(directory, {})
    copy = _make()
    copy.load(directory)
    other = replay_logs.random_log(np.random.default_rng(1), 9, 6, 0)
    copy.add(replay_logs.unroll([other], [0], 0, 6))
    # As if the stream had gone on, but without the transition in between.
    positions = np.arange(200)[copy.store.alive(np.arange(200))]
    found = replay_lib.NStep(0.5, 3)(copy.store, positions, None)
    expected = [replay_logs.transition(logs[0][:21], i, 3, 0.5)
                for i in range(8, 20)]
    expected += [replay_logs.transition(other, i, 3, 0.5) for i in range(6)]
    expected += [replay_logs.transition(logs[1][:11], i, 3, 0.5)
                 for i in range(10)]
    self.assertEqual(replay_logs.as_tuples(found),
                     replay_logs.rounded(expected))
    copy.save(directory, {})
    again = _make()
    again.load(directory)
    _assert_equal(again, copy)

  @parameterized.parameters(4, 20_000)
  def test_a_kill_between_any_two_operations(self, segment_steps):
    self.enter_context(mock.patch.object(
        saving, '_SEGMENT_STEPS', segment_steps))
    at, killed, starts = 0, True, set()
    while killed:
      at += 1
      directory = self.create_tempdir().full_path
      logs, replay = _logs(), _make()
      killed = False
      for start in range(0, 70, 5):
        _add(replay, logs, start)
        last = start == 65
        try:
          with _Kill(at if last else 0):
            replay.save(directory, {'start': start})
        except _Killed:
          killed = True
      copy = _make()
      start = copy.load(directory)['start']
      starts.add(start)
      expected = _make()
      for begin in range(0, start + 5, 5):
        _add(expected, logs, begin)
      _assert_equal(copy, expected)
      # And goes on from there.
      other = replay_logs.random_log(np.random.default_rng(1), 9, 5)
      copy.add(replay_logs.unroll([other], [0], 0, 5))
      copy.save(directory, {})
      again = _make()
      again.load(directory)
      _assert_equal(again, copy)
      self.assertEmpty(
          [n for n in os.listdir(directory) if n.endswith('.tmp')])
    self.assertGreater(at, 4)  # The last one was not killed.
    self.assertEqual(starts, {60, 65})

  def test_a_kill_in_the_first_save_after_damage(self):
    at, killed = 0, True
    while killed:
      at += 1
      directory = self.create_tempdir().full_path
      logs, old, new = _logs(), _make(), _make()
      for start in range(0, 30, 5):
        _add(old, logs, start)
        old.save(directory, {'start': start})
      first, *_ = sorted(os.listdir(directory))
      os.truncate(os.path.join(directory, first), 9)
      with self.assertRaises(replay_lib.DamagedError):
        _make().load(directory)
      killed = False
      for start in range(30, 50, 5):
        _add(new, logs, start)
      try:
        with _Kill(at), mock.patch.object(saving, '_SEGMENT_STEPS', 8):
          new.save(directory, {'start': -1})
      except _Killed:
        killed = True
      copy = _make()
      try:
        self.assertEqual(copy.load(directory), {'start': -1})
      except replay_lib.DamagedError:
        self.assertTrue(killed)
      else:
        _assert_equal(copy, new)
    self.assertGreater(at, 8)

  def test_a_kill_while_loading(self):
    directory = self.create_tempdir().full_path
    logs, replay = _logs(), _make()
    for start in range(0, 30, 5):
      _add(replay, logs, start)
      replay.save(directory, {'start': start})
    for name in ('state.npz.tmp', 'replay-7-9.npz'):  # Of a killed save.
      with open(os.path.join(directory, name), 'wb') as f:
        f.write(b'half')
    for at in (1, 2):
      with self.assertRaises(_Killed), _Kill(at):
        _make().load(directory)
      with open(os.path.join(directory, 'replay-7-9.npz'), 'wb') as f:
        f.write(b'half')
    copy = _make()
    self.assertEqual(copy.load(directory), {'start': 25})
    _assert_equal(copy, replay)

  def test_nothing_new(self):
    directory = self.create_tempdir().full_path
    logs, replay = _logs(), _make()
    for number in range(2):
      _add(replay, logs, 5 * number)
      replay.save(directory, {'a': number})
    files = sorted(os.listdir(directory))
    replay.save(directory, {'a': 3})
    self.assertEqual(sorted(os.listdir(directory)), files)
    copy = _make()
    self.assertEqual(copy.load(directory), {'a': 3})
    _assert_equal(copy, replay)
    self.assertIsNone(_make().load(os.path.join(directory, 'none')))

  def test_dictionaries_and_stacks(self):
    directory = self.create_tempdir().full_path
    frames = replay_logs.SPEC._replace(
        observation=structs.ArraySpec((2, 1), np.dtype(np.float32)))
    dictionary = replay_logs.SPEC._replace(observation={
        'a': structs.ArraySpec((2,), np.dtype(np.float32)),
        'b/c': structs.ArraySpec((2,), np.dtype(np.float64))})
    numbers = replay_logs.SPEC._replace(observation={
        10: structs.ArraySpec((2,), np.dtype(np.float32)),
        2: structs.ArraySpec((2,), np.dtype(np.float64))})
    for i, (spec, form) in enumerate((
        (frames, lambda o: o[..., None]),
        (dictionary, lambda o: {'a': o, 'b/c': 2.0 * o}),
        (numbers, lambda o: {10: o, 2: 2.0 * o}))):
      own = os.path.join(directory, str(i))
      make = lambda spec=spec: _make(spec=spec, stacked=not isinstance(
          spec.observation, dict))
      replay, logs = make(), _logs()
      for start in range(0, 60, 5):
        unroll = replay_logs.unroll(logs, [0, 1], start, 5)
        env_outputs = unroll.steps.env_outputs
        replay.add(unroll._replace(
            steps=unroll.steps._replace(env_outputs=env_outputs._replace(
                observation=form(env_outputs.observation))),
            last_observations=tuple(
                last._replace(observation=form(last.observation))
                for last in unroll.last_observations)))
        replay.save(own, {})
      copy = make()
      copy.load(own)
      for a, b in zip(_draw(replay), _draw(copy)):
        np.testing.assert_equal(a, b)

  def test_another_form(self):
    directory = self.create_tempdir().full_path
    logs, replay = _logs(), _make(replay_lib.Uniform())
    _add(replay, logs, 0)
    replay.save(directory, {})
    with self.assertRaisesRegex(errors.CheckpointError, 'largest'):
      _make().load(directory)
    with self.assertRaisesRegex(
        errors.CheckpointError, r'steps \[2, 20\] .* not of steps \[2, 9\]'):
      _make(length=9).load(directory)


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/games', catches='test_a_restored_replay_draws_the_same0',
         rows=(
        ('the last game is that of another row',
         'self.previous[rows[-1]] = row', 'pass'),
    )),
    dict(file='replay/saving',
         catches='test_a_leftover_that_cannot_be_deleted_damages_nothing',
         rows=(
        ('a leftover is damage',
         'with contextlib.suppress(OSError):  # The next save tries again.',
         'if True:'),
    )),
    dict(file='replay/saving', catches='test_a_full_disk_keeps_its_room', rows=(
        ('a new segment is left on a full disk',
         '  self._delete_old()\n      raise', '  pass\n      raise'),
    )),
    dict(file='replay/saving',
         catches='test_a_kill_between_any_two_operations', rows=(
        ('numbers of segments begin anew', 'os.listdir(self._directory)) if',
         '[]) if'),
    )),
    dict(file='replay/saving',
         catches='test_a_kill_in_the_first_save_after_damage', rows=(
        ('only segments that were loaded count',
         'os.listdir(self._directory)) if', 'self._segments) if'),
    )),
    dict(file='replay/saving', catches='test_files_of_a_slow_stream_stay_small',
         rows=(
        ('files of many rings', '2 * store.num_slots', '9 * store.num_slots'),
        ('a new ring without its old steps', 'segments, saved = {}, oldest',
         'segments = {}'),
    )),
    dict(file='replay/saving',
         catches='test_a_kill_between_any_two_operations', rows=(
        ('old segments are dropped too early',
         'np.any((end > oldest) & (end > start))',
         'np.all((end > oldest) & (end > start))'),
    )),
    dict(file='replay/saving', catches='test_a_stream_that_stands_still', rows=(
        ('those of streams that stand still are kept',
         'np.any((end > oldest) & (end > start))', 'np.any(end > oldest)'),
    )),
    dict(file='replay/saving',
         catches='test_a_restored_replay_draws_the_same', rows=(
        ('steps since the first save only', 'np.maximum(saved, oldest)',
         'oldest'),
        ('nothing deleted',
         '    self._segments = segments\n    self._delete_old()\n',
         '    self._segments = segments\n'),
    )),
    dict(file='replay/saving', catches='test_a_kill_while_loading', rows=(
        ('deleted while it is needed', 'name not in (_STATE, *self._segments)',
         'name != _STATE'),
    )),
    dict(file='replay/saving', catches='test_another_form', rows=(
        ('another form is read',
         'if form != _form(store, starts):',
         'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
