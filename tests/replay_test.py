# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the replay of unrolls, from its ring to whole runs."""

import collections
import contextlib
import csv
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.acting import policies
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import sources
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tree

_TEXT = {'frame': structs.ArraySpec((2,), np.dtype(np.uint8)),
         'instruction': structs.ArraySpec((), np.dtype(object))}
_OUTPUT = structs.AgentOutput(
    structs.ArraySpec((), np.dtype(np.int32)),
    structs.ArraySpec((3,), np.dtype(np.float32)),
    structs.ArraySpec((), np.dtype(np.float32)))
_STATE = (np.zeros([1, 3]), np.zeros([1, 4]))
_LENGTH = 2


def _allocate(num_columns):
  return unrolls.allocate(
      _LENGTH, [''] * num_columns, _TEXT, _OUTPUT, _STATE)


def _fill(unroll, columns):
  """Fills all entries of column i with values made from columns[i]."""
  for column, number in enumerate(columns):
    one = unrolls.columns(unroll, column, column + 1)
    for array in tree.flatten((one.steps, one.start)):
      array[...] = b'%d' % number if array.dtype == object else number
  return unroll


def _numbers(test, unroll):
  """Returns the number of each column; all its entries must agree."""
  numbers = [int(v) for v in unroll.start.policy_version]
  expected = _fill(_allocate(len(numbers)), numbers)
  tree.map_structure(np.testing.assert_array_equal, unroll, expected)
  test.assertLess(max(numbers), 200)  # Larger numbers overwrite read buffers.
  return numbers


class _Reused:
  """A queue of unrolls of `E` columns in one buffer, overwritten once read."""

  def __init__(self, num_columns):
    self._pool = queues.BoundedQueue(1)
    self._pool.put(_allocate(num_columns))
    self._count = 0

  def get(self):
    buffer = self._pool.get(timeout_s=0.1)  # Released, or never handed out.
    _fill(buffer, [222] * buffer.num_columns)
    unroll = _fill(
        buffer, range(self._count, self._count + buffer.num_columns))
    self._count += buffer.num_columns
    return unrolls.Delivery(unroll, lambda: self._pool.put(buffer))


def _replay(num_kept, batch, seed=1, selector=None, start=0):
  return replay_lib.Replay(
      replay_lib.UnrollStore(num_kept),
      selector or replay_lib.Uniform(), replay_lib.Unrolls(batch, start), seed)


def _source(num_envs, **settings):
  """Returns the source of IMPALA, and its replay."""
  agent = mock.Mock(output_spec=_OUTPUT)
  agent.initial_state.return_value = _STATE
  source = sources.make(
      config_lib.Config(level_name='counting', agent='mlp',
                        unroll_length=_LENGTH, **settings),
      structs.EnvironmentSpec(_TEXT, structs.ActionSpec((3,)), 1),
      mock.Mock(agent=agent, num_updates=0, num_env_frames=0),
      _Reused(num_envs), sources.Place(
          collectives.Alone(), 0, 0, print, contextlib.ExitStack()))
  return source, source.set_errors.__self__


class ReplayTest(parameterized.TestCase):

  @parameterized.parameters((2, 4, 5, 3), (3, 4, 4, 2), (1, 5, 5, 5),
                            (4, 5, 100, 2))
  def test_fresh_once_and_replayed_from_the_latest(
      self, num_fresh, batch_size, capacity, num_envs):
    source, _ = _source(
        num_envs, batch_size=batch_size, replay_capacity=capacity,
        replay_fraction=1 - num_fresh / batch_size)
    replayed = set()
    for start in range(0, 120, num_fresh):
      sample = next(source.samples)
      numbers = _numbers(self, sample.data)
      self.assertEqual(sample.num_new_steps, num_fresh * _LENGTH)
      self.assertEqual(numbers[:num_fresh],
                       list(range(start, start + num_fresh)))
      for number in numbers[num_fresh:]:
        self.assertBetween(number, max(0, start + num_fresh - capacity),
                           start + num_fresh - 1)
      replayed.update(numbers[num_fresh:])
    self.assertGreater(len(replayed), 20)

  def test_draws_are_uniform(self):
    batch = _fill(_allocate(11), [0] * 11)
    replay = _replay(5, batch, seed=2, start=1)
    fresh = _allocate(8)  # Three of them are overwritten at once.
    replay.add(_fill(fresh, range(8)))
    counts = collections.Counter()
    for _ in range(100):
      drawn = replay.draw(1, 10)
      counts.update(_numbers(self, drawn.data)[1:])
    self.assertEqual(set(counts), {3, 4, 5, 6, 7})
    # 1,000 draws: 200 each, with a standard deviation of 12.6.
    for count in counts.values():
      self.assertBetween(count, 150, 250)

  def test_draw_leaves_the_fresh_columns_alone(self):
    batch = _allocate(4)
    replay = _replay(5, batch, seed=2, start=2)
    replay.add(unrolls.columns(_fill(batch, [1, 2, 2, 2]), 0, 1))
    _fill(batch, [7, 8, 10, 10])
    self.assertEqual(_numbers(self, replay.draw(1, 2).data), [7, 8, 1, 1])

  def test_seed(self):
    drawn = []
    for seed in (1, 1, 2):
      replay = _replay(50, _allocate(20), seed)
      replay.add(_fill(_allocate(50), range(50)))
      drawn.append(_numbers(self, replay.draw(1, 20).data))
    self.assertEqual(drawn[0], drawn[1])
    self.assertNotEqual(drawn[0], drawn[2])

  def test_draws_of_old(self):
    # One draw after the other, from the columns of the storage.
    replay = _replay(7, _allocate(5), seed=3)
    rng = np.random.default_rng(3)
    fresh = _allocate(3)
    for start in range(0, 30, 3):
      replay.add(_fill(fresh, range(start, start + 3)))
      newest, size = start + 2, min(start + 3, 7)
      expected = []
      for _ in range(5):
        slot = int(rng.integers(size))
        expected.append(slot if size < 7 else newest - (newest - slot) % 7)
      drawn = replay.draw(1, 5)
      self.assertEqual(_numbers(self, drawn.data), expected)
      self.assertEqual(list(drawn.positions), expected)
      np.testing.assert_array_equal(
          drawn.importance_weights, np.ones(5, np.float32))

  def test_priorities(self):
    batch = _allocate(100)
    replay = _replay(
        4, batch, selector=replay_lib.Prioritised(1.0, 0.5, 1e-9), start=50)
    replay.add(_fill(_allocate(6), range(6)))  # The first two are gone.
    replay.update(np.arange(6), np.array([9e9, 9e9, 1, 2, 3, 4]))
    counts = collections.Counter()
    for _ in range(10):
      drawn = replay.draw(1, 50)
      numbers = _numbers(self, unrolls.columns(drawn.data, 50, 100))
      self.assertEqual(list(drawn.positions), numbers)
      np.testing.assert_allclose(
          drawn.importance_weights, [(n - 1) ** -.5 for n in numbers],
          rtol=1e-6)
      counts.update(numbers)
    for number in range(2, 6):  # Strata: they are nearly equal to these.
      self.assertAlmostEqual(counts[number], 50 * (number - 1), delta=10)

  @parameterized.parameters(False, True)
  def test_max_use(self, prioritised):
    selector = (replay_lib.Prioritised(1.0, epsilon=1e-9) if prioritised
                else replay_lib.Uniform())
    selector = replay_lib.MaxUse(selector, 3)
    replay = _replay(4, _allocate(8), selector=selector)
    draw = lambda count: _numbers(
        self, unrolls.columns(replay.draw(1, count).data, 0, count))
    self.assertEqual(selector.num_items, 0)
    replay.add(_fill(_allocate(3), [0, 1, 2]))
    # Those that are used up stay so.
    replay.update(np.array([0, 1]), np.array([5.0, 1.0]))
    counts = collections.Counter(draw(8))
    replay.update(np.arange(3), np.full([3], 9.0))
    self.assertEqual(selector.num_items, 1)
    counts.update(draw(1))
    self.assertEqual(counts, {0: 3, 1: 3, 2: 3})
    with self.assertRaisesRegex(ValueError, '1 draws, but 0 are left'):
      draw(1)
    # A new column begins from 0, wherever it is put.
    replay.add(_fill(_allocate(2), [3, 4]))
    self.assertEqual(sorted(draw(6)), [3, 3, 3, 4, 4, 4])

  def test_mixed_batches_have_positions_and_weights(self):
    source, _ = _source(3, batch_size=4, replay_capacity=20,
                        selector='prioritised', priority_exponent=1.)
    for start in range(0, 60, 2):
      drawn = next(source.samples)
      numbers = _numbers(self, drawn.data)
      self.assertEqual(list(drawn.positions), numbers)
      self.assertEqual(numbers[:2], [start, start + 1])
      np.testing.assert_array_equal(drawn.importance_weights[:2], [1, 1])
      source.set_errors(drawn.positions, drawn.positions + 1.0)

  @parameterized.parameters(
      (1, 1, 2), (2, 1, 4), (3, 3, 4), (5, 2, 4), (6, 9, 4), (1, 1, 0),
      (2, 3, 0))
  def test_collected_batches(self, num_collected, num_envs, max_use):
    source, replay = _source(
        num_envs, batch_size=4, replay_capacity=12, max_use=max_use,
        unrolls_per_collect=num_collected, updates_per_collect=3)
    uses, arrived, end, num_updates = collections.Counter(), 0, 0, 3

    def num_left():
      return sum(uses[number] < max_use or not max_use
                 for number in range(max(0, end - 12), end))

    for _ in range(60):
      if num_updates == 3 or num_left() < 4:
        num_updates, end = 0, end + num_collected
        while num_left() < 4:
          end += num_collected
      sample = next(source.samples)
      self.assertEqual(int(replay.store.end[0]), end)
      numbers = _numbers(self, sample.data)
      for number in numbers:
        self.assertBetween(number, max(0, end - 12), end - 1)
      uses.update(numbers)
      num_updates += 1
      num_new = sum(len(note.policy_version) for note in sample.notes)
      arrived += num_new
      self.assertEqual(sample.num_new_steps, _LENGTH * num_new)
      is_last = num_updates == 3 or num_left() < 4
      self.assertEqual(bool(sample.notes), is_last)
      if is_last:
        self.assertEqual(arrived, end)
    if max_use:
      self.assertEqual(max(uses.values()), max_use)

  def test_num_bytes(self):
    # Steps: reward 4, info 4 + 4 + 1, done 1, truncated 1, frame 2, pointer 8,
    # action 4, three logits 12, baseline 4, truncation value 4; and the states
    # 28, the level's pointer 8, the environment 8, the version 8.
    self.assertEqual(packing.num_bytes(_allocate(6)),
                     6 * ((_LENGTH + 1) * 49 + 52))


def _train(test, **settings):
  """Trains on `counting`.

  Returns:
    The config and, for each update, the batch it was made with, as arrays.
  """
  config = config_lib.Config(**{
      'logdir': test.create_tempdir().full_path, 'level_name': 'counting',
      'agent': 'mlp', 'num_action_repeats': 1, 'num_actors': 3,
      'num_actor_groups': 1, 'batch_size': 4, 'unroll_length': 5,
      'total_environment_frames': 600, 'xla': 'none', 'use_lstm': False,
      # Large rewards would make one action certain, and unrolls equal.
      'reward_clipping': 'abs_one', **settings})
  batches = []
  step = learner_lib.Learner.step

  def record(learner, batch):
    batches.append(tree.map_structure(lambda x: x.numpy(), batch.data))
    return step(learner, batch)

  with mock.patch.object(learner_lib.Learner, 'step', record):
    training.train(config)
  return config, batches


@pytest.mark.slow
class RunTest(parameterized.TestCase):

  def test_a_run_makes_all_updates_of_its_last_collection(self):
    _, batches = _train(
        self, replay_capacity=16, unrolls_per_collect=4, updates_per_collect=3,
        total_environment_frames=100)
    self.assertLen(batches, 100 // (4 * 5) * 3)

  def test_a_run_with_replay(self):
    config, batches = _train(self, replay_capacity=10, use_lstm=True)
    # Half of four unrolls is fresh, so an update learns from 2 x 5 new frames.
    self.assertLen(batches, 600 // 10)
    unroll = lambda batch, i: (
        tree.map_structure(lambda x: x[:, i], batch.steps),
        tree.map_structure(lambda x: x[i], batch.start))
    fresh, num_older = [], 0
    for batch in batches:
      fresh.extend(unroll(batch, i) for i in range(2))
      for i in range(2, 4):
        copy = unroll(batch, i)
        equal = [all(np.array_equal(a, b) for a, b in zip(
            tree.flatten(copy), tree.flatten(other), strict=True))
                 for other in fresh]
        self.assertEqual(sum(equal), 1)  # Of one unroll, and all of it.
        age = len(fresh) - 1 - equal.index(True)
        self.assertLess(age, 10)
        num_older += age >= 2
    self.assertGreater(num_older, 60)
    # The fresh unrolls have each step of each environment once. Unroll i is of
    # environment i % 3.
    for environment in range(3):
      counts = [steps.env_outputs.observation[:, 0]
                for steps, _ in fresh[environment::3]]
      np.testing.assert_array_equal(
          counts, 5 * np.arange(len(counts))[:, None] + np.arange(6))
      rewards = [steps.env_outputs.reward[1:]
                 for steps, _ in fresh[environment::3]]
      np.testing.assert_array_equal(
          np.concatenate(rewards), np.arange(1, 5 * len(counts) + 1))
    # An episode is logged once, even if its end is in several batches.
    with open(os.path.join(config.logdir, 'episodes.csv'), newline='') as f:
      episodes = list(csv.DictReader(f))
    ends = sum(np.sum(steps.env_outputs.done[1:]) for steps, _ in fresh)
    self.assertLen(episodes, ends)
    self.assertEqual(sum(e['episode_return'] == '3' for e in episodes), 3)
    self.assertEqual(int(episodes[-1]['num_env_frames']), 600)

  def test_states_of_replayed_unrolls_are_those_they_were_made_with(self):
    _, batches = _train(self, replay_capacity=4, use_lstm=True,
                        total_environment_frames=200)
    states = np.concatenate([b.start.agent_state[0] for b in batches])
    self.assertTrue(np.any(states))  # Of the LSTM: not all zero.
    starts = [b.steps.env_outputs.observation[0, :, 0] for b in batches]
    for batch, start in zip(batches, starts):
      # Only the first unroll of each environment begins with a state of zeros.
      np.testing.assert_array_equal(
          np.any(batch.start.agent_state[0], axis=-1), start > 0)

  @parameterized.parameters(0, 7)
  @pytest.mark.storm
  def test_min_policy_lag(self, lag):
    seen = []
    refresh = policies.AgentPolicy.refresh
    learners = []
    make_learner = setup.make_learner

    def record(policy, weights):
      before = learners[0].num_updates
      seen.append((before, refresh(policy, weights), learners[0].num_updates))
      return seen[-1][1]

    def remember(*args):
      learners.append(make_learner(*args))
      return learners[0]

    with mock.patch.object(policies.AgentPolicy, 'refresh', record), (
        mock.patch.object(setup, 'make_learner', remember)):
      _train(self, min_policy_lag=lag, total_environment_frames=800)
    for before, version, after in seen:
      # Updates are counted a moment before their weights are published.
      self.assertBetween(version, max(0, before - 1 - lag),
                         max(0, after - lag))
    self.assertGreater(seen[-1][1], 10)


class BadInputTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(replay_capacity=-1), '--replay_capacity=-1 must not be negative'),
      (dict(replay_capacity=3, batch_size=4), 'at least --batch_size=4'),
      (dict(replay_capacity=9, batch_size=1), 'fresh and replayed'),
      (dict(replay_capacity=9, replay_fraction=1.0), 'fresh and replayed'),
      (dict(replay_capacity=9, replay_fraction=0.0), 'fresh and replayed'),
      (dict(replay_fraction=1.5), '--replay_fraction=1.5 must be between'),
      (dict(min_policy_lag=-1), '--min_policy_lag=-1 must not be negative'))
  def test_settings(self, settings, message):
    with self.assertRaisesRegex(errors.ConfigError, message):
      config_lib.Config(**{'batch_size': 4, **settings})

  def test_more_than_the_memory(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'new')
    with self.assertRaisesRegex(
        errors.ConfigError, r': [\d,]+\.\d GB are needed, but this machine '):
      training.train(config_lib.Config(
          logdir=logdir, level_name='catch', agent='mlp', num_actors=2,
          replay_capacity=10**12))
    self.assertFalse(os.path.exists(logdir))

  @parameterized.parameters((4, .5, 2), (4, .25, 3), (3, .5, 1), (32, .5, 16),
                            (5, .3, 3))
  def test_num_fresh_unrolls(self, batch_size, fraction, expected):
    config = config_lib.Config(replay_capacity=50, batch_size=batch_size,
                               replay_fraction=fraction)
    self.assertEqual(config.num_fresh_unrolls, expected)
    self.assertEqual(
        config_lib.Config(batch_size=batch_size).num_fresh_unrolls, batch_size)


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/rate', catches='test_collected_batches', rows=(
        ('steps with the first batch of a collection',
         'draw()\n'
         '      if due.num_owed >= num_updates:',
         'draw()\n'
         '      if due.num_owed < num_updates:'),
        ('batches of fewer items than a batch has',
         'self._num_owed if self._can_draw() else 0', 'self._num_owed'),
        ('updates that are left over are made after the next collection',
         'self._num_owed = self._num_updates',
         'self._num_owed += self._num_updates'),
        ('steps are lost if too few items are left',
         '    while due.num_owed < num_updates:\n',
         '    while due.num_owed < num_updates:\n'
         '      num_new_steps, notes = 0, []\n'),
    )),
    dict(file='replay/selectors', catches='test_collected_batches', rows=(
        ('used-up items count', 'np.count_nonzero(self._num_left)',
         'len(self._num_left)'),
    )),
    dict(file='learning/sources', catches='test_collected_batches', rows=(
        ('one item more than a batch has', '>= config.batch_size)',
         '> config.batch_size)'),
    )),
)


if __name__ == '__main__':
  absltest.main()
