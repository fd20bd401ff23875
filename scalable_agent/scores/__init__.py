# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Published scores, suites of levels, tables and plots of scores.

Nothing here knows environments, and nothing imports TensorFlow.
"""
