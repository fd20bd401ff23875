# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Exports compiled parts of the program, which run on a GPU without TensorFlow.

  python benchmarks/device.py --folder=parts          # with TensorFlow
  python benchmarks/device_worker.py --folder=parts   # on the GPU, with JAX

The first command writes, for each part, the StableHLO program that XLA would
compile, its inputs, and the results of TensorFlow on the CPU in float32. The
second command needs NumPy and JAX only: it compiles the programs for its
device, compares the results and measures the time of a call.

The parts are whole updates (loss, gradient, clipping, optimizer) of IMPALA with
the networks of benchmarks/learner.py, of APPO with normalised frames, returns
and advantages, and of the off-policy algorithms without and with an LSTM,
policy steps, and V-trace. `:highest` multiplies in float32; `:tf32` as
TensorFlow does on a GPU by default; `:bfloat16` is --compute_dtype=bfloat16.
Parts that end in `:time` are not compared: their frames are random.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import sys

import numpy as np

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)
import learner as learner_benchmark
from scalable_agent import vtrace
from scalable_agent.experience import structs
from scalable_agent.networks import layers
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_NUM_FRAMES_PER_STEP = 4
_DRAWS = ('sac', 'td3', 'mpo')  # Their losses draw random numbers.


def export(folder, name, function, arguments, num_env_frames=0,
           is_compared=True, draws=False, variables=None, result_names=()):
  """Writes a function of tensors, its inputs and its results.

  The description of the program has the names of the first results, and of the
  inputs that are `variables`, a dictionary of variables by name.

  The results that the worker compares are TensorFlow's without XLA, another
  route to the same numbers, unless the function draws random numbers: XLA's
  are others.

  The program has an input for each argument, then one for each variable that
  the function reads. The program returns the function's results, then the
  changed variables.
  """
  compiled = tf.function(function, autograph=False, jit_compile=True)
  lower = compiled.experimental_get_compiler_ir(*arguments)
  program = lower(stage='stablehlo_serialized')
  header = lower(stage='hlo').partition('\n')[0]
  # Such as {3}: (7, {}, may-alias): result 3 is the new value of input 7.
  changed = [(int(result), int(given)) for result, given in re.findall(
      r'\{(\d+)\}: \((\d+), \{\}', header)]
  captured = compiled.get_concrete_function(*arguments).captured_inputs
  inputs = [_value(x) for x in (*arguments, *captured)]
  names = {id(v.handle): name for name, v in (variables or {}).items()}
  expected = {}
  if is_compared:
    results = tf.function(
        function, autograph=False, jit_compile=draws)(*arguments)
    expected = {i: x.numpy() for i, x in enumerate(tf.nest.flatten(results))}
    for result, given in changed:
      expected[result] = _value(captured[given - len(arguments)])
  if not name.endswith(':highest'):
    expected = {i: x for i, x in expected.items() if x.nbytes < 2**18}
  path = pathlib.Path(folder) / name.replace(':', '.')
  path.with_name(path.name + '.hlo').write_bytes(program)
  path.with_name(path.name + '.json').write_text(json.dumps({
      'num_env_frames': num_env_frames, 'changed': changed,
      'variables': [names.get(id(handle), '') for handle in captured],
      'result_names': list(result_names),
      'inputs': [
          [x.shape, x.dtype.str] if x.nbytes > 2**16 and not is_compared
          else _save(folder, x) for x in inputs],
      'results': {i: _save(folder, x) for i, x in expected.items()}}))
  print(f'{name}: {len(program) / 1e6:.1f} MB of program', flush=True)


def _save(folder, array):
  """Returns the name of the array's file; equal arrays share a file."""
  name = hashlib.sha1(
      array.tobytes() + repr((array.shape, array.dtype)).encode()).hexdigest()
  np.savez_compressed(pathlib.Path(folder) / f'{name}.npz', array)
  return name


def _value(tensor):
  """Returns the array of a tensor, or of the variable of a handle."""
  if tensor.dtype != tf.resource:
    return tensor.numpy()
  for dtype in (tf.float32, tf.int64, tf.int32, tf.float64, tf.bool):
    with contextlib.suppress(tf.errors.InvalidArgumentError):
      return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=dtype).numpy()
  raise TypeError(f'A variable of another type: {tensor}')


def export_update(folder, name, learner, batch, num_env_frames,
                  is_compared=True, draws=False, variables=None):
  """Exports an update: from the batch to scalars and new variables."""
  flat = tf.nest.flatten(batch.data)
  names = []

  def update(*tensors):
    learner.num_updates = learner.num_env_frames = 0  # Of each trace.
    data = tf.nest.pack_sequence_as(batch.data, tensors)
    scalars = learner.step(batch._replace(data=data)).scalars
    names[:] = sorted(scalars)
    return [scalars[name] for name in names]

  export(folder, name, update, flat, num_env_frames, is_compared, draws,
         variables, names)


def export_impala(folder, network, length, batch_size, precision,
                  is_compared):
  """Exports an update of IMPALA with RMSProp."""
  layers.set_compute_dtype(
      'bfloat16' if precision == 'bfloat16' else 'float32')
  tf.config.experimental.enable_tensor_float_32_execution(
      precision != 'highest')
  learner = learner_benchmark.make_learner('graph', network)
  batch = learner_benchmark.to_batch(learner_benchmark.random_batch(
      np.random.RandomState(0), length, batch_size), learner)
  export_update(
      folder, f'impala:{network}:T{length}:B{batch_size}:{precision}' + (
          '' if is_compared else ':time'), learner, batch,
      length * batch_size * _NUM_FRAMES_PER_STEP, is_compared)


def export_appo(folder, length, batch_size, is_compared):
  """Exports an update of APPO with the shallow network and all normalisers."""
  layers.set_compute_dtype('float32')
  tf.config.experimental.enable_tensor_float_32_execution(False)
  learner = setup.make_learner(
      config_lib.Config(
          algorithm='appo', level_name='ALE/Pong-v5', agent='shallow', seed=1,
          normalise_observations='auto', normalise_advantages=True,
          batch_size=batch_size, micro_batch_size=batch_size,
          unrolls_per_collect=batch_size, num_actors=batch_size,
          num_actor_groups=1),
      structs.EnvironmentSpec(
          structs.ArraySpec((4, 84, 84), np.dtype(np.uint8)),
          structs.ActionSpec((6,)), 4))
  rng = np.random.RandomState(0)
  for variable in learner.agent.variables:
    if variable.dtype == tf.float32:
      variable.assign_add(rng.uniform(0., .01, variable.shape))
  batch = learner_benchmark.to_batch(
      learner_benchmark.random_batch(rng, length, batch_size), learner)
  # The first collection sets the statistics, and learns nothing.
  learner.step(batch._replace(num_new_columns=batch_size))
  batch = batch._replace(num_new_columns=0, num_new_frames=0)
  learner.step(batch)
  export_update(
      folder, f'appo:shallow:T{length}:B{batch_size}:highest' + (
          '' if is_compared else ':time'), learner, batch,
      length * batch_size * _NUM_FRAMES_PER_STEP, is_compared)


def export_policy(folder, network, num_envs, precision):
  """Exports a policy step of `num_envs` environments, with greedy actions."""
  layers.set_compute_dtype(
      'bfloat16' if precision == 'bfloat16' else 'float32')
  tf.config.experimental.enable_tensor_float_32_execution(
      precision != 'highest')
  agent = learner_benchmark.make_agent(network)
  rng = np.random.RandomState(0)
  frames = tf.constant(rng.randint(
      256, size=(num_envs, 4, 84, 84)).astype(np.uint8))
  zeros = tf.zeros([num_envs])

  def step(frames):
    output, _ = agent.step(
        tf.zeros([num_envs], tf.int32), structs.StepOutput(
            zeros, structs.NO_INFO, tf.zeros([num_envs], tf.bool), frames),
        agent.initial_state(num_envs), True)
    return [output.policy, output.baseline]

  is_compared = num_envs < 64
  export(folder, f'policy:{network}:E{num_envs}:{precision}' + (
      '' if is_compared else ':time'), step, [frames],
      num_envs * _NUM_FRAMES_PER_STEP, is_compared)


def export_off_policy(folder, algorithm, batch_size):
  """Exports an update of an algorithm with vectors of HalfCheetah's size."""
  layers.set_compute_dtype('float32')
  tf.config.experimental.enable_tensor_float_32_execution(False)
  config, spec = _off_policy(algorithm, batch_size)
  learner = setup.make_learner(config, spec)
  rng = np.random.RandomState(0)
  normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
  batch = learner.to_device(structs.Transition(
      normal(batch_size, 17),
      _actions(rng, algorithm, (batch_size,)),
      normal(batch_size),
      np.where(rng.uniform(size=batch_size) < .1, 0, .99).astype(np.float32),
      normal(batch_size, 17)), 1, np.ones(batch_size, np.float32))
  export_update(folder, f'{algorithm}:B{batch_size}:highest', learner, batch, 1,
                draws=algorithm in _DRAWS)


def export_recurrent(folder, algorithm, batch_size, length=20):
  """Exports an update with an LSTM; burn-in and sequences have one length."""
  layers.set_compute_dtype('float32')
  tf.config.experimental.enable_tensor_float_32_execution(False)
  config, spec = _off_policy(
      algorithm, batch_size, use_lstm=True, lstm_units=128,
      sequence_length=length, burn_in_steps=length)
  learner = setup.make_learner(config, spec)
  rng = np.random.RandomState(0)
  # Of a policy that equals its target, the gradient of MPO's KL is rounding.
  for variable in learner.agent.trainable_variables if (
      algorithm == 'mpo') else ():
    variable.assign_add(rng.normal(scale=.02, size=variable.shape))
  shape, learned = (2 * length + 1, batch_size), (length, batch_size)
  normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
  batch = learner.to_device(structs.Sequence(
      structs.StepOutput(normal(*shape), structs.NO_INFO,
                         rng.uniform(size=shape) < .05, normal(*shape, 17)),
      _actions(rng, algorithm, shape), (normal(batch_size, 128),) * 2,
      normal(*learned),
      np.where(rng.uniform(size=learned) < .1, 0, .99).astype(np.float32),
      np.tile(np.arange(1, length + 1, dtype=np.int32)[:, None], batch_size),
      np.ones(learned, np.float32)), 1, np.ones(batch_size, np.float32))
  export_update(folder, f'{algorithm}:lstm:L{length}:B{batch_size}:highest',
                learner, batch, length * batch_size, draws=algorithm in _DRAWS)


def _off_policy(algorithm, batch_size, **settings):
  """Returns settings, and a spec with vectors of HalfCheetah's size."""
  return config_lib.Config(
      algorithm=algorithm, agent='mlp', hidden_sizes='256,256', seed=1,
      batch_size=batch_size, updates_per_call=1, **settings
  ), structs.EnvironmentSpec(
      structs.ArraySpec((17,), np.dtype(np.float32)),
      structs.ActionSpec((6,)) if algorithm == 'ddqn'
      else structs.ActionSpec((), 6), 1)


def _actions(rng, algorithm, shape):
  if algorithm == 'ddqn':
    return rng.randint(6, size=shape).astype(np.int32)
  return np.tanh(rng.normal(size=(*shape, 6))).astype(np.float32)


def export_vtrace(folder, length, batch_size, associative_scan):
  """Exports V-trace and the gradient of its recursion."""
  rng = np.random.RandomState(0)
  tensor = lambda *shape: tf.constant(rng.normal(size=shape).astype(np.float32))
  log_rhos, rewards, values = (tensor(length, batch_size) for _ in range(3))
  discounts = tf.constant(np.where(
      rng.uniform(size=(length, batch_size)) < .05, 0, .99).astype(np.float32))

  def function(*tensors):
    return list(vtrace.from_importance_weights(
        *tensors, associative_scan=associative_scan))

  export(folder, f'vtrace:T{length}:B{batch_size}:' + (
      'associative' if associative_scan else 'loop'), function,
      [log_rhos, discounts, rewards, values, tensor(batch_size)],
      length * batch_size * _NUM_FRAMES_PER_STEP)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--folder', required=True)
  parser.add_argument('--only', default='', choices=(
      'vtrace', 'impala', 'appo', 'policy', 'off_policy', 'recurrent'),
                      help='one kind of part')
  args = parser.parse_args()
  folder = pathlib.Path(args.folder)
  folder.mkdir(parents=True, exist_ok=True)
  wanted = lambda kind: not args.only or args.only == kind
  if wanted('vtrace'):
    for length, batch_size in ((20, 32), (100, 32), (100, 1024)):
      for associative_scan in (False, True):
        export_vtrace(folder, length, batch_size, associative_scan)
  if wanted('impala'):
    for network, length in (
        ('shallow', 20), ('deep', 20), ('deep-lstm', 100)):
      for precision in ('highest', 'tf32', 'bfloat16'):
        export_impala(folder, network, 5, 3, precision, True)
        for batch_size in (32, 256) if length == 20 else (32,):
          export_impala(folder, network, length, batch_size, precision, False)
  if wanted('appo'):
    export_appo(folder, 5, 4, True)
    export_appo(folder, 20, 32, False)
  if wanted('policy'):
    for network in ('shallow', 'deep'):
      for num_envs in (32, 256):
        for precision in ('highest', 'tf32', 'bfloat16'):
          export_policy(folder, network, num_envs, precision)
  if wanted('off_policy'):
    for algorithm in ('sac', 'td3', 'ddpg', 'mpo', 'ddqn'):
      export_off_policy(folder, algorithm, 256)
  if wanted('recurrent'):
    for algorithm in ('sac', 'td3', 'ddpg', 'mpo', 'ddqn'):
      export_recurrent(folder, algorithm, 32)


if __name__ == '__main__':
  main()
