# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of further terms in the loss of a policy."""

import dataclasses
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import fake_environments  # noqa: F401  (Registers levels.)
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.algorithms import addons as addons_lib
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_SPEC = structs.EnvironmentSpec(
    structs.ArraySpec((3,), np.dtype(np.float32)), structs.ActionSpec(size=2),
    num_action_repeats=1)


def _config(algorithm, **settings):
  config = config_lib.Config(
      algorithm=algorithm, hidden_sizes='8', updates_per_call=1, **settings)
  return config.resolved(_SPEC.observation, on_cpu=True, num_groups=1)


def _batch(learner):
  rng = np.random.RandomState(0)
  normal = lambda *shape: rng.normal(size=[5, *shape]).astype(np.float32)
  return learner.to_device(structs.Transition(
      normal(3), np.tanh(normal(2)), normal(), np.full([5], .9, np.float32),
      normal(3)), 5)


def _pull(agent, data):
  """Pulls all parameters to 3."""
  return tf.reduce_sum(tf.square(agent.params(data.observation) - 3.0))


def _fails(agent, data):
  raise ValueError('no')


def _nothing(agent, batch):
  del agent, batch


def _vector(agent, data):
  return agent.params(data.observation)


class AddonsTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(algorithm='impala', batch_size=6), 6),
      (dict(algorithm='impala', addon='module:function'), 0),
      (dict(algorithm='sac'), 0))
  def test_batches_are_whole(self, settings, expected):
    config = config_lib.Config(**settings)
    self.assertEqual(addons_lib.with_whole_batches(
        config, {'pull': _pull}).micro_batch_size, expected)
    self.assertIs(addons_lib.with_whole_batches(config, None), config)

  @pytest.mark.slow
  def test_a_training_with_whole_batches_resumes_with_other_addons(self):
    sizes = set()

    def note(agent, data):
      del agent
      sizes.add(data.num_columns)
      return 0.

    config = config_lib.Config(
        level_name='fake/FrameOnly-v0', logdir=self.create_tempdir().full_path,
        num_actors=2, batch_size=4, unroll_length=20, use_lstm=False,
        xla='none', total_environment_frames=80)
    training.train_as_set(config, addons={'note': note})
    self.assertEqual(sizes, {4})
    used = config_lib.trained_with(config.logdir)
    self.assertEqual((used.agent, used.micro_batch_size), ('deep', 4))
    # Without addons, parts of this batch have two unrolls.
    self.assertEqual(config.resolved(
        checkpointing.saved_spec(config.logdir).observation, on_cpu=True,
        num_groups=1).micro_batch_size, 2)
    resumed = experiment.parse(
        [f'--flagfile={config.logdir}/settings.flags', '--addon=my:term'])
    self.assertEqual(resumed, dataclasses.replace(config, addon='my:term'))

  def test_measured_updates_have_whole_batches(self):
    config = config_lib.Config(
        logdir=self.create_tempdir().full_path, num_actors=0, batch_size=6)
    with mock.patch.object(training.measuring, 'chosen', side_effect=lambda
                           config, _: config) as chosen, mock.patch.object(
                               training, 'run', return_value=0) as run:
      training.train(config, addons={'pull': _pull})
    self.assertEqual([call.call_args[0][0].micro_batch_size
                      for call in (chosen, run)], [6, 0])

  def test_parts_of_batches_are_refused(self):
    config = config_lib.Config(logdir=self.create_tempdir().full_path,
                               micro_batch_size=2, batch_size=4)
    with self.assertRaisesRegex(
        errors.ConfigError, '^--micro_batch_size=2 cannot be used with addons'):
      training.train(config, addons={'pull': _pull})
    self.assertEmpty(os.listdir(config.logdir))

  @parameterized.parameters('sac', 'ddpg')
  @eager.eagerly()
  def test_a_term_moves_the_policy_and_nothing_else(self, algorithm):
    config = _config(algorithm, optimizer='rmsprop', learning_rate=1e-3)
    plain, other = (setup.make_learner(config, _SPEC, addons=addons)
                    for addons in (None, {'pull': _pull}))
    batch = _batch(plain)
    learned = [learner.step(batch) for learner in (plain, other)]
    self.assertNotIn('pull', learned[0].scalars)
    self.assertGreater(float(learned[1].scalars['pull']), 0)
    for group, variables in plain.algorithm.groups.items():
      is_equal = all(np.array_equal(a, b) for a, b in zip(
          variables, other.algorithm.groups[group], strict=True))
      self.assertEqual(is_equal, group != 'policy', group)

  def test_the_gradient_is_the_sum(self):
    config = _config('ddpg', optimizer='rmsprop')
    groups = {}
    for name, addons in (('none', None), ('pull', {'pull': _pull})):
      learner = setup.make_learner(config, _SPEC, addons=addons)
      algorithm, data = learner.algorithm, _batch(learner).data
      with tf.GradientTape(persistent=True) as tape:
        loss = algorithm.loss(
            data, None, tuple(algorithm.groups), tf.constant([1, 2]))
        term = _pull(algorithm.agent, data)
      groups[name] = {
          group: tape.gradient(loss.by_group[group], variables)
          for group, variables in algorithm.groups.items()}
      by_term = tape.gradient(term, algorithm.groups['policy'])
    for a, b in zip(groups['none']['critic'], groups['pull']['critic']):
      np.testing.assert_array_equal(a, b)
    for a, b, c in zip(groups['none']['policy'], groups['pull']['policy'],
                       by_term):
      np.testing.assert_allclose(a + c, b, rtol=1e-4, atol=1e-5)

  @parameterized.parameters(('appo', .5), ('sac', 1.))
  def test_several_learners_count_a_term_once(self, algorithm, share):
    # The gradients of impala and appo are summed over learners.
    one, two = collectives_lib.Alone(), collectives_lib.Alone()
    two.size = 2
    terms = []
    for collectives in (one, two):
      learner = setup.make_learner(
          _config(algorithm), _SPEC, addons={'pull': lambda agent, data: 8.},
          collectives=collectives)
      algorithm_with_term = learner.algorithm
      with mock.patch.object(
          algorithm_with_term, '_loss', lambda *args: base.Loss(
              {'agent': 1., 'policy': 1.}, {}, {})):
        loss = algorithm_with_term.loss(
            None, None, ('agent', 'policy'), tf.constant([0, 0]))
      group = 'policy' if 'policy' in learner.algorithm.groups else 'agent'
      terms.append(float(loss.by_group[group]) - 1)
      self.assertEqual(float(loss.means['pull']), 8)
    self.assertEqual(terms, [8, 8 * share])

  @eager.eagerly()
  def test_a_function_of_the_command(self):
    config = _config('sac')
    by_flag, by_argument = (
        setup.make_learner(config, _SPEC, addons=addons)
        for config, addons in (
            (dataclasses.replace(config, addon=f'{__name__}:_pull'), None),
            (config, {'_pull': _pull})))
    batch = _batch(by_flag)
    values = [float(learner.step(batch).scalars['_pull'])
              for learner in (by_flag, by_argument)]
    self.assertEqual(*values)
    for a, b in zip(by_flag.algorithm.groups['policy'],
                    by_argument.algorithm.groups['policy'], strict=True):
      np.testing.assert_array_equal(a, b)

  @eager.eagerly()
  def test_wrong_functions(self):
    for name, message in (('_fails', 'raised ValueError: no'),
                          ('_nothing', 'must return a scalar, not None'),
                          ('_vector', r'must return a scalar, not shape \(5,')):
      for flags, addons, who in (
          ({'addon': f'{__name__}:{name}'}, None, f'{name} of --addon'),
          ({}, {'x': globals()[name]}, '^x of addons')):
        learner = setup.make_learner(
            _config('sac', **flags), _SPEC, addons=addons)
        with self.assertRaisesRegex(errors.UserCodeError, f'{who} {message}'):
          learner.step(_batch(learner))

  @eager.eagerly()
  def test_a_delayed_policy_has_no_term_when_it_does_not_learn(self):
    learner = setup.make_learner(
        _config('td3'), _SPEC, addons={'pull': _pull})
    batch = _batch(learner)
    has_term = ['pull' in learner.step(batch).scalars for _ in range(4)]
    self.assertEqual(has_term, [True, False, True, False])

  @parameterized.parameters('sac', 'ddpg', 'mpo')
  @eager.eagerly()
  def test_variables_that_nobody_learns_are_an_error(self, algorithm):
    layer = tf.keras.layers.Dense(3)
    layer.build([None, 4])
    fixed = tf.Variable(2., trainable=False)

    def own(agent, data):
      return tf.reduce_mean(layer(agent.params(data.observation)[:, :1]
                                  * tf.ones([1, 4])))

    learner = setup.make_learner(_config(algorithm), _SPEC,
                                 addons={'own': own})
    with self.assertRaisesRegex(
        errors.ConfigError, r'^The addon own uses variables .*/kernel \[4, 3\],'
        r' .*/bias \[3\]\. Make'):
      learner.step(_batch(learner))

    def targets(agent, data):  # All variables of the algorithm.
      return fixed * tf.add_n([tf.reduce_sum(tf.convert_to_tensor(v)) for v in (
          *learner.algorithm.targets, *agent.variables,
          *sum(learner.algorithm.groups.values(), []))])

    learner = setup.make_learner(_config(algorithm), _SPEC,
                                 addons={'targets': targets})
    self.assertIn('targets', learner.step(_batch(learner)).scalars)

  def test_groups_of_other_names_are_an_error(self):
    algorithm = mock.Mock(
        groups={'critic': [], 'actor': []}, targets=[],
        agent=mock.Mock(variables=[]))
    with self.assertRaisesRegex(
        errors.ConfigError, '^An addon needs a group named policy or agent.$'):
      addons_lib.WithAddons(algorithm, {'pull': _pull}, share=1.0)


MUTATIONS = (
    dict(file='runs/training', catches=(
        'test_a_training_with_whole_batches_resumes_with_other_addons'), rows=(
        ('parts of batches with an addon',
         'config = addons_lib.with_whole_batches(config, addons).resolved(',
         'config = config.resolved('),
        ('a flag of nobody is kept for a resumed run',
         '    asked = config\n',
         '    asked = addons_lib.with_whole_batches(config, addons)\n'),
    )),
    dict(file='runs/training',
         catches='test_measured_updates_have_whole_batches', rows=(
        ('a flag of nobody is kept after a measurement',
         'micro_batch_size=config.micro_batch_size)',
         'micro_batch_size=whole.micro_batch_size)'),
        ('updates of parts of batches are measured',
         'measuring.chosen(whole,', 'measuring.chosen(config,'),
    )),
    dict(file='algorithms/addons',
         catches='test_groups_of_other_names_are_an_error', rows=(
        ('an addon without a group has no effect',
         'if self._group not in self.groups:', 'if False:'),
    )),
    dict(file='algorithms/addons',
         catches='test_variables_that_nobody_learns_are_an_error', rows=(
        ('all variables are allowed', 'if v.ref() not in self._saved', 'if 0'),
        ('targets are refused', '*algorithm.agent.variables, '
         '*algorithm.targets,', '*algorithm.agent.variables,'),
    )),
    dict(file='runs/setup', catches='test_wrong_functions', rows=(
        ('functions of Python are not checked',
         "{name: _checked(function, f'{name} of addons')",
         '{name: function'),
    )),
    dict(file='runs/setup', catches='test_several_learners_count_a_term_once',
         rows=(
        ('each learner adds the whole term', '1 / collectives.size)', '1.)'),
    )),
    dict(file='runs/setup', catches='test_a_function_of_the_command', rows=(
        ('no addon of the command', '  if config.addon:', '  if False:'),)),
    dict(file='runs/setup', catches='test_wrong_functions',
         rows=(
        ('an addon of any shape', 'loss.shape.rank != 0', 'False'),)),
)


if __name__ == '__main__':
  absltest.main()
