# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Published scores of DQN, DDPG, TD3 and SAC, after how many steps.

They come from papers and from the documents of other programs. No two sources
measure alike: some report returns while training, with exploration, others
those of the policy without it, or the best of a training. Each score says so.
"""

import re
from typing import NamedTuple

from scalable_agent.scores import data


class Score(NamedTuple):
  """A published score.

  Attributes:
    algorithm: as the source names it.
    environment: as the source names it.
    num_agent_steps: length of the training in agent steps, not frames, unless
      `protocol` says otherwise.
    mean: the mean return.
    std: a standard deviation; `protocol` says of what. None if there is none.
    protocol: how it was measured.
    source: where it was published.
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
               float(row['mean_return']), data.number(row['std']),
               row['protocol'], row['source'])


_ROWS = data.read('off_policy_scores.csv')
# All scores, in the order of their sources; also those of algorithms that are
# not in this project, and pass marks of tests.
SCORES: tuple[Score, ...] = tuple(map(_score, _ROWS))
# Only scores of training runs, by (`--algorithm`, task).
_BY_TASK: dict[tuple[str, str], list[Score]] = {}


def task_of(environment: str) -> str:
  """Returns the name of an environment without its version and its protocol.

  It is `Pong` for ALE/Pong-v5, PongNoFrameskip-v4 and "Pong sticky 0.25".
  """
  name = environment.rpartition(':')[2].removeprefix('ALE/')
  name = name.replace('dm_control/', 'dm_control ')
  name = name.replace('ball_in_cup', 'cup')
  return re.sub(r'(NoFrameskip)?-v\d+.*| sticky.*', '', name)


for _row, _of_row in zip(_ROWS, SCORES):
  _BY_TASK.setdefault(
      (_row['family'], task_of(_of_row.environment)), []).append(_of_row)


def beside(algorithm: str, level: str, num_agent_steps: int) -> list[Score]:
  """Returns the scores to compare an agent with, those of few steps first.

  Of each learning curve these are the nearest one that has at least as many
  steps as the agent, and the last one.

  Args:
    algorithm: as in `--algorithm`.
    level: as in `--level_name`. The version of the environment is ignored.
    num_agent_steps: length of the agent's training in agent steps.
  """
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
