# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of APPO: defaults, refusals, and lines at the start of a run."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import errors
from scalable_agent.algorithms import appo
from scalable_agent.experience import structs
from scalable_agent.runs import messages
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections

_DEFAULTS = dict(
    batch_size=1, unrolls_per_collect=4, passes=4, unroll_length=64,
    num_actor_groups=2, learning_rate=.00025, learning_rate_schedule='linear',
    optimizer='adam', epsilon=1e-5, clip_gradient_norm=.5, reduction='mean',
    lambda_=.95, discounting=.99, entropy_cost=-1, baseline_cost=.5,
    reward_clipping='none', bootstrap_truncated=True, squash_actions=False,
    use_lstm=False, use_last_action_reward=False, hidden_sizes='64,64',
    normalise_observations='auto', normalise_returns=True, clip_ratio=.2,
    clip_value=0., kl_cost=0., normalise_advantages=False, test_greedy=False,
    scale_from_state=False, overlap=False, is_off_policy=False,
    takes_turns=True, updates_per_step=None, replay_capacity=0,
    target_policy_period=0, learning_rate_kl=.008)


class SettingsTest(parameterized.TestCase):

  def test_defaults(self):
    config = config_lib.Config(algorithm='appo', level_name='CartPole-v1')
    self.assertEqual(
        {name: getattr(config, name) for name in _DEFAULTS}, _DEFAULTS)
    atari = config_lib.Config(algorithm='appo', level_name='ALE/Pong-v5')
    self.assertEqual(
        (atari.clip_ratio, atari.reward_clipping, atari.unroll_length),
        (.1, 'abs_one', 64))

  def test_defaults_by_memory_and_actions(self):
    for settings, passes in ((dict(use_lstm=True), 2), (
        dict(use_lstm=True, passes=5), 5), (dict(use_lstm=False), 4)):
      self.assertEqual(
          config_lib.Config(algorithm='appo', **settings).passes, passes)
    cost = lambda actions, **settings: appo.entropy_cost(
        sections.ImpalaSettings(algorithm='appo', **settings), actions)
    discrete, continuous = structs.ActionSpec((3,)), structs.ActionSpec(size=2)
    self.assertEqual([cost(discrete), cost(continuous)], [.01, 0])
    for actions in (discrete, continuous):
      self.assertEqual(cost(actions, entropy_cost=.3), .3)

  def test_lines_at_the_start(self):
    lines = lambda actions, **settings: list(messages._about_appo(
        config_lib.Config(num_actors=16, **settings), actions))
    self.assertEmpty(lines(structs.ActionSpec(size=2)))
    [cost] = lines(structs.ActionSpec(size=2), algorithm='appo')
    self.assertEqual(cost,
                     'Chosen: --entropy_cost=0 for continuous actions.')
    [few] = lines(structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
                  unroll_length=8)
    self.assertIn('An update has 32 steps', few)
    # As in appo_vectors, where larger batches were worse.
    self.assertEmpty(lines(
        structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
        unroll_length=8, normalise_advantages=True))
    [norm] = lines(structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
                   reduction='sum')
    self.assertIn('--reduction=sum are 256 times as large', norm)
    self.assertEmpty(lines(
        structs.ActionSpec((2,)), algorithm='appo', entropy_cost=0,
        reduction='sum', clip_gradient_norm=0))

  def test_a_rate_by_kl_is_kept_with_a_word(self):
    make = lambda rate, schedule: config_lib.Config(
        algorithm='appo', learning_rate=rate, learning_rate_schedule=schedule)
    self.assertIn(': --learning_rate=0.002, as a resumed', messages._not_taken(
        make(.001, 'kl'), make(.002, 'kl')))
    for before, after in (
        (make(.001, 'kl'), make(.001, 'kl')),
        (make(.001, 'kl'), make(.002, 'linear')),
        (make(.001, 'linear'), make(.002, 'linear'))):
      self.assertEqual(messages._not_taken(before, after), '')
    sac = lambda first: config_lib.Config(
        algorithm='sac', initial_temperature=first)
    self.assertEqual(messages._not_taken(sac(.5), sac(.5)), '')
    self.assertEqual(
        messages._not_taken(sac(.5), sac(.25)),
        'Without effect: --initial_temperature=0.25, as a resumed run goes on '
        'with the values of its checkpoint.')

  @parameterized.parameters(
      (dict(num_actors=16), 16, 4), (dict(num_actors=10), 10, 2),
      (dict(num_actors=7), 7, 1), (dict(num_actors=14), 14, 2),
      (dict(num_actors=8, batch_size=8), 8, 8),
      (dict(num_actors=4, unrolls_per_collect=24), 24, 6),
      (dict(num_actors=16, num_learners=2, num_actor_workers=2,
            ray_address='local'), 16, 4),
      (dict(num_actors=4, num_learners=2, num_actor_workers=2,
            ray_address='local'), 4, 2))
  def test_sizes(self, settings, collection, batch):
    config = config_lib.Config(algorithm='appo', **settings)
    self.assertEqual((config.unrolls_per_collect, config.batch_size),
                     (collection, batch))
    saved = config_lib.Config.from_saved(vars(config))
    self.assertEqual(saved, config)
    if config.num_learners > 1:
      part = config.of_learner(config.num_actors // 2)
      self.assertEqual((part.unrolls_per_collect, part.batch_size),
                       (collection // 2, batch // 2))

  def test_batches_that_do_not_come_out_even(self):
    with self.assertRaisesRegex(errors.ConfigError, 'must be a multiple of'):
      config_lib.Config(algorithm='appo', num_actors=8, batch_size=3)

  @parameterized.parameters(
      (dict(normalise_advantages=True, micro_batch_size=1, batch_size=2),
       'whole batch at once'),
      (dict(normalise_advantages=True, num_learners=2, num_actors=8,
            ray_address='local'), 'whole batch at once'),
      (dict(replay_capacity=8), 'at least 1 with --replay_capacity'),
      (dict(replay_capacity=8, target_policy_period=1, unrolls_per_collect=4),
       'cannot be used with --replay_capacity'),
      (dict(replay_capacity=8, target_policy_period=4,
            learning_rate_schedule='kl'), 'the rate would rise'),
      (dict(target_policy_period=1, learning_rate_schedule='kl'),
       'the rate would rise'),
      *[(dict(updates_per_call=number, num_actors=12, batch_size=2, passes=4)
         | settings, 'must divide the updates of all --passes')
        for number, settings in (
            (5, {}), (4, {}), (48, {}), (6, dict(target_policy_period=4)),
            (6, dict(micro_batch_size=1)),
            (2, dict(replay_capacity=8, target_policy_period=2)))],
      (dict(algorithm='impala', learning_rate_schedule='kl'),
       'needs --algorithm=appo'))
  def test_refusals(self, settings, text):
    with self.assertRaisesRegex(errors.ConfigError, text):
      config_lib.Config(**dict(algorithm='appo') | settings)

  @parameterized.parameters(
      ({}, 24), (dict(passes=8), 24), (dict(passes=5), 30), (dict(passes=1), 6),
      (dict(batch_size=12, passes=33), 11), (dict(target_policy_period=4), 2),
      (dict(micro_batch_size=1), 1), (dict(overlap=True), 1),
      (dict(use_lstm=True), 1), (dict(agent='nature'), 1),
      (dict(addon='module:function'), 24), (dict(updates_per_call=3), 3),
      (dict(updates_per_call=3, num_learners=2, ray_address='local'), 3),
      (dict(updates_per_call=2, agent='nature', xla='all', batch_size=6), 2))
  def test_updates_per_call(self, settings, number):
    config = config_lib.Config(**dict(
        algorithm='appo', num_actors=12, batch_size=2, passes=4) | settings)
    resolved = config.resolved(
        structs.ArraySpec((3,), np.dtype(np.float32)), on_cpu=True,
        num_groups=1)
    self.assertEqual(resolved.updates_per_call, number)
    self.assertEqual(
        resolved.xla, 'all' if number > 1 and not config.addon
        and config.num_learners == 1 else (
            'policy' if config.agent == 'auto' else 'none'))

  def test_waiting(self):
    turns = lambda **settings: config_lib.Config(
        algorithm='appo', **settings).takes_turns
    self.assertFalse(turns(overlap=True))
    self.assertFalse(turns(ray_address='local'))
    self.assertFalse(config_lib.Config().takes_turns)
    self.assertEqual(
        [training.num_threads_per_op(config_lib.Config(
            algorithm='appo', overlap=overlap), 2) for overlap in (False, True)
         ], [0, 1])


# See `mutations.py`.
MUTATIONS = (
    dict(
        file='settings/joined',
        catches='test_updates_per_call',
        rows=(
            ('several updates of micro-batches',
             'not 0 < self.micro_batch_size < self.batch_size\n',
             'True\n'),
            ('no updates of parts of several learners',
             'not 0 < self.micro_batch_size < self.batch_size\n',
             'self.micro_batch_size in (0, self.batch_size)\n'),
            ('calls over the end of a pass',
             'per_pass % num_updates and num_updates % per_pass)',
             'False)'),
            ('calls over a copy to the target policy',
             'not self.target_policy_period % num_updates)',
             'True)'),
        )),
    dict(
        file='settings/config',
        catches='test_updates_per_call',
        rows=(
            ('old weights for actors that do not wait',
             'not self.use_lstm and self.takes_turns',
             'not self.use_lstm'),
            ('XLA compiles addons',
             'is_known = not self.addon and (',
             'is_known = ('),
            ('a loop of one update is compiled',
             'and num_updates > 1)',
             'and True)'),
            ('micro-batches of several updates',
             'and num_updates <= 1)\n',
             ')\n'),
        )),
    dict(
        file='settings/joined',
        catches='test_refusals',
        rows=(
            ('calls over the end of a collection',
             'not declare.used(self.passes) * per_pass % num_updates',
             'True'),
            ('several updates with a ring',
             'return (not self.replay_capacity\n',
             'return (True\n'),
        )),
    dict(
        file='settings/joined',
        catches='test_refusals',
        rows=(
            ('advantages of parts are normalised',
             'not self.normalise_advantages or (',
             'True or ('),
            ('a ring without a target policy',
             'self.target_policy_period > 0,',
             'True,'),
            ('collections beside a ring',
             'not self.unrolls_per_collect,',
             'True,'),
            ('rates by KL with a ring',
             'or not (self.replay_capacity or self.target',
             'or not (self.target'),
            ('rates by a KL of 0',
             'or self.target_policy_period == 1),',
             'or False),'),
            ('rates by KL without a KL',
             "self.learning_rate_schedule != 'kl'\n",
             "self.learning_rate_schedule != 'kls'\n"),
        )),
    dict(
        file='settings/joined',
        catches='test_defaults',
        rows=(
            ('acting never waits for appo',
             "or self.algorithm == 'appo' and not (",
             'or False and not ('),
        )),
    dict(
        file='runs/messages',
        catches='test_lines_at_the_start',
        rows=(
            ('a recipe warns of itself',
             ' and not config.normalise_advantages', ''),
        )),
    dict(
        file='algorithms/appo',
        catches='test_defaults_by_memory_and_actions',
        rows=(
            ('entropy has a weight for all actions',
             '0. if actions.size else .01',
             '.01'),
        )),
    dict(
        file='settings/declare',
        catches='test_defaults_by_memory_and_actions',
        rows=(
            ('an LSTM has no passes of its own',
             "f'{self.algorithm} with LSTM')",
             "'ddqn with LSTM')"),
        )),
    dict(
        file='runs/messages',
        catches='test_lines_at_the_start',
        rows=(
            ('no line about the norm of sums',
             "config.reduction == 'sum' and norm",
             "config.reduction == 'sums' and norm"),
            ('a line without a norm',
             "config.reduction == 'sum' and norm",
             "config.reduction == 'sum'"),
        )),
    dict(
        file='settings/joined',
        catches='test_sizes',
        rows=(
            ('a batch of any size',
             'if not size % b]',
             ']'),
        )),
    dict(
        file='settings/joined',
        catches='test_waiting',
        rows=(
            ('overlap with ray',
             'self.overlap or self.ray_address)',
             'self.overlap)'),
        )),
    dict(
        file='settings/joined',
        catches='test_batches_that_do_not_come_out_even',
        rows=(
            ('passes that do not come out even',
             'self.unrolls_per_collect % self.batch_size == 0,',
             'True,'),
        )),
)


if __name__ == '__main__':
  absltest.main()
