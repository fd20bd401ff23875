# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Views make data for the learner from chosen items. NumPy only."""

import dataclasses
from typing import Protocol, TypeVar

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.replay import steps

_Store = TypeVar('_Store', contravariant=True)


class View(Protocol[_Store]):
  """Makes the data of a sample from `N` items of a store."""

  def __call__(self, store: _Store, positions: np.ndarray,
               rng: np.random.Generator
               ) -> structs.Unroll | structs.Transition | structs.Sequence:
    """Returns an `Unroll` or `Sequence` of `N` columns, or `N` transitions.

    `positions`, int64 `[N]`, are of items that can be drawn. `rng` is for views
    that choose by chance.
    """


@dataclasses.dataclass(frozen=True)
class NStep:
  """Transitions over `num_steps`, or up to the end of the episode.

  A window also ends at the newest step. The discount of a window of `k` steps
  is `gamma^k`, and 0 only if the episode terminated after these steps. Rewards
  are clipped and then scaled before the discount.
  """
  discount: float
  num_steps: int = 1
  reward_clipping: str = 'none'
  reward_scale: float = 1.

  def __call__(self, store: steps.StepStore, positions: np.ndarray,
               rng: np.random.Generator) -> structs.Transition:
    del rng
    windows = store.windows(positions, self.num_steps)
    return structs.Transition(
        store.observations(windows, 0), store.actions(windows),
        *self.fold(store.rewards(windows), windows.length, windows.terminated),
        store.observations(windows, windows.length))

  def fold(self, rewards: np.ndarray, length: np.ndarray,
           terminated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the discounted sums and the discounts, float32 `[N]`.

    Args:
      rewards: `[N, n]`.
      length: int64 `[N]`, the number of rewards that count.
      terminated: bool `[N]`, whether the episode terminated after these steps.
    """
    rewards = self.reward_scale * clip_rewards(rewards, self.reward_clipping)
    powers = self.discount ** np.arange(self.num_steps + 1)
    inside = np.arange(self.num_steps) < length[:, None]
    total = np.sum(np.where(inside, rewards * powers[:-1], 0.0), axis=1)
    discount = np.where(terminated, 0.0, powers[length])
    return total.astype(np.float32), discount.astype(np.float32)


def clip_rewards(rewards: np.ndarray, mode: str) -> np.ndarray:
  """Clips arrays as `losses.actor_critic.clip_rewards` clips tensors."""
  if mode == 'none':
    return rewards
  if mode == 'abs_one':
    return np.clip(rewards, -1.0, 1.0)
  if mode == 'soft_asymmetric':
    squashed = np.tanh(rewards / 5.0)
    return 5.0 * np.where(rewards < 0, 0.3 * squashed, squashed)
  raise ValueError(f'Unknown reward clipping {mode!r}.')
