# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DeepMind Lab, by its Python API.

Level names are the names of DMLab-30, with or without `contributed/dmlab30/`;
`seekavoid_arena_01`, the paper's fifth single task; and `lab/NAME` for Lab's
own name of any other level.

Lab is not on PyPI. If Lab is missing, an error explains the installation. API:
https://github.com/google-deepmind/lab/blob/master/docs/users/python_api.md
"""

from collections.abc import Iterable, Mapping
import functools
import math
import os
import string
import tempfile
from typing import Protocol

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.environments.lab_maps import LocalLevelCache
from scalable_agent.environments.lab_maps import TurnsToCompile
from scalable_agent.processes import processes
from scalable_agent.processes import starts
from scalable_agent.settings import lab_levels
from scalable_agent.settings.environment_settings import EnvironmentSettings

# A closed Lab keeps 7 descriptors and 3 MB, so that a process dies after about
# 240 Labs. A reset with a seed starts a Lab.
MAX_RESETS = 100
# The reference's actions. The numbers of an action are: look right and down (in
# pixels per frame), strafe right, move forward, fire, jump, crouch.
DEFAULT_ACTION_SET = (
    (0, 0, 0, 1, 0, 0, 0),  # Forward.
    (0, 0, 0, -1, 0, 0, 0),  # Backward.
    (0, 0, -1, 0, 0, 0, 0),  # Strafe left.
    (0, 0, 1, 0, 0, 0, 0),  # Strafe right.
    (-20, 0, 0, 0, 0, 0, 0),  # Look left.
    (20, 0, 0, 0, 0, 0, 0),  # Look right.
    (-20, 0, 0, 1, 0, 0, 0),  # Look left and go forward.
    (20, 0, 0, 1, 0, 0, 0),  # Look right and go forward.
    (0, 0, 0, 0, 1, 0, 0),  # Fire.
)
# Test levels are drawn from seeds that training never sees.
_TEST_MIXER_SEED = 0x600D5EED
_DMLAB30 = lab_levels.DMLAB30_PREFIX
# These show photographs. The other two levels of psychlab draw their images.
_NEED_DATASET = (_DMLAB30 + 'psychlab_arbitrary_visuomotor_mapping',
                 _DMLAB30 + 'psychlab_continuous_recognition')
_FIRST_IMAGE = '0001.png'
_MAX_INSTRUCTION_LENGTH = 1024
# The renderer requires widths and heights that are multiples of this number.
_SIZE_STEP = 4
_FRAME, _INSTRUCTION = 'RGB_INTERLEAVED', 'INSTR'
_FRAMES_LEFT = 'FRAMES_REMAINING_AT_60'
_HOW_TO_INSTALL = (
    'needs Python 3.11 or older and the package deepmind_lab. PyPI does not '
    'have this package: build its wheel from '
    'https://github.com/google-deepmind/lab (with Bazel, see '
    'python/pip_package/README.md), and install the wheel, "setuptools<81" and '
    'dm-env with pip.')
# Imports of the package `deepmind_lab`, and the reason if an import is missing.
_MISSING = {
    'imp': 'whose package imports imp, which Python has up to 3.11 only: use '
           'Python 3.11 or older.',
    'pkg_resources': 'whose package imports pkg_resources: '
                     'pip install "setuptools<81".',
    'dm_env': 'whose package imports dm_env: pip install dm-env.'}


is_level = lab_levels.is_level


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return [*sorted(lab_levels.ALL_DMLAB30_LEVELS), *lab_levels.OTHER_LEVELS,
          lab_levels.SUITE]


def look_up(
    level_name: str, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments of a level, see `environments.Levels`."""
  _check_size(settings)
  arguments.check_none(level_name, settings.kwargs)
  _check_installed(level_name)
  level = _lab_level(level_name, settings.is_test)
  _check_paths(level_name, level, settings)
  return functools.partial(
      DmLab, level, lab_config(settings, settings.is_test),
      settings.num_action_repeats,
      settings.level_cache_dir, starts.num_cores())


class _Lab(Protocol):
  """The part of the API of `deepmind_lab.Lab` that is used here."""

  def reset(self, *, seed: int) -> None: ...
  def step(self, action: np.ndarray, *, num_steps: int) -> float: ...
  def action_spec(self) -> list: ...
  def is_running(self) -> bool: ...
  def observations(self) -> dict: ...
  def close(self) -> None: ...


class DmLab(gymnasium.Env):
  """An environment of one level. The first `reset` starts Lab.

  Observations are `frame`, uint8 `[height, width, 3]`, and `instruction`, which
  is empty in most levels. Actions are indices of `DEFAULT_ACTION_SET`. An
  episode is truncated if the level declares `FRAMES_REMAINING_AT_60`, and the
  last step of the episode reaches the time limit.
  """
  metadata = {'render_fps': 60}

  def __init__(self, level: str, config: Mapping[str, int | str],
               num_action_repeats: int, level_cache_dir: str = '',
               max_compilers: int = 0):
    """Makes the environment; `reset` starts Lab.

    `config` are settings of Lab, with width and height. Maps are kept in
    `level_cache_dir`, if any. At most `max_compilers` processes of the program
    compile a map at the same time; 0 for no limit.
    """
    self._level = level
    self._config = {name: str(value) for name, value in config.items()}
    self._num_action_repeats = num_action_repeats
    self._level_cache_dir = level_cache_dir
    self._max_compilers = max_compilers
    # Only a running Lab could list the observations of a level. Nearly all
    # levels have these observations, so only the first start of another level
    # fails once for each missing observation.
    self._names = [_FRAME, _INSTRUCTION, _FRAMES_LEFT]
    # Lab ignores strides, so each action must be contiguous in memory.
    self._actions = np.array(DEFAULT_ACTION_SET, np.intc, order='C')
    self._lab: _Lab | None = None
    self._maps = TurnsToCompile(None, 0)
    self._random_state = np.random.RandomState()
    size = int(config['height']), int(config['width'])
    self.observation_space = gymnasium.spaces.Dict({
        'frame': gymnasium.spaces.Box(0, 255, size + (3,), np.uint8),
        'instruction': gymnasium.spaces.Text(
            _MAX_INSTRUCTION_LENGTH, min_length=0, charset=string.printable)})
    self.action_space = gymnasium.spaces.Discrete(len(DEFAULT_ACTION_SET))

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """Begins the next episode, see `gymnasium.Env.reset`.

    A seed restarts Lab, and seeds the reference's stream of seeds, one for each
    episode. Without a seed, takes the next seed of the stream.
    """
    if seed is not None:
      # A used Lab begins an episode of the same seed at another place. Only a
      # new Lab replays the episode bit for bit.
      self.close()
      self._random_state = np.random.RandomState(seed)
    try:
      self._lab = self._lab or self._start()
      self._lab.reset(seed=int(self._random_state.randint(0, 2**31 - 1)))
    finally:
      self._maps.free()
    self._observe(self._lab)
    return self._observation, {}

  def step(self, action: int) -> base.Step:
    """Repeats an action of `DEFAULT_ACTION_SET`, see `gymnasium.Env.step`.

    The last observation of an episode is returned twice, because DeepMind Lab
    has no observation after the end.
    """
    lab = self._lab
    assert lab is not None  # Started by `reset`.
    reward = lab.step(self._actions[int(action)],
                      num_steps=self._num_action_repeats)
    ended = not lab.is_running()
    # Levels without a time limit always have 0 frames left.
    truncated = ended and 0 < self._frames_left <= self._num_action_repeats
    if not ended:
      self._observe(lab)
    return self._observation, reward, ended and not truncated, truncated, {}

  def close(self) -> None:
    """Closes DeepMind Lab; may be called again."""
    if self._lab is not None:
      self._lab.close()
      self._lab = None  # After `close`, a call may crash the process.
      self._temp_folder.cleanup()

  def _start(self) -> _Lab:
    import deepmind_lab
    # Each Lab needs its own folder, since maps have the same name in each Lab.
    self._temp_folder = tempfile.TemporaryDirectory(
        prefix='lab_', dir=processes.directory(), ignore_cleanup_errors=True)

    cache = (LocalLevelCache(self._level_cache_dir)
             if self._level_cache_dir else None)
    self._maps = TurnsToCompile(cache, self._max_compilers)
    while True:
      try:
        lab: _Lab = deepmind_lab.Lab(
            self._level, list(self._names), self._config,
            level_cache=self._maps, temp_folder=self._temp_folder.name)
        break
      except ValueError as e:  # Unknown observation 'NAME'.
        unknown = [name for name in self._names[1:] if f"'{name}'" in str(e)]
        if not unknown:
          raise
        self._names.remove(unknown[0])
    num_numbers = len(lab.action_spec())
    if num_numbers != self._actions.shape[1]:
      lab.close()
      raise errors.LevelError(
          f'{self._level} has actions of its own, of {num_numbers} numbers: '
          f'only levels with the {self._actions.shape[1]} numbers of DMLab-30 '
          'can be played.')
    return lab

  def _observe(self, lab: _Lab) -> None:
    observations = lab.observations()
    self._observation: base.FrameAndInstruction = {
        'frame': observations[_FRAME],
        'instruction': observations.get(_INSTRUCTION, '')}
    self._frames_left = float(
        observations[_FRAMES_LEFT][0] if _FRAMES_LEFT in observations
        else math.inf)


def _check_size(settings: EnvironmentSettings) -> None:
  for name in 'width', 'height':
    size = getattr(settings, name)
    if size % _SIZE_STEP:
      below = size - size % _SIZE_STEP
      raise errors.LevelError(
          f'--{name}={size} must be a multiple of {_SIZE_STEP} for levels of '
          f'DeepMind Lab, such as {below or below + _SIZE_STEP}.')


def _check_installed(level_name: str) -> None:
  try:
    import deepmind_lab  # noqa: F401
  except ImportError as e:
    what_to_do = _MISSING.get(e.name or '', f'which {_HOW_TO_INSTALL}')
    raise errors.MissingDependencyError(
        f'{level_name} is a level of DeepMind Lab, {what_to_do} ({e})') from e


def _check_paths(level_name: str, level: str,
                 settings: EnvironmentSettings) -> None:
  path = settings.dataset_path
  what_to_do = ('name the directory with the images of brady_konkle_oliva2008, '
                'see data/brady_konkle_oliva2008/README.md of DeepMind Lab.')
  # In Lab, the word `dummy` means a dataset of two colours. Without the images,
  # Lab starts and plays, and its process ends at the first image.
  if path and path != 'dummy' and not os.path.isfile(
      os.path.join(path, _FIRST_IMAGE)):
    raise errors.LevelError(
        f'dataset_path={path} has no file {_FIRST_IMAGE}: {what_to_do}')
  if level in _NEED_DATASET and not path:
    raise errors.LevelError(f'{level_name} needs dataset_path: {what_to_do}')
  try:
    if settings.level_cache_dir:
      LocalLevelCache(settings.level_cache_dir).remove_halves()
  except OSError as e:
    raise errors.LevelError(
        f'level_cache_dir={settings.level_cache_dir} cannot be used: '
        f'{e.strerror}.') from e


def _lab_level(name: str, is_test: bool) -> str:
  """Returns Lab's own name of a level."""
  if name == lab_levels.SUITE:
    raise errors.EnvironmentSpecError(
        'dmlab30 is a suite. Here, name its levels one by one: see '
        'scores.dmlab30.levels.')
  if name in lab_levels.OTHER_LEVELS:
    return name
  if name.startswith(lab_levels.ANY_PREFIX):
    return name[len(lab_levels.ANY_PREFIX):]
  level = name.removeprefix(_DMLAB30)
  if level not in lab_levels.ALL_DMLAB30_LEVELS:
    raise base.unknown_level(name, [
        _DMLAB30 + known for known in sorted(lab_levels.ALL_DMLAB30_LEVELS)])
  if level not in lab_levels.DMLAB30_LEVELS and not is_test:
    raise errors.LevelError(
        f'{name} is held out for testing: train on '
        f'{level.removesuffix("_test")}_train, or use --mode=test.')
  return _DMLAB30 + level


def lab_config(settings: EnvironmentSettings,
               is_test: bool) -> dict[str, int | str]:
  """Returns the settings of Lab.

  `is_test` allows levels that are held out, and mixes their maps as DeepMind's
  program does. compat's test environments have no `settings.is_test`.
  """
  config: dict[str, int | str] = {
      'width': settings.width, 'height': settings.height,
      'datasetPath': settings.dataset_path, 'logLevel': 'WARN'}
  if is_test:
    config |= {'allowHoldOutLevels': 'true', 'mixerSeed': _TEST_MIXER_SEED}
  return config
