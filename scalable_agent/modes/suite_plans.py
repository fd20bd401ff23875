# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The levels and flags of the suites of `--mode=suite`."""

from collections.abc import Callable
import functools

from scalable_agent.scores import atari57
from scalable_agent.scores import dmlab30

# Games that predict the median over Atari-57 best (arXiv 2210.02019).
_ATARI5 = ('BattleZone', 'DoubleDunk', 'NameThisGame', 'Phoenix', 'Qbert')
# Kaiser et al. 2019 (arXiv 1903.00374).
_ATARI100K = (
    'Alien', 'Amidar', 'Assault', 'Asterix', 'BankHeist', 'BattleZone',
    'Boxing', 'Breakout', 'ChopperCommand', 'CrazyClimber', 'DemonAttack',
    'Freeway', 'Frostbite', 'Gopher', 'Hero', 'Jamesbond', 'Kangaroo', 'Krull',
    'KungFuMaster', 'MsPacman', 'Pong', 'PrivateEye', 'Qbert', 'RoadRunner',
    'Seaquest', 'UpNDown')
_MINATAR = ('Asterix', 'Breakout', 'Freeway', 'Seaquest', 'SpaceInvaders')
_MUJOCO = ('Ant', 'HalfCheetah', 'Hopper', 'Humanoid', 'Walker2d')
# The tasks with published scores.
_DM_CONTROL = (
    'acrobot-swingup', 'ball_in_cup-catch', 'cartpole-balance',
    'cartpole-balance_sparse', 'cartpole-swingup', 'cartpole-swingup_sparse',
    'cheetah-run', 'finger-spin', 'finger-turn_easy', 'finger-turn_hard',
    'hopper-hop', 'hopper-stand', 'pendulum-swingup', 'reacher-easy',
    'reacher-hard', 'walker-run', 'walker-stand', 'walker-walk')
_MINATAR_FLAGS = (
    '--agent=deep', '--use_lstm=false', '--use_last_action_reward=false',
    '--num_action_repeats=1', '--num_actors=16', '--batch_size=16',
    '--unroll_length=20', '--total_environment_frames=5000000',
    '--optimizer=adam', '--learning_rate=0.0005', '--epsilon=0.00001',
    '--entropy_cost=0.01')

_Plan = dict[str, tuple[str, ...]]


def _with(names: tuple[str, ...], pattern: str, *flags: str) -> _Plan:
  return {pattern.format(name): flags for name in names}


def _toys() -> _Plan:
  return {
      'catch': ('--recipe=catch',), 'memory': ('--recipe=memory',),
      'pattern': ('--recipe=impala_pattern',),
      'target': ('--recipe=appo_target',)}


_PLANS: dict[str, Callable[[], _Plan]] = {
    'toys': _toys,
    'minatar': functools.partial(
        _with, _MINATAR, 'MinAtar/{}-v1', *_MINATAR_FLAGS),
    'atari5': functools.partial(
        _with, _ATARI5, 'ALE/{}-v5', '--recipe=atari_paper'),
    'atari57': functools.partial(
        _with, atari57.LEVELS, '{}', '--recipe=atari_paper'),
    'atari100k': functools.partial(
        _with, _ATARI100K, 'ALE/{}-v5', '--recipe=ddqn_pong',
        '--total_environment_frames=400000'),
    'mujoco': functools.partial(
        _with, _MUJOCO, '{}-v5', '--recipe=sac_half_cheetah',
        '--total_environment_frames=1000000'),
    'dm_control': functools.partial(
        _with, _DM_CONTROL, 'dm_control/{}-v0', '--algorithm=mpo',
        '--num_action_repeats=1', '--total_environment_frames=1000000'),
    'dmlab30': functools.partial(
        _with, dmlab30.levels(is_test=False), '{}',
        '--recipe=dmlab_single_level'),
}


def flags_by_level(suite: str) -> _Plan:
  """Returns the flags of the runs of each level of a suite."""
  return _PLANS[suite]()
