# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the ratio of updates to steps."""

import threading
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import replay_logs
from scalable_agent import replay as replay_lib
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls


def _deliveries(num_envs, unroll_length, count, released):
  logs = [replay_logs.random_log(
      np.random.default_rng(s), s, unroll_length * count)
          for s in range(num_envs)]
  for i in range(count):
    unroll = replay_logs.unroll(
        logs, range(num_envs), i * unroll_length, unroll_length)
    yield unrolls.Delivery(unroll, lambda i=i: released.append(i))


class _List:
  """An inbox of a list; it is closed at its end."""

  def __init__(self, items):
    self._items = iter(items)

  def get(self):
    try:
      return next(self._items)
    except StopIteration:
      raise queues.QueueClosed() from None


def _run(rate, num_envs, unroll_length, num_updates, count=40):
  """Returns all samples, and the steps that each one was drawn after."""
  released, found, added = [], [], []
  source = replay_lib.samples(
      _List(_deliveries(num_envs, unroll_length, count, released)),
      added.append, lambda: structs.Sample(len(added)), rate,
      lambda unroll: float(unroll.steps.env_outputs.reward[1, 0]), num_updates)
  try:
    for sample in source:
      assert released == list(range(len(added)))
      found.append((sample, rate.num_steps))
  except queues.QueueClosed:
    pass
  return found


class RateTest(parameterized.TestCase):

  @parameterized.product(
      num_envs=(1, 3, 8), unroll_length=(1, 5), num_updates=(1, 4),
      updates_per_step=(1, 0.1, 0.29, 2.5), min_steps=(0, 37))
  def test_the_ratio_is_exact(self, num_envs, unroll_length, num_updates,
                              updates_per_step, min_steps):
    rate = replay_lib.Rate(updates_per_step, min_steps)
    found = _run(rate, num_envs, unroll_length, num_updates)
    per_unroll = num_envs * unroll_length
    hundredths = round(updates_per_step * 100)
    expected, updates = [], 0
    for steps in range(per_unroll, 41 * per_unroll, per_unroll):
      while (hundredths * (steps - min_steps) // 100) - updates >= num_updates:
        updates += num_updates
        expected.append(steps)
    self.assertEqual([steps for _, steps in found], expected)
    self.assertEqual(rate.num_updates, updates)
    self.assertEqual(rate.num_steps, 40 * per_unroll)
    # All that arrived is counted once, in the last batch before more arrives:
    # whoever stops at a number of steps has made all updates that are due.
    total = 0
    for (sample, steps), following in zip(found, [*expected[1:], None]):
      total += sample.num_new_steps
      if following != steps:
        self.assertEqual(total, steps)
      else:
        self.assertEqual(sample.num_new_steps, 0)
      self.assertEqual(sample.data * per_unroll, steps)
      self.assertLen(sample.notes, sample.num_new_steps // per_unroll)

  def test_achieved(self):
    rate = replay_lib.Rate(0.5, 100)
    self.assertEqual(rate.achieved, 0)
    _run(rate, 2, 5, 1)
    self.assertEqual((rate.num_steps, rate.num_updates), (400, 150))
    self.assertEqual(rate.achieved, 0.5)

  def test_a_second_warm_up_owes_nothing(self):
    rate = replay_lib.Rate(1, 30)
    _run(rate, 1, 5, 1, count=10)
    self.assertEqual((rate.num_steps, rate.num_updates), (50, 20))
    rate.warm_up()
    found = _run(rate, 1, 5, 1, count=8)
    self.assertEqual((rate.num_steps, rate.num_updates), (90, 30))
    self.assertEqual(found[0][1], 85)

  def test_a_restored_rate_goes_on(self):
    whole, first = (replay_lib.Rate(0.3, 20) for _ in range(2))
    _run(whole, 1, 1, 2, count=61)
    _run(first, 1, 1, 2, count=33)
    second = replay_lib.Rate(0.3, 20)
    second.state = first.state
    self.assertEqual(second.num_owed, first.num_owed)
    _run(second, 1, 1, 2, count=28)
    self.assertEqual(second.state, whole.state)

  @parameterized.parameters((10, 61, 12), (10, 300, 99), (.01, 300, 99))
  def test_a_new_ratio_owes_nothing_for_the_past(
      self, ratio, num_steps, num_updates):
    whole = replay_lib.Rate(0.3, 20)
    _run(whole, 1, 1, 2, count=61)
    other = replay_lib.Rate(ratio, 20)
    other.state = whole.state
    # The learner may be ahead of the replay that was saved.
    other.resume(num_steps, num_updates)
    self.assertEqual((other.num_owed, other.num_updates), (0, num_updates))
    other.num_steps += 100
    self.assertEqual(other.num_owed, 100 * ratio)
    same = replay_lib.Rate(0.3, 20)
    same.state = whole.state
    same.resume(num_steps, 12)
    self.assertEqual(same.num_owed, (num_steps - 20) * 3 // 10 - 12)

  def test_a_new_ratio_does_not_end_the_warm_up(self):
    whole = replay_lib.Rate(0.3, 20)
    _run(whole, 1, 1, 2, count=15)
    other = replay_lib.Rate(1, 20)
    other.state = whole.state
    other.resume(15, 0)
    self.assertEqual(other.num_owed, -5)

  def test_a_new_number_of_learners(self):
    alone = replay_lib.Rate(0.3, 20)
    _run(alone, 1, 1, 2, count=61)
    num_updates = alone.num_updates
    for num_learners in 1, 2:
      other = replay_lib.Rate(0.3, 20, num_learners)
      other.state = alone.state
      self.assertEqual(other.is_new_share, num_learners == 2)
    other.resume(30, num_updates, other.is_new_share)
    self.assertEqual(other.num_owed, 0)
    other.add_steps(10)
    self.assertEqual(other.num_owed, 3)
    # And back, with a smaller share than that of the warm-up.
    alone = replay_lib.Rate(0.3, 20)
    alone.state = other.state
    alone.resume(80, num_updates, alone.is_new_share)
    other.state = alone.state
    self.assertTrue(other.is_new_share)
    other.resume(40, num_updates, True)
    other.add_steps(10)
    self.assertEqual(other.num_owed, 3)

  def test_an_older_save_has_no_number_of_learners(self):
    older = replay_lib.Rate(0.3, 20).state
    del older['num_learners']
    for ratio in 0.3, 0.6:
      rate = replay_lib.Rate(ratio, 20, 2)
      rate.state = older
      self.assertEqual(rate.is_new_share, ratio != 0.3)

  @parameterized.parameters('slow actor', 'slow learner')
  def test_the_inbox_holds_actors_back(self, which):
    inbox = queues.BoundedQueue(2)
    rate = replay_lib.Rate(1, 4)
    put = []

    def act():
      try:
        for delivery in _deliveries(1, 2, 1000, []):
          if which == 'slow actor':
            time.sleep(0.002)
          inbox.put(delivery)
          put.append(delivery)
      except queues.QueueClosed:
        pass

    actor = threading.Thread(target=act)
    actor.start()
    source = replay_lib.samples(
        inbox, lambda unroll: None, lambda: structs.Sample(None), rate,
        lambda unroll: None)
    for update in range(1, 31):
      if which == 'slow learner':
        time.sleep(0.002)
      next(source)
      # One unroll of two steps beyond what was due, two that wait.
      self.assertBetween(rate.num_steps, update + 4, update + 5)
      self.assertLessEqual(len(put), rate.num_steps // 2 + 3)
    inbox.close()
    actor.join(10)
    self.assertFalse(actor.is_alive())
    with self.assertRaises(queues.QueueClosed):
      for _ in range(9):
        next(source)

  def test_an_error_passes_through(self):
    inbox = queues.BoundedQueue(2)
    inbox.fail(RuntimeError('environment 3'))
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      next(replay_lib.samples(
          inbox, print, print, replay_lib.Rate(1, 0), print))


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/rate',
         catches='test_a_second_warm_up_owes_nothing', rows=(
        ('warm-up owed',
         'int((self.num_steps - self._first_step) * self._ratio // 1)',
         'int(self.num_steps * self._ratio // 1)'),
    )),
    dict(file='replay/rate',
         catches='test_a_new_ratio_owes_nothing_for_the_past', rows=(
        ('a new ratio is owed for the past',
         'if self._is_new_ratio or is_new_share', 'if is_new_share'),
    )),
    dict(file='replay/rate',
         catches='test_a_new_ratio_does_not_end_the_warm_up', rows=(
        ('a new ratio ends the warm-up',
         '= num_steps + num_left', '= num_steps'),
    )),
)


if __name__ == '__main__':
  absltest.main()
