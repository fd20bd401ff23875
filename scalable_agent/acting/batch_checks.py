# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks of the inputs and outputs of `dynamic_batching.Batcher`."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scalable_agent.experience import structs
import tensorflow as tf

DType: TypeAlias = np.dtype | tf.DType


def to_array(value: structs.Array) -> np.ndarray:
  """Returns an array or a tensor as an array."""
  # NumPy's dtypes of strings contain the length; TensorFlow has one dtype.
  if isinstance(value, np.ndarray) and value.dtype.kind not in 'SU':
    return value
  return np.asarray(tf.convert_to_tensor(value).numpy())


def check_inputs(requests: Sequence[list[np.ndarray]], num_rows: Sequence[int],
                 dtypes: Sequence[DType] | None) -> None:
  """Raises InvalidArgumentError if inputs do not fit each other.

  Args:
    requests: the inputs of each caller.
    num_rows: the number of rows of each caller.
    dtypes: the expected dtypes; None for the dtypes of the first caller.
  """
  first = requests[0]
  if dtypes is None:
    dtypes = [array.dtype for array in first]
  for inputs, size in zip(requests, num_rows, strict=True):
    for array in inputs:
      if not array.shape:
        raise invalid('Input shape must have a batch dimension. '
                      'Shape observed: []')
      if not array.shape[0]:
        raise invalid('Batcher requires batch size 1 or more but was 0')
      if array.shape[0] != size:
        raise invalid(f'Batcher requires batch size {size} but was '
                      f'{array.shape[0]}')
    _check_dtypes(inputs, dtypes, 'inputs')
    for one, other in zip(first, inputs, strict=True):
      if one.shape[1:] != other.shape[1:]:
        raise invalid('Shapes of inputs much be equal. Shapes observed: '
                      f'{_brackets(one.shape)}, {_brackets(other.shape)}')


def check_outputs(outputs: list[np.ndarray], num_rows: int,
                  dtypes: Sequence[Sequence[DType] | None]) -> None:
  """Raises InvalidArgumentError if outputs do not fit the inputs.

  `num_rows` is the number of rows of the batch. `dtypes` are the dtypes that
  each caller expects; None for any.
  """
  for output in outputs:
    if not output.shape:
      raise invalid('Output shape must have a batch dimension. Shape '
                    'observed: []')
    if output.shape[0] != num_rows:
      raise invalid('Output shape must have the same batch dimension as the '
                    f'input batch size. Expected: {num_rows} '
                    f'Observed: {output.shape[0]}')
  for expected in dtypes:
    if expected is not None:
      _check_dtypes(outputs, expected, 'outputs')


def _check_dtypes(arrays: list[np.ndarray], dtypes: Sequence[DType],
                  noun: str) -> None:
  expected = [dtype if isinstance(dtype, np.dtype) else
              np.dtype(tf.as_dtype(dtype).as_numpy_dtype) for dtype in dtypes]
  observed = [array.dtype for array in arrays]
  if observed != expected:
    raise invalid(f'Dtypes of {noun} must be equal. Dtypes observed: '
                  f'{_brackets(expected)}, {_brackets(observed)}')


def _brackets(values: Sequence[object]) -> str:
  return f'[{",".join(map(str, values))}]'


def invalid(message: str) -> tf.errors.InvalidArgumentError:
  """Returns an error about arguments."""
  return tf.errors.InvalidArgumentError(None, None, message)


def cancelled(message: str,
              cause: BaseException | None) -> tf.errors.CancelledError:
  """Returns the error of callers of a closed batcher."""
  error = tf.errors.CancelledError(None, None, message)
  error.__cause__ = cause
  return error
