# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the lines before the first update, and of the last lines."""

import dataclasses
import json
import os
import re
import sys
import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import in_process
import numpy as np
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import feeds
from scalable_agent.runs import messages
from scalable_agent.runs import setup
from scalable_agent.scores import evaluations
from scalable_agent.settings import config as config_lib


def _config(**settings):
  return config_lib.Config(level_name='CartPole-v1', **settings)


_FRAMES = structs.ArraySpec((72, 96, 3), np.dtype(np.uint8))
_VECTOR = structs.ArraySpec((4,), np.dtype(np.float32))


class ChoicesTest(absltest.TestCase):

  def test_what_was_chosen_is_said(self):
    config = config_lib.Config(num_actors=8)
    say = lambda config, spec: messages._choices(
        config, config.resolved(spec, on_cpu=True, num_groups=2))
    self.assertEqual(
        say(config, _FRAMES),
        'Chosen: --agent=deep for frames, --xla=none, '
        '--dynamic_batching=false, --micro_batch_size=2.')
    self.assertEqual(
        say(dataclasses.replace(config, xla='all'), _VECTOR),
        'Chosen: --agent=mlp for observations that are not frames, '
        '--dynamic_batching=false, --micro_batch_size=2.')
    self.assertEqual(
        say(config_lib.Config(algorithm='ddqn'), _FRAMES),
        'Chosen: --agent=nature for frames, --xla=none, '
        '--dynamic_batching=false, --updates_per_call=8.')
    resolved = config.resolved(_FRAMES, on_cpu=True, num_groups=2)
    self.assertEqual(say(resolved, _FRAMES), '')
    chosen = re.findall(r'--\w+=\w+', say(config, _FRAMES))
    self.assertEqual(experiment.parse(['--num_actors=8', *chosen]), resolved)


class StartTest(absltest.TestCase):

  def _said(self, before=None, **settings):
    config = _config(use_lstm=False, agent='mlp', **settings)
    actors = mock.Mock(num_groups=2)
    actors.spec = structs.EnvironmentSpec(_VECTOR, structs.ActionSpec((2,)), 1)
    actors.counts.return_value = {}
    return in_process.printed(
        messages.print_start, config, config, before, actors, 1)

  def test_the_default_length_is_said(self):
    line = 'The training has 1,000,000,000 frames by default'
    self.assertIn(line, self._said())
    self.assertNotIn(line, self._said(total_environment_frames=10**6))
    self.assertNotIn(line, self._said(before=_config()))


class FirstUpdateTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(batch_size=3, unroll_length=7), 21),
      (dict(batch_size=3, unroll_length=7, num_action_repeats=2), 42),
      (dict(batch_size=4, unroll_length=7, replay_capacity=8,
            replay_fraction=.5), 14),
      (dict(batch_size=4, unroll_length=7, replay_capacity=8,
            unrolls_per_collect=5), 35),
      (dict(batch_size=12, unroll_length=7, replay_capacity=20,
            unrolls_per_collect=5), 105),
      (dict(algorithm='appo', num_actors=6, unroll_length=7), 42),
      (dict(algorithm='sac', min_replay_steps=500), 500),
      # A sequence of 3 + 5 + 1 steps of each environment.
      (dict(algorithm='sac', min_replay_steps=20, use_lstm=True,
            burn_in_steps=3, sequence_length=5, num_actors=4,
            unroll_length=2), 36))
  def test_frames(self, settings, expected):
    self.assertEqual(_config(**settings).num_first_frames, expected)

  @parameterized.parameters(
      (dict(batch_size=4, unroll_length=5), 'batch_size=4 unrolls'),
      (dict(batch_size=4, unroll_length=5, replay_capacity=9,
            unrolls_per_collect=2),
       'batch_size=4 unrolls, in collections of --unrolls_per_collect=2,'),
      (dict(algorithm='appo', num_actors=4, unroll_length=5),
       'unrolls_per_collect=4 unrolls'))
  def test_a_batch_that_is_never_full_is_refused(self, settings, unrolls):
    setup.check_first_update(_config(total_environment_frames=20, **settings))
    with self.assertRaisesRegex(
        errors.ConfigError, f'^Nothing would be learned: --{unrolls} of '
        '--unroll_length=5 steps take 20 frames, and '
        '--total_environment_frames=19.$'):
      setup.check_first_update(_config(total_environment_frames=19, **settings))

  def test_frames_are_said_until_the_first_update(self):
    learner = mock.Mock(num_updates=0)
    actors = mock.Mock(num_steps=lambda: 600)
    say = messages.waiting(
        _config(batch_size=20, unroll_length=100, num_action_repeats=2,
                progress_secs=1e-9), learner, actors, num_learners=3)
    self.assertEqual(
        in_process.printed(say),
        '3,600 of 4,000 frames collected for the first update.\n')
    actors.num_steps = lambda: 800
    self.assertStartsWith(in_process.printed(say), '4,000 of 4,000 frames')
    learner.num_updates = 1
    self.assertEmpty(in_process.printed(say))
    learner.num_updates = 0
    self.assertEmpty(in_process.printed(messages.waiting(
        _config(progress_secs=1e9), learner, actors, 1)))

  @parameterized.parameters(False, True)
  def test_a_feed_that_waits_says_so(self, takes_turns):
    stop = threading.Event()
    inbox = queues.BoundedQueue[unrolls.Delivery](1)
    turns = feeds.TurnTaker(inbox) if takes_turns else None

    def samples():
      (turns or inbox).get()
      yield None

    feed = feeds.Feed(inbox, feeds.Source(samples()), mock.Mock(), 1,
                      turns=turns)
    calls = []

    def waiting():
      calls.append('waiting')
      if len(calls) == 3:
        stop.set()

    feed.waiting = waiting
    feed.start()
    self.assertEmpty(list(feed.batches(stop)))
    self.assertLen(calls, 3)
    feed.close()
    feed.join(9)


class UnlearnedTest(parameterized.TestCase):

  @parameterized.parameters(
      (dict(unroll_length=30), 'unroll of 30 steps, 10 are never learned: '),
      (dict(unroll_length=20), ''), (dict(use_lstm=False), ''),
      (dict(algorithm='impala', unroll_length=100), ''))
  def test_steps_in_no_sequence_are_said(self, settings, expected):
    said = messages._unlearned(config_lib.Config(
        **{'algorithm': 'sac', 'use_lstm': True, **settings}))
    self.assertIn(expected, said)
    self.assertEqual(bool(said), bool(expected))


class NextTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir('a run').full_path

  def _evaluate(self, *means):
    evaluations.start(self.logdir, 0)
    for i, mean in enumerate(means, 1):
      evaluations.append(
          self.logdir, evaluations.Evaluation(1000 * i, i, 9., (mean, mean)))
    # The oldest weights of the highest mean are kept.
    self._keep(1 + means.index(max(means)), max(means))
    self._save(len(means))

  def _save(self, number):
    with open(os.path.join(self.logdir, f'ckpt-{number}.index'), 'w'):
      pass

  def _keep(self, number, mean):
    """Makes files as if the weights in `best/` had the mean."""
    self.best = os.path.join(self.logdir, 'best')
    os.makedirs(self.best, exist_ok=True)
    with open(os.path.join(self.best, f'ckpt-{number}.index'), 'w'):
      pass
    with open(os.path.join(self.best, 'means.json'), 'w') as f:
      json.dump({'ckpt-0': 900., f'ckpt-{number}': mean}, f)

  def _next(self, program='/x/experiment.py', only_here=False):
    with mock.patch.object(sys, 'argv', [program]):
      return in_process.printed(messages.print_next, self.logdir, only_here)

  def test_without_evaluations(self):
    self.assertEqual(self._next(), (
        'Next, test the agent, draw the curves, record videos (of environments '
        'with pictures):\n'
        f"  python experiment.py --logdir='{self.logdir}' --mode=test\n"
        f"  python experiment.py --logdir='{self.logdir}' --mode=plot\n"
        f"  python experiment.py --logdir='{self.logdir}' --mode=video\n"))
    self.assertIn('  scalable-agent --logdir=', self._next('scalable-agent'))
    self.assertEqual(
        re.findall(r'--mode=(\w+)', self._next(only_here=True)), ['plot'])

  def test_the_best_weights_are_named_if_they_are_better(self):
    self._evaluate(3., 500., 500., 155.9)
    best = os.path.join(self.logdir, 'best')
    text = self._next()
    self.assertStartsWith(text, (
        f'The best evaluation, mean 500.00, is of the weights in {best}; the '
        'last evaluation has mean 155.90 at 4,000 frames.\n'))
    self.assertIn(f"--logdir='{best}' --mode=test", text)
    self.assertIn(f"--logdir='{self.logdir}' --mode=plot", text)
    self.assertIn(f"--logdir='{best}' --mode=video", text)

  def test_the_last_one_is_the_best_one(self):
    self._evaluate(3., 500., 500.)
    self.assertEmpty(messages.best_is_better(self.logdir))
    text = self._next()
    self.assertStartsWith(
        text, 'The last evaluation is the best one: mean 500.00 at 3,000 ')
    self.assertNotIn('/best', text)

  def test_weights_of_the_last_evaluation_that_a_kill_has_lost(self):
    for last_mean, line in ((5., ''), (20., (
        f'The best evaluation, mean 20.00, is of the weights in '
        f'{self.logdir}/best; the last evaluation has mean 10.00 at 1,000 '
        'frames.'))):
      self._evaluate(10., last_mean)
      os.remove(os.path.join(self.logdir, 'ckpt-2.index'))
      self._save(1)
      self.assertEqual(messages.best_is_better(self.logdir), line)

  def test_an_unfinished_copy_of_the_best_weights(self):
    self._evaluate(3., 1.)
    [index] = [name for name in os.listdir(self.best)
               if name.endswith('.index')]
    os.remove(os.path.join(self.best, index))
    open(os.path.join(self.best, index.replace(
        '.index', '.data-00000-of-00001')), 'w').close()
    self.assertEmpty(messages.best_is_better(self.logdir))

  def test_a_stopped_run_has_weights_that_were_not_evaluated(self):
    self._evaluate(3., 500., 500.)
    self._save(1234)
    text = self._next()
    self.assertStartsWith(text, (
        f'The best evaluation, mean 500.00, is of the weights in {self.best}; '
        'the last evaluation has mean 500.00 at 3,000 frames. The latest '
        'weights, of update 1,234, were not evaluated.\n'))
    self.assertIn(f"--logdir='{self.best}' --mode=test", text)

  def test_a_mean_that_no_short_decimal_number_equals(self):
    self._evaluate(3., float(np.float32(2894.3)))
    self.assertStartsWith(
        self._next(), 'The last evaluation is the best one: mean 2894.30 at ')

  def test_weights_that_are_lost(self):
    self._evaluate(3., 1.)
    os.remove(os.path.join(self.best, 'ckpt-1.index'))
    self.assertEmpty(messages.best_is_better(self.logdir))
    self.assertNotIn('is the best one', self._next())

  def test_weights_of_an_evaluation_that_a_killed_run_has_repeated(self):
    self._evaluate(3., 450.)
    self._keep(7, 500.)
    self.assertStartsWith(
        self._next(), f'The best evaluation, mean 500.00, is of the weights in '
        f'{self.best}; the last evaluation has mean 450.00 at 2,000 frames.\n')


MUTATIONS = (
    dict(file='runs/messages', catches='test_the_default_length_is_said',
         rows=(
        ('said again when resumed',
         '(not before and _long_default(config),',
         '(_long_default(config),'),
    )),
    dict(file='learning/feeds', catches='test_a_feed_that_waits_says_so', rows=(
        ('nothing is said while a thread collects',
         '        self.waiting()\n        continue', '        continue'),
        ('nothing is said with turns',
         '      self.waiting()\n      try:\n        unroll, release',
         '      try:\n        unroll, release'),
    )),
    dict(file='runs/messages', catches='test_the_last_one_is_the_best_one',
         rows=(
        ('equal means count as better',
         'last.mean >= best', 'last.mean > best'),
    )),
    dict(file='runs/messages',
         catches='test_weights_of_the_last_evaluation_that_a_kill_has_lost',
         rows=(
        ('the weights of the last evaluation are the latest weights',
         '(of_latest or done)[-1]', 'done[-1]'),
    )),
    dict(file='runs/messages',
         catches='test_a_stopped_run_has_weights_that_were_not_evaluated',
         rows=(
        ('weights that were not evaluated are to be tested',
         'if is_evaluated and last', 'if last'),
        ('the last line is left out', 'return line if is_evaluated else (',
         'return line if line else ('),
    )),
    dict(file='runs/checkpoint_files', catches='test_weights_that_are_lost',
         rows=(
        ('weights that are lost are named',
         "best).get(os.path.basename(path or ''))",
         'best).get("ckpt-0")'),
    )),
)


if __name__ == '__main__':
  absltest.main()
