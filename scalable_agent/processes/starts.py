# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments that start: the time that starts may take."""

import contextlib
import os
import threading
import time

# Seconds of one core that the start of an environment may need. A map of
# DeepMind Lab takes up to 32 s, and all maps may be compiled at the same time.
TIMEOUT_S = 60.0

_lock = threading.Lock()
# By the `id` of a vector: for all open vectors of this program the numbers of
# environments, and for all vectors that were reset the numbers of environments
# that have started.
_num_open: dict[int, int] = {}
_num_ready: dict[int, int] = {}
_said_s = 0.0
_max_cores = 0


def limit_cores(number: int) -> None:
  """Limits `num_cores` of this process to `number`; 0 for no limit."""
  global _max_cores
  _max_cores = number


def num_cores() -> int:
  """Returns the number of cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):  # Not on every system.
    number = len(os.sched_getaffinity(0))
  else:
    number = os.cpu_count() or 1
  return min(number, _max_cores or number)


def open_vector(key: int, num_environments: int) -> None:
  """Records a vector, which `close_vector` forgets."""
  with _lock:
    _num_open[key] = num_environments


def close_vector(key: int) -> None:
  with _lock:
    del _num_open[key]
    _num_ready.pop(key, None)


def begin(key: int) -> None:
  """Records that the environments of a vector start."""
  global _said_s
  with _lock:
    if all(_num_ready[k] == _num_open[k] for k in _num_ready if k != key):
      _said_s = time.monotonic()  # No other vector is starting.
    if key in _num_open:
      _num_ready[key] = 0


def ready(key: int, num_ready: int, period_s: float) -> None:
  """Records how many environments of a vector have started.

  Prints the number of all environments that are ready, every `period_s`
  seconds; 0 prints nothing. Vectors that were never reset do not count.
  """
  global _said_s
  with _lock:
    if key not in _num_open:  # Closed by another thread.
      return
    _num_ready[key] = num_ready
    is_due = 0 < period_s <= time.monotonic() - _said_s
    if is_due:
      _said_s = time.monotonic()
    num_all = sum(_num_open[k] for k in _num_ready)
    text = f'{sum(_num_ready.values())} of {num_all} environments are ready.'
  if is_due:
    with contextlib.suppress(OSError):  # Nobody reads: no fault of the start.
      print(text, flush=True)


def more_s(num_per_process: int) -> float:
  """Returns the additional seconds that the start of environments may take.

  All environments of this program may start at the same time. Environments in
  one process start one after the other.
  """
  with _lock:
    per_core = sum(_num_open.values()) / num_cores()
  return TIMEOUT_S * max(per_core, num_per_process)
