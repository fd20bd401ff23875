# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DeepMind Lab, by its Python API: each level in a process of its own.

Level names are those of DMLab-30, with or without `contributed/dmlab30/`;
`seekavoid_arena_01`, the paper's fifth single task; and `lab/NAME` for any
other level under Lab's own name for it.

Lab is not on PyPI: what to install is said where it is missing. Its API:
https://github.com/google-deepmind/lab/blob/master/docs/users/python_api.md
"""

import contextlib
import dataclasses
import os
import shutil
import string
from typing import Mapping, Sequence
import uuid

import gymnasium
import numpy as np

from scalable_agent import config as config_lib
from scalable_agent import errors
from scalable_agent.scores import dmlab30
from scalable_agent.environments import base
from scalable_agent.environments import gymnasium_env

# The reference's actions. Numbers of a native action: look right and down, in
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
_DMLAB30 = dmlab30.LAB_PREFIX
# Those that show photographs: the other two of psychlab draw what they show.
_NEED_DATASET = (_DMLAB30 + 'psychlab_arbitrary_visuomotor_mapping',
                 _DMLAB30 + 'psychlab_continuous_recognition')
_OTHER_LEVELS = ('seekavoid_arena_01',)
_ANY_LEVEL = 'lab/'
_MAX_INSTRUCTION_LENGTH = 1024
_HOW_TO_INSTALL = (
    'needs the package deepmind_lab. It is not on PyPI: build its wheel from '
    'https://github.com/google-deepmind/lab, as python/pip_package/README.md '
    'there says (with Bazel), and install that with pip.')


def is_level(name: str) -> bool:
  """Whether a name is meant for DeepMind Lab; `dmlab30` is, too."""
  return (name in dmlab30.ALL_LEVELS or name in _OTHER_LEVELS
          or name.startswith((_DMLAB30, _ANY_LEVEL)) or name == 'dmlab30')


class LocalLevelCache:
  """Compiled maps in a directory, which any number of processes may share.

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
    except FileNotFoundError:
      return False
    return True

  def write(self, key: str, pk3_path: str) -> None:
    """Keeps the map at `pk3_path`, unless there is one of this key."""
    path = os.path.join(self._cache_dir, key)
    if os.path.exists(path):
      return
    # Renamed at the end, so that nobody ever fetches half a map.
    part = f'{path}.{uuid.uuid4().hex}'
    shutil.copyfile(pk3_path, part)
    os.replace(part, path)


class DmLab(gymnasium.Env):
  """One level. Lab itself is started by the first `reset`.

  Observations are `frame`, uint8 `[height, width, 3]`, and `instruction`, which
  is empty in most levels. Actions are indices of `DEFAULT_ACTION_SET`. Lab does
  not tell time limits from other ends, so no episode is ever truncated.
  """

  def __init__(self, level: str, config: Mapping[str, str],
               num_action_repeats: int, level_cache_dir: str = ''):
    """Starts nothing yet.

    Args:
      level: Lab's name of the level.
      config: settings of Lab; width and height must be among them.
      num_action_repeats: frames per step, each with the same action.
      level_cache_dir: where compiled maps are kept; '' for nowhere.
    """
    self._level = level
    self._config = dict(config)
    self._num_action_repeats = num_action_repeats
    self._level_cache_dir = level_cache_dir
    self._actions = np.array(DEFAULT_ACTION_SET, np.intc)
    self._lab = None
    self._observation = None
    size = int(config['height']), int(config['width'])
    self.observation_space = gymnasium.spaces.Dict({
        'frame': gymnasium.spaces.Box(0, 255, size + (3,), np.uint8),
        'instruction': gymnasium.spaces.Text(
            _MAX_INSTRUCTION_LENGTH, min_length=0, charset=string.printable)})
    self.action_space = gymnasium.spaces.Discrete(len(DEFAULT_ACTION_SET))

  def reset(self, *, seed=None, options=None):
    if self._lab is None or seed is not None:
      # The reference's stream of seeds. Lab counts episodes by itself, but
      # never back to 0, which starting anew must.
      self._random_state = np.random.RandomState(seed)
      self._episode = 0
    if self._lab is None:
      self._lab = self._start()
    self._lab.reset(episode=self._episode,
                    seed=int(self._random_state.randint(0, 2**31 - 1)))
    self._episode += 1
    self._observe()
    return self._observation, {}

  def step(self, action):
    reward = self._lab.step(self._actions[int(action)],
                            num_steps=self._num_action_repeats)
    terminated = not self._lab.is_running()
    if not terminated:  # Else there is none, and the last one stands in.
      self._observe()
    return self._observation, reward, terminated, False, {}

  def close(self):
    if self._lab is not None:
      self._lab.close()
      self._lab = None

  def _start(self):
    import deepmind_lab  # pylint: disable=g-import-not-at-top
    return deepmind_lab.Lab(
        self._level, ['RGB_INTERLEAVED', 'INSTR'], self._config,
        level_cache=(LocalLevelCache(self._level_cache_dir)
                     if self._level_cache_dir else None))

  def _observe(self):
    observations = self._lab.observations()
    self._observation = {'frame': observations['RGB_INTERLEAVED'],
                         'instruction': observations['INSTR']}


class DmLabVector(gymnasium_env.GymnasiumVector):
  """`E` levels, one per process; implements `base.VectorEnvironment`."""

  def __init__(self, level_names: Sequence[str], seeds: Sequence[int],
               settings: config_lib.EnvironmentSettings):
    """Starts one process per level; Lab is started by `initial`.

    Args:
      level_names: `E` names, as the module describes them.
      seeds: `E` ints within `[0, 2**31)`.
      settings: `config_lib.EnvironmentSettings`.

    Raises:
      errors.MissingDependencyError: DeepMind Lab is not installed.
      errors.UnknownLevelError: no such level in DMLab-30.
      errors.LevelError: the level or a path does not go with the settings.
      errors.EnvironmentProcessError: a process died while starting.
    """
    _check_installed(level_names[0])
    levels = {name: _lab_level(name, settings.is_test)
              for name in dict.fromkeys(level_names)}
    _check_paths(levels, settings)
    with _registered(levels, settings) as ids:
      super().__init__(
          [ids[name] for name in level_names], seeds,
          # Lab repeats actions itself, without rendering in between.
          dataclasses.replace(settings, num_action_repeats=1))
    self.num_action_repeats = settings.num_action_repeats


def _check_installed(level_name):
  try:
    import deepmind_lab  # pylint: disable=g-import-not-at-top,unused-import
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} is a level of DeepMind Lab, which {_HOW_TO_INSTALL} '
        f'({e})') from e


def _check_paths(levels, settings):
  path = settings.dataset_path
  what_to_do = ('name the directory with the images of brady_konkle_oliva2008, '
                'see data/brady_konkle_oliva2008/README.md of DeepMind Lab.')
  # A dummy is what Lab takes for a dataset of two colours.
  if path and path != 'dummy' and not os.path.isdir(path):
    raise errors.LevelError(
        f'dataset_path={path} is no directory: {what_to_do}')
  for name, level in levels.items():
    if level in _NEED_DATASET and not path:
      raise errors.LevelError(f'{name} needs dataset_path: {what_to_do}')
  try:
    if settings.level_cache_dir:
      LocalLevelCache(settings.level_cache_dir)
  except OSError as e:
    raise errors.LevelError(f'level_cache_dir={settings.level_cache_dir} cannot '
                          f'be made: {e.strerror}.') from e


def _lab_level(name: str, is_test: bool) -> str:
  """Returns Lab's own name of a level."""
  if name == 'dmlab30':
    raise errors.EnvironmentSpecError(
        'dmlab30 is a suite: here its levels are named one by one, see '
        'dmlab30.levels.')
  if name in _OTHER_LEVELS:
    return name
  if name.startswith(_ANY_LEVEL):
    return name[len(_ANY_LEVEL):]
  level = name.removeprefix(_DMLAB30)
  if level not in dmlab30.ALL_LEVELS:
    raise base.unknown_level(
        name, [_DMLAB30 + known for known in sorted(dmlab30.ALL_LEVELS)])
  if level not in dmlab30.LEVEL_MAPPING and not is_test:
    raise errors.LevelError(
        f'{name} is held out for testing: train on '
        f'{level.removesuffix("_test")}_train, or test with --mode=test.')
  return _DMLAB30 + level


def _lab_config(settings: config_lib.EnvironmentSettings) -> dict[str, str]:
  config = {'width': settings.width, 'height': settings.height,
            'datasetPath': settings.dataset_path, 'logLevel': 'WARN'}
  if settings.is_test:
    config['allowHoldOutLevels'] = 'true'
    config['mixerSeed'] = _TEST_MIXER_SEED
  return {key: str(value) for key, value in config.items()}


@contextlib.contextmanager
def _registered(levels: Mapping[str, str],
                settings: config_lib.EnvironmentSettings):
  """Registers levels with gymnasium while workers start, with their settings.

  Args:
    levels: Lab's names by level name.
    settings: `config_lib.EnvironmentSettings`.

  Yields:
    Ids by level name, fit to be read in errors.
  """
  ids = {name: name.replace('/', '.') for name in levels}
  for name, level in levels.items():
    gymnasium.register(
        ids[name], f'{__name__}:DmLab', disable_env_checker=True,
        kwargs=dict(level=level, config=_lab_config(settings),
                    num_action_repeats=settings.num_action_repeats,
                    level_cache_dir=settings.level_cache_dir))
  try:
    yield ids
  finally:
    for env_id in ids.values():
      del gymnasium.registry[env_id]
