# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Breaks the program in many ways; its tests must notice each.

  python tests/mutations.py [--jobs=2] [--first] [--only=REGULAR_EXPRESSION]

Each mutation of `mutation_table.py` is made in a copy of the package. Then the
tests of its file run there. Prints a table of the mutations in Markdown. The
exit code is 1 if the tests pass with a mutation, or fail without any.
"""

import argparse
import collections
from concurrent import futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

import mutation_table

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Hypothesis need not find the smallest example that fails.
_PROFILE = """
import hypothesis
hypothesis.settings.register_profile(
    'mutations', phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
hypothesis.settings.load_profile('mutations')
"""


class Mutation(NamedTuple):
  """A mutation to be made.

  Attributes:
    name: what is broken, after the name of the file.
    path: the file, from the root; '' for none.
    source: its text then.
    pytest: arguments of pytest.
  """
  name: str
  path: str
  source: str
  pytest: tuple[str, ...]


def mutations(pattern: str) -> list[Mutation]:
  """Returns the mutations whose names have the pattern.

  Raises:
    ValueError: if the text of one of them, or of others, has changed.
  """
  found = []
  for file, rows, *pytest in mutation_table.GROUPS:
    path = os.path.join('scalable_agent', f'{file}.py')
    with open(os.path.join(_ROOT, path), encoding='utf-8') as f:
      source = f.read()
    for name, old, new in rows:
      found.append(Mutation(f'{file}: {name}', path,
                            mutate(path, source, old, new), tuple(pytest)))
  return [mutation for mutation in found if re.search(pattern, mutation.name)]


def mutate(path: str, source: str, old: str, new: str) -> str:
  if source.count(old) != 1:
    raise ValueError(f'{old!r} occurs {source.count(old)} times in {path}, '
                     'not once: mend tests/mutation_table.py')
  return source.replace(old, new)


def failing_tests(mutation: Mutation, *options: str) -> list[str]:
  """Returns the names of the tests that fail with a mutation."""
  with tempfile.TemporaryDirectory() as root:
    ignore = shutil.ignore_patterns('__pycache__')
    for name in ('scalable_agent', 'tests'):
      shutil.copytree(os.path.join(_ROOT, name), os.path.join(root, name),
                      ignore=ignore)
    for name in ('pyproject.toml', 'experiment.py'):
      shutil.copy(os.path.join(_ROOT, name), root)
    if mutation.path:
      with open(os.path.join(root, mutation.path), 'w', encoding='utf-8') as f:
        f.write(mutation.source)
    with open(os.path.join(root, 'mutations_profile.py'), 'w',
              encoding='utf-8') as f:
      f.write(_PROFILE)
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'mutations_profile', '-rf',
         '--tb=no', *options, *mutation.pytest],
        cwd=root, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=dict(
            os.environ, PYTHONPATH=root, TF_CPP_MIN_LOG_LEVEL='2'))
  names = re.findall(r'^FAILED \S+::(\w+)', run.stdout, re.MULTILINE)
  # 1 says that tests failed; a mutation must not stop them from being run.
  if run.returncode not in (0, 1) or bool(names) != bool(run.returncode):
    raise RuntimeError(f'{mutation.name}: pytest returned {run.returncode}:\n'
                       f'{run.stdout}')
  return names


def _caught_by(names: list[str]) -> str:
  if not names:
    return '**nothing**'
  # A parameterised test has a number at the end of its name.
  tests = collections.Counter(name.rstrip('0123456789_') for name in names)
  count = f'{len(names)}: ' if len(names) > 1 else ''
  return count + ', '.join(list(tests)[:2]) + (
      ', ...' if len(tests) > 2 else '')


def main() -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--jobs', type=int, default=1, help='runs at a time')
  parser.add_argument('--first', action='store_true',
                      help='stop at the first test that fails: faster')
  parser.add_argument('--only', default='', help=(
      'mutations of this name, which begins with that of the file: ^learner'))
  args = parser.parse_args()
  broken = mutations(args.only)
  with futures.ThreadPoolExecutor(args.jobs) as pool:
    for failing in pool.map(failing_tests, [
        Mutation('unbroken', '', '', pytest)
        for pytest in dict.fromkeys(m.pytest for m in broken)]):
      if failing:
        print(f'Unbroken, the tests fail already: {", ".join(failing)}')
        return 1
    survivors = 0
    print('| mutation | caught by |\n|---|---|', flush=True)
    test = lambda mutation: failing_tests(mutation, *['-x'][:args.first])
    for mutation, names in zip(broken, pool.map(test, broken)):
      print(f'| {mutation.name} | {_caught_by(names)} |', flush=True)
      survivors += not names
  print(f'\n{len(broken)} mutations, {survivors} not caught')
  return 1 if survivors else 0


if __name__ == '__main__':
  sys.exit(main())
