# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The reference's way to start a run: one command on each host, by hand.

`--job_name=learner --task=0` starts a ray cluster on its host, and trains.
`--job_name=actor --task=1` and so on add their hosts to the cluster, and act
until the training ends. Without `--ray_address`, all commands are on this host,
and each actor command has room for one actor worker.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import fcntl
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO

import ray
from scalable_agent import errors
from scalable_agent.distributed import cluster
from scalable_agent.distributed import ray_directory
from scalable_agent.processes import signals
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files
from scalable_agent.settings.cluster_settings import THIS_HOST

_POLL_S = 0.5
# On a busy host, ray's processes do not always find each other in time.
_MAX_STARTS = 4
_START_TIMEOUT_S = 60.
_NUM_LINES = 3  # Last lines of ray's output that an error shows.
_END_TIMEOUT_S = 20.
# Each actor command starts a process for the goodbye, which takes long if many
# commands share a host. The calls to lost hosts fail after a few seconds.
_GOODBYE_TIMEOUT_S = 120.
# ray gives a hanging machine up after three checks of 2 s without an answer.
# ray's own defaults are far more patient.
HEALTH_CHECK = {'RAY_health_check_period_ms': '1000',
                'RAY_health_check_timeout_ms': '2000',
                'RAY_health_check_failure_threshold': '3'}
# Variable with the path of a file that the learner creates on each host at the
# end of the run.
_GOODBYE = 'SCALABLE_AGENT_GOODBYE'
# Variable with the paths of an actor command, as JSON, for its actor workers.
_PATHS = 'SCALABLE_AGENT_PATHS'


@contextlib.contextmanager
def head(config: config_lib.Config) -> Iterator[None]:
  """Starts the cluster of `--ray_address` on this host, if `--task` is set.

  On this host, the cluster has the learners' CPUs only, so actors run on other
  hosts. The cluster ends with the context.

  Raises:
    ConfigError: another program uses the port.
    ClusterError: the cluster cannot be started.
  """
  if config.task < 0:
    yield
    return
  if cluster.listens(config.ray_address):
    raise errors.ConfigError(
        f'--ray_address={config.ray_address}: a learner or another program '
        'uses the port already. Use another port.')
  host, _, port = config.ray_address.rpartition(':')
  num_cpus = config.num_learners * config.num_cpus_per_learner
  ray_directory.shorten()  # All hosts use the directory of the head.
  with _ray_node(threading.Event(), '--head', f'--port={port}',
                 f'--node-ip-address={host}', f'--num-cpus={num_cpus}',
                 '--include-dashboard=false'):
    address = '' if config.ray_address == THIS_HOST else (
        f' --ray_address={config.ray_address}')
    print(f'Actors join with --job_name=actor --task=1 (2, 3 ...){address}.')
    if os.environ['RAY_AUTH_MODE'] != 'token':
      print('Whoever reaches this address can run programs as you. Set the '
            'same RAY_AUTH_TOKEN on all hosts to prevent this.', flush=True)
    yield


def with_absolute_paths(config: config_lib.Config) -> config_lib.Config:
  """Returns settings for processes with other working directories."""
  dataset_path, cache = config.dataset_path, config.level_cache_dir
  if os.path.isdir(dataset_path):  # May be `dummy`, as in the reference.
    dataset_path = os.path.abspath(dataset_path)
  return dataclasses.replace(
      config, logdir=os.path.abspath(config.logdir), dataset_path=dataset_path,
      level_cache_dir=cache and os.path.abspath(cache))


def join(config: config_lib.Config) -> int:
  """Adds this host to the cluster until the run ends. Returns 0.

  Raises ClusterError if no cluster was found in time, or the cluster was lost.
  """
  with signals.stop_on_signals() as stop, \
      tempfile.TemporaryDirectory() as directory:
    goodbye = pathlib.Path(directory, 'goodbye')
    os.environ[_GOODBYE] = str(goodbye)
    absolute = with_absolute_paths(config)
    os.environ[_PATHS] = json.dumps(
        {name: path for name in ('dataset_path', 'level_cache_dir')
         if (path := getattr(absolute, name))})
    room = ([f'--num-cpus={config.num_cpus_per_actor_worker}']
            if config.ray_address == THIS_HOST else [])
    _wait_for_head(config, stop)
    if not stop.is_set():
      with _ray_node(stop, f'--address={config.ray_address}',
                     '--num-gpus=0', *room) as node:
        _wait_for_end(config, node, stop, goodbye)
    print(f'Actor {config.task} ends, as '
          + ('it was stopped.' if stop.is_set() else 'the run has ended.'),
          flush=True)
  return 0


def with_paths_of_host(config: config_lib.Config) -> config_lib.Config:
  """Returns the learner's settings with the paths of this host's actor.

  Called in an actor worker. As in DeepMind's program, the command of the actor
  names the data of DeepMind Lab.
  """
  paths = json.loads(os.environ.get(_PATHS) or '{}')
  return dataclasses.replace(config, **paths) if paths else config


def _wait_for_end(config: config_lib.Config, node: '_Node',
                  stop: threading.Event, goodbye: pathlib.Path) -> None:
  if not stop.is_set():
    print(f'Actor {config.task} has joined {config.ray_address}.', flush=True)
  while not (stop.is_set() or goodbye.exists()):
    if not node.is_alive():
      raise errors.ClusterError(
          f'The learner at {config.ray_address} was lost. The same command '
          'waits for the learner.')
    stop.wait(_POLL_S)


def _wait_for_head(config: config_lib.Config, stop: threading.Event) -> None:
  deadline_s = time.monotonic() + config.actor_timeout_s
  has_printed = False
  while not (stop.is_set() or cluster.listens(config.ray_address)):
    if time.monotonic() > deadline_s:
      raise errors.ClusterError(
          f'There was no learner at {config.ray_address} for '
          f'{config.actor_timeout_s:g} s (--actor_timeout_s).')
    if not has_printed:
      has_printed = True
      print(f'Actor {config.task} waits for the learner at '
            f'{config.ray_address}.', flush=True)
    stop.wait(_POLL_S)


class _Node:
  """The ray processes of this host, as `ray start --block` runs them."""

  def __init__(self, process: subprocess.Popen, output: IO[str]):
    self._process = process
    self._output = output

  def is_alive(self) -> bool:
    return self._process.poll() is None

  def has_started(self) -> bool:
    return self.is_alive() and 'Ray runtime started' in self._text()

  def last_lines(self) -> str:
    return ' '.join(self._text().strip().splitlines()[-_NUM_LINES:])

  def close(self) -> None:
    """Ends all ray processes of this host."""
    self._process.terminate()
    try:
      self._process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
      pass
    with contextlib.suppress(ProcessLookupError):  # No process is left.
      os.killpg(self._process.pid, signal.SIGKILL)

  def _text(self) -> str:
    self._output.seek(0)
    return self._output.read()


@contextlib.contextmanager
def _ray_node(stop: threading.Event, *args: str) -> Iterator[_Node]:
  """Runs `ray start --block` in the context; ray ends with this process, too.

  `stop` ends the wait for the start when set. `args` are arguments of
  `ray start`. Raises ClusterError if ray does not start.
  """
  # Otherwise each host decides on its own whether ray wants a token.
  os.environ.setdefault('RAY_AUTH_MODE', 'disabled')
  # The run has ended, or continues without this host: ray need not drain.
  os.environ.setdefault('RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S', '0')
  for name, value in HEALTH_CHECK.items():
    os.environ.setdefault(name, value)
  program = shutil.which('ray', path=os.pathsep.join(
      [os.path.dirname(sys.executable), os.environ.get('PATH', '')]))
  if program is None:
    raise errors.MissingDependencyError(
        'There is no program ray: pip install "scalable_agent[ray]".')
  end_with_parent = functools.partial(signals.end_with_parent, os.getpid())
  for _ in range(_MAX_STARTS):
    with tempfile.TemporaryFile('a+', encoding='utf-8') as output, \
        contextlib.ExitStack() as stack:
      with _turn(stop):
        node = stack.enter_context(contextlib.closing(_Node(subprocess.Popen(
            [program, 'start', '--block', '--disable-usage-stats', *args],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=end_with_parent), output)))
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while (node.is_alive() and not (node.has_started() or stop.is_set())
               and time.monotonic() < deadline_s):
          stop.wait(_POLL_S)
      if node.has_started() or stop.is_set():
        yield node
        return
      text = node.last_lines()
  raise errors.ClusterError(f'ray could not be started on this host: {text}')


@contextlib.contextmanager
def _turn(stop: threading.Event) -> Iterator[None]:
  """Lets the commands of a user on this host start ray one after another.

  Nodes that start at once may take the same names of sockets, and crash. The
  system ends the turn of a killed command. `stop` ends the wait when set.
  """
  path = os.path.join(
      tempfile.gettempdir(), f'scalable_agent_ray_start_{os.getuid()}.lock')
  with contextlib.ExitStack() as stack:
    with contextlib.suppress(OSError):  # Another user's file, or no locks.
      file = stack.enter_context(open(path, 'w', opener=files.no_link))
      while not stop.is_set():
        try:
          fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
          break
        except BlockingIOError:
          stop.wait(_POLL_S)
    yield


def say_goodbye(config: config_lib.Config) -> None:
  """Tells the commands that called `join` that the run ends."""
  if config.task < 0:
    return
  cluster.call_in_time(_say_goodbye, _GOODBYE_TIMEOUT_S)


def _say_goodbye() -> None:
  calls = [
      ray.remote(_make_goodbye_file).options(
          num_cpus=0, max_retries=0,
          scheduling_strategy=cluster.on_node(node['NodeID'])).remote()
      for node in ray.nodes() if node['Alive']]
  ray.wait(calls, num_returns=len(calls), timeout=_GOODBYE_TIMEOUT_S)


def _make_goodbye_file() -> None:
  path = os.environ.get(_GOODBYE)
  if path:
    pathlib.Path(path).touch()
