# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The learners' processes, as the driver sees them. Without TensorFlow."""

from collections.abc import Sequence
import contextlib
import sys
import threading
from typing import Any

import ray
from scalable_agent import errors
from scalable_agent.distributed import adder as adder_lib
from scalable_agent.distributed import cluster
from scalable_agent.runs import reports
from scalable_agent.settings import config as config_lib

_POLL_S = 0.5
# Time in which a stopped learner may save, whatever --hang_timeout_s is. After
# an error of one learner, the others have only this time: they save, or wait
# without end for a sum.
_LEAST_SAVE_S = 60.
# Time in which the other learners must end when one learner is lost.
_END_TIMEOUT_S = 20.
# Time in which learners may save when the cluster is lost. Later, ray ends all
# processes.
_SAVE_TIMEOUT_S = 20.
# Errors that are only consequences of another learner's failure.
_CONSEQUENCES = cluster.SumError, ray.exceptions.GetTimeoutError


class LearnerLost(Exception):
  """The process of a learner has died, or does not answer."""


class Learners:
  """Follows the training of all learners."""

  def __init__(self, config: config_lib.Config, handles: Sequence[Any],
               connection: cluster.Connection):
    """Takes the processes of `learner_worker.start`, by rank."""
    self._config, self._connection = config, connection
    self._handles = handles
    # The adder ends with the driver, which owns its handle.
    self._adder = None if config.collectives != 'ray' else cluster.maker(
        adder_lib.Adder, num_cpus=0, max_concurrency=config.num_learners + 1)(
            config.num_learners)
    self._print_error: OSError | None = None
    self._outputs: dict[int, ray.ObjectRef] = {}
    self._reports: dict[int, ray.ObjectRef] = {}
    self._sign_s: list[float] = []  # Time of each learner's last sign of life.

  def run_to_end(self, stop: threading.Event) -> int:
    """Trains; prints the learners' output. Returns the exit code.

    Raises:
      LearnerLost: a process has died, or does not answer.
      ClusterError: there is no room for the processes, or the connection to the
        cluster is lost. Remaining learners have saved before.
      OSError: printing failed. The learners have saved before.
    """
    stopping_s: float | None = None
    problem = ''
    try:
      addresses = self._addresses(stop)
      if addresses is None:
        print(reports.STOPPED)
        return 0
      first = self._handles[0].versions.remote()
      runs = [h.run.remote(addresses, self._adder, first)
              for h in self._handles]
      pending = runs
      while pending:
        done, pending = ray.wait(pending, timeout=_POLL_S)
        self._print_output()
        self._forward_reports()
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
        raise cluster_lost(problem)
      return exit_code
    finally:
      for handle in filter(None, [*self._handles, self._adder]):
        ray.kill(handle)

  def _addresses(self, stop: threading.Event) -> list[str] | None:
    """Waits until all processes run; returns None if `stop` was set."""
    calls = [h.address.remote() for h in self._handles]
    deadline_s = self._connection.now_s() + self._config.actor_timeout_s
    while ray.wait(calls, num_returns=len(calls), timeout=_POLL_S)[1]:
      if stop.is_set():
        return None
      check_cluster(self._connection)
      if self._connection.now_s() > deadline_s:
        free = ray.available_resources()
        raise errors.ClusterError(
            f'There was no room for {len(calls)} learners within '
            f'{self._config.actor_timeout_s:g} s (--actor_timeout_s), with '
            f'{self._config.num_cpus_per_learner} CPUs and '
            f'{self._config.num_gpus_per_learner} GPUs each '
            '(--num_cpus_per_learner, --num_gpus_per_learner). The cluster has '
            f'{free.get("CPU", 0):g} CPUs and {free.get("GPU", 0):g} GPUs that '
            'are free.')
    self._sign_s = [self._connection.now_s()] * len(calls)
    try:
      return ray.get(calls)
    except ray.exceptions.RayError as e:
      raise LearnerLost(cluster.why_lost(e)) from None

  def _results(self, runs: list[ray.ObjectRef]) -> int:
    """Returns the exit code, or raises the error that caused all failures."""
    failure = _first_failure(runs)
    ray.wait(runs, num_returns=len(runs), timeout=(
        _LEAST_SAVE_S if failure and _order(_cause(failure)) == 1
        else _END_TIMEOUT_S))
    for rank in range(len(runs)):
      with contextlib.suppress(ray.exceptions.RayError):
        self._print_output_of(rank)
    failure = _first_failure(runs)
    if failure is None:
      return ray.get(runs[0])
    cause = _cause(failure)
    if isinstance(cause, _CONSEQUENCES):
      text = str(cause).strip().partition('\n')[0]
      raise LearnerLost(f'has lost another learner ({text})')
    if isinstance(cause, ray.exceptions.RayError):
      raise LearnerLost(cluster.why_lost(cause))
    if self._config.debug or not (
        isinstance(cause, errors.UserError) or errors.in_a_line(cause)):
      # The text has the traceback of the learner's process.
      print(failure, file=sys.stderr, flush=True)
    raise cause

  def _print_output(self) -> None:
    """Prints the new output of all learners that answer."""
    for rank, handle in enumerate(self._handles):
      if rank not in self._outputs:
        self._outputs[rank] = handle.output.remote()
      if ray.wait([self._outputs[rank]], timeout=0)[0]:
        # If the process was lost, its `run` raises the error.
        with contextlib.suppress(ray.exceptions.RayError):
          self._print(rank)

  def _print_output_of(self, rank: int) -> None:
    """Waits for all output of a learner, and prints the output."""
    if rank in self._outputs:
      self._print(rank)
    self._outputs[rank] = self._handles[rank].output.remote()
    self._print(rank)

  def _print(self, rank: int) -> None:
    text, silent_s = ray.get(self._outputs.pop(rank), timeout=_END_TIMEOUT_S)
    if not self._print_error:
      try:
        print(text, end='', flush=True)
      except OSError as e:  # The learners must save before the error is raised.
        self._print_error = e
    # The learner also counts time in which it was stopped.
    self._sign_s[rank] = max(
        self._sign_s[rank], self._connection.now_s() - silent_s)

  def _forward_reports(self) -> None:
    """Passes the reports of all other learners to learner 0."""
    for rank, handle in enumerate(self._handles[1:], 1):
      last = self._reports.get(rank)
      if last is None or ray.wait([last], timeout=0)[0]:  # One at a time.
        self._reports[rank] = self._handles[0].add_report.remote(
            handle.take_report.remote())

  def _check_time(self, stopping_s: float | None) -> None:
    check_cluster(self._connection, _SAVE_TIMEOUT_S)
    now_s = self._connection.now_s()
    timeout_s = self._config.hang_timeout_s
    save_s = max(timeout_s, _LEAST_SAVE_S)
    if stopping_s is not None and now_s - stopping_s > save_s:
      raise LearnerLost(f'did not end within {save_s:.0f} s (--hang_timeout_s)')
    # Only the silence of all learners counts: one silent learner may wait for
    # another learner, which waits for its actors.
    if now_s - max(self._sign_s) > timeout_s:
      raise LearnerLost(
          f'showed no sign of life for {timeout_s:.0f} s (--hang_timeout_s)')


def check_cluster(connection: cluster.Connection,
                  patience_s: float = 0.) -> None:
  """Raises ClusterError if the cluster is lost for more than `patience_s`."""
  if connection.lost_for_s() > patience_s:
    raise cluster_lost(connection.problem())


def cluster_lost(problem: str) -> errors.ClusterError:
  """Returns the error for a `Connection.problem`."""
  return errors.ClusterError(
      f'{problem} The same command resumes from the last checkpoint.')


def _error_of(run: ray.ObjectRef) -> ray.exceptions.RayError | None:
  """Returns the `RayError` of a call, None if the call succeeded.

  An unfinished call has a `GetTimeoutError`.
  """
  try:
    ray.get(run, timeout=0)
  except ray.exceptions.RayError as e:
    return e
  return None


def _first_failure(
    runs: Sequence[ray.ObjectRef]) -> ray.exceptions.RayError | None:
  """Returns the error that is the likeliest first one; None without any."""
  return min((e for e in map(_error_of, runs) if e is not None),
             key=lambda e: _order(_cause(e)), default=None)


def _cause(error: ray.exceptions.RayError) -> Exception:
  """Returns the error raised in the process, or the loss of the process."""
  return (error.cause if isinstance(error, ray.exceptions.RayTaskError)
          else error)


def _order(cause: Exception) -> int:
  """Returns 0 for deaths, 1 for other errors, 2 for mere consequences.

  The smallest number is the likeliest first cause.
  """
  if isinstance(cause, _CONSEQUENCES):
    return 2
  return int(not isinstance(cause, ray.exceptions.RayError))
