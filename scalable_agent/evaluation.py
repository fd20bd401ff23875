# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Whole games with a trained policy."""

from collections.abc import Callable

import numpy as np
from scalable_agent import environments
from scalable_agent import policies
from scalable_agent import structs


def episode_returns(
    env: environments.FlowEnvironment, policy: policies.Policy,
    num_episodes: int,
    report: Callable[[int], None] = lambda num_episodes: None) -> list[float]:
  """Plays whole games in parallel and returns their unclipped returns.

  Every environment plays a fixed number of games, so that short games are not
  favoured over long ones that are still running.

  Args:
    env: `E` environments.
    policy: the policy, with its weights.
    num_episodes: how many games, at least `E`.
    report: called after each game with the number of games that are over.

  Returns:
    `num_episodes` returns: those of environment 0 in order, then those of
    environment 1, and so on.
  """
  quotas = np.full([env.num_envs], num_episodes // env.num_envs)
  quotas[:num_episodes % env.num_envs] += 1
  returns: list[list[float]] = [[] for _ in range(env.num_envs)]

  env_output: structs.StepOutput = env.initial()
  action_spec = policy.output_spec.action
  action = np.zeros([env.num_envs, *action_spec.shape], action_spec.dtype)
  state = policy.initial_state(env.num_envs)
  while any(len(r) < quota for r, quota in zip(returns, quotas)):
    output, state = policy.step(action, env_output, state)
    action = output.action
    env_output = env.step(action)
    for index in np.flatnonzero(env_output.info.episode_end):
      if len(returns[index]) < quotas[index]:
        returns[index].append(float(env_output.info.episode_return[index]))
        report(sum(map(len, returns)))
  return [r for per_env in returns for r in per_env]
