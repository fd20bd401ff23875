# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A selector that draws by priority, from a tree of sums. NumPy only."""

import numpy as np
from scalable_agent import errors as errors_lib
from scalable_agent.replay import selectors

# Branching factor of the tree. Smaller: a deeper tree. Larger: wider sums.
_WIDTH = 16


class Prioritised:
  """Prioritised replay, proportional (Schaul et al. 2016, arXiv 1511.05952).

  An item has the priority `p = (error + epsilon)^exponent` and is drawn with
  the probability `P = p / sum(p)`. The importance weight is
  `(N P)^-importance_exponent`, divided by the largest importance weight of all
  `N` items of the store. New items have the largest priority so far.

  A batch is stratified: draw `i` of `B` falls on the `i`-th of `B` equal parts
  of the sum of priorities. `importance_exponent` can be set, to anneal the
  importance weights.
  """

  def __init__(self, exponent: float = 0.6, importance_exponent: float = 0.4,
               epsilon: float = 0.01, normalised: bool = True):
    """Makes a selector of no items.

    An exponent of 0 makes all items equally likely. An importance exponent of 1
    removes the bias of the draws. `epsilon`, which is added to each error, is
    positive, so that all items are drawn. With `normalised=False`, importance
    weights are not divided: several learners divide by the largest importance
    weight of all learners. Then `largest_weight` is that of this selector in
    all draws since a caller last set this attribute to 0.
    """
    if exponent < 0 or importance_exponent < 0 or epsilon <= 0:
      raise ValueError(
          'The exponents must be at least 0, and epsilon positive, but they '
          f'are {exponent}, {importance_exponent}, {epsilon}.')
    self.importance_exponent = importance_exponent
    self._exponent = exponent
    self._epsilon = epsilon
    self.largest_weight = 0.0
    self._normalised = normalised
    self._largest = 1.0
    # A tree, leaves first: slots are leaves. Each row has the children of a
    # node: the sums of the priorities below each child and, except for leaves,
    # the smallest priorities.
    self._sums: list[np.ndarray] = []
    self._minima: list[np.ndarray] = []
    self._num_slots = -1
    self._num_items = 0
    self._allocate(0)

  @property
  def state(self) -> selectors.State:
    """See `Selector.state`: priorities, and the largest priority so far.

    Priorities of another exponent are converted when the state is set.
    """
    return {'largest': self._largest, 'exponent': self._exponent,
            'priorities': self._sums[0].ravel()[:self._num_slots]}

  @state.setter
  def state(self, state: selectors.State) -> None:
    # With the exponent 0, all priorities are 1, and stay 1 until an update.
    exponent = float(state['exponent'])
    power = self._exponent / exponent if exponent else 0.0
    priorities = np.asarray(state['priorities'])
    priorities = np.where(priorities > 0, priorities ** power, 0.0)
    self._largest = float(state['largest']) ** power
    self._allocate(len(priorities))
    self._num_items = int(np.count_nonzero(priorities))
    self._set(np.arange(len(priorities)), priorities)

  def changed(self, items: selectors.Items, added: np.ndarray,
              removed: np.ndarray) -> None:
    """See `Selector.changed`; new items get the largest priority."""
    self._allocate(items.num_slots)
    # Items that were used up are removed twice.
    self._num_items += len(added) - int(np.count_nonzero(
        self._sums[0].take(items.slots(removed))))
    # An added item may have the slot of a removed one, and comes last.
    self._set(items.slots(np.concatenate([removed, added])),
              np.repeat([0.0, self._largest], [len(removed), len(added)]))

  def select(self, items: selectors.Items, rng: np.random.Generator,
             num_batches: int, batch_size: int, first: np.ndarray | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """See `Selector.select`; the draws are stratified."""
    parts = (np.arange(batch_size)
             + rng.random([num_batches, batch_size])) / batch_size
    if first is None:
      first, total = items.first, float(self._sums[-1].sum())
      masses = parts * total
    else:
      masses, total = self._masses(items, first, parts)
    smallest = self._minima[-1].min()
    slots = self._find(masses.ravel())
    length = items.num_slots // items.num_streams
    stream, slot = np.divmod(slots, length)
    oldest = items.first[stream]
    time = oldest + (slot - oldest) % length
    # The number of items and the sum of priorities cancel out.
    importance_weights = (self._sums[0].take(slots) / smallest
                          ) ** -self.importance_exponent
    if not self._normalised:
      number = min(self._num_items, np.sum(items.end - first))
      largest = float(number * smallest / total) ** -self.importance_exponent
      importance_weights *= largest
      self.largest_weight = max(self.largest_weight, largest)
    shape = (num_batches, batch_size)
    return ((time * items.num_streams + stream).reshape(shape),
            importance_weights.astype(np.float32).reshape(shape))

  def update(self, items: selectors.Items, positions: np.ndarray,
             errors: np.ndarray) -> None:
    """See `Selector.update`; DivergedError unless all errors are finite."""
    positions, errors = np.ravel(positions), np.ravel(errors)
    if not np.isfinite(errors).all():
      raise errors_lib.DivergedError(
          'Training diverged: an error of --selector=prioritised is not '
          'finite. Train with a lower --learning_rate or with '
          '--clip_gradient_norm.')
    priorities = (np.abs(errors.astype(np.float64)) + self._epsilon
                  ) ** self._exponent
    alive = items.alive(positions)
    if alive.any():
      self._largest = max(self._largest, float(priorities[alive].max()))
      self._set(items.slots(positions[alive]), priorities[alive])

  def _allocate(self, num_slots: int) -> None:
    if self._num_slots == num_slots:
      return
    self._num_slots = num_slots
    self._sums, self._minima = [], []
    size = num_slots + 1  # The last leaf is the end of the last slot.
    while size > 1 or not self._minima:
      size = -(-size // _WIDTH)
      if self._sums:
        self._minima.append(np.full([size, _WIDTH], np.inf))
      self._sums.append(np.zeros([size, _WIDTH]))

  def _set(self, slots: np.ndarray, priorities: np.ndarray) -> None:
    # For slots that occur twice, the last priority counts.
    self._sums[0].reshape(-1)[slots] = priorities
    nodes = slots // _WIDTH
    sums = self._sums[0].take(nodes, 0)
    # Empty slots do not count.
    minima = np.where(sums > 0, sums, np.inf)
    for all_sums, all_minima in zip(self._sums[1:], self._minima):
      all_sums.reshape(-1)[nodes] = sums.sum(1)
      all_minima.reshape(-1)[nodes] = minima.min(1)
      nodes = nodes // _WIDTH
      sums, minima = all_sums.take(nodes, 0), all_minima.take(nodes, 0)

  def _find(self, masses: np.ndarray) -> np.ndarray:
    """Returns the slots where the cumulative sums exceed `masses`."""
    nodes, rows = np.zeros(len(masses), np.int64), np.arange(len(masses))
    for all_sums in reversed(self._sums):
      sums = all_sums.take(nodes, 0).cumsum(1)
      # Rounding must not lead to an empty slot.
      masses = np.minimum(masses, sums[:, -1] * (1 - 2**-52))
      child = (sums <= masses[:, None]).argmin(1)
      masses = masses - np.where(child > 0, sums[rows, child - 1], 0.0)
      nodes = nodes * _WIDTH + child
    return nodes

  def _masses(self, items: selectors.Items, first: np.ndarray,
              parts: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns the masses of `parts`, in [0, 1), and the sum of priorities.

    Items before `first` do not count.
    """
    length = items.num_slots // items.num_streams
    base = np.arange(items.num_streams) * length
    begin, size = first % length, items.end - first
    # The part of a ring from `begin` on, and the part after the wrap.
    starts = np.concatenate([base + begin, base])
    ends = np.concatenate([base + np.minimum(begin + size, length),
                           base + np.maximum(begin + size - length, 0)])
    before = self._before(starts)
    sums = self._before(ends) - before
    total = np.cumsum(sums)
    masses = parts * total[-1]
    piece = np.minimum(np.searchsorted(total, masses, 'right'), len(sums) - 1)
    return (masses - total[piece] + sums[piece] + before[piece],
            float(total[-1]))

  def _before(self, slots: np.ndarray) -> np.ndarray:
    """Returns the sums of the priorities of all smaller slots."""
    sums, nodes = np.zeros(len(slots)), slots
    for all_sums in self._sums:
      nodes, child = np.divmod(nodes, _WIDTH)
      smaller = np.arange(_WIDTH) < child[:, None]
      sums += np.where(smaller, all_sums.take(nodes, 0), 0.0).sum(1)
    return sums
