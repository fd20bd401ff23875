# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Rewards of goal environments for other goals than the desired goal.

Observations of a goal environment are dictionaries with `achieved_goal` and
`desired_goal`. Its `compute_reward(achieved_goal, desired_goal, info)` returns
the reward of a step that led to `achieved_goal`, and `compute_terminated`
returns whether the step ended the episode. Both functions need no simulation,
so the environment is reset and stepped only to compare rewards.
"""

from collections.abc import Callable, Iterator
import contextlib
import functools
import itertools
from typing import TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import encoding
from scalable_agent.environments import spaces
from scalable_agent.processes import remote
from scalable_agent.processes import user_code

# A function of achieved goals, `[N, ...]`, and desired goals, `[N, ...]`, to
# rewards, float32 `[N]`, or to ends of episodes, bool `[N]`.
GoalFunction: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

_PARTS = ('achieved_goal', 'desired_goal')
_NUM_PROBES = 7
_NUM_PROBED_STEPS = 20


def can_use_hindsight(env: gymnasium.Env) -> bool:
  """Returns whether an environment has goals, and rewards of other goals."""
  return len(_goal_spaces(env)) == 2 and env.has_wrapper_attr('compute_reward')


class Goals:
  """The rewards of a goal environment.

  Goals are passed to the environment's methods as one batch if the results are
  the same as for one goal at a time, and else one at a time. `info` is empty.
  """

  def __init__(self, level_name: str, factory: base.Factory):
    """Builds an environment, and makes random steps to compare rewards.

    Raises EnvironmentSpecError if the level has no goals, or if a wrapper
    changes rewards, which `compute_reward` does not know. Raises
    EnvironmentValueError if a reached goal has no finite reward. Prints a
    warning if the environment itself has other rewards.
    """
    self._level_name = level_name
    env = base.build(level_name, factory)
    self._goals = _goal_spaces(env)
    if not can_use_hindsight(env):
      raise errors.EnvironmentSpecError(
          f'{level_name} has no goals to learn from in hindsight: its '
          'observations need a Box achieved_goal and a Box desired_goal, and '
          'the environment needs compute_reward.')
    _check_wrappers(level_name, env)
    rewards, seen = _play(env)
    _compare_rewards(level_name, env, rewards, seen)
    self._rewards = _batch_function(
        env.get_wrapper_attr('compute_reward'), np.float32, self._goals)
    # Samples of the spaces may be no goals, such as vectors of another norm.
    for part in seen:
      self.rewards(part, part)
    self.terminated = _batch_function(
        env.get_wrapper_attr('compute_terminated'), bool, self._goals
    ) if env.has_wrapper_attr('compute_terminated') else None

  def rewards(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    """Is a `GoalFunction`; EnvironmentValueError for infinity and NaN."""
    rewards = self._rewards(achieved, desired)
    if (wrong := np.flatnonzero(~np.isfinite(rewards))).size:
      row = wrong[0]
      raise errors.EnvironmentValueError(
          f'compute_reward of {self._level_name} returned the reward '
          f'{rewards[row]} (as float32) for the achieved goal '
          f'{achieved[row].tolist()!s:.80} and the desired goal '
          f'{desired[row].tolist()!s:.80}: rewards must be finite, also where '
          'both goals are equal.')
    return rewards

  def can_terminate(self) -> bool:
    """Whether reached goals end episodes, by `compute_terminated`."""
    return self.terminated is not None and bool(
        self.terminated(*_probes(self._goals)).any())


def functions(
    level_name: str, factory: base.Factory, timeout_s: float,
    ends: contextlib.ExitStack | None
) -> tuple[GoalFunction, GoalFunction | None]:
  """Does `environments.goal_functions`; a call may take `timeout_s`."""
  level = remote.Remote(
      level_name, functools.partial(Goals, level_name, factory), timeout_s)
  if ends is not None:
    ends.callback(level.close)
  return (functools.partial(level.call, 'rewards'),
          functools.partial(level.call, 'terminated')
          if level.call('can_terminate') else None)


def _check_wrappers(level_name: str, env: gymnasium.Env) -> None:
  """Raises EnvironmentSpecError if a wrapper changes rewards.

  Random steps rarely reach a goal, so every second step pretends to do so.
  """
  inner = env
  while isinstance(inner, gymnasium.Wrapper) and not hasattr(
      inner, 'compute_reward'):
    inner = inner.env
  rewards: list[float] = []
  step = inner.step
  is_reached = itertools.cycle((False, True))

  def noted(action: np.ndarray) -> base.Step:
    result = step(action)
    if next(is_reached):
      result = _at_goal(inner, result)
    rewards.append(user_code.number_of_reward(result[1]))
    return result

  vars(inner)['step'] = noted
  for _, raw_reward, *_ in _random_steps(env):
    reward = user_code.number_of_reward(raw_reward)
    if len(rewards) != 1 or not np.isclose(
        reward, rewards[0], equal_nan=True):
      raise errors.EnvironmentSpecError(
          f'A wrapper of {level_name} makes the reward {reward:g} of '
          f'{" and ".join(f"{r:g}" for r in rewards)}, which compute_reward '
          'does not know: change compute_reward as well, or leave out '
          '--hindsight.')
    rewards.clear()
  del vars(inner)['step']


def _play(env: gymnasium.Env) -> tuple[list[float], list[np.ndarray]]:
  """Returns rewards, and achieved and desired goals, `[N, ...]`, of steps."""
  rewards: list[float] = []
  seen: list[list[np.ndarray]] = [[] for _ in _PARTS]
  for observation, raw_reward, *_ in _random_steps(env):
    assert isinstance(observation, dict)
    rewards.append(user_code.number_of_reward(raw_reward))
    for name, part in zip(_PARTS, seen):
      part.append(np.array(observation[name]))  # The arrays may be reused.
  return rewards, [np.stack(part) for part in seen]


def _compare_rewards(level_name: str, env: gymnasium.Env,
                     rewards: list[float], seen: list[np.ndarray]) -> None:
  """Prints a warning if results of `_play` have other rewards than goals."""
  compute_reward = env.get_wrapper_attr('compute_reward')
  for number, (reward, *goals) in enumerate(zip(rewards, *seen), 1):
    computed = user_code.number_of_reward(
        compute_reward(*goals, {}), 'compute_reward')
    if not np.isclose(reward, computed):
      print(f'Step {number} of {level_name} had the reward {reward:g}, '
            f'but compute_reward returns {computed:g} for its goals: '
            '--hindsight mixes both rewards. Return compute_reward in step.',
            flush=True)
      return


def _random_steps(env: gymnasium.Env) -> Iterator[base.Step]:
  """Yields the results of random valid actions."""
  rng = np.random.default_rng(0)
  encode = encoding.Encoder(env.observation_space, env.action_space)
  observation, _ = env.reset(seed=0)
  for _ in range(_NUM_PROBED_STEPS):
    result = env.step(spaces.random_action(
        rng, env.action_space, encode(observation)))
    yield result
    observation, _, terminated, truncated, _ = result
    if terminated or truncated:
      observation, _ = env.reset()


def _at_goal(env: gymnasium.Env, result: base.Step) -> base.Step:
  """Returns the result of a step as if the step had reached the goal."""
  observation, reward, terminated, truncated, info = result
  if not isinstance(observation, dict) or 'desired_goal' not in observation:
    return result  # Wrappers make the goals.
  goal = observation['desired_goal']
  reward = env.get_wrapper_attr('compute_reward')(goal, goal, {})
  if env.has_wrapper_attr('compute_terminated'):
    terminated = env.get_wrapper_attr('compute_terminated')(goal, goal, {})
  if 'is_success' in info:  # Of Gymnasium-Robotics.
    info = {**info, 'is_success': 1.0}
  return ({**observation, 'achieved_goal': goal}, reward, terminated, truncated,
          info)


def _goal_spaces(env: gymnasium.Env) -> list[gymnasium.spaces.Box]:
  space = env.observation_space
  parts = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {}
  return [part for name in _PARTS
          if isinstance(part := parts.get(name), gymnasium.spaces.Box)]


def _batch_function(
    method: Callable, dtype: npt.DTypeLike,
    goals: list[gymnasium.spaces.Box]) -> GoalFunction:
  """Returns a function of batches of goals, with results of `dtype`.

  `method` is a function of one achieved goal, one desired goal and `info`,
  which may also accept batches. `goals` are the spaces of both kinds of goals.
  """

  def at_once(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    return np.asarray(method(achieved, desired, {}), dtype).ravel()

  def one_by_one(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    results = [
        method(a, d, {}) for a, d in zip(achieved, desired, strict=True)]
    return np.array(results, dtype).ravel()

  compute = at_once if _agree(at_once, one_by_one, goals) else one_by_one

  def cast_and_compute(
      achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    # Rewards with a threshold need the precision of the environment.
    return compute(*(np.asarray(goal, space.dtype)
                     for goal, space in zip((achieved, desired), goals)))

  return cast_and_compute


def _probes(
    goals: list[gymnasium.spaces.Box]) -> tuple[np.ndarray, np.ndarray]:
  """Returns random achieved and desired goals; every other pair is equal."""
  for seed, space in enumerate(goals):
    space.seed(seed)
  achieved, desired = (
      np.stack([space.sample() for _ in range(_NUM_PROBES)])
      for space in goals)
  desired[::2] = achieved[::2]
  return achieved, desired


def _agree(at_once: GoalFunction, one_by_one: GoalFunction,
           goals: list[gymnasium.spaces.Box]) -> bool:
  """Whether two functions agree, for goals that are reached or not reached."""
  achieved, desired = _probes(goals)
  expected = one_by_one(achieved, desired)
  try:
    found = at_once(achieved, desired)
  except Exception:
    return False  # The method does not accept a batch of goals.
  return found.shape == expected.shape and np.allclose(
      found, expected, equal_nan=True)
