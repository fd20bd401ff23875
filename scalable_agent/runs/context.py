# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Objects that are created once per run, not once per part."""

from collections.abc import Iterator
import contextlib
import dataclasses
import threading

from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.runs import panel as panel_lib
from scalable_agent.runs import reports as reports_lib
from scalable_agent.runs import videos as videos_lib
from scalable_agent.settings import sections


@dataclasses.dataclass(frozen=True)
class RunContext:
  """The objects of a run, of one learner.

  Attributes:
    stop: ends the training when set.
    collectives: connects the learners of the run.
    reports: episodes and counts that the other learners send to learner 0.
    panel: shows the progress of learner 0 in a terminal, instead of lines.
    videos: records videos while learner 0 trains, with `--video_secs`.
  """
  stop: threading.Event
  collectives: collectives_lib.Collectives
  reports: reports_lib.Reports
  panel: panel_lib.Panel | None = None
  videos: videos_lib.Videos | None = None

  @property
  def rank(self) -> int:
    """The number of this learner."""
    return self.collectives.rank


@contextlib.contextmanager
def open_context(config: sections.AllSections, stop: threading.Event,
                 collectives: collectives_lib.Collectives,
                 reports: reports_lib.Reports | None) -> Iterator[RunContext]:
  """Yields the context of the run; closes its panel and videos at the exit."""
  shown = videos = None
  with contextlib.ExitStack() as stack:
    if collectives.rank == 0:
      shown = panel_lib.make(f'{config.algorithm} on {config.level_name}')
      if shown:
        stack.callback(shown.close)
      if config.video_secs:
        videos = stack.enter_context(
            contextlib.closing(videos_lib.Videos(config)))
    yield RunContext(
        stop, collectives, reports or reports_lib.Reports(), shown, videos)
