# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Signals that end a program."""

from collections.abc import Iterator
import contextlib
import signal
import threading

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
  """Yields an event that the first SIGINT, SIGTERM or SIGHUP sets.

  The second one ends the process at once; its children end with it. Under
  nohup, which ignores SIGHUP, it stays ignored.
  """
  stop = threading.Event()
  numbers = [*_SIGNALS]
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    numbers.append(signal.SIGHUP)

  def handle(unused_number, unused_frame):
    stop.set()
    for number in numbers:
      signal.signal(number, signal.SIG_DFL)

  previous = [signal.signal(number, handle) for number in numbers]
  try:
    yield stop
  finally:
    for number, handler in zip(numbers, previous):
      signal.signal(number, handler)
