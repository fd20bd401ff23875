# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions with the interfaces of other libraries, for migrated code.

`di_engine` and `pytorch_seed_rl` have the V-trace functions of these libraries.
The results equal the results of the originals, as TensorFlow tensors.
`scalable_agent_tf1` has the decorators for batched calls. New code should use
`scalable_agent.vtrace` and `scalable_agent.acting.dynamic_batching`.
"""
