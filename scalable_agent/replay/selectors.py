# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Selectors choose the items of a store that are drawn. NumPy only.

`K` is the number of batches of a draw, `B` the size of a batch, `S` the number
of streams of the store. Draws are with replacement. Position `p` names the item
at time `p // S` of stream `p % S`.
"""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

# Rejection rounds before sampling from an explicit list of living items.
_MAX_ROUNDS = 16

# Arrays, numbers and texts by name, for a checkpoint.
State: TypeAlias = dict[str, np.ndarray | float | str]


class Changes(NamedTuple):
  """Positions, int64, that were added to or removed from a store.

  Some of the removed items may never have been there.
  """
  added: np.ndarray
  removed: np.ndarray


class Items(Protocol):
  """The items of a store of `S` streams, as selectors see a store."""
  num_streams: int

  @property
  def num_slots(self) -> int:
    """The largest number of items."""

  @property
  def first(self) -> np.ndarray:
    """The time of the first item of each stream, int64 `[S]`."""

  @property
  def end(self) -> np.ndarray:
    """The time after the last item of each stream, int64 `[S]`."""

  def slots(self, positions: np.ndarray) -> np.ndarray:
    """Returns numbers below `num_slots`, different for all living items."""

  def alive(self, positions: np.ndarray) -> np.ndarray:
    """Returns whether each item can be drawn, bool; takes any positions."""


class Selector(Protocol):
  """Chooses items; `state` is for checkpoints."""
  state: State

  def changed(self, items: Items, added: np.ndarray,
              removed: np.ndarray) -> None:
    """Takes the `Changes` of a store."""

  def select(self, items: Items, rng: np.random.Generator, num_batches: int,
             batch_size: int, first: np.ndarray | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """Draws items from a store that is not empty.

    `first`, int64 `[S]`, are times; older items are left out. Returns
    positions, int64 `[K, B]`, and importance weights, float32 `[K, B]`.
    """

  def update(self, items: Items, positions: np.ndarray,
             errors: np.ndarray) -> None:
    """Takes the errors of drawn items, which may be gone."""


class Uniform:
  """All items are equally likely."""

  def __init__(self) -> None:
    self.state: State = {}

  def changed(self, items: Items, added: np.ndarray,
              removed: np.ndarray) -> None:
    """See `Selector.changed`; uniform draws need no state."""
    del items, added, removed

  def select(self, items: Items, rng: np.random.Generator, num_batches: int,
             batch_size: int, first: np.ndarray | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """See `Selector.select`; all importance weights are 1."""
    first = items.first if first is None else first
    sizes = items.end - first
    ends = np.cumsum(sizes)
    num_draws = num_batches * batch_size
    positions = np.empty([num_draws], np.int64)
    missing = np.arange(num_draws)

    def position(item: np.ndarray) -> np.ndarray:
      stream = np.searchsorted(ends, item, 'right')
      # In a ring, this is the slot of the item.
      slot = item - ends[stream] + sizes[stream]
      time = first[stream] + (slot - first[stream]) % sizes[stream]
      return time * items.num_streams + stream

    # Mostly, few items are dead: the items before a gap.
    for _ in range(_MAX_ROUNDS):
      positions[missing] = position(rng.integers(ends[-1], size=len(missing)))
      missing = missing[~items.alive(positions[missing])]
      if not missing.size:
        break
    else:  # Many items are dead: columns that were used up.
      everything = position(np.arange(ends[-1]))
      positions[missing] = rng.choice(
          everything[items.alive(everything)], len(missing))
    shape = (num_batches, batch_size)
    return positions.reshape(shape), np.ones(shape, np.float32)

  def update(self, items: Items, positions: np.ndarray,
             errors: np.ndarray) -> None:
    """See `Selector.update`; errors do not count."""
    del items, positions, errors


class Recent:
  """Emphasises recent experience (Wang and Ross 2019, arXiv 1906.04009).

  Batch `k` of a round of `R` is drawn from the latest
  `max(N eta^(1000 k / R), min_size)` of `N` items. Each stream gives the same
  share of its items.
  """

  def __init__(self, inner: Selector, eta: float = 0.996,
               min_size: int = 5000, round_length: int = 50):
    """Makes a selector that draws from the latest items by `inner`.

    Args:
      inner: `Uniform` or `Prioritised`.
      eta: within (0, 1]; 1 draws from all items.
      min_size: the smallest number of items to draw from.
      round_length: `R`, the number of batches after which `k` starts over.
    """
    if not 0 < eta <= 1 or min_size < 1 or round_length < 1:
      raise ValueError(
          'eta must be within (0, 1], min_size and round_length positive, but '
          f'they are {eta}, {min_size}, {round_length}.')
    self.inner = inner
    self._eta = eta
    self._min_size = min_size
    self._round_length = round_length
    self._num_batches = 0

  @property
  def state(self) -> State:
    """See `Selector.state`: the state of `inner`, and a count of batches."""
    return {**self.inner.state, 'num_batches': self._num_batches}

  @state.setter
  def state(self, state: State) -> None:
    self._num_batches = int(state['num_batches'])
    self.inner.state = state

  def changed(self, items: Items, added: np.ndarray,
              removed: np.ndarray) -> None:
    self.inner.changed(items, added, removed)

  def size(self, num_items: int) -> float:
    """Returns the number of latest items that the next batch is drawn from."""
    k = self._num_batches % self._round_length
    size = num_items * self._eta ** (1000 * k / self._round_length)
    return min(max(size, self._min_size), num_items)

  def select(self, items: Items, rng: np.random.Generator, num_batches: int,
             batch_size: int, first: np.ndarray | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """See `Selector.select`; each batch is drawn from newer items."""
    first = items.first if first is None else first
    sizes = items.end - first
    drawn = []
    for _ in range(num_batches):
      share = self.size(sizes.sum()) / sizes.sum()
      drawn.append(self.inner.select(
          items, rng, 1, batch_size,
          items.end - np.ceil(share * sizes).astype(np.int64)))
      self._num_batches += 1
    positions, weights = map(np.concatenate, zip(*drawn))
    return positions, weights

  def update(self, items: Items, positions: np.ndarray,
             errors: np.ndarray) -> None:
    self.inner.update(items, positions, errors)


class MaxUse:
  """Drops items that were drawn often enough; `inner` draws.

  The draws are those of one item after the other: the first of two draws can
  use an item up.
  """

  def __init__(self, inner: Selector, max_use: int):
    """Drops items after `max_use` draws by `inner`."""
    self.inner = inner
    self._max_use = max_use
    # By slot; 0 in an empty slot.
    self._num_left = np.zeros([0], np.int64)

  @property
  def num_items(self) -> int:
    """The number of items that were not drawn `max_use` times."""
    return int(np.count_nonzero(self._num_left))

  @property
  def state(self) -> State:
    """See `Selector.state`. Uses are not saved."""
    return self.inner.state

  @state.setter
  def state(self, state: State) -> None:
    self.inner.state = state

  def changed(self, items: Items, added: np.ndarray,
              removed: np.ndarray) -> None:
    if len(self._num_left) != items.num_slots:
      self._num_left = np.zeros([items.num_slots], np.int64)
    self._num_left[items.slots(removed)] = 0
    self._num_left[items.slots(added)] = self._max_use
    self.inner.changed(items, added, removed)

  def select(self, items: Items, rng: np.random.Generator, num_batches: int,
             batch_size: int, first: np.ndarray | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """See `Selector.select`; ValueError if too few draws are left."""
    num_draws = num_batches * batch_size
    if (num_left := self._num_left.sum()) < num_draws:
      raise ValueError(f'{num_draws} draws, but {num_left} are left.')
    left = _Left(items, self._num_left)
    positions: list[np.ndarray] = []
    importance_weights: list[np.ndarray] = []
    while (num_more := num_draws - len(positions)):
      # Draws by priority depend on the draws before.
      num_at_once = num_more if isinstance(self.inner, Uniform) else 1
      drawn, weights = self.inner.select(left, rng, 1, num_at_once, first)
      for position, weight in zip(drawn[0, :, None], weights[0, :, None]):
        slot = items.slots(position)
        if not self._num_left[slot]:
          continue  # Used up by an earlier draw of this call.
        self._num_left[slot] -= 1
        if not self._num_left[slot]:
          self.inner.changed(left, position[:0], position)
        positions.append(position)
        importance_weights.append(weight)
    shape = (num_batches, batch_size)
    return (np.concatenate(positions).reshape(shape),
            np.concatenate(importance_weights).reshape(shape))

  def update(self, items: Items, positions: np.ndarray,
             errors: np.ndarray) -> None:
    """See `Selector.update`; dropped items stay dropped."""
    self.inner.update(_Left(items, self._num_left), positions, errors)


class _Left:
  """Items without dropped items."""

  def __init__(self, items: Items, num_left: np.ndarray):
    self.num_streams = items.num_streams
    self.num_slots = items.num_slots
    self.first = items.first
    self.end = items.end
    self.slots = items.slots
    self._items = items
    self._num_left = num_left

  def alive(self, positions: np.ndarray) -> np.ndarray:
    return (self._items.alive(positions)
            & (self._num_left[self.slots(positions)] > 0))
