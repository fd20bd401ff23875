# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The modes test, video and export of the program; and loading agents."""
