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
import subprocess
import tempfile

import gymnasium
import numpy as np
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments import registry
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
known_levels = _PACKAGE.known_levels


def is_level(level_name: str) -> bool:
  """Whether a name is that of a level of ViZDoom, also of a user's own."""
  return _PACKAGE.is_level(level_name.rpartition(':')[2])


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  is_of_package = _PACKAGE.is_level(level_name)
  spec = (_PACKAGE if is_of_package else registry).look_up(level_name, settings)
  if not (is_of_package or _has_screen(spec)):
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


def _has_screen(spec: registry.Spec) -> bool:
  """Whether a user's own level is an environment of ViZDoom, not wrapped."""
  try:
    from vizdoom.gymnasium_wrapper import base_gymnasium_env
  except ImportError:
    return False
  make = registry.creator(spec)
  return isinstance(make, type) and issubclass(
      make, base_gymnasium_env.VizdoomEnv)


def _make(spec: registry.Spec, width: int, height: int,
          kwargs: Mapping[str, object]) -> gymnasium.Env:
  return Screen(registry.make(spec, kwargs), width, height)


class Screen(gymnasium.Wrapper):
  """Observations are the screen, uint8 `[height, width, 3]`.

  The first `reset` starts the engine, in its own process. The engine ends with
  this process, even if this process is killed. After the end of an episode
  there is no screen, so the last observation is the screen before the end.
  """

  def __init__(self, env: gymnasium.Env, width: int, height: int):
    """Makes the environment; sizes of observations are in pixels."""
    super().__init__(env)
    self.observation_space = gymnasium.spaces.Box(
        0, 255, (height, width, 3), np.uint8)
    self._clean_up: subprocess.Popen | None = None
    self._picture: np.ndarray | None = None

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """See `gymnasium.Env.reset`; starts the engine if there is none."""
    if self._clean_up is None:
      observation, info = self._start(seed, options)
    else:
      observation, info = self.env.reset(seed=seed, options=options)
    self._frame = self._scale(observation['screen'])
    return self._frame, info

  def step(self, action: int) -> base.Step:
    """See `gymnasium.Env.step`; a timeout is only a truncation."""
    observation, reward, terminated, truncated, info = self.env.step(action)
    if self.env.unwrapped.state is not None:  # A limit of gymnasium shows it.
      self._frame = self._scale(observation['screen'])
    # If time runs out, ViZDoom also sets `terminated`.
    return (self._frame, reward, terminated and not truncated, truncated, info)

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

  def _start(self, seed: int | None, options: dict | None) -> tuple[dict, dict]:
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
