# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks that Keras is the Keras of TensorFlow, before networks are defined.

The program sets the variables of Keras for itself. A program that imports this
package may have other variables, or a file keras.json, for another project.
"""

import os

from scalable_agent import errors
from scalable_agent.processes import variables
import tensorflow as tf


def _check() -> None:
  try:
    # The older Keras has no `config`. Without its backend, Keras 3 raises
    # errors of several kinds.
    is_right = tf.keras.config.backend() == variables.KERAS['KERAS_BACKEND']
  except Exception:
    is_right = False
  if not is_right:
    given = ' '.join(
        f'{name}={os.environ[name]}' for name, value in variables.KERAS.items()
        if os.environ.get(name, value) != value) or '~/.keras/keras.json'
    wanted = ' '.join(map('='.join, variables.KERAS.items()))
    raise errors.ConfigError(
        f'Networks need Keras 3 with TensorFlow, but {given} chooses another '
        f'Keras: set {wanted} before TensorFlow is imported.')


_check()
