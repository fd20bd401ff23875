# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Public path of `scalable_agent.settings.config`."""
from scalable_agent.settings.config import *  # noqa: F403
