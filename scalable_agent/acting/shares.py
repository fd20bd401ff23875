# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes the environments of a `Share`. Without TensorFlow."""

from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.environments import atari
from scalable_agent.environments import envpool_env
from scalable_agent.environments import trial
from scalable_agent.processes import starts
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib

_TRIAL_S = 0.3
# More threads than this were not tried.
_MAX_GROUPS = 64


def has_processes(level_name: str) -> bool:
  """Whether environments of a level step in processes, not in C++ threads."""
  return not (atari.is_level(level_name) or envpool_env.is_level(level_name))


def level_names(config: config_lib.Config, numbers: range) -> list[str]:
  """Returns the levels of environments, by their numbers in the run."""
  names = levels.level_names(config.level_name, config.is_test)
  return [names[i % len(names)] for i in numbers]


def make_environments(config: config_lib.Config, part: int,
                      share: interface.Share,
                      restarts: environments.Restarts | None = None
                      ) -> list[environments.FlowEnvironment]:
  """Makes a share of the environments, in `config.num_actor_groups` groups.

  If this number is 0, a trial of the first level decides. `part` differs
  between the parts of a run. Raises any error of `environments.make_groups`.
  """
  # A worker has only its CPUs, not all cores of the machine.
  num_threads = config.num_cpus_per_actor_worker if config.ray_address else 0
  if num_threads:
    starts.limit_cores(num_threads)
  names = level_names(config, share.environments)
  num_groups = config.num_actor_groups or _num_groups(config, names)
  # Each part of a run has other seeds.
  return environments.make_groups(
      names,
      [config.derive_seed('environment', i, part, share.incarnation)
       for i in share.environments],
      config, num_groups,
      num_threads, first_index=share.environments.start, restarts=restarts)


def restarts_of(config: config_lib.Config, same_seeds: bool = False
                ) -> environments.Restarts | None:
  """Returns the limit of restarts of processes; None for no restarts."""
  return None if config.deterministic else environments.Restarts(
      config.max_environment_restarts, same_seeds)


def _num_groups(config: config_lib.Config, names: list[str]) -> int:
  """Returns the number of groups; prints a line if resets are slow."""
  if len(names) <= config.usual_groups:
    return config.usual_groups  # Each environment has a group already.
  if not has_processes(names[0]):
    return config.usual_groups  # C++ threads reset the environments.
  facts = play_trial(names[0], config)
  number = groups_for(facts, len(names), config.usual_groups)
  if facts and number != config.usual_groups:
    print(f'A reset of {names[0]} takes {facts.reset_s / facts.num_resets:.2g} '
          's: in small groups, few environments wait for the reset of another '
          'environment.', flush=True)
  return number


def groups_for(facts: trial.Facts | None, num_environments: int,
               usual: int) -> int:
  """Returns the number of groups: the usual one, or more if resets are slow."""
  if facts and num_environments > usual and facts.resets_hold_up(
      -(-num_environments // usual)):
    return min(num_environments, _MAX_GROUPS)
  return usual


def play_trial(
    level_name: str, config: config_lib.Config) -> trial.Facts | None:
  """Plays a level for a moment; None if that is impossible.

  The start of the environments then says the fault.
  """
  try:
    return environments.play_trial(level_name, config, _TRIAL_S, checks=False)
  except errors.UserError:
    return None
