# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Output that survives full disks, and the end of the program."""

from collections.abc import Collection, Iterator
import contextlib
import errno
import io
import os
import subprocess
import sys
import traceback
from typing import NoReturn, TextIO

from scalable_agent import errors
from scalable_agent.processes import threads
from scalable_agent.processes import variables

# Lines that TensorFlow writes to stderr while it is imported.
TENSORFLOW_NOISE = (
    '^([IW]0000 |E0000 .*cuInit|WARNING: All log messages before absl|'
    'To enable the following instructions)')

# A filter of stderr that does not end by then is left alone.
_GREP_TIMEOUT_S = 1.


class Output(io.TextIOBase):
  """Writes to a file; drops output for a full disk or a closed terminal.

  The output of a run may be on the disk of the checkpoints. A full disk must
  not end the run, and nor must a terminal that was closed (EIO).
  """

  def __init__(self, file: TextIO, dropped: Collection[int] = ()) -> None:
    """Wraps a file; also drops output for the error codes `dropped`."""
    super().__init__()
    self._file = file
    self._dropped = (*errors.NO_ROOM, errno.EIO, *dropped)

  def __getattr__(self, name: str) -> object:
    return getattr(self._file, name)

  def write(self, text: str) -> int:
    with self._errors_dropped():
      self._file.write(text)
    return len(text)

  def flush(self) -> None:
    with self._errors_dropped():
      self._file.flush()

  @contextlib.contextmanager
  def _errors_dropped(self) -> Iterator[None]:
    try:
      yield
    except OSError as e:
      if e.errno not in self._dropped:
        raise

  def isatty(self) -> bool:
    return self._file.isatty()

  def fileno(self) -> int:
    return self._file.fileno()

  @property
  def encoding(self) -> str:  # type: ignore[override]
    return self._file.encoding

  @property
  def errors(self) -> str | None:  # type: ignore[override]
    return self._file.errors


def survive_lost_output() -> None:
  """Lets prints of this process fail silently; for environments."""
  sys.stdout, sys.stderr = (file and Output(file, [errno.EPIPE])
                            for file in (sys.stdout, sys.stderr))


@contextlib.contextmanager
def without_lines(pattern: str) -> Iterator[None]:
  """Drops lines that match `pattern`, as for `grep -E`, from stderr.

  Also drops lines that libraries write. A process of its own filters stderr, so
  that no other line is lost even if this process dies.
  """
  if sys.stderr is None:  # The program was started with a closed stderr.
    yield
    return
  sys.stderr.flush()
  try:
    grep = subprocess.Popen(['grep', '--line-buffered', '-aEv', pattern],
                            stdin=subprocess.PIPE, stdout=2)
  except OSError:  # There is no grep.
    yield
    return
  assert grep.stdin is not None  # For mypy: stdin is a pipe.
  stderr = os.dup(2)
  os.dup2(grep.stdin.fileno(), 2)
  grep.stdin.close()
  try:
    yield
  finally:
    sys.stderr.flush()
    os.dup2(stderr, 2)
    os.close(stderr)
    # Another thread may have started a program, which still has the pipe.
    with contextlib.suppress(subprocess.TimeoutExpired):
      grep.wait(_GREP_TIMEOUT_S)


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
  """Drops the lines that an import of TensorFlow inside writes.

  Does nothing if TensorFlow was imported before. `TF_CPP_MIN_LOG_LEVEL` and
  `TF_FORCE_GPU_ALLOW_GROWTH` are set.
  """
  if 'tensorflow' in sys.modules:
    yield
    return
  for name in 'TF_CPP_MIN_LOG_LEVEL', 'TF_FORCE_GPU_ALLOW_GROWTH':
    os.environ.setdefault(name, variables.TENSORFLOW[name])
  # TensorFlow writes lines before the log level counts.
  with without_lines(TENSORFLOW_NOISE):
    yield
    if 'tensorflow' in sys.modules:
      # TensorFlow looks for GPUs now, and reports missing libraries.
      sys.modules['tensorflow'].config.list_physical_devices()


def print_error(error: BaseException, all_frames: bool) -> None:
  """Prints an error; for code of users, with frames of the traceback.

  `all_frames` also prints the frames of this program.
  """
  global is_out_of_memory
  if isinstance(error, errors.UserCodeError):
    with contextlib.suppress(OSError):
      print(error.all_frames if all_frames else error.frames,
            file=sys.stderr, end='')
  if isinstance(error, errors.SaveError):
    # The run may have been ending already, because of another error.
    for first in _contexts(error):
      if isinstance(first, errors.UserError):
        print_error(first, all_frames)
        break
      if isinstance(first, OSError) or not isinstance(first, Exception):
        continue
      if text := errors.in_a_line(first):
        print_last_line(text)
        is_out_of_memory = True
      else:
        traceback.print_exception(first)
      break
  print_last_line(str(error))


def _contexts(error: BaseException) -> Iterator[BaseException]:
  """Yields the errors that an error has followed, the latest first."""
  while error.__context__:
    error = error.__context__
    yield error


def print_last_line(text: str) -> None:
  """Prints the last line, if stderr can be written."""
  with contextlib.suppress(OSError):
    print(f'scalable_agent: {text}', file=sys.stderr, flush=True)


# TensorFlow's threads may then wait for each other for ever.
is_out_of_memory = False


def end_program(exit_code: int) -> NoReturn:
  """Ends the program without waiting for `LibraryThread`s."""
  _flush_stdout()
  if threads.library_threads() or is_out_of_memory:
    if sys.stderr:
      sys.stderr.flush()
    os._exit(exit_code)
  sys.exit(exit_code)


def open_closed_streams() -> None:
  """Opens stdin, stdout and stderr to nowhere where they are closed.

  Otherwise, the next files to be opened would get the output of libraries.
  """
  for number in range(3):
    try:
      os.fstat(number)
    except OSError:  # The new file gets the lowest free number.
      os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
  sys.stdout = sys.stdout or open(os.devnull, 'w', encoding='utf-8')
  sys.stderr = sys.stderr or open(os.devnull, 'w', encoding='utf-8')


def drop_stdout() -> None:
  """Sends further output to nowhere."""
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_stdout() -> None:
  try:
    sys.stdout.flush()
  except OSError:  # Python would flush again, and change the exit code.
    drop_stdout()
