# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Atari 2600 games, stepped by ALE's C++ threads, with the paper's protocol.

Images are grey, 84 x 84, the maximum over the last two of `num_action_repeats`
frames. An observation is a stack of the last four images, channels first. Games
begin with 0 to 30 no-op frames and are cut off after 108,000 frames. Rewards
are not clipped here, but by the learner. https://arxiv.org/abs/1802.01561

With `repeat_action_probability` 0, the seed decides only the number of no-ops.
"""

from collections.abc import Iterable, Sequence

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.experience import structs
from scalable_agent.processes import memory
from scalable_agent.scores import atari57
from scalable_agent.settings import declare
from scalable_agent.settings.environment_settings import EnvironmentSettings

_FRAME_SIZE = 84
_NUM_STACKED_FRAMES = 4
# The emulator's state and frames; most games have more.
_LEAST_GAME_BYTES = 1e6


is_level = declare.is_atari


def known_levels() -> Iterable[str]:
  """Returns the names of levels, for errors."""
  registered = [name for name in gymnasium.registry if is_level(name)]
  return ['atari57', *registered, *atari57.LEVELS]


def look_up(level_name: str, settings: EnvironmentSettings) -> str:
  """Returns the ROM of a game, such as `ms_pacman` for `ALE/MsPacman-v5`."""
  arguments.check_none(level_name, settings.kwargs)
  if level_name == 'atari57':
    raise errors.EnvironmentSpecError(
        'atari57 is a suite. Here, name its levels one by one: see '
        'scores.atari57.LEVELS.')
  try:
    import ale_py
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'{level_name} needs ale-py: pip install "scalable_agent[atari]".'
    ) from e
  gymnasium.register_envs(ale_py)
  spec = gymnasium.registry.get(level_name)
  if spec is None:
    raise base.unknown_level(level_name, known_levels())
  return spec.kwargs['game']


class AtariVector:
  """`E` Atari games; implements `base.VectorEnvironment`.

  Observations are uint8 `[E, 4, 84, 84]`, oldest frame first. Each game has its
  own ALE vector. All vectors are stepped at the same time.
  """

  def __init__(self, level_names: Sequence[str], roms: Sequence[str],
               seeds: Sequence[int], settings: EnvironmentSettings,
               num_threads: int = 0):
    """Builds the games, whose ROMs are from `look_up`.

    `num_threads` C++ threads step the games, at least one per game; 0 for one
    per core. Raises EnvironmentSpecError if games have different numbers of
    actions.
    """
    memory.check(f'Building {len(level_names):,} games (--num_actors)',
                 len(level_names) * _LEAST_GAME_BYTES)
    self._life_loss_is_done = settings.life_loss_ends_episode
    self._seeds = np.asarray(seeds, np.int32)
    self._no_truncation = np.broadcast_to(False, len(level_names))

    games = dict(zip(level_names, roms, strict=True))
    # For each game, ALE's vector and the indices of its environments.
    self._parts: list[tuple[np.ndarray, gymnasium.vector.VectorEnv]] = []
    for name, rom in games.items():
      indices = np.flatnonzero([n == name for n in level_names])
      self._parts.append((indices, make_part(
          rom, len(indices),
          num_threads and max(1, num_threads // len(games)), settings)))

    # For each game, ALE's numbers of the agent's actions.
    self._actions = [
        numbers_of_actions(part, settings) for _, part in self._parts]
    num_actions = [*map(len, self._actions)]
    if len(set(num_actions)) > 1:
      counts = ', '.join(f'{n}: {c}' for n, c in zip(games, num_actions))
      raise errors.EnvironmentSpecError(
          f'Games with different numbers of actions ({counts}) need the full '
          'action space: set full_action_space.')
    observation = structs.ArraySpec(
        (_NUM_STACKED_FRAMES, _FRAME_SIZE, _FRAME_SIZE), np.dtype(np.uint8))
    self.spec = structs.EnvironmentSpec(
        observation, structs.ActionSpec(num_values=(num_actions[0],)),
        settings.num_action_repeats)
    self._observation = np.empty(
        (len(level_names), *observation.shape), np.uint8)
    self._game_start = np.zeros([len(level_names)], np.int64)

  def initial(self) -> np.ndarray:
    results = [part.reset(seed=self._seeds[indices])
               for indices, part in self._parts]
    observation, info = self._merge(results)
    self._game_start = _game_start(info)
    return observation

  def step(self, actions: np.ndarray) -> base.VectorStep:
    for (indices, part), numbers in zip(self._parts, self._actions):
      part.send(numbers[actions[indices]])
    observation, reward, terminated, truncated, info = self._merge(
        [part.recv() for _, part in self._parts])
    done = terminated | truncated
    if self._life_loss_is_done:
      game_start = _game_start(info)
      episode_end = game_start != self._game_start
      self._game_start = game_start
    else:
      episode_end = done
    result = base.VectorStep(
        reward.astype(np.float32), done, episode_end, observation,
        self._no_truncation)
    if not episode_end.any():
      return result
    return result._replace(truncated=truncated & ~terminated,
                           last_observation=info['final_obs'])

  def close(self) -> None:
    self._parts = []  # The threads end with the ALE vector that owns them.

  def _merge(self, results: Sequence[tuple]) -> tuple:
    """Puts the results of all parts in the order of the environments."""
    if len(results) == 1:
      return results[0]
    merged: list[np.ndarray | dict[str, np.ndarray]] = []
    for field in zip(*results):
      if isinstance(field[0], dict):
        merged.append(self._merge_infos(field))
      elif field[0].ndim > 1:
        merged.append(self._scatter(field, self._observation))
      else:
        merged.append(self._scatter(field))
    return tuple(merged)

  def _merge_infos(
      self, infos: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    merged = {key: self._scatter([info[key] for info in infos])
              for key in ('frame_number', 'episode_frame_number')}
    # A part has `final_obs` only in steps that end an episode.
    if any('final_obs' in info for info in infos):
      merged['final_obs'] = self._scatter(
          [info.get('final_obs', np.zeros([], np.uint8)) for info in infos],
          np.empty_like(self._observation))
    return merged

  def _scatter(self, arrays: Sequence[np.ndarray],
               out: np.ndarray | None = None) -> np.ndarray:
    if out is None:
      out = np.empty([len(self._seeds)], arrays[0].dtype)
    for (indices, _), array in zip(self._parts, arrays):
      out[indices] = array
    return out


def make_part(
    rom: str, num_envs: int, num_threads: int,
    settings: EnvironmentSettings,
    **overrides: object) -> gymnasium.vector.VectorEnv:
  """Returns ALE's vector of one game; `overrides` replace arguments of ALE."""
  # If ale-py is missing, `look_up` has raised an error.
  from ale_py import vector_env

  options = dict(
      num_threads=num_threads,
      max_num_frames_per_episode=settings.max_episode_frames,
      repeat_action_probability=settings.repeat_action_probability,
      full_action_space=settings.full_action_space,
      autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
      img_height=_FRAME_SIZE,
      img_width=_FRAME_SIZE,
      stack_num=_NUM_STACKED_FRAMES,
      frameskip=settings.num_action_repeats,
      noop_max=settings.max_noops + 1,  # An exclusive bound in ALE.
      # Not `episodic_life`, which starts a new game at each lost life.
      life_loss_info=settings.life_loss_ends_episode,
      reward_clipping=False,
      use_fire_reset=settings.fire_on_reset)
  return vector_env.AtariVectorEnv(rom, num_envs, **{**options, **overrides})


def numbers_of_actions(part: gymnasium.vector.VectorEnv,
                       settings: EnvironmentSettings) -> np.ndarray:
  """Returns ALE's number of each action of the agent, int64 `[A]`.

  With `full_action_space`, `A` is 18 in all games. In Skiing and Lost Luggage,
  ALE has no actions with the fire button. There, such an action moves as
  without the button.
  """
  from ale_py import Action

  actions = part.ale.get_action_set()
  if not settings.full_action_space:
    return np.arange(len(actions))
  without_fire = {
      action: Action.__members__[name.removesuffix('FIRE') or 'NOOP']
      for name, action in Action.__members__.items()}
  return np.array([
      actions.index(action if action in actions else without_fire[action])
      for action in without_fire])


def _game_start(info: dict[str, np.ndarray]) -> np.ndarray:
  """Returns the emulator's frame count at the start of each game, int `[E]`.

  The count changes when a game ends or is truncated, not when a life is lost.
  """
  return info['frame_number'] - info['episode_frame_number']
