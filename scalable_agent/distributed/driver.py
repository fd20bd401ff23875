# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The driver: starts the learners on a ray cluster, and restarts lost learners.

Only the processes of the learners import TensorFlow.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import os
import re
import socket
import threading
import uuid

from scalable_agent import errors
from scalable_agent.distributed import cluster
from scalable_agent.distributed import hosts
from scalable_agent.distributed import learner_worker
from scalable_agent.distributed import learners
from scalable_agent.processes import signals
from scalable_agent.runs import logdirs
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections

# Prefix of the files that show whether a log directory is shared.
_TOKEN = '.shared-'


def train(config: config_lib.Config) -> int:
  """Trains on a ray cluster; otherwise like `training.train`.

  A lost learner restarts from the latest checkpoint.

  Raises:
    ConfigError: there is no such cluster.
    ClusterError: there is no room for the learner.
    LearnerLostError: the learner was lost too often.
  """
  if config.job_name == 'actor':
    return hosts.join(config)
  # Learners and workers have other working directories.
  config = hosts.with_absolute_paths(config)
  with logdirs.locked(config.logdir), hosts.head(config), \
      cluster.connected(config), signals.stop_on_signals() as stop:
    try:
      exit_code = _train(config, stop)
    except errors.ClusterError:  # Other hosts wait for the same command again.
      raise
    except BaseException:
      with contextlib.suppress(Exception):  # The cluster may be gone.
        hosts.say_goodbye(config)
      raise
    hosts.say_goodbye(config)
    return exit_code


def _train(config: config_lib.Config, stop: threading.Event) -> int:
  """Resolves the settings that depend on the cluster, and trains."""
  num_workers = cluster.num_actor_workers(config)
  if config.min_actor_workers > num_workers:
    # Without --num_actor_workers, more CPUs may join the cluster later.
    error = (errors.ConfigError if config.num_actor_workers
             else errors.ClusterError)
    raise error(
        f'--min_actor_workers={config.min_actor_workers} must be at most the '
        f'number of actor workers, {num_workers} (--num_actor_workers).')
  with _token(config.logdir) as token, \
      contextlib.closing(cluster.Connection()) as connection:
    return _run_learners(dataclasses.replace(
        config, num_actor_workers=num_workers,
        num_gpus_per_learner=cluster.num_gpus_per_learner(config)),
                         token, stop, connection)


def _run_learners(config: config_lib.Config, token: str, stop: threading.Event,
                  connection: cluster.Connection) -> int:
  """Runs the learners to the end; restarts lost learners."""
  losses: list[str] = []  # Reasons of the losses since the last checkpoint.
  checkpoint = _latest_checkpoint(config)
  while True:
    try:
      return learners.Learners(
          config, learner_worker.start(config, token),
          connection).run_to_end(stop)
    except learners.LearnerLost as e:
      learners.check_cluster(connection)
      newer = _latest_checkpoint(config)
      if newer != checkpoint:
        losses.clear()
      checkpoint = newer
      losses.append(str(e))
      if stop.is_set():
        raise _lost_while_stopping(e) from None
      if len(losses) > config.max_learner_restarts:
        raise errors.LearnerLostError(
            f'The learner {losses[0]}. There was no newer checkpoint after '
            f'--max_learner_restarts={config.max_learner_restarts} restarts. '
            'The same command resumes from the last checkpoint.') from None
      print(f'The learner {e}. Restarting from the last checkpoint.',
            flush=True)
      stop.wait(cluster.pause_s(len(losses)))
      connection.wait_for_head(stop)
      learners.check_cluster(connection)
      if stop.is_set():
        raise _lost_while_stopping(e) from None


def _lost_while_stopping(loss: learners.LearnerLost) -> errors.LearnerLostError:
  return errors.LearnerLostError(
      f'The learner {loss}. The same command resumes from the last checkpoint.')


@contextlib.contextmanager
def _token(logdir: str) -> Iterator[str]:
  """Yields the path of a file that learners see if `logdir` is shared."""
  path = os.path.join(logdir, f'{_TOKEN}{uuid.uuid4().hex}')
  try:
    for name in os.listdir(logdir):
      if re.fullmatch(rf'{re.escape(_TOKEN)}[0-9a-f]{{32}}', name):
        os.remove(os.path.join(logdir, name))  # The file of a killed driver.
    with open(path, 'x', encoding='utf-8') as f:
      f.write(socket.gethostname())
  except OSError as e:
    raise errors.CheckpointError(
        f'{path} cannot be written: {e.strerror}.') from e
  try:
    yield path
  finally:
    with contextlib.suppress(OSError):
      os.remove(path)


def _latest_checkpoint(config: sections.RunSettings) -> str:
  """Returns the text that names the latest checkpoint, '' without one."""
  try:
    with open(os.path.join(config.logdir, 'checkpoint'), encoding='utf-8') as f:
      return f.read()
  except OSError:
    return ''
