# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Signals that end a program."""

from collections.abc import Iterator
import contextlib
import signal
import threading

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
  """Yields an event that the first SIGINT or SIGTERM sets.

  The second one ends the process at once; its children end with it.
  """
  stop = threading.Event()

  def handle(unused_number, unused_frame):
    stop.set()
    for number in _SIGNALS:
      signal.signal(number, signal.SIG_DFL)

  previous = [signal.signal(number, handle) for number in _SIGNALS]
  try:
    yield stop
  finally:
    for number, handler in zip(_SIGNALS, previous):
      signal.signal(number, handler)
