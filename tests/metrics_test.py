# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the reports of a run."""

import contextlib
import csv
import glob
import io
import os
from unittest import mock

from absl.testing import parameterized
import numpy as np
import psutil
import pytest
from scalable_agent import errors
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.runs import metrics
from scalable_agent.scores import dmlab30
from scalable_agent.scores import plotting
import tensorflow as tf


def _batch(episode_end, episode_return, episode_step, done=None):
  info = structs.StepOutputInfo(
      np.array(episode_return, np.float32), np.array(episode_step, np.int32),
      np.array(episode_end))
  steps = structs.Steps(
      structs.StepOutput(reward=(), info=info, done=done, observation=()),
      agent_outputs=(), truncation_values=())
  return structs.Unroll(steps, structs.Start(
      np.array(['a', 'b'], object), environment=(), agent_state=(),
      policy_version=()))


def _events(logdir):
  """Returns the events of summaries in a directory."""
  events = [tf.compat.v1.Event.FromString(record.numpy())
            for path in glob.glob(os.path.join(glob.escape(logdir), 'events*'))
            for record in tf.data.TFRecordDataset(path)]
  return [event for event in events if event.summary.value]


def _scalars(logdir):
  """Returns the scalars in a directory by tag and step."""
  return {(value.tag, event.step): float(tf.make_ndarray(value.tensor))
          for event in _events(logdir) for value in event.summary.value
          if value.tag not in ('action', 'settings')}


def _write(logdir, *returns, level='a', frames=100):
  """Writes an episode for each return, as a part of a run does."""
  writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
  writer.write_episodes(
      [structs.Episode(level, r, 25) for r in returns], frames, 1.25)
  writer.close()


class MetricsTest(parameterized.TestCase, tf.test.TestCase):

  def test_finished_episodes(self):
    batch = _batch(
        # Entry 0 was counted in the unroll before. A lost life (done, but no
        # end) is no episode.
        episode_end=[[True, True], [False, True], [True, False]],
        episode_return=[[1, 2], [3, 4], [5, 6]],
        episode_step=[[10, 20], [30, 40], [50, 60]],
        done=np.ones([3, 2], bool))
    self.assertEqual(episodes_lib.finished_episodes(batch),
                     [('b', 4.0, 40, {}), ('a', 5.0, 50, {})])

  @pytest.mark.storm
  def test_memory_does_not_grow(self):
    writer = metrics.MetricsWriter(self.create_tempdir().full_path, 4)
    self.addCleanup(writer.close)

    def write(numbers):
      for i in numbers:
        writer.write_episodes(
            [structs.Episode('a', i + 0.5, i)], i, i + 0.25)
        if i % 10 == 0:  # Scalars take ten times as long.
          writer.write_scalars({f'b{k}': i + k / 100 for k in range(20)},
                               np.array([[0, 1]]), i)
      return psutil.Process().memory_info().rss

    before = write(range(500))
    # 0.8 MB were the steps kept, 3 MB were the values kept.
    self.assertLess(write(range(500, 1500)) - before, 0.4e6)

  def test_files(self):
    logdir = self.create_tempdir().full_path
    for frames in (100, 200):  # The second opens what the first has written.
      writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
      writer.write_episodes(
          [structs.Episode('a,b', -3.5, 25)], frames, 1.25)
      writer.write_scalars({'total_loss': frames / 10.0},
                           np.array([[0, 1]]), frames)
      writer.close()
    with open(os.path.join(logdir, 'episodes.csv'), newline='') as f:
      rows = list(csv.DictReader(f))
    self.assertEqual([r['num_env_frames'] for r in rows], ['100', '200'])
    self.assertEqual(
        rows[0], {'num_env_frames': '100', 'train_time_s': '1.2',
                  'level_name': 'a,b', 'episode_return': '-3.5',
                  'num_agent_steps': '25', 'episode_frames': '100'})

    self.assertEqual(_scalars(logdir), {
        ('a,b/episode_return', 100): -3.5, ('a,b/episode_frames', 100): 100,
        ('a,b/episode_return', 200): -3.5, ('a,b/episode_frames', 200): 100,
        ('total_loss', 100): 10, ('total_loss', 200): 20})

  def test_one_event_has_the_scalars_that_tensorflow_writes(self):
    returns = [0.1, -3.5, 1e-45, float('inf'), float('nan'), 1e20]
    ours, theirs = (self.create_tempdir().full_path for _ in range(2))
    _write(ours, *returns, frames=7)
    with tf.summary.create_file_writer(theirs).as_default(
        step=np.array(7, np.int64)):
      for value in returns:
        tf.summary.scalar('a/episode_return', np.array(value, np.float32))
        tf.summary.scalar('a/episode_frames', np.array(100, np.float32))
      tf.summary.flush()
    [event], expected = map(_events, (ours, theirs))
    self.assertEqual(event.step, 7)
    self.assertEqual(list(event.summary.value),
                     [value for e in expected for value in e.summary.value])

  def test_settings_are_a_table(self):
    logdir = self.create_tempdir().full_path
    writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
    writer.write_settings({'seed': 3, 'xla': 'none'}, 100)
    writer.close()
    [path] = glob.glob(os.path.join(logdir, 'events*'))
    texts = [value.tensor.string_val[0].decode()
             for record in tf.data.TFRecordDataset(path)
             for value in tf.compat.v1.Event.FromString(
                 record.numpy()).summary.value]
    self.assertEqual(texts, [
        '| setting | value |\n|---|---|\n| seed | 3 |\n| xla | none |'])

  @parameterized.parameters(
      (0., '0'), (-3.5, '-3.5'), (21., '21'), (1234567., '1234567'),
      (-1234567., '-1234567'), (16777216., '16777216'),
      (float(np.float32(123456789)), '123456792'),
      (float(np.float32(0.1)), '0.1'),
      (float(np.float32(1234.567)), '1234.567'),
      (0.1, '0.1'), (1 / 3, '0.3333333333333333'), (12345678.5, '12345678.5'),
      (float(np.float32(1e-7)), '1e-07'), (1e20, '1e+20'),
      (float('inf'), 'inf'), (float('nan'), 'nan'))
  def test_returns_are_read_as_they_were(self, value, text):
    logdir = self.create_tempdir().full_path
    _write(logdir, value)
    with open(os.path.join(logdir, 'episodes.csv'), newline='') as f:
      [row] = csv.DictReader(f)
    self.assertEqual(row['episode_return'], text)
    [read] = plotting.read_curves(logdir)['a'].episode_return
    if float(np.float32(value)) == value:
      self.assertEqual(np.float32(read), np.float32(value))
    else:
      np.testing.assert_equal(read, value)

  @pytest.mark.storm
  def test_every_float32_is_read_as_it_was(self):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 1000, np.uint32).view(np.float32)
    values = np.concatenate([
        bits[np.isfinite(bits)], rng.normal(0, 1e3, 1000).astype(np.float32),
        rng.integers(0, 2**31, 1000).astype(np.float32)])
    logdir = self.create_tempdir().full_path
    _write(logdir, *map(float, values))
    read = plotting.read_curves(logdir)['a'].episode_return
    np.testing.assert_array_equal(read.astype(np.float32), values)

  @parameterized.parameters('a', 'a,b', 'a"b')
  def test_line_that_a_kill_cut_off(self, level):
    logdir = self.create_tempdir().full_path
    path = os.path.join(logdir, 'episodes.csv')
    _write(logdir, 1., 2., level=level)
    with open(path, 'rb') as f:
      whole = f.read()
    [header, first, last, _] = whole.split(b'\r\n')
    before = len(header) + len(first) + 4
    for length in range(1, len(last) + 2):  # Up to the `\r` of its end.
      damaged = whole[:before + length]
      with open(path, 'wb') as f:
        f.write(damaged)
      _write(logdir, 3., level=level, frames=200)
      _write(logdir, 4., level=level, frames=300)  # Nothing is damaged now.
      with open(path, 'rb') as f:
        content = f.read()
      self.assertStartsWith(content, damaged)
      self.assertEndsWith(content, b',25,100\r\n')
      returns = list(plotting.read_curves(logdir)[level].episode_return)
      # The return itself is whole if there is a field after it.
      self.assertIn(returns, ([1, 3, 4], [1, 2, 3, 4]), damaged)
      with open(path, newline='') as f:
        self.assertLen(list(csv.reader(f)), 5, damaged)

  def test_directory_named_like_a_pattern(self):
    logdir = self.create_tempdir().mkdir('a[b]*?').full_path
    for frames in (100, 200):
      _write(logdir, frames / 2, frames=frames)
    self.assertEqual(
        list(plotting.read_curves(logdir)['a'].episode_return), [50, 100])
    self.assertEqual(_scalars(logdir)['a/episode_return', 200], 100)

  def test_training_scores_of_dmlab30(self):
    logdir = self.create_tempdir().full_path
    writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
    # Halfway between random and human play, but twice human on one level.
    *levels, last = dmlab30.LEVEL_MAPPING
    halfway = lambda level, share=0.5: structs.Episode(
        level, share * dmlab30.HUMAN_SCORES[dmlab30.LEVEL_MAPPING[level]]
        + (1 - share) * dmlab30.RANDOM_SCORES[dmlab30.LEVEL_MAPPING[level]], 9)
    writer.write_episodes([halfway(level) for level in levels], 100, 1.0)
    writer.write_episodes([halfway(last, 2.0), halfway(last)], 200, 2.0)
    writer.close()
    scores = {key: value for key, value in _scalars(logdir).items()
              if key[0].startswith('dmlab30/')}
    self.assertAllClose(scores, {
        ('dmlab30/training_no_cap', 200): (29 * 50 + 200) / 30,
        ('dmlab30/training_cap_100', 200): (29 * 50 + 100) / 30}, 1e-4)

  def test_flushed_episodes_are_in_the_file(self):
    logdir = self.create_tempdir().full_path
    writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
    self.addCleanup(writer.close)
    writer.write_episodes([structs.Episode('a', 1.0, 25)], 100, 1.25)
    writer.flush()
    with open(os.path.join(logdir, 'episodes.csv'), newline='') as f:
      self.assertLen(list(csv.DictReader(f)), 1)

  def test_episodes_that_cannot_be_written(self):
    logdir = self.create_tempdir()
    logdir.mkdir('episodes.csv')  # Root, too, cannot append to a directory.
    with self.assertRaisesRegex(
        errors.ConfigError,
        r'^.*episodes\.csv cannot be written: .*another --logdir\.$'):
      metrics.MetricsWriter(logdir.full_path, num_action_repeats=4)

  def test_a_full_disk_is_said_once_and_ends_nothing(self):
    logdir = self.create_tempdir().full_path
    os.symlink('/dev/full', os.path.join(logdir, 'episodes.csv'))
    with contextlib.redirect_stdout(io.StringIO()) as output:
      writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
      for _ in range(1000):  # More than Python keeps in memory.
        writer.write_episodes([structs.Episode('a', 1.0, 25)], 100, 1.25)
      writer.write_scalars({'x': 1.}, np.zeros(3), 100)
      writer.close()
    self.assertEqual(
        output.getvalue(), f'Curves could not be written to {logdir}: No space '
        'left on device. Training continues; episodes may be missing from '
        'the curves.\n')

  def test_curves_can_be_read_after_a_full_disk(self):
    logdir = self.create_tempdir().full_path
    writer = metrics.MetricsWriter(logdir, num_action_repeats=1)
    write = lambda frames: writer.write_scalars(
        {'x': float(frames)}, np.zeros(3), frames)
    write(1)
    with mock.patch.object(
        metrics, '_write_scalars', side_effect=OSError(28, 'full')), \
        contextlib.redirect_stdout(io.StringIO()):
      write(2)
    first, = glob.glob(f'{logdir}/events*')
    with open(first, 'ab') as f:
      f.write(b'half a record')
    write(3)
    self.assertLen(glob.glob(f'{logdir}/events*'), 1)  # Not yet.
    with mock.patch.object(metrics, '_REOPEN_S', 0.):
      with mock.patch.object(tf.summary, 'create_file_writer',
                             side_effect=OSError(28, 'full')) as create:
        write(3)
      self.assertEqual(create.call_count, 1)
      write(4)
      write(5)
    writer.close()
    second, = {*glob.glob(f'{logdir}/events*')} - {first}
    steps = [tf.compat.v1.Event.FromString(record.numpy()).step
             for record in tf.data.TFRecordDataset(second)]
    self.assertContainsSubset([4, 5], steps)

  def test_progress(self):
    progress = metrics.Progress(1000, 10_000, num_recent=2)
    self.assertTrue(np.isnan(progress.mean_return))
    self.assertIn('ETA ?', str(progress.measure(1000, 2.0)))
    self.assertIn('no episode finished yet', str(progress.measure(1500, 2.0)))
    progress.add_episodes(
        [structs.Episode('a', r, 1) for r in (9., 1., 2.)])
    line = str(progress.measure(2000, 2.5))
    self.assertStartsWith(line, '2,000 of 10,000 frames (20.0 %), ')
    self.assertIn('return 1.50 (2 episodes), policy lag 2.5', line)
    self.assertEqual(str(progress.measure(2000, 2.5)), line)  # No new frame.

  def test_progress_begins_with_the_returns_before_the_checkpoint(self):
    logdir = self.create_tempdir().full_path
    _write(logdir, 1., 2., 4., frames=100)
    _write(logdir, 9., frames=200)  # Killed before the next checkpoint.
    self.assertEqual(
        metrics.Progress(100, 1000, logdir, num_recent=2).mean_return, 3)
    self.assertTrue(np.isnan(metrics.Progress(0, 1000, logdir).mean_return))

  def test_an_end_that_is_too_far_away(self):
    progress = metrics.Progress(0, 10**18, num_recent=2)
    # A frame in three seconds: 10**11 years, which `timedelta` cannot hold.
    with mock.patch.object(timing.time, 'perf_counter',
                           side_effect=[0., 3.]):
      progress.restart(0)
      measured = progress.measure(1, 0.)
    self.assertIn('ETA ?', str(measured))

  def test_totals(self):
    timers = [timing.StageTimer() for _ in range(2)]
    for timer in timers:
      timer.seconds['policy'] += 2.0
    timers[0].seconds['wait'] += 1.0
    self.assertEqual(timing.totals(
        timer.seconds for timer in timers), {'policy': 4, 'wait': 1})
    self.assertEqual(repr(timing.totals([{'a': 1}, {'b': 2}, {'a': 3}])),
                     "{'a': 4, 'b': 2}")  # Whole numbers stay so.
    with timers[0].stage('environment'):
      pass
    self.assertGreater(timers[0].seconds['environment'], 0)


MUTATIONS = (
    dict(file='runs/metrics',
         catches='test_progress_begins_with_the_returns_before_the_checkpoint',
         rows=(
        ('recent returns are lost', 'if logdir and num_env_frames else ()',
         'if False else ()'),
    )),
    dict(file='runs/metrics',
         catches='test_curves_can_be_read_after_a_full_disk', rows=(
        ('the same file',
         'self._summaries = tf.summary.create_file_writer(self._logdir)\n'
         '      self',
         'self'),
        ('a file for each error',
         ' and time.monotonic() - self._opened_s > _REOPEN_S', ''),
    )),
)


if __name__ == '__main__':
  tf.test.main()
