# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Training on several machines, through ray. No other package imports ray.

Three levels of processes; each one starts those below it, and replaces them
when they are lost. ray ends a process that has lost the one above it.

*   driver: the program that was started. It has no TensorFlow. It prints, takes
    signals, and starts a learner that was lost anew from the checkpoint.
*   learner: `training.run` in a process with the accelerator.
*   actor workers: each has some of the environments, and the actors that step
    them (`remote_actors`); or the environments only, while the actors are in
    the process of the learner (`central_actors`). The processes of the
    environments end with it. `crew` starts and replaces them.
"""
