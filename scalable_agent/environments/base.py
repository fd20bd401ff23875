# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The base of all families of environments: stepping, looking up levels.

`E` is the number of environments of one vector. Worker processes import this
package, so none of its modules may import TensorFlow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import difflib
import re
from typing import NamedTuple, Protocol, TypeAlias, TypedDict

import gymnasium
import numpy as np
import numpy.typing as npt
from scalable_agent import errors
from scalable_agent.experience import nests
from scalable_agent.experience import structs
from scalable_agent.processes import user_code

# The observation of one environment, or of a vector, with an axis `E`.
Observation: TypeAlias = np.ndarray | dict[str, np.ndarray]
# Builds one environment. Cloudpickle must be able to pickle a factory, because
# factories are sent to workers.
Factory = Callable[[], gymnasium.Env]


class FrameAndInstruction(TypedDict, total=False):
  """Observation of a gymnasium environment with pixels and text."""
  frame: np.ndarray
  instruction: str


# Results of `reset` and `step` of a gymnasium environment.
RawObservation: TypeAlias = (
    np.ndarray | int | Mapping[str, object] | tuple[object, ...])
Reset: TypeAlias = tuple[RawObservation, dict]
Step: TypeAlias = tuple[RawObservation, float, bool, bool, dict]


class VectorStep(NamedTuple):
  """Result of one step of a vector of environments.

  Attributes:
    reward: float32 `[E]`.
    done: bool `[E]`, whether `observation` begins a new episode.
    episode_end: bool `[E]`, `done` except where only a life was lost.
    observation: nest of `[E, ...]`.
    truncated: bool `[E]`, whether a time limit, and nothing else, ended an
      episode in this step.
    last_observation: nest of `[E, ...]` like `observation`: the last
      observation of the episode where `episode_end`, elsewhere without meaning.
      `()` if no episode ends.
    metrics: float32 `[E]` by name, see `structs.StepOutputInfo`; empty if no
      episode ends.
  """
  reward: np.ndarray
  done: np.ndarray
  episode_end: np.ndarray
  observation: Observation
  truncated: np.ndarray
  last_observation: Observation | tuple[()] = ()
  metrics: Mapping[str, np.ndarray] = {}


class VectorEnvironment(Protocol):
  """`E` environments in lockstep, the protocol of all families of levels."""
  spec: structs.EnvironmentSpec

  def initial(self) -> Observation:
    """Starts all environments from their seeds; returns `[E, ...]`."""

  def step(self, actions: np.ndarray) -> VectorStep:
    """Steps all environments; after an episode, the next one begins.

    Actions, `[E, *shape]` of `spec.action.array`, are valid.
    """

  def close(self) -> None:
    """Frees all resources; may be called again."""


class FlowEnvironment:
  """A vector of environments as a stream of `StepOutput`s.

  Arrays returned by `initial` and `step` are only valid until the next call.
  `indices` are the numbers of the `E` environments in the run, `num_steps` is
  the number of steps so far, of all environments.
  """

  def __init__(self, env: VectorEnvironment, level_names: Sequence[str],
               first_index: int = 0, metric_names: Sequence[str] = ()):
    """Wraps a vector, which `close` closes.

    `first_index` is the number of the first environment in the run. `env` has
    the metrics `metric_names` of each episode that ends.
    """
    self._env = env
    self.level_names = tuple(level_names)
    self.num_envs = len(self.level_names)
    self.indices = range(first_index, first_index + self.num_envs)
    self.spec = env.spec
    self.metric_names = tuple(metric_names)
    self._no_metrics = dict.fromkeys(
        metric_names, np.full([self.num_envs], np.nan, np.float32))
    shape, self._action_dtype = env.spec.action.array
    self._action_shape = (self.num_envs, *shape)
    self._num_values = np.array(env.spec.action.num_values)
    self._episode_return: np.ndarray | None = None
    self._episode_step = np.zeros([self.num_envs], np.int32)
    self._closed = False
    self.num_steps = 0

  def initial(self) -> structs.StepOutput:
    """Starts all environments, each time from the same seeds.

    The result, `[E, ...]`, has reward 0, empty statistics, `done` True and
    `truncated` False. Raises EnvironmentValueError unless observations are
    finite.
    """
    self._check_open()
    observation = self._env.initial()
    self._episode_return = np.zeros([self.num_envs])
    self._episode_step = np.zeros([self.num_envs], np.int32)
    self._check_observation(observation, self._episode_step)
    return structs.StepOutput(
        reward=np.zeros([self.num_envs], np.float32),
        info=structs.StepOutputInfo(
            episode_return=self._episode_return.astype(np.float32),
            episode_step=self._episode_step,
            episode_end=np.zeros([self.num_envs], bool),
            metrics=self._no_metrics),
        done=np.ones([self.num_envs], bool),
        observation=observation,
        truncated=np.zeros([self.num_envs], bool))

  def step(self, actions: np.ndarray) -> structs.StepOutput:
    """Steps all environments.

    Args:
      actions: `[E, *shape]` of `spec.action.array`. Continuous actions are
        clipped to [-1, 1]: a Gaussian policy has no bounds.

    Returns:
      `StepOutput` of `[E, ...]`. Where `done`, the observation begins the next
      episode. Where `info.episode_end`, `info` describes the episode that
      ended, and the next step counts from zero.

    Raises:
      ValueError: actions have another shape or kind, are NaN, or are out of
        range (if discrete).
      RuntimeError: called before `initial` or after `close`.
      EnvironmentProcessError: an environment failed; only `close` still works.
      EnvironmentValueError: a reward or an observation is not finite.
    """
    self._check_open()
    if self._episode_return is None:
      raise RuntimeError('Call initial() before step().')
    result = self._env.step(self._check_actions(actions))
    self.num_steps += self.num_envs
    episode_step = self._episode_step + np.int32(1)
    self._episode_step = np.where(
        result.episode_end, np.int32(0), episode_step)
    self._check_finite('reward', result.reward, episode_step)
    self._check_observation(result.observation, self._episode_step)
    metrics: Mapping[str, np.ndarray] = self._no_metrics
    if result.episode_end.any():
      metrics = result.metrics
      self._check_observation(
          result.last_observation, episode_step, result.episode_end)
    # In float32, the sum of a million rewards of 0.1 is 0.96 % off.
    episode_return = self._episode_return + result.reward
    info = structs.StepOutputInfo(
        episode_return=episode_return.astype(np.float32),
        episode_step=episode_step,
        episode_end=result.episode_end, metrics=metrics)
    self._episode_return = np.where(
        result.episode_end, 0.0, episode_return)
    return structs.StepOutput(
        result.reward, info, result.done, result.observation, result.truncated,
        result.last_observation)

  def close(self) -> None:
    """Stops threads and processes; may be called again."""
    if not self._closed:
      self._closed = True
      self._env.close()

  def _check_actions(self, actions: npt.ArrayLike) -> np.ndarray:
    """Returns actions of the right dtype; raises ValueError if invalid."""
    array = np.asarray(actions)
    is_continuous = self.spec.action.size > 0
    kinds, kind_name = ('f', 'floats') if is_continuous else ('iu', 'integers')
    if array.shape != self._action_shape or array.dtype.kind not in kinds:
      raise ValueError(
          f'Actions must be {kind_name} of shape {self._action_shape}, not '
          f'{array.dtype} of shape {array.shape}.')
    if is_continuous:
      if np.isnan(array).any():
        raise ValueError(f'Actions must be numbers, not {array.tolist()}.')
      array = np.clip(array, -1, 1)
    elif (array < 0).any() or (array >= self._num_values).any():
      raise ValueError(
          'Actions must be at least 0 and below '
          f'{", ".join(map(str, self._num_values))}, not {array.tolist()}.')
    return array.astype(self._action_dtype, copy=False)

  def _check_observation(self, observation: Observation | tuple[()],
                         episode_step: np.ndarray,
                         rows: np.ndarray | bool = True) -> None:
    for name, array in nests.parts_of(observation).items():
      array = np.asarray(array)
      if array.dtype.kind == 'f':
        self._check_finite(
            f'observation {name}'.strip(), array, episode_step, rows)

  def _check_finite(self, what: str, values: np.ndarray,
                    episode_step: np.ndarray,
                    rows: np.ndarray | bool = True) -> None:
    """Raises EnvironmentValueError if `values[rows]` are not finite.

    `values` are floats `[E, ...]`, `episode_step` int32 `[E]` the number of
    steps from the start of each episode to the values, `rows` bool `[E]`.
    """
    finite = np.isfinite(values)
    if finite.all():
      return
    bad = rows & ~finite.reshape(self.num_envs, -1).all(axis=1)
    for row in np.flatnonzero(bad)[:1]:
      wrong = values[row][~finite[row]].flat[0]
      raise errors.EnvironmentValueError(
          f'Environment {self.indices[row]} ({self.level_names[row]}) returned '
          f'{what} {wrong}, {episode_step[row]} steps after the '
          'start of an episode: rewards and observations must be finite.')

  def _check_open(self) -> None:
    if self._closed:
      raise RuntimeError('This environment is closed.')

  def __enter__(self) -> 'FlowEnvironment':
    return self

  def __exit__(self, *exc_info: object) -> None:
    self.close()


class ActionRepeat(gymnasium.Wrapper):
  """Repeats each action and sums the rewards, up to the end of the episode."""

  def __init__(self, env: gymnasium.Env, num_action_repeats: int):
    """Wraps `env`, of which one step is one frame."""
    super().__init__(env)
    self._num_action_repeats = num_action_repeats

  def step(self, action: np.ndarray) -> Step:
    """Repeats an action until the episode ends; returns the summed reward."""
    total_reward = 0.0
    for _ in range(self._num_action_repeats):
      observation, reward, terminated, truncated, info = self.env.step(action)
      total_reward += user_code.number_of_reward(reward)
      if terminated or truncated:
        break
    return observation, total_reward, terminated, truncated, info


def check_arguments(level_names: Sequence[str], seeds: Sequence[int]) -> None:
  """Raises ValueError: no levels, or a wrong number or range of seeds."""
  if not level_names or isinstance(level_names, str):
    raise ValueError(
        f'level_names must be a sequence of names, not {level_names!r}.')
  if len(seeds) != len(level_names):
    raise ValueError(f'There must be one seed per environment, but there are '
                     f'{len(seeds)} seeds for {len(level_names)}.')
  if not all(0 <= seed < 2**31 for seed in seeds):
    raise ValueError(f'Seeds must be within [0, 2**31), not {list(seeds)}.')


def build(level_name: str, factory: Factory) -> gymnasium.Env:
  """Builds one environment in this process; errors name the level."""
  try:
    return factory()
  except (gymnasium.error.DependencyNotInstalled, ImportError) as e:
    newest = _newest_version(level_name)
    hint = '' if newest == level_name else f' The newest version is {newest}.'
    raise errors.MissingDependencyError(
        f'{level_name} needs a package that is not installed: {e}{hint}') from e


def unknown_level(
    level_name: str, known: Iterable[str]) -> errors.UnknownLevelError:
  """Returns the error for an unknown level, which suggests similar names.

  Of names that differ only in spelling, the error suggests a name that differs
  only in the version, else the newest version. Old ids of Atari games are not
  suggested.
  """
  module, colon, own_name = level_name.rpartition(':')
  base_of = lambda name: re.sub(r'-v\d+$', '', name)
  names = {_spelling(name): name for name in sorted(
      (name for name in known if not _is_old_atari_id(name)),
      key=lambda name: (base_of(name) == base_of(own_name), _version(name)))}
  spelling = _spelling(own_name)
  similar = [spelling] if spelling in names else difflib.get_close_matches(
      spelling, names, n=3, cutoff=0.5)
  similar = [module + colon + names[key] for key in similar]
  hint = f' Did you mean {" or ".join(similar)}?' if similar else ''
  if not colon:
    of_lab = '' if hint else ', and further levels of DeepMind Lab lab/NAME'
    hint = f' Levels of other packages are named module:id{of_lab}.{hint}'
  elif not similar and known is gymnasium.registry:
    hint = f' {module} does not call gymnasium.register with this id.'
  return errors.UnknownLevelError(f'Unknown level {level_name!r}.{hint}')


def _is_old_atari_id(name: str) -> bool:
  spec = gymnasium.registry.get(name)
  return spec is not None and '/' not in name and str(
      spec.entry_point).startswith('ale_py')


def _newest_version(level_name: str) -> str:
  """Returns the registered level that differs in the version only."""
  name = re.sub(r'-v\d+$', '', level_name)
  return max((level for level in gymnasium.registry
              if re.fullmatch(re.escape(name) + r'-v\d+', level)),
             key=_version, default=level_name)


def _version(level_name: str) -> int:
  match = re.search(r'-v(\d+)$', level_name)
  return int(match[1]) if match else -1


def _spelling(level_name: str) -> str:
  """Returns a name without variants, such as `mspacman` for ALE/MsPacman-v5."""
  return re.sub(r'^ale/|_|noframeskip|deterministic|-v\d+$', '',
                level_name.lower())
