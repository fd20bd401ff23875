# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `py_process`: an object in a process of its own.

  p = PyProcess(Zeros, 1)
  print(p.proxy.compute(2))  # [[0, 0]], from the process.
  p.close()
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
import contextlib
import functools
import inspect
import threading
import weakref

from absl import flags
import numpy as np
from scalable_agent import errors
from scalable_agent.compat.scalable_agent import served
from scalable_agent.experience import structs
from scalable_agent.processes import remote
from scalable_agent.settings.environment_settings import EnvironmentSettings
import tensorflow as tf
import tree

FLAGS = flags.FLAGS


class _Proxy:
  """Has the methods of the object; a call waits for the result."""

  def __init__(self, type_: type, kwargs: Mapping[str, object]):
    self._type, self._kwargs = type_, kwargs
    self._lock = threading.Lock()
    self._process: remote.Remote | None = None
    self._is_closed = False

  def __getattr__(self, name: str) -> Callable[..., structs.Nest]:
    def call(*args: structs.Array) -> structs.Nest:
      specs = self._type._tensor_specs(  # type: ignore[attr-defined]
          name, _by_name(getattr(self._type, name), args), self._kwargs)
      if specs is None:
        raise ValueError(
            f'No tensor specifications were provided for: {name}')
      flat_specs = tree.flatten(specs)
      if tf.executing_eagerly():
        flat = self._arrays(name, tuple(
            tf.convert_to_tensor(x).numpy() for x in args), flat_specs)
      else:  # Else, the method would run once, when the function is traced.
        def run(*arrays: np.ndarray) -> list[np.ndarray]:
          try:
            return self._arrays(name, arrays, flat_specs)
          except tf.errors.OutOfRangeError as e:
            # TensorFlow makes an OutOfRangeError of a StopIteration only.
            raise StopIteration(e.message) from e

        flat = tf.numpy_function(
            run, args, [spec.dtype for spec in flat_specs], name=name)
      if not flat_specs:
        return None
      return tree.unflatten_as(specs, [
          tf.ensure_shape(tf.convert_to_tensor(x, spec.dtype), spec.shape)
          for x, spec in zip(flat, flat_specs, strict=True)])
    return call

  def _arrays(self, name: str, args: tuple[np.ndarray, ...],
              specs: Sequence[tf.TensorSpec]) -> list[np.ndarray]:
    results = self._call(name, args)
    if not specs:
      return []
    return [np.asarray(x, spec.dtype.as_numpy_dtype)
            for x, spec in zip(results or [], specs, strict=True)]

  def _call(self, name: str, args: tuple) -> list | None:
    self._start()
    process, result, error = self._process, None, None
    try:
      result = process.call('call', name, args) if process else None
    except Exception as e:
      if not self._is_closed:
        raise
      error = e
    if self._is_closed:
      raise tf.errors.OutOfRangeError(
          None, None, f'The process of {self._type.__name__} is closed.'
      ) from error
    return result

  def _start(self) -> None:
    with self._lock:
      if self._process is None and not self._is_closed:
        try:
          self._process = remote.Remote(
              self._type.__name__,
              functools.partial(served.Served, self._type, self._kwargs),
              FLAGS.step_timeout_s
              if FLAGS.is_parsed() and 'step_timeout_s' in FLAGS
              else EnvironmentSettings().step_timeout_s)
        except Exception:
          _PROXIES.discard(self)  # The next hook has nothing to start here.
          raise
        _PROXIES.add(self)  # Again, after a start that had failed.

  def _close(self) -> None:
    with self._lock:
      self._is_closed, process = True, self._process
      self._process = None
    if process is not None:
      # Such as that the process has ended, after an error of a method.
      with process, contextlib.suppress(errors.EnvironmentProcessError):
        process.call('close')


_PROXIES: weakref.WeakSet[_Proxy] = weakref.WeakSet()


class PyProcess:
  """Runs an object in its own process.

  The differences: a method runs when called (in a `tf.function`, whenever the
  function runs), and the first call starts the process if `start` did not. An
  error in the process is an `errors.EnvironmentProcessError` with the text of
  the error (in a `tf.function`, an error of TensorFlow). So is a call of more
  than `--step_timeout_s` seconds (300 by default), and the death of the process
  during a call: only `close` makes a clean end.
  """
  COLLECTION = 'py_process_processes'

  def __init__(self, type_: type, *constructor_args: object,
               **constructor_kwargs: object):
    """Makes a process; `start` or a call starts the process.

    `type_` has a static method `_tensor_specs(method_name, kwargs,
    constructor_kwargs)`, which returns the specs of the results of a method,
    `()` for a method without results.
    """
    # The signature of the class has no `self`.
    kwargs = dict(zip(inspect.signature(type_).parameters, constructor_args))
    self._proxy = _Proxy(type_, {**kwargs, **constructor_kwargs})
    _PROXIES.add(self._proxy)

  @property
  def proxy(self) -> _Proxy:
    """Has the methods of the object."""
    return self._proxy

  def start(self) -> None:
    """Starts the process, and raises the error of the constructor, if any."""
    self._proxy._start()

  def close(self, session: object = None) -> None:
    """Closes the object and ends the process; `session` is not used.

    Calls that wait, and later calls, are a `tf.errors.OutOfRangeError`.
    """
    del session
    self._proxy._close()


class PyProcessHook:
  """Starts and closes all processes.

  The difference: TensorFlow 2 has no sessions to call a hook. Call `begin` and
  `end`, or use the hook as a context: `with PyProcessHook():`.
  """

  def begin(self) -> None:
    """Starts all processes at the same time; after an error, closes all."""
    try:
      _at_the_same_time(lambda proxy: proxy._start())
    except BaseException:
      self.end()
      raise

  def end(self, session: object = None) -> None:
    """Closes all processes at the same time; `session` is not used."""
    del session
    _at_the_same_time(lambda proxy: proxy._close())

  def __enter__(self) -> 'PyProcessHook':
    self.begin()
    return self

  def __exit__(self, *exc_info: object) -> None:
    self.end()


def _at_the_same_time(call: Callable[[_Proxy], None]) -> None:
  with futures.ThreadPoolExecutor() as pool:
    list(pool.map(call, [*_PROXIES]))


def _by_name(function: Callable, args: tuple) -> dict[str, object]:
  """Returns the positional arguments of a method by name, without `self`."""
  names = [*inspect.signature(function).parameters][1:]
  return dict(zip(names, args))
