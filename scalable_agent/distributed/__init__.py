# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Training on several machines with ray. No other package imports ray.

Processes form three levels. Each process starts and replaces the processes of
the level below. ray ends a process whose parent is lost.

*   Driver (`driver`, `learners`): the command that the user ran. The driver has
    no TensorFlow. It prints, handles signals, and restarts a lost learner from
    the latest checkpoint.
*   Learner (`learner_worker`, `learning`): `training.run` in a process with the
    accelerator. `crew` starts and replaces the learner's actor workers.
*   Actor workers: each worker owns a share of the environments. With
    `remote_actors`, a worker also runs the actors that step its environments.
    With `central_actors`, the actors run in the learner's process. The
    processes of the environments end with the worker.
"""
