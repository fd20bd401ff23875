# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of films: every frame of the game that was played, and no other."""

import contextlib
import dataclasses
import errno
import functools
import glob
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import gymnasium
import imageio.v2
import imageio_ffmpeg
import in_process
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import recording as recording_lib
from scalable_agent.environments import registry
from scalable_agent.environments import toys
from scalable_agent.modes import loading
from scalable_agent.runs import training
from scalable_agent.runs import videos as videos_lib
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections

_SETTINGS = sections.EnvironmentSettings(mode='video', num_action_repeats=1)


def _read(path):
  """Returns the pictures of a film, uint8 `[N, H, W, 3]`."""
  with imageio.v2.get_reader(path) as reader:
    return np.stack(list(reader.iter_data()))


class _Collected:
  """Takes the place of a film; keeps the pictures."""
  all: list = []

  def __init__(self, path, frames_per_s):
    self.path, self.fps, self.pictures = path, frames_per_s, []
    self.texts = []
    self.is_closed = False
    self.all.append(self)

  def add(self, picture, text=''):
    self.pictures.append(np.array(picture))
    self.texts.append(text)

  def close(self):
    self.is_closed = True


class FilmTest(parameterized.TestCase):

  @parameterized.parameters(
      ('mp4', 50., 1, 50.), ('gif', 50., 2, 25.), ('gif', 10., 1, 10.),
      # These need hundredths of a second: 50, 70 and 110 ms.
      ('gif', 60., 3, 20.), ('gif', 30., 2, 1000 / 70),
      ('gif', 35 / 4, 1, 1000 / 110))
  def test_all_pictures_are_there(self, extension, fps, every, shown_fps):
    path = os.path.join(self.create_tempdir().full_path, f'a.{extension}')
    film = recording_lib.VideoWriter(path, fps)
    # Odd sizes; half black, half white, which grows.
    pictures = np.zeros([40, 181, 201, 3], np.uint8)
    for t in range(40):
      pictures[t, :, :5 * t] = 255
      film.add(pictures[t])
    film.close()
    found = _read(path)
    self.assertEqual(found.shape, (len(pictures[::every]), 182, 202, 3))
    found = found[:, :181, :201].astype(int)
    self.assertLess(np.abs(found - pictures[::every]).mean(), 6)
    with imageio.v2.get_reader(path) as reader:
      data = reader.get_meta_data()
    self.assertAlmostEqual(data.get('fps') or 1000 / data['duration'],
                           shown_fps)

  def test_an_encoder_without_room_on_the_disk(self):
    path = os.path.join(self.create_tempdir().full_path, 'a.mp4')
    os.symlink('/dev/full', path)
    picture = np.random.default_rng(1).integers(
        0, 256, [500, 500, 3], dtype=np.uint8)
    message = rf'^The video {path} could not be written: [^\n]+\.$'
    with self.assertRaisesRegex(errors.SaveError, message):
      film = recording_lib.VideoWriter(path, 50.)
      for _ in range(100):
        film.add(picture)
      film.close()

  def test_small_pictures_are_enlarged(self):
    board = np.zeros([10, 5, 3], np.uint8)
    board[2, 3] = 255
    large = recording_lib._resize(board)
    self.assertEqual(large.shape, (160, 80, 3))
    np.testing.assert_array_equal(large[8::16, 8::16], board)

  def test_text_is_in_the_corner(self):
    black = np.zeros([200, 200, 3], np.uint8)
    self.assertIs(recording_lib._with_text(black, ''), black)
    changed = np.argwhere(recording_lib._with_text(black, '12  UP').any(-1))
    self.assertNotEmpty(changed)
    self.assertLess(changed[:, 0].max(), 20)
    self.assertLess(changed[:, 1].max(), 80)
    self.assertEqual(recording_lib._text(3., 1, {1: 'DOWN'}), '3  DOWN')
    self.assertEqual(recording_lib._text(.456, np.array([.1, -.25]), {}),
                     '0.46  0.10 -0.25')


class RecorderTest(parameterized.TestCase):

  def test_games_of_processes(self):
    directory = self.create_tempdir().full_path
    with environments.make_vec(
        ['catch'] * 2, [1, 2], _SETTINGS,
        recording=recording_lib.Recording(directory)) as env:
      boards = [env.initial().observation.copy()]
      for t in range(18):
        output = env.step(np.array([t % 3, 1]))
        boards.append(np.where(
            output.info.episode_end[:, None, None],
            output.last_observation if output.info.episode_end.any() else 0,
            output.observation))
        if output.info.episode_end.any():
          boards.append(output.observation.copy())
      # They are complete before the vector is closed.
      for index in range(2):
        for game in range(2):
          found = _read(os.path.join(directory, f'{index}-{game}.mp4'))
          self.assertLen(found, 10)
          found = found[:, 8::16, 8::16, 0] / 255
          expected = [board[index] for board in boards[10 * game:][:10]]
          np.testing.assert_allclose(found, expected, atol=.2)

  @parameterized.parameters(
      'memory', 'fake_environments:fake/TupleOfParts-v0')
  def test_no_pictures(self, level):
    with environments.make_vec(
        [level], [1], _SETTINGS, recording=recording_lib.Recording(
            self.create_tempdir().full_path)) as env:
      with self.assertRaisesRegex(
          errors.EnvironmentProcessError, r'environment 0 .* raised '
          'EnvironmentSpecError: no video can be recorded') as caught:
        env.initial()
    self.assertEmpty(caught.exception.frames)  # No code of a user is at fault.

  @parameterized.parameters('pendulum_position', 'cartpole_position')
  def test_positions_can_be_filmed(self, level):
    with mock.patch.object(recording_lib, 'VideoWriter', _Collected):
      _Collected.all = []
      recorder = recording_lib.Recorder(
          toys.LEVELS[level](), recording_lib.Recording('d'), 0)
      recorder.reset(seed=0)
      [film] = _Collected.all
    self.assertEqual(film.pictures[0].shape[-1], 3)

  def test_a_function_that_takes_more_than_its_environment(self):
    def make(**kwargs):
      return toys.LEVELS['catch'](**kwargs)

    spec = gymnasium.spec('CartPole-v1')
    with mock.patch.dict(gymnasium.registry, {
        'Mine-v0': dataclasses.replace(spec, id='Mine-v0', entry_point=make)}):
      spec = registry.look_up('Mine-v0', _SETTINGS)
      self.assertIn('render_mode', spec.kwargs)
      env = registry.make(spec, {})
      self.assertIsNone(env.render_mode)
      with self.assertRaisesRegex(TypeError, 'colour'):
        registry.make(dataclasses.replace(spec, kwargs={'colour': 1}), {})
      with self.assertRaisesRegex(errors.EnvironmentSpecError, 'colour'):
        registry.make(spec, {'colour': 1})

  def test_numbers_of_pictures(self):
    env = mock.Mock(render_mode=None)
    numbers = np.array([[0, 7], [200, 255]])
    for picture in (numbers, numbers.astype(np.float32), numbers + 0.2):
      np.testing.assert_array_equal(
          recording_lib._picture(env, picture)[..., 0], numbers)
    np.testing.assert_array_equal(
        recording_lib._picture(env, np.array([[0., 1.]]))[..., 0], [[0, 255]])

  @parameterized.parameters(
      (gymnasium.spaces.Box(0, 1, (1, 2), np.int8), 255),
      (gymnasium.spaces.Box(0, 1, (1, 2), np.uint8), 255),
      (gymnasium.spaces.MultiBinary((1, 2)), 255),
      (gymnasium.spaces.Dict(
          frame=gymnasium.spaces.Box(0, 1, (1, 2), np.int64)), 255),
      # A picture may have dark moments.
      (gymnasium.spaces.Box(0, 255, (1, 2), np.uint8), 1),
      (gymnasium.spaces.Box(0, 255, (1, 2), np.uint16), 1),
      (gymnasium.spaces.Box(0, 255, (1, 2), np.int64), 1))
  def test_boards_of_integers(self, space, white):
    env = mock.Mock(render_mode=None, observation_space=space)
    part = space['frame'] if isinstance(space, gymnasium.spaces.Dict) else space
    for numbers in [0, 1], [0, 0]:
      board = np.array([numbers], part.dtype)
      picture = recording_lib._picture(
          env, board if part is space else {'frame': board})
      self.assertEqual(picture.dtype, np.uint8)
      np.testing.assert_array_equal(picture[0, :, 0],
                                    np.multiply(numbers, white))

  def test_boards_of_bool(self):
    board = np.array([[False, True]])
    for env in (mock.Mock(render_mode=None),
                mock.Mock(render_mode='rgb_array',
                          render=mock.Mock(return_value=board))):
      np.testing.assert_array_equal(
          recording_lib._picture(env, board)[..., 0], [[0, 255]])

  @parameterized.parameters(
      (gymnasium.spaces.Discrete(2, start=1), 1, '0  left'),
      (gymnasium.spaces.Discrete(2, start=-1), 0, '0  right'),
      (gymnasium.spaces.Discrete(3), 2, '0  2'),  # Not all have names.
      (gymnasium.spaces.MultiDiscrete([3, 3]), [1, 2], '0  1 2'))
  def test_names_of_actions(self, space, action, text):
    env = mock.Mock(action_space=space)
    env.unwrapped.get_action_meanings = lambda: ['left', 'right']
    self.assertEqual(recording_lib._text(
        0., np.array(action), recording_lib._meanings(env)), text)

  def test_a_reward_in_an_array(self):
    env = gymnasium.wrappers.TransformReward(
        gymnasium.make('CartPole-v1', render_mode='rgb_array'),
        lambda reward: np.array([reward]))
    with mock.patch.object(recording_lib, 'VideoWriter', _Collected):
      _Collected.all = []
      recorder = recording_lib.Recorder(
          env, recording_lib.Recording('d', has_text=True), 3)
      recorder.reset(seed=0)
      recorder.step(0)
    self.assertEqual(_Collected.all[0].texts[1], '1  0')

  def test_what_render_shows(self):
    env = gymnasium.make('CartPole-v1', render_mode='rgb_array')
    with mock.patch.object(recording_lib, 'VideoWriter', _Collected):
      _Collected.all = []
      recorder = recording_lib.Recorder(
          env, recording_lib.Recording('d', has_text=True), 3)
      recorder.reset(seed=0)
      first = env.render()
      while not any(recorder.step(0)[2:4]):
        pass
      last = env.render()
      [film] = _Collected.all
    self.assertEqual((film.path, film.fps), ('d/3-0.mp4', 50))
    self.assertTrue(film.is_closed)
    np.testing.assert_array_equal(film.pictures[0], first)
    np.testing.assert_array_equal(film.pictures[-1], last)
    self.assertEqual(film.texts[1], '1  0')
    self.assertEqual(film.texts[-1], f'{len(film.pictures) - 1}  0')


class AtariTest(parameterized.TestCase):

  @parameterized.parameters((0., False), (.25, True))
  def test_it_is_the_same_game(self, repeat_action_probability, fire):
    settings = sections.EnvironmentSettings(
        mode='video', max_episode_frames=200,
        num_action_repeats=4, fire_on_reset=fire,
        repeat_action_probability=repeat_action_probability)
    rng = np.random.default_rng(0)
    with mock.patch.object(recording_lib, 'VideoWriter', _Collected):
      _Collected.all = []
      with environments.make_vec(
          ['ALE/Breakout-v5', 'ALE/Skiing-v5'], [3, 4],
          dataclasses.replace(settings, full_action_space=True),
          recording=recording_lib.Recording('d', has_text=True)) as env:
        env.initial()
        films = {i: [_Collected.all[i]] for i in range(2)}
        num_ends, now, before = 0, [], []
        for t in range(110):
          output = env.step(rng.integers(0, 18, 2))
          for index in range(2):
            film = films[index][-1]
            if output.info.episode_end[index]:
              num_ends += 1
              self.assertTrue(film.is_closed)
              self.assertLessEqual(len(film.pictures), 201)
              films[index].append(next(
                  f for f in _Collected.all if not f.is_closed
                  and f.path.startswith(f'd/{index}-')))
            elif t % 10 == 0:
              for end, differences in (0, now), (-4, before):
                if len(film.pictures) > 6:
                  seen = np.maximum(*map(_grey, film.pictures[
                      end - 2:end or None]))
                  differences.append(np.abs(
                      seen - output.observation[index, -1]).max())
    self.assertGreater(num_ends, 2)
    # The step before shows other places of the ball and of the players.
    self.assertLess(np.median(now), 30)
    self.assertGreater(np.median(before), 80)
    self.assertTrue(np.all(np.less(now, before)))
    self.assertEqual({film.fps for film in _Collected.all}, {60})
    self.assertEqual(_Collected.all[0].pictures[0].shape, (210, 160, 3))
    self.assertRegex(films[0][0].texts[5], r'^0  [A-Z]+$')

  def test_another_game_is_an_error(self):
    with environments.make_vec(
        ['ALE/Pong-v5'], [3], sections.EnvironmentSettings(
            mode='video', num_action_repeats=4),
        recording=recording_lib.Recording(
            self.create_tempdir().full_path)) as env:
      env.initial()
      [game] = env._env._games
      with self.assertRaisesRegex(RuntimeError, 'another game'):
        game.step(0, 1., False)


def _grey(picture):
  """Returns a picture as the agent sees it, float `[84, 84]`."""
  grey = np.rint(picture @ [.2989, .587, .114])
  rows, columns = (_overlaps(size) for size in grey.shape)
  return rows @ grey @ columns.T


def _overlaps(size):
  """Returns `[84, size]`: the mean over the area of each pixel."""
  edges = np.linspace(0, size, 85)
  pixels = np.arange(size)
  overlap = (np.minimum(edges[1:, None], pixels + 1)
             - np.maximum(edges[:-1, None], pixels))
  return np.maximum(overlap, 0) * 84 / size


def _cut_recorder(factory, close, *args):
  recording_lib.VideoWriter.close = close
  return recording_lib.Recorder(factory(), *args)


@pytest.mark.slow
class VideoModeTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    root = tempfile.TemporaryDirectory()
    cls.addClassCleanup(root.cleanup)
    cls.logdir = os.path.join(root.name, 'catch')
    eager.train(config_lib.Config(
        level_name='catch', logdir=cls.logdir, agent='mlp', xla='none',
        unroll_length=5, batch_size=4, total_environment_frames=20))

  def _main(self, *args):
    return in_process.main(
        '--mode=video', f'--logdir={self.logdir}', *args)

  def test_the_best_and_the_median(self):
    code, output = self._main('--video_num_episodes=4', '--seed=3')
    self.assertEqual(code, 0, output)
    returns = [float(r) for r in output.split('returns ')[1].split('\n')[0]
               .split()]
    self.assertEqual(returns, sorted(returns))
    self.assertIn(f'-best.mp4: the best game, return {returns[-1]:g}.', output)
    self.assertIn(f'-median.mp4: the median game, return {returns[1]:g}.',
                  output)
    paths = [line.split()[1].removesuffix(':') for line in output.splitlines()
             if line.startswith('Wrote')]
    self.assertLen(paths, 2)
    for path in paths:
      film = _read(path)
      self.assertLen(film, 10)
      # The last picture shows what the return says.
      board = film[-1, 8::16, 8::16, 0] > 128
      is_caught = board[-1].sum() == 1
      self.assertEqual(is_caught, 'best' in path and returns[-1] > 0
                       or 'median' in path and returns[1] > 0)
    with open(paths[0], 'rb') as f:
      before = f.read()
    code, output = self._main('--video_num_episodes=1', '--video_text')
    self.assertEqual(code, 0, output)
    self.assertIn('-best-2.mp4', output)
    with open(paths[0], 'rb') as f:
      self.assertEqual(f.read(), before)
    self.assertEmpty(glob.glob(f'{self.logdir}/videos/unfinished*'))

  def test_no_ffmpeg(self):
    with mock.patch.object(imageio_ffmpeg, 'get_ffmpeg_exe',
                           side_effect=RuntimeError('No ffmpeg exe.')):
      code, output = self._main()
    self.assertEqual(code, 2)
    self.assertEqual(output.splitlines()[-1], 'scalable_agent: Videos need '
                     'imageio and ffmpeg: pip install "scalable_agent[video]" '
                     '(No ffmpeg exe.).')

  def test_no_checkpoint(self):
    empty = self.create_tempdir().full_path
    code, output = self._main(f'--logdir={empty}')
    self.assertEqual(code, 2)
    self.assertIn('holds no checkpoint', output.splitlines()[-1])
    self.assertEmpty(os.listdir(empty))

  def test_no_pictures(self):
    logdir = self.create_tempdir().full_path
    eager.train(config_lib.Config(
        level_name='memory', logdir=logdir, agent='mlp', xla='none',
        unroll_length=5, batch_size=4, total_environment_frames=20))
    code, output = self._main(f'--logdir={logdir}')
    self.assertEqual(code, 1)
    self.assertRegex(
        output.splitlines()[-1], r'^scalable_agent: environment \d \(memory\) '
        'raised EnvironmentSpecError: no video can be recorded: float32 .3. of '
        'the observation is no picture. .*metadata')
    self.assertNotIn('Traceback', output)
    self.assertNotIn('  File ', output)  # No code of the user is at fault.
    self.assertNotIn('videos', os.listdir(logdir))

  @pytest.mark.storm
  def test_full_disk(self):
    def cut(film):
      film._writer.close()
      path = film._writer.request.filename
      os.truncate(path, os.path.getsize(path) // 2)

    logdir = self.create_tempdir().full_path
    shutil.copytree(self.logdir, logdir, dirs_exist_ok=True)
    shutil.rmtree(os.path.join(logdir, 'videos'), ignore_errors=True)
    # The processes of environments import the file anew.
    with mock.patch.object(recording_lib.Recording, 'factory', (
        lambda self, factory, *args: functools.partial(
            _cut_recorder, factory, cut, self, *args))):
      code, output = self._main(
          f'--logdir={logdir}', '--video_num_episodes=1')
    self.assertEqual(code, 2)
    self.assertRegex(output.splitlines()[-1], 'the video .* is damaged')
    self.assertNotIn('videos', os.listdir(logdir))


class MemoryTest(parameterized.TestCase):
  """Films, and `play`, carry the state of a memory from step to step."""

  @pytest.mark.slow
  def test_the_state_is_carried_and_reset(self):
    self._check('ddqn', 'catch')

  @parameterized.parameters('ddpg', 'td3', 'sac', 'mpo')
  @pytest.mark.storm
  def test_the_state_of_others_is_carried_and_reset(self, algorithm):
    self._check(algorithm, 'Pendulum-v1')

  def _check(self, algorithm, level):
    logdir = self.create_tempdir().full_path
    training.train(config_lib.Config(
        algorithm=algorithm, level_name=level, logdir=logdir, agent='mlp',
        hidden_sizes='8', use_lstm=True, lstm_units=4, sequence_length=3,
        burn_in_steps=2, unroll_length=3, xla='none', num_actors=1,
        batch_size=2, min_replay_steps=20, updates_per_step=.1,
        num_action_repeats=1, total_environment_frames=50,
        environment_kwargs={} if level == 'catch' else {
            'max_episode_steps': 20}))
    with self._steps() as filmed:
      code, output = in_process.main(
          '--mode=video', f'--logdir={logdir}', '--video_num_episodes=2',
          '--video_format=gif')
    self.assertEqual(code, 0, output)
    with self._steps() as played:
      loading.load(logdir).play(num_episodes=2)
    for steps in filmed, played:
      self.assertGreaterEqual(sum(step.done for step in steps), 2)
      self.assertTrue(steps[0].done)
      for before, step in zip([None, *steps], steps):
        if before:
          np.testing.assert_array_equal(step.action, before.output.action)
        for part, carried, now, zero_now in zip(
            step.state, before.after if before else (0, 0), step.after,
            step.from_zeros, strict=True):
          np.testing.assert_array_equal(part, carried)
          is_equal = np.allclose(now, zero_now, rtol=1e-5, atol=1e-6)
          self.assertEqual(is_equal, step.done)

  @contextlib.contextmanager
  def _steps(self):
    """Yields a list, which gets the steps of policies."""
    steps, act = [], policies.AgentPolicy.step

    def step(policy, last_action, env_output, state):
      output, after = act(policy, last_action, env_output, state)
      zeros = [np.zeros_like(part) for part in state]
      steps.append(types.SimpleNamespace(
          action=last_action, done=bool(env_output.done[0]), state=state,
          output=output, after=after,
          from_zeros=act(policy, last_action, env_output, zeros)[1]))
      return output, after

    with mock.patch.object(policies.AgentPolicy, 'step', step):
      yield steps


_ANNOUNCE = 'from scalable_agent.runs import videos\n'


class VideosTest(absltest.TestCase):

  def _record(self, program, *numbers, video_secs=0.):
    output = io.StringIO()
    videos = videos_lib.Videos(config_lib.Config(video_secs=video_secs))
    videos._command = [sys.executable, '-c', program]
    with contextlib.redirect_stdout(output):
      for number in numbers:
        videos.record_if_due(number)
        if videos._process:
          videos._process.wait()
          videos._printer.join()
    return videos, output.getvalue().splitlines()

  def test_one_video_of_a_checkpoint(self):
    _, lines = self._record(_ANNOUNCE + 'print("Wrote, not announced.")\n'
                            'videos.announce("Wrote a.")', 0, 0, 5, 5, 7)
    self.assertEqual(lines, ['Wrote a.'] * 2)

  def test_a_training_without_the_packages_does_not_start(self):
    with mock.patch.object(imageio_ffmpeg, 'get_ffmpeg_exe',
                           side_effect=RuntimeError('No ffmpeg exe.')):
      with self.assertRaisesRegex(errors.MissingDependencyError, r'\[video\]'):
        videos_lib.Videos(config_lib.Config(video_secs=60.))
      videos_lib.Videos(config_lib.Config(video_secs=60., video_format='gif'))

  def test_not_before_it_is_due(self):
    _, lines = self._record(
        _ANNOUNCE + 'videos.announce("Wrote a.")', 5, 7, video_secs=1e6)
    self.assertEmpty(lines)

  def test_errors_are_said(self):
    _, lines = self._record(
        'import sys; print(1); sys.exit("It is broken.")', 1)
    self.assertEqual(lines, ['No video: It is broken.'])

  def test_no_room_for_a_process_ends_nothing(self):
    videos = videos_lib.Videos(config_lib.Config(video_secs=0.))
    full = OSError(errno.EAGAIN, 'Resource temporarily unavailable')
    with mock.patch.object(subprocess, 'Popen', side_effect=full), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      videos.record_if_due(1)
    self.assertEqual(output.getvalue(),
                     'No video: Resource temporarily unavailable.\n')
    videos.close()

  def test_the_gpu_is_left_to_the_learner(self):
    _, lines = self._record(
        _ANNOUNCE + 'import os\n'
        'videos.announce(os.environ["CUDA_VISIBLE_DEVICES"])', 1)
    self.assertEqual(lines, ['-1'])

  def test_it_ends_with_the_training(self):
    videos = videos_lib.Videos(config_lib.Config())
    videos._command = [sys.executable, '-c', 'import time; time.sleep(1e6)']
    videos.record_if_due(1)
    first = videos._process
    videos.record_if_due(2)  # One at a time.
    self.assertIs(videos._process, first)
    videos.close()
    self.assertEqual(videos._process.wait(), -signal.SIGTERM)
    videos.close()

  def test_a_recorder_that_does_not_end_is_killed(self):
    videos = videos_lib.Videos(config_lib.Config(video_secs=0.))
    ready = os.path.join(self.create_tempdir().full_path, 'ready')
    videos._command = [
        sys.executable, '-c', 'import signal, time\n'
        'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
        f'open({ready!r}, "w"); time.sleep(1e6)']
    videos.record_if_due(1)
    while not os.path.exists(ready) and videos._process.poll() is None:
      time.sleep(.01)
    with mock.patch.object(videos_lib, '_END_TIMEOUT_S', .2):
      videos.close()
    self.assertEqual(videos._process.wait(), -signal.SIGKILL)

  def test_nothing_is_said_of_a_video_that_was_ended(self):
    ready = os.path.join(self.create_tempdir().full_path, 'ready')
    videos = videos_lib.Videos(config_lib.Config())
    videos._command = [
        sys.executable, '-c', 'import signal, sys, time\n'
        'signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))\n'
        f'open({ready!r}, "w").close()\n'
        'time.sleep(1e6)']
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      videos.record_if_due(1)
      while not os.path.exists(ready):
        time.sleep(0.01)
      videos.close()
      videos._printer.join()
    self.assertEqual((videos._process.returncode, output.getvalue()), (1, ''))

  def test_a_video_whose_process_was_killed(self):
    videos = videos_lib.Videos(config_lib.Config())
    videos._command = ['sh', '-c', 'kill -9 $$']
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      videos.record_if_due(1)
      videos._printer.join()
    self.assertEqual(output.getvalue(), 'No video: the process was ended by '
                     'signal 9 (9 is often a lack of memory).\n')

  @pytest.mark.storm
  def test_the_program(self):
    empty = self.create_tempdir().full_path
    videos = videos_lib.Videos(config_lib.Config(logdir=empty))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      videos.record_if_due(1)
      if hasattr(os, 'SCHED_IDLE'):
        while os.sched_getscheduler(videos._process.pid) != os.SCHED_IDLE:
          self.assertIsNone(videos._process.poll())
      videos._printer.join()
    self.assertEqual(
        output.getvalue(), f'No video: scalable_agent: {empty} holds no '
        'checkpoint. Train first, or name the directory of a trained agent.\n')

  @pytest.mark.storm
  def test_videos_of_a_training(self):
    logdir = self.create_tempdir().full_path
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      training.train(
          config_lib.Config(
              level_name='catch', logdir=logdir, agent='mlp', xla='none',
              unroll_length=5, batch_size=4, video_secs=1,
              save_checkpoint_secs=1, total_environment_frames=10**8),
          hooks=[lambda update: glob.glob(f'{logdir}/videos/*.mp4')
                 and os.kill(os.getpid(), 15)])
    [video] = glob.glob(f'{logdir}/videos/*.mp4')
    self.assertLen(_read(video), 10)
    self.assertIn(f'Wrote {video}', output.getvalue())


# See `mutations.py`.
MUTATIONS = (
    dict(file='environments/recording', catches='test_a_reward_in_an_array',
         rows=(
        ('rewards are numbers', 'user_code.number_of_reward(reward)',
         'float(reward)'),
    )),
    dict(file='environments/registry',
         catches='test_a_function_that_takes_more_than_its_environment', rows=(
        ('environments without pictures are not made',
         'if spec.kwargs == others or', 'if True or'),
    )),
    dict(file='environments/recording', catches='test_names_of_actions', rows=(
        ('actions begin with 0', 'int(env.action_space.start)', '0'),
    )),
    dict(file='processes/user_code', catches='test_no_pictures', rows=(
        ('errors of the program blame the code of users',
         ' and not isinstance(\n      error, errors.UserError)', ''),
    )),
    dict(file='environments/hidden',
         catches='test_positions_can_be_filmed', rows=(
        ('no pictures', "gymnasium.make(name, render_mode='rgb_array')",
         'gymnasium.make(name)'),
    )),
    dict(file='runs/evaluation',
         catches='test_the_state_is_carried_and_reset', rows=(
        ('state lost between steps', 'output, state = policy.step(',
         'output, _ = policy.step('),
    )),
    dict(file='environments/recording',
         catches='RecorderTest.test_no_pictures', rows=(
        ('no first picture',
         '    self._add(observation)\n'
         '    return observation, info',
         '    return observation, info'),
    )),
    dict(file='environments/recording', catches='test_boards_of_bool', rows=(
        ('boards of bool are refused', "picture.dtype.kind == 'b' or", ''),
    )),
    dict(file='environments/recording', catches='test_boards_of_integers',
         rows=(
        ('boards of integers are black', "'b' or is_board or", "'b' or"),
        ('dark pictures are boards', 'bool((space.high <= 1).all())', 'True'),
        ('boards of dictionaries are black',
         "space = space.spaces.get('frame', space)", 'pass'),
    )),
    dict(file='environments/recording', catches='test_what_render_shows', rows=(
        ('films are not completed',
         'if terminated or truncated:\n'
         '      self._end()',
         'pass'),
        ('the return of before',
         'self._return += user_code.number_of_reward(reward)', 'pass'),
    )),
    dict(file='environments/recording',
         catches='test_it_is_the_same_game', rows=(
        ('one frame less', 'range(self._num_repeats)',
         'range(self._num_repeats - 1)'),
        ('another seed', 'np.array([seed], np.int32)',
         'np.array([seed + 1], np.int32)'),
    )),
    dict(file='environments/recording',
         catches='test_all_pictures_are_there', rows=(
        ('all pictures in a GIF', 'math.ceil(frames_per_s / _MAX_GIF_FPS)',
         '1'),
        ('more pictures in a GIF than there may be',
         'math.ceil(frames_per_s / _MAX_GIF_FPS)',
         'max(1, round(frames_per_s / _MAX_GIF_FPS))'),
        ('a GIF is too fast', '10 * round(100 * self._every / frames_per_s)',
         '1000 * self._every / frames_per_s'),
    )),
    dict(file='environments/recording',
         catches='test_small_pictures_are_enlarged', rows=(
        ('small pictures stay small', '-(-_MIN_SIZE // max(picture.shape[:2]))',
         '1'),
    )),
    dict(file='runs/videos', catches='test_one_video_of_a_checkpoint', rows=(
        ('several videos of a checkpoint',
         'checkpoint_number == self._last_number\n', 'False\n'),
        ('videos are not announced', 'os.write(int', 'print(int'),
    )),
    dict(file='runs/videos',
         catches='test_a_training_without_the_packages_does_not_start', rows=(
        ('missing packages are said at the first video',
         '    check_packages(config.video_format)\n', ''),
    )),
    dict(file='runs/videos', catches='test_not_before_it_is_due', rows=(
        ('always due', 'time.monotonic() < self._last_s + self._period_s',
         'False'),
    )),
    dict(file='runs/videos', catches='test_it_ends_with_the_training', rows=(
        ('several at a time',
         'or self._process and self._process.poll() is None', 'or False'),
    )),
    dict(file='runs/videos', catches='test_errors_are_said', rows=(
        ('errors are not said', 'process.returncode and', 'False and'),
    )),
    dict(file='runs/videos',
         catches='test_a_video_whose_process_was_killed', rows=(
        ('a killed process is not said', 'process.returncode and',
         'process.returncode > 0 and'),
    )),
    dict(file='runs/videos',
         catches='test_nothing_is_said_of_a_video_that_was_ended', rows=(
        ('an ended process is an error', ' and not is_closed.is_set()', ''),
    )),
    dict(file='runs/videos', catches='test_the_program', rows=(
        ('not at the lowest priority', 'os.SCHED_IDLE, os',
         'os.SCHED_OTHER, os'),
    )),
)


if __name__ == '__main__':
  absltest.main()
