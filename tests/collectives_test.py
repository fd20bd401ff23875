# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that several learners make the updates of one.

Each learner is a process of its own: `python collectives_test.py RANK PORTS
FILE WHICH` writes what it has learned in each case to a file. The learner that
learns alone is a process, too: other tests change the threads and the
determinism of TensorFlow, and thus the rounding.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import learner as learner_lib
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_BATCH_SIZE = 8
_NUM_UPDATES = 3
_FRAMES = structs.ArraySpec((4, 28, 28), np.dtype(np.uint8))
_WORDS = structs.ArraySpec((), np.dtype(object))
_VECTOR = structs.ArraySpec((3,), np.dtype(np.float32))
_DISCRETE = structs.ActionSpec((4,))
_IMPALA = {'unroll_length': 5, 'clip_gradient_norm': 40.0, 'epsilon': 0.01}
_MEMORY = {'use_lstm': True, 'lstm_units': 6, 'sequence_length': 3,
           'unroll_length': 3, 'burn_in_steps': 2, 'updates_per_call': 1}

# What is wrong on purpose: a case, and how gradients are summed.
_WRONG = (('words, RMSProp', 'twice'), ('words, RMSProp', 'mean'),
          ('words, Adam, clipped', 'clipped before'),
          ('words, RMSProp', 'dense'))
# The cases of `make test`.
_QUICK = 'words, Adam, clipped'
# The observations, the actions and the settings of each case.
_CASES = {
    'mlp, RMSProp': (_VECTOR, _DISCRETE, {
        'agent': 'mlp', 'use_lstm': False, **_IMPALA}),
    'shallow, LSTM, micro-batches': (_FRAMES, _DISCRETE, {
        'agent': 'shallow', 'micro_batch_size': 1, **_IMPALA}),
    'words, Adam, clipped': (
        {'observation': _VECTOR, 'instruction': _WORDS}, _DISCRETE, {
            'agent': 'mlp', 'optimizer': 'adam', **_IMPALA,
            'epsilon': 1e-3, 'clip_gradient_norm': 0.5,
            # Smaller moves are lost in the rounding of the weights.
            'learning_rate': 0.01}),
    'words, RMSProp': (
        {'observation': _VECTOR, 'instruction': _WORDS}, _DISCRETE, {
            'agent': 'mlp', **_IMPALA}),
    'deep, LSTM, words': (
        {'frame': _FRAMES, 'instruction': _WORDS}, _DISCRETE, {
            'agent': 'deep', **_IMPALA}),
    'mean': (_VECTOR, _DISCRETE, {
        'agent': 'mlp', 'reduction': 'mean', 'clip_gradient_norm': 0.1,
        'unroll_length': 5, 'learning_rate': 0.05}),
    'td3': (_VECTOR, structs.ActionSpec(size=2), {
        'algorithm': 'td3', 'agent': 'mlp', 'hidden_sizes': '16,16',
        'target_noise': 0.0, 'epsilon': 1e-3}),
    'td3, loop': (_VECTOR, structs.ActionSpec(size=2), {
        'algorithm': 'td3', 'agent': 'mlp', 'hidden_sizes': '16,16',
        'target_noise': 0.0, 'epsilon': 1e-3, 'updates_per_call': 4}),
    'td3, memory': (_VECTOR, structs.ActionSpec(size=2), {
        'algorithm': 'td3', 'agent': 'mlp', 'hidden_sizes': '16,16',
        'target_noise': 0.0, 'epsilon': 1e-3, **_MEMORY}),
    'ddqn, memory': (_VECTOR, _DISCRETE, {
        'algorithm': 'ddqn', 'agent': 'mlp', 'epsilon': 1e-3, **_MEMORY}),
}


def _config(case):
  observation, action, settings = _CASES[case]
  config = config_lib.Config(
      batch_size=_BATCH_SIZE, total_environment_frames=10_000, xla='none',
      dynamic_batching=False, **settings)
  return config, structs.EnvironmentSpec(observation, action, 1)


def _values(rng, spec, shape):
  """Returns random arrays; words repeat, within learners and across them."""
  if isinstance(spec, dict):
    return {name: _values(rng, part, shape) for name, part in spec.items()}
  if spec.dtype == object:
    return rng.choice(np.array([b'go', b'go to the red door', b''], object),
                      shape)
  if spec.dtype == np.uint8:
    return rng.integers(256, size=(*shape, *spec.shape), dtype=np.uint8)
  return rng.normal(size=(*shape, *spec.shape)).astype(spec.dtype)


def _unroll(rng, config, spec, agent):
  batch = unrolls.allocate(config.unroll_length, [''] * _BATCH_SIZE,
                           spec.observation, agent.output_spec,
                           agent.initial_state(1))
  shape = batch.steps.env_outputs.reward.shape
  outputs = batch.steps.env_outputs._replace(
      reward=rng.normal(size=shape).astype(np.float32),
      done=rng.random(shape) < 0.2, truncated=np.zeros(shape, bool),
      observation=_values(rng, spec.observation, shape))
  policy = rng.normal(
      size=batch.steps.agent_outputs.policy.shape).astype(np.float32)
  steps = structs.Steps(outputs, structs.AgentOutput(
      rng.integers(4, size=shape, dtype=np.int32), policy,
      rng.normal(size=shape).astype(np.float32)), np.zeros(shape, np.float32))
  state = tf.nest.map_structure(
      lambda x: rng.normal(size=x.shape).astype(np.float32),
      batch.start.agent_state)
  return structs.Unroll(steps, batch.start._replace(agent_state=state))


def _transitions(rng, config, spec):
  shape = [_BATCH_SIZE]
  if config.updates_per_call:
    shape.insert(0, config.updates_per_call)
  return structs.Transition(
      _values(rng, spec.observation, shape),
      rng.uniform(-1, 1, (*shape, 2)).astype(np.float32),
      rng.normal(size=shape).astype(np.float32),
      np.full(shape, 0.9, np.float32), _values(rng, spec.observation, shape))


def _sequences(rng, config, spec, agent):
  """Returns sequences; the unknown steps differ between learners."""
  shape = (config.num_entries, _BATCH_SIZE)
  learned = (config.sequence_length, _BATCH_SIZE)
  floats = lambda *shape: rng.normal(size=shape).astype(np.float32)
  actions = (rng.uniform(-1, 1, (*shape, 2)).astype(np.float32)
             if spec.action.size else
             rng.integers(4, size=shape, dtype=np.int32))
  known = (rng.random(learned) < .7).astype(np.float32)
  known[:, 0] = 0
  return structs.Sequence(
      structs.StepOutput(floats(*shape), structs.NO_INFO,
                         rng.random(shape) < .2,
                         _values(rng, spec.observation, shape)),
      actions, tf.nest.map_structure(
          lambda s: floats(_BATCH_SIZE, s.shape[1]), agent.initial_state(1)),
      floats(*learned), np.full(learned, .9, np.float32),
      np.broadcast_to(np.arange(1, learned[0] + 1, dtype=np.int32)[:, None],
                      learned), known)


def _learn(case, collectives):
  """Learns from a part of batches; returns what came out, as arrays."""
  config, spec = _config(case)
  learner = setup.make_learner(config, spec, collectives=collectives)
  if collectives.rank:  # It must get those of the first.
    for variable in learner.agent.variables:
      variable.assign_add(tf.ones_like(variable))
  first = [v.numpy() for v in learner.agent.variables]
  collectives.copy_from_first(tf.nest.flatten(learner.state))
  rng = np.random.default_rng(3)
  size = _BATCH_SIZE // collectives.size
  start = collectives.rank * size
  norms, weights = [], []
  for _ in range(_NUM_UPDATES):
    if config.use_lstm and config.is_off_policy:
      data = _sequences(rng, config, spec, learner.agent)
      columns = slice(start, start + size)
      data = tf.nest.map_structure(
          lambda x, c=columns: x[:, c], data._replace(state=()))._replace(
              state=tf.nest.map_structure(
                  lambda x, c=columns: x[c], data.state))
    elif config.is_off_policy:
      axis = 1 if config.updates_per_call else 0
      data = tf.nest.map_structure(
          lambda x, axis=axis: np.take(x, range(start, start + size), axis),
          _transitions(rng, config, spec))
    else:
      data = unrolls.columns(
          _unroll(rng, config, spec, learner.agent), start, start + size)
    scalars = learner.step(learner.to_device(data, 100)).scalars
    norms.append({k: float(v) for k, v in scalars.items()})
    weights.append([v.numpy() for v in learner.agent.variables])
  variables = [v.numpy() for v in tf.nest.flatten(learner.state)]
  return {
      'weights': weights[-1], 'after_one': weights[0],
      'slots': [v.numpy() for v in learner.state['optimizer']],
      'norms': norms, 'first': first, 'digest': hashlib.sha256(
          b''.join(v.tobytes() for v in variables)).hexdigest()}


class _Broken:
  """Ways to sum that are wrong, to see that the test finds them."""

  def __init__(self, collectives, how):
    self._collectives = collectives
    self._how = how
    self.size, self.rank = collectives.size, collectives.rank
    self.total = collectives.total
    self.copy_from_first = collectives.copy_from_first

  def sum(self, tensors):
    sums = self._collectives.sum(tensors)
    if self._how == 'twice':
      return self._collectives.sum(sums)
    return [s / self.size for s in sums]  # The mean.


class _ClippedBefore(learner_lib.Learner):
  """Clips the gradients of each learner, not those of all together."""

  def _gradients(self, *args):
    gradients, *rest = super()._gradients(*args)
    return ({group: tf.clip_by_global_norm(g, self._clip_gradient_norm)[0]
             for group, g in gradients.items()}, *rest)


def _learn_wrongly(case, how, collectives):
  if how == 'clipped before':
    with mock.patch.object(learner_lib, 'Learner', _ClippedBefore):
      return _learn(case, collectives)
  if how == 'dense':
    with mock.patch.object(learner_lib.optimizers_lib, 'to_slices',
                           lambda dense, num_slices: dense):
      return _learn(case, collectives)
  return _learn(case, _Broken(collectives, how))


def _check_that_sums_leave_nothing(collectives):
  """Fails if the sums of a long run would take all memory or all threads."""
  def state():
    with open('/proc/self/statm', encoding='utf-8') as f:
      num_bytes = int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    return num_bytes, len(os.listdir('/proc/self/task'))

  for _ in range(500):  # TensorFlow still starts threads, and takes memory.
    collectives.total([1])
  before, num_threads = state()
  num_sums = 2000
  for _ in range(num_sums):
    collectives.total([1])
  after, num_threads_after = state()
  # A key for each sum would be 1.6e3 bytes a sum.
  assert after - before < 1.1e3 * num_sums, (before, after)
  assert num_threads_after < num_threads + 20, num_threads_after


def _main(rank, ports, path, which):
  addresses = [f'localhost:{port}' for port in ports.split(',')]
  collectives = (collectives_lib.Alone() if len(addresses) == 1 else
                 collectives_lib.TensorFlowCollectives(addresses, int(rank)))
  assert collectives.total([1, int(rank)]) == [
      len(addresses), sum(range(len(addresses)))]
  assert collectives.largest(-.5 - int(rank)) == -.5
  if which == 'quick':
    _check_that_sums_leave_nothing(collectives)
  if which == 'wrong':
    results = {(case, how): _learn_wrongly(case, how, collectives)
               for case, how in _WRONG}
  else:
    results = {(case, 'right'): _learn(case, collectives)
               for case in ([_QUICK] if which == 'quick' else _CASES)}
  if which == 'quick' and rank == '0':  # A start of TensorFlow takes seconds.
    results[_QUICK, 'alone'] = _learn(_QUICK, collectives_lib.Alone())
  pathlib.Path(path).write_bytes(pickle.dumps(results))


@functools.cache
def _results(size, which):
  """Returns what each of `size` learners has learned, by case and way."""
  ports = ','.join(map(str, _free_ports(size)))
  with tempfile.TemporaryDirectory() as directory:
    paths = [pathlib.Path(directory, str(rank)) for rank in range(size)]
    processes = [subprocess.Popen(
        [sys.executable, __file__, str(rank), ports, str(path), which],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank, path in enumerate(paths)]
    for process in processes:
      output, _ = process.communicate()
      if process.returncode:
        raise ValueError(output)
    return [pickle.loads(path.read_bytes()) for path in paths]


def _free_ports(count):
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for one in sockets:
      one.bind(('localhost', 0))
    return [one.getsockname()[1] for one in sockets]


def _weight_error(one, other, when='weights'):
  """Returns the largest difference, as a share of the largest move."""
  largest = lambda xs, ys: max(
      np.max(np.abs(x - y)) for x, y in zip(xs, ys, strict=True))
  return largest(one[when], other[when]) / largest(one[when], one['first'])


def _error(one, other):
  """Returns the largest difference, as a share of what was learned."""
  return max(
      _weight_error(one, other),
      max(np.max(np.abs(a - b) / np.maximum(np.max(np.abs(a)), 1e-12))
          for a, b in zip(one['slots'], other['slots'], strict=True)))


class SeveralLearnersTest(parameterized.TestCase):

  def _check(self, case, size, which='all'):
    all_results = _results(size, which)
    one = (all_results[0][case, 'alone'] if which == 'quick' else
           _results(1, which)[0][case, 'right'])
    results = [result[case, 'right'] for result in all_results]
    # The deep network enlarges differences of rounding.
    is_deep = case.startswith('deep')
    self.assertLess(_weight_error(one, results[0], 'after_one'), 1e-5)
    self.assertLess(_error(one, results[0]), 1e-2 if is_deep else 1e-4)
    self.assertLen({result['digest'] for result in results}, 1)
    for result in results:
      self.assertEqual(one['norms'][0].keys(), result['norms'][0].keys())
      for update, (ours, theirs) in enumerate(
          zip(one['norms'], result['norms'], strict=True)):
        rtol = 3e-6 if update == 0 else 1e-2 if is_deep else 1e-4
        for name, value in ours.items():
          if name == 'mean_q' and 'memory' in case:
            # Each learner's mean is over its known steps. The learners have
            # different numbers of known steps, so the mean of means differs.
            continue
          np.testing.assert_allclose(theirs[name], value, rtol=rtol, atol=1e-6,
                                     err_msg=f'{name}, update {update}')

  @pytest.mark.slow
  def test_two_equal_one_learner_of_the_whole_batch(self):
    self._check(_QUICK, 2, 'quick')

  @parameterized.product(case=tuple(_CASES), size=(2, 4))
  @pytest.mark.storm
  def test_several_equal_one_learner_of_the_whole_batch(self, case, size):
    self._check(case, size)

  @parameterized.parameters(*_WRONG)
  @pytest.mark.storm
  def test_what_is_wrong_is_found(self, case, how):
    one = _results(1, 'all')[0][case, 'right']
    self.assertGreater(_error(one, _results(2, 'wrong')[0][case, how]), 1e-3)


class _TwoOfThree(collectives_lib.VectorCollectives):
  """The other learners have -1 and 3."""

  def __init__(self):
    super().__init__(3, 1)

  def _sum_vector(self, vector):
    return vector + tf.constant([-1., 0., 3.], vector.dtype)


class LargestTest(parameterized.TestCase):

  @parameterized.parameters((2.5, 3.), (3.5, 3.5), (-2, 3.))
  def test_no_number_of_python_becomes_a_tensor(self, number, expected):
    learner = _TwoOfThree()
    learner.largest(0.)  # Compiles the sum.
    # TensorFlow never frees such a tensor.
    with mock.patch.object(collectives_lib.tf, 'constant',
                           wraps=tf.constant) as constant:
      self.assertEqual(learner.largest(number), expected)
    for call in constant.call_args_list:
      self.assertIsInstance(call.args[0], np.ndarray)
    self.assertNotEmpty(constant.call_args_list)


MUTATIONS = (
    dict(file='learning/collectives',
         catches='test_no_number_of_python_becomes_a_tensor', rows=(
             ('a number of Python', '[tf.constant(own)]',
              '[tf.one_hot(self.rank, self.size, tf.constant(number, '
              'tf.float64), dtype=tf.float64)]'),
         )),
)


if __name__ == '__main__':
  if len(sys.argv) == 5:
    _main(*sys.argv[1:])
  else:
    absltest.main()
