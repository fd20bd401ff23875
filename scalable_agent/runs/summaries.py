# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Summaries: scalars for TensorBoard, and the function of --hook."""

from collections.abc import Mapping

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import timing
from scalable_agent.processes import user_code
from scalable_agent.runs import metrics
from scalable_agent.settings import config as config_lib
import tensorflow as tf


class Summaries:
  """Writes the scalars of a part of a run."""

  def __init__(self, config: config_lib.Config, writer: metrics.MetricsWriter,
               num_env_frames: int):
    """Measures the speed from `num_env_frames` on."""
    self._writer = writer
    self._speed = timing.Speed(num_env_frames)
    self._hook_name = f'{config.hook} of --hook'
    self._hook = (user_code.load(config.hook, 'hook') if config.hook
                  else lambda num_env_frames, values: None)

  def write(self, scalars: Mapping[str, tf.Tensor],
            measured: Mapping[str, float], actions: np.ndarray,
            num_env_frames: int) -> None:
    """Writes scalars and a histogram of actions, and calls the hook.

    Args:
      scalars: from `Learner.step`, by name.
      measured: further scalars, by name.
      actions: `[N, ...]`.
      num_env_frames: frames so far.

    Raises:
      DivergedError: a loss is not finite.
    """
    values = {name: float(value) for name, value in scalars.items()}
    for name, value in values.items():
      if name.endswith('loss') and not np.isfinite(value):
        raise errors.DivergedError(
            f'The {name} is {value} at {num_env_frames:,} frames.')
    values |= measured
    values['frames_per_second'] = self._speed(num_env_frames)
    self._writer.write_scalars(values, actions, num_env_frames)
    with user_code.errors_explained(self._hook_name):
      self._hook(num_env_frames, values)
