# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The vocabulary: what travels between environments, actors and learner.

`T` is the unroll length, `B` the batch size, `E` the number of environments of
one actor, `A` the number of actions. Tensors are time-major.

The one time convention (the reference's):

*   Entry `t` of an unroll holds the `StepOutput` at `t` and the `AgentOutput`
    whose action *led to it*. The action of entry `t` was computed from the
    observation of entry `t - 1`.
*   An unroll has `T + 1` entries. Its first entry is the last entry of the
    unroll before, bit for bit.
*   `done[t]` says that observation `t` begins a new episode: environments reset
    in the step that ends an episode, and the recurrent state is zeroed before
    observation `t` is processed.

Fields are NumPy arrays on the acting side and tensors on the learning side.
This module must not import TensorFlow: environment processes import it.
"""

from typing import Any, NamedTuple, Tuple, Union

import numpy as np


class ArraySpec(NamedTuple):
  """Shape and dtype of an array of one environment.

  Attributes:
    shape: tuple of int, without the axes of time and environment.
    dtype: NumPy dtype; `object` stands for strings (`bytes`), of shape `()`.
  """
  shape: Tuple[int, ...]
  dtype: np.dtype


# Specs of observations: one array, or a dictionary of them.
ObservationSpec = Union[ArraySpec, 'dict[str, ArraySpec]']


class ActionSpec(NamedTuple):
  """Which actions there are; exactly one of the two is set.

  Attributes:
    num_values: for discrete actions, how many values each part has; one part
      is a plain number, `Discrete` in gymnasium.
    size: for continuous actions, how many numbers within [-1, 1] an action has.
  """
  num_values: Tuple[int, ...] = ()
  size: int = 0


class EnvironmentSpec(NamedTuple):
  """What agents and learners need to know of an environment.

  Attributes:
    observation: an `ArraySpec`, or a dictionary of them.
    action: the `ActionSpec`.
    num_action_repeats: environment frames per agent step.
  """
  observation: ObservationSpec
  action: ActionSpec
  num_action_repeats: int


class StepOutputInfo(NamedTuple):
  """Statistics of the running episode, up to and including this step.

  An episode here is a whole game: it goes on when a lost life sets `done` for
  the learner.

  Attributes:
    episode_return: float32 `[...]`, sum of the unclipped rewards.
    episode_step: int32 `[...]`, number of agent steps (not frames).
    episode_end: bool `[...]`, whether the whole game ended in this step.
  """
  episode_return: Any
  episode_step: Any
  episode_end: Any


class StepOutput(NamedTuple):
  """What an environment returns for one step.

  Attributes:
    reward: float32 `[...]`, unclipped reward that led to `observation`.
    info: `StepOutputInfo`.
    done: bool `[...]`, whether `observation` begins a new episode.
    observation: nest of arrays `[..., *shape]`: frames (uint8 `[H, W, C]`, or
      `[C, H, W]` for stacked Atari frames), a vector, or a dictionary with
      `frame` and `instruction` (bytes).
    truncated: bool `[...]`, whether a time limit, and nothing else, ended an
      episode in this step: `done`, too, but the episode was not over.
    last_observation: nest `[E, ...]` like `observation`: where `truncated`, the
      last one of the episode that was cut off; elsewhere without meaning. `()`
      in a step without truncation, and in unrolls.
  """
  reward: Any
  info: StepOutputInfo
  done: Any
  observation: Any
  truncated: Any = ()
  last_observation: Any = ()


class AgentOutput(NamedTuple):
  """What an agent returns for one step.

  Attributes:
    action: int32 `[...]`.
    policy_logits: float32 `[..., A]`, unnormalised log-probabilities.
    baseline: float32 `[...]`, estimate of the value.
  """
  action: Any
  policy_logits: Any
  baseline: Any


class ActorOutput(NamedTuple):
  """One unroll of `T + 1` entries of `E` environments, or a batch of `B`.

  Attributes:
    level_name: sequence of `E` (or `B`) level names.
    agent_state: nest of `[E, ...]`, the recurrent state before the observation
      of entry 0 is processed; `()` for feed-forward agents.
    env_outputs: `StepOutput` of `[T + 1, E, ...]`.
    agent_outputs: `AgentOutput` of `[T + 1, E, ...]`.
    truncation_values: float32 `[T + 1, E]`. Where a time limit and nothing else
      ended the episode in this step: the actor's estimate of the value of the
      last observation, which is not in `env_outputs`. Elsewhere, and everywhere
      unless asked for, 0.
  """
  level_name: Any
  agent_state: Any
  env_outputs: StepOutput
  agent_outputs: AgentOutput
  truncation_values: Any
