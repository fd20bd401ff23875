# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of benchmarks/reproduction.py and reproduction_reference.py."""

import json
import pathlib
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / 'benchmarks'))
import reproduction
import reproduction_reference

_HEAD = ('num_env_frames,train_time_s,level_name,episode_return,'
         'num_agent_steps,episode_frames\n')


class ReproductionTest(parameterized.TestCase):

  def _directory(self, *episodes):
    """Returns a log directory with these frames (millions), times, returns."""
    directory = pathlib.Path(self.create_tempdir().full_path)
    (directory / 'episodes.csv').write_text(_HEAD + ''.join(
        f'{round(frames * 1e6)},{time_s},ALE/Pong-v5,{value},100,400\n'
        for frames, time_s, value in episodes))
    return directory

  @parameterized.parameters(
      ((.5, 1.2, 1.7, 2.5), {1: 0, 2: 1.5}),
      # Resumed at 1.1 million frames; the window to 2 million has a part only.
      ((1.2, 1.7, 2.5, 2.6, 3.1), {3: 2.5}),
      ((1.2,), {}))
  def test_points_are_means_of_whole_windows(self, frames, expected):
    points = reproduction.curve(self._directory(
        *((frame, 1, i) for i, frame in enumerate(frames))))
    self.assertEqual(
        {end // 10 ** 6: mean for end, mean, _ in points}, expected)

  def test_the_last_window_of_a_tested_run_is_whole(self):
    # The last episode ends before the end of the run.
    directory = self._directory((.5, 1, 1), (1.9, 1, 3))
    self.assertLen(reproduction.curve(directory), 1)
    self._test(directory, 2_000_000)
    self.assertEqual(reproduction.curve(directory),
                     [(1_000_000, 1, 1), (2_000_000, 3, 1)])

  def _test(self, directory, frames):
    (directory / f'scores-{frames}.json').write_text(json.dumps({'agents': [{
        'num_env_frames': frames, 'settings': {'test_greedy': False},
        'levels': [{'interval': [1, 3], 'mean': 2, 'returns': [1, 3],
                    'human_normalized_percent': 50}]}]}))

  @parameterized.parameters(
      (30, 1), (51, 2), (300_000, 10_000), (3_000_000, 100_000),
      (25_000_001, 1_000_000), (20_000_000, 500_000))
  def test_windows_are_round_and_about_a_fiftieth(self, frames, expected):
    self.assertEqual(reproduction_reference.window_frames(frames), expected)

  def test_a_run_of_the_reference_replaces_its_own_rows_only(self):
    of_run = lambda seed: {'level': 'memory', 'network': 'mlp + LSTM',
                           'batch_size': '2', 'seed': seed}
    out = pathlib.Path(self.create_tempdir().full_path)
    with (mock.patch.object(reproduction_reference, '_FILE', out / 'a.csv'),
          mock.patch.object(reproduction_reference, '_PICTURE', out / 'a.png')):
      for seed, value in (('1', .1), ('2', .2), ('1', .3)):
        directory = self._directory((.0004, 1, value), (.1, 2, value))
        with (mock.patch.object(reproduction_reference, 'key',
                                return_value=of_run(seed)),
              mock.patch.object(sys, 'argv', ['', str(directory)])):
          reproduction_reference.main()
    self.assertEqual((out / 'a.csv').read_text().splitlines()[1:], [
        'memory,mlp + LSTM,2,2,2000,0.200,1',
        'memory,mlp + LSTM,2,2,100000,0.200,1',
        'memory,mlp + LSTM,2,1,2000,0.300,1',
        'memory,mlp + LSTM,2,1,100000,0.300,1'])
    self.assertGreater((out / 'a.png').stat().st_size, 1000)

  def test_a_test_has_the_time_of_its_own_frames(self):
    directory = self._directory((1, 10, 0), (2, 20, 0), (3, 30, 0))
    for frames in 1_000_001, 2_500_000:
      self._test(directory, frames)
    rows = reproduction.tests(directory)
    self.assertEqual([row['train_time_s'] for row in rows], ['10', '20'])
    self.assertEqual(rows[0]['mean_return'], '2.00')


if __name__ == '__main__':
  absltest.main()
