# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA and off-policy algorithms in TensorFlow 2."""

__version__ = '0.1.0'

import importlib
import random
from typing import Any

# Public names, imported at their first use: processes of environments must not
# import TensorFlow.
_LAZY = {'Config': 'settings.config', 'StopTraining': 'errors',
         'load': 'modes.loading', 'train': 'modes.training'}
_WITHOUT_TENSORFLOW = ('Config', 'StopTraining')
_LAZY_MODULES = ('compat', 'config', 'environments', 'errors', 'experiment',
                 'losses', 'structs', 'training', 'vtrace')
__all__ = ['Config', 'StopTraining', 'load', 'train']


def __getattr__(name: str) -> Any:
  if name not in (*_LAZY_MODULES, *_LAZY):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  state = random.getstate()
  try:
    return _imported(name)
  finally:
    random.setstate(state)  # TensorFlow draws numbers when it is imported.


def _imported(name: str) -> Any:
  if name in _LAZY_MODULES:
    return importlib.import_module(f'{__name__}.{name}')
  if name in _WITHOUT_TENSORFLOW:
    return getattr(importlib.import_module(f'{__name__}.{_LAZY[name]}'), name)
  console = importlib.import_module(f'{__name__}.processes.console')
  with console.quiet_tensorflow():
    return getattr(importlib.import_module(f'{__name__}.{_LAZY[name]}'), name)


def __dir__() -> list[str]:
  return sorted([*__all__, *_LAZY_MODULES, '__version__'])
