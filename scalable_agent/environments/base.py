# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What every family of environments shares: errors, stepping.

`E` is the number of environments of one vector. Like everything in this
package, this module must not import TensorFlow: it runs in worker processes.
"""

import difflib
import re
from typing import Any, Iterable, NamedTuple, Optional, Protocol, Sequence

import numpy as np

from scalable_agent import errors
from scalable_agent import structs


class Truncation(NamedTuple):
  """Episodes that a time limit, and nothing else, ended in one step.

  Attributes:
    mask: bool `[E]`, which ones.
    observation: nest of `[E, ...]`, where `mask` the last observation of the
      episode; elsewhere it has no meaning.
  """
  mask: np.ndarray
  observation: Any


class VectorEnvironment(Protocol):
  """What a family of environments provides: `E` environments in lockstep.

  Attributes:
    observation_spec: a `structs.ArraySpec`, or a dictionary of them.
    num_actions: int.
    num_action_repeats: int, environment frames per step.
  """
  observation_spec: Any
  num_actions: int
  num_action_repeats: int

  def initial(self) -> Any:
    """Begins anew from the seeds; returns the first observation `[E, ...]`."""

  def step(
      self, actions: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any, Optional[Truncation]]:
    """Steps all environments; those whose episode ends are reset at once.

    Args:
      actions: int32 `[E]`.

    Returns:
      Reward float32 `[E]`; done bool `[E]`; episode_end bool `[E]`, which is
      `done` except where a mere life was lost; observation `[E, ...]`, which
      where `done` is the first one of the next episode; and the `Truncation`,
      None if there was none.
    """

  def close(self):
    """Frees everything; may be called again."""


class FlowEnvironment:
  """A vector of environments as a flow of `StepOutput`s.

  Arrays returned by `initial` and `step` are only valid until the next call.

  Attributes:
    num_envs: int, `E`.
    level_names: tuple of `E` names.
    observation_spec: a `structs.ArraySpec`, or a dictionary of them.
    num_actions: int, actions are `0 .. num_actions - 1`.
    num_action_repeats: int, environment frames per step.
    truncation: `Truncation` of the last step; None if there was none.
  """

  def __init__(self, env: VectorEnvironment, level_names: Sequence[str]):
    """Wraps `env`, which this object closes.

    Args:
      env: `VectorEnvironment` of `E` environments.
      level_names: `E` names.
    """
    self._env = env
    self.level_names = tuple(level_names)
    self.num_envs = len(self.level_names)
    self.observation_spec = env.observation_spec
    self.num_actions = env.num_actions
    self.num_action_repeats = env.num_action_repeats
    self.truncation: Optional[Truncation] = None
    self._episode_return = None
    self._episode_step = None
    self._closed = False

  def initial(self) -> structs.StepOutput:
    """Begins anew, from the same seeds each time.

    Returns:
      `StepOutput` of `[E, ...]`: reward 0, empty statistics, `done` True.
    """
    self._check_open()
    observation = self._env.initial()
    self.truncation = None
    self._episode_return = np.zeros([self.num_envs], np.float32)
    self._episode_step = np.zeros([self.num_envs], np.int32)
    return structs.StepOutput(
        reward=np.zeros([self.num_envs], np.float32),
        info=structs.StepOutputInfo(
            episode_return=self._episode_return,
            episode_step=self._episode_step,
            episode_end=np.zeros([self.num_envs], bool)),
        done=np.ones([self.num_envs], bool),
        observation=observation)

  def step(self, actions: np.ndarray) -> structs.StepOutput:
    """Steps all environments.

    Args:
      actions: int32 `[E]`.

    Returns:
      `StepOutput` of `[E, ...]`. Where `done`, the observation begins the next
      episode. Where `info.episode_end`, `info` is about the episode that ended,
      and the next step counts from zero.

    Raises:
      ValueError: actions of another shape, not integers, or out of range.
      RuntimeError: called before `initial` or after `close`.
      EnvironmentProcessError: an environment failed; only `close` can follow.
    """
    self._check_open()
    if self._episode_return is None:
      raise RuntimeError('Call initial() before step().')
    actions = np.asarray(actions)
    if actions.shape != (self.num_envs,) or actions.dtype.kind not in 'iu':
      raise ValueError(f'Actions must be integers of shape ({self.num_envs},), '
                       f'not {actions.dtype} of shape {actions.shape}.')
    if actions.min() < 0 or actions.max() >= self.num_actions:
      raise ValueError(f'Actions must be within 0 .. {self.num_actions - 1}, '
                       f'not {actions.tolist()}.')
    reward, done, episode_end, observation, self.truncation = self._env.step(
        actions.astype(np.int32, copy=False))
    info = structs.StepOutputInfo(
        episode_return=self._episode_return + reward,
        episode_step=self._episode_step + np.int32(1),
        episode_end=episode_end)
    self._episode_return = np.where(
        episode_end, np.float32(0), info.episode_return)
    self._episode_step = np.where(episode_end, np.int32(0), info.episode_step)
    return structs.StepOutput(reward, info, done, observation)

  def close(self):
    """Stops threads and processes; may be called again."""
    if not self._closed:
      self._closed = True
      self._env.close()

  def _check_open(self):
    if self._closed:
      raise RuntimeError('This environment is closed.')

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self.close()


def unknown_level(
    level_name: str, known: Iterable[str], reason: str = ''
) -> errors.UnknownLevelError:
  """The error for a level that does not exist, with the most similar names.

  Args:
    level_name: the level that was asked for.
    known: names there are. Of those that differ in spelling alone, the last.
    reason: what else to say.
  """
  names = {_spelling(name): name for name in known}
  spelling = _spelling(level_name)
  similar = [spelling] if spelling in names else difflib.get_close_matches(
      spelling, names, n=3, cutoff=0.5)
  hint = (f' Did you mean {" or ".join(names[key] for key in similar)}?'
          if similar else '')
  return errors.UnknownLevelError(f'Unknown level {level_name!r}.{hint}{reason}')


def _spelling(level_name):
  """Returns `mspacman` for ALE/MsPacman-v5, ms_pacman, MsPacmanNoFrameskip-v4.
  """
  return re.sub(r'^ale/|_|noframeskip|deterministic|-v\d+$', '',
                level_name.lower())
