# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Metrics of a run: curves on disk, progress."""

import collections
from collections.abc import Iterable, Iterator, Mapping
import contextlib
import csv
import datetime
import glob
import os
import time
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.scores import dmlab30
from scalable_agent.scores import episodes_csv
from scalable_agent.scores import evaluations
from scalable_agent.settings import files
import tensorflow as tf

_MAX_LINE_BYTES = 2**16
# Larger whole numbers are shorter with an exponent.
_MAX_WHOLE = 10**16
# Of a disk that stays full, there are not many event files.
_REOPEN_S = 60.
# Three hundred years.
_LONGEST_ETA_S = 1e10


class MetricsWriter:
  """Writes TensorBoard summaries and one CSV line per finished episode."""

  def __init__(self, logdir: str, num_action_repeats: int):
    """Opens `<logdir>/episodes.csv` and a TensorBoard event file to append.

    `num_action_repeats` are environment frames per agent step. Raises
    ConfigError if `episodes.csv` cannot be written.
    """
    self._num_action_repeats = num_action_repeats
    path = os.path.join(logdir, 'episodes.csv')
    try:
      is_new = not os.path.exists(path) or os.path.getsize(path) == 0
      end = '' if is_new else _missing_end(path)
      self._file = open(path, 'a', newline='', encoding='utf-8')
    except OSError as e:
      raise errors.ConfigError(
          f'{path} cannot be written: {e.strerror}. Make this file '
          'writable or use another --logdir.') from e
    self._logdir, self._has_failed, self._is_broken = logdir, False, False
    self._earlier_events = self._event_files()
    self._opened_s = time.monotonic()  # The event file.
    self._dmlab30_scores = dmlab30.TrainingScores()
    self._summaries = tf.summary.create_file_writer(logdir)
    self._csv = csv.writer(self._file)
    self._file.write(end)
    if is_new:
      self._csv.writerow(episodes_lib.FIELDS)

  def write_episodes(self, episodes: list[structs.Episode],
                     num_env_frames: int, train_time_s: float) -> None:
    """Writes episodes under the reference's names, at `num_env_frames`.

    Also writes the scores of DMLab-30 once every level has a return.
    """
    scalars: list[tuple[str, float]] = []
    with self._without_errors():
      for episode in episodes:
        frames = episode.num_agent_steps * self._num_action_repeats
        self._csv.writerow((
            num_env_frames, f'{train_time_s:.1f}', episode.level_name,
            shortest(episode.episode_return), episode.num_agent_steps,
            frames))
        scalars += [
            (f'{episode.level_name}/episode_return', episode.episode_return),
            (f'{episode.level_name}/episode_frames', frames)]
        scores = self._dmlab30_scores.add(
            episode.level_name, episode.episode_return)
        scalars += (scores or {}).items()
    with self._without_errors_of_events(), self._as_default(num_env_frames):
      _write_scalars(scalars)

  def write_scalars(self, scalars: Mapping[str, float], actions: np.ndarray,
                    num_env_frames: int) -> None:
    """Writes scalars and the histogram of `actions`, and flushes all files."""
    with self._without_errors_of_events(), self._as_default(num_env_frames):
      _write_scalars(scalars.items())
      tf.summary.histogram('action', actions)
    self.flush()

  def write_settings(self, settings: Mapping[str, object],
                     num_env_frames: int) -> None:
    """Writes a table of the settings, as text."""
    rows = ''.join(f'\n| {name} | {value} |'
                   for name, value in settings.items())
    with self._without_errors_of_events(), self._as_default(num_env_frames):
      tf.summary.text('settings', f'| setting | value |\n|---|---|{rows}')
    self.flush()

  def write_evaluation(self, games: evaluations.Evaluation,
                       metrics: Mapping[str, float]) -> None:
    """Writes the mean return, under PyTorchRL's name, and means of metrics."""
    with self._without_errors_of_events(), self._as_default(
        games.num_env_frames):
      _write_scalars([('TestReward', games.mean), *(
          (f'evaluation/{name}', mean) for name, mean in metrics.items())])
    self.flush()

  def flush(self) -> None:
    """Passes all output to the operating system."""
    with self._without_errors_of_events():
      self._summaries.flush()
    with self._without_errors():
      self._file.flush()

  def sync(self) -> None:
    """Passes all output to the disk, in case the machine crashes."""
    self.flush()
    with self._without_errors():
      os.fsync(self._file.fileno())
      for path in self._event_files() - self._earlier_events:
        files.sync(path)

  def _event_files(self) -> set[str]:
    return set(glob.glob(os.path.join(glob.escape(self._logdir), 'events.*')))

  def close(self) -> None:
    """Flushes and closes the files."""
    with self._without_errors():
      self._summaries.close()
    with self._without_errors():
      self._file.close()

  @contextlib.contextmanager
  def _without_errors(self) -> Iterator[None]:
    """Prints the first error of writing: a run does not end for its curves."""
    try:
      yield
    except (OSError, tf.errors.OpError) as e:
      if not self._has_failed:
        print(f'Curves could not be written to {self._logdir}: '
              f'{errors.reason(e)}. Training continues; episodes may be '
              'missing from the curves.', flush=True)
      self._has_failed = True

  @contextlib.contextmanager
  def _without_errors_of_events(self) -> Iterator[None]:
    """Like `_without_errors`; the event file is broken after an error."""
    with self._without_errors():
      try:
        yield
      except (OSError, tf.errors.OpError):
        self._is_broken = True
        raise

  def _as_default(self, num_env_frames: int
                  ) -> contextlib.AbstractContextManager:
    # Readers stop at half a record, so events after an error need a new file.
    if (self._is_broken and time.monotonic() - self._opened_s > _REOPEN_S
        and os.path.isdir(self._logdir)):
      self._opened_s = time.monotonic()  # Also of a file with an error.
      self._summaries = tf.summary.create_file_writer(self._logdir)
      self._is_broken = False
    return self._summaries.as_default(step=np.array(num_env_frames, np.int64))


def _missing_end(path: str) -> str:
  """Returns the missing end of the last line of a CSV file after a kill."""
  with open(path, 'rb') as f:
    f.seek(max(os.path.getsize(path) - _MAX_LINE_BYTES, 0))
    line = f.read().rsplit(b'\n', 1)[-1]
  if not line:
    return ''
  # An open quote would take the next lines into its field.
  return '"\n' if line.count(b'"') % 2 else '\n'


def shortest(value: float) -> str:
  """Returns the shortest text that is read as the same number.

  A float32 is read as the same float32, other values as the same float64.
  """
  if value.is_integer() and abs(value) < _MAX_WHOLE:
    return str(int(value))
  single = np.float32(value)
  return str(single if float(single) == value else value)


def _write_scalars(scalars: Iterable[tuple[str, float]]) -> None:
  """Writes what `tf.summary.scalar` writes, with one event for all scalars.

  Each call of `tf.summary.scalar` takes 0.3 ms of the learner's thread.
  """
  summary = tf.compat.v1.Summary()
  for name, value in scalars:
    entry = summary.value.add(tag=name)
    entry.metadata.plugin_data.plugin_name = 'scalars'
    entry.tensor.dtype = tf.float32.as_datatype_enum
    entry.tensor.tensor_shape.SetInParent()  # `[]`
    entry.tensor.tensor_content = np.array(value, '<f4').tobytes()
  if summary.value:
    tf.summary.experimental.write_raw_pb(summary.SerializeToString())


class Measured(NamedTuple):
  """The progress of a run at one moment.

  Attributes:
    num_env_frames: frames learned from so far.
    total: frames at the end of the run.
    frames_per_s: recent speed.
    eta: time that is left at this speed, in words.
    mean_return: mean over recent episodes; NaN before the first episode.
    num_episodes: the number of recent episodes.
    policy_lag: the lag in updates, mean over the batch.
    metrics: means over recent episodes of this part, by name.
  """
  num_env_frames: int
  total: int
  frames_per_s: float
  eta: str
  mean_return: float
  num_episodes: int
  policy_lag: float
  metrics: Mapping[str, float] = {}

  @property
  def share(self) -> float:
    """The share of the run that is done; may be a little above 1."""
    return self.num_env_frames / self.total

  @property
  def return_text(self) -> str:
    """The mean return, and the means of metrics, in words."""
    if not self.num_episodes:
      return 'no episode finished yet'
    return (f'return {self.mean_return:.2f} ({self.num_episodes} episodes)'
            f'{episodes_lib.in_words(self.metrics)}')

  def __str__(self) -> str:
    return (f'{self.num_env_frames:,} of {self.total:,} frames '
            f'({100 * self.share:.1f} %), {self.frames_per_s:,.0f} frames/s, '
            f'ETA {self.eta}, {self.return_text}, '
            f'policy lag {self.policy_lag:.1f}')


class Progress:
  """Keeps recent returns and measures the speed."""

  def __init__(self, num_env_frames: int, total_environment_frames: int,
               logdir: str = '', num_recent: int = 100):
    """Starts to measure speed, and reads the recent returns of earlier parts.

    Args:
      num_env_frames: frames already learned from.
      total_environment_frames: frames at the end of the run.
      logdir: the directory with the episodes of earlier parts; '' for none.
      num_recent: number of episodes in the mean return.
    """
    self._total = total_environment_frames
    self._recent = collections.deque(
        episodes_csv.returns_before(logdir, num_env_frames, num_recent)
        if logdir and num_env_frames else (), maxlen=num_recent)
    self._recent_metrics: collections.deque[Mapping[str, float]] = (
        collections.deque(maxlen=num_recent))
    self.restart(num_env_frames)

  def restart(self, num_env_frames: int) -> None:
    """Measures the speed from this moment on."""
    self._speed = timing.Speed(num_env_frames)
    self._last = num_env_frames, 0.

  def add_episodes(self, episodes: list[structs.Episode]) -> None:
    """Adds the returns and metrics of episodes to the recent ones."""
    self._recent.extend(episode.episode_return for episode in episodes)
    self._recent_metrics.extend(episode.metrics for episode in episodes)

  @property
  def mean_return(self) -> float:
    """Mean return of recent episodes; NaN before the first episode."""
    return float(np.mean(self._recent)) if self._recent else float('nan')

  @property
  def mean_metrics(self) -> dict[str, float]:
    """Means over recent episodes of this part, of metrics with a value."""
    return episodes_lib.mean_metrics(self._recent_metrics)

  def measure(self, num_env_frames: int, policy_lag: float) -> Measured:
    """Returns the progress, with the speed since the last call.

    Without new frames, the speed is that of the last call. `policy_lag` is the
    lag in updates, mean over the batch.
    """
    if num_env_frames != self._last[0]:
      self._last = num_env_frames, self._speed(num_env_frames)
    frames_per_s = self._last[1]
    left_s = max(self._total - num_env_frames, 0) / (frames_per_s or np.inf)
    eta = (str(datetime.timedelta(seconds=round(left_s)))
           if frames_per_s > 0 and left_s < _LONGEST_ETA_S else '?')
    return Measured(num_env_frames, self._total, frames_per_s, eta,
                    self.mean_return, len(self._recent), policy_lag,
                    self.mean_metrics)
