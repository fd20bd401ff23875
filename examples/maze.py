# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Example of a user's environment for gymnasium: find the way to the goal.

  python experiment.py --recipe=catch --logdir=/tmp/maze \
      --level_name=examples.maze:Maze-v0 --agent=examples.maze_torso:make

A player and a goal are at random places of a board. A wall with one gap divides
the board into left and right. A step costs 0.05; the goal is worth 1 and ends
the episode. The processes of the environments import this module, so the module
does not import TensorFlow.
"""

import gymnasium
import numpy as np

_SIZE = 5
_WALL = [(row, 2) for row in range(_SIZE) if row != 3]
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Maze(gymnasium.Env):
  """Observations: float32 `[5, 5, 3]`, ones at player, goal and wall."""

  metadata = {'render_modes': ['rgb_array'], 'render_fps': 5}
  observation_space = gymnasium.spaces.Box(0, 1, (_SIZE, _SIZE, 3), np.float32)
  action_space = gymnasium.spaces.Discrete(len(_MOVES))

  def __init__(self, render_mode: str | None = None):
    self.render_mode = render_mode
    self._free = [(row, column) for row in range(_SIZE)
                  for column in range(_SIZE) if (row, column) not in _WALL]

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[np.ndarray, dict]:
    super().reset(seed=seed)
    player, goal = self.np_random.choice(len(self._free), 2, replace=False)
    self.player, self.goal = self._free[player], self._free[goal]
    return self._board(), {}

  def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
    row, column = np.add(self.player, _MOVES[action]).tolist()
    if (row, column) in self._free:
      self.player = row, column
    is_there = self.player == self.goal
    return self._board(), is_there - .05, is_there, False, {}

  def render(self) -> np.ndarray:
    return (255 * self._board()).astype(np.uint8)

  def _board(self) -> np.ndarray:
    board = np.zeros((_SIZE, _SIZE, 3), np.float32)
    board[self.player][0] = board[self.goal][1] = 1
    for place in _WALL:
      board[place][2] = 1
    return board


gymnasium.register('Maze-v0', Maze, max_episode_steps=50)
