# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Threads that run code of TensorFlow or ray."""

from collections.abc import Callable
import threading


class LibraryThread(threading.Thread):
  """A daemon thread that may be within TensorFlow or ray at any time.

  Python unloads libraries at its end and may crash while such a thread runs, so
  `console.end_program` skips that part.
  """

  def __init__(self, target: Callable[[], None], name: str) -> None:
    super().__init__(target=target, name=name, daemon=True)


def library_threads() -> list[LibraryThread]:
  """Returns all living `LibraryThread`s."""
  return [thread for thread in threading.enumerate()
          if isinstance(thread, LibraryThread)]
