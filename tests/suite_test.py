# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of suite mode: its runs, its stops, its report."""

import contextlib
import csv
import dataclasses
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from unittest import mock

from absl import flags as absl_flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.environments import dm_control
from scalable_agent.modes import running
from scalable_agent.modes import suite
from scalable_agent.modes import suite_plans
from scalable_agent.scores import files as score_files
from scalable_agent.scores import markdown
from scalable_agent.scores import plotting
from scalable_agent.scores import table
from scalable_agent.settings import command_line
from scalable_agent.settings import suite_settings
from scalable_agent.settings.environment_settings import EnvironmentSettings

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_WRITE_PICTURES = plotting.write_pictures
_FIELDS = 'num_env_frames,train_time_s,level_name,episode_return,x,y'

# A run saves for a second after the first signal; a second signal ends it.
_SAVER = '''
import os, pathlib, signal, sys, time
os.chdir(sys.argv[1])
def save(number, frame):
  for other in signal.SIGINT, signal.SIGTERM:
    signal.signal(other, signal.SIG_DFL)
  time.sleep(1)
  pathlib.Path('saved').touch()
  os._exit(0)
for number in signal.SIGINT, signal.SIGTERM:
  signal.signal(number, save)
pathlib.Path('ready').touch()
while True:
  signal.pause()
'''
_SUITE = f'''
import sys
from absl import flags
from scalable_agent import experiment
from scalable_agent.modes import suite
start = suite.programs.start
suite.programs.start = lambda command, directory, env: start(
    [sys.executable, '-c', {_SAVER!r}, str(directory)], directory, env=env)
sys.exit(experiment.main(flags.FLAGS([
    'experiment.py', '--mode=suite', '--level_name=catch', '--seeds=2',
    '--jobs=2', '--logdir=' + sys.argv[1]])))
'''


def _train(flags):
  """A training of which each episode has the return `seed / 10`."""
  config = experiment.parse(flags)
  config.save()
  with open(os.path.join(config.logdir, 'episodes.csv'), 'w') as f:
    f.write(_FIELDS + '\n')
    for i in range(1, 6):
      f.write(f'{i * config.total_environment_frames // 5},{60 * i},'
              f'{config.level_name},{config.seed / 10},9,9\n')


def _test(flags, num_env_frames=None, **settings):
  logdir = flags[-1].partition('=')[2]
  trained_with = suite.config_lib.trained_with(logdir)
  config = dataclasses.replace(trained_with, **settings)
  frames = num_env_frames or config.total_environment_frames
  score_files.write(table.make_table([table.Run(
      config, frames, trained_with, (table.make_row(
          config.level_name, [config.seed / 10 + len(settings)] * 30),))]),
                    score_files.reserve_path(logdir, frames))


class SuiteTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(suite, '_POLL_S', 0.01))
    self.logdir = self.create_tempdir().full_path
    self.started = []
    self.code = lambda name: 0
    self.progress = '9 of 9 frames (100.0 %)'
    # Two tests draw: pictures take longer than all else.
    self.pictures = self.enter_context(mock.patch.object(
        plotting, 'write_pictures', return_value=[]))

  def _start(self, command, directory, env):
    """Does the work of a run at once; the program does nothing."""
    del env
    self.assertEqual(command[1:3], ['-m', 'scalable_agent.experiment'])
    mode, *flags = command[3:]
    name = f'{mode[7:]} {os.path.relpath(directory, self.logdir)}'
    self.started.append(name)
    code = self.code(name)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / 'log.txt').write_text(
        'Last words.' if code else self.progress)
    if not code:
      {'train': _train, 'test': _test}[mode[7:]](flags)
    return subprocess.Popen(['sh', '-c', f'exit {code}'])

  def _main(self, **settings):
    settings = {'logdir': self.logdir, **settings}
    # As on a command line: flags that are given are present.
    with flagsaver.as_parsed(**{'mode': 'suite', **settings}), \
        mock.patch.object(suite.programs, 'start', self._start), \
        contextlib.redirect_stdout(io.StringIO()) as stdout, \
        contextlib.redirect_stderr(io.StringIO()) as stderr:
      code = experiment.main(['experiment.py'])
    return code, stdout.getvalue(), stderr.getvalue()

  def _report(self):
    with open(f'{self.logdir}/report.csv', encoding='utf-8') as f:
      return list(csv.DictReader(f))

  def test_runs_of_all_levels_and_seeds(self):
    self.pictures.side_effect = _WRITE_PICTURES
    code, output, error = self._main(
        seeds='2', learning_rate='0.5', total_environment_frames='5000')
    self.assertEqual(code, 0, error)
    self.assertEqual(self.started, [
        f'{mode} {level}/seed{seed}' for level in (
            'catch', 'memory', 'pattern', 'target') for seed in (1, 2)
        for mode in ('train', 'test')])
    for level, num_actors in (('catch', 8), ('pattern', 16)):
      config = suite.config_lib.trained_with(f'{self.logdir}/{level}/seed2')
      self.assertEqual(
          (config.level_name, config.seed, config.learning_rate,
           config.num_actors, config.test_num_episodes),
          (level, 2, .5, num_actors, 30))
    self.assertIn('catch, seed 2: mean return 0.20 at 5,000 frames; runs '
                  'to go: 6.', output)
    found = {(row['level'], row['statistic']): float(row['value'])
             for row in self._report() if row['agent'] == 'toys'}
    self.assertAlmostEqual(found['catch', 'mean over runs'], .15)
    percents = [(.15 + .6) / 1.6, .15, (.15 - 130 / 36) / (10 - 130 / 36),
                (.15 + 85 / 3) / 85 * 3]
    self.assertAlmostEqual(found['all levels', 'mean over runs'],
                           sum(percents) / 4 * 100)
    text = pathlib.Path(self.logdir, 'report.md').read_text()
    self.assertStartsWith(text, '# Suite toys: 4 levels, 2 seeds, after 5,000 '
                          'frames')
    self.assertIn('| pattern, seed 2 |             5.0 |', text)
    page = pathlib.Path(self.logdir, 'report.html').read_text()
    self.assertEqual(page.count('src="data:image/png;base64,'), 2)
    self.assertNotRegex(page, '(src|href)="(?!data:)')
    for name in 'report.png', 'report_statistics.png':
      self.assertGreater(os.path.getsize(f'{self.logdir}/{name}'), 10_000)

  def test_finished_runs_are_not_run_again(self):
    settings = dict(level_name='catch', seeds='2')
    self.code = lambda name: 7 * (name == 'test catch/seed1')
    code, output, _ = self._main(**settings)
    self.assertEqual(code, 1)
    self.assertIn(f'Failed: catch, seed 1, test: Last words. (exit code 7; '
                  f'{self.logdir}/catch/seed1/log.txt)', output)
    self.assertIn('## Failed runs', output)
    self.assertLen([row for row in self._report()
                    if row['agent'] == 'yours'], 1)
    self.started.clear()
    self.code = lambda name: 0
    code, output, _ = self._main(level_name='catch', seeds='3')
    self.assertEqual((code, self.started), (0, [
        'train catch/seed1', 'test catch/seed1',
        'train catch/seed3', 'test catch/seed3']))
    self.assertIn('Finished runs: 1 of 3.', output)

  def test_a_test_before_the_end_of_the_training_does_not_count(self):
    directory = pathlib.Path(self.logdir, 'catch', 'seed1')
    directory.mkdir(parents=True)
    flags = ['--recipe=catch', f'--logdir={directory}']
    _train(flags)
    _test(flags, 50_000)
    code, output, _ = self._main(level_name='catch', seeds='1')
    self.assertEqual(code, 0)
    self.assertEqual(self.started, ['train catch/seed1', 'test catch/seed1'])
    self.assertIn('# Suite toys: 1 level, 1 seed, after', output)

  def test_a_table_leaves_out_unfinished_runs(self):
    self.assertEqual(self._main(level_name='catch', seeds='2')[0], 0)
    cut = pathlib.Path(self.logdir, 'catch', 'seed2')
    os.remove(next(cut.glob('scores-*.json')))
    _test([f'--logdir={cut}'], 50_000)
    code, output, _ = self._main(mode='table')
    self.assertEqual(code, 0)
    self.assertIn(f'{cut} is left out: 50,000 of 100,000 frames were trained '
                  'before the test.', output)
    self.assertIn('# Test of catch after 100,000 frames', output)

  def test_report_keeps_the_runs_of_earlier_commands(self):
    self.assertEqual(self._main(level_name='catch,memory', seeds='2')[0], 0)
    report = pathlib.Path(self.logdir, 'report.csv')
    before = report.read_text()
    self.started.clear()
    for settings in dict(level_name='memory', seeds='1'), dict(
        level_name='catch', seeds='2'):
      self.assertEqual(self._main(**settings)[0], 0)
      self.assertEqual((self.started, report.read_text()), ([], before))
    self.assertStartsWith(report.with_suffix('.md').read_text(),
                          '# Suite toys: 2 levels, 2 seeds,')

  def test_a_run_without_an_episode_does_not_take_the_pictures_away(self):
    settings = dict(level_name='catch', seeds='2')
    self.assertEqual(self._main(**settings)[0], 0)
    pathlib.Path(self.logdir, 'catch', 'seed1', 'episodes.csv').write_text(
        _FIELDS + '\n')
    self.pictures.side_effect = _WRITE_PICTURES
    code, output, _ = self._main(**settings)
    self.assertEqual(code, 0)
    self.assertIn('No episode is finished, so there is no curve, of catch, '
                  'seed 1.\n', output)
    self.assertIn('| catch, seed 1 |                 |\n', output)
    self.assertTrue(os.path.exists(f'{self.logdir}/report.png'))
    self.assertIn('pictures: 1.', output)

  def test_a_level_given_twice_runs_once(self):
    self.assertEqual(self._main(level_name='catch,catch', seeds='1')[0], 0)
    self.assertEqual(self.started, ['train catch/seed1', 'test catch/seed1'])

  def test_a_locked_run_does_not_end_the_others(self):
    with mock.patch.object(running, '_LOCK_TIMEOUT_S', 0), \
        suite.logdirs.locked(f'{self.logdir}/catch/seed1'):
      code, output, _ = self._main(level_name='catch', seeds='2')
    self.assertEqual((code, self.started),
                     (1, ['train catch/seed2', 'test catch/seed2']))
    self.assertIn('Failed: catch, seed 1, train: ', output)

  def test_a_file_in_the_way_does_not_end_the_others(self):
    for name in 'catch', 'memory/seed1/.lock':
      path = pathlib.Path(self.logdir, name)
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text('of the user')
    with self.assertRaisesRegex(errors.CheckpointError, 'not the lock'):
      running.wait_until_unlocked(path.parent, wait=self.fail)
    code, output, _ = self._main(level_name='catch,memory', seeds='2')
    self.assertEqual((code, self.started[-2:]),
                     (1, ['train memory/seed2', 'test memory/seed2']))
    for line in (r'catch, seed [12], train: .*catch', r'memory, seed 1, train: '
                 r'.*is not the lock of a run'):
      self.assertRegex(output, f'(?m)^Failed: {line}')

  def test_levels_without_a_finished_run_are_named(self):
    self.code = lambda name: int('memory' in name)
    code, output, _ = self._main(level_name='catch,memory', seeds='2')
    self.assertEqual(code, 1)
    remark = ('No finished run of memory: numbers over levels are those of the '
              'other levels.')
    self.assertIn(f'**{remark}**', output)
    self.assertRegex(output, r'\| toys  \| +1 \| +2 \|')
    code, output, _ = self._main(mode='table')
    self.assertEqual(code, 0)
    self.assertIn(f'**{self.logdir}: {remark}**', output)
    [table_file] = pathlib.Path(self.logdir).glob('*/*/*_agents-1.md')
    self.assertIn(remark, table_file.read_text())

  def test_a_short_test_does_not_count(self):
    settings = dict(level_name='catch', seeds='2')
    self.assertEqual(self._main(**settings)[0], 0)
    report = pathlib.Path(self.logdir, 'report.csv')
    before = report.read_text()
    self.started.clear()
    cell = pathlib.Path(self.logdir, 'catch', 'seed1')
    with mock.patch.object(table, 'make_row', lambda level, returns: (
        table.Row(level, (9.,), 9., 0., (9., 9.)))):
      _test([f'--logdir={cell}'])  # As for a quick look.
    # The test before that one counts.
    self.assertEqual(self._main(**settings)[0], 0)
    self.assertEqual((self.started, report.read_text()), ([], before))
    _, output, _ = self._main(mode='table')
    self.assertNotRegex(output, 'Too few episodes|left out')
    os.remove(min(cell.glob('scores-*.json')))
    code, output, _ = self._main(mode='table')
    self.assertEqual(code, 0)
    self.assertIn(f'{cell} is left out: --logdir={cell} holds no test of 30 '
                  'games with the settings of the training.', output)
    self.assertEqual(self._main(**settings)[0], 0)
    self.assertEqual(self.started, ['train catch/seed1', 'test catch/seed1'])

  def test_a_stopped_training_is_not_tested(self):
    self.progress = '8 of 9 frames (88.9 %)'
    code, output, _ = self._main(level_name='catch', seeds='1')
    self.assertEqual((code, self.started), (1, ['train catch/seed1']))
    self.assertIn('Failed: catch, seed 1, train: it was stopped.\nNo run of '
                  'the suite has finished.\n', output)

  @parameterized.parameters(
      dict(test_greedy=True), dict(level_name='memory'),
      dict(num_action_repeats=2), dict(max_episode_steps=5))
  def test_a_test_with_other_settings_does_not_count(self, **settings):
    run = lambda **mode: self._main(level_name='catch', seeds='1', **mode)
    self.assertEqual(run()[0], 0)
    report = pathlib.Path(self.logdir, 'report.csv')
    before = report.read_text()
    self.started.clear()
    _test([f'--logdir={self.logdir}/catch/seed1'], **settings)
    self.assertEqual(run()[0], 0)
    self.assertEqual((self.started, report.read_text()), ([], before))
    code, output, _ = self._main(mode='table')
    self.assertEqual(code, 0)
    self.assertRegex(output, r'\| catch \| +30 \| 0.10 \|')

  def test_a_run_is_no_suite(self):
    _train(['--recipe=catch', f'--logdir={self.logdir}'])
    code, _, error = self._main(level_name='catch')
    self.assertEqual((code, self.started), (2, []))
    self.assertIn('holds a run, and a suite needs a directory of its own',
                  error)
    self.assertNotIn('suite.json', os.listdir(self.logdir))

  def test_a_stop_ends_the_wait_for_a_locked_run(self):
    looks = []

    @contextlib.contextmanager
    def locked(directory):
      if directory != self.logdir:
        looks.append(directory)
        if len(looks) == 1:
          os.kill(os.getpid(), signal.SIGTERM)
        raise errors.LockedError('locked')
      yield

    with mock.patch.object(suite.logdirs, 'locked', locked), \
        mock.patch.object(running, '_LOCK_TIMEOUT_S', 1):
      os.makedirs(f'{self.logdir}/catch/seed1')
      code, output, _ = self._main(level_name='catch', seeds='1')
    self.assertEqual((code, len(looks), self.started), (0, 1, []))
    self.assertIn('Stopped.', output)

  def test_a_stopped_suite_names_its_failures(self):
    run_all = lambda cells, jobs, stop: stop.set() or ['no level']
    with mock.patch.object(suite, '_run_all', run_all):
      _, output, _ = self._main(level_name='catch')
    self.assertIn('Failed: no level\nStopped.', output)

  @pytest.mark.storm
  def test_ctrl_c_leaves_the_runs_time_to_save(self):
    # The suite has a process group of its own here, as in a terminal.
    child = subprocess.Popen([sys.executable, '-c', _SUITE, self.logdir],
                             env=dict(os.environ, PYTHONPATH=str(_ROOT)),
                             stdout=subprocess.DEVNULL, start_new_session=True)
    count = lambda name: len(
        list(pathlib.Path(self.logdir).glob(f'*/*/{name}')))
    while child.poll() is None and count('ready') < 2:
      time.sleep(.1)
    os.killpg(child.pid, signal.SIGINT)
    self.assertEqual((child.wait(), count('saved')), (0, 2))

  @pytest.mark.storm
  def test_table_of_two_suites(self):
    logdirs = []
    for name, seeds in (('a', '2'), ('b', '3')):
      self.logdir = self.create_tempdir().mkdir(name).full_path
      logdirs.append(self.logdir)
      self.assertEqual(self._main(level_name='catch,memory', seeds=seeds)[0], 0)
    compare = lambda: self._main(mode='table', logdir=','.join(logdirs))
    code, output, _ = compare()
    self.assertEqual(code, 0)
    # Seeds 1 and 2 against seeds 1, 2 and 3: worse in 3 of 6 pairs, equal in 2.
    self.assertRegex(output, fr'\| {logdirs[0]} \| {logdirs[1]} \| +0.33 ')
    self.assertEqual(self._main(level_name='catch,memory,target')[0], 0)
    code, _, error = compare()
    self.assertEqual(code, 2)
    self.assertIn(f'{logdirs[0]} and {logdirs[1]} have finished runs of '
                  'different levels, which cannot be compared: not all have '
                  'target.', error)
    empty = self.create_tempdir()
    empty.create_file('suite.json')
    code, _, error = self._main(mode='table', logdir=empty.full_path)
    self.assertEqual(code, 2)
    self.assertIn('holds no finished run of the suite.', error)

  def test_picture_of_suites(self):
    other = self.logdir
    self.assertEqual(self._main(level_name='catch', seeds='1')[0], 0)
    self.logdir = self.create_tempdir().full_path
    self.assertEqual(self._main(level_name='catch', seeds='4')[0], 0)
    catch = pathlib.Path(self.logdir, 'catch')
    os.remove(next(catch.joinpath('seed3').glob('scores-*.json')))
    _test([f'--logdir={catch}/seed3'], 50_000)
    (catch / 'seed4' / 'episodes.csv').write_text(_FIELDS + '\n')
    self.pictures.reset_mock()
    self.pictures.return_value = ['a.png']
    code, output, error = self._main(mode='plot')
    self.assertEqual((code, error), (0, ''))
    self.assertEqual(output.splitlines(), [
        f'{catch}/seed3 is left out: 50,000 of 100,000 frames were trained '
        'before the test.',
        f'No episode is finished, so there is no curve, of {catch}/seed4.',
        'Wrote a.png.'])
    self.pictures.assert_called_once_with(
        {'seed1': f'{catch}/seed1', 'seed2': f'{catch}/seed2'},
        f'{self.logdir}/learning_curves.png', 100,
        {'seed1': self.logdir, 'seed2': self.logdir})
    # A suite and a run of another suite.
    code, _, error = self._main(
        mode='plot', logdir=f'{self.logdir},{other}/catch/seed1')
    self.assertEqual((code, error), (0, ''))
    drawn, path, _, groups = self.pictures.call_args.args
    self.assertLen(drawn, 3)
    self.assertEqual(path, f'{self.logdir}/learning_curves_compared.png')
    self.assertEqual(list(groups.values()), [self.logdir, self.logdir, ''])
    for name in 'seed1', 'seed2':
      (catch / name / 'episodes.csv').write_text(_FIELDS + '\n')
    self.pictures.side_effect = _WRITE_PICTURES
    code, _, error = self._main(mode='plot')
    self.assertEqual(code, 2)
    self.assertIn(f'{catch}/seed1 has no curve to draw: no episode is '
                  'finished yet.', error)

  def test_jobs_run_at_the_same_time(self):
    running, most = [], []

    class Slow:
      """A program that ends at the second look."""

      def __init__(self):
        self._looks = 0
        running.append(self)

      def poll(self):
        most.append(len(running))
        self._looks += 1
        if self._looks < 2:
          return None
        running.remove(self)
        return 0

    def start(command, directory, env):
      self._start(command, directory, env).wait()
      return Slow()

    with mock.patch.object(suite, '_POLL_S', 0), \
        flagsaver.as_parsed(mode='suite', jobs='3', seeds='1',
                            logdir=self.logdir), \
        mock.patch.object(suite.programs, 'start', start), \
        contextlib.redirect_stdout(io.StringIO()):
      self.assertEqual(experiment.main(['experiment.py']), 0)
    self.assertEqual(max(most), 3)

  def test_a_suite_may_be_drawn_with_other_means(self):
    settings = dict(level_name='catch', seeds='1')
    for number in 20, 100:
      self.assertEqual(
          self._main(**settings, plot_num_episodes=str(number))[0], 0)
      self.assertEqual(self.pictures.call_args.args[2], number)
    path = os.path.join(self.logdir, 'suite.json')
    with open(path, encoding='utf-8') as f:
      text = f.read()
    self.assertNotIn('plot_num_episodes', text)
    with open(path, 'w', encoding='utf-8') as f:  # As an earlier version did.
      f.write(text.replace('"catch": [', '"catch": ["--plot_num_episodes=20",'))
    code, _, error = self._main(**settings)
    self.assertEqual(code, 0, error)

  def test_another_suite_or_other_flags_in_the_directory(self):
    self.assertEqual(self._main(level_name='catch', seeds='1')[0], 0)
    code, _, error = self._main(level_name='catch', suite='dmlab30')
    self.assertEqual(code, 2, error)
    for settings, text in (
        (dict(level_name='catch', learning_rate='.1'),
         'holds runs with other flags, see '),
        (dict(level_name='memory', learning_rate='.1'),
         'holds runs with other flags, see '),
        (dict(suite='atari5'), 'holds runs of other levels, of --suite=toys: '
         'use another --logdir.')):
      code, _, error = self._main(**settings)
      self.assertEqual(code, 2)
      self.assertIn(text, error)
    path = pathlib.Path(self.logdir, 'suite.json')
    suite = json.loads(path.read_text())
    suite['flags']['memory'] = ['--of_another_version=1']
    path.write_text(json.dumps(suite))
    code, _, error = self._main(level_name='catch')
    self.assertEqual(code, 2)
    self.assertIn('The flags of memory in suite.json of ', error)
    self.assertIn("Unknown command line flag 'of_another_version'. Use another "
                  '--logdir.', error)
    path.write_text('[]')
    code, _, error = self._main(level_name='catch')
    self.assertEqual(code, 2)
    self.assertIn('suite.json cannot be read: ', error)

  def test_flags_without_a_run_may_be_corrected(self):
    self.code = lambda name: 1
    run = lambda **flags: self._main(level_name='catch', seeds='1', **flags)[0]
    self.assertEqual(run(hook='my:typo'), 1)
    self.code = lambda name: 0
    self.assertEqual(run(), 0)
    self.assertEqual(self.started[-1], 'test catch/seed1')
    self.code = lambda name: 1
    more = lambda **flags: self._main(
        level_name='memory', seeds='1', **flags)[0]
    self.assertEqual((more(hook='my:typo'), more()), (2, 1))

  @parameterized.parameters(
      (dict(seed='3'), '--seed=3 cannot be used with --mode=suite'),
      (dict(level_name='catch,pong'),
       'pong is no level of --suite=toys, which has catch, memory, pattern, '
       'target. For other levels, start a run for each --seed, and join their '
       'tests with --mode=table --logdir=A,B,C.'),
      (dict(batch_size='0'), '--batch_size=0 must be positive.'),
      (dict(algorithm='ddqn'), 'catch of --suite=toys does not take '
       '--algorithm=ddqn: --recipe=catch is for --algorithm=impala. Use other '
       'flags.'),
      (dict(clip_ratio='.3'), 'catch of --suite=toys does not take '
       '--clip_ratio=0.3: --clip_ratio=0.3 is not used by --algorithm=impala, '
       'only by appo: leave the flag out. Use other flags, or only levels that '
       'take these: --level_name=target.'))
  def test_bad_flags_are_found_before_the_first_run(self, settings, text):
    code, _, error = self._main(**settings)
    self.assertEqual((code, self.started), (2, []))
    self.assertIn(text, error)
    self.assertLen(error.splitlines(), 1)

  def test_a_suite_has_no_recipe(self):
    flag_values = absl_flags.FlagValues()
    command_line.define_flags(flag_values)
    experiment._set(flag_values, [
        'experiment.py', '--mode=suite', '--recipe=appo_pong'])
    with self.assertRaisesRegex(
        errors.ConfigError,
        '^--recipe=appo_pong cannot be used with --mode=suite: each level'):
      suite.run(experiment.config_of(flag_values), flag_values,
                experiment.parse)

  def test_all_suites_have_plans_with_valid_flags(self):
    names = suite_settings.SuiteSettings.__dataclass_fields__[
        'suite'].metadata['choices']
    sizes = {name: len(suite_plans.flags_by_level(name)) for name in names}
    self.assertEqual(sizes, {
        'toys': 4, 'minatar': 5, 'atari5': 5, 'atari57': 57, 'atari100k': 26,
        'mujoco': 5, 'dm_control': 18, 'dmlab30': 30})
    for name in names:
      for level, flags in suite_plans.flags_by_level(name).items():
        config = experiment.parse([*flags, f'--level_name={level}'])
        self.assertEqual(config.level_name, level)
      if name.startswith('atari'):
        self.assertContainsSubset(
            suite_plans.flags_by_level(name),
            suite_plans.flags_by_level('atari57'))

  @pytest.mark.storm
  def test_killed_suite_ends_in_the_same_report(self):
    command = [
        sys.executable, '-m', 'scalable_agent.experiment', '--mode=suite',
        '--level_name=catch,memory', '--seeds=2', '--jobs=2',
        '--total_environment_frames=2000', '--num_actors=2', '--batch_size=2',
        '--deterministic', '--num_actor_groups=1', '--test_num_episodes=5',
        '--save_checkpoint_frames=200']
    env = dict(os.environ, PYTHONPATH=str(_ROOT))
    whole, killed = (self.create_tempdir().full_path for _ in range(2))
    subprocess.run([*command, f'--logdir={whole}'], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    for number in range(3):
      child = subprocess.Popen([*command, f'--logdir={killed}'], env=env,
                               stdout=subprocess.DEVNULL)
      # Once in the middle of trainings, once in tests, once soon.
      wanted = ('ckpt-*.index', 'scores-*.json', 'log.txt')[number]
      while child.poll() is None and not list(
          pathlib.Path(killed).glob(f'*/*/{wanted}')):
        time.sleep(.1)
      child.send_signal(signal.SIGKILL)
      self.assertEqual(child.wait(), -signal.SIGKILL)
    subprocess.run([*command, f'--logdir={killed}'], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    read = lambda logdir, name: pathlib.Path(logdir, name).read_text()
    self.assertEqual(read(killed, 'report.csv'), read(whole, 'report.csv'))
    # Times differ.
    text = [re.sub(r'## Time.*', '', read(logdir, 'report.md'), flags=re.S)
            for logdir in (killed, whole)]
    self.assertEqual(*text)


class LevelsTest(parameterized.TestCase):

  @parameterized.parameters(
      ('MinAtar/Breakout-v1', 'minatar', 'minatar', 'minatar.gym'),
      ('dm_control/walker-walk-v0', 'dm_control', 'dm-control',
       'dm_control.suite'))
  def test_missing_packages_are_named(self, level, package, extra, module):
    with mock.patch.dict(sys.modules, {module: None}), \
        self.assertRaisesRegex(
            errors.MissingDependencyError,
            rf'{level} needs {package}: pip install '
            rf'"scalable_agent\[{extra}\]"'):
      environments.check_names([level], EnvironmentSettings())

  @parameterized.parameters(
      ('MinAtar/Breakout-v1', 'minatar', (10, 10, 4)),
      ('dm_control/cartpole-swingup-v0', 'dm_control', None))
  @pytest.mark.slow
  def test_levels_play(self, level, package, shape):
    if importlib.util.find_spec(package) is None:
      self.skipTest(f'{package} is not installed')
    with environments.make_vec([level] * 2, [1, 2], EnvironmentSettings(
        num_action_repeats=1)) as env:
      first = env.initial()
      env.step(np.zeros([2] if shape else [2, 1], np.float32 if (
          shape is None) else np.int32))
    if shape:
      self.assertEqual(first.observation.shape, (2, *shape))
    with self.assertRaises(errors.UnknownLevelError):
      environments.check_names([level.replace('-v', 's-v')],
                               EnvironmentSettings())

  def test_videos_of_dm_control_have_the_true_speed(self):
    # As of cartpole: 100 actions per second. The adapter says 10 ms.
    env = mock.Mock(dt=.01, metadata={'render_fps': 10, 'render_modes': []})
    package = mock.Mock()
    package.DmControlCompatibilityV0.return_value = env
    with mock.patch.object(
        dm_control.importlib, 'import_module', return_value=package):
      made = dm_control._load('cartpole', 'swingup', True)
    self.assertEqual(made.metadata, {'render_fps': 100., 'render_modes': []})

  def test_the_renderer_of_dm_control_is_chosen_for_an_import_only(self):
    for before, inside in ((None, 'disable'), ('egl', 'egl')):
      with mock.patch.dict(os.environ):
        os.environ.pop('MUJOCO_GL', None)
        if before:
          os.environ['MUJOCO_GL'] = before
        with dm_control._renderer(needs_pictures=False):
          self.assertEqual(os.environ['MUJOCO_GL'], inside)
        # Videos of a later process choose for themselves.
        self.assertEqual(os.environ.get('MUJOCO_GL'), before)

  def test_minatar_plays_the_same_games_again(self):
    if importlib.util.find_spec('minatar') is None:
      self.skipTest('minatar is not installed')
    with environments.make_vec(
        ['MinAtar/Breakout-v1'] * 60, list(range(60)), EnvironmentSettings(
            num_action_repeats=1, environments_per_process=60)) as env:
      first, second = ([env.initial().observation.copy(), *(
          env.step(np.full([60], action, np.int32)).observation.copy()
          for action in (1, 1, 1, 2))] for _ in range(2))
    np.testing.assert_array_equal(first, second)

  def test_dm_control_builds_the_same_models_again(self):
    if importlib.util.find_spec('dm_control') is None:
      self.skipTest('dm_control is not installed')
    rewards = []
    for _ in range(2):
      with environments.make_vec(
          ['dm_control/lqr-lqr_2_1-v0'], [1], EnvironmentSettings(
              num_action_repeats=1)) as env:
        env.initial()
        rewards.append(env.step(np.zeros([1, 1], np.float32)).reward[0])
    self.assertEqual(*rewards)


class HtmlTest(absltest.TestCase):

  def test_page(self):
    page = markdown.to_html(
        '# A < B\n\n| a | b |\n|---|--:|\n| 1 | 2* |\n\n- one\n- two\n\n'
        '**Bold** \\* text\n', [])
    self.assertIn('<title>A &lt; B</title>', page)
    self.assertIn('<h1>A &lt; B</h1>', page)
    self.assertIn('<table><tr><th>a</th><th>b</th></tr>'
                  '<tr><td>1</td><td>2*</td></tr></table>', page)
    self.assertIn('<ul><li>one</li><li>two</li></ul>', page)
    self.assertIn('<p><b>Bold</b> * text</p>', page)


MUTATIONS = (
    dict(file='modes/suite', catches='test_a_stopped_training_is_not_tested',
         rows=(
             ('stopped trainings are tested',
              'running.is_at_end(programs.output(cell.directory))', 'True'),
         )),
    dict(file='modes/suite',
         catches='test_flags_without_a_run_may_be_corrected', rows=(
             ('flags of failed starts stay', "glob('seed*/settings.json')",
              "glob('seed*')"),
         )),
    dict(file='modes/suite',
         catches='test_another_suite_or_other_flags_in_the_directory', rows=(
             ('other flags for other levels', ' or _common(flags) != common',
              ''),
         )),
    dict(file='scores/protocol',
         catches='test_a_test_with_other_settings_does_not_count', rows=(
             ('tests of other levels count', "'level_name', ", ''),
             ('tests of other environments count',
              '      *_environment_settings(_level_names(config))', ''),
         )),
    dict(file='settings/test_settings',
         catches='test_a_test_with_other_settings_does_not_count', rows=(
             ('greedy tests count', "('test_greedy', 'max_episode_steps')",
              "('max_episode_steps',)"),
             ('tests of other lengths count',
              "('test_greedy', 'max_episode_steps')", "('test_greedy',)"),
         )),
    dict(file='modes/suite',
         catches='test_bad_flags_are_found_before_the_first_run', rows=(
             ('recipes of users', "if flag_values['recipe'].value:",
              'if False:'),
         )),
    dict(file='modes/running',
         catches='test_a_file_in_the_way_does_not_end_the_others', rows=(
        ('all errors of a directory are waited for', 'errors.LockedError:',
         'errors.CheckpointError:'),
    )),
    dict(file='modes/suite',
         catches='test_a_file_in_the_way_does_not_end_the_others', rows=(
        ('a file in the way ends the suite',
         '(errors.CheckpointError, OSError) as e', 'errors.CheckpointError as e'
         ),
    )),
    dict(file='modes/suite', catches='test_a_short_test_does_not_count', rows=(
        ('a test of one game counts', 'str(self.directory), self.num_games',
         'str(self.directory)'),
    )),
    dict(file='scores/comparing', catches='test_a_short_test_does_not_count',
         rows=(
        ('a test of one game counts in a table',
         'directory, run.trained_with.test_num_episodes', 'directory'),
    )),
    dict(file='modes/suite', catches='test_a_run_is_no_suite', rows=(
        ('a run becomes a suite',
         'elif config_lib.trained_with(config.logdir):', 'elif False:'),
    )),
    dict(file='scores/comparing',
         catches='test_levels_without_a_finished_run_are_named', rows=(
        ('a part of a suite is a suite',
         'if directory_of(level) not in directories]', 'if not directories]'),
    )),
    dict(file='modes/suite_report',
         catches='test_levels_without_a_finished_run_are_named', rows=(
        ('the report hides what is missing', '(*remarks, *table.remarks)',
         'table.remarks'),
    )),
    dict(file='environments/dm_control',
         catches='test_videos_of_dm_control_have_the_true_speed', rows=(
        ('frames per second as the adapter says them',
         "'render_fps': 1 / env.dt}", "}"),
    )),
    dict(file='modes/suite_report', catches=(
        'test_a_run_without_an_episode_does_not_take_the_pictures_away'), rows=(
        ('runs without a curve are drawn', '        drawn, f',
         '        logdirs, f'),
    )),
    dict(file='scores/comparing',
         catches='test_a_table_leaves_out_unfinished_runs', rows=(
        ('unfinished runs in tables',
         'if run.num_env_frames < num_frames:', 'if False:'),
    )),
    dict(file='modes/running',
         catches='test_a_stop_ends_the_wait_for_a_locked_run', rows=(
        ('a stop does not end the wait',
         '      if wait(_LOCK_POLL_S):\n        return',
         '      wait(_LOCK_POLL_S)'),
    )),
    dict(file='modes/suite',
         catches='test_a_stop_ends_the_wait_for_a_locked_run', rows=(
        ('runs start after a stop', 'return None if stop.is_set() else _start',
         'return _start'),
    )),
    dict(file='modes/suite', catches='test_finished_runs_are_not_run_again',
         rows=(
        ('all runs again', 'for cell in cells if not cell.tested())',
         'for cell in cells)'),
        ('failures forgotten', 'return 1 if failures else 0', 'return 0'),
    )),
    dict(file='modes/suite', catches='test_a_stopped_training_is_not_tested',
         rows=(
        ('a suite without a finished run is a wrong setting',
         '      return 1\n', '      return 2\n'),
    )),
    dict(file='modes/suite',
         catches='test_a_test_before_the_end_of_the_training_does_not_count',
         rows=(
        ('any test counts', 'run.num_env_frames >= self.num_env_frames',
         'True'),
    )),
    dict(file='modes/running', catches='test_jobs_run_at_the_same_time', rows=(
        ('one job', 'while waiting and free:', 'while waiting and not active:'),
    )),
    dict(file='modes/running',
         catches='test_ctrl_c_leaves_the_runs_time_to_save', rows=(
        ('a stop leaves runs without time to save',
         'programs.stop(*(child for child, _ in active.values()))', 'pass'),
    )),
    dict(file='processes/programs',
         catches='test_ctrl_c_leaves_the_runs_time_to_save', rows=(
        ('Ctrl-C reaches the runs', 'start_new_session=True',
         'start_new_session=False'),
    )),
    dict(file='scores/comparing', catches='test_picture_of_suites', rows=(
        ('suites are not drawn', 'if not _is_suite(path):\n    return {',
         'if path:\n    return {'),
        ('suites are groups of no name', 'os.path.dirname(run.source): '
         'run.group', "os.path.dirname(run.source): ''"),
    )),
    dict(file='scores/plotting', catches='test_picture_of_suites', rows=(
        ('runs without a curve hide the others',
         'if minutes(logdir) is not None', ''),
    )),
    dict(file='scores/comparing', catches='test_table_of_two_suites', rows=(
        ('suites are not groups', '._replace(group=path)', ''),
    )),
)


if __name__ == '__main__':
  absltest.main()
