# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of `mutations.py`, and of all lists that are called `MUTATIONS`."""

import ast
from collections.abc import Mapping
import functools
import os
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest
import mutations
import pytest

_TESTS = pathlib.Path(__file__).resolve().parent

# The first mutation is caught. The second changes nothing. The third cannot be
# imported. The fourth hangs.
_RUN = """
import mutations
caught, = mutations.mutations('^losses/q_learning: maximum of the critics$')
source = (mutations._ROOT / caught.path).read_text('utf-8')
found = [caught, caught._replace(name='same', source=source),
         caught._replace(name='syntax', source='1 +')]
mutations.mutations = lambda pattern: found
assert mutations.main() == 1
found = [caught._replace(
    name='hangs', source='import time\\ntime.sleep(1e6)\\n' + source)]
mutations._unbroken = lambda broken: []
mutations._LIMIT = 1.0
assert mutations.main() == 0
"""


_mutations = functools.cache(lambda: mutations.mutations(''))


@functools.cache
def _tests(file: str) -> Mapping[str, bool]:
  """Returns all tests `Class.test_name` in a file, and which have cases."""
  has_cases = {}
  for cls in ast.parse((_TESTS / f'{file}.py').read_text('utf-8')).body:
    if isinstance(cls, ast.ClassDef):
      has_cases |= {
          f'{cls.name}.{test.name}': any(
              'parameterized.' in ast.unparse(decorator)
              for decorator in test.decorator_list)
          for test in cls.body if isinstance(test, ast.FunctionDef)}
      for base in map(ast.unparse, cls.bases):
        if base.startswith('environment_contract.'):
          has_cases |= {
              name.replace(base.partition('.')[2], cls.name): cases
              for name, cases in _tests('environment_contract').items()}
  return {name: cases for name, cases in has_cases.items() if '.test_' in name}


def _is_named(catches: str, tests: Mapping[str, bool]) -> bool:
  """Whether `catches` names one of `tests`, or a case of a test."""
  return any(
      catches == name or has_cases and catches.startswith(name)
      and re.fullmatch(r'\d+|_\w+', catches[len(name):])
      for test, has_cases in tests.items()
      for name in (test, test.partition('.')[2]))


class MutationsTest(absltest.TestCase):

  def test_every_mutation_can_be_made(self):
    found = _mutations()  # Raises if a text is not there once.
    names = [mutation.name for mutation in found]
    self.assertLen(set(names), len(names))
    self.assertGreater(len(names), 600)

  def test_every_named_test_exists(self):
    for mutation in _mutations():
      for catches in mutation.catches:
        self.assertTrue(
            _is_named(catches, _tests(mutation.tests)),
            f'{catches} of {mutation.name!r} in {mutation.tests}')

  @pytest.mark.storm
  def test_what_is_not_caught_is_said(self):
    run = subprocess.run(
        [sys.executable, '-c', _RUN], cwd=_TESTS, text=True, check=False,
        env=dict(os.environ, PYTHONPATH=str(_TESTS)), capture_output=True)
    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
    test = 'q_losses_test: test_smallest'
    self.assertEqual(
        [line for line in run.stdout.splitlines() if line.startswith('| ')], [
            '| mutation | caught by |',
            f'| losses/q_learning: maximum of the critics | {test} |',
            f'| same | **nothing**, not by {test} |',
            f'| syntax | **nothing**, {test} cannot run |',
            '| mutation | caught by |',
            f'| hangs | {test}, without an end |'])


if __name__ == '__main__':
  absltest.main()
