# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of Atari-57's scores, and of the tables that the package ships."""

import os
import shutil
import statistics
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import ale_py
import gymnasium
import numpy as np
import pytest
from scalable_agent.scores import atari57

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class GamesTest(parameterized.TestCase):

  def test_levels_are_those_of_ale(self):
    gymnasium.register_envs(ale_py)
    self.assertLen(set(atari57.GAMES), 57)
    self.assertLen(set(atari57.LEVELS), 57)
    for game, level in zip(atari57.GAMES, atari57.LEVELS):
      self.assertEqual(gymnasium.spec(level).kwargs['game'], game)
      self.assertEqual(atari57.game_of(level), game)
      self.assertEqual(atari57.game_of(game), game)

  @parameterized.parameters(
      ('ms_pacmann', 'Did you mean ms_pacman'),
      ('ALE/MsPacmann-v5', 'Did you mean ALE/MsPacman-v5'),
      ('ALE/Adventure-v5', "'ALE/Adventure-v5' is not a game of Atari-57"),
      ('', "'' is not a game"))
  def test_other_names(self, name, message):
    with self.assertRaisesRegex(ValueError, message):
      atari57.human_normalized_scores({name: [1]})

  def test_baselines(self):
    self.assertEqual(set(atari57.HUMAN_SCORES), set(atari57.GAMES))
    self.assertEqual(set(atari57.RANDOM_SCORES), set(atari57.GAMES))
    self.assertEqual(
        (atari57.RANDOM_SCORES['zaxxon'], atari57.HUMAN_SCORES['zaxxon']),
        (32.5, 9173.3))
    for mine, papers, change in zip(
        atari57.BASELINES, atari57.PAPER_MEAN_BASELINES,
        ({'pong': 9.3}, {'video_pinball': 0.0})):
      self.assertEqual({**mine, **change}, papers)
      self.assertNotEqual(mine, papers)
    self.assertIn('dqn_zoo', atari57.BASELINE_SOURCES['human'])
    self.assertLen(atari57.BASELINE_SOURCES, 4)


class ScoresTest(parameterized.TestCase):

  @parameterized.parameters(
      ('breakout', 1.7, 0), ('breakout', 30.5, 100), ('pong', 14.6, 100),
      ('pong', -20.7, 0), ('skiing', -17098.1, 0), ('skiing', -4336.9, 100),
      ('ALE/Pong-v5', 21, 41.7 / 35.3 * 100))
  def test_one_game(self, name, score, expected):
    self.assertAlmostEqual(
        atari57.human_normalized_score(name, score), expected, places=10)

  def test_returns_of_games(self):
    scores = atari57.human_normalized_scores(
        {'ALE/Pong-v5': [20, 21, 16], 'boxing': np.array([100.0])})
    self.assertEqual(list(scores), ['pong', 'boxing'])
    self.assertAlmostEqual(scores['pong'], 39.7 / 35.3 * 100)
    self.assertAlmostEqual(scores['boxing'], 99.9 / 12 * 100)
    scores = atari57.human_normalized_scores(
        {'pong': [19]}, atari57.PAPER_MEAN_BASELINES)
    self.assertAlmostEqual(scores['pong'], 39.7 / 30 * 100)

  def test_bad_returns(self):
    with self.assertRaisesRegex(ValueError, "Missing returns for game: 'pong'"):
      atari57.human_normalized_scores({'pong': []})
    with self.assertRaisesRegex(ValueError, "'ALE/Pong-v5' is pong, which"):
      atari57.human_normalized_scores({'pong': [1], 'ALE/Pong-v5': [2]})

  def test_summary(self):
    values = np.random.default_rng(1).normal(100, 300, 57)
    summary = atari57.summarize(dict(zip(atari57.LEVELS, values)))
    self.assertAlmostEqual(summary.median, statistics.median(values))
    self.assertAlmostEqual(summary.mean, statistics.fmean(values))
    with self.assertRaisesRegex(ValueError, r"Missing games: \['alien'\]"):
      atari57.summarize(dict(zip(atari57.GAMES[1:], values)))

  @parameterized.parameters(
      ('impala_shallow', 93.2, 466.4), ('impala_deep', 191.8, 957.6),
      ('impala_deep_multitask', 59.7, 176.9))
  def test_published_scores(self, key, median, mean):
    agent = atari57.PUBLISHED[key]
    self.assertEqual((agent.median, agent.mean), (median, mean))
    self.assertTrue(agent.median_verified and agent.mean_verified)
    self.assertIn('1802.01561', agent.source)
    self.assertEqual(set(agent.scores), set(atari57.GAMES))
    returns = {game: [score] for game, score in agent.scores.items()}
    summary = atari57.summarize(atari57.human_normalized_scores(returns))
    self.assertAlmostEqual(summary.median, median, delta=0.05)
    self.assertGreater(abs(summary.mean - mean), 2)
    summary = atari57.summarize(atari57.human_normalized_scores(
        returns, atari57.PAPER_MEAN_BASELINES))
    self.assertAlmostEqual(summary.median, median, delta=0.05)
    self.assertAlmostEqual(summary.mean, mean, delta=0.05)

  def test_other_published_agents(self):
    self.assertLen(atari57.PUBLISHED['acktr'].scores, 44)
    self.assertIsNone(atari57.PUBLISHED['acktr'].median)
    for key, median, mean in (('a3c_shallow', 54.9, 285.9),
                              ('a3c_deep', 117.9, 503.6)):
      agent = atari57.PUBLISHED[key]
      self.assertEqual((agent.median, agent.mean), (median, mean))
      self.assertEqual((agent.median_verified, agent.mean_verified),
                       (False, True))
      self.assertEmpty(agent.scores)


@pytest.mark.slow
class WheelTest(absltest.TestCase):

  def test_tables_come_with_the_package(self):
    # A copy, as building leaves files behind.
    source = self.create_tempdir().full_path
    for name in ('setup.py', 'pyproject.toml', 'README.md'):
      shutil.copy(os.path.join(_ROOT, name), source)
    shutil.copytree(os.path.join(_ROOT, 'scalable_agent'),
                    os.path.join(source, 'scalable_agent'))
    site = self.create_tempdir().full_path
    subprocess.run(
        [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps',
         '--no-index', '--no-build-isolation', '--target', site, source],
        check=True)
    output = subprocess.run(
        [sys.executable, '-c',
         'from scalable_agent.scores import atari57, dmlab30, vtrace_ablation\n'
         'print(atari57.__file__, len(atari57.GAMES), len(atari57.PUBLISHED),\n'
         '      len(dmlab30.HUMAN_SCORES), len(dmlab30.PUBLISHED),\n'
         '      len(vtrace_ablation.RETURNS))\n'
         'from scalable_agent import experiment\n'
         'print(len(experiment.recipe_names()) > 20)'],
        cwd=site, env={**os.environ, 'PYTHONPATH': site}, check=True,
        stdout=subprocess.PIPE, text=True).stdout
    self.assertEqual(output.split(), [
        os.path.join(site, 'scalable_agent', 'scores', 'atari57.py'),
        '57', '7', '30', '16', '8', 'True'])


if __name__ == '__main__':
  absltest.main()
