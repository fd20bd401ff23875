# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A fake of DeepMind Lab with exactly its Python API and its checks.

https://github.com/google-deepmind/lab describes the API in
docs/users/python_api.md and implements it in python/dmlab_module.c. The world
is noise: everything in an episode follows from the level, `mixerSeed`, seed and
number of the episode, and the actions of its frames.

Levels: those of DMLab-30, and, as examples of others, `seekavoid_arena_01`,
`tests/show_config`, whose instruction is its settings, `tests/exit`, which ends
the process in its fifth frame, and `tests/no_start`, which cannot be started.
"""

import hashlib
import json
import os
import tempfile

import numpy as np

_LEVELS = ('seekavoid_arena_01', 'tests/show_config', 'tests/exit',
           'tests/no_start')
_DMLAB30 = 'contributed/dmlab30/'
_ACTIONS = (('LOOK_LEFT_RIGHT_PIXELS_PER_FRAME', -512, 512),
            ('LOOK_DOWN_UP_PIXELS_PER_FRAME', -512, 512),
            ('STRAFE_LEFT_RIGHT', -1, 1), ('MOVE_BACK_FORWARD', -1, 1),
            ('FIRE', 0, 1), ('JUMP', 0, 1), ('CROUCH', 0, 1))
_WORDS = ('red', 'blue', 'ball', 'suitcase', 'go', 'to', 'the', 'pick', 'up')
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

  # What was asked of the instances of this process, for tests to read.
  calls = []

  def __init__(self, level, observations, config={}, renderer='software',  # noqa: B006
               level_cache=None):
    self._status = 'closed'
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
    if renderer not in ('software', 'hardware'):
      raise RuntimeError('Failed to set renderer must be "hardware" or '
                         f'"software" actual "{renderer}"!')
    self._config = {'width': '320', 'height': '240', 'mixerSeed': '0',
                    'allowHoldOutLevels': 'false', **config}
    name = level.removeprefix(_DMLAB30)
    if not level.startswith(_DMLAB30) and level not in _LEVELS:
      raise RuntimeError(f"Invalid levelName flag '{level}' - \"no such file\"")
    if name.endswith('_test') and self._config['allowHoldOutLevels'] != 'true':
      raise RuntimeError('Failed to init environment - "This level must only '
                         'be used during evaluation."')
    if level == 'tests/no_start':
      raise RuntimeError('Failed to init environment - "no dataset"')
    known = [spec['name'] for spec in self.observation_spec()]
    for observation in observations:
      if observation not in known:
        raise ValueError(f"Unknown observation '{observation}'.")
    self._level = level
    self._observations = observations
    self._level_cache = level_cache
    self._episode = 0
    self._num_steps = 0
    self._status = 'uninitialized'
    self.calls.append(('Lab', level, observations, dict(config), renderer))

  def reset(self, episode=-1, seed=None):
    if not isinstance(episode, int):
      raise TypeError(f'an integer is required (got {type(episode).__name__})')
    if seed is not None and not isinstance(seed, int):
      raise ValueError("'seed' must be int or None, was "
                       f"'{type(seed).__name__}'.")
    if self._status == 'closed':
      raise RuntimeError('Failed to start environment - "closed"')
    if seed is None:
      seed = int(np.random.randint(2**31))
    if episode >= 0:
      self._episode = episode
    self.calls.append(('reset', self._episode, seed))
    self._key = hashlib.md5(json.dumps(
        [self._level, self._config['mixerSeed'], self._episode, seed]
    ).encode()).hexdigest()
    self._random = np.random.default_rng(
        list(hashlib.md5(self._load_map()).digest()))
    self._length = int(self._random.integers(30, 90))
    self._instruction = self._make_instruction()
    self._num_steps = 0
    self._episode += 1
    self._draw(np.zeros([len(_ACTIONS)], np.intc))
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
    if not isinstance(num_steps, int):
      raise TypeError('an integer is required')
    if not self.is_running():
      raise RuntimeError('Environment in wrong status to advance.')
    if action.shape != (len(_ACTIONS),):
      raise ValueError(f'action must have shape ({len(_ACTIONS)})')
    if action.dtype != np.intc:
      raise ValueError('action must have dtype np.intc')
    self.calls.append(('step', tuple(action.tolist()), num_steps))
    reward = 0.0
    for frame in range(num_steps):
      reward += self._draw(action)
      if self._level == 'tests/exit' and self._num_steps + frame == 4:
        os._exit(7)
      if self._num_steps + frame + 1 == self._length:
        self._status = 'terminated'
        break
    self._num_steps += num_steps  # As Lab counts: also those after the end.
    return reward

  def observation_spec(self):
    height, width = int(self._config['height']), int(self._config['width'])
    return [
        {'name': 'RGB_INTERLEAVED', 'dtype': np.uint8,
         'shape': (height, width, 3)},
        {'name': 'INSTR', 'dtype': str, 'shape': ()}]

  def observations(self):
    if not self.is_running():
      raise RuntimeError(
          'Environment in wrong status for call to observations()')
    values = {'RGB_INTERLEAVED': self._frame.copy(),
              'INSTR': self._instruction}
    return {name: values[name] for name in self._observations}

  def events(self):
    if self._status not in ('running', 'terminated'):
      raise RuntimeError('Environment in wrong status for call to events()')
    return []

  def fps(self):
    return 60

  def action_spec(self):
    return [{'name': name, 'min': low, 'max': high}
            for name, low, high in _ACTIONS]

  def close(self):
    self.calls.append(('close',))
    was_open, self._status = self._status != 'closed', 'closed'
    return was_open

  def _load_map(self):
    """Fetches the map of the episode, or compiles and writes it."""
    with tempfile.TemporaryDirectory() as directory:
      pk3_path = os.path.join(directory, 'map.pk3')
      if not (self._level_cache is not None
              and self._level_cache.fetch(self._key, pk3_path)):
        with open(pk3_path, 'wb') as f:
          f.write(self._key.encode())
        if self._level_cache is not None:
          self._level_cache.write(self._key, pk3_path)
      with open(pk3_path, 'rb') as f:
        return f.read()

  def _make_instruction(self):
    if self._level == 'tests/show_config':
      return json.dumps(self._config, sort_keys=True)
    if not self._level.startswith(_DMLAB30 + 'language_'):
      return ''
    return ' '.join(self._random.choice(_WORDS, self._random.integers(1, 6)))

  def _draw(self, action):
    """Draws a frame; returns its reward. Both depend on the action."""
    height, width = int(self._config['height']), int(self._config['width'])
    self._frame = self._random.integers(
        256, size=(height, width, 3), dtype=np.uint8)
    self._frame[0, 0] = action[[0, 2, 3]].astype(np.uint8)
    return float(action @ np.arange(1, 8)) / 8 + float(self._random.random())
