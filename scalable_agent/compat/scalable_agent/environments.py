# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `environments`: one environment, without a batch.

`DEFAULT_ACTION_SET` and `LocalLevelCache` are those of
`scalable_agent.environments.dmlab`, except for the default directory.
"""

from typing import NamedTuple, Protocol

from scalable_agent.compat.scalable_agent.lab import PyProcessDmLab
from scalable_agent.environments import lab_maps
from scalable_agent.environments.dmlab import DEFAULT_ACTION_SET
from scalable_agent.experience import structs
import tensorflow as tf

__all__ = ['DEFAULT_ACTION_SET', 'FlowEnvironment', 'LocalLevelCache',
           'PyProcessDmLab', 'StepOutput', 'StepOutputInfo']


class LocalLevelCache(lab_maps.LocalLevelCache):
  """A directory of compiled maps.

  The difference: a full disk is no error; the map is compiled again next time.
  """

  def __init__(self, cache_dir: str = '/tmp/level_cache'):
    super().__init__(cache_dir)


class StepOutputInfo(NamedTuple):
  """Statistics of an episode. The difference: the fields have types.

  Attributes:
    episode_return: float32, the sum of the unclipped rewards so far.
    episode_step: int32, the number of agent steps so far.
  """
  episode_return: tf.Tensor
  episode_step: tf.Tensor


class StepOutput(NamedTuple):
  """The result of a step. The difference: the fields have types.

  Attributes:
    reward: float32, of the action that led to the observation.
    info: statistics of the episode, with this step.
    done: bool, whether the observation is the first of an episode.
    observation: nest of tensors.
  """
  reward: tf.Tensor
  info: StepOutputInfo
  done: tf.Tensor
  observation: structs.Nest


# The number of steps (int64), and the statistics before the next step.
State = tuple[tf.Tensor, StepOutputInfo]


class _Environment(Protocol):
  """An environment for `FlowEnvironment`."""

  def initial(self) -> structs.Nest:
    """Returns the first observation."""

  def step(self, action: structs.Array
           ) -> tuple[structs.Array, structs.Array, structs.Nest]:
    """Returns reward, done and observation.

    After the end of an episode, the observation is the first of the next.
    """


class FlowEnvironment:
  """An environment whose state is an argument and a result of each step.

  The difference: a method steps the environment now, so the calls of a program
  have the right order without the state.
  """

  def __init__(self, env: _Environment):
    self._env = env

  def initial(self) -> tuple[StepOutput, State]:
    """Returns the first output, with `done`, and the first state."""
    info = StepOutputInfo(tf.constant(0.), tf.constant(0))
    observation = _to_tensors(self._env.initial())
    return (StepOutput(tf.constant(0.), info, tf.constant(True), observation),
            (tf.constant(0, tf.int64), info))

  def step(self, action: structs.Array, state: State
           ) -> tuple[StepOutput, State]:
    """Steps the environment; returns the output and the next state.

    The output at the end of an episode has the statistics of the episode, and
    the state has zeros.
    """
    flow, info = state
    reward, done, observation = self._env.step(action)
    reward = tf.convert_to_tensor(reward, tf.float32)
    done = tf.convert_to_tensor(done, tf.bool)
    info = StepOutputInfo(info.episode_return + reward, info.episode_step + 1)
    new_state = flow + 1, tf.nest.map_structure(
        lambda x: tf.where(done, tf.zeros_like(x), x), info)
    return StepOutput(reward, info, done, _to_tensors(observation)), new_state


def _to_tensors(nest: structs.Nest) -> structs.Nest:
  return tf.nest.map_structure(tf.convert_to_tensor, nest)
