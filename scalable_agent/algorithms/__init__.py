# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Learning rules: how a batch becomes a loss. They never import each other."""
