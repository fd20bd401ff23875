# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Converts arguments of PyTorchRL's `create_factory`.

docs/migrating_pytorchrl.md explains the flags, and has the defaults.
"""

from collections.abc import Collection, Mapping
import math

from scalable_agent.compat import converted
from scalable_agent.compat import expressions
from scalable_agent.compat import pytorchrl_signatures as signatures
from scalable_agent.compat import reading
from scalable_agent.compat.converted import number

_ALGORITHMS = ('DDQN', 'DDPG', 'TD3', 'SAC', 'MPO')
_STORAGES = ('ReplayBuffer', 'NStepReplayBuffer', 'PERBuffer', 'EREBuffer',
             'HERBuffer')
_OWN_FLAGS: dict[str, dict[str, object]] = {
    'DDQN': {'double_q': 'false'}, 'DDPG': {}, 'TD3': {}, 'SAC': {},
    'MPO': {'exact_temperature': 'true', 'scale_from_state': 'false'}}
_ONE_RATE = 'DDQN has one network, with the learning rate lr.'
_MULTIPLIER = 'Multipliers are learned by gradient, as in acme.'
_RULES: dict[str, converted.Rule] = {
    'lr': 'learning_rate',
    'lr_pi': 'learning_rate',
    'lr_q': 'critic_learning_rate',
    'lr_alpha': 'temperature_learning_rate',
    'gamma': 'discounting',
    'polyak': lambda value: {
        'target_update_rate': round(1 - number(value), 12)},
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
    **dict.fromkeys((
        'alpha_scale', 'alpha_mean_scale', 'alpha_var_scale', 'alpha_mean_max',
        'alpha_var_max', 'alpha_max', 'mstep_iterations'), _MULTIPLIER),
    'reward_scaling': 'reward_scale',
    'policy_loss_addons': 'Write the term as a function of the agent and the '
                          'data, and name the function with '
                          '--addon=module:function.'}
_DDQN_RULES: dict[str, converted.Rule] = {
    'lr_q': _ONE_RATE, 'lr_pi': _ONE_RATE,
    # The loss here is half of theirs.
    'max_grad_norm': lambda value: {'clip_gradient_norm': number(value) / 2}}
_MEMORY = 'A GRU comes with --use_lstm --core=gru.'
_ACTOR_RULES: dict[str, converted.Rule] = {
    'noise': lambda value: {'exploration_noise': {
        'Gauss': 0.1, 'NoNoise': 0.0}[str(value)]},
    'num_critics': 'num_critics',
    'restart_model': 'A run resumes from its --logdir.',
    'recurrent_net': _MEMORY, 'recurrent_nets': _MEMORY,
    'recurrent_net_kwargs': 'The GRU has --lstm_units; the default is 256 with '
                            'ddqn, else 128.',
    'sequence_overlap': 'With --use_lstm, sequences of --sequence_length '
                        'begin every --unroll_length steps: half of the length '
                        'for 0.5.',
    **{f'{name}_feature_extractor{end}': text for end in ('', '_kwargs')
       for name, text in (
           ('obs', 'Choose a network with --agent.'),
           ('act', 'A critic sees action and observation.'),
           ('common', 'Choose layers with --hidden_sizes.'))}}
_ONE_CRITIC = 'With ddqn, ddpg and mpo, there is one critic, as there.'
_NO_NOISE = 'Only ddpg and td3 add noise to actions.'
_OWN_ACTOR_RULES: dict[str, dict[str, converted.Rule]] = {
    'DDQN': {'num_critics': _ONE_CRITIC, 'noise': _NO_NOISE},
    'DDPG': {'num_critics': _ONE_CRITIC}, 'TD3': {},
    'SAC': {'noise': _NO_NOISE},
    # A second critic is required there, and not used.
    'MPO': {'num_critics': _ONE_CRITIC, 'noise': _NO_NOISE}}
_STORAGE_RULES: dict[str, converted.Rule] = {
    'n_step': 'n_step',
    'epsilon': lambda value: {'priority_epsilon': number(value) or 1e-6},
    'alpha': 'priority_exponent',
    'beta': lambda value: {
        'importance_exponent': value, 'importance_exponent_end': value},
    'default_error': 'New steps get the largest priority so far.',
    'eta': 'recent_eta',
    'cmin': 'recent_min_steps',
    'her_function': 'Choose goals with --hindsight; the environment computes '
                    'the rewards.'}
_NO_PRIORITIES = 'The buffer has no priorities, as alpha is 0.'
_UNIFORM_RULES: dict[str, converted.Rule] = {
    'alpha': lambda value: {}, 'beta': _NO_PRIORITIES,
    'epsilon': _NO_PRIORITIES}
_ENVIRONMENT_RULES: dict[str, converted.Rule] = {
    'env_fn': 'Register the environment with gymnasium, and name the id with '
              '--level_name.',
    'log_dir': 'The directory of a run is --logdir.',
    'info_keywords': 'Values of info are not written.',
    'env_kwargs.env_id': converted.level,
    'env_kwargs.frame_skip': lambda value: {
        'num_action_repeats': max(int(number(value)), 1)},
    'env_kwargs.frame_stack': converted.FRAME_STACK,
    'env_kwargs.episodic_life': 'life_loss_ends_episode',
    'env_kwargs.clip_rewards': lambda value: {
        'reward_clipping': 'abs_one' if value else 'none'},
    'env_kwargs.sticky_actions': lambda value: {
        'repeat_action_probability': 0.25} if value else {},
    'env_kwargs.max_episode_steps': 'See --environment_kwargs, and for Atari '
                                    'games --max_episode_frames.',
    'env_kwargs.reward_delay': 'Delayed rewards need an environment of your '
                               'own.',
    'env_kwargs.seed': 'seed'}
_COLLECTORS = ('Environments run in the threads of --num_actor_groups, or with '
               '--ray_address in the processes of --num_actor_workers.')
_LEARNERS = ('Several learners (--num_learners) always apply the mean of their '
             'gradients, each learner to its own weights.')
_SCHEME_RULES: dict[str, converted.Rule] = {
    'num_col_workers': 'Each worker has vec_env_size environments: multiply '
                       '--num_actors, --replay_steps, --min_replay_steps and '
                       '--eval_every_frames by the number of workers, and '
                       'divide --updates_per_step by this number.',
    'col_workers_communication': _COLLECTORS,
    'col_workers_resources': 'Resources are --num_cpus_per_actor_worker.',
    'col_compress_data': 'Unrolls are compressed with --pack=zlib.',
    'col_preemption_thresholds': 'No unroll waits for another unroll.',
    'num_grad_workers': _LEARNERS,
    'grad_workers_communication': _LEARNERS,
    'decentralized_update_execution': _LEARNERS,
    'grad_workers_resources': 'Resources are --num_cpus_per_learner and '
                              '--num_gpus_per_learner.',
    'grad_compress_data': 'Gradients are not compressed.',
    'local_device': 'TensorFlow takes a GPU if there is one.'}


def convert(file: reading.File) -> converted.Converted | None:
  """Returns flags and notes; None if no algorithm is made in the file."""
  notes: dict[str, str] = {}
  if any(call.function.endswith('.add_argument') for call in file.calls):
    notes['args'] = ('Values are the defaults of add_argument, not those of a '
                     'command line or of a file that the program reads.')
  found = _calls(file.calls, notes)
  name = _first(found, _ALGORITHMS, notes)
  if not name:
    return None
  result = converted.Converted(
      {'algorithm': name.lower(), 'hidden_sizes': '256,256,256'}
      | _OWN_FLAGS[name], notes)
  arguments = signatures.DEFAULTS | signatures.OWN_DEFAULTS[name] | found[name]
  num_environments = _add_environment(result, found.get('VecEnv', {}))
  repeats = int(number(result.flags['num_action_repeats']))
  _add_algorithm(result, name, arguments, num_environments)
  storage = _first(found, _STORAGES, notes)
  _add_cadence(result, arguments | {
      'n_step': found.get(storage, {}).get('n_step', 1)},
               num_environments, repeats)
  result.apply(found.get('OffPolicyActor', {}),
               _ACTOR_RULES | _OWN_ACTOR_RULES[name])
  _add_storage(result, storage, found.get(storage, {}), num_environments)
  scheme = found.get('Scheme', {})
  if scheme.get('num_col_workers') == 1:
    scheme.pop('num_col_workers')
  result.apply(scheme, _SCHEME_RULES)
  result.apply(found.get('Learner', {}), {
      'target_steps': lambda value: {
          'total_environment_frames': int(number(value)) * repeats},
      'log_dir': _ENVIRONMENT_RULES['log_dir']})
  return result


def _calls(calls: list[reading.Call], notes: dict[str, str]
           ) -> dict[str, dict[str, expressions.Value]]:
  """Returns the arguments of the first call for each class."""
  found: dict[str, dict[str, expressions.Value]] = {}
  for call in calls:
    owner, _, method = call.function.rpartition('.')
    is_factory = method == 'create_factory'
    name = owner.rpartition('.')[-1] if is_factory else method
    if is_factory and name not in signatures.ARGUMENTS:
      notes[call.function] = 'This class is not known: no flag was made.'
    elif is_factory or name in ('Scheme', 'Learner'):
      known = signatures.ARGUMENTS[name].split()
      arguments = {key: value for key, value in call.named(known).items()
                   if key not in signatures.PASSED_ON}
      if found.setdefault(name, arguments) != arguments:
        notes[call.function] = (
            'The file has several such calls: the first call was converted.')
  return found


def _first(found: Collection[str], names: Collection[str],
           notes: dict[str, str]) -> str:
  """Returns the first class of the file among `names`, or ''."""
  first, *others = [name for name in found if name in names] or ['']
  for name in others:
    notes[f'{name}.create_factory'] = (
        f'This call was not converted, as {first} comes first in the file.')
  return first


def _add_environment(result: converted.Converted,
                     settings: dict[str, expressions.Value]) -> int:
  """Adds the flags of environments, and returns their number."""
  num_environments = settings.pop('vec_env_size', 1)
  if not isinstance(num_environments, int):
    result.notes['vec_env_size'] = 'The number is not known: 1 was taken.'
    num_environments = 1
  kwargs = reading.flat(settings.pop('env_kwargs', {}), 'env_kwargs')
  result.apply(settings | kwargs, _ENVIRONMENT_RULES)
  flags = result.flags
  is_atari = str(flags.get('level_name', '')).startswith('ALE/')
  flags.setdefault('num_action_repeats', 4 if is_atari else 1)
  if is_atari:
    flags.setdefault('reward_clipping', 'none')
    flags['fire_on_reset'] = 'true'
    if 'env_kwargs.max_episode_steps' not in kwargs:
      flags['max_episode_frames'] = 4500 * int(
          number(flags['num_action_repeats']))
  if 'level_name' not in flags:
    result.notes['env_kwargs.env_id'] = (
        'The file names no level: add --level_name=ID.')
  return num_environments


def _add_algorithm(result: converted.Converted, name: str,
                   arguments: dict[str, expressions.Value],
                   num_environments: int) -> None:
  settings = {key: value for key, value in arguments.items()
              if key not in ('num_updates', 'update_every', 'test_every')}
  if settings.get('policy_loss_addons') == []:
    settings.pop('policy_loss_addons')
  interval = settings.pop('target_update_interval', 1)
  if name == 'TD3':
    result.apply({'target_update_interval': interval},
                 {'target_update_interval': 'policy_delay'})
  elif name != 'DDPG':
    settings['target_update_interval'] = interval
  elif interval != 1:
    result.notes['target_update_interval'] = (
        'With ddpg, the targets move after every update.')
  if name == 'SAC':
    result.notes['target_entropy'] = (
        'For discrete actions, add --target_entropy_ratio=0.98.')
  if name == 'MPO':
    result.notes['kl_mean_constraint, kl_var_constraint'] = (
        'The bounds here are for each part of a continuous action, theirs for '
        'all parts together: divide --epsilon_mean and --epsilon_scale by the '
        'number of parts.')
    result.notes['kl_var_constraint, sample_action_num'] = (
        'Discrete: remove --epsilon_scale, --num_samples, --scale_from_state.')
  result.apply(settings, _RULES | {
      # There, steps of each environment.
      'start_steps': lambda value: {
          'min_replay_steps': int(number(value)) * num_environments}} | (
              _DDQN_RULES if name == 'DDQN' else {}))


def _add_cadence(result: converted.Converted,
                 arguments: Mapping[str, expressions.Value],
                 num_environments: int, repeats: int) -> None:
  """Adds the flags of collections, updates and evaluations."""
  result.flags['num_actors'] = num_environments
  try:
    updates, every, test_every, n_step = (
        int(number(arguments[key])) for key in (
            'num_updates', 'update_every', 'test_every', 'n_step'))
    # There, the last steps of a collection only complete its n-step returns.
    every += n_step - 1
    # Rounded up: with fewer updates per step, a round of updates would be late.
    per_step = math.ceil(1e9 * updates / (every * num_environments)) / 1e9
    result.flags |= {
        'unroll_length': every, 'updates_per_step': per_step,
        'updates_per_call': updates,
        'eval_every_frames': (
            test_every * every * num_environments // updates * repeats)}
  except (ArithmeticError, ValueError):
    result.notes['num_updates, update_every, test_every, n_step'] = (
        'A number is not known, or is 0: set --unroll_length, '
        '--updates_per_step and --eval_every_frames by hand.')
  if (result.flags.get('eval_num_episodes') == 0
      or not result.flags.get('eval_every_frames')):
    result.flags.pop('eval_num_episodes', None)
    result.flags.pop('eval_every_frames', None)


def _add_storage(result: converted.Converted, name: str,
                 settings: dict[str, expressions.Value], num_environments: int
                 ) -> None:
  is_prioritised = bool(settings.get('alpha'))
  is_recent = name == 'EREBuffer' or 'eta' in settings or 'cmin' in settings
  if is_prioritised:
    settings = {'epsilon': 0.0, 'beta': 1.0} | settings
  if is_recent:
    settings = {'eta': 1.0, 'cmin': 5000} | settings
    if result.flags.get('updates_per_call') != 50:
      result.notes['num_updates, eta'] = 'A round has 50 updates here.'
  if is_prioritised:  # Each update draws with the priorities of the one before.
    result.flags.pop('updates_per_call', None)
  if is_prioritised or is_recent:
    result.flags['selector'] = '_'.join(
        ['recent'] * is_recent + ['prioritised'] * is_prioritised)
  result.apply(settings, _STORAGE_RULES | (
      {} if is_prioritised else _UNIFORM_RULES) | {
          'size': lambda value: {
              'replay_steps': int(number(value)) * num_environments}})
