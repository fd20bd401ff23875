# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures an update of this learner, and the same update in PyTorch.

  python benchmarks/learner.py [--networks shallow deep] [--json=learner.json]

An update is `Learner.step` on a random batch in memory: loss (V-trace),
gradient, clipping, RMSProp. Frames are like those of Atari games, uint8
[4, 84, 84]. The networks:

*   shallow, deep: feed-forward;
*   deep-lstm: with LSTM, last action and reward, and instructions.

The variants are graph, xla, torch (channels_last) and compile (torch.compile);
graph:4 is graph with micro-batches of four unrolls. Every variant begins with
the same weights. The loss and the gradient of the first update are compared,
because they must agree. All variants may use all cores. They take turns, and a
rate is the median of the turns.

The last column compares with the rate of one large product of float32 matrices,
which is measured between the turns. For this column, the code below counts only
the products and convolutions of an update. PyTorch runs in a virtual
environment of its own.
"""

import argparse
import contextlib
import json
import math
import os
import shlex
import statistics
import sys

import numpy as np

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')  # As experiment.py does.
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)
from scalable_agent.algorithms import impala
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import optimizers
from scalable_agent.networks import factory
from scalable_agent.settings import sections
import speed
import tensorflow as tf
import venvs

_NUM_ACTIONS = 6  # Pong's.
_NUM_WORDS = 8  # Of the longest instruction.
_FRAME = structs.ArraySpec((4, 84, 84), np.dtype(np.uint8))
_INSTRUCTION = structs.ArraySpec((), np.dtype(object))


def random_batch(rng, length, batch_size, num_actions=_NUM_ACTIONS):
  """Returns arrays `[T + 1, B, ...]` by name."""
  steps = (length + 1, batch_size)
  num_words = rng.randint(1, _NUM_WORDS + 1, steps)
  num_words.flat[0] = _NUM_WORDS
  words = rng.randint(1000, size=(*steps, _NUM_WORDS))
  return {
      'frames': rng.randint(256, size=(*steps, *_FRAME.shape)).astype(np.uint8),
      'words': np.where(
          np.arange(_NUM_WORDS) < num_words[..., None], words, -1),
      'reward': rng.normal(size=steps).astype(np.float32),
      'done': rng.uniform(size=steps) < 0.05,
      'action': rng.randint(num_actions, size=steps),
      'logits': rng.normal(size=(*steps, num_actions)).astype(np.float32)}


def to_batch(arrays, learner):
  """Returns an argument of `Learner.step`, on the device."""
  steps = arrays['done'].shape
  observation = arrays['frames']
  if learner.agent.initial_state(1):
    observation = {'frame': observation,
                   'instruction': arrays['words'].astype(np.int32)}
  steps_of_batch = structs.Steps(
      env_outputs=structs.StepOutput(
          reward=arrays['reward'], info=(), done=arrays['done'],
          observation=observation),
      agent_outputs=structs.AgentOutput(
          action=arrays['action'].astype(np.int32),
          policy=arrays['logits'],
          baseline=np.zeros(steps, np.float32)),
      truncation_values=np.zeros(steps, np.float32))
  start = structs.Start(
      (), (), learner.agent.initial_state(steps[1]), ())
  return learner.to_device(
      structs.Unroll(steps_of_batch, start),
      num_new_frames=(steps[0] - 1) * steps[1])


def make_agent(network):
  """Returns an agent without weights of zero, always the same one."""
  recurrent = network == 'deep-lstm'
  agent = factory.make_agent(
      network.removesuffix('-lstm'),
      {'frame': _FRAME, 'instruction': _INSTRUCTION} if recurrent else _FRAME,
      structs.ActionSpec((_NUM_ACTIONS,)), use_lstm=recurrent,
      use_last_action_reward=recurrent, seed=1)
  rng = np.random.RandomState(1)
  for variable in agent.trainable_variables:
    variable.assign_add(rng.normal(0.0, 0.01, variable.shape))
  return agent


def make_learner(variant, network):
  """Returns a learner for a variant such as `graph` or `xla:4`."""
  kind, _, micro_batch_size = variant.partition(':')
  optimizer = optimizers.Scheduled(
      optimizers.RMSProp(1e-5), lambda num_env_frames: 1e-5)
  return learner_lib.Learner(
      impala.Impala(make_agent(network),
                    sections.ImpalaSettings(entropy_cost=0.01)),
      {'agent': optimizer}, clip_gradient_norm=40.0,
      micro_batch_size=int(micro_batch_size) if micro_batch_size else None,
      jit_compile=kind == 'xla')


def flops_per_observation(network):
  """Counts the multiplications and additions of an update.

  Two for every weight and every position of its use: for the outputs, for the
  gradient of the weights and for the gradient of the inputs. The gradient
  of the frames is not needed.
  """
  # (size of the output, size of the kernel, inputs, outputs); all are square.
  if network == 'shallow':
    convolutions = [(20, 8, 4, 16), (9, 4, 16, 32)]
  else:
    convolutions, inputs = [], 4
    for size, channels in ((84, 16), (42, 32), (21, 32)):
      pooled = math.ceil(size / 2)
      convolutions += [(size, 3, inputs, channels),
                       *[(pooled, 3, channels, channels)] * 4]
      inputs = channels
  macs = [size**2 * kernel**2 * inputs * outputs
          for size, kernel, inputs, outputs in convolutions]
  first = macs[0]
  macs.append({'shallow': 9 * 9 * 32}.get(network, 11 * 11 * 32) * 256)
  if network == 'deep-lstm':
    macs.append(_NUM_WORDS * (20 + 64) * 4 * 64)
    macs.append((256 + 1 + _NUM_ACTIONS + 64 + 256) * 4 * 256)
  macs.append(256 * (_NUM_ACTIONS + 1))
  return 2 * (3 * sum(macs) - first)


def sgemm_gflops(size=2048, repeats=5):
  """Returns 1e9 operations/s of a product of matrices, best of `repeats`."""
  a = tf.random.normal([size, size])
  product = tf.function(lambda: tf.reduce_sum(tf.matmul(a, a)))
  product()
  return 2e-9 * size**3 * max(
      speed.per_s(lambda: product().numpy(), 0.0) for _ in range(repeats))


def measure(ask_torch, network, arrays, variants, rounds, seconds):
  """Returns a dictionary of a network's measurements."""
  length, batch_size = arrays['action'].shape[0] - 1, arrays['action'].shape[1]
  steps = length * batch_size
  agent = make_agent(network)
  if ask_torch:
    ask_torch('load', network, [w.numpy() for w in agent.trainable_variables],
              arrays)
  first, turns = {}, {}
  for variant in variants:
    if variant.startswith(('torch', 'compile')):
      first[variant] = ask_torch('first', variant)
      turns[variant] = lambda v=variant: ask_torch('updates_per_s', v, seconds)
    else:
      learner = make_learner(variant, network)
      batch = to_batch(arrays, learner)
      scalars = learner.step(batch).scalars
      first[variant] = tuple(
          float(scalars[k]) for k in ('total_loss', 'gradient_norm'))
      update = lambda step=learner.step, batch=batch: (
          step(batch).scalars['total_loss'].numpy())
      turns[variant] = lambda u=update: speed.per_s(u, seconds)
  sgemm, rates = [], {variant: [] for variant in variants}
  for i in range(rounds):
    sgemm.append(sgemm_gflops())
    # The order of every other round is reversed.
    for variant in variants if i % 2 else variants[::-1]:
      rates[variant].append(steps * turns[variant]())
  flops = flops_per_observation(network) * (length + 1) * batch_size
  return {
      'network': network, 'flops_per_update': flops,
      'flops_counted_by_torch': ask_torch('flops') if ask_torch else None,
      'sgemm_gflops': max(sgemm),
      'first_loss_and_gradient_norm': first, 'agent_steps_per_s': rates,
      'median': {v: statistics.median(r) for v, r in rates.items()}}


def print_rows(result, steps):
  """Prints the rows of a network."""
  torch_rates = [rate for variant, rate in result['median'].items()
                 if variant.startswith(('torch', 'compile'))]
  for variant, rate in result['median'].items():
    gflops = result['flops_per_update'] * rate / steps / 1e9
    beside = f'{rate / max(torch_rates):.2f}' if torch_rates else ''
    turns = result['agent_steps_per_s'][variant]
    print(f'| {result["network"]} | {variant} | {rate:,.0f} | '
          f'{min(turns):,.0f} to {max(turns):,.0f} | {beside} | {gflops:.1f} | '
          f'{100 * gflops / result["sgemm_gflops"]:.0f} % |', flush=True)


def print_basis(result):
  """Prints operations, the product's rate and differences of first updates."""
  counted = result['flops_counted_by_torch']
  beside = (f' (PyTorch counts {counted / result["flops_per_update"]:.4f} '
            'times as many)') if counted else ''
  first = np.array(list(result['first_loss_and_gradient_norm'].values()))
  spread = np.ptp(first, axis=0) / np.abs(first[0])
  print(f'{result["network"]}: {result["flops_per_update"] / 1e9:.2f}e9 '
        f'operations per update{beside}; product of matrices '
        f'{result["sgemm_gflops"]:.0f}e9/s; first updates differ by '
        f'{spread[0]:.0e} in the loss and {spread[1]:.0e} in the norm of the '
        'gradient, relative.')


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--networks', nargs='+', default=['shallow'],
                      choices=['shallow', 'deep', 'deep-lstm'])
  parser.add_argument('--batch_size', type=int, default=32)
  parser.add_argument('--unroll_length', type=int, default=20)
  parser.add_argument('--variants', default=(
      'graph,graph:4,xla,xla:4,torch,torch:4'), help='comma-separated')
  parser.add_argument('--rounds', type=int, default=5)
  parser.add_argument('--seconds', type=float, default=5.0,
                      help='of a turn, which is at least one update')
  parser.add_argument('--venv', default=os.path.expanduser(
      '~/.cache/scalable_agent/benchmarks/torch'),
      help='the virtual environment, made if missing')
  parser.add_argument('--pip_args', default='torch numpy', help=(
      'arguments of pip install; the build without CUDA is small and enough'))
  parser.add_argument('--json', help='file to write the results to')
  args = parser.parse_args()
  variants = args.variants.split(',')
  for variant in variants:
    if variant.partition(':')[0] not in ('graph', 'xla', 'torch', 'compile'):
      parser.error(f'Unknown variant {variant}: use graph, xla, torch or '
                   'compile, perhaps with :N.')
  tf.config.set_visible_devices([], 'GPU')

  with contextlib.ExitStack() as stack:
    ask_torch = None
    if any(v.startswith(('torch', 'compile')) for v in variants):
      ask_torch = stack.enter_context(venvs.worker(
          args.venv, shlex.split(args.pip_args), 'torch_learner_worker.py'))
    about = {
        'cpu_cores': len(os.sched_getaffinity(0)), 'tensorflow': tf.__version__,
        **(ask_torch('versions') if ask_torch else {}),
        'batch_size': args.batch_size, 'unroll_length': args.unroll_length}
    print(', '.join(f'{k} {v}' for k, v in about.items()), end='\n\n')
    arrays = random_batch(
        np.random.RandomState(0), args.unroll_length, args.batch_size)
    print('| network | variant | agent steps/s | turns | / best torch | '
          'GFLOP/s | of the product |\n|---|---|---:|---:|---:|---:|---:|')
    results = []
    for network in args.networks:
      results.append(measure(ask_torch, network, arrays, variants, args.rounds,
                             args.seconds))
      print_rows(results[-1], args.unroll_length * args.batch_size)
  print()
  for result in results:
    print_basis(result)
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'about': about, 'results': results}, f, indent=1)


if __name__ == '__main__':
  main()
