# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the panel that shows progress on a terminal."""

import contextlib
import io
import os
from unittest import mock

from absl.testing import absltest
import rich.console
from scalable_agent.runs import metrics
from scalable_agent.runs import panel


def _measured(frames=500, mean_return=1.5):
  return metrics.Measured(frames, 2000, 1234.5, '0:01:00', mean_return, 7, 2.25)


class PanelTest(absltest.TestCase):

  def _panel(self, width=100):
    self.output = io.StringIO()
    return panel.Panel('impala on catch', rich.console.Console(
        file=self.output, force_terminal=True, width=width))

  def test_shows_where_the_run_is(self):
    shown = self._panel()
    shown.update(_measured(), {'learner/wait': .25, 'learner/learn': .75,
                               'actor/write': .001, 'actor/policy': .999},
                 3725.9, '12.50 at 400 frames', '3 of 4 workers')
    text = self.output.getvalue()
    for part in ('impala on catch', '500 of 2,000 (25.0 %)',
                 '1,234 frames/s, ETA 0:01:00', '1.50 (7 episodes)',
                 '2.2 updates', 'learn 75 %, wait 25 %', 'policy 100 %',
                 '3 of 4 workers', '1:02:05', '12.50 at 400 frames'):
      self.assertIn(part, text)
    self.assertNotIn('write', text)
    self.assertNotIn('▁', text)  # One point is no curve.
    shown.update(_measured(700, 2.5), {}, 1.)
    self.assertIn('▁█  1.5 to 2.5', self.output.getvalue())
    # The cursor is shown again after it was hidden.
    self.assertGreater(self.output.getvalue().rfind('\x1b[?25h'),
                       self.output.getvalue().rfind('\x1b[?25l'))
    shown.close()
    shown.close()

  def test_stages_and_roles_keep_their_order(self):
    shares = {'learner/wait': .3, 'learner/learn': .7, 'actor/policy': 1.}
    rows = panel._by_role(shares)
    self.assertEqual(list(rows.items()), [
        ('actor', 'policy 100 %'), ('learner', 'learn 70 %, wait 30 %')])
    self.assertEqual(
        list(panel._by_role({'learner/learn': .2, 'actor/policy': 1.,
                             'learner/wait': .8})),
        list(rows))
    self.assertEqual(
        panel._by_role({'learner/learn': .2, 'learner/wait': .8})['learner'],
        'learn 20 %, wait 80 %')

  def test_what_is_printed_comes_above(self):
    shown = self._panel()
    with contextlib.redirect_stdout(self.output):
      shown.update(_measured(), {}, 1.)
      print('Evaluation.')
      shown.close()
    text = self.output.getvalue()
    self.assertLess(text.index('Evaluation.'), text.rindex('impala on catch'))

  def test_returns_of_a_long_run(self):
    shown = self._panel()
    for i in range(1000):
      shown._remember(float(i))
    shown._remember(float('nan'))
    self.assertBetween(len(shown._returns), 30, 60)
    steps = {b - a for a, b in zip(shown._returns, shown._returns[1:])}
    self.assertLen(steps, 1)
    self.assertGreater(shown._returns[-1], 960)

  def test_sparkline(self):
    self.assertEqual(panel.sparkline([0., 7., 3.5, 1.]), '▁█▅▂')
    self.assertEqual(panel.sparkline([2., 2.]), '▁▁')

  def test_only_on_terminals(self):
    for color in {}, {'FORCE_COLOR': '1', 'TERM': 'xterm'}:  # Notebooks.
      with contextlib.redirect_stdout(io.StringIO()), (
          mock.patch.dict(os.environ, color)):
        self.assertIsNone(panel.make('title'))

  def test_not_without_its_characters(self):
    for encoding, is_there in ('utf-8', True), ('latin-1', False):
      file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
      with contextlib.redirect_stdout(file), (
          mock.patch.object(file, 'isatty', return_value=True)), (
              mock.patch.dict(os.environ, {'TERM': 'xterm'})):
        self.assertEqual(panel.make('title') is not None, is_there)


MUTATIONS = (
    dict(file='runs/panel', catches='test_only_on_terminals', rows=(
        ('notebooks are terminals', 'if not sys.stdout.isatty():', 'if False:'),
    )),
)


if __name__ == '__main__':
  absltest.main()
