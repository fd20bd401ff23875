# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Dynamic batching: one call of a function serves many threads.

If several threads call a batched function at about the same time, another
thread concatenates their arguments and calls the function once. Each caller
waits, and gets its own rows of the result:

  @dynamic_batching.batch_fn_with_options(minimum_batch_size=2, timeout_ms=10)
  def add(a, b):  # In a graph; `a` and `b` have the rows of all callers.
    return a + b

  add(tf.constant([1]), tf.constant([2]))  # In one thread, [3].
  add(tf.constant([3]), tf.constant([4]))  # In another, [7].

The semantics are those of `dynamic_batching.py` and `batcher.cc` of
https://github.com/google-deepmind/scalable_agent. There is no compiled op: rows
are joined and split as NumPy arrays on the host, where views cost next to
nothing. So no gradient flows through a batched function.
"""

import collections
from collections.abc import Callable, Sequence
from concurrent import futures
import dataclasses
import functools
import threading
import time
from typing import NamedTuple, TypeAlias
import weakref

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.processes import threads
import tensorflow as tf
import tree

DType: TypeAlias = np.dtype | tf.DType


@dataclasses.dataclass(eq=False)
class _Request:
  """The inputs of one caller, and its results so far.

  Its rows may be in several batches, which end in any order.
  """
  inputs: list[np.ndarray]
  output_dtypes: Sequence[DType] | None
  num_taken: int = 0
  num_done: int = 0
  outputs: dict[int, list[np.ndarray]] = dataclasses.field(default_factory=dict)
  future: futures.Future = dataclasses.field(default_factory=futures.Future)

  @property
  def num_rows(self) -> int:
    # Inputs without rows count as one row, so that a batch takes them, and the
    # check of the batch refuses them.
    shape = self.inputs[0].shape if self.inputs else ()
    return max(shape[0], 1) if shape else 1

  def add(self, first_row: int, num_rows: int,
          outputs: list[np.ndarray]) -> None:
    """Stores the results of some rows; the last ones wake the caller."""
    self.outputs[first_row] = outputs
    self.num_done += num_rows
    if self.num_done == self.num_rows:
      parts = [self.outputs[row] for row in sorted(self.outputs)]
      self.future.set_result(parts[0] if len(parts) == 1 else [
          np.concatenate(arrays) for arrays in zip(*parts, strict=True)])


class _Part(NamedTuple):
  """The rows of a request that are in one batch."""
  request: _Request
  first_row: int
  num_rows: int

  def inputs(self) -> list[np.ndarray]:
    end = self.first_row + self.num_rows
    return [array[self.first_row:end] for array in self.request.inputs]


class Batcher:
  """Gathers inputs of many threads into batches, and scatters the results.

  Callers use `compute`. A worker takes batches with `get_inputs` and returns
  the results of each with `set_outputs`, in any order and from any thread.

  An input of `k` rows counts as `k` inputs of one row that return together. If
  a batch would exceed `maximum_batch_size`, the rows go into several batches.

  Any error closes the batcher for good. Then all callers that wait in
  `compute`, and all later ones, get a `CancelledError` whose `__cause__` is the
  error.
  """

  def __init__(self, minimum_batch_size: int = 1,
               maximum_batch_size: int = 1024,
               timeout_ms: float | None = 100):
    """Makes an open batcher without inputs.

    Args:
      minimum_batch_size: number of rows from which on a batch is complete.
      maximum_batch_size: largest number of rows of a batch; further rows wait
        for the next one.
      timeout_ms: how long `get_inputs` waits for the minimum. After this time
        it returns the rows that there are. If there is none, the same time
        starts again. None or 0: no limit.

    Raises:
      ValueError: if a size is not positive, or the timeout is negative.
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
    """A name for the reference's interface: always `batcher`."""
    return 'batcher'

  def __len__(self) -> int:
    """Returns the number of rows that wait to be taken."""
    return self._num_rows_waiting

  def compute(self, flat_args: Sequence[structs.Array],
              output_dtypes: Sequence[DType] | None = None
              ) -> list[np.ndarray]:
    """Hands over inputs, waits, and returns their results.

    Args:
      flat_args: arrays or tensors `[N, ...]` with the same number of rows; they
        must not change before this returns.
      output_dtypes: the dtypes of the results, or None for any.

    Returns:
      The results `[N, ...]`, which may be views of those of a whole batch.

    Raises:
      CancelledError: if the batcher is closed, now or while this waits.
    """
    request = _Request([_to_array(arg) for arg in flat_args], output_dtypes)
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
    """Waits for a batch and takes it, the oldest rows first.

    Args:
      input_dtypes: the dtypes of the inputs, or None for any.

    Returns:
      The inputs `[B, ...]`, and the id of the computation for `set_outputs`.

    Raises:
      CancelledError: if the batcher is closed, now or while this waits.
      InvalidArgumentError: if the inputs do not fit each other.
    """
    with self._changed:
      self._wait_for_rows()
      self._check_open()
      computation_id, parts = self._take()
      if self._waiting:
        self._changed.notify()  # Other threads may take batches, too.
    try:
      _check_inputs(parts, input_dtypes)
    except tf.errors.InvalidArgumentError as e:
      self.fail(e)
      raise
    if len(parts) == 1:
      return parts[0].inputs(), computation_id
    return [np.concatenate(arrays) for arrays in
            zip(*(part.inputs() for part in parts))], computation_id

  def set_outputs(self, flat_result: Sequence[structs.Array],
                  computation_id: int | np.int64) -> None:
    """Returns the results of a batch to its callers.

    Args:
      flat_result: arrays or tensors `[B, ...]`.
      computation_id: from `get_inputs`.

    Raises:
      CancelledError: if the batcher is closed.
      InvalidArgumentError: if no computation of this id is waiting, or the
        results do not fit the inputs.
    """
    try:
      outputs = [_to_array(output) for output in flat_result]
      with self._changed:
        self._check_open()
        if computation_id not in self._being_computed:
          raise _invalid(f'Invalid computation id. Id: {computation_id}')
        parts = self._being_computed[int(computation_id)]
        _check_outputs(outputs, parts)
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
    """Makes all calls, also those that wait, raise a `CancelledError`."""
    self.fail(None)

  def fail(self, error: BaseException | None) -> None:
    """Closes the batcher because of `error`, unless it is closed already."""
    with self._changed:
      if self._is_closed:
        return
      self._is_closed = True
      self._error = error
      for request in (*self._waiting, *(
          part.request for parts in self._being_computed.values()
          for part in parts)):
        if not request.future.done():
          request.future.set_exception(
              _cancelled('Compute was cancelled', error))
      self._waiting.clear()
      self._num_rows_waiting = 0
      self._being_computed.clear()
      self._changed.notify_all()

  def _check_open(self):
    if self._is_closed:
      raise _cancelled('Batcher is closed', self._error)

  def _wait_for_rows(self):
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
          # The end of the current period; earlier ones had no rows.
          deadline_s = (
              now_s + self._timeout_s - (now_s - start_s) % self._timeout_s)
        left_s = deadline_s - now_s
        if left_s <= 0:
          return
      self._changed.wait(left_s)

  def _take(self):
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
    computation_id = np.int64(self._next_id)
    self._next_id += 1
    self._being_computed[int(computation_id)] = parts
    return computation_id, parts


def _to_array(value):
  # NumPy's dtypes of strings contain the length; TensorFlow has one dtype.
  if isinstance(value, np.ndarray) and value.dtype.kind not in 'SU':
    return value
  return np.asarray(tf.convert_to_tensor(value).numpy())


def _check_inputs(parts, input_dtypes):
  first = parts[0].request.inputs
  first_dtypes = [array.dtype for array in first]
  for part in parts:
    inputs, num_rows = part.request.inputs, part.request.num_rows
    for array in inputs:
      if not array.shape:
        raise _invalid('Input shape must have a batch dimension. '
                       'Shape observed: []')
      if not array.shape[0]:
        raise _invalid('Batcher requires batch size 1 or more but was 0')
      if array.shape[0] != num_rows:
        raise _invalid(f'Batcher requires batch size {num_rows} but was '
                       f'{array.shape[0]}')
    _check_dtypes(
        inputs, first_dtypes if input_dtypes is None else input_dtypes,
        'inputs')
    for one, other in zip(first, inputs, strict=True):
      if one.shape[1:] != other.shape[1:]:
        raise _invalid('Shapes of inputs much be equal. Shapes observed: '
                       f'{_brackets(one.shape)}, {_brackets(other.shape)}')


def _check_outputs(outputs, parts):
  num_rows = sum(part.num_rows for part in parts)
  for output in outputs:
    if not output.shape:
      raise _invalid('Output shape must have a batch dimension. Shape '
                     'observed: []')
    if output.shape[0] != num_rows:
      raise _invalid('Output shape must have the same batch dimension as the '
                     f'input batch size. Expected: {num_rows} '
                     f'Observed: {output.shape[0]}')
  for part in parts:
    if part.request.output_dtypes is not None:
      _check_dtypes(outputs, part.request.output_dtypes, 'outputs')


def _check_dtypes(arrays, dtypes, what):
  expected = [dtype if isinstance(dtype, np.dtype) else
              np.dtype(tf.as_dtype(dtype).as_numpy_dtype) for dtype in dtypes]
  observed = [array.dtype for array in arrays]
  if observed != expected:
    raise _invalid(f'Dtypes of {what} must be equal. Dtypes observed: '
                   f'{_brackets(expected)}, {_brackets(observed)}')


def _brackets(values):
  return f'[{",".join(map(str, values))}]'


def _invalid(message):
  return tf.errors.InvalidArgumentError(None, None, message)


def _cancelled(message, cause):
  error = tf.errors.CancelledError(None, None, message)
  error.__cause__ = cause
  return error


class Service:
  """Calls a function of nests of arrays for many threads, in one of its own."""

  def __init__(self, function: Callable[..., structs.Nest], batcher: Batcher,
               name: str):
    """Starts nothing yet.

    Args:
      function: takes and returns nests of arrays `[N, ...]`.
      batcher: gathers the calls; `close` closes it.
      name: of the thread.
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
    if self._thread.ident is not None:  # It was started.
      self._thread.join(timeout_s)

  def _serve(self):
    try:
      while True:
        inputs, computation_id = self._batcher.get_inputs()
        result = self._function(
            *tree.unflatten_as(self._args_structure, inputs))
        if self._result_structure is None:
          self._result_structure = tree.map_structure(lambda _: 0, result)
        self._batcher.set_outputs(tree.flatten(result), computation_id)
        # They would stay in memory during the wait for the next batch.
        del inputs, result
    except BaseException as e:  # pylint: disable=broad-except
      self._batcher.fail(e)  # Does nothing if the batcher raised it.


def batch_fn(f: Callable[..., structs.Nest]) -> Callable[..., structs.Nest]:
  """Decorator, see `batch_fn_with_options`, with its defaults."""
  return batch_fn_with_options()(f)


def batch_fn_with_options(
    minimum_batch_size: int = 1, maximum_batch_size: int = 1024,
    timeout_ms: float | None = 100
) -> Callable[[Callable[..., structs.Nest]], Callable[..., structs.Nest]]:
  """Returns a decorator that batches calls from different threads.

  The decorated function takes and returns nests of tensors `[N, ...]`: any
  number of rows, the same in all. It must be called eagerly: in a graph it
  could block the threads that `f` needs. It has a method `close`, which makes
  all calls raise a `CancelledError`, and ends the computing thread after its
  current batch. This also happens when the decorated function is garbage
  collected.

  `f` is traced, without autograph, once per shape and dtype of a row, not per
  size of a batch. Its leading dimension is None, or `minimum_batch_size` if
  that equals `maximum_batch_size` and there is no timeout. XLA would compile
  `f` for every size of a batch. `f` runs in a thread of its own, so device
  scopes must be inside of it.

  No gradient flows through the decorated function.

  All present and future callers get a `CancelledError` whose `__cause__` is the
  error, if `f` raises, if its results have another number of rows than its
  inputs, or if the inputs of a batch do not fit each other.

  Args:
    minimum_batch_size: `f` is called with fewer rows only after the timeout.
    maximum_batch_size: `f` is never called with more rows. Further rows wait,
      and a call with more rows is computed in parts.
    timeout_ms: how long the computing thread, once it is free, waits for
      `minimum_batch_size` rows, see `Batcher`. None or 0: no limit.

  Returns:
    The decorator.
  """
  is_size_fixed = (
      minimum_batch_size == maximum_batch_size and timeout_ms is None)
  batch_size = minimum_batch_size if is_size_fixed else None

  def decorator(f):
    service = Service(
        _compiled(f, batch_size),
        Batcher(minimum_batch_size, maximum_batch_size, timeout_ms),
        getattr(f, '__name__', 'function'))

    @functools.wraps(f)
    def wrapper(*args):
      if not tf.executing_eagerly():
        raise RuntimeError(
            'Batched functions do not work in graphs: call this one from a '
            'Python thread, outside of tf.function.')
      return tree.map_structure(tf.convert_to_tensor, service(*args))

    # mypy does not know that functions can have attributes.
    wrapper.close = service.close  # type: ignore[attr-defined]
    weakref.finalize(wrapper, service.close)
    return wrapper

  return decorator


def _compiled(f, batch_size):
  """Returns `f` for arrays, traced once for all numbers of rows."""
  traces = {}

  def call(*args):
    flat = [tf.convert_to_tensor(array) for array in tree.flatten(args)]
    key = tuple((tensor.dtype, *tensor.shape[1:]) for tensor in flat)
    if key not in traces:
      structure = []

      def flat_f(*flat_args):
        result = f(*tree.unflatten_as(args, flat_args))
        structure.append(tree.map_structure(lambda _: 0, result))
        return [tf.convert_to_tensor(x) for x in tree.flatten(result)]

      function = tf.function(flat_f, autograph=False).get_concrete_function(*(
          tf.TensorSpec([batch_size, *t.shape[1:]], t.dtype) for t in flat))
      traces[key] = function, structure[0]
    function, structure = traces[key]
    return tree.unflatten_as(structure, function(*flat))

  return call
