# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Toys whose observations or rewards need to be normalised.

With this directory on PYTHONPATH, `toy_variants:CatchPicture-v0` and
`toy_variants:LargeTarget-v0` are names of levels.
"""

import gymnasium
import numpy as np
from scalable_agent.environments import toys


class CatchPicture(gymnasium.ObservationWrapper):
  """`catch` as a picture of 20 x 10 numbers that hardly change.

  Ball and paddle, 2 x 2 numbers each, add 0.15 to a background that is always
  the same, of numbers from 0.2 to 0.7. Observations are float32 `[200]`.
  """

  def __init__(self):
    super().__init__(toys.Catch())
    self._background = np.random.default_rng(0).uniform(.2, .7, [20, 10])
    self.observation_space = gymnasium.spaces.Box(0, 1, (200,), np.float32)

  def observation(self, observation):
    picture = self._background + .15 * np.kron(observation, np.ones([2, 2]))
    return picture.reshape(200).astype(np.float32)


class LargeTarget(gymnasium.RewardWrapper):
  """`target` with a thousand times the rewards."""

  def __init__(self):
    super().__init__(toys.Target())

  def reward(self, reward):
    return 1000 * float(reward)


for _class in CatchPicture, LargeTarget:
  gymnasium.register(f'{_class.__name__}-v0',
                     entry_point=f'{__name__}:{_class.__name__}')
