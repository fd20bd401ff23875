# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of checkpoints: nothing is lost, nothing foreign is loaded."""

import contextlib
import glob
import io
import os
from unittest import mock

from absl.testing import parameterized
import experiment
import learner_test
import numpy as np
from scalable_agent import errors
from scalable_agent import checkpointing
from scalable_agent import training
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
    with self.assertRaisesRegex(errors.CheckpointError,
                                'mlp with LSTM.*deep.*another --logdir'):
      checkpointing.Checkpointer(logdir, learner, 'deep')
    self.assertEqual(
        before, {p: open(p, 'rb').read() for p in glob.glob(logdir + '/*')})

  def test_another_level_is_refused_unless_only_read(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent', level='A').save()
    with self.assertRaisesRegex(errors.CheckpointError,
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
    with self.assertRaisesRegex(errors.CheckpointError, path):
      checkpointing.Checkpointer(logdir, learner, 'agent').restore()

  def test_damaged_checkpoint_names_older_ones(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    for name in glob.glob(checkpointer.save() + '.data*'):
      os.remove(name)
    with self.assertRaisesRegex(
        errors.CheckpointError,
        f'ckpt-1 .*\\(ckpt-0\\).*model_checkpoint_path in {logdir}/checkpoint'):
      checkpointing.Checkpointer(logdir, learner, 'agent').restore()
    # The advice works.
    with open(os.path.join(logdir, 'checkpoint'), 'w') as f:
      f.write('model_checkpoint_path: "ckpt-0"')
    checkpointing.Checkpointer(logdir, learner, 'agent').restore()
    self.assertEqual(int(learner.num_updates), 0)

  @parameterized.parameters(None, b'', b'garbled', b'\xff\xfe',
                            b'model_checkpoint_path: "ckpt-7"')
  def test_lost_list_of_checkpoints_is_not_overwritten(self, content):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    path = os.path.join(logdir, 'checkpoint')
    os.remove(path)
    if content is not None:
      with open(path, 'wb') as f:
        f.write(content)
    for use in (lambda: checkpointing.Checkpointer(logdir, learner, 'agent'),
                lambda: checkpointing.latest_number(logdir)):
      with self.assertRaisesRegex(
          errors.CheckpointError,
          '^.*holds checkpoints.*another --logdir.*'
          'model_checkpoint_path: "ckpt-0"$'):
        use()

  def test_agent_json_is_replaced_whole_and_only_if_it_differs(self):
    logdir = self.create_tempdir().full_path
    path = os.path.join(logdir, 'agent.json')
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    with open(path, encoding='utf-8') as f:
      whole = f.read()
    before = os.stat(path)
    checkpointer.save()
    self.assertEqual(os.stat(path), before)

    with open(path, 'w', encoding='utf-8') as f:
      f.write('{"old')
    with mock.patch.object(os, 'replace', side_effect=KeyboardInterrupt):
      with self.assertRaises(KeyboardInterrupt):
        checkpointer.save()
    with open(path, encoding='utf-8') as f:
      self.assertEqual(f.read(), '{"old')
    checkpointer.save()
    with open(path, encoding='utf-8') as f:
      self.assertEqual(f.read(), whole)

  @parameterized.parameters(b'', b'{"agent', b'[1]', b'null', b'\xff')
  def test_damaged_agent_json(self, content):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    path = os.path.join(logdir, 'agent.json')
    with open(path, 'wb') as f:
      f.write(content)
    with self.assertRaisesRegex(errors.CheckpointError,
                                'agent.json is damaged. Delete it if'):
      checkpointing.Checkpointer(logdir, learner, 'agent')
    os.remove(path)  # The advice works.
    self.assertIsNotNone(
        checkpointing.Checkpointer(logdir, learner, 'agent').restore())

  def test_diverged_run_ends_with_one_line(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    learner.agent.variables[0].assign(
        np.nan * np.ones(learner.agent.variables[0].shape))

    def run(unused_config):
      try:
        raise errors.DivergedError('The loss is nan.')
      finally:
        checkpointer.save()

    error = io.StringIO()
    with mock.patch.object(training, 'run', run):
      with contextlib.redirect_stderr(error):
        self.assertEqual(experiment.main(['experiment.py']), 1)
    self.assertRegex(error.getvalue(),
                     r'^experiment\.py: Training diverged: .* were not saved\. '
                     r'Train with a lower --learning_rate .*\.\n$')
    self.assertNotIn('None', error.getvalue())
    self.assertIsNone(tf.train.latest_checkpoint(logdir))

  def test_weights_that_are_not_finite_are_not_saved(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    good = checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    learner.agent.variables[0].assign(
        np.nan * np.ones(learner.agent.variables[0].shape))
    with self.assertRaisesRegex(errors.DivergedError, good):
      checkpointer.save()
    self.assertEqual(tf.train.latest_checkpoint(logdir), good)

  def test_directory_that_cannot_be_used(self):
    path = self.create_tempfile().full_path
    with self.assertRaisesRegex(errors.CheckpointError,
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
