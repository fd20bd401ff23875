# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions with the interfaces of other libraries, for migrated code.

`di_engine` and `pytorch_seed_rl` have V-trace, `scalable_agent` all modules of
DeepMind's program. Results equal the originals' results, as TensorFlow tensors.
New code uses `scalable_agent.vtrace`, `scalable_agent.train` and
`acting.dynamic_batching`.
"""
