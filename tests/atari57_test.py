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
import pytest
from scalable_agent.scores import atari57
from scalable_agent.scores import suites

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class GamesTest(parameterized.TestCase):

  def test_levels_are_those_of_ale(self):
    gymnasium.register_envs(ale_py)
    self.assertLen(set(atari57.GAMES), 57)
    self.assertLen(set(atari57.LEVELS), 57)
    for level, game in atari57.GAME_OF_LEVEL.items():
      self.assertEqual(gymnasium.spec(level).kwargs['game'], game)

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
    self.assertIn('dqn_zoo', atari57.TABLES.baseline_sources['human'])
    self.assertLen(atari57.TABLES.baseline_sources, 4)


class ScoresTest(parameterized.TestCase):

  @parameterized.parameters(
      ('breakout', 1.7, 0), ('breakout', 30.5, 100), ('pong', 14.6, 100),
      ('pong', -20.7, 0), ('skiing', -17098.1, 0), ('skiing', -4336.9, 100),
      ('pong', 21, 41.7 / 35.3 * 100))
  def test_one_game(self, game, score, expected):
    self.assertAlmostEqual(
        atari57.BASELINES.normalized(game, score), expected, places=10)

  def test_one_level(self):
    self.assertAlmostEqual(suites.ATARI57.normalized('ALE/Pong-v5', 19),
                           39.7 / 35.3 * 100)
    self.assertAlmostEqual(atari57.PAPER_MEAN_BASELINES.normalized('pong', 19),
                           39.7 / 30 * 100)

  @parameterized.parameters(
      ('impala_shallow', 93.2, 466.4), ('impala_deep', 191.8, 957.6),
      ('impala_deep_multitask', 59.7, 176.9))
  def test_published_scores(self, key, median, mean):
    agent = atari57.PUBLISHED[key]
    self.assertEqual(agent.statistics, {'median': median, 'mean': mean})
    self.assertEqual(agent.verified, {'median', 'mean'})
    self.assertIn('1802.01561', agent.source)
    self.assertEqual(set(agent.returns), set(atari57.GAMES))
    self.assertEmpty(agent.percents)
    ours, papers = (
        [baselines.normalized(game, score)
         for game, score in agent.returns.items()]
        for baselines in (atari57.BASELINES, atari57.PAPER_MEAN_BASELINES))
    self.assertAlmostEqual(statistics.median(ours), median, delta=0.05)
    self.assertGreater(abs(statistics.fmean(ours) - mean), 2)
    self.assertAlmostEqual(statistics.median(papers), median, delta=0.05)
    self.assertAlmostEqual(statistics.fmean(papers), mean, delta=0.05)

  def test_other_published_agents(self):
    self.assertLen(atari57.PUBLISHED['acktr'].returns, 44)
    self.assertEmpty(atari57.PUBLISHED['acktr'].statistics)
    for key, median, mean in (('a3c_shallow', 54.9, 285.9),
                              ('a3c_deep', 117.9, 503.6)):
      agent = atari57.PUBLISHED[key]
      self.assertEqual(agent.statistics, {'median': median, 'mean': mean})
      self.assertEqual(agent.verified, {'mean'})
      self.assertEmpty(agent.returns)


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
         'from scalable_agent.settings import recipes\n'
         'print(len(recipes.recipe_names()) > 20)'],
        cwd=site, env={**os.environ, 'PYTHONPATH': site}, check=True,
        stdout=subprocess.PIPE, text=True).stdout
    self.assertEqual(output.split(), [
        os.path.join(site, 'scalable_agent', 'scores', 'atari57.py'),
        '57', '7', '30', '16', '8', 'True'])


if __name__ == '__main__':
  absltest.main()
