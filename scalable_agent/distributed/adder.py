# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The process that sums the learners' vectors, without TensorFlow."""

import asyncio
import dataclasses

import numpy as np
import ray


@dataclasses.dataclass
class _Round:
  """A sum in progress.

  Attributes:
    parts: the vectors received so far, by rank.
    is_done: set when `result`, the sum, is ready.
    num_readers: number of learners that have received the sum.
  """
  parts: dict[int, ray.ObjectRef] = dataclasses.field(default_factory=dict)
  is_done: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
  result: ray.ObjectRef | None = None
  num_readers: int = 0


class Adder:
  """Sums the vectors of all learners; runs in its own process."""

  def __init__(self, size: int):
    self._size = size
    self._rounds: dict[int, _Round] = {}

  async def sum(self, number: int, rank: int,
                part: list[ray.ObjectRef]) -> list[ray.ObjectRef]:
    """Waits for all learners; returns a reference to the sum, in a list.

    `number` counts the sums, from 0 on. `part` has a reference to the learner's
    vector: the list keeps ray from sending the vector itself.
    """
    current = self._rounds.setdefault(number, _Round())
    [current.parts[rank]] = part
    if len(current.parts) == self._size:
      # In the order of ranks: the same sum in each run.
      vectors = [await current.parts[i] for i in range(self._size)]
      current.result = ray.put(np.sum(vectors, axis=0, dtype=vectors[0].dtype))
      current.is_done.set()
    await current.is_done.wait()
    assert current.result is not None
    current.num_readers += 1
    if current.num_readers == self._size:
      del self._rounds[number]
    return [current.result]
