# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The training: connects actors and learner, and runs the training loop."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import os
import threading
import time
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.acting import local
from scalable_agent.acting import shares
from scalable_agent.algorithms import addons as addons_lib
from scalable_agent.environments import own_levels
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import sources
from scalable_agent.networks import layers
from scalable_agent.processes import signals
from scalable_agent.processes import starts
from scalable_agent.processes import user_code
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import context as context_lib
from scalable_agent.runs import log as log_lib
from scalable_agent.runs import logdirs
from scalable_agent.runs import measuring
from scalable_agent.runs import messages
from scalable_agent.runs import metrics
from scalable_agent.runs import reports as reports_lib
from scalable_agent.runs import setup
from scalable_agent.scores import files as score_files
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections
import tensorflow as tf

_JOIN_TIMEOUT_S = 3


def train(config: config_lib.Config, hooks: Sequence[log_lib.Hook] = (),
          addons: Mapping[str, addons_lib.Addon] | None = None) -> int:
  """Like `train_as_set`, but keeps the `reward_clipping` of a resumed run."""
  return train_as_set(setup.with_clipping_of_run(config), hooks, addons)


@layers.state_of_caller_kept()
def train_as_set(config: config_lib.Config, hooks: Sequence[log_lib.Hook] = (),
                 addons: Mapping[str, addons_lib.Addon] | None = None) -> int:
  """Trains on this machine until `total_environment_frames` or a signal.

  Resumes from the checkpoint in `logdir` if there is one.

  Args:
    hooks: called after each call of the learner, the program's hooks first. A
      hook that raises `errors.StopTraining` ends the training.
    addons: further terms of the policy's loss, by name.

  Returns:
    0, also when a signal or a hook ended the run with a checkpoint.

  Raises:
    signals.Stopped: a signal ended the run before the first checkpoint.
    SaveError: a hook ended a deterministic run before the first checkpoint.
    ConfigError: another run uses the log directory, or `ray_address` is set.
    Exception: an error of an environment or the learner, after a checkpoint.
  """
  if config.ray_address:
    raise errors.ConfigError(
        f'--ray_address={config.ray_address} is for "python experiment.py" '
        'only: calls of train() must leave ray_address empty.')
  if not tf.config.threading.get_intra_op_parallelism_threads():
    # Fails if the program has used TensorFlow already: the threads exist.
    with contextlib.suppress(RuntimeError):
      tf.config.threading.set_intra_op_parallelism_threads(
          num_threads_per_op(config, starts.num_cores()))
  # Code of a user may change the directory.
  config = dataclasses.replace(config, logdir=os.path.abspath(config.logdir))
  whole = addons_lib.with_whole_batches(config, addons)
  with logdirs.locked(config.logdir), signals.stop_on_signals(
      signals.Stop(waits_for='')) as stop:
    measured = measuring.chosen(whole, setup.make_learner)
    if addons:  # `settings.flags` has no flag that the user did not give.
      measured = dataclasses.replace(
          measured, micro_batch_size=config.micro_batch_size)
    code = run(measured, make_acting, stop, hooks, addons)
    if stop.is_set() and not checkpoint_files.latest_number(config.logdir):
      if stop.number:
        raise signals.Stopped(128 + stop.number)
      raise errors.SaveError(
          f'{config.logdir} has no checkpoint: a hook has ended the training '
          'before the first one. With --deterministic, see '
          '--save_checkpoint_frames.')
    return code


def make_acting(config: config_lib.Config, part: int) -> local.Local:
  """Makes all environments, and their actors in threads of this process.

  Lost processes are restarted, unless the run is deterministic.
  """
  share = interface.Share(range(config.num_actors))
  restarts = shares.restarts_of(config)
  envs = shares.make_environments(config, part, share, restarts)
  return local.make_around(envs, config, part, share, restarts)


def num_threads_per_op(config: sections.AllSections, num_cores: int) -> int:
  """Returns the threads of a TensorFlow operation: 1, or 0 for one per core.

  Where the learner and the actor threads keep all cores busy, a second thread
  would only wait for a core. MPO's large products are faster with more threads.
  """
  num_acting = config.num_actor_groups or config.usual_groups
  if config.plays_lab:
    num_acting = min(num_acting, 2)  # More groups wait for environments.
  return int(not config.takes_turns and config.algorithm != 'mpo'
             and num_cores <= num_acting + 1)


def run(config: config_lib.Config,
        make_acting: Callable[[config_lib.Config, int], interface.Acting],
        stop: threading.Event, hooks: Sequence[log_lib.Hook] = (),
        addons: Mapping[str, addons_lib.Addon] | None = None,
        collectives: collectives_lib.Collectives | None = None,
        reports: reports_lib.Reports | None = None,
        say: Callable[[str], None] = print) -> int:
  """Trains as `train` does, with given actors and until `stop` is set.

  The caller locks the log directory.

  Args:
    make_acting: makes the actors, from the settings and the part's number.
    stop: ends the training of all learners when set in one learner.
    collectives: connects several learners, of which only learner 0 writes to
      the log directory. A stop before the actors are ready ends all learners.
    reports: episodes and counts that the other learners send to learner 0.
    say: takes lines of this learner for the user; only learner 0 prints.
  """
  collectives = collectives or collectives_lib.Alone()
  for name in 'hook', 'addon':  # An error comes before anything is created.
    if path := getattr(config, name):
      user_code.load(path, name)
  if collectives.rank == 0:
    logdirs.remove_leftovers(
        config.logdir, setup.TEMPORARY_NAMES, score_files.TEMPORARY_NAME)
  if config.deterministic:
    tf.config.experimental.enable_op_determinism()
  wait_for_update = lambda update: signals.wait_for(
      stop, 'the update in progress and the checkpoint')
  with context_lib.open_context(
      config, stop, collectives, reports, say) as context:
    signals.wait_for(stop, '')  # Nothing would be lost.
    has_more = True
    while has_more:
      with _open_part(config, make_acting, context, addons) as part:
        if part is None:
          break
        learn(part.learner, part.feed.batches(stop),
              learned=part.feed.learned, publish=part.publish, stop=stop,
              end_frames=part.end_frames,
              hooks=(wait_for_update, *part.log.hooks(), *hooks),
              timer=part.log.timer, collectives=collectives)
        has_more = (
            part.learner.num_env_frames < config.total_environment_frames)
        part.log.end(has_more)
      if has_more := (
          has_more and config.deterministic and not stop.is_set()):
        signals.wait_for(stop, 'the start of the next part')
      part = None  # The next part makes a replay of its own.
  if collectives.rank == 0 and checkpoint_files.latest_number(config.logdir):
    messages.print_next(config.logdir, own_levels.is_registered(
        config.level_name))
  return 0


class _Part(NamedTuple):
  """A part of a run that is ready to learn, with its actors running.

  Attributes:
    learner: restored from the latest checkpoint.
    feed: makes the batches.
    publish: takes the weights after each update, for the actors.
    log: prints and writes the progress.
    end_frames: environment frames at the end of the part.
  """
  learner: learner_lib.Learner
  feed: feeds.Feed
  publish: Callable[[structs.Weights], None]
  log: log_lib.Log
  end_frames: int


@contextlib.contextmanager
def _open_part(
    config: config_lib.Config,
    make_acting: Callable[[config_lib.Config, int], interface.Acting],
    context: context_lib.RunContext,
    addons: Mapping[str, addons_lib.Addon] | None) -> Iterator[_Part | None]:
  """Yields the next part of a run, or None if nothing is left to learn.

  Saves a checkpoint and ends the actors at the exit. Each part of a
  deterministic run begins as if the program had been restarted.
  """
  number = setup.number_of_part(config)
  if config.deterministic:
    tf.keras.backend.clear_session()  # Forgets the dtype, too.
  layers.set_compute_dtype(config.compute_dtype)
  tf.keras.utils.set_random_seed(config.seed)
  with contextlib.ExitStack() as stack:
    before = setup.settings_before(config) if number else None
    if not number:
      setup.check_first_update(config)
    actors = stack.enter_context(
        contextlib.closing(make_acting(config, number)))
    if context.collectives.total([0])[0]:
      print(reports_lib.STOPPED)
      yield None
      return
    asked = config
    config = addons_lib.with_whole_batches(config, addons).resolved(
        actors.spec.observation, on_cpu=layers.on_cpu(),
        num_groups=actors.num_groups, num_environments=actors.num_environments)
    learner, checkpointer = setup.restore_learner(
        config, actors, number, context.collectives, addons)
    if setup.is_finished(config, learner):
      setup.evaluate_last(config, actors.spec, checkpointer, number, context)
      yield None
      return
    # From here on all learners hold equal weights, by applying equal updates.
    learner.copy_from_first()
    feed = sources.make_feed(
        config.of_learner(len(actors.environments)), actors.spec, learner,
        number, context.collectives, actors.environments.start,
        actors.num_groups, context.say)
    stack.callback(feed.join, 0)  # Also after an error before its start.
    outputs = None
    if context.rank == 0:
      outputs = _open_outputs(
          config, asked, actors.spec, checkpointer, number, stack)
      messages.print_start(
          asked, config, before, actors, context.collectives.size)
    yield stack.enter_context(
        _acting(config, learner, actors, feed, context, outputs))


@contextlib.contextmanager
def _acting(
    config: config_lib.Config, learner: learner_lib.Learner,
    actors: interface.Acting, feed: feeds.Feed, context: context_lib.RunContext,
    outputs: log_lib.Outputs | None) -> Iterator[_Part]:
  """Yields a part with running actors; saves and ends the part at the exit."""
  log = log_lib.Log(config, learner, actors, feed, context, outputs)
  if outputs:
    feed.waiting = messages.waiting(
        config, learner, actors, context.collectives.size)
  end_frames = setup.end_frames(config, learner.num_env_frames)
  # Policies act with the oldest of these versions.
  versions = collections.deque(
      [learner.weights()], maxlen=config.min_policy_lag + 1)
  with _running(actors, feed, lambda: versions[0]):
    try:
      yield _Part(learner, feed, versions.append, log, end_frames)
    finally:
      # Before the wait for the threads: a second signal may end the program
      # during the wait.
      log.save_at_end(end_frames)


def _open_outputs(
    config: config_lib.Config, asked: config_lib.Config,
    spec: structs.EnvironmentSpec, checkpointer: checkpointing.Checkpointer,
    part: int, stack: contextlib.ExitStack) -> log_lib.Outputs:
  """Writes settings and spec; returns outputs that `stack` closes."""
  learner = checkpointer.learner
  config.save(learner.num_updates, asked)
  checkpointing.save_spec(config.logdir, spec)
  evaluator = stack.enter_context(setup.open_evaluator(
      config, spec, learner, part)) if config.eval_every_frames else None
  writer = stack.enter_context(contextlib.closing(
      metrics.MetricsWriter(config.logdir, spec.num_action_repeats)))
  writer.write_settings(dataclasses.asdict(config), learner.num_env_frames)
  return log_lib.Outputs(checkpointer, writer, evaluator)


@contextlib.contextmanager
def _running(actors: interface.Acting, feed: feeds.Feed,
             published: Callable[[], structs.Weights]) -> Iterator[None]:
  """Runs the actors and the feed; ends their threads at the exit."""
  try:
    actors.start(published, feed.inbox)
    feed.start()
    yield
  finally:
    deadline_s = time.monotonic() + _JOIN_TIMEOUT_S
    feed.close()
    actors.stop(_JOIN_TIMEOUT_S)
    feed.join(max(deadline_s - time.monotonic(), 0))


def learn(learner: learner_lib.Learner, batches: Iterator[structs.Batch], *,
          end_frames: int,
          learned: Callable[[structs.Batch, learner_lib.Learned], None],
          publish: Callable[[structs.Weights], None],
          hooks: Sequence[log_lib.Hook], stop: threading.Event,
          timer: timing.StageTimer,
          collectives: collectives_lib.Collectives) -> None:
  """Learns until `end_frames` are reached, `stop` is set or no batch is left.

  All learners end after the same update, also after an error of one learner
  that did not come within an update.

  Args:
    learned: called with each batch and its result.
    publish: called with the weights after each update.
    hooks: called in order after each call of the learner. `StopTraining` of a
      hook sets `stop`.
    timer: adds up the time of the stages `wait` and `learn`.
  """
  while learner.num_env_frames < end_frames:
    with timer.stage('wait'):
      batch = feeds.next_batch(batches, stop, collectives)
    if batch is None:
      break
    lags = learner.num_updates - np.array(
        [version for note in batch.notes for version in note.policy_version],
        np.int64)
    with timer.stage('learn'):
      result = learner.step(batch)
    try:
      with timer.stage('learn'):
        publish(learner.weights(result))
        learned(batch, result)
      update = log_lib.Update(result.scalars, batch.notes, learner, lags)
      for hook in hooks:
        with signals.stopped_by_hook(stop):
          hook(update)
    except BaseException:
      # The other learners wait for the next batch, unless the part is over.
      if learner.num_env_frames < end_frames:
        feeds.tell_learners(None, collectives)
      raise
