# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Values of settings from programs and files: conversion and types."""

import os
import re

import numpy as np


def plain(value: object, kind: type) -> object:
  """Returns a setting of type `kind` as Python's own type, if that is exact.

  Numbers of NumPy, whole numbers such as 1e6, and paths are converted. All
  other values are returned unchanged.
  """
  if isinstance(value, os.PathLike) and kind is str:
    return os.fspath(value)
  if isinstance(value, np.generic):
    value = value.item()
  if kind is int and isinstance(value, float) and value.is_integer():
    return int(value)
  return value


def broken_rule(value: object, kind: type, may_be_none: bool) -> str:
  """Returns what a setting of type `kind` must be, '' if the value is right."""
  types = [kind]
  if kind is float:
    types.append(int)
  if may_be_none:
    types.append(type(None))
  # A bool is an int to Python, but batch_size=True is a mistake.
  if not isinstance(value, tuple(types)) or (
      isinstance(value, bool) and kind is not bool):
    return f'must be of type {" or ".join(t.__name__ for t in types)}'
  if isinstance(value, str) and re.search('[\ud800-\udfff]', value):
    return 'must be text in UTF-8'
  return ''
