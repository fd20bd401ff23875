# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The agent of DeepMind's `experiment`, around `networks.agents.Agent`."""

from collections.abc import Sequence
import threading
from typing import NamedTuple

import numpy as np
from scalable_agent.compat.scalable_agent import environments
from scalable_agent.experience import structs
from scalable_agent.networks import factory
from scalable_agent.networks import instructions
import tensorflow as tf

_INSTRUCTION = structs.ArraySpec((), np.dtype(object))

LstmState = tuple[tf.Tensor, tf.Tensor]


class AgentOutput(NamedTuple):
  """The output of an agent. The difference: the fields have types.

  Attributes:
    action: int32 `[...]`.
    policy_logits: float32 `[..., A]`.
    baseline: float32 `[...]`.
  """
  action: tf.Tensor
  policy_logits: tf.Tensor
  baseline: tf.Tensor


class Agent:
  """The residual network with an LSTM and an encoder of instructions.

  The difference: the agent is no Sonnet module. The first call makes the
  variables, for frames of this size; checkpoints of TensorFlow 1 do not fit.
  """

  def __init__(self, num_actions: int):
    """Makes an agent; RuntimeError with TensorFlow 2 switched off."""
    if not tf.compat.v1.executing_eagerly_outside_functions():
      raise RuntimeError(
          'The agent needs TensorFlow 2: leave out tf.disable_v2_behavior() '
          'and tf.Graph().')
    self._num_actions = num_actions
    self._shape: tuple[int, ...] = ()
    self._lock = threading.Lock()  # Of the first call: actors are threads.
    self._compiled_unroll = tf.function(
        self._unroll, autograph=False, reduce_retracing=True)

  def initial_state(self, batch_size: int) -> LstmState:
    """Returns `(c, h)`, zeros, float32 `[batch_size, 256]`."""
    return tf.zeros([batch_size, 256]), tf.zeros([batch_size, 256])

  @property
  def trainable_variables(self) -> list[tf.Variable]:
    """The variables; an error before the first call."""
    return self._agent.trainable_variables

  def __call__(self, inputs: tuple[tf.Tensor, environments.StepOutput],
               core_state: LstmState) -> tuple[AgentOutput, LstmState]:
    """Chooses actions; `inputs` are last action and env_output, `[B, ...]`."""
    return self._build(inputs, core_state)

  def _build(self, inputs: tuple[tf.Tensor, environments.StepOutput],
             core_state: LstmState) -> tuple[AgentOutput, LstmState]:
    action, env_output = tf.nest.map_structure(
        lambda x: tf.expand_dims(x, 0), inputs)
    outputs, core_state = self.unroll(action, env_output, core_state)
    return tf.nest.map_structure(lambda x: x[0], outputs), core_state

  def unroll(self, actions: tf.Tensor, env_outputs: environments.StepOutput,
             core_state: LstmState) -> tuple[AgentOutput, LstmState]:
    """Evaluates steps `[T, B, ...]`; `done` resets the state before a step."""
    frame, instruction = env_outputs.observation
    frame, instruction = map(tf.convert_to_tensor, (frame, instruction))
    with self._lock:
      if not self._shape:
        self._make(tuple(frame.shape[2:]))
    words = instructions.hash_words_in_graph(tf.reshape(instruction, [-1]))
    words = tf.reshape(words, tf.concat(
        [tf.shape(instruction), tf.shape(words)[-1:]], 0))
    return self._compiled_unroll(
        tf.convert_to_tensor(actions), tf.convert_to_tensor(env_outputs.reward),
        tf.convert_to_tensor(env_outputs.done), frame, words, core_state)

  def _make(self, shape: Sequence[int]) -> None:
    with tf.init_scope():  # The first call may be within a `tf.function`.
      # Follows `tf.random.set_seed`.
      seed = tf.random.uniform([], maxval=tf.int32.max, dtype=tf.int32)
      self._agent = factory.make_agent(
          'deep', {'frame': structs.ArraySpec(tuple(shape), np.dtype(np.uint8)),
                   'instruction': _INSTRUCTION},
          structs.ActionSpec(num_values=(self._num_actions,)), seed=int(seed))
    self._shape = tuple(shape)

  def _unroll(self, actions: tf.Tensor, reward: tf.Tensor, done: tf.Tensor,
              frame: tf.Tensor, words: tf.Tensor, core_state: LstmState
              ) -> tuple[AgentOutput, LstmState]:
    output, core_state = self._agent.unroll(actions, structs.StepOutput(
        reward, structs.NO_INFO, done, {'frame': frame, 'instruction': words}),
                                            core_state)
    logits = output.policy
    action = tf.random.categorical(
        tf.reshape(logits, [-1, self._num_actions]), 1, tf.int32)
    return AgentOutput(tf.reshape(action, tf.shape(logits)[:-1]), logits,
                       output.baseline), core_state
