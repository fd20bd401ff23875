# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""ViZDoom: first-person levels; the agent sees the screen.

Level names are the ids of the package `vizdoom`, such as `VizdoomBasic-v1`.
Levels with a mouse (`Deathmatch`) have no discrete actions.
https://vizdoom.farama.org
"""

from collections.abc import Mapping
import dataclasses
import functools
import os
import re
import signal
import subprocess
import tempfile
from typing import Any

import gymnasium
import numpy as np
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments import registry
from scalable_agent.processes import signals
from scalable_agent.settings.environment_settings import EnvironmentSettings

# Widths and heights of the engine's screens. Frames are scaled down from the
# smallest screen that is large enough, since rendering takes most of the time.
_RESOLUTIONS = ((160, 120), (320, 240), (640, 480), (1280, 960))
# The engine and its shared memory outlive a worker that is killed. This script
# reads the names of shared files, and waits for the end of its input, when the
# worker closes the pipe or dies. Then the script ends the engine, which is the
# process that runs in the directory `$0`, and removes all shared files, even
# if the engine has ended before.
_CLEAN_UP = """
read -r known
read -r _
for process in /proc/[0-9]*; do
  if [ "$(readlink "$process/cwd")" = "$0" ]; then
    shared=$(grep -o '/dev/shm/ViZDoom[^ ]*' "$process/maps")
    kill -9 "${process#/proc/}"
    rm -f $shared
  fi
done
rm -f $known
rm -rf "$0"
"""


_PACKAGE = registry.Package(
    'vizdoom', 'vizdoom.gymnasium_wrapper', 'vizdoom', ('vizdoom',))
# Users' own levels, with an engine of ViZDoom, are played in the same way.
is_level = _PACKAGE.has_prefix
known_levels = _PACKAGE.known_levels


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  spec = _PACKAGE.look_up(level_name, settings)
  if not _takes_settings(spec):
    return registry.factory(spec, settings)
  width, height = settings.width, settings.height
  resolution = next(
      ((w, h) for w, h in _RESOLUTIONS if w >= width and h >= height),
      _RESOLUTIONS[-1])
  ours = {# The engine repeats actions and renders only the last frame.
          'frame_skip': settings.num_action_repeats,
          'screen_format': 'RGB24',
          'screen_resolution': 'RES_{}X{}'.format(*resolution)}
  arguments.check_none(level_name, {
      name: value for name, value in settings.kwargs.items() if name in ours})
  spec = dataclasses.replace(
      spec, disable_env_checker=True, kwargs={**spec.kwargs, **ours})
  return functools.partial(_make, spec, width, height, settings.kwargs)


def _takes_settings(spec: registry.Spec) -> bool:
  """Whether a level, perhaps a user's own, takes ViZDoom's arguments."""
  make = registry.creator(spec)
  if not isinstance(make, type):
    return registry.takes(make, 'frame_skip')
  try:
    from vizdoom.gymnasium_wrapper import base_gymnasium_env
  except ImportError:
    return False
  return issubclass(make, base_gymnasium_env.VizdoomEnv)


def _make(spec: registry.Spec, width: int, height: int,
          kwargs: Mapping[str, object]) -> gymnasium.Env:
  env = registry.make(spec, kwargs)
  space = env.observation_space
  is_native = isinstance(space, gymnasium.spaces.Dict) and (
      'screen' in space.keys())
  return Screen(env, width, height) if is_native else Engine(env)


class Engine(gymnasium.Wrapper):
  """An environment of ViZDoom, perhaps in wrappers of its observations.

  The first `reset` starts the engine, in its own process. The engine ends with
  this process, even if this process is killed.
  """

  def __init__(self, env: gymnasium.Env):
    super().__init__(env)
    self._clean_up: subprocess.Popen | None = None
    self._picture: np.ndarray | None = None

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> tuple[Any, dict]:
    """See `gymnasium.Env.reset`; starts the engine if there is none."""
    if self._clean_up is None:
      return self._start(seed, options)
    return self.env.reset(seed=seed, options=options)

  def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
    """See `gymnasium.Env.step`; a timeout is only a truncation."""
    observation, reward, terminated, truncated, info = self.env.step(action)
    # If time runs out, ViZDoom also sets `terminated`. A wrapper's time limit
    # may end an episode in the step of a death.
    game = getattr(self.env.unwrapped, 'game', None)
    if truncated and (game is None or game.is_episode_timeout_reached()):
      terminated = False
    return observation, reward, terminated, truncated, info

  def render(self) -> np.ndarray | None:
    """Returns the screen, uint8 `[H, W, 3]`.

    After the end of an episode, returns the screen of the last call; None if
    there was no call.
    """
    if self.env.unwrapped.state is not None:
      self._picture = self.env.render()
    return self._picture

  def close(self) -> None:
    """Ends the engine, and removes its shared memory."""
    try:
      super().close()
    finally:
      if self._clean_up is not None:
        self._clean_up.communicate()
        self._clean_up = None

  @signals.blocked(signal.SIGINT)  # An interrupt would end the engine.
  def _start(self, seed: int | None, options: dict | None) -> tuple[Any, dict]:
    """Starts the engine; returns the results of its first `reset`."""
    # The engine leaves files in the directory it runs in.
    previous = os.getcwd()
    directory = os.path.realpath(tempfile.mkdtemp(prefix='vizdoom_'))
    self._clean_up = subprocess.Popen(
        ['/bin/sh', '-c', _CLEAN_UP, directory], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    os.chdir(directory)
    before = _shared_files()
    try:
      result = self.env.reset(seed=seed, options=options)
    finally:
      os.chdir(previous)
    assert self._clean_up.stdin is not None  # A pipe.
    self._clean_up.stdin.write(
        f'{" ".join(_shared_files() - before)}\n'.encode())
    self._clean_up.stdin.flush()
    return result


class Screen(Engine):
  """Observations are the screen, uint8 `[height, width, 3]`.

  After the end of an episode there is no screen, so the last observation is the
  screen before the end.
  """

  def __init__(self, env: gymnasium.Env, width: int, height: int):
    """Makes the environment; sizes of observations are in pixels."""
    super().__init__(env)
    self.observation_space = gymnasium.spaces.Box(
        0, 255, (height, width, 3), np.uint8)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `Engine.reset`."""
    observation, info = super().reset(seed=seed, options=options)
    self._frame = self._scale(observation['screen'])
    return self._frame, info

  def step(self, action: int) -> base.Step:
    """See `Engine.step`."""
    observation, reward, terminated, truncated, info = super().step(action)
    # After a limit of gymnasium there still is a screen.
    if self.env.unwrapped.state is not None:
      self._frame = self._scale(observation['screen'])
    return self._frame, reward, terminated, truncated, info

  def _scale(self, screen: np.ndarray) -> np.ndarray:
    """Returns the screen `[H, W, 3]` in the size of observations."""
    height, width, _ = self.observation_space.shape
    if screen.shape[:2] == (height, width):
      return screen
    import pygame
    surface = pygame.image.frombuffer(
        np.ascontiguousarray(screen).data, screen.shape[1::-1], 'RGB')
    surface = pygame.transform.smoothscale(surface, (width, height))
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def _shared_files() -> set[str]:
  """Returns the files that this process shares with its engines."""
  with open('/proc/self/maps', encoding='utf-8') as f:
    return set(re.findall(r'/dev/shm/ViZDoom\S+', f.read()))
