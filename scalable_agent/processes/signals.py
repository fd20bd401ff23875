# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Signals that end a program."""

from collections.abc import Iterator
import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
import types
from typing import TextIO

from scalable_agent import errors

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = 5.
# `timeout` sends its signal to the program, and at once to the group.
_SAME_SIGNAL_S = .5
_SAY_TIMEOUT_S = 1.
_PR_SET_PDEATHSIG = 1  # From <linux/prctl.h>.
# Loaded before child processes need the library.
_LIBC = ctypes.CDLL(None) if sys.platform == 'linux' else None


# Set by the command-line program. The process of a caller of `train` has more
# to do than to train.
is_program = False


class Stopped(KeyboardInterrupt):
  """A signal came when there was nothing to save; carries the exit code."""


class Stop(threading.Event):
  """An event that is set by the first signal.

  `waits_for` is the work that must be finished before the program ends, in
  words. If the work takes long, the user is told. If empty, there is nothing
  new to save: the signal raises `Stopped`, and a program (`is_program`) that
  still does not end is ended after a few seconds. `number` is that of the
  signal, 0 before a signal.
  """

  def __init__(self, waits_for: str = 'the end of the training') -> None:
    super().__init__()
    self.waits_for = waits_for
    self.number = 0

  # A thread calls `set`, a moment after the signal, or never if the program has
  # taken the wakeup descriptor.
  def is_set(self) -> bool:
    return bool(self.number) or super().is_set()

  def wait(self, timeout: float | None = None) -> bool:
    return self.is_set() or super().wait(timeout) or self.is_set()


def wait_for(stop: threading.Event, what: str) -> None:
  """Sets `waits_for` if the event is a `Stop`."""
  if isinstance(stop, Stop):
    stop.waits_for = what


def hint(stop: threading.Event) -> str:
  """Returns a sentence on a second signal, if a signal has set the event."""
  is_signal = isinstance(stop, Stop) and stop.number
  return ' A second signal stops at once.' if is_signal else ''


@contextlib.contextmanager
def stopped_by_hook(stop: threading.Event) -> Iterator[None]:
  """Sets `stop`, and says so, if a hook raises `StopTraining` within."""
  try:
    yield
  except errors.StopTraining as e:
    if not stop.is_set():  # The last summary calls --hook once more.
      reason = f': {e}' if str(e) else ''
      print(f'\nA hook has ended the training{reason}.', flush=True)
    stop.set()


@contextlib.contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
  """Yields an event that the first SIGINT, SIGTERM or SIGHUP sets.

  The second signal ends the process and its children at once, unless it comes
  within half a second: then both count as one. SIGHUP stays ignored under
  nohup. In a thread other than the main thread, signals are not handled.
  """
  stop = Stop() if stop is None else stop
  if threading.current_thread() is not threading.main_thread():
    yield stop  # Python allows handlers in the main thread only.
    return
  numbers = [*_SIGNALS]
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    numbers.append(signal.SIGHUP)

  def handle(number: int, unused_frame: types.FrameType | None) -> None:
    if stop.number:
      return  # `_watch` knows whether this is a second signal.
    # `_watch` calls `set`: here, `set` would wait for a lock which the main
    # thread may have, in `wait`.
    stop.number = number
    if not stop.waits_for:
      raise Stopped(128 + number)

  # Python's handlers wait until the main thread returns from TensorFlow or from
  # another call that hangs. This thread does not wait.
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


def _watch(arrived: int, numbers: list[signal.Signals], stop: Stop) -> None:
  """Runs in a thread: after a signal, reports slow work, or ends the program.

  `arrived` is a file descriptor, from which numbers of signals are read.
  """
  with os.fdopen(arrived, 'rb', buffering=0) as pipe:
    number, saying = 0, None
    while number not in numbers:
      data = pipe.read(1)
      if not data:
        return
      number = data[0]
    stop.set()
    # By arrival: a busy machine may run this thread late.
    time.sleep(_SAME_SIGNAL_S)
    while select.select([pipe], [], [], 0)[0]:
      if not pipe.read(1):
        return
    while True:
      if select.select([pipe], [], [], _PATIENCE_S)[0]:
        data = pipe.read(1)
        if not data:
          return
        if data[0] in numbers:
          _die(data[0])
      elif not stop.waits_for and is_program:
        _say('Ended by a signal before there was anything new to save.',
             sys.stderr).join(_SAY_TIMEOUT_S)
        os._exit(128 + number)
      elif saying is None or not saying.is_alive():
        saying = _say(
            f'Still waiting for {stop.waits_for or "the call in progress"}. '
            'A second signal ends the program at once.', sys.stdout)


def _say(text: str, file: TextIO) -> threading.Thread:
  """Prints in another thread, for a reader may have ended or been stopped."""
  def say() -> None:
    with contextlib.suppress(OSError, ValueError):
      print(text, file=file, flush=True)

  thread = threading.Thread(target=say, daemon=True)
  thread.start()
  return thread


def _die(number: int) -> None:
  """Ends this process by a signal; may be called in any thread."""
  if _LIBC is not None:
    _LIBC.signal(number, None)  # Python's `signal` needs the main thread.
    os.kill(os.getpid(), number)
    time.sleep(1)
  os._exit(128 + number)


@contextlib.contextmanager
def blocked(number: signal.Signals) -> Iterator[None]:
  """Hides a signal from child processes that this thread starts within.

  In child processes, the signal stays blocked, even during imports. In this
  thread, the signal is delivered at the end.
  """
  previous = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def end_with_parent(parent: int) -> None:
  """Ends this process with a SIGTERM when the process `parent` dies."""
  send_when_parent_dies(signal.SIGTERM)
  if os.getppid() != parent:  # The parent had died before.
    os._exit(1)


def send_when_parent_dies(number: signal.Signals) -> None:
  """Makes Linux send a signal to this process when its parent dies."""
  if _LIBC is not None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number))
