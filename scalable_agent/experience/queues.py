# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A bounded queue between threads that can be closed and can pass an error."""

import collections
from collections.abc import Callable, Iterator
import contextlib
import threading
import time
import types
from typing import Generic, TypeVar

_T = TypeVar('_T')


class QueueClosed(Exception):
  """The queue is closed."""


class QueueTimeout(Exception):
  """Nothing happened on the queue within the given time."""


class BoundedQueue(Generic[_T]):
  """First in, first out. `put` waits for room, and `get` for an item.

  Unlike a `queue.Queue`, this queue can be closed, which ends every wait. With
  `fail`, a thread closes the queue with an error that all other threads raise.
  """

  def __init__(self, capacity: int):
    """Makes an empty queue of at most `capacity` items, at least 1."""
    if capacity < 1:
      raise ValueError(f'capacity must be at least 1 but was {capacity}.')
    self._capacity = capacity
    self._items: collections.deque[_T] = collections.deque()
    self._changed = threading.Condition()
    self._closed = False
    self._error: BaseException | None = None
    self._traceback: types.TracebackType | None = None

  def put(self, item: _T) -> None:
    """Appends `item`; waits for room.

    Raises `QueueClosed`, or the error of `fail`.
    """
    with self._changed:
      self._wait(lambda: len(self._items) < self._capacity, None)
      self._items.append(item)
      self._changed.notify_all()

  def get(self, timeout_s: float | None = None) -> _T:
    """Takes the oldest item; waits up to `timeout_s` (None: no limit).

    Raises `QueueClosed`, `QueueTimeout`, or the error given to `fail`.
    """
    with self._changed:
      self._wait(lambda: self._items, timeout_s)
      item = self._items.popleft()
      self._changed.notify_all()
      return item

  def close(self) -> None:
    """Drops all items and makes every `put` and `get` raise `QueueClosed`."""
    with self._changed:
      self._close()

  def fail(self, error: BaseException) -> None:
    """Closes the queue; later `put` and `get` raise the first `error`."""
    with self._changed:
      if not self._closed:
        self._error = error
        self._traceback = error.__traceback__
      self._close()

  def _close(self) -> None:
    """Closes the queue; the caller has the lock."""
    self._closed = True
    self._items.clear()
    self._changed.notify_all()

  @contextlib.contextmanager
  def ending_thread(self) -> Iterator[None]:
    """Wraps a thread: passes an error to `fail`; `QueueClosed` is the end."""
    try:
      yield
    except QueueClosed:
      pass
    except BaseException as e:
      self.fail(e)

  def _wait(self, ready: Callable[[], object],
            timeout_s: float | None) -> None:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while not self._closed and not ready():
      left_s = None if deadline is None else deadline - time.monotonic()
      if left_s is not None and left_s <= 0:
        raise QueueTimeout(f'Nothing happened for {timeout_s} s.')
      self._changed.wait(left_s)
    if self._error is not None:
      # All threads raise the same object, so the traceback is reset.
      raise self._error.with_traceback(self._traceback)
    if self._closed:
      raise QueueClosed()
