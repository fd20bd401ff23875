# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trained agents that come with the package: `--logdir=zoo:NAME`.

The folder of an agent has files of a log directory (`settings.json`,
`spec.json`, `agent.json`), the weights as float16 in place of checkpoints, and
`card.json`. `benchmarks/zoo.py` makes such a folder from a log directory.
"""

import contextlib
import dataclasses
import filecmp
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from scalable_agent import errors
from scalable_agent.scores import markdown
from scalable_agent.settings import files

if TYPE_CHECKING:
  from scalable_agent.settings import config as config_lib

PREFIX = 'zoo:'
CARD = 'card.json'
_DIRECTORY = os.path.dirname(__file__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
  """How an agent was trained, and how well the agent plays.

  Attributes:
    level: the level of training and evaluation.
    algorithm: the algorithm.
    num_env_frames: environment frames of the training.
    command: the command of the training.
    minutes: time of the training.
    training: processor, and programs that ran beside the training.
    mean: mean return of the evaluation, with the weights as float16.
    low: lower end of the 95 % bootstrap interval of `mean`, over episodes.
    high: upper end of this interval.
    greedy: whether the evaluation takes the best known actions.
    seed: the seed of the evaluation.
    returns: the unclipped return of each episode of the evaluation.
    commit: the commit of the evaluation.
    versions: versions of packages at the evaluation, by name.
  """
  level: str
  algorithm: str
  num_env_frames: int
  command: str
  minutes: float
  training: str
  mean: float
  low: float
  high: float
  greedy: bool
  seed: int
  returns: tuple[float, ...]
  commit: str
  versions: dict[str, str]


def names() -> list[str]:
  """Returns the names of all agents."""
  return sorted(name for name in os.listdir(_DIRECTORY) if os.path.exists(
      os.path.join(_DIRECTORY, name, CARD)))


def folder(logdir: str) -> str:
  """Returns the folder of `zoo:NAME`; returns any other directory unchanged.

  Raises ConfigError for an unknown name.
  """
  if not logdir.startswith(PREFIX):
    return logdir
  name = logdir.removeprefix(PREFIX)
  if name not in names():
    raise errors.ConfigError(
        f'There is no agent {name!r} for {PREFIX}NAME: '
        f'{errors.nearest(name, names())} --mode=zoo lists all agents.')
  return os.path.join(_DIRECTORY, name)


def copy(logdir: str) -> str:
  """Copies `zoo:NAME` to `zoo_NAME`; returns any other directory unchanged.

  Tests, videos and exports write to this copy in the current directory. Raises
  ConfigError for an unknown name, or if the copy cannot be written.
  """
  source = folder(logdir)
  if source == logdir:
    return logdir
  target = logdir.replace(':', '_')
  if os.path.exists(target) and not os.path.exists(os.path.join(target, CARD)):
    raise errors.ConfigError(
        f'{target} is not a copy of {logdir}: move {target} away, or start the '
        'program in another directory.')
  try:
    with tempfile.TemporaryDirectory(dir='.', prefix=f'{target}.') as parent:
      new = os.path.join(parent, target)
      os.mkdir(new)
      for file in os.listdir(source):  # A package may be read-only.
        shutil.copyfile(os.path.join(source, file), os.path.join(new, file))
      _move(new, target)
  except OSError as e:
    raise errors.ConfigError(
        f'{target} cannot be written: {errors.reason(e)}. Start the program in '
        'a directory that you may write to.') from e
  print(f'{logdir} is copied to {os.path.abspath(target)}, where all files are '
        'written.', flush=True)
  return target


def _move(new: str, target: str) -> None:
  """Moves a copy to `target`; replaces files that differ, if `target` exists.

  Other programs, which may read `target` meanwhile, see whole files only.
  """
  with contextlib.suppress(OSError):
    os.rename(new, target)  # Fails if there are files in `target`.
    return
  for file in os.listdir(new):
    one, other = os.path.join(new, file), os.path.join(target, file)
    if not os.path.exists(other) or not filecmp.cmp(one, other, shallow=False):
      os.replace(one, other)


def card(name: str) -> Card:
  """Returns the card of an agent."""
  values = files.read_json(os.path.join(folder(PREFIX + name), CARD))
  return Card(**{**values, 'returns': tuple(values['returns'])})


def run(config: 'config_lib.Config') -> int:
  """Prints a table of all agents; returns the exit code of the program."""
  del config
  rows = [('--logdir', 'level', 'algorithm', 'mean return', '95 % interval',
           'games', 'actions', 'frames', 'kB')]
  for name in names():
    one = card(name)
    path = folder(PREFIX + name)
    size = sum(entry.stat().st_size for entry in os.scandir(path))
    rows.append((
        PREFIX + name, one.level, one.algorithm, f'{one.mean:,.2f}',
        markdown.interval((one.low, one.high), 2), str(len(one.returns)),
        'greedy' if one.greedy else 'sampled', f'{one.num_env_frames:,}',
        f'{size / 1e3:,.0f}'))
  print(markdown.table(rows))
  print(f'\nThe card of an agent: {os.path.join(_DIRECTORY, "NAME", CARD)}\n'
        'To see an agent play: --mode=video --logdir=zoo:NAME', flush=True)
  return 0
