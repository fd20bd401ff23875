# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""An actor worker with sleeping environments; without TensorFlow.

The worker replaces `remote_actors.ActorWorker` in `benchmarks/cluster.py`.
"""

import socket
import threading
import time
from typing import NamedTuple

import numpy as np
from scalable_agent.distributed import descriptions
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
import tree

UNROLL_LENGTH = 20
NUM_ENVIRONMENTS = 32
STEP_S = 0.02

_OUTPUT = structs.AgentOutput(
    structs.ArraySpec((), np.dtype(np.int32)),
    structs.ArraySpec((6,), np.dtype(np.float32)),
    structs.ArraySpec((), np.dtype(np.float32)))


class Message(NamedTuple):
  """As `remote_actors.Message`."""
  unroll: structs.Unroll
  seconds: dict[str, float]


def make_unroll(shape: tuple[int, ...]) -> structs.Unroll:
  """Returns an unroll of frames; each stack is the one before, moved on."""
  unroll = unrolls.allocate(
      UNROLL_LENGTH, ['sleep'] * NUM_ENVIRONMENTS,
      structs.ArraySpec(shape, np.dtype(np.uint8)), _OUTPUT, ())
  return unroll._replace(steps=tree.map_structure(np.zeros_like, unroll.steps))


class SleepingWorker:
  """Makes an unroll in the time that its steps take."""

  def __init__(self, config, part, share, learner_node):
    del part, learner_node
    self._pack = config.pack
    self._inbox = queues.BoundedQueue[structs.Unroll](1)
    # --height is that of a frame; 1 for tiny observations.
    size = config.height
    self._shape = (4, size, size) if size > 1 else (8,)
    self._unroll = make_unroll(self._shape)
    self._unroll.start.environment[:] = share.environments.start
    self._thread = threading.Thread(target=self._act, daemon=True)

  def host(self) -> str:
    return socket.gethostname()

  def open(self) -> descriptions.Description:
    spec = structs.EnvironmentSpec(
        structs.ArraySpec(self._shape, np.dtype(np.uint8)),
        structs.ActionSpec((6,)), 1)
    return descriptions.Description(spec, 1, '', 0, {})

  def next_unroll(self, newer: list) -> Message:
    del newer
    if not self._thread.is_alive():
      self._thread.start()
    unroll = self._inbox.get()
    if self._pack != 'none':
      unroll = packing.pack(unroll, self._pack == 'zlib')
    return Message(unroll, {'policy': 1.})

  def _act(self):
    while True:
      begin_s = time.monotonic()
      # Writing into the buffer is the actor's work, too.
      self._unroll.steps.env_outputs.observation[...] = 1
      time.sleep(max(
          UNROLL_LENGTH * STEP_S - (time.monotonic() - begin_s), 0))
      self._inbox.put(self._unroll)
