# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Programs whose output goes to a file, and which end with this process."""

from collections.abc import Mapping, Sequence
import os
import pathlib
import signal
import subprocess

from scalable_agent.processes import signals

_STOP_TIMEOUT_S = 60


def start(command: Sequence[str], directory: pathlib.Path, *,
          env: Mapping[str, str] | None = None,
          cwd: pathlib.Path | None = None) -> subprocess.Popen:
  """Starts a program whose output is added to log.txt in a directory.

  The directory is made if missing. If this process dies, the program gets a
  SIGTERM. The program has a session of its own: Ctrl-C in the terminal reaches
  this process only.
  """
  directory.mkdir(parents=True, exist_ok=True)
  parent = os.getpid()

  def end_with_parent() -> None:
    signals.send_when_parent_dies(signal.SIGTERM)
    if os.getppid() != parent:  # The parent had died before.
      os._exit(1)

  with open(directory / 'log.txt', 'a', encoding='utf-8') as log:
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, cwd=cwd,
        start_new_session=True,
        env=dict(os.environ if env is None else env, PYTHONUNBUFFERED='1'),
        preexec_fn=end_with_parent)


def stop(*children: subprocess.Popen) -> None:
  """Ends programs with one SIGTERM each: trainings save a checkpoint.

  A second signal would end a training before the checkpoint is saved.
  """
  for child in children:
    child.terminate()
  for child in children:
    try:
      child.wait(timeout=_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
      child.kill()
      child.wait()


def last_words(directory: pathlib.Path) -> str:
  """Returns the last line of log.txt that is not empty."""
  lines = (directory / 'log.txt').read_text(
      'utf-8', errors='replace').splitlines()
  return next((line for line in reversed(lines) if line.strip()), '')
