# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The modules of DeepMind's scalable_agent (TensorFlow 1), for migrated code.

  from scalable_agent.compat.scalable_agent import experiment

The six modules have the 34 public names of DeepMind's modules. One rule holds
for all names: a call does now, eagerly, in TensorFlow 2, the work that
DeepMind's function puts into the graph of a session. So a program calls
`build_actor` once for each unroll, and `build_learner` once for each update.
The docstring of each name has every other difference. Trainings should use
`scalable_agent.train`, which is much faster.
"""
