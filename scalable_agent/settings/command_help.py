# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Texts of --help, --help=NAME and --version."""

from collections.abc import Sequence
import dataclasses
import re
import textwrap

import scalable_agent
from scalable_agent import errors
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
from scalable_agent.settings import environment_settings
from scalable_agent.settings import other_words
from scalable_agent.settings import program
from scalable_agent.settings import recipes
from scalable_agent.settings import sections
from scalable_agent.settings import values
from scalable_agent.settings.recipes import recipe_names

# The most used flags.
_FIRST = (
    ('recipe=NAME', 'flags of a training that works: --help=recipes'),
    ('level_name=ID', 'an id of gymnasium, module:id, or a toy: catch'),
    ('algorithm=NAME', ', '.join(declare.ALGORITHMS)),
    ('logdir=DIRECTORY', 'for all files; a run in there is resumed'),
    ('total_environment_frames=N', 'length of the training'),
    ('num_actors=N', 'environments; auto: measures and chooses'),
    ('batch_size=N', 'unrolls, or transitions, of an update'),
    ('learning_rate=X', 'see also --learning_rate_schedule'),
    ('eval_every_frames=N', 'evaluates while training, keeps the best'),
    ('seed=N', 'of weights, actions and environments'))
# The flags of modes, beside --logdir.
_OF_MODES = {
    'test': ('test_num_episodes', 'test_greedy', 'max_episode_steps',
             'num_actors'),
    'video': ('video_num_episodes', 'video_format', 'video_text',
              'test_greedy', 'max_episode_steps'),
    'export': ('export_format',),
    'plot': ('plot_file', 'plot_num_episodes'),
    'check': ('environment_kwargs', 'num_action_repeats', 'step_timeout_s'),
    'suite': ('suite', 'seeds', 'jobs')}
_WIDTH = 79


def answer(args: Sequence[str]) -> str:
  """Returns the text that the arguments ask for; '' if none is asked for.

  Raises ConfigError if the name of --help=NAME is unknown.
  """
  for arg in args:
    flag, equals, name = arg.partition('=')
    if arg == '--':
      return ''
    if flag in ('-h', '--help', '-help', '--h'):
      return _of(name) if equals else overview()
    if arg in ('--version', '-version', '-V'):
      return f'scalable_agent {scalable_agent.__version__}'
  return ''


def overview() -> str:
  """Returns the most used flags and modes, within a screen."""
  run = f'{program.name()} --logdir=/tmp/a'
  width = max(len(flag) for flag, _ in _FIRST) + 4
  modes = _settings('impala')['mode'].metadata['choices']
  return '\n'.join([
      f'scalable_agent {scalable_agent.__version__}: trains and tests agents.',
      '',
      f'  {run} --recipe=cartpole  # train',
      f'  {run} --mode=test        # test',
      '',
      *[f'  {"--" + flag:{width}}{text}' for flag, text in _FIRST],
      *textwrap.wrap(', '.join(modes), _WIDTH,
                     initial_indent=f'  {"--mode=NAME":{width}}',
                     subsequent_indent=' ' * (width + 2)),
      '',
      '  --help=sac        the flags of an algorithm, with their defaults',
      '  --help=test       a mode and its flags',
      '  --help=batch_size a flag',
      '  --help=recipes    all recipes; --help=cartpole shows a recipe',
      '  --helpfull        all flags, by section',
      '  --version'])


def _of(name: str) -> str:
  name = name.lstrip('-').lower()
  if name in declare.ALGORITHMS:
    return of_algorithm(name)
  if name in ('recipe', 'recipes'):
    return _recipes()
  if name in _settings('impala')['mode'].metadata['choices']:
    return _of_mode(name)
  fields = {field.name: field
            for field in dataclasses.fields(config_lib.Config)}
  if name in fields:
    text = f'--{name}: {fields[name].metadata["text"]}'
    if default := _value(getattr(config_lib.Config, name)):
      text += f' Default: {default}.'
    return '\n'.join(textwrap.wrap(text, _WIDTH))
  if name in recipe_names():
    return '\n'.join([
        *textwrap.wrap(recipes.comment_of(name), _WIDTH,
                       break_on_hyphens=False), '',
        f'--recipe={name} sets these flags:', *(
            f'  --{flag}={value}'.removesuffix('=')
            for flag, value in recipes.settings_of(name).items())])
  raise errors.ConfigError(other_words.of_help(name) or (
      f'There is no --help={name}: give the name of a flag, of a mode or of a '
      f'recipe, recipes, or one of {", ".join(declare.ALGORITHMS)}.'))


def _of_mode(mode: str) -> str:
  """Returns the task of a mode, from the text of --mode, and its flags."""
  fields = _settings('impala')
  text = fields['mode'].metadata['text']
  match = re.search(rf'\b{mode}: (.*?)\.(?= \w+: |$)', text)
  assert match is not None, mode
  lines = textwrap.wrap(f'--mode={mode}: {match[1]}.', _WIDTH)
  if mode in program.OF_TRAINED_AGENTS:
    lines.append('Flags that are not given have the values of the training.')
  for name in _OF_MODES.get(mode, ()):
    lines += _lines_of(fields[name], _default_of_mode(mode, fields[name]))
  return '\n'.join(lines)


def _default_of_mode(mode: str, field: dataclasses.Field[declare.Value]) -> str:
  """Returns the default of a flag in a mode, for `_lines_of`."""
  default = field.metadata['default']
  if isinstance(default, declare.By):
    return f' ({default}) '
  if (mode, field.name) == ('check', 'step_timeout_s'):
    default = environment_settings.CHECK_TIMEOUT_S
  value = _value(default)
  return f'={value} ' if value else ' '


def _lines_of(field: dataclasses.Field[declare.Value],
              default: str) -> list[str]:
  """Returns a flag with its default, its first sentence and its choices."""
  names = ', '.join(field.metadata['algorithms'])
  text = _sentence(field.metadata['text'].removeprefix(f'{names}: '))
  if choices := field.metadata['choices']:
    text += f': {", ".join(choices)}'
  return textwrap.wrap(
      f'--{field.name}{default} {text}', _WIDTH, initial_indent='  ',
      subsequent_indent=' ' * 8)


def _recipes() -> str:
  """Returns a table of all recipes: name, algorithm, level."""
  rows = [(name, recipes.algorithm_of(name),
           recipes.settings_of(name).get('level_name', ''))
          for name in recipe_names()]
  width = max(len(name) for name, *_ in rows) + 2
  return '\n'.join(f'{name:{width}}{algorithm:8}{level}'.rstrip()
                   for name, algorithm, level in rows)


def _settings(algorithm: str) -> dict[str, dataclasses.Field[declare.Value]]:
  """Returns the settings that an algorithm uses, by name."""
  return {field.name: field for section in sections.SECTIONS
          for field in dataclasses.fields(section)
          if algorithm in field.metadata['algorithms']}


def of_algorithm(algorithm: str) -> str:
  """Returns the flags of an algorithm by section, with their defaults."""
  # Neither Atari nor DeepMind Lab, which have defaults of their own.
  config = config_lib.Config(algorithm=algorithm, level_name='CartPole-v1')
  recurrent = config_lib.Config(
      algorithm=algorithm, level_name='CartPole-v1', use_lstm=True)
  used, seen = _settings(algorithm), {'algorithm', 'mode'}
  lines = [f'The flags of {algorithm}, each with its default (for levels that '
           'are neither of', 'Atari nor of DeepMind Lab). --help=NAME has the '
           'whole text of a flag.']
  # First the sections with flags of a few algorithms.
  for section in sorted(sections.SECTIONS, key=_is_common):
    if config.is_off_policy and section.__name__ == 'ImpalaSettings':
      continue  # The settings of rewards are in another section, too.
    fields = [field for field in dataclasses.fields(section)
              if field.name in used and field.name not in seen]
    seen.update(field.name for field in fields)
    if fields:
      lines += ['', _sentence(section.__doc__ or '')]
    for field in fields:
      lines += _lines_of(field, _default_of_algorithm(field, config, recurrent))
  return '\n'.join(lines)


def _default_of_algorithm(
    field: dataclasses.Field[declare.Value], config: config_lib.Config,
    recurrent: config_lib.Config) -> str:
  """Returns the default of a flag, for `_lines_of`.

  `config` has the defaults of an algorithm without an LSTM, `recurrent` has
  the defaults with an LSTM.
  """
  value, with_lstm = (
      getattr(settings, field.name) for settings in (config, recurrent))
  needs = field.metadata['needs']
  if field.name == 'level_name':
    value = field.default
  elif needs and needs.name == 'use_lstm':
    value = with_lstm
  if value is None:
    return '  (automatic)'
  text = f'={_value(value)} '
  if field.name in ('level_name', 'use_lstm') or value == with_lstm:
    return text
  return f'{text}(with --use_lstm: {_value(with_lstm)}) '


def _value(value: declare.Value) -> str:
  """Returns the value of a setting as a text, '' for None."""
  return '' if value is None else values.as_text(value)


def _sentence(text: str) -> str:
  """Returns the first sentence, without a full stop; "..." is no end."""
  return re.split(r'(?<!\.)\.(?: |$)', text, maxsplit=1)[0]


def _is_common(section: type[declare.Section]) -> bool:
  """Returns whether all algorithms use all settings of a section."""
  return all(field.metadata['algorithms'] == declare.ALGORITHMS
             for field in dataclasses.fields(section))
