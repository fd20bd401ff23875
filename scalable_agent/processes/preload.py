# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What the server of `processes` imports, for all that it forks.

Nothing else imports this module: it changes the process.
"""

import atexit
import contextlib
import os
import signal

from scalable_agent.processes import processes
from scalable_agent.processes import remote  # noqa: F401
from scalable_agent.processes import signals
from scalable_agent.processes import workers  # noqa: F401

_PARENT, _SERVER = os.getppid(), os.getpid()
_GROUP = os.getpgid(0)  # That of the parent.


@atexit.register
def _end():
  if os.getpid() == _SERVER:  # Not one of those that it has forked.
    processes.end_server(_GROUP)


def _end_without_parent(unused_number, unused_frame):
  if os.getppid() != _PARENT and os.getpid() == _SERVER:
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # It may be the group of others by now.
      # Python's resource tracker ends when it runs.
      os.killpg(_GROUP, signal.SIGCONT)
    _end()


# Who kills the group of the parent leaves this process, which then ends what
# the others have started. The session stays: in another one, environments would
# have a fixed share of the processor (the autogroups of Linux).
os.setpgid(0, 0)
# A terminal may stop whoever writes to it from another group than its own.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
# Python ends it when all others are gone, but those that are stopped stay. It
# may be stopped, too, and the thread that has started it may end before its
# parent.
signal.signal(signal.SIGCONT, _end_without_parent)
signals.send_when_parent_dies(signal.SIGCONT)
# As in the processes that it forks.
for number in signal.SIGTERM, signal.SIGHUP:
  signal.signal(number, lambda *_: None)
