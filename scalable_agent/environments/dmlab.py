# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DeepMind Lab, by its Python API.

Level names are those of DMLab-30, with or without `contributed/dmlab30/`;
`seekavoid_arena_01`, the paper's fifth single task; and `lab/NAME` for any
other level under Lab's own name for it.

Lab is not on PyPI. If it is missing, an error says how to install it. Its API:
https://github.com/google-deepmind/lab/blob/master/docs/users/python_api.md
"""

from collections.abc import Iterable, Mapping
import contextlib
import functools
import os
import shutil
import string
import tempfile
from typing import Protocol
import uuid

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.processes import processes
from scalable_agent.settings import lab_levels
from scalable_agent.settings import sections

# What is said when environments start, which may take minutes.
COMPILING = (
    'Environments of DeepMind Lab start. Many levels compile their maps first, '
    'each for 2 to 11 s of a core; --level_cache_dir keeps them.')
# The reference's actions. The numbers of an action are: look right and down, in
# pixels per frame, strafe right, move forward, fire, jump, crouch.
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
_MAX_INSTRUCTION_LENGTH = 1024
# The renderer takes no other widths and heights than multiples of it.
_SIZE_STEP = 4
_FRAME, _INSTRUCTION = 'RGB_INTERLEAVED', 'INSTR'
_HOW_TO_INSTALL = (
    'needs the package deepmind_lab, in Python 3.11 or older. It is not on '
    'PyPI: build its wheel from https://github.com/google-deepmind/lab, as '
    'python/pip_package/README.md there says (with Bazel), and install that '
    'with pip, and "setuptools<81" and dm-env.')
# What its package imports, and why that may be missing.
_MISSING = {
    'imp': 'whose package imports imp, which Python has up to 3.11 only: use '
           'Python 3.11 or older.',
    'pkg_resources': 'whose package imports pkg_resources: '
                     'pip install "setuptools<81".',
    'dm_env': 'whose package imports dm_env: pip install dm-env.'}


def is_level(level_name: str) -> bool:
  """Whether a name means a level of DeepMind Lab, or `dmlab30`."""
  return lab_levels.is_level(level_name)


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  return [*sorted(lab_levels.ALL_DMLAB30_LEVELS), *lab_levels.OTHER_LEVELS,
          lab_levels.SUITE]


def look_up(
    level_name: str, settings: sections.EnvironmentSettings) -> base.Factory:
  """Returns what builds an environment of the level.

  Args:
    level_name: as the module describes it.
    settings: `sections.EnvironmentSettings`.

  Raises:
    errors.MissingDependencyError: DeepMind Lab, or what it needs, is not
      installed.
    errors.UnknownLevelError: no such level in DMLab-30.
    errors.LevelError: the level, the size of its frames or a path does not go
      with the settings.
  """
  _check_size(settings)
  _check_installed(level_name)
  level = _lab_level(level_name, settings.is_test)
  _check_paths(level_name, level, settings)
  return functools.partial(
      DmLab, level, _lab_config(settings), settings.num_action_repeats,
      settings.level_cache_dir)


class LocalLevelCache:
  """A directory of compiled maps; many processes may share it.

  Levels that make a new map for each episode compile it first, which takes
  seconds. Nothing is ever removed.
  """

  def __init__(self, cache_dir: str):
    """Makes the directory if there is none."""
    os.makedirs(cache_dir, exist_ok=True)
    self._cache_dir = cache_dir

  def fetch(self, key: str, pk3_path: str) -> bool:
    """Copies the map of `key` to `pk3_path`; returns whether there is one."""
    try:
      shutil.copyfile(os.path.join(self._cache_dir, key), pk3_path)
    except OSError:  # It is compiled then.
      return False
    return True

  def write(self, key: str, pk3_path: str) -> None:
    """Keeps the map at `pk3_path`, unless there is one of this key."""
    path = os.path.join(self._cache_dir, key)
    if os.path.exists(path):
      return
    # Renamed when it is whole, so that no process fetches half a map.
    part = f'{path}.{uuid.uuid4().hex}'
    try:
      shutil.copyfile(pk3_path, part)
      os.replace(part, path)
    except OSError:  # A full disk, say: the map is compiled again next time.
      with contextlib.suppress(OSError):
        os.remove(part)


class _Lab(Protocol):
  """What we use of `deepmind_lab.Lab`."""

  def reset(self, *, seed: int) -> None:
    """Begins the next episode."""

  def step(self, action: np.ndarray, *, num_steps: int) -> float:
    """Acts for some frames; returns the sum of their rewards."""

  def is_running(self) -> bool:
    """Whether the episode goes on."""

  def observations(self) -> dict:
    """Returns the observations by Lab's names."""

  def close(self) -> None:
    """Ends Lab."""


class DmLab(gymnasium.Env):
  """One level. Lab itself is started by `reset`.

  Observations are `frame`, uint8 `[height, width, 3]`, and `instruction`, which
  is empty in most levels. Actions are indices of `DEFAULT_ACTION_SET`. Lab does
  not say whether a time limit ended an episode, so no episode is truncated.
  """
  metadata = {'render_fps': 60}

  def __init__(self, level: str, config: Mapping[str, str],
               num_action_repeats: int, level_cache_dir: str = ''):
    """Makes the environment; `reset` starts Lab.

    Args:
      level: Lab's name of the level.
      config: settings of Lab; width and height must be among them.
      num_action_repeats: frames per step, each with the same action.
      level_cache_dir: directory of compiled maps; '' if they are not kept.
    """
    self._level = level
    self._config = dict(config)
    self._num_action_repeats = num_action_repeats
    self._level_cache_dir = level_cache_dir
    # Lab reads what lies behind the first number, whatever the strides are.
    self._actions = np.array(DEFAULT_ACTION_SET, np.intc, order='C')
    self._lab: _Lab | None = None
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

    Args:
      seed: seeds the reference's stream of seeds, which has one for each
        episode, and starts Lab anew. None: the stream goes on.
      options: is not used.
    """
    if seed is not None:
      # A Lab that has played does not replay: the same episode and the same
      # seed begin at other places. A new one does, bit for bit.
      self.close()
      self._random_state = np.random.RandomState(seed)
    if self._lab is None:
      self._lab = self._start()
    self._lab.reset(seed=int(self._random_state.randint(0, 2**31 - 1)))
    self._observation = _observation(self._lab)
    return self._observation, {}

  def step(self, action: int) -> base.Step:
    """Takes an action, with its repeats, see `gymnasium.Env.step`.

    Args:
      action: index of an entry of `DEFAULT_ACTION_SET`.

    Returns:
      As `gymnasium.Env.step`. The observation of the end is that of the step
      before, as DeepMind Lab has none there. Nothing is ever truncated.
    """
    lab = self._lab
    assert lab is not None  # Started by `reset`.
    reward = lab.step(self._actions[int(action)],
                      num_steps=self._num_action_repeats)
    terminated = not lab.is_running()
    if not terminated:  # Lab has no observation after the end.
      self._observation = _observation(lab)
    return self._observation, reward, terminated, False, {}

  def close(self) -> None:
    """Closes DeepMind Lab; may be called again."""
    if self._lab is not None:
      self._lab.close()
      self._lab = None  # After `close`, a call may end the process.
      self._temp_folder.cleanup()

  def _start(self) -> _Lab:
    import deepmind_lab  # pylint: disable=g-import-not-at-top
    # Each Lab has its own: maps of different episodes have the same name.
    self._temp_folder = tempfile.TemporaryDirectory(
        prefix='lab_', dir=processes.directory(), ignore_cleanup_errors=True)

    def start(*observations):
      return deepmind_lab.Lab(
          self._level, list(observations), self._config,
          level_cache=(LocalLevelCache(self._level_cache_dir)
                       if self._level_cache_dir else None),
          temp_folder=self._temp_folder.name)

    # To ask for what a level declares, one has to start Lab, too. Nearly all
    # declare instructions, so only the others start it twice.
    try:
      return start(_FRAME, _INSTRUCTION)
    except ValueError:  # Unknown observation.
      return start(_FRAME)


def _observation(lab: _Lab) -> base.FrameAndInstruction:
  observations = lab.observations()
  return {'frame': observations[_FRAME],
          'instruction': observations.get(_INSTRUCTION, '')}


def _check_size(settings):
  for name in 'width', 'height':
    size = getattr(settings, name)
    if size % _SIZE_STEP:
      below = size - size % _SIZE_STEP
      raise errors.LevelError(
          f'--{name}={size} must be a multiple of {_SIZE_STEP} for levels of '
          f'DeepMind Lab, such as {below or below + _SIZE_STEP}.')


def _check_installed(level_name):
  try:
    import deepmind_lab  # noqa: F401
  except ImportError as e:
    what_to_do = _MISSING.get(e.name or '', f'which {_HOW_TO_INSTALL}')
    raise errors.MissingDependencyError(
        f'{level_name} is a level of DeepMind Lab, {what_to_do} ({e})') from e


def _check_paths(level_name, level, settings):
  path = settings.dataset_path
  what_to_do = ('name the directory with the images of brady_konkle_oliva2008, '
                'see data/brady_konkle_oliva2008/README.md of DeepMind Lab.')
  # Lab takes the word `dummy` for a dataset of two colours.
  if path and path != 'dummy' and not os.path.isdir(path):
    raise errors.LevelError(
        f'dataset_path={path} is no directory: {what_to_do}')
  if level in _NEED_DATASET and not path:
    raise errors.LevelError(f'{level_name} needs dataset_path: {what_to_do}')
  try:
    if settings.level_cache_dir:
      LocalLevelCache(settings.level_cache_dir)
  except OSError as e:
    raise errors.LevelError(
        f'level_cache_dir={settings.level_cache_dir} cannot be made: '
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


def _lab_config(settings: sections.EnvironmentSettings) -> dict[str, str]:
  config = {'width': settings.width, 'height': settings.height,
            'datasetPath': settings.dataset_path, 'logLevel': 'WARN'}
  if settings.is_test:
    config['allowHoldOutLevels'] = 'true'
    config['mixerSeed'] = _TEST_MIXER_SEED
  return {key: str(value) for key, value in config.items()}
