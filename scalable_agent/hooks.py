# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Ready hooks, which send a run to Weights & Biases or to MLflow.

`--hook=scalable_agent.hooks:wandb` or `--hook=scalable_agent.hooks:mlflow`.
"""

import abc
from collections.abc import Mapping
import dataclasses
import importlib
import math
import os
import types

from scalable_agent import errors
from scalable_agent.scores import evaluations
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files


class _Tracker(abc.ABC):
  """Sends settings, scalars, evaluations, videos and final scores of a run.

  The service's run begins with the first summary. The id of that run is kept in
  the log directory: a resumed training continues the service's run.
  """
  _package: str

  def __init__(self, config: config_lib.Config):
    """Raises MissingDependencyError without the package."""
    try:
      self._library: types.ModuleType = importlib.import_module(self._package)
    except ImportError as e:
      raise errors.MissingDependencyError(
          f'--hook={__name__}:{self._package} needs {self._package}: pip '
          f'install "scalable_agent[{self._package}]" ({e}).') from e
    self._logdir = config.logdir
    self._id_path = os.path.join(config.logdir, f'{self._package}_run_id.txt')
    self._scores: dict[str, float] = {}
    self._has_started = False  # The service's run.
    # Without a checkpoint, a training begins anew, and the service's run, too.
    self._is_resumed = os.path.exists(
        self._id_path) and files.has_checkpoint(config.logdir)
    # The frames of earlier videos are not known here.
    self._videos_sent = self._videos()
    self._evaluations_sent = set(
        evaluations.read(self._logdir) if self._is_resumed else [])
    self._num_env_frames = 0

  def __call__(self, num_env_frames: int, values: Mapping[str, float]) -> None:
    """Sends the numbers of a summary, and new evaluations and videos."""
    self._num_env_frames = num_env_frames
    if not self._has_started:
      self._start_or_continue()
    if math.isnan(values['mean_return']):  # Before the first episode.
      values = {k: v for k, v in values.items() if k != 'mean_return'}
    else:
      self._scores['final/mean_return'] = values['mean_return']
    self._send(values, num_env_frames)
    self._send_files()

  def close(self) -> None:
    """Sends the final scores, and ends the service's run."""
    if not self._has_started and not self._has_late_evaluation():
      return
    self._send_files()
    if done := evaluations.read(self._logdir):
      self._scores |= {
          'final/evaluation': done[-1].mean,
          'final/best_evaluation': max(e.mean for e in done)}
    self._end(self._scores)

  def _has_late_evaluation(self) -> bool:
    """Continues the run of a finished training that only evaluated."""
    new = self._new_evaluations()
    if not self._is_resumed or not new:
      return False
    self._start_or_continue()
    self._num_env_frames = new[-1].num_env_frames
    return True

  def _new_evaluations(self) -> list[evaluations.Evaluation]:
    """Returns all evaluations that the service does not have, in order."""
    return [evaluation for evaluation in evaluations.read(self._logdir)
            if evaluation not in self._evaluations_sent]

  def _start_or_continue(self) -> None:
    run_id = None
    if self._is_resumed:
      with open(self._id_path, encoding='utf-8') as f:
        run_id = f.read().strip()
    # These settings have the values that were chosen for `auto`.
    settings = config_lib.trained_with(self._logdir)
    new_id = self._start(run_id, dataclasses.asdict(settings) if settings
                         else {})
    try:
      files.write(self._id_path, f'{new_id}\n')
    except OSError as e:
      print(f'{self._id_path} cannot be written ({errors.reason(e)}): if this '
            'training is resumed, the service will show another run.',
            flush=True)
    self._has_started = True

  def _send_files(self) -> None:
    for evaluation in self._new_evaluations():
      self._evaluations_sent.add(evaluation)
      self._send({'evaluation/mean': evaluation.mean,
                  'evaluation/std': evaluation.std},
                 evaluation.num_env_frames)
    for path in sorted(self._videos() - self._videos_sent):
      self._videos_sent.add(path)
      self._send_video(path, self._num_env_frames)

  def _videos(self) -> set[str]:
    directory = os.path.join(self._logdir, files.VIDEOS)
    if not os.path.isdir(directory):
      return set()
    return {os.path.join(directory, name) for name in os.listdir(directory)
            if name.endswith(('.mp4', '.gif'))
            and _has_content(os.path.join(directory, name))}

  @abc.abstractmethod
  def _start(self, run_id: str | None, settings: dict[str, object]) -> str:
    """Starts a run, or continues the run `run_id`; returns the run's id."""

  @abc.abstractmethod
  def _send(self, values: Mapping[str, float], num_env_frames: int) -> None:
    """Sends scalars."""

  @abc.abstractmethod
  def _send_video(self, path: str, num_env_frames: int) -> None:
    """Sends a video."""

  @abc.abstractmethod
  def _end(self, scores: Mapping[str, float]) -> None:
    """Sends the final scores, and ends the run."""


class Wandb(_Tracker):
  """Sends a run to Weights & Biases, project `scalable_agent`.

  Variables of the environment such as `WANDB_PROJECT` and `WANDB_MODE` apply.
  """
  _package = 'wandb'

  def _start(self, run_id: str | None, settings: dict[str, object]) -> str:
    self._run = self._library.init(
        project=os.environ.get('WANDB_PROJECT', 'scalable_agent'), id=run_id,
        resume='allow', name=os.environ.get(
            'WANDB_NAME', os.path.basename(self._logdir)), dir=self._logdir,
        config=settings,
        settings={'console': 'off'})  # The panel needs the terminal.
    # Steps of Weights & Biases must not go back, as a resumed run may.
    self._run.define_metric('*', step_metric='num_env_frames')
    return self._run.id

  def _send(self, values: Mapping[str, float], num_env_frames: int) -> None:
    self._run.log({**values, 'num_env_frames': num_env_frames})

  def _send_video(self, path: str, num_env_frames: int) -> None:
    self._run.log({'video': self._library.Video(path),
                   'num_env_frames': num_env_frames})

  def _end(self, scores: Mapping[str, float]) -> None:
    self._run.summary.update(scores)
    self._run.finish()


class Mlflow(_Tracker):
  """Sends a run to MLflow.

  Variables of the environment such as `MLFLOW_TRACKING_URI` and
  `MLFLOW_EXPERIMENT_NAME` apply.
  """
  _package = 'mlflow'

  def _start(self, run_id: str | None, settings: dict[str, object]) -> str:
    # A caller of `train` may have a run of MLflow, which becomes the parent.
    run = self._library.start_run(
        run_id=run_id, nested=True,
        run_name=None if run_id else os.path.basename(self._logdir))
    if not run_id:  # Parameters of MLflow cannot change.
      self._library.log_params(settings)
    self._library.log_dict(settings, 'settings.json')
    return run.info.run_id

  def _send(self, values: Mapping[str, float], num_env_frames: int) -> None:
    self._library.log_metrics(dict(values), step=num_env_frames)

  def _send_video(self, path: str, num_env_frames: int) -> None:
    del num_env_frames  # In the name of the file.
    self._library.log_artifact(path, 'videos')

  def _end(self, scores: Mapping[str, float]) -> None:
    self._library.log_metrics(dict(scores), step=self._num_env_frames)
    self._library.end_run()


def _has_content(path: str) -> bool:
  """Returns whether a file is there and not empty: its video is written."""
  try:
    return os.path.getsize(path) > 0
  except OSError:
    return False


# The names after the colon in --hook.
wandb, mlflow = Wandb, Mlflow
