# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Evaluations during training: writes and reads `evaluations.csv`."""

from collections.abc import Iterator
import contextlib
import os
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.settings import files

# Name of a file that a killed run leaves behind.
TEMPORARY_NAME = r'evaluations\.csv\.tmp'
_NAME = 'evaluations.csv'
_HEAD = 'num_env_frames,num_updates,train_time_s,mean,std,returns\n'


class Evaluation(NamedTuple):
  """Whole games with the weights of one moment of the training.

  Attributes:
    num_env_frames: environment frames received so far.
    num_updates: updates made so far.
    train_time_s: seconds trained.
    returns: unclipped returns, level by level; the same number for each level,
      unless games were cut.
  """
  num_env_frames: int
  num_updates: int
  train_time_s: float
  returns: tuple[float, ...]

  @property
  def mean(self) -> float:
    """The mean return; also the mean over levels, unless games were cut."""
    return float(np.mean(self.returns))

  @property
  def std(self) -> float:
    """The standard deviation of all returns."""
    return float(np.std(self.returns))


def read(logdir: str) -> list[Evaluation]:
  """Returns the evaluations of a run in order; none without a file.

  Lines cut off by a kill are left out. If a killed part of the run and its next
  part have the same evaluation, the next part's evaluation counts.
  """
  kept: list[Evaluation] = []
  with contextlib.suppress(OSError):
    for _, evaluation in _lines(logdir):
      while kept and kept[-1].num_env_frames >= evaluation.num_env_frames:
        kept.pop()
      kept.append(evaluation)
  return kept


def start(logdir: str, num_env_frames: int) -> list[Evaluation]:
  """Prepares the file for a part of a run that begins at `num_env_frames`.

  Removes later evaluations, because this part repeats them, and returns the
  evaluations before. Raises ConfigError if the file cannot be read or written.
  """
  path = os.path.join(logdir, _NAME)
  try:
    kept = [line for line, evaluation in _lines(logdir)
            if evaluation.num_env_frames <= num_env_frames]
    files.write(path, ''.join([_HEAD, *kept]))
  except OSError as e:
    raise errors.ConfigError(
        f'{path} cannot be used: {e.strerror}. Make this file '
        'readable and writable, or use another --logdir.') from e
  return read(logdir)


def append(logdir: str, evaluation: Evaluation) -> None:
  """Adds an evaluation to the file that `start` has prepared.

  If writing fails, only a warning is printed: training is worth more.
  """
  path = os.path.join(logdir, _NAME)
  # Returns are float32: their shortest texts are the same numbers again.
  returns = ' '.join(str(np.float32(r)) for r in evaluation.returns)
  try:
    size = os.path.getsize(path)
    try:
      with open(path, 'a', encoding='utf-8') as f:
        f.write(f'{evaluation.num_env_frames},{evaluation.num_updates},'
                f'{evaluation.train_time_s:.1f},{evaluation.mean},'
                f'{evaluation.std},{returns}\n')
        f.flush()
        # A later checkpoint counts this evaluation, also after a crash.
        os.fsync(f.fileno())
    except OSError:
      os.truncate(path, size)  # Half a line would spoil the next line.
      raise
  except OSError as e:
    print(f'{path} could not be written: {e.strerror}. Training continues; the '
          f'evaluation at {evaluation.num_env_frames:,} frames will be '
          'missing.', flush=True)


def _lines(logdir: str) -> Iterator[tuple[str, Evaluation]]:
  """Yields each complete line with its evaluation; none without a file."""
  try:
    with open(os.path.join(logdir, _NAME), encoding='utf-8',
              errors='replace') as f:
      lines = list(f)
  except FileNotFoundError:
    return
  for line in lines:
    evaluation = _parse(line)
    if evaluation and line.endswith('\n'):
      yield line, evaluation


def _parse(line: str) -> Evaluation | None:
  try:
    frames, updates, seconds, _, _, returns = line.split(',')
    values = tuple(float(np.float32(text)) for text in returns.split())
    return Evaluation(int(frames), int(updates), float(seconds),
                      values) if values else None
  except ValueError:
    return None
