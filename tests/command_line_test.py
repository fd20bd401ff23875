# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of --help, --version, and words of other programs."""

import contextlib
import dataclasses
import io
import os
import re
import subprocess
import sys

from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import scalable_agent
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.settings import command_help
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
from scalable_agent.settings import other_words
from scalable_agent.settings import recipes

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FIELDS = {field.name: field
           for field in dataclasses.fields(config_lib.Config)}
# Words of other programs' tables without a counterpart.
_NO_FLAGS = {
    'evaluate_policy', 'optimize_memory_usage', 'set_parameters',
    'set_random_seed', 'stats_window_size'}


def _flags_in(text):
  return {name if name in _FIELDS else name.removeprefix('no')
          for name in re.findall(r'--(\w+)', text)}


class HelpTest(parameterized.TestCase):

  def test_the_first_help_fits_a_screen(self):
    text = command_help.answer(['--seed=3', '--help'])
    self.assertEqual(text, command_help.answer(['-h']))
    lines = text.splitlines()
    self.assertLessEqual(len(lines), 25)
    self.assertLessEqual(max(map(len, lines)), 79)
    self.assertContainsSubset(
        _flags_in(text), {*_FIELDS, 'recipe', 'help', 'helpfull', 'version'})
    for mode in _FIELDS['mode'].metadata['choices']:
      self.assertIn(mode, text)

  @parameterized.parameters(*declare.ALGORITHMS)
  def test_of_an_algorithm(self, algorithm):
    text = command_help.answer([f'--help={algorithm}'])
    shown = re.findall(r'^  --(\w+)(?:=(\S*)|  \(automatic\) )', text, re.M)
    self.assertCountEqual([name for name, _ in shown], [
        name for name, field in _FIELDS.items()
        if algorithm in field.metadata['algorithms']
        and name not in ('algorithm', 'mode')])
    config = config_lib.Config(algorithm=algorithm, level_name='CartPole-v1')
    values = dict(shown)
    self.assertEqual(float(values['learning_rate']), config.learning_rate)
    self.assertEqual(values['reward_clipping'], 'none')
    self.assertEqual(values['level_name'], 'ALE/Pong-v5')
    is_off_policy = algorithm in declare.OFF_POLICY
    self.assertEqual(values['lstm_units'], '128' if is_off_policy and (
        algorithm != 'ddqn') else '256')
    self.assertEqual('--burn_in_steps=0 (with --use_lstm: 20) ' in text,
                     is_off_policy)
    self.assertEqual('(with --use_lstm: ' in text, algorithm != 'impala')
    self.assertNotIn('--dynamic_batching=', text)  # No value can be copied.
    self.assertLessEqual(max(map(len, text.splitlines())), 79)
    self.assertIn('\nThe network, its inputs, and its computation\n', text)
    self.assertIn('with the seeds 1, 2, ...\n', text)

  def test_of_a_flag(self):
    text = command_help.answer(['--help=--batch_size'])
    self.assertEqual(' '.join(text.split()), '--batch_size: '
                     + _FIELDS['batch_size'].metadata['text'])
    for name, default in (('num_actors', '4'), ('deterministic', 'false')):
      self.assertEndsWith(
          ' '.join(command_help.answer([f'--help={name}']).split()),
          f' Default: {default}.')
    self.assertNotIn('Default', command_help.answer(['--help=hook']))
    rows = [line.split()
            for line in command_help.answer(['--help=recipe']).splitlines()]
    self.assertEqual([name for name, _, _ in rows], recipes.recipe_names())
    self.assertIn(['sac_pendulum', 'sac', 'Pendulum-v1'], rows)
    self.assertEqual(command_help.answer(['--help=SAC']),
                     command_help.answer(['--help=sac']))
    with self.assertRaisesRegex(errors.ConfigError, 'no --help=batchsize: '):
      command_help.answer(['--help=batchsize'])
    for name, expected in (('ppo', '--algorithm=appo, which'),
                           ('lr', '--learning_rate?')):
      with self.assertRaisesRegex(errors.ConfigError, f'mean {expected}'):
        command_help.answer([f'--help={name}'])

  @parameterized.parameters(*_FIELDS['mode'].metadata['choices'])
  def test_of_a_mode(self, mode):
    text = command_help.answer([f'--help={mode}'])
    self.assertStartsWith(text, f'--mode={mode}: ')
    self.assertContainsSubset(_flags_in(text), {*_FIELDS})
    self.assertEqual('one level, not of DeepMind Lab' in ' '.join(text.split()),
                     mode == 'check')
    # The check refuses lists.
    self.assertNotIn('list A,B,C', text)
    self.assertEqual('--plot_file' in text, mode == 'plot')
    self.assertEqual('--suite=toys' in text, mode == 'suite')
    self.assertEqual('--test_num_episodes=10' in text, mode == 'test')
    self.assertEqual('--test_greedy (false for impala, ' in text,
                     mode in ('test', 'video'))
    self.assertEqual('the values of the training.' in text,
                     mode in ('test', 'video', 'export'))
    self.assertEqual('--step_timeout_s=30.0 ' in text, mode == 'check')
    self.assertEqual('--num_action_repeats (4 for Atari or ' in text,
                     mode == 'check')
    # The next mode is not in the text.
    self.assertNotRegex(text.splitlines()[0], r'\. \w+: ')

  def test_nothing_is_asked_for(self):
    self.assertEmpty(command_help.answer(['--logdir=-h', '--helpfull']))
    self.assertEmpty(command_help.answer(['--', '--help']))

  def test_ends_the_program(self):
    for flag, expected in (('--version', scalable_agent.__version__),
                           ('-h', '--recipe=NAME')):
      with contextlib.redirect_stdout(io.StringIO()) as out, \
          flagsaver.flagsaver(), self.assertRaises(SystemExit) as exit_of:
        experiment._parse_flags(['experiment.py', flag])
      self.assertIn(expected, out.getvalue())
      self.assertEqual(exit_of.exception.code, 0)

  def test_the_package_is_the_program(self):
    output = subprocess.check_output(
        [sys.executable, '-m', 'scalable_agent', '--help'], cwd=_ROOT,
        text=True)
    self.assertIn('  python -m scalable_agent --logdir=', output)

  def test_bare_make_prints_the_targets(self):
    # `make test` itself sets MAKELEVEL, with which make prints directories.
    output = subprocess.check_output(
        ['make', '--no-print-directory'], cwd=_ROOT, text=True)
    self.assertStartsWith(output, 'make ')
    for target in 'train', 'test', 'check', 'storm', 'docs':
      self.assertRegex(output, rf'(?m)^make {target} ')


class OtherWordsTest(parameterized.TestCase):

  def test_advice_names_flags_that_exist(self):
    for advice in [*other_words._ADVICE, *other_words._VALUES.values()]:
      self.assertContainsSubset(
          _flags_in(advice), {*_FIELDS, 'recipe', 'flagfile'}, advice)
    for value in other_words._VALUES.values():
      for algorithm in re.findall(r'--algorithm=(\w+)', value):
        self.assertIn(algorithm, declare.ALGORITHMS)

  def test_no_word_is_a_flag_or_stands_twice(self):
    words = ' '.join(other_words._ADVICE.values()).split()
    self.assertEmpty(set(words) & set(_FIELDS))
    self.assertLen(set(words), len(words))

  @parameterized.parameters(
      'stable_baselines3', 'rllib', 'cleanrl', 'sample_factory')
  def test_words_of_the_pages_are_answered(self, program):
    with open(os.path.join(_ROOT, 'docs', f'migrating_{program}.md'),
              encoding='utf-8') as page:
      words = {word for line in page if line.startswith('| `')
               for code in re.findall('`(.*?)`', line.split('|')[1])
               for word in code.split() if re.fullmatch(r'[a-z]\w*', word)}
    self.assertGreater(len(words), 15)
    self.assertEmpty({
        word for word in words - _FIELDS.keys() - _NO_FLAGS
        if not other_words.of_flag(word)})

  @parameterized.parameters(
      ('lr', '--learning_rate?'), ('num-envs', '--num_actors?'),
      ('alpha', '--initial_temperature and'), ('actor_lr', '--learning_rate?'),
      ('reward_scale_factor', '--reward_scale?'),
      ('frame_stack', 'code of other environments must stack vectors, or grey'),
      ('algo', '--algorithm?'), ('ppo.gae_lambda', '--lambda_?'),
      ('nocuda', ': a run learns on the first GPU that TensorFlow finds, and'),
      ('sweep', ': a search for settings is the program python -m scalable_'),
      ('log_std_init', '--initial_scale (a standard deviation, '),
      ('sigma', '--scale_from_state, with --algorithm=impala, appo or mpo'),
      ('run', '--algorithm?'), ('workers', '--num_actors?'),
      ('stop_timesteps', '--total_environment_frames'),
      ('framework', ': networks are made with TensorFlow.'),
      ('episodes', '--eval_num_episodes'), ('rnn_size', '--lstm_units?'),
      ('output', '--logdir?'), ('use_sde', ': this program has no gSDE; '),
      ('steps', '--total_environment_frames'), ('cfg', '--recipe or'),
      ('frames', '--total_environment_frames'),
      ('total_env_steps', '--total_environment_frames'),
      ('epsilon_greedy', '--exploration_epsilon_begin and'))
  def test_of_flags(self, name, expected):
    self.assertIn(expected, other_words.of_flag(name))

  def test_words_that_are_flags_of_absl_are_answered(self):
    words = [name for name in flags.FLAGS if other_words.of_flag(name)]
    self.assertIn('log_dir', words)
    self.assertEmpty(set(words) & set(_FIELDS))
    for word in words:
      with contextlib.redirect_stderr(io.StringIO()) as error, \
          flagsaver.flagsaver(), self.assertRaises(SystemExit) as exit_of:
        experiment._parse_flags(['experiment.py', f'--{word}=1'])
      self.assertEqual(exit_of.exception.code, 2)
      self.assertEqual(
          error.getvalue(), f'scalable_agent: {other_words.of_flag(word)}\n')
    with flagsaver.flagsaver():  # Other flags of absl have no answer.
      self.assertEqual(experiment._parse_flags(
          ['experiment.py', '--stderrthreshold=fatal', '--seed=3']),
                       ['experiment.py'])

  def test_other_errors_stay(self):
    self.assertEmpty(other_words.of_flag('no_such_flag'))
    for text in ('flag --algorithm=abc: value should be one of <impala>',
                 'flag --seed=x: it must be a whole number'):
      self.assertEmpty(other_words.of_value(text))


  def test_settings_in_python(self):
    for settings, text in (
        (dict(lr=1), 'There is no lr. Did you mean --learning_rate?'),
        (dict(algorithm='ppo'),
         "There is no algorithm='ppo'. Did you mean --algorithm=appo, "),
        (dict(level_nam='catch'),
         'There is no setting level_nam: did you mean level_name?'),
        (dict(zzz=1), 'There is no setting zzz. --helpfull has all.')):
      with self.assertRaises(errors.ConfigError) as e:
        config_lib.Config(**settings)
      self.assertStartsWith(str(e.exception), text)


class RecipeTest(absltest.TestCase):

  def test_help(self):
    for name in recipes.recipe_names():
      comment, flags = command_help.answer([f'--help={name}']).split(
          f'\n\n--recipe={name} sets these flags:\n')
      self.assertEqual(experiment.parse(flags.split()),
                       experiment.parse([f'--recipe={name}']))
      with open(recipes._path(name), encoding='utf-8') as file:
        self.assertEqual(comment.split(), [
            word for line in file if line.startswith('#')
            for word in line.split()[1:]])

  def test_algorithms(self):
    self.assertEqual(recipes.algorithm_of('cartpole'), 'impala')
    self.assertEqual(recipes.algorithm_of('sac_pendulum'), 'sac')

  def test_only_errors_of_another_algorithm_name_the_recipe(self):
    with self.assertRaisesRegex(
        errors.ConfigError, '^--recipe=cartpole is for --algorithm=impala. '
        'Recipes for --algorithm=sac: sac_cartpole, '):
      experiment.parse(['--recipe=cartpole', '--algorithm=sac'])
    with self.assertRaisesRegex(errors.ConfigError, '^--batch_size=0 must be'):
      experiment.parse(['--recipe=cartpole', '--batch_size=0'])
    with self.assertRaisesRegex(errors.ConfigError, 'mean --algorithm=appo, '):
      config_lib.Config.from_recipe('cartpole', algorithm='ppo')
    # All flags of this recipe are known to the other algorithm.
    self.assertEqual(experiment.parse(
        ['--recipe=ddpg_pendulum', '--algorithm=td3']).algorithm, 'td3')


MUTATIONS = (
    dict(file='settings/sections', catches='test_settings_in_python', rows=(
        ('settings of other programs are not answered',
         'if text := other_words.of_setting(name, value):',
         'if text := value and None:'),
        ('unknown settings are not answered',
         'if name not in cls.__dataclass_fields__:', 'if not name:'),
    )),
    dict(file='settings/other_words', catches='test_settings_in_python', rows=(
        ('values are not looked at',
         'if advice := _of_value(name, str(value)):', 'if advice := "":'),
    )),
    dict(file='settings/command_help', catches='test_of_a_flag', rows=(
        ('no default is shown', "text += f' Default: {default}.'", 'pass'),
    )),
    dict(file='settings/command_help', catches='test_help', rows=(
        ('flags are left out', 'in recipes.settings_of(name).items())',
         'in [*recipes.settings_of(name).items()][1:])'),
        ('flags without a value end with =', ".removesuffix('=')", ''),
    )),
    dict(file='experiment',
         catches='test_words_that_are_flags_of_absl_are_answered', rows=(
        ('flags of absl are accepted', 'if not any(texts):', 'if texts:'),
        ('flags that are not given are answered',
         '             if flags.FLAGS[name].present]', '             ]'),
    )),
    dict(file='settings/recipes/__init__',
         catches='test_only_errors_of_another_algorithm_name_the_recipe',
         rows=(
        ('every error names the recipe',
         '(own := algorithm_of(name)) == algorithm:', '(own := name) == "":'),
        ('an error names no recipe', 'if not others or ', 'if '),
    )),
    dict(file='settings/command_help', catches='test_of_an_algorithm', rows=(
        ('flags of all algorithms are shown',
         "if algorithm in field.metadata['algorithms']}", '}'),
        ('automatic values are shown as none', '  if value is None:\n',
         '  if value == "":\n'),
        ('defaults of an LSTM are not shown',
         "('level_name', 'use_lstm') or value == with_lstm:",
         "('level_name', 'use_lstm') or value is not None:"),
        ('"..." ends a sentence', r"r'(?<!\.)\.(?: |$)'", r"r'\.(?: |$)'"),
    )),
    dict(file='settings/command_help', catches='test_of_a_mode', rows=(
        ('the default of a check is that of a training',
         "(mode, field.name) == ('check', 'step_timeout_s')", 'False'),
        ('a check has lists of levels', "'check': (",
         "'check': ('level_name', "),
    )),
    dict(file='settings/command_help', catches='test_nothing_is_asked_for',
         rows=(
        ('arguments of the user program ask', "if arg == '--':", 'if not arg:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
