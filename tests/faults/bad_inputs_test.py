# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What a user can get wrong, and what the program says: `bad_inputs.txt`.

Every other line there has arguments, in which `{logdir}` is a new directory.
The next one has the exit code and the last line on the screen, where `*` is any
text. None of these inputs may print a traceback or begin to train.
"""

import contextlib
import fnmatch
import io
import os
import shlex
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import pytest
from scalable_agent import experiment
from scalable_agent.runs import training

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))


def _table():
  with open(os.path.join(_HERE, 'bad_inputs.txt'), encoding='utf-8') as f:
    lines = f.read().splitlines()
  for args, expected in zip(lines[::2], lines[1::2], strict=True):
    code, text = expected.strip().split(maxsplit=1)
    yield args, int(code), text


def _run(args):
  """Returns the exit code, and what is printed as an error."""
  error = io.StringIO()
  with flagsaver.flagsaver(), contextlib.redirect_stderr(error), (
      contextlib.redirect_stdout(io.StringIO())):
    try:
      experiment._parse_flags(['experiment.py', *args])
      code = experiment.main([])
    except SystemExit as e:
      code = e.code
  return code, error.getvalue()


@pytest.mark.slow
class BadInputsTest(parameterized.TestCase):

  def test_there_are_many(self):
    self.assertGreaterEqual(len(list(_table())), 200)

  @parameterized.parameters(*_table())
  def test_bad_input(self, args, code, text):
    logdir = os.path.join(self.create_tempdir().full_path, 'new')
    self.enter_context(mock.patch.object(
        training, 'learn', side_effect=AssertionError('It trains.')))
    # As from the project's directory, with a module of the user beside it.
    self.enter_context(contextlib.chdir(_ROOT) if sys.version_info >= (3, 11)
                       else contextlib.nullcontext())
    args = shlex.split(args.replace('{logdir}', logdir))
    found, error = _run([f'--logdir={logdir}', *args])
    self.assertEqual(found, code, error)
    last = error.splitlines()[-1]
    pattern = f'scalable_agent: {text}'.replace('{logdir}', logdir)
    # Brackets in texts are meant as such.
    self.assertTrue(
        fnmatch.fnmatchcase(last, pattern.replace('[', '[[]')),
        f'{last!r} is not {pattern!r}')
    self.assertNotIn('Traceback', error)
    self.assertFalse(os.path.exists(logdir), 'It has claimed the directory.')


if __name__ == '__main__':
  absltest.main()
