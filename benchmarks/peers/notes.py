# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Notes that the programs of benchmarks/off_policy.py write."""

import json
import statistics
import time

import pong

# Agent steps in the replay while `time_calls` measures.
NUM_STEPS = 10_000
# Updates are noted this often: some programs make thousands per second.
_PERIOD_S = 0.1
_TURNS = 7
_SECONDS_PER_TURN = 1.0


class Notes:
  """Notes updates, but not each one on its own."""

  def __init__(self, batch_size):
    self._batch_size = batch_size
    self._noted = 0
    self._due_s = 0.0

  def __call__(self, num_updates):
    """Notes that `num_updates` were made so far."""
    if num_updates > self._noted and time.monotonic() >= self._due_s:
      pong.note_update((num_updates - self._noted) * self._batch_size)
      self._noted = num_updates
      self._due_s = time.monotonic() + _PERIOD_S


def time_calls(sizes, make, **more):
  """Prints milliseconds per update as JSON, `{K: {cpu, wall}}`.

  Args:
    sizes: numbers of updates per call.
    make: makes the function to call for such a number.
    **more: further entries of the JSON.
  """
  result = {}
  for size in sizes:
    call = make(size)
    for _ in range(2):  # Compiles.
      call()
    start = time.perf_counter()
    call()
    count = max(int(_SECONDS_PER_TURN / (time.perf_counter() - start)), 1)
    turns = []
    for _ in range(_TURNS):
      cpu_s, wall_s = time.process_time(), time.perf_counter()
      for _ in range(count):
        call()
      turns.append([1e3 * (end - begin) / count / size for end, begin in (
          (time.process_time(), cpu_s), (time.perf_counter(), wall_s))])
    result[size] = dict(zip(
        ('cpu', 'wall'), map(statistics.median, zip(*turns))))
  print(json.dumps({**result, **more}), flush=True)
