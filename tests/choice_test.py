# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the choice of settings from measured times, and of its measurement.

The times are made up: each test changes one of them.
"""

import contextlib
import dataclasses
import io
import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import normalisers_test
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.acting import shares
from scalable_agent.environments import trial
from scalable_agent.experience import structs
from scalable_agent.runs import choice
from scalable_agent.runs import measuring
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib

_MS = .001


def _times(*, num_cores=2, step_s=1e-3, sleep_s=0., policy_s=1e-3,
           per_action_s=1e-5, update_s=10e-3, together_s=None, reset_s=0.,
           updates=None):
  """Returns the times of environments that work, or sleep, in each step."""
  def acting(number, per_process, one_s):
    work_s = number * one_s / num_cores
    policy = policy_s + per_action_s * number
    return choice.GroupStep(number, per_process,
                         work_s + sleep_s * per_process, policy, policy)

  groups = [acting(number, 1, step_s) for number in (4, 16, 64)]
  if together_s is not None:
    groups += [acting(number, 8, together_s) for number in (16, 64)]
  return choice.Times(num_cores, tuple(groups), updates or (
      choice.Update('none', 8, update_s, update_s),), reset_s=reset_s)


def _config(**settings):
  return config_lib.Config(**{
      'level_name': 'catch', 'num_actors': 0, 'num_actor_groups': 0,
      'batch_size': 8, 'unroll_length': 20, **settings})


def _chosen(config=None, **times):
  return choice.choose(config or _config(), _times(**times))


class ChoiceTest(parameterized.TestCase):

  def test_learning_is_not_touched(self):
    config = _config(max_policy_lag=7.)
    chosen = _chosen(config).config
    changed = {name for name in config.__dataclass_fields__
               if getattr(config, name) != getattr(chosen, name)}
    self.assertContainsSubset(changed, {
        'num_actors', 'num_actor_groups', 'environments_per_process',
        'micro_batch_size', 'xla', 'max_policy_lag'})
    self.assertIn('num_actors', changed)

  def test_expected_rate_of_a_bound(self):
    # The cores are far from busy. An update takes longest: 160 steps in 1 s.
    found = _chosen(num_cores=64, update_s=1.)
    self.assertAlmostEqual(found.steps_per_s, 160, delta=8)
    self.assertEqual(found.reason, 'updates take longest')
    # 1 ms per step of an environment, on one core.
    found = _chosen(num_cores=1, step_s=1e-3, policy_s=0., per_action_s=0.,
                    update_s=0.)
    self.assertBetween(found.steps_per_s, 800, 1010)

  def test_more_environments_if_they_sleep(self):
    config = _config(max_policy_lag=1000.)
    numbers = [_chosen(config, step_s=1e-4, sleep_s=s).config.num_actors
               for s in (0., 5e-3, 50e-3)]
    self.assertEqual(numbers, sorted(set(numbers)))

  def test_more_environments_if_policy_steps_have_a_high_fixed_cost(self):
    numbers = [_chosen(step_s=1e-5, policy_s=s, update_s=1e-4).config.num_actors
               for s in (1e-5, 1e-3, 20e-3)]
    self.assertEqual(numbers, sorted(numbers))
    self.assertLess(numbers[0], numbers[-1])

  def test_few_environments_if_updates_take_longest(self):
    self.assertLess(_chosen(update_s=10.).config.num_actors,
                    _chosen(step_s=1e-4, update_s=1e-4).config.num_actors)

  def test_the_lag_is_limited(self):
    numbers = []
    for limit in 2., 8., 20.:
      found = _chosen(_config(max_policy_lag=limit), sleep_s=.05, update_s=1e-4)
      self.assertLessEqual(choice.policy_lag(found.config), limit)
      numbers.append(found.config.num_actors)
    self.assertEqual(numbers, sorted(set(numbers)))

  def test_lag_by_hand(self):
    # 64 unrolls are made, and 32 wait in the queue; 8 unrolls are an update.
    self.assertEqual(choice.policy_lag(_config(
        num_actors=64, num_actor_groups=2)), 12)
    self.assertEqual(choice.policy_lag(_config(
        num_actors=16, num_actor_groups=1, replay_capacity=64)), 8)
    # Two steps of four environments, twice, and an update every four steps.
    self.assertEqual(choice.policy_lag(_config(
        algorithm='ddqn', num_actors=4, num_actor_groups=1, unroll_length=2,
        updates_per_step=.25)), 4)
    self.assertEqual(choice.policy_lag(_config(
        algorithm='appo', num_actors=4, unrolls_per_collect=16)), 0)
    self.assertEqual(choice.updates_per_step(_config(
        algorithm='appo', num_actors=4, unrolls_per_collect=16, passes=5,
        overlap=True)), 5 / 160)
    self.assertEqual(choice.updates_per_step(_config(
        num_actors=4, replay_capacity=64, unrolls_per_collect=10,
        updates_per_collect=6)), 6 / 200)

  @parameterized.parameters((None, 1), (5e-4, 8), (2e-3, 1))
  def test_environments_per_process(self, together_s, expected):
    found = _chosen(step_s=1e-3, together_s=together_s)
    self.assertEqual(found.config.environments_per_process, expected)

  def test_environments_that_sleep_share_no_process(self):
    found = _chosen(step_s=1e-4, sleep_s=5e-3, together_s=5e-5)
    self.assertEqual(found.config.environments_per_process, 1)

  def test_slow_resets_need_small_groups(self):
    self.assertLessEqual(_chosen().config.num_actor_groups, 4)
    slow = _chosen(_config(level_name='a:b'), reset_s=.04).config
    self.assertGreaterEqual(slow.num_actor_groups, 16)

  def test_the_faster_update(self):
    updates = (choice.Update('policy', 8, .02, .02),
               choice.Update('all', 4, .01, .01))
    for given, expected in ((updates, updates[1]), (updates[:1], updates[0])):
      config = _chosen(updates=given).config
      self.assertEqual((config.xla, config.micro_batch_size), expected[:2])

  def test_groups_and_numbers_of_the_user_are_kept(self):
    config = _chosen(_config(num_actor_groups=8)).config
    self.assertEqual(config.num_actor_groups, 8)

  def test_appo_takes_turns(self):
    config = _chosen(_config(algorithm='appo', unrolls_per_collect=24)).config
    self.assertEqual(24 % config.num_actors, 0)
    self.assertEqual(config.unrolls_per_collect, 24)

  def test_seconds_of_python_by_hand(self):
    acting = [choice.GroupStep(number, 1, 0., 0., cpu_s)
              for number, cpu_s in ((4, 1e-3), (16, 1.6e-3), (64, 2e-3))]
    self.assertAlmostEqual(choice._python_s(acting), .8e-3)
    self.assertAlmostEqual(choice._python_s(acting[:1]), 1e-3)
    self.assertAlmostEqual(
        choice._python_s([acting[0]._replace(cpu_s=9e-3)]), 1e-3)

  @parameterized.parameters('impala', 'appo')
  def test_groups_that_share_steps_need_python_by_hand(self, algorithm):
    # A policy step takes 0.5 ms and 0.05 ms per environment. Eight groups share
    # two policy steps of 32, and six groups more have their 0.5 ms.
    times = choice.Times(1, tuple(
        choice.GroupStep(number, 1, 0., 0., .5e-3 + number * .05e-3)
        for number in (4, 64)), ())
    config = _config(num_actors=64, num_actor_groups=8, dynamic_batching=True,
                     algorithm=algorithm)
    found = choice._expected(config, times, choice.Update('none', 8, 0., 0.))
    cores_s, turns_s = (2 * 2.1e-3 + 6 * .5e-3) / 64, 8 * .5e-3 / 64
    self.assertAlmostEqual(
        1 / found.steps_per_s, np.linalg.norm([cores_s, turns_s], 6), places=9)
    self.assertEqual(found.reason, 'the core is busy')

  @parameterized.parameters((1, 1e-3), (4, .25e-3))
  def test_python_of_the_learner_by_hand(self, per_call, python_s):
    # 64 cores make updates of 8 ms of all cores; an update learns 160 steps.
    times = choice.Times(64, (choice.GroupStep(16, 1, 0., 0., 0.),), ())
    update = choice.Update('none', 8, 0., 8e-3, per_call)
    found = choice._expected(
        _config(num_actors=16, num_actor_groups=1), times, update)
    self.assertAlmostEqual(160 / found.steps_per_s, np.linalg.norm(
        [8e-3 / 64, python_s], 6), places=9)

  @parameterized.parameters(
      (16, 1, 13_486), (16, 2, 9_870), (16, 4, 4_421), (32, 1, 16_512),
      (32, 2, 14_315), (32, 4, 6_190), (64, 1, 25_316), (64, 2, 21_287),
      (64, 4, 12_644))
  def test_rates_of_cartpole(self, num_actors, num_groups, steps_per_s):
    # Times and agent steps per second as measured on two cores.
    times, update = self._cartpole()
    found = choice._expected(_config(
        num_actors=num_actors, num_actor_groups=num_groups,
        environments_per_process=8), times, update)
    self.assertBetween(found.steps_per_s / steps_per_s, 1, 2)
    if num_actors == 16 and num_groups == 4:
      self.assertEqual(found.reason, 'threads wait for each other')

  def test_threads_of_many_groups_take_turns(self):
    # The fastest of a grid; 128 environments in 64 groups made 4,996.
    times, _ = self._cartpole()
    found = choice.choose(_config(environments_per_process=8), times)
    self.assertEqual(found.config.num_actors, 64)
    self.assertEqual(found.config.num_actor_groups, 1)

  def test_environments_of_pong(self):
    # As measured on two cores; 48 environments had 0.87 of the rate of 96.
    times = choice.Times(2, (
        choice.GroupStep(4, 1, .854e-3, 1.179e-3, 2.998e-3),
        choice.GroupStep(16, 1, 3.385e-3, 2.393e-3, 8.696e-3)),
        (choice.Update('none', 32, 77.29e-3, 146.3e-3),), in_processes=False)
    found = choice.choose(experiment.parse([
        '--recipe=atari_paper', '--agent=shallow', '--num_actors=auto']), times)
    self.assertEqual(found.config.num_actors, 96)
    self.assertEqual(found.config.num_actor_groups, 2)

  def _cartpole(self):
    acting = [choice.GroupStep(number, 8, *times) for number, *times in (
        (4, .224e-3, .487e-3, .648e-3), (16, .390e-3, .539e-3, .732e-3),
        (64, .798e-3, .591e-3, .861e-3))]
    update = choice.Update('policy', 8, .992e-3, 1.406e-3)
    return choice.Times(2, tuple(acting), (update,)), update

  def test_off_policy(self):
    config = _config(algorithm='sac', level_name='Pendulum-v1',
                     unroll_length=2, batch_size=256, num_actor_groups=1)
    found = _chosen(config, update_s=5e-3)
    self.assertAlmostEqual(found.steps_per_s, 200, delta=40)

  @parameterized.parameters((1, 1., 1), (8, 1., 4), (8, .5, 8))
  def test_unrolls_that_fill_calls(self, per_call, updates_per_step, least):
    config = _config(algorithm='sac', level_name='Pendulum-v1', batch_size=256,
                     unroll_length=2, num_actor_groups=1,
                     updates_per_step=updates_per_step)
    update = choice.Update('none', 0, 1., 1., per_call)
    found = _chosen(config, updates=(update,)).config
    self.assertEqual(found.num_actors, least)

  def test_all_levels_are_played(self):
    config = _config(level_name='catch,' * 4 + 'catch')
    self.assertGreaterEqual(_chosen(config, update_s=10.).config.num_actors, 5)

  def test_the_memory_limits_processes(self):
    times = _times(sleep_s=.05, update_s=1e-4)
    config = _config(max_policy_lag=1000.)
    for limit in 10**6, 40:
      found = choice.choose(config, times._replace(max_processes=limit))
      self.assertEqual(found.config.num_actors > 40, limit > 40)

  def test_a_lag_that_cannot_be_kept(self):
    with self.assertRaisesRegex(
        errors.ConfigError, r'fits --max_policy_lag=0\.001 \(the least lag is '
        r'0\.25\): increase this limit, or set --num_actors\.'):
      _chosen(_config(max_policy_lag=.001))

  def test_without_a_number_that_fits(self):
    config = _config(algorithm='appo', unrolls_per_collect=24)
    with mock.patch.object(choice, '_NUMBERS', (5, 7)):
      with mock.patch.object(
          choice.levels, 'level_names', return_value=['catch'] * 5):
        with self.assertRaisesRegex(errors.ConfigError, 'set --num_actors'):
          _chosen(config)


class GroupsTest(parameterized.TestCase):
  """The number of groups by default."""

  @parameterized.parameters(
      (.001, 50, 16, 2), (2., 50, 16, 16), (2., 50, 100, 64), (2., 50, 2, 2),
      (.05, 5000, 16, 2), (2., 100_000, 16, 2))
  def test_by_reset_and_length(self, reset_s, length, num_envs, expected):
    facts = trial.Facts(
        {}, '', mock.Mock(), {}, np.zeros(1000), [length], [0.], 0, .2, 10,
        10 * reset_s, None, None, None, [])
    self.assertEqual(shares.groups_for(facts, num_envs, 2), expected)
    self.assertEqual(shares.groups_for(None, num_envs, 2), 2)

  def test_only_levels_of_users_are_tried(self):
    groups = lambda **settings: config_lib.Config(**settings).num_actor_groups
    self.assertEqual(groups(level_name='mine:Level-v0'), 0)
    self.assertEqual(groups(level_name='mine:Level-v0', algorithm='sac'), 0)
    self.assertEqual(groups(level_name='mine:Level-v0', algorithm='sac',
                            deterministic=True), 1)
    self.assertEqual(groups(level_name='mine:Level-v0', ray_address='local'), 2)
    self.assertEqual(groups(level_name='CartPole-v1'), 2)

  def test_a_run_of_slow_resets(self):
    config = config_lib.Config(
        level_name='fake_environments:Slow', num_actors=3)
    facts = trial.Facts({}, '', mock.Mock(), {}, np.zeros(9), [3] * 3, [0.] * 3,
                        0, .01, 3, 3., None, None, None, [])
    made = mock.Mock(return_value=[])
    with mock.patch.object(shares.environments, 'make_groups', made):
      for played, expected in ((facts, 3), (errors.LevelError('no'), 2)):
        with mock.patch.object(shares.environments, 'play_trial',
                               side_effect=[played]):
          shares.make_environments(
              config, 0, shares.interface.Share(range(3)))
        self.assertEqual(made.call_args[0][3], expected)
      with mock.patch.object(shares.environments, 'play_trial',
                             side_effect=AssertionError):  # Nothing to choose.
        shares.make_environments(config, 0, shares.interface.Share(range(2)))
      self.assertEqual(made.call_args[0][3], 2)


class MeasuringTest(parameterized.TestCase):

  def _train(self, *flags):
    logdir = self.create_tempdir().full_path if not hasattr(
        self, '_logdir') else self._logdir
    self._logdir = logdir
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      training.train(experiment.parse([
          '--num_actors=auto', f'--logdir={logdir}', '--level_name=catch',
          '--batch_size=4', '--unroll_length=5', '--xla=none', '--nouse_lstm',
          *flags]))
    return output.getvalue()

  @pytest.mark.slow
  def test_a_run_measures_once_and_resumes(self):
    self.enter_context(mock.patch.multiple(
        measuring, _GROUPS=((2, 1), (4, 2), (4, 1)), _ACTING_S=0.,
        _UPDATES_S=0.))
    output = self._train('--total_environment_frames=40')
    self.assertRegex(
        output, 'Measured in .*: [24] environments take .* an update')
    saved = config_lib.trained_with(self._logdir)
    self.assertGreater(saved.num_actors, 0)
    self.assertIn(f'Chosen: --num_actors={saved.num_actors} ', output)
    with mock.patch.object(measuring, 'measure', side_effect=AssertionError):
      output = self._train('--total_environment_frames=80')
    again = config_lib.trained_with(self._logdir)
    self.assertEqual(
        [getattr(again, name) for name in again.__dataclass_fields__
         if name != 'total_environment_frames'],
        [getattr(saved, name) for name in saved.__dataclass_fields__
         if name != 'total_environment_frames'])
    self.assertIn(f'--num_actors=auto, as before: --num_actors='
                  f'{saved.num_actors} ', output)

  def test_what_is_kept(self):
    before = _config(num_actors=7, num_actor_groups=3, micro_batch_size=2,
                     environments_per_process=5)
    kept = lambda **settings: choice.kept(
        _config(max_policy_lag=3., **settings), before, measuring._CHOSEN[:4])
    self.assertEqual(kept(), before)
    for other in (dict(batch_size=4), dict(addon='fake_torsos:addon'),
                  dict(algorithm='appo', unrolls_per_collect=56)):
      found = kept(**other)
      self.assertEqual((found.num_actors, found.micro_batch_size), (7, 0))
    before = dataclasses.replace(before, num_actors=5)
    found = choice.kept(_config(num_actors=5, environments_per_process=5),
                        before, ('num_actor_groups', 'micro_batch_size'))
    self.assertEqual(found.num_actor_groups, 3)

  def test_numbers_of_a_start_that_learned_nothing_are_not_taken(self):
    config = _config(logdir=self.create_tempdir().full_path)
    _config(logdir=config.logdir, num_actors=7,
            environments_per_process=5).save()
    with mock.patch.object(
        measuring, 'measure', side_effect=errors.LevelError('measured')):
      with self.assertRaisesRegex(errors.LevelError, 'measured'):
        measuring.chosen(config, mock.Mock())

  def test_a_group_acts_for_a_while_after_slow_starts(self):
    group = mock.Mock(_number=2)
    group._clock.now_s = 100.  # More than the limit of the measurement.
    group._actors.num_steps.side_effect = range(100)
    measuring._Group._act(group, 0)
    self.assertEqual(group._actors.num_steps.call_count, 1 + 6)

  def test_environments_that_are_too_slow(self):
    with mock.patch.multiple(measuring, _LIMIT_S=-1, _LEAST_S=-100):
      with self.assertRaisesRegex(errors.ConfigError, 'Set --num_actors'):
        self._train('--total_environment_frames=2000')

  def test_an_error_of_the_feed_leaves_no_thread(self):
    group = mock.Mock(_clock=mock.Mock(now_s=0.))
    group._feed.batches.side_effect = errors.LevelError('no')
    with self.assertRaises(errors.LevelError):
      measuring._Group.updates(group)
    timers = [thread for thread in threading.enumerate()
              if isinstance(thread, threading.Timer)]
    self.assertTrue(all(timer.finished.is_set() for timer in timers))

  def test_other_runs_do_not_measure(self):
    config = config_lib.Config(level_name='catch')
    with mock.patch.object(measuring, 'measure', side_effect=AssertionError):
      self.assertIs(measuring.chosen(config, mock.Mock()), config)

  def test_environments_per_process_of_the_user_are_kept(self):
    self.assertEqual(measuring.plan(4), [(4, 4), (16, 4), (64, 4)])
    self.assertEqual(measuring.plan(1), [(4, 1), (16, 1), (64, 1)])
    self.assertLen(measuring.plan(_config().environments_per_process), 5)
    self.assertEqual(
        _config(environments_per_process=1).environments_per_process, 1)

  def test_what_is_compared(self):
    def variants(asked, **resolved):
      config = config_lib.Config(**asked)
      return [(c.xla, c.micro_batch_size) for c in measuring._variants(
          config, config_lib.dataclasses.replace(config, **resolved))]

    resolved = dict(agent='mlp', xla='policy', micro_batch_size=8)
    self.assertEqual(variants({}, **resolved), [('policy', 8), ('all', 8)])
    self.assertEqual(variants({'xla': 'policy'}, **resolved), [('policy', 8)])
    resolved['xla'] = 'none'  # A short training.
    self.assertEqual(variants({}, **resolved), [('none', 8), ('all', 8)])
    resolved['xla'] = 'all'
    self.assertEqual(variants({}, **resolved), [('all', 8), ('policy', 8)])
    resolved = dict(agent='shallow', xla='none', micro_batch_size=8)
    self.assertEqual(variants({'batch_size': 8}, **resolved),
                     [('none', 8), ('none', 4)])
    self.assertEqual(variants({'batch_size': 8, 'micro_batch_size': 8},
                              **resolved), [('none', 8)])
    resolved = dict(agent='shallow', xla='none')
    self.assertEqual(variants({'batch_size': 8, 'addon': 'module:function'},
                              **resolved), [('none', 0)])
    resolved['micro_batch_size'] = 8

    self.assertEqual(
        variants({'algorithm': 'appo', 'batch_size': 8, 'num_actors': 16,
                  'updates_per_call': 2}, **resolved), [('none', 8)])

  @parameterized.parameters((False, 16, 'all'), (True, 1, 'policy'))
  def test_updates_of_appo_are_those_of_the_run(self, overlap, number, xla):
    asked = config_lib.Config(
        algorithm='appo', level_name='CartPole-v1', num_actors=0,
        unrolls_per_collect=32, overlap=overlap)
    found = measuring._resolved(
        measuring._trial_settings(asked, 'd', 4, 1), asked,
        structs.ArraySpec((3,), np.dtype(np.float32)))
    self.assertEqual((found.updates_per_call, found.xla, found.overlap),
                     (number, xla, True))

  @eager.eagerly()
  def test_updates_of_appo_learn_while_measured(self):
    learner = normalisers_test._learner(algorithm='appo')
    batch = learner.to_device(normalisers_test._unroll(0), 0)._replace(
        num_new_columns=3)  # Of a collection that has more batches.
    with mock.patch.object(measuring, '_UPDATES_S', 0.):
      measuring._measure_updates(normalisers_test._config(), learner, batch)
    self.assertEqual(learner.num_updates, 4)
    [optimizer] = [o for o, _ in learner._optimizers.values()]
    self.assertEqual(int(optimizer.iterations), 3)

  def test_appo_collects_as_many_unrolls_as_the_recipe(self):
    flags = ['--recipe=appo_vectors', '--num_actors=auto']
    config = experiment.parse(flags)
    self.assertEqual((config.unrolls_per_collect, config.batch_size), (16, 2))
    self.assertEqual(config_lib.Config.from_recipe(
        'appo_vectors', num_actors=0).unrolls_per_collect, 16)
    self.assertEqual(config_lib.Config.from_recipe(
        'appo_vectors', num_actors='auto').unrolls_per_collect, 16)
    self.assertEqual(experiment.parse(
        [*flags, '--unrolls_per_collect=32']).unrolls_per_collect, 32)
    self.assertEqual(experiment.parse(
        ['--recipe=cartpole', '--num_actors=auto']).unrolls_per_collect, 0)


MUTATIONS = (
    dict(file='runs/choice', catches='test_unrolls_that_fill_calls', rows=(
        ('calls of few updates cost no more', '>= update.per_call]', '>= 0]'),
    )),
    dict(file='runs/choice', catches='test_the_lag_is_limited', rows=(
        ('no limit', 'if policy_lag(candidate) <= limit]', ']'),
    )),
    dict(file='runs/choice', catches='test_lag_by_hand', rows=(
        ('the queue has no lag',
         '1 + config.queue_capacity / config.num_actor_groups)', '1)'),
        ('one pass of appo', 'used(config.passes) / (', '1 / ('),
    )),
    dict(file='runs/choice', catches='test_the_faster_update', rows=(
        ('the slowest update', 'update = min(times.updates',
         'update = max(times.updates'),
    )),
    dict(file='runs/choice', catches='test_expected_rate_of_a_bound', rows=(
        ('environments do not work', 'return max(more_s, 0.) * times.num_cores',
         'return 0.'),
        ('the least time counts', 'ord=_POWER', 'ord=-np.inf'),
    )),
    dict(file='runs/choice', catches='test_threads_of_many_groups_take_turns',
         rows=(
             ('no turns', 'turns_s = num_groups', 'turns_s = 0'),
             ('the learner takes no turn', 'turns_s += updates',
              'turns_s += 0'),
         )),
    dict(file='runs/choice',
         catches='test_groups_that_share_steps_need_python_by_hand', rows=(
             ('groups that share steps need no Python',
              'num_groups - num_policy_steps)', '0)'),
         )),
    dict(file='runs/choice', catches='test_python_of_the_learner_by_hand',
         rows=(
             ('all seconds of an update are of Python',
              'min(update.cpu_s, _MOST_PYTHON_S / update.per_call)',
              'update.cpu_s'),
             ('each update of a call needs Python',
              '_MOST_PYTHON_S / update.per_call', '_MOST_PYTHON_S'),
         )),
    dict(file='runs/choice', catches='test_environments_of_pong', rows=(
        ('far fewer environments are nearly as good', '_ENOUGH = .97',
         '_ENOUGH = .95'),
    )),
    dict(file='runs/choice', catches='test_seconds_of_python_by_hand', rows=(
        ('the smallest group', 'cpu_s -= max(slope, 0.)', 'cpu_s -= 0'),
        ('seconds of Python without a limit', ', _MOST_PYTHON_S)', ', 1.)'),
    )),
    dict(file='runs/choice', catches='test_slow_resets_need_small_groups',
         rows=(
             ('resets do not wait', 'times.reset_s / num_groups)', '0.)'),
         )),
    dict(file='runs/choice', catches='test_all_levels_are_played', rows=(
        ('some levels are left out', '(number < num_levels or number',
         '(number'),
    )),
    dict(file='acting/shares', catches='test_a_run_of_slow_resets', rows=(
        ('a fault ends the trial', 'except errors.UserError:',
         'except KeyError:'),
    )),
    dict(file='acting/shares', catches='test_by_reset_and_length', rows=(
        ('all get small groups', 'if facts and num_environments > usual and '
         'facts.resets_hold_up(\n      -(-num_environments // usual)):',
         'if facts and num_environments > usual:'),
    )),
    dict(file='settings/recipes/__init__',
         catches='test_appo_collects_as_many_unrolls_as_the_recipe', rows=(
             ('a recipe overrides the user',
              "or settings.get('unrolls_per_collect')", 'or False'),
         )),
    dict(file='runs/measuring', catches='test_what_is_compared', rows=(
        ('XLA of the user is replaced', "if asked.xla == 'auto' and", 'if'),
        ('micro-batches of the user are replaced',
         'not (asked.micro_batch_size or asked.addon)', 'not asked.addon'),
        ('micro-batches of several updates',
         'and resolved.updates_per_call <= 1\n', '\n'),
    )),
    dict(file='runs/measuring', catches=(
        'test_updates_of_appo_are_those_of_the_run'), rows=(
        ('updates of actors that do not wait',
         'of_run = resolve(asked)', 'of_run = resolve(trial)'),
    )),
    dict(file='runs/measuring', catches=(
        'test_updates_of_appo_learn_while_measured'), rows=(
        ('updates that only set statistics are measured',
         'max(batch.num_new_frames, 1)', 'batch.num_new_frames'),
    )))


if __name__ == '__main__':
  absltest.main()
