# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the statistics of benchmarks/ablation.py."""

import os
import pathlib
import sys

from absl.testing import absltest
import numpy as np

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'benchmarks'))
import ablation  # pylint: disable=g-import-not-at-top,wrong-import-position


class AblationTest(absltest.TestCase):

  def test_interval(self):
    # Student's t for 4 degrees of freedom: 2.776; deviation 1.5811.
    low_mean_high = ablation.interval([1., 2., 3., 4., 5.])
    np.testing.assert_allclose(
        low_mean_high, [3, 3 - 1.96324, 3 + 1.96324], rtol=1e-5)
    self.assertEqual(str(ablation.interval([2.])), '2.000')

  def test_difference(self):
    # Welch: variances 1 and 16 of 3 values each, error 2.3805, degrees of
    # freedom (17 / 3)**2 / ((1 / 9 + 256 / 9) / 2) = 2.24903, t = 3.87686.
    found = ablation.difference([10., 11., 12.], [1., 5., 9.])
    self.assertAlmostEqual(found.mean, 6)
    self.assertAlmostEqual(found.high - 6, 3.87686 * 2.38048, delta=1e-3)
    self.assertAlmostEqual(6 - found.low, found.high - 6)
    self.assertEqual(ablation.difference([1., 1.], [3., 3.]), (-2, -2, -2))

  def test_curve(self):
    directory = pathlib.Path(self.create_tempdir().full_path)
    (directory / 'episodes.csv').write_text(
        'num_env_frames,episode_return\n'
        # 50 bins of 20 frames, each with its last frame. None in the third.
        '20,1\n20,3\n21,5\n40,6\n61,8\n1000,9\n')
    curve = ablation.curve(directory, 1000)
    np.testing.assert_array_equal(curve[:4], [2, 5.5, 5.5, 8])
    np.testing.assert_array_equal(curve[4:49], 8)
    self.assertEqual(curve[49], 9)


if __name__ == '__main__':
  absltest.main()
