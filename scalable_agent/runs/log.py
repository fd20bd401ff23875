# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What a run prints and writes while it learns: its hooks.

Episodes, progress, summaries, evaluations, checkpoints, films. Only the first
learner does all that.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import threading
import time
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import actor
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import layers
from scalable_agent.processes import signals
from scalable_agent.processes import user_code
from scalable_agent.runs import checkpointing
from scalable_agent.runs import evaluation
from scalable_agent.runs import filming
from scalable_agent.runs import metrics
from scalable_agent.runs import panel
from scalable_agent.runs import reports as reports_lib
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_BOTTLENECK_S = 60
_RETRY_S = 10.
_PANEL_SECS = 2.


class Update(NamedTuple):
  """What a hook gets after each call of the learner.

  Attributes:
    scalars: from `Learner.step`, by name.
    notes: about the unrolls that have arrived since the last update.
    learner: the learner, after the update.
    lags: int64, of each column of these unrolls, in updates.
  """
  scalars: dict[str, tf.Tensor]
  notes: Sequence[structs.Note]
  learner: learner_lib.Learner
  lags: np.ndarray

  @property
  def policy_lag(self) -> float:
    """The mean lag; NaN if no unrolls have arrived."""
    return float(np.mean(self.lags)) if self.lags.size else float('nan')

  @property
  def episodes(self) -> list[episodes_lib.Episode]:
    """The episodes that ended in these unrolls."""
    return [episode for note in self.notes for episode in note.episodes]


Hook = Callable[[Update], None]


class Evaluations(NamedTuple):
  """Evaluates while training; keeps the best weights.

  Attributes:
    evaluator: plays the games.
    best: where the best weights are kept.
  """
  evaluator: evaluation.Evaluator
  best: checkpointing.BestCheckpoint


def print_start(
    asked: config_lib.Config, config: config_lib.Config,
    before: config_lib.Config | None, actors: actor.Acting,
    num_learners: int) -> None:
  """Prints what is about to be trained, and what was decided for that.

  Args:
    asked: the settings as the user gave them.
    config: these settings with a value for what was left open.
    before: those of the part before, None if there was none.
    actors: those of the first learner.
    num_learners: the number of learners.
  """
  level_names = levels.level_names(config.level_name, config.is_test)
  for line in (levels.unplayed_message(level_names, config.num_actors),
               config_lib.choices_made(asked, config),
               before and config_lib.changes_said(before, config)):
    if line:
      print(line)
  sharing = (' that share their policy steps'
             if config.dynamic_batching else '')
  device = 'CPU' if layers.on_cpu() else 'GPU'
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
  return f'{count:,} {what}' + 's' * (count != 1)


@contextlib.contextmanager
def _tried_again() -> Iterator[None]:
  """Says what could not be saved; a run goes on without."""
  try:
    yield
  except errors.SaveError as e:
    print(f'{e} Training goes on, and tries again with the next one.',
          flush=True)


class Follower:
  """What a learner does beside learning that is not the first one.

  Attributes:
    timer: adds up the time of the learner's stages.
  """

  def __init__(self, config: config_lib.Config, learner: learner_lib.Learner,
               actors: actor.Acting, feed: feeds.Feed,
               reports: reports_lib.Reports, rank: int):
    """Makes the object.

    Args:
      config: the settings.
      learner: the learner.
      actors: what acts for it.
      feed: its batches, and its replay.
      reports: where it puts what the first learner is to know.
      rank: which of the learners it is.
    """
    self.timer = timing.StageTimer()
    self._learner = learner
    self._num_updates_before = learner.num_updates
    self._actors = actors
    self._feed = feed
    self._reports = reports
    self._rank = rank
    self._save_due = timing.Interval(config.save_checkpoint_secs)

  def hooks(self) -> tuple[Hook, ...]:
    """Returns what to call after each update, in this order."""
    return (self.report, self.save_replay)

  def report(self, update: Update) -> None:
    """Puts episodes and counts where the first learner takes them."""
    self._reports.add(reports_lib.Report(
        update.episodes, {self._rank: self._actors.counts()}))

  def save_replay(self, update: Update) -> None:
    """Saves the replay if it is due."""
    del update
    if self._save_due():
      with _tried_again():
        self._feed.save()

  def save_at_end(self) -> None:
    """Saves the replay if anything was learned."""
    # Then the first learner writes a checkpoint.
    if (self._learner.is_consistent
        and self._learner.num_updates > self._num_updates_before):
      self._feed.save()

  def evaluate_at_end(self) -> None:
    """The first learner does."""

  def print_end(self, is_stopped: bool, has_more: bool) -> None:
    """The first learner does."""


class Log:
  """The program's own hooks: episodes, progress, summaries, checkpoints.

  Attributes:
    timer: adds up the time of the learner's stages.
  """

  def __init__(self, config: config_lib.Config, learner: learner_lib.Learner,
               actors: actor.Acting, feed: feeds.Feed,
               checkpointer: checkpointing.Checkpointer,
               writer: metrics.MetricsWriter,
               evaluations: Evaluations | None, stop: threading.Event,
               reports: reports_lib.Reports, end_frames: int,
               shown: panel.Panel | None, films: filming.Filming | None):
    """Makes the object, for a part of a run that begins now.

    Args:
      config: the settings.
      learner: the first learner, as it was restored.
      actors: what acts for it.
      feed: its batches, and its replay.
      checkpointer: has restored the learner.
      writer: of episodes and summaries.
      evaluations: evaluates while training, if that is asked for.
      stop: ends evaluations, and the waiting for a place to save to.
      reports: those of the other learners.
      end_frames: where the part ends.
      shown: shows the progress, in place of lines.
      films: records games while training, if that is asked for.
    """
    self.timer = timing.StageTimer()
    self._learner = learner
    self._config = config
    self._end_frames = end_frames
    self._num_updates_before = learner.num_updates
    self._actors = actors
    self._feed = feed
    self._checkpointer = checkpointer
    self._writer = writer
    self._evaluations = evaluations
    self._stop = stop
    self._reports = reports
    self._seconds_by_role = {
        'actor': actors.seconds, 'batches': feed.seconds,
        'learner': lambda: dict(self.timer.seconds)}
    self._start_s = time.monotonic() - checkpointer.train_time_s
    self._progress = metrics.Progress(
        learner.num_env_frames, config.total_environment_frames)
    self._speed = timing.Speed(learner.num_env_frames)
    self._is_first_update = True
    self._has_summary = False
    self._unwritten: Update | None = None  # Since the last summary.
    self._policy_lag = self._longest_lag = float('nan')
    self._last_notes: Sequence[structs.Note] = []
    self._bottleneck = metrics.Bottleneck()
    self._num_unrolls = 0  # That were learned from, or added to a replay.
    self._panel = shown
    self._films = films
    self._progress_due = timing.Interval(
        min(config.progress_secs, _PANEL_SECS) if self._panel
        else config.progress_secs)
    self._bottleneck_due = timing.Interval(_BOTTLENECK_S)
    self._summary_due = timing.Interval(config.save_summaries_secs)
    self._checkpoint_due = timing.Interval(config.save_checkpoint_secs)
    self._hook_name = f'{config.hook} of --hook'
    self._hook = (user_code.load(config.hook, 'hook') if config.hook
                  else lambda num_env_frames, values: None)

  def hooks(self) -> tuple[Hook, ...]:
    """Returns what to call after each update, in this order."""
    hooks: list[Hook] = [self.write_episodes, self.print_progress,
                         self.write_summary, self.evaluate]
    # What a checkpoint has counted is evaluated before.
    if not self._config.deterministic:
      hooks.append(self.save_checkpoint)
    if self._films:
      hooks.append(self.film)
    return tuple(hooks)

  def write_episodes(self, update: Update) -> None:
    """Writes the episodes of all learners that have ended."""
    if update.notes:
      self._policy_lag = update.policy_lag
      self._longest_lag = float(np.max(update.lags))
      self._last_notes = update.notes
      self._num_unrolls += sum(len(n.policy_version) for n in update.notes)
    episodes = update.episodes + self._reports.take().episodes
    self._progress.add_episodes(episodes)
    self._writer.write_episodes(
        episodes, update.learner.num_env_frames, self._train_time_s())

  def print_progress(self, update: Update) -> None:
    """Prints the progress, and what is the bottleneck, if due."""
    # The first update has compiled, which the others will not. The first steps
    # to be counted are those of a warm-up.
    if self._is_first_update:
      self._is_first_update = not update.notes
      self._progress.restart(update.learner.num_env_frames)
    elif self._progress_due():
      measured = self._progress.measure(
          update.learner.num_env_frames, self._policy_lag)
      workers = _workers_text(self._counts())
      if self._panel:
        self._panel.update(
            measured, self._time_shares(), workers.removeprefix(', '))
      else:
        print(f'{measured}{workers}', flush=True)
    if self._bottleneck_due():
      line = self._bottleneck(self.timer.seconds, self._actors.seconds())
      print(line, end='\n' if line else '', flush=True)

  def write_summary(self, update: Update) -> None:
    """Writes scalars for TensorBoard if they are due."""
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
    values['longest_policy_lag'] = self._longest_lag
    values['frames_per_second'] = self._speed(num_env_frames)
    values['mean_return'] = self._progress.mean_return
    if self._feed.updates_per_step is not None:
      values['updates_per_step'] = self._feed.updates_per_step
    for name, share in self._time_shares().items():
      values[f'time/{name}'] = share
    for name, count in self._counts().items():
      values[f'actors/{name}'] = count
    self._writer.write_scalars(
        values, np.concatenate([note.actions for note in self._last_notes]),
        num_env_frames)
    with user_code.errors_explained(self._hook_name):
      self._hook(num_env_frames, values)

  def evaluate(self, update: Update) -> None:
    """Evaluates if it is due."""
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
    """Writes a checkpoint if it is due."""
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
    """Writes a checkpoint, if anything was learned.

    A deterministic run that was stopped within a part writes none.
    """
    signals.wait_for(self._stop, 'the checkpoint')
    if self._learner.num_updates == self._num_updates_before:
      print('Nothing was learned yet, so no checkpoint was written.',
            flush=True)
      return
    if not self._learner.is_consistent:
      print('No checkpoint was written: the error came within several updates, '
            'some of which may have been made.', flush=True)
      return
    if self._config.deterministic and (
        self._learner.num_env_frames < self._end_frames):
      where = ('from the last one' if self._checkpointer.latest_number
               else 'from its beginning')
      print(f'No checkpoint was written: a deterministic run goes on {where} '
            'as if it had not been stopped.', flush=True)
      return
    print(f'Saved {self._save_in_the_end()}, '
          f'{self._learner.num_env_frames:,} frames.', flush=True)

  def _save_in_the_end(self):
    while True:
      try:
        return self.save()
      except errors.SaveError as e:
        # Without this one, a deterministic run would become another one.
        if not self._config.deterministic or self._stop.is_set():
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
      how = '' if self._config.deterministic else ' with a checkpoint'
      print(f'\nStopping{how}. A second signal stops at once.')
    print(self._progress.measure(
        self._learner.num_env_frames, self._policy_lag))
    if self._unwritten and self._last_notes:  # The end of each curve.
      self._write_summary(self._unwritten)
    if self._feed.updates_per_step is not None:
      print(f'{self._learner.num_updates:,} updates, '
            f'{self._feed.updates_per_step:.4f} per agent step since the '
            'warm-up.')
    self._print_unrolls()
    print('Time: ' + ', '.join(f'{name} {100 * share:.0f} %' for name, share
                               in self._time_shares().items()), flush=True)

  def _counts(self):
    """Returns what the actors of all learners have counted."""
    return timing.totals(
        [self._actors.counts(), *self._reports.counts.values()])

  def _print_unrolls(self):
    """Prints where unrolls are that were not learned from."""
    counts = self._counts()
    num_arrived = self._actors.counts().get('unrolls')
    if num_arrived is not None:
      where = ' at the first learner' if self._config.num_learners > 1 else ''
      print(f'{num_arrived:,} unrolls have arrived{where}, of which '
            f'{num_arrived - self._num_unrolls:,} were waiting at the end.')
      if counts['restarts']:
        print(f'{_count(counts["restarts"], "time")} an actor worker was '
              f'replaced, each time with at most {self._num_in_worker():,} '
              'unrolls that have not arrived.')
    num_lost = counts.get('lost_groups')
    if num_lost:
      print(f'{_count(num_lost, "time")} the process of a group of '
            'environments was lost, with an unroll that was not finished.')

  def _num_in_worker(self):
    """Returns how many unrolls a worker can have, one for each environment."""
    num_of_group = -(-self._actors.num_environments // self._actors.num_groups)
    # On their way, waiting there, being made by all groups.
    return ((1 + self._config.queue_capacity) * num_of_group
            + self._actors.num_environments)

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
