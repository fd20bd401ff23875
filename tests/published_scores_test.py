# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the published scores of the algorithms, and their table."""

import csv
import io
import json

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent.scores import dmlab30
from scalable_agent.scores import files as score_files
from scalable_agent.scores import published_scores
from scalable_agent.scores import table as score_table
from scalable_agent.settings import config as config_lib


def _run(level, returns, num_env_frames, algorithm, trained_with=None,
         **settings):
  config = config_lib.Config(
      mode='test', algorithm=algorithm, level_name=level, **settings)
  return score_table.Run(
      config, num_env_frames, trained_with or config,
      (score_table.make_row(level, returns),))


def _short(scores):
  return [(s.algorithm, s.environment, s.num_agent_steps, s.mean, s.std)
          for s in scores]


class ScoresTest(parameterized.TestCase):

  @parameterized.parameters(
      ('HalfCheetah-v5', 'HalfCheetah'),
      ('HalfCheetah-v4 (listed as v2)', 'HalfCheetah'),
      ('LunarLanderContinuous-v2', 'LunarLanderContinuous'),
      ('ALE/Pong-v5', 'Pong'), ('PongNoFrameskip-v4', 'Pong'),
      ('Pong sticky 0.25', 'Pong'), ('Pong', 'Pong'),
      ('SpaceInvadersNoFrameskip-v4', 'SpaceInvaders'),
      ('ALE/SpaceInvaders-v5', 'SpaceInvaders'), ('catch', 'catch'),
      ('shimmy:dm_control/walker-walk-v0', 'dm_control walker-walk'),
      ('dm_control walker-walk', 'dm_control walker-walk'),
      ('rooms_collect_good_objects_train', 'rooms_collect_good_objects_test'))
  def test_task(self, environment, task):
    self.assertEqual(published_scores.task_of(environment), task)

  def test_all_scores(self):
    scores = published_scores.SCORES
    self.assertLen(scores, 354 + 1358)
    self.assertEqual(scores[0], published_scores.Score(
        'DDPG', 'Pendulum-v1', 20_000, -152.1, 94.28,
        '1 run; deterministic policy (stochastic on Atari), 150k eval steps; '
        'std over episodes',
        'SB3 zoo benchmark.md@22e3ff2 (DLR-RM/rl-baselines3-zoo)'))
    self.assertLen(set(scores), 354 + 1358)
    for score in scores:
      self.assertTrue(score.protocol and score.source, score)
      self.assertGreater(score.num_agent_steps, 0)

  # Numbers of the documents themselves.
  @parameterized.parameters(
      ('sac', 'Pendulum-v1', 20_000,
       [('SAC', 'Pendulum-v1', 20_000, -157.0, 88.71),
        ('SB3 SAC', 'Pendulum-v1', 50_000, -167.1, None)]),
      ('ddqn', 'LunarLander-v3', 100_000,
       [('DQN', 'LunarLander-v2', 100_000, 154.38, 79.24)]),
      ('td3', 'InvertedPendulum-v5', 50_000,
       [('TD3', 'InvertedPendulum-v1', 50_000, 1000., 0.),
        ('TD3', 'InvertedPendulum-v4', 1_000_000, 968.99, 25.8),
        ('TD3', 'InvertedPendulum-v1', 1_000_000, 1000., 0.),
        ('TD3 (Table 1: max over time)', 'InvertedPendulum-v1', 1_000_000,
         1000., None)]),
      ('sac', 'FetchReach-v4', 20_000,
       [('TQC+HER', 'FetchReach-v1', 20_000, -1.66, 0.87)]),
      ('mpo', 'shimmy:dm_control/cartpole-swingup-v0', 125_000,
       [('DMPO', 'dm_control cartpole-swingup', 125_000, 777.885, 64.752),
        ('MPO', 'dm_control cartpole-swingup', 125_000, 822.321, 35.351),
        ('DMPO', 'dm_control cartpole-swingup', 500_000, 859.835, 10.997),
        ('MPO', 'dm_control cartpole-swingup', 500_000, 857.8, 9.91)]),
      ('ddpg', 'shimmy:dm_control/ball_in_cup-catch-v0', 400_000,
       [('D4PG', 'dm_control ball_in_cup-catch', 500_000, 965., 12.145),
        ('DDPG', 'dm_control ball_in_cup-catch', 500_000, 970.733, 12.405)]),
      # 10 million frames are 2.5 million agent steps.
      ('impala', 'rooms_watermaze', 2_500_000,
       [('IMPALA deep', 'rooms_watermaze', 2_500_000, 16.44, None),
        ('IMPALA deep', 'rooms_watermaze', 250_000_000, 50.186, None)]),
      ('ddqn', 'CartPole-v1', 100_000,
       # None of these is a pass mark of a test.
       [('DQN', 'CartPole-v1', 50_000, 500., 0.),
        ('SB3 DQN (defaults)', 'CartPole-v1', 100_000, 195.8, None),
        ('DQN', 'CartPole-v1', 500_000, 488.69, 16.11),
        ('DQN-JAX', 'CartPole-v1', 500_000, 498.38, 2.29)]))
  def test_comparable_scores(self, algorithm, level, num_steps, expected):
    self.assertEqual(
        _short(published_scores.comparable_scores(
            algorithm, level, num_steps)), expected)

  def test_levels_of_other_packages_have_no_scores(self):
    self.assertNotEmpty(published_scores.comparable_scores('sac', 'Hopper-v5',
                                                           9))
    self.assertEmpty(published_scores.comparable_scores(
        'sac', 'my_robots:Hopper-v5', 9))
    self.assertNotEmpty(published_scores.comparable_scores(
        'sac', 'panda_gym:PandaReach-v3', 9))

  @parameterized.parameters('impala', 'appo')
  def test_all_levels_of_dmlab30_have_published_scores(self, algorithm):
    for level in dmlab30.ALL_LEVELS:
      self.assertNotEmpty(published_scores.comparable_scores(
          algorithm, level, 1_000_000), level)

  def test_protocols_of_ppo(self):
    by_source = {score.source.partition('.json')[0]: score.protocol
                 for score in published_scores.SCORES
                 if '-ppo_fixhp' in score.source}
    self.assertLen(by_source, 3)
    atari = by_source['danijar/dreamerv3 scores/atari57-ppo_fixhp']
    self.assertIn('atari_alien', atari)
    self.assertIn('sticky actions and all 18 actions', atari)
    self.assertIn('not confirmed for these runs', atari)
    for protocol in by_source.values():
      # Issue 177 is a note of a user.
      self.assertNotIn('177', protocol)

  @parameterized.parameters(
      (1, [50_000, 1_000_000]), (50_000, [50_000, 1_000_000]),
      (50_001, [100_000, 1_000_000]), (250_000, [300_000, 1_000_000]),
      (1_000_000, [1_000_000]), (10**9, [1_000_000]))
  def test_nearest_and_last_of_a_curve(self, num_steps, expected):
    # Hopper of TD3's authors: 50, 100, 200, 300, 500 and 1,000 thousand.
    self.assertEqual(
        [s.num_agent_steps for s in published_scores.comparable_scores(
            'td3', 'Hopper-v5', num_steps)
         if 'learning_curves' in s.source], expected)

  def test_curves_of_two_files(self):
    # Both are dopamine's, measured alike.
    scores = published_scores.comparable_scores(
        'ddqn', 'ALE/Pong-v5', 2_000_000)
    found = [(s.num_agent_steps, s.mean) for s in scores
             if s.algorithm == 'dopamine DQN']
    self.assertEqual(found, [(2_500_000, -4.9), (2_500_000, 1.1),
                             (25_000_000, 15.1), (50_000_000, 19.5)])

  @parameterized.parameters(
      ('impala', 'ALE/Pong-v5'), ('mpo', 'Pendulum-v1'), ('sac', 'catch'),
      ('ddqn', 'Pendulum-v1'))
  def test_nothing_published(self, algorithm, level):
    self.assertEmpty(published_scores.comparable_scores(algorithm, level, 1))

  def test_discrete_and_continuous_sac_do_not_mix(self):
    self.assertEqual(
        {s.algorithm for s in published_scores.comparable_scores(
            'sac', 'ALE/Pong-v5', 1)},
        {'SAC-discrete', 'SAC-discrete (Christodoulou 2019, 100k steps)'})


class TableTest(parameterized.TestCase):

  def _cells(self, text):
    """Returns the cells of the lines of the second table."""
    part = text.split('## Published scores of the same algorithm')[1]
    part = part.split('\n## ')[0]
    return [[cell.strip() for cell in line.strip('|').split('|')]
            for line in part.splitlines() if line.startswith('| ')], part

  def test_markdown(self):
    # Frames are two for each step.
    run = _run('Pendulum-v1', [-150., -160.] * 15, 20_000, 'sac',
               num_action_repeats=2)
    lines, text = self._cells(score_files.to_markdown(
        score_table.make_table([run])))
    self.assertEqual(lines, [
        ['level', 'agent', 'agent steps', 'mean', 'std'],
        ['Pendulum-v1', 'yours', '10,000', '-155.00', '5.00'],
        ['Pendulum-v1', 'SAC [P1]', '20,000', '-157.00', '88.71'],
        ['Pendulum-v1', 'SB3 SAC [P2]', '50,000', '-167.10', '']])
    self.assertIn(
        '- [P1] SB3 zoo benchmark.md@22e3ff2 (DLR-RM/rl-baselines3-zoo): 1 run;'
        ' deterministic policy', text)
    self.assertIn('- [P2] riserally', text)

  def test_several_agents_have_published_scores_once(self):
    table = score_table.make_table([
        _run('Pendulum-v1', [score] * 30, 10_000, 'sac')
        for score in (-150., -160.)])
    lines, _ = self._cells(score_files.to_markdown(table))
    self.assertEqual([line[1] for line in lines[1:]], [
        'yours, agent 1', 'yours, agent 2', 'SAC [P1]', 'SB3 SAC [P2]'])
    rows = csv.DictReader(io.StringIO(score_files.to_csv(table)))
    self.assertEqual([row['value'] for row in rows][:4],
                     ['-150.0', '-160.0', '-157.0', '-167.1'])

  def test_steps_and_algorithm_are_those_of_the_training(self):
    trained_with = config_lib.Config(algorithm='ddqn', level_name='CartPole-v1',
                                     num_action_repeats=5)
    run = _run('CartPole-v1', [9.] * 30, 1_000_000, 'impala', trained_with)
    [comparison] = score_table.make_table([run]).comparisons
    self.assertEqual(comparison.num_agent_steps, 200_000)
    self.assertIn('DQN-JAX', [s.algorithm for s in comparison.scores])

  def test_differences(self):
    table = score_table.make_table([
        _run('LunarLander-v3', [9.] * 30, 100, 'ddqn')])
    self.assertEqual(table.differences, (
        'Environment: LunarLander-v3 here; LunarLander-v2 in published scores. '
        'Versions differ in the simulator, and some in rewards or '
        'observations.',
        'Protocol: one training run and 30 games of the policy without '
        'exploration here; most published scores are means over several runs, '
        'and some are returns while training, see their sources.',
        'Algorithm: double DQN here, DQN in published scores.'))
    table = score_table.make_table([
        _run('CartPole-v1', [9.] * 30, 100, 'ddqn', double_q=False,
             test_greedy=False)])
    [protocol] = table.differences
    self.assertIn('30 games of the policy with exploration', protocol)

  @parameterized.parameters(
      (dict(environment_kwargs={'gravity': -1}), 'CartPole-v1', (
          'Arguments of the environment: {"gravity": -1} here, none in '
          'published scores: this may be another task.',)),
      (dict(num_action_repeats=2), 'CartPole-v1', (
          'Action repeats: 2 here, in most published scores none.',)),
      (dict(num_action_repeats=1), 'CartPole-v1', ()),
      (dict(num_action_repeats=4), 'ALE/Pong-v5', ()),
      (dict(num_action_repeats=4), 'rooms_watermaze', (), 'impala'),
      (dict(num_action_repeats=2), 'dm_control/cheetah-run-v0', (), 'sac'))
  def test_another_task(self, settings, level, expected, algorithm='ddqn'):
    table = score_table.make_table([
        _run(level, [9.] * 30, 100, algorithm, **settings)])
    self.assertNotEmpty(table.comparisons)
    self.assertEqual(expected, tuple(
        line for line in table.differences
        if line.startswith(('Arguments of', 'Action repeats'))))

  def test_appo_is_not_impala(self):
    trained_with = config_lib.Config.from_recipe('appo_pong')
    [_, *lines] = [line for line in score_table.make_table([
        _run('ALE/Pong-v5', [9.] * 30, 8_000_000, 'appo', trained_with)
    ]).differences if line.startswith(('Algorithm', 'Settings', 'Network'))]
    self.assertStartsWith(lines[0], 'Algorithm: appo here, IMPALA in the paper')
    for text in 'optimizer adam instead of rmsprop', 'normalise_returns True':
      self.assertIn(text, lines[1])

  def test_number_of_training_runs(self):
    runs = [
        _run('CartPole-v1', [9.] * 30, 100, 'ddqn', seed=seed, double_q=False,
             batch_size=batch_size)
        for batch_size, seed in ((8, 1), (8, 2), (8, 3), (9, 3), (9, 3))]
    three, one = score_table.make_table(runs).differences
    self.assertStartsWith(three, 'Protocol: 3 training runs and 30 games each '
                          'of the policy without exploration here; ')
    self.assertEndsWith(three, '(agents 1, 2, 3).')
    # The same seed twice is one run.
    self.assertStartsWith(one, 'Protocol: one training run and 30 games of ')
    # A suite has settings for each level.
    runs = [_run(level, [9.] * 30, 100, 'ddqn', seed=seed, double_q=False,
                 batch_size=seed)._replace(group='a')
            for level, seed in (('CartPole-v1', 1), ('CartPole-v1', 2),
                                ('LunarLander-v2', 2), ('LunarLander-v2', 3))]
    [protocol] = score_table.make_table(runs).differences
    self.assertStartsWith(protocol, 'Protocol: 2 training runs and ')

  def test_training_levels_of_dmlab30(self):
    table = score_table.make_table([_run(
        'rooms_collect_good_objects_train', [9.] * 30, 10**8, 'impala')])
    self.assertNotIn('Environment', '\n'.join(table.differences))
    self.assertIn('Levels of training, not of test: '
                  'rooms_collect_good_objects_train; published scores are from '
                  'test levels.', table.differences)

  def test_atari(self):
    # The table of the suite is there, too.
    table = score_table.make_table([
        _run('ALE/Pong-v5', [9.] * 30, 8_000_000, 'ddqn')])
    text = score_files.to_markdown(table)
    self.assertIn('IMPALA shallow [3]', text)
    lines, _ = self._cells(text)
    self.assertEqual(lines[1][1:3], ['yours', '2,000,000'])
    self.assertIn('Algorithm: ddqn here, IMPALA in the paper, with other '
                  'settings of training.', table.differences)
    self.assertNotIn('instead of', ' '.join(table.differences))

  def test_json_and_csv(self):
    table = score_table.make_table([
        _run('Pendulum-v1', [-150.] * 30, 10_000, 'sac')])
    [found] = json.loads(score_files.to_json(table))['same_algorithm']
    self.assertEqual((found['level'], found['num_agent_steps']),
                     ('Pendulum-v1', 10_000))
    self.assertEqual([(s['mean'], s['std']) for s in found['scores']],
                     [(-157, 88.71), (-167.1, None)])
    rows = list(csv.DictReader(io.StringIO(score_files.to_csv(table))))
    self.assertEqual([(r['agent'], r['value'], r['std']) for r in rows], [
        ('yours', '-150.0', '0.0'),
        ('SAC, Pendulum-v1, 20000 agent steps', '-157.0', '88.71'),
        ('SB3 SAC, Pendulum-v1, 50000 agent steps', '-167.1', '')])
    self.assertStartsWith(rows[1]['source'], 'SB3 zoo benchmark.md@22e3ff2')

  def test_several_agents(self):
    table = score_table.make_table([
        _run('Pendulum-v1', [-150.] * 30, 10_000, 'sac'),
        _run('Pendulum-v1', [-150.] * 30, 10_000, 'td3'),
        _run('catch', [1.] * 30, 10_000, 'ddqn'),
        _run('Pendulum-v1', [-150.] * 30, 10_000, 'impala')])
    self.assertEqual([c.scores[0].algorithm for c in table.comparisons],
                     ['SAC', 'TD3'])
    [line] = table.differences
    self.assertEndsWith(line, 'see their sources (agents 1, 2).')


MUTATIONS = (
    dict(file='scores/protocol', catches='test_another_task', rows=(
        ('arguments are not said', 'if config.environment_kwargs:',
         'if False:'),
        ('repeats are not said', 'if config.num_action_repeats != 1 and',
         'if False and'),
        ('repeats of Atari are said', 'declare.is_atari(level) or ', ''),
        ('repeats of DeepMind Lab are said',
         ' or lab_levels.is_level(level)', ''),
        ('repeats of the published agents are said', "'repeat' in s.protocol",
         'False'),
    )),
    dict(file='scores/protocol', catches='test_appo_is_not_impala', rows=(
        ('APPO is IMPALA', "if trained_with.algorithm != 'impala':",
         'if trained_with.is_off_policy:'),
        ('no settings of normalisation',
         "normalise_observations='none', normalise_returns=False)", ')'),
    )),
    dict(file='scores/published_scores',
         catches='test_all_levels_of_dmlab30_have_published_scores', rows=(
        ('training levels without scores',
         'dmlab30.LEVEL_MAPPING.get(environment, environment)', 'environment'),
    )),
    dict(file='scores/protocol', catches='test_training_levels_of_dmlab30',
         rows=(
        ('training levels are other versions',
         'same = {level, levels_lib.test_level(level)}', 'same = {level}'),
    )),
    dict(file='scores/protocol', catches='test_number_of_training_runs', rows=(
        ('always one run', 'if num_runs == 1 else', 'if num_runs else'),
    )),
    dict(file='scores/table', catches='test_number_of_training_runs', rows=(
        ('runs of all groups',
         'one.group or groups_lib.experiment(one)', 'one.group'),
        ('runs of all levels', ', next(iter(one.scores)))', ',)'),
        ('a seed counts twice', '(key, one.config.seed)', '(key, id(one))'),
    )),
)


if __name__ == '__main__':
  absltest.main()
