# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors of environments, by level name.

*   `ALE/Pong-v5`: Atari games, on C++ threads, with the paper's protocol.
*   `explore_goal_locations_small` and the others of DMLab-30, `lab/NAME`:
    DeepMind Lab.
*   `BabyAI-GoToObj-v0`, `MiniGrid-Empty-5x5-v0` and the others of MiniGrid:
    pixels, and a mission in words.
*   `VizdoomBasic-v1` and the others of ViZDoom: first person.
*   `FetchReach-v4` and the others of Gymnasium-Robotics: goals to reach.
*   `catch`, `bit_flipping` and others: toys with known optima, see `toys`.
*   Everything else: gymnasium ids.

Each environment has a process of its own, except for Atari games. Importing
this package does not import TensorFlow.
"""

from collections.abc import Callable, Iterable, Sequence
import functools
from typing import NamedTuple, Protocol

import numpy as np
from scalable_agent import errors
from scalable_agent.environments import atari
from scalable_agent.environments import dmlab
from scalable_agent.environments import goals
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments import minigrid
from scalable_agent.environments import robotics
from scalable_agent.environments import toys
from scalable_agent.environments import vizdoom
from scalable_agent.environments.base import Factory
from scalable_agent.environments.base import FlowEnvironment
from scalable_agent.environments.base import unknown_level
from scalable_agent.environments.base import VectorEnvironment
from scalable_agent.environments.recording import RecordedAtari
from scalable_agent.environments.recording import Recording
from scalable_agent.environments.restarts import RestartedVector
from scalable_agent.environments.restarts import Restarts
from scalable_agent.processes import processes
from scalable_agent.processes import remote
from scalable_agent.settings.sections import EnvironmentSettings

# The server imports the adapters once, for all environments that it forks.
processes.CONTEXT.set_forkserver_preload(
    [__name__, 'scalable_agent.processes.preload'])


class Levels(Protocol):
  """What the module of a family provides."""

  def is_level(self, level_name: str) -> bool:
    """Whether a name is meant for a level of this family."""

  def known_levels(self) -> Iterable[str]:
    """Returns the names of levels, for errors."""

  def look_up(self, level_name: str,
              settings: EnvironmentSettings) -> str | Factory:
    """Returns what the family's vector needs to make an environment.

    Raises:
      errors.LevelError: there is no such level, or it cannot be played.
    """


class Family(NamedTuple):
  """Levels that have an adapter in common.

  Attributes:
    levels: the module of the adapter.
    kind: the kind of its levels, for errors. One vector plays levels of one
      kind.
    make_vector: makes a vector. Its arguments are `E` level names, what
      `look_up` returned for each of them, `E` seeds, settings and a number of
      threads.
  """
  levels: Levels
  kind: str
  make_vector: Callable[..., VectorEnvironment]


# A level belongs to the first family whose `is_level` is true.
FAMILIES = (
    Family(atari, 'Atari games', atari.AtariVector),
    Family(dmlab, 'levels of DeepMind Lab', functools.partial(
        gymnasium_env.GymnasiumVector, compiling=dmlab.COMPILING)),
    Family(minigrid, 'other levels', gymnasium_env.GymnasiumVector),
    Family(vizdoom, 'other levels', gymnasium_env.GymnasiumVector),
    Family(robotics, 'other levels', gymnasium_env.GymnasiumVector),
    Family(toys, 'other levels', gymnasium_env.GymnasiumVector),
    Family(gymnasium_env, 'other levels', gymnasium_env.GymnasiumVector),
)


def make_vec(
    level_names: Sequence[str],
    seeds: Sequence[int],
    settings: EnvironmentSettings | None = None,
    num_threads: int = 0,
    first_index: int = 0,
    restarts: Restarts | None = None,
    recording: Recording | None = None,
) -> FlowEnvironment:
  """Makes one vector of `E` environments.

  Args:
    level_names: `E` level names. They may differ if the levels have the same
      observations and actions.
    seeds: `E` ints within `[0, 2**31)`. The same levels, seeds and actions give
      the same stream.
    settings: `EnvironmentSettings`; None for the defaults of the levels.
    num_threads: threads for Atari games; 0 for one per core.
    first_index: which environment of the run the first one is.
    restarts: how often processes that die or hang may be replaced; then
      `initial` and `step` raise `EnvironmentLostError`. None for not at all.
    recording: where films of the games are written. None for nowhere.

  Returns:
    `FlowEnvironment`; the caller closes it.

  Raises:
    UnknownLevelError: no such level.
    MissingDependencyError: the level needs a package that is not installed.
    EnvironmentSpecError: the level's observations or actions are not supported,
      or those of the levels differ.
    EnvironmentProcessError: a worker process died while starting.
    ValueError: no levels, or seeds that do not fit.
  """
  _check_arguments(level_names, seeds)
  if settings is None:
    settings = EnvironmentSettings()  # Those of Atari and DeepMind Lab.
    if not all(atari.is_level(n) or dmlab.is_level(n) for n in level_names):
      settings = EnvironmentSettings(num_action_repeats=1)
  found = _look_up_all(level_names, settings)

  make: Callable[..., VectorEnvironment] = _family(level_names[0]).make_vector
  parts = [found[name] for name in level_names]
  if recording and make is atari.AtariVector:
    make = functools.partial(RecordedAtari, recording=recording)
  elif recording:
    parts = [recording.factory(part, i, settings.num_action_repeats)
             for i, part in enumerate(parts)]

  def make_vector(seeds):
    return make(level_names, parts, seeds, settings, num_threads)

  return FlowEnvironment(
      RestartedVector(make_vector, seeds, restarts) if restarts
      else make_vector(seeds), level_names, first_index)


def make_groups(
    level_names: Sequence[str],
    seeds: Sequence[int],
    settings: EnvironmentSettings,
    num_groups: int,
    num_threads: int = 0,
    first_index: int = 0,
    restarts: Restarts | None = None,
) -> list[FlowEnvironment]:
  """Makes `E` environments, divided among groups of nearly the same size.

  Args:
    level_names: `E` level names.
    seeds: `E` ints within `[0, 2**31)`.
    settings: `EnvironmentSettings`.
    num_groups: number of vectors to make, at least 1. If there are fewer
      environments than this, each one is a group.
    num_threads: of each group; see `make_vec`.
    first_index: which environment of the run the first one is.
    restarts: see `make_vec`; for all groups together.

  Returns:
    One `FlowEnvironment` per group; the caller closes them.

  Raises:
    EnvironmentSpecError: the observations or actions of groups differ.
    Exception: any error of `make_vec`. No group is left open.
  """
  _check_arguments(level_names, seeds)
  groups: list[FlowEnvironment] = []
  try:
    for indices in split(range(len(level_names)), num_groups):
      groups.append(make_vec([level_names[i] for i in indices],
                             [seeds[i] for i in indices], settings, num_threads,
                             first_index=first_index + indices.start,
                             restarts=restarts))
      _check_same_spec(groups[0], groups[-1])
  except BaseException:
    for group in groups:
      group.close()
    raise
  return groups


def split(numbers: range, num_groups: int) -> list[range]:
  """Divides numbers among groups of nearly the same size, none of them empty.

  There are fewer groups than `num_groups` if there are fewer numbers.
  """
  return [numbers[int(part[0]):int(part[-1]) + 1] for part in np.array_split(
      np.arange(len(numbers)), min(num_groups, len(numbers)))]


def check_names(
    level_names: Sequence[str], settings: EnvironmentSettings) -> None:
  """Raises for names that are no levels, or that do not go together.

  No level is made. Modules of users, in names like `module:id`, are not
  imported: whether they have these levels shows when they are made.
  """
  _look_up_all(level_names, settings)


def check_levels(
    level_names: Sequence[str], settings: EnvironmentSettings) -> None:
  """Raises for levels that cannot be made, or that one agent cannot play.

  Every level is made once and closed. A single level is not checked: its faults
  show anyway when it is made.
  """
  first = None
  for name in level_names if len(level_names) > 1 else []:
    with make_vec([name], [0], settings) as env:
      first = first or env
      _check_same_spec(first, env)


def goal_functions(
    level_name: str, settings: EnvironmentSettings
) -> tuple[goals.GoalFunction, goals.GoalFunction | None]:
  """Returns the rewards of a level for other goals than its own.

  Builds one environment of the level in a process of its own, which ends with
  this one.

  Args:
    level_name: the level.
    settings: `EnvironmentSettings`.

  Returns:
    A function of the goals that were achieved by steps, `[N, ...]`, and those
    that were desired. It returns the steps' rewards, float32 `[N]`. And a
    function that says which of them end an episode, bool `[N]`; None if no goal
    does.

  Raises:
    EnvironmentSpecError: the level has no goals, or actions are repeated.
    UnknownLevelError: no such level.
    MissingDependencyError: the level needs a package that is not installed.
    EnvironmentProcessError: its environment cannot be built.
  """
  if settings.num_action_repeats != 1:
    raise errors.EnvironmentSpecError(
        f'The rewards of {level_name} in hindsight are those of single frames: '
        'set num_action_repeats=1.')
  factory = _look_up(level_name, settings)
  if isinstance(factory, str):
    raise errors.EnvironmentSpecError(
        f'{level_name} has no goals to learn from in hindsight.')
  level = remote.Remote(
      level_name, functools.partial(goals.Goals, level_name, factory),
      settings.step_timeout_s)
  return (functools.partial(level.call, 'rewards'),
          functools.partial(level.call, 'terminated')
          if level.call('can_terminate') else None)


def _look_up_all(level_names, settings):
  """Returns `_look_up` of each level, by name."""
  families = {name: _family(name) for name in level_names}
  kinds = dict.fromkeys(family.kind for family in FAMILIES
                        if family in families.values())
  if len(kinds) > 1:
    raise errors.EnvironmentSpecError(
        f'One agent cannot play {" and ".join(kinds)}: {", ".join(families)}.')
  return {name: _look_up(name, settings) for name in families}


def _look_up(level_name, settings):
  """Returns what the vector of a level needs to make an environment of it."""
  look_up = _family(level_name).levels.look_up
  if ':' not in level_name:
    return look_up(level_name, settings)
  # Its module is the user's: other processes import it.
  return functools.partial(_build, look_up, level_name, settings)


def _build(look_up, level_name, settings):
  return look_up(level_name, settings)()


def _check_arguments(level_names, seeds):
  if not level_names or isinstance(level_names, str):
    raise ValueError(
        f'level_names must be a sequence of names, not {level_names!r}.')
  if len(seeds) != len(level_names):
    raise ValueError(f'There must be one seed per environment, but there are '
                     f'{len(seeds)} seeds for {len(level_names)}.')
  if not all(0 <= seed < 2**31 for seed in seeds):
    raise ValueError(f'Seeds must be within [0, 2**31), not {list(seeds)}.')


def _family(level_name: str) -> Family:
  for family in FAMILIES:
    if family.levels.is_level(level_name):
      return family
  # A mistyped name may belong to any family. Atari games come last, so that the
  # error suggests them for their old ids.
  raise unknown_level(level_name, [
      name for family in reversed(FAMILIES)
      for name in family.levels.known_levels()])


def _check_same_spec(one: FlowEnvironment, other: FlowEnvironment) -> None:
  for what, of_one, of_other in (
      ('observations', one.spec.observation, other.spec.observation),
      ('numbers of actions', *(
          ', '.join(map(str, env.spec.action.num_values))
          or f'{env.spec.action.size} continuous ones'
          for env in (one, other)))):
    if of_one != of_other:
      raise errors.EnvironmentSpecError(
          f'One agent cannot play {one.level_names[0]} and '
          f'{other.level_names[0]}: they have different {what}, {of_one} and '
          f'{of_other}. Atari games agree with --full_action_space.')
