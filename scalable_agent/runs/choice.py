# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Chooses the number of environments and more from measured times.

`choose` is a function of its arguments only; `measuring` measures the times.
The model: agent steps per second have four bounds. The cores bound the sum of
all work; the time of a step of a group, with its waits, bounds acting; the time
of an update bounds learning; and threads take turns in Python. A rate is below
the least bound if two bounds are close.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
from scalable_agent import errors
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import flag_texts
from scalable_agent.settings.declare import used

_NUMBERS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_GROUPS = (1, 2, 4, 8, 16, 32, 64)
# Few environments are chosen if this share of the best rate is expected. More
# environments mean more policy lag and more memory.
_ENOUGH = .97
# Of the same number of environments, fewer groups are chosen if a rate has this
# share of the best rate: the model knows the cost of threads only roughly.
_ALMOST_EQUAL = .98
# The model takes at most so many seconds of Python for a step of a group, and
# for a call of the learner.
_MOST_PYTHON_S = .001
# With two equal bounds, a rate is 2 ** (-1 / 6) times as large as either.
_POWER = 6


class GroupStep(NamedTuple):
  """Mean times of a step of one group, which had the machine alone.

  Attributes:
    num_environments: environments of the group.
    per_process: environments of each process.
    environment_s: seconds in which the environments step.
    policy_s: all other seconds: the policy, and copies to the unroll.
    cpu_s: seconds of cores that this program used, without its processes.
  """
  num_environments: int
  per_process: int
  environment_s: float
  policy_s: float
  cpu_s: float


class Update(NamedTuple):
  """Times of an update with some settings.

  Attributes:
    seconds: seconds of an update without other work.
    cpu_s: seconds of cores of an update.
    per_call: updates of a call. With fewer, an update takes longer.
  """
  xla: str
  micro_batch_size: int
  seconds: float
  cpu_s: float
  per_call: int = 1


class Times(NamedTuple):
  """Measured times.

  Attributes:
    num_cores: cores that this program may use.
    acting: at least one entry; entries of the same `per_process` in the order
      of `num_environments`.
    updates: the automatic settings first; empty if nothing was measured.
    in_processes: whether environments step in processes of their own.
    reset_s: seconds of slow resets per step of an environment, else 0.
    max_processes: processes of environments for which there is memory.
  """
  num_cores: int
  acting: tuple[GroupStep, ...]
  updates: tuple[Update, ...]
  in_processes: bool = True
  reset_s: float = 0.
  max_processes: int = 10**6


class Choice(NamedTuple):
  """Chosen settings.

  Attributes:
    steps_per_s: expected agent steps per second.
    reason: the bound of the rate, in words.
  """
  config: config_lib.Config
  steps_per_s: float
  reason: str


def choose(config: config_lib.Config, times: Times) -> Choice:
  """Returns settings whose `num_actors` and automatic settings are chosen.

  Raises ConfigError if no number of environments fits the other settings.
  """
  update = min(times.updates, key=lambda update: update.seconds,
               default=Update(config.xla, config.micro_batch_size, 0., 0.))
  limit, config = config.max_policy_lag, dataclasses.replace(
      config, max_policy_lag=usual_lag(config), xla=update.xla)
  if not config.is_off_policy:
    config = dataclasses.replace(
        config, micro_batch_size=update.micro_batch_size)
  # An unroll of few environments is too short for a whole call.
  due = lambda c: updates_per_step(c) * c.num_actors * c.unroll_length
  candidates = [c for c in _candidates(config, times)
                if not c.is_off_policy or due(c) >= update.per_call]
  choices = [_expected(candidate, times, update) for candidate in candidates
             if policy_lag(candidate) <= limit]
  if not choices:
    least = min(map(policy_lag, candidates), default=0.)
    fits = (f'--max_policy_lag={limit:g} (the least lag is {least:.3g}): '
            'increase this limit, or' if candidates else 'the other settings:')
    raise errors.ConfigError(
        '--num_actors=auto found no number of environments that fits '
        f'{fits} set --num_actors.')
  good = _nearly_best(choices, _ENOUGH)
  fewest = min(c.config.num_actors for c in good)
  good = _nearly_best(
      [c for c in good if c.config.num_actors == fewest], _ALMOST_EQUAL)
  return min(good, key=lambda c: (c.config.num_actor_groups, -c.steps_per_s))


def _nearly_best(choices: Sequence[Choice], share: float) -> list[Choice]:
  least = share * max(choice.steps_per_s for choice in choices)
  return [choice for choice in choices if choice.steps_per_s >= least]


def _candidates(config: config_lib.Config,
                times: Times) -> Iterator[config_lib.Config]:
  """Yields all settings that are valid."""
  processes = sorted({acting.per_process for acting in times.acting})
  num_levels = len(levels.level_names(config.level_name, config.is_test))
  for number in sorted({*_NUMBERS, num_levels}):
    groups = [config.num_actor_groups] if config.num_actor_groups else _GROUPS
    for num_groups in groups:
      for per_process in processes:
        num_together = number // num_groups
        if (number < num_levels or number % num_groups
            or num_together < min(per_process, 2)
            or times.in_processes
            and number > per_process * times.max_processes):
          continue
        try:
          yield dataclasses.replace(
              config, num_actors=number, num_actor_groups=num_groups,
              environments_per_process=per_process)
        except errors.ConfigError:
          continue


def updates_per_step(config: config_lib.Config) -> float:
  """Returns updates per agent step, in the long run."""
  if config.is_off_policy:
    return used(config.updates_per_step)
  if config.algorithm == 'appo':
    return used(config.passes) / (config.batch_size * config.unroll_length)
  if config.unrolls_per_collect:
    return config.updates_per_collect / (
        config.unrolls_per_collect * config.unroll_length)
  return 1 / (config.num_fresh_unrolls * config.unroll_length)


def kept(config: config_lib.Config, before: config_lib.Config,
         names: Sequence[str]) -> config_lib.Config:
  """Returns settings with the numbers of an earlier part of the run.

  `names` are the settings that were chosen then. Without a given number of
  environments, prints their values.
  """
  if config.num_actors:
    names = ['num_actor_groups']
  # Other updates may need other parts of a batch.
  if config.addon or (before.algorithm, before.batch_size) != (
      config.algorithm, config.batch_size):
    names = [name for name in names if name != 'micro_batch_size']
  if not config.num_actors:
    print('--num_actors=auto, as before: '
          f'{flag_texts.as_flags(before, names)}.', flush=True)
  return dataclasses.replace(
      config, max_policy_lag=usual_lag(config),
      **{name: getattr(before, name) for name in names})


def usual_lag(config: config_lib.Config) -> float:
  """Returns the default of `max_policy_lag`, which only a choice needs."""
  usual: float = config.__dataclass_fields__['max_policy_lag'].metadata[
      'default'].of(config.default_keys())
  return usual


def policy_lag(config: config_lib.Config) -> float:
  """Returns the expected updates from the start of an unroll to its arrival.

  Meanwhile all environments make an unroll, and the queue is emptied.
  """
  if config.takes_turns:
    return 0.
  in_flight = config.num_actors * (
      1 + config.queue_capacity / config.num_actor_groups)
  return in_flight * config.unroll_length * updates_per_step(config)


def _expected(config: config_lib.Config, times: Times,
              update: Update) -> Choice:
  """Returns the settings with the rate that the model expects."""
  num_groups = config.num_actor_groups
  number = config.num_actors / num_groups
  acting = [a for a in times.acting
            if a.per_process == config.environments_per_process]
  work_s = _work_s(acting, times)
  seconds = _line(acting, [a.environment_s for a in acting], number)
  if config.shares_steps(num_groups, config.num_actors):
    # While one shared step runs, the other half of the groups arrives.
    number_of_policy, waits = config.num_actors / 2, 2.
  else:
    number_of_policy, waits = number, 1.
  policy_s = _line(acting, [a.policy_s for a in acting], number_of_policy)
  cpu_s = _line(acting, [a.cpu_s for a in acting], number_of_policy)
  python_s = _python_s(acting)
  num_policy_steps = config.num_actors / number_of_policy
  acting_cpu_s = cpu_s / number_of_policy + work_s + python_s * (
      num_groups - num_policy_steps) / config.num_actors
  group_s = (seconds + waits * policy_s) / config.num_actors + (
      times.reset_s / num_groups)
  updates = updates_per_step(config)
  bounds = {'acting waits for environments': group_s,
            'updates take longest': updates * update.seconds}
  all_cpu_s = acting_cpu_s + updates * update.cpu_s
  busy = ('the core is busy' if times.num_cores == 1
          else f'all {times.num_cores} cores are busy')
  # Groups that share policy steps need less Python than this.
  turns_s = num_groups * python_s / config.num_actors
  if config.takes_turns:
    bounds[busy] = acting_cpu_s / times.num_cores
    step_s = _together([group_s, bounds[busy], turns_s]) + (
        updates * update.seconds)
  else:
    bounds[busy] = all_cpu_s / times.num_cores
    turns_s += updates * min(update.cpu_s, _MOST_PYTHON_S / update.per_call)
    step_s = _together([*bounds.values(), turns_s])
  bounds['threads wait for each other'] = turns_s
  return Choice(config, 1 / step_s, max(bounds, key=lambda name: bounds[name]))


def _work_s(acting: Sequence[GroupStep], times: Times) -> float:
  """Returns seconds of cores of a step of an environment in a process.

  One more environment takes longer only if the environments need all cores.
  """
  if not times.in_processes or len(acting) < 2:
    return 0.
  first, last = acting[-2:]
  more_s = (last.environment_s - first.environment_s) / (
      last.num_environments - first.num_environments)
  return max(more_s, 0.) * times.num_cores


def _python_s(acting: Sequence[GroupStep]) -> float:
  """Returns seconds of Python of a step of a group, whatever its size.

  Python runs one thread at a time. The estimate is the seconds of cores of a
  group of no environments, on the line of the two smallest groups (of a single
  group all its seconds), and at most `_MOST_PYTHON_S`.
  """
  cpu_s = acting[0].cpu_s
  if len(acting) > 1:
    slope = (acting[1].cpu_s - cpu_s) / (
        acting[1].num_environments - acting[0].num_environments)
    cpu_s -= max(slope, 0.) * acting[0].num_environments
  return min(max(cpu_s, 0.), _MOST_PYTHON_S)


def _line(acting: Sequence[GroupStep], seconds: Sequence[float],
          number: float) -> float:
  """Returns seconds of a number of environments, on the line of others.

  Beyond the largest number, the last two points decide; a single point is
  multiplied.
  """
  numbers = [a.num_environments for a in acting]
  if number <= numbers[-1]:
    return float(np.interp(number, numbers, seconds))
  if len(numbers) == 1:
    return seconds[0] * number / numbers[0]
  slope = (seconds[-1] - seconds[-2]) / (numbers[-1] - numbers[-2])
  return seconds[-1] + max(slope, 0.) * (number - numbers[-1])


def _together(bounds: Sequence[float]) -> float:
  """Returns seconds per agent step from the seconds of each bound."""
  return float(np.linalg.norm(bounds, ord=_POWER))
