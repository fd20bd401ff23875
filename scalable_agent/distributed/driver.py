# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The driver: starts the learner on a ray cluster, and watches over it.

TensorFlow is imported by the process of the learner only.
"""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import glob
import importlib
import io
import os
import socket
import sys
import threading
import time
from typing import Any
import uuid

import ray
from scalable_agent import errors
from scalable_agent.distributed import adder as adder_lib
from scalable_agent.distributed import cluster
from scalable_agent.distributed import hosts
from scalable_agent.distributed import versions
from scalable_agent.processes import signals
from scalable_agent.runs import logdirs
from scalable_agent.runs import reports
from scalable_agent.settings import config as config_lib

_POLL_S = 0.5
# How the names of files begin that say that a directory is shared.
_TOKEN = '.shared-'
# A learner that is stopped writes a checkpoint and ends its threads meanwhile.
_STOP_TIMEOUT_S = 60.
# How long the others may go on when one learner has failed.
_END_TIMEOUT_S = 20.
# How long they may save when the cluster is lost. ray then ends them itself.
_SAVE_TIMEOUT_S = 20.


# That a learner waits, or that its sum has failed, comes from another error.
_CONSEQUENCES = cluster.SumError, ray.exceptions.GetTimeoutError


class _LearnerLost(Exception):
  """The process of the learner has died, or does not answer."""


def train(config: config_lib.Config) -> int:
  """Trains on a ray cluster. Otherwise as `training.train`.

  A learner that is lost is started again, from the latest checkpoint.

  Raises:
    ConfigError: if there is no such cluster.
    ClusterError: if there is no room for the learner.
    LearnerLostError: if the learner is lost again and again.
  """
  if config.job_name == 'actor' and config.task >= 0:
    return hosts.join(config)
  # The directory of a learner's process is another one.
  config = dataclasses.replace(config, logdir=os.path.abspath(config.logdir))
  with logdirs.locked(config.logdir), hosts.head(config), \
      cluster.connected(config), signals.stop_on_signals() as stop:
    try:
      exit_code = _train(config, stop)
    except errors.ClusterError:  # Others may wait for the same command.
      raise
    except BaseException:
      with contextlib.suppress(Exception):  # The cluster may be gone.
        hosts.say_goodbye(config)
      raise
    hosts.say_goodbye(config)
    return exit_code


def _train(config, stop):
  """Finds what was left open, and starts the learners."""
  num_workers = cluster.num_actor_workers(config)
  if config.min_actor_workers > num_workers:
    # If nobody has said how many there are, more CPUs may come later.
    kind = (errors.ConfigError if config.num_actor_workers
            else errors.ClusterError)
    raise kind(
        f'--min_actor_workers={config.min_actor_workers} must be at most the '
        f'number of actor workers, {num_workers} (--num_actor_workers).')
  with _token(config.logdir) as token, \
      contextlib.closing(cluster.Connection()) as connection:
    return _run_learners(dataclasses.replace(
        config, num_actor_workers=num_workers,
        num_gpus_per_learner=cluster.num_gpus_per_learner(config)),
                         token, stop, connection)


def _run_learners(config, token, stop, connection):
  """Starts the learners, again and again if they are lost."""
  losses: list[str] = []  # Since the last checkpoint; why.
  checkpoint = _latest_checkpoint(config)
  while True:
    try:
      return _Learners(config, token, connection).run_to_end(stop)
    except _LearnerLost as e:
      _check(connection)
      newer = _latest_checkpoint(config)
      if newer != checkpoint:
        losses.clear()
      checkpoint = newer
      losses.append(str(e))
      if stop.is_set():
        raise _stopped_meanwhile(e) from None
      if len(losses) > config.max_learner_restarts:
        raise errors.LearnerLostError(
            f'The learner {losses[0]}. It was lost again and again, '
            f'--max_learner_restarts={config.max_learner_restarts}. The same '
            'command goes on from the last checkpoint.') from None
      print(f'The learner {e}. It starts again from the last checkpoint.',
            flush=True)
      stop.wait(cluster.pause_s(len(losses)))
      connection.wait_for_head(stop)
      _check(connection)
      if stop.is_set():
        raise _stopped_meanwhile(e) from None


def _stopped_meanwhile(loss):
  return errors.LearnerLostError(
      f'The learner {loss}. The same command goes on from the last checkpoint.')


def _check(connection, patience_s=0.):
  """Raises ClusterError if the cluster is lost, for longer than a time."""
  if connection.lost_for_s() > patience_s:
    raise _cluster_lost(connection.problem())


def _cluster_lost(problem):
  return errors.ClusterError(
      f'{problem} The same command goes on from the last checkpoint.')


@contextlib.contextmanager
def _token(logdir: str) -> Iterator[str]:
  """Yields a file that a learner must see: is the directory shared?"""
  path = os.path.join(logdir, f'{_TOKEN}{uuid.uuid4().hex}')
  try:
    for old in glob.glob(os.path.join(glob.escape(logdir), f'{_TOKEN}*')):
      os.remove(old)  # Of a driver that was killed.
    with open(path, 'w', encoding='utf-8') as f:
      f.write(socket.gethostname())
  except OSError as e:
    raise errors.CheckpointError(
        f'{path} cannot be written: {e.strerror}.') from e
  try:
    yield path
  finally:
    with contextlib.suppress(OSError):
      os.remove(path)


def _latest_checkpoint(config):
  """Returns the text that names the latest checkpoint, '' without one."""
  try:
    with open(os.path.join(config.logdir, 'checkpoint'), encoding='utf-8') as f:
      return f.read()
  except OSError:
    return ''


class LearnerWorker:
  """Learns in a process of its own, from unrolls of actor workers.

  Its calls run in threads of their own.
  """

  def __init__(self, config: config_lib.Config, rank: int, token: str):
    """Makes a worker; `run` does all that can fail.

    Args:
      config: the settings.
      rank: which of the learners it is.
      token: a file that it must see.
    """
    self._config, self._rank, self._token = config, rank, token
    self._stop = _Stop()
    self._output = _Output()
    self._reports = reports.Reports()

  def address(self) -> str:
    """Returns a free `HOST:PORT` of its machine."""
    host = ray.util.get_node_ip_address()
    with socket.socket() as one:
      one.bind((host, 0))
      return f'{host}:{one.getsockname()[1]}'

  def versions(self) -> tuple[str, dict[str, str]]:
    """Returns the name of its machine, and what is installed there."""
    return socket.gethostname(), versions.installed()

  def run(self, addresses: list[str], adder: Any,
          first: tuple[str, Mapping[str, str]]) -> int:
    """Trains; returns the exit code of `training.run`.

    Args:
      addresses: those of all learners.
      adder: sums for them, with `--collectives=ray`.
      first: `versions` of the first learner.

    Raises:
      cluster.SumError: if a sum over the learners has failed.
      ConfigError: if the log directory is not that of the driver, or the
        versions are not those of the first learner.
      Exception: any other error of the training.
    """
    self._stop.is_set()  # A sign of life: others may have been waited for.
    if not os.path.exists(self._token):
      raise errors.ConfigError(
          f'{socket.gethostname()} does not see what the machine of '
          f'experiment.py has written in --logdir={self._config.logdir}: use a '
          'directory that all machines share.')
    versions.check(*first)
    # It imports TensorFlow.
    learning = importlib.import_module('scalable_agent.distributed.learning')
    # The first one speaks for all.
    output = self._output if self._rank == 0 else io.StringIO()
    with contextlib.redirect_stdout(output):
      return learning.run(
          self._config, self._rank, addresses, adder, self._stop,
          lambda line: self._output.write(f'{line}\n'), self._reports)

  def output(self) -> tuple[str, float]:
    """Returns what was printed since the last call, and how long it is silent.

    These are the seconds since the last sign of life of the training.
    """
    return self._output.take(), time.monotonic() - self._stop.asked_s

  def take_report(self) -> reports.Report:
    """Returns what the first learner is to know."""
    return self._reports.take()

  def add_report(self, report: reports.Report) -> None:
    """Takes what another learner has returned; of the first one only."""
    self._reports.add(report)

  def stop(self) -> None:
    """Ends the training with a checkpoint."""
    self._stop.set()


class _Stop(threading.Event):
  """Knows when it was last asked. A training that runs asks all the time."""

  def __init__(self):
    super().__init__()
    self.asked_s = time.monotonic()

  def is_set(self) -> bool:
    self.asked_s = time.monotonic()
    return super().is_set()


class _Output(io.TextIOBase):
  """Keeps text that is written to it until it is taken."""

  def __init__(self):
    super().__init__()
    self._lock = threading.Lock()
    self._parts: list[str] = []

  def write(self, text: str) -> int:
    with self._lock:
      self._parts.append(text)
    return len(text)

  def take(self) -> str:
    with self._lock:
      text, self._parts = ''.join(self._parts), []
    return text


class _Learners:
  """The learners' processes, as the driver sees them."""

  def __init__(self, config: config_lib.Config, token: str,
               connection: cluster.Connection):
    self._config, self._connection = config, connection
    make = ray.remote(LearnerWorker).options(
        num_cpus=config.num_cpus_per_learner,
        num_gpus=config.num_gpus_per_learner,
        max_restarts=0, max_concurrency=4,
        # With --task, this host is that of all learners.
        scheduling_strategy='DEFAULT' if config.task < 0 else cluster.on_node(
            cluster.this_node()))
    self._handles: list[Any] = [
        make.remote(config, rank, token) for rank in range(config.num_learners)]
    # It ends with the driver, as all that nobody else owns.
    self._adder: Any = None if config.collectives != 'ray' else ray.remote(
        adder_lib.Adder).options(
            num_cpus=0, max_concurrency=config.num_learners + 1).remote(
                config.num_learners)
    self._print_error: OSError | None = None
    self._outputs: dict[int, ray.ObjectRef] = {}
    self._reports: dict[int, ray.ObjectRef] = {}
    self._sign_s: list[float] = []

  def run_to_end(self, stop: threading.Event) -> int:
    """Trains; prints what the learners print. Returns the exit code.

    Raises:
      _LearnerLost: a process has died, or does not answer.
      ClusterError: there is no room for the processes, or the connection to the
        cluster is lost. Learners that are left have saved before.
      OSError: nothing can be printed. The learners have saved before.
      Exception: any error of the training.
    """
    stopping_s, problem = None, ''
    try:
      addresses = self._addresses(stop)
      if addresses is None:
        print('Stopped before the training began.')
        return 0
      first = self._handles[0].versions.remote()
      runs = [h.run.remote(addresses, self._adder, first)
              for h in self._handles]
      pending = runs
      while pending:
        done, pending = ray.wait(pending, timeout=_POLL_S)
        self._print_output()
        self._pass_reports_on()
        if any(map(_error_of, done)):
          break
        if stopping_s is None:
          problem = '' if stop.is_set() else self._connection.problem()
          if stop.is_set() or self._print_error or problem:
            stopping_s = self._connection.now_s()
            for handle in self._handles:
              handle.stop.remote()
        self._check_time(stopping_s)
      exit_code = self._results(runs)
      if self._print_error:
        raise self._print_error
      if problem:
        raise _cluster_lost(problem)
      return exit_code
    finally:
      for handle in self._handles + [self._adder] * bool(self._adder):
        ray.kill(handle)

  def _addresses(self, stop):
    """Waits until all processes run; returns None if it was stopped."""
    calls = [h.address.remote() for h in self._handles]
    deadline_s = self._connection.now_s() + self._config.actor_timeout_s
    while ray.wait(calls, num_returns=len(calls), timeout=_POLL_S)[1]:
      if stop.is_set():
        return None
      _check(self._connection)
      if self._connection.now_s() > deadline_s:
        free = ray.available_resources()
        raise errors.ClusterError(
            f'There was no room for {len(calls)} learners within '
            f'{self._config.actor_timeout_s:g} s (--actor_timeout_s), with '
            f'{self._config.num_cpus_per_learner} CPUs each. The cluster has '
            f'{free.get("CPU", 0):g} CPUs and {free.get("GPU", 0):g} GPUs that '
            'are free.')
    self._sign_s = [self._connection.now_s()] * len(calls)
    try:
      return ray.get(calls)
    except ray.exceptions.RayError as e:
      raise _LearnerLost(cluster.why_lost(e)) from None

  def _results(self, runs):
    """Returns the exit code, or raises the cause; the others may end, too."""
    ray.wait(runs, num_returns=len(runs), timeout=_END_TIMEOUT_S)
    for rank in range(len(runs)):
      with contextlib.suppress(ray.exceptions.RayError):
        self._print_output_of(rank)
    failures = [e for e in map(_error_of, runs) if e is not None]
    if not failures:
      return ray.get(runs[0])
    failures.sort(key=lambda e: _order(_cause(e)))
    cause = _cause(failures[0])
    if isinstance(cause, _CONSEQUENCES):
      text = str(cause).strip().partition('\n')[0]
      raise _LearnerLost(f'has lost another one ({text})')
    if isinstance(cause, ray.exceptions.RayError):
      raise _LearnerLost(cluster.why_lost(cause))
    if self._config.debug or not (
        isinstance(cause, errors.UserError) or errors.in_a_line(cause)):
      # It has the traceback of the learner's process.
      print(failures[0], file=sys.stderr, flush=True)
    raise cause

  def _print_output(self):
    """Prints what has come since the last call, from those that answer."""
    for rank, handle in enumerate(self._handles):
      if rank not in self._outputs:
        self._outputs[rank] = handle.output.remote()
      if ray.wait([self._outputs[rank]], timeout=0)[0]:
        # If the process was lost, `run` says so.
        with contextlib.suppress(ray.exceptions.RayError):
          self._print(rank)

  def _print_output_of(self, rank):
    """Prints all that a learner has printed; waits for it."""
    if rank in self._outputs:
      self._print(rank)
    self._outputs[rank] = self._handles[rank].output.remote()
    self._print(rank)

  def _print(self, rank):
    text, silent_s = ray.get(self._outputs.pop(rank), timeout=_END_TIMEOUT_S)
    if not self._print_error:
      try:
        print(text, end='', flush=True)
      except OSError as e:  # The learners are to save before all ends.
        self._print_error = e
    self._sign_s[rank] = self._connection.now_s() - silent_s

  def _pass_reports_on(self):
    """Passes what the others report on to the first learner."""
    for rank, handle in enumerate(self._handles[1:], 1):
      last = self._reports.get(rank)
      if last is None or ray.wait([last], timeout=0)[0]:  # One at a time.
        self._reports[rank] = self._handles[0].add_report.remote(
            handle.take_report.remote())

  def _check_time(self, stopping_s):
    _check(self._connection, _SAVE_TIMEOUT_S)
    now_s = self._connection.now_s()
    if stopping_s is not None and now_s - stopping_s > _STOP_TIMEOUT_S:
      raise _LearnerLost(f'did not end within {_STOP_TIMEOUT_S:.0f} s')
    # The others wait for one that hangs, or that waits for its actors.
    if now_s - max(self._sign_s) > self._config.hang_timeout_s:
      raise _LearnerLost(
          'showed no sign of life for '
          f'{self._config.hang_timeout_s:.0f} s (--hang_timeout_s)')


def _error_of(run):
  """Returns the `RayError` of a call, None if it has none.

  It is a `TimeoutError`, too, if the call is not done.
  """
  try:
    ray.get(run, timeout=0)
  except ray.exceptions.RayError as e:
    return e
  return None


def _cause(error):
  """Returns what was raised in the process, if it was not lost."""
  return (error.cause if isinstance(error, ray.exceptions.RayTaskError)
          else error)


def _order(cause):
  """Sorts causes by how likely they are the first: deaths, others, waits."""
  if isinstance(cause, _CONSEQUENCES):
    return 2
  return int(not isinstance(cause, ray.exceptions.RayError))
