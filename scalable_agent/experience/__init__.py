# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The experience of agents: its vocabulary, unrolls, queues and episodes."""
