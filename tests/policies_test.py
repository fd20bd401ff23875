# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of policies: greedy, taking over weights, shared by several actors."""

from concurrent import futures
import threading
import time
from unittest import mock

from absl.testing import parameterized
import counting_agent
import in_process
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent.acting import actor as actor_lib
from scalable_agent.acting import dynamic_batching
from scalable_agent.acting import local
from scalable_agent.acting import policies
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.networks import factory
from scalable_agent.networks import heads
import tensorflow as tf
import tree


class AgentPolicyTest(tf.test.TestCase, parameterized.TestCase):

  def test_greedy_takes_the_most_likely_action(self):
    agent = counting_agent.CountingAgent()
    policy = policies.AgentPolicy(agent, greedy=True)
    output = _env_output([[0.0], [0.0]])._replace(done=np.ones([2], bool))
    chosen, _ = policy.step(np.array([0, 2], np.int32), output,
                            policy.initial_state(2))
    # Logits are (0, 1, last action).
    self.assertAllEqual(chosen.action, [1, 2])
    chosen, _ = policy.step(np.array([2, 0], np.int64), output,
                            policy.initial_state(2))
    self.assertAllEqual(chosen.action, [2, 1])

  @parameterized.parameters(
      (False, False), (True, False), (False, True))
  def test_a_step_takes_one_copy_from_the_device(self, on_host, is_shared):
    agent = factory.make_agent('mlp', structs.ArraySpec((2,), np.float32),
                              structs.ActionSpec((4,)), use_lstm=True, seed=3)
    policy = policies.AgentPolicy(agent, state_on_host=on_host or is_shared)
    if is_shared:
      policy = policies.SharedPolicy(policy)
      self.addCleanup(policy.close, 10)
    env_output = _env_output([[1., 2.], [3., 4.], [5., 6.]])
    _, state = policy.step(
        np.zeros([3], np.int32), env_output, policy.initial_state(3))
    kind = type(tf.constant(0.))
    with mock.patch.object(kind, 'numpy', autospec=True,
                           side_effect=kind.numpy) as copied, \
        mock.patch.object(kind, '__array__', autospec=True,
                          side_effect=kind.__array__) as converted:
      output, state = policy.step(np.zeros([3], np.int32), env_output, state)
    self.assertEqual(copied.call_count + converted.call_count, 1)
    for part in tree.flatten(output):
      self.assertIsInstance(part, np.ndarray)
    for part in state:
      self.assertIsInstance(
          part, np.ndarray if on_host or is_shared else tf.Tensor)

  def test_state_on_the_host_is_that_on_the_device(self):
    agent = factory.make_agent('mlp', structs.ArraySpec((2,), np.float32),
                              structs.ActionSpec((4,)), use_lstm=True, seed=3)
    results = []
    for on_host in (False, True):
      policy = policies.AgentPolicy(agent, greedy=True, state_on_host=on_host)
      state = policy.initial_state(3)
      for step in range(4):
        inputs = _env_output(np.reshape(np.arange(6.) + step, [3, 2]))
        output, state = policy.step(np.arange(3, dtype=np.int32), inputs, state)
        results.append((output, tree.map_structure(np.array, state)))
    tree.map_structure(self.assertAllEqual, results[:4], results[4:])
    self.assertLen(np.unique(results[3][1][0]), 3 * 256)


class LadderTest(parameterized.TestCase, tf.test.TestCase):

  def _policies(self, epsilon):
    agent = factory.make_agent(
        'mlp', structs.ArraySpec((2,), np.float32), structs.ActionSpec((50,)),
        heads.q_values(50), has_baseline=False, has_epsilon=True,
        use_lstm=True, lstm_units=4, seed=3)
    agent.set_epsilon(epsilon)
    shared = policies.SharedPolicy(
        policies.AgentPolicy(agent, state_on_host=True),
        dynamic_batching.Batcher(minimum_batch_size=6, timeout_ms=None))
    self.addCleanup(shared.close, 10)
    return agent, policies.AgentPolicy(agent, jit_compile=True), shared

  @parameterized.parameters(0., 1.)
  def test_each_environment_has_its_probability(self, epsilon):
    agent, alone, shared = self._policies(epsilon)
    inputs = _env_output(np.reshape(np.arange(6.), [3, 2]))
    actions = np.zeros([3], np.int32)
    greedy, _ = agent.step(actions, inputs.for_agent(), agent.initial_state(3),
                           greedy=True)
    ladders = [np.array(x, np.float32) for x in ([0, 1, 0], [1, 0, 0])]
    state = alone.initial_state(3)
    changed = np.zeros([2, 3])
    with futures.ThreadPoolExecutor(2) as executor:
      for _ in range(12):
        steps = [executor.submit(shared.step, actions, inputs, state, ladder)
                 for ladder in ladders]
        outputs = [
            [step.result()[0].action for step in steps],
            [alone.step(actions, inputs, state, x)[0].action for x in ladders]]
        changed += np.sum(outputs != greedy.action.numpy(), 0)
    # A random action is the best one of 50 now and then.
    self.assertAllEqual(
        changed > 12, np.maximum(ladders, epsilon) == 1)
    self.assertAllEqual(changed == 0, np.maximum(ladders, epsilon) == 0)

  def test_known_ladders(self):
    self.assertAllClose(
        local.make_ladder(4), [.4, .0471556, .0055591, .0006554], rtol=1e-4)
    self.assertAllClose(
        local.make_ladder(8), [.4, .16, .064, .0256, .01024, .004096, .0016384,
                               .0006554], rtol=1e-4)
    self.assertAllClose(local.make_ladder(1), [.4])


class _RecordingPolicy(policies.AgentPolicy):
  """Notes the number of environments of every step."""

  def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self.batch_sizes = []

  def step(self, last_action, env_output, state):
    self.batch_sizes.append(len(last_action))
    return super().step(last_action, env_output, state)


class SharedPolicyTest(tf.test.TestCase, parameterized.TestCase):

  in_thread = staticmethod(in_process.in_thread)

  def _shared(self, policy, *args, **kwargs):
    shared = policies.SharedPolicy(
        policy, dynamic_batching.Batcher(*args, **kwargs))
    self.addCleanup(shared.close, 10)
    return shared

  @parameterized.parameters('mlp', 'mlp with lstm', 'instructions')
  @pytest.mark.slow
  def test_equals_steps_of_policies_of_their_own(self, name):
    spec = structs.ArraySpec((5,), np.float32)
    if name == 'instructions':
      spec = {'frame': structs.ArraySpec((8, 8, 3), np.uint8),
              'instruction': structs.ArraySpec((), object)}
    agent = factory.make_agent(
        'deep' if name == 'instructions' else 'mlp', spec,
        structs.ActionSpec((4,)),
        use_lstm=name != 'mlp', use_last_action_reward=True,
        use_instruction=True, seed=3)
    rng = np.random.default_rng(4)
    weights = structs.Weights(
        7, [tf.constant(rng.normal(size=v.shape, scale=0.3), v.dtype)
            for v in agent.variables])
    policy = _RecordingPolicy(agent, greedy=True)
    shared = self._shared(policy, 6, 6, timeout_ms=None)
    self.assertEqual(shared.refresh(weights), 7)
    inputs = [[_random_inputs(np.random.default_rng([i, t]), i + 1, spec)
               for t in range(5)] for i in range(3)]

    def act(policy, steps):
      state = policy.initial_state(len(steps[0][0]))
      outputs = []
      for last_action, env_output in steps:
        output, state = policy.step(last_action, env_output, state)
        outputs.append(tree.map_structure(np.asarray, (output, state)))
      return outputs

    actors = [self.in_thread(act, shared, steps) for steps in inputs]
    results = [actor.result() for actor in actors]
    self.assertEqual(policy.batch_sizes, [6] * 5)
    for steps, outputs in zip(inputs, results):
      # Alone, and so in batches of 1, 2 and 3.
      for expected, output in zip(act(policy, steps), outputs):
        tree.assert_same_structure(expected, output)
        self.assertAllEqual(expected[0].action, output[0].action)
        tree.map_structure(
            lambda e, o: self.assertAllClose(e, o, rtol=1e-4, atol=1e-5),
            expected, output)
    # The rows differ, so a mix-up would show.
    logits = np.concatenate([outputs[0][0].policy
                             for outputs in results])
    self.assertLen(np.unique(logits[:, 0]), 6)

  def test_actors_make_the_unrolls_they_make_alone(self):
    def unrolls(policies_of_actors, num_unrolls=6):
      with self._environment(2) as one, self._environment(3) as other:
        actors = [self.in_thread(_make_unrolls, env, policy, num_unrolls)
                  for env, policy in zip((one, other), policies_of_actors)]
        return [actor.result() for actor in actors]

    alone = unrolls([policies.AgentPolicy(counting_agent.CountingAgent())
                     for _ in range(2)])
    policy = _RecordingPolicy(counting_agent.CountingAgent())
    shared = self._shared(policy, 5, 5, timeout_ms=None)
    together = unrolls([shared, shared])
    self.assertEqual(policy.batch_sizes, [5] * (6 * 4))
    tree.map_structure(self.assertAllEqual, alone, together)

  def _environment(self, num_envs):
    return environments.make_vec(
        ['counting'] * num_envs, list(range(num_envs)),
        environments.EnvironmentSettings(num_action_repeats=1))

  def test_refresh_serves_all(self):
    shared = self._shared(policies.AgentPolicy(counting_agent.CountingAgent()))
    weights = lambda version, scale: structs.Weights(
        version, [tf.constant(scale)])
    self.assertEqual(shared.refresh(weights(0, 1.0)), 0)
    step = lambda: shared.step(
        np.zeros([1], np.int32), _env_output([[5.0]]),
        shared.initial_state(1))[0].baseline
    self.assertAllEqual(step(), [5])
    self.assertAllEqual(self.in_thread(step).result(), [5])
    self.assertEqual(shared.refresh(weights(3, 2.0)), 3)
    self.assertAllEqual(self.in_thread(step).result(), [10])
    # An actor that is late with older weights changes nothing. It gets the
    # version that acts.
    self.assertEqual(shared.refresh(weights(2, 9.0)), 3)
    self.assertAllEqual(self.in_thread(step).result(), [10])

  def test_no_refresh_in_the_middle_of_a_step(self):
    tape, entered, leave = [], threading.Event(), threading.Event()

    class SlowPolicy:
      output_spec = ()

      def refresh(self, unused_weights):
        tape.append('refresh')
        return 1

      def step(self, last_action, unused_env_output, state):
        tape.append('step begins')
        entered.set()
        leave.wait()
        tape.append('step ends')
        return last_action, state

    shared = self._shared(SlowPolicy())
    step = self.in_thread(
        shared.step, np.zeros([1], np.int32), _env_output([[0.0]]), ())
    entered.wait()
    refresh = self.in_thread(
        shared.refresh, structs.Weights(1, [tf.constant(1.0)]))
    time.sleep(0.05)
    leave.set()
    step.result()
    self.assertEqual(refresh.result(), 1)
    self.assertEqual(tape, ['step begins', 'step ends', 'refresh'])

  def test_close_ends_actors_quietly(self):
    shared = self._shared(
        policies.AgentPolicy(counting_agent.CountingAgent()), 3,
        timeout_ms=None)
    with self._environment(2) as env:
      run = self.in_thread(_make_actor(env, shared).run)
      while not any(t.name == 'batcher-policy' for t in threading.enumerate()):
        time.sleep(0.001)
      shared.close(10)
      self.assertIsNone(run.result())

  def test_error_in_a_step_is_no_quiet_end(self):
    policy = mock.Mock()
    policy.step.side_effect = ValueError('Broken')
    shared = self._shared(policy)
    for _ in range(2):
      with self.assertRaisesRegex(ValueError, 'Broken'):
        shared.step(np.zeros([1], np.int32), _env_output([[0.0]]), ())


def _make_actor(env, policy):
  weights = structs.Weights(0, [tf.constant(1.0)])
  return actor_lib.Actor(env, policy, lambda: weights, queues.BoundedQueue(1),
                         4, timing.StageTimer())


def _make_unrolls(env, policy, num_unrolls):
  actor = _make_actor(env, policy)
  copies = []
  for _ in range(num_unrolls):
    unroll, release = actor.make_unroll()
    copies.append(tree.map_structure(np.copy, unroll))
    release()
  return copies


def _env_output(observation):
  num_envs = len(observation)
  return structs.StepOutput(
      reward=np.zeros([num_envs], np.float32), info=(),
      done=np.zeros([num_envs], np.bool_),
      observation=np.array(observation, np.float32))


def _random_inputs(rng, num_envs, spec):
  """Returns last actions and a `StepOutput`."""
  if isinstance(spec, dict):
    observation = {
        'frame': rng.integers(256, size=(num_envs, 8, 8, 3), dtype=np.uint8),
        # From different numbers of words, padded to different widths.
        'instruction': np.array([b' '.join([b'go'] * rng.integers(20))
                                 for _ in range(num_envs)], object)}
  else:
    observation = rng.normal(size=(num_envs, 5)).astype(np.float32)
  return rng.integers(4, size=num_envs, dtype=np.int32), structs.StepOutput(
      reward=rng.normal(size=num_envs).astype(np.float32),
      info=structs.StepOutputInfo(*(np.zeros(num_envs) for _ in range(3))),
      done=rng.random(num_envs) < 0.3, observation=observation)


# See `mutations.py`.
MUTATIONS = (
    dict(file='acting/policies', catches='test_refresh_serves_all', rows=(
        ('older weights overwrite newer ones',
         'if weights.version > self._version:', 'if True:'),
        ('weights never taken over', 'if weights.version > self._version:',
         'if self._version < 0:'),
        ('version of the caller instead of that of the policy',
         'self._assign(list(weights.values))\n'
         '      self._version = weights.version\n'
         '    return self._version',
         'self._assign(list(weights.values))\n'
         '      self._version = weights.version\n'
         '    return weights.version'),
    )),
    dict(file='acting/policies',
         catches='test_greedy_takes_the_most_likely_action', rows=(
        ('never greedy', 'env_output, state, self._greedy, *ladder)',
         'env_output, state, False, *ladder)'),
    )),
    dict(file='acting/policies',
         catches='test_each_environment_has_its_probability', rows=(
        ('ladder lost in a shared policy',
         'env_output.for_agent(), state, *ladder)',
         'env_output.for_agent(), state)'),
    )),
    dict(file='networks/agents',
         catches='test_each_environment_has_its_probability', rows=(
        ('warm-up by the ladder', 'tf.maximum(self.epsilon, ladder)', 'ladder'),
        ('the ladder of another row',
         'tf.reshape(tf.maximum(self.epsilon, ladder), [-1, *axes])',
         'tf.reshape(tf.maximum(self.epsilon, ladder), [-1, *axes])[::-1]'),
    )),
    dict(file='acting/local', catches='test_known_ladders', rows=(
        ('ladder reversed', '(1 + 7 * share)', '(8 - 7 * share)'),
        ('one rung too many', 'max(num_environments - 1, 1)',
         'num_environments'),
    )),
    dict(file='acting/policies',
         catches='test_state_on_the_host_is_that_on_the_device', rows=(
        ('no state',
         '    if self._state_on_host:\n'
         '      return output',
         '    if False:\n'
         '      return output'),
        ('parts overlap', '    start = end\n',
         '    start += 1\n'),
    )),
    dict(file='acting/policies',
         catches='test_no_refresh_in_the_middle_of_a_step', rows=(
        ('refreshed within a step',
         '    with self._lock:\n'
         '      return self._policy.refresh(weights)',
         '    return self._policy.refresh(weights)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
