# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The vocabulary: data between environments, actors and learner.

`T` is the unroll length, `B` the batch size, `E` the number of environments of
one actor, `A` the number of actions, `K` the number of updates in one call of
the learner. Time is the first axis. Only `K` is in front of time.

Glossary:

*   actor: a thread that steps the `E` environments of one group with a policy.
*   agent step: one action of one environment, with all repeats of the action.
*   column: the entries of one environment in an unroll. A column has the form
    of an unroll with `E = 1`. A batch of unrolls has `B` columns.
*   episode: a whole game. After a lost life, the episode continues, also where
    `done` is set for the learner.
*   frames: environment frames, which are agent steps x action repeats. As an
    observation, a frame is an image.
*   group: environments of one actor; in a learner, variables of one optimizer.
*   importance weights: an action's probability by the policy that learns over
    that by the policy that acted; in a replay, corrections of drawn priorities.
*   lag: updates between the weights that acted and the weights that learn.
*   learner 0: of `--num_learners` learners, the writer of the log directory.
*   part: the training from a start of the program on; in a deterministic run,
    from a checkpoint on. A part of an action is one number of the action.
*   position: names an entry of a replay, so that its priority can be set.
*   torso: the layers of a network from an observation to the heads.
*   unroll: `T` agent steps in a row; a column, if unrolls are counted.
*   version: the number of updates that made some weights.

The one time convention (as in the reference):

*   Entry `t` of an unroll holds the `StepOutput` at `t` and the `AgentOutput`
    whose action *led to it*. The action of entry `t` was computed from the
    observation of entry `t - 1`.
*   An unroll has `T + 1` entries. Its first entry is the last entry of the
    unroll before, bit for bit.
*   `done[t]` means that observation `t` begins a new episode: environments
    reset in the step that ends an episode, and the recurrent state is set to
    zero before observation `t` is processed.

Fields are NumPy arrays on the acting side and tensors on the learning side.
"""

from collections import abc
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np

# An array of NumPy or a tensor; `()` if left out.
Array: TypeAlias = Any
# An array, or a tuple or dictionary of nests, such as an observation.
Nest: TypeAlias = Any
# A recurrent state: a nest of `[E, ...]`, `()` for feed-forward agents.
State: TypeAlias = Nest


class ArraySpec(NamedTuple):
  """Shape and dtype of an array, without the axes of time and environment.

  The dtype `object` means strings (`bytes`), of shape `()`.
  """
  shape: tuple[int, ...]
  dtype: np.dtype


class DiscreteSpec(ArraySpec):
  """Spec of one-hot codes, or of small integers, in float32."""


# Specs of observations: one array, or a dictionary of arrays.
ObservationSpec = Union[ArraySpec, 'dict[str, ArraySpec]']


class ActionSpec(NamedTuple):
  """The actions of an environment. Exactly one of the two fields is set.

  Attributes:
    num_values: for discrete actions, the number of values of each part of an
      action. An action of one part is a plain number, int32 `[]`. An action of
      `N` parts is int32 `[N]`.
    size: for continuous actions, the number of parts, `N`. An action is float32
      `[N]` within [-1, 1].
  """
  num_values: tuple[int, ...] = ()
  size: int = 0

  @property
  def array(self) -> ArraySpec:
    """The array that is an action of one environment."""
    if self.size:
      return ArraySpec((self.size,), np.dtype(np.float32))
    parts = len(self.num_values)
    return ArraySpec((parts,) if parts > 1 else (), np.dtype(np.int32))


class EnvironmentSpec(NamedTuple):
  """Observations and actions of an environment, as agents see and choose them.

  `num_action_repeats` are frames per agent step. `units` are the environment's
  spaces, of `units.describe`; None if those of agents, or not known.
  """
  observation: ObservationSpec
  action: ActionSpec
  num_action_repeats: int
  units: dict[str, object] | None = None

  def to_json(self) -> dict[str, object]:
    """Returns the spec in numbers, strings, lists and dictionaries."""
    part = lambda spec: {'shape': list(spec.shape), 'dtype': spec.dtype.str,
                         'discrete': isinstance(spec, DiscreteSpec)}
    names = self.observation if isinstance(self.observation, dict) else {}
    pairs = [(name, part(spec)) for name, spec in names.items()]
    parts = dict(pairs) if all(isinstance(n, str) for n in names) else pairs
    seen = {'parts': parts} if names else part(self.observation)
    units = {'units': self.units} if self.units else {}
    return {'observation': seen, 'action': self.action._asdict(),
            'num_action_repeats': self.num_action_repeats, **units}

  @classmethod
  def from_json(cls, data: abc.Mapping[str, Any]) -> 'EnvironmentSpec':
    """Returns the spec; LookupError, TypeError or ValueError for other data."""
    ints = lambda numbers: tuple(map(int, numbers))
    part = lambda spec: (DiscreteSpec if spec.get('discrete') else ArraySpec)(
        ints(spec['shape']), np.dtype(spec['dtype']))
    seen, action = data['observation'], data['action']
    return cls({name: part(spec) for name, spec in dict(seen['parts']).items()}
               if 'parts' in seen else part(seen),
               ActionSpec(ints(action['num_values']), int(action['size'])),
               int(data['num_action_repeats']), data.get('units'))


class StepOutputInfo(NamedTuple):
  """Statistics of the running episode, a whole game, including this step.

  Attributes:
    episode_return: float32 `[...]`, sum of the unclipped rewards.
    episode_step: int32 `[...]`, number of agent steps (not frames).
    episode_end: bool `[...]`, whether the whole game ended in this step. After
      a lost life, which may set `done`, the game continues.
    metrics: float32 `[...]` by name, of `--episode_metrics`, NaN if missing.
      Without meaning unless `episode_end`.
  """
  episode_return: Array
  episode_step: Array
  episode_end: Array
  metrics: Nest = {}


# The `info` in the input of agents.
NO_INFO = StepOutputInfo((), (), (), ())


class StepOutput(NamedTuple):
  """The result of one step of an environment.

  Attributes:
    reward: float32 `[...]`, unclipped, of the action that led to `observation`.
    info: statistics of the episode.
    done: bool `[...]`, whether `observation` begins a new episode.
    observation: nest of arrays `[..., *shape]`: frames (uint8 `[H, W, C]`, or
      `[C, H, W]` for stacked Atari frames), a vector, or a dictionary of frames
      and vectors and, if wanted, an `instruction` (bytes).
    truncated: bool `[...]`, whether a time limit, and nothing else, ended an
      episode in this step. Then `done` is True as well.
    last_observation: nest `[E, ...]` like `observation`, the last one of an
      episode where `info.episode_end`. `()` without an end, and in unrolls.
  """
  reward: Array
  info: StepOutputInfo
  done: Array
  observation: Nest
  truncated: Array = ()
  last_observation: Nest = ()

  def for_agent(self) -> 'StepOutput':
    """Returns the input of agents: reward, done and observation."""
    return self._replace(info=NO_INFO, truncated=(), last_observation=())


class AgentOutput(NamedTuple):
  """The output of an agent for one step.

  Attributes:
    action: `[..., *shape]` of `ActionSpec.array`.
    policy: float32 `[..., P]`, the parameters of the policy's distribution,
      such as `A` logits. `()` if no loss needs the parameters.
    baseline: float32 `[...]`, the value; `[..., L]` for `L` levels; or `()`.
  """
  action: Array
  policy: Array
  baseline: Array


class Steps(NamedTuple):
  """The entries of an unroll, or of a batch of unrolls, along time.

  Attributes:
    env_outputs, agent_outputs: `[T + 1, E, ...]`.
    truncation_values: float32 like `baseline`, the actor's estimate of the
      value of the last observation where `truncated`. 0 elsewhere, and always
      without `bootstrap_truncated`.
  """
  env_outputs: StepOutput
  agent_outputs: AgentOutput
  truncation_values: Array


class Start(NamedTuple):
  """Facts about each column at the start of the unroll.

  Attributes:
    level_name: object `[E]`, level names.
    environment: int64 `[E]`, numbers in the run. Unrolls have no gaps.
    agent_state: the recurrent state before observation 0 is processed.
    policy_version: int64 `[E]`, the version of the weights that chose the first
      action. With a shared policy, these weights can be newer.
  """
  level_name: Array
  environment: Array
  agent_state: State
  policy_version: Array


class LastObservation(NamedTuple):
  """The observation before the `info.episode_end` at `time` and `column`."""
  time: int
  column: int
  observation: Nest


class Unroll(NamedTuple):
  """The message from acting to learning: `T + 1` steps of `E` environments.

  A batch has the same form, with one column per unroll of a single environment.
  `last_observations` has an element for each `info.episode_end` after entry 0.
  """
  steps: Steps
  start: Start
  last_observations: tuple[LastObservation, ...] = ()

  @property
  def num_columns(self) -> int:
    """The number of columns: `E`, or `B` for a batch."""
    return self.steps.env_outputs.reward.shape[1]


class Transition(NamedTuple):
  """An action and its result after one agent step, or after up to `n` steps.

  Attributes:
    observation: nest of `[B, ...]`, from which the action was chosen.
    action: `[B, *shape]` of `ActionSpec.array`, the executed action: continuous
      actions are within [-1, 1].
    reward: float32 `[B]`, the sum of the discounted rewards of `k <= n` steps.
    discount: float32 `[B]`, `gamma^k`; 0 if the episode ended with the `k`-th
      step, unless a time limit cut the episode off.
    next_observation: nest of `[B, ...]`, after `k` steps; the last observation
      of the episode if a time limit cut the episode off.
  """
  observation: Nest
  action: Array
  reward: Array
  discount: Array
  next_observation: Nest


class Sequence(NamedTuple):
  """`E` entries of each environment; an agent with memory learns the last `L`.

  The last observation of a truncated game is an entry in front of the entry
  that begins the next game. `E - L - 1` entries only move the state (burn-in).

  Attributes:
    env_outputs: `[E, B, ...]`, see `StepOutput.for_agent`.
    actions: `[E, B, ...]`, the actions that led to the entries.
    state: nest of `[B, ...]`, the recurrent state before entry 0.
    reward, discount: float32 `[L, B]`, as in `Transition`.
    next: int32 `[L, B]`, the entry after these steps; learned entries are 0 on.
    known: float32 `[L, B]`, 0 where no action was chosen, or nothing followed.
  """
  env_outputs: StepOutput
  actions: Array
  state: State
  reward: Array
  discount: Array
  next: Array
  known: Array


class Episode(NamedTuple):
  """A finished game; `episode_return` is the sum of unclipped rewards."""
  level_name: str
  episode_return: float
  num_agent_steps: int
  metrics: abc.Mapping[str, float] = {}


class Note(NamedTuple):
  """The facts of an unroll for the log: all ended episodes.

  `actions`, `[N, ...]`, and `rewards`, float32 `[N]`, are of all steps.
  """
  episodes: list[Episode]
  actions: np.ndarray
  rewards: np.ndarray
  policy_version: np.ndarray


class Sample(NamedTuple):
  """A batch in host arrays, which the next sample may overwrite.

  For `K > 1` updates, unrolls have `K * B` columns; else `K` is the first axis.

  Attributes:
    data: the items.
    importance_weights: float32 `[B]`, factors of the losses; None for ones.
    positions: int64 `[B]`, positions in a prioritised replay, else None.
    largest_weight: of several learners with priorities: the number that the
      importance weights of old columns would be divided by for one learner.
    num_new_steps: agent steps that have arrived since the last sample.
    notes: a note about each unroll of these steps.
    num_new_columns: columns in front that the learner has not seen before.
    new_rows: see `statistics.NewRows`; empty without such statistics.
  """
  data: Unroll | Transition | Sequence
  importance_weights: np.ndarray | None = None
  positions: np.ndarray | None = None
  num_new_steps: int = 0
  notes: abc.Sequence[Note] = ()
  num_new_columns: int = 0
  largest_weight: float | None = None
  new_rows: abc.Mapping[str, tuple[Array, ...]] = {}


class Batch(NamedTuple):
  """A `Sample` in tensors; `num_new_frames` counts environment frames."""
  data: Unroll | Transition | Sequence
  importance_weights: Array | None
  num_new_frames: int
  positions: np.ndarray | None = None
  notes: abc.Sequence[Note] = ()
  num_new_columns: int = 0
  largest_weight: float | None = None
  new_rows: abc.Mapping[str, tuple[Array, ...]] = {}


class Weights(NamedTuple):
  """Weights that never change, in the order of `agent.variables`."""
  version: int
  values: abc.Sequence[Array]
