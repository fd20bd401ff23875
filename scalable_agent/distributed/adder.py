# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Adds up what learners bring, for `ray_collectives`. Without TensorFlow."""

import asyncio
import dataclasses

import numpy as np
import ray


@dataclasses.dataclass
class _Round:
  """A sum on its way.

  Attributes:
    parts: the vectors that have come, by rank.
    is_done: whether the sum is there.
    result: where it is.
    num_taken: how many learners have taken it.
  """
  parts: dict[int, ray.ObjectRef] = dataclasses.field(default_factory=dict)
  is_done: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
  result: ray.ObjectRef | None = None
  num_taken: int = 0


class Adder:
  """Adds up the vectors of all learners; runs in a process of its own."""

  def __init__(self, size: int):
    """Makes an adder for `size` learners."""
    self._size = size
    self._rounds: dict[int, _Round] = {}

  async def sum(self, number: int, rank: int,
                part: list[ray.ObjectRef]) -> list[ray.ObjectRef]:
    """Waits for all learners; returns where the sum is, in a list.

    Args:
      number: of the sum, from 0 on.
      rank: of the learner.
      part: where its vector is, in a list so that ray does not send it.
    """
    one = self._rounds.setdefault(number, _Round())
    [one.parts[rank]] = part
    if len(one.parts) == self._size:
      # In the order of ranks: the same sum in each run.
      vectors = [await one.parts[i] for i in range(self._size)]
      one.result = ray.put(np.sum(vectors, axis=0, dtype=vectors[0].dtype))
      one.is_done.set()
    await one.is_done.wait()
    assert one.result is not None
    one.num_taken += 1
    if one.num_taken == self._size:
      del self._rounds[number]
    return [one.result]
