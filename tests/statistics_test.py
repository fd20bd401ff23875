# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of statistics over runs, against rliable and slow ground truth."""

import itertools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import rliable_values
from scalable_agent.environments import toys
from scalable_agent.scores import group_text
from scalable_agent.scores import groups
from scalable_agent.scores import statistics
from scalable_agent.scores import suites
from scalable_agent.scores import table
from scalable_agent.settings import config as config_lib
from scalable_agent.settings.environment_settings import EnvironmentSettings

_SETS = rliable_values.score_sets()
# Printed by tests/rliable_values.py: interquartile mean, median, mean and
# optimality gap, with intervals; the probability of improvement with its
# interval; the performance profile.
_RLIABLE = {
    'normal': (
        [102.476923, 107.081, 103.87, 9.1764],
        [[94.89, 111.19], [95.62, 113.15], [96.99, 110.91], [5.74, 12.95]],
        (0.568, 0.456, 0.680), [1., 0.98, 0.54, 0.04]),
    'skewed': (
        [62.14925, 80.613333, 84.594359, 41.075769],
        [[51.48, 75.24], [51.6, 85.94], [70.26, 99.71], [35.26, 47.14]],
        (0.555556, 0.466, 0.645), [1., 0.564103, 0.269231, 0.166667]),
    'ties': (
        [93.75, 85., 86.666667, 26.666667],
        [[65.62, 115.62], [60., 110.], [68.33, 105.], [13.33, 41.67]],
        (0.464583, 0.304, 0.615), [0.8, 0.666667, 0.266667, 0.]),
}


class StatisticsTest(parameterized.TestCase):

  @parameterized.parameters('normal', 'skewed', 'ties')
  def test_values_are_those_of_rliable(self, name):
    x, y = _SETS[name]
    values, intervals, probability, profile = _RLIABLE[name]
    found = statistics.estimates(x, list(statistics.OVER_LEVELS.values()))
    np.testing.assert_allclose([e.value for e in found], values, rtol=1e-6)
    # Both bootstraps draw at random.
    for estimate, (low, high) in zip(found, intervals):
      np.testing.assert_allclose(
          [estimate.low, estimate.high], [low, high], atol=0.05 * (high - low))
    contest = statistics.contest(y, x)
    np.testing.assert_allclose(contest.probability.value, probability[0],
                               atol=1e-6)
    np.testing.assert_allclose(contest.probability[1:], probability[1:],
                               atol=0.02)
    found = statistics.profile(x, rliable_values.THRESHOLDS, 10)
    np.testing.assert_allclose([e.value / 100 for e in found], profile,
                               atol=1e-6)

  def test_interval_is_that_of_all_resamples(self):
    # Every choice of three runs of each of two levels, by loops.
    scores = np.array([[1., 10.], [4., 0.], [40., 7.]])
    gaps, medians = [], []
    for rows in itertools.product(range(3), repeat=6):
      drawn = [[scores[rows[3 * level + run], level] for level in range(2)]
               for run in range(3)]
      gaps.append(100 - np.mean(drawn))
      medians.append(np.mean(np.median(drawn, axis=0)))
    found = statistics.estimates(
        scores, [statistics.optimality_gap, statistics.median_run])
    for estimate, values in zip(found, (gaps, medians)):
      for end, quantile in (estimate.low, .025), (estimate.high, .975):
        self.assertBetween(end, *np.quantile(
            values, [max(quantile - .01, 0), min(quantile + .01, 1)]))

  def test_intervals_contain_the_true_mean(self):
    # The shares that `MIN_RUNS` names; 400 experiments have an error of 0.02.
    rng = np.random.default_rng(0)
    for runs, levels, share in ((3, 1, .75), (5, 10, .92), (10, 1, .93)):
      hits = [
          low <= 0 <= high for _ in range(400)
          for [(_, low, high)] in [statistics.estimates(
              rng.normal(size=(runs, levels)),
              [statistics.interquartile_mean], 250)]]
      self.assertAlmostEqual(np.mean(hits), share, delta=.04)

  def test_as_many_seeds_as_said_decide(self):
    rng = np.random.default_rng(1)
    # A difference of half a standard deviation, exactly.
    x, y = (np.quantile(rng.normal(size=100_000), (np.arange(12) + .5) / 12)
            [:, None] for _ in range(2))
    contest = statistics.contest(x + .5, y)
    self.assertBetween(contest.difference.low, -1, 0)
    seeds = 12 + contest.more_seeds
    self.assertBetween(seeds, 40, 100)
    decided = [
        statistics.contest(rng.normal(.5, 1, (seeds, 1)),
                           rng.normal(0, 1, (seeds, 1)), 250).more_seeds == 0
        for _ in range(200)]
    self.assertBetween(np.mean(decided), .7, .92)

  def test_few_seeds_do_not_decide(self):
    x = np.arange(5.)[:, None]
    for runs, text in ((4, 'too few seeds'), (5, 'decided')):
      contest = statistics.contest(x[:runs] + 9, x)
      self.assertEqual(contest.more_seeds, None if runs < 5 else 0)
      comparison = groups.Comparison(
          'a', 'b', True, contest, contest.probability)
      self.assertEqual(group_text._comparison_cells(comparison)[-1], text)

  def test_seeds_of_easy_and_hopeless_comparisons(self):
    x = np.arange(5.)[:, None]
    self.assertEqual(statistics.contest(x + 9, x).more_seeds, 0)
    self.assertEqual(statistics.contest(x, x + 9).more_seeds, 0)
    self.assertIsNone(statistics.contest(x, x).more_seeds)
    self.assertIsNone(statistics.contest(x + 1e-3, x).more_seeds)
    self.assertIsNone(statistics.contest(x[:1], x[:1]).more_seeds)


def _run(seed, score, level='catch', num_env_frames=1000, group='',
         **settings):
  config = config_lib.Config(seed=seed, level_name=level, **settings)
  return groups.SeedRun(config, num_env_frames, {level: score}, group)


def _of(runs):
  return groups.report(*groups.of_runs(runs))


class GroupsTest(parameterized.TestCase):

  def test_runs_that_differ_by_seed_and_level_are_a_group(self):
    runs = [_run(seed, seed / 10, level, logdir=f'/tmp/{seed}{level}', **other)
            for other in ({}, {'entropy_cost': .5}) for seed in (3, 1, 2)
            for level in ('memory', 'catch')]
    found, remarks = groups.of_runs(runs)
    self.assertEqual([g.name for g in found],
                     ['entropy_cost=0.00025', 'entropy_cost=0.5'])
    self.assertEmpty(remarks)
    for group in found:
      self.assertEqual(list(group.scores), ['catch', 'memory'])
      for scores in group.scores.values():  # In the order of seeds.
        np.testing.assert_allclose(scores, [.1, .2, .3])
      np.testing.assert_allclose(
          group.percents()[0], [(.1 + .6) / 1.6 * 100, 10])

  def test_reports_do_not_split_a_group(self):
    runs = [_run(seed, .5, **settings) for seed, settings in enumerate((
        dict(debug=True, log_episodes=True, progress_secs=1.),
        dict(save_summaries_secs=1., save_checkpoint_secs=1., video_secs=9.),
        dict(video_num_episodes=1, video_format='gif', video_text=True),
        dict(plot_file='a.png', plot_num_episodes=1, export_format='tflite'),
        dict(allow_other_task=True)))]
    found, remarks = groups.of_runs(runs)
    self.assertEqual([group.num_runs for group in found], [5])
    self.assertEmpty(remarks)

  def test_an_agent_of_several_levels_is_no_seed_of_experts(self):
    experts = [_run(seed, .5) for seed in (1, 2)]
    elsewhere = groups.SeedRun(
        config_lib.Config(seed=4, level_name='memory'), 1000, {'catch': 0.})
    of_both = [_run(3, 0.)._replace(config=config_lib.Config(
        seed=3, level_name='catch,memory'))]
    found, _ = groups.of_runs([*experts, *of_both, elsewhere])
    self.assertEqual(
        [(group.name, group.scores['catch'].tolist()) for group in found],
        [('level_name=one each', [.5, .5]), ('level_name=catch,memory', [0.]),
         ('level_name=memory', [0.])])

  def test_experts_of_training_levels_are_experts(self):
    # As DeepMind's experts: trained on `..._train`, tested on `..._test`.
    name = 'rooms_collect_good_objects'
    found, _ = groups.of_runs([groups.SeedRun(config_lib.Config(
        seed=seed, level_name=trained_on), 1000, {tested_on: .5})
        for seed in (1, 2) for trained_on, tested_on in (
            ('rooms_watermaze', 'rooms_watermaze'),
            (f'{name}_train', f'{name}_test'))])
    self.assertEqual([list(group.scores) for group in found],
                     [[f'{name}_test', 'rooms_watermaze']])

  def test_names_need_at_most_three_settings(self):
    runs = [_run(1, 0., entropy_cost=a, baseline_cost=b, discounting=c,
                 learning_rate=d) for a, b, c, d in itertools.product(
                     (.1, .2), repeat=4)]
    self.assertStartsWith(groups.of_runs(runs)[0][15].name, '16 ')
    [group] = groups.of_runs(runs[:1])[0]
    self.assertEqual(group.name, 'all runs')
    one, other = groups.of_runs([
        _run(1, 0.), _run(1, 0., algorithm='appo')])[0]
    self.assertEqual((one.name, other.name),
                     ('algorithm=impala', 'algorithm=appo'))

  def test_statistics_of_a_group(self):
    report = _of([_run(seed, score) for seed, score in enumerate(
        [.1, .5, .9, 1., -.2])])
    raw, percent = report.lines
    self.assertEqual((raw.level, raw.num_runs), ('catch', 5))
    np.testing.assert_allclose(
        [e.value for e in raw.estimates.values()], [.5, .5, .46])
    self.assertEqual(percent.level, '')
    np.testing.assert_allclose(
        percent.estimates['mean'].value, (.46 + .6) / 1.6 * 100)
    self.assertEqual([e.value for e in percent.profile],
                     [80, 60, 40, 0, 0, 0])
    self.assertEmpty(report.remarks + report.comparisons)

  def test_one_run_has_no_statistics(self):
    self.assertEqual(_of([_run(1, .5), _run(1, .5, entropy_cost=.5)]),
                     groups.RunStatistics())

  def test_returns_without_a_scale_have_comparisons(self):
    runs = [_run(seed, 10. * seed + bonus, level, entropy_cost=cost)
            for seed in range(5) for bonus, cost in ((0, .1), (100, .2))
            for level in ('CartPole-v1', 'Acrobot-v1')]
    report = _of(runs)
    [comparison] = report.comparisons
    self.assertEqual(comparison.probability.value, 0)
    self.assertIsNone(comparison.contest)
    self.assertFalse([line for line in report.lines if not line.level])
    self.assertIn('No numbers over the levels of entropy_cost=0.1: returns of '
                  'Acrobot-v1, CartPole-v1 have no known scale.',
                  report.remarks)
    [comparison] = _of(runs[::2]).comparisons  # One level has the raw scale.
    self.assertEqual(comparison.contest.difference.value, -100)
    self.assertFalse(comparison.is_percent)

  @parameterized.parameters(
      ([_run(1, 0.), _run(1, 1.), _run(2, 1.)],
       'No statistics over the seeds of all runs: seed 1 on catch is there 2 '
       'times.'),
      ([_run(4, 0.), _run(4, 1.), _run(4, 1.)],
       'No statistics over runs: all have --seed=4.'),
      ([_run(1, 0.), _run(1, 1.), _run(2, 0., entropy_cost=.5)],
       'No statistics over the runs of entropy_cost=0.00025: all have '
       '--seed=1.'),
      ([_run(1, 0.), _run(2, 1.), _run(3, 1., 'memory')],
       'No numbers over the levels of all runs: 1 to 2 seeds'),
      ([_run(1, 0.), _run(2, 1., num_env_frames=2000)],
       'Different lengths in all runs: 1,000 to 2,000 frames.'),
      ([_run(1, 0., num_actors=4), _run(2, 1., num_actors=6)],
       'No statistics over seeds 1, 2: the runs also differ in other settings '
       '(num_actors=4, num_actors=6).'),
      ([_run(1, 0.), _run(2, 1.)], 'Too few seeds: 2. With fewer than 5'),
      ([_run(1, 0.), _run(2, 1.), _run(1, 1., 'memory', entropy_cost=.5),
        _run(2, 1., 'memory', entropy_cost=.5)],
       'No comparison of entropy_cost=0.00025 with entropy_cost=0.5: only one '
       'of both has catch, memory.'),
      ([_run(1, 0.), _run(2, 1.), _run(1, 1., entropy_cost=.5)],
       'No statistics of entropy_cost=0.5, and no comparison with other runs: '
       'each level has one seed only.'),
      ([_run(seed, 0., level, entropy_cost=cost) for seed in (1, 2, 3)
        for level in ('catch', 'memory') for cost in (.1, .2)
        if (seed, level, cost) != (3, 'memory', .2)],
       'No comparison of entropy_cost=0.1 with entropy_cost=0.2: the levels of '
       'entropy_cost=0.2 have different numbers of seeds.'),
      ([_run(1, 0., group='a'), _run(2, 1., num_env_frames=2000, group='a')],
       'Different lengths in a on catch: 1,000 to 2,000 frames.'),
      ([_run(seed, 0., level, group='a', num_actors=actors)
        for seed, level, actors in ((1, 'catch', 4), (2, 'catch', 4),
                                    (1, 'memory', 4), (2, 'memory', 6))],
       'Seeds of a differ in other settings: num_actors on memory.'))
  def test_remarks(self, runs, text):
    self.assertIn(text, '\n'.join(_of(runs).remarks))

  @parameterized.parameters('', 'AB')
  def test_groups_of_different_lengths(self, names):
    def remarks(levels, *lengths):
      report = _of([
          _run(seed, cost, level, frames * number, *names[i:i + 1],
               entropy_cost=cost)
          for i, (cost, frames) in enumerate(zip((.1, .2), lengths))
          for number, level in enumerate(levels, 1) for seed in range(5)])
      self.assertLen(report.comparisons, 1)
      # Levels of a suite may differ.
      return [remark for remark in report.remarks
              if not remark.startswith('Different lengths in entropy')]

    first, second = names or ('entropy_cost=0.1', 'entropy_cost=0.2')
    text = (f'Different lengths of {first} and {second}, which are compared: '
            '1,000 and 100,000 frames on catch')
    self.assertEqual(remarks(['catch'], 1000, 100_000), [f'{text}.'])
    self.assertEqual(remarks(['catch', 'memory'], 1000, 100_000),
                     [f'{text}, one of 2 such levels.'])
    self.assertEmpty(remarks(['catch', 'memory'], 1000, 1000))
    self.assertEmpty(remarks(['catch', 'memory'], 1000, 1100))

  def test_groups_that_overlap_in_length(self):
    remarks = _of([
        _run(seed, 0., num_env_frames=frames, entropy_cost=cost)
        for cost, most in ((.1, 1000), (.2, 3000))
        for seed, frames in ((1, 1000), (2, most))]).remarks
    self.assertIn(
        'Different lengths of entropy_cost=0.1 and entropy_cost=0.2, which are '
        'compared: 1,000 and 1,000 to 3,000 frames on catch.', remarks)

  def test_table_has_statistics(self):
    runs = []
    for seed in range(5):
      config = config_lib.Config(seed=seed, level_name='ALE/Pong-v5')
      runs.append(table.Run(config, 1000, config, (
          table.make_row('ALE/Pong-v5', [float(seed), 4.]),)))
    over_runs = table.make_table(runs).over_runs
    self.assertAlmostEqual(over_runs.lines[0].estimates['mean'].value, 3)
    self.assertEmpty([
        remark for remark in table.make_table(runs).remarks
        if 'No numbers over Atari-57' in remark])


class RangesTest(parameterized.TestCase):

  @parameterized.parameters('catch', 'memory', 'pattern', 'target')
  def test_random_actions_have_0_percent(self, level):
    env = toys.look_up(level, EnvironmentSettings(num_action_repeats=1))()
    env.action_space.seed(0)
    env.reset(seed=0)
    returns = []
    for _ in range(2000):
      total, is_over = 0., False
      while not is_over:
        _, reward, terminated, truncated, _ = env.step(
            env.action_space.sample())
        total, is_over = total + reward, terminated or truncated
      returns.append(total)
      env.reset()
    percents = suites.percent(level, np.array(returns))
    self.assertLess(abs(percents.mean()), 3 * percents.std() / 2000**.5)

  def test_known_ranges(self):
    self.assertEqual(suites.range_of('dm_control/walker-walk-v0'), (0, 1000))
    self.assertAlmostEqual(suites.percent('ALE/Pong-v5', np.array(14.6)), 100)
    for level in 'CartPole-v1', 'dm_control/lqr-lqr_2_1-v0':
      self.assertIsNone(suites.range_of(level))

  def test_arguments_of_the_environment_leave_no_scale(self):
    runs = [_run(seed, 200., 'dm_control/walker-walk-v0', **settings)
            for settings in ({}, {'environment_kwargs': {'time_limit': 5}})
            for seed in (1, 2)]
    report = _of(runs)
    self.assertEqual(
        [line.group for line in report.lines if not line.level],
        ['environment_kwargs='])
    self.assertEmpty(report.comparisons)
    self.assertIn(
        'No comparison of environment_kwargs= with environment_kwargs='
        '{"time_limit": 5}: their --environment_kwargs are different tasks.',
        report.remarks)


MUTATIONS = (
    dict(file='scores/statistics',
         catches='test_values_are_those_of_rliable1', rows=(
        ('interquartile mean of means',
         'scores.reshape(*scores.shape[:-2], -1)', 'scores.mean(axis=-2)'),
        ('median of runs', 'np.median(scores.mean(axis=-2), axis=-1)',
         'np.median(scores, axis=(-2, -1))'),
        ('no cap at the goal', 'np.minimum(scores, _GOAL_PERCENT)', 'scores'),
        ('levels drawn together', 'size=(size, *scores.shape)',
         'size=(size, len(scores), 1)'),
        ('interval of 90 %', "low, high = np.percentile(drawn, [2.5, 97.5])",
         'low, high = np.percentile(drawn, [5, 95])'),
    )),
    dict(file='scores/statistics',
         catches='test_values_are_those_of_rliable2', rows=(
        ('equal scores count', '(scores > threshold)', '(scores >= threshold)'),
        ('equal scores are better', '0.5 * (x == y)', '(x == y)'),
    )),
    dict(file='scores/statistics',
         catches='test_intervals_contain_the_true_mean', rows=(
        ('intervals of 90 %, by simulation',
         'np.percentile(drawn, [2.5, 97.5])', 'np.percentile(drawn, [5, 95])'),
    )),
    dict(file='scores/statistics',
         catches='test_as_many_seeds_as_said_decide', rows=(
        ('no square of the ratio', '(_QUANTILES / difference.value)**2',
         'abs(_QUANTILES / difference.value)'),
    )),
    dict(file='scores/groups',
         catches='test_an_agent_of_several_levels_is_no_seed_of_experts', rows=(
        ('agents of several levels are experts',
         'is_expert and name', 'name'),
        ('an expert of another level is one of them',
         'trained_on == set(map(levels_lib.test_level, run.scores))',
         'True'),
    )),
    dict(file='scores/groups',
         catches='test_experts_of_training_levels_are_experts', rows=(
        ('experts of training levels are others',
         'set(map(levels_lib.test_level, levels_lib',
         'set(map(str, levels_lib'),
    )),
    dict(file='scores/groups',
         catches='test_runs_that_differ_by_seed_and_level_are_a_group', rows=(
        ('a group for each level', 'is_expert and name', 'False and name'),
        ('seeds in the order of runs', 'key=lambda run: run.config.seed',
         'key=lambda run: 0'),
    )),
    dict(file='scores/suites', catches='test_known_ranges', rows=(
        ('a scale of lqr', '(?!lqr-)', ''),
    )),
    dict(file='scores/groups',
         catches='test_arguments_of_the_environment_leave_no_scale', rows=(
        ('a scale with any arguments',
         '\n       or any(run.config.environment_kwargs for run in of_level)',
         ''),
        ('percent are compared with returns',
         'if first.unscaled != second.unscaled:', 'if False:'),
    )),
    dict(file='scores/groups', catches='test_remarks', rows=(
        ('groups of one seed vanish', '  if single:', '  if False:'),
        ('different numbers of seeds without a reason',
         'yield f\'No comparison of {first.name}', 'f\'{first.name}'),
        ('suites of any length', 'if group.is_repeated:',
         'if group.is_repeated and not members[0].group:'),
        ('other settings without a remark', 'remarks += _different_settings',
         '_different_settings'),
    )),
    dict(file='scores/groups', catches='test_groups_of_different_lengths',
         rows=(
        ('groups of any length', '  if unequal:', '  if False:'),
        ('levels of a suite of other lengths', 'if not is_suite:', 'if True:'),
    )),
    dict(file='scores/groups', catches='test_groups_that_overlap_in_length',
         rows=(
        ('the least frames alone', '_are_unequal, first.lengths[level], '
         'second.lengths[level])', '_are_unequal, first.lengths[level][:1], '
         'second.lengths[level])'),
    )),
)


if __name__ == '__main__':
  absltest.main()
