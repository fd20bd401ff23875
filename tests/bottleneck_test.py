# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the line that names a bottleneck."""

import pathlib
from unittest import mock

from absl.testing import absltest
from scalable_agent.networks import layers
from scalable_agent.runs import bottleneck as bottleneck_lib
from scalable_agent.settings import config as config_lib
import tensorflow as tf


def _bottleneck(num_groups, has_processes=True, has_bfloat16=False, **settings):
  config = config_lib.Config(
      num_actors=16, num_actor_groups=num_groups, **settings)
  return bottleneck_lib.Bottleneck(config, has_processes, has_bfloat16)


class BottleneckTest(absltest.TestCase):

  def test_is_said_once(self):
    bottleneck = _bottleneck(2)
    self.assertStartsWith(
        bottleneck({'wait': 6, 'learn': 4}, {'wait': 1, 'policy': 9}),
        'Acting is the bottleneck: the learner waits 60 % of the time. ')
    # From now on, the learner has not waited.
    self.assertEmpty(
        bottleneck({'wait': 12, 'learn': 5}, {'wait': 1, 'policy': 18}))
    self.assertStartsWith(
        bottleneck({'wait': 12, 'learn': 15}, {'wait': 9, 'policy': 20}),
        'Learning is the bottleneck: the actors wait 80 % of the time. ')
    self.assertEmpty(
        bottleneck({'wait': 17, 'learn': 20}, {'wait': 10, 'policy': 24}))
    self.assertStartsWith(bottleneck(
        {'wait': 17, 'learn': 30}, {'wait': 18, 'policy': 26}), 'Learning')
    self.assertEmpty(bottleneck({}, {}))  # All processes were replaced.
    bottleneck({}, {'wait': 20, 'policy': 1980})
    self.assertEmpty(bottleneck({}, {'wait': 45, 'policy': 1045}))  # One was.

  def test_slow_acting_has_advice(self):
    learner = {'wait': 9, 'learn': 1}
    slow, fast = ({'wait': 10, 'environment': seconds, 'policy': 4}
                  for seconds in (5, 3))
    said = 'Acting is the bottleneck: the learner waits 90 % of the time.'
    self.assertEqual(
        _bottleneck(2)(learner, slow),
        said + ' Acting mostly waits for environments: --num_actor_groups=16 '
        'lets each environment wait only for itself.')
    self.assertEqual(
        _bottleneck(16)(learner, slow),
        said + ' Acting mostly waits for environments: more environments '
        '(--num_actors) give more frames, if cores are free.')
    self.assertEqual(  # Atari's games share the cores.
        _bottleneck(2, has_processes=False)(learner, slow),
        _bottleneck(16)(learner, slow))
    self.assertEqual(
        _bottleneck(2)(learner, fast), said + ' Acting mostly computes actions:'
        ' fewer groups (--num_actor_groups) with more environments each make '
        'fewer, larger policy steps.')
    self.assertEqual(
        _bottleneck(1)(learner, fast), said + ' Acting mostly computes actions:'
        ' more environments (--num_actors) make larger policy steps.')
    self.assertEqual(  # Groups share policy steps.
        _bottleneck(2, dynamic_batching=True)(learner, fast),
        _bottleneck(1)(learner, fast))
    for actors in ({}, {'wait': 9}):  # No worker has sent times.
      self.assertEqual(_bottleneck(2)(learner, actors), said)
    bottleneck = _bottleneck(2)
    bottleneck({'learn': 1}, {'policy': 100, 'environment': 100})
    self.assertIn('--num_actor_groups=16', bottleneck(
        {'learn': 1, 'wait': 9}, {'policy': 101, 'environment': 109}))

  def test_slow_learning_has_advice(self):
    for settings, advice in (
        (dict(), '--xla=all (small networks, or a GPU) or with a larger '
         '--batch_size'),
        (dict(xla='all'), 'a larger --batch_size'),
        (dict(xla='all', algorithm='appo'),
         'fewer --passes or a larger --batch_size'),
        (dict(xla='all', algorithm='appo', passes=1), 'a larger --batch_size'),
        (dict(xla='all', algorithm='appo', replay_capacity=16,
              target_policy_period=1), 'a larger --batch_size'),
        (dict(xla='all', algorithm='appo', batch_size=16), 'fewer --passes'),
        (dict(xla='all', algorithm='sac'), 'a smaller --updates_per_step'),
        (dict(xla='all', has_bfloat16=True),
         '--compute_dtype=bfloat16 or a larger --batch_size'),
        (dict(xla='all', has_bfloat16=True, compute_dtype='bfloat16'),
         'a larger --batch_size'),
        (dict(xla='all', has_bfloat16=True, algorithm='sac', agent='mlp'),
         'a smaller --updates_per_step')):
      self.assertEqual(
          _bottleneck(1, **settings)({'learn': 1}, {'wait': 9, 'policy': 1}),
          'Learning is the bottleneck: the actors wait 90 % of the time. '
          f'Learn faster with {advice}, which changes the results.')


class DeviceTest(absltest.TestCase):

  def test_who_has_bfloat16(self):
    gpus = self.enter_context(mock.patch.object(
        tf.config, 'get_visible_devices', return_value=[]))
    read = self.enter_context(mock.patch.object(pathlib.Path, 'read_text'))
    for text, has in (('flags : fpu avx512_bf16 avx512_fp16\n', True),
                      ('flags : fpu avx512_bf16_no\n', False)):
      read.return_value = text
      self.assertEqual(layers.has_bfloat16(), has)
    gpus.return_value = ['old', 'new']
    details = self.enter_context(mock.patch.object(
        tf.config.experimental, 'get_device_details'))
    for old, has in (((7, 5), False), ((8, 0), True)):
      details.side_effect = lambda gpu, old=old: {
          'compute_capability': old if gpu == 'old' else (9, 0)}
      self.assertEqual(layers.has_bfloat16(), has)
    details.side_effect = [{}, {}]  # Not of NVIDIA.
    self.assertFalse(layers.has_bfloat16())


MUTATIONS = (
    dict(file='networks/layers', catches='test_who_has_bfloat16', rows=(
        ('some GPU has bfloat16', 'return all(\n        tf.config',
         'return any(\n        tf.config'),
        ('the processor counts beside GPUs', 'if not on_cpu():', 'if False:'),
        ('a part of a word', '.read_text().split()', '.read_text()'),
    )),
    dict(file='runs/bottleneck', catches='test_slow_acting_has_advice', rows=(
        ('slow environments are not seen', 'if environments > policy',
         'if policy > environments'),
        ('one group cannot be fewer', 'if num_groups > 1', 'if num_groups'),
        ('groups that share steps', ' and not config.dynamic_batching', ''),
        ('no time is time of policies', 'elif policy:', 'else:'),
    )),
    dict(file='runs/bottleneck', catches='test_slow_learning_has_advice', rows=(
        ('compiled updates are proposed again', "if config.xla == 'all' else",
         "if config.xla == '' else"),
        ('bfloat16 on any processor', '(has_bfloat16 and', '(True and'),
        ('bfloat16 for an mlp', "and config.agent != 'mlp'", ''),
        ('bfloat16 twice', "and config.compute_dtype == 'float32'", ''),
        ('one pass could be fewer', '(config.passes or 1) > 1 and', 'True and'),
        ('a ring has passes', ' and not config.replay_capacity', ''),
        ('a batch is larger than its collection',
         'config.batch_size < config.unrolls_per_collect):', 'True):'),
    )),
)


if __name__ == '__main__':
  absltest.main()
