# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Vectors of environments, by level name.

*   `ALE/Pong-v5`, ...: Atari games, on C++ threads, with the paper's protocol.
*   `explore_goal_locations_small`, ... of DMLab-30, `lab/NAME`: DeepMind Lab.
*   `BabyAI-GoToObj-v0`, `MiniGrid-Empty-5x5-v0`, ...: MiniGrid; pixels, and a
    mission in words.
*   `VizdoomBasic-v1`, ...: ViZDoom; first person.
*   `FetchReach-v4`, ...: Gymnasium-Robotics; goals to reach.
*   `MinAtar/Breakout-v1`, ...: MinAtar; 10 x 10 pixels.
*   `dm_control/walker-walk-v0`, ...: the DeepMind Control Suite.
*   `envpool:HalfCheetah-v5`, ...: EnvPool, on C++ threads.
*   `catch`, `bit_flipping`, ...: toys with known optima, see `toys`.
*   Any other gymnasium id.

Environments without C++ threads have processes. TensorFlow is not imported.
"""

from collections.abc import Callable, Iterable, Sequence
import contextlib
import functools
import os
from typing import cast, NamedTuple, Protocol

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import atari
from scalable_agent.environments import base
from scalable_agent.environments import dm_control
from scalable_agent.environments import dmlab
from scalable_agent.environments import envpool_env
from scalable_agent.environments import goals
from scalable_agent.environments import gymnasium_env
from scalable_agent.environments import lab_maps
from scalable_agent.environments import minatar
from scalable_agent.environments import minigrid
from scalable_agent.environments import robotics
from scalable_agent.environments import toys
from scalable_agent.environments import trial
from scalable_agent.environments import units
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
from scalable_agent.processes import starts
from scalable_agent.settings.environment_settings import EnvironmentSettings

# The number of an environment in the run, for the code of users.
NUMBER = 'SCALABLE_AGENT_ENVIRONMENT_NUMBER'

# The fork server imports the adapters once, for all environments.
processes.CONTEXT.set_forkserver_preload(
    ['scalable_agent.processes.one_thread', __name__,
     'scalable_agent.processes.preload'])


class Levels(Protocol):
  """The functions that the module of each family provides."""

  def is_level(self, level_name: str) -> bool:
    """Whether a name means a level of this family."""

  def known_levels(self) -> Iterable[str]:
    """Returns the names of levels, for errors."""

  def look_up(self, level_name: str,
              settings: EnvironmentSettings) -> str | Factory:
    """Returns a factory of environments of a level; for Atari games, the ROM.

    Raises `errors.LevelError` if the level is unknown or cannot be played.
    """


class Family(NamedTuple):
  """Levels with a common adapter.

  Attributes:
    levels: the module of the adapter.
    kind: for errors. One vector plays levels of one kind.
    make_vector: makes a vector of `E` level names, the `E` results of
      `look_up`, `E` seeds, settings, and a number of threads; from factories
      with `first_index`, the number of the first environment in the run, and
      a `gymnasium_env.Start`.
  """
  levels: Levels
  kind: str
  make_vector: Callable[..., VectorEnvironment]


_OTHERS: tuple[Levels, ...] = (
    minigrid, vizdoom, robotics, minatar, dm_control, toys, gymnasium_env)
# A level belongs to the first family whose `is_level` is true.
FAMILIES = (
    Family(atari, 'Atari games', atari.AtariVector),
    Family(dmlab, 'levels of DeepMind Lab', functools.partial(
        gymnasium_env.GymnasiumVector, compiling=lab_maps.COMPILING,
        max_resets=dmlab.MAX_RESETS)),
    Family(envpool_env, 'levels of EnvPool', envpool_env.EnvPoolVector),
    *(Family(levels, 'other levels', gymnasium_env.GymnasiumVector)
      for levels in _OTHERS),
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
  """Makes one vector of `E` environments, which the caller closes.

  Args:
    level_names: `E` level names. Different levels must have the same
      observations and actions.
    seeds: `E` ints within `[0, 2**31)`. The same levels, seeds and actions give
      the same stream, except for `lab_levels.NOT_REPEATED`.
    settings: `EnvironmentSettings`; None for the defaults of the levels.
    num_threads: C++ threads; 0 for one per core.
    first_index: number of the first environment in the run. The process of
      each environment finds the number in the environment variable `NUMBER`.
    restarts: limits how often dead or hung processes are restarted. When
      processes are lost, `initial` and `step` raise `EnvironmentLostError`.
      None: processes are never restarted.
    recording: records a video of each game. None: no videos.

  Raises:
    UnknownLevelError: no such level.
    MissingDependencyError: the level needs a package that is not installed.
    EnvironmentSpecError: the observations or actions of a level are not
      supported, or differ between levels.
    EnvironmentProcessError: a worker process died while starting.
    ValueError: no levels, or a wrong number or range of seeds.
  """
  return _make_vec(gymnasium_env.Start(), level_names, seeds, settings,
                   num_threads, first_index, restarts, recording)


def _make_vec(
    start: gymnasium_env.Start, level_names: Sequence[str],
    seeds: Sequence[int], settings: EnvironmentSettings | None,
    num_threads: int, first_index: int, restarts: Restarts | None,
    recording: Recording | None = None) -> FlowEnvironment:
  """Does `make_vec`; vectors with one `start` have the same settings."""
  base.check_arguments(level_names, seeds)
  if settings is None:  # The defaults of Atari and DeepMind Lab, or of others.
    settings = EnvironmentSettings()
    if not all(atari.is_level(n) or dmlab.is_level(n) for n in level_names):
      settings = EnvironmentSettings(num_action_repeats=1)
  levels = _look_up_all(level_names, settings)

  make: Callable[..., VectorEnvironment] = _family(level_names[0]).make_vector
  parts = [levels[name] for name in level_names]
  if recording and make is atari.AtariVector:
    make = functools.partial(RecordedAtari, recording=recording)
  elif recording:
    parts = [recording.factory(
        cast(Factory, part), i, settings.num_action_repeats)
             for i, part in enumerate(parts)]
    if make is envpool_env.EnvPoolVector:
      make = gymnasium_env.GymnasiumVector  # Processes record their games.
  if not isinstance(parts[0], str):
    parts = [functools.partial(_numbered, cast(Factory, part), i)
             for i, part in enumerate(parts, first_index)]
    make = functools.partial(make, first_index=first_index, start=start)

  def make_vector(seeds: Sequence[int]) -> VectorEnvironment:
    return make(level_names, parts, seeds, settings, num_threads)

  env = (RestartedVector(make_vector, seeds, restarts) if restarts
         else make_vector(seeds))
  return FlowEnvironment(env, level_names, first_index, settings.metric_names)


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

  See also `make_vec`. The groups start together: one environment of each level
  is asked for its spaces, and groups do not wait for each other to be built.
  After an error, no group is left open. If there are fewer environments than
  groups, each environment is a group. `num_threads` are the threads of each
  group. `restarts` limits restarts of all groups together.
  """
  base.check_arguments(level_names, seeds)
  if num_groups < 1:
    raise ValueError(f'num_groups={num_groups} must be positive.')
  groups: list[FlowEnvironment] = []
  start = gymnasium_env.Start()
  try:
    with start.together():
      for indices in split(range(len(level_names)), num_groups):
        groups.append(_make_vec(
            start, [level_names[i] for i in indices],
            [seeds[i] for i in indices], settings, num_threads,
            first_index + indices.start, restarts))
        units.check_same(groups[0], groups[-1])
  except BaseException:
    for group in groups:
      group.close()
    raise
  return groups


def split(numbers: range, num_groups: int) -> list[range]:
  """Divides numbers among `num_groups` groups of nearly the same size.

  If there are fewer numbers than groups, each number is a group.
  """
  return [numbers[int(part[0]):int(part[-1]) + 1] for part in np.array_split(
      np.arange(len(numbers)), min(num_groups, len(numbers)))]


def check_names(
    level_names: Sequence[str], settings: EnvironmentSettings) -> None:
  """Raises an error for unknown levels, or levels of different kinds.

  No level is made. Modules of users, in names like `module:id`, are not
  imported: unknown ids in such modules are errors of `make_vec`.
  """
  _look_up_all(level_names, settings)


def check_levels(
    level_names: Sequence[str], settings: EnvironmentSettings) -> None:
  """Raises an error for levels that cannot be made or have different specs.

  Every level is made once and closed. A single level is not checked, because
  `make_vec` finds the same faults.
  """
  first = None
  for name in level_names if len(level_names) > 1 else []:
    with make_vec([name], [0], settings) as env:
      first = first or env
      units.check_same(first, env)


def play_trial(level_name: str, settings: EnvironmentSettings,
               seconds: float, checks: bool = True) -> trial.Facts:
  """Plays random steps for about some seconds; raises errors as `make_vec`.

  Raises `EnvironmentSpecError` for Atari games, which are no environments of
  gymnasium here.
  """
  factory = _look_up(level_name, settings)
  if isinstance(factory, str):
    raise errors.EnvironmentSpecError(
        f'{level_name} needs no check: the recipe appo_pong fits Atari games. '
        'To check your own environment: --level_name=module:id.')
  step_s, reset_s = settings.step_timeout_s, starts.TIMEOUT_S * checks
  # The constructor and the first reset may each take `step_s + reset_s`.
  with remote.Remote(
      level_name, functools.partial(
          trial.Trial, level_name, functools.partial(_numbered, factory, 0),
          step_s, step_s + reset_s),
      step_s, 2 * (step_s + reset_s) + trial.MAX_TRIALS * seconds) as level:
    return level.call('play', seconds, checks)


def goal_functions(
    level_name: str, settings: EnvironmentSettings,
    ends: contextlib.ExitStack | None = None,
) -> tuple[goals.GoalFunction, goals.GoalFunction | None]:
  """Returns functions that compute rewards and ends of episodes for any goal.

  Builds one environment of the level in its own process, which `ends` ends. If
  None, the process ends with this process. Raises `EnvironmentSpecError` for
  levels without goals, or with repeated actions, `EnvironmentValueError` for
  rewards that are not finite, and other errors as `make_vec`.

  Returns:
    A function from achieved goals, `[N, ...]`, and desired goals, `[N, ...]`,
    to rewards, float32 `[N]`. A function from the same goals to whether the
    step ends an episode, bool `[N]`; None if reached goals never end episodes.
  """
  if settings.num_action_repeats != 1:
    raise errors.EnvironmentSpecError(
        f'Rewards of {level_name} in hindsight are computed for single frames: '
        'set num_action_repeats=1.')
  factory = _look_up(level_name, settings)
  if isinstance(factory, str):
    raise errors.EnvironmentSpecError(
        f'{level_name} has no goals to learn from in hindsight.')
  return goals.functions(level_name, functools.partial(
      _numbered, factory, -1), settings.step_timeout_s, ends)


def _look_up_all(level_names: Sequence[str], settings: EnvironmentSettings
                 ) -> dict[str, str | Factory]:
  """Returns `_look_up` of each level, by name."""
  families = {name: _family(name) for name in level_names}
  kinds = dict.fromkeys(family.kind for family in FAMILIES
                        if family in families.values())
  if len(kinds) > 1:
    raise errors.EnvironmentSpecError(
        f'One agent cannot play {" and ".join(kinds)}: {", ".join(families)}.')
  return {name: _look_up(name, settings) for name in families}


def _look_up(level_name: str, settings: EnvironmentSettings) -> str | Factory:
  """See `Levels.look_up`."""
  levels, _, make_vector = _family(level_name)
  if settings.metric_names and make_vector is not gymnasium_env.GymnasiumVector:
    raise errors.EnvironmentSpecError(
        f'--episode_metrics={settings.episode_metrics}: no info of {level_name}'
        ' is read. Set --episode_metrics= (empty).')
  if ':' not in level_name or envpool_env.is_level(level_name):
    return levels.look_up(level_name, settings)
  # The module is the user's. Only the processes of environments import it.
  return functools.partial(_build, levels.look_up, level_name, settings)


def _build(look_up: Callable[[str, EnvironmentSettings], str | Factory],
           level_name: str, settings: EnvironmentSettings) -> gymnasium.Env:
  factory = look_up(level_name, settings)
  assert not isinstance(factory, str)  # Names of Atari games have no module.
  return factory()


def _numbered(factory: Factory, number: int) -> gymnasium.Env:
  """Returns an environment that was told its number; runs in its process."""
  os.environ[NUMBER] = str(number)
  return factory()


def _family(level_name: str) -> Family:
  for family in FAMILIES:
    if family.levels.is_level(level_name):
      return family
  # Atari games come last, so that errors suggest new ids of games for old ids.
  raise unknown_level(level_name, [
      name for family in reversed(FAMILIES)
      for name in family.levels.known_levels()])
