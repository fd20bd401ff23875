# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Finished episodes, found in unrolls."""

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
                      int(info.episode_step[index, column]))
      for index, column in np.argwhere(info.episode_end)
      if index > 0]
