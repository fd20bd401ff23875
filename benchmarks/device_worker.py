# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs the programs of benchmarks/device.py on a GPU, with NumPy and JAX only.

  python benchmarks/device_worker.py --folder=parts [--json=FILE]

For each part: the largest relative difference of its results to TensorFlow's on
a CPU, by array |x - y| / |y| (norms), and the median time of a call, whose
inputs are on the device. A call changes the variables of the next call.
"""

import argparse
import json
import pathlib
import statistics
import time

import jax
import numpy as np


def _random(rng, shape, dtype):
  """Returns frames, or positive numbers for weights and optimizers."""
  if np.dtype(dtype).kind == 'f':
    return np.abs(rng.normal(scale=.01, size=shape)).astype(dtype)
  return rng.randint(256, size=shape).astype(dtype)


def load(path):
  """Returns a program, its inputs, expected results by index, description."""
  meta = json.loads(path.read_text())
  rng = np.random.RandomState(0)

  def array(description):
    if isinstance(description, str):
      return np.load(path.with_name(f'{description}.npz'))['arr_0']
    return _random(rng, *description)

  inputs = [array(description) for description in meta['inputs']]
  expected = {int(i): array(name) for i, name in meta['results'].items()}
  return path.with_suffix('.hlo').read_bytes(), inputs, expected, meta


def compile_program(program):
  """Returns the compiled program, a function of all inputs."""
  from jax._src.interpreters import mlir
  from jax._src.lib import xla_client
  with mlir.make_ir_context():
    module = xla_client._xla.mlir.deserialize_portable_artifact(program)
    for function in module.body.operations:
      # JAX's compiler for GPUs refuses copies, which change nothing.
      for op in [op for op in function.entry_block.operations
                 if op.operation.name == 'mhlo.copy']:
        op.result.replace_all_uses_with(op.operands[0])
        op.erase()
    text = mlir.module_to_bytecode(module)
  device = jax.devices()[0]
  devices = xla_client.DeviceList((device,))
  executable = device.client.compile_and_load(
      text, devices, xla_client.CompileOptions())
  return lambda *arrays: [
      x[0] for x in executable.execute_sharded(
          list(arrays)).disassemble_into_single_device_arrays()]


def relative(result, expected):
  """Returns |x - y| / |y|, of the whole array; inf if there is a NaN."""
  result, expected = (np.asarray(x, np.float64) for x in (result, expected))
  if result.shape != expected.shape or not np.isfinite(result).all():
    return float('inf')
  return float(np.linalg.norm(result - expected)
               / max(np.linalg.norm(expected), 1e-12))


def per_call_s(function, inputs, changed, seconds):
  """Returns the median of seven turns, of the time of a call."""
  turns, state = [], list(inputs)

  def call():
    results = function(*state)
    for result, given in changed:
      state[given] = results[result]
    return results

  start, count = time.perf_counter(), 0
  jax.block_until_ready(call())
  jax.block_until_ready(call())
  start = time.perf_counter()
  jax.block_until_ready(call())
  count = max(1, int(seconds / 7 / (time.perf_counter() - start)))
  for _ in range(7):
    start = time.perf_counter()
    for _ in range(count):
      results = call()
    jax.block_until_ready(results)
    turns.append((time.perf_counter() - start) / count)
  return statistics.median(turns)


def product_flops(dtype, precision, size=8192):
  """Returns the measured operations/s of a product of random matrices."""
  a = jax.random.normal(jax.random.key(0), (size, size), dtype)
  product = jax.jit(lambda x, y: jax.numpy.matmul(x, y, precision=precision))
  return 2 * size**3 / per_call_s(lambda x, y: [product(x, y)], [a, a], [], 1.)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--folder', required=True)
  parser.add_argument('--json', help='file to write the results to')
  parser.add_argument('--seconds', type=float, default=1.5,
                      help='of measuring, per part')
  parser.add_argument('--only', nargs='+', default=[''],
                      help='parts with one of these texts in the name')
  args = parser.parse_args()
  jax.config.update('jax_enable_x64', True)  # Counters are int64.
  device = jax.devices()[0]
  rows = {'device': device.device_kind, 'jax': jax.__version__}
  if device.platform != 'cpu':
    rows['product_tflops'] = {
        'highest': product_flops('float32', 'highest') / 1e12,
        'tf32': product_flops('float32', 'default') / 1e12,
        'bfloat16': product_flops('bfloat16', 'default') / 1e12}
  print(rows, flush=True)
  print('| part | difference | ms | frames/s | copy of inputs, ms |\n'
        '|---|---:|---:|---:|---:|')
  paths = sorted(pathlib.Path(args.folder).glob('*.json'))
  for path in dict.fromkeys(
      path for text in args.only for path in paths if text in path.stem):
    try:
      program, inputs, expected, meta = load(path)
      function = compile_program(program)
      on_device = jax.block_until_ready(jax.device_put(inputs, device))
      start = time.perf_counter()
      on_device = jax.block_until_ready(jax.device_put(inputs, device))
      copy_s = time.perf_counter() - start
      results = function(*on_device)  # Takes the memory of the variables.
      on_device = jax.device_put(inputs, device)
      differences = [relative(results[i], y) for i, y in expected.items()]
      seconds = per_call_s(function, on_device, meta['changed'], args.seconds)
      finite = all(np.isfinite(np.asarray(x)).all() for x in results
                   if np.asarray(x).dtype.kind == 'f')
      row = {'ms': 1e3 * seconds, 'differences': differences,
             'frames_per_s': meta['num_env_frames'] / seconds,
             'copy_ms': 1e3 * copy_s, 'is_finite': finite}
      print(f'| {path.stem} | '
            f'{f"{max(differences):.1e}" if differences else ""} | '
            f'{row["ms"]:.3f} | {row["frames_per_s"]:,.0f} | '
            f'{row["copy_ms"]:.2f} |{"" if finite else " NOT FINITE"}',
            flush=True)
    except Exception as e:
      row = {'error': str(e)[:500]}
      print(f'| {path.stem} | {row["error"][:300]} |', flush=True)
    rows[path.stem] = row
    jax.clear_caches()
    if args.json:
      pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
  main()
