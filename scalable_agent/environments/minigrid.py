# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""MiniGrid and BabyAI: what the agent sees as pixels, and its mission in words.

Level names are the ids of the package `minigrid`, such as `BabyAI-GoToObj-v0`
and `MiniGrid-Empty-5x5-v0`. https://minigrid.farama.org
"""

import contextlib
import dataclasses
import functools
import io
import string

import gymnasium
import numpy as np

from scalable_agent import config as config_lib
from scalable_agent import errors

# Two tiles of the view are three steps of the shallow network's first
# convolution, and the view is what the deep network's last section sees.
_TILE_SIZE = 8
# Of the missions' grammar the longest, four parts of BossLevel, has 341.
_MAX_MISSION_LENGTH = 512
_UNSEEN = 0
# The agent looks up, and sees itself in the middle of the lowest row.
_UP = 3


def is_level(level_name: str) -> bool:
  """Whether the name is meant for a level of MiniGrid or BabyAI."""
  return level_name.lower().startswith(('minigrid', 'babyai'))


def register(level_name: str) -> None:
  """Registers all levels with gymnasium.

  Args:
    level_name: the level that is wanted, for the error.

  Raises:
    errors.MissingDependencyError: minigrid is not installed.
  """
  try:
    import minigrid  # pylint: disable=g-import-not-at-top,unused-import
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs minigrid: pip install "scalable_agent[minigrid]" '
        f'({e}).') from e


def adapted(
    spec: gymnasium.envs.registration.EnvSpec,
    settings: config_lib.EnvironmentSettings,
) -> gymnasium.envs.registration.EnvSpec:
  """The level with pixels and mission as observations.

  Args:
    spec: the package's own description of the level.
    settings: `config_lib.EnvironmentSettings`.

  Raises:
    errors.EnvironmentSpecError: actions would be repeated.
  """
  if settings.num_action_repeats != 1:
    raise errors.EnvironmentSpecError(
        f'{spec.id} takes turns of 90 degrees, which must not be repeated: set '
        'num_action_repeats=1.')
  return dataclasses.replace(
      spec, disable_env_checker=True,
      additional_wrappers=(
          *spec.additional_wrappers,
          gymnasium.envs.registration.WrapperSpec(
              'PixelsAndMission', f'{__name__}:PixelsAndMission', {})))


class PixelsAndMission(gymnasium.Wrapper):
  """Observations are `frame`, uint8 `[56, 56, 3]`, and `instruction`.

  The same pixels as `minigrid.wrappers.RGBImgPartialObsWrapper`, which computes
  the agent's view a second time and takes three times as long.
  """

  def __init__(self, env: gymnasium.Env):
    super().__init__(env)
    columns, rows, _ = env.observation_space['image'].shape
    self._agent_cell = columns // 2, rows - 1
    self.observation_space = gymnasium.spaces.Dict({
        'frame': gymnasium.spaces.Box(
            0, 255, (rows * _TILE_SIZE, columns * _TILE_SIZE, 3), np.uint8),
        'instruction': gymnasium.spaces.Text(
            _MAX_MISSION_LENGTH, min_length=0, charset=string.printable)})

  def reset(self, *, seed=None, options=None):
    # BabyAI prints when it has to draw a world again.
    with contextlib.redirect_stdout(io.StringIO()):
      observation, info = self.env.reset(seed=seed, options=options)
    return self._adapt(observation), info

  def step(self, action):
    observation, reward, terminated, truncated, info = self.env.step(action)
    return self._adapt(observation), reward, terminated, truncated, info

  def _adapt(self, observation):
    frame = np.empty(self.observation_space['frame'].shape, np.uint8)
    size = _TILE_SIZE
    for i, column in enumerate(observation['image'].tolist()):
      for j, cell in enumerate(column):
        frame[j * size:(j + 1) * size, i * size:(i + 1) * size] = _tile(
            *cell, (i, j) == self._agent_cell)
    return {'frame': frame, 'instruction': observation['mission']}


@functools.cache
def _tile(object_type: int, color: int, state: int, has_agent: bool):
  """MiniGrid's picture of a cell of its encoded view, uint8 `[8, 8, 3]`."""
  # pylint: disable=g-import-not-at-top
  from minigrid.core import grid
  from minigrid.core import world_object
  return grid.Grid.render_tile(
      world_object.WorldObj.decode(object_type, color, state),
      agent_dir=_UP if has_agent else None, highlight=object_type != _UNSEEN,
      tile_size=_TILE_SIZE)
