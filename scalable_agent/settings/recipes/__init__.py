# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags of runs that train well: `--recipe=NAME` reads `NAME.flags`.

A comment at the top of each file names the source of the values and the
returns reached.
"""
