# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of checkpoints: nothing is lost, nothing foreign is loaded."""

import contextlib
import errno
import functools
import gc
import glob
import io
import os
import pathlib
import shutil
import types
from unittest import mock

from absl.testing import parameterized
import eager
import learner_test
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.experience import structs
from scalable_agent.modes import loading
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
import tensorflow as tf
import tree

# TensorFlow reads paths as patterns. This one does not match itself.
_PATTERN = 'a[b]*?'


def _tiny_learner(num_updates=0):
  """Returns a fake learner for a checkpointer; its weight is its number."""
  variables = [tf.Variable(float(num_updates)) for _ in range(2)]
  return types.SimpleNamespace(
      agent=types.SimpleNamespace(variables=variables[:1]),
      state={'variables': variables[:1], 'optimizer': variables[1:],
             'unpublished': [], 'targets': []},
      num_env_frames=num_updates, num_updates=num_updates)


def _step(learner, count=1):
  for variable in (*learner.state['variables'], *learner.state['optimizer']):
    variable.assign_add(count)
  learner.num_env_frames += count
  learner.num_updates += count


def _restored(logdir):
  """Returns the number of updates that a new checkpointer restores, or None."""
  learner = _tiny_learner()
  if checkpointing.Checkpointer(logdir, learner, 'agent').restore() is None:
    return None
  [weight] = learner.agent.variables
  np.testing.assert_equal(int(weight), learner.num_updates)
  return int(weight)


def _manager(logdir, learner):
  """Returns TensorFlow's objects, by which older programs saved."""
  counter = lambda count: tf.Variable(count, dtype=tf.int64)
  return tf.train.CheckpointManager(tf.train.Checkpoint(
      variables=learner.state['variables'],
      optimizer=learner.state['optimizer'],
      num_env_frames=counter(learner.num_env_frames),
      num_updates=counter(learner.num_updates),
      train_time_s=tf.Variable(0.0, dtype=tf.float64)), logdir, max_to_keep=3)


def _save(manager, learner):
  """Saves as an older program, whose counters were variables."""
  manager.checkpoint.num_updates.assign(learner.num_updates)
  manager.checkpoint.num_env_frames.assign(learner.num_env_frames)
  manager.save(learner.num_updates)


def _changed(path):
  """Returns what a write would change; reading changes the time of access."""
  stat = os.stat(path)
  return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _files_of(logdir, name):
  """Returns the content of the files of a checkpoint, by their names."""
  found = {}
  for file in os.listdir(logdir):
    if file.startswith(name):
      with open(os.path.join(logdir, file), 'rb') as f:
        found[file] = f.read()
  return found


def _damage(path, how):
  [data] = glob.glob(f'{path}.data*')
  if how == 'removed':
    os.remove(data)
  elif how == 'one bit':
    with open(data, 'r+b') as f:
      f.seek(os.path.getsize(data) // 2)
      byte = f.read(1)[0]
      f.seek(-1, os.SEEK_CUR)
      f.write(bytes([byte ^ 1]))
  else:
    os.truncate(data if how == 'cut' else f'{path}.index', 10)


class _Killed(Exception):
  """Stands for the end of the process."""


@contextlib.contextmanager
def _killed_after(num_operations):
  """Raises `_Killed` in place of the next operation on files."""
  left = [num_operations]

  def counted(function):
    def call(*args, **kwargs):
      left[0] -= 1
      if left[0] < 0:
        raise _Killed()
      return function(*args, **kwargs)
    return call

  with mock.patch.object(os, 'replace', counted(os.replace)), \
      mock.patch.object(os, 'remove', counted(os.remove)), \
      mock.patch.object(tf.train.Checkpoint, 'write',
                        counted(tf.train.Checkpoint.write)):
    yield


class CheckpointerTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters('rmsprop', 'adam')
  @pytest.mark.slow
  def test_resumed_update_equals_the_uninterrupted_one(self, optimizer):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner(seed=1, optimizer=optimizer)
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    self.assertIsNone(checkpointer.restore())
    for seed in range(3):
      learner.step(learner_test.random_batch(learner, seed))
    checkpointer.train_time_s = 12.5
    checkpointer.save()

    # A new process begins with other weights and empty optimizer slots.
    resumed = learner_test.make_learner(seed=2, optimizer=optimizer)
    restored = checkpointing.Checkpointer(logdir, resumed, 'agent')
    self.assertIsNotNone(restored.restore())
    self.assertEqual(resumed.num_env_frames, 3 * 12800)
    self.assertEqual(resumed.num_updates, 3)
    self.assertEqual(restored.train_time_s, 12.5)

    batch = learner_test.random_batch(learner, 7)
    expected, found = (each.step(batch).scalars
                       for each in (learner, resumed))
    for name in expected:
      self.assertAllEqual(expected[name], found[name])
    for kind in ('variables', 'optimizer'):
      self.assertNotEmpty(learner.state[kind])
      for one, other in zip(learner.state[kind], resumed.state[kind],
                            strict=True):
        self.assertAllEqual(one, other)

  def test_another_agent_is_refused_and_nothing_is_overwritten(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'mlp with LSTM').save()
    before = {p: open(p, 'rb').read() for p in glob.glob(logdir + '/*')}
    with self.assertRaisesRegex(errors.CheckpointError,
                                'mlp with LSTM.*deep.*another --logdir'):
      checkpointing.Checkpointer(logdir, learner, 'deep')
    self.assertEqual(
        before, {p: open(p, 'rb').read() for p in glob.glob(logdir + '/*')})

  def test_another_level_is_refused_unless_allowed_or_only_read(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent', level='A').save()
    with self.assertRaisesRegex(errors.CheckpointError,
                                'another level \\(A\\), not B'):
      checkpointing.Checkpointer(logdir, learner, 'agent', level='B')
    for kwargs in {}, {'level': 'B', 'allow_other_level': True}:
      self.assertIsNotNone(checkpointing.Checkpointer(
          logdir, learner, 'agent', **kwargs).restore())
    # What was allowed is that of the directory from now on, once it is saved.
    learner.num_updates += 1
    checkpointing.Checkpointer(
        logdir, learner, 'agent', 'B', allow_other_level=True).save()
    checkpointing.Checkpointer(logdir, learner, 'agent', 'B')
    self.assertIsNotNone(
        checkpointing.Checkpointer(logdir, learner, 'agent').restore())

  def test_directory_without_a_checkpoint_is_free(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'mlp')
    checkpointing.Checkpointer(logdir, learner, 'deep').save()

  def test_damaged_checkpoint(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    path = checkpointer.save()
    for name in glob.glob(path + '.data*'):
      os.truncate(name, 10)
    with self.assertRaisesRegex(errors.CheckpointError, path):
      checkpointing.Checkpointer(logdir, learner, 'agent').restore()

    self.assertTrue(os.path.exists(f'{path}.index'))  # Nothing was renamed.

  @parameterized.parameters('removed', 'cut', 'one bit', 'index cut')
  @eager.eagerly()
  def test_a_damaged_checkpoint_is_kept_aside(self, how):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    weights = []
    for _ in range(3):
      learner.step(learner_test.random_batch(learner))
      latest = checkpointer.save()
      weights.append([v.numpy() for v in learner.agent.variables])
    _damage(latest, how)
    others = _files_of(logdir, 'ckpt-3')
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      restorer = checkpointing.Checkpointer(logdir, learner, 'agent')
      self.assertEqual(restorer.restore(), os.path.join(logdir, 'ckpt-2'))
    self.assertEqual(output.getvalue(),
                     f'{latest} is damaged, and kept as damaged-ckpt-3.\n')
    self.assertEqual(learner.num_updates, 2)
    tree.map_structure(np.testing.assert_array_equal, weights[1],
                       [v.numpy() for v in learner.agent.variables])
    self.assertEmpty(_files_of(logdir, 'ckpt-3'))
    self.assertEqual(_files_of(logdir, 'damaged-ckpt-3'), {
        f'damaged-{name}': content for name, content in others.items()})
    # It is said once. The run goes on, and saves under the name again.
    with contextlib.redirect_stdout(output := io.StringIO()):
      restorer = checkpointing.Checkpointer(logdir, learner, 'agent')
      self.assertEqual(restorer.restore(), os.path.join(logdir, 'ckpt-2'))
    self.assertEmpty(output.getvalue())
    learner.step(learner_test.random_batch(learner))
    self.assertEqual(restorer.save(), latest)
    self.assertEqual(
        checkpointing.Checkpointer(logdir, learner, 'agent').restore(), latest)

  @eager.eagerly()
  def test_a_test_uses_the_newest_good_one_and_changes_nothing(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    _damage(checkpointer.save(), 'cut')
    before = _files_of(logdir, '')
    with contextlib.redirect_stdout(output := io.StringIO()):
      self.assertEqual(
          checkpointing.restore_agent(logdir, learner.agent, 'agent'), 0)
    self.assertEqual(output.getvalue(), f'ckpt-1 of {logdir} is damaged: '
                     f'using {logdir}/ckpt-0.\n')
    self.assertEqual(_files_of(logdir, ''), before)

  @parameterized.parameters(True, False)
  @eager.eagerly()
  def test_a_checkpoint_of_deepminds_program_is_said(self, has_state):
    logdir = self.create_tempdir().full_path
    for name in 'model.ckpt-7.index', 'model.ckpt-7.data-00000-of-00001':
      open(os.path.join(logdir, name), 'w').close()
    if has_state:
      with open(os.path.join(logdir, 'checkpoint'), 'w') as f:
        f.write('model_checkpoint_path: "model.ckpt-7"\n')
    learner = learner_test.make_learner()
    for use in (lambda: checkpointing.Checkpointer(logdir, learner, 'agent'),
                lambda: loading.load(logdir)):
      with self.assertRaisesRegex(
          errors.CheckpointError, "of DeepMind's program \\(TensorFlow 1\\), .*"
          'Use another --logdir'):
        use()

  @parameterized.parameters(None, b'', b'garbled', b'\xff\xfe',
                            b'model_checkpoint_path: "ckpt-7"')
  @eager.eagerly()
  def test_lost_name_of_the_latest_checkpoint(self, content):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    latest = checkpointer.save()
    path = os.path.join(logdir, 'checkpoint')
    os.remove(path)
    if content is not None:
      with open(path, 'wb') as f:
        f.write(content)
    self.assertEqual(checkpoint_files.latest_number(logdir), 1)
    restorer = checkpointing.Checkpointer(logdir, learner, 'agent')
    self.assertEqual(restorer.restore(), latest)
    learner.step(learner_test.random_batch(learner))
    restorer.save()
    with open(path) as f:
      self.assertStartsWith(f.read(), 'model_checkpoint_path: "ckpt-2"')

  @eager.eagerly()
  def test_a_checkpoint_of_which_a_part_was_copied_is_an_error(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    first = checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    latest = checkpointer.save()
    os.remove(f'{latest}.index')
    before = _files_of(logdir, '')
    [data] = glob.glob(f'{latest}.data*')
    with self.assertRaisesRegex(errors.CheckpointError, (
        f'^{latest}.index, a part of the latest checkpoint, is missing: .* '
        f'delete {data}.$')):
      checkpointing.Checkpointer(logdir, learner, 'agent')
    self.assertEqual(_files_of(logdir, ''), before)
    os.remove(data)
    self.assertEqual(checkpointing.latest_checkpoint(logdir), first)

  @parameterized.parameters(False, True)
  @eager.eagerly()
  def test_a_kill_while_a_lost_checkpoint_is_written_again(self, has_older):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    older = checkpointer.save() if has_older else None
    learner.step(learner_test.random_batch(learner))
    latest = checkpointer.save()
    for file in glob.glob(f'{latest}.*'):
      os.remove(file)
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    self.assertEqual(checkpointer.restore(), older)
    learner.step(learner_test.random_batch(learner))
    replace = os.replace

    def killed(source, target):
      if target == f'{latest}.index':
        raise KeyboardInterrupt
      replace(source, target)

    with mock.patch.object(os, 'replace', killed), \
        self.assertRaises(KeyboardInterrupt):
      checkpointer.save()
    self.assertEqual(checkpointing.latest_checkpoint(logdir), older)
    self.assertLen(glob.glob(f'{latest}.data*'), 1)

  @eager.eagerly()
  def test_tensorflow_says_nothing_after_the_error_of_another_agent(self):
    logdir = self.create_tempdir().full_path
    checkpointing.Checkpointer(
        logdir, learner_test.make_learner(), 'agent').save()
    with self.assertNoLogs(tf.get_logger(), 'WARNING'):
      with self.assertRaisesRegex(errors.CheckpointError, 'does not fit'):
        checkpointing.Checkpointer(
            logdir, learner_test.make_learner(network='shallow', spec=(
                learner_test._SPEC._replace(shape=(84, 84, 3)))),
            'agent').restore()
      gc.collect()

  def test_agent_json_is_replaced_whole_and_only_if_it_differs(self):
    logdir = self.create_tempdir().full_path
    path = os.path.join(logdir, 'agent.json')
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    with open(path, encoding='utf-8') as f:
      whole = f.read()
    before = _changed(path)
    checkpointer.save()
    self.assertEqual(_changed(path), before)

    with open(path, 'w', encoding='utf-8') as f:
      f.write('{"old')
    with mock.patch.object(os, 'replace', side_effect=KeyboardInterrupt):
      with self.assertRaises(KeyboardInterrupt):
        checkpointer.save()
    with open(path, encoding='utf-8') as f:
      self.assertEqual(f.read(), '{"old')
    checkpointer.save()
    with open(path, encoding='utf-8') as f:
      self.assertEqual(f.read(), whole)

  @parameterized.parameters(b'', b'{"agent', b'[1]', b'null', b'\xff')
  def test_damaged_agent_json(self, content):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    path = os.path.join(logdir, 'agent.json')
    with open(path, 'wb') as f:
      f.write(content)
    with self.assertRaisesRegex(errors.CheckpointError,
                                'agent.json is damaged. Delete this file if'):
      checkpointing.Checkpointer(logdir, learner, 'agent')
    os.remove(path)  # The advice works.
    self.assertIsNotNone(
        checkpointing.Checkpointer(logdir, learner, 'agent').restore())

  def test_diverged_run_ends_with_one_line(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    learner.agent.variables[0].assign(
        np.nan * np.ones(learner.agent.variables[0].shape))

    def run(unused_config):
      try:
        raise errors.DivergedError('The loss is nan.')
      finally:
        checkpointer.save()

    error = io.StringIO()
    with mock.patch.object(training, 'train_as_set', run):
      with contextlib.redirect_stderr(error):
        self.assertEqual(experiment.main(['experiment.py']), 1)
    self.assertRegex(error.getvalue(),
                     r'^scalable_agent: Training diverged: .* were not saved\. '
                     r'Train with a lower --learning_rate .*\.\n$')
    self.assertNotIn('None', error.getvalue())
    self.assertIsNone(tf.train.latest_checkpoint(logdir))

  @eager.eagerly()
  def test_weights_that_are_not_finite_are_not_saved(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    good = checkpointer.save()
    learner.step(learner_test.random_batch(learner))
    learner.agent.variables[0].assign(
        np.nan * np.ones(learner.agent.variables[0].shape))
    with self.assertRaisesRegex(errors.DivergedError, good):
      checkpointer.save()
    self.assertEqual(tf.train.latest_checkpoint(logdir), good)

  @eager.eagerly()
  def test_an_optimizer_that_is_not_finite_is_not_saved(self):
    logdir = self.create_tempdir().full_path
    learner = learner_test.make_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    good = checkpointer.save()

    def step():
      learner.step(learner_test.random_batch(learner))
      moments = [v for v in learner.state['optimizer'] if v.shape.rank][0]
      moments.assign(np.inf * np.ones(moments.shape))

    step()
    with self.assertRaisesRegex(
        errors.DivergedError, f'numbers of the optimizer.*Resume from {good},'):
      checkpointer.save()
    # A program of before has saved it.
    with mock.patch.object(checkpointer, '_check_finite'):
      bad = checkpointer.save()
    step()
    with self.assertRaisesRegex(errors.DivergedError, f'Resume from {good},'):
      checkpointer.save()
    self.assertNotEqual(good, bad)
    for file in os.listdir(logdir):
      if file.startswith(os.path.basename(good)):
        os.remove(os.path.join(logdir, file))
    with self.assertRaisesRegex(errors.DivergedError, r'saved\. Train with'):
      checkpointer.save()

  @parameterized.parameters(*declare.ALGORITHMS)
  def test_no_algorithm_saves_a_number_that_is_not_finite(self, algorithm):
    action = (structs.ActionSpec(size=2)
              if algorithm in ('ddpg', 'td3', 'sac', 'mpo')
              else structs.ActionSpec((3,)))
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((2,), np.dtype(np.float32)), action, 1)
    config = config_lib.Config(
        algorithm=algorithm, agent='mlp', optimizer='adam', num_actors=4)
    logdir = self.create_tempdir().full_path
    learner = setup.make_learner(config, spec)
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    good = checkpointer.save()
    variables = [v for v in tf.nest.flatten(learner.state)
                 if tf.as_dtype(v.dtype).is_floating]
    self.assertTrue(any('velocity' in getattr(v, 'path', v.name)
                        for v in learner.state['optimizer']))
    learner.num_updates += 1
    # The good checkpoint stays as it is, so one reading is enough.
    self.enter_context(mock.patch.object(
        checkpointing.files, 'newest_finite',
        functools.cache(checkpointing.files.newest_finite)))
    for variable in variables:
      before = variable.numpy()
      variable.assign(np.full_like(before, np.inf))
      with self.assertRaisesRegex(errors.DivergedError, f'from {good},'):
        checkpointer.save()
      variable.assign(before)
    other = setup.make_learner(config, spec)
    checkpointing.Checkpointer(logdir, other, 'agent').restore()
    for one, same in zip(tf.nest.flatten(learner.state),
                         tf.nest.flatten(other.state), strict=True):
      np.testing.assert_array_equal(one.numpy(), same.numpy())

  def test_a_relative_directory_is_that_of_the_start(self):
    parent = self.create_tempdir().full_path
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(parent)
    found = []

    def run(config, *_):
      os.chdir('/')
      found.append(config.logdir)
      return 0

    with mock.patch.object(training, 'run', run):
      training.train(config_lib.Config(logdir='log'))
    self.assertEqual(found, [os.path.join(os.path.realpath(parent), 'log')])
    self.assertEmpty(os.listdir(parent))  # The lock as well.

  def test_files_of_the_user_that_are_named_alike_stay(self):
    logdir = self.create_tempdir()
    names = ['unfinished.txt', 'ckpt-0.md', 'unfinished.index.md']
    for name in names:
      logdir.create_file(name, 'mine')
    learner = learner_test.make_learner()
    checkpointing.Checkpointer(logdir.full_path, learner, 'agent').save()
    checkpoint_files.put_aside(logdir.full_path, 'ckpt-0')
    self.assertContainsSubset(names, os.listdir(logdir.full_path))

  def test_directory_that_cannot_be_used(self):
    path = self.create_tempfile().full_path
    with self.assertRaisesRegex(errors.CheckpointError,
                                'cannot be used.*may write'):
      checkpointing.Checkpointer(os.path.join(path, 'logdir'),
                                 learner_test.make_learner(), 'agent')

  @parameterized.parameters(_PATTERN, 'a*', '[', 'a\\b', ' ä')
  def test_directory_named_like_a_pattern(self, name):
    parent = self.create_tempdir().full_path
    logdir = os.path.join(parent, name, 'run')
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    for number in range(1, 6):
      _step(learner)
      path = checkpointer.save()
      self.assertEqual(path, os.path.join(logdir, f'ckpt-{number}'))
      self.assertEqual(checkpointing.latest_checkpoint(logdir), path)
      self.assertEqual(checkpoint_files.latest_number(logdir), number)
      self.assertEqual(_restored(logdir), number)
    self.assertCountEqual(os.listdir(logdir), [
        'agent.json', 'checkpoint',
        *(f'ckpt-{n}.{part}' for n in (3, 4, 5)
          for part in ('index', 'data-00000-of-00001'))])

  def test_neighbour_that_matches_is_left_alone(self):
    parent = self.create_tempdir().full_path
    for name in ('ab', 'a*'):
      learner = _tiny_learner()
      checkpointer = checkpointing.Checkpointer(
          os.path.join(parent, name), learner, 'agent')
      for _ in range(3 if name == 'ab' else 9):
        _step(learner)
        checkpointer.save()
    self.assertEqual(_restored(os.path.join(parent, 'ab')), 3)
    self.assertLen(os.listdir(os.path.join(parent, 'ab')), 8)

  def test_relative_directory(self):
    before = os.getcwd()
    self.addCleanup(os.chdir, before)
    os.chdir(self.create_tempdir().full_path)
    for logdir in ('run', f'{_PATTERN}/run', '.'):
      learner = _tiny_learner(1)
      checkpointing.Checkpointer(logdir, learner, 'agent').save()
      self.assertEqual(_restored(logdir), 1)
      self.assertEqual(_restored(os.path.abspath(logdir)), 1)

  def test_older_program_reads_what_is_written(self):
    logdir = self.create_tempdir().full_path
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    for _ in range(5):
      _step(learner)
      path = checkpointer.save()
    self.assertEqual(tf.train.latest_checkpoint(logdir), path)
    older = _tiny_learner()
    manager = _manager(logdir, older)
    self.assertEqual(manager.checkpoints, [
        os.path.join(logdir, f'ckpt-{n}') for n in (3, 4, 5)])
    manager.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    self.assertEqual(int(older.agent.variables[0]), 5)
    older.num_updates = int(manager.checkpoint.num_updates)
    _step(older)
    _save(manager, older)
    self.assertFalse(os.path.exists(os.path.join(logdir, 'ckpt-3.index')))
    self.assertEqual(_restored(logdir), 6)

  @parameterized.parameters('run', _PATTERN)
  def test_what_an_older_program_has_written_is_read(self, name):
    logdir = os.path.join(self.create_tempdir().full_path, name)
    learner = _tiny_learner()
    manager = _manager(logdir, learner)
    for _ in range(5):
      _step(learner)
      _save(manager, learner)
    self.assertEqual(_restored(logdir), 5)
    resumed = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, resumed, 'agent')
    checkpointer.restore()
    _step(resumed)
    checkpointer.save()
    self.assertEqual(_restored(logdir), 6)
    # Older programs never deleted these in such a directory.
    self.assertCountEqual(
        [f for f in os.listdir(logdir) if f.endswith('.index')],
        ['ckpt-4.index', 'ckpt-5.index', 'ckpt-6.index'])

  @pytest.mark.slow
  def test_kill_between_two_file_operations(self):

    def run(logdir, num_operations):
      """Saves 1 to 4; returns the last save, and whether all of it was done."""
      learner = _tiny_learner()
      checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
      saved = None
      try:
        with _killed_after(num_operations):
          for saved_next in range(1, 5):
            _step(learner)
            checkpointer.save()
            saved = saved_next
      except _Killed:
        return saved, False
      return saved, True

    parent = self.create_tempdir().full_path
    is_complete, num_operations = False, 0
    while not is_complete:
      logdir = os.path.join(parent, f'{_PATTERN}{num_operations}')
      saved, is_complete = run(logdir, num_operations)
      restored = _restored(logdir)
      self.assertIn(restored, (saved, (saved or 0) + 1))
      self.assertEqual(checkpoint_files.latest_number(logdir), restored or 0)
      # The run goes on, and nothing is left behind.
      learner = _tiny_learner()
      checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
      checkpointer.restore()
      for _ in range(4):
        _step(learner)
        checkpointer.save()
      self.assertEqual(_restored(logdir), (restored or 0) + 4)
      self.assertLen(os.listdir(logdir), 8, os.listdir(logdir))
      num_operations += 1
    self.assertGreater(num_operations, 4 * 4)

  def test_write_that_was_cut_off_is_replaced(self):
    logdir = self.create_tempdir().full_path
    learner = _tiny_learner(1)
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    for name in ('unfinished.index', 'unfinished.data-00000-of-00001'):
      with open(os.path.join(logdir, name), 'wb') as f:
        f.write(b'cut off')
    self.assertEqual(_restored(logdir), 1)
    _step(learner)
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    self.assertEqual(_restored(logdir), 2)
    self.assertLen(os.listdir(logdir), 6)

  def _with_checkpoints_10_20_30(self):
    logdir = self.create_tempdir().full_path
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    for _ in range(3):
      _step(learner, 10)
      checkpointer.save()
    return logdir

  def test_start_over_from_an_older_checkpoint(self):
    logdir = self._with_checkpoints_10_20_30()
    with open(os.path.join(logdir, 'checkpoint'), 'w') as f:
      f.write('model_checkpoint_path: "ckpt-10"')
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.restore()
    for number in (11, 12, 13, 14):
      _step(learner)
      checkpointer.save()
      self.assertEqual(_restored(logdir), number)
    self.assertCountEqual(
        [f for f in os.listdir(logdir) if f.endswith('.index')],
        [f'ckpt-{n}.index' for n in (12, 13, 14, 20, 30)])

  def test_the_time_before_a_start_over_is_no_replacement(self):
    logdir = self._with_checkpoints_10_20_30()
    checkpoint_files.make_latest(logdir, 'ckpt-30')  # By hand, without a list.
    self.assertEqual(checkpoint_files.older_than(f'{logdir}/ckpt-30'),
                     ['ckpt-10', 'ckpt-20'])
    checkpoint_files.make_latest(logdir, 'ckpt-10')
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.restore()
    for kept in ([10, 18, 20, 30], [10, 18, 20, 26, 30], [18, 20, 26, 30, 34]):
      _step(learner, 8)
      path = checkpointer.save()
      self.assertEqual([int(name.partition('-')[2]) for name in
                        checkpoint_files.names(logdir)], kept)
    with open(f'{path}.index', 'w'):
      pass
    with contextlib.redirect_stdout(io.StringIO()):
      self.assertEqual(_restored(logdir), 26)
    self.assertEqual(_restored(logdir), 26)  # The latest one is put aside.
    file = pathlib.Path(logdir, 'checkpoint')
    file.write_text(file.read_text().replace(
        'model_checkpoint_path: "ckpt-34"', 'model_checkpoint_path: "ckpt-18"',
        1))
    self.assertEqual(checkpoint_files.older_than(f'{logdir}/ckpt-31'),
                     ['ckpt-18'])
    file.unlink()
    self.assertEqual(_restored(logdir), 30)

  def test_a_directory_of_another_run_stays_as_it_is(self):
    logdir = self.create_tempdir('logdir').full_path
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    best = checkpointing.BestCheckpoint(logdir, learner, 'agent', 'catch')
    _step(learner, 10)
    checkpointer.save()
    moved = f'{self.create_tempdir().full_path}/moved'
    os.rename(logdir, moved)
    other = checkpointing.Checkpointer(logdir, _tiny_learner(), 'agent')
    checkpointing.BestCheckpoint(logdir, learner, 'agent', 'catch')
    other.save()
    before = sorted(glob.glob(f'{logdir}/**', recursive=True))
    _step(learner)
    for save in checkpointer.save, lambda: best.offer(5., .5):
      with self.assertRaisesRegex(
          errors.SaveError, f'^{logdir}.* was deleted, moved or replaced'):
        save()
    self.assertEqual(
        sorted(glob.glob(f'{logdir}/**', recursive=True)), before)
    shutil.rmtree(logdir)
    with self.assertRaisesRegex(errors.SaveError, 'was deleted, moved or'):
      checkpointer.save()
    os.rename(moved, logdir)  # The user has seen the line.
    checkpointer.save()
    self.assertEqual(_restored(logdir), 11)

  def test_what_is_saved_already_is_not_put_at_risk(self):
    logdir = self.create_tempdir().full_path
    learner = _tiny_learner()
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    path = checkpointer.save()
    before = _changed(f'{path}.index')
    self.assertEqual(checkpointer.save(), path)
    resumed = checkpointing.Checkpointer(logdir, learner, 'agent')
    resumed.restore()
    self.assertEqual(resumed.save(), path)
    self.assertEqual(_changed(f'{path}.index'), before)

  @eager.eagerly()
  def test_latest_number(self):
    logdir = self.create_tempdir().full_path
    self.assertEqual(checkpoint_files.latest_number(logdir), 0)
    learner = learner_test.make_learner()
    learner.step(learner_test.random_batch(learner))
    checkpointing.Checkpointer(logdir, learner, 'agent').save()
    self.assertEqual(checkpoint_files.latest_number(logdir), 1)


class BestCheckpointTest(parameterized.TestCase):

  def _best(self, learner):
    return checkpointing.BestCheckpoint(
        self.logdir, learner, 'agent', level='catch')

  def _offer(self, best, learner, mean):
    """Makes an update, offers it."""
    _step(learner, 10)
    return best.offer(mean, 0.5)

  def _kept(self):
    """Returns the number of the kept weights, None if there are none."""
    learner = _tiny_learner()
    logdir = os.path.join(self.logdir, 'best')
    if checkpointing.latest_checkpoint(logdir) is None:
      return None
    frames = checkpointing.restore_agent(logdir, learner.agent, 'agent')
    self.assertEqual(frames, int(learner.agent.variables[0]))
    return frames

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir(_PATTERN).full_path

  def test_highest_is_kept_and_ties_keep_the_older(self):
    learner = _tiny_learner()
    best = self._best(learner)
    self.assertEqual(best.mean, -np.inf)
    kept = [(self._offer(best, learner, mean), self._kept())
            for mean in (-3., -4., -3., -2.5, np.nan, -2.5, 0., -np.inf)]
    self.assertEqual(kept, [
        (True, 10), (False, 10), (False, 10), (True, 40), (False, 40),
        (False, 40), (True, 70), (False, 70)])
    self.assertCountEqual(
        os.listdir(best.logdir),
        ['checkpoint', 'agent.json', 'means.json', 'ckpt-70.index',
         'ckpt-70.data-00000-of-00001'])

  def test_next_part_knows_the_mean(self):
    learner = _tiny_learner()
    best = self._best(learner)
    self._offer(best, learner, 1.)
    self._offer(best, learner, 5.)
    # This part went back to an older checkpoint.
    learner = _tiny_learner(5)
    best = self._best(learner)
    self.assertEqual(best.mean, 5)
    self.assertFalse(self._offer(best, learner, 5.))
    self.assertTrue(self._offer(best, learner, 6.))
    self.assertEqual(self._kept(), 25)
    self.assertEqual(self._best(learner).mean, 6)

  def test_half_a_checkpoint_takes_no_room(self):
    learner = _tiny_learner()
    logdir = self.create_tempdir().full_path
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    own = os.path.join(logdir, 'unfinished-thesis')

    def write(unused_self, path, *unused_args):
      # As TensorFlow does on a full disk.
      for name in ('.index.tempstate12', '.data-00000-of-00001'):
        pathlib.Path(path + name).touch()
      os.makedirs(os.path.join(f'{path}_temp', 'part'))
      pathlib.Path(own).touch()
      raise tf.errors.ResourceExhaustedError(None, None, 'No space left')

    with mock.patch.object(tf.train.Checkpoint, 'write', write):
      with self.assertRaisesRegex(errors.SaveError, 'No space left'):
        checkpointer.save()
    self.assertEqual([name for name in os.listdir(logdir)
                      if name.startswith('unfinished')], ['unfinished-thesis'])
    self.assertEqual(checkpointer.save(), os.path.join(logdir, 'ckpt-0'))

  @parameterized.parameters('checkpoint.tmp', '.index')
  def test_a_checkpoint_whose_name_cannot_be_written_takes_no_room(self, where):
    learner = _tiny_learner(1)
    logdir = self.create_tempdir().full_path
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    checkpointer.save()
    before = _files_of(logdir, '')
    _step(learner)
    fsync = os.fsync

    def full(descriptor):
      if os.readlink(f'/proc/self/fd/{descriptor}').endswith(where):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
      fsync(descriptor)

    with mock.patch.object(os, 'fsync', full):
      with self.assertRaisesRegex(errors.SaveError, 'No space left'):
        checkpointer.save()
    self.assertEqual(_files_of(logdir, ''), before)
    self.assertEqual(_restored(logdir), 1)
    checkpointer.save()
    self.assertEqual(_restored(logdir), 2)

  @parameterized.parameters(False, True)
  def test_a_checkpoint_that_counts_stays_after_an_error(self, has_older):
    learner = _tiny_learner(1)
    logdir = self.create_tempdir().full_path
    checkpointer = checkpointing.Checkpointer(logdir, learner, 'agent')
    if has_older:
      checkpointer.save()
    _step(learner)
    replace = os.replace

    def fail(source, target):
      if os.path.basename(target) != 'checkpoint':
        replace(source, target)
        return
      if has_older:  # Also the error of a file system that has replaced it.
        replace(source, target)
      raise OSError(errno.EIO, os.strerror(errno.EIO))

    with mock.patch.object(os, 'replace', fail):
      with self.assertRaisesRegex(errors.SaveError, 'Input/output error'):
        checkpointer.save()
    self.assertEqual(_restored(logdir), 2)

  def test_offer_that_does_not_fit_on_the_disk(self):
    learner = _tiny_learner()
    best = self._best(learner)
    self._offer(best, learner, 1.)
    no_space = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for where in 'builtins.open', 'os.replace':
      with mock.patch(where, side_effect=no_space):
        with self.assertRaisesRegex(errors.SaveError, 'No space left'):
          self._offer(best, learner, 5.)
      self.assertEqual(best.mean, 1.)
    self.assertTrue(self._offer(best, learner, 5.))

  @parameterized.parameters('', '[]', '{"ckpt-10": null}', '{"ckpt-9": 7}')
  def test_lost_mean(self, content):
    learner = _tiny_learner()
    best = self._best(learner)
    self._offer(best, learner, 1.)
    with open(os.path.join(best.logdir, 'means.json'), 'w') as f:
      f.write(content)
    best = self._best(learner)
    self.assertEqual(best.mean, -np.inf)
    self.assertTrue(self._offer(best, learner, -7.))

  def test_training_can_go_on_from_the_best(self):
    learner = _tiny_learner()
    best = self._best(learner)
    self._offer(best, learner, 1.)
    self.assertEqual(_restored(best.logdir), 10)

  def test_another_agent_is_refused(self):
    learner = _tiny_learner()
    self._offer(self._best(learner), learner, 1.)
    with self.assertRaisesRegex(errors.CheckpointError, 'another agent'):
      checkpointing.BestCheckpoint(self.logdir, learner, 'other', 'catch')

  @pytest.mark.slow
  def test_kill_between_two_file_operations(self):

    # Means of the updates of all parts, by number of the weights. A part begins
    # with the updates of a part before it, which a kill has undone.
    means = {number: mean for number, mean in (
        (10, 1.), (20, 2.), (30, 1.5), (40, 3.), (41, 1.), (21, 2.5),
        (31, 2.9), (51, 4.), (61, 4.))}
    parts = [(0, (10, 20, 30, 40)), (11, (21, 31, 41, 51, 61))]

    def run(part, num_operations):
      first, numbers = part
      learner = _tiny_learner(first)
      # Both parts find weights to keep after 40 updates.
      learner.num_updates = 0
      offered = []
      try:
        with _killed_after(num_operations):
          best = self._best(learner)
          for number in numbers:
            self._offer(best, learner, means[number])
            offered.append(number)
      except _Killed:
        return offered, False
      return offered, True

    parent = self.logdir
    total = 0
    for kills in range(2):
      is_complete, num_operations = False, 0
      while not is_complete:
        self.logdir = os.path.join(parent, f'{kills}-{num_operations}')
        offered = []
        if kills:
          offered, _ = run(parts[0], 10**9)
        more, is_complete = run(parts[kills], num_operations)
        offered += more
        kept = self._kept()
        highest = max((means[n] for n in offered), default=-np.inf)
        mean = self._best(_tiny_learner()).mean
        # Weights and mean belong together, and nothing better is lost.
        self.assertEqual(mean, means[kept] if kept else -np.inf)
        self.assertGreaterEqual(mean, highest)
        num_operations += 1
      total += num_operations
    self.assertGreater(total, 25)


# See `mutations.py`.
MUTATIONS = (
    dict(file='runs/checkpointing',
         catches='test_half_a_checkpoint_takes_no_room', rows=(
        ('half a checkpoint stays', '      self._remove_unfinished()\n', ''),
        ('parts stay', 'shutil.rmtree(path)', 'pass'),
    )),
    dict(file='runs/checkpointing',
         catches='test_a_checkpoint_whose_name_cannot_be_written_takes_no_room',
         rows=(
        ('a checkpoint without a name stays',
         '        files.remove(self._logdir, name)\n', '        pass\n'),
    )),
    dict(file='runs/checkpointing',
         catches='test_a_checkpoint_that_counts_stays_after_an_error', rows=(
        ('a named checkpoint is removed', 'if is_renamed and named != name:',
         'if is_renamed:'),
    )),
    dict(file='runs/checkpointing',
         catches='test_a_directory_of_another_run_stays_as_it_is', rows=(
        ('checkpoints of a run in the directory of another run',
         '    self._directory.check()\n', ''),
    )),
    dict(file='runs/checkpoint_files',
         catches='test_the_time_before_a_start_over_is_no_replacement', rows=(
        ('checkpoints of the time before a start over count',
         'or number(name) in listed and number(name) <= latest', 'or True'),
        ('older checkpoints than the listed ones do not count',
         'number(name) < min(listed)\n', 'False\n'),
        ('listed checkpoints after the latest one count',
         ' and number(name) <= latest]', ']'),
        ('a damaged checkpoint is replaced from the time that was left',
         '(older_than(path) if path else []) or names(logdir)',
         'names(logdir)'),
    )),
    dict(file='runs/checkpointing',
         catches='test_a_kill_while_a_lost_checkpoint_is_written_again', rows=(
        ('half of a checkpoint has the name of the latest',
         "files.named(self._logdir) or '') == name", "'') == name"),
    )),
    dict(file='runs/checkpoint_files',
         catches='test_a_checkpoint_of_deepminds_program_is_said', rows=(
        ('any other checkpoint', "if not found and glob.glob(f'",
         "if 0 and glob.glob(f'"),
        ('only without the name of the checkpoint',
         ".startswith('model.ckpt-')", ".startswith('no')"),
    )),
    dict(file='runs/checkpoint_files',
         catches='test_a_checkpoint_of_which_a_part_was_copied_is_an_error',
         rows=(
        ('a part of a checkpoint is deleted in silence',
         'if path and (parts :=', 'if False and (parts :='),
    )),
    dict(file='runs/checkpoint_files',
         catches='test_tensorflow_says_nothing_after_the_error_of_another_agent',
         rows=(
        ('TensorFlow has the last word',
         'tf.get_logger().addFilter(_is_restored)', 'pass'),
    )),
    dict(file='runs/checkpointing',
         catches='test_a_damaged_checkpoint_is_kept_aside', rows=(
        ('updates not restored',
         'self.learner.num_updates = int(self._num_updates)', 'pass'),
    )),
    dict(file='runs/checkpointing',
         catches='test_resumed_update_equals_the_uninterrupted_one', rows=(
        ('frames not restored',
         'self.learner.num_env_frames = int(self._num_env_frames)', 'pass'),
        ('time not restored', 'self.train_time_s = float(self._train_time_s)',
         'pass'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
