# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Converts arguments of PyTorchRL's `create_factory`.

docs/migrating_pytorchrl.md explains the flags, and has the defaults.
"""

from collections.abc import Mapping

from scalable_agent.compat import converted
from scalable_agent.compat import reading
from scalable_agent.compat.converted import number

_ALGORITHMS = ('DDQN', 'DDPG', 'TD3', 'SAC', 'MPO')
_STORAGES = ('ReplayBuffer', 'NStepReplayBuffer', 'PERBuffer', 'EREBuffer',
             'HERBuffer')
_DEFAULTS: dict[str, reading.Value] = {
    'lr_q': 1e-4, 'lr_pi': 1e-4, 'gamma': 0.99, 'polyak': 0.995,
    'num_updates': 50, 'update_every': 50, 'test_every': 5000,
    'start_steps': 1000, 'max_grad_norm': 0.5, 'mini_batch_size': 64,
    'num_test_episodes': 5, 'target_update_interval': 1}
_OWN_DEFAULTS: dict[str, dict[str, reading.Value]] = {
    'DDQN': {'lr': 1e-4, 'start_steps': 20000, 'initial_epsilon': 1.0,
             'epsilon_decay': 0.999},
    'DDPG': {'lr_q': 1e-3},
    'TD3': {'mini_batch_size': 100},
    'SAC': {'lr_alpha': 1e-4, 'initial_alpha': 1.0},
    'MPO': {'max_grad_norm': 0.1, 'dual_constraint': 0.1,
            'kl_mean_constraint': 0.01, 'kl_var_constraint': 1e-4,
            'sample_action_num': 64}}
_FLAGS: dict[str, object] = {
    'hidden_sizes': '256,256,256', 'num_action_repeats': 1}
_OWN_FLAGS: dict[str, dict[str, object]] = {
    'DDQN': {'double_q': 'false'}, 'DDPG': {}, 'TD3': {}, 'SAC': {},
    'MPO': {'exact_temperature': 'true'}}
_MULTIPLIER = 'Multipliers are learned by gradient, as in acme.'
_RULES: dict[str, converted.Rule] = {
    'lr': 'learning_rate',
    'lr_pi': 'learning_rate',
    'lr_q': 'critic_learning_rate',
    'lr_alpha': 'temperature_learning_rate',
    'gamma': 'discounting',
    'polyak': lambda value: {
        'target_update_rate': round(1 - number(value), 12)},
    'start_steps': 'min_replay_steps',
    'mini_batch_size': 'batch_size',
    'max_grad_norm': 'clip_gradient_norm',
    'target_update_interval': 'target_update_period',
    'num_test_episodes': 'eval_num_episodes',
    'initial_epsilon': 'exploration_epsilon_begin',
    'epsilon_decay': 'exploration_decay',
    'initial_alpha': 'initial_temperature',
    'target_entropy': 'Divide the number by the parts of an action, for '
                      '--target_entropy_per_part.',
    'dual_constraint': 'epsilon_temperature',
    'kl_mean_constraint': 'epsilon_mean',
    'kl_var_constraint': 'epsilon_scale',
    'kl_constraint': 'For discrete actions, this is --epsilon_mean.',
    'sample_action_num': 'num_samples',
    'alpha_scale': _MULTIPLIER, 'alpha_mean_scale': _MULTIPLIER,
    'alpha_var_scale': _MULTIPLIER, 'alpha_mean_max': _MULTIPLIER,
    'alpha_var_max': _MULTIPLIER, 'alpha_max': _MULTIPLIER,
    'mstep_iterations': _MULTIPLIER,
    'reward_scaling': 'reward_scale',
    'policy_loss_addons': 'Write the term as a function of the agent and the '
                          'data, and name the function with '
                          '--addon=module:function.'}
_ACTOR_RULES: dict[str, converted.Rule] = {
    'noise': lambda value: {'exploration_noise': {
        'Gauss': 0.1, 'NoNoise': 0.0}[str(value)]},
    'num_critics': 'num_critics',
    'restart_model': 'A run resumes from its --logdir.',
    'recurrent_net': 'An LSTM comes with --use_lstm.',
    'recurrent_nets': 'An LSTM comes with --use_lstm.',
    'recurrent_net_kwargs': 'The LSTM has --lstm_units; the default is 256 '
                            'with ddqn, else 128.',
    'sequence_overlap': 'With --use_lstm, sequences of --sequence_length '
                        'begin every --unroll_length steps: half of the length '
                        'for 0.5.',
    'obs_feature_extractor': 'Choose a network with --agent.',
    'obs_feature_extractor_kwargs': 'Choose a network with --agent.',
    'act_feature_extractor': 'A critic sees action and observation.',
    'act_feature_extractor_kwargs': 'A critic sees action and observation.',
    'common_feature_extractor': 'Choose layers with --hidden_sizes.',
    'common_feature_extractor_kwargs': 'Choose layers with --hidden_sizes.'}
_STORAGE_RULES: dict[str, converted.Rule] = {
    'n_step': 'n_step',
    'epsilon': lambda value: {'priority_epsilon': number(value) or 1e-6},
    'alpha': 'priority_exponent',
    'beta': 'importance_exponent',
    'default_error': 'New steps get the largest priority so far.',
    'eta': 'recent_eta',
    'cmin': 'recent_min_steps',
    'her_function': 'Choose goals with --hindsight; the environment computes '
                    'the rewards.'}
_ENVIRONMENT_RULES: dict[str, converted.Rule] = {
    'env_fn': 'Register the environment with gymnasium, and name the id with '
              '--level_name.',
    'log_dir': 'The directory of a run is --logdir.',
    'info_keywords': 'Values of info are not written.',
    'env_id': 'level_name'}


def convert(file: reading.File) -> converted.Converted | None:
  """Returns flags and notes; None if no algorithm is made in the file."""
  found = _factories(file.calls)
  name = next((name for name in _ALGORITHMS if name in found), None)
  if name is None:
    return None
  result = converted.Converted(
      {'algorithm': name.lower()} | _FLAGS | _OWN_FLAGS[name])
  arguments = _DEFAULTS | _OWN_DEFAULTS[name] | found[name]
  environment = found.get('VecEnv', {})
  num_environments = environment.pop('vec_env_size', 1)
  kwargs = environment.pop('env_kwargs', {})
  if isinstance(kwargs, Mapping):
    environment |= {'env_id': kwargs['env_id']} if 'env_id' in kwargs else {}
  if not isinstance(num_environments, int):
    result.notes['vec_env_size'] = 'The number is not known: 1 was taken.'
    num_environments = 1
  _add_algorithm(result, name, arguments)
  _add_cadence(result, arguments, num_environments)
  result.apply(found.get('OffPolicyActor', {}), _ACTOR_RULES)
  _add_storage(result, found, num_environments)
  result.apply(environment, _ENVIRONMENT_RULES)
  if 'level_name' not in result.flags:
    result.notes.setdefault(
        'env_fn', 'The file names no level: add --level_name=ID.')
  for call in file.calls:
    steps = call.arguments.get('target_steps')
    if call.function == 'Learner' and isinstance(steps, (int, float)):
      result.flags['total_environment_frames'] = int(steps)
  return result


def _factories(calls: list[reading.Call]
               ) -> dict[str, dict[str, reading.Value]]:
  """Returns the arguments of the first `create_factory` of each class."""
  found: dict[str, dict[str, reading.Value]] = {}
  for call in calls:
    owner, _, method = call.function.rpartition('.')
    if method == 'create_factory':
      found.setdefault(owner.rpartition('.')[-1], dict(call.arguments))
  return found


def _add_algorithm(result: converted.Converted, name: str,
                   arguments: dict[str, reading.Value]) -> None:
  settings = {key: value for key, value in arguments.items()
              if key not in ('num_updates', 'update_every', 'test_every')
              and value != []}
  if name == 'DDQN':  # One network; the loss is half of theirs.
    for key in ('lr_q', 'lr_pi'):
      settings.pop(key, None)
    norm = settings.get('max_grad_norm')
    if isinstance(norm, (int, float)):
      settings['max_grad_norm'] = norm / 2
  interval = settings.pop('target_update_interval', 1)
  if name == 'TD3':
    result.apply({'target_update_interval': interval},
                 {'target_update_interval': 'policy_delay'})
  elif name != 'DDPG':
    settings['target_update_interval'] = interval
  elif interval != 1:
    result.notes['target_update_interval'] = (
        'With ddpg, the targets move after every update.')
  result.apply(settings, _RULES)


def _add_cadence(result: converted.Converted,
                 arguments: Mapping[str, reading.Value],
                 num_environments: int) -> None:
  """Adds the flags of collections, updates and evaluations."""
  try:
    updates, every, test_every = (int(number(arguments[key])) for key in (
        'num_updates', 'update_every', 'test_every'))
    per_step = updates / (every * num_environments)
    result.flags |= {
        'num_actors': num_environments, 'unroll_length': every,
        'updates_per_step': per_step, 'updates_per_call': updates,
        'eval_every_frames': int(test_every / per_step)}
  except (TypeError, ValueError, ZeroDivisionError):
    result.notes['num_updates, update_every, test_every'] = (
        'A number is not known: set --unroll_length, --updates_per_step and '
        '--eval_every_frames by hand.')
  if not result.flags.get('eval_num_episodes'):
    result.flags.pop('eval_num_episodes', None)
    result.flags.pop('eval_every_frames', None)


def _add_storage(result: converted.Converted,
                 found: Mapping[str, dict[str, reading.Value]],
                 num_environments: int) -> None:
  name = next((name for name in _STORAGES if name in found), '')
  settings = found.get(name, {})
  size = settings.pop('size', None)
  if isinstance(size, (int, float)):
    result.flags['replay_steps'] = int(size) * num_environments
  if name == 'PERBuffer':
    result.flags['selector'] = 'prioritised'
  if name == 'EREBuffer':
    is_prioritised = bool(settings.get('alpha'))
    result.flags['selector'] = (
        'recent_prioritised' if is_prioritised else 'recent')
    if not is_prioritised:
      settings = {key: value for key, value in settings.items()
                  if key not in ('alpha', 'beta', 'epsilon')}
  result.apply(settings, _STORAGE_RULES)
