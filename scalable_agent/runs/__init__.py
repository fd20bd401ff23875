# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""One run: the training loop, the log directory and all that a run writes."""
