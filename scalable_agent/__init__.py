# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA and off-policy algorithms in TensorFlow 2."""

__version__ = '0.1.0'
