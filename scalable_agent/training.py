# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Public path of `scalable_agent.runs.training`."""
from scalable_agent.runs.training import *  # noqa: F403
