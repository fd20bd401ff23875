# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of DMLab-30's levels and scores."""

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent import dmlab30


def _all_levels(returns):
  return {name: returns for name in dmlab30.LEVEL_MAPPING}


class Dmlab30Test(parameterized.TestCase):

  def test_levels(self):
    self.assertLen(dmlab30.LEVEL_MAPPING, 30)
    self.assertLen(dmlab30.ALL_LEVELS, 32)
    self.assertEqual(
        {train: test for train, test in dmlab30.LEVEL_MAPPING.items()
         if train != test},
        {'rooms_collect_good_objects_train': 'rooms_collect_good_objects_test',
         'rooms_exploit_deferred_effects_train':
             'rooms_exploit_deferred_effects_test'})
    names = list(dmlab30.LEVEL_MAPPING)
    self.assertEqual(names[14:16], ['natlab_varying_map_regrowth',
                                    'natlab_varying_map_randomized'])
    self.assertEqual(names[-1], 'explore_object_rewards_many')

  def test_human_and_random(self):
    for scores, expected in ((dmlab30.HUMAN_SCORES, 100),
                             (dmlab30.RANDOM_SCORES, 0)):
      returns = {name: [score] for name, score in scores.items()}
      self.assertAlmostEqual(
          dmlab30.compute_human_normalized_score(returns, None), expected)

  @parameterized.parameters(
      ([1.0], None, -1.433114000129), ([0.0], None, -3.682171531868),
      ([10, 20], None, 30.053691444222), ([10, 20], 100, 27.766307142464),
      ([100], None, 221.223581642064), ([100], 100, 85.524473417105))
  def test_known_scores(self, returns, cap, expected):
    self.assertAlmostEqual(
        dmlab30.compute_human_normalized_score(_all_levels(returns), cap),
        expected, places=9)

  def test_training_and_test_names_are_the_same_levels(self):
    by_test_name = {name: [10] for name in dmlab30.HUMAN_SCORES}
    self.assertEqual(
        dmlab30.compute_human_normalized_score(by_test_name, None),
        dmlab30.compute_human_normalized_score(_all_levels([10]), None))

  def test_other_levels_are_ignored(self):
    returns = _all_levels([10])
    expected = dmlab30.compute_human_normalized_score(returns, None)
    self.assertEqual(dmlab30.compute_human_normalized_score(
        {**returns, 'seekavoid_arena_01': [1e9]}, None), expected)

  def test_missing(self):
    returns = _all_levels([10])
    del returns['rooms_watermaze']
    with self.assertRaisesRegex(ValueError,
                                r"Missing levels: \['rooms_watermaze'\]"):
      dmlab30.compute_human_normalized_score(returns, 100)
    with self.assertRaisesRegex(
        ValueError, "Missing returns for level: 'rooms_watermaze': "):
      dmlab30.compute_human_normalized_score(
          {**returns, 'rooms_watermaze': []}, 100)


if __name__ == '__main__':
  absltest.main()
