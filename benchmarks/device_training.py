# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains IMPALA on Atari on a machine that has a GPU and JAX, no TensorFlow.

  python benchmarks/device_training.py export --folder=parts \\
      --level_name=ALE/Breakout-v5                            # with TensorFlow
  python benchmarks/device_training_worker.py --folder=parts --out=out \\
      --seconds=500                                           # on the GPU
  python benchmarks/device_training.py import --folder=parts --out=out \\
      --logdir=DIRECTORY                                      # with TensorFlow

`export` writes the settings of `--recipe=atari_paper`, the first weights, and
two programs that XLA compiles: the policy step of a group of environments, and
an update. The worker plays with the environments of the project, and runs both
programs; a state that an earlier worker has written is resumed. `import` makes
a log directory of the state, which `experiment.py` tests, plots and resumes.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
from unittest import mock

import numpy as np

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)
# pylint: disable=wrong-import-position
import device
import learner as learner_benchmark
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent.experience import structs
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import optimizers
from scalable_agent.networks import layers
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

RATE = 'learning_rate'


def spec_of(config):
  """Returns the spec of the environments."""
  env = environments.make_vec([config.level_name], [0], config)
  env.close()
  return env.spec


def variables_of(learner):
  """Returns the variables of a checkpoint by name, such as `optimizer/3`."""
  return {f'{kind}/{i}': variable
          for kind, variables in learner.state.items()
          for i, variable in enumerate(
              checkpoint_files.tf_variables(variables))}


def make_learner(config, spec):
  """Returns a learner and the variable of its learning rate, an input."""
  rate = tf.Variable(config.learning_rate, trainable=False)
  optimizer = optimizers.make_optimizer(
      config.optimizer, learning_rate=config.learning_rate, decay=config.decay,
      momentum=config.momentum, epsilon=config.epsilon,
      beta_1=config.adam_beta1, beta_2=config.adam_beta2)
  learner = learner_lib.Learner(
      algorithms.make(config, spec, config.derive_seed('learner', 0)),
      {'agent': optimizers.Scheduled(
          optimizer, lambda num_env_frames: rate.read_value())},
      clip_gradient_norm=config.clip_gradient_norm)
  return learner, rate


def export(folder, config, num_envs):
  """Writes first state, update, and policy step of `num_envs` environments."""
  folder.mkdir(parents=True, exist_ok=True)
  tf.config.experimental.enable_tensor_float_32_execution(False)
  spec = spec_of(config)
  tf.keras.utils.set_random_seed(config.seed)
  learner, rate = make_learner(config, spec)
  variables = variables_of(learner)
  np.savez(folder / 'state.npz', **{k: v.numpy() for k, v in variables.items()})
  variables[RATE] = rate
  batch = learner_benchmark.to_batch(learner_benchmark.random_batch(
      np.random.RandomState(0), config.unroll_length, config.batch_size,
      spec.action.num_values[0]), learner)
  flat = tf.nest.flatten(batch.data)

  def update(*tensors):
    learner.num_updates = learner.num_env_frames = 0  # Of each trace.
    data = tf.nest.pack_sequence_as(batch.data, tensors)
    scalars = learner.step(batch._replace(data=data)).scalars
    return [scalars['entropy'], scalars['gradient_norm'], scalars['total_loss']]

  def policy(frames):
    zeros = tf.zeros([num_envs])
    output, _ = learner.agent.step(
        tf.zeros([num_envs], tf.int32), structs.StepOutput(
            zeros, structs.NO_INFO, zeros > 0, frames),
        learner.agent.initial_state(num_envs), True)
    return [output.policy, output.baseline]

  # The associative scan, as on a GPU.
  with mock.patch.object(layers, 'on_cpu', lambda: False):
    device.export(folder, 'update', update, flat, is_compared=False,
                  variables=variables)
  device.export(folder, 'policy', policy, [tf.constant(
      np.zeros((num_envs, *spec.observation.shape), np.uint8))],
                is_compared=False, variables=variables)
  (folder / 'progress.json').write_text(json.dumps(
      {'num_env_frames': 0, 'num_updates': 0, 'train_time_s': 0.0}))


def import_state(out, config):
  """Makes the log directory of a state."""
  spec = spec_of(config)
  progress = json.loads((out / 'progress.json').read_text())
  learner = setup.make_learner(config, spec)
  variables = variables_of(learner)
  with np.load(out / 'state.npz') as state:
    if set(state) != set(variables):
      raise SystemExit(f'{out}: variables of another agent.')
    for name, variable in variables.items():
      variable.assign(state[name])
  learner.num_env_frames = progress['num_env_frames']
  learner.num_updates = progress['num_updates']
  checkpointer = checkpointing.Checkpointer(
      config.logdir, learner, algorithms.describe(config, spec),
      level=config.level_name)
  checkpointer.train_time_s = progress['train_time_s']
  config.save()
  checkpointing.save_spec(config.logdir, spec)
  shutil.copy(out / 'episodes.csv', config.logdir)
  print(checkpointer.save())


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('mode', choices=('export', 'import'))
  parser.add_argument('--folder', type=pathlib.Path, required=True)
  parser.add_argument('--level_name', default='ALE/Breakout-v5')
  parser.add_argument('--agent', default='shallow')
  parser.add_argument('--seed', type=int,
                      help='1 for export; for import, as exported')
  parser.add_argument('--envs_per_group', type=int, default=128,
                      help='a multiple of the batch size, 32')
  parser.add_argument('--out', type=pathlib.Path,
                      help='for import: the folder that the worker wrote')
  parser.add_argument('--logdir', help='for import: a new log directory')
  args = parser.parse_args()
  path = args.folder / 'settings.json'
  if args.mode == 'export':
    settings = {'level_name': args.level_name, 'agent': args.agent,
                'seed': args.seed or 1}
    export(args.folder, config_lib.Config.from_recipe(
        'atari_paper', logdir=str(args.folder), **settings),
           args.envs_per_group)
    path.write_text(json.dumps(settings))
  else:
    settings = json.loads(path.read_text())
    settings['seed'] = args.seed or settings['seed']
    import_state(args.out, config_lib.Config.from_recipe(
        'atari_paper', logdir=os.path.abspath(args.logdir), **settings))


if __name__ == '__main__':
  main()
