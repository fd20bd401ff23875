# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environment workers: environments in processes of a ray cluster.

These processes do not import TensorFlow: the learner chooses the actions.
"""

import socket

import numpy as np
from scalable_agent.acting import interface
from scalable_agent.acting import shares
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import hosts
from scalable_agent.environments import base
from scalable_agent.settings import config as config_lib


class EnvironmentWorker:
  """Steps a share of the environments. Each group is called by one thread."""

  def __init__(self, config: config_lib.Config, part: int,
               share: interface.Share):
    """Creates a worker; `open` does all work that can fail."""
    self._config = hosts.with_paths_of_host(config)
    self._part, self._share = part, share

  def host(self) -> str:
    """Returns the name of the worker's machine."""
    return socket.gethostname()

  def open(self) -> descriptions.Description:
    """Opens the environments."""
    self._groups = shares.make_environments(
        self._config, self._part, self._share)
    return descriptions.describe(self._groups[0].spec, len(self._groups))

  def initial(self, group: int) -> base.Observation:
    """Starts the environments of a group; returns their observations."""
    return self._groups[group].initial().observation

  def step(self, group: int, actions: np.ndarray) -> base.VectorStep:
    """Steps the environments of a group."""
    output = self._groups[group].step(actions)
    return base.VectorStep(
        output.reward, output.done, output.info.episode_end, output.observation,
        output.truncated, output.last_observation,
        output.info.metrics if output.info.episode_end.any() else {})
