# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Small environments with known optima.

*   `catch`, `memory`: discrete actions, without and with a need for memory.
*   `bit_flipping`, `bit_flipping_N`: goals that exploration does not find.
*   `time_limit`, `terminating`: the same rewards, cut off or over. With a box
    of actions, they are `time_limit_box` and `terminating_box`.
*   `pattern`: actions of several discrete parts. `target`: a box of actions.
*   `counting`: for tests of data paths.
"""

from collections.abc import Callable, Iterable, Sequence
import functools
import re

import gymnasium
import numpy as np
from scalable_agent.environments import base
from scalable_agent.settings import sections

_CHOICE = gymnasium.spaces.Discrete(2)
_NUMBER = gymnasium.spaces.Box(-1, 1, (1,), np.float32)


def is_level(level_name: str) -> bool:
  """Whether the name is that of a toy."""
  return level_name in LEVELS or _num_bits(level_name) is not None


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return list(LEVELS)


def look_up(
    level_name: str, settings: sections.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level."""
  return functools.partial(_make, level_name, settings.num_action_repeats)


def _make(level_name: str, num_action_repeats: int) -> gymnasium.Env:
  num_bits = _num_bits(level_name)
  env = LEVELS[level_name]() if num_bits is None else BitFlipping(num_bits)
  return base.ActionRepeat(env, num_action_repeats)


def _num_bits(level_name: str) -> int | None:
  """Returns the `N` of `bit_flipping_N`."""
  match = re.fullmatch(r'bit_flipping_([1-9]\d*)', level_name)
  return int(match[1]) if match else None


class Catch(gymnasium.Env):
  """A ball falls; the paddle at the bottom must be under it when it lands.

  The rules of bsuite's Catch (https://arxiv.org/abs/1908.03568): three actions
  (left, stay, right), reward 1 for a catch and -1 for a miss, 9 steps per
  episode. The best return is 1. Observations are float32 `[10, 5]` boards with
  ones at ball and paddle.
  """

  metadata = {'render_fps': 5}
  _ROWS = 10
  _COLUMNS = 5

  def __init__(self):
    self.observation_space = gymnasium.spaces.Box(
        0, 1, (self._ROWS, self._COLUMNS), np.float32)
    self.action_space = gymnasium.spaces.Discrete(3)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """Drops a ball from a random column, see `gymnasium.Env.reset`."""
    super().reset(seed=seed)
    self._ball_row = 0
    self._ball_column = int(self.np_random.integers(self._COLUMNS))
    self._paddle = self._COLUMNS // 2
    return self._board(), {}

  def step(self, action: int) -> base.Step:
    """Moves the paddle: 0 left, 1 stay, 2 right, see `gymnasium.Env.step`."""
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
    """Shows a random cue, see `gymnasium.Env.reset`."""
    super().reset(seed=seed)
    self._step = 0
    self._cue = int(self.np_random.integers(2))
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """Takes a choice, 0 or 1, which counts only when it is time for it."""
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
    """Begins an episode; with a seed, also the count from 0."""
    super().reset(seed=seed)
    if seed is not None:
      self._restart()
    self._steps_left = self._episode_lengths[
        self._episode % len(self._episode_lengths)]
    self._episode += 1
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`."""
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


class BitFlipping(gymnasium.Env):
  """Some bits must become those of the goal; an action flips one of them.

  The reward is -1, and 0 in the step that reaches the goal, which ends the
  episode. After as many steps as there are bits, it is cut off. Start and goal
  are random and differ, in `d` bits. Then the best return is `1 - d`, and the
  best rate of success 1. The goal is one of `2^N`: with 15 bits, exploration
  hardly ever finds it. https://arxiv.org/abs/1707.01495

  Observations are float32 `[N]`: `observation` and `achieved_goal`, both of
  them the bits, and `desired_goal`.
  """

  def __init__(self, num_bits: int = 15):
    """Builds the environment.

    Args:
      num_bits: `N`.
    """
    self._num_bits = num_bits
    bits = gymnasium.spaces.Box(0, 1, (num_bits,), np.float32)
    self.observation_space = gymnasium.spaces.Dict(
        observation=bits, achieved_goal=bits, desired_goal=bits)
    self.action_space = gymnasium.spaces.Discrete(num_bits)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """Draws bits and another goal, see `gymnasium.Env.reset`."""
    super().reset(seed=seed)
    self._step = 0
    self._bits = self._goal = self._draw()
    while np.array_equal(self._bits, self._goal):
      self._goal = self._draw()
    return self._observation(), {}

  def step(self, action: int) -> base.Step:
    """Flips the bit of that index; the reward is 0 at the goal, else -1."""
    self._step += 1
    self._bits[action] = 1 - self._bits[action]
    reward = float(self.compute_reward(self._bits, self._goal, {}))
    terminated = reward == 0
    truncated = self._step == self._num_bits and not terminated
    return self._observation(), reward, terminated, truncated, {}

  def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray,
                     info: dict) -> np.ndarray:
    """Returns rewards float32 `[...]` of goals `[..., N]`."""
    del info
    is_reached = np.all(achieved_goal == desired_goal, axis=-1)
    return np.where(is_reached, 0, -1).astype(np.float32)

  def compute_terminated(self, achieved_goal: np.ndarray,
                         desired_goal: np.ndarray, info: dict) -> np.ndarray:
    """Returns which goals are reached, bool `[...]`."""
    return self.compute_reward(achieved_goal, desired_goal, info) == 0

  def _draw(self):
    return self.np_random.integers(2, size=self._num_bits).astype(np.float32)

  def _observation(self):
    return {'observation': self._bits.copy(),
            'achieved_goal': self._bits.copy(),
            'desired_goal': self._goal.copy()}


class ConstantReward(gymnasium.Env):
  """The reward is 1 for ten steps, whatever the actions.

  Either these are the first steps of a task without end, and a time limit cuts
  it off; or the task ends with them. That decides about the values. With the
  discount `g`, that of each state of the first is `1 / (1 - g)`, 10 for 0.9.
  After `k` steps, that of the second is `(1 - g^(10 - k)) / (1 - g)`, at the
  start 6.5132 for 0.9.

  Observations are float32 `[2]`: 1, and the share of the ten steps that is over
  in the second task. In the first, which does not know about time, it is 0.
  """

  _NUM_STEPS = 10

  def __init__(self, terminates: bool, action_space: gymnasium.Space):
    """Builds the environment.

    Args:
      terminates: whether the task ends after ten steps.
      action_space: its actions, which have no effect.
    """
    self._terminates = terminates
    self.observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    self.action_space = action_space

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`."""
    super().reset(seed=seed)
    self._step = 0
    return self._observation(), {}

  def step(self, action: np.ndarray) -> base.Step:
    """See `gymnasium.Env.step`."""
    self._step += 1
    is_last = self._step == self._NUM_STEPS
    return (self._observation(), 1.0, is_last and self._terminates,
            is_last and not self._terminates, {})

  def _observation(self):
    time = self._step / self._NUM_STEPS if self._terminates else 0
    return np.array([1, time], np.float32)


class _Imitation(gymnasium.Env):
  """The observation shows what to do next; ten times per episode."""

  _NUM_STEPS = 10

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
  """Actions of three parts, with 2, 3 and 4 values; a pattern says which.

  The reward is the share of parts that have the value of the pattern, which is
  random in each step. The best return, of ten steps, is 10. Random actions get
  3.61 (13/36 per step). Observations are float32 `[9]`: each part of the
  pattern as one-hot vector.
  """

  _NUM_VALUES = (2, 3, 4)

  def __init__(self):
    self.observation_space = gymnasium.spaces.Box(
        0, 1, (sum(self._NUM_VALUES),), np.float32)
    self.action_space = gymnasium.spaces.MultiDiscrete(self._NUM_VALUES)

  def _draw(self):
    return self.np_random.integers(self._NUM_VALUES)

  def _reward(self, action):
    return float(np.mean(action == self._shown))

  def _observation(self):
    return gymnasium.spaces.flatten(
        self.action_space, self._shown).astype(np.float32)


class Target(_Imitation):
  """Actions are points in `[-2, 2] x [0, 1]`; a target says which.

  The reward is minus the squared distance to the target, which is random in
  each step. The best return is 0. Over the ten steps of an episode, the middle
  of the box gets -14.17 (-17/12 per step) and random actions get -28.33.
  Observations are the targets, float32 `[2]`.
  """

  def __init__(self):
    self.observation_space = self.action_space = gymnasium.spaces.Box(
        np.array([-2, 0], np.float32), np.array([2, 1], np.float32))

  def _draw(self):
    return self.np_random.uniform(
        self.action_space.low, self.action_space.high).astype(np.float32)

  def _reward(self, action):
    return -float(np.sum(np.square(action - self._shown)))

  def _observation(self):
    return self._shown.copy()


# Environments by level name. `bit_flipping_N` belongs to them.
LEVELS: dict[str, Callable[[], gymnasium.Env]] = {
    'catch': Catch,
    'memory': Memory,
    'bit_flipping': BitFlipping,
    'time_limit': functools.partial(ConstantReward, False, _CHOICE),
    'time_limit_box': functools.partial(ConstantReward, False, _NUMBER),
    'terminating': functools.partial(ConstantReward, True, _CHOICE),
    'terminating_box': functools.partial(ConstantReward, True, _NUMBER),
    'pattern': Pattern,
    'target': Target,
    'counting': Counting,
}
