# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the driver's parts that need no cluster."""

import time

from absl.testing import absltest
import pytest
from scalable_agent import config as config_lib

pytest.importorskip('ray')
# pylint: disable=wrong-import-position
from scalable_agent.distributed import driver


class LearnerWorkerTest(absltest.TestCase):

  def test_a_training_that_hangs_is_silent(self):
    worker = driver.LearnerWorker(config_lib.Config(), 0, '')
    time.sleep(0.2)
    text, silent_s = worker.output()
    self.assertEmpty(text)
    self.assertGreaterEqual(silent_s, 0.2)
    self.assertFalse(worker._stop.is_set())  # The training asks.
    self.assertLess(worker.output()[1], silent_s)

  def test_output_is_taken_once(self):
    worker = driver.LearnerWorker(config_lib.Config(), 0, '')
    print('one', file=worker._output)
    print('two', file=worker._output)
    self.assertEqual(worker.output()[0], 'one\ntwo\n')
    self.assertEmpty(worker.output()[0])

  def test_episodes_go_to_the_first_learner(self):
    first, second = (driver.LearnerWorker(config_lib.Config(), rank, '')
                     for rank in range(2))
    second._episodes.extend('ab')
    self.assertEmpty(first.exchange_episodes(second.exchange_episodes([])))
    self.assertEqual(list(first._episodes), ['a', 'b'])
    self.assertEmpty(second._episodes)


if __name__ == '__main__':
  absltest.main()
