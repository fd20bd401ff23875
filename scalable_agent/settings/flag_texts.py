# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings as flags: in files of flags, and in lines for the user."""

from collections.abc import Collection, Iterable
import contextlib
import dataclasses
import glob
import os
import re
import shlex
from typing import Any

from scalable_agent import errors
from scalable_agent.settings import declare
from scalable_agent.settings import files
from scalable_agent.settings import joined
from scalable_agent.settings import values
from scalable_agent.settings.test_settings import OF_GAMES
from scalable_agent.settings.test_settings import TestSettings

# Name of the file, in the log directory, with the flags of the training.
FILE = 'settings.flags'
# Two have lines of their own, and a permission is for one command.
_NOT_IN_FILES = ('level_name', 'logdir', 'allow_other_task')
_OF_TESTS = frozenset(field.name for field in dataclasses.fields(TestSettings))
_OF_PART = re.compile(r'.*settings-(\d+)\.json')


def as_flags(config: declare.Section, names: Iterable[str]) -> str:
  """Returns settings as flags, such as `--seed=1 --use_lstm=false`."""
  return ' '.join(_flag(name, getattr(config, name)) for name in names)


def of_file(config: joined.Joined) -> str:
  """Returns the text of a file of flags, for `--flagfile`.

  The file has the level, the directory, absolute for commands that start
  elsewhere, and all settings whose default does not hold.
  """
  lines = ['# The flags of the training in this directory.',
           _flag('level_name', config.level_name),
           _flag('logdir', os.path.abspath(config.logdir))]
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if (value not in (field.default, None) and field.name not in _NOT_IN_FILES
        and not _is_default(config, field.name)):
      lines.append(_flag(field.name, value))
  return '\n'.join(lines) + '\n'


def _is_default(config: joined.Joined, name: str) -> bool:
  """Returns whether a setting has the default that other settings decide."""
  change: dict[str, Any] = {name: config.__dataclass_fields__[name].default}
  try:
    return dataclasses.replace(config, **change) == config
  except errors.ConfigError:
    return False


def of_training(logdir: str) -> str:
  """Returns `the flags of its training`, and flags that stand for these."""
  path = os.path.join(logdir, FILE)
  if not os.path.exists(path):
    return 'the flags of its training'
  # The file names another directory if the directory was moved.
  return ('the flags of its training '
          f'(--flagfile={shlex.quote(path)} --logdir={shlex.quote(logdir)})')


def settings_said(training: joined.Joined, now: joined.Joined) -> str:
  """Returns a line with the settings of games that are not the training's."""
  return (changes_said(training, now, OF_GAMES)
          or 'With the settings of the training.')


def changes_said(before: joined.Joined, now: joined.Joined,
                 also: Collection[str] = ()) -> str:
  """Returns a line with the settings that differ, or ''.

  A setting of tests only counts if `also` names the setting.
  """
  changed = [
      field.name for field in dataclasses.fields(now)
      if not field.metadata['unreported']
      and (field.name in also or field.name not in _OF_TESTS)
      and getattr(before, field.name) != getattr(now, field.name)]
  return changed and (
      f'Changed: {as_flags(now, changed)}; before: '
      f'{as_flags(before, changed)}.') or ''


def changes_within(logdir: str, num_updates: int) -> tuple[str, ...]:
  """Returns texts on settings with several values in the parts of a training.

  A text such as `batch_size 8, then 16` has each value once, in the order of
  the parts. Parts without a readable file are left out, and parts that began
  after `num_updates` updates.
  """
  paths = {int(match[1]): match[0] for match in map(
      _OF_PART.fullmatch, glob.glob(os.path.join(
          glob.escape(logdir), 'settings-*.json'))) if match}
  parts = []
  for _, path in sorted(
      part for part in paths.items() if part[0] < max(num_updates, 1)):
    with contextlib.suppress(OSError, TypeError, ValueError):
      parts.append(dict(files.read_json(path)))
  names = [field.name for field in dataclasses.fields(joined.Joined)
           if not (field.metadata['varies'] or field.name in _OF_TESTS)]
  found = {name: dict.fromkeys(
      values.as_text(part[name]) for part in parts if name in part)
           for name in names}
  return tuple(f'{name} {", then ".join(texts)}'
               for name, texts in found.items() if len(texts) > 1)


def _flag(name: str, value: object) -> str:
  return f'--{name}={values.as_text(value)}'
