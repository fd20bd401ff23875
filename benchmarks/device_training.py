# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains IMPALA on Atari on a machine that has a GPU and JAX, no TensorFlow.

  python benchmarks/device_training.py export --folder=parts \\
      --level_name=ALE/Breakout-v5                            # with TensorFlow
  python benchmarks/device_training_worker.py --folder=parts --out=out \\
      --seconds=500                                           # on the GPU
  python benchmarks/device_training.py import --out=out \\
      --logdir=DIRECTORY                                      # with TensorFlow

`export` writes the settings of `--recipe=atari_paper`, the first weights, and
two programs that XLA compiles: the policy step of a group of environments, and
an update. The worker plays with the environments of the project, and runs both
programs; a later worker resumes the state of an earlier one. `import` makes a
log directory of the state, which `experiment.py` tests, plots and resumes.
"""

import argparse
import csv
import json
import os
import pathlib
import sys
from unittest import mock

import numpy as np

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [_ROOT, os.path.join(_ROOT, 'benchmarks')]
import device
import learner as learner_benchmark
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent.experience import structs
from scalable_agent.learning import optimizers
from scalable_agent.networks import layers
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import setup
from scalable_agent.settings import config as config_lib
import tensorflow as tf

# As in device_training_worker.py: the input of an update that is no variable of
# a checkpoint, and the counters in a state.
RATE = 'learning_rate'
COUNTERS = 'num_env_frames', 'num_updates', 'train_time_s'


def make_config(folder, settings, **run):
  """Returns the settings of a run; `run` are settings of the worker."""
  return config_lib.Config.from_recipe('atari_paper', logdir=str(folder), **{
      name: settings[name] for name in ('level_name', 'agent', 'seed')}, **run)


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


def export(folder, config, num_envs):
  """Writes first state, update, and policy step of `num_envs` environments."""
  if num_envs % config.batch_size:
    raise SystemExit(f'--envs_per_group={num_envs} must be a multiple of the '
                     f'batch size, {config.batch_size}.')
  folder.mkdir(parents=True, exist_ok=True)
  tf.config.experimental.enable_tensor_float_32_execution(False)
  spec = spec_of(config)
  tf.keras.utils.set_random_seed(config.seed)
  learner = setup.make_learner(config, spec)
  variables = variables_of(learner)
  np.savez(folder / 'state.npz', **dict.fromkeys(COUNTERS, 0),
           **{name: v.numpy() for name, v in variables.items()})
  batch = learner_benchmark.to_batch(learner_benchmark.random_batch(
      np.random.RandomState(0), config.unroll_length, config.batch_size,
      spec.action.num_values[0]), learner)
  rate = tf.Variable(config.learning_rate, trainable=False)

  def policy(frames):
    zeros = tf.zeros([num_envs])
    output, _ = learner.agent.step(
        tf.zeros([num_envs], tf.int32), structs.StepOutput(
            zeros, structs.NO_INFO, zeros > 0, frames),
        learner.agent.initial_state(num_envs), True)
    return [output.policy, output.baseline]

  # The rate is an input, and V-trace an associative scan, as on a GPU.
  with (mock.patch.object(optimizers, 'linear_decay',
                          lambda *unused_args: rate.read_value()),
        mock.patch.object(layers, 'on_cpu', lambda: False)):
    device.export_update(
        folder, 'update', learner, batch, 0, is_compared=False,
        variables={**variables, RATE: rate})
    device.export(folder, 'policy', policy, [tf.constant(
        np.zeros((num_envs, *spec.observation.shape), np.uint8))],
                  is_compared=False, variables=variables)


def import_state(out, logdir):
  """Makes the log directory of the state that a worker has written."""
  if logdir.exists() and any(logdir.iterdir()):
    raise SystemExit(f'--logdir={logdir} is not empty: use another one.')
  with np.load(out / 'state.npz') as arrays:
    state = dict(arrays)
  counters = {name: state.pop(name).item() for name in COUNTERS}
  run = json.loads((out / 'run.json').read_text())
  with open(out / 'episodes.csv', newline='', encoding='utf-8') as f:
    header, *rows = csv.reader(f)
  config = make_config(
      logdir, run['settings'], num_actors=run['num_actors'],
      num_actor_groups=run['num_actor_groups'])
  spec = spec_of(config)
  learner = setup.make_learner(config, spec)
  variables = variables_of(learner)
  if set(state) != set(variables):
    raise SystemExit(f'{out}: variables of another agent.')
  for name, variable in variables.items():
    variable.assign(state[name])
  learner.num_env_frames = counters['num_env_frames']
  learner.num_updates = counters['num_updates']
  checkpointer = checkpointing.Checkpointer(
      str(logdir), learner, algorithms.describe(config, spec),
      level=config.level_name)
  checkpointer.train_time_s = counters['train_time_s']
  config.save()
  checkpointing.save_spec(str(logdir), spec)
  (logdir / 'run.json').write_text(json.dumps(run))
  with open(logdir / 'episodes.csv', 'w', newline='', encoding='utf-8') as f:
    csv.writer(f, lineterminator='\n').writerows([header, *(
        row for row in rows if int(row[0]) <= learner.num_env_frames)])
  print(checkpointer.save())


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  modes = parser.add_subparsers(dest='mode', required=True)
  exporting = modes.add_parser('export', help='writes the programs')
  exporting.add_argument('--level_name', default='ALE/Breakout-v5')
  exporting.add_argument('--agent', default='shallow')
  exporting.add_argument('--seed', type=int, default=1)
  exporting.add_argument('--envs_per_group', type=int, default=128,
                         help='a multiple of the batch size, 32')
  importing = modes.add_parser('import', help='makes a log directory')
  importing.add_argument('--out', type=pathlib.Path, required=True,
                         help='the folder that the worker wrote')
  importing.add_argument('--logdir', type=pathlib.Path, required=True,
                         help='a new log directory')
  exporting.add_argument('--folder', type=pathlib.Path, required=True,
                         help='a new folder for the programs')
  args = parser.parse_args()
  if args.mode == 'import':
    import_state(args.out, args.logdir.absolute())
    return
  path = args.folder / 'settings.json'
  if path.exists():
    parser.error(f'--folder={args.folder} has programs: use another folder.')
  settings = {name: getattr(args, name) for name in (
      'level_name', 'agent', 'seed', 'envs_per_group')}
  export(args.folder, make_config(args.folder, settings), args.envs_per_group)
  path.write_text(json.dumps(settings))


if __name__ == '__main__':
  main()
