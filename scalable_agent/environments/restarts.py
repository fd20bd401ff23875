# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors of environments that restart processes which died or hang."""

import collections
from collections.abc import Callable, Sequence
import threading
import time
from typing import TypeVar

import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base

_HOUR_S = 3600.

T = TypeVar('T')


class Restarts:
  """Counts restarts of processes; may be used by several threads.

  `max_per_hour` restarts are allowed within an hour. New processes have other
  seeds; with `same_seeds`, only from the second loss of a vector on.
  """

  def __init__(self, max_per_hour: int, same_seeds: bool = False):
    self.count = 0
    self.max_per_hour = max_per_hour
    self.same_seeds = same_seeds
    self._times_s: collections.deque[float] = collections.deque()
    self._lock = threading.Lock()

  def add(self) -> int:
    """Counts a restart; returns the number of restarts in the last hour."""
    with self._lock:
      now_s = time.monotonic()
      self._times_s.append(now_s)
      while self._times_s[0] < now_s - _HOUR_S:
        self._times_s.popleft()
      self.count += 1
      return len(self._times_s)


class RestartedVector:
  """A `base.VectorEnvironment` that survives the loss of its processes.

  After a loss, `initial` starts new processes, see `Restarts`.
  """

  def __init__(self, make: Callable[[Sequence[int]], base.VectorEnvironment],
               seeds: Sequence[int], restarts: Restarts):
    """Calls `make`, which makes a vector from `E` seeds."""
    self._make, self._seeds, self._restarts = make, seeds, restarts
    self._num_starts = 1
    self._closed = False
    self._env: base.VectorEnvironment | None = make(seeds)
    self.spec = self._env.spec

  def initial(self) -> base.Observation:
    """Starts the environments.

    Raises:
      errors.EnvironmentLostError: the processes were lost.
      errors.EnvironmentProcessError: processes were lost too often, or an
        environment raised an error.
    """
    return self._call(lambda: self._open().initial())

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """See `base.VectorEnvironment`; raises the errors of `initial`."""
    return self._call(lambda: self._open().step(actions))

  def close(self) -> None:
    self._closed = True
    # The acting thread may set `_env` to None after a loss.
    if (env := self._env) is not None:
      env.close()

  def _open(self) -> base.VectorEnvironment:
    """Returns the vector; makes a new vector after a loss."""
    if self._env is None:
      seeds = self._seeds
      if self._num_starts > 1 or not self._restarts.same_seeds:
        # The same games could end in the same loss again.
        seeds = [int(np.random.SeedSequence([seed, self._num_starts])
                     .generate_state(1)[0] >> 1) for seed in seeds]
        if self._restarts.same_seeds and self._num_starts == 2:
          print('Other games are played from now on: processes with the same '
                'seeds were lost twice.', flush=True)
      self._num_starts += 1
      self._env = self._make(seeds)
      if self._closed:  # In the meantime.
        self._env.close()
    return self._env

  def _call(self, call: Callable[[], T]) -> T:
    """Returns the result of `call`; handles the loss of processes."""
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
      print(f'{e} The {len(self._seeds)} environments of this group restart; '
            'in a training, their last unroll is dropped. This was restart '
            f'{num_recent} within an hour, {limit} are allowed '
            '(--max_environment_restarts).', flush=True)
      self._env = None  # `e` has ended all of its processes.
      raise errors.EnvironmentLostError() from None
