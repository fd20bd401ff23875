# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Processes for what is not ours: environments run there, not in this one.

They have nothing of this process, no TensorFlow and no main module, ignore
Ctrl-C (their parent ends them) and die with their parent, also while they are
stopped. What they have started ends with them, and so do their temporary files.
"""

import atexit
from collections.abc import Callable, Iterable, Iterator
import contextlib
import ctypes
import fcntl
import glob
import multiprocessing
import multiprocessing.util
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import types
from typing import Any, IO, TypeVar

from scalable_agent.processes import signals

# A server process forks the others in milliseconds. It has imported what the
# package says, and has nothing else of the parent.
CONTEXT = multiprocessing.get_context('forkserver')
_start_lock = threading.Lock()
_started: list[multiprocessing.process.BaseProcess] = []
_server_pid: Any = CONTEXT.Value(ctypes.c_long, 0, lock=False)

_LONGEST_WAIT_S = 1.0
# Names of sockets have at most 107 characters.
_LONGEST_DIRECTORY, _SHORT_DIRECTORY = 70, '/tmp'
_LOCK = 'scalable_agent.lock'
_locks: list[IO[bytes]] = []
# The server, what it forks and what that starts find the directory of temporary
# files by this variable. It also marks them as ours.
_DIRECTORY = 'SCALABLE_AGENT_DIRECTORY'
_END_TIMEOUT_S, _END_SERVER_TIMEOUT_S = 2.0, 8.0
_OWNER = os.getpid()

T = TypeVar('T')


def start(target: Callable[..., None], args: tuple, name: str
          ) -> multiprocessing.process.BaseProcess:
  """Starts a process that calls `target(*args)`; the caller calls `end`."""
  process = CONTEXT.Process(
      target=_run, args=(target, args, _server_pid), name=name, daemon=True)
  with _start_lock, _main_module_hidden(), signals.blocked(signal.SIGINT):
    if _server_pid.value:
      continue_server()
    else:
      _prepare_directory()
    is_running = _group_and_session(_server_pid.value)
    with contextlib.nullcontext() if is_running else _marked():
      process.start()  # And the server, if there is none.
    _started[:] = [p for p in _started if p.is_alive()] + [process]
  return process


def end(ended: Iterable[multiprocessing.process.BaseProcess]) -> None:
  """Kills processes and what they have started; removes their directories."""
  ended = list(ended)
  known = _kill_groups(ended)  # Those who lead them show that they are ours.
  for process in ended:
    process.kill()
  continue_server()  # It says when a process has ended.
  deadline_s = time.monotonic() + _END_TIMEOUT_S
  # What is killed may write a file before it is gone.
  while _kill_groups(ended, known) and time.monotonic() < deadline_s:
    time.sleep(0.01)
  for process in ended:
    process.join(max(deadline_s - time.monotonic(), 0))
    shutil.rmtree(_directory(multiprocessing.util.get_temp_dir(), process.pid),
                  ignore_errors=True)


def directory() -> str | None:
  """Returns the directory for temporary files of this process.

  It is removed when the process has ended, however it ends. There is none in a
  process that `start` has not made.
  """
  parent = os.environ.get(_DIRECTORY)
  if parent is None:
    return None
  path = _directory(parent, os.getpid())
  os.makedirs(path, exist_ok=True)
  return path


def end_server(group_of_parent: int) -> None:
  """Ends the server, which calls it, and what the processes have started.

  Args:
    group_of_parent: the process group of the program that has started the
      server.
  """
  path = os.environ[_DIRECTORY]
  session, server = os.getsid(0), os.getpid()
  deadline_s = time.monotonic() + _END_SERVER_TIMEOUT_S
  while time.monotonic() < deadline_s:
    # Python's resource tracker is in the group of the parent, has our mark, and
    # ends by itself.
    left = [pid for pid, group, its_session in _running()
            if its_session == session and group != group_of_parent
            and pid != server and _is_ours(pid, path)]
    for pid in left:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    if not left and _removed(path):
      break
    time.sleep(0.01 if left else 0.1)
  os._exit(1)


def _kill_groups(processes, known=frozenset()):
  """Kills what is left of processes' groups; returns the groups.

  Args:
    processes: may have ended. Then the number of a group may be somebody
      else's by now, and only the mark of what runs in it shows that it is ours.
    known: groups that are ours, also if nothing in them has the mark.
  """
  groups = set()
  for process in processes:
    with contextlib.suppress(OSError):
      os.killpg(process.pid, 0)  # Most often nothing has this number any more.
      groups.add(process.pid)
  if not groups:
    return groups
  path = multiprocessing.util.get_temp_dir()
  left = {group for pid, group, _ in _running() if group in groups
          and (group in known or _is_ours(pid, path))}
  for group in left:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(group, signal.SIGKILL)
  return left


def _running():
  """Yields pid, group and session of every process that runs."""
  for path in glob.glob('/proc/[0-9]*'):
    pid = int(os.path.basename(path))
    if found := _group_and_session(pid):
      yield pid, *found


def _group_and_session(pid):
  """Returns the numbers of a process, None if it does not run."""
  with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', 'rb') as file:
    # The name before it may have any characters.
    state, _, group, session, *_ = file.read().rpartition(b')')[2].split()
    if state not in b'ZX':
      return int(group), int(session)
  return None


@contextlib.contextmanager
def _marked() -> Iterator[None]:
  """A server that is started within has our mark, and so have its children."""
  previous = os.environ.get(_DIRECTORY)
  os.environ[_DIRECTORY] = multiprocessing.util.get_temp_dir()
  try:
    yield
  finally:
    del os.environ[_DIRECTORY]
    if previous is not None:
      os.environ[_DIRECTORY] = previous


def _is_ours(pid, path):
  """Whether a process has got our mark by those that `start` has made."""
  with contextlib.suppress(OSError):  # It has ended, or is somebody else's.
    with open(f'/proc/{pid}/environ', 'rb') as file:
      return f'{_DIRECTORY}={path}'.encode() in file.read().split(b'\0')
  return False


def _directory(parent, pid):
  return os.path.join(parent, f'process-{pid}')


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
    _removed(os.path.dirname(path))
  path = os.path.join(multiprocessing.util.get_temp_dir(), _LOCK)
  _locks.append(open(f'{path}.new', 'ab'))  # Open, and so locked, to the end.
  with contextlib.suppress(OSError):  # The file system may have no locks.
    fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
  # Another run never sees it without its lock.
  os.replace(f'{path}.new', path)


def _removed(path):
  """Removes the directory of a run that has ended; returns whether it did."""
  lock = os.path.join(path, _LOCK)
  try:
    # What a stranger has put there may be a pipe, or lead elsewhere.
    if any(os.lstat(p).st_uid != os.getuid() for p in (path, lock)) or not (
        stat.S_ISREG(os.lstat(lock).st_mode)):
      return False
    with open(lock, 'r+b', opener=lambda name, flags: os.open(
        name, flags | os.O_NOFOLLOW)) as file:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      shutil.rmtree(path)
  except FileNotFoundError:  # Somebody removes it, the lock before the rest.
    shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)
  except OSError:
    return False
  return True


def _run(target, args, server_pid):
  """Runs in the process."""
  os.setpgid(0, 0)  # What it starts is in its group, and can be found there.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  signal.signal(signal.SIGCONT, signal.SIG_DFL)
  # Batch systems and terminals send these to all processes of a run. What they
  # mean is up to the main process. A handler that does nothing, other than a
  # signal that is ignored, does not pass to programs that environments start.
  for number in signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, lambda *_: None)
  signals.send_when_parent_dies(signal.SIGKILL)  # Its parent is the server.
  server_pid.value = os.getppid()
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  target(*args)


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


@atexit.register
def _end_all():
  """Kills what is left; Python would wait for it, also if it is stopped."""
  if os.getpid() == _OWNER:  # Not what the program has forked.
    end(_started)
