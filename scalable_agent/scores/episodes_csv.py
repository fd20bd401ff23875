# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Reads `episodes.csv`, the episodes of a training."""

from collections.abc import Iterator, Sequence
import contextlib
import csv
import itertools
import os
import sys
from typing import NamedTuple

from scalable_agent import errors
from scalable_agent.experience import episodes as episodes_lib

_BLOCK_BYTES = 1 << 16


class Episode(NamedTuple):
  """An episode at its end.

  Attributes:
    level: name of the level.
    num_env_frames: environment frames of the training so far.
    train_time_s: seconds of the training so far.
    episode_return: sum of the rewards of the episode.
  """
  level: str
  num_env_frames: float
  train_time_s: float
  episode_return: float


def read(logdir: str) -> list[Episode]:
  """Returns the episodes of a run, in order.

  After a kill, the next part of the run repeats all frames since the last
  checkpoint. So episodes of the killed part that ended after the first episode
  of the next part are left out, and damaged lines. A damaged head is ignored.
  Raises ConfigError if `episodes.csv` cannot be read.
  """
  return list(_kept_backwards(logdir))[::-1]


def returns_before(logdir: str, num_env_frames: int, count: int) -> list[float]:
  """Returns the returns of the last episodes up to `num_env_frames`, in order.

  There are at most `count`, and none if `episodes.csv` cannot be read. Reads
  the head and the end of the file.
  """
  returns = (episode.episode_return for episode in _kept_backwards(logdir)
             if episode.num_env_frames <= num_env_frames)
  with contextlib.suppress(errors.ConfigError):
    return list(itertools.islice(returns, count))[::-1]
  return []


def last(logdir: str) -> Episode | None:
  """Returns the last episode of `read`; None if there is no episode.

  Reads the head and the end of the file. Raises ConfigError if `episodes.csv`
  cannot be read.
  """
  return next(_backwards(logdir), None)


def _kept_backwards(logdir: str) -> Iterator[Episode]:
  """Yields the episodes of `read`, from the last."""
  last_kept = None
  is_of_killed_part = False
  for episode in _backwards(logdir):
    # A part that repeats frames may repeat the very number of frames.
    is_of_killed_part = last_kept is not None and (
        episode.num_env_frames > last_kept.num_env_frames
        or episode.num_env_frames == last_kept.num_env_frames
        and is_of_killed_part)
    if not is_of_killed_part:
      last_kept = episode
      yield episode


def _backwards(logdir: str) -> Iterator[Episode]:
  """Yields the episodes of all undamaged lines, from the last line."""
  path = os.path.join(logdir, 'episodes.csv')
  try:
    with open(path, 'rb') as f:
      # A line may end with \r alone.
      head = (f.readline(csv.field_size_limit()).splitlines(keepends=True)
              or [b''])[0]
      fields = _split(head)
      if not set(fields) >= set(episodes_lib.FIELDS[:4]):
        fields = list(episodes_lib.FIELDS)
      begin, rest = f.seek(0, os.SEEK_END), b''
      while begin > len(head):
        end, begin = begin, max(begin - _BLOCK_BYTES, len(head))
        f.seek(begin)
        # The first line may begin in the block before.
        rest, *lines = (f.read(end - begin) + rest).splitlines() or [b'']
        rest = rest[:csv.field_size_limit()]  # Longer lines do not count.
        if begin == len(head):
          lines.insert(0, rest)
        yield from filter(None, (
            _parse(fields, _split(line)) for line in reversed(lines)))
  except OSError as e:
    raise errors.ConfigError(
        f'--logdir={logdir} has no curve to draw: {path}: {e.strerror}. Train '
        'first, or name directories of runs: --logdir=A,B,C.') from e


def _split(line: bytes) -> list[str]:
  """Returns the values of a line; none if the line is too long for `csv`."""
  if len(line) >= csv.field_size_limit():
    return []
  # Python 3.10 refuses zeros.
  text = line.decode(errors='replace').replace('\0', '').rstrip('\r\n')
  return next(csv.reader([text]), []) if '"' in text else text.split(',')


def _parse(fields: Sequence[str], values: Sequence[str]) -> Episode | None:
  """Returns the episode of a line, None for a damaged line."""
  try:
    row = dict(zip(fields, values, strict=True))
    return Episode(
        sys.intern(row['level_name']), float(row['num_env_frames']),
        float(row['train_time_s']), float(row['episode_return']))
  except (KeyError, ValueError):
    return None
