# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings of a run: declarations, checks and recipes."""
