# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Functions with the interfaces of other libraries, for code that moves here.

`di_engine` and `pytorch_seed_rl` have V-trace: the functions return the same
results as the originals, as TensorFlow tensors, by means of
`scalable_agent.vtrace`. `scalable_agent_tf1` has the decorators for batched
calls. New code should use `vtrace` and `acting.dynamic_batching`.
"""
