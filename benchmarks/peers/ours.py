# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains as experiment.py does for benchmarks/peers.py, and notes updates.

A step of an environment is counted when the learner first learns from the step,
at most a queue of unrolls after the step: nothing is dropped in between.
"""

import functools
import json
import os
import sys

import pong

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, _ROOT)
# experiment.main, which sets this variable, is not called here.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
from scalable_agent import experiment
from scalable_agent.runs import training


def note(num_samples, update):
  """A hook of `training.train`: notes steps and samples of an update."""
  if update.learner.num_updates == 1:
    pong.note_parameters(update.learner.agent.trainable_variables)
  pong.count_steps(sum(len(note.actions) for note in update.notes))
  pong.note_update(num_samples)


def main():
  settings = json.loads(sys.argv[1])
  num_samples = settings['batch_size'] * settings['unroll_length']
  os.chdir(_ROOT)  # Flag files are named from there.
  training.train(experiment.parse([
      '--recipe=pong_two_cores', '--replay_capacity=0',
      '--selector=uniform', '--num_actor_groups=2',
      f'--agent={settings["network"]}',
      f'--batch_size={settings["batch_size"]}',
      f'--unroll_length={settings["unroll_length"]}',
      '--logdir=' + os.path.join(os.environ['PEERS_RUN'], 'logdir'),
      '--save_checkpoint_secs=100000', *settings['flags']]), hooks=[
          functools.partial(note, num_samples)])


if __name__ == '__main__':
  main()
