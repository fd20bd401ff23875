# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Lets pytest run tests that absl's own main would have parsed flags for."""

from absl import flags

flags.FLAGS.mark_as_parsed()
