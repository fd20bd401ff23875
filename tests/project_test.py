# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the repository's own files: workflows, forms, versions, Dockerfile.

The workflows need a service, so the tests check only names and versions.
"""

import fnmatch
import functools
import importlib.util
import os
import pathlib
import re
import runpy
import subprocess
from unittest import mock

from absl.testing import absltest
from packaging import requirements
from packaging import specifiers
import scalable_agent
from scalable_agent.settings import recipes
import setuptools
from setuptools.command import build_py
import yaml

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_WORKFLOWS = sorted((_ROOT / '.github' / 'workflows').glob('*.yml'))
_FORMS = sorted((_ROOT / '.github' / 'ISSUE_TEMPLATE').glob('*.yml'))


def _text(name):
  return (_ROOT / name).read_text(encoding='utf-8')


def _yaml(path):
  return yaml.safe_load((_ROOT / path).read_text(encoding='utf-8'))


@functools.cache
def _setup():
  """Returns the arguments of `setuptools.setup`."""
  with mock.patch('setuptools.setup') as setup:
    runpy.run_path(str(_ROOT / 'setup.py'))
  return setup.call_args.kwargs


def _pythons():
  """Returns the minor versions of Python 3 that setup.py names."""
  prefix = 'Programming Language :: Python :: 3.'
  return [name.removeprefix(prefix) for name in _setup()['classifiers']
          if name.startswith(prefix)]


def _steps(workflow):
  return [(job, step) for job in workflow['jobs'].values()
          for step in job['steps']]


def _versions(job, step):
  """Returns the versions of Python that a step of a workflow asks for."""
  version = step.get('with', {}).get('python-version')
  if version == '${{ matrix.python }}':
    return job['strategy']['matrix']['python']
  return [version] if version else []


def _constraints():
  return dict(line.split('==') for line in _text('constraints.txt').splitlines()
              if not line.startswith('#'))


def _name(package):
  return re.sub('[-_.]+', '-', package).lower()


class PackageTest(absltest.TestCase):

  def test_data_is_in_the_wheel(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(_ROOT)
    build = build_py.build_py(setuptools.Distribution(_setup()))
    build.ensure_finalized()
    files = {f'{folder}/{name}' for _, folder, _, names in build.data_files
             for name in names}
    self.assertEqual(files, {
        str(path.relative_to(_ROOT))
        for path in (_ROOT / 'scalable_agent').rglob('*')
        if path.is_file() and path.suffix not in ('.py', '.pyc')})

  def test_text_of_a_release_has_no_relative_links(self):
    readme = _text('README.md')
    with mock.patch.dict(os.environ, GITHUB_REPOSITORY='a/b',
                         GITHUB_REF_TYPE='branch', GITHUB_REF_NAME='main'):
      self.assertEqual(_setup.__wrapped__()['long_description'], readme)
      os.environ.update(GITHUB_REF_TYPE='tag', GITHUB_REF_NAME='v1')
      text = _setup.__wrapped__()['long_description']
    self.assertNotRegex(text, r'(?m)<img|<a |^\[[^]]*\]:')  # No other forms.
    links = lambda t: re.findall(r'(!\[[^]]*)?\]\(([^)]*)\)', t)
    paths = {'raw': set(), 'blob': set(), 'actions': set()}
    for (alt, new), (_, old) in zip(links(text), links(readme), strict=True):
      if old.startswith('https://'):
        self.assertEqual(new, old)
        continue
      self.assertStartsWith(new, 'https://github.com/a/b/')
      kind, _, path = new.removeprefix(
          'https://github.com/a/b/').partition('#')[0].partition('/')
      paths[kind].add(path)
      if kind != 'actions':
        self.assertEqual(kind, 'raw' if alt else 'blob')
        self.assertStartsWith(path, 'v1/')
        self.assertTrue((_ROOT / path.removeprefix('v1/')).exists(), path)
    self.assertIn('v1/docs/zoo.gif', paths['raw'])
    self.assertContainsSubset(['v1/LICENSE', 'v1/README.md'], paths['blob'])
    self.assertEqual(paths['actions'], {
        'workflows/test.yml', 'workflows/test.yml/badge.svg'})

  def test_badges_are_true(self):
    for name, text in (
        ('license', 'Apache 2.0'),
        ('python', f'3.{_pythons()[0]} to 3.{_pythons()[-1]}')):
      self.assertIn(f'>{text}</text>', _text(f'docs/badge_{name}.svg'))
    self.assertEqual(_setup()['license'], 'Apache-2.0')


class WorkflowsTest(absltest.TestCase):

  def test_extras_have_names_that_older_pip_finds(self):
    text = (_ROOT / 'setup.py').read_text('utf-8')
    extras = re.findall(r"^        '([\w-]+)': \(?_[A-Z]", text, re.M)
    self.assertContainsSubset(['atari', 'dm-control', 'dev'], extras)
    self.assertNotIn('_', ''.join(extras))

  def test_there_are_workflows(self):
    self.assertEqual([path.stem for path in _WORKFLOWS],
                     ['check', 'docs', 'publish', 'storm', 'test'])
    for path in _WORKFLOWS:
      workflow = _yaml(path)
      self.assertEqual(workflow['name'], path.stem)
      self.assertNotEmpty(workflow[True])  # YAML 1.1 reads `on` as a boolean.
      self.assertNotEmpty(workflow['permissions'])

  def test_make_targets_exist(self):
    [phony] = re.findall(r'^\.PHONY: (.*)$', _text('Makefile'), re.M)
    called = {target for path in _WORKFLOWS for _, step in _steps(_yaml(path))
              for target in re.findall(r'\bmake (\w+)', step.get('run', ''))}
    self.assertEqual(called, {'check', 'docs', 'oldest', 'storm', 'test'})
    self.assertContainsSubset(called, phony.split())

  def test_versions_of_python(self):
    minors = _pythons()
    requires = specifiers.SpecifierSet(_setup()['python_requires'])
    self.assertEqual(
        minors, [str(minor) for minor in range(99) if f'3.{minor}' in requires])
    asked = {path.stem: [version for job, step in _steps(_yaml(path))
                         for version in _versions(job, step)]
             for path in _WORKFLOWS}
    first, last = f'3.{minors[0]}', f'3.{minors[-1]}'
    # `make check` with the oldest and the newest, `make oldest`.
    self.assertEqual(asked['check'], [first, last, first])
    for name, versions in asked.items():
      self.assertNotEmpty(versions, name)
      for version in versions:
        self.assertIsInstance(version, str, 'YAML reads 3.10 as 3.1')
        self.assertIn(version, requires, name)

  def test_storm_jobs_share_all_files_with_storm_tests(self):
    [(job, step)] = [(job, step) for job, step in _steps(
        _yaml('.github/workflows/storm.yml')) if 'run' in step]
    groups = job['strategy']['matrix']['group']
    files = []
    for group in groups:
      command = step['run'].replace(
          '${{ strategy.job-total }}', str(len(groups))).replace(
              '${{ matrix.group }}', str(group))
      # A target without tests would be all tests.
      printed = subprocess.run(
          ['bash', '-euc', f'make() {{ echo "$@"; }}; {command}'], cwd=_ROOT,
          text=True, check=True, capture_output=True).stdout
      self.assertRegex(printed, '^storm TESTS=tests/')
      files += printed.partition('=')[2].split()
    self.assertCountEqual(files, [
        f'tests/{path.name}' for path in (_ROOT / 'tests').glob('*_test.py')
        if '@pytest.mark.' + 'storm' in path.read_text(encoding='utf-8')])

  def test_constraints_are_used(self):
    for name in 'docs', 'storm', 'test':
      path = _yaml(f'.github/workflows/{name}.yml')['env']['PIP_CONSTRAINT']
      self.assertTrue((_ROOT / path.rpartition('/')[2]).exists())

  def test_no_link_is_committed(self):
    # A link to a place on one machine breaks every other checkout.
    if not (_ROOT / '.git').exists():
      self.skipTest('Not a checkout of the repository.')
    files = subprocess.run(
        ['git', 'ls-files', '--stage'], cwd=_ROOT, check=True,
        capture_output=True, text=True).stdout.splitlines()
    self.assertNotEmpty(files)
    self.assertEmpty([file for file in files if file.startswith('120000')])

  def test_pre_commit_runs_what_exists(self):
    [repo] = _yaml('.pre-commit-config.yaml')['repos']
    for hook in repo['hooks']:
      if hook['language'] == 'pygrep':
        continue
      program, *words = hook['entry'].split()
      self.assertEqual([program, words[0]], ['.venv/bin/python', '-m'])
      self.assertIsNotNone(importlib.util.find_spec(words[1]))
      for path in fnmatch.filter(words, '*/*'):
        self.assertTrue((_ROOT / path).exists(), path)

  def test_long_subjects_of_commits_are_refused(self):
    config = _yaml('.pre-commit-config.yaml')
    [hook] = [hook for hook in config['repos'][0]['hooks']
              if hook['language'] == 'pygrep']
    self.assertEqual([hook['stages'], hook['args']],
                     [['commit-msg'], ['--multiline']])
    self.assertIn('commit-msg', config['default_install_hook_types'])
    refused = lambda text: re.search(
        hook['entry'].encode(), text.encode(), re.MULTILINE | re.DOTALL)
    self.assertFalse(refused(72 * 'a' + '\n\n' + 100 * 'b'))
    self.assertFalse(refused(72 * 'ü' + '\n'))
    for letter in 'a', 'ü', '€':
      self.assertTrue(refused(73 * letter + '\n'))

  def test_forms(self):
    forms = [_yaml(path) for path in _FORMS if path.stem != 'config']
    self.assertLen(forms, 3)
    for form in forms:
      self.assertNotEmpty(form['name'] and form['description'])
      ids = [field['id'] for field in form['body']]
      self.assertLen(set(ids), len(ids))
      for field in form['body']:
        self.assertIn(field['type'], ('textarea', 'input'))
        self.assertNotEmpty(field['attributes']['label'])


class VersionsTest(absltest.TestCase):

  def test_one_version(self):
    version = scalable_agent.__version__
    self.assertEqual(_setup()['version'], version)
    self.assertEqual(_yaml('CITATION.cff')['version'], version)
    [first, *_] = re.findall('^## (.*) - ', _text('CHANGELOG.md'), re.M)
    self.assertEqual(first, version)

  def test_constraints_allow_what_setup_asks_for(self):
    constraints = {_name(package): version
                   for package, version in _constraints().items()}
    extras = _setup()['extras_require']
    asked = _setup()['install_requires'] + extras['dev'] + extras['docs']
    for text in asked:
      needed = requirements.Requirement(text)
      if needed.marker is None or needed.marker.evaluate(
          {'python_version': '3.11'}):
        self.assertIn(constraints[_name(needed.name)], needed.specifier, text)


class DockerfileTest(absltest.TestCase):

  def test_copies_what_exists(self):
    allowed = re.findall('^!(.*)$', _text('.dockerignore'), re.M)
    copied = [path for line in re.findall('^COPY (.*) ', _text('Dockerfile'),
                                          re.M) for path in line.split()]
    self.assertCountEqual(copied, allowed)
    for path in copied:
      self.assertTrue((_ROOT / path).exists(), path)

  def test_installs_what_setup_names(self):
    text = _text('Dockerfile')
    [names] = re.findall(r"'\.\[(.*)\]'", text)
    self.assertContainsSubset(
        names.split(','), _setup()['extras_require'])
    [command] = re.findall(r'ENTRYPOINT \["(.*)"\]', text)
    [script] = _setup()['entry_points']['console_scripts']
    self.assertEqual(command, script.partition(' ')[0])
    for recipe in re.findall(r'--recipe=(\w+)', text):
      self.assertIn(recipe, recipes.recipe_names())
    # The constraints are of this Python.
    [python] = re.findall(r'^FROM python:([\d.]+)-slim$', text, re.M)
    self.assertIn(f'Python {python}', _text('constraints.txt'))


if __name__ == '__main__':
  absltest.main()
