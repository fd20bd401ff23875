# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of check mode: trials of environments, reports and advice."""

import contextlib
import io
import os
import re
import shlex
import signal
import sys
import time
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import gymnasium
import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.environments import trial
from scalable_agent.experience import structs
from scalable_agent.modes import check
from scalable_agent.processes import starts
from scalable_agent.settings import config as config_lib

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_VECTOR = structs.ArraySpec((3,), np.dtype(np.float32))
_FRAME = structs.ArraySpec((8, 8, 3), np.dtype(np.uint8))
_PART = trial.Part('Box', -1., 1.)
_GOALS = {'achieved_goal': _PART, 'desired_goal': _PART}


def _name(kind):
  return f'checked_environments:checked/{kind}-v0'


def _check(level, *flags):
  """Returns the exit code and the output of check mode."""
  output = io.StringIO()
  with contextlib.redirect_stdout(output):
    code = check.run(experiment.parse(
        ['--mode=check', f'--level_name={level}', *flags]))
  return code, output.getvalue()


def _facts(**changes):
  """Returns facts about an environment without peculiarities."""
  facts = trial.Facts(
      {'frame': _PART}, 'Discrete(2)',
      structs.EnvironmentSpec(_VECTOR, structs.ActionSpec((2,)), 1),
      {}, np.ones(100), [10] * 10, [10.] * 10, 10, .1, 10, .001, True, True,
      '', [], has_time_limit=False, can_use_hindsight=True)
  return facts._replace(**changes)


def _continuous(space='Box(0.0, 500.0, (1,), float32)', step_s=1., **changes):
  return _facts(action_space=space, step_s=step_s, spec=structs.EnvironmentSpec(
      _VECTOR, structs.ActionSpec(size=1), 1), **changes)


class ReportTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # On a busy machine, too, steps end a trial.
    self.enter_context(mock.patch.object(check, '_SECONDS', 600.))

  @parameterized.parameters(
      ('Plain', 0, (
          r'  observations  Box\(-1.0, 1.0, \(3,\), float32\); seen -1 to 1',
          'episodes      500, of 10 steps each; 500 terminated, 0 truncated',
          'returns       10, mean 10',
          'the same seed repeats an episode, other seeds differ',
          'its checker finds no fault', '--recipe=appo_vectors')),
      ('Images', 0, ('seen 0 to 255', r'MultiBinary\(3\)',
                     '--recipe=appo_frames')),
      ('Places', 0, (r'Discrete\(3000\); seen', r'Discrete\(2, start=1\)',
                     'observation is large: 3,000 numbers, as a Discrete')),
      ('Grey', 0, (r'seems\s+to\s+be\s+a\s+picture', r'\[84,\s+84,\s+1\]')),
      ('Endless', 0, (
          'none ended in 5,000 steps', 'All 5,000 rewards were 0',
          r'\'--environment_kwargs={"max_episode_steps": 1000}\'')),
      ('Unseeded', 1, ('does not repeat an episode',
                       'same seed and actions gave another episode',
                       "gymnasium's checker: AssertionError")),
      ('Fixed', 0, ('other seeds do not differ', 'Three seeds gave the same')),
      ('Outside', 1, ('500 of 5,501 observations are not in their space',)),
      ('BrokenOptions', 1, ("gymnasium's checker: KeyError: 'size'",)),
      ('Chance', 0, (r'No time limit is known: an agent may find',)),
      ('OtherMasks', 0, (
          r"Not used as a mask of actions: info\['action_mask'\],\s+"
          r'action_masks\(\),\s+the\s+part\s+valid_mask',
          r'valid_mask +Box\(0 to 2, \(2,\), int8\)')),
      ('Bandit', 0, ('of 1 steps each; 0 terminated',
                     'its checker finds no fault')),
      ('Numbered', 0, (r'\n  0 +Box\(', r'\n  1 +Discrete\(')),
      ('Talks', 0, ('Warnings:\n- The simulator is old.\n\n',)),
      ('Masked', 0, (r'last +Box', 'checker was not run: it does not know')))
  def test_report(self, kind, expected_code, patterns):
    code, output = _check(_name(kind))
    self.assertEqual(code, expected_code, output)
    for pattern in patterns:
      self.assertRegex(output, pattern)
    self.assertLess(len(output.splitlines()), 40)
    output = ' '.join(output.split())
    self.assertRegex(
        output, r' after [\d,]+,000 frames \(--total_environment_frames\)\. '
        r'Rewards are not changed \(--reward_clipping=none\)\.')
    self.assertEndsWith(output,
                        'Actions are not repeated (--num_action_repeats=1).')

  @parameterized.parameters(
      ('Limited', 'No time limit is known'), ('Masked', 'Not used as a mask'))
  def test_no_remark(self, kind, text):
    code, output = _check(_name(kind))
    self.assertEqual(code, 0, output)
    self.assertNotIn(text, output)

  def test_goals(self):
    _, output = _check('bit_flipping')
    self.assertIn('--recipe=ddqn_bit_flipping', output)
    _, output = _check(_name('Goals'))  # Without compute_reward.
    self.assertIn('--recipe=appo_vectors', output)
    self.assertRegex(output, r'hindsight\s+needs\s+goals\s+of\s+type\s+Box')
    _, output = _check('bit_flipping', '--num_action_repeats=2')
    self.assertIn('--recipe=appo_vectors', output)
    self.assertRegex(output, r'and\s+--num_action_repeats=1\.')

  def test_units_of_the_environment(self):
    with mock.patch.object(sys, 'argv', ['experiment.py']):
      code, output = _check('examples.shop:shop/Pricing-v0')
    self.assertEqual(code, 0)
    with open(os.path.join(_ROOT, 'docs', 'new_environment.md'),
              encoding='utf-8') as page:
      [shown] = re.findall(r'\n\nRemarks:\n.*?(?=```)', page.read(), re.S)
    # On a busy machine, steps are not fast.
    flag = ' \\\n      --environments_per_process=8'
    self.assertEndsWith(output.replace(flag, ''), shown.replace(flag, ''))
    self.assertRegex(output, r'actions +Box\(0.0, 500.0, \(2,\), float32\)\n')
    self.assertRegex(output, r'rewards +-\d,\d\d\d to \d,\d\d\d, mean ')
    self.assertRegex(output, 'of 50 steps each; 0 terminated, .* truncated')
    code, output = _check('examples.shop:shop/Inventory-v0')
    self.assertEqual(code, 0)
    self.assertRegex(output, r'stock +Box\(.*; seen 0 to 200\n')
    self.assertRegex(output, r'weekday +Discrete\(7\); seen 0 to 6\n')
    self.assertIn('MultiDiscrete([11 11 11])', output)

  def test_slow_environments_end_the_trial(self):
    with mock.patch.object(check, '_SECONDS', 2.):
      code, output = _check(_name('SlowReset'))
    self.assertEqual(code, 0)
    self.assertRegex(output, r', (\d,\d\d\d|[3-9]\d\d) ms per reset')
    self.assertIn('checker was not run: its resets would take', output)
    self.assertIn('--num_actor_groups=16', output)
    with mock.patch.object(check, '_SECONDS', .01):
      code, output = _check(_name('SlowSteps'))
    self.assertEqual(code, 0)
    self.assertIn('not compared', output)
    self.assertIn('none ended in 1 steps', output)

  def test_arguments_of_the_environment(self):
    _, output = _check(_name('Endless'), '--environment_kwargs='
                       '{"max_episode_steps": 7}', '--num_action_repeats=2')
    self.assertRegex(output, 'of 4 steps each; 0 terminated')
    self.assertIn('max_episode_steps": 7}', output)
    self.assertIn('\n      --num_action_repeats=2', output)
    self.assertIn('Each action is repeated for 2 frames (--num_action_repeats='
                  '2).', ' '.join(output.split()))

  def test_the_command_has_the_given_flags_of_the_environment(self):
    given = {'width': 64, 'height': 48, 'step_timeout_s': 900.,
             'environments_per_process': 2, 'max_environment_restarts': 0,
             'repeat_action_probability': .25, 'full_action_space': True}
    config = config_lib.Config(mode='check', level_name='my:Env-v0', **given)
    command = check.command(config, 'my:Env-v0', check.advise(
        _facts(step_s=.001)))  # Eight in a process, if not given.
    parsed = experiment.parse([word for word in shlex.split(command.replace(
        '\\\n', ' ')) if word.startswith('--')])
    self.assertEqual({name: getattr(parsed, name) for name in given}, given)
    plain = check.command(config_lib.Config(
        mode='check', level_name='my:Env-v0'), 'my:Env-v0', check.advise(
            _facts()))
    self.assertLen(re.findall('--', plain), 3)


class ErrorsTest(parameterized.TestCase):

  @parameterized.parameters(
      ('OldApi', 'AssertionError: The `info` returned by `step'),
      ('NotANumber', 'the reward is nan, but must be finite'))
  def test_errors_have_frames_of_the_user(self, kind, text):
    with self.assertRaisesRegex(errors.EnvironmentProcessError, text) as e:
      _check(_name(kind))
    self.assertRegex(e.exception.frames, (
        r'^  File ".*checked_environments.py", line \d+, in step\n'
        r'    def step\(self, action\):\n$'))

  @parameterized.parameters(
      (1, 'the reward must be a number, but `step` returned the reward None'),
      (2, '`terminated` of `step` is None, but must be a bool'),
      (3, '`truncated` of `step` is None, but must be a bool'))
  def test_none_is_no_result(self, place, text):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, f'ValueError: {text}$'):
      _check(_name('Nothing'), f'--environment_kwargs={{"place": {place}}}')

  def test_an_error_of_gymnasium_alone_has_its_frame(self):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'action space does not inherit') as e:
      _check(_name('NoSpaces'))
    self.assertIn('gymnasium', e.exception.frames)

  @parameterized.parameters(
      ('MaskedParts', r'action_mask +Tuple\(.*; seen 0 to 1'),
      ('ListOfParts', r'1 +Discrete\(3\); seen 1'))
  def test_tuples(self, name, pattern):
    self.assertRegex(_check(f'fake_environments:fake/{name}-v0')[1], pattern)

  def test_rare_rewards_are_some(self):
    rewards = np.zeros(1000)
    for share, text in (
        (0, '100'), (4, 'over 99'), (20, '98'), (996, 'under 1'), (1000, '0')):
      rewards[:share] = 1.
      self.assertIn(f'; {text} % are 0', dict(
          check._report(_facts(rewards=rewards)))['rewards'])

  @parameterized.parameters(
      ('ALE/Pong-v5', errors.EnvironmentSpecError, 'needs no check'),
      ('catch,memory', errors.ConfigError, 'plays one level'),
      ('explore_goal_locations_small', errors.ConfigError, 'needs no check'),
      ('my/envs:Mine-v0', errors.UnknownLevelError,
       'does not name a module: write envs:Mine-v0, and start'),
      ('envs.py:Mine-v0', errors.UnknownLevelError, 'write envs:Mine-v0'),
      ('.envs:Mine-v0', errors.UnknownLevelError, 'write envs:Mine-v0'),
      ('fake_environments:fake/NoActions-v0', errors.EnvironmentSpecError,
       'nothing to choose'),
      ('fake_environments:fake/NothingToDo-v0', errors.EnvironmentSpecError,
       'nothing to choose'),
      ('fake_environments:fake/OwnSpace-v0', errors.EnvironmentSpecError,
       'an ObservationWrapper of gymnasium that returns a Box'))
  def test_levels_that_cannot_be_checked(self, level, kind, text):
    with self.assertRaisesRegex(kind, text) as e:
      _check(level)
    self.assertEqual(e.exception.exit_code, 2)


def _a_slow_start():
  """Lets a process start slowly, on a busy machine."""
  return mock.patch.object(starts, 'more_s', return_value=60.)


class TrialTest(parameterized.TestCase):

  @parameterized.parameters(
      ('__init__', r'2 seconds \(--step_timeout_s, and 1.5 s more\)'),
      ('reset', r'2 seconds \(--step_timeout_s, and 1.5 s more\)'),
      ('step', r'0.5 seconds \(--step_timeout_s\)'))
  def test_an_environment_that_hangs(self, method, text):
    with mock.patch.object(starts, 'TIMEOUT_S', 1.5), _a_slow_start(), \
        self.assertRaisesRegex(
            errors.EnvironmentProcessError,
            f'`{method}` did not return within {text}$') as e:
      _check(_name('Hangs'), '--step_timeout_s=.5',
             f'--environment_kwargs={{"method": "{method}"}}')
    self.assertIn(f'in {method}\n', e.exception.frames)
    self.assertIn('time.sleep(10_000)', e.exception.frames)

  def test_an_environment_that_hangs_at_its_end(self):
    def hang():
      signal.raise_signal(signal.SIGALRM)  # At once, not after the limit.
      time.sleep(10_000)

    env = gymnasium.make('CartPole-v1')
    with mock.patch.object(env, 'close', hang), \
        mock.patch.object(signal, 'setitimer') as limit:
      facts = trial.Trial('mine', lambda: env, 900., 900.).play(
          .01, checks=False)
    self.assertNotEmpty(facts.rewards)
    self.assertIn(mock.call(signal.ITIMER_REAL, 10), limit.call_args_list)

  def test_an_environment_that_cannot_be_interrupted(self):
    with mock.patch.object(check, '_SECONDS', .1), mock.patch.object(
        starts, 'TIMEOUT_S', .5), _a_slow_start(), self.assertRaisesRegex(
            errors.EnvironmentProcessLostError, r'did not answer within 2.9 '
            r'seconds \(--step_timeout_s, and 2.4 s more\)'):
      _check(_name('Hangs'), '--step_timeout_s=.5',
             '--environment_kwargs={"method": "step", "is_deaf": true}')

  def test_a_check_waits_30_seconds_unless_another_time_is_given(self):
    for flags, expected, command in (
        ((), 30, ''), (('--step_timeout_s=300',), 300, ''),
        (('--step_timeout_s=900',), 900, '--step_timeout_s=900')):
      with mock.patch.object(environments, 'play_trial',
                             return_value=_facts()) as play:
        _, output = _check('CartPole-v1', *flags)
      self.assertEqual(play.call_args.args[1].step_timeout_s, expected)
      self.assertIn(command, output)
      self.assertEqual('step_timeout_s' in output, bool(command))

  def test_the_first_reset_of_a_short_trial_does_not_count(self):
    env = mock.Mock(observation_space=gymnasium.spaces.Box(0, 1, (2,)),
                    action_space=gymnasium.spaces.Discrete(2))
    clock, resets_s = [0.], [5., 1.]  # Something is compiled once.

    def reset(seed):
      del seed
      clock[0] += resets_s.pop(0)
      return np.zeros(2, np.float32), {}

    def step(action):
      del action
      clock[0] += .25
      return np.zeros(2, np.float32), 1., False, False, {}

    env.reset.side_effect, env.step.side_effect = reset, step
    with mock.patch.object(
        trial, 'time', types.SimpleNamespace(monotonic=lambda: clock[0])):
      facts = trial.Trial('mine', lambda: env, 9., 9.).play(2., checks=False)
    self.assertEqual((facts.num_resets, facts.reset_s), (1, 1.))
    self.assertGreater(len(facts.rewards), 1)
    self.assertIsNone(facts.checker)

  @parameterized.parameters((12., None, None), (8., True, None),
                            (6., True, True), (1., True, True))
  def test_episodes_that_time_may_cut_are_not_compared(
      self, reset_s, repeats, differs):
    clock = [0.]

    class SlowReset(gymnasium.Wrapper):

      def reset(self, **kwargs):
        clock[0] += reset_s
        return super().reset(**kwargs)

    with mock.patch.object(
        trial, 'time', types.SimpleNamespace(monotonic=lambda: clock[0])):
      facts = trial.Trial(
          'mine', lambda: SlowReset(gymnasium.make('CartPole-v1')), 9., 9.
          ).play(20., checks=True)
    self.assertEqual((facts.repeats, facts.differs), (repeats, differs))

  def test_the_same_as_gymnasium_alone(self):
    # CartPole's rewards are 1: an episode of N steps returns N.
    config = config_lib.Config(level_name='CartPole-v1')
    facts = environments.play_trial('CartPole-v1', config, 600.)
    self.assertLen(facts.rewards, 5000)
    self.assertEqual(facts.returns, facts.lengths)
    self.assertLen(facts.lengths, facts.num_terminated)
    # The compared episodes may be cut after 20 steps.
    self.assertBetween(5000 - sum(facts.lengths), 0, 4 * 20 + 500)
    self.assertBetween(facts.num_resets - len(facts.lengths), 1, 5)
    self.assertTrue(facts.repeats and facts.differs)
    self.assertEqual(facts.checker, '')


class AdviceTest(parameterized.TestCase):

  @parameterized.parameters(
      (_facts(), 'appo_vectors'),
      (_continuous(), 'sac_vectors'),
      (_continuous(step_s=1e-4), 'sac_vectors'),
      (_continuous(rewards=np.full(100, -3000.)), 'sac_vectors'),
      (_continuous(rewards=np.full(100, -6000.)), 'appo_vectors'),
      (_continuous(rewards=1. - 9000 * np.eye(100)[0]), 'sac_vectors'),
      (_continuous(rewards=np.full(100, .005)), 'appo_vectors'),
      (_continuous(rewards=np.eye(100)[0] / 10), 'sac_vectors'),  # Sparse.
      (_continuous(rewards=np.zeros(100)), 'sac_vectors'),
      (_continuous(parts={'frame': _PART._replace(low=-400.)}), 'sac_vectors'),
      (_continuous(parts={'frame': _PART._replace(space='Discrete(500)',
                                                  high=499.)}), 'sac_vectors'),
      (_facts(parts=_GOALS,
              can_use_hindsight=False), 'appo_vectors'),
      (_facts(spec=structs.EnvironmentSpec(
          {'a': _VECTOR, 'b': _FRAME}, structs.ActionSpec((2,)), 1)),
       'appo_frames'),
      (_facts(parts=_GOALS),
       'ddqn_bit_flipping'),
      (_facts(parts=_GOALS,
              spec=structs.EnvironmentSpec(
                  _VECTOR, structs.ActionSpec((3, 2)), 1)), 'appo_vectors'),
      (_continuous(parts=_GOALS),
       'sac_fetch_reach'),
      (_continuous(parts={'a': _PART, 'instruction': _PART}), 'appo_vectors'),
      (_facts(parts={**_GOALS, 'instruction': _PART}), 'appo_vectors'))
  def test_recipe(self, facts, recipe):
    self.assertEqual(check.advise(facts).recipe, recipe)

  @parameterized.parameters(
      (_facts(), {}),
      (_facts(step_s=.001), {'environments_per_process': '8'}),
      (_facts(step_s=.001, reset_s=.1), {}),
      (_facts(reset_s=1.), {'num_actor_groups': '16'}),
      (_facts(step_s=1., reset_s=1., lengths=[200]), {}),
      (_continuous(rewards=np.full(100, 3.5)), {}),
      (_continuous(rewards=np.full(100, 5.)), {'reward_scale': '0.2'}),
      (_continuous(rewards=np.array([-8., 10., 0.])), {'reward_scale': '0.1'}),
      (_continuous(rewards=np.full(100, -2500.)), {'reward_scale': '0.0004'}),
      (_facts(rewards=np.full(100, 9.)), {}),
      (_facts(lengths=[]), {
          'environment_kwargs': '{"max_episode_steps": 1000}'}),
      (_facts(lengths=[], has_time_limit=True), {}),
      (_facts(lengths=[], has_time_limit=None), {}))
  def test_flags(self, facts, flags):
    self.assertEqual(check.advise(facts).flags, flags)

  @parameterized.parameters(
      (_facts(), 0), (_continuous(), 1), (_continuous(step_s=.1), 2),
      (_continuous('Box(-1.0, 1.0, (1,), float32)'), 0),
      (_facts(differs=False), 1), (_facts(checker=None), 1),
      (_facts(rewards=np.zeros(100)), 1),
      (_facts(unused_masks=['action_masks()']), 1), (_facts(step_s=1.), 1),
      (_facts(step_s=1., spec=structs.EnvironmentSpec(  # Not with ddqn.
          _VECTOR, structs.ActionSpec((3, 2)), 1)), 0),
      (_facts(step_s=1., parts=_GOALS), 0),
      (_facts(step_s=1., parts={'a': _PART, 'instruction': _PART}), 0),
      (_continuous('Box(-1.0, 1.0, (1,), float32)',
                   rewards=np.full(100, .005)), 0),
      (_facts(parts=_GOALS, can_use_hindsight=False), 1),
      (_facts(lengths=[9, 10], num_terminated=2), 1),
      (_facts(lengths=[9, 10], num_terminated=1), 0),
      (_facts(lengths=[9, 10], num_terminated=2, has_time_limit=True), 0),
      (_facts(lengths=[9, 10], num_terminated=2, has_time_limit=None), 0))
  def test_remarks(self, facts, number):
    self.assertLen(check.advise(facts).remarks, number)
    self.assertEmpty(check.faults(facts))

  def test_the_command_is_one_of_a_shell_and_of_the_program(self):
    for facts in (_facts(lengths=[]), _continuous(step_s=1e-4),
                  _continuous(reset_s=1.), _facts(spec=structs.EnvironmentSpec(
                      _FRAME, structs.ActionSpec((2,)), 1))):
      config = config_lib.Config(
          level_name='my:Env-v0', environment_kwargs={'size': "it's"})
      advice = check.advise(facts)
      words = shlex.split(check.command(config, 'my:Env-v0', advice).replace(
          '\\\n', ' '))
      parsed = experiment.parse([
          word for word in words if word.startswith('--')])
      self.assertEqual(parsed.level_name, 'my:Env-v0')
      self.assertEqual(parsed.kwargs['size'], "it's")
      self.assertEqual(parsed.logdir, '/tmp/scalable_agent/Env_v0')
      self.assertEqual(parsed.num_actors, check._NUM_ACTORS)
      for flag, value in advice.flags.items():
        if flag != 'environment_kwargs':
          self.assertEqual(str(getattr(parsed, flag)), value)

  def test_large_observations(self):
    for shape, dtype, parts, text in (
        ((60, 50), np.float32, {'frame': _PART},
         'The observation is large: 3,000 numbers.'),
        ((3, 84, 84, 3), np.float32, {'frame': _PART},
         'The observation seems to be a stack of pictures, but is learned as a '
         'vector: a picture has three axes, '),
        ((84, 84), np.uint8, {'grey': _PART, 'b': _PART},
         'The part grey seems to be a picture, but is learned as a vector: '
         'a picture needs a channel axis, [84, 84, 1], ')):
      spec = structs.ArraySpec(shape, np.dtype(dtype))
      remarks = check.advise(_facts(parts=parts, spec=structs.EnvironmentSpec(
          {'grey': spec} if 'grey' in parts else spec,
          structs.ActionSpec((2,)), 1))).remarks
      self.assertLen(remarks, 1)
      self.assertStartsWith(remarks[0], text)

  @parameterized.parameters(
      (np.int32, -2000., 7., True, 'The part a has integers of int32, up to '
       '2,000, which are not scaled, and which --normalise_observations=auto '),
      (np.int64, 0., 17., False,
       'The observation has integers of int64, up to 17, which are '),
      (np.int8, -16., 16., True, ''), (np.uint8, 0., 255., True, ''),
      (np.float32, 0., 2000., True, ''),
      (np.int32, np.inf, -np.inf, True, ''))  # No number was seen.
  def test_large_integers(self, dtype, low, high, has_parts, text):
    spec = structs.ArraySpec((3,), np.dtype(dtype))
    part = trial.Part('Box', low, high)
    remarks = check.advise(_facts(
        parts={'a': part, 'b': _PART} if has_parts else {'frame': part},
        spec=structs.EnvironmentSpec(
            {'a': spec, 'b': structs.ArraySpec((2,), np.dtype(np.float32))}
            if has_parts else spec, structs.ActionSpec((2,)), 1))).remarks
    self.assertLen(remarks, bool(text))
    self.assertStartsWith(''.join(remarks), text)

  def test_faults_of_parts(self):
    for names, text in ((('frame',), 'observations are not in their space'),
                        (('a', 'b'), 'have a part a that is not in its space')):
      [fault] = check.faults(_facts(
          parts=dict.fromkeys(names, _PART), outside={names[0]: 3}))
      self.assertIn(text, fault)

  def test_lines_fit_the_screen(self):
    facts = _facts(warnings=['word ' * 60], lengths=[], rewards=np.zeros(5))
    lines = [line for text in check.advise(facts).remarks
             for line in check._item(text).splitlines()]
    self.assertLessEqual(max(map(len, lines)), check._WIDTH)
    self.assertTrue(all(re.match('- |  ', line) for line in lines))


# See `mutations.py`.
MUTATIONS = (
    dict(file='modes/check', catches='test_rare_rewards_are_some',
         rows=(
        ('rare rewards are none',
         '.995 <= share < 1',
         'False'),
    )),
    dict(file='modes/check', catches='AdviceTest.test_flags',
         rows=(
        ('a registered limit is replaced',
         'if not facts.lengths and facts.has_time_limit is False',
         'if not facts.lengths'),
    )),
    dict(file='environments/trial',
         catches='test_the_first_reset_of_a_short_trial_does_not_count', rows=(
        ('the first reset counts',
         'self._num_resets, self._reset_s = 0, 0.', 'pass'),
        ('the time ends with the first reset',
         'end_s = time.monotonic() + self._reset_s + seconds', 'pass'),
    )),
    dict(file='environments/trial',
         catches='test_episodes_that_time_may_cut_are_not_compared', rows=(
        ('cut episodes are compared', 'break  # The trace may be cut.',
         'pass'),
    )),
    dict(file='environments/trial', catches='test_an_environment_that_hangs',
         rows=(
        ('steps have as much time as resets', "{'step': step_s, ", '{'),
        ('resets have no limit', "with self._limited('reset'):", 'if True:'),
    )),
    dict(file='environments/trial',
         catches='test_an_environment_that_hangs_at_its_end', rows=(
        ('closing has as much time as resets',
         ", 'close': min(reset_s, _CLOSE_TIMEOUT_S)", ''),
    )),
    dict(file='processes/remote',
         catches='test_an_environment_that_cannot_be_interrupted', rows=(
        ('a trial has the time of a step', 'self._answer(self._more_s,',
         'self._answer(0.,'),
    )),
    dict(file='experiment',
         catches='test_a_check_waits_30_seconds_unless_another_time_is_given',
         rows=(
        ('a check waits as long as a training', "values['mode'] == 'check' and",
         "values['mode'] == 'none' and"),
        ('the time that is given has no effect',
         "and 'step_timeout_s' not in given", ''),
    )),
    dict(file='modes/check',
         catches='test_a_check_waits_30_seconds_unless_another_time_is_given',
         rows=(
        ('a training waits as short as a check',
         'if config.step_timeout_s == environment_settings.CHECK_TIMEOUT_S:',
         'if False:'),
    )),
    dict(file='environments/trial', catches='test_report', rows=(
        ('one seed for all', 'for seed in (1, 1, 2, 3):',
         'for seed in (1, 1, 1, 1):'),
        ('the seed is not repeated', 'for seed in (1, 1, 2, 3):',
         'for seed in (1, 4, 2, 3):'),
        ('observations are not compared',
         'x == y and all(np.array_equal(a[name], b[name]) for name in a)',
         'x == y'),
        ('masks in infos are not seen', 'spaces.MASK in self._info)', 'False)'),
        ('masks of methods are not seen',
         "env.has_wrapper_attr('action_masks')", 'False'),
        ('names of parts are texts', "'mask' in str(name).lower()",
         "'mask' in name.lower()"),
        ('no time limit of one step', "vars(raw)['step']", "vars(raw)['_']"),
        ('bounds of the first number only', 'space.low.min():g',
         'space.low[0] - 1:g'),
        ('the mask is not looked at',
         'if checks and not spaces.has_mask(env.observation_space) and (',
         'if checks and ('),
    )),
    dict(file='environments/trial', catches='test_no_remark', rows=(
        ('masks that agents see are named',
         'if spaces.MASK in self._spaces or not size:', 'if not size:'),
        ('no time limit is known', 'env.spec.max_episode_steps is not None',
         'False'),
    )),
    dict(file='modes/check', catches='test_goals', rows=(
        ('hindsight with repeated actions',
         'facts.can_use_hindsight and config.num_action_repeats == 1',
         'facts.can_use_hindsight'),
    )),
    dict(file='environments/trial', catches='test_goals', rows=(
        ('hindsight cannot be used', 'goals.can_use_hindsight(env)', 'False'),
    )),
    dict(file='environments/trial',
         catches='test_the_same_as_gymnasium_alone', rows=(
        ('returns go on', 'self._num_steps, self._return = 0, 0.\n    with',
         'self._num_steps = 0\n    with'),
        ('all terminate', 'self._num_terminated += terminated',
         'self._num_terminated += 2'),
    )),
    dict(file='modes/check', catches='test_recipe', rows=(
        ('rewards of one sign', 'np.abs(rewards[rewards != 0])',
         'rewards[rewards != 0]'),
        ('zeros count', 'np.abs(rewards[rewards != 0])', 'np.abs(rewards)'),
        ('one large reward is enough', 'float(sizes.mean())',
         'float(sizes.max())'),
        ('instructions without a memory',
         'is_continuous and _fits_replay(facts) and', 'is_continuous and'),
        ('hindsight without compute_reward', 'and facts.can_use_hindsight\n',
         '\n'),
    )),
    dict(file='modes/check', catches='test_remarks', rows=(
        ('instructions with ddqn', 'and _fits_replay(facts)\n      and not',
         'and not'),
        ('continuous actions with ddqn',
         '\n      and not facts.spec.action.size):', '):'),
        ('time limits are not known',
         '> 1 and facts.has_time_limit is False',
         ''),
        ('cut episodes do not count',
         'and facts.num_terminated == len(facts.lengths)', ''),
        ('fast steps are slow', '>= _SLOW_STEP_S', '>= 0'),
    )),
    dict(file='modes/check', catches='test_large_observations', rows=(
        ('every vector is a picture', ' and spec.dtype == np.uint8', ''),
        ('every large part is a Discrete',
         "if facts.parts[name].space.startswith('Discrete') else '.')",
         "if facts else '.')"),
    )),
    dict(file='modes/check', catches='test_large_integers', rows=(
        ('negative integers are small', 'max(abs(low), abs(high))',
         'high'),
        ('uint8 is not scaled', ' or spec.dtype == np.uint8', ''),
        ('no number is a number', ' if high >= low else 0', ''),
        ('small integers', 'largest > spaces.MAX_COUNT', 'largest > 0'),
    )),
    dict(file='modes/check', catches='test_faults_of_parts', rows=(
        ('a frame is a part', "'are not in their' if _has_no_parts(facts)",
         "'are not in their' if not facts"),
    )),
    dict(file='processes/user_code', catches='test_none_is_no_result', rows=(
        ('None is False', 'if flag is None:', 'if flag == 0:'),
    )),
    dict(file='environments/registry',
         catches='test_levels_that_cannot_be_checked', rows=(
        ('paths are imported', "or '/' in module:", 'or not module:'),
        ('names of files are imported', "module.endswith('.py') or", ''),
        ('names that begin with a dot are imported',
         "module.startswith('.') or", ''),
    )),
    dict(file='processes/user_code',
         catches='test_errors_have_frames_of_the_user', rows=(
        ('frames of gymnasium come along', '_NOT_THEIRS = (_OURS, _WRAPPERS,',
         '_NOT_THEIRS = (_OURS,'),
    )),
    dict(file='processes/user_code',
         catches='test_an_error_of_gymnasium_alone_has_its_frame', rows=(
        ('an error has no frame', 'for frame in frames[-1:]',
         'for frame in frames[:0]'),
    )),
    dict(file='modes/check', catches='test_flags', rows=(
        ('a scale for rewards of any size', 'mean_size > _LARGE_REWARD',
         'mean_size > 0'),
        ('a scale that makes rewards larger', '{1 / mean_size:.0e}',
         '{mean_size:.0e}'),
        ('a scale for other algorithms, too',
         "recipe == 'sac_vectors' and mean", 'mean'),
    )),
    dict(file='environments/trial', catches='test_flags', rows=(
        ('groups for long episodes, too',
         'num_environments * self.reset_s_per_step\n'
         '        > self.mean_step_s + _POLICY_STEP_S)', 'True)'),
    )),
    dict(file='modes/check', catches='test_arguments_of_the_environment',
         rows=(
        ('repeats of the recipe, not of the user',
         '      num_action_repeats=config.num_action_repeats,', ''),
    )),
    dict(file='modes/check', catches='test_flags', rows=(
        ('resets are free', ' + facts.reset_s_per_step < _SHORT_STEP_S',
         ' < _SHORT_STEP_S'),
    )),
    dict(file='modes/check',
         catches='test_the_command_has_the_given_flags_of_the_environment',
         rows=(
        ('the flags of the advice count more',
         '{**advice.flags, **_given(config, level)}',
         '{**_given(config, level), **advice.flags}'),
        ('all flags',
         '          if getattr(config, name) != getattr(default, name)}', '}'),
    )),
    dict(file='modes/check',
         catches='test_the_command_is_one_of_a_shell_and_of_the_program', rows=(
        ('the arguments get lost', '_MAX_EPISODE_STEPS, **config.kwargs}',
         '_MAX_EPISODE_STEPS}'),
        ('no quotes', '*map(shlex.quote, words)', '*words'),
    )),
)


if __name__ == '__main__':
  absltest.main()
