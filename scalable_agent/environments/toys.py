# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Small environments with known optima: `catch`, `memory`, `counting`."""

from collections.abc import Callable, Iterable, Sequence
import functools

import gymnasium
import numpy as np
from scalable_agent import config
from scalable_agent.environments import base


def is_level(level_name: str) -> bool:
  """Whether the name is that of a toy."""
  return level_name in LEVELS


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(LEVELS)


def look_up(
    level_name: str, settings: config.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level."""
  return functools.partial(_make, level_name, settings.num_action_repeats)


def _make(level_name: str, num_action_repeats: int) -> gymnasium.Env:
  return base.ActionRepeat(LEVELS[level_name](), num_action_repeats)


class Catch(gymnasium.Env):
  """A ball falls; the paddle at the bottom must be under it when it lands.

  The rules of bsuite's Catch (https://arxiv.org/abs/1908.03568): three actions
  (left, stay, right), reward 1 for a catch and -1 for a miss, 9 steps per
  episode. The best return is 1. Observations are float32 `[10, 5]` boards with
  ones at ball and paddle.
  """

  _ROWS = 10
  _COLUMNS = 5

  def __init__(self):
    self.observation_space = gymnasium.spaces.Box(
        0, 1, (self._ROWS, self._COLUMNS), np.float32)
    self.action_space = gymnasium.spaces.Discrete(3)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    super().reset(seed=seed)
    self._ball_row = 0
    self._ball_column = int(self.np_random.integers(self._COLUMNS))
    self._paddle = self._COLUMNS // 2
    return self._board(), {}

  def step(self, action: int) -> base.Step:
    self._paddle = min(max(self._paddle + int(action) - 1, 0),
                       self._COLUMNS - 1)
    self._ball_row += 1
    landed = self._ball_row == self._ROWS - 1
    reward = 0.0
    if landed:
      reward = 1.0 if self._ball_column == self._paddle else -1.0
    return self._board(), reward, landed, False, {}

  def _board(self):
    board = np.zeros((self._ROWS, self._COLUMNS), np.float32)
    board[self._ball_row, self._ball_column] = 1
    board[-1, self._paddle] = 1
    return board


class Memory(gymnasium.Env):
  """A cue, a delay, a choice: reward 1 for the action of the cue, else -1.

  Observations are float32 `[3]`: the cue (one-hot, two entries; zeros after the
  first observation) and whether this is the time to choose. Only the choice
  matters, so the return is 1 with memory and 0 on average without.

  An agent that sees its last action can remember the cue by its actions,
  without any recurrent state.
  """

  def __init__(self, delay: int = 5):
    """Builds the environment.

    Args:
      delay: number of blank observations between the cue and the choice.
    """
    self._delay = delay
    self.observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(2)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    super().reset(seed=seed)
    self._step = 0
    self._cue = int(self.np_random.integers(2))
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    chosen = self._step == self._delay + 1
    reward = 0.0
    if chosen:
      reward = 1.0 if int(action) == self._cue else -1.0
    self._step += 1
    return self._observation(), reward, chosen, False, {}

  def _observation(self):
    observation = np.zeros([3], np.float32)
    if self._step == 0:
      observation[self._cue] = 1
    observation[2] = self._step == self._delay + 1
    return observation


class Counting(gymnasium.Env):
  """Counts its steps over all episodes; tests compare counts along data paths.

  In step `k` (from 1, never reset) the reward is `k` and the observation is
  float32 `[2]`: `k`, and the action that led to it. The first observation is
  `(0, -1)`. A later episode begins in the step that ends the one before it, and
  its first observation is the pair of that step.
  """

  def __init__(self, episode_lengths: Sequence[int] = (2, 3, 5)):
    """Builds the environment.

    Args:
      episode_lengths: steps per episode, over and over.
    """
    self._episode_lengths = tuple(episode_lengths)
    self.observation_space = gymnasium.spaces.Box(
        -1, np.inf, (2,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(3)
    self._restart()

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    super().reset(seed=seed)
    if seed is not None:
      self._restart()
    self._steps_left = self._episode_lengths[
        self._episode % len(self._episode_lengths)]
    self._episode += 1
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    self._count += 1
    self._action = int(action)
    self._steps_left -= 1
    return (self._observation(), float(self._count), self._steps_left == 0,
            False, {})

  def _restart(self):
    self._count = 0
    self._action = -1
    self._episode = 0

  def _observation(self):
    return np.array([self._count, self._action], np.float32)


# Environments by level name.
LEVELS: dict[str, Callable[[], gymnasium.Env]] = {
    'catch': Catch, 'memory': Memory, 'counting': Counting}
