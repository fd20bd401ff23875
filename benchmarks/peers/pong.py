# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Pong (or another game) for all peers, and the files of a watched run.

The work of a step is that of scalable_agent/environments/atari.py: grey 84 x 84
frames, the maximum over the last two of four frames, four such frames stacked
channels-first, 0 to 30 no-ops at the start of a game, no sticky actions.

Every process that steps environments counts the steps in a file of its own in
the directory `PEERS_RUN`. The process that trains writes each finished update,
with the steps until then, to another file. peers.py reads both files. A process
that plays whole games writes the returns to a file of its own, which
time_to_score.py reads.
"""

import mmap
import os
import pathlib
import time

import numpy as np

NUM_ACTIONS = 6
OBSERVATION_SHAPE = (4, 84, 84)
_MAX_NOOPS = 30
_FRAME_SKIP = 4
_MAX_FRAMES = 108000
_GAME = 'pong'
_INFOS = ('final_obs', 'frame_number', 'episode_frame_number')


def _run_directory():
  return pathlib.Path(os.environ['PEERS_RUN'])


class _StepCounter:
  """Counts in a file, by shared memory: no system call per step."""

  def __init__(self):
    self._pid = None
    self._count = None

  def add(self, steps):
    if self._pid != os.getpid():  # A fork must not count in its parent's file.
      self._pid = os.getpid()
      with open(_run_directory() / f'steps-{self._pid}', 'w+b') as f:
        f.truncate(8)
        self._count = np.frombuffer(mmap.mmap(f.fileno(), 8), np.int64)
    self._count[0] += steps


_COUNTER = _StepCounter()
count_steps = _COUNTER.add


def total_steps():
  """Returns the steps of all environments of this run."""
  return sum(int(np.fromfile(path, np.int64)[0])
             for path in _run_directory().glob('steps-*')
             if path.stat().st_size)


def note_update(num_samples):
  """Writes down a finished update: the time, steps until now, its samples."""
  with open(_run_directory() / 'updates', 'a', encoding='ascii') as f:
    f.write(f'{time.monotonic()} {total_steps()} {num_samples}\n')


def note_game(score):
  """Writes down a finished game: the time, steps until now, its return."""
  path = _run_directory() / f'games-{os.getpid()}'
  with open(path, 'a', encoding='ascii') as f:
    f.write(f'{time.monotonic()} {total_steps()} {score}\n')


def note_parameters(parameters):
  """Writes the number of trained parameters, which peers.py checks."""
  count = sum(int(np.prod(p.shape)) for p in parameters)
  (_run_directory() / 'parameters').write_text(f'{count}\n', encoding='ascii')


class Pong:
  """One game, for peers that step environments one by one."""

  def __init__(self, seed, game=_GAME):
    import ale_py
    import cv2
    cv2.setNumThreads(1)
    self._resize = lambda frame: cv2.resize(
        frame, OBSERVATION_SHAPE[1:], interpolation=cv2.INTER_AREA)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat('repeat_action_probability', 0.0)
    self._ale.setInt('random_seed', seed)
    self._ale.loadROM(ale_py.roms.get_rom_path(game))
    self._actions = self._ale.getMinimalActionSet()
    self._rng = np.random.RandomState(seed)
    size = self._ale.getScreenDims()
    self._screens = np.empty((2, *size), np.uint8)
    self._stack = np.zeros(OBSERVATION_SHAPE, np.uint8)

  def reset(self):
    """Starts a game; returns its observation."""
    self._ale.reset_game()
    for _ in range(self._rng.randint(_MAX_NOOPS + 1)):
      self._ale.act(self._actions[0])
    self._ale.getScreenGrayscale(self._screens[0])
    self._stack[:] = 0
    self._stack[-1] = self._resize(self._screens[0])
    return self._stack.copy()

  def step(self, action):
    """Returns observation, reward, whether the game is over."""
    reward = 0
    for i in range(_FRAME_SKIP):
      reward += self._ale.act(self._actions[action])
      if i >= _FRAME_SKIP - 2:
        self._ale.getScreenGrayscale(self._screens[i - _FRAME_SKIP + 2])
    count_steps(1)
    self._stack[:-1] = self._stack[1:]
    self._stack[-1] = self._resize(self._screens.max(axis=0))
    over = (self._ale.game_over() or
            self._ale.getEpisodeFrameNumber() >= _MAX_FRAMES)
    return self._stack.copy(), float(reward), over


class ScoredGame(Pong):
  """A game of a training of scalable_agent, which notes its return.

  A lost life ends an episode, but not the game. Rewards are clipped.
  """

  def __init__(self, seed, game):
    super().__init__(seed, game)
    self.num_actions = len(self._actions)
    self._is_over = True

  def reset(self):
    """Starts a game if the last one is over; returns an observation."""
    if not self._is_over:
      return self._stack.copy()
    self._is_over, self._score = False, 0.0
    observation = super().reset()
    self._lives = self._ale.lives()
    return observation

  def step(self, action):
    """Returns observation, clipped reward, whether the episode is over."""
    observation, reward, self._is_over = super().step(action)
    self._score += reward
    if self._is_over:
      note_game(self._score)
    lives, self._lives = self._lives, self._ale.lives()
    done = self._is_over or self._lives < lives
    return observation, float(np.clip(reward, -1, 1)), done


def make_vector(num_envs, num_threads, autoreset_mode=None, game=_GAME,
                **kwargs):
  """Returns ALE's own vector of games, which counts its steps.

  Its infos contain the last observations of episodes and numbers of frames.

  Args:
    num_envs: number of games.
    num_threads: C++ threads.
    autoreset_mode: one of gymnasium's; None for SAME_STEP.
    game: the ROM.
    **kwargs: further arguments of ALE's vector.
  """
  from ale_py import vector_env
  import gymnasium
  modes = gymnasium.vector.AutoresetMode
  autoreset_mode = autoreset_mode or modes.SAME_STEP

  class CountingVector(vector_env.AtariVectorEnv):
    """In the mode NEXT_STEP, the step after the end of a game is a reset."""

    num_resets = 0

    def reset(self, **kwargs):
      return super().reset(**kwargs)[0], {}

    def step(self, actions):
      count_steps(len(actions) - self.num_resets)
      results = super().step(actions)
      if autoreset_mode == modes.NEXT_STEP:
        self.num_resets = int((results[2] | results[3]).sum())
      infos = {k: v for k, v in results[4].items() if k in _INFOS}
      return *results[:4], infos

  return CountingVector(
      game, num_envs, num_threads=num_threads,
      max_num_frames_per_episode=_MAX_FRAMES, repeat_action_probability=0.0,
      autoreset_mode=autoreset_mode,
      noop_max=_MAX_NOOPS + 1,  # ALE draws smaller numbers.
      reward_clipping=False, use_fire_reset=False, **kwargs)
