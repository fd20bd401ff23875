# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""`python -m scalable_agent`, see `scalable_agent.experiment`."""

from scalable_agent import experiment

if __name__ == '__main__':
  experiment.run_program()
