# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Toys whose observation shows the best action, for kinds of action spaces."""

import gymnasium
import numpy as np
from scalable_agent.environments import base


class _Imitation(gymnasium.Env):
  """The observation shows the best action; an episode has ten steps."""

  _NUM_STEPS = 10

  def _draw(self) -> np.ndarray:
    """Draws the next action to be imitated."""
    raise NotImplementedError()

  def _reward(self, action: np.ndarray) -> float:
    raise NotImplementedError()

  def _observation(self) -> np.ndarray:
    raise NotImplementedError()

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    super().reset(seed=seed)
    self._step = 0
    self._shown = self._draw()
    return self._observation(), {}

  def step(self, action: np.ndarray) -> base.Step:
    reward = self._reward(action)
    self._step += 1
    self._shown = self._draw()
    return (self._observation(), reward, self._step == self._NUM_STEPS, False,
            {})


class Pattern(_Imitation):
  """Actions of three parts, with 2, 3 and 4 values, must equal a pattern.

  The pattern is random in each step. The reward is the share of parts that have
  the value of the pattern. The best return, of ten steps, is 10. Random actions
  get 3.61 (13/36 per step). Observations are float32 `[9]`: each part of the
  pattern as a one-hot vector.
  """

  _NUM_VALUES = (2, 3, 4)

  def __init__(self) -> None:
    self.observation_space = gymnasium.spaces.Box(
        0, 1, (sum(self._NUM_VALUES),), np.float32)
    self.action_space = gymnasium.spaces.MultiDiscrete(self._NUM_VALUES)

  def _draw(self) -> np.ndarray:
    return self.np_random.integers(self._NUM_VALUES)

  def _reward(self, action: np.ndarray) -> float:
    return float(np.mean(action == self._shown))

  def _observation(self) -> np.ndarray:
    return gymnasium.spaces.flatten(
        self.action_space, self._shown).astype(np.float32)


class Target(_Imitation):
  """Actions, points in `[-2, 2] x [0, 1]`, must hit a target.

  The target is random in each step. The reward is minus the squared distance to
  the target. The best return is 0. Over the ten steps of an episode, the middle
  of the box gets -14.17 (-17/12 per step) and random actions get -28.33.
  Observations are the targets, float32 `[2]`.
  """

  def __init__(self) -> None:
    self.observation_space = self.action_space = gymnasium.spaces.Box(
        np.array([-2, 0], np.float32), np.array([2, 1], np.float32))

  def _draw(self) -> np.ndarray:
    return self.np_random.uniform(
        self.action_space.low, self.action_space.high).astype(np.float32)

  def _reward(self, action: np.ndarray) -> float:
    return -float(np.sum(np.square(action - self._shown)))

  def _observation(self) -> np.ndarray:
    return self._shown.copy()
