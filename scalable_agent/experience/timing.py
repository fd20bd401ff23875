# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures times: of stages, between events, and per count."""

import collections
from collections.abc import Iterable, Iterator, Mapping
import contextlib
import time
from typing import TypeVar

_Number = TypeVar('_Number', int, float)


class Interval:
  """A call returns True if `seconds` have passed since the last True."""

  def __init__(self, seconds: float):
    self._seconds = seconds
    self._last_s = time.monotonic()

  def __call__(self) -> bool:
    """Returns whether the time is over; if so, restarts the interval."""
    is_due = time.monotonic() - self._last_s >= self._seconds
    if is_due:
      self._last_s = time.monotonic()
    return is_due


class StageTimer:
  """Adds up wall time by stage. Each thread needs a timer of its own."""

  def __init__(self) -> None:
    self.seconds: dict[str, float] = collections.defaultdict(float)

  @contextlib.contextmanager
  def stage(self, name: str) -> Iterator[None]:
    """Adds the time spent inside to stage `name`."""
    start_s = time.perf_counter()
    try:
      yield
    finally:
      self.seconds[name] += time.perf_counter() - start_s


def totals(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
  """Returns the sum of each entry over several dictionaries."""
  total: dict[str, _Number] = {}
  for part in parts:
    for name, value in part.items():
      total[name] = total[name] + value if name in total else value
  return total


def shares(seconds_by_role: Mapping[str, Mapping[str, float]]
           ) -> dict[str, float]:
  """Returns each role's share of time by `role/stage`, from its seconds."""
  return {f'{role}/{stage}': value / max(sum(seconds.values()), 1e-9)
          for role, seconds in seconds_by_role.items()
          for stage, value in seconds.items()}


class Speed:
  """Measures how fast a count grows between two calls."""

  def __init__(self, count: int):
    self._last = time.perf_counter(), count

  def __call__(self, count: int) -> float:
    """Returns the growth per second since the last call, or the start."""
    (last_time, last_count), self._last = (
        self._last, (time.perf_counter(), count))
    return (count - last_count) / max(self._last[0] - last_time, 1e-9)
