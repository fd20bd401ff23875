# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checkpoints that survive a kill and refuse another agent's weights."""

import errno
import glob
import json
import os
import re
from typing import Any, List, Optional

from scalable_agent import errors
from scalable_agent import learner as learner_lib
import tensorflow as tf


class Checkpointer:
  """Saves and restores weights, optimizer slots and counters.

  Attributes:
    train_time_s: float64 variable, seconds trained over all parts of the run.
  """

  def __init__(self, logdir: str, learner: learner_lib.Learner,
               description: str, level: Optional[str] = None,
               max_to_keep: int = 3):
    """Makes a checkpointer; nothing is written yet.

    Args:
      logdir: the directory; made if missing.
      learner: what to save and restore.
      description: says which agent it is; a directory that holds an agent of
        another description is refused.
      level: what is trained on, or None to only read; a directory of a run on
        another level is refused.
      max_to_keep: how many checkpoints are kept.

    Raises:
      CheckpointError: if `logdir` cannot be written or holds another agent.
    """
    self._learner = learner
    self._logdir = logdir
    self._identity = {'agent': description, 'level': level}
    self.train_time_s = tf.Variable(0.0, dtype=tf.float64, trainable=False)
    _check_directory(logdir, self._identity)
    checkpoint = tf.train.Checkpoint(
        variables=[_tf_variable(v) for v in learner.agent.variables],
        optimizer=[_tf_variable(v) for v in learner.optimizer.variables],
        num_env_frames=learner.num_env_frames,
        num_updates=learner.num_updates,
        train_time_s=self.train_time_s)
    self._manager = tf.train.CheckpointManager(
        checkpoint, logdir, max_to_keep=max_to_keep)

  def restore(self) -> Optional[str]:
    """Restores the latest checkpoint; returns its path, None if none exists.

    Raises:
      CheckpointError: if the checkpoint is of another agent or is damaged.
    """
    path = self._manager.latest_checkpoint
    if path is None:
      return None
    try:
      self._manager.checkpoint.restore(path).assert_consumed()
    except (ValueError, AssertionError, IndexError, tf.errors.OpError) as e:
      raise errors.CheckpointError(
          f'The checkpoint {path} does not fit this agent or is damaged '
          f'({str(e).splitlines()[0]}). Use the flags it was trained with or '
          f'another --logdir{self._advice_on_others(path)}.') from e
    return path

  def _advice_on_others(self, path):
    others = [name for name in _checkpoint_names(self._logdir)
              if name != os.path.basename(path)]
    if not others:
      return ''
    return ('. If it is damaged, an older one may be good '
            f'({", ".join(others)}): name it as model_checkpoint_path in '
            f'{_state_path(self._logdir)}')

  def save(self) -> str:
    """Writes a checkpoint and returns its path.

    Raises:
      DivergedError: if a weight is not finite: the last good checkpoint is
        then kept.
    """
    for variable in self._learner.agent.variables:
      if not bool(tf.reduce_all(tf.math.is_finite(_tf_variable(variable)))):
        good = self._manager.latest_checkpoint
        start = f'Go on from {good}, the last good one,' if good else 'Train'
        raise errors.DivergedError(
            f'Training diverged: the weights are not finite ({variable.path}) '
            f'and were not saved. {start} with a lower --learning_rate or '
            'with --clip_gradient_norm.')
    _write_if_new(_identity_path(self._logdir), json.dumps(self._identity))
    return self._manager.save(int(self._learner.num_updates))


def latest_checkpoint(logdir: str) -> Optional[str]:
  """Returns the path of the latest checkpoint, None if there is none.

  Raises:
    CheckpointError: if there are checkpoints, but which is the latest is lost.
  """
  try:
    path = tf.train.latest_checkpoint(logdir)
  except ValueError:  # The file is empty or no text.
    path = None
  names = _checkpoint_names(logdir)
  if names and path is None:
    raise errors.CheckpointError(
        f'--logdir={logdir} holds checkpoints ({", ".join(names)}), but no '
        'readable file `checkpoint` that names one of them. Use another '
        f'--logdir, or write to {_state_path(logdir)} the line '
        f'model_checkpoint_path: "{names[-1]}"')
  return path


def latest_number(logdir: str) -> int:
  """Returns the number of updates of the latest checkpoint, 0 without one.

  Raises:
    CheckpointError: as `latest_checkpoint`.
  """
  match = re.search(r'-(\d+)$', latest_checkpoint(logdir) or '')
  return int(match[1]) if match else 0


def _tf_variable(variable: Any) -> tf.Variable:
  # Keras variables wrap the tf.Variable that tf.train.Checkpoint tracks.
  return variable if isinstance(variable, tf.Variable) else variable.value


def _identity_path(logdir):
  return os.path.join(logdir, 'agent.json')


def _state_path(logdir):
  return os.path.join(logdir, 'checkpoint')


def _checkpoint_names(logdir) -> List[str]:
  """Returns the names of all checkpoints in `logdir`, the newest last."""
  matches = [
      re.search(r'(ckpt-(\d+))\.index$', path)
      for path in glob.glob(os.path.join(glob.escape(logdir), 'ckpt-*.index'))]
  return [m[1] for m in sorted(filter(None, matches), key=lambda m: int(m[2]))]


def _write_if_new(path, text):
  """Writes a file that a kill leaves whole, unless it holds `text` already."""
  try:
    with open(path, encoding='utf-8') as f:
      if f.read() == text:
        return
  except (OSError, ValueError):  # Missing or damaged.
    pass
  with open(path + '.tmp', 'w', encoding='utf-8') as f:
    f.write(text)
  os.replace(path + '.tmp', path)


def _check_directory(logdir, identity):
  path = _identity_path(logdir)
  found = {}
  latest = latest_checkpoint(logdir)
  try:
    os.makedirs(logdir, exist_ok=True)
    if identity['level'] and not os.access(logdir, os.W_OK):
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if latest and os.path.exists(path):
      with open(path, encoding='utf-8') as f:
        found = dict(json.load(f))
  except OSError as e:
    raise errors.CheckpointError(
        f'--logdir={logdir} cannot be used: {e.strerror}. Choose a directory '
        'that you may write to.') from e
  except (TypeError, ValueError) as e:
    raise errors.CheckpointError(
        f'{path} is damaged. Delete it if the flags are those that the '
        'checkpoint was trained with, or use another --logdir.') from e
  for key, value in identity.items():
    if value is not None and found.get(key, value) != value:
      raise errors.CheckpointError(
          f'--logdir={logdir} holds a checkpoint of another {key} '
          f'({found[key]}), this one is {value}. Use another --logdir.')
