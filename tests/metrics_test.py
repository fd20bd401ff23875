# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of what a run tells its user."""

import csv
import glob
import os

import numpy as np
import psutil
from scalable_agent import errors
from scalable_agent.scores import dmlab30
from scalable_agent import metrics
from scalable_agent import structs
import tensorflow as tf


def _batch(episode_end, episode_return, episode_step, done=None):
  info = structs.StepOutputInfo(
      np.array(episode_return, np.float32), np.array(episode_step, np.int32),
      np.array(episode_end))
  steps = structs.Steps(
      structs.StepOutput(reward=(), info=info, done=done, observation=()),
      agent_outputs=(), truncation_values=())
  return structs.Unroll(steps, structs.Start(
      np.array(['a', 'b'], object), agent_state=(), policy_version=()))


def _scalars(logdir):
  """Returns the scalars in a directory by tag and step."""
  found = {}
  for path in glob.glob(os.path.join(logdir, 'events*')):
    for record in tf.data.TFRecordDataset(path):
      event = tf.compat.v1.Event.FromString(record.numpy())
      for value in event.summary.value:
        if value.tag != 'action':
          found[value.tag, event.step] = float(tf.make_ndarray(value.tensor))
  return found


class MetricsTest(tf.test.TestCase):

  def test_finished_episodes(self):
    batch = _batch(
        # Entry 0 was counted in the unroll before. A lost life (done, but no
        # end) is no episode.
        episode_end=[[True, True], [False, True], [True, False]],
        episode_return=[[1, 2], [3, 4], [5, 6]],
        episode_step=[[10, 20], [30, 40], [50, 60]],
        done=np.ones([3, 2], bool))
    self.assertEqual(metrics.finished_episodes(batch),
                     [('b', 4.0, 40), ('a', 5.0, 50)])

  def test_memory_does_not_grow(self):
    writer = metrics.MetricsWriter(self.create_tempdir().full_path, 4)
    self.addCleanup(writer.close)

    def write(numbers):
      for i in numbers:
        writer.write_episodes([metrics.Episode('a', i + 0.5, i)], i, i + 0.25)
        writer.write_scalars({'b': i + 0.75}, np.array([[0, 1]]), i)
      return psutil.Process().memory_info().rss

    before = write(range(1_000))
    # Megabytes for each of the numbers, were they kept.
    self.assertLess(write(range(1_000, 6_000)) - before, 1.5e6)

  def test_files(self):
    logdir = self.create_tempdir().full_path
    for frames in (100, 200):  # The second opens what the first has written.
      writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
      writer.write_episodes([metrics.Episode('a,b', -3.5, 25)], frames, 1.25)
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

  def test_training_scores_of_dmlab30(self):
    logdir = self.create_tempdir().full_path
    writer = metrics.MetricsWriter(logdir, num_action_repeats=4)
    # Halfway between random and human play, but twice human on one level.
    *levels, last = dmlab30.LEVEL_MAPPING
    halfway = lambda level, share=0.5: metrics.Episode(
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
    writer.write_episodes([metrics.Episode('a', 1.0, 25)], 100, 1.25)
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

  def test_progress(self):
    progress = metrics.Progress(1000, 10_000, num_recent=2)
    self.assertTrue(np.isnan(progress.mean_return))
    self.assertIn('no episode finished yet', progress.line(1500, 2.0))
    progress.add_episodes([metrics.Episode('a', r, 1) for r in (9., 1., 2.)])
    line = progress.line(2000, 2.5)
    self.assertStartsWith(line, '2,000 of 10,000 frames (20.0 %), ')
    self.assertIn('return 1.50 (2 episodes), policy lag 2.5', line)
    self.assertIn('ETA ?', progress.line(2000, 2.5))

  def test_total_seconds(self):
    timers = [metrics.StageTimer() for _ in range(2)]
    for timer in timers:
      timer.seconds['policy'] += 2.0
    timers[0].seconds['wait'] += 1.0
    self.assertEqual(metrics.total_seconds(timers), {'policy': 4, 'wait': 1})
    with timers[0].stage('environment'):
      pass
    self.assertGreater(timers[0].seconds['environment'], 0)


if __name__ == '__main__':
  tf.test.main()
