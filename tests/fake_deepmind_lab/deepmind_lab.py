# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A fake of DeepMind Lab, with the Python API and the checks of DeepMind Lab.

https://github.com/google-deepmind/lab describes the API in
docs/users/python_api.md and implements this API in python/dmlab_module.c. Facts
that were found by running DeepMind Lab hold here, too: see "DeepMind Lab" in
docs/decisions.md. The world is noise: an episode follows from the level,
`mixerSeed`, seed and number of the episode, the actions of the frames, and how
many episodes this instance has begun before; in lasertag, also from the clock.

Levels: those of DMLab-30, `seekavoid_arena_01`, `tests/empty_room_test`,
`tests/event_test`, and

*   `tests/show_config`, whose instruction is its settings; without time limit,
*   `tests/exit`, which ends the process in its fifth frame,
*   `tests/no_map`, whose map is missing,
*   `tests/lua_error`, which has a mistake in its second frame,
*   `tests/goal`, which ends at a goal, 30 frames before its time limit,
*   `tests/goal_only`, which has no time limit, and so 0 frames left,
*   `tests/custom_actions_test`, which has two more actions,
*   `tests/compiles`, whose map takes 30 s to compile.
"""

import ctypes
import hashlib
import json
import operator
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time

import numpy as np
from scalable_agent.scores import dmlab30

_DMLAB30 = 'contributed/dmlab30/'
_NUM_FRAMES = {'seekavoid_arena_01': 1_200, 'tests/empty_room_test': 216_000,
               'tests/event_test': 60, 'tests/goal': 60,
               'tests/goal_only': 0}
_NUM_FRAMES_TO_GOAL = {'tests/goal': 30, 'tests/goal_only': 30}
_OTHER_NUM_FRAMES = 1_800  # In truth, they differ.
_LEVELS = {*(_DMLAB30 + name for name in dmlab30.ALL_LEVELS), *_NUM_FRAMES,
           'tests/show_config', 'tests/exit', 'tests/no_map', 'tests/lua_error',
           'tests/compiles', 'tests/custom_actions_test'}
# Other levels make a map for each episode, from few different maps.
_PREBUILT = ('seekavoid_', 'psychlab_', 'rooms_', 'natlab_', 'tests/e',
             'tests/s', 'tests/g', 'tests/cu')
_NUM_MAPS = 5
_UNDECORATED = ('tests/event_test',)
_WITHOUT_TIME_LIMIT = ('tests/show_config', *_UNDECORATED)
_NUM_PLAYERS = {'one_opponent': 2, 'three_opponents': 4}
# Numbers as `strtol` reads numbers, up to the end of the text.
_NUMBER = re.compile(r'\s*[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)')
# Lua's `setting_overrides` knows these settings of all levels.
_SETTINGS_OF_LEVELS = (
    'episodeLengthSeconds', 'invocationMode', 'levelGenerator', 'playerId',
    'players', 'randomSeed', 'datasetPath', 'enableCameraMovement')
_DATASETS = ('psychlab_arbitrary_visuomotor_mapping',
             'psychlab_continuous_recognition')
_FIRST_IMAGE_FRAME = 3
_NUM_DESCRIPTORS, _MAX_LABS = 7, 240
_ACTIONS = (('LOOK_LEFT_RIGHT_PIXELS_PER_FRAME', -512, 512),
            ('LOOK_DOWN_UP_PIXELS_PER_FRAME', -512, 512),
            ('STRAFE_LEFT_RIGHT', -1, 1), ('MOVE_BACK_FORWARD', -1, 1),
            ('FIRE', 0, 1), ('JUMP', 0, 1), ('CROUCH', 0, 1))
_OWN_ACTIONS = {
    'tests/custom_actions_test': (('OWN_A', 0, 1), ('OWN_B', -1, 1))}
# H and W are those of the settings, 0 is the number of players.
_BUILT_IN = """
    RGB_INTERLEAVED u1 H W 3, RGBD_INTERLEAVED u1 H W 4, RGB u1 3 H W,
    RGBD u1 4 H W, BGR_INTERLEAVED u1 H W 3, BGRD_INTERLEAVED u1 H W 4,
    MAP_FRAME_NUMBER f8 1, RGB_INTERLACED u1 H W 3, RGBD_INTERLACED u1 H W 4"""
# Lua's custom_observations and debug_observations add these observations to
# nearly all levels.
_DECORATION = """
    VEL.TRANS f8 3, VEL.ROT f8 3, INSTR str, TEAM.SCORE f8 2,
    FRAMES_REMAINING_AT_60 f8 1, DEBUG.CAMERA_INTERLEAVED.TOP_DOWN u1 H W 3,
    DEBUG.CAMERA_INTERLEAVED.PLAYER_VIEW u1 H W 3,
    DEBUG.CAMERA_INTERLEAVED.PLAYER_VIEW_NO_RETICLE u1 H W 3,
    DEBUG.CAMERA.TOP_DOWN u1 3 H W, DEBUG.CAMERA.PLAYER_VIEW u1 3 H W,
    DEBUG.CAMERA.PLAYER_VIEW_NO_RETICLE u1 3 H W, DEBUG.MAZE.LAYOUT str,
    DEBUG.MAZE.VARIATION str, DEBUG.POS.TRANS f8 3, DEBUG.POS.ROT f8 3,
    DEBUG.PLAYER_ID u1 1, DEBUG.PLAYERS.ARMOR f8 0, DEBUG.PLAYERS.GADGET f8 0,
    DEBUG.PLAYERS.GADGET_AMOUNT f8 0, DEBUG.PLAYERS.HEALTH f8 0,
    DEBUG.PLAYERS.HOLDING_FLAG f8 0, DEBUG.PLAYERS.ID u1 0,
    DEBUG.PLAYERS.EYE.POS f8 0 3, DEBUG.PLAYERS.EYE.ROT f8 0 3,
    DEBUG.PLAYERS.VELOCITY f8 0 3, DEBUG.PLAYERS.NAME str,
    DEBUG.PLAYERS.TEAM f8 0, DEBUG.PLAYERS.CAPTURES f8 0,
    DEBUG.PLAYERS.SCORE f8 0, DEBUG.PLAYERS.IS_BOT u1 0, DEBUG.FLAGS.RED f8 5,
    DEBUG.FLAGS.BLUE f8 5, DEBUG.FLAGS.RED_HOME f8 4,
    DEBUG.FLAGS.BLUE_HOME f8 4"""
_DTYPES = {'u1': np.uint8, 'f8': np.float64, 'str': str}
_WORDS = ('red', 'blue', 'ball', 'suitcase', 'go', 'to', 'the', 'pick', 'up')
READABLE, WRITABLE, LISTABLE = 1, 2, 4
# The compiler of maps is a shell with programs, which also write files.
# Signals to other processes do not end the compiler.
_COMPILER = """
trap '' INT TERM HUP
(for i in $(seq 300); do
  mkdir -p {folder}/baselab/maps; date > {folder}/baselab/maps/$i; sleep 0.1
done; true)"""
# Calls hold the interpreter's lock, as all of Lab's do.
_C = ctypes.PyDLL(None)
_C.popen.restype = ctypes.c_void_p
_C.pclose.argtypes = [ctypes.c_void_p]
_runfiles_path = os.path.dirname(os.path.abspath(__file__))


def version():
  return '1.0'


def runfiles_path():
  return _runfiles_path


def set_runfiles_path(path):
  global _runfiles_path
  _runfiles_path = path
  return True


class Lab:
  """The only class of the module."""

  __slots__ = ('_status', '_owns_folder', '_folder', '_config', '_level',
               '_name', '_level_cache', '_observations', '_episode',
               '_num_starts', '_num_steps', '_state', '_instruction', '_action')
  # The calls of the instances of this process, for tests to read.
  calls = []
  # Open in this process, which dies after _MAX_LABS.
  descriptors = []

  def __init__(self, level, observations, config={}, renderer='software',  # noqa: B006
               level_cache=None, temp_folder=None):
    self._status = 'closed'
    self._keep_descriptors()
    self._check_types(level, observations, config, renderer)
    self._owns_folder = temp_folder is None
    self._folder = temp_folder or tempfile.mkdtemp(prefix='dmlab_temp_folder_')
    self._status = 'uninitialized'
    self._config = {'width': '320', 'height': '240', 'mixerSeed': '0',
                    'allowHoldOutLevels': 'false'}
    self._level = level
    for name, value in config.items():
      self._set(name, value)
    self._name = level.removeprefix(_DMLAB30)
    self._level_cache = level_cache
    self._check_level()
    known = [spec['name'] for spec in self.observation_spec()]
    for observation in observations:
      if observation not in known:
        raise ValueError(f"Unknown observation '{observation}'.")
    self._observations = observations
    self._episode = 0
    self._num_starts = 0
    self._num_steps = 0
    self.calls.append(('Lab', level, observations, dict(config), renderer))

  def __init_subclass__(cls):
    raise TypeError("type 'deepmind_lab.Lab' is not an acceptable base type")

  def __reduce_ex__(self, protocol):
    raise TypeError("cannot pickle 'deepmind_lab.Lab' object")

  def __del__(self):
    if getattr(self, '_status', 'closed') != 'closed':
      self._release()

  def reset(self, episode=-1, seed=None):
    episode = _c_int(episode)
    if seed is not None and not isinstance(seed, int):
      raise ValueError("'seed' must be int or None, was "
                       f"'{type(seed).__name__}'.")
    self._end_process_if_closed()
    if seed is None:
      seed = int(np.random.randint(2**31))
    _check_long(seed)
    if episode >= 0:
      self._episode = episode
    self.calls.append(('reset', self._episode, seed))
    if self._level == 'tests/no_map':
      # Lab calls `exit`, which does not come back to Python.
      _print_error("Didn't find map 'no_map'\n: No such file or directory")
      os._exit(1)
    world = [self._level, self._config['mixerSeed'], self._episode, seed,
             self._num_starts]
    if self._name.startswith('lasertag_'):
      world.append(time.monotonic_ns())  # Bots plan routes by the clock.
    if self._makes_maps():
      world.append(self._load_map(f'maze_{seed % _NUM_MAPS}'))
    self._state = int.from_bytes(
        hashlib.md5(json.dumps(world).encode()).digest()[:8], 'big')
    self._instruction = self._make_instruction()
    self._action = np.zeros([len(self.action_spec())], np.intc)
    self._num_steps = 0
    self._num_starts += 1
    self._episode += 1
    self._status = 'running'
    return True

  def num_steps(self):
    return self._num_steps

  def is_running(self):
    return self._status == 'running'

  def step(self, action, num_steps=1):
    if not isinstance(action, np.ndarray):
      raise TypeError('argument 1 must be numpy.ndarray, not '
                      f'{type(action).__name__}')
    num_steps = _c_int(num_steps)
    if not self.is_running():
      raise RuntimeError('Environment in wrong status to advance.')
    num_numbers = len(self._action)
    if action.shape != (num_numbers,):
      raise ValueError(f'action must have shape ({num_numbers})')
    if action.dtype.num != np.dtype(np.intc).num:  # Of any order of bytes.
      raise ValueError('action must have dtype np.intc')
    # Lab ignores strides and the order of bytes.
    numbers = (ctypes.c_int * num_numbers).from_address(action.ctypes.data)
    self._action = np.array(numbers, np.intc)
    self.calls.append(('step', tuple(numbers), num_steps))
    reward = 0.0
    for frame in range(self._num_steps + 1, self._num_steps + num_steps + 1):
      reward += self._advance(tuple(numbers))
      if self._level == 'tests/exit' and frame == 5:
        os._exit(7)
      if self._level == 'tests/lua_error' and frame == 2:
        _print_error(f"{self._script()}:12: attempt to index a nil value")
        os.abort()
      if self._name in _DATASETS and frame == _FIRST_IMAGE_FRAME:
        self._show_image()
      if frame in (self._num_frames(), _NUM_FRAMES_TO_GOAL.get(self._level)):
        self._status = 'terminated'
        break
    self._num_steps += num_steps  # Lab counts also frames after the end.
    return reward

  def observation_spec(self):
    return self._spec(num_players=0)

  def _spec(self, num_players):
    text = _BUILT_IN
    if self._level not in _UNDECORATED:
      text += ',' + _DECORATION
    sizes = {'H': int(self._config['height'], 0), '0': num_players,
             'W': int(self._config['width'], 0)}
    return [{'name': name, 'dtype': _DTYPES[dtype],
             'shape': tuple(sizes[n] if n in sizes else int(n)
                            for n in shape)}
            for name, dtype, *shape in map(str.split, text.split(','))
            if name != 'FRAMES_REMAINING_AT_60'
            or self._level not in _WITHOUT_TIME_LIMIT]

  def observations(self):
    if not self.is_running():
      raise RuntimeError(
          'Environment in wrong status for call to observations()')
    num_players = next((number for name, number in _NUM_PLAYERS.items()
                        if name in self._level), 1)
    specs = {spec['name']: spec for spec in self._spec(num_players)}
    values = {name: '' if specs[name]['dtype'] is str else np.zeros(
                  specs[name]['shape'], specs[name]['dtype'])
              for name in self._observations}
    if 'FRAMES_REMAINING_AT_60' in values:
      values['FRAMES_REMAINING_AT_60'][0] = max(
          self._num_frames() - self._num_steps, 0)
    if 'INSTR' in values:
      values['INSTR'] = self._instruction
    if 'RGB_INTERLEAVED' in values:
      frame = np.random.default_rng(self._state).integers(
          256, size=values['RGB_INTERLEAVED'].shape, dtype=np.uint8)
      frame[0, 0] = self._action[[0, 2, 3]].astype(np.uint8)
      values['RGB_INTERLEAVED'] = frame
    return values

  def events(self):
    if self._status not in ('running', 'terminated'):
      raise RuntimeError('Environment in wrong status for call to events()')
    return []

  def action_spec(self):
    return [{'name': name, 'min': low, 'max': high} for name, low, high
            in (*_ACTIONS, *_OWN_ACTIONS.get(self._level, ()))]

  def properties(self, key=''):
    self._end_process_if_closed()
    if key not in ('', 'engine'):
      self.read_property(key)
      raise TypeError(f"'{key}' not listable.")
    return {'engine.fps': READABLE} if key else {'engine': LISTABLE}

  def read_property(self, key):
    self._end_process_if_closed()
    if key == 'engine':
      raise TypeError(f"'{key}' not readable.")
    if key != 'engine.fps':
      raise KeyError(f"'{key}' not found.")
    return '60'

  def write_property(self, key, value):
    del value
    self._end_process_if_closed()
    if key not in ('engine', 'engine.fps'):
      raise KeyError(f"'{key}' not found.")
    raise TypeError(f"'{key}' not writable.")

  def close(self):
    self.calls.append(('close',))
    was_open = self._status != 'closed'
    if was_open:
      self._release()
    return was_open

  def _end_process_if_closed(self):
    if self._status == 'closed':
      os.kill(os.getpid(), signal.SIGSEGV)

  def _keep_descriptors(self):
    """Opens descriptors, which `close` does not close."""
    self.descriptors.extend(os.open(os.devnull, os.O_RDONLY)
                            for _ in range(_NUM_DESCRIPTORS))
    if len(self.descriptors) > _NUM_DESCRIPTORS * _MAX_LABS:
      _print_error('dlopen: cannot load any more object')
      os._exit(1)

  def _release(self):
    self._status = 'closed'
    if self._owns_folder:
      shutil.rmtree(self._folder, ignore_errors=True)

  def _check_types(self, level, observations, config, renderer):
    if not isinstance(level, str):
      raise TypeError(f'argument 1 must be str, not {type(level).__name__}')
    if not isinstance(observations, list):
      raise TypeError(
          f'argument 2 must be list, not {type(observations).__name__}')
    if not isinstance(config, dict):
      raise TypeError(f'argument 3 must be dict, not {type(config).__name__}')
    for text in (*config, *config.values()):
      if not isinstance(text, str):
        raise TypeError('bad argument type for built-in operation')
    if renderer not in ('', 'software', 'hardware'):
      raise RuntimeError('Failed to set renderer must be "hardware" or '
                         f'"software" actual "{renderer}"!')

  def _set(self, name, value):
    error = ''
    if name in ('width', 'height', 'mixerSeed', 'fps'):
      if not _NUMBER.fullmatch(value):
        error = f'Invalid int setting {value}\n'
      else:
        number = int(value, 0)
        if name == 'mixerSeed' and not 0 <= number < 2**32:
          error = ('Invalid mixerSeed value, must be a positive integer not '
                   "greater than '4294967295'.")
        elif name in ('width', 'height') and (number < 4 or number % 4):
          error = (f"'{name}' must be a positive multiple of 4. "
                   f'Actual {number}')
    if error:
      raise RuntimeError(
          f"Failed to apply setting '{name} = {value}' - \"{error}\"")
    self._config[name] = value

  def _check_level(self):
    error = ''
    if self._level not in _LEVELS:
      error = f"Level not found: Failed to open file '{self._script()}'"
    elif (self._name.endswith('_test')
          and self._config['allowHoldOutLevels'] != 'true'
          and self._level.startswith(_DMLAB30)):
      error = 'This level must only be used during evaluation.'
    for name, value in self._config.items():
      if name not in (*_SETTINGS_OF_LEVELS, 'width', 'height', 'mixerSeed',
                      'fps', 'allowHoldOutLevels', 'logLevel'):
        error = error or f'Invalid setting: "{name}" = "{value}"'
    if error:
      raise RuntimeError(f'Failed to init environment - "{error}"')

  def _show_image(self):
    image = os.path.join(self._config.get('datasetPath', ''), '0001.png')
    if not os.path.exists(image) and self._config['datasetPath'] != 'dummy':
      _print_error(f"{self._script()}:12: Failed to load '{image}'")
      os.abort()

  def _script(self):
    return os.path.join(_runfiles_path, 'baselab', 'game_scripts', 'levels',
                        f'{self._level}.lua')

  def _makes_maps(self):
    return not self._name.startswith(_PREBUILT)

  def _load_map(self, name):
    """Fetches a map, or compiles and writes the map; returns its text."""
    text = f'{self._level} {self._config["mixerSeed"]} {name}'
    key = f'{name}_noaas_{hashlib.md5(text.encode()).hexdigest()}'
    pk3_path = os.path.join(self._folder, 'baselab', f'{name}.pk3')
    os.makedirs(os.path.dirname(pk3_path), exist_ok=True)
    if not (self._level_cache is not None
            and self._level_cache.fetch(key, pk3_path)):
      if self._level == 'tests/compiles':
        _C.pclose(_C.popen(_COMPILER.format(
            folder=shlex.quote(self._folder)).encode(), b'r'))
      with open(pk3_path, 'w') as f:
        f.write(text)
      if self._level_cache is not None:
        self._level_cache.write(key, pk3_path)
    if not os.path.exists(pk3_path):  # The cache has copied nothing.
      _print_error(f"Couldn't load maps/{name}.bsp")
      os._exit(1)
    with open(pk3_path) as f:
      return f.read()

  def _num_frames(self):
    return _NUM_FRAMES.get(self._level, _OTHER_NUM_FRAMES)

  def _make_instruction(self):
    if self._level == 'tests/show_config':
      return json.dumps(self._config, sort_keys=True)
    if not self._name.startswith('language_'):
      return ''
    rng = np.random.default_rng(self._state)
    return ' '.join(rng.choice(_WORDS, rng.integers(1, 6)))

  def _advance(self, action):
    """Goes on by a frame; returns the reward of the frame."""
    self._state = (self._state * 6364136223846793005 + hash(action)
                   + 1442695040888963407) % 2**64
    if self._name.startswith('seekavoid_') and not any(action):
      return 0.0
    draw = self._state >> 56
    return float({0: 1, 1: 10, 2: -1}.get(draw, 0))


def _check_long(number):
  if not -2**63 <= number < 2**63:
    raise OverflowError('Python int too large to convert to C long')


def _c_int(value):
  number = operator.index(value)
  _check_long(number)
  if not -2**31 <= number < 2**31:
    raise OverflowError('signed integer is ' + (
        'greater than maximum' if number > 0 else 'less than minimum'))
  return number


def _print_error(text):
  sys.stderr.write(text + '\n')
  sys.stderr.flush()
