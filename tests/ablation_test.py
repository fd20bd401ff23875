# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of benchmarks/ablation.py: its flags, statistics and table."""

import contextlib
import io
import os
import pathlib
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent.experience import structs
from scalable_agent.runs import metrics

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'benchmarks'))
import ablation


class FlagsTest(parameterized.TestCase):

  @parameterized.parameters(
      [[]], [['--min_policy_lag=30']], [['--min_policy_lag', '30', '--seed=3']],
      [['--level_names=typo']])
  def test_flags_without_a_level_change_the_settings(self, flags):
    default = ablation.common_flags([])
    self.assertIn('--level_name=catch', default)
    self.assertEqual(ablation.common_flags(flags), default + flags)

  @parameterized.parameters(
      [['--level_name=memory']], [['--seed=3', '-level_name', 'memory']],
      [['--min_policy_lag=30', '--flagfile=a.flags']],
      [['--flagfile', 'a.flags']], [['--recipe=cartpole']])
  def test_flags_with_a_level_are_all_there_are(self, flags):
    self.assertEqual(ablation.common_flags(flags), flags)

  def test_paths_are_relative_to_the_user(self):
    root, user = (pathlib.Path(self.create_tempdir().full_path)
                  for _ in range(2))
    (root / 'experiment.py').write_text(
        "import sys; print(open('a.flags').read(), *sys.argv[1:4])\n"
        "print('8 of 8 frames (100.0 %)' if sys.argv[4] == '--seed=2' else "
        "'7 of 8 frames (87.5 %)')")
    (user / 'a.flags').write_text('of the user')
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(user)
    cell = ablation.Cell('none', 7, 2)
    with mock.patch.object(ablation.running, 'PROGRAM',
                           (str(root / 'experiment.py'),)), \
        contextlib.redirect_stdout(io.StringIO()):
      failures = ablation.run_all([cell], user / 'out', ['--x'], 1, 600)
      [stopped] = ablation.run_all(
          [cell._replace(seed=3)], user / 'out', ['--x'], 1, 600)
    self.assertEqual(
        (cell.directory(user / 'out') / 'log.txt').read_text(),
        'of the user --x --correction=none --replay_capacity=7\n'
        '8 of 8 frames (100.0 %)\n')
    self.assertEmpty(failures)
    self.assertEndsWith(stopped, 'seed3: stopped before its end')
    self.assertTrue(ablation.is_finished(cell, user / 'out', ['--x']))


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
        'num_env_frames,train_time_s,level_name,episode_return\n'
        # 50 bins of 20 frames, each with its last frame. None in the third.
        '20,7,a,1\n20,7,a,3\n21,7,a,5\n40,7,a,6\n61,7,a,8\n'
        # A kill has cut off a line.
        '90,7,a\n1000,7,a,9\n')
    curve = ablation.curve(directory, 1000)
    np.testing.assert_array_equal(curve[:4], [2, 5.5, 5.5, 8])
    np.testing.assert_array_equal(curve[4:49], 8)
    self.assertEqual(curve[49], 9)

  def test_policy_lag(self):
    directory = pathlib.Path(self.create_tempdir().full_path)
    progress = metrics.Progress(0, 10**6)
    lines = []
    for frames, lag in ((100, 0.), (2000, 99.), (30000, 58.3), (10**6, 1234.)):
      progress.add_episodes([structs.Episode('catch', -1., 9)])
      lines.append(str(progress.measure(frames, lag)))
    (directory / 'log.txt').write_text('\n'.join(
        ['Starts, --min_policy_lag=50.', *lines, 'Over.']))
    # The second half, each rounded to a decimal.
    self.assertAlmostEqual(ablation.policy_lag(directory), (58.3 + 1234) / 2)

  def test_summary(self):
    # Final returns are over the last 5 of the 50 shares: v-trace's 4 and 6,
    # none's 1 and 2. Areas are over all: v-trace's 4 / 10 and 6 / 10 + 9 / 10,
    # none's 1 / 10, without a value in the first 30 shares 2 * 5 / 20.
    def curve(before, last, num_unknown=0):
      values = np.full([50], float(before))
      values[45:] = last
      values[:num_unknown] = np.nan
      return values
    rows = ablation.summarise(
        {(10, 'none'): {1: curve(0, 1), 2: curve(0, 2, num_unknown=30)},
         (10, 'vtrace'): {1: curve(0, 4), 2: curve(1, 6)},
         (0, 'none'): {3: curve(0, 7)}},
        {(10, 'none'): [50., 61.], (10, 'vtrace'): [50., 52.],
         (0, 'none'): [3.]})
    none, v_trace, alone = rows
    self.assertEqual((none['replay_capacity'], none['correction'],
                      none['seeds'], none['policy_lag']),
                     (10, 'none', [1, 2], 55.5))
    np.testing.assert_allclose(none['final_returns'], [1, 2])
    np.testing.assert_allclose(none['areas'], [0.1, 0.5])
    np.testing.assert_allclose(v_trace['final_returns'], [4, 6])
    np.testing.assert_allclose(v_trace['areas'], [0.4, 1.5])
    self.assertAlmostEqual(none['final_return'].mean, 1.5)
    self.assertAlmostEqual(none['vtrace_minus_final_return'].mean, 5 - 1.5)
    self.assertAlmostEqual(none['vtrace_minus_area'].mean, 0.95 - 0.3)
    # The paper's, with replay and without.
    self.assertEqual(none['paper_final_returns']['rooms_watermaze'], 35.0)
    self.assertEqual(alone['paper_final_returns']['rooms_watermaze'], 40.3)
    # Neither from itself, nor from that with another replay.
    for row in (v_trace, alone):
      self.assertNotIn('vtrace_minus_final_return', row)
      self.assertNotIn('vtrace_minus_area', row)
    self.assertIsNone(none['curves'][1][29])
    self.assertEqual(none['curves'][1][30], 0)

  def test_table(self):
    def row(**values):
      return {'seeds': [1, 2], 'final_return': ablation.Interval(1.5),
              'area': ablation.Interval(0.25, 0.125, 0.5), 'policy_lag': 55.5,
              'paper_final_returns': {
                  'rooms_watermaze': 46.8, 'rooms_keys_doors_puzzle': 32.9,
                  'lasertag_three_opponents_small': 31.3,
                  'explore_goal_locations_small': 229.2,
                  'seekavoid_arena_01': 43.8},
              **values}
    lines = ablation.table([
        row(replay_capacity=0, correction='vtrace'),
        row(replay_capacity=9, correction='none',
            vtrace_minus_final_return=ablation.Interval(-3.5, -4.0, -3.0),
            vtrace_minus_area=ablation.Interval(0.75))]).splitlines()
    self.assertEqual(
        [cell.strip() for cell in lines[0].split('|')[1:-1]],
        ['replay', 'correction', 'seeds', 'final return', 'V-trace minus it',
         'area', 'V-trace minus it', 'policy lag', 'paper: rooms_watermaze',
         'paper: rooms_keys_doors_puzzle',
         'paper: lasertag_three_opponents_small',
         'paper: explore_goal_locations_small', 'paper: seekavoid_arena_01'])
    self.assertEqual(lines[1].count('|'), lines[0].count('|'))
    paper = ' 46.8 | 32.9 | 31.3 | 229.2 | 43.8 |'
    self.assertEqual(lines[2:4], [
        '| no | vtrace | 2 | 1.500 |  | 0.250 (0.125 to 0.500) |  | 55.5 |'
        + paper,
        '| 9 | none | 2 | 1.500 | -3.500 (-4.000 to -3.000) | '
        '0.250 (0.125 to 0.500) | 0.750 | 55.5 |' + paper])
    self.assertIn('1802.01561 Table 2', lines[-1])


if __name__ == '__main__':
  absltest.main()
