# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environment variables of the program, and of processes that start later."""

from collections.abc import Set
import os

# The Keras that networks need.
KERAS = {'KERAS_BACKEND': 'tensorflow', 'TF_USE_LEGACY_KERAS': '0'}
# Values for TensorFlow, unless set.
TENSORFLOW = {
    # Errors are raised, and other logs do not help users.
    'TF_CPP_MIN_LOG_LEVEL': '3',
    'TF_FORCE_GPU_ALLOW_GROWTH': 'true',
    # TensorFlow leaves oneDNN off on CPUs without AVX-512. There, oneDNN makes
    # an update up to twice as fast.
    'TF_ENABLE_ONEDNN_OPTS': '1'}


class Variables:
  """The environment variables of this program, as an argument of a process.

  The process sets the variables when the argument arrives. Arguments after this
  one may import modules of users, which may look at the variables.
  """

  def __init__(self, server_names: Set[str], kept: str):
    """Makes the argument.

    Args:
      server_names: variables that the server may have got from this program,
        which may have removed some of the variables since. Other variables of
        the server stay.
      kept: a variable that keeps the value of the server.
    """
    self._server_names, self._kept = server_names, kept

  def __reduce__(self) -> tuple:
    changed = {name: value for name, value in os.environ.items()
               if name != self._kept}
    return _set, (changed, self._server_names - changed.keys() - {self._kept})


def set_threads() -> None:
  """Lets libraries have one thread, unless the variables have a number."""
  for name in ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'OMP_NUM_THREADS',
               'OPENCV_FOR_THREADS_NUM'):
    os.environ.setdefault(name, '1')


def set_tensorflow() -> None:
  """Sets the variables of TensorFlow and Keras, before their import."""
  for name, value in TENSORFLOW.items():
    os.environ.setdefault(name, value)
  os.environ.update(KERAS)  # May be set for another project.


def _set(changed: dict[str, str], removed: set[str]) -> None:
  for name in removed:
    os.environ.pop(name, None)
  os.environ.update(changed)
  set_threads()
