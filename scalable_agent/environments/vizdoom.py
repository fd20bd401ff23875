# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""ViZDoom: first-person levels, of which the agent sees the screen.

Level names are the ids of the package `vizdoom`, such as `VizdoomBasic-v1`.
Those with several buttons at a time (`MultiBinary`) or a mouse (`Deathmatch`)
have no discrete actions. https://vizdoom.farama.org
"""

import dataclasses
import os
import subprocess
import tempfile

import gymnasium
import numpy as np

from scalable_agent import config as config_lib
from scalable_agent import errors

# What the engine renders; frames are scaled down from the first that is large
# enough. The engine needs most of its time to render.
_RESOLUTIONS = ((160, 120), (320, 240), (640, 480), (1280, 960))
# Waits for the end of its input, which is when the worker closes or dies. The
# engine outlives a worker that is killed, and so does its shared memory. It is
# the process that runs in the directory `$0`.
_CLEAN_UP = """
read -r _
for process in /proc/[0-9]*; do
  if [ "$(readlink "$process/cwd")" = "$0" ]; then
    shared=$(grep -o '/dev/shm/ViZDoom[^ ]*' "$process/maps")
    kill -9 "${process#/proc/}"
    rm -f $shared
  fi
done
rm -rf "$0"
"""


def is_level(level_name: str) -> bool:
  """Whether the name is meant for a level of ViZDoom."""
  return level_name.lower().startswith('vizdoom')


def register(level_name: str) -> None:
  """Registers all levels with gymnasium.

  Args:
    level_name: the level that is wanted, for the error.

  Raises:
    errors.MissingDependencyError: vizdoom is not installed.
  """
  try:
    # pylint: disable=g-import-not-at-top,unused-import
    from vizdoom import gymnasium_wrapper
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs vizdoom: pip install "scalable_agent[vizdoom]" '
        f'({e}).') from e


def adapted(
    spec: gymnasium.envs.registration.EnvSpec,
    settings: config_lib.EnvironmentSettings,
) -> gymnasium.envs.registration.EnvSpec:
  """The level with the screen as observations, repeating actions itself.

  Args:
    spec: the package's own description of the level.
    settings: `config_lib.EnvironmentSettings`.
  """
  width, height = settings.width, settings.height
  resolution = next(
      ((w, h) for w, h in _RESOLUTIONS if w >= width and h >= height),
      _RESOLUTIONS[-1])
  return dataclasses.replace(
      spec, disable_env_checker=True,
      kwargs={**spec.kwargs,
              # Only the last frame is rendered.
              'frame_skip': settings.num_action_repeats,
              'screen_format': 'RGB24',
              'screen_resolution': 'RES_{}X{}'.format(*resolution)},
      additional_wrappers=(
          *spec.additional_wrappers,
          gymnasium.envs.registration.WrapperSpec(
              'Screen', f'{__name__}:Screen',
              {'width': width, 'height': height})))


class Screen(gymnasium.Wrapper):
  """Observations are the screen, uint8 `[height, width, 3]`.

  The engine, a process of its own, is started by the first `reset` and ends
  with this one, however that ends. There is no screen after the end of an
  episode: the one before it stands in.
  """

  def __init__(self, env: gymnasium.Env, width: int, height: int):
    """Starts nothing yet.

    Args:
      env: ViZDoom's own environment.
      width: of the observations, pixels.
      height: likewise.
    """
    super().__init__(env)
    self.observation_space = gymnasium.spaces.Box(
        0, 255, (height, width, 3), np.uint8)
    self._frame = None
    self._clean_up = None

  def reset(self, *, seed=None, options=None):
    if self._clean_up is None:
      observation, info = self._start(seed, options)
    else:
      observation, info = self.env.reset(seed=seed, options=options)
    self._frame = self._scaled(observation['screen'])
    return self._frame, info

  def step(self, action):
    observation, reward, terminated, truncated, info = self.env.step(action)
    if not (terminated or truncated):
      self._frame = self._scaled(observation['screen'])
    # ViZDoom calls an episode that ran out of time terminated as well.
    return (self._frame, reward, terminated and not truncated, truncated, info)

  def close(self):
    try:
      super().close()
    finally:
      if self._clean_up is not None:
        self._clean_up.communicate()
        self._clean_up = None

  def _start(self, seed, options):
    # The engine leaves files in the directory it runs in.
    previous = os.getcwd()
    directory = os.path.realpath(tempfile.mkdtemp(prefix='vizdoom_'))
    self._clean_up = subprocess.Popen(
        ['/bin/sh', '-c', _CLEAN_UP, directory], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    os.chdir(directory)
    try:
      return self.env.reset(seed=seed, options=options)
    finally:
      os.chdir(previous)

  def _scaled(self, screen):
    """Returns the screen `[H, W, 3]` in the size of observations."""
    height, width, _ = self.observation_space.shape
    if screen.shape[:2] == (height, width):
      return screen
    import pygame  # pylint: disable=g-import-not-at-top
    surface = pygame.image.frombuffer(
        np.ascontiguousarray(screen), screen.shape[1::-1], 'RGB')
    surface = pygame.transform.smoothscale(surface, (width, height))
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)
