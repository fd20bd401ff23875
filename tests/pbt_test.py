# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of population based training."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys

from absl.testing import absltest
import numpy as np
import pytest

pytest.importorskip('ray.tune')
_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / 'examples'))
import pbt


class ExploreTest(absltest.TestCase):

  def test_a_third_of_the_settings_change_by_a_fifth(self):
    settings = {'learning_rate': 1e-3, 'entropy_cost': 2e-3, 'epsilon': 0.1,
                'seed': 3}
    copies = [pbt.explore(settings) for _ in range(6000)]
    for name in 'learning_rate', 'entropy_cost', 'epsilon':
      factors = np.array([copy[name] / settings[name] for copy in copies])
      for factor, share in (1, 2 / 3), (1.2, 1 / 6), (1 / 1.2, 1 / 6):
        # Five standard deviations.
        self.assertAlmostEqual(
            np.mean(np.isclose(factors, factor)), share, delta=.03)
    self.assertGreater(len({copy['seed'] for copy in copies}), 5900)
    self.assertEqual(settings['seed'], 3)

  def test_no_interval_is_too_short(self):
    interval, frames, ends = 2030, 0, [0]
    for _ in range(20):  # Updates of 80 frames, up to the next multiple.
      frames = -(-(ends[-1] + interval) // 80) * 80
      ends.append(pbt.whole_intervals(frames, interval))
    self.assertEqual(ends, [interval * i for i in range(21)])


class FlagsTest(absltest.TestCase):

  def test_a_number_of_environments_is_needed(self):
    out = self.create_tempdir().full_path
    with (contextlib.redirect_stderr(io.StringIO()) as stderr,
          self.assertRaises(SystemExit)):
      pbt.main([f'--out={out}', '--', '--recipe=catch', '--num_actors=auto'])
    self.assertIn('--num_actors=auto measures', stderr.getvalue())
    self.assertEmpty(os.listdir(out))


class PopulationTest(absltest.TestCase):

  @pytest.mark.storm
  def test_a_bad_member_becomes_a_copy_of_a_good_one(self):
    out = self.create_tempdir().full_path
    run = subprocess.run(
        [sys.executable, 'examples/pbt.py', f'--out={out}', '--population=4',
         # Not a multiple of the 80 frames of an update.
         '--cpus_per_member=0.5', '--interval=2030', '--',
         '--recipe=catch', '--total_environment_frames=12000'],
        cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    self.assertEqual(run.returncode, 0, run.stdout)
    rows = json.loads(pathlib.Path(out, 'members.json').read_text())
    self.assertEqual([row['frames'] for row in rows], [12_000] * 4)
    self.assertEqual([row['mean_return'] for row in rows],
                     sorted((row['mean_return'] for row in rows), reverse=True))
    episodes = [pathlib.Path(row['logdir'], 'episodes.csv').read_text()
                for row in rows]
    shared = [len(os.path.commonprefix([a, b]).splitlines())
              for i, a in enumerate(episodes) for b in episodes[:i]]
    # After 2,000 frames, 200 episodes and more; the header is one line.
    self.assertGreater(max(shared), 150, shared)
    # Copies go on with other seeds, and with settings close to the donor's.
    self.assertLen({row['seed'] for row in rows}, 4)
    for row in rows:
      with open(os.path.join(row['logdir'], 'settings.json')) as f:
        settings = json.load(f)
      for name in pbt.RANGES:
        self.assertEqual(settings[name], row[name])


if __name__ == '__main__':
  absltest.main()
