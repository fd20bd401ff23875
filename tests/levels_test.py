# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the names of levels, and of the levels that are played."""

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent.environments import dmlab
from scalable_agent.environments import vizdoom
from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30
from scalable_agent.scores import levels


class LevelNamesTest(parameterized.TestCase):

  @parameterized.parameters(
      ('A, B,C', ['A', 'B', 'C']), (' A ,, ', ['A']), ('', []), (' , ', []),
      ('A,A', ['A', 'A']),
      ('contributed/dmlab30/rooms_watermaze,lab/tests/show_config,'
       'contributed/dmlab30/rooms_watermaz',
       ['rooms_watermaze', 'lab/tests/show_config',
        'contributed/dmlab30/rooms_watermaz']))
  def test_names(self, level_name, expected):
    for is_test in (False, True):
      self.assertEqual(levels.level_names(level_name, is_test), expected)

  def test_suites(self):
    names = levels.level_names('catch, atari57,dmlab30', is_test=False)
    self.assertEqual(names, ['catch', *atari57.LEVELS,
                             *dmlab30.levels(is_test=False)])
    self.assertEqual(levels.level_names('dmlab30', is_test=True),
                     list(dmlab30.levels(is_test=True)))

  @parameterized.parameters(
      (1, ['A']), (2, ['A', 'B']), (3, ['A', 'B']), (4, ['A', 'B', 'C']),
      (9, ['A', 'B', 'C']))
  def test_played(self, num_actors, expected):
    names = ['A', 'B', 'A', 'C']
    self.assertEqual(levels.played(names, num_actors), expected)
    by_definition = {names[i % len(names)] for i in range(num_actors)}
    self.assertEqual(set(expected), by_definition)

  @parameterized.parameters(
      ('atari57', 57, ''), ('A', 4, ''), ('A,A', 1, ''), ('A,B', 3, ''),
      ('A,B', 1, '2 levels, but only 1 environment (--num_actors): played is '
       'A; 1 is not.'),
      ('A,A,B,C', 2, '3 levels, but only 2 environments (--num_actors): played '
       'is A; 2 are not.'),
      ('A,B,C,D', 3, '4 levels, but only 3 environments (--num_actors): played '
       'are A, B, C; 1 is not.'),
      ('atari57', 4, '57 levels, but only 4 environments (--num_actors): '
       'played are ALE/Alien-v5, ALE/Amidar-v5, ALE/Assault-v5 and 1 more; '
       '53 are not.'))
  def test_message(self, level_name, num_actors, expected):
    names = levels.level_names(level_name, is_test=False)
    self.assertEqual(levels.unplayed_message(names, num_actors), expected)

  @parameterized.parameters(
      'ALE/Pong-v5', 'CartPole-v1', 'catch', 'VizdoomBasic-v1', 'vizdoom:x',
      'mine:VizdoomBasic-v1',
      'rooms_watermaze', 'rooms_exploit_deferred_effects_train',
      'seekavoid_arena_01', 'lab/lt_chasm', 'BabyAI-GoToObj-v0',
      'contributed/dmlab30/rooms_watermaz', 'labyrinth-v0',
      'rooms_world:Corridor-v0', 'lab/x:y')
  def test_who_has_a_frame_size(self, level):
    self.assertEqual(levels.has_frame_size(level),
                     dmlab.is_level(level) or vizdoom.is_level(level))


if __name__ == '__main__':
  absltest.main()
