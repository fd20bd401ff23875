# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Training: connects acting and the learner; has the loop between them."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import threading
import time
from typing import NamedTuple
import zlib

import numpy as np
from scalable_agent import acting
from scalable_agent import algorithms
from scalable_agent import checkpointing
from scalable_agent import collectives as collectives_lib
from scalable_agent import config as config_lib
from scalable_agent import errors
from scalable_agent import evaluation
from scalable_agent import feeds
from scalable_agent import filming
from scalable_agent import learner as learner_lib
from scalable_agent import logdirs
from scalable_agent import metrics
from scalable_agent import networks
from scalable_agent import optimizers as optimizers_lib
from scalable_agent import panel
from scalable_agent import policies
from scalable_agent import signals
from scalable_agent import structs
from scalable_agent import user_code
from scalable_agent.algorithms import base
from scalable_agent.environments import workers
from scalable_agent.scores import levels
import tensorflow as tf
import tree

_JOIN_TIMEOUT_S = 3
_BOTTLENECK_S = 60
_RETRY_S = 10.
_PANEL_SECS = 2.
# Between checkpoints of deterministic runs, if the user does not say it.
_MAX_FRAMES_BETWEEN = 1_000_000


class Update(NamedTuple):
  """What a hook gets after each call of the learner.

  Attributes:
    scalars: from `Learner.step`, by name.
    notes: about the unrolls that have arrived since the last update.
    learner: the learner, after the update.
    policy_lag: the lag, mean over these unrolls; NaN if there are none.
  """
  scalars: dict[str, tf.Tensor]
  notes: list[feeds.Note]
  learner: learner_lib.Learner
  policy_lag: float

  @property
  def episodes(self) -> list[metrics.Episode]:
    """The episodes that ended in these unrolls."""
    return [episode for note in self.notes for episode in note.episodes]


Hook = Callable[[Update], None]


def train(config: config_lib.Config, hooks: Sequence[Hook] = (),
          addons: Mapping[str, base.Addon] | None = None) -> int:
  """Trains until `total_environment_frames` or a signal.

  Goes on from the checkpoint in `logdir` if there is one.

  Args:
    config: the settings.
    hooks: called after each update, after the hooks of the program.
    addons: further terms of the policy's loss, by name.

  Returns:
    0, also when a signal ended the run with a checkpoint.

  Raises:
    signals.Stopped: a signal ended the run before the first update.
    ConfigError: another run has the log directory.
    Exception: any error of an environment or of the learner. A checkpoint is
      written first.
  """
  if not tf.config.threading.get_intra_op_parallelism_threads():
    # A program that has computed before keeps its threads.
    with contextlib.suppress(RuntimeError):
      tf.config.threading.set_intra_op_parallelism_threads(
          num_threads_per_op(config, workers.num_cores()))
  with logdirs.locked(config.logdir), signals.stop_on_signals(
      signals.Stop(waits_for='')) as stop:
    return run(config, acting.make_local, stop, hooks, addons)


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
        make_acting: Callable[[config_lib.Config, int], acting.Acting],
        stop: threading.Event, hooks: Sequence[Hook] = (),
        addons: Mapping[str, base.Addon] | None = None,
        collectives: collectives_lib.Collectives | None = None,
        episodes: collections.deque[metrics.Episode] | None = None) -> int:
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
      to the log directory.
    episodes: where the first learner takes the episodes of the others from, and
      the others put them.
  """
  collectives = collectives or collectives_lib.Alone()
  episodes = collections.deque() if episodes is None else episodes
  networks.set_compute_dtype(config.compute_dtype)
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
                    episodes, shown, films):
      pass
  return 0


def _run_part(config, make_acting, stop, hooks, addons, collectives, episodes,
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
    spec = actors.spec
    asked, config = config, config.resolved(
        spec.observation, on_cpu=networks.on_cpu(),
        num_groups=actors.num_groups,
        num_environments=actors.num_environments)
    learner = make_learner(config, spec, part, addons, collectives)
    feeds.check_memory(config.of_learner(len(actors.environments)), spec,
                       learner.agent)
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
    feed = feeds.Feed(
        config.of_learner(len(actors.environments)), spec, learner, part,
        collectives, actors.environments.start)
    log: _Log | _Follower = _Follower(config, learner, feed, episodes)
    if collectives.rank == 0:
      config.save(learner.num_updates)
      checkpointing.save_spec(config.logdir, spec)
      evaluations = _make_evaluations(config, spec, learner, part, stack)
      _print_start(asked, config, before, actors, collectives.size)
      writer = stack.enter_context(contextlib.closing(
          metrics.MetricsWriter(config.logdir, spec.num_action_repeats)))
      log = _Log(config, learner, actors, feed, checkpointer, writer,
                 evaluations, stop, episodes, end_frames, shown, films)
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


def learn(learner: learner_lib.Learner, batches: Iterator[feeds.ReadyBatch], *,
          end_frames: int,
          learned: Callable[[feeds.ReadyBatch, learner_lib.Learned], None],
          publish: Callable[[structs.Weights], None],
          hooks: Sequence[Hook], stop: threading.Event,
          timer: metrics.StageTimer,
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
      ready, num_new_frames = _next_batch(batches, stop, collectives)
    if ready is None:
      break
    lags = [learner.num_updates - np.mean(note.policy_version)
            for note in ready.notes]
    with timer.stage('learn'):
      result = learner.step(
          ready.batch._replace(num_new_frames=num_new_frames))
      publish(learner.weights())
      learned(ready, result)
    update = Update(result.scalars, ready.notes, learner,
                    float(np.mean(lags)) if lags else float('nan'))
    for hook in hooks:
      hook(update)


def _next_batch(batches, stop, collectives):
  """Returns the next batch, None at the end, and the frames of all learners.

  If one learner has no batch, or an error, none of them gets one.
  """
  ready = None
  try:
    if not stop.is_set():
      ready = next(batches, None)
  finally:
    num_new_frames, num_without = collectives.total(
        [ready.batch.num_new_frames if ready else 0, ready is None])
  return (None if num_without else ready), num_new_frames


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
  rates = {'critic': config.critic_learning_rate or config.learning_rate,
           'temperature': config.temperature_learning_rate,
           'duals': config.temperature_learning_rate}
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
      has_mean_losses=config.is_off_policy)


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


def _level_names(config):
  return levels.level_names(config.level_name, config.is_test)


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


class _Evaluations(NamedTuple):
  """Evaluates while training; keeps the best weights."""
  evaluator: evaluation.Evaluator
  best: checkpointing.BestCheckpoint


def _make_evaluations(config, spec, learner, part, stack):
  """Returns `_Evaluations` that `stack` closes, None if there are none."""
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
  return _Evaluations(
      evaluation.Evaluator(
          env, policy, learner, logdir=config.logdir,
          every_frames=config.eval_every_frames,
          num_episodes=config.eval_num_episodes), best)


def _print_start(asked, config, before, actors, num_learners):
  for line in (levels.unplayed_message(_level_names(config), config.num_actors),
               config_lib.choices_made(asked, config),
               before and config_lib.changes_said(before, config)):
    if line:
      print(line)
  sharing = (' that share their policy steps'
             if config.dynamic_batching else '')
  device = 'CPU' if networks.on_cpu() else 'GPU'
  num_workers = actors.counts().get('wanted')
  where = f' in each of {num_workers} actor workers' if num_workers else ''
  if config.inference != 'local':
    where = f' from {num_workers} workers that step them'
  if num_learners > 1:
    where += f' for each of {num_learners} learners'
  print(f'{_count(config.num_actors, "environment")}, '
        f'{_count(actors.num_groups, "group")}{where}{sharing}, '
        f'{_count(config.num_action_repeats, "frame")} per action, learning '
        f'on {device}. Progress is printed after the first '
        f'update, which compiles. Curves: tensorboard --logdir={config.logdir}',
        flush=True)


def _count(count, what):
  return f'{count} {what}' + 's' * (count != 1)


@contextlib.contextmanager
def _running(actors: acting.Acting, feed: feeds.Feed,
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


@contextlib.contextmanager
def _tried_again() -> Iterator[None]:
  """Says what could not be saved; a run goes on without."""
  try:
    yield
  except errors.SaveError as e:
    print(f'{e} Training goes on, and tries again with the next one.',
          flush=True)


class _Follower:
  """What a learner does beside learning that is not the first one."""

  def __init__(self, config: config_lib.Config, learner: learner_lib.Learner,
               feed: feeds.Feed, episodes: collections.deque[metrics.Episode]):
    self.timer = metrics.StageTimer()
    self._learner = learner
    self._num_updates_before = learner.num_updates
    self._feed = feed
    self._episodes = episodes
    self._save_due = metrics.Interval(config.save_checkpoint_secs)

  def hooks(self) -> tuple[Hook, ...]:
    return (self.pass_episodes_on, self.save_replay)

  def pass_episodes_on(self, update: Update) -> None:
    self._episodes.extend(update.episodes)

  def save_replay(self, update: Update) -> None:
    del update
    if self._save_due():
      with _tried_again():
        self._feed.save()

  def save_at_end(self) -> None:
    # Then the first learner writes a checkpoint.
    if self._learner.num_updates > self._num_updates_before:
      self._feed.save()

  def evaluate_at_end(self) -> None:
    """The first learner does."""

  def print_end(self, is_stopped: bool, has_more: bool) -> None:
    """The first learner does."""


class _Log:
  """The program's own hooks: episodes, progress, summaries, checkpoints.

  Attributes:
    timer: adds up the time of the learner's stages.
  """

  def __init__(self, config: config_lib.Config, learner: learner_lib.Learner,
               actors: acting.Acting, feed: feeds.Feed,
               checkpointer: checkpointing.Checkpointer,
               writer: metrics.MetricsWriter,
               evaluations: _Evaluations | None, stop: threading.Event,
               episodes: collections.deque[metrics.Episode], end_frames: int,
               shown: panel.Panel | None, films: filming.Filming | None):
    self.timer = metrics.StageTimer()
    self._learner = learner
    self._is_deterministic = config.deterministic
    self._end_frames = end_frames
    self._num_updates_before = learner.num_updates
    self._actors = actors
    self._feed = feed
    self._checkpointer = checkpointer
    self._writer = writer
    self._evaluations = evaluations
    self._stop = stop
    self._episodes_of_others = episodes
    self._seconds_by_role = {
        'actor': actors.seconds, 'batches': feed.seconds,
        'learner': lambda: dict(self.timer.seconds)}
    self._start_s = time.monotonic() - checkpointer.train_time_s
    self._progress = metrics.Progress(
        learner.num_env_frames, config.total_environment_frames)
    self._speed = metrics.Speed(learner.num_env_frames)
    self._is_first_update = True
    self._has_summary = False
    self._unwritten: Update | None = None  # Since the last summary.
    self._policy_lag = float('nan')
    self._last_notes: list[feeds.Note] = []
    self._bottleneck = metrics.Bottleneck()
    self._num_unrolls = 0  # That were learned from, or added to a replay.
    self._panel = shown
    self._films = films
    self._progress_due = metrics.Interval(
        min(config.progress_secs, _PANEL_SECS) if self._panel
        else config.progress_secs)
    self._bottleneck_due = metrics.Interval(_BOTTLENECK_S)
    self._summary_due = metrics.Interval(config.save_summaries_secs)
    self._checkpoint_due = metrics.Interval(config.save_checkpoint_secs)
    self._hook_name = f'{config.hook} of --hook'
    self._hook = (user_code.load(config.hook, 'hook') if config.hook
                  else lambda num_env_frames, values: None)

  def hooks(self) -> tuple[Hook, ...]:
    hooks: list[Hook] = [self.write_episodes, self.print_progress,
                         self.write_summary, self.evaluate]
    # What a checkpoint has counted is evaluated before.
    if not self._is_deterministic:
      hooks.append(self.save_checkpoint)
    if self._films:
      hooks.append(self.film)
    return tuple(hooks)

  def write_episodes(self, update: Update) -> None:
    if update.notes:
      self._policy_lag = update.policy_lag
      self._last_notes = update.notes
      self._num_unrolls += sum(len(n.policy_version) for n in update.notes)
    episodes = update.episodes
    while self._episodes_of_others:
      episodes.append(self._episodes_of_others.popleft())
    self._progress.add_episodes(episodes)
    self._writer.write_episodes(
        episodes, update.learner.num_env_frames, self._train_time_s())

  def print_progress(self, update: Update) -> None:
    if self._is_first_update:  # It has compiled, which the others will not.
      self._is_first_update = False
      self._progress.restart(update.learner.num_env_frames)
    if self._progress_due():
      measured = self._progress.measure(
          update.learner.num_env_frames, self._policy_lag)
      workers = _workers_text(self._actors.counts())
      if self._panel:
        self._panel.update(
            measured, self._time_shares(), workers.removeprefix(', '))
      else:
        print(f'{measured}{workers}', flush=True)
    if self._bottleneck_due():
      line = self._bottleneck(self.timer.seconds, self._actors.seconds())
      print(line, end='\n' if line else '', flush=True)

  def write_summary(self, update: Update) -> None:
    self._unwritten = update
    # The first update is the beginning of each curve.
    if self._last_notes and (self._summary_due() or not self._has_summary):
      self._write_summary(update)

  def _write_summary(self, update):
    self._has_summary, self._unwritten = True, None
    num_env_frames = update.learner.num_env_frames
    values = {name: float(value) for name, value in update.scalars.items()}
    for name, value in values.items():
      if name.endswith('loss') and not np.isfinite(value):
        raise errors.DivergedError(
            f'The {name} is {value} at {num_env_frames:,} frames.')
    values['policy_lag'] = self._policy_lag
    values['frames_per_second'] = self._speed(num_env_frames)
    values['mean_return'] = self._progress.mean_return
    if self._feed.updates_per_step is not None:
      values['updates_per_step'] = self._feed.updates_per_step
    for name, share in self._time_shares().items():
      values[f'time/{name}'] = share
    for name, count in self._actors.counts().items():
      values[f'actors/{name}'] = count
    self._writer.write_scalars(
        values, np.concatenate([note.actions for note in self._last_notes]),
        num_env_frames)
    with user_code.errors_explained(self._hook_name):
      self._hook(num_env_frames, values)

  def evaluate(self, update: Update) -> None:
    del update
    if self._evaluations and self._evaluations.evaluator.is_due:
      self._evaluate(*self._evaluations)

  def evaluate_at_end(self) -> None:
    """Evaluates the last weights, unless a signal has ended the training."""
    if (self._evaluations and not self._stop.is_set()
        and not self._evaluations.evaluator.is_up_to_date):
      with _tried_again():
        self.save()  # It need not wait for the games.
      self._evaluate(*self._evaluations)

  def _evaluate(self, evaluator, best):
    train_time_s = self._train_time_s()
    with self.timer.stage('evaluate'):
      try:
        games = evaluator.evaluate(train_time_s, self._stop)
      except Exception:
        if not self._stop.is_set():
          raise
        return  # The signal has ended the environments, too.
    if games is None:
      return
    self._writer.write_test_reward(games.mean, games.num_env_frames)
    end = ''
    with _tried_again():
      if best.offer(games.mean, train_time_s):
        end = f', the best so far: {best.logdir}'
    print(f'Evaluation at {games.num_env_frames:,} frames: mean '
          f'{games.mean:.2f}, standard deviation {games.std:.2f} over '
          f'{len(games.returns)} episodes{end}', flush=True)

  def save_checkpoint(self, update: Update) -> None:
    del update
    if self._checkpoint_due():
      with _tried_again():
        self.save()

  def film(self, update: Update) -> None:
    """Begins a film if one is due."""
    del update
    assert self._films is not None
    self._films(self._checkpointer.latest_number)

  def save(self) -> str:
    """Writes a checkpoint; returns its path."""
    self._writer.flush()  # The episodes that the checkpoint has counted.
    self._checkpointer.train_time_s = self._train_time_s()
    path = self._checkpointer.save()
    self._feed.save()  # If it fails, the checkpoint is there.
    return path

  def save_at_end(self) -> None:
    signals.wait_for(self._stop, 'the checkpoint')
    if self._learner.num_updates == self._num_updates_before:
      print('Nothing was learned yet, so no checkpoint was written.',
            flush=True)
      return
    if self._is_deterministic and (
        self._learner.num_env_frames < self._end_frames):
      print('No checkpoint was written: a deterministic run goes on from the '
            'last one as if it had not been stopped.', flush=True)
      return
    print(f'Saved {self._save_in_the_end()}, '
          f'{self._learner.num_env_frames:,} frames.', flush=True)

  def _save_in_the_end(self):
    while True:
      try:
        return self.save()
      except errors.SaveError as e:
        # Without this one, a deterministic run would become another one.
        if not self._is_deterministic or self._stop.is_set():
          raise
        print(f'{e} Waiting for that.', flush=True)
        self._stop.wait(_RETRY_S)

  def print_end(self, is_stopped: bool, has_more: bool) -> None:
    """Prints where the part has ended.

    Args:
      is_stopped: whether a signal has ended it.
      has_more: whether frames are left.
    """
    if self._panel and (is_stopped or not has_more):
      self._panel.close()  # What is printed then comes below it.
    if is_stopped:
      print('\nStopping with a checkpoint. A second signal stops at once.')
    print(self._progress.measure(
        self._learner.num_env_frames, self._policy_lag))
    if self._unwritten and self._last_notes:  # The end of each curve.
      self._write_summary(self._unwritten)
    if self._feed.updates_per_step is not None:
      print(f'{self._learner.num_updates:,} updates, '
            f'{self._feed.updates_per_step:.4f} per agent step since the '
            'warm-up.')
    num_arrived = self._actors.counts().get('unrolls')
    if num_arrived is not None:
      print(f'{num_arrived:,} unrolls have arrived, of which '
            f'{num_arrived - self._num_unrolls:,} were waiting at the end.')
    num_lost = self._actors.counts().get('lost_groups')
    if num_lost:
      print(f'{num_lost:,} times the process of a group of environments was '
            'lost, with an unroll that was not finished.')
    print('Time: ' + ', '.join(f'{name} {100 * share:.0f} %' for name, share
                               in self._time_shares().items()), flush=True)

  def _train_time_s(self):
    return time.monotonic() - self._start_s

  def _time_shares(self):
    """Returns the share of its time that each role spends in each stage."""
    shares = {}
    for role, get_seconds in self._seconds_by_role.items():
      seconds = get_seconds()
      for stage, value in seconds.items():
        shares[f'{role}/{stage}'] = value / max(sum(seconds.values()), 1e-9)
    return shares


def _workers_text(counts):
  if 'workers' not in counts:
    return ''
  return (f', {counts["workers"]} of {counts["wanted"]} workers '
          f'({counts["restarts"]} restarts)')
