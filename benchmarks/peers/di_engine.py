# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with DI-engine's IMPALA for benchmarks/peers.py.

This is its serial pipeline without evaluation and without the replay buffer,
which would only pass each batch on.
"""

import functools
import json
import sys

from ding import config as ding_config
from ding import envs
from ding import policy as ding_policy
from ding import worker
import easydict
import gym
import numpy as np
import pong
import torch
import torch_networks


class _Game(envs.BaseEnv):
  """One game."""

  observation_space = gym.spaces.Box(0, 255, pong.OBSERVATION_SHAPE, np.uint8)
  action_space = gym.spaces.Discrete(pong.NUM_ACTIONS)
  reward_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

  def __init__(self, index):
    self._index = index
    self._game = None
    self._return = 0.0

  def seed(self, seed, dynamic_seed=True):
    pass  # The seed is the index.

  def reset(self):
    self._game = self._game or pong.Pong(self._index)
    self._return = 0.0
    return self._game.reset()

  def step(self, action):
    observation, reward, over = self._game.step(int(action))
    self._return += reward
    info = {'eval_episode_return': self._return} if over else {}
    # Rewards must be scalars, without an axis of their own.
    return envs.BaseEnvTimestep(observation, np.float32(reward), over, info)

  def close(self):
    pass

  def __repr__(self):
    return 'Pong'


class _Network(torch.nn.Module):
  """Torso and two linear heads, with the interface of DI-engine's `VAC`."""

  def __init__(self, settings):
    super().__init__()
    self._torso = torch_networks.torso(settings)
    self._policy = torch.nn.Linear(
        torch_networks.NUM_FEATURES, pong.NUM_ACTIONS)
    self._value = torch.nn.Linear(torch_networks.NUM_FEATURES, 1)

  def forward(self, frames, mode):
    features = self._torso(frames.float() / 255)
    outputs = {'logit': self._policy(features)}
    if mode == 'compute_actor_critic':
      outputs['value'] = self._value(features)[:, 0]
    return outputs


def _config(settings):
  """Returns DI-engine's complete configuration."""
  num_envs, unroll_length = settings['batch_size'], settings['unroll_length']
  main = dict(
      exp_name='pong',
      env=dict(collector_env_num=num_envs, evaluator_env_num=1,
               n_evaluator_episode=1, stop_value=21,
               manager=dict(shared_memory=settings['shared_memory'])),
      policy=dict(
          cuda=False, unroll_len=unroll_length, priority=False,
          model=dict(obs_shape=list(pong.OBSERVATION_SHAPE),
                     action_shape=pong.NUM_ACTIONS),
          learn=dict(update_per_collect=1, batch_size=num_envs),
          collect=dict(n_sample=num_envs, unroll_len=unroll_length),
          eval=dict(evaluator=dict(eval_freq=10**9))))
  create = dict(env=dict(type='pong', import_names=[]),
                env_manager=dict(type=settings['env_manager']),
                policy=dict(type='impala'))
  main, create = easydict.EasyDict(main), easydict.EasyDict(create)
  create.policy.type += '_command'  # As the serial pipeline does.
  return ding_config.compile_config(
      main, env=_Game, auto=True, create_cfg=create, save_cfg=False)


def main():
  settings = json.loads(sys.argv[1])
  torch.set_num_threads(settings['torch_threads'])
  config = _config(settings)
  games = envs.create_env_manager(config.env.manager, [
      functools.partial(_Game, i) for i in range(settings['batch_size'])])
  model = _Network(settings)
  pong.note_parameters(model.parameters())
  policy = ding_policy.create_policy(
      config.policy, model=model, enable_field=['learn', 'collect'])
  collector = worker.create_serial_collector(
      config.policy.collect.collector, env=games, policy=policy.collect_mode,
      exp_name=config.exp_name)
  updates = 0
  while True:
    # The end of an episode is a sample of its own, so there may be more
    # samples than asked for.
    unrolls = collector.collect(train_iter=updates, drop_extra=False)
    policy.learn_mode.forward(unrolls)
    updates += 1
    pong.note_update(len(unrolls) * settings['unroll_length'])


if __name__ == '__main__':
  main()
