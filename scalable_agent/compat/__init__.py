# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace with the interfaces of other libraries, for code that moves here.

There is a module for each library: `di_engine`, `pytorch_seed_rl`. Their
functions return the same results as the originals, as TensorFlow tensors, by
means of `scalable_agent.vtrace`. New code should use `scalable_agent.vtrace`.
"""
