# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Actors: the loop that steps environments and makes unrolls.

`E` is the number of environments of one actor, `T` the unroll length.
"""

from collections.abc import Callable
import contextlib
import functools

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import base
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
import tree


class Actor:
  """Steps `E` environments with a policy, and puts the unrolls in an inbox."""

  def __init__(self, env: base.FlowEnvironment, policy: policies.Policy,
               published: Callable[[], structs.Weights],
               inbox: queues.BoundedQueue[unrolls.Delivery],
               unroll_length: int, timer: timing.StageTimer,
               num_buffers: int = 2, bootstrap_truncated: bool = False,
               ladder: np.ndarray | None = None):
    """Makes an actor; nothing runs before `run` or `make_unroll`.

    Args:
      policy: chooses the actions. Only a `SharedPolicy` may have other users.
      published: returns the latest weights; called from the actor's thread.
      unroll_length: `T`, agent steps.
      num_buffers: number of unrolls to allocate, which are used in turn.
      bootstrap_truncated: whether to estimate the value of the last
        observation where a time limit ends an episode.
      ladder: float32 `[N]`, for all environments of the run, see
        `Agent.explore`.
    """
    self._ladder = () if ladder is None else (ladder[np.array(env.indices)],)
    self._env = env
    self._policy = policy
    self._published = published
    self._inbox = inbox
    self._unroll_length = unroll_length
    self._timer = timer
    self._bootstrap_truncated = bootstrap_truncated
    self._free = queues.BoundedQueue[structs.Unroll](num_buffers)
    baseline = policy.output_spec.baseline
    self._no_truncation = np.zeros(
        [env.num_envs, *(baseline.shape if baseline else ())], np.float32)
    self._begin()
    for _ in range(num_buffers):
      buffer = unrolls.allocate(
          unroll_length, env.level_names, env.spec.observation,
          policy.output_spec, self._state, env.metric_names)
      buffer.start.environment[:] = env.indices
      self._free.put(buffer)

  def _begin(self) -> None:
    """Forgets all earlier steps."""
    num_envs = self._env.num_envs
    self._env_output: structs.StepOutput | None = None
    self._state = self._policy.initial_state(num_envs)
    self._agent_output = structs.AgentOutput(*[
        np.zeros([num_envs, *spec.shape], spec.dtype) if spec else ()
        for spec in self._policy.output_spec])
    self._truncation_value = self._no_truncation

  def run(self) -> None:
    """Makes unrolls until the inbox or the actor is closed."""
    with contextlib.suppress(queues.QueueClosed):
      while True:
        delivery = self.make_unroll()
        with self._timer.stage('wait'):
          self._inbox.put(delivery)

  def make_unroll(self) -> unrolls.Delivery:
    """Acts for `T` steps and returns the unroll, a buffer of this actor.

    Restarts the unroll if the environments are lost.

    Raises:
      QueueClosed: the actor was closed while waiting for a free buffer.
    """
    while True:
      with self._timer.stage('wait'):
        buffer = self._free.get()
      try:
        return self._fill(buffer)
      except errors.EnvironmentLostError:
        self._begin()
        self._free.put(buffer)

  def _fill(self, buffer: structs.Unroll) -> unrolls.Delivery:
    buffer.start.policy_version[:] = self._policy.refresh(self._published())
    env_output = self._env_output
    if env_output is None:
      env_output = self._env.initial()
    tree.map_structure(np.copyto, buffer.start.agent_state,
                       tree.map_structure(np.asarray, self._state))
    unrolls.write(buffer, 0, env_output, self._agent_output,
                  self._truncation_value)
    lasts: list[structs.LastObservation] = []
    for index in range(1, self._unroll_length + 1):
      env_output = self._step(env_output)
      with self._timer.stage('write'):
        unrolls.write(buffer, index, env_output, self._agent_output,
                      self._truncation_value)
        if env_output.info.episode_end.any():
          lasts += unrolls.last_observations(index, env_output)
    self._env_output = env_output
    return unrolls.Delivery(
        buffer._replace(last_observations=tuple(lasts)),
        functools.partial(self._free.put, buffer))

  def _step(self, env_output: structs.StepOutput) -> structs.StepOutput:
    with self._timer.stage('policy'):
      self._agent_output, self._state = self._policy.step(
          self._agent_output.action, env_output, self._state, *self._ladder)
    with self._timer.stage('environment'):
      env_output = self._env.step(self._agent_output.action)
    self._truncation_value = self._no_truncation
    if self._bootstrap_truncated and env_output.truncated.any():
      with self._timer.stage('policy'):
        self._truncation_value = self._estimate_truncated(env_output)
    return env_output

  def _estimate_truncated(self, env_output: structs.StepOutput) -> np.ndarray:
    """Returns the values of last observations, 0 without truncation."""
    # The recurrent state is not reset: the episode was cut off, not over.
    last = env_output._replace(
        done=np.zeros([self._env.num_envs], bool),
        observation=env_output.last_observation)
    output, _ = self._policy.step(self._agent_output.action, last, self._state)
    # `[E]`, or `[E, L]` with a value for each of several levels.
    return np.where(env_output.truncated, output.baseline.T, np.float32(0)).T

  def close(self) -> None:
    """Makes `run` return; does not close the environments."""
    self._free.close()
