# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compiled functions of nested arguments, for frequent calls.

`tf.function` spends up to 2 ms of Python time on nested arguments to look up
its trace. A step of a small network takes less, and other threads wait for
Python.
"""

from collections.abc import Callable, Hashable

from scalable_agent.experience import structs
import tensorflow as tf
import tree


class FlatFunction:
  """A `tf.function` with flat arguments.

  The cache of traced functions has the shapes and dtypes of arguments as keys.
  """

  def __init__(self, function: Callable[..., structs.Nest],
               jit_compile: bool = False, reduce_retracing: bool = False):
    """Wraps a function of static values and nests, as `tf.function` does."""
    self._function = function
    self._options = dict(
        autograph=False, jit_compile=jit_compile,
        reduce_retracing=reduce_retracing)
    self._functions: dict[
        tuple, tf.types.experimental.PolymorphicFunction] = {}
    self._traced: dict[tuple, Callable[..., structs.Nest]] = {}

  def __call__(self, *nests: structs.Nest,
               static: tuple[Hashable, ...] = ()) -> structs.Nest:
    """Calls the function with static arguments and nests of arrays or tensors.

    Nests of the same number of leaves must have the same structure in all
    calls. Each new value of `static` is a new trace.
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

  def _flat(self, static: tuple[Hashable, ...], nests: structs.Nest
            ) -> tf.types.experimental.PolymorphicFunction:
    """Returns the `tf.function` for arguments of this structure."""
    key = (static, len(tree.flatten(nests)))
    if key not in self._functions:
      structure = tree.map_structure(lambda _: 0, nests)

      def flat(*tensors: tf.Tensor) -> structs.Nest:
        return self._function(*static, *tree.unflatten_as(structure, tensors))

      flat.__name__ = self._function.__name__
      self._functions[key] = tf.function(flat, **self._options)
    return self._functions[key]
