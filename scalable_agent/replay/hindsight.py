# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Hindsight experience replay (Andrychowicz et al. 2017, arXiv 1707.01495).

A drawn transition gets another goal, which was achieved in the same game. So
even a failed game shows how to reach a goal. NumPy only.
"""

from collections.abc import Callable
import dataclasses

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.replay import steps
from scalable_agent.replay import views


@dataclasses.dataclass(frozen=True)
class Hindsight:
  """Transitions, mostly with a goal that was achieved later.

  Observations are dictionaries with `achieved_goal` and `desired_goal`.

  Attributes:
    n_step: makes the transitions.
    compute_reward: returns the rewards `[N]` for achieved and desired goals
      `[N, ...]`.
    strategy: when the new goal was achieved. `future`: after a random step of
      the game, from the step of the transition on. `final`: after the last step
      of the game. `episode`: at any time of the game. Of a running game, only
      the known steps count.
    num_relabelled: the mean number of transitions with a new goal for each
      transition that keeps the old goal.
    compute_success: returns whether achieved goals `[N, ...]` end an episode
      with desired goals, bool `[N]`. None: no success ends an episode.
  """
  n_step: views.NStep
  compute_reward: Callable[[np.ndarray, np.ndarray], np.ndarray]
  strategy: str
  num_relabelled: float
  compute_success: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

  def __call__(self, store: steps.StepStore, positions: np.ndarray,
               rng: np.random.Generator) -> structs.Transition:
    """See `views.View`; transitions get new goals by chance."""
    found = self.n_step(store, positions, rng)
    share = self.num_relabelled / (self.num_relabelled + 1)
    chosen = np.flatnonzero(rng.random(len(positions)) < share)
    if not len(chosen):
      return found
    windows = store.windows(positions[chosen], self.n_step.num_steps)
    goals = store.observations(
        windows, self._goal_steps(store, windows, rng), 'achieved_goal')
    rewards, length, terminated = self._relabel(store, windows, goals)
    next_observation = store.observations(windows, length)
    found.reward[chosen], found.discount[chosen] = self.n_step.fold(
        rewards, length, terminated)
    for name, array in found.next_observation.items():
      array[chosen] = next_observation[name]
    for observation in (found.observation, found.next_observation):
      observation['desired_goal'][chosen] = goals
    return found

  def _goal_steps(self, store: steps.StepStore, windows: steps.Windows,
                  rng: np.random.Generator) -> np.ndarray:
    """Returns the number of steps from the start to each goal."""
    if self.strategy == 'final':
      return windows.num_left
    # The first step achieves a goal after the start.
    first = -store.num_before(windows) if self.strategy == 'episode' else 1
    return rng.integers(first, windows.num_left + 1)

  def _relabel(
      self, store: steps.StepStore, windows: steps.Windows, goals: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns rewards, lengths, and whether windows end with a termination."""
    rewards = np.zeros(windows.slots.shape, np.float32)
    length, terminated = windows.length.copy(), windows.terminated.copy()
    if self.compute_success is not None:
      # An episode that ended by reaching its own goal does not end for a
      # relabelled goal.
      terminated &= ~self.compute_success(*(
          store.observations(windows, windows.length, name)
          for name in ('achieved_goal', 'desired_goal')))
    for step in range(1, windows.slots.shape[1] + 1):
      inside = step <= length
      achieved = store.observations(
          windows, np.minimum(step, windows.length), 'achieved_goal')
      rewards[:, step - 1] = self.compute_reward(achieved, goals)
      if self.compute_success is not None:
        ends = inside & self.compute_success(achieved, goals)
        length[ends], terminated[ends] = step, True
    return rewards, length, terminated
