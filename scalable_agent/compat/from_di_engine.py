# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Converts a configuration of DI-engine's `IMPALAPolicy`.

docs/migrating_di_engine.md explains the flags.
"""

from collections.abc import Mapping

from scalable_agent import errors
from scalable_agent.compat import converted
from scalable_agent.compat import expressions
from scalable_agent.compat import reading
from scalable_agent.compat.converted import number

# The behaviour that no key of a configuration changes, and the defaults.
_FLAGS: dict[str, object] = {
    'reduction': 'mean', 'learning_rate_schedule': 'constant',
    'reward_clipping': 'none', 'use_lstm': 'false',
    'use_last_action_reward': 'false', 'optimizer': 'adam', 'epsilon': 1e-8,
    'unroll_length': 32, 'updates_per_collect': 4, 'batch_size': 16,
    'learning_rate': 0.0005, 'baseline_cost': 1.0, 'entropy_cost': 0.0001,
    'discounting': 0.99, 'lambda_': 0.95, 'replay_capacity': 1000,
    'max_use': 16, 'hidden_sizes': '128,128,64', 'test_greedy': 'true'}
_ONE_LEVEL = 'The level defines the observations and the actions.'
_EVALUATION = 'Evaluations have --eval_num_episodes and --eval_every_frames.'
_HEADS = ('Actor and critic share the layers of --hidden_sizes, and have no '
          'layers of their own.')
_FRAMES = ('For frames, --agent=nature has convolutions of the same kernels '
           'and strides, with 32, 64 and 64 channels, and 512 features.')
_SAME_UNROLLS = 'DI-engine reads policy.unroll_len.'
_SAME_DISCOUNT = 'DI-engine reads policy.learn.discount_factor.'
_BUFFER = 'policy.other.replay_buffer'
_PRIORITIES = ('policy.priority', 'policy.priority_IS_weight')
_END = 'A run ends after --total_environment_frames.'
_CLIPS = {'clip_norm': 'clip_gradient_norm',
          'clip_value': 'clip_gradient_value'}
_PIPELINE = ('input_cfg', 'seed', 'env_setting', 'model', 'max_train_iter',
             'max_env_step', 'dynamic_seed')


def _optimizer(value: expressions.Value) -> dict[str, object]:
  return {'optimizer': {'adam': 'adam', 'rmsprop': 'torch_rmsprop'}[str(value)]}


def _sizes(value: expressions.Value) -> dict[str, object]:
  if not isinstance(value, list):
    raise ValueError(value)
  return {'hidden_sizes': ','.join(str(int(number(x))) for x in value)}


def _priority(value: expressions.Value) -> dict[str, object]:
  return {'selector': 'prioritised', 'priority_exponent': 0.6,
          'importance_exponent': 0.0, 'importance_exponent_end': 0.0
          } if value else {}


def _importance(value: expressions.Value) -> dict[str, object]:
  return {'importance_exponent': 0.4, 'importance_exponent_end': 1.0
          } if value else {}


def _sigma(value: expressions.Value) -> dict[str, object]:
  return {'scale_from_state': {'independent': 'false',
                               'conditioned': 'true'}[str(value)]}


def _action_space(value: expressions.Value) -> dict[str, object]:
  flags: dict[str, dict[str, object]] = {
      'discrete': {}, 'continuous': {
          'squash_actions': 'false', 'scale_from_state': 'false'}}
  return flags[str(value)]


_RULES: dict[str, converted.Rule] = {
    'exp_name': 'The directory of a run is --logdir.',
    'env.env_id': converted.level,
    'env.collector_env_num': 'num_actors',
    'env.n_evaluator_episode': 'eval_num_episodes',
    'env.evaluator_env_num': _EVALUATION,
    'env.stop_value': _END,
    'env.frame_stack': converted.FRAME_STACK,
    'env.rew_clip': 'DI-engine raises the rewards of BipedalWalker to -10 at '
                    'least: do this in a wrapper of the environment.',
    'env.act_scale': 'Continuous actions always have the range of the level.',
    'env.replay_path': 'Videos are recorded with --mode=video.',
    'policy.type': lambda value: {},
    'policy.cuda': 'TensorFlow takes a GPU if there is one.',
    'policy.on_policy': 'IMPALA is off-policy.',
    'policy.priority': _priority,
    'policy.priority_IS_weight': _importance,
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
    f'{_BUFFER}.replay_buffer_size': 'replay_capacity',
    f'{_BUFFER}.max_use': 'max_use',
    f'{_BUFFER}.alpha': 'priority_exponent',
    f'{_BUFFER}.beta': 'importance_exponent',
    f'{_BUFFER}.sliced': 'Unrolls are stored as they were made.',
    f'{_BUFFER}.type': lambda value: {
        'advanced': {}, 'naive': {}}[str(value)]}
_PIPELINE_RULES: dict[str, converted.Rule] = {
    'seed': 'seed',
    'env_setting': 'The environments are those of --level_name.',
    'model': 'Choose a network with --agent.',
    'max_train_iter': _END,
    'dynamic_seed': 'Environments get their seeds from --seed.'}


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


def _convert(settings: dict[str, expressions.Value],
             create: Mapping[str, expressions.Value], calls: list[reading.Call]
             ) -> converted.Converted:
  clip_type = settings.pop('policy.learn.grad_clip_type', None)
  clip_value = settings.pop('policy.learn.clip_value', None)
  eval_freq = settings.pop('policy.eval.evaluator.eval_freq', None)
  result = converted.Converted(dict(_FLAGS))
  flags = result.flags
  if settings.get('policy.model.action_space') == 'continuous':
    settings.pop('policy.action_space', None)
  sigma = settings.pop('policy.model.sigma_type', None)
  if 'replay_buffer.type' in create:
    settings[f'{_BUFFER}.type'] = create['replay_buffer.type']
  if settings.get(f'{_BUFFER}.type') == 'naive':
    flags.pop('max_use')
  # The exponents of a buffer count more than the defaults of priorities.
  result.apply(dict.fromkeys(_PRIORITIES) | settings,
               _RULES | _buffer_rules(settings))
  # The type of sigma counts more than the default of continuous actions.
  result.apply({'policy.model.sigma_type': sigma}, _RULES if (
      'scale_from_state' in flags) else {
          'policy.model.sigma_type': 'Only continuous actions have a sigma.'})
  if 'unrolls_per_collect' not in flags:
    for name in ('updates_per_collect', 'max_use'):
      flags.pop(name, None)
    result.notes['policy.collect.n_sample'] = (
        'There is no number: choose --unrolls_per_collect, '
        '--updates_per_collect and --max_use.')
  level = str(flags.get('level_name', ''))
  if not level:
    result.notes['env'] = 'The file names no level: add --level_name=ID.'
  flags['num_action_repeats'] = repeats = 4 if level.startswith('ALE/') else 1
  shape = settings.get('policy.model.obs_shape')
  if level.startswith('ALE/'):
    del flags['hidden_sizes']
    flags |= {'agent': 'nature', 'reward_clipping': 'abs_one',
              'fire_on_reset': 'true'}
  if level.startswith('ALE/') or isinstance(shape, list) and len(shape) == 3:
    result.notes['policy.model.encoder_hidden_size_list'] = _FRAMES
  _add_clip(result, clip_type, clip_value)
  _add_evaluations(result, eval_freq, repeats)
  for call in calls:
    if call.function.rpartition('.')[-1].startswith('serial_pipeline'):
      arguments = call.named(_PIPELINE)
      arguments.pop('input_cfg', None)
      result.apply(arguments, _PIPELINE_RULES | {
          'max_env_step': lambda value: {
              'total_environment_frames': int(number(value)) * repeats}})
  return result


def _buffer_rules(settings: Mapping[str, expressions.Value]
                  ) -> dict[str, converted.Rule]:
  """Returns the rules of settings without effect on the buffer."""
  rules: dict[str, converted.Rule] = {}
  if settings.get(f'{_BUFFER}.type') == 'naive':
    rules[f'{_BUFFER}.max_use'] = (
        "DI-engine's naive buffer ignores this setting.")
  unset = [name for name in _PRIORITIES if not settings.get(name)
           or isinstance(settings[name], expressions.Unknown)]
  if 'policy.priority_IS_weight' in unset:
    rules[f'{_BUFFER}.beta'] = (
        'Without policy.priority_IS_weight, the loss has no weights.')
  if 'policy.priority' in unset:
    rules['policy.priority_IS_weight'] = rules[f'{_BUFFER}.alpha'] = rules[
        f'{_BUFFER}.beta'] = (
            'Without policy.priority, all unrolls have the same priority.')
  return rules


def _add_evaluations(result: converted.Converted, eval_freq: expressions.Value,
                     repeats: int) -> None:
  """Adds the frames between evaluations, for `eval_freq` in updates."""
  flags = result.flags
  try:
    freq, per_collect, length, updates = (int(number(x)) for x in (
        eval_freq, *map(flags.get, ('unrolls_per_collect', 'unroll_length',
                                    'updates_per_collect'))))
    frames = freq * per_collect * length * repeats // updates
    if frames <= 0:
      raise ValueError
    flags['eval_every_frames'] = frames
  except (ArithmeticError, ValueError):
    if flags.pop('eval_num_episodes', None) is not None:
      result.notes['env.n_evaluator_episode'] = _EVALUATION
    result.apply({'policy.eval.evaluator.eval_freq': eval_freq},
                 {'policy.eval.evaluator.eval_freq': _EVALUATION})


def _add_clip(result: converted.Converted, clip_type: expressions.Value,
              clip_value: expressions.Value) -> None:
  """Adds the flag of the clip of gradients, which goes with adam only."""
  kind, value = 'policy.learn.grad_clip_type', 'policy.learn.clip_value'
  result.apply({kind: clip_type}, {
      kind: 'DI-engine ignores this setting with rmsprop.'
      if result.flags['optimizer'] != 'adam'
      else lambda clip: {_CLIPS[str(clip)]: 0.5}})
  result.apply({value: clip_value}, {value: next(
      (flag for flag in _CLIPS.values() if flag in result.flags),
      'Gradients are clipped only if grad_clip_type is clip_norm or '
      'clip_value, and optim is adam.')})
