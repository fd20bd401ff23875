# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with XuanCe's TensorFlow agents for benchmarks/off_policy.py.

The settings are those of sb3_off_policy.py, with the algorithms SAC and DQN.
What `arguments` lacks is as in XuanCe's own configuration, and so are hidden
layers and the number of environments if the settings lack them.

XuanCe's runner is not used: in version 1.4.4 it trains with PyTorch, whatever
`dl_toolbox` says. The agents work with Keras 2 only.
"""

import json
import os
import sys
import types

os.environ['TF_USE_LEGACY_KERAS'] = '1'  # Before TensorFlow is imported.
import notes
import pong
from xuance import common
from xuance import environment
from xuance.tensorflow import agents

_FAMILIES = {'SAC': 'mujoco', 'DQN': 'classic_control'}
_NAMES = {'learning_starts': 'start_training', 'gradient_steps': 'n_epochs',
          'train_freq': 'training_frequency'}


class _Watch(common.BaseCallback):
  """Counts steps and notes updates."""

  def __init__(self, batch_size):
    super().__init__()
    self._note = notes.Notes(batch_size)

  def on_train_step(self, current_step, envs=None, **kwargs):
    pong.count_steps(envs.num_envs)  # Each has made a step.

  def on_update_end(self, iterations, policy=None, **kwargs):
    if iterations == 1:  # Keras makes some variables in the first call.
      pong.note_parameters(_parameters(policy))
    self._note(iterations)
    return {}


def _parameters(policy):
  """Returns what is trained: all but the targets."""
  if hasattr(policy, 'actor_trainable_variables'):
    return policy.actor_trainable_variables + policy.critic_trainable_variables
  return policy.trainable_variables


def _layers(algorithm, sizes):
  """Returns the arguments for hidden layers with ReLU."""
  if algorithm == 'DQN':  # Its representation has layers of its own.
    sizes = {'representation_hidden_size': sizes[:1],
             'q_hidden_size': sizes[1:]}
  else:
    sizes = {'actor_hidden_size': sizes, 'critic_hidden_size': sizes}
  return {**sizes, 'activation': 'relu'}


def _config(settings):
  """Returns XuanCe's configuration."""
  algorithm = settings['algorithm']
  arguments = {_NAMES.get(name, name): value
               for name, value in settings['arguments'].items()}
  if 'hidden_sizes' in settings:
    arguments.update(_layers(algorithm, settings['hidden_sizes']))
  if 'num_environments' in settings:
    arguments['parallels'] = settings['num_environments']
  return common.get_arguments(
      algorithm.lower(), _FAMILIES[algorithm], settings['level'],
      parser_args=types.SimpleNamespace(
          dl_toolbox='tensorflow', env_id=settings['level'], **arguments))


def main():
  settings = json.loads(sys.argv[1])
  config = _config(settings)
  agent = agents.REGISTRY_Agents[config.agent](
      config, environment.make_envs(config),
      callback=_Watch(config.batch_size))
  agent.train(10**12)


if __name__ == '__main__':
  main()
