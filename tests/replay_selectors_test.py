# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of what is drawn, and with which weights."""

import collections
import itertools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.replay import selectors

_NONE = np.zeros([0], np.int64)


class _Items:
  """A store of rings without anything in them."""

  def __init__(self, first, end, length, dead=()):
    self.first, self.end = np.array(first), np.array(end)
    self.num_streams = len(first)
    self.num_slots = self.num_streams * length
    self._length = length
    self._dead = list(dead)

  def slots(self, positions):
    time, stream = np.divmod(positions, self.num_streams)
    return stream * self._length + time % self._length

  def alive(self, positions):
    time, stream = np.divmod(positions, self.num_streams)
    return ((self.first[stream] <= time) & (time < self.end[stream])
            & ~np.isin(positions, self._dead))

  def positions(self, first=None):
    first = self.first if first is None else first
    return np.array([t * self.num_streams + s for s in range(self.num_streams)
                     for t in range(first[s], self.end[s])])


# Streams that have wrapped, that have not, and that are empty.
_ITEMS = lambda: _Items([13, 0, 0, 7], [23, 6, 0, 16], 10)


def check_counts(counts, probabilities):
  """Chi-square: fails for one of 100,000 seeds if the draws are right."""
  expected = np.sum(counts) * np.asarray(probabilities) / np.sum(probabilities)
  np.testing.assert_array_equal(np.asarray(counts)[expected == 0], 0)
  counts, expected = np.asarray(counts)[expected > 0], expected[expected > 0]
  statistic = np.sum((counts - expected) ** 2 / expected)
  freedom = len(expected) - 1
  # Wilson and Hilferty's approximation.
  cube = 1 - 2 / (9 * freedom) + 4.26 * np.sqrt(2 / (9 * freedom))
  assert statistic < freedom * cube ** 3, (statistic, counts, expected)


def _counts(drawn, positions):
  """Returns how often each of `positions` was drawn; there is no other one."""
  counts = [np.sum(drawn == p) for p in positions]
  assert sum(counts) == drawn.size, set(drawn.ravel()) - set(positions)
  return counts


class _Masses:
  """Draws given numbers within [0, 1)."""

  def __init__(self, *masses):
    self._masses = masses

  def random(self, shape):
    return np.reshape(self._masses, shape)


def _filled(items, errors=None, **settings):
  """Returns a `Prioritised` of all items."""
  selector = replay_lib.Prioritised(**settings)
  selector.changed(items, items.positions(), _NONE)
  if errors is not None:
    selector.update(items, items.positions(), np.array(errors))
  return selector


class UniformTest(parameterized.TestCase):

  def test_draws(self):
    items = _ITEMS()
    drawn, weights = replay_lib.Uniform().select(
        items, np.random.default_rng(1), 50, 1000)
    check_counts(_counts(drawn, items.positions()), np.ones(10 + 6 + 9))
    np.testing.assert_array_equal(weights, np.ones([50, 1000], np.float32))

  def test_the_dead_are_not_drawn(self):
    items = _Items([3], [8], 10, dead=[3, 4, 6])
    drawn, _ = replay_lib.Uniform().select(
        items, np.random.default_rng(1), 1, 10000)
    check_counts(_counts(drawn, [5, 7]), [1, 1])

  def test_many_are_dead(self):
    living = [3, 700, 1999]
    items = _Items([0, 5], [1000, 1005], 1000, dead=[
        p for p in range(2 * 1005) if p not in living])
    drawn, _ = replay_lib.Uniform().select(
        items, np.random.default_rng(1), 3, 1000)
    check_counts(_counts(drawn, [700, 1999]), [1, 1])


class PrioritisedTest(parameterized.TestCase):

  def test_known_numbers(self):
    items = _Items([0], [4], 4)
    selector = replay_lib.Prioritised(.9, .6, 1e-12)
    selector.changed(items, np.arange(4), _NONE)
    selector.update(items, np.arange(4), np.array([2, .5, 1, 4.]))
    drawn, weights = selector.select(
        items, np.random.default_rng(0), 1, 20_000)
    check_counts(_counts(drawn, range(4)),
                 [.2710668, .0778435, .1452611, .5058286])
    for position, weight in enumerate([.4730288, 1, .6877709, .3253355]):
      np.testing.assert_allclose(
          weights[drawn == position], weight, rtol=1e-6)

  def test_known_weights(self):
    # N-10.
    items = _Items([0], [4], 4)
    selector = _filled(items, [1, 3, .5, 2], exponent=.6,
                       importance_exponent=.4, epsilon=.01)
    priorities = (np.array([1, 3, .5, 2]) + .01) ** .6
    np.testing.assert_allclose(
        priorities / sum(priorities),
        [.1960634, .3775231, .1301205, .2962929], atol=1e-7)
    drawn = [selector.select(items, _Masses(m), 1, 1)
             for m in (.1, .5, .6, .9)]
    self.assertEqual([p.item() for p, _ in drawn], [0, 1, 2, 3])
    np.testing.assert_allclose(
        [w.item() for _, w in drawn],
        [.8487499, .6530717, 1, .7195315], atol=1e-6)
    # D-9.
    items = _Items([0], [2], 4)
    selector = _filled(items, [1, 3], exponent=1, importance_exponent=.5,
                       epsilon=1e-12)
    drawn, weights = selector.select(items, np.random.default_rng(0), 1, 4)
    np.testing.assert_array_equal(drawn, [[0, 1, 1, 1]])  # Stratified.
    np.testing.assert_allclose(weights, [[1] + [.5773503] * 3], atol=1e-6)
    selector.importance_exponent = 1.0
    _, weights = selector.select(items, np.random.default_rng(0), 1, 4)
    np.testing.assert_allclose(weights, [[1] + [1 / 3] * 3], atol=1e-6)
    self.assertEqual(weights.dtype, np.float32)

  @parameterized.parameters(
      (None, [1., 3], [2., 8, 8, .5]), ([0, 0], [1., 3], [.1, .1]),
      ([1, 2], [9., 1, 2], [7., 7, 3, 4, .5]))
  def test_the_largest_weight_has_the_number_and_the_sum(self, first, *errors):
    for index, of_learner in enumerate(errors):
      items = _Items([0], [len(of_learner)], 8)
      selector = _filled(items, of_learner, exponent=1, importance_exponent=.7,
                         epsilon=1e-12, normalised=False)
      begin = 0 if first is None else first[index]
      positions, weights = selector.select(
          items, np.random.default_rng(0), 1, 50,
          None if first is None else np.array([begin]))
      drawn = np.array(of_learner)[positions[0]]
      shares = drawn / sum(of_learner[begin:])
      number = len(of_learner) - begin
      np.testing.assert_allclose(
          weights[0], (number * shares) ** -.7, rtol=1e-5)
      smallest = min(of_learner) / sum(of_learner[begin:])
      self.assertAlmostEqual(
          selector.largest_weight, (number * smallest) ** -.7, places=5)

  def test_all_draws_from_recent_items_have_one_largest_weight(self):
    errors = np.array([8., 7, 9, 4, 5, 2, 1, 3])
    items = _Items([0], [8], 8)
    selector = _filled(items, errors, exponent=1, importance_exponent=.7,
                       epsilon=1e-12, normalised=False)
    positions, weights = replay_lib.Recent(
        selector, .5 ** .003, min_size=1, round_length=3).select(
            items, np.random.default_rng(3), 3, 5)
    largest = []
    for drawn, weight, number in zip(positions, weights, (8, 4, 2)):
      total = errors[-number:].sum()
      np.testing.assert_allclose(
          weight, (number * errors[drawn] / total) ** -.7, rtol=1e-5)
      largest.append((number / total) ** -.7)  # The smallest error is 1.
    self.assertAlmostEqual(selector.largest_weight, max(largest), places=5)
    selector.largest_weight = 0.0
    selector.select(items, np.random.default_rng(3), 1, 5)
    self.assertAlmostEqual(selector.largest_weight, largest[0], places=5)

  def test_draws_of_items_that_are_used_up_on_the_way(self):
    # Each sequence of four draws of three items, each at most twice.
    expected = {}
    for sequence in itertools.product(range(3), repeat=4):
      left, probability = np.full([3], 2), 1.
      for item in sequence:
        probability *= (left[item] > 0) / np.sum(left > 0)
        left[item] -= 1
      expected[sequence] = probability
    self.assertAlmostEqual(sum(expected.values()), 1)
    rng, num = np.random.default_rng(5), 20_000
    found = collections.Counter()
    items = _Items([0], [3], 3)
    for _ in range(num):
      selector = replay_lib.MaxUse(replay_lib.Uniform(), 2)
      selector.changed(items, items.positions(), _NONE)
      positions, weights = selector.select(items, rng, 2, 2)
      self.assertEqual(positions.shape, (2, 2))
      np.testing.assert_array_equal(weights, np.ones([2, 2], np.float32))
      found[tuple(positions.ravel().tolist())] += 1
    for sequence, probability in expected.items():
      error = np.sqrt(probability * (1 - probability) / num)
      self.assertBetween(found[sequence] / num, probability - 4.5 * error,
                         probability + 4.5 * error)

  def test_all_draws_of_used_up_items_have_one_largest_weight(self):
    errors = np.array([1., 3, 9, 2, 5, 4])
    items = _Items([0], [6], 6)
    inner = replay_lib.Prioritised(1, .7, 1e-12, normalised=False)
    selector = replay_lib.MaxUse(inner, 1)
    for _ in range(2):  # Then the items are replaced.
      selector.changed(items, items.positions(), items.positions()
                       if selector.num_items < 6 else _NONE)
      selector.update(items, items.positions(), errors)
      inner.largest_weight = 0.0
      positions, weights = selector.select(
          items, np.random.default_rng(3), 1, 5)
      left, largest = errors.copy(), []
      for drawn, weight in zip(positions[0], weights[0]):
        mean = left[left > 0].mean()
        self.assertAlmostEqual(weight, (left[drawn] / mean) ** -.7, places=5)
        largest.append((left[left > 0].min() / mean) ** -.7)
        left[drawn] = 0
      self.assertAlmostEqual(inner.largest_weight, max(largest), places=5)

  @parameterized.parameters(0.0, 0.6, 1.0)
  def test_draws(self, exponent):
    items = _ITEMS()
    positions = items.positions()
    errors = np.random.default_rng(7).normal(size=len(positions)) ** 3
    selector = _filled(items, errors, exponent=exponent, epsilon=.02)
    priorities = (np.abs(errors) + .02) ** exponent
    rng = np.random.default_rng(2)
    drawn, weights = selector.select(items, rng, 50000, 1)
    check_counts(_counts(drawn, positions), priorities)
    share = priorities / np.sum(priorities)
    expected = (len(positions) * share) ** -.4
    for p, weight in zip(drawn.ravel()[:200], weights.ravel()):
      self.assertAlmostEqual(
          weight, (expected / max(expected))[positions == p].item(), places=5)
    # In strata, each item is drawn as often as it should be, within one.
    drawn, _ = selector.select(items, rng, 30, 100)
    for batch in drawn:
      counts = np.array(_counts(batch, positions))
      self.assertLess(np.max(np.abs(counts - 100 * share)), 2)

  def test_new_items_have_the_largest_priority_so_far(self):
    items = _Items([0, 0], [3, 0], 5)
    selector = _filled(items, [5.0, .1, .2], exponent=1, epsilon=1e-9)
    selector.update(items, np.array([0]), np.array([.3]))
    items.end[1] = 2
    selector.changed(items, np.array([1, 3]), _NONE)
    drawn, _ = selector.select(items, np.random.default_rng(0), 20000, 1)
    check_counts(_counts(drawn, [0, 2, 4, 1, 3]), [.3, .1, .2, 5, 5])
    # At first it is 1.
    selector = _filled(items, exponent=1, epsilon=1e-9)
    selector.update(items, np.array([0]), np.array([.5]))
    drawn, _ = selector.select(items, np.random.default_rng(0), 20000, 1)
    check_counts(_counts(drawn, [0, 2, 4, 1, 3]), [.5, 1, 1, 1, 1])

  def test_overwritten_items(self):
    items = _Items([0], [4], 4)
    selector = _filled(items, [1, 2, 3, 4], exponent=1, epsilon=1e-9)
    # The items 4 and 5 take the slots of 0 and 1. Slot 2 has no item.
    items.first[:], items.end[:] = 3, 6
    selector.changed(items, np.array([4, 5]), np.array([0, 1, 2]))
    before = selector.state['priorities'].copy()
    np.testing.assert_allclose(before, [4, 4, 0, 4], rtol=1e-6)
    selector.update(items, np.array([0, 2, 1, 6]), np.array([9e9] * 4))
    np.testing.assert_array_equal(selector.state['priorities'], before)
    self.assertAlmostEqual(selector.state['largest'], 4)
    # The last one counts.
    selector.update(items, np.array([[4, 0], [4, 5]]),
                    np.array([[9, 9e9], [1, 2]]))
    drawn, weights = selector.select(
        items, np.random.default_rng(0), 20000, 1)
    check_counts(_counts(drawn, [3, 4, 5]), [4, 1, 2])
    for position, weight in ((3, 4 ** -.4), (4, 1), (5, 2 ** -.4)):
      np.testing.assert_allclose(weights[drawn == position], weight, rtol=1e-6)

  @parameterized.parameters((1., .5), (.5, 1.), (.6, 0.), (0., .6))
  def test_state_of_another_exponent(self, before, after):
    items = _Items([0], [4], 6)
    errors = [1., 2, 3, 4]
    selector = _filled(items, errors, exponent=before, epsilon=1e-9)
    copy = replay_lib.Prioritised(exponent=after, epsilon=1e-9)
    copy.state = selector.state
    expected = _filled(items, errors if before else [1.] * 4, exponent=after,
                       epsilon=1e-9)
    for name, value in expected.state.items():
      np.testing.assert_allclose(copy.state[name], value, rtol=1e-6)

  def test_state(self):
    items = _ITEMS()
    selector = _filled(items, np.arange(25), epsilon=.1)
    copy = replay_lib.Prioritised(epsilon=.1)
    copy.state = {name: np.array(value)
                  for name, value in selector.state.items()}
    for _ in range(2):
      (a, u), (b, v) = [s.select(items, np.random.default_rng(3), 4, 32)
                        for s in (selector, copy)]
      np.testing.assert_array_equal(a, b)
      np.testing.assert_array_equal(u, v)
      for s in (selector, copy):
        s.changed(items, _NONE, np.array([1]))
        s.changed(items, np.array([5]), _NONE)

  def test_rounding_does_not_lead_to_what_is_not_there(self):
    items = _Items([0], [3], 5)
    selector = _filled(items, [.1, .2, .3], exponent=1, epsilon=1e-9)
    positions, _ = selector.select(items, _Masses(1 - 2**-53, 1.0), 2, 1)
    np.testing.assert_array_equal(positions, [[2], [2]])
    selector.changed(items, _NONE, np.array([0]))
    positions, _ = selector.select(items, _Masses(0.0), 1, 1)
    np.testing.assert_array_equal(positions, [[1]])

  @parameterized.parameters(15, 16, 17, 256)
  def test_a_full_tree(self, size):
    items = _Items([0], [size], size)
    selector = replay_lib.Recent(_filled(items), 1, 1, 1)
    positions, _ = selector.select(items, np.random.default_rng(0), 1, size)
    np.testing.assert_array_equal(positions[0], np.arange(size))

  def test_bad_input(self):
    for settings in (dict(exponent=-1), dict(importance_exponent=-.1),
                     dict(epsilon=0)):
      with self.assertRaises(ValueError):
        replay_lib.Prioritised(**settings)
    items = _Items([0], [2], 2)
    with self.assertRaisesRegex(errors.DivergedError, 'not finite'):
      _filled(items, [1, np.nan])


class RecentTest(parameterized.TestCase):

  def test_known_sizes(self):
    # D-9.
    selector = replay_lib.Recent(replay_lib.Uniform(), .996, 5000, 50)
    items = _Items([0], [100000], 100000)
    sizes = []
    for _ in range(51):
      sizes.append(selector.size(100000))
      selector.select(items, np.random.default_rng(0), 1, 1)
    np.testing.assert_allclose(
        [sizes[k] for k in (0, 1, 5, 25, 49, 50)],
        [100000, 92296.83, 66978, 13479, 5000, 100000], atol=.5)
    self.assertEqual(selector.size(3000), 3000)

  @parameterized.product(prioritised=(False, True), k=(0, 1, 2))
  def test_draws(self, prioritised, k):
    items = _ITEMS()
    errors = np.random.default_rng(7).random(25)
    inner = (_filled(items, errors, exponent=1, epsilon=.1) if prioritised
             else replay_lib.Uniform())
    selector = replay_lib.Recent(inner, .5 ** .003, min_size=7, round_length=3)
    rng = np.random.default_rng(3)
    drawn = np.stack([selector.select(items, rng, 3, 400)[0]
                      for _ in range(60)])
    # k = 0: 25 items; 1: 12.5, half of each stream; 2: 7, not 6.25.
    first = [[13, 0, 0, 7], [18, 3, 0, 11], [20, 4, 0, 13]][k]
    positions = items.positions()
    kept = np.isin(positions, items.positions(first))
    priorities = (errors + .1 if prioritised else np.ones(25)) * kept
    self.assertLen(set(drawn[:, k].ravel()), [25, 13, 8][k])
    share = 400 * priorities / sum(priorities)
    counts = np.array(_counts(drawn[:, k], positions))
    if prioritised:  # Strata: they differ less than at random.
      np.testing.assert_allclose(counts / 60, share, atol=.4)
    else:
      check_counts(counts, priorities)

  def test_state(self):
    items = _ITEMS()
    make = lambda: replay_lib.Recent(
        _filled(items, np.arange(25)), .99, 2, 10)
    selector, copy = make(), make()
    selector.select(items, np.random.default_rng(0), 13, 2)
    copy.state = selector.state
    self.assertEqual(copy.size(1000), selector.size(1000))
    self.assertLess(copy.size(1000), 100)

  def test_bad_input(self):
    for settings in (dict(eta=0), dict(eta=1.1), dict(min_size=0),
                     dict(round_length=0)):
      with self.assertRaises(ValueError):
        replay_lib.Recent(replay_lib.Uniform(), **settings)

  def test_all_are_selectors(self):
    for selector in (selectors.Uniform(), replay_lib.Prioritised(),
                     selectors.Recent(selectors.Uniform()),
                     selectors.MaxUse(selectors.Uniform(), 2)):
      found: selectors.Selector = selector
      self.assertIsInstance(found.state, dict)


# See `mutations.py`.
MUTATIONS = (
    dict(file='replay/selectors',
         catches='test_draws_of_items_that_are_used_up_on_the_way', rows=(
             ('used-up items are drawn', 'if not self._num_left[slot]:\n'
              '          continue', 'if False:\n          continue'),
             ('uses do not count', 'self._num_left[slot] -= 1', 'pass'),
         )),
    dict(file='replay/selectors', catches='test_the_dead_are_not_drawn', rows=(
        ('the dead are drawn in the end', 'everything[items.alive(everything)]',
         'everything'),
        ('the dead are drawn',
         'missing = missing[~items.alive(positions[missing])]',
         'missing = missing[:0]'),
    )),
    dict(file='replay/selectors', catches='UniformTest.test_draws', rows=(
        ('the newest item is not drawn', 'rng.integers(ends[-1],',
         'rng.integers(ends[-1] - 1,'),
        ('the first item of the next stream counts to this one',
         "np.searchsorted(ends, item, 'right')",
         "np.searchsorted(ends, item, 'left')"),
    )),
    dict(file='replay/selectors', catches='RecentTest.test_draws', rows=(
        ('recent: all items in all batches',
         'items.end - np.ceil(share * sizes).astype(np.int64)', 'first'),
        ('recent: the oldest instead of the latest',
         'items.end - np.ceil(share * sizes).astype(np.int64)',
         'first + np.ceil(share * sizes).astype(np.int64)'),
        ('recent: rounded down', 'items.end - np.ceil(share',
         'items.end - np.floor(share'),
        ('recent: each round begins with the latest',
         'k = self._num_batches % self._round_length',
         'k = self._round_length - 1 - self._num_batches % self._round_length'),
        ('recent: rounds do not start over',
         'self._num_batches % self._round_length', 'self._num_batches'),
        ('recent: batches not counted', '      self._num_batches += 1\n',
         ''),
    )),
    dict(file='replay/selectors', catches='test_known_sizes', rows=(
        ('recent: smallest size ignored', 'max(size, self._min_size)', 'size'),
    )),
    dict(file='replay/prioritised',
         catches='test_state_of_another_exponent', rows=(
        ('priorities without their exponent', ') ** self._exponent', ') ** 1'),
    )),
    dict(file='replay/prioritised', catches='PrioritisedTest.test_draws', rows=(
        ('priorities raised twice', ') ** self._exponent',
         ') ** self._exponent ** 2'),
        ('epsilon left out', '+ self._epsilon\n',
         '+ 0\n'),
        ('epsilon added to the power',
         '(np.abs(errors.astype(np.float64)) + self._epsilon\n'
         '                  ) ** self._exponent',
         '(np.abs(errors.astype(np.float64)) ** self._exponent\n'
         '                  + self._epsilon)'),
        ('signed errors', 'np.abs(errors.astype(np.float64))',
         'errors.astype(np.float64)'),
        ('draws without strata',
         '(np.arange(batch_size)\n'
         '             + rng.random([num_batches, batch_size])) / batch_size',
         'rng.random([num_batches, batch_size])'),
    )),
    dict(file='replay/prioritised',
         catches='test_the_largest_weight_has_the_number_and_the_sum2', rows=(
        ('largest weight without the number of items',
         'float(number * smallest', 'float(smallest'),
        ('largest weight without the sum of priorities',
         'float(number * smallest / total)', 'float(number * smallest)'),
        ('largest weight of a window from the whole sum',
         'float(total[-1])', 'float(self._sums[-1].sum())'),
    )),
    dict(file='replay/prioritised',
         catches='test_all_draws_from_recent_items_have_one_largest_weight',
         rows=(
        ('largest weight of the last draw', 'max(self.largest_weight, largest)',
         'largest'),
        ('weights divided all the same', 'importance_weights *= largest',
         'pass'),
    )),
    dict(file='replay/prioritised',
         catches='test_all_draws_of_used_up_items_have_one_largest_weight',
         rows=(
        ('items that were used up count',
         'min(self._num_items, np.sum(items.end - first))',
         'np.sum(items.end - first)'),
        ('items that were used up are removed twice',
         'len(added) - int(np.count_nonzero(\n'
         '        self._sums[0].take(items.slots(removed))))',
         'len(added) - len(removed)'),
    )),
    dict(file='replay/prioritised', catches='test_known_weights', rows=(
        ('sign of the exponent of weights',
         'smallest\n                          ) ** -self.importance_exponent',
         'smallest\n                          ) ** self.importance_exponent'),
        ('weights not normalised',
         'self._sums[0].take(slots) / smallest', 'self._sums[0].take(slots)'),
        ('weights normalised by the batch', 'take(slots) / smallest',
         'take(slots) / self._sums[0].take(slots).min()'),
        ('what is not there has the largest weight',
         'np.where(sums > 0, sums, np.inf)', 'sums'),
    )),
    dict(file='replay/prioritised',
         catches='test_new_items_have_the_largest_priority_so_far', rows=(
        ('new items at 1', '[0.0, self._largest], [', '[0.0, 1.0], ['),
        ('the largest priority of now',
         'max(self._largest, float(priorities[alive].max()))',
         'float(priorities[alive].max())'),
        ('rounds of the ring off by one', 'oldest + (slot - oldest) % length',
         'oldest + (slot - oldest - 1) % length'),
    )),
    dict(file='replay/prioritised', catches='test_overwritten_items', rows=(
        ('removed items take their slots along',
         'np.concatenate([removed, added])),\n'
         '              np.repeat([0.0, self._largest], [len(removed), '
         'len(added)]))',
         'np.concatenate([added, removed])),\n'
         '              np.repeat([self._largest, 0.0], [len(added), '
         'len(removed)]))'),
        ('late errors of overwritten items', 'alive = items.alive(positions)\n',
         'alive = np.ones(len(positions), bool)\n'),
        ('items of the round before', 'oldest + (slot - oldest) % length',
         '(slot - oldest) % length'),
    )),
    dict(file='replay/prioritised', catches='RecentTest.test_draws', rows=(
        ('recent: what has wrapped is left out',
         'np.maximum(begin + size - length, 0)', '0 * size'),
    )),
)


if __name__ == '__main__':
  absltest.main()
