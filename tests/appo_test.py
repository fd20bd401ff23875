# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of APPO: its losses, its passes, and acting that waits.

Losses are compared with NumPy, straight from the formulas, and with numbers
that were computed independently in float64.
"""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import impala_test
import normalisers_test
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent import vtrace
from scalable_agent.algorithms import appo
from scalable_agent.algorithms import base
from scalable_agent.algorithms import impala
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import optimizers
from scalable_agent.losses import actor_critic
from scalable_agent.networks import agents
from scalable_agent.networks import distributions
from scalable_agent.networks import factory
from scalable_agent.networks import heads
from scalable_agent.runs import messages
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections
import tensorflow as tf
import tree

# One column of four steps; the episode ends after the third step.
_DISCOUNTS = np.array([[.9], [.9], [0], [.9]])
_REWARDS = np.array([[1.], [0], [-1], [2]])
_VALUES = np.array([[.5], [.4], [-.2], [.3]])
_BOOTSTRAP = np.array([.6])
_LOG_RHOS = np.array([[.2], [-.3], [0], [.5]])


def _targets(log_rhos, lambda_):
  """Returns targets and advantages `[T]` of the column."""
  vs = vtrace.from_importance_weights(
      log_rhos, _DISCOUNTS, _REWARDS, _VALUES, _BOOTSTRAP, lambda_=lambda_,
      dtype=tf.float64).vs
  advantages = actor_critic.compute_advantages(
      *map(tf.constant, (_REWARDS, _DISCOUNTS, _VALUES, _BOOTSTRAP)), vs,
      lambda_)
  return vs.numpy()[:, 0], advantages.numpy()[:, 0]


class LossesTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters(
      ((.55, .25, .2), 1, -1.1, (-.495, .275, .22)),
      ((.65, .2, .15), 1, -1.2, (0, 0, 0)),
      ((.65, .2, .15), -1, 1.3, (.455, -.26, -.195)),
      ((.35, .4, .25), -1, .8, (0, 0, 0)),
      ((.35, .4, .25), 1, -.7, (-.455, .28, .175)),
      # Not clipped yet: the lower limit is .8, not 1 / 1.2.
      ((.41, .39, .2), -1, .82, (.4838, -.3198, -.164)))
  def test_surrogate(self, pi, advantage, loss, gradient):
    logits = tf.Variable(np.log([[pi]]))
    with tf.GradientTape() as tape:
      log_rhos = distributions.categorical(logits).log_prob([[0]]) - np.log(.5)
      found = actor_critic.compute_clipped_surrogate_loss(
          log_rhos, tf.constant([[advantage]], tf.float64), .2)
    self.assertAllClose(found, loss)
    self.assertAllClose(tape.gradient(found, logits)[0, 0], gradient)

  @parameterized.parameters(range(20))
  def test_gradients_vanish_only_where_the_clip_asks(self, seed):
    rng = np.random.default_rng(seed)
    log_rho = tf.Variable(rng.normal(0, .5, [50, 1]))
    advantages, limit = rng.normal(size=[50, 1]), rng.uniform(.05, .5)
    with tf.GradientTape() as tape:
      loss = actor_critic.compute_clipped_surrogate_loss(
          log_rho, tf.constant(advantages), limit)
    rho = np.exp(log_rho.numpy())
    is_clipped = np.where(advantages > 0, rho > 1 + limit, rho < 1 - limit)
    self.assertAllClose(tape.gradient(loss, log_rho),
                        np.where(is_clipped, 0, -rho * advantages))
    self.assertAllClose(is_clipped.mean(), actor_critic.clipped_share(
        log_rho, tf.constant(advantages), limit))

  @parameterized.parameters(
      (.95, [.5593829, -.5363942, -1, 2.54], [.0593829, -1.264, -.8, 2.24]),
      (1., [.4932427, -.5630637, -1, 2.54], [-.0067573, -1.3, -.8, 2.24]))
  def test_advantages(self, lambda_, vs, advantages):
    found = _targets(_LOG_RHOS, lambda_)
    self.assertAllClose(found[0], vs)
    self.assertAllClose(found[1], advantages)

  @parameterized.parameters(
      (.95, [.27928, -.864, -1, 2.54], [-.22072, -1.264, -.8, 2.24]),
      (1., None, [-.31, -1.3, -.8, 2.24]))
  def test_on_policy_advantages_are_generalised(self, lambda_, vs, advantages):
    found = _targets(np.zeros([4, 1]), lambda_)
    if vs:
      self.assertAllClose(found[0], vs)
    self.assertAllClose(found[1], advantages)
    delta = (_REWARDS + _DISCOUNTS * np.append(
        _VALUES[1:], [_BOOTSTRAP], axis=0) - _VALUES)[:, 0]
    total, expected = 0., []
    for t in reversed(range(4)):
      total = delta[t] + _DISCOUNTS[t, 0] * lambda_ * total
      expected.append(total)
    self.assertAllClose(found[1], expected[::-1])

  @parameterized.parameters((.1, -.5917212), (.2, -.9480595))
  def test_surrogate_of_off_policy_steps(self, limit, total):
    _, advantages = _targets(_LOG_RHOS, .95)
    log_rhos = tf.Variable(_LOG_RHOS)
    advantages = tf.constant(advantages[:, np.newaxis])
    with tf.GradientTape() as tape:
      loss = actor_critic.compute_clipped_surrogate_loss(
          log_rhos, advantages, limit)
    self.assertAllClose(loss, total)
    self.assertAllClose(-tape.gradient(loss, log_rhos)[:, 0], [0, 0, -.8, 0])
    self.assertAllClose(
        actor_critic.clipped_share(log_rhos, advantages, limit), .75)

  def test_numbers_after_an_end_have_no_effect(self):
    values = np.array([[.5], [np.nan]], np.float32)
    found = actor_critic.compute_advantages(
        *map(tf.constant, (np.float32([[1], [0]]), np.float32([[0], [0]]),
                           values, np.float32([np.inf]), values)), 1.)
    self.assertAllClose(found[0], [.5])

  def test_normalised_advantages(self):
    found = actor_critic.normalise(
        tf.constant([[.0172452], [-1.3], [-.8], [2.24]]))
    self.assertAllClose(
        found[:, 0], [-.0162876, -.9885821, -.6195185, 1.6243882])
    self.assertAllClose(actor_critic.normalise(tf.constant([[3.]])), [[0.]])
    self.assertAllClose(
        actor_critic.normalise(tf.constant([[2., 2.]])), [[0., 0.]])

  @parameterized.parameters(1., 100.)
  def test_clipped_errors(self, scale):
    old, new, targets = scale * np.array(
        [[0, 0, 1, -1], [.5, -.1, .7, -.9], [1, 1, 1, -2]])
    values = tf.Variable(new)
    with tf.GradientTape() as tape:
      errors = actor_critic.clip_errors(
          targets - values, tf.constant(targets), values, tf.constant(old),
          .2 * scale) / scale
      loss = actor_critic.compute_baseline_loss(errors)
    self.assertAllClose(.5 * errors**2, [.32, .605, .045, .605])
    self.assertAllClose(loss, 1.575)
    self.assertAllClose(
        scale * tape.gradient(loss, values), [0, -1.1, -.3, 1.1])


def _settings(**settings):
  settings = dict(
      discounting=.9, baseline_cost=.7, entropy_cost=.02,
      reward_clipping='abs_one', lambda_=1., clip_ratio=.3) | settings
  return sections.ImpalaSettings(algorithm='appo', **settings)


def _gradients(algorithm, batch):
  with tf.GradientTape() as tape:
    loss = algorithm.loss(batch, None, ['agent'], tf.constant([0, 0]))
  return loss, tape.gradient(loss.by_group['agent'], algorithm.groups['agent'])


class TargetPolicyTest(parameterized.TestCase, tf.test.TestCase):
  """The clip about an older copy of the policy, as in IMPACT."""

  def test_weights_of_the_behaviour_are_cut(self):
    mu = np.array([.5, .2, .4, .1])
    pi = np.array([.6, .3, .5, .04])
    advantages = tf.constant([1., -1, .5, -2], tf.float64)
    for last, ratios in ((.05, [1.5, .75, 1.25, .8]),
                         (.03, [1.5, .75, 1.25, .8])):
      target = np.array([.4, .4, .4, last])
      log_rhos = actor_critic.about_target(
          tf.constant(np.log(pi / mu)), tf.constant(np.log(pi / target)), 2.)
      self.assertAllClose(tf.exp(log_rhos), ratios)
      self.assertAllClose(actor_critic.compute_clipped_surrogate_loss(
          log_rhos, advantages, .4) / 4, .08125)

  @parameterized.parameters(range(3))
  def test_loss_and_gradients_are_those_of_the_formula(self, seed):
    agent, batch = impala_test._random_case(seed)
    rng = np.random.default_rng(seed)
    mu_logits = batch.steps.agent_outputs.policy.numpy()[1:]
    old_logits = (mu_logits + rng.normal(size=mu_logits.shape)).astype('f')
    target = mock.Mock(variables=[], of=lambda data: heads.policy_of(
        agent.head, tf.constant(old_logits)))
    settings = _settings(kl_cost=.3, baseline_cost=0., entropy_cost=0.)
    loss, [found, _] = _gradients(
        appo.Appo(agent, settings, .5, target, True), batch)
    # Targets and advantages are those of `pi` and `mu`.
    seen = base.evaluate(agent, batch, .9, 'abs_one')
    vs = vtrace.from_importance_weights(
        seen.log_rhos, seen.discounts, seen.rewards, seen.baseline,
        seen.bootstrap_value).vs
    advantages = actor_critic.compute_advantages(
        seen.rewards, seen.discounts, seen.baseline, seen.bootstrap_value, vs,
        1.).numpy().astype('d')
    pi, mu, old = (impala_test._softmax(x.astype('d')) for x in (
        agent.logits.numpy()[:-1], mu_logits, old_logits))
    one_hot = np.eye(3)[batch.steps.agent_outputs.action.numpy()[1:]]
    taken = lambda p: (p * one_hot).sum(-1)
    rho = np.minimum(taken(mu) / taken(old), 2) * taken(pi) / taken(mu)
    policy_loss = -np.minimum(
        rho * advantages, np.clip(rho, .7, 1.3) * advantages).sum()
    kl = (old * np.log(old / pi)).sum(-1)
    self.assertAllClose(loss.sums['policy_loss'], .5 * policy_loss, rtol=1e-4)
    self.assertAllClose(loss.sums['kl_loss'], .5 * kl.sum(), rtol=1e-4)
    self.assertAllClose(loss.means['policy_kl'], kl.mean(), rtol=1e-4)
    is_clipped = np.where(advantages > 0, rho > 1.3, rho < .7)
    self.assertAllClose(loss.means['clipped'], is_clipped.mean())
    weight = np.where(is_clipped, 0, rho * advantages)[..., np.newaxis]
    self.assertAllClose(
        found[:-1], .5 * (-weight * (one_hot - pi) + .3 * (pi - old)),
        atol=2e-4, rtol=1e-3)

  @parameterized.parameters(False, True)
  @eager.eagerly()
  def test_copies_have_the_statistics_of_their_weights(self, use_lstm):
    learner = normalisers_test._learner(
        algorithm='appo', target_policy_period=3, learning_rate=.01,
        **dict(use_lstm=True, lstm_units=8) if use_lstm else {})
    state = (np.zeros([3, 8], 'f'),) * 2 if use_lstm else ()
    for index in range(7):
      before = [v.numpy() for v in learner.algorithm.targets]
      unroll = normalisers_test._unroll(index, slope=3., offset=5.)
      learned = normalisers_test._step(learner, unroll._replace(
          start=unroll.start._replace(agent_state=state)))
      kl = float(learned.scalars['policy_kl'])
      # Exactly zero after a copy; the first update only sets statistics.
      if index in (0, 1, 3, 6):
        self.assertEqual(kl, 0, index)
      else:
        self.assertGreater(kl, 1e-6, index)
      is_copy = index in (0, 2, 5)
      for one, old, online in zip(
          learner.algorithm.targets, before, learner.agent.variables,
          strict=True):
        self.assertAllEqual(one, online if is_copy else old)
    self.assertEqual(learner.state['targets'], learner.algorithm.targets)

  def test_calls_that_do_not_end_with_a_period_copy_too(self):
    learner = normalisers_test._learner(
        algorithm='appo', batch_size=1, num_actors=4, updates_per_call=2,
        target_policy_period=4, normalise_observations='none',
        normalise_returns=False)
    learner.num_updates = 1  # Of a run with --updates_per_call=1.
    update = mock.Mock(return_value=learner_lib.Learned({}, None))
    copies = []
    with mock.patch.dict(learner._compiled_updates, {True: update}), \
        mock.patch.object(
            learner._target_policy, 'follow',
            side_effect=lambda _: copies.append(learner.num_updates)):
      for _ in range(6):
        learner.step(structs.Batch((), None, 0))
    self.assertEqual(copies, [5, 9, 13])


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


class AppoTest(parameterized.TestCase, tf.test.TestCase):

  def test_on_policy_the_gradient_is_that_of_impala(self):
    agent, batch = impala_test._random_case(1, on_policy=True)
    loss, found = _gradients(appo.Appo(agent, _settings()), batch)
    _, expected = _gradients(impala.Impala(agent, sections.ImpalaSettings(
        discounting=.9, baseline_cost=.7, entropy_cost=.02,
        reward_clipping='abs_one')), batch)
    for one, two in zip(found, expected, strict=True):
      self.assertAllClose(one, two, atol=1e-5)
    for name in ('clipped', 'mean_log_rho', 'kl'):
      self.assertEqual(float(loss.means[name]), 0, name)

  @parameterized.product(
      lambda_=(1., .8), kl_cost=(0., .3), clip_value=(0., .2),
      normalise_advantages=(False, True))
  def test_loss_and_gradients_are_those_of_the_formula(
      self, lambda_, kl_cost, clip_value, normalise_advantages):
    agent, batch = impala_test._random_case(2)
    loss, found = _gradients(appo.Appo(agent, _settings(
        lambda_=lambda_, kl_cost=kl_cost, clip_value=clip_value,
        normalise_advantages=normalise_advantages), .5), batch)
    t, b, a = impala_test._T, impala_test._B, impala_test._A
    steps = tree.map_structure(
        lambda x: x.numpy().astype('d'), batch.steps._replace(
            env_outputs=batch.steps.env_outputs._replace(
                info=(), observation=())))
    values, logits = agent.baseline.numpy(), agent.logits.numpy()[:-1]
    rewards = (np.clip(steps.env_outputs.reward[1:], -1, 1)
               + .9 * steps.truncation_values[1:])
    discounts = .9 * (1 - steps.env_outputs.done[1:])
    old = steps.agent_outputs.baseline[1:]
    pi = impala_test._softmax(logits.astype('d'))
    mu = impala_test._softmax(steps.agent_outputs.policy[1:])
    one_hot = np.eye(a)[steps.agent_outputs.action[1:].astype(int)]
    rho = (pi * one_hot).sum(-1) / (mu * one_hot).sum(-1)
    vs = np.concatenate([np.zeros([t, b]), values[-1:]])
    for s in reversed(range(t)):
      delta = rewards[s] + discounts[s] * values[s + 1] - values[s]
      vs[s] = values[s] + np.minimum(1, rho[s]) * delta + (
          discounts[s] * lambda_ * np.minimum(1, rho[s])
          * (vs[s + 1] - values[s + 1]))
    advantages = rewards + discounts * (
        (1 - lambda_) * values[1:] + lambda_ * vs[1:]) - values[:-1]
    if normalise_advantages:
      advantages = (advantages - advantages.mean()) / advantages.std()
    errors = vs[:-1] - values[:-1]
    slope = errors
    if clip_value:
      far = vs[:-1] - old - np.clip(values[:-1] - old, -clip_value, clip_value)
      is_far = np.abs(far) > np.abs(errors)
      inside = np.abs(values[:-1] - old) < clip_value
      slope = np.where(is_far, far * inside, errors)
      errors = np.where(is_far, far, errors)
    entropy = -(pi * np.log(pi)).sum(-1, keepdims=True)
    policy_loss = -np.minimum(
        rho * advantages, np.clip(rho, .7, 1.3) * advantages).sum()
    kl = (mu * np.log(mu / pi)).sum()
    total = (policy_loss + .35 * (errors**2).sum() - .02 * entropy.sum()
             + kl_cost * kl)
    self.assertAllClose(loss.sums['policy_loss'], .5 * policy_loss, rtol=1e-4)
    self.assertAllClose(loss.sums['total_loss'], .5 * total, rtol=1e-4)
    is_clipped = np.where(advantages > 0, rho > 1.3, rho < .7)
    weight = np.where(is_clipped, 0, rho * advantages)[..., np.newaxis]
    expected = (-weight * (one_hot - pi)
                + .02 * pi * (np.log(pi) + entropy) + kl_cost * (pi - mu))
    self.assertAllClose(found[0][:-1], .5 * expected, atol=2e-4, rtol=1e-3)
    self.assertAllClose(found[0][-1], np.zeros([b, a]))
    self.assertAllClose(found[1][:-1], -.5 * .7 * slope, atol=1e-4)
    self.assertAllClose(found[1][-1], np.zeros([b]))
    self.assertAllClose(loss.means['kl'], (rho - 1 - np.log(rho)).mean(),
                        rtol=1e-3)
    self.assertAllClose(loss.means['mean_log_rho'], np.log(rho).mean(),
                        rtol=1e-4)

  def test_huge_weights_stay_finite(self):
    agent, batch = impala_test._random_case(3)
    outputs = batch.steps.agent_outputs
    batch = batch._replace(steps=batch.steps._replace(
        agent_outputs=outputs._replace(policy=50 * outputs.policy)))
    _, gradients = _gradients(appo.Appo(agent, _settings()), batch)
    for gradient in gradients:
      self.assertTrue(np.isfinite(gradient.numpy()).all())

  def test_order_of_columns_does_not_matter(self):
    agent, batch = impala_test._random_case(4)
    loss, _ = _gradients(appo.Appo(agent, _settings()), batch)
    order = [2, 0, 3, 1]
    move = lambda x: tf.gather(x, order, axis=1)
    agent.logits.assign(move(agent.logits))
    agent.baseline.assign(move(agent.baseline))
    other, _ = _gradients(appo.Appo(agent, _settings()), batch._replace(
        steps=tree.map_structure(move, batch.steps)))
    for name, value in loss.sums.items():
      self.assertAllClose(value, other.sums[name], rtol=1e-4)


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


_DEFAULTS = dict(
    batch_size=1, unrolls_per_collect=4, passes=4, unroll_length=64,
    num_actor_groups=2, learning_rate=.00025, learning_rate_schedule='linear',
    optimizer='adam', epsilon=1e-5, clip_gradient_norm=.5, reduction='mean',
    lambda_=.95, discounting=.99, entropy_cost=-1, baseline_cost=.5,
    reward_clipping='none', bootstrap_truncated=True, squash_actions=False,
    use_lstm=False, use_last_action_reward=False, hidden_sizes='64,64',
    normalise_observations='auto', normalise_returns=True, clip_ratio=.2,
    clip_value=0., kl_cost=0., normalise_advantages=False, test_greedy=False,
    scale_from_state=False, overlap=False, is_off_policy=False,
    takes_turns=True, updates_per_step=None, replay_capacity=0,
    target_policy_period=0, learning_rate_kl=.008)


class SettingsTest(parameterized.TestCase):

  def test_defaults(self):
    config = config_lib.Config(algorithm='appo', level_name='CartPole-v1')
    self.assertEqual(
        {name: getattr(config, name) for name in _DEFAULTS}, _DEFAULTS)
    atari = config_lib.Config(algorithm='appo', level_name='ALE/Pong-v5')
    self.assertEqual(
        (atari.clip_ratio, atari.reward_clipping, atari.unroll_length),
        (.1, 'abs_one', 64))

  def test_defaults_by_memory_and_actions(self):
    for settings, passes in ((dict(use_lstm=True), 2), (
        dict(use_lstm=True, passes=5), 5), (dict(use_lstm=False), 4)):
      self.assertEqual(
          config_lib.Config(algorithm='appo', **settings).passes, passes)
    cost = lambda actions, **settings: appo.entropy_cost(
        sections.ImpalaSettings(algorithm='appo', **settings), actions)
    discrete, continuous = structs.ActionSpec((3,)), structs.ActionSpec(size=2)
    self.assertEqual([cost(discrete), cost(continuous)], [.01, 0])
    for actions in (discrete, continuous):
      self.assertEqual(cost(actions, entropy_cost=.3), .3)

  def test_lines_at_the_start(self):
    lines = lambda actions, **settings: list(messages._about_appo(
        config_lib.Config(num_actors=16, **settings), actions))
    self.assertEmpty(lines(structs.ActionSpec(size=2)))
    [cost] = lines(structs.ActionSpec(size=2), algorithm='appo')
    self.assertEqual(cost,
                     'Chosen: --entropy_cost=0 for continuous actions.')
    [few] = lines(structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
                  unroll_length=8)
    self.assertIn('An update has 32 steps', few)
    [norm] = lines(structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
                   reduction='sum')
    self.assertIn('--reduction=sum are 256 times as large', norm)
    self.assertEmpty(lines(
        structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
        reduction='sum', clip_gradient_norm=0))

  def test_a_rate_by_kl_is_kept_with_a_word(self):
    make = lambda rate, schedule: config_lib.Config(
        algorithm='appo', learning_rate=rate, learning_rate_schedule=schedule)
    self.assertIn('--learning_rate=0.002 has no effect', messages._rate_kept(
        make(.001, 'kl'), make(.002, 'kl')))
    for before, after in (
        (make(.001, 'kl'), make(.001, 'kl')),
        (make(.001, 'kl'), make(.002, 'linear')),
        (make(.001, 'linear'), make(.002, 'linear'))):
      self.assertEqual(messages._rate_kept(before, after), '')

  @parameterized.parameters(
      (dict(num_actors=16), 16, 4), (dict(num_actors=10), 10, 2),
      (dict(num_actors=7), 7, 1), (dict(num_actors=14), 14, 2),
      (dict(num_actors=8, batch_size=8), 8, 8),
      (dict(num_actors=4, unrolls_per_collect=24), 24, 6),
      (dict(num_actors=16, num_learners=2, num_actor_workers=2,
            ray_address='local'), 16, 4),
      (dict(num_actors=4, num_learners=2, num_actor_workers=2,
            ray_address='local'), 4, 2))
  def test_sizes(self, settings, collection, batch):
    config = config_lib.Config(algorithm='appo', **settings)
    self.assertEqual((config.unrolls_per_collect, config.batch_size),
                     (collection, batch))
    saved = config_lib.Config.from_saved(vars(config))
    self.assertEqual(saved, config)
    if config.num_learners > 1:
      part = config.of_learner(config.num_actors // 2)
      self.assertEqual((part.unrolls_per_collect, part.batch_size),
                       (collection // 2, batch // 2))

  def test_batches_that_do_not_come_out_even(self):
    with self.assertRaisesRegex(errors.ConfigError, 'must be a multiple of'):
      config_lib.Config(algorithm='appo', num_actors=8, batch_size=3)

  @parameterized.parameters(
      (dict(normalise_advantages=True, micro_batch_size=1, batch_size=2),
       'whole batch at once'),
      (dict(normalise_advantages=True, num_learners=2, num_actors=8,
            ray_address='local'), 'whole batch at once'),
      (dict(replay_capacity=8), 'at least 1 with --replay_capacity'),
      (dict(replay_capacity=8, target_policy_period=1, unrolls_per_collect=4),
       'cannot be used with --replay_capacity'),
      (dict(replay_capacity=8, target_policy_period=4,
            learning_rate_schedule='kl'), 'the rate would rise'),
      (dict(target_policy_period=1, learning_rate_schedule='kl'),
       'the rate would rise'),
      *[(dict(updates_per_call=number, num_actors=12, batch_size=2, passes=4)
         | settings, 'must divide the updates of all --passes')
        for number, settings in (
            (5, {}), (4, {}), (48, {}), (6, dict(target_policy_period=4)),
            (6, dict(micro_batch_size=1)),
            (2, dict(replay_capacity=8, target_policy_period=2)))],
      (dict(algorithm='impala', learning_rate_schedule='kl'),
       'needs --algorithm=appo'))
  def test_refusals(self, settings, text):
    with self.assertRaisesRegex(errors.ConfigError, text):
      config_lib.Config(**dict(algorithm='appo') | settings)

  @parameterized.parameters(
      ({}, 24), (dict(passes=8), 24), (dict(passes=5), 30), (dict(passes=1), 6),
      (dict(batch_size=12, passes=33), 11), (dict(target_policy_period=4), 2),
      (dict(micro_batch_size=1), 1), (dict(overlap=True), 1),
      (dict(use_lstm=True), 1), (dict(agent='nature'), 1),
      (dict(addon='module:function'), 24), (dict(updates_per_call=3), 3),
      (dict(updates_per_call=3, num_learners=2, ray_address='local'), 3),
      (dict(updates_per_call=2, agent='nature', xla='all', batch_size=6), 2))
  def test_updates_per_call(self, settings, number):
    config = config_lib.Config(**dict(
        algorithm='appo', num_actors=12, batch_size=2, passes=4) | settings)
    resolved = config.resolved(
        structs.ArraySpec((3,), np.dtype(np.float32)), on_cpu=True,
        num_groups=1)
    self.assertEqual(resolved.updates_per_call, number)
    self.assertEqual(
        resolved.xla, 'all' if number > 1 and not config.addon else (
            'policy' if config.agent == 'auto' else 'none'))

  def test_waiting(self):
    turns = lambda **settings: config_lib.Config(
        algorithm='appo', **settings).takes_turns
    self.assertFalse(turns(overlap=True))
    self.assertFalse(turns(ray_address='local'))
    self.assertFalse(config_lib.Config().takes_turns)
    self.assertEqual(
        [training.num_threads_per_op(config_lib.Config(
            algorithm='appo', overlap=overlap), 2) for overlap in (False, True)
         ], [0, 1])


_SPEC = structs.EnvironmentSpec(
    structs.ArraySpec((3,), np.dtype(np.float32)), structs.ActionSpec(size=2),
    1)


def _outputs_and_variables(agent, x):
  """Returns outputs, and the variables of policy and of baseline."""
  shape = x.shape[:2]
  with tf.GradientTape(persistent=True) as tape:
    outputs, _ = agent.unroll(
        tf.zeros([*shape, *agent.action_spec.array.shape]), structs.StepOutput(
            tf.zeros(shape), structs.NO_INFO, tf.zeros(shape, tf.bool),
            tf.constant(x)), agent.initial_state(shape[1]))
    sums = [tf.reduce_sum(tf.sin(y))
            for y in (outputs.policy, outputs.baseline)]
  variables = agent.trainable_variables
  return outputs, *([
      v for v, g in zip(variables, tape.gradient(y, variables), strict=True)
      if g is not None] for y in sums)


def _forward(weights, x):
  """Returns dense layers of tanh, the last one linear, in NumPy."""
  *hidden, last = zip(weights[::2], weights[1::2], strict=True)
  for kernel, bias in hidden:
    x = np.tanh(x @ kernel.numpy() + bias.numpy())
  return x @ last[0].numpy() + last[1].numpy()


class AgentTest(parameterized.TestCase, tf.test.TestCase):

  def _agent(self, **settings):
    config = config_lib.Config(
        algorithm='appo', level_name='Pendulum-v1', **settings).resolved(
            _SPEC.observation, on_cpu=True, num_groups=1)
    return algorithms.make_agent(config, _SPEC, 1), config

  def _params(self, agent: agents.Agent):
    observations = np.random.default_rng(1).normal(size=[5, 3]).astype('f')
    return agent.params(observations).numpy()

  def test_deviations_do_not_depend_on_the_state(self):
    agent, config = self._agent(initial_scale=.5)
    params = self._params(agent)
    self.assertAllClose(params[:, 2:], np.full([5, 2], np.log(.5)))
    self.assertLess(np.abs(params[:, :2]).max(), .05)  # Small at first.
    self.assertGreater(np.std(params[:, 0]), 0)
    other, other_config = self._agent(scale_from_state=True)
    self.assertGreater(np.std(self._params(other)[:, 2]), 0)
    self.assertNotEqual(algorithms.describe(config, _SPEC),
                        algorithms.describe(other_config, _SPEC))

  @parameterized.parameters(False, True)
  def test_a_separate_baseline_shares_no_layer(self, normalise_returns):
    agent, config = self._agent(
        separate_baseline=True, hidden_sizes='7,5', normalise_returns=(
            normalise_returns), normalise_observations='none')
    self.assertNotEqual(
        algorithms.describe(config, _SPEC),
        algorithms.describe(self._agent(
            hidden_sizes='7,5', normalise_returns=normalise_returns,
            normalise_observations='none')[1], _SPEC))
    rng = np.random.default_rng(1)
    for variable in agent.trainable_variables:
      variable.assign(rng.normal(size=variable.shape))
    x = rng.normal(size=[2, 4, 3]).astype('f')
    outputs, policy, baseline = _outputs_and_variables(agent, x)
    *hidden, log_scale, kernel, bias = policy
    self.assertEqual(log_scale.shape, [2])
    self.assertEqual([v.shape for v in [*hidden, kernel, bias]],
                     [(3, 7), (7,), (7, 5), (5,), (5, 2), (2,)])
    self.assertEqual([v.shape for v in baseline],
                     [(5, 1), (1,), (3, 7), (7,), (7, 5), (5,)])
    self.assertAllClose(
        outputs.policy[..., :2], _forward([*hidden, kernel, bias], x), 1e-5)
    self.assertAllClose(
        outputs.baseline,
        _forward([*baseline[2:], *baseline[:2]], x)[..., 0], 1e-5)
    self.assertLen({id(v) for v in [*policy, *baseline]},
                   len(agent.trainable_variables))

  def test_a_separate_baseline_shares_convolutions(self):
    spec = structs.ArraySpec((72, 96, 3), np.dtype(np.uint8))
    agent = factory.make_agent(
        'shallow', spec, structs.ActionSpec((3,)), use_lstm=False,
        use_last_action_reward=False, separate_baseline=True, seed=1)
    x = np.random.default_rng(1).integers(0, 256, [2, 1, 72, 96, 3], np.uint8)
    _, policy, baseline = _outputs_and_variables(agent, x)
    shared = {id(v) for v in policy} & {id(v) for v in baseline}
    torso = [v for v in agent.trainable_variables if id(v) in shared]
    self.assertEqual([v.shape for v in torso[::2]],
                     [(8, 8, 3, 16), (4, 4, 16, 32), (2240, 256)])
    self.assertLen(policy, 12)
    self.assertLen(baseline, 12)

  def test_agents_of_impala_are_exchangeable(self):
    _, config = self._agent()
    same = config_lib.Config(
        level_name='Pendulum-v1', agent='mlp', use_lstm=False,
        use_last_action_reward=False, squash_actions=False, optimizer='adam',
        normalise_observations='auto', normalise_returns=True,
        scale_from_state=False)
    self.assertEqual(algorithms.describe(config, _SPEC),
                     algorithms.describe(same, _SPEC))

  def test_default_networks_do_not_change(self):
    make = lambda **settings: factory.make_agent(
        'mlp', _SPEC.observation, _SPEC.action, seed=1, **settings)
    for one, two in zip(make().variables, make(
        policy_scale=1., scale_from_state=True).variables, strict=True):
      self.assertAllEqual(one, two)


_TRAINING = dict(
    algorithm='appo', level_name='catch', agent='mlp', num_actors=6,
    num_actor_groups=2, unroll_length=5, batch_size=3, passes=3,
    learning_rate=.01, total_environment_frames=150, seed=2, xla='none',
    updates_per_call=1)


class TrainingTest(parameterized.TestCase):

  def _train(self, **settings):
    """Trains; returns scalars and frames of each update, and the learner."""
    updates, learners = [], []

    def hook(update):
      learners.append(update.learner)
      updates.append({name: float(value) for name, value
                      in update.scalars.items()} | {
                          'frames': update.learner.num_env_frames,
                          'longest': max(update.lags, default=0)})

    logdir = self.create_tempdir().full_path
    training.train(config_lib.Config(
        **_TRAINING | dict(logdir=logdir) | settings), hooks=[hook])
    return updates, learners[-1]

  def test_acting_waits_and_passes_count_once(self):
    updates, learner = self._train()
    self.assertLen(updates, 5 * 3 * 2)
    self.assertEqual([u['frames'] for u in updates],
                     [30 * (i // 6 + (i % 6 == 5)) for i in range(30)])
    # Actors have the weights and the statistics of the collection's begin.
    for index in range(0, 30, 6):
      self.assertLess(abs(updates[index]['mean_log_rho']), 1e-6)
      self.assertEqual(updates[index]['clipped'], 0)
      self.assertLess(abs(updates[index]['kl']), 1e-6)
    for index in range(11, 30, 6):  # The stored parameters count.
      self.assertGreater(updates[index]['kl'], 1e-6)
    self.assertEqual(max(u['longest'] for u in updates), 5)
    [part] = learner.agent.observation_normaliser.statistics.values()
    self.assertEqual(float(part.count), 150)
    self.assertEqual(float(learner.agent.returns.statistics.count), 5)

  def test_a_call_makes_the_same_updates(self):
    self._check_calls(6, target_policy_period=6)

  @parameterized.parameters(
      (6, dict(target_policy_period=6, xla='all')),
      (3, dict(passes=1, batch_size=2, learning_rate_schedule='kl',
               learning_rate_kl=1e-5)))
  @pytest.mark.storm
  def test_a_call_makes_the_same_updates_too(self, number, settings):
    self._check_calls(number, total_environment_frames=150, **settings)

  def _check_calls(self, number, **settings):
    settings = dict(deterministic=True, num_actor_groups=1,
                    total_environment_frames=90) | settings
    alone, learner = self._train(**settings | (
        dict(xla='policy') if 'xla' in settings else {}))
    calls, of_calls = self._train(updates_per_call=number, **settings)
    self.assertLen(calls, len(alone) // number)
    self.assertEqual(of_calls.num_updates, learner.num_updates)
    for one, two in zip(tree.flatten(learner.state),
                        tree.flatten(of_calls.state), strict=True):
      np.testing.assert_allclose(one.numpy(), two.numpy(), 1e-4, 1e-5)
    for index, call in enumerate(calls):
      of_call = alone[number * index:number * (index + 1)]
      self.assertEqual(call['frames'], of_call[-1]['frames'])
      for name in 'total_loss', 'kl', 'clipped', 'gradient_norm':
        np.testing.assert_allclose(
            call[name], np.mean([u[name] for u in of_call]), 1e-4, 1e-5)

  def test_rates_fall_with_frames(self):
    updates, _ = self._train()  # In each of three passes.
    np.testing.assert_allclose(
        sorted({u['learning_rate'] for u in updates}, reverse=True),
        [.01 * (1 - i / 5) for i in (0, 1, 2, 3, 4)], rtol=1e-5)

  @pytest.mark.storm
  def test_runs_can_be_repeated(self):
    settings = dict(deterministic=True, num_actor_groups=1, xla='all',
                    save_checkpoint_frames=60, updates_per_call=6)
    (_, one), (_, two) = [self._train(**settings) for _ in range(2)]
    for a, b in zip(tree.flatten(one.state), tree.flatten(two.state),
                    strict=True):
      np.testing.assert_array_equal(a.numpy(), b.numpy())

  @pytest.mark.storm
  def test_a_run_that_ends_between_passes_is_resumed(self):
    self._check_resumed(20, learning_rate_schedule='kl', learning_rate_kl=1e-5,
                        target_policy_period=4)

  @pytest.mark.storm
  def test_a_run_that_ends_before_the_last_pass_is_resumed(self):
    self._check_resumed(23)

  def _check_resumed(self, number, **settings):
    settings |= dict(deterministic=True, num_actor_groups=1,
                     save_checkpoint_frames=60)
    _, whole = self._train(**settings)
    logdir = self.create_tempdir().full_path

    def end(update):
      if update.learner.num_updates == number:  # Six make a collection.
        raise errors.EnvironmentValueError('The end.')

    with self.assertRaisesRegex(errors.EnvironmentValueError, 'The end'):
      training.train(config_lib.Config(
          logdir=logdir, **_TRAINING | settings), hooks=[end])
    updates, resumed = self._train(logdir=logdir, **settings)
    self.assertLen(updates, 30 - 12)
    for one, two in zip(tree.flatten(whole.state), tree.flatten(resumed.state),
                        strict=True):
      np.testing.assert_array_equal(one.numpy(), two.numpy())

  def test_rates_by_kl(self):
    updates, _ = self._train(learning_rate_schedule='kl', learning_rate_kl=1e-9)
    # The first collection moves nothing; then the rate falls each time.
    np.testing.assert_allclose(
        [u['learning_rate'] for u in updates],
        np.repeat(.01 / np.float64(1.5)**[0, 0, 1, 2, 3], 6), rtol=1e-5)

  def test_a_ring_of_unrolls(self):
    updates, learner = self._train(
        replay_capacity=6, target_policy_period=4, batch_size=4,
        replay_fraction=.5, passes=4)
    self.assertEqual([u['frames'] for u in updates], list(range(10, 160, 10)))
    is_zero = [u['policy_kl'] == 0 for u in updates]
    self.assertEqual(
        is_zero, [index in (0, 1, 4, 8, 12) for index in range(15)])
    [part] = learner.agent.observation_normaliser.statistics.values()
    self.assertEqual(float(part.count), 150)  # Replayed unrolls do not count.

  def test_acting_may_overlap(self):
    updates, _ = self._train(overlap=True, queue_capacity=2)
    self.assertLen(updates, 30)


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='settings/joined',
        catches='test_updates_per_call',
        rows=(
            ('several updates of micro-batches',
             'not 0 < self.micro_batch_size < self.batch_size\n',
             'True\n'),
            ('no updates of parts of several learners',
             'not 0 < self.micro_batch_size < self.batch_size\n',
             'self.micro_batch_size in (0, self.batch_size)\n'),
            ('calls over the end of a pass',
             'per_pass % num_updates and num_updates % per_pass)',
             'False)'),
            ('calls over a copy to the target policy',
             'not self.target_policy_period % num_updates)',
             'True)'),
        )),
    dict(
        file='settings/config',
        catches='test_updates_per_call',
        rows=(
            ('old weights for actors that do not wait',
             'not self.use_lstm and self.takes_turns',
             'not self.use_lstm'),
            ('XLA compiles addons',
             'has_loop = not self.addon and (',
             'has_loop = ('),
            ('a loop of one update is compiled',
             'and num_updates > 1)',
             'and True)'),
            ('micro-batches of several updates',
             'num_updates <= 1)\n',
             'True)\n'),
        )),
    dict(
        file='settings/joined',
        catches='test_refusals',
        rows=(
            ('calls over the end of a collection',
             'not declare.used(self.passes) * per_pass % num_updates',
             'True'),
            ('several updates with a ring',
             'return (not self.replay_capacity\n',
             'return (True\n'),
        )),
    dict(
        file='learning/sources',
        catches='test_a_call_makes_the_same_updates',
        rows=(
            ('batches of one update',
             'allocate(learner.updates_per_call * config.batch_size)',
             'allocate(config.batch_size)'),
        )),
    dict(
        file='networks/factory',
        catches='test_a_separate_baseline_shares_no_layer',
        rows=(
            ('a torso of the whole mlp before separate layers',
             '0 if separate_baseline else None',
             'None'),
            ('no layers of the baseline',
             'mlp(hidden_sizes) if separate_baseline else None',
             'None'),
        )),
    dict(
        file='networks/agents',
        catches='test_a_separate_baseline_shares_no_layer',
        rows=(
            ('layers of the baseline unused',
             'self._baseline_torso(features)',
             'features'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_weights_of_the_behaviour_are_cut',
        rows=(
            ('weights of the behaviour are not cut',
             'weights > math.log(limit)',
             'weights > 1e9'),
            ('the cut is at the inverse weight',
             'weights > math.log(limit)',
             '-weights > math.log(limit)'),
            ('the cut weight is forgotten',
             'log_rhos + math.log(limit),',
             'log_rhos,'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_loss_and_gradients_are_those_of_the_formula',
        rows=(
            ('the KL of the behaviour',
             'seen = seen._replace(behaviour_policy=old_policy)',
             'pass'),
            ('no target policy in the surrogate',
             '      log_rhos = actor_critic.about_target(',
             '      _ = actor_critic.about_target('),
        )),
    dict(
        file='learning/learner',
        catches='test_calls_that_do_not_end_with_a_period_copy_too',
        rows=(
            ('copies only after a multiple of the period',
             '_target_policy.period < self.updates_per_call',
             '_target_policy.period < 1'),
        )),
    dict(
        file='learning/learner',
        catches='test_copies_have_the_statistics_of_their_weights',
        rows=(
            ('a copy after each update',
             'self.num_updates % self._target_policy.period <',
             '-1 <'),
            ('no copy after the first statistics',
             'self._target_policy and (not groups or (',
             'self._target_policy and (('),
            ('the target policy follows slowly',
             'self._target_policy.follow(1.0)',
             'self._target_policy.follow(0.5)'),
            ('copies with the old statistics',
             '    self._mover.add(batch, learned.targets)\n',
             '    if self._target_policy:\n'
             '      self._target_policy.follow(1.0)\n'
             '    self._mover.add(batch, learned.targets)\n'
             '    self.agent.observation_normaliser.statistics["'
             '"].mean.assign_add([1., 1., 1.])\n'),
        )),
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
        file='learning/learner',
        catches='test_rates_fall_with_frames',
        rows=(
            ('rates fall with updates',
             'schedule(self.num_env_frames)',
             'schedule(30 * self.num_updates)'),
        )),
    dict(
        file='settings/joined',
        catches='test_refusals',
        rows=(
            ('advantages of parts are normalised',
             'not self.normalise_advantages or (',
             'True or ('),
            ('a ring without a target policy',
             'self.target_policy_period > 0,',
             'True,'),
            ('collections beside a ring',
             'not self.unrolls_per_collect,',
             'True,'),
            ('rates by KL with a ring',
             'or not (self.replay_capacity or self.target',
             'or not (self.target'),
            ('rates by a KL of 0',
             'or self.target_policy_period == 1),',
             'or False),'),
            ('rates by KL without a KL',
             "self.learning_rate_schedule != 'kl'\n",
             "self.learning_rate_schedule != 'kls'\n"),
        )),
    dict(
        file='learning/learner',
        catches='test_rates_by_kl',
        rows=(
            ('the first collection moves the rate',
             'in self._kl_schedules if groups else ():',
             'in self._kl_schedules:'),
            ('the rate moves after each update',
             "'policy_kl'], bool(batch.num_new_frames))",
             "'policy_kl'], True)"),
        )),
    dict(
        file='learning/learner',
        catches='test_a_run_that_ends_between_passes_is_resumed',
        rows=(
            ('the rate by KL is not saved',
             'for schedule in self._kl_schedules for v in schedule.variables',
             'for schedule in () for v in schedule.variables'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_a_run_that_ends_between_passes_is_resumed',
        rows=(
            ('the target policy is not saved',
             'target_policy.variables if target_policy else [])',
             '[])'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_huge_weights_stay_finite',
        rows=(
            ('weights without a bound',
             '-_MAX_LOG_RHO, _MAX_LOG_RHO)',
             '-1e9, 1e9)'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_loss_and_gradients_are_those_of_the_formula',
        rows=(
            ('lambda out of the targets',
             ' lambda_=self._lambda,',
             ''),
            ('lambda out of the advantages',
             'vs,\n        self._lambda)',
             'vs,\n        1.0)'),
            ('the weight is in the advantages, too',
             '    errors = vs - seen.baseline\n',
             '    errors = vs - seen.baseline\n'
             '    advantages *= tf.minimum(1., tf.exp(log_rhos))\n'),
            ('the value clip in other units',
             'errors, vs, seen.baseline, old, limit)',
             'errors, vs, seen.baseline, seen.baseline, limit)'),
            ('no cost of KL',
             'total += settings.kl_cost',
             'total += 0.0'),
            ('KL the other way round',
             'seen.behaviour_policy.kl(seen.policy)',
             'seen.policy.kl(seen.behaviour_policy)'),
            ('advantages stay as they are',
             'if settings.normalise_advantages:',
             'if False:'),
            ('advantages are always normalised',
             'if settings.normalise_advantages:',
             'if True:'),
            ('not scaled',
             'self._scale * value',
             'value'),
            ('no entropy',
             'self._entropy_cost * terms',
             '0.0 * terms'),
            ('no baseline',
             'settings.baseline_cost * terms',
             '0.0 * terms'),
            ('another KL for the log',
             'tf.exp(log_rhos) - 1 - log_rhos',
             'tf.exp(log_rhos) - 1 + log_rhos'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_surrogate',
        rows=(
            ('the larger term',
             'tf.minimum(rhos',
             'tf.maximum(rhos'),
            ('the lower limit of sample-factory',
             'clipped = tf.clip_by_value(rhos, 1 - limit',
             'clipped = tf.clip_by_value(rhos, 1 / (1 + limit)'),
            ('clipped above only',
             'clipped = tf.clip_by_value(rhos, 1 - limit',
             'clipped = tf.clip_by_value(rhos, -9'),
            ('clipped below only',
             'rhos, 1 - limit, 1 + limit)',
             'rhos, 1 - limit, 9.)'),
            ('limits are swapped',
             'rhos, 1 - limit, 1 + limit)',
             'rhos, 1 + limit, 1 - limit)'),
            ('limits are squared',
             'rhos, 1 - limit, 1 + limit)',
             'rhos, (1 - limit)**2, (1 + limit)**2)'),
            ('not clipped in the surrogate',
             'clipped * constants',
             'rhos * constants'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_advantages',
        rows=(
            ('no discount in advantages',
             'multiply_no_nan(mixed, discounts)',
             'multiply_no_nan(mixed, tf.ones_like(discounts))'),
            ('lambda and its rest swapped',
             '(1 - lambda_) * after(values) + lambda_',
             'lambda_ * after(values) + (1 - lambda_)'),
            ('the value of the same step',
             'tf.concat([x[1:], boot',
             'tf.concat([x[:-1], boot'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_numbers_after_an_end_have_no_effect',
        rows=(
            ('infinities after an end',
             'tf.math.multiply_no_nan(mixed, discounts)',
             'mixed * discounts'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_gradients_vanish_only_where_the_clip_asks',
        rows=(
            ('clipped share of one side',
             'rhos > 1 + limit, rhos < 1 - limit)',
             'rhos > 1 + limit, rhos < 0)'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_clipped_errors',
        rows=(
            ('the smaller error',
             'tf.abs(clipped) > tf.abs(errors)',
             'tf.abs(clipped) < tf.abs(errors)'),
            ('the clip of values without a limit',
             '-limit, limit))',
             '-9., 9.))'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_normalised_advantages',
        rows=(
            ('deviations of nothing',
             '(tf.sqrt(variance) + 1e-8)',
             'tf.sqrt(variance)'),
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
             'int(self._order[index]), 1)',
             'int(self._order[column]), 1)'),
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
    dict(
        file='settings/joined',
        catches='test_defaults',
        rows=(
            ('acting never waits for appo',
             "or self.algorithm == 'appo' and not (",
             'or False and not ('),
        )),
    dict(
        file='algorithms/appo',
        catches='test_defaults_by_memory_and_actions',
        rows=(
            ('entropy has a weight for all actions',
             '0. if actions.size else .01',
             '.01'),
        )),
    dict(
        file='settings/declare',
        catches='test_defaults_by_memory_and_actions',
        rows=(
            ('an LSTM has no passes of its own',
             "f'{self.algorithm} with LSTM')",
             "'ddqn with LSTM')"),
        )),
    dict(
        file='runs/messages',
        catches='test_lines_at_the_start',
        rows=(
            ('no line about the norm of sums',
             "config.reduction == 'sum' and norm",
             "config.reduction == 'sums' and norm"),
            ('a line without a norm',
             "config.reduction == 'sum' and norm",
             "config.reduction == 'sum'"),
        )),
    dict(
        file='settings/joined',
        catches='test_sizes',
        rows=(
            ('a batch of any size',
             'if not size % b]',
             ']'),
        )),
    dict(
        file='settings/joined',
        catches='test_waiting',
        rows=(
            ('overlap with ray',
             'self.overlap or self.ray_address)',
             'self.overlap)'),
        )),
    dict(
        file='settings/joined',
        catches='test_batches_that_do_not_come_out_even',
        rows=(
            ('passes that do not come out even',
             'self.unrolls_per_collect % self.batch_size == 0,',
             'True,'),
        )),
)


if __name__ == '__main__':
  absltest.main()
