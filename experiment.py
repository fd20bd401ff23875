# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains and tests IMPALA agents: flags in, checkpoints and scores out.

  python experiment.py --flagfile=configs/pong_two_cores.flags --logdir=/tmp/a
  python experiment.py --flagfile=configs/pong_two_cores.flags --logdir=/tmp/a \
      --mode=test
  python experiment.py --logdir=/tmp/a,/tmp/b --mode=table
  python experiment.py --logdir=/tmp/a --mode=plot
"""

import dataclasses
import os
import sys

from absl import app
from absl import flags
from absl import logging
from scalable_agent import errors
from scalable_agent import config as config_lib

# TensorFlow is imported in main: environment processes import this module.

# The reference's flags: names, meanings and defaults are DeepMind's.
flags.DEFINE_string('logdir', '/tmp/agent',
                    'Directory of checkpoints, curves and scores. A run '
                    'started on a directory with a checkpoint goes on there.')
flags.DEFINE_enum('mode', 'train', ['train', 'test', 'table', 'plot'],
                  'Train; play whole games with the latest checkpoint, for a '
                  'table of scores beside published ones; put the latest '
                  'tests in --logdir=A,B,C, or tests that it names, into one '
                  'table; or draw the learning curves of --logdir=A,B,C.')
flags.DEFINE_integer('test_num_episodes', 10, 'Episodes per level in test '
                     'mode.')
flags.DEFINE_integer('task', -1, 'Task id; -1 for one machine.')
flags.DEFINE_enum('job_name', 'learner', ['learner', 'actor'], 'Job name; '
                  'ignored when task is -1.')
flags.DEFINE_integer('total_environment_frames', int(1e9), 'Environment '
                     'frames (agent steps x action repeats) to train for; the '
                     'learning rate reaches 0 there.')
flags.DEFINE_integer('num_actors', 4, 'Number of environments.')
flags.DEFINE_integer('batch_size', 2, 'Unrolls per update.')
flags.DEFINE_integer('unroll_length', 100, 'Agent steps per unroll.')
flags.DEFINE_integer('num_action_repeats', 4, 'Environment frames per agent '
                     'step: how often each action is repeated.')
flags.DEFINE_integer('seed', 1, 'Seed of weights, actions and environments.')
flags.DEFINE_float('entropy_cost', 0.00025, 'Weight of the entropy loss.')
flags.DEFINE_float('baseline_cost', 0.5, 'Weight of the baseline loss.')
flags.DEFINE_float('discounting', 0.99, 'Discount per agent step.')
flags.DEFINE_enum('reward_clipping', 'abs_one', ['abs_one', 'soft_asymmetric'],
                  'How rewards are clipped for learning.')
flags.DEFINE_string('dataset_path', '', 'Path of the dataset that DeepMind '
                    "Lab's psychlab levels need.")
flags.DEFINE_string('level_name', 'ALE/Pong-v5', 'A gymnasium id, those of '
                    'MiniGrid, BabyAI and ViZDoom included, a level of '
                    'DeepMind Lab, catch, memory or counting; environment i '
                    'gets level i % n of a list A,B,C or of the suites dmlab30 '
                    'and atari57.')
flags.DEFINE_integer('width', 96, 'Width of the frames of DeepMind Lab and '
                     'ViZDoom, pixels.')
flags.DEFINE_integer('height', 72, 'Height of the frames of DeepMind Lab and '
                     'ViZDoom, pixels.')
flags.DEFINE_float('learning_rate', 0.00048, 'Learning rate at frame 0.')
flags.DEFINE_float('decay', .99, 'Decay of the second moment of RMSProp.')
flags.DEFINE_float('momentum', 0., 'Momentum of RMSProp.')
flags.DEFINE_float('epsilon', .1, 'Epsilon of the optimizer: inside the root '
                   'for RMSProp; outside for Adam, which wants a smaller one.')

# Beyond the reference.
flags.DEFINE_enum('agent', 'deep', ['deep', 'shallow', 'mlp'], 'Network: the '
                  "reference's ResNet, the paper's small network, or dense "
                  'layers for vectors and tiny images.')
flags.DEFINE_bool('use_lstm', True, 'Whether the agent has an LSTM of 256 '
                  'units.')
flags.DEFINE_bool('use_last_action_reward', True, 'Whether the agent sees its '
                  'last action and (clipped) reward.')
flags.DEFINE_bool('use_instruction', True, 'Whether the agent sees the '
                  'instructions of levels that have some.')
flags.DEFINE_enum('optimizer', 'rmsprop', ['rmsprop', 'adam'], 'Optimizer; '
                  "rmsprop is TensorFlow 1's.")
flags.DEFINE_float('adam_beta1', .9, "Decay of Adam's first moment.")
flags.DEFINE_float('adam_beta2', .999, "Decay of Adam's second moment.")
flags.DEFINE_float('clip_gradient_norm', 0., 'Largest global norm of the '
                   'gradient; 0 for no clipping.')
flags.DEFINE_integer('num_actor_groups', 2, 'Actor threads, at most '
                     'as many as environments, which are divided among them; '
                     'one group steps its environments while another runs the '
                     'policy.')
flags.DEFINE_integer('queue_capacity', 1, 'Unrolls of all environments of a '
                     'group that may wait for the learner; more of them, more '
                     'policy lag.')
flags.DEFINE_float('save_checkpoint_secs', 600, 'Seconds between checkpoints.')
flags.DEFINE_float('save_summaries_secs', 30, 'Seconds between summaries.')
flags.DEFINE_float('progress_secs', 10, 'Seconds between progress lines.')
flags.DEFINE_bool('test_greedy', False, 'Whether test mode takes the most '
                  'likely action; by default it samples, as the reference.')
flags.DEFINE_bool('dynamic_batching', None, 'Whether the actor groups share '
                  'their policy steps. By default, four or more groups do that '
                  'have fewer than four environments each.')
flags.DEFINE_enum('xla', 'auto', ['auto', 'none', 'policy', 'all'],
                  'What XLA compiles: policy steps, or updates, too. auto is '
                  'policy on a CPU, but for the deep network, else none. '
                  'Policy steps that groups share are not compiled by it.')
flags.DEFINE_enum('compute_dtype', 'float32', ['float32', 'bfloat16'],
                  'What the networks multiply in. bfloat16 is for GPUs and '
                  'TPUs that have it; weights, the state of the LSTM, V-trace '
                  'and losses are float32 in any case.')
flags.DEFINE_integer('micro_batch_size', 0, 'Unrolls of a batch that are '
                     'processed at once; the update is that of the whole '
                     'batch. 0 for what suits network and device: on a CPU '
                     'the deep network, and with --xla=all the shallow one, '
                     'takes about 84 steps at a time, else all.')
flags.DEFINE_float('repeat_action_probability', 0., 'Atari: probability that '
                   'the emulator repeats the last action (sticky actions).')
flags.DEFINE_bool('full_action_space', False, 'Atari: all 18 actions instead '
                  "of the game's own.")
flags.DEFINE_bool('life_loss_ends_episode', True, 'Atari: whether a lost life '
                  'ends an episode for the learner. Returns are of whole '
                  'games; test mode plays whole games in any case.')
flags.DEFINE_integer('max_noops', 30, 'Atari: most no-op frames at the start '
                     'of a game.')
flags.DEFINE_bool('fire_on_reset', False, 'Atari: whether FIRE is pressed at '
                  'the start of a game.')
flags.DEFINE_integer('max_episode_frames', 108000, 'Atari: frames after which '
                     'a game is cut off.')
flags.DEFINE_float('step_timeout_s', 300., 'Seconds after which an environment '
                   'process that steps, resets or starts counts as hung.')
flags.DEFINE_string('level_cache_dir', '', 'Where DeepMind Lab keeps compiled '
                    'maps; it grows with every new one. Nowhere if empty.')
flags.DEFINE_string('plot_file', '', 'Where plot mode draws to, a PNG; if '
                    'empty, learning_curves.png in the directory of the run, '
                    'or learning_curves_compared.png in the first of several.')
flags.DEFINE_integer('plot_num_episodes', 100, 'Episodes that the mean return '
                     'of a learning curve is over.')
flags.DEFINE_bool('bootstrap_truncated', False, 'Whether the return of an '
                  'episode that a time limit cut off goes on with the value of '
                  'its last observation. Off, as in the reference, a time '
                  'limit is an end like any other.')
flags.DEFINE_enum('correction', 'vtrace', config_lib.CORRECTIONS,
                  'What is corrected in unrolls of older policies, as in table '
                  '2 of the paper: one_step leaves the targets of the baseline '
                  'uncorrected, none everything; epsilon is none with 1e-6 '
                  'added to the probabilities in the policy loss.')
flags.DEFINE_integer('replay_capacity', 0, 'How many of the latest unrolls are '
                     'kept to be trained on again; the paper has 10,000. 0 for '
                     'no replay. They stay in memory, not in checkpoints.')
flags.DEFINE_float('replay_fraction', .5, 'Share of replayed unrolls in a '
                   'batch, with --replay_capacity. Frames, returns and policy '
                   'lag are those of the fresh ones.')
flags.DEFINE_integer('min_policy_lag', 0, 'For experiments: act with weights '
                     'so many updates old, with the first ones until there '
                     'are so many. Queues add lag of their own.')


def main(argv):
  if len(argv) > 1:
    app.usage(shorthelp=True, exitcode=1,
              detailed_error=f'Unknown arguments: {" ".join(argv[1:])}')
  values = flags.FLAGS.flag_values_dict()
  names = [field.name for field in dataclasses.fields(config_lib.Config)]
  logging.set_verbosity(logging.WARNING)
  # What fails raises; what TensorFlow logs beside it is of no use to users.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
  # TensorFlow leaves oneDNN off on CPUs without AVX-512, where it makes an
  # update up to twice as fast.
  os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
  try:
    config = config_lib.Config(**{name: values[name] for name in names})
    # pylint: disable=g-import-not-at-top
    if config.mode == 'plot':
      from scalable_agent.scores import plotting
      return plotting.run(config)
    if config.mode == 'table':
      from scalable_agent.scores import files as score_files
      return score_files.compare(config)
    from scalable_agent import training
    return training.run(config)
  except errors.UserError as e:
    print(f'experiment.py: {e}', file=sys.stderr)
    return e.exit_code
  except KeyboardInterrupt:
    return 130
  except BrokenPipeError:  # Whoever read the output has gone: say no more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == '__main__':
  app.run(main)
