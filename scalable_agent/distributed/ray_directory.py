# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The directory for temporary files of ray."""

import os

# Names of sockets have at most 107 characters. ray adds up to 71 characters,
# such as /ray/session_2026-01-31_23-59-59_123456_1234567/sockets/plasma_store.1
_LONGEST_DIRECTORY, _SHORT_DIRECTORY = 36, '/tmp'


def shorten() -> None:
  """Lets ray use /tmp if sockets would have too long names; before a start."""
  # As ray does, which asks no `tempfile`.
  path = os.environ.get('RAY_TMPDIR', os.environ.get('TMPDIR', '/tmp'))
  if len(os.fsencode(path)) > _LONGEST_DIRECTORY:
    print(f"{path} is too long for the names of ray's sockets: files of ray "
          f'are in {_SHORT_DIRECTORY}.', flush=True)
    os.environ['RAY_TMPDIR'] = _SHORT_DIRECTORY
