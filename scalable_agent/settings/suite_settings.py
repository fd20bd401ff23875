# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of suites: levels x seeds by one command."""

import dataclasses

from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting

# Settings of a suite itself; the runs of a suite get all other flags.
OF_SUITES = ('mode', 'suite', 'seeds', 'jobs', 'logdir', 'debug',
             'plot_num_episodes')
_IN_SUITES = Needs('mode', ('suite',))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SuiteSettings(Section):
  """Suites: training runs of several levels and seeds, and their report."""
  suite: str = setting(
      'toys',
      'Levels to train on, each with its recipe. toys: catch, memory, pattern, '
      'target. minatar: five games. atari5, atari57: games with the recipe of '
      'the paper. atari100k: 26 games, 400,000 frames, DDQN. mujoco: five '
      'robots with SAC. dm_control: 18 tasks with MPO. dmlab30: one agent for '
      'each level. All other flags are for each run.',
      choices=('toys', 'minatar', 'atari5', 'atari57', 'atari100k', 'mujoco',
               'dm_control', 'dmlab30'),
      needs=_IN_SUITES, unreported=True, varies=True)
  seeds: int = setting(
      3, 'Training runs of each level, with the seeds 1, 2, ...', POSITIVE,
      COUNT, needs=_IN_SUITES, unreported=True, varies=True)
  jobs: int = setting(
      1, 'Training runs at a time.', POSITIVE, COUNT, needs=_IN_SUITES,
      unreported=True, varies=True)
