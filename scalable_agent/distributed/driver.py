# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The driver: starts the learner on a ray cluster, and watches over it.

TensorFlow is imported by the process of the learner only.
"""

import contextlib
import importlib
import io
import os
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
        return _Learner(config).run_to_end(stop)
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

  def __init__(self, config: config_lib.Config):
    self._config = config
    self._stop = threading.Event()
    self._output = _Output()

  def run(self) -> int:
    """Trains; returns the exit code of `training.run`."""
    # They import TensorFlow, which the driver must not do.
    training, remote_actors = map(importlib.import_module, (
        'scalable_agent.training', 'scalable_agent.distributed.remote_actors'))
    with contextlib.redirect_stdout(self._output):
      return training.run(
          self._config, remote_actors.RemoteActors, self._stop)

  def output(self) -> str:
    """Returns what was printed since the last call."""
    return self._output.take()

  def stop(self) -> None:
    """Ends the training with a checkpoint."""
    self._stop.set()


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


class _Learner:
  """A learner's process, as the driver sees it."""

  def __init__(self, config: config_lib.Config):
    num_gpus = config.num_gpus_per_learner
    if num_gpus < 0:
      num_gpus = int(ray.cluster_resources().get('GPU', 0) > 0)
    self._hang_timeout_s = config.hang_timeout_s
    self._handle: Any = ray.remote(LearnerWorker).options(
        num_cpus=config.num_cpus_per_learner, num_gpus=num_gpus,
        max_restarts=0, max_concurrency=3).remote(config)
    self._output: ray.ObjectRef | None = None
    self._answer_s = time.monotonic()

  def run_to_end(self, stop: threading.Event) -> int:
    """Trains; prints what the learner prints. Returns the exit code.

    Raises:
      _LearnerLost: its process has died, or does not answer.
      Exception: any error of the training.
    """
    run = self._handle.run.remote()
    stopping_s = None
    try:
      while not ray.wait([run], timeout=_POLL_S)[0]:
        self._print_output()
        if stop.is_set() and stopping_s is None:
          stopping_s = time.monotonic()
          self._handle.stop.remote()
        self._check_time(stopping_s)
      self._print_output(last=True)
      return ray.get(run)
    except ray.exceptions.RayTaskError as e:
      raise e.cause from None
    except ray.exceptions.RayError:
      raise _LearnerLost('has died') from None
    finally:
      ray.kill(self._handle)

  def _print_output(self, last=False):
    """Prints what has come since the last call, if the learner answers."""
    if self._output is None:
      self._output = self._handle.output.remote()
    if last or ray.wait([self._output], timeout=0)[0]:
      print(ray.get(self._output), end='', flush=True)
      self._output, self._answer_s = None, time.monotonic()
      if last:
        print(ray.get(self._handle.output.remote()), end='', flush=True)

  def _check_time(self, stopping_s):
    now_s = time.monotonic()
    if stopping_s is not None and now_s - stopping_s > _STOP_TIMEOUT_S:
      raise _LearnerLost(f'did not end within {_STOP_TIMEOUT_S:.0f} s')
    if now_s - self._answer_s > self._hang_timeout_s:
      raise _LearnerLost(
          f'did not answer for {self._hang_timeout_s:.0f} s')
