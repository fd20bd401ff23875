# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Files that are written whole or not at all, files in JSON, directories."""

from collections.abc import Collection, Iterable, Iterator, Mapping
import contextlib
import csv
import errno
import glob
import io
import json
import os
from typing import Any, BinaryIO
import weakref

from scalable_agent import errors

# The directory of videos, in a log directory.
VIDEOS = 'videos'


@contextlib.contextmanager
def whole(path: str, temporary: str = '') -> Iterator[BinaryIO]:
  """Opens a file that replaces `path` at the exit, unless there was an error.

  Args:
    path: the file.
    temporary: the name until the exit; '' for `<path>.tmp`, with which only one
      program may write at a time.

  Raises:
    OSError: the file cannot be written, or the temporary name is a link.
  """
  temporary = temporary or f'{path}.tmp'
  file = open(temporary, 'wb', opener=no_link)
  try:
    with file as f:
      yield f
      f.flush()
      # Without fsync, a crash of the machine could leave an empty file.
      os.fsync(f.fileno())
    os.replace(temporary, path)
  except BaseException:
    # On a full disk, half a file would take the room of checkpoints.
    with contextlib.suppress(OSError):
      os.remove(temporary)
    raise


def write(path: str, text: str) -> None:
  """Writes a text, as `whole` does."""
  with whole(path) as f:
    f.write(text.encode())


def write_csv(path: str, names: Collection[str],
              rows: Iterable[Mapping[str, object]]) -> None:
  """Writes a table with the columns `names`, as `whole` does."""
  text = io.StringIO()
  writer = csv.DictWriter(text, names, lineterminator='\n')
  writer.writeheader()
  writer.writerows(rows)
  write(path, text.getvalue())


def sync(path: str) -> None:
  """Flushes a file to the disk, in case the machine crashes."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def read_json(path: str) -> Any:
  """Returns the data in a JSON file.

  Raises:
    OSError: the file cannot be read.
    ValueError: the file has no JSON, or too many brackets within brackets.
  """
  with open(path, encoding='utf-8') as f:
    try:
      return json.load(f)
    except RecursionError:
      raise ValueError('too many brackets within brackets') from None


def has_checkpoint(logdir: str) -> bool:
  """Returns whether a log directory has the file of a checkpoint."""
  return bool(glob.glob(os.path.join(glob.escape(logdir), 'ckpt-*.index')))


class SameDirectory:
  """Notices that a directory was deleted, moved or replaced by another one.

  The directory of another run would get the files of this run.
  """

  def __init__(self, path: str):
    """Opens a directory; a directory that cannot be opened is not checked."""
    self._path = path
    self._file: int | None = None
    with contextlib.suppress(OSError):
      self._file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
      weakref.finalize(self, os.close, self._file)

  def check(self) -> None:
    """Raises SaveError if the path does not lead to the directory."""
    if self._file is None:
      return
    try:
      if os.path.samestat(os.fstat(self._file), os.stat(self._path)):
        return
    except FileNotFoundError:
      pass
    except OSError as e:
      raise errors.SaveError(
          f'{self._path} cannot be reached ({e.strerror}), so nothing was '
          'saved. Mend the path while the run goes on, or stop the run.') from e
    raise errors.SaveError(
        f'{self._path} was deleted, moved or replaced by another directory '
        'during the run, so nothing was saved.')


def no_link(path: str, flags: int) -> int:
  """Opens a file, for `open`; raises OSError if `path` is a link."""
  try:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
  except OSError as e:
    if e.errno == errno.ELOOP:
      e.strerror = f'{path} is a link'
    raise
