# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""MiniGrid and BabyAI: the agent's view as pixels, its mission in words.

Level names are the ids of the package `minigrid`, such as `BabyAI-GoToObj-v0`
and `MiniGrid-Empty-5x5-v0`. https://minigrid.farama.org
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import io
import string
from typing import TypedDict

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import registry
from scalable_agent.settings.environment_settings import EnvironmentSettings

# The deep network halves 56 pixels three times, to 7, one place per tile. The
# shallow network's first kernel has the size of a tile.
_TILE_SIZE = 8
# The longest mission of the grammar, four parts of BossLevel, has 341 letters.
_MAX_MISSION_LENGTH = 512
_UNSEEN = 0
# In its view, the agent is in the middle of the lowest row and looks up.
_UP = 3


_PACKAGE = registry.Package(
    'minigrid', 'minigrid', 'minigrid', ('minigrid', 'babyai'))
# Users' own levels have the view of the agent, too, see `_has_view`.
is_level = _PACKAGE.has_prefix
known_levels = _PACKAGE.known_levels


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  spec = _PACKAGE.look_up(level_name, settings)
  if _PACKAGE.is_level(level_name):
    spec = dataclasses.replace(spec, disable_env_checker=True)
  return functools.partial(
      _make, spec, settings.kwargs, settings.num_action_repeats)


def _make(spec: registry.Spec, kwargs: Mapping[str, object],
          num_action_repeats: int) -> gymnasium.Env:
  env = registry.make(spec, kwargs)
  if not _has_view(env):
    return base.ActionRepeat(env, num_action_repeats)
  if num_action_repeats != 1:
    raise errors.EnvironmentSpecError(
        f'{spec.id} takes turns of 90 degrees, which must not be repeated: set '
        'num_action_repeats=1.')
  return PixelsAndMission(env)


def _has_view(env: gymnasium.Env) -> bool:
  """Whether the image of observations is the agent's own view."""
  try:
    from minigrid import minigrid_env
    from minigrid import wrappers
  except ImportError:
    return False
  wrapper = env
  while isinstance(wrapper, gymnasium.Wrapper):
    # In a world of 7x7, the whole world is as large as a view.
    if isinstance(wrapper, wrappers.FullyObsWrapper) or (
        wrapper.observation_space != wrapper.env.observation_space
        and not isinstance(wrapper, wrappers.ViewSizeWrapper)):
      return False
    wrapper = wrapper.env
  return isinstance(wrapper, minigrid_env.MiniGridEnv)


class _Seen(TypedDict):
  """Observation of MiniGrid; `image` has the encoded cells, `[W, H, 3]`."""
  image: np.ndarray
  mission: str


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

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    # BabyAI prints when it has to draw a world again.
    with contextlib.redirect_stdout(io.StringIO()):
      observation, info = self.env.reset(seed=seed, options=options)
    if self.unwrapped.carrying:  # BabyAI gives an object after the view.
      observation = _look(self.env)
    return self._adapt(observation), info

  def step(self, action: int) -> base.Step:
    observation, reward, terminated, truncated, info = self.env.step(action)
    return self._adapt(observation), reward, terminated, truncated, info

  def _adapt(self, observation: _Seen) -> base.FrameAndInstruction:
    frame = np.empty(self.observation_space['frame'].shape, np.uint8)
    size = _TILE_SIZE
    for i, column in enumerate(observation['image'].tolist()):
      for j, cell in enumerate(column):
        frame[j * size:(j + 1) * size, i * size:(i + 1) * size] = _tile(
            *cell, (i, j) == self._agent_cell)
    return {'frame': frame, 'instruction': observation['mission']}


def _look(env: gymnasium.Env) -> _Seen:
  """Returns the observation of this moment."""
  if not isinstance(env, gymnasium.Wrapper):
    return env.gen_obs()
  seen = _look(env.env)
  return env.observation(seen) if isinstance(
      env, gymnasium.ObservationWrapper) else seen


@functools.cache
def _tile(object_type: int, color: int, state: int,
          has_agent: bool) -> np.ndarray:
  """Returns MiniGrid's picture of an encoded cell, uint8 `[8, 8, 3]`."""
  from minigrid.core import grid
  from minigrid.core import world_object
  return grid.Grid.render_tile(
      world_object.WorldObj.decode(object_type, color, state),
      agent_dir=_UP if has_agent else None, highlight=object_type != _UNSEEN,
      tile_size=_TILE_SIZE)
