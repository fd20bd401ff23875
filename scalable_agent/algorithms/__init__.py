# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Learning rules; `--algorithm` selects one.

*   `impala`: V-trace actor-critic, from new unrolls. Any actions.
*   `appo`: the same with the clip of PPO, in several passes. Any actions.
*   `ddqn`: deep Q-learning. Discrete actions.
*   `ddpg`, `td3`: deterministic policies. Continuous actions.
*   `sac`, `mpo`: stochastic policies. Continuous or discrete actions.

All but the first two learn from a replay of transitions, or with an LSTM of
sequences.
"""

from collections.abc import Callable
import functools

import numpy as np
from scalable_agent import errors
from scalable_agent.algorithms import appo
from scalable_agent.algorithms import base
from scalable_agent.algorithms import ddpg
from scalable_agent.algorithms import ddqn
from scalable_agent.algorithms import impala
from scalable_agent.algorithms import mpo
from scalable_agent.algorithms import sac
from scalable_agent.algorithms import td3
from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.networks import critics
from scalable_agent.networks import factory
from scalable_agent.networks import heads
from scalable_agent.networks import instructions
from scalable_agent.networks import masks
from scalable_agent.networks import normalisers
from scalable_agent.scores import levels
from scalable_agent.settings import declare
from scalable_agent.settings import values
from scalable_agent.settings.config import Config

_ACTOR_CRITICS: dict[str, Callable[
    [base.MakeAgent, base.MakeCritic, Config], base.Algorithm]] = {
        'ddpg': ddpg.Ddpg, 'td3': td3.Td3, 'sac': sac.Sac, 'mpo': mpo.Mpo}
_HEADS: dict[str, Callable[[structs.ActionSpec, Config], heads.Head]] = {
    'impala': lambda spec, config: heads.policy(
        spec, bool(config.squash_actions)),
    'appo': lambda spec, config: heads.policy(
        spec, bool(config.squash_actions), config.initial_scale),
    'ddqn': lambda spec, config: ddqn.make_head(spec),
    'ddpg': ddpg.make_head,
    'td3': td3.make_head,
    'sac': lambda spec, config: sac.make_head(spec),
    'mpo': mpo.make_head}


def make_agent(config: Config, spec: structs.EnvironmentSpec, seed: int,
               normaliser: normalisers.ObservationNormaliser | None = None
               ) -> agents.Agent:
  """Makes the agent for resolved settings, see `factory.make_agent`.

  Agents share a given `normaliser`; None for a normaliser by the settings.
  Raises ConfigError if the agent does not fit the environments.
  """
  is_impala = not config.is_off_policy
  return factory.make_agent(
      config.agent, spec.observation, spec.action,
      _HEADS[config.algorithm](spec.action, config),
      hidden_sizes=config.layer_sizes,
      activation='tanh' if is_impala else 'relu',
      layer_norm=config.layer_norm,
      is_dueling=config.algorithm == 'ddqn' and config.dueling,
      has_baseline=is_impala, has_epsilon=not is_impala,
      use_lstm=bool(config.use_lstm), core=config.core,
      lstm_units=declare.used(config.lstm_units),
      has_critics=config.algorithm in declare.WITH_CRITICS,
      use_last_action_reward=bool(config.use_last_action_reward),
      use_instruction=config.use_instruction,
      observation_normaliser=normaliser or _make_normaliser(config, spec),
      normalise_returns=bool(config.normalise_returns),
      return_levels=_return_levels(config),
      policy_scale=.01 if config.algorithm == 'appo' else 1.,
      scale_from_state=config.scale_from_state is not False,
      separate_baseline=config.separate_baseline, seed=seed)


def make(config: Config, spec: structs.EnvironmentSpec,
         seed: int) -> base.Algorithm:
  """Makes the algorithm for resolved settings, with the agent.

  Raises ConfigError if a setting does not fit the environments, or if the
  algorithm has no branch here.
  """
  config.check_actions('continuous' if spec.action.size else 'discrete')
  if config.is_off_policy and not config.use_lstm and instructions.split(
      spec.observation)[1] is not None:
    raise errors.EnvironmentSpecError(
        f'With --algorithm={config.algorithm}, an agent sees instructions only '
        'with --use_lstm: use this flag, or wrap the environment.')
  has_features = base.critics_share_memory(config, config.algorithm)
  if config.layer_norm and not base.has_dense_layers(
      config, config.algorithm, spec):
    raise errors.ConfigError(
        '--layer_norm has no effect: no network has dense layers besides those '
        'of frames.')
  normaliser = _make_normaliser(config, spec)
  agent = functools.partial(make_agent, config, spec, seed, normaliser)

  def critic(owner: agents.Agent, number: int) -> critics.Critic:
    return factory.make_critic(
        'mlp' if has_features else config.agent,
        structs.ArraySpec((owner.num_features,), np.dtype(np.float32))
        if has_features else spec.observation, spec.action,
        hidden_sizes=config.layer_sizes, activation='relu',
        layer_norm=config.layer_norm, seed=(seed + 1 + number) % 2**31,
        observation_normaliser=None if has_features else normaliser)

  if not config.is_off_policy:
    num_steps = config.batch_size * config.unroll_length
    scale = 1 / num_steps if config.reduction == 'mean' else 1.0
    if config.algorithm == 'impala':
      return impala.Impala(agent(), config, scale)
    if config.algorithm == 'appo':
      online, period = agent(), config.target_policy_period
      has_kl = config.learning_rate_schedule == 'kl'
      return appo.Appo(online, config, scale, base.TargetPolicy(
          make_agent(config, spec, seed), online, period) if period else None,
                       logs_policy_kl=has_kl or bool(period))
  if config.algorithm == 'ddqn':
    return ddqn.Ddqn(
        agent, config,
        config.exploration_fraction * config.total_environment_frames)
  if config.algorithm in _ACTOR_CRITICS:
    return _ACTOR_CRITICS[config.algorithm](agent, critic, config)
  raise errors.ConfigError(
      f'--algorithm={config.algorithm} has no branch in `algorithms.make`.')


def describe(config: Config, spec: structs.EnvironmentSpec) -> str:
  """Returns a description, equal for agents with exchangeable weights."""
  observation = spec.observation
  has_mask = masks.of(observation) is not None
  shapes = ({name: entry.shape for name, entry in observation.items()
             if not (has_mask and name == masks.NAME)}
            if isinstance(observation, dict) else observation.shape)
  actions = (f'{spec.action.num_values[0]} actions'
             if len(spec.action.num_values) == 1
             else base.in_words(spec.action))
  if has_mask:
    actions += ' with a mask'
  if spec.action.size and not config.is_off_policy:
    actions += ', squashed' if config.squash_actions else ', not squashed'
  if spec.action.size and config.scale_from_state is False:
    actions += ', scale_from_state=False'
  seen = f'observations {shapes}, {actions}, {config.optimizer}'
  seen += ', rate by KL' if config.learning_rate_schedule == 'kl' else ''
  seen += ', target policy' if config.target_policy_period else ''
  normalised = _normalised_parts(config, observation)
  units = '' if not config.use_lstm else (
      f'{config.core}, ' if config.core != 'lstm' else '') + (
          f'{config.lstm_units} units, ' if config.lstm_units != 256 else '')
  if config.is_off_policy:
    return (f'{config.algorithm}, {config.agent}, {config.hidden_sizes}, '
            f'{"layer_norm, " if config.layer_norm else ""}'
            f'{"dueling, " if config.dueling else ""}'
            f'{"use_lstm, " if config.use_lstm else ""}{units}'
            f'{"last action, " if config.use_last_action_reward else ""}'
            f'{"" if config.use_instruction else "use_instruction=False, "}'
            f'{"exact temperature, " if config.exact_temperature else ""}'
            f'{config.num_critics or 1} critics, {normalised}{seen}')
  if config.normalise_returns:
    # A suite is one name.
    names = sorted(set(values.names(config.level_name)))
    normalised += 'normalise_returns' + (
        f' of {",".join(names)}, ' if _return_levels(config) else ', ')
  return (f'{config.agent}, use_lstm={config.use_lstm}, '
          f'{units}use_last_action_reward={config.use_last_action_reward}, '
          f'{"" if config.use_instruction else "use_instruction=False, "}'
          f'{"separate_baseline, " if config.separate_baseline else ""}'
          f'{normalised}{seen}')


def _return_levels(config: Config) -> list[str]:
  """Returns the sorted levels of the training; nothing for one level."""
  names = sorted(set(levels.level_names(config.level_name, is_test=False)))
  return names if len(names) > 1 else []


def _make_normaliser(
    config: Config, spec: structs.EnvironmentSpec
) -> normalisers.ObservationNormaliser | None:
  seen, _ = instructions.split(spec.observation)
  return normalisers.choose(
      config.normalise_observations or 'none', seen, config.agent,
      levels.are_stacked(config.level_name, config.is_test))


def _normalised_parts(
    config: Config, observation: structs.ObservationSpec) -> str:
  """Returns the parts of observations that an agent normalises, in words.

  `auto`, and a list of the same names in any order, have the same words.
  """
  seen, _ = instructions.split(observation)
  names, automatic = (
      normalisers.part_names(asked, seen, config.agent)
      for asked in (config.normalise_observations or 'none', 'auto'))
  text = 'auto' if names == automatic else ','.join(names)
  return f'normalise_observations={text}, ' if names else ''
