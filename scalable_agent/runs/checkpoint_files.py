# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The files of checkpoints: their names, safe writing, restoring."""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import errno
import glob
import logging
import os
import re
import tempfile
from typing import Any

import numpy as np
from scalable_agent import errors
from scalable_agent.runs import weights
from scalable_agent.settings import files
from scalable_agent.settings import flag_texts
import tensorflow as tf

DAMAGED = 'damaged-'
# Name of the file with the mean returns of the weights in `best/`.
MEANS = 'means.json'
# Errors of TensorFlow for files that are damaged or do not fit.
_DAMAGE = (ValueError, AssertionError, IndexError, tf.errors.OpError)
_FILE = re.compile(r'ckpt-(\d+)\.(index|data-\d+-of-\d+)')
# Transient errors, which do not prove that files are damaged.
_TRANSIENT = (tf.errors.PermissionDeniedError, tf.errors.ResourceExhaustedError,
              tf.errors.UnavailableError, tf.errors.DeadlineExceededError)


def latest_checkpoint(logdir: str) -> str | None:
  """Returns the path of the latest checkpoint, None if there is none.

  The file `checkpoint` names the latest checkpoint. If the file is lost, the
  checkpoint with the most updates is the latest. Raises CheckpointError if only
  a part of the named checkpoint is there, as in an unfinished copy, or if the
  only checkpoints are those of DeepMind's program.
  """
  path = named(logdir)
  if path and os.path.basename(path).startswith('model.ckpt-'):
    path = None
  if path and os.path.exists(f'{path}.index'):
    return path
  if path and (parts := glob.glob(f'{glob.escape(path)}.data-*')):
    raise errors.CheckpointError(
        f'{path}.index, a part of the latest checkpoint, is missing: copy the '
        f'file again. To do without this checkpoint, delete {parts[0]}.')
  found = (older_than(path) if path else []) or names(logdir)
  if not found and glob.glob(f'{glob.escape(logdir)}/model.ckpt-*.index'):
    raise errors.CheckpointError(
        f"{logdir} holds a checkpoint of DeepMind's program (TensorFlow 1), "
        'which this program cannot read. Use another --logdir.')
  return os.path.join(logdir, found[-1]) if found else None


def named(logdir: str) -> str | None:
  """Returns the path that the file `checkpoint` names, None without a name."""
  state = _state(logdir)
  return state.model_checkpoint_path if state else None


def _state(logdir: str) -> Any:
  """Returns the content of the file `checkpoint`, None without the file."""
  try:
    return tf.train.get_checkpoint_state(logdir)
  except ValueError:  # The file is empty or no text.
    return None


def read_means(directory: str) -> dict[str, float]:
  """Returns the means of `best/` by checkpoint; empty if the file is lost."""
  try:
    return {str(k): float(v) for k, v in files.read_json(
        os.path.join(directory, MEANS)).items()}
  except (OSError, AttributeError, TypeError, ValueError):
    return {}


def best_mean(logdir: str) -> float | None:
  """Returns the mean return of the weights in `<logdir>/best`, if known.

  None also for an unfinished copy of the directory.
  """
  best = os.path.join(logdir, 'best')
  try:
    path = latest_checkpoint(best)
  except errors.CheckpointError:
    return None
  return read_means(best).get(os.path.basename(path or ''))


def latest_number(logdir: str) -> int:
  """Returns the number of updates of the latest checkpoint, 0 without one."""
  path = latest_checkpoint(logdir)
  return number(path) if path else 0


def restore_good(path: str, checkpoint: tf.train.Checkpoint,
                 all_of_it: bool = False) -> tuple[str, list[str]]:
  """Restores a checkpoint or, if damaged, the newest good one before.

  With `all_of_it`, all values of the checkpoint must be used. Returns the path
  of the restored checkpoint, and the names of damaged ones. If no checkpoint is
  good, the CheckpointError names the first one.
  """
  damaged: list[str] = []
  first = None
  for candidate in _newest_first(path):
    try:
      _restore(candidate, checkpoint, all_of_it)
      return candidate, damaged
    except errors.CheckpointError as e:
      if isinstance(e.__cause__, _TRANSIENT) or not _can_be_read(candidate):
        raise  # The files may be readable the next time.
      first = first or e
      damaged.append(os.path.basename(candidate))
  assert first is not None
  raise first


def newest_finite(path: str) -> str | None:
  """Returns the newest finite checkpoint from `path` back; None without any."""
  for candidate in _newest_first(path):
    with contextlib.suppress(*_DAMAGE), _readable(candidate) as name:
      reader = tf.train.load_checkpoint(name)
      if all(np.isfinite(reader.get_tensor(key)).all() for key, dtype in
             reader.get_variable_to_dtype_map().items() if dtype.is_floating):
        return candidate
  return None


def _newest_first(path: str) -> list[str]:
  """Returns a checkpoint and all older checkpoints, the newest first."""
  logdir = os.path.dirname(path)
  return [path, *(os.path.join(logdir, name) for name in
                  reversed(older_than(path)))]


def older_than(path: str) -> list[str]:
  """Returns the names of the checkpoints before a checkpoint, the newest last.

  If a user went back to an older checkpoint, the later ones of the time before
  are left out: the file `checkpoint` lists the others, and names the latest.
  """
  logdir = os.path.dirname(path)
  found = [name for name in names(logdir) if number(name) < number(path)]
  if (state := _state(logdir)) is None:
    return found
  latest = number(state.model_checkpoint_path)
  listed = {latest, *map(number, state.all_model_checkpoint_paths)}
  return [name for name in found if number(name) < min(listed)
          or number(name) in listed and number(name) <= latest]


def _can_be_read(path: str) -> bool:
  """Returns whether the system can read the files of a checkpoint."""
  logdir, name = os.path.split(path)
  try:
    for file in os.listdir(logdir):
      if file.startswith(f'{name}.'):
        with open(os.path.join(logdir, file), 'rb') as f:
          f.read(1)
  except OSError:
    return False
  return True


def make_latest(logdir: str, name: str) -> None:
  """Makes an earlier checkpoint the latest; later ones are overwritten."""
  files.write(os.path.join(logdir, 'checkpoint'),
              f'model_checkpoint_path: "{name}"\n')


def put_aside(logdir: str, name: str) -> None:
  """Renames all files of a checkpoint, so that no checkpoint has the name."""
  for file in sorted(os.listdir(logdir)):  # `.index`, the whole, at last.
    if number_of_file(file) == number(name):
      os.replace(os.path.join(logdir, file),
                 os.path.join(logdir, DAMAGED + file))


def remove(logdir: str, name: str) -> None:
  """Deletes the files of a checkpoint as far as the system allows that."""
  with contextlib.suppress(OSError):
    # `.index` first: without an index, the rest does not count.
    for file in sorted(os.listdir(logdir), reverse=True):
      if number_of_file(file) == number(name):
        os.remove(os.path.join(logdir, file))


def _restore(path: str, checkpoint: tf.train.Checkpoint,
             all_of_it: bool) -> None:
  try:
    with _readable(path) as readable:
      status = checkpoint.restore(readable).expect_partial()
      status.assert_existing_objects_matched()
      if all_of_it:
        status.assert_consumed()
  except _DAMAGE as e:
    # TensorFlow logs each value that was not restored, after our last line.
    tf.get_logger().addFilter(_is_restored)
    raise errors.CheckpointError(
        f'The checkpoint {path} does not fit this agent or is damaged '
        f'({str(e).splitlines()[0]}). Use another --logdir, or '
        f'{flag_texts.of_training(os.path.dirname(path))}.') from e


def _is_restored(record: logging.LogRecord) -> bool:
  return not re.search('restored object|unrestored values', record.getMessage())


@contextlib.contextmanager
def _readable(path: str) -> Iterator[str]:
  """Yields a path of the same checkpoint that TensorFlow can read.

  TensorFlow takes a path for a pattern. A path that does not match itself is
  replaced by a path through a temporary link.
  """
  index = f'{path}.index'
  if tf.io.gfile.glob(index) == [index]:
    yield path
    return
  with tempfile.TemporaryDirectory() as directory:
    link = os.path.join(directory, 'logdir')
    os.symlink(os.path.abspath(os.path.dirname(path)), link)
    yield os.path.join(link, os.path.basename(path))


def tf_variables(
    variables: Iterable[tf.Variable | tf.keras.Variable]) -> list[tf.Variable]:
  """Returns the variables that `tf.train.Checkpoint` can track."""
  return [v if isinstance(v, tf.Variable) else v.value for v in variables]


def identity_path(logdir: str) -> str:
  """Returns the path of the file that describes the agent and the level."""
  return os.path.join(logdir, 'agent.json')


def names(logdir: str) -> list[str]:
  """Returns the names of all checkpoints in `logdir`, the newest last."""
  try:
    matches = map(_FILE.fullmatch, os.listdir(logdir))
  except OSError:  # There is no such directory yet.
    return []
  numbers = [int(m[1]) for m in matches if m and m[2] == 'index']
  return [f'ckpt-{one}' for one in sorted(numbers)]


def number_of_file(file: str) -> int | None:
  """Returns the number of the checkpoint that a file belongs to, or None."""
  match = _FILE.fullmatch(file)
  return int(match[1]) if match else None


def number(path: str) -> int:
  """Returns the number of updates at the end of a checkpoint's name, or 0."""
  match = re.search(r'-(\d+)$', path)
  return int(match[1]) if match else 0


def write_if_new(path: str, text: str) -> None:
  """Writes a file atomically, unless the file has this text."""
  try:
    with open(path, encoding='utf-8') as f:
      if f.read() == text:
        return
  except (OSError, ValueError):  # Missing or damaged.
    pass
  files.write(path, text)


def check_directory(logdir: str, identity: Mapping[str, str | None],
                    allow_other_level: bool) -> None:
  """Makes a log directory, if missing, and checks that the agent may use it.

  `identity` describes the agent and, to write, the level. Raises
  CheckpointError if the directory cannot be used or holds another agent.
  """
  try:
    os.makedirs(logdir, exist_ok=True)
    if identity['level'] and not os.access(logdir, os.W_OK):
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if identity['level'] and os.path.exists(weights.path(logdir)):
      raise errors.CheckpointError(
          f'--logdir={logdir} has an agent of the zoo, without optimizer: '
          'training cannot resume. Use another --logdir.')
    if latest_checkpoint(logdir):
      check_identity(logdir, {
          **identity, **({'level': None} if allow_other_level else {})})
  except OSError as e:
    raise errors.CheckpointError(
        f'--logdir={logdir} cannot be used: {e.strerror}. Choose a directory '
        'that you may write to.') from e


def check_identity(logdir: str, identity: Mapping[str, str | None]) -> None:
  """Raises CheckpointError if `logdir` is known to hold another agent."""
  path = identity_path(logdir)
  found = {}
  try:
    if os.path.exists(path):
      found = dict(files.read_json(path))
  except (TypeError, ValueError) as e:
    raise errors.CheckpointError(
        f'{path} is damaged. Delete this file if the flags are those of the '
        'training, or use another --logdir.') from e
  for key, value in identity.items():
    if value is not None and found.get(key, value) != value:
      raise errors.CheckpointError(
          f'--logdir={logdir} holds a checkpoint of another {key} '
          f'({found[key]}), not {value}. Use another --logdir, '
          + ('--allow_other_task, ' if key == 'level' else '')
          + f'or {flag_texts.of_training(logdir)}.')
