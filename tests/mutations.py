# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Breaks the program in many ways; a named test must notice each mutation.

  python tests/mutations.py [--jobs=NUMBER] [--only=REGULAR_EXPRESSION]

`MUTATIONS` at the end of a test file lists the mutations: `Group` has the form.

Prints a table of the mutations in Markdown. The exit code is 1 if a test
passes with a mutation, or fails without any.

Libraries are imported once. A fork of this process imports the broken copy and
runs the named test. TensorFlow starts its threads with the first operation, so
a fork before that operation lacks no thread.
"""

import argparse
import ast
from collections.abc import Iterator
import compileall
import contextlib
import gc
import importlib
import inspect
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import NamedTuple
import unittest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_LIBRARIES = (
    'absl.testing.parameterized', 'ale_py', 'gymnasium', 'imageio_ffmpeg',
    'numpy', 'pytest', 'ray', 'rich.console', 'tensorflow',
    'tensorflow_probability', 'tree')
_LIMIT = 600.0  # Seconds after which a test counts as hanging.
_PASSED, _FAILED = 0, 1  # Exit codes of forks.


class Group(NamedTuple):
  """A `dict` of `MUTATIONS`.

  Attributes:
    file: the file to break, from `scalable_agent/`, without `.py`.
    catches: the test that must fail: `test_name` or `Class.test_name`.
    rows: of each mutation: what is broken, text that occurs once, replacement.
  """
  file: str
  catches: str
  rows: tuple[tuple[str, str, str], ...]


class Mutation(NamedTuple):
  """A mutation to be made.

  Attributes:
    name: the broken file, and what is broken.
    path: the broken file, from the root; '' if nothing is broken.
    source: the broken text of the file.
    tests: module of the tests.
    catches: names of the tests that must fail.
  """
  name: str
  path: str
  source: str
  tests: str
  catches: frozenset[str]


def _groups(tests: pathlib.Path) -> list[Group]:
  """Returns the groups of `MUTATIONS` in a file, without importing the file."""
  return [
      Group(**{item.arg: ast.literal_eval(item.value)
               for item in group.keywords})
      for node in ast.parse(tests.read_text('utf-8')).body
      if isinstance(node, ast.Assign)
      and ast.unparse(node.targets[0]) == 'MUTATIONS'
      for group in node.value.elts]


def mutations(pattern: str) -> list[Mutation]:
  """Returns the mutations whose names have the pattern.

  Raises:
    ValueError: if the text of a mutation does not occur once in its file.
  """
  found = []
  for tests in sorted((_ROOT / 'tests').glob('*_test.py')):
    for group in _groups(tests):
      path = f'scalable_agent/{group.file}.py'
      source = (_ROOT / path).read_text('utf-8')
      for name, old, new in group.rows:
        if source.count(old) != 1:
          raise ValueError(
              f'{old!r} occurs {source.count(old)} times in {path}, not once: '
              f'mend {name!r} in MUTATIONS of {tests.name}')
        found.append(Mutation(
            f'{group.file}: {name}', path, source.replace(old, new),
            tests.stem, frozenset([group.catches])))
  return [mutation for mutation in found if re.search(pattern, mutation.name)]


def _cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
  for test in suite:
    if isinstance(test, unittest.TestSuite):
      yield from _cases(test)
    else:
      yield test


def _names(case: unittest.TestCase) -> set[str]:
  """Returns the names that a test may have in `catches`."""
  cls = type(case)
  name = case.id().split()[0].rpartition('.')[-1]
  # The name without the number that absl gives to a case.
  stem = inspect.unwrap(getattr(cls, name)).__name__
  return {stem, name, f'{cls.__name__}.{stem}', f'{cls.__name__}.{name}'}


def _run_tests(mutation: Mutation) -> int:
  """Runs the tests that must fail; returns an exit code."""
  importlib.import_module('conftest')
  module = importlib.import_module(mutation.tests)
  cases = [
      case for case in _cases(
          unittest.defaultTestLoader.loadTestsFromModule(module))
      if _names(case) & mutation.catches]
  missing = mutation.catches.difference(*map(_names, cases))
  if missing:
    raise ValueError(f'No such tests in {mutation.tests}: {missing}')
  result = unittest.TextTestRunner(failfast=bool(mutation.path)).run(
      unittest.TestSuite(cases))
  return _PASSED if result.wasSuccessful() else _FAILED


class _Fork:
  """A process that runs tests in a copy of the program."""

  def __init__(self, mutation: Mutation, copy: pathlib.Path) -> None:
    self.mutation = mutation
    self.copy = copy
    self._log = copy / 'log'
    self._end = time.monotonic() + _LIMIT * len(mutation.catches)
    if mutation.path:
      (copy / mutation.path).write_text(mutation.source, 'utf-8')
    self._id = os.fork()
    if not self._id:
      self._run()

  def _run(self) -> None:
    code = 2
    try:
      os.setsid()  # For `stop`.
      with open(self._log, 'wb') as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
      os.chdir(self.copy)
      # In place of the folder of this program.
      sys.path[:1] = [str(self.copy), str(self.copy / 'tests')]
      os.environ['PYTHONPATH'] = str(self.copy)
      code = _run_tests(self.mutation)
    except BaseException:  # Also SystemExit: the process must end here.
      traceback.print_exc()
    finally:
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(code)

  def outcome(self) -> str | None:
    """Returns how the tests have ended; None as long as the tests run."""
    ended, status = os.waitpid(self._id, os.WNOHANG)
    if not ended:
      return 'no end' if time.monotonic() > self._end else None
    return {_PASSED: 'passed', _FAILED: 'failed'}.get(
        os.waitstatus_to_exitcode(status), 'not run')

  def output(self) -> str:
    return self._log.read_text('utf-8', 'replace')

  def stop(self) -> None:
    """Ends all processes of the tests; mends the copy."""
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self._id, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
      os.waitpid(self._id, 0)
    if self.mutation.path:
      # With the time of the file, so that Python uses the file's bytecode.
      shutil.copy2(self.copy.parent / 'whole' / self.mutation.path,
                   self.copy / self.mutation.path)


def _outcomes(
    tasks: list[Mutation], copies: list[pathlib.Path],
) -> Iterator[tuple[Mutation, str, str]]:
  """Yields each mutation, in order, with its outcome and the tests' output."""
  free = list(copies)
  running: list[_Fork] = []
  ended: dict[str, tuple[str, str]] = {}
  waiting = list(reversed(tasks))
  try:
    for mutation in tasks:
      while mutation.name not in ended:
        while waiting and free:
          running.append(_Fork(waiting.pop(), free.pop()))
        time.sleep(0.02)
        for fork in list(running):
          outcome = fork.outcome()
          if outcome:
            ended[fork.mutation.name] = outcome, fork.output()
            running.remove(fork)
            fork.stop()
            free.append(fork.copy)
      yield mutation, *ended.pop(mutation.name)
  finally:
    for fork in running:
      fork.stop()


def _copies(folder: pathlib.Path, number: int) -> list[pathlib.Path]:
  """Copies the program, with bytecode."""
  whole = folder / 'whole'
  for name in ('scalable_agent', 'tests', 'examples'):
    shutil.copytree(_ROOT / name, whole / name,
                    ignore=shutil.ignore_patterns('__pycache__'))
    compileall.compile_dir(whole / name, quiet=1)
  for name in ('pyproject.toml', 'experiment.py'):
    shutil.copy2(_ROOT / name, whole)
  return [shutil.copytree(whole, folder / f'copy{i}') for i in range(number)]


def _import_libraries() -> None:
  for name in _LIBRARIES:
    with contextlib.suppress(ImportError):  # Tests skip without such a library.
      importlib.import_module(name)
  import hypothesis
  # The same examples each time; the smallest example is not needed.
  hypothesis.settings.register_profile(
      'mutations', derandomize=True, database=None,
      phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
  hypothesis.settings.load_profile('mutations')
  # Bytecode of a mutation must not be found by the next mutation.
  sys.dont_write_bytecode = True
  os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
  # A collection in a fork would copy all pages of the libraries.
  gc.collect()
  gc.freeze()


def _unbroken(broken: list[Mutation]) -> list[Mutation]:
  """Returns tasks that run the tests of each file without a mutation."""
  tests: dict[str, frozenset[str]] = {}
  for mutation in broken:
    tests[mutation.tests] = (
        tests.get(mutation.tests, frozenset()) | mutation.catches)
  return [Mutation(f'unbroken {name}', '', '', name, catches)
          for name, catches in tests.items()]


def main() -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--jobs', type=int, default=os.cpu_count(),
                      help='tests at a time; one per core if not given')
  parser.add_argument('--only', default='', help=(
      'mutations of this name, which begins with that of the file: ^learner'))
  args = parser.parse_args()
  broken = mutations(args.only)
  _import_libraries()
  not_caught = 0
  with tempfile.TemporaryDirectory() as folder:
    copies = _copies(pathlib.Path(folder), args.jobs)
    for mutation, outcome, output in _outcomes(_unbroken(broken), copies):
      if outcome != 'passed':
        print(f'{mutation.name}: {outcome}\n{output}')
        return 1
    print('| mutation | caught by |\n|---|---|', flush=True)
    for mutation, outcome, output in _outcomes(broken, copies):
      test = f'{mutation.tests}: {", ".join(mutation.catches)}'
      caught_by = {
          'passed': f'**nothing**, not by {test}', 'failed': test,
          'no end': f'{test}, without an end',
          'not run': f'**nothing**, {test} cannot run'}[outcome]
      print(f'| {mutation.name} | {caught_by} |', flush=True)
      if outcome == 'not run':
        print(output, file=sys.stderr)
      not_caught += outcome in ('passed', 'not run')
  print(f'\n{len(broken)} mutations, {not_caught} not caught')
  return 1 if not_caught else 0


if __name__ == '__main__':
  sys.exit(main())
