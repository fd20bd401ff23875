# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Converts a configuration of DI-engine's `IMPALAPolicy`.

docs/migrating_di_engine.md explains the flags.
"""

from collections.abc import Mapping
import re

from scalable_agent import errors
from scalable_agent.compat import converted
from scalable_agent.compat import reading
from scalable_agent.compat.converted import number

# The behaviour that no key of a configuration changes, and the defaults.
_FLAGS: dict[str, object] = {
    'reduction': 'mean', 'learning_rate_schedule': 'constant',
    'reward_clipping': 'none', 'use_lstm': 'false',
    'use_last_action_reward': 'false', 'optimizer': 'adam', 'epsilon': 1e-8,
    'unroll_length': 32, 'updates_per_collect': 4, 'batch_size': 16,
    'learning_rate': 0.0005, 'baseline_cost': 1.0, 'entropy_cost': 0.0001,
    'discounting': 0.99, 'lambda_': 0.95, 'replay_capacity': 1000}
_ONE_LEVEL = 'The level defines the observations and the actions.'
_EVALUATION = 'Evaluations have --eval_num_episodes and --eval_every_frames.'
_HEADS = ('Actor and critic share the layers of --hidden_sizes, and have no '
          'layers of their own.')
_SAME_UNROLLS = 'DI-engine reads policy.unroll_len.'
_SAME_DISCOUNT = 'DI-engine reads policy.learn.discount_factor.'
_OLD_ATARI = re.compile(r'(\w+?)(NoFrameskip|Deterministic)?-v[04]')
_NEW_VERSIONS = {'LunarLander-v2': 'LunarLander-v3',
                 'LunarLanderContinuous-v2': 'LunarLanderContinuous-v3',
                 'CartPole-v0': 'CartPole-v1'}


def _level(value: reading.Value) -> dict[str, object]:
  name = str(value)
  if name in _NEW_VERSIONS:
    return {'level_name': _NEW_VERSIONS[name]}
  match = _OLD_ATARI.fullmatch(name)
  is_atari = bool(match and match[2])
  return {'level_name': f'ALE/{match[1]}-v5' if match and is_atari else name}


def _optimizer(value: reading.Value) -> dict[str, object]:
  return {'optimizer': {'adam': 'adam', 'rmsprop': 'torch_rmsprop'}[str(value)]}


def _sizes(value: reading.Value) -> dict[str, object]:
  if not isinstance(value, list):
    raise ValueError(value)
  return {'hidden_sizes': ','.join(str(int(number(x))) for x in value)}


def _priority(value: reading.Value) -> dict[str, object]:
  return {'selector': 'prioritised', 'priority_exponent': 0.6,
          'importance_exponent': 0.4} if value else {}


def _sigma(value: reading.Value) -> dict[str, object]:
  return {'scale_from_state': {'independent': 'false',
                               'conditioned': 'true'}[str(value)]}


def _action_space(value: reading.Value) -> dict[str, object]:
  return {'squash_actions': 'false', 'scale_from_state': 'false'} if (
      value == 'continuous') else {}


_RULES: dict[str, converted.Rule] = {
    'exp_name': 'The directory of a run is --logdir.',
    'env.env_id': _level,
    'env.collector_env_num': 'num_actors',
    'env.n_evaluator_episode': 'eval_num_episodes',
    'env.evaluator_env_num': _EVALUATION,
    'env.stop_value': 'A run ends after --total_environment_frames.',
    'env.frame_stack': 'Atari games have four frames in an observation, and '
                       'no other level stacks frames.',
    'env.rew_clip': 'Rewards are clipped with --reward_clipping=abs_one, to '
                    '[-1, 1]; other clips belong into the environment.',
    'env.act_scale': 'Continuous actions always have the range of the level.',
    'env.replay_path': 'Videos are recorded with --mode=video.',
    'policy.type': lambda value: {},
    'policy.cuda': 'TensorFlow takes a GPU if there is one.',
    'policy.on_policy': 'IMPALA is off-policy.',
    'policy.priority': _priority,
    'policy.priority_IS_weight': 'Importance weights always go with '
                                 'priorities, see --importance_exponent.',
    'policy.action_space': _action_space,
    'policy.unroll_len': 'unroll_length',
    'policy.learn.unroll_len': _SAME_UNROLLS,
    'policy.collect.unroll_len': _SAME_UNROLLS,
    'policy.discount_factor': _SAME_DISCOUNT,
    'policy.collect.discount_factor': _SAME_DISCOUNT,
    'policy.collect.gae_lambda': "IMPALA's policy has no use for this setting.",
    'policy.nstep': "IMPALA's policy has no use for this setting.",
    'policy.random_collect_size': 'The untrained policy acts from the first '
                                  'step on.',
    'policy.transition_with_policy_data': 'The untrained policy acts from the '
                                          'first step on.',
    'policy.load_path': 'A run resumes from its --logdir.',
    'policy.model.action_space': _action_space,
    'policy.model.obs_shape': _ONE_LEVEL,
    'policy.model.action_shape': _ONE_LEVEL,
    'policy.model.encoder_hidden_size_list': _sizes,
    'policy.model.sigma_type': _sigma,
    'policy.model.bound_type': 'The mean of a Gaussian is not bounded.',
    'policy.model.actor_head_hidden_size': _HEADS,
    'policy.model.actor_head_layer_num': _HEADS,
    'policy.model.critic_head_hidden_size': _HEADS,
    'policy.model.critic_head_layer_num': _HEADS,
    'policy.learn.update_per_collect': 'updates_per_collect',
    'policy.learn.batch_size': 'batch_size',
    'policy.learn.learning_rate': 'learning_rate',
    # The loss here has a factor of 1/2.
    'policy.learn.value_weight': lambda value: {
        'baseline_cost': 2 * number(value)},
    'policy.learn.entropy_weight': 'entropy_cost',
    'policy.learn.discount_factor': 'discounting',
    'policy.learn.lambda_': 'lambda_',
    'policy.learn.rho_clip_ratio': 'clip_rho',
    'policy.learn.c_clip_ratio': 'clip_c',
    'policy.learn.rho_pg_clip_ratio': 'clip_pg_rho',
    'policy.learn.optim': _optimizer,
    'policy.learn.multi_gpu': 'Several GPUs need --num_learners.',
    'policy.collect.n_sample': 'unrolls_per_collect',
    'policy.collect.n_episode': 'Unrolls have one length, and continue across '
                                'the ends of episodes.',
    'policy.collect.collector.collect_print_freq':
        'Progress is printed every --progress_secs.',
    'policy.other.replay_buffer.replay_buffer_size': 'replay_capacity',
    'policy.other.replay_buffer.max_use': 'max_use',
    'policy.other.replay_buffer.type': lambda value: {}}


def convert(file: reading.File) -> converted.Converted | None:
  """Returns flags and notes; None if the file has no configuration.

  Raises ConfigError for the configuration of another policy.
  """
  dictionaries = [value for value in file.values.values()
                  if isinstance(value, Mapping) and isinstance(
                      value.get('policy'), Mapping)]
  main = [value for value in dictionaries
          if {'learn', 'collect'} & value['policy'].keys()]
  if not main:
    return None
  create = next((v for v in dictionaries if 'type' in v['policy']
                 and v not in main), {'policy': {'type': 'impala'}})
  kind = main[-1]['policy'].get('type', create['policy']['type'])
  if kind != 'impala':
    raise errors.ConfigError(
        f"The file configures DI-engine's policy {kind}; only impala can be "
        'converted. docs/migrating_di_engine.md names the other algorithms.')
  return _convert(reading.flat(main[-1]), reading.flat(create), file.calls)


def _convert(settings: dict[str, reading.Value],
             create: Mapping[str, reading.Value], calls: list[reading.Call]
             ) -> converted.Converted:
  clip_type = settings.pop('policy.learn.grad_clip_type', None)
  clip_value = settings.pop('policy.learn.clip_value', 0.5)
  eval_freq = settings.pop('policy.eval.evaluator.eval_freq', None)
  result = converted.Converted(dict(_FLAGS))
  if settings.get('policy.model.action_space') == 'continuous':
    settings.pop('policy.action_space', None)
  sigma = settings.pop('policy.model.sigma_type', None)
  result.apply(settings, _RULES)
  # The type of sigma counts more than the default of continuous actions.
  result.apply({'policy.model.sigma_type': sigma}, _RULES)
  if create.get('replay_buffer.type') == 'naive' and (
      result.flags.pop('max_use', None)):
    result.notes['policy.other.replay_buffer.max_use'] = (
        "DI-engine's naive buffer ignores this setting.")
  flags = result.flags
  if 'unrolls_per_collect' not in flags:
    for name in ('updates_per_collect', 'max_use'):
      flags.pop(name, None)
    result.notes['policy.collect.n_sample'] = (
        'There is no number: choose --unrolls_per_collect and '
        '--updates_per_collect.')
  level = str(flags.get('level_name', ''))
  if not level:
    result.notes['env'] = 'The file names no level: add --level_name=ID.'
  flags['num_action_repeats'] = repeats = 4 if level.startswith('ALE/') else 1
  _add_clip(result, clip_type, clip_value)
  _add_evaluations(result, eval_freq, repeats)
  for call in calls:
    if call.function.startswith('serial_pipeline'):
      steps = call.arguments.get('max_env_step')
      result.apply({'seed': call.arguments.get('seed', 1)}, {'seed': 'seed'})
      if isinstance(steps, (int, float)):
        flags['total_environment_frames'] = int(steps) * repeats
  return result


def _add_evaluations(result: converted.Converted, eval_freq: reading.Value,
                     repeats: int) -> None:
  """Adds the frames between evaluations, for `eval_freq` in updates."""
  flags = result.flags
  sizes = [eval_freq, *(flags.get(name) for name in (
      'unrolls_per_collect', 'unroll_length', 'updates_per_collect'))]
  if all(isinstance(x, int) and x > 0 for x in sizes):
    freq, per_collect, length, updates = (int(number(x)) for x in sizes)
    flags['eval_every_frames'] = (
        freq * per_collect * length * repeats // updates)
  elif flags.pop('eval_num_episodes', None):
    result.notes['env.n_evaluator_episode'] = _EVALUATION


def _add_clip(result: converted.Converted, clip_type: reading.Value,
              clip_value: reading.Value) -> None:
  """Adds the flag of the clip of gradients, which goes with adam only."""
  kinds = {'clip_norm': 'clip_gradient_norm',
           'clip_value': 'clip_gradient_value'}
  if result.flags['optimizer'] != 'adam' and clip_type:
    result.notes['policy.learn.grad_clip_type'] = (
        'DI-engine ignores this setting with rmsprop.')
  elif clip_type in kinds:
    result.apply({'policy.learn.clip_value': clip_value},
                 {'policy.learn.clip_value': kinds[str(clip_type)]})
  elif clip_type:
    result.notes['policy.learn.grad_clip_type'] = (
        'There are clip_norm and clip_value only.')
