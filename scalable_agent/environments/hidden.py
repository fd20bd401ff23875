# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Toys that hide a part of the state, so that an agent needs a memory.

*   `pendulum_position`, `cartpole_position`: the levels of gymnasium, without
    velocities.
*   `tmaze_N`: a cue, a corridor of `N` steps, a choice.
"""

import gymnasium
import numpy as np
from scalable_agent.environments import base


def pendulum_position() -> gymnasium.Env:
  """Returns Pendulum-v1 with cosine and sine of the angle only."""
  return _positions('Pendulum-v1', [0, 1])


def cartpole_position() -> gymnasium.Env:
  """Returns CartPole-v1 with the position and the angle only."""
  return _positions('CartPole-v1', [0, 2])


def _positions(name: str, indices: list[int]) -> gymnasium.Env:
  """Returns a level that shows some numbers of an observation, float32 `[P]`.

  Videos can show the level; only `render` draws.
  """
  env = gymnasium.make(name, render_mode='rgb_array')
  low, high = env.observation_space.low, env.observation_space.high
  return gymnasium.wrappers.TransformObservation(
      env, lambda observation: observation[indices],
      gymnasium.spaces.Box(low[indices], high[indices], dtype=np.float32))


class TMaze(gymnasium.Env):
  """A corridor of `N` steps, with a choice of a side at the end.

  The first observation shows the side of the goal. The four actions are
  forward, back, left and right. At the end of the corridor, left and right end
  the episode, with reward 1 on the side of the goal and else 0. Any other step
  that does not lead forward has the reward `-1 / N`. An episode has at most
  `N + 1` steps. So the best return is 1 with memory, and 0.5 on average without
  memory. The passive T-maze of Ni et al. 2023 (arXiv 2307.03864).

  Observations are float32 `[3]`: the side of the goal (one-hot, two entries;
  zeros after the first observation), and whether the corridor ends here.
  """

  def __init__(self, length: int = 20):
    """Builds an environment with a corridor of `N = length` steps."""
    self._length = length
    self.observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(4)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; draws the side of the goal."""
    super().reset(seed=seed)
    self._step = self._position = 0
    self._goal = int(self.np_random.integers(2))
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`; actions: 0 forward, 1 back, 2 left, 3 right."""
    self._step += 1
    at_end = self._position == self._length
    chooses = at_end and action >= 2
    advances = not at_end and action == 0
    reward = float(action - 2 == self._goal) if chooses else (
        0.0 if advances else -1 / self._length)
    if advances:
      self._position += 1
    elif action == 1:
      self._position = max(self._position - 1, 0)
    ended = chooses or self._step > self._length
    return self._observation(), reward, ended, False, {}

  def _observation(self) -> np.ndarray:
    observation = np.zeros([3], np.float32)
    if self._step == 0:
      observation[self._goal] = 1
    observation[2] = self._position == self._length
    return observation
