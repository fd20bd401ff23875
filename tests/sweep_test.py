# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of benchmarks/sweep.py and benchmarks/time_to_score.py."""

import contextlib
import csv
import io
import math
import os
import pathlib
import subprocess
import sys
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

_BENCHMARKS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), 'benchmarks')
sys.path.insert(0, _BENCHMARKS)
# pylint: disable=g-import-not-at-top,wrong-import-position
import sweep
import time_to_score

_SPACE = {'a': ['1', '2', '3'], 'b': ['x', 'y']}
# Stands in for experiment.py. The return of an episode is `--a` times the
# frames. It waits at the rungs for a signal, which stops it, and goes on where
# it was.
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
    for wrong, message in ((['a'], 'NAME=A,B,C'), (['a=1,'], 'NAME=A,B,C'),
                           (['=1'], 'NAME=A,B,C'), (['a=1', 'a=2'], 'twice')):
      with self.assertRaisesRegex(ValueError, message):
        sweep.parse_space(wrong)


class ScoreTest(absltest.TestCase):

  def test_score_is_that_of_the_last_hundred(self):
    episodes = np.array([[10 * i, 0, i] for i in range(1, 301)])
    self.assertEqual(sweep.score(episodes), np.mean(range(201, 301)))
    self.assertEqual(sweep.score(episodes, 1505), np.mean(range(51, 151)))
    self.assertEqual(sweep.score(episodes, 25), 1.5)
    self.assertEqual(sweep.score(episodes, 9), -math.inf)

  def test_survivors(self):
    trials = sweep.draw(_SPACE, 5, seed=1)
    scores = dict(zip(trials, (1., 5., -math.inf, 3., 4.)))
    self.assertEqual(sweep.survivors(scores, 2),
                     [trials[1], trials[4], trials[3]])
    self.assertEqual(sweep.survivors(scores, 10), [trials[1]])
    self.assertEmpty(sweep.survivors({}, 3))


class SweepTest(absltest.TestCase):
  """Sweeps with a program that stands in for experiment.py."""

  def setUp(self):
    super().setUp()
    self.out = pathlib.Path(self.create_tempdir().full_path)
    (self.out / 'experiment.py').write_text(_PROGRAM)
    self.enter_context(mock.patch.object(sweep.runs, 'ROOT', self.out))
    self.enter_context(mock.patch.object(sweep, '_POLL_S', 0.01))

  def sweep(self, *flags, rungs='1000,3000,5000'):
    """Returns what the program prints, and the lines of its table."""
    argv = ['sweep.py', f'--out={self.out / "sweep"}', '--search=a=1,2,3',
            '--search=b=x,y', f'--rungs={rungs}', '--num_trials=6',
            '--keep=2', *flags]
    with mock.patch.object(sys, 'argv', argv), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      sweep.main()
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

  def test_a_second_call_runs_nothing_again(self):
    _, rows = self.sweep(rungs='1000,1500')
    with mock.patch.object(subprocess, 'Popen') as started:
      _, again = self.sweep(rungs='1000,1500')
    started.assert_not_called()
    self.assertEqual(rows, again)

  def test_other_flags_need_another_directory(self):
    self.sweep(rungs='1000')
    # Also if its trials have come to their end.
    for directory in (self.out / 'sweep').glob('*/'):
      (directory / 'finished').touch()
    with self.assertRaisesRegex(SystemExit, 'other flags: use another --out'):
      self.sweep(rungs='1500')


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
        last_mean='18.5', others='0.1', error='')
    line = time_to_score.table(
        [row('1', '40'), row('2', ''), row('3', '50')]).splitlines()[2]
    self.assertIn('| 40.0, -, 50.0 | 50.0 | -, -, - | 8.0, 8.0, 8.0 |', line)
    line = time_to_score.table(
        [row('1', '40'), row('2', ''), row('3', '')]).splitlines()[2]
    self.assertIn('| 40.0, -, - | - |', line)
    # What failed did not fall short of the mark.
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
      with mock.patch.object(time_to_score, '_HANG_S', 2.):
        row = time_to_score.measure('ours', '', 9, args)
    self.assertEqual((row['error'], row['games']),
                     ('no game has ended for 2 s', 300))


if __name__ == '__main__':
  absltest.main()
