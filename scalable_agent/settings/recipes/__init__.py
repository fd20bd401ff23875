# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags of trainings that work: `--recipe=NAME` reads `NAME.flags` here.

Each file says first where its values come from, and what it has reached.
"""
