# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs the program, and functions, in the process of the tests."""

from concurrent import futures
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


def printed(function, *args) -> str:
  """Calls a function; returns all that it prints on stdout."""
  with contextlib.redirect_stdout(io.StringIO()) as output:
    function(*args)
  return output.getvalue()


def in_thread(function, *args) -> futures.Future:
  """Calls a function in a thread of its own; returns a future."""
  executor = futures.ThreadPoolExecutor(1)
  future = executor.submit(function, *args)
  executor.shutdown(wait=False)
  return future
