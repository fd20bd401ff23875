# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of environments."""

import dataclasses
import json

from scalable_agent.settings import lab_levels
from scalable_agent.settings import values
from scalable_agent.settings.declare import ALE_COUNT
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import Check
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import is_atari
from scalable_agent.settings.declare import IS_LOCAL
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting
from scalable_agent.settings.values import first_name

# --step_timeout_s of --mode=check, if not given.
CHECK_TIMEOUT_S = 30.
_IS_OBJECT = Check[str](
    values.is_json_object, 'must be a JSON object, such as {"size": 5}')

_ARE_NAMES = Check[str](
    lambda x: not x or bool(values.names(x)), 'must be names, such as A,B,C')


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentSettings(Section):
  """The environments. The defaults are the training settings of the paper."""
  num_action_repeats: int = setting(
      By({'Atari or DeepMind Lab': 4, 'others': 1}),
      'Environment frames per agent step: each action is repeated this many '
      'times, and the rewards are summed. An Atari observation is the maximum '
      'over the last two frames of a step, or the only frame if the value is '
      '1.', POSITIVE, task='all')
  environment_kwargs: str = setting(
      '',
      'Arguments of the environments: a JSON object such as {"size": 5}, for '
      'gymnasium.make, which passes other arguments than its own to the '
      'constructor. In Python also a dictionary. Atari games and DeepMind Lab '
      'take none.', _IS_OBJECT, task='all')
  width: int = setting(
      96,
      'DeepMind Lab (multiples of 4) and ViZDoom: width of the frames in '
      'pixels.', POSITIVE, task='frames')
  height: int = setting(
      72,
      'DeepMind Lab (multiples of 4) and ViZDoom: height of the frames in '
      'pixels.', POSITIVE, task='frames')
  repeat_action_probability: float = setting(
      0.,
      'Atari: probability that the emulator repeats the last action (sticky '
      'actions). Machado et al. use 0.25.', FRACTION, task='atari')
  full_action_space: bool = setting(
      False,
      'Atari: use all 18 actions instead of only the actions of the game. '
      'Needed by an agent that plays games with different actions.',
      task='atari')
  life_loss_ends_episode: bool = setting(
      True,
      'Atari: a lost life ends the episode for the learner. Reported returns '
      'are still of whole games. In test mode, a lost life never ends an '
      'episode.', task='atari_training')
  max_noops: int = setting(
      30,
      'Atari: largest number of no-op frames at the start of a game. The '
      'number is drawn from 0 to this maximum.', NOT_NEGATIVE, ALE_COUNT,
      task='atari')
  fire_on_reset: bool = setting(
      False,
      'Atari: start a game with the action FIRE instead of a no-op, if the '
      'game has FIRE.', task='atari')
  max_episode_frames: int = setting(
      108_000,
      'Atari: cut a game off after this many frames.', POSITIVE, ALE_COUNT,
      task='atari')
  environments_per_process: int = setting(
      By({'--num_actors=auto': 0, 'others': 1}),
      'Number of environments that share a process, which steps one '
      'environment after the other. More than one is faster if steps are very '
      'short, as in CartPole. Atari games run in threads instead. 0 with '
      '--num_actors=auto only: as many as fit the measured times.',
      Check[int](lambda x: x >= 0, 'must be positive'))
  step_timeout_s: float = setting(
      300.,
      'Seconds per step after which an environment process counts as hung. '
      'Starts, and steps of DeepMind Lab (which may compile maps), may take 60 '
      's x environments / cores longer. With --mode=check, the default is 30, '
      'and resets may take 60 s longer.', POSITIVE)
  max_environment_restarts: int = setting(
      10,
      'Number of times per hour that dead or hung environment processes are '
      'restarted. A restart loses the current unroll. One more death or hang '
      'ends the run, with a checkpoint. With --ray_address: the same limit '
      "holds for restarts of an actor worker after errors of the worker's "
      'environments, but not after deaths and hangs of the worker or of its '
      'environments; three errors in a row without an unroll end the run. No '
      'process is restarted with --deterministic. The process that computes '
      'rewards for --hindsight is never restarted.', NOT_NEGATIVE)
  episode_metrics: str = setting(
      '',
      'Names of numbers or booleans, such as is_success,x_position, in the '
      '`info` of the last step of an episode: the log has their means over the '
      'last 100 episodes, evaluations and tests have the means of their games. '
      'Not for Atari games, DeepMind Lab, EnvPool and families with a vector '
      'of their own.', _ARE_NAMES, varies=True)
  dataset_path: str = setting(
      '',
      'DeepMind Lab: directory of the images that two psychlab levels need. '
      'The first image is the file 0001.png.',
      IS_LOCAL, path=True)
  level_cache_dir: str = setting(
      '',
      'DeepMind Lab: directory that keeps compiled maps. The directory grows '
      'with every new map. If empty, maps are not kept.', IS_LOCAL, path=True)

  def __post_init__(self) -> None:
    object.__setattr__(self, 'environment_kwargs',
                       values.json_object(self.environment_kwargs))
    super().__post_init__()
    self._check('environments_per_process', self.environments_per_process > 0
                or getattr(self, 'num_actors', None) == 0, 'must be positive')

  @property
  def kwargs(self) -> dict[str, object]:
    """The arguments of `environment_kwargs`, by name."""
    return json.loads(self.environment_kwargs or '{}')

  @property
  def metric_names(self) -> tuple[str, ...]:
    """The names in `episode_metrics`, each once."""
    return tuple(dict.fromkeys(values.names(self.episode_metrics)))

  def default_keys(self) -> list[str]:
    keys = super().default_keys()
    level = first_name(getattr(self, 'level_name', ''))  # '' in a section.
    if not level or is_atari(level) or lab_levels.is_level(level):
      keys.insert(0, 'Atari or DeepMind Lab')
    if getattr(self, 'num_actors', None) == 0:
      keys.insert(0, '--num_actors=auto')
    if ':' in level:
      keys.insert(0, 'module:id')
    if lab_levels.is_level(level):
      keys.insert(0, f'{self.algorithm} on DeepMind Lab')
    return keys
