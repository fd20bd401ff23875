# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of DMLab-30's levels and scores."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent.scores import dmlab30
from scalable_agent.scores import suites


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
    # The scores have the same order, which sums depend on.
    self.assertEqual(list(dmlab30.LEVEL_MAPPING.values()),
                     list(dmlab30.HUMAN_SCORES))

  @parameterized.parameters(
      ('contributed/dmlab30/rooms_watermaze', 'rooms_watermaze'),
      ('contributed/dmlab30/rooms_exploit_deferred_effects_test',
       'rooms_exploit_deferred_effects_test'),
      ('rooms_watermaze', 'rooms_watermaze'),
      ('contributed/dmlab30/catch', 'contributed/dmlab30/catch'),
      ('lab/contributed/dmlab30/rooms_watermaze',
       'lab/contributed/dmlab30/rooms_watermaze'))
  def test_plain_name(self, name, expected):
    self.assertEqual(dmlab30.plain_name(name), expected)

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
    # As in DeepMind's code, missing levels are named first.
    returns[next(iter(returns))] = []
    with self.assertRaisesRegex(ValueError, 'Missing levels: '):
      dmlab30.compute_human_normalized_score(returns, 100)

  def test_suite_by_mode(self):
    self.assertEqual(dmlab30.levels(is_test=False),
                     tuple(dmlab30.LEVEL_MAPPING))
    self.assertEqual(dmlab30.levels(is_test=True), tuple(dmlab30.HUMAN_SCORES))

  @parameterized.parameters(
      ('impala_deep_experts', 44.5, 45.74), ('impala_deep_pbt', 49.4, 50.06))
  def test_published_returns(self, key, published, by_code):
    agent = dmlab30.PUBLISHED[key]
    self.assertEqual(agent.statistics, {'mean_capped': published})
    self.assertEqual(agent.verified, {'mean_capped'})
    returns = {level: [value] for level, value in agent.returns.items()}
    self.assertEqual(set(returns), set(dmlab30.HUMAN_SCORES))
    mean = suites.DMLAB30.statistics[0]
    scores = np.array([mean.baselines.normalized(level, value)
                       for level, value in agent.returns.items()])
    # To within the rounding of returns and baselines to one decimal.
    self.assertAlmostEqual(mean.reduce(scores), published, delta=.1)
    self.assertAlmostEqual(
        dmlab30.compute_human_normalized_score(returns, 100), by_code, places=2)

  @parameterized.parameters(
      ('impala_plotted', 52.37), ('appo_sample_factory', 58.57),
      ('brain_agent', 92.68))
  def test_published_scores(self, key, mean_capped):
    agent = dmlab30.PUBLISHED[key]
    self.assertEmpty(agent.returns)
    percents = np.array([agent.percents[name] for name in dmlab30.HUMAN_SCORES])
    self.assertAlmostEqual(suites.DMLAB30.statistics[0].reduce(percents),
                           mean_capped, places=2)
    self.assertNotEmpty(agent.source)

  def test_baselines_of_the_paper_swap_lasertag(self):
    swapped = {
        f'lasertag_{n}_{size}': f'lasertag_{n}_{other}'
        for n in ('one_opponent', 'three_opponents')
        for size, other in (('small', 'large'), ('large', 'small'))}
    for code, paper in zip(dmlab30.BASELINES, dmlab30.PAPER_BASELINES):
      self.assertEqual(set(paper), set(code))
      for level, score in paper.items():
        self.assertAlmostEqual(score, code[swapped.get(level, level)],
                               delta=0.0501)
    self.assertLen(dmlab30.TABLES.baseline_sources, 4)

  def test_agents_without_scores_of_levels(self):
    agent = dmlab30.PUBLISHED['popart_impala']
    self.assertEqual(
        (agent.name, agent.statistics, agent.returns, agent.percents),
        ('PopArt-IMPALA', {'mean_capped': 72.8}, {}, {}))


class TrainingScoresTest(absltest.TestCase):

  def test_as_the_reference_logs(self):
    rng = np.random.default_rng(1)
    scores = dmlab30.TrainingScores()
    returns, logged = {level: [] for level in dmlab30.LEVEL_MAPPING}, []
    for _ in range(600):
      level = str(rng.choice(list(dmlab30.LEVEL_MAPPING)))
      episode_return = float(rng.normal(50, 50))
      returns[level].append(episode_return)
      result = scores.add(level, episode_return)
      if min(map(len, returns.values())) >= 1:
        self.assertEqual(result, {
            'dmlab30/training_no_cap':
                dmlab30.compute_human_normalized_score(returns, None),
            'dmlab30/training_cap_100':
                dmlab30.compute_human_normalized_score(returns, 100)})
        logged.append(result)
        returns = {level: [] for level in dmlab30.LEVEL_MAPPING}
      else:
        self.assertIsNone(result)
    self.assertGreaterEqual(len(logged), 3)
    self.assertLess(logged[0]['dmlab30/training_cap_100'],
                    logged[0]['dmlab30/training_no_cap'])

  def test_other_levels_are_ignored(self):
    scores = dmlab30.TrainingScores()
    for level in list(dmlab30.LEVEL_MAPPING)[1:]:
      self.assertIsNone(scores.add(level, 1))
    self.assertIsNone(scores.add('catch', 1))
    self.assertIsNotNone(scores.add(list(dmlab30.LEVEL_MAPPING)[0], 1))


if __name__ == '__main__':
  absltest.main()
