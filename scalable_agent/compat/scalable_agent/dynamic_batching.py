# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `dynamic_batching`: decorators for batched calls.

  @batch_fn_with_options(minimum_batch_size=2, timeout_ms=10)
  def add(a, b):  # In a graph; `a` and `b` have the rows of all callers.
    return a + b

  add(tf.constant([1]), tf.constant([2]))  # In one thread, [3].
  add(tf.constant([3]), tf.constant([4]))  # In another thread, [7].

No gradient flows through a batched function.
"""

from collections.abc import Callable, Sequence
import functools
import weakref

import numpy as np
from scalable_agent.acting import dynamic_batching
from scalable_agent.experience import structs
import tensorflow as tf
import tree


class _Batcher(dynamic_batching.Batcher):
  """The object of DeepMind's tests; its methods wait, and return arrays.

  A copy of an id, or an `int`, answers a batch as well as the id.
  """

  def __init__(self, minimum_batch_size: int = 1,
               maximum_batch_size: int = 1024,
               timeout_ms: float | None = 100):
    """See `Batcher`."""
    super().__init__(minimum_batch_size, maximum_batch_size, timeout_ms)
    self._ids: dict[int, np.int64] = {}

  def get_inputs(
      self, input_dtypes: Sequence[dynamic_batching.DType] | None = None
  ) -> tuple[list[np.ndarray], np.int64]:
    """See `Batcher.get_inputs`."""
    inputs, computation_id = super().get_inputs(input_dtypes)
    # Without this reference, the callers of the batch would be cancelled.
    self._ids[int(computation_id)] = computation_id
    return inputs, computation_id

  def set_outputs(self, flat_result: Sequence[structs.Array],
                  computation_id: structs.Array | int) -> None:
    """See `Batcher.set_outputs`."""
    super().set_outputs(flat_result, int(computation_id))
    del self._ids[int(computation_id)]

  def close(self, cancel_pending_enqueues: bool = False,
            name: str | None = None) -> None:
    """See `Batcher.close`; the arguments are not used."""
    del cancel_pending_enqueues, name
    super().close()


def batch_fn(f: Callable[..., structs.Nest]) -> Callable[..., structs.Nest]:
  """Decorates a function as `batch_fn_with_options()` does.

  The difference: calls must be eager.
  """
  return batch_fn_with_options()(f)


def batch_fn_with_options(
    minimum_batch_size: int = 1, maximum_batch_size: int = 1024,
    timeout_ms: float | None = 100
) -> Callable[[Callable[..., structs.Nest]], Callable[..., structs.Nest]]:
  """Returns a decorator that batches calls from different threads.

  The decorated function takes and returns nests of tensors `[N, ...]`: any
  number of rows, the same in all tensors. The difference: calls must be eager.
  A call in a graph could block the threads that `f` needs. The method `close`
  of the decorated function makes all calls raise a `CancelledError`, and ends
  the computing thread after the current batch. Garbage collection of the
  decorated function does the same. If `f` refers to the decorated function, as
  with `agent._build = batch_fn(agent._build)`, only `close` ends the thread.

  `f` is traced, without autograph, once per shape and dtype of a row, not per
  size of a batch. The leading dimension is None, or `minimum_batch_size` if
  equal to `maximum_batch_size` and without a timeout. XLA would compile `f` for
  every size of a batch. `f` runs in a thread of its own, so device scopes must
  be inside of `f`.

  All present and future callers get a `CancelledError`, with the error as
  `__cause__`, if `f` raises, if results and inputs of `f` differ in the number
  of rows, or if the inputs of a batch do not fit each other.

  Args:
    minimum_batch_size: `f` is called with fewer rows only after the timeout.
    maximum_batch_size: `f` is never called with more rows. Further rows wait,
      and a call with more rows is computed in parts.
    timeout_ms: how long the free computing thread waits for
      `minimum_batch_size` rows, see `Batcher`. None or 0: no limit.
  """
  is_size_fixed = (
      minimum_batch_size == maximum_batch_size and timeout_ms is None)
  batch_size = minimum_batch_size if is_size_fixed else None

  def decorator(f: Callable[..., structs.Nest]
                ) -> Callable[..., structs.Nest]:
    service = dynamic_batching.Service(
        _trace_once(f, batch_size),
        dynamic_batching.Batcher(
            minimum_batch_size, maximum_batch_size, timeout_ms),
        getattr(f, '__name__', 'function'))

    @functools.wraps(f)
    def wrapper(*args: structs.Nest) -> structs.Nest:
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


def _trace_once(f: Callable[..., structs.Nest], batch_size: int | None
                ) -> Callable[..., structs.Nest]:
  """Returns `f` for arrays, traced once for all numbers of rows."""
  traces: dict[tuple, tuple[Callable[..., structs.Nest], structs.Nest]] = {}

  def call(*args: structs.Nest) -> structs.Nest:
    flat = [tf.convert_to_tensor(array) for array in tree.flatten(args)]
    key = tuple((tensor.dtype, *tensor.shape[1:]) for tensor in flat)
    if key not in traces:
      structures: list[structs.Nest] = []

      def flat_f(*flat_args: tf.Tensor) -> list[tf.Tensor]:
        result = f(*tree.unflatten_as(args, flat_args))
        structures.append(tree.map_structure(lambda _: 0, result))
        return [tf.convert_to_tensor(x) for x in tree.flatten(result)]

      function = tf.function(flat_f, autograph=False).get_concrete_function(*(
          tf.TensorSpec([batch_size, *t.shape[1:]], t.dtype) for t in flat))
      traces[key] = function, structures[0]
    function, structure = traces[key]
    return tree.unflatten_as(structure, function(*flat))

  return call
