# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Descriptions of worker processes, and checks that all versions are equal."""

from collections.abc import Mapping
import contextlib
import functools
import hashlib
from importlib import metadata
import os
import pathlib
import platform
import socket
from typing import NamedTuple

import scalable_agent
from scalable_agent import errors
from scalable_agent.experience import structs

# Packages whose version changes how environments and networks behave.
_PACKAGES = ('ale-py', 'box2d', 'dm-control', 'dm-tree', 'envpool', 'gymnasium',
             'gymnasium-robotics', 'keras', 'minatar', 'minigrid', 'mujoco',
             'numpy', 'shimmy', 'tensorflow', 'vizdoom')


class Description(NamedTuple):
  """The description that a worker returns when its environments are open.

  Attributes:
    spec: the spec of the worker's environments.
    num_groups: number of groups of environments.
    host: name of the worker's machine.
    pid: process number of the worker.
    versions: versions that must be equal on all machines, by name.
  """
  spec: structs.EnvironmentSpec
  num_groups: int
  host: str
  pid: int
  versions: dict[str, str]


def describe(spec: structs.EnvironmentSpec, num_groups: int) -> Description:
  """Returns the description of a worker; called in the worker's process."""
  return Description(spec, num_groups, socket.gethostname(), os.getpid(),
                     installed_versions())


@functools.cache  # Later changes of the sources do not change this process.
def installed_versions() -> dict[str, str]:
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


def check_versions(host: str, versions: Mapping[str, str]) -> None:
  """Raises ConfigError if `host` has other versions than this machine."""
  for name, version in installed_versions().items():
    # Not every machine needs every package.
    other = versions.get(name, version)
    if other != version and host == socket.gethostname():
      raise errors.ConfigError(
          f'{host} has {name} {other}, but {version} at the start of the run: '
          'files were changed during the run (resume with the same command), '
          'or the commands use different installations.')
    if other != version:
      raise errors.ConfigError(
          f'{host} has {name} {other}, but {socket.gethostname()}, which '
          f'learns, has {version}: install the same everywhere.')
