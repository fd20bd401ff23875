# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Log directories: one run at a time. Without TensorFlow."""

from collections.abc import Iterator
import contextlib
import datetime
import errno
import fcntl
import glob
import itertools
import os
import re
import shutil
import socket
import tempfile
import time

from scalable_agent import errors

_NAME = '.lock'
# Names under which this program writes what gets another name when it is whole.
_LEFTOVER = re.compile(
    r'unfinished(\..+|_temp)|ckpt-\d+_temp|(settings.*\.json|checkpoint|'
    r'agent\.json|spec\.json|means\.json|evaluations\.csv|(state|replay-.+)\.npz)\.tmp')
# The directories that video and export mode have not finished.
_OF_OTHERS = ('*', 'unfinished-*')
_OLD_S = 24 * 3600.
# How the system says that another process has the lock.
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


@contextlib.contextmanager
def locked(logdir: str) -> Iterator[None]:
  """Keeps other runs out of a directory while within; makes it if missing.

  A directory that it has made, and that is still empty, is removed at the end.
  The lock is that of the system on a file `.lock`: it ends with the process,
  however that ends. File systems that are shared between machines pass it on,
  if they have locks; otherwise a line says that there is none.

  Raises:
    CheckpointError: if another run has the directory, or it cannot be written.
  """
  path = os.path.join(logdir, _NAME)
  is_new = not os.path.exists(logdir)
  try:
    os.makedirs(logdir, exist_ok=True)
    # To append: the text is that of the run that has the lock.
    file = open(path, 'a+', encoding='utf-8')
  except OSError as e:
    raise errors.CheckpointError(
        f'--logdir={logdir} cannot be used: {e.strerror}. Choose a directory '
        'that you may write to.') from e
  with file:
    _lock(file, logdir)
    if _is_at(path, file):
      now = datetime.datetime.now().isoformat(' ', 'seconds')
      with contextlib.suppress(OSError):  # The disk may be full.
        file.truncate(0)
        print(f'process {os.getpid()} of {socket.gethostname()}, since {now}',
              file=file, flush=True)
      try:
        yield
      finally:
        with contextlib.suppress(OSError):
          os.remove(path)
          if is_new:
            os.rmdir(logdir)  # An error if the run has left anything.
      return
  with locked(logdir):  # The run that had the lock has removed the file.
    yield


def remove_leftovers(logdir: str) -> None:
  """Removes what a killed run has left unfinished; call it with the lock."""
  for directory in [logdir, os.path.join(logdir, 'best'),
                    *glob.glob(os.path.join(glob.escape(logdir), 'replay*'))]:
    for path in glob.glob(os.path.join(glob.escape(directory), '*')):
      if _LEFTOVER.fullmatch(os.path.basename(path)):
        with contextlib.suppress(OSError):
          shutil.rmtree(path) if path.endswith('_temp') else os.remove(path)
  # Another program may be writing there: these modes need no lock.
  for path in glob.glob(os.path.join(glob.escape(logdir), *_OF_OTHERS)):
    with contextlib.suppress(OSError):
      if time.time() - os.path.getmtime(path) > _OLD_S:
        shutil.rmtree(path)


@contextlib.contextmanager
def unfinished(parent: str) -> Iterator[str]:
  """Yields a new directory in `parent`, which is removed at the end.

  `parent` is made if it is missing, and removed if it is empty at the end.

  Raises:
    OSError: they cannot be made.
  """
  os.makedirs(parent, exist_ok=True)
  try:
    with tempfile.TemporaryDirectory(
        prefix='unfinished-', dir=parent) as directory:
      yield directory
  finally:
    with contextlib.suppress(OSError):  # It is not empty.
      os.rmdir(parent)


def keep(path: str, stem: str, extension: str = '') -> str:
  """Gives a file or directory a name that is free, and returns it.

  It is `stem`, or `stem-2`, `stem-3` and so on, with the extension, on the same
  file system. Another program that looks for a name at the same time gets
  another one.
  """
  for number in itertools.count(1):
    name = stem + (f'-{number}' if number > 1 else '') + extension
    with contextlib.suppress(FileExistsError):
      # What is renamed replaces what is empty.
      os.mkdir(name) if os.path.isdir(path) else open(name, 'x').close()
      os.replace(path, name)
      return name
  raise AssertionError


def _is_at(path, file):
  try:
    return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
  except FileNotFoundError:
    return False


def _lock(file, logdir):
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError as e:
    if e.errno not in _TAKEN:  # The file system has no locks, for example.
      print(f'--logdir={logdir} cannot be locked ({e.strerror}): make sure '
            'that no other run uses it.')
      return
    file.seek(0)
    raise errors.CheckpointError(
        f'--logdir={logdir} is in use by another run'
        f'{_prefixed(file.read().strip())}. Use another directory, or wait '
        'until that run has ended.') from None


def _prefixed(text):
  """Returns `: text`; the other run may not have written it yet."""
  return f': {text}' if text else ''
