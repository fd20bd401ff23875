# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Weights without an optimizer, in a small file: for agents of the zoo."""

import os
import re
import zipfile
import zlib

import numpy as np
from scalable_agent import errors
from scalable_agent.networks import agents
import tensorflow as tf

_FRAMES = 'num_env_frames'
_LARGEST = np.finfo(np.float16).max


def path(logdir: str) -> str:
  """Returns the path of the weights in `logdir`."""
  return os.path.join(logdir, 'weights.npz')


def save(logdir: str, agent: agents.Agent, num_env_frames: int) -> None:
  """Writes the frames of the training and the weights, matrices as float16."""
  arrays = {name: _small(variable.numpy())
            for name, variable in _by_name(agent).items()}
  arrays[_FRAMES] = np.array(num_env_frames)
  # NumPy's types take the names for the argument `allow_pickle`.
  np.savez_compressed(path(logdir), **arrays)  # type: ignore[arg-type]


def _by_name(agent: agents.Agent) -> dict[str, tf.keras.Variable]:
  """Returns the variables of an agent by names such as `torso/dense/kernel 1`.

  Keras numbers all layers of a process: `torso_7/dense_9/kernel`. The names
  count the layers of the agent only, in the order in which they were made.
  """
  counts: dict[str, int] = {}
  named = {}
  for variable in sorted(agent.variables, key=_numbers):
    name = re.sub(r'_\d+(?=/)', '', variable.path)
    counts[name] = counts.get(name, -1) + 1
    named[f'{name} {counts[name]}'] = variable
  return named


def _numbers(variable: tf.keras.Variable) -> list[int]:
  return [int(number or 0)
          for number in re.findall(r'(?:_(\d+))?/', variable.path)]


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
      variables = _by_name(agent)
      if set(arrays) != {_FRAMES, *variables}:
        raise ValueError('The names of the weights are not those of the agent')
      for name, variable in variables.items():
        array = arrays[name]
        variable.assign(array.astype(np.float32)
                        if array.dtype == np.float16 else array)
      return int(arrays[_FRAMES])
  except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile,
          zlib.error) as e:
    raise errors.CheckpointError(
        f'{path(logdir)} does not fit this agent or is damaged '
        f'({errors.reason(e)}).') from e
