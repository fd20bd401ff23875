# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""An agent whose outputs show its inputs."""

import numpy as np
from scalable_agent.experience import structs
import tensorflow as tf


class CountingAgent:
  """Its state counts the steps of the episode.

  Its logits are (observation, state, last action). Its action is the
  observation modulo 3. If it is greedy, it is that of the largest logit.
  """

  observation_normaliser = None

  def __init__(self):
    self.scale = tf.Variable(1.0)
    self.variables = [self.scale]
    self.output_spec = structs.AgentOutput(
        structs.ArraySpec((), np.dtype(np.int32)),
        structs.ArraySpec((3,), np.dtype(np.float32)),
        structs.ArraySpec((), np.dtype(np.float32)))

  def initial_state(self, batch_size):
    return (tf.zeros([batch_size]),)

  def tokenize(self, env_output):
    return env_output

  def step(self, last_action, env_output, state, greedy=False):
    count = tf.where(env_output.done, 0.0, state[0]) + 1
    observed = env_output.observation[:, 0]
    logits = tf.stack(
        [observed, count, tf.cast(last_action, tf.float32)], axis=-1)
    return structs.AgentOutput(
        action=(tf.argmax(logits, axis=-1, output_type=tf.int32) if greedy
                else tf.cast(observed, tf.int32) % 3),
        policy=logits,
        baseline=self.scale * observed), (count,)
