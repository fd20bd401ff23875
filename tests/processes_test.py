# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of processes: what runs there, what ends them, what replaces them."""

import ast
import collections
import contextlib
import ctypes
import errno
import fcntl
import functools
import io
import multiprocessing
import os
import pathlib
import pickle
import pty
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import fake_environments  # noqa: F401
import numpy as np
import psutil
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.modes import running
from scalable_agent.processes import console
from scalable_agent.processes import processes
from scalable_agent.processes import programs
from scalable_agent.processes import remote
from scalable_agent.processes import signals
from scalable_agent.processes import starts
from scalable_agent.processes import user_code
from scalable_agent.processes import workers

_TESTS = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_TESTS)
_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)
_AT_IMPORT = dict(os.environ)
# Builds, resets and steps are said with the process in which they are.
_MODULE = """
    import os
    import gymnasium
    import numpy as np
    def note(what):
      with open(os.environ['NOTES'], 'a') as f:
        print(what, os.getpid(), file=f)
    note('import')
    class Mine(gymnasium.Env):
      observation_space = gymnasium.spaces.Dict({
          name: gymnasium.spaces.Box(0, 9, (1,), np.float32)
          for name in ('observation', 'achieved_goal', 'desired_goal')})
      action_space = gymnasium.spaces.Discrete(2)
      def __init__(self):
        note('build')
      def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}
      def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}
      def compute_reward(self, achieved_goal, desired_goal, info):
        note('reward')
        return achieved_goal[..., 0] - desired_goal[..., 0]
    gymnasium.register('Mine-v0', Mine)
"""


class PatienceTest(absltest.TestCase):

  def test_time_runs_out(self):
    patience = processes.Patience(2.5)
    asked = []
    with mock.patch.object(time, 'monotonic', lambda: sum(asked)):
      while patience.left_s > 0:
        self.assertEqual(patience.wait(lambda s: asked.append(s) or 'x'), 'x')
    self.assertEqual(asked, [1, 1, 0.5])

  def test_time_of_a_pause_does_not_count(self):
    patience = processes.Patience(2.5)
    times = [0, 1000, 1000, 1001]
    with mock.patch.object(time, 'monotonic', side_effect=times):
      patience.wait(lambda s: None)
      self.assertEqual(patience.left_s, 1.5)
      patience.wait(lambda s: None)
    self.assertEqual(patience.left_s, 0.5)


class SignalsTest(parameterized.TestCase):

  def test_in_another_thread_no_signal_is_handled(self):
    found = []

    def run():
      with signals.stop_on_signals() as stop:
        found.append((stop.is_set(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    thread.join()
    self.assertEqual(found, [(False, before)])

  def test_the_handler_waits_for_no_lock_of_its_thread(self):
    setters = []

    class Stop(signals.Stop):

      def set(self):
        setters.append(threading.current_thread())
        super().set()

    with signals.stop_on_signals(Stop()) as stop:
      os.kill(os.getpid(), signal.SIGTERM)
      self.assertTrue(stop.is_set())
      self.assertTrue(stop.wait(600))
    self.assertNotIn(threading.main_thread(), setters)

  def test_a_program_that_takes_the_wakeup_descriptor(self):
    with signals.stop_on_signals() as stop:
      previous = signal.set_wakeup_fd(-1)
      os.kill(os.getpid(), signal.SIGTERM)
      self.assertTrue(stop.wait(600))
      signal.set_wakeup_fd(previous)

  def _start(self, same_signal_s):
    """Starts a program that saves, after a signal, until a line comes."""
    process = subprocess.Popen(
        [sys.executable, '-c', 'import time\n'
         'from scalable_agent.processes import signals\n'
         f'signals._SAME_SIGNAL_S = {same_signal_s}\n'
         'with signals.stop_on_signals() as stop:\n'
         '  print("ready", flush=True)\n  stop.wait()\n'
         '  print("stops", flush=True)\n  input()\n  time.sleep(1)\n'
         'print("saved", stop.number, flush=True)'],
        env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    self.addCleanup(process.kill)
    self.assertEqual(process.stdout.readline(), 'ready\n')
    process.terminate()
    self.assertEqual(process.stdout.readline(), 'stops\n')
    return process

  def test_signals_at_once_are_one(self):
    # As `timeout` sends signals.
    process = self._start(same_signal_s=60)
    process.terminate()
    self.assertEqual(process.communicate('\n')[0], 'saved 15\n')
    self.assertEqual(process.returncode, 0)

  def test_a_second_signal_ends_the_process(self):
    process = self._start(same_signal_s=0)
    for _ in range(600):
      if process.poll() is not None:
        break
      process.send_signal(signal.SIGINT)
      time.sleep(.1)
    self.assertEqual(process.poll(), -signal.SIGINT)
    self.assertEqual(process.stdout.read(), '')

  def _stop_in_a_long_call(self, is_program, before=''):
    """Sends a signal while Python cannot run the handler of the signal.

    `before` are lines of Python that come first.
    """
    process = subprocess.Popen(
        [sys.executable, '-c', 'import ctypes, os, signal\n'
         f'from scalable_agent.processes import signals\n{before}'
         'signals._PATIENCE_S = signals._SAME_SIGNAL_S = .1\n'
         f'signals.is_program = {is_program}\n'
         'with signals.stop_on_signals(signals.Stop(waits_for="")):\n'
         '  # Another thread gets the signal, and the call goes on.\n'
         '  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n'
         '  ctypes.CDLL(None).system('
         'b"echo ready >&2; exec >&- 2>&-; read line")'],
        env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    self.addCleanup(process.kill)
    self.assertEqual(process.stderr.readline(), 'ready\n')
    process.terminate()
    return process

  def test_a_long_call_ends_the_program(self):
    process = self._stop_in_a_long_call(is_program=True)
    self.assertEqual(process.wait(), 143)
    self.assertEqual(
        process.communicate()[1],
        'Ended by a signal before there was anything new to save.\n')

  def test_a_long_call_does_not_end_the_process_of_a_caller(self):
    process = self._stop_in_a_long_call(is_program=False)
    self.assertEqual(
        process.stdout.readline(), 'Still waiting for the call in progress. A '
        'second signal ends the program at once.\n')
    self.assertIsNone(process.poll())
    process.terminate()
    self.assertEqual(process.wait(), -signal.SIGTERM)  # The call goes on.

  @parameterized.parameters(
      'os.dup2(os.open("/dev/full", os.O_WRONLY), 1)\n',
      'os.set_blocking(1, False)\n'  # Nobody reads.
      'os.write(1, bytes(10_000_000))\nos.set_blocking(1, True)\n')
  def test_a_second_signal_counts_if_nothing_can_be_printed(self, before):
    process = self._stop_in_a_long_call(is_program=False, before=before)
    for _ in range(600):
      if process.poll() is not None:
        break
      time.sleep(.5)
      process.terminate()
    self.assertEqual(process.poll(), -signal.SIGTERM)
    self.assertEqual(process.stderr.read(), '')


class ReportTest(absltest.TestCase):

  def test_a_module_that_ends_the_program(self):
    directory = self.create_tempdir()
    directory.create_file('ends_all.py', 'raise SystemExit(0)\n')
    self.enter_context(mock.patch.object(
        sys, 'path', [directory.full_path, *sys.path]))
    with self.assertRaisesRegex(
        errors.UserCodeError, '^ends_all of --hook raised SystemExit: 0$'):
      user_code.load('ends_all:f', 'hook')

  def test_a_module_with_a_wrong_line(self):
    directory = self.create_tempdir()
    file = directory.create_file('wrong_line.py', 'import os\ndef f(:\n')
    self.enter_context(mock.patch.object(
        sys, 'path', [directory.full_path, *sys.path]))
    with self.assertRaisesRegex(
        errors.UserCodeError, 'raised SyntaxError: invalid syntax') as e:
      user_code.load('wrong_line:f', 'hook')
    self.assertEqual(e.exception.frames, (
        f'  File "{file.full_path}", line 2\n    def f(:\n          ^\n'))

  def test_a_call_that_ends_the_program(self):
    with self.assertRaisesRegex(errors.UserCodeError, 'm:f raised SystemExit'):
      with user_code.errors_explained('m:f'):
        sys.exit()

  def test_goes_through_bytes(self):
    for report in (user_code.ErrorText('äé: \t', 'a\nb', 'c'),
                   user_code.ErrorText('x')):
      data = report.to_bytes(1000) + b'\0' * 7
      self.assertEqual(user_code.ErrorText.from_bytes(data), report)

  def test_what_is_too_long_is_cut(self):
    report = user_code.ErrorText('ä' * 10, 'b' * 10, 'c' * 10)
    for size in range(32, 5, -1):
      data = report.to_bytes(size)
      self.assertLessEqual(len(data), size)
      found = user_code.ErrorText.from_bytes(data)
      self.assertTrue(all(map(str.startswith, report, found)), found)

  def test_a_report_has_all_of_an_error(self):
    text = 'two lines:\n{{a}} and [Op:b] c'
    self.assertEqual(user_code.report(ValueError(text)).text,
                     f'ValueError: {text}')

  def test_error_can_be_pickled(self):
    error = user_code.ErrorText('ValueError: x', 'frames', 'all').error('catch')
    found = pickle.loads(pickle.dumps(error))
    self.assertEqual((str(found), found.frames, found.all_frames),
                     ('catch raised ValueError: x', 'frames', 'all'))


def _thing_without_server():
  server = os.getppid()
  os.kill(server, signal.SIGKILL)
  while os.getppid() == server:
    time.sleep(.01)
  return _Thing


class _EndsServer:
  """Ends the server in a process that the server has only just forked."""

  def __reduce__(self):
    return _thing_without_server, ()


class _Thing:

  def double(self, value):
    return 2 * value

  def pid(self):
    return os.getpid()

  def server(self):
    return os.getppid()

  def signals_of_a_program(self):
    return subprocess.run(['grep', 'Sig[BI]', '/proc/self/status'], text=True,
                          check=True, stdout=subprocess.PIPE).stdout

  def variables(self, *names):
    return [[environ.get(name) for name in names]
            for environ in (_AT_IMPORT, os.environ)]

  def user_error(self):
    raise errors.LevelError('Use another.')

  def error(self):
    raise fake_environments.AwkwardError('this', 'that')

  def end_of_file(self):
    raise EOFError('mine')

  def exit(self):
    os._exit(5)

  def hang(self):
    time.sleep(10_000)

  def long_result(self, size):
    return bytes(size)

  def start(self, environ=None):
    """Starts a program that writes files; returns its pid and directory."""
    directory = processes.directory()
    program = subprocess.Popen(
        ['/bin/sh', '-c', 'while true; do date > "$0/$((n += 1))"; done',
         directory], stdin=subprocess.DEVNULL, env=environ)
    return program.pid, directory

  def say(self):
    print('said', flush=True)
    return 'answered'


def _kill(process):
  with contextlib.suppress(psutil.NoSuchProcess):
    process.kill()


class RemoteTest(parameterized.TestCase):

  def test_what_cannot_be_sent_is_said(self):
    lock = threading.Lock()
    with self.assertRaisesRegex(
        errors.UserCodeError, '^my_level cannot be sent to another process: '
        "cannot pickle '_thread.lock' object. Make locks, "):
      remote.Remote('my_level', lambda: lock, timeout_s=60.)

  def test_a_pointer_cannot_be_sent(self):
    pointer = ctypes.pointer(ctypes.c_int(1))
    with self.assertRaisesRegex(
        errors.UserCodeError, '^my_level cannot be sent to another process: '
        'ctypes objects containing pointers'):
      remote.Remote('my_level', lambda: pointer, timeout_s=60.)

  def test_a_process_that_cannot_be_started(self):
    with mock.patch.object(
        processes, 'start', side_effect=OSError('no room')):
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError,
          "^The process of thing cannot be started: OSError.'no room'"):
        remote.Remote('thing', _Thing, timeout_s=60.)

  def test_a_last_call_may_hang(self):
    with remote.Remote('thing', _Thing, 60) as thing:
      thing.call_last('hang', .1)
    self.assertEmpty(multiprocessing.active_children())

  def test_the_server_does_not_see_ctrl_c_while_it_imports(self):
    program = textwrap.dedent("""
        import os, signal, processes_test
        from scalable_agent.processes import remote
        with remote.Remote('thing', processes_test._Thing, 60) as thing:
          server = thing.call('server')
          with open(f'/proc/{server}/status') as f:
            print([line for line in f if line.startswith('SigBlk')])
          print([thing.call('signals_of_a_program')])
        """)
    output = subprocess.run(
        [sys.executable, '-c', program], text=True, check=True,
        stdout=subprocess.PIPE, env={
            **os.environ, 'PYTHONPATH': os.pathsep.join([_ROOT, _TESTS])})
    found = [
        (name, bool(int(mask, 16) & (1 << (signal.SIGINT - 1))))
        for name, mask in re.findall(r'(Sig\w+):\\t(\w+)', output.stdout)]
    # Programs of environments may end by this signal.
    self.assertEqual(
        found, [('SigBlk', True), ('SigBlk', False), ('SigIgn', False)])

  def test_variables_are_those_of_the_program(self):
    program = textwrap.dedent("""
        import os, processes_test
        from scalable_agent.processes import processes, remote
        def print_variables():
          with remote.Remote('thing', processes_test._Thing, 60) as thing:
            print(thing.call('variables', 'CHANGED', 'REMOVED', 'NEW',
                             'OMP_NUM_THREADS', 'MKL_NUM_THREADS'))
        os.environ[processes._DIRECTORY] = 'of another program'
        os.environ.update(CHANGED='before', REMOVED='before',
                          MKL_NUM_THREADS='2')
        os.environ.pop('OMP_NUM_THREADS', None)
        print_variables()
        os.environ.update(CHANGED='after', NEW='after')
        del os.environ['REMOVED'], os.environ['MKL_NUM_THREADS']
        print_variables()
        with remote.Remote('thing', processes_test._Thing, 60) as thing:
          print(thing.call('variables', processes._DIRECTORY))
        """)
    *found, [at_import, mark] = map(ast.literal_eval, subprocess.run(
        [sys.executable, '-c', program], text=True, check=True,
        stdout=subprocess.PIPE, env={
            **os.environ, 'PYTHONPATH': os.pathsep.join([_ROOT, _TESTS])}
    ).stdout.splitlines())
    self.assertEqual(found, [[['before', 'before', None, '1', '2']] * 2,
                             [['after', None, 'after', '1', '1']] * 2])
    self.assertEqual(at_import, mark)
    self.assertNotEqual(mark, ['of another program'])

  def test_calls(self):
    with remote.Remote('thing', _Thing, float('inf')) as thing:
      np.testing.assert_array_equal(
          thing.call('double', np.arange(3)), [0, 2, 4])
      self.assertNotIn(thing.call('pid'), (os.getpid(), os.getppid()))
    self.assertEmpty(multiprocessing.active_children())
    thing.close()

  @parameterized.parameters(
      ('user_error', errors.LevelError, '^Use another.$'),
      ('error', errors.EnvironmentProcessError,
       '^thing raised AwkwardError: this and that$'),
      ('end_of_file', errors.EnvironmentProcessError, 'EOFError: mine$'),
      ('no_such', errors.EnvironmentProcessError, 'AttributeError'),
      ('exit', errors.EnvironmentProcessError, 'thing died with exit code 5'),
      ('hang', errors.EnvironmentProcessError,
       r'thing did not answer within 3 seconds \(--step_timeout_s\)'))
  def test_errors(self, method, error, message):
    thing = remote.Remote('thing', _Thing, 3 if method == 'hang' else 60)
    with self.assertRaisesRegex(error, message):
      thing.call(method)
    self.assertEmpty(multiprocessing.active_children())
    thing.close()

  @parameterized.parameters(
      ('double', b'x' * 3_000_000), ('long_result', 3_000_000))
  def test_stopped_within_a_long_message(self, method, argument):
    thing = remote.Remote('thing', _Thing, 2)
    pid = thing.call('pid')
    if method == 'long_result':
      thing._pipe.send((method, (argument,)))
      time.sleep(.5)  # Now the process waits for a reader of its result.
    os.kill(pid, signal.SIGSTOP)
    end = threading.Timer(20, os.kill, (pid, signal.SIGKILL))
    end.start()
    self.addCleanup(end.cancel)
    with self.assertRaisesRegex(
        errors.EnvironmentProcessLostError, 'did not answer within 2 seconds'):
      thing.call(method, argument)
    self.assertEmpty(multiprocessing.active_children())

  def test_a_start_may_take_longer_than_a_call(self):
    remote.Remote('thing', functools.partial(time.sleep, .3), .1).close()

  @parameterized.parameters(
      ('NeverBuilt', 300, 'raised ValueError: no way to be$'),
      ('NeverThere', 300, 'died with exit code 0'),
      ('NeverReady', 1, r'did not answer within 3 seconds \(--step_timeout_s, '
       r'and 2 s more\)'))
  def test_environments_that_cannot_be_built(self, name, timeout_s, message):
    # Other tests may have left vectors open.
    with mock.patch.dict(starts._num_open, clear=True), mock.patch.object(
        starts, 'TIMEOUT_S', 2.), self.assertRaisesRegex(
            errors.EnvironmentProcessError, f'fake/{name}-v0 {message}'):
      environments.make_vec([f'fake/{name}-v0'], [1],
                            environments.EnvironmentSettings(
                                num_action_repeats=1, step_timeout_s=timeout_s))
    self.assertEmpty(multiprocessing.active_children())

  @parameterized.parameters(
      ('close',), ('kill',), ('exit',), ('end', {'PATH': '/usr/bin:/bin'}))
  def test_what_it_has_started_ends_with_it(self, how, environ=None):
    thing = remote.Remote('thing', _Thing, 60)
    pid, directory = thing.call('start', environ)
    program = psutil.Process(pid)
    self.addCleanup(_kill, program)
    self.assertTrue(os.path.isdir(directory))
    if how == 'end':
      processes.end([thing._process])
    elif how == 'kill':
      thing._process.kill()
    elif how == 'exit':
      with self.assertRaises(errors.EnvironmentProcessError):
        thing.call('exit')
    thing.close()
    self.assertFalse(
        program.is_running() and program.status() != psutil.STATUS_ZOMBIE)
    self.assertFalse(os.path.exists(directory))

  def test_the_server_is_killed_while_a_process_starts(self):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessLostError, 'died with exit code'):
      remote.Remote('thing', _EndsServer(), 60)
    with remote.Remote('thing', _Thing, 60) as thing:
      self.assertIsNotNone(thing.call('variables', processes._DIRECTORY)[1][0])

  def test_groups_of_others_are_left_alone(self):
    self.assertIsNone(processes.directory())
    program = subprocess.Popen(['/bin/sleep', '1000'], start_new_session=True)
    self.addCleanup(program.wait)
    self.addCleanup(program.kill)
    # As if it had got the number of a process that has ended.
    self.assertFalse(processes._kill_groups([program]))
    self.assertIsNone(program.poll())
    with remote.Remote('thing', _Thing, 60) as thing:
      self.assertTrue(processes._kill_groups([thing._process]))

  @parameterized.parameters(None, 'of another program')
  def test_the_environment_is_as_it_was(self, before):
    name = processes._DIRECTORY
    environ = {} if before is None else {name: before}
    with mock.patch.dict(os.environ, environ):
      with processes._mark_server():
        self.assertNotIn(os.environ[name], (None, before))
      self.assertEqual(os.environ.get(name), before)

  @parameterized.parameters(None, 'spawn')
  def test_the_program_can_choose_the_start_method(self, method):
    get = functools.partial(multiprocessing.get_start_method, allow_none=True)
    self.addCleanup(multiprocessing.set_start_method, get(), force=True)
    multiprocessing.set_start_method(method, force=True)
    with remote.Remote('thing', _Thing, 60) as thing:
      self.assertEqual(get(), method)
      self.assertEqual(thing.call('double', 2), 4)

  def test_what_the_program_forks_ends_nothing(self):
    with remote.Remote('thing', _Thing, 60) as thing:
      pid = os.fork()
      if not pid:
        processes._end_all()
        os._exit(0)
      os.waitpid(pid, 0)
      self.assertEqual(thing.call('double', 2), 4)

  def test_terminals_that_stop_who_writes_in_the_background(self):
    program = textwrap.dedent("""
        import termios
        import processes_test
        from scalable_agent.processes import remote
        attributes = termios.tcgetattr(0)
        attributes[3] |= termios.TOSTOP
        termios.tcsetattr(0, termios.TCSANOW, attributes)
        with remote.Remote('thing', processes_test._Thing, 30) as thing:
          print(thing.call('say'))
        """)
    pid, terminal = pty.fork()
    if not pid:
      os.execve(sys.executable, [sys.executable, '-c', program], {
          **os.environ, 'PYTHONPATH': os.pathsep.join([_ROOT, _TESTS])})
    output = b''
    with contextlib.suppress(OSError):  # At its end.
      while data := os.read(terminal, 1024):
        output += data
    os.close(terminal)
    self.assertEqual(os.waitpid(pid, 0)[1], 0, output)
    self.assertEqual(output.split(), [b'said', b'answered'])


class UserModuleTest(parameterized.TestCase):
  """Modules of users are imported by other processes only."""

  def setUp(self):
    super().setUp()
    directory = self.create_tempdir()
    with open(os.path.join(directory.full_path, 'my_module.py'), 'w') as f:
      f.write(textwrap.dedent(_MODULE))
    self.notes = os.path.join(directory.full_path, 'notes.txt')
    path = [directory.full_path, *sys.path]
    self.enter_context(mock.patch.object(sys, 'path', path))
    self.enter_context(mock.patch.dict(os.environ, NOTES=self.notes))

  def test_nothing_runs_in_this_process(self):
    level = 'my_module:Mine-v0'
    with environments.make_vec([level], [1], _SETTINGS) as env:
      env.initial()
    rewards, terminated = environments.goal_functions(level, _SETTINGS)
    np.testing.assert_array_equal(
        rewards(np.array([[3], [5]]), np.array([[1], [1]])), [2, 4])
    self.assertIsNone(terminated)
    with open(self.notes) as f:
      notes = [line.split() for line in f]
    self.assertEqual({what for what, _ in notes}, {'import', 'build', 'reward'})
    self.assertLen({pid for _, pid in notes}, 3)
    self.assertNotIn(str(os.getpid()), {pid for _, pid in notes})

  @parameterized.parameters(
      ('no_such_module:Mine-v0', errors.MissingDependencyError,
       "no_such_module:Mine-v0 cannot be imported: No module named"),
      ('fake_environments:fake/Plane-v0', errors.UnknownLevelError,
       'Did you mean fake_environments:fake/Plain-v0'))
  def test_errors(self, level, error, message):
    with self.assertRaisesRegex(error, message):
      environments.make_vec([level], [1], _SETTINGS)

  @parameterized.parameters(
      ("gymnasium.register('my id', 'm:Mine')", 'Malformed environment ID'),
      ("gymnasium.spec('NoSuch-v0')", 'NameNotFound: .* `NoSuch`'))
  def test_errors_of_gymnasium_in_a_module(self, line, message):
    directory = self.create_tempdir()
    directory.create_file('wrong.py', f'import gymnasium\n{line}\n')
    with mock.patch.object(
        sys, 'path', [directory.full_path, *sys.path]), self.assertRaisesRegex(
            errors.EnvironmentProcessError,
            f'wrong:Mine-v0 raised .*{message}') as caught:
      environments.make_vec(['wrong:Mine-v0'], [1], _SETTINGS)
    self.assertIn(line, caught.exception.frames)

  def test_warnings_of_a_level_come_once(self):
    code = """
import numpy as np
from scalable_agent import environments
with environments.make_vec(
    ['fake_environments:fake/Warns-v0'] * 3, [1, 2, 3]) as env:
  env.initial()
  env.step(np.zeros([3], np.int32))
"""
    found = subprocess.run(
        [sys.executable, '-c', code], check=True, text=True,
        stderr=subprocess.PIPE,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}).stderr
    self.assertEqual(found.count('UserWarning: It is built.'), 1)
    self.assertEqual(found.count('UserWarning: It is stepped.'), 1)


class DescriptorsTest(absltest.TestCase):

  def _limits_after(self, soft, hard, num_processes):
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from scalable_agent.processes import descriptors
descriptors.check({num_processes})
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    return subprocess.run([sys.executable, '-c', code], text=True,
                          capture_output=True, cwd=_ROOT)

  def test_the_limit_of_files_is_raised_if_needed(self):
    self.assertEqual(self._limits_after(256, 900, 9).stdout, '(256, 900)\n')
    self.assertEqual(self._limits_after(256, 900, 90).stdout, '(900, 900)\n')

  def test_too_many_processes(self):
    self.assertRegex(
        self._limits_after(256, 300, 90).stderr,
        'ConfigError: 90 processes .*, but the limit is 300: .*ulimit -n')


class RestartsTest(parameterized.TestCase):

  def make(self, level, num_envs, limit, same_seeds=False, **settings):
    self.restarts = environments.Restarts(limit, same_seeds)
    env = environments.make_vec(
        [level] * num_envs, list(range(num_envs)),
        environments.EnvironmentSettings(num_action_repeats=1, **settings),
        restarts=self.restarts)
    self.addCleanup(env.close)
    return env

  def fails(self, call, error, message):
    with contextlib.redirect_stdout(io.StringIO()) as output:
      with self.assertRaises(error) as caught:
        call()
    self.assertRegex(output.getvalue() or str(caught.exception), message)

  def test_goes_on_with_other_environments(self):
    env = self.make('catch', 3, 2)
    before = [env.initial().observation.copy() for _ in range(2)]
    np.testing.assert_array_equal(*before)
    found = [before[0]]
    for number in (1, 2):
      env.step(np.zeros([3], np.int32))
      _kill_children()
      self.fails(
          lambda: env.step(np.zeros([3], np.int32)),
          errors.EnvironmentLostError,
          r'(?s)environment 0 \(catch\).* died with exit code -9.*'
          'The 3 environments of this group restart.*'
          rf'restart {number} within an hour, 2 are allowed')
      self.assertEmpty(multiprocessing.active_children())
      found.append(env.initial().observation.copy())
      # Columns of the ball; the same ones for three seeds would be by chance.
      env.step(np.zeros([3], np.int32))
    self.assertEqual(self.restarts.count, 2)
    self.assertFalse(all(np.array_equal(found[0], f) for f in found[1:]))
    _kill_children()
    self.fails(
        lambda: env.step(np.zeros([3], np.int32)),
        errors.EnvironmentProcessError,
        '(?s)died with exit code -9.* were lost 3 times within an hour; '
        '--max_environment_restarts=2.')

  def test_same_seeds_begin_the_same_episodes(self):
    env = self.make('catch', 3, 3, same_seeds=True)
    before = env.initial().observation.copy()
    _kill_children()
    self.fails(lambda: env.step(np.zeros([3], np.int32)),
               errors.EnvironmentLostError, 'group restart')
    np.testing.assert_array_equal(env.initial().observation, before)
    for is_said in (True, False):
      _kill_children()
      self.fails(lambda: env.step(np.zeros([3], np.int32)),
                 errors.EnvironmentLostError, 'group restart')
      with contextlib.redirect_stdout(io.StringIO()) as output:
        self.assertFalse(np.array_equal(env.initial().observation, before))
      self.assertEqual('Other games are played from now on'
                       in output.getvalue(), is_said)

  @pytest.mark.storm
  def test_hung_environments_are_replaced(self):
    env = self.make('fake/Hangs-v0', 2, 1, step_timeout_s=3)
    env.initial()
    env.step(np.array([0, 0]))
    self.fails(lambda: env.step(np.array([0, 0])), errors.EnvironmentLostError,
               r'environment 1 \(fake/Hangs-v0\) did not answer within 3 s')
    env.initial()  # Other seeds: these do not hang.
    env.step(np.array([0, 0]))
    env.step(np.array([0, 0]))

  def test_errors_of_environments_are_not_tried_again(self):
    env = self.make('fake/Raises-v0', 2, 9)
    env.initial()
    env.step(np.array([0, 0]))
    self.fails(lambda: env.step(np.array([0, 0])),
               errors.EnvironmentProcessError, 'AwkwardError')
    self.assertEqual(self.restarts.count, 0)

  def test_closed_while_it_begins_anew(self):
    env = self.make('catch', 1, 9)
    env.initial()
    _kill_children()
    self.fails(lambda: env.step(np.array([0])), errors.EnvironmentLostError,
               'group restart')
    env._env._closed = True  # As `close` of another thread, in the meantime.
    self.fails(env.initial, errors.EnvironmentProcessError, 'closed')
    self.assertEmpty(multiprocessing.active_children())

  def test_closed_while_a_loss_is_noticed(self):
    env = self.make('catch', 1, 9)._env
    whole, answers = env._env, []

    class Racing(type(env)):

      @property
      def _env(self):  # The acting thread comes after the first look.
        answers.append(whole if not answers else None)
        return answers[-1]

    env.__class__ = Racing
    env.close()
    self.assertEqual(answers, [whole])

  def test_only_the_last_hour_counts(self):
    restarts = environments.Restarts(2)
    times = [0, 10, 3599, 3601, 3609, 9000]
    with mock.patch.object(time, 'monotonic', side_effect=times):
      self.assertEqual([restarts.add() for _ in times], [1, 2, 3, 3, 4, 1])
    self.assertEqual(restarts.count, 6)


def _kill_children():
  for process in multiprocessing.active_children():
    process.kill()
    process.join()


class LifeTest(parameterized.TestCase):
  """Programs with environments that are stopped, continued, and killed."""

  def start(self, level, timeout_s=300):
    """Starts a program that steps environments forever, in a session."""
    program = textwrap.dedent(f"""
        import multiprocessing
        import os
        import signal
        import numpy as np
        import fake_environments
        from scalable_agent import environments
        from scalable_agent.environments import gymnasium_env
        gymnasium_env._CLOSE_TIMEOUT_S = .5
        env = environments.make_vec(
            ['{level}'] * 2, [0, 0], environments.EnvironmentSettings(
                num_action_repeats=1, step_timeout_s={timeout_s}))
        env.initial()
        signal.signal(signal.SIGTERM, lambda *_: exit(7))
        workers = [p.pid for p in multiprocessing.active_children()]
        server = open(f'/proc/{{workers[0]}}/stat').read().split()[3]
        print(*workers, server, flush=True)
        try:
          while True:
            env.step(np.zeros([2], np.int32))
            print('step', flush=True)
        finally:
          env.close()
        """)
    process = subprocess.Popen(
        [sys.executable, '-c', program], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([_ROOT, _TESTS])})
    self.addCleanup(self._end, process)
    return process, [int(pid) for pid in process.stdout.readline().split()]

  def _end(self, process):
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

  @pytest.mark.storm
  def test_suspended_time_does_not_count(self):
    process, _ = self.start('fake/Sleeps-v0', timeout_s=4)
    for _ in range(2):
      self.assertEqual(process.stdout.readline(), 'step\n')
      os.killpg(process.pid, signal.SIGSTOP)
      time.sleep(6)
      os.killpg(process.pid, signal.SIGCONT)
    self.assertEqual(process.stdout.readline(), 'step\n')

  @parameterized.parameters(([0],), ([2],), ([0, 1, 2],))
  @pytest.mark.storm
  def test_all_die_with_their_parent(self, stopped):
    process, pids = self.start('catch')
    for index in stopped:
      os.kill(pids[index], signal.SIGSTOP)
    if len(stopped) == len(pids):
      os.killpg(process.pid, signal.SIGSTOP)
    process.kill()
    # They hold the other end of this pipe until they are gone.
    process.communicate()

  @pytest.mark.slow
  def test_environments_may_print_to_a_full_disk(self):
    program = textwrap.dedent("""
        import numpy as np
        import fake_environments
        from scalable_agent import environments
        with environments.make_vec(['fake/Prints-v0'], [0]) as env:
          env.initial()
          for _ in range(3):
            env.step(np.zeros([1], np.int32))
        """)
    with open('/dev/full', 'w') as full:
      subprocess.run(
          [sys.executable, '-c', program], stdout=full, stderr=full, check=True,
          env={**os.environ, 'PYTHONPATH': os.pathsep.join([_ROOT, _TESTS])})

  @pytest.mark.slow
  def test_processes_of_environments_die_with_a_killed_program(self):
    process, _ = self.start('fake/Children-v0')
    process.kill()
    # Processes of environments inherit this pipe, too.
    process.communicate()

  @parameterized.parameters(([0],), ([2],), ([0, 1, 2],))
  @pytest.mark.storm
  def test_stopped_ones_do_not_delay_the_end(self, stopped):
    process, pids = self.start('catch')
    for index in stopped:
      os.kill(pids[index], signal.SIGSTOP)
    # To the whole group, as batch systems do.
    os.killpg(process.pid, signal.SIGTERM)
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 7, output)
    self.assertNotIn('Traceback', output)

  @pytest.mark.slow
  def test_signals_of_the_group_are_left_to_the_main_process(self):
    process, pids = self.start('catch')
    for pid in pids:
      os.kill(pid, signal.SIGTERM)
      os.kill(pid, signal.SIGHUP)
    lines = [process.stdout.readline() for _ in range(1000)]
    self.assertEqual(lines, ['step\n'] * 1000)


def _server(program):
  """Returns the server of a program's processes."""
  server, = [process for process in psutil.Process(program.pid).children()
             if 'forkserver' in ' '.join(process.cmdline())]
  return server


class ReadyTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.time_s = 5000.0
    self.enter_context(mock.patch.object(
        starts.time, 'monotonic', lambda: self.time_s))
    for name, value in ('_num_open', {}), ('_num_ready', {}), ('_said_s', 0.0):
      self.enter_context(mock.patch.object(starts, name, value))

  def _said(self, key, num_ready):
    with contextlib.redirect_stdout(io.StringIO()) as output:
      starts.ready(key, num_ready, 60)
    return output.getvalue()

  def test_a_line_comes_after_the_period_and_counts_what_was_reset(self):
    for key, num_environments in enumerate((2, 3, 10)):
      starts.open_vector(key, num_environments)
    starts.begin(0)  # The other group is open, and begins later.
    self.assertEqual(self._said(0, 1), '')
    self.time_s += 30
    starts.begin(1)
    self.assertEqual(self._said(1, 0), '')
    self.time_s += 31
    # The third vector, as that of evaluations, was never reset.
    self.assertEqual(self._said(1, 2), '3 of 5 environments are ready.\n')
    self.assertEqual(self._said(1, 3), '')
    starts.ready(0, 2, 0)
    self.time_s += 1000
    starts.begin(2)
    self.assertEqual(self._said(2, 0), '')
    self.time_s += 61
    self.assertEqual(self._said(2, 4), '9 of 15 environments are ready.\n')
    for key in range(3):
      starts.close_vector(key)
    starts.begin(0)  # Closed by another thread.
    self.assertEqual((starts._num_open, starts._num_ready), ({}, {}))

  def test_a_vector_without_memory_is_not_open(self):
    with (mock.patch.object(workers.shared_arrays, 'allocate',
                            side_effect=errors.ConfigError('little')),
          self.assertRaises(errors.ConfigError)):
      environments.make_vec(['CartPole-v1'], [1])
    self.assertEmpty(starts._num_open)


class EndTest(absltest.TestCase):

  def test_processes_of_other_threads_are_not_asked(self):
    mine, other = mock.Mock(pid=2**30), mock.Mock(pid=2**30)
    mine.is_alive.return_value = False
    with mock.patch.object(processes, '_started', [mine, other]):
      processes.end([mine])
      self.assertEqual(processes._started, [other])
    other.is_alive.assert_not_called()


class OutputTest(absltest.TestCase):

  def test_some_errors_are_dropped(self):
    for code, dropped, is_raised in (
        (errno.EIO, (), False), (errno.ENOSPC, (), False),
        (errno.EPIPE, (), True), (errno.EPIPE, [errno.EPIPE], False)):
      output = console.Output(mock.Mock(
          write=mock.Mock(side_effect=OSError(code, ''))), dropped)
      with (self.assertRaises(OSError) if is_raised
            else contextlib.nullcontext()):
        output.write('text')

  def test_what_environments_may_ask_of_a_stream(self):
    with tempfile.TemporaryFile('w', errors='replace') as file:
      output = console.Output(file)
      output.reconfigure(line_buffering=True)
      output.buffer.write(b'1')
      self.assertEqual((output.errors, output.encoding, output.line_buffering),
                       ('replace', file.encoding, True))


class PrintErrorTest(parameterized.TestCase):

  @parameterized.parameters(
      (MemoryError(), 'there is not enough memory.', True),
      (errors.DivergedError('It is nan.'), 'It is nan.', False),
      (KeyError('a bug'), None, False))
  def test_what_was_before_an_error_of_the_disk_is_said(
      self, first, text, is_out_of_memory):
    self.enter_context(mock.patch.object(console, 'is_out_of_memory', False))
    with contextlib.redirect_stderr(io.StringIO()) as output:
      try:
        try:
          try:
            raise first
          finally:
            raise OSError(errno.ENOSPC, 'full')
        except OSError as e:
          raise errors.SaveError('No checkpoint.') from e
      except errors.SaveError as e:
        console.print_error(e, all_frames=False)
    *before, last = output.getvalue().splitlines()
    self.assertEqual(last, 'scalable_agent: No checkpoint.')
    if text:
      self.assertEqual(before, [f'scalable_agent: {text}'])
    else:
      self.assertIn('Traceback', before[0])
      self.assertEqual(before[-1], "KeyError: 'a bug'")
    self.assertEqual(console.is_out_of_memory, is_out_of_memory)


class ProgramsTest(parameterized.TestCase):

  def test_an_interrupted_stop_sends_one_signal(self):
    child = mock.Mock()
    child.wait.side_effect = [SystemExit(1), 0]
    with self.assertRaises(SystemExit):
      programs.stop(child)
    programs.stop(child)
    child.terminate.assert_called_once_with()
    self.assertEqual(child.wait.call_count, 2)

  def test_a_run_that_is_being_stopped_is_stopped_to_the_end(self):
    child = mock.Mock()
    child.poll.return_value = None
    child.wait.side_effect = [SystemExit(1), 0]
    runs = running.ends(collections.deque(['a']), 1, lambda run: child, 0.,
                        is_over=lambda run: True)
    with self.assertRaises(SystemExit):
      list(runs)
    self.assertEqual(child.wait.call_count, 2)

  @parameterized.parameters(
      ('0,1', 2, ['0', '1', '1', '0']), ('0,1', 1, ['0,1'] * 4),
      ('0,1,2,3,4', 2, ['0,2,4', '1,3', '1,3', '0,2,4']),
      ('7', 2, ['7'] * 4), (None, 2, [None] * 4),
      ('3,5', 3, ['3', '5', '3', '5']))
  def test_jobs_share_the_gpus(self, names, jobs, expected):
    name, found = 'CUDA_VISIBLE_DEVICES', []
    # The run `c` gets the place of `b`, and `d` the place of `a`.
    codes = {'a': [None, 0], 'b': [0], 'c': [None, 0], 'd': [0]}

    def start(run):
      found.append(os.environ.get(name))
      return mock.Mock(poll=mock.Mock(side_effect=codes[run]))

    with mock.patch.dict(os.environ, {name: names} if names else {}):
      if not names:
        os.environ.pop(name, None)
      list(running.ends(collections.deque('abcd'), jobs, start, 0.))
      self.assertEqual(os.environ.get(name), names)
    self.assertEqual(found, expected)

  def test_a_deleted_directory_has_no_last_words(self):
    missing = pathlib.Path(self.create_tempdir().full_path) / 'missing'
    self.assertEqual(programs.last_words(missing), '')
    self.assertFalse(running.is_at_end(programs.output(missing)))

  @parameterized.parameters(
      ('', False), ('8 of 9 frames (88.9 %)\nSaved.', False),
      ('9 of 9 frames (100.0 %)\n', True),
      ('9 of 9 frames collected for the first update.\n', False),
      # Killed in the last evaluation, and started again.
      ('8 of 9 frames (88.9 %)\nThis run is finished: raise it.\n', True),
      # More frames were asked for.
      ('This run is finished: raise it.\n10 of 20 frames (50.0 %)', False))
  def test_is_at_end(self, output, expected):
    self.assertEqual(running.is_at_end(output), expected)


class ConsoleTest(absltest.TestCase):

  def test_a_child_of_another_thread_does_not_delay_the_end(self):
    with mock.patch.object(console, '_GREP_TIMEOUT_S', 0.01):
      with console.without_lines('x'):
        child = subprocess.Popen(
            [sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
      self.addCleanup(child.communicate, b'\n')
      self.assertIsNone(child.poll())


class StartTest(absltest.TestCase):

  def test_locks_that_strangers_may_have_made(self):
    for make in (os.mkfifo, lambda lock: os.symlink('/nowhere/file', lock),
                 lambda lock: os.symlink(__file__, lock), os.mkdir):
      path = os.path.join(self.create_tempdir().full_path, 'pymp-x')
      os.mkdir(path)
      make(os.path.join(path, processes._LOCK))
      self.assertFalse(processes._remove_run(path))  # Nor does it wait.
      self.assertLen(os.listdir(path), 1)
    path = os.path.join(self.create_tempdir().full_path, 'pymp-x')
    os.mkdir(path)
    lock = os.path.join(path, processes._LOCK)
    open(lock, 'x').close()
    with mock.patch.object(os, 'getuid', return_value=os.getuid() + 1):
      self.assertFalse(processes._remove_run(path))
    with open(lock, 'ab') as file:
      fcntl.flock(file, fcntl.LOCK_EX)
      self.assertFalse(processes._remove_run(path))
    self.assertTrue(processes._remove_run(path))
    self.assertFalse(os.path.exists(path))
    self.assertTrue(processes._remove_run(path))
    os.mkdir(path)
    open(os.path.join(path, 'rest'), 'x').close()  # Its lock is gone already.
    self.assertTrue(processes._remove_run(path))
    self.assertFalse(os.path.exists(path))

  def test_directories_of_killed_programs_are_removed(self):
    directory = self.enter_context(tempfile.TemporaryDirectory(dir='/tmp'))
    program = ('from scalable_agent import environments\n'
               "environments.make_vec(['catch'], [1])\n"
               "print('ready', flush=True)\n"
               'input()')

    def start():
      process = subprocess.Popen(
          [sys.executable, '-c', program], text=True, stdin=subprocess.PIPE,
          stdout=subprocess.PIPE,
          env={**os.environ, 'TMPDIR': directory, 'PYTHONPATH': _ROOT})
      self.assertEqual(process.stdout.readline(), 'ready\n')
      return process

    os.mkdir(os.path.join(directory, 'pymp-of_others'))
    first = start()
    [of_first] = set(os.listdir(directory)) - {'pymp-of_others'}
    second, third = start(), start()
    self.assertLen(os.listdir(directory), 4)
    third.kill()
    third.communicate()  # The server holds the other end until it has ended.
    self.assertLen(os.listdir(directory), 3)
    _server(first).kill()
    first.kill()
    first.communicate()
    self.assertIn(of_first, os.listdir(directory))
    fourth = start()
    self.assertLen(os.listdir(directory), 3)
    self.assertNotIn(of_first, os.listdir(directory))
    for process in second, fourth:
      process.communicate('\n')
      self.assertEqual(process.returncode, 0)
    self.assertEqual(os.listdir(directory), ['pymp-of_others'])

  def test_a_long_name_of_the_directory_for_temporary_files(self):
    directory = os.path.join(self.create_tempdir().full_path, 'x' * 100)
    os.mkdir(directory)
    program = ('from scalable_agent import environments\n'
               "environments.make_vec(['catch'], [1]).close()")
    found = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True,
        env={**os.environ, 'TMPDIR': directory, 'PYTHONPATH': _ROOT})
    self.assertEqual(found.returncode, 0, found.stderr)
    self.assertIn('temporary files are in /tmp', found.stdout)

  def test_threads_may_start_processes_together(self):
    found = []

    def start(number):
      with remote.Remote('thing', _Thing, 60) as thing:
        found.append(thing.call('double', number))

    threads = [threading.Thread(target=start, args=(i,)) for i in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertCountEqual(found, [0, 2, 4, 6])


# See `mutations.py`.
MUTATIONS = (
    dict(file='processes/user_code',
         catches='test_a_report_has_all_of_an_error', rows=(
        ('words of errors are left out',
         'message = str(error)[:', 'message = errors.in_words(str(error))[:'),
    )),
    dict(file='processes/workers',
         catches='test_environments_may_print_to_a_full_disk', rows=(
        ('a full disk ends environments', '  console.survive_lost_output()\n',
         ''),
    )),
    dict(file='processes/remote',
         catches='test_environments_may_print_to_a_full_disk', rows=(
        ('a full disk ends questions', '  console.survive_lost_output()\n',
         ''),
    )),
    dict(file='processes/console', catches='test_some_errors_are_dropped',
         rows=(
        ('a lost terminal ends the run', 'errno.EIO, ', ''),
    )),
    dict(file='modes/running', catches='test_jobs_share_the_gpus', rows=(
        ('all jobs have the place of the first', 'free.pop(0)', 'free[0]'),
        ('a job has one GPU', '::jobs])', '])'),
        ('the variable stays', 'os.environ[_GPUS] = before', 'pass'),
    )),
    dict(file='processes/processes',
         catches='test_the_server_is_killed_while_a_process_starts', rows=(
        ('a process without its server goes on',
         'server = os.getppid() if _OWNER == os.getpid() else _OWNER',
         'server = os.getppid()'),
    )),
    dict(file='processes/remote',
         catches='test_stopped_within_a_long_message0', rows=(
        ('a long request is waited for without an end',
         'socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:', '(socket.SO_RCVTIMEO,):'),
    )),
    dict(file='processes/remote',
         catches='test_stopped_within_a_long_message1', rows=(
        ('a long result is waited for without an end',
         'socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:', '(socket.SO_SNDTIMEO,):'),
    )),
    dict(file='environments/registry',
         catches='test_errors_of_gymnasium_in_a_module', rows=(
        ('errors of gymnasium in a module are unknown levels',
         '    if module:\n      importlib.import_module(module)\n    try:\n',
         '    try:\n'
         '      if module:\n        importlib.import_module(module)\n'),
    )),
    dict(file='processes/processes',
         catches='test_the_server_does_not_see_ctrl_c_while_it_imports', rows=(
        ('programs of environments cannot handle SIGINT',
         '  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])\n', ''),
        ('programs of environments ignore SIGINT',
         '  signals.send_when_parent_dies(signal.SIGKILL)',
         '  signal.signal(signal.SIGINT, signal.SIG_IGN)\n'
         '  signals.send_when_parent_dies(signal.SIGKILL)'),
        ('the tracker lets SIGINT through',
         '  multiprocessing.resource_tracker.ensure_running()\n', ''),
    )),
    dict(file='processes/variables',
         catches='test_variables_are_those_of_the_program', rows=(
        ('variables of the server are removed',
         'self._server_names - changed', 'os.environ.keys() - changed'),
        ('the mark is that of the program', 'if name != self._kept', ''),
    )),
    dict(file='processes/programs',
         catches='test_an_interrupted_stop_sends_one_signal', rows=(
        ('a second signal', 'if child not in _told:', 'if True:'),
    )),
    dict(file='modes/running', catches='test_is_at_end', rows=(
        ('a run that was finished before is not',
         "line.startswith('This run is finished')", 'False'),
    )),
    dict(file='modes/running',
         catches='test_a_run_that_is_being_stopped_is_stopped_to_the_end',
         rows=(
        ('forgotten too early',
         '          programs.stop(child)\n        del active[run]\n',
         '          active.pop(run)\n          programs.stop(child)\n'
         '        active.pop(run, None)\n'),
    )),
    dict(file='processes/processes',
         catches='test_processes_of_other_threads_are_not_asked', rows=(
        ('all are asked',
         'if p not in processes or p.is_alive()',
         'if p.is_alive()'),
    )),
    dict(file='environments/restarts',
         catches='test_same_seeds_begin_the_same_episodes', rows=(
        ('other seeds in place of the same',
         'if self._num_starts > 1 or not self._restarts.same_seeds:',
         'if True:'),
        ('a loss that the games cause comes again',
         'if self._num_starts > 1 or not self._restarts.same_seeds:',
         'if not self._restarts.same_seeds:'),
        ('other games are said at each loss', ' and self._num_starts == 2:',
         ':'),
    )),
    dict(file='environments/restarts',
         catches='test_closed_while_a_loss_is_noticed', rows=(
        ('two looks',
         '(env := self._env) is not None:\n      env.close()',
         '(env := self._env) is not None:\n      self._env.close()'),
    )),
    dict(file='processes/signals',
         catches='test_the_handler_waits_for_no_lock_of_its_thread', rows=(
        ('set in the handler',
         '    stop.number = number\n    if not',
         '    stop.number = number\n    stop.set()\n    if not'),
    )),
    dict(file='processes/signals',
         catches='test_a_second_signal_counts_if_nothing_can_be_printed1',
         rows=(
        ('output that nobody reads hides the second signal',
         '  thread.start()\n', '  thread.run()\n'),
    )),
    dict(file='processes/signals',
         catches='test_a_second_signal_counts_if_nothing_can_be_printed0',
         rows=(
        ('a closed output shows a traceback',
         'contextlib.suppress(OSError, ValueError)',
         'contextlib.nullcontext()'),
    )),
    dict(file='processes/signals',
         catches='test_a_long_call_does_not_end_the_process_of_a_caller', rows=(
        ('the process of a caller is ended',
         'not stop.waits_for and is_program', 'not stop.waits_for'),
    )),
    dict(file='processes/signals', catches='test_signals_at_once_are_one',
         rows=(
        ('two signals of one kill are two', 'time.sleep(_SAME_SIGNAL_S)',
         'pass'),
    )),
    dict(file='processes/signals',
         catches='test_a_second_signal_ends_the_process', rows=(
        ('a second signal is ignored', 'if data[0] in numbers:',
         'if False:'),
    )),
    dict(file='processes/user_code',
         catches='test_a_module_with_a_wrong_line', rows=(
        ('the wrong line is not shown', 'isinstance(error, SyntaxError)',
         'isinstance(error, TabError)'),
        ('frames of the import are shown', "'<frozen importlib',\n", '\n'),
    )),
    dict(file='processes/starts',
         catches='test_a_line_comes_after_the_period_and_counts_what_was_reset',
         rows=(
        ('vectors that were never reset count',
         'sum(_num_open[k] for k in _num_ready)', 'sum(_num_open.values())'),
        ('each start delays the line', 'for k in _num_ready if k != key',
         'for k in () if k != key'),
        ('closed vectors begin', 'if key in _num_open:', 'if True:'),
    )),
    dict(file='processes/workers',
         catches='test_a_vector_without_memory_is_not_open', rows=(
        ('a vector is open before the check of memory',
         '    shared = shared_arrays.allocate(\n',
         '    starts.open_vector(id(self), len(factories))\n'
         '    shared = shared_arrays.allocate(\n'),
    )),
    dict(file='processes/processes',
         catches='test_groups_of_others_are_left_alone', rows=(
        ('no group of its own', 'os.setpgid(0, 0)  # Children',
         'pass  # Children'),
        ('groups are not killed',
         '  if not groups:\n'
         '    return groups\n',
         '  return set()\n'),
        ('groups of others are killed',
         '(group in known or _has_mark(pid, path))', 'True'),
    )),
    dict(file='processes/processes',
         catches='test_what_it_has_started_ends_with_it', rows=(
        ('what has no mark goes on', 'known = _kill_groups(processes)',
         'known = frozenset()'),
        ('directories stay',
         '    shutil.rmtree(path, ignore_errors=True)\n  with _start_lock',
         '  with _start_lock'),
    )),
    dict(file='processes/processes',
         catches='test_the_environment_is_as_it_was', rows=(
        ('the mark stays', '    del os.environ[_DIRECTORY]\n',
         ''),
    )),
    dict(file='processes/processes',
         catches='test_the_program_can_choose_the_start_method', rows=(
        ('the start method is fixed',
         'multiprocessing.get_start_method(allow_none=True) is None', 'False'),
        ('the start method of the program is lost',
         'multiprocessing.get_start_method(allow_none=True) is None', 'True'),
    )),
    dict(file='processes/processes',
         catches='test_what_the_program_forks_ends_nothing', rows=(
        ('forks end what runs', 'if os.getpid() == _OWNER:', 'if True:'),
    )),
    dict(file='processes/processes',
         catches='test_directories_of_killed_programs_are_removed', rows=(
        ('files of what still runs are removed',
         'fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n'
         '      shutil',
         'shutil'),
    )),
    dict(file='processes/preload',
         catches='test_terminals_that_stop_who_writes_in_the_background',
         rows=(
        ('terminals stop who writes',
         'signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n', ''),
    )),
)


if __name__ == '__main__':
  absltest.main()
