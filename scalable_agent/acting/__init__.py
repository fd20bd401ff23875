# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Acting: unrolls of environments, made by policies on this machine."""
