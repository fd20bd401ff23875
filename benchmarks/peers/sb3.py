# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with stable-baselines3's A2C or PPO for benchmarks/peers.py.

PPO makes one epoch of one minibatch, so it trains on each sample once.
"""

import json
import sys

import game
import gymnasium
import numpy as np
import pong
import stable_baselines3
from stable_baselines3.common import callbacks
from stable_baselines3.common import torch_layers
from stable_baselines3.common import vec_env
import torch
import torch_networks


class _Torso(torch_layers.BaseFeaturesExtractor):
  """The frames are divided by 255 already."""

  def __init__(self, observation_space, settings):
    super().__init__(observation_space, torch_networks.NUM_FEATURES)
    self._torso = torch_networks.torso(settings)

  def forward(self, observations):
    return self._torso(observations)


class Vector(vec_env.VecEnv):
  """ALE's own vector with the interface of stable-baselines3."""

  def __init__(self, games):
    super().__init__(
        games.num_envs, game.Game.observation_space,
        gymnasium.spaces.Discrete(int(games.single_action_space.n)))
    self._games = games
    self._actions = None
    self._infos = [{} for _ in range(games.num_envs)]

  def reset(self):
    return self._games.reset(seed=0)[0]

  def step_async(self, actions):
    self._actions = actions

  def step_wait(self):
    observation, reward, terminated, truncated, info = self._games.step(
        self._actions)
    done = terminated | truncated
    infos = self._infos
    if done.any():
      infos = [{'terminal_observation': info['final_obs'][i],
                'TimeLimit.truncated': bool(truncated[i])} if done[i] else {}
               for i in range(self.num_envs)]
    return observation, reward.astype(np.float32), done, infos

  def close(self):
    pass

  def env_is_wrapped(self, wrapper_class, indices=None):
    return [False] * self.num_envs

  def get_attr(self, attr_name, indices=None):
    return [getattr(self, attr_name, None)] * self.num_envs

  def set_attr(self, attr_name, value, indices=None):
    raise NotImplementedError('These games have no attributes of their own.')

  def env_method(self, method_name, *args, indices=None, **kwargs):
    raise NotImplementedError('These games have no methods of their own.')


def _make_games(games, num_envs, num_threads):
  if games == 'ale_vector':
    return Vector(pong.make_vector(num_envs, num_threads))
  vector = {'dummy': vec_env.DummyVecEnv, 'subproc': vec_env.SubprocVecEnv}
  return vector[games]([lambda i=i: game.Game(i) for i in range(num_envs)])


class _NoteUpdates(callbacks.BaseCallback):
  """Notes an update when the next rollout starts."""

  def _on_rollout_start(self):
    if self.num_timesteps:
      pong.note_update(self.model.n_steps * self.model.n_envs)

  def _on_step(self):
    return True


def main():
  settings = json.loads(sys.argv[1])
  torch.set_num_threads(settings['torch_threads'])
  num_envs = settings['batch_size']
  games = _make_games(settings['games'], num_envs, settings['env_threads'])
  policy = {
      'features_extractor_class': _Torso,
      'features_extractor_kwargs': {'settings': settings},
      'net_arch': []}
  common = dict(
      n_steps=settings['unroll_length'], policy_kwargs=policy, device='cpu')
  if settings['algorithm'] == 'a2c':
    model = stable_baselines3.A2C('CnnPolicy', games, **common)
  else:
    model = stable_baselines3.PPO(
        'CnnPolicy', games, n_epochs=1,
        batch_size=num_envs * settings['unroll_length'], **common)
  pong.note_parameters(model.policy.parameters())
  model.learn(10**12, callback=_NoteUpdates())


if __name__ == '__main__':
  main()
