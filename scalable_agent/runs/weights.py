# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Weights without an optimizer, in a small file: for agents of the zoo."""

import os
import zipfile
import zlib

import numpy as np
from scalable_agent import errors
from scalable_agent.networks import agents

_LARGEST = np.finfo(np.float16).max


def path(logdir: str) -> str:
  """Returns the path of the weights in `logdir`."""
  return os.path.join(logdir, 'weights.npz')


def save(logdir: str, agent: agents.Agent, num_env_frames: int) -> None:
  """Writes the frames of the training and the weights, matrices as float16."""
  np.savez_compressed(
      path(logdir), np.array(num_env_frames),
      *(_small(variable.numpy()) for variable in agent.variables))


def _small(array: np.ndarray) -> np.ndarray:
  """Returns float16 for a float32 matrix, unless a number would be infinite."""
  is_matrix = array.dtype == np.float32 and array.ndim > 1
  return (array.astype(np.float16)
          if is_matrix and np.abs(array).max() <= _LARGEST else array)


def restore(logdir: str, agent: agents.Agent) -> int:
  """Sets the weights of an agent; returns the frames of the training.

  Raises CheckpointError if the file is damaged or of another agent.
  """
  try:
    with np.load(path(logdir)) as arrays:
      for i, variable in enumerate(agent.variables):
        array = arrays[f'arr_{i + 1}']
        variable.assign(array.astype(np.float32)
                        if array.dtype == np.float16 else array)
      return int(arrays['arr_0'])
  except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile,
          zlib.error) as e:
    raise errors.CheckpointError(
        f'{path(logdir)} does not fit this agent or is damaged '
        f'({errors.reason(e)}).') from e
