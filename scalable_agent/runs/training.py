# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Training: connects acting and the learner; has the loop between them."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import threading
import time
import zlib

import numpy as np
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent.acting import actor
from scalable_agent.acting import local
from scalable_agent.acting import policies
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import memory_check
from scalable_agent.learning import optimizers as optimizers_lib
from scalable_agent.learning import sources
from scalable_agent.networks import layers
from scalable_agent.processes import signals
from scalable_agent.processes import user_code
from scalable_agent.processes import workers
from scalable_agent.runs import checkpointing
from scalable_agent.runs import evaluation
from scalable_agent.runs import filming
from scalable_agent.runs import log as log_lib
from scalable_agent.runs import logdirs
from scalable_agent.runs import metrics
from scalable_agent.runs import panel
from scalable_agent.runs import reports as reports_lib
from scalable_agent.settings import config as config_lib
import tensorflow as tf
import tree

STOPPED = 'Stopped before the training began.'
_JOIN_TIMEOUT_S = 3
# Between checkpoints of deterministic runs, if the user does not say it.
_MAX_FRAMES_BETWEEN = 1_000_000


def train(config: config_lib.Config, hooks: Sequence[log_lib.Hook] = (),
          addons: Mapping[str, base.Addon] | None = None) -> int:
  """Trains on this machine until `total_environment_frames` or a signal.

  Goes on from the checkpoint in `logdir` if there is one.

  Args:
    config: the settings.
    hooks: called after each update, after the hooks of the program.
    addons: further terms of the policy's loss, by name.

  Returns:
    0, also when a signal ended the run with a checkpoint.

  Raises:
    signals.Stopped: a signal ended the run before the first update.
    ConfigError: another run has the log directory, or there is a `ray_address`.
    Exception: any error of an environment or of the learner. A checkpoint is
      written first.
  """
  if config.ray_address:
    raise errors.ConfigError(
        f'--ray_address={config.ray_address} is for the program, as '
        '"python experiment.py": from Python, leave it out.')
  if not tf.config.threading.get_intra_op_parallelism_threads():
    # A program that has computed before keeps its threads.
    with contextlib.suppress(RuntimeError):
      tf.config.threading.set_intra_op_parallelism_threads(
          num_threads_per_op(config, workers.num_cores()))
  with logdirs.locked(config.logdir), signals.stop_on_signals(
      signals.Stop(waits_for='')) as stop:
    return run(config, local.make_local, stop, hooks, addons)


def num_threads_per_op(config: config_lib.Config, num_cores: int) -> int:
  """Returns the number of threads that share an operation of TensorFlow.

  Where the learner and the threads that act keep all cores busy, the parts of
  an operation would wait for cores that other operations have.

  Args:
    config: the settings.
    num_cores: the number of cores.

  Returns:
    1, or 0 for TensorFlow's default, which is one for each core.
  """
  takes_turns = config.deterministic
  return int(not takes_turns and num_cores <= config.num_actor_groups + 1)


def run(config: config_lib.Config,
        make_acting: Callable[[config_lib.Config, int], actor.Acting],
        stop: threading.Event, hooks: Sequence[log_lib.Hook] = (),
        addons: Mapping[str, base.Addon] | None = None,
        collectives: collectives_lib.Collectives | None = None,
        reports: reports_lib.Reports | None = None) -> int:
  """Trains as `train` does, with other actors and until `stop` is set.

  The log directory is not locked: the caller does that.

  Args:
    config: the settings; those of all learners together.
    make_acting: makes the actors of this learner, from the settings and the
      number of the part.
    stop: ends the training once it is set, in one of the learners.
    hooks: see `train`.
    addons: see `train`.
    collectives: the other learners, if there are any. Only the first one writes
      to the log directory. Their first sum is the number of those that were
      stopped before they had actors: if it is not 0, all end.
    reports: where the first learner finds what the others report, and the
      others put it.
  """
  collectives = collectives or collectives_lib.Alone()
  reports = reports or reports_lib.Reports()
  layers.set_compute_dtype(config.compute_dtype)
  if config.hook:  # An error is to come before anything is made.
    user_code.load(config.hook, 'hook')
  if collectives.rank == 0:
    logdirs.remove_leftovers(config.logdir)
  if config.deterministic:
    tf.config.experimental.enable_op_determinism()
  # These live longer than a part.
  with contextlib.ExitStack() as stack:
    shown = (panel.make(f'{config.algorithm} on {config.level_name}')
             if collectives.rank == 0 else None)
    if shown:
      stack.callback(shown.close)
    films = (stack.enter_context(contextlib.closing(filming.Filming(config)))
             if config.video_secs and collectives.rank == 0 else None)
    while _run_part(config, make_acting, stop, hooks, addons, collectives,
                    reports, shown, films):
      pass
  return 0


def _run_part(config, make_acting, stop, hooks, addons, collectives, reports,
              shown, films):
  """Trains until the next checkpoint that is the beginning of a part.

  A deterministic run has many parts: each one begins as if the program had been
  started anew. Other runs have one.

  Returns:
    Whether there is another part.
  """
  signals.wait_for(stop, '')  # Nothing would be lost.
  if config.deterministic:
    tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(config.seed)
  with contextlib.ExitStack() as stack:
    part = checkpointing.latest_number(config.logdir)
    before = config_lib.trained_with(config.logdir) if part else None
    if before:
      config.check_same_task(before)
    actors = stack.enter_context(contextlib.closing(make_acting(config, part)))
    if collectives.total([0])[0]:
      print(STOPPED)
      return False
    spec = actors.spec
    asked, config = config, config.resolved(
        spec.observation, on_cpu=layers.on_cpu(),
        num_groups=actors.num_groups,
        num_environments=actors.num_environments)
    learner = make_learner(config, spec, part, addons, collectives)
    memory_check.check_memory(
        config.of_learner(len(actors.environments)), spec, learner.agent)
    checkpointer = checkpointing.Checkpointer(
        config.logdir, learner, algorithms.describe(config, spec),
        level=config.level_name, allow_other_level=config.allow_other_task)
    restored = checkpointer.restore(put_aside=collectives.rank == 0)
    _check_same_start(learner, checkpointer, collectives)
    if _is_finished(config, learner, restored):
      return False
    end_frames = _end_frames(config, learner.num_env_frames)
    # Their weights are equal from now on: they make the same updates.
    collectives.copy_from_first(tree.flatten(learner.state))
    feed = sources.make_feed(
        config.of_learner(len(actors.environments)), spec, learner, part,
        collectives, actors.environments.start)
    log: log_lib.Log | log_lib.Follower = log_lib.Follower(
        config, learner, actors, feed, reports, collectives.rank)
    if collectives.rank == 0:
      config.save(learner.num_updates)
      checkpointing.save_spec(config.logdir, spec)
      evaluations = _make_evaluations(config, spec, learner, part, stack)
      log_lib.print_start(asked, config, before, actors, collectives.size)
      writer = stack.enter_context(contextlib.closing(
          metrics.MetricsWriter(config.logdir, spec.num_action_repeats)))
      log = log_lib.Log(
          config, learner, actors, feed, checkpointer, writer, evaluations,
          stop, reports, end_frames, shown, films)
    # Policies act with the oldest of these versions.
    versions = collections.deque(
        [learner.weights()], maxlen=config.min_policy_lag + 1)
    stack.enter_context(_running(actors, feed, lambda: versions[0]))
    # This runs before the threads are waited for: a second signal may end the
    # program while it waits.
    stack.callback(log.save_at_end)
    learn(learner, feed.batches(stop), learned=feed.learned,
          publish=versions.append, stop=stop,
          end_frames=end_frames,
          hooks=(lambda update: signals.wait_for(
              stop, 'the update in progress and the checkpoint'),
                 *log.hooks(), *hooks), timer=log.timer,
          collectives=collectives)
    has_more = learner.num_env_frames < config.total_environment_frames
    if not has_more:
      log.evaluate_at_end()
    log.print_end(stop.is_set(), has_more)
  return config.deterministic and has_more and not stop.is_set()


def _end_frames(config, num_env_frames):
  """Returns the frames at the end of a part that begins at `num_env_frames`."""
  total = config.total_environment_frames
  if not config.deterministic:
    return total
  every = config.save_checkpoint_frames or min(
      -(-total // 10), _MAX_FRAMES_BETWEEN)
  return min((num_env_frames // every + 1) * every, total)


def learn(learner: learner_lib.Learner, batches: Iterator[structs.Batch], *,
          end_frames: int,
          learned: Callable[[structs.Batch, learner_lib.Learned], None],
          publish: Callable[[structs.Weights], None],
          hooks: Sequence[log_lib.Hook], stop: threading.Event,
          timer: timing.StageTimer,
          collectives: collectives_lib.Collectives) -> None:
  """Learns from batches until the frames are reached, or a stop.

  It also ends when no batch is left. All learners end after the same update.

  Args:
    learner: makes the updates.
    batches: what to learn from.
    end_frames: the environment frames to reach.
    learned: called with each batch and what came out of it.
    publish: called with the weights after each update.
    hooks: called after each update, one after the other.
    stop: ends the loop once it is set.
    timer: adds up the time of each stage.
    collectives: the other learners.
  """
  while learner.num_env_frames < end_frames:
    with timer.stage('wait'):
      batch, num_new_frames = _next_batch(batches, stop, collectives)
    if batch is None:
      break
    lags = learner.num_updates - np.array(
        [version for note in batch.notes for version in note.policy_version],
        np.int64)
    with timer.stage('learn'):
      result = learner.step(batch._replace(num_new_frames=num_new_frames))
      publish(learner.weights())
      learned(batch, result)
    update = log_lib.Update(
        result.scalars, batch.notes, learner, lags)
    for hook in hooks:
      hook(update)


def _next_batch(batches, stop, collectives):
  """Returns the next batch, None at the end, and the frames of all learners.

  If one learner has no batch, or an error, none of them gets one.
  """
  batch = None
  try:
    if not stop.is_set():
      batch = next(batches, None)
  finally:
    num_new_frames, num_without = collectives.total(
        [batch.num_new_frames if batch else 0, batch is None])
  return (None if num_without else batch), num_new_frames


def make_learner(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 part: int = 0,
                 addons: Mapping[str, base.Addon] | None = None,
                 collectives: collectives_lib.Collectives | None = None
                 ) -> learner_lib.Learner:
  """Makes the learner that resolved settings ask for.

  Args:
    config: the settings.
    spec: the spec of the environments. No environment is needed.
    part: a number that differs between the parts of a run.
    addons: further terms of the policy's loss, by name.
    collectives: the other learners, if there are any. The batch size of the
      settings is that of all together.

  Raises:
    ConfigError: if the algorithm or the agent does not fit the environments.
  """
  collectives = collectives or collectives_lib.Alone()
  # The same weights at first in all learners, but other noise in the losses.
  algorithm = algorithms.make(
      config, spec, config.derive_seed('learner', 0, part))
  if addons:
    algorithm = base.WithAddons(algorithm, addons)
  multipliers = {name: config.temperature_learning_rate
                 for name in ('temperature', 'duals')}
  rates = {'critic': config.critic_learning_rate or config.learning_rate,
           **multipliers}
  # An addon can be a mean, which micro-batches would count several times.
  all_at_once = addons or not (
      0 < config.micro_batch_size < config.batch_size)
  return learner_lib.Learner(
      algorithm,
      {group: _make_optimizer(config, rates.get(group, config.learning_rate))
       for group in algorithm.groups},
      seed=config.derive_seed('learner', collectives.rank, part),
      clip_gradient_norm=config.clip_gradient_norm or None,
      clip_gradient_value=config.clip_gradient_value or None,
      micro_batch_size=None if all_at_once else config.micro_batch_size,
      updates_per_call=config.updates_per_call or 1,
      jit_compile=config.xla == 'all', collectives=collectives,
      has_mean_losses=config.is_off_policy, unclipped=multipliers)


def _make_optimizer(config, rate):
  optimizer = optimizers_lib.make_optimizer(
      config.optimizer, learning_rate=rate, decay=config.decay,
      momentum=config.momentum, epsilon=config.epsilon,
      beta_1=config.adam_beta1, beta_2=config.adam_beta2)
  if config.learning_rate_schedule == 'constant':
    return optimizers_lib.Scheduled(optimizer, lambda num_env_frames: rate)
  return optimizers_lib.Scheduled(
      optimizer, lambda num_env_frames: optimizers_lib.linear_decay(
          rate, num_env_frames, config.total_environment_frames))


def _check_same_start(learner, checkpointer, collectives):
  """Raises ConfigError if the first learner starts from something else."""
  mine = [learner.num_env_frames, learner.num_updates,
          zlib.crc32(checkpointer.description.encode())]
  of_first = collectives.total([0] * len(mine) if collectives.rank else mine)
  if of_first != mine:
    raise errors.ConfigError(
        f'The learners start from different checkpoints or agents, {of_first} '
        f'and {mine} (frames, updates, agent): --logdir must be shared by all '
        'machines, and all levels must have the same observations and actions.')


def _is_finished(config, learner, restored):
  """Says what was restored; returns whether nothing is left to do."""
  if restored:
    print(f'Going on from {restored}, {learner.num_env_frames:,} frames.')
  if learner.num_env_frames < config.total_environment_frames:
    return False
  print('This run is finished: raise --total_environment_frames, or use '
        'another --logdir.')
  return True


def _make_evaluations(config, spec, learner, part, stack):
  """Returns `log.Evaluations` that `stack` closes, None if there are none."""
  if not config.eval_every_frames:
    return None
  env = stack.enter_context(evaluation.make_environments(config))
  policy = policies.AgentPolicy(
      algorithms.make_agent(
          config, spec, config.derive_seed('evaluation', env.num_envs, part)),
      greedy=config.test_greedy, jit_compile=config.xla != 'none')
  best = checkpointing.BestCheckpoint(
      config.logdir, learner, algorithms.describe(config, spec),
      config.level_name)
  dataclasses.replace(config, logdir=best.logdir).save(learner.num_updates)
  checkpointing.save_spec(best.logdir, spec)
  return log_lib.Evaluations(
      evaluation.Evaluator(
          env, policy, learner, logdir=config.logdir,
          every_frames=config.eval_every_frames,
          num_episodes=config.eval_num_episodes), best)


@contextlib.contextmanager
def _running(actors: actor.Acting, feed: feeds.Feed,
             published: Callable[[], structs.Weights]) -> Iterator[None]:
  """Acts and makes batches while within; ends the threads at the end."""
  try:
    actors.start(published, feed.inbox)
    feed.start()
    yield
  finally:
    deadline_s = time.monotonic() + _JOIN_TIMEOUT_S
    feed.close()
    actors.stop(_JOIN_TIMEOUT_S)
    feed.join(max(deadline_s - time.monotonic(), 0))
