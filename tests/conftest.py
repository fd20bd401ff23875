# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of all tests; parses flags, as absl's own main would."""

import gc
import os

from absl import flags

# On a GPU: leave memory to the processes that tests start, and compare in full
# precision.
os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
os.environ.setdefault('NVIDIA_TF32_OVERRIDE', '0')
flags.FLAGS.mark_as_parsed()
# Modules stay for ever. To look for garbage among their objects takes seconds.
gc.disable()


def pytest_collection_finish() -> None:
  """Looks for garbage again, but not among the objects of the modules."""
  gc.freeze()
  gc.enable()
