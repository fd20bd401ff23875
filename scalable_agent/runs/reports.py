# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What the first learner is told by the others. Without TensorFlow."""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple


class Report(NamedTuple):
  """What is new since the last report of the same learner.

  Attributes:
    episodes: the `metrics.Episode`s that have ended.
    counts: from `interface.Acting.counts`, by the learner's rank.
  """
  episodes: list[Any]
  counts: dict[int, Mapping[str, int]]


class Reports:
  """What a learner has to tell the first one; there, what all others told.

  Attributes:
    episodes: the `metrics.Episode`s that nobody has taken.
    counts: the latest `interface.Acting.counts`, by the learner's rank.
  """

  def __init__(self):
    self.episodes: collections.deque = collections.deque()
    self.counts: dict[int, Mapping[str, int]] = {}

  def take(self) -> Report:
    """Returns what is new."""
    episodes = [self.episodes.popleft() for _ in range(len(self.episodes))]
    return Report(episodes, dict(self.counts))

  def add(self, report: Report) -> None:
    """Takes a report of another learner."""
    self.episodes.extend(report.episodes)
    self.counts |= report.counts
