# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions without graphs, for tests that make few updates.

Tracing an update takes seconds, and an eager one a fraction of that. That
compiled updates are the eager ones is tested in `learner_test` and
`off_policy_test`.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses

from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
  """Runs all `tf.function`s eagerly; also a decorator.

  For one thread at a time: eager operations of several can crash TensorFlow. So
  a training must be deterministic, where actors and learner take turns.
  """
  tf.config.run_functions_eagerly(True)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(False)


@eagerly()
def train(config: config_lib.Config, hooks: Sequence[Callable] = ()) -> None:
  """Trains with few updates, where actors and learner take turns."""
  settings = {} if config.algorithm == 'impala' else {
      'updates_per_call': 1}  # No loop in a graph.
  if not config.save_checkpoint_frames:  # The run has one part.
    settings['save_checkpoint_frames'] = config.total_environment_frames
  training.train(dataclasses.replace(
      config, deterministic=True, num_actor_groups=1, **settings), hooks=hooks)
