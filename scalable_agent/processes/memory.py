# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What fits into the memory of this machine. Without TensorFlow."""

import contextlib
import os

from scalable_agent import errors

# A container may have less than the machine.
_LIMIT_OF_A_CONTAINER = '/sys/fs/cgroup/memory.max'


def size_gb() -> float:
  """Returns the size of the memory, in GB."""
  size = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  with contextlib.suppress(OSError, ValueError):  # There is no limit.
    with open(_LIMIT_OF_A_CONTAINER, encoding='utf-8') as f:
      size = min(size, int(f.read()))
  return size / 1e9


def check(what: str, num_bytes: float) -> None:
  """Raises ConfigError if the memory is too small for something.

  Args:
    what: what it is, with the flags that it depends on.
    num_bytes: how much it needs.
  """
  if num_bytes / 1e9 > size_gb():
    raise errors.ConfigError(
        f'{what} needs {num_bytes / 1e9:,.1f} GB, but this machine has '
        f'{size_gb():,.1f} GB: lower it.')
