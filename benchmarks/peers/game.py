# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Pong as an environment of gymnasium, for peers that step games one by one."""

import gymnasium
import numpy as np
import pong


class Game(gymnasium.Env):
  """A game of `pong.Pong`, which counts its steps itself."""

  observation_space = gymnasium.spaces.Box(
      0, 255, pong.OBSERVATION_SHAPE, np.uint8)
  action_space = gymnasium.spaces.Discrete(pong.NUM_ACTIONS)

  def __init__(self, index=0):
    self._game = pong.Pong(index)

  def reset(self, *, seed=None, options=None):
    return self._game.reset(), {}

  def step(self, action):
    observation, reward, over = self._game.step(action)
    return observation, reward, over, False, {}
