# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Classes that tests of `py_process` run in a process; fast to import."""

import pathlib
import sys
import time

import numpy as np


class Echo:
  """Says how its arguments and results arrive."""

  def kind(self, x):
    return f'{type(x).__name__} {getattr(x, "dtype", "")} {x}'

  def truth(self):
    return 1

  def nothing(self):
    return 5

  @staticmethod
  def _tensor_specs(method_name, kwargs, constructor_kwargs):
    import tensorflow as tf  # The process does not ask for specifications.

    del kwargs, constructor_kwargs
    return {'kind': tf.TensorSpec([], tf.string), 'nothing': (),
            'truth': tf.TensorSpec([], tf.bool)}.get(method_name)


class Example:
  """A class of the reference's tests."""

  def __init__(self, a, path=''):
    if a == 'wrong':
      raise ValueError('foo')
    self._a = a
    self._path = path

  def inc(self):
    self._a += 1

  def compute(self, b):
    return np.array([self._a + b], dtype=np.int32)

  def wait(self):
    time.sleep(60)

  def something(self):
    raise ValueError('foo')

  def has_tensorflow(self):
    return np.array('tensorflow' in sys.modules)

  def close(self):
    if self._path:
      pathlib.Path(self._path).write_text('was_closed')

  @staticmethod
  def _tensor_specs(method_name, kwargs, constructor_kwargs):
    import tensorflow as tf  # The process does not ask for specifications.

    if method_name == 'has_tensorflow':
      return tf.TensorSpec([], tf.bool)
    if method_name == 'compute':
      return {'x': tf.TensorSpec([1 + 0 * kwargs['b']], tf.int32)}
    if method_name == 'wait':
      return tf.TensorSpec([], tf.int32)
    return () if method_name in ('inc', 'something') else None
