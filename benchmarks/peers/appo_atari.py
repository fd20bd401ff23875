# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with sample-factory's own configuration for Atari games.

For benchmarks/time_to_score.py. The settings are those of
sf_examples/atari/atari_params.py, changed by `flags`; the games are ours.
"""

import json
import os
import sys

import gymnasium
import numpy as np
import pong
from sample_factory import train
from sample_factory.envs import env_utils
from sf_examples.atari import train_atari


class _Game(gymnasium.Env):
  """One game."""

  observation_space = gymnasium.spaces.Box(
      0, 255, pong.OBSERVATION_SHAPE, np.uint8)
  render_mode = None

  def __init__(self, index, settings):
    self._game = pong.ScoredGame(
        settings['seed'] * 1000 + index, settings['game'])
    self.action_space = gymnasium.spaces.Discrete(self._game.num_actions)

  def reset(self, *, seed=None, options=None):
    return self._game.reset(), {}

  def step(self, action):
    observation, reward, done = self._game.step(action)
    return observation, reward, done, False, {}


def _make_game(unused_name, unused_cfg, env_config, render_mode=None):
  settings = json.loads(sys.argv[1])  # Workers have the same arguments.
  return _Game(env_config.env_id if env_config else 999, settings)


def main():
  settings = json.loads(sys.argv[1])
  env_utils.register_env('game', _make_game)
  # `run_rl` returns a status, also after failures of its parts.
  sys.exit(train.run_rl(train_atari.parse_atari_args([
      '--env=game', '--experiment=peers', '--device=cpu',
      f'--seed={settings["seed"]}', '--save_every_sec=100000',
      '--train_dir=' + os.path.join(os.environ['PEERS_RUN'],
                                    'sample_factory'), *settings['flags']])))


if __name__ == '__main__':
  main()
