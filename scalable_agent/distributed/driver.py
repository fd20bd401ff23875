# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The driver: starts the learner on a ray cluster, and watches over it.

TensorFlow is imported by the process of the learner only.
"""

import collections
import contextlib
import functools
import importlib
import io
import os
import socket
import threading
import time
from typing import Any

import ray
from scalable_agent import config as config_lib
from scalable_agent import errors
from scalable_agent import signals
from scalable_agent.distributed import cluster

_POLL_S = 0.5
# A learner that is stopped writes a checkpoint and ends its threads meanwhile.
_STOP_TIMEOUT_S = 60.
# How long the others may go on when one learner has ended.
_END_TIMEOUT_S = 20.


class _LearnerLost(Exception):
  """The process of the learner has died, or does not answer."""


def train(config: config_lib.Config) -> int:
  """Trains on a ray cluster. Otherwise as `training.train`.

  A learner that is lost is started again, from the latest checkpoint.

  Raises:
    ConfigError: if there is no such cluster.
    ClusterError: if the learner is lost again and again.
  """
  with cluster.connected(config), signals.stop_on_signals() as stop:
    num_losses, checkpoint = 0, _latest_checkpoint(config)
    while True:
      try:
        return _Learners(config).run_to_end(stop)
      except _LearnerLost as e:
        newer = _latest_checkpoint(config)
        num_losses = 1 if newer != checkpoint else num_losses + 1
        checkpoint = newer
        if stop.is_set() or num_losses > config.max_learner_restarts:
          raise errors.ClusterError(
              f'The learner {e}, {num_losses} times since the last checkpoint.'
              ' The same command goes on from there.') from None
        print(f'The learner {e}. It starts again from the last checkpoint.',
              flush=True)


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

  def __init__(self, config: config_lib.Config, rank: int):
    """Makes a worker; `run` does all that can fail.

    Args:
      config: the settings.
      rank: which of the learners it is.
    """
    self._config, self._rank = config, rank
    self._stop = threading.Event()
    self._output = _Output()
    self._episodes: collections.deque = collections.deque()

  def address(self) -> str:
    """Returns a free `HOST:PORT` of its machine."""
    host = ray.util.get_node_ip_address()
    with socket.socket() as one:
      one.bind((host, 0))
      return f'{host}:{one.getsockname()[1]}'

  def run(self, addresses: list[str]) -> int:
    """Trains; returns the exit code of `training.run`.

    Args:
      addresses: those of all learners.

    Raises:
      SumError: if a sum over the learners has failed.
      Exception: any other error of the training.
    """
    # They import TensorFlow, which the driver must not do.
    training, remote_actors, collectives = map(importlib.import_module, (
        'scalable_agent.training', 'scalable_agent.distributed.remote_actors',
        'scalable_agent.collectives'))
    size = len(addresses)
    make_acting = functools.partial(
        remote_actors.RemoteActors, rank=self._rank, num_learners=size,
        say=lambda line: self._output.write(f'{line}\n'))
    # The first one speaks for all.
    output = self._output if self._rank == 0 else io.StringIO()
    with contextlib.redirect_stdout(output):
      if size == 1:
        return training.run(self._config, make_acting, self._stop)
      try:
        return training.run(
            self._config, make_acting, self._stop, episodes=self._episodes,
            collectives=collectives.TensorFlowCollectives(
                addresses, self._rank, self._config.hang_timeout_s))
      except collectives.SUM_ERRORS as e:
        raise SumError(str(e)) from None

  def output(self) -> str:
    """Returns what was printed since the last call."""
    return self._output.take()

  def exchange_episodes(self, episodes: list) -> list:
    """Takes episodes of others; returns its own, if it is not the first."""
    self._episodes.extend(episodes)
    if self._rank == 0:
      return []
    return [self._episodes.popleft() for _ in range(len(self._episodes))]

  def stop(self) -> None:
    """Ends the training with a checkpoint."""
    self._stop.set()


class SumError(Exception):
  """A sum over the learners has failed, as one of them has died or hangs."""


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

  def __init__(self, config: config_lib.Config):
    num_gpus = config.num_gpus_per_learner
    if num_gpus < 0:
      num_gpus = int(ray.cluster_resources().get('GPU', 0) > 0)
    self._hang_timeout_s = config.hang_timeout_s
    make = ray.remote(LearnerWorker).options(
        num_cpus=config.num_cpus_per_learner, num_gpus=num_gpus,
        max_restarts=0, max_concurrency=4)
    self._handles: list[Any] = [
        make.remote(config, rank) for rank in range(config.num_learners)]
    self._outputs: dict[int, ray.ObjectRef] = {}
    self._answer_s = [time.monotonic()] * config.num_learners

  def run_to_end(self, stop: threading.Event) -> int:
    """Trains; prints what the learners print. Returns the exit code.

    Raises:
      _LearnerLost: a process has died, or does not answer.
      Exception: any error of the training.
    """
    stopping_s = None
    try:
      addresses = ray.get([h.address.remote() for h in self._handles])
      runs = [h.run.remote(addresses) for h in self._handles]
      while not ray.wait(runs, timeout=_POLL_S)[0]:
        self._print_output()
        self._exchange_episodes()
        if stop.is_set() and stopping_s is None:
          stopping_s = time.monotonic()
          for handle in self._handles:
            handle.stop.remote()
        self._check_time(stopping_s)
      return self._results(runs)
    except ray.exceptions.RayTaskError as e:
      raise e.cause from None
    except ray.exceptions.RayError:
      raise _LearnerLost('has died') from None
    finally:
      for handle in self._handles:
        ray.kill(handle)

  def _results(self, runs):
    """Waits for all learners; returns the exit code, or raises the cause."""
    ray.wait(runs, num_returns=len(runs), timeout=_END_TIMEOUT_S)
    for rank in range(len(runs)):
      with contextlib.suppress(ray.exceptions.RayError):
        self._print_output_of(rank)
    failures = []
    for run in runs:
      try:
        code = ray.get(run, timeout=0)
      except (ray.exceptions.RayError, TimeoutError) as e:
        failures.append(e)
    if not failures:
      return code
    # That a sum has failed is only a consequence.
    failures.sort(key=lambda e: isinstance(getattr(e, 'cause', e), SumError))
    first = failures[0]
    if isinstance(getattr(first, 'cause', first), (SumError, TimeoutError)):
      raise _LearnerLost('has lost another one')
    raise first

  def _print_output(self):
    """Prints what has come since the last call, from those that answer."""
    for rank, handle in enumerate(self._handles):
      if rank not in self._outputs:
        self._outputs[rank] = handle.output.remote()
      if ray.wait([self._outputs[rank]], timeout=0)[0]:
        print(ray.get(self._outputs.pop(rank)), end='', flush=True)
        self._answer_s[rank] = time.monotonic()

  def _print_output_of(self, rank):
    """Prints all that a learner has printed; waits for it."""
    if rank in self._outputs:
      print(ray.get(self._outputs.pop(rank), timeout=_END_TIMEOUT_S), end='')
    print(ray.get(self._handles[rank].output.remote(), timeout=_END_TIMEOUT_S),
          end='', flush=True)

  def _exchange_episodes(self):
    """Passes the episodes of the others on to the first learner."""
    for handle in self._handles[1:]:
      self._handles[0].exchange_episodes.remote(
          handle.exchange_episodes.remote([]))

  def _check_time(self, stopping_s):
    now_s = time.monotonic()
    if stopping_s is not None and now_s - stopping_s > _STOP_TIMEOUT_S:
      raise _LearnerLost(f'did not end within {_STOP_TIMEOUT_S:.0f} s')
    if now_s - min(self._answer_s) > self._hang_timeout_s:
      raise _LearnerLost(
          f'did not answer for {self._hang_timeout_s:.0f} s')
