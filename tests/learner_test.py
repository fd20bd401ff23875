# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the learner: alignment with actors, frames, rates, weights."""

import functools
import time
from unittest import mock

from absl.testing import parameterized
import eager
import in_numpy
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import vtrace
from scalable_agent.acting import actor as actor_lib
from scalable_agent.acting import policies
from scalable_agent.algorithms import base
from scalable_agent.algorithms import impala
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import gradients
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import optimizers
from scalable_agent.networks import factory
from scalable_agent.networks import heads
from scalable_agent.settings import sections
import tensorflow as tf
import tree

_SPEC = structs.ArraySpec((3,), np.dtype(np.float32))
_NUM_ACTIONS = 4
_ACTIONS = structs.ActionSpec((_NUM_ACTIONS,))
_NUM_FRAMES = 32 * 100 * 4  # Frames per update, by choice of the tests.


def make_learner(seed=1, clip_gradient_norm=None, optimizer='rmsprop',
                 total_environment_frames=1_000_000_000, jit_compile=False,
                 discounting=0.99, micro_batch_size=None, spec=_SPEC,
                 network='mlp', collectives=None):
  """A learner of a small recurrent agent with the reference's settings."""
  agent = factory.make_agent(network, spec, _ACTIONS, seed=seed)
  optimizer = optimizers.make_optimizer(
      optimizer, learning_rate=0.00048, decay=0.99, momentum=0.0, epsilon=0.1,
      beta_1=0.9, beta_2=0.999)
  return learner_lib.Learner(
      impala.Impala(agent, sections.ImpalaSettings(
          discounting=discounting, reward_clipping='abs_one')),
      {'agent': optimizers.Scheduled(
          optimizer, lambda frames: optimizers.linear_decay(
              0.00048, frames, total_environment_frames))},
      clip_gradient_norm=clip_gradient_norm,
      micro_batch_size=micro_batch_size, jit_compile=jit_compile,
      collectives=collectives)


def random_batch(learner, seed=0, unroll_length=5, batch_size=3):
  """A batch that varies along every axis, with episode ends inside."""
  rng = np.random.RandomState(seed)
  steps = (unroll_length + 1, batch_size)
  done = rng.uniform(size=steps) < 0.3
  done[2, 0] = True
  start = structs.Start(
      level_name=np.array(['level'] * batch_size, object),
      environment=np.arange(batch_size),
      agent_state=tree.map_structure(
          lambda s: rng.normal(size=[batch_size, *s.shape[1:]]).astype('f'),
          learner.agent.initial_state(1)),
      policy_version=np.zeros([batch_size], np.int64))
  steps_of_batch = structs.Steps(
      env_outputs=structs.StepOutput(
          reward=rng.normal(size=steps).astype('f') * 2,
          info=structs.StepOutputInfo(
              np.zeros(steps, 'f'), np.zeros(steps, 'i'), done),
          done=done,
          observation=rng.normal(size=[*steps, 3]).astype('f')),
      agent_outputs=structs.AgentOutput(
          action=rng.randint(_NUM_ACTIONS, size=steps).astype('i'),
          policy=rng.normal(size=[*steps, _NUM_ACTIONS]).astype('f'),
          baseline=rng.normal(size=steps).astype('f')),
      # Some episodes were cut off, others ended.
      truncation_values=np.where(
          done & (rng.uniform(size=steps) < 0.5),
          3 * rng.normal(size=steps), 0).astype('f'))
  return learner.to_device(
      structs.Unroll(steps_of_batch, start), _NUM_FRAMES)


def _with_observation(batch, observation):
  steps = batch.data.steps
  steps = steps._replace(
      env_outputs=steps.env_outputs._replace(observation=observation))
  return batch._replace(data=batch.data._replace(steps=steps))


@functools.cache
@eager.eagerly()
def _updates_of_the_whole(optimizer):
  """Returns the scalars of three updates, and the last weights.

  They are neither compiled nor made in parts.
  """
  learner = make_learner(optimizer=optimizer, clip_gradient_norm=5.0)
  scalars = [learner.step(random_batch(learner, seed, batch_size=5)).scalars
             for seed in range(3)]
  return scalars, [v.numpy() for v in learner.agent.variables]


def _learner_of(agent):
  optimizer = optimizers.RMSProp(0.1)
  return learner_lib.Learner(
      impala.Impala(agent, sections.ImpalaSettings()),
      {'agent': optimizers.Scheduled(optimizer, lambda frames: 0.1)})


class FrozenWeightsTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.named_parameters(
      ('catch_in_processes', 'catch', 'mlp', 7, True, 24),
      ('memory_in_processes', 'memory', 'mlp', 5, True, 24),
      ('feed_forward', 'catch', 'mlp', 7, False, 20))
  def test_learner_logits_equal_the_actors(
      self, level, network, unroll_length, use_lstm, num_unrolls):
    self._check(level, network, unroll_length, use_lstm, num_unrolls)

  @pytest.mark.slow
  def test_learner_logits_equal_the_actors_of_atari_in_threads(self):
    self._check('ALE/Breakout-v5', 'shallow', 10, True, 24)

  def _check(self, level, network, unroll_length, use_lstm, num_unrolls):
    with environments.make_vec(
        [level] * 2, [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1
                                         if level != 'ALE/Breakout-v5' else 4)
    ) as env:
      learner, played = self._play(
          env, unroll_length, num_unrolls, network, use_lstm=use_lstm)
      unroll_agent = tf.function(learner.agent.unroll)
      num_ends = 0
      for data in played:
        behaviour = data.steps.agent_outputs
        outputs, _ = unroll_agent(
            behaviour.action, data.steps.env_outputs, data.start.agent_state)
        returns = vtrace.from_logits(
            behaviour.policy[1:], outputs.policy[:-1], behaviour.action[1:],
            tf.zeros([unroll_length, 2]), tf.zeros([unroll_length, 2]),
            outputs.baseline[:-1], outputs.baseline[-1])
        self.assertAllClose(returns.log_rhos, tf.zeros([unroll_length, 2]),
                            rtol=0, atol=1e-5)
        self.assertAllClose(outputs.baseline[:-1],
                            behaviour.baseline[1:], atol=1e-5)
        num_ends += np.sum(data.steps.env_outputs.done[1:])
      self.assertGreater(num_ends, 0)

  @parameterized.named_parameters(
      ('gaussian', 'target', False), ('tanh_gaussian', 'target', True),
      ('parts', 'pattern', True))
  def test_weights_in_the_loss_are_one(self, level, squashed):
    with environments.make_vec(
        [level] * 2, [1, 2],
        environments.EnvironmentSettings(num_action_repeats=1)) as env:
      learner, played = self._play(
          env, 7, 4, 'mlp', head=heads.policy(env.spec.action, squashed))
      num_ends, actions = 0, []
      for data in played:
        with mock.patch.object(
            vtrace, 'from_importance_weights',
            wraps=vtrace.from_importance_weights) as found:
          learner.algorithm.loss(data, None, ('agent',), tf.zeros([2]))
        log_rhos = found.call_args.args[0]
        self.assertAllClose(log_rhos, tf.zeros([7, 2]), rtol=0, atol=1e-5)
        actions.append(data.steps.agent_outputs.action[1:].numpy())
        num_ends += np.sum(data.steps.env_outputs.done[1:])
    self.assertGreater(num_ends, 0)
    self.assertAllGreater(np.std(actions, axis=(0, 1, 2)), .1)
    # Only a Gaussian that is not squashed leaves the bounds.
    if env.spec.action.size:
      self.assertEqual(np.max(np.abs(actions)) > 1, not squashed)

  def _play(self, env, unroll_length, num_unrolls, network, **kwargs):
    """Returns a learner, and data of an actor with the learner's weights."""
    make = lambda seed: factory.make_agent(
        network, env.spec.observation, env.spec.action, seed=seed, **kwargs)
    learner = _learner_of(make(1))
    rng = np.random.RandomState(3)
    for variable in learner.agent.variables:  # Heads may begin at zero.
      variable.assign_add(0.1 * rng.normal(size=variable.shape))
    actor = actor_lib.Actor(
        env, policies.AgentPolicy(make(2)), learner.weights,
        queues.BoundedQueue(1), unroll_length, timing.StageTimer())

    def played():
      for _ in range(num_unrolls):
        unroll, release = actor.make_unroll()
        yield learner.to_device(unroll, num_new_frames=1).data
        release()

    return learner, played()


class LearnerTest(parameterized.TestCase, tf.test.TestCase):

  def test_frames_and_learning_rate(self):
    learner = make_learner()
    batch = random_batch(learner)
    first = learner.step(batch).scalars
    second = learner.step(batch).scalars
    # An update has the rate of the frames before the update.
    self.assertAllClose(first['learning_rate'], 0.00048, rtol=1e-7)
    self.assertAllClose(second['learning_rate'], 0.000479993856, rtol=1e-6)
    self.assertEqual(learner.num_env_frames, 2 * 12800)
    self.assertEqual(learner.num_updates, 2)
    learner.num_env_frames = 999_987_200
    self.assertAllClose(learner.step(batch).scalars['learning_rate'], 6.144e-9,
                        rtol=1e-5, atol=0)
    self.assertEqual(learner.num_env_frames, 1_000_000_000)
    before = learner.weights()
    self.assertEqual(float(learner.step(batch).scalars['learning_rate']), 0)
    for old, new in zip(before.values, learner.weights().values):
      self.assertAllEqual(old, new)

  @eager.eagerly()
  def test_loss_is_that_of_the_shifted_sequences(self):
    """Outputs of the learner at t belong to actions at t + 1."""
    learner = make_learner(discounting=0.9)
    batch = random_batch(learner)
    env_outputs, agent_outputs, truncation_values = batch.data.steps
    state = batch.data.start.agent_state
    logits, values = [], []
    for t in range(6):  # Step by step, straight from the definition.
      step = tree.map_structure(
          lambda x, t=t: x[t], (agent_outputs.action, env_outputs))
      output, state = learner.agent.step(*step, state)
      logits.append(output.policy.numpy().astype(np.float64))
      values.append(output.baseline.numpy().astype(np.float64))
    actions = agent_outputs.action.numpy()
    taken = lambda x, a: in_numpy.pick(in_numpy.log_softmax(x), a)
    behaviour = agent_outputs.policy.numpy().astype(np.float64)
    policy_loss = baseline_loss = entropy_loss = 0
    vs_next, accumulator = values[5], 0
    for t in reversed(range(5)):
      log_pi = taken(logits[t], actions[t + 1])
      rho = np.minimum(
          1, np.exp(log_pi - taken(behaviour[t + 1], actions[t + 1])))
      # The value where a time limit cut off is not clipped with the reward.
      reward = (np.clip(env_outputs.reward[t + 1].numpy(), -1, 1)
                + 0.9 * truncation_values[t + 1].numpy())
      discount = 0.9 * (1 - env_outputs.done[t + 1].numpy())
      delta = rho * (reward + discount * values[t + 1] - values[t])
      accumulator = delta + discount * rho * accumulator
      advantage = rho * (reward + discount * vs_next - values[t])
      vs_next = values[t] + accumulator
      policy_loss -= np.sum(log_pi * advantage)
      baseline_loss += 0.5 * np.sum((vs_next - values[t]) ** 2)
      log_probs = in_numpy.log_softmax(logits[t])
      entropy_loss += np.sum(np.exp(log_probs) * log_probs)
    found = learner.step(batch).scalars
    self.assertAllClose(found['policy_loss'], policy_loss, rtol=1e-4)
    self.assertAllClose(found['baseline_loss'], baseline_loss, rtol=1e-4)
    self.assertAllClose(found['entropy_loss'], entropy_loss, rtol=1e-4)
    self.assertAllClose(
        found['total_loss'],
        policy_loss + 0.5 * baseline_loss + 0.00025 * entropy_loss, rtol=1e-4)

  @eager.eagerly()
  def test_duplicated_batch_doubles_the_gradient(self):
    learner = make_learner()
    once = random_batch(learner)
    double = lambda axis: lambda x: tf.concat([x, x], axis)
    twice = once._replace(data=structs.Unroll(
        tree.map_structure(double(1), once.data.steps),
        tree.map_structure(double(0), once.data.start)))
    norm = learner.step(once).scalars['gradient_norm']
    self.assertAllClose(
        make_learner().step(twice).scalars['gradient_norm'], 2 * norm,
        rtol=1e-4)

  @eager.eagerly()
  def test_gradient_is_clipped_by_its_global_norm(self):
    free, clipped = make_learner(), make_learner(clip_gradient_norm=0.01)
    batch = random_batch(free)
    before = [v.numpy() for v in free.agent.variables]
    norm = free.step(batch).scalars['gradient_norm']
    self.assertAllClose(clipped.step(batch).scalars['gradient_norm'], norm)
    self.assertGreater(float(norm), 0.01)
    moved = np.sqrt(sum(
        np.sum((v.numpy() - b) ** 2)
        for v, b in zip(clipped.agent.variables, before)))
    # ms stays near 0.99, so the step is lr * 0.01 / sqrt(0.99 + 0.1).
    self.assertAllClose(moved, 0.00048 * 0.01 / np.sqrt(1.09), rtol=1e-2)

  @parameterized.parameters('rmsprop', 'adam')
  @pytest.mark.slow
  def test_published_weights_are_not_changed_by_updates(self, optimizer):
    learner = make_learner(optimizer=optimizer)
    batch = random_batch(learner)
    published = learner.weights()
    copies = [np.copy(value) for value in published.values]
    for number in (1, 2):
      weights = learner.weights(learner.step(batch))
      self.assertEqual(weights.version, number)
      for value, variable in zip(
          weights.values, learner.agent.variables, strict=True):
        self.assertAllEqual(value, variable)
      for value, copy in zip(published.values, copies):
        self.assertAllEqual(value, copy)
      self.assertNotAllEqual(weights.values[0], copies[0])
      published, copies = weights, [np.copy(v) for v in weights.values]
    self.assertEqual(learner.weights().version, 2)

  def _assert_same_updates(self, learner, expected, atol=1e-5):
    """Asserts that a learner makes the updates of `_updates_of_the_whole`."""
    scalars, weights = expected
    for seed, expected_of_update in enumerate(scalars):
      found = learner.step(random_batch(learner, seed, batch_size=5)).scalars
      self.assertEqual(set(expected_of_update), set(found))
      for name, value in expected_of_update.items():
        self.assertAllClose(value, found[name], rtol=1e-4, atol=atol)
    self.assertEqual(learner.num_updates, 3)
    self.assertEqual(learner.num_env_frames, 3 * _NUM_FRAMES)
    for one, other in zip(weights, learner.agent.variables, strict=True):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-6)

  @parameterized.parameters(('rmsprop', 1), ('adam', 9))
  @pytest.mark.slow
  @eager.eagerly()
  def test_micro_batches_make_the_same_update(
      self, optimizer, micro_batch_size):
    self._assert_same_updates(
        make_learner(optimizer=optimizer, clip_gradient_norm=5.0,
                     micro_batch_size=micro_batch_size),
        _updates_of_the_whole(optimizer))

  @parameterized.parameters(('rmsprop', None), ('adam', 2))
  @pytest.mark.slow
  def test_compiled_updates_are_the_eager_ones(
      self, optimizer, micro_batch_size):
    self._check_compiled(optimizer, micro_batch_size, jit_compile=False)

  @parameterized.parameters(None, 2)
  @pytest.mark.storm
  def test_updates_compiled_by_xla_are_the_eager_ones(self, micro_batch_size):
    self._check_compiled('adam', micro_batch_size, jit_compile=True)

  def _check_compiled(self, optimizer, micro_batch_size, jit_compile):
    self._assert_same_updates(
        make_learner(optimizer=optimizer, clip_gradient_norm=5.0,
                     micro_batch_size=micro_batch_size,
                     jit_compile=jit_compile),
        _updates_of_the_whole(optimizer),
        atol=1e-5 if micro_batch_size else 1e-6)

  @pytest.mark.storm
  def test_micro_batches_of_words_make_the_same_update(self):
    # The gradient of the embedding has a slice per word of each micro-batch.
    spec = {'frame': _SPEC,
            'instruction': structs.ArraySpec((), np.dtype(object))}
    whole = make_learner(spec=spec)
    parts = make_learner(spec=spec, micro_batch_size=2)
    words = np.array([b'go', b'go left', b'', b'red ball', b'left'], object)
    batch = random_batch(make_learner(), batch_size=5)
    env_outputs = batch.data.steps.env_outputs
    observation = {'frame': env_outputs.observation,
                   'instruction': tf.constant(np.tile(words, [6, 1]))}
    batch = _with_observation(batch, whole.agent.tokenize(
        env_outputs._replace(observation=observation)).observation)
    for _ in range(2):
      with eager.eagerly():
        expected = whole.step(batch).scalars
      found = parts.step(batch).scalars
      for name in expected:
        self.assertAllClose(expected[name], found[name], rtol=1e-4, atol=1e-5)
    for one, other in zip(whole.agent.variables, parts.agent.variables):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-6)

  @parameterized.parameters(
      ('mlp', 0.05), ('shallow', 0.2), ('nature', 0.2), ('deep', 0.4))
  @pytest.mark.slow
  def test_bfloat16_has_nearly_the_same_gradient(self, network, tolerance):
    side = 36 if network == 'nature' else 24
    spec = structs.ArraySpec((4, side, side), np.dtype(np.uint8))
    frames = np.random.RandomState(1).randint(256, size=(6, 3, *spec.shape))
    gradients = []
    for policy in ('float32', 'mixed_bfloat16'):
      tf.keras.config.set_dtype_policy(policy)
      self.addCleanup(tf.keras.config.set_dtype_policy, 'float32')
      learner = make_learner(spec=spec, network=network)
      # Heads of zeros would keep the gradient from these torsos.
      rng = np.random.RandomState(2)
      learner.agent.set_weights([
          w if np.any(w) else rng.normal(size=w.shape, scale=.1).astype('f')
          for w in learner.agent.get_weights()])
      batch = random_batch(learner)
      batch = _with_observation(batch, tf.constant(frames, tf.uint8))
      algorithm = impala.Impala(
          learner.agent, sections.ImpalaSettings(entropy_cost=0.01))
      with tf.GradientTape() as tape:
        loss = algorithm.loss(
            batch.data, None, ['agent'], tf.constant([0, 0]))
        loss = loss.by_group['agent']
      self.assertEqual(loss.dtype, tf.float32)
      gradients.append([g.numpy() for g in tape.gradient(
          loss, learner.agent.trainable_variables)])
    for variable, expected, found in zip(
        learner.agent.trainable_variables, *gradients, strict=True):
      self.assertEqual(found.dtype, np.float32)
      error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
      # Relu units near 0 may differ. A wrong gradient differs by more than 1.
      self.assertBetween(error, 1e-7, tolerance, variable.path)

  @pytest.mark.slow
  def test_one_compilation_serves_all_updates(self):
    learner = make_learner(micro_batch_size=1)
    for seed in range(3):
      learner.step(random_batch(learner, seed))
    self.assertLen(learner._compiled_updates[True]._traced, 1)
    for function in (learner._compiled_gradients, learner._compiled_apply):
      self.assertEqual(function.experimental_get_tracing_count(), 1)


class WeightsTest(tf.test.TestCase):
  """Tests of the weights of a prioritised replay, and of its errors."""

  @eager.eagerly()
  def test_weights_of_columns(self):
    # A weight of 0 is as good as no column; one of 2 is as good as two.
    whole, weighted, parts = (make_learner(), make_learner(),
                              make_learner(micro_batch_size=2))
    batch = random_batch(whole, batch_size=3)
    columns = lambda indices: batch._replace(data=structs.Unroll(
        tree.map_structure(lambda x: tf.gather(x, indices, axis=1),
                           batch.data.steps),
        tree.map_structure(lambda x: tf.gather(x, indices),
                           batch.data.start)))
    expected = whole.step(columns([0, 2, 2]))
    weights = tf.constant([1.0, 0.0, 2.0])
    for learner in (weighted, parts):
      found = learner.step(batch._replace(importance_weights=weights))
      for name in ('total_loss', 'policy_loss', 'entropy_loss',
                   'baseline_loss', 'gradient_norm'):
        self.assertAllClose(found.scalars[name], expected.scalars[name],
                            rtol=1e-4)
      for one, other in zip(whole.agent.variables, learner.agent.variables):
        self.assertAllClose(one, other, rtol=1e-4, atol=1e-6)
      self.assertEqual(found.errors.shape, (3,))
      self.assertAllClose(tf.gather(found.errors, [0, 2, 2]),
                          expected.errors, rtol=1e-4)


class MicroBatchesTest(tf.test.TestCase):

  def test_they_are_computed_one_after_the_other(self):
    events = []

    def record(name, x, seconds=0.):
      def run(x):
        time.sleep(seconds)
        events.append(name)
        return x
      # TensorFlow itself orders functions with state.
      return tf.numpy_function(run, [x], tf.float32, stateful=False)

    def compute(groups, data, importance_weights, seed):
      del importance_weights, seed
      loss = record('loss', data.steps.env_outputs.reward)
      slices = tf.IndexedSlices(loss, tf.constant([0]), tf.constant([1, 1]))
      [group] = groups
      return ({group: [None, record('gradient', loss, .02), slices]},
              {'total_loss': tf.reduce_sum(loss)}, {}, None, None)

    batch = random_batch(make_learner(), batch_size=3)
    run = tf.function(lambda data: gradients.of_parts(
        compute, 1, ('agent',), data, None, tf.constant([0, 0])),
                      autograph=False)
    run(batch.data)
    self.assertEqual(events, ['loss', 'gradient'] * 3)


class _TwoGroups:
  """An algorithm with two optimizers, a target and a random loss.

  Each group's loss depends on the variables of both groups.
  """

  def __init__(self):
    self.agent = factory.make_agent('mlp', _SPEC, _ACTIONS, seed=1)
    self.policy, self.value = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
    self.target, self.noise = tf.Variable([9.0]), tf.Variable(0.0)
    self.groups = {'policy': [self.policy], 'value': [self.value]}
    self.delayed, self.delay = (), 1
    self.progress = tf.Variable([0, 0], dtype=tf.int64)
    self.learned_last = tf.Variable([0, 0])
    self.targets = [self.target]

  def loss(self, data, weights, groups, seed):
    del weights
    self.noise.assign(tf.random.stateless_uniform([], seed))
    both = tf.reduce_sum(self.policy) * tf.reduce_sum(self.value)
    sums = {'total_loss': tf.reduce_sum(data.steps.env_outputs.reward)}
    losses = {'policy': both, 'value': 10 * both}
    return base.Loss({group: losses[group] for group in groups}, sums,
                     {'noise': tf.identity(self.noise)}, tf.zeros([1]))

  def after_update(self, groups, progress):
    self.progress.assign(tf.stack(list(progress)))
    self.learned_last.assign([int(g in groups) for g in ('policy', 'value')])
    self.target.assign(0.5 * self.target + 0.5 * self.value)


class _OfData(_TwoGroups):
  """A value follows rewards, and a delayed policy their sum.

  So the order of the batches counts, and each number of their weights.
  """

  def __init__(self):
    super().__init__()
    self.delayed, self.delay = ('policy',), 2

  def loss(self, data, weights, groups, seed):
    del seed
    rewards = data.steps.env_outputs.reward[0]
    distances = self.value - rewards
    losses = {
        'policy': tf.reduce_sum(self.policy) * tf.reduce_sum(weights * rewards),
        'value': 0.5 * tf.reduce_sum(weights * distances**2)}
    return base.Loss({group: losses[group] for group in groups},
                     {'total_loss': losses['value']}, {}, tf.abs(distances))


def _joined(parts):
  """Returns unrolls with the columns of all parts."""
  join = lambda axis, nests: tree.map_structure(
      lambda *x: tf.concat(x, axis), *nests)
  return structs.Unroll(join(1, [part.steps for part in parts]),
                        join(0, [part.start for part in parts]))


class GroupsTest(parameterized.TestCase, tf.test.TestCase):

  def _make(self, seed=3, updates_per_call=1):
    algorithm = _TwoGroups()
    rates = {'policy': lambda frames: 0.1, 'value': lambda frames: frames / 1e6}
    return algorithm, learner_lib.Learner(algorithm, {
        group: optimizers.Scheduled(tf.keras.optimizers.SGD(), rate)
        for group, rate in rates.items()}, seed=seed,
                                          updates_per_call=updates_per_call)

  def test_a_loss_moves_its_own_group_by_its_own_rate(self):
    algorithm, learner = self._make()
    batch = random_batch(make_learner())
    scalars = learner.step(batch).scalars
    # d both / d policy = 3, d 10 both / d value = 30; value's rate is still 0.
    self.assertAllClose(algorithm.policy, [0.7, 1.7])
    self.assertAllClose(algorithm.value, [3.0])
    self.assertAllClose(scalars['policy/gradient_norm'], np.sqrt(18))
    self.assertAllClose(scalars['value/gradient_norm'], 30)
    self.assertAllClose(scalars['policy/learning_rate'], 0.1)
    learner.step(batch)
    self.assertAllClose(algorithm.policy, [0.4, 1.4])
    self.assertAllClose(algorithm.value, [3 - 0.0128 * 24.0])

  @parameterized.parameters(
      ({}, 3.0), ({'clip_gradient_norm': 0.5}, np.sqrt(0.125)),
      ({'clip_gradient_value': 0.5}, 0.5))
  def test_groups_that_are_not_clipped(self, clipping, change):
    algorithm = _TwoGroups()
    learner = learner_lib.Learner(
        algorithm, {group: optimizers.Scheduled(
            tf.keras.optimizers.SGD(), lambda frames: 0.1)
                    for group in algorithm.groups},
        unclipped=['value'], **clipping)
    learner.step(random_batch(make_learner()))
    self.assertAllClose(
        algorithm.policy, [1 - 0.1 * change, 2 - 0.1 * change])
    self.assertAllClose(algorithm.value, [3 - 0.1 * 30], atol=1e-6)

  @parameterized.parameters(1, 3)
  def test_several_updates_that_fail_are_not_whole(self, updates_per_call):
    _, learner = self._make(updates_per_call=updates_per_call)
    self.assertTrue(learner.is_consistent)
    failing = mock.Mock(side_effect=ValueError)
    with mock.patch.dict(learner._compiled_updates, {True: failing}), \
        self.assertRaises(ValueError):
      learner.step(random_batch(make_learner()))
    self.assertEqual(learner.is_consistent, updates_per_call == 1)

  @parameterized.parameters(1, 3)
  def test_updates_without_their_statistics_are_not_whole(
      self, updates_per_call):
    _, learner = self._make(updates_per_call=updates_per_call)
    with mock.patch.object(learner._mover, 'add', side_effect=ValueError), \
        self.assertRaises(ValueError):
      learner.step(random_batch(make_learner()))
    self.assertFalse(learner.is_consistent)

  def test_nothing_changes_if_the_sum_of_the_learners_fails(self):

    def fail(*unused_tensors):
      raise ValueError('A learner has died.')

    def failing_sum(tensors):
      sums = tf.numpy_function(fail, tensors, [t.dtype for t in tensors])
      return [tf.ensure_shape(total, tensor.shape)
              for total, tensor in zip(sums, tensors, strict=True)]

    learner = make_learner(optimizer='adam', collectives=mock.Mock(
        size=2, rank=0, sum=failing_sum))
    before = [v.numpy() for v in tree.flatten(learner.state)]
    for _ in range(5):
      with self.assertRaisesRegex(
          tf.errors.InvalidArgumentError, 'A learner has died'):
        learner.step(random_batch(make_learner()))
    self.assertTrue(learner.is_consistent)
    for old, new in zip(before, tree.flatten(learner.state), strict=True):
      np.testing.assert_array_equal(old, new.numpy())

  def test_targets_follow_each_update(self):
    algorithm, learner = self._make()
    learner.step(random_batch(make_learner()))
    self.assertAllClose(algorithm.target, [6.0])

  @parameterized.parameters(1, 3)
  def test_what_is_not_due_is_not_computed(self, updates_per_call):
    algorithm = _TwoGroups()
    algorithm.delayed, algorithm.delay = ('policy',), 2
    learner = learner_lib.Learner(
        algorithm, {group: optimizers.Scheduled(
            tf.keras.optimizers.SGD(), lambda frames: 0.001)
                    for group in algorithm.groups},
        updates_per_call=updates_per_call)
    batch = random_batch(make_learner())
    if updates_per_call > 1:
      batch = batch._replace(data=_joined([batch.data] * updates_per_call))
    policy, value, target = np.array([1.0, 2.0]), 3.0, 9.0
    for call in range(6 // updates_per_call):
      sums = []
      for update in range(call * updates_per_call,
                          (call + 1) * updates_per_call):
        sums.append(np.sum(policy))
        # All gradients are at the same weights.
        by_policy, by_value = value, 10 * np.sum(policy)
        if update % 2 == 0:
          policy = policy - 0.001 * by_policy
        value -= 0.001 * by_value
        target = (target + value) / 2
      learned = learner.step(batch)
      self.assertAllClose(algorithm.policy, policy, rtol=1e-5)
      self.assertAllClose(algorithm.value, [value], rtol=1e-5)
      self.assertAllClose(algorithm.target, [target], rtol=1e-5)
      scalars = learned.scalars
      self.assertAllClose(scalars['value/gradient_norm'],
                          10 * np.mean(sums), rtol=1e-5)
      is_any_due = updates_per_call > 1 or call % 2 == 0
      for name in ('policy/gradient_norm', 'policy/learning_rate'):
        self.assertEqual(name in scalars, is_any_due)
      self.assertAllClose(scalars['value/learning_rate'], 0.001)
      self.assertAllEqual(algorithm.progress, [
          learner.num_updates, learner.num_env_frames])
      self.assertEqual(learner.num_env_frames, (call + 1) * _NUM_FRAMES)
      self.assertEqual(learner.num_updates, (call + 1) * updates_per_call)
    # In the end, the policy was not due.
    self.assertAllEqual(algorithm.learned_last, [0, 1])

  def test_update_k_of_a_call_has_batch_k_and_its_weights(self):
    algorithm = _OfData()
    learner = learner_lib.Learner(
        algorithm, {group: optimizers.Scheduled(
            tf.keras.optimizers.SGD(), lambda frames: 0.1)
                    for group in algorithm.groups}, updates_per_call=3)
    maker = make_learner()
    batches = [random_batch(maker, seed) for seed in range(6)]
    weights = np.random.default_rng(1).uniform(size=[6, 3]).astype('f')
    policy, value = np.array([1.0, 2.0]), 3.0
    for call in range(2):
      errors, losses, norms = [], [], []
      ks = range(3 * call, 3 * call + 3)
      for k in ks:
        rewards = batches[k].data.steps.env_outputs.reward[0].numpy()
        distances = value - rewards
        errors.append(np.abs(distances))
        losses.append(0.5 * np.sum(weights[k] * distances**2))
        if k % 2 == 0:
          slope = np.sum(weights[k] * rewards)
          norms.append(np.sqrt(2) * np.abs(slope))
          policy = policy - 0.1 * slope
        value -= 0.1 * np.sum(weights[k] * distances)
      learned = learner.step(structs.Batch(
          _joined([batches[k].data for k in ks]),
          tf.constant(weights[ks.start:ks.stop].ravel()), _NUM_FRAMES))
      self.assertAllClose(algorithm.policy, policy, rtol=1e-5)
      self.assertAllClose(algorithm.value, [value], rtol=1e-5)
      self.assertAllClose(learned.errors, errors, rtol=1e-5, atol=1e-6)
      scalars = learned.scalars
      self.assertAllClose(scalars['total_loss'], np.mean(losses), rtol=1e-5)
      # Of the updates in which the group was due.
      self.assertAllClose(
          scalars['policy/gradient_norm'], np.mean(norms), rtol=1e-5)
      self.assertEqual(learner.num_env_frames, (call + 1) * _NUM_FRAMES)

  def test_parts_are_columns(self):
    maker = make_learner()
    parts = [random_batch(maker, seed).data for seed in range(2)]
    weights = np.random.default_rng(1).uniform(size=[2, 3]).astype('f')
    whole = _joined(parts)
    found = [gradients.part_of(whole, [tf.constant(weights.ravel())],
                               tf.constant(k), 2) for k in range(2)]
    for part, weight, (data, [of_part]) in zip(
        parts, weights, found, strict=True):
      self.assertAllEqual(of_part, weight)
      for one, two in zip(tree.flatten(part), tree.flatten(data), strict=True):
        self.assertAllEqual(one, two)
    rewards = [part.steps.env_outputs.reward for part in parts]
    self.assertAllEqual(gradients.joined([tf.stack(rewards)]),
                        whole.steps.env_outputs.reward)
    self.assertIsNone(gradients.joined([]))

  def test_seeds_of_one_call_are_those_of_single_calls(self):
    batch = random_batch(make_learner())
    noise = []
    algorithm, learner = self._make()
    for _ in range(6):
      learner.step(batch)
      noise.append(float(algorithm.noise))
    self.assertLen(set(noise), 6)
    algorithm, learner = self._make(updates_per_call=3)
    batch = batch._replace(data=_joined([batch.data] * 3))
    for call in range(2):
      learned = learner.step(batch)
      self.assertAllClose(algorithm.noise, noise[3 * call + 2])
      self.assertAllClose(learned.scalars['noise'],
                          np.mean(noise[3 * call:3 * call + 3]))
    self.assertEqual(learner.num_env_frames, 2 * _NUM_FRAMES)

  def test_no_loop_of_micro_batches(self):
    with self.assertRaisesRegex(ValueError, 'cannot have micro-batches'):
      learner_lib.Learner(_TwoGroups(), {group: optimizers.Scheduled(
          tf.keras.optimizers.SGD(), lambda frames: 0.1)
                                         for group in ('policy', 'value')},
                          updates_per_call=2, micro_batch_size=1)

  def test_seeds_differ_by_run_and_update_only(self):
    batch = random_batch(make_learner())
    noise = []
    for seed in (3, 3, 4):
      algorithm, learner = self._make(seed)
      noise.append([])
      for _ in range(2):
        learner.step(batch)
        noise[-1].append(float(algorithm.noise))
    self.assertEqual(noise[0], noise[1])
    self.assertLen({*noise[0], *noise[2]}, 4)

  def test_all_that_a_checkpoint_must_hold(self):
    algorithm, learner = self._make()
    state = learner.state
    self.assertEqual(state['targets'], [algorithm.target])
    self.assertLen(state['optimizer'], 4)  # Iterations and rate of each group.
    self.assertEqual([v.path for v in state['variables']],
                     [v.path for v in algorithm.agent.variables])

  def test_optimizers_of_other_groups(self):
    with self.assertRaisesRegex(ValueError, r"\['actor'\].*'policy', 'value'"):
      learner_lib.Learner(_TwoGroups(), {'actor': optimizers.Scheduled(
          tf.keras.optimizers.SGD(), lambda frames: 0.1)})


# See `mutations.py`.
MUTATIONS = (
    dict(file='learning/gradients',
         catches='test_they_are_computed_one_after_the_other', rows=(
        ('a micro-batch that waits for the loss before only',
         '[g for of_group in gradients.values() for g in of_group\n'
         '         if g is not None]', '[*sums.values()]'),
    )),
    dict(file='learning/gradients', catches='test_parts_are_columns', rows=(
        ('every part is the first one', 'index * size if i', '0 * size if i'),
        ('parts overlap', 'index * size if i', 'index if i'),
        ('the start of all columns', 'of_columns, data.start',
         'lambda x: x, data.start'),
        ('targets in reverse', 'tf.unstack(targets[0]),',
         'tf.unstack(targets[0])[::-1],'),
    )),
    dict(file='learning/learner',
         catches='test_targets_follow_each_update', rows=(
        ('learning rate of the frames after the update',
         'schedule(self.num_env_frames)',
         'schedule(self.num_env_frames + batch.num_new_frames)'),
    )),
    dict(file='learning/learner',
         catches='test_seeds_of_one_call_are_those_of_single_calls', rows=(
        ('one update counted per call',
         'self.num_updates += self.updates_per_call', 'self.num_updates += 1'),
    )),
    dict(file='learning/learner',
         catches='test_what_is_not_due_is_not_computed', rows=(
        ('delay inverted', 'progress.num_updates % self.algorithm.delay == 0',
         'progress.num_updates % self.algorithm.delay != 0'),
        ('targets before the update',
         '    scalars = self._compiled_apply(gradients, learning_rates)\n'
         '    with tf.control_dependencies(list(scalars.values())):\n'
         '      self.algorithm.after_update(\n'
         '          groups, progress._replace(num_updates=progress.num_upda'
         'tes + 1))\n',
         '    self.algorithm.after_update(\n'
         '        groups, progress._replace(num_updates=progress.num_update'
         's + 1))\n'
         '    scalars = self._compiled_apply(gradients, learning_rates)\n'),
        ('progress without this update',
         'num_updates=progress.num_updates + 1)',
         'num_updates=progress.num_updates)'),
    )),
    dict(file='learning/learner',
         catches='test_update_k_of_a_call_has_batch_k_and_its_weights', rows=(
        ('delay of a single update inverted',
         'is_due = -self.num_updates % self.algorithm.delay < ',
         'is_due = -self.num_updates % self.algorithm.delay >= '),
        ('due in the first update of a call only',
         'self.algorithm.delay < self.updates_per_call',
         'self.algorithm.delay < 1'),
        ('delayed group learns in every update',
         'if is_due or group not in self.algorithm.delayed)', ')'),
        ('one seed for all updates of a call',
         'num_updates=progress.num_updates + tf.cast(index, tf.int64))',
         'num_updates=progress.num_updates)'),
        ('frames counted for each update of a call',
         '    self.num_env_frames = num_env_frames\n'
         '    self.num_updates +=',
         '    self.num_env_frames += (\n'
         '        batch.num_new_frames * self.updates_per_call)\n'
         '    self.num_updates +='),
        ('first batch in all updates of a call', 'update(groups, *part(index),',
         'update(groups, *part(0),'),
        ('weights of the first batch in all updates of a call',
         'update(groups, *part(index),',
         'update(groups, part(index)[0], part(0)[1],'),
        ('batches of a call in reverse', 'update(groups, *part(index),',
         'update(groups, *part(-1 - index),'),
        ('what was not due counts',
         'gradients_lib.mean_where(values, learns)\n',
         'tf.reduce_mean(values)\n'),
        ('errors of updates lost',
         'errors[0] if errors else None,', 'errors[0][0] if errors else None,'),
        ('weights of the loop left out',
         '[] if batch.importance_weights is None\n'
         '        else [batch.importance_weights]',
         '[]'),
    )),
    dict(file='learning/learner',
         catches='test_groups_that_are_not_clipped', rows=(
        ('all losses move all groups',
         'loss.by_group[group] for group in groups}',
         'sum(loss.by_group.values()) for group in groups}'),
        ('all groups are clipped', 'if group in self._unclipped else (',
         'if False else ('),
    )),
    dict(file='learning/learner',
         catches='test_a_loss_moves_its_own_group_by_its_own_rate', rows=(
        ('rate of the first group for all',
         'gradients[group], learning_rates[group], *limits\n',
         'gradients[group],\n'
         '          next(iter(learning_rates.values())), *limits\n'),
    )),
    dict(file='learning/learner',
         catches='test_several_updates_that_fail_are_not_whole', rows=(
        ('updates that failed count as made',
         'self.is_consistent = self.updates_per_call == 1', 'pass'),
        ('a single update that failed counts as half of several',
         'self.is_consistent = self.updates_per_call == 1',
         'self.is_consistent = False'),
    )),
    dict(file='learning/learner',
         catches='test_updates_without_their_statistics_are_not_whole', rows=(
        ('an update without its statistics counts as made',
         'self.is_consistent = False  # Statistics', 'pass  # Statistics'),
    )),
    dict(file='learning/gradients',
         catches='test_nothing_changes_if_the_sum_of_the_learners_fails', rows=(
        ('counts an update without its gradients',
         'with tf.control_dependencies([norm]):', 'if True:'),
    )),
    dict(file='learning/learner', catches='test_weights_of_columns', rows=(
        ('weights left out',
         'groups, data, importance_weights[0] if importance_weights else '
         'None,',
         'groups, data, None,'),
    )),
    dict(file='learning/gradients', catches='test_weights_of_columns', rows=(
        ('weights of the first micro-batch for all',
         'else importance_weights[start:end],',
         'else importance_weights[:end - start],'),
    )),
    dict(file='learning/learner',
         catches='test_published_weights_are_not_changed_by_updates', rows=(
        ('published weights are the variables themselves',
         'or self._compiled_copy())', 'or self.agent.variables)'),
        ('weights of an update are those before the update',
         'learned.values if learned else ()) or self._compiled_copy())',
         '[0 * v for v in learned.values] if learned else ()) or ())'),
    )),
    dict(file='learning/gradients',
         catches='test_micro_batches_make_the_same_update', rows=(
        ('means of micro-batches not weighted by size',
         'share = (end - start) / batch_size', 'share = 0.5'),
    )),
    dict(file='learning/gradients',
         catches='test_gradient_is_clipped_by_its_global_norm', rows=(
        ('gradients not clipped', 'if clip_norm is not None:', 'if False:'),
    )),
    dict(file='learning/gradients',
         catches='test_micro_batches_make_the_same_update', rows=(
        ('last micro-batch only', '[_add(g, o) for g, o', '[o for g, o'),
    )),
    dict(file='algorithms/base',
         catches='test_weights_in_the_loss_are_one_tanh_gaussian', rows=(
        ('last actions of the next step',
         'agent_outputs.action, env_outputs, data',
         'tf.roll(agent_outputs.action, -1, 0), env_outputs, data'),
        ('unrolls begin with a state of zeros',
         'env_outputs, data.start.agent_state)',
         'env_outputs,\n'
         '        tree.map_structure(\n'
         '            tf.zeros_like, data.start.agent_state))'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
