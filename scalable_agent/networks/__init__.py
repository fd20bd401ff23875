# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Networks: layers, heads, action distributions and agents."""

from scalable_agent.networks import backend  # noqa: F401  Checks Keras first.
