# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the program as users run the program: processes, signals."""

import collections
import contextlib
import csv
import errno
import functools
import importlib.util
import io
import json
import multiprocessing
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import eager
import in_process
import metrics_test
import numpy as np
import psutil
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.acting import actor as actor_lib
from scalable_agent.acting import interface
from scalable_agent.acting import local
from scalable_agent.acting import policies
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.modes import test
from scalable_agent.networks import backend
from scalable_agent.networks import factory
from scalable_agent.networks import layers
from scalable_agent.processes import console
from scalable_agent.processes import starts
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import evaluation
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.scores import files as score_files
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_VECTOR = structs.EnvironmentSpec(
    structs.ArraySpec((3,), np.dtype(np.float32)), structs.ActionSpec((2,)), 1)
_CATCH = ('--level_name=catch', '--agent=mlp', '--num_action_repeats=1',
          '--num_actors=2', '--batch_size=2', '--unroll_length=5',
          '--progress_secs=0.5')
# For tests whose numbers do not matter: half the start-up.
_CHEAP = ('--nouse_lstm', '--xla=none')


def _start(test, *args, **env):
  env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL='2', PYTHONUNBUFFERED='1',
             PYTHONPATH=os.pathsep.join([_ROOT, os.path.join(_ROOT, 'tests')]),
             **env)
  process = subprocess.Popen(
      [sys.executable, os.path.join(_ROOT, 'experiment.py'), *_CATCH, *args],
      env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      # Ignored signals are inherited: the tests may run under nohup.
      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
      start_new_session=True)  # A process group of its own, as from a shell.
  test.addCleanup(_end, process)
  return process


def _end(process):
  """Ends a program that a failed test has left."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGKILL)
  process.wait()
  process.stdout.close()


_main = functools.partial(in_process.main, *_CATCH)


def _episodes(logdir):
  with open(os.path.join(logdir, 'episodes.csv'), newline='') as f:
    return list(csv.DictReader(f))


def _wait_for(process, text):
  """Reads output up to the line that holds `text`; returns that line."""
  lines = []
  for line in process.stdout:
    lines.append(line)
    if text in line:
      return line
  raise AssertionError(f'{text!r} did not appear in:\n{"".join(lines)}')


def _frames(line):
  return int(re.search(r'([\d,]+)( of [\d,]+)? frames', line)[1].replace(
      ',', ''))


def _children(process):
  children = psutil.Process(process.pid).children(recursive=True)
  assert children, 'There are no environment processes.'
  return children


def _wait_until_gone(processes):
  _, alive = psutil.wait_procs(processes, timeout=60)
  return alive


class WrongFlagTest(absltest.TestCase):

  def test_as_a_module(self):
    for flag, code, text in (('--seed=-1', 2, '--seed=-1 must not be'),
                             ('--help', 0, '--recipe=NAME ')):
      run = subprocess.run(
          [sys.executable, '-m', 'scalable_agent.experiment', flag],
          capture_output=True, text=True, cwd=_ROOT)
      self.assertEqual(run.returncode, code, run.stderr)
      self.assertIn(text, run.stdout + run.stderr)

  def test_a_wrong_directory_is_said_before_a_missing_package(self):
    with mock.patch.object(
        experiment.environments, 'check_names',
        side_effect=errors.MissingDependencyError('ale-py')):
      for mode in 'test', 'video':
        for level, text in (((), '/no/such holds no checkpoint'),
                            (('--level_name=ALE/Pong-v5',), 'ale-py')):
          code, output = in_process.main(
              f'--mode={mode}', '--logdir=/no/such', *level)
          self.assertEqual(code, 2)
          self.assertIn(text, output)

  def test_a_signal_may_end_the_program_only(self):
    code = ('import contextlib, sys\n'
            'from scalable_agent import experiment\n'
            'from scalable_agent.processes import signals\n'
            'found = [signals.is_program]\n'
            'sys.argv = ["experiment.py", "--help"]\n'
            'with contextlib.suppress(SystemExit):\n'
            '  experiment.run_program()\n'
            'print(found, signals.is_program)')
    self.assertEqual(subprocess.check_output(
        [sys.executable, '-c', code], cwd=_ROOT, text=True).splitlines()[-1],
                     '[False] True')

  @pytest.mark.storm
  def test_closed_streams(self):
    for number in 1, 2:
      run = subprocess.run(
          [sys.executable, os.path.join(_ROOT, 'experiment.py'), '--mode=table',
           '--logdir=/no/such'], capture_output=True, text=True,
          preexec_fn=functools.partial(os.close, number))
      self.assertEqual(run.returncode, 2, run.stderr)
      self.assertNotIn('Traceback', run.stderr)
    code = ('import os, sys; os.closerange(0, 3); sys.stdout = None; '
            'from scalable_agent.processes import console; '
            'console.open_closed_streams(); print("a", flush=True); '
            'sys.exit(open(os.devnull).fileno() <= 2)')
    self.assertEqual(subprocess.call(
        [sys.executable, '-c', code], cwd=_ROOT), 0)
    code = 'import scalable_agent; print(scalable_agent.load.__name__)'
    run = subprocess.run([sys.executable, '-c', code], cwd=_ROOT, text=True,
                         stdout=subprocess.PIPE,
                         preexec_fn=functools.partial(os.close, 2))
    self.assertEqual((run.returncode, run.stdout), (0, 'load\n'))

  def test_the_reader_of_the_help_has_ended(self):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, 'w') as pipe:
      run = subprocess.run(
          [sys.executable, os.path.join(_ROOT, 'experiment.py'), '--help'],
          stdout=pipe, stderr=subprocess.PIPE, text=True)
    self.assertEqual((run.returncode, run.stderr), (1, ''))

  def test_the_reader_of_a_training_has_ended(self):
    logdir = self.create_tempdir().full_path
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, 'w') as pipe:
      run = subprocess.run(
          [sys.executable, os.path.join(_ROOT, 'experiment.py'), *_CATCH,
           *_CHEAP, f'--logdir={logdir}', '--total_environment_frames=100'],
          stdout=pipe, stderr=subprocess.PIPE, text=True)
    self.assertEqual((run.returncode, run.stderr), (
        1, 'scalable_agent: stopped: the reader of the output has ended.\n'))

  def test_exit_code_of_the_process(self):
    logdir = self.create_tempdir().full_path
    process = _start(self, f'--logdir={logdir}', '--batch_size=-1')
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 2, output)
    self.assertEqual(
        output, 'scalable_agent: --batch_size=-1 must be positive.\n')


@pytest.mark.slow
class ProcessTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path

  def _run(self, *args, **env):
    process = _start(self, f'--logdir={self.logdir}', *args, **env)
    output, _ = process.communicate()
    return process.returncode, output

  def test_trains_goes_on_and_tests(self):
    main = functools.partial(_main, f'--logdir={self.logdir}', *_CHEAP)
    code, output = main('--total_environment_frames=1000')
    self.assertEqual(code, 0, output)
    self.assertIn('1,000 of 1,000 frames (100.0 %)', output)
    code, output = main('--total_environment_frames=1500')
    self.assertEqual(code, 0, output)
    self.assertRegex(output, 'Resuming from .*ckpt-100, 1,000 frames')
    self.assertIn('Changed: --total_environment_frames=1500; before: '
                  '--total_environment_frames=1000.\n', output)
    self.assertIn('1,500 of 1,500 frames (100.0 %)', output)
    code, output = main('--total_environment_frames=1500')
    self.assertEqual(code, 0, output)
    self.assertIn('This run is finished', output)
    code, output = main('--num_action_repeats=2')
    self.assertEqual(code, 2, output)
    self.assertRegex(output, 'was trained with --num_action_repeats=1, not with'
                     ' --num_action_repeats=2: this is another task')
    self.assertIn(f'--flagfile={self.logdir}/settings.flags', output)
    episodes = _episodes(self.logdir)
    # Episodes of catch have 9 steps; 1,000 + 500 steps are shared by two
    # environments, each of which was cut off twice.
    self.assertBetween(len(episodes), 1500 // 9 - 4, 1500 // 9)
    frames = [int(e['num_env_frames']) for e in episodes]
    self.assertEqual(frames, sorted(frames))
    self.assertEqual({e['num_agent_steps'] for e in episodes}, {'9'})
    self.assertContainsSubset({e['episode_return'] for e in episodes},
                              {'1', '-1'})

    code, output = main('--mode=test', '--test_num_episodes=5')
    self.assertEqual(code, 0, output)
    [returns] = re.findall(r'returns: (.*)', output)
    self.assertLen(returns.split(), 5)
    self.assertRegex(output, r'catch: mean .* over 5 episodes at 1,500 frames')
    self.assertIn('# Test of catch after 1,500 frames', output)
    self.assertIn('**Too few episodes: 5 of catch.', output)
    self.assertIn(f'Wrote {self.logdir}/scores-1500-1.json, .csv and .md.',
                  output)
    with open(os.path.join(self.logdir, 'scores-1500-1.json')) as f:
      [agent] = json.load(f)['agents']
    [level] = agent['levels']
    self.assertEqual([f'{r:g}' for r in level['returns']], returns.split())
    self.assertEqual(agent['trained_with']['level_name'], 'catch')
    self.assertEqual(agent['trained_with']['mode'], 'train')

    code, output = main('--mode=table')
    self.assertEqual(code, 0, output)
    self.assertIn('# Test of catch after 1,500 frames', output)

    code, output = main('--use_lstm')
    self.assertEqual(code, 2, output)
    self.assertIn('holds a checkpoint of another agent', output)
    self.assertTrue(output.strip().endswith(
        'Use another --logdir, or the flags of its training '
        f'(--flagfile={self.logdir}/settings.flags '
        f'--logdir={self.logdir}).'), output)
    code, output = _main(f'--flagfile={self.logdir}/settings.flags')
    self.assertEqual(code, 0, output)
    self.assertIn('This run is finished', output)
    self.assertNotIn('Traceback', output)

  def test_kill_loses_only_what_came_after_the_checkpoint(self):
    process = _start(self, f'--logdir={self.logdir}', *_CHEAP,
                     '--save_checkpoint_secs=1')
    while not os.path.exists(os.path.join(self.logdir, 'checkpoint')):
      _wait_for(process, ' frames')
    children = _children(process)
    process.kill()
    self.assertEmpty(_wait_until_gone(children))
    process.communicate()

    resumed = _start(self, f'--logdir={self.logdir}', *_CHEAP)
    line = _wait_for(resumed, 'Resuming from').split('ckpt-')[1]
    restored = _frames(line)
    # All of the last checkpoint: an update learns from 2 x 5 frames.
    self.assertEqual(restored, 10 * int(line.split(',')[0]))
    self.assertGreater(restored, 0)
    self.assertGreater(_frames(_wait_for(resumed, ' frames/s')), restored)
    children = _children(resumed)
    resumed.send_signal(signal.SIGTERM)  # As `kill` does.
    output, _ = resumed.communicate()
    self.assertEqual(resumed.returncode, 0, output)
    self.assertIn('Saved', output)
    self.assertNotIn('Traceback', output)
    self.assertEmpty(_wait_until_gone(children))

  # Ctrl-C in a terminal signals the whole group; `kill` usually does not, see
  # the test above.
  @pytest.mark.storm
  def test_a_signal_ends_with_a_checkpoint(self):
    self._check_signal(signal.SIGTERM)

  @pytest.mark.storm
  def test_an_interrupt_ends_with_a_checkpoint(self):
    self._check_signal(signal.SIGINT)

  @pytest.mark.storm
  def test_a_lost_terminal_ends_with_a_checkpoint(self):
    self._check_signal(signal.SIGHUP)

  def _check_signal(self, number):
    # Long unrolls: the learner waits for environments when the signal comes,
    # and SIGTERM to the group ends the environments during the wait.
    process = _start(self, f'--logdir={self.logdir}', '--unroll_length=500',
                     *_CHEAP)
    _wait_for(process, ' frames/s')
    children = _children(process)
    os.killpg(process.pid, number)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    self.assertIn('Saved', output)
    self.assertTrue(os.path.exists(os.path.join(self.logdir, 'checkpoint')))
    self.assertNotIn('Traceback', output)
    self.assertEmpty(_wait_until_gone(children))

  @pytest.mark.storm
  def test_second_signal_ends_at_once(self):
    process = _start(self, f'--logdir={self.logdir}', *_CHEAP)
    _wait_for(process, ' frames/s')
    children = _children(process)
    try:
      for child in children:
        if child.ppid() != process.pid:  # The end waits for the environment,
          child.suspend()  # until somebody is impatient.
      process.send_signal(signal.SIGINT)
      _wait_for(process, 'Saved')
      time.sleep(1)  # Signals at once are one.
      process.send_signal(signal.SIGINT)
      self.assertEqual(process.wait(), -signal.SIGINT)
    finally:
      process.kill()
      for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
          child.resume()
    output, _ = process.communicate()
    self.assertNotIn('Traceback', output)
    self.assertEmpty(_wait_until_gone(children))

  @pytest.mark.storm
  def test_a_signal_while_an_environment_hangs_as_it_is_built(self):
    logdir = os.path.join(self.logdir, 'new')
    process = _start(self, f'--logdir={logdir}', *_CHEAP,
                     '--level_name=fake_environments:fake/NeverReady-v0')
    while not psutil.Process(process.pid).children():
      time.sleep(0.1)
    time.sleep(5)  # Long enough to hang, nearly always.
    children = _children(process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    self.assertIn('before there was anything new to save', output)
    self.assertEqual(process.returncode, 128 + signal.SIGTERM, output)
    self.assertNotIn('Traceback', output)
    self.assertEmpty(_wait_until_gone(children))
    self.assertFalse(os.path.exists(logdir))

  @pytest.mark.storm
  def test_lost_environments_are_replaced(self):
    process = _start(self, f'--logdir={self.logdir}', *_CHEAP,
                     '--total_environment_frames=20000',
                     '--max_environment_restarts=2')
    for number in 1, 2, 3:
      _wait_for(process, ' frames/s')
      environment, *_ = [
          child for child in _children(process) if child.num_threads() > 1
          and child.ppid() != process.pid]
      environment.kill()
      if number < 3:
        _wait_for(process, f'This was restart {number} within an hour, 2 are')
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 1, output)
    self.assertRegex(output, 'scalable_agent: .* died with exit code -9.* were '
                     'lost 3 times within an hour; --max_env.*=2.\n$')
    self.assertIn('Saved', output)
    code, output = self._run(f'--logdir={self.logdir}', *_CHEAP,
                             '--total_environment_frames=2000')
    self.assertEqual(code, 0, output)
    self.assertIn('Resuming from', output)

  @pytest.mark.storm
  def test_two_signals_in_quick_succession(self):
    process = _start(self, f'--logdir={self.logdir}', *_CHEAP)
    _wait_for(process, ' frames/s')
    children = _children(process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    self.assertIn('Saved', output)
    self.assertNotIn('Traceback', output)
    self.assertEmpty(_wait_until_gone(children))

  @pytest.mark.storm
  def test_xla(self):
    dump = self.create_tempdir().full_path
    code, output = self._run('--xla=all', '--total_environment_frames=50',
                             '--num_actors=1',  # Fewer than groups.
                             XLA_FLAGS=f'--xla_dump_to={dump}')
    self.assertEqual(code, 0, output)
    self.assertIn('50 of 50 frames (100.0 %)', output)
    compiled = os.listdir(dump)
    for function in ('__gradients_', '__apply_', '__policy_step_'):
      self.assertTrue(any(function in name for name in compiled), function)

  @pytest.mark.storm
  def test_error_of_an_environment(self):
    process = _start(self, f'--logdir={self.logdir}', *_CHEAP,
                     '--level_name=fake_environments:fake/RaisesLater-v0')
    children = []
    while process.poll() is None:  # All children that ever are.
      with contextlib.suppress(psutil.NoSuchProcess):
        children.extend(psutil.Process(process.pid).children(recursive=True))
      time.sleep(0.1)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 1, output)
    self.assertIn('raised AwkwardError: this and that', output)
    self.assertIn('Saved', output)
    # The frames of the user, and then the cause.
    self.assertRegex(output, r"""(?x)
        fake_environments.py",[ ]line[ ]\d+,[ ]in[ ]step\n.*\n
        .*fake_environments.py",[ ]line[ ]\d+,[ ]in[ ]_fail\n.*\n
        scalable_agent:[ ]environment[ ][01][ ][(].*[)][ ]raised[ ]AwkwardError:
        [ ]this[ ]and[ ]that\n$""")
    self.assertNotIn('Traceback', output)
    self.assertNotIn('workers.py', output)
    self.assertEmpty(_wait_until_gone(children))


@pytest.mark.slow
class SummariesTest(absltest.TestCase):

  def test_curves_have_a_beginning_and_an_end(self):
    logdir = self.create_tempdir().full_path
    code, output = _main(f'--logdir={logdir}', *_CHEAP,
                         '--total_environment_frames=200')
    self.assertEqual(code, 0, output)
    steps = {step for name, step in metrics_test._scalars(logdir)
             if name == 'total_loss'}
    self.assertEqual({min(steps), max(steps)}, {10, 200})


class FullDiskTest(absltest.TestCase):
  """The output is a file on a full disk."""

  def _run(self, *args):
    with open('/dev/full', 'w', encoding='utf-8') as full:
      found = subprocess.run(
          [sys.executable, os.path.join(_ROOT, 'experiment.py'), *_CATCH,
           *args], text=True, stdout=full, stderr=subprocess.PIPE)
    return found.returncode, found.stderr

  @pytest.mark.storm
  def test_training_goes_on(self):
    logdir = self.create_tempdir().full_path
    found = self._run(f'--logdir={logdir}', *_CHEAP,
                      '--total_environment_frames=100')
    self.assertEqual(found, (0, ''))
    self.assertEqual(checkpoint_files.latest_number(logdir), 10)

  @pytest.mark.storm
  def test_tables_are_not_lost_in_silence(self):
    logdir = self.create_tempdir().full_path
    _main(f'--logdir={logdir}', *_CHEAP, '--total_environment_frames=100')
    _main('--mode=test', '--test_num_episodes=2', f'--logdir={logdir}')
    for mode in 'test', 'table':
      code, stderr = self._run(f'--mode={mode}', f'--logdir={logdir}')
      self.assertEqual((code, stderr.splitlines()[-1]), (
          1, 'scalable_agent: no room for a file: No space '
          'left on device.'))

  def test_other_errors_of_the_output_are_raised(self):
    class Broken(io.StringIO):

      def write(self, text):
        raise BrokenPipeError(errno.EPIPE, 'Broken pipe')

    with self.assertRaises(BrokenPipeError):
      print('text', file=console.Output(Broken()))


  def test_a_deleted_current_directory(self):
    with mock.patch.object(os, 'getcwd', side_effect=FileNotFoundError):
      code, output = _main(f'--logdir={self.create_tempdir().full_path}/a',
                           *_CHEAP)
    self.assertEqual((code, output.splitlines()[-1]), (
        2, 'scalable_agent: The current directory was deleted: change to '
        'another one.'))


@pytest.mark.slow
class MemoryTest(parameterized.TestCase):

  @parameterized.parameters(
      ImportError('lib.so.2: failed to map segment from shared object'),
      RuntimeError("can't start new thread"),
      OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))
  def test_too_little_memory_for_libraries_and_threads(self, error):
    self.assertStartsWith(
        errors.in_a_line(error), 'there is not enough memory: ')

  @parameterized.parameters(
      MemoryError('100 GB'), tf.errors.ResourceExhaustedError(
          None, None, 'Graph execution error:\n\nDetected at node a\n'
          '\x1b[1mOOM when allocating tensor [Op:__inference_1]\nMore lines.'))
  def test_too_little_memory_is_one_line(self, error):
    self.enter_context(mock.patch.object(console, 'is_out_of_memory', False))
    with mock.patch.object(training, 'learn', side_effect=error):
      code, output = _main(
          f'--logdir={self.create_tempdir().full_path}', *_CHEAP)
    self.assertEqual(code, 1)
    self.assertRegex(
        output.splitlines()[-1], 'scalable_agent: there is not enough memory: '
        '(100 GB|OOM when allocating tensor)$')
    # Threads of TensorFlow may wait for ever.
    with mock.patch.object(console.os, '_exit') as end, \
        self.assertRaises(SystemExit):
      console.end_program(code)
    end.assert_called_once_with(1)


@pytest.mark.slow
class SavingTest(absltest.TestCase):

  def _train(self, failures, *args):
    """Trains while some checkpoints cannot be written; returns the output."""
    write, logdir = checkpointing.Checkpointer._write, (
        self.create_tempdir().full_path)

    def write_or_fail(checkpointer, name):
      if failures:
        raise failures.pop()
      return write(checkpointer, name)

    with mock.patch.object(checkpointing.Checkpointer, '_write', write_or_fail):
      code, output = _main(
          f'--logdir={logdir}', '--save_checkpoint_secs=0.3', *_CHEAP, *args)
    return code, output, checkpoint_files.latest_number(logdir)

  @pytest.mark.storm
  def test_a_checkpoint_that_cannot_be_written_is_tried_again(self):
    code, output, latest = self._train(
        [OSError(errno.ENOSPC, 'No space left on device')] * 2,
        '--total_environment_frames=2000')
    self.assertEqual(code, 0, output)
    self.assertRegex(output, 'The checkpoint of [0-9,]+ frames could not be '
                     'written to .*: No space left on device. The program '
                     r'continues, and saves the next time.\n')
    self.assertEqual(latest, 200)

  @pytest.mark.storm
  def test_the_last_one_is_an_error(self):
    code, output, latest = self._train(
        [tf.errors.ResourceExhaustedError(None, None, 'full; No space')] * 1000,
        '--total_environment_frames=1000')
    self.assertEqual(code, 1, output)
    self.assertRegex(output.splitlines()[-1], 'scalable_agent: The checkpoint '
                     'of 1,000 frames could not be written to .*: full; No')
    self.assertEqual(latest, 0)

  @pytest.mark.slow
  def test_the_error_before_is_said_first(self):
    def learn(learner, batches, **unused_kwargs):
      learner.step(next(batches))
      raise errors.EnvironmentValueError('The reward is nan.')

    with mock.patch.object(training, 'learn', learn):
      code, output, _ = self._train([OSError(errno.ENOSPC, 'No space')] * 9)
    self.assertEqual(code, 1, output)
    self.assertRegex(
        output, 'scalable_agent: The reward is nan.\nscalable_agent: The '
        'checkpoint of 10 frames could not be written')

  @pytest.mark.storm
  def test_nothing_is_saved_before_the_first_update(self):
    with mock.patch.object(training, 'learn',
                           side_effect=errors.EnvironmentValueError('Bad.')):
      code, output, _ = self._train([], '--total_environment_frames=1000')
    self.assertEqual(code, 1, output)
    self.assertIn('Nothing was learned yet: no checkpoint was written.\n'
                  'scalable_agent: Bad.', output)
    self.assertNotIn('ckpt-0', output)


class BadInputTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(level_name='catsh'), 'catch'),
      (dict(level_name='ALE/Pongg-v5'), 'ALE/Pong-v5'),
      (dict(level_name='catch', algorithm='sac', dueling=True),
       '--dueling=True is not used by --algorithm=sac'),
      (dict(level_name='catch,memory'), 'different observations'),
      (dict(level_name=' , '), '--level_name'),
      (dict(batch_size=-1), '--batch_size=-1 must be positive'),
      (dict(max_episode_frames=3_000_000_000), 'must be below 2**31 - 1'),
      (dict(job_name='actor'), '--job_name=actor needs --task'),
      (dict(agent='deep'), '--agent=mlp'),
  )
  def test_one_line_that_says_what_to_do(self, settings, text):
    settings = {'level_name': 'catch', 'agent': 'mlp', 'num_actors': 2,
                'logdir': self.create_tempdir().full_path, **settings}
    before = os.listdir(settings['logdir']) if os.path.exists(
        settings['logdir']) else None
    with flagsaver.flagsaver(**settings), contextlib.redirect_stderr(
        io.StringIO()) as stderr:
      self.assertEqual(experiment.main(['experiment.py']), 2)
    message = stderr.getvalue()
    self.assertIn(text, message)
    self.assertEqual(message.count('\n'), 1, message)
    if before is not None:
      self.assertEqual(os.listdir(settings['logdir']), before)

  @parameterized.parameters(
      ('--ray_address', '--ray_address=local'),
      ('--task', '--job_name=learner', '--task=0', '--num_actors=150'),
      ('--task', '--job_name=actor', '--task=7', '--num_actors=150'))
  def test_ray_is_not_installed(self, name, *flags):
    found = importlib.util.find_spec
    with mock.patch.object(
        importlib.util, 'find_spec',
        lambda name, *args: None if name == 'ray' else found(name, *args)):
      code, output = _main(
          *flags, f'--logdir={self.create_tempdir().full_path}')
    self.assertEqual(code, 2, output)
    self.assertIn(f'{name} needs ray: pip install "scalable_agent[ray]".',
                  output)


@pytest.mark.slow
class KerasTest(parameterized.TestCase):

  def _run(self, variables, *args):
    return subprocess.run(
        [sys.executable, *args], text=True, capture_output=True,
        cwd=self.create_tempdir().full_path, env={
            **os.environ, 'PYTHONPATH': os.pathsep.join(sys.path),
            **dict(variable.split('=') for variable in variables)})

  @parameterized.parameters(
      ('TF_USE_LEGACY_KERAS=1', 'KERAS_BACKEND=jax'),
      ('KERAS_BACKEND=nonsense',))
  @pytest.mark.storm
  def test_a_mode_with_another_keras(self, *variables):
    # The mode imports the networks first.
    run = self._run(variables, '-m', 'scalable_agent.experiment',
                    '--mode=export', '--logdir=nowhere')
    self.assertEqual(run.returncode, 2, run.stderr)
    self.assertIn('nowhere holds no checkpoint', run.stderr)
    self.assertEqual(run.stderr.count('\n'), 1)

  @parameterized.parameters('TF_USE_LEGACY_KERAS=1', 'KERAS_BACKEND=torch')
  @pytest.mark.storm
  def test_an_import_says_that_keras_is_another(self, variable):
    run = self._run([variable], '-c', 'import scalable_agent\n'
                    'try:\n  scalable_agent.load\n'
                    'except scalable_agent.errors.ConfigError as e: print(e)')
    self.assertEqual(run.stdout, f'{self._message(variable)}\n', run.stderr)

  def _message(self, variable):
    return (f'Networks need Keras 3 with TensorFlow, but {variable} chooses '
            'another Keras: set KERAS_BACKEND=tensorflow TF_USE_LEGACY_KERAS=0 '
            'before TensorFlow is imported.')

  @parameterized.parameters(
      ('TF_USE_LEGACY_KERAS=1', types.SimpleNamespace()),
      ('KERAS_BACKEND=torch', types.SimpleNamespace(
          config=types.SimpleNamespace(backend=lambda: 'torch'))))
  def test_another_keras(self, variable, keras):
    name, _, value = variable.partition('=')
    with mock.patch.dict(os.environ, {name: value}), mock.patch.object(
        tf, 'keras', keras), self.assertRaises(errors.ConfigError) as raised:
      runpy.run_path(backend.__file__)
    self.assertEqual(str(raised.exception), self._message(variable))


@pytest.mark.slow
class TestModeTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    trained = tempfile.TemporaryDirectory()
    cls.addClassCleanup(trained.cleanup)
    cls.trained_logdir = trained.name
    cls.settings_of_class = dict(
        num_actors=1, batch_size=1, unroll_length=2, num_action_repeats=1,
        use_lstm=False, xla='none', level_name='MountainCar-v0,counting',
        test_num_episodes=2)
    eager.train(config_lib.Config(
        **cls.settings_of_class, logdir=trained.name,
        total_environment_frames=2))

  def setUp(self):
    super().setUp()
    logdir = os.path.join(self.create_tempdir().full_path, 'copy')
    shutil.copytree(self.trained_logdir, logdir)
    self.settings = dict(self.settings_of_class, logdir=logdir, mode='test')

  def _test(self, error='', **settings):
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
      with (self.assertRaisesRegex(errors.SaveError, error) if error
            else contextlib.nullcontext()):
        self.returns = test.test(
            config_lib.Config(**{**self.settings, **settings}))
    return stdout.getvalue()

  def _levels_of_table(self, name='scores-2-1.json'):
    with open(os.path.join(self.settings['logdir'], name)) as f:
      [agent] = json.load(f)['agents']
    return {level['level']: level['returns'] for level in agent['levels']}

  def test_one_agent_plays_all_levels(self):
    expected = {'MountainCar-v0': [-200, -200], 'counting': [3, 12]}
    with mock.patch.object(factory, 'make_agent',
                           wraps=factory.make_agent) as make_agent:
      output = self._test()
    make_agent.assert_called_once()
    self.assertEqual(self.returns, expected)
    self.assertEqual(self._levels_of_table(), expected)
    self.assertEqual(output.count('\n| '), 3)  # One table, with its head.
    self.assertNotIn('The best evaluation', output)
    os.mkdir(os.path.join(self.settings['logdir'], 'best'))
    for name, text in (('best/ckpt-1.index', ''),
                       ('best/means.json', '{"ckpt-1": 9}'),
                       ('evaluations.csv', '1,0,1,9,0,9\n2,1,2,3,0,3\n')):
      with open(os.path.join(self.settings['logdir'], name), 'w') as f:
        f.write(text)
    output = self._test()
    self.assertRegex(output, r'The best evaluation, mean 9\.00, is of .* '
                     r'To test the best weights: --logdir=.*/best\.\n')
    self.assertEqual(output.count('scores-2-2.json'), 1)
    self.assertEqual(self._levels_of_table(), expected)

  def test_the_table_says_that_games_were_cut(self):
    remark = 'Cut games: 1 of 1 of {}, after {} steps (--max_episode_steps).'
    output = self._test(max_episode_steps=150)
    self.assertIn(remark.format('MountainCar-v0', 150), output)
    self.assertNotIn('of counting', output)
    self.assertNotIn('Cut games', self._test(max_episode_steps=200))

  def test_lost_environments_restart(self):
    initial, killed = environments.FlowEnvironment.initial, []

    def lose(env):
      output = initial(env)
      if not killed:
        killed.append(multiprocessing.active_children()[0])
        killed[0].kill()
      return output

    with mock.patch.object(environments.FlowEnvironment, 'initial', lose):
      output = self._test(level_name='counting')
      self.assertEqual(self.returns, {'counting': [3, 12]})
      self.assertRegex(output, 'This was restart 1 within an hour[^$]*'
                       'counting: all games are played again')
      killed.clear()
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, 'max_environment_restarts=0'):
        self._test(level_name='counting', max_environment_restarts=0)
      killed.clear()
      with self.assertRaisesRegex(errors.EnvironmentProcessError, 'died'):
        self._test(level_name='counting', deterministic=True,
                   num_actor_groups=1)

  def test_levels_are_checked_before_games_are_played(self):
    with mock.patch.object(evaluation, 'play') as play:
      for level_name, text in (
          ('counting,MountainCarr-v0', 'Did you mean MountainCar-v0'),
          ('counting,atari75', 'Did you mean atari57'),
          ('counting,CartPole-v1', 'One agent cannot play counting and')):
        with self.assertRaisesRegex(errors.ConfigError, text):
          self._test(level_name=level_name)
    play.assert_not_called()

  def test_played_levels_survive_an_error(self):
    games = evaluation.Games([[1.], [2.]], [])
    with mock.patch.object(evaluation, 'play',
                           side_effect=[games, RuntimeError('Broken')]):
      with self.assertRaisesRegex(RuntimeError, 'Broken'):
        self._test()
    self.assertEqual(self._levels_of_table(), {'MountainCar-v0': [1, 2]})

  def test_full_disk(self):
    with mock.patch.object(score_files, 'write',
                           side_effect=OSError(28, 'No space left')):
      output = self._test('could not be written: No space left.')
      self.assertIn('| MountainCar-v0 |', output)
      self.assertNotIn('Wrote', output)
      with flagsaver.flagsaver(mode='table', logdir=self.settings['logdir']), \
          contextlib.redirect_stdout(io.StringIO()), \
          contextlib.redirect_stderr(io.StringIO()) as stderr:
        # The failed write has left an empty file, which is no test.
        self.assertEqual(experiment.main(['experiment.py']), 2)
    self.assertIn('holds no table of a test', stderr.getvalue())
    self._test()
    with mock.patch.object(score_files, 'write',
                           side_effect=OSError(28, 'No space left')), \
        flagsaver.flagsaver(mode='table', logdir=self.settings['logdir']), \
        contextlib.redirect_stdout(io.StringIO()), \
        contextlib.redirect_stderr(io.StringIO()) as stderr:
      self.assertEqual(experiment.main(['experiment.py']), 1)
    self.assertIn('could not be written: No space left.', stderr.getvalue())

  def test_a_relative_directory_is_that_of_the_start(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(os.path.dirname(self.settings['logdir']))

    def play(*unused):
      os.chdir('/')
      return evaluation.Games([[1.], [2.]], [])

    with mock.patch.object(evaluation, 'play', play):
      self._test(logdir='copy')
    self.assertLen(self._levels_of_table('scores-2-1.json'), 2)

  def test_directory_that_cannot_be_written(self):
    with mock.patch.object(score_files, 'reserve_path',
                           side_effect=OSError(30, 'Read-only file system')), \
        mock.patch.object(os, 'access', return_value=False):
      output = self._test(
          f'{self.settings["logdir"]} could not be written: Read-only')
    said = f'{self.settings["logdir"]} cannot be written: the table is only'
    self.assertLess(output.index(said), output.index('| MountainCar-v0 |'))
    self.assertNotIn(said, self._test())

  def test_nothing_is_written_before_a_level_is_over(self):
    before = os.listdir(self.settings['logdir'])
    with mock.patch.object(evaluation, 'play', side_effect=KeyboardInterrupt):
      with self.assertRaises(KeyboardInterrupt):
        self._test()
    self.assertEqual(os.listdir(self.settings['logdir']), before)

  @mock.patch.object(starts, 'num_cores', return_value=4)
  def test_number_of_environments(self, unused_count):
    number = lambda trained_with, **settings: test._num_environments(
        config_lib.Config(mode='test', **settings), trained_with)
    here = config_lib.Config(num_actors=99)
    cluster = config_lib.Config(num_actors=99, ray_address='auto')
    for trained_with, num_actors, num_episodes, expected in (
        (None, 99, 50, 50), (here, 99, 50, 50), (here, 99, 200, 99),
        (cluster, 99, 50, 4), (cluster, 99, 3, 3), (cluster, 98, 50, 50)):
      self.assertEqual(expected, number(
          trained_with, num_actors=num_actors, test_num_episodes=num_episodes))
    self.assertIn('Environments that play at a time: 1.\n', self._test())

  def test_says_how_far_it_is(self):
    output = self._test(progress_secs=1e-9, level_name='counting')
    self.assertIn('\ncounting: 1 of 2 games are over, the longest', output)
    self.assertIn('\ncounting: 2 of 2 games are over.\n', output)
    self.assertNotIn('of 2 games', self._test(progress_secs=1e9))
    output = self._test(max_episode_steps=2, level_name='counting')
    self.assertIn('counting: a game was cut after 2 steps', output)

  def test_games_go_on_when_a_life_is_lost(self):
    with mock.patch.object(test.environments, 'make_vec',
                           wraps=test.environments.make_vec) as make_vec:
      self._test()
    for call in make_vec.call_args_list:
      self.assertFalse(call.args[2].life_loss_ends_episode)
    with open(os.path.join(self.settings['logdir'], 'scores-2-1.json')) as f:
      [agent] = json.load(f)['agents']
    self.assertIs(agent['settings']['life_loss_ends_episode'], False)
    self.assertIs(agent['trained_with']['life_loss_ends_episode'], True)


class LevelsTest(absltest.TestCase):

  @pytest.mark.slow
  def test_environment_i_plays_level_i_modulo_n(self):
    logdir = self.create_tempdir().full_path
    played = collections.Counter()

    def stop_when_all_have_played(update):
      # Each environment that counts begins with 1 + 2, and never again.
      played.update(e.level_name for e in update.episodes
                    if e.episode_return == 3 or e.level_name != 'counting')
      if played['counting'] >= 3 and played['MountainCar-v0']:
        signal.raise_signal(signal.SIGTERM)

    # Environments 0 1 2 | 3 4 5, in two groups, play A B A | B A B.
    training.train(
        config_lib.Config(
            logdir=logdir, num_actors=6, num_actor_groups=2, batch_size=2,
            unroll_length=50, num_action_repeats=1, use_lstm=False, xla='none',
            level_name='MountainCar-v0,counting',
            total_environment_frames=1_000_000),
        hooks=[stop_when_all_have_played])
    episodes = _episodes(logdir)
    self.assertEqual(sum(e['episode_return'] == '3' for e in episodes), 3)
    self.assertEqual(
        {(e['level_name'], e['num_agent_steps']) for e in episodes},
        {('MountainCar-v0', '200'), ('counting', '2'), ('counting', '3'),
         ('counting', '5')})


def _made(config):
  """Returns what a run with these settings makes, with an agent that is none.

  Returns:
    The settings as they were resolved, the policy of each group and the
    settings of the learner.
  """
  config = config.resolved(_VECTOR.observation, on_cpu=layers.on_cpu(),
                           num_groups=config.num_actor_groups)
  agent = mock.Mock(output_spec=structs.AgentOutput((), (), ()))
  agent.initial_state.return_value = ()
  with mock.patch.object(factory, 'make_agent', return_value=agent), \
      mock.patch.object(learner_lib, 'Learner') as learner:
    used = local.make_policies(config, _VECTOR, config.num_actor_groups, 0,
                               interface.Share(range(config.num_actors)))
    setup.make_learner(config, _VECTOR)
  return config, used, learner.call_args.kwargs


class FlagsTest(parameterized.TestCase):

  @pytest.mark.slow
  def test_what_was_chosen_is_said_and_saved(self):
    logdir = self.create_tempdir().full_path
    with contextlib.redirect_stdout(io.StringIO()) as stdout, \
        mock.patch.object(local, 'make_policies',
                          wraps=local.make_policies) as make_policies, \
        mock.patch.object(setup, 'make_learner',
                          wraps=setup.make_learner) as make_learner:
      training.train(config_lib.Config(
          logdir=logdir, level_name='CartPole-v1', unroll_length=5,
          total_environment_frames=10))
    self.assertIn('Chosen: --agent=mlp for observations that are not frames, ',
                  stdout.getvalue())
    saved = config_lib.trained_with(logdir)
    self.assertEqual(saved.agent, 'mlp')
    self.assertIs(saved.dynamic_batching, False)
    self.assertEqual(saved.micro_batch_size, 2)
    self.assertIn(saved.xla, ('none', 'policy'))
    # Policies and learner are made with the saved settings.
    for make in (make_policies, make_learner):
      self.assertEqual(make.call_args.args[0], saved)

  @parameterized.parameters(False, True)
  @pytest.mark.slow
  def test_bootstrap_truncated_reaches_the_actors(self, bootstrap_truncated):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, level_name='catch', agent='mlp',
        unroll_length=5, bootstrap_truncated=bootstrap_truncated)
    with mock.patch.object(actor_lib, 'Actor') as actor:
      actor.return_value.run.side_effect = ValueError('Enough')
      with self.assertRaisesRegex(ValueError, 'Enough'):
        training.train(config)
    self.assertEqual(
        [call.kwargs['bootstrap_truncated'] for call in actor.call_args_list],
        [bootstrap_truncated] * 2)

  @parameterized.parameters(
      (dict(num_actors=4, num_actor_groups=4), True),
      (dict(num_actors=4, num_actor_groups=2), False),
      (dict(num_actors=16, num_actor_groups=4), False),
      (dict(num_actors=4, num_actor_groups=4, dynamic_batching=False), False),
      (dict(num_actors=2, num_actor_groups=2, dynamic_batching=True), True))
  def test_actors_share_a_policy(self, settings, is_shared):
    with mock.patch.object(policies, 'AgentPolicy',
                           wraps=policies.AgentPolicy) as made:
      config, used, _ = _made(config_lib.Config(agent='mlp', **settings))
    self.assertIs(config.dynamic_batching, is_shared)
    self.assertLen(used, settings['num_actor_groups'])
    self.assertLen(set(used), 1 if is_shared else len(used))
    self.assertEqual(
        {isinstance(p, policies.SharedPolicy) for p in used}, {is_shared})
    # Its states come from the device together with its outputs.
    self.assertEqual({made.call_args.kwargs['state_on_host']}, {is_shared})
    for policy in set(used):
      policy.close(timeout_s=60)

  @pytest.mark.slow
  def test_shared_policy_of_a_run(self):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, level_name='catch',
        unroll_length=5, total_environment_frames=50, num_actors=4,
        num_actor_groups=4)
    with mock.patch.object(actor_lib, 'Actor', wraps=actor_lib.Actor) as actor:
      training.train(config)
    policy, *others = [call.args[1] for call in actor.call_args_list]
    self.assertEqual(others, [policy] * 3)
    self.assertIsInstance(policy, policies.SharedPolicy)
    # Nothing of the run goes on.
    self.assertNotIn('batcher-policy', [t.name for t in threading.enumerate()])

  @parameterized.parameters(
      ('auto', 'mlp', False, True, False),
      ('auto', 'mlp', True, False, False),
      ('auto', 'deep', False, False, False),
      ('none', 'mlp', False, False, False),
      ('policy', 'mlp', True, True, False),
      ('all', 'mlp', True, True, True))
  def test_what_xla_compiles(self, xla, agent, has_gpu, policy, learner):
    with mock.patch.object(tf.config, 'get_visible_devices',
                           return_value=['GPU:0'] if has_gpu else []), \
        mock.patch.object(policies, 'AgentPolicy') as made:
      _, _, settings = _made(config_lib.Config(agent=agent, xla=xla))
    self.assertEqual([c.kwargs['jit_compile'] for c in made.call_args_list],
                     [policy] * 2)
    self.assertEqual(settings['jit_compile'], learner)

  @parameterized.parameters(
      (5, 5), (32, None), (40, None))
  def test_unrolls_at_once(self, asked, micro_batch_size):
    _, _, settings = _made(config_lib.Config(
        agent='mlp', batch_size=32, micro_batch_size=asked))
    self.assertEqual(settings['micro_batch_size'], micro_batch_size)

  @parameterized.parameters(('float32', 'float32'),
                            ('bfloat16', 'mixed_bfloat16'))
  @pytest.mark.slow
  def test_compute_dtype(self, compute_dtype, dtype_policy):
    self.addCleanup(tf.keras.config.set_dtype_policy, 'float32')
    found = []
    training.train(
        config_lib.Config(
            logdir=self.create_tempdir().full_path, level_name='catch',
            num_actors=1, batch_size=1, unroll_length=2, use_lstm=False,
            xla='none', total_environment_frames=2,
            compute_dtype=compute_dtype),
        hooks=[lambda update: found.append(
            update.learner.agent.get_layer(index=0).dtype_policy.name)])
    self.assertEqual(set(found), {dtype_policy})

  def test_error_in_a_shared_policy(self):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, level_name='catch', agent='mlp',
        num_actors=2, num_actor_groups=2, dynamic_batching=True)
    with mock.patch.object(policies.AgentPolicy, 'step',
                           side_effect=ValueError('Broken')):
      with self.assertRaisesRegex(ValueError, 'Broken'):
        training.train(config)
    self.assertEmpty([t.name for t in threading.enumerate()
                      if t.name.startswith(('actor-', 'batch'))])

  @parameterized.parameters(
      ['--recipe=catch', '--batch_size=4'],
      ['--batch_size=4', '--recipe=catch'],
      ['--batch_size=4', '--recipe', 'catch'],
      ['--batch_size', '4', '-recipe=catch'])
  def test_flags_override_recipes(self, *args):
    config = experiment.parse(args)
    self.assertEqual(config.batch_size, 4)
    self.assertEqual(config.num_actors, 8)


# See `mutations.py`.
MUTATIONS = (
    dict(file='experiment',
         catches='test_a_wrong_directory_is_said_before_a_missing_package',
         rows=(
             ('the default level is checked', 'is_lost or config.ray_address',
              'config.ray_address'),
             ('no level is checked',
              "and not flags.FLAGS['level_name'].present\n             and",
              'and'),
         )),
    dict(file='settings/recipes/__init__',
         catches='test_flags_override_recipes', rows=(
        ('a recipe overrides flags', "[f'--flagfile={_path(name)}', *rest]",
         "[*rest, f'--flagfile={_path(name)}']"),
        ('the second word is not taken', 'left = left[0 if equals else 1:]',
         'left = left[0:]'),
    )),
    dict(file='modes/loading', catches='test_lost_environments_restart', rows=(
        ('tests do not restart lost environments',
         'restarts=shares.restarts_of(config),', ''),
    )),
    dict(file='acting/shares', catches='test_lost_environments_restart', rows=(
        ('deterministic runs restart lost environments',
         'None if config.deterministic else', ''),
    )),
)


if __name__ == '__main__':
  absltest.main()
