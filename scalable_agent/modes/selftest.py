# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Selftest mode: does this device compute what a CPU computes, and how fast?"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import json
import math
import os
import platform
import resource
import tempfile
import time
from typing import NamedTuple, TypeAlias

import numpy as np
from scalable_agent import errors
from scalable_agent.modes import selftest_parts
from scalable_agent.networks import layers
from scalable_agent.processes import starts
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files
import tensorflow as tf

_FILE = 'selftest.json'
# Largest relative difference to the reference, by the precision of products.
# The largest differences are those of Adam's second moments, of squares.
_BOUNDS = {'float32': 2e-4, 'tf32': 5e-2, 'bfloat16': 4e-1}
_MIN_SECONDS = 0.2
_PRODUCT_SIZE = 2048

_OnDevice: TypeAlias = contextlib.AbstractContextManager[None]


class Row(NamedTuple):
  """The result of a part with a precision, with or without XLA.

  Attributes:
    difference: the largest `|x - y| / |y|` of an array, by norms; infinite if
      the device gave a number that is not finite.
    array: the name of this array.
    ms: time of a call; None if the call failed.
    frames_per_s: environment frames per second, or None.
    error: the error of the device, or ''.
    share: operations per second, divided by the rate of `product_rates` for
      the precision; None if no operations are counted.
  """
  part: str
  precision: str
  xla: bool
  difference: float
  bound: float
  array: str
  ms: float | None
  frames_per_s: float | None
  error: str = ''
  share: float | None = None

  @property
  def is_right(self) -> bool:
    """Whether the numbers of the device are within the bound."""
    return self.difference <= self.bound


def run(config: config_lib.Config) -> int:
  """Prints a table, writes a file; returns 1 if a number is wrong, else 0."""
  with _save_errors(config.logdir):
    os.makedirs(config.logdir, exist_ok=True)
    with tempfile.TemporaryFile(dir=config.logdir):
      pass
  about = {'device': _device_name(), 'processor': _processor(),
           'tensorflow': tf.__version__, 'python': platform.python_version(),
           'system': platform.platform()}
  print('\n'.join(f'{name}: {text}' for name, text in about.items()))
  rates = product_rates()
  print(', '.join(f'{name} products: {rate / 1e9:,.0f}e9 operations/s'
                  for name, rate in rates.items()))
  print('share: operations/s of a part (loops do not count) / of products\n\n'
        f'{"part":32}{"products":>9} {"XLA":>4}{"difference":>11}{"bound":>8}'
        f'{"ms":>9}{"frames/s":>11}{"share":>9}', flush=True)
  rows = []
  for row in test(tf.device(None), rates):
    rows.append(row)
    print(_line(row), flush=True)
  wrong = [row for row in rows if not row.is_right]
  memory = _memory_mb()
  path = os.path.join(config.logdir, _FILE)
  text = json.dumps({
      'about': about, 'product_rates': rates, 'memory_mb': memory,
      'rows': [_json_row(row) for row in rows]}, indent=1, allow_nan=False)
  with _save_errors(path):
    files.write(path, text)
  if any(row.share and row.share > 1 for row in rows):
    print('\nShares above 100 %: other programs slowed the products down. Run '
          'the self-test again on an idle machine.')
  print(f'\nMemory: {memory:,.0f} MB. Wrote {path}.')
  print(f'{len(rows) - len(wrong)} of {len(rows)} results are within their '
        'bounds' + (f'; wrong: {", ".join(sorted({r.part for r in wrong}))}.'
                    if wrong else '.'), flush=True)
  return int(bool(wrong))


def _processor() -> str:
  """Returns the name that Linux has for the processor, or its architecture."""
  try:
    with open('/proc/cpuinfo', encoding='utf-8') as f:
      return next(line.partition(':')[2].strip() for line in f
                  if line.startswith('model name'))
  except (OSError, StopIteration):  # Processors of ARM have no such line.
    return platform.machine()


@contextlib.contextmanager
def _save_errors(path: str) -> Iterator[None]:
  try:
    yield
  except OSError as e:
    raise errors.SaveError(
        f'{path} could not be written: {e.strerror}. Name another directory: '
        '--logdir=DIRECTORY.') from e


def _json_row(row: Row) -> dict[str, object]:
  """Returns a row for JSON, where an infinite difference is null."""
  finite = math.isfinite(row.difference)
  return row._asdict() | {'difference': row.difference if finite else None}


def test(on_device: _OnDevice, rates: Mapping[str, float],
         parts: list[selftest_parts.Part] | None = None) -> Iterator[Row]:
  """Yields a row for each part, precision and XLA; `on_device` is entered.

  `rates` is the result of `product_rates`.
  """
  precisions = ['float32', *([] if layers.on_cpu() else ['tf32']), 'bfloat16']
  for part in selftest_parts.parts() if parts is None else parts:
    references: dict[bool, selftest_parts.Results] = {}
    num_operations = _num_operations(part)
    for precision in precisions if part.has_bfloat16 else precisions[:1]:
      for xla in (False, True):
        # XLA draws other random numbers, but the same on all devices.
        key = xla and part.draws
        if key not in references:
          with tf.device('/CPU:0'), _precision('float32'):
            references[key] = part.make(key)()
          if part.name.startswith('V-trace'):
            references[key] = selftest_parts.exact_vtrace()
        row = _compare(part, precision, xla, references[key], on_device)
        yield row._replace(share=num_operations * 1e3 / row.ms / rates[
            precision] if num_operations and row.ms else None)


def _num_operations(part: selftest_parts.Part) -> int:
  try:
    return part.num_operations()
  except Exception as e:
    # The numbers are tested without a share.
    print(f'The operations of {part.name} could not be counted: {e!r}')
    return 0


def _compare(part: selftest_parts.Part, precision: str, xla: bool,
             reference: selftest_parts.Results, on_device: _OnDevice) -> Row:
  row = Row(part.name, precision, xla, float('inf'), _BOUNDS[precision], '',
            None, None)
  try:
    with on_device, _precision(precision):
      call = part.make(xla)
      results = call()
      seconds = _seconds_per_call(call)
  except tf.errors.OpError as e:
    return row._replace(error=e.message.strip().partition('\n')[0][:200])
  differences = {name: relative_difference(results[name], expected)
                 for name, expected in reference.items()}
  worst = max(differences, key=differences.__getitem__)
  return row._replace(
      difference=differences[worst], array=worst, ms=1e3 * seconds,
      frames_per_s=part.num_env_frames / seconds or None)


def relative_difference(result: np.ndarray, expected: np.ndarray) -> float:
  """Returns `|x - y| / |y|` of two arrays, by norms; infinite without numbers.

  Arrays of norm below 1e-6, such as the gradients of unused weights, are zero
  but for rounding, and are compared with 1e-6.
  """
  result, expected = (np.asarray(x, np.float64) for x in (result, expected))
  if result.shape != expected.shape or not np.isfinite(result).all():
    return float('inf')
  return float(np.linalg.norm(result - expected)) / max(
      float(np.linalg.norm(expected)), 1e-6)


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
  """Sets the precision of products while a part is made and run."""
  before = tf.config.experimental.tensor_float_32_execution_enabled()
  with layers.state_of_caller_kept():
    layers.set_compute_dtype('bfloat16' if name == 'bfloat16' else 'float32')
    tf.config.experimental.enable_tensor_float_32_execution(name != 'float32')
    try:
      yield
    finally:
      tf.config.experimental.enable_tensor_float_32_execution(before)


def product_rates() -> dict[str, float]:
  """Returns operations/s of a large product, by precision."""
  rates = {}
  for name in _BOUNDS:
    if name == 'tf32' and layers.on_cpu():
      continue
    with _precision(name):
      a = tf.random.normal([_PRODUCT_SIZE, _PRODUCT_SIZE])
      if name == 'bfloat16':
        a = tf.cast(a, tf.bfloat16)
      product = tf.function(
          lambda x: tf.cast(tf.reduce_sum(tf.matmul(x, x)), tf.float32),
          autograph=False)
      rates[name] = 2 * _PRODUCT_SIZE**3 / _seconds_per_call(
          functools.partial(_array, product, a))
  return rates


def _array(function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor
           ) -> np.ndarray:
  return np.array(function(x))


def _seconds_per_call(call: Callable[[], object]) -> float:
  """Returns the shortest time of a call, of at least three."""
  call()
  times_s: list[float] = []
  while len(times_s) < 3 or sum(times_s) < _MIN_SECONDS:
    start_s = time.perf_counter()
    call()
    times_s.append(time.perf_counter() - start_s)
  return min(times_s)


def _device_name() -> str:
  for device in tf.config.get_visible_devices('GPU'):
    details = tf.config.experimental.get_device_details(device)
    return str(details.get('device_name', device.name))
  return f'CPU, {starts.num_cores()} cores'


def _memory_mb() -> float:
  """Returns the largest memory in use: of the GPU, or of this process."""
  if layers.on_cpu():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
  return tf.config.experimental.get_memory_info('GPU:0')['peak'] / 1e6


def _line(row: Row) -> str:
  start = f'{row.part:32}{row.precision:>9} {"yes" if row.xla else "no":>4}'
  if row.error:
    return f'{start} FAILED: {row.error}'
  frames = f'{row.frames_per_s:,.0f}' if row.frames_per_s else ''
  share = '' if row.share is None else f'{100 * row.share:.1f} %'
  wrong = '' if row.is_right else f'  WRONG: {row.array}'
  return (f'{start}{row.difference:11.1e}{row.bound:8.0e}{row.ms:9.2f}'
          f'{frames:>11}{share:>9}{wrong}')
