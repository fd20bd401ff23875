# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks that large arrays fit into the memory of this machine."""

import contextlib
import os

from scalable_agent import errors

# A container may have less than the machine.
_LIMIT_OF_A_CONTAINER = '/sys/fs/cgroup/memory.max'


def size_gb() -> float:
  """Returns the size of the memory, in GB."""
  size = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  with contextlib.suppress(OSError, ValueError):  # No limit is set.
    with open(_LIMIT_OF_A_CONTAINER, encoding='utf-8') as f:
      size = min(size, int(f.read()))
  return size / 1e9


def check(what: str, num_bytes: float) -> None:
  """Raises ConfigError if this machine has less memory than is needed.

  `what` is a purpose, with the flags that decide about its size, for the error.
  """
  if num_bytes / 1e9 > size_gb():
    raise errors.ConfigError(
        f'{what}: {num_bytes / 1e9:,.1f} GB are needed, but this machine has '
        f'{size_gb():,.1f} GB. Choose smaller numbers.')
