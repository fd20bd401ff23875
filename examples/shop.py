# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Two problems as users write them: `shop/Inventory-v0` and `shop/Pricing-v0`.

Rewards are in hundreds and thousands, and observations and actions have the
units of the problem. For example:

  python experiment.py --mode=check --level_name=examples.shop:shop/Pricing-v0
"""

from typing import Any

import gymnasium
from gymnasium import spaces
import numpy as np

_PRICE = np.array([12, 20, 7])
_COST = np.array([7, 11, 4])
_STORAGE = np.array([.3, .5, .2])
_DEMAND = np.array([20, 12, 30])
_WEEKDAYS = (1, .8, .8, 1, 1.4, 1.8, .4)
_MISSED = 2
_FULL = 200
_PIECES_PER_ORDER = 5
_MAKING, _KEEPING = 40, 2


class Inventory(gymnasium.Env[dict[str, Any], np.ndarray]):
  """Three goods in stock: how much to order each day, in fives.

  Orders arrive on the next day. A good policy earns about 17,800 in the 60 days
  of an episode.
  """

  def __init__(self) -> None:
    goods = spaces.Box(0, np.inf, (3,), np.float32)
    self.observation_space = spaces.Dict({
        'stock': goods, 'arriving': goods, 'weekday': spaces.Discrete(7)})
    self.action_space = spaces.MultiDiscrete([11, 11, 11])

  def reset(self, *, seed: int | None = None,
            options: dict[str, Any] | None = None
            ) -> tuple[dict[str, Any], dict[str, Any]]:
    """Starts on a random weekday, with some stock."""
    super().reset(seed=seed, options=options)
    self._weekday = int(self.np_random.integers(7))
    self._stock = np.array([40., 30., 60.])
    self._arriving = np.zeros(3)
    return self._observation(), {}

  def step(self, action: np.ndarray
           ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
    """Sells for a day; the time limit of the level ends the episode."""
    self._stock = np.minimum(self._stock + self._arriving, _FULL)
    demand = self.np_random.poisson(_DEMAND * _WEEKDAYS[self._weekday])
    sold = np.minimum(demand, self._stock)
    self._stock -= sold
    self._arriving = _PIECES_PER_ORDER * np.asarray(action, float)
    reward = (_PRICE @ sold - _COST @ self._arriving - _STORAGE @ self._stock
              - _MISSED * (demand - sold).sum())
    self._weekday = (self._weekday + 1) % 7
    return self._observation(), float(reward), False, False, {}

  def _observation(self) -> dict[str, Any]:
    return {'stock': self._stock.astype(np.float32),
            'arriving': self._arriving.astype(np.float32),
            'weekday': self._weekday}


class Pricing(gymnasium.Env[np.ndarray, np.ndarray]):
  """The price to ask, and the pieces to make, in a market that moves.

  The best constant action earns about 76,000 in the 50 days of an episode.
  """

  def __init__(self) -> None:
    self.observation_space = spaces.Box(
        np.array([200, 0, 0], np.float32),
        np.array([600, np.inf, 50], np.float32))
    self.action_space = spaces.Box(0, 500, (2,), np.float32)

  def reset(self, *, seed: int | None = None,
            options: dict[str, Any] | None = None
            ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts at a random price of the market, without stock."""
    super().reset(seed=seed, options=options)
    self._market = float(self.np_random.uniform(200, 600))
    self._stock = 0.
    self._day = 0
    return self._observation(), {}

  def step(self, action: np.ndarray
           ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
    """Makes and sells for a day; the level's time limit ends the episode."""
    price, made = np.asarray(action, float)
    self._stock += made
    demand = max(0., self._market - 1.2 * price + self.np_random.normal(0, 10))
    sold = min(demand, self._stock)
    self._stock -= sold
    reward = .1 * (price * sold - _MAKING * made - _KEEPING * self._stock)
    self._market = float(np.clip(
        self._market + self.np_random.normal(0, 25), 200, 600))
    self._day += 1
    return self._observation(), float(reward), False, False, {}

  def _observation(self) -> np.ndarray:
    return np.array([self._market, self._stock, self._day], np.float32)


gymnasium.register('shop/Inventory-v0', Inventory, max_episode_steps=60)
gymnasium.register('shop/Pricing-v0', Pricing, max_episode_steps=50)
