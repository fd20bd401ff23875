# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs an object in its own process, for queries to environments.

For stepping environments, see `workers`.
"""

from collections.abc import Callable
import contextlib
from multiprocessing import connection
import operator
import os
import pickle
import socket
import struct
import threading
from typing import Any

import gymnasium
from scalable_agent import errors
from scalable_agent.processes import console
from scalable_agent.processes import processes
from scalable_agent.processes import starts
from scalable_agent.processes import user_code

_CLOSE_TIMEOUT_S = 2.0
_LONGEST_WAIT_S = 1e9  # The system takes no infinite time.


class Remote:
  """An object in its own process; one method is called at a time."""

  def __init__(self, name: str, make: Callable[[], object], timeout_s: float,
               more_s: float = 0.):
    """Starts the process and makes the object in it.

    Args:
      name: the object's name, for errors.
      make: makes the object.
      timeout_s: longest duration of a call, in seconds. `make` may take
        `starts.more_s(1)` longer, and all other calls `more_s`.
      more_s: see `timeout_s`.

    Raises:
      UserError: raised by `make`.
      EnvironmentProcessError: `make` raised any other error, or the process
        died or does not answer.
    """
    self._name = name
    self._timeout_s, self._more_s = timeout_s, more_s
    self._lock = threading.Lock()
    self._pipe, pipe = processes.CONTEXT.Pipe()
    _limit_waits(self._pipe, timeout_s + more_s)
    with pipe:
      try:
        self._process = processes.start(
            _serve, (pipe, gymnasium.vector.utils.CloudpickleWrapper(make)),
            'remote')
      except (EOFError, OSError) as e:
        raise errors.EnvironmentProcessError(
            f'The process of {name} cannot be started: {e!r}. Limits on '
            'processes and memory (ulimit) may be too low.') from e
      except (TypeError, ValueError, pickle.PicklingError) as e:
        raise errors.UserCodeError(
            f'{name} cannot be sent to another process: {e}. Make locks, '
            'connections and the like in the constructor.') from e
    self._answer(starts.more_s(1))

  def call(self, method: str, *args: object) -> Any:
    """Returns the result of a method; raises the errors of `__init__`."""
    with self._lock:
      return self._answer(self._more_s, pickle.dumps((method, args)))

  def call_last(self, method: str, timeout_s: float) -> None:
    """Calls a method without a result, then ends the process.

    After `timeout_s`, or an end of the process, the method may be unfinished.
    """
    with self._lock, contextlib.suppress(OSError):
      self._pipe.send((method, ()))
    self.close(timeout_s)

  def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
    """Ends the process, by force after `timeout_s`; may be called again."""
    if self._pipe.closed:
      return
    self._pipe.close()
    try:
      self._process.join(timeout_s)
    finally:
      processes.end([self._process])

  def __enter__(self) -> 'Remote':
    return self

  def __exit__(self, *exc_info: object) -> None:
    self.close()

  def _answer(self, more_s: float, request: bytes = b'') -> object:
    """Sends a request, if any; returns the result, or raises its error."""
    try:
      value, error = self._receive(more_s, request)
    except BaseException:  # Such as Ctrl-C: the process may be busy.
      self._process.kill()
      self.close()
      raise
    if error is None:
      return value
    self.close()
    if isinstance(error, user_code.ErrorText):
      error = error.error(self._name)
    raise error

  def _receive(self, more_s: float, request: bytes
               ) -> tuple[object, Exception | user_code.ErrorText | None]:
    timeout_s = self._timeout_s + more_s
    patience = processes.Patience(timeout_s)
    try:
      # A process that has died may have sent an error before.
      with contextlib.suppress(ConnectionError):
        if request:
          self._pipe.send_bytes(request)
      while not patience.wait(self._pipe.poll):
        if patience.left_s <= 0:
          raise TimeoutError
      return self._pipe.recv()
    except (TimeoutError, BlockingIOError):  # See `_limit_waits`.
      more = f', and {more_s:g} s more' if more_s else ''
      raise errors.EnvironmentProcessLostError(
          f'{self._name} did not answer within {timeout_s:g} seconds '
          f'(--step_timeout_s{more}).') from None
    except (EOFError, OSError):
      self._process.join(_CLOSE_TIMEOUT_S)
      raise errors.EnvironmentProcessLostError(
          f'The process of {self._name} died with exit code '
          f'{self._process.exitcode}; {processes.WHERE_MESSAGE}.') from None


def _limit_waits(pipe: connection.Connection, timeout_s: float) -> None:
  """Lets sends and receives fail after `timeout_s` seconds without progress.

  A process that is stopped may have read a part of a long request, or sent a
  part of a long result. Such a wait is a `BlockingIOError` then. Time in which
  this process is stopped does not count, as Linux begins the wait anew.
  """
  seconds, part = divmod(min(timeout_s, _LONGEST_WAIT_S), 1)
  limit = struct.pack('ll', int(seconds), int(part * 1e6))
  with socket.socket(fileno=os.dup(pipe.fileno())) as end:
    end.setblocking(True)  # Whatever `socket.setdefaulttimeout` has set.
    for option in socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:
      end.setsockopt(socket.SOL_SOCKET, option, limit)


def _serve(pipe: connection.Connection, make: Callable[[], object]) -> None:
  """Runs in the process: answers calls until the pipe is closed."""
  console.survive_lost_output()
  with contextlib.suppress(EOFError, ConnectionError):
    instance, error = _try(make)
    pipe.send((None, error))
    while error is None:
      method, args = pipe.recv()
      pipe.send(_try(operator.methodcaller(method, *args), instance))


def _try(call: Callable[..., object], *args: object
         ) -> tuple[object, Exception | user_code.ErrorText | None]:
  """Returns the result and the error of a call; one of the two is None."""
  try:
    return call(*args), None
  except errors.UserError as e:
    return None, e
  except Exception as e:
    return None, user_code.report(e)
