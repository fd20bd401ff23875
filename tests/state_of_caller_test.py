# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that public functions leave the caller's program as it was."""

import contextlib
import gc
import io
import logging
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import gymnasium
import numpy as np
import pytest
import scalable_agent
from scalable_agent import environments
from scalable_agent import experiment
from scalable_agent.modes import export
from scalable_agent.modes import test
from scalable_agent.modes import video
import tensorflow as tf

_SIGNALS = [number for number in signal.Signals
            if number not in (signal.SIGKILL, signal.SIGSTOP)]


def _descriptors():
  """Returns the targets of the open descriptors of this process."""
  links = []
  for name in os.listdir('/proc/self/fd'):
    with contextlib.suppress(OSError):  # The descriptor of `listdir` itself.
      links.append(os.readlink(f'/proc/self/fd/{name}'))
  # Python keeps shared memory for later use. Pipes have numbers.
  return sorted('pipe' if link.startswith('pipe:') else link for link in links
                if not link.startswith('/dev/shm/pym-'))


def _state():
  gc.collect()
  return {
      'random': random.getstate(), 'np.random': str(np.random.get_state()),
      'policy': tf.keras.config.dtype_policy().name,
      'floatx': tf.keras.config.floatx(),
      'data format': tf.keras.config.image_data_format(),
      'signals': [signal.getsignal(number) for number in _SIGNALS],
      'mask': signal.pthread_sigmask(signal.SIG_BLOCK, []),
      'directory': os.getcwd(), 'variables': dict(os.environ),
      'threads': sorted(t.name for t in threading.enumerate()),
      'processes': multiprocessing.active_children(),
      'start method': multiprocessing.get_start_method(allow_none=True),
      'handlers of the root logger': list(logging.root.handlers),
      'descriptors': _descriptors(),
      # Of compiled functions, with all their constants.
      'graphs': sorted(getattr(graph, 'name', '') for graph in gc.get_objects()
                       if isinstance(graph, tf.Graph)),
      'streams': (sys.stdout, sys.stderr),
      'cores': os.sched_getaffinity(0), 'umask': _umask()}


def _umask():
  before = os.umask(0o22)
  os.umask(before)
  return before


def _sleep():
  time.sleep(600)


@pytest.mark.slow
class StateTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    trained = tempfile.TemporaryDirectory()
    cls.addClassCleanup(trained.cleanup)
    cls.logdir = trained.name
    cls.settings = [
        '--recipe=cartpole', '--num_actors=2', '--environments_per_process=1',
        '--batch_size=2', '--total_environment_frames=400',
        '--compute_dtype=bfloat16', '--progress_secs=1000']
    # The first use starts the server of processes and TensorFlow's threads.
    cls._train(cls.logdir)

  @classmethod
  def _train(cls, logdir, *args):
    with contextlib.redirect_stdout(io.StringIO()):
      scalable_agent.train(
          experiment.parse([*cls.settings, f'--logdir={logdir}', *args]))

  def _config(self, mode):
    return experiment.parse(
        [f'--mode={mode}', f'--logdir={self.logdir}', '--test_num_episodes=2',
         '--video_num_episodes=1', '--export_format=saved_model'])

  def _make(self):
    with environments.make_vec(['CartPole-v1'], [1]) as env:
      env.initial()
      env.step(np.zeros([1], np.int32))

  def _play(self):
    agent = scalable_agent.load(self.logdir)
    agent.step(np.zeros([1, 4]), agent.initial_state(1))
    agent.play(gymnasium.make('CartPole-v1'), 1)
    agent.play(num_episodes=1)

  @parameterized.named_parameters(
      ('load_step_play', _play),
      ('make_vec', _make),
      ('evaluate', lambda self: self._train(
          self.create_tempdir().full_path, '--eval_every_frames=200')),
      ('resume', lambda self: self._train(
          self.logdir, '--total_environment_frames=420')),
      ('test', lambda self: test.test(self._config('test'))),
      ('video', lambda self: video.record(self._config('video'))),
      ('export', lambda self: export.run(self._config('export'))),
      ('parse', lambda self: experiment.parse(['--recipe=catch'])))
  def test_state_is_as_before(self, call):
    tf.keras.config.set_dtype_policy('mixed_float16')
    self.addCleanup(tf.keras.config.set_dtype_policy, 'float32')
    random.seed(7)
    np.random.seed(7)
    # An earlier use may have fixed the method and given the logger a handler.
    self.addCleanup(multiprocessing.set_start_method,
                    multiprocessing.get_start_method(allow_none=True),
                    force=True)
    multiprocessing.set_start_method(None, force=True)
    with mock.patch.object(logging.root, 'handlers', []):
      before = _state()
      with contextlib.redirect_stdout(io.StringIO()):
        call(self)
      after = _state()
    for name in 'MUJOCO_GL', 'SDL_VIDEODRIVER':  # See docs/using_agents.md.
      after['variables'].pop(name, None)
      before['variables'].pop(name, None)
    for name, value in before.items():
      self.assertEqual(after[name], value, name)

  @parameterized.parameters('fork', 'forkserver', 'spawn')
  def test_processes_of_the_caller_end_by_terminate(self, method):
    process = multiprocessing.get_context(method).Process(target=_sleep)
    process.start()
    time.sleep(1)
    process.terminate()
    process.join(60)
    self.addCleanup(process.kill)
    self.assertEqual(process.exitcode, -signal.SIGTERM)


if __name__ == '__main__':
  absltest.main()
