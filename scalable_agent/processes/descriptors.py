# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks that processes fit into the limit of open files."""

import os
import resource

from scalable_agent import errors

# A pipe for commands, and two ends of pipes that tell that a process ended.
_PER_PROCESS = 4
_OTHERS = 100


def check(num_processes: int) -> None:
  """Raises the limit of open files; ConfigError beyond the hard limit."""
  if not os.path.isdir('/proc/self/fd'):
    return
  needed = (len(os.listdir('/proc/self/fd')) + _PER_PROCESS * num_processes
            + _OTHERS)
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  if resource.RLIM_INFINITY == soft or needed <= soft:
    return
  if hard != resource.RLIM_INFINITY and needed > hard:
    raise errors.ConfigError(
        f'{num_processes} processes (--num_actors, --environments_per_process) '
        f'need about {needed:,} open files, but the limit is {hard:,}: raise '
        'it, see `ulimit -n`, or lower --num_actors.')
  resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
