# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of checkpoints: nothing is lost, nothing foreign is loaded."""

import glob
import os

from absl.testing import parameterized
import learner_test
import numpy as np
from scalable_agent import checkpointing
import tensorflow as tf


class CheckpointerTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters('rmsprop', 'adam')
  def test_resumed_update_equals_the_uninterrupted_one(self, optimizer):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner(seed=1, optimizer=optimizer)
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    self.assertIsNone(checkpointer.restore())
    for seed in range(3):
      learner.step(learner_test.random_batch(learner, seed))
    checkpointer.train_time_s.assign(12.5)
    checkpointer.save()

    # A new process begins with other weights and empty optimizer slots.
    resumed = learner_test.make_learner(seed=2, optimizer=optimizer)
    restored = checkpointing.Checkpointer(logdir, resumed, 'agent')
    self.assertIsNotNone(restored.restore())
    self.assertEqual(int(resumed.num_env_frames), 3 * 12800)
    self.assertEqual(int(resumed.num_updates), 3)
    self.assertEqual(float(restored.train_time_s), 12.5)

    batch = learner_test.random_batch(learner, 7)
    expected, found = learner.step(batch), resumed.step(batch)
    for name in expected:
      self.assertAllEqual(expected[name], found[name])
    for one, other in zip(learner.agent.variables + learner.optimizer.variables,
                          resumed.agent.variables + resumed.optimizer.variables,
                          strict=True):
      self.assertAllEqual(one, other)

  def test_another_agent_is_refused_and_nothing_is_overwritten(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'mlp with LSTM').save()
    before = {p: open(p, 'rb').read() for p in glob.glob(logdir + '/*')}
    with self.assertRaisesRegex(checkpointing.CheckpointError,
                                'mlp with LSTM.*deep.*another --logdir'):
      checkpointing.Checkpointer(logdir, learner, 'deep')
    self.assertEqual(
        before, {p: open(p, 'rb').read() for p in glob.glob(logdir + '/*')})

  def test_another_level_is_refused_unless_only_read(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent', level='A').save()
    with self.assertRaisesRegex(checkpointing.CheckpointError,
                                'another level \\(A\\), this one is B'):
      checkpointing.Checkpointer(logdir, learner, 'agent', level='B')
    self.assertIsNotNone(
        checkpointing.Checkpointer(logdir, learner, 'agent').restore())

  def test_directory_without_a_checkpoint_is_free(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'mlp')
    checkpointing.Checkpointer(logdir, learner, 'deep').save()

  def test_damaged_checkpoint(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    path = checkpointer.save()
    for name in glob.glob(path + '.data*'):
      os.truncate(name, 10)
    with self.assertRaisesRegex(checkpointing.CheckpointError, path):
      checkpointing.Checkpointer(logdir, learner, 'agent').restore()

  def test_weights_that_are_not_finite_are_not_saved(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    good = checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    learner.agent.variables[0].assign(
        np.nan * np.ones(learner.agent.variables[0].shape))
    with self.assertRaisesRegex(checkpointing.DivergedError, good):
      checkpointer.save()
    self.assertEqual(tf.train.latest_checkpoint(logdir), good)

  def test_directory_that_cannot_be_used(self):
    path = self.create_tempfile().full_path
    with self.assertRaisesRegex(checkpointing.CheckpointError,
                                'cannot be used.*may write'):
      checkpointing.Checkpointer(os.path.join(path, 'logdir'),
                                 learner_test.make_learner(), 'agent')

  def test_latest_number(self):
    logdir = self.create_tempdir().full_path
    self.assertEqual(checkpointing.latest_number(logdir), 0)
    learner = learner_test.make_learner()
    learner.step(learner_test.random_batch(learner))
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    self.assertEqual(checkpointing.latest_number(logdir), 1)


if __name__ == '__main__':
  tf.test.main()
