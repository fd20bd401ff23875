# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Losses of all algorithms, as functions of tensors."""
