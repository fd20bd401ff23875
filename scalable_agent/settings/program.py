# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The name of the command, and modes that use a trained agent."""

import os
import sys

# Modes that take the settings of the training for flags that are not given.
OF_TRAINED_AGENTS = ('test', 'video', 'export')


def name() -> str:
  """Returns the command of this program, as typed by the user."""
  file = os.path.basename(sys.argv[0])
  return {'experiment.py': 'python experiment.py',
          '__main__.py': 'python -m scalable_agent'}.get(file, 'scalable-agent')
