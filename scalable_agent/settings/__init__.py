# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The settings: how they are declared, and all of them."""
