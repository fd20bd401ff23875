# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the paper's table 2."""

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent.scores import vtrace_ablation
from scalable_agent.settings import sections


class VTraceAblationTest(parameterized.TestCase):

  def test_rows_and_columns(self):
    self.assertEqual(vtrace_ablation.LEVELS, (
        'rooms_watermaze', 'rooms_keys_doors_puzzle',
        'lasertag_three_opponents_small', 'explore_goal_locations_small',
        'seekavoid_arena_01'))
    self.assertCountEqual(vtrace_ablation.RETURNS, [
        (replay, correction) for replay in (False, True)
        for correction in sections.CORRECTIONS])
    self.assertIn('1802.01561 Table 2', vtrace_ablation.SOURCE)

  @parameterized.parameters(
      (False, 'vtrace', [46.8, 32.9, 31.3, 229.2, 43.8]),
      (False, 'one_step', [51.8, 35.9, 25.4, 215.8, 43.7]),
      (True, 'epsilon', [30.4, 30.2, 3.9, 101.5, 37.6]),
      (True, 'none', [35.0, 21.1, 2.8, 85.0, 11.2]))
  def test_numbers(self, replay, correction, expected):
    returns = vtrace_ablation.RETURNS[replay, correction]
    self.assertEqual(list(returns.values()), expected)

  def test_sums(self):
    # Of the columns of the table as it is printed.
    sums = {level: sum(row[level] for row in vtrace_ablation.RETURNS.values())
            for level in vtrace_ablation.LEVELS}
    for total, expected in zip(
        sums.values(), (350.3, 246.7, 133.6, 1289.7, 282.4), strict=True):
      self.assertAlmostEqual(total, expected)

  def test_best_correction_of_each_task(self):
    best = {
        replay: [max(sections.CORRECTIONS, key=lambda c, l=level, r=replay:
                     vtrace_ablation.RETURNS[r, c][l])
                 for level in vtrace_ablation.LEVELS]
        for replay in (False, True)}
    # One-step leads on two tasks without replay, on one with it.
    self.assertEqual(best[False].count('vtrace'), 3)
    self.assertEqual(best[False].count('one_step'), 2)
    self.assertEqual(best[True], ['one_step'] + 4 * ['vtrace'])


if __name__ == '__main__':
  absltest.main()
