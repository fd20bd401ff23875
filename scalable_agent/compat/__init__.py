# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions with the interfaces of other libraries, for migrated code.

`di_engine` and `pytorch_seed_rl` have V-trace, `scalable_agent_tf1` the
decorators for batched calls. Results equal the originals' results, as
TensorFlow tensors. New code uses `scalable_agent.vtrace` and
`acting.dynamic_batching`.
"""
