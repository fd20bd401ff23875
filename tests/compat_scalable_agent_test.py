# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests the 34 names of DeepMind's program, as DeepMind uses the names."""

import contextlib
import importlib
import os
import pathlib
import sys
import threading
import time
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import eager
import numpy as np
import py_process_example
import pytest
from scalable_agent import errors
from scalable_agent.compat.scalable_agent import dmlab30
from scalable_agent.compat.scalable_agent import dynamic_batching
from scalable_agent.compat.scalable_agent import environments
from scalable_agent.compat.scalable_agent import experiment
from scalable_agent.compat.scalable_agent import py_process
from scalable_agent.compat.scalable_agent import vtrace
from scalable_agent.losses import actor_critic
from scalable_agent.scores import dmlab30 as scores
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     'fake_deepmind_lab')
_NAMES = {
    vtrace: 'VTraceReturns VTraceFromLogitsReturns from_logits '
            'from_importance_weights log_probs_from_logits_and_actions',
    dynamic_batching: 'batch_fn batch_fn_with_options',
    py_process: 'PyProcess PyProcessHook',
    environments: 'LocalLevelCache DEFAULT_ACTION_SET PyProcessDmLab '
                  'StepOutputInfo StepOutput FlowEnvironment',
    experiment: 'ActorOutput AgentOutput is_single_machine Agent build_actor '
                'compute_baseline_loss compute_entropy_loss '
                'compute_policy_gradient_loss build_learner create_environment '
                'pin_global_variables train test main',
    dmlab30: 'LEVEL_MAPPING HUMAN_SCORES RANDOM_SCORES ALL_LEVELS '
             'compute_human_normalized_score'}
_FLAGS = dict(unroll_length=5, batch_size=2, width=12, height=8,
              num_action_repeats=4)


class _FakeLab(absltest.TestCase):
  """Processes find the fake DeepMind Lab."""

  def setUp(self):
    super().setUp()
    sys.path.insert(0, _FAKE)
    self.addCleanup(sys.path.remove, _FAKE)
    self.addCleanup(sys.modules.pop, 'deepmind_lab', None)


def _flags(**values):
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  return flagsaver.flagsaver(**_FLAGS | values)


class _Counter:
  """An environment whose episodes have three steps."""

  def __init__(self):
    self._steps = 0

  def _observation(self):
    frame = np.full([8, 12, 3], self._steps, np.uint8)
    return frame, f'go {self._steps}'

  def initial(self):
    return self._observation()

  def step(self, action):
    self._steps += 1
    done = self._steps == 3
    if done:
      self._steps = 0
    return np.float32(action[3]), np.array(done), self._observation()


class NamesTest(absltest.TestCase):

  def test_all_names_are_there_with_their_difference(self):
    names = {(module, name) for module, text in _NAMES.items()
             for name in text.split()}
    self.assertLen(names, 34)
    for module, name in names:
      found = getattr(module, name)
      if callable(found) and found.__module__.startswith(
          'scalable_agent.compat.scalable_agent.'):
        self.assertRegex(
            f'{found.__doc__} {found.__init__.__doc__} {module.__doc__}',
            '(?i)difference', name)

  def test_tuples_have_the_fields_of_the_reference(self):
    for made, fields in (
        (vtrace.VTraceReturns, 'vs pg_advantages'),
        (vtrace.VTraceFromLogitsReturns, 'vs pg_advantages log_rhos '
         'behaviour_action_log_probs target_action_log_probs'),
        (environments.StepOutputInfo, 'episode_return episode_step'),
        (environments.StepOutput, 'reward info done observation'),
        (experiment.AgentOutput, 'action policy_logits baseline'),
        (experiment.ActorOutput,
         'level_name agent_state env_outputs agent_outputs')):
      self.assertEqual(made._fields, tuple(fields.split()))


class VtraceTest(absltest.TestCase):

  def test_calls_of_the_reference(self):
    logits = np.random.RandomState(0).randn(2, 3, 4, 5)
    actions = np.zeros([3, 4], np.int32)
    values = dict(
        discounts=np.full([3, 4], 0.9), rewards=np.ones([3, 4]),
        values=np.ones([3, 4]), bootstrap_value=np.ones([4]),
        clip_rho_threshold=3.7, clip_pg_rho_threshold=2.2)
    log_probs = [vtrace.log_probs_from_logits_and_actions(
        policy_logits=x, actions=actions) for x in logits]
    one = vtrace.from_logits(
        behaviour_policy_logits=logits[0], target_policy_logits=logits[1],
        actions=actions, **values)
    two = vtrace.from_importance_weights(
        log_rhos=log_probs[1] - log_probs[0], **values)
    np.testing.assert_allclose(one.vs, two.vs, rtol=1e-5)


class DynamicBatchingTest(absltest.TestCase):

  def test_batcher(self):
    batcher = dynamic_batching._Batcher(
        minimum_batch_size=1, maximum_batch_size=1, timeout_ms=None)
    results = []
    thread = threading.Thread(target=lambda: results.extend(
        batcher.compute([[1]], [tf.int32])))
    thread.start()
    (inputs,), computation_id = batcher.get_inputs([tf.int32])
    batcher.set_outputs([inputs + 42], computation_id)
    thread.join()
    self.assertEqual(results[0].tolist(), [43])
    for copy in (int, np.int64, tf.constant):
      thread = threading.Thread(target=lambda: results.extend(
          batcher.compute([[2]], [tf.int32])))
      thread.start()
      (inputs,), computation_id = batcher.get_inputs([tf.int32])
      computation_id = copy(computation_id)
      batcher.set_outputs([inputs + 42], computation_id)
      thread.join()
      self.assertEqual(results[-1].tolist(), [44])
    batcher.close(cancel_pending_enqueues=True, name='close')
    with self.assertRaises(tf.errors.CancelledError):
      batcher.compute([[1]], [tf.int32])


class PyProcessTest(absltest.TestCase):

  def test_small(self):
    p = py_process.PyProcess(py_process_example.Example, 1)
    with py_process.PyProcessHook():
      self.assertIsNone(p.proxy.inc())
      result = p.proxy.compute(tf.constant(2))
      self.assertEqual(result['x'].dtype, tf.int32)
      self.assertEqual(result['x'].numpy().tolist(), [4])
      with self.assertRaisesRegex(ValueError, 'No tensor specifications were '
                                  'provided for: close'):
        p.proxy.close()
    with self.assertRaises(tf.errors.OutOfRangeError):
      p.proxy.inc()

  def test_in_a_function(self):
    p = py_process.PyProcess(py_process_example.Example, 1)

    @tf.function
    def step():
      p.proxy.inc()
      return p.proxy.compute(2)

    for expected in 4, 5, 6:
      self.assertEqual(step()['x'].numpy().tolist(), [expected])
    self.assertEqual(
        step.get_concrete_function().structured_outputs['x'].shape, [1])
    p.close()
    with self.assertRaisesRegex(tf.errors.OutOfRangeError, 'Example is closed'):
      step()

  def test_calls_are_the_same_in_a_function(self):
    p = py_process.PyProcess(py_process_example.Echo)
    for values in (1, True, 'a', [1, 2], np.float64(.5)):
      call = lambda values=values: p.proxy.kind(values)
      self.assertEqual(call().numpy(), tf.function(call)().numpy(), values)
    for call in p.proxy.truth, tf.function(p.proxy.truth):
      self.assertIs(bool(call()), True)
    for call in p.proxy.nothing, tf.function(p.proxy.nothing):
      self.assertIsNone(call())
    p.close()

  def test_a_failed_start_fails_no_later_hook(self):
    good, bad, later = (py_process.PyProcess(py_process_example.Example, a)
                        for a in (1, 'wrong', 1))
    with self.assertRaisesRegex(errors.EnvironmentProcessError, 'foo'):
      py_process.PyProcessHook().begin()
    with self.assertRaises(tf.errors.OutOfRangeError):  # Nothing goes on.
      good.proxy.inc()
    del later
    other = py_process.PyProcess(py_process_example.Example, 'wrong')
    with self.assertRaisesRegex(errors.EnvironmentProcessError, 'foo'):
      other.start()
    with py_process.PyProcessHook():
      pass
    del bad, other
    again = py_process.PyProcess(py_process_example.Example, 1)
    with mock.patch.object(py_process.remote, 'Remote', side_effect=OSError), \
        self.assertRaises(OSError):
      again.start()
    again.start()
    py_process.PyProcessHook().end()
    with self.assertRaises(tf.errors.OutOfRangeError):
      again.proxy.inc()

  def test_a_call_starts_the_process(self):
    p = py_process.PyProcess(py_process_example.Example, a=1)
    self.assertEqual(p.proxy.compute(2)['x'].numpy().tolist(), [3])
    self.assertFalse(p.proxy.has_tensorflow())  # The process starts fast.
    p.close(session=None)

  def test_close_ends_waiting_calls(self):
    p = py_process.PyProcess(py_process_example.Example, 1)
    hook = py_process.PyProcessHook()
    hook.begin()
    caught = []

    def run():
      try:
        p.proxy.wait()
      except tf.errors.OutOfRangeError as e:
        caught.append(e)
    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    hook.end(None)
    thread.join()
    self.assertLen(caught, 1)

  def test_a_call_that_fails_after_close_is_out_of_range(self):
    p = py_process.PyProcess(py_process_example.Example, 1)
    with mock.patch.object(py_process.remote, 'Remote') as make:
      p.start()

    def close_and_fail(*args):
      make.return_value.call.side_effect = None
      p.close()
      raise OSError(args)

    make.return_value.call.side_effect = close_and_fail
    with self.assertRaisesRegex(tf.errors.OutOfRangeError, 'is closed'):
      p.proxy.inc()

  def test_the_time_of_a_call_is_limited_by_the_flag(self):
    for step_timeout_s in (300, 7):
      p = py_process.PyProcess(py_process_example.Example, 1)
      with flagsaver.flagsaver(step_timeout_s=step_timeout_s), \
          mock.patch.object(py_process.remote, 'Remote') as make:
        p.start()
      self.assertEqual(make.call_args.args[2], step_timeout_s)

  def test_error_in_constructor(self):
    p = py_process.PyProcess(py_process_example.Example, 'wrong')
    with self.assertRaisesRegex(errors.EnvironmentProcessError, 'foo'):
      p.start()

  def test_close_after_error_and_otherwise(self):
    for is_error in (False, True):
      path = self.create_tempfile().full_path
      p = py_process.PyProcess(py_process_example.Example, 1, path=path)
      p.start()
      if is_error:
        with self.assertRaisesRegex(errors.EnvironmentProcessError, 'foo'):
          p.proxy.something()
      p.close()
      self.assertEqual(pathlib.Path(path).read_text(), 'was_closed')

  def test_collection(self):
    self.assertEqual(py_process.PyProcess.COLLECTION, 'py_process_processes')


class EnvironmentsTest(_FakeLab):

  def test_flow_environment(self):
    env = environments.FlowEnvironment(_Counter())
    output, state = env.initial()
    self.assertTrue(output.done)
    self.assertEqual(output.info, (0.0, 0))
    seen = []
    for action in (environments.DEFAULT_ACTION_SET[0],) * 4:
      output, state = env.step(tf.constant(action), state)
      seen.append((float(output.reward), float(output.info.episode_return),
                   int(output.info.episode_step), bool(output.done),
                   int(output.observation[0][0, 0, 0])))
    self.assertEqual(seen, [(1, 1, 1, False, 1), (1, 2, 2, False, 2),
                            (1, 3, 3, True, 0), (1, 1, 1, False, 1)])
    self.assertEqual(output.info.episode_return.dtype, tf.float32)
    self.assertEqual(output.info.episode_step.dtype, tf.int32)
    self.assertEqual(int(state[0]), 4)

  def test_lab_is_seeded_and_restarted_as_in_the_reference(self):
    lab = importlib.import_module('deepmind_lab').Lab
    del lab.calls[:]
    env = environments.PyProcessDmLab(
        'seekavoid_arena_01', {'width': 12, 'height': 8}, 600, seed=3)
    self.addCleanup(env.close)
    frame, _ = env.initial()
    self.assertEqual(frame.shape, (8, 12, 3))
    for _ in range(2):
      reward, done, _ = env.step(environments.DEFAULT_ACTION_SET[0])
    self.assertEqual((reward.dtype, done.item()), (np.float32, True))
    random_state = np.random.RandomState(3)
    seeds = [random_state.randint(0, 2**31 - 1) for _ in range(2)]
    found = [call for call in lab.calls if 'reset' in str(call)]
    for seed, call in zip(seeds, found, strict=True):
      self.assertIn(str(seed), str(call))

  def test_level_cache(self):
    cache = environments.LocalLevelCache(
        cache_dir=self.create_tempdir().full_path)
    path = self.create_tempfile(content='map').full_path
    self.assertFalse(cache.fetch('key', path))
    cache.write('key', path)
    copy = self.create_tempfile().full_path
    self.assertTrue(cache.fetch('key', copy))
    self.assertEqual(pathlib.Path(copy).read_text(), 'map')


class Dmlab30Test(absltest.TestCase):

  def test_is_that_of_the_program(self):
    self.assertLen(dmlab30.LEVEL_MAPPING, 30)
    self.assertLen(dmlab30.ALL_LEVELS, 32)
    self.assertEqual(dmlab30.HUMAN_SCORES['rooms_watermaze'], 54)
    self.assertEqual(dmlab30.RANDOM_SCORES['rooms_watermaze'], 4.065)
    returns = {name: [float(i)] for i, name in enumerate(dmlab30.LEVEL_MAPPING)}
    self.assertEqual(
        dmlab30.compute_human_normalized_score(returns, per_level_cap=100),
        scores.compute_human_normalized_score(returns, per_level_cap=100))


class AgentTest(parameterized.TestCase):

  def _unroll(self, agent, num_steps=6):
    env = environments.FlowEnvironment(_Counter())
    with _flags(unroll_length=num_steps - 1):
      return experiment.build_actor(agent, env, 'level',
                                    environments.DEFAULT_ACTION_SET)

  @eager.eagerly()
  def test_the_steps_of_an_actor(self):
    agent = experiment.Agent(9)
    env = environments.FlowEnvironment(_Counter())
    with _flags():
      first, second = (experiment.build_actor(
          agent, env, 'level', environments.DEFAULT_ACTION_SET)
                       for _ in range(2))
    self.assertEqual(first.level_name, 'level')
    self.assertEqual(first.env_outputs.done.numpy().tolist(),
                     [True, False, False, True, False, False])
    self.assertEqual(first.env_outputs.info.episode_step.numpy().tolist(),
                     [0, 1, 2, 3, 1, 2])
    # Unrolls overlap by an entry, and the first begins with zeros.
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_array_equal(a[-1], b[0]),
        first[2:], second[2:])
    for x in tf.nest.flatten(
        [first.agent_state, [y[0] for y in first.agent_outputs]]):
      self.assertFalse(np.any(x))
    # Rewards are those of the actions of the set: 1 forward, -1 backward.
    moves = np.array(environments.DEFAULT_ACTION_SET)[:, 3]
    np.testing.assert_array_equal(
        first.env_outputs.reward[1:],
        moves[first.agent_outputs.action.numpy()[1:]])
    # The agent state belongs to the first entry.
    outputs, state = agent.unroll(
        *tf.nest.map_structure(lambda x: x[:-1, tf.newaxis], (
            first.agent_outputs.action, first.env_outputs)),
        agent.initial_state(1))
    np.testing.assert_allclose(outputs.policy_logits[:, 0],
                               first.agent_outputs.policy_logits[1:], atol=1e-5)
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-5),
        state, second.agent_state)

  def test_threads_that_call_first_share_a_network(self):
    agent = experiment.Agent(9)
    made, make = [], agent._make
    both = threading.Barrier(2)

    def slow_make(shape):
      made.append(shape)
      time.sleep(.1)
      make(shape)

    def run():
      both.wait()
      experiment.build_actor(agent, environments.FlowEnvironment(_Counter()),
                             'level', environments.DEFAULT_ACTION_SET)

    with _flags(unroll_length=1), \
        mock.patch.object(agent, '_make', slow_make):
      actors = [threading.Thread(target=run) for _ in range(2)]
      for actor in actors:
        actor.start()
      for actor in actors:
        actor.join()
    self.assertLen(made, 1)

  def test_tensorflow_2_must_be_on(self):
    with mock.patch.object(
        tf.compat.v1, 'executing_eagerly_outside_functions',
        return_value=False), self.assertRaisesRegex(
            RuntimeError, 'leave out tf.disable_v2_behavior'):
      experiment.Agent(9)

  def test_weights_follow_the_seed_of_tensorflow(self):
    weights = []
    self.addCleanup(tf.random.set_seed, None)
    for seed in (7, 7, 8):
      tf.random.set_seed(seed)
      agent = experiment.Agent(9)
      agent._make((8, 12, 3))
      weights.append(agent.trainable_variables[0].numpy())
    np.testing.assert_array_equal(*weights[:2])
    self.assertFalse(np.array_equal(*weights[1:]))

  def test_agent_has_the_parameters_of_the_reference(self):
    agent = experiment.Agent(num_actions=9)
    frames = np.zeros([2, 72, 96, 3], np.uint8)
    info = environments.StepOutputInfo(np.zeros(2), np.zeros(2))
    output, state = agent((tf.zeros([2], tf.int32), environments.StepOutput(
        np.zeros(2, np.float32), info, np.ones(2, bool),
        (frames, np.array(['go to', ''])))), agent.initial_state(2))
    self.assertEqual(sum(int(np.prod(v.shape))
                         for v in agent.trainable_variables), 1_628_010)
    self.assertEqual([*map(str, (x.dtype.name for x in output))],
                     ['int32', 'float32', 'float32'])
    self.assertEqual([x.shape for x in (*output, *state)],
                     [(2,), (2, 9), (2,), (2, 256), (2, 256)])

  def test_agent_in_a_batcher(self):
    # As the reference does on a single machine.
    agent = experiment.Agent(9)
    reference = self._unroll(agent)
    build = agent._build
    agent._build = dynamic_batching.batch_fn(lambda *args: build(*args))
    self.addCleanup(agent._build.close)
    unroll = self._unroll(agent)
    self.assertEqual(unroll.agent_outputs.policy_logits.shape,
                     reference.agent_outputs.policy_logits.shape)
    np.testing.assert_allclose(unroll.agent_outputs.policy_logits[1],
                               reference.agent_outputs.policy_logits[1],
                               atol=1e-5)

  def test_losses_by_the_formulas(self):
    random = np.random.RandomState(1)
    logits, advantages = random.randn(3, 2, 4), random.randn(3, 2)
    actions = random.randint(4, size=[3, 2])
    p = np.exp(logits) / np.sum(np.exp(logits), -1, keepdims=True)
    self.assertAlmostEqual(float(experiment.compute_entropy_loss(logits)),
                           np.sum(p * np.log(p)), places=4)
    self.assertAlmostEqual(
        float(experiment.compute_policy_gradient_loss(
            logits, actions, advantages)),
        -np.sum(np.log(np.take_along_axis(p, actions[..., None], -1)[..., 0])
                * advantages), places=4)
    self.assertAlmostEqual(
        float(experiment.compute_baseline_loss(tf.constant(advantages))),
        0.5 * np.sum(advantages**2), places=5)

  def test_losses_of_the_same_name_say_where_the_reference_is(self):
    logits = tf.zeros([3, 2, 4])
    for call in (
        lambda: actor_critic.compute_entropy_loss(logits),
        lambda: actor_critic.compute_policy_gradient_loss(
            logits, tf.zeros([3, 2], tf.int32), tf.zeros([3, 2]))):
      with self.assertRaisesRegex(
          ValueError, r'compat\.scalable_agent\.experiment'):
        call()

  @parameterized.parameters('abs_one', 'soft_asymmetric')
  @pytest.mark.slow
  @eager.eagerly()
  def test_update_by_the_formulas(self, reward_clipping):
    agent = experiment.Agent(9)
    unrolls = [self._unroll(agent) for _ in range(2)]
    stack = lambda *x: tf.stack(x, axis=1)
    env_outputs, agent_outputs = (
        tf.nest.map_structure(stack, *(u[i] for u in unrolls)) for i in (2, 3))
    env_outputs = env_outputs._replace(reward=3 * env_outputs.reward)
    agent_state = tf.nest.map_structure(
        lambda *x: tf.stack(x), *(u.agent_state for u in unrolls))
    variables = agent.trainable_variables
    with tf.GradientTape() as tape:
      outputs, _ = agent.unroll(agent_outputs.action, env_outputs, agent_state)
      log_pi = tf.nn.log_softmax(outputs.policy_logits[:-1])
      of_actions = lambda x: tf.gather(
          x, agent_outputs.action[1:], batch_dims=2)
      rho = np.exp(of_actions(log_pi) - of_actions(tf.nn.log_softmax(
          agent_outputs.policy_logits[1:])))
      r, v = env_outputs.reward[1:].numpy(), outputs.baseline.numpy()
      r = np.clip(r, -1, 1) if reward_clipping == 'abs_one' else np.where(
          r < 0, 1.5 * np.tanh(r / 5), 5 * np.tanh(r / 5))
      gamma = 0.99 * ~env_outputs.done[1:].numpy()
      vs, clipped = v.copy(), np.minimum(rho, 1)
      for t in reversed(range(5)):
        delta = clipped[t] * (r[t] + gamma[t] * v[t + 1] - v[t])
        vs[t] = v[t] + delta + gamma[t] * clipped[t] * (vs[t + 1] - v[t + 1])
      loss = -tf.reduce_sum(of_actions(log_pi) * clipped * (
          r + gamma * vs[1:] - v[:-1]))
      loss += 0.5 * 0.5 * tf.reduce_sum((vs[:-1] - outputs.baseline[:-1])**2)
      loss += 0.5 * tf.reduce_sum(tf.exp(log_pi) * log_pi)
    gradients = [tf.convert_to_tensor(g).numpy()
                 for g in tape.gradient(loss, variables)]
    before = [v.numpy() for v in variables]
    with _flags(reward_clipping=reward_clipping, entropy_cost=0.5,
                total_environment_frames=100):
      done, infos, frames = experiment.build_learner(
          agent, agent_state, env_outputs, agent_outputs)
      self.assertEqual(int(frames), 2 * 5 * 4)
      np.testing.assert_array_equal(done, env_outputs.done[1:])
      np.testing.assert_array_equal(infos.episode_step,
                                    env_outputs.info.episode_step[1:])
      for old, g, new in zip(before, gradients, variables):
        step = 0.00048 * g / np.sqrt(1 + 0.01 * (g**2 - 1) + 0.1)
        np.testing.assert_allclose(new, old - step, atol=2e-6)
      for expected in (80, 120, 160):
        before = [v.numpy() for v in variables]
        *_, frames = experiment.build_learner(
            agent, agent_state, env_outputs, agent_outputs)
        self.assertEqual(int(frames), expected)
      # The learning rate had decayed to 0 when the last update began.
      for old, new in zip(before, variables):
        np.testing.assert_array_equal(old, new)


class ExperimentTest(_FakeLab, parameterized.TestCase):

  def test_old_runs_do_not_change_the_rewards_of_an_update(self):
    logdir = self.create_tempdir().full_path
    config_lib.Config(logdir=logdir, reward_clipping='none').save()
    open(os.path.join(logdir, 'ckpt-7.index'), 'w').close()
    with _flags(logdir=logdir):
      self.assertEqual(experiment._config().reward_clipping, 'abs_one')
      self.assertEqual(
          experiment._config(is_new=False).reward_clipping, 'none')

  def test_is_single_machine(self):
    with _flags():
      self.assertTrue(experiment.is_single_machine())
    with _flags(task=0):
      self.assertFalse(experiment.is_single_machine())

  def test_create_environment(self):
    with _flags(), py_process.PyProcessHook():
      env = experiment.create_environment(
          'rooms_collect_good_objects_test', seed=1, is_test=True)
      output, state = env.initial()
      frame, instruction = output.observation
      self.assertEqual((frame.shape, instruction.dtype),
                       ((8, 12, 3), tf.string))
      action = tf.constant(experiment.environments.DEFAULT_ACTION_SET[0])
      output, _ = env.step(action, state)
      self.assertEqual((output.reward.dtype, int(output.info.episode_step)),
                       (tf.float32, 1))

  def test_variables_are_pinned(self):
    with experiment.pin_global_variables('/cpu:0'):
      variable = tf.Variable(1.0)
    self.assertIn('CPU:0', variable.device)
    with contextlib.ExitStack() as stack:
      stack.enter_context(experiment.pin_global_variables('/job:none'))
      with self.assertRaises((ValueError, tf.errors.OpError)):
        tf.Variable(1.0)

  def test_the_suite_is_that_of_the_mode(self):
    train, test = [*dmlab30.LEVEL_MAPPING], [*dmlab30.LEVEL_MAPPING.values()]
    for function, levels, expected in (
        (experiment.train, train, 'dmlab30'),
        (experiment.test, test, 'dmlab30'),
        (experiment.train, test, ','.join(test)),
        (experiment.test, train, ','.join(train)),
        (experiment.test, test[:2], ','.join(test[:2]))):
      with mock.patch.object(experiment.program, 'import_mode') as import_mode:
        function(environments.DEFAULT_ACTION_SET, levels)
      [config] = import_mode.call_args.args
      self.assertEqual(config.level_name, expected)
      self.assertEqual(config.mode, function.__name__)

  @pytest.mark.storm
  def test_train_test_and_main(self):
    logdir = self.create_tempdir().full_path
    small = dict(logdir=logdir, total_environment_frames=80,
                 num_actors=2, num_actor_groups=1)
    levels = ['explore_goal_locations_small']
    with _flags(**small, num_action_repeats=1, unroll_length=2):
      self.assertEqual(experiment.train(
          environments.DEFAULT_ACTION_SET, levels), 0)
    self.assertIn('checkpoint', os.listdir(logdir))
    with _flags(**small, test_num_episodes=1, mode='test'):
      self.assertEqual(experiment.test(
          environments.DEFAULT_ACTION_SET, levels), 0)
      with self.assertRaisesRegex(errors.ConfigError, 'DEFAULT_ACTION_SET'):
        experiment.train(environments.DEFAULT_ACTION_SET[:3], levels)
      self.assertEqual(experiment.main([]), 0)
    self.assertNotEmpty([*pathlib.Path(logdir).glob('scores-*.json')])


MUTATIONS = (
    dict(file='compat/scalable_agent/agent',
         catches='test_threads_that_call_first_share_a_network', rows=(
        ('no lock', '    with self._lock:\n', '    if True:\n'),
    )),
    dict(file='compat/scalable_agent/agent',
         catches='test_weights_follow_the_seed_of_tensorflow', rows=(
        ('no seed', 'seed=int(seed))', 'seed=None)'),
    )),
    dict(file='compat/scalable_agent/py_process',
         catches='test_a_failed_start_fails_no_later_hook', rows=(
        ('started again', '          _PROXIES.discard(self)', '          pass'),
        ('others go on',
         '    except BaseException:\n      self.end()\n      raise',
         '    except BaseException:\n      raise'),
    )),
    dict(file='compat/scalable_agent/py_process',
         catches='test_in_a_function', rows=(
        ('another error', 'raise StopIteration(e.message) from e', 'raise'),
    )),
    dict(file='compat/scalable_agent/py_process',
         catches='test_calls_are_the_same_in_a_function', rows=(
        ('as they are',
         'tf.convert_to_tensor(x).numpy() for x in args)',
         'x for x in args)'),
    )),
    dict(file='compat/scalable_agent/experiment',
         catches='test_the_suite_is_that_of_the_mode', rows=(
        ('the suite of a training', "if mode == 'test'", "if mode == 'none'"),
    )),
    dict(file='compat/scalable_agent/py_process',
         catches='test_a_call_that_fails_after_close_is_out_of_range', rows=(
        ('the error of the call', 'if not self._is_closed:\n        raise',
         'if True:\n        raise'),
    )),
    dict(file='compat/scalable_agent/experiment',
         catches='test_old_runs_do_not_change_the_rewards_of_an_update', rows=(
        ('old runs count',
         'def _config(is_new: bool = True)',
         'def _config(is_new: bool = False)'),
    )),
    dict(file='compat/scalable_agent/py_process', catches='test_in_a_function',
         rows=(
        ('a method runs when the function is traced',
         'if tf.executing_eagerly():', 'if True:'),
    )),
    dict(file='compat/scalable_agent/environments',
         catches='test_flow_environment', rows=(
        ('the state keeps the return of an episode that is over',
         'tf.where(done, tf.zeros_like(x), x)', 'x'),
        ('steps are not ordered', 'flow + 1', 'flow'),
        ('the first output begins no episode', 'tf.constant(True)',
         'tf.constant(False)'))),
    dict(file='compat/scalable_agent/served', catches=(
        'PyProcessTest.test_close_after_error_and_otherwise'), rows=(
        ('an error leaves the object open', '        self.close()',
         '        pass'),)),
    dict(file='compat/scalable_agent/py_process', catches=(
        'PyProcessTest.test_close_after_error_and_otherwise'), rows=(
        ('a closed process leaves the object open', "process.call('close')",
         'pass'),)),
    dict(file='compat/scalable_agent/py_process', catches=(
        'PyProcessTest.test_close_ends_waiting_calls'), rows=(
        ('a waiting call returns', '    if self._is_closed:\n      raise',
         '    if False:\n      raise'),)),
    dict(file='compat/scalable_agent/lab', catches=(
        'test_lab_is_seeded_and_restarted_as_in_the_reference'), rows=(
        ('an episode does not begin', 'observation = self.initial()',
         'observation = self._env.observations()'),
        ('other seeds', 'RandomState(seed=seed)', 'RandomState(seed + 1)'))),
    dict(file='compat/scalable_agent/experiment',
         catches='test_the_steps_of_an_actor', rows=(
        ('each unroll begins anew', '_ACTORS[env] = state', 'pass'),
        ('the state of the last entry', '_without_batch(states[0].agent_state)',
         '_without_batch(states[1].agent_state)'))),
    dict(file='compat/scalable_agent/experiment',
         catches='AgentTest.test_update_by_the_formulas0', rows=(
        ('no decay of the learning rate', 'int(num_env_frames),', '0,'),
        ('frames are steps', ' * config.num_action_repeats)', ')'),
        ('no end of episodes', '~env_outputs.done[1:]',
         'env_outputs.done[1:] | True'),
        ('no entropy', '+ config.entropy_cost *', '+ 0.0 *'))),
    dict(file='losses/actor_critic', catches=(
        'test_losses_of_the_same_name_say_where_the_reference_is'), rows=(
        ('logits for entropies', 'len(entropies.shape) > 2', 'False'),
        ('advantages for epsilon', 'not isinstance(epsilon, (int, float))',
         'False'))),
)


if __name__ == '__main__':
  absltest.main()
