# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Updates of algorithms with memory, beside a slow learner in NumPy.

The slow learner has the losses of `recurrent_test`, in float64. Differences of
these losses are its gradients, number by number. Clipping, Adam and targets are
written out here.
"""

from absl.testing import parameterized
import eager
import numpy as np
import off_policy_test as plain
import pytest
import recurrent_test as recurrent
from scalable_agent import algorithms
from scalable_agent.runs import setup
import tensorflow as tf

_NUM_UPDATES = 3
_CLIP_NORM = .5
_EPSILON = .01
_FOLLOW = .3
_PERIOD = 2
_RATES = {'agent': .03, 'policy': .03, 'critic': .05, 'memory': .02,
          'temperature': .04, 'duals': .04}


def _config(case):
  settings = dict(target_update_rate=_FOLLOW)
  if case in ('ddqn', 'dqn'):
    settings.update(exploration_decay=.5, target_update_period=_PERIOD)
  else:
    settings.update(critic_learning_rate=_RATES['critic'],
                    memory_learning_rate=_RATES['memory'])
  if case.startswith(('sac', 'mpo')):
    settings.update(temperature_learning_rate=_RATES['temperature'],
                    target_update_period=_PERIOD)
  if case == 'td3':
    settings.update(policy_delay=_PERIOD)
  return plain._config(case, **recurrent._settings(**{
      'learning_rate': _RATES['policy'], 'epsilon': _EPSILON,
      'clip_gradient_norm': _CLIP_NORM, **settings}))


class _SlowLearner:
  """Makes updates in NumPy; an algorithm only stores its variables."""

  def __init__(self, case):
    self._case = case
    config = _config(case)
    self._seed = config.derive_seed('learner', 0, 0)
    self._beta_1, self._beta_2 = config.adam_beta1, config.adam_beta2
    self.algorithm = algorithms.make(config, plain._spec(case), 1)
    recurrent._scramble(self.algorithm)
    self._moments = {
        group: [np.zeros([2, *v.shape]) for v in variables]
        for group, variables in self.algorithm.groups.items()}
    self._num_steps = dict.fromkeys(self._moments, 0)
    self._num_updates = 0

  def step(self, data, weights):
    """Makes an update; returns losses and norms by group, and the errors."""
    algorithm = self.algorithm
    truth = recurrent._Truth(algorithm, self._case, data, weights)
    truth.seed = tuple(tf.random.experimental.stateless_fold_in(
        [self._seed, self._num_updates], 0).numpy().tolist())
    errors = truth.sequence_errors()
    losses = truth.losses(truth.groups)
    is_due = self._num_updates % _PERIOD == 0
    groups = [group for group in algorithm.groups
              if is_due or (self._case, group) != ('td3', 'policy')]
    gradients = {group: self._gradients(truth, group) for group in groups}
    norms = {group: self._apply(group, gradients[group]) for group in groups}
    self._num_updates += 1
    is_period = self._num_updates % _PERIOD == 0
    if (self._case == 'ddpg' or self._case == 'td3' and is_due
        or self._case != 'td3' and is_period):
      self._follow()
    return losses, norms, errors

  def _gradients(self, truth, group):
    agent = self.algorithm.agent
    if group == 'memory':
      return _slopes(truth.memory_slope, agent.memory_variables)
    of_heads = lambda i, direction: truth.slope(group, i, direction)
    if group != 'agent':
      return _slopes(of_heads, self.algorithm.groups[group])
    found = {}
    for slope, variables in ((truth.memory_slope, agent.memory_variables),
                             (of_heads, agent.head_variables)):
      found.update(zip(map(id, variables), _slopes(slope, variables)))
    return [found[id(v)] for v in self.algorithm.groups[group]]

  def _apply(self, group, gradients):
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    factor = (1 if group in ('temperature', 'duals')
              else _CLIP_NORM / max(norm, _CLIP_NORM))
    self._num_steps[group] += 1
    step = self._num_steps[group]
    for variable, moments, gradient in zip(
        self.algorithm.groups[group], self._moments[group], gradients,
        strict=True):
      gradient = factor * gradient
      moments[0] = self._beta_1 * moments[0] + (1 - self._beta_1) * gradient
      moments[1] = self._beta_2 * moments[1] + (1 - self._beta_2) * gradient**2
      mean, square = (moment / (1 - beta**step) for moment, beta in zip(
          moments, (self._beta_1, self._beta_2)))
      value = variable.numpy() - _RATES[group] * mean / (
          np.sqrt(square) + _EPSILON)
      # The softplus of a dual stays above 1e-8.
      variable.assign(np.maximum(value, -18) if group == 'duals' else value)
    return norm

  def _follow(self):
    """Moves the targets by a share of the way, variable by variable."""
    algorithm = self.algorithm
    target = algorithm._target.model
    pairs = [*zip(target.memory_variables, algorithm.agent.memory_variables),
             *zip(target.head_variables, algorithm.agent.head_variables)]
    if 'critic' in algorithm.groups:
      pairs += zip(algorithm._critics.targets, algorithm.groups['critic'])
    for to, online in pairs:
      to.assign(to.numpy() + _FOLLOW * (online.numpy() - to.numpy()))


def _slopes(slope, variables):
  found = []
  for i, variable in enumerate(variables):
    gradient = np.zeros(variable.shape)
    for index in np.ndindex(*variable.shape):
      direction = np.zeros(variable.shape)
      direction[index] = 1
      gradient[index] = slope(i, direction)
    found.append(gradient)
  return found


class ThreeUpdatesTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters('ddqn', 'sac')
  @pytest.mark.slow
  def test_weights_after_three_updates(self, case):
    self._check(case)

  @parameterized.parameters(
      'dqn', 'ddpg', 'td3', 'sac_discrete', 'mpo', 'mpo_discrete')
  @pytest.mark.storm
  def test_weights_after_three_updates_of_others(self, case):
    self._check(case)

  @eager.eagerly()
  def _check(self, case):
    learner = setup.make_learner(_config(case), plain._spec(case))
    algorithm = learner.algorithm
    recurrent._scramble(algorithm)
    slow = _SlowLearner(case)
    watched = lambda algorithm: [
        v for variables in (*algorithm.groups.values(), [
            *algorithm._target.model.trainable_variables,
            *(algorithm._critics.targets if 'critic' in algorithm.groups
              else [])]) for v in variables]
    first = [v.numpy() for v in watched(algorithm)]
    for update in range(_NUM_UPDATES):
      data = recurrent._sequences(case, seed=update)
      weights = np.random.default_rng(update).uniform(
          .3, 2, recurrent._B).astype('f')
      found = learner.step(learner.to_device(data, 5, weights))
      losses, norms, errors = slow.step(data, weights)
      self.assertAllClose(found.errors, errors, rtol=1e-4, atol=1e-5)
      for group, norm in norms.items():
        prefix = '' if group == 'agent' else f'{group}/'
        self.assertAllClose(found.scalars[f'{prefix}gradient_norm'], norm,
                            rtol=1e-4, atol=1e-5, msg=group)
        if group not in ('agent', 'memory'):
          self.assertAllClose(found.scalars[f'{group}_loss'], losses[group],
                              rtol=1e-4, atol=1e-4)
    for old, one, other in zip(
        first, watched(algorithm), watched(slow.algorithm), strict=True):
      self.assertAllClose(one, other, rtol=0, atol=3e-5)
      self.assertNotAllClose(one, old, rtol=0, atol=1e-3)


if __name__ == '__main__':
  tf.test.main()
