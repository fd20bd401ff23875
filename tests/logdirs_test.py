# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the lock of log directories, with a second process."""

import contextlib
import errno
import fcntl
import io
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent import errors
from scalable_agent.runs import logdirs
from scalable_agent.runs import setup
from scalable_agent.scores import files

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_HOLD = ('import sys\n'
         'from scalable_agent.runs import logdirs\n'
         'with logdirs.locked(sys.argv[1]):\n'
         '  print("locked", flush=True)\n'
         '  sys.stdin.read()\n')


class LeftoversTest(absltest.TestCase):

  def test_only_what_is_unfinished_is_removed(self):
    directory = self.create_tempdir()
    kept = ['ckpt-1.index', 'checkpoint', 'episodes.csv', 'best/ckpt-1.index',
            'replay/replay-0-9.npz', 'damaged-ckpt-2.index', 'mine.tmpl/x',
            'finished', 'mine.tmp', 'runs/a/unfinished.index', 'unfinished',
            'best/unfinished.index']
    left = ['unfinished.index', 'unfinished_temp/part-0', 'checkpoint.tmp',
            'means.json.tmp', 'replay/state.npz.tmp', 'ckpt-7_temp/part-0',
            'settings-40.json.tmp', 'unfinished.data-00000-of-00001',
            'replay/replay-0-9.npz.tmp', 'evaluations.csv.tmp',
            'agent.json.tmp', 'spec.json.tmp']
    for name in kept + left:
      directory.create_file(name)
    logdirs.remove_leftovers(directory.full_path, setup.TEMPORARY_NAMES,
                             files.TEMPORARY_NAME)
    self.assertCountEqual(
        [os.path.relpath(os.path.join(where, name), directory.full_path)
         for where, _, names in os.walk(directory.full_path)
         for name in names], kept)
    self.assertNoCommonElements(
        os.listdir(directory.full_path), ['unfinished_temp', 'ckpt-7_temp'])
    logdirs.remove_leftovers('/no/such/directory', setup.TEMPORARY_NAMES,
                             files.TEMPORARY_NAME)

  def test_only_old_files_of_killed_tests_are_removed(self):
    directory = self.create_tempdir()
    names = ['scores-20-1.csv', 'scores-20-1.csv.tmp', 'scores-2_agents-1.md',
             'scores-2_agents-1.md.tmp', 'scores.tmp', 'mine.json.tmp',
             'learning_curves.png.12.tmp']
    for name in names:
      directory.create_file(name)
      directory.create_file(f'unfinished-{name}/0.mp4')
      directory.create_file(f'videos/unfinished-abc_{names.index(name)}xyz/0.mp4')
    remove = lambda: logdirs.remove_leftovers(
        directory.full_path, setup.TEMPORARY_NAMES,
        files.TEMPORARY_NAME)
    remove()  # A test may be writing now.
    self.assertContainsSubset(names, os.listdir(directory.full_path))
    self.assertLen(os.listdir(f'{directory.full_path}/videos'), len(names))
    long_ago = time.time() - 25 * 3600
    for path in [*map(directory.full_path.__add__, [f'/{n}' for n in names]),
                 f'{directory.full_path}/videos/unfinished-abc_5xyz']:
      os.utime(path, (long_ago, long_ago))
    remove()
    left = os.listdir(directory.full_path)
    self.assertContainsSubset(
        ['scores-20-1.csv', 'scores-2_agents-1.md', 'scores.tmp',
         'mine.json.tmp'], left)
    self.assertNoCommonElements(
        ['scores-20-1.csv.tmp', 'scores-2_agents-1.md.tmp',
         'learning_curves.png.12.tmp'], left)
    self.assertLen(os.listdir(f'{directory.full_path}/videos'), len(names) - 1)

  def test_what_the_user_has_made_stays(self):
    directory = self.create_tempdir()
    elsewhere = self.create_tempdir()
    names = ['notes/unfinished-abcd_123/x', 'videos/unfinished-thesis/x',
             'replay-notes/state.npz.tmp', 'unfinished.txt']
    for name in names:
      directory.create_file(name)
    elsewhere.create_file('state.npz.tmp')
    os.symlink(elsewhere.full_path, f'{directory.full_path}/replay')
    with logdirs.unfinished(f'{directory.full_path}/videos') as made:
      os.rename(made, left := f'{directory.full_path}/export_left')
    os.makedirs(f'{directory.full_path}/export')
    os.rename(left, left := made.replace('videos', 'export'))
    for path in [left, *(os.path.join(directory.full_path, os.path.dirname(n))
                         for n in names[:2])]:
      os.utime(path, (1, 1))
    logdirs.remove_leftovers(directory.full_path, setup.TEMPORARY_NAMES,
                             files.TEMPORARY_NAME)
    for name in [*names, 'replay/state.npz.tmp']:
      self.assertTrue(os.path.exists(f'{directory.full_path}/{name}'), name)
    self.assertFalse(os.path.exists(left))

  def test_a_killed_test_leaves_such_a_file(self):
    logdir = self.create_tempdir().full_path
    with mock.patch.dict(files._FORMATS, {'.json': str}), \
        mock.patch.object(os, 'replace', side_effect=KeyboardInterrupt), \
        mock.patch.object(os, 'remove'):  # A kill lets nothing be removed.
      with self.assertRaises(KeyboardInterrupt):
        files.write('a table', f'{logdir}/scores-20-1')
    [name] = os.listdir(logdir)
    self.assertRegex(name, f'^{files.TEMPORARY_NAME}$')


class LockTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = os.path.join(self.create_tempdir().full_path, 'new', 'run')

  def _holder(self):
    """Returns another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, '-c', _HOLD, self.logdir], cwd=_ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    self.addCleanup(process.__exit__, None, None, None)
    self.addCleanup(process.kill)
    self.assertEqual(process.stdout.readline(), 'locked\n')
    return process

  def test_another_process_is_named(self):
    other = self._holder()
    with self.assertRaisesRegex(
        errors.ConfigError,
        f'--logdir={self.logdir} is in use by another run: process {other.pid} '
        f'of {socket.gethostname()}, since 20'):
      with logdirs.locked(self.logdir):
        self.fail('There are two.')

  @parameterized.parameters(signal.SIGKILL, signal.SIGTERM, None)
  def test_the_lock_ends_with_its_process(self, number):
    other = self._holder()
    if number is None:
      other.stdin.close()
    else:
      other.send_signal(number)
    other.wait()
    for _ in range(2):
      with logdirs.locked(self.logdir):
        text = pathlib.Path(self.logdir, '.lock').read_text()
        self.assertStartsWith(text, f'process {os.getpid()} of ')

  @parameterized.parameters(os.symlink, os.link)
  def test_a_file_of_the_user_is_no_lock(self, link):
    mine = self.create_tempfile(content='precious').full_path
    os.makedirs(self.logdir)
    link(mine, os.path.join(self.logdir, '.lock'))
    with self.assertRaisesRegex(errors.CheckpointError, 'not the lock'):
      with logdirs.locked(self.logdir):
        self.fail('It has the lock.')
    self.assertEqual(pathlib.Path(mine).read_text(), 'precious')
    self.assertEqual(os.listdir(self.logdir), ['.lock'])

  def test_nothing_is_left(self):
    with logdirs.locked(self.logdir):
      self.assertEqual(os.listdir(self.logdir), ['.lock'])
    self.assertFalse(os.path.exists(self.logdir))
    os.makedirs(self.logdir)
    with logdirs.locked(self.logdir):
      pass
    self.assertEmpty(os.listdir(self.logdir))

  def test_only_one_at_a_time(self):
    # Threads have the lock as processes do: each opens the file anew.
    inside, most, tries = [], [], [0]

    def run():
      for _ in range(300):
        try:
          with logdirs.locked(self.logdir):
            inside.append(None)
            time.sleep(0)  # Another thread may run.
            most.append(len(inside))
            inside.pop()
            tries[0] += 1
        except errors.ConfigError:
          pass

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(set(most), {1})
    self.assertGreater(tries[0], 10)

  def test_a_file_that_another_run_removes_meanwhile_is_no_lock(self):
    flock, path = fcntl.flock, os.path.join(self.logdir, '.lock')

    def end_of_other(file, how):
      if len(calls := flock_mock.mock_calls) < 3:
        os.remove(path)
        if len(calls) == 2:  # A third run has made a new one.
          open(path, 'w').close()
      flock(file, how)

    with mock.patch.object(fcntl, 'flock', side_effect=end_of_other
                           ) as flock_mock, logdirs.locked(self.logdir):
      with open(path) as file, self.assertRaises(BlockingIOError):
        flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    self.assertLen(flock_mock.mock_calls, 3)

  def test_the_lock_of_another_run_in_a_new_directory_stays(self):
    with contextlib.ExitStack() as other:
      with logdirs.locked(self.logdir):
        shutil.rmtree(self.logdir)
        other.enter_context(logdirs.locked(self.logdir))
      with self.assertRaises(errors.LockedError), logdirs.locked(self.logdir):
        pass

  def test_a_process_that_was_started_does_not_keep_it(self):
    with logdirs.locked(self.logdir):
      child = subprocess.Popen(['sleep', '1000'])
    self.addCleanup(child.wait)
    self.addCleanup(child.kill)
    with logdirs.locked(self.logdir):
      pass

  def test_a_file_system_without_locks_is_said(self):
    output = io.StringIO()
    with mock.patch.object(
        fcntl, 'flock', side_effect=OSError(errno.ENOLCK, 'No locks')
    ), contextlib.redirect_stdout(output), logdirs.locked(self.logdir):
      pass
    self.assertIn('cannot be locked (No locks)', output.getvalue())

  @parameterized.parameters('/proc/none', '/dev/null/run')
  def test_no_directory(self, logdir):
    with self.assertRaisesRegex(
        errors.ConfigError, f'--logdir={logdir} cannot be used: '):
      with logdirs.locked(logdir):
        pass


class LinkTest(absltest.TestCase):

  def test_a_link_that_leads_nowhere(self):
    link = os.path.join(self.create_tempdir().full_path, 'link')
    os.symlink('/no/such/x', link)
    with self.assertRaisesRegex(
        errors.CheckpointError, 'is a link to /no/such/x, which does not exist'
    ), logdirs.locked(link):
      pass


if __name__ == '__main__':
  absltest.main()
