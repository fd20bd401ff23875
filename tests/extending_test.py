# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of what users add: networks, hooks, and the example of both."""

import collections
import contextlib
import os
import pathlib
import sys
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import fake_torsos
import gymnasium
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.environments import gymnasium_env
from scalable_agent.experience import structs
from scalable_agent.modes import loading
from scalable_agent.networks import factory
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parent.parent
if str(_ROOT) not in sys.path:
  sys.path.insert(0, str(_ROOT))
from examples import auxiliary
from examples import maze
from examples import vector_simulator

_BOARD = structs.ArraySpec((10, 5), np.dtype(np.float32))
_THREE = structs.ActionSpec(num_values=(3,))


class TorsoTest(parameterized.TestCase):

  def test_features_are_those_of_the_torso(self):
    agent = factory.make_agent('fake_torsos:flat', _BOARD, _THREE,
                              use_lstm=False, use_last_action_reward=False)
    observations = np.random.default_rng(0).normal(
        size=[4, 10, 5]).astype(np.float32)
    kernel, bias = agent.torso.get_weights()
    expected = np.tanh(observations.reshape(4, 50) @ kernel + bias)
    np.testing.assert_allclose(
        agent._features(None, None, observations), expected, atol=1e-5)
    self.assertContainsSubset(
        {id(v) for v in agent.torso.variables},
        {id(v) for v in agent.trainable_variables})

  def test_dictionaries(self):
    spec = {'a': structs.ArraySpec((2,), np.dtype(np.float32)),
            'b': structs.ArraySpec((2, 3, 1), np.dtype(np.uint8))}
    agent = factory.make_agent('fake_torsos:of_parts', spec, _THREE)
    parts = {'a': np.array([[1., 2.]], np.float32),
             'b': np.full([1, 2, 3, 1], 5, np.uint8)}
    np.testing.assert_allclose(agent.torso(parts), [[3., 30.]])

  def test_critics_see_features_and_actions(self):
    actions = structs.ActionSpec(size=2)
    critic = factory.make_critic(
        'fake_torsos:flat', _BOARD, actions, hidden_sizes=(7,),
        activation='relu', seed=0)
    boards = np.random.default_rng(0).normal(
        size=[4, 10, 5]).astype(np.float32)
    action = np.random.default_rng(1).uniform(
        -1, 1, [4, 2]).astype(np.float32)
    (kernel, bias), *rest = zip(critic.get_weights()[::2],
                                critic.get_weights()[1::2])
    x = np.concatenate(
        [np.tanh(boards.reshape(4, 50) @ kernel + bias), action], axis=1)
    for kernel, bias in rest[:-1]:
      x = np.maximum(x @ kernel + bias, 0)
    kernel, bias = rest[-1]
    np.testing.assert_allclose(
        critic(boards, action), (x @ kernel + bias)[:, 0], atol=1e-5)

  @parameterized.parameters(
      dict(algorithm='impala', batch_size=4, micro_batch_size=2,
           unroll_length=5),
      dict(algorithm='sac', min_replay_steps=8, batch_size=4))
  @pytest.mark.slow
  def test_a_torso_with_more_than_weights(self, **settings):
    config = config_lib.Config(
        level_name='catch', logdir=self.create_tempdir().full_path,
        agent='fake_torsos:with_state', num_actors=2,
        total_environment_frames=40, **settings)
    training.train(config)
    spec = checkpointing.saved_spec(config.logdir)
    learner = setup.make_learner(config, spec)
    counts = [v for kind in learner.state.values() for v in kind
              if getattr(v, 'path', v.name).endswith('/count')]
    before = [float(v) for v in counts]
    checkpointing.Checkpointer(
        config.logdir, learner, algorithms.describe(config, spec),
        level='catch').restore()
    # The agent's own count, and those of online and target critics.
    self.assertLen(counts, 5 if config.is_off_policy else 1)
    for count, old in zip(counts, before):
      self.assertGreater(float(count), old)

  def _trained(self, network, algorithm, hooks=()):
    """Returns the agent of a short training, from the checkpoint."""
    settings = (dict(min_replay_steps=8, batch_size=4) if algorithm == 'sac'
                else dict(batch_size=2, unroll_length=5, learning_rate=.01))
    config = config_lib.Config(
        level_name='catch', logdir=self.create_tempdir().full_path,
        agent=network, algorithm=algorithm, num_actors=2, xla='none',
        total_environment_frames=60, **settings)
    training.train(config, hooks)
    return loading.load(config.logdir).agent

  @parameterized.parameters('impala', 'sac')
  @pytest.mark.slow
  def test_a_frozen_network_learns_nothing(self, algorithm):
    agent = self._trained('fake_torsos:frozen', algorithm)
    self.assertEmpty(agent.torso.trainable_variables)
    for weights in agent.torso.get_weights():
      np.testing.assert_array_equal(weights, np.full_like(weights, .1))

  @pytest.mark.slow
  def test_layers_in_lists_and_dictionaries_learn_and_are_saved(self):
    seen = []
    agent = self._trained('fake_torsos:in_list', 'impala', [
        lambda update: seen.append(
            update.learner.agent.torso.get_weights())])
    self.assertLen(agent.torso.trainable_variables, 2)
    self.assertGreater(np.abs(seen[-1][0] - seen[0][0]).max(), 0)
    for saved, last in zip(agent.torso.get_weights(), seen[-1], strict=True):
      np.testing.assert_array_equal(saved, last)

  @parameterized.parameters(
      ('with_dropout', 'own.*, a Own'),
      ('with_recurrent_dropout', '.*, a GRU'),
      ('with_spectral_norm', '.*, a SpectralNormalization'),
      ('with_batch_norm', 'batch_normalization.*, a BatchNormalization'))
  def test_layers_that_cannot_be_used(self, name, message):
    with self.assertRaisesRegex(
        errors.ConfigError,
        f'^The torso of fake_torsos:{name} has {message}, which cannot learn'):
      factory.make_agent(f'fake_torsos:{name}', _BOARD, _THREE)

  def test_random_changes_of_pictures_are_refused(self):
    with self.assertRaisesRegex(
        errors.ConfigError, ', a RandomCrop, which changes observations at '
        'random: remove the layer.$'):
      factory.make_agent('fake_torsos:with_crops', _BOARD, _THREE)

  @parameterized.parameters('with_regularizer', 'with_activity_regularizer')
  def test_losses_that_are_not_learned(self, name):
    with self.assertRaisesRegex(
        errors.ConfigError, f'^The torso of fake_torsos:{name} has losses, .*'
        'in a term of --addon.$'):
      factory.make_agent(f'fake_torsos:{name}', _BOARD, _THREE)

  @parameterized.parameters('with_plain_variable', 'with_plain_numbers')
  def test_variables_that_keras_does_not_know(self, name):
    with self.assertRaisesRegex(
        errors.ConfigError, f'^The torso of fake_torsos:{name} uses a '
        r'tf.Variable of the shape \[50\] that Keras does not know'):
      factory.make_agent(f'fake_torsos:{name}', _BOARD, _THREE)

  @parameterized.parameters(
      ('with_condition', 'OperatorNotAllowedInGraphError: Exception '
       'encountered when calling _Conditional.call.*Python `bool`'),
      ('of_fixed_rows', 'TypeError: .*_OfFixedRows.call.*None'))
  def test_layers_that_are_no_graphs_of_any_size(self, name, message):
    with self.assertRaisesRegex(
        errors.UserCodeError,
        f'^fake_torsos:{name} of --agent raised {message}') as caught:
      factory.make_agent(f'fake_torsos:{name}', _BOARD, _THREE)
    self.assertNotRegex(str(caught.exception), '\n|\x1b')
    self.assertIn('fake_torsos.py', caught.exception.frames)

  def test_attention_can_be_used(self):
    factory.make_agent('fake_torsos:with_attention', _BOARD, _THREE)

  @pytest.mark.slow
  def test_a_run_goes_on(self):
    logdir = self.create_tempdir().full_path
    config = dict(
        level_name='catch', logdir=logdir, agent='fake_torsos:flat',
        algorithm='sac', hidden_sizes='8', min_replay_steps=8, num_actors=2,
        batch_size=4)
    for frames in 40, 80:
      training.train(config_lib.Config(
          total_environment_frames=frames, **config))
    agent = loading.load(logdir)
    self.assertEqual(agent.config.agent, 'fake_torsos:flat')
    self.assertGreaterEqual(agent.num_env_frames, 80)
    with self.assertRaisesRegex(errors.CheckpointError, 'of another agent'):
      training.train(config_lib.Config(**{
          **config, 'agent': 'mlp', 'total_environment_frames': 120}))


@pytest.mark.slow
class HookTest(absltest.TestCase):

  def _train(self, hook):
    training.train(config_lib.Config(
        level_name='catch', logdir=self.logdir, agent='mlp', xla='none',
        num_actors=2, unroll_length=5, batch_size=4, hook=hook,
        save_summaries_secs=1e-3, total_environment_frames=200))

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path
    fake_torsos.HOOKED.clear()

  def test_it_gets_what_tensorboard_gets(self):
    self._train('fake_torsos:hook')
    frames, values = zip(*fake_torsos.HOOKED)
    self.assertGreater(len(frames), 1)
    self.assertEqual(list(frames), sorted(set(frames)))
    self.assertEqual(frames[-1], 200)
    for name in ('total_loss', 'mean_return', 'policy_lag',
                 'longest_policy_lag', 'time/learner/learn'):
      self.assertIsInstance(values[-1][name], float, name)

  def test_an_error_ends_the_run_with_a_checkpoint(self):
    with self.assertRaisesRegex(
        errors.UserCodeError,
        "^fake_torsos:raising_hook of --hook raised KeyError: 'at [1-9]"
    ) as caught:
      self._train('fake_torsos:raising_hook')
    self.assertIn('in raising_hook', caught.exception.frames)
    self.assertNotIn('log.py', caught.exception.frames)
    self.assertTrue(os.path.exists(os.path.join(self.logdir, 'checkpoint')))


def _shortest_ways():
  """Returns how many steps each pair of places needs, by player and goal."""
  env = maze.Maze()
  ways = {}
  for goal in env._free:
    steps = {goal: 0}
    queue = collections.deque([goal])
    while queue:
      place = queue.popleft()
      for move in maze._MOVES:
        other = tuple(np.add(place, move).tolist())
        if other in env._free and other not in steps:
          steps[other] = steps[place] + 1
          queue.append(other)
    ways.update({(place, goal): n for place, n in steps.items() if n})
  return ways


class MazeTest(absltest.TestCase):

  def test_every_goal_can_be_reached(self):
    self.assertLen(_shortest_ways(), 21 * 20)
    self.assertEqual(_shortest_ways()[(0, 0), (0, 4)], 10)  # Around the wall.

  def test_rules(self):
    env = maze.Maze()
    board, _ = env.reset(seed=0)
    self.assertEqual(board.sum(), 6)
    env.player, env.goal = (3, 1), (3, 3)
    self.assertEqual(env.step(3)[1:4], (-.05, False, False))
    board, reward, is_over, _, _ = env.step(3)
    self.assertEqual((reward, is_over), (.95, True))
    self.assertEqual(board[3, 3].tolist(), [1, 1, 0])
    env.player = (2, 1)
    env.step(3)  # The wall.
    self.assertEqual(env.player, (2, 1))

  def test_optimum(self):
    # What the documentation names.
    self.assertAlmostEqual(
        1 - .05 * np.mean(list(_shortest_ways().values())), 0.7981, places=4)

  @pytest.mark.storm
  def test_it_is_solved(self):
    logdir = self.create_tempdir().full_path
    from scalable_agent import experiment
    training.train(experiment.parse([
        '--recipe=catch', f'--logdir={logdir}',
        '--level_name=examples.maze:Maze-v0',
        '--agent=examples.maze_torso:make',
        '--hook=examples.maze_torso:print_return']))
    agent = loading.load(logdir)
    env = maze.Maze()
    num_shortest = 0
    ways = _shortest_ways()
    for (player, goal), num_steps in ways.items():
      env.reset()
      env.player, env.goal = player, goal
      state = agent.initial_state(1)
      for _ in range(num_steps):
        action, state = agent.step(env._board()[None], state, greedy=True)
        is_over = env.step(action[0])[2]
      num_shortest += is_over
    self.assertGreaterEqual(num_shortest / len(ways), .98)


class AuxiliaryTest(tf.test.TestCase):
  """Tests of the example of a network with a head for an addon."""

  @pytest.mark.slow
  def test_the_head_learns_and_is_saved(self):
    config = config_lib.Config.from_recipe(
        'catch', logdir=self.create_tempdir().full_path,
        agent='examples.auxiliary:make', total_environment_frames=800,
        addon='examples.auxiliary:reward_loss')
    board = np.eye(10, 5, dtype=np.float32)[np.newaxis]
    found = []
    training.train(config, [lambda update: found.append(
        update.learner.agent.torso.rewards(board))])
    self.assertGreater(np.abs(found[-1] - found[0]).min(), 0)
    self.assertAllClose(
        loading.load(config.logdir).agent.torso.rewards(board), found[-1])

  @pytest.mark.slow
  def test_public_names_of_the_agent(self):
    def own_entropy(agent, data):  # As in docs/new_algorithm.md.
      outputs, _ = agent.unroll(
          data.steps.agent_outputs.action, data.steps.env_outputs,
          data.start.agent_state)
      distribution = agent.head.distribution(outputs.policy[:-1])
      return tf.reduce_mean(distribution.entropy())

    def difference(agent, data):
      observations = data.steps.env_outputs.observation[0]
      of_torso = agent.torso(agent.observation_normaliser(observations))
      return tf.reduce_max(tf.abs(
          agent.params(observations) - agent._params(of_torso)))

    seen = []
    training.train(
        config_lib.Config.from_recipe(
            'catch', logdir=self.create_tempdir().full_path,
            normalise_observations='auto', total_environment_frames=800),
        [lambda update: seen.append(update.scalars)],
        {'own_entropy': own_entropy, 'difference': difference})
    for scalars in seen[1:]:  # The first update only sets statistics.
      self.assertAllClose(scalars['own_entropy'], scalars['entropy'])
      self.assertAllClose(scalars['difference'], 0.)

  def test_rewards_belong_to_the_action_before(self):
    predicted = np.random.default_rng(0).normal(size=[3, 2, 3])
    agent = types.SimpleNamespace(torso=types.SimpleNamespace(
        rewards=lambda x: tf.constant(
            predicted[tf.reshape(x, [-1, 2])[:, 0],
                      tf.reshape(x, [-1, 2])[:, 1]], tf.float32)))
    steps = np.stack(np.meshgrid(range(3), range(2), indexing='ij'), -1)
    actions = np.array([[0, 1], [2, 1], [0, 2]])
    rewards = np.array([[9, 9], [1, 2], [3, 4]], np.float32)
    data = types.SimpleNamespace(steps=types.SimpleNamespace(
        env_outputs=types.SimpleNamespace(
            observation=tf.constant(steps), reward=tf.constant(rewards)),
        agent_outputs=types.SimpleNamespace(action=tf.constant(actions))))
    expected = np.mean([
        (predicted[t, b, actions[t + 1, b]] - rewards[t + 1, b])**2
        for t in range(2) for b in range(2)])
    self.assertAllClose(auxiliary.reward_loss(agent, data), expected)


class VectorTest(absltest.TestCase):
  """Tests of the example of a simulator of many environments."""

  def test_each_start_repeats_the_games(self):
    vector = vector_simulator.Vector(['my_simulator'] * 2, (), [7, 8], None, 0)
    self.addCleanup(vector.close)
    expected, _ = gymnasium.make_vec(
        'CartPole-v1', 2, vectorization_mode='vector_entry_point').reset(seed=7)
    for _ in range(2):
      np.testing.assert_array_equal(vector.initial(), expected)

  @pytest.mark.slow
  def test_a_family_of_the_caller_trains_evaluates_and_plays(self):
    with mock.patch.object(environments, 'FAMILIES', environments.FAMILIES):
      vector_simulator.register()
      config = config_lib.Config.from_recipe(
          'cartpole', level_name='my_simulator', num_actors=8,
          logdir=self.create_tempdir().full_path, environments_per_process=1,
          total_environment_frames=640, eval_every_frames=640,
          eval_num_episodes=2)
      with mock.patch.object(
          gymnasium_env, 'GymnasiumVector', side_effect=AssertionError):
        training.train(config)
        agent = loading.load(config.logdir)
        returns = agent.play(num_episodes=2)
    self.assertEqual(agent.num_env_frames, 640)
    self.assertGreater(min(returns), 7)
    with open(os.path.join(config.logdir, 'evaluations.csv')) as f:
      self.assertLen(f.readlines(), 2)


class Pruned(Exception):
  """In place of Optuna's `TrialPruned`."""


class SearchTest(parameterized.TestCase):
  """Tests of the example of a search with Optuna, with a stub."""

  def _example(self):
    fake = types.SimpleNamespace(TrialPruned=Pruned)
    with mock.patch.dict(sys.modules, optuna=fake):
      from examples import optuna_search
    return optuna_search

  @parameterized.parameters((False, 120), (True, 80))
  @pytest.mark.slow
  def test_a_trial(self, is_bad, num_env_frames):
    out = self.create_tempdir().full_path
    trial = mock.Mock(number=3)
    trial.suggest_float.return_value = .01
    trial.should_prune.side_effect = [False, is_bad, False]
    optuna_search = self._example()
    with self.assertRaises(Pruned) if is_bad else contextlib.nullcontext():
      result = optuna_search.objective(
          trial, out, report_frames=40, total_environment_frames=120,
          num_actors=2, environments_per_process=1, batch_size=2,
          unroll_length=20, xla='none', hidden_sizes='8')
      self.assertEqual(result, optuna_search.score(f'{out}/3'))
    self.assertEqual([call.args[1] for call in trial.report.call_args_list],
                     [1, 2] if is_bad else [1, 2, 3])
    self.assertEqual(
        loading.load(f'{out}/3').num_env_frames, num_env_frames)

  def test_a_signal_ends_the_search(self):
    optuna_search = self._example()
    trial = mock.Mock(number=3)
    trial.suggest_float.return_value = .01
    with mock.patch.object(optuna_search.scalable_agent, 'train') as train:
      train.return_value.num_env_frames = 60
      with self.assertRaises(KeyboardInterrupt):
        optuna_search.objective(trial, '/nowhere', total_environment_frames=120)


MUTATIONS = (
    dict(file='environments/from_gymnasium',
         catches='test_each_start_repeats_the_games', rows=(
        ('a seed is not kept', 'reset(seed=self._seed)', 'reset()'),
    )),
    dict(file='networks/user_layers',
         catches='test_layers_that_cannot_be_used', rows=(
        ('any layer is accepted', 'for inner in _with_sublayers(layer):',
         'for inner in ():'),
        ('lists are not searched', '      waiting.extend(value)  # Wrapped',
         '      pass  # Wrapped'),
    )),
    dict(file='networks/user_layers',
         catches='test_variables_that_keras_does_not_know', rows=(
        ('variables without Keras', 'if variable.ref() not in own:',
         'if False:'),
    )),
    dict(file='networks/user_layers',
         catches='test_layers_that_are_no_graphs_of_any_size', rows=(
        ('graphs of two rows', 'tf.TensorSpec([None, *x.shape[1:]], x.dtype)',
         'tf.TensorSpec(x.shape, x.dtype)'),
    )),
    dict(file='processes/user_code',
         catches='test_layers_that_are_no_graphs_of_any_size', rows=(
        ('several lines', "' '.join(errors.in_words(found.text).split())",
         'errors.in_words(found.text)'),
        ('codes for bold text', 'errors.in_words(found.text)', 'found.text'),
    )),
    dict(file='networks/user_layers', catches='test_attention_can_be_used',
         rows=(
        ('dropout with a rate of 0 is refused', 'and x > 0', 'and x >= 0'),
    )),
    dict(file='networks/user_layers',
         catches='test_losses_that_are_not_learned', rows=(
        ('losses have no effect', '  if layer.losses:\n', '  if False:\n'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
