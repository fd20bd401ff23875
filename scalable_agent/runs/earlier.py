# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Moves results that a run must not mix with its own to `earlier-N`."""

from collections.abc import Sequence
import contextlib
import os
import re

from scalable_agent import errors
from scalable_agent.runs import logdirs
from scalable_agent.scores import evaluations
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files
from scalable_agent.settings import flag_texts
from scalable_agent.settings.test_settings import OF_GAMES

_OF_LATER_PART = re.compile(r'settings-[1-9]\d*\.json')


def put_results_aside(logdir: str, names_of_tests: re.Pattern) -> None:
  """Moves the results of a training without a checkpoint; says so.

  Results are the files of tests, evaluations and the best weights, and the
  settings of parts that went on. Raises errors as `_put_aside` does.
  """
  found = [name for name in sorted(os.listdir(logdir))
           if names_of_tests.fullmatch(name) or _OF_LATER_PART.fullmatch(name)]
  _put_aside(logdir, [*found, *_evaluated(logdir)],
             'of an earlier training, which has no checkpoint')


def put_evaluations_aside(config: config_lib.Config) -> None:
  """Moves results that evaluations of `config` must not continue; says so.

  A lucky game must not be the best mean of evaluations of more games, and a
  training in `best` must not lose its checkpoints. Raises errors as
  `_put_aside` does.
  """
  best = os.path.join(config.logdir, 'best')
  if os.path.exists(os.path.join(best, 'episodes.csv')):
    _put_aside(config.logdir, ['best'], 'which was trained further')
    return
  before = None
  with contextlib.suppress(errors.ConfigError):  # A damaged file.
    before = config_lib.trained_with(best)
  changed = [name for name in (*OF_GAMES, 'eval_num_episodes')
             if before and getattr(before, name) != getattr(config, name)]
  if before and changed:
    _put_aside(config.logdir, _evaluated(config.logdir), (
        f'evaluated with {flag_texts.as_flags(before, changed)}; now: '
        f'{flag_texts.as_flags(config, changed)}'))


def _evaluated(logdir: str) -> list[str]:
  """Returns the names of evaluations, and of the weights in `best`.

  `best` is the last to move: there are the settings of the evaluations.
  """
  found = ['evaluations.csv'] if evaluations.read(logdir) else []
  if files.has_checkpoint(os.path.join(logdir, 'best')):
    found.append('best')
  return found


def _put_aside(logdir: str, names: Sequence[str], which: str) -> None:
  """Moves files and directories, in order; prints a line with `which`.

  Raises ConfigError if that is impossible, also while a run uses `best`.
  """
  if not names:
    return
  if 'best' in names:
    with logdirs.locked(os.path.join(logdir, 'best')):
      pass  # Raises an error if a run uses the directory.
  number = 1
  while os.path.exists(aside := os.path.join(logdir, f'earlier-{number}')):
    number += 1
  try:
    os.mkdir(aside)
    for name in names:
      os.rename(os.path.join(logdir, name), os.path.join(aside, name))
  except OSError as e:
    raise errors.ConfigError(
        f'{", ".join(names)} of {logdir}, {which}, cannot be moved to {aside}: '
        f'{e.strerror}. Use another --logdir.') from e
  print(f'Moved to {aside}: {", ".join(names)}, {which}.', flush=True)
