# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Steps become unrolls, unrolls become batches. NumPy only.

An observation is copied from the environment into a preallocated unroll, and
from there into a preallocated batch, which TensorFlow copies to its device.
"""

from typing import Any, Iterator, NamedTuple, Optional, Sequence

import numpy as np
from scalable_agent import queues
from scalable_agent import structs
import tree


class Unroll(NamedTuple):
  """`T + 1` consecutive steps of `E` environments, in preallocated arrays.

  Attributes:
    output: `ActorOutput` of arrays `[T + 1, E, ...]` (`agent_state` `[E, ...]`,
      `level_name` object `[E]`).
    policy_version: int64 `[E]`, how many updates the weights had seen that
      chose the first action (at least: with a shared policy, also later ones).
    pool: where the arrays wait to be written again, or None.
  """
  output: structs.ActorOutput
  policy_version: np.ndarray
  pool: Optional[queues.BoundedQueue] = None

  @property
  def num_columns(self) -> int:
    return len(self.policy_version)

  def release(self) -> None:
    """Gives the arrays back to their pool: the caller has read them."""
    self.pool.put(self)


def allocate(unroll_length: int, level_names: Sequence[str],
             observation_spec: Any, num_actions: int,
             agent_state: Any,
             pool: Optional[queues.BoundedQueue] = None) -> Unroll:
  """Allocates an unroll (or a batch) with one column per level name.

  Args:
    unroll_length: `T`; the arrays have `T + 1` entries along time.
    level_names: the level of every column.
    observation_spec: nest of specs with `shape` and `dtype`.
    num_actions: the number of actions.
    agent_state: nest of float32 `[..., *shape]` to take shapes from.
    pool: where `release` puts the unroll.

  Returns:
    An `Unroll` of uninitialised arrays.
  """
  columns = len(level_names)
  steps = (unroll_length + 1, columns)
  return Unroll(
      output=structs.ActorOutput(
          level_name=np.array(level_names, dtype=object),
          agent_state=tree.map_structure(
              lambda s: np.empty((columns, *s.shape[1:]), np.float32),
              agent_state),
          env_outputs=structs.StepOutput(
              reward=np.empty(steps, np.float32),
              info=structs.StepOutputInfo(
                  episode_return=np.empty(steps, np.float32),
                  episode_step=np.empty(steps, np.int32),
                  episode_end=np.empty(steps, np.bool_)),
              done=np.empty(steps, np.bool_),
              observation=_map_spec(
                  lambda spec: np.empty((*steps, *spec.shape), spec.dtype),
                  observation_spec)),
          agent_outputs=structs.AgentOutput(
              action=np.empty(steps, np.int32),
              policy_logits=np.empty((*steps, num_actions), np.float32),
              baseline=np.empty(steps, np.float32)),
          truncation_values=np.empty(steps, np.float32)),
      policy_version=np.empty([columns], np.int64),
      pool=pool)


def _map_spec(fn, spec):
  # A spec is a named tuple itself, so tree.map_structure would walk into it.
  if isinstance(spec, dict):
    return {name: fn(entry) for name, entry in spec.items()}
  return fn(spec)


def write(unroll: Unroll, index: int, env_output: structs.StepOutput,
          agent_output: structs.AgentOutput,
          truncation_value: np.ndarray) -> None:
  """Copies one step of all environments into entry `index` along time."""
  _write(unroll.output.env_outputs, index, env_output)
  _write(unroll.output.agent_outputs, index, agent_output)
  unroll.output.truncation_values[index] = truncation_value


def _write(arrays, index, values):
  for array, value in zip(tree.flatten(arrays), tree.flatten(values),
                          strict=True):
    array[index] = value


def first_columns(unroll: Unroll, count: int) -> Unroll:
  """Returns the first `count` columns, which share their memory with `unroll`.
  """
  leading = lambda array: array[:count]
  output = tree.map_structure(
      lambda array: array[:, :count],
      unroll.output._replace(level_name=(), agent_state=()))
  return Unroll(
      output=output._replace(
          level_name=leading(unroll.output.level_name),
          agent_state=tree.map_structure(leading, unroll.output.agent_state)),
      policy_version=leading(unroll.policy_version))


def batches(queue: queues.BoundedQueue, batch: Unroll) -> Iterator[Unroll]:
  """Fills `batch` with the columns of unrolls, first in, first out.

  Batch size and number of environments need not divide each other: what is
  left of an unroll goes into the next batch. No column is dropped or repeated.

  Args:
    queue: the source of `Unroll`s, which are released once all their columns
      are copied; its `QueueClosed` or error passes through.
    batch: from `allocate`, with one column per unroll of the batch.

  Yields:
    `batch`, filled anew; its arrays are overwritten for the next one.
  """
  unroll, start = None, 0
  while True:
    filled = 0
    while filled < batch.num_columns:
      if unroll is None:
        unroll, start = queue.get(), 0
      count = min(batch.num_columns - filled, unroll.num_columns - start)
      copy_columns(batch, filled, unroll, start, count)
      filled, start = filled + count, start + count
      if start == unroll.num_columns:
        unroll.release()
        unroll = None
    yield batch


def copy_columns(batch: Unroll, batch_start: int, unroll: Unroll,
                 unroll_start: int, count: int) -> None:
  """Copies `count` columns of `unroll` into those of `batch`."""
  to = slice(batch_start, batch_start + count)
  source = slice(unroll_start, unroll_start + count)

  def copy_leading(into, values):
    into[to] = values[source]

  def copy_steps(into, values):
    into[:, to] = values[:, source]

  copy_leading(batch.policy_version, unroll.policy_version)
  copy_leading(batch.output.level_name, unroll.output.level_name)
  tree.map_structure(copy_leading, batch.output.agent_state,
                     unroll.output.agent_state)
  tree.map_structure(copy_steps, batch.output.env_outputs,
                     unroll.output.env_outputs)
  tree.map_structure(copy_steps, batch.output.agent_outputs,
                     unroll.output.agent_outputs)
  copy_steps(batch.output.truncation_values, unroll.output.truncation_values)
