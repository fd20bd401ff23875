# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The other modes of the program: test, video, export; and loading agents."""
