# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Versions of what must be the same on all machines of a run."""

from collections.abc import Mapping
import contextlib
import functools
import hashlib
from importlib import metadata
import pathlib
import platform
import socket

import scalable_agent
from scalable_agent import errors

# What changes how environments and networks behave.
_PACKAGES = ('ale-py', 'dm-tree', 'gymnasium', 'gymnasium-robotics', 'keras',
             'minigrid', 'mujoco', 'numpy', 'tensorflow', 'vizdoom')


@functools.cache  # Later changes of the sources do not change this process.
def installed() -> dict[str, str]:
  """Returns the versions of Python, of packages, and of our own sources."""
  found = {'Python': platform.python_version()}
  for name in _PACKAGES:
    with contextlib.suppress(metadata.PackageNotFoundError):
      found[name] = metadata.version(name)
  digest = hashlib.sha256()
  root = pathlib.Path(scalable_agent.__file__).parent
  for path in sorted(root.rglob('*.py')):
    digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
  return found | {'scalable_agent (digest)': digest.hexdigest()[:12]}


def check(host: str, versions: Mapping[str, str]) -> None:
  """Raises ConfigError if a machine has other versions than this one."""
  for name, version in installed().items():
    # Not every machine needs every package.
    other = versions.get(name, version)
    if other != version:
      raise errors.ConfigError(
          f'{host} has {name} {other}, but {socket.gethostname()}, which '
          f'learns, has {version}: install the same everywhere.')
