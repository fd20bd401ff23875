# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""IMPALA (Espeholt et al. 2018, arXiv 1802.01561) in TensorFlow 2."""

__version__ = '0.1.0'
