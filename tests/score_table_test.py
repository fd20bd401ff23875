# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the table of scores: its numbers, its words, its files."""

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent.scores import atari57
from scalable_agent.scores import comparing
from scalable_agent.scores import dmlab30
from scalable_agent.scores import files as score_files
from scalable_agent.scores import statistics
from scalable_agent.scores import suites
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib

# The paper's recipe of the experts, as flags.
_PAPER = dict(
    mode='test', level_name='ALE/Pong-v5', agent='deep', use_lstm=False,
    use_last_action_reward=False, batch_size=32, unroll_length=20,
    learning_rate=0.0006, epsilon=0.01, entropy_cost=0.01,
    clip_gradient_norm=40., total_environment_frames=200_000_000)


def _run(num_env_frames=200_000_000, trained_on='ALE/Pong-v5',
         training=None, **settings):
  """A test, and a training with the same settings but `training`.

  The training has an environment for each level of a suite. If `trained_on` is
  None, the training is unknown. No game is played yet.
  """
  config = config_lib.Config(**settings)
  trained_with = None if trained_on is None else dataclasses.replace(
      config, mode='train', level_name=trained_on,
      **{'num_actors': 57, **(training or {})})
  return score_table.Run(config, num_env_frames, trained_with, ())


def _played(returns, run=None):
  return (run or _run())._replace(rows=tuple(
      score_table.make_row(level, r) for level, r in returns.items()))


def _table(returns, run=None):
  return score_table.make_table([_played(returns, run)])


def _atari_returns(scores):
  """Returns the given scores as returns of the same level."""
  return {level: [scores[game]]
          for level, game in atari57.GAME_OF_LEVEL.items()}


class NumbersTest(parameterized.TestCase):

  def test_interval_is_that_of_all_samples(self):
    # All 4^4 samples of four returns, counted one by one: the distribution
    # that the bootstrap draws from.
    returns = [0., 1., 5., 30.]
    means = sorted(np.mean(s) for s in itertools.product(returns, repeat=4))
    row = score_table.make_row('catch', returns)
    # Means are multiples of 1/4; a drawn quantile may be one value off.
    for value, quantile in zip(row.interval, (0.025, 0.975)):
      low, high = (means[int((quantile + d) * 256)] for d in (-0.012, 0.012))
      self.assertBetween(value, low, high)
    self.assertEqual((row.mean, row.returns), (9., tuple(returns)))
    self.assertAlmostEqual(row.std, np.sqrt((81 + 64 + 16 + 441) / 4))

  def test_interval_of_many_games(self):
    # By the central limit theorem, mean -+ 1.96 standard errors.
    returns = np.random.default_rng(1).exponential(10, 2000)
    row = score_table.make_row('catch', returns)
    error = 1.96 * np.std(returns) / np.sqrt(2000)
    np.testing.assert_allclose(
        row.interval, [np.mean(returns) - error, np.mean(returns) + error],
        atol=0.05 * error)

  @parameterized.parameters(
      ([1., 100.], 50.5),  # A quarter of 2 is no whole value.
      ([7., 1., 100., 3.], 5.),
      ([9., 1., 2., 3., 4., 5., -50.], 3.),  # One of seven goes on each side.
      ([1., 2., 3., 4., 5., 6., 7., 800.], 4.5))
  def test_interquartile_mean(self, values, expected):
    self.assertAlmostEqual(
        statistics.middle_mean(np.array(values)), expected)
    both = np.array([[0.] * len(values), values])
    self.assertAlmostEqual(  # Of the last axis alone.
        statistics.middle_mean(both)[1], expected)

  @parameterized.parameters(
      ('impala_shallow', 'IMPALA shallow', 93.2, 466.4),
      ('impala_deep', 'IMPALA deep', 191.8, 957.6),
      ('impala_deep_multitask', 'IMPALA multi-task', 59.7, 176.9))
  def test_aggregates_of_published_scores_are_the_published_ones(
      self, key, name, median, mean):
    scores = atari57.PUBLISHED[key].returns
    aggregates = {a.name: a for a in _table(_atari_returns(scores)).aggregates}
    self.assertLen(aggregates, 4)
    for aggregate in aggregates.values():
      # One game each: nothing to resample.
      np.testing.assert_allclose(aggregate.interval, aggregate.value)
    paper_mean = aggregates["mean, with the constants of the paper's means"]
    self.assertAlmostEqual(aggregates['median'].value, median, delta=0.05)
    self.assertAlmostEqual(paper_mean.value, mean, delta=0.05)
    self.assertEqual(aggregates['median'].published[name], (median, False))
    self.assertEqual(paper_mean.published[name], (mean, False))
    # The others are computed from the agent's scores, as ours are.
    normalised = sorted(
        (scores[g] - atari57.RANDOM_SCORES[g])
        / (atari57.HUMAN_SCORES[g] - atari57.RANDOM_SCORES[g]) * 100
        for g in atari57.GAMES)
    for statistic, expected in (
        ('mean', sum(normalised) / 57),
        ('interquartile mean', sum(normalised[14:43]) / 29)):
      self.assertAlmostEqual(aggregates[statistic].value, expected)
      value, is_recomputed = aggregates[statistic].published[name]
      self.assertAlmostEqual(value, expected)
      self.assertTrue(is_recomputed)

  @parameterized.parameters(('impala_deep_experts', 'IMPALA experts', 44.5),
                            ('impala_deep_pbt', 'IMPALA PBT', 49.4))
  def test_dmlab30(self, key, name, published):
    returns = {l: [r] for l, r in dmlab30.PUBLISHED[key].returns.items()}
    aggregates = {a.name: a for a in _table(returns).aggregates}
    paper = aggregates["mean capped at 100, with the paper's constants"]
    # To within the rounding of what the paper prints.
    self.assertAlmostEqual(paper.value, published, delta=0.1)
    self.assertEqual(paper.published[name], (published, False))
    capped = aggregates['mean capped at 100']
    expected = dmlab30.compute_human_normalized_score(returns, 100)
    self.assertAlmostEqual(capped.value, expected)
    self.assertAlmostEqual(capped.published[name][0], expected)
    self.assertAlmostEqual(
        aggregates['mean'].value,
        dmlab30.compute_human_normalized_score(returns, None))

  def test_stratified_interval_of_a_mean(self):
    # Levels are resampled independently: variances of the means add up.
    rng = np.random.default_rng(1)
    human = dmlab30.HUMAN_SCORES
    returns = {l: rng.normal(0.5 * s, 0.2 * s, 50) for l, s in human.items()}
    [mean] = [a for a in _table(returns).aggregates if a.name == 'mean']
    variances = [
        np.var(r) / 50 / (human[l] - dmlab30.RANDOM_SCORES[l])**2
        for l, r in returns.items()]
    error = 1.96 * 100 * np.sqrt(sum(variances)) / 30
    np.testing.assert_allclose(
        mean.interval, [mean.value - error, mean.value + error],
        atol=0.05 * error)

  def test_human_normalised(self):
    # (5 + 20.7) / (14.6 + 20.7)
    self.assertAlmostEqual(
        suites.ATARI57.normalized('ALE/Pong-v5', 5), 72.80453258)
    self.assertAlmostEqual(suites.DMLAB30.normalized(
        'rooms_collect_good_objects_train', 10), 100)


class WordsTest(parameterized.TestCase):

  def _differences(self, run):
    return '\n'.join(_table({'ALE/Pong-v5': [20.] * 200}, run).differences)

  def test_what_always_differs_from_one_of_the_columns(self):
    self.assertEqual(self._differences(_run(**_PAPER)).splitlines(), [
        'Agents: one for this game alone here; the multi-task agent is one '
        'for all 57, whose settings were adapted during training, in a '
        'population.',
        'Network: deep here; IMPALA shallow has the small network.',
        "Action set: the game's own here; all 18 for the multi-task agent.",
        'No-op frames at the start of a game: 0 to 30 here, 1 to 30 in the '
        'paper.'])

  @parameterized.parameters(
      (dict(num_env_frames=20_000_000), 'Frames trained: 20,000,000 here; '),
      (dict(agent='mlp'), 'Network: mlp here; shallow or deep in the paper'),
      (dict(repeat_action_probability=0.25),
       'Sticky actions: an action is repeated with probability 0.25 here'),
      (dict(life_loss_ends_episode=False), 'Settings of training: '
       'life_loss_ends_episode False instead of True.'),
      (dict(min_policy_lag=50), 'min_policy_lag 50 instead of 0'),
      (dict(max_noops=0), 'No-op frames at the start of a game: 0 to 0 here'),
      (dict(full_action_space=True), 'Action set: all 18 here'),
      (dict(fire_on_reset=True), 'FIRE at the start of a game: pressed here'),
      (dict(max_episode_frames=18_000), 'cut off after 18,000 frames here'),
      (dict(test_greedy=True), 'Actions: the most likely actions here'),
      (dict(test_greedy=True), 'Different games: at most 31 per level'),
      (dict(batch_size=8, optimizer='adam'), 'Settings of training: '
       'batch_size 8 instead of 32, optimizer adam instead of rmsprop.'),
      (dict(addon='my:term', decay=.5, separate_baseline=True),
       'Settings of training: decay 0.5 instead of 0.99, addon my:term instead '
       'of none, separate_baseline True instead of False.'),
      (dict(trained_on=None), 'Settings of training: not known'),
      (dict(training=dict(repeat_action_probability=.25, max_noops=0)),
       'Settings of training: repeat_action_probability 0.25 instead of 0, '
       'max_noops 0 instead of 30.'),
      (dict(num_env_frames=3_000_000), 'Learning rate: falls to 0 at '
       '200,000,000 frames here, and this agent had 3,000,000: the '
         'training is unfinished.'),
      (dict(trained_on='atari57'), 'Agents: one for 57 games here'),
  )
  def test_atari(self, settings, text):
    self.assertNotIn(text, self._differences(_run(**_PAPER)))
    self.assertIn(text, self._differences(_run(**{**_PAPER, **settings})))

  def test_nothing_is_said_of_unknown_settings(self):
    differences = self._differences(_run(trained_on=None, **_PAPER))
    self.assertNotIn('Agents', differences)
    self.assertNotIn('instead of', differences)
    self.assertIn('Frames trained: 200,000,000 here', differences)

  def test_levels_that_are_not_played_yet(self):
    run = _run(level_name='ALE/Pong-v5,ALE/Pong-v5,ALE/Boxing-v5,atari57',
               trained_on='atari57')
    table = _table({'ALE/Pong-v5': [20.] * 30}, run)
    self.assertEqual(table.remarks, ('Played so far: 1 of 57 levels.',))

  def test_frames_of_the_multi_task_agent(self):
    for num_env_frames, differ in ((57 * 200_000_000, False),
                                   (200_000_000, True)):
      run = _run(num_env_frames, 'atari57', full_action_space=True)
      self.assertEqual('Frames trained' in self._differences(run), differ)

  def test_levels_that_no_environment_played_are_not_counted(self):
    for num_actors, frames, agents in (
        (1, 1, 'one for this game alone here'), (4, 4, 'one for 4 games here'),
        (56, 56, 'one for 56 games here'), (60, 57, 'one for 57 games here')):
      run = _run(frames * 200_000_000, 'atari57',
                 training=dict(num_actors=num_actors), **_PAPER)
      differences = self._differences(run)
      self.assertIn(f'Agents: {agents}', differences)
      self.assertNotIn('Frames trained', differences)

  def test_dmlab_levels_that_no_environment_played_are_not_counted(self):
    level = 'rooms_collect_good_objects_test'  # The suite's first.
    for num_actors, agents in ((1, 'one for this level alone here'),
                               (29, 'one for 29 levels'),
                               (31, 'one for 30 levels')):
      run = _run(10**9, 'dmlab30', level_name=level,
                 training=dict(num_actors=num_actors))
      table = _table({level: [1.] * 30}, run)
      self.assertIn(f'Agents: {agents}', '\n'.join(table.differences))
      self.assertEmpty(table.remarks)

  def test_levels_that_no_environment_played_were_not_trained_on(self):
    first, second, third = atari57.LEVELS[:3]
    run = _run(trained_on='atari57', level_name=f'{first},{second},{third}',
               training=dict(num_actors=2))
    table = _table({level: [1.] * 30 for level in (first, second, third)}, run)
    self.assertEqual(
        table.remarks[0],
        f'Levels that this agent was not trained on: {third}.')

  def test_greedy_games_differ_with_sticky_actions(self):
    run = _run(test_greedy=True, repeat_action_probability=0.25)
    self.assertNotIn('Different games', self._differences(run))

  def test_dmlab(self):
    run = _run(10**9, 'dmlab30', level_name='dmlab30', mode='test')
    differences = '\n'.join(_table(
        {'rooms_collect_good_objects_train': [1.] * 100}, run).differences)
    self.assertIn('Frames trained: 1,000,000,000 here; 10,000,000,000',
                  differences)
    self.assertIn('Levels of training, not of test: '
                  'rooms_collect_good_objects_train', differences)
    self.assertIn('Games per level: 100 here, 500 in the paper', differences)

  def test_dmlab_expert(self):
    level = 'explore_goal_locations_small'
    for trained_on, text in ((level, 'Agents: one for this level alone here'),
                             ('dmlab30', 'Agents: one for 30 levels'),
                             (None, 'Settings of training: not known')):
      run = _run(10**9, trained_on, level_name=level)
      differences = '\n'.join(_table({level: [1.] * 100}, run).differences)
      self.assertIn(text, differences)
      self.assertEqual(differences.count('Agents:'), trained_on is not None)
      self.assertEqual('over all levels' in differences, trained_on != level)

  @parameterized.parameters(
      ('CartPole-v1', 1, ''),
      ('ALE/Pong-v5', 4, ', max_noops 30 instead of 7'),
      ('VizdoomBasic-v1', 1, ', width 96 instead of 64'),
      ('rooms_watermaze', 4, ', width 96 instead of 64'))
  def test_other_environment_than_that_of_training(self, level, repeats, more):
    returns, settings = {level: [20.] * 30}, dict(
        level_name=level, trained_on=level)
    self.assertEmpty(_table(returns, _run(**settings)).remarks)
    other = dict(num_action_repeats=2, max_noops=7, width=64, step_timeout_s=9.,
                 life_loss_ends_episode=False)
    table = _table(returns, _run(training=other, **settings))
    self.assertEqual(table.remarks, (
        f'Not the environment of the training: num_action_repeats {repeats} '
        f'instead of 2{more}.',))
    text = score_files.to_markdown(table)  # It comes before the scores.
    self.assertLess(text.index(table.remarks[0]), text.index('| level'))
    unknown = _run(**{**settings, 'trained_on': None})
    self.assertEmpty(_table(returns, unknown).remarks)

  @parameterized.parameters(
      ('test_greedy', True, False), ('max_episode_steps', 100, 1_000_000))
  def test_other_games_than_those_of_the_training(self, name, value, before):
    run = _run(level_name='catch', trained_on='catch',
               training={name: before}, **{name: value})
    self.assertEqual(_table({'catch': [1.] * 30}, run).remarks, (
        f'Not the settings of the training: {name} {value} instead of '
        f'{before}.',))

  def test_levels_of_the_training(self):
    remark = 'Levels that this agent was not trained on: '
    for level, trained_on, is_new in (
        ('CartPole-v1', 'CartPole-v0', True),
        ('CartPole-v1', 'catch,CartPole-v1', False),
        ('ALE/Pong-v5', 'ALE/Breakout-v5', True),
        ('ALE/Pong-v5', 'atari57', False),
        ('rooms_collect_good_objects_test', 'dmlab30', False),
        ('rooms_collect_good_objects_train', 'dmlab30', False)):
      run = _run(trained_on=trained_on, level_name=level)
      self.assertEqual(_table({level: [20.] * 30}, run).remarks,
                       (f'{remark}{level}.',) if is_new else ())

  def test_other_agents_and_constants(self):
    for returns, lines in (
        (_atari_returns(atari57.HUMAN_SCORES), (
            '- Reactor, experts: median of 187 (IMPALA, arXiv:1802.01561, '
            'Tables C.1 and 4)', 'a human score of 9.3 in Pong')),
        ({l: [r] for l, r in dmlab30.HUMAN_SCORES.items()}, (
            '- IMPALA, deep: mean capped at 100 of 46.5 (IMPALA, '
            'arXiv:1802.01561, Table 3)', 'its table B.1'))):
      text = score_files.to_markdown(_table(returns))
      for line in lines:
        self.assertIn(line, text)
      # The median of A3C is from memory.
      self.assertNotIn('54.9', text)

  def test_games(self):
    few = _table({'ALE/Pong-v5': [20.] * 29})
    self.assertIn('Too few episodes: 29 of ALE/Pong-v5.', few.remarks[0])
    self.assertIn('the paper plays 200', few.remarks[0])
    self.assertIn('Too few episodes', score_files.to_markdown(few))
    enough = _table({'ALE/Pong-v5': [20.] * 30})
    self.assertEmpty(enough.remarks)
    self.assertIn('Games per level: 30 here, 200 in the paper.',
                  enough.differences)

  def test_cut_games(self):
    rows = (score_table.make_row('CartPole-v1', [20.] * 30, 2),
            score_table.make_row('Acrobot-v1', [20.] * 30))
    run = _run(trained_on=None, level_name='CartPole-v1,Acrobot-v1',
               max_episode_steps=5000)._replace(rows=rows)
    table = score_table.make_table([run])
    self.assertEqual(table.remarks, (
        'Cut games: 2 of 30 of CartPole-v1, after 5,000 steps '
        '(--max_episode_steps). The returns until then count.',))

  def test_part_of_a_suite_has_no_aggregates(self):
    table = _table({'ALE/Pong-v5': [1.] * 30, 'ALE/Adventure-v5': [2.] * 30},
                   _run(trained_on='ALE/Pong-v5,ALE/Adventure-v5'))
    self.assertEmpty(table.aggregates)
    self.assertIn('each of its 57 levels once; the 2 levels here have 1',
                  table.remarks[0])
    self.assertEqual(table.remarks[1], 'Not in Atari-57: ALE/Adventure-v5.')

  def test_training_level_beside_its_test_level(self):
    returns = {l: [1.] * 30 for l in dmlab30.levels(is_test=True)}
    self.assertLen(_table(returns).aggregates, 4)
    twice = returns | {'rooms_collect_good_objects_train': [2.] * 30}
    self.assertEmpty(_table(twice).aggregates)


class FormatsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.table = _table({'ALE/Pong-v5': [15., 20., 21.] * 10})

  def test_markdown(self):
    text = score_files.to_markdown(self.table)
    lines = text.splitlines()
    head, rule, row = [line for line in lines if line.startswith('|')]
    self.assertLen({len(head), len(rule), len(row)}, 1)
    cells = dict(zip(*([c.strip() for c in line.strip('|').split('|')]
                       for line in (head, row))))
    low, high = self.table.rows[0].interval
    self.assertEqual(cells, {
        'level': 'ALE/Pong-v5', 'games': '30', 'mean': '18.67', 'std': '2.62',
        '95 % interval': f'{low:.2f} to {high:.2f}',
        'normalised': '111.5', 'random [1]': '-20.70', 'human [2]': '14.60',
        'IMPALA shallow [3]': '20.40 (116.4)',
        'IMPALA deep [4]': '20.98 (118.1)',
        'IMPALA multi-task [5]': '8.58 (82.9)'})
    for difference in self.table.differences:
      self.assertIn(f'- {difference}', lines)
    self.assertIn('- [3] IMPALA shallow: IMPALA, arXiv:1802.01561, Tables C.1 '
                  'and 4', lines)

  def test_json_has_every_return_and_setting(self):
    content = json.loads(score_files.to_json(self.table))
    [agent] = content['agents']
    [level] = agent['levels']
    self.assertEqual(level['returns'], [15., 20., 21.] * 10)
    self.assertEqual(level['published']['IMPALA deep']['score'], 20.98)
    self.assertEqual(agent['settings'],
                     dataclasses.asdict(self.table.runs[0].config))
    self.assertEqual(content['differences'], list(self.table.differences))

  def test_csv(self):
    returns = _atari_returns(atari57.HUMAN_SCORES)
    text = score_files.to_csv(_table(returns))
    rows = list(csv.DictReader(io.StringIO(text)))
    self.assertLen(rows, 57 * 6 + 4 * 4)
    [pong] = [r for r in rows if r['level'] == 'ALE/Pong-v5'
              and r['agent'] == 'yours']
    self.assertEqual((pong['value'], pong['games']), ('14.6', '1'))
    self.assertAlmostEqual(float(pong['human_normalized_percent']), 100)
    [median] = [r for r in rows if r['statistic'] == 'median'
                and r['agent'] == 'IMPALA multi-task']
    self.assertEqual(median['value'], '59.7')
    self.assertTrue(all(r['source'] for r in rows if r['agent'] != 'yours'))

  def test_levels_that_were_trained_together_share_the_frames(self):
    levels = ['HalfCheetah-v5', 'Hopper-v5']
    for trained_on, num_actors, num_steps in (
        (levels[:1], 8, 1_000_000), (levels, 8, 500_000),
        (levels, 1, 1_000_000), (2 * levels[:1], 8, 1_000_000)):
      table = _table({levels[0]: [5.] * 30}, _run(
          num_env_frames=1_000_000, trained_on=','.join(trained_on),
          training=dict(num_actors=num_actors),
          level_name=levels[0], algorithm='sac', num_action_repeats=1))
      [comparison] = table.comparisons
      self.assertEqual(comparison.num_agent_steps, num_steps)

  def test_level_without_published_scores(self):
    table = _table({'CartPole-v1': [500.] * 30}, _run(
        level_name='CartPole-v1', trained_on='CartPole-v1'))
    self.assertEmpty(table.differences + table.remarks)
    self.assertIn('| CartPole-v1 |    30 | 500.00 | 0.00 | 500.00 to 500.00 |',
                  score_files.to_markdown(table))
    self.assertNotIn('Sources', score_files.to_markdown(table))
    self.assertNotIn('published', json.loads(
        score_files.to_json(table))['agents'][0]['levels'][0])
    self.assertLen(score_files.to_csv(table).splitlines(), 2)

  def test_files_do_not_overwrite_each_other(self):
    logdir = self.create_tempdir().full_path
    # The second is asked for before anything is written to the first.
    first, second = (score_files.reserve_path(logdir, 1000) for _ in range(2))
    score_files.write(self.table, first)
    self.assertEqual([os.path.basename(p) for p in (first, second)],
                     ['scores-1000-1', 'scores-1000-2'])
    self.assertCountEqual(os.listdir(logdir), [
        'scores-1000-1.json', 'scores-1000-1.csv', 'scores-1000-1.md',
        'scores-1000-2.json'])
    # If a table cannot be finished, the one before it stays whole.
    with open(first + '.json') as f:
      before = f.read()
    with mock.patch.object(os, 'replace', side_effect=OSError(28, 'full')):
      with self.assertRaises(OSError):
        score_files.write(_table({'ALE/Pong-v5': [0.]}), first)
    with open(first + '.json') as f:
      self.assertEqual(f.read(), before)


class SeveralAgentsTest(parameterized.TestCase):

  def _write(self, table, name='run'):
    logdir = self.create_tempdir().mkdir(name).full_path
    [run] = table.runs
    score_files.write(
        table, score_files.reserve_path(logdir, run.num_env_frames))
    return logdir

  def _compare(self, *logdirs):
    config = dataclasses.replace(_run().config, mode='table',
                                 logdir=','.join(logdirs))
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
      self.assertEqual(comparing.compare(config), 0)
    return stdout.getvalue()

  def _read(self, path):
    return score_files.read(path)

  @parameterized.parameters(
      ('impala_shallow', 'shallow', '93.2', '466.4'),
      ('impala_deep', 'deep', '191.8', '957.6'))
  @pytest.mark.slow
  def test_experts_of_the_paper(self, key, agent, median, mean):
    logdirs = [
        self._write(_table(
            {level: returns * 200},
            _run(trained_on=level, **{**_PAPER, 'agent': agent})))
        for level, returns in _atari_returns(
            atari57.PUBLISHED[key].returns).items()]
    text = self._compare(*logdirs)
    self.assertStartsWith(
        text, '# Test of 57 agents after 200,000,000 frames')
    lines = text.splitlines()
    for name, value in (
        ('median ', median),
        ("mean, with the constants of the paper's means ", mean)):
      [line] = [l for l in lines if l.startswith(f'| {name}')]
      self.assertEqual(line.split('|')[2].strip(), value)
    [agents] = [l for l in lines if l.startswith('- Agents: ')]
    self.assertIn('one for this game alone here', agents)
    self.assertIn(f'\n57. {logdirs[56]}/scores-200000000-1, 200,000,000 frames',
                  text)
    path = os.path.join(logdirs[0], 'scores-57_agents-1')
    self.assertIn(f'Wrote {path}.json, .csv and .md.', text)
    with open(f'{path}.json') as f:
      content = json.load(f)
    self.assertLen(content['agents'], 57)
    self.assertAlmostEqual(content['aggregates'][0]['value'], float(median),
                           delta=0.05)
    with open(f'{path}.csv') as f:
      ours = [r for r in csv.DictReader(f)
              if r['agent'] == 'yours' and r['statistic'] == 'mean return']
    self.assertEqual([r['source'] for r in ours],
                     [f'{d}/scores-200000000-1' for d in logdirs])
    # It is no test of an agent, and not read as one.
    self.assertEqual(self._read(logdirs[0]).num_env_frames, 200_000_000)

  def test_directories_named_like_patterns(self):
    tables = [_table({'CartPole-v1': [value] * 30}, _run(
        level_name='CartPole-v1', trained_on='CartPole-v1'))
              for value in (5., 7.)]
    one, two = (self._write(table, name)
                for table, name in zip(tables, ('a[b]*?', 'a*')))
    self.assertEqual([self._read(logdir).rows[0].mean for logdir in (one, two)],
                     [5, 7])
    self.assertIn(f'Wrote {one}/scores-2_agents-1.json',
                  self._compare(one, two))

  def test_what_is_true_of_some_agents_only(self):
    runs = [
        _played({'ALE/Pong-v5': [20.] * 30}, _run(10**6)),
        _played({'ALE/Breakout-v5': [9.] * 20},
                _run(10**7, 'ALE/Breakout-v5', test_greedy=True,
                     training=dict(max_noops=0)))]
    table = score_table.make_table(runs)
    self.assertEqual(
        table.remarks[0], 'Not the environment of the training: max_noops 30 '
        'instead of 0 (agent 2).')
    self.assertIn('Too few episodes: 20 of ALE/Breakout-v5.', table.remarks[1])
    self.assertContainsSubset(
        ['Tested with --test_greedy=false (agent 1).',
         'Tested with --test_greedy=true (agent 2).'], table.remarks)
    text = '\n'.join(table.differences)
    self.assertIn('Frames trained: 1,000,000 here', text)
    self.assertIn('Frames trained: 10,000,000 here', text)
    self.assertIn('code samples actions (agent 2).', text)
    self.assertIn('1 to 30 in the paper.', text)
    text = score_files.to_markdown(table)
    self.assertStartsWith(
        text, '# Test of 2 agents after 1,000,000 to 10,000,000')
    rows = [line.split('|')[1:3] for line in text.splitlines()
            if line.startswith('| ALE/')]
    self.assertEqual([[cell.strip() for cell in row] for row in rows],
                     [['ALE/Pong-v5', '1'], ['ALE/Breakout-v5', '2']])

  def test_many_agents(self):
    runs = [_played({'CartPole-v1': [9.] * 30}, _run(
        trained_on='CartPole-v1', level_name='CartPole-v1',
        training=dict(num_action_repeats=2 if i else 1))) for i in range(7)]
    remark, _ = score_table.make_table(runs).remarks  # And equal seeds.
    self.assertEndsWith(remark, 'instead of 2 (agents 2, 3, 4, 5, 6, ...).')

  def test_agents_of_unknown_settings_are_not_in_the_statistics(self):
    known, unknown = [_played({'catch': [1.] * 30}, _run(
        trained_on=trained_on, level_name='catch')) for trained_on in (
            'catch', None)]
    seeds = [known._replace(trained_with=dataclasses.replace(
        known.trained_with, seed=seed)) for seed in (1, 2)]
    remark = ('Not in the statistics over runs: /tmp/lost, as the settings of '
              'the training are not known.')
    self.assertIn(remark, score_table.make_table(
        [*seeds, unknown._replace(source='/tmp/lost')]).remarks)
    self.assertNotIn('Not in the', ''.join(score_table.make_table(
        seeds).remarks))

  def test_table_of_a_test_is_read_as_it_was(self):
    for trained_on in ('ALE/Pong-v5', None):
      table = _table({'ALE/Pong-v5': [15., 20., 21.] * 10}, _run(
          trained_on=trained_on, level_name='atari57', max_noops=3)._replace(
              changed=('batch_size 8, then 9', 'momentum 0, then 0.5')))
      self.assertIn('Settings that changed in the training: batch_size 8, then '
                    '9; momentum 0, then 0.5.', table.remarks)
      logdir = self._write(table)
      path = f'{logdir}/scores-200000000-1'
      expected = table.runs[0]._replace(source=path)
      for name in (logdir, f'{path}.json'):
        self.assertEqual(self._read(name), expected)
      self.assertIn('Played so far: 1 of 57 levels.', self._compare(logdir))

  def test_tests_of_other_versions_are_read(self):
    logdir = self._write(_table({'CartPole-v1': [9.] * 30}, _run(
        trained_on='CartPole-v1', level_name='CartPole-v1', seed=5,
        max_noops=7)))
    path = os.path.join(logdir, 'scores-200000000-1.json')
    with open(path) as f:
      content = json.load(f)
    for settings in ('settings', 'trained_with'):
      del content['agents'][0][settings]['max_noops']
      content['agents'][0].pop('changed', None)
      content['agents'][0][settings]['gone'] = 1
    with open(path, 'w') as f:
      json.dump(content, f)
    run = score_files.read(path)
    for settings in (run.config, run.trained_with):
      self.assertEqual((settings.max_noops, settings.seed), (30, 5))

  def test_numbers_of_cut_games_are_read(self):
    run = _run()._replace(
        rows=(score_table.make_row('ALE/Pong-v5', [20.] * 30, 2),))
    logdir = self._write(score_table.make_table([run]))
    self.assertEqual(self._read(logdir).rows, run.rows)
    path = f'{logdir}/scores-200000000-1.json'
    with open(path, encoding='utf-8') as f:
      content = f.read()
    self.assertIn('"num_cut": 2', content)
    with open(path, 'w', encoding='utf-8') as f:
      f.write(content.replace('num_cut', 'not_of_older_versions'))
    self.assertEqual(self._read(logdir).rows[0].num_cut, 0)

  def test_a_test_with_cut_games_is_whole(self):
    for num_cut, num_asked in (0, 30), (1, 30), (1, 29):
      run = _run(level_name='ALE/Pong-v5')._replace(rows=(
          score_table.make_row('ALE/Pong-v5', [20.] * 29, num_cut),))
      run = run._replace(config=dataclasses.replace(
          run.config, test_num_episodes=num_asked))
      logdir = self._write(score_table.make_table([run]))
      if num_cut and num_asked == 30:
        self.assertEqual(score_files.read(logdir, 30).rows, run.rows)
      else:
        with self.assertRaisesRegex(errors.ConfigError, 'no test of 30 games'):
          score_files.read(logdir, 30)

  def test_a_stopped_test_does_not_hide_a_whole_one(self):
    logdir = self.create_tempdir().full_path
    run = _run(level_name='catch,memory')
    for frames, number, levels in (
        (9, 2, ['catch']), (9, 1, ['catch', 'memory']),
        (8, 1, ['catch', 'memory'])):
      score_files.write(
          _table(dict.fromkeys(levels, [1.]),
                 run._replace(num_env_frames=frames)),
          os.path.join(logdir, f'scores-{frames}-{number}'))
    for name in 'scores-9-1', 'scores-9-2', 'scores-8-1':
      self.assertEqual(self._read(logdir).source, f'{logdir}/{name}')
      os.remove(f'{logdir}/{name}.json')

  def test_latest_test_is_read(self):
    logdir = self.create_tempdir().full_path
    for name, value in (('scores-9-1', 1.), ('scores-10-9', 2.),
                        ('scores-10-10', 3.), ('scores-9-11', 4.)):
      score_files.write(_table({'ALE/Pong-v5': [value]}),
                        os.path.join(logdir, name))
    score_files.reserve_path(logdir, 11)  # It was not written.
    self.assertEqual(self._read(logdir).rows[0].mean, 3)

  @parameterized.parameters(
      ('num_env_frames', 'many'), ('num_env_frames', 1.5), ('levels', []),
      ('settings', {}), ('settings', None), ('settings', 7), ('levels', [7]),
      ('trained_with', 7), ('levels', [{'level': 7, 'returns': [1]}]),
      ('levels', [{'level': 'a', 'returns': []}]),
      ('levels', [{'level': 'a', 'returns': 7}]),
      ('levels', [{'level': 'a', 'returns': ['x']}]),
      ('levels', [{'level': 'a', 'returns': [None]}]),
      ('levels', [{'level': 'a', 'returns': [[1]]}]),
      ('levels', [{'level': 'a', 'returns': [1, float('nan')]}]),
      ('levels', [{'level': 'a', 'returns': [float('-inf'), 1]}]),
      ('levels', [{'level': 'a', 'returns': [10**400]}]),
      ('levels', [{'level': 'a', 'returns': [1], 'num_cut': 'x'}]))
  def test_an_edited_file_is_refused(self, name, value):
    path = os.path.join(self.create_tempdir().full_path, 'scores-1-1')
    score_files.write(_table({'ALE/Pong-v5': [1.]}), path)
    path += '.json'
    with open(path, encoding='utf-8') as f:
      written = json.load(f)
    written['agents'][0][name] = value
    with open(path, 'w', encoding='utf-8') as f:
      json.dump(written, f)
    with self.assertRaisesRegex(errors.ConfigError, 'scores-1-1.json cannot'):
      score_files.read(path)

  @parameterized.parameters(
      ({}, 'holds no table of a test'),
      ({'scores-1-1.csv': 'x'}, 'holds no table of a test'),
      ({'scores-1-1.json': ''}, 'holds no table of a test'),
      ({'scores-1-1.json': '{'}, 'scores-1-1.json cannot be read'),
      ({'scores-1-1.json': '{"agents": [{}, {}]}'},
       'cannot be read as the test of an agent: it is a table of 2 agents'),
      ({'scores-1-1.json': '{"agents": [{}]}'},
       'scores-1-1.json cannot be read'))
  def test_nothing_to_read(self, files, text):
    directory = self.create_tempdir()
    for name, content in files.items():
      directory.create_file(name, content)
    with self.assertRaisesRegex(errors.ConfigError, text):
      self._read(directory.full_path)
    with self.assertRaisesRegex(errors.ConfigError, 'No such file'):
      self._read(directory.full_path + '/none')


MUTATIONS = (
    dict(file='scores/protocol',
         catches='test_other_games_than_those_of_the_training', rows=(
             ('the table of a greedy test has no remark',
              "('settings', OF_GAMES)", "('settings', ())"),
         )),
    dict(file='scores/protocol', catches='test_atari', rows=(
        ('a term of the loss is no difference', " addon='',", ''),
        ('another decay is no difference', ' decay=0.99,', ''),
        ('another network of the baseline is no difference',
         ' separate_baseline=False,', ''),
    )),
    dict(file='scores/files',
         catches='test_table_of_a_test_is_read_as_it_was', rows=(
             ('changes within a training are lost',
              ", changed=tuple(agent.get('changed', ()))", ''),
         )),
    dict(file='scores/files',
         catches='test_a_stopped_test_does_not_hide_a_whole_one', rows=(
             ('an older agent counts',
              'if stopped and run.num_env_frames < stopped.num_env_frames',
              'if False'),
             ('stopped tests count', 'if len(run.rows) == len(', 'if len('),
         )),
    dict(file='scores/files', catches='test_a_test_with_cut_games_is_whole',
         rows=(
             ('cut games are missing', ' or row.num_cut and is_long', ''),
             ('short tests are whole', ' and is_long', ''),
         )),
    dict(file='scores/table',
         catches='test_levels_that_were_trained_together_share_the_frames',
         rows=(
        ('each level has all frames',
         '// trained_with.num_action_repeats // num_levels',
         '// trained_with.num_action_repeats'),
    )),
    dict(file='scores/files', catches='test_an_edited_file_is_refused', rows=(
        ('returns that are no numbers',
         "if not all(map(math.isfinite, level['returns'])):",
         "if not level['returns']:"),
        ('returns that are too large', ', OverflowError) as e', ') as e'),
    )),
)


if __name__ == '__main__':
  absltest.main()
