# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the model of a cluster: what is full sets the rate."""

import json
import pathlib
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import pytest

sys.path.insert(0, str(
    pathlib.Path(__file__).resolve().parent.parent / 'benchmarks'))
import cluster


class ModelTest(parameterized.TestCase):

  @parameterized.parameters(
      # Workers: each makes an unroll in 0.4 s.
      (dict(), 20, 'workers'),
      # The link passes 12 MB/s, an unroll has 1 MB.
      (dict(link_bytes_per_s=12e6), 12, 'link'),
      (dict(consumer_s=0.1), 10, 'consumer'),
      (dict(learn_s=0.125), 8, 'learner'),
      (dict(learn_s=0.125, consumer_s=0.1, link_bytes_per_s=12e6), 8,
       'learner'))
  def test_the_slowest_part_sets_the_rate(self, changes, rate, part):
    model = cluster.Model(8, 0.4, 1e6)._replace(**changes)
    point = cluster.simulate(model, 4000)
    self.assertAlmostEqual(point.unrolls_per_s, rate, delta=0.01 * rate)
    self.assertAlmostEqual(point.busy[part], 1, delta=0.01)
    self.assertLessEqual(max(point.busy.values()), 1.01)

  def test_a_call_that_is_longer_than_an_unroll_holds_a_worker_back(self):
    # With two buffers, a worker has at most one unroll per call.
    point = cluster.simulate(cluster.Model(
        1, 0.4, 1., call_s=1., consumer_s=0.), 1000)
    self.assertAlmostEqual(point.unrolls_per_s, 1, delta=0.01)

  @pytest.mark.storm
  def test_workers_that_sleep_are_measured(self):
    pytest.importorskip('ray')
    out = self.create_tempdir().create_file('points.jsonl').full_path
    subprocess.run(
        [sys.executable, cluster.__file__, '--workers=1', '--height=1',
         f'--out={out}'], check=True, capture_output=True)
    [line] = pathlib.Path(out).read_text().splitlines()
    point = json.loads(line)
    self.assertEqual(point['workers'], 1)
    self.assertBetween(point['share_of_ideal'], 0.5, 1.05)


if __name__ == '__main__':
  absltest.main()
