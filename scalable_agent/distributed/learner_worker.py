# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The process of a learner, as the driver calls it.

`LearnerWorker.run` imports TensorFlow; the driver, which starts the process,
does not.
"""

from collections.abc import Mapping
import contextlib
import importlib
import io
import os
import socket
import sys
import threading
import time

import ray
from scalable_agent import errors
from scalable_agent.distributed import cluster
from scalable_agent.distributed import descriptions
from scalable_agent.runs import reports
from scalable_agent.settings import config as config_lib


class LearnerWorker:
  """Trains in its own process. Each call runs in its own thread."""

  def __init__(self, config: config_lib.Config, rank: int, token: str,
               program: str):
    """Creates a worker that must see the file `token` when `run` starts.

    `program` is the path of the driver's program, for commands in messages.
    """
    self._config, self._rank, self._token = config, rank, token
    self._program = program
    self._stop = _Stop()
    self._output = _Output()
    self._reports = reports.Reports()

  def address(self) -> str:
    """Returns a free `HOST:PORT` of this machine."""
    host = ray.util.get_node_ip_address()
    with socket.socket() as free_socket:
      free_socket.bind((host, 0))
      return f'{host}:{free_socket.getsockname()[1]}'

  def versions(self) -> tuple[str, dict[str, str]]:
    """Returns the name of this machine, and its installed versions."""
    return socket.gethostname(), descriptions.installed_versions()

  def run(self, addresses: list[str], adder: ray.actor.ActorHandle | None,
          first: tuple[str, Mapping[str, str]]) -> int:
    """Trains; returns the exit code of `training.run`.

    Args:
      adder: ray's handle of the `adder.Adder`, with `--collectives=ray`.
      first: `versions` of learner 0.

    Raises:
      cluster.SumError: a sum over the learners failed.
      ConfigError: this machine does not see the driver's log directory, or has
        other versions than learner 0.
    """
    # A sign of life: the start of other learners may have taken long.
    self._stop.is_set()
    if not os.path.exists(self._token):
      raise errors.ConfigError(
          f'{socket.gethostname()} does not see a file that the machine of '
          f'experiment.py has written to --logdir={self._config.logdir}: use a '
          'directory that all machines share.')
    descriptions.check_versions(*first)
    sys.argv[0] = self._program
    # This import loads TensorFlow.
    learning = importlib.import_module('scalable_agent.distributed.learning')
    # Only learner 0 prints.
    output = self._output if self._rank == 0 else io.StringIO()
    with contextlib.redirect_stdout(output):
      return learning.run(
          self._config, self._rank, addresses, adder, self._stop,
          lambda line: self._output.write(f'{line}\n'), self._reports)

  def output(self) -> tuple[str, float]:
    """Returns new output, and seconds since the training's last sign of life.

    The output is the text that was printed since the last call.
    """
    return self._output.take(), time.monotonic() - self._stop.asked_s

  def take_report(self) -> reports.Report:
    return self._reports.take()

  def add_report(self, report: reports.Report) -> None:
    """Adds the report of another learner; called on learner 0 only."""
    self._reports.add(report)

  def stop(self) -> None:
    """Ends the training with a checkpoint."""
    self._stop.set()


def start(config: config_lib.Config,
          token: str) -> list[ray.actor.ActorHandle]:
  """Starts the processes of all learners, which must see the file `token`."""
  make = cluster.maker(
      LearnerWorker, num_cpus=config.num_cpus_per_learner,
      num_gpus=config.num_gpus_per_learner, max_concurrency=4,
      # With --task, all learners run on this host.
      scheduling_strategy='DEFAULT' if config.task < 0 else cluster.on_node(
          cluster.this_node()))
  return [make(config, rank, token, sys.argv[0])
          for rank in range(config.num_learners)]


class _Stop(threading.Event):
  """An event that records when `is_set` was last called.

  A running training calls `is_set` all the time.
  """

  def __init__(self) -> None:
    super().__init__()
    self.asked_s = time.monotonic()

  def is_set(self) -> bool:
    self.asked_s = time.monotonic()
    return super().is_set()


class _Output(io.TextIOBase):
  """A stream that keeps its text until `take` is called."""

  def __init__(self) -> None:
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
