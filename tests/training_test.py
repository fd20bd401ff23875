# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the loop that learns: order, ends, what hooks are told."""

import builtins
import contextlib
import dataclasses
import functools
import io
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
from unittest import mock
import weakref

from absl.testing import absltest
from absl.testing import parameterized
import in_process
import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.processes import signals
from scalable_agent.replay import steps as step_stores
from scalable_agent.runs import context
from scalable_agent.runs import log
from scalable_agent.runs import messages
from scalable_agent.runs import reports
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib


class _Learner:
  """Notes what is called; an update has 10 frames."""

  def __init__(self, tape):
    self.num_env_frames = 0
    self.num_updates = 0
    self._tape = tape

  def step(self, batch):
    self._tape.append(f'step {batch.data}')
    self.num_env_frames += batch.num_new_frames
    self.num_updates += 1
    return learner_lib.Learned(
        {'total_loss': float(self.num_updates)}, f'errors {batch.data}')

  def weights(self, learned):
    return structs.Weights(self.num_updates, [])


def _note(*versions):
  return structs.Note([], np.zeros([1]), np.zeros([1]), np.array(versions))


def _ready(number, version=0):
  return structs.Batch(number, None, 10, None, [_note(version, version)])


class _Others(collectives_lib.Alone):
  """Another learner, and what it adds to each sum."""

  def __init__(self, added):
    self.told = []
    self._added = iter(added)

  def total(self, numbers):
    self.told.append([int(number) for number in numbers])
    return [a + b for a, b in zip(numbers, next(self._added), strict=True)]


class LearnTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.tape = []
    self.learner = _Learner(self.tape)
    self.stop = threading.Event()

  def _learn(self, batches, hooks=(), total=1000, collectives=None):
    timer = timing.StageTimer()
    training.learn(
        self.learner, iter(batches), end_frames=total,
        publish=lambda weights: self.tape.append(f'publish {weights.version}'),
        learned=lambda batch, learned: self.tape.append(
            f'learned {batch.data} {learned.errors}'),
        hooks=hooks, stop=self.stop, timer=timer,
        collectives=collectives or collectives_lib.Alone())
    return timer

  def test_order_of_an_update(self):
    hooks = [lambda update: self.tape.append(
        f'first hook {update.policy_lag} {max(update.lags)}'),
             lambda update: self.tape.append(
                 f'second hook {update.scalars["total_loss"]}')]
    third = _ready('c')._replace(notes=[_note(2, 1), _note(0)])
    timer = self._learn([_ready('a'), _ready('b', 1), third], hooks)
    self.assertEqual(self.tape, [
        'step a', 'publish 1', 'learned a errors a',
        'first hook 0.0 0', 'second hook 1.0',
        'step b', 'publish 2', 'learned b errors b',
        'first hook 0.0 0', 'second hook 2.0',
        'step c', 'publish 3', 'learned c errors c',
        'first hook 1.0 2', 'second hook 3.0'])
    self.assertEqual(set(timer.seconds), {'wait', 'learn'})

  def test_ends_at_the_total_and_takes_no_further_batch(self):
    batches = iter([_ready(i) for i in range(9)])
    self._learn(batches, total=25)
    self.assertEqual(self.learner.num_env_frames, 30)
    self.assertEqual(next(batches).data, 3)

  def test_a_hook_can_stop(self):
    told = []

    def hook(update):
      told.append(update.learner.num_updates)
      if len(told) == 2:
        self.stop.set()

    self._learn([_ready(i) for i in range(9)], [hook])
    self.assertEqual(told, [1, 2])

  def test_a_hook_that_raises_stop_training_ends_all_learners(self):
    def hook(update):
      self.tape.clear()
      if update.learner.num_updates == 2:
        raise errors.StopTraining('good enough')

    others = _Others([(10, 0, 0)] * 3)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      self._learn([_ready(i) for i in range(9)],
                  [hook, lambda update: self.tape.append('next hook')],
                  collectives=others)
    self.assertEqual(self.tape, ['next hook'])
    self.assertEqual(others.told, [[10, 0, 0], [10, 0, 0], [0, 1, 0]])
    self.assertEqual(output.getvalue().strip(),
                     'A hook has ended the training: good enough.')
    self.assertTrue(self.stop.is_set())

  def test_nothing_is_learned_after_a_stop(self):
    self.stop.set()
    self._learn([_ready(0)])
    self.assertEmpty(self.tape)

  def test_errors_of_batches_pass_through(self):
    def batches():
      yield _ready(0)
      raise RuntimeError('environment 3')

    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      self._learn(batches())
    self.assertEqual(self.tape, ['step 0', 'publish 1', 'learned 0 errors 0'])

  def test_frames_are_those_of_all_learners(self):
    others = _Others([(30, 0, 0), (25, 0, 0)])
    self._learn([_ready(0), _ready(1)], total=70, collectives=others)
    self.assertEqual(self.learner.num_env_frames, 10 + 30 + 10 + 25)
    self.assertEqual(others.told, [[10, 0, 0], [10, 0, 0]])

  def test_rows_move_statistics_if_any_learner_has_new_rows(self):
    rows = {'': (np.zeros(()), np.zeros(3), np.zeros(3))}
    found = [feeds.next_batch(
        iter([_ready(0)._replace(new_rows=rows)]), threading.Event(),
        _Others([(10, 0, number)])).new_rows for number in (0, 5)]
    self.assertEqual(found, [{}, rows])

  def test_ends_without_an_update_if_another_learner_has_no_batch(self):
    others = _Others([(30, 0, 0), (0, 1, 0)])
    self._learn([_ready(i) for i in range(9)], collectives=others)
    self.assertEqual(self.learner.num_updates, 1)
    self.assertEqual(others.told, [[10, 0, 0], [10, 0, 0]])

  def test_others_are_told_of_an_error_and_of_a_stop(self):
    def batches():
      yield _ready(0)
      raise RuntimeError('environment 3')

    others = _Others([(10, 0, 0), (10, 0, 0)])
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      self._learn(batches(), collectives=others)
    self.assertEqual(others.told, [[10, 0, 0], [0, 1, 0]])
    self.stop.set()
    others = _Others([(10, 0, 0)])
    self._learn([_ready(0)], collectives=others)
    self.assertEqual(others.told, [[0, 1, 0]])

  def test_others_are_told_of_an_error_after_an_update(self):
    def hook(update):
      if update.learner.num_updates == 2:
        raise RuntimeError('no memory')

    for total, expected in (
        (41, [[10, 0, 0], [10, 0, 0], [0, 1, 0]]),
        # The other learners have ended.
        (40, [[10, 0, 0], [10, 0, 0]])):
      self.setUp()
      others = _Others([(10, 0, 0)] * 3)
      with self.assertRaisesRegex(RuntimeError, 'no memory'):
        self._learn([_ready(i) for i in range(9)], [hook], total, others)
      self.assertEqual(others.told, expected)


class ClusterTest(absltest.TestCase):

  def test_a_cluster_is_for_the_program(self):
    logdir = self.create_tempdir().full_path
    with self.assertRaisesRegex(
        errors.ConfigError, '^--ray_address=local is for "python'):
      training.train(config_lib.Config(logdir=logdir, ray_address='local'))
    self.assertEmpty(os.listdir(logdir))


class StopTest(absltest.TestCase):

  def test_ends_if_another_learner_was_stopped_before_it_had_actors(self):
    others = _Others([(1,)])
    make_acting = mock.Mock()
    logdir = self.create_tempdir().full_path
    self.assertEqual(training.run(
        config_lib.Config(logdir=logdir), make_acting, threading.Event(),
        collectives=others), 0)
    self.assertEqual(others.told, [[0]])
    make_acting.return_value.close.assert_called_once_with()
    self.assertEmpty(os.listdir(logdir))


class EndFramesTest(parameterized.TestCase):

  @parameterized.parameters(
      (0, 0, 1000, 100), (99, 0, 1000, 100), (100, 0, 1000, 200),
      (950, 0, 1000, 1000), (0, 0, 15, 2), (0, 30, 100, 30), (30, 30, 100, 60),
      (95, 30, 100, 100), (7, 30, 10, 10), (0, 0, 10**9, 10**6))
  def test_deterministic(self, num_env_frames, every, total, expected):
    config = config_lib.Config(
        deterministic=True, num_actor_groups=1, save_checkpoint_frames=every,
        total_environment_frames=total)
    self.assertEqual(setup.end_frames(config, num_env_frames), expected)

  def test_other_runs_have_one_part(self):
    config = config_lib.Config(total_environment_frames=1000)
    self.assertEqual(setup.end_frames(config, 10), 1000)


class PartsTest(absltest.TestCase):
  """Parts of deterministic runs."""

  def _config(self, **settings):
    return config_lib.Config(
        deterministic=True, num_actors=2, num_actor_groups=1,
        level_name='catch', agent='mlp', hidden_sizes='8', use_lstm=False,
        xla='none', num_action_repeats=1, save_checkpoint_frames=40,
        logdir=self.create_tempdir().full_path, **settings)

  def test_a_stop_between_two_parts_ends_with_the_checkpoint(self):
    stop = signals.Stop(waits_for='')
    waits_for = []

    def make_acting(config, part):
      waits_for.append(stop.waits_for)
      if part:
        stop.set()
      return training.make_acting(config, part)

    config = self._config(batch_size=2, unroll_length=5,
                          total_environment_frames=200)
    self.assertEqual(training.run(config, make_acting, stop), 0)
    self.assertEqual(waits_for, ['', 'the start of the next part'])
    self.assertIn('ckpt-4.index', os.listdir(config.logdir))

  def test_a_part_has_the_only_replay(self):
    stores, living = [], []
    make = step_stores.StepStore.__init__

    def make_store(store, *args):
      living.append(sum(s() is not None for s in stores))
      stores.append(weakref.ref(store))
      make(store, *args)

    config = self._config(algorithm='ddqn', min_replay_steps=10, batch_size=4,
                          replay_steps=100, total_environment_frames=120)
    with mock.patch.object(step_stores.StepStore, '__init__', make_store):
      training.run(config, training.make_acting, threading.Event())
    self.assertEqual(living, [0, 0, 0])

  def test_an_error_before_the_start_leaves_no_process(self):
    config = dataclasses.replace(
        self._config(algorithm='ddqn', min_replay_steps=10, batch_size=4,
                     replay_steps=100, hindsight='future'),
        level_name='bit_flipping_3')
    with mock.patch.object(
        training, '_open_outputs', side_effect=MemoryError), self.assertRaises(
            MemoryError):
      training.run(config, training.make_acting, threading.Event())
    self.assertEmpty(multiprocessing.active_children())


class WithoutEffectTest(parameterized.TestCase):

  @parameterized.parameters(
      ('CartPole-v1', {'width': 84}, '--width=84'),
      ('CartPole-v1', {'width': 96, 'height': 72}, ''),
      ('CartPole-v1,catch', {'height': 84, 'full_action_space': True,
                             'life_loss_ends_episode': False},
       '--height=84, --full_action_space=true, --life_loss_ends_episode=false'),
      ('rooms_watermaze,catch', {'width': 84}, ''),
      ('VizdoomBasic-v1', {'width': 84, 'max_noops': 3}, '--max_noops=3'),
      ('ALE/Pong-v5', {'width': 84, 'max_noops': 3}, '--width=84'))
  def test_settings_that_change_no_level_are_said(
      self, level_name, settings, flags):
    names = level_name.split(',')
    line = messages._without_effect(
        config_lib.Config(level_name=level_name, **settings), names)
    self.assertEqual(
        line, flags and f'Without effect on {", ".join(names)}: {flags}.')

  @parameterized.parameters(
      (dict(agent='nature'), 'a frame', True),
      (dict(agent='module:function'), 'a frame', True),
      (dict(agent='nature', hidden_sizes='64,64'), 'a frame', False),
      (dict(agent='nature'), 'two parts', False),
      (dict(agent='nature', separate_baseline=True, use_lstm=False), 'a frame',
       False),
      (dict(agent='mlp'), 'a frame', False),
      (dict(agent='nature', algorithm='sac'), 'a frame', True),
      (dict(agent='nature', algorithm='sac', use_lstm=True), 'a frame', False))
  def test_sizes_of_layers_that_no_network_has_are_said(
      self, settings, observations, is_said):
    frame = structs.ArraySpec((84, 84, 3), np.dtype(np.uint8))
    vector = structs.ArraySpec((4,), np.dtype(np.float32))
    line = messages._unused_sizes(
        config_lib.Config(**{'hidden_sizes': '512,512', **settings}),
        structs.EnvironmentSpec(
            frame if observations == 'a frame' else {'a': frame, 'b': vector},
            structs.ActionSpec((3,)), 1))
    self.assertEqual(line, is_said and (
        'Without effect: --hidden_sizes=512,512, as no network has dense layers'
        f' besides those of --agent={settings["agent"]}.') or '')


class ThreadsTest(parameterized.TestCase):

  @parameterized.parameters(
      (1, 1, False, 1), (1, 2, False, 1), (1, 3, False, 0), (2, 2, False, 1),
      (2, 3, False, 1), (2, 4, False, 0), (2, 16, False, 0), (1, 1, True, 0),
      (1, 2, True, 0))
  def test_one_per_operation_where_all_cores_are_busy(
      self, num_actor_groups, num_cores, deterministic, expected):
    config = config_lib.Config(
        num_actor_groups=num_actor_groups, deterministic=deterministic)
    self.assertEqual(training.num_threads_per_op(config, num_cores), expected)

  @parameterized.parameters(('mpo', 0), ('sac', 1), ('ddqn', 1))
  def test_one_thread_per_core_for_large_products(self, algorithm, expected):
    config = config_lib.Config(algorithm=algorithm)
    self.assertEqual(training.num_threads_per_op(config, 2), expected)

  def test_threads_that_wait_for_lab_are_not_busy(self):
    config = config_lib.Config(level_name='rooms_watermaze')
    self.assertEqual(config.num_actor_groups, 64)
    self.assertEqual(training.num_threads_per_op(config, 4), 0)
    self.assertEqual(training.num_threads_per_op(config, 3), 1)

  @parameterized.parameters(
      ('', 1), ('threads.set_intra_op_parallelism_threads(2)', 2),
      ('tf.zeros([])', 0))  # This statement starts the threads.
  def test_training_sets_it_unless_the_program_has(self, before, expected):
    self.assertEqual(_threads_of_trainings()[before], expected)


@functools.cache
def _threads_of_trainings():
  """Returns the threads of an operation, by the statement before `train`."""
  # A fork each, as TensorFlow starts its threads only once in a process.
  script = """
import os
import sys
from scalable_agent.settings import config
from scalable_agent.runs import training
from scalable_agent.processes import starts
import tensorflow as tf
starts.num_cores = lambda: 2
training.run = lambda *args: int(tf.zeros([]))  # Starts the threads.
threads = tf.config.threading
for before in sys.argv[2:]:
  if not os.fork():
    exec(before)
    training.train(config.Config(level_name='catch', logdir=sys.argv[1]))
    print('threads:', threads.get_intra_op_parallelism_threads(), flush=True)
    os._exit(0)
  os.wait()
"""
  statements = ('', 'threads.set_intra_op_parallelism_threads(2)',
                'tf.zeros([])')
  with tempfile.TemporaryDirectory() as logdir:
    output = subprocess.check_output(
        [sys.executable, '-c', script, logdir, *statements], text=True)
  found = re.findall(r'^threads: (\d+)$', output, re.MULTILINE)
  return dict(zip(statements, map(int, found), strict=True))


def _context(told=None, rank=0):
  return context.RunContext(
      threading.Event(), mock.Mock(rank=rank), told or reports.Reports())


def _log_without_outputs(one_context, learner=None, actors=None, feed=None):
  """Returns the log of a learner other than learner 0."""
  return log.Log(
      config_lib.Config(save_checkpoint_secs=1e-9),
      learner or mock.Mock(num_updates=0, num_env_frames=0),
      actors or mock.Mock(), feed or mock.Mock(), one_context, None)


class LogTest(parameterized.TestCase):

  @parameterized.parameters(1, 2)
  def test_no_checkpoint_is_waited_for_after_the_last_line(self, num_before):
    one, stop = log.Log.__new__(log.Log), signals.Stop()
    one._learner = mock.Mock(num_updates=2, num_env_frames=10)
    one._num_updates_before = num_before
    one._config, one._outputs = mock.Mock(deterministic=False), mock.Mock()
    one._context = mock.Mock(stop=stop)
    waits = []

    def note(*unused_args, **unused_kwargs):
      waits.append(stop.waits_for)
      return 'a checkpoint'

    one._save_or_wait = note
    with mock.patch.object(builtins, 'print', note):
      one.save_at_end(10)
    self.assertEqual(waits, ['the checkpoint', 'the end of the training'][
        num_before - 1:])  # A checkpoint is written after an update only.

  def test_weights_between_two_updates_are_not_saved(self):
    learner = mock.Mock(num_updates=2, num_env_frames=8)
    checkpointer = mock.Mock(train_time_s=0.)
    one = log.Log(
        config_lib.Config(), learner, mock.Mock(), mock.Mock(), _context(),
        log.Outputs(checkpointer, mock.Mock()))
    learner.num_updates = 4
    for learner.is_consistent in False, True:
      with contextlib.redirect_stdout(io.StringIO()) as output:
        one.save_at_end(10)
      self.assertEqual('No checkpoint was written: the error came within '
                       in output.getvalue(), not learner.is_consistent)
      self.assertEqual(checkpointer.save.called, learner.is_consistent)

  def test_sums_up_the_counts_of_all_learners(self):
    counts = {'workers': 1, 'wanted': 2, 'restarts': 0, 'unrolls': 7000}
    actors = mock.Mock(num_groups=2, num_environments=15, seconds=dict)
    actors.counts.side_effect = lambda: dict(counts)
    told = reports.Reports()
    writer = mock.Mock()
    one = log.Log(
        config_lib.Config(queue_capacity=3, progress_secs=1e-9, num_learners=3,
                          ray_address='local', num_actors=3, batch_size=3),
        mock.Mock(num_updates=0, num_env_frames=0), actors,
        mock.Mock(updates_per_step=None, seconds=dict), _context(told),
        log.Outputs(mock.Mock(train_time_s=0.), writer))
    update = mock.Mock(learner=mock.Mock(num_env_frames=8), episodes=['a'],
                       notes=[])
    one._progress, one._clipping = mock.Mock(), mock.Mock(return_value=[])

    output = in_process.printed
    # Nothing is known of the speed before and in the first one with steps.
    for notes in [], ['note']:
      update.notes = notes
      self.assertEmpty(output(one.print_progress, update))
    update.notes = []
    self.assertIn(', 1 of 2 workers (0 restarts)',
                  output(one.print_progress, update))
    text = output(one.end, True)
    self.assertIn('7,000 unrolls have arrived at learner 0, of which '
                  '7,000 were waiting at the end.', text)
    self.assertNotIn('replaced', text)
    counts.update(restarts=1)
    sent = {rank: reports.Reports() for rank in (1, 2)}
    for rank, of_rank in sent.items():
      _log_without_outputs(_context(of_rank, rank), actors=actors).report(
          mock.Mock(episodes=[f'of {rank}']))
    counts.update(workers=2)
    for of_rank in sent.values():
      told.add(of_rank.take())
    self.assertIn(', 4 of 6 workers (3 restarts)',
                  output(one.print_progress, update))
    text = output(one.end, True)
    # Unrolls of eight environments are on their way, three times as many
    # wait, and the rest is made.
    self.assertIn('3 times an actor worker was replaced, each time with at '
                  'most 47 unrolls that have not arrived.', text)
    one.write_episodes(update)
    self.assertEqual(writer.write_episodes.call_args.args[0],
                     ['a', 'of 1', 'of 2'])
    update.notes, update.lags = [_note(3, 0)], np.array([1, 4])
    one.write_episodes(update)  # Each one once.
    self.assertEqual(one._longest_lag, 4)
    self.assertEqual(writer.write_episodes.call_args.args[0], ['a'])

  def test_the_panel_ends_at_the_last_frame(self):
    actors = mock.Mock(seconds=dict)
    actors.counts.return_value = {}
    learner = mock.Mock(num_updates=0, num_env_frames=0)
    panel = mock.Mock()
    one = log.Log(
        config_lib.Config(progress_secs=1e-9), learner, actors,
        mock.Mock(updates_per_step=None, seconds=dict),
        dataclasses.replace(_context(), panel=panel),
        log.Outputs(mock.Mock(train_time_s=0.), mock.Mock(), None))
    with contextlib.redirect_stdout(io.StringIO()):
      for learner.num_env_frames in 10, 20:
        one.print_progress(mock.Mock(learner=learner, notes=['note']))
      learner.num_env_frames = 30
      one.end(has_more=True)
      self.assertFalse(panel.close.called)
      one.end(has_more=False)
    self.assertEqual([name for name, *_ in panel.mock_calls[-2:]],
                     ['update', 'close'])
    measured = panel.update.call_args.args[0]
    self.assertEqual(measured.num_env_frames, 30)
    self.assertGreater(measured.frames_per_s, 0)


class LogWithoutOutputsTest(absltest.TestCase):

  def test_has_hooks_that_report_and_save_the_replay(self):
    one = _log_without_outputs(_context(rank=1))
    self.assertEqual(one.hooks(), (one.report, one.save_replay))
    with contextlib.redirect_stdout(io.StringIO()) as output:
      one.end(has_more=False)  # Learner 0 prints and evaluates.
    self.assertEmpty(output.getvalue())

  def test_saves_its_replay_when_it_is_due_and_at_the_end(self):
    feed = mock.Mock()
    for seconds, num_saves in (0., 3), (1e9, 0):
      feed.reset_mock()
      learner = mock.Mock(num_updates=2, num_env_frames=8)
      one = log.Log(
          config_lib.Config(save_checkpoint_secs=seconds or 1e-9), learner,
          mock.Mock(), feed, _context(rank=1), None)
      for _ in range(3):
        one.save_replay(mock.Mock())
      self.assertEqual(feed.save.call_count, num_saves)
      one.save_at_end(10)  # Nothing was learned in this part.
      self.assertEqual(feed.save.call_count, num_saves)
      learner.num_updates = 3
      learner.is_consistent = False
      one.save_at_end(10)
      self.assertEqual(feed.save.call_count, num_saves)
      learner.is_consistent = True
      one.save_at_end(10)
      self.assertEqual(feed.save.call_count, num_saves + 1)

  def test_continues_without_its_replay(self):
    feed = mock.Mock()
    feed.save.side_effect = errors.SaveError('No space.')
    one = _log_without_outputs(_context(rank=1), feed=feed)
    with contextlib.redirect_stdout(io.StringIO()) as output:
      one.save_replay(mock.Mock())
    self.assertIn('No space. The program continues, and saves the next time.',
                  output.getvalue())


# See `mutations.py`.
MUTATIONS = (
    dict(file='runs/messages',
         catches='test_sizes_of_layers_that_no_network_has_are_said', rows=(
        ('usual sizes are said', 'config.hidden_sizes == usual or', ''),
    )),
    dict(file='algorithms/base',
         catches='test_sizes_of_layers_that_no_network_has_are_said', rows=(
        ('a baseline of its own has no layers',
         'return (settings.separate_baseline\n', 'return (False\n'),
    )),
    dict(file='runs/training',
         catches='test_a_stop_between_two_parts_ends_with_the_checkpoint',
         rows=(
        ('a stop between two parts loses nothing',
         "signals.wait_for(stop, 'the start of the next part')",
         "signals.wait_for(stop, '')"),
    )),
    dict(file='runs/training', catches=(
        'test_a_hook_that_raises_stop_training_ends_all_learners'), rows=(
        ('an error of the hook', 'with signals.stopped_by_hook(stop):',
         'if True:'),
    )),
    dict(file='runs/training',
         catches='test_others_are_told_of_an_error_after_an_update', rows=(
        ('other learners wait after an error',
         'feeds.tell_learners(None, collectives)', 'pass'),
        ('other learners are told after the end',
         'if learner.num_env_frames < end_frames:\n        feeds',
         'if True:\n        feeds'),
    )),
    dict(file='runs/training',
         catches='test_an_error_before_the_start_leaves_no_process', rows=(
        ('the process of the rewards stays',
         'stack.callback(feed.join, 0)', 'pass'),
    )),
    dict(file='runs/training', catches='test_a_part_has_the_only_replay', rows=(
        ('the replay of the part before is kept',
         'part = None  #', 'pass  #'),
    )),
    dict(file='runs/messages',
         catches='test_settings_that_change_no_level_are_said0', rows=(
        ('settings of other levels are not said', "in _CHANGES\n", "in ()\n"),
    )),
    dict(file='runs/messages',
         catches='test_settings_that_change_no_level_are_said1', rows=(
        ('defaults are said', '!= field.default', '!= None'),
    )),
    dict(file='runs/log',
         catches='test_weights_between_two_updates_are_not_saved', rows=(
        ('weights between two updates are saved',
         '    elif not self._learner.is_consistent:\n'
         "      text = ('No",
         '    elif False:\n'
         "      text = ('No"),
    )),
    dict(file='runs/log',
         catches='test_no_checkpoint_is_waited_for_after_the_last_line', rows=(
        ('a checkpoint is waited for after the last line',
         "stop, 'the end of the training')\n    print(",
         "stop, 'the checkpoint')\n    print("),
    )),
    dict(file='runs/log', catches='test_the_panel_ends_at_the_last_frame',
         rows=(
        ('the panel is not drawn at the end',
         '        self._draw(panel, measured)\n', '        pass\n'),
    )),
    dict(file='runs/log',
         catches='test_sums_up_the_counts_of_all_learners', rows=(
        ('the progress has the workers of learner 0 only',
         '[self._actors.counts(), *self._context.reports.counts.values()]',
         '[self._actors.counts()]'),
        ('episodes of other learners are lost',
         'update.episodes + self._context.reports.take().episodes',
         'update.episodes'),
        ('the longest lag is another one', 'np.max(update.lags)',
         'np.min(update.lags)'),
        ('a learner speaks for another one',
         '{self._context.rank: self._actors.counts()}',
         '{1: self._actors.counts()}'),
    )),
    dict(file='runs/messages',
         catches='test_sums_up_the_counts_of_all_learners', rows=(
        ('unrolls that wait in workers are not counted as lost',
         '(1 + config.queue_capacity)', '1'),
    )),
)


if __name__ == '__main__':
  absltest.main()
