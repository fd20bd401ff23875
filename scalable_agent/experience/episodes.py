# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Finished episodes, found in unrolls."""

from typing import NamedTuple

import numpy as np
from scalable_agent.experience import structs


class Episode(NamedTuple):
  """A finished episode (a whole game).

  Attributes:
    level_name: the level.
    episode_return: sum of the unclipped rewards.
    num_agent_steps: length in agent steps, not frames.
  """
  level_name: str
  episode_return: float
  num_agent_steps: int


def finished_episodes(unroll: structs.Unroll) -> list[Episode]:
  """Returns the episodes that end in an unroll (or batch) of arrays.

  Entry 0, the last entry of the unroll before, is left out.

  Args:
    unroll: `Unroll` of arrays `[T + 1, B, ...]`.
  """
  info = unroll.steps.env_outputs.info
  return [
      Episode(unroll.start.level_name[column],
              float(info.episode_return[index, column]),
              int(info.episode_step[index, column]))
      for index, column in np.argwhere(info.episode_end)
      if index > 0]
