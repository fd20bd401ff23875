# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Arrays in shared memory, by which a parent and its workers exchange steps."""

from collections.abc import Iterable, Mapping, Sequence, Sized
import ctypes
import math
from multiprocessing import sharedctypes
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scalable_agent.experience import structs
from scalable_agent.processes import memory

# The values of `Exchange.status`.
BUSY, DONE, FAILED = range(3)
MAX_REPORT_BYTES = 16_384


class Exchange(NamedTuple):
  """The arrays in shared memory, valid until the next command.

  Attributes:
    action: `[E, ...]`, in the environments' own action space.
    reward: float32 `[E]`.
    terminated: bool `[E]`.
    truncated: bool `[E]`.
    observation: dictionary of `[E, ...]`; after the end of an episode, the
      first observation of the next episode.
    last_observation: dictionary of `[E, ...]`, of episodes that ended.
    metrics: float32 `[E]` by name, of episodes that ended.
    status: uint8 `[E]`, `BUSY`, `DONE` or `FAILED`.
    report: uint8 `[E, MAX_REPORT_BYTES]`, UTF-8, errors of environments.
  """
  action: np.ndarray
  reward: np.ndarray
  terminated: np.ndarray
  truncated: np.ndarray
  observation: dict[str, np.ndarray]
  last_observation: dict[str, np.ndarray]
  metrics: dict[str, np.ndarray]
  status: np.ndarray
  report: np.ndarray


class SharedArray(NamedTuple):
  """An array that can be sent to another process."""
  memory: ctypes.Array[ctypes.c_byte]
  shape: Sequence[int]
  dtype: np.dtype

  def open(self) -> np.ndarray:
    memory = memoryview(self.memory)
    return np.frombuffer(memory, self.dtype).reshape(self.shape)


# The fields of an `Exchange`.
Shared: TypeAlias = dict[str, SharedArray | dict[str, SharedArray]]


def allocate(num_envs: int, observation_spec: dict[str, structs.ArraySpec],
             action_spec: structs.ArraySpec,
             metric_names: Iterable[str] = ()) -> Shared:
  """Allocates the arrays of an `Exchange` in shared memory.

  Raises ConfigError if observations do not fit into the memory.
  """
  size = sum(math.prod(spec.shape) * spec.dtype.itemsize
             for spec in observation_spec.values())
  memory.check(
      f'The observation buffer of {num_envs} environments (--num_actors), '
      f'{size / 1e6:,.1f} MB each,', 2 * num_envs * size)

  def array(dtype: npt.DTypeLike, *shape: int) -> SharedArray:
    shape = (num_envs, *shape)
    num_bytes = np.dtype(dtype).itemsize * math.prod(shape)
    memory = sharedctypes.RawArray(ctypes.c_byte, num_bytes)
    return SharedArray(memory, shape, np.dtype(dtype))

  def of_spec(spec: structs.ArraySpec) -> SharedArray:
    return array(spec.dtype, *spec.shape)

  def observation() -> dict[str, SharedArray]:
    return {name: of_spec(spec) for name, spec in observation_spec.items()}

  return dict(
      action=of_spec(action_spec), reward=array(np.float32),
      terminated=array(np.bool_), truncated=array(np.bool_),
      observation=observation(), last_observation=observation(),
      metrics={name: array(np.float32) for name in metric_names},
      status=array(np.uint8), report=array(np.uint8, MAX_REPORT_BYTES))


def open_exchange(shared: Shared) -> Exchange:
  """Returns the arrays in this process."""
  arrays: dict[str, structs.Nest] = {
      field: {name: array.open() for name, array in entry.items()}
             if isinstance(entry, dict) else entry.open()
      for field, entry in shared.items()}
  return Exchange(**arrays)


def write(arrays: dict[str, np.ndarray], index: int,
          observation: Mapping[str, object]) -> None:
  """Writes the observation of environment `index` into arrays `[E, ...]`.

  Raises ValueError if the shape or the kind of an array is not that of the
  space, or a number is not within the dtype of the space.
  """
  for name, array in arrays.items():
    value = np.asarray(observation[name])
    # NumPy would broadcast a wrong shape, and round to a wrong dtype.
    if value.shape != array.shape[1:] or (
        value.dtype.kind == 'f' and array.dtype.kind != 'f'):
      raise ValueError(
          f'{called(name, arrays)} is {value.dtype} {list(value.shape)}, but '
          f'its space is {array.dtype} {list(array.shape[1:])}.')
    if value.dtype != array.dtype:
      value = fit(value, array.dtype, called(name, arrays))
    array[index] = value


def called(name: str, parts: Sized) -> str:
  """Returns the name, for errors, of one of the parts of an observation."""
  return (f'The part {name} of an observation' if len(parts) > 1 else
          'An observation')


def numbers(value: object, who: str) -> np.ndarray:
  """Returns the numbers of an observation as an array.

  Raises ValueError for other values, which NumPy would cut or cast. `who` is
  the name for errors.
  """
  array = np.asarray(value)
  if array.dtype == object:
    array = np.array(array.tolist())
  if array.dtype.kind not in 'biuf':
    raise ValueError(f'{who} is {array.dtype} {list(array.shape)}, but must be '
                     'numbers.')
  return array


def fit(value: np.ndarray, dtype: np.dtype,
        who: str = 'An observation') -> np.ndarray:
  """Returns numbers of an observation in the dtype of their space.

  Raises ValueError if the dtype cannot hold a number, which NumPy would wrap or
  truncate. `who` is the name for errors.
  """
  kinds = value.dtype.kind + dtype.kind
  if value.dtype == dtype or kinds[0] not in 'iuf' or kinds[1] not in 'iuf':
    return value
  limits = np.finfo(dtype) if kinds[1] == 'f' else np.iinfo(dtype)
  outside = np.abs(value) > limits.max if kinds == 'ff' else (
      (value < limits.min) | (value > limits.max))
  if kinds == 'ff':  # Integers refuse inf and NaN.
    outside &= np.isfinite(value)
  elif kinds[0] == 'f':
    outside |= value != np.trunc(value)  # Also NaN.
  if outside.any():
    raise ValueError(
        f'{who} has the number {value[outside].flat[0]}, but its space is '
        f'{dtype} {list(value.shape)}, from {limits.min} to {limits.max}.')
  return value.astype(dtype)
