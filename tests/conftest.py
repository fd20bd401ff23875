# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of all tests; parses flags, as absl's own main would."""

import gc
import os
import shutil
import tempfile

from absl import flags

# On a GPU: leave memory to the processes that tests start, and compare in full
# precision.
os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
os.environ.setdefault('NVIDIA_TF32_OVERRIDE', '0')
# Threads of NumPy on busy cores mostly wait for each other.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
# absl's directory is the same for all users and clones of a machine. Processes
# of pytest-xdist get the directory of the first process.
_TMPDIR = None if 'TEST_TMPDIR' in os.environ else tempfile.mkdtemp(
    prefix='tests-')
if _TMPDIR:
  os.environ['TEST_TMPDIR'] = _TMPDIR
flags.FLAGS.mark_as_parsed()
# Modules stay for ever. To look for garbage among their objects takes seconds.
gc.disable()


def pytest_collection_finish() -> None:
  """Looks for garbage again, but not among the objects of the modules."""
  gc.freeze()
  gc.enable()


def pytest_unconfigure() -> None:
  """Removes the directories and files that tests have made."""
  if _TMPDIR:
    shutil.rmtree(_TMPDIR, ignore_errors=True)
