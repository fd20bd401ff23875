# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the search for settings and of benchmarks/time_to_score.py."""

import contextlib
import csv
import errno
import io
import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import figure
import numpy as np
from scalable_agent.modes import running
from scalable_agent.modes import sweep

_BENCHMARKS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), 'benchmarks')
sys.path.insert(0, _BENCHMARKS)
import time_to_score

_SPACE = {'a': ['1', '2', '3'], 'b': ['x', 'y']}
# Stands in for experiment.py. The return of an episode is `--a` times the
# frames. The program waits at the rungs for a signal, which stops the program.
# A later start continues.
_PROGRAM = '''
import os, signal, sys, time
flags = dict(f[2:].split('=') for f in sys.argv[1:])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
total = int(flags['total_environment_frames'])
path = flags['logdir'] + '/episodes.csv'
is_new = not os.path.exists(path)
frames = 0 if is_new else int(open(path).read().split()[-1].split(',')[0])
with open(path, 'a') as f:
  if is_new:
    f.write('num_env_frames,train_time_s,level_name,episode_return\\n')
  while frames < total and not stopped:
    if flags['a'] == '3' and frames >= 2000:
      sys.exit('Error: it diverged.')
    frames += 500
    f.write(f'{frames},{frames / 100},a,{float(flags["a"]) * frames}\\n')
    f.flush()
    print(f'{frames} of {total} frames (1 %)')
    if flags['b'] == 'stops' and frames == 1500:
      stopped.append(1)
    while frames in (1000, 3000) and frames < total and not stopped:
      time.sleep(0.01)
'''


class DrawTest(absltest.TestCase):

  def test_draws_are_different_and_the_first_ones_stay(self):
    few, many = (sweep.draw(_SPACE, n, seed=1) for n in (3, 100))
    self.assertLen(few, 3)
    self.assertEqual(few, many[:3])
    self.assertCountEqual(
        [t.settings for t in many],
        [(('a', a), ('b', b)) for a in '123' for b in 'xy'])
    self.assertEqual([t.number for t in many], list(range(6)))
    self.assertNotEqual(many, sweep.draw(_SPACE, 100, seed=2))

  def test_draws_are_points_of_the_product(self):
    space = {name: list('0123') for name in 'abcde'}
    trials = sweep.draw(space, 3, seed=1)
    points = list(itertools.product(*space.values()))
    order = np.random.default_rng(1).permutation(len(points))
    self.assertEqual([t.settings for t in trials], [
        tuple(zip(space, points[i])) for i in order[:3]])

  def test_a_space_that_is_too_large_to_list(self):
    space = {f'a{i}': list('0123456789') for i in range(20)}
    few, many = (sweep.draw(space, n, seed=1) for n in (3, 100))
    self.assertEqual(few, many[:3])
    self.assertLen({trial.settings for trial in many}, 100)
    self.assertLen({dict(trial.settings)['a19'] for trial in many}, 10)
    self.assertNotEqual(few, sweep.draw(space, 3, seed=2))

  def test_every_value_is_drawn_as_often(self):
    counts = {'1': 0, '2': 0, '3': 0}
    for seed in range(600):
      trial, = sweep.draw(_SPACE, 1, seed)
      counts[dict(trial.settings)['a']] += 1
    for count in counts.values():
      self.assertBetween(count, 150, 250)

  def test_space(self):
    self.assertEqual(sweep.parse_space(['a=1,2', 'b=x']),
                     {'a': ['1', '2'], 'b': ['x']})
    self.assertEqual(sweep.parse_space(['a=64,64;256,256', 'b=1;2']),
                     {'a': ['64,64', '256,256'], 'b': ['1', '2']})
    for wrong, message in ((['a'], 'NAME=A,B,C'), (['a=1,'], 'NAME=A,B,C'),
                           (['=1'], 'NAME=A,B,C'), (['a=1', 'a=2'], 'twice'),
                           (['a=1,2;'], 'NAME=A,B,C'),
                           (['a=64,64'], 'a=64,64 has a value twice')):
      with self.assertRaisesRegex(ValueError, message):
        sweep.parse_space(wrong)


class ScoreTest(absltest.TestCase):

  def test_score_is_that_of_the_last_hundred(self):
    episodes = np.array([[10 * i, 0, i] for i in range(1, 301)])
    self.assertEqual(running.score(episodes), np.mean(range(201, 301)))
    self.assertEqual(running.score(episodes, 1505), np.mean(range(51, 151)))
    self.assertEqual(running.score(episodes, 25), 1.5)
    self.assertEqual(running.score(episodes, 9), -math.inf)

  def test_survivors(self):
    trials = sweep.draw(_SPACE, 5, seed=1)
    scores = dict(zip(trials, (1., 5., -math.inf, 3., 4.)))
    self.assertEqual(sweep.survivors(scores, 2),
                     [trials[1], trials[4], trials[3]])
    self.assertEqual(sweep.survivors(scores, 10), [trials[1]])
    self.assertEmpty(sweep.survivors({}, 3))


class SweepTest(parameterized.TestCase):
  """Sweeps with a program that stands in for experiment.py."""

  def setUp(self):
    super().setUp()
    self.out = pathlib.Path(self.create_tempdir().full_path)
    (self.out / 'experiment.py').write_text(_PROGRAM)
    self.enter_context(mock.patch.object(
        sweep.running, 'PROGRAM', [str(self.out / 'experiment.py')]))
    self.enter_context(mock.patch.object(sweep, '_POLL_S', 0.01))

  def sweep(self, *flags, search=('a=1,2,3', 'b=x,y'),
            rungs='1000,3000,5000'):
    """Returns the output of the program, and the lines of its table."""
    argv = ['sweep.py', f'--out={self.out / "sweep"}', f'--rungs={rungs}',
            *(f'--search={value}' for value in search), '--num_trials=6',
            '--keep=2', *flags]
    with mock.patch.object(sys, 'argv', argv), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      self.code = sweep.main()
    with open(self.out / 'sweep' / 'sweep.csv', encoding='utf-8') as f:
      return output.getvalue(), list(csv.DictReader(f))

  def test_the_best_go_on_and_failures_do_not(self):
    output, rows = self.sweep('--jobs=2')
    self.assertLen(rows, 6)
    # 3 is the best one at the first rung, and fails before the second.
    self.assertEqual([row['a'] for row in rows], ['2', '3', '3', '2', '1', '1'])
    self.assertIn('failed: Error: it diverged.', output)
    self.assertEqual(rows[0]['score at 1000'], '1500.0')
    self.assertEqual(rows[0]['score at 5000'], '5500.0')
    self.assertEqual(rows[0]['frames'], '5000')
    for row in rows[1:]:
      self.assertEqual((row['score at 3000'], row['score at 5000']), ('', ''))
    self.assertTrue((self.out / 'sweep' / 'sweep.png').exists())

    self.assertIn('2 of 6 trials failed.', output)
    self.assertEqual(self.code, 1)

  def test_a_trial_that_was_stopped_is_not_finished(self):
    output, rows = self.sweep(search=['a=1', 'b=stops'], rungs='1000,3000')
    self.assertIn('failed: it was stopped', output)
    self.assertEqual((rows[0]['frames'], self.code), ('1500', 1))
    output, rows = self.sweep(search=['a=1', 'b=stops'], rungs='1000,3000')
    self.assertEqual((rows[0]['frames'], self.code), ('3000', 0))

  def test_a_trial_that_another_run_has_fails(self):
    runs = sweep.Sweep(self.out, ['--total_environment_frames=1000'], 1)
    trials = sweep.draw(sweep.parse_space(['a=1,2', 'b=x']), 2, 1)
    directories = [str(trial.directory(self.out)) for trial in trials]
    with sweep.running.logdirs.locked(directories[0]), mock.patch.object(
        sweep.running, '_LOCK_TIMEOUT_S', 0), contextlib.redirect_stdout(
            io.StringIO()) as output:
      self.assertEqual(list(runs.run(trials, 1000)), trials[1:])
    self.assertIn('is in use', runs.failed[trials[0]])
    self.assertRegex(output.getvalue(), 'trial000: failed: .* is in use')

  def test_a_trial_whose_directory_is_deleted_has_hung(self):
    runs = sweep.Sweep(self.out, [], 1)
    [trial] = sweep.draw({'a': ['1']}, 1, 1)
    self.assertTrue(runs._has_hung(trial))
    ends = (end for end in [(trial, None, 0)])
    with mock.patch.object(running, 'ends', return_value=ends), \
        contextlib.redirect_stdout(io.StringIO()):
      runs.run([trial], 1)
    self.assertEqual(runs.failed, {trial: 'its directory was deleted'})

  def test_two_sweeps_in_a_directory(self):
    with running.logdirs.locked(str(self.out / 'sweep')), \
        contextlib.redirect_stderr(io.StringIO()) as output, \
        self.assertRaises(SystemExit):
      self.sweep()
    self.assertRegex(output.getvalue(), r'--out=.*/sweep is in use')
    self.assertFalse((self.out / 'sweep').exists())

  def test_a_trial_that_hangs_has_failed(self):
    with mock.patch.object(sweep, '_HANG_S', 2.):
      # The program waits at 1,000 frames.
      output, _ = self.sweep(search=['a=1', 'b=x'], rungs='1001,5000')
    self.assertIn('failed: no episode has ended for', output)
    self.assertEqual(self.code, 1)

  def test_a_directory_that_cannot_be_written(self):
    argv = ['sweep.py', '--out=/proc/x', '--search=a=1', '--rungs=8']
    with mock.patch.object(sys, 'argv', argv), contextlib.redirect_stderr(
        io.StringIO()) as output, self.assertRaises(SystemExit) as caught:
      sweep.main()
    self.assertEqual(caught.exception.code, 2)
    self.assertEndsWith(
        output.getvalue(),
        '--out=/proc/x cannot be written: No such file or directory.\n')

  def test_a_report_that_cannot_be_written(self):
    _, rows = self.sweep(rungs='1000,1500')
    with mock.patch.object(sweep.files, 'write_csv', side_effect=OSError(
        errno.ENOSPC, 'No space left on device')):
      output, again = self.sweep(rungs='1000,1500')
    self.assertEqual(again, rows)
    self.assertRegex(output, 'The report cannot be written to .*: No space')

  def test_a_second_call_runs_nothing_again(self):
    _, rows = self.sweep(rungs='1000,1500')
    self.assertEqual(self.code, 0)
    with mock.patch.object(subprocess, 'Popen') as started:
      _, again = self.sweep(rungs='1000,1500')
    started.assert_not_called()
    self.assertEqual(rows, again)

  def test_without_matplotlib_there_is_a_table(self):
    with mock.patch.dict(sys.modules, {'matplotlib': None}):
      output, _ = self.sweep(search=['a=1', 'b=x'], rungs='1000')
    self.assertEqual(self.code, 0)
    self.assertIn('| 1 | x |', output)
    self.assertEndsWith(output, 'pip install "scalable_agent[plot]".\n')

  def test_other_flags_need_another_directory(self):
    self.sweep(rungs='1000')
    # Also if its trials have come to their end.
    for directory in (self.out / 'sweep').iterdir():
      if directory.is_dir():
        (directory / 'finished').touch()
    report = (self.out / 'sweep' / 'sweep.md').read_text()
    for rungs in '1500', '1000':
      with contextlib.redirect_stderr(io.StringIO()) as output, \
          self.assertRaises(SystemExit) as caught:
        self.sweep(rungs=rungs)
      self.assertEqual(caught.exception.code, 2)
      self.assertEndsWith(output.getvalue(),
                          'was run with other flags: use another --out.\n')
      self.assertEqual((self.out / 'sweep' / 'sweep.md').read_text(), report)
      # A damaged file is no other than that of other flags.
      (self.out / 'sweep' / 'trial000' / 'flags.json').write_text('')

  def test_an_edited_file_of_flags_needs_another_directory(self):
    path = self.out / 'base.flags'
    flags = '--rungs=1000', '--', f'--flagfile={path}'
    path.write_text('# Of all trials.\n--c=1\n')
    for _ in range(2):
      self.sweep(*flags)
      self.assertEqual(self.code, 0)
    for text, error in (
        ('--c=2', 'was run with other flags: use another --out.\n'),
        ('--batch_size=x', 'must be a whole number, such as 1000 or 1e6\n'),
        ('', f"No such file or directory: '{path}'\n")):
      path.unlink()
      if text:
        path.write_text(text)
      with contextlib.redirect_stderr(io.StringIO()) as output, \
          self.assertRaises(SystemExit):
        self.sweep(*flags)
      self.assertEndsWith(output.getvalue(), error)

  def test_a_trial_that_never_ran_may_have_other_flags(self):
    directory = self.out / 'sweep' / 'trial000'
    directory.mkdir(parents=True)
    for name in 'flags.json', 'log.txt':
      (directory / name).write_text('["--learning_rte=1"]')
    self.sweep(rungs='1000')
    self.assertEqual(self.code, 0)

  @parameterized.parameters(
      '--keep=1', '--jobs=0', '--num_trials=0', '--seed=-1')
  def test_numbers_that_are_too_small(self, flag):
    with contextlib.redirect_stderr(io.StringIO()) as output, \
        self.assertRaises(SystemExit):
      self.sweep(flag)
    self.assertEndsWith(
        output.getvalue(),
        'The least are --keep=2, --jobs=1, --num_trials=1, --seed=0.\n')

  def test_each_trial_has_its_own_logdir(self):
    with contextlib.redirect_stderr(io.StringIO()) as output, \
        self.assertRaises(SystemExit), mock.patch.object(
            sys, 'argv', ['sweep', f'--out={self.out}', '--search=a=1',
                          '--rungs=5', '--', '--logdir=x']):
      sweep.main()
    self.assertEndsWith(output.getvalue(), 'of its own, in --out.\n')

  def test_rungs(self):
    self.assertEqual(sweep.parse_rungs('20,3'), [3, 20])
    for wrong in ('', '1e6', '0', '5,', '-1'):
      with self.assertRaisesRegex(ValueError, f'--rungs={wrong} must be posit'):
        sweep.parse_rungs(wrong)

  def test_helps_are_sentences(self):
    with mock.patch.object(sys, 'argv', ['sweep.py', '--help']), \
        contextlib.redirect_stdout(io.StringIO()) as output, \
        self.assertRaises(SystemExit):
      sweep.main()
    _, _, helps = output.getvalue().partition('show this help')
    for text in re.split(r'\n  --', helps)[1:]:
      self.assertRegex(text, r'(?s)^\w+ \S+\s+[A-Z].*\.$')


class MarkTest(parameterized.TestCase):

  def games(self, returns):
    count = np.arange(1., len(returns) + 1)
    return time_to_score.Games(count, 1000 * count, np.array(returns, float))

  def test_means(self):
    returns = np.random.default_rng(1).normal(size=250)
    means = self.games(returns).means()
    self.assertTrue(np.isnan(means[:99]).all())
    np.testing.assert_allclose(
        means[99:], [np.mean(returns[i - 99:i + 1]) for i in range(99, 250)])
    self.assertTrue(np.isnan(self.games([1.] * 99).means()).all())
    self.assertEmpty(self.games([]).means())

  def test_a_mean_at_the_mark_is_not_below_it(self):
    # Any 100 returns have a mean of 18.
    returns = np.tile(np.random.default_rng(1).permutation(
        np.repeat([21., 15., 20., 17., 17.], 20)), 3)
    means = self.games(returns).means()
    self.assertEqual(time_to_score.reached(means, 18), 99)
    self.assertEqual(time_to_score.held(means, 18), 199)

  def test_mark(self):
    # Up for 50 games, down, then up for good.
    means = np.array([np.nan] * 99 + [0.] * 20 + [5.] * 50 + [4.9] * 10
                     + [5.] * 150)
    self.assertEqual(time_to_score.reached(means, 5), 119)
    self.assertEqual(time_to_score.held(means, 5), 179 + 100)
    self.assertIsNone(time_to_score.held(means[:279], 5))
    self.assertIsNone(time_to_score.reached(means, 5.1))
    self.assertIsNone(time_to_score.held(means, 5.1))

  def test_table(self):
    row = lambda seed, minutes: dict(
        program='zoo_ppo', game='pong', seed=seed, mark='18',
        minutes_to_mark=minutes, minutes_held='', frames_to_mark='8e6',
        last_mean='18.5', minutes='60', others='0.1', error='')
    line = time_to_score.table(
        [row('1', '40'), row('2', ''), row('3', '50')]).splitlines()[2]
    self.assertIn('| 40.0, -, 50.0 | 50.0 | -, -, - | 8.0, 8.0, 8.0 |', line)
    line = time_to_score.table(
        [row('1', '40'), row('2', ''), row('3', '')]).splitlines()[2]
    self.assertIn('| 40.0, -, - | - |', line)
    self.assertIn('| 18.5, 18.5, 18.5 | 60.0, 60.0, 60.0 | 0.10 |', line)
    # The second one was given less than the third one took.
    line = time_to_score.table([row('1', '40'), {
        **row('2', ''), 'minutes': '45'}, row('3', '50')]).splitlines()[2]
    self.assertIn('| 40.0, -, 50.0 | ? |', line)
    # Failed runs did not fall short of the mark.
    lines = time_to_score.table(
        [row('1', '40'), {**row('2', ''), 'error': 'no opencv'}]).splitlines()
    self.assertIn('| 40.0 | 40.0 |', lines[2])
    self.assertEqual(lines[3:], ['', 'zoo_ppo, seed 2, failed: no opencv'])


class MeasureTest(absltest.TestCase):
  """A run of a program that stands in for ours."""

  def test_ends_when_the_mark_was_held(self):
    out = pathlib.Path(self.create_tempdir().full_path)
    (out / 'experiment.py').write_text(
        'import os, sys, time\n'
        "flags = dict(f[2:].split('=') for f in sys.argv[1:])\n"
        "os.makedirs(flags['logdir'])\n"
        "with open(flags['logdir'] + '/episodes.csv', 'w') as f:\n"
        "  f.write('num_env_frames,train_time_s,level_name,episode_return'"
        "'\\n')\n"
        '  for i in range(1, 301):\n'
        "    f.write(f'{i * 100},{i},a,{int(i > 50)}\\n')\n"
        '  f.flush()\n'
        '  time.sleep(600)\n')
    args = types.SimpleNamespace(
        out=out, game='pong', mark=1., limit_min=60, to_limit=False, flags=[])
    with mock.patch.object(time_to_score, '_ROOT', out), \
        mock.patch.object(time_to_score, '_POLL_S', 0.05):
      row = time_to_score.measure('ours', '', 7, args)
      self.assertEqual(row['frames_to_mark'], 150 * 100)
      self.assertEqual(row['frames_held'], 250 * 100)
      # A game in each second of training.
      self.assertAlmostEqual(
          row['minutes_held'] - row['minutes_to_mark'], 100 / 60, delta=0.02)
      self.assertEqual(
          (row['games'], row['seed'], row['error'], row['last_mean']),
          (300, 7, '', 1.))
      # A run that is cut off when its time is over.
      args.mark, args.limit_min = 2., 1e-9
      row = time_to_score.measure('ours', '', 8, args)
      self.assertEqual((row['minutes_to_mark'], row['minutes_held']), ('', ''))
      # One in which no game ends any more.
      args.limit_min = 60
      with mock.patch.object(time_to_score, '_HANG_S', 6.):
        row = time_to_score.measure('ours', '', 9, args)
    self.assertEqual((row['error'], row['games']),
                     ('no game has ended for 6 s', 300))

  def test_minutes_are_those_since_the_start_of_the_program(self):
    args = types.SimpleNamespace(game='pong', flags=[])
    out = pathlib.Path(self.create_tempdir().full_path)
    with mock.patch.object(time_to_score.peers, 'Run'), \
        mock.patch.object(time_to_score.time, 'monotonic') as now:
      now.return_value = 1000.
      ours = time_to_score._Program('ours', '', out, args, 1)
      peer = time_to_score._Program('zoo_a2c', '', out, args, 1)
      # Each process of a peer writes a file of its own.
      (out / 'games-1').write_text('1060 100 5\n1180 300 7\n12')
      (out / 'games-2').write_text('1120 200 6\n')
      np.testing.assert_allclose(
          peer.games(), [[1, 2, 3], [400, 800, 1200], [5, 6, 7]])
      # Training began after 20 seconds. The first game is seen 5 seconds late.
      (out / 'logdir').mkdir()
      path = out / 'logdir' / 'episodes.csv'
      path.write_text('num_env_frames,train_time_s,level_name,episode_return\n'
                      '400,40,a,5\n')
      now.return_value = 1065.
      np.testing.assert_allclose(ours.games(), [[65 / 60], [400], [5]])
      path.write_text(path.read_text() + '800,100,a,6\n')
      now.return_value = 1120.
      np.testing.assert_allclose(ours.games(), [[1, 2], [400, 800], [5, 6]])


class ProgramTest(absltest.TestCase):
  """The whole program, with one that stands in for experiment.py."""

  def setUp(self):
    super().setUp()
    self.out = pathlib.Path(self.create_tempdir().full_path)
    self.enter_context(mock.patch.object(time_to_score, '_ROOT', self.out))
    self.enter_context(mock.patch.object(time_to_score, '_POLL_S', 0.05))

  def main(self, last_words, *flags):
    """Returns the output; `last_words`: of the runs."""
    (self.out / 'experiment.py').write_text(
        'import os, sys\n'
        "flags = dict(f[2:].split('=') for f in sys.argv[1:])\n"
        "os.makedirs(flags['logdir'])\n"
        "with open(flags['logdir'] + '/episodes.csv', 'w') as f:\n"
        "  f.write('num_env_frames,train_time_s,level_name,episode_return'"
        "'\\n')\n"
        '  for i in range(1, 151):\n'
        "    f.write(f'{i * 100},{i},a,{int(i > 20)}\\n')\n"
        f'{last_words}\n')
    argv = ['time_to_score.py', f'--out={self.out / "runs"}', '--game=pong',
            '--mark=1', '--programs=ours', '--seeds=2', *flags]
    with mock.patch.object(sys, 'argv', argv), \
        contextlib.redirect_stdout(io.StringIO()) as output, \
        contextlib.redirect_stderr(output):
      try:
        time_to_score.main()
      except SystemExit as e:
        self.assertEqual(e.code, 2)
    return output.getvalue()

  def rows(self):
    with open(self.out / 'runs' / 'results.csv', encoding='utf-8') as f:
      return list(csv.DictReader(f))

  def test_what_is_there_is_not_made_again(self):
    ended = 'print("9 of 9 frames (100.0 %)")'
    output = self.main('sys.exit("Error: no")', '--', '--a=1')
    self.assertIn('ours, seed 2, failed: ended with 1: Error: no', output)
    output = self.main('print("8 of 9 frames (88.9 %)")')
    self.assertIn('ours, seed 1, failed: it was stopped', output)
    # Failed runs are made again, also with other flags.
    output = self.main(ended)
    self.assertNotIn('failed', output)
    self.assertTrue((self.out / 'runs' / 'pong-1.png').exists())
    rows = self.rows()
    self.assertEqual([row['seed'] for row in rows], ['1', '2'] * 3)
    self.assertEqual([bool(row['error']) for row in rows],
                     [True] * 4 + [False] * 2)
    for row in rows[4:]:
      self.assertEqual(
          (float(row['frames_to_mark']), row['frames_held'], row['games']),
          (120 * 100, '', '150'))
    # The limit as the default has it; another limit; a seed more.
    for flags in (['--limit_min=60'], ['--limit_min=9', '--to_limit']):
      self.main('sys.exit("Error: it was made again")', *flags)
      self.assertEqual(self.rows(), rows)
    self.main(ended, '--seeds=3')
    self.assertEqual([row['seed'] for row in self.rows()[4:]], ['1', '2', '3'])
    output = self.main(ended, '--', '--a=1')
    self.assertIn('use another --out', output)

  def test_each_program_of_ours_has_its_recipe(self):
    with mock.patch.object(
        figure.Figure, 'savefig', autospec=True) as savefig:
      output = self.main(
          "open(flags['logdir'] + '/recipe', 'w').write(flags['recipe'])\n"
          'print("9 of 9 frames (100.0 %)")', '--programs=ours_impala,ours',
          '--seeds=2')
    for name, recipe in (('ours', 'appo_pong'),
                         ('ours_impala', 'pong_two_cores')):
      self.assertIn(f'| ours, {recipe} | pong | 1 |', output)
      directory = self.out / 'runs' / f'pong-1-{name}-seed1'
      self.assertEqual((directory / 'logdir' / 'recipe').read_text(), recipe)
    picture = savefig.call_args.args[0]
    self.assertLen(picture.legends[0].get_texts(), 2)
    minutes, frames = picture.axes
    for axis, x in (minutes, 1 / 60), (frames, 100 / 1e6):
      self.assertLen(axis.lines, 5)  # And the mark.
      for line in axis.lines[:4]:
        np.testing.assert_allclose(
            np.diff(line.get_xdata()), x, atol=1e-5)
        self.assertEqual(line.get_ydata()[-1], 1.)
    # Runs from before these recipes.
    path = self.out / 'runs' / 'results.csv'
    path.write_text(path.read_text().replace('--recipe=appo_pong', '--a=1'))
    self.assertIn('has runs of ours with the flags', self.main(''))


# See `mutations.py`.
MUTATIONS = (
    dict(file='modes/sweep', catches='test_space', rows=(
        ('semicolons separate nothing',
         "';' if ';' in choices else ','", "','"),
    )),
)


if __name__ == '__main__':
  absltest.main()
