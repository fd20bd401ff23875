# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of whole games: those of test mode, and those while training."""

import contextlib
import dataclasses
import io
import json
import os
import resource
import threading
import types
from unittest import mock

from absl.testing import parameterized
import counting_agent
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.experience import structs
from scalable_agent.modes import test
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import earlier
from scalable_agent.runs import evaluation
from scalable_agent.runs import logdirs
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.scores import episodes_csv
from scalable_agent.scores import evaluations
from scalable_agent.settings import config as config_lib
import tensorflow as tf


class _RecordingPolicy(policies.AgentPolicy):
  """Keeps the states that it is given."""

  def step(self, last_action, env_output, state):
    self.states.append(np.asarray(state[0]))
    return super().step(last_action, env_output, state)


class EvaluationTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self.policy = _RecordingPolicy(counting_agent.CountingAgent())
    self.policy.states = []

  def _returns(self, num_envs, num_episodes, **settings):
    with environments.make_vec(
        ['counting'] * num_envs, list(range(num_envs)),
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      with contextlib.redirect_stdout(io.StringIO()) as self.out:
        games = evaluation.play(
            env, self.policy, num_episodes, config_lib.Config(**settings))
        self.cut = games.cut
        return games.all_returns

  def test_one_environment(self):
    # Episodes of 2, 3, 5, 2 steps; rewards count from 1.
    self.assertEqual(
        self._returns(1, 4), [1 + 2, 3 + 4 + 5, sum(range(6, 11)), 11 + 12])

  def test_every_environment_plays_its_share(self):
    self.assertEqual(self._returns(2, 5), [3, 12, 40, 3, 12])

  def test_a_long_game_is_cut_and_is_the_last_of_its_environment(self):
    # Of the third game, which has 5 steps, 4 steps count.
    self.assertEqual(self._returns(1, 9, max_episode_steps=4),
                     [1 + 2, 3 + 4 + 5, 6 + 7 + 8 + 9])
    self.assertEqual(
        'counting: a game was cut after 4 steps (--max_episode_steps). Its '
        'return so far counts. Its environment plays no further game.\n',
        self.out.getvalue())
    self.assertEqual(self.cut, [4])
    self.assertEqual(self._returns(1, 3, max_episode_steps=5), [3, 12, 40])
    self.assertEmpty(self.out.getvalue())
    self.assertEmpty(self.cut)
    self.assertEqual(self._returns(2, 3, max_episode_steps=1), [1, 1])
    self.assertEqual(self.cut, [1, 1])

  def test_says_how_far_games_are(self):
    self._returns(1, 2, progress_secs=1e-9)
    advice = '. If games never end, set a lower --max_episode_steps.\n'
    self.assertEqual(self.out.getvalue(), ''.join([
        'counting: 0 of 2 games are over, the longest running game has 1 step',
        '.\n',
        'counting: 1 of 2 games are over, the longest running game has 2 steps',
        '.\n',
        'counting: 1 of 2 games are over, the longest running game has 1 step',
        advice,
        'counting: 1 of 2 games are over, the longest running game has 2 steps',
        advice, 'counting: 2 of 2 games are over.\n']))

  def test_all_games_are_played_again_after_a_loss(self):
    with environments.make_vec(
        ['counting'] * 2, [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      step, outputs = env.step, []

      def lose(actions):
        if len(outputs) == 1:
          outputs.append(None)
          raise errors.EnvironmentLostError()
        outputs.append(step(actions))
        if len(outputs) == 1:  # A cut game, which does not count.
          outputs[0].info.episode_step[1] = 99
        return outputs[-1]

      with mock.patch.object(env, 'step', lose), \
          contextlib.redirect_stdout(io.StringIO()) as output:
        games = evaluation.play(
            env, self.policy, 2, config_lib.Config(max_episode_steps=9))
    self.assertEqual((games.returns, games.cut), ([[3], [3]], []))
    self.assertRegex(
        output.getvalue(), 'counting: a game was cut after 99 steps.*\n'
        'counting: all games are played again, since environments were lost.')

  def test_environments_that_are_always_lost_end_the_games(self):
    with environments.make_vec(
        ['counting'] * 2, [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      with mock.patch.object(env, 'step', side_effect=(
          errors.EnvironmentLostError())) as step, \
          contextlib.redirect_stdout(io.StringIO()) as output, \
          self.assertRaisesRegex(
              errors.EnvironmentProcessError, '^counting: environments were '
              'lost in each of 3 tries to play all games'):
        evaluation.play(
            env, self.policy, 2, config_lib.Config(max_environment_restarts=2))
    self.assertEqual(step.call_count, 3)
    self.assertEqual(output.getvalue().count('are played again'), 2)

  def test_state_is_carried(self):
    self._returns(1, 2)
    # The agent counts the steps of the episode; it resets on done itself.
    self.assertAllEqual(np.concatenate(self.policy.states), [0, 1, 2, 1, 2])


def _learner(num_env_frames=0):
  """A fake learner; its weight is the number of its frames."""
  learner = types.SimpleNamespace(num_env_frames=num_env_frames, num_updates=0)
  learner.weights = lambda: structs.Weights(
      learner.num_updates, [np.float32(learner.num_env_frames)])
  return learner


class EvaluatorTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    self.stop = threading.Event()
    self.agent = counting_agent.CountingAgent()

  def _evaluator(self, learner, num_envs=1, num_episodes=3, every_frames=100,
                 levels=None):
    env = environments.make_vec(
        ['counting'] * num_envs, list(range(num_envs)),
        environments.EnvironmentSettings(num_action_repeats=1))
    self.addCleanup(env.close)
    if levels:
      env.level_names = levels
    return evaluation.Evaluator(
        env, policies.AgentPolicy(self.agent), learner, config_lib.Config(
            logdir=self.logdir, eval_every_frames=every_frames,
            eval_num_episodes=num_episodes))

  def _run(self, evaluator, learner, all_frames):
    """Returns the frames at which there was an evaluation."""
    at = []
    for frames in all_frames:
      learner.num_updates += 1
      learner.num_env_frames = frames
      if evaluator.is_due:
        evaluator.evaluate(float(frames), self.stop)
        at.append(frames)
        self.assertEqual(float(self.agent.scale), frames)
        self.assertFalse(evaluator.is_due)
        self.assertTrue(evaluator.is_up_to_date)
    return at

  def test_up_to_date(self):
    learner = _learner()
    evaluator = self._evaluator(learner)
    self._run(evaluator, learner, [100, 101])
    self.assertFalse(evaluator.is_up_to_date)
    evaluator.evaluate(0.0, self.stop)
    self.assertTrue(evaluator.is_up_to_date)
    self.assertTrue(self._evaluator(learner).is_up_to_date)

  def test_best_weights_that_cannot_be_saved_are_said(self):
    learner = _learner()
    evaluator = self._evaluator(learner)
    evaluator._best = mock.Mock()
    evaluator._best.offer.side_effect = errors.SaveError('No space.')
    with contextlib.redirect_stdout(io.StringIO()) as output:
      self._run(evaluator, learner, [100])
    self.assertIn('No space. The weights of this evaluation, the best so far, '
                  'are not kept.', output.getvalue())
    self.assertNotIn('best so far:', output.getvalue())
    self.assertLen(evaluations.read(self.logdir), 1)

  def test_a_directory_of_another_run_stays_as_it_is(self):
    learner = _learner()
    evaluator = self._evaluator(learner)
    os.rename(
        self.logdir, f'{self.create_tempdir().full_path}/moved')
    os.mkdir(self.logdir)
    evaluations.start(self.logdir, 0)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      self._run(evaluator, learner, [100])
    self.assertEmpty(evaluations.read(self.logdir))
    self.assertRegex(
        output.getvalue(), f'^{self.logdir} was deleted, moved or .* The '
        'program continues; evaluations.csv will lack the evaluation at 100 '
        r'frames\.\n')

  def test_one_evaluation_for_each_crossing(self):
    learner = _learner()
    evaluator = self._evaluator(learner)
    self.assertEqual(
        self._run(evaluator, learner,
                  [1, 99, 100, 101, 199, 420, 450, 499, 500, 600, 601]),
        [100, 420, 500, 600])
    self.assertEqual(
        [tuple(e) for e in evaluations.read(self.logdir)],
        [(frames, updates, frames, (3, 12, 40)) for frames, updates
         in ((100, 3), (420, 6), (500, 9), (600, 10))])

  def test_next_part_repeats_what_came_after_the_checkpoint(self):
    learner = _learner()
    self._run(self._evaluator(learner), learner, [100, 200, 300, 400])
    learner = _learner(299)
    evaluator = self._evaluator(learner)
    self.assertLen(evaluations.read(self.logdir), 2)
    self.assertEqual(
        self._run(evaluator, learner, [299, 305, 399, 401]), [305, 401])
    self.assertEqual(
        [e.num_env_frames for e in evaluations.read(self.logdir)],
        [100, 200, 305, 401])

  def test_next_part_makes_up_for_what_was_stopped(self):
    learner = _learner()
    evaluator = self._evaluator(learner)
    self.assertEqual(self._run(evaluator, learner, [100]), [100])
    self.stop.set()
    learner.num_env_frames = 200
    self.assertIsNone(evaluator.evaluate(1.0, self.stop))
    self.assertTrue(evaluator.is_due)
    self.assertLen(evaluations.read(self.logdir), 1)
    self.stop.clear()
    learner = _learner(200)
    self.assertEqual(
        self._run(self._evaluator(learner), learner, [210, 220]), [210])

  def test_next_part_that_begins_at_an_evaluation(self):
    learner = _learner()
    self._run(self._evaluator(learner), learner, [100, 200])
    learner = _learner(200)
    self.assertEqual(
        self._run(self._evaluator(learner), learner, [200, 299, 300]), [300])

  def test_every_level_plays_the_same_number_of_games(self):
    learner = _learner()
    evaluator = self._evaluator(
        learner, num_envs=6, num_episodes=4, levels=('a', 'b', 'c') * 2)
    self.assertEqual(evaluator.evaluate(0.0, self.stop).returns,
                     (3, 12, 3, 12) * 3)
    # One environment of each level plays one game more.
    evaluator = self._evaluator(
        learner, num_envs=4, num_episodes=3, levels=('a', 'b') * 2)
    result = evaluator.evaluate(0.0, self.stop)
    self.assertEqual(result.returns, (3, 12, 3, 3, 12, 3))
    self.assertEqual(result.mean, 6)
    self.assertAlmostEqual(result.std, np.sqrt((4 * 9 + 2 * 36) / 6))

  def test_games_of_levels_are_not_mixed_up(self):
    evaluator = self._evaluator(_learner(), num_envs=4, num_episodes=2,
                                levels=('a', 'b', 'a', 'b'))
    with mock.patch.object(
        evaluation, 'play',
        return_value=evaluation.Games([[1.], [2.], [3.], [4.]], [])):
      self.assertEqual(
          evaluator.evaluate(0.0, self.stop).returns, (1, 3, 2, 4))

  def test_stop_ends_the_games(self):
    learner = _learner(100)
    evaluator = self._evaluator(learner, num_episodes=10**9)
    threading.Timer(0.5, self.stop.set).start()
    self.assertIsNone(evaluator.evaluate(0.0, self.stop))


class EnvironmentsTest(parameterized.TestCase):

  def _made(self, **settings):
    """Returns the arguments for `make_vec`, and notes how it restarts."""
    config = config_lib.Config(**settings)
    with mock.patch.object(environments, 'make_vec') as make_vec:
      setup.evaluation_environments(config)
    self.restarts = make_vec.call_args.kwargs['restarts']
    return make_vec.call_args.args

  @parameterized.parameters(
      (dict(num_actors=4), ['a', 'b'] * 2),
      (dict(num_actors=5), ['a', 'b'] * 2),
      (dict(num_actors=1), ['a']),  # Nothing plays b.
      (dict(num_actors=64, eval_every_frames=9, eval_num_episodes=3),
       ['a', 'b'] * 3),
      (dict(level_name='a, b,a', num_actors=3), ['a', 'b']))
  def test_levels(self, settings, expected):
    names, seeds, _ = self._made(**{'level_name': 'a,b', **settings})
    self.assertEqual(names, expected)
    self.assertLen(set(seeds), len(names))

  def test_whole_games_with_seeds_of_their_own(self):
    config = config_lib.Config(level_name='a', num_actors=9)
    _, seeds, made_for = self._made(level_name='a', num_actors=9)
    self.assertTrue(config.life_loss_ends_episode)
    self.assertFalse(made_for.life_loss_ends_episode)
    self.assertFalse(made_for.is_test)  # Held-out levels choose no weights.
    others = {config.derive_seed(role, i, part) for i in range(9)
              for role in ('environment', 'test') for part in range(3)}
    self.assertEmpty(others & set(seeds))
    self.assertTrue(self.restarts.same_seeds)


class FileTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir('a[b]*').full_path
    self.path = os.path.join(self.logdir, 'evaluations.csv')

  def _append(self, *all_frames):
    for frames in all_frames:
      evaluations.append(self.logdir, evaluations.Evaluation(
          frames, frames // 10, 0.25, (1.5, -0.1, 1e10)))

  def _frames(self):
    return [e.num_env_frames for e in evaluations.read(self.logdir)]

  def _text(self):
    with open(self.path) as f:
      return f.read()

  def test_text(self):
    self.assertEmpty(evaluations.start(self.logdir, 0))
    evaluations.append(self.logdir, evaluations.Evaluation(
        100, 7, 12.34, tuple(map(float, np.float32([0.5, -0.123, 2])))))
    self.assertEqual(
        self._text(),
        'num_env_frames,num_updates,train_time_s,mean,std,returns\n'
        f'100,7,12.3,{np.mean(np.float64(np.float32([.5, -.123, 2])))},'
        f'{np.std(np.float64(np.float32([.5, -.123, 2])))},0.5 -0.123 2.0\n')
    self.assertEqual(evaluations.read(self.logdir)[0].returns,
                     tuple(map(float, np.float32([0.5, -0.123, 2]))))

  def test_without_a_file(self):
    self.assertEmpty(self._frames())

  def test_every_cut_does_no_harm(self):
    evaluations.start(self.logdir, 0)
    self._append(100)
    whole = len(self._text())
    self._append(200)
    text = self._text()
    for end in range(whole, len(text)):
      with open(self.path, 'w') as f:
        f.write(text[:end])
      self.assertEqual(self._frames(), [100])
      self.assertLen(evaluations.start(self.logdir, 250), 1)
      self._append(300)
      self.assertEqual(self._frames(), [100, 300])

  @parameterized.parameters(
      'x\n', '1,2\n', '\0\0\n', '200,2,1,1,1,\n', '200,2,1,1,1,a b\n',
      '200,2,1,1,1,1,1\n')
  def test_damaged_line(self, line):
    evaluations.start(self.logdir, 0)
    self._append(100)
    with open(self.path, 'a') as f:
      f.write(line)
    self._append(300)
    self.assertEqual(self._frames(), [100, 300])

  def test_start_removes_what_is_later(self):
    evaluations.start(self.logdir, 0)
    self._append(100, 200, 300)
    self.assertLen(evaluations.start(self.logdir, 200), 2)
    self.assertEqual(self._text().count('\n'), 3)

  def test_read_leaves_out_what_was_repeated(self):
    evaluations.start(self.logdir, 0)
    self._append(100, 200, 300, 190, 210)  # As if `start` were never called.
    self.assertEqual(self._frames(), [100, 190, 210])

  def test_a_line_that_does_not_fit_on_the_disk(self):
    evaluations.start(self.logdir, 0)
    self._append(100)
    size = os.path.getsize(self.path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, hard))
    try:
      with contextlib.redirect_stdout(io.StringIO()) as output:
        self._append(200)
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    self.assertRegex(output.getvalue(), 'could not be written: File too large. '
                     'Training continues; the evaluation at 200 frames')
    self._append(300)
    self.assertEqual(self._frames(), [100, 300])

  def test_file_that_cannot_be_written(self):
    os.mkdir(self.path)
    with self.assertRaisesRegex(
        errors.ConfigError, 'evaluations.csv cannot be used'):
      evaluations.start(self.logdir, 0)


class _Enough(Exception):
  """Ends a training. No signal raises this error."""


def _test_rewards(logdir):
  """Returns (frames, mean) of all evaluations in the TensorBoard files."""
  return [
      (event.step, float(tf.make_ndarray(value.tensor)))
      for name in sorted(os.listdir(logdir)) if name.startswith('events.')
      for record in tf.data.TFRecordDataset(os.path.join(logdir, name))
      for event in [tf.compat.v1.Event.FromString(record.numpy())]
      for value in event.summary.value if value.tag == 'TestReward']


class TrainingTest(parameterized.TestCase):

  def _train(self, eval_num_episodes=4, **settings):
    """Trains; returns frames after each update, the config, what is printed."""
    config = config_lib.Config(
        level_name='catch', logdir=self.logdir, num_actors=3, xla='none',
        hidden_sizes='16', eval_num_episodes=eval_num_episodes,
        num_action_repeats=1, **settings)
    frames = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
      training.train(config, [
          lambda update: frames.append(update.learner.num_env_frames)])
    return frames, config, printed.getvalue()

  def _check(self, frames, every_frames, done, printed):
    """`done` are the evaluations of a part that had updates at `frames`."""
    # The first update after each multiple, and the last one.
    expected = [now for before, now in zip([0, *frames], frames)
                if now // every_frames > before // every_frames]
    if frames[-1] not in expected:
      expected.append(frames[-1])
    self.assertEqual([e.num_env_frames for e in done], expected)
    self.assertEqual(
        printed.count('Evaluation at '), len(expected), printed)

  @pytest.mark.slow
  def test_short_run(self):
    # The end is due, too.
    self._check_run(algorithm='impala', unroll_length=10, batch_size=3,
                    use_lstm=False)

  @pytest.mark.storm
  def test_short_run_with_replay(self):
    self._check_run(algorithm='ddqn', min_replay_steps=60,
                    updates_per_step=.25, batch_size=8)

  def _check_run(self, **settings):
    self.logdir = self.create_tempdir('a[b]*').full_path
    every_frames = 150
    settings['eval_every_frames'] = every_frames
    first, _, printed = self._train(total_environment_frames=430, **settings)
    done = evaluations.read(self.logdir)
    self._check(first, every_frames, done, printed)
    self.assertTrue(all(set(e.returns) <= {-1, 1} and len(e.returns) == 4
                        for e in done))
    self.assertEqual(_test_rewards(self.logdir),
                     [(e.num_env_frames, e.mean) for e in done])
    # The next part goes on.
    second, config, printed = self._train(
        total_environment_frames=820, **settings)
    both = evaluations.read(self.logdir)
    self.assertEqual(both[:len(done)], done)
    self._check([first[-1], *second], every_frames,
                both[len(done) - 1:], f'Evaluation at {printed}')
    # The first one of the highest means is kept, and can be tested.
    best = max(both, key=lambda e: e.mean)
    logdir = os.path.join(self.logdir, 'best')
    trained_with = config_lib.trained_with(logdir)
    self.assertEqual((trained_with.algorithm, trained_with.logdir),
                     (settings['algorithm'], logdir))
    with contextlib.redirect_stdout(io.StringIO()) as out:
      test.test(config_lib.Config.from_values({
          **vars(config), 'mode': 'test', 'logdir': logdir}))
    self.assertIn(f'at {best.num_env_frames:,} frames', out.getvalue())
    self.assertEqual('**Settings that changed in the training: '
                     'total_environment_frames ' in out.getvalue(),
                     best not in done)
    with open(os.path.join(logdir, 'means.json')) as f:
      self.assertIn(best.mean, json.load(f).values())
    # Nothing is left to do.
    self._train(total_environment_frames=820, **settings)
    self.assertEqual(evaluations.read(self.logdir), both)

  @parameterized.parameters(
      ('impala', None, False), ('impala', True, True), ('ddqn', None, True),
      ('sac', False, False))
  def test_greedy(self, algorithm, test_greedy, expected):
    self.logdir = self.create_tempdir().full_path
    with mock.patch.object(policies, 'AgentPolicy',
                           wraps=policies.AgentPolicy) as policy, \
        mock.patch.object(evaluation, 'Evaluator', side_effect=_Enough):
      with self.assertRaises(_Enough):
        self._train(algorithm=algorithm, test_greedy=test_greedy,
                    eval_every_frames=1)
    self.assertEqual(
        [call.kwargs['greedy'] for call in policy.call_args_list], [expected])

  def test_the_best_of_a_training_without_a_checkpoint(self):
    self.logdir = self.create_tempdir().full_path
    for number in 1, 2:
      for suffix in 'index', 'data-00000-of-00001':
        self.create_tempfile(
            os.path.join(self.logdir, 'best', f'ckpt-{number}.{suffix}'))
      with mock.patch.object(evaluation, 'Evaluator', side_effect=_Enough), \
          mock.patch.object(earlier, 'print', create=True) as say, \
          self.assertRaises(_Enough):
        self._train(eval_every_frames=1)
      aside = os.path.join(self.logdir, f'earlier-{number}')
      self.assertIn(f'Moved to {aside}: best, of', str(say.call_args_list))
      self.assertIn(f'ckpt-{number}.index', os.listdir(f'{aside}/best'))
      self.assertNoCommonElements(
          ['ckpt-1.index', 'ckpt-2.index'],
          os.listdir(os.path.join(self.logdir, 'best')))

  @pytest.mark.slow
  def test_best_weights_that_are_trained_further_stay(self):
    parent = self.logdir = self.create_tempdir().full_path
    settings = dict(unroll_length=10, use_lstm=False)
    evaluating = dict(eval_every_frames=60, **settings)
    self._train(total_environment_frames=60, **evaluating)
    done = evaluations.read(parent)
    best = self.logdir = os.path.join(parent, 'best')
    self._train(
        total_environment_frames=120, eval_num_episodes=10, **settings)
    trained = checkpoint_files.names(best)
    self.assertLen(trained, 2)

    self.logdir = parent
    unfinished = self.create_tempfile(
        os.path.join(best, 'unfinished.index')).full_path
    with logdirs.locked(best), self.assertRaisesRegex(
        errors.LockedError, f'--logdir={best} is in use by another run'):
      self._train(total_environment_frames=120, **evaluating)
    self.assertTrue(os.path.exists(unfinished))
    _, _, printed = self._train(total_environment_frames=120, **evaluating)
    aside = os.path.join(parent, 'earlier-1')
    self.assertIn(
        f'Moved to {aside}: best, which was trained further.\n', printed)
    self.assertEqual(checkpoint_files.names(f'{aside}/best'), trained)
    self.assertLen(checkpoint_files.names(best), 1)
    self.assertEqual(evaluations.read(parent)[:len(done)], done)
    # The best weights of the run itself stay.
    unfinished = self.create_tempfile(
        os.path.join(best, 'unfinished.index')).full_path

    def make_evaluator(*args):
      del args
      with logdirs.locked(best):
        raise _Enough

    with mock.patch.object(evaluation, 'Evaluator', make_evaluator), \
        self.assertRaises(errors.LockedError):
      self._train(total_environment_frames=180, **evaluating)
    self.assertEqual(os.listdir(aside), ['best'])
    self.assertFalse(os.path.exists(unfinished))

  @pytest.mark.slow
  def test_evaluations_of_fewer_games_are_not_continued(self):
    self.logdir = self.create_tempdir().full_path
    common = dict(unroll_length=10, use_lstm=False, eval_every_frames=60)
    with mock.patch.object(
        evaluation, 'play', return_value=evaluation.Games([[9.]], [])):
      self._train(total_environment_frames=60, eval_num_episodes=1, **common)
    self.assertEqual(checkpoint_files.best_mean(self.logdir), 9)  # Lucky.
    # A part without evaluations does not hide the difference.
    self._train(total_environment_frames=90, eval_num_episodes=10,
                **{**common, 'eval_every_frames': 0})
    _, _, printed = self._train(
        total_environment_frames=120, eval_num_episodes=2, **common)
    aside = os.path.join(self.logdir, 'earlier-1')
    self.assertIn(
        f'Moved to {aside}: evaluations.csv, best, evaluated with '
        '--eval_num_episodes=1; now: --eval_num_episodes=2.\n', printed)
    [one] = evaluations.read(aside)
    self.assertEqual(one.returns, (9,))
    self.assertEqual(checkpoint_files.best_mean(aside), 9)
    [two] = evaluations.read(self.logdir)
    self.assertLen(two.returns, 2)
    self.assertEqual(checkpoint_files.best_mean(self.logdir), two.mean)

  @parameterized.parameters(
      ('eval_num_episodes', 11), ('test_greedy', True),
      ('max_episode_steps', 99), ('eval_every_frames', 7), ('num_actors', 2))
  def test_evaluations_of_other_games_are_not_continued(self, name, value):
    logdir = self.create_tempdir().full_path
    config = config_lib.Config(
        level_name='catch', logdir=logdir, eval_every_frames=6, num_actors=1)
    best = os.path.join(logdir, 'best')
    os.mkdir(best)
    dataclasses.replace(config, logdir=best).save()
    changed = dataclasses.replace(config, **{name: value})
    earlier.put_evaluations_aside(changed)  # Nothing was evaluated yet.
    self.create_tempfile(os.path.join(best, 'ckpt-1.index'))
    self.create_tempfile(os.path.join(logdir, 'ckpt-1.index'))
    earlier.put_evaluations_aside(config)
    self.assertCountEqual(os.listdir(logdir), ['best', 'ckpt-1.index'])
    earlier.put_evaluations_aside(changed)
    self.assertCountEqual(os.listdir(logdir), ['ckpt-1.index', (
        'best' if name in ('eval_every_frames', 'num_actors') else
        'earlier-1')])

  def test_damaged_settings_of_the_best_weights(self):
    logdir = self.create_tempdir().full_path
    self.create_tempfile(os.path.join(logdir, 'best', 'settings.json'), '[')
    earlier.put_evaluations_aside(config_lib.Config(
        level_name='catch', logdir=logdir, eval_every_frames=6))
    self.assertEqual(os.listdir(logdir), ['best'])

  def test_no_evaluations(self):
    self.logdir = self.create_tempdir().full_path
    self._train(total_environment_frames=60, unroll_length=10, use_lstm=False,
                eval_num_episodes=10)
    self.assertNoCommonElements(
        ['best', 'evaluations.csv'], os.listdir(self.logdir))

  def test_a_part_without_evaluations_removes_lost_ones(self):
    self.logdir = self.create_tempdir().full_path
    settings = dict(unroll_length=10, use_lstm=False)
    self._train(
        total_environment_frames=60, eval_every_frames=60, **settings)
    done = evaluations.read(self.logdir)
    evaluations.append(  # The part that was killed before its checkpoint.
        self.logdir, evaluations.Evaluation(90, 9, 9., (5., 5.)))
    self._train(
        total_environment_frames=120, eval_num_episodes=10, **settings)
    self.assertEqual(evaluations.read(self.logdir), done)

  def test_what_a_checkpoint_counts_is_on_the_disk_before(self):
    self.logdir = self.create_tempdir().full_path
    synced, on_disk = {}, []
    fsync, replace = os.fsync, os.replace

    def note(descriptor):
      fsync(descriptor)
      stat = os.fstat(descriptor)
      synced[stat.st_ino] = stat.st_size

    def check(source, target):
      if target == os.path.join(self.logdir, 'checkpoint'):
        stats = {name: os.stat(os.path.join(self.logdir, name))
                 for name in os.listdir(self.logdir)
                 if name.startswith(('episodes.', 'evaluations.', 'events.'))}
        self.assertLen(stats, 3)
        on_disk.append({
            name: (stat.st_size, synced.get(stat.st_ino))
            for name, stat in stats.items()})
      replace(source, target)

    with mock.patch.object(os, 'fsync', note), \
        mock.patch.object(os, 'replace', check):
      self._train(total_environment_frames=120, unroll_length=10,
                  use_lstm=False, eval_every_frames=60)
    for sizes in on_disk:
      for name, (written, saved) in sizes.items():
        self.assertEqual(written, saved, name)
    # Nothing that the last checkpoint counts was written later.
    for name in 'episodes.csv', 'evaluations.csv':
      size = os.path.getsize(os.path.join(self.logdir, name))
      self.assertEqual(on_disk[-1][name], (size, size))
    self.assertNotEmpty(episodes_csv.read(self.logdir))

  def test_results_of_a_training_without_a_checkpoint_do_not_count(self):
    self.logdir = self.create_tempdir().full_path
    evaluations.start(self.logdir, 0)
    evaluations.append(
        self.logdir, evaluations.Evaluation(1000, 10, 9., (5., 5.)))
    of_tests = [f'scores-1000-{number}.{end}' for number in (1, 12)
                for end in ('json', 'csv', 'md')]
    of_tests.append('settings-90.json')  # Of a part that went on.
    kept = ['scores-2_agents-1.json', 'scores-mine.md']
    for name in [os.path.join('best', 'ckpt-1.index'), *of_tests, *kept]:
      self.create_tempfile(os.path.join(self.logdir, name))
    self._train(total_environment_frames=60, unroll_length=10, use_lstm=False,
                eval_num_episodes=10)
    moved = ['best', 'evaluations.csv', *of_tests]
    self.assertCountEqual(
        os.listdir(os.path.join(self.logdir, 'earlier-1')), moved)
    self.assertContainsSubset(kept, os.listdir(self.logdir))
    self.assertNoCommonElements(moved, os.listdir(self.logdir))

  @parameterized.parameters((KeyboardInterrupt(), False), (None, True))
  def test_a_signal_while_games_are_played(self, error, is_stopped):
    self.logdir = self.create_tempdir().full_path

    def play(env, policy, num_episodes, config, stopped):
      del env, policy, num_episodes, config
      if is_stopped:
        stopped.__self__.set()
      raise error or errors.EnvironmentProcessError('ended with the signal')

    with mock.patch.object(evaluation, 'play', play):
      settings = dict(total_environment_frames=10**6, unroll_length=10,
                      use_lstm=False, eval_every_frames=50)
      if is_stopped:
        self._train(**settings)
      else:
        with self.assertRaises(KeyboardInterrupt):
          self._train(**settings)
    # There is a checkpoint in any case.
    self.assertGreater(checkpoint_files.latest_number(self.logdir), 0)

  def test_a_signal_during_the_last_games(self):
    self.logdir = self.create_tempdir().full_path
    settings = dict(total_environment_frames=60, unroll_length=10,
                    use_lstm=False, eval_every_frames=50)

    def play(env, policy, num_episodes, config, stopped):
      del env, policy, num_episodes, config
      stopped.__self__.set()
      raise errors.EnvironmentProcessError('ended with the signal')

    with mock.patch.object(evaluation, 'play', play):
      self._train(**settings)
    self.assertEmpty(evaluations.read(self.logdir))
    # The next call makes the evaluation that is missing, once.
    _, _, printed = self._train(**settings)
    [done] = evaluations.read(self.logdir)
    self.assertRegex(printed, 'This run is finished[^$]*Evaluation at 60 frames'
                     '.*the best so far[^$]*The last evaluation is the best')
    self.assertEqual(_test_rewards(self.logdir), [(60, done.mean)])
    self.assertEqual(checkpoint_files.best_mean(self.logdir), done.mean)
    _, _, printed = self._train(**settings)
    self.assertNotIn('Evaluation at', printed)


# See `mutations.py`.
MUTATIONS = (
    dict(file='modes/test', catches='test_short_run', rows=(
        ('changes within a training are not said', ', changed=changed', ''),
    )),
    dict(file='runs/metrics',
         catches='test_what_a_checkpoint_counts_is_on_the_disk_before', rows=(
        ('episodes are not on the disk',
         '      os.fsync(self._file.fileno())\n', ''),
        ('events are not on the disk',
         'files.sync(path)', 'pass'),
    )),
    dict(file='runs/log',
         catches='test_what_a_checkpoint_counts_is_on_the_disk_before', rows=(
        ('a checkpoint before its episodes', 'self._files.writer.sync()',
         'self._files.writer.flush()'),
    )),
    dict(file='scores/evaluations',
         catches='test_what_a_checkpoint_counts_is_on_the_disk_before', rows=(
        ('evaluations are not on the disk',
         '        os.fsync(f.fileno())\n', ''),
    )),
    dict(file='runs/setup',
         catches='test_a_part_without_evaluations_removes_lost_ones',
         rows=(
        ('evaluations of lost weights stay',
         'evaluations.start(config.logdir, learner.num_env_frames)', 'pass'),
    )),
    dict(file='runs/setup',
         catches='test_whole_games_with_seeds_of_their_own', rows=(
        ('other games after a loss', 'same_seeds=True', 'same_seeds=False'),
    )),
    dict(file='runs/setup',
         catches='test_the_best_of_a_training_without_a_checkpoint', rows=(
        ('the best of an earlier training counts',
         'elif collectives.rank == 0:\n    earlier.',
         'elif False:\n    earlier.'),
    )),
    dict(file='runs/setup',
         catches='test_best_weights_that_are_trained_further_stay', rows=(
        ('a training in best loses its checkpoints',
         '        earlier.put_evaluations_aside(config)\n', '        pass\n'),
        ('best has no lock', 'if config.ray_address\n', 'if True\n'),
        ('what a killed evaluation has left stays', 'logdirs.remove_leftovers(',
         'str.format('),
    )),
    dict(file='runs/earlier',
         catches='test_results_of_a_training_without_a_checkpoint_do_not_count',
         rows=(
        ('tests of an earlier training count', '[*found, ', '['),
        ('settings of an earlier training count',
         ' or _OF_LATER_PART.fullmatch(name)', ''),
        ('evaluations of an earlier training count',
         "['evaluations.csv'] if evaluations.read(logdir) else []", '[]'),
    )),
    dict(file='runs/earlier',
         catches='test_evaluations_of_other_games_are_not_continued', rows=(
        ('a lucky game stays the best', 'if before and changed:', 'if False:'),
        ('a lucky game stays the best of more games',
         "(*OF_GAMES, 'eval_num_episodes')", 'OF_GAMES'),
    )),
    dict(file='runs/evaluation',
         catches='EvaluatorTest.test_a_directory_of_another_run_stays_as_it_is',
         rows=(
        ('evaluations of a run in the directory of another run',
         '      self._directory.check()\n', ''),
        ('a later evaluation is promised',
         "evaluations.csv will lack the '", "and saves the next time'"),
    )),
    dict(file='scores/evaluations', catches='test_text', rows=(
        ('texts are read as other numbers', 'float(np.float32(text))',
         'float(text)'),
    )),
    dict(file='runs/evaluation',
         catches='test_all_games_are_played_again_after_a_loss', rows=(
        ('a loss of environments ends the games',
         'except errors.EnvironmentLostError:', 'except ZeroDivisionError:'),
    )),
    dict(file='runs/evaluation',
         catches='test_environments_that_are_always_lost_end_the_games', rows=(
        ('games of lost environments never end',
         'if num_lost > config.max_environment_restarts:',
         'if num_lost > 99:'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
