# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The latest steps of many environments, each stored once. NumPy only.

A stream is the flow of steps of one environment. A stream has `length` slots,
and a new step replaces the oldest step. Slot `t` has the observation of step
`t`, and the action and reward that led to it, like an entry of an unroll. Times
`t` continue when the slots start over.

The transition that starts at time `t` of stream `s` has the position
`t * num_streams + s`. Positions are never reused, and a position alone shows
whether its slot was overwritten.
"""

import collections
from collections.abc import Sequence
import operator
from typing import NamedTuple

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
from scalable_agent.experience.nests import parts_of
from scalable_agent.replay import games
from scalable_agent.replay import selectors
from scalable_agent.replay import texts

# Bits of the flags of a slot, about the step that led to the slot.
TERMINATED = 1  # The step ended an episode: a game, or one life.
TRUNCATED = 2  # A time limit, and nothing else, ended the game.
NEW_GAME = 4  # The observation of the slot begins a game.
NO_STEP = 8  # There was no step: the stream began or restarted here.


class Columns(NamedTuple):
  """Steps of one stream, one after the other.

  Attributes:
    observation: nest of `[N, ...]`; only the newest frame of a stack.
    action: `[N, ...]`.
    reward: float32 `[N]`.
    flags: uint8 `[N]`.
    last_observations: nest of `[M, ...]`, the last observation of the game
      before each flag `NEW_GAME`.
  """
  observation: structs.Nest
  action: np.ndarray
  reward: np.ndarray
  flags: np.ndarray
  last_observations: structs.Nest


class StepStore:
  """The latest steps of `num_streams` environments.

  A slot has only the newest frame of a stack. As in ALE, a stack has zeros for
  frames before the game, and continues when a lost life ends an episode.

  Attributes:
    length: slots per stream.
    count: int64 `[num_streams]`, the steps of each stream ever added.
    first: int64 `[num_streams]`, the time of the first start of each stream.
    end: int64 `[num_streams]`, the time after the last start of each stream.
  """

  def __init__(self, spec: structs.EnvironmentSpec, capacity: int,
               num_streams: int, stacked: bool = False):
    """Makes an empty store of `capacity` slots, or a few more.

    If `stacked`, an observation is a stack of frames `[N, ...]`, oldest first,
    and each stack is the stack before, shifted by a frame.
    """
    self.num_streams = num_streams
    self.length = -(-capacity // num_streams)
    self._stacked = stacked
    self._texts = texts.Texts(spec.observation)
    observation, action, self._num_frames = _slot_specs(
        spec._replace(observation=self._texts.spec), stacked)
    slots = self.length * num_streams
    # The machine gives memory when an array is first written.
    empty = lambda count, s: np.zeros((count, *s.shape), s.dtype)
    self._observation = map_nests(lambda s: empty(slots, s), observation)
    self._action = empty(slots, action)
    self._reward = np.zeros([slots], np.float32)
    self._flags = np.zeros([slots], np.uint8)
    self._games = games.Games(
        num_streams, slots, map_nests(lambda s: empty(1, s), observation))
    self.count = np.zeros([num_streams], np.int64)
    self.first = np.zeros([num_streams], np.int64)
    self.end = np.zeros([num_streams], np.int64)
    self._joins = [False] * num_streams

  @property
  def num_slots(self) -> int:
    """See `selectors.Items.num_slots`."""
    return len(self._reward)

  def slots(self, positions: np.ndarray) -> np.ndarray:
    """Returns the slots, numbers below `num_slots`, of starts."""
    time, stream = np.divmod(positions, self.num_streams)
    return stream * self.length + time % self.length

  def alive(self, positions: np.ndarray) -> np.ndarray:
    """Returns whether each transition can be drawn, bool."""
    time, stream = np.divmod(positions, self.num_streams)
    after = self._flags[self._slot(stream, time + 1)]
    return ((self.first[stream] <= time) & (time < self.end[stream])
            & (after & NO_STEP == 0))

  def add(self, unroll: structs.Unroll) -> selectors.Changes:
    """Adds the steps of an unroll; columns may be of any environments.

    The first unroll of an environment that has started or restarted also adds
    the observation of entry 0, and does not join up with older steps. Raises
    ValueError if the unroll is too long, or an environment unknown.
    """
    steps, streams = unroll.steps, unroll.start.environment
    if len(streams) and not (
        0 <= min(streams) <= max(streams) < self.num_streams):
      raise ValueError(f'Environments {streams}, but the replay has '
                       f'{self.num_streams}.')
    if len(steps.env_outputs.reward) + self._num_frames > self.length:
      raise ValueError(
          f'A replay with {self.length} steps per environment is too small for '
          f'unrolls of {len(steps.env_outputs.reward) - 1}.')
    lasts = collections.defaultdict(list)
    for last in sorted(unroll.last_observations, key=lambda last: last.time):
      lasts[last.column].append(last.observation)
    changes = [self._add_column(unroll, column, int(stream), lasts[column])
               for column, stream in enumerate(streams)]
    return selectors.Changes(*map(np.concatenate, zip(*changes)))

  def _add_column(self, unroll: structs.Unroll, column: int, stream: int,
                  lasts: Sequence[structs.Nest]) -> selectors.Changes:
    env_outputs = unroll.steps.env_outputs
    # Only the first step of an environment has no step before it.
    joins = self._joins[stream] and env_outputs.info.episode_step[0, column] > 0
    self._joins[stream] = True
    entries = (slice(1 if joins else 0, None), column)
    done = env_outputs.done[entries]
    truncated = env_outputs.truncated[entries] & done
    flags = (TERMINATED * (done & ~truncated) + TRUNCATED * truncated
             + NEW_GAME * env_outputs.info.episode_end[entries]
             ).astype(np.uint8)
    if not joins:
      flags[0] = NO_STEP
    newest = (lambda a: a[:, -1]) if self._stacked else (lambda a: a)
    num_ended = np.count_nonzero(flags & NEW_GAME)
    if num_ended != len(lasts):
      raise ValueError(f'{num_ended} games ended, but there are {len(lasts)} '
                       'last observations.')
    actions = unroll.steps.agent_outputs.action[entries]
    if actions.dtype.kind == 'f':
      actions = np.clip(actions, -1.0, 1.0)  # As executed.
    return self.append(stream, Columns(
        map_nests(lambda a: newest(a[entries]), env_outputs.observation),
        actions, env_outputs.reward[entries], flags,
        map_nests(lambda *a: newest(np.stack(a)), *lasts)
        if lasts else ()))

  def append(self, stream: int, columns: Columns) -> selectors.Changes:
    """Adds steps of one stream, from `read`."""
    first, end = self.first[stream], self.end[stream]
    count = int(self.count[stream])
    slots = self._slot(stream, count + np.arange(len(columns.flags)))
    self._texts.forget(self._observation, self._games.last)
    map_nests(lambda a, b: operator.setitem(a, slots, b), self._observation,
              self._texts.encode(columns.observation))
    self._action[slots] = columns.action
    self._reward[slots] = columns.reward
    self._flags[slots] = columns.flags
    self._games.append(
        stream, count, slots, columns.flags & (NEW_GAME | NO_STEP) != 0,
        columns.flags & NEW_GAME != 0,
        self._texts.encode(columns.last_observations))
    self._set_count(stream, count + len(slots))
    if columns.flags[0] & NO_STEP:
      end = count
    positions = lambda start, end: (
        np.arange(start, end) * self.num_streams + stream)
    return selectors.Changes(positions(end, self.end[stream]),
                             positions(first, self.first[stream]))

  def _set_count(self, stream: int, count: int) -> None:
    oldest = max(count - self.length, 0)
    self.count[stream] = count
    # The older frames of the first stacks are overwritten.
    self.first[stream] = oldest + (self._num_frames - 1) * (oldest > 0)
    self.end[stream] = count - 1  # Nothing follows the newest step.
    self._games.forget(stream, oldest)

  def _slot(self, stream: int | np.ndarray, time: np.ndarray) -> np.ndarray:
    return stream * self.length + time % self.length

  def read(self, stream: int, start: int, end: int) -> Columns:
    """Returns copies of the slots of times `start` to `end` of a stream."""
    slots = self._slot(stream, np.arange(start, end))
    flags = self._flags[slots]
    if start == self.count[stream] - self.length and len(flags):
      flags[0] &= ~np.uint8(NEW_GAME)  # The game before is forgotten.
    ended = self._games.previous[
        self._games.of_slot[slots[flags & NEW_GAME != 0]]]
    read = lambda nest, rows: self._texts.decode(
        map_nests(lambda a: a[rows], nest))
    return Columns(
        read(self._observation, slots), self._action[slots],
        self._reward[slots], flags,
        read(self._games.last, ended))

  def restore(self, stream: int, start: int, columns: Columns) -> None:
    """Appends the columns of `read`, at the time `start`.

    The next unroll of the stream does not join up with the columns.
    """
    if start != self.count[stream]:
      self._games.clear(stream)  # All older steps are overwritten.
      self.count[stream] = start
    self.append(stream, columns)

  def windows(self, positions: np.ndarray, num_steps: int) -> 'Windows':
    """Returns the steps that follow each start, int64 `[N]` positions.

    A window ends with the episode or life, at the newest step, or when full.
    """
    time, stream = np.divmod(positions, self.num_streams)
    base = stream * self.length
    game = self._games.of_slot[base + time % self.length]
    limit = self._games.limit[game]
    limit = np.where(limit < 0, self.end[stream], limit)
    slots = base[:, None] + (
        time[:, None] + np.arange(1, num_steps + 1)) % self.length
    is_cut = self._flags[slots] & (TERMINATED | TRUNCATED) != 0
    to_cut = np.where(is_cut.any(1), is_cut.argmax(1) + 1, num_steps)
    length = np.minimum(to_cut, limit - time)
    at_end = self._flags[slots[np.arange(len(slots)), length - 1]]
    return Windows(base, time, game, limit - time, slots, length,
                   at_end & TERMINATED != 0)

  def flags(self, positions: np.ndarray) -> np.ndarray:
    """Returns the flags of slots, uint8 like `positions`."""
    return self._flags[self.slots(positions)]

  def led_to(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the actions and rewards that led to slots."""
    slots = self.slots(positions)
    return self._action[slots], self._reward[slots]

  def actions(self, windows: 'Windows') -> np.ndarray:
    """Returns the actions `[N, ...]` chosen at the starts."""
    return self._action.take(windows.slots[:, 0], 0)

  def rewards(self, windows: 'Windows') -> np.ndarray:
    """Returns the rewards `[N, n]`; 0 after the end of a window."""
    inside = np.arange(windows.slots.shape[1]) < windows.length[:, None]
    return np.where(inside, self._reward[windows.slots], np.float32(0))

  def observations(self, windows: 'Windows', steps: np.ndarray | int,
                   key: str | None = None) -> structs.Nest:
    """Returns the observations `steps` steps after the starts, `[N, ...]`.

    Where the game ended with the last step, this is the game's last
    observation. `steps`, int64 `[N]`, are between 0 and `num_left`. `key`
    chooses an entry of a dictionary of observations.
    """
    time = windows.time + steps
    slots = windows.base + time % self.length
    ended = np.flatnonzero((self._flags[slots] & NEW_GAME != 0) & (steps > 0))
    rows = windows.game[ended]

    def read(array: np.ndarray, last: np.ndarray) -> np.ndarray:
      found = array.take(slots, 0)
      if len(ended):
        found[ended] = last[rows]
      return found

    def read_stacks(array: np.ndarray, last: np.ndarray) -> np.ndarray:
      times = time[:, None] - np.arange(self._num_frames - 1, -1, -1)
      found = array.take(windows.base[:, None] + times % self.length, 0)
      found[times < self._games.start[windows.game][:, None]] = 0
      found[ended, -1] = last[rows]
      return found

    nests = (self._observation, self._games.last)
    if key is not None:
      nests = tuple(nest[key] for nest in nests)
    return self._texts.decode(
        map_nests(read_stacks if self._stacked else read, *nests))

  def num_before(self, windows: 'Windows') -> np.ndarray:
    """Returns the number of stored steps of the game before each start."""
    stream = windows.base // self.length
    return windows.time - np.maximum(
        self._games.start[windows.game], self.first[stream])


class Windows(NamedTuple):
  """Up to `n` steps after each of `N` starts.

  Attributes:
    base: int64 `[N]`, the first slot of the stream.
    time: int64 `[N]`, the time of the start.
    game: int32 `[N]`, the row of the game.
    num_left: int64 `[N]`, the known steps of the game after the start.
    slots: int64 `[N, n]`, the slots of the steps.
    length: int64 `[N]`, the number of steps in the window; at least 1.
    terminated: bool `[N]`, whether the last step ended the episode.
  """
  base: np.ndarray
  time: np.ndarray
  game: np.ndarray
  num_left: np.ndarray
  slots: np.ndarray
  length: np.ndarray
  terminated: np.ndarray


def num_bytes(spec: structs.EnvironmentSpec, capacity: int,
              stacked: bool = False) -> int:
  """Returns the size of a full `StepStore`, without its last observations."""
  observation, action, _ = _slot_specs(spec._replace(
      observation=texts.Texts(spec.observation).spec), stacked)
  fields = [*parts_of(observation).values(), action]
  return capacity * (
      sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in fields)
      + 4 + 1 + 4)  # Reward, flags, game.


def _slot_specs(
    spec: structs.EnvironmentSpec, stacked: bool
) -> tuple[structs.ObservationSpec, structs.ArraySpec, int]:
  """Returns the specs of observation and action, and the size of a stack."""
  observation, num_frames = spec.observation, 1
  if stacked:
    if isinstance(observation, dict):
      raise ValueError('Only a plain array can be a stack of frames.')
    num_frames = observation.shape[0]
    observation = observation._replace(shape=observation.shape[1:])
  return observation, spec.action.array, num_frames
