# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of reading `episodes.csv`."""

import csv
import os
import random
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent import errors
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.scores import episodes_csv

_HEAD = ','.join(episodes_lib.FIELDS)
_DAMAGE = ('"catch', 'ca"tch', 'catch"', 'catch,', '', 'x' * 200_000, 'ca\0tch',
           '\udcff', 'catch,1\r\n2,3,catch', 'catch\r3,4,catch')


def _line(frames, seconds, level, episode_return):
  return f'{frames},{seconds},{level},{episode_return},9,36'


def _expected(path):
  """Returns the episodes by their definition, from the whole text."""
  with open(path, newline='', encoding='utf-8', errors='replace') as f:
    lines = f.readlines()
  kept = []
  for line in lines[1:]:
    values = [] if len(line) >= csv.field_size_limit() else next(
        csv.reader([line.replace('\0', '')]), [])
    if len(values) != len(episodes_lib.FIELDS):
      continue
    try:
      episode = (values[2], float(values[0]), float(values[1]),
                 float(values[3]))
    except ValueError:
      continue
    if kept and episode[1] < kept[-1][1]:  # The first of the next part.
      kept = [other for other in kept if other[1] <= episode[1]]
      # These frames are repeated: all episodes of the last update.
      while kept and kept[-1][1] == episode[1]:
        kept.pop()
    kept.append(episode)
  return kept


class EpisodesTest(parameterized.TestCase):

  def _write(self, lines, end='\r\n', last_end='\r\n'):
    """Writes lines below a head; returns the log directory."""
    logdir = self.create_tempdir().full_path
    with open(os.path.join(logdir, 'episodes.csv'), 'w', newline='',
              encoding='utf-8', errors='surrogateescape') as f:
      f.write(end.join([_HEAD, *lines]) + last_end)
    return logdir

  def test_values(self):
    logdir = self._write([_line(100, .5, 'a,b', 3).replace('a,b', '"a,b"'),
                          _line(300, 1.5, 'catch', -1.25)])
    self.assertEqual(episodes_csv.read(logdir), [
        ('a,b', 100., .5, 3.), ('catch', 300., 1.5, -1.25)])
    last = episodes_csv.last(logdir)
    self.assertEqual((last.level, last.num_env_frames, last.train_time_s,
                      last.episode_return), ('catch', 300., 1.5, -1.25))

  @parameterized.product(block=(1, 2, 7, 40, 300, 1 << 16), seed=(1, 2),
                         end=('\r\n', '\n', '\r'), last_end=('\r\n', ''))
  def test_damage_and_parts_in_blocks_of_any_size(
      self, block, seed, end, last_end):
    rng = random.Random(seed)
    lines, frames = [], 0
    for i in range(60):
      if i % 20 == 19:  # A kill.
        frames = max(frames - rng.randrange(30), 0)
      level = rng.choice(_DAMAGE) if rng.random() < .2 else 'catch'
      if block < 300:  # Each character is a block of its own.
        level = level[:50]
      lines.append(_line(frames, i, level, rng.random()))
      frames += rng.randrange(1, 9)
    logdir = self._write(lines, end, last_end)
    expected = _expected(os.path.join(logdir, 'episodes.csv'))
    self.assertGreater(len(expected), 20)
    with mock.patch.object(episodes_csv, '_BLOCK_BYTES', block):
      self.assertEqual(episodes_csv.read(logdir), expected)
      self.assertEqual(episodes_csv.last(logdir), expected[-1])

  def test_the_next_part_may_repeat_the_numbers_of_frames(self):
    logdir = self._write([_line(frames, 1, 'catch', i) for i, frames in
                          enumerate((
                              100, 200, 200,
                              # Killed after these; the checkpoint was at 200.
                              250, 250, 300,
                              250, 250, 300))])
    self.assertEqual([e.episode_return for e in episodes_csv.read(logdir)],
                     [0, 1, 2, 6, 7, 8])

  def test_the_last_episode_needs_the_end_of_the_file_only(self):
    logdir = self._write([_line(i, 1, 'catch', i) for i in range(20_000)])
    with mock.patch.object(
        episodes_csv, '_parse', wraps=episodes_csv._parse) as parse:
      self.assertEqual(episodes_csv.last(logdir).num_env_frames, 19_999)
      self.assertEqual(parse.call_count, 1)
      self.assertLen(episodes_csv.read(logdir), 20_000)

  def test_returns_before_a_checkpoint(self):
    logdir = self._write([_line(frames, 1, 'catch', i) for i, frames in
                          enumerate((100, 150, 200, 200, 250, 300, 220))])
    for frames, count, expected in (
        (200, 100, [0, 1, 2, 3]), (200, 3, [1, 2, 3]), (210, 1, [3]),
        (220, 2, [3, 6]), (99, 5, [])):
      self.assertEqual(
          episodes_csv.returns_before(logdir, frames, count), expected)
    self.assertEmpty(episodes_csv.returns_before(f'{logdir}/none', 200, 9))

  def test_returns_before_a_checkpoint_need_the_end_only(self):
    logdir = self._write([_line(i, 1, 'catch', i) for i in range(20_000)])
    with mock.patch.object(
        episodes_csv, '_parse', wraps=episodes_csv._parse) as parse:
      self.assertEqual(
          episodes_csv.returns_before(logdir, 19_990, 2), [19_989, 19_990])
      self.assertEqual(parse.call_count, 11)

  @parameterized.parameters(
      ('episode_return', 'episode_retu\0n'), ('level_name,', 'level_name"'),
      ('num_env_frames,', 'num_env,frames,'), ('num', 'x' * 200_000),
      ('num_env_frames,', 'num"env\rframes,'), ('\r\n', '\r'))
  def test_a_damaged_head_loses_no_line(self, text, damage):
    logdir = self._write([_line(1, .5, 'catch', 1), _line(2, .6, 'catch', 3)])
    path = os.path.join(logdir, 'episodes.csv')
    with open(path, encoding='utf-8', newline='') as f:
      whole = f.read()
    with open(path, 'w', encoding='utf-8', newline='') as f:
      f.write(whole.replace(text, damage, 1))
    self.assertEqual(episodes_csv.read(logdir), [
        ('catch', 1., .5, 1.), ('catch', 2., .6, 3.)])

  @parameterized.parameters('', _HEAD, f'{_HEAD}\r\n', '\r\n', '\0')
  def test_no_episode(self, text):
    logdir = self.create_tempdir().full_path
    with open(os.path.join(logdir, 'episodes.csv'), 'w', newline='',
              encoding='utf-8') as f:
      f.write(text)
    self.assertEqual(episodes_csv.read(logdir), [])
    self.assertIsNone(episodes_csv.last(logdir))

  def test_no_file(self):
    for read in episodes_csv.read, episodes_csv.last:
      with self.assertRaisesRegex(errors.ConfigError, 'has no curve to draw'):
        read(self.create_tempdir().full_path)


MUTATIONS = (
    dict(file='scores/episodes_csv',
         catches='test_returns_before_a_checkpoint', rows=(
             ('returns of a killed part count',
              'if episode.num_env_frames <= num_env_frames)', 'if True)'),
         )),
    dict(file='scores/episodes_csv',
         catches='test_returns_before_a_checkpoint_need_the_end_only',
         rows=(
             ('the whole file for a few returns',
              'itertools.islice(returns, count))[::-1]',
              'returns)[:count][::-1]'),
         )),
    dict(file='scores/episodes_csv',
         catches='test_the_next_part_may_repeat_the_numbers_of_frames', rows=(
             ('an episode of a killed part counts', 'and is_of_killed_part)',
              'and False)'),
         )),
    dict(file='scores/episodes_csv',
         catches='test_damage_and_parts_in_blocks_of_any_size', rows=(
             ('lines cut between blocks', '(f.read(end - begin) + rest)',
              'f.read(end - begin)'),
             ('the first line is lost', 'lines.insert(0, rest)', 'pass'),
             ('lines of any length', 'if len(line) >= csv.field_size_limit():',
              'if False:'),
             ('zeros', ".replace('\\0', '')", ''),
             ('quotes are values', """next(csv.reader([text]), []) if '"' in """
              'text else ', ''),
         )),
    dict(file='scores/episodes_csv',
         catches='test_a_damaged_head_loses_no_line', rows=(
             ('a damaged head counts',
              'if not set(fields) >= set(episodes_lib.FIELDS[:4]):',
              'if False:'),
         )),
    dict(file='scores/episodes_csv',
         catches='test_the_last_episode_needs_the_end_of_the_file_only', rows=(
             ('the whole file', 'return next(_backwards(logdir), None)',
              'return (read(logdir) or [None])[-1]'),
         )),
)


if __name__ == '__main__':
  absltest.main()
