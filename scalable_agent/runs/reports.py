# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Reports of the other learners to learner 0. Without TensorFlow."""

import collections
from collections.abc import Mapping
from typing import NamedTuple

from scalable_agent.experience import structs

# Printed by a learner, or by the driver if no learner has started.
STOPPED = 'Stopped before the training began.'


class Report(NamedTuple):
  """Episodes and counts since the last report of the same learner.

  `counts` are those of `interface.Acting.counts`, by the learner's rank.
  """
  episodes: list[structs.Episode]
  counts: dict[int, Mapping[str, int]]


class Reports:
  """Episodes and counts sent from the other learners to learner 0.

  `episodes` are those that `take` has not returned yet, `counts` the latest
  `interface.Acting.counts`, by the learner's rank.
  """

  def __init__(self) -> None:
    self.episodes: collections.deque[structs.Episode] = collections.deque()
    self.counts: dict[int, Mapping[str, int]] = {}

  def take(self) -> Report:
    """Returns and removes the new episodes; returns the latest counts."""
    episodes = [self.episodes.popleft() for _ in range(len(self.episodes))]
    return Report(episodes, dict(self.counts))

  def add(self, report: Report) -> None:
    """Adds the report of another learner."""
    self.episodes.extend(report.episodes)
    self.counts |= report.counts
