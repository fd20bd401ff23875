# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Learning rules: pick one of these with `--algorithm`.

*   `impala`: V-trace actor-critic, from unrolls as they come. Any actions.
*   `ddqn`: deep Q-learning. Discrete actions.
*   `ddpg`, `td3`: deterministic policies. Continuous actions.
*   `sac`, `mpo`: stochastic policies. Continuous or discrete actions.

All but the first learn from a replay: of transitions, or of unrolls (`ddqn`
with an LSTM).
"""

import functools

from scalable_agent import errors
from scalable_agent.algorithms import base
from scalable_agent.algorithms import ddpg
from scalable_agent.algorithms import ddqn
from scalable_agent.algorithms import impala
from scalable_agent.algorithms import mpo
from scalable_agent.algorithms import sac
from scalable_agent.algorithms import td3
from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.networks import heads
from scalable_agent.settings.config import Config


def make_agent(config: Config, spec: structs.EnvironmentSpec,
               seed: int) -> agents.Agent:
  """Makes the agent that resolved settings ask for, see `agents.make_agent`.

  Raises:
    ConfigError: if the algorithm or the network does not fit the environments.
  """
  is_impala = not config.is_off_policy
  return agents.make_agent(
      config.agent, spec.observation, spec.action,
      _make_head(config, spec.action),
      hidden_sizes=config.layer_sizes,
      activation='tanh' if is_impala else 'relu',
      layer_norm=config.layer_norm,
      is_dueling=config.algorithm == 'ddqn' and config.dueling,
      has_baseline=is_impala, has_epsilon=not is_impala,
      use_lstm=bool(config.use_lstm),
      use_last_action_reward=bool(config.use_last_action_reward),
      use_instruction=config.use_instruction, seed=seed)


def make(config: Config, spec: structs.EnvironmentSpec,
         seed: int) -> base.Algorithm:
  """Makes the algorithm that resolved settings ask for, with its agent.

  Raises:
    ConfigError: if it does not fit the environments, or a setting is not for
      their actions.
  """
  config.check_actions('continuous' if spec.action.size else 'discrete')
  # Critics of off-policy algorithms, which alone have it, see continuous
  # actions.
  if config.layer_norm and not agents.has_dense_layers(
      config.agent, spec.observation, bool(spec.action.size)):
    raise errors.ConfigError(
        '--layer_norm has no effect: no network has dense layers besides those '
        'of frames.')
  agent = functools.partial(make_agent, config, spec, seed)
  critic = lambda number: agents.make_critic(
      config.agent, spec.observation, spec.action,
      hidden_sizes=config.layer_sizes, activation='relu',
      layer_norm=config.layer_norm, seed=(seed + 1 + number) % 2**31)
  if config.algorithm == 'impala':
    num_steps = config.batch_size * config.unroll_length
    return impala.Impala(
        agent(), config, 1 / num_steps if config.reduction == 'mean' else 1.0)
  if config.algorithm == 'ddqn':
    return ddqn.Ddqn(
        agent, config,
        config.exploration_fraction * config.total_environment_frames)
  if config.algorithm == 'ddpg':
    return ddpg.Ddpg(agent, critic, config)
  if config.algorithm == 'td3':
    return td3.Td3(agent, critic, config)
  if config.algorithm == 'sac':
    return sac.Sac(agent, critic, config)
  return mpo.Mpo(agent, critic, config)


def _make_head(config: Config, spec: structs.ActionSpec) -> heads.Head:
  if config.algorithm == 'impala':
    return heads.policy(spec, config.squash_actions)
  if config.algorithm == 'ddqn':
    return ddqn.make_head(spec)
  if config.algorithm == 'ddpg':
    return ddpg.make_head(spec, config)
  if config.algorithm == 'td3':
    return td3.make_head(spec, config)
  if config.algorithm == 'sac':
    return sac.make_head(spec)
  return mpo.make_head(spec, config)


def describe(config: Config, spec: structs.EnvironmentSpec) -> str:
  """Returns a line that is equal for agents that can exchange weights."""
  observation = spec.observation
  shapes = ({name: entry.shape for name, entry in observation.items()}
            if isinstance(observation, dict) else observation.shape)
  actions = (f'{spec.action.num_values[0]} actions'
             if len(spec.action.num_values) == 1
             else base.in_words(spec.action))
  if spec.action.size and not config.is_off_policy:
    actions += ', squashed' if config.squash_actions else ', not squashed'
  seen = f'observations {shapes}, {actions}, {config.optimizer}'
  if config.is_off_policy:
    return (f'{config.algorithm}, {config.agent}, {config.hidden_sizes}, '
            f'{"layer_norm, " if config.layer_norm else ""}'
            f'{"dueling, " if config.dueling else ""}'
            f'{"use_lstm, " if config.use_lstm else ""}'
            f'{"last action, " if config.use_last_action_reward else ""}'
            f'{"" if config.use_instruction else "use_instruction=False, "}'
            f'{"exact temperature, " if config.exact_temperature else ""}'
            f'{config.num_critics or 1} critics, {seen}')
  return (f'{config.agent}, use_lstm={config.use_lstm}, '
          f'use_last_action_reward={config.use_last_action_reward}, '
          f'{"" if config.use_instruction else "use_instruction=False, "}'
          f'{seen}')
