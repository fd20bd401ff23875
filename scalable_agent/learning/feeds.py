# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Feeds: from the unrolls of actors to batches on the learner's device."""

from collections.abc import Callable, Iterator
import functools
import os
import shutil
import threading
from typing import NamedTuple

import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import agents
from scalable_agent.processes import memory
from scalable_agent.processes import threads
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
import tree

# --save_replay=auto saves replays of at most this size.
_MAX_SAVED_BYTES = 2e9

_REFILLS = ('The replay was not saved: it is filled with --min_replay_steps '
            'before the agent learns on.')


class Note(NamedTuple):
  """What the log needs from unrolls that have arrived.

  Attributes:
    episodes: the episodes that ended in them.
    actions: `[N, ...]`, the actions of all their steps.
    policy_version: int64, one for each column, see `structs.Start`.
  """
  episodes: list[episodes_lib.Episode]
  actions: np.ndarray
  policy_version: np.ndarray


class Drawn(NamedTuple):
  """What a source yields: arrays that its next batch may overwrite.

  Attributes:
    data: `Unroll` or `Transition`, see `structs.Batch`.
    weights: see `structs.Batch`.
    positions: int64 `[B]`, of the data in a prioritised replay; None without
      one. With several updates per call, `[K, B]`.
    num_new_steps: see `replay.Ready`.
    notes: of the unrolls of these steps.
  """
  data: structs.Unroll | structs.Transition
  weights: np.ndarray | None
  positions: np.ndarray | None
  num_new_steps: int
  notes: list[Note]


class Source(NamedTuple):
  """Where batches come from.

  Attributes:
    batches: the batches.
    set_errors: takes positions and errors of the same shape, for a prioritised
      replay.
    rate: counts updates and steps, if their ratio is fixed; else None.
    save: saves the replay; None if it is not saved with checkpoints.
  """
  batches: Iterator[Drawn]
  set_errors: Callable[[np.ndarray, np.ndarray], None] | None = None
  rate: replay_lib.Rate | None = None
  save: Callable[[], object] | None = None


class ReadyBatch(NamedTuple):
  """A batch on the learner's device, and what the log needs from it.

  Attributes:
    batch: the `structs.Batch`.
    positions: see `Drawn`.
    notes: see `Drawn`.
  """
  batch: structs.Batch
  positions: np.ndarray | None
  notes: list[Note]


class Feed:
  """Makes batches, in a thread of its own unless runs are deterministic.

  While the learner learns from one, one waits and one is made.

  Attributes:
    inbox: where actors put their unrolls.
  """

  def __init__(self, config: config_lib.Config, spec: structs.EnvironmentSpec,
               learner: learner_lib.Learner, part: int = 0,
               collectives: collectives_lib.Collectives | None = None,
               first_environment: int = 0):
    """Makes a feed; nothing runs before `start`.

    Args:
      config: the settings of this learner, resolved.
      spec: of the environments.
      learner: whose batches these are.
      part: a number that differs between the parts of a run.
      collectives: the other learners, if there are any.
      first_environment: the lowest number of an environment in the unrolls.
    """
    collectives = collectives or collectives_lib.Alone()
    self.inbox = queues.BoundedQueue[unrolls.Delivery](config.queue_capacity)
    self._timer = timing.StageTimer()
    self._ready = queues.BoundedQueue[ReadyBatch](1)
    self._learner = learner
    self._num_action_repeats = spec.num_action_repeats
    self._turns = _TurnTaker(self.inbox) if config.deterministic else None
    make_source = _unrolls
    if config.is_off_policy:
      make_source = _sequences if config.use_lstm else _transitions
    self._source = make_source(
        config, spec, learner, self._turns or self.inbox,
        _Place(collectives, part, first_environment))
    self._num_learners = collectives.size
    self._thread = threads.LibraryThread(self._run, 'batches')

  def start(self) -> None:
    """Starts the thread; with `deterministic` there is none."""
    if self._turns is None:
      self._thread.start()

  def seconds(self) -> dict[str, float]:
    """Returns the seconds that the thread spent in each stage."""
    return dict(self._timer.seconds)

  def batches(self, stop: threading.Event) -> Iterator[ReadyBatch]:
    """Yields the batches, as they are ready, until `stop` is set."""
    # Signals are handled between waits, so every wait has a limit.
    if self._turns is not None:
      self._turns.stop = stop
    while not stop.is_set():
      try:
        ready = (self._ready.get(timeout_s=0.5) if self._turns is None
                 else self._make_ready())
      except queues.QueueTimeout:
        continue
      except Exception:
        if stop.is_set():
          return  # The signal has ended the environments, too.
        raise
      yield ready

  def learned(self, ready: ReadyBatch, learned: learner_lib.Learned) -> None:
    """Notes the errors of a batch, if the replay is a prioritised one."""
    if (ready.positions is not None and learned.errors is not None
        and self._source.set_errors is not None):
      self._source.set_errors(ready.positions, learned.errors.numpy())

  def save(self) -> None:
    """Saves the replay in the log directory, if it is to be saved.

    Raises:
      SaveError: if it cannot be written.
    """
    if self._source.save is None:
      return
    try:
      self._source.save()
    except OSError as e:
      raise errors.SaveError(
          f'The replay could not be written: {e.strerror}.') from e

  @property
  def updates_per_step(self) -> float | None:
    """The ratio that was achieved since the warm-up; None if none is fixed."""
    rate = self._source.rate
    return None if rate is None else rate.achieved / self._num_learners

  def close(self) -> None:
    """Ends all waits for batches and for room in the inbox."""
    self.inbox.close()
    self._ready.close()

  def join(self, timeout_s: float) -> None:
    """Waits for the end of the thread, at most `timeout_s` seconds."""
    if self._thread.ident is not None:  # It was started.
      self._thread.join(timeout_s)

  def _run(self):
    try:
      while True:
        ready = self._make_ready()
        with self._timer.stage('wait'):
          self._ready.put(ready)
    except queues.QueueClosed:
      pass
    except BaseException as e:  # pylint: disable=broad-except
      self._ready.fail(e)

  def _make_ready(self):
    with self._timer.stage('collect'):  # Waits for unrolls and copies them.
      drawn = next(self._source.batches)
    with self._timer.stage('to_device'):
      batch = self._learner.to_device(
          drawn.data, drawn.num_new_steps * self._num_action_repeats,
          drawn.weights)
    return ReadyBatch(batch, drawn.positions, drawn.notes)


class _Place(NamedTuple):
  """Which of the learners of which part of a run has a source."""
  collectives: collectives_lib.Collectives
  part: int
  first_environment: int

  def replay_seed(self, config: config_lib.Config) -> int:
    return config.derive_seed('replay', self.collectives.rank, self.part)


class _TurnTaker:
  """An inbox that releases an unroll only when the next one is wanted.

  By then, all updates that are due have been made. An actor with one buffer
  waits until then.

  Attributes:
    stop: once it is set, `get` raises `QueueClosed`.
  """

  def __init__(self, inbox: queues.BoundedQueue[unrolls.Delivery]):
    self.stop = threading.Event()
    self._inbox = inbox
    self._release: Callable[[], None] = lambda: None

  def get(self) -> unrolls.Delivery:
    self._release()
    while not self.stop.is_set():
      try:
        unroll, self._release = self._inbox.get(timeout_s=0.5)
      except queues.QueueTimeout:
        continue
      return unrolls.Delivery(unroll, lambda: None)
    raise queues.QueueClosed()


def _note(unroll: structs.Unroll) -> Note:
  actions = unroll.steps.agent_outputs.action[1:].copy()
  return Note(episodes_lib.finished_episodes(unroll),
              actions.reshape(-1, *actions.shape[2:]),
              unroll.start.policy_version.copy())


def _num_steps(unroll: structs.Unroll) -> int:
  return unroll.steps.env_outputs.done[1:].size


def _unrolls(config: config_lib.Config, spec: structs.EnvironmentSpec,
             learner: learner_lib.Learner,
             inbox: unrolls.Inbox, place: _Place) -> Source:
  """Batches of unrolls, with or without a replay of unrolls."""
  allocate = functools.partial(_allocate, config, spec, learner.agent)
  batch = allocate(config.batch_size)
  if not config.replay_capacity:
    return Source(
        Drawn(fresh, None, None, _num_steps(fresh), [_note(fresh)])
        for fresh in unrolls.batches(inbox, batch))
  selector = _make_selector(config)
  replay = replay_lib.Replay(
      allocate(config.replay_capacity), place.replay_seed(config),
      selector, config.max_use)
  if learner.num_updates:
    print('The replay was not saved: it begins empty.')
  num_fresh = config.num_fresh_unrolls

  def make(drawn, num_new_steps, notes):
    _anneal(selector, config, learner.num_env_frames)
    return _drawn(config, drawn.unroll, drawn, num_new_steps, notes)

  def mixed_batches():
    for mixed in replay_lib.mixed_batches(inbox, batch, replay, num_fresh):
      # Only fresh unrolls are logged: the others were logged before.
      fresh = unrolls.columns(mixed.unroll, 0, num_fresh)
      yield make(mixed, _num_steps(fresh), [_note(fresh)])

  def collected_batches():
    collected = allocate(config.unrolls_per_collect)
    for ready in replay_lib.collected_batches(
        inbox, collected, batch, replay, config.updates_per_collect, _note):
      yield make(*ready)

  return Source(collected_batches() if config.unrolls_per_collect
                else mixed_batches(), replay.update)


def _allocate(config, spec, agent, num_columns):
  return unrolls.allocate(
      config.unroll_length, [''] * num_columns, spec.observation,
      agent.output_spec, agent.initial_state(1))


def _remove_old_replay(directory):
  """Removes a replay that would be taken for that of this part later."""
  what = 'this part does not save its replay (--save_replay).'
  try:
    shutil.rmtree(directory)
  except OSError as e:
    raise errors.CheckpointError(
        f'{directory} of an earlier part cannot be removed ({e.strerror}), and '
        f'{what}') from e
  print(f'{directory} of an earlier part was removed: {what}')


def _transitions(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 learner: learner_lib.Learner,
                 inbox: unrolls.Inbox, place: _Place) -> Source:
  """Batches of transitions from a replay of steps."""
  selector = _make_selector(config)
  replay = replay_lib.TransitionReplay(
      replay_lib.StepStore(spec, config.replay_steps, config.num_actors,
                           _is_stacked(config)),
      selector, _make_view(config), place.replay_seed(config))
  num_updates = learner.updates_per_call
  rate = _make_rate(config, spec, place)
  rank = place.collectives.rank
  directory = os.path.join(
      config.logdir, f'replay-{rank}' if rank else 'replay')
  # Without it, each part of a deterministic run would begin with an empty one.
  is_saved = config.deterministic or config.save_replay == 'yes' or (
      config.save_replay == 'auto'
      and _num_step_bytes(config, spec) <= _MAX_SAVED_BYTES)
  counters = None
  if os.path.isdir(directory):
    if is_saved:
      counters = replay.load(directory)
    else:
      _remove_old_replay(directory)
  if counters is not None:
    rate.state = counters
    print(f'The replay has {replay.num_items:,} transitions of before.')
  elif learner.num_updates:
    print(_REFILLS)
  num_uncounted = _go_on(rate, learner, spec, counters is None, place)

  def draw():
    _anneal(selector, config, learner.num_env_frames)
    return replay.draw(num_updates, config.batch_size)

  def add(unroll):  # The replay counts environments from 0 on.
    numbers = unroll.start.environment - place.first_environment
    replay.add(unroll._replace(start=unroll.start._replace(
        environment=numbers)))

  # The learner makes a loop only for several updates.
  parts = (lambda x: x) if num_updates > 1 else (
      lambda x: tree.map_structure(lambda array: array[0], x))

  def batches():
    num_more = num_uncounted
    for ready in replay_lib.batches_at_rate(
        inbox, add, draw, rate, num_updates, _note):
      drawn = parts(ready.drawn)
      yield _drawn(config, drawn.transitions, drawn,
                   ready.num_new_steps + num_more, ready.notes)
      num_more = 0

  def save():
    with rate.lock:
      replay.save(directory, rate.state)

  return Source(
      batches(), replay.update, rate,
      save if is_saved else None)


def _sequences(config: config_lib.Config, spec: structs.EnvironmentSpec,
               learner: learner_lib.Learner, inbox: unrolls.Inbox,
               place: _Place) -> Source:
  """Batches of unrolls from a replay of unrolls, at a fixed rate."""
  allocate = functools.partial(_allocate, config, spec, learner.agent)
  num_unrolls = config.replay_steps // config.unroll_length
  selector = _make_selector(config)
  replay = replay_lib.Replay(
      allocate(num_unrolls), place.replay_seed(config), selector)
  rate = _make_rate(config, spec, place)
  if learner.num_updates:
    print(_REFILLS)
  _go_on(rate, learner, spec, True, place)
  batch = allocate(config.batch_size)

  def draw():
    _anneal(selector, config, learner.num_env_frames)
    return replay.draw(batch, 0)

  def batches():
    for drawn, num_new_steps, notes in replay_lib.batches_at_rate(
        inbox, replay.add, draw, rate, 1, _note):
      yield _drawn(config, drawn.unroll, drawn, num_new_steps, notes)

  return Source(batches(), replay.update, rate)


def _make_rate(config, spec, place):
  num_frames = (config.min_replay_steps * place.collectives.size
                * spec.num_action_repeats)
  if num_frames >= config.total_environment_frames:
    raise errors.ConfigError(
        f'Nothing would be learned: the warm-up of --min_replay_steps takes '
        f'{num_frames} frames, and --total_environment_frames='
        f'{config.total_environment_frames}.')
  return replay_lib.Rate(config.updates_per_step, config.min_replay_steps)


def _drawn(config, data, drawn, num_new_steps, notes):
  """Returns `Drawn`; weights and positions only if there are priorities."""
  if not config.is_prioritised:
    return Drawn(data, None, None, num_new_steps, notes)
  return Drawn(data, drawn.weights, drawn.positions, num_new_steps, notes)


def _go_on(rate, learner, spec, is_empty, place):
  """Makes the rate count on from what the learner has counted.

  Batches that were drawn, but not learned from before the run ended, were not
  made: they are due again. Steps that were only in such batches are new.

  Returns:
    The number of these steps, of all learners together, for the first of them.
  """
  num_counted = learner.num_env_frames // spec.num_action_repeats
  [num_added] = place.collectives.total([rate.num_steps])
  # Learners have equal shares, as all make the same updates.
  rate.go_on(max(rate.num_steps, num_counted // place.collectives.size),
             learner.num_updates)
  if is_empty and num_counted:
    rate.warm_up()
  return 0 if place.collectives.rank else max(num_added - num_counted, 0)


def _make_selector(config: config_lib.Config) -> replay_lib.Selector:
  selector: replay_lib.Selector = replay_lib.Uniform()
  if config.is_prioritised:
    selector = replay_lib.Prioritised(
        config.priority_exponent, config.importance_exponent,
        config.priority_epsilon)
  if config.is_recent:
    selector = replay_lib.Recent(
        selector, config.recent_eta, config.recent_min_steps)
  return selector


def _anneal(selector, config, num_env_frames):
  """Sets the exponent of the weights, which changes during the training."""
  selector = getattr(selector, 'inner', selector)
  if isinstance(selector, replay_lib.Prioritised):
    share = min(num_env_frames / config.total_environment_frames, 1.0)
    selector.importance_exponent = (
        (1 - share) * config.importance_exponent
        + share * config.importance_exponent_end)


def _make_view(config):
  n_step = replay_lib.NStep(
      config.discounting, config.n_step, config.reward_clipping)
  if config.hindsight == 'none':
    return n_step
  level_name, *others = dict.fromkeys(
      levels.level_names(config.level_name, config.is_test))
  if others:
    raise errors.ConfigError('--hindsight can be used with one level only.')
  rewards, terminated = environments.goal_functions(level_name, config)
  return replay_lib.Hindsight(
      n_step, rewards, config.hindsight, config.hindsight_goals, terminated)


def check_memory(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 agent: agents.Agent) -> None:
  """Says how large the replay is, if there is one.

  Args:
    config: the settings of this learner.
    spec: of the environments.
    agent: whose outputs are in unrolls.

  Raises:
    ConfigError: if unrolls, batches or the replay are larger than the machine's
      memory.
  """
  unroll_bytes = _num_unroll_bytes(config, spec, agent)
  # Otherwise they are on other machines.
  if not config.ray_address or config.inference != 'local':
    num_buffers = 1 if config.deterministic else config.queue_capacity + 1
    memory.check(
        f'--num_actors={config.num_actors} with --unroll_length='
        f'{config.unroll_length} and --queue_capacity={config.queue_capacity}',
        config.num_actors * num_buffers * unroll_bytes)
  flag, number, what = '--replay_steps', config.replay_steps, 'steps'
  num_unrolls = number // config.unroll_length if config.use_lstm else 0
  if not config.is_off_policy:
    flag, what = '--replay_capacity', 'unrolls'
    number = num_unrolls = config.replay_capacity
    # One is learned from while the next one is made.
    memory.check(f'--batch_size={config.batch_size} with --unroll_length='
                 f'{config.unroll_length}',
                 2 * config.batch_size * unroll_bytes)
    memory.check(f'--unrolls_per_collect={config.unrolls_per_collect} with '
                 f'--unroll_length={config.unroll_length}',
                 config.unrolls_per_collect * unroll_bytes)
  if not number:
    return
  num_bytes = (num_unrolls * unroll_bytes if num_unrolls
               else _num_step_bytes(config, spec))
  memory.check(f'{flag}={number}', num_bytes)
  print(f'Replay of {number:,} {what}: {num_bytes / 1e9:,.2f} GB when it is '
        'full.')


def _num_unroll_bytes(config, spec, agent):
  """Returns the size of an unroll of one environment, without making one."""
  short, longer = (
      replay_lib.num_bytes(unrolls.allocate(
          length, [''], spec.observation, agent.output_spec,
          agent.initial_state(1))) for length in (1, 2))
  return short + (config.unroll_length - 1) * (longer - short)


def _num_step_bytes(config, spec):
  return replay_lib.num_step_bytes(
      spec, config.replay_steps, _is_stacked(config))


def _is_stacked(config):
  return all(map(declare.is_atari, levels.level_names(
      config.level_name, config.is_test)))
