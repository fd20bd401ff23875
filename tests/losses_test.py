# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the losses against hand-derived values and gradients."""

from absl.testing import parameterized
import numpy as np
from scalable_agent import vtrace
from scalable_agent.losses import actor_critic
from scalable_agent.networks import distributions
from scalable_agent.replay import views
import tensorflow as tf

_LOGITS = np.float32([[[1, 0]], [[0, 2]]])
_ACTIONS = np.int32([[0], [1]])
_VALUES = np.float32([[.2], [.4]])
_VS = np.float32([[.586], [-.46]])
_PG_ADVANTAGES = np.float32([[.386], [-.86]])


def _random(seed):
  """Logits, actions and advantages that vary along every axis."""
  rng = np.random.RandomState(seed)
  return (rng.normal(size=[5, 3, 4]).astype(np.float32),
          rng.randint(4, size=[5, 3]).astype(np.int32),
          rng.normal(size=[5, 3]).astype(np.float32))


def _softmax(logits):
  exp = np.exp(logits.astype(np.float64))
  return exp / np.sum(exp, -1, keepdims=True)


def _entropy_loss(logits):
  return actor_critic.compute_entropy_loss(
      distributions.categorical(logits).entropy())


def _policy_gradient_loss(logits, actions, advantages):
  return actor_critic.compute_policy_gradient_loss(
      distributions.categorical(logits).log_prob(actions), advantages)


class LossesTest(tf.test.TestCase, parameterized.TestCase):

  def test_baseline_loss(self):
    self.assertAllClose(
        0.444298, actor_critic.compute_baseline_loss(_VS - _VALUES))
    _, _, advantages = _random(0)
    x = tf.Variable(advantages)
    with tf.GradientTape() as tape:
      loss = actor_critic.compute_baseline_loss(x)
    self.assertAllClose(0.5 * np.sum(advantages ** 2), loss)
    self.assertAllClose(advantages, tape.gradient(loss, x))

  def test_entropy_loss(self):
    self.assertAllClose(-0.947536963975, _entropy_loss(_LOGITS))
    logits, _, _ = _random(1)
    x = tf.Variable(logits)
    with tf.GradientTape() as tape:
      loss = _entropy_loss(x)
    p = _softmax(logits)
    entropy = -np.sum(p * np.log(p), -1, keepdims=True)
    self.assertAllClose(-np.sum(entropy), loss)
    # dH / dlogits = -p (log p + H).
    self.assertAllClose(p * (np.log(p) + entropy), tape.gradient(loss, x))

  def test_entropy_loss_of_extreme_logits(self):
    x = tf.Variable([[[1e4, -1e4]]])
    with tf.GradientTape() as tape:
      loss = _entropy_loss(x)
    self.assertAllEqual(0.0, loss)
    self.assertAllEqual([[[0.0, 0.0]]], tape.gradient(loss, x))

  @parameterized.parameters(
      ([[1.5], [-.5]], 0.406428525756), (_PG_ADVANTAGES, 0.011760921885))
  def test_policy_gradient_loss_of_known_numbers(self, advantages, expected):
    self.assertAllClose(
        expected, _policy_gradient_loss(
            _LOGITS, _ACTIONS, tf.constant(advantages)))

  def test_policy_gradient_loss(self):
    logits, actions, advantages = _random(2)
    x, y = tf.Variable(logits), tf.Variable(advantages)
    with tf.GradientTape() as tape:
      loss = _policy_gradient_loss(x, actions, y)
    p = _softmax(logits)
    one_hot = np.eye(4)[actions]
    self.assertAllClose(-np.sum(np.log(np.sum(p * one_hot, -1)) * advantages),
                        loss)
    by_logits, by_advantages = tape.gradient(loss, [x, y])
    self.assertAllClose((p - one_hot) * advantages[..., None], by_logits)
    self.assertIsNone(by_advantages)

  def test_policy_gradient_loss_with_epsilon(self):
    log_probs = tf.math.log([[.25, 1.], [0., .5]])
    self.assertAllClose(
        -(np.log(.35) + 2 * np.log(1.1) + 3 * np.log(.1) + 4 * np.log(.6)),
        actor_critic.compute_policy_gradient_loss(
            log_probs, np.float32([[1, 2], [3, 4]]), epsilon=.1))

  def test_policy_gradient_loss_of_large_densities_with_epsilon(self):
    log_probs = tf.constant([[200., -200.]])
    with tf.GradientTape() as tape:
      tape.watch(log_probs)
      loss = actor_critic.compute_policy_gradient_loss(
          log_probs, np.float32([[1, 2]]), epsilon=1e-6)
    self.assertAllClose(-200 - 2 * np.log(1e-6), loss)
    self.assertAllClose([[-1, 0]], tape.gradient(loss, log_probs))

  @parameterized.parameters([[3]], [[5, 1]], [[5, 3, 1]])
  def test_policy_gradient_loss_broadcasts_nothing(self, shape):
    logits, actions, _ = _random(3)
    with self.assertRaisesRegex(ValueError, 'incompatible'):
      _policy_gradient_loss(logits, actions, tf.ones(shape))

  def test_losses_are_sums(self):
    logits, actions, advantages = _random(4)
    twice = lambda x, axis: np.concatenate([x, x], axis)
    for axis in (0, 1):
      self.assertAllClose(
          2 * actor_critic.compute_baseline_loss(advantages),
          actor_critic.compute_baseline_loss(twice(advantages, axis)))
      self.assertAllClose(2 * _entropy_loss(logits),
                          _entropy_loss(twice(logits, axis)))
      self.assertAllClose(
          2 * _policy_gradient_loss(logits, actions, advantages),
          _policy_gradient_loss(
              twice(logits, axis), twice(actions, axis),
              twice(advantages, axis)))

  def test_total_loss_of_the_reference(self):
    logits, values = tf.Variable(_LOGITS), tf.Variable(_VALUES)
    behaviour_logits = tf.Variable([[[0., 0.]], [[1., -1.]]])
    rewards, bootstrap = tf.Variable([[1.], [-1.]]), tf.Variable([.6])
    with tf.GradientTape() as tape:
      returns = vtrace.from_logits(
          behaviour_logits, logits, _ACTIONS, tf.fill([2, 1], .9), rewards,
          values, bootstrap)
      total = (
          _policy_gradient_loss(
              logits, _ACTIONS, returns.pg_advantages)
          + .5 * actor_critic.compute_baseline_loss(returns.vs - values)
          + .00025 * _entropy_loss(logits))
    self.assertAllClose(0.233673037644, total)
    by_values, by_logits, *rest = tape.gradient(
        total, [values, logits, behaviour_logits, rewards, bootstrap])
    self.assertAllClose([[-.193], [.43]], by_values)
    self.assertAllClose([[[-.103762235666, .103762235666]],
                         [[-.102567009732, .102567009732]]], by_logits)
    self.assertEqual(rest, [None] * 3)


class ClipRewardsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('abs_one', [-1, -1, -1, -.5, 0, .5, 1, 1, 1]),
      ('soft_asymmetric',
       [-1.498993949609, -1.142391233934, -.296062980337, -.149501991937, 0,
        .498339973125, .986876601125, 3.807970779779, 4.996646498695]))
  def test_modes(self, mode, expected):
    rewards = np.array([-20, -5, -1, -.5, 0, .5, 1, 5, 20], np.float32)
    self.assertAllClose(expected, actor_critic.clip_rewards(rewards, mode))
    clipped = views.clip_rewards(rewards, mode)  # For transitions.
    self.assertAllClose(expected, clipped)
    self.assertEqual(clipped.dtype, np.float32)

  def test_none(self):
    rewards = [-20, -1, 0.5, 20]
    self.assertAllEqual(rewards, actor_critic.clip_rewards(rewards, 'none'))
    self.assertAllEqual(rewards, views.clip_rewards(rewards, 'none'))

  def test_unknown_mode(self):
    with self.assertRaisesRegex(
        ValueError, "'sign': must be none, abs_one or soft"):
      actor_critic.clip_rewards(tf.zeros([1]), 'sign')
    with self.assertRaisesRegex(ValueError, "'sign'"):
      views.clip_rewards(np.zeros([1]), 'sign')


# See `mutations.py`.
MUTATIONS = (
    dict(file='losses/actor_critic', catches='test_baseline_loss', rows=(
        ('no half in the loss of the baseline',
         '0.5 * tf.reduce_sum(tf.square(', '1.0 * tf.reduce_sum(tf.square('),
    )),
    dict(file='losses/actor_critic', catches='test_entropy_loss', rows=(
        ('the entropy falls', '-tf.reduce_sum(entropies)',
         'tf.reduce_sum(entropies)'),
    )),
    dict(file='losses/actor_critic', catches='test_policy_gradient_loss', rows=(
        ('mean over the policy gradient',
         '-tf.reduce_sum(log_probs * advantages)',
         '-tf.reduce_mean(log_probs * advantages)'),
        ('advantages have a gradient',
         'advantages = tf.stop_gradient(advantages)', 'pass'),
    )),
    dict(file='losses/actor_critic',
         catches='test_policy_gradient_loss_with_epsilon', rows=(
        ('epsilon without effect', 'if epsilon:', 'if False:'),
    )),
    dict(file='losses/actor_critic', catches='test_modes', rows=(
        ('losses as gains', '0.3 * squashed', 'squashed'),
        ('rewards clipped at 5', '5.0 * tf.where', '1.0 * tf.where'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
