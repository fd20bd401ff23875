# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Policies, which choose the actions of an actor's environments.

`E` is the number of environments of one actor.
"""

from collections.abc import Sequence
import math
import threading
from typing import Protocol
import weakref

import numpy as np
from scalable_agent.acting import dynamic_batching
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.networks import flat_function
import tensorflow as tf
import tree


class Policy(Protocol):
  """Chooses the actions of an actor."""

  @property
  def output_spec(self) -> structs.AgentOutput:
    """`AgentOutput` of `ArraySpec`s of one environment."""

  def refresh(self, weights: structs.Weights) -> int:
    """Acts with `weights` from now on, unless the policy has newer weights.

    Returns the version of the weights that the policy acts with.
    """

  def initial_state(self, batch_size: int) -> structs.State:
    """Returns the recurrent state at the start, a nest of `[E, ...]`."""

  def step(self, last_action: np.ndarray, env_output: structs.StepOutput,
           state: structs.State, *ladder: np.ndarray
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Chooses one action per environment.

    Args:
      last_action: `[E, ...]`, the actions that led to `env_output`.
      env_output: `StepOutput` of `[E, ...]`.
      state: nest of `[E, ...]`, the recurrent state.
      *ladder: perhaps float32 `[E]`, see `Agent.explore`.

    Returns:
      `AgentOutput` of arrays `[E, ...]` and the next state.
    """

  def close(self, timeout_s: float) -> None:
    """Ends the threads of the policy, if any; waits at most `timeout_s`."""


class AgentPolicy:
  """A `Policy` with its own agent, for one thread at a time.

  Only `refresh` changes the agent's variables, so one policy step never mixes
  two versions.
  """

  def __init__(self, agent: agents.Agent, greedy: bool = False,
               jit_compile: bool = False, state_on_host: bool = False):
    """Makes a policy; `refresh` gives it weights.

    Args:
      agent: the agent that acts; its variables are overwritten.
      greedy: whether to take the best known actions, without exploration.
      jit_compile: whether XLA compiles the policy step.
      state_on_host: whether to copy the next state from the device together
        with the outputs, as arrays. Otherwise the state stays on the device.
    """
    self.output_spec = agent.output_spec
    self._agent = agent
    self._greedy = greedy
    self._state_on_host = state_on_host
    state = agent.initial_state(1) if state_on_host else ()
    self._state_structure = tree.map_structure(lambda _: 0, state)
    # Specs of the arrays copied from the device, in order.
    self._copied_specs = [spec for spec in agent.output_spec if spec] + [
        structs.ArraySpec(tuple(part.shape[1:]), part.dtype.as_numpy_dtype)
        for part in tree.flatten(state)]
    self._version = -1
    # Steps of a shared policy have many sizes, which share a trace. XLA must
    # know the size.
    self._step = flat_function.FlatFunction(
        self._policy_step, jit_compile=jit_compile,
        reduce_retracing=not jit_compile)
    self._assign = flat_function.FlatFunction(self._assign_weights)

  def refresh(self, weights: structs.Weights) -> int:
    if weights.version > self._version:
      self._assign(list(weights.values))
      self._version = weights.version
    return self._version

  def initial_state(self, batch_size: int) -> structs.State:
    return self._agent.initial_state(batch_size)

  def step(self, last_action: np.ndarray, env_output: structs.StepOutput,
           state: structs.State, *ladder: np.ndarray
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Returns the output and the next state: tensors, or arrays on the host."""
    env_output = self._agent.tokenize(env_output.for_agent())
    packed, kept = self._step(last_action, env_output, state, *ladder)
    parts = iter(_unpack(packed.numpy(), self._copied_specs))
    output = structs.AgentOutput(
        *(next(parts) if spec else () for spec in self.output_spec))
    if self._state_on_host:
      return output, tree.unflatten_as(self._state_structure, list(parts))
    return output, kept

  def close(self, timeout_s: float) -> None:
    """Does nothing: there are no threads to end."""

  def _policy_step(
      self, last_action: tf.Tensor, env_output: structs.StepOutput,
      state: structs.State, *ladder: tf.Tensor
  ) -> tuple[tf.Tensor, structs.State]:
    output, state = self._agent.step(
        last_action, env_output, state, self._greedy, *ladder)
    if self._state_on_host:
      return _pack((output, state)), ()
    return _pack(output), state

  def _assign_weights(self, values: Sequence[tf.Tensor]) -> None:
    for variable, value in zip(self._agent.variables, values, strict=True):
      variable.assign(value)


def _pack(nest: structs.Nest) -> tf.Tensor:
  """Returns tensors `[E, ...]` of four bytes side by side, uint32 `[E, N]`.

  One array takes one copy from the device, and one wait. Copies can change the
  bits of a float, and TensorFlow keeps int32 on the host: hence uint32.
  """
  parts = [tf.bitcast(part, tf.uint32) for part in tf.nest.flatten(nest)]
  return tf.concat(
      [tf.reshape(part, [tf.shape(part)[0], -1]) for part in parts], axis=1)


def _unpack(packed: np.ndarray,
            specs: Sequence[structs.ArraySpec]) -> list[np.ndarray]:
  """Returns the arrays in the output of `_pack`, with the given specs."""
  parts, start = [], 0
  for spec in specs:
    end = start + math.prod(spec.shape)
    part = np.ascontiguousarray(packed[:, start:end]).view(spec.dtype)
    parts.append(part.reshape(-1, *spec.shape))
    start = end
  return parts


class SharedPolicy:
  """A `Policy` for several actors, which computes steps in batches.

  Weights change between two batches, never within a batch. If one actor calls
  `refresh`, all actors act with the new weights. So an unroll can begin with
  newer weights than the actor's own `refresh` returned, but not with older.
  """

  def __init__(self, policy: AgentPolicy,
               batcher: dynamic_batching.Batcher | None = None):
    """Makes a policy that many threads may call.

    Args:
      policy: makes the steps; must have no other users.
      batcher: collects the environments of a step; None for the defaults.
    """
    lock = threading.Lock()

    def step(*args: structs.Nest) -> structs.Nest:
      with lock:
        return policy.step(*args)

    self.output_spec = policy.output_spec
    self._policy = policy
    self._lock = lock
    if batcher is None:  # An empty batcher is false.
      batcher = dynamic_batching.Batcher()
    self._service = dynamic_batching.Service(step, batcher, 'policy')
    weakref.finalize(self, self._service.close)

  def refresh(self, weights: structs.Weights) -> int:
    with self._lock:
      return self._policy.refresh(weights)

  def initial_state(self, batch_size: int) -> structs.State:
    return self._policy.initial_state(batch_size)

  def step(self, last_action: np.ndarray, env_output: structs.StepOutput,
           state: structs.State, *ladder: np.ndarray
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Returns the output and the next state as arrays.

    Raises:
      QueueClosed: `close` was called.
      Exception: the error of a step of any actor.
    """
    try:
      return self._service(
          last_action, env_output.for_agent(), state, *ladder)
    except tf.errors.CancelledError as e:
      if e.__cause__ is not None:
        raise e.__cause__  # noqa: B904  (The cause itself is the error.)
      raise queues.QueueClosed() from e

  def close(self, timeout_s: float) -> None:
    """Makes every `step` raise `QueueClosed`, which ends `Actor.run`."""
    self._service.close()
    self._service.join(timeout_s)
