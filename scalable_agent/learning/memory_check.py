# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Compares the sizes of unrolls, batches and the replay with the memory."""

import math

from scalable_agent.experience import packing
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.networks import agents
from scalable_agent.processes import memory
from scalable_agent.replay import steps
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import sections


def check_memory(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 agent: agents.Agent) -> None:
  """Prints the size of the replay, if there is one.

  Raises ConfigError if unrolls, batches or the replay are larger than the
  memory of the machine.
  """
  unroll_bytes = num_unroll_bytes(config, spec, agent)
  # Otherwise the unrolls of actors are on other machines.
  if not config.ray_address or config.inference != 'local':
    memory.check(
        f'--num_actors={config.num_actors} with --unroll_length='
        f'{config.unroll_length} and --queue_capacity={config.queue_capacity}',
        config.num_actors * config.num_unroll_buffers * unroll_bytes)
  # A batch is learned from, a batch waits unless acting takes turns, and a
  # batch is copied to the device from a batch of arrays, see `feeds.Feed`.
  num_batches = 3 if config.takes_turns else 4
  num_updates = config.updates_per_call or 1
  of_call = f', --updates_per_call={num_updates}' if num_updates > 1 else ''
  num_items = num_batches * num_updates * config.batch_size
  if config.is_off_policy:
    flag, number, items = '--replay_steps', config.replay_steps, 'steps'
    num_bytes = num_step_bytes(config, spec, agent)
    # Transitions have two observations, o and o'.
    num_steps = config.num_entries if config.use_lstm else 2
    memory.check(f'--batch_size={config.batch_size}{of_call}',
                 steps.num_bytes(spec, num_items * num_steps))
  else:
    flag, number, items = '--replay_capacity', config.replay_capacity, 'unrolls'
    num_bytes = number * (unroll_bytes - _num_packed_bytes(config, spec))
    memory.check(f'--batch_size={config.batch_size}{of_call} with '
                 f'--unroll_length={config.unroll_length}',
                 num_items * unroll_bytes)
    memory.check(f'--unrolls_per_collect={config.unrolls_per_collect} with '
                 f'--unroll_length={config.unroll_length}',
                 config.unrolls_per_collect * unroll_bytes)
  if number:
    memory.check(f'{flag}={number}', num_bytes)
    # How many episodes end, each with a last observation, is not known.
    least = 'at least ' if config.is_off_policy else ''
    print(f'Replay of {number:,} {items}: {least}{num_bytes / 1e9:,.2f} GB '
          'when it is full.')


def num_unroll_bytes(config: sections.ActingSettings,
                     spec: structs.EnvironmentSpec, agent: agents.Agent) -> int:
  """Returns the size of an unroll of one environment, without making one."""
  short, longer = (
      packing.num_bytes(unrolls.allocate(
          length, [''], spec.observation, agent.output_spec,
          agent.initial_state(1))) for length in (1, 2))
  return short + (config.unroll_length - 1) * (longer - short)


def _num_packed_bytes(config: config_lib.Config,
                      spec: structs.EnvironmentSpec) -> int:
  """Returns the bytes of older frames that a kept unroll is without."""
  if (not levels.are_stacked(config.level_name, config.is_test)
      or not isinstance(spec.observation, structs.ArraySpec)):
    return 0
  shape = spec.observation.shape
  return config.unroll_length * (shape[0] - 1) * math.prod(shape[1:])


def num_step_bytes(config: config_lib.Config,
                   spec: structs.EnvironmentSpec, agent: agents.Agent) -> int:
  """Returns the size of a full replay of steps, and of recurrent states."""
  num_states = config.replay_steps // config.unroll_length
  numbers_of_state = sum(
      math.prod(part.shape) for part in agent.initial_state(1))
  is_stacked = levels.are_stacked(config.level_name, config.is_test)
  return (steps.num_bytes(spec, config.replay_steps, is_stacked)
          + num_states * 4 * numbers_of_state)
