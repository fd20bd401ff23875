# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs of the program that another program starts and stops, and curves."""

import collections
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import TypeVar

from absl import flags as absl_flags
import numpy as np
import scalable_agent
from scalable_agent import errors
from scalable_agent.processes import programs
from scalable_agent.runs import logdirs
from scalable_agent.scores import episodes_csv
from scalable_agent.scores import plotting
from scalable_agent.settings import command_line
from scalable_agent.settings import values

# Arguments of Python for the program.
PROGRAM: tuple[str, ...] = ('-m', f'{scalable_agent.__name__}.experiment')
# A variable of CUDA: the GPUs that a program sees.
_GPUS = 'CUDA_VISIBLE_DEVICES'
# A run whose program was killed saves a checkpoint for so long at most.
_LOCK_TIMEOUT_S = 120.
_LOCK_POLL_S = .5
# The number of last episodes in a mean return.
NUM_EPISODES = 100

R = TypeVar('R', bound=Hashable)


def in_full(flags: Sequence[str]) -> list[str]:
  """Returns flags with the lines of files in place of `--flagfile`.

  Raises ConfigError if a file cannot be read, or would override a flag.
  """
  try:
    command_line.check_order(flags)
    return absl_flags.FlagValues().read_flags_from_files(list(flags))
  except UnicodeDecodeError as e:
    raise errors.ConfigError('A file of --flagfile is not a text file.') from e
  except (absl_flags.Error, OSError) as e:
    raise errors.ConfigError(str(e).removeprefix('ERROR:: ')) from e


def start(flags: Sequence[str], directory: pathlib.Path) -> subprocess.Popen:
  """Starts or resumes a run, which ends with this process.

  Args:
    flags: flags of experiment.py, without --logdir. Paths are relative to the
      working directory.
    directory: --logdir. The output of the run is added to its log.txt.
  """
  root = str(pathlib.Path(scalable_agent.__file__).resolve().parent.parent)
  path = os.pathsep.join(filter(None, [root, os.environ.get('PYTHONPATH')]))
  return programs.start(
      [sys.executable, *PROGRAM, *flags, f'--logdir={directory}'], directory,
      env=dict(os.environ, PYTHONPATH=path))


def wait_until_unlocked(
    directory: pathlib.Path,
    wait: Callable[[float], bool | None] = time.sleep) -> None:
  """Waits for the run of a killed program, which saves its last checkpoint.

  Args:
    directory: --logdir of the run.
    wait: waits for seconds; True: ends the wait.

  Raises:
    LockedError: another run has the directory for two minutes.
    CheckpointError: the directory cannot be used.
  """
  end_s = time.monotonic() + _LOCK_TIMEOUT_S
  while directory.exists():
    try:
      with logdirs.locked(str(directory)):
        return
    except errors.LockedError:
      if time.monotonic() > end_s:
        raise
      if wait(_LOCK_POLL_S):
        return


def ends(waiting: collections.deque[R], jobs: int,
         start_run: Callable[[R], subprocess.Popen | None], poll_s: float, *,
         is_over: Callable[[R], bool] = lambda run: False,
         wait: Callable[[float], bool | None] = time.sleep
         ) -> Generator[tuple[R, int | None, int], None, None]:
  """Makes runs, `jobs` at a time; stops all active runs when closed.

  Args:
    waiting: the runs to start, in this order. The caller may add runs.
    jobs: the number of runs at a time.
    start_run: starts a run; None: the run cannot start.
    poll_s: seconds from one look at the runs to the next.
    is_over: whether an active run must be stopped.
    wait: waits for seconds; True: no run is started or waited for any more.

  The jobs share the GPUs that `CUDA_VISIBLE_DEVICES` names.

  Yields:
    A run that has ended, its exit code (None: `is_over`), and the number of
    runs to go.
  """
  active: dict[R, tuple[subprocess.Popen, int]] = {}
  free = list(range(jobs))
  try:
    while waiting or active:
      while waiting and free:
        run = waiting.popleft()
        with _gpus_of(free[0], jobs):
          child = start_run(run)
        if child is not None:
          active[run] = child, free.pop(0)
      if wait(poll_s):
        return
      for run, (child, job) in list(active.items()):
        code = child.poll()
        if code is None and not is_over(run):
          continue
        if code is None:
          programs.stop(child)
        del active[run]
        free.append(job)
        yield run, code, len(waiting) + len(active)
  finally:
    programs.stop(*(child for child, _ in active.values()))


@contextlib.contextmanager
def _gpus_of(job: int, jobs: int) -> Iterator[None]:
  """Shows the GPUs of a job to the programs that are started within."""
  before = os.environ.get(_GPUS, '')
  if not (gpus := values.names(before)):
    yield
    return
  # If there are more jobs than GPUs, several jobs share a GPU.
  os.environ[_GPUS] = ','.join(gpus[job % len(gpus)::jobs])
  try:
    yield
  finally:
    os.environ[_GPUS] = before


def episodes(directory: pathlib.Path) -> np.ndarray:
  """Returns the episodes of a run so far, in the order of their ends.

  Args:
    directory: --logdir of the run.

  Returns:
    float64 `[N, 3]`: environment frames, seconds of training, return.
  """
  if not _has_episodes(directory):
    return np.empty([0, 3])
  return np.array([values for _, *values in episodes_csv.read(
      str(directory))]).reshape(-1, 3)


def num_env_frames(directory: pathlib.Path) -> float:
  """Returns the frames of a run at the end of its last episode, 0 before."""
  last = episodes_csv.last(str(directory)) if _has_episodes(directory) else None
  return last.num_env_frames if last else 0


def _has_episodes(directory: pathlib.Path) -> bool:
  return (directory / 'episodes.csv').exists()


def means(returns: np.ndarray) -> np.ndarray:
  """Returns the mean of the last 100 returns at each episode, NaN before."""
  # Sums of whole returns are exact: a mean at a mark is not below the mark.
  found = plotting.running_mean(returns, NUM_EPISODES)
  found[:NUM_EPISODES - 1] = np.nan
  return found


def score(episodes: np.ndarray, num_frames: float = np.inf) -> float:
  """Returns the mean of the last 100 returns within the first frames.

  Returns -inf if no episode had ended. For `episodes`, see the function.
  """
  returns = episodes[episodes[:, 0] <= num_frames, 2][-NUM_EPISODES:]
  return float(np.mean(returns)) if returns.size else -np.inf


def restored(line: str) -> int | None:
  """Returns the frames that a run says to go on from, if the line says so."""
  match = re.search(r'Resuming from .*, ([\d,]+) frames', line)
  return _number(match[1]) if match else None


def progress(line: str) -> tuple[int, int] | None:
  """Returns the frames so far and in all of a line of progress, else None."""
  # Not a line such as "400 of 800 frames collected for the first update".
  match = re.match(r'([\d,]+) of ([\d,]+) frames \(', line)
  return (_number(match[1]), _number(match[2])) if match else None


def is_at_end(output: str) -> bool:
  """Returns whether a run has made all of its frames.

  The exit code does not show this: a stop by a signal also has the code 0.

  Args:
    output: all that the run has printed.
  """
  for line in reversed(output.splitlines()):
    # A run that was killed in its last evaluation has no further progress.
    if line.startswith('This run is finished'):
      return True
    if numbers := progress(line):
      return numbers[0] >= numbers[1]
  return False


def _number(text: str) -> int:
  return int(text.replace(',', ''))
