# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Public path of `scalable_agent.experience.structs`."""
from scalable_agent.experience.structs import *  # noqa: F403
