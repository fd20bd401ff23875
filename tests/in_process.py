# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs the program in the process of the tests."""

import contextlib
import io

from absl.testing import flagsaver
from scalable_agent import experiment


def main(*args: str) -> tuple[int, str]:
  """Runs the program with flags; returns its exit code and all it prints."""
  with flagsaver.flagsaver(), contextlib.redirect_stdout(
      io.StringIO()) as output, contextlib.redirect_stderr(output):
    experiment._parse_flags(['experiment.py', *args])
    code = experiment.main([])
  return code, output.getvalue()
