# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains as experiment.py does for benchmarks/off_policy.py, or only learns.

The settings have `flags`, the flags of experiment.py. With `calls`, numbers of
updates per call, nothing is trained: the times of such calls, of draws and of
copies are measured on random transitions.
"""

import json
import os
import sys

import notes
import pong

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, _ROOT)
# experiment.main, which sets this variable, is not called here.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
# pylint: disable=wrong-import-position
import numpy as np
from scalable_agent import experiment
from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.runs import training

_SPEC = structs.EnvironmentSpec(  # HalfCheetah's.
    structs.ArraySpec((17,), np.dtype(np.float32)), structs.ActionSpec(size=6),
    1)


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


def updates(config, num_updates):
  """Returns a function that draws and learns as often as `num_updates`."""
  config = config.from_values(
      {**vars(config), 'updates_per_call': num_updates}).resolved(
          _SPEC.observation, on_cpu=True, num_groups=1)
  learner = training.make_learner(config, _SPEC)
  replay = replay_lib.Replay(
      replay_lib.StepStore(_SPEC, 2 * notes.NUM_STEPS, 1), replay_lib.Uniform(),
      replay_lib.NStep(config.discounting), 0)
  replay.add(_unroll())

  def call():
    data = replay.draw(num_updates, config.batch_size).data
    learner.step(learner.to_device(data, 0))
    return learner.agent.trainable_variables[0].numpy()  # Waits for the update.

  return call


def _unroll():
  """Returns one unroll of random steps, without ends of episodes."""
  rng = np.random.default_rng(0)
  shape = (notes.NUM_STEPS + 1, 1)
  floats = lambda *sizes: rng.standard_normal((*shape, *sizes), np.float32)
  no = np.zeros(shape, bool)
  reward = floats()
  return structs.Unroll(
      structs.Steps(
          structs.StepOutput(
              reward, structs.StepOutputInfo(reward, no, no), no, floats(17),
              no),
          structs.AgentOutput(np.tanh(floats(6)), reward, reward), reward),
      structs.Start([''], np.arange(1), (), np.zeros([1])), ())


def main():
  settings = json.loads(sys.argv[1])
  os.chdir(_ROOT)
  config = experiment.parse([
      '--logdir=' + os.path.join(os.environ['PEERS_RUN'], 'logdir'),
      '--save_checkpoint_secs=100000', *settings['flags']])
  if 'calls' in settings:
    notes.time_calls(settings['calls'], lambda k: updates(config, k))
  else:
    train(config)


if __name__ == '__main__':
  main()
