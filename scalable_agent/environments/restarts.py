# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors whose processes are replaced when they die or hang."""

import collections
from collections.abc import Callable, Sequence
import threading
import time

import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base

_HOUR_S = 3600.


class Restarts:
  """Counts what is replaced; may be used by several threads.

  Attributes:
    count: how often something was replaced.
    max_per_hour: how often that may be within an hour.
  """

  def __init__(self, max_per_hour: int):
    self.count = 0
    self.max_per_hour = max_per_hour
    self._times_s: collections.deque[float] = collections.deque()
    self._lock = threading.Lock()

  def add(self) -> int:
    """Counts one more; returns how many there were within the last hour."""
    with self._lock:
      now_s = time.monotonic()
      self._times_s.append(now_s)
      while self._times_s[0] < now_s - _HOUR_S:
        self._times_s.popleft()
      self.count += 1
      return len(self._times_s)


class RestartedVector:
  """A `base.VectorEnvironment` that goes on when its processes are lost.

  Then `initial` makes new ones, with other seeds.

  Attributes:
    spec: see `base.VectorEnvironment`.
  """

  def __init__(self, make: Callable[[Sequence[int]], base.VectorEnvironment],
               seeds: Sequence[int], restarts: Restarts):
    """Makes the vector.

    Args:
      make: makes it, of `E` seeds.
      seeds: of its `E` environments.
      restarts: how often processes may be replaced.

    Raises:
      Exception: any error of `make`.
    """
    self._make, self._seeds, self._restarts = make, seeds, restarts
    self._num_made = 1
    self._closed = False
    self._env: base.VectorEnvironment | None = make(seeds)
    self.spec = self._env.spec

  def initial(self) -> base.Observation:
    """See `base.VectorEnvironment`.

    Raises:
      errors.EnvironmentLostError: the processes were lost.
      errors.EnvironmentProcessError: they were lost too often, or an
        environment has raised an error.
    """
    return self._kept(lambda: self._made().initial())

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """See `base.VectorEnvironment`; errors are those of `initial`."""
    return self._kept(lambda: self._made().step(actions))

  def close(self) -> None:
    """See `base.VectorEnvironment`."""
    self._closed = True
    if self._env is not None:
      self._env.close()

  def _made(self):
    if self._env is None:
      seeds = [int(np.random.SeedSequence([seed, self._num_made])
                   .generate_state(1)[0] >> 1) for seed in self._seeds]
      self._num_made += 1
      self._env = self._make(seeds)
      if self._closed:  # In the meantime.
        self._env.close()
    return self._env

  def _kept(self, call):
    try:
      return call()
    except errors.EnvironmentProcessLostError as e:
      if self._closed:
        raise
      num_recent = self._restarts.add()
      limit = self._restarts.max_per_hour
      if num_recent > limit:
        raise errors.EnvironmentProcessError(
            f'{e} Processes of environments were lost {num_recent} times '
            f'within an hour; --max_environment_restarts={limit}.') from None
      print(f'{e} The {len(self._seeds)} environments of its group begin anew, '
            'and their last unroll is not learned from. This was restart '
            f'{num_recent} within an hour, {limit} may be '
            '(--max_environment_restarts).', flush=True)
      self._env = None  # `e` has ended all of its processes.
      raise errors.EnvironmentLostError() from None
