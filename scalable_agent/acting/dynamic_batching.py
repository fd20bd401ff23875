# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Dynamic batching: one call of a function serves many threads.

If several threads call a function at about the same time, another thread
concatenates the arguments and calls the function once. Each caller waits for
its own rows of the result.

The semantics are those of `dynamic_batching.py` and `batcher.cc` of
https://github.com/google-deepmind/scalable_agent, whose decorator is in
`compat.scalable_agent.dynamic_batching`. There is no compiled op: rows are
joined and split as NumPy arrays on the host, where views cost next to nothing.
"""

import collections
from collections.abc import Callable, Sequence
from concurrent import futures
import dataclasses
import threading
import time
from typing import NamedTuple
import weakref

import numpy as np
from scalable_agent.acting import batch_checks
from scalable_agent.acting.batch_checks import DType
from scalable_agent.experience import structs
from scalable_agent.processes import threads
import tensorflow as tf
import tree


@dataclasses.dataclass(eq=False)
class _Request:
  """The inputs of one caller, and the results so far.

  The rows may be in several batches, which end in any order.
  """
  inputs: list[np.ndarray]
  output_dtypes: Sequence[DType] | None
  num_taken: int = 0
  num_done: int = 0
  outputs: dict[int, list[np.ndarray]] = dataclasses.field(default_factory=dict)
  future: futures.Future = dataclasses.field(default_factory=futures.Future)

  @property
  def num_rows(self) -> int:
    # Empty inputs count as one row: `check_inputs` then rejects them.
    shape = self.inputs[0].shape if self.inputs else ()
    return max(shape[0], 1) if shape else 1

  def add(self, first_row: int, num_rows: int,
          outputs: list[np.ndarray]) -> None:
    """Stores the results of some rows; the last rows wake the caller."""
    self.outputs[first_row] = outputs
    self.num_done += num_rows
    if self.num_done == self.num_rows and not self.future.done():
      parts = [self.outputs[row] for row in sorted(self.outputs)]
      self.future.set_result(parts[0] if len(parts) == 1 else [
          np.concatenate(arrays) for arrays in zip(*parts, strict=True)])

  def cancel(self, message: str, cause: BaseException | None = None) -> None:
    """Ends the caller with an error, unless the caller has ended."""
    if not self.future.done():
      self.future.set_exception(batch_checks.cancelled(message, cause))


class _Part(NamedTuple):
  """The rows of a request that are in one batch."""
  request: _Request
  first_row: int
  num_rows: int

  def inputs(self) -> list[np.ndarray]:
    end = self.first_row + self.num_rows
    return [array[self.first_row:end] for array in self.request.inputs]


class _BatchId(np.int64):
  """The id of a batch, which, unlike an int, can have a finalizer."""


class Batcher:
  """Gathers inputs of many threads into batches, and scatters the results.

  Callers use `compute`. A worker takes batches with `get_inputs` and returns
  results with `set_outputs`, in any order and from any thread.

  An input of `k` rows counts as `k` inputs of one row that return together. If
  a batch would exceed `maximum_batch_size`, the rows go into several batches.

  Any error closes the batcher for good. Then all present and later callers of
  `compute` get a `CancelledError` with the error as `__cause__`.

  If a worker drops the id of a batch before `set_outputs`, because the worker
  has failed, the callers get a `CancelledError`.
  """

  def __init__(self, minimum_batch_size: int = 1,
               maximum_batch_size: int = 1024,
               timeout_ms: float | None = 100):
    """Makes an open batcher without inputs.

    Args:
      minimum_batch_size: number of rows that makes a batch complete.
      maximum_batch_size: largest number of rows of a batch.
      timeout_ms: time after which `get_inputs` returns an incomplete batch. If
        there are no rows at all, the time starts again. None or 0: no limit.
    """
    if minimum_batch_size < 1 or maximum_batch_size < 1:
      raise ValueError(
          'minimum_batch_size and maximum_batch_size must be at least 1 but '
          f'were {minimum_batch_size} and {maximum_batch_size}.')
    if timeout_ms is not None and timeout_ms < 0:
      raise ValueError(f'timeout_ms must not be negative but was {timeout_ms}.')
    self._minimum_batch_size = minimum_batch_size
    self._maximum_batch_size = maximum_batch_size
    self._timeout_s = timeout_ms / 1000 if timeout_ms else None
    self._changed = threading.Condition()
    self._waiting: collections.deque[_Request] = collections.deque()
    self._num_rows_waiting = 0
    self._being_computed: dict[int, list[_Part]] = {}
    self._next_id = 0
    self._is_closed = False
    self._error: BaseException | None = None

  @property
  def name(self) -> str:
    """Always `batcher`, for the reference's interface."""
    return 'batcher'

  def __len__(self) -> int:
    """Returns the number of waiting rows."""
    return self._num_rows_waiting

  def compute(self, flat_args: Sequence[structs.Array],
              output_dtypes: Sequence[DType] | None = None
              ) -> list[np.ndarray]:
    """Passes inputs to a worker, waits, and returns the results.

    Args:
      flat_args: arrays or tensors `[N, ...]` with the same number of rows. The
        arrays must not change during the call.
      output_dtypes: the dtypes of the results, or None for any.

    Returns:
      The results `[N, ...]`, which may be views of the results of a batch.

    Raises:
      CancelledError: the batcher is closed, or the batch is dropped.
    """
    request = _Request(
        [batch_checks.to_array(arg) for arg in flat_args], output_dtypes)
    with self._changed:
      self._check_open()
      self._waiting.append(request)
      self._num_rows_waiting += request.num_rows
      # The first request wakes a thread in `get_inputs`, to set its timeout.
      if (len(self._waiting) == 1
          or self._num_rows_waiting >= self._minimum_batch_size):
        self._changed.notify()
    return request.future.result()

  def get_inputs(self, input_dtypes: Sequence[DType] | None = None
                 ) -> tuple[list[np.ndarray], np.int64]:
    """Waits for a batch and takes the oldest rows.

    Returns:
      The inputs `[B, ...]`, and the id of the computation for `set_outputs`.
      Keep this very object: with only a copy, or an `int`, the id is dropped.

    Raises:
      CancelledError: the batcher is closed, now or while waiting.
      InvalidArgumentError: the inputs do not fit each other, or `input_dtypes`.
    """
    with self._changed:
      self._wait_for_rows()
      self._check_open()
      computation_id, parts = self._take()
      if self._waiting:
        self._changed.notify()  # Other threads may take batches as well.
    try:
      batch_checks.check_inputs([part.request.inputs for part in parts],
                                [part.request.num_rows for part in parts],
                                input_dtypes)
    except tf.errors.InvalidArgumentError as e:
      self.fail(e)
      raise
    if len(parts) == 1:
      return parts[0].inputs(), computation_id
    return [np.concatenate(arrays) for arrays in
            zip(*(part.inputs() for part in parts))], computation_id

  def set_outputs(self, flat_result: Sequence[structs.Array],
                  computation_id: int | np.int64) -> None:
    """Returns the results `[B, ...]` of a batch to its callers.

    The worker keeps the object `computation_id`, from `get_inputs`, until now.

    Raises:
      CancelledError: the batcher is closed.
      InvalidArgumentError: no computation of this id is waiting, or the results
        do not fit the inputs.
    """
    try:
      outputs = [batch_checks.to_array(output) for output in flat_result]
      with self._changed:
        self._check_open()
        if computation_id not in self._being_computed:
          raise batch_checks.invalid(
              f'Invalid computation id. Id: {computation_id}')
        parts = self._being_computed[int(computation_id)]
        batch_checks.check_outputs(
            outputs, sum(part.num_rows for part in parts),
            [part.request.output_dtypes for part in parts])
        start = 0
        for part in parts:
          end = start + part.num_rows
          part.request.add(part.first_row, part.num_rows,
                           [output[start:end] for output in outputs])
          start = end
        del self._being_computed[int(computation_id)]
    except Exception as e:
      self.fail(e)
      raise

  def close(self) -> None:
    """Makes all present and later calls raise a `CancelledError`."""
    self.fail(None)

  def fail(self, error: BaseException | None) -> None:
    """Closes the batcher because of `error`, unless closed already."""
    with self._changed:
      if self._is_closed:
        return
      self._is_closed = True
      self._error = error
      # A batch that is dropped meanwhile must not change what is iterated.
      computed, self._being_computed = self._being_computed, {}
      for request in (*self._waiting, *(
          part.request for part in sum(computed.values(), []))):
        request.cancel('Compute was cancelled', error)
      self._waiting.clear()
      self._num_rows_waiting = 0
      self._changed.notify_all()

  def _check_open(self) -> None:
    if self._is_closed:
      raise batch_checks.cancelled('Batcher is closed', self._error)

  def _wait_for_rows(self) -> None:
    start_s = time.monotonic()
    deadline_s = None
    while (not self._is_closed
           and self._num_rows_waiting < self._minimum_batch_size):
      left_s = None
      if not self._num_rows_waiting:
        deadline_s = None
      elif self._timeout_s is not None:
        now_s = time.monotonic()
        if deadline_s is None:
          # The end of the current period; earlier periods had no rows.
          deadline_s = (
              now_s + self._timeout_s - (now_s - start_s) % self._timeout_s)
        left_s = deadline_s - now_s
        if left_s <= 0:
          return
      self._changed.wait(left_s)

  def _take(self) -> tuple[np.int64, list[_Part]]:
    """Returns the id and the parts of a new batch."""
    parts = []
    num_rows = min(self._num_rows_waiting, self._maximum_batch_size)
    self._num_rows_waiting -= num_rows
    while num_rows:
      request = self._waiting[0]
      part = _Part(request, request.num_taken,
                   min(request.num_rows - request.num_taken, num_rows))
      parts.append(part)
      request.num_taken += part.num_rows
      num_rows -= part.num_rows
      if request.num_taken == request.num_rows:
        self._waiting.popleft()
    computation_id = _BatchId(self._next_id)
    self._next_id += 1
    self._being_computed[int(computation_id)] = parts
    weakref.finalize(computation_id, self._dropped, int(computation_id))
    return computation_id, parts

  def _dropped(self, computation_id: int) -> None:
    """Ends the callers of a batch that nobody can answer any more."""
    with self._changed:
      for part in self._being_computed.pop(computation_id, ()):
        part.request.cancel('The worker dropped the batch without outputs')


class Service:
  """Calls a function of nests of arrays for many threads, in its own thread."""

  def __init__(self, function: Callable[..., structs.Nest], batcher: Batcher,
               name: str):
    """Starts nothing yet.

    Args:
      function: takes and returns nests of arrays `[N, ...]`.
      batcher: gathers the calls; `close` closes it.
      name: the name of the thread.
    """
    self._function = function
    self._batcher = batcher
    self._thread = threads.LibraryThread(self._serve, f'batcher-{name}')
    self._lock = threading.Lock()
    self._args_structure: structs.Nest = None
    self._result_structure: structs.Nest = None
    self.close = batcher.close

  def __call__(self, *args: structs.Nest) -> structs.Nest:
    """Returns the caller's rows of the result, a nest of arrays."""
    with self._lock:
      if self._args_structure is None:
        self._args_structure = tree.map_structure(lambda _: 0, args)
        self._thread.start()
    tree.assert_same_structure(self._args_structure, args, check_types=False)
    outputs = self._batcher.compute(tree.flatten(args))
    return tree.unflatten_as(self._result_structure, outputs)

  def join(self, timeout_s: float) -> None:
    """Waits for the thread, which ends some time after `close`."""
    if self._thread.ident is not None:  # The thread was started.
      self._thread.join(timeout_s)

  def _serve(self) -> None:
    try:
      while True:
        inputs, computation_id = self._batcher.get_inputs()
        result = self._function(
            *tree.unflatten_as(self._args_structure, inputs))
        if self._result_structure is None:
          self._result_structure = tree.map_structure(lambda _: 0, result)
        self._batcher.set_outputs(tree.flatten(result), computation_id)
        # Otherwise both stay in memory during the wait for the next batch.
        del inputs, result
    except BaseException as e:
      self._batcher.fail(e)  # Does nothing if the batcher raised the error.
