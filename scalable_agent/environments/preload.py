# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What the server of `processes` imports, for all that it forks.

Nothing else imports this module: it changes the process.
"""

import os
import signal

from scalable_agent.environments import processes
from scalable_agent.environments import remote  # noqa: F401
from scalable_agent.environments import workers  # noqa: F401

_PARENT = os.getppid()


def _end_without_parent(unused_number, unused_frame):
  if os.getppid() != _PARENT:
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    os.killpg(0, signal.SIGCONT)  # Python's resource tracker ends when it runs.
    os._exit(1)  # What it has forked dies with it.


# Python would end it when all are gone, but those that are stopped stay. It may
# be stopped, too, and the thread that has started it may end before its parent.
signal.signal(signal.SIGCONT, _end_without_parent)
processes.send_when_parent_dies(signal.SIGCONT)
# As in the processes that it forks.
for number in signal.SIGTERM, signal.SIGHUP:
  signal.signal(number, lambda *_: None)
