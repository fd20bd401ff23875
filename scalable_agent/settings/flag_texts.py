# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings as flags: in files of flags, and in lines for the user."""

from collections.abc import Iterable
import dataclasses
import os

from scalable_agent.settings import declare
from scalable_agent.settings.test_settings import TestSettings

# Name of the file, in the log directory, with the flags of the training.
FILE = 'settings.flags'


def as_flags(config: declare.Section, names: Iterable[str]) -> str:
  """Returns settings as flags, such as `--seed=1 --use_lstm=false`."""
  return ' '.join(_flag(name, getattr(config, name)) for name in names)


def of_file(config: declare.Section) -> str:
  """Returns the text of a file of flags, for `--flagfile`.

  The file has all settings that the algorithm uses, without those whose default
  is the same for all algorithms and levels and holds.
  """
  lines = ['# The flags of the training in this directory.']
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if (value != field.default and value is not None
        and config.algorithm in field.metadata['algorithms']):
      is_logdir = field.name == 'logdir'  # A command may start elsewhere.
      lines.append(_flag(
          field.name, os.path.abspath(value) if is_logdir else value))
  return '\n'.join(lines) + '\n'


def of_training(logdir: str) -> str:
  """Returns `the flags of its training`, and the file that has the flags."""
  path = os.path.join(logdir, FILE)
  file = f' (--flagfile={path})' if os.path.exists(path) else ''
  return f'the flags of its training{file}'


def changes_said(before: declare.Section, now: declare.Section) -> str:
  """Returns a line with the settings that a resumed run changes, or ''."""
  of_tests = {field.name for field in dataclasses.fields(TestSettings)}
  changed = [
      field.name for field in dataclasses.fields(now)
      if not field.metadata['unreported'] and field.name not in of_tests
      and getattr(before, field.name) != getattr(now, field.name)]
  return changed and (
      f'Changed: {as_flags(now, changed)}; before: '
      f'{as_flags(before, changed)}.') or ''


def _flag(name: str, value: object) -> str:
  text = str(value).lower() if isinstance(value, bool) else str(value)
  return f'--{name}={text}'
