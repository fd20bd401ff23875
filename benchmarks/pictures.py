# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Registers `Pictures-v0`, a room of minigrid as pictures of 3x64x64 bytes."""

import gymnasium
from minigrid import wrappers
import numpy as np

_TILE_PIXELS = 8  # The room has 8 x 8 tiles.


def _make(**kwargs):
  env = gymnasium.make('MiniGrid-Empty-8x8-v0', **kwargs)
  env = wrappers.ImgObsWrapper(
      wrappers.RGBImgObsWrapper(env, tile_size=_TILE_PIXELS))
  height, width, channels = env.observation_space.shape
  return gymnasium.wrappers.TransformObservation(
      env, lambda picture: picture.transpose(2, 0, 1),
      gymnasium.spaces.Box(0, 255, (channels, height, width), np.uint8))


gymnasium.register('Pictures-v0', _make)
