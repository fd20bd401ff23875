# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests the converter of settings of DI-engine and of PyTorchRL."""

import contextlib
import io
import shlex
import subprocess
import sys
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.compat import convert
from scalable_agent.compat import di_engine
from scalable_agent.compat import expressions
from scalable_agent.compat import reading
from scalable_agent.experience import structs
import tensorflow as tf

# The form of DI-engine's examples, with other values.
_DI_ENGINE = """
from easydict import EasyDict
num_envs = 2 ** 3
an_impala_config = dict(
    exp_name='an_experiment',
    env=dict(env_id='LunarLander-v2', collector_env_num=num_envs,
             n_evaluator_episode=5, stop_value=200, {env}),
    policy=dict(
        cuda=True, unroll_len=16, random_collect_size=256,
        model=dict(obs_shape=8, action_shape=4,
                   encoder_hidden_size_list=[32, 48], {model}),
        learn=dict(update_per_collect=10, batch_size=64, value_weight=0.25,
                   learning_rate=3e-4, entropy_weight=0.001,
                   discount_factor=0.98, lambda_=0.9, rho_clip_ratio=1.5,
                   c_clip_ratio=1.25, rho_pg_clip_ratio=2.0, {learn}),
        collect=dict(n_sample=40),
        eval=dict(evaluator=dict(eval_freq=100)),
        other=dict(replay_buffer=dict(replay_buffer_size=5000, max_use=7))))
main_config = EasyDict(an_impala_config)
an_impala_create_config = EasyDict(dict(
    env=dict(type='lunarlander'), policy=dict(type='{policy}'),
    replay_buffer=dict(type='{buffer}')))
create_config = an_impala_create_config
if __name__ == '__main__':
  from ding.entry import serial_pipeline
  serial_pipeline([main_config, create_config], seed=4, max_env_step=int(1e6))
"""
# The form of PyTorchRL's examples, with other values.
_PYTORCHRL = """
import argparse
from pytorchrl.agent.algorithms import SAC
raise SystemExit('The file was run.')
def main():
  args = get_args()
  train_envs_factory, action_space, obs_space = VecEnv.create_factory(
      env_fn=make_env, env_kwargs={{'env_id': 'Pendulum-v1'}}, vec_env_size=4,
      log_dir=args.log_dir)
  algo_factory, algo_name = {name}.create_factory(
      lr_q=args.lr, gamma=0.95, polyak=0.9, num_updates=20, update_every=10,
      start_steps=500, mini_batch_size=32, {more})
  actor_factory = OffPolicyActor.create_factory(
      obs_space, action_space, algo_name, restart_model=args.restart{actor})
  storage_factory = {storage}
  learner = Learner(scheme, target_steps=args.num_steps)
def get_args():
  parser = argparse.ArgumentParser()
  parser.add_argument('--lr', type=float, default=7e-4)
  parser.add_argument('--log-dir', default='/tmp/rl')
  parser.add_argument('--restart', default=None)
  parser.add_argument('--num-steps', type=int, default=int(1e5))
"""


class ConvertTest(parameterized.TestCase):

  def _convert(self, text):
    """Returns the settings, and the comments by name."""
    path = self.create_tempfile(content=text).full_path
    command, _, comments = convert.convert(path).partition('\n#')
    self.command = shlex.split(command.replace('\\\n', ''))
    self.assertEqual(self.command[:2], ['python', 'experiment.py'])
    lines = ('#' + comments).splitlines() if comments else []
    return experiment.parse(self.command[2:]), {
        line[2:].partition(': ')[0]: line.partition(': ')[2] for line in lines}

  def _di_engine(self, env='', model='', learn='', policy='impala',
                 buffer='advanced'):
    return self._convert(_DI_ENGINE.format(
        env=env, model=model, learn=learn, policy=policy, buffer=buffer))

  def _pytorchrl(self, name, more='', storage='ReplayBuffer.create_factory('
                 'size=1000)', actor=''):
    return self._convert(_PYTORCHRL.format(
        name=name, more=more, storage=storage, actor=actor))

  def _check(self, config, **expected):
    self.assertEqual({name: getattr(config, name) for name in expected},
                     expected)

  def test_di_engine(self):
    config, comments = self._di_engine()
    self._check(
        config, algorithm='impala', level_name='LunarLander-v3',
        num_action_repeats=1, num_actors=8, unroll_length=16, batch_size=64,
        updates_per_collect=10, unrolls_per_collect=40, replay_capacity=5000,
        max_use=7, learning_rate=3e-4, learning_rate_schedule='constant',
        # Their loss has no factor of 1/2.
        baseline_cost=0.5, entropy_cost=0.001, discounting=0.98, lambda_=0.9,
        clip_rho=1.5, clip_c=1.25, clip_pg_rho=2.0, reduction='mean',
        reward_clipping='none', use_lstm=False, use_last_action_reward=False,
        optimizer='adam', epsilon=1e-8, hidden_sizes='32,48', seed=4,
        test_greedy=True,  # Evaluations take the best action.
        total_environment_frames=1_000_000, clip_gradient_norm=0.0,
        # 100 updates are 10 collections of 40 unrolls of 16 steps.
        eval_every_frames=6400, eval_num_episodes=5)
    self.assertEqual(comments.keys(), {
        'exp_name', 'env.stop_value', 'policy.cuda',
        'policy.random_collect_size', 'policy.model.obs_shape',
        'policy.model.action_shape'})

  @parameterized.parameters(
      (dict(buffer='naive'), dict(max_use=0)),
      (dict(learn="grad_clip_type='clip_norm', clip_value=5"),
       dict(clip_gradient_norm=5.0, clip_gradient_value=0.0)),
      (dict(learn="grad_clip_type='clip_value'"),
       dict(clip_gradient_norm=0.0, clip_gradient_value=0.5)),
      (dict(learn="grad_clip_type='clip_norm', optim='rmsprop'"),
       dict(clip_gradient_norm=0.0, optimizer='torch_rmsprop')),
      (dict(model="action_space='continuous'"),
       dict(squash_actions=False, scale_from_state=False)),
      (dict(model="action_space='continuous', sigma_type='conditioned'"),
       dict(squash_actions=False, scale_from_state=True)))
  def test_choices_of_di_engine(self, changes, expected):
    config, _ = self._di_engine(**changes)
    self._check(config, **expected)

  def test_atari_of_di_engine(self):
    config, comments = self._convert(_DI_ENGINE.format(
        env='frame_stack=4', model='', learn='', policy='impala',
        buffer='advanced').replace('LunarLander-v2', 'PongNoFrameskip-v4'))
    self._check(config, level_name='ALE/Pong-v5', num_action_repeats=4,
                total_environment_frames=4_000_000, agent='nature',
                reward_clipping='abs_one', fire_on_reset=True,
                eval_every_frames=25_600)
    self.assertIn('64 channels', comments[
        'policy.model.encoder_hidden_size_list'])
    self.assertNotIn('--hidden_sizes', ' '.join(self.command))

  def test_frames_of_di_engine(self):
    # Frames of any size: the kernels of `nature` need 36 pixels.
    config, comments = self._changed('obs_shape=8', 'obs_shape=[3, 7, 7]')
    self._check(config, agent='auto')
    self.assertIn('--agent=nature', comments[
        'policy.model.encoder_hidden_size_list'])

  def test_unknown_settings_have_a_comment(self):
    _, comments = self._di_engine(model="sigma_type='independent'")
    self.assertIn('Only continuous', comments['policy.model.sigma_type'])
    self.assertNotIn('scale_from_state', ' '.join(self.command))
    _, comments = self._di_engine(
        env='surprise=1',
        model="action_space='continuous', sigma_type=choose()",
        learn="grad_clip_type='clip_momentum', batch_size2=[1, 2]")
    self.assertIn('not known', comments['env.surprise'])
    self.assertIn('choose()', comments['policy.model.sigma_type'])
    self.assertIn('not known', comments['policy.learn.batch_size2'])
    self.assertIn('no counterpart', comments['policy.learn.grad_clip_type'])
    _, comments = self._di_engine(
        learn="optim='sgd', grad_clip_type=['clip_norm']",
        model="action_space='continuous', sigma_type='fixed', bound_type=None")
    for name in ('policy.learn.optim', 'policy.learn.grad_clip_type',
                 'policy.model.sigma_type'):
      self.assertIn('no counterpart', comments[name])
    self.assertNotIn('policy.model.bound_type', comments)
    _, comments = self._pytorchrl('DDPG', actor=", noise='OU'")
    self.assertIn('no counterpart', comments['noise'])

  def _changed(self, before, after, **changes):
    text = _DI_ENGINE.format(**dict(
        env='', model='', learn='', policy='impala', buffer='advanced')
                             | changes)
    self.assertIn(before, text)
    return self._convert(text.replace(before, after))

  @parameterized.parameters(
      ("'LunarLander-v2'", "['LunarLander-v2', 'B']",
       dict(level_name='LunarLander-v3,B')),
      # The default of their advanced buffer; the naive buffer has none.
      (', max_use=7', '', dict(max_use=16)),
      ('encoder_hidden_size_list=[32, 48], ', '',
       dict(hidden_sizes='128,128,64')),
      ("replay_buffer=dict(type='advanced')))",
       "))\nmain_config.policy.other.replay_buffer.type = 'naive'",
       dict(max_use=0)),
      ('max_use=7', 'alpha=0.9, beta=0.3)), priority=True, '
       'priority_IS_weight=True, x=dict(x=dict(',
       dict(selector='prioritised', priority_exponent=0.9,
            importance_exponent=0.3, importance_exponent_end=1.0)),
      ('max_use=7', 'alpha=0.9', dict(selector='uniform')),
      ('config], seed=4, ', 'config], 5, ', dict(seed=5)),
      # Priorities, and no weights in the loss.
      ('max_use=7', 'beta=0.3)), priority=True, x=dict(x=dict(',
       dict(selector='prioritised', priority_exponent=0.6,
            importance_exponent=0.0, importance_exponent_end=0.0)))
  def test_other_values_of_di_engine(self, before, after, expected):
    config, _ = self._changed(before, after)
    self._check(config, **expected)

  @parameterized.parameters(
      ("'LunarLander-v2'", '[]', 'env.env_id', 'no counterpart'),
      ('max_use=7', 'alpha=0.9, beta=1', 'policy.other.replay_buffer.alpha',
       'Without policy.priority'),
      ('max_use=7', 'alpha=0.9, beta=1', 'policy.other.replay_buffer.beta',
       'Without policy.priority,'),
      ('max_use=7', 'beta=1)), priority=True, x=dict(x=dict(',
       'policy.other.replay_buffer.beta', 'Without policy.priority_IS_weight'),
      ("type='advanced'", "type='other'", 'policy.other.replay_buffer.type',
       'no counterpart'),
      ('max_env_step=int(1e6)', 'max_env_step=steps()', 'max_env_step',
       'steps() is not known'),
      ('max_env_step=int(1e6)', 'max_env_step=1e400', 'max_env_step',
       'inf has no counterpart'),
      ('max_env_step=int(1e6)', 'max_train_iter=9', 'max_train_iter',
       '--total_environment_frames'),
      ('seed=4, ', '*more, ', 'argument 2 of serial_pipeline', '*more'),
      ('eval_freq=100', 'eval_freq=freq()', 'policy.eval.evaluator.eval_freq',
       '--eval_every_frames'),
      ('eval_freq=100', 'eval_freq=1e400', 'policy.eval.evaluator.eval_freq',
       '--eval_every_frames'),
      ('eval_freq=100', 'eval_freq=freq()', 'env.n_evaluator_episode',
       '--eval_every_frames'),
      ('c_clip_ratio=1.25', 'clip_value=0.9', 'policy.learn.clip_value',
       'only if grad_clip_type'),
      ("optim='adam'", "optim='rmsprop', clip_value=0.9, "
       "grad_clip_type='clip_norm'", 'policy.learn.clip_value', 'is adam'),
      ("action_space='discrete'", "action_space='hybrid'",
       'policy.model.action_space', 'no counterpart'))
  def test_each_value_of_di_engine_has_a_comment(self, before, after, name,
                                                 comment):
    _, comments = self._changed(
        before, after, learn="optim='adam'", model="action_space='discrete'")
    self.assertIn(comment, comments[name])

  def test_comments_have_one_line(self):
    _, comments = self._di_engine(env='**{"a\\n--b": 1}')
    self.assertIn('env.a --b', comments)

  def test_without_a_number_of_unrolls(self):
    config, comments = self._changed('n_sample=40', '')
    self._check(config, unrolls_per_collect=0, max_use=0, eval_every_frames=0)
    self.assertContainsSubset(
        ['policy.collect.n_sample', 'env.n_evaluator_episode'], comments)

  def test_pytorchrl(self):
    config, comments = self._pytorchrl(
        'SAC', 'initial_alpha=0.5, policy_loss_addons=[an_addon]')
    self._check(
        config, algorithm='sac', level_name='Pendulum-v1', num_actors=4,
        unroll_length=10, updates_per_step=0.5, updates_per_call=20,
        critic_learning_rate=7e-4, learning_rate=1e-4,
        temperature_learning_rate=1e-4, discounting=0.95,
        target_update_rate=0.1, target_update_period=1, min_replay_steps=2000,
        batch_size=32, clip_gradient_norm=0.5, initial_temperature=0.5,
        hidden_sizes='256,256,256', replay_steps=4000,
        total_environment_frames=100_000, eval_num_episodes=5,
        # 5000 updates at half an update for each step.
        eval_every_frames=10_000)
    self.assertEqual(comments.keys(), {
        'args', 'policy_loss_addons', 'log_dir', 'env_fn', 'target_entropy'})
    self.assertIn('--target_entropy_ratio=0.98', comments['target_entropy'])
    self.assertIn('divide --epsilon_mean', self._pytorchrl('MPO')[1][
        'kl_mean_constraint, kl_var_constraint'])
    self.assertIn('--scale_from_state', self._pytorchrl('MPO')[1][
        'kl_var_constraint, sample_action_num'])
    _, comments = self._pytorchrl('SAC', 'target_entropy=-2.0')
    self.assertIn('--target_entropy_per_part', comments['target_entropy'])

  @parameterized.parameters(
      ('DDQN', 'lr=3e-4, epsilon_decay=0.9', dict(
          learning_rate=3e-4, exploration_decay=0.9, double_q=False,
          exploration_epsilon_begin=1.0, clip_gradient_norm=0.25,
          target_update_period=1)),
      ('DDPG', '', dict(learning_rate=1e-4, critic_learning_rate=7e-4)),
      ('TD3', 'target_update_interval=3, reward_scaling=5.0', dict(
          policy_delay=3, reward_scale=5.)),
      ('MPO', 'sample_action_num=16', dict(
          num_samples=16, epsilon_temperature=0.1, epsilon_mean=0.01,
          epsilon_scale=1e-4, exact_temperature=True, clip_gradient_norm=0.1,
          scale_from_state=False)))
  def test_algorithms_of_pytorchrl(self, name, more, expected):
    config, _ = self._pytorchrl(name, more)
    self._check(config, algorithm=name.lower(), **expected)

  @parameterized.parameters(
      ('DDQN', dict(double_q=False), {'num_critics', 'noise'}),
      ('DDPG', dict(exploration_noise=0.1), {'num_critics'}),
      ('TD3', dict(exploration_noise=0.1, num_critics=3), set()),
      ('SAC', dict(num_critics=3), {'noise'}),
      ('MPO', dict(num_critics=1), {'num_critics', 'noise'}))
  def test_actors_of_pytorchrl(self, name, expected, notes):
    config, comments = self._pytorchrl(
        name, more='lr=1e-3' if name == 'DDQN' else '',
        actor=", noise='Gauss', num_critics=3")
    self._check(config, **expected)
    self.assertEqual(notes, comments.keys() & {'num_critics', 'noise'})

  @parameterized.parameters(
      ('NStepReplayBuffer.create_factory(size=1000, n_step=3)',
       # There, 12 steps have 10 n-step returns.
       dict(n_step=3, selector='uniform', unroll_length=12,
            updates_per_step=0.416666667, updates_per_call=20,
            eval_every_frames=12000)),
      ('PERBuffer.create_factory(size=1000, epsilon=0.0, alpha=0.6, beta=0.4)',
       dict(selector='prioritised', priority_exponent=0.6,
            importance_exponent=0.4, importance_exponent_end=0.4,
            priority_epsilon=1e-6, updates_per_call=0)),
      ('EREBuffer.create_factory(size=1000, eta=0.9, cmin=200, n_step=2)',
       dict(selector='recent', recent_eta=0.9, recent_min_steps=200, n_step=2)),
      ('EREBuffer.create_factory(size=1000, eta=0.9, alpha=0.5, beta=0.5)',
       dict(selector='recent_prioritised', priority_exponent=0.5)))
  def test_storages_of_pytorchrl(self, storage, expected):
    config, comments = self._pytorchrl('SAC', storage=storage)
    self._check(config, **expected)
    # The file has rounds of 20 updates.
    self.assertEqual(
        'num_updates, eta' in comments, config.selector.startswith('recent'))

  @parameterized.parameters(
      ('SAC.create_factory(2e-4, 3e-4, lr_alpha=4e-4, gamma=0.9)',
       dict(critic_learning_rate=2e-4, learning_rate=3e-4,
            temperature_learning_rate=4e-4, discounting=0.9)),
      ('DDQN.create_factory(2e-4, 0.9, 0.8)',
       dict(learning_rate=2e-4, discounting=0.9, target_update_rate=0.2)),
      ('TD3.create_factory(2e-4, 3e-4, 0.9, 0.8, 20, 7, 10)',
       dict(critic_learning_rate=2e-4, target_update_rate=0.2,
            updates_per_call=20, eval_every_frames=3, unroll_length=10)),
      ("SAC.create_factory()\nVecEnv.create_factory(make, "
       "{'env_id': 'Pendulum-v1'}, 3)",
       dict(level_name='Pendulum-v1', num_actors=3)),
      ("SAC.create_factory()\nVecEnv.create_factory(make, "
       "{'env_id': 'Pendulum-v0'}, 3)",
       dict(level_name='Pendulum-v1')),
      ('SAC.create_factory()\nPERBuffer.create_factory(2000, 3, 1e-3, 0.5)',
       dict(replay_steps=2000, n_step=3, selector='prioritised',
            priority_epsilon=1e-3, priority_exponent=0.5,
            importance_exponent=1.0, importance_exponent_end=1.0)),
      ('SAC.create_factory()\nprl.Learner(scheme, 5000)',
       dict(total_environment_frames=5000)),
      ("DDPG.create_factory()\nOffPolicyActor.create_factory(a, b, c, "
       "'NoNoise')", dict(exploration_noise=0.0)))
  def test_positional_arguments(self, text, expected):
    config, comments = self._convert(text)
    self._check(config, **expected)
    self.assertContainsSubset(comments, [
        'env_fn' if 'VecEnv' in text else 'env_kwargs.env_id',
        'target_entropy'])

  @parameterized.parameters(
      ("'env_id': 'PongNoFrameskip-v4', 'clip_rewards': True, "
       "'sticky_actions': True, 'episodic_life': False, 'seed': 7", dict(
           level_name='ALE/Pong-v5', num_action_repeats=4,
           reward_clipping='abs_one', repeat_action_probability=0.25,
           life_loss_ends_episode=False, seed=7, fire_on_reset=True,
           max_episode_frames=18_000,
           total_environment_frames=400, eval_every_frames=20_000)),
      ("'env_id': 'PongNoFrameskip-v4', 'max_episode_steps': 900", dict(
          reward_clipping='none', num_action_repeats=4,
          repeat_action_probability=0., max_episode_frames=108_000)),
      # The old id has sticky actions already.
      ("'env_id': 'PongNoFrameskip-v0', 'sticky_actions': False", dict(
          level_name='ALE/Pong-v5', repeat_action_probability=0.25)),
      ("'env_id': 'CartPole-v0'", dict(
          level_name='CartPole-v0', fire_on_reset=False)),
      ("'env_id': 'Pendulum-v1', 'frame_skip': 2", dict(
          num_action_repeats=2, total_environment_frames=200,
          eval_every_frames=10_000)),
      ("'env_id': 'Pendulum-v1', 'frame_skip': 0", dict(
          num_action_repeats=1)))
  def test_environments_of_pytorchrl(self, kwargs, expected):
    config, _ = self._convert(
        f'SAC.create_factory()\nVecEnv.create_factory(env_kwargs={{{kwargs}}})'
        '\nLearner(scheme, target_steps=100)')
    self._check(config, **expected)

  @parameterized.parameters(
      ('ReplayBuffer.create_factory(*sizes)',
       'argument 1 of ReplayBuffer.create_factory', '*sizes'),
      ('Learner(scheme, 1000, None, 3)', 'argument 4 of Learner', 'not known'),
      ('Learner(scheme, compute())', 'target_steps', 'compute() is not known'),
      ('Learner(scheme, 1e400)', 'target_steps', 'inf has no counterpart'),
      ("Learner(scheme, 1000, '/tmp')", 'log_dir', '--logdir'),
      ('ReplayBuffer.create_factory(size())', 'size', 'size() is not known'),
      ('ReplayBuffer.create_factory(1e400)', 'size', 'inf has no counterpart'),
      ('ReplayBuffer.create_factory(1e308 * 1e308)', 'size', 'is not known'),
      ("ReplayBuffer.create_factory('big')", 'size', 'no counterpart'),
      ('EREBuffer.create_factory(9000, alpha=0.0, beta=0.4)', 'beta',
       'alpha is 0'),
      ('PERBuffer.create_factory(9000, epsilon=0.4)', 'epsilon', 'alpha is 0'),
      ('ReplayBuffer.create_factory(9000)\nPERBuffer.create_factory(9000)',
       'PERBuffer.create_factory', 'ReplayBuffer comes first'),
      ('VecEnv.create_factory(train)\nVecEnv.create_factory(test)',
       'VecEnv.create_factory', 'the first call was converted'),
      ('TD3.create_factory(lr_q=1e-3)', 'TD3.create_factory',
       'DDQN comes first'),
      ('PPO.create_factory(lr=1e-3)', 'PPO.create_factory', 'not known'),
      ('VecEnv.create_factory(make, arguments())', 'env_kwargs',
       'arguments() is not known'),
      ("VecEnv.create_factory(make, {'frame_stack': 4})",
       'env_kwargs.frame_stack', 'four frames'),
      ("VecEnv.create_factory(make, {'frame_skip': skip})",
       'env_kwargs.frame_skip', 'skip is not known'),
      ("VecEnv.create_factory(make, {'size': 4})", 'env_kwargs.size',
       'not known'))
  def test_each_value_of_pytorchrl_has_a_comment(self, text, name, comment):
    _, comments = self._convert(f'DDQN.create_factory()\n{text}')
    self.assertIn(comment, comments[name])

  @parameterized.parameters(
      ('lr_q=1e-3', 'lr_q', 'learning rate lr'),
      ('lr_pi=1e-3', 'lr_pi', 'learning rate lr'),
      ('max_grad_norm=1e400', 'max_grad_norm', 'no counterpart'),
      (f"max_grad_norm={'9' * 400}", 'max_grad_norm', 'no counterpart'),
      ('num_updates=1e400', 'num_updates, update_every, test_every, n_step',
       'set'))
  def test_each_argument_of_ddqn_has_a_comment(self, arguments, name, comment):
    _, comments = self._convert(f'DDQN.create_factory({arguments})')
    self.assertIn(comment, comments[name])

  def test_arguments_of_schemes(self):
    names = (
        'num_col_workers', 'col_workers_communication', 'col_compress_data',
        'col_workers_resources', 'col_preemption_thresholds',
        'num_grad_workers', 'grad_workers_communication', 'grad_compress_data',
        'grad_workers_resources', 'local_device',
        'decentralized_update_execution')
    _, comments = self._convert(
        'SAC.create_factory()\nScheme(algorithm, actor, storage, '
        f"environments, {', '.join(f'{name}=2' for name in names)})")
    self.assertEqual(
        comments.keys(), {*names, 'env_kwargs.env_id', 'target_entropy'})
    self.assertEmpty([x for x in comments.values() if 'not known' in x])
    self.assertIn('divide --updates_per_step', comments['num_col_workers'])
    _, comments = self._convert(
        'SAC.create_factory()\nScheme(num_col_workers=1)')
    self.assertNotIn('num_col_workers', comments)

  def test_defaults_of_arguments_are_said(self):
    _, comments = self._convert(
        'parser.add_argument("--lr", default=1.0)\nSAC.create_factory()')
    self.assertIn('not those of a command line', comments['args'])
    self.assertIn('add --level_name=ID', comments['env_kwargs.env_id'])

  def test_all_arguments_of_the_factories_are_known(self):
    for name, more in (
        ('SAC', 'lr_alpha=1, target_entropy=0.5'),
        ('MPO', 'kl_constraint=1, alpha_scale=1, alpha_mean_scale=1, '
         'alpha_var_scale=1, alpha_mean_max=1, alpha_var_max=1, alpha_max=1, '
         'mstep_iterations=1')):
      _, comments = self._pytorchrl(
          name, more + ', max_grad_norm=1.0, test_every=5, '
          'num_test_episodes=0', actor=', sequence_overlap=0.5, num_critics=2, '
          'recurrent_net=None, obs_feature_extractor=None')
      self.assertEmpty([x for x in comments.values() if 'not known' in x])

  @parameterized.parameters(
      ('x = (', 'is not a Python file.'),
      ('\0', 'is not a Python file.'),
      ('x = ' + '(' * 5000 + ')' * 5000, 'is not a Python file.'),
      ('x = 1', 'has neither a configuration of DI-engine'),
      (_DI_ENGINE.format(env='', model='', learn='', policy='sac',
                         buffer='naive'), 'configures .* policy sac; only'),
      (_DI_ENGINE.format(env='', model='', learn='', policy='impala',
                         buffer='naive').replace('batch_size=64',
                                                 'batch_size=-1'),
       'do not fit here: --batch_size=-1 must be positive'))
  def test_bad_files(self, text, message):
    path = self.create_tempfile(content=text).full_path
    with self.assertRaisesRegex(errors.ConfigError, message):
      convert.convert(path)

  def test_command(self):
    path = self.create_tempfile(content=_DI_ENGINE.format(
        env='', model='', learn='', policy='impala', buffer='naive')).full_path
    run = subprocess.run(
        [sys.executable, '-m', 'scalable_agent.compat.convert', path],
        text=True, capture_output=True, check=True)
    self.assertEqual(run.stdout, convert.convert(path) + '\n')
    for args in ([], ['--help'], ['/none'], ['/'], [path, path]):
      with contextlib.redirect_stderr(io.StringIO()) as output:
        self.assertEqual(convert.main(['', *args]), 2)
      self.assertLen(output.getvalue().splitlines(), 1)
      self.assertStartsWith(output.getvalue(), 'scalable_agent: ')

  def test_nothing_is_computed_without_end(self):
    start = time.monotonic()
    file = reading.read(self.create_tempfile(
        content='a = 9 ** 9 ** 9 ** 9\nb = "x" * 10 ** 12\nc = 1 / 0\n'
                'd = -2 * 10 ** 3 + 1 // 1\ne = int(1e400)\n'
                'f = (-8) ** 0.5\ng = 1e308 * 10').full_path)
    self.assertLess(time.monotonic() - start, 60)
    self.assertEqual(file.values['d'], -1999)
    for name in 'abcefg':
      self.assertIsInstance(file.values[name], expressions.Unknown)

  def test_continuous_settings_have_the_loss_of_di_engine(self):
    config, _ = self._di_engine(model="action_space='continuous'")
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((3,), np.dtype(np.float32)),
        structs.ActionSpec(size=2), num_action_repeats=1)
    config = config.resolved(spec.observation, on_cpu=True, num_groups=1)
    algorithm = algorithms.make(
        experiment.parse([*self.command[2:], '--batch_size=4',
                          '--unroll_length=5', '--agent=mlp']), spec, seed=1)
    agent = algorithm.agent
    [log_sigma] = [v for v in agent.trainable_variables
                   if v.path.endswith('log_scale')]
    np.testing.assert_array_equal(log_sigma, [0, 0])  # As in DI-engine.
    log_sigma.assign([0.3, -0.2])
    rng = np.random.RandomState(0)
    normal = lambda *shape: tf.constant(
        rng.normal(size=[6, 4, *shape]), tf.float32)
    env_outputs = structs.StepOutput(
        normal(), (), tf.zeros([6, 4], tf.bool), normal(3))
    action, behaviour = normal(2), normal(4)
    data = structs.Unroll(structs.Steps(
        env_outputs, structs.AgentOutput(action, behaviour, normal()),
        tf.zeros([6, 4])), structs.Start((), (), (), ()))
    with tf.GradientTape() as tape:
      loss = algorithm.loss(data, None, ['agent'], tf.constant([0, 0]))
    gradient = tape.gradient(loss.by_group['agent'], log_sigma.value)
    outputs, _ = agent.unroll(action, env_outputs, ())
    sigma = tf.Variable([0.3, -0.2])
    with tf.GradientTape() as tape:
      target = {'mu': outputs.policy[:-1, :, :2],
                'sigma': tf.exp(sigma) + tf.zeros([5, 4, 2])}
      expected = di_engine.vtrace_error_continuous_action(
          di_engine.vtrace_data(
              target, {'mu': behaviour[1:, :, :2],
                       'sigma': tf.exp(behaviour[1:, :, 2:])},
              action[1:], outputs.baseline, env_outputs.reward[1:], None),
          gamma=0.98, lambda_=0.9, rho_clip_ratio=1.5, c_clip_ratio=1.25,
          rho_pg_clip_ratio=2.0)
      total = (expected.policy_loss + 0.25 * expected.value_loss
               - 0.001 * expected.entropy_loss)
    np.testing.assert_allclose(loss.by_group['agent'], total, rtol=1e-5)
    np.testing.assert_allclose(gradient, tape.gradient(total, sigma),
                               rtol=1e-4, atol=1e-6)


MUTATIONS = (
    dict(file='compat/from_di_engine', catches='ConvertTest.test_di_engine',
         rows=(
        ('half of the loss of values', '2 * number(value)', 'number(value)'),
        ('evaluations by updates', 'freq * per_collect', 'freq'),
        ('twice the steps', 'int(number(value)) * repeats',
         '2 * int(number(value))'))),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_atari_of_di_engine', rows=(
        ('steps without repeats', 'int(number(value)) * repeats',
         'int(number(value))'),)),
    dict(file='compat/converted', catches=(
        'ConvertTest.test_other_values_of_di_engine0'), rows=(
        ('only one level', 'map(str, names)', 'map(str, names[:1])'),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_other_values_of_di_engine1', rows=(
        ('the default of uses', "'max_use': 16", "'max_use': 0"),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_other_values_of_di_engine3', rows=(
        ('the type of the buffer counts only where the buffer is created',
         "if settings.get(f'{_BUFFER}.type') == 'naive':\n    flags.pop",
         "if create.get('replay_buffer.type') == 'naive':\n    flags.pop"),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_other_values_of_di_engine4', rows=(
        ('priorities have the defaults',
         'dict.fromkeys(_PRIORITIES) | settings', 'settings'),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_other_values_of_di_engine5', rows=(
        ('exponents without priorities',
         "if 'policy.priority' in unset", 'if False'),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_other_values_of_di_engine6', rows=(
        ('positional arguments of pipelines', 'call.named(_PIPELINE)',
         'dict(call.arguments)'),)),
    dict(file='compat/from_di_engine', catches=(
        'ConvertTest.test_each_value_of_di_engine_has_a_comment9'), rows=(
        ('evaluations without a comment',
         "{'policy.eval.evaluator.eval_freq': eval_freq},", '{},'),)),
    dict(file='compat/from_di_engine', catches=(
        'ConvertTest.test_each_value_of_di_engine_has_a_comment11'), rows=(
        ('episodes without a comment',
         "result.notes['env.n_evaluator_episode'] =", '_ ='),)),
    dict(file='compat/from_di_engine', catches=(
        'ConvertTest.test_each_value_of_di_engine_has_a_comment12'), rows=(
        ('a clip without a comment', '{value: clip_value}', '{}'),)),
    dict(file='compat/from_di_engine', catches=(
        'test_unknown_settings_have_a_comment'), rows=(
        ('a list as the type of the clip', 'str(clip)', "'clip_norm'"),)),
    dict(file='compat/converted', catches=(
        'ConvertTest.test_each_argument_of_ddqn_has_a_comment2'), rows=(
        ('infinite numbers', ' and math.isfinite(value)', ''),)),
    dict(file='compat/converted', catches=(
        'ConvertTest.test_each_argument_of_ddqn_has_a_comment3'), rows=(
        ('numbers of 400 digits', 'ArithmeticError, ', ''),)),
    dict(file='compat/convert', catches='test_comments_have_one_line', rows=(
        ('lines within a comment', "' '.join(f'# {name}: {text}'.split())",
         "f'# {name}: {text}'"),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_choices_of_di_engine3', rows=(
        ('gradients are clipped with rmsprop',
         "result.flags['optimizer'] != 'adam'", 'False'),)),
    dict(file='compat/from_di_engine',
         catches='ConvertTest.test_choices_of_di_engine0', rows=(
        ('a naive buffer counts', "= create['replay_buffer.type']",
         '= None'),)),
    dict(file='compat/from_pytorchrl', catches='ConvertTest.test_pytorchrl',
         rows=(
        ('the average moves slowly', '1 - number(value)', 'number(value)'),
        ('updates per step of one environment',
         'updates / (every * num_environments)', 'updates / every'),
        ('steps of one environment',
         "'replay_steps': int(number(value)) * num_environments",
         "'replay_steps': int(number(value))"),
        ('the first steps are those of one environment',
         "'min_replay_steps': int(number(value)) * num_environments",
         "'min_replay_steps': int(number(value))"))),
    dict(file='compat/converted', catches=(
        'ConvertTest.test_environments_of_pytorchrl2'), rows=(
        ('old ids without sticky actions', "match[3] == '0'", 'False'),)),
    dict(file='compat/pytorchrl_signatures', catches=(
        'ConvertTest.test_positional_arguments2'), rows=(
        ('another order of arguments', "update_every start_steps '\n    'max",
         "start_steps update_every '\n    'max"),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_positional_arguments4'), rows=(
        ('another default of beta', "'beta': 1.0", "'beta': 0.4"),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_positional_arguments5'), rows=(
        ('a Learner of a package', 'is_factory else method',
         'is_factory else call.function'),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_environments_of_pytorchrl0'), rows=(
        ('frames without repeats', '// updates * repeats', '// updates'),
        ('an Atari game without repeats', '4 if is_atari else 1', '1'))),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_environments_of_pytorchrl1'), rows=(
        ('rewards of Atari games are clipped',
         "setdefault('reward_clipping', 'none')",
         "setdefault('reward_clipping', 'abs_one')"),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_each_value_of_pytorchrl_has_a_comment9'), rows=(
        ('no comment without priorities',
         '{} if is_prioritised else _UNIFORM_RULES', '{}'),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_each_value_of_pytorchrl_has_a_comment12'), rows=(
        ('other classes without a comment', 'for name in others:',
         'for name in ():'),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_each_value_of_pytorchrl_has_a_comment12'), rows=(
        ('other calls without a comment',
         'found.setdefault(name, arguments) != arguments',
         'found.setdefault(name, arguments) is None'),)),
    dict(file='compat/from_pytorchrl', catches=(
        'ConvertTest.test_each_argument_of_ddqn_has_a_comment0'), rows=(
        ('a rate of DDQN without a comment', "'lr_q': _ONE_RATE, ", ''),)),
    dict(file='compat/from_pytorchrl', catches='test_actors_of_pytorchrl',
         rows=(
        ('flags that an algorithm does not use',
         '_ACTOR_RULES | _OWN_ACTOR_RULES[name]', '_ACTOR_RULES'),)),
    dict(file='compat/from_pytorchrl', catches='test_storages_of_pytorchrl',
         rows=(
        ('a constant exponent rises', ", 'importance_exponent_end': value}",
         '}'),)),
    dict(file='compat/from_pytorchrl', catches='test_arguments_of_schemes',
         rows=(
        ('schemes without comments', "found.get('Scheme', {})", '{}'),)),
    dict(file='compat/reading', catches=(
        'ConvertTest.test_each_value_of_pytorchrl_has_a_comment0'), rows=(
        ('a name for what * passes', "value.text.startswith('*')", 'False'),)),
    dict(file='compat/expressions', catches=(
        'test_nothing_is_computed_without_end'), rows=(
        ('texts are repeated', 'isinstance(right, (int, float))', 'True'),
        ('division by zero', 'except (KeyError, ArithmeticError)',
         'except KeyError'),
        ('complex numbers', 'isinstance(power, complex)', 'False'),
        ('infinite sums', 'math.isfinite(result)', 'True'))),
)


if __name__ == '__main__':
  absltest.main()
