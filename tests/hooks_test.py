# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the hooks for Weights & Biases and MLflow, with small fakes."""

import contextlib
import dataclasses
import errno
import io
import os
import sys
import threading
import types
from unittest import mock

from absl.testing import absltest
import fake_torsos
import numpy as np
from scalable_agent import errors
from scalable_agent import hooks
from scalable_agent.learning import collectives
from scalable_agent.processes import user_code
from scalable_agent.runs import context
from scalable_agent.runs import summaries
from scalable_agent.settings import config as config_lib

_HEAD = 'num_env_frames,num_updates,train_time_s,mean,std,returns\n'
_VALUES = {'mean_return': 1.5, 'total_loss': -2.}


class _Service(absltest.TestCase):
  """A log directory with settings, and a fake of a service's package.

  `calls` has the calls of the fake: name, arguments, arguments by name.
  """
  package = ''

  def setUp(self):
    super().setUp()
    self.calls = []
    fake = types.ModuleType(self.package)
    for name in self.functions:
      setattr(fake, name, self._recorded(name))
    self.enter_context(mock.patch.dict(sys.modules, {self.package: fake}))
    self.logdir = os.path.join(self.create_tempdir().full_path, 'pole')
    os.makedirs(os.path.join(self.logdir, 'videos'))
    self.config = config_lib.Config(
        level_name='CartPole-v1', logdir=self.logdir,
        hook=f'scalable_agent.hooks:{self.package}')
    self.config.save()

  def _recorded(self, name):
    def call(*args, **kwargs):
      self.calls.append((name, args, kwargs))
      return self.result(name)
    return call

  def _write(self, name, text=''):
    with open(os.path.join(self.logdir, name), 'w', encoding='utf-8') as f:
      f.write(text)
    return os.path.join(self.logdir, name)

  def _resume(self):
    """Writes an id and a checkpoint."""
    self._write(f'{self.package}_run_id.txt', 'run5\n')
    self._write('ckpt-3.index')

  def _hook(self):
    return user_code.load(self.config.hook, 'hook')(self.config)

  def _arguments(self, name):
    """Returns the arguments of all calls of a function, and forgets these."""
    found = [(args, kwargs) for called, args, kwargs in self.calls
             if called == name]
    self.calls = [call for call in self.calls if call[0] != name]
    return found

  def _id(self):
    with open(os.path.join(self.logdir, f'{self.package}_run_id.txt'),
              encoding='utf-8') as f:
      return f.read()


class WandbTest(_Service):
  package = 'wandb'
  functions = ('init', 'Video')

  def result(self, name):
    if name == 'Video':
      return 'a video'
    names = ('define_metric', 'log', 'finish')
    return types.SimpleNamespace(
        id='run7', summary=types.SimpleNamespace(
            update=self._recorded('summary')),
        **{name: self._recorded(name) for name in names})

  def test_a_run(self):
    hook = self._hook()
    self.assertEmpty(self.calls)  # Nothing is sent before the first summary.
    hook(40, _VALUES)
    [((), init)] = self._arguments('init')
    self.assertEqual(init.pop('config')['level_name'], 'CartPole-v1')
    self.assertEqual(init, dict(
        project='scalable_agent', id=None, resume='allow', name='pole',
        dir=self.logdir, settings={'console': 'off'}))
    self.assertEqual(self._arguments('define_metric'),
                     [(('*',), {'step_metric': 'num_env_frames'})])
    self.assertEqual(self._id(), 'run7\n')
    self.assertEqual(self._arguments('log'),
                     [(({**_VALUES, 'num_env_frames': 40},), {})])
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    self._write('videos/pole.mp4')  # Not written yet.
    os.symlink('/none', os.path.join(self.logdir, 'videos', 'link.gif'))
    self._write('videos/unknown.txt', 'a')
    hook(60, _VALUES)
    film = self._write('videos/pole.mp4', 'a')
    hook(80, _VALUES)
    self.assertEqual(self._arguments('Video'), [((film,), {})])
    logged = [args[0] for args, _ in self._arguments('log')]
    self.assertEqual(logged, [
        {**_VALUES, 'num_env_frames': 60},
        {'evaluation/mean': 3., 'evaluation/std': 1., 'num_env_frames': 50},
        {**_VALUES, 'num_env_frames': 80},
        {'video': 'a video', 'num_env_frames': 80}])
    # The last evaluation may come after the last summary.
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n'
                '80,8,2.0,1.0,0.0,1.0 1.0\n')
    hook.close()
    [((last,), _)] = self._arguments('log')
    self.assertEqual(last['num_env_frames'], 80)
    self.assertEqual(self._arguments('summary'), [(({
        'final/mean_return': 1.5, 'final/evaluation': 1.,
        'final/best_evaluation': 3.},), {})])
    self.assertEqual(self.calls, [('finish', (), {})])

  def test_a_full_disk_does_not_end_a_run(self):
    error = OSError(errno.ENOSPC, 'No space left on device')
    with (mock.patch.object(hooks.files, 'write', side_effect=error),
          contextlib.redirect_stdout(io.StringIO()) as output):
      hook = self._hook()
      hook(40, _VALUES)
      hook(60, _VALUES)
    self.assertLen(self._arguments('init'), 1)
    self.assertLen(self._arguments('log'), 2)
    self.assertIn('cannot be written (No space left', output.getvalue())

  def test_a_mean_return_without_an_episode_is_not_sent(self):
    hook = self._hook()
    for _ in range(2):
      hook(40, {**_VALUES, 'mean_return': np.nan})
    self.assertLen(self._arguments('init'), 1)
    self.assertEqual(
        [args[0] for args, _ in self._arguments('log')],
        [{'total_loss': -2., 'num_env_frames': 40}] * 2)
    hook.close()
    self.assertEqual(self._arguments('summary'), [(({},), {})])
    self.assertLen(self._arguments('finish'), 1)

  def test_a_run_without_a_checkpoint_is_a_new_run(self):
    self._write('wandb_run_id.txt', 'run5\n')
    self._write('videos/old.mp4', 'a')
    self._hook()(60, _VALUES)
    [(_, init)] = self._arguments('init')
    self.assertIsNone(init['id'])
    self.assertEmpty(self._arguments('Video'))
    self.assertEqual(self._id(), 'run7\n')

  def test_videos_before_the_hook_are_not_sent(self):
    self._write('ckpt-3.index')
    self._write('videos/old.mp4', 'a')
    hook = self._hook()
    new = self._write('videos/new.mp4', 'a')
    hook(60, _VALUES)
    self.assertEqual(self._arguments('Video'), [((new,), {})])

  def test_an_evaluation_after_the_end_is_sent(self):
    self._resume()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    hook = self._hook()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n'
                '90,9,3.0,7.0,0.0,7.0 7.0\n')
    hook.close()
    [(_, init)] = self._arguments('init')
    self.assertEqual(init['id'], 'run5')
    [((values,), _)] = self._arguments('log')
    self.assertEqual(values, {'evaluation/mean': 7., 'evaluation/std': 0.,
                              'num_env_frames': 90})
    self.assertEqual(self._arguments('summary'), [(({
        'final/evaluation': 7., 'final/best_evaluation': 7.},), {})])

  def test_a_finished_run_that_evaluates_nothing_sends_nothing(self):
    self._resume()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    self._hook().close()
    self.assertEmpty(self.calls)

  def test_a_resumed_run(self):
    self._resume()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    self._write('videos/old.mp4', 'a')
    self._hook()(60, _VALUES)
    [(_, init)] = self._arguments('init')
    self.assertEqual(init['id'], 'run5')
    self.assertLen(self._arguments('log'), 1)
    self.assertEmpty(self._arguments('Video'))

  def test_an_evaluation_that_is_made_again_is_sent(self):
    self._resume()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n'
                '90,9,2.0,4.0,1.0,3.0 5.0\n')
    hook = self._hook()
    # The run resumes from a checkpoint of 60 frames, and evaluates at 90.
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    hook(70, _VALUES)
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n'
                '90,9,3.0,7.0,0.0,7.0 7.0\n')
    hook(100, _VALUES)
    sent = [args[0] for args, _ in self._arguments('log')
            if 'evaluation/mean' in args[0]]
    self.assertEqual([values['evaluation/mean'] for values in sent], [7.])

  def test_an_evaluation_before_the_first_summary_is_sent(self):
    self._resume()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    hook = self._hook()
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n'
                '60,9,3.0,7.0,0.0,7.0 7.0\n')
    hook(70, _VALUES)
    hook(80, _VALUES)
    sent = [args[0] for args, _ in self._arguments('log')
            if 'evaluation/mean' in args[0]]
    self.assertEqual([values['num_env_frames'] for values in sent], [60])

  def test_an_error_of_the_first_summary_is_not_hidden(self):
    with (mock.patch.object(
        hooks.Wandb, '_send', side_effect=ValueError('No server.')),
          self.assertRaisesRegex(errors.UserCodeError, 'No server'),
          context.open_context(self.config, threading.Event(),
                               collectives.Alone(), None) as opened):
      opened.hook(40, _VALUES)

  def test_the_project_of_the_environment(self):
    with mock.patch.dict(os.environ, WANDB_PROJECT='ours', WANDB_NAME='mine'):
      self._hook()(40, _VALUES)
    [(_, init)] = self._arguments('init')
    self.assertEqual((init['project'], init['name']), ('ours', 'mine'))

  def test_without_a_summary_nothing_is_sent(self):
    self._hook().close()
    self.assertEmpty(self.calls)

  def test_without_the_package(self):
    with mock.patch.dict(sys.modules, {'wandb': None}):
      with self.assertRaisesRegex(
          errors.MissingDependencyError,
          '^--hook=scalable_agent.hooks:wandb needs wandb: pip install '
          r'"scalable_agent\[wandb\]"'):
        self._hook()


class MlflowTest(_Service):
  package = 'mlflow'
  functions = ('start_run', 'log_params', 'log_dict', 'log_metrics',
               'log_artifact', 'end_run')

  def result(self, name):
    return types.SimpleNamespace(info=types.SimpleNamespace(run_id='id3'))

  def test_a_run(self):
    hook = self._hook()
    hook(40, _VALUES)
    self.assertEqual(
        self._arguments('start_run'),
        [((), dict(run_id=None, run_name='pole', nested=True))])
    [((parameters,), _)] = self._arguments('log_params')
    self.assertEqual(parameters['level_name'], 'CartPole-v1')
    self.assertEqual(self._arguments('log_dict'),
                     [((parameters, 'settings.json'), {})])
    self.assertEqual(self._id(), 'id3\n')
    self.assertEqual(self._arguments('log_metrics'),
                     [((_VALUES,), {'step': 40})])
    film = self._write('videos/pole.gif', 'a')
    self._write('evaluations.csv', _HEAD + '50,5,1.0,3.0,1.0,2.0 4.0\n')
    hook.close()
    self.assertEqual(self._arguments('log_artifact'),
                     [((film, 'videos'), {})])
    self.assertEqual(self._arguments('log_metrics'), [
        (({'evaluation/mean': 3., 'evaluation/std': 1.},), {'step': 50}),
        (({'final/mean_return': 1.5, 'final/evaluation': 3.,
           'final/best_evaluation': 3.},), {'step': 40})])
    self.assertEqual(self.calls, [('end_run', (), {})])

  def test_parameters_of_a_resumed_run_stay(self):
    self._resume()
    self._hook()(40, _VALUES)
    self.assertEqual(
        self._arguments('start_run'),
        [((), dict(run_id='run5', run_name=None, nested=True))])
    self.assertEmpty(self._arguments('log_params'))
    self.assertLen(self._arguments('log_dict'), 1)


class ContextTest(absltest.TestCase):
  """Tests of how a run makes, calls and closes a hook."""

  def setUp(self):
    super().setUp()
    fake_torsos.HOOKED.clear()
    self.config = config_lib.Config(
        level_name='catch', logdir=self.create_tempdir().full_path,
        hook='fake_torsos:HookOfRun')

  def _open(self, **kwargs):
    return context.open_context(
        self.config, kwargs.get('stop', threading.Event()),
        kwargs.get('collectives', collectives.Alone()), None)

  def test_a_class_gets_the_settings_and_the_end(self):
    writer = mock.Mock()
    with self._open() as opened:
      for frames in 10, 20:  # Two parts of a run.
        summaries.Summaries(opened.hook, writer, 0).write(
            {'total_loss': 2.}, {'mean_return': 1.}, np.zeros([1], np.int32),
            frames)
    start, *calls, end = fake_torsos.HOOKED
    self.assertEqual((start, end), (self.config, 'end'))
    self.assertEqual([frames for frames, _ in calls], [10, 20])
    self.assertEqual(calls[0][1]['total_loss'], 2.)

  def test_a_mean_return_without_an_episode_is_left_out_of_tensorboard(self):
    writer, hook = mock.Mock(), mock.Mock()
    one = summaries.Summaries(hook, writer, 0)
    for mean_return in np.nan, 2.:
      one.write({'total_loss': 1.},
                {'mean_return': mean_return}, np.zeros([1], np.int32), 10)
    written = [call.args[0] for call in writer.write_scalars.call_args_list]
    self.assertNotIn('episode/mean_return', written[0])
    self.assertEqual(written[1]['episode/mean_return'], 2.)
    self.assertLen(hook.call_args_list, 2)
    for call in hook.call_args_list:  # Functions of users expect the name.
      self.assertIn('mean_return', call.args[1])

  def test_a_class_needs_no_close(self):
    self.config = dataclasses.replace(
        self.config, hook='fake_torsos:HookWithoutEnd')
    with self._open() as opened:
      opened.hook(10, {})
    self.assertLen(fake_torsos.HOOKED, 1)

  def test_an_error_ends_the_hook_too(self):
    with self.assertRaisesRegex(ValueError, 'of the run'), self._open():
      raise ValueError('of the run')
    self.assertEqual(fake_torsos.HOOKED[-1], 'end')

  def test_errors_name_the_hook(self):
    with self.assertRaisesRegex(
        errors.UserCodeError,
        '^fake_torsos:HookOfRun of --hook raised KeyError'):
      with self._open() as opened:
        opened.hook(-1, {})
    self.assertEqual(fake_torsos.HOOKED[-1], 'end')

  def test_stop_training_is_no_error(self):
    stop = threading.Event()
    self.config = dataclasses.replace(self.config, hook='fake_torsos:stop')
    with self._open(stop=stop) as opened, \
        contextlib.redirect_stdout(io.StringIO()) as output:
      for _ in range(2):  # The second time is the last summary.
        opened.hook(10, {})
    self.assertTrue(stop.is_set())
    self.assertEqual(output.getvalue(), '\nA hook has ended the training.\n')

  def test_other_learners_have_no_hook(self):
    with self._open(collectives=mock.Mock(rank=1)) as opened:
      self.assertIsNone(opened.hook)
    self.assertEmpty(fake_torsos.HOOKED)


MUTATIONS = (
    dict(file='hooks',
         catches='test_a_mean_return_without_an_episode_is_not_sent', rows=(
        ('NaN is sent', "if math.isnan(values['mean_return']):", 'if False:'),
        ('a run for each summary', 'self._has_started = True', 'pass'),
    )),
    dict(file='runs/summaries', catches=(
        'test_a_mean_return_without_an_episode_is_left_out_of_tensorboard'),
         rows=(
        ('NaN is drawn',
         "if name != 'mean_return' or not np.isnan(value)}", '}'),
    )),
    dict(file='hooks', catches='WandbTest.test_a_run', rows=(
        ('empty videos',
         'return os.path.getsize(path) > 0', 'return True'),
    )),
    dict(file='runs/context', catches='test_a_class_needs_no_close', rows=(
        ('close is called anyway',
         "if is_class and hasattr(hook, 'close'):",
         'if is_class:'),
    )),
    dict(file='hooks', catches='WandbTest.test_a_run', rows=(
        ('videos sent again', 'self._videos_sent.add(path)', 'pass'),
        ('no end', 'self._run.finish()', 'pass'),
        ('the worst evaluation', 'max(e.mean for', 'min(e.mean for'),
        ('evaluations at other frames',
         "                 evaluation.num_env_frames)",
         '                 evaluation.num_env_frames + 1)'),
    )),
    dict(file='hooks', catches='WandbTest.test_a_resumed_run', rows=(
        ('another run', "'scalable_agent'), id=run_id,",
         "'scalable_agent'), id=None,"),
        ('old videos', 'self._videos_sent = self._videos()',
         'self._videos_sent = set()'),
    )),
    dict(file='hooks', catches='test_a_run_without_a_checkpoint_is_a_new_run',
         rows=(
        ('the run of an earlier training',
         'files.has_checkpoint(config.logdir)', 'True'),
    )),
    dict(file='hooks', catches='test_an_evaluation_after_the_end_is_sent',
         rows=(
        ('no evaluation after the end',
         'not self._has_started and not self._has_late_evaluation()',
         'not self._scores'),
        ('evaluations of earlier parts are sent again',
         'evaluations.read(self._logdir) if self._is_resumed else []', ''),
    )),
    dict(file='hooks',
         catches='test_an_evaluation_before_the_first_summary_is_sent', rows=(
        ('evaluations are sent again',
         'self._evaluations_sent.add(evaluation)', 'pass'),
    )),
    dict(file='hooks', catches='test_parameters_of_a_resumed_run_stay', rows=(
        ('parameters change', 'if not run_id:', 'if True:'),
    )),
    dict(file='runs/context', catches='test_stop_training_is_no_error', rows=(
        ('an error of the hook', ', signals.stopped_by_hook(stop):', ':'),
    )),
    dict(file='processes/signals', catches='test_stop_training_is_no_error',
         rows=(
        ('said twice', 'if not stop.is_set():  # The last', 'if True:  # The'),
    )),
    dict(file='runs/context', catches='test_an_error_ends_the_hook_too', rows=(
        ('no end', 'hook.close()', 'pass'),
    )),
    dict(file='runs/summaries',
         catches='test_a_class_gets_the_settings_and_the_end', rows=(
             ('no hook', 'if self._hook:', 'if False:'),
         )),
)


if __name__ == '__main__':
  absltest.main()
