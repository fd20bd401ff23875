# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace with the interfaces of other libraries, for code that moves here.

A module for each library: `di_engine`, `pytorch_seed_rl`. They compute what the
originals compute, on TensorFlow's tensors, with `scalable_agent.vtrace`. New
code is better off with `scalable_agent.vtrace` itself.
"""
