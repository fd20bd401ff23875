# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests for `scalable_agent.environments`."""

import ast
from concurrent import futures
import contextlib
import io
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import ale_py  # noqa: F401  Registers its games once, not within a patch.
import environment_contract
import fake_environments
import gymnasium
import in_numpy
import numpy as np
import psutil
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments import toys
from scalable_agent.experience import structs
from scalable_agent.processes import workers
from scalable_agent.settings import config as config_lib

_TESTS = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_TESTS)
_SETTINGS = environments.EnvironmentSettings(num_action_repeats=1)


class CartPoleTest(environment_contract.SerialReference,
                   environment_contract.EnvironmentContract,
                   absltest.TestCase):
  level_name = 'CartPole-v1'


class CatchTest(environment_contract.SerialReference,
                environment_contract.EnvironmentContract,
                absltest.TestCase):
  level_name = 'catch'
  make_serial = toys.Catch

  def test_best_and_worst_policy(self):
    env = self.make([1, 2, 3])
    for sign in (1, -1):
      observation = env.initial().observation
      for _ in range(9 * 5):
        ball = observation[:, :-1].sum(axis=1).argmax(axis=1)
        paddle = observation[:, -1].argmax(axis=1)
        if sign == 1:
          actions = np.sign(ball - paddle) + 1
        else:
          actions = np.where(ball < 2, 2, 0)
        output = env.step(actions)
        observation = output.observation
        np.testing.assert_array_equal(
            output.reward, np.where(output.done, sign, 0))
        np.testing.assert_array_equal(
            output.done, output.info.episode_step == 9)


class MemoryTest(environment_contract.SerialReference,
                 environment_contract.EnvironmentContract,
                 absltest.TestCase):
  level_name = 'memory'
  make_serial = toys.Memory

  def test_needs_memory(self):
    env = self.make([1, 2, 3])
    remembered = env.initial().observation[:, :2].argmax(axis=1)
    cues = []
    for _ in range(20):
      cues.extend(remembered)
      for step in range(7):
        output = env.step(remembered if step == 6 else 1 - remembered)
        if step < 6:  # The same for both cues: only the time.
          np.testing.assert_array_equal(
              output.observation, [[0, 0, step == 5]] * 3)
          np.testing.assert_array_equal(output.reward, [0] * 3)
          self.assertFalse(output.done.any())
      np.testing.assert_array_equal(output.reward, [1] * 3)
      self.assertTrue(output.done.all())
      remembered = output.observation[:, :2].argmax(axis=1)
    self.assertBetween(np.mean(cues), 0.3, 0.7)


class CountingTest(environment_contract.SerialReference,
                   environment_contract.EnvironmentContract,
                   absltest.TestCase):
  level_name = 'counting'
  make_serial = toys.Counting

  def test_trace(self):
    env = self.make([1, 2])
    outputs = [environment_contract.copied(env.initial())] + [
        environment_contract.copied(env.step(np.array([action, 1])))
        for action in (2, 0, 1, 2, 0)]
    trace = [(o.reward[0], (o.info.episode_return[0], o.info.episode_step[0]),
              o.done[0], tuple(o.observation[0])) for o in outputs]
    self.assertEqual(trace, [
        (0, (0, 0), True, (0, -1)),
        (1, (1, 1), False, (1, 2)),
        (2, (3, 2), True, (2, 0)),
        (3, (3, 1), False, (3, 1)),
        (4, (7, 2), False, (4, 2)),
        (5, (12, 3), True, (5, 0)),
    ])

  def test_actions_are_repeated_until_the_episode_ends(self):
    settings = environments.EnvironmentSettings(num_action_repeats=4)
    env = environments.make_vec(['counting'], [1], settings)
    self.addCleanup(env.close)
    self.assertEqual(env.spec.num_action_repeats, 4)
    env.initial()
    trace = []
    for _ in range(4):
      output = env.step(np.array([0]))
      trace.append((output.reward[0], output.done[0], output.observation[0, 0]))
    self.assertEqual(trace, [
        (1 + 2, True, 2), (3 + 4 + 5, True, 5), (6 + 7 + 8 + 9, False, 9),
        (10, True, 10)])


class LabNamesTest(absltest.TestCase):

  def test_actions_of_a_module_named_like_a_lab_level_are_not_repeated(self):
    level = 'rooms_fake:fake/Plain-v0'
    for settings in (config_lib.Config(level_name=level), None):
      env = environments.make_vec([level], [1], settings)
      self.addCleanup(env.close)
      self.assertEqual(env.spec.num_action_repeats, 1)
      env.initial()
      self.assertEqual(env.step(np.array([0])).reward, [1])


class InstructedTest(environment_contract.SerialReference,
                     environment_contract.EnvironmentContract,
                     absltest.TestCase):
  level_name = 'fake/Instructed-v0'

  def test_instructions(self):
    env = self.make([1, 2])
    self.assertEqual(env.spec.observation, {
        'frame': structs.ArraySpec((4, 6, 3), np.dtype(np.uint8)),
        'instruction': structs.ArraySpec((), np.dtype(object))})
    seen = set()
    for output in self.run_steps(env, self.actions(env)):
      seen.update(output.observation['instruction'])
    self.assertEqual(
        seen, {word.encode() for word in fake_environments.WORDS})


class SharedProcessTest(environment_contract.SerialReference,
                        environment_contract.EnvironmentContract,
                        absltest.TestCase):
  level_name = 'catch'
  make_serial = toys.Catch
  settings = environments.EnvironmentSettings(
      num_action_repeats=1, environments_per_process=2)


@pytest.mark.slow
class PongTest(environment_contract.EnvironmentContract, absltest.TestCase):
  level_name = 'ALE/Pong-v5'
  settings = environments.EnvironmentSettings(max_episode_frames=200)

  def test_truncation_ends_the_episode(self):
    env = self.make([1])
    outputs = self.run_steps(env, self.actions(env))
    ends = [bool(output.info.episode_end[0]) for output in outputs]
    self.assertEqual(ends, [t == 50 for t in range(len(ends))])
    self.assertEqual([bool(output.done[0]) for output in outputs],
                     [t in (0, 50) for t in range(len(ends))])

  @pytest.mark.slow
  def test_last_observation_of_a_truncated_episode(self):
    # The same games with a later limit show what came at step 300; a game of
    # Breakout beside them ends by itself, and at other times.
    levels = ['ALE/Pong-v5', 'ALE/Breakout-v5', 'ALE/Pong-v5']
    limited, longer = (
        environments.make_vec(
            levels, [1, 2, 3], environments.EnvironmentSettings(
                max_episode_frames=limit, full_action_space=True))
        for limit in (1200, 100_000))
    self.addCleanup(limited.close)
    self.addCleanup(longer.close)
    limited.initial()
    longer.initial()
    rng = np.random.default_rng(0)
    pong, breakout_ends = np.array([True, False, True]), 0
    for t in range(1, 301):
      actions = rng.integers(limited.spec.action.num_values[0], size=3)
      output, expected = limited.step(actions), longer.step(actions)
      breakout_ends += output.info.episode_end[1]
      self.assertEqual(output.truncated.tolist(), (pong & (t == 300)).tolist())
      if not output.info.episode_end.any():
        self.assertEqual(output.last_observation, ())
    self.assertGreater(breakout_ends, 0)
    # The newest frame may be cut short by the limit.
    np.testing.assert_array_equal(output.last_observation[pong, :3],
                                  expected.observation[pong, :3])
    self.assertTrue(np.any(output.observation[pong, :3]
                           != expected.observation[pong, :3]))
    output = limited.step(actions)
    self.assertFalse(output.info.episode_end.any())
    self.assertEqual(output.last_observation, ())


@pytest.mark.slow
class BreakoutTest(environment_contract.EnvironmentContract,
                   absltest.TestCase):
  level_name = 'ALE/Breakout-v5'
  settings = environments.EnvironmentSettings()
  num_steps = 300


@pytest.mark.slow
class AtariTest(parameterized.TestCase):

  @parameterized.product(game=['Breakout', 'Seaquest'], life_loss=[True, False])
  def test_is_the_protocol(self, game, life_loss):
    """Replays games, frame by frame, on the bare emulator."""
    env = environments.make_vec(
        [f'ALE/{game}-v5'], [1], environments.EnvironmentSettings(
            max_noops=0, life_loss_ends_episode=life_loss))
    self.addCleanup(env.close)
    emulator = gymnasium.make(
        f'ALE/{game}-v5', frameskip=1, repeat_action_probability=0.0,
        obs_type='grayscale')
    self.addCleanup(emulator.close)
    ale = emulator.unwrapped.ale
    rng = np.random.default_rng(1)

    frame, _ = emulator.reset()
    blank = np.zeros_like(frame)
    stack = [blank, blank, blank, frame]
    output = env.initial()
    game_return, game_steps, num_games, num_lives_lost = 0, 0, 0, 0
    while num_games < 2:
      if game_steps < 8 or game_steps % 16 == 0:
        np.testing.assert_allclose(
            output.observation[0], [_resized(frame) for frame in stack],
            rtol=0, atol=0.501)
      action = rng.integers(env.spec.action.num_values[0])
      lives, frames, reward = ale.lives(), [], 0
      for _ in range(4):
        frame, frame_reward, game_over, _, _ = emulator.step(action)
        frames.append(frame)
        reward += frame_reward
        if game_over:
          break
      life_lost = ale.lives() < lives and not game_over
      game_return += reward
      game_steps += 1

      output = env.step(np.array([action]))
      self.assertEqual(output.reward[0], reward)
      self.assertEqual(output.done[0], game_over or (life_lost and life_loss))
      self.assertEqual(output.info.episode_end[0], game_over)
      self.assertEqual(output.info.episode_return[0], game_return)
      self.assertEqual(output.info.episode_step[0], game_steps)
      stack = stack[1:] + [np.max(frames[-2:], axis=0)]
      num_lives_lost += life_lost
      if game_over:
        # The newest frame may be cut short by the end.
        np.testing.assert_allclose(
            output.last_observation[0, :3],
            [_resized(frame) for frame in stack[:3]], rtol=0, atol=0.501)
        frame, _ = emulator.reset()
        stack = [blank, blank, blank, frame]
        game_return, game_steps = 0, 0
        num_games += 1
      else:
        self.assertEqual(output.last_observation, ())
    self.assertGreaterEqual(num_lives_lost, 6)

  @pytest.mark.storm
  def test_games_begin_with_0_to_max_noops_frames(self):
    env = environments.make_vec(
        ['ALE/Freeway-v5'] * 20, range(20),
        environments.EnvironmentSettings(max_noops=2))
    self.addCleanup(env.close)
    emulator = gymnasium.make(
        'ALE/Freeway-v5', frameskip=1, repeat_action_probability=0.0,
        obs_type='grayscale')
    self.addCleanup(emulator.close)
    frames = [_resized(emulator.reset()[0])] + [
        _resized(emulator.step(0)[0]) for _ in range(5)]
    num_noops = [[k for k, frame in enumerate(frames)
                  if np.allclose(first, frame, rtol=0, atol=0.501)]
                 for first in env.initial().observation[:, -1]]
    self.assertEqual({tuple(k) for k in num_noops}, {(0,), (1,), (2,)})

  def test_games_side_by_side(self):
    levels = ['ALE/Pong-v5', 'ALE/Breakout-v5', 'ALE/Pong-v5']
    seeds = [4, 5, 6]
    settings = environments.EnvironmentSettings(full_action_space=True)
    together = environments.make_vec(levels, seeds, settings, num_threads=2)
    self.addCleanup(together.close)
    self.assertEqual(together.spec.action.num_values[0], 18)
    alone = []
    for level, seed in zip(levels, seeds):
      alone.append(environments.make_vec([level], [seed], settings))
      self.addCleanup(alone[-1].close)

    def check(output, singles):
      for i, single in enumerate(singles):
        for array, expected in zip(
            (output.observation, output.reward, output.done, *output.info[:3]),
            (single.observation, single.reward, single.done, *single.info[:3])):
          np.testing.assert_array_equal(array[i], expected[0])

    check(together.initial(), [env.initial() for env in alone])
    actions = np.random.default_rng(0).integers(18, size=[250, 3])
    num_ends = 0
    for row in actions:
      output = together.step(row)
      check(output, [env.step(row[i:i + 1]) for i, env in enumerate(alone)])
      num_ends += output.info.episode_end.sum()
    self.assertGreater(num_ends, 0)

  def test_all_actions_of_a_game_without_fire(self):
    full = environments.EnvironmentSettings(max_noops=0, full_action_space=True)
    with environments.make_vec(
        ['ALE/Skiing-v5', 'ALE/Pong-v5'], [1, 1], full) as env:
      self.assertEqual(env.spec.action.num_values, (18,))

    def stream(action, settings=full):
      with environments.make_vec(['ALE/Skiing-v5'], [1], settings) as env:
        env.initial()
        return np.array([env.step(np.array([action])).observation
                         for _ in range(30)])

    # ALE's actions: 3 right, 4 left, and 11 and 12 with the fire button. The
    # actions of the game alone: nothing, right, left.
    right, left = stream(3), stream(4)
    self.assertFalse(np.array_equal(right, left))
    np.testing.assert_array_equal(stream(11), right)
    np.testing.assert_array_equal(stream(12), left)
    np.testing.assert_array_equal(stream(1), stream(0))
    np.testing.assert_array_equal(
        stream(1, environments.EnvironmentSettings(max_noops=0)), right)

  def test_sticky_actions(self):
    streams = []
    for probability in (0.0, 0.9):
      env = environments.make_vec(
          ['ALE/Breakout-v5'], [1], environments.EnvironmentSettings(
              repeat_action_probability=probability))
      self.addCleanup(env.close)
      env.initial()
      streams.append([env.step(np.array([1 + t % 3])).observation.copy()
                      for t in range(20)])
    self.assertFalse(np.array_equal(*streams))

  def test_fire_on_reset(self):
    frames = []
    for fire in (False, True):
      env = environments.make_vec(
          ['ALE/Breakout-v5'], [1], environments.EnvironmentSettings(
              max_noops=0, fire_on_reset=fire))
      self.addCleanup(env.close)
      env.initial()
      for _ in range(4):
        output = env.step(np.array([0]))
      frames.append(output.observation.copy())
    self.assertFalse(np.array_equal(*frames))


def _resized(frame):
  """Resizes a frame to 84 x 84 by the definition of area averaging."""
  rows, columns = (in_numpy.area_weights(n, 84) for n in frame.shape)
  return rows @ frame @ columns.T


class _Scripted:
  """A vector of two environments that returns what it is told to."""

  def __init__(self, observation, steps):
    array = lambda x: structs.ArraySpec(x.shape[1:], x.dtype)
    self.spec = structs.EnvironmentSpec(
        {name: array(x) for name, x in observation.items()}
        if isinstance(observation, dict) else array(observation),
        structs.ActionSpec((3,)), 1)
    self.initial = lambda: observation
    self.step = lambda actions: steps.pop(0)
    self.close = lambda: None


class FiniteTest(parameterized.TestCase):

  def _step(self, reward=0., observation=None, end=False, last=0.):
    """Returns a step in which the second environment may be wrong."""
    if observation is None:
      observation = np.zeros([2, 3], np.float32)
    ends = np.array([False, end])
    return base.VectorStep(
        np.array([1., reward], np.float32), ends, ends, observation,
        np.zeros(2, bool),
        # Other rows have no meaning.
        np.array([[np.nan] * 3, [last] * 3], np.float32) if end else ())

  def _run(self, *steps, initial=None):
    if initial is None:
      initial = np.zeros([2, 3], np.float32)
    with environments.FlowEnvironment(
        _Scripted(initial, list(steps)), ['a', 'b'], first_index=6) as env:
      env.initial()
      for _ in steps:
        env.step(np.zeros(2, np.int32))

  def test_returns_are_summed_in_float64(self):
    steps = [self._step(reward=r) for r in (2.**24, 1., 1., 5.)]
    steps[2] = steps[2]._replace(
        episode_end=np.array([False, True]), done=np.array([False, True]),
        last_observation=np.zeros([2, 3], np.float32))
    with environments.FlowEnvironment(
        _Scripted(np.zeros([2, 3], np.float32), steps), ['a', 'b']) as env:
      env.initial()
      returns = [env.step(np.zeros(2, np.int32)).info.episode_return
                 for _ in range(4)]
    # In float32, 2^24 + 1 is 2^24.
    self.assertEqual([r[1] for r in returns], [2**24, 2**24, 2**24 + 2, 5])
    self.assertEqual(returns[-1].dtype, np.float32)  # As in logs of before.

  def test_finite_ones_pass(self):
    self._run(self._step(), self._step(reward=-1e30, end=True), self._step())

  @parameterized.parameters(
      (dict(reward=np.nan), 'reward nan, 3 steps'),
      (dict(reward=-np.inf), 'reward -inf, 3 steps'),
      (dict(reward=np.nan, end=True), 'reward nan, 3 steps'),
      (dict(observation=np.array([[0, 0, 0], [0, np.inf, 0]])),
       'observation inf, 3 steps'),
      (dict(observation=np.array([[0, 0, 0], [0, np.inf, 0]]), end=True),
       'observation inf, 0 steps'),
      (dict(observation={'x': np.zeros([2, 1]), 'y': np.array([[1], [np.nan]]),
                         'z': np.zeros([2, 3], np.uint8)}),
       'observation y nan, 3 steps'),
      (dict(end=True, last=np.nan), 'observation nan, 3 steps'))
  def test_others_are_named(self, step, text):
    with self.assertRaisesRegex(
        errors.EnvironmentValueError,
        rf'^Environment 7 \(b\) returned {text} after the start of an '
        'episode: .* must be finite.$'):
      self._run(self._step(end=True), self._step(), self._step(),
                self._step(**step))

  def test_the_first_observation(self):
    with self.assertRaisesRegex(
        errors.EnvironmentValueError, r'Environment 6 \(a\) .* 0 steps after'):
      self._run(initial=np.array([[np.nan], [0.]]))


class GymnasiumTest(parameterized.TestCase):

  def make(self, *levels, settings=_SETTINGS, seeds=None):
    env = environments.make_vec(
        levels, list(range(len(levels))) if seeds is None else seeds, settings)
    self.addCleanup(env.close)
    return env

  def test_actions_that_start_at_one(self):
    env = self.make('fake/ActionsFromOne-v0')
    env.initial()
    self.assertEqual(env.spec.action, structs.ActionSpec(num_values=(3,)))
    self.assertEqual([env.step(np.array([a])).observation[0, 0]
                      for a in range(3)], [1, 2, 3])

  def test_truncation(self):
    settings = environments.EnvironmentSettings(num_action_repeats=1)
    env = environments.make_vec(['fake/TimeLimited-v0', 'fake/Plain-v0'],
                                [1, 2], settings)
    self.addCleanup(env.close)
    env.initial()
    # The second episode, at step 6, reaches its end and its limit together.
    for t in range(1, 10):
      output = env.step(np.zeros([2], np.int32))
      self.assertEqual(output.truncated.tolist(), [t in (3, 9), False])
      if t % 3 == 0:
        self.assertEqual(output.last_observation[0], [3])
      elif t == 5:  # The other environment ends by itself.
        self.assertEqual(output.last_observation[1], [5])
      else:
        self.assertEqual(output.last_observation, ())

  def test_frame_without_instruction(self):
    env = self.make('fake/FrameOnly-v0')
    env.initial()
    observation = env.step(np.array([0])).observation
    self.assertEqual(list(observation), ['frame'])
    np.testing.assert_array_equal(
        observation['frame'], np.ones([1, 2, 2, 3], np.uint8))

  def test_float64_becomes_float32(self):
    env = self.make('fake/Plain-v0')
    self.assertEqual(env.spec.observation.dtype, np.float32)
    self.assertEqual(env.initial().observation.dtype, np.float32)

  @parameterized.parameters(
      ('Outside', '-1, .* uint8 .*from 0 to 255'),
      ('OutsideWide', '1099511627776, .* int32'),
      ('OutsideSmall', '-2, .* uint8'),
      ('OutsideFloat', r'1e\+39, .* float32'),
      ('OutsideParts', r'3, .* MultiDiscrete\(\[3\]\)'),
      ('OutsideBinary', r'256, .* MultiBinary\(1\)'),
      ('OutsideDiscrete', r'-1, .* Discrete\(5\)'))
  def test_numbers_outside_of_their_space(self, level, message):
    env = self.make(f'fake/{level}-v0')
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, f'has the number {message}'):
      env.initial()

  @parameterized.parameters('Outside', 'OutsideLater')
  def test_an_error_names_the_function_that_returned_the_wrong_value(
      self, level):
    env = self.make(f'fake/{level}-v0')
    with self.assertRaises(errors.EnvironmentProcessError) as raised:
      env.initial()
      env.step(np.array([0]))
    self.assertRegex(
        raised.exception.frames, 'fake_environments.py", line .*, in reset\n')

  def test_a_reset_that_returns_nothing(self):
    env = self.make('fake/NoReset-v0')
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'cannot unpack .* two from `reset`'):
      env.initial()

  @parameterized.parameters(
      ('VectorReward', r'reward of shape \[2\]'), ('HugeReward', r'1e\+39'),
      ('NoEnd', '`truncated` of `step` is None, but must be a bool'),
      ('OldStep', 'five values from `step` .*terminated, truncated'))
  def test_steps_that_cannot_be_learned_from(self, level, message):
    env = self.make(f'fake/{level}-v0')
    env.initial()
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, message) as raised:
      env.step(np.array([0]))
    self.assertRegex(
        raised.exception.frames, 'fake_environments.py", line .*, in step\n')

  def test_a_reward_of_one_number_has_any_shape(self):
    env = self.make('fake/ArrayReward-v0')
    env.initial()
    self.assertEqual(env.step(np.array([0])).reward, [1.5])

  def test_an_error_of_close_ends_nothing(self):
    env = self.make('fake/RaisesInClose-v0')
    env.initial()
    env.close()

  def test_environments_have_processes(self):
    # Both closes wait for the child in vain.
    self.enter_context(mock.patch.object(
        gymnasium_env, '_CLOSE_TIMEOUT_S', .5))
    self.enter_context(mock.patch.object(workers, '_CLOSE_TIMEOUT_S', .5))
    env = self.make('fake/Children-v0')
    pid = int(env.initial().observation[0, 0])
    os.kill(pid, 0)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      env.close()
    self.assertIn('did not close within 0.5 seconds', output.getvalue())
    # A container may have no process that reaps the program.
    with contextlib.suppress(psutil.NoSuchProcess):
      while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(.01)

  def test_marks_are_no_pictures(self):
    env = self.make('fake/Marks-v0')
    observation = env.initial().observation
    self.assertEqual(observation.dtype, np.float32)
    np.testing.assert_array_equal(observation, [[1, 10]])

  @parameterized.parameters(1, 2)
  def test_generators_of_the_process_are_seeded(self, num_per_process):
    settings = environments.EnvironmentSettings(
        num_action_repeats=1, environments_per_process=num_per_process)

    def play(*seeds):
      env = self.make(*['fake/GlobalRandom-v0'] * len(seeds),
                      settings=settings, seeds=seeds)
      seen = [env.initial().observation.copy()]
      for _ in range(7):
        seen.append(env.step(np.zeros([len(seeds)], int)).observation.copy())
      np.testing.assert_array_equal(env.initial().observation, seen[0])
      return np.stack(seen)

    games = play(3, 4, 5)
    np.testing.assert_array_equal(play(3, 4, 5), games)
    # What was drawn when they were built; NumPy's and Python's numbers.
    for part, num_steps in ((0, 1), (1, 8), (2, 8)):
      self.assertLen(np.unique(games[:num_steps, :, part]), 3 * num_steps)
    self.assertEmpty(np.intersect1d(play(6, 7, 8), games))

  def test_levels_side_by_side(self):
    env = self.make('fake/Plain-v0', 'fake/OtherBounds-v0')
    env.initial()
    np.testing.assert_array_equal(
        env.step(np.array([0, 0])).observation, [[1], [1]])

  def test_module_in_the_level_name(self):
    self.make('fake_environments:fake/Plain-v0').initial()

  def test_error_in_step(self):
    env = self.make('fake/Raises-v0', 'fake/Raises-v0')
    env.initial()
    env.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/Raises-v0\) raised AwkwardError: this and that'
    ) as caught:
      env.step(np.array([0, 0]))
    self.assertRegex(caught.exception.frames, (
        # Python 3.13 underlines the call.
        r'^  File "\S*fake_environments.py", line \d+, in step\n(    .*\n)+'
        r'  File "\S*fake_environments.py", line \d+, in _fail\n(    .*\n)+$'
    ))
    self.assertRegex(caught.exception.all_frames,
                     r'processes/workers.py", (.|\n)*in _fail\n')
    self.assert_ended(env)

  def test_an_error_has_the_number_in_the_run(self):
    env, other = environments.make_groups(
        ['fake/Raises-v0'] * 4, [0, 0, 0, 1], _SETTINGS, 2, first_index=10)
    self.addCleanup(env.close)
    self.addCleanup(other.close)
    other.initial()
    other.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, r'environment 13 \(fake/Raises-v0\)'):
      other.step(np.array([0, 0]))

  def test_error_in_reset(self):
    env = self.make('fake/RaisesInReset-v0')
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'ValueError: no way to begin'):
      env.initial()
    self.assert_ended(env)

  def test_killed_worker(self):
    env = self.make('fake/Dies-v0', 'fake/Dies-v0')
    env.initial()
    env.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/Dies-v0\) died with exit code -9'):
      env.step(np.array([0, 0]))
    self.assert_ended(env)

  def test_worker_killed_between_steps(self):
    env = self.make('catch')
    env.initial()
    for process in multiprocessing.active_children():
      process.kill()
      process.join()
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'died with exit code -9'):
      env.step(np.array([0]))
    self.assert_ended(env)

  def test_interrupt_is_ignored_by_workers(self):
    env = self.make('counting', 'counting')
    env.initial()
    self.assertLen(multiprocessing.active_children(), 2)
    for step in range(1, 4):
      for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGINT)
      output = env.step(np.array([0, 0]))
      np.testing.assert_array_equal(output.reward, [step] * 2)

  @pytest.mark.slow
  def test_hanging_worker(self):
    env = self.make(
        'fake/Hangs-v0', 'fake/Hangs-v0',
        settings=environments.EnvironmentSettings(
            num_action_repeats=1, step_timeout_s=3))
    env.initial()
    env.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/Hangs-v0\) did not answer within 3 seconds'):
      env.step(np.array([0, 0]))
    self.assert_ended(env)

  def _shared(self, level, num_envs, per_process, **settings):
    return self.make(*[level] * num_envs,
                     settings=environments.EnvironmentSettings(
                         num_action_repeats=1,
                         environments_per_process=per_process, **settings))

  def test_environments_share_processes(self):
    env = self._shared('counting', 5, 2)
    self.assertLen(multiprocessing.active_children(), 3)
    env.initial()
    for step in range(1, 4):
      output = env.step(np.arange(5) % 3)
      np.testing.assert_array_equal(output.reward, [step] * 5)
    env.close()
    self.assertEmpty(multiprocessing.active_children())

  def test_error_in_a_shared_process(self):
    env = self._shared('fake/Raises-v0', 2, 2)
    env.initial()
    env.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/Raises-v0\) raised AwkwardError'):
      env.step(np.array([0, 0]))
    self.assert_ended(env)

  def test_a_shared_process_that_dies(self):
    env = self._shared('fake/Dies-v0', 3, 2)
    env.initial()
    env.step(np.array([0] * 3))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 0 \(fake/Dies-v0\), 1 \(fake/Dies-v0\) died with exit '
        r'code -9'):
      env.step(np.array([0] * 3))
    self.assert_ended(env)

  @pytest.mark.slow
  @pytest.mark.storm
  def test_a_shared_process_that_hangs(self):
    env = self._shared('fake/Hangs-v0', 3, 3, step_timeout_s=5)
    env.initial()
    env.step(np.array([0] * 3))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/Hangs-v0\) did not answer within 5 seconds'):
      env.step(np.array([0] * 3))
    self.assert_ended(env)

  def test_worker_dies_while_starting(self):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 0 \(fake/DiesAtStart-v0\) died with exit code 3'):
      self.make('fake/DiesAtStart-v0')
    self.assertEmpty(multiprocessing.active_children())

  def test_error_while_starting(self):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 0 \(fake/RaisesAtStart-v0\) raised ValueError: no way to '
        'be so long so long'):  # Its end does not fit.
      self.make('fake/RaisesAtStart-v0')
    self.assertEmpty(multiprocessing.active_children())

  @parameterized.parameters(
      ('fake/WrongShape-v0', r'float64 \[1\], but its space is float32 \[3\]'),
      ('fake/FloatFrames-v0', r'float64 \[1\], but its space is uint8 \[1\]'))
  def test_observation_outside_its_space(self, level, message):
    env = self.make(level)
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, message):
      env.initial()
    self.assert_ended(env)

  def test_error_beside_a_hanging_environment(self):
    env = self.make('fake/RaisesOrHangs-v0', 'fake/RaisesOrHangs-v0')
    env.initial()
    env.step(np.array([0, 0]))
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError,
        r'environment 1 \(fake/RaisesOrHangs-v0\) raised AwkwardError'):
      env.step(np.array([0, 0]))  # Would wait for 300 seconds.
    self.assert_ended(env)

  def test_step_after_an_error(self):
    env = self.make('fake/Raises-v0', seeds=[1])
    env.initial()
    env.step(np.array([0]))
    for message in ('AwkwardError', 'closed, or have failed before'):
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, message):
        env.step(np.array([0]))

  def test_close_during_a_step(self):
    env = self.make('fake/Hangs-v0', 'fake/Hangs-v0')
    env.initial()
    env.step(np.array([0, 0]))
    with futures.ThreadPoolExecutor(1) as executor:
      step = executor.submit(env.step, np.array([0, 0]))
      time.sleep(0.5)  # Nearly always, the step is under way then.
      env.close()
      with self.assertRaisesRegex(RuntimeError, 'closed'):
        step.result()
    self.assertEmpty(multiprocessing.active_children())

  @pytest.mark.slow
  def test_hanging_close(self):
    env = self.make('catch', 'catch')
    env.initial()
    with mock.patch.object(gymnasium_env, '_CLOSE_TIMEOUT_S', .5):
      hanging = self.make('fake/HangsInClose-v0', 'fake/DiesInClose-v0')
    hanging.initial()
    hanging.step(np.array([0, 0]))
    with mock.patch.object(workers, '_CLOSE_TIMEOUT_S', 2), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      hanging.close()
    self.assertRegex(
        output.getvalue(), r'^environment 0 \(fake/HangsInClose-v0\).* did not '
        'close within 2 seconds and had to be ended.\n$')
    self.assertLen(multiprocessing.active_children(), 2)
    env.step(np.array([0, 0]))

  @pytest.mark.slow
  def test_environments_of_a_process_close_in_turn(self):
    with mock.patch.object(gymnasium_env, '_CLOSE_TIMEOUT_S', .5):
      env = self._shared('fake/HangsInClose-v0', 2, 2)
    env.initial()
    with mock.patch.object(workers, '_CLOSE_TIMEOUT_S', .5), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      env.close()
    self.assertRegex(output.getvalue(), r'0 \(.*\), 1 \(.* within 1 seconds')

  def test_after_an_error_environments_need_not_close(self):
    with mock.patch.object(gymnasium_env, '_CLOSE_TIMEOUT_S', .5):
      env = self.make('fake/HangsInClose-v0', 'fake/Raises-v0')
    env.initial()
    env.step(np.array([0, 0]))
    with mock.patch.object(workers, '_CLOSE_TIMEOUT_S', .5), \
        mock.patch.object(workers, '_END_TIMEOUT_S', .5), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      with self.assertRaisesRegex(errors.EnvironmentProcessError, 'Awkward'):
        env.step(np.array([0, 0]))
    self.assertEqual(output.getvalue(), '')
    self.assert_ended(env)

  def assert_ended(self, env):
    """No process is left, and `close` is quiet."""
    self.assertEmpty(multiprocessing.active_children())
    env.close()
    env.close()


class LevelErrorsTest(parameterized.TestCase):

  @parameterized.parameters(
      ('ALE/Breakot-v5', 'ALE/Breakout-v5'),
      ('ALE/pong-v5', r'Did you mean ALE/Pong-v5\?$'),
      ('CartPol-v1', 'CartPole-v1'),
      ('cartpole', 'Did you mean CartPole-v1'),
      ('ctch', 'catch'),
      ('ALE/', "Unknown level 'ALE/'"),
      ('', "Unknown level ''"),
      ('no/Such-v0', "Unknown level 'no/Such-v0'"),
  )
  def test_unknown_level(self, name, hint):
    self.assert_refused(errors.UnknownLevelError, [name], hint)

  @parameterized.product(
      name_and_hint=[
          ('Pong', 'ALE/Pong-v5?'), ('seaquest', 'ALE/Seaquest-v5?'),
          ('ms_pacman', 'ALE/MsPacman-v5?'), ('ale/Pong-v5', 'ALE/Pong-v5?'),
          ('Breakout-v5', 'ALE/Breakout-v5?'), ('Breakot', 'ALE/Breakout-v5'),
          ('Rooms_Watermaze', 'rooms_watermaze?')],
      is_registered=[True, False])
  def test_other_spellings(self, name_and_hint, is_registered):
    name, hint = name_and_hint
    with self._atari_ids(is_registered):
      self.assert_refused(errors.UnknownLevelError, [name],
                          f'Did you mean {re.escape(hint)}')

  @parameterized.parameters(
      'PongNoFrameskip-v4', 'Pong-v4', 'PongDeterministic-v4', 'Pong-ram-v0')
  def test_old_atari_ids_before_they_are_registered(self, name):
    with self._atari_ids(False):
      self.assert_refused(errors.UnknownLevelError, [name],
                          r'Did you mean ALE/Pong-v5\?$')

  @contextlib.contextmanager
  def _atari_ids(self, is_registered):
    """Within it, Atari games are registered with gymnasium, or they are not."""
    with mock.patch.dict(gymnasium.registry):
      for env_id, spec in list(gymnasium.registry.items()):
        if str(spec.entry_point).startswith('ale_py') and not is_registered:
          del gymnasium.registry[env_id]
      if is_registered:  # Old ids may come last.
        gymnasium.registry['Pong-v4'] = gymnasium.registry.pop('Pong-v4')
      self.assertEqual('ALE/Pong-v5' in gymnasium.registry, is_registered)
      yield

  @parameterized.parameters(
      (['ALE/Pong-v5', 'Breakout'], "'Breakout'.* ALE/Breakout-v5"),
      (['Breakout', 'ALE/Pong-v5'], "'Breakout'.* ALE/Breakout-v5"),
      (['rooms_watermaze', 'ctch'], "'ctch'.* catch"))
  def test_unknown_level_in_a_mixed_list(self, names, message):
    self.assert_refused(errors.UnknownLevelError, names, message)

  @parameterized.parameters('PongNoFrameskip-v4', 'Pong-v0', 'Pong-v4')
  def test_old_atari_ids(self, name):
    self.assert_refused(
        errors.EnvironmentSpecError, [name], 'Name this Atari game ALE/Pong-v5')

  @parameterized.parameters(
      'explore_goal_locations_small', 'dmlab30', 'rooms_watermaze',
      'contributed/dmlab30/lasertag_one_opponent_small')
  def test_deepmind_lab(self, name):
    self.assert_refused(
        errors.MissingDependencyError, [name], 'deepmind_lab')

  @parameterized.parameters(
      ('fake/UnknownKeys-v0', 'has observations Dict'),
      ('fake/OnlyInstruction-v0', 'has observations Dict'),
      ('fake/InstructionFrame-v0', 'has observations Dict'),
      ('fake/Nested-v0', r'has observations Dict.*FlattenObservation'),
      ('fake/Tail-v0', 'has observations Dict.*: an ObservationWrapper of'),
      ('fake/EmptyPart-v0', 'in which b has no numbers'),
      ('fake/NoActions-v0', 'nothing to choose'),
      ('fake/UnboundedActions-v0',
       r'has actions Box\(.*\) without bounds.*\[-1, 1\].*TransformAction'),
      ('fake/HalfBoundedActions-v0', r'has actions Box\(.*\) without bounds'),
      ('fake/HugeActions-v0', r'has actions Box\(.*\) without bounds'),
      ('fake/IntegerActions-v0', 'has actions Box.*Box of floats'),
      ('fake/TableOfActions-v0', 'has actions MultiDiscrete.*one axis'),
      ('fake/PairOfActions-v0', 'has actions Tuple'),
  )
  def test_unsupported_spaces(self, name, message):
    self.assert_refused(errors.EnvironmentSpecError, [name], message)

  @parameterized.parameters(
      (['catch', 'memory'], 'catch and memory: .* different observations'),
      (['fake/Plain-v0', 'fake/ActionsFromOne-v0'], 'different actions'),
      (['fake/EchoBox-v0', 'fake/EchoWide-v0'],
       r'different actions, Box\(.* and Box\('),
      (['fake/EchoBox-v0', 'fake/EchoDouble-v0'], 'different actions'),
      (['fake/EchoParts-v0', 'fake/EchoPartsFromZero-v0'],
       'different actions'),
      (['fake/FrameOnly-v0', 'fake/BoxOnly-v0'],
       r'a Dict of frame uint8 \[2, 2, 3\] and a Box of frame uint8'),
      (['catch', 'ALE/Pong-v5'], 'Atari games and other levels'),
      (['ALE/Pong-v5', 'ALE/Breakout-v5'],
       'ALE/Pong-v5: 6, ALE/Breakout-v5: 4.*full_action_space'),
  )
  def test_levels_that_do_not_go_together(self, names, message):
    self.assert_refused(errors.EnvironmentSpecError, names, message)

  def test_default_settings_are_those_of_the_levels(self):
    with environments.make_vec(['CartPole-v1'], [1]) as env:
      self.assertEqual(env.spec.num_action_repeats, 1)
    with environments.make_vec(['ALE/Pong-v5'], [1]) as env:
      self.assertEqual(env.spec.num_action_repeats, 4)

  def test_atari_without_ale_py(self):
    with mock.patch.dict(sys.modules, {'ale_py': None}):
      self.assert_refused(errors.MissingDependencyError, ['ALE/Pong-v5'],
                          r'pip install "scalable_agent\[atari\]"')

  def test_missing_packages(self):
    self.assert_refused(errors.MissingDependencyError,
                        ['fake/MissingPackage-v0'], 'pip install somephysics')
    self.assert_refused(errors.MissingDependencyError,
                        ['no_such_module:Level-v0'], 'no_such_module')
    self.assert_refused(errors.MissingDependencyError, ['HalfCheetah-v2'],
                        r'The newest version is HalfCheetah-v5\.$')

  @parameterized.parameters(
      (['MiniGrid-Empty-5x5-v0', 'ALE/Pong-v5'],
       'Atari games and other levels: MiniGrid-Empty-5x5-v0, ALE/Pong-v5'),
      (['rooms_watermaze', 'ALE/Pong-v5', 'catch'],
       'Atari games and levels of DeepMind Lab and other levels: rooms'))
  def test_families_that_do_not_go_together(self, names, message):
    self.assert_refused(errors.EnvironmentSpecError, names, message)

  def test_unknown_names_of_other_packages_and_old_versions(self):
    self.assertRegex(str(base.unknown_level('highway-v0', [])), 'module:id')
    self.assertRegex(
        str(base.unknown_level('Half-v2', ['Half-v10', 'Half-v9'])),
        r'Did you mean Half-v10\?')

  def test_nearest_names_are_those_of_all_families(self):
    self.assert_refused(errors.UnknownLevelError, ['seekavoid_arena'],
                        'seekavoid_arena_01')
    self.assert_refused(errors.UnknownLevelError,
                        ['fake_environments:fake/Plan-v0'], 'fake/Plain-v0')

  def test_arguments(self):
    for names, seeds, message in (
        ([], [], 'level_names must'), ('catch', [1] * 5, 'level_names must'),
        (['catch'], [1, 2], '2 seeds for 1'), (['catch'], [-1], 'Seeds must'),
        (['catch'], [2**31], 'Seeds must')):
      with self.assertRaisesRegex(ValueError, message):
        environments.make_vec(names, seeds)
    for wrong in (dict(num_action_repeats=0), dict(max_noops=-1),
                  dict(repeat_action_probability=1.5), dict(step_timeout_s=0)):
      with self.assertRaisesRegex(ValueError, next(iter(wrong))):
        environments.EnvironmentSettings(**wrong)

  def assert_refused(self, error, names, message):
    """Asserts a `ValueError` of one line."""
    with self.assertRaisesRegex(error, message) as caught:
      environments.make_vec(names, list(range(len(names))))
    self.assertIsInstance(caught.exception, ValueError)
    self.assertNotIn('\n', str(caught.exception))
    self.assertEmpty(multiprocessing.active_children())


class GroupsTest(parameterized.TestCase):

  def make_groups(self, level_names, num_groups):
    groups = environments.make_groups(
        level_names, list(range(10, 10 + len(level_names))), _SETTINGS,
        num_groups)
    for group in groups:
      self.addCleanup(group.close)
    return groups

  @parameterized.parameters((1, [5]), (2, [3, 2]), (9, [1] * 5))
  def test_sizes(self, num_groups, sizes):
    groups = self.make_groups(['catch'] * 5, num_groups)
    self.assertEqual([group.num_envs for group in groups], sizes)

  @parameterized.parameters(1, 2, 3, 5)
  def test_every_environment_has_a_number_of_its_own(self, num_groups):
    groups = self.make_groups(['catch'] * 5, num_groups)
    self.assertEqual([i for group in groups for i in group.indices],
                     [0, 1, 2, 3, 4])
    self.assertEqual([len(group.indices) for group in groups],
                     [group.num_envs for group in groups])

  def test_every_environment_keeps_its_level_and_seed(self):
    levels = ['fake/Instructed-v0', 'fake_environments:fake/Instructed-v0',
              'fake/Instructed-v0']
    groups = self.make_groups(levels, 2)
    self.assertEqual([group.level_names for group in groups],
                     [tuple(levels[:2]), tuple(levels[2:])])
    together = environments.make_vec(levels, [10, 11, 12], _SETTINGS)
    self.addCleanup(together.close)
    np.testing.assert_array_equal(
        np.concatenate([g.initial().observation['frame'] for g in groups]),
        together.initial().observation['frame'])

  @parameterized.parameters(
      (['counting', 'CartPole-v1'], 'counting and CartPole-v1: they have '
       'different observations'),
      (['fake/Plain-v0', 'fake/ActionsFromOne-v0'],
       r'have different numbers of actions, 2 and 3\.$'),
      (['ALE/Pong-v5', 'ALE/Breakout-v5'],
       'have different numbers of actions, 6 and 4.*--full_action_space'),
      (['fake/EchoBox-v0', 'fake/EchoWide-v0'],
       r'different actions, Box\(.*\) and Box\(-3.0, 3.0'),
      (['fake/EchoParts-v0', 'fake/EchoPartsFromZero-v0'],
       'different actions, MultiDiscrete'),
      (['fake/EchoParts-v0', 'fake/EchoBox-v0'],
       'different numbers of actions, 3, 2, 4 and 3 continuous ones'))
  def test_groups_that_do_not_go_together(self, levels, message):
    with self.assertRaisesRegex(errors.EnvironmentSpecError, message):
      self.make_groups(levels, 2)
    self.assertEmpty(multiprocessing.active_children())

  @parameterized.parameters(1, 2)
  def test_counts_that_do_not_begin_with_the_same_number(self, num_groups):
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        r'different observations, .*Discrete\(4\).* Discrete\(4, start=3\)'):
      self.make_groups(
          ['fake/PlaceFromZero-v0', 'fake/PlaceFromThree-v0'], num_groups)

  def test_names_of_packages_in_modules_of_users(self):
    for name in 'VizdoomEnvironmentOfAUser-v0', 'MinAtar/Fake-v0':
      env = environments.make_vec(
          [f'fake_environments:{name}'], [1], _SETTINGS)
      self.addCleanup(env.close)
      self.assertEqual(env.spec.observation.shape, (1,))

  @parameterized.parameters(
      (['fake/Plain-v0', 'fake/RaisesAtStart-v0'],),
      (['fake/RaisesAtStart-v0', 'fake/Plain-v0'],))
  def test_groups_are_closed_when_one_fails(self, levels):
    with self.assertRaisesRegex(
        errors.EnvironmentProcessError, 'RaisesAtStart-v0.* raised ValueError'):
      self.make_groups(levels, 2)
    self.assertEmpty(multiprocessing.active_children())

  def test_arguments(self):
    for names, seeds, num_groups, message in (
        (['catch'], [1, 2], 1, '2 seeds for 1'), ([], [], 1, 'level_names'),
        (['catch'], [1], 0, 'num_groups=0 must be positive')):
      with self.assertRaisesRegex(ValueError, message):
        environments.make_groups(names, seeds, _SETTINGS, num_groups)

  def test_check_levels(self):
    environments.check_levels(['fake/Plain-v0', 'fake/OtherBounds-v0'],
                              _SETTINGS)
    environments.check_levels(['ctch'], _SETTINGS)  # Found when it is made.
    with self.assertRaisesRegex(errors.UnknownLevelError, 'ctch'):
      environments.check_levels(['catch', 'ctch'], _SETTINGS)
    with self.assertRaisesRegex(errors.EnvironmentSpecError,
                                'One agent cannot play catch and memory'):
      environments.check_levels(['catch', 'memory'], _SETTINGS)
    self.assertEmpty(multiprocessing.active_children())


class FamiliesTest(absltest.TestCase):

  def test_families_do_not_import_each_other(self):
    names = {family.levels.__name__ for family in environments.FAMILIES}
    for family in environments.FAMILIES:
      with open(family.levels.__file__, encoding='utf-8') as f:
        tree = ast.parse(f.read())
      imported = {f'{node.module}.{alias.name}' for node in ast.walk(tree)
                  if isinstance(node, ast.ImportFrom) for alias in node.names}
      self.assertIn('scalable_agent.environments.base', imported)
      self.assertEmpty(imported & names)

  def test_gymnasium_comes_last(self):
    self.assertIs(environments.FAMILIES[-1].levels, gymnasium_env)

  def test_levels_are_not_registered_with_gymnasium(self):
    with mock.patch.object(gymnasium, 'register') as register:
      with environments.make_vec(['catch'], [1], _SETTINGS) as env:
        env.initial()
    register.assert_not_called()
    self.assertNotIn('scalable_agent', ' '.join(gymnasium.registry))


class ProcessesTest(absltest.TestCase):
  """Whole programs: imports, Ctrl-C, a kill."""

  def start(self, program, **kwargs):
    """Starts a main program, from a file, that has no main guard."""
    directory = tempfile.TemporaryDirectory()
    self.addCleanup(directory.cleanup)
    path = os.path.join(directory.name, 'main.py')
    with open(path, 'w') as f:
      f.write(textwrap.dedent(program))
    process = subprocess.Popen(
        [sys.executable, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(
            [_ROOT, _TESTS, os.environ.get('PYTHONPATH', '')])}, **kwargs)
    self.addCleanup(self._end, process)
    return process

  def _end(self, process):
    """Ends a program and all processes that it may have left."""
    try:
      os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
    process.communicate()

  def test_tensorflow_is_never_imported(self):
    process = self.start("""
        import sys
        print('main')
        from scalable_agent import environments
        import fake_environments
        for level in ('ALE/Pong-v5', 'catch', 'CartPole-v1',
                      'fake/ImportsTensorFlow-v0'):
          with environments.make_vec([level] * 2, [1, 2]) as env:
            observation = env.initial().observation
        print('tensorflow' in sys.modules, observation.tolist())
        # A main module with TensorFlow must not bring it to the workers.
        sys.modules['tensorflow'] = sys
        with environments.make_vec([level], [1]) as env:
          print(env.initial().observation.tolist())
        """)
    output, errors = process.communicate(timeout=120)
    self.assertEqual(
        output.splitlines(), ['main', 'False [[0.0], [0.0]]', '[[0.0]]'],
        errors)
    self.assertEqual(process.returncode, 0)

  def test_environment_defined_in_the_main_module(self):
    process = self.start("""
        import gymnasium
        import numpy as np
        from scalable_agent import environments
        class Mine(gymnasium.Env):
          observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
          action_space = gymnasium.spaces.Discrete(2)
          def reset(self, *, seed=None, options=None):
            return np.array([7], np.float32), {}
        gymnasium.register('Mine-v0', Mine)
        with environments.make_vec(['Mine-v0'], [1]) as env:
          print(env.initial().observation.tolist())
        """)
    output, errors = process.communicate(timeout=120)
    self.assertEqual(output, '[[7.0]]\n', errors)

  def test_libraries_of_environments_have_one_thread(self):
    num_more = min(2, len(os.sched_getaffinity(0))) - 1
    for chosen, observation in (None, [0., 1.]), (2, [float(num_more), 2.]):
      process = self.start(f"""
          import os
          os.environ.pop('OPENBLAS_NUM_THREADS', None)
          if {chosen}:
            os.environ['OPENBLAS_NUM_THREADS'] = '{chosen}'
          import gymnasium
          import numpy as np
          from scalable_agent import environments
          def num_threads():
            return len(os.listdir('/proc/self/task'))
          class Mine(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(0, 99, (2,), np.float32)
            action_space = gymnasium.spaces.Discrete(2)
            def reset(self, *, seed=None, options=None):
              before = num_threads()
              np.ones([512, 512]) @ np.ones([512, 512])
              return np.array([
                  num_threads() - before,
                  os.environ['OPENBLAS_NUM_THREADS']], np.float32), {{}}
          gymnasium.register('Mine-v0', Mine)
          with environments.make_vec(['Mine-v0'], [1]) as env:
            print(env.initial().observation.tolist())
          print(os.environ.get('OPENBLAS_NUM_THREADS'))
          """)
      output, errors = process.communicate(timeout=120)
      self.assertEqual(output, f'[{observation}]\n{chosen}\n', errors)

  @pytest.mark.slow
  def test_interrupt_is_left_to_the_parent(self):
    process = self.start("""
        import signal
        import numpy as np
        import fake_environments
        from scalable_agent import environments
        # Shells start what runs in the background with interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        settings = environments.EnvironmentSettings(num_action_repeats=1)
        env = environments.make_vec(
            ['fake/Hangs-v0'] * 3, [0, 1, 2], settings)
        try:
          env.initial()
          env.step(np.zeros([3], np.int32))
          print('ready', flush=True)
          env.step(np.zeros([3], np.int32))
        except KeyboardInterrupt:
          env.close()
          print('closed')
        """)
    self.assertEqual(process.stdout.readline(), 'ready\n')
    os.killpg(process.pid, signal.SIGINT)  # As a terminal does on Ctrl-C.
    output, errors = process.communicate(timeout=60)
    self.assertEqual(output, 'closed\n')
    self.assertEqual(errors, '')

  @pytest.mark.slow
  def test_workers_die_with_their_parent(self):
    process = self.start("""
        import numpy as np
        import fake_environments
        from scalable_agent import environments
        env = environments.make_vec(
            ['fake/Hangs-v0'] * 2, [0, 1],
            environments.EnvironmentSettings(num_action_repeats=1))
        env.initial()
        env.step(np.zeros([2], np.int32))
        print('ready', flush=True)
        env.step(np.zeros([2], np.int32))
        """)
    self.assertEqual(process.stdout.readline(), 'ready\n')
    process.kill()
    # Workers hold the other end of this pipe until they are gone.
    process.communicate(timeout=60)


# See `mutations.py`.
MUTATIONS = (
    dict(file='processes/workers',
         catches='test_steps_that_cannot_be_learned_from', rows=(
        ('None is False', 'user_code.ends_of_step(terminated, truncated)',
         'bool(terminated), bool(truncated)'),
    )),
    dict(file='processes/workers',
         catches='test_an_error_names_the_function_that_returned_the_wrong_value1',
         rows=(
        ('a step is blamed for a reset', "          method = 'reset'\n", ''),
    )),
    dict(file='processes/workers',
         catches='test_environments_of_a_process_close_in_turn', rows=(
        ('environments of a process have the time of one',
         'min(self._num_per_process, _MOST_CLOSES)', '1'),
    )),
    dict(file='processes/workers',
         catches='test_after_an_error_environments_need_not_close',
         rows=(
        ('after an error, environments that do not close are named',
         'explanation = self._explain(e)\n      self._close(_END_TIMEOUT_S)',
         'explanation = self._explain(e)\n      self.close()'),
    )),
    dict(file='environments/atari',
         catches='test_all_actions_of_a_game_without_fire', rows=(
        ('an action with fire does nothing',
         "name.removesuffix('FIRE') or 'NOOP'", "'NOOP'"),
    )),
    dict(file='environments/__init__',
         catches='test_libraries_of_environments_have_one_thread', rows=(
        ('as many threads as cores',
         "['scalable_agent.processes.one_thread', __name__,", '[__name__,'),
        ('too late',
         "['scalable_agent.processes.one_thread', __name__,",
         "[__name__, 'scalable_agent.processes.one_thread',"),
    )),
    dict(file='processes/variables',
         catches='test_libraries_of_environments_have_one_thread', rows=(
        ('the choice of the user does not count',
         "os.environ.setdefault(name, '1')", "os.environ[name] = '1'"),
    )),
    dict(file='environments/registry',
         catches='test_names_of_packages_in_modules_of_users',
         rows=(
        ('modules of users are packages',
         "module in ('', self.module.partition('.')[0])",
         'True'),
    )),
    dict(file='environments/units',
         catches='test_counts_that_do_not_begin_with_the_same_number',
         rows=(
        ('counts may differ in a group',
         'Units(level.units).counted',
         'Units(first.units).counted'),
    )),
)


if __name__ == '__main__':
  absltest.main()
