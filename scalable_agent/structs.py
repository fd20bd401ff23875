# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The vocabulary: what travels between environments, actors and learner.

`T` is the unroll length, `B` the batch size, `E` the number of environments of
one actor, `A` the number of actions. Tensors are time-major.

A glossary:

*   agent step: one action. Environment frames are agent steps x action repeats.
*   actor: a thread that steps `E` environments with a policy.
*   group: the environments of one actor; or, in a learner, the variables that
    one optimizer moves.
*   unroll: `T` agent steps in a row of a group. Its columns are those of single
    environments; a batch is made of `B` columns.
*   part: what one start of the program adds to a run that goes on from a
    checkpoint.
*   lag: how many updates the learner has made since it published the weights
    that acted.

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

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np

# NumPy's or TensorFlow's, which this module cannot name. `()`: it is left out.
Array: TypeAlias = Any
# An array, or a tuple or dictionary of nests, such as an observation.
Nest: TypeAlias = Any
# A recurrent state: a nest of `[E, ...]`, `()` for feed-forward agents.
State: TypeAlias = Nest


class ArraySpec(NamedTuple):
  """Shape and dtype of an array of one environment.

  Attributes:
    shape: tuple of int, without the axes of time and environment.
    dtype: NumPy dtype; `object` stands for strings (`bytes`), of shape `()`.
  """
  shape: tuple[int, ...]
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
  num_values: tuple[int, ...] = ()
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
  episode_return: Array
  episode_step: Array
  episode_end: Array


# Of what agents see.
NO_INFO = StepOutputInfo((), (), ())


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
  reward: Array
  info: StepOutputInfo
  done: Array
  observation: Nest
  truncated: Array = ()
  last_observation: Nest = ()

  def for_agent(self) -> 'StepOutput':
    """Returns what agents see: reward, done and observation."""
    return self._replace(info=NO_INFO, truncated=(), last_observation=())


class AgentOutput(NamedTuple):
  """What an agent returns for one step.

  Attributes:
    action: int32 `[...]`.
    policy: float32 `[..., P]`, the numbers that the policy's distribution is
      made of: for a softmax policy over `A` actions its `A` logits.
    baseline: float32 `[...]`, estimate of the value.
  """
  action: Array
  policy: Array
  baseline: Array


class Steps(NamedTuple):
  """The entries of an unroll, or of a batch of unrolls, along time.

  Attributes:
    env_outputs: `StepOutput` of `[T + 1, E, ...]`.
    agent_outputs: `AgentOutput` of `[T + 1, E, ...]`.
    truncation_values: float32 `[T + 1, E]`. Where `truncated`, the actor's
      estimate of the value of the last observation. Elsewhere, and everywhere
      unless asked for, 0.
  """
  env_outputs: StepOutput
  agent_outputs: AgentOutput
  truncation_values: Array


class Start(NamedTuple):
  """What is known of each column where its unroll begins.

  Attributes:
    level_name: object `[E]`, level names.
    agent_state: nest of `[E, ...]`, the recurrent state before the observation
      of entry 0 is processed; `()` for feed-forward agents.
    policy_version: int64 `[E]`, how many updates the weights had seen that
      chose the first action (at least: with a shared policy, also later ones).
  """
  level_name: Array
  agent_state: State
  policy_version: Array


class LastObservation(NamedTuple):
  """The last observation of an episode that a time limit cut off.

  Attributes:
    time: entry of the unroll that has `truncated`.
    column: column of that entry.
    observation: nest of arrays, without the axes of time and column.
  """
  time: int
  column: int
  observation: Nest


class Unroll(NamedTuple):
  """The message from acting to learning: `T + 1` steps of `E` environments.

  Pure data: it can be pickled and sent anywhere. A batch has the same form,
  with one column per unroll of a single environment.

  Attributes:
    steps: `Steps` of `[T + 1, E, ...]`.
    start: `Start` of `[E, ...]`.
    last_observations: `LastObservation`s, one for each entry from 1 on with
      `truncated`; few, and most often none.
  """
  steps: Steps
  start: Start
  last_observations: tuple[LastObservation, ...] = ()

  @property
  def num_columns(self) -> int:
    return len(self.start.policy_version)


class Batch(NamedTuple):
  """What one update learns from.

  Attributes:
    data: `Unroll` of tensors, without what is not learned from.
    num_new_frames: environment frames that no update has learned from before.
    weights: float32 `[B]`, importance weights of prioritised replay; or `()`.
    positions: int64 `[B]`, where the replay keeps the columns; or `()`.
  """
  data: Unroll
  num_new_frames: int
  weights: Array = ()
  positions: Array = ()


class Weights(NamedTuple):
  """A published version of an agent's weights, never changed afterwards.

  Attributes:
    version: number of updates that made them.
    values: one array or tensor per variable, in the order of `agent.variables`.
  """
  version: int
  values: Sequence[Array]
