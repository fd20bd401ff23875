# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains as experiment.py does for benchmarks/off_policy.py, or only learns.

The settings have `flags`, the flags of experiment.py. With `calls`, numbers of
updates per call, nothing is trained: the times of such calls, of draws and of
copies are measured on random steps, with observations of `num_inputs` numbers.
With `bound`, also the matrix products of an update. Operations have one thread,
as in a training on two cores.
"""

import json
import os
import sys

import notes
import pong
import products

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, _ROOT)
# experiment.main, which sets this variable, is not called here.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
import numpy as np
from scalable_agent import experiment
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.runs import setup
from scalable_agent.runs import training
import tensorflow as tf
import tree


def train(config):
  """Trains until a kill."""
  note_updates = notes.Notes(config.batch_size)

  def note(update):
    learner = update.learner
    if learner.num_updates == learner.updates_per_call:
      pong.note_parameters(
          [v for group in learner.algorithm.groups.values() for v in group])
    pong.count_steps(sum(len(note.actions) for note in update.notes))
    note_updates(learner.num_updates)

  training.train(config, hooks=[note])


def _learner(config, num_updates, num_inputs):
  """Returns settings, spec and learner for `num_updates` per call."""
  spec = structs.EnvironmentSpec(
      structs.ArraySpec((num_inputs,), np.dtype(np.float32)),
      structs.ActionSpec(size=6), 1)  # HalfCheetah's.
  config = config.from_values(
      {**vars(config), 'updates_per_call': num_updates}).resolved(
          spec.observation, on_cpu=True, num_groups=1)
  return config, spec, setup.make_learner(config, spec)


def updates(config, num_updates, num_inputs):
  """Returns a function that draws and learns as often as `num_updates`."""
  config, spec, learner = _learner(config, num_updates, num_inputs)
  store = replay_lib.StepStore(spec, 2 * notes.NUM_STEPS, 1)
  view = replay_lib.NStep(config.discounting)
  state = learner.agent.initial_state(1)
  if config.use_lstm:
    store = replay_lib.Starts(
        store, state, config.num_entries, config.unroll_length)
    view = replay_lib.Sequences(view, config.burn_in_steps)
  replay = replay_lib.Replay(store, replay_lib.Uniform(), view, 0)
  whole = _unroll(num_inputs, state)
  for start in range(0, notes.NUM_STEPS, config.unroll_length):
    replay.add(whole._replace(steps=tree.map_structure(
        lambda a, s=start: a[s:s + config.unroll_length + 1], whole.steps)))

  def call():
    data = replay.draw(num_updates, config.batch_size).data
    learner.step(learner.to_device(data, 0))
    return learner.agent.trainable_variables[0].numpy()  # Waits for the update.

  return call


def bound(config, num_inputs):
  """Returns the products of an update: processor ms, and multiply-adds."""
  config, _, learner = _learner(config, 1, num_inputs)
  policy, critics = ([tuple(v.shape) for v in learner.algorithm.groups[group]
                      if len(v.shape) == 2] for group in ('policy', 'critic'))
  found = products.of_sac(
      policy, critics[:len(critics) // config.num_critics], config.num_critics,
      config.batch_size)
  return {'cpu': products.cpu_ms(found),
          'multiply_adds': products.num_multiply_adds(found)}


def _unroll(num_inputs, state):
  """Returns one unroll of random steps, without ends of episodes."""
  rng = np.random.default_rng(0)
  shape = (notes.NUM_STEPS + 1, 1)
  floats = lambda *sizes: rng.standard_normal((*shape, *sizes), np.float32)
  no = np.zeros(shape, bool)
  reward = floats()
  return structs.Unroll(
      structs.Steps(
          structs.StepOutput(
              reward, structs.StepOutputInfo(reward, no, no), no,
              floats(num_inputs), no),
          structs.AgentOutput(np.tanh(floats(6)), reward, reward), reward),
      structs.Start([''], np.arange(1), state, np.zeros([1])), ())


def main():
  settings = json.loads(sys.argv[1])
  os.chdir(_ROOT)
  config = experiment.parse([
      '--logdir=' + os.path.join(os.environ['PEERS_RUN'], 'logdir'),
      '--save_checkpoint_secs=100000', *settings['flags']])
  if 'calls' in settings:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    num_inputs = settings.get('num_inputs', 17)
    more = {'products': bound(config, num_inputs)} if settings.get(
        'bound') else {}
    notes.time_calls(
        settings['calls'], lambda k: updates(config, k, num_inputs), **more)
  else:
    train(config)


if __name__ == '__main__':
  main()
