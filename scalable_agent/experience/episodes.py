# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Finished episodes, found in unrolls."""

import collections
from collections.abc import Iterable, Mapping
import math

import numpy as np
from scalable_agent.experience import structs

# The columns of `episodes.csv`.
FIELDS = ('num_env_frames', 'train_time_s', 'level_name', 'episode_return',
          'num_agent_steps', 'episode_frames')


def finished_episodes(unroll: structs.Unroll) -> list[structs.Episode]:
  """Returns the episodes that end in an unroll (or batch) of arrays.

  Entry 0 is left out: it is the last entry of the unroll before.
  """
  info = unroll.steps.env_outputs.info
  return [
      structs.Episode(unroll.start.level_name[column],
                      float(info.episode_return[index, column]),
                      int(info.episode_step[index, column]),
                      metrics(info, index, column))
      for index, column in np.argwhere(info.episode_end)
      if index > 0]


def metrics(info: structs.StepOutputInfo, *index: int) -> dict[str, float]:
  """Returns the metrics of the episode that ended at an index, by name."""
  return {name: float(array[index])
          for name, array in info.metrics.items()}


def mean_metrics(games: Iterable[Mapping[str, float]]) -> dict[str, float]:
  """Returns the mean of each metric over the games that have the metric."""
  values: dict[str, list[float]] = collections.defaultdict(list)
  for game in games:
    for name, value in game.items():
      values[name] += [] if math.isnan(value) else [value]
  return {name: sum(of_name) / len(of_name)
          for name, of_name in values.items() if of_name}


def in_words(means: Mapping[str, float]) -> str:
  """Returns means to append to a line, such as `, is_success 0.95`."""
  return ''.join(f', {name} {mean:.4g}' for name, mean in means.items())
