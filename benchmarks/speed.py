# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The speed of a function, also for workers without TensorFlow."""

from collections.abc import Callable
import time


def per_s(function: Callable[[], object], seconds: float) -> float:
  """Calls a function for so many seconds, at least once; returns calls/s."""
  count, start = 0, time.perf_counter()
  while not count or time.perf_counter() - start < seconds:
    function()
    count += 1
  return count / (time.perf_counter() - start)
