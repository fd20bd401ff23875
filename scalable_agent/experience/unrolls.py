# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes unrolls from steps, and batches from unrolls. NumPy only.

An observation is copied from the environment into a preallocated unroll, and
from there into a preallocated batch, which TensorFlow copies to its device.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.experience.nests import map_nests
import tree


class Delivery(NamedTuple):
  """An unroll in the inbox of a learner.

  The caller of `Inbox.get` calls `release` after reading `unroll`, whose arrays
  may be overwritten from then on.
  """
  unroll: structs.Unroll
  release: Callable[[], None]


class Inbox(Protocol):
  """The source of a learner's unrolls, such as a `queues.BoundedQueue`."""

  def get(self) -> Delivery:
    """Waits for the next unroll; raises errors and `QueueClosed`."""


def allocate(unroll_length: int, level_names: Sequence[str],
             observation_spec: structs.ObservationSpec,
             output_spec: structs.AgentOutput,
             agent_state: structs.State,
             metric_names: Iterable[str] = ()) -> structs.Unroll:
  """Allocates an unroll (or a batch) of uninitialised arrays.

  Args:
    unroll_length: `T`; the arrays have `T + 1` entries along time.
    level_names: the level of every column.
    observation_spec: the spec of one array, or of a dictionary of arrays.
    output_spec: see `Agent.output_spec`.
    agent_state: nest of `[E, *shape]` to take shapes from; the arrays are
      float32 `[columns, *shape]`.
    metric_names: the names in `StepOutputInfo.metrics`.
  """
  columns = len(level_names)
  steps = (unroll_length + 1, columns)
  empty = lambda spec: np.empty((*steps, *spec.shape), spec.dtype)
  return structs.Unroll(
      steps=structs.Steps(
          env_outputs=structs.StepOutput(
              reward=np.empty(steps, np.float32),
              info=structs.StepOutputInfo(
                  episode_return=np.empty(steps, np.float32),
                  episode_step=np.empty(steps, np.int32),
                  episode_end=np.empty(steps, np.bool_),
                  metrics={name: np.empty(steps, np.float32)
                           for name in metric_names}),
              done=np.empty(steps, np.bool_),
              observation=map_nests(empty, observation_spec),
              truncated=np.empty(steps, np.bool_)),
          agent_outputs=structs.AgentOutput(
              *[empty(spec) if spec else () for spec in output_spec]),
          truncation_values=empty(
              output_spec.baseline or structs.ArraySpec(
                  (), np.dtype(np.float32)))),
      start=structs.Start(
          level_name=np.array(level_names, dtype=object),
          environment=np.arange(columns, dtype=np.int64),
          agent_state=tree.map_structure(
              lambda s: np.empty((columns, *s.shape[1:]), np.float32),
              agent_state),
          policy_version=np.empty([columns], np.int64)))


def write(unroll: structs.Unroll, index: int, env_output: structs.StepOutput,
          agent_output: structs.AgentOutput,
          truncation_value: np.ndarray) -> None:
  """Copies one step of all environments into entry `index` along time."""
  env_output = env_output._replace(last_observation=())
  _write(unroll.steps.env_outputs, index, env_output)
  _write(unroll.steps.agent_outputs, index, agent_output)
  unroll.steps.truncation_values[index] = truncation_value


def _write(arrays: structs.Nest, index: int, values: structs.Nest) -> None:
  for array, value in zip(tree.flatten(arrays), tree.flatten(values),
                          strict=True):
    array[index] = value


def last_observations(
    index: int, env_output: structs.StepOutput
) -> list[structs.LastObservation]:
  """Returns copies of the last observations of episodes that end in a step.

  `index` is the entry of the step in its unroll.
  """
  return [
      structs.LastObservation(index, int(column), tree.map_structure(
          lambda array, column=column: np.array(array[column]),
          env_output.last_observation))
      for column in np.flatnonzero(env_output.info.episode_end)]


def columns(unroll: structs.Unroll, start: int, end: int) -> structs.Unroll:
  """Returns the columns `start` to `end`, which share the memory of `unroll`.

  An unroll of tensors must not have last observations.
  """
  return structs.Unroll(
      steps=tree.map_structure(lambda x: x[:, start:end], unroll.steps),
      start=tree.map_structure(lambda x: x[start:end], unroll.start),
      last_observations=tuple(
          last._replace(column=last.column - start)
          for last in unroll.last_observations if start <= last.column < end))


def batches(inbox: Inbox,
            batch: structs.Unroll) -> Iterator[structs.Unroll]:
  """Fills `batch` with the columns of unrolls, first in, first out.

  The batch size and the number of environments need not be multiples of each
  other: the rest of an unroll goes into the next batch. No column is dropped or
  repeated. Last observations, which only a replay of steps needs, are left out.
  An unroll is released when all columns are copied. Errors of the inbox, such
  as `QueueClosed`, are raised here. Yields `batch`, which the next batch
  overwrites.
  """
  delivery: Delivery | None = None
  start = 0
  while True:
    filled = 0
    while filled < batch.num_columns:
      if delivery is None:
        delivery, start = inbox.get(), 0
      unroll = delivery.unroll
      count = min(batch.num_columns - filled, unroll.num_columns - start)
      copy_columns(batch, filled, unroll, start, count)
      filled, start = filled + count, start + count
      if start == unroll.num_columns:
        delivery.release()
        delivery = None
    yield batch


def copy_columns(batch: structs.Unroll, batch_start: int,
                 unroll: structs.Unroll, unroll_start: int,
                 count: int) -> None:
  """Copies the arrays of `count` columns of `unroll` into those of `batch`."""
  to = slice(batch_start, batch_start + count)
  source = slice(unroll_start, unroll_start + count)

  def copy_start(into: np.ndarray, values: np.ndarray) -> None:
    into[to] = values[source]

  def copy_steps(into: np.ndarray, values: np.ndarray) -> None:
    into[:, to] = values[:, source]

  tree.map_structure(copy_start, batch.start, unroll.start)
  tree.map_structure(copy_steps, batch.steps, unroll.steps)
