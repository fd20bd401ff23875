# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of heads: what the numbers of a network mean, and how it explores."""

from absl.testing import parameterized
import numpy as np
from scalable_agent.experience import structs
from scalable_agent.networks import distributions
from scalable_agent.networks import factory
from scalable_agent.networks import heads
import tensorflow as tf

_DISCRETE = structs.ActionSpec((4,))
_PARTS = structs.ActionSpec((3, 2))
_BOX = structs.ActionSpec(size=2)
_SEED = tf.constant([1, 2])


def _params(num_params, shape=(5, 6)):
  return tf.constant(np.random.default_rng(0).normal(
      size=(*shape, num_params)).astype('f'))


class PolicyTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters(
      (_DISCRETE, True, 4, distributions.categorical),
      (_PARTS, True, 5,
       lambda p: distributions.multi_categorical(p, num_actions=(3, 2))),
      (_BOX, True, 4, distributions.tanh_normal),
      (_BOX, False, 4, distributions.normal))
  def test_policies(self, spec, squashed, num_params, distribution):
    head = heads.policy(spec, squashed)
    self.assertEqual(head.num_params, num_params)
    params = _params(num_params)
    policy, expected = heads.policy_of(head, params), distribution(params)
    actions = policy.sample(_SEED)
    self.assertEqual(actions.shape, (5, 6, *spec.array.shape))
    self.assertEqual(actions.dtype.as_numpy_dtype, spec.array.dtype)
    self.assertAllEqual(actions, expected.sample(_SEED))
    self.assertAllEqual(policy.mode(), expected.mode())
    self.assertAllEqual(policy.log_prob(actions), expected.log_prob(actions))
    self.assertAllEqual(policy.entropy(), expected.entropy())

  def test_initial_scale(self):
    head = heads.policy(structs.ActionSpec(size=3), squashed=False,
                        initial_scale=0.3)
    policy = head.distribution(tf.constant([head.initial_bias]))
    self.assertAllClose(policy.scale, [[0.3] * 3])
    self.assertAllEqual(policy.loc, [[0.0] * 3])

  def test_squashed_is_the_default(self):
    params = 10 * _params(4)
    bound = lambda *args: np.max(np.abs(
        heads.policy(_BOX, *args).distribution(params).mode()))
    self.assertLessEqual(bound(), 1)
    self.assertGreater(bound(False), 1)


class QValuesTest(tf.test.TestCase):

  def test_the_best_action_is_taken(self):
    head = heads.q_values(4)
    self.assertEqual(head.num_params, 4)
    actions = head.distribution(tf.constant(
        [[1., 3, 2, 0], [-4, -3, -2, -5], [0, 0, 0, 7]]))
    self.assertAllEqual(actions.mode(), [1, 2, 3])
    self.assertAllEqual(actions.sample(_SEED), [1, 2, 3])
    self.assertEqual(actions.mode().dtype, tf.int32)


class DeterministicTest(tf.test.TestCase):

  def test_mode(self):
    head = heads.deterministic(2, 0.3)
    self.assertEqual(head.num_params, 2)
    params = _params(2)
    self.assertAllClose(head.distribution(params).mode(), np.tanh(params))
    self.assertAllClose(
        heads.deterministic(2, 0.).distribution(params).sample(_SEED),
        np.tanh(params))

  def test_noise(self):
    num = 5000
    params = tf.tile([[0.0, 0.2]], [num, 1])
    actions = heads.deterministic(2, 0.1).distribution(params)
    noise = (actions.sample(_SEED) - np.tanh([0.0, 0.2])).numpy()
    self.assertAllClose(np.mean(noise, 0), [0, 0], atol=0.01)
    self.assertAllClose(np.std(noise, 0), [.1, .1], atol=0.005)
    # Each number has noise of its own.
    self.assertLess(abs(np.corrcoef(noise.T)[0, 1]), 0.05)
    self.assertAllEqual(actions.sample(_SEED), actions.sample(_SEED))
    self.assertNotAllClose(actions.sample(_SEED), actions.sample([1, 3]))

  def test_it_is_clipped_after_the_noise(self):
    actions = heads.deterministic(1, 5.0).distribution(
        tf.zeros([1000, 1])).sample(_SEED)
    # A normal number of deviation 5 is mostly outside of [-1, 1].
    share = np.mean(np.abs(actions) == 1)
    self.assertAllClose(share, 0.84, atol=0.05)
    self.assertAllInRange(actions, -1, 1)


class UniformActionsTest(parameterized.TestCase, tf.test.TestCase):

  def _draw(self, spec, seed=_SEED, num=6000):
    actions = heads.uniform_actions(spec, tf.constant(num), seed).numpy()
    self.assertEqual(actions.shape, (num, *spec.array.shape))
    self.assertEqual(actions.dtype, spec.array.dtype)
    return actions

  @parameterized.parameters((_DISCRETE,), (_PARTS,), (_BOX,))
  def test_seeds(self, spec):
    self.assertAllEqual(self._draw(spec), self._draw(spec))
    self.assertNotAllEqual(self._draw(spec), self._draw(spec, [1, 3]))

  def test_discrete(self):
    counts = np.bincount(self._draw(_DISCRETE), minlength=4)
    self.assertAllClose(counts / 6000, [.25] * 4, atol=.02)

  def test_parts_are_independent(self):
    actions = self._draw(_PARTS)
    counts = np.bincount(2 * actions[:, 0] + actions[:, 1], minlength=6)
    self.assertAllClose(counts / 6000, [1 / 6] * 6, atol=.02)

  def test_continuous(self):
    actions = self._draw(_BOX)
    self.assertAllInRange(actions, -1, 1)
    for part in actions.T:
      counts, _ = np.histogram(part, 4, (-1, 1))
      self.assertAllClose(counts / 6000, [.25] * 4, atol=.025)
    self.assertLess(abs(np.corrcoef(actions.T)[0, 1]), 0.05)


class ExplorationTest(parameterized.TestCase, tf.test.TestCase):
  """Tests of the epsilon of agents."""

  def _act(self, agent, num=4000, greedy=False):
    spec = agent.action_spec.array
    output, _ = agent.step(
        tf.zeros([num, *spec.shape], spec.dtype),
        structs.StepOutput(tf.zeros([num]), structs.NO_INFO,
                           tf.zeros([num], tf.bool), tf.ones([num, 3])),
        agent.initial_state(num), greedy)
    return output.action.numpy()

  def _make(self, spec, head):
    return factory.make_agent(
        'mlp', structs.ArraySpec((3,), np.dtype(np.float32)), spec, head,
        has_baseline=False, has_epsilon=True, use_lstm=False,
        use_last_action_reward=False, seed=1)

  @parameterized.parameters(
      (_DISCRETE, heads.q_values(4)), (_BOX, heads.deterministic(2, 0.)))
  def test_whole_actions_are_random_as_often_as_epsilon_says(self, spec, head):
    agent = self._make(spec, head)
    self.assertEqual(agent.epsilon, 1)
    best = self._act(agent, greedy=True)
    self.assertAllEqual(best, np.broadcast_to(best[:1], best.shape))
    for epsilon in (0.3, 0.0, 1.0):
      agent.set_epsilon(epsilon)
      actions = self._act(agent)
      is_best = (actions == best).reshape(len(best), -1)
      # No action is random in one part only.
      self.assertAllEqual(np.all(is_best, -1), np.any(is_best, -1))
      # Of random discrete actions, a quarter is the best one by chance.
      share = epsilon * (1 if spec.size else .75)
      self.assertAllClose(1 - np.mean(is_best), share, atol=0.03)
      if epsilon and not spec.size:
        others = np.bincount(actions, minlength=4) / len(actions)
        others[best[0]] -= 1 - epsilon
        self.assertAllClose(others, [epsilon / 4] * 4, atol=.03)
      self.assertAllEqual(self._act(agent, greedy=True), best)

  def test_choices_differ_from_step_to_step(self):
    agent = self._make(_DISCRETE, heads.q_values(4))
    agent.set_epsilon(0.5)
    best = self._act(agent, greedy=True)
    one, other = (self._act(agent) != best for _ in range(2))
    # Which are random, and what they are, is drawn anew.
    both = np.mean(one & other)
    self.assertAllClose(both, np.mean(one) * np.mean(other), atol=.03)

  def test_epsilon_is_a_weight_but_learns_nothing(self):
    agent = self._make(_BOX, heads.deterministic(2, 0.))
    self.assertLen([v for v in agent.variables if v is agent.epsilon], 1)
    self.assertEmpty(
        [v for v in agent.trainable_variables if v is agent.epsilon])

  def test_greedy_policies_take_the_mode(self):
    agent = factory.make_agent(
        'mlp', structs.ArraySpec((3,), np.dtype(np.float32)), _BOX,
        use_lstm=False, seed=1)
    best = self._act(agent, greedy=True)
    self.assertAllEqual(best, self._act(agent, greedy=True))
    self.assertLen(np.unique(best, axis=0), 1)
    self.assertGreater(len(np.unique(self._act(agent), axis=0)), 100)


# See `mutations.py`.
MUTATIONS = (
    dict(file='networks/heads', catches='test_initial_scale', rows=(
        ('initial scale instead of its logarithm', '(math.log(initial_scale),)',
         '(initial_scale,)'),
        ('initial scale for the means',
         '(0.0,) * size + (math.log(initial_scale),) * size',
         '(math.log(initial_scale),) * size + (0.0,) * size'),
    )),
    dict(file='networks/heads', catches='test_noise', rows=(
        ('one noise for all parts', 'tf.shape(self._action), seed)',
         'tf.shape(self._action[..., :1]), seed)'),
    )),
    dict(file='networks/heads',
         catches='test_it_is_clipped_after_the_noise', rows=(
        ('clipped before the noise',
         'return tf.clip_by_value(self._action + noise, -1.0, 1.0)',
         'return tf.clip_by_value(self._action, -1.0, 1.0) + noise'),
    )),
    dict(file='networks/heads', catches='test_the_best_action_is_taken', rows=(
        ('worst action', 'tf.argmax(self._values', 'tf.argmin(self._values'),
    )),
    dict(file='networks/heads', catches='test_squashed_is_the_default', rows=(
        ('not squashed', 'squashed: bool = True', 'squashed: bool = False'),
    )),
    dict(file='networks/heads', catches='test_mode', rows=(
        ('mode is not squashed', 'self._action = tf.tanh(params)',
         'self._action = tf.identity(params)'),
    )),
    dict(file='networks/heads', catches='test_continuous', rows=(
        ('random actions in the upper half only', 'seed, -1.0, 1.0)',
         'seed, 0.0, 1.0)'),
    )),
    dict(file='networks/heads',
         catches='test_whole_actions_are_random_as_often_as_epsilon_says',
         rows=(
        ('last action never chosen at random',
         'num_values = tf.constant(action_spec.num_values, tf.int32)',
         'num_values = tf.constant(action_spec.num_values, tf.int32) - 1'),
    )),
    dict(file='networks/agents',
         catches='test_whole_actions_are_random_as_often_as_epsilon_says',
         rows=(
        ('epsilon inverted', 'which_seed) < (',
         'which_seed) > ('),
        ('parts of an action are random one by one',
         '[batch_size, *axes], which_seed)', 'tf.shape(action), which_seed)'),
        ('one draw for all', '[batch_size, *axes], which_seed)',
         '[1, *axes], which_seed)'),
        ('which are random decides what they are',
         'stateless_uniform([batch_size, *axes], which_seed)',
         'stateless_uniform([batch_size, *axes], random_seed)'),
    )),
    dict(file='networks/agents',
         catches='test_greedy_policies_take_the_mode', rows=(
        ('greedy agents explore', '.mode() if greedy',
         '.sample([1, 2]) if greedy'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
