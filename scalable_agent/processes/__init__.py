# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Processes and code of others, kept alive, ended and reported."""
