# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes the environments of a `Share`. Without TensorFlow."""

from scalable_agent import environments
from scalable_agent.acting import interface
from scalable_agent.processes import starts
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib


def level_names(config: config_lib.Config, numbers: range) -> list[str]:
  """Returns the levels of environments, by their numbers in the run."""
  names = levels.level_names(config.level_name, config.is_test)
  return [names[i % len(names)] for i in numbers]


def make_environments(config: config_lib.Config, part: int,
                      share: interface.Share,
                      restarts: environments.Restarts | None = None
                      ) -> list[environments.FlowEnvironment]:
  """Makes a share of the environments, in `config.num_actor_groups` groups.

  `part` differs between the parts of a run. Raises any error of
  `environments.make_groups`.
  """
  # A worker has only its CPUs, not all cores of the machine.
  num_threads = config.num_cpus_per_actor_worker if config.ray_address else 0
  if num_threads:
    starts.limit_cores(num_threads)
  # Each part of a run has other seeds.
  return environments.make_groups(
      level_names(config, share.environments),
      [config.derive_seed('environment', i, part, share.incarnation)
       for i in share.environments],
      config, config.num_actor_groups,
      num_threads, first_index=share.environments.start, restarts=restarts)
