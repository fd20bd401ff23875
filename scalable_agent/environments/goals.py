# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Rewards of goal environments, for goals that were not the desired ones.

Observations of such an environment are dictionaries with `achieved_goal` and
`desired_goal`. Its `compute_reward(achieved_goal, desired_goal, info)` is the
reward of a step that led to `achieved_goal`, and `compute_terminated` says
whether that step ended the episode. They need no simulation, so an environment
that is never reset or stepped can compute them.
"""

from collections.abc import Callable
from typing import TypeAlias

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base

# A function of achieved goals `[N, ...]` and desired ones: `[N]`.
GoalFunction: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

_NUM_PROBES = 7


class Goals:
  """The rewards of a goal environment.

  Its methods call those of the environment once for all goals if that gives the
  same as a call for each, and else once for each. `info` is empty.
  """

  def __init__(self, level_name: str, factory: base.Factory):
    """Builds an environment, which is not reset or stepped.

    Args:
      level_name: the level, for errors.
      factory: builds it.

    Raises:
      errors.EnvironmentSpecError: the level has no goals.
      errors.MissingDependencyError: a package that it needs is not installed.
    """
    env = base.build(level_name, factory)
    self._goals = _goal_spaces(env)
    if len(self._goals) < 2 or not env.has_wrapper_attr('compute_reward'):
      raise errors.EnvironmentSpecError(
          f'{level_name} has no goals to learn from in hindsight: its '
          'observations need a Box achieved_goal and a Box desired_goal, and '
          'the environment needs compute_reward.')
    self.rewards = _of_many(
        env.get_wrapper_attr('compute_reward'), np.float32, self._goals)
    self.terminated = _of_many(
        env.get_wrapper_attr('compute_terminated'), bool, self._goals
    ) if env.has_wrapper_attr('compute_terminated') else None

  def can_terminate(self) -> bool:
    """Whether reached goals end episodes: `compute_terminated` says it."""
    return self.terminated is not None and bool(
        self.terminated(*_probes(self._goals)).any())


def _goal_spaces(env):
  space = env.observation_space
  parts = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {}
  return [part for name in ('achieved_goal', 'desired_goal')
          if isinstance(part := parts.get(name), gymnasium.spaces.Box)]


def _of_many(method, dtype, goals):
  """Returns a function of many goals, made of a method for one or for many."""

  def at_once(achieved, desired):
    return np.asarray(method(achieved, desired, {}), dtype)

  def one_by_one(achieved, desired):
    return np.array([method(a, d, {})
                     for a, d in zip(achieved, desired, strict=True)], dtype)

  compute = at_once if _agree(at_once, one_by_one, goals) else one_by_one

  def computed(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    # In the precision of the environment, which decides at a threshold.
    return compute(*(np.asarray(goal, space.dtype)
                     for goal, space in zip((achieved, desired), goals)))

  return computed


def _probes(goals):
  """Returns achieved and desired goals, of which every other pair is equal."""
  for seed, space in enumerate(goals):
    space.seed(seed)
  achieved, desired = (
      np.stack([space.sample() for _ in range(_NUM_PROBES)])
      for space in goals)
  desired[::2] = achieved[::2]
  return achieved, desired


def _agree(at_once, one_by_one, goals):
  """Whether both give the same, for goals that are reached and others."""
  achieved, desired = _probes(goals)
  expected = one_by_one(achieved, desired)
  try:
    found = at_once(achieved, desired)
  except Exception:  # pylint: disable=broad-except
    return False  # It does not know that goals may have an axis more.
  return found.shape == expected.shape and np.allclose(
      found, expected, equal_nan=True)
