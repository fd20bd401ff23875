# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Saves and restores checkpoints; safe against kills and against other agents.

The files are those of `tf.train.CheckpointManager`: `ckpt-N.index` and
`ckpt-N.data-*` after `N` updates, and `checkpoint`, which names the latest
checkpoint. The manager itself is not used: `fsync` must come before the file
`checkpoint` changes, checkpoints after the latest one must stay, and TensorFlow
takes paths for patterns (in a directory `a*`, it deletes checkpoints of `ab`).
"""

from collections.abc import Iterator
import contextlib
import json
import math
import os
import re
import shutil

import numpy as np
from scalable_agent import errors
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import agents
from scalable_agent.networks import layers
from scalable_agent.runs import checkpoint_files as files
from scalable_agent.runs import weights
from scalable_agent.runs.checkpoint_files import latest_checkpoint
from scalable_agent.settings import files as whole_files
import tensorflow as tf

# Names of files that a killed run leaves behind.
_WRITTEN = r'unfinished\.(index|data-\d+-of-\d+)'
_WRITTEN_OR_PART = rf'{_WRITTEN}(\.tempstate\d+)?'
_UNFINISHED, _UNFINISHED_PARTS = 'unfinished', 'unfinished_temp'
TEMPORARY_NAMES = (rf'{_WRITTEN_OR_PART}|{_UNFINISHED_PARTS}|ckpt-\d+_temp|'
                   r'(checkpoint|agent\.json|spec\.json|means\.json)\.tmp')


class Checkpointer:
  """Saves and restores weights, optimizer slots and counters.

  `description` describes the agent, and `train_time_s` are the seconds trained
  over all parts of the run.
  """

  def __init__(self, logdir: str, learner: learner_lib.Learner,
               description: str, level: str | None = None,
               max_to_keep: int = 3, allow_other_level: bool = False):
    """Checks the directory; writes nothing yet.

    Args:
      logdir: the directory; made if missing.
      learner: the learner to save and restore.
      description: describes the agent, see `algorithms.describe`. A directory
        of an agent with another description is refused.
      level: the levels of the training; None to only read. A directory of a run
        on other levels is refused.
      max_to_keep: number of checkpoints to keep.
      allow_other_level: whether to accept a directory of other levels.

    Raises:
      CheckpointError: `logdir` cannot be written or holds another agent.
    """
    self.learner = learner
    self._logdir = logdir
    self._identity = {'agent': description, 'level': level}
    self.description = description
    self.train_time_s = 0.0
    files.check_directory(logdir, self._identity, allow_other_level)
    self._directory = whole_files.SameDirectory(logdir)
    # TensorFlow saves variables, so the counters of the host are copied.
    self._num_env_frames = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._num_updates = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._train_time_s = tf.Variable(0.0, dtype=tf.float64, trainable=False)
    self._checkpoint = tf.train.Checkpoint(
        num_env_frames=self._num_env_frames, num_updates=self._num_updates,
        train_time_s=self._train_time_s,
        **{name: files.tf_variables(variables)
           for name, variables in learner.state.items() if variables})
    self._max_to_keep = max_to_keep
    self._latest = latest_checkpoint(logdir)
    # Updates of the latest checkpoint, if this object wrote or restored it.
    self._num_updates_saved: int | None = None

  def restore(self, put_aside: bool = True) -> str | None:
    """Restores the latest good checkpoint; returns the path, or None.

    With `put_aside`, later checkpoints, which are damaged, are renamed, and a
    line is printed. Raises CheckpointError if no checkpoint fits this agent, or
    the system cannot read the files.
    """
    if self._latest is None:
      return None
    path, damaged = files.restore_good(
        self._latest, self._checkpoint, all_of_it=True)
    for name in damaged if put_aside else []:
      files.put_aside(self._logdir, name)
      print(f'{os.path.join(self._logdir, name)} is damaged, and kept as '
            f'{files.DAMAGED}{name}.')
    self._latest = path
    self.learner.num_env_frames = int(self._num_env_frames)
    self.learner.num_updates = int(self._num_updates)
    self.train_time_s = float(self._train_time_s)
    self._num_updates_saved = self.learner.num_updates
    return path

  @property
  def latest_number(self) -> int:
    """The number of the latest checkpoint, 0 if there is none."""
    return files.number(self._latest) if self._latest else 0

  @property
  def next_name(self) -> str:
    """The name of the checkpoint that `save` writes.

    The number is the number of updates, or higher: the latest checkpoint is
    never overwritten. If a user made the file `checkpoint` name an older
    checkpoint, later checkpoints are overwritten.
    """
    number = self.learner.num_updates
    if self._latest and self._num_updates_saved != number:
      number = max(number, files.number(self._latest) + 1)
    return f'ckpt-{number}'

  def save(self) -> str:
    """Writes a checkpoint and returns its path.

    Writes nothing if there was no update since the latest checkpoint, which
    stays on errors.

    Raises:
      DivergedError: a weight, or a number of the optimizer, is not finite.
      SaveError: the files cannot be written.
    """
    with self.as_save_errors():
      return self._save()

  @contextlib.contextmanager
  def as_save_errors(self) -> Iterator[None]:
    """Turns errors of the system into `SaveError`.

    Raises SaveError at once if the directory is another one now.
    """
    self._directory.check()
    try:
      yield
    except (OSError, tf.errors.OpError) as e:
      raise errors.SaveError(
          f'The checkpoint of {self.learner.num_env_frames:,} frames could '
          f'not be written to {self._logdir}: {errors.reason(e)}.') from e

  def _save(self) -> str:
    self._check_finite()
    files.write_if_new(
        files.identity_path(self._logdir), json.dumps(self._identity))
    # As arrays: TensorFlow never frees the tensor of a Python number.
    learner = self.learner
    self._num_env_frames.assign(np.array(learner.num_env_frames))
    self._num_updates.assign(np.array(learner.num_updates))
    self._train_time_s.assign(np.array(self.train_time_s))
    if self._latest and self._num_updates_saved == learner.num_updates:
      return self._latest  # Another write could only do damage.
    return self._write(self.next_name)

  def _check_finite(self) -> None:
    """Raises DivergedError if a number that would be saved is not finite."""
    for kind, variables in self.learner.state.items():
      for variable in variables:
        # A layer with dropout also has integers, the state of a seed.
        if tf.as_dtype(variable.dtype).is_floating and not bool(
            tf.reduce_all(tf.math.is_finite(variable))):
          name = getattr(variable, 'path', variable.name)  # Keras has paths.
          good = self._latest and files.newest_finite(self._latest)
          start = f'Resume from {good}, the last good one,' if good else 'Train'
          what = ('numbers of the optimizer' if kind == 'optimizer' else
                  'weights')
          raise errors.DivergedError(
              f'Training diverged: the {what} are not finite ({name}) '
              f'and were not saved. {start} with a lower --learning_rate or '
              'with --clip_gradient_norm.')

  def _write(self, name: str) -> str:
    """Writes the files; a kill between any two leaves a usable directory."""
    path = os.path.join(self._logdir, name)
    if os.path.basename(files.named(self._logdir) or '') == name:
      # A lost checkpoint: half of the new one must not have the name.
      if self._latest:
        files.make_latest(self._logdir, os.path.basename(self._latest))
      else:
        os.remove(os.path.join(self._logdir, 'checkpoint'))
    self._checkpoint.save_counter.assign_add(1)  # Restoring needs a count.
    is_renamed = False
    try:
      with layers.root_logger_kept():
        self._checkpoint.write(os.path.join(self._logdir, _UNFINISHED))
      # `.data-*` before `.index`: a checkpoint with an index counts as whole.
      for file in sorted(os.listdir(self._logdir)):
        if re.fullmatch(_WRITTEN, file):
          whole_files.sync(os.path.join(self._logdir, file))
          is_renamed = True
          os.replace(os.path.join(self._logdir, file),
                     path + file[len(_UNFINISHED):])
      self._write_state(name)
    except (OSError, tf.errors.OpError):
      # On a full disk, a checkpoint that does not count would take the room of
      # the next one. Without the file `checkpoint`, a whole one counts.
      self._remove_unfinished()
      named = os.path.basename(files.named(self._logdir) or name)
      if is_renamed and named != name:
        files.remove(self._logdir, name)
      raise
    self._latest = path
    self._num_updates_saved = self.learner.num_updates
    self._delete_old(name)
    return path

  def _remove_unfinished(self) -> None:
    for file in os.listdir(self._logdir):
      path = os.path.join(self._logdir, file)
      with contextlib.suppress(OSError):
        if file == _UNFINISHED_PARTS:
          shutil.rmtree(path)
        elif re.fullmatch(_WRITTEN_OR_PART, file):
          os.remove(path)

  def _write_state(self, name: str) -> None:
    """Names the latest checkpoint in the file `checkpoint`."""
    lines = [f'model_checkpoint_path: "{name}"']
    for one in self._names_to_keep(name):
      index = os.path.join(self._logdir, f'{one}.index')
      saved_s = os.path.getmtime(index) if os.path.exists(index) else 0.0
      lines += [f'all_model_checkpoint_paths: "{one}"',
                f'all_model_checkpoint_timestamps: {saved_s}']
    whole_files.write(
        os.path.join(self._logdir, 'checkpoint'), '\n'.join(lines) + '\n')

  def _names_to_keep(self, name: str) -> list[str]:
    """Returns the names of the checkpoints to keep, `name` as the last.

    Checkpoints after `name`, which exist if a user went back to an older
    checkpoint, stay as well but have no place in this list.
    """
    older = files.older_than(os.path.join(self._logdir, name))
    return [*older, name][-self._max_to_keep:]

  def _delete_old(self, name: str) -> None:
    first = files.number(self._names_to_keep(name)[0])
    for file in sorted(os.listdir(self._logdir)):  # `.index` at last.
      number = files.number_of_file(file)
      if number is not None and number < first:
        os.remove(os.path.join(self._logdir, file))


class BestCheckpoint:
  """Keeps the checkpoint with the highest mean return, in `<logdir>/best`.

  The directory is like the log directory of a run: agents there can be tested
  and trained further. `mean` is the highest mean return so far, minus infinity
  before the first.
  """

  def __init__(self, logdir: str, learner: learner_lib.Learner,
               description: str, level: str):
    """Reads the mean of an earlier part of the run in `logdir`."""
    self.logdir = os.path.join(logdir, 'best')
    self._checkpointer = Checkpointer(
        self.logdir, learner, description, level, max_to_keep=1)
    self._means = files.read_means(self.logdir)
    self._name = os.path.basename(latest_checkpoint(self.logdir) or '')
    self.mean = self._means.get(self._name, -math.inf)

  def offer(self, mean: float, train_time_s: float) -> bool:
    """Saves the learner if `mean` is the highest; returns whether saved.

    Raises errors as `Checkpointer.save` does; then the best checkpoint stays.
    """
    if not mean > self.mean:
      return False
    name = self._checkpointer.next_name
    # Keep both means: the file `checkpoint` decides which mean applies.
    before = {self._name: self.mean} if self._name in self._means else {}
    self._means = {**before, name: mean}
    with self._checkpointer.as_save_errors():
      whole_files.write(os.path.join(self.logdir, files.MEANS),
                        json.dumps(self._means))
    self._checkpointer.train_time_s = train_time_s
    self._checkpointer.save()
    self._name, self.mean = name, mean
    return True


def holds_agent(logdir: str) -> bool:
  """Returns whether a directory has a checkpoint, or weights of the zoo."""
  return bool(latest_checkpoint(logdir)) or os.path.exists(weights.path(logdir))


def restore_agent(logdir: str, agent: agents.Agent, description: str) -> int:
  """Restores the weights of an agent from the latest good checkpoint.

  `description` is the expected agent, see `Checkpointer`. Returns the
  environment frames that the agent was trained for.

  Raises:
    CheckpointError: there is no checkpoint, all are damaged, or the latest one
      is of another agent.
  """
  path = latest_checkpoint(logdir)
  if not holds_agent(logdir):
    raise errors.CheckpointError(f'--logdir={logdir} holds no checkpoint.')
  files.check_identity(logdir, {'agent': description})
  if path is None:
    return weights.restore(logdir, agent)
  num_env_frames = tf.Variable(0, dtype=tf.int64, trainable=False)
  good, damaged = files.restore_good(path, tf.train.Checkpoint(
      variables=files.tf_variables(agent.variables),
      num_env_frames=num_env_frames))
  if damaged:
    print(f'{", ".join(damaged)} of {logdir} is damaged: using {good}.')
  return int(num_env_frames)


def save_spec(logdir: str, spec: structs.EnvironmentSpec) -> None:
  """Writes the spec of the agent in `logdir`; CheckpointError on failure."""
  try:
    files.write_if_new(_spec_path(logdir), json.dumps(spec.to_json()))
  except OSError as e:
    raise errors.CheckpointError(
        f'{_spec_path(logdir)} cannot be written: {e.strerror}.') from e


def saved_spec(logdir: str) -> structs.EnvironmentSpec | None:
  """Returns the spec that was written to `logdir`, None if not known."""
  try:
    spec = structs.EnvironmentSpec.from_json(
        whole_files.read_json(_spec_path(logdir)))
    units.Units(spec.units)
    return spec
  except (ArithmeticError, AttributeError, LookupError, OSError, TypeError,
          ValueError):
    return None  # An older run, or damaged.


def _spec_path(logdir: str) -> str:
  return os.path.join(logdir, 'spec.json')
