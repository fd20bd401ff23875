# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A log directory of the version before the settings had sections still works.

`old_logdir` was written by that version: memory, mlp, 20 updates, 200 frames.
"""

import dataclasses
import os
import shutil

from absl.testing import absltest
import in_process
import pytest
from scalable_agent.modes import test
from scalable_agent.runs import training
from scalable_agent.scores import plotting
from scalable_agent.settings import config as config_lib

_OLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'old_logdir')


@pytest.mark.slow
class OldLogdirTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = os.path.join(self.create_tempdir().full_path, 'run')
    shutil.copytree(_OLD, self.logdir)
    self.config = dataclasses.replace(
        config_lib.trained_with(self.logdir), logdir=self.logdir)

  def test_training_goes_on(self):
    self.assertEqual(self.config.level_name, 'memory')
    self.assertEqual(self.config.agent, 'mlp')
    updates = []

    def train(config):
      training.train(config, hooks=[lambda update: updates.append(
          (update.learner.num_updates, update.learner.num_env_frames,
           float(update.scalars['learning_rate'])))])

    output = in_process.printed(train, dataclasses.replace(
        self.config, total_environment_frames=400))
    self.assertIn('ckpt-20, 200 frames', output)
    self.assertEqual([(n, f) for n, f, _ in updates],
                     [(20 + i, 200 + 10 * i) for i in range(1, 21)])
    # The rate of the first update is that of the frames before it.
    self.assertAlmostEqual(updates[0][2], 0.00048 / 2, places=9)

  def test_it_is_tested_and_drawn(self):
    output = in_process.printed(test.test, dataclasses.replace(
        self.config, mode='test', test_num_episodes=2))
    self.assertIn('after 200 frames', output)
    [level] = plotting.read_curves(self.logdir)
    self.assertEqual(level, 'memory')


if __name__ == '__main__':
  absltest.main()
