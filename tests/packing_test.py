# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that unrolls are unpacked as they were packed, bit for bit."""

import copy
import pickle
import tracemalloc

from absl.testing import absltest
from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
from scalable_agent import replay
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config
import tree

_OUTPUT = structs.AgentOutput(
    structs.ArraySpec((), np.dtype(np.int32)),
    structs.ArraySpec((3,), np.dtype(np.float32)),
    structs.ArraySpec((), np.dtype(np.float32)))


def _assert_equal(one, other):
  tree.assert_same_structure(one, other)
  for a, b in zip(tree.flatten(one), tree.flatten(other), strict=True):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    if isinstance(a, np.ndarray):
      assert a.dtype == b.dtype
      if not a.dtype.hasobject:  # Also the bits of floats.
        assert a.tobytes() == b.tobytes()


def _sent(packed):
  """Returns what arrives in another process."""
  return pickle.loads(pickle.dumps(packed, protocol=5))


def _unroll(rng, observation, num_columns, length):
  """Returns an unroll with random numbers and the given observations."""
  spec = tree.map_structure(
      lambda a: structs.ArraySpec(a.shape[2:], a.dtype), observation)
  unroll = unrolls.allocate(
      length, ['x'] * num_columns, spec, _OUTPUT, np.zeros([1, 2], np.float32))
  fill = lambda a: (a if a.dtype.hasobject else np.frombuffer(
      rng.bytes(a.nbytes), a.dtype).reshape(a.shape))
  filled = tree.map_structure(fill, unroll.steps._replace(
      env_outputs=unroll.steps.env_outputs._replace(observation=())))
  return unroll._replace(
      steps=filled._replace(env_outputs=filled.env_outputs._replace(
          observation=observation)),
      last_observations=(structs.LastObservation(
          1, 0, tree.map_structure(lambda a: a[0, 0], observation)),))


def _stacks(rng, num_frames, num_columns, length, begins):
  """Returns stacks `[T + 1, B, N, 16, 16]`; some begin anew, after zeros."""
  frames = rng.integers(
      256, size=(length + 1, num_columns, 16, 16), dtype=np.uint8)
  stacks = np.zeros((length + 1, num_columns, num_frames, 16, 16), np.uint8)
  for t in range(length + 1):
    if t:
      stacks[t, :, :-1] = stacks[t - 1, :, 1:]
    for time, column in begins:
      if time == t:
        stacks[t, column] = 0
    stacks[t, :, -1] = frames[t]
  return stacks


def packed_unrolls(test, settings, count=6):
  """Yields unrolls of actors, packed; tests that they are as they were."""
  actors = training.make_acting(settings, part=0)
  test.addCleanup(actors.close)
  learner = setup.make_learner(settings.resolved(
      actors.spec.observation, on_cpu=True, num_groups=1), actors.spec)
  inbox = queues.BoundedQueue[unrolls.Delivery](1)
  test.addCleanup(actors.stop, 10)
  test.addCleanup(inbox.close)
  actors.start(learner.weights, inbox)
  for _ in range(count):
    unroll, release = inbox.get()
    packed = packing.pack(unroll)
    for one in packed, packing.pack(unroll, compress=True):
      _assert_equal(packing.unpack(_sent(one)), unroll)
    yield unroll, packed
    release()


class PackingTest(parameterized.TestCase):

  @hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
  @hypothesis.given(
      st.integers(1, 9), st.integers(1, 5), st.integers(1, 12),
      st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=9),
      st.integers(0, 2**31), st.booleans())
  def test_stacks_that_begin_anywhere(
      self, num_frames, num_columns, length, begins, seed, compress):
    rng = np.random.default_rng(seed)
    begins = [(t, column % num_columns) for t, column in begins]
    unroll = _unroll(rng, _stacks(
        rng, num_frames, num_columns, length, begins), num_columns, length)
    packed = packing.pack(unroll, compress)
    _assert_equal(packing.unpack(_sent(packed)), unroll)

  @parameterized.parameters(True, False)
  def test_other_observations(self, compress):
    rng = np.random.default_rng(0)
    for observation in (
        rng.normal(size=(6, 3, 17)).astype(np.float32),
        rng.integers(256, size=(6, 3, 72, 96, 3), dtype=np.uint8),
        rng.integers(256, size=(6, 3, 4, 16, 16), dtype=np.uint8),
        np.copysign(np.zeros([6, 3, 4, 16, 16], np.float32),
                    rng.normal(size=[6, 3, 4, 16, 16])),
        {'frame': _stacks(rng, 4, 3, 5, [(2, 1)]),
         'vector': rng.normal(size=(6, 3, 500)),
         'instruction': np.full([6, 3], b'go', object)}):
      unroll = _unroll(rng, observation, 3, 5)
      packed = packing.pack(unroll, compress)
      _assert_equal(packing.unpack(_sent(packed)), unroll)

  def test_what_is_left_of_stacks(self):
    rng = np.random.default_rng(0)
    unroll = _unroll(rng, _stacks(rng, 4, 2, 20, [(7, 1)]), 2, 20)
    rest = packing.num_bytes(unroll) - 21 * 2 * 4 * 256
    exceptions = 3 * (4 * 256 + 2 * 8)  # The stacks that have zeros.
    self.assertEqual(packing.num_bytes(packing.pack(unroll)),
                     rest + 2 * 4 * 256 + 20 * 2 * 256 + exceptions)
    zeros = unroll._replace(steps=tree.map_structure(
        np.zeros_like, unroll.steps))
    self.assertLess(packing.num_bytes(packing.pack(zeros, compress=True)),
                    0.2 * packing.num_bytes(zeros))

  def test_stacks_that_are_none_stay_as_they_are(self):
    rng = np.random.default_rng(0)
    unroll = _unroll(rng, rng.integers(
        256, size=(6, 3, 4, 16, 16), dtype=np.uint8), 3, 5)
    self.assertIs(
        packing.pack(unroll).steps.env_outputs.observation,
        unroll.steps.env_outputs.observation)

  def test_a_replay_keeps_packed_copies(self):
    rng = np.random.default_rng(0)
    store = replay.UnrollStore(4)
    added, sizes = [], []
    tracemalloc.start()
    self.addCleanup(tracemalloc.stop)
    for begins in [(7, 1)], [(3, 0), (4, 2)]:
      unroll = _unroll(rng, _stacks(rng, 4, 3, 99, begins), 3, 99)
      added += [unrolls.columns(copy.deepcopy(unroll), n, n + 1)
                for n in range(3)]
      replay.UnrollStore(3).add(unroll)  # Fills caches of Python.
      before, _ = tracemalloc.get_traced_memory()
      store.add(unroll)
      sizes.append(tracemalloc.get_traced_memory()[0] - before)
      for array in tree.flatten(unroll):  # As the next unroll does.
        if isinstance(array, np.ndarray) and array.dtype == np.uint8:
          array[...] = 7
    self.assertLess(sizes[0], .5 * 3 * packing.num_bytes(added[0]))
    batch = copy.deepcopy(unroll)._replace(last_observations=())
    for position in range(2, 6):
      store.copy_to(batch, 1, np.array([position]))
      _assert_equal(unrolls.columns(batch, 1, 2),
                    added[position]._replace(last_observations=()))

  @parameterized.parameters('Pong', 'Breakout', 'SpaceInvaders')
  @pytest.mark.slow
  def test_games(self, game):
    pytest.importorskip('ale_py')
    settings = config.Config(
        level_name=f'ALE/{game}-v5', num_actors=2, num_actor_groups=1,
        unroll_length=20, agent='shallow', use_lstm=False, xla='none',
        life_loss_ends_episode=True, max_episode_frames=200)
    for unroll, packed in packed_unrolls(self, settings):
      self.assertLess(packing.num_bytes(packed),
                      0.6 * packing.num_bytes(unroll))


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/unrolls', catches='test_a_replay_keeps_packed_copies',
         rows=(
        ('shares the memory of the unroll',
         'packing.copied(packing.pack(\n'
         '          unrolls.columns(unroll, column, column + 1)))',
         'packing.pack(\n'
         '          unrolls.columns(unroll, column, column + 1))'),
        ('copies are not packed', 'packing.copied(packing.pack(',
         'packing.copied(('),
        ('the ring grows', 'self._packed[slot:slot + 1]',
         'self._packed[slot:slot]'),
    )),
    dict(file='experience/packing', catches='test_other_observations', rows=(
        ('exceptions left out', 'array[tuple(leaf.exceptions.T)] = leaf.stacks',
         'pass'),
        ('a frame too late', 'frames[n:n + length] for n',
         'frames[n + 1:n + length + 1] for n'),
        ('floats are packed', 'array.dtype != np.uint8 or', ''),
        ('last observations stay compressed',
         'lambda leaf: _unpack_stacks(_decompress(leaf)), packed)',
         'lambda leaf: _unpack_stacks(_decompress(leaf)), '
         'packed)._replace(last_observations=packed.last_observations)'),
    )),
    dict(file='experience/packing',
         catches='test_stacks_that_are_none_stay_as_they_are', rows=(
        ('only the newest frames are compared',
         'for n in range(size):\n'
         '    differs',
         'for n in [size - 1]:\n'
         '    differs'),
        ('packed although it is larger',
         'if (size - 1) * len(exceptions) >= is_other.size:', 'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
