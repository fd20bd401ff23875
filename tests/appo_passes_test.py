# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of APPO: passes over collections, and learning rates by KL."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import replay as replay_lib
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import feeds
from scalable_agent.learning import optimizers
from scalable_agent.networks import heads
import tensorflow as tf
import tree


def _numbered(num_columns, first=0, unroll_length=2):
  """Returns an unroll whose numbers are all the number of the column."""
  number = np.arange(first, first + num_columns)
  unroll = unrolls.allocate(
      unroll_length, [''] * num_columns,
      {'a': structs.ArraySpec((2,), np.dtype(np.float32)),
       'b': structs.ArraySpec((), np.dtype(np.uint8))},
      structs.AgentOutput(structs.ArraySpec((), np.dtype(np.int32)),
                          structs.ArraySpec((3,), np.dtype(np.float32)),
                          structs.ArraySpec((), np.dtype(np.float32))),
      (np.zeros([1, 4], np.float32),))

  def fill_steps(array):
    array.swapaxes(0, 1).T[...] = number

  def fill_start(array):
    if array.dtype != object:
      array.T[...] = number

  tree.map_structure(fill_steps, unroll.steps)
  tree.map_structure(fill_start, unroll.start)
  return unroll


def _column_numbers(batch):
  """Returns the number of each column, which all arrays must agree on."""
  found = batch.start.environment.copy()
  for array in tree.flatten(batch.steps):
    np.testing.assert_array_equal(
        array.swapaxes(0, 1).T, np.broadcast_to(
            found, array.swapaxes(0, 1).T.shape).astype(array.dtype))
  for array in tree.flatten(batch.start):
    if array.dtype != object:
      np.testing.assert_array_equal(
          array.T, np.broadcast_to(found, array.T.shape))
  return found.tolist()


class PassesTest(parameterized.TestCase):

  @parameterized.parameters((8, 2, 3), (6, 6, 2), (4, 1, 4), (9, 3, 1),
                            (4, 8, 4), (3, 9, 3))
  def test_each_column_is_drawn_once_in_each_pass(self, n, size, num_passes):
    passes = replay_lib.Passes(_numbered(n), _numbered(size), num_passes, 1)
    num_draws = num_passes * n // size
    self.assertEqual(passes.num_draws, num_draws)
    drawn = []
    for draw in range(3 * num_draws):  # Three collections.
      sample = passes()
      is_new = np.arange(size) + draw % num_draws * size < n
      self.assertEqual(sample.num_new_columns, is_new.sum())
      drawn += _column_numbers(sample.data)
    orders = np.reshape(drawn, [-1, n])
    for order in orders:
      self.assertCountEqual(order, range(n))
    self.assertGreater(len(set(map(tuple, orders))), 1)
    if num_passes > 1:
      self.assertNotEqual(*map(tuple, orders[:2]))

  def test_the_last_batch_of_a_collection_counts_the_frames(self):
    collected, batch = _numbered(4), _numbered(2)
    passes = replay_lib.Passes(collected, batch, 3, 1)
    inbox = mock.Mock()
    sent = [_numbered(4, 4 * i) for i in range(3)]
    inbox.get.side_effect = [
        unrolls.Delivery(unroll, lambda: None) for unroll in sent]

    def add(unroll):
      unrolls.copy_columns(collected, 0, unroll, 0, 4)

    samples = replay_lib.samples(
        inbox, add, passes, replay_lib.PerCollection(passes.num_draws),
        lambda unroll: unroll.start.environment.copy())
    for collection in range(3):
      for index in range(6):
        sample = next(samples)
        self.assertEqual(sample.num_new_steps, 8 if index == 5 else 0)
        self.assertLen(sample.notes, int(index == 5))
        self.assertTrue(all(4 * collection <= number < 4 * collection + 4
                            for number in _column_numbers(sample.data)))


class TurnsTest(absltest.TestCase):

  def test_groups_are_released_together_when_more_is_wanted(self):
    inbox = queues.BoundedQueue[unrolls.Delivery](9)
    released = []
    for number in range(7):
      inbox.put(unrolls.Delivery(
          number, lambda number=number: released.append(number)))
    turns = feeds.TurnTaker(inbox, 3)
    for _ in range(3):
      turns.get().release()
      self.assertEmpty(released)
    turns.get()
    self.assertEqual(released, [0, 1, 2])
    turns.get()
    turns.get()
    self.assertEqual(released, [0, 1, 2])
    turns.get()
    self.assertEqual(released, [0, 1, 2, 3, 4, 5])


class KlScheduleTest(tf.test.TestCase):

  def test_rates(self):
    schedule = optimizers.KlSchedule(3e-4, .008)
    for kl, rate in ((.02, 2e-4), (.01, 2e-4), (.001, 3e-4), (.0201, 2e-4)):
      schedule.add(tf.constant(kl), True)
      self.assertAllClose(schedule(7), rate, rtol=1e-6, atol=0)

  def test_the_mean_of_a_collection_counts(self):
    schedule = optimizers.KlSchedule(3e-4, .008)
    for kl, is_last, rate in (
        (.1, False, 3e-4), (0., False, 3e-4), (0., True, 2e-4),
        (.002, False, 2e-4), (.0022, True, 3e-4)):
      schedule.add(tf.constant(kl), is_last)
      self.assertAllClose(schedule(0), rate, rtol=1e-6, atol=0)

  def test_a_collection_that_a_stop_has_cut_off_does_not_count(self):
    schedule = optimizers.KlSchedule(3e-4, .008)
    schedule.add(tf.constant(.03), True)
    schedule.add(tf.constant(.1), False)
    schedule.forget()
    schedule.add(tf.constant(.008), True)
    self.assertAllClose(schedule(0), 2e-4, rtol=1e-6, atol=0)

  def test_rates_have_bounds(self):
    for kl, bound in ((1., 1e-6), (0., 1e-2)):
      schedule = optimizers.KlSchedule(1e-4, .008)
      for _ in range(20):
        schedule.add(tf.constant(kl), True)
      self.assertAllClose(schedule(0), bound, rtol=1e-6, atol=0)

  def test_kl_of_categorical_policies(self):
    pi, mu = (heads.policy(structs.ActionSpec((3,))).distribution(
        tf.math.log([p])) for p in ([.7, .2, .1], [.1, .2, .7]))
    self.assertAllClose(pi.kl(mu), [1.1675461])


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='learning/optimizers',
        catches='KlScheduleTest.test_rates',
        rows=(
            ('the rate falls at the target',
             'mean > 2 * self._target_kl',
             'mean > self._target_kl'),
            ('the rate rises at the target',
             'mean < self._target_kl / 2',
             'mean < self._target_kl'),
        )),
    dict(
        file='learning/optimizers',
        catches='test_the_mean_of_a_collection_counts',
        rows=(
            ('each update moves the rate',
             'rate.assign(tf.where(is_last,',
             'rate.assign(tf.where(True,'),
            ('the last KL alone counts',
             'mean = (total + kl) / (count + 1)',
             'mean = kl'),
            ('KLs of earlier collections count',
             'total.assign(tf.where(is_last, 0., total + kl))',
             'total.assign(total + kl)'),
        )),
    dict(
        file='learning/optimizers',
        catches='test_rates_have_bounds',
        rows=(
            ('rates without bounds',
             '_KL_RATES = 1e-6, 1e-2',
             '_KL_RATES = 0., 1e9'),
        )),
    dict(
        file='replay/unrolls',
        catches='test_each_column_is_drawn_once_in_each_pass',
        rows=(
            ('one order for all passes',
             '    if not index:\n',
             '    if not self._num_drawn:\n'),
            ('the same order in each pass',
             'self._rng.permutation(num_collected)',
             'np.random.default_rng(1).permutation(num_collected)'),
            ('the same batch in each draw',
             'self._order[index:index +', 'self._order[column:column +'),
            ('steps of other columns', 'np.take(values, columns, 1,',
             'np.take(values, columns[::-1], 1,'),
            ('always the first columns of the batch',
             'slice(column, column + len(order))', 'slice(0, len(order))'),
            ('columns of later passes are new',
             'num_collected - first % self._num_columns, 0)',
             'num_collected, 0)'),
            ('columns of a first pass alone are not new',
             'num_new, self._batch.num_columns))',
             'num_new, 0))'),
            ('one pass',
             'self.num_draws = self._num_columns // batch.num_columns',
             'self.num_draws = collected.num_columns // batch.num_columns'),
        )),
    dict(
        file='learning/feeds',
        catches='test_groups_are_released_together_when_more_is_wanted',
        rows=(
            ('each unroll is released alone',
             'if len(self._releases) == self._num_groups:',
             'if self._releases:'),
            ('unrolls are released again',
             '      self._releases = []\n',
             ''),
        )),
)


if __name__ == '__main__':
  absltest.main()
