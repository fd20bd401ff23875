# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The name of the command."""

import os
import sys


def name() -> str:
  """Returns the command of this program, as typed by the user."""
  file = os.path.basename(sys.argv[0])
  return {'experiment.py': 'python experiment.py',
          '__main__.py': 'python -m scalable_agent'}.get(file, 'scalable-agent')
