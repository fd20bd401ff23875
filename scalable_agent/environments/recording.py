# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Records videos of games, in the processes that play the games.

Each game has its own file, which is complete when the last step of the game
returns. Frames go to the encoder one by one, so long games need no memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import errno
import functools
import math
import os
from typing import NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from scalable_agent import errors
from scalable_agent.environments import atari
from scalable_agent.environments import base
from scalable_agent.processes import user_code
from scalable_agent.settings.environment_settings import EnvironmentSettings

_DEFAULT_FPS = 30.
_MAX_GIF_FPS = 25.
# Smaller pictures, such as the boards of toys, are enlarged to this size.
_MIN_SIZE = 160
_ATARI_FPS = 60.


class Recording(NamedTuple):
  """Describes the videos to be recorded, one for each game.

  `extension` is `mp4` or `gif`. With `has_text`, a corner shows the return so
  far and the action.
  """
  directory: str
  extension: str = 'mp4'
  has_text: bool = False

  def path(self, environment: int, game: int) -> str:
    """Returns the path of a game's video; both numbers count from 0."""
    return os.path.join(
        self.directory, f'{environment}-{game}.{self.extension}')

  def factory(self, factory: base.Factory, environment: int,
              num_action_repeats: int) -> base.Factory:
    """Returns a factory of the environment in a `Recorder`."""
    return functools.partial(
        _make_recorder, factory, self, environment, num_action_repeats)


@contextlib.contextmanager
def _save_errors(path: str) -> Iterator[None]:
  """Turns errors of the system and of the encoder into SaveError."""
  try:
    yield
  except OSError as e:
    hint = ('the encoder has ended, perhaps for want of room on the disk'
            if e.errno in (None, errno.EPIPE) else errors.reason(e))
    raise errors.SaveError(
        f'The video {path} could not be written: {hint}.') from e


class VideoWriter:
  """Writes pictures to a video; SaveError if the encoder ends early."""

  def __init__(self, path: str, frames_per_s: float):
    """Opens the file; the extension of `path` decides about the format."""
    import imageio.v2
    self._path = path
    options: dict[str, object]
    if path.endswith('.gif'):
      self._every = math.ceil(frames_per_s / _MAX_GIF_FPS)
      # GIFs count hundredths of a second. Other durations would be cut off.
      duration_ms = 10 * round(100 * self._every / frames_per_s)
      options = dict(duration=duration_ms, loop=0)
    else:
      self._every = 1
      options = dict(
          fps=frames_per_s, macro_block_size=2, ffmpeg_log_level='error')
    with _save_errors(path):
      self._writer = imageio.v2.get_writer(path, **options)
    self._num_frames = 0

  def add(self, picture: np.ndarray, text: str = '') -> None:
    """Adds a picture, uint8 `[H, W, 3]`, with a text in the corner."""
    self._num_frames += 1
    if (self._num_frames - 1) % self._every == 0:
      with _save_errors(self._path):
        self._writer.append_data(_with_text(_resize(picture), text))

  def close(self) -> None:
    """Completes the file."""
    with _save_errors(self._path):
      self._writer.close()


class Recorder(gymnasium.Wrapper):
  """Records a video of each game, with a picture for each step.

  The pictures come from `render`. If the environment cannot render, the
  observations are recorded, if they are pictures or boards.
  """

  def __init__(self, env: gymnasium.Env, recording: Recording,
               environment: int, num_action_repeats: int = 1):
    """Wraps an environment; `environment` is the number in names of files."""
    super().__init__(env)
    self._recording = recording
    self._environment = environment
    self._num_games = 0
    self._video: VideoWriter | None = None
    self._fps = max(1., (env.metadata.get('render_fps') or _DEFAULT_FPS)
                    / num_action_repeats)

  def reset(self, *, seed: int | None = None,
            options: dict | None = None) -> base.Reset:
    """Begins a game and its video, see `gymnasium.Env.reset`."""
    observation, info = self.env.reset(seed=seed, options=options)
    self._end()
    self._video = VideoWriter(
        self._recording.path(self._environment, self._num_games), self._fps)
    self._num_games += 1
    self._return = 0.
    self._add(observation)
    return observation, info

  def step(self, action: np.ndarray | int) -> base.Step:
    """See `gymnasium.Env.step`; completes the video at the end of a game."""
    observation, reward, terminated, truncated, info = self.env.step(action)
    self._return += user_code.number_of_reward(reward)
    self._add(observation, action)
    if terminated or truncated:
      self._end()
    return observation, reward, terminated, truncated, info

  def close(self) -> None:
    """Closes the environment; completes the video."""
    self._end()
    super().close()

  def _add(self, observation: base.RawObservation,
           action: np.ndarray | int | None = None) -> None:
    assert self._video is not None
    text = ''
    if self._recording.has_text and action is not None:
      text = _text(self._return, action, _meanings(self.env))
    self._video.add(_picture(self.env, observation), text)

  def _end(self) -> None:
    if self._video:
      self._video.close()
      self._video = None


class RecordedAtari:
  """Atari games with videos in colour; implements `base.VectorEnvironment`.

  The observations of agents have neither colour nor all frames. Therefore a
  second emulator plays the same game frame by frame, with the same seed and the
  same actions.
  """

  def __init__(self, level_names: Sequence[str], roms: Sequence[str],
               seeds: Sequence[int], settings: EnvironmentSettings,
               num_threads: int = 0, *, recording: Recording):
    """Builds the games, see `atari.AtariVector`; `recording`: the videos."""
    self._env = atari.AtariVector(
        level_names, roms, seeds, settings, num_threads)
    self.spec = self._env.spec
    self._games = [
        _AtariGame(index, rom, seed, settings, recording)
        for index, (rom, seed) in enumerate(zip(roms, seeds, strict=True))]

  def initial(self) -> base.Observation:
    for game in self._games:
      game.reset()
    return self._env.initial()

  def step(self, actions: np.ndarray) -> base.VectorStep:
    """Steps all games; RuntimeError if a video shows another game."""
    result = self._env.step(actions)
    for game, action, reward, is_over in zip(
        self._games, actions, result.reward, result.episode_end):
      game.step(action, float(reward), bool(is_over))
    return result

  def close(self) -> None:
    self._env.close()
    for game in self._games:
      game.close()


class _AtariGame:
  """An emulator of one game in colour, frame by frame, and the game's video."""

  def __init__(self, index: int, rom: str, seed: int,
               settings: EnvironmentSettings, recording: Recording):
    self._index = index
    self._seed = np.array([seed], np.int32)
    self._num_repeats = settings.num_action_repeats
    self._recording = recording
    self._num_games = 0
    self._video: VideoWriter | None = None
    self._env = atari.make_part(
        rom, 1, 1, settings, frameskip=1, grayscale=False, stack_num=1,
        img_height=210, img_width=160, life_loss_info=False)
    self._numbers = atari.numbers_of_actions(self._env, settings)
    self._meanings = _atari_meanings(self._env)

  def reset(self) -> None:
    observation, _ = self._env.reset(seed=self._seed)
    self._num_games = 0
    self._begin(observation)

  def step(self, action: int, reward: float, is_over: bool) -> None:
    """Plays the frames of one step, which ended the agent's game if `is_over`.

    Raises RuntimeError if this game differs from the game that the agent plays.
    """
    action = self._numbers[action]
    for _ in range(self._num_repeats):
      observation, frame_reward, terminated, truncated, info = self._env.step(
          np.array([action]))
      reward -= float(frame_reward[0])
      self._return += float(frame_reward[0])
      ended = bool(terminated[0] or truncated[0])
      picture = info['final_obs'] if ended else observation
      text = (_text(self._return, action, self._meanings)
              if self._recording.has_text else '')
      assert self._video is not None
      self._video.add(picture[0, -1], text)
      if ended:
        break
    if reward or ended != is_over:
      raise RuntimeError(
          'The video shows another game than the game of the agent.')
    if ended:
      self._begin(observation)

  def close(self) -> None:
    if self._video:
      self._video.close()
      self._video = None

  def _begin(self, observation: np.ndarray) -> None:
    self.close()
    self._video = VideoWriter(
        self._recording.path(self._index, self._num_games), _ATARI_FPS)
    self._num_games += 1
    self._return = 0.
    self._video.add(observation[0, -1])


def _make_recorder(factory: base.Factory, recording: Recording,
                   environment: int, num_action_repeats: int) -> gymnasium.Env:
  return Recorder(factory(), recording, environment, num_action_repeats)


def _picture(
    env: gymnasium.Env, observation: base.RawObservation) -> np.ndarray:
  """Returns a picture of the environment, uint8 `[H, W, 3]`."""
  picture = env.render() if env.render_mode == 'rgb_array' else None
  is_rendered = picture is not None
  # Not by the numbers of one picture: a video has one scale.
  is_board = not is_rendered and _has_marks(env.observation_space)
  if not is_rendered:
    picture = (observation.get('frame') if isinstance(observation, dict)
               else None if isinstance(observation, tuple) else observation)
  picture = np.asarray(0 if picture is None else picture)
  found = f'{picture.dtype} {list(picture.shape)}'
  if picture.dtype.kind == 'b' or is_board or (
      picture.dtype.kind == 'f' and (picture <= 1).all()):
    picture = 255 * np.clip(picture, 0, 1).astype(np.float32)
  if picture.dtype.kind in 'fiu' and picture.ndim > 1:  # From 0 to 255.
    picture = np.clip(picture, 0, 255).astype(np.uint8)
  if picture.ndim == 2:
    picture = picture[..., np.newaxis]
  if picture.ndim == 3 and picture.shape[-1] not in (1, 3, 4) and (
      picture.shape[0] in (1, 3)):
    picture = picture.transpose(1, 2, 0)  # The channels were first.
  if picture.ndim != 3 or picture.dtype != np.uint8 or (
      picture.shape[-1] not in (1, 3, 4)):
    raise errors.EnvironmentSpecError(
        f'no video can be recorded: {found} of '
        f'{"render" if is_rendered else "the observation"} is no picture. A '
        'class that renders has "rgb_array" in metadata["render_modes"], and a '
        'method render that returns uint8 [H, W, 3].')
  return np.broadcast_to(picture[..., :3], [*picture.shape[:2], 3])


def _has_marks(space: gymnasium.Space) -> bool:
  """Returns whether observations have marks from 0 to 1, such as a board."""
  if isinstance(space, gymnasium.spaces.Dict):
    space = space.spaces.get('frame', space)
  return isinstance(space, gymnasium.spaces.MultiBinary) or (
      isinstance(space, gymnasium.spaces.Box) and bool((space.high <= 1).all()))


def _resize(picture: np.ndarray) -> np.ndarray:
  """Enlarges a picture to `_MIN_SIZE`, with sides of even lengths."""
  factor = -(-_MIN_SIZE // max(picture.shape[:2]))
  picture = picture.repeat(factor, axis=0).repeat(factor, axis=1)
  height, width, _ = picture.shape
  return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), 'edge')


def _with_text(picture: np.ndarray, text: str) -> np.ndarray:
  if not text:
    return picture
  from PIL import Image
  from PIL import ImageDraw
  image = Image.fromarray(picture)
  ImageDraw.Draw(image).text(
      (3, 1), text, fill='white', stroke_width=1, stroke_fill='black',
      font_size=max(10, picture.shape[0] // 20))
  return np.asarray(image)


def _meanings(env: gymnasium.Env) -> dict[int, str]:
  """Returns the names of the actions that have names."""
  get: Callable[[], list[str]] | None = getattr(
      env.unwrapped, 'get_action_meanings', None)
  if not get or not isinstance(env.action_space, gymnasium.spaces.Discrete):
    return {}
  return dict(enumerate(get(), int(env.action_space.start)))


def _atari_meanings(env: gymnasium.vector.VectorEnv) -> dict[int, str]:
  from ale_py import Action
  return {number: Action(action).name
          for number, action in enumerate(env.ale.get_action_set())}


def _text(return_: float, action: npt.ArrayLike,
          meanings: Mapping[int, str]) -> str:
  """Returns the text of a return and an action."""
  action = np.asarray(action)
  name = meanings.get(action.item()) if action.ndim == 0 else None
  if name is not None:
    action_text = str(name)
  else:
    action_text = ' '.join(
        f'{part:.2f}' if action.dtype.kind == 'f' else str(part)
        for part in action.ravel()[:8])
  digits = 0 if float(return_).is_integer() else 2
  return f'{return_:.{digits}f}  {action_text}'
