# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checkpoints: a kill does no harm, and another agent's weights are refused.

The files are those of `tf.train.CheckpointManager`: `ckpt-N.index` and
`ckpt-N.data-*` after `N` updates, and `checkpoint`, which names the latest. The
manager itself is not used, because TensorFlow takes the path of a checkpoint
for a pattern: in a directory `a[b]` it finds no checkpoint, and in `a*` it
deletes those of `ab`.
"""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import json
import math
import os
import re
import tempfile

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import agents
import tensorflow as tf

_FILE = re.compile(r'ckpt-(\d+)\.(index|data-\d+-of-\d+)')
_UNFINISHED = 'unfinished'
_DAMAGED = 'damaged-'
# What does not mean that files are cut, changed or missing.
_PASSING = (tf.errors.PermissionDeniedError, tf.errors.ResourceExhaustedError,
            tf.errors.UnavailableError, tf.errors.DeadlineExceededError)


class Checkpointer:
  """Saves and restores weights, optimizer slots and counters.

  Attributes:
    learner: the learner to save and restore.
    description: describes the agent.
    train_time_s: float, seconds trained over all parts of the run.
  """

  def __init__(self, logdir: str, learner: learner_lib.Learner,
               description: str, level: str | None = None,
               max_to_keep: int = 3, allow_other_level: bool = False):
    """Makes a checkpointer; nothing is written yet.

    Args:
      logdir: the directory; made if missing.
      learner: what to save and restore.
      description: describes the agent, see `algorithms.describe`. A directory
        of an agent with another description is refused.
      level: the levels that are trained on; None to only read. A directory of a
        run on other levels is refused.
      max_to_keep: number of checkpoints that are kept.
      allow_other_level: whether the directory may be of other levels.

    Raises:
      CheckpointError: if `logdir` cannot be written or holds another agent.
    """
    self.learner = learner
    self._logdir = logdir
    self._identity = {'agent': description, 'level': level}
    self.description = description
    self.train_time_s = 0.0
    _check_directory(logdir, self._identity, allow_other_level)
    # The counters of the host, in the form that TensorFlow can save.
    self._num_env_frames = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._num_updates = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._train_time_s = tf.Variable(0.0, dtype=tf.float64, trainable=False)
    self._checkpoint = tf.train.Checkpoint(
        num_env_frames=self._num_env_frames, num_updates=self._num_updates,
        train_time_s=self._train_time_s,
        **{name: _tf_variables(variables)
           for name, variables in learner.state.items() if variables})
    self._max_to_keep = max_to_keep
    self._latest = latest_checkpoint(logdir)
    # Of the latest, if this object wrote or restored it.
    self._num_updates_saved: int | None = None

  def restore(self, put_aside: bool = True) -> str | None:
    """Restores the latest good checkpoint; returns its path, None without any.

    Args:
      put_aside: whether later ones, which are damaged, get other names. Then a
        line says so.

    Raises:
      CheckpointError: if no checkpoint fits this agent, or one cannot be read.
    """
    if self._latest is None:
      return None
    path, damaged = _restore_good(self._latest, self._checkpoint,
                                  all_of_it=True)
    for name in damaged if put_aside else []:
      _put_aside(self._logdir, name)
      print(f'{os.path.join(self._logdir, name)} is damaged, and kept as '
            f'{_DAMAGED}{name}.')
    self._latest = path
    self.learner.num_env_frames = int(self._num_env_frames)
    self.learner.num_updates = int(self._num_updates)
    self.train_time_s = float(self._train_time_s)
    self._num_updates_saved = self.learner.num_updates
    return path

  @property
  def latest_number(self) -> int:
    """The number of the latest checkpoint, 0 if there is none."""
    return _number(self._latest) if self._latest else 0

  @property
  def next_name(self) -> str:
    """The name of the checkpoint that `save` writes.

    Its number is that of the updates, or a higher one: the latest checkpoint
    is never replaced by another one of its name. Where the file `checkpoint`
    was changed to name an older one, those after it are replaced.
    """
    number = self.learner.num_updates
    if self._latest and self._num_updates_saved != number:
      number = max(number, _number(self._latest) + 1)
    return f'ckpt-{number}'

  def save(self) -> str:
    """Writes a checkpoint and returns its path.

    If there was no update since this object wrote or restored a checkpoint, it
    is not written again.

    Raises:
      DivergedError: if a weight is not finite. The last good checkpoint is
        kept.
      SaveError: if it cannot be written. The last one is kept, too.
    """
    with self.as_save_errors():
      return self._save()

  @contextlib.contextmanager
  def as_save_errors(self) -> Iterator[None]:
    """Raises `SaveError` for what the system could not do while within."""
    try:
      yield
    except (OSError, tf.errors.OpError) as e:
      raise errors.SaveError(
          f'The checkpoint of {self.learner.num_env_frames:,} frames could '
          f'not be written to {self._logdir}: {errors.reason(e)}.') from e

  def _save(self):
    state = self.learner.state
    for variable in [*state['variables'], *state['unpublished']]:
      # A layer with dropout also has integers, the state of its seed.
      if tf.as_dtype(variable.dtype).is_floating and not bool(
          tf.reduce_all(tf.math.is_finite(variable))):
        name = getattr(variable, 'path', variable.name)  # Of Keras, or not.
        good = self._latest
        start = f'Go on from {good}, the last good one,' if good else 'Train'
        raise errors.DivergedError(
            f'Training diverged: the weights are not finite ({name}) '
            f'and were not saved. {start} with a lower --learning_rate or '
            'with --clip_gradient_norm.')
    _write_if_new(_identity_path(self._logdir), json.dumps(self._identity))
    # As arrays: TensorFlow never frees the tensor of a Python number.
    learner = self.learner
    self._num_env_frames.assign(np.array(learner.num_env_frames))
    self._num_updates.assign(np.array(learner.num_updates))
    self._train_time_s.assign(np.array(self.train_time_s))
    if self._latest and self._num_updates_saved == learner.num_updates:
      return self._latest  # Writing it again could only damage it.
    return self._write(self.next_name)

  def _write(self, name):
    """Writes the files; a kill between any two leaves a usable directory."""
    path = os.path.join(self._logdir, name)
    if self._latest is None:
      # Otherwise a kill before the end would leave a checkpoint that no file
      # names. A name without a checkpoint does no harm.
      self._write_state(name)
    self._checkpoint.save_counter.assign_add(1)  # Restoring needs one.
    self._checkpoint.write(os.path.join(self._logdir, _UNFINISHED))
    # `.data-*` before `.index`: a checkpoint with an index counts as whole.
    for file in sorted(os.listdir(self._logdir)):
      if file.startswith(f'{_UNFINISHED}.'):
        _sync(os.path.join(self._logdir, file))
        os.replace(os.path.join(self._logdir, file),
                   path + file[len(_UNFINISHED):])
    self._write_state(name)
    self._latest = path
    self._num_updates_saved = self.learner.num_updates
    self._delete_old(name)
    return path

  def _write_state(self, name):
    """Names the latest checkpoint in the file `checkpoint`."""
    lines = [f'model_checkpoint_path: "{name}"']
    for kept in self._kept(name):
      index = os.path.join(self._logdir, f'{kept}.index')
      saved_s = os.path.getmtime(index) if os.path.exists(index) else 0.0
      lines += [f'all_model_checkpoint_paths: "{kept}"',
                f'all_model_checkpoint_timestamps: {saved_s}']
    _write_whole(_state_path(self._logdir), '\n'.join(lines) + '\n')

  def _kept(self, name):
    """Returns the names of the checkpoints to keep, `name` as the last.

    Checkpoints after `name` are kept, too, but are not among these names. They
    exist if a user went back to an older checkpoint.
    """
    older = [n for n in _checkpoint_names(self._logdir)
             if _number(n) < _number(name)]
    return [*older, name][-self._max_to_keep:]

  def _delete_old(self, name):
    first = _number(self._kept(name)[0])
    for file in os.listdir(self._logdir):
      match = _FILE.fullmatch(file)
      if match and int(match[1]) < first:
        os.remove(os.path.join(self._logdir, file))


class BestCheckpoint:
  """Keeps the checkpoint with the highest mean return, in `<logdir>/best`.

  This is a directory like that of a run, so it can be tested and trained on.

  Attributes:
    logdir: the directory.
    mean: the highest mean return so far; minus infinity before the first.
  """

  def __init__(self, logdir: str, learner: learner_lib.Learner,
               description: str, level: str):
    """Reads what an earlier part of the run has kept; writes nothing yet.

    Args:
      logdir: the directory of the run.
      learner: what to save.
      description: see `Checkpointer`.
      level: see `Checkpointer`.

    Raises:
      CheckpointError: as `Checkpointer`.
    """
    self.logdir = os.path.join(logdir, 'best')
    self._checkpointer = Checkpointer(
        self.logdir, learner, description, level, max_to_keep=1)
    self._means = _read_means(self._means_path)
    latest = latest_checkpoint(self.logdir)
    self._name = os.path.basename(latest) if latest else ''
    self.mean = self._means.get(self._name, -math.inf)

  def offer(self, mean: float, train_time_s: float) -> bool:
    """Saves the learner if `mean` is higher; returns whether it is.

    Raises:
      DivergedError: as `Checkpointer.save`.
      SaveError: as `Checkpointer.save`; the one before is still the best.
    """
    if not mean > self.mean:
      return False
    name = self._checkpointer.next_name
    # The means of both: which of them counts is in the file that names the
    # checkpoint.
    kept = {self._name: self.mean} if self._name in self._means else {}
    self._means = {**kept, name: mean}
    with self._checkpointer.as_save_errors():
      _write_whole(self._means_path, json.dumps(self._means))
    self._checkpointer.train_time_s = train_time_s
    self._checkpointer.save()
    self._name, self.mean = name, mean
    return True

  @property
  def _means_path(self):
    return os.path.join(self.logdir, 'means.json')


def _read_means(path: str) -> dict[str, float]:
  """Returns the means by name of their checkpoint; none if they are lost."""
  try:
    with open(path, encoding='utf-8') as f:
      return {str(k): float(v) for k, v in json.load(f).items()}
  except (OSError, AttributeError, TypeError, ValueError):
    return {}


def restore_agent(logdir: str, agent: agents.Agent, description: str) -> int:
  """Restores the weights of an agent from the latest good checkpoint.

  Args:
    logdir: the directory, with a checkpoint.
    agent: gets the weights.
    description: the description that it was saved with, see `Checkpointer`.

  Returns:
    The environment frames that the agent was trained for.

  Raises:
    CheckpointError: if there is no checkpoint, or it is of another agent or is
      damaged.
  """
  path = latest_checkpoint(logdir)
  if path is None:
    raise errors.CheckpointError(f'--logdir={logdir} holds no checkpoint.')
  _check_identity(logdir, {'agent': description})
  num_env_frames = tf.Variable(0, dtype=tf.int64, trainable=False)
  good, damaged = _restore_good(path, tf.train.Checkpoint(
      variables=_tf_variables(agent.variables), num_env_frames=num_env_frames))
  if damaged:
    print(f'{", ".join(damaged)} of {logdir} is damaged: using {good}.')
  return int(num_env_frames)


def save_spec(logdir: str, spec: structs.EnvironmentSpec) -> None:
  """Writes what the agent in `logdir` observes and does, for `saved_spec`.

  Raises:
    CheckpointError: it cannot be written.
  """
  try:
    _write_if_new(_spec_path(logdir), json.dumps(spec.to_json()))
  except OSError as e:
    raise errors.CheckpointError(
        f'{_spec_path(logdir)} cannot be written: {e.strerror}.') from e


def saved_spec(logdir: str) -> structs.EnvironmentSpec | None:
  """Returns the spec that was written to `logdir`, None if it is not known."""
  try:
    with open(_spec_path(logdir), encoding='utf-8') as f:
      return structs.EnvironmentSpec.from_json(json.load(f))
  except (OSError, LookupError, TypeError, ValueError):
    return None  # An older run, or damaged.


def latest_checkpoint(logdir: str) -> str | None:
  """Returns the path of the latest checkpoint, None if there is none.

  It is the one that the file `checkpoint` names. If this is lost, it is the one
  with the most updates.
  """
  try:
    state = tf.train.get_checkpoint_state(logdir)
  except ValueError:  # The file is empty or no text.
    state = None
  path = state and state.model_checkpoint_path
  if path and os.path.exists(f'{path}.index'):
    return path
  names = _checkpoint_names(logdir)
  return os.path.join(logdir, names[-1]) if names else None


def latest_number(logdir: str) -> int:
  """Returns the number of updates of the latest checkpoint, 0 without one."""
  path = latest_checkpoint(logdir)
  return _number(path) if path else 0


def _restore_good(path, checkpoint, all_of_it=False):
  """Restores a checkpoint; if it is damaged, the newest older one that is good.

  Returns:
    The path of the good one, and the names of those that are damaged.

  Raises:
    CheckpointError: none is good; the first one is named.
  """
  logdir, latest = os.path.split(path)
  older = [os.path.join(logdir, name) for name in _checkpoint_names(logdir)
           if _number(name) < _number(latest)]
  damaged: list[str] = []
  first = None
  for candidate in [path, *reversed(older)]:
    try:
      _restore(candidate, checkpoint, all_of_it)
      return candidate, damaged
    except errors.CheckpointError as e:
      if isinstance(e.__cause__, _PASSING) or not _can_be_read(candidate):
        raise  # It may be good the next time.
      first = first or e
      damaged.append(os.path.basename(candidate))
  assert first is not None
  raise first


def _can_be_read(path):
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


def _put_aside(logdir, name):
  """Gives all files of a checkpoint names that no checkpoint has."""
  for file in os.listdir(logdir):
    if file.startswith(f'{name}.'):
      os.replace(os.path.join(logdir, file),
                 os.path.join(logdir, _DAMAGED + file))


def _restore(path, checkpoint, all_of_it):
  """Restores all objects; `all_of_it`: from all of the checkpoint."""
  try:
    with _readable(path) as readable:
      status = checkpoint.restore(readable).expect_partial()
      status.assert_existing_objects_matched()
      if all_of_it:
        status.assert_consumed()
  except (ValueError, AssertionError, IndexError, tf.errors.OpError) as e:
    raise errors.CheckpointError(
        f'The checkpoint {path} does not fit this agent or is damaged '
        f'({str(e).splitlines()[0]}). Use the flags it was trained with or '
        'another --logdir.') from e


@contextlib.contextmanager
def _readable(path: str) -> Iterator[str]:
  """Yields a path of the same checkpoint that TensorFlow can read.

  If `path`, read as a pattern, does not match itself, it is a path through a
  temporary link.
  """
  index = f'{path}.index'
  if tf.io.gfile.glob(index) == [index]:
    yield path
    return
  with tempfile.TemporaryDirectory() as directory:
    link = os.path.join(directory, 'logdir')
    os.symlink(os.path.abspath(os.path.dirname(path)), link)
    yield os.path.join(link, os.path.basename(path))


def _tf_variables(
    variables: Iterable[tf.Variable | tf.keras.Variable]) -> list[tf.Variable]:
  # Keras variables wrap the tf.Variable that tf.train.Checkpoint tracks.
  return [v if isinstance(v, tf.Variable) else v.value for v in variables]


def _identity_path(logdir):
  return os.path.join(logdir, 'agent.json')


def _spec_path(logdir):
  return os.path.join(logdir, 'spec.json')


def _state_path(logdir):
  return os.path.join(logdir, 'checkpoint')


def _checkpoint_names(logdir: str) -> list[str]:
  """Returns the names of all checkpoints in `logdir`, the newest last."""
  try:
    matches = map(_FILE.fullmatch, os.listdir(logdir))
  except OSError:  # There is no such directory yet.
    return []
  numbers = [int(m[1]) for m in matches if m and m[2] == 'index']
  return [f'ckpt-{number}' for number in sorted(numbers)]


def _number(path: str) -> int:
  """Returns the number of updates at the end of a checkpoint's name, or 0."""
  match = re.search(r'-(\d+)$', path)
  return int(match[1]) if match else 0


def _write_if_new(path, text):
  """Writes a file, whole or not at all, unless it holds `text` already."""
  try:
    with open(path, encoding='utf-8') as f:
      if f.read() == text:
        return
  except (OSError, ValueError):  # Missing or damaged.
    pass
  _write_whole(path, text)


def _write_whole(path, text):
  with open(path + '.tmp', 'w', encoding='utf-8') as f:
    f.write(text)
  _sync(path + '.tmp')
  os.replace(path + '.tmp', path)


def _sync(path):
  """Makes sure that a file stays whole if the machine goes down."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _check_directory(logdir, identity, allow_other_level):
  try:
    os.makedirs(logdir, exist_ok=True)
    if identity['level'] and not os.access(logdir, os.W_OK):
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if latest_checkpoint(logdir):
      _check_identity(logdir, {
          **identity, **({'level': None} if allow_other_level else {})})
  except OSError as e:
    raise errors.CheckpointError(
        f'--logdir={logdir} cannot be used: {e.strerror}. Choose a directory '
        'that you may write to.') from e


def _check_identity(logdir, identity):
  """Raises if the checkpoint in `logdir` is known to be of another agent."""
  path = _identity_path(logdir)
  found = {}
  try:
    if os.path.exists(path):
      with open(path, encoding='utf-8') as f:
        found = dict(json.load(f))
  except (TypeError, ValueError) as e:
    raise errors.CheckpointError(
        f'{path} is damaged. Delete it if the flags are those that the '
        'checkpoint was trained with, or use another --logdir.') from e
  for key, value in identity.items():
    if value is not None and found.get(key, value) != value:
      raise errors.CheckpointError(
          f'--logdir={logdir} holds a checkpoint of another {key} '
          f'({found[key]}), this one is {value}. Use another --logdir'
          + (' or --allow_other_task.' if key == 'level' else
             ', or the flags that it was trained with.'))
