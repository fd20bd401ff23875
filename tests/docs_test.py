# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that the documentation names what exists; without its tools.

`make docs` checks more: links to headings, and pages that no menu shows.
"""

import ast
import csv
import datetime
import functools
import importlib.util
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest
import scalable_agent
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.settings import command_line
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import recipes

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / 'benchmarks'))
import house

_DOCS = _ROOT / 'docs'
_PAGES = ('README.md', 'BUILD_NOTES.md', 'CHANGELOG.md', 'CONTRIBUTING.md',
          *sorted(f'docs/{path.name}' for path in _DOCS.glob('*.md')))
_MAX_README_LINES = 130
# The width of a page of GitHub on a screen of 1,280 pixels.
_MAX_CODE = 90
_MAX_PRONOUNS_PER_100_WORDS = 2.0
# A page of a few lines may have as many.
_MIN_PRONOUNS = 2
# The files of reproduction.py have columns of their own.
_RESULTS = sorted(
    path for path in (_ROOT / 'benchmarks' / 'results').glob('*.csv')
    if not path.name.startswith('reproduction_')
    and not path.name.endswith('_curves.csv'))
# Flags of other programs: absl, ray, torchbeast, http.server, and those in
# benchmarks/, examples/ and tests/.
_OTHERS = frozenset("""
    flagfile help helpfull address beside burn_in directory env episodes every_s
    faults first first_seed folder foreground game greedy groups head interval
    jobs kills kinds learners levels limit_min lr mark names network networks
    num_envs num_trials only out parts peers population programs repeats replay
    rounds rungs runs search seconds seeds simulate step_ms sweep to_limit trace
    try_settings variants version warm_up_s what window_s
    signature_def
""".split())


def _generator():
  spec = importlib.util.spec_from_file_location(
      'generate', _DOCS / 'generate.py')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


_GENERATE = _generator()
_MODULES = house.modules(_ROOT)


@functools.cache
def _text(page):
  return (_ROOT / page).read_text('utf-8')


def _prose(page):
  """Returns a page without code blocks, tables and addresses of links."""
  text = re.sub(r'^ *```.*?^ *```', '', _text(page), flags=re.M | re.S)
  text = re.sub(r'^ *\|.*', '', text, flags=re.M)
  return re.sub(r'<!--.*?-->|(?<=\])\([^)\s]*\)', '', text)


def _exists(name):
  """Returns whether `wing.module.name` or the like is in the package."""
  parts = ['scalable_agent', *name.split('.')]
  for end in range(len(parts), 1, -1):
    path = _MODULES.get('.'.join(parts[:end]))
    if path:
      words = re.findall(r'\w+', path.read_text('utf-8'))
      return set(words) >= set(parts[end:])
  return False


def _blocks(page, language):
  """Returns the blocks of code of a page, without their indentation."""
  return [textwrap.dedent(block) for block in re.findall(
      rf'^ *```{language}\n(.*?)^ *```', _text(page), re.M | re.S)]


def _commands(page):
  """Returns the flags of each call of the program in a page."""
  text = ''.join(_blocks(page, 'bash')).replace('\\\n', ' ')
  for line in re.sub(r'\$\w+', '1', text).splitlines():
    words = shlex.shlex(line, posix=True, punctuation_chars='|&;<>()')
    words.whitespace_split = True
    for command in re.split(r'\n[|&;<>()]+(?:\n|$)', '\n'.join(words)):
      program, *args = command.split('\n')
      if (program, *args[:1]) == ('python', 'experiment.py'):
        yield args[1:]
      elif program == 'scalable-agent':
        yield args
      elif (program, *args[:1]) == ('make', 'train'):
        yield ['--recipe=appo_pong', *(
            flag for arg in args[1:] if arg.startswith('FLAGS=')
            for flag in shlex.split(arg.removeprefix('FLAGS=')))]


@functools.cache
def _flags():
  flag_values = flags.FlagValues()
  command_line.define_flags(flag_values)
  return flag_values


class PagesTest(parameterized.TestCase):

  @parameterized.parameters(*_PAGES)
  def test_links_lead_somewhere(self, page):
    directory = (_ROOT / page).parent
    api = {f'api/{name}.md' for name in _GENERATE.modules()}
    self.assertEmpty([
        link for link in _GENERATE.LINK.findall(_text(page))
        if not (directory / link).exists()
        # Of the service, beside the files of the repository.
        and not link.startswith('../../actions/workflows/test.yml')
        and not (directory == _DOCS and link in api)])

  @parameterized.parameters(*_PAGES)
  def test_flags_exist(self, page):
    names = set(re.findall(r'(?<![\w<-])--([a-z]\w*)(?![\w>-])', _text(page)))
    self.assertEmpty([
        name for name in sorted(names - _OTHERS) if name not in _flags()
        and name.removeprefix('no') not in _flags()])

  # The directories of the commands may be there.
  @mock.patch.object(config_lib, 'trained_with', return_value=None)
  def test_commands_are_those_of_the_program(self, unused_trained_with):
    num_commands = 0
    for page in _PAGES:
      for args in _commands(page):
        if not args[0].startswith(('--help', '--version', '--flagfile')):
          with self.subTest(page=page, args=args):
            experiment.parse(args)
            num_commands += 1
    self.assertGreater(num_commands, 70)

  def test_python_can_be_parsed(self):
    blocks = [block for page in _PAGES for block in _blocks(page, 'python')]
    for block in blocks:
      with self.subTest(block=block):
        ast.parse(block)
    self.assertGreater(len(blocks), 15)

  @parameterized.parameters(*_PAGES)
  def test_recipes_exist(self, page):
    names = set(re.findall(r'--recipe=(\w+)', _text(page))) - {'NAME', 'X'}
    self.assertEmpty(names - set(recipes.recipe_names()))

  @parameterized.parameters(*_PAGES)
  def test_lines_are_not_long(self, page):
    text = re.sub(r'^```.*?^```', '', _text(page), flags=re.M | re.S)
    self.assertEmpty([line for line in text.splitlines()
                      if len(line) > 100 and not line.startswith('|')])

  @parameterized.parameters(*recipes.recipe_names())
  def test_lines_of_recipes_are_not_long(self, name):
    text = _text(f'scalable_agent/settings/recipes/{name}.flags')
    self.assertEmpty([line for line in text.splitlines() if len(line) > 80])

  @parameterized.parameters(*_PAGES)
  def test_code_has_a_language(self, page):
    # Every other fence opens a block.
    fences = re.findall(r'^ *```(.*)', _GENERATE.filled(_text(page)), re.M)
    self.assertNotIn('', fences[::2])

  @parameterized.parameters(*_PAGES)
  def test_sentences_name_their_subject(self, page):
    found, num_words = house.pronouns([house.Text(0, _prose(page))])
    self.assertLessEqual(
        len(found), max(_MIN_PRONOUNS,
                        _MAX_PRONOUNS_PER_100_WORDS * num_words / 100),
        f'{num_words} words, and: ' + ', '.join(word.text for word in found))

  @parameterized.parameters(*_PAGES)
  def test_names_of_the_package_exist(self, page):
    wings = '|'.join({module.split('.')[1] for module in _MODULES
                      if module.count('.') > 1})
    names = set(re.findall(
        rf'`(?:scalable_agent\.)?((?:{wings})\.\w[\w.]*?)(?:\(\))?`',
        _text(page)))
    self.assertEmpty([name for name in sorted(names)
                      if not name.endswith(('.py', '.csv', '.json', '.flags'))
                      and not _exists(name)])

  def test_all_recipes_have_a_note_on_their_runs(self):
    text = _text('docs/recipes.md').partition('## Which recipes were run')[2]
    self.assertContainsSubset(
        recipes.recipe_names(), re.findall(r'`(\w+)`', text))

  def test_readme_is_short(self):
    self.assertLessEqual(
        len(_text('README.md').splitlines()), _MAX_README_LINES)

  @parameterized.parameters('README.md', 'docs/index.md')
  def test_code_of_the_first_page_is_not_cut(self, page):
    code = ''.join(re.findall('^```.*?^```', _text(page), re.M | re.S))
    self.assertLessEqual(max(map(len, code.splitlines())), _MAX_CODE)

  def test_readme_has_the_commands(self):
    self.assertRegex(
        _text('README.md'), r'```bash\nmake train .*\nmake test .*\n```')

  def test_every_page_is_in_the_menu(self):
    menu = (_ROOT / 'mkdocs.yml').read_text('utf-8').partition('\nnav:\n')[2]
    named = re.findall(r': (\w+\.md)$', menu, re.M)
    # These are at the root of the repository, or generate.py adds them.
    there = {path.name for path in _DOCS.glob('*.md')} - {'api.md'}
    self.assertCountEqual(
        named, there | {'build_notes.md', 'changelog.md', 'contributing.md'})

  def test_the_search_knows_words_of_users_and_needs_no_server(self):
    self.assertEmpty(set(_GENERATE.WORDS) - {
        path.name for path in _DOCS.glob('*.md')})
    for word, page in (
        ('num_envs', 'flags.md'), ('time limit', 'new_environment.md'),
        ('Windows', 'getting_started.md'), ('EvalCallback', 'runs.md')):
      self.assertIn(word, _GENERATE.WORDS[page])
    settings = _text('mkdocs.yml')
    self.assertIn('\n  - search\n  - offline\n', settings)
    [script] = re.findall(r'polyfills: \[(.*)\]', settings)
    # The plugin loads a script from elsewhere, unless there is one with this
    # name.
    self.assertIn('iframe-worker', script)
    self.assertTrue((_DOCS / script).exists())

  @pytest.mark.slow
  def test_path_of_calls_is_that_of_a_training(self):
    names = house.documented_way_to_the_gradient(_ROOT)
    self.assertNotEmpty(names)
    self.assertEqual(names, house.way_to_the_gradient(_ROOT))


class PackageTest(absltest.TestCase):

  def test_public_names_can_be_seen(self):
    names = dir(scalable_agent)
    self.assertContainsSubset(
        ['Config', 'StopTraining', 'load', 'train', 'errors', 'vtrace',
         '__version__'], names)
    for name in names:
      self.assertTrue(
          name in (*scalable_agent.__all__, '__version__')
          or importlib.util.find_spec(f'scalable_agent.{name}'), name)
    self.assertIs(scalable_agent.errors, errors)
    self.assertFalse(hasattr(scalable_agent, 'nothing'))

  def test_public_names_are_imported_when_they_are_used(self):
    code = ('import scalable_agent, sys; dir(scalable_agent); '
            'scalable_agent.Config; scalable_agent.environments; '
            'print("tensorflow" in sys.modules)')
    run = subprocess.run([sys.executable, '-c', code], cwd=_ROOT, text=True,
                         check=True, stdout=subprocess.PIPE)
    self.assertEqual(run.stdout, 'False\n')


class VersionTest(absltest.TestCase):

  def test_version_of_the_citation(self):
    text = (_ROOT / 'CITATION.cff').read_text('utf-8')
    self.assertEqual(re.findall(r'^version: (.*)$', text, re.M),
                     [scalable_agent.__version__])

  @absltest.skipUnless(importlib.util.find_spec('setuptools'), 'setuptools')
  def test_version_of_the_package(self):
    run = subprocess.run(
        [sys.executable, 'setup.py', '--version'], cwd=_ROOT, text=True,
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    self.assertEqual(run.stdout.split()[-1:], [scalable_agent.__version__])


class GenerateTest(absltest.TestCase):

  def test_every_flag_is_in_the_table(self):
    named = set(re.findall(r'^\| <span id="\w+"></span>`--(\w+)`',
                           _GENERATE.flags(), re.M))
    ours = _flags().flags_by_module_dict()
    self.assertEqual(named, {flag.name for module in ours
                             for flag in ours[module]} - {'recipe'})

  def test_every_recipe_has_a_section(self):
    text = _GENERATE.recipes()
    self.assertEqual(re.findall(r'^## (\w+)', text, re.M),
                     recipes.recipe_names())
    self.assertIn('![The learning curve of catch](toys.png)', text)
    self.assertIn('--level_name=catch \\\n', text)

  def test_every_module_has_a_page(self):
    modules = _GENERATE.modules()
    self.assertContainsSubset(
        ['scalable_agent', 'scalable_agent.replay', 'scalable_agent.vtrace'],
        modules)
    # `__main__` has nothing to show.
    self.assertLen(modules, len(list(
        (_ROOT / 'scalable_agent').rglob('*.py'))) - 1)
    table = _GENERATE.api()
    for name in modules:
      self.assertIn(f'| [`{name}`](api/{name}.md) | ', table)
    self.assertNotIn('|  |', table)  # Each has a docstring.

  def test_public_modules_are_first(self):
    public = _GENERATE.public_modules()
    self.assertContainsSubset(
        ['scalable_agent', 'scalable_agent.vtrace',
         'scalable_agent.losses.mpo'], public)
    self.assertNotIn('scalable_agent.runs.panel', public)
    self.assertCountEqual(public + _GENERATE.internal_modules(),
                          _GENERATE.modules())
    table = _GENERATE.api()
    self.assertLess(table.index('[`scalable_agent.vtrace`]'),
                    table.index('## Internal'))
    self.assertLess(table.index('## Internal'),
                    table.index('[`scalable_agent.runs.panel`]'))

  def test_published_scores(self):
    self.assertIn('| IMPALA, deep, experts | 191.8 | 957.6 |',
                  _GENERATE.atari57())
    self.assertIn('| IMPALA, deep, experts | 44.5 |', _GENERATE.dmlab30())
    self.assertIn('| SAC | HalfCheetah', _GENERATE.off_policy())

  def test_glossary(self):
    table = _GENERATE.glossary()
    for word in ('agent step', 'group', 'unroll', 'version', 'lag'):
      self.assertRegex(table, rf'(?m)^\| {word} \| .*\w\.')

  def test_results_become_a_table(self):
    table = _GENERATE.results('whole_program', 'network, peer')
    self.assertIn('| network | peer | ours, agent steps/s | the peer, agent '
                  'steps/s | ours / peer | memory of ours, GB |', table)
    self.assertIn('| shallow | stable-baselines3 2.9.2, A2C | 4,039, 4,087 | '
                  '1,828, 1,694 | 2.31 (2.21 to 2.41) | 1.18 | 0.60 |', table)
    self.assertIn('Recorded 2026-11-24. Machine: two cores of an AMD', table)

  def test_units_and_notes_of_results(self):
    table = _GENERATE.results('off_policy_learning', 'recipe')
    self.assertIn('| mark | first at the mark, frames |', table)
    self.assertIn('| 0, 0, 0 | 0 | <= 5 % |', table)
    self.assertIn('| 10,000, 10,000, never |', table)

  def test_markers_are_filled(self):
    for page in _PAGES:
      self.assertNotIn('<!-- generate:', _GENERATE.filled(_text(page)), page)
      self.assertNotIn('_In the site', _GENERATE.filled(_text(page)), page)

  def test_words_of_code_within_text_are_marked(self):
    marked = lambda html: _GENERATE.on_page_content(html, None, None, None)
    self.assertEqual(
        marked('<td><span></span><code>--a=1 --recipe=catch</code></td>'),
        '<td><span></span><code><span class="word">--a=1</span> '
        '<span class="long word">--recipe=catch</span></code></td>')
    for block in ('<pre><span></span><code>make test\n</code></pre>',
                  '<pre><code>make test\n</code></pre>'):
      self.assertEqual(marked(f'<li>{block}</li>'), f'<li>{block}</li>')

  def test_style_of_words_leaves_blocks_of_code_alone(self):
    style = (_DOCS / 'style.css').read_text('utf-8')
    self.assertNotRegex(style, r'\b(?:p|li) code\b')
    self.assertEqual(
        set(re.findall(r'\.md-typeset (?:t[dh] )?\.(\w+)', style)),
        {'word', 'long'})


class ResultsTest(parameterized.TestCase):

  @parameterized.parameters(*_RESULTS)
  def test_rows_are_data(self, path):
    with open(path, encoding='utf-8', newline='') as f:
      rows = list(csv.DictReader(f))
    for row in rows:
      self.assertEqual(list(row), [
          'date', 'commit', 'machine', 'command', 'what', 'figure', 'interval',
          'unit', 'note'])
      datetime.date.fromisoformat(row['date'])
      self.assertRegex(row['commit'], '^[0-9a-f]{7}$')
      self.assertNotEmpty(row['machine'])
      self.assertNotEmpty(row['command'])
      self.assertIn(' | ', row['what'])
      if row['figure']:
        float(row['figure'])
      else:
        self.assertNotEmpty(row['note'])

  @parameterized.parameters(*_RESULTS)
  def test_a_page_has_the_table(self, path):
    self.assertTrue([page for page in _PAGES
                     if f'generate: results {path.stem}:' in _text(page)])


if __name__ == '__main__':
  absltest.main()
