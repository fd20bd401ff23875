# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Objects that are created once per run, not once per part."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import threading
from typing import Any

from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.processes import signals
from scalable_agent.processes import user_code
from scalable_agent.runs import panel as panel_lib
from scalable_agent.runs import reports as reports_lib
from scalable_agent.runs import videos as videos_lib
from scalable_agent.settings import sections

# A function of --hook: gets frames so far, and the numbers of a summary.
SummaryHook = Callable[[int, Mapping[str, float]], None]


@dataclasses.dataclass(frozen=True)
class RunContext:
  """The objects of a run, of one learner.

  Attributes:
    stop: ends the training when set.
    collectives: connects the learners of the run.
    reports: episodes and counts that the other learners send to learner 0.
    panel: shows the progress of learner 0 in a terminal, instead of lines.
    videos: records videos while learner 0 trains, with `--video_secs`.
    hook: gets the summaries of learner 0, with `--hook`.
    say: takes lines of text of this learner for the user.
  """
  stop: threading.Event
  collectives: collectives_lib.Collectives
  reports: reports_lib.Reports
  panel: panel_lib.Panel | None = None
  videos: videos_lib.Videos | None = None
  hook: SummaryHook | None = None
  say: Callable[[str], None] = print

  @property
  def rank(self) -> int:
    """The number of this learner."""
    return self.collectives.rank


@contextlib.contextmanager
def open_context(config: sections.AllSections, stop: threading.Event,
                 collectives: collectives_lib.Collectives,
                 reports: reports_lib.Reports | None,
                 say: Callable[[str], None] = print
                 ) -> Iterator[RunContext]:
  """Yields the context of the run; closes its parts at the exit."""
  shown = videos = hook = None
  with contextlib.ExitStack() as stack:
    if collectives.rank == 0:
      shown = panel_lib.make(f'{config.algorithm} on {config.level_name}')
      if shown:
        stack.callback(shown.close)
      if config.video_secs:
        videos = stack.enter_context(
            contextlib.closing(videos_lib.Videos(config)))
      if config.hook:
        hook = stack.enter_context(_open_hook(config, stop))
    yield RunContext(
        stop, collectives, reports or reports_lib.Reports(), shown, videos,
        hook, say)


@contextlib.contextmanager
def _open_hook(config: sections.AllSections,
               stop: threading.Event) -> Iterator[SummaryHook]:
  """Yields the hook. If `--hook` names a class, calls the hook's `close`.

  A hook that raises `StopTraining` sets `stop`.
  """
  name = f'{config.hook} of --hook'
  function = user_code.load(config.hook, 'hook')
  is_class = isinstance(function, type)
  with user_code.errors_explained(name):
    hook: Any = function(config) if is_class else function

  def call(num_env_frames: int, values: Mapping[str, float]) -> None:
    with user_code.errors_explained(name), signals.stopped_by_hook(stop):
      hook(num_env_frames, values)

  def close() -> None:
    if is_class and hasattr(hook, 'close'):
      hook.close()

  try:
    yield call
  except BaseException:
    with contextlib.suppress(Exception):  # The first error counts.
      close()
    raise
  with user_code.errors_explained(name):
    close()
