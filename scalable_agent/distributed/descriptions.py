# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What the processes that act or step environments say about themselves."""

import os
import socket
from typing import NamedTuple

from scalable_agent.distributed import versions
from scalable_agent.experience import structs


class Description(NamedTuple):
  """What a worker says when it is ready.

  Attributes:
    spec: of its environments.
    num_groups: its number of groups of environments.
    host: the name of its machine.
    pid: the number of its process.
    versions: of what must be the same everywhere, by name.
  """
  spec: structs.EnvironmentSpec
  num_groups: int
  host: str
  pid: int
  versions: dict[str, str]


def describe(spec: structs.EnvironmentSpec, num_groups: int) -> Description:
  """Returns the description of a worker; called in its process."""
  return Description(spec, num_groups, socket.gethostname(), os.getpid(),
                     versions.installed())
