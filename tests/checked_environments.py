# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments for the tests of check mode, `checked/<class name>-v0`."""

import signal
import time
import warnings

import gymnasium
from gymnasium import spaces
import numpy as np


class _Checked(gymnasium.Env):
  """Random numbers; an episode has ten steps."""
  observation_space = spaces.Box(-1, 1, (3,), np.float32)
  action_space = spaces.Discrete(2)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self._observation(), {}

  def step(self, action):
    assert self.action_space.contains(action), action
    self._steps += 1
    return self._observation(), 1., self._steps == 10, False, {}

  def _observation(self):
    return self.np_random.uniform(-1, 1, 3).astype(np.float32)


class Plain(_Checked):
  pass


class Chance(_Checked):
  """Episodes end by chance."""

  def step(self, action):
    return self._observation(), 1., self.np_random.random() < .1, False, {}


class Images(_Checked):
  observation_space = spaces.Box(0, 255, (3, 64, 64), np.uint8)
  action_space = spaces.MultiBinary(3)

  def _observation(self):
    return self.np_random.integers(256, size=(3, 64, 64), dtype=np.uint8)


class Places(_Checked):
  """A Discrete observation, and a Discrete action from 1 on."""
  observation_space = spaces.Discrete(3000)
  action_space = spaces.Discrete(2, start=1)

  def _observation(self):
    return self.np_random.integers(3000)


class Grey(_Checked):
  observation_space = spaces.Box(0, 255, (84, 84), np.uint8)

  def _observation(self):
    return self.np_random.integers(256, size=(84, 84), dtype=np.uint8)


class NoSpaces(_Checked):
  observation_space = action_space = None


class Nothing(_Checked):
  """Returns None where the constructor says."""

  def __init__(self, place):
    self._place = place

  def step(self, action):
    result = list(super().step(action))
    result[self._place] = None
    return tuple(result)


class Endless(_Checked):
  """Never ends, and never gives a reward."""

  def step(self, action):
    return super().step(action)[0], 0., False, False, {}


class Hangs(_Checked):
  """A method never ends."""

  def __init__(self, method, is_deaf=False):
    self._method = method
    if is_deaf:  # As in code of C, which no signal interrupts.
      signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    if method == '__init__':
      time.sleep(10_000)

  def reset(self, *, seed=None, options=None):
    if self._method == 'reset':
      time.sleep(10_000)
    return super().reset(seed=seed)

  def step(self, action):
    time.sleep(10_000)


class Unseeded(_Checked):

  def _observation(self):
    return np.random.default_rng().uniform(-1, 1, 3).astype(np.float32)


class Fixed(_Checked):

  def _observation(self):
    return np.full([3], self._steps / 10, np.float32)


class SlowReset(_Checked):

  def reset(self, *, seed=None, options=None):
    time.sleep(.3)
    return super().reset(seed=seed)


class SlowSteps(_Checked):
  action_space = spaces.Box(-1, 1, (1,), np.float32)

  def step(self, action):
    time.sleep(.01)
    return super().step(action)


class Outside(_Checked):
  """Observations leave their space at the end of an episode."""

  def _observation(self):
    return np.full([3], 5 if self._steps == 10 else self.np_random.random(),
                   np.float32)


class OldApi(_Checked):

  def step(self, action):
    return super().step(action)[:4]


class NotANumber(_Checked):

  def step(self, action):
    return (super().step(action)[0], float('nan'), False, False, {})


class BrokenOptions(_Checked):
  """Fails where only gymnasium's checker looks."""

  def reset(self, *, seed=None, options=None):
    if options is not None:
      raise KeyError('size')
    return super().reset(seed=seed)


class Goals(_Checked):
  """Goals without `compute_reward`."""
  observation_space = spaces.Dict({
      name: spaces.Box(-1, 1, (3,), np.float32)
      for name in ('achieved_goal', 'desired_goal')})

  def _observation(self):
    return {name: super(Goals, self)._observation()
            for name in ('achieved_goal', 'desired_goal')}


class OtherMasks(_Checked):
  """Masks that agents do not know."""
  observation_space = spaces.Dict({
      'numbers': spaces.Box(-1, 1, (3,), np.float32),
      'valid_mask': spaces.Box(
          np.zeros(2, np.int8), np.array([1, 2], np.int8), dtype=np.int8)})

  def reset(self, *, seed=None, options=None):
    observation, _ = super().reset(seed=seed, options=options)
    return observation, {'action_mask': self.action_masks()}

  def action_masks(self):
    return np.ones(2, np.int8)

  def _observation(self):
    return {'numbers': super()._observation(),
            'valid_mask': self.action_masks()}


class Bandit(_Checked):
  """A time limit of one step, as a number of NumPy."""

  def step(self, action):
    return super().step(action)[0], 1., False, np.bool_(True), {}


class Numbered(_Checked):
  """Parts with numbers as names."""
  observation_space = spaces.Dict({
      0: spaces.Box(-1, 1, (3,), np.float32), 1: spaces.Discrete(2)})

  def _observation(self):
    return {0: super()._observation(), 1: self._steps % 2}


class Talks(_Checked):

  def step(self, action):
    warnings.warn('The simulator is old.', stacklevel=2)
    return super().step(action)


class Masked(_Checked):
  """An action may not be repeated."""
  observation_space = spaces.Dict(
      last=spaces.Box(0, 2, (1,), np.float32),
      action_mask=spaces.MultiBinary(3))
  action_space = spaces.Discrete(3)

  def reset(self, *, seed=None, options=None):
    self._last = 0
    return super().reset(seed=seed)

  def step(self, action):
    assert action != self._last, 'The action is invalid.'
    self._last = int(action)
    return super().step(action)

  def _observation(self):
    mask = np.ones(3, np.int8)
    mask[self._last] = 0
    return {'last': np.array([self._last], np.float32), 'action_mask': mask}


for _env in _Checked.__subclasses__():
  gymnasium.register(f'checked/{_env.__name__}-v0', _env)
gymnasium.register('checked/Limited-v0', Chance, max_episode_steps=1000)
