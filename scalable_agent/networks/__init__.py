# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Networks: layers, heads, action distributions and agents."""
