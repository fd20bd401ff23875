# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of off-policy algorithms with memory.

The memory is evaluated in NumPy, entry by entry. The other networks are from
`off_policy_test`. Each network sees the features of the memory and of the
target memory in a row, with weights of 0 for one of the two.
"""

import os
import shutil
from unittest import mock

from absl.testing import parameterized
import eager
import numpy as np
import off_policy_test as plain
import pytest
from scalable_agent import algorithms
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.acting import actor as actor_lib
from scalable_agent.acting import interface
from scalable_agent.acting import policies
from scalable_agent.acting import shares
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.losses import batches
from scalable_agent.losses import q_learning
from scalable_agent.modes import export
from scalable_agent.networks import instructions
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_CASES = ('ddqn', 'dqn', 'ddpg', 'td3', 'sac', 'sac_discrete', 'mpo',
          'mpo_discrete')
_BURN_IN = 2
_STEPS = 3
_B = 2
_UNITS = 4


def _settings(**settings):
  return dict(use_lstm=True, lstm_units=_UNITS, burn_in_steps=_BURN_IN,
              sequence_length=_STEPS, unroll_length=_STEPS, batch_size=_B,
              **settings)


def _make(case, **settings):
  algorithm = algorithms.make(
      plain._config(case, **_settings(**settings)), plain._spec(case), seed=1)
  _scramble(algorithm)
  return algorithm


def _scramble(algorithm):
  """Sets all variables, to numbers that saturate nothing."""
  plain._scramble(algorithm)
  for variables in (*algorithm.groups.values(), algorithm.targets):
    for variable in variables:
      variable.assign(.4 * variable)


def _sequences(case, seed=0, size=_B, num_batches=()):
  """Returns sequences that vary along every axis."""
  rng = np.random.default_rng(seed)
  shape = (*num_batches, _BURN_IN + _STEPS + 1, size)
  learned = (*num_batches, _STEPS, size)
  actions = plain._CASES[case][1]
  floats = lambda *shape: rng.normal(size=shape).astype('f')
  following = np.arange(1, _STEPS + 1)[:, None] + rng.integers(
      2, size=learned)
  state = tuple(floats(*num_batches, size, _UNITS) for _ in range(2))
  return structs.Sequence(
      structs.StepOutput(2 * floats(*shape), structs.NO_INFO,
                         rng.random(shape) < .3, floats(*shape, 3)),
      rng.uniform(-1, 1, (*shape, 2)).astype('f') if actions.size
      else rng.integers(4, size=shape, dtype='i'), state,
      floats(*learned), rng.choice([0, .9, .81], learned).astype('f'),
      np.minimum(following, _STEPS).astype('i'),
      (rng.random(learned) < .7).astype('f'))


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _features(memory, data, has_skip, memory_before=None):
  """Returns the features `[L + 1, B, F]` after the burn-in, entry by entry."""
  c, h = data.state
  found = []
  for t, (reward, done, seen, action) in enumerate(zip(
      data.env_outputs.reward, data.env_outputs.done,
      data.env_outputs.observation, data.actions, strict=True)):
    w, b, kernel, bias = (memory if t >= _BURN_IN or memory_before is None
                          else memory_before)
    x = np.concatenate([
        np.maximum(seen @ w + b, 0), np.clip(reward, -1, 1)[:, None],
        action if action.ndim == 2 else np.eye(4)[action]], -1)
    c, h = (np.where(done[:, None], 0, s) for s in (c, h))
    i, new, f, o = np.split(
        np.concatenate([x, h], -1) @ kernel + bias, 4, -1)
    c = _sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(new)
    h = _sigmoid(o) * np.tanh(c)
    found.append(np.concatenate([h, x], -1) if has_skip else h)
  return np.array(found[_BURN_IN:])


class _Truth(plain._Truth):
  """The losses of sequences; `memory_loss` for changes of the memory."""

  def __init__(self, algorithm, case, data, weights):
    super().__init__(algorithm, case, None, np.tile(weights, _STEPS))
    numpy = lambda variables: [v.numpy().astype(np.float64) for v in variables]
    self.data, self.has_skip = data, self.name != 'ddqn'
    self.memory = numpy(algorithm.agent.memory_variables)
    target = algorithm._target.model
    self.online = _features(self.memory, data, self.has_skip)
    of_target = _features(
        numpy(target.memory_variables), data, self.has_skip)
    flat = lambda x: np.reshape(x, (-1, *x.shape[2:]))
    following = [x[data.next, np.arange(_B)] for x in (self.online, of_target)]
    self._of_target = flat(of_target[:-1])
    self.transitions = structs.Transition(
        self.seen(self.online), flat(data.actions[_BURN_IN + 1:]),
        flat(data.reward).astype('d'), flat(data.discount).astype('d'),
        np.concatenate([flat(x) for x in following], -1))
    self.num = self.online.shape[-1]
    head = numpy(algorithm.agent.head_variables)
    # The heads of algorithms with critics have hidden layers.
    assert len(head) > 2 or not self.has_skip
    if self.name == 'ddqn':
      self.groups = {'agent': self.wide(head)}
      self.targets = self.wide(numpy(target.head_variables), False)
    else:
      self.targets = [
          *([] if self.name == 'sac' else self.wide(
              numpy(target.head_variables), False)),
          *self.wide(numpy(algorithm._critics.targets), False)]
      del self.groups['memory']
      for group in ('policy', 'critic'):
        self.groups[group] = self.wide(self.groups[group])
    self.critic_weights = self.weights * flat(data.known)

  def seen(self, online):
    """Returns the features before the actions, of the memory and the target."""
    return np.concatenate([np.reshape(
        online[:-1], (-1, online.shape[-1])), self._of_target], -1)

  def wide(self, arrays, is_online=True):
    """Returns networks for the features of both memories."""
    size = (self.num, self.num + 2)  # With the action.
    at = self.num if is_online else 0
    return [np.insert(a, [at] * self.num, 0, 0)
            if a.ndim == 2 and len(a) in size else a for a in arrays]

  def sequence_errors(self):
    """Returns the errors of the sequences, column by column."""
    self.losses(self.groups)
    errors = self.errors.reshape(_STEPS, _B)
    found = []
    for b in range(_B):
      known = [e for e, k in zip(errors[:, b], self.data.known[:, b]) if k]
      found.append(.9 * max(known) + .1 * np.mean(known) if known else 0)
    return found

  def slope(self, group, index, direction, step=1e-6):
    """Returns the slope of the loss of a group along a change of its heads."""
    is_layer = direction.ndim == 2 and group != 'temperature'
    wide = self.wide([direction])[0] if is_layer else direction
    found = []
    for sign in (1, -1):
      arrays = list(self.groups[group])
      arrays[index] = arrays[index] + sign * step * wide
      found.append(self.losses({**self.groups, group: arrays})[group])
    return (found[0] - found[1]) / (2 * step)

  def memory_slope(self, index, direction, step=1e-6):
    """Returns the slope of the critics' loss along a change of the memory.

    Only the features before the actions change, no features of targets.
    """
    group = 'agent' if self.name == 'ddqn' else 'critic'
    found = []
    for sign in (1, -1):
      memory = list(self.memory)
      memory[index] = memory[index] + sign * step * direction
      before = self.transitions
      self.transitions = before._replace(observation=self.seen(_features(
          memory, self.data, self.has_skip, self.memory)))
      found.append(self.losses(self.groups)[group])
      self.transitions = before
    return (found[0] - found[1]) / (2 * step)


class LossTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.named_parameters(*zip(_CASES, _CASES))
  def test_losses_errors_and_gradients(self, case):
    algorithm = _make(case)
    data, rng = _sequences(case), np.random.default_rng(1)
    weights = np.array([.3, 2], 'f')
    truth = _Truth(algorithm, case, data, weights)
    with tf.GradientTape(persistent=True) as tape:
      loss = plain._loss(algorithm, data, weights)
    errors = truth.sequence_errors()
    self.assertAllClose(loss.errors, errors, rtol=1e-4, atol=1e-5)
    for group, value in truth.losses(truth.groups).items():
      self.assertAllClose(loss.by_group[group], value, rtol=1e-4, atol=1e-4)
      variables = (algorithm.agent.head_variables if group == 'agent'
                   else algorithm.groups[group])
      found = tape.gradient(loss.by_group[group], variables)
      for i, gradient in enumerate(found):
        direction = rng.normal(size=gradient.shape)
        self._check_slope(
            gradient, direction, truth.slope(group, i, direction))
    group = 'agent' if truth.name == 'ddqn' else 'memory'
    gradients = tape.gradient(
        loss.by_group[group], algorithm.agent.memory_variables)
    for i, gradient in enumerate(gradients):
      direction = rng.normal(size=gradient.shape)
      self._check_slope(gradient, direction, truth.memory_slope(i, direction))

  @parameterized.named_parameters(*zip(_CASES, _CASES))
  def test_unknown_steps_do_not_change_the_mean_value(self, case):
    algorithm, data = _make(case), _sequences(case)
    for variable in (algorithm.groups.get('critic')
                     or algorithm.agent.head_variables):
      variable.assign(tf.fill(variable.shape, 10. * ('bias' in variable.name)))
    self.assertBetween(data.known.mean(), .1, .9)
    self.assertAllClose(plain._loss(algorithm, data).means['mean_q'], 10.)
    data = data._replace(known=np.zeros_like(data.known))
    self.assertAllClose(plain._loss(algorithm, data).means['mean_q'], 0.)

  def _check_slope(self, gradient, direction, slope):
    terms = gradient.numpy() * direction
    self.assertAllClose(np.sum(terms), slope, rtol=2e-3,
                        atol=1e-3 + 1e-3 * np.sum(np.abs(terms)))

  @parameterized.named_parameters(*zip(_CASES, _CASES))
  def test_where_no_gradient_flows(self, case):
    algorithm = _make(case)
    data = tf.nest.map_structure(tf.constant, _sequences(case))
    observation = data.env_outputs.observation
    for variable in algorithm.targets:
      variable.trainable = True
    with tf.GradientTape(persistent=True) as tape:
      tape.watch((data.state, observation))
      loss = plain._loss(algorithm, data)
    name = 'agent' if 'agent' in loss.by_group else 'critic'
    for group, value in loss.by_group.items():
      if group not in (name, 'memory'):
        self.assertEqual(
            tape.gradient(value, algorithm.agent.memory_variables), [None] * 4)
      for gradient in tape.gradient(value, [*algorithm.targets, *data.state]):
        self.assertAllEqual(0. if gradient is None else gradient,
                            0. if gradient is None else 0 * gradient)
    gradient = tape.gradient(loss.by_group[name], observation)
    self.assertAllEqual(gradient[:_BURN_IN], tf.zeros([_BURN_IN, _B, 3]))
    self.assertNotAllClose(gradient[_BURN_IN], tf.zeros([_B, 3]))

  @parameterized.named_parameters(*zip(_CASES, _CASES))
  def test_each_variable_is_in_one_group(self, case):
    algorithm = _make(case)
    in_groups = [id(v) for group in algorithm.groups.values() for v in group]
    self.assertLen(set(in_groups), len(in_groups))
    self.assertContainsSubset(
        {id(v) for v in algorithm.agent.trainable_variables}, in_groups)

  @parameterized.named_parameters(
      *[(case, case, {}) for case in _CASES],
      ('mpo_layer_norm', 'mpo', dict(layer_norm=True)))
  def test_a_sequence_of_one_step_is_a_transition(self, case, settings):
    algorithm = _make(case, **settings)
    target = algorithm._target.model
    for variable, online in zip(
        target.memory_variables, algorithm.agent.memory_variables, strict=True):
      variable.assign(online)
    data = _sequences(case)
    data = data._replace(
        env_outputs=tf.nest.map_structure(
            lambda x: tf.constant(x[:2]), data.env_outputs),
        actions=data.actions[:2], reward=data.reward[:1],
        discount=data.discount[:1], next=np.ones([1, _B], 'i'),
        known=np.ones([1, _B], 'f'))
    seen = batches.experience(algorithm.agent, target, data, None)
    spec = plain._spec(case)._replace(observation=structs.ArraySpec(
        (algorithm.agent.num_features,), np.dtype(np.float32)))
    is_ddqn = 'agent' in algorithm.groups
    other = algorithms.make(plain._config(case, **settings, **(
        dict(agent='fake_torsos:as_is') if is_ddqn else {})), spec, seed=2)
    copies = [] if is_ddqn else [
        (other._critics.targets, algorithm._critics.targets)]
    if not case.startswith('sac'):
      copies.append((other._target.model.trainable_variables,
                     target.head_variables))
    groups = set(algorithm.groups) - {'memory'}
    self.assertEqual(groups, set(other.groups))
    learned = lambda one, group: (
        one.agent.head_variables if group == 'agent' else one.groups[group])
    copies += [(learned(other, g), learned(algorithm, g)) for g in groups]
    for variables, sources in copies:
      for variable, source in zip(variables, sources, strict=True):
        variable.assign(source)
    weights = np.array([.3, 2], 'f')
    results = []
    for one, batch in ((algorithm, data), (other, structs.Transition(
        seen.critic.now, data.actions[1], data.reward[0], data.discount[0],
        seen.critic.next))):
      with tf.GradientTape(persistent=True) as tape:
        loss = plain._loss(one, batch, weights)
      results.append((loss.errors, [
          (loss.by_group[g], tape.gradient(loss.by_group[g], learned(one, g)))
          for g in sorted(groups)]))
    for one, one_other in zip(*map(tf.nest.flatten, results), strict=True):
      self.assertAllClose(one, one_other, rtol=1e-5, atol=1e-6)

  def test_transitions_stay_as_they_are(self):
    algorithm = plain._make('sac')
    data = plain._transitions('sac')
    seen = batches.experience(algorithm.agent, algorithm.agent, data, None)
    for part in (seen.policy, seen.critic, seen.target):
      self.assertIs(part.now, data.observation)
      self.assertIs(part.next, data.next_observation)
    for inputs in algorithm._critics.inputs(seen.critic.now, seen.policy.now):
      for found in inputs:
        self.assertIs(found, data.observation)

  def test_errors_of_sequences(self):
    errors = tf.constant([[.5, 2], [1, np.nan], [np.nan, .2], [.1, .4]])
    known = tf.constant([[1., 1], [1, 0], [0, 1], [1, 1]])
    self.assertAllClose(q_learning.sequence_errors(errors, known),
                        [.9533333, 1.8866667])
    self.assertAllEqual(
        q_learning.sequence_errors(errors[:1], tf.zeros([1, 2])), [0, 0])


class UpdateTest(parameterized.TestCase, tf.test.TestCase):

  def _learner(self, case, **settings):
    learner = setup.make_learner(
        plain._config(case, **_settings(**settings)), plain._spec(case))
    _scramble(learner.algorithm)
    return learner

  @parameterized.named_parameters(
      ('ddqn', 'ddqn'), ('td3', 'td3'), ('sac', 'sac'),
      ('mpo_discrete', 'mpo_discrete'))
  @pytest.mark.storm
  def test_updates_of_one_call_are_those_of_single_calls(self, case):
    settings = dict(memory_learning_rate=.003) if case != 'ddqn' else {}
    together, alone = (self._learner(case, updates_per_call=k, **settings)
                       for k in (3, 1))
    data = _sequences(case, num_batches=(3,))
    weights = np.random.default_rng(0).uniform(size=[3, _B]).astype('f')
    found = together.step(together.to_device(data, 5, weights))
    errors = []
    for k in range(3):
      part = tf.nest.map_structure(lambda x, k=k: x[k], data)
      errors.append(alone.step(
          alone.to_device(part, 5 * (k == 0), weights[k])).errors)
    self.assertAllClose(found.errors, errors, rtol=1e-4, atol=1e-5)
    for one, other in zip(*(
        [v.numpy() for kind in learner.state.values() for v in kind]
        for learner in (together, alone)), strict=True):
      self.assertAllClose(one, other, rtol=1e-4, atol=1e-5)

  @parameterized.named_parameters(
      ('ddpg', 'ddpg'), ('sac', 'sac'), ('td3', 'td3'), ('mpo', 'mpo'))
  @eager.eagerly()
  def test_the_memory_learns_and_its_target_follows(self, case):
    learner = self._learner(
        case, target_update_rate=.5, memory_learning_rate=.25,
        learning_rate=0., **(dict(temperature_learning_rate=0.)
                             if case in ('sac', 'mpo') else {}))
    algorithm = learner.algorithm
    memory, target = (
        model.memory_variables for model in (
            algorithm.agent, algorithm._target.model))
    values = lambda variables: [v.numpy() for v in variables]
    before, before_target = values(memory), values(target)
    heads = values(algorithm.agent.head_variables)
    scalars = learner.step(learner.to_device(_sequences(case), 1)).scalars
    self.assertEqual(scalars['memory/learning_rate'], .25)
    self.assertEqual(scalars['critic/learning_rate'], 0)
    # The first step of Adam is the learning rate, wherever there is a gradient.
    for now, old in zip(values(memory), before, strict=True):
      moved = np.abs(now - old)
      self.assertGreater(np.mean(moved > .24), .2)
      self.assertLess(np.max(moved), .251)
    self.assertAllClose(values(algorithm.agent.head_variables), heads)
    for now, old, online in zip(values(target), before_target, values(memory),
                                strict=True):
      self.assertAllClose(now, (old + online) / 2, rtol=1e-5, atol=1e-6)

  @parameterized.named_parameters(
      ('ddqn', 'ddqn'), ('ddpg', 'ddpg'), ('sac', 'sac'),
      ('sac_discrete', 'sac_discrete'))
  def test_acting_and_learning_see_the_same(self, case):
    agent = _make(case).agent
    data = _sequences(case)
    env_outputs = tf.nest.map_structure(tf.constant, data.env_outputs)
    seen, state = agent.remember(
        tf.constant(data.actions), env_outputs, data.state)
    outputs, unrolled = agent.unroll(
        tf.constant(data.actions), env_outputs, data.state)
    params = tf.reshape(outputs.policy, [-1, outputs.policy.shape[-1]])
    self.assertAllClose(agent.params(seen), params, rtol=1e-6)
    now = data.state
    for t in range(len(data.actions)):
      step = tf.nest.map_structure(lambda x, t=t: x[t], env_outputs)
      output, now = agent.step(data.actions[t], step, now, greedy=True)
      self.assertAllClose(
          output.action,
          agent.head.distribution(outputs.policy[t]).mode(), rtol=1e-5,
          atol=1e-6)
    for one, other in zip((*now, *state), (*unrolled, *unrolled), strict=True):
      self.assertAllClose(one, other, rtol=1e-5, atol=1e-6)
    exported = export.ExportedAgent(agent, plain._spec(case), True)
    now = dict(zip('ch', data.state, strict=True))
    for t, params in enumerate(outputs.policy):
      found = exported.step_greedy(
          observation=env_outputs.observation[t], done=env_outputs.done[t],
          reward=env_outputs.reward[t], last_action=data.actions[t], **now)
      now = {name: found[name] for name in 'ch'}
      self.assertAllClose(found['policy'], params, rtol=1e-5, atol=1e-6)


class ReplayTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.product(algorithm=('ddqn', 'ddpg', 'td3', 'sac', 'mpo'),
                         greedy=(True, False))
  @pytest.mark.slow
  def test_learners_see_what_actors_saw(self, algorithm, greedy):
    # Actions that are not greedy are random, since `epsilon` begins with 1.
    config = config_lib.Config(
        algorithm=algorithm, level_name='fake_environments:fake/Unlike'
        + ('' if algorithm == 'ddqn' else 'Box') + '-v0', agent='mlp',
        hidden_sizes='8', use_lstm=True, lstm_units=6, unroll_length=4,
        num_actors=3, num_actor_groups=1, num_action_repeats=1,
        deterministic=True)
    [env] = shares.make_environments(
        config, 0, interface.Share(range(config.num_actors)))
    self.addCleanup(env.close)
    agent = algorithms.make_agent(config, env.spec, 1)
    rng = np.random.default_rng(5)
    for variable in agent.trainable_variables:
      variable.assign(rng.normal(scale=.7, size=variable.shape))
    unroll, params, actions = agent.unroll, {}, {}

    def remember(*arrays):
      for seen, found, action in zip(*arrays, strict=True):
        params[seen.tobytes()] = found
        actions[seen.tobytes()] = action

    def unroll_and_remember(last_action, env_outputs, state):
      outputs, state = unroll(last_action, env_outputs, state)
      tf.numpy_function(remember, [
          env_outputs.observation[0], outputs.policy[0], last_action[0]], [])
      return outputs, state

    weights = structs.Weights(0, [tf.identity(v) for v in agent.variables])
    actor = actor_lib.Actor(
        env, policies.AgentPolicy(agent, greedy), lambda: weights,
        queues.BoundedQueue(1), config.unroll_length, timing.StageTimer())
    starts = replay_lib.Starts(
        replay_lib.StepStore(env.spec, 120, 3), agent.initial_state(1),
        _BURN_IN + 5 + 1, config.unroll_length)
    with mock.patch.object(agent, 'unroll', unroll_and_remember):
      for _ in range(15):  # The ring of 40 steps wraps.
        made, release = actor.make_unroll()
        starts.add(made)
        release()
    data = replay_lib.Sequences(replay_lib.NStep(.9), _BURN_IN)(
        starts, np.concatenate([
            np.arange(first, end) * 3 + stream for stream, (first, end)
            in enumerate(zip(starts.first, starts.end))]), rng)
    seen = batches.experience(
        agent, agent, tf.nest.map_structure(tf.constant, data), None)
    observations = [x.tobytes() for x in data.env_outputs.observation[
        _BURN_IN:].reshape(-1, 3)]
    # Actors do not act on the last observations of truncated games.
    acted = np.array([x in params for x in observations])
    is_known = np.ravel(data.known) == 1
    self.assertTrue(np.all(acted[:is_known.size][is_known]))
    self.assertBetween(np.mean(acted), .6, .95)
    self.assertAllClose(
        agent.params(seen.entries)[acted],
        [params[x] for x in observations if x in params], atol=1e-5)
    self.assertGreater(np.std(list(params.values()), 0).min(), .1)
    self.assertGreater(len(np.unique(list(actions.values()))), 3)


class WordsTest(tf.test.TestCase):

  def _spec(self):
    return plain._spec('sac_discrete')._replace(observation={
        'seen': plain._OBSERVATION,
        'instruction': structs.ArraySpec((), np.dtype(object))})

  @eager.eagerly()
  def test_instructions_are_learned(self):
    config = plain._config('sac_discrete', **_settings())
    learner = setup.make_learner(config, self._spec())
    data = _sequences('sac_discrete')
    words = np.full(data.actions.shape, b'go', object)
    words[:, 1] = b'to the red door'
    data = data._replace(env_outputs=data.env_outputs._replace(observation={
        'seen': data.env_outputs.observation, 'instruction': words}))
    embeddings = [v for v in learner.agent.memory_variables
                  if tuple(v.shape) == (1000, 20)]
    self.assertLen(embeddings, 1)
    before = embeddings[0].numpy()
    learner.step(learner.to_device(data, 1))
    changed = np.flatnonzero(np.any(embeddings[0].numpy() != before, 1))
    rows = {row for text in (b'go', b'to the red door')
            for row in instructions.hash_words([text]).ravel().tolist()
            if row >= 0}
    self.assertContainsSubset(rows, set(changed.tolist()))

  def test_instructions_need_an_lstm(self):
    with self.assertRaisesRegex(
        errors.EnvironmentSpecError,
        '^With --algorithm=sac, an agent sees instructions only with --use_l'):
      algorithms.make(plain._config('sac_discrete'), self._spec(), 1)


class RunTest(parameterized.TestCase, tf.test.TestCase):

  def _train(self, logdir, algorithm, level, copy=''):
    """Trains; copies the files to `copy` between two checkpoints."""
    learners = []

    def keep(update):
      learners.append(update.learner)
      if copy and not os.path.exists(copy) and (
          update.learner.num_env_frames > 170):
        shutil.copytree(logdir, copy)

    training.train(config_lib.Config(
        algorithm=algorithm, level_name=level, logdir=logdir, use_lstm=True,
        lstm_units=6, hidden_sizes='8', burn_in_steps=2, sequence_length=4,
        n_step=2, unroll_length=4, num_actors=3, num_actor_groups=1,
        batch_size=4, updates_per_step=.25, min_replay_steps=36,
        replay_steps=90, selector='prioritised', xla='none',
        deterministic=True, save_checkpoint_frames=120,
        total_environment_frames=240, num_action_repeats=1), hooks=[keep])
    return learners[-1]

  @parameterized.parameters(
      ('ddqn', 'memory'), ('sac', 'memory'), ('td3', 'time_limit_box'))
  @pytest.mark.storm
  def test_a_killed_run_resumes_bit_for_bit(self, algorithm, level):
    # A killed run would leave the files that the copy has.
    root = self.create_tempdir().full_path
    left = os.path.join(root, 'left')
    whole = self._train(os.path.join(root, 'whole'), algorithm, level, left)
    self.assertEqual(checkpoint_files.latest_number(left), 21)
    resumed = self._train(left, algorithm, level)
    self.assertEqual(whole.num_updates, 51)
    self.assertEqual(resumed.num_updates, 51)
    for kind, variables in whole.state.items():
      for one, other in zip(variables, resumed.state[kind], strict=True):
        self.assertAllEqual(one, other)


MUTATIONS = (
    dict(file='losses/batches',
         catches='test_unknown_steps_do_not_change_the_mean_value_sac', rows=(
        ('unknown steps lower the mean value',
         'tf.reduce_mean(self.known))',
         '1.0)'),
        ('values of unknown steps are in the mean value',
         'tf.reduce_mean(self.known_values(values))',
         'tf.reduce_mean(values)'),
    )),
    dict(file='replay/starts', catches='test_learners_see_what_actors_saw5',
         rows=(
        ('states of the next start',
         'lambda a: a[index], self._state)',
         'lambda a: np.roll(a, -1, 1)[index], self._state)'),
        ('states from zero',
         'lambda a: a[index], self._state)',
         'lambda a: 0 * a[index], self._state)'),
    )),
    dict(file='replay/sequences', catches='test_learners_see_what_actors_saw7',
         rows=(
        ('action and reward of the entry before',
         'led_to(place(time))',
         'led_to(place(time - 1))'),
        ('rewards smaller than those the actor saw',
         'structs.StepOutput(reward, ',
         'structs.StepOutput(.005 * reward, '),
    )),
    dict(file='losses/batches',
         catches='test_a_sequence_of_one_step_is_a_transition_sac', rows=(
        ('unknown steps halve the loss',
         'return known if self.weights is None else known * self.weights',
         'return known if self.weights is None else .5 * self.weights'),
    )),
    dict(file='losses/batches',
         catches='test_losses_errors_and_gradients_sac_discrete', rows=(
        ('stored state left out',
         'state = data.state\n',
         'state = tf.nest.map_structure(tf.zeros_like, data.state)\n'),
        ('burn-in left out',
         'if burn_in:',
         'if False:'),
        ('burn-in one entry short',
         'remember(slice(burn_in), state)',
         'remember(slice(burn_in - 1), state)'),
        ('burn-in one entry long',
         'remember(slice(burn_in), state)',
         'remember(slice(burn_in + 1), state)'),
        ('burn-in of the target left out',
         'if burn_in:',
         'if burn_in and agent is not target:'),
        ('action that follows the entry is seen',
         'data.actions[part]',
         'tf.roll(data.actions, -1, 0)[part]'),
        ('mean over the known steps',
         'return known if self.weights is None else known * self.weights',
         'return known * self.weights / tf.reduce_mean(known)'),
        ('state of the burn-in lost',
         '_, state = remember(slice(burn_in), state)',
         'remember(slice(burn_in), state)'),
        ('online memory for the target',
         '_seen(see(target), following)',
         '_seen(see(agent), following)'),
        ('target memory for the policy',
         '      _constant(entries), following)',
         '      see(target), following)'),
        ('next entry one early',
         'data.next * size',
         '(data.next - 1) * size'),
        ('next entry of another column',
         '+ tf.range(size))',
         '+ tf.reverse(tf.range(size), [0]))'),
        ('action that led to the entry',
         'data.actions[burn_in + 1:]',
         'data.actions[burn_in:-1]'),
        ('weights along time',
         'tf.tile(importance_weights, [num_steps])',
         'tf.repeat(importance_weights, num_steps)'),
        ('unknown steps are learned',
         'return known if self.weights is None else known * self.weights',
         'return self.weights'),
        ('features after the action',
         'x[:following.shape[0]]',
         'x[-following.shape[0]:]'),
    )),
    dict(file='losses/batches',
         catches='test_where_no_gradient_flows_sac', rows=(
        ('burn-in has a gradient',
         'state = _constant(state)',
         'pass'),
        ('policy has a gradient in the memory',
         '      _constant(entries), following)',
         '      entries, following)'),
    )),
    dict(file='losses/batches',
         catches='test_where_no_gradient_flows_td3', rows=(
        ('policy without targets has a gradient in the memory',
         'Seen(*map(_constant, critic)), critic,',
         'critic, critic,'),
    )),
    dict(file='algorithms/base',
         catches='test_transitions_stay_as_they_are', rows=(
        ('other rounding without a memory',
         'agent.has_memory and agent.action_spec.size > 0',
         'agent.action_spec.size > 0'),
    )),
    dict(file='algorithms/base',
         catches='test_where_no_gradient_flows_sac', rows=(
        ('values of the policy have a gradient in the memory',
         'tf.nest.map_structure(tf.stop_gradient, inputs)',
         'inputs'),
    )),
    dict(file='networks/torsos', catches=(
        'test_a_sequence_of_one_step_is_a_transition_mpo_layer_norm'), rows=(
        ('layers left out after the product',
         'for layer in later:', 'for layer in later[:0]:'),
    )),
    dict(file='networks/torsos',
         catches='test_losses_errors_and_gradients_mpo', rows=(
        ('actions of one observation in a row',
         'tf.reshape(of_actions, [-1, *sizes]) + product',
         'tf.transpose(tf.reshape(of_actions, [sizes[0], -1, sizes[1]]), '
         '[1, 0, 2]) + product'),
        ('kernel of other features',
         '.kernel[:x.shape[-1]]',
         '.kernel[-x.shape[-1]:]'),
        ('kernel of other actions',
         '.kernel[-actions.shape[-1]:]',
         '.kernel[:actions.shape[-1]]'),
        ('activation left out after the product',
         'x = first.activation(x)',
         'pass'),
    )),
    dict(file='losses/q_learning',
         catches='test_errors_of_sequences', rows=(
        ('largest and mean error swapped',
         'return (0.9 * tf.reduce_max(errors, axis=0)\n          + 0.1 *',
         'return (0.1 * tf.reduce_max(errors, axis=0)\n          + 0.9 *'),
        ('mean over unknown steps',
         'num_known = tf.maximum(tf.reduce_sum(known, axis=0), 1)',
         'num_known = tf.cast(errors.shape[0], tf.float32)'),
        ('errors of unknown steps',
         'errors = tf.math.multiply_no_nan(errors, known)',
         'errors = tf.where(tf.math.is_nan(errors), 9., errors)'),
    )),
    dict(file='algorithms/base',
         catches='test_each_variable_is_in_one_group_sac', rows=(
        ('memory in no group',
         "{'memory': agent.memory_variables} if agent.has_memory else {}",
         '{}'),
    )),
    dict(file='algorithms/base',
         catches='test_losses_errors_and_gradients_sac_discrete', rows=(
        ('memory learns the policy loss',
         "'memory': losses['critic']",
         "'memory': losses['policy']"),
    )),
    dict(file='networks/agents',
         catches='test_each_variable_is_in_one_group_sac', rows=(
        ('heads in the memory, too',
         'if id(v) not in heads_own]',
         ']'),
    )),
    dict(file='networks/factory',
         catches='test_losses_errors_and_gradients_sac', rows=(
        ('heads do not see the present input',
         'has_skip=num_shared == 1,',
         'has_skip=False,'),
        ('policy linear in the features',
         'if num_shared is not None:\n    params',
         'if False:\n    params'),
    )),
    dict(file='runs/setup',
         catches='test_the_memory_learns_and_its_target_follows_sac', rows=(
        ('learning rate of the memory ignored',
         "'memory': config.memory_learning_rate or critic",
         "'memory': critic"),
    )),
    dict(file='algorithms/ddpg',
         catches='test_the_memory_learns_and_its_target_follows_ddpg', rows=(
        ('target of the memory stands still',
         'self._target.follow(self._settings.target_update_rate)',
         'pass'),
    )),
    dict(file='algorithms/td3',
         catches='test_the_memory_learns_and_its_target_follows_td3', rows=(
        ('target of the memory stands still',
         'self._target.follow(self._settings.target_update_rate)',
         'pass'),
    )),
    dict(file='algorithms/mpo',
         catches='test_the_memory_learns_and_its_target_follows_mpo', rows=(
        ('target of the memory stands still',
         'self._settings, progress, self._target, ',
         'self._settings, progress, '),
    )),
    dict(file='algorithms/sac',
         catches='test_the_memory_learns_and_its_target_follows_sac', rows=(
        ('target of the memory follows twice',
         'filter(None, [self._target])', 'filter(None, 2 * [self._target])'),
        ('target of the memory stands still',
         'filter(None, [self._target])', '()'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac', rows=(
        ('online memory for the target critics',
         'self._target.model if self._target else self.agent',
         'self.agent'),
    )),
    dict(file='algorithms/ddpg',
         catches='test_each_variable_is_in_one_group_ddpg', rows=(
        ('policy changes the memory',
         'agent.head_variables',
         'agent.trainable_variables'),
    )),
    dict(file='algorithms/td3',
         catches='test_each_variable_is_in_one_group_td3', rows=(
        ('policy changes the memory',
         'agent.head_variables',
         'agent.trainable_variables'),
    )),
    dict(file='algorithms/sac',
         catches='test_each_variable_is_in_one_group_sac', rows=(
        ('policy changes the memory',
         'agent.head_variables',
         'agent.trainable_variables'),
    )),
    dict(file='algorithms/mpo',
         catches='test_each_variable_is_in_one_group_mpo', rows=(
        ('policy changes the memory',
         'agent.head_variables',
         'agent.trainable_variables'),
    )),
    dict(file='algorithms/ddqn',
         catches='test_losses_errors_and_gradients_ddqn', rows=(
        ('the critic learns unknown steps',
         'seen.critic_weights',
         'seen.weights'),
    )),
    dict(file='algorithms/ddpg',
         catches='test_losses_errors_and_gradients_ddpg', rows=(
        ('the critic learns unknown steps',
         'seen.critic_weights',
         'seen.weights'),
        ('the policy learns fewer steps',
         'given[0], action), seen.weights)',
         'given[0], action), seen.critic_weights)'),
    )),
    dict(file='algorithms/td3',
         catches='test_losses_errors_and_gradients_td3', rows=(
        ('the critic learns unknown steps',
         'seen.critic_weights',
         'seen.weights'),
        ('the policy learns fewer steps',
         'given[0], action), seen.weights)',
         'given[0], action), seen.critic_weights)'),
    )),
    dict(file='algorithms/sac',
         catches='test_losses_errors_and_gradients_sac', rows=(
        ('the critic learns unknown steps',
         'seen.critic_weights',
         'seen.weights'),
        ('the policy learns fewer steps',
         'log_prob, temperature, seen.weights)',
         'log_prob, temperature, seen.critic_weights)'),
        ('the temperature learns fewer steps',
         '(seen.policy.now), seen.weights)',
         '(seen.policy.now), seen.critic_weights)'),
        ('value of the memory with the policy',
         'seen.target.next, action_t)',
         'seen.policy.next, action_t)'),
    )),
    dict(file='algorithms/mpo',
         catches='test_losses_errors_and_gradients_mpo', rows=(
        ('the critic learns unknown steps',
         'seen.critic_weights',
         'seen.weights'),
        ('the policy learns fewer steps, continuous',
         'action_weights + bounds_weights, seen.weights)',
         'action_weights + bounds_weights, seen.critic_weights)'),
        ('target memory for the online policy',
         'self.agent.params(seen.policy.now)',
         'self.agent.params(seen.target.now)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
