# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with sample-factory's APPO and V-trace for benchmarks/peers.py."""

import json
import os
import sys

import game
import pong
from sample_factory import train
from sample_factory.algo.learning import learner
from sample_factory.algo.learning import learner_worker
from sample_factory.algo.utils import context
from sample_factory.cfg import arguments
from sample_factory.envs import env_utils
from sample_factory.model import encoder
import torch
import torch_networks


def _settings():
  return json.loads(sys.argv[1])  # Worker processes have the same arguments.


class _Encoder(encoder.Encoder):
  """The frames are divided by 255 already, see `obs_scale`."""

  def __init__(self, cfg, unused_observation_space):
    super().__init__(cfg)
    self._torso = torch_networks.torso(_settings())

  def forward(self, observations):
    return self._torso(observations['obs'])

  def get_out_size(self):
    return torch_networks.NUM_FEATURES


def _make_game(unused_name, unused_cfg, env_config, render_mode=None):
  return game.Game(env_config.env_id if env_config else 0)


class _Learner(learner.Learner):
  """Notes updates, and works with V-trace."""

  def init(self):
    torch.set_num_threads(_settings()['learner_threads'])
    result = super().init()
    pong.note_parameters(self.actor_critic.parameters())
    return result

  def train(self, batch):
    result = super().train(batch)
    pong.note_update(self.cfg.batch_size)
    return result

  def _record_summaries(self, train_loop_vars):
    # The method reads the advantages from the buffer, where only those of GAE
    # are, not those of V-trace.
    train_loop_vars.mb.advantages = train_loop_vars.adv
    return super()._record_summaries(train_loop_vars)


def main():
  settings = _settings()
  env_utils.register_env('pong', _make_game)
  context.global_model_factory().register_encoder_factory(_Encoder)
  learner_worker.Learner = _Learner
  options = dict(
      env='pong',
      experiment='peers',
      train_dir=os.path.join(os.environ['PEERS_RUN'], 'sample_factory'),
      device='cpu',
      batch_size=settings['batch_size'] * settings['unroll_length'],
      rollout=settings['unroll_length'],
      recurrence=settings['unroll_length'],
      num_epochs=1,
      num_batches_per_epoch=1,
      with_vtrace=True,
      normalize_returns=False,
      use_rnn=False,
      normalize_input=False,
      obs_scale=255.0,
      nonlinearity='relu',
      num_workers=settings['num_workers'],
      num_envs_per_worker=settings['num_envs_per_worker'],
      worker_num_splits=settings['worker_num_splits'],
      serial_mode=settings['serial'],
      async_rl=not settings['serial'],
      save_every_sec=100000)
  argv = [f'--{key}={value}' for key, value in options.items()]
  parser, _ = arguments.parse_sf_args(argv)
  train.run_rl(arguments.parse_full_cfg(parser, argv))


if __name__ == '__main__':
  main()
