# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with stable-baselines3 or SBX for benchmarks/off_policy.py.

The settings have `library`, `algorithm`, `level`, `arguments` (of the
algorithm's class), `hidden_sizes`, `torch_threads` and, if there are several,
`num_environments`, which are stepped one after the other. With `calls`, numbers
of updates per call of `train`, nothing is trained but a random replay.
"""

import importlib
import json
import sys

import game
import gymnasium
import notes
import numpy as np
import pong
from stable_baselines3.common import callbacks
from stable_baselines3.common import env_util
from stable_baselines3.common import logger
import torch


class _Counted(gymnasium.Wrapper):
  """Counts its steps."""

  def step(self, action):
    pong.count_steps(1)
    return self.env.step(action)


class _NoteUpdates(callbacks.BaseCallback):
  """Notes the updates that the logger knows of."""

  def __init__(self, batch_size):
    super().__init__()
    self._note = notes.Notes(batch_size)

  def _on_step(self):
    self._note(self.logger.name_to_value.get('train/n_updates', 0))
    return True


def _parameters(model):
  """Returns what is trained: all but the targets."""
  policy = model.policy
  found = [p for name, p in policy.named_parameters() if 'target' not in name]
  if found:
    return found  # SBX's is a module, too, but an empty one.
  states = [getattr(policy, name, None)
            for name in ('actor_state', 'qf_state')]
  return [x for state in states if state is not None
          for x in _leaves(state.params)]


def _leaves(params):
  if hasattr(params, 'values'):
    return [x for part in params.values() for x in _leaves(part)]
  return [params]


def _make_model(settings):
  library = importlib.import_module(settings['library'])
  is_pong = settings['level'] == 'Pong'
  env = game.Game() if is_pong else env_util.make_vec_env(
      lambda: _Counted(gymnasium.make(settings['level'])),
      settings.get('num_environments', 1))
  arguments = dict(settings['arguments'])
  if not is_pong:
    arguments['policy_kwargs'] = {'net_arch': settings['hidden_sizes']}
  return getattr(library, settings['algorithm'])(
      'CnnPolicy' if is_pong else 'MlpPolicy', env, device='cpu', **arguments)


def main():
  settings = json.loads(sys.argv[1])
  torch.set_num_threads(settings['torch_threads'])
  model = _make_model(settings)
  batch_size = settings['arguments']['batch_size']
  if 'calls' not in settings:
    pong.note_parameters(_parameters(model))
    model.learn(10**12, callback=_NoteUpdates(batch_size), log_interval=10**9)
    return
  model.set_logger(logger.configure(None, []))
  observation = model.get_env().reset()
  for _ in range(notes.NUM_STEPS):
    model.replay_buffer.add(
        observation, observation, np.array([model.action_space.sample()]),
        np.zeros(1), np.zeros(1), [{}])

  def make(num_updates):
    if settings['library'] == 'sbx':
      return lambda: model.train(num_updates, batch_size)
    return lambda: model.train(
        gradient_steps=num_updates, batch_size=batch_size)

  notes.time_calls(settings['calls'], make)


if __name__ == '__main__':
  main()
