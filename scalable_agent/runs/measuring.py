# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures the times of acting and learning, for `--num_actors=auto`.

Real actors act for a moment, with one group of a few sizes; learners of a few
settings learn from a real batch. Nothing that is learned here is kept.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import statistics
import tempfile
import threading
import time
from typing import Any, TypeAlias

from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.acting import local
from scalable_agent.acting import shares
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import sources
from scalable_agent.networks import layers
from scalable_agent.processes import memory
from scalable_agent.processes import starts
from scalable_agent.runs import choice
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
import tensorflow as tf

# Settings that are measured and chosen.
_CHOSEN = ('num_actors', 'num_actor_groups', 'environments_per_process',
           'micro_batch_size', 'xla')
# Environments of a group, and of each process. The first group is small, as
# starts may be slow. Later groups are measured while there is time.
_GROUPS = ((4, 1), (16, 8), (16, 1), (64, 8), (64, 1))
# Environments that share processes are not tried again if so much slower.
_MUCH_SLOWER = 1.5
_MICRO_BATCH_SIZE = 4
# Memory that a process may need; all together get half of the memory.
_PROCESS_GB = .1
# Nothing new is begun after this time; a part that waits ends at the limit. A
# group acts for longer if starts took most of the time, as on a busy machine.
_BUDGET_S, _LIMIT_S, _LEAST_S = 40., 55., 30.
_ACTING_S, _UPDATES_S = 1.5, 2.
_MIN_STEPS, _MIN_UPDATES = 3, 2
_POLL_S, _STOP_S, _RESET_TIMEOUT_S = .01, 3., 20.
# Makes a learner of settings, for environments.
MakeLearner: TypeAlias = Callable[
    [config_lib.Config, structs.EnvironmentSpec], learner_lib.Learner]


class _Clock:
  """Seconds since the start of the measurement."""

  def __init__(self) -> None:
    self._start_s = time.monotonic()

  @property
  def now_s(self) -> float:
    return time.monotonic() - self._start_s

  def has_time(self, seconds: float) -> bool:
    """Returns whether a part that takes some seconds may begin."""
    return self.now_s + seconds < _BUDGET_S


def chosen(config: config_lib.Config,
           make_learner: MakeLearner) -> config_lib.Config:
  """Returns settings with the numbers that `--num_actors=auto` stands for.

  A resumed run takes the numbers of the part before. Otherwise measures, and
  prints the choice. Other settings are returned unchanged.
  """
  names = [name for name in _CHOSEN if getattr(config, name) in (0, 'auto')]
  if not {'num_actors', 'num_actor_groups'} & set(names):
    return config
  if before := config_lib.resumed(config.logdir):
    return choice.kept(config, before, names)
  if config.num_actors:
    return config
  # The measurement leaves `episode_metrics` out: their error comes first.
  environments.check_names(
      levels.level_names(config.level_name, config.is_test), config)
  print('--num_actors=auto: measuring, for about a minute.', flush=True)
  clock = _Clock()
  times = measure(config, make_learner, clock)
  found = choice.choose(config, times)
  print(said(config, times, found, clock.now_s), flush=True)
  return found.config


def said(config: config_lib.Config, times: choice.Times, found: choice.Choice,
         seconds: float) -> str:
  """Returns the lines about a choice."""
  acting = times.acting[-1]
  milli = lambda value: f'{1000 * value:.3g} ms'
  update = (f', an update {milli(min(u.seconds for u in times.updates))}'
            if times.updates else ', no update within the time')
  flags = ' '.join(
      f'--{name}={getattr(found.config, name)}' for name in _CHOSEN
      if getattr(found.config, name) != getattr(config, name))
  return (
      f'Measured in {seconds:.0f} s: {acting.num_environments} environments '
      f'take {milli(acting.environment_s)} per step, their actions '
      f'{milli(acting.policy_s)}{update}.\nChosen: {flags}; '
      f'{found.steps_per_s:,.0f} agent steps per second are expected, where '
      f'{found.reason}. Expected policy lag: '
      f'{choice.policy_lag(found.config):.1f} updates.')


def measure(config: config_lib.Config, make_learner: MakeLearner,
            clock: _Clock) -> choice.Times:
  """Returns the times of the environments, the policy and the updates.

  Raises the errors of environments and of settings that do not fit them.
  """
  layers.set_compute_dtype(config.compute_dtype)
  in_processes = shares.has_processes(config.level_name)
  acting: dict[tuple[int, int], choice.GroupStep] = {}
  updates: tuple[choice.Update, ...] = ()
  start_s = 0.  # Seconds until an environment process is measured.
  try:
    with tempfile.TemporaryDirectory() as logdir:
      for number, per_process in plan(config.environments_per_process):
        begin_s = clock.now_s
        if acting and not (
            clock.has_time(start_s * number / per_process)
            and _is_worth(per_process, in_processes, acting)):
          continue
        try:
          trial = _trial_settings(config, logdir, number, per_process)
        except errors.ConfigError:  # Such as too many for the replay.
          if acting:
            continue
          raise
        with _Group(trial, config, make_learner, clock) as group:
          acting[number, per_process] = group.acting()
          if not start_s:
            start_s = (clock.now_s - begin_s) / number
          if not updates and (number > _GROUPS[0][0] or not clock.has_time(
              2 * start_s * _GROUPS[1][0])):
            updates = group.updates()
  finally:
    tf.keras.backend.clear_session()
  return choice.Times(
      starts.num_cores(),
      tuple(acting[key] for key in sorted(acting, key=lambda k: k[::-1])),
      updates, in_processes, _slow_resets_s(config),
      max(int(memory.size_gb() / 2 / _PROCESS_GB), 1))


def plan(per_process: int) -> list[tuple[int, int]]:
  """Returns environments, and environments of each process, of all groups.

  The number of environments per process is kept, unless the number is 0.
  """
  return list(dict.fromkeys(
      (number, per_process or own) for number, own in _GROUPS))


def _is_worth(per_process: int, in_processes: bool,
              acting: Mapping[tuple[int, int], choice.GroupStep]) -> bool:
  """Returns whether environments may be faster if they share processes."""
  if per_process == 1 or all(a.per_process == per_process
                             for a in acting.values()):
    return True
  pairs = [(a, acting.get((a.num_environments, 1))) for a in acting.values()
           if a.per_process > 1]
  return in_processes and not any(
      alone and together.environment_s > _MUCH_SLOWER * alone.environment_s
      for together, alone in pairs)


def _trial_settings(config: config_lib.Config, logdir: str, number: int,
                    per_process: int) -> config_lib.Config:
  """Returns the settings of a group that acts for a moment."""
  # Episodes may not end here, so a wrong name of a metric would not be said.
  changes: dict[str, Any] = {'episode_metrics': ''}
  if config.is_off_policy:
    # The first batch shall come soon, and nothing is kept.
    changes |= {'save_replay': 'no', 'min_replay_steps': min(
        declare.used(config.min_replay_steps), config.batch_size)}
  elif config.algorithm == 'appo':
    changes |= {'overlap': True}  # Actors do not wait for updates.
  return dataclasses.replace(
      config, logdir=logdir, num_actors=number, num_actor_groups=1,
      environments_per_process=per_process,
      max_policy_lag=choice.usual_lag(config), **changes)


def _resolved(trial: config_lib.Config, asked: config_lib.Config,
              observation_spec: structs.ObservationSpec) -> config_lib.Config:
  """Resolves the settings of a group; updates are those of the run."""
  resolve = lambda config: config.resolved(
      observation_spec, on_cpu=layers.on_cpu(), num_groups=1)
  resolved = resolve(trial)
  if asked.algorithm != 'appo':
    return resolved
  of_run = resolve(asked)  # Actors of the run may wait for updates.
  return dataclasses.replace(
      resolved, xla=of_run.xla, updates_per_call=of_run.updates_per_call)


class _Group:
  """A group of environments that acts, and the feed of a learner."""

  def __init__(self, config: config_lib.Config, asked: config_lib.Config,
               make_learner: MakeLearner, clock: _Clock):
    """Starts to act; `config` are the settings of `_trial_settings`."""
    self._asked = asked
    self._clock = clock
    self._make_learner = make_learner
    self._number = config.num_actors
    self._per_process = config.environments_per_process
    share = interface.Share(range(self._number))
    with contextlib.ExitStack() as stack:
      envs = shares.make_environments(config, 0, share)
      self._actors = local.make_around(envs, config, 0, share)
      stack.callback(self._actors.close)
      self._config = _resolved(config, asked, self._actors.spec.observation)
      learner = self._make_learner(self._config, self._actors.spec)
      self._feed = sources.make_feed(
          self._config, self._actors.spec, learner)
      stack.callback(self._stop)
      weights = learner.weights()
      self._actors.start(lambda: weights, self._feed.inbox)
      self._stack = stack.pop_all()

  def __enter__(self) -> '_Group':
    return self

  def __exit__(self, *exc_info: object) -> None:
    self._stack.close()

  def _stop(self) -> None:
    self._feed.close()
    self._actors.stop(_STOP_S)
    self._feed.join(_STOP_S)

  def acting(self) -> choice.GroupStep:
    """Acts for a moment and returns the times of a step."""
    self._act(0)  # Compiles.
    num_steps, cpu_s = self._actors.num_steps(), time.process_time()
    begin_s, before = time.monotonic(), self._actors.seconds()
    self._act(_ACTING_S)
    num_steps = (self._actors.num_steps() - num_steps) // self._number
    cpu_s = time.process_time() - cpu_s
    all_s, seconds = time.monotonic() - begin_s, self._actors.seconds()
    waited_s, stepped_s = (
        seconds.get(name, 0.) - before.get(name, 0.)
        for name in ('wait', 'environment'))
    return choice.GroupStep(
        self._number, self._per_process, stepped_s / num_steps,
        max(all_s - waited_s - stepped_s, 0.) / num_steps, cpu_s / num_steps)

  def _act(self, seconds: float) -> None:
    """Lets the actor act; its unrolls are dropped."""
    end_s = time.monotonic() + seconds
    least = self._actors.num_steps() + _MIN_STEPS * self._number
    limit_s = max(_LIMIT_S, self._clock.now_s + _LEAST_S)
    while time.monotonic() < end_s or self._actors.num_steps() < least:
      if self._clock.now_s > limit_s:
        raise errors.ConfigError(
            f'--num_actors=auto: {self._number} environments make fewer than '
            f'{_MIN_STEPS} steps in the time of the measurement. Set '
            '--num_actors.')
      with contextlib.suppress(queues.QueueTimeout):
        self._feed.inbox.get(_POLL_S).release()

  def updates(self) -> tuple[choice.Update, ...]:
    """Ends acting; returns the times of updates, () if no batch comes."""
    stop = threading.Event()
    timer = threading.Timer(max(_LIMIT_S - self._clock.now_s, 0), stop.set)
    timer.start()
    try:
      self._feed.start()
      batch = next(self._feed.batches(stop), None)
    finally:
      timer.cancel()
    self._stop()
    found: list[choice.Update] = []
    taken_s = 0.
    for config in _variants(self._asked, self._config):
      begin_s = self._clock.now_s
      if batch is None or found and not self._clock.has_time(taken_s):
        break
      learner = self._make_learner(config, self._actors.spec)
      found.append(_measure_updates(config, learner, batch))
      taken_s = self._clock.now_s - begin_s
    return tuple(found)


def _variants(asked: config_lib.Config,
              resolved: config_lib.Config) -> Iterator[config_lib.Config]:
  """Yields settings whose updates are equal, and may differ in speed."""
  yield resolved
  if not layers.on_cpu():
    return
  if asked.xla == 'auto' and resolved.agent == 'mlp':
    yield dataclasses.replace(
        resolved, xla='policy' if resolved.xla == 'all' else 'all')
  if (not (resolved.is_off_policy or resolved.normalise_advantages)
      and resolved.agent in ('shallow', 'nature')
      and not (asked.micro_batch_size or asked.addon)
      and resolved.updates_per_call <= 1
      and resolved.batch_size > _MICRO_BATCH_SIZE):
    yield dataclasses.replace(resolved, micro_batch_size=_MICRO_BATCH_SIZE)


def _measure_updates(config: config_lib.Config, learner: learner_lib.Learner,
                     batch: structs.Batch) -> choice.Update:
  """Returns the times of updates with a batch."""
  def update() -> None:
    result = learner.step(batch)
    for value in result.scalars.values():
      value.numpy()  # Waits for the update.

  # The first collection only sets the statistics of normalisers.
  learner.step(batch._replace(num_new_frames=max(batch.num_new_frames, 1)))
  update()  # Compiles.
  seconds: list[float] = []
  cpu_s = time.process_time()
  while len(seconds) < _MIN_UPDATES or sum(seconds) < _UPDATES_S:
    begin_s = time.monotonic()
    update()
    seconds.append(time.monotonic() - begin_s)
  cpu_s = time.process_time() - cpu_s
  return choice.Update(
      config.xla, config.micro_batch_size,
      statistics.median(seconds) / learner.updates_per_call,
      cpu_s / len(seconds) / learner.updates_per_call, learner.updates_per_call)


def _slow_resets_s(config: config_lib.Config) -> float:
  """Returns seconds of slow resets per step of an environment, else 0."""
  facts = shares.play_trial(
      levels.level_names(config.level_name, config.is_test)[0],
      dataclasses.replace(config, step_timeout_s=min(
          config.step_timeout_s, _RESET_TIMEOUT_S)))
  if facts is None or not facts.resets_hold_up(_GROUPS[0][0]):
    return 0.
  return facts.reset_s_per_step
