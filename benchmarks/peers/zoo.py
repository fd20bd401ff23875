# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with stable-baselines3 as rl-baselines3-zoo does on Atari games.

For benchmarks/time_to_score.py. The settings are those of `atari` in the zoo's
hyperparams/a2c.yml and ppo.yml (version 2.9.2); the games are ours.
"""

import json
import sys

import numpy as np
import pong
import sb3
import stable_baselines3
from stable_baselines3.common.sb2_compat import rmsprop_tf_like
import torch

_NUM_STEPS = 10_000_000  # Learning rate and clip range of PPO fall to 0 there.


def _falls_from(start):
  return lambda progress_left: progress_left * start


def _make_model(algorithm, games, seed):
  """Returns the zoo's A2C or PPO."""
  common = dict(env=games, seed=seed, device='cpu', ent_coef=0.01)
  if algorithm == 'a2c':
    return stable_baselines3.A2C(
        'CnnPolicy', vf_coef=0.25, policy_kwargs=dict(
            optimizer_class=rmsprop_tf_like.RMSpropTFLike,
            optimizer_kwargs=dict(eps=1e-5)), **common)
  return stable_baselines3.PPO(
      'CnnPolicy', n_steps=128, n_epochs=4, batch_size=256,
      learning_rate=_falls_from(2.5e-4), clip_range=_falls_from(0.1),
      vf_coef=0.5, **common)


class _Games(sb3.Vector):
  """A lost life ends an episode; rewards are clipped."""

  def __init__(self, game, num_envs, seed):
    super().__init__(pong.make_vector(
        num_envs, 2, game=game, life_loss_info=True))
    self._game_seeds = seed * num_envs + np.arange(num_envs, dtype=np.int32)
    self._scores = np.zeros(num_envs)
    self._starts = None

  def reset(self):
    return self._games.reset(seed=self._game_seeds)[0]

  def step_wait(self):
    observation, reward, terminated, truncated, info = self._games.step(
        self._actions)
    self._scores += reward
    starts = info['frame_number'] - info['episode_frame_number']
    if self._starts is not None:
      for index in np.flatnonzero(starts != self._starts):
        pong.note_game(self._scores[index])
        self._scores[index] = 0
    self._starts = starts
    done = terminated | truncated
    infos = [{} for _ in range(self.num_envs)]
    for index in np.flatnonzero(done):
      infos[index] = {
          'terminal_observation': info.get('final_obs', observation)[index],
          'TimeLimit.truncated': bool(truncated[index])}
    return observation, np.clip(reward, -1, 1).astype(np.float32), done, infos


def main():
  settings = json.loads(sys.argv[1])
  algorithm, seed = settings['algorithm'], settings['seed']
  torch.set_num_threads(2)
  num_envs = {'a2c': 16, 'ppo': 8}[algorithm]
  games = _Games(settings['game'], num_envs, seed)
  _make_model(algorithm, games, seed).learn(_NUM_STEPS)


if __name__ == '__main__':
  main()
