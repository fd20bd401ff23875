# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compiled functions of nests that are called often.

To find the function that it has traced, `tf.function` takes up to two
milliseconds for nested arguments, all of it in Python: longer than a small
network needs for its step, and the other threads wait meanwhile.
"""

from collections.abc import Callable, Hashable

from scalable_agent.experience import structs
import tensorflow as tf
import tree


class FlatFunction:
  """A `tf.function` that gets its arguments flat.

  Traced functions are kept by the shapes and dtypes of the arguments.
  """

  def __init__(self, function: Callable[..., structs.Nest],
               jit_compile: bool = False, reduce_retracing: bool = False):
    """Wraps a function.

    Args:
      function: a function of static values and nests.
      jit_compile: whether XLA compiles it.
      reduce_retracing: see `tf.function`.
    """
    self._function = function
    self._options = dict(
        autograph=False, jit_compile=jit_compile,
        reduce_retracing=reduce_retracing)
    self._functions: dict[tuple, Callable[..., structs.Nest]] = {}
    self._traced: dict[tuple, Callable[..., structs.Nest]] = {}

  @property
  def num_traced(self) -> int:
    """How many different arguments there were, by shapes and dtypes."""
    return len(self._traced)

  def __call__(self, *nests: structs.Nest,
               static: tuple[Hashable, ...] = ()) -> structs.Nest:
    """Calls the function.

    Args:
      *nests: its arguments after the static ones, nests of arrays or tensors.
        Nests of the same number of leaves must have the same structure in all
        calls.
      static: its first arguments, values that it is traced for.
    """
    if tf.config.functions_run_eagerly():
      return self._function(*static, *nests)
    flat = tree.flatten(nests)
    tensors = [tf.convert_to_tensor(x) for x in flat]
    key = (static, *[(x.shape, x.dtype) for x in flat])
    if key not in self._traced:
      self._traced[key] = self._flat(static, nests).get_concrete_function(
          *tensors)
    return self._traced[key](*tensors)

  def _flat(self, static, nests):
    """Returns the `tf.function` for such arguments; there is one for each."""
    key = (static, len(tree.flatten(nests)))
    if key not in self._functions:
      structure = tree.map_structure(lambda _: 0, nests)

      def flat(*tensors):
        return self._function(*static, *tree.unflatten_as(structure, tensors))

      flat.__name__ = self._function.__name__
      self._functions[key] = tf.function(flat, **self._options)
    return self._functions[key]
