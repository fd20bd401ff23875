# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Names of DeepMind Lab's levels."""

from collections.abc import Iterable
import importlib.util

# The suite of all levels of DMLab-30.
SUITE = 'dmlab30'
# The default level of DeepMind's program.
DEFAULT = 'explore_goal_locations_small'
# Before the name of a level of DMLab-30: Lab's own name of the level.
DMLAB30_PREFIX = 'contributed/dmlab30/'
# Before Lab's own name of any level.
ANY_PREFIX = 'lab/'
# The fifth single task of the paper, which is not in DMLab-30.
OTHER_LEVELS = ('seekavoid_arena_01',)

# DMLab-30: for each level to train on, the level to test on, in the order of
# the paper.
DMLAB30_LEVELS: dict[str, str] = {
    'rooms_collect_good_objects_train': 'rooms_collect_good_objects_test',
    'rooms_exploit_deferred_effects_train':
        'rooms_exploit_deferred_effects_test',
    **{name: name for name in (
        'rooms_select_nonmatching_object', 'rooms_watermaze',
        'rooms_keys_doors_puzzle', 'language_select_described_object',
        'language_select_located_object', 'language_execute_random_task',
        'language_answer_quantitative_question', 'lasertag_one_opponent_small',
        'lasertag_three_opponents_small', 'lasertag_one_opponent_large',
        'lasertag_three_opponents_large', 'natlab_fixed_large_map',
        'natlab_varying_map_regrowth', 'natlab_varying_map_randomized',
        'skymaze_irreversible_path_hard', 'skymaze_irreversible_path_varied',
        'psychlab_arbitrary_visuomotor_mapping',
        'psychlab_continuous_recognition', 'psychlab_sequential_comparison',
        'psychlab_visual_search', 'explore_object_locations_small',
        'explore_object_locations_large', 'explore_obstructed_goals_small',
        'explore_obstructed_goals_large', 'explore_goal_locations_small',
        'explore_goal_locations_large', 'explore_object_rewards_few',
        'explore_object_rewards_many')}}
ALL_DMLAB30_LEVELS = frozenset((*DMLAB30_LEVELS, *DMLAB30_LEVELS.values()))
# The bots of these levels plan their routes until a time of the clock is over,
# so the same seed and actions lead to another episode.
NOT_REPEATED = frozenset(
    name for name in DMLAB30_LEVELS if name.startswith('lasertag_'))


def not_repeated(level_names: Iterable[str]) -> list[str]:
  """Returns the names, also of suites, whose episodes no seed repeats."""
  return [name for name in level_names if name == SUITE or name.removeprefix(
      ANY_PREFIX).removeprefix(DMLAB30_PREFIX) in NOT_REPEATED]


def is_installed() -> bool:
  """Returns whether Python finds the package of DeepMind Lab."""
  return importlib.util.find_spec('deepmind_lab') is not None


def default(mode: str, algorithm: str) -> dict[str, str]:
  """Returns the level of a command that names no level; {} for `Config`'s."""
  is_lab = mode == 'train' and algorithm == 'impala' and is_installed()
  return {'level_name': DEFAULT} if is_lab else {}


def is_level(level_name: str) -> bool:
  """Returns whether a name means a level of DeepMind Lab, or `SUITE`.

  A name with a colon never does: `module:id` is a level of gymnasium.
  """
  return ':' not in level_name and (
      level_name in ALL_DMLAB30_LEVELS or level_name in OTHER_LEVELS
      or level_name == SUITE
      or level_name.startswith((DMLAB30_PREFIX, ANY_PREFIX)))
