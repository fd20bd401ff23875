# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Import of the fork server of `processes`, to set up the server's process.

Only the server may import this module, because the import changes the process.
"""

import atexit
import contextlib
import os
import resource
import signal
import types

from scalable_agent.processes import processes
from scalable_agent.processes import remote  # noqa: F401
from scalable_agent.processes import signals
from scalable_agent.processes import workers  # noqa: F401

_PARENT, _SERVER = os.getppid(), os.getpid()
_GROUP = os.getpgid(0)  # The group of the parent.


@atexit.register
def _end() -> None:
  if os.getpid() == _SERVER:  # Not in a process that the server has forked.
    processes.end_server(_GROUP)


def _end_without_parent(
    unused_number: int, unused_frame: types.FrameType | None) -> None:
  if os.getppid() != _PARENT and os.getpid() == _SERVER:
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    # The number may belong to a group of another user by now.
    with contextlib.suppress(OSError):
      # Python's resource tracker may be stopped, and ends when continued.
      os.killpg(_GROUP, signal.SIGCONT)
    _end()


# Own process group: survives a kill of the parent's group, and then ends the
# workers and their children. The session stays the same: in another session,
# environments would have a fixed share of the processor (autogroups of Linux).
os.setpgid(0, 0)
# The server has a pipe to each process.
_, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
# A terminal may stop background processes that write to the terminal.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
# Python ends the server when all other processes have ended, but stopped
# processes never end. The server may be stopped, too. The signal also comes at
# the end of the thread that started the server, perhaps before the parent ends.
signal.signal(signal.SIGCONT, _end_without_parent)
signals.send_when_parent_dies(signal.SIGCONT)
# Only the main process reacts to these signals, see `processes`.
for number in signal.SIGTERM, signal.SIGHUP:
  signal.signal(number, lambda *_: None)
# Python has one server for all processes of a program. Processes that are not
# ours have the usual handlers.
os.register_at_fork(after_in_child=processes.heed_signals)
