# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The modes of the program; loading agents, and training, from Python."""
