# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Flags and algorithms of other programs, in the words of this program."""

import re

# The words of stable-baselines3, RLlib, CleanRL, sample-factory and others,
# separated by spaces, for each advice.
_ADVICE = {
    '--learning_rate': 'lr policy_lr pi_lr actor_lr initial_lr',
    '--critic_learning_rate': 'critic_lr q_lr vf_lr qf_learning_rate',
    '--learning_rate_schedule': 'anneal_lr lr_schedule lr_decay lr_scheduler',
    '--num_actors': 'num_envs n_envs num_env nenvs num_environments n_env '
                    'num_env_runners num_envs_per_env_runner num_workers '
                    'num_envs_per_worker num_rollout_workers workers',
    '--total_environment_frames (agent steps x --num_action_repeats)':
        'total_timesteps timesteps n_timesteps num_timesteps total_steps '
        'max_steps num_env_steps train_for_env_steps total_frames '
        'max_timesteps num_frames env_steps num_training_steps '
        'stop_timesteps steps frames total_env_steps',
    '--level_name': 'env env_id env_name gym_id environment task_name game '
                    'environment_name level',
    '--environment_kwargs': 'env_kwargs env_config environment_config',
    '--algorithm': 'algo alg agent_type algorithm_name run',
    '--agent': 'policy encoder model network policy_network',
    '--recipe or --flagfile': 'config config_file conf cfg preset hyperparams '
                              'hyperparameters',
    '--discounting': 'gamma discount discount_factor',
    '--lambda_': 'gae_lambda lam lambda gae',
    '--unroll_length': 'num_steps n_steps rollout rollout_length horizon '
                       'rollout_fragment_length rollout_steps nsteps '
                       'seq_len max_seq_len',
    '--n_step': 'n_step_return multi_step nstep n_steps_return',
    '--batch_size (unrolls of impala and appo, else transitions)':
        'minibatch_size num_minibatches sgd_minibatch_size train_batch_size '
        'mini_batch_size train_batch_size_per_learner minibatch batch',
    '--passes, with --algorithm=appo': 'n_epochs update_epochs num_epochs '
                                       'epochs num_sgd_iter ppo_epoch',
    '--clip_ratio, with --algorithm=appo': 'clip_range clip_coef clip_param '
                                           'ppo_clip_ratio cliprange clip_eps',
    '--clip_value, with --algorithm=appo': 'clip_range_vf clip_vloss '
                                           'vf_clip_param ppo_clip_value',
    '--clip_rho': 'vtrace_rho vtrace_clip_rho_threshold',
    '--clip_pg_rho': 'vtrace_clip_pg_rho_threshold',
    '--clip_c': 'vtrace_c',
    '--unrolls_per_collect': 'num_batches_per_epoch',
    '--overlap, with --algorithm=appo': 'async_rl',
    '--num_actor_groups': 'worker_num_splits',
    '--bootstrap_truncated': 'value_bootstrap',
    '--kl_cost, with --algorithm=appo': 'target_kl kl_coeff kl_target '
                                        'kl_loss_coeff',
    '--normalise_advantages, with --algorithm=appo':
        'norm_adv normalize_advantage normalize_advantages',
    '--entropy_cost (impala, appo)': 'ent_coef entropy_coeff entropy_coef '
                                     'exploration_loss_coeff entropy_weight',
    '--baseline_cost (half of the squared error is weighted)':
        'vf_coef vf_loss_coeff value_loss_coeff value_coef value_loss_coef',
    '--initial_scale (a standard deviation, not a logarithm)':
        'log_std_init log_std std initial_stddev actor_logstd',
    '--scale_from_state, with --algorithm=impala, appo or mpo':
        'sigma sigma_type free_log_std',
    '--separate_baseline (impala, appo)':
        'vf_share_layers actor_critic_share_weights share_features_extractor',
    '--clip_gradient_norm': 'max_grad_norm grad_clip gradient_clip grad_norm '
                            'max_gradient_norm',
    '--normalise_observations': 'normalize_input norm_obs normalize_obs '
                                'normalize_observations obs_norm normalize '
                                'observation_filter',
    '--normalise_returns': 'norm_reward normalize_returns normalize_reward '
                           'normalize_rewards popart',
    '--reward_scale': 'scale_reward reward_scaling reward_scale_factor',
    '--reward_clipping': 'clip_rewards clip_reward reward_clip clip_rew',
    '--replay_steps': 'buffer_size buffer_capacity replay_buffer_size '
                      'replay_size memory_size capacity',
    '--min_replay_steps': 'learning_starts warmup_steps start_steps '
                          'random_steps start_timesteps min_replay_size '
                          'num_steps_sampled_before_learning_starts',
    '--updates_per_step': 'train_freq train_frequency gradient_steps utd '
                          'utd_ratio training_intensity replay_ratio '
                          'update_every',
    '--target_update_rate': 'tau polyak soft_update',
    '--target_update_period': 'target_update_interval target_network_frequency '
                              'target_network_update_freq target_update_freq',
    '--policy_delay': 'policy_frequency policy_freq actor_delay',
    '--exploration_epsilon_begin': 'start_e exploration_initial_eps eps_start '
                                   'epsilon_start',
    '--exploration_epsilon_end': 'end_e exploration_final_eps eps_end '
                                 'epsilon_end',
    '--exploration_epsilon_begin and --exploration_epsilon_end':
        'epsilon_greedy eps_greedy',
    '--exploration_noise': 'action_noise noise_std expl_noise',
    '--target_noise': 'target_policy_noise policy_noise',
    '--target_noise_clip': 'noise_clip',
    '--initial_temperature and --temperature_learning_rate':
        'initial_alpha alpha alpha_lr autotune temperature',
    '--target_entropy_per_part or --target_entropy_ratio': 'target_entropy',
    '--hindsight': 'goal_selection_strategy',
    '--hindsight_goals': 'n_sampled_goal',
    '--selector=prioritised': 'prioritized_replay per prioritized '
                              'prioritized_experience_replay',
    '--priority_exponent': 'per_alpha prioritized_replay_alpha',
    '--importance_exponent': 'per_beta prioritized_replay_beta',
    '--hidden_sizes': 'net_arch hiddens fcnet_hiddens hidden_size layers '
                      'hidden_dim hidden_dims mlp_layers encoder_mlp_layers '
                      'policy_kwargs',
    '--lstm_units': 'rnn_size lstm_cell_size lstm_hidden_size',
    '--agent=module:function, with a network of your own':
        'activation_fn activation nonlinearity',
    '--use_lstm': 'use_rnn lstm rnn recurrent use_recurrent recurrence',
    '--core': 'rnn_type cell_type rnn_cell recurrent_net',
    '--use_lstm --core=gru': 'gru use_gru',
    '--num_action_repeats': 'frameskip frame_skip env_frameskip action_repeat '
                            'skip frame_skips',
    '--repeat_action_probability': 'sticky_actions sticky',
    '--logdir': 'log_dir log_path train_dir output_dir save_path save_dir out '
                'tensorboard_log model_dir checkpoint_dir results_dir outdir '
                'local_dir experiment exp_name run_name output',
    '--save_checkpoint_secs': 'save_freq checkpoint_freq save_every_sec '
                              'save_interval checkpoint_frequency save_every',
    '--progress_secs': 'log_interval verbose log_freq log_every',
    '--eval_every_frames': 'eval_freq eval_interval evaluation_interval '
                           'eval_every eval_frequency',
    '--eval_num_episodes, or --test_num_episodes with --mode=test':
        'n_eval_episodes eval_episodes evaluation_duration num_episodes '
        'episodes',
    '--test_greedy': 'eval_deterministic greedy stochastic',
    '--mode=test': 'test eval evaluate enjoy play',
    '--mode=video or --video_secs': 'render capture_video record_video video '
                                    'save_video render_mode',
    'each --logdir has its agent': 'save_model',
    'impala and appo always use V-trace': 'with_vtrace',
    'the same --logdir resumes a run':
        'resume load restart_behavior checkpoint restore load_model continue '
        'trained_agent',
    'a run learns on the first GPU that TensorFlow finds, and on N GPUs with '
    '--ray_address=local --num_learners=N':
        'cuda device gpu gpus num_gpus use_gpu',
    'a search for settings is the program python -m '
    'scalable_agent.modes.sweep': 'sweep search tune grid_search num_trials',
    'networks are made with TensorFlow': 'framework',
    'this program has no gSDE; noise is drawn anew in each step':
        'use_sde sde_sample_freq',
    '--hook': 'callback callbacks logger',
    '--hook=scalable_agent.hooks:wandb':
        'track wandb with_wandb wandb_project wandb_project_name',
    '--hook=scalable_agent.hooks:mlflow': 'mlflow use_mlflow',
    '--adam_beta1 and --adam_beta2': 'betas adam_betas beta1 beta2',
    '--epsilon': 'adam_eps optimizer_eps adam_epsilon eps',
    '--deterministic': 'torch_deterministic reproducible',
    '--ray_address': 'num_nodes ray head_address',
    'Atari games have four frames, and code of other environments must stack '
    'vectors, or grey frames (gymnasium.wrappers.FrameStackObservation)':
        'frame_stack framestack num_stack n_stack env_framestack',
    'this program trains one agent; examples/pbt.py has population based '
    'training': 'with_pbt num_policies',
}
_FLAGS = {word: advice for advice, words in _ADVICE.items()
          for word in words.split()}
# Values of flags of this program, as flag=value.
_VALUES = {
    **dict.fromkeys(('algorithm=ppo', 'algorithm=ppo2', 'algorithm=trpo'),
                    '--algorithm=appo, which has the clip of PPO'),
    **dict.fromkeys(('algorithm=a2c', 'algorithm=a3c', 'algorithm=reinforce',
                     'algorithm=pg', 'algorithm=vtrace'),
                    '--algorithm=impala, or appo'),
    'algorithm=dqn': '--algorithm=ddqn (with --nodouble_q for plain DQN)',
    **dict.fromkeys(('algorithm=rainbow', 'algorithm=apex', 'algorithm=c51',
                     'algorithm=qrdqn', 'algorithm=iqn'),
                    '--algorithm=ddqn, with --dueling --n_step=3 '
                    '--selector=prioritised'),
    'algorithm=drqn': '--algorithm=ddqn --use_lstm',
    'algorithm=r2d2': '--recipe=r2d2_atari, or --algorithm=ddqn --use_lstm',
    **dict.fromkeys(('algorithm=tqc', 'algorithm=crossq', 'algorithm=redq',
                     'algorithm=droq'), '--algorithm=sac'),
    **dict.fromkeys(('algorithm=d4pg', 'algorithm=dmpo', 'algorithm=vmpo'),
                    '--algorithm=mpo or td3'),
    'algorithm=her': '--hindsight=future, with --algorithm=sac, td3 or ddqn',
    'optimizer=sgd': '--optimizer=rmsprop or adam',
    **dict.fromkeys(('mode=eval', 'mode=evaluate', 'mode=enjoy'),
                    '--mode=test'),
    'mode=play': '--mode=test or --mode=video',
    **dict.fromkeys(('mode=sweep', 'mode=search', 'mode=tune'),
                    'a search for settings is the program python -m '
                    'scalable_agent.modes.sweep'),
    **dict.fromkeys(('mode=render', 'mode=record'), '--mode=video'),
}


def of_flag(name: str) -> str:
  """Returns a line about an unknown flag, '' if the flag is of no program."""
  return _line(f'--{name}', _of_flag(name))


def of_value(error: str) -> str:
  """Returns a line for an absl error about the value of a flag, or ''."""
  if match := re.fullmatch('flag (--.*): (must be .*)', error, re.DOTALL):
    return f'{match[1]} {match[2]}.'
  match = re.match(r'flag --(\w+)=(\S+): value should be one of', error)
  if match is None:
    return ''
  name, value = match.groups()
  return _line(f'--{name}={value}', _of_value(name, value))


def of_setting(name: str, value: object) -> str:
  """Returns a line about a setting in Python of another program, or ''."""
  if advice := _of_value(name, str(value)):
    return _line(f'{name}={value!r}', advice)
  return _line(name, _of_flag(name))


def of_help(name: str) -> str:
  """Returns a line about `--help=name`, '' if the name is of no program."""
  return _line(
      f'--help={name}', _of_flag(name) or _of_value('algorithm', name))


def _of_flag(name: str) -> str | None:
  word = name.lower().replace('-', '_').rpartition('.')[-1]
  return _FLAGS.get(word) or _FLAGS.get(word.removeprefix('no'))


def _of_value(name: str, value: str) -> str | None:
  return _VALUES.get(f'{name}={re.sub("[-_]", "", value.lower())}')


def _line(flag: str, advice: str | None) -> str:
  if not advice:
    return ''
  return f'There is no {flag}' + (
      f'. Did you mean {advice}?' if advice.startswith('-') else
      f': {advice}.')
