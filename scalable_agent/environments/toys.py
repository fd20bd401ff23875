# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Small environments with known optima.

*   `catch`, `memory`: discrete actions, without and with a need for memory.
*   `tmaze_N`, `pendulum_position`, `cartpole_position`: see `hidden`.
*   `bit_flipping`, `bit_flipping_N`: goals that exploration does not find.
*   `time_limit`, `terminating`: the same rewards up to a truncation or a
    termination. `time_limit_box`, `terminating_box`: with continuous actions.
*   `pattern`: actions of several discrete parts. `target`: continuous actions.
*   `counting`: for tests of data paths.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import re

import gymnasium
import numpy as np
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments import hidden
from scalable_agent.environments.imitation import Pattern
from scalable_agent.environments.imitation import Target
from scalable_agent.settings.environment_settings import EnvironmentSettings

_CHOICE = gymnasium.spaces.Discrete(2)
_NUMBER = gymnasium.spaces.Box(-1, 1, (1,), np.float32)


def is_level(level_name: str) -> bool:
  """Whether the name means a toy."""
  return level_name in LEVELS or _of_family(level_name) is not None


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(LEVELS)


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  return functools.partial(
      _make, level_name, settings.kwargs, settings.num_action_repeats)


def _make(level_name: str, kwargs: Mapping[str, object],
          num_action_repeats: int) -> gymnasium.Env:
  make = _of_family(level_name) or LEVELS[level_name]
  return base.ActionRepeat(
      arguments.call(level_name, make, kwargs), num_action_repeats)


def _of_family(level_name: str) -> Callable[..., gymnasium.Env] | None:
  """Returns what makes `bit_flipping_N` or `tmaze_N`."""
  match = re.fullmatch(r'(bit_flipping|tmaze)_([1-9]\d*)', level_name)
  return functools.partial(
      LEVELS[match[1]], int(match[2])) if match else None


class Catch(gymnasium.Env):
  """A ball falls, and must land on the paddle in the bottom row.

  The rules of bsuite's Catch (https://arxiv.org/abs/1908.03568): three actions
  (left, stay, right), reward 1 for a catch and -1 for a miss, 9 steps per
  episode. The best return is 1. Observations are float32 `[10, 5]` boards with
  ones at ball and paddle.
  """

  metadata = {'render_fps': 5}
  _ROWS = 10
  _COLUMNS = 5

  def __init__(self) -> None:
    self.observation_space = gymnasium.spaces.Box(
        0, 1, (self._ROWS, self._COLUMNS), np.float32)
    self.action_space = gymnasium.spaces.Discrete(3)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; the ball falls from a random column."""
    super().reset(seed=seed)
    self._ball_row = 0
    self._ball_column = int(self.np_random.integers(self._COLUMNS))
    self._paddle = self._COLUMNS // 2
    return self._board(), {}

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`; actions: 0 left, 1 stay, 2 right."""
    self._paddle = min(max(self._paddle + int(action) - 1, 0),
                       self._COLUMNS - 1)
    self._ball_row += 1
    landed = self._ball_row == self._ROWS - 1
    reward = 0.0
    if landed:
      reward = 1.0 if self._ball_column == self._paddle else -1.0
    return self._board(), reward, landed, False, {}

  def _board(self) -> np.ndarray:
    board = np.zeros((self._ROWS, self._COLUMNS), np.float32)
    board[self._ball_row, self._ball_column] = 1
    board[-1, self._paddle] = 1
    return board


class Memory(gymnasium.Env):
  """A cue, a delay, a choice: reward 1 for the action of the cue, else -1.

  Observations are float32 `[3]`: the cue (one-hot, two entries; zeros after the
  first observation) and whether the choice is due. Only the choice matters, so
  the return is 1 with memory, and 0 on average without memory.

  An agent that sees its last action can remember the cue by its actions,
  without any recurrent state.
  """

  def __init__(self, delay: int = 5):
    """Builds an environment with `delay` blank observations before a choice."""
    self._delay = delay
    self.observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(2)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; shows a random cue."""
    super().reset(seed=seed)
    self._step = 0
    self._cue = int(self.np_random.integers(2))
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`; actions, 0 or 1, matter at the choice only."""
    chosen = self._step == self._delay + 1
    reward = 0.0
    if chosen:
      reward = 1.0 if int(action) == self._cue else -1.0
    self._step += 1
    return self._observation(), reward, chosen, False, {}

  def _observation(self) -> np.ndarray:
    observation = np.zeros([3], np.float32)
    if self._step == 0:
      observation[self._cue] = 1
    observation[2] = self._step == self._delay + 1
    return observation


class Counting(gymnasium.Env):
  """Counts its steps over all episodes; tests compare counts along data paths.

  In step `k` (from 1, never reset) the reward is `k` and the observation is
  float32 `[2]`: `k` and the action of step `k`. The very first observation is
  `(0, -1)`. The first observation of a later episode equals the last
  observation of the episode before.
  """

  def __init__(self, episode_lengths: Sequence[int] = (2, 3, 5)):
    """Builds an environment; the lengths of episodes repeat forever."""
    self._episode_lengths = tuple(episode_lengths)
    self.observation_space = gymnasium.spaces.Box(
        -1, np.inf, (2,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(3)
    self._restart()

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; a seed restarts the count from 0."""
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

  def _restart(self) -> None:
    self._count = 0
    self._action = -1
    self._episode = 0

  def _observation(self) -> np.ndarray:
    return np.array([self._count, self._action], np.float32)


class BitFlipping(gymnasium.Env):
  """`N` bits must become equal to the goal; an action flips one bit.

  The reward is -1 per step, and 0 in the step that reaches the goal, which ends
  the episode. Episodes are truncated after `N` steps. Start and goal are random
  and differ in `d` bits, so the best return is `1 - d`, and the best rate of
  success is 1. There are `2^N` goals: with 15 bits, exploration hardly ever
  reaches the goal. https://arxiv.org/abs/1707.01495

  Observations are dictionaries of float32 `[N]`: `observation` and
  `achieved_goal` (both are the bits), and `desired_goal`.
  """

  def __init__(self, num_bits: int = 15):
    """Builds an environment of `N = num_bits` bits."""
    self._num_bits = num_bits
    bits = gymnasium.spaces.Box(0, 1, (num_bits,), np.float32)
    self.observation_space = gymnasium.spaces.Dict(
        observation=bits, achieved_goal=bits, desired_goal=bits)
    self.action_space = gymnasium.spaces.Discrete(num_bits)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; draws bits and a goal, which differ."""
    super().reset(seed=seed)
    self._step = 0
    self._bits = self._goal = self._draw()
    while np.array_equal(self._bits, self._goal):
      self._goal = self._draw()
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`; actions are indices of bits."""
    self._step += 1
    self._bits[action] = 1 - self._bits[action]
    reward = float(self.compute_reward(self._bits, self._goal, {}))
    terminated = reward == 0
    truncated = self._step == self._num_bits and not terminated
    return self._observation(), reward, terminated, truncated, {}

  def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray,
                     info: dict) -> np.ndarray:
    """Returns rewards, float32 `[...]`, for goals `[..., N]`."""
    del info
    is_reached = np.all(achieved_goal == desired_goal, axis=-1)
    return np.where(is_reached, 0, -1).astype(np.float32)

  def compute_terminated(self, achieved_goal: np.ndarray,
                         desired_goal: np.ndarray, info: dict) -> np.ndarray:
    """Returns which goals are reached, bool `[...]`."""
    return self.compute_reward(achieved_goal, desired_goal, info) == 0

  def _draw(self) -> np.ndarray:
    return self.np_random.integers(2, size=self._num_bits).astype(np.float32)

  def _observation(self) -> dict[str, np.ndarray]:
    return {'observation': self._bits.copy(),
            'achieved_goal': self._bits.copy(),
            'desired_goal': self._goal.copy()}


class ConstantReward(gymnasium.Env):
  """`n` steps with reward 1, ten by default, whatever the actions.

  If the episode is truncated after `n` steps, the value of each state with the
  discount `g` is `1 / (1 - g)`: 10 for 0.9. If the episode terminates, the
  value after `k` steps is `(1 - g^(n - k)) / (1 - g)`: 6.5132 at the start for
  0.9 and ten steps.

  Observations are float32 `[2]`: 1, and `k / n` if the episode terminates,
  else 0, because the time limit is no part of the task.
  """

  def __init__(self, terminates: bool, action_space: gymnasium.Space,
               num_steps: int = 10):
    """Builds an environment whose episodes terminate or else are truncated."""
    self._terminates = terminates
    self._num_steps = num_steps
    self.observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    self.action_space = action_space

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    super().reset(seed=seed)
    self._step = 0
    return self._observation(), {}

  def step(self, action: np.ndarray) -> base.Step:
    self._step += 1
    is_last = self._step == self._num_steps
    return (self._observation(), 1.0, is_last and self._terminates,
            is_last and not self._terminates, {})

  def _observation(self) -> np.ndarray:
    time = self._step / self._num_steps if self._terminates else 0
    return np.array([1, time], np.float32)


# Environments by level name; also, `bit_flipping_N` and `tmaze_N` for any `N`.
LEVELS: dict[str, Callable[..., gymnasium.Env]] = {
    'catch': Catch,
    'memory': Memory,
    'tmaze': hidden.TMaze,
    'pendulum_position': hidden.pendulum_position,
    'cartpole_position': hidden.cartpole_position,
    'bit_flipping': BitFlipping,
    'time_limit': functools.partial(ConstantReward, False, _CHOICE),
    'time_limit_box': functools.partial(ConstantReward, False, _NUMBER),
    'terminating': functools.partial(ConstantReward, True, _CHOICE),
    'terminating_box': functools.partial(ConstantReward, True, _NUMBER),
    'pattern': Pattern,
    'target': Target,
    'counting': Counting,
}
