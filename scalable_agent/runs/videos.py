# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Records videos while training: `--mode=video` in a low-priority process."""

from collections.abc import Iterator
import contextlib
import os
import subprocess
import sys
import threading
import time

from scalable_agent import errors
from scalable_agent.settings import sections

_END_TIMEOUT_S = 3.
# In the environment of the process: the file descriptor for `announce`.
_ANNOUNCE_FD = 'SCALABLE_AGENT_ANNOUNCE_FD'
# The process ends with the training, and takes the lowest priority before any
# large import. Ctrl-C does not reach another group of processes. The session
# stays the same: priorities count within a session (the autogroups of Linux).
_PROGRAM = """
import os, sys
from scalable_agent.processes import signals
signals.end_with_parent(int(sys.argv.pop(1)))
os.setpgid(0, 0)
try:
  os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
except (AttributeError, OSError):
  os.nice(19)
from scalable_agent import experiment
experiment.run_program()
"""


def announce(text: str) -> None:
  """Prints a line about a complete video, here and in the training, if any."""
  print(text, flush=True)
  if _ANNOUNCE_FD in os.environ:
    os.write(int(os.environ[_ANNOUNCE_FD]), f'{text}\n'.encode())


def check_packages(video_format: str) -> None:
  """Raises MissingDependencyError if videos cannot be encoded."""
  try:
    import imageio.v2  # noqa: F401
    if video_format == 'mp4':
      import imageio_ffmpeg
      imageio_ffmpeg.get_ffmpeg_exe()
  except (ImportError, RuntimeError) as e:
    raise errors.MissingDependencyError(
        'Videos need imageio and ffmpeg: pip install "scalable_agent[video]" '
        f'({str(e).splitlines()[0]}).') from e


class Videos:
  """Records a video of the latest checkpoint from time to time."""

  def __init__(self, config: sections.AllSections):
    """Records nothing yet; the first video is due after `video_secs`.

    Raises MissingDependencyError if videos cannot be encoded.
    """
    check_packages(config.video_format)
    self._period_s = config.video_secs
    self._command = [
        sys.executable, '-c', _PROGRAM, str(os.getpid()), '--mode=video',
        f'--logdir={os.path.abspath(config.logdir)}', '--video_num_episodes=1']
    self._last_s = time.monotonic()
    self._last_number = 0
    self._process: subprocess.Popen | None = None
    self._printer: threading.Thread | None = None
    self._is_closed = threading.Event()

  def record_if_due(self, checkpoint_number: int) -> None:
    """Starts a process that records a video, if due and if no other runs.

    Each checkpoint gets one video. `checkpoint_number` are the updates of the
    latest checkpoint, 0 if there is none.
    """
    if (checkpoint_number == self._last_number
        or time.monotonic() < self._last_s + self._period_s
        or self._process and self._process.poll() is None):
      return
    self._last_s = time.monotonic()
    self._last_number = checkpoint_number
    try:
      with _pipe() as (announced, announce_fd):
        self._process = subprocess.Popen(
            self._command, text=True, errors='replace',
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=_environment(announce_fd),
            pass_fds=[announce_fd])
    except OSError as e:  # A run does not end because a video fails.
      print(f'No video: {e.strerror}.', flush=True)
      return
    self._printer = threading.Thread(
        target=_print_result, args=(self._process, announced, self._is_closed),
        daemon=True)
    self._printer.start()

  def close(self) -> None:
    """Ends a process that is still recording."""
    self._is_closed.set()
    if self._process and self._process.poll() is None:
      self._process.terminate()
      try:
        self._process.wait(_END_TIMEOUT_S)
      except subprocess.TimeoutExpired:
        self._process.kill()
    if self._printer:
      self._printer.join(_END_TIMEOUT_S)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
  """Yields both ends of a pipe; closes the second end, on errors both."""
  read_fd, write_fd = os.pipe()
  try:
    yield read_fd, write_fd
  except BaseException:
    os.close(read_fd)
    raise
  finally:
    os.close(write_fd)


def _environment(announce_fd: int) -> dict[str, str]:
  """Returns the environment of a process that records.

  The process finds the same modules, and leaves the GPU to the learner.
  """
  return {**os.environ, 'CUDA_VISIBLE_DEVICES': '-1',
          _ANNOUNCE_FD: str(announce_fd),
          'PYTHONPATH': os.pathsep.join(
              path or os.getcwd() for path in sys.path)}


def _print_result(process: subprocess.Popen, announced: int,
                  is_closed: threading.Event) -> None:
  """Prints the announced videos, or the error, when the process has ended."""
  output, _ = process.communicate()
  with open(announced, encoding='utf-8') as f:
    lines = f.read().splitlines()
  if process.returncode and not is_closed.is_set():
    lines = [f'No video: {line}' for line in output.splitlines()[-1:]]
    if process.returncode < 0:
      lines = ['No video: the process was ended by signal '
               f'{-process.returncode} (9 is often a lack of memory).']
  for line in lines:
    print(line, flush=True)
