# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The connection to a ray cluster."""

from collections.abc import Callable, Iterator
import contextlib
import functools
import logging
import os
import signal
import socket
import threading
import time

import ray
from ray.util import scheduling_strategies
import scalable_agent
from scalable_agent import errors
from scalable_agent.processes import signals
from scalable_agent.settings import config as config_lib

_CONNECT_TIMEOUT_S = 5.
_LEAVE_TIMEOUT_S = 20.
_LONGEST_PAUSE_S = 60.
_NUM_STARTS = 3
# After so long without the head, ray ends every process by itself.
_HEAD_TIMEOUT_VARIABLE = 'RAY_gcs_rpc_server_reconnect_timeout_s'
_HEAD_TIMEOUT_S = 60.
_HEAD_SHARE = 0.5
_WATCH_PERIOD_S = 2.
_TICK_S = 0.5
# Whoever ticks so late was stopped meanwhile.
_LATE_TICK_S = 3.
_POLL_S = 0.5
# `experiment.py` sets them for its process; those elsewhere need them, too.
_VARIABLES = ('TF_CPP_MIN_LOG_LEVEL', 'TF_ENABLE_ONEDNN_OPTS',
              'TF_FORCE_GPU_ALLOW_GROWTH')


class SumError(Exception):
  """A sum over the learners has failed, as one of them has died or hangs."""


@contextlib.contextmanager
def connected(config: config_lib.Config) -> Iterator[None]:
  """Connects to the cluster of `--ray_address`, or starts it; leaves it.

  Raises:
    ConfigError: if there is no such cluster.
    ClusterError: if it cannot be started.
  """
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # The driver handles the errors of lost processes, and says what it does.
  os.environ.setdefault('RAY_IGNORE_UNHANDLED_ERRORS', '1')
  handler = signal.getsignal(signal.SIGTERM)
  try:
    _connect(config)
  except SystemExit as e:  # Of ray's own handler, which ends programs with 15.
    raise signals.Stopped(128 + signal.SIGTERM) from e
  finally:
    signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)
  try:
    yield
  finally:
    call_in_time(ray.shutdown)


def _connect(config):
  connect = functools.partial(
      ray.init, log_to_driver=False, logging_level=logging.ERROR)
  if config.ray_address == 'local':
    _start(functools.partial(
        connect, address='local', num_cpus=_num_local_cpus(config),
        include_dashboard=False))
  else:
    _check_address(config.ray_address)
    try:
      connect(address=config.ray_address, runtime_env={
          'py_modules': [os.path.dirname(scalable_agent.__file__)],
          'env_vars': {name: os.environ[name] for name in _VARIABLES
                       if name in os.environ}})
    except (ConnectionError, RuntimeError, ValueError,
            ray.exceptions.RayError) as e:
      raise errors.ConfigError(
          f'--ray_address={config.ray_address}: {e} A cluster is started with '
          '"ray start --head"; --ray_address=local needs none.') from e


def call_in_time(function: Callable[[], None]) -> None:
  """Calls what ends a run; does not wait long for a head that hangs."""
  thread = threading.Thread(target=function, name='leave', daemon=True)
  thread.start()
  thread.join(_LEAVE_TIMEOUT_S)


def _start(start):
  """Starts ray; tries again, as a busy machine may need too long."""
  for num_left in reversed(range(_NUM_STARTS)):
    try:
      # A terminal that closes sends SIGHUP to ray's processes, too. They would
      # end before there is a checkpoint.
      with signals.blocked(signal.SIGHUP):
        start()
      return
    except Exception as e:  # pylint: disable=broad-exception-caught
      if type(e) is not Exception:  # ray has none of its own for this.
        raise
      ray.shutdown()
      if not num_left:
        raise errors.ClusterError(f'ray could not be started: {e}') from e


def _num_local_cpus(config):
  """Returns the CPUs of this machine, or more.

  Nothing but the processes of this run is there, so they need not queue for
  CPUs if more of them are wanted than there are.
  """
  return max(
      config.num_learners * config.num_cpus_per_learner
      + max(config.num_actor_workers, config.num_learners)
      * config.num_cpus_per_actor_worker,
      os.cpu_count() or 1)


def _check_address(address):
  """Raises ConfigError if nothing listens at `HOST:PORT`."""
  if address != 'auto' and not listens(address):
    raise errors.ConfigError(
        f'--ray_address={address}: nothing listens there. It must be local, '
        'auto or the HOST:PORT that "ray start --head" has printed.')


def listens(address: str) -> bool:
  """Returns whether something listens at `HOST:PORT`.

  Raises:
    ConfigError: if there is no such address.
  """
  host, _, port = address.rpartition(':')
  try:
    socket.create_connection(
        (host.strip('[]'), int(port)), _CONNECT_TIMEOUT_S).close()
  except (ValueError, OverflowError) as e:
    raise errors.ConfigError(f'--ray_address={address}: {e}. It must be local, '
                             'auto or HOST:PORT.') from None
  except OSError:  # Also where a name is not known, or not yet.
    return False
  return True


class _RunningClock:
  """Time in which this process runs.

  Time in which it is stopped, as by Ctrl-Z, does not count: it is no fault of
  others that they were not heard then.
  """

  def __init__(self, is_closed: threading.Event):
    """Starts it; its thread ends after `is_closed`."""
    self._lock = threading.Lock()
    self._last_s = time.monotonic()
    self._stopped_s = 0.
    self._is_closed = is_closed
    threading.Thread(target=self._tick, name='clock', daemon=True).start()

  def now_s(self) -> float:
    """Returns seconds since some moment."""
    with self._lock:
      now_s = time.monotonic()
      if now_s - self._last_s > _LATE_TICK_S:
        self._stopped_s += now_s - self._last_s
      self._last_s = now_s
      return now_s - self._stopped_s

  def _tick(self):
    while not self._is_closed.wait(_TICK_S):
      self.now_s()


class Connection:
  """Watches over what the driver needs of the cluster.

  Without the head, ray ends all processes after a while; there is time for a
  checkpoint before. Without ray's processes on its machine, the driver can
  start nothing any more.
  """

  def __init__(self) -> None:
    """Begins to watch; `close` ends it."""
    self._head = ray.get_runtime_context().gcs_address
    self._node = this_node()
    self._limit_s = _HEAD_SHARE * float(
        os.environ.get(_HEAD_TIMEOUT_VARIABLE, _HEAD_TIMEOUT_S))
    self._is_closed = threading.Event()
    self._clock = _RunningClock(self._is_closed)
    self._seen_s = self._clock.now_s()  # When the head has answered last.
    self._died_s: float | None = None  # When this machine was lost.
    self._thread = threading.Thread(
        target=self._watch, name='connection', daemon=True)
    self._thread.start()

  def close(self) -> None:
    """Ends the thread, unless it waits for the head."""
    self._is_closed.set()
    self._thread.join(_CONNECT_TIMEOUT_S)

  def now_s(self) -> float:
    """Returns seconds since some moment, in which this process has run."""
    return self._clock.now_s()

  def problem(self) -> str:
    """Returns what is lost, in a sentence; '' if nothing is."""
    if not self.lost_for_s():
      return ''
    if self._died_s is not None:
      return f"ray's processes on {socket.gethostname()} have died."
    return (f"The head of ray's cluster, {self._head}, has not answered for "
            f'{self.now_s() - self._seen_s:.0f} s '
            f'({_HEAD_TIMEOUT_VARIABLE}).')

  def lost_for_s(self) -> float:
    """Returns for how many seconds there is a problem; 0 if there is none."""
    since_s = (self._seen_s + self._limit_s if self._died_s is None
               else self._died_s)
    return max(0., self.now_s() - since_s)

  def wait_for_head(self, stop: threading.Event) -> None:
    """Waits until the head answers, `stop` is set, or there is a problem.

    Without the head, what starts processes waits until ray ends all.
    """
    begin_s = self.now_s()
    while self._seen_s < begin_s and not self.problem():
      if stop.wait(_POLL_S):
        return

  def _watch(self):
    while not self._is_closed.wait(_WATCH_PERIOD_S):
      try:
        nodes = ray.nodes()  # Without the head, it waits.
      except ray.exceptions.RayError:
        continue
      self._seen_s = self.now_s()
      if self._died_s is None and not any(
          node['Alive'] and node['NodeID'] == self._node for node in nodes):
        self._died_s = self._seen_s


def num_gpus_per_learner(config: config_lib.Config) -> int:
  """Returns the number as asked for, or 1 if the cluster has any."""
  if config.num_gpus_per_learner >= 0:
    return config.num_gpus_per_learner
  return int(ray.cluster_resources().get('GPU', 0) > 0)


def this_node() -> str:
  """Returns ray's name of the machine of this process."""
  return ray.get_runtime_context().get_node_id()


def on_node(
    node: str) -> scheduling_strategies.NodeAffinitySchedulingStrategy:
  """Returns the strategy that puts something on a machine."""
  return scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def num_actor_workers(config: config_lib.Config) -> int:
  """Returns the number of workers: as asked for, or as CPUs have room for."""
  if config.num_actor_workers:
    return config.num_actor_workers
  room = (int(ray.cluster_resources().get('CPU', 0))
          - config.num_learners * config.num_cpus_per_learner
          ) // config.num_cpus_per_actor_worker
  return min(max(room, config.num_learners), config.num_actors)


def pause_s(num_losses: int) -> float:
  """Returns the seconds until a process starts again: 0.5, 1, 2, ... 60.

  Args:
    num_losses: how often it was lost in a row; at least 1.
  """
  # Larger powers do not fit into a float in the end.
  return min(2.**min(num_losses - 2, 10), _LONGEST_PAUSE_S)


def why_lost(error: ray.exceptions.RayError) -> str:
  """Returns what has happened to a process that was lost: "has died: ...".

  Most of ray's texts on it are for ray's developers. There is no full stop.
  """
  text = str(error)
  if isinstance(error, (
      ray.exceptions.ObjectLostError, ray.exceptions.NodeDiedError)) or (
          'its node has died' in text):
    return 'has died with its machine'
  lines = [line.strip(' .') for line in text.splitlines() if line.strip(' .')]
  if not isinstance(error, ray.exceptions.RayActorError):
    return f'was lost: {". ".join(lines[:2]) or type(error).__name__}'
  if 'raised in its creation task' in text:  # The end of a traceback.
    return f'has died: {lines[-1]}'
  _, _, detail = text.partition('Worker exit detail: ')
  if not detail or 'connection error' in detail:  # What a kill leaves.
    return 'has died'
  return f'has died: {detail.splitlines()[0].strip(" .")}'
