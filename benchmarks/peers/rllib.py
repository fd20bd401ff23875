# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with RLlib's IMPALA for benchmarks/peers.py.

The learner is in this process, and learns from one batch after the other.
"""

import json
import os
import sys

import game
import gymnasium
import pong
import ray
from ray import tune
from ray.rllib.algorithms.impala import impala
from ray.rllib.algorithms.impala.torch import impala_torch_learner
from ray.rllib.core import columns
from ray.rllib.core.rl_module import apis
from ray.rllib.core.rl_module import rl_module
from ray.rllib.core.rl_module.torch import torch_rl_module
import torch
import torch_networks


def _make_games(config):
  if 'num_envs' in config:  # A whole vector is asked for.
    return pong.make_vector(config['num_envs'], config['env_threads'],
                            gymnasium.vector.AutoresetMode.NEXT_STEP)
  return game.Game(config.worker_index * 1000 + config.vector_index)


class _Network(torch_rl_module.TorchRLModule, apis.ValueFunctionAPI):
  """Torso and two linear heads."""

  def setup(self):
    self._torso = torch_networks.torso(self.model_config)
    self._policy = torch.nn.Linear(
        torch_networks.NUM_FEATURES, pong.NUM_ACTIONS)
    self._value = torch.nn.Linear(torch_networks.NUM_FEATURES, 1)

  def _features(self, batch):
    return self._torso(batch[columns.Columns.OBS].float() / 255)

  def _forward(self, batch, **kwargs):
    return {columns.Columns.ACTION_DIST_INPUTS:
                self._policy(self._features(batch))}

  def _forward_train(self, batch, **kwargs):
    features = self._features(batch)
    return {columns.Columns.ACTION_DIST_INPUTS: self._policy(features),
            columns.Columns.EMBEDDINGS: features}

  def compute_values(self, batch, embeddings=None):
    if embeddings is None:
      embeddings = self._features(batch)
    return self._value(embeddings)[:, 0]


class _Learner(impala_torch_learner.IMPALATorchLearner):
  """Notes updates."""

  def build(self):
    super().build()
    pong.note_parameters(
        p for module in self.module.values() for p in module.parameters())

  def compute_loss_for_module(self, *, batch, **kwargs):
    # Steps that were not taken are there for bootstrap values, and masked.
    self._num_samples = int(batch[columns.Columns.LOSS_MASK].sum())
    return super().compute_loss_for_module(batch=batch, **kwargs)

  def after_gradient_based_update(self, **kwargs):
    super().after_gradient_based_update(**kwargs)
    pong.note_update(self._num_samples)


def main():
  settings = json.loads(sys.argv[1])
  torch.set_num_threads(settings['learner_threads'])
  ray.init(
      num_cpus=settings['num_env_runners'] + 1, include_dashboard=False,
      object_store_memory=300 * 2**20,
      _temp_dir=os.path.join(os.environ['PEERS_RUN'], 'ray'))
  tune.register_env('pong', _make_games)
  vector = settings['games'] == 'ale_vector'
  algorithm = (
      impala.IMPALAConfig()
      .environment('pong', env_config={'env_threads': settings['env_threads']},
                   observation_space=game.Game.observation_space,
                   action_space=game.Game.action_space)
      .env_runners(
          num_env_runners=settings['num_env_runners'],
          num_envs_per_env_runner=settings['num_envs_per_env_runner'],
          rollout_fragment_length=settings['unroll_length'],
          gym_env_vectorize_mode='vector_entry_point' if vector else 'sync')
      .learners(num_learners=0, num_gpus_per_learner=0)
      .training(
          train_batch_size_per_learner=(
              settings['batch_size'] * settings['unroll_length']),
          num_epochs=1, learner_class=_Learner)
      .rl_module(rl_module_spec=rl_module.RLModuleSpec(
          module_class=_Network, model_config=settings))
      .build_algo())
  while True:
    algorithm.train()


if __name__ == '__main__':
  main()
