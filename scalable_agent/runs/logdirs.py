# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Log directories: one run at a time. Without TensorFlow."""

from collections.abc import Iterable, Iterator
import contextlib
import datetime
import errno
import fcntl
import itertools
import os
import re
import shutil
import socket
import tempfile
import time
from typing import TextIO

from scalable_agent import errors
from scalable_agent.settings import files

_NAME = '.lock'
# The text of a lock; empty if the disk is full.
_TEXT = re.compile(r'(process \d+ of [^\n]*\n?)?')
_UNFINISHED = 'unfinished-'
# The directory of exports, in a log directory.
EXPORTS = 'export'
# Names of `tempfile` with this prefix.
_UNFINISHED_NAME = re.compile(rf'{_UNFINISHED}[a-z0-9_]{{8}}')
# Age of temporary files that no running program can still need.
_OLD_S = 24 * 3600.
# Error codes if another process has the lock.
_LOCKED = (errno.EWOULDBLOCK, errno.EACCES)


@contextlib.contextmanager
def locked(logdir: str) -> Iterator[None]:
  """Locks a directory against other runs; makes a missing directory.

  A directory that was made here is removed at the exit, if still empty. The
  system locks a file `.lock` until the process ends, for any reason. The lock
  works between machines if the shared file system has locks. Otherwise a
  warning is printed.

  Raises:
    LockedError: another run has the lock.
    CheckpointError: the directory cannot be used.
  """
  path = os.path.join(logdir, _NAME)
  is_new = not os.path.exists(logdir)
  try:
    os.makedirs(logdir, exist_ok=True)
    # To append: the run that has the lock has written its text there.
    file = open(path, 'a+', encoding='utf-8', errors='replace',
                opener=files.no_link)
  except OSError as e:
    if e.errno == errno.ELOOP and os.path.islink(path):
      raise _not_a_lock(path) from None
    if os.path.islink(logdir) and is_new:
      raise errors.CheckpointError(
          f'--logdir={logdir} is a link to {os.readlink(logdir)}, which does '
          'not exist. Make that directory, or choose another directory.') from e
    if os.path.exists(logdir) and not os.path.isdir(logdir):
      raise errors.CheckpointError(
          f'--logdir={logdir} is a file. Choose a directory.') from e
    raise errors.CheckpointError(
        f'--logdir={logdir} cannot be used: {e.strerror}. Choose a directory '
        'that you may write to.') from e
  with file:
    _lock(file, logdir)
    if _is_at(path, file):
      file.seek(0)
      if not _TEXT.fullmatch(file.read()):
        raise _not_a_lock(path)
      now = datetime.datetime.now().isoformat(' ', 'seconds')
      with contextlib.suppress(OSError):  # The disk may be full.
        file.truncate(0)
        print(f'process {os.getpid()} of {socket.gethostname()}, since {now}',
              file=file, flush=True)
      try:
        yield
      finally:
        with contextlib.suppress(OSError):
          # Another run has the lock if the directory was deleted meanwhile.
          if _is_at(path, file):
            os.remove(path)
          if is_new:
            os.rmdir(logdir)  # Fails if the run has left anything.
      return
  with locked(logdir):  # The run that had the lock has removed the file.
    yield


def remove_leftovers(logdir: str, names: Iterable[str],
                     name_without_lock: str) -> None:
  """Removes temporary files of killed programs; the caller has the lock.

  `best` in `logdir` has a lock of its own.

  Args:
    names: regular expressions of the temporary names of runs.
    name_without_lock: a regular expression of the temporary names of modes
      that write without the lock. Such a program may still be running, so only
      old files, and old directories of `unfinished`, are removed.
  """
  leftover = re.compile('|'.join(f'({name})' for name in names))
  logdir = os.path.join(logdir, '')  # May be a link itself.
  places = ['', *(name for name in _names(logdir)
                  if re.fullmatch(r'replay(-\d+)?', name))]
  for directory in [os.path.join(logdir, place) for place in places]:
    for name in _names(directory):
      if leftover.fullmatch(name):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
          shutil.rmtree(path) if path.endswith('_temp') else os.remove(path)
  old = [os.path.join(logdir, name) for name in _names(logdir)
         if re.fullmatch(name_without_lock, name)]
  old += [os.path.join(logdir, parent, name)
          for parent in (EXPORTS, files.VIDEOS)
          for name in _names(os.path.join(logdir, parent))
          if _UNFINISHED_NAME.fullmatch(name)]
  for path in old:
    with contextlib.suppress(OSError):
      if time.time() - os.path.getmtime(path) > _OLD_S:
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _names(directory: str) -> list[str]:
  """Returns the names in a directory; none if it is a link, or missing."""
  try:
    return [] if os.path.islink(directory) else os.listdir(directory)
  except OSError:
    return []


@contextlib.contextmanager
def unfinished(parent: str) -> Iterator[str]:
  """Yields a new directory in `parent`, which is removed at the exit.

  `parent` is made if missing, and removed if empty at the exit.
  """
  os.makedirs(parent, exist_ok=True)
  try:
    with tempfile.TemporaryDirectory(
        prefix=_UNFINISHED, dir=parent) as directory:
      yield directory
  finally:
    with contextlib.suppress(OSError):  # Not empty.
      os.rmdir(parent)


def rename_to_free_name(path: str, stem: str, extension: str = '') -> str:
  """Renames a file or directory to a free name, and returns the name.

  The name is `stem`, `stem-2`, `stem-3` and so on, with the extension, on the
  same file system. Two programs never get the same name.
  """
  for number in itertools.count(1):
    name = stem + (f'-{number}' if number > 1 else '') + extension
    with contextlib.suppress(FileExistsError):
      # Reserves the name: `replace` overwrites the empty file or directory.
      os.mkdir(name) if os.path.isdir(path) else open(name, 'x').close()
      os.replace(path, name)
      return name
  raise AssertionError


def _not_a_lock(path: str) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'{path} is not the lock of a run, and stays as before. Move it away, '
      'or use another --logdir.')


def _is_at(path: str, file: TextIO) -> bool:
  try:
    return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
  except FileNotFoundError:
    return False


def _lock(file: TextIO, logdir: str) -> None:
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError as e:
    if e.errno not in _LOCKED:  # The file system has no locks, for example.
      print(f'--logdir={logdir} cannot be locked ({e.strerror}): make sure '
            'that no other run uses this directory.')
      return
    file.seek(0)
    raise errors.LockedError(
        f'--logdir={logdir} is in use by another run'
        f'{_prefixed(file.read().strip())}. Use another directory, or wait '
        'until that run has ended.') from None


def _prefixed(text: str) -> str:
  """Returns `: text`, or '' if the other run has not written text yet."""
  return f': {text}' if text else ''
