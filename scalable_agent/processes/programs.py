# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Programs whose output goes to a file, and which end with this process."""

from collections.abc import Mapping, Sequence
import functools
import os
import pathlib
import subprocess
import weakref

from scalable_agent.processes import signals

_STOP_TIMEOUT_S = 600  # A large replay is saved for minutes.
_told: weakref.WeakSet[subprocess.Popen] = weakref.WeakSet()


def start(command: Sequence[str], directory: pathlib.Path, *,
          env: Mapping[str, str] | None = None) -> subprocess.Popen:
  """Starts a program whose output is added to log.txt in a directory.

  The directory is made if missing. If this process dies, the program gets a
  SIGTERM. The program has a session of its own: Ctrl-C in the terminal reaches
  this process only.
  """
  directory.mkdir(parents=True, exist_ok=True)
  with open(directory / 'log.txt', 'a', encoding='utf-8') as log:
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True,
        env=dict(os.environ if env is None else env, PYTHONUNBUFFERED='1'),
        preexec_fn=functools.partial(signals.end_with_parent, os.getpid()))


def stop(*children: subprocess.Popen) -> None:
  """Ends programs with one SIGTERM each: trainings save a checkpoint.

  A second signal would end a training before the checkpoint is saved. So a
  program gets one signal even if `stop` was interrupted and is called again.
  """
  for child in children:
    if child not in _told:
      _told.add(child)
      child.terminate()
  for child in children:
    try:
      child.wait(timeout=_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
      child.kill()
      child.wait()


def output(directory: pathlib.Path) -> str:
  """Returns log.txt, '' if the file cannot be read, as after a deletion."""
  try:
    return (directory / 'log.txt').read_text('utf-8', errors='replace')
  except OSError:
    return ''


def last_words(directory: pathlib.Path) -> str:
  """Returns the last line of log.txt that is not empty; '' without any."""
  lines = output(directory).splitlines()
  return next((line for line in reversed(lines) if line.strip()), '')
