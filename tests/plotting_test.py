# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the learning curves that plot mode draws."""

import contextlib
import csv
import errno
import io
import os
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
from matplotlib import figure as figure_lib
from matplotlib import image
import numpy as np
import pytest
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.scores import atari57
from scalable_agent.scores import comparing
from scalable_agent.scores import evaluations
from scalable_agent.scores import plotting
from scalable_agent.settings import config as config_lib

_FIELDS = episodes_lib.FIELDS


def _seeds_of_one(logdirs, groups=()):
  return plotting.seeds_of_one(
      {label: plotting._trained_with(logdir)
       for label, logdir in logdirs.items()},
      dict.fromkeys(logdirs, '') | dict(groups))


class PlottingTest(parameterized.TestCase):

  def _logdir(self, episodes, name='run', text=''):
    """Makes a run of (frames, seconds, level, return) of episodes."""
    logdir = os.path.join(self.create_tempdir().full_path, name)
    os.mkdir(logdir)
    with open(os.path.join(logdir, 'episodes.csv'), 'w', newline='',
              encoding='utf-8', errors='surrogateescape') as f:
      writer = csv.writer(f)
      writer.writerow(_FIELDS)
      writer.writerows([*episode, 9, 36] for episode in episodes)
      f.write(text)
    return logdir

  def _main(self, **settings):
    with flagsaver.flagsaver(mode='plot', **settings), \
        contextlib.redirect_stdout(io.StringIO()) as stdout, \
        contextlib.redirect_stderr(io.StringIO()) as stderr:
      code = experiment.main(['experiment.py'])
    return code, stdout.getvalue(), stderr.getvalue()

  def test_what_a_killed_part_did_after_its_checkpoint_is_left_out(self):
    logdir = self._logdir([
        (100, 1, 'catch', 1), (200, 2, 'memory', 2), (300, 3, 'catch', 3),
        # Killed; the last checkpoint was at 200.
        (250, 2.5, 'catch', 4), (300, 3, 'memory', 5), (300, 3, 'catch', 6)])
    curves = plotting.read_curves(logdir)
    np.testing.assert_array_equal(
        curves['catch'], [[100, 250, 300], [1, 2.5, 3], [1, 4, 6]])
    np.testing.assert_array_equal(
        curves['memory'], [[200, 300], [2, 3], [2, 5]])

  @parameterized.parameters(
      '300,3', '300,3,catch,', '300,3,catch,5,9,36300,3,c', 'x,3,catch,5,9,36',
      '\x00\udcff')
  def test_damaged_lines_are_left_out(self, line):
    logdir = self._logdir([(100, 1, 'catch', 1)],
                          text=f'{line}\n200,2,catch,7,9,36\n{line}')
    np.testing.assert_array_equal(plotting.read_curves(logdir)['catch'],
                                  [[100, 200], [1, 2], [1, 7]])

  def test_running_mean(self):
    np.testing.assert_allclose(
        plotting.running_mean(np.array([4., 0., 8., 1., 3.]), 3),
        [4, 2, 4, 3, 4])

  def test_seeds_of_one_are_a_band(self):
    logdirs = []
    for seed, other in (1, {}), (2, {}), (3, {'batch_size': 9}), (4, {}):
      logdirs.append(self._logdir(
          [(100 * seed, 1, 'catch', seed), (400 + seed, 61, 'catch', 2 * seed)],
          name=f'run{seed}'))
      config_lib.Config(seed=seed, logdir=logdirs[-1], **other).save()
    by_label = dict(zip(comparing.labels(logdirs), logdirs))
    bands = _seeds_of_one(by_label)
    self.assertEmpty(_seeds_of_one(by_label, {'run4': 'a suite'}))
    [(name, group)] = bands.items()
    self.assertEqual(group, ('run1', 'run2', 'run4'))
    self.assertEqual(name, 'run1 and 2 other seeds: median, least and most')
    twice = dict.fromkeys(by_label, config_lib.Config(seed=4))
    self.assertEmpty(plotting.seeds_of_one(twice, dict.fromkeys(twice, '')))
    runs = dict(zip(by_label, map(plotting.read_curves, logdirs)))
    figure = plotting.draw(runs, 1, bands=bands)
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    self.assertIn('run3', lines)
    self.assertNotIn('run1', lines)
    # From the last first episode to the first last one.
    x, y = lines[name].get_data()
    np.testing.assert_allclose([x[0], x[-1]], [400, 401])
    np.testing.assert_allclose(
        [y[0], y[-1]], [2 + 2 * 200 / 202, 2 + 2 * 201 / 202])
    grid, low, middle, high = plotting.band(
        [runs[label]['catch'] for label in group], 1, 1)
    np.testing.assert_allclose([grid[0], grid[-1]], [1 / 60, 61 / 60])
    np.testing.assert_allclose(
        [low[0], middle[0], high[0], low[-1], middle[-1], high[-1]],
        [1, 2, 4, 2, 4, 8])
    with mock.patch.object(plotting, 'draw', wraps=plotting.draw) as drawn:
      code, output, _ = self._main(logdir=','.join(logdirs))
    self.assertEqual(code, 0, output)
    self.assertEqual(drawn.call_args.args[3], bands)
    # A run whose settings cannot be read has a curve of its own.
    with open(os.path.join(logdirs[1], 'settings.json'), 'w') as f:
      f.write('{')
    self.assertEmpty(_seeds_of_one(by_label))

  def _of_seeds(self, level, seeds, costs=(.1, .2)):
    logdirs = []
    for cost in costs:
      for seed in seeds:
        # Returns rise from 0 to `seed + 10 * cost`.
        logdirs.append(self._logdir(
            [(100 * i, i, level, (seed + 10 * cost) * i / 9)
             for i in range(10)], name=f'{level}{cost}{seed}'))
        config_lib.Config(seed=seed, logdir=logdirs[-1], level_name=level,
                          entropy_cost=cost).save()
    return logdirs

  def test_statistics_over_seeds(self):
    logdirs = self._of_seeds('CartPole-v1', (1, 2, 4))
    saved = []
    with mock.patch.object(plotting, '_save', lambda *args: saved.append(args)):
      code, output, _ = self._main(
          logdir=','.join(logdirs), plot_num_episodes=1)
    self.assertEqual(code, 0, output)
    self.assertEqual([path for _, path in saved], [
        f'{logdirs[0]}/learning_curves_compared{x}.png'
        for x in ('', '_statistics')])
    intervals, profiles, efficiency = saved[1][0].axes
    self.assertEqual(intervals.get_title('left'),
                     '95 % intervals over seeds at 900 frames')
    # Means of both groups, 7/3 more than the costs.
    np.testing.assert_allclose(
        sorted(line.get_xdata()[0] for line in intervals.get_lines()
               if line.get_marker() == 'o'),
        [3, 7 / 3 + 1, 7 / 3 + 1, 4, 7 / 3 + 2, 7 / 3 + 2])
    self.assertEqual([line.get_label() for line in efficiency.get_lines()],
                     ['entropy_cost=0.1', 'entropy_cost=0.2'])
    x, y = efficiency.get_lines()[1].get_data()
    np.testing.assert_allclose(y, (7 / 3 + 2) * x / 900)
    x, y = profiles.get_lines()[0].get_data()
    np.testing.assert_allclose(
        y, [np.mean(np.array([2, 3, 5]) > t) * 100 for t in x])

  def test_statistics_over_levels_need_a_scale(self):
    logdirs = [*self._of_seeds('CartPole-v1', (1, 2), (.1,)),
               *self._of_seeds('Acrobot-v1', (1, 2), (.1,))]
    code, output, _ = self._main(logdir=','.join(logdirs))
    self.assertEqual(code, 0)
    self.assertIn('No picture of statistics over seeds: no group has several '
                  'seeds, and a scale for all its levels.', output)
    logdirs = [*self._of_seeds('catch', (1, 2), (.1,)),
               *self._of_seeds('pattern', (1, 2), (.1,))]
    code, output, _ = self._main(logdir=','.join(logdirs))
    self.assertEqual(code, 0)
    self.assertIn('compared_statistics.png.', output)
    self.assertNotIn('omits groups', output)
    logdirs += self._of_seeds('CartPole-v1', (1, 2), (.2,))
    logdirs += self._of_seeds('catch', (3,), (.4,))
    code, output, _ = self._main(logdir=','.join(logdirs))
    self.assertEqual(code, 0)
    self.assertIn('omits groups without several seeds and a scale for all '
                  'levels: entropy_cost=0.4.', output)
    self.assertIn('omits groups of other levels, or of another scale, than '
                  'entropy_cost=0.1: entropy_cost=0.2.', output)
    # Neither the same seed again nor unknown settings are seeds.
    for other in (logdirs[:1], [logdirs[0], logdirs[2]]):
      _, output, _ = self._main(logdir=','.join(other))
      self.assertNotIn('statistics.png', output)

  def test_statistics_need_the_same_levels(self):
    logdirs = [*self._of_seeds('catch', (1, 2)),
               *self._of_seeds('memory', (1, 2), (.1,))]
    saved = []
    with mock.patch.object(plotting, '_save', lambda *args: saved.append(args)):
      code, output, _ = self._main(logdir=','.join(logdirs))
    self.assertEqual(code, 0)
    self.assertIn('omits groups of other levels, or of another scale, than '
                  'entropy_cost=0.1: entropy_cost=0.2.', output)
    _, profiles, _ = saved[1][0].axes
    self.assertEqual([line.get_label() for line in profiles.get_lines()],
                     ['entropy_cost=0.1'])

  def test_reasons_for_no_statistics(self):
    logdirs = self._of_seeds('catch', (1, 2), (.1,))
    code, output, _ = self._main(logdir=','.join([*logdirs, logdirs[0] + '/']))
    self.assertEqual(code, 0)
    self.assertIn('No statistics over the seeds of all runs: seed 1 on catch '
                  'is there 2 times.\n', output)

  def test_statistics_of_another_comparison_do_not_stay(self):
    logdirs = self._of_seeds('catch', (1, 2), (.1,))
    self._main(logdir=','.join(logdirs))
    path = f'{logdirs[0]}/learning_curves_compared_statistics.png'
    self.assertTrue(os.path.exists(path))
    self._main(logdir=f'{logdirs[0]},{logdirs[0]}')
    self.assertFalse(os.path.exists(path))

  def test_omitted_runs_do_not_shorten_the_statistics(self):
    logdirs = self._of_seeds('CartPole-v1', (1, 2), (.1,))
    logdirs.append(self._logdir([(100, 1, 'CartPole-v1', 1)], 'short'))
    config_lib.Config(seed=3, logdir=logdirs[-1], level_name='CartPole-v1',
                      entropy_cost=.4).save()
    saved = []
    with mock.patch.object(plotting, '_save', lambda *args: saved.append(args)):
      code, output, _ = self._main(
          logdir=','.join(logdirs), plot_num_episodes=1)
    self.assertEqual(code, 0, output)
    self.assertIn('omits groups without several seeds and a scale for all '
                  'levels: entropy_cost=0.4.', output)
    self.assertEqual(saved[1][0].axes[0].get_title('left'),
                     '95 % intervals over seeds at 900 frames')

  def test_a_band_begins_where_curves_do(self):
    # Of 100 episodes in a mean, the first 20 are no mean.
    def curve(first, sign):
      x = np.arange(first, first + 200.)
      return plotting.Curve(x, 60 * x, sign * np.where(x < first + 20, 1e6, 1))

    x, low, _, high = plotting.band([curve(1, 1), curve(5, -1)], 0, 100)
    np.testing.assert_allclose([x[0], x[-1]], [5 + 20, 200])
    np.testing.assert_allclose(
        [low[0], high[0]], [-(20e6 + 1) / 21, (20e6 + 5) / 25])

  def test_no_band_of_runs_that_have_nothing_in_common(self):
    runs = {name: {'catch': plotting.Curve(x, 60 * x, x)} for name, x in (
        ('a', np.arange(5.)), ('b', np.arange(5.)), ('c', 5 + np.arange(5.)))}
    for number in range(2):
      for part in plotting.band([r['catch'] for r in runs.values()], number, 1):
        self.assertEmpty(part)
    figure = plotting.draw(runs, 1, bands={'all': ('a', 'b', 'c')})
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    self.assertContainsSubset('abc', labels)
    self.assertNotIn('all', labels)

  def test_a_short_run_does_not_cut_a_band(self):
    x = np.arange(200.)
    curves = {name: {'catch': plotting.Curve(x[:n], x[:n], x[:n])}
              for name, n in (('a', 200), ('b', 200), ('c', 100))}
    figure = plotting.draw(curves, 1, bands={'all': ('a', 'b', 'c')})
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    self.assertEqual(lines['a'].get_xdata()[-1], 199)
    self.assertNotIn('all', lines)

  def test_a_band_over_minutes_of_a_run_that_went_on(self):
    x = np.array([0., 1, 2, 3])
    curves = [plotting.Curve(x, np.array([0., 120, 90, 240]), x)] * 3
    grid, _, middle, _ = plotting.band(curves, 1, 1)
    np.testing.assert_allclose(
        middle, np.interp(grid, [0, 2, 2, 4], [0, 1, 2, 3]))

  def test_two_seeds_are_two_curves(self):
    logdirs = [self._logdir([(100, 1, 'catch', 1)], f'run{i}')
               for i in range(2)]
    for seed, logdir in enumerate(logdirs):
      config_lib.Config(logdir=logdir, seed=seed).save()
    self.assertEmpty(_seeds_of_one(dict(zip('ab', logdirs))))

  def test_curves_and_published_scores(self):
    pong = plotting.Curve(*np.array([[4e6, 8e6], [60., 120.], [-20., 4.]]))
    other = plotting.Curve(*np.array([[2e6], [30.], [5.]]))
    figure = plotting.draw({'a': {'ALE/Pong-v5': pong, 'catch': other},
                            'b': {'catch': other}}, num_episodes=2)
    frames, minutes, catch_frames, _ = figure.axes
    for axis, x in ((frames, [4e6, 8e6]), (minutes, [1, 2])):
      lines = {line.get_label(): line for line in axis.get_lines()}
      np.testing.assert_allclose(lines['a'].get_xdata(), x)
      np.testing.assert_allclose(lines['a'].get_ydata(), [-20, -8])
      self.assertNotIn('b', lines)
      for label, score in (
          ('human 14.60', 14.6), ('random -20.70', -20.7),
          ('IMPALA shallow 20.40', 20.4), ('IMPALA deep 20.98', 20.98),
          ('IMPALA multi-task 8.58', 8.58)):
        self.assertEqual(list(lines[label].get_ydata()), [score, score])
      np.testing.assert_allclose(  # The episodes themselves.
          axis.get_lines()[0].get_ydata(), [-20, 4])
    self.assertEqual([text.get_text() for text in
                      figure.axes[3].get_legend().get_texts()], ['a', 'b'])
    self.assertEqual(catch_frames.get_title(loc='left'), 'catch')
    self.assertEqual(frames.xaxis.get_major_formatter()(4e6), '4 M')
    # Not 800 m for 0.8 minutes.
    self.assertNotIn(
        'EngFormatter', type(minutes.xaxis.get_major_formatter()).__name__)

  def test_many_episodes_are_few_dots_below_the_lines(self):
    def drawn(num_episodes):
      curve = plotting.Curve(*np.arange(3 * num_episodes).reshape(3, -1))
      dots, line = plotting.draw(
          {'a': {'unknown': curve}}, num_episodes=1).axes[0].get_lines()
      self.assertLess(dots.get_zorder(), line.get_zorder())
      self.assertLen(line.get_xdata(), num_episodes)
      return len(range(0, num_episodes, dots.get_markevery()))

    self.assertEqual(
        [drawn(n) for n in (1, 2000, 2001, 200_000)], [1, 2000, 1001, 2000])

  def test_evaluations(self):
    logdir = self._logdir([(100, 60, 'catch', 1), (200, 120, 'catch', -1)])
    self.assertEmpty(plotting.read_evaluations(logdir, ['catch']))
    evaluations.start(logdir, 0)
    for frames, returns in ((110, (1., -1., 1., 0.)), (210, (1., 1.))):
      evaluations.append(logdir, evaluations.Evaluation(
          frames, 1, 0.6 * frames, returns))
    curves = plotting.read_curves(logdir)
    found = plotting.read_evaluations(logdir, curves)
    np.testing.assert_allclose(
        found['catch'], [[110, 210], [66, 126], [0.25, 1]])
    figure = plotting.draw({'a': curves, 'b': curves}, 1, {'b': found})
    self.assertLen(figure.axes, 2)
    for axis, x in zip(figure.axes, ([110, 210], [1.1, 2.1])):
      lines = {line.get_label(): line for line in axis.get_lines()}
      line = lines['b, evaluations']
      np.testing.assert_allclose(line.get_xdata(), x)
      np.testing.assert_allclose(line.get_ydata(), [0.25, 1])
      self.assertEqual(line.get_color(), lines['b'].get_color())
      self.assertNotIn('a, evaluations', lines)
    # With several levels, the mean has a panel of its own.
    two = curves | {'memory': curves['catch']}
    found = plotting.read_evaluations(logdir, two)
    figure = plotting.draw({'a': two}, 1, {'a': found})
    self.assertEqual(
        [axis.get_title(loc='left') for axis in figure.axes[::2]],
        ['catch', 'memory', 'mean over 2 levels'])
    code, stdout, stderr = self._main(logdir=logdir)
    self.assertEqual((code, stderr), (0, ''), stdout)

  def test_evaluations_of_levels_without_an_episode(self):
    # The training plays two levels; of one, no episode is over.
    logdir = self._logdir([(100, 60, 'catch', 1)])
    config_lib.Config(logdir=logdir, level_name='catch,memory',
                      num_actors=2).save()
    evaluations.start(logdir, 0)
    evaluations.append(logdir, evaluations.Evaluation(110, 1, 66, (1., -1.)))
    with mock.patch.object(plotting, 'draw', wraps=plotting.draw) as drawn:
      self.assertEqual(self._main(logdir=logdir)[0], 0)
    found = drawn.call_args.args[2]['run']
    self.assertEqual(list(found), ['mean over 2 levels'])

  def test_scores_far_away_do_not_press_curves_flat(self):
    curve = plotting.Curve(*np.array([[4e6, 8e6], [60., 120.], [2., 22.]]))
    figure = plotting.draw({'a': {'ALE/Breakout-v5': curve}}, num_episodes=1)
    for axis in figure.axes:
      lines = {line.get_label(): line for line in axis.get_lines()}
      self.assertEqual(list(lines['human 30.50'].get_ydata()), [30.5, 30.5])
      self.assertEmpty(
          lines['IMPALA deep 787.34, off the scale'].get_ydata())
      self.assertLess(axis.get_ylim()[1], 50)
    # Returns that are all the same have a scale, too.
    curve = plotting.Curve(*np.array([[4e6, 8e6], [60., 120.], [31., 31.]]))
    figure = plotting.draw({'a': {'ALE/Breakout-v5': curve}}, num_episodes=1)
    self.assertIn('human 30.50', [
        line.get_label() for line in figure.axes[0].get_lines()])

  @parameterized.parameters((1, 1, 2), (3, 3, 2), (4, 2, 4), (57, 15, 8))
  @pytest.mark.slow
  def test_layout(self, num_levels, num_rows, num_columns):
    curve = plotting.Curve(*np.ones([3, 1]))
    levels = atari57.LEVELS[:num_levels]
    figure = plotting.draw({'a': dict.fromkeys(levels, curve)}, 1)
    grid = figure.axes[0].get_gridspec()
    self.assertEqual((grid.nrows, grid.ncols), (num_rows, num_columns))
    visible = [axis for axis in figure.axes if axis.get_visible()]
    self.assertLen(visible, 2 * num_levels)
    self.assertEqual([a.get_title(loc='left') for a in visible[::2]],
                     list(levels))

  def test_program(self):
    one = self._logdir([(100, 1, 'catch', 1)], 'one')
    two = self._logdir([(100, 1, 'catch', 1)], 'two')
    for logdir, name in ((one, 'learning_curves.png'),
                         (f'{one}/, {two}', 'learning_curves_compared.png')):
      code, stdout, _ = self._main(logdir=logdir)
      path = os.path.join(one, name)
      self.assertEqual(code, 0)
      self.assertTrue(
          os.path.samefile(stdout[len('Wrote '):-len('.\n')], path))
      self.assertGreater(np.ptp(image.imread(path)), 0)
    self.assertEqual(os.listdir(two), ['episodes.csv'])

    path = os.path.join(two, 'curves.png')
    self.assertEqual(self._main(logdir=one, plot_file=path)[:2],
                     (0, f'Wrote {path}.\n'))
    self.assertGreater(np.ptp(image.imread(path)), 0)

  def test_directories_named_like_patterns(self):
    one = self._logdir([(100, 1, 'catch', 1)], 'a[b]*?')
    two = self._logdir([(100, 1, 'catch', 1)], 'a*')
    for logdir, name in ((one, 'learning_curves.png'),
                         (f'{one},{two}', 'learning_curves_compared.png')):
      path = os.path.join(one, name)
      self.assertEqual(self._main(logdir=logdir)[:2], (0, f'Wrote {path}.\n'))
      self.assertGreater(np.ptp(image.imread(path)), 0)

  @parameterized.parameters(
      ('a', 'a.png'), ('a.', 'a.png'), ('a.b/c', 'a.b/c.png'),
      ('a.PNG', 'a.PNG'), ('a.svg', 'a.svg'), ('.png', '.png.png'),
      ('a.b', 'a.b/learning_curves.png'), ('a.b/', 'a.b/learning_curves.png'))
  def test_wrote_what_it_says(self, name, written):
    logdir = self._logdir([(100, 1, 'catch', 1)])
    out = self.create_tempdir().full_path
    os.mkdir(os.path.join(out, 'a.b'))
    self.assertEqual(
        self._main(logdir=logdir, plot_file=os.path.join(out, name))[:2],
        (0, f'Wrote {os.path.join(out, written)}.\n'))
    self.assertTrue(os.path.isfile(os.path.join(out, written)))

  def test_an_error_leaves_the_earlier_picture(self):
    logdir = self._logdir([(100, 1, 'catch', 1)])
    self._main(logdir=logdir)
    path = os.path.join(logdir, 'learning_curves.png')
    earlier = image.imread(path)

    def save(figure, f, **unused):
      f.write(b'half a picture')
      raise OSError(errno.ENOSPC, 'No space left on device')

    with mock.patch.object(figure_lib.Figure, 'savefig', save):
      code, _, stderr = self._main(logdir=logdir)
    self.assertEqual((code, stderr), (
        2, f'scalable_agent: The picture {path} cannot be written: No space '
        'left on device.\n'))
    np.testing.assert_array_equal(image.imread(path), earlier)
    self.assertCountEqual(
        os.listdir(logdir), ['episodes.csv', 'learning_curves.png'])

  def test_two_programs_draw_one_picture(self):
    path = self.create_tempdir().full_path + '/a.png'

    def save(figure, f, **unused):
      f.write(b'one')
      with mock.patch.object(os, 'getpid', return_value=1), \
          mock.patch.object(figure, 'savefig', lambda f, **unused: f.write(
              b'two')):
        plotting._save(figure, path)

    with mock.patch.object(figure_lib.Figure, 'savefig', save):
      plotting._save(figure_lib.Figure(), path)
    with open(path, encoding='utf-8') as f:
      self.assertEqual(f.read(), 'one')
    self.assertEqual(os.listdir(os.path.dirname(path)), ['a.png'])

  def test_a_comparison_does_not_replace_the_picture_of_a_run(self):
    one = self._logdir([(100, 1, 'catch', 1)], 'one')
    two = self._logdir([(100, 1, 'catch', 1)], 'two')
    path = os.path.join(one, 'learning_curves.png')
    self._main(logdir=one)
    alone = image.imread(path)
    self._main(logdir=f'{one},{two}')
    np.testing.assert_array_equal(image.imread(path), alone)

  def test_labels(self):
    for logdirs, labels in (
        (['/x/a', 'b/'], ['a', 'b']), (['x/a', 'y/a'], ['x/a', 'y/a']),
        (['/x/s/l/seed1', '/x/s/m/seed1'], ['l/seed1', 'm/seed1']),
        (['a', 'a'], ['a', 'a']), (['/x/a', '/a'], ['x/a', 'a']),
        (['/x/_a', '/x/b'], [' _a', 'b'])):
      self.assertEqual(comparing.labels(logdirs), labels)

  def test_errors_are_one_line(self):
    good = self._logdir([(100, 1, 'catch', 1)])
    empty = self._logdir([])
    for settings, text in (
        (dict(logdir=f'{good},/nowhere'), '--logdir=/nowhere has no curve'),
        (dict(logdir=empty), 'no episode is finished yet'),
        (dict(logdir=' , '), '--logdir= ,  must name a directory'),
        (dict(logdir=good, plot_file='/nowhere/a.png'),
         'The picture /nowhere/a.png cannot be written: No such file'),
        (dict(logdir=good, plot_file=good + '/a.txt'),
         'cannot be written: Format'),
        (dict(logdir=good, plot_num_episodes=0), 'must be positive')):
      code, _, stderr = self._main(**settings)
      self.assertEqual(code, 2)
      self.assertIn(text, stderr)
      self.assertEqual(stderr.count('\n'), 1, stderr)
    self.assertEqual(os.listdir(good), ['episodes.csv'])

  def test_without_matplotlib(self):
    curve = plotting.Curve(*np.ones([3, 1]))
    with mock.patch.dict(sys.modules, {'matplotlib': None}):
      with self.assertRaisesRegex(errors.ConfigError,
                                  r'pip install "scalable_agent\[plot\]"'):
        plotting.draw({'a': {'catch': curve}}, 1)


# See `mutations.py`.
MUTATIONS = (
    dict(file='scores/plotting',
         catches='test_statistics_of_another_comparison_do_not_stay', rows=(
        ('an old picture stays', 'os.remove(paths[1])', 'pass'),
    )),
    dict(file='scores/statistics_plot',
         catches='test_statistics_need_the_same_levels', rows=(
        ('groups of other levels', '(tuple(group.scores), ', '('),
    )),
    dict(file='scores/statistics_plot',
         catches='test_reasons_for_no_statistics', rows=(
        ('no reason', 'print(remark)', 'pass'),
    )),
    dict(file='scores/statistics_plot',
         catches='test_omitted_runs_do_not_shorten_the_statistics', rows=(
        ('omitted runs end the range',
         'for g in ends if g.name in names', 'for g in ends'),
    )),
    dict(file='scores/plotting', catches='test_a_short_run_does_not_cut_a_band',
         rows=(
        ('a short run cuts a band', '_MIN_COMMON_RANGE = .9',
         '_MIN_COMMON_RANGE = 0.'),
    )),
    dict(file='scores/plotting', catches='test_seeds_of_one_are_a_band', rows=(
        ('bands over suites', 'key = groups[label], groups_lib.key(config)',
         "key = '', groups_lib.key(config)"),
        ('a seed may be there twice',
         'len(set(band.values())) == len(band)', 'len(band)'),
    )),
    dict(file='scores/comparing', catches='test_labels', rows=(
        ('names of directories alone', 'part[-size:]', 'part[-1:]'),
    )),
    dict(file='scores/comparing', catches='test_wrote_what_it_says', rows=(
        ('a directory is a name', 'os.path.isdir(path) or', ''),
        ('a dot stays', 'path.rstrip(".")', 'path'),
    )),
    dict(file='scores/plotting',
         catches='test_an_error_leaves_the_earlier_picture', rows=(
        ('pictures are not written whole',
         "files.whole(path, f'{path}.{os.getpid()}.tmp')", "open(path, 'wb')"),
    )),
    dict(file='scores/plotting', catches='test_two_programs_draw_one_picture',
         rows=(
        ('one temporary name', '.{os.getpid()}.tmp', '.tmp'),
    )),
    dict(file='settings/files', catches='test_errors_are_one_line', rows=(
        ('half a file stays', 'except BaseException:', 'except OSError:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
