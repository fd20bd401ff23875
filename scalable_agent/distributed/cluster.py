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
from typing import Any

import ray
from ray.util import scheduling_strategies
import scalable_agent
from scalable_agent import errors
from scalable_agent.distributed import ray_directory
from scalable_agent.processes import signals
from scalable_agent.processes import starts
from scalable_agent.processes import threads
from scalable_agent.processes import variables
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections

# ray and TensorFlow take no infinite time.
LONGEST_WAIT_S = 1e6
_CONNECT_TIMEOUT_S = 5.
_LEAVE_TIMEOUT_S = 20.
_LONGEST_PAUSE_S = 60.
_NUM_STARTS = 3
# ray kills the children of each process that it ends, unless set to 0. The fork
# server of environments, a child, must end the programs of environments.
_KILL_CHILDREN_VARIABLE = 'RAY_kill_child_processes_on_worker_exit'
# ray ends every process after this time without the head.
_HEAD_TIMEOUT_VARIABLE = 'RAY_gcs_rpc_server_reconnect_timeout_s'
_HEAD_TIMEOUT_S = 60.
_HEAD_SHARE = 0.5
_WATCH_PERIOD_S = 2.
_TICK_S = 0.5
# A later tick shows that the process was stopped.
_LATE_TICK_S = 3.
_POLL_S = 0.5


class SumError(Exception):
  """A sum over the learners failed, because a learner died or hangs."""


@contextlib.contextmanager
def connected(config: sections.ClusterSettings) -> Iterator[None]:
  """Starts or joins the cluster of `--ray_address`; leaves the cluster at exit.

  Raises:
    ConfigError: there is no such cluster.
    ClusterError: the cluster cannot be started.
  """
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # The driver handles the errors of lost processes, and reports the loss.
  os.environ.setdefault('RAY_IGNORE_UNHANDLED_ERRORS', '1')
  os.environ.setdefault(_KILL_CHILDREN_VARIABLE, '0')
  handler = signal.getsignal(signal.SIGTERM)
  try:
    _connect(config)
  except SystemExit as e:  # ray's own handler ends programs with code 15.
    raise signals.Stopped(128 + signal.SIGTERM) from e
  finally:
    signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)
  try:
    yield
  finally:
    call_in_time(ray.shutdown)


def _connect(config: sections.ClusterSettings) -> None:
  connect = functools.partial(
      ray.init, log_to_driver=False, logging_level=logging.ERROR)
  if config.ray_address == 'local':
    ray_directory.shorten()
    _start(functools.partial(
        connect, address='local', num_cpus=_num_local_cpus(config),
        include_dashboard=False))
  else:
    _check_address(config.ray_address)
    try:
      connect(address=config.ray_address, runtime_env={
          'py_modules': [os.path.dirname(scalable_agent.__file__)],
          'env_vars': {name: os.environ[name]
                       for name in (_KILL_CHILDREN_VARIABLE,
                                    *variables.TENSORFLOW, *variables.KERAS)
                       if name in os.environ}})
    except (ConnectionError, RuntimeError, ValueError,
            ray.exceptions.RayError) as e:
      raise errors.ConfigError(
          f'--ray_address={config.ray_address}: {e} A cluster is started with '
          '"ray start --head", or by --ray_address=local.') from e


def call_in_time(function: Callable[[], None],
                 timeout_s: float | None = None) -> None:
  """Calls a function at the end of a run; waits at most 20 s by default."""
  thread = threads.LibraryThread(function, 'leave')
  thread.start()
  thread.join(timeout_s or _LEAVE_TIMEOUT_S)


def _start(start: Callable[[], object]) -> None:
  """Starts ray; retries, because a busy machine may need too long."""
  for num_left in reversed(range(_NUM_STARTS)):
    try:
      # A terminal that closes sends SIGHUP to ray's processes, too. Without
      # this block, ray would end before the learner has saved a checkpoint.
      with signals.blocked(signal.SIGHUP):
        start()
      return
    except Exception as e:
      if type(e) is not Exception:  # ray has no class for a failed start.
        raise
      ray.shutdown()
      if not num_left:
        raise errors.ClusterError(f'ray could not be started: {e}') from e


def _num_local_cpus(config: sections.ClusterSettings) -> int:
  """Returns the number of this machine's CPUs, or more.

  A local cluster runs no other program. So processes need not queue if the run
  wants more CPUs than the machine has.
  """
  return max(
      config.num_learners * config.num_cpus_per_learner
      + max(config.num_actor_workers, config.num_learners)
      * config.num_cpus_per_actor_worker,
      starts.num_cores())


def _check_address(address: str) -> None:
  """Raises ConfigError if no program listens at `HOST:PORT`."""
  if address != 'auto' and not listens(address):
    raise errors.ConfigError(
        f'--ray_address={address}: no program listens there. Use local, auto '
        'or the HOST:PORT that "ray start --head" has printed.')


def listens(address: str) -> bool:
  """Returns whether a program listens at `HOST:PORT`.

  Raises ConfigError if `address` is not valid.
  """
  host, _, port = address.rpartition(':')
  try:
    socket.create_connection(
        (host.strip('[]'), int(port)), _CONNECT_TIMEOUT_S).close()
  except (ValueError, OverflowError) as e:
    raise errors.ConfigError(f'--ray_address={address}: {e}. Use local, auto '
                             'or HOST:PORT.') from None
  except OSError:  # Also if the name is unknown, or not yet known.
    return False
  return True


class RunningClock:
  """A clock that counts only the time in which this process runs.

  The clock stands still while the process is stopped, as by Ctrl-Z: other
  processes are not to blame for messages that were not received meanwhile.
  """

  def __init__(self, is_closed: threading.Event):
    """Starts the clock; its thread ends after `is_closed` is set."""
    self._lock = threading.Lock()
    self._last_s = time.monotonic()
    self._stopped_s = 0.
    self._is_closed = is_closed
    threading.Thread(target=self._tick, name='clock', daemon=True).start()

  def now_s(self) -> float:
    """Returns the seconds since a fixed moment."""
    with self._lock:
      now_s = time.monotonic()
      if now_s - self._last_s > _LATE_TICK_S:
        self._stopped_s += now_s - self._last_s
      self._last_s = now_s
      return now_s - self._stopped_s

  def _tick(self) -> None:
    while not self._is_closed.wait(_TICK_S):
      self.now_s()


class Connection:
  """Watches the cluster's head, and ray's processes on the driver's machine.

  Without the head, ray ends all processes after a while. Before that, the
  driver makes the learners save a checkpoint. Without ray's processes on the
  driver's machine, the driver can start no process.
  """

  def __init__(self) -> None:
    """Starts the watching thread; `close` ends the thread."""
    self._head = ray.get_runtime_context().gcs_address
    self._node = this_node()
    self._limit_s = _HEAD_SHARE * float(
        os.environ.get(_HEAD_TIMEOUT_VARIABLE, _HEAD_TIMEOUT_S))
    self._is_closed = threading.Event()
    self._clock = RunningClock(self._is_closed)
    self._seen_s = self._clock.now_s()  # Time of the head's last answer.
    # Time at which ray's processes on this machine were found dead.
    self._died_s: float | None = None
    self._thread = threading.Thread(
        target=self._watch, name='connection', daemon=True)
    self._thread.start()

  def close(self) -> None:
    """Ends the thread, unless the thread waits for the head."""
    self._is_closed.set()
    self._thread.join(_CONNECT_TIMEOUT_S)

  def now_s(self) -> float:
    """Returns the seconds that this process has run since a fixed moment."""
    return self._clock.now_s()

  def problem(self) -> str:
    """Returns a sentence on the loss of the cluster; '' without a loss."""
    if not self.lost_for_s():
      return ''
    if self._died_s is not None:
      return f"ray's processes on {socket.gethostname()} have died."
    return (f"The head of ray's cluster, {self._head}, has not answered for "
            f'{self.now_s() - self._seen_s:.0f} s '
            f'({_HEAD_TIMEOUT_VARIABLE}).')

  def lost_for_s(self) -> float:
    """Returns how long `problem` has existed; 0 without a problem."""
    since_s = (self._seen_s + self._limit_s if self._died_s is None
               else self._died_s)
    return max(0., self.now_s() - since_s)

  def wait_for_head(self, stop: threading.Event) -> None:
    """Waits until the head answers, `stop` is set, or there is a problem.

    Without the head, a call that starts a process would block until ray ends
    all processes.
    """
    begin_s = self.now_s()
    while self._seen_s < begin_s and not self.problem():
      if stop.wait(_POLL_S):
        return

  def _watch(self) -> None:
    while not self._is_closed.wait(_WATCH_PERIOD_S):
      try:
        nodes = ray.nodes()  # Blocks without the head.
      except ray.exceptions.RayError:
        continue
      self._seen_s = self.now_s()
      if self._died_s is None and not any(
          node['Alive'] and node['NodeID'] == self._node for node in nodes):
        self._died_s = self._seen_s


def num_gpus_per_learner(config: sections.ClusterSettings) -> int:
  """Returns `config.num_gpus_per_learner`; if unset, 1 if there are GPUs."""
  if config.num_gpus_per_learner >= 0:
    return config.num_gpus_per_learner
  return int(ray.cluster_resources().get('GPU', 0) > 0)


def maker(cls: type, **options: object) -> Callable[..., Any]:
  """Returns a function that starts a `cls` in its own process of the cluster.

  ray does not restart the process, and does not type the methods of its handle.
  `options` are those of `ray.remote`.
  """
  return ray.remote(cls).options(max_restarts=0, **options).remote


def this_node() -> str:
  """Returns ray's name of the machine of this process."""
  return ray.get_runtime_context().get_node_id()


def on_node(
    node: str) -> scheduling_strategies.NodeAffinitySchedulingStrategy:
  """Returns the ray strategy that starts a process on a given machine."""
  return scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def num_actor_workers(config: config_lib.Config) -> int:
  """Returns `config.num_actor_workers`; if unset, as many as CPUs allow."""
  if config.num_actor_workers:
    return config.num_actor_workers
  cpus = [int(node['Resources'].get('CPU', 0)) for node in ray.nodes()
          if node['Alive']]
  for _ in range(config.num_learners):
    cpus.sort()
    if cpus and cpus[-1] >= config.num_cpus_per_learner:
      cpus[-1] -= config.num_cpus_per_learner
  # A worker must fit on one machine.
  room = sum(n // config.num_cpus_per_actor_worker for n in cpus)
  return min(max(room, config.num_learners), config.num_actors)


def maps_s(config: config_lib.Config, num_environments: int) -> float:
  """Returns the seconds that a worker has more for its first unroll.

  The first unroll of DeepMind Lab begins with the maps of all environments.
  """
  return config.plays_lab * starts.TIMEOUT_S * (
      num_environments / config.num_cpus_per_actor_worker)


def free_cpus() -> str:
  """Returns the part of a sentence that counts the cluster's CPUs."""
  return (f'the cluster has {ray.cluster_resources().get("CPU", 0):g} CPUs, of '
          f'which {ray.available_resources().get("CPU", 0):g} are free')


def pause_s(num_losses: int) -> float:
  """Returns the seconds until a process restarts: 0.5, 1, 2, ... 60.

  `num_losses` is the number of consecutive losses of the process; at least 1.
  """
  # A float cannot hold arbitrarily large powers.
  return min(2.**min(num_losses - 2, 10), _LONGEST_PAUSE_S)


def why_lost(error: ray.exceptions.RayError) -> str:
  """Returns why a process was lost: "has died: ...", without a full stop.

  Most of ray's texts on a lost process are for ray's developers.
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
  if not detail or 'connection error' in detail:  # The process was killed.
    return 'has died'
  return f'has died: {detail.splitlines()[0].strip(" .")}'
