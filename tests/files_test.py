# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of files of a log directory: links, damage, and files of users."""

import json
import os
import pathlib
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.replay import saving
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.scores import evaluations
from scalable_agent.scores import files as score_files
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files

_BRACKETS = '[' * 100_000


class WholeTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = pathlib.Path(self.create_tempdir().full_path)
    self.thesis = pathlib.Path(self.create_tempdir().full_path, 'thesis')
    self.thesis.write_text('mine')

  def test_a_file_is_replaced_whole(self):
    path = self.logdir / 'a'
    files.write(str(path), 'größe')
    self.assertEqual(path.read_text('utf-8'), 'größe')
    with self.assertRaises(OSError), files.whole(str(path)) as f:
      f.write(b'half')
      raise OSError(28, 'full')
    with self.assertRaises(OSError), mock.patch.object(
        os, 'replace', side_effect=OSError(28, 'full')):
      files.write(str(path), 'not renamed')
    self.assertEqual(path.read_text('utf-8'), 'größe')
    self.assertEqual(os.listdir(self.logdir), ['a'])

  def _link(self, name):
    (self.logdir / name).symlink_to(self.thesis)

  def test_nothing_is_written_through_a_link(self):
    for name in (
        'settings.json.tmp', 'spec.json.tmp', 'evaluations.csv.tmp'):
      self._link(name)
    config = config_lib.Config(logdir=str(self.logdir))
    with self.assertRaisesRegex(
        errors.CheckpointError,
        r'/settings\.json cannot be written: .*/settings\.json\.tmp is a link'):
      config.save()
    with self.assertRaisesRegex(
        errors.ConfigError, r'evaluations\.csv cannot be used: .* a link'):
      evaluations.start(config.logdir, 0)
    with self.assertRaisesRegex(OSError, 'is a link'):
      checkpoint_files.write_if_new(str(self.logdir / 'spec.json'), '{}')
    self.assertEqual(self.thesis.read_text(), 'mine')
    self.assertTrue((self.logdir / 'settings.json.tmp').is_symlink())

  def test_a_directory_that_cannot_be_reached(self):
    outer = self.logdir / 'outer'
    (outer / 'inner').mkdir(parents=True)
    directory = files.SameDirectory(str(outer / 'inner'))
    directory.check()
    outer.rename(self.logdir / 'away')
    with self.assertRaisesRegex(errors.SaveError, 'was deleted, moved'):
      directory.check()
    outer.touch()
    with self.assertRaisesRegex(
        errors.SaveError, 'inner cannot be reached .Not a directory., so'):
      directory.check()
    outer.unlink()
    (self.logdir / 'away').rename(outer)
    directory.check()

  def test_evaluations_that_cannot_be_read_stay(self):
    path = self.logdir / 'evaluations.csv'
    path.symlink_to(path)
    with self.assertRaisesRegex(
        errors.ConfigError, 'evaluations.csv cannot be used: Too many levels'):
      evaluations.start(str(self.logdir), 0)
    self.assertTrue(path.is_symlink())
    self.assertEmpty(evaluations.read(str(self.logdir)))

  def test_a_saved_replay_is_deleted_but_not_the_files_of_a_user(self):
    directory = self.logdir / 'replay'
    self.assertFalse(saving.delete(str(directory)))
    directory.mkdir()
    for name in ('state.npz', 'replay-0-9.npz', 'replay-0-9.npz.tmp'):
      (directory / name).touch()
    self.assertTrue(saving.delete(str(directory)))
    self.assertFalse(directory.exists())
    (directory / 'notes').mkdir(parents=True)
    (directory / 'replay-of-mine.npz').touch()
    self.assertFalse(saving.delete(str(directory)))
    (directory / 'state.npz').touch()
    self.assertTrue(saving.delete(str(directory)))
    self.assertCountEqual(
        os.listdir(directory), ['notes', 'replay-of-mine.npz'])
    (directory / 'state.npz').touch()
    link = self.logdir / 'replay-1'
    link.symlink_to(directory)
    with self.assertRaisesRegex(OSError, 'is a link'):
      saving.delete(str(link))
    self.assertLen(os.listdir(directory), 3)


class JsonTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path

  def _write(self, name):
    pathlib.Path(self.logdir, name).write_text(_BRACKETS)
    return os.path.join(self.logdir, name)

  def test_brackets_are_a_value_error(self):
    with self.assertRaisesRegex(ValueError, 'too many brackets'):
      files.read_json(self._write('a.json'))

  def test_brackets_end_with_a_line(self):
    self._write('settings.json')
    with self.assertRaisesRegex(errors.ConfigError, 'too many brackets'):
      config_lib.trained_with(self.logdir)
    self._write('agent.json')
    with self.assertRaisesRegex(errors.CheckpointError, 'json is damaged'):
      checkpoint_files.check_identity(self.logdir, {'agent': 'a'})
    with self.assertRaisesRegex(errors.ConfigError, 'too many brackets'):
      score_files.read(self._write('scores-1-1.json'))

  def test_brackets_are_like_a_lost_file(self):
    self._write('spec.json')
    self.assertIsNone(checkpointing.saved_spec(self.logdir))
    self.assertEmpty(checkpoint_files.read_means(os.path.dirname(
        self._write('means.json'))))

  def test_a_damaged_spec_is_like_a_lost_file(self):
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((3,), np.dtype(np.float32)), structs.ActionSpec((2,)),
        1, {'a': 1})
    checkpointing.save_spec(self.logdir, spec)
    path = pathlib.Path(self.logdir, 'spec.json')
    whole = json.loads(path.read_text())
    self.assertIsNone(checkpointing.saved_spec(self.logdir))
    for key, value in (('observation', 'a text'),
                       ('num_action_repeats', float('inf'))):
      path.write_text(json.dumps({**whole, 'units': {}, key: value}))
      self.assertIsNone(checkpointing.saved_spec(self.logdir), key)


# See `mutations.py`.
MUTATIONS = (
    dict(file='settings/files',
         catches='test_a_directory_that_cannot_be_reached', rows=(
        ('another error',
         'except OSError as e:\n      raise errors.SaveError(',
         'except OSError as e:\n      raise RuntimeError('),
    )),
    dict(file='scores/evaluations',
         catches='test_evaluations_that_cannot_be_read_stay', rows=(
        ('no file', 'except FileNotFoundError:', 'except OSError:'),
    )),
    dict(file='settings/files', catches='test_a_file_is_replaced_whole', rows=(
        ('half a file is left', '      os.remove(temporary)', '      pass'),
        ('not renamed', 'os.replace(temporary, path)', 'os.rename(path, path)'),
    )),
    dict(file='settings/files',
         catches='test_nothing_is_written_through_a_link', rows=(
        ('links are followed', 'flags | os.O_NOFOLLOW', 'flags'),
    )),
    dict(file='settings/files', catches='test_brackets_are_a_value_error',
         rows=(('errors of brackets', 'except RecursionError',
                'except KeyError'),)),
    dict(file='replay/saving',
         catches='test_a_saved_replay_is_deleted_but_not_the_files_of_a_user',
         rows=(
        ('files of a user are deleted with a replay',
         'in os.listdir(directory) if _FILE.fullmatch(name)]',
         'in os.listdir(directory)]'),
    )),
)


if __name__ == '__main__':
  absltest.main()
