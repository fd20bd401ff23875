# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Signals that end a program. Without TensorFlow."""

from collections.abc import Iterator
import contextlib
import ctypes
import os
import select
import signal
import sys
import threading

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = 5.
_PR_SET_PDEATHSIG = 1  # From <linux/prctl.h>.
# Loaded before there are child processes that need it.
_LIBC = ctypes.CDLL(None) if sys.platform == 'linux' else None


class Stopped(KeyboardInterrupt):
  """A signal came when there was nothing to save; has the exit code."""


class Stop(threading.Event):
  """Is set by the first signal.

  Attributes:
    waits_for: what the end has to wait for, in words. The user is told if it
      takes long. If it is empty, there is nothing to lose: the signal raises
      `Stopped`, and if this does not help, the process ends.
  """

  def __init__(self, waits_for: str = 'the end of the training') -> None:
    super().__init__()
    self.waits_for = waits_for


def wait_for(stop: threading.Event, what: str) -> None:
  """Sets `waits_for` of a `Stop`; other events have none."""
  if isinstance(stop, Stop):
    stop.waits_for = what


@contextlib.contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
  """Yields an event that the first SIGINT, SIGTERM or SIGHUP sets.

  The second one ends the process at once; its children end with it. Under
  nohup, which ignores SIGHUP, it stays ignored.

  Args:
    stop: the event; a new one if not given.
  """
  stop = Stop() if stop is None else stop
  numbers = [*_SIGNALS]
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    numbers.append(signal.SIGHUP)

  def handle(number, unused_frame):
    for other in numbers:
      signal.signal(other, signal.SIG_DFL)
    stop.set()
    if not stop.waits_for:
      raise Stopped(128 + number)

  # Python's handlers wait until the main thread returns from TensorFlow, or
  # from what hangs. This thread does not.
  arrived, wakeup = os.pipe()
  os.set_blocking(wakeup, False)
  watcher = threading.Thread(
      target=_watch, args=(arrived, numbers, stop), name='signals', daemon=True)
  watcher.start()
  previous_wakeup = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
  previous = [signal.signal(number, handle) for number in numbers]
  try:
    yield stop
  finally:
    for number, handler in zip(numbers, previous):
      signal.signal(number, handler)
    signal.set_wakeup_fd(previous_wakeup)
    os.close(wakeup)  # Ends the thread.


def _watch(arrived, numbers, stop):
  """Runs in a thread: says what takes long after a signal, or ends it."""
  with os.fdopen(arrived, 'rb', buffering=0) as pipe:
    number = 0
    while number not in numbers:
      data = pipe.read(1)
      if not data:
        return
      number = data[0]
    stop.set()
    while True:
      if select.select([pipe], [], [], _PATIENCE_S)[0]:
        data = pipe.read(1)
        if not data:
          return
        if data[0] in numbers:  # The second one; the first is not handled yet.
          os._exit(128 + data[0])
      elif not stop.waits_for:
        print('Ended by a signal before there was anything to save.',
              file=sys.stderr, flush=True)
        os._exit(128 + number)
      else:
        print(f'Still waiting for {stop.waits_for}. A second signal ends the '
              'program at once.', flush=True)


@contextlib.contextmanager
def blocked(number: signal.Signals) -> Iterator[None]:
  """Children that this thread starts within never see a signal.

  They keep it blocked also while they import. Here it waits until the end.
  """
  previous = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def send_when_parent_dies(number: signal.Signals) -> None:
  """Lets Linux send a signal to this process when its parent dies."""
  if _LIBC is not None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number))
