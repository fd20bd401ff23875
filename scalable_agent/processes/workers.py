# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Worker processes with one or several environments, stepped together.

Parent and workers exchange arrays in shared memory. The parent sends a command
of one byte through the worker's own pipe. A worker answers with one byte
through a pipe that all workers share. The parent raises the errors of workers.
Workers start and end as described in `processes`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import multiprocessing
from multiprocessing import connection
import os
import random
import selectors
import threading
import time
from typing import TypeAlias
import warnings

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.processes import console
from scalable_agent.processes import processes
from scalable_agent.processes import shared_arrays
from scalable_agent.processes import starts
from scalable_agent.processes import user_code
from scalable_agent.processes.shared_arrays import BUSY
from scalable_agent.processes.shared_arrays import DONE
from scalable_agent.processes.shared_arrays import FAILED

# Time for workers to finish a step when they are closed; to end after errors.
_FINISH_TIMEOUT_S, _END_TIMEOUT_S = 1.0, 2.0
# Time to close an environment, for at most so many environments of a process.
_CLOSE_TIMEOUT_S, _MOST_CLOSES = 10.0, 6

# Levels, and names of metrics, whose warnings one process shows: each process
# would repeat the same.
_warned: set[tuple[str, tuple[str, ...]]] = set()

# Commands. A read from a closed pipe returns b'', the command to close.
_RESET, _STEP, _CLOSE = b'r', b's', b''
# The answers of a worker.
_DONE_BYTE, _FAILED_BYTE = b'.', b'!'

_Process: TypeAlias = multiprocessing.process.BaseProcess


class _NoAnswerError(TimeoutError):
  """Workers did not answer in time."""

  def __init__(self, timeout_s: float):
    super().__init__()
    self.timeout_s = timeout_s


class Workers:
  """`E` environments in processes, stepped together through `exchange`."""

  def __init__(self, names: Sequence[str],
               factories: Sequence[Callable[[], gymnasium.Env]],
               observation_spec: dict[str, structs.ArraySpec],
               action_spec: structs.ArraySpec,
               seeds: Sequence[int], timeout_s: float,
               num_per_process: int, steps_compile: bool,
               ready_period_s: float, first_index: int,
               metric_names: Iterable[str] = ()):
    """Starts the processes, which begin to build the environments.

    Observations of the `E` environments are dictionaries of arrays. Actions are
    from the action space of the environments. A step of all environments may
    take `timeout_s` seconds. Starts and resets, and steps with `steps_compile`,
    may take longer if environments share cores. A process steps
    `num_per_process` environments in turn. While environments start, a line
    every `ready_period_s` says how many are ready; 0 for no lines. Errors count
    environments from `first_index` on. `metric_names` are read from the last
    `info` of episodes. Raises EnvironmentProcessError if a process cannot be
    started, ConfigError if there is too little memory.
    """
    # The indices of the environments of each process.
    self._indices = [range(len(factories))[start:start + num_per_process]
                     for start in range(0, len(factories), num_per_process)]
    self._names, self._metric_names = tuple(names), tuple(metric_names)
    self._first_index = first_index
    self._timeout_s = timeout_s
    self._num_per_process = num_per_process
    self._steps_compile = steps_compile
    self._ready_period_s = ready_period_s
    self._closed = False
    self._is_built = False
    # Held while command pipes are written to or closed.
    self._lock = threading.Lock()
    self._commands: list[connection.Connection] = []
    self._processes: list[_Process] = []
    self._selector = selectors.DefaultSelector()
    shared = shared_arrays.allocate(
        len(factories), observation_spec, action_spec, metric_names)
    self.exchange = shared_arrays.open_exchange(shared)
    self.exchange.status.fill(BUSY)
    starts.open_vector(id(self), len(factories))
    with self._explain_failures():
      self._done, done = processes.CONTEXT.Pipe(duplex=False)
      self._selector.register(self._done, selectors.EVENT_READ)
      with done:
        for indices in self._indices:
          self._start(done, indices, factories, seeds, shared)

  def wait_until_built(self) -> None:
    """Waits until all environments are built; may be called again.

    Raises EnvironmentProcessError, and ends all processes, if an environment
    cannot be built.
    """
    if not self._is_built:
      with self._explain_failures():
        self._wait(is_start=True)
      self._is_built = True

  def reset(self) -> None:
    """Resets all environments with their seeds, when all are built."""
    self.wait_until_built()
    starts.begin(id(self))
    self._command(_RESET, is_start=True)
    starts.ready(id(self), len(self._names), 0)

  def step(self) -> None:
    """Steps all environments with `exchange.action`; begins new episodes."""
    self._command(_STEP, is_start=self._steps_compile)

  def close(self) -> None:
    """Closes the environments and ends the processes; may be called again.

    Processes that still build an environment, do not finish a step, or do not
    end in time are killed. A line says which environments did not close.
    """
    timeout_s = _CLOSE_TIMEOUT_S * min(self._num_per_process, _MOST_CLOSES)
    if hung := self._close(timeout_s):
      print(f'{self._describe(hung)} did not close within {timeout_s:g} '
            'seconds and had to be ended.', flush=True)

  def _close(self, timeout_s: float) -> list[int]:
    """Does `close`; returns the environments that did not close in time."""
    with self._lock:
      if self._closed:
        return []
      self._closed = True
      starts.close_vector(id(self))
      for pipe in self._commands:
        pipe.close()
    try:
      deadline_s = time.monotonic() + (
          _FINISH_TIMEOUT_S if self._is_built else 0)
      while self._busy() and time.monotonic() < deadline_s:
        time.sleep(0.01)
      for process in (busy := self._busy()):
        process.kill()
      deadline_s = time.monotonic() + timeout_s
      for process in self._processes:
        process.join(max(deadline_s - time.monotonic(), 0))
      return [i for process, indices in zip(self._processes, self._indices)
              if process.is_alive() and process not in busy for i in indices]
    finally:
      processes.end(self._processes)

  def _busy(self) -> list[_Process]:
    return [process for process, indices
            in zip(self._processes, self._indices)
            if BUSY in self.exchange.status[indices] and process.is_alive()]

  def _start(self, done: connection.Connection, indices: range,
             factories: Sequence[Callable[[], gymnasium.Env]],
             seeds: Sequence[int], shared: shared_arrays.Shared) -> None:
    commands, command = processes.CONTEXT.Pipe(duplex=False)
    new = {(self._names[i], self._metric_names) for i in indices} - _warned
    _warned.update(new)
    with commands:
      self._commands.append(command)
      process = processes.start(
          _work, (commands, done, indices, [
              gymnasium.vector.utils.CloudpickleWrapper(factories[i])
              for i in indices], [seeds[i] for i in indices], shared,
              bool(new)),
          name=f'environment-{indices[0]}')
    self._processes.append(process)
    self._selector.register(process.sentinel, selectors.EVENT_READ)

  def _command(self, command: bytes, is_start: bool) -> None:
    with self._explain_failures():
      with self._lock:
        if self._closed:
          raise EOFError
        self.exchange.status.fill(BUSY)
        for pipe in self._commands:
          os.write(pipe.fileno(), command)
      self._wait(is_start, command)

  def _wait(self, is_start: bool, command: bytes = _CLOSE) -> None:
    """Waits for all workers; raises errors for `_explain`."""
    timeout_s = self._timeout_s
    patience = processes.Patience(timeout_s)
    num_busy = len(self._processes)
    while num_busy:
      ready = patience.wait(self._selector.select)
      if command == _RESET:
        starts.ready(id(self), int(np.sum(self.exchange.status == DONE)),
                     self._ready_period_s)
      if not ready and patience.left_s <= 0:
        if not is_start:
          raise _NoAnswerError(timeout_s)
        # Computed as late as here, because more environments may have begun to
        # start in the meantime.
        is_start, more_s = False, starts.more_s(self._num_per_process)
        timeout_s += more_s
        patience.left_s += more_s
      for key, _ in ready:
        if key.fileobj is not self._done:
          raise EOFError  # A process has ended.
        answers = os.read(key.fd, num_busy)
        if not answers or _FAILED_BYTE in answers:
          raise EOFError
        num_busy -= len(answers)

  @contextlib.contextmanager
  def _explain_failures(self) -> Iterator[None]:
    """Ends all workers when one fails; raises an error with the reason."""
    try:
      yield
    except (EOFError, OSError) as e:
      explanation = self._explain(e)
      self._close(_END_TIMEOUT_S)
      raise explanation from None
    except BaseException:  # Such as Ctrl-C: workers may still be busy.
      self._close(_END_TIMEOUT_S)
      raise

  def _explain(self, error: Exception) -> errors.UserCodeError:
    if self._closed:
      return errors.EnvironmentProcessError(
          'These environments are closed, or have failed before.')
    failed = np.flatnonzero(self.exchange.status == FAILED)
    if failed.size:
      return user_code.ErrorText.from_bytes(
          self.exchange.report[failed[0]].tobytes()).error(
              self._describe(failed[:1]))
    if isinstance(error, _NoAnswerError):
      # Environments after the hung one in the same process have not begun.
      hung = [next(i for i in indices if self.exchange.status[i] == BUSY)
              for indices in self._indices
              if BUSY in self.exchange.status[indices]]
      return errors.EnvironmentProcessLostError(
          f'{self._describe(hung)} did not answer within {error.timeout_s:g} '
          f'seconds (--step_timeout_s; at the start, {starts.TIMEOUT_S:g} s x '
          'environments / cores more).')
    # The pipe breaks shortly before the exit code of the process is known.
    sentinels = [process.sentinel for process in self._processes]
    timeout_s = (_END_TIMEOUT_S if isinstance(
        error, (EOFError, BrokenPipeError)) else 0)
    if sentinels:
      connection.wait(sentinels, timeout_s)
    ended = [process for process in self._processes if not process.is_alive()]
    dead = [i for indices, process in zip(self._indices, self._processes)
            if process in ended for i in indices]
    if not dead:
      return errors.EnvironmentProcessError(
          'The processes of environments cannot be started or reached: '
          f'{error!r}.')
    exit_codes = sorted({str(process.exitcode) for process in ended})
    return errors.EnvironmentProcessLostError(
        f'The process of {self._describe(dead)} died with exit code '
        f'{", ".join(exit_codes)} (-N: killed by signal N; -9 is '
        f'often a lack of memory); {processes.WHERE_MESSAGE}.')

  def _describe(self, indices: Iterable[int]) -> str:
    return 'environment ' + ', '.join(
        f'{self._first_index + i} ({self._names[i]})' for i in indices)


def _work(commands: connection.Connection, done: connection.Connection,
          indices: range, factories: Sequence[Callable[[], gymnasium.Env]],
          seeds: Sequence[int], shared: shared_arrays.Shared,
          has_warnings: bool) -> None:
  """Runs in a worker: obeys commands until their pipe is closed."""
  if not has_warnings:
    warnings.simplefilter('ignore')
  console.survive_lost_output()
  exchange = shared_arrays.open_exchange(shared)
  command, envs = None, []
  while command != _CLOSE:
    answer = _DONE_BYTE
    for i, index in enumerate(indices):
      method = 'reset' if command == _RESET else 'step'
      try:
        if command is None:
          with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # Shown when the level was queried.
            seed_process(seeds[i])
            envs.append(factories[i]())
        elif command == _RESET:
          seed_process(seeds[i])
          observation, _ = envs[i].reset(seed=seeds[i])
          shared_arrays.write(exchange.observation, index, observation)
        elif _step(envs[i], exchange, index):
          method = 'reset'
          observation, _ = envs[i].reset()
          shared_arrays.write(exchange.observation, index, observation)
        exchange.status[index] = DONE
      except Exception as e:
        text = user_code.report(e, command and envs[i], method).to_bytes(
            shared_arrays.MAX_REPORT_BYTES)
        exchange.report[index, :len(text)] = np.frombuffer(text, np.uint8)
        exchange.status[indices] = DONE  # The parent waits no longer.
        exchange.status[index] = FAILED
        answer = _FAILED_BYTE
        break
    with contextlib.suppress(BrokenPipeError):  # The parent closed the pipe.
      os.write(done.fileno(), answer)
    command = os.read(commands.fileno(), 1)
  for env in envs:
    with user_code.errors_of_close_ignored(is_silent=not has_warnings):
      env.close()


def seed_process(seed: int) -> None:
  """Seeds the generators that an environment shares with its process."""
  # All workers are forked with the same state of these generators.
  random.seed(seed)
  np.random.seed(seed)


def _step(env: gymnasium.Env, exchange: shared_arrays.Exchange,
          index: int) -> bool:
  """Steps an environment; returns whether the episode ended."""
  # A copy, because environments may keep their last action.
  observation, reward, terminated, truncated, info = env.step(
      exchange.action[index].copy())
  exchange.reward[index] = user_code.number_of_reward(reward)
  ends = user_code.ends_of_step(terminated, truncated)
  exchange.terminated[index], exchange.truncated[index] = ends
  if not any(ends):
    shared_arrays.write(exchange.observation, index, observation)
    return False
  shared_arrays.write(exchange.last_observation, index, observation)
  for name, array in exchange.metrics.items():
    array[index] = user_code.number_of_info(info, name)
  return True
