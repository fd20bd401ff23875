# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sequences of steps for agents with memory. NumPy only.

Sources: Kapturowski et al. 2019 (R2D2): a sequence begins with the recurrent
state of the actor. Sequences overlap if they are longer than the distance of
their starts, but each step is stored once.
"""

import dataclasses

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
from scalable_agent.replay import starts
from scalable_agent.replay import steps
from scalable_agent.replay import views


@dataclasses.dataclass(frozen=True)
class Sequences:
  """Sequences with the last observations of truncated games as entries.

  The first `burn_in` entries are not learned. Rewards and discounts are those
  of `n_step`, in which windows also end with the last entry.
  """
  n_step: views.NStep
  burn_in: int

  def __call__(self, store: starts.Starts, positions: np.ndarray,
               rng: np.random.Generator) -> structs.Sequence:
    """See `views.View`."""
    del rng
    stream, first_time, state = store.read(positions)
    place = lambda time: time * store.num_streams + stream
    flags = store.steps.flags(
        place(first_time + np.arange(store.length)[:, None]))
    offset, is_last = _layout(flags)
    time = first_time + offset
    windows = store.steps.windows(
        place(time - is_last).ravel(), self.n_step.num_steps)
    shaped = lambda a: a.reshape(*time.shape, *a.shape[1:])
    observation = map_nests(shaped, store.steps.observations(
        windows, is_last.ravel().astype(np.int64)))
    action, reward = store.steps.led_to(place(time))
    flags = np.take_along_axis(flags, offset, 0)
    done = (flags & (steps.TERMINATED | steps.TRUNCATED | steps.NO_STEP) != 0
            ) & ~is_last
    env_outputs = structs.StepOutput(reward, structs.NO_INFO, done, observation)
    return structs.Sequence(
        env_outputs, action, state, *self._targets(
            store.steps, windows, is_last, flags))

  def _targets(
      self, store: steps.StepStore, windows: steps.Windows,
      is_last: np.ndarray, flags: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns reward, discount, next and known; arguments are `[E, N]`."""
    num_entries, size = is_last.shape
    learned = slice(self.burn_in * size, (num_entries - 1) * size)
    windows = steps.Windows(*[x[learned] for x in windows])
    entry = np.arange(self.burn_in, num_entries - 1)[:, None]
    known = ~is_last[self.burn_in:-1] & (
        flags[self.burn_in + 1:] & steps.NO_STEP == 0)
    length = np.where(known, np.minimum(
        windows.length.reshape(-1, size), num_entries - 1 - entry), 0)
    reward, discount = self.n_step.fold(
        store.rewards(windows), length.ravel(),
        windows.terminated & (length.ravel() == windows.length))
    shaped = lambda a: np.where(known, a.reshape(-1, size), np.float32(0))
    return (shaped(reward), shaped(discount),
            (entry - self.burn_in + np.maximum(length, 1)).astype(np.int32),
            known.astype(np.float32))


def _layout(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Makes room for the last observations of truncated games.

  Args:
    flags: uint8 `[E, N]`, the flags of slots in a row.

  Returns:
    For each of `E` entries the index of its slot, int64 `[E, N]`, and whether
    the entry is the last observation before this slot.
  """
  both = steps.TRUNCATED | steps.NEW_GAME
  has_last = flags & both == both
  has_last[0] = False  # The step that led to the slot is not in the sequence.
  entry = np.arange(len(flags))[:, None] + np.cumsum(has_last, 0)
  offset, is_last = np.zeros_like(entry), np.zeros_like(has_last)
  slot, column = np.nonzero(entry < len(flags))
  offset[entry[slot, column], column] = slot
  slot, column = np.nonzero(has_last & (entry <= len(flags)))
  before = entry[slot, column] - 1, column
  offset[before], is_last[before] = slot, True
  return offset, is_last
