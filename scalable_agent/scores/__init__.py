# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Published scores, suites of levels, tables and plots of scores.

No module of this folder knows environments or imports TensorFlow.
"""
