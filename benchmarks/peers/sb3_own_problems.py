# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains with stable-baselines3's defaults for benchmarks/own_problems.py.

The argument is JSON: `level` (`module:name`, or a name), `kwargs` of the
environment, `algorithm` (PPO or SAC), `frames`, `seed`, `episodes` of the
evaluation, `is_greedy`: with deterministic actions, `torch_threads`, and
`is_normalised`: with RescaleAction, VecNormalize and its defaults. Prints JSON:
the `returns` of the evaluation, and `seconds` of the training.
"""

import json
import sys
import time

import gymnasium
import stable_baselines3
from stable_baselines3.common import env_util
from stable_baselines3.common import evaluation
from stable_baselines3.common import preprocessing
from stable_baselines3.common import vec_env
import torch


def _make(level, kwargs, is_normalised):
  env = gymnasium.make(level, **kwargs)
  if isinstance(env.observation_space, gymnasium.spaces.Tuple):
    env = gymnasium.wrappers.FlattenObservation(env)  # No policy takes a Tuple.
  if is_normalised and isinstance(env.action_space, gymnasium.spaces.Box):
    env = gymnasium.wrappers.RescaleAction(env, -1., 1.)
  return env


def _vector(settings, seed):
  return env_util.make_vec_env(
      lambda: _make(settings['level'], settings['kwargs'],
                    settings['is_normalised']), seed=seed)


def main(settings):
  torch.set_num_threads(settings['torch_threads'])
  env = _vector(settings, settings['seed'])
  if settings['is_normalised']:
    parts = env.observation_space
    keys = [name for name, part in parts.items()
            if isinstance(part, gymnasium.spaces.Box)] if isinstance(
                parts, gymnasium.spaces.Dict) else None
    # Images stay bytes: the policy divides them by 255.
    has_numbers = keys or (isinstance(parts, gymnasium.spaces.Box)
                           and not preprocessing.is_image_space(parts))
    env = vec_env.VecNormalize(
        env, norm_obs=bool(has_numbers), norm_obs_keys=keys)
  policy = ('MultiInputPolicy' if isinstance(
      env.observation_space, gymnasium.spaces.Dict) else
            'CnnPolicy' if preprocessing.is_image_space(
                env.observation_space) else 'MlpPolicy')
  model = getattr(stable_baselines3, settings['algorithm'])(
      policy, env, seed=settings['seed'], device='cpu')
  start_s = time.monotonic()
  model.learn(settings['frames'])
  seconds = time.monotonic() - start_s
  tested = _vector(settings, 10_000 + settings['seed'])
  if settings['is_normalised']:
    statistics = env
    tested = vec_env.VecNormalize(
        tested, training=False, norm_obs=statistics.norm_obs,
        norm_obs_keys=statistics.norm_obs_keys, norm_reward=False)
    if statistics.norm_obs:
      tested.obs_rms = statistics.obs_rms
  returns, _ = evaluation.evaluate_policy(
      model, tested, settings['episodes'], deterministic=settings['is_greedy'],
      return_episode_rewards=True)
  print(json.dumps({'returns': [float(r) for r in returns],
                    'seconds': seconds, 'frames': model.num_timesteps}))


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
