# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Virtual environments for the programs that we compare with."""

import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import pathlib
import pickle
import subprocess
import sys

_INSTALL_TIMEOUT_S = 3600


class InstallError(Exception):
  """A program that we compare with cannot be installed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the flags `--torch` and `--venvs`."""
  parser.add_argument('--torch', default='torch',
                      help='the requirement of PyTorch for pip')
  parser.add_argument(
      '--venvs', help='the directory of the virtual environments',
      default=os.path.expanduser('~/.cache/scalable_agent/benchmarks'))


def make(directory: pathlib.Path, requirements: Sequence[str],
         without_dependencies: Sequence[str] = ()) -> str:
  """Makes a virtual environment, if missing.

  Args:
    directory: the directory of the environment.
    requirements: arguments of `pip install`.
    without_dependencies: arguments of a second `pip install --no-deps`.

  Returns:
    The path of its Python.

  Raises:
    InstallError: pip failed.
  """
  directory = directory.absolute()
  python = str(directory / 'bin' / 'python')
  installed = directory / 'installed'  # Missing after an interruption.
  wanted = '\n'.join([*requirements, *without_dependencies])
  if installed.exists() and installed.read_text() == wanted:
    return python
  print(f'Installing {" ".join(wanted.split())} into {directory}',
        file=sys.stderr)
  _run([sys.executable, '-m', 'venv', str(directory)])
  pip = [python, '-m', 'pip', 'install', '-q']
  _run([*pip, *requirements])
  if without_dependencies:
    _run([*pip, '--no-deps', *without_dependencies])
  installed.write_text(wanted)
  return python


@contextlib.contextmanager
def worker(directory: str, requirements: Sequence[str],
           program: str) -> Iterator[Callable]:
  """Yields a function that sends a request to a program beside this file.

  Args:
    directory: the directory of the virtual environment, see `make`.
    requirements: see `make`.
    program: a Python file that reads pickled requests, tuples, from stdin, and
      writes a pickled answer to each to stdout.
  """
  python = make(pathlib.Path(directory), requirements)
  process = subprocess.Popen(
      [python, pathlib.Path(__file__).with_name(program)],
      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

  def ask(*request):
    pickle.dump(request, process.stdin)
    process.stdin.flush()
    return pickle.load(process.stdout)

  with process:  # At its end stdin is closed, which ends the worker.
    yield ask


def _run(command):
  try:
    subprocess.run(command, check=True, timeout=_INSTALL_TIMEOUT_S, text=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  except subprocess.TimeoutExpired as e:
    raise InstallError(
        f'installing took more than {_INSTALL_TIMEOUT_S} s') from e
  except subprocess.CalledProcessError as e:
    lines = [line for line in e.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith('ERROR')] or lines
    raise InstallError(f'{errors[0] if errors else e}') from e
