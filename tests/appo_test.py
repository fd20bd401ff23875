# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the losses of APPO.

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
from scalable_agent import vtrace
from scalable_agent.algorithms import appo
from scalable_agent.algorithms import base
from scalable_agent.algorithms import impala
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.losses import actor_critic
from scalable_agent.networks import distributions
from scalable_agent.networks import heads
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

  def test_normalised_advantages_of_some_columns(self):
    rng = np.random.default_rng(0)
    advantages = rng.normal(3, 2, [5, 4]).astype('f')
    for used in ([1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]):
      expected = np.zeros([5, 4])
      columns = np.flatnonzero(used)
      if columns.size:
        x = advantages[:, columns].astype('d')
        expected[:, columns] = (x - x.mean()) / x.std()
      self.assertAllClose(actor_critic.normalise(
          tf.constant(advantages), tf.constant(used, tf.float32)), expected)
    self.assertAllClose(actor_critic.normalise(
        tf.constant([[1., 3, 0, 0]]), tf.constant([1., 1, 0, 0])),
                        [[-1, 1, 0, 0]])

  @parameterized.product(
      number=(.1, .3, -1.7, 12.3), compiled=(False, True))
  def test_equal_advantages_have_no_sign(self, number, compiled):
    # Their mean in float32 is another number.
    equal = tf.fill([32, 9], number)
    normalise = tf.function(actor_critic.normalise, jit_compile=compiled)
    self.assertAllEqual(normalise(equal), np.zeros([32, 9]))
    self.assertAllEqual(normalise(equal, tf.constant(
        [1., 0, 1, 0, 0, 1, 1, 1, 0])), np.zeros([32, 9]))

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

  def test_a_rate_by_kl_is_saved(self):
    learner = normalisers_test._learner(
        algorithm='appo', learning_rate_schedule='kl')
    [schedule] = learner._kl_schedules
    self.assertContainsSubset(map(id, schedule.variables),
                              map(id, learner.state['statistics']))

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

  def test_a_tiny_kl_is_not_rounded(self):
    agent, batch = impala_test._random_case(5, on_policy=True)
    mu = impala_test._softmax(agent.logits.numpy().astype('d'))[:-1]
    agent.logits.assign_add(
        3e-4 * np.random.default_rng(5).normal(size=agent.logits.shape))
    pi = impala_test._softmax(agent.logits.numpy().astype('d'))[:-1]
    one_hot = np.eye(3)[batch.steps.agent_outputs.action.numpy()[1:]]
    log_rho = np.log((pi * one_hot).sum(-1) / (mu * one_hot).sum(-1))
    loss, _ = _gradients(appo.Appo(agent, _settings()), batch)
    self.assertAllClose(loss.means['kl'], (np.expm1(log_rho) - log_rho).mean(),
                        rtol=.02, atol=0)

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


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='learning/learner',
        catches='test_a_rate_by_kl_is_saved',
        rows=(
            ('the rate by KL is not saved',
             'for schedule in self._kl_schedules for v in schedule.variables',
             'for schedule in () for v in schedule.variables'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_copies_have_the_statistics_of_their_weights',
        rows=(
            ('the target policy is not saved',
             'target_policy.variables if target_policy else [])',
             '[])'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_equal_advantages_have_no_sign',
        rows=(
            ('rounding of the mean is an advantage',
             'centred -= mean(centred)',
             'centred -= 0.'),
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
             'tf.math.expm1(log_rhos) - log_rhos',
             'tf.math.expm1(log_rhos) + log_rhos'),
        )),
    dict(
        file='algorithms/appo',
        catches='test_a_tiny_kl_is_not_rounded',
        rows=(
            ('a tiny KL is rounded',
             'tf.math.expm1(log_rhos) -',
             'tf.exp(log_rhos) - 1 -'),
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
             '(tf.sqrt(mean(tf.square(centred))) + 1e-8)',
             'tf.sqrt(mean(tf.square(centred)))'),
        )),
    dict(
        file='losses/actor_critic',
        catches='test_normalised_advantages_of_some_columns',
        rows=(
            ('columns that are not used become something',
             'return used * centred /',
             'return centred /'),
            ('means over all columns',
             'used = are_used * tf.ones_like(advantages)',
             'used = tf.ones_like(advantages)'),
        )),
)


if __name__ == '__main__':
  absltest.main()
