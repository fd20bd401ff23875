# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments that somebody else has made, in this process or another one."""

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import spaces
from scalable_agent.experience import structs

_AutoresetMode = gymnasium.vector.AutoresetMode


def wrap(env: gymnasium.Env | gymnasium.vector.VectorEnv
         ) -> base.FlowEnvironment:
  """Wraps an environment of gymnasium, or a vector of them.

  Args:
    env: with spaces as `gymnasium_env.GymnasiumVector` takes them. The caller
      closes it; the wrapper need not be closed.

  Raises:
    errors.EnvironmentSpecError: its spaces are not supported.
  """
  name = str(env.spec.id if env.spec else type(env.unwrapped).__name__)
  if not isinstance(env, gymnasium.vector.VectorEnv):
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: env], autoreset_mode=_AutoresetMode.DISABLED)
  return base.FlowEnvironment(GivenVector(env, name), [name] * env.num_envs)


class GivenVector:
  """A vector of gymnasium; implements `base.VectorEnvironment`.

  Actions are not repeated. If the vector resets an environment in the step
  after the end of an episode, as gymnasium's do unless told otherwise, then
  this step ends the episode here, too. Its reward is 0.
  """

  def __init__(self, env: gymnasium.vector.VectorEnv, level_name: str):
    """Wraps a vector.

    Args:
      env: the vector.
      level_name: its level, for errors.

    Raises:
      errors.EnvironmentSpecError: its spaces are not supported.
    """
    self._env = env
    self._layout = spaces.layout(env.single_observation_space, level_name)
    self._encode = spaces.Encoder(env.single_observation_space)
    self._mode = env.metadata.get('autoreset_mode', _AutoresetMode.NEXT_STEP)
    self.spec = structs.EnvironmentSpec(
        self._layout.spec,
        spaces.action_spec(env.single_action_space, level_name), 1)
    self._nothing = base.no_truncation(env.num_envs)
    self._ended = (self._nothing, self._nothing)

  def initial(self) -> base.Observation:
    """See `base.VectorEnvironment.initial`; the seeds stay as they are."""
    observation, _ = self._env.reset()
    self._ended = (self._nothing, self._nothing)
    return self._decoded(observation)

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """See `base.VectorEnvironment.step`.

    `last_observation` is the first one of the next episode: a vector need not
    keep the last one.
    """
    observation, reward, terminated, truncated, _ = self._env.step(
        spaces.to_space(actions, self._env.single_action_space))
    now = (terminated, truncated)
    if self._mode == _AutoresetMode.NEXT_STEP:
      now, self._ended = self._ended, now
    terminated, truncated = now
    done = terminated | truncated
    if self._mode == _AutoresetMode.DISABLED and done.any():
      observation, _ = self._env.reset(options={'reset_mask': done})
    observation = self._decoded(observation)
    return base.VectorStep(
        np.asarray(reward, np.float32), done, done, observation,
        truncated & ~terminated, observation if done.any() else ())

  def close(self) -> None:
    """Nothing: it is somebody else's."""

  def _decoded(self, observations):
    rows = [self._encode(row) for row in gymnasium.vector.utils.iterate(
        self._env.observation_space, observations)]
    return self._layout.decode({
        name: np.stack([row[name] for row in rows]).astype(spec.dtype)
        for name, spec in self._layout.arrays.items()})


def check_fits(spec: structs.EnvironmentSpec,
               env: base.FlowEnvironment) -> None:
  """Raises EnvironmentSpecError if an agent for `spec` cannot play in `env`."""
  for what, of_agent, of_env in (
      ('observations', spec.observation, env.spec.observation),
      ('actions', spec.action, env.spec.action)):
    if of_agent != of_env:
      raise errors.EnvironmentSpecError(
          f'The agent has learned with {what} {_in_words(of_agent)}, but those '
          f'of {env.level_names[0]} are {_in_words(of_env)}: wrap the '
          'environment so that they agree. Without an environment, play() '
          'makes one as in the training.')


def _in_words(spec):
  if isinstance(spec, dict):
    return ', '.join(f'{name} {_in_words(part)}' for name, part in spec.items())
  if isinstance(spec, structs.ActionSpec):
    return (f'{spec.size} continuous ones' if spec.size
            else ' x '.join(map(str, spec.num_values)))
  return f'{spec.dtype} {list(spec.shape)}'
