# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares losses, gradients and replay with stable-baselines3.

  pip install 'stable-baselines3>=2.7'

Skipped without it. Weights, batches and noise are ours. Its program makes one
update with a learning rate of 0, which leaves the losses in its log and the
gradients in its parameters.
"""

from unittest import mock

import numpy as np
import pytest

stable_baselines3 = pytest.importorskip(
    'stable_baselines3', minversion='2.7.0')
torch = pytest.importorskip('torch')

from absl.testing import parameterized
import gymnasium
import replay_logs
from scalable_agent import algorithms
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.losses import q_learning
from scalable_agent.settings import config as config_lib
from stable_baselines3.common import buffers
from stable_baselines3.common import logger as logger_lib
from stable_baselines3.common import type_aliases
from stable_baselines3.common import utils
from stable_baselines3.her import her_replay_buffer
import tensorflow as tf

_B, _N, _A = 16, 2, 4
_BOX = gymnasium.spaces.Box(-1.0, 1.0, [_N])
_OBSERVATION = structs.ArraySpec((3,), np.dtype(np.float32))


class _Spaces(gymnasium.Env):
  """An environment that nobody steps."""

  def __init__(self, action_space):
    self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, [3])
    self.action_space = action_space


def _ours(name, actions, **settings):
  """Returns an algorithm whose weights are random, targets included."""
  config = config_lib.Config(
      algorithm=name, level_name='toy', agent='mlp', hidden_sizes='8,5',
      **settings)
  algorithm = algorithms.make(
      config, structs.EnvironmentSpec(_OBSERVATION, actions, 1), seed=1)
  rng = np.random.default_rng(0)
  for variables in (*algorithm.groups.values(), algorithm.targets):
    for variable in variables:
      if variable.shape.rank:
        variable.assign(0.5 * rng.normal(size=variable.shape))
  return algorithm


def _theirs(name, action_space, **settings):
  model = getattr(stable_baselines3, name)(
      'MlpPolicy', _Spaces(action_space), learning_rate=0.0, device='cpu',
      policy_kwargs=dict(net_arch=[8, 5], activation_fn=torch.nn.ReLU),
      buffer_size=9, **settings)
  model.set_logger(logger_lib.Logger(None, []))
  return model


def _batch(is_discrete):
  rng = np.random.default_rng(2)
  normal = lambda *shape: rng.normal(size=(_B, *shape)).astype('f')
  return structs.Transition(
      normal(3), rng.integers(_A, size=_B, dtype='i') if is_discrete
      else np.tanh(normal(_N)), 3 * normal(),
      rng.choice([0, .9, .81, .729], _B).astype('f'), normal(3))


def _update(model, batch, critics=()):
  """Makes one update of theirs.

  Returns:
    Its scalars, and the gradients of the critics' layers when they learned:
    the loss of the policy adds its own to them.
  """
  tensor = lambda x: torch.as_tensor(x if x.ndim > 1 else x[:, None])
  samples = type_aliases.ReplayBufferSamples(
      tensor(batch.observation), tensor(batch.action),
      tensor(batch.next_observation), tensor((batch.discount == 0).astype('f')),
      tensor(batch.reward), tensor(batch.discount))
  gradients = []
  if critics:
    model.critic.optimizer.step = lambda: gradients.extend(
        g.copy() for g in _gradients(critics))
  with mock.patch.object(
      model.replay_buffer, 'sample', lambda *args, **kwargs: samples):
    model.train(gradient_steps=1, batch_size=_B)
  return model.logger.name_to_value, gradients


def _arrays(variables):
  return [v.numpy() for v in variables if v.shape.rank]


def _linears(module):
  return [m for m in module.modules() if isinstance(m, torch.nn.Linear)]


def _set(linears, arrays):
  """Gives kernels and biases to layers."""
  for layer, kernel, bias in zip(linears, arrays[::2], arrays[1::2],
                                 strict=True):
    with torch.no_grad():
      layer.weight.copy_(torch.as_tensor(kernel.T.copy()))
      layer.bias.copy_(torch.as_tensor(bias))


def _gradients(linears):
  """Returns the gradients of kernels and biases, as `_set` takes these."""
  return [g for layer in linears for g in (
      layer.weight.grad.numpy().T, layer.bias.grad.numpy())]


class LossTest(tf.test.TestCase, parameterized.TestCase):

  def _compute(self, algorithm, batch, noise=None):
    """Returns our losses by group, and their gradients."""
    constant = lambda *args, **kwargs: tf.constant(noise)
    with tf.GradientTape(persistent=True) as tape, mock.patch.object(
        tf.random, 'stateless_normal', constant):
      loss = algorithm.loss(
          structs.Transition(*map(tf.constant, batch)), None,
          tuple(algorithm.groups), tf.constant([1, 2]))
    return loss.by_group, {
        group: tape.gradient(value, algorithm.groups[group])
        for group, value in loss.by_group.items()}

  def _assert_same(self, theirs, ours):
    self.assertEqual(len(theirs), len(ours))
    for one, other in zip(theirs, ours):
      self.assertAllClose(one, other, rtol=1e-5, atol=1e-5)

  def test_dqn(self):
    algorithm = _ours('ddqn', structs.ActionSpec((_A,)), double_q=False,
                      huber_delta=1.0)
    model = _theirs('DQN', gymnasium.spaces.Discrete(_A), max_grad_norm=1e9)
    _set(_linears(model.q_net), _arrays(algorithm.groups['agent']))
    _set(_linears(model.q_net_target), _arrays(algorithm.targets))
    batch = _batch(is_discrete=True)
    losses, gradients = self._compute(algorithm, batch)
    scalars, _ = _update(model, batch)
    self._assert_same([scalars['train/loss']], [losses['agent']])
    self._assert_same(_gradients(_linears(model.q_net)), gradients['agent'])

  def _set_critics(self, model, algorithm, targets):
    _set(_linears(model.critic), _arrays(algorithm.groups['critic']))
    _set(_linears(model.critic_target), targets)

  def test_td3(self):
    algorithm = _ours('td3', structs.ActionSpec(size=_N), target_noise=0.4,
                      target_noise_clip=0.3)
    model = _theirs('TD3', _BOX, policy_delay=1, target_policy_noise=0.4,
                    target_noise_clip=0.3)
    policy = _linears(model.actor)
    targets = _arrays(algorithm.targets)
    _set(policy, _arrays(algorithm.groups['policy']))
    _set(_linears(model.actor_target), targets[:2 * len(policy)])
    self._set_critics(model, algorithm, targets[2 * len(policy):])
    batch = _batch(is_discrete=False)
    noise = np.random.default_rng(3).normal(size=[_B, _N]).astype('f')
    losses, gradients = self._compute(algorithm, batch, noise)
    with mock.patch.object(
        torch.Tensor, 'normal_',
        lambda self, mean, std: self.copy_(torch.as_tensor(std * noise))):
      scalars, by_critics = _update(model, batch, _linears(model.critic))
    # Their loss of the critics is not halved.
    self._assert_same(
        [scalars['train/critic_loss'] / 2, scalars['train/actor_loss']],
        [losses['critic'], losses['policy']])
    self._assert_same([g / 2 for g in by_critics], gradients['critic'])
    self._assert_same(_gradients(policy), gradients['policy'])

  def test_sac(self):
    algorithm = _ours('sac', structs.ActionSpec(size=_N),
                      initial_temperature=0.5)
    model = _theirs('SAC', _BOX, ent_coef='auto_0.5')
    for variable in algorithm.groups['policy']:
      variable.assign(0.5 * variable)
    *arrays, kernel, bias = _arrays(algorithm.groups['policy'])
    actor = model.actor
    layers = [*_linears(actor.latent_pi), actor.mu, actor.log_std]
    # They have one layer for the means and one for the standard deviations.
    _set(layers, [*arrays, kernel[:, :_N], bias[:_N], kernel[:, _N:],
                  bias[_N:]])
    self._set_critics(model, algorithm, _arrays(algorithm.targets))
    batch = _batch(is_discrete=False)
    # Small: they add 1e-6 to the slope of tanh, which counts near the bounds.
    noise = .1 * np.random.default_rng(3).normal(size=[_B, _N]).astype('f')
    losses, gradients = self._compute(algorithm, batch, noise)
    with mock.patch.object(
        torch.distributions.normal, '_standard_normal',
        lambda *args, **kwargs: torch.as_tensor(noise)):
      scalars, by_critics = _update(model, batch, _linears(model.critic))
    self._assert_same(
        [scalars[f'train/{name}'] for name in (
            'critic_loss', 'actor_loss', 'ent_coef_loss')],
        [losses[name] for name in ('critic', 'policy', 'temperature')])
    self._assert_same(by_critics, gradients['critic'])
    *expected, mu_w, mu_b, std_w, std_b = _gradients(layers)
    self._assert_same(
        [*expected, np.concatenate([mu_w, std_w], 1),
         np.concatenate([mu_b, std_b])], gradients['policy'])
    self._assert_same([model.log_ent_coef.grad.numpy()[0]],
                      gradients['temperature'])


def _log(length):
  """Returns steps without lost lives, which theirs does not know."""
  log = replay_logs.random_log(np.random.default_rng(4), 0, length)
  for step in log:
    step.episode_end = step.done
  for before, step in zip(log, log[1:]):
    step.episode_step = 1 if before.done else before.episode_step + 1
    step.last_observation = step.observation + 0.5
  return log


def _add(theirs, log, observation=lambda x: x):
  """Adds the steps of a log to a buffer of theirs."""
  array = lambda x: observation(np.array([[x, -x]], np.float32))
  for before, step in zip(log, log[1:]):
    theirs.add(
        array(before.observation),
        array(step.last_observation if step.done else step.observation),
        np.array([step.action]), np.array([step.reward]),
        np.array([step.done]), [{'TimeLimit.truncated': step.truncated}])


class _Goals:
  """The part of their vector of environments that computes rewards."""

  def env_method(self, name, achieved, desired, infos, indices):
    assert (name, indices) == ('compute_reward', [0])
    return [self.reward(achieved, desired)]

  def reward(self, achieved, desired):
    """A number that tells both."""
    return achieved[:, 0] - 3 * desired[:, 0]


class ReplayTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(1, 2, 3, 5)
  def test_n_step_returns(self, num_steps):
    log = _log(60)
    store = replay_lib.StepStore(replay_logs.SPEC, 100, 1)
    store.add(replay_logs.unroll([log], [0], 0, 60))
    theirs = buffers.NStepReplayBuffer(
        100, gymnasium.spaces.Box(-9.0, 9.0, [2]),
        gymnasium.spaces.Discrete(1000), 'cpu', n_steps=num_steps, gamma=0.9)
    _add(theirs, log)
    sampled = theirs._get_samples(np.arange(60))
    ours = replay_lib.NStep(0.9, num_steps)(
        store, np.arange(60), np.random.default_rng(0))
    self.assertAllEqual(ours.observation, sampled.observations)
    self.assertAllEqual(ours.action, sampled.actions[:, 0])
    self.assertAllClose(ours.reward, sampled.rewards[:, 0])
    self.assertAllClose(
        ours.discount, ((1 - sampled.dones) * sampled.discounts)[:, 0])
    self.assertAllEqual(ours.next_observation, sampled.next_observations)
    self.assertGreater(np.sum(ours.discount == 0), 3)

  @parameterized.parameters('final', 'future')
  def test_hindsight(self, strategy):
    log = _log(60)
    log[-1].done = log[-1].episode_end = True  # Theirs draws whole games.
    store = replay_lib.StepStore(replay_logs.GOAL_SPEC, 100, 1)
    store.add(replay_logs.with_goals(replay_logs.unroll([log], [0], 0, 60)))
    spaces = gymnasium.spaces.Dict({
        name: gymnasium.spaces.Box(-9.0, 9.0, spec.shape)
        for name, spec in replay_logs.GOAL_SPEC.observation.items()})
    theirs = her_replay_buffer.HerReplayBuffer(
        100, spaces, gymnasium.spaces.Discrete(1000), _Goals(), 'cpu',
        n_sampled_goal=4, goal_selection_strategy=strategy)
    _add(theirs, log, replay_logs.goals)
    num = 30_000
    np.random.seed(0)
    sampled = theirs.sample(num)
    ours = replay_lib.Hindsight(
        replay_lib.NStep(0.9), _Goals().reward, strategy, 4)(
            store, np.random.default_rng(0).integers(60, size=num),
            np.random.default_rng(1))

    def counts(observation, action, reward, is_end, after):
      """Returns all different transitions, and the share of each."""
      table = np.concatenate([
          np.asarray(x).reshape([num, -1]) for x in (
              *(observation[name] for name in sorted(observation)), action,
              reward, is_end, *(after[name] for name in sorted(after)))], -1)
      rows, number = np.unique(table, axis=0, return_counts=True)
      return rows, number / num

    our_rows, our_shares = counts(
        ours.observation, ours.action, ours.reward, ours.discount == 0,
        ours.next_observation)
    rows, shares = counts(
        sampled.observations, sampled.actions, sampled.rewards,
        sampled.dones, sampled.next_observations)
    self.assertAllClose(our_rows, rows)
    self.assertAllClose(our_shares, shares, rtol=0, atol=0.003)
    self.assertGreater(len(rows), 120 if strategy == 'future' else 100)

    def distances(observation):
      """Returns how far the goals are ahead that are not their own."""
      goals, now = (np.asarray(observation[name])[:, 0]
                    for name in ('desired_goal', 'observation'))
      return (goals / 2 - now)[goals != replay_logs.GOAL]

    our_distances, theirs_distances = (
        distances(ours.observation), distances(sampled.observations))
    # The standard deviations are 70, and at most 0.02.
    self.assertAllClose(len(our_distances), len(theirs_distances), 0, 300)
    self.assertAllClose(
        np.mean(our_distances), np.mean(theirs_distances), 0, 0.1)

  def test_targets(self):
    rng = np.random.default_rng(5)
    online, target = rng.normal(size=[2, 7]).astype('f')
    theirs = torch.as_tensor(target.copy())
    utils.polyak_update([torch.as_tensor(online)], [theirs], 0.3)
    self.assertAllClose(
        theirs, q_learning.incremental_update(target, online, 0.3))


if __name__ == '__main__':
  tf.test.main()
