# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The latest steps of many environments, each stored once. NumPy only.

A stream is the flow of steps of one environment. It has `length` slots, and a
new step takes the place of the oldest one. Slot `t` has the observation of step
`t`, and the action and reward that led to it, like an entry of an unroll. Times
`t` count on when the slots start over.

A position names the transition that starts at time `t` of stream `s`: it is the
number `t * num_streams + s`. So it never means another one later, and it tells
by itself whether its slot has been overwritten.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs

# What is known about the step that led to a slot; bits of its flags.
TERMINATED = 1  # It ended an episode: a game, or one life.
TRUNCATED = 2  # A time limit, and nothing else, ended the game.
NEW_GAME = 4  # The observation of the slot begins a game.
NO_STEP = 8  # There was no step: the stream began here, or began anew.


class Changes(NamedTuple):
  """Which transitions can be drawn from now on, and which no longer.

  Attributes:
    added: int64 positions.
    removed: int64 positions. Some of them may never have been there.
  """
  added: np.ndarray
  removed: np.ndarray


class Columns(NamedTuple):
  """Steps of one stream, one after the other.

  Attributes:
    observation: nest of `[N, ...]`; of stacks only the newest frame.
    action: `[N, ...]`.
    reward: float32 `[N]`.
    flags: uint8 `[N]`.
    last_observations: nest of `[M, ...]`, one per flag `NEW_GAME`: the last
      observation of the game before.
  """
  observation: structs.Nest
  action: np.ndarray
  reward: np.ndarray
  flags: np.ndarray
  last_observations: structs.Nest


class _Games:
  """A table with a row for each game that has steps in the store.

  Attributes:
    start: int64, the time of the first slot.
    limit: int64, the time of the last step, -1 as long as the game goes on.
    last: nest of arrays, the last observation.
  """

  def __init__(self, empty_last: structs.Nest):
    self.start = np.zeros([1], np.int64)
    self.limit = np.zeros([1], np.int64)
    self.last = empty_last
    self._free = [0]

  def begin(self, time: int) -> int:
    """Returns the row of a new game."""
    if not self._free:
      size = len(self.start)
      self._free = list(range(size, 2 * size))
      double = lambda a: np.concatenate([a, np.zeros_like(a)])
      self.start, self.limit = double(self.start), double(self.limit)
      self.last = map_nests(double, self.last)
    row = self._free.pop()
    self.start[row], self.limit[row] = time, -1
    return row

  def free(self, row: int) -> None:
    self._free.append(row)


class StepStore:
  """The latest steps of `num_streams` environments.

  Stacks of frames are taken apart: a slot has the newest frame only. As in ALE,
  a stack has zeros in place of what was before the game, and goes on when a
  lost life ends an episode.

  Attributes:
    num_streams: the number of environments.
    length: slots per stream.
    count: int64 `[num_streams]`, the steps of each stream ever added.
    first: int64 `[num_streams]`, the time of the first start of each stream.
    end: int64 `[num_streams]`, the time after the last start of each stream.
  """

  def __init__(self, spec: structs.EnvironmentSpec, capacity: int,
               num_streams: int, stacked: bool = False):
    """Makes an empty store.

    Args:
      spec: of the environments.
      capacity: the number of slots; rounded up to a multiple of the streams.
      num_streams: the number of environments of the run.
      stacked: whether an observation is a stack of frames `[N, ...]`, oldest
        first, and each one is the one before, shifted by a frame.

    Raises:
      errors.EnvironmentSpecError: observations with strings.
      ValueError: stacks in a dictionary.
    """
    self.num_streams = num_streams
    self.length = -(-capacity // num_streams)
    self._stacked = stacked
    observation, action, self._num_frames = _slot_specs(spec, stacked)
    slots = self.length * num_streams
    # Memory is taken from the machine when it is written first.
    empty = lambda count, s: np.zeros((count, *s.shape), s.dtype)
    self._observation = map_nests(lambda s: empty(slots, s), observation)
    self._action = empty(slots, action)
    self._reward = np.zeros([slots], np.float32)
    self._flags = np.zeros([slots], np.uint8)
    self._game = np.zeros([slots], np.int32)  # Rows of `_games`.
    self._games = _Games(map_nests(lambda s: empty(1, s), observation))
    self._rows: list[collections.deque[int]] = [
        collections.deque() for _ in range(num_streams)]
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
    """Returns which of these transitions can be drawn, bool."""
    time, stream = np.divmod(positions, self.num_streams)
    after = self._flags[self._slot(stream, time + 1)]
    return ((self.first[stream] <= time) & (time < self.end[stream])
            & (after & NO_STEP == 0))

  def add(self, unroll: structs.Unroll) -> Changes:
    """Adds the steps of an unroll; its columns may be of any environments.

    An environment's first unroll, and one of an environment that began anew,
    adds the observation of entry 0, too. It does not join up with what is
    older.

    Raises:
      ValueError: the unroll is too long for the store, or of an environment
        that the store does not have.
    """
    steps, streams = unroll.steps, unroll.start.environment
    if len(streams) and not 0 <= min(streams) <= max(streams) < (
        self.num_streams):
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
    return Changes(*map(np.concatenate, zip(*changes)))

  def _add_column(self, unroll, column, stream, lasts):
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
      actions = np.clip(actions, -1.0, 1.0)  # What environments execute.
    return self.append(stream, Columns(
        map_nests(lambda a: newest(a[entries]), env_outputs.observation),
        actions, env_outputs.reward[entries], flags,
        map_nests(lambda *a: newest(np.stack(a)), *lasts)
        if lasts else ()))

  def append(self, stream: int, columns: Columns) -> Changes:
    """Adds steps of one stream, as `columns` returns them."""
    first, end = self.first[stream], self.end[stream]
    count = int(self.count[stream])
    slots = self._slot(stream, count + np.arange(len(columns.flags)))
    map_nests(lambda a, b: _put(a, slots, b),
              self._observation, columns.observation)
    self._action[slots] = columns.action
    self._reward[slots] = columns.reward
    self._flags[slots] = columns.flags
    self._append_games(stream, slots, columns)
    self._set_count(stream, count + len(slots))
    if columns.flags[0] & NO_STEP:
      end = count
    positions = lambda start, end: (
        np.arange(start, end) * self.num_streams + stream)
    return Changes(positions(end, self.end[stream]),
                   positions(first, self.first[stream]))

  def _append_games(self, stream, slots, columns):
    rows, count, num_ended = self._rows[stream], self.count[stream], 0
    games = self._games
    if not rows:
      rows.append(games.begin(count))
    begin = 0
    for i in map(int, np.flatnonzero(columns.flags & (NEW_GAME | NO_STEP))):
      self._game[slots[begin:i]] = row = rows[-1]
      begin = i
      if columns.flags[i] & NEW_GAME:
        games.limit[row] = count + i
        map_nests(
            lambda a, b, row=row, j=num_ended: _put(a, row, b[j]),
            games.last, columns.last_observations)
        num_ended += 1
      else:
        games.limit[row] = count + i - 1
      rows.append(games.begin(count + i))
    self._game[slots[begin:]] = rows[-1]

  def _set_count(self, stream, count):
    rows, oldest = self._rows[stream], max(count - self.length, 0)
    self.count[stream] = count
    # The older frames of the first stacks are overwritten.
    self.first[stream] = oldest + (self._num_frames - 1) * (oldest > 0)
    self.end[stream] = count - 1  # Nothing follows the newest step.
    while len(rows) > 1 and self._games.start[rows[1]] <= oldest:
      self._games.free(rows.popleft())

  def _slot(self, stream, time):
    return stream * self.length + time % self.length

  def read(self, stream: int, start: int, end: int) -> Columns:
    """Returns copies of the slots of times `start` to `end` of a stream."""
    slots = self._slot(stream, np.arange(start, end))
    flags = self._flags[slots]
    if start == self.count[stream] - self.length and len(flags):
      flags[0] &= ~np.uint8(NEW_GAME)  # The game before is forgotten.
    games = list(self._rows[stream])
    ended = {self._games.start[following]: row
             for row, following in zip(games, games[1:])}
    rows = [ended[start + i] for i in np.flatnonzero(flags & NEW_GAME)]
    return Columns(
        map_nests(lambda a: a[slots], self._observation), self._action[slots],
        self._reward[slots], flags,
        map_nests(lambda a: a[np.array(rows, int)], self._games.last))

  def restore(self, stream: int, start: int, columns: Columns) -> None:
    """Appends what `read` returned, at the time `start`.

    The next unroll of the stream will not join up with it.
    """
    if start != self.count[stream]:
      # All that is older is overwritten.
      while self._rows[stream]:
        self._games.free(self._rows[stream].pop())
      self.count[stream] = start
    self.append(stream, columns)

  def windows(self, positions: np.ndarray, num_steps: int) -> 'Windows':
    """Returns the steps that follow the starts.

    A window ends at the end of its episode or life, at the newest step, or
    after `num_steps`.

    Args:
      positions: int64 `[N]`, of transitions that can be drawn.
      num_steps: the largest length of a window.
    """
    time, stream = np.divmod(positions, self.num_streams)
    base = stream * self.length
    game = self._game[base + time % self.length]
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

  def actions(self, windows: 'Windows') -> np.ndarray:
    """Returns the actions `[N, ...]` that were chosen at the starts."""
    return self._action.take(windows.slots[:, 0], 0)

  def rewards(self, windows: 'Windows') -> np.ndarray:
    """Returns the rewards `[N, n]`; 0 after the end of a window."""
    inside = np.arange(windows.slots.shape[1]) < windows.length[:, None]
    return np.where(inside, self._reward[windows.slots], np.float32(0))

  def observations(self, windows: 'Windows', steps: np.ndarray | int,
                   key: str | None = None) -> structs.Nest:
    """Returns what was observed, `steps` steps after the starts, `[N, ...]`.

    If the game ended with the last of these steps, it is its last observation.

    Args:
      windows: from `windows`.
      steps: int64 `[N]`, between 0 and `num_left`.
      key: which entry of a dictionary of observations; None for all of it.
    """
    time = windows.time + steps
    slots = windows.base + time % self.length
    ended = np.flatnonzero((self._flags[slots] & NEW_GAME != 0) & (steps > 0))
    games = windows.game[ended]

    def read(array, last):
      found = array.take(slots, 0)
      if len(ended):
        found[ended] = last[games]
      return found

    def read_stacks(array, last):
      times = time[:, None] - np.arange(self._num_frames - 1, -1, -1)
      found = array.take(windows.base[:, None] + times % self.length, 0)
      found[times < self._games.start[windows.game][:, None]] = 0
      found[ended, -1] = last[games]
      return found

    nests = (self._observation, self._games.last)
    if key is not None:
      nests = tuple(nest[key] for nest in nests)
    return map_nests(read_stacks if self._stacked else read, *nests)

  def num_before(self, windows: 'Windows') -> np.ndarray:
    """Returns how many steps of the game before each start are stored."""
    stream = windows.base // self.length
    return windows.time - np.maximum(
        self._games.start[windows.game], self.first[stream])


class Windows(NamedTuple):
  """The steps that follow `N` starts, at most `n` of them.

  Attributes:
    base: int64 `[N]`, the first slot of the stream.
    time: int64 `[N]`, the time of the start.
    game: int32 `[N]`, the row of the game.
    num_left: int64 `[N]`, how many steps of the game are known after the start.
    slots: int64 `[N, n]`, the slots of the steps.
    length: int64 `[N]`, how many of the steps belong to the window; at least 1.
    terminated: bool `[N]`, whether the last one ended the episode.
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
  observation, action, _ = _slot_specs(spec, stacked)
  fields = [*_specs(observation), action]
  return capacity * (
      sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in fields)
      + 4 + 1 + 4)  # Reward, flags, game.


def map_nests(fn: Callable[..., Any], *nests: structs.Nest) -> structs.Nest:
  """Calls `fn` with the arrays, or specs, of observations of the same form."""
  # `tree.map_structure` takes longer than a draw, and walks into specs.
  if isinstance(nests[0], dict):
    return {name: fn(*[nest[name] for nest in nests]) for name in nests[0]}
  return fn(*nests)


def _specs(spec):
  return list(spec.values()) if isinstance(spec, dict) else [spec]


def _slot_specs(spec, stacked):
  """Returns the specs of observation and action, and the size of a stack."""
  observation, num_frames = spec.observation, 1
  if any(s.dtype == object for s in _specs(observation)):
    raise errors.EnvironmentSpecError(
        'Observations with strings cannot be replayed step by step: wrap '
        'the environment, or use an algorithm that learns from unrolls.')
  if stacked:
    if isinstance(observation, dict):
      raise ValueError('Only a plain array can be a stack of frames.')
    num_frames = observation.shape[0]
    observation = observation._replace(shape=observation.shape[1:])
  return observation, spec.action.array, num_frames


def _put(array, index, value):
  array[index] = value
