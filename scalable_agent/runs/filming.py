# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Films while training: `--mode=video` in a process that takes idle time."""

import os
import subprocess
import sys
import threading
import time

from scalable_agent.settings import config as config_lib

_END_TIMEOUT_S = 3.
# It ends with us, and has the lowest priority, before it imports much.
# Ctrl-C is for other groups of processes. It stays in our session: in another
# one, its priority would only count there (the autogroups of Linux).
_PROGRAM = """
import os, signal, sys
from scalable_agent.processes import signals
signals.send_when_parent_dies(signal.SIGTERM)
if os.getppid() != int(sys.argv.pop(1)):
  sys.exit(1)
os.setpgid(0, 0)
try:
  os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
except (AttributeError, OSError):
  os.nice(19)
from scalable_agent import experiment
experiment.run_program()
"""


class Filming:
  """Makes a film of the latest checkpoint now and then, one at a time."""

  def __init__(self, config: config_lib.Config):
    """Makes no film yet; the first one is due after `video_secs`."""
    self._period_s = config.video_secs
    self._command = [
        sys.executable, '-c', _PROGRAM, str(os.getpid()), '--mode=video',
        f'--logdir={os.path.abspath(config.logdir)}', '--video_num_episodes=1']
    self._last_s = time.monotonic()
    self._last_number = 0
    self._process: subprocess.Popen | None = None
    self._saying: threading.Thread | None = None
    self._is_closed = threading.Event()

  def __call__(self, checkpoint_number: int) -> None:
    """Begins a film if one is due.

    Args:
      checkpoint_number: updates of the latest checkpoint, 0 if there is none.
        There is one film of a checkpoint.
    """
    if (checkpoint_number == self._last_number
        or time.monotonic() < self._last_s + self._period_s
        or self._process and self._process.poll() is None):
      return
    self._last_s = time.monotonic()
    self._last_number = checkpoint_number
    try:
      process = self._process = subprocess.Popen(
          self._command, text=True, stdin=subprocess.DEVNULL,
          env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as e:  # A run does not end for a film.
      print(f'No film: {e.strerror}.', flush=True)
      return
    self._saying = threading.Thread(
        target=_say, args=(process, self._is_closed), daemon=True)
    self._saying.start()

  def close(self) -> None:
    """Ends a film that is not complete."""
    self._is_closed.set()
    if self._process and self._process.poll() is None:
      self._process.terminate()
      try:
        self._process.wait(_END_TIMEOUT_S)
      except subprocess.TimeoutExpired:
        self._process.kill()


def _environment():
  """Returns the variables of the process.

  It finds the same modules, and leaves the GPU to the learner.
  """
  return {**os.environ, 'CUDA_VISIBLE_DEVICES': '-1',
          'PYTHONPATH': os.pathsep.join(
              path or os.getcwd() for path in sys.path)}


def _say(process, is_closed):
  """Prints what the user should know of a film: its path, or the error."""
  output, _ = process.communicate()
  lines = [line for line in output.splitlines() if line.startswith('Wrote')]
  if process.returncode and not is_closed.is_set():
    lines = [f'No film: {line}' for line in output.splitlines()[-1:]]
    if process.returncode < 0:
      lines = [f'No film: its process was ended by signal {-process.returncode}'
               ' (9 is often a lack of memory).']
  for line in lines:
    print(line, flush=True)
