# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Values of settings from programs and files: conversion and types."""

from collections.abc import Mapping
import json
import os
import re

import numpy as np


def plain(value: object, kind: type, is_automatic: bool = False,
          is_list: bool = False) -> object:
  """Returns a setting of type `kind` as Python's own type, if that is exact.

  Numbers of NumPy, whole numbers such as 1e6, and paths are converted. If
  `is_automatic`, `auto` is 0. If `is_list`, lists of texts or whole numbers
  become `A,B,C`. All other values are returned unchanged.
  """
  if isinstance(value, os.PathLike) and kind is str:
    return os.fspath(value)
  if is_list and isinstance(value, list | tuple) and all(
      isinstance(part, int | str | np.integer) and not isinstance(part, bool)
      for part in value):
    return ','.join(map(str, value))
  if is_automatic and kind is int and isinstance(
      value, str) and value == 'auto':
    return 0
  if isinstance(value, np.generic):
    value = value.item()
  if kind is int and isinstance(value, float) and value.is_integer():
    return int(value)
  return value


def from_text(text: str, kind: type) -> object:
  """Returns the value of a flag, such as `true` or `2e6`.

  The text of a flag alone, such as `--use_lstm`, is ''.
  """
  if kind is bool:
    return text in ('', 'true')
  return plain(float(text), kind) if kind in (int, float) else text


def as_text(value: object) -> str:
  """Returns the value of a setting as on the command line, such as `true`."""
  return str(value).lower() if isinstance(value, bool) else str(value)


def json_object(value: object) -> object:
  """Returns a mapping, or the text of a JSON object, as text in one form.

  Equal objects have equal texts; an empty object is ''. All other values are
  returned unchanged, or as text if a mapping has no JSON.
  """
  try:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
      return value
    return json.dumps(
        dict(found), sort_keys=True,
        default=lambda number: number.item()) if found else ''  # Of NumPy.
  except (AttributeError, TypeError, ValueError, RecursionError):
    return str(value) if isinstance(value, Mapping) else value


def is_json_object(text: str) -> bool:
  """Returns whether a text is a JSON object, or ''."""
  try:
    return not text or isinstance(json.loads(text), dict)
  except (ValueError, RecursionError):
    return False


def broken_rule(value: object, kind: type, may_be_none: bool) -> str:
  """Returns what a setting of type `kind` must be, '' if the value is right."""
  types = [kind]
  if kind is float:
    types.append(int)
  if may_be_none:
    types.append(type(None))
  if kind is str and callable(value):
    return ("must be a text, such as 'my_file:name' for a function or a class "
            'of my_file.py. train(config, env=FUNCTION) takes a function that '
            'makes an environment')
  # A bool is an int to Python, but batch_size=True is a mistake.
  if not isinstance(value, tuple(types)) or (
      isinstance(value, bool) and kind is not bool):
    return f'must be of type {" or ".join(t.__name__ for t in types)}'
  if isinstance(value, str) and re.search('[\ud800-\udfff]', value):
    return 'must be text in UTF-8'
  return ''


def names(text: str) -> list[str]:
  """Returns the names in a list `A,B,C`."""
  return [name.strip() for name in text.split(',') if name.strip()]


def first_name(text: str) -> str:
  """Returns the first name in a list `A,B,C`, or ''."""
  return next(iter(names(text)), '')
