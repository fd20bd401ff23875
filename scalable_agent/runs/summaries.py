# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Summaries: scalars for TensorBoard and the hook."""

from collections.abc import Mapping

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import timing
from scalable_agent.runs import clipping
from scalable_agent.runs import context as context_lib
from scalable_agent.runs import metrics
import tensorflow as tf

# Tags of DeepMind's program, which keep their names.
_REFERENCE = ('learning_rate', 'total_loss')
# Groups that are a part of the name.
_WHOLE = ('metrics', 'time')
# The groups of all other scalars; without an entry here, `train`.
_GROUPS = {
    'mean_return': 'episode', 'policy_lag': 'lag', 'longest_policy_lag': 'lag',
    'frames_per_second': 'time', 'updates_per_step': 'time', 'actors': 'time'}


def tag(name: str) -> str:
  """Returns the tag of a scalar in TensorBoard, which groups by the start."""
  start = name.partition('/')[0]
  if name in _REFERENCE or start in _WHOLE:
    return name
  return f'{_GROUPS.get(start, "train")}/{name}'


class Summaries:
  """Writes the scalars of a part of a run."""

  def __init__(self, hook: context_lib.SummaryHook | None,
               writer: metrics.MetricsWriter, num_env_frames: int):
    """Measures the speed from `num_env_frames` on."""
    self._writer = writer
    self._speed = timing.Speed(num_env_frames)
    self._hook = hook

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
    if actions.dtype.kind == 'f':
      values['actions_at_bounds'] = clipping.at_bounds(actions)
    self._writer.write_scalars(
        {tag(name): value for name, value in values.items()
         # NaN before the first episode.
         if name != 'mean_return' or not np.isnan(value)},
        actions, num_env_frames)
    if self._hook:
      self._hook(num_env_frames, values)
