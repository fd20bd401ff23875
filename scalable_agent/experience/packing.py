# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Packs unrolls, to send or keep fewer bytes. NumPy only.

Each step of an Atari game has a stack of frames, of which only the newest frame
is not in the step before. Unpacked unrolls are equal bit for bit.
"""

from collections.abc import Callable
import dataclasses
from typing import Generic, TypeVar
import zlib

import numpy as np
from scalable_agent.experience import structs
import tree

# Smaller arrays are not worth the time.
_LEAST_BYTES = 4096
# A longer axis is no stack, but rows of an image.
_LONGEST_STACK = 8
# The fastest level: the newest frames of Pong become 50 times smaller.
_ZLIB_LEVEL = 1

_T = TypeVar('_T')
_U = TypeVar('_U')


@dataclasses.dataclass(frozen=True)
class _Stacks(Generic[_T]):
  """Stacks of frames `[T + 1, B, N, ...]`, oldest first.

  Attributes:
    first: `[B, N, ...]`, the stacks of entry 0.
    newest: `[T, B, ...]`, the newest frame of each other entry.
    exceptions: int64 `[K, 2]`, entry and column of `K` stacks that do not
      continue the frames before, as at the start of a game.
    stacks: `[K, N, ...]`, the stacks of `exceptions`.
  """
  first: _T
  newest: _T
  exceptions: _T
  stacks: _T


@dataclasses.dataclass(frozen=True)
class _Compressed:
  """An array that zlib has compressed."""
  data: bytes
  shape: tuple[int, ...]
  dtype: np.dtype


def pack(unroll: structs.Unroll, compress: bool = False) -> structs.Unroll:
  """Returns an unroll for `unpack`; its arrays share memory with `unroll`.

  With `compress`, zlib compresses large arrays as well.
  """
  outputs = unroll.steps.env_outputs
  packed = unroll._replace(steps=unroll.steps._replace(
      env_outputs=outputs._replace(
          observation=tree.map_structure(_pack_stacks, outputs.observation))))
  return tree.map_structure(_compress, packed) if compress else packed


def copied(packed: structs.Unroll) -> structs.Unroll:
  """Returns a packed unroll that shares no memory with the unroll."""
  return tree.map_structure(_copy, packed)


def unpack(packed: structs.Unroll) -> structs.Unroll:
  """Returns the unroll that was packed."""
  return tree.map_structure(
      lambda leaf: _unpack_stacks(_decompress(leaf)), packed)


def num_bytes(packed: structs.Unroll) -> int:
  """Returns the size of all arrays, packed or not, without texts."""
  return sum(map(_num_bytes, tree.flatten(packed)))


def _pack_stacks(array: np.ndarray) -> np.ndarray | _Stacks[np.ndarray]:
  """Returns `_Stacks`, or the array itself if that is smaller."""
  # Equal floats, such as 0 and -0, can have different bits.
  if (array.dtype != np.uint8 or array.nbytes < _LEAST_BYTES or array.ndim < 4
      or not 1 < array.shape[2] <= _LONGEST_STACK):
    return array
  size, length = array.shape[2], len(array)
  newest = array[1:, :, -1]
  frames = _frames(array[0], newest)
  is_other = np.zeros(array.shape[:2], bool)
  for n in range(size):
    differs = array[:, :, n] != frames[n:n + length]
    is_other |= differs.reshape(*is_other.shape, -1).any(axis=-1)
  exceptions = np.argwhere(is_other)
  stacks = array[tuple(exceptions.T)]
  if (size - 1) * len(exceptions) >= is_other.size:
    return array
  return _Stacks(array[0], newest, exceptions, stacks)


def _unpack_stacks(leaf: object) -> object:
  if not isinstance(leaf, _Stacks):
    return leaf
  frames = _frames(leaf.first, leaf.newest)
  size, length = leaf.first.shape[1], 1 + len(leaf.newest)
  array = np.stack([frames[n:n + length] for n in range(size)], axis=2)
  array[tuple(leaf.exceptions.T)] = leaf.stacks
  return array


def _frames(first: np.ndarray, newest: np.ndarray) -> np.ndarray:
  """Returns all frames `[N + T, B, ...]` in the order of time."""
  return np.concatenate([np.moveaxis(first, 1, 0), newest])


def _copy(leaf: object) -> object:
  if isinstance(leaf, _Stacks):
    return _map_fields(np.array, leaf)
  return np.array(leaf) if isinstance(leaf, np.ndarray) else leaf


def _compress(leaf: object) -> object:
  if isinstance(leaf, _Stacks):
    return _map_fields(_compress, leaf)
  if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject or (
      leaf.nbytes < _LEAST_BYTES):
    return leaf
  data = zlib.compress(np.ascontiguousarray(leaf).data, _ZLIB_LEVEL)
  return _Compressed(data, leaf.shape, leaf.dtype)


def _decompress(leaf: object) -> object:
  if isinstance(leaf, _Stacks):
    return _map_fields(_decompress, leaf)
  if not isinstance(leaf, _Compressed):
    return leaf
  # A copy: `bytes` cannot be written.
  return np.frombuffer(bytearray(zlib.decompress(leaf.data)),
                       leaf.dtype).reshape(leaf.shape)


def _map_fields(fn: Callable[[_T], _U], stacks: _Stacks[_T]) -> _Stacks[_U]:
  return _Stacks(*[fn(getattr(stacks, field.name))
                   for field in dataclasses.fields(stacks)])


def _num_bytes(leaf: object) -> int:
  if isinstance(leaf, _Stacks):
    return sum(_num_bytes(getattr(leaf, field.name))
               for field in dataclasses.fields(leaf))
  if isinstance(leaf, _Compressed):
    return len(leaf.data)
  return getattr(leaf, 'nbytes', 0)
