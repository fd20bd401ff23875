# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments that only sleep: 1, 5 or 20 ms a step, or 2 or 3 s a reset.

With this directory on PYTHONPATH, `slow_environment:SlowEnvironment5ms-v0`,
`slow_environment:SlowResets-v0` and `slow_environment:SlowMaps-v0` are names of
levels. `slow_environment:SlowMatrices-v0` does not sleep, but computes.
"""

import time

import gymnasium
import numpy as np

STEP_MS = (1, 5, 20)


def level_name(step_ms: int) -> str:
  """Returns the level with steps of `step_ms` milliseconds."""
  return f'{__name__}:SlowEnvironment{step_ms}ms-v0'


class SlowEnvironment(gymnasium.Env):
  """Sleeps until `step_ms` have passed since its action came.

  Episodes have 500 to 1500 steps, so that many environments do not end
  together; `reset` takes no time. Observations are float32 `[8]`.
  """
  _LENGTHS, _RESET_S = (500, 1500), 0.

  def __init__(self, step_ms: float):
    self._step_s = step_ms / 1000
    self.observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    self.action_space = gymnasium.spaces.Discrete(4)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    time.sleep(self._RESET_S)
    self._steps_left = int(self.np_random.integers(*self._LENGTHS))
    return self._observe(), {}

  def step(self, action):
    deadline = time.monotonic() + self._step_s
    self._steps_left -= 1
    observation = self._observe()
    reward = float(action == self._steps_left % 4)
    time.sleep(max(deadline - time.monotonic(), 0))
    return observation, reward, self._steps_left == 0, False, {}

  def _observe(self):
    observation = np.zeros(8, np.float32)
    observation[self._steps_left % 8] = 1
    return observation


class SlowResets(SlowEnvironment):
  """Resets sleep for two seconds; episodes have 25 to 75 steps."""
  _LENGTHS, _RESET_S = (25, 75), 2.


class SlowMaps(SlowEnvironment):
  """As DeepMind Lab with maps: each reset sleeps for three seconds."""
  _LENGTHS, _RESET_S = (100, 700), 3.


class SlowMatrices(SlowEnvironment):
  """Each step multiplies matrices of 160 rows and columns."""

  def step(self, action):
    matrix = np.ones([160, 160])
    matrix @ matrix  # A library may use several threads here.
    return super().step(action)


gymnasium.register('SlowMatrices-v0', entry_point=f'{__name__}:SlowMatrices',
                   kwargs={'step_ms': 0})
gymnasium.register('SlowResets-v0', entry_point=f'{__name__}:SlowResets',
                   kwargs={'step_ms': 0})
gymnasium.register('SlowMaps-v0', entry_point=f'{__name__}:SlowMaps',
                   kwargs={'step_ms': 2})
for _step_ms in STEP_MS:
  gymnasium.register(
      level_name(_step_ms).rpartition(':')[2],
      entry_point=f'{__name__}:SlowEnvironment', kwargs={'step_ms': _step_ms})
