# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""V-trace with the interfaces of other libraries, for migrated code.

There is a module for each library: `di_engine`, `pytorch_seed_rl`. The results
equal the results of the originals, as TensorFlow tensors. New code should use
`scalable_agent.vtrace`.
"""
