# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The arguments of PyTorchRL's `create_factory` functions, and the defaults."""

from scalable_agent.compat import expressions

_TWO_RATES = (
    'lr_q lr_pi gamma polyak num_updates test_every update_every start_steps '
    'max_grad_norm mini_batch_size num_test_episodes target_update_interval '
    'policy_loss_addons')
_PRIORITIES = 'n_step epsilon alpha beta default_error'
# The arguments of `create_factory`, and of `Scheme` and `Learner`.
ARGUMENTS = {
    'DDQN': 'lr gamma polyak num_updates update_every test_every start_steps '
            'max_grad_norm mini_batch_size num_test_episodes epsilon_decay '
            'initial_epsilon target_update_interval policy_loss_addons',
    'DDPG': _TWO_RATES,
    'TD3': _TWO_RATES,
    'SAC': 'lr_q lr_pi lr_alpha gamma polyak num_updates test_every '
           'update_every start_steps max_grad_norm initial_alpha '
           'mini_batch_size num_test_episodes target_update_interval '
           'policy_loss_addons',
    'MPO': 'lr_q lr_pi gamma polyak num_updates test_every update_every '
           'start_steps mini_batch_size num_test_episodes '
           'target_update_interval dual_constraint kl_mean_constraint '
           'kl_var_constraint kl_constraint alpha_scale alpha_mean_scale '
           'alpha_var_scale alpha_mean_max alpha_var_max alpha_max '
           'mstep_iterations sample_action_num max_grad_norm '
           'policy_loss_addons',
    'OffPolicyActor':
        'input_space action_space algorithm_name noise restart_model '
        'sequence_overlap recurrent_net_kwargs recurrent_net '
        'obs_feature_extractor obs_feature_extractor_kwargs '
        'act_feature_extractor act_feature_extractor_kwargs '
        'common_feature_extractor common_feature_extractor_kwargs num_critics',
    'ReplayBuffer': 'size',
    'NStepReplayBuffer': 'size n_step',
    'PERBuffer': f'size {_PRIORITIES}',
    'EREBuffer': f'size {_PRIORITIES} eta cmin',
    'HERBuffer': f'size her_function {_PRIORITIES} eta cmin',
    'VecEnv': 'env_fn env_kwargs vec_env_size log_dir info_keywords',
    'Scheme': 'algo_factory actor_factory storage_factory train_envs_factory '
              'test_envs_factory num_col_workers col_compress_data '
              'col_workers_communication col_workers_resources '
              'col_preemption_thresholds num_grad_workers grad_compress_data '
              'grad_workers_communication grad_workers_resources local_device '
              'decentralized_update_execution',
    'Learner': 'scheme target_steps log_dir'}
# Arguments that pass what another call has made.
PASSED_ON = (
    'input_space', 'action_space', 'algorithm_name', 'algo_factory',
    'actor_factory', 'storage_factory', 'train_envs_factory',
    'test_envs_factory', 'scheme')
DEFAULTS: dict[str, expressions.Value] = {
    'lr_q': 1e-4, 'lr_pi': 1e-4, 'gamma': 0.99, 'polyak': 0.995,
    'num_updates': 50, 'update_every': 50, 'test_every': 5000,
    'start_steps': 1000, 'max_grad_norm': 0.5, 'mini_batch_size': 64,
    'num_test_episodes': 5, 'target_update_interval': 1}
OWN_DEFAULTS: dict[str, dict[str, expressions.Value]] = {
    'DDQN': {'lr_q': None, 'lr_pi': None, 'lr': 1e-4, 'start_steps': 20000,
             'initial_epsilon': 1.0, 'epsilon_decay': 0.999},
    'DDPG': {'lr_q': 1e-3},
    'TD3': {'mini_batch_size': 100},
    'SAC': {'lr_alpha': 1e-4, 'initial_alpha': 1.0},
    'MPO': {'max_grad_norm': 0.1, 'dual_constraint': 0.1,
            'kl_mean_constraint': 0.01, 'kl_var_constraint': 1e-4,
            'sample_action_num': 64}}
