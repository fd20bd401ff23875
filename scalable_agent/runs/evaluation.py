# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Plays whole games with a policy, during the training or afterwards."""

from collections.abc import Callable
import threading

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import base
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.scores import evaluations as evaluations_file


def episode_returns(
    env: base.FlowEnvironment, policy: policies.Policy,
    num_episodes: int,
    report: Callable[[int], None] = lambda num_episodes: None) -> list[float]:
  """Plays whole games in parallel and returns the unclipped returns.

  Every environment plays a fixed number of games. Otherwise short games would
  be favoured over long games that are still running.

  Args:
    env: `E` environments.
    num_episodes: number of games, at least `E`.
    report: called after each game with the number of games that are over.

  Returns:
    `num_episodes` returns: the returns of environment 0 in order, then the
    returns of environment 1, and so on.
  """
  returns = _play(env, policy, num_episodes, report, lambda: False)
  return [r for per_env in returns for r in per_env]


def returns_by_environment(
    env: base.FlowEnvironment, policy: policies.Policy,
    num_episodes: int) -> list[list[float]]:
  """Plays as `episode_returns` does; returns a list for each environment."""
  return _play(env, policy, num_episodes, lambda num_over: None, lambda: False)


def _play(env: base.FlowEnvironment, policy: policies.Policy,
          num_episodes: int, report: Callable[[int], None],
          is_stopped: Callable[[], bool]) -> list[list[float]]:
  """Plays until `is_stopped`; returns the returns of each environment."""
  quotas = np.full([env.num_envs], num_episodes // env.num_envs)
  quotas[:num_episodes % env.num_envs] += 1
  returns: list[list[float]] = [[] for _ in range(env.num_envs)]

  env_output: structs.StepOutput = env.initial()
  action_spec = policy.output_spec.action
  action = np.zeros([env.num_envs, *action_spec.shape], action_spec.dtype)
  state = policy.initial_state(env.num_envs)
  while not is_stopped() and any(
      len(r) < quota for r, quota in zip(returns, quotas)):
    output, state = policy.step(action, env_output, state)
    action = output.action
    env_output = env.step(action)
    for index in np.flatnonzero(env_output.info.episode_end):
      if len(returns[index]) < quotas[index]:
        returns[index].append(float(env_output.info.episode_return[index]))
        report(sum(map(len, returns)))
  return returns


class Evaluator:
  """Evaluates while training, and writes `evaluations.csv`."""

  def __init__(self, env: base.FlowEnvironment, policy: policies.Policy,
               learner: learner_lib.Learner, *, logdir: str, every_frames: int,
               num_episodes: int):
    """Reads the evaluations of earlier parts of the run.

    Args:
      env: `E` environments.
      policy: a policy without other users.
      learner: the learner to evaluate, with its frames restored.
      logdir: the directory of `evaluations.csv`.
      every_frames: number of frames between two evaluations.
      num_episodes: games per level.

    Raises:
      ConfigError: `evaluations.csv` cannot be written.
    """
    self._env = env
    self._policy = policy
    self._learner = learner
    self._logdir = logdir
    self._every_frames = every_frames
    self._num_episodes = num_episodes
    done = evaluations_file.start(logdir, learner.num_env_frames)
    self._last_frames = done[-1].num_env_frames if done else 0

  @property
  def is_due(self) -> bool:
    """Whether a multiple of `every_frames` was reached since the last time."""
    return (self._learner.num_env_frames // self._every_frames
            > self._last_frames // self._every_frames)

  @property
  def is_up_to_date(self) -> bool:
    """Whether no frames have arrived since the last evaluation."""
    return self._learner.num_env_frames == self._last_frames

  def evaluate(self, train_time_s: float,
               stop: threading.Event) -> evaluations_file.Evaluation | None:
    """Plays the games with the current weights, and writes the results.

    `train_time_s` are the seconds trained. Returns None if `stop` is set
    during the games.
    """
    learner = self._learner
    self._policy.refresh(learner.weights())
    by_level: dict[str, list[float]] = {
        name: [] for name in self._env.level_names}
    num_episodes = self._num_episodes * len(by_level)
    try:
      played = self._play(num_episodes, stop)
    except Exception:
      if stop.is_set():
        return None  # The signal has ended the environments as well.
      raise
    for name, returns in zip(self._env.level_names, played):
      by_level[name] += returns
    returns = [r for of_level in by_level.values() for r in of_level]
    if len(returns) < num_episodes:
      return None
    self._last_frames = learner.num_env_frames
    evaluation = evaluations_file.Evaluation(
        learner.num_env_frames, learner.num_updates, train_time_s,
        tuple(returns))
    evaluations_file.append(self._logdir, evaluation)
    return evaluation

  def _play(self, num_episodes: int,
            stop: threading.Event) -> list[list[float]]:
    while True:
      try:
        return _play(self._env, self._policy, num_episodes,
                     lambda num_over: None, stop.is_set)
      except errors.EnvironmentLostError:  # All games are started again.
        pass
