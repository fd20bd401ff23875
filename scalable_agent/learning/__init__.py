# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Learning: batches, gradients, optimizers and sums over learners."""
