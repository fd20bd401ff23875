# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A user's module whose name begins like levels of DeepMind Lab."""

import fake_environments  # noqa: F401  Registers environments.
