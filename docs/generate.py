# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes parts of the site from the sources: a hook of MkDocs.

A line `<!-- generate: NAME -->` in a page is replaced by the result of a
function of `_PARTS`: tables of settings, recipes, published scores and modules.
A line `<!-- generate: results NAME: HEADINGS -->` is replaced by a table of the
figures in benchmarks/results/NAME.csv. So these parts are never out of date. A
line above the marker that begins with "_In the site" is for readers of the
repository, and is left out.

The site also gets a page for each module, the pages in `_ROOT_PAGES`, and
copies of other files of the repository that pages link to.

Only `flags` imports the package, namely `scalable_agent.settings.config`, which
needs NumPy but no TensorFlow.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
import csv
import json
import os
import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
_DOCS = ROOT / 'docs'
_RECIPES = ROOT / 'scalable_agent' / 'settings' / 'recipes'
_DATA = ROOT / 'scalable_agent' / 'scores' / 'data'
_ZOO = ROOT / 'scalable_agent' / 'zoo'
_RESULTS = ROOT / 'benchmarks' / 'results'

# Pages of the site that are at the root of the repository.
_ROOT_PAGES = {'BUILD_NOTES.md': 'build_notes.md',
               'CHANGELOG.md': 'changelog.md',
               'CONTRIBUTING.md': 'contributing.md', 'README.md': 'index.md'}
# Curves without the name of their recipe.
_CURVES = {'catch': 'toys.png', 'memory': 'toys.png'}
# Words that users search for, by page. These pages come first in the search.
WORDS = {
    'algorithms.md': (
        'PPO', 'A2C', 'A3C', 'DQN', 'actor critic', 'entropy', 'LSTM',
        'recurrent', 'replay buffer', 'normalize observations',
        'normalize rewards', 'VecNormalize'),
    'flags.md': (
        'learning rate', 'batch size', 'gamma', 'discount', 'hyperparameters',
        'options', 'arguments', 'seed', 'n_steps', 'configuration', 'num_envs',
        'n_envs'),
    'getting_started.md': (
        'install', 'quick start', 'tutorial', 'train', 'hyperparameters',
        'learning rate', 'evaluate', 'Windows', 'macOS'),
    'jobs.md': (
        'GPU', 'CUDA', 'hyperparameter search', 'sweep', 'optuna', 'ray tune',
        'plot'),
    'logging.md': (
        'tensorboard', 'metrics', 'monitor', 'loss', 'learning curve',
        'success rate'),
    'machines.md': ('cluster', 'distributed', 'ray', 'several GPUs'),
    'migrating_stable_baselines3.md': ('SB3', 'stable baselines'),
    'new_algorithm.md': (
        'custom algorithm', 'custom loss', 'auxiliary loss'),
    'new_environment.md': (
        'custom environment', 'custom env', 'own environment', 'gym',
        'gymnasium', 'wrapper',
        'action mask', 'check_env', 'vectorized environment', 'VecEnv',
        'time limit', 'TimeLimit'),
    'new_network.md': (
        'custom network', 'custom policy', 'feature extractor', 'CNN',
        'architecture', 'pretrained network', 'transfer learning', 'GRU',
        'RNN', 'custom memory', 'transformer'),
    'recipes.md': (
        'hyperparameters', 'zoo', 'tuned', 'benchmark', 'own environment'),
    'runs.md': (
        'checkpoint', 'resume', 'save model', 'continue training',
        'EvalCallback', 'best model'),
    'tips.md': (
        'tips', 'best practices', 'does not learn', 'normalize', 'normalise',
        'reward scaling', 'debug', 'time limit'),
    'using_agents.md': (
        'save model', 'load model', 'predict', 'inference', 'deploy', 'export',
        'ONNX', 'callback', 'hook', 'early stopping', 'video', 'wandb',
        'mlflow', 'notebook', 'Jupyter', 'Colab'),
    'zoo.md': ('pretrained', 'trained models', 'model zoo', 'demo'),
}
_MARKER = re.compile(
    r'^(?:_In the site.*\n)?<!-- generate: (\w+)(?: (\w+): (.*))? -->$', re.M)
_INTERNAL = 'These modules are internal: they may change at any time.'
# The address of an inline link or image of another file.
LINK = re.compile(r'(?<=\]\()(?!\w+:|#)([^()\s#]+)(?=[)#])')
# Letters of a word that a narrow cell may break.
_LONG_WORD = 9
# The text of code within a line; blocks begin with <pre>, perhaps with an empty
# span.
_INLINE_CODE = re.compile(
    '(?<=<code>)(?<!<pre><code>)(?<!<pre><span></span><code>)[^<]+(?=</code>)')


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
  """Returns a table in Markdown."""
  lines = [head, ['---'] * len(head), *rows]
  return '\n'.join(
      '| ' + ' | '.join(str(cell).replace('|', r'\|') for cell in line) + ' |'
      for line in lines)


def flags() -> str:
  """Returns a table of flags for each section of the settings."""
  import dataclasses

  from scalable_agent.settings import sections
  seen: set[str] = set()
  parts = []
  for section in sections.SECTIONS:
    fields = [field for field in dataclasses.fields(section)
              if field.name not in seen]
    seen.update(field.name for field in fields)
    name = section.__name__.removesuffix('Settings')
    parts.append(f'## {name}\n\n{section.__doc__}\n\n' + _table(
        ('flag', 'default', 'meaning'), map(_flag_row, fields)))
  return '\n\n'.join(parts)


def _flag_row(field):
  metadata = field.metadata
  default, text = metadata['default'], metadata['text']
  if isinstance(default, dict):  # The default depends on the algorithm.
    text = text.removesuffix(f' Default: {default}.')
    values = ', '.join(f'{_value_text(value)} for {name}'
                       for name, value in default.items())
  else:
    values = _value_text(default)
  text = re.sub(r'--(\w+)((?:=\w+(?:[,:]\w+)*)?)',
                lambda m: f'[`--{m[1]}{m[2]}`](#{m[1]})', text)
  rules = [check.rule for check in metadata['checks']
           if not check.rule.startswith('must be one of')]
  if rules:
    text += f' The value {" and ".join(rules)}.'
  if metadata['needs']:
    text += f' No effect without `{metadata["needs"]}`.'
  if metadata['unless']:
    text += f' No effect with `--{metadata["unless"]}`.'
  return (f'<span id="{field.name}"></span>`--{field.name}`', values, text)


def _value_text(value):
  """Returns the value of a setting in Markdown."""
  if value in ('', None):
    return 'none'
  if isinstance(value, bool):
    return f'`{str(value).lower()}`'
  return f'`{value:_}`' if isinstance(value, int) else f'`{value}`'


def _recipes():
  """Yields name, comment and flags of each recipe."""
  for path in sorted(_RECIPES.glob('*.flags')):
    lines = path.read_text('utf-8').splitlines()
    comment = ' '.join(line.lstrip('# ') for line in lines
                       if line.startswith('#'))
    yield path.stem, comment, [line for line in lines
                               if line.startswith('--')]


def _value(lines, name, default=''):
  """Returns the value of a flag in the lines of a recipe."""
  return dict(line[2:].split('=', 1) for line in lines
              if '=' in line).get(name, default)


def recipes() -> str:
  """Returns a table of all recipes, and a section for each recipe."""
  rows, parts = [], []
  for name, comment, lines in _recipes():
    level = _value(lines, 'level_name')
    rows.append((f'[`{name}`](#{name})',
                 _value(lines, 'algorithm', 'impala'), f'`{level}`',
                 f'{int(_value(lines, "total_environment_frames", 1e9)):,}'))
    own = [line for line in lines if not line.startswith('--logdir')]
    part = (f'## {name} {{ #{name} }}\n\n{comment}\n\n'
            f'```bash\npython experiment.py --recipe={name} '
            '--logdir=DIRECTORY\n```\n\nThe same with flags:\n\n```text\n'
            + ' \\\n'.join(own) + '\n```')
    curve = _CURVES.get(name, f'{name}.png')
    if (_DOCS / curve).exists():
      part += f'\n\n![The learning curve of {name}]({curve})'
    parts.append(part)
  table = _table(('recipe', 'algorithm', 'level', 'frames'), rows)
  return '\n\n'.join([table, *parts])


def _csv(name, directory=_DATA):
  with open(directory / name, encoding='utf-8', newline='') as f:
    return list(csv.DictReader(f))


def atari57() -> str:
  """Returns the published agents on Atari-57."""
  return _table(
      ('agent', 'median, %', 'mean, %', 'source', 'note'),
      [(row['name'], row['median_percent'], row['mean_percent'],
        row['source'], row['note']) for row in _csv('atari57_sources.csv')])


def dmlab30() -> str:
  """Returns the published agents on DMLab-30."""
  return _table(
      ('agent', 'capped mean, %', 'source', 'note'),
      [(row['name'], row['mean_capped_percent'], row['source'], row['note'])
       for row in _csv('dmlab30_sources.csv')])


def off_policy() -> str:
  """Returns the published scores of off-policy algorithms."""
  return _table(
      ('algorithm', 'environment', 'agent steps', 'mean return',
       'standard deviation', 'protocol', 'source'),
      [(row['algorithm'], row['environment'], f'{int(row["agent_steps"]):,}',
        row['mean_return'], row['std'], row['protocol'], row['source'])
       for row in _csv('off_policy_scores.csv')])


def zoo() -> str:
  """Returns a table of the trained agents, and their commands."""
  cards = {path.parent.name: json.loads(path.read_text('utf-8'))
           for path in sorted(_ZOO.glob('*/card.json'))}
  # Four columns fit a phone.
  table = _table(
      ('agent', 'level, algorithm', 'mean return (95 % interval)', 'training'),
      [(f'`zoo:{name}`', f'`{card["level"]}`, {card["algorithm"]}',
        f'{card["mean"]:,.2f} ({card["low"]:,.2f} to {card["high"]:,.2f}), '
        f'{len(card["returns"])} games, '
        + ('greedy' if card['greedy'] else 'sampled'),
        f'{card["num_env_frames"]:,} frames, {card["minutes"]:,.0f} minutes')
       for name, card in cards.items()])
  return '\n\n'.join([table, 'Commands of the trainings:', *(
      f'`zoo:{name}`, {card["training"]}:\n\n```bash\n'
      + card['command'].replace(' --', ' \\\n    --') + '\n```'
      for name, card in cards.items())])


def results(name: str, heads: str) -> str:
  """Returns a table of measured figures, and their origin.

  The file has a row for each figure. Its field `what` has the cells that name
  the row of the table, then the heading of the column, separated by " | ".
  Figures with equal fields `what` are several rounds or seeds.

  Args:
    name: the name of a file in benchmarks/results/, without its ending.
    heads: headings of the columns that name a row, separated by commas.
  """
  figures = _csv(f'{name}.csv', _RESULTS)
  units: dict[str, set[str]] = {}
  rows: dict[tuple[str, ...], dict[str, list[dict[str, str]]]] = {}
  for figure in figures:
    *names, column = figure['what'].split(' | ')
    rows.setdefault(tuple(names), {}).setdefault(column, []).append(figure)
    if figure['figure']:
      units.setdefault(column, set()).add(figure['unit'])
  columns = _in_order(rows.values())
  # The unit of all figures of a column is in its heading.
  shared = {column: next(iter(units.get(column, ())))
            if len(units.get(column, ())) == 1 else '' for column in columns}
  return _table(
      [*heads.split(', '), *(f'{column}, {unit}' if unit else column
                             for column, unit in shared.items())],
      [[*names, *(', '.join(_figure(figure, unit)
                            for figure in cells.get(column, ()))
                  for column, unit in shared.items())]
       for names, cells in rows.items()]) + f'\n\n{_origin(figures)} ' + (
           f'[All figures](files/benchmarks/results/{name}.csv).')


def _in_order(rows: Iterable[Iterable[str]]) -> list[str]:
  """Returns the columns of all rows, in the order that all rows have."""
  columns: list[str] = []
  for row in rows:
    place = len(columns)
    for column in reversed(list(row)):
      if column in columns:
        place = columns.index(column)
      else:
        columns.insert(place, column)
  return columns


def _figure(figure: dict[str, str], shared_unit: str) -> str:
  """Returns a figure with its interval, unit and note."""
  text, note = figure['figure'], figure['note']
  if not text:
    return note
  if 'e' not in text:
    whole = re.match(r'([+-]?)(\d+)', text)
    assert whole
    text = f'{whole[1]}{int(whole[2]):,}{text[whole.end():]}'
  if figure['unit'] != shared_unit:
    text += f' {figure["unit"]}'
  if note in ('>=', '<=', 'about'):
    text, note = f'{note} {text}', ''
  if interval := figure['interval']:
    text += (f' {interval}' if interval.startswith('+-')
             else f' ({interval})')
  return f'{text} ({note})' if note else text


def _origin(figures: list[dict[str, str]]) -> str:
  """Returns the dates, machines and commands of figures as sentences."""
  dates, machines, commands = (
      list(dict.fromkeys(figure[field] for figure in figures))
      for field in ('date', 'machine', 'command'))
  when = min(dates) + (f' to {max(dates)}' if len(dates) > 1 else '')
  shown = [f'`{command}`' for command in commands[:2]]
  if len(commands) > 2:
    shown = [*shown[:1], 'all other commands are in the file']
  return (f'Recorded {when}. Machine: {"; ".join(machines)}. '
          f'Command: {"; ".join(shown)}.')


def glossary() -> str:
  """Returns the glossary of `scalable_agent.experience.structs` as a table."""
  docstring = _docstring('scalable_agent.experience.structs')
  return _table(('word', 'meaning'), [
      (word, ' '.join(meaning.split())) for word, meaning in re.findall(
          r'^\* +([\w ,-]+): (.*(?:\n +.*)*)', docstring, re.M)])


def modules() -> list[str]:
  """Returns the names of all modules without underscore, packages first."""
  names = []
  for path in sorted((ROOT / 'scalable_agent').rglob('*.py')):
    parts = path.relative_to(ROOT).with_suffix('').parts
    parts = parts[:-1] if parts[-1] == '__init__' else parts
    if not any(part.startswith('_') for part in parts):
      names.append('.'.join(parts))
  return sorted(names)


def _docstring(module: str) -> str:
  path = ROOT.joinpath(*module.split('.'))
  path = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
  return ast.get_docstring(ast.parse(path.read_text('utf-8'))) or ''


def _summary(module: str) -> str:
  """Returns the first line of a module's docstring."""
  return _docstring(module).partition('\n')[0]


def public_modules() -> list[str]:
  """Returns the modules that the page on stable names links to."""
  text = (_DOCS / 'stable.md').read_text('utf-8')
  linked = set(re.findall(r'\(api/(scalable_agent[\w.]*)\.md\)', text))
  return [name for name in modules() if name in linked]


def internal_modules() -> list[str]:
  """Returns all other modules."""
  public = set(public_modules())
  return [name for name in modules() if name not in public]


def _table_of_modules(names: Iterable[str]) -> str:
  return _table(('module', 'what'), [
      (f'[`{name}`](api/{name}.md)', _summary(name)) for name in names])


def api() -> str:
  """Returns the tables of public and of internal modules."""
  return (f'## Public\n\n{_table_of_modules(public_modules())}\n\n'
          f'## Internal\n\n{_INTERNAL}\n\n'
          + _table_of_modules(internal_modules()))


_PARTS: dict[str, Callable[..., str]] = {
    'flags': flags, 'recipes': recipes, 'atari57': atari57,
    'dmlab30': dmlab30, 'off_policy': off_policy, 'results': results,
    'api': api, 'glossary': glossary, 'zoo': zoo}


def filled(markdown: str) -> str:
  """Returns a page whose markers are replaced by parts of the site."""
  return _MARKER.sub(
      lambda match: _PARTS[match[1]](*filter(None, match.groups()[1:])),
      markdown)


def _source(uri):
  """Returns the path of a page in the repository."""
  for path, page in _ROOT_PAGES.items():
    if page == uri and not (_DOCS / uri).exists():
      return path
  return f'docs/{uri}'


def _target(uri, link):
  """Returns the page, or the copy, that a link of the repository means."""
  path = posixpath.normpath(posixpath.join(
      posixpath.dirname(_source(uri)), link))
  if path in _ROOT_PAGES:
    return _ROOT_PAGES[path]
  if path.startswith('docs/'):
    return path.removeprefix('docs/')
  return f'files/{path}'


# Hooks that MkDocs calls.


def on_config(config):
  """Adds the pages of modules to the navigation, public modules first."""
  def pages(names):
    return [{name.removeprefix('scalable_agent.'): f'api/{name}.md'}
            for name in names]
  config.nav.append({'API': ['api.md', {'Public': pages(public_modules())},
                             {'Internal': pages(internal_modules())}]})
  return config


def on_files(files, config):
  """Adds pages, and copies of the files that pages link to."""
  from mkdocs.structure.files import File
  for path, uri in _ROOT_PAGES.items():
    if not files.get_file_from_path(uri):
      files.append(File.generated(
          config, uri, content=(ROOT / path).read_text('utf-8')))
  for page in list(files.documentation_pages()):
    for link in LINK.findall(page.content_string):
      uri = _target(page.src_uri, link)
      path = ROOT / uri.removeprefix('files/')
      if (uri.startswith('files/') and path.is_file()
          and not files.get_file_from_path(uri)):
        files.append(File.generated(config, uri, abs_src_path=str(path)))
  for results_path in _RESULTS.glob('*.csv'):
    uri = f'files/benchmarks/results/{results_path.name}'
    if not files.get_file_from_path(uri):
      files.append(File.generated(config, uri, abs_src_path=str(results_path)))
  internal = set(internal_modules())
  for name in modules():
    note = '!!! note "Internal"\n\n    This module may change at any time.\n\n'
    files.append(File.generated(
        config, f'api/{name}.md',
        content='---\nsearch: {boost: 0.1}\n---\n\n'
        + note * (name in internal) + f'::: {name}\n'))
  return files


def on_page_markdown(markdown, page, config, files):
  """Fills the markers of a page; points its links to the site; adds words."""
  del config, files
  uri = page.file.src_uri
  if uri.startswith('api/'):
    return markdown
  if uri in WORDS:
    page.meta.update(tags=list(WORDS[uri]), search={'boost': 2})
  relative = lambda link: os.path.relpath(
      _target(uri, link), posixpath.dirname(uri) or '.')
  return filled(LINK.sub(lambda match: relative(match[1]), markdown))


def on_page_content(html, page, config, files):
  """Marks the words of code within text, for style.css."""
  del page, config, files
  return _INLINE_CODE.sub(
      lambda code: re.sub(r'\S+', _marked_word, code[0]), html)


def _marked_word(word: re.Match[str]) -> str:
  kind = 'long word' if len(word[0]) >= _LONG_WORD else 'word'
  return f'<span class="{kind}">{word[0]}</span>'
