# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Processes that run environments and other code of users.

Such a process inherits nothing from this process, neither TensorFlow nor the
main module. The process ignores Ctrl-C, because the parent ends the process.
The process dies with the parent, even while stopped. Child processes and
temporary files of the process are removed at the end.
"""

import atexit
from collections.abc import Callable, Iterable, Iterator, Set
import contextlib
import ctypes
import fcntl
import glob
import multiprocessing
import multiprocessing.resource_tracker
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
from typing import IO, TypeAlias, TypeVar

from scalable_agent.processes import signals
from scalable_agent.processes import variables
from scalable_agent.settings import files

# A fork server starts a process in milliseconds. The server has imported the
# modules that the package `environments` lists, and inherits nothing else.
CONTEXT = multiprocessing.get_context('forkserver')
# Where a process of an environment prints, after "died with exit code N".
WHERE_MESSAGE = (
    'its own message, if any, is in the output above (with --ray_address, in '
    'ray/session_latest/logs of /tmp or $TMPDIR of its machine)')
_Process: TypeAlias = multiprocessing.process.BaseProcess
_start_lock = threading.Lock()
_started: list[_Process] = []
_server_pid = CONTEXT.RawValue(ctypes.c_long, 0)
_server_names: set[str] = set()  # Of variables of this program at its start.

_LONGEST_WAIT_S = 1.0
# Names of sockets have at most 107 characters.
_LONGEST_DIRECTORY, _SHORT_DIRECTORY = 70, '/tmp'
_LOCK = 'scalable_agent.lock'
_locks: list[IO[bytes]] = []
# The fork server and all its descendants find their temporary directory in this
# variable. The variable also marks these processes as ours.
_DIRECTORY = 'SCALABLE_AGENT_DIRECTORY'
_END_TIMEOUT_S, _END_SERVER_TIMEOUT_S = 2.0, 8.0
_OWNER = os.getpid()  # In forks, the process that imported this module.

T = TypeVar('T')


def start(target: Callable[..., None], args: tuple, name: str) -> _Process:
  """Starts a process that calls `target(*args)`; the caller calls `end`."""
  process = CONTEXT.Process(
      target=_run, name=name, daemon=True, args=(
          variables.Variables(_server_names, _DIRECTORY), target, args,
          _server_pid))
  # A start of Python's tracker of resources would let SIGINT through again.
  multiprocessing.resource_tracker.ensure_running()
  with (_start_lock, _hide_main_module(), _start_method_kept(),
        signals.blocked(signal.SIGINT)):
    if _server_pid.value:
      continue_server()
    elif not _locks:  # Else a start before has failed.
      _prepare_directory()
    is_running = _group_and_session(_server_pid.value)
    if not is_running:
      _server_names.update(os.environ)
    with contextlib.nullcontext() if is_running else _mark_server():
      process.start()  # Starts the server, too, if none runs.
    _started.append(process)
  return process


def end(processes: Iterable[_Process]) -> None:
  """Kills processes and their descendants; removes their directories."""
  processes = list(processes)
  # Before their leaders are killed, groups can be recognized as ours.
  known = _kill_groups(processes)
  for process in processes:
    process.kill()
  continue_server()  # The server reports the end of a process.
  deadline_s = time.monotonic() + _END_TIMEOUT_S
  # A killed process may write a file before its end.
  while _kill_groups(processes, known) and time.monotonic() < deadline_s:
    time.sleep(0.01)
  for process in processes:
    process.join(max(deadline_s - time.monotonic(), 0))
    path = _path(multiprocessing.util.get_temp_dir(), process.pid)
    shutil.rmtree(path, ignore_errors=True)
  with _start_lock:  # A process keeps a pipe open.
    # Only the owner asks for the state of a process: of two threads that ask at
    # once, one gets a wrong exit code.
    _started[:] = [p for p in _started if p not in processes or p.is_alive()]


def directory() -> str | None:
  """Returns the directory for temporary files of this process.

  The directory is removed after the end of the process, however the process
  ends. Returns None in processes that were not made by `start`.
  """
  parent = os.environ.get(_DIRECTORY)
  if parent is None:
    return None
  path = _path(parent, os.getpid())
  os.makedirs(path, exist_ok=True)
  return path


def end_server(group_of_parent: int) -> None:
  """Ends the server, in which it is called, and all processes with our mark.

  `group_of_parent` is the group of the program that started the server.
  """
  path = os.environ[_DIRECTORY]
  session, server = os.getsid(0), os.getpid()
  deadline_s = time.monotonic() + _END_SERVER_TIMEOUT_S
  while time.monotonic() < deadline_s:
    # Python's resource tracker may have our mark, and ends by itself. The
    # tracker is in the group of the parent.
    left = [pid for pid, group, other_session in _list_processes()
            if other_session == session and group != group_of_parent
            and pid != server and _has_mark(pid, path)]
    for pid in left:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    if not left and _remove_run(path):
      break
    time.sleep(0.01 if left else 0.1)
  os._exit(1)


def _kill_groups(processes: Iterable[_Process],
                 known: Set[int] = frozenset()) -> set[int]:
  """Kills the groups that processes lead; returns the groups with processes.

  If the leader of a group has ended, the number of the group may belong to
  another program by now. Therefore a group is only killed if the group is in
  `known`, or a process in the group has our mark.
  """
  groups: set[int] = set()
  for process in processes:
    assert process.pid is not None  # Started.
    with contextlib.suppress(OSError):
      os.killpg(process.pid, 0)  # Most often the group is gone.
      groups.add(process.pid)
  if not groups:
    return groups
  path = multiprocessing.util.get_temp_dir()
  left = {group for pid, group, _ in _list_processes() if group in groups
          and (group in known or _has_mark(pid, path))}
  for group in left:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(group, signal.SIGKILL)
  return left


def _list_processes() -> Iterator[tuple[int, int, int]]:
  """Yields pid, group and session of every running process."""
  for path in glob.glob('/proc/[0-9]*'):
    pid = int(os.path.basename(path))
    if found := _group_and_session(pid):
      yield pid, *found


def _group_and_session(pid: int) -> tuple[int, int] | None:
  """Returns the group and the session of a process; None if it has ended."""
  with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', 'rb') as file:
    # The name of the process, before the state, may have any characters.
    state, _, group, session, *_ = file.read().rpartition(b')')[2].split()
    if state not in b'ZX':
      return int(group), int(session)
  return None


@contextlib.contextmanager
def _mark_server() -> Iterator[None]:
  """Gives our mark to a server that is started within, and its children."""
  previous = os.environ.get(_DIRECTORY)
  os.environ[_DIRECTORY] = multiprocessing.util.get_temp_dir()
  try:
    yield
  finally:
    del os.environ[_DIRECTORY]
    if previous is not None:
      os.environ[_DIRECTORY] = previous


def _has_mark(pid: int, path: str) -> bool:
  """Whether a process has our mark, which descendants of the server inherit."""
  # The process may have ended, or belong to another user.
  with contextlib.suppress(OSError):
    with open(f'/proc/{pid}/environ', 'rb') as file:
      return f'{_DIRECTORY}={path}'.encode() in file.read().split(b'\0')
  return False


def _path(parent: str, pid: int | None) -> str:
  """Returns the directory for temporary files of a process."""
  return os.path.join(parent, f'process-{pid}')


def _prepare_directory() -> None:
  """Makes the directory for the server's socket, with a lock in it.

  The lock ends with this process, however the process ends. Directories of
  runs that were killed, which are not locked, are removed.
  """
  if len(tempfile.gettempdir()) > _LONGEST_DIRECTORY:
    print(f'{tempfile.gettempdir()} is too long for the name of a socket: '
          f'temporary files are in {_SHORT_DIRECTORY}.')
    tempfile.tempdir = _SHORT_DIRECTORY
  for path in glob.glob(os.path.join(
      glob.escape(tempfile.gettempdir()), 'pymp-*', _LOCK)):
    _remove_run(os.path.dirname(path))
  path = os.path.join(multiprocessing.util.get_temp_dir(), _LOCK)
  _locks.append(open(f'{path}.new', 'ab'))  # Open and locked until the end.
  with contextlib.suppress(OSError):  # The file system may have no locks.
    fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
  # Renamed when locked: other runs never see the file without the lock.
  os.replace(f'{path}.new', path)


def _remove_run(path: str) -> bool:
  """Removes the directory of a run; returns whether the directory is gone.

  A directory stays if the run has not ended.
  """
  lock = os.path.join(path, _LOCK)
  try:
    # Another user may have put a pipe or a link there.
    if any(os.lstat(p).st_uid != os.getuid() for p in (path, lock)) or not (
        stat.S_ISREG(os.lstat(lock).st_mode)):
      return False
    with open(lock, 'r+b', opener=files.no_link) as file:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      shutil.rmtree(path)
  except FileNotFoundError:  # Another run is removing the directory.
    shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)
  except OSError:
    return False
  return True


def _run(unused_variables: None, target: Callable[..., None], args: tuple,
         server_pid: ctypes.c_long) -> None:
  """Runs in the process."""
  os.setpgid(0, 0)  # Children can be found by this group.
  # Environments may start processes, which end with the group. Their servers
  # must not end all processes with our mark, as ours does.
  multiprocessing.current_process().daemon = False
  CONTEXT.set_forkserver_preload([])
  os.register_at_fork(after_in_child=heed_signals)
  signal.signal(signal.SIGCONT, signal.SIG_DFL)
  # Batch systems and terminals send these signals to all processes of a run.
  # Only the main process reacts. Programs started by environments would inherit
  # an ignored signal, but not a handler that does nothing.
  for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, lambda *_: None)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
  signals.send_when_parent_dies(signal.SIGKILL)  # The parent is the server.
  # The server has imported this module, unless a program had a server before.
  server = os.getppid() if _OWNER == os.getpid() else _OWNER
  if os.getppid() != server:  # The server has died before.
    os._exit(1)
  server_pid.value = server
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  target(*args)


def heed_signals() -> None:
  """Lets this process end by `terminate`, as usual."""
  for number in signal.SIGTERM, signal.SIGHUP, signal.SIGCONT:
    signal.signal(number, signal.SIG_DFL)


def _exit_with_parent() -> None:
  """Ends this process as soon as the process that started it has died."""
  parent = multiprocessing.parent_process()
  assert parent is not None
  parent.join()
  os._exit(1)


def continue_server() -> None:
  """Wakes the server, which may be stopped, to start and end processes."""
  if _server_pid.value:
    with contextlib.suppress(OSError):
      os.kill(_server_pid.value, signal.SIGCONT)


class Patience:
  """A timeout that ignores time in which this process was stopped (Ctrl-Z).

  `left_s` are the remaining seconds; 0 or less after the timeout.
  """

  def __init__(self, timeout_s: float):
    self.left_s = timeout_s

  def wait(self, wait: Callable[[float], T]) -> T:
    """Returns the result of `wait`, a function of a timeout in seconds."""
    start_s = time.monotonic()
    result = wait(min(max(self.left_s, 0), _LONGEST_WAIT_S))
    self.left_s -= min(time.monotonic() - start_s, _LONGEST_WAIT_S)
    return result


@contextlib.contextmanager
def _hide_main_module() -> Iterator[None]:
  """Hides the main module from processes that are started within."""
  main_module = sys.modules['__main__']
  sys.modules['__main__'] = types.ModuleType('__main__')
  try:
    yield
  finally:
    sys.modules['__main__'] = main_module


@contextlib.contextmanager
def _start_method_kept() -> Iterator[None]:
  """Lets the program choose Python's start method afterwards.

  A start of a process would fix the method, of whatever context.
  """
  is_free = multiprocessing.get_start_method(allow_none=True) is None
  try:
    yield
  finally:
    if is_free:
      multiprocessing.set_start_method(None, force=True)


@atexit.register
def _end_all() -> None:
  """Kills all processes; Python would wait even for stopped processes."""
  if os.getpid() == _OWNER:  # Not in forks of the program.
    end(_started)
