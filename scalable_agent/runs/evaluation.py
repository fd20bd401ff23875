# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Plays whole games with a policy, during the training or afterwards."""

from collections.abc import Callable, Mapping, Sequence
import threading
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.environments import base
from scalable_agent.experience import episodes
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import learner as learner_lib
from scalable_agent.runs import checkpointing
from scalable_agent.runs import messages
from scalable_agent.scores import evaluations as evaluations_file
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files


class Games(NamedTuple):
  """Whole games.

  Attributes:
    returns: unclipped returns of each environment, in order. A cut game is the
      last game of its environment.
    cut: the number of steps of each cut game.
    metrics: of each game that was not cut, by name.
  """
  returns: list[list[float]]
  cut: list[int]
  metrics: Sequence[Mapping[str, float]] = ()

  @property
  def all_returns(self) -> list[float]:
    """The returns of environment 0, then of environment 1, and so on."""
    return [r for of_environment in self.returns for r in of_environment]


def play(env: base.FlowEnvironment, policy: policies.Policy,
         num_episodes: int, config: config_lib.Config,
         is_stopped: Callable[[], bool] = lambda: False) -> Games:
  """Plays whole games in parallel.

  Every environment plays a fixed number of games. Otherwise short games would
  be favoured over long games that are still running. If environments are lost,
  all games are played again, up to `config.max_environment_restarts` times.

  Args:
    env: `E` environments.
    num_episodes: number of games, at least `E`.
    config: has `max_episode_steps`, `max_environment_restarts` and
      `progress_secs`.
    is_stopped: ends the games when it returns True.

  Raises:
    EnvironmentProcessError: environments were lost in each try.
  """
  num_lost = 0
  while True:
    try:
      return _play(env, policy, num_episodes, config, is_stopped)
    except errors.EnvironmentLostError:
      num_lost += 1
      if num_lost > config.max_environment_restarts:
        raise errors.EnvironmentProcessError(
            f'{_levels(env)}: environments were lost in each of {num_lost} '
            'tries to play all games (--max_environment_restarts).') from None
      print(f'{_levels(env)}: all games are played again, since environments '
            'were lost.', flush=True)


def _play(env: base.FlowEnvironment, policy: policies.Policy,
          num_episodes: int, config: config_lib.Config,
          is_stopped: Callable[[], bool]) -> Games:
  quotas = np.full([env.num_envs], num_episodes // env.num_envs)
  quotas[:num_episodes % env.num_envs] += 1
  returns: list[list[float]] = [[] for _ in range(env.num_envs)]
  cut: list[int] = []
  metrics: list[dict[str, float]] = []
  is_due, reported = timing.Interval(config.progress_secs), -1

  env_output: structs.StepOutput = env.initial()
  action_spec = policy.output_spec.action
  action = np.zeros([env.num_envs, *action_spec.shape], action_spec.dtype)
  state = policy.initial_state(env.num_envs)
  while not is_stopped() and any(
      len(r) < quota for r, quota in zip(returns, quotas)):
    output, state = policy.step(action, env_output, state)
    action = output.action
    env_output = env.step(action)
    info = env_output.info
    is_cut = ~info.episode_end & (
        info.episode_step >= config.max_episode_steps)
    for index in np.flatnonzero(info.episode_end | is_cut):
      if len(returns[index]) < quotas[index]:
        returns[index].append(float(info.episode_return[index]))
        if not is_cut[index]:
          metrics.append(episodes.metrics(info, int(index)))
        else:  # Only the end of its game resets an environment.
          quotas[index] = len(returns[index])
          num_steps = int(info.episode_step[index])
          cut.append(num_steps)
          print(f'{env.level_names[index]}: a game was cut after '
                f'{messages.count(num_steps, "step")} (--max_episode_steps). '
                'Its return so far counts. Its environment plays no further '
                'game.', flush=True)
    if is_due():
      reported = _report(env, info, returns, quotas, reported)
  return Games(returns, cut, metrics)


def _report(env: base.FlowEnvironment, info: structs.StepOutputInfo,
            returns: list[list[float]], quotas: np.ndarray,
            reported: int) -> int:
  """Prints how many games are over; returns the number.

  Args:
    reported: the number of the line before, -1 without one. If no game has
      ended since that line, this line has advice.
  """
  num_over = sum(map(len, returns))
  text = f'{_levels(env)}: {num_over} of {sum(quotas)} games are over'
  running = [int(step) for step, r, quota in zip(
      info.episode_step, returns, quotas) if len(r) < quota]
  if running:
    text += (', the longest running game has '
             f'{messages.count(max(running), "step")}')
    if num_over == reported:
      text += '. If games never end, set a lower --max_episode_steps'
  print(f'{text}.', flush=True)
  return num_over


def _levels(env: base.FlowEnvironment) -> str:
  return ', '.join(dict.fromkeys(env.level_names[:3]))


class Evaluator:
  """Evaluates while training: `evaluations.csv`, and the weights in `best/`.

  `metrics` are the means of the last evaluation, by name.
  """

  def __init__(self, env: base.FlowEnvironment, policy: policies.Policy,
               learner: learner_lib.Learner, config: config_lib.Config,
               best: checkpointing.BestCheckpoint | None = None):
    """Reads the evaluations of earlier parts of the run.

    Args:
      env: `E` environments.
      policy: a policy without other users.
      learner: the learner to evaluate, with its frames restored.
      config: has the log directory, the frames between two evaluations, and
        the number of games per level.
      best: keeps the best weights of all evaluations.

    Raises:
      ConfigError: `evaluations.csv` cannot be written.
    """
    self._env = env
    self._policy = policy
    self._learner = learner
    self._config = config
    self._best = best
    self.metrics: dict[str, float] = {}
    self._directory = files.SameDirectory(config.logdir)
    done = evaluations_file.start(config.logdir, learner.num_env_frames)
    self._last_frames = done[-1].num_env_frames if done else 0

  @property
  def is_due(self) -> bool:
    """Whether a multiple of `eval_every_frames` was reached since then."""
    every = self._config.eval_every_frames
    return (self._learner.num_env_frames // every
            > self._last_frames // every)

  @property
  def is_up_to_date(self) -> bool:
    """Whether no frames have arrived since the last evaluation."""
    return self._learner.num_env_frames == self._last_frames

  def evaluate(self, train_time_s: float,
               stop: threading.Event) -> evaluations_file.Evaluation | None:
    """Plays the games with the current weights; writes and prints the results.

    `train_time_s` are the seconds trained. Returns None if `stop` is set
    during the games.
    """
    learner = self._learner
    self._policy.refresh(learner.weights())
    by_level: dict[str, list[float]] = {
        name: [] for name in self._env.level_names}
    num_episodes = self._config.eval_num_episodes * len(by_level)
    try:
      played = play(self._env, self._policy, num_episodes, self._config,
                    stop.is_set)
    except Exception:
      if stop.is_set():
        return None  # The signal has ended the environments as well.
      raise
    for name, returns in zip(self._env.level_names, played.returns):
      by_level[name] += returns
    returns = [r for of_level in by_level.values() for r in of_level]
    if stop.is_set() and len(returns) < num_episodes:
      return None
    self._last_frames = learner.num_env_frames
    evaluation = evaluations_file.Evaluation(
        learner.num_env_frames, learner.num_updates, train_time_s,
        tuple(returns))
    self.metrics = episodes.mean_metrics(played.metrics)
    end = episodes.in_words(self.metrics)
    try:
      if self._best and self._best.offer(evaluation.mean, train_time_s):
        end += f', the best so far: {self._best.logdir}'
    except errors.SaveError as e:
      print(f'{e} The weights of this evaluation, the best so far, are not '
            'kept. The program continues.', flush=True)
    try:
      self._directory.check()
      # Last: an evaluation without this line is made again.
      evaluations_file.append(self._config.logdir, evaluation)
    except errors.SaveError as e:
      print(f'{e} The program continues; evaluations.csv will lack the '
            f'evaluation at {evaluation.num_env_frames:,} frames.', flush=True)
    print(f'Evaluation at {evaluation.num_env_frames:,} frames: mean '
          f'{evaluation.mean:.2f}, standard deviation {evaluation.std:.2f} '
          f'over {len(returns)} episodes{end}', flush=True)
    return evaluation
