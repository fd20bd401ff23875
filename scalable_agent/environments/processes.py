# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Processes for what is not ours: environments run there, not in this one.

They have nothing of this process, no TensorFlow and no main module, ignore
Ctrl-C (their parent ends them) and die with their parent, also while they are
stopped.
"""

import atexit
from collections.abc import Callable, Iterator
import contextlib
import ctypes
import fcntl
import glob
import multiprocessing
import multiprocessing.util
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import types
from typing import Any, IO, TypeVar

# A server process forks the others in milliseconds. It has imported what the
# package says, and has nothing else of the parent.
CONTEXT = multiprocessing.get_context('forkserver')
_start_lock = threading.Lock()
_started: list[multiprocessing.process.BaseProcess] = []
_server_pid: Any = CONTEXT.Value(ctypes.c_long, 0, lock=False)

_PR_SET_PDEATHSIG = 1  # Of prctl.
_LONGEST_WAIT_S = 1.0
# Names of sockets have at most 107 characters.
_LONGEST_DIRECTORY, _SHORT_DIRECTORY = 70, '/tmp'
_LOCK = 'scalable_agent.lock'
_locks: list[IO[bytes]] = []

T = TypeVar('T')


def start(target: Callable[..., None], args: tuple, name: str
          ) -> multiprocessing.process.BaseProcess:
  """Starts a process that calls `target(*args)`; the caller ends it."""
  process = CONTEXT.Process(
      target=_run, args=(target, args, _server_pid), name=name, daemon=True)
  with _start_lock, _main_module_hidden(), _interrupts_blocked():
    if _server_pid.value:
      continue_server()
    else:
      _prepare_directory()
    process.start()
    _started[:] = [p for p in _started if p.is_alive()] + [process]
  return process


def _prepare_directory():
  """Makes the directory for the server's socket; removes those of killed runs.

  The lock in it ends with the process, however that ends.
  """
  if len(tempfile.gettempdir()) > _LONGEST_DIRECTORY:
    print(f'{tempfile.gettempdir()} is too long for the name of a socket: '
          f'temporary files are in {_SHORT_DIRECTORY}.')
    tempfile.tempdir = _SHORT_DIRECTORY
  for path in glob.glob(os.path.join(
      glob.escape(tempfile.gettempdir()), 'pymp-*', _LOCK)):
    with contextlib.suppress(OSError), open(path, 'ab') as file:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      shutil.rmtree(os.path.dirname(path))
  path = os.path.join(multiprocessing.util.get_temp_dir(), _LOCK)
  _locks.append(open(path, 'ab'))  # Open, and so locked, until the end.
  with contextlib.suppress(OSError):  # The file system may have no locks.
    fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)


def _run(target, args, server_pid):
  """Runs in the process."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  signal.signal(signal.SIGCONT, signal.SIG_DFL)
  # Batch systems and terminals send these to all processes of a run. What they
  # mean is up to the main process. A handler that does nothing, other than a
  # signal that is ignored, does not pass to programs that environments start.
  for number in signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, lambda *_: None)
  send_when_parent_dies(signal.SIGKILL)  # Its parent is the server.
  server_pid.value = os.getppid()
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  target(*args)


def send_when_parent_dies(number: signal.Signals) -> None:
  """Makes the system send a signal to this process when its parent dies."""
  if sys.platform == 'linux':
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


def _exit_with_parent():
  """Ends this process at once when the one that started it has died."""
  parent = multiprocessing.parent_process()
  assert parent is not None
  parent.join()
  os._exit(1)


def continue_server() -> None:
  """Wakes the server if somebody has stopped it: it starts and ends others."""
  if _server_pid.value:
    with contextlib.suppress(OSError):
      os.kill(_server_pid.value, signal.SIGCONT)


class Patience:
  """How long something may take.

  Time in which this process was stopped, as by Ctrl-Z, does not count.

  Attributes:
    left_s: the seconds that are left, not above 0 if there are none.
  """

  def __init__(self, timeout_s: float):
    self.left_s = timeout_s

  def wait(self, wait: Callable[[float], T]) -> T:
    """Calls `wait` with some seconds, and returns what it returns."""
    start_s = time.monotonic()
    result = wait(min(max(self.left_s, 0), _LONGEST_WAIT_S))
    self.left_s -= min(time.monotonic() - start_s, _LONGEST_WAIT_S)
    return result


@contextlib.contextmanager
def _main_module_hidden() -> Iterator[None]:
  """Processes started within do not import the main module."""
  main_module = sys.modules['__main__']
  sys.modules['__main__'] = types.ModuleType('__main__')
  try:
    yield
  finally:
    sys.modules['__main__'] = main_module


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
  """Children started within do not see Ctrl-C, not even while they import."""
  previous = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@atexit.register
def _end_all():
  """Kills what is left; Python would wait for it, also if it is stopped."""
  continue_server()
  for process in _started:
    process.kill()
