# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of ViZDoom's levels, beside the package itself."""

import glob
import multiprocessing
import os
import signal
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import environment_contract
import gymnasium
import in_numpy
import numpy as np
import psutil
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import vizdoom
from scalable_agent.experience import structs

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_UNSCALED = environments.EnvironmentSettings(width=160, height=120)


class BasicTest(environment_contract.EnvironmentContract, absltest.TestCase):
  level_name = 'VizdoomBasic-v1'
  settings = environments.EnvironmentSettings(width=40, height=30)
  num_steps = 80  # It is cut off after 300 frames, the first 14 of them unseen.


class VizdoomTest(parameterized.TestCase):

  def make(self, level, seeds, settings=_UNSCALED):
    env = environments.make_vec([level] * len(seeds), seeds, settings)
    self.addCleanup(env.close)
    return env

  @pytest.mark.slow
  def test_own_levels(self):
    self.enter_context(_working_directory(self.create_tempdir().full_path))
    for name in 'Screen', 'Wrapped':
      env = self.make(
          f'fake_environments:VizdoomEnvironmentOfAUser{name}-v0', [1])
      self.assertEqual(env.initial().observation.shape, (1, 120, 160, 3))
      env.step(np.zeros([1, 3], np.int32))
      engine, others = _processes()
      traces = _traces(engine)
      env.close()
      self.assert_gone([engine, *others], traces)
    self.assertEmpty(os.listdir())

  @pytest.mark.slow
  def test_a_limit_of_gymnasium_shows_the_last_screen(self):
    settings = environments.EnvironmentSettings(
        num_action_repeats=4, width=160, height=120,
        environment_kwargs={'max_episode_steps': 5})
    env = self.make('VizdoomHealthGathering-v1', [1], settings)
    env.initial()
    for _ in range(4):
      before = env.step(np.array([1])).observation[0].copy()
    output = env.step(np.array([1]))
    self.assertTrue(output.truncated[0])
    self.assertTrue((output.last_observation[0] != before).any())

  @parameterized.parameters(
      ('VizdoomBasic-v1', 4), ('VizdoomHealthGathering-v1', 6))
  @pytest.mark.slow
  def test_is_what_the_package_plays(self, level, num_repeats):
    """Replays games, also frame by frame, at the smallest resolution."""
    self.enter_context(_working_directory(self.create_tempdir().full_path))
    settings = environments.EnvironmentSettings(
        num_action_repeats=num_repeats, width=160, height=120)
    env = self.make(level, [7], settings)
    self.assertEqual(env.spec.num_action_repeats, num_repeats)
    # Puffs of shots depend on which frames were rendered. So the frames are
    # those of the package's own repetition.
    own, by_frame = (
        gymnasium.make(level, disable_env_checker=True, frame_skip=frame_skip,
                       screen_resolution='RES_160X120')
        for frame_skip in (num_repeats, 1))
    self.addCleanup(own.close)
    self.addCleanup(by_frame.close)
    by_frame.reset(seed=7)
    last = own.reset(seed=7)[0]['screen'].copy()
    np.testing.assert_array_equal(env.initial().observation[0], last)
    rng = np.random.default_rng(3)
    num_ends, num_truncated = 0, 0
    for _ in range(250):
      action = rng.integers(env.spec.action.num_values[0])
      reward = 0
      for _ in range(num_repeats):
        _, frame_reward, terminated, truncated, _ = by_frame.step(action)
        reward += frame_reward
        if terminated or truncated:
          break
      observation = own.step(action)[0]
      output = env.step(np.array([action]))
      self.assertEqual(output.reward[0], reward)
      self.assertEqual(output.done[0], terminated or truncated)
      self.assertEqual(output.truncated[0], truncated)
      if terminated or truncated:
        np.testing.assert_array_equal(output.last_observation[0], last)
        by_frame.reset()
        observation, _ = own.reset()
        num_ends += 1
      num_truncated += truncated
      last = observation['screen'].copy()
      np.testing.assert_array_equal(output.observation[0], last)
    self.assertGreater(num_ends, num_truncated)
    if level == 'VizdoomBasic-v1':
      self.assertGreater(num_truncated, 0)

  @parameterized.parameters((40, 30), (96, 72))
  @pytest.mark.slow
  def test_frames_are_scaled_by_area(self, width, height):
    env = self.make('VizdoomBasic-v1', [3], environments.EnvironmentSettings(
        width=width, height=height))
    large = self.make('VizdoomBasic-v1', [3])
    self.assertEqual(
        env.spec.observation,
        structs.ArraySpec((height, width, 3), np.dtype(np.uint8)))
    frame = env.initial().observation[0]
    expected = np.einsum(
        'hH,wW,HWc->hwc', in_numpy.area_weights(120, height),
        in_numpy.area_weights(160, width), large.initial().observation[0])
    # SDL rounds each pixel's share down.
    np.testing.assert_allclose(frame, expected, rtol=0, atol=4)

  def test_large_frames_are_rendered_large(self):
    env = self.make('VizdoomBasic-v1', [3], environments.EnvironmentSettings(
        width=320, height=240))
    frame = env.initial().observation[0]
    self.assertEqual(frame.shape, (240, 320, 3))
    blocks = frame.reshape(120, 2, 160, 2, 3)
    self.assertTrue((blocks[:, 0] != blocks[:, 1]).any())

  def test_interrupt_is_ignored_by_the_engine(self):
    env = self.make('VizdoomBasic-v1', [1])
    env.initial()
    engine, _ = _processes()
    engine.send_signal(signal.SIGINT)
    for _ in range(5):
      env.step(np.array([0]))
    self.assertTrue(engine.is_running())

  def test_close_leaves_nothing_behind(self):
    directory = self.create_tempdir().full_path
    with _working_directory(directory):
      env = self.make('VizdoomBasic-v1', [1])
      env.initial()
      self.assertEqual(os.listdir(directory), [])
      engine, others = _processes()
      traces = _traces(engine)
      env.close()
    self.assertEqual(os.listdir(directory), [])
    self.assert_gone([engine, *others], traces)

  @pytest.mark.slow
  def test_engine_ends_with_a_killed_worker(self):
    env = self.make('VizdoomBasic-v1', [1])
    env.initial()
    engine, others = _processes()
    traces = _traces(engine)
    worker, = multiprocessing.active_children()
    worker.kill()
    self.assert_gone([engine, *others], traces)
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'died with exit code -9'):
      env.step(np.array([0]))

  @pytest.mark.slow
  def test_engine_ends_with_a_killed_program(self):
    process = subprocess.Popen(
        [sys.executable, '-c', """if True:
            from scalable_agent import environments
            env = environments.make_vec(['VizdoomBasic-v1'], [1])
            env.initial()
            print('ready', flush=True)
            input()
            """], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': _ROOT})
    self.assertEqual(process.stdout.readline(), 'ready\n')
    engine, others = _processes(process.pid)
    traces = _traces(engine)
    process.kill()
    process.communicate()
    self.assert_gone([engine, *others], traces)

  def assert_gone(self, processes, traces):
    self.assertNotEmpty(traces)
    for process in processes:
      process.wait()
    self.assertEqual([trace for trace in traces if os.path.exists(trace)], [])

  @pytest.mark.slow
  def test_the_picture_after_the_end_is_the_last_one(self):
    env = vizdoom.Screen(gymnasium.make(
        'VizdoomBasic-v1', disable_env_checker=True, render_mode='rgb_array',
        frame_skip=4, screen_resolution='RES_160X120'), 160, 120)
    self.addCleanup(env.close)
    env.reset(seed=1)
    is_over = False
    while not is_over:
      before = env.render()
      _, _, terminated, truncated, _ = env.step(0)
      is_over = terminated or truncated
    self.assertGreater(np.ptp(before), 0)
    np.testing.assert_array_equal(env.render(), before)

  @parameterized.parameters(
      ('VizdoomBasc-v1', 'VizdoomBasic-v1'),
      ('vizdoombasic-v1', 'VizdoomBasic-v1'))
  def test_unknown_level(self, name, hint):
    self.assert_refused(errors.UnknownLevelError, name, hint)

  def test_several_buttons_at_a_time(self):
    env = self.make('VizdoomBasic-MultiBinary-v1', [1])
    self.assertEqual(env.spec.action.num_values, (2, 2, 2))
    env.initial()
    for action in ([0, 0, 0], [1, 0, 1], [0, 1, 0]):
      env.step(np.array([action]))

  def test_without_vizdoom(self):
    with mock.patch.dict(sys.modules, {
        'vizdoom': None, 'vizdoom.gymnasium_wrapper': None}):
      self.assert_refused(
          errors.MissingDependencyError, 'VizdoomBasic-v1',
          r'pip install "scalable_agent\[vizdoom\]"')

  def assert_refused(self, error, name, message):
    with self.assertRaisesRegex(error, message) as caught:
      environments.make_vec([name], [1])
    self.assertNotIn('\n', str(caught.exception))
    self.assertEmpty(multiprocessing.active_children())


def _processes(program=None):
  """Returns the only engine that a program runs, and all other descendants."""
  processes = psutil.Process(program).children(recursive=True)
  engines = [p for p in processes if '+viz_instance_id' in p.cmdline()]
  engine, = engines
  # Processes that its worker started. The servers of multiprocessing outlive
  # environments.
  others = [p for p in processes
            if p != engine and engine.parent() in p.parents()]
  assert others
  return engine, others


def _traces(engine):
  """Returns the files and the directory of an engine."""
  command = engine.cmdline()
  instance = command[command.index('+viz_instance_id') + 1]
  shared = glob.glob(f'/dev/shm/ViZDoom*{instance}')
  assert shared
  return [engine.cwd(), *shared]


class _working_directory:

  def __init__(self, directory):
    self._directory = directory

  def __enter__(self):
    self._previous = os.getcwd()
    os.chdir(self._directory)

  def __exit__(self, *unused_exc_info):
    os.chdir(self._previous)


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/vizdoom',
         catches='test_interrupt_is_ignored_by_the_engine', rows=(
        ('an interrupt ends the engine',
         '  @signals.blocked(signal.SIGINT)', '  #'),
    )),
    dict(file='environments/vizdoom',
         catches='test_a_limit_of_gymnasium_shows_the_last_screen',
         rows=(
        ('no last screen',
         'if self.env.unwrapped.state is not None:\n      self._frame',
         'if not (terminated or truncated):\n      self._frame'),
    )),
)


if __name__ == '__main__':
  absltest.main()
