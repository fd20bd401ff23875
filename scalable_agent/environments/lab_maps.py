# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compiled maps of DeepMind Lab: a cache, and turns to compile."""

import contextlib
import fcntl
import os
import re
import shutil
import time
from typing import IO
import uuid

from scalable_agent.processes import processes

# A message for the start of environments, which may take minutes.
COMPILING = (
    'Environments of DeepMind Lab start. Many levels first compile maps, which '
    'takes 2 to 32 s of a core per map, on all cores at once; '
    '--level_cache_dir keeps the maps.')
# The name of half a map, and the age at which no process writes the map.
_PART = re.compile(r'.*\.[0-9a-f]{32}')
_OLD_S = 86_400.
_POLL_S = 0.05


class LocalLevelCache:
  """A directory of compiled maps, which many processes may share.

  Some levels make a new map for each episode. Compiling a map takes seconds.
  Whole maps are never removed.
  """

  def __init__(self, cache_dir: str):
    """Makes the directory if there is none."""
    os.makedirs(cache_dir, exist_ok=True)
    self._cache_dir = cache_dir

  def remove_halves(self) -> None:
    """Removes half maps of killed runs."""
    for name in os.listdir(self._cache_dir):
      path = os.path.join(self._cache_dir, name)
      with contextlib.suppress(OSError):  # Or another process removes the file.
        if _PART.fullmatch(name) and (
            time.time() - os.path.getmtime(path) > _OLD_S):
          os.remove(path)

  def fetch(self, key: str, pk3_path: str) -> bool:
    """Copies the map of `key` to `pk3_path`; returns whether there is one."""
    try:
      shutil.copyfile(os.path.join(self._cache_dir, key), pk3_path)
    except OSError:  # The map is compiled then.
      return False
    return True

  def write(self, key: str, pk3_path: str) -> None:
    """Copies the map at `pk3_path` to the cache, unless the key is known."""
    path = os.path.join(self._cache_dir, key)
    if os.path.exists(path):
      return
    # Renamed when complete, so that no process fetches half a map.
    part = f'{path}.{uuid.uuid4().hex}'
    try:
      shutil.copyfile(pk3_path, part)
      os.replace(part, path)
    except OSError:  # A full disk, say: the map is compiled again next time.
      with contextlib.suppress(OSError):
        os.remove(part)


class TurnsToCompile:
  """The level cache of a Lab, which compiles only in a turn of its process.

  Lab calls `fetch`, and after a compilation `write`. A process takes a turn by
  locking one of `max_compilers` files, which the processes of the program
  share. The lock ends with the process.
  """

  def __init__(self, cache: LocalLevelCache | None, max_compilers: int):
    """Keeps maps in `cache`, if any; 0 compilers mean no limit."""
    self._cache = cache
    directory = processes.directory()
    # All processes of the program share the parent of this directory.
    self._turns = [
        os.path.join(os.path.dirname(directory), f'turn-{i}.lock')
        for i in range(max_compilers)] if directory else []
    self._turn: IO[bytes] | None = None

  def fetch(self, key: str, pk3_path: str) -> bool:
    """Copies a map from the cache; without one, waits for a turn to compile."""
    if self._cached(key, pk3_path):
      return True
    if self._turns:
      self._wait_for_turn()
      # Another process may have compiled the map meanwhile.
      if self._cached(key, pk3_path):
        self.free()
        return True
    return False

  def write(self, key: str, pk3_path: str) -> None:
    if self._cache:
      self._cache.write(key, pk3_path)
    self.free()  # Now, a process that waits finds the map.

  def free(self) -> None:
    """Ends the turn, if any."""
    if self._turn is not None:
      self._turn.close()
      self._turn = None

  def _wait_for_turn(self) -> None:
    while self._turn is None:
      for path in self._turns:
        file = open(path, 'ab')
        try:
          fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
          file.close()
          continue
        except OSError:  # The file system has no locks: nobody waits.
          pass
        self._turn = file
        return
      time.sleep(_POLL_S)

  def _cached(self, key: str, pk3_path: str) -> bool:
    return self._cache is not None and self._cache.fetch(key, pk3_path)
