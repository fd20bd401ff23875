# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The program's own hooks: episodes, progress, summaries, checkpoints."""

from collections.abc import Callable, Sequence
import time
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.acting import shares
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import layers
from scalable_agent.processes import signals
from scalable_agent.runs import bottleneck
from scalable_agent.runs import checkpointing
from scalable_agent.runs import clipping
from scalable_agent.runs import context as context_lib
from scalable_agent.runs import evaluation
from scalable_agent.runs import messages
from scalable_agent.runs import metrics
from scalable_agent.runs import panel as panel_lib
from scalable_agent.runs import reports as reports_lib
from scalable_agent.runs import summaries
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_BOTTLENECK_S = 60
_RETRY_S = 10.
_PANEL_SECS = 2.


class Update(NamedTuple):
  """The argument of a hook: the result of one call of the learner.

  Attributes:
    scalars: from `Learner.step`, by name.
    notes: about the unrolls that have arrived since the last update.
    learner: the learner, after the update.
    lags: int64, the lag of each column of the unrolls, in updates.
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
  def episodes(self) -> list[structs.Episode]:
    """The episodes that ended in the unrolls."""
    return [episode for note in self.notes for episode in note.episodes]


Hook = Callable[[Update], None]


class Outputs(NamedTuple):
  """The files that learner 0 writes in one part of a run.

  Attributes:
    checkpointer: has restored the learner.
    writer: writes episodes and summaries.
    evaluator: evaluates the agent while training; None without
      `--eval_every_frames`.
  """
  checkpointer: checkpointing.Checkpointer
  writer: metrics.MetricsWriter
  evaluator: evaluation.Evaluator | None = None


class Log:
  """Prints and writes the progress of a part of a run.

  Without outputs, for learners other than learner 0, a `Log` sends episodes and
  counts to learner 0, and saves the replay. `timer` adds up the time of the
  learner's stages.
  """

  def __init__(self, config: config_lib.Config, learner: learner_lib.Learner,
               actors: interface.Acting, feed: feeds.Feed,
               context: context_lib.RunContext,
               outputs: Outputs | None):
    """Starts the log of a part that begins now.

    Args:
      config: the settings, resolved.
      learner: the learner, restored.
      feed: the batches of this learner, and its replay.
      outputs: the files of learner 0; None for the other learners.
    """
    self.timer = timing.StageTimer()
    self._config = config
    self._learner = learner
    self._actors = actors
    self._feed = feed
    self._context = context
    self._outputs = outputs
    self._num_updates_before = learner.num_updates
    self._seconds_by_role = {
        'actor': actors.seconds, 'batches': feed.seconds,
        'learner': lambda: dict(self.timer.seconds)}
    self._start_s = time.monotonic() - (
        outputs.checkpointer.train_time_s if outputs else 0)
    self._progress = metrics.Progress(
        learner.num_env_frames, config.total_environment_frames, config.logdir)
    self._is_first_update = True
    self._evaluated = ''
    self._has_summary = False
    self._unwritten: Update | None = None  # Since the last summary.
    self._policy_lag = self._longest_lag = float('nan')
    self._last_notes: Sequence[structs.Note] = []
    self._bottleneck = bottleneck.Bottleneck(
        config, shares.has_processes(config.level_name),
        layers.has_bfloat16())
    self._clipping = clipping.Watch(config)
    self._num_unrolls = 0  # Learned from, or added to a replay.
    self._progress_due = timing.Interval(
        min(config.progress_secs, _PANEL_SECS) if context.panel
        else config.progress_secs)
    self._bottleneck_due = timing.Interval(_BOTTLENECK_S)
    self._summary_due = timing.Interval(config.save_summaries_secs)
    self._checkpoint_due = timing.Interval(config.save_checkpoint_secs)
    self._summaries = outputs and summaries.Summaries(
        context.hook, outputs.writer, learner.num_env_frames)

  def hooks(self) -> tuple[Hook, ...]:
    """Returns the hooks to call after each call of the learner, in order."""
    if self._outputs is None:
      return (self.report, self.save_replay)
    hooks: list[Hook] = [self.write_episodes, self.print_progress,
                         self.write_summary, self.evaluate]
    # After `evaluate`: a checkpoint counts only frames that were evaluated.
    if not self._config.deterministic:
      hooks.append(self.save_checkpoint)
    if self._context.videos:
      hooks.append(self.record_video)
    return tuple(hooks)

  @property
  def _files(self) -> Outputs:
    assert self._outputs is not None  # Other learners have other hooks.
    return self._outputs

  def report(self, update: Update) -> None:
    """Sends episodes and counts to learner 0."""
    self._context.reports.add(reports_lib.Report(
        update.episodes, {self._context.rank: self._actors.counts()}))

  def save_replay(self, update: Update) -> None:
    """Saves the replay if due."""
    del update
    if self._checkpoint_due():
      with messages.retry_later(self._context.say):
        self._feed.save()

  def write_episodes(self, update: Update) -> None:
    """Writes the finished episodes of all learners."""
    if update.notes:
      self._policy_lag = update.policy_lag
      self._longest_lag = float(np.max(update.lags))
      self._last_notes = update.notes
      self._num_unrolls += sum(len(n.policy_version) for n in update.notes)
    episodes = update.episodes + self._context.reports.take().episodes
    self._progress.add_episodes(episodes)
    if self._config.log_episodes:
      messages.print_episodes(episodes)
    if not self._num_updates_before:  # A resumed run has said it before.
      for line in self._clipping(
          update.notes, update.learner.observations_clipped):
        print(line, flush=True)
    self._files.writer.write_episodes(
        episodes, update.learner.num_env_frames, self._train_time_s())

  def print_progress(self, update: Update) -> None:
    """Prints the progress and the bottleneck if due."""
    # The speed is measured after the first update, which compiles, and after
    # the warm-up of a replay.
    if self._is_first_update:
      self._is_first_update = not update.notes
      self._progress.restart(update.learner.num_env_frames)
    elif self._progress_due():
      measured = self._progress.measure(
          update.learner.num_env_frames, self._policy_lag)
      if self._context.panel:
        self._draw(self._context.panel, measured)
      else:
        print(f'{measured}{messages.workers(self._counts())}', flush=True)
    if self._bottleneck_due():
      line = self._bottleneck(self.timer.seconds, self._actors.seconds())
      print(line, end='\n' if line else '', flush=True)

  def _draw(self, panel: panel_lib.Panel, measured: metrics.Measured) -> None:
    panel.update(
        measured, self._time_shares(), self._train_time_s(), self._evaluated,
        messages.workers(self._counts()).removeprefix(', '))

  def write_summary(self, update: Update) -> None:
    """Writes scalars for TensorBoard if due."""
    self._unwritten = update
    # The first update is the beginning of each curve.
    if self._last_notes and (self._summary_due() or not self._has_summary):
      self._write_summary(update)

  def _write_summary(self, update: Update) -> None:
    self._has_summary, self._unwritten = True, None
    values = {
        'policy_lag': self._policy_lag,
        'longest_policy_lag': self._longest_lag,
        'mean_return': self._progress.mean_return}
    if self._feed.updates_per_step is not None:
      values['updates_per_step'] = self._feed.updates_per_step
    if (counted := update.learner.observations_clipped)[0]:
      values['observations_clipped'] = counted[1] / counted[0]
    for group, numbers in (('metrics', self._progress.mean_metrics),
                           ('time', self._time_shares()),
                           ('actors', self._counts())):
      values |= {f'{group}/{name}': n for name, n in numbers.items()}
    assert self._summaries
    self._summaries.write(
        update.scalars, values,
        np.concatenate([note.actions for note in self._last_notes]),
        update.learner.num_env_frames)

  def evaluate(self, update: Update) -> None:
    """Evaluates the agent if due."""
    del update
    evaluator = self._files.evaluator
    if evaluator and evaluator.is_due:
      self._evaluate(evaluator)

  def _evaluate(self, evaluator: evaluation.Evaluator) -> None:
    with self.timer.stage('evaluate'):
      games = evaluator.evaluate(self._train_time_s(), self._context.stop)
    if games is not None:
      self._files.writer.write_evaluation(games, evaluator.metrics)
      self._evaluated = f'{games.mean:.2f} at {games.num_env_frames:,} frames'

  def save_checkpoint(self, update: Update) -> None:
    """Writes a checkpoint if due."""
    del update
    if self._checkpoint_due():
      with messages.retry_later():
        self.save()

  def record_video(self, update: Update) -> None:
    """Starts to record a video if due."""
    del update
    assert self._context.videos is not None
    self._context.videos.record_if_due(self._files.checkpointer.latest_number)

  def save(self) -> str:
    """Writes a checkpoint and the replay; returns the checkpoint's path."""
    self._files.writer.sync()  # The episodes that the checkpoint has counted.
    self._files.checkpointer.train_time_s = self._train_time_s()
    path = self._files.checkpointer.save()
    self._feed.save()  # After the checkpoint, which stays if this fails.
    return path

  def save_at_end(self, end_frames: int) -> None:
    """Writes a checkpoint or, on other learners, the replay.

    Nothing is written if nothing was learned, or if a deterministic run was
    stopped before the part reached its `end_frames`.
    """
    has_learned = self._learner.num_updates > self._num_updates_before
    if self._outputs is None:
      if self._learner.is_consistent and has_learned:
        self._feed.save()
      return
    signals.wait_for(self._context.stop, 'the checkpoint')
    num_env_frames = self._learner.num_env_frames
    if not has_learned:
      text = 'Nothing was learned yet: no checkpoint was written.'
    elif not self._learner.is_consistent:
      text = ('No checkpoint was written: the error came within an update, a '
              'part of which may have been made.')
    elif self._config.deterministic and num_env_frames < end_frames:
      where = ('the last one' if self._files.checkpointer.latest_number
               else 'the beginning')
      text = ('No checkpoint was written: a deterministic run resumes from '
              f'{where}, as if it had not been stopped.')
    else:
      text = f'Saved {self._save_or_wait()}, {num_env_frames:,} frames.'
    signals.wait_for(self._context.stop, 'the end of the training')
    print(text, flush=True)

  def _save_or_wait(self) -> str:
    """Writes a checkpoint; a deterministic run waits for disk space."""
    while True:
      try:
        return self.save()
      except errors.SaveError as e:
        # Without this checkpoint, a deterministic run would become another run.
        if not self._config.deterministic or self._context.stop.is_set():
          raise
        print(f'{e} Waiting for that.', flush=True)
        self._context.stop.wait(_RETRY_S)

  def end(self, has_more: bool) -> None:
    """Evaluates the last weights of the run, and prints where the part ended.

    `has_more` says whether frames are left.
    """
    if self._outputs is None:
      return
    measured = self._progress.measure(
        self._learner.num_env_frames, self._policy_lag)
    evaluator = self._outputs.evaluator
    if (evaluator and not has_more and not evaluator.is_up_to_date
        and not self._context.stop.is_set()):
      with messages.retry_later():
        self.save()  # Before the games, which may take long.
      self._evaluate(evaluator)
    is_stopped, panel = self._context.stop.is_set(), self._context.panel
    if panel and (is_stopped or not has_more):
      if not self._is_first_update:
        self._draw(panel, measured)
      panel.close()  # Later lines are printed below the panel.
    if self._unwritten and self._last_notes:  # The end of each curve.
      self._write_summary(self._unwritten)
    if is_stopped:
      how = '' if self._config.deterministic else ' with a checkpoint'
      print(f'\nStopping{how}.{signals.hint(self._context.stop)}')
    print(measured)
    if self._feed.updates_per_step is not None:
      messages.print_updates(
          self._learner.num_updates, self._feed.updates_per_step)
    messages.print_unrolls(
        self._config, self._actors, self._counts(), self._num_unrolls)
    messages.print_time(self._time_shares())

  def _counts(self) -> dict[str, int]:
    """Returns the counts of the actors of all learners."""
    return timing.totals(
        [self._actors.counts(), *self._context.reports.counts.values()])

  def _train_time_s(self) -> float:
    return time.monotonic() - self._start_s

  def _time_shares(self) -> dict[str, float]:
    """Returns the share of its time that each role spends in each stage."""
    return timing.shares(
        {role: seconds() for role, seconds in self._seconds_by_role.items()})
