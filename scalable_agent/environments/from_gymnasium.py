# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Wraps environments, and vectors of environments, made by the caller."""

from collections.abc import Mapping
from typing import TypeAlias

import gymnasium
from gymnasium.vector import utils as vector_utils
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import encoding
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
from scalable_agent.processes import shared_arrays
from scalable_agent.processes import user_code

_AutoresetMode = gymnasium.vector.AutoresetMode
# `done`, `truncated` and `last_observation` of a `base.VectorStep`.
_Ends: TypeAlias = tuple[
    np.ndarray, np.ndarray, base.Observation | tuple[()]]


def wrap(env: gymnasium.Env | gymnasium.vector.VectorEnv
         ) -> base.FlowEnvironment:
  """Wraps an environment or a vector of environments of gymnasium.

  Raises EnvironmentSpecError for spaces that `gymnasium_env.GymnasiumVector`
  does not support. The caller closes `env`; the wrapper need not be closed.
  """
  name = str(env.spec.id if env.spec else type(env.unwrapped).__name__)
  if isinstance(env, gymnasium.vector.VectorEnv):
    return base.FlowEnvironment(
        WrappedVector(env, name, learns=False), [name] * env.num_envs)
  return base.FlowEnvironment(WrappedEnvironment(env, name), [name])


class WrappedEnvironment:
  """An environment of gymnasium; implements `base.VectorEnvironment`.

  Results of `reset` and `step` may have the forms that trainings accept.
  Actions are not repeated.
  """

  def __init__(self, env: gymnasium.Env, level_name: str):
    """Wraps an environment; `level_name` is for errors."""
    self._env = env
    action = spaces.action_spec(env.action_space, level_name)
    self._layout = spaces.layout(env.observation_space, action, level_name)
    self._encode = encoding.Encoder(env.observation_space, env.action_space)
    self.spec = structs.EnvironmentSpec(self._layout.spec, action, 1)

  def initial(self) -> base.Observation:
    """See `base.VectorEnvironment`; does not seed the environment."""
    return self._convert(self._env.reset()[0])

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """Steps the environment, and resets the environment after an episode."""
    [action] = spaces.to_space(actions, self._env.action_space)
    observation, reward, terminated, truncated, _ = self._env.step(action)
    number = user_code.number_of_reward(reward)  # `reset` may overwrite arrays.
    is_over, is_cut = user_code.ends_of_step(terminated, truncated)
    done = is_over or is_cut
    arrays = last = self._convert(observation, is_over)
    if done:
      arrays = self._convert(self._env.reset()[0])
    is_done = np.array([done])
    return base.VectorStep(
        np.array([number], np.float32), is_done, is_done, arrays,
        np.array([done and not is_over]), last if done else ())

  def close(self) -> None:
    """Does nothing: the caller closes the environment."""

  def _convert(self, observation: structs.Nest,
               is_over: bool = False) -> base.Observation:
    return _of_rows(
        self._layout, 1, {0: self._encode(observation, is_over)})


class WrappedVector:
  """A vector of gymnasium; implements `base.VectorEnvironment`.

  Actions are not repeated. By default, gymnasium's vectors reset an environment
  in the step after the end of an episode, with a reward of 0. This step ends
  the episode here, too.
  """

  def __init__(self, env: gymnasium.vector.VectorEnv, level_name: str,
               seed: int | None = None, learns: bool = True):
    """Wraps a vector; `level_name` is for errors.

    With a `seed`, each `initial` starts the same games. Without learning, the
    last observation before a time limit may be missing.
    """
    self._env, self._level_name = env, level_name
    self._seed, self._learns = seed, learns
    action = spaces.action_spec(env.single_action_space, level_name)
    self._layout = spaces.layout(
        env.single_observation_space, action, level_name)
    if spaces.TEXT in self._layout.arrays and getattr(
        env.unwrapped, 'shared_memory', False):
      raise errors.EnvironmentSpecError(
          f"{level_name}: gymnasium's AsyncVectorEnv reads a Text from shared "
          'memory only once. Make the vector with shared_memory=False.')
    self._encode = encoding.Encoder(
        env.single_observation_space, env.single_action_space)
    self._mode = _autoreset_mode(env)
    self.spec = structs.EnvironmentSpec(self._layout.spec, action, 1)
    self._nothing = np.broadcast_to(False, env.num_envs)
    self._ended: _Ends = (self._nothing, self._nothing, ())

  def initial(self) -> base.Observation:
    """See `base.VectorEnvironment`; without a seed, other games follow."""
    observation, _ = self._env.reset(seed=self._seed)
    self._ended = (self._nothing, self._nothing, ())
    return self._convert(observation, self._nothing)

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """Steps the vector.

    Raises EnvironmentSpecError if the last observation before a time limit is
    not known.
    """
    raw, reward, terminated, truncated, info = self._env.step(
        spaces.to_space(actions, self._env.single_action_space))
    # The vector may use its arrays again.
    reward = np.array(reward, np.float32)
    terminated, truncated = np.asarray(terminated), np.asarray(truncated)
    done, is_cut = terminated | truncated, truncated & ~terminated
    is_same_step = self._mode == _AutoresetMode.SAME_STEP
    # An observation of a new episode needs an action.
    observation = self._convert(
        raw, self._nothing if is_same_step else terminated)
    last: base.Observation | tuple[()] = ()
    if done.any():
      if 'final_obs' in info:
        last = self._final(info['final_obs'], done, terminated)
      elif is_same_step and is_cut.any() and self._learns:
        raise errors.EnvironmentSpecError(
            f'{self._level_name} resets in the step of an end, but has no '
            "info['final_obs'], the last observation before a time limit: add "
            'this, or make the vector with AutoresetMode.NEXT_STEP.')
      else:
        last = map_nests(np.copy, observation)
      if self._mode == _AutoresetMode.DISABLED:
        raw, _ = self._env.reset(options={'reset_mask': done})
        observation = self._convert(raw, self._nothing)
    ends = (done, is_cut, last)
    if self._mode == _AutoresetMode.NEXT_STEP:
      ends, self._ended = self._ended, ends
    done, is_cut, last = ends
    return base.VectorStep(reward, done, done, observation, is_cut, last)

  def close(self) -> None:
    """Does nothing: the caller closes the vector."""

  def _convert(self, observations: object,
               is_over: np.ndarray) -> base.Observation:
    """Returns observations for agents, of observations of the vector.

    `is_over`, bool `[E]`, says which observations end an episode.
    """
    arrays = self._encode.batch(observations, is_over)
    return self._layout.decode({
        name: shared_arrays.fit(arrays[name], spec.dtype)
        for name, spec in self._layout.arrays.items()})

  def _final(self, final: structs.Nest, done: np.ndarray,
             terminated: np.ndarray) -> base.Observation:
    """Returns the last observations of episodes, of `info['final_obs']`.

    `done` and `terminated`, bool `[E]`, say where an episode ended.
    """
    if not (isinstance(final, np.ndarray) and final.dtype.hasobject):
      # Arrays of all environments.
      final = [*vector_utils.iterate(vector_utils.batch_space(
          self._env.single_observation_space, len(done)), final)]
    return _of_rows(self._layout, len(done), {
        row: self._encode(final[row], terminated[row])
        for row in map(int, np.flatnonzero(done))})


def _of_rows(layout: spaces.Layout, num_envs: int,
             rows: Mapping[int, dict[str, np.ndarray]]) -> base.Observation:
  """Returns observations `[E, ...]`, of the encoded `rows`; others are 0."""
  arrays = {name: np.zeros([num_envs, *spec.shape], spec.dtype)
            for name, spec in layout.arrays.items()}
  for row, encoded in rows.items():
    shared_arrays.write(arrays, row, encoded)
  return layout.decode(arrays)


def _autoreset_mode(
    env: gymnasium.vector.VectorEnv) -> gymnasium.vector.AutoresetMode:
  # The metadata can be those of a vector that was made later: before
  # gymnasium 1.4, all vectors of a class of environments share the metadata.
  return getattr(env.unwrapped, 'autoreset_mode', env.metadata.get(
      'autoreset_mode', _AutoresetMode.NEXT_STEP))


def num_more_steps(
    env: gymnasium.Env | gymnasium.vector.VectorEnv | None) -> int:
  """Returns 1 if an episode here has one step more, that of the reset."""
  return int(isinstance(env, gymnasium.vector.VectorEnv)
             and _autoreset_mode(env) == _AutoresetMode.NEXT_STEP)


def check_fits(spec: structs.EnvironmentSpec,
               env: base.FlowEnvironment) -> None:
  """Raises EnvironmentSpecError if an agent for `spec` cannot play `env`."""
  for what, of_agent, of_env in (
      ('observations', spec.observation, env.spec.observation),
      ('actions', spec.action, env.spec.action)):
    if of_agent != of_env:
      raise errors.EnvironmentSpecError(
          f'The agent was trained with {what} {_in_words(of_agent)}, but '
          f'{env.level_names[0]} has {what} {_in_words(of_env)}: wrap the '
          'environment accordingly. Without an environment, play() makes the '
          'environment of the training.')


def _in_words(spec: structs.ObservationSpec | structs.ActionSpec) -> str:
  if isinstance(spec, dict):
    return ', '.join(f'{name} {_in_words(part)}' for name, part in spec.items())
  if isinstance(spec, structs.ActionSpec):
    return (f'float32 [{spec.size}]' if spec.size
            else f'with {" x ".join(map(str, spec.num_values))} values')
  return f'{spec.dtype} {list(spec.shape)}'
