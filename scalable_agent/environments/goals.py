# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Rewards of goal environments, for goals that were not the desired ones.

Observations of such an environment are dictionaries with `achieved_goal` and
`desired_goal`. Its `compute_reward(achieved_goal, desired_goal, info)` is the
reward of a step that led to `achieved_goal`. It needs no simulation, so an
environment that is never reset or stepped can compute it.
"""

from collections.abc import Callable
from typing import TypeAlias

import gymnasium
import numpy as np
from scalable_agent import errors

# Float32 rewards `[N]` of achieved goals `[N, ...]` and desired ones.
RewardFunction: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

_NUM_PROBES = 7


def reward_function(level_name: str, env: gymnasium.Env) -> RewardFunction:
  """Returns the function that computes the rewards of a goal environment.

  It calls `compute_reward` once for all goals if that gives the same as a call
  for each, and else once for each. `info` is empty.

  Args:
    level_name: the level, for errors.
    env: an environment of the level. It is not reset or stepped.

  Raises:
    errors.EnvironmentSpecError: the level has no goals.
  """
  space = env.observation_space
  parts = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {}
  goals = [part for name in ('achieved_goal', 'desired_goal')
           if isinstance(part := parts.get(name), gymnasium.spaces.Box)]
  if len(goals) < 2 or not env.has_wrapper_attr('compute_reward'):
    raise errors.EnvironmentSpecError(
        f'{level_name} has no goals to learn from in hindsight: its '
        'observations need a Box achieved_goal and a Box desired_goal, and the '
        'environment needs compute_reward.')
  compute_reward = env.get_wrapper_attr('compute_reward')

  def at_once(achieved, desired):
    return np.asarray(compute_reward(achieved, desired, {}), np.float32)

  def one_by_one(achieved, desired):
    return np.array([compute_reward(a, d, {})
                     for a, d in zip(achieved, desired, strict=True)],
                    np.float32)

  compute = at_once if _agree(at_once, one_by_one, goals) else one_by_one

  def rewards(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    # In the precision of the environment, which decides at a threshold.
    return compute(*(np.asarray(goal, space.dtype)
                     for goal, space in zip((achieved, desired), goals)))

  return rewards


def _agree(at_once, one_by_one, goals):
  """Whether both give the same, for goals that are reached and others."""
  for seed, space in enumerate(goals):
    space.seed(seed)
  achieved, desired = (
      np.stack([space.sample() for _ in range(_NUM_PROBES)])
      for space in goals)
  desired[::2] = achieved[::2]
  expected = one_by_one(achieved, desired)
  try:
    found = at_once(achieved, desired)
  except Exception:  # pylint: disable=broad-except
    return False  # It does not know that goals may have an axis more.
  return found.shape == expected.shape and np.allclose(
      found, expected, equal_nan=True)
