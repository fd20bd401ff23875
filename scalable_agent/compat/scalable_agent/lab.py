# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""DeepMind Lab for `py_process`. Processes import this module, not TensorFlow.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
  from scalable_agent.environments import lab_maps
  import tensorflow as tf

_OBSERVATIONS = ['RGB_INTERLEAVED', 'INSTR']


class PyProcessDmLab:
  """DeepMind Lab, for `PyProcess`.

  The difference: `_tensor_specs` has the specs of TensorFlow 2.
  """

  def __init__(self, level: str, config: Mapping[str, object],
               num_action_repeats: int, seed: int,
               runfiles_path: str | None = None,
               level_cache: 'lab_maps.LocalLevelCache | None' = None):
    """Starts a Lab; `config` are Lab's settings, such as width and height."""
    import deepmind_lab
    self._num_action_repeats = num_action_repeats
    self._random_state = np.random.RandomState(seed=seed)
    if runfiles_path:
      deepmind_lab.set_runfiles_path(runfiles_path)
    self._env = deepmind_lab.Lab(
        level=level, observations=_OBSERVATIONS,
        config={name: str(value) for name, value in config.items()},
        level_cache=level_cache)

  def initial(self) -> list[np.ndarray | str]:
    """Starts an episode; returns frame and instruction."""
    self._env.reset(seed=self._random_state.randint(0, 2**31 - 1))
    observations = self._env.observations()
    return [observations[name] for name in _OBSERVATIONS]

  def step(self, action: np.ndarray
           ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray | str]]:
    """Repeats an action of 7 integers; returns reward, done, observation.

    After the end of an episode, the observation is the first of the next.
    """
    reward = self._env.step(np.ascontiguousarray(action, np.intc),
                            num_steps=self._num_action_repeats)
    done = not self._env.is_running()
    if done:
      observation = self.initial()
    else:
      observations = self._env.observations()
      observation = [observations[name] for name in _OBSERVATIONS]
    return np.array(reward, np.float32), np.array(done), observation

  def close(self) -> None:
    """Closes the Lab."""
    self._env.close()

  @staticmethod
  def _tensor_specs(method_name: str, unused_kwargs: Mapping[str, object],
                    constructor_kwargs: Mapping[str, Mapping[str, int]]
                    ) -> 'tuple | list[tf.TensorSpec] | None':
    """Returns the specs of the results of a method; None for others."""
    import tensorflow as tf
    config = constructor_kwargs['config']
    observation = [
        tf.TensorSpec([config.get('height', 240), config.get('width', 320), 3],
                      tf.uint8),
        tf.TensorSpec([], tf.string)]
    if method_name == 'initial':
      return observation
    if method_name == 'step':
      return (tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.bool),
              observation)
    return None
