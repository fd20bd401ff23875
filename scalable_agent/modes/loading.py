# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trained agents for other programs: `scalable_agent.load(logdir)`."""

from collections.abc import Mapping
import dataclasses
import operator
import os
from typing import NamedTuple

import gymnasium
import numpy as np
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import zoo
from scalable_agent.acting import policies
from scalable_agent.acting import shares
from scalable_agent.environments import from_gymnasium
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.networks import layers
from scalable_agent.runs import checkpointing
from scalable_agent.runs import evaluation
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib


class State(NamedTuple):
  """The memory of a loaded agent for `E` environments.

  Attributes:
    last_action: `[E, ...]`, the previous actions; zeros at first.
    core: the recurrent state; `()` for feed-forward agents.
  """
  last_action: np.ndarray
  core: structs.State


class LoadedAgent:
  """A trained agent that acts.

  Attributes:
    config: the settings of the training.
    spec: observations and actions of the agent.
    num_env_frames: environment frames of the training.
    agent: the network, a Keras model.
  """

  def __init__(self, config: config_lib.Config, spec: structs.EnvironmentSpec,
               agent: agents.Agent, num_env_frames: int):
    """Makes a loaded agent; use `load` instead."""
    self.config = config
    self.spec = spec
    self.agent = agent
    self.num_env_frames = num_env_frames
    self._units = units.Units(spec.units)
    self._policies = {greedy: policies.AgentPolicy(agent, greedy)
                      for greedy in (False, True)}

  def __repr__(self) -> str:
    return (f'<{self.config.algorithm} agent for {self.config.level_name}, '
            f'trained for {self.num_env_frames:,} frames>')

  def initial_state(self, batch_size: int) -> State:
    """Returns the state before the first step of `batch_size` environments."""
    shape, dtype = self.spec.action.array
    return State(np.zeros([batch_size, *shape], dtype),
                 self.agent.initial_state(batch_size))

  def step(self, observation: structs.Nest, state: State,
           reward: np.ndarray | float = 0., done: np.ndarray | bool = False,
           greedy: bool | None = None,
           normalised: bool = False) -> tuple[np.ndarray, State]:
    """Chooses an action for each of `E` environments.

    Args:
      observation: nest of arrays `[E, ...]`, as the environment returns, or as
        in `spec.observation`: a `Discrete` as integers or as one-hot vectors.
        Numbers of other dtypes are converted, or EnvironmentSpecError if the
        dtype cannot hold a number. The names of a tuple are `0`, `1`, ...
        A row of an `action_mask` without a valid action, as at the end of an
        episode, gets any action.
      state: state from the previous step, or from `initial_state`.
      reward: float `[E]` or scalar, the rewards of the previous actions. Only
        agents with `use_last_action_reward` use rewards.
      done: bool `[E]` or scalar, whether `observation` begins an episode. Only
        agents with a memory use `done`.
      greedy: whether to take the best known actions. None means
        `config.test_greedy`, as in test mode.
      normalised: whether to return actions in the form of agents, `[E, ...]` of
        `spec.action.array`: integers from 0 on, or floats within [-1, 1].

    Returns:
      The actions and the next state. Actions are `[E, ...]` of the
      environment's space of actions, if not `normalised`. Log directories of
      older versions do not know the space: actions are `normalised`.

    Raises:
      errors.EnvironmentSpecError: an observation has another shape, or a number
        that the dtype of the training cannot hold.
    """
    num_envs = len(state.last_action)
    try:
      observation = _as_spec(self._units.observation(observation, num_envs),
                             self.spec.observation, num_envs)
    except errors.EnvironmentSpecError:
      raise
    except (TypeError, ValueError) as e:
      raise errors.EnvironmentSpecError(
          f'Observations must be arrays of numbers: {str(e).rstrip(".")}.'
      ) from e
    policy = self._policies[self._is_greedy(greedy)]
    fill = lambda value, dtype: np.broadcast_to(
        np.asarray(value, dtype), [num_envs])
    output, core = policy.step(
        state.last_action, structs.StepOutput(
            fill(reward, np.float32), structs.NO_INFO, fill(done, bool),
            observation), state.core)
    action = output.action
    if self.spec.action.size:  # A Gaussian without squashing has no bounds.
      action = np.clip(action, -1.0, 1.0)
    state = State(action, core)
    return action if normalised else self._units.actions(action), state

  def play(self,
           env: gymnasium.Env | gymnasium.vector.VectorEnv | None = None,
           num_episodes: int = 10, greedy: bool | None = None) -> list[float]:
    """Plays whole episodes; returns the sum of the rewards of each episode.

    Args:
      env: the environment, which stays open. Actions are not repeated. None
        plays the level of the training, in new processes.
      num_episodes: number of episodes, divided evenly among environments. A
        vector that resets in the step after an end, as gymnasium's do, cuts
        an endless episode one step after `max_episode_steps`.
      greedy: see `step`.

    Raises:
      TypeError: `env` is no environment, or `num_episodes` no whole number.
      errors.EnvironmentSpecError: the agent does not fit the environment.
      Exception: any error of the environment.
    """
    if env is not None and not isinstance(
        env, (gymnasium.Env, gymnasium.vector.VectorEnv)):
      raise TypeError(f'env={env!r} is no environment: give play() '
                      'gymnasium.make(NAME), or num_episodes=NUMBER.')
    num_episodes = operator.index(num_episodes)
    if num_episodes < 1:
      raise ValueError(f'num_episodes must be positive, not {num_episodes}.')
    policy = self._policies[self._is_greedy(greedy)]
    with self._make_level(num_episodes) if env is None else from_gymnasium.wrap(
        env) as flow:
      from_gymnasium.check_fits(self.spec, flow)
      config = dataclasses.replace(
          self.config, max_episode_steps=self.config.max_episode_steps
          + from_gymnasium.num_more_steps(env))
      return evaluation.play(flow, policy, num_episodes, config).all_returns

  def _is_greedy(self, greedy: bool | None) -> bool:
    return bool(self.config.test_greedy if greedy is None else greedy)

  def _make_level(self, num_episodes: int) -> environments.FlowEnvironment:
    names = levels.level_names(self.config.level_name, True)
    if len(set(names)) > 1:
      raise errors.ConfigError(
          f'The agent plays several levels, {", ".join(names)}: give play() an '
          'environment.')
    return make_environments(
        dataclasses.replace(self.config, life_loss_ends_episode=False),
        names[0], min(num_episodes, self.config.num_actors))


def _as_spec(observation: structs.Nest, spec: structs.Nest,
             num_envs: int, name: str = '') -> structs.Nest:
  """Converts observations to arrays of a spec; raises if they do not fit."""
  if isinstance(spec, dict):
    try:
      return {name: _as_spec(observation[name], part, num_envs, name)
              for name, part in spec.items()}
    except (IndexError, KeyError, TypeError) as e:
      raise errors.EnvironmentSpecError(
          'Observations must be a dictionary of '
          f'{", ".join(map(str, spec))}.') from e
  if isinstance(observation, Mapping):
    raise errors.EnvironmentSpecError(
        f'Observations must be an array of shape {[num_envs, *spec.shape]}, '
        'not a dictionary or a tuple, such as the result of reset().')
  array = np.asarray(observation)
  if spec.dtype == bool and ((array != 0) & (array != 1)).any():
    raise errors.EnvironmentSpecError(
        'An action_mask has 1 for valid actions and 0 for invalid actions, no '
        'other numbers.')
  raw, kind = array, spec.dtype.kind
  with np.errstate(invalid='ignore', over='ignore'):
    array = raw.astype(spec.dtype, copy=False)
  if kind == 'f' or kind in 'iu' and array is not raw:
    bad = ~np.isfinite(array) if kind == 'f' else array != raw
    if bad.any():
      must_be = f'{name} must be'.lstrip()
      raise errors.EnvironmentSpecError(
          f'Observations have the number {raw[bad].flat[0]}, but {must_be} '
          f'{spec.dtype}, as in the training.')
  if array.shape != (num_envs, *spec.shape):
    raise errors.EnvironmentSpecError(
        f'Observations must have the shape {[num_envs, *spec.shape]}, not '
        f'{list(array.shape)}: the first axis is that of the environments.')
  return array


def make_environments(
    config: config_lib.Config, level: str, num_envs: int,
    recording: environments.Recording | None = None
) -> environments.FlowEnvironment:
  """Makes environments of one level, with the seeds of tests."""
  return environments.make_vec(
      [level] * num_envs,
      [config.derive_seed('test', i) for i in range(num_envs)], config,
      recording=recording, restarts=shares.restarts_of(config),
      # Videos are also recorded beside a training and its evaluations.
      first_index=2 * config.num_actors if recording else 0)


@layers.state_of_caller_kept()
def load(logdir: str) -> LoadedAgent:
  """Loads the latest good checkpoint of a training.

  `logdir` is the `--logdir` of the training, its directory `best`, or the name
  of an agent of the package, such as `zoo:pong`. Raises errors.ConfigError if
  the checkpoint or its settings are missing, or `logdir` is no path.
  """
  if not isinstance(logdir, str | os.PathLike):
    raise errors.ConfigError(
        f'load needs a directory, not {logdir!r:.60}. Write '
        'scalable_agent.load(config.logdir).')
  logdir = zoo.folder(os.path.expanduser(logdir))
  config = trained_config(logdir)
  spec = checkpointing.saved_spec(logdir)
  if spec is None:  # The checkpoint is from an older version.
    names = levels.level_names(config.level_name, config.is_test)
    with environments.make_vec(names[:1], [0], config) as env:
      spec = env.spec
  elif spec.action.size and spec.units is None:
    print(f'{logdir} is of an older version, which did not save the bounds of '
          'actions: `step` returns actions within [-1, 1].', flush=True)
  layers.set_compute_dtype(config.compute_dtype)
  config = config.resolved(
      spec.observation, on_cpu=layers.on_cpu(), num_groups=1)
  return LoadedAgent(config, spec, *restore(config, spec))


def trained_config(logdir: str) -> config_lib.Config:
  """Returns the settings of the training in `logdir`.

  Raises errors.ConfigError if the checkpoint or its settings are missing.
  """
  if not checkpointing.holds_agent(logdir):
    raise errors.ConfigError(
        f'{logdir} holds no checkpoint. Train first, or name the directory of '
        'a trained agent.')
  config = config_lib.trained_with(logdir)
  if config is None:
    raise errors.ConfigError(
        f'{logdir} has a checkpoint, but no settings.json. Copy the newest '
        'settings-N.json of the training to settings.json, or resume the '
        'training with its flags, which writes settings.json again.')
  # Code of a user may change the directory.
  return dataclasses.replace(config, logdir=os.path.abspath(logdir))


def restore(config: config_lib.Config,
            spec: structs.EnvironmentSpec) -> tuple[agents.Agent, int]:
  """Makes the agent of resolved settings, with the trained weights.

  Returns the agent, and the environment frames of the training. Raises
  errors.CheckpointError if the checkpoint is of another agent or damaged.
  """
  trained_with = config_lib.trained_with(config.logdir)
  if trained_with and config.normalise_returns:
    # The levels of the training have statistics, not those of a test.
    config = dataclasses.replace(config, level_name=trained_with.level_name)
  agent = algorithms.make_agent(
      config, spec, config.derive_seed('learner', 0))
  num_env_frames = checkpointing.restore_agent(
      config.logdir, agent, algorithms.describe(config, spec))
  return agent, num_env_frames
