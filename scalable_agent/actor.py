# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Acting: a policy with published weights, and the loop that makes unrolls.

`E` is the number of environments of one actor, `T` the unroll length.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from scalable_agent import metrics
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls
import tensorflow as tf
import tree


class Weights(NamedTuple):
  """A published version of an agent's weights, never changed afterwards.

  Attributes:
    version: number of updates that made them.
    values: one tensor per variable, in the order of `agent.variables`.
  """
  version: int
  values: List[tf.Tensor]


class Policy:
  """An agent of its own that acts with the latest published weights.

  The agent's variables change in `refresh` alone, so one policy step never
  mixes two versions. For one thread at a time.
  """

  def __init__(self, agent: Any, published: Callable[[], Weights],
               greedy: bool = False, jit_compile: bool = False):
    """Makes a policy.

    Args:
      agent: the agent that acts; its variables are overwritten.
      published: returns the latest weights; called from the actor's thread.
      greedy: whether to take the most likely action instead of a sample.
      jit_compile: whether XLA compiles the policy step.
    """
    self._agent = agent
    self._published = published
    self._greedy = greedy
    self._version: Optional[int] = None
    # A shared policy makes steps of many sizes. XLA wants to know them.
    self._step = tf.function(
        self._policy_step, autograph=False, jit_compile=jit_compile,
        reduce_retracing=not jit_compile)
    # To look up a function by nested arguments takes longer than a small
    # network: they are flat, and what was found for shapes and dtypes is kept.
    self._steps: Dict[Any, Callable[..., Any]] = {}
    self._structure: Any = None
    self._assign = tf.function(self._assign_weights, autograph=False)

  def refresh(self) -> int:
    """Takes over the latest weights and returns their version."""
    weights = self._published()
    if weights.version != self._version:
      self._assign(weights.values)
      self._version = weights.version
    return self._version

  def initial_state(self, batch_size: int) -> Any:
    """Returns the recurrent state at the start, a nest of `[E, ...]`."""
    return self._agent.initial_state(batch_size)

  def step(self, last_action: np.ndarray, env_output: structs.StepOutput,
           state: Any) -> Tuple[structs.AgentOutput, Any]:
    """Chooses one action per environment.

    Args:
      last_action: int32 `[E]`, the actions that led to `env_output`.
      env_output: `StepOutput` of `[E, ...]`.
      state: nest of `[E, ...]`, the recurrent state.

    Returns:
      `AgentOutput` of arrays `[E, ...]` and the next state (tensors).
    """
    env_output = self._agent.tokenize(env_output._replace(
        info=(), truncated=(), last_observation=()))
    arguments = (last_action, env_output, state)
    flat = tree.flatten(arguments)
    tensors = [tf.convert_to_tensor(x) for x in flat]
    key = tuple([(x.shape, x.dtype) for x in flat])
    if key not in self._steps:
      self._structure = tree.map_structure(lambda _: 0, arguments)
      self._steps[key] = self._step.get_concrete_function(*tensors)
    *output, state = self._steps[key](*tensors)
    return structs.AgentOutput(*[tensor.numpy() for tensor in output]), state

  def _policy_step(self, *tensors):
    output, state = self._agent.step(
        *tree.unflatten_as(self._structure, tensors))
    if self._greedy:
      best = tf.argmax(output.policy_logits, axis=-1, output_type=tf.int32)
      output = output._replace(action=best)
    return [*output, state]

  def _assign_weights(self, values):
    for variable, value in zip(self._agent.variables, values, strict=True):
      variable.assign(value)


class Actor:
  """Steps `E` environments with a policy and hands over their unrolls."""

  def __init__(self, env: Any, policy: Policy, sink: queues.BoundedQueue,
               unroll_length: int, timer: metrics.StageTimer,
               num_buffers: int = 2, bootstrap_truncated: bool = False):
    """Makes an actor; nothing runs before `run` or `make_unroll`.

    Args:
      env: a `FlowEnvironment` of `E` environments.
      policy: a `Policy` that no other thread uses, or a
        `dynamic_batching.SharedPolicy`.
      sink: takes the `Unroll`s. Whoever has read one releases it.
      unroll_length: `T`, agent steps.
      timer: where the time goes is added up here.
      num_buffers: how many unrolls are allocated and used in turn.
      bootstrap_truncated: whether to estimate the value of the last
        observation where a time limit ends an episode.
    """
    self._env = env
    self._policy = policy
    self._sink = sink
    self._unroll_length = unroll_length
    self._timer = timer
    self._bootstrap_truncated = bootstrap_truncated
    [num_actions] = env.spec.action.num_values
    self._state = policy.initial_state(env.num_envs)
    self._free = queues.BoundedQueue(num_buffers)
    for _ in range(num_buffers):
      self._free.put(unrolls.allocate(
          unroll_length, env.level_names, env.spec.observation, num_actions,
          self._state, pool=self._free))
    self._env_output: Optional[structs.StepOutput] = None
    self._agent_output = structs.AgentOutput(
        action=np.zeros([env.num_envs], np.int32),
        policy_logits=np.zeros([env.num_envs, num_actions], np.float32),
        baseline=np.zeros([env.num_envs], np.float32))
    self._no_truncation = np.zeros([env.num_envs], np.float32)
    self._truncation_value = self._no_truncation

  def run(self) -> None:
    """Makes unrolls until the sink or the actor is closed."""
    try:
      while True:
        unroll = self.make_unroll()
        with self._timer.stage('wait'):
          self._sink.put(unroll)
    except queues.QueueClosed:
      pass

  def make_unroll(self) -> unrolls.Unroll:
    """Acts for `T` steps and returns them in a buffer of this actor.

    Raises:
      QueueClosed: if the actor was closed while it waited for a free buffer.
    """
    with self._timer.stage('wait'):
      unroll = self._free.get()
    unroll.policy_version[:] = self._policy.refresh()
    if self._env_output is None:
      self._env_output = self._env.initial()._replace(truncated=())
    tree.map_structure(np.copyto, unroll.output.agent_state,
                       tree.map_structure(np.asarray, self._state))
    unrolls.write(unroll, 0, self._env_output, self._agent_output,
                  self._truncation_value)
    for index in range(1, self._unroll_length + 1):
      with self._timer.stage('policy'):
        self._agent_output, self._state = self._policy.step(
            self._agent_output.action, self._env_output, self._state)
      with self._timer.stage('environment'):
        output = self._env.step(self._agent_output.action)
      self._env_output = output._replace(truncated=(), last_observation=())
      self._truncation_value = self._no_truncation
      if self._bootstrap_truncated and output.truncated.any():
        with self._timer.stage('policy'):
          self._truncation_value = self._estimate_truncated(output)
      with self._timer.stage('write'):
        unrolls.write(unroll, index, self._env_output, self._agent_output,
                      self._truncation_value)
    return unroll

  def _estimate_truncated(self, env_output) -> np.ndarray:
    """Returns the values of last observations, 0 where there is none."""
    # As if the episode went on: the recurrent state is not reset.
    last = self._env_output._replace(
        done=np.zeros([self._env.num_envs], bool),
        observation=env_output.last_observation)
    output, _ = self._policy.step(self._agent_output.action, last, self._state)
    return np.where(env_output.truncated, output.baseline, np.float32(0))

  def close(self) -> None:
    """Makes `run` return; does not close the environments."""
    self._free.close()
