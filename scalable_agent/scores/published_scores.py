# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Published scores of the algorithms, by number of training steps.

The scores come from papers and from the documentation of other programs. No two
sources measure alike: some report returns during training, with exploration,
some returns without exploration, some the best of a training, see
`Score.protocol`.
"""

import re
from typing import NamedTuple

from scalable_agent.scores import data
from scalable_agent.scores import dmlab30


class Score(NamedTuple):
  """A published score.

  Attributes:
    algorithm: name of the algorithm in the source.
    environment: name of the environment: the source's, or in learning curves
      this project's.
    num_agent_steps: length of the training in agent steps, not frames, unless
      `protocol` says otherwise.
    mean: the mean return.
    std: the standard deviation defined in `protocol`; None if unpublished.
    protocol: how the score was measured.
    source: the publication.
  """
  algorithm: str
  environment: str
  num_agent_steps: int
  mean: float
  std: float | None
  protocol: str
  source: str


def _score(row: dict[str, str]) -> Score:
  return Score(row['algorithm'], row['environment'], int(row['agent_steps']),
               float(row['mean_return']),
               float(row['std']) if row['std'] else None,
               row['protocol'], row['source'])


def _curves() -> list[dict[str, str]]:
  sources = {row['file']: row for row in data.read(
      'learning_curves_sources.csv')}
  return [row | sources[row['file']] for row in data.read(
      'learning_curves.csv')]


_ROWS = data.read('off_policy_scores.csv') + _curves()
# All scores, in the order of their sources, including scores of algorithms
# outside this project, and pass marks of tests.
SCORES: tuple[Score, ...] = tuple(map(_score, _ROWS))
# Prefixes of levels that are the published environments.
_ORIGINALS = ('', 'ale_py', 'envpool', 'gymnasium', 'gymnasium_robotics',
              'panda_gym', 'shimmy')
# Only scores of training runs, by (`--algorithm`, task).
_BY_TASK: dict[tuple[str, str], list[Score]] = {}


def task_of(environment: str) -> str:
  """Returns the name of an environment without version and protocol.

  ALE/Pong-v5, PongNoFrameskip-v4 and "Pong sticky 0.25" all give `Pong`. A
  training level of DMLab-30 gives its test level, which has published scores.
  """
  environment = dmlab30.LEVEL_MAPPING.get(environment, environment)
  name = environment.rpartition(':')[2].removeprefix('ALE/')
  name = name.replace('dm_control/', 'dm_control ')
  name = name.replace('ball_in_cup', 'cup')
  return re.sub(r'(NoFrameskip)?-v\d+.*| sticky.*', '', name)


for _row, _of_row in zip(_ROWS, SCORES):
  _BY_TASK.setdefault(
      (_row['family'], task_of(_of_row.environment)), []).append(_of_row)


def comparable_scores(algorithm: str, level: str,
                      num_agent_steps: int) -> list[Score]:
  """Returns the scores to compare an agent with, ordered by training steps.

  Each published learning curve adds its last score, and its first score with at
  least `num_agent_steps`. The version of the environment is ignored. Levels
  `module:id` of other packages may share a name with a published environment,
  and have no scores.
  """
  if level.rpartition(':')[0] not in _ORIGINALS:
    return []
  curves: dict[tuple[str, ...], list[Score]] = {}
  for score in _BY_TASK.get((algorithm, task_of(level)), []):
    key = (score.algorithm, score.environment, score.protocol, score.source)
    curves.setdefault(key, []).append(score)
  found: list[Score] = []
  steps = lambda score: score.num_agent_steps
  for curve in curves.values():
    later = [s for s in curve if s.num_agent_steps >= num_agent_steps]
    last = max(curve, key=steps)
    found += dict.fromkeys([min(later, key=steps, default=last), last])
  return sorted(found, key=steps)
